//! QUIC over links that change, lose in bursts, reorder, or are narrow in the reverse direction.

mod common;

use common::{MS, S, bulk, run, spec, tcp, ten_mbit};
use knee_model::{
    BurstLoss, DeliveryTrace, FlowKind, FlowSpec, HopSpec, PacketEvent, PathSpec, QueueLimit,
    Reorder, ReverseLink, Route, RunRecord, RunSpec, TcpOptions, Varying, Workload,
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
    // The second is used by the first flow only; the other flow gets the rest of the first.
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

fn reverse(flow: FlowSpec) -> FlowSpec {
    FlowSpec { route: Route { reverse: true, ..Route::default() }, ..flow }
}

/// 10 Mbit/s in both directions.
fn two_way(queue_pkts: u32) -> PathSpec {
    let queue = QueueLimit::Packets(queue_pkts);
    let link = ReverseLink { rate_bps: 10_000_000, rate_varies: None, queue };
    PathSpec { reverse: Some(link), ..ten_mbit(queue_pkts) }
}

/// In packets, since one of QUIC carries less than one of TCP. Alone a flow fills the reverse link on
/// both hosts; measured, QUIC delivers 0.14 % less, for the handshake's round trip and its packets.
#[test]
fn a_reverse_flow_does_as_in_the_simulator() {
    let spec = spec(two_way(84), 30 * S, vec![reverse(bulk("newreno"))]);
    let (quic, sim) = (run(&spec), knee_sim::run(&spec).expect("short enough"));
    let [ours, theirs] = [&quic, &sim].map(|r| r.flows[0].counters.delivered_pkts as f64);
    assert!((ours / theirs - 1.0).abs() < 0.003, "QUIC {ours} packets, simulator {theirs}");
    // Data take the reverse link, ACKs the bottleneck; packets of the handshake are padded.
    let reverse_queue = quic.reverse_queue.as_ref().expect("a reverse flow");
    assert!(reverse_queue.departed_bytes as f64 > 0.99 * 30.0 * 10e6 / 8.0);
    let log = quic.queues[0].log.iter().filter(|l| l.event == PacketEvent::Departed);
    let acks: Vec<u32> = log.map(|l| l.bytes).collect();
    let padded = acks.iter().filter(|bytes| **bytes > 200).count();
    assert!(acks.len() > 10_000 && padded <= 3, "{padded} of {}", acks.len());
}

/// Each direction's ACKs wait among the data of the other. In one run a flow gets up to 5.4 % more than
/// the other one, now this, now that; summed over four, 0.2 %.
#[test]
fn flows_in_both_directions_do_the_same() {
    let delivered = (1..=4).map(|seed| {
        let flows = vec![bulk("newreno"), reverse(bulk("newreno"))];
        let record = run(&RunSpec { seed, ..spec(two_way(84), 30 * S, flows) });
        [0, 1].map(|flow: usize| record.flows[flow].counters.delivered_pkts)
    });
    let [forward, reverse] = delivered.fold([0, 0], |sum, of| [sum[0] + of[0], sum[1] + of[1]]);
    let ratio = forward as f64 / reverse as f64;
    assert!((ratio - 1.0).abs() < 0.03, "{ratio}");
}

#[test]
fn reverse_flows_lose_and_invent_nothing() {
    let udp = FlowKind::Udp { rate_bps: 1_000_000, steps: Vec::new(), packet_bytes: 1000 };
    let workload = Workload::Transfers { size_bytes: 3_000_000, every_ns: None };
    let transfer = tcp("chd", workload, TcpOptions::default());
    let flows = vec![bulk("newreno"), reverse(transfer), reverse(FlowSpec::new("udp", udp))];
    let mut path = two_way(20).with_each_hop(|hop| hop.loss = 0.01);
    path.loss_reverse = 0.01;
    let spec = spec(path, 30 * S, flows);
    let record = run(&spec);
    assert_eq!(record, run(&spec));
    assert_eq!(record.flows[1].transfers.len(), 1);
    for flow in &record.flows {
        let c = &flow.counters;
        let gone = c.queue_drops_pkts + c.random_losses_pkts;
        assert_eq!(c.sent_pkts, c.delivered_pkts + gone + c.in_network_pkts, "{c:?}");
        assert!(c.random_losses_pkts > 0, "{c:?}");
    }
    assert!(record.flows[1].counters.ack_losses_pkts > 0);
}
