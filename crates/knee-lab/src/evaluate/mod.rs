//! `knee evaluate`: the requirements of RFC 9743 on a congestion control, as criteria with verdicts.
//!
//! Criteria are data below `scenarios/evaluation/` (`docs/reference/criteria.md`). The RFC sets no
//! thresholds: each bound names its source, or is the result of CUBIC and NewReno in the same place.

mod criterion;
mod error;
mod judge;
mod report;
mod runs;

pub use criterion::{Better, Bound, Criterion, Measure, criteria};
pub use error::EvaluateError;
pub use judge::{Asked, CriterionVerdict, MeasuredAt, PointVerdict, Word, Worst};
pub use report::{evaluation_report, evaluation_text, scorecard_report, scorecard_text};
pub use runs::{HowToRun, Point};

use crate::{
    duel::Entrant,
    files::{self, FileError},
};
use knee_model::{RunRecord, RunSpec};
use runs::{points, run_all, scenario};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, time::Duration};

/// An algorithm with its verdict on every criterion.
#[derive(Clone, Debug, Serialize)]
pub struct Evaluation {
    /// The algorithm, with the parameters that were given.
    pub algorithm: String,
    /// Host that ran it.
    pub host: String,
    /// Baseline algorithms.
    pub against: Vec<String>,
    /// Repetitions; criteria with long runs may have fewer.
    pub repetitions: u32,
    /// The same number, under the name that the first version gave it.
    pub seeds: u32,
    /// True for the quick form.
    pub quick: bool,
    /// Verdicts, in the order of the RFC's sections.
    pub criteria: Vec<CriterionVerdict>,
}

impl Evaluation {
    /// The worst verdict.
    pub fn word(&self) -> Word {
        self.criteria.iter().map(|c| c.verdict).max().unwrap_or(Word::Informs)
    }

    /// Number of criteria with this verdict.
    pub fn count(&self, word: Word) -> usize {
        self.criteria.iter().filter(|c| c.verdict == word).count()
    }
}

/// Evaluates each of `subjects` against `baselines`, by the criteria called `only`, or by all if it is
/// empty.
///
/// # Errors
/// See [`EvaluateError`].
pub fn evaluate(
    subjects: &[Entrant],
    baselines: &[Entrant],
    only: &[String],
    how: &HowToRun<'_>,
) -> Result<Vec<Evaluation>, EvaluateError> {
    let all = criteria()?;
    for id in only {
        if !all.iter().any(|c| c.id == *id) {
            let known: Vec<&str> = all.iter().map(|c| c.id.as_str()).collect();
            return Err(EvaluateError::NoCriterion { id: id.clone(), known: known.join(", ") });
        }
    }
    let wanted: Vec<_> = all
        .into_iter()
        .filter(|c| only.is_empty() || only.contains(&c.id))
        .map(|c| {
            let points = points(&c, how.runner.host, how.quick);
            (c, points)
        })
        .collect();
    // Each algorithm runs once, whether it is evaluated, a baseline, or both.
    let mut entrants: Vec<Entrant> = Vec::new();
    let mut number = |of: &Entrant| {
        entrants.iter().position(|e| e.name == of.name).unwrap_or_else(|| {
            entrants.push(of.clone());
            entrants.len() - 1
        })
    };
    let of_subjects: Vec<usize> = subjects.iter().map(&mut number).collect();
    let of_baselines: Vec<usize> = baselines.iter().map(&mut number).collect();
    let (measured, took) = run_all(&wanted, &entrants, how)?;
    of_subjects
        .into_iter()
        .map(|subject| {
            // No algorithm is compared with itself, unless there is no other.
            let others: Vec<usize> =
                of_baselines.iter().copied().filter(|b| *b != subject).collect();
            let others = if others.is_empty() { of_baselines.clone() } else { others };
            let each = wanted.iter().zip(&measured).zip(&took);
            let verdicts = each.map(|(((criterion, points), measured), took)| {
                let of = |entrant: usize| judge::Of {
                    name: &entrants[entrant].name,
                    points: measured.iter().map(|point| &point[entrant][..]).collect(),
                };
                let beside: Vec<_> = others.iter().map(|b| of(*b)).collect();
                let (word, all) = judge::judge(criterion, points, &of(subject), &beside);
                verdict(criterion, points, &entrants[subject], how.sets, (word, all, *took))
            });
            Ok(Evaluation {
                algorithm: entrants[subject].name.clone(),
                host: how.runner.host.name().to_owned(),
                against: others.iter().map(|b| entrants[*b].name.clone()).collect(),
                repetitions: how.repeat,
                seeds: how.repeat,
                quick: how.quick,
                criteria: verdicts.collect::<Result<_, _>>()?,
            })
        })
        .collect()
}

fn verdict(
    criterion: &Criterion,
    points: &[Point],
    entrant: &Entrant,
    sets: &[String],
    (word, all, took): (Word, Vec<PointVerdict>, Duration),
) -> Result<CriterionVerdict, EvaluateError> {
    let at = judge::worst(&all);
    let worst = at.map(|at| worst(criterion, points, entrant, sets, at)).transpose()?;
    Ok(CriterionVerdict {
        id: criterion.id.clone(),
        section: criterion.section.clone(),
        title: criterion.title.clone(),
        verdict: word,
        measured: at.map(|p| p.measured.clone()),
        asked: at.map(|p| p.asked.clone()),
        worst,
        points: all,
        took,
    })
}

/// The run that shows what is `at` its worst.
fn worst(
    criterion: &Criterion,
    points: &[Point],
    entrant: &Entrant,
    sets: &[String],
    at: &PointVerdict,
) -> Result<Worst, EvaluateError> {
    let (number, repetition) = at.at;
    let (scenario, sets) = scenario(criterion, &points[number], entrant, sets)?;
    let seed = scenario.seed_of(repetition);
    let sets = sets.into_iter().chain([format!("seed={seed}"), "repeat=1".to_owned()]);
    let sets: String = sets.map(|set| format!(" --set {}", quoted(&set))).collect();
    let file = format!("scenarios/{}/{}", criterion::FOLDER, criterion.scenario);
    Ok(Worst { point: at.point.clone(), seed, command: format!("knee run {file}{sets}") })
}

/// Quotes `text` for a shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-=:/".contains(c);
    match text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// The run in which `verdict` is worst, made again.
///
/// # Errors
/// See [`EvaluateError`].
pub fn worst_run(
    verdict: &CriterionVerdict,
    entrant: &Entrant,
    how: &HowToRun<'_>,
) -> Result<Option<(RunSpec, RunRecord)>, EvaluateError> {
    let all = criteria()?;
    let (Some(criterion), Some(worst)) = (all.iter().find(|c| c.id == verdict.id), &verdict.worst)
    else {
        return Ok(None);
    };
    let points = points(criterion, how.runner.host, how.quick);
    let at =
        points.iter().find(|p| p.values.iter().cloned().collect::<BTreeMap<_, _>>() == worst.point);
    let Some(point) = at else { return Ok(None) };
    let spec = scenario(criterion, point, entrant, how.sets)?.0.spec(worst.seed);
    let record = how.runner.host.run(&spec, how.runner.options)?;
    Ok(Some((spec, record)))
}

/// Expected verdicts of the quick form, by algorithm and criterion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Components of the host and the way it was used, where that matters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    made_with: BTreeMap<String, String>,
    #[serde(flatten)]
    verdicts: BTreeMap<String, BTreeMap<String, String>>,
}

impl Record {
    /// The repository's, of the simulator.
    ///
    /// # Errors
    /// The file is wrong.
    pub fn of_repository() -> Result<Self, FileError> {
        files::read("evaluation/runs/record.toml")
    }

    /// The record of `evaluations`.
    pub fn of(evaluations: &[Evaluation], made_with: &[(&str, String)]) -> Self {
        let words = |e: &Evaluation| {
            e.criteria.iter().map(|c| (c.id.clone(), c.verdict.to_string())).collect()
        };
        Self {
            made_with: made_with.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect(),
            verdicts: evaluations.iter().map(|e| (e.algorithm.clone(), words(e))).collect(),
        }
    }

    /// Formats the record as a file that names the command which made it.
    ///
    /// # Errors
    /// It cannot be written as TOML, in words.
    pub fn to_toml(&self, command: &str) -> Result<String, String> {
        let text = toml::to_string(self).map_err(|e| e.to_string())?;
        Ok(format!("# Verdicts of `{command}`, made by that command.\n\n{text}"))
    }

    /// Differences between `found` and this record: algorithm, criterion, recorded, found.
    pub fn differences(&self, found: &Self) -> Vec<[String; 4]> {
        let mut all = Vec::new();
        let none = BTreeMap::new();
        let absent = "nothing".to_owned();
        let names: std::collections::BTreeSet<&String> =
            self.verdicts.keys().chain(found.verdicts.keys()).collect();
        for name in names {
            let [old, new] = [self, found].map(|r| r.verdicts.get(name).unwrap_or(&none));
            let ids: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for id in ids {
                let (a, b) = (old.get(id).unwrap_or(&absent), new.get(id).unwrap_or(&absent));
                if a != b {
                    all.push([name.clone(), id.clone(), a.clone(), b.clone()]);
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_from_the_record() {
        let record = |text: &str| -> Record { toml::from_str(text).expect("a record") };
        let old = record("[a]\nx = \"passes\"\ny = \"fails\"\n[b]\nx = \"passes\"\n");
        assert_eq!(old.differences(&old), Vec::<[String; 4]>::new());
        let new = record("[a]\nx = \"fails\"\ny = \"fails\"\n[c]\nx = \"passes\"\n");
        let told: Vec<String> = old.differences(&new).iter().map(|d| d.join(" ")).collect();
        assert_eq!(told, ["a x passes fails", "b x passes nothing", "c x nothing passes"]);
    }

    #[test]
    fn commands_survive_a_shell() {
        assert_eq!(quoted("path.queue=84p"), "path.queue=84p");
        assert_eq!(
            quoted("path.rate_steps=[[\"20s\", \"1mbit\"]]"),
            "'path.rate_steps=[[\"20s\", \"1mbit\"]]'"
        );
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
