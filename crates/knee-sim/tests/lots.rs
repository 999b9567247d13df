//! Several bottlenecks in a row, and reverse flows.

mod common;

use common::{MS, S, newreno, params, run, spec, ten_mbit, transfer};
use knee_model::{
    Aqm, Call, Cc, Discipline, FlowKind, FlowRecord, FlowSpec, HopSpec, Ns, PacketEvent, PathSpec,
    QueueLimit, QueueRecord, RecordSpec, Red, ReverseLink, Route, RunRecord, RunSpec, TcpOptions,
    TcpSpec, Thresholds, Transport, Varying, Workload,
};

/// A 1500-byte packet at 10 Mbit/s.
const PACKET_US: u64 = 1200;

/// A bottleneck of 10 Mbit/s and 84 packets.
fn hop(delay_ns: Ns) -> HopSpec {
    HopSpec { delay_ns, ..HopSpec::new(10_000_000, QueueLimit::Packets(84)) }
}

/// `first` with these hops behind it.
fn lot(mut first: PathSpec, later: Vec<HopSpec>) -> PathSpec {
    first.hops.extend(later);
    first
}

/// `flow` over the bottlenecks from `first_hop` to `last_hop`, counted from 0.
fn over(first_hop: usize, last_hop: usize, flow: FlowSpec) -> FlowSpec {
    FlowSpec { route: Route { reverse: false, first_hop, last_hop: Some(last_hop) }, ..flow }
}

fn reverse(flow: FlowSpec) -> FlowSpec {
    FlowSpec { route: Route { reverse: true, ..Route::default() }, ..flow }
}

fn bulk(algorithm: &str, options: TcpOptions) -> FlowSpec {
    let tcp = TcpSpec {
        transport: Transport::Own,
        cc: Cc::Knee(params(algorithm, &[])),
        workload: Workload::Bulk,
        options,
    };
    FlowSpec::new(algorithm, FlowKind::Tcp(tcp))
}

fn of(algorithm: &str) -> FlowSpec {
    bulk(algorithm, TcpOptions::default())
}

fn udp(rate_bps: u64) -> FlowSpec {
    FlowSpec::new("udp", FlowKind::Udp { rate_bps, steps: Vec::new(), packet_bytes: 1000 })
}

fn goodput_bps(record: &RunRecord, flow: usize) -> f64 {
    record.flows[flow].counters.delivered_bytes as f64 * 8e9 / record.duration_ns as f64
}

/// A run with everything recorded.
fn observed(path: PathSpec, duration_ns: Ns, flows: Vec<FlowSpec>) -> RunSpec {
    let record = RecordSpec { bin_ns: 100 * MS, queue_log: true, trace: true };
    RunSpec { record, ..spec(path, duration_ns, flows) }
}

fn rtts_us(flow: &FlowRecord) -> Vec<i32> {
    let calls = flow.trace.iter().filter(|r| r.call == Call::OnRtt);
    calls.map(|r| r.ack.rtt_us).collect()
}

#[test]
fn an_infinitely_fast_bottleneck_changes_nothing() {
    // With jitter no two packets come at the same instant: of these the order may be another one.
    let jitter = |flow| FlowSpec { access_jitter_ns: MS, ..flow };
    let flows = || {
        let late = FlowSpec { access_delay_ns: 3 * MS, ..of("newreno") };
        let probe = FlowKind::Probe { interval_ns: 20 * MS, packet_bytes: 100 };
        [of("chd"), late, of("cubic"), FlowSpec::new("probe", probe)].map(jitter).to_vec()
    };
    let fast =
        |loss| HopSpec { rate_bps: u64::MAX, queue: QueueLimit::Packets(u32::MAX), loss, ..hop(0) };
    let one = ten_mbit(60).with_each_hop(|hop| hop.loss = 0.002);
    let alone = run(&observed(one.clone(), 20 * S, flows()));
    assert!(alone.flows[0].counters.queue_drops_pkts > 0, "{:?}", alone.flows[0].counters);

    let behind = run(&observed(lot(one.clone(), vec![fast(0.0)]), 20 * S, flows()));
    assert!(behind.flows == alone.flows);
    assert!(behind.queues[0] == alone.queues[0]);
    assert_eq!(behind.queues[1].delay.max_ns(), 0);

    let first = one.with_each_hop(|hop| *hop = fast(0.0));
    let slow = HopSpec { queue: QueueLimit::Packets(60), loss: 0.002, ..hop(0) };
    let before = run(&observed(lot(first, vec![slow]), 20 * S, flows()));
    assert!(before.flows == alone.flows);
    assert!(before.queues[1] == alone.queues[0]);
}

#[test]
fn packets_leaving_a_bottleneck_reach_the_next() {
    let path = lot(ten_mbit(20), vec![hop(5 * MS), hop(0)]);
    let flows = vec![
        over(0, 2, of("newreno")),
        over(0, 0, of("newreno")),
        over(1, 1, of("newreno")),
        over(1, 2, udp(2_000_000)),
        over(2, 2, of("newreno")),
    ];
    let record = run(&observed(path, 20 * S, flows));
    let queues: Vec<_> = record.queues.iter().collect();
    // Which flows each bottleneck sees.
    for (queue, flows) in queues.iter().zip([&[0, 1][..], &[0, 2, 3], &[0, 3, 4]]) {
        let mut seen: Vec<u32> = queue.log.iter().map(|l| l.flow).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, flows);
    }
    // Packets that continue arrive whole and in order, except those between the two queues at the end.
    for (before, after, delay_ns, continuing) in
        [(queues[0], queues[1], 5 * MS, &[0][..]), (queues[1], queues[2], 0, &[0, 3])]
    {
        let on = |l: &&knee_model::PacketLog| continuing.contains(&l.flow);
        let is_left = |l: &&knee_model::PacketLog| l.event == PacketEvent::Departed;
        let left: Vec<_> = before.log.iter().filter(is_left).filter(on).collect();
        let came: Vec<_> = after.log.iter().filter(|l| !is_left(l)).filter(on).collect();
        assert!(came.len() > 1000 && came.len() <= left.len());
        for (left, came) in left.iter().zip(&came) {
            let now = (left.flow, left.number, left.time_ns + delay_ns);
            assert_eq!(now, (came.flow, came.number, came.time_ns));
        }
        let between = (left.len() - came.len()) as u64;
        assert!(between <= delay_ns / (PACKET_US * 1000) + 1, "{between}");
    }
    let dropped: u64 = queues.iter().map(|queue| queue.dropped_pkts).sum();
    let counted: u64 = record.flows.iter().map(|f| f.counters.queue_drops_pkts).sum();
    assert!(dropped == counted && queues.iter().all(|queue| queue.dropped_pkts > 0), "{dropped}");
}

#[test]
fn round_trips_are_those_of_the_hops_that_are_passed() {
    // One packet each, at different times: 1.2 ms for each bottleneck, and twice the delays between.
    let path = lot(ten_mbit(20), vec![hop(5 * MS), hop(7 * MS)]);
    let routes = [(0, 2), (0, 0), (1, 2), (2, 2), (0, 1)];
    let one = |(number, (first, last)): (u64, (usize, usize))| FlowSpec {
        start_ns: number * 500 * MS,
        access_delay_ns: number * MS,
        ..over(first, last, newreno(transfer(1), TcpOptions::default()))
    };
    let flows = (0..).zip(routes).map(one).collect();
    let record = run(&spec(path.clone(), 3 * S, flows));
    let measured: Vec<_> = record.flows.iter().map(rtts_us).collect();
    let exact = [
        40_000 + 2 * 12_000 + 3 * 1_200,
        40_000 + 1_200 + 2_000,
        40_000 + 2 * 7_000 + 2 * 1_200 + 4_000,
        40_000 + 1_200 + 6_000,
        40_000 + 2 * 5_000 + 2 * 1_200 + 8_000,
    ];
    assert_eq!(measured, exact.map(|us| vec![us]));
    let between = |first_hop, last_hop| {
        path.hops_delay_ns(&Route { reverse: false, first_hop, last_hop: Some(last_hop) })
    };
    assert_eq!(
        [(0, 2), (0, 1), (1, 2), (1, 1)].map(|(a, b)| between(a, b)),
        [12, 5, 7, 0].map(|ms| ms * MS)
    );
}

/// The rate of a flow by `1 / (RTT sqrt(p))`, up to a constant factor.
fn by_loss_and_rtt(flow: &FlowRecord) -> f64 {
    let lost = flow.counters.loss_events as f64 / flow.counters.sent_pkts as f64;
    1.0 / (flow.rtt.mean_ns() * lost.sqrt())
}

#[test]
fn the_long_flow_of_a_parking_lot_gets_least() {
    // RED, so that losses are spread as the traffic is: with drop-tail it is a matter of phases.
    let red = Red {
        thresholds: Thresholds::Packets { min: 10, max: 60 },
        max_probability: 0.05,
        gentle: true,
        ..Red::default()
    };
    let aqm = Some(Aqm { discipline: Discipline::Red(red), ecn: false });
    let hop = |delay_ns| HopSpec { aqm: aqm.clone(), ..hop(delay_ns) };
    let path = PathSpec::over(vec![hop(0), hop(5 * MS), hop(5 * MS)], 40 * MS);
    let jitter = |flow| FlowSpec { access_jitter_ns: MS, ..flow };
    let mut flows = vec![jitter(of("newreno"))];
    flows.extend((0..3).map(|hop| jitter(over(hop, hop, of("newreno")))));
    let record = run(&observed(path, 300 * S, flows));
    let long = goodput_bps(&record, 0);
    for cross in 1..4 {
        let its = goodput_bps(&record, cross);
        // Losses are three times as frequent and the round trip is longer: less than half, which would
        // be its max-min fair share, and by the square-root law less than 1 / sqrt(3).
        assert!(long < its / 3f64.sqrt(), "{long} {its}");
        // The measurements of both flows determine the ratio: the law holds for it, within 7 %.
        let law = by_loss_and_rtt(&record.flows[0]) / by_loss_and_rtt(&record.flows[cross]);
        let ratio = long / its;
        assert!((ratio / law - 1.0).abs() < 0.08, "{ratio} {law}");
        // RED with two flows leaves 7 % of the link idle.
        assert!(long + its > 0.92 * 9.65e6, "{long} {its}");
    }
}

#[test]
fn each_bottleneck_has_its_own_losses_marks_and_rates() {
    // The second loses; the third is silent from 3 to 4 s.
    let second = HopSpec { loss: 0.05, ..hop(0) };
    let outage = Varying::Steps(vec![(3 * S, 0), (4 * S, 10_000_000)]);
    let third = HopSpec { rate_varies: Some(outage), ..hop(0) };
    let path = lot(ten_mbit(84), vec![second, third]);
    let record = run(&spec(path, 10 * S, vec![udp(4_000_000)]));
    let lost = |queue: &QueueRecord| {
        queue.log.iter().filter(|l| l.event == PacketEvent::Lost).count() as u64
    };
    let by_hop: Vec<u64> = record.queues.iter().map(lost).collect();
    let c = &record.flows[0].counters;
    assert_eq!(by_hop, [0, c.random_losses_pkts, 0]);
    // 5000 packets: five standard errors are 77.
    assert!(c.random_losses_pkts.abs_diff(250) < 77, "{c:?}");
    let silent = record.queues[2].log.iter();
    let silent = silent.filter(|l| l.event == PacketEvent::Departed);
    // Every packet that has left the last bottleneck has arrived, or is among the 10 of the last 20 ms.
    let on_the_way = silent.clone().count() as u64 - c.delivered_pkts;
    assert!(on_the_way <= 10, "{on_the_way}");
    assert!(!silent.map(|l| l.time_ns).any(|ns| (3 * S + 2 * MS..4 * S).contains(&ns)));
    // In the second of silence 475 packets come, five standard errors are 25, and 84 find room.
    let dropped = record.queues[2].dropped_pkts;
    assert!(dropped.abs_diff(475 - 84) < 25 && record.queues[0].dropped_pkts == 0, "{dropped}");

    // The second marks, the third is slower and does not.
    let red = Discipline::Red(Red { max_probability: 0.1, ..Red::default() });
    let marking = HopSpec { aqm: Some(Aqm { discipline: red, ecn: true }), ..hop(0) };
    let path =
        lot(ten_mbit(84).with_each_hop(|hop| hop.rate_bps = 20_000_000), vec![marking, hop(0)]);
    let capable = TcpOptions { ecn: true, ..TcpOptions::default() };
    let record = run(&spec(path, 20 * S, vec![bulk("newreno", capable)]));
    let c = &record.flows[0].counters;
    let marked: Vec<u64> = record.queues.iter().map(|queue| queue.marked_pkts).collect();
    // A packet is counted once for its flow, and at each queue that it leaves with its mark.
    assert!(marked[0] == 0 && marked[1] >= marked[2] && marked[2] == c.marked_pkts, "{marked:?}");
    assert!(c.ecn_reductions > 20 && c.ecn_reductions <= c.marked_pkts, "{c:?}");
}

// Two-way traffic.

fn two_way(queue_pkts: u32) -> PathSpec {
    let queue = QueueLimit::Packets(queue_pkts);
    let reverse = ReverseLink { rate_bps: 10_000_000, rate_varies: None, queue };
    PathSpec { reverse: Some(reverse), ..ten_mbit(queue_pkts) }
}

/// Share of the ACKs reaching `flow`'s sender after 5 s that follow the previous ACK sooner than the
/// bottleneck could have sent half of a packet.
fn compressed(flow: &FlowRecord) -> f64 {
    let acks = flow.trace.iter().filter(|r| r.call == Call::OnRtt).map(|r| r.before.now_us);
    let times: Vec<u64> = acks.filter(|us| *us > 5_000_000).collect();
    let close = times.windows(2).filter(|pair| pair[1] - pair[0] < PACKET_US / 2).count();
    close as f64 / times.len() as f64
}

#[test]
fn a_reverse_flow_has_the_round_trip_of_a_forward_one() {
    // The same path both ways: one packet alone, in either direction.
    let one = || newreno(transfer(1), TcpOptions::default());
    let late = FlowSpec { start_ns: S, access_delay_ns: 3 * MS, ..reverse(one()) };
    let record = run(&observed(two_way(84), 2 * S, vec![one(), late]));
    // An ACK of 52 bytes takes 41.6 us.
    assert_eq!(rtts_us(&record.flows[0]), [41_241]);
    assert_eq!(rtts_us(&record.flows[1]), [47_241]);
    let reverse_queue = record.reverse_queue.expect("a reverse flow");
    assert_eq!((record.queues[0].departed_bytes, reverse_queue.departed_bytes), (1552, 1552));
}

#[test]
fn acks_are_compressed_by_traffic_the_other_way() {
    // Windows that fit: nothing is dropped.
    let options = || TcpOptions { receive_window_pkts: 50, ..TcpOptions::default() };
    let flow = || bulk("newreno", options());
    let alone = run(&observed(two_way(84), 30 * S, vec![flow()]));
    assert!(alone.reverse_queue.is_none());
    assert!(compressed(&alone.flows[0]) < 0.01, "{}", compressed(&alone.flows[0]));
    assert!(goodput_bps(&alone, 0) > 9.6e6);

    let both = run(&observed(two_way(84), 30 * S, vec![flow(), reverse(flow())]));
    for flow in &both.flows {
        let c = &flow.counters;
        assert_eq!((c.queue_drops_pkts, c.ack_drops_pkts, c.timeouts), (0, 0, 0), "{c:?}");
        // Zhang, Shenker and Clark 1991: ACKs that waited in a row behind data leave in a row. Measured,
        // two thirds of them.
        assert!(compressed(flow) > 0.6, "{}", compressed(flow));
    }
    // And data come in bursts, so that now one link, now the other is idle: measured, for a quarter of
    // the time.
    let share = (goodput_bps(&both, 0) + goodput_bps(&both, 1)) / (2.0 * 9.65e6);
    assert!((0.73..0.77).contains(&share), "{share}");
}

#[test]
fn acks_are_dropped_in_both_queues_and_counted() {
    let record = run(&observed(two_way(20), 30 * S, vec![of("newreno"), reverse(of("newreno"))]));
    let [forward, reverse] = &record.flows[..] else { panic!("two flows") };
    let reverse_queue = record.reverse_queue.as_ref().expect("a reverse flow");
    for flow in [forward, reverse] {
        let c = &flow.counters;
        assert!(c.queue_drops_pkts > 0 && c.ack_drops_pkts > 0, "{c:?}");
        let gone = c.queue_drops_pkts + c.in_network_pkts;
        assert_eq!(c.sent_pkts, c.delivered_pkts + c.duplicate_pkts + gone, "{c:?}");
    }
    let (a, b) = (&forward.counters, &reverse.counters);
    assert_eq!(record.queues[0].dropped_pkts, a.queue_drops_pkts + b.ack_drops_pkts);
    assert_eq!(reverse_queue.dropped_pkts, b.queue_drops_pkts + a.ack_drops_pkts);
    assert!(
        reverse_queue.bins.len() == record.queues[0].bins.len() && reverse_queue.delay.count() > 0
    );
    // Nothing distinguishes the directions.
    assert_eq!(a, b);
    assert!(goodput_bps(&record, 0) > 6e6, "{}", goodput_bps(&record, 0));
}

#[test]
fn every_kind_of_flow_can_be_reverse() {
    // UDP, a probe, a transfer with losses, over two bottlenecks that the ACKs pass.
    let path = PathSpec {
        reverse: two_way(84).reverse,
        loss_reverse: 0.03,
        ..lot(ten_mbit(84).with_each_hop(|hop| hop.loss = 0.02), vec![hop(5 * MS)])
    };
    let probe = FlowKind::Probe { interval_ns: 20 * MS, packet_bytes: 1 };
    let flows = vec![
        reverse(newreno(transfer(2000), TcpOptions::default())),
        reverse(udp(1_000_000)),
        reverse(FlowSpec::new("probe", probe)),
        of("newreno"),
    ];
    let spec = observed(path, 60 * S, flows);
    let record = run(&spec);
    assert_eq!(record, run(&spec));
    let [transfer, udp, probe, _] = &record.flows[..] else { panic!("four flows") };
    assert_eq!(transfer.transfers.len(), 1, "{:?}", transfer.counters);
    assert_eq!(transfer.counters.delivered_bytes, 2000 * 1448);
    let c = &transfer.counters;
    // 3 % of 2062 packets, 2 % of 2000 ACKs: five standard errors are 39 and 31.
    assert!(c.random_losses_pkts.abs_diff(62) < 39 && c.ack_losses_pkts.abs_diff(40) < 31, "{c:?}");
    assert_eq!(c.marked_pkts, 0);
    let c = &udp.counters;
    // 3 % of 7501: five standard errors are 74.
    assert!(c.random_losses_pkts.abs_diff(225) < 74, "{c:?}");
    // 20 ms in reverse, and the 5 ms between the bottlenecks.
    let least = probe.probe_delays.iter().map(|d| d.1).min();
    assert_eq!(least.map(|ns| ns / MS), Some(25));
    // Only ACKs of the flow that has any pass the forward path.
    assert!(record.queues[0].log.iter().all(|l| matches!(l.flow, 0 | 3)));
    assert!(record.queues[0].log.iter().all(|l| l.flow == 3 || l.bytes == 52));
}
