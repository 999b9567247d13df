//! Every rule of PERT against values worked out by hand, and its fixed point against real numbers.
//!
//! "F-TCP paper": Sansa-Otim, Rai, van der Hulst, section III-B and Fig. 2a, where the response
//! curve is. The smoothing weight 0.99 and the decrease 0.35 are from public implementations of
//! PERT. Queueing delays are microseconds.

#[allow(dead_code)] // each test file uses a part of it
mod common;

use common::{ALWAYS, BASE_US, Flow, NEVER, NO_SAMPLE, params};
use knee_cc::{Ack, NOTE_DELAY_BACKOFF, Phase};
use proptest::prelude::*;

/// q is that of the sample itself.
const RAW: (&str, u64) = ("srtt_weight", 0);
/// Largest RTT that an algorithm takes in.
const TIME_MAX_US: u32 = (1 << 24) - 1;
/// Largest queueing delay that a sample of the test connection can carry.
const Q_MAX_US: u32 = TIME_MAX_US - BASE_US as u32;

/// In congestion avoidance with `cwnd_pkts`, RTTmin known, q = 0, and much outstanding.
fn settled(given: &[(&str, u64)], cwnd_pkts: u32) -> Flow {
    let mut f = Flow::avoiding(params("pert", given), cwnd_pkts);
    f.send(1_000);
    f.conn.cwnd_limited = 0;
    f.ack(1, 0, NEVER);
    f.conn.cwnd_limited = 1;
    f
}

/// Probability of an early response at an ACK that measures `q_us`, times 2^32.
fn probability_q32(f: &Flow, q_us: u32) -> u64 {
    f.threshold(|f, random| f.ack(1, q_us, random))
}

/// f(q) in real numbers, F-TCP paper Fig. 2a.
fn curve(q: f64, tmin: f64, tmax: f64, top: f64, pmax: f64) -> f64 {
    if q <= tmin {
        0.0
    } else if q <= tmax {
        pmax * (q - tmin) / (tmax - tmin)
    } else if q < top {
        pmax + (1.0 - pmax) * (q - tmax) / (top - tmax)
    } else {
        1.0
    }
}

/// The amount by which a probability times 2^32 falls short of the exact one.
fn shortfall(probability_q32: u64, exact: f64) -> f64 {
    exact * 4_294_967_296.0 - probability_q32 as f64
}

/// Two divisions that round down.
fn rounded_down_twice(shortfall: f64) -> bool {
    (-0.001..2.0).contains(&shortfall)
}

// ---------------------------------------------------------------------------------------------
// Response curve: F-TCP paper section III-B, Fig. 2a
// ---------------------------------------------------------------------------------------------

/// Tmin, Tmax, pmax = 5 ms, 10 ms, 0.05: p = 0, 0.025, 0.05, 0.525, 1 at 5, 7.5, 10, 15, 20 ms.
#[test]
fn the_papers_curve() {
    let f = settled(&[RAW], 100);
    for (q_us, p) in [
        (0, 0.0),
        (5_000, 0.0),
        (5_001, 0.00001), // 0.05 * 1 / 5000
        (7_500, 0.025),
        (9_999, 0.04999), // 0.05 * 4999 / 5000
        (10_000, 0.05),
        (10_001, 0.050_095), // 0.05 + 0.95 / 10000
        (15_000, 0.525),
        (19_999, 0.999_905), // 0.05 + 0.95 * 9999 / 10000
        (20_000, 1.0),
        (20_001, 1.0),
        (1_000_000, 1.0),
    ] {
        let short = shortfall(probability_q32(&f, q_us), p);
        assert!(rounded_down_twice(short), "q = {q_us}: {short}");
    }
}

/// The F-TCP paper, section IV-F, needs 20 and 40 ms for 1 Gb/s and 110 ms.
#[test]
fn the_curve_for_long_fast_paths() {
    let f = settled(&[RAW, ("tmin", 20_000), ("tmax", 40_000)], 100);
    for (q_us, p) in
        [(20_000, 0.0), (30_000, 0.025), (40_000, 0.05), (60_000, 0.525), (80_000, 1.0)]
    {
        let short = shortfall(probability_q32(&f, q_us), p);
        assert!(rounded_down_twice(short), "q = {q_us}: {short}");
    }
}

#[test]
fn the_curve_is_exact_for_pmax_0_and_1() {
    let zero = settled(&[RAW, ("pmax", 0)], 100);
    assert_eq!(probability_q32(&zero, 10_000), 0);
    assert_eq!(probability_q32(&zero, 15_000), 1 << 31);
    let one = settled(&[RAW, ("pmax", 1_000_000)], 100);
    assert_eq!(probability_q32(&one, 7_500), 1 << 31);
    assert_eq!(probability_q32(&one, 10_000), 1 << 32);
    assert_eq!(probability_q32(&one, 15_000), 1 << 32);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Over every Tmin < Tmax, pmax and q, the fixed-point probability is at most 2/2^32 below the
    /// real one and never above it.
    #[test]
    fn the_curve_is_within_two_ulp_everywhere(
        tmax in 1_u32..=8_000_000,
        tmin_part in 0.0_f64..1.0,
        pmax in 0_u32..=1_000_000,
        place in 0_u32..4,
        within in 0.0_f64..1.0,
    ) {
        let tmin = (f64::from(tmax) * tmin_part) as u32;
        // Each part of the curve as often as the others, however narrow.
        let (from, to) = match place {
            0 => (0, tmin),
            1 => (tmin, tmax),
            2 => (tmax, 2 * tmax),
            _ => (2 * tmax, Q_MAX_US),
        };
        let q_us = from + (f64::from(to - from) * within).round() as u32;
        let f = settled(&[RAW, ("tmin", tmin.into()), ("tmax", tmax.into()), ("pmax", pmax.into())], 9);
        let [tmin, tmax] = [tmin, tmax].map(f64::from);
        let exact = curve(f64::from(q_us), tmin, tmax, 2.0 * tmax, f64::from(pmax) / 1e6);
        let short = shortfall(probability_q32(&f, q_us), exact);
        prop_assert!(rounded_down_twice(short), "q = {q_us}: {short}");
    }
}

// ---------------------------------------------------------------------------------------------
// Smoothed delay: S <- 0.99 S + 0.01 r, q = S - RTTmin
// ---------------------------------------------------------------------------------------------

/// One ACK that measures `rtt_us` and leads to nothing.
fn sample(f: &mut Flow, rtt_us: i32) {
    let ack = Ack { rtt_us, acked_pkts: 1, random: NEVER, ..Ack::default() };
    f.cc.on_rtt(&mut f.conn, &ack);
}

/// S, microseconds.
fn srtt_us(f: &Flow) -> u32 {
    f.cc.observe()[2]
}

/// S = 40 ms at first. Three samples of 50 ms: S = 40 + 10 (1 - 0.99^n) = 40.1, 40.199, 40.29701.
#[test]
fn smoothing_by_hand() {
    let mut f = Flow::avoiding(params("pert", &[]), 100);
    assert_eq!(srtt_us(&f), 0, "no sample yet");
    sample(&mut f, 40_000);
    assert_eq!((srtt_us(&f), f.cc.observe()[0]), (40_000, 0));
    for (s_us, q_us) in [(40_100, 100), (40_199, 199), (40_297, 297)] {
        sample(&mut f, 50_000);
        assert_eq!((srtt_us(&f), f.cc.observe()[0]), (s_us, q_us));
    }
    // RTTmin = 30 ms: S = 0.99 * 40.29701 + 0.01 * 30 = 40.19404 ms, q = 10.194 ms.
    sample(&mut f, 30_000);
    assert_eq!((srtt_us(&f), f.cc.observe()[0]), (40_194, 10_194));
}

/// A step of delay is seen after its time constant: 1 - 0.99^100 = 0.63397 of 20 ms.
#[test]
fn smoothing_over_a_hundred_samples() {
    let mut f = Flow::avoiding(params("pert", &[]), 100);
    sample(&mut f, 40_000);
    for _ in 0..100 {
        sample(&mut f, 60_000);
    }
    assert_eq!(f.cc.observe()[0], 12_679); // 12679.35
}

/// Samples are taken as 1 us ... 2^24 - 1 us; ACKs without one leave S as it is.
#[test]
fn smoothing_of_extreme_samples() {
    let mut f = Flow::avoiding(params("pert", &[RAW]), 100);
    sample(&mut f, 0);
    assert_eq!(srtt_us(&f), 1);
    sample(&mut f, i32::MAX);
    assert_eq!((srtt_us(&f), f.cc.observe()[0]), (TIME_MAX_US, TIME_MAX_US - 1));
    sample(&mut f, -1);
    assert_eq!(srtt_us(&f), TIME_MAX_US);
}

/// With ACKs for several packets about, the lone packet's ACK may have waited for the receiver.
#[test]
fn smoothing_leaves_out_delayed_acks() {
    for (filter, q_us) in [(1, 0), (0, 30_000)] {
        let mut f = settled(&[RAW, ("delack_filter", filter)], 100);
        f.ack(2, 0, NEVER);
        f.ack(1, 30_000, NEVER);
        assert_eq!(f.cc.observe()[0], q_us, "filter {filter}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// For every weight, S stays within 1/(512 (1 - weight)) us of the recursion in real numbers.
    /// The observed value is also rounded to whole microseconds.
    #[test]
    fn smoothing_is_within_its_bound(
        weight_ppm in prop_oneof![Just(990_000_u32), Just(999_000), 0_u32..=999_000],
        rtts in prop::collection::vec(
            prop_oneof![20_000_i32..120_000, 40_000_i32..40_020, 1_i32..1 << 24], 2_000),
    ) {
        let mut f = Flow::avoiding(params("pert", &[("srtt_weight", weight_ppm.into())]), 100);
        let weight = f64::from(weight_ppm) / 1e6;
        let bound = 0.5 + 1.0 / (512.0 * (1.0 - weight)) + 1e-6;
        let mut exact = f64::from(rtts[0]);
        for rtt_us in rtts {
            exact = weight * exact + (1.0 - weight) * f64::from(rtt_us);
            sample(&mut f, rtt_us);
            let error = f64::from(srtt_us(&f)) - exact;
            prop_assert!(error.abs() <= bound, "weight {weight}: {error}");
        }
    }
}

// ---------------------------------------------------------------------------------------------
// Early response
// ---------------------------------------------------------------------------------------------

/// cwnd <- (1 - 0.35) cwnd, rounded down, at least 2; ssthresh <- cwnd.
#[test]
fn a_response_takes_35_percent() {
    for (before, after) in
        [(100, 65), (99, 64), (10, 6), (4, 2), (3, 2), (2, 2), (1 << 30, 697_932_185)]
    {
        let mut f = settled(&[RAW], before);
        f.conn.cwnd_cnt = 1;
        let notes = f.ack(1, 20_000, ALWAYS);
        assert_eq!((f.w(), f.conn.ssthresh_pkts), (after, after), "from {before}");
        assert_eq!((f.conn.cwnd_cnt, notes), (0, NOTE_DELAY_BACKOFF));
    }
}

#[test]
fn the_decrease_is_a_parameter() {
    for (decrease, after) in [(0, 100), (1, 99), (500_000, 50), (999_999, 2), (1_000_000, 2)] {
        let mut f = settled(&[RAW, ("decrease", decrease)], 100);
        f.ack(1, 20_000, ALWAYS);
        assert_eq!(f.w(), after, "decrease {decrease}");
    }
}

/// Nothing to test before the first sample; afterwards an ACK without one is tested as the last.
#[test]
fn acks_without_a_sample() {
    let mut f = Flow::avoiding(params("pert", &[RAW]), 100);
    f.send(100);
    assert_eq!(f.ack(1, NO_SAMPLE, ALWAYS), 0);
    assert_eq!(f.w(), 100);
    f.ack(1, 0, NEVER);
    f.ack(1, 15_000, NEVER);
    let threshold = f.threshold(|f, random| f.ack(1, NO_SAMPLE, random));
    assert!(rounded_down_twice(shortfall(threshold, 0.525)));
}

/// "Once per RTT": not before the highest position that was sent at the response is acknowledged.
#[test]
fn one_response_per_round_trip() {
    let mut f = settled(&[RAW], 100); // 999 outstanding
    assert_eq!(f.ack(1, 20_000, ALWAYS), NOTE_DELAY_BACKOFF);
    f.send(50); // after the response
    assert_eq!(f.ack(1, 20_000, ALWAYS), 0);
    assert_eq!(f.ack(996, 20_000, ALWAYS), 0, "one of those sent before is outstanding");
    assert_eq!(f.ack(1, 20_000, ALWAYS), NOTE_DELAY_BACKOFF);
}

#[test]
fn no_holdoff() {
    let mut f = settled(&[RAW, ("holdoff", 0)], 100);
    for after in [65, 42, 27] {
        assert_eq!(f.ack(1, 20_000, ALWAYS), NOTE_DELAY_BACKOFF);
        assert_eq!(f.w(), after);
    }
}

/// Positions wrap at 2^32; 2^31 packets after a response its position must not lie ahead again.
#[test]
fn the_gate_survives_wrapping_positions() {
    let given = [RAW, ("delack_filter", 0)];
    for pos in [u32::MAX - 5, i32::MAX as u32 - 5, 0] {
        let mut f = Flow::at(pos, params("pert", &given), 10, 10);
        f.send(10);
        f.ack(1, 0, NEVER);
        assert_eq!(f.ack(1, 20_000, ALWAYS), NOTE_DELAY_BACKOFF, "at {pos}");
        assert_eq!(f.ack(7, 20_000, ALWAYS), 0, "at {pos}");
        f.ack(1, 0, NEVER);
        for _ in 0..5 {
            f.send(1 << 29);
            f.ack(1 << 29, 0, NEVER);
            f.send(1);
            let mut then = f.clone();
            assert_eq!(then.ack(1, 20_000, ALWAYS), NOTE_DELAY_BACKOFF, "at {pos}");
            f.ack(1, 0, NEVER);
        }
    }
}

/// Only for cwnd > ssthresh, reading PE-a: none in slow start, unless `ss_test` asks for it. At
/// cwnd = ssthresh there is one.
#[test]
fn slow_start() {
    for (ss_test, cwnd, expected) in
        [(0, 10, 0), (0, 49, 0), (0, 50, NOTE_DELAY_BACKOFF), (1, 10, NOTE_DELAY_BACKOFF)]
    {
        let mut f = Flow::new(params("pert", &[RAW, ("ss_test", ss_test)]), cwnd, 50);
        f.send(100);
        f.ack(1, NO_SAMPLE, NEVER);
        f.conn.cwnd_pkts = cwnd;
        sample(&mut f, BASE_US);
        assert_eq!(f.ack(1, 20_000, ALWAYS), expected, "ss_test {ss_test}, cwnd {cwnd}");
        if expected != 0 {
            assert_eq!(f.conn.ssthresh_pkts, f.w(), "slow start is over");
        } else {
            assert_eq!(f.w(), cwnd + 1);
        }
    }
}

/// None in recovery or after a timeout; an undecided disorder does not keep one away.
#[test]
fn phases() {
    for (phase, expected) in [
        (Phase::Open, NOTE_DELAY_BACKOFF),
        (Phase::Disorder, NOTE_DELAY_BACKOFF),
        (Phase::Cwr, 0),
        (Phase::Recovery, 0),
        (Phase::Loss, 0),
    ] {
        let mut f = settled(&[RAW], 100);
        f.conn.phase = phase as u8;
        assert_eq!(f.ack(1, 20_000, ALWAYS), expected, "{phase:?}");
    }
}

// ---------------------------------------------------------------------------------------------
// Otherwise NewReno: RFC 5681
// ---------------------------------------------------------------------------------------------

/// +1 per packet in slow start, +1 per window in congestion avoidance, also where the delay is
/// high and the draw spares the flow.
#[test]
fn growth() {
    let mut f = Flow::slow_start(params("pert", &[RAW]), 10);
    f.send(10);
    for _ in 0..10 {
        f.ack(1, 0, NEVER);
    }
    assert_eq!(f.w(), 20);
    let mut f = settled(&[RAW], 10);
    for _ in 0..9 {
        f.ack(1, 15_000, NEVER);
    }
    assert_eq!(f.w(), 10);
    f.ack(1, 15_000, NEVER);
    assert_eq!(f.w(), 11);
    f.conn.cwnd_limited = 0;
    f.ack(11, 0, NEVER);
    assert_eq!(f.w(), 11, "the application limits");
}

/// RFC 5681 eq. 4, for losses and timeouts; undo gives the window before.
#[test]
fn loss_timeout_and_undo() {
    let mut f = settled(&[RAW], 100);
    assert_eq!(f.loss().0, 50);
    assert_eq!(f.cc.undo(&mut f.conn), 100);
    let mut f = settled(&[RAW], 100);
    f.ack(990, 0, NEVER); // 9 outstanding
    assert_eq!(f.timeout(), 4);
}
