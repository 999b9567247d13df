//! The runs of a command: made on a host, several at once, measured, and kept so that an interrupted
//! command resumes. Every command of many runs goes through this module.

use knee_model::{Host, HostError, HostErrorKind, Progress, RunOptions, RunRecord, RunSpec};
use knee_results::{ResultsError, kept::KeptRuns};
use knee_scenario::Scenario;
use std::{
    num::NonZero,
    sync::{
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

/// A host with the settings that all runs of a command share.
#[derive(Clone, Copy)]
pub struct Runner<'a> {
    /// The host.
    pub host: &'a dyn Host,
    /// Options of each run.
    pub options: &'a RunOptions,
    /// Results of earlier commands, whose runs are not made again. New results are added.
    pub kept: Option<&'a KeptRuns>,
    /// Receives the number of finished runs, with parts of runs, and the number of all runs.
    pub progress: &'a (dyn Fn(f64, usize) + Sync),
}

impl<'a> Runner<'a> {
    /// A host whose runs are not kept, without reports of progress.
    pub fn new(host: &'a dyn Host, options: &'a RunOptions) -> Self {
        Self { host, options, kept: None, progress: &|_, _| () }
    }

    /// Checks that the host can make the run.
    ///
    /// # Errors
    /// It cannot, with a remedy.
    pub fn check(&self, spec: &RunSpec) -> Result<(), HostError> {
        self.host.check(spec, self.options)
    }

    /// Makes the repetitions of `settings`: scenarios, each with a number of repetitions. `job` makes the
    /// run of a setting, by its index. Returns the results of each setting.
    ///
    /// # Errors
    /// The errors of [`Self::each`].
    pub fn repetitions<T: Send, E: Send + From<HostError>>(
        &self,
        settings: &[(&Scenario, u32)],
        job: impl Fn(usize, &RunSpec, &Turn<'_>) -> Result<T, E> + Sync,
    ) -> Result<Vec<Vec<T>>, E> {
        let (mut runs, mut works) = (Vec::new(), Vec::new());
        for (index, (scenario, repeat)) in settings.iter().enumerate() {
            runs.extend((0..*repeat).map(|repetition| (index, scenario.seed_of(repetition))));
            works.resize(runs.len(), work(&scenario.spec(scenario.seed())));
        }
        let all = self.each(&works, |n, turn| {
            let (index, seed) = runs[n];
            job(index, &settings[index].0.spec(seed), turn)
        })?;
        let mut all = all.into_iter();
        let each = settings.iter().map(|(_, n)| all.by_ref().take(*n as usize).collect());
        Ok(each.collect())
    }

    /// Makes as many runs as there are `works`, their estimated work, the longest first. `job` makes the
    /// run of an index. Results are in the order of `works`.
    ///
    /// # Errors
    /// The first error of a job, after which the other threads end their jobs and begin none; a thread that
    /// does not start.
    pub fn each<T: Send, E: Send + From<HostError>>(
        &self,
        works: &[f64],
        job: impl Fn(usize, &Turn<'_>) -> Result<T, E> + Sync,
    ) -> Result<Vec<T>, E> {
        let all_shown = AtomicU64::new(0);
        (self.progress)(0.0, works.len());
        let threads = self.options.runs_at_once.or(self.host.runs_at_once());
        in_parallel(threads, works, |index| {
            let (runner, all, shown) = (self, works.len(), AtomicU64::new(0));
            let turn = Turn { runner, all, all_shown: &all_shown, shown };
            let result = job(index, &turn);
            turn.show(STEPS);
            result
        })
    }
}

/// Resolution of the progress: steps of a run.
const STEPS: u64 = 1000;

/// The turn of a job, in which it makes one run.
pub struct Turn<'a> {
    runner: &'a Runner<'a>,
    all: usize,
    /// Steps of all runs that were reported.
    all_shown: &'a AtomicU64,
    /// Steps of this run that were reported.
    shown: AtomicU64,
}

impl Turn<'_> {
    /// The record of `spec`, which may have been kept.
    ///
    /// # Errors
    /// The error of the host; a kept record that cannot be read or written.
    pub fn record(&self, spec: &RunSpec) -> Result<RunRecord, HostError> {
        let Runner { host, options, kept, .. } = self.runner;
        match (kept, host.fingerprint(spec, options)) {
            (Some(kept), Some(host)) => kept.or_run(&host, spec, |spec| self.run(spec)),
            _ => self.run(spec),
        }
    }

    /// The result of `measure` for the record of `spec`, which may have been kept. `key` distinguishes the
    /// result from others of the same run.
    ///
    /// # Errors
    /// The error of the host or of `measure`; a kept result that cannot be read or written.
    pub fn measured<T, E>(
        &self,
        spec: &RunSpec,
        key: &str,
        measure: impl FnOnce(RunRecord) -> Result<T, E>,
    ) -> Result<T, E>
    where
        T: serde::Serialize + serde::de::DeserializeOwned,
        E: From<HostError> + From<ResultsError>,
    {
        let Runner { host, options, kept, .. } = self.runner;
        let make = || measure(self.run(spec)?);
        let Some(kept) = kept else { return make() };
        let fingerprint = host.fingerprint(spec, options).unwrap_or_default();
        kept.or_make(&[host.name(), &fingerprint, &format!("{spec:?}"), key], make)
    }

    fn run(&self, spec: &RunSpec) -> Result<RunRecord, HostError> {
        let steps =
            |ns: u64| u128::from(ns) * u128::from(STEPS) / u128::from(spec.duration_ns.max(1));
        self.runner.host.run_with_progress(spec, self.runner.options, &|told| {
            if let Progress::At(ns) = told {
                self.show(steps(ns.min(spec.duration_ns)) as u64);
            }
        })
    }

    /// Reports that this run has come so far.
    fn show(&self, steps: u64) {
        let more = steps.saturating_sub(self.shown.fetch_max(steps, Ordering::Relaxed));
        let shown = self.all_shown.fetch_add(more, Ordering::Relaxed) + more;
        (self.runner.progress)(shown as f64 / STEPS as f64, self.all);
    }
}

/// A guess at how long a run takes: packets at the bottleneck.
pub fn work(spec: &RunSpec) -> f64 {
    spec.path.hops[0].rate().highest_bps() as f64 * spec.duration_ns as f64
}

/// Does `job` for the index of each of `works`, their estimated work, on `threads` threads or one per
/// core. The largest come first, so that no thread is left with one at the end. Results are in the order of
/// `works`.
///
/// # Errors
/// The first error of a job, after which the other threads end their jobs and begin none; a thread that
/// does not start.
pub fn in_parallel<T: Send, E: Send + From<HostError>>(
    threads: Option<usize>,
    works: &[f64],
    job: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let mut order: Vec<usize> = (0..works.len()).collect();
    order.sort_by(|a, b| works[*b].total_cmp(&works[*a]));
    let threads =
        threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, NonZero::get));
    let next = AtomicUsize::new(0);
    let mut all = thread::scope(|scope| {
        let (send, results) = mpsc::channel();
        for _ in 0..threads.min(works.len()) {
            let (send, next, order, job) = (send.clone(), &next, &order, &job);
            let work = move || {
                while let Some(index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = job(*index).map(|result| (*index, result));
                    let failed = result.is_err();
                    if send.send(result).is_err() || failed {
                        break;
                    }
                }
            };
            thread::Builder::new().spawn_scoped(scope, work).map_err(|e| {
                let why = format!("cannot start {threads} threads: {e}");
                HostError::new(HostErrorKind::Unavailable, why).with_help("use fewer (jobs)")
            })?;
        }
        drop(send);
        // After an error nobody receives, and the threads end.
        results.iter().collect::<Result<Vec<(usize, T)>, E>>()
    })?;
    all.sort_unstable_by_key(|(index, _)| *index);
    Ok(all.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_whatever_the_threads_did() {
        let works: Vec<f64> = (0..100).map(|n| f64::from(n * 37 % 100)).collect();
        let squares = in_parallel(Some(7), &works, |n| Ok::<_, HostError>(n * n));
        assert_eq!(squares, Ok((0..100).map(|n| n * n).collect()));
    }

    #[test]
    fn no_job_begins_after_an_error() {
        let begun = AtomicUsize::new(0);
        let failed = |why: &str| HostError::new(HostErrorKind::Broken, why);
        let result = in_parallel(Some(1), &[1.0, 3.0, 2.0], |n| {
            begun.fetch_add(1, Ordering::Relaxed);
            if n == 2 { Err(failed("the second")) } else { Ok(n) }
        });
        assert_eq!((result, begun.into_inner()), (Err(failed("the second")), 2));
    }
}
