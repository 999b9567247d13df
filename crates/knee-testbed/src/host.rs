//! This machine's kernel as a [`Host`]: runs that come late are made again.

use crate::{
    error::{Doing, TOO_SLOW, unless},
    plan::Plan,
    run,
};
use knee_model::{
    FlowKind, Host, HostError, HostErrorKind, NS_PER_S, NS_PER_US, Progress, RunOptions, RunRecord,
    RunSpec, Tell, Transport,
    failure::{too_slow, unsupported},
};
use knee_quic_run::Qlog;
use nix::sys::utsname::uname;
use std::{fs, io::ErrorKind};

/// Runs of a spec that come late before it is given up: so many at least and at most, and between
/// these what takes a minute. A stall of some milliseconds, as shared machines have them, spoils a
/// run of seconds as a whole.
const ATTEMPTS: [u64; 2] = [2, 5];

/// This machine's kernel as a [`Host`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Kernel;

impl Host for Kernel {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn about(&self) -> &'static str {
        "This machine's Linux kernel: real TCP over an emulated path, in real time; needs root"
    }

    fn doing(&self) -> &'static str {
        "running"
    }

    fn runs_at_once(&self) -> Option<usize> {
        Some(1)
    }

    fn check(&self, spec: &RunSpec, options: &RunOptions) -> Result<(), HostError> {
        if spec.path.noise_ns > 0 {
            let why = "the kernel host runs in real time, where this machine delays every packet by tens of \
                       microseconds: noise is for runs in virtual time";
            let help = "leave out --noise (`noise` of [path]), or use --host sim, linux, vm or quic; \
                        `access_jitter` of a flow and `jitter_reverse` of [path] work here";
            return Err(unsupported(why).with_help(help));
        }
        check(spec, options)
    }

    fn run_with_progress(
        &self,
        spec: &RunSpec,
        options: &RunOptions,
        tell: Tell<'_>,
    ) -> Result<RunRecord, HostError> {
        self.check(spec, options)?;
        in_time(spec, options, tell)
    }

    fn fingerprint(&self, _: &RunSpec, _: &RunOptions) -> Option<String> {
        let system = uname().ok()?;
        Some(format!(
            "kernel {:?} {:?} {:?} {:?}",
            system.nodename(),
            system.machine(),
            system.release(),
            system.version()
        ))
    }
}

/// Checks that a kernel, this machine's or one in a virtual machine, can carry out `spec` with `options`.
///
/// # Errors
/// [`HostErrorKind::Unsupported`], with a remedy.
pub fn check(spec: &RunSpec, options: &RunOptions) -> Result<(), HostError> {
    if options.qlog.is_some() && quic_flows(spec).next().is_none() {
        let why = "no flow of this scenario is QUIC, and only QUIC connections have a qlog";
        let help = "write transport = \"quic\" in a flow, or use --host quic";
        return Err(unsupported(why).with_help(help));
    }
    Plan::new(spec).map(drop)
}

/// Names of the QUIC flows.
fn quic_flows(spec: &RunSpec) -> impl Iterator<Item = &str> {
    let is_quic =
        |kind: &FlowKind| matches!(kind, FlowKind::Tcp(tcp) if tcp.transport == Transport::Quic);
    spec.flows.iter().filter(move |flow| is_quic(&flow.kind)).map(|flow| flow.name.as_str())
}

/// Runs `spec`, again if the emulated path was late.
fn in_time(spec: &RunSpec, options: &RunOptions, tell: Tell<'_>) -> Result<RunRecord, HostError> {
    let attempts = attempts(spec);
    let mut late = String::new();
    for _ in 0..attempts {
        tell(Progress::Again);
        late = match run(spec, options, Some(tell)) {
            Ok(record) => match lateness(spec, &record) {
                None => return Ok(record),
                Some(late) => late,
            },
            Err(error) if error.kind == HostErrorKind::TooSlow => error.why,
            Err(error) => return Err(error),
        };
        remove_captures(spec, options)?;
    }
    let why = format!("this machine was too slow for a valid run, {attempts} times: {late}");
    Err(too_slow(why, TOO_SLOW))
}

fn attempts(spec: &RunSpec) -> u64 {
    let [least, most] = ATTEMPTS;
    (60 * NS_PER_S / spec.duration_ns.max(1)).clamp(least, most)
}

/// Returns the lateness of the path of a run of `spec`, if that was too late.
pub fn lateness(spec: &RunSpec, record: &RunRecord) -> Option<String> {
    let lateness = record.real_time.as_ref()?.lateness;
    (!lateness.acceptable(spec.path.rtt_range_ns().0)).then(|| {
        format!(
            "one packet in 1000 was {} us late or more, one was {} us late",
            lateness.p999_ns / NS_PER_US,
            lateness.max_ns / NS_PER_US
        )
    })
}

/// Removes what was captured of a run that does not count.
fn remove_captures(spec: &RunSpec, options: &RunOptions) -> Result<(), HostError> {
    let qlog = options.qlog.iter();
    let qlogs = qlog.flat_map(|dir| quic_flows(spec).map(move |name| Qlog::file(dir, name)));
    for file in options.pcap.iter().cloned().chain(qlogs) {
        let removed = unless(ErrorKind::NotFound, fs::remove_file(&file));
        removed.doing(&file.display().to_string())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_model::{PathSpec, QueueLimit, RecordSpec};

    #[test]
    fn noise_is_refused_with_a_remedy() {
        let path = PathSpec::symmetric(10_000_000, 40_000_000, QueueLimit::Packets(84));
        let spec = |noise_ns| RunSpec {
            seed: 1,
            duration_ns: NS_PER_S,
            path: PathSpec { noise_ns, ..path.clone() },
            flows: Vec::new(),
            record: RecordSpec::default(),
            sysctls: Vec::new(),
        };
        let options = RunOptions::default();
        assert_eq!(Kernel.check(&spec(0), &options), Ok(()));
        let error = Kernel.check(&spec(1), &options).expect_err("refused");
        assert_eq!(error.kind, HostErrorKind::Unsupported);
        assert!(error.help.is_some_and(|help| help.contains("--noise")));
    }
}
