//! QUIC over links that change, lose in bursts, reorder, or are narrow on the way back.

mod common;

use common::{MS, S, bulk, flow, run, spec, tcp, ten_mbit};
use knee_run::{
    BurstLoss, DeliveryTrace, FlowKind, FlowSpec, HopSpec, PacketEvent, PathSpec, QueueLimit,
    Reorder, ReverseLink, Route, RunRecord, TcpOptions, Varying, Workload,
};
use std::sync::Arc;

fn goodput_bps(record: &RunRecord) -> f64 {
    record.flows[0].counters.delivered_bytes as f64 * 8e9 / record.duration_ns as f64
}

#[test]
fn quic_follows_a_rate_that_changes() {
    let steps = vec![(10 * S, 2_000_000), (20 * S, 20_000_000)];
    let path =
        ten_mbit(84).with_each_hop(|hop| hop.rate_varies = Some(Varying::Steps(steps.clone())));
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
    let mut path = ten_mbit(40);
    path.hops[0].rate_bps = trace.mean_bps();
    path.hops[0].rate_varies = Some(Varying::Trace(Arc::new(trace)));
    let capacity_bps = path.hops[0].rate().mean_bps(0, 30 * S);
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
        bursts_reverse: BurstLoss::of_means(0.01, 4.0),
        reorder: Some(Reorder { probability: 0.02, extra_delay_ns: 5 * MS }),
        reverse: Some(ReverseLink {
            rate_bps: 100_000,
            rate_varies: None,
            queue: QueueLimit::Packets(5),
        }),
        ..ten_mbit(84).with_each_hop(|hop| hop.bursts = BurstLoss::of_means(0.01, 4.0))
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

#[test]
fn quic_passes_several_bottlenecks() {
    let mut path = ten_mbit(84);
    let queue = QueueLimit::Packets(60);
    path.hops.push(HopSpec { delay_ns: 5 * MS, ..HopSpec::new(5_000_000, queue) });
    let over = |first_hop, last_hop, flow: FlowSpec| FlowSpec {
        route: Route { reverse: false, first_hop, last_hop: Some(last_hop) },
        ..flow
    };
    let flows = vec![over(0, 1, bulk("newreno")), over(0, 0, bulk("newreno"))];
    let record = run(&spec(path, 20 * S, flows));
    // The second is all the first one's; what that leaves of the first is the other one's.
    let [long, cross] = [0, 1].map(|flow: usize| {
        record.flows[flow].counters.delivered_bytes as f64 * 8e9 / record.duration_ns as f64
    });
    assert!(long > 1e6 && long < 5e6 && long + cross > 8.5e6, "{long} {cross}");
    let [_, second] = &record.queues[..] else { panic!("two bottlenecks") };
    assert!(second.log.iter().all(|l| l.flow == 0));
    let departed = record.queues[0].log.iter().filter(|l| l.flow == 0);
    let departed = departed.filter(|l| l.event == PacketEvent::Departed).count();
    let came = second.log.iter().filter(|l| l.event != PacketEvent::Departed).count();
    assert!(departed >= came && departed - came <= 5, "{departed} {came}");
}

#[test]
fn quic_does_not_go_back() {
    let reverse =
        ReverseLink { rate_bps: 10_000_000, rate_varies: None, queue: QueueLimit::Packets(84) };
    let path = PathSpec { reverse: Some(reverse), ..ten_mbit(84) };
    let udp = FlowKind::Udp { rate_bps: 1_000_000, steps: Vec::new(), packet_bytes: 1000 };
    for flow in [bulk("newreno"), flow("udp", udp)] {
        let back = FlowSpec { route: Route { reverse: true, ..Route::default() }, ..flow };
        let spec = spec(path.clone(), S, vec![bulk("chd"), back]);
        let error = knee_quic_run::run(&spec).expect_err("refused").to_string();
        assert!(error.contains("`direction`: not possible over QUIC"), "{error}");
    }
}
