//! Links that change, lose in bursts, reorder, or are narrow in the reverse direction.

mod common;

use common::{MS, S, newreno, options, params, run, spec, ten_mbit, transfer};
use knee_model::{
    BurstLoss, Call, Cc, DeliveryTrace, FlowKind, FlowSpec, HopSpec, Ns, PacketEvent, PathSpec,
    QueueLimit, RecordSpec, Recovery, Reorder, ReverseLink, RunRecord, RunSpec, TcpOptions,
    TcpSpec, Transport, Varying, Workload,
};
use std::sync::Arc;

fn udp(rate_bps: u64, packet_bytes: u32) -> FlowSpec {
    FlowSpec::new("udp", FlowKind::Udp { rate_bps, steps: Vec::new(), packet_bytes })
}

fn probe(interval_ns: Ns) -> FlowSpec {
    FlowSpec::new("probe", FlowKind::Probe { interval_ns, packet_bytes: 1 })
}

fn of(algorithm: &str) -> FlowSpec {
    let tcp = TcpSpec {
        transport: Transport::Own,
        cc: Cc::Knee(params(algorithm, &[])),
        workload: Workload::Bulk,
        options: TcpOptions::default(),
    };
    FlowSpec::new(algorithm, FlowKind::Tcp(tcp))
}

fn departures(record: &RunRecord) -> Vec<Ns> {
    let departed = record.queues[0].log.iter().filter(|l| l.event == PacketEvent::Departed);
    departed.map(|l| l.time_ns).collect()
}

/// Payload of flow 0, bit/s.
fn goodput_bps(record: &RunRecord) -> f64 {
    record.flows[0].counters.delivered_bytes as f64 * 8e9 / record.duration_ns as f64
}

fn trace(times_ms: &[u64]) -> Varying {
    Varying::Trace(Arc::new(DeliveryTrace::new(times_ms).expect("a trace")))
}

// Rates.

#[test]
fn a_packet_is_finished_at_the_new_rate() {
    // 1000 bytes at 8 Mbit/s: 1 ms. The third has half of it behind it when the rate falls to a
    // quarter: 2 ms for the rest. Then 4 ms each, until an outage from 11.5 to 20 ms: a quarter of
    // the fifth is left for after it.
    let steps = vec![(5 * MS / 2, 2_000_000), (23 * MS / 2, 0), (20 * MS, 8_000_000)];
    let path = PathSpec::symmetric(8_000_000, 20 * MS, QueueLimit::Packets(100))
        .with_each_hop(|hop| hop.rate_varies = Some(Varying::Steps(steps.clone())));
    let record = run(&spec(path, 21 * MS, vec![udp(80_000_000, 1000)]));
    let exact = [1.0, 2.0, 4.5, 8.5, 20.25].map(|ms| (ms * 1e6) as Ns);
    assert_eq!(departures(&record), exact);
    // Rates are exact over a long time too: 60 s at 7, 60 s at 3 Mbit/s.
    let path = PathSpec::symmetric(7_000_000, 20 * MS, QueueLimit::Packets(10))
        .with_each_hop(|hop| hop.rate_varies = Some(Varying::Steps(vec![(60 * S, 3_000_000)])));
    let record = run(&spec(path, 120 * S, vec![udp(10_000_000, 1000)]));
    assert_eq!(departures(&record).len(), 75_000);
}

#[test]
fn tcp_fills_a_link_that_changes() {
    let path = ten_mbit(84).with_each_hop(|hop| {
        hop.rate_varies = Some(Varying::Steps(vec![(20 * S, 2_000_000), (40 * S, 20_000_000)]))
    });
    let record = run(&spec(path.clone(), 60 * S, vec![of("newreno")]));
    let within = |from: Ns, to: Ns| {
        let times = departures(&record);
        let pkts = times.iter().filter(|t| (from..to).contains(t)).count();
        pkts as f64 * 12_000.0 / ((to - from) as f64 / 1e9)
    };
    // Each in its last ten seconds, of the rate: to a packet, of which the slowest has 1667.
    for (until, bps) in [(20 * S, 10e6), (40 * S, 2e6), (60 * S, 20e6)] {
        let share = within(until - 10 * S, until) / bps;
        assert!((share - 1.0).abs() < 0.001, "{until}: {share}");
    }
    let mean_bps = path.hops[0].rate().mean_bps(0, 60 * S);
    assert!((mean_bps - 32e6 / 3.0).abs() < 1.0, "{mean_bps}");
}

#[test]
fn a_trace_delivers_when_it_says() {
    // In each 10 ms two opportunities at 4 and one at 10 ms; 1500-byte packets at 10 Mbit/s, more
    // than that.
    let path = PathSpec::symmetric(3_600_000, 20 * MS, QueueLimit::Packets(10))
        .with_each_hop(|hop| hop.rate_varies = Some(trace(&[4, 4, 10])));
    let record = run(&spec(path, 31 * MS, vec![udp(10_000_000, 1500)]));
    let exact = [4, 4, 10, 14, 14, 20, 24, 24, 30].map(|ms| ms * MS);
    assert_eq!(departures(&record), exact);
    // Four of 372 bytes fit where one of 1500 does: 4 * (372 + 4) = 1504.
    let path = PathSpec::symmetric(3_600_000, 20 * MS, QueueLimit::Packets(100))
        .with_each_hop(|hop| hop.rate_varies = Some(trace(&[4, 4, 10])));
    let record = run(&spec(path, 11 * MS, vec![udp(100_000_000, 372)]));
    let times = departures(&record);
    let count = |ms: u64| times.iter().filter(|t| **t == ms * MS).count();
    assert_eq!((count(4), count(10), times.len()), (8, 4, 12));
}

#[test]
fn a_fixed_trace_is_as_good_as_its_rate() {
    let goodput = |rate_varies: Option<Varying>| {
        let queue = QueueLimit::Packets(100);
        let path = PathSpec::symmetric(12_000_000, 40 * MS, queue)
            .with_each_hop(|hop| hop.rate_varies = rate_varies.clone());
        goodput_bps(&run(&spec(path, 30 * S, vec![of("newreno")])))
    };
    // To a few packets of 30 000: measured, the same ones.
    let ratio = goodput(Some(trace(&[1]))) / goodput(None);
    assert!((ratio - 1.0).abs() < 0.0001, "{ratio}");
}

// Delays.

#[test]
fn a_falling_delay_reorders_only_if_enabled() {
    // 100 ms forward, from 50 ms on 20 ms: a probe each 10 ms, of which those at 0 to 40 ms take 100
    // ms and those from 50 ms on 20 ms, but wait for the last of them, at 140 ms.
    let path = |falls_reorder| PathSpec {
        delay_forward_steps: vec![(50 * MS, 20 * MS), (200 * MS, 30 * MS)],
        falls_reorder,
        ..PathSpec::symmetric(1_000_000_000, 200 * MS, QueueLimit::Packets(100))
    };
    let delays_ms = |falls_reorder| -> Vec<(Ns, Ns)> {
        let record = run(&spec(path(falls_reorder), 240 * MS, vec![probe(10 * MS)]));
        // A probe of 1 byte takes 8 ns; the delay is that of the end of its transmission.
        record.flows[0].probe_delays.iter().map(|d| (d.0 / MS, d.1 / MS)).collect()
    };
    let in_order: Vec<(Ns, Ns)> = (0..22)
        .map(|i| match 10 * i {
            at @ 0..50 => (at, 100),
            at @ 50..120 => (at, 140 - at),
            at @ 120..200 => (at, 20),
            at => (at, 30),
        })
        .take_while(|(at, delay)| at + delay < 240)
        .collect();
    assert_eq!(delays_ms(false), in_order);
    let overtaking: Vec<(Ns, Ns)> = delays_ms(true);
    let mut by_sending = overtaking.clone();
    by_sending.sort_unstable();
    let expected: Vec<(Ns, Ns)> = in_order
        .iter()
        .map(|(at, delay)| (*at, if (50..120).contains(at) { 20 } else { *delay }))
        .collect();
    assert_eq!(by_sending, expected);
    // Those of 50 ms arrive first, at 70 ms; that of 0 ms comes at 100, before that of 80 ms.
    let order: Vec<Ns> = overtaking.iter().take(5).map(|(at, _)| *at).collect();
    assert_eq!(order, [50, 60, 70, 0, 80]);
}

#[test]
fn the_delay_of_the_reverse_path_changes_too() {
    // One packet of 1 ms forward, 50 + 50 ms; from 1 s on the reverse path takes 80 ms.
    let path = PathSpec {
        delay_reverse_steps: vec![(S, 80 * MS)],
        ..PathSpec::symmetric(12_000_000, 100 * MS, QueueLimit::Packets(100))
    };
    let every = Workload::Transfers { size_bytes: 1448, every_ns: Some(500 * MS) };
    let record = run(&spec(path, 2 * S, vec![newreno(every, TcpOptions::default())]));
    let calls = record.flows[0].trace.iter().filter(|r| r.call == Call::OnRtt);
    let rtts: Vec<i32> = calls.map(|r| r.ack.rtt_us).collect();
    assert_eq!(rtts, [101_000, 101_000, 131_000, 131_000]);
}

// Losses.

#[test]
fn bursts_lose_the_given_share_in_runs() {
    let path = PathSpec::symmetric(100_000_000, 20 * MS, QueueLimit::Packets(1000))
        .with_each_hop(|hop| hop.bursts = BurstLoss::of_means(0.02, 5.0));
    let two = vec![udp(8_000_000, 1000), udp(4_000_000, 1000)];
    let record = run(&spec(path, 100 * S, two));
    let fates: Vec<bool> = record.queues[0]
        .log
        .iter()
        .filter(|l| l.event != PacketEvent::Departed)
        .map(|l| l.event == PacketEvent::Lost)
        .collect();
    let lost = fates.iter().filter(|lost| **lost).count() as f64;
    let runs = fates.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
    // 150 000 packets: 600 bursts of 5 within five standard errors (0.18, and 0.0011 of the share).
    assert!((lost / runs - 5.0).abs() < 0.9, "{}", lost / runs);
    assert!((lost / fates.len() as f64 - 0.02).abs() < 0.0055, "{lost}");
    // The bad times are the link's: one flow loses as large a part as the other.
    let share = |i: usize| {
        let c = &record.flows[i].counters;
        c.random_losses_pkts as f64 / c.sent_pkts as f64
    };
    assert!((share(0) - share(1)).abs() < 0.005, "{} {}", share(0), share(1));
}

#[test]
fn bursts_on_the_reverse_path_lose_acks_only() {
    let path = PathSpec { bursts_reverse: BurstLoss::of_means(0.1, 3.0), ..ten_mbit(84) };
    let record = run(&spec(path, 20 * S, vec![of("newreno")]));
    let c = &record.flows[0].counters;
    assert_eq!(c.random_losses_pkts, 0);
    let share = c.ack_losses_pkts as f64 / (c.delivered_pkts + c.duplicate_pkts) as f64;
    // 16 600 ACKs, of which neighbours share their fate (correlation 0.63): five standard errors.
    assert!((share - 0.1).abs() < 0.025, "{share}");
    // Cumulative ACKs make up for it: measured, 0.3 % are missing.
    assert!(goodput_bps(&record) > 0.99 * 9.65e6, "{}", goodput_bps(&record));
}

// Reordering.

fn reordering(probability: f64, extra_delay_ns: Ns) -> PathSpec {
    PathSpec { reorder: Some(Reorder { probability, extra_delay_ns }), ..ten_mbit(84) }
}

#[test]
fn late_packets_are_overtaken_by_those_behind() {
    // A probe each ms, about 3.5 ms late: each of them arrives after the three behind it.
    let record = run(&spec(reordering(0.1, 7 * MS / 2), 20 * S, vec![probe(MS)]));
    let delays = &record.flows[0].probe_delays;
    let late = |delay_ns: Ns| delay_ns > 22 * MS;
    let share = delays.iter().filter(|d| late(d.1)).count() as f64 / delays.len() as f64;
    // 20 000 probes: five standard errors.
    assert!((share - 0.1).abs() < 0.0106, "{share}");
    assert!(delays.iter().all(|d| d.1 == 20 * MS + 800 || d.1 == 20 * MS + 800 + 7 * MS / 2));
    // Arrivals are in the order of their times.
    assert!(delays.is_sorted_by_key(|d| d.0 + d.1));
    assert!(!delays.is_sorted_by_key(|d| d.0));
}

#[test]
fn reordering_within_racks_window_costs_hardly_anything() {
    // RACK waits for a quarter of the minimum RTT: 10 ms of 40. 5 ms are four packets.
    let both = |algorithm| {
        let without = run(&spec(ten_mbit(84), 60 * S, vec![of(algorithm)]));
        let with = run(&spec(reordering(0.02, 5 * MS), 60 * S, vec![of(algorithm)]));
        // Once it is known that packets are late, none of them is sent again: 1000 are late, of which
        // the first 4 or 5 teach it.
        let c = with.flows[0].counters;
        assert!(c.duplicate_pkts <= 5, "{algorithm}: {c:?}");
        (without, with)
    };
    let (without, with) = both("newreno");
    let ratio = goodput_bps(&with) / goodput_bps(&without);
    assert!(ratio > 0.999, "{ratio}");
    // To an algorithm that measures delay a late packet is delay: it backs off for that.
    let (without, with) = both("chd");
    let backoffs = |record: &RunRecord| {
        let c = &record.flows[0].counters;
        c.delay_backoffs_region_a + c.delay_backoffs_region_b
    };
    let losses = |record: &RunRecord| record.flows[0].counters.loss_events;
    assert!(backoffs(&with) > backoffs(&without), "{} {}", backoffs(&with), backoffs(&without));
    assert!(losses(&with) <= losses(&without) + 1, "{} {}", losses(&with), losses(&without));
}

#[test]
fn reordering_beyond_the_window_is_learnt() {
    // 25 ms are more than a quarter of the RTT, and less than three.
    let record = run(&spec(reordering(0.01, 25 * MS), 60 * S, vec![of("newreno")]));
    let c = &record.flows[0].counters;
    // 500 packets are late; measured, 9 are sent again before the window has grown, in 12 reductions.
    assert!(c.duplicate_pkts <= 10, "{c:?}");
    assert!(goodput_bps(&record) > 0.99 * 9.65e6, "{}", goodput_bps(&record));
}

#[test]
fn every_way_of_repair_survives_reordering() {
    for recovery in [Recovery::Sack, Recovery::Newreno, Recovery::NewrenoPrr] {
        for extra_ns in [5 * MS, 60 * MS] {
            let flows = vec![newreno(transfer(2000), options(recovery))];
            let record = run(&spec(reordering(0.05, extra_ns), 200 * S, flows));
            let flow = &record.flows[0];
            assert_eq!(flow.transfers.len(), 1, "{recovery:?} {extra_ns}: {:?}", flow.counters);
            assert_eq!(flow.counters.delivered_bytes, 2000 * 1448);
        }
    }
}

// The reverse link.

fn narrow_reverse(rate_bps: u64, queue_pkts: u32) -> PathSpec {
    let queue = QueueLimit::Packets(queue_pkts);
    PathSpec {
        reverse: Some(ReverseLink { rate_bps, rate_varies: None, queue }),
        ..PathSpec::symmetric(12_000_000, 100 * MS, QueueLimit::Packets(100))
    }
}

#[test]
fn acks_take_their_time_on_a_slow_reverse_link() {
    // A packet takes 1 ms forward; an ACK of 52 bytes takes 10 ms at 41.6 kbit/s. If two packets are sent at
    // once, the second one's ACK waits 9 ms for the first one's.
    let options = TcpOptions { initial_window_pkts: 2, ..TcpOptions::default() };
    let record = run(&spec(narrow_reverse(41_600, 10), S, vec![newreno(transfer(2), options)]));
    let calls = record.flows[0].trace.iter().filter(|r| r.call == Call::OnRtt);
    let rtts: Vec<i32> = calls.map(|r| r.ack.rtt_us).collect();
    assert_eq!(rtts, [111_000, 121_000]);
}

#[test]
fn a_full_reverse_link_drops_acks_and_counts_them() {
    // 1000 packets/s forward, half as many ACKs in reverse.
    let reverse_bps = 500 * 52 * 8;
    let record = run(&spec(narrow_reverse(reverse_bps, 20), 30 * S, vec![of("newreno")]));
    let c = &record.flows[0].counters;
    assert!(c.ack_drops_pkts > 14_000 && c.ack_losses_pkts == 0, "{c:?}");
    // Each arrival is acknowledged once, and each ACK is dropped, has come or is on its way: 20 in the queue,
    // and the ACKs of 50 ms.
    let came = record.flows[0].trace.iter().filter(|r| r.call == Call::OnRtt).count() as u64;
    let acks = c.delivered_pkts + c.duplicate_pkts;
    assert!(came + c.ack_drops_pkts <= acks && acks <= came + c.ack_drops_pkts + 20 + 26, "{c:?}");
    assert!(came <= 30 * 500);
    // ACKs are cumulative: the forward link is used all the same, but for the start (3 %).
    assert!(goodput_bps(&record) > 0.96 * 11.58e6, "{}", goodput_bps(&record));
    // A trace does as well: one opportunity of 1504 bytes, 26 ACKs with their headers, each 52 ms.
    let mut path = narrow_reverse(230_769, 30);
    if let Some(reverse) = &mut path.reverse {
        reverse.rate_varies = Some(trace(&[52]));
    }
    let record = run(&spec(path, 30 * S, vec![of("newreno")]));
    // ACKs come 26 at a time, and data in bursts that the forward queue does not hold: measured, 0.85.
    assert!(record.flows[0].counters.ack_drops_pkts > 10_000);
    assert!(goodput_bps(&record) > 0.84 * 11.58e6, "{}", goodput_bps(&record));
}

/// Disabled elements have no effect: an empty list of changes, bursts without losses, and a reverse link too
/// fast to matter give the same run to the last bit.
#[test]
fn elements_without_effect_change_nothing() {
    let record = RecordSpec { bin_ns: 100 * MS, queue_log: true, trace: true };
    let plain =
        PathSpec { jitter_forward_ns: MS, ..ten_mbit(60) }.with_each_hop(|hop| hop.loss = 0.005);
    let run_on = |path: PathSpec| {
        let flows = vec![of("chd"), of("newreno"), probe(20 * MS)];
        run(&RunSpec { record: record.clone(), ..spec(path, 10 * S, flows) })
    };
    let expected = run_on(plain.clone());
    let never = BurstLoss { good_to_bad: 0.0, bad_to_good: 1.0, loss_good: 0.0, loss_bad: 1.0 };
    let steps = vec![(3 * S, plain.hops[0].rate_bps), (11 * S, 0)];
    let unlike = |hop: &mut HopSpec| {
        hop.rate_varies = Some(Varying::Steps(steps.clone()));
        hop.bursts = Some(never);
    };
    let no_effect = PathSpec {
        delay_forward_steps: vec![(S, plain.delay_forward_ns)],
        delay_reverse_steps: vec![(S, plain.delay_reverse_ns)],
        falls_reorder: true,
        bursts_reverse: Some(never),
        reorder: Some(Reorder { probability: 0.0, extra_delay_ns: S }),
        ..plain
    };
    let no_effect = no_effect.with_each_hop(unlike);
    assert_eq!(run_on(no_effect), expected);
}
