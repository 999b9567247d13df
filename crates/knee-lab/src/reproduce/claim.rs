//! A claim of a paper as data, and its cause: why it does not hold, as a statement and a run that
//! shows it.

use crate::figure::{Axis, AxisValue, Figure, Part, Unjudged, plain_name};
use serde::Deserialize;
use std::{borrow::Cow, collections::BTreeMap, iter, num::NonZeroU32};

/// The host that a claim's `holds` and `reason` are about.
pub(super) const SIMULATOR: &str = "sim";

/// Header of the table of a claim's cause.
pub(super) const CAUSE: &str = "[claim.cause]";

/// A claim of a paper with its expected verdicts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Identifier, `C1` and so on.
    pub id: String,
    /// Figure it is about.
    pub figure: String,
    /// The claim in one sentence.
    pub statement: String,
    /// The value in the paper, in its own unit.
    pub paper_value: String,
    /// Unit of the quantity.
    pub unit: String,
    /// Formula, evaluated per repetition.
    pub quantity: String,
    /// Condition that must hold too.
    pub guard: Option<String>,
    /// Accepted range.
    pub accepted: [f64; 2],
    /// The rule by which repetitions make a verdict.
    #[serde(default)]
    pub judge: Judge,
    /// Expected verdict in the simulator: true if the claim holds.
    pub holds: bool,
    /// The reason why it does not hold, and the attempts to explain it.
    pub reason: Option<String>,
    /// Cause of a claim that does not hold, with a run that shows it in the simulator.
    pub cause: Option<Cause>,
    /// Expected verdicts on other hosts, by their names; a host that is not given has none.
    #[serde(default)]
    pub found: BTreeMap<String, Found>,
    /// Minimum number of repetitions for a verdict on a host, by the host's name. A verdict from fewer
    /// is not compared with the expected one.
    #[serde(default)]
    pub repetitions: BTreeMap<String, NonZeroU32>,
    /// The number of runs from which the short form judges it, enough to tell; none: it is left out there.
    pub short: Option<NonZeroU32>,
    /// Settings under which it is judged, and other remarks.
    #[serde(default)]
    pub note: String,
}

/// Expected verdict on a claim on a host other than the simulator.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Found {
    /// It holds there.
    Holds,
    /// It does not, for this reason.
    Fails(String),
    /// It cannot be judged there, for this reason.
    Skip(Unjudged),
}

/// The rule by which repetitions make a verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Judge {
    /// The median lies in the accepted range.
    #[default]
    Median,
    /// At least 80 % of the repetitions do.
    #[serde(alias = "seeds")]
    Repetitions,
}

impl Claim {
    /// The reason why it, of one of `figures`, is not judged on the host called `host`, if it is not.
    pub fn skipped<'a>(&'a self, host: &str, figures: &'a [Figure]) -> Option<&'a Unjudged> {
        match self.found.get(host) {
            Some(Found::Skip(why)) => Some(why),
            _ => {
                let figure = figures.iter().find(|f| f.number == self.figure)?;
                figure.not_on.get(host)
            }
        }
    }

    /// The expected verdict on the host called `host`: true if the claim holds, and the reason if not. The
    /// simulator's says nothing about other hosts.
    pub(super) fn record(&self, host: &str) -> (Option<bool>, Option<String>) {
        if host == SIMULATOR {
            return (Some(self.holds), self.reason.clone());
        }
        match self.found.get(host) {
            Some(Found::Holds) => (Some(true), None),
            Some(Found::Fails(reason)) => (Some(false), Some(reason.clone())),
            Some(Found::Skip(_)) | None => (None, None),
        }
    }

    /// Minimum number of repetitions for a verdict on the host called `host`.
    pub(super) fn repetitions_needed(&self, host: &str) -> u32 {
        self.repetitions.get(host).map_or(1, |n| n.get())
    }

    /// Returns whether the claim belongs to `figure`, or one of its or its cause's formulas names the figure.
    pub(super) fn concerns(&self, figure: &Figure) -> bool {
        let named = format!("run(\"{}\"", figure.number);
        let of_cause = self.cause.iter().flat_map(|c| c.quantity.iter().chain(&c.guard));
        let mut formulas = iter::once(&self.quantity).chain(&self.guard).chain(of_cause);
        self.figure == figure.number || formulas.any(|formula| formula.contains(&named))
    }
}

impl Part<'_> {
    /// The runs that show the cause of `claim`, of one of `figures`: its id, and the changed figure.
    /// Causes are those of the simulator, and take repetitions.
    pub(super) fn changed<'a>(
        self,
        claim: &'a Claim,
        figures: &[Figure],
    ) -> Option<(&'a str, Figure)> {
        let cause =
            claim.cause.as_ref().filter(|_| !self.short && self.host.name() == SIMULATOR)?;
        let number = cause.figure(claim);
        let figure = figures.iter().find(|f| f.number == number)?;
        Some((claim.id.as_str(), cause.changed(figure)))
    }

    /// Number of runs of each case of `figure` in the short form, enough to judge `claims`.
    pub(super) fn runs(figure: &Figure, claims: &[&Claim]) -> u32 {
        let concerned = claims.iter().filter(|c| c.concerns(figure));
        concerned.filter_map(|c| c.short).max().map_or(1, NonZeroU32::get)
    }
}

/// The reason why a claim does not hold, with its test: the claim holds after a change, or a value
/// derived from the cause is met. The claim supplies the keys that are not given.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// The cause, in words.
    pub statement: String,
    /// Figure whose runs are meant.
    figure: Option<String>,
    /// Keys of the scenario that are changed in all runs.
    #[serde(default)]
    set: BTreeMap<String, toml::Value>,
    /// Values of axes that are run; a formula that names none uses the first. An axis that is not given
    /// is run at its first value only.
    #[serde(default)]
    axes: BTreeMap<String, OneOrMore>,
    /// Formula, evaluated per repetition. `run("7", ...)` gives runs in which nothing is changed.
    quantity: Option<String>,
    /// Condition that must hold too.
    guard: Option<String>,
    /// Unit of the quantity.
    unit: Option<String>,
    /// Accepted range.
    accepted: Option<[f64; 2]>,
    /// The rule by which repetitions make a verdict.
    judge: Option<Judge>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    More(Vec<toml::Value>),
    One(toml::Value),
}

impl OneOrMore {
    fn names(&self) -> Vec<String> {
        match self {
            Self::More(values) => values.iter().map(plain_name).collect(),
            Self::One(value) => vec![plain_name(value)],
        }
    }
}

/// An error in a cause: the key, the error, and the remedy.
pub(super) type Wrong = (&'static str, String, String);

impl Cause {
    /// Number of the figure whose runs are meant, for a cause of `claim`.
    pub(super) fn figure<'a>(&'a self, claim: &'a Claim) -> &'a str {
        self.figure.as_deref().unwrap_or(&claim.figure)
    }

    /// Its formulas, with the names of their keys.
    pub(super) fn formulas(&self) -> impl Iterator<Item = (&'static str, &String)> {
        [("quantity", &self.quantity), ("guard", &self.guard)]
            .into_iter()
            .filter_map(|(key, formula)| Some((key, formula.as_ref()?)))
    }

    /// The claim that tests the cause: `claim` with the differing keys. Its guard is the claim's only if its
    /// quantity is.
    pub(super) fn as_claim(&self, claim: &Claim) -> Claim {
        let own = claim.clone();
        let guard = self.guard.clone().or_else(|| self.quantity.is_none().then_some(own.guard)?);
        Claim {
            statement: self.statement.clone(),
            figure: self.figure(claim).to_owned(),
            quantity: self.quantity.clone().unwrap_or(own.quantity),
            guard,
            unit: self.unit.clone().unwrap_or(own.unit),
            accepted: self.accepted.unwrap_or(own.accepted),
            judge: self.judge.unwrap_or(own.judge),
            ..own
        }
    }

    /// The changed figure: the runs that show the cause, and nothing drawn.
    pub(super) fn changed(&self, figure: &Figure) -> Figure {
        let chosen = |axis: &Axis| {
            let name = |value: &AxisValue| value.name();
            let wanted = match self.axes.get(&axis.name) {
                Some(values) => values.names(),
                None => axis.values.first().map(name).into_iter().collect(),
            };
            let find = |wanted: &String| axis.values.iter().find(|v| v.name() == *wanted).cloned();
            Axis { values: wanted.iter().filter_map(find).collect(), ..axis.clone() }
        };
        Figure {
            axes: figure.axes.iter().map(chosen).collect(),
            changes: Some(self.set.clone()),
            plots: Vec::new(),
            tables: Vec::new(),
            ..figure.clone()
        }
    }

    /// Returns an error if it cannot be the cause of `claim`.
    pub(super) fn check(&self, claim: &Claim, figures: &[Figure]) -> Result<(), Wrong> {
        let wrong = |key, what: String, help: &str| Err((key, what, help.to_owned()));
        if claim.holds {
            return wrong(
                CAUSE,
                "a claim that holds needs no cause".to_owned(),
                "remove the cause, or record `holds = false`",
            );
        }
        for (key, given) in [("accepted", self.accepted.is_some()), ("unit", self.unit.is_some())] {
            if self.quantity.is_some() && !given {
                let what = format!("a quantity of its own needs `{key}` as well");
                return wrong("quantity", what, "those of the claim are of another quantity");
            }
        }
        if self.set.is_empty()
            && self.axes.is_empty()
            && self.figure.is_none()
            && self.quantity.is_none()
        {
            return wrong(
                CAUSE,
                "it changes nothing, so it shows nothing".to_owned(),
                "give `set` or `axes` (runs that differ), or `quantity` (a value that is derived)",
            );
        }
        let number = self.figure(claim);
        let Some(figure) = figures.iter().find(|f| f.number == number) else {
            let known: Vec<&str> = figures.iter().map(|f| f.number.as_str()).collect();
            let help = format!("the figures are: {}", known.join(", "));
            return Err(("figure", format!("the paper has no figure {number}"), help));
        };
        if figure.scenario.is_none() && !self.set.is_empty() {
            let what = format!("figure {number} has no runs, so nothing can be changed in them");
            return wrong("set", what, "name another `figure`");
        }
        for (name, values) in &self.axes {
            let Some(axis) = figure.axes.iter().find(|a| a.name == *name) else {
                let known: Vec<&str> = figure.axes.iter().map(|a| a.name.as_str()).collect();
                let help = format!("its axes are: {}", known.join(", "));
                return Err(("axes", format!("figure {number} has no axis `{name}`"), help));
            };
            let known: Vec<String> = axis.values.iter().map(AxisValue::name).collect();
            let names = values.names();
            if names.is_empty() {
                let what = format!("no value of the axis `{name}` is run");
                return wrong("axes", what, "name at least one, or leave out the axis");
            }
            if let Some(unknown) = names.iter().find(|v| !known.contains(v)) {
                let what = format!("the axis `{name}` of figure {number} has no value `{unknown}`");
                return Err(("axes", what, format!("its values are: {}", known.join(", "))));
            }
        }
        Ok(())
    }

    /// The changes, in words.
    pub(super) fn changes(&self) -> String {
        let of_axes = self.axes.iter().map(|(name, v)| format!("{name}: {}", v.names().join(", ")));
        let of_keys = self.set.iter().map(|(key, value)| {
            let value = match value {
                toml::Value::String(text) => Cow::from(text),
                other => Cow::from(other.to_string()),
            };
            format!("{key} = {value}")
        });
        let figure = self.figure.iter().map(|number| format!("figure {number}"));
        figure.chain(of_keys).chain(of_axes).collect::<Vec<_>>().join("; ")
    }
}
