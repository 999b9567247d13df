//! Reasons why a request is refused, as the page shows them.

use knee_scenario::ScenarioError;
use miette::Diagnostic;
use serde::Serialize;

/// A refusal: the error, its remedy and, for a scenario, its place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Description of the error.
    pub error: String,
    /// The remedy; empty if nothing helps.
    pub remedy: String,
    /// Line of the scenario, counted from 1; none: all of it.
    pub line: Option<usize>,
    /// Text of the line.
    pub excerpt: Option<String>,
}

impl Refusal {
    /// A refusal without a place.
    pub fn new(error: impl ToString, remedy: &str) -> Self {
        Self { error: error.to_string(), remedy: remedy.to_owned(), line: None, excerpt: None }
    }
}

impl From<ScenarioError> for Refusal {
    fn from(error: ScenarioError) -> Self {
        let mut refusal = Self::new(&error, "");
        refusal.remedy = error.help().map(|help| help.to_string()).unwrap_or_default();
        let label = error.labels().and_then(|mut labels| labels.next());
        if let (Some(label), Some(source)) = (label, error.source_code())
            && let Ok(place) = source.read_span(label.inner(), 0, 0)
            && let Ok(around) = source.read_span(label.inner(), 1, 1)
        {
            refusal.line = Some(place.line() + 1);
            let text = String::from_utf8_lossy(around.data());
            let line = text.lines().nth(place.line() - around.line());
            refusal.excerpt = line.map(|line| line.trim_end().to_owned());
        }
        refusal
    }
}
