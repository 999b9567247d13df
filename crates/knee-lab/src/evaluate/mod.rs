//! `knee evaluate`: the requirements of RFC 9743 on a congestion control, as criteria with verdicts.
//!
//! Criteria are data below `scenarios/evaluation/` (`docs/reference/criteria.md`). The RFC sets no
//! thresholds: each bound names its source, or is the result of CUBIC and NewReno in the same place.

mod criterion;
mod judge;
mod report;
mod runs;

pub use criterion::{Better, Bound, Criterion, Measure, criteria};
pub use judge::{Asked, CriterionVerdict, MeasuredAt, PointVerdict, Word, Worst};
pub use report::{evaluation_report, evaluation_text, scorecard_report, scorecard_text};
pub use runs::{HowToRun, Point};

use crate::{
    duel::Entrant,
    error::{FileError, LabError},
    files,
    pipeline::Runner,
};
use knee_model::{HostErrorKind, RunRecord, RunSpec};
use runs::{points, refusal, run_all, scenario};
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
    /// Values set in all runs, as after `--set`; left out without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// Verdicts, in the order of the RFC's sections.
    pub criteria: Vec<CriterionVerdict>,
    /// Criteria without a verdict, because the host cannot make their runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// A criterion whose runs the host cannot make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The criterion.
    pub id: String,
    /// The host's reason.
    pub why: String,
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

/// Evaluates each of `subjects` against `baselines`, by the criteria called `only`. If it is empty, by all
/// whose runs the host can make; the others are [`Evaluation::left_out`].
///
/// # Errors
/// See [`LabError`].
pub fn evaluate(
    subjects: &[Entrant],
    baselines: &[Entrant],
    only: &[String],
    how: &HowToRun<'_>,
) -> Result<Vec<Evaluation>, LabError> {
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
    let (wanted, left_out) = wanted(only, &entrants, how)?;
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
                verdict(criterion, points, &entrants[subject], how, (word, all, *took))
            });
            Ok(Evaluation {
                algorithm: entrants[subject].name.clone(),
                host: how.runner.host.name().to_owned(),
                against: others.iter().map(|b| entrants[*b].name.clone()).collect(),
                repetitions: how.repeat,
                seeds: how.repeat,
                quick: how.quick,
                set: how.sets.to_vec(),
                criteria: verdicts.collect::<Result<_, _>>()?,
                left_out: left_out.clone(),
            })
        })
        .collect()
}

/// A criterion with its points.
type WithPoints = (Criterion, Vec<Point>);

/// The criteria called `only` with their points; if it is empty, all whose runs for `entrants` the host can
/// make, and the others.
fn wanted(
    only: &[String],
    entrants: &[Entrant],
    how: &HowToRun<'_>,
) -> Result<(Vec<WithPoints>, Vec<LeftOut>), LabError> {
    let all = criteria()?;
    if let Some(id) = only.iter().find(|id| !all.iter().any(|c| c.id == **id)) {
        let known: Vec<&str> = all.iter().map(|c| c.id.as_str()).collect();
        let help = format!("the criteria are: {}", known.join(", "));
        return Err(LabError::new(format!("no such criterion: `{id}`"), help));
    }
    let (mut wanted, mut left_out, mut refused) = (Vec::new(), Vec::new(), None);
    for criterion in all.into_iter().filter(|c| only.is_empty() || only.contains(&c.id)) {
        let points = points(&criterion, how.runner.host, how.quick);
        match refusal(&criterion, &points, entrants, how)? {
            None => wanted.push((criterion, points)),
            Some(error) => {
                // Without rights or a kernel, no criterion has a better chance.
                let is_of_all = error.kind != HostErrorKind::Unsupported;
                let (why, mut help) = (error.why.clone(), String::new());
                if let Some(of_host) = &error.help {
                    help = format!("{of_host}; or ");
                }
                help += "name the criteria that it can run with --only";
                let error = LabError::new(format!("{}: {error}", criterion.id), help);
                if is_of_all || !only.is_empty() {
                    return Err(error);
                }
                left_out.push(LeftOut { id: criterion.id, why });
                refused.get_or_insert(error);
            }
        }
    }
    match refused {
        Some(error) if wanted.is_empty() => Err(error),
        _ => Ok((wanted, left_out)),
    }
}

fn verdict(
    criterion: &Criterion,
    points: &[Point],
    entrant: &Entrant,
    how: &HowToRun<'_>,
    (word, all, took): (Word, Vec<PointVerdict>, Duration),
) -> Result<CriterionVerdict, LabError> {
    let at = judge::worst(&all);
    let worst = at.map(|at| worst(criterion, points, entrant, how, at)).transpose()?;
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
    how: &HowToRun<'_>,
    at: &PointVerdict,
) -> Result<Worst, LabError> {
    let (number, repetition) = at.at;
    let (scenario, sets) = scenario(criterion, &points[number], entrant, how.sets)?;
    let seed = scenario.seed_of(repetition);
    let sets = sets.into_iter().chain([format!("seed={seed}"), "repeat=1".to_owned()]);
    let sets: String = sets.map(|set| format!(" --set {}", quoted(&set))).collect();
    let file = format!("scenarios/{}/{}", criterion::FOLDER, criterion.scenario);
    let command = format!("knee run {file}{sets}{}", on_host(&how.runner));
    Ok(Worst { point: at.point.clone(), seed, command })
}

/// The options of `knee run` for the host, if it is not the default.
fn on_host(runner: &Runner<'_>) -> String {
    let host = match runner.host.name() {
        "sim" => String::new(),
        name => format!(" --host {name}"),
    };
    let kernel = runner.options.kernel.iter().map(|kernel| format!(" --kernel {}", quoted(kernel)));
    format!("{host}{}", kernel.collect::<String>())
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
/// See [`LabError`].
pub fn worst_run(
    verdict: &CriterionVerdict,
    entrant: &Entrant,
    how: &HowToRun<'_>,
) -> Result<Option<(RunSpec, RunRecord)>, LabError> {
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
    use knee_model::{Host, HostError, RunOptions, Tell};

    /// A host that refuses all runs, or those with several flows; it makes none.
    struct Refusing {
        all: Option<HostErrorKind>,
    }

    impl Host for Refusing {
        fn name(&self) -> &'static str {
            "refusing"
        }

        fn about(&self) -> &'static str {
            ""
        }

        fn doing(&self) -> &'static str {
            ""
        }

        fn check(&self, spec: &RunSpec, _: &RunOptions) -> Result<(), HostError> {
            match self.all {
                Some(kind) => Err(HostError::new(kind, "of no use")),
                None if spec.flows.len() > 1 => {
                    Err(HostError::new(HostErrorKind::Unsupported, "several flows"))
                }
                None => Ok(()),
            }
        }

        fn run_with_progress(
            &self,
            _: &RunSpec,
            _: &RunOptions,
            _: Tell<'_>,
        ) -> Result<RunRecord, HostError> {
            Err(HostError::new(HostErrorKind::Broken, "no run"))
        }
    }

    /// The criteria among `only` that the host judges and leaves out, or its error.
    fn split(host: &Refusing, only: &[&str]) -> Result<(Vec<String>, Vec<LeftOut>), String> {
        let only: Vec<String> = only.iter().map(|id| (*id).to_owned()).collect();
        let entrants = [Entrant::parse("newreno").expect("an algorithm")];
        let options = RunOptions::default();
        let runner = Runner::new(host, &options);
        let how = HowToRun { runner, repeat: 1, quick: true, sets: &[] };
        let (wanted, left_out) = wanted(&only, &entrants, &how).map_err(|e| e.to_string())?;
        Ok((wanted.into_iter().map(|(c, _)| c.id).collect(), left_out))
    }

    #[test]
    fn criteria_that_the_host_refuses_are_left_out() {
        let (judged, left_out) = split(&Refusing { all: None }, &[]).expect("some criteria");
        assert!(judged.contains(&"bufferbloat".to_owned()), "{judged:?}");
        let fairness = LeftOut { id: "self-fairness".to_owned(), why: "several flows".to_owned() };
        assert!(left_out.contains(&fairness), "{left_out:?}");
        assert_eq!(judged.len() + left_out.len(), criteria().expect("criteria").len());
    }

    #[test]
    fn a_named_criterion_that_the_host_refuses_is_an_error() {
        let host = Refusing { all: None };
        let error = split(&host, &["bufferbloat", "self-fairness"]).expect_err("refused");
        assert_eq!(error, "self-fairness: several flows");
    }

    #[test]
    fn a_host_that_refuses_every_criterion_is_an_error() {
        for kind in [HostErrorKind::Unsupported, HostErrorKind::Unavailable] {
            let error = split(&Refusing { all: Some(kind) }, &[]).expect_err("refused");
            assert!(error.ends_with(": of no use"), "{error}");
        }
    }

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
    fn commands_name_the_host() {
        let kernel = RunOptions { kernel: Some("debian:6.12".to_owned()), ..RunOptions::default() };
        let host = Refusing { all: None };
        assert_eq!(on_host(&Runner::new(&host, &kernel)), " --host refusing --kernel debian:6.12");
        let simulated = RunOptions::default();
        assert_eq!(on_host(&Runner::new(&knee_sim::Simulator, &simulated)), "");
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
