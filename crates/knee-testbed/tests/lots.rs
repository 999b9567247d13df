//! Real TCP over several bottlenecks in a row, and both ways.

#![allow(missing_docs)]

mod common;

use common::{MBIT, MS, S, bulk, goodput, run_until, spec, steadily, ten_mbit, timely};
use knee_model::{
    FlowKind, FlowSpec, HopSpec, PacketEvent, PathSpec, QueueLimit, QueueRecord, ReverseLink,
    Route, RunRecord, RunSpec,
};
use std::collections::BTreeSet;

fn hop(delay_ns: u64) -> HopSpec {
    HopSpec { delay_ns, ..HopSpec::new(10 * MBIT, QueueLimit::Packets(84)) }
}

fn over(first_hop: usize, last_hop: usize, flow: FlowSpec) -> FlowSpec {
    FlowSpec { route: Route { reverse: false, first_hop, last_hop: Some(last_hop) }, ..flow }
}

fn reverse(flow: FlowSpec) -> FlowSpec {
    FlowSpec { route: Route { reverse: true, ..Route::default() }, ..flow }
}

fn two_way(path: PathSpec, queue_pkts: u32) -> PathSpec {
    let queue = QueueLimit::Packets(queue_pkts);
    PathSpec {
        reverse: Some(ReverseLink { rate_bps: 10 * MBIT, rate_varies: None, queue }),
        ..path
    }
}

/// A flow over three hops, and a flow over each of them.
fn parking_lot() -> RunSpec {
    let path = PathSpec::over(vec![hop(0), hop(5 * MS), hop(5 * MS)], 40 * MS);
    let mut flows = vec![over(0, 2, bulk("long"))];
    flows.extend((0..3).map(|hop| over(hop, hop, bulk(["one", "two", "three"][hop]))));
    spec(path, 12 * S, flows)
}

#[test]
fn the_kernel_parks_in_a_row() {
    let flows_seen =
        |queue: &QueueRecord| -> BTreeSet<u32> { queue.log.iter().map(|l| l.flow).collect() };
    let long = |queue: &QueueRecord, departed: bool| -> Vec<u64> {
        let log = queue.log.iter().filter(|l| l.flow == 0);
        let log = log.filter(|l| (l.event == PacketEvent::Departed) == departed);
        log.map(|l| l.time_ns).collect()
    };
    let (_, outcome) = run_until(&parking_lot(), |record| {
        record.queues.iter().all(|queue| flows_seen(queue).len() == 2)
            && long(&record.queues[2], false).len() > 100
    });
    for (hop, queue) in outcome.queues.iter().enumerate() {
        assert_eq!(flows_seen(queue), [0, hop as u32 + 1].into(), "the long flow and its own");
    }
    // A packet that leaves a bottleneck comes to the next one when it must: the forwarder may be late, the
    // path's own times are not.
    for pair in outcome.queues.windows(2) {
        let (left, came) = (long(&pair[0], true), long(&pair[1], false));
        assert!(left.len() >= came.len());
        assert!(left.iter().zip(came).all(|(left_ns, came_ns)| left_ns + 5 * MS == came_ns));
    }
}

#[test]
#[ignore = "measured in real time, on an idle machine: scripts/nightly.sh measured"]
fn a_long_flow_gets_less() {
    steadily(|| {
        let outcome = timely(&parking_lot());
        for (hop, queue) in outcome.queues.iter().enumerate() {
            let full = 0.9 * 12.0 * 10e6;
            assert!(queue.departed_bytes as f64 * 8.0 > full, "{}", queue.departed_bytes);
            let (long, cross) = (goodput(&outcome, 0), goodput(&outcome, hop + 1));
            assert!(long < cross, "{long} {cross}");
        }
    });
}

/// Small queues, in which the other way's ACKs are dropped too.
fn both_ways() -> RunSpec {
    let udp = FlowKind::Udp { rate_bps: MBIT, steps: Vec::new(), packet_bytes: 200 };
    let flows = vec![bulk("forward"), reverse(bulk("reverse")), reverse(FlowSpec::new("udp", udp))];
    spec(two_way(ten_mbit(20), 20), 10 * S, flows)
}

#[test]
fn the_kernel_goes_both_ways() {
    let enough = |record: &RunRecord| {
        let [forward, reverse, udp] = &record.flows[..] else { panic!("three flows") };
        let (a, b) = (&forward.counters, &reverse.counters);
        [a, b].iter().all(|c| c.delivered_pkts > 100 && c.queue_drops_pkts > 0)
            && b.retransmitted_pkts > 0
            && reverse.samples.iter().any(|s| s.cwnd_pkts > 1)
            && udp.counters.delivered_pkts > 100
    };
    let (_, outcome) = run_until(&both_ways(), enough);
    let reverse_queue = outcome.reverse_queue.as_ref().expect("reverse flows");
    let [a, b, c] = [0, 1, 2].map(|flow| &outcome.flows[flow].counters);
    assert_eq!(outcome.queues[0].dropped_pkts, a.queue_drops_pkts + b.ack_drops_pkts);
    let dropped = b.queue_drops_pkts + c.queue_drops_pkts + a.ack_drops_pkts;
    assert_eq!(reverse_queue.dropped_pkts, dropped);
    // The path hands packets over, the program reads them: it may not have read all at the end.
    let unread_bytes = c.delivered_pkts * 200 - c.delivered_bytes;
    assert!(unread_bytes.is_multiple_of(200), "{c:?}");
}

#[test]
#[ignore = "measured in real time, on an idle machine: scripts/nightly.sh measured"]
fn both_ways_carry() {
    steadily(|| {
        let outcome = timely(&both_ways());
        assert!(goodput(&outcome, 0) > 2e6 && goodput(&outcome, 1) > 2e6);
        // 6250 packets of UDP in 10 s. Unread at the end are those of the latest stall (10 ms: 6 packets).
        let c = &outcome.flows[2].counters;
        assert!(c.delivered_pkts > 5000, "{c:?}");
        assert!(c.delivered_pkts * 200 - c.delivered_bytes <= 6 * 200, "{c:?}");
        // ACKs wait among the data of the other way: most of the queueing delay is in both RTTs.
        let reverse_queue = outcome.reverse_queue.as_ref().expect("reverse flows");
        assert!(reverse_queue.delay.mean_ns() > 1e6 && outcome.queues[0].delay.mean_ns() > 1e6);
    });
}
