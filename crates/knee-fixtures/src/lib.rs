//! Hand-made runs for tests.

use knee_cc::Params;
use knee_model::{
    Cc, DelayedAck, FlowKind, FlowRecord, FlowSample, FlowSpec, NS_PER_MS, NS_PER_S, PathSpec,
    QueueBin, QueueLimit, QueueRecord, ReceiverConduct, RecordSpec, Recovery, RunRecord, RunSpec,
    TcpOptions, TcpSpec, Transport, Workload,
};

/// Nanoseconds in a millisecond.
pub const MS: u64 = NS_PER_MS;

fn ns(s: f64) -> u64 {
    (s * NS_PER_S as f64).round() as u64
}

/// A flow that delivered `bytes` in each bin.
pub fn flow(name: &str, kind: &str, bytes: &[u64]) -> FlowRecord {
    let sample = |b: &u64| FlowSample { delivered_bytes: *b, ..FlowSample::default() };
    let mut flow = FlowRecord {
        name: name.to_owned(),
        kind: kind.to_owned(),
        samples: bytes.iter().map(sample).collect(),
        observes: knee_cc::algorithm(kind).map_or([""; 4], |a| a.observes()),
        ..FlowRecord::default()
    };
    flow.counters.delivered_bytes = bytes.iter().sum();
    flow
}

/// A queue with `bins`; totals follow from them, the distribution of delays stays empty.
pub fn queue(bins: &[QueueBin]) -> QueueRecord {
    QueueRecord {
        bins: bins.to_vec(),
        departed_bytes: bins.iter().map(|b| b.departed_bytes).sum(),
        departed_pkts: bins.iter().map(|b| u64::from(b.departed_pkts)).sum(),
        ..QueueRecord::default()
    }
}

/// A run in which all flows live throughout.
pub fn record(duration_s: f64, bin_s: f64, mut flows: Vec<FlowRecord>) -> RunRecord {
    let duration_ns = ns(duration_s);
    flows.iter_mut().for_each(|f| f.stop_ns = duration_ns);
    RunRecord {
        seed: 1,
        duration_ns,
        bin_ns: ns(bin_s),
        flows,
        queues: vec![QueueRecord::default()],
        ..RunRecord::default()
    }
}

/// What `record` could be a run of: 1 Mbit/s, 20 ms each way, 84 packets.
pub fn spec(record: &RunRecord) -> RunSpec {
    let kind = |f: &FlowRecord| match f.kind.as_str() {
        "udp" => FlowKind::Udp { rate_bps: 100_000, steps: Vec::new(), packet_bytes: 1500 },
        "probe" => FlowKind::Probe { interval_ns: 20 * MS, packet_bytes: 200 },
        name => FlowKind::Tcp(TcpSpec {
            transport: Transport::Own,
            cc: Cc::Knee(Params::defaults(
                knee_cc::algorithm(name).expect("the name of an algorithm"),
            )),
            workload: Workload::Bulk,
            options: TcpOptions {
                mss_bytes: 1448,
                header_bytes: 52,
                recovery: Recovery::Sack,
                initial_window_pkts: 10,
                receive_window_pkts: 1000,
                rto_min_ns: 200 * MS,
                delayed_ack: DelayedAck { every_pkts: 2, timeout_ns: 40 * MS },
                limited_transmit: true,
                idle_restart: true,
                segmentation_offload: false,
                rtt_tick_ns: 0,
                ecn: false,
                quick_ack_pkts: 0,
                receiver: ReceiverConduct::Honest,
            },
        }),
    };
    let flow = |f: &FlowRecord| FlowSpec {
        start_ns: f.start_ns,
        ..FlowSpec::new(f.name.clone(), kind(f))
    };
    RunSpec {
        seed: record.seed,
        duration_ns: record.duration_ns,
        path: PathSpec::symmetric(1_000_000, 40 * MS, QueueLimit::Packets(84)),
        flows: record.flows.iter().map(flow).collect(),
        record: RecordSpec { bin_ns: record.bin_ns, queue_log: false, trace: false },
        sysctls: Vec::new(),
    }
}
