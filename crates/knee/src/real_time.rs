//! Runs on this machine's kernel.

use knee_run::{FlowKind, NS_PER_S, NS_PER_US, RunRecord, RunSpec};
use knee_testbed::{Options, TestbedError, run_with};
use nix::sys::utsname::uname;
use std::{
    fs,
    path::Path,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

/// Runs to begin at once; fewer carry packets at a time if these are many.
pub(crate) const AT_ONCE: usize = 12;
/// What the paths of all runs at a time carry together at most, bit/s: two cores bore six
/// runs of 10 Mbit/s in one try; with twelve, in one try, every run was late.
const TOGETHER_BPS: u64 = 60_000_000;

/// What the runs of this process carry now, bit/s.
static CARRIED_BPS: Mutex<u64> = Mutex::new(0);
static LESS_CARRIED: Condvar = Condvar::new();

fn carried() -> MutexGuard<'static, u64> {
    CARRIED_BPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A run's part of what is carried together.
pub(crate) struct Carried {
    rate_bps: u64,
}

impl Carried {
    /// Waits until there is room for `spec`. One run always has room.
    pub(crate) fn wait(spec: &RunSpec) -> Self {
        let highest_bps =
            spec.path.hops.iter().map(|hop| hop.rate().highest_bps()).fold(0, u64::max);
        let rate_bps = highest_bps.min(TOGETHER_BPS);
        let full = |now: &mut u64| *now + rate_bps > TOGETHER_BPS;
        let room = LESS_CARRIED.wait_while(carried(), full);
        *room.unwrap_or_else(PoisonError::into_inner) += rate_bps;
        Self { rate_bps }
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        *carried() -= self.rate_bps;
        LESS_CARRIED.notify_all();
    }
}

/// What a record of `spec` depends on beside it: this kernel, and the compiled algorithms.
pub(crate) fn identity(spec: &RunSpec) -> String {
    let mut text = "kernel".to_owned();
    if let Ok(system) = uname() {
        text += &format!(" {:?} {:?}", system.release(), system.version());
    }
    for flow in &spec.flows {
        if let FlowKind::Tcp(tcp) = &flow.kind
            && let Some(params) = tcp.cc.params()
        {
            text += &format!(" {}", knee_kernel::fingerprint(params.algorithm()));
        }
    }
    text
}

/// Runs that turn out to be too late to be trusted before it is given up: so many at least and at
/// most, and between these what takes a minute. A stall of some milliseconds, as machines have them
/// that are shared, spoils a run of seconds as a whole.
const ATTEMPTS: [u64; 2] = [2, 5];

fn attempts(spec: &RunSpec) -> u64 {
    let [least, most] = ATTEMPTS;
    (60 * NS_PER_S / spec.duration_ns.max(1)).clamp(least, most)
}

/// Runs `spec`, again if the emulated path was late; its packets go to the new file `pcap`.
pub(crate) fn run(spec: &RunSpec, pcap: Option<&Path>) -> Result<RunRecord, String> {
    let options = Options { pcap: pcap.map(Path::to_owned), ..Options::default() };
    let mut late = String::new();
    let attempts = attempts(spec);
    for _ in 0..attempts {
        let record = match run_with(spec, &options) {
            Ok(record) => record,
            Err(error @ TestbedError::Overrun { .. }) => {
                late = error.to_string();
                continue;
            }
            Err(error) => return Err(error.to_string()),
        };
        let Some(real_time) = &record.real_time else { return Ok(record) };
        let lateness = real_time.lateness;
        if lateness.acceptable(spec.path.rtt_range_ns().0) {
            return Ok(record);
        }
        if let Some(file) = pcap {
            fs::remove_file(file).map_err(|e| format!("{}: {e}", file.display()))?;
        }
        late = format!(
            "one packet in 1000 was late by {} us, one by {} us",
            lateness.p999_ns / NS_PER_US,
            lateness.max_ns / NS_PER_US
        );
    }
    Err(format!(
        "this machine was too slow for a trustworthy run, {attempts} times: {late}; give fewer \
         --jobs, lower the rate, or leave the machine more time"
    ))
}
