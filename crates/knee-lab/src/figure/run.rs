//! Many runs on all threads.

use knee_model::RunSpec;
use std::{
    iter,
    sync::atomic::{AtomicUsize, Ordering},
};
use thiserror::Error;

/// The threads could not be had.
#[derive(Debug, Error, miette::Diagnostic)]
#[error("cannot start {jobs} threads: {why}")]
#[diagnostic(help("use fewer with --jobs"))]
pub struct ThreadsError {
    /// Requested number of threads.
    pub jobs: usize,
    /// Reason given by the system.
    pub why: String,
}

/// A guess at how long a run takes: packets at the bottleneck. In real time it takes its duration.
pub(crate) fn work(spec: &RunSpec) -> f64 {
    spec.path.hops[0].rate().highest_bps() as f64 * spec.duration_ns as f64
}

/// Does `job` for the index of each of `works`, on `threads` threads (0: one per core), the largest
/// first, so that no thread is left with one at the end. `progress` is told how many are done. Results
/// are in the order of `works`, whatever the threads did.
pub(crate) fn longest_first<T: Send>(
    threads: usize,
    works: &[f64],
    job: &(dyn Fn(usize) -> T + Sync),
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<T>, ThreadsError> {
    let mut order: Vec<usize> = (0..works.len()).collect();
    order.sort_by(|a, b| works[*b].total_cmp(&works[*a]));
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|e| ThreadsError { jobs: threads, why: e.to_string() })?;
    let (started, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let of_threads = pool.broadcast(|_| {
        let next = || order.get(started.fetch_add(1, Ordering::Relaxed)).copied();
        let one = |i| {
            let result = job(i);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
            (i, result)
        };
        iter::from_fn(next).map(one).collect::<Vec<_>>()
    });
    let mut results: Vec<(usize, T)> = of_threads.into_iter().flatten().collect();
    results.sort_unstable_by_key(|(i, _)| *i);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}
