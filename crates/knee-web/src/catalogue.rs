//! Catalogue of choices: algorithms with their parameters, and the repository's scenarios.

use include_dir::{Dir, DirEntry, include_dir};
use knee_cc::{Algorithm, Param, ParamKind, Profile, RuleOp, algorithms};
use knee_metrics::{METRICS, Metric};
use serde::Serialize;

static SCENARIOS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/scenarios");

/// All of it.
#[derive(Debug, Serialize)]
pub(crate) struct Catalogue {
    version: &'static str,
    algorithms: Vec<AlgorithmEntry>,
    scenarios: Vec<ScenarioEntry>,
    metrics: Vec<MetricEntry>,
}

#[derive(Debug, Serialize)]
struct AlgorithmEntry {
    name: &'static str,
    summary: &'static str,
    citation: &'static str,
    /// True if it sets its own window and pacing rate in every phase.
    rate_based: bool,
    observes: [&'static str; knee_cc::OBSERVE_N],
    params: Vec<ParamEntry>,
    rules: Vec<RuleEntry>,
}

#[derive(Debug, Serialize)]
struct ParamEntry {
    name: &'static str,
    unit: &'static str,
    /// Raw: microseconds, packets, millionths, or the number of a choice.
    min: u32,
    max: u32,
    default: u32,
    choices: Vec<&'static str>,
    source: &'static str,
    help: &'static str,
}

/// A condition on two parameters.
#[derive(Debug, Serialize)]
struct RuleEntry {
    left: &'static str,
    /// `<`, or `0 or >`.
    op: &'static str,
    right: &'static str,
}

#[derive(Debug, Serialize)]
struct MetricEntry {
    name: &'static str,
    /// `run`, `queue` or `flow`.
    of: &'static str,
    unit: &'static str,
    meaning: &'static str,
}

#[derive(Debug, Serialize)]
struct ScenarioEntry {
    /// `chd/coexistence`.
    name: String,
    text: &'static str,
}

pub(crate) fn catalogue() -> Catalogue {
    let mut scenarios = Vec::new();
    collect(&SCENARIOS, &mut scenarios);
    scenarios.sort_by(|a, b| a.name.cmp(&b.name));
    Catalogue {
        version: env!("CARGO_PKG_VERSION"),
        algorithms: algorithms().iter().map(entry).collect(),
        scenarios,
        metrics: METRICS.iter().map(metric).collect(),
    }
}

fn entry(algorithm: &Algorithm) -> AlgorithmEntry {
    let rule = |rule: knee_cc::Rule| RuleEntry {
        left: rule.left.name,
        op: match rule.op {
            RuleOp::LessThan => "<",
            RuleOp::ZeroOrMoreThan => "0 or >",
        },
        right: rule.right.name,
    };
    AlgorithmEntry {
        name: algorithm.name(),
        summary: algorithm.summary(),
        citation: algorithm.citation(),
        rate_based: algorithm.profile() == Profile::Rate,
        observes: algorithm.observes(),
        params: algorithm.params().iter().map(param).collect(),
        rules: algorithm.rules().into_iter().map(rule).collect(),
    }
}

fn metric(metric: &Metric) -> MetricEntry {
    let Metric { name, subject, unit, meaning, .. } = *metric;
    MetricEntry { name, of: subject.name(), unit, meaning }
}

fn param(param: &Param) -> ParamEntry {
    let choices = match param.kind {
        ParamKind::Choice => param.choices(),
        _ => Vec::new(),
    };
    let Param { name, min, max, default, source, help, .. } = *param;
    ParamEntry { name, unit: param.unit(), min, max, default, choices, source, help }
}

/// The scenario files under `folder`, without the files of a paper's figures and claims.
fn collect(folder: &'static Dir<'_>, into: &mut Vec<ScenarioEntry>) {
    for item in folder.entries() {
        match item {
            DirEntry::Dir(inner) => collect(inner, into),
            DirEntry::File(file) => {
                let path = file.path().with_extension("");
                let is_toml = file.path().extension().is_some_and(|e| e == "toml");
                let Some(text) = file.contents_utf8().filter(|text| is_toml && is_scenario(text))
                else {
                    continue;
                };
                into.push(ScenarioEntry { name: path.display().to_string(), text });
            }
        }
    }
}

fn is_scenario(text: &str) -> bool {
    text.lines().any(|line| line.trim() == "[path]")
}
