//! Specs that the tests share. They need root and a TUN driver, and fail without.
#![allow(dead_code, reason = "each test binary uses its own part")]

use knee_model::{
    Cc, FlowKind, FlowSpec, HopSpec, HostErrorKind, NS_PER_MS, NS_PER_S, Ns, PacketEvent, PathSpec,
    QueueLimit, QueueRecord, RecordSpec, RunRecord, RunSpec, TcpOptions, TcpSpec, Transport,
    Varying, Workload,
};
use std::{
    collections::VecDeque,
    panic::{self, AssertUnwindSafe},
};

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
    RunSpec { seed: 1, duration_ns, path, flows, record, sysctls: vec![] }
}

/// Attempts at a run that the machine is too slow for.
const ATTEMPTS: u32 = 5;
/// Longest run of [`run_until`].
const LONGEST_NS: Ns = 100 * S;

/// Runs `spec`. A run whose device or tracer overflowed on a slow machine has no record but an error that
/// says so; it is repeated.
fn valid(spec: &RunSpec) -> RunRecord {
    for _ in 1..ATTEMPTS {
        match knee_testbed::run(spec, &knee_model::RunOptions::default(), None) {
            Ok(record) => return record,
            Err(error) if error.kind == HostErrorKind::TooSlow => eprintln!("{error}"),
            Err(error) => panic!("{error}"),
        }
    }
    knee_testbed::run(spec, &knee_model::RunOptions::default(), None)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a test of Knee's algorithms once; up to ten times on a kernel that leaves calls of their programs out
/// now and then (see [`knee_kernel::skips_programs`]). There a failure every time is one.
pub fn despite_skips(test: impl Fn()) {
    for _ in 1..10 {
        let judged = panic::catch_unwind(AssertUnwindSafe(&test));
        match judged {
            Ok(()) => return,
            Err(_) if knee_kernel::skips_programs() => eprintln!("on a kernel that skips programs"),
            Err(panic) => panic::resume_unwind(panic),
        }
    }
    test();
}

/// Runs `spec`, up to three times if the path is late: for measurements.
pub fn timely(spec: &RunSpec) -> RunRecord {
    let in_time = |record: &RunRecord| {
        let real_time = record.real_time.as_ref().expect("real time");
        real_time.lateness.acceptable(spec.path.rtt_range_ns().0)
    };
    (1..3).map(|_| run(spec)).find(in_time).unwrap_or_else(|| run(spec))
}

/// Tests a measurement, up to three times: a stall of the machine in the middle of a run changes what TCP
/// does, though every packet was in time. Only for tests that are no part of CI.
pub fn steadily(test: impl Fn()) {
    for attempt in 1..3 {
        match panic::catch_unwind(AssertUnwindSafe(&test)) {
            Ok(()) => return,
            Err(_) => eprintln!("attempt {attempt} of 3 failed"),
        }
    }
    test();
}

/// [`run`]s `spec`, each time for twice as long, until the record has `enough` in it: the less a machine lets
/// the ends do in the same time, the longer it takes. Gives the run's spec too.
pub fn run_until(spec: &RunSpec, enough: impl Fn(&RunRecord) -> bool) -> (RunSpec, RunRecord) {
    let mut spec = spec.clone();
    loop {
        let record = run(&spec);
        if enough(&record) {
            return (spec, record);
        }
        spec.duration_ns *= 2;
        let counters: Vec<_> = record.flows.iter().map(|flow| &flow.counters).collect();
        assert!(spec.duration_ns <= LONGEST_NS, "not in {} ns: {counters:?}", record.duration_ns);
    }
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

/// Runs `spec` and checks what holds of any run, however late this machine is.
pub fn run(spec: &RunSpec) -> RunRecord {
    let record = valid(spec);
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
    for (hop, queue) in spec.path.hops.iter().zip(&record.queues) {
        check_hop(hop, queue);
    }
    let lateness = record.real_time.as_ref().expect("real time").lateness;
    assert!(lateness.p99_ns <= lateness.max_ns, "{lateness:?}");
    record
}

/// The log of a drop-tail queue and its link: each packet waits for those before it, then takes the time of
/// its transmission at the link's rate, to the nanosecond; it is dropped only if the queue is full. The
/// path's own times are exact, whenever the forwarder gets to them.
fn check_hop(hop: &HopSpec, queue: &QueueRecord) {
    let QueueLimit::Packets(limit_pkts) = hop.queue else { return };
    if hop.aqm.is_some() || matches!(hop.rate_varies, Some(Varying::Trace(_))) {
        return;
    }
    let mut held = VecDeque::new();
    let mut last_ns = 0;
    for line in &queue.log {
        match line.event {
            PacketEvent::Enqueued => held.push_back((line.time_ns, line.bytes)),
            PacketEvent::Dropped => assert_eq!(held.len(), limit_pkts as usize),
            PacketEvent::Lost => {}
            PacketEvent::Departed => {
                let (came_ns, bytes) = held.pop_front().expect("was enqueued");
                assert_eq!(bytes, line.bytes);
                let from_ns = came_ns.max(last_ns);
                last_ns = line.time_ns;
                let most_bits = hop.rate().highest_bps() as f64 * 2.0 / NS_PER_S as f64;
                let sent_bits = hop.rate().mean_bps(from_ns, last_ns) * (last_ns - from_ns) as f64
                    / NS_PER_S as f64;
                let bits = f64::from(bytes) * 8.0;
                assert!((sent_bits - bits).abs() <= most_bits, "{sent_bits} of {bits}: {line:?}");
            }
        }
        assert!(held.len() <= limit_pkts as usize);
    }
}

/// Goodput of flow `index`, bit/s.
pub fn goodput(record: &RunRecord, index: usize) -> f64 {
    record.flows[index].counters.delivered_bytes as f64 * 8e9 / record.duration_ns as f64
}

/// Runs `spec`, of one flow of UDP, and checks that it loses the packets that the simulator loses.
pub fn loses_as_in_the_simulator(spec: &RunSpec) {
    let lost = |record: &RunRecord| -> Vec<u32> {
        let log = record.queues[0].log.iter().filter(|l| l.event == PacketEvent::Lost);
        log.map(|l| l.number).collect()
    };
    let (spec, real) = run_until(spec, |record| lost(record).len() > 200);
    let simulated = knee_sim::run(&spec).expect("valid");
    let sent_pkts = real.flows[0].counters.sent_pkts;
    assert!(sent_pkts <= simulated.flows[0].counters.sent_pkts);
    let mut of_these = lost(&simulated);
    of_these.retain(|number| u64::from(*number) < sent_pkts);
    assert_eq!(lost(&real), of_these);
}
