//! QUIC over links that change, lose in bursts, reorder, or are narrow on the way back.

mod common;

use common::{MS, S, bulk, run, spec, tcp, ten_mbit};
use knee_run::{
    BurstLoss, DeliveryTrace, PathSpec, QueueLimit, Reorder, ReverseLink, RunRecord, TcpOptions,
    Varying, Workload,
};
use std::sync::Arc;

fn goodput_bps(record: &RunRecord) -> f64 {
    record.flows[0].counters.delivered_bytes as f64 * 8e9 / record.duration_ns as f64
}

#[test]
fn quic_follows_a_rate_that_changes() {
    let steps = vec![(10 * S, 2_000_000), (20 * S, 20_000_000)];
    let path = PathSpec { rate_varies: Some(Varying::Steps(steps)), ..ten_mbit(84) };
    let record = run(&spec(path, 30 * S, vec![bulk("newreno")]));
    for (second, mbit) in [(8, 10.0), (18, 2.0), (28, 20.0)] {
        let bins = &record.flows[0].samples[10 * second..10 * second + 10];
        let bytes: u64 = bins.iter().map(|bin| bin.delivered_bytes).sum();
        let share = bytes as f64 * 8.0 / (mbit * 1e6);
        assert!((0.85..=1.0).contains(&share), "{second} s: {share}");
    }
}

#[test]
fn quic_uses_a_trace() {
    let trace = DeliveryTrace::new(&[1, 1, 20, 21, 40]).expect("a trace");
    let path = PathSpec {
        rate_bps: trace.mean_bps(),
        rate_varies: Some(Varying::Trace(Arc::new(trace))),
        ..ten_mbit(40)
    };
    let capacity_bps = path.rate().mean_bps(0, 30 * S);
    let record = run(&spec(path, 30 * S, vec![bulk("newreno")]));
    let share = goodput_bps(&record) / capacity_bps;
    assert!((0.85..0.97).contains(&share), "{share}");
}

#[test]
fn quic_gets_through_all_of_it() {
    let path = PathSpec {
        delay_forward_steps: vec![(S, 60 * MS), (3 * S, 5 * MS)],
        delay_reverse_steps: vec![(2 * S, MS)],
        falls_reorder: true,
        bursts_forward: BurstLoss::of_means(0.01, 4.0),
        bursts_reverse: BurstLoss::of_means(0.01, 4.0),
        reorder: Some(Reorder { probability: 0.02, extra_delay_ns: 5 * MS }),
        reverse: Some(ReverseLink {
            rate_bps: 100_000,
            rate_varies: None,
            queue: QueueLimit::Packets(5),
        }),
        ..ten_mbit(84)
    };
    let workload = Workload::Transfers { size_bytes: 3_000_000, every_ns: None };
    let flows = vec![tcp("newreno", workload, TcpOptions::default())];
    let record = run(&spec(path, 60 * S, flows));
    let flow = &record.flows[0];
    let c = &flow.counters;
    assert_eq!(flow.transfers.len(), 1, "{c:?}");
    let gone = c.queue_drops_pkts + c.random_losses_pkts;
    assert_eq!(c.sent_pkts, c.delivered_pkts + gone + c.in_network_pkts, "{c:?}");
    assert!(c.random_losses_pkts > 0 && c.ack_losses_pkts > 0 && c.ack_drops_pkts > 0, "{c:?}");
}
