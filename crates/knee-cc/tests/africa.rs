//! Every rule of TCP-Africa against values worked out by hand. Queueing delays are microseconds;
//! RTTmin is 40 ms, so that at q = 10 ms a fifth of the window is queued. The smoothed RTT is the
//! latest sample (`srtt_weight` = 0) unless said otherwise.
//!
//! RFC 3649 section 5, Table 12: a(118) = 2, b(118) = 0.44; a(1058) = 8, b(1058) = 0.33;
//! a(10661) = 30, b(10661) = 0.21.

#[allow(dead_code)] // each test file uses a part of it
mod common;

use common::{Flow, NEVER, NO_SAMPLE, params};
use knee_cc::{Ack, NOTE_DELAY_BACKOFF};
use proptest::prelude::*;

/// RTTmin is known; nothing is outstanding.
fn settled(given: &[(&str, u64)], cwnd_pkts: u32, ssthresh_pkts: u32) -> Flow {
    let weight = [("srtt_weight", 0)];
    let given: Vec<_> = weight.iter().chain(given).copied().collect();
    let mut f = Flow::new(params("africa", &given), cwnd_pkts, ssthresh_pkts);
    f.conn.cwnd_limited = 0;
    f.round(0, NEVER);
    f.conn.cwnd_limited = 1;
    f
}

fn avoiding(given: &[(&str, u64)], cwnd_pkts: u32) -> Flow {
    settled(given, cwnd_pkts, cwnd_pkts)
}

fn is_fast(f: &Flow) -> bool {
    f.cc.observe()[2] != 0
}

/// Fast below alpha = 1.64 packets queued, slow from there on.
#[test]
fn the_mode() {
    // W q/(40 ms + q), in 1/1000 packet.
    for (w, q_us, backlog, fast) in [
        (1_000, 0, 0, true),
        (8, 10_000, 1_600, true),
        (9, 10_000, 1_800, false),
        (41, 1_666, 1_639, true),  // 41 * 1666/41666 = 1.6393
        (41, 1_667, 1_640, false), // 1.64029
        (1_000, 65, 1_622, true),  // 1.6224
        (1_000, 66, 1_647, false), // 1.6473
    ] {
        let mut f = avoiding(&[], w);
        assert_eq!(f.round(q_us, NEVER) & NOTE_DELAY_BACKOFF, 0);
        assert_eq!((f.cc.observe()[0], is_fast(&f)), (backlog, fast), "{w}, {q_us}");
    }
    for (alpha, fast) in [(1_800_000, false), (1_801_000, true), (0, false)] {
        let mut f = avoiding(&[("alpha", alpha)], 9);
        f.round(10_000, NEVER);
        assert_eq!(is_fast(&f), fast, "alpha {alpha}");
    }
    let mut f = Flow::avoiding(params("africa", &[]), 1_000);
    f.round(NO_SAMPLE, NEVER);
    assert_eq!((f.w(), is_fast(&f)), (1_001, false), "nothing is known");
}

/// W += a(W)/W for each packet in the fast mode, 1/W in the slow one.
#[test]
fn growth() {
    for (w, fast) in [(30, 31), (118, 120), (1_058, 1_066), (10_661, 10_691)] {
        let mut f = avoiding(&[], w);
        f.round(0, NEVER);
        assert!(f.w().abs_diff(fast) <= 1, "{w}: {}", f.w());
        let mut f = avoiding(&[], w);
        f.round(100_000, NEVER);
        assert_eq!(f.w(), w + 1);
    }
    // Fractions are kept: a(500) = 4.8 to 5.1 a round trip.
    let mut f = avoiding(&[], 500);
    let mut gained = 0;
    for _ in 0..100 {
        f.round(0, NEVER);
        gained += f.w() - 500;
        f.conn.cwnd_pkts = 500;
    }
    let expected = hstcp(500.0).0 * 100.0;
    assert!((f64::from(gained) - expected).abs() <= 1.0, "{gained}, {expected}");
}

/// RFC 3649 section 5, in floating point: (a(w), b(w)).
fn hstcp(w: f64) -> (f64, f64) {
    if w <= 38.0 {
        return (1.0, 0.5);
    }
    let b = (0.5 - 0.4 * (w / 38.0).ln() / (83_000.0_f64 / 38.0).ln()).max(0.1);
    let p = 0.078 / w.powf(1.2);
    ((w * w * p * 2.0 * b / (2.0 - b)).max(1.0), b)
}

/// W = (1 - b(W)) W in either mode, rounded down, at least 2.
#[test]
fn loss_and_undo() {
    for (w, after) in [(3, 2), (20, 10), (38, 19), (118, 66), (1_058, 709), (10_661, 8_422)] {
        for q_us in [0, 100_000] {
            let mut f = avoiding(&[], w);
            f.conn.cwnd_limited = 0;
            f.round(q_us, NEVER);
            f.send(w);
            let ssthresh = f.loss().0;
            assert!(ssthresh.abs_diff(after) <= after / 50, "{w}: {ssthresh}"); // b has two digits
            assert_eq!(ssthresh, ((1.0 - hstcp(w.into()).1) * f64::from(w)).max(2.0) as u32);
            assert_eq!(f.cc.undo(&mut f.conn), w);
        }
    }
}

/// The mode changes at any ACK.
#[test]
fn every_ack_chooses() {
    let mut f = avoiding(&[], 1_000);
    f.send(1_000);
    for (q_us, fast) in [(0, true), (50_000, false), (0, true)] {
        f.ack(2, q_us, NEVER);
        assert_eq!((is_fast(&f), f.cc.observe()[1] > 7_000), (fast, fast));
    }
}

/// Weights 7/8 and 1/8.
#[test]
fn the_smoothed_rtt() {
    let mut f = Flow::avoiding(params("africa", &[]), 100);
    f.conn.cwnd_limited = 0;
    for (q_us, srtt_us) in [(0, 40_000), (80_000, 50_000), (0, 48_750)] {
        f.round(q_us, NEVER);
        assert_eq!(f.cc.observe()[3], srtt_us);
    }
}

#[test]
fn delayed_acks_are_left_out() {
    for (filter, srtt_us) in [(1, 40_000), (0, 70_000)] {
        let mut f = avoiding(&[("delack_filter", filter)], 64);
        let lone = Ack { rtt_us: 70_000, acked_pkts: 1, ..Ack::default() };
        f.cc.on_rtt(&mut f.conn, &lone);
        assert_eq!(f.cc.observe()[3], srtt_us, "filter {filter}");
    }
}

/// NewReno's slow start, whatever the delay; the rest of an ACK goes to congestion avoidance.
#[test]
fn slow_start() {
    for q_us in [0, 100_000] {
        let mut f = settled(&[], 20, 100);
        f.round(q_us, NEVER);
        assert_eq!(f.w(), 40);
        let mut f = settled(&[], 20, 25);
        f.round(q_us, NEVER); // 5 to ssthresh, 15 of the 25 that make +1
        assert_eq!((f.w(), f.conn.cwnd_cnt), (25, 15));
    }
}

/// A timeout halves, whatever b(W) is.
#[test]
fn timeout() {
    let mut f = avoiding(&[], 10_000);
    f.send(10_000);
    assert_eq!(f.timeout(), 5_000);
    f.ack(1, 0, NEVER);
    assert_eq!(f.w(), 2);
}

#[test]
fn the_application_limits() {
    for ssthresh in [10, 100_000] {
        let mut f = settled(&[], 10_000, ssthresh);
        f.conn.cwnd_limited = 0;
        f.round(0, NEVER);
        assert_eq!(f.w(), 10_000);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The mode is that of exact arithmetic on the latest sample, over all windows, delays and alpha
    /// (in 1/1000 packet).
    #[test]
    fn the_mode_is_exact(
        (base, over) in (1_u32..8_000_000, 0_u32..8_000_000),
        shift in 0_u32..24,
        (window, fewer) in (2_u32..=1 << 30, 0_u32..30),
        alpha in prop_oneof![Just(1_640_u64), 0_u64..=1_000_000],
    ) {
        let (window, over) = ((window >> fewer).max(2), over >> shift);
        let given = [("srtt_weight", 0), ("alpha", alpha * 1_000)];
        let mut f = Flow::avoiding(params("africa", &given), window);
        for rtt_us in [base, base + over] {
            let ack = Ack { rtt_us: rtt_us as i32, acked_pkts: 2, ..Ack::default() };
            f.cc.on_rtt(&mut f.conn, &ack);
        }
        let queued_rtt = u128::from(window) * u128::from(over) * 1_000;
        prop_assert_eq!(is_fast(&f), queued_rtt < u128::from(alpha) * u128::from(base + over));
    }

    /// Growth and decrease are HighSpeed TCP's over all windows that one ACK can acknowledge.
    #[test]
    fn functions_over_their_range((window, fewer) in (2_u32..=1 << 25, 0_u32..25)) {
        let window = (window >> fewer).max(2);
        let (a, b) = hstcp(window.into());
        let mut f = avoiding(&[], window);
        let mut lost = f.clone();
        f.round(0, NEVER);
        let grown = f64::from(f.w() - window);
        prop_assert!(grown >= (a * 0.99999 - 1e-3).floor() && grown <= (a * 1.00001 + 1e-3).floor(), "{a}, {grown}");
        let after = f64::from(lost.loss().0);
        let w = f64::from(window);
        let far = w / 65_536.0 + 1e-6;
        let exact = (1.0 - b) * w;
        prop_assert!(after >= (exact - far).floor().max(2.0) && after <= (exact + far).floor().max(2.0));
    }
}
