//! Emulates the path of a [`RunSpec`] for the Linux kernel's own TCP, and for QUIC.
//!
//! [`run`] takes the spec that the simulator takes and gives the same [`RunRecord`]. Flows use
//! Knee's algorithms, loaded into the kernel, or the kernel's own. Two network namespaces of the
//! run's own hold the senders and the receivers; each has one TUN device; a forwarder thread carries
//! packets between the two through the elements of [`knee_net`], stepped in real time. Everything is held
//! by file descriptors: it vanishes with the process, however that ends. The machine's own
//! network, sysctls and routes are never changed.
//!
//! - `host`: the kernel as a [`knee_model::Host`]: late runs are made again.
//! - `plan`: which of the spec's options the kernel can honour, addresses and ports.
//! - `namespace`: namespaces, devices, routes, sysctls inside them.
//! - `forwarder`, `packet`, `passed`: the path, and its packets.
//! - `calls`: the actions of the algorithms.
//! - `traffic`, `payload`: the applications at both ends, and their data.
//! - `quic`: QUIC connections over real UDP sockets (see `knee_quic_run` for the differences there).
//! - `variants`: the algorithms that are loaded for the run.
//! - [`shell`]: the path by itself, for anybody's own programs.
//!
//! Differences from the simulator, because it is real: a flow opens its connection at its start and
//! sends data one round trip later (its first transfer's time includes that). A flow that stops resets
//! its connection instead of repairing losses. SYN, pure ACK and RST packets pass the bottleneck and
//! count. Packets carry the number of the segment that starts at or before their first byte. Fast
//! recoveries are counted by the retransmissions seen on the path. Values that only the algorithm knows
//! (its RTT samples, backoffs, regions, observed values, undos) are left empty or zero for the kernel's
//! own.

mod calls;
mod clock;
mod error;
mod forwarder;
mod host;
mod namespace;
mod packet;
mod passed;
mod payload;
mod plan;
mod quic;
pub mod shell;
mod traffic;
mod variants;

pub use host::{Kernel, check, lateness};
pub use passed::Passed;
pub use plan::End;

use calls::{Called, Calls};
use clock::{Alarm, Clock};
use error::{Doing, TOO_SLOW, joined};
use forwarder::{Forwarder, PathRecord};
use knee_capture::CaptureFile;
use knee_model::{
    FlowCounters, FlowRecord, FlowSample, HostError, Lateness, RealTime, RunOptions, RunRecord,
    RunSpec, Tell, Transfer, Unfinished, failure::too_slow,
};
use namespace::Namespace;
use plan::Plan;
use std::{thread, time::Duration};
use traffic::{Received, Sent};
use variants::Variants;

/// Time between the end of the preparations and time 0.
const LEAD: Duration = Duration::from_millis(20);

/// Runs `spec` over real TCP and QUIC: for TCP Knee's algorithms are loaded into the kernel, for the
/// run and under names of its own. `tell` receives each row as soon as it is known.
/// Takes the spec's duration, and needs root. The record says how late the path was: see
/// [`Lateness::acceptable`].
///
/// # Errors
/// A lack of this machine, a request of the spec that the kernel cannot fulfil, or
/// a failure.
pub fn run(
    spec: &RunSpec,
    options: &RunOptions,
    tell: Option<Tell<'_>>,
) -> Result<RunRecord, HostError> {
    let capture = options.pcap.as_deref().map(CaptureFile::create).transpose()?;
    let plan = Plan::new(spec)?;
    let [sender, receiver] = namespace::namespaces(&plan)?;
    let variants = Variants::load(spec)?;
    variants.seed(spec.seed)?;
    let senders = sender.inside(|| traffic::Senders::new(spec, &plan, &variants, &receiver))??;
    let receivers = receiver.inside(|| traffic::Receivers::new(spec, &plan, &sender))??;
    let qlog = options.qlog.as_deref();
    let connections = quic::Connections::new(spec, &plan, [&sender, &receiver], qlog)?;
    let followed = !variants.names().is_empty() && (spec.record.trace || spec.record.bin_ns > 0);
    let calls = followed.then(|| Calls::start(spec, &variants)).transpose()?;
    let clock = Clock::starting_in(LEAD);
    let capture = capture.map(|file| file.start(clock.zero_since_1970())).transpose()?;
    let devices = [sender.device()?, receiver.device()?];
    let forwarder = Forwarder::new(spec, Some(&plan), clock, devices, capture);
    let mut told = 0;
    let watch = move |forwarder: &Forwarder<'_>| {
        if let Some(tell) = tell {
            told = forwarder.tell(told, tell);
        }
    };
    let alarm = &Alarm::default();
    let work = thread::scope(|s| {
        alarm.guard(|| {
            // A thread that cannot be started ends the others too.
            let path = spawn(s, alarm, "knee-path", move || forwarder.run(alarm, watch))?;
            let sent = spawn(s, alarm, "knee-send", move || senders.run(clock, alarm, tell))?;
            let received =
                spawn(s, alarm, "knee-receive", move || receivers.run(clock, alarm, tell))?;
            let quic = connections.map(|connections| {
                spawn(s, alarm, "knee-quic", move || connections.run(clock, alarm, tell))
            });
            let quic = quic.transpose()?;
            let over = || path.is_finished() && sent.is_finished() && received.is_finished();
            let called = calls.map(|calls| calls.follow(clock, over)).transpose();
            if called.is_err() {
                alarm.raise();
            }
            let quic = quic.map(joined);
            let (path, sent, received) = (joined(path), joined(sent), joined(received));
            // The failure of another thread is the cause of calls that were not recorded.
            Ok((path?, sent?, received?, quic.transpose()?, called?))
        })
    });
    let (path, mut sent, mut received, quic, called) = work?;
    lossless(&[&sender, &receiver])?;

    let mut called = called.unwrap_or_default();
    called.resize_with(spec.flows.len(), Default::default);
    let mut own_counters = vec![None; spec.flows.len()];
    for done in quic.unwrap_or_default() {
        let i = done.index;
        (sent[i], received[i], called[i]) = (done.sent, done.received, done.called);
        own_counters[i] = Some(done.counters);
    }
    let flows =
        called.into_iter().zip(own_counters).enumerate().map(|(i, (called, own))| {
            flow(spec, &plan, i, &path, &sent[i], &received[i], called, own)
        });
    let real_time =
        RealTime { lateness: Lateness::of(&path.lateness), verified: variants.verified()? };
    let flows = flows.collect();
    Ok(RunRecord {
        approximations: plan.approximations.clone(),
        real_time: Some(real_time),
        ..RunRecord::new(spec, flows, path.queues)
    })
}

/// Starts a thread of a run; its failure raises the alarm.
fn spawn<'s, T: Send + 's>(
    scope: &'s thread::Scope<'s, '_>,
    alarm: &'s Alarm,
    name: &str,
    work: impl FnOnce() -> Result<T, HostError> + Send + 's,
) -> Result<thread::ScopedJoinHandle<'s, Result<T, HostError>>, HostError> {
    let thread = thread::Builder::new().name(name.to_owned());
    thread.spawn_scoped(scope, move || alarm.guard(work)).doing("starting a thread")
}

/// Packets lost between an end and the forwarder are no part of the path.
fn lossless(ends: &[&Namespace]) -> Result<(), HostError> {
    let mut lost_pkts = 0;
    for end in ends {
        lost_pkts += end.device_drops()?;
    }
    if lost_pkts == 0 {
        return Ok(());
    }
    let why = format!(
        "{lost_pkts} packets were lost between an end and the path, outside the emulated queue"
    );
    Err(too_slow(why, TOO_SLOW))
}

/// Puts together the data of the path and both ends on flow `index`; `own`: a QUIC connection's own
/// counts.
#[allow(clippy::too_many_arguments, reason = "one place, each from another thread")]
fn flow(
    spec: &RunSpec,
    plan: &Plan,
    index: usize,
    path: &PathRecord,
    sent: &Sent,
    received: &Received,
    called: Called,
    own: Option<FlowCounters>,
) -> FlowRecord {
    let (flow, path) = (&spec.flows[index], &path.flows[index]);
    let counters = FlowCounters {
        delivered_bytes: received.bytes,
        timeouts: sent.timeouts,
        // A timeout too starts with a retransmission.
        loss_events: path.retransmission_episodes.saturating_sub(sent.timeouts),
        undos: called.counters.undos,
        losses_tolerated: called.counters.losses_tolerated,
        losses_raised_window: called.counters.losses_raised_window,
        losses_region_b: called.counters.losses_region_b,
        delay_backoffs_region_a: called.counters.delay_backoffs_region_a,
        delay_backoffs_region_b: called.counters.delay_backoffs_region_b,
        rounds_region_a: called.counters.rounds_region_a,
        rounds_region_b: called.counters.rounds_region_b,
        ..path.counters
    };
    // QUIC tells what the path cannot see: its packets are encrypted.
    let counters = own.map_or(counters, |own| FlowCounters {
        loss_events: own.loss_events,
        retransmitted_pkts: own.retransmitted_pkts,
        ..counters
    });
    let observed = |i| called.observed.get(i).copied();
    let samples = path.bins.iter().zip(&received.bins).enumerate().map(|(i, (bin, bytes))| {
        let state = sent.samples.get(i).copied().unwrap_or_default();
        FlowSample {
            delivered_bytes: *bytes,
            sent_pkts: bin.sent_pkts,
            lost_pkts: bin.lost_pkts,
            observed: observed(i).filter(|_| state.cwnd_pkts > 0).unwrap_or_default(),
            ..state
        }
    });
    let workload = flow.kind.workload();
    let bytes = |number| workload.and_then(|w| w.write(number)).map_or(0, |write| write.bytes);
    let writes = sent.writes.iter().enumerate();
    let completed = writes.clone().zip(&received.completed_ns);
    let transfers = completed.map(|((number, start_ns), end_ns)| Transfer {
        start_ns: *start_ns,
        end_ns: *end_ns,
        bytes: bytes(number),
    });
    let unfinished = writes
        .skip(received.completed_ns.len())
        .map(|(number, start_ns)| Unfinished { start_ns: *start_ns, bytes: bytes(number) });
    let start_ns = plan.flows[index].start_ns;
    let record = FlowRecord {
        counters,
        samples: samples.collect(),
        rtt: called.rtt,
        trace: called.trace,
        transfers: transfers.collect(),
        unfinished: unfinished.collect(),
        probe_delays: received.probe_delays.clone(),
        one_way_delay: received.one_way_delay.clone(),
        ..FlowRecord::of(flow, start_ns, spec.duration_ns)
    };
    record.without_idle_rows(spec.record.bin_ns)
}
