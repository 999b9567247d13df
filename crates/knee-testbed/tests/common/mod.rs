//! Specs that the tests share. They need root and a TUN driver, and fail without.
#![allow(dead_code, reason = "each test binary uses its own part")]

use knee_model::{
    Cc, FlowKind, FlowSpec, NS_PER_MS, Ns, PathSpec, QueueLimit, RealTime, RecordSpec, RunRecord,
    RunSpec, TcpOptions, TcpSpec, Transport, Workload,
};
use knee_testbed::TestbedError;
use std::panic::{self, AssertUnwindSafe};

pub const MS: Ns = NS_PER_MS;
pub const S: Ns = 1_000 * MS;
pub const MBIT: u64 = 1_000_000;

/// A congestion control of the kernel's own.
pub fn kernel(name: &str) -> Cc {
    Cc::Kernel(name.to_owned())
}

/// A TCP flow of the kernel's Reno.
pub fn tcp(name: &str, workload: Workload, options: TcpOptions) -> FlowSpec {
    let cc = kernel("reno");
    FlowSpec::new(name, FlowKind::Tcp(TcpSpec { transport: Transport::Own, cc, workload, options }))
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

/// Runs `spec`, again if the machine kept the forwarder from its work, so that it was late or did
/// not take in what the hosts sent: such a run says nothing of the testbed. The third is taken as
/// it is.
fn timely(spec: &RunSpec) -> RunRecord {
    let once = || knee_testbed::run(spec);
    let first = |_| match once() {
        Ok(record) => {
            let in_time = |t: &RealTime| t.lateness.acceptable(spec.path.rtt_range_ns().0);
            record.real_time.as_ref().is_some_and(in_time).then_some(record)
        }
        Err(TestbedError::Overrun { .. }) => None,
        Err(error) => panic!("{error}"),
    };
    let last = || once().unwrap_or_else(|error| panic!("{error}"));
    (0..2).find_map(first).unwrap_or_else(last)
}

/// Runs a test of measured rates and times, up to three times: a machine that stalls in the middle of
/// a run changes what TCP does, though every packet of it was in time.
pub fn steadily(test: impl Fn()) {
    for attempt in 1..3 {
        match panic::catch_unwind(AssertUnwindSafe(&test)) {
            Ok(()) => return,
            Err(_) => eprintln!("attempt {attempt} of 3 failed"),
        }
    }
    test();
}

/// `spec` with this congestion control for every TCP flow.
pub fn with_cc(spec: &RunSpec, cc: &Cc) -> RunSpec {
    let mut spec = spec.clone();
    for flow in &mut spec.flows {
        if let FlowKind::Tcp(tcp) = &mut flow.kind {
            tcp.cc = cc.clone();
        }
    }
    spec
}

/// Runs `spec` and checks what holds of any run.
pub fn run(spec: &RunSpec) -> RunRecord {
    let record = timely(spec);
    let bins = spec.duration_ns.div_ceil(spec.record.bin_ns) as usize;
    assert_eq!(record.queues[0].bins.len(), bins);
    for flow in &record.flows {
        let c = &flow.counters;
        let ended = c.delivered_pkts + c.duplicate_pkts + c.queue_drops_pkts;
        assert_eq!(c.sent_pkts, ended + c.random_losses_pkts + c.in_network_pkts, "{c:?}");
        assert_eq!(flow.samples.len(), bins);
        let sum = |f: fn(&knee_model::FlowSample) -> u64| flow.samples.iter().map(f).sum::<u64>();
        assert_eq!(sum(|s| s.delivered_bytes), c.delivered_bytes);
        assert_eq!(sum(|s| u64::from(s.sent_pkts)), c.sent_pkts);
        assert_eq!(sum(|s| u64::from(s.lost_pkts)), c.queue_drops_pkts + c.random_losses_pkts);
    }
    let departed: u64 = record.queues[0].bins.iter().map(|b| u64::from(b.departed_pkts)).sum();
    assert_eq!(departed, record.queues[0].departed_pkts);
    let capacity =
        spec.path.hops[0].rate().mean_bps(0, spec.duration_ns) * spec.duration_ns as f64 / 8e9;
    assert!(record.queues[0].departed_bytes as f64 <= capacity + 1500.0);
    record
}

/// Goodput of flow `index`, bit/s.
pub fn goodput(record: &RunRecord, index: usize) -> f64 {
    record.flows[index].counters.delivered_bytes as f64 * 8e9 / record.duration_ns as f64
}
