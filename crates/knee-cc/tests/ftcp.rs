//! F-TCP: every rule of Algorithm 1 and Fig. 2 of Sansa-Otim et al., ICN 2010 ("F-TCP paper"),
//! against values worked out by hand. Its bandwidth estimator is in `abse.rs`. Queueing delays are
//! microseconds.

#[allow(dead_code)] // each file of tests uses its part
mod common;

use common::{ALWAYS, BASE_US, Flow, NEVER, NO_SAMPLE, Notes, params};
use knee_cc::{
    Ack, NOTE_DELAY_BACKOFF, Params, Phase, SSTHRESH_INFINITE, STATE_MAX_BYTES, algorithm,
};
use proptest::{prelude::*, test_runner::Config};

/// Parameters by name, raw values.
type Given<'a> = &'a [(&'a str, u64)];

const SAFE: (&str, u64) = ("loss_window", 1);
const PEAK_IN_SLOW_START: (&str, u64) = ("peak_rule", 1);

/// Parameters with which an ACK's own delay and rate count.
fn direct(given: Given) -> Params {
    let all: Vec<_> = [("sampling", 1), ("be_start", 1), ("srtt_weight", 0)]
        .iter()
        .chain(given)
        .copied()
        .collect();
    params("ftcp", &all)
}

/// A connection of RTTmin 40 ms that gets an ACK of one packet each millisecond: BE = 1000
/// packets/s, BE_cwnd = 40 packets.
fn estimating(given: Given, cwnd_pkts: u32, ssthresh_pkts: u32) -> Flow {
    let mut f = Flow::new(direct(given), cwnd_pkts, ssthresh_pkts);
    f.conn.srtt_us = BASE_US as u32;
    f.conn.cwnd_limited = 0;
    f.send(1000);
    ack_after(&mut f, 1000, 0, NEVER);
    ack_after(&mut f, 1000, 0, NEVER);
    f.conn.cwnd_limited = 1;
    assert_eq!((f.conn.cwnd_pkts, f.conn.ssthresh_pkts), (cwnd_pkts, ssthresh_pkts));
    assert_eq!(f.cc.observe(), [1000, 40, 0, 0]);
    f
}

fn ack_after(f: &mut Flow, us: u64, q_us: impl Into<Option<u32>>, random: u32) -> Notes {
    f.conn.now_us += us;
    f.ack(1, q_us, random)
}

/// An ACK that leaves BE at 1000 packets/s.
fn ack(f: &mut Flow, q_us: impl Into<Option<u32>>, random: u32) -> Notes {
    ack_after(f, 1000, q_us, random)
}

/// An ACK that lowers BE: two milliseconds late.
fn late_ack(f: &mut Flow) {
    ack_after(f, 3000, 0, NEVER);
    let be_cwnd = f.cc.observe()[1];
    assert!((35..40).contains(&be_cwnd), "BE_cwnd = {be_cwnd}");
}

/// BE_cwnd as it is, in packets.
fn be_cwnd(f: &Flow) -> u32 {
    f.cc.observe()[1]
}

// ---------------------------------------------------------------------------------------------
// Response probability: Fig. 2
// ---------------------------------------------------------------------------------------------

/// Fails unless the probability of a response at q is the one by hand, give or take the rounding of
/// two divisions of 2^32.
#[track_caller]
fn assert_probability(f: &Flow, q_us: u32, by_hand: f64) {
    let threshold = f.threshold(|f, random| ack(f, q_us, random));
    let by_hand = by_hand * 4_294_967_296.0;
    assert!((threshold as f64 - by_hand).abs() <= 2.0, "q = {q_us}: {threshold}, {by_hand}");
}

/// Fig. 2a with the paper's Tmin = 5 ms, Tmax = 10 ms, pmax = 0.05.
#[test]
fn probability_over_the_queueing_delay() {
    let f = estimating(&[], 100, 100);
    for (q_us, by_hand) in [
        (0, 0.0),
        (5_000, 0.0),
        (5_001, 0.05 / 5_000.0),
        (7_500, 0.025), // 0.05 * (7.5 - 5) / (10 - 5)
        (10_000, 0.05),
        (10_001, 0.05 + 0.95 / 10_000.0),
        (15_000, 0.525), // 0.05 + 0.95 * (15 - 10) / 10
        (19_999, 1.0 - 0.95 / 10_000.0),
        (20_000, 1.0),
        (20_001, 1.0),
        (10_000_000, 1.0),
    ] {
        assert_probability(&f, q_us, by_hand);
    }
}

/// Section IV-F's other thresholds, 20 and 40 ms, and the ends of pmax.
#[test]
fn probability_with_other_parameters() {
    let f = estimating(&[("tmin", 20_000), ("tmax", 40_000)], 100, 100);
    for (q_us, by_hand) in [(20_000, 0.0), (30_000, 0.025), (60_000, 0.525), (80_000, 1.0)] {
        assert_probability(&f, q_us, by_hand);
    }
    let f = estimating(&[("pmax", 0)], 100, 100);
    for (q_us, by_hand) in [(10_000, 0.0), (15_000, 0.5), (20_000, 1.0)] {
        assert_probability(&f, q_us, by_hand);
    }
    let f = estimating(&[("pmax", 1_000_000)], 100, 100);
    for (q_us, by_hand) in [(5_000, 0.0), (7_500, 0.5), (10_000, 1.0), (15_000, 1.0)] {
        assert_probability(&f, q_us, by_hand);
    }
    // The widest: Tmin = 0, Tmax = 5 s.
    let f = estimating(&[("tmin", 0), ("tmax", 5_000_000)], 100, 100);
    for (q_us, by_hand) in [(2_500_000, 0.025), (7_500_000, 0.525), (10_000_000, 1.0)] {
        assert_probability(&f, q_us, by_hand);
    }
    // The narrowest: 0 and 1 us.
    let f = estimating(&[("tmin", 0), ("tmax", 1)], 100, 100);
    for (q_us, by_hand) in [(0, 0.0), (1, 0.05), (2, 1.0)] {
        assert_probability(&f, q_us, by_hand);
    }
}

/// Fig. 2b: p = 0 for cwnd <= BE_cwnd, whatever the delay; above it p is the delay's.
#[test]
fn probability_over_the_window() {
    for cwnd_pkts in [2, 39, 40] {
        let f = estimating(&[], cwnd_pkts, 2);
        assert_probability(&f, 15_000, 0.0);
        assert_probability(&f, 10_000_000, 0.0);
    }
    for cwnd_pkts in [41, 80, 1 << 30] {
        let f = estimating(&[], cwnd_pkts, 2);
        assert_probability(&f, 15_000, 0.525);
        assert_probability(&f, 0, 0.0);
    }
}

// ---------------------------------------------------------------------------------------------
// Response to delay: Algorithm 1
// ---------------------------------------------------------------------------------------------

/// "cwnd = BE_cwnd"; the listing leaves ssthresh as it is (FT-m).
#[test]
fn response_sets_the_window_to_be_cwnd() {
    for (cwnd_pkts, ssthresh_pkts) in [(41, 2), (100, 100), (100, 60), (1 << 30, 1 << 29)] {
        let mut f = estimating(&[], cwnd_pkts, ssthresh_pkts);
        f.conn.cwnd_cnt = 33;
        assert_eq!(ack(&mut f, 20_000, ALWAYS), NOTE_DELAY_BACKOFF);
        assert_eq!((f.w(), f.conn.ssthresh_pkts, f.conn.cwnd_cnt), (40, ssthresh_pkts, 0));
    }
}

/// "only once per RTT": not again until the data outstanding are acknowledged; FT-k: growth continues.
#[test]
fn one_response_per_rtt() {
    let mut f = estimating(&[], 100, 2);
    let outstanding = f.conn.outstanding_pkts;
    assert_eq!(outstanding, 998);
    ack(&mut f, 20_000, ALWAYS);
    assert_eq!(f.w(), 40);
    f.conn.cwnd_pkts = 1000;
    f.send(500);
    for i in 2..outstanding {
        assert_eq!(ack(&mut f, 20_000, ALWAYS), 0, "ACK {i}");
        assert_eq!((f.w(), f.conn.cwnd_cnt), (1000, i - 1), "+1/cwnd for each ACK");
    }
    assert_eq!(ack(&mut f, 20_000, ALWAYS), NOTE_DELAY_BACKOFF, "all acknowledged");
    assert_eq!(f.w(), 40);
}

/// The mark of a response long ago does not come alive again when positions have wrapped half way.
#[test]
fn one_response_per_rtt_on_a_long_connection() {
    let mut f = estimating(&[], 100, 2);
    ack(&mut f, 20_000, ALWAYS);
    f.conn.cwnd_limited = 0;
    for _ in 0..16 {
        f.send(1 << 28);
        f.conn.now_us += 1000;
        f.ack(f.conn.outstanding_pkts - 1, 0, NEVER);
        let mut probe = f.clone();
        probe.conn.cwnd_pkts = 1 << 30; // above whatever BE_cwnd is
        probe.conn.ssthresh_pkts = 2;
        assert_eq!(ack(&mut probe, 20_000, ALWAYS), NOTE_DELAY_BACKOFF);
        assert!(probe.w() < 1 << 30);
    }
}

/// BE_cwnd is at least two packets (FT-n): 10 packets/s fill 0.4.
#[test]
fn response_keeps_two_packets() {
    let mut f = Flow::new(direct(&[]), 5, 2);
    f.conn.srtt_us = BASE_US as u32;
    f.conn.cwnd_limited = 0;
    f.send(10);
    for _ in 0..3 {
        ack_after(&mut f, 80_000, 0, NEVER);
    }
    f.conn.cwnd_limited = 1;
    assert!(be_cwnd(&f) < 2, "{}", be_cwnd(&f));
    assert_eq!(ack_after(&mut f, 80_000, 20_000, ALWAYS), NOTE_DELAY_BACKOFF);
    assert_eq!(f.w(), 2);
    // At 2 there is nothing to reduce: no response, growth.
    while f.conn.outstanding_pkts > 0 {
        (f.conn.cwnd_pkts, f.conn.cwnd_cnt) = (2, 0);
        assert_eq!(ack_after(&mut f, 80_000, 20_000, ALWAYS), 0);
        assert_eq!((f.w(), f.conn.cwnd_cnt), (2, 1));
    }
}

/// The listing tests the delay only where cwnd >= ssthresh.
#[test]
fn no_response_in_slow_start() {
    let mut f = estimating(&[], 100, 102);
    assert_eq!(ack(&mut f, 20_000, ALWAYS), 0);
    assert_eq!(f.w(), 101);
    assert_eq!(ack(&mut f, 20_000, ALWAYS), 0);
    assert_eq!(f.w(), 102);
    assert_eq!(ack(&mut f, 20_000, ALWAYS), NOTE_DELAY_BACKOFF);
    assert_eq!(f.w(), 40);
}

#[test]
fn no_response_in_recovery_or_after_a_timeout() {
    for (phase, expected) in [
        (Phase::Open, NOTE_DELAY_BACKOFF),
        (Phase::Disorder, NOTE_DELAY_BACKOFF),
        (Phase::Cwr, 0),
        (Phase::Recovery, 0),
        (Phase::Loss, 0),
    ] {
        let mut f = estimating(&[], 100, 2);
        f.conn.phase = phase as u8;
        assert_eq!(ack(&mut f, 20_000, ALWAYS), expected, "{phase:?}");
    }
}

#[test]
fn no_response_without_an_estimate() {
    let mut f = Flow::new(direct(&[]), 100, 2);
    f.send(10);
    for _ in 0..10 {
        assert_eq!(ack(&mut f, 20_000, ALWAYS), 0, "srtt is not known");
    }
    assert_eq!((f.w(), f.cc.observe()[..2].to_vec()), (100, vec![0, 0]));
}

// ---------------------------------------------------------------------------------------------
// ssthresh and BE_cwnd: Algorithm 1
// ---------------------------------------------------------------------------------------------

/// "if BE_cwnd < previousBE_cwnd then ssthresh = previousBE_cwnd", in congestion avoidance too, at
/// any fall (FT-b); a rise does nothing.
#[test]
fn fall_of_be_cwnd_sets_ssthresh() {
    for (cwnd_pkts, ssthresh_pkts) in [(100, 100), (30, 20), (30, 35), (30, SSTHRESH_INFINITE)] {
        let mut f = estimating(&[], cwnd_pkts, ssthresh_pkts);
        late_ack(&mut f);
        assert_eq!(f.conn.ssthresh_pkts, 40, "from {ssthresh_pkts}");
        let (be, ssthresh) = (be_cwnd(&f), f.conn.ssthresh_pkts);
        ack_after(&mut f, 500, 0, NEVER); // 2000/s
        assert!(be_cwnd(&f) >= be);
        assert_eq!(f.conn.ssthresh_pkts, ssthresh, "BE rose");
    }
    // 999/s for a millisecond: BE_cwnd is 39.999 packets or so.
    let mut f = estimating(&[], 100, 100);
    ack_after(&mut f, 1010, 0, NEVER);
    assert_eq!((f.conn.ssthresh_pkts, be_cwnd(&f)), (40, 39));
    // The next fall gives the whole packets of the earlier BE_cwnd: 39.
    ack_after(&mut f, 1010, 0, NEVER);
    assert_eq!(f.conn.ssthresh_pkts, 39);
}

/// Above cwnd again, ssthresh makes the next ACKs' growth slow start (FT-b).
#[test]
fn fall_of_be_cwnd_may_start_slow_start_again() {
    let mut f = estimating(&[], 30, 20);
    ack(&mut f, 0, NEVER);
    assert_eq!((f.w(), f.conn.cwnd_cnt), (30, 1), "congestion avoidance");
    late_ack(&mut f);
    assert_eq!(f.w(), 31, "slow start");
}

#[test]
fn fall_of_be_cwnd_in_slow_start_only() {
    let mut f = estimating(&[PEAK_IN_SLOW_START], 30, 20);
    late_ack(&mut f);
    assert_eq!(f.conn.ssthresh_pkts, 20);
    let mut f = estimating(&[PEAK_IN_SLOW_START], 30, SSTHRESH_INFINITE);
    late_ack(&mut f);
    assert_eq!(f.conn.ssthresh_pkts, 40);
}

/// A lower RTTmin lowers BE_cwnd as well: 1000/s * 20 ms = 20.
#[test]
fn lower_rtt_min_lowers_be_cwnd() {
    let mut f = estimating(&[], 100, 100);
    f.conn.now_us += 1000;
    let lower = Ack { rtt_us: 20_000, acked_pkts: 1, random: NEVER, ..Ack::default() };
    f.cc.on_rtt(&mut f.conn, &lower);
    assert_eq!((be_cwnd(&f), f.conn.ssthresh_pkts), (20, 40));
}

/// While the stack owns the window, ssthresh is where it is going.
#[test]
fn fall_of_be_cwnd_waits_for_the_stack() {
    for (phase, expected) in [
        (Phase::Open, 40),
        (Phase::Disorder, 40),
        (Phase::Cwr, 100),
        (Phase::Recovery, 100),
        (Phase::Loss, 40),
    ] {
        let mut f = estimating(&[], 100, 100);
        f.conn.phase = phase as u8;
        late_ack(&mut f);
        assert_eq!(f.conn.ssthresh_pkts, expected, "{phase:?}");
    }
}

/// FT-a: the BDP, if given, stands for "no threshold yet".
#[test]
fn initial_ssthresh() {
    for (given, before, after) in [
        (0, SSTHRESH_INFINITE, SSTHRESH_INFINITE),
        (1750, SSTHRESH_INFINITE, 1750),
        (1, SSTHRESH_INFINITE, 2),
        (1 << 30, SSTHRESH_INFINITE, 1 << 30),
        (1750, 100, 100),
        (1750, SSTHRESH_INFINITE - 1, SSTHRESH_INFINITE - 1),
    ] {
        let f = Flow::new(params("ftcp", &[("initial_ssthresh", given)]), 10, before);
        assert_eq!(f.conn.ssthresh_pkts, after, "{given} over {before}");
    }
    // It ends slow start there, exactly.
    let mut f = Flow::slow_start(params("ftcp", &[("initial_ssthresh", 17)]), 10);
    f.send(10);
    f.ack(10, 0, NEVER);
    assert_eq!((f.w(), f.conn.cwnd_cnt), (17, 3));
}

// ---------------------------------------------------------------------------------------------
// Loss, timeout, undo: Algorithm 1
// ---------------------------------------------------------------------------------------------

/// "cwnd = BE_cwnd, ssthresh = BE_cwnd", also upwards; the safe variant does not go up (FT-f).
#[test]
fn loss_makes_be_cwnd_the_window() {
    for (cwnd_pkts, literal, safe) in [(100, 40, 40), (41, 40, 40), (40, 40, 40), (30, 40, 30)] {
        assert_eq!(estimating(&[], cwnd_pkts, 2).loss().0, literal, "{cwnd_pkts}");
        assert_eq!(estimating(&[SAFE], cwnd_pkts, 2).loss().0, safe, "{cwnd_pkts}, safe");
    }
    for given in [&[][..], &[SAFE]] {
        // A window of 1, after a timeout: the threshold is still 2 at least.
        let mut f = estimating(given, 1, 2);
        assert_eq!(f.loss().0, if given.is_empty() { 40 } else { 2 });
        // The host's largest window.
        let mut f = estimating(given, 30, 2);
        f.conn.cwnd_max_pkts = 30;
        assert_eq!(f.loss().0, 30);
    }
}

/// "TIMEOUT: cwnd = 1, ssthresh = BE_cwnd", in both variants.
#[test]
fn timeout_makes_be_cwnd_the_threshold() {
    for given in [&[][..], &[SAFE]] {
        for cwnd_pkts in [100, 30] {
            let mut f = estimating(given, cwnd_pkts, 2);
            assert_eq!((f.timeout(), f.w()), (40, 1), "{cwnd_pkts}");
        }
    }
}

/// Without an estimate a loss is NewReno's: max(min(cwnd, outstanding) / 2, 2). FT-n.
#[test]
fn loss_without_an_estimate() {
    for (cwnd_pkts, outstanding, by_hand) in [(100, 100, 50), (100, 30, 15), (3, 3, 2)] {
        for given in [&[][..], &[SAFE]] {
            let mut f = Flow::slow_start(direct(given), cwnd_pkts);
            f.send(outstanding);
            assert_eq!(f.clone().loss().0, by_hand);
            assert_eq!(f.timeout(), by_hand);
        }
    }
}

/// A float of `cc/include/knee/abse.h`, whose unit is 2^-24.
fn float(code: u32, bits: u32) -> f64 {
    let significand = f64::from((code % (1 << bits)) + (1 << bits));
    (significand * 2_f64.powi((code >> bits) as i32) - f64::from(1_u32 << bits)) / 2_f64.powi(24)
}

/// U, packets/s: the newest lane of the estimator's state (`cc/include/knee/abse.h`).
fn u(f: &Flow) -> f64 {
    let lane = f.cc.state().bytes()[8..10].try_into().expect("two bytes");
    let code = u32::from(u16::from_ne_bytes(lane));
    float(code, 10)
}

/// Section III-A: beta is 0.8 once the latest congestion response was to delay, 0.6 after a loss.
/// U is 0 before; the sample goes from 1000 to 500/s: U = (1 - beta) * 500.
#[test]
fn beta_goes_by_the_latest_response() {
    let u_at_half_rate = |f: &Flow| {
        let mut f = f.clone();
        ack_after(&mut f, 2000, 0, NEVER);
        u(&f)
    };
    let expect = |f: &Flow, beta: f64, case: &str| {
        let (found, by_hand) = (u_at_half_rate(f), (1.0 - beta) * 500.0);
        assert!((found - by_hand).abs() < 0.001 * by_hand, "{case}: {found}, by hand {by_hand}");
    };
    let mut f = estimating(&[], 100, 2);
    expect(&f, 0.6, "at the start");
    ack(&mut f, 20_000, ALWAYS);
    expect(&f, 0.8, "after a response to delay");
    ack(&mut f, 0, NEVER);
    expect(&f, 0.8, "later");
    f.loss();
    expect(&f, 0.6, "after a loss");
    f.cc.undo(&mut f.conn);
    expect(&f, 0.8, "after a loss that was none");
    f.conn.phase = Phase::Open as u8;
    f.timeout();
    expect(&f, 0.6, "after a timeout");
    f.cc.undo(&mut f.conn);
    f.loss();
    f.loss();
    f.cc.undo(&mut f.conn);
    expect(&f, 0.6, "only the latest loss is undone");
    // Other constants.
    let mut f = estimating(&[("beta_u", 0), ("beta_u_delay", 100_000)], 100, 2);
    expect(&f, 0.0, "beta_u = 0");
    ack(&mut f, 20_000, ALWAYS);
    expect(&f, 0.1, "beta_u_delay = 0.1");
}

#[test]
fn undo_gives_the_window_back() {
    let mut f = estimating(&[], 100, 2);
    f.loss();
    assert_eq!(f.cc.undo(&mut f.conn), 100);
    f.conn.cwnd_pkts = 150;
    assert_eq!(f.cc.undo(&mut f.conn), 150, "it has grown since");
}

// ---------------------------------------------------------------------------------------------
// Queueing delay: reading FT-g
// ---------------------------------------------------------------------------------------------

/// S = 0.99 S + 0.01 r, from the first sample; q = S - RTTmin.
#[test]
fn queueing_delay_is_smoothed() {
    let mut f = Flow::avoiding(params("ftcp", &[]), 100);
    f.send(100);
    let q = |f: &mut Flow, q_us: Option<u32>| {
        f.ack(1, q_us, NEVER);
        f.cc.observe()[2]
    };
    assert_eq!(q(&mut f, Some(0)), 0);
    assert_eq!(q(&mut f, Some(10_000)), 100); // 0.01 * 10 000
    assert_eq!(q(&mut f, Some(20_000)), 299); // 99 + 200
    assert_eq!(q(&mut f, NO_SAMPLE), 299);
    assert_eq!(q(&mut f, Some(0)), 296); // 0.99 * 299
    // A first sample with a queue, then one without: S = RTTmin + 9900 us.
    let mut f = Flow::avoiding(params("ftcp", &[]), 100);
    f.send(100);
    assert_eq!(q(&mut f, Some(10_000)), 0);
    assert_eq!(q(&mut f, Some(0)), 9_900);
    // srtt_weight = 0: each sample.
    let mut f = Flow::avoiding(params("ftcp", &[("srtt_weight", 0)]), 100);
    f.send(100);
    for q_us in [0, 10_000, 3, 123_456, 1] {
        assert_eq!(q(&mut f, Some(q_us)), q_us);
    }
}

/// Samples are taken as 1 us ... 2^24 - 1 us: a 0 of a coarse clock is not "no sample".
#[test]
fn extreme_rtt_samples() {
    let mut f = Flow::avoiding(direct(&[]), 100);
    let mut q = |rtt_us: i32| {
        let ack = Ack { rtt_us, acked_pkts: 1, random: NEVER, ..Ack::default() };
        f.cc.on_rtt(&mut f.conn, &ack);
        f.cc.observe()[2]
    };
    assert_eq!(q(500), 0);
    assert_eq!(q(0), 0);
    assert_eq!(q(500), 499, "RTTmin = 1 us");
    assert_eq!(q(i32::MAX), (1 << 24) - 2);
    assert_eq!(q(-1), (1 << 24) - 2, "no sample");
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]

    /// The average against floating point: it is kept to 1/256 us, so that rounding adds up to at
    /// most 1/512 us / (1 - weight), and 0.5 us where it is read.
    #[test]
    fn smoothed_delay_against_floating_point(
        weight_ppm in prop_oneof![Just(990_000_u32), 0..=999_000_u32],
        samples in prop::collection::vec(prop_oneof![0..200_000_u32, 0..10_000_000_u32], 1..400),
    ) {
        let mut f = Flow::avoiding(params("ftcp", &[("srtt_weight", weight_ppm.into())]), 100);
        f.send(1000);
        let weight = f64::from(weight_ppm) / 1e6;
        let bound = 0.5 + 1.0 / 512.0 / (1.0 - weight) + 1e-6;
        let (mut average, mut least) = (f64::from(samples[0]), samples[0]);
        for q_us in samples {
            f.ack(1, q_us, NEVER);
            average = weight * average + (1.0 - weight) * f64::from(q_us);
            least = least.min(q_us);
            let (found, exact) = (f64::from(f.cc.observe()[2]), average - f64::from(least));
            prop_assert!((found - exact).abs() <= bound, "{found}, exact {exact}, {bound}");
        }
    }

    /// Growth is NewReno's wherever nothing is estimated and so nothing responds.
    #[test]
    fn growth_is_newrenos(
        (cwnd_pkts, ssthresh_pkts, count, ss_limit) in (1..200_u32, 2..300_u32, 0..2_u64, 0..5_u64),
        acks in prop::collection::vec((1..20_u32, prop::bool::weighted(0.9)), 1..200),
    ) {
        let given = [("count", count), ("ss_limit", ss_limit)];
        let mut flows = ["ftcp", "newreno"]
            .map(|name| Flow::new(params(name, &given), cwnd_pkts, ssthresh_pkts));
        for (pkts, limited) in acks {
            for f in &mut flows {
                f.conn.cwnd_limited = limited.into();
                f.send(pkts);
                f.ack(pkts, 50_000, ALWAYS);
            }
            let windows = flows.each_ref().map(|f| (f.w(), f.conn.cwnd_cnt, f.conn.ssthresh_pkts));
            prop_assert_eq!(windows[0], windows[1]);
        }
    }
}

/// Nothing grows while the application limits; a response still comes.
#[test]
fn application_limited() {
    let mut f = estimating(&[], 100, 200);
    f.conn.cwnd_limited = 0;
    for _ in 0..10 {
        ack(&mut f, 0, NEVER);
    }
    assert_eq!((f.w(), f.conn.cwnd_cnt), (100, 0));
    f.conn.ssthresh_pkts = 2;
    assert_eq!(ack(&mut f, 20_000, ALWAYS), NOTE_DELAY_BACKOFF);
    assert_eq!(f.w(), 40);
}

// ---------------------------------------------------------------------------------------------
// Tables
// ---------------------------------------------------------------------------------------------

#[test]
fn state_fills_the_available_space() {
    assert_eq!(algorithm("ftcp").expect("registered").state_bytes(), STATE_MAX_BYTES);
}

#[test]
fn defaults_are_the_papers() {
    let shown = Params::defaults(algorithm("ftcp").expect("registered")).shown();
    let by_hand = [
        ("count", "packets"),
        ("ss_limit", "0p"),
        ("initial_ssthresh", "0p"),
        ("tmin", "5ms"),
        ("tmax", "10ms"),
        ("pmax", "0.05"),
        ("srtt_weight", "0.99"),
        ("peak_rule", "any_fall"),
        ("loss_window", "be_cwnd"),
        ("tau_const", "0ms"),
        ("agility", "abse"),
        ("agility_n", "10"),
        ("beta_u", "0.6"),
        ("beta_u_delay", "0.8"),
        ("epsilon", "0.6"),
        ("sampling", "adaptive"),
        ("idle", "hold"),
        ("be_start", "zero"),
        ("umax", "ten"),
    ];
    assert_eq!(shown, by_hand.map(|(name, value)| (name, value.to_owned())));
}

#[test]
fn tmin_lies_below_tmax() {
    let ftcp = algorithm("ftcp").expect("registered");
    let error = Params::new(ftcp, [("tmin", 10_000)]).expect_err("refused").to_string();
    assert_eq!(error, "tmin = 10ms must be less than tmax = 10ms");
    assert!(Params::new(ftcp, [("tmin", 9_999)]).is_ok());
}
