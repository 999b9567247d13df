//! Specs that the tests share. They need root and a TUN driver, and fail without.
#![allow(dead_code, reason = "each test binary uses its own part")]

use knee_cc::{Params, algorithms};
use knee_run::{
    FlowKind, FlowSpec, NS_PER_MS, Ns, PathSpec, QueueLimit, RecordSpec, RunSpec, TcpOptions,
    TcpSpec, Workload,
};
use knee_testbed::Outcome;

pub const MS: Ns = NS_PER_MS;
pub const S: Ns = 1_000 * MS;
pub const MBIT: u64 = 1_000_000;

/// A flow of `kind` that starts at once.
pub fn flow(name: &str, kind: FlowKind) -> FlowSpec {
    FlowSpec {
        name: name.to_owned(),
        start_ns: 0,
        start_jitter_ns: 0,
        stop_ns: None,
        access_delay_ns: 0,
        access_jitter_ns: 0,
        kind,
    }
}

/// A TCP flow; its algorithm is named beside the spec.
pub fn tcp(name: &str, workload: Workload, options: TcpOptions) -> FlowSpec {
    let params = Params::defaults(algorithms()[0]);
    flow(name, FlowKind::Tcp(TcpSpec { params, workload, options }))
}

pub fn bulk(name: &str) -> FlowSpec {
    tcp(name, Workload::Bulk, TcpOptions::default())
}

/// 10 Mb/s, 40 ms, a queue of `queue_pkts`.
pub fn ten_mbit(queue_pkts: u32) -> PathSpec {
    PathSpec::symmetric(10 * MBIT, 40 * MS, QueueLimit::Packets(queue_pkts))
}

/// A run with bins of 100 ms and the queue's log.
pub fn spec(path: PathSpec, duration_ns: Ns, flows: Vec<FlowSpec>) -> RunSpec {
    let record = RecordSpec { bin_ns: 100 * MS, queue_log: true, trace: false };
    RunSpec { seed: 1, duration_ns, path, flows, record }
}

/// A run whose forwarder was once as late as this is not judged.
const LATE_NS: Ns = 8 * MS;

/// Runs `spec`, again if the machine kept the forwarder from its work: such a run says nothing of
/// the testbed. The third is taken as it is.
fn timely(spec: &RunSpec, cc: &[String]) -> Outcome {
    let once = || knee_testbed::run(spec, cc).unwrap_or_else(|error| panic!("{error}"));
    let first = |_| Some(once()).filter(|o| o.lateness.max_ns < LATE_NS);
    (0..2).find_map(first).unwrap_or_else(once)
}

/// Runs `spec` with `cc` for every flow and checks what holds of any run.
pub fn run(spec: &RunSpec, cc: &str) -> Outcome {
    let cc = vec![cc.to_owned(); spec.flows.len()];
    let outcome = timely(spec, &cc);
    let record = &outcome.record;
    let bins = spec.duration_ns.div_ceil(spec.record.bin_ns) as usize;
    assert_eq!(record.queue.bins.len(), bins);
    for flow in &record.flows {
        let c = &flow.counters;
        let ended = c.delivered_pkts + c.duplicate_pkts + c.queue_drops_pkts;
        assert_eq!(c.sent_pkts, ended + c.random_losses_pkts + c.in_network_pkts, "{c:?}");
        assert_eq!(flow.samples.len(), bins);
        let sum = |f: fn(&knee_run::FlowSample) -> u64| flow.samples.iter().map(f).sum::<u64>();
        assert_eq!(sum(|s| s.delivered_bytes), c.delivered_bytes);
        assert_eq!(sum(|s| u64::from(s.sent_pkts)), c.sent_pkts);
        assert_eq!(sum(|s| u64::from(s.lost_pkts)), c.queue_drops_pkts + c.random_losses_pkts);
    }
    let departed: u64 = record.queue.bins.iter().map(|b| u64::from(b.departed_pkts)).sum();
    assert_eq!(departed, record.queue.departed_pkts);
    let capacity = spec.path.rate_bps as u128 * u128::from(spec.duration_ns) / 8_000_000_000;
    assert!(u128::from(record.queue.departed_bytes) <= capacity + 1500);
    outcome
}

/// Goodput of flow `index`, bit/s.
pub fn goodput(outcome: &Outcome, index: usize) -> f64 {
    let record = &outcome.record;
    record.flows[index].counters.delivered_bytes as f64 * 8e9 / record.duration_ns as f64
}
