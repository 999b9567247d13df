//! The time of a run, and the alarm of its threads.

use knee_model::{HostError, NS_PER_S, Ns};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant, SystemTime},
};

/// Time of a run: nanoseconds since its start, the same for all threads (`CLOCK_MONOTONIC`).
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    pub(crate) zero: Instant,
    /// The same, on the clock of the kernel's TCP.
    pub(crate) zero_ns: Ns,
}

/// Returns the time of [`Instant`], in fewer instructions: it is read several times per packet.
fn monotonic_ns() -> Ns {
    let now = nix::time::ClockId::CLOCK_MONOTONIC.now();
    now.map_or(0, |t| t.tv_sec() as Ns * NS_PER_S + t.tv_nsec() as Ns)
}

impl Clock {
    /// A clock that reads 0 after `ahead`.
    pub(crate) fn starting_in(ahead: Duration) -> Self {
        let (zero, now_ns) = (Instant::now() + ahead, monotonic_ns());
        Self { zero, zero_ns: now_ns + ahead.as_nanos() as Ns }
    }

    pub(crate) fn now_ns(self) -> Ns {
        monotonic_ns().saturating_sub(self.zero_ns)
    }

    /// Its time 0, since 1970.
    pub(crate) fn zero_since_1970(self) -> Duration {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since_1970.unwrap_or_default() + self.zero.saturating_duration_since(Instant::now())
    }

    pub(crate) fn wait_for_zero(self) {
        thread::sleep(self.zero.saturating_duration_since(Instant::now()));
    }
}

/// Tells the other threads that one has failed.
#[derive(Default)]
pub(crate) struct Alarm(AtomicBool);

impl Alarm {
    pub(crate) fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Runs a thread's work; an error or a panic ends the other threads too.
    pub(crate) fn guard<T>(
        &self,
        work: impl FnOnce() -> Result<T, HostError>,
    ) -> Result<T, HostError> {
        struct Raise<'a>(&'a Alarm);
        impl Drop for Raise<'_> {
            fn drop(&mut self) {
                self.0.raise();
            }
        }
        let raise = Raise(self);
        let result = work();
        if result.is_ok() {
            std::mem::forget(raise);
        }
        result
    }
}
