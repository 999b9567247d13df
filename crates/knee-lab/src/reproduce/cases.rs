//! The runs of a figure: every combination of its axes' values, repeated.

use super::{
    ReproduceError,
    paper::{self, AxisValue, Figure},
};
use knee_run::{HostError, RunRecord, RunSpec};
use knee_scenario::{Scenario, Set};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    iter,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// One combination of values, with its repetitions.
#[derive(Debug)]
pub struct Case {
    /// Name of each axis' value, in the order of the axes.
    pub values: Vec<String>,
    /// The specification of the first repetition.
    pub spec: RunSpec,
    /// Effective scenario.
    pub text: String,
    /// Records by repetition, shared with cases of the same runs; of a run that failed, why.
    pub records: Vec<Result<Arc<RunRecord>, HostError>>,
    repetitions: usize,
}

/// Values by path of their keys.
pub(crate) type Settings = Vec<(String, toml::Value)>;

/// All cases of a figure.
#[derive(Debug)]
pub struct Cases {
    /// The figure.
    pub figure: Figure,
    /// Its cases, in the order of the axes' values, the last axis fastest.
    pub cases: Vec<Case>,
}

impl Cases {
    /// The case with the values that `named` gives and the first ones of the other axes.
    ///
    /// # Errors
    /// An axis or value that the figure does not have, in words.
    pub fn find(&self, named: &BTreeMap<String, String>) -> Result<&Case, String> {
        let axes = &self.figure.axes;
        if let Some(unknown) = named.keys().find(|n| !axes.iter().any(|a| a.name == **n)) {
            return Err(format!("figure {} has no axis `{unknown}`", self.figure.number));
        }
        let mut index = 0;
        for axis in axes {
            let at = match named.get(&axis.name) {
                None => 0,
                Some(value) => {
                    axis.values.iter().position(|v| v.name() == *value).ok_or_else(|| {
                        let of_cause = match self.figure.changes {
                            Some(_) => " among the `axes` of the cause",
                            None => "",
                        };
                        format!(
                            "axis `{}` of figure {} has no value `{value}`{of_cause}",
                            axis.name, self.figure.number
                        )
                    })?
                }
            };
            index = index * axis.values.len() + at;
        }
        self.cases.get(index).ok_or_else(|| format!("figure {} has no runs", self.figure.number))
    }
}

fn sets_of(axis: &paper::Axis, value: &AxisValue) -> Settings {
    match value {
        AxisValue::Named { set, .. } => set.clone().into_iter().collect(),
        AxisValue::Plain(value) => {
            axis.set.iter().map(|path| (path.clone(), value.clone())).collect()
        }
    }
}

/// Combinations of the axes' values: their names and what they set.
pub(crate) fn combinations(figure: &Figure) -> Vec<(Vec<String>, Settings)> {
    let owned = |(key, value): (&String, &toml::Value)| (key.clone(), value.clone());
    let common: Vec<_> = figure.set.iter().map(owned).collect();
    let mut all = figure.axes.iter().fold(vec![(Vec::new(), common)], |all, axis| {
        let extend = |(names, sets): &(Vec<String>, Settings), value: &AxisValue| {
            let names = names.iter().cloned().chain([value.name()]).collect();
            let sets = sets.iter().cloned().chain(sets_of(axis, value)).collect();
            (names, sets)
        };
        all.iter().flat_map(|c| axis.values.iter().map(move |v| extend(c, v))).collect()
    });
    all.iter_mut().for_each(|(_, sets)| sets.extend(figure.changes.iter().flatten().map(owned)));
    all
}

impl Case {
    /// Moves its repetitions out of `records`, those of all cases in order.
    pub(super) fn take(
        &mut self,
        records: &mut impl Iterator<Item = Result<Arc<RunRecord>, HostError>>,
    ) {
        self.records = records.take(self.repetitions).collect();
    }

    /// A case of one run.
    pub(super) fn of_one(spec: &RunSpec, record: RunRecord) -> Self {
        Self {
            values: Vec::new(),
            spec: spec.clone(),
            text: String::new(),
            records: vec![Ok(record.into())],
            repetitions: 1,
        }
    }

    /// A case of hand-made records.
    #[cfg(test)]
    pub(super) fn made_by_hand(
        values: &[&str],
        spec: RunSpec,
        records: Vec<Result<RunRecord, String>>,
    ) -> Self {
        let values = values.iter().map(|v| (*v).to_owned()).collect();
        let failed = |why| HostError::new(knee_run::HostErrorKind::TooSlow, why);
        let records: Vec<_> =
            records.into_iter().map(|r| r.map(Arc::new).map_err(failed)).collect();
        Self { values, spec, text: String::new(), repetitions: records.len(), records }
    }

    /// The records of the runs that did not fail.
    pub fn good(&self) -> impl Iterator<Item = &RunRecord> {
        self.records.iter().flatten().map(Arc::as_ref)
    }
}

/// The cases of `figure`, without records, and the runs that they need, in order.
pub(super) fn prepare(
    paper: &str,
    figure: &Figure,
    repeat: Option<u32>,
) -> Result<(Cases, Vec<RunSpec>), ReproduceError> {
    let mut cases = Vec::new();
    let mut specs = Vec::new();
    if let Some(file) = &figure.scenario {
        let file = format!("{paper}/{file}");
        let text = paper::text(&file)?;
        for (values, sets) in combinations(figure) {
            let sets: Vec<Set> = sets
                .iter()
                .map(|(path, value)| Set::parse(&format!("{path}={value}")))
                .collect::<Result<_, _>>()?;
            let scenario = Scenario::parse(&format!("scenarios/{file}"), text, &sets)?;
            let repeat = repeat.unwrap_or_else(|| scenario.repeat());
            specs.extend((0..repeat).map(|r| scenario.spec(scenario.seed_of(r))));
            cases.push(Case {
                values,
                spec: scenario.spec(scenario.seed()),
                text: scenario.text().to_owned(),
                records: Vec::new(),
                repetitions: repeat as usize,
            });
        }
    }
    Ok((Cases { figure: figure.clone(), cases }, specs))
}

/// The specifications that differ among `specs`, in order, and for each of `specs` the index of its
/// like among them.
pub(super) fn distinct(specs: Vec<RunSpec>) -> Result<(Vec<RunSpec>, Vec<usize>), ReproduceError> {
    let mut seen = HashMap::new();
    let mut distinct = Vec::new();
    let mut indices = Vec::with_capacity(specs.len());
    for spec in specs {
        let key = serde_json::to_string(&spec).map_err(|e| ReproduceError::Spec(e.to_string()))?;
        let next = distinct.len();
        let index = *seen.entry(key).or_insert(next);
        if index == next {
            distinct.push(spec);
        }
        indices.push(index);
    }
    Ok((distinct, indices))
}

/// Runs `specs` on all threads of `pool`, those that take longest first; results in the order of
/// `specs`, whatever the threads did.
pub(super) fn run_all(
    pool: &rayon::ThreadPool,
    specs: &[RunSpec],
    run: &(dyn Fn(&RunSpec) -> Result<RunRecord, HostError> + Sync),
    progress: &(dyn Fn(usize) + Sync),
) -> Vec<Result<Arc<RunRecord>, HostError>> {
    let mut order: Vec<usize> = (0..specs.len()).collect();
    // In real time a run takes its duration, in the simulator what it carries.
    order.sort_by_key(|&i| {
        Reverse((specs[i].duration_ns, specs[i].path.hops[0].rate().highest_bps()))
    });
    let (started, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let of_threads = pool.broadcast(|_| {
        let next = || order.get(started.fetch_add(1, Ordering::Relaxed)).copied();
        let one = |i| {
            let record = run(&specs[i]);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
            (i, record)
        };
        iter::from_fn(next).map(one).collect::<Vec<_>>()
    });
    let mut records: Vec<_> = of_threads.into_iter().flatten().collect();
    records.sort_unstable_by_key(|(i, _)| *i);
    records.into_iter().map(|(_, record)| record.map(Arc::new)).collect()
}
