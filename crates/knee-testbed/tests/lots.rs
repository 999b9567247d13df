//! Real TCP over several bottlenecks in a row, and both ways.

#![allow(missing_docs)]

mod common;

use common::{MBIT, MS, S, bulk, goodput, run, spec, steadily, ten_mbit};
use knee_model::{
    FlowKind, FlowSpec, HopSpec, PacketEvent, PathSpec, QueueLimit, ReverseLink, Route,
};

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

#[test]
fn the_kernel_parks_in_a_row() {
    steadily(|| {
        let path = PathSpec::over(vec![hop(0), hop(5 * MS), hop(5 * MS)], 40 * MS);
        let mut flows = vec![over(0, 2, bulk("long"))];
        flows.extend((0..3).map(|hop| over(hop, hop, bulk(["one", "two", "three"][hop]))));
        let outcome = run(&spec(path, 12 * S, flows));
        let queues: Vec<_> = outcome.queues.iter().collect();
        for (hop, queue) in queues.iter().enumerate() {
            // Each sees the long flow and its own, and is full.
            let mut seen: Vec<u32> = queue.log.iter().map(|l| l.flow).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen, [0, hop as u32 + 1]);
            assert!(
                queue.departed_bytes as f64 * 8.0 > 0.9 * 12.0 * 10e6,
                "{}",
                queue.departed_bytes
            );
            let (long, cross) = (goodput(&outcome, 0), goodput(&outcome, hop + 1));
            assert!(long < cross, "{long} {cross}");
        }
        // What leaves a bottleneck comes to the next one when it must: the forwarder may be late, the
        // path's own times are not.
        for pair in queues.windows(2) {
            let long = |departed: bool| {
                move |l: &&knee_model::PacketLog| {
                    l.flow == 0 && (l.event == PacketEvent::Departed) == departed
                }
            };
            let left = pair[0].log.iter().filter(long(true));
            let came: Vec<_> = pair[1].log.iter().filter(long(false)).collect();
            assert!(came.len() > 500, "{}", came.len());
            for (left, came) in left.zip(came) {
                assert_eq!(left.time_ns + 5 * MS, came.time_ns);
            }
        }
    });
}

#[test]
fn the_kernel_goes_both_ways() {
    steadily(|| {
        // Small queues, in which the other way's ACKs are dropped too.
        let udp = FlowKind::Udp { rate_bps: MBIT, steps: Vec::new(), packet_bytes: 200 };
        let flows =
            vec![bulk("forward"), reverse(bulk("reverse")), reverse(FlowSpec::new("udp", udp))];
        let outcome = run(&spec(two_way(ten_mbit(20), 20), 10 * S, flows));
        let reverse_queue = outcome.reverse_queue.as_ref().expect("reverse flows");
        let [forward, reverse, udp] = &outcome.flows[..] else { panic!("three flows") };
        let (a, b, c) = (&forward.counters, &reverse.counters, &udp.counters);
        assert!(goodput(&outcome, 0) > 2e6 && goodput(&outcome, 1) > 2e6);
        assert!(b.queue_drops_pkts > 0 && b.retransmitted_pkts > 0, "{b:?}");
        assert!(a.queue_drops_pkts > 0 && reverse.samples[50].cwnd_pkts > 1, "{a:?}");
        assert_eq!(outcome.queues[0].dropped_pkts, a.queue_drops_pkts + b.ack_drops_pkts);
        let dropped = b.queue_drops_pkts + c.queue_drops_pkts + a.ack_drops_pkts;
        assert_eq!(reverse_queue.dropped_pkts, dropped);
        // 6250 packets of UDP in 10 s.
        assert!(c.delivered_pkts > 5000, "{c:?}");
        // The path hands packets over, the program reads them: at the end it has not read those of the
        // latest stall (10 ms: 6 packets).
        let unread_bytes = c.delivered_pkts * 200 - c.delivered_bytes;
        assert!(unread_bytes.is_multiple_of(200) && unread_bytes <= 6 * 200, "{c:?}");
        // ACKs wait among the data of the other way: most of the queueing delay is in both RTTs.
        assert!(reverse_queue.delay.mean_ns() > 1e6 && outcome.queues[0].delay.mean_ns() > 1e6);
    });
}
