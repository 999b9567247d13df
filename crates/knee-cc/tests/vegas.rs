//! Every rule of Vegas against values worked out by hand, and its decisions against exact
//! arithmetic.
//!
//! diff = cwnd (1 - baseRTT / RTT) packets; Brakmo, Peterson, IEEE JSAC 13(8). Queueing delays are
//! microseconds; baseRTT is 40 ms, so that at q = 10 ms diff = cwnd / 5.

#[allow(dead_code)] // each test file uses a part of it
mod common;

use common::{BASE_US, Flow, NEVER, NO_SAMPLE, params};
use knee_cc::{Ack, NOTE_DELAY_BACKOFF, NOTE_ROUND, Phase};
use proptest::prelude::*;

const REDUCED: u32 = NOTE_ROUND | NOTE_DELAY_BACKOFF;

/// baseRTT is known, nothing is outstanding, and the next ACK ends a round.
fn settled(given: &[(&str, u64)], cwnd_pkts: u32, ssthresh_pkts: u32) -> Flow {
    let mut f = Flow::new(params("vegas", given), cwnd_pkts, ssthresh_pkts);
    f.conn.cwnd_limited = 0;
    f.round(0, NEVER);
    f.conn.cwnd_limited = 1;
    f
}

fn avoiding(given: &[(&str, u64)], cwnd_pkts: u32) -> Flow {
    settled(given, cwnd_pkts, cwnd_pkts)
}

/// A window of packets, each acknowledged by itself, with these queueing delays in turn.
fn paced_round(f: &mut Flow, q_us: &[u32]) -> u32 {
    f.send(f.w());
    let mut notes = 0;
    for i in 0..f.conn.outstanding_pkts as usize {
        notes |= f.ack(1, q_us[i % q_us.len()], NEVER);
    }
    notes
}

fn is_growing(f: &Flow) -> bool {
    f.cc.observe()[3] != 0
}

// ---------------------------------------------------------------------------------------------
// Congestion avoidance
// ---------------------------------------------------------------------------------------------

/// diff < 1: +1; diff > 3: -1; else hold.
#[test]
fn alpha_and_beta() {
    // (cwnd, q, window after a round in one ACK, diff in 1/1000)
    for (cwnd, q_us, after, diff) in [
        (10, 0, 11, 0),
        (4, 10_000, 5, 800),
        (5, 10_000, 5, 1_000), // = alpha
        (5, 9_999, 6, 999),    // 5 * 9999 / 49999 = 0.99992
        (6, 10_000, 6, 1_200),
        (15, 10_000, 15, 3_000), // = beta
        (15, 10_001, 14, 3_000), // 15 * 10001 / 50001 = 3.00024
        (16, 10_000, 15, 3_200),
        (100, 40_000, 99, 50_000),       // only one less, whatever diff
        (1_000_000, 2, 999_999, 49_997), // 10^6 * 2 / 40002
    ] {
        let mut f = avoiding(&[], cwnd);
        let notes = f.round(q_us, NEVER);
        assert_eq!(f.w(), after, "cwnd {cwnd}, q {q_us}");
        assert_eq!(f.cc.observe()[..3], [BASE_US as u32 + q_us, BASE_US as u32, diff]);
        assert_eq!(notes, if after < cwnd { REDUCED } else { NOTE_ROUND });
    }
}

#[test]
fn alpha_and_beta_are_parameters() {
    // Linux: 2 and 4.
    let linux = [("alpha", 2), ("beta", 4)];
    for (cwnd, after) in [(9, 10), (10, 10), (20, 20), (21, 20)] {
        let mut f = avoiding(&linux, cwnd);
        f.round(10_000, NEVER);
        assert_eq!(f.w(), after, "cwnd {cwnd}");
    }
    // diff is never below 0.
    let mut f = avoiding(&[("alpha", 0)], 10);
    f.round(0, NEVER);
    assert_eq!(f.w(), 10);
}

/// +1 over the next round trip: 1/cwnd for each packet that it acknowledges.
#[test]
fn growth_is_spread_over_the_round() {
    let mut f = avoiding(&[], 10);
    f.send(10);
    f.ack(1, 0, NEVER); // ends a round and is the first packet of the next
    for _ in 1..9 {
        f.ack(1, 0, NEVER);
        assert_eq!(f.w(), 10);
    }
    f.ack(1, 0, NEVER);
    assert_eq!(f.w(), 11);
}

/// Five rounds without delay add five packets, less one that is on its way.
#[test]
fn one_packet_per_round() {
    let mut f = avoiding(&[], 10);
    for after in [11, 12, 13, 14, 15] {
        paced_round(&mut f, &[0]);
        assert_eq!(f.w(), after);
    }
}

/// A decrease never ends below 2, and does not claim to be one where nothing is left to reduce.
#[test]
fn the_floor() {
    let mut f = avoiding(&[("alpha", 0), ("beta", 1)], 3);
    f.conn.cwnd_cnt = 2;
    assert_eq!(f.round(80_000, NEVER), REDUCED); // 3 * 80 / 120 = 2 > 1
    assert_eq!((f.w(), f.conn.ssthresh_pkts, f.conn.cwnd_cnt), (2, 2, 0));
    assert_eq!(f.round(80_000, NEVER), NOTE_ROUND); // 1.33 > 1
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (2, 2));
}

/// A decrease is followed by congestion avoidance still.
#[test]
fn ssthresh_falls_with_the_window() {
    let mut f = avoiding(&[], 20);
    for after in [19, 18, 17] {
        f.round(20_000, NEVER); // cwnd / 3
        assert_eq!((f.w(), f.conn.ssthresh_pkts), (after, after));
    }
    f.round(0, NEVER);
    assert_eq!(f.w(), 18, "slow start would have doubled it");
    // A lower ssthresh stays.
    let mut f = settled(&[], 20, 7);
    f.round(20_000, NEVER);
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (19, 7));
}

/// The mean of the round's samples, or the least.
#[test]
fn statistic_of_the_round() {
    // 40, 70, 40 ms: mean 50, diff = 90 / 5 = 18; least 40, diff = 0.
    for (stat, rtt_us, after) in [(0, 50_000, 89), (1, 40_000, 90)] {
        let mut f = Flow::avoiding(params("vegas", &[("rtt_stat", stat)]), 90);
        f.conn.cwnd_limited = 0;
        ack(&mut f, 40_000, true);
        ack(&mut f, 40_000, false);
        ack(&mut f, 70_000, false);
        assert_eq!(f.cc.observe()[0], 40_000, "of the round before");
        ack(&mut f, 40_000, true);
        assert_eq!((f.cc.observe()[0], f.w()), (rtt_us, after));
    }
}

/// baseRTT is the minimum RTT ever, also from the round that is judged.
#[test]
fn base_rtt_falls() {
    let mut f = avoiding(&[], 10);
    f.send(10);
    let lower = Ack { rtt_us: 20_000, acked_pkts: 2, random: NEVER, ..Ack::default() };
    f.cc.on_rtt(&mut f.conn, &lower);
    // Mean of 20 and 60 ms: 40 ms. diff = 10 (1 - 20 / 40) = 5.
    f.ack(10, 20_000, NEVER);
    assert_eq!(f.cc.observe()[..3], [40_000, 20_000, 5_000]);
    assert_eq!(f.w(), 9);
}

/// Without a sample there is nothing to judge; the next round grows.
#[test]
fn a_round_without_a_sample() {
    let mut f = avoiding(&[], 16);
    f.round(10_000, NEVER);
    assert_eq!((f.w(), is_growing(&f)), (15, false));
    assert_eq!(f.round(NO_SAMPLE, NEVER), NOTE_ROUND);
    assert_eq!((f.w(), is_growing(&f)), (16, true));
    assert_eq!(f.cc.observe()[0], 50_000, "the last one measured");
}

/// A lone packet's ACK among those for several may have waited for the receiver.
#[test]
fn delayed_acks_are_left_out() {
    for (filter, rtt_us) in [(1, 40_000), (0, 55_000)] {
        let mut f = avoiding(&[("delack_filter", filter)], 10);
        f.send(10);
        f.ack(2, 0, NEVER); // ends a round
        f.ack(1, 30_000, NEVER);
        f.send(3);
        f.ack(10, 0, NEVER);
        assert_eq!(f.cc.observe()[0], rtt_us, "filter {filter}");
    }
}

// ---------------------------------------------------------------------------------------------
// Slow start
// ---------------------------------------------------------------------------------------------

/// Doubles in every other round, or in every one.
#[test]
fn slow_start_grows_in_every_other_round() {
    for (growth, windows) in [(0, [8, 8, 16, 16, 32]), (1, [8, 16, 32, 64, 128])] {
        let mut f = Flow::slow_start(params("vegas", &[("ss_growth", growth)]), 4);
        for after in windows {
            paced_round(&mut f, &[0]);
            assert_eq!(f.w(), after, "ss_growth {growth}");
        }
    }
}

/// Slow start ends where diff > gamma = 1, strictly.
#[test]
fn slow_start_ends_at_gamma() {
    // ss_exit linux: floor(cwnd * 40 / 50) + 1; ns2: floor(7/8 cwnd), ssthresh 2.
    for (cwnd, linux, ns2) in [
        (6, (5, 5), (5, 2)),      // diff 1.2; 4.8; 5.25
        (20, (17, 17), (17, 2)),  // 16; 17.5
        (100, (81, 81), (87, 2)), // 80; 87.5
        (101, (81, 81), (88, 2)), // 80.8; 88.375
    ] {
        for (exit, after) in [(1, linux), (0, ns2)] {
            let mut f = settled(&[("ss_exit", exit)], cwnd, 1_000);
            assert_eq!(f.round(10_000, NEVER), REDUCED);
            assert_eq!((f.w(), f.conn.ssthresh_pkts), after, "cwnd {cwnd}, ss_exit {exit}");
            assert!(!is_growing(&f));
        }
    }
    // diff = 1: continues.
    let mut f = settled(&[], 5, 1_000);
    assert_eq!(f.round(10_000, NEVER), NOTE_ROUND);
    assert_eq!(f.conn.ssthresh_pkts, 1_000);
    // gamma = 5, diff = 5: continues; 5.2: ends.
    for (cwnd, ends) in [(25, false), (26, true)] {
        let mut f = settled(&[("gamma", 5)], cwnd, 1_000);
        assert_eq!(f.round(10_000, NEVER) & NOTE_DELAY_BACKOFF != 0, ends, "cwnd {cwnd}");
    }
}

/// gamma = 0: "cwnd baseRTT / RTT + 1" may not be less than the window; then nothing was reduced.
#[test]
fn leaving_slow_start_never_raises_the_window() {
    let mut f = settled(&[("gamma", 0)], 5, 1_000);
    assert_eq!(f.round(1_000, NEVER), NOTE_ROUND); // 5 * 40 / 41 = 4.88
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (5, 5));
    let mut f = settled(&[("ss_exit", 0), ("gamma", 0)], 2, 1_000);
    assert_eq!(f.round(1_000, NEVER), NOTE_ROUND); // 1.75
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (2, 2));
}

/// Slow start that meets ssthresh in mid-round continues as congestion avoidance.
#[test]
fn slow_start_meets_ssthresh() {
    let mut f = Flow::new(params("vegas", &[]), 8, 10);
    f.send(8);
    f.ack(1, 0, NEVER);
    assert_eq!(f.w(), 9);
    f.ack(6, 0, NEVER); // 1 to ssthresh, 5 of the 10 that make the next +1
    assert_eq!((f.w(), f.conn.cwnd_cnt), (10, 5));
}

#[test]
fn the_application_limits() {
    for ssthresh in [5, 1_000] {
        let mut f = settled(&[], 10, ssthresh);
        f.conn.cwnd_limited = 0;
        for _ in 0..4 {
            f.round(0, NEVER);
            assert_eq!(f.w(), 10);
        }
    }
}

// ---------------------------------------------------------------------------------------------
// Loss, timeout, phases
// ---------------------------------------------------------------------------------------------

/// RFC 5681 eq. 4.
#[test]
fn loss_and_undo() {
    let mut f = avoiding(&[], 20);
    f.send(20);
    assert_eq!(f.loss().0, 10);
    assert_eq!(f.cc.undo(&mut f.conn), 20);
}

/// Decisions wait for the end of recovery; the round that it overlapped decides nothing.
#[test]
fn recovery() {
    let mut f = avoiding(&[], 20);
    f.send(20);
    f.loss();
    f.ack(5, 80_000, NEVER);
    f.ack_ending_recovery(15, 80_000, NEVER);
    assert_eq!(f.w(), 10);
    // The next round is judged by its own samples: diff = 10 / 5 = 2 holds.
    f.round(10_000, NEVER);
    assert_eq!((f.w(), f.cc.observe()[0]), (10, 50_000));
}

/// VG-d: the round after a recovery holds the window, or grows it: 15 packets of a window of 10.
#[test]
fn round_after_a_recovery() {
    for (after_recovery, after) in [(0, 10), (1, 11)] {
        let mut f = avoiding(&[("after_recovery", after_recovery)], 20);
        f.send(20);
        f.loss();
        f.ack(5, 80_000, NEVER);
        f.ack_ending_recovery(15, 80_000, NEVER);
        assert_eq!((f.w(), is_growing(&f)), (after, after_recovery == 1));
        // Its own samples then decide: diff = 2 or 2.2 holds.
        f.round(10_000, NEVER);
        assert_eq!(f.w(), after);
    }
}

#[test]
fn disorder_does_not_keep_a_decision_away() {
    let mut f = avoiding(&[], 16);
    f.conn.phase = Phase::Disorder as u8;
    assert_eq!(f.round(10_000, NEVER), REDUCED);
    assert_eq!(f.w(), 15);
}

/// After a timeout NewReno's growth at every ACK, whatever was decided before and whatever the delay;
/// Vegas again after it.
#[test]
fn timeout() {
    let mut f = avoiding(&[("gamma", 0), ("delack_filter", 0)], 12);
    f.round(10_000, NEVER); // 2.4: hold
    assert!(!is_growing(&f));
    f.send(12);
    assert_eq!(f.timeout(), 6);
    let mut rounds = 0;
    for after in [2, 3, 4, 5, 6] {
        rounds += f.ack(1, 80_000, NEVER) & NOTE_ROUND;
        assert_eq!((f.w(), f.conn.ssthresh_pkts), (after, 6));
    }
    assert_eq!(rounds, 1, "one of these ACKs could have decided");
    f.conn.phase = Phase::Open as u8;
    f.conn.cwnd_pkts = 5; // of which 7 are outstanding
    assert_eq!(f.round(80_000, NEVER), REDUCED); // slow start: 5 * 40 / 120 + 1 = 2.67
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (2, 2));
}

// ---------------------------------------------------------------------------------------------
// Exactness
// ---------------------------------------------------------------------------------------------

/// One ACK of one packet, which is outstanding or not.
fn ack(f: &mut Flow, rtt_us: u32, ends_round: bool) -> u32 {
    if ends_round {
        f.conn.snd_pos = f.conn.snd_pos.wrapping_add(1);
        f.conn.ack_pos = f.conn.snd_pos;
    }
    let rtt_us = i32::try_from(rtt_us).expect("a time");
    let ack = Ack { rtt_us, acked_pkts: 1, random: NEVER, ..Ack::default() };
    f.cc.on_rtt(&mut f.conn, &ack);
    let notes = f.conn.notes;
    f.cc.on_ack(&mut f.conn, &ack);
    notes | f.conn.notes
}

fn times() -> impl Strategy<Value = (u32, u32)> {
    let any = || (1_u32..1 << 24, 0_u32..24).prop_map(|(t, shift)| (t >> shift).max(1));
    (any(), any()).prop_map(|(base, over)| (base, (base + over).min((1 << 24) - 1)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// With one sample per round there is no rounding: the decision is that of exact arithmetic,
    /// for every window, time and parameter.
    #[test]
    fn decisions_are_exact(
        (base, rtt) in times(),
        (window, shift) in (2_u32..=1 << 30, 0_u32..30),
        near in prop_oneof![Just(None), (-2_i64..=2).prop_map(Some)],
        (alpha, above) in (0_u32..1_000, 1_u32..1_000),
        slow_start in any::<bool>(),
    ) {
        // Windows at which diff is about alpha or beta, too.
        let bound = if alpha % 2 == 0 { alpha } else { alpha + above };
        let window = match near {
            Some(off) if rtt > base => {
                let at = u64::from(bound) * u64::from(rtt) / u64::from(rtt - base);
                at.saturating_add_signed(off).clamp(2, 1 << 30) as u32
            }
            _ => (window >> shift).max(2),
        };
        let given = [("alpha", alpha.into()), ("beta", (alpha + above).into()), ("gamma", bound.into())];
        let ssthresh = if slow_start { u32::MAX >> 1 } else { 2 };
        let mut f = Flow::new(params("vegas", &given), window, ssthresh);
        f.conn.cwnd_limited = 0;
        ack(&mut f, base, true);
        f.conn.cwnd_pkts = window;
        f.conn.ssthresh_pkts = ssthresh;
        ack(&mut f, rtt, true);

        let diff_rtt = u128::from(window) * u128::from(rtt - base);
        let times_rtt = |pkts: u32| u128::from(pkts) * u128::from(rtt);
        let thousandths = (diff_rtt * 1_000 / u128::from(rtt)).min(u128::from(u32::MAX));
        prop_assert_eq!(u128::from(f.cc.observe()[2]), thousandths);
        if slow_start {
            let ends = diff_rtt > times_rtt(bound);
            let carried = u64::from(window) * u64::from(base) / u64::from(rtt) + 1;
            let after = if ends { carried.min(window.into()).max(2) } else { window.into() };
            prop_assert_eq!(u64::from(f.w()), after);
            prop_assert_eq!(f.conn.ssthresh_pkts, if ends { after as u32 } else { ssthresh });
        } else {
            prop_assert_eq!(is_growing(&f), diff_rtt < times_rtt(alpha));
            let less = diff_rtt > times_rtt(alpha + above) && window > 2;
            prop_assert_eq!(f.w(), window - u32::from(less));
        }
    }

    /// The mean of a round's samples is rounded down to 1/256 us; diff is short by no more than the effect
    /// of that.
    #[test]
    fn the_mean_is_within_its_bound(
        base in 1_000_u32..1_000_000,
        over in prop::collection::vec(0_u32..100_000, 1..60),
        window in 2_u32..1_000_000,
    ) {
        let mut f = Flow::new(params("vegas", &[]), window, 2);
        f.conn.cwnd_limited = 0;
        ack(&mut f, base, true);
        f.conn.cwnd_pkts = window;
        for (i, over_us) in over.iter().enumerate() {
            ack(&mut f, base + over_us, i + 1 == over.len());
        }
        let [window, base, n] = [window, base, over.len() as u32].map(f64::from);
        let rtt = base + over.iter().map(|v| f64::from(*v)).sum::<f64>() / n;
        let diff = window * (1.0 - base / rtt);
        let short = diff - f64::from(f.cc.observe()[2]) / 1_000.0;
        let most = window * base / (256.0 * rtt * (rtt - 1.0 / 256.0)) + 0.001;
        prop_assert!((-1e-6..=most + 1e-6).contains(&short), "short by {short}, at most {most}");
    }
}

// ---------------------------------------------------------------------------------------------
// Equilibrium
// ---------------------------------------------------------------------------------------------

/// N flows with the right baseRTT keep alpha N to beta N packets queued: the prediction behind
/// Fig. 1 of the delay-based AIMD paper (5 Mb/s, 30 ms, 2, 8 and 16 flows), here in lockstep rounds
/// over an ideal queue of 1000-byte packets.
#[test]
fn the_queue_grows_with_the_number_of_flows() {
    let base_us = 30_000.0;
    let per_us = 5e6 / 8_000.0 / 1e6;
    let queued = |n: u32| {
        let mut flows: Vec<_> = (0..n).map(|_| Flow::slow_start(params("vegas", &[]), 2)).collect();
        for f in &mut flows {
            ack(f, 30_000, true);
        }
        let backlog = |flows: &[Flow]| {
            let windows: u32 = flows.iter().map(Flow::w).sum();
            (f64::from(windows) - base_us * per_us).max(0.0)
        };
        for _ in 0..300 {
            let rtt_us = (base_us + backlog(&flows) / per_us) as u32;
            for f in &mut flows {
                f.send(f.w());
                let rtt_us = i32::try_from(rtt_us).expect("a time");
                for _ in 0..f.w() {
                    f.conn.ack_pos = f.conn.ack_pos.wrapping_add(1);
                    let ack = Ack { rtt_us, acked_pkts: 1, random: NEVER, ..Ack::default() };
                    f.cc.on_rtt(&mut f.conn, &ack);
                    f.cc.on_ack(&mut f.conn, &ack);
                }
            }
        }
        backlog(&flows)
    };
    let [two, eight, sixteen] = [2, 8, 16].map(queued);
    for (n, queue) in [(2.0, two), (8.0, eight), (16.0, sixteen)] {
        assert!((n..=3.0 * n).contains(&queue), "{n} flows: {queue} packets");
    }
    assert!(sixteen >= 4.0 * two, "{two}, {eight}, {sixteen}");
}
