//! Effects of queue disciplines and congestion marks on real flows.

mod common;

use common::{MS, S, newreno, run, ten_mbit};
use knee_cc::{Event, Phase};
use knee_model::{
    Aqm, Call, CoDel, DelayedAck, Discipline, FlowKind, FlowRecord, FlowSpec, FqCoDel, Fred, Ns,
    PathSpec, Pie, RecordSpec, Recovery, Red, RunRecord, RunSpec, TcpOptions, Varying, Workload,
};

const DURATION_NS: Ns = 30 * S;

/// 10 Mbit/s, 40 ms, room for 300 ms of packets, managed by `discipline`.
fn path(discipline: Option<Discipline>, ecn: bool) -> PathSpec {
    let aqm = discipline.map(|discipline| Aqm { discipline, ecn });
    ten_mbit(250).with_each_hop(|hop| hop.aqm = aqm.clone())
}

fn bulk(count: u64, options: &TcpOptions) -> Vec<FlowSpec> {
    let one = |i| FlowSpec { start_ns: i * 50 * MS, ..newreno(Workload::Bulk, options.clone()) };
    (0..count).map(one).collect()
}

fn spec(path: PathSpec, flows: Vec<FlowSpec>) -> RunSpec {
    let record = RecordSpec { bin_ns: 100 * MS, queue_log: true, trace: true };
    RunSpec { seed: 1, duration_ns: DURATION_NS, path, flows, record, sysctls: vec![] }
}

/// Median of the queueing delay, ms, and share of the link that was used, both after 5 s.
fn steady(record: &RunRecord) -> (f64, f64) {
    let bins = &record.queues[0].bins[50..];
    let mut delays: Vec<f64> = bins
        .iter()
        .map(|b| b.delay_sum_ns as f64 / f64::from(b.departed_pkts.max(1)) / 1e6)
        .collect();
    delays.sort_by(f64::total_cmp);
    let bits: u64 = bins.iter().map(|b| b.departed_bytes * 8).sum();
    (delays[delays.len() / 2], bits as f64 / (bins.len() as f64 * 1e6))
}

/// A link that stops for good: packets accepted by its queue stay in the network, and later ones are held or
/// dropped. Nothing is lost without a trace.
#[test]
fn a_link_that_stops_loses_nothing() {
    for discipline in [
        None,
        Some(Discipline::CoDel(CoDel::default())),
        Some(Discipline::FqCoDel(FqCoDel::default())),
    ] {
        let path = path(discipline.clone(), false).with_each_hop(|hop| {
            hop.rate_varies = Some(Varying::Steps(vec![(2 * S, 0)]));
        });
        let spec = RunSpec { duration_ns: 6 * S, ..spec(path, bulk(2, &TcpOptions::default())) };
        let record = run(&spec);
        let held_pkts = record.queues[0].bins.last().expect("bins").held_pkts;
        let in_network: u64 = record.flows.iter().map(|f| f.counters.in_network_pkts).sum();
        assert_eq!(in_network, u64::from(held_pkts), "{discipline:?}");
        assert!(held_pkts > 2, "{discipline:?}: {held_pkts}");
        for flow in &record.flows {
            let c = &flow.counters;
            let dropped = c.queue_drops_pkts + c.random_losses_pkts;
            let seen = c.delivered_pkts + c.duplicate_pkts + dropped + c.in_network_pkts;
            assert_eq!(c.sent_pkts, seen, "{discipline:?}");
        }
    }
}

fn four_newreno(discipline: Option<Discipline>) -> RunRecord {
    run(&spec(path(discipline, false), bulk(4, &TcpOptions::default())))
}

/// Drop-tail lets four NewReno flows fill three quarters of its 300 ms; CoDel holds the delay between
/// its target and twice that, PIE within a fifth of its own, and the link stays busy: FQ-CoDel, which
/// drops from one flow at a time, leaves most of it idle, 4.6 %.
#[test]
fn delays_are_held_near_their_targets() {
    let (delay_ms, used) = steady(&four_newreno(None));
    assert!((210.0..260.0).contains(&delay_ms) && used > 0.999, "drop-tail: {delay_ms} ms, {used}");
    for (discipline, within_ms) in [
        (Discipline::CoDel(CoDel::default()), 5.0..10.0),
        (Discipline::FqCoDel(FqCoDel::default()), 5.0..10.0),
        (Discipline::Pie(Pie::default()), 12.0..18.0),
    ] {
        let (delay_ms, used) = steady(&four_newreno(Some(discipline.clone())));
        assert!(within_ms.contains(&delay_ms), "{discipline:?}: {delay_ms} ms");
        assert!(used > 0.95, "{discipline:?}: {used}");
    }
}

/// RED holds the average queue between its thresholds of 5 and 15 packets: just above the lower one, as
/// its probability rises to 0.1. FRED, which holds each flow to its share, keeps 2 to 4 packets. So short
/// queues leave up to 14 % of the link idle.
#[test]
fn averages_stay_within_their_thresholds() {
    let red = Red { max_probability: 0.1, ..Red::default() };
    let fred = Fred { max_probability: 0.1, ..Fred::default() };
    for (discipline, within_pkts) in [
        (Discipline::Red(red), 5.0..7.0),
        (Discipline::Red(Red { gentle: true, ..red }), 5.0..7.0),
        (Discipline::Fred(fred), 2.0..4.0),
    ] {
        let record = four_newreno(Some(discipline.clone()));
        // Time average of the packets held: each log entry holds the number from its time on.
        let log = &record.queues[0].log;
        let (from, to) = (5 * S, DURATION_NS);
        let held = log
            .windows(2)
            .filter(|w| w[0].time_ns >= from)
            .map(|w| u128::from(w[1].time_ns - w[0].time_ns) * u128::from(w[0].held_pkts));
        let average = held.sum::<u128>() as f64 / (to - from) as f64;
        assert!(within_pkts.contains(&average), "{discipline:?}: {average}");
        assert!(steady(&record).1 > 0.85, "{discipline:?}: {}", steady(&record).1);
    }
}

/// Against 20 Mbit/s of UDP on 10 Mbit/s: FQ-CoDel gives each flow half. NewReno with its window halved
/// behind a short queue uses at least three quarters of its half; UDP gets only the rest. Drop-tail starves
/// TCP.
#[test]
fn fair_queues_restrain_unresponsive_flows() {
    let shares = |discipline| {
        let udp = FlowKind::Udp { rate_bps: 20_000_000, steps: Vec::new(), packet_bytes: 1500 };
        let mut flows = bulk(1, &TcpOptions::default());
        flows.push(FlowSpec::new("udp", udp));
        let record = run(&spec(path(discipline, false), flows));
        [0, 1].map(|i: usize| {
            let bytes = record.flows[i].counters.delivered_pkts as f64 * 1500.0;
            bytes * 8.0 / (DURATION_NS as f64 / 1e9) / 10e6
        })
    };
    let [tcp, udp] = shares(Some(Discipline::FqCoDel(FqCoDel::default())));
    assert!((0.42..=0.5).contains(&tcp) && tcp + udp > 0.999, "{tcp} {udp}");
    let [tcp, udp] = shares(None);
    assert!(tcp < 0.03 && udp > 0.97, "{tcp} {udp}");
    // FRED keeps it to a bound of its own, but gives it more than the other.
    let [tcp, udp] = shares(Some(Discipline::Fred(Fred::default())));
    assert!(tcp > 0.45 && (tcp..0.55).contains(&udp), "{tcp} {udp}");
}

/// Checks every flow that is marked: the contract's order of calls, and one reduction per round trip.
fn check_marks(flow: &FlowRecord, least_rtt_us: u64) {
    let mut reductions = Vec::new();
    for pair in flow.trace.windows(2) {
        let (last, now) = (&pair[0], &pair[1]);
        if now.call == Call::OnAck {
            assert!(now.before.phase < Phase::Cwr as u8 || now.before.phase == Phase::Loss as u8);
        }
        if last.call == Call::Ssthresh {
            reductions.push((last.before.now_us, last.result));
        }
        if now.call == Call::OnEvent && now.event == Event::Recovered as u32 {
            let (_, ssthresh) = reductions.last().expect("a reduction comes before its end");
            assert_eq!(now.before.phase, Phase::Cwr as u8);
            assert_eq!((now.before.cwnd_pkts, now.before.ssthresh_pkts), (*ssthresh, *ssthresh));
        }
    }
    assert_eq!(reductions.len() as u64, flow.counters.ecn_reductions);
    assert_eq!(flow.counters.loss_events, flow.counters.ecn_reductions);
    let apart = reductions.windows(2).all(|w| w[1].0 - w[0].0 >= least_rtt_us);
    assert!(apart, "{reductions:?}");
}

/// With marks nothing is lost and nothing is sent again; whatever the recovery, and with delayed ACKs.
#[test]
fn marks_replace_losses() {
    let red = Red { max_probability: 0.1, gentle: true, ..Red::default() };
    for discipline in [
        Discipline::CoDel(CoDel::default()),
        Discipline::FqCoDel(FqCoDel::default()),
        Discipline::Red(red),
        Discipline::Pie(Pie::default()),
    ] {
        for (recovery, every_pkts) in [
            (Recovery::Sack, 1),
            (Recovery::Sack, 2),
            (Recovery::Newreno, 1),
            (Recovery::NewrenoPrr, 2),
        ] {
            let options = TcpOptions {
                recovery,
                delayed_ack: DelayedAck { every_pkts, timeout_ns: 40 * MS },
                ecn: true,
                // No burst that a queue of 15 packets, or one of 2 ms, would have to drop.
                initial_window_pkts: 2,
                ..TcpOptions::default()
            };
            let record = run(&spec(path(Some(discipline.clone()), true), bulk(2, &options)));
            let name = format!("{discipline:?} {recovery:?}");
            // Halving the window costs a quarter of the link at most.
            let (_, used) = steady(&record);
            assert!(used > 0.75, "{name}: {used}");
            let marked: u64 = record.flows.iter().map(|f| f.counters.marked_pkts).sum();
            assert_eq!(marked, record.queues[0].marked_pkts);
            if record.queues[0].dropped_pkts > 0 {
                // Slow start may overrun RED and PIE, which then drop by force.
                let forced = matches!(discipline, Discipline::Red(_) | Discipline::Pie(_));
                assert!(forced, "{name}: {}", record.queues[0].dropped_pkts);
                continue;
            }
            for flow in &record.flows {
                let c = &flow.counters;
                assert_eq!((c.retransmitted_pkts, c.timeouts, c.undos), (0, 0, 0), "{name}");
                assert!(
                    c.ecn_reductions > 35 && c.marked_pkts >= c.ecn_reductions,
                    "{name}: {c:?}"
                );
                check_marks(flow, 40_000);
            }
        }
    }
}

/// A flow that cannot be marked is dropped from as before, and one that can gets no advantage from a
/// queue that does not mark.
#[test]
fn both_ends_must_agree() {
    let codel = || Some(Discipline::CoDel(CoDel::default()));
    let capable = TcpOptions { ecn: true, ..TcpOptions::default() };
    for (options, ecn) in [(&TcpOptions::default(), true), (&capable, false)] {
        let record = run(&spec(path(codel(), ecn), bulk(2, options)));
        // Measured, 110.
        assert!(record.queues[0].dropped_pkts > 100);
        assert_eq!(record.queues[0].marked_pkts, 0);
        assert!(record.flows.iter().all(|f| f.counters.ecn_reductions == 0));
    }
}
