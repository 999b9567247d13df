//! The runs of an evaluation: every criterion at every point of its axes, for every algorithm that
//! takes part, repeated. The measures are stored, not the records.

use super::criterion::{Bound, Criterion, FOLDER};
use crate::{
    duel::Entrant,
    error::LabError,
    figure::{Part, combinations, measure},
    files,
    pipeline::Runner,
};
use knee_model::{Host, HostError, RunRecord, RunSpec};
use knee_scenario::Scenario;
use std::time::{Duration, Instant};

/// A combination of the values of a criterion's axes.
#[derive(Clone, Debug)]
pub struct Point {
    /// Name of each axis and of its value.
    pub values: Vec<(String, String)>,
    /// Values set in the scenario, as after `--set`.
    sets: Vec<String>,
}

impl Point {
    /// A point that sets nothing.
    #[cfg(test)]
    pub(super) fn at(values: &[(&str, &str)]) -> Self {
        let values = values.iter().map(|(a, v)| ((*a).to_owned(), (*v).to_owned())).collect();
        Self { values, sets: Vec::new() }
    }
}

/// The points of `criterion`; for `quick`, only those of the quick form.
pub(super) fn points(criterion: &Criterion, host: &dyn Host, quick: bool) -> Vec<Point> {
    let axes = Part { host, short: quick, all_values: false }.of_axes(&criterion.axes);
    combinations(&criterion.set, &axes)
        .into_iter()
        .map(|(names, sets)| Point {
            values: axes.iter().map(|a| a.name.clone()).zip(names).collect(),
            sets,
        })
        .collect()
}

/// The scenario of `criterion` at `point`, run by `entrant` with `also` set, and its values for `--set`.
pub(super) fn scenario(
    criterion: &Criterion,
    point: &Point,
    entrant: &Entrant,
    also: &[String],
) -> Result<(Scenario, Vec<String>), LabError> {
    let of_subject = criterion.subject.iter().flat_map(|flow| entrant.sets(*flow));
    let sets = point.sets.iter().cloned().chain(of_subject).chain(also.iter().cloned());
    let sets: Vec<String> = sets.collect();
    let file = format!("{FOLDER}/{}", criterion.scenario);
    Ok((files::scenario(&file, &sets)?, sets))
}

/// Measures by criterion, point, entrant, repetition; the reason for a run that failed.
pub(super) type AllMeasured = Vec<Vec<Vec<Vec<Result<Measured, String>>>>>;

/// Measures of one run: each measure's quantity and bound.
pub(super) type Measured = Vec<(f64, Option<f64>)>;

/// Settings of an evaluation's runs.
pub struct HowToRun<'a> {
    /// The host, and the measures that were kept.
    pub runner: Runner<'a>,
    /// Repetitions.
    pub repeat: u32,
    /// The quick form.
    pub quick: bool,
    /// Further values set in all runs, as after `--set`.
    pub sets: &'a [String],
}

/// Repetitions of `criterion`.
pub(super) fn repetitions(criterion: &Criterion, how: &HowToRun<'_>) -> u32 {
    criterion.most_repetitions.map_or(how.repeat, |most| how.repeat.min(most))
}

/// Checks that the host can make the runs of `criterion` at `points` for all `entrants`. Returns its
/// reason if it cannot.
pub(super) fn refusal(
    criterion: &Criterion,
    points: &[Point],
    entrants: &[Entrant],
    how: &HowToRun<'_>,
) -> Result<Option<HostError>, LabError> {
    for (at, of) in points.iter().flat_map(|at| entrants.iter().map(move |of| (at, of))) {
        let (scenario, _) = scenario(criterion, at, of, how.sets)?;
        if let Err(error) = how.runner.check(&scenario.spec(scenario.seed())) {
            return Ok(Some(error));
        }
    }
    Ok(None)
}

/// Runs all `criteria` for all `entrants`. Tells of each criterion too how long one core takes for it.
pub(super) fn run_all(
    criteria: &[(Criterion, Vec<Point>)],
    entrants: &[Entrant],
    how: &HowToRun<'_>,
) -> Result<(AllMeasured, Vec<Duration>), LabError> {
    let mut scenarios = Vec::new();
    for (asked, points) in criteria {
        for (at, of) in points.iter().flat_map(|at| entrants.iter().map(move |of| (at, of))) {
            scenarios.push((asked, scenario(asked, at, of, how.sets)?.0));
        }
    }
    let settings: Vec<_> =
        scenarios.iter().map(|(asked, scenario)| (scenario, repetitions(asked, how))).collect();
    let all = how.runner.repetitions(&settings, |n, spec, turn| {
        let (start, criterion) = (Instant::now(), scenarios[n].0);
        let key = format!("{:?}", criterion.measures);
        let measured = turn.measured(spec, &key, |record| measured(criterion, spec, record));
        match measured {
            Ok(measured) => Ok((Ok(measured), start.elapsed())),
            Err(LabError::Run(why)) => Ok((Err(why.to_string()), start.elapsed())),
            Err(other) => Err(other),
        }
    })?;
    let mut took = vec![Duration::ZERO; criteria.len()];
    let mut all = all.into_iter();
    let by_criterion = criteria.iter().zip(&mut took).map(|((_, points), took)| {
        let mut repetitions = || {
            let (measured, times): (_, Vec<Duration>) = all.next().into_iter().flatten().unzip();
            *took += times.iter().sum();
            measured
        };
        points.iter().map(|_| entrants.iter().map(|_| repetitions()).collect()).collect()
    });
    Ok((by_criterion.collect(), took))
}

/// The values that `criterion` measures of `record`.
fn measured(
    criterion: &Criterion,
    spec: &RunSpec,
    record: RunRecord,
) -> Result<Measured, LabError> {
    let formulas: Vec<&str> =
        criterion.measures.iter().flat_map(|m| m.formulas().map(|(_, text)| text)).collect();
    let values = measure(spec, record, &formulas);
    let values = values.map_err(|why| LabError::Other {
        what: format!("scenarios/evaluation/{}.toml: seed {}: {why}", criterion.id, spec.seed),
        help: None,
    })?;
    let mut values = values.into_iter();
    let measured = criterion.measures.iter().map(|m| {
        let quantity = values.next().unwrap_or(f64::NAN);
        let bound = m.bound.as_ref().map(|bound| match bound {
            Bound::Number(x) => *x,
            Bound::Formula(_) => values.next().unwrap_or(f64::NAN),
        });
        (quantity, bound)
    });
    Ok(measured.collect())
}
