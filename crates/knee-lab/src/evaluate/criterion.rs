//! A criterion as data: `scenarios/evaluation/ID.toml`.

use crate::{
    error::FileError,
    figure::{Axis, check_formula},
    files::{file_names, read},
};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Folder of the criteria, below `scenarios/`.
pub(super) const FOLDER: &str = "evaluation";

/// A requirement on a congestion control.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Criterion {
    /// Name on the command line; that of its file.
    pub id: String,
    /// Section of RFC 9743.
    pub section: String,
    /// Subject of the criterion.
    pub title: String,
    /// Reason for the criterion, and how to read the runs.
    pub why: String,
    /// Scenario of its runs, below the criteria's folder.
    pub scenario: String,
    /// Values set for all of its runs.
    #[serde(default)]
    pub set: BTreeMap<String, toml::Value>,
    /// `[[flow]]` tables, counted from 0, that run the algorithm that is evaluated.
    #[serde(default = "first_flow")]
    pub subject: Vec<usize>,
    /// Axes; all combinations are run. The `short` values of an axis belong to the quick form.
    #[serde(default, rename = "axis")]
    pub axes: Vec<Axis>,
    /// Most repetitions, for criteria with long runs.
    pub most_repetitions: Option<u32>,
    /// Measures of each run.
    #[serde(rename = "measure")]
    pub measures: Vec<Measure>,
}

fn first_flow() -> Vec<usize> {
    vec![0]
}

/// Something measured of a run, with its requirement.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// Name, without unit.
    pub name: String,
    /// Unit; empty for a ratio.
    #[serde(default)]
    pub unit: String,
    /// Formula of a run `r`.
    pub quantity: String,
    /// The better direction.
    pub better: Better,
    /// Absolute bound, a number or a formula of a run `r`: the median must not be worse.
    pub bound: Option<Bound>,
    /// Source of the bound.
    pub source: Option<String>,
    /// The median must not be worse than the worst baseline's by more than this part of it.
    pub no_worse: Option<f64>,
    /// Worse by this much is not worse, in the quantity's unit.
    #[serde(default)]
    pub slack: f64,
}

/// The better direction of a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// A lower value.
    Lower,
    /// A higher value.
    Higher,
}

/// An absolute bound.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Bound {
    /// The same for all runs.
    Number(f64),
    /// A formula of a run `r`.
    Formula(String),
}

impl Better {
    /// Returns whether `value` meets `limit`.
    pub(super) fn meets(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Lower => value <= limit,
            Self::Higher => value >= limit,
        }
    }

    /// The worse of two.
    pub(super) fn worse(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Lower => a.max(b),
            Self::Higher => a.min(b),
        }
    }

    /// Words that introduce a limit.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Lower => "at most",
            Self::Higher => "at least",
        }
    }
}

impl Measure {
    /// The limit that follows from a baseline's `value`.
    pub(super) fn limit_relative_to(&self, value: f64) -> Option<f64> {
        let allowed = self.no_worse? * value.abs() + self.slack;
        Some(match self.better {
            Better::Lower => value + allowed,
            Better::Higher => value - allowed,
        })
    }

    /// Name with unit.
    pub(super) fn label(&self) -> String {
        match self.unit.as_str() {
            "" => self.name.clone(),
            unit => format!("{} ({unit})", self.name),
        }
    }

    /// Its formulas, with the keys that hold them.
    pub(super) fn formulas(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let bound = match &self.bound {
            Some(Bound::Formula(text)) => Some(("bound", text.as_str())),
            _ => None,
        };
        [("quantity", self.quantity.as_str())].into_iter().chain(bound)
    }
}

impl Criterion {
    /// Describes an error beyond the form of the file, if there is one.
    fn fault(&self, name: &str) -> Option<String> {
        if self.id != name {
            return Some(format!(
                "`id` is \"{}\"; write \"{name}\", as the file is called",
                self.id
            ));
        }
        if self.measures.is_empty() {
            return Some("nothing is measured; add a [[measure]]".to_owned());
        }
        for m in &self.measures {
            for (key, text) in m.formulas() {
                if let Err(e) = check_formula(text) {
                    return Some(format!("{}: {key}: {e}", m.name));
                }
            }
            if m.bound.is_some() != m.source.is_some() {
                let what = "give `bound` and its `source` together, or neither";
                return Some(format!("{}: {what}", m.name));
            }
            if m.no_worse.is_some_and(|part| !(0.0..10.0).contains(&part)) {
                return Some(format!("{}: `no_worse` is a part, such as 0.1", m.name));
            }
            if m.slack != 0.0 && (m.no_worse.is_none() || !(m.slack > 0.0 && m.slack.is_finite())) {
                let what = "`slack` is a positive number that goes with `no_worse`";
                return Some(format!("{}: {what}", m.name));
            }
        }
        None
    }
}

/// All criteria, in the order of their sections, then of their names.
///
/// # Errors
/// A file that is wrong.
pub fn criteria() -> Result<Vec<Criterion>, FileError> {
    let mut all: Vec<Criterion> = Vec::new();
    for file in file_names(FOLDER) {
        let Some(name) = file.strip_suffix(".toml") else { continue };
        let path = format!("{FOLDER}/{file}");
        let criterion: Criterion = read(&path)?;
        if let Some(why) = criterion.fault(name) {
            let help = "docs/reference/criteria.md describes the file".to_owned();
            return Err(FileError { file: path, line: None, why, help });
        }
        all.push(criterion);
    }
    let key = |c: &Criterion| -> Vec<u32> {
        c.section.split('.').map(|part| part.parse().unwrap_or(u32::MAX)).collect()
    };
    all.sort_by_cached_key(|c| (key(c), c.id.clone()));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn criterion(measure: &str) -> Criterion {
        toml::from_str(&format!(
            "id = \"a\"\nsection = \"5.1.2\"\ntitle = \"\"\nwhy = \"\"\nscenario = \"s\"\n\
             [[measure]]\nname = \"delay\"\nquantity = \"1\"\nbetter = \"lower\"\n{measure}"
        ))
        .expect("a criterion")
    }

    #[test]
    fn all_criteria_can_be_read() {
        let all = criteria().unwrap_or_else(|e| panic!("{e}"));
        assert!(all.len() > 20, "{}", all.len());
        assert!(all.iter().all(|c| c.section.starts_with(['5', '6', '7'])));
    }

    #[test]
    fn faults_are_told() {
        assert_eq!(criterion("").fault("a"), None);
        for (measure, name, told) in [
            ("", "b", "as the file is called"),
            ("bound = 1.0", "a", "`source`"),
            ("source = \"ours\"", "a", "`bound`"),
            ("no_worse = -0.1", "a", "a part"),
            ("slack = 1.0", "a", "goes with `no_worse`"),
            ("bound = \"1 +\"\nsource = \"ours\"", "a", "bound: "),
        ] {
            let fault = criterion(measure).fault(name).unwrap_or_default();
            assert!(fault.contains(told), "{measure}: {fault}");
        }
    }

    #[test]
    fn limits_relative_to_a_baseline() {
        let m = &criterion("no_worse = 0.1\nslack = 2.0").measures[0];
        assert_eq!(m.limit_relative_to(10.0), Some(13.0));
        let higher = Measure { better: Better::Higher, ..m.clone() };
        assert_eq!(higher.limit_relative_to(10.0), Some(7.0));
        assert_eq!(criterion("").measures[0].limit_relative_to(10.0), None);
        assert_eq!(Better::Lower.worse(1.0, 2.0), 2.0);
        assert_eq!(Better::Higher.worse(1.0, 2.0), 1.0);
    }
}
