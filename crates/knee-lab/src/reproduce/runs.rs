//! The runs of a paper's figures, each made once.

use super::Claim;
use crate::{
    error::LabError,
    figure::{Case, Cases, Figure},
    files,
    pipeline::{Runner, work},
};
use knee_model::{HostError, RunRecord, RunSpec};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, atomic::AtomicBool},
};

/// A host, and how a paper is run on it. Runs and verdicts are those that the paper's files give for
/// its name.
#[derive(Clone, Copy)]
pub struct RunsOn<'a> {
    /// The host, and the runs that were kept.
    pub runner: Runner<'a>,
    /// Number of repetitions. If not given: the scenarios' own, or in the short form what its claims ask for.
    pub repeat: Option<u32>,
}

/// Cases by the numbers of their figures and the values of their axes.
type Named = BTreeSet<(String, Vec<String>)>;

/// The cases that formulas of claims use, by claim.
#[derive(Clone, Debug, Default)]
pub(super) struct Uses(BTreeMap<String, Named>);

impl Uses {
    /// The cases of `claims`.
    pub(super) fn of(&self, claims: &[&Claim]) -> Named {
        claims.iter().filter_map(|c| self.0.get(&c.id)).flatten().cloned().collect()
    }

    /// Notes for `claim` the cases of `figures` used since the last call; returns whether all were run.
    pub(super) fn note(&mut self, claim: &Claim, figures: &[Cases]) -> bool {
        let cases =
            figures.iter().flat_map(|f| f.cases.iter().map(|case| (&f.figure.number, case)));
        let mut all_run = true;
        for (number, case) in cases.filter(|(_, case)| case.take_used()) {
            all_run &= case.repetitions > 0;
            let named = self.0.entry(claim.id.clone()).or_default();
            named.insert((number.clone(), case.values.clone()));
        }
        all_run
    }
}

/// The cases of `figure`, without records, and the runs that they need, in order. Only those among
/// `needed` are run, if it is given. `also` is set in all of them, as after `--set`.
pub(super) fn prepare(
    paper: &str,
    figure: &Figure,
    repeat: Option<u32>,
    needed: Option<&Named>,
    also: &[String],
) -> Result<(Cases, Vec<RunSpec>), LabError> {
    let mut cases = Vec::new();
    let mut specs = Vec::new();
    if let Some(file) = &figure.scenario {
        for (values, mut sets) in figure.combinations() {
            sets.extend_from_slice(also);
            let scenario = files::scenario(&format!("{paper}/{file}"), &sets)?;
            let is_needed = |n: &Named| n.contains(&(figure.number.clone(), values.clone()));
            let repeat = match needed.is_none_or(is_needed) {
                true => repeat.unwrap_or_else(|| scenario.repeat()),
                false => 0,
            };
            specs.extend((0..repeat).map(|r| scenario.spec(scenario.seed_of(r))));
            cases.push(Case {
                values,
                spec: scenario.spec(scenario.seed()),
                text: scenario.text().to_owned(),
                records: Vec::new(),
                repetitions: repeat as usize,
                used: AtomicBool::default(),
            });
        }
    }
    Ok((Cases { figure: figure.clone(), cases }, specs))
}

/// Runs that were made, by their specifications as text.
pub(super) type Made = HashMap<String, Result<Arc<RunRecord>, HostError>>;

/// Runs `specs`, those of the cases in `prepared`, unless they are among `made` already, and gives the
/// cases their records. A run that several cases need is made once.
pub(super) fn run_cases(
    runner: &Runner<'_>,
    mut prepared: Vec<Cases>,
    specs: &[RunSpec],
    made: &mut Made,
) -> Result<Arc<Vec<Cases>>, LabError> {
    let keys: Vec<String> = specs.iter().map(|spec| format!("{spec:?}")).collect();
    let mut seen = BTreeSet::new();
    let missing: Vec<(&String, &RunSpec)> =
        keys.iter().zip(specs).filter(|(k, _)| !made.contains_key(*k) && seen.insert(*k)).collect();
    let works: Vec<f64> = missing.iter().map(|(_, spec)| work(spec)).collect();
    let records = runner
        .each(&works, |n, turn| Ok::<_, HostError>(turn.record(missing[n].1).map(Arc::new)))?;
    made.extend(missing.into_iter().map(|(key, _)| key.clone()).zip(records));
    let mut records = keys.iter().filter_map(|key| made.get(key));
    if let Some(Err(error)) = records.clone().next()
        && records.all(Result::is_err)
    {
        let host = runner.host.name();
        let what = format!("every run on the host {host} failed; the first: {error}");
        let help = error.help.as_deref().unwrap_or("run one of its scenarios by itself");
        return Err(LabError::new(what, help.to_owned()));
    }
    let mut records = keys.iter().filter_map(|key| made.get(key).cloned());
    prepared.iter_mut().flat_map(|f| &mut f.cases).for_each(|case| case.take(&mut records));
    Ok(Arc::new(prepared))
}
