//! Every rule of CARD against values worked out by hand. Queueing delays are microseconds; the
//! minimum RTT is 40 ms.

#[allow(dead_code)] // each test file uses a part of it
mod common;

use common::{BASE_US, Flow, NEVER, NO_SAMPLE, params};
use knee_cc::{Ack, Event, NOTE_DELAY_BACKOFF, NOTE_ROUND, Phase};
use proptest::prelude::*;

const REDUCED: u32 = NOTE_ROUND | NOTE_DELAY_BACKOFF;

/// A decision has seen RTT 40 ms + `q_us` at the window `cwnd_pkts`, which the application has kept
/// from growing since.
fn decided(given: &[(&str, u64)], cwnd_pkts: u32, ssthresh_pkts: u32, q_us: u32) -> Flow {
    let mut f = Flow::new(params("card", given), cwnd_pkts, ssthresh_pkts);
    f.conn.cwnd_limited = 0;
    f.round(0, NEVER);
    f.round(q_us, NEVER);
    assert_eq!(f.w(), cwnd_pkts, "nothing to compare with");
    f.conn.cwnd_limited = 1;
    f
}

/// Two rounds: a period.
fn period(f: &mut Flow, q_us: u32) -> u32 {
    let first = f.round(q_us, NEVER);
    assert_eq!(first, NOTE_ROUND, "no decision in the first round");
    f.round(q_us, NEVER)
}

/// NDG > 0 where delay and window changed in the same direction: 7/8 of the window. Otherwise one
/// packet more.
#[test]
fn the_sign_of_the_gradient() {
    // (window now, delay now, window after) against 64 packets and 10 ms.
    for (w, q_us, after) in [
        (65, 10_001, 56), // +/+; 56.875
        (65, 10_000, 66), // 0/+
        (65, 9_999, 66),  // -/+
        (63, 10_001, 64), // +/-
        (63, 10_000, 64), // 0/-
        (63, 9_999, 55),  // -/-; 55.125
        (64, 10_001, 65), // W = W_prev
        (64, 9_999, 65),
    ] {
        let mut f = decided(&[], 64, 64, 10_000);
        f.conn.cwnd_pkts = w;
        f.conn.ssthresh_pkts = w;
        let notes = period(&mut f, q_us);
        assert_eq!(f.w(), after, "{w}, {q_us}");
        let reduced = after < w;
        assert_eq!(notes, if reduced { REDUCED } else { NOTE_ROUND });
        let rtt = |q: u32| BASE_US as u32 + q;
        assert_eq!(f.cc.observe(), [rtt(q_us), rtt(10_000), 64, reduced.into()]);
    }
}

/// CHD paper Table I: the delay's change alone.
#[test]
fn table_one() {
    for (w, q_us, after) in
        [(65, 10_001, 56), (65, 10_000, 66), (63, 9_999, 64), (63, 10_001, 55), (64, 10_001, 56)]
    {
        let mut f = decided(&[("gradient", 0)], 64, 64, 10_000);
        f.conn.cwnd_pkts = w;
        f.conn.ssthresh_pkts = w;
        period(&mut f, q_us);
        assert_eq!(f.w(), after, "{w}, {q_us}");
    }
}

/// One packet per period, all of it at once, whatever the number of ACKs.
#[test]
fn one_packet_per_period() {
    let mut f = decided(&[], 10, 10, 0);
    let mut windows = Vec::new();
    for _ in 0..6 {
        f.send(f.w());
        for _ in 0..f.conn.outstanding_pkts {
            f.ack(1, 0, NEVER);
        }
        windows.push(f.w());
    }
    assert_eq!(windows, [10, 11, 11, 12, 12, 13]);
    let mut f = Flow::avoiding(params("card", &[("period", 0)]), 10);
    for after in [11, 12, 13] {
        f.round(0, NEVER);
        assert_eq!(f.w(), after);
    }
}

/// beta = 7/8, rounded down, at least 2 packets; slow start does not resume.
#[test]
fn the_reduction() {
    for (w, after) in [(3, 2), (4, 3), (8, 7), (10, 8), (1 << 30, 939_524_096)] {
        let mut f = decided(&[], w - 1, w - 1, 0);
        f.conn.cwnd_pkts = w;
        f.conn.cwnd_cnt = 1;
        assert_eq!(period(&mut f, 1_000), REDUCED);
        assert_eq!((f.w(), f.conn.ssthresh_pkts, f.conn.cwnd_cnt), (after, after, 0));
    }
    let mut f = decided(&[("decrease", 500_000)], 63, 63, 0);
    f.conn.cwnd_pkts = 64;
    period(&mut f, 1_000);
    assert_eq!(f.w(), 32);
}

/// Reading CA-c: r is of the round that ends the period alone; its mean, its last or least sample.
#[test]
fn rtt_of_the_round() {
    for (stat, rtt_us) in [(0, 50_000), (1, 52_000), (2, 42_000)] {
        let mut f = decided(&[("rtt_stat", stat)], 10, 10, 0);
        f.round(900_000, NEVER);
        f.send(10);
        for q_us in [16_000, 2_000] {
            let ack = Ack { rtt_us: BASE_US + q_us, acked_pkts: 2, ..Ack::default() };
            f.cc.on_rtt(&mut f.conn, &ack);
        }
        f.ack(10, 12_000, NEVER); // (16 + 2 + 12) / 3 = 10
        assert_eq!(f.cc.observe()[0], rtt_us, "rtt_stat {stat}");
    }
}

/// Reading CA-d: a period without a sample has no gradient, and the next has nothing to compare
/// with.
#[test]
fn a_period_without_a_sample() {
    let mut f = decided(&[], 10, 10, 0);
    f.conn.cwnd_pkts = 11;
    f.round(50_000, NEVER);
    f.round(NO_SAMPLE, NEVER);
    assert_eq!((f.w(), f.cc.observe()[0]), (12, 0));
    period(&mut f, 50_000);
    assert_eq!(f.w(), 13);
    period(&mut f, 60_000);
    assert_eq!(f.w(), 11); // 13 * 7/8 = 11.4
}

#[test]
fn delayed_acks_are_left_out() {
    for (filter, rtt_us) in [(1, 40_000), (0, 55_000)] {
        // The mean of 40 and 70 ms.
        let mut f = decided(&[("delack_filter", filter), ("rtt_stat", 0)], 10, 10, 0);
        f.round(0, NEVER);
        f.send(2);
        let lone = Ack { rtt_us: BASE_US + 30_000, acked_pkts: 1, ..Ack::default() };
        f.cc.on_rtt(&mut f.conn, &lone);
        f.ack(2, 0, NEVER);
        assert_eq!(f.cc.observe()[0], rtt_us, "filter {filter}");
    }
}

/// Reading CA-e: NewReno's slow start, unless the test runs in it.
#[test]
fn slow_start() {
    for (test, after, ssthresh) in [(1, 112, 112), (0, 256, 1_000)] {
        let mut f = decided(&[("ss_test", test)], 64, 1_000, 0);
        f.conn.cwnd_limited = 0;
        f.round(1_000, NEVER);
        f.conn.cwnd_pkts = 128;
        f.conn.cwnd_limited = 1;
        f.round(1_000, NEVER);
        assert_eq!((f.w(), f.conn.ssthresh_pkts), (after, ssthresh), "ss_test {test}");
    }
    // Grows at every ACK, up to ssthresh; there is no more for the rest of the ACK.
    let mut f = decided(&[], 8, 12, 0);
    f.round(0, NEVER);
    assert_eq!(f.w(), 12);
}

/// RFC 5681 eq. 4; reading CA-f: after a recovery there is nothing to compare with.
#[test]
fn loss_recovery_and_undo() {
    let mut f = decided(&[], 20, 20, 50_000);
    f.send(20);
    assert_eq!(f.loss().0, 10);
    assert_eq!(f.cc.undo(&mut f.conn), 20);
    assert_eq!(f.ack(5, 50_000, NEVER) & NOTE_DELAY_BACKOFF, 0);
    f.ack_ending_recovery(15, 50_000, NEVER);
    assert_eq!(f.w(), 10);
    period(&mut f, 0); // -/-, were there anything to compare with
    assert_eq!(f.w(), 11);
    period(&mut f, 1);
    assert_eq!(f.w(), 9); // 9.6
}

/// So do a timeout and an idle restart.
#[test]
fn timeout_and_restart() {
    let mut f = decided(&[], 20, 20, 50_000);
    f.send(20);
    assert_eq!(f.timeout(), 10);
    for after in [2, 3, 4] {
        f.ack(1, 90_000, NEVER);
        assert_eq!(f.w(), after, "NewReno's growth while the losses are repaired");
    }
    assert_eq!(f.cc.observe(), [0; 4]);
    let mut f = decided(&[], 20, 20, 50_000);
    f.cc.on_event(&mut f.conn, Event::CwndRestart);
    f.conn.cwnd_pkts = 10;
    f.conn.ssthresh_pkts = 10;
    period(&mut f, 0);
    assert_eq!(f.w(), 11);
    // A pause that is no longer than the timeout changes nothing.
    let mut f = decided(&[], 20, 20, 50_000);
    f.cc.on_event(&mut f.conn, Event::TxStart);
    f.conn.cwnd_pkts = 10;
    f.conn.ssthresh_pkts = 10;
    period(&mut f, 0);
    assert_eq!(f.w(), 8); // 8.75
}

#[test]
fn the_application_limits() {
    let mut f = decided(&[], 10, 10, 0);
    f.conn.cwnd_limited = 0;
    for _ in 0..6 {
        f.round(0, NEVER);
    }
    assert_eq!(f.w(), 10);
}

#[test]
fn disorder_does_not_keep_a_decision_away() {
    let mut f = decided(&[], 63, 63, 0);
    f.conn.cwnd_pkts = 64;
    f.conn.phase = Phase::Disorder as u8;
    assert_eq!(period(&mut f, 1_000), REDUCED);
    assert_eq!(f.w(), 56);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The decision is the sign of Jain's formula in exact arithmetic, over all windows and times.
    #[test]
    fn decisions_are_exact(
        rtts in (1_u32..1 << 24, 1_u32..1 << 24, 0_u32..24),
        windows in (2_u32..=1 << 30, 2_u32..=1 << 30, 0_u32..30),
        near in any::<bool>(),
        jain in any::<bool>(),
        decrease in 0_u32..=1_000_000,
    ) {
        let (a, b, shift) = rtts;
        let (r_prev, r) = if near { (a, (a ^ 1).max(1)) } else { ((a >> shift).max(1), b) };
        let (a, b, shift) = windows;
        let (w_prev, w) = if near { (a, (a ^ 1).max(2)) } else { ((a >> shift).max(2), b) };
        let given = [("gradient", u64::from(jain)), ("decrease", decrease.into())];
        let mut f = Flow::new(params("card", &given), w_prev, 2);
        f.conn.cwnd_limited = 0;
        let round = |f: &mut Flow, rtt_us: u32| {
            f.conn.snd_pos = f.conn.snd_pos.wrapping_add(1);
            f.conn.ack_pos = f.conn.snd_pos;
            let ack = Ack { rtt_us: rtt_us as i32, acked_pkts: 2, ..Ack::default() };
            f.cc.on_rtt(&mut f.conn, &ack);
            f.cc.on_ack(&mut f.conn, &ack);
        };
        round(&mut f, r_prev);
        round(&mut f, r_prev);
        f.conn.cwnd_pkts = w;
        round(&mut f, r);
        round(&mut f, r);
        // NDG as printed, its denominator's sign moved to the numerator.
        let [r, r_prev, w, w_prev] = [r, r_prev, w, w_prev].map(i128::from);
        let delay = (r - r_prev) * (r + r_prev);
        let ndg = if jain { delay * (w + w_prev) * (w - w_prev) } else { delay };
        let kept = (w * i128::from(1_000_000 - decrease) / 1_000_000).max(2);
        prop_assert_eq!(i128::from(f.w()), if ndg > 0 { kept } else { w });
    }
}

// ---------------------------------------------------------------------------------------------
// Behaviour
// ---------------------------------------------------------------------------------------------

/// Alone on an ideal queue, BDP 40 packets: CARD stays about the knee. Above it delay rises with the
/// window, below it does not.
#[test]
fn stays_about_the_knee() {
    let bdp = 40;
    let mut f = Flow::avoiding(params("card", &[("delack_filter", 0)]), 2);
    let mut windows = Vec::new();
    for round in 0..2_000 {
        f.send(f.w());
        let queue = f.w().saturating_sub(bdp);
        for _ in 0..f.conn.outstanding_pkts {
            f.ack(1, queue * 1_000, NEVER);
        }
        if round >= 500 {
            windows.push(f.w());
        }
    }
    let (least, most) =
        (*windows.iter().min().expect("some"), *windows.iter().max().expect("some"));
    assert!(least >= 30 && most <= 42, "{least} ... {most}");
}
