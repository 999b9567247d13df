//! Work that Ctrl-C ends.

use knee_model::{
    Host, HostError, HostErrorKind, NS_PER_S, Ns, RunOptions, RunRecord, RunSpec, Tell,
};
use knee_sim::{Simulator, Stepped};
use pyo3::prelude::*;
use std::{
    panic::resume_unwind,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// Interval between two checks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(100);

/// Does `work` on another thread, without Python's lock. Ctrl-C tells it by `ended` to end, and is
/// raised when it has.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    ended: &AtomicBool,
    work: impl FnOnce(&AtomicBool) -> T + Send,
) -> PyResult<T> {
    let (done, told) = (Mutex::new(false), Condvar::new());
    let locked = || done.lock().unwrap_or_else(PoisonError::into_inner);
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let result = work(ended);
            *locked() = true;
            told.notify_one();
            result
        });
        let wait = || told.wait_timeout_while(locked(), LOOK, |done| !*done).is_ok_and(|w| *w.0);
        let mut raised = None;
        // It ends without a word if it panics.
        while raised.is_none() && !py.detach(wait) && !worker.is_finished() {
            raised = py.check_signals().err();
        }
        if raised.is_some() {
            ended.store(true, Ordering::Relaxed);
        }
        match (raised, py.detach(|| worker.join())) {
            (Some(raised), _) => Err(raised),
            (None, Ok(result)) => Ok(result),
            (None, Err(panic)) => resume_unwind(panic),
        }
    })
}

/// The simulator; a run under way ends soon after `ended` comes to be true.
pub(crate) struct Interruptible<'a> {
    pub(crate) ended: &'a AtomicBool,
}

/// Time that a run simulates between two looks at `ended`.
const STEP_NS: Ns = NS_PER_S / 10;

impl Interruptible<'_> {
    pub(crate) fn go_on(&self) -> Result<(), HostError> {
        match self.ended.load(Ordering::Relaxed) {
            true => Err(HostError::new(HostErrorKind::Unavailable, "ended by Ctrl-C")),
            false => Ok(()),
        }
    }
}

impl Host for Interruptible<'_> {
    fn name(&self) -> &'static str {
        Simulator.name()
    }

    fn about(&self) -> &'static str {
        Simulator.about()
    }

    fn doing(&self) -> &'static str {
        Simulator.doing()
    }

    fn check(&self, spec: &RunSpec, options: &RunOptions) -> Result<(), HostError> {
        Simulator.check(spec, options)
    }

    fn run_with_progress(
        &self,
        spec: &RunSpec,
        options: &RunOptions,
        _: Tell<'_>,
    ) -> Result<RunRecord, HostError> {
        self.check(spec, options)?;
        let mut run = Stepped::new(Arc::new(spec.clone()))?;
        let mut until_ns = 0;
        while until_ns < spec.duration_ns {
            self.go_on()?;
            until_ns += STEP_NS;
            run.advance(until_ns)?;
        }
        Ok(run.finish())
    }
}
