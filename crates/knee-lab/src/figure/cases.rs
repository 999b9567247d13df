//! The cases of a figure: every combination of its axes' values, with the records of its runs.

use super::description::Figure;
use knee_model::{HostError, RunRecord, RunSpec};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
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
    /// 0: it is not run.
    pub(crate) repetitions: usize,
    /// See [`Self::take_used`].
    pub(crate) used: AtomicBool,
}

/// All cases of a figure.
#[derive(Debug)]
pub struct Cases {
    /// The figure.
    pub figure: Figure,
    /// Its cases, in the order of the axes' values, the last axis fastest.
    pub cases: Vec<Case>,
}

impl Cases {
    /// The place of the case with the values that `named` gives and the first ones of the other axes.
    ///
    /// # Errors
    /// An axis or value that the figure does not have, in words.
    pub fn find(&self, named: &BTreeMap<String, String>) -> Result<usize, String> {
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
        match index < self.cases.len() {
            true => Ok(index),
            false => Err(format!("figure {} has no runs", self.figure.number)),
        }
    }
}

impl Case {
    /// Moves its repetitions out of `records`, those of all cases in order.
    pub(crate) fn take(
        &mut self,
        records: &mut impl Iterator<Item = Result<Arc<RunRecord>, HostError>>,
    ) {
        self.records = records.take(self.repetitions).collect();
    }

    /// A case of one run.
    pub(crate) fn of_one(spec: &RunSpec, record: RunRecord) -> Self {
        Self {
            values: Vec::new(),
            spec: spec.clone(),
            text: String::new(),
            records: vec![Ok(record.into())],
            repetitions: 1,
            used: AtomicBool::default(),
        }
    }

    /// A case of hand-made records.
    #[cfg(test)]
    pub(crate) fn made_by_hand(
        values: &[&str],
        spec: RunSpec,
        records: Vec<Result<RunRecord, String>>,
    ) -> Self {
        let values = values.iter().map(|v| (*v).to_owned()).collect();
        let failed = |why| HostError::new(knee_model::HostErrorKind::TooSlow, why);
        let records: Vec<_> =
            records.into_iter().map(|r| r.map(Arc::new).map_err(failed)).collect();
        let used = AtomicBool::default();
        Self { values, spec, text: String::new(), repetitions: records.len(), records, used }
    }

    /// Returns whether a formula has used it since the last call.
    pub(crate) fn take_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    /// The records of the runs that did not fail.
    pub fn good(&self) -> impl Iterator<Item = &RunRecord> {
        self.records.iter().flatten().map(Arc::as_ref)
    }
}
