//! Limits of a run's worth: the lateness of its path, and the approximations of its host.

use knee_model::{NS_PER_US, Ns, RunRecord};
use std::collections::BTreeSet;

/// The worst lateness of the path, for runs in real time.
pub fn lateness<'a>(records: impl IntoIterator<Item = &'a RunRecord>) -> Option<String> {
    let all: Vec<_> =
        records.into_iter().filter_map(|r| Some(r.real_time.as_ref()?.lateness)).collect();
    let us = |ns: Ns| ns / NS_PER_US;
    let (p99_ns, max_ns) =
        (all.iter().map(|l| l.p99_ns).max()?, all.iter().map(|l| l.max_ns).max()?);
    Some(format!("of the worst run: p99 {} us, largest {} us", us(p99_ns), us(max_ns)))
}

/// Deviations of the host from the scenarios, each once.
pub fn approximations<'a>(records: impl IntoIterator<Item = &'a RunRecord>) -> Vec<String> {
    let all: BTreeSet<&String> = records.into_iter().flat_map(|r| &r.approximations).collect();
    all.into_iter().cloned().collect()
}
