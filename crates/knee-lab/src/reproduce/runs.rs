//! The runs of a paper's figures, each made once.

use super::{Claim, ReproduceError};
use crate::{
    figure::{Case, Cases, Figure, longest_first, work},
    files,
};
use knee_model::{Host, HostError, RunOptions, RunRecord, RunSpec};
use knee_results::kept::KeptRuns;
use knee_scenario::{Scenario, Set};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, atomic::AtomicBool},
};

/// A host, and how a paper is run on it. Runs and verdicts are those that the paper's files give for
/// its name.
#[derive(Clone, Copy)]
pub struct RunsOn<'a> {
    /// The host.
    pub host: &'a dyn Host,
    /// Options of each run.
    pub options: &'a RunOptions,
    /// Number of repetitions. If not given: the scenarios' own, or in the short form what its claims ask for.
    pub repeat: Option<u32>,
    /// Runs that were kept, which are not made again; new ones are added.
    pub kept: Option<&'a KeptRuns>,
}

impl RunsOn<'_> {
    pub(super) fn run(&self, spec: &RunSpec) -> Result<RunRecord, HostError> {
        let run = |spec: &RunSpec| self.host.run(spec, self.options);
        match (self.kept, self.host.fingerprint(spec, self.options)) {
            (Some(kept), Some(fingerprint)) => kept.or_run(&fingerprint, spec, run),
            _ => run(spec),
        }
    }
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
    /// run.
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
/// `needed` are run, if it is given.
pub(super) fn prepare(
    paper: &str,
    figure: &Figure,
    repeat: Option<u32>,
    needed: Option<&Named>,
) -> Result<(Cases, Vec<RunSpec>), ReproduceError> {
    let mut cases = Vec::new();
    let mut specs = Vec::new();
    if let Some(file) = &figure.scenario {
        let file = format!("{paper}/{file}");
        let text = files::text(&file)?;
        for (values, sets) in figure.combinations() {
            let sets: Vec<Set> = sets
                .iter()
                .map(|(path, value)| Set::parse(&format!("{path}={value}")))
                .collect::<Result<_, _>>()?;
            let scenario = Scenario::parse(&format!("scenarios/{file}"), text, &sets)?;
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

/// Runs that were made, by their specifications as JSON.
pub(super) type Made = HashMap<String, Result<Arc<RunRecord>, HostError>>;

/// Runs `specs`, those of the cases in `prepared`, unless they are among `made` already, and gives the
/// cases their records. A run that several cases need is made once.
pub(super) fn run_cases(
    on: &RunsOn<'_>,
    mut prepared: Vec<Cases>,
    specs: &[RunSpec],
    made: &mut Made,
    progress: &(dyn Fn(&str, usize, usize) + Sync),
) -> Result<Arc<Vec<Cases>>, ReproduceError> {
    let keys = specs.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>();
    let keys = keys.map_err(|e| ReproduceError::Spec(e.to_string()))?;
    let mut seen = BTreeSet::new();
    let missing: Vec<(&String, &RunSpec)> =
        keys.iter().zip(specs).filter(|(k, _)| !made.contains_key(*k) && seen.insert(*k)).collect();
    let works: Vec<f64> = missing.iter().map(|(_, spec)| work(spec)).collect();
    let jobs = on.options.runs_at_once.or(on.host.runs_at_once()).unwrap_or(0);
    let name = on.host.name();
    let run = |i: usize| on.run(missing[i].1).map(Arc::new);
    let records = longest_first(jobs, &works, &run, &|done| progress(name, done, missing.len()))?;
    made.extend(missing.into_iter().map(|(key, _)| key.clone()).zip(records));
    let mut records = keys.iter().filter_map(|key| made.get(key));
    if let Some(Err(error)) = records.clone().next()
        && records.all(Result::is_err)
    {
        return Err(ReproduceError::AllFailed { host: name.to_owned(), error: error.clone() });
    }
    let mut records = keys.iter().filter_map(|key| made.get(key).cloned());
    prepared.iter_mut().flat_map(|f| &mut f.cases).for_each(|case| case.take(&mut records));
    Ok(Arc::new(prepared))
}
