//! Every rule of m-PERT against values worked out by hand, and its fixed point against real numbers.
//!
//! m-PERT (Kotla, Reddy, IWQoS 2008) as the head of `mpert.c` restates it; loss intervals by RFC 5348
//! section 5.4. Queueing delays are microseconds. qmax is 100 ms unless a test observes
//! it: regions begin at q = 50 ms, the target is whole from 65 ms on, T3 = 65 ms.

#[allow(dead_code)] // each test file uses a part of it
mod common;

use common::{ALWAYS, BASE_US, Flow, NEVER, params};
use knee_cc::{NOTE_DELAY_BACKOFF, Phase};
use proptest::prelude::*;

/// q is that of the sample itself.
const RAW: (&str, u64) = ("srtt_weight", 0);
const QMAX: (&str, u64) = ("qmax", 100_000);
/// Every sample counts.
const UNFILTERED: (&str, u64) = ("delack_filter", 0);
/// A queueing delay at which an early response is certain.
const FULL: u32 = 100_000;
/// 1 / 2^16, the unit of alpha.
const ULP: f64 = 1.0 / 65_536.0;

/// In congestion avoidance with `cwnd_pkts`, RTTmin known, nothing outstanding.
fn settled(given: &[(&str, u64)], cwnd_pkts: u32) -> Flow {
    let given: Vec<_> = [RAW, QMAX, UNFILTERED].iter().chain(given).copied().collect();
    let mut f = Flow::avoiding(params("mpert", &given), cwnd_pkts);
    f.conn.cwnd_limited = 0;
    f.send(1);
    f.ack(1, 0, NEVER);
    f.conn.cwnd_limited = 1;
    f
}

fn alpha(f: &Flow) -> f64 {
    f64::from(f.cc.observe()[2]) / 1e6
}

/// p_E / p_L.
fn early_per_loss(f: &Flow) -> f64 {
    f64::from(f.cc.observe()[3]) / 1e6
}

/// An interval of `n` packets that an early response ends; cwnd stays.
fn early_after(f: &mut Flow, n: u32) {
    let cwnd_pkts = f.w();
    f.send(n);
    f.ack(n - 1, 0, NEVER);
    assert_eq!(f.ack(1, FULL, ALWAYS), NOTE_DELAY_BACKOFF);
    f.conn.cwnd_pkts = cwnd_pkts;
    f.conn.ssthresh_pkts = 2;
}

/// An interval of `n` packets that a loss ends; cwnd stays.
fn loss_after(f: &mut Flow, n: u32) {
    let cwnd_pkts = f.w();
    f.send(n);
    f.ack(n, 0, NEVER);
    f.loss();
    f.recovered();
    f.conn.cwnd_pkts = cwnd_pkts;
    f.conn.ssthresh_pkts = 2;
}

/// A period of 5 S passes, then one ACK for a window of packets, all of delay `q_us`. It changes
/// alpha and, limited by the application after a timeout, nothing else.
fn period(f: &mut Flow, q_us: u32) {
    let window = f.w();
    f.conn.cwnd_limited = 0;
    f.conn.phase = Phase::Loss as u8;
    f.conn.now_us += 5 * u64::from(BASE_US as u32 + q_us);
    f.send(window);
    assert_eq!(f.ack(window, q_us, NEVER), 0);
    f.conn.phase = Phase::Open as u8;
    assert_eq!(f.w(), window);
}

// ---------------------------------------------------------------------------------------------
// Response curve and decrease
// ---------------------------------------------------------------------------------------------

#[track_caller]
fn assert_probability(f: &Flow, q_us: u32, p: f64) {
    let mut f = f.clone();
    f.send(100);
    let threshold = f.threshold(|f, random| f.ack(1, q_us, random));
    let short = p * 4_294_967_296.0 - threshold as f64;
    assert!((-0.001..2.0).contains(&short), "q = {q_us}: short by {short}");
}

/// pmax at Tmax = 10 ms, from there to 1 at T3 = 0.65 qmax = 65 ms.
#[test]
fn curve_with_a_wide_qmax() {
    let f = settled(&[], 100);
    for (q_us, p) in [
        (5_000, 0.0),
        (7_500, 0.025),
        (10_000, 0.05),
        (37_500, 0.525), // half way from 10 to 65 ms
        (64_999, 0.05 + 0.95 * 54_999.0 / 55_000.0),
        (65_000, 1.0),
    ] {
        assert_probability(&f, q_us, p);
    }
}

/// 2 Tmax where 0.65 qmax is less: PERT's curve.
#[test]
fn curve_with_a_narrow_qmax() {
    for qmax in [10_000, 20_000, 30_769] {
        let f = settled(&[("qmax", qmax)], 100);
        for (q_us, p) in
            [(5_000, 0.0), (7_500, 0.025), (10_000, 0.05), (15_000, 0.525), (20_000, 1.0)]
        {
            assert_probability(&f, q_us, p);
        }
    }
}

/// qmax = max(10 ms, RTTmax - RTTmin), the present sample included.
#[test]
fn qmax_is_observed() {
    let mut f = settled(&[("qmax", 0)], 100);
    assert_eq!(f.cc.observe()[1], 10_000);
    f.send(2);
    f.ack(1, 9_000, NEVER);
    assert_eq!(f.cc.observe()[1], 10_000);
    f.ack(1, 100_000, NEVER); // a response, whose round trip is over
    assert_eq!(f.cc.observe()[..2], [100_000, 100_000]);
    assert_probability(&f, 37_500, 0.525);
    let f = settled(&[("qmax", 0), ("qmax_floor", 80_000)], 100);
    assert_eq!(f.cc.observe()[1], 80_000);
    assert_probability(&f, 31_000, 0.525); // T3 = 52 ms
}

/// A lone packet's ACK among those for several may have waited for the receiver: no sample, so
/// neither q nor qmax.
#[test]
fn delayed_acks_are_left_out() {
    for (filter, observed) in [(1, [0, 10_000]), (0, [30_000, 30_000])] {
        let mut f = settled(&[("qmax", 0), ("delack_filter", filter)], 100);
        f.send(10);
        f.ack(2, 0, NEVER);
        f.ack(1, 30_000, NEVER);
        assert_eq!(f.cc.observe()[..2], observed, "filter {filter}");
    }
}

/// The F-TCP paper, section IV-F, needs 20 and 40 ms for 1 Gb/s and 110 ms. T3 = 80 ms.
#[test]
fn curve_for_long_fast_paths() {
    let f = settled(&[("tmin", 20_000), ("tmax", 40_000)], 100);
    for (q_us, p) in
        [(20_000, 0.0), (30_000, 0.025), (40_000, 0.05), (60_000, 0.525), (80_000, 1.0)]
    {
        assert_probability(&f, q_us, p);
    }
}

/// cwnd <- (1 - q / (q + qmax)) cwnd, rounded down, at least half and at least 2.
#[test]
fn the_decrease_follows_the_delay() {
    for (q_us, before, after) in [
        (25_000, 100, 80),
        (10_000, 100, 90), // 90.9
        (100_000, 100, 50),
        (300_000, 100, 50), // above qmax
        (100_000, 3, 2),
        (25_000, 1 << 30, 858_993_459), // 2^30 * 0.8 = 858993459.2
    ] {
        let mut f = settled(&[], before);
        f.send(10);
        assert_eq!(f.ack(1, q_us, ALWAYS), NOTE_DELAY_BACKOFF);
        assert_eq!((f.w(), f.conn.ssthresh_pkts), (after, after), "q = {q_us}");
    }
}

#[test]
fn one_response_per_round_trip_and_none_in_slow_start_or_recovery() {
    let mut f = settled(&[], 100);
    f.send(100);
    assert_eq!(f.ack(1, FULL, ALWAYS), NOTE_DELAY_BACKOFF);
    assert_eq!(f.ack(98, FULL, ALWAYS), 0);
    f.send(10);
    assert_eq!(f.ack(1, FULL, ALWAYS), NOTE_DELAY_BACKOFF);

    for (ss_test, expected) in [(0, 0), (1, NOTE_DELAY_BACKOFF)] {
        let mut f = settled(&[("ss_test", ss_test)], 100);
        f.conn.ssthresh_pkts = 101;
        f.send(100);
        assert_eq!(f.ack(1, FULL, ALWAYS), expected);
    }
    for phase in [Phase::Cwr, Phase::Recovery, Phase::Loss] {
        let mut f = settled(&[], 100);
        f.send(100);
        f.conn.phase = phase as u8;
        assert_eq!(f.ack(1, FULL, ALWAYS), 0);
    }
}

/// 2^31 packets after a response its position must not lie ahead again.
#[test]
fn the_gate_survives_wrapping_positions() {
    let mut f = settled(&[], 100);
    f.send(1);
    assert_eq!(f.ack(1, FULL, ALWAYS), NOTE_DELAY_BACKOFF);
    for _ in 0..5 {
        f.send(1 << 29);
        f.ack(1 << 29, 0, NEVER);
        let mut then = f.clone();
        then.send(1);
        assert_eq!(then.ack(1, FULL, ALWAYS), NOTE_DELAY_BACKOFF);
    }
}

/// Reading MP-d: a loss halves, or takes what an early response would; a timeout halves.
#[test]
fn loss_and_timeout() {
    for (decrease, ssthresh) in [(0, 50), (1, 80)] {
        let mut f = settled(&[("loss_decrease", decrease)], 100);
        f.send(100);
        f.ack(1, 25_000, NEVER);
        f.send(1);
        assert_eq!(f.clone().loss().0, ssthresh);
        assert_eq!(f.clone().timeout(), 50);
        f.loss();
        assert_eq!(f.cc.undo(&mut f.conn), 100);
        // Less outstanding than the window: a part of that.
        let mut f = settled(&[("loss_decrease", decrease)], 100);
        f.send(11);
        f.ack(1, 25_000, NEVER);
        assert_eq!(f.loss().0, if decrease == 0 { 5 } else { 8 });
    }
}

// ---------------------------------------------------------------------------------------------
// Growth: alpha / cwnd per packet
// ---------------------------------------------------------------------------------------------

#[test]
fn growth_by_hand() {
    // (alpha0, cwnd, packets, cwnd after)
    for (alpha0, cwnd, acked, after) in [
        (1_000_000, 10, 9, 10),
        (1_000_000, 10, 10, 11),
        (32_000_000, 64, 1, 64),
        (32_000_000, 64, 2, 65),
        (32_000_000, 4, 1, 12), // 32 / 4
        (1_500_000, 12, 7, 12), // 10.5
        (1_500_000, 12, 8, 13),
        (2_500_000, 1_000, 399, 1_000), // 997.5
        (2_500_000, 1_000, 400, 1_001),
    ] {
        let mut f = settled(&[("alpha0", alpha0)], cwnd);
        f.send(1_000);
        for _ in 0..acked {
            f.ack(1, 10_000, NEVER);
        }
        assert_eq!(f.w(), after, "alpha {alpha0}, cwnd {cwnd}, {acked} packets");
        // All in one ACK: the same.
        let mut f = settled(&[("alpha0", alpha0)], cwnd);
        f.send(1_000);
        f.ack(acked, 10_000, NEVER);
        assert_eq!(f.w(), after, "in one: alpha {alpha0}, cwnd {cwnd}, {acked} packets");
    }
}

/// 1.1 in units of 2^-16 is 72090: fractions of a packet are carried from ACK to ACK, so 65536
/// packets count 72090, which a window of 10 turns into +1 for each 10, then 11, 12, ...
#[test]
fn growth_loses_no_fraction() {
    let mut f = settled(&[("alpha0", 1_100_000)], 10);
    let (mut window, mut counted_ulp) = (10_u64, 0);
    for _ in 0..65_536 {
        f.send(1);
        f.ack(1, 10_000, NEVER);
        counted_ulp += 72_090;
        while counted_ulp >= window << 16 {
            counted_ulp -= window << 16;
            window += 1;
        }
    }
    assert_eq!(u64::from(f.w()), window);
    assert_eq!(f.conn.cwnd_cnt, (counted_ulp >> 16) as u32);
}

#[test]
fn slow_start_is_standard() {
    let mut f = settled(&[("alpha0", 32_000_000)], 10);
    f.conn.ssthresh_pkts = 15;
    f.send(100);
    f.ack(3, 0, NEVER);
    assert_eq!(f.w(), 13);
    f.ack(3, 0, NEVER); // 2 up to ssthresh; 1 packet counts 32 = 2 * 15 + 2
    assert_eq!((f.w(), f.conn.cwnd_cnt), (17, 2));
    f.conn.cwnd_limited = 0;
    f.ack(30, 0, NEVER);
    assert_eq!(f.w(), 17, "the application limits");
}

#[test]
fn growth_of_extreme_acks_stays_in_range() {
    let mut f = settled(&[("alpha0", 32_000_000)], 2);
    f.conn.cwnd_max_pkts = 1 << 30;
    f.send(1 << 30);
    f.ack(1 << 30, 10_000, NEVER);
    assert_eq!(f.w(), 1 << 30);
    f.send(1 << 30);
    f.ack(1 << 30, 10_000, NEVER);
    assert_eq!(f.w(), 1 << 30);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Against d cwnd / d packet = alpha / cwnd, that is cwnd^2 = w0^2 + 2 alpha n, until the window
    /// is e times what it was. Whole windows need w instead of w + 1/2 packets for each +1, which
    /// makes them grow by up to 0.32 packets more; the fraction not yet added is below one.
    #[test]
    fn growth_follows_the_differential_equation(
        alpha0 in 1_000_000_u64..=32_000_000,
        w0 in 64_u32..600,
    ) {
        let mut f = settled(&[("alpha0", alpha0)], w0);
        let alpha = alpha0 as f64 / 1e6;
        let mut n = 0.0;
        let exact = |n: f64| (f64::from(w0).powi(2) + 2.0 * alpha * n).sqrt();
        while exact(n) < std::f64::consts::E * f64::from(w0) {
            f.send(1);
            f.ack(1, 10_000, NEVER);
            n += 1.0;
            let error = f64::from(f.w()) - exact(n);
            prop_assert!((-1.05..0.4).contains(&error), "{error} after {n}");
        }
    }
}

// ---------------------------------------------------------------------------------------------
// Regions and alpha
// ---------------------------------------------------------------------------------------------

/// A window of packets in a row with q <= Tmin: +0.5 every 5 S, up to 32.
#[test]
fn high_speed_region() {
    let mut f = settled(&[], 10);
    for n in 1..=70 {
        period(&mut f, 5_000);
        assert_eq!(alpha(&f), (1.0 + 0.5 * f64::from(n)).min(32.0));
    }
}

/// alpha changes when 5 S have passed: at 200 ms with S = 40 ms, not a microsecond sooner.
#[test]
fn alpha_waits_for_its_period() {
    let mut f = settled(&[], 10);
    f.send(100);
    f.conn.now_us = 199_999;
    f.ack(10, 0, NEVER);
    assert_eq!(alpha(&f), 1.0);
    f.conn.now_us = 200_000;
    f.ack(10, 0, NEVER);
    assert_eq!(alpha(&f), 1.5);
    f.conn.now_us = 399_999;
    f.ack(10, 0, NEVER);
    assert_eq!(alpha(&f), 1.5);
    f.conn.now_us = 400_000;
    f.ack(10, 0, NEVER);
    assert_eq!(alpha(&f), 2.0);
    // S = 60 ms, 2 of which are a period.
    let mut f = settled(&[("alpha_period", 2_000_000), ("tmin", 20_000), ("tmax", 40_000)], 10);
    f.send(100);
    f.conn.now_us = 119_999;
    f.ack(10, 20_000, NEVER);
    assert_eq!(alpha(&f), 1.0);
    f.conn.now_us = 120_000;
    f.ack(1, 20_000, NEVER);
    assert_eq!(alpha(&f), 1.5);
}

/// The clock's low 32 bits wrap after 71 minutes.
#[test]
fn alpha_survives_a_wrapping_clock() {
    let mut f = Flow::avoiding(params("mpert", &[RAW, QMAX]), 10);
    f.conn.cwnd_limited = 0;
    f.conn.now_us = u64::from(u32::MAX) - 100_000;
    f.send(10);
    f.ack(10, 0, NEVER); // long after the start: a period is over
    assert_eq!(alpha(&f), 1.5);
    f.conn.now_us += 199_999;
    f.send(10);
    f.ack(10, 0, NEVER);
    assert_eq!(alpha(&f), 1.5);
    f.conn.now_us += 1;
    f.send(10);
    f.ack(10, 0, NEVER);
    assert_eq!(alpha(&f), 2.0);
}

/// Neither region for a whole window: times 0.9, down to 1.
#[test]
fn safe_region() {
    let mut f = settled(&[("alpha0", 10_000_000)], 10);
    for expected in [9.0, 8.1, 7.29, 6.561] {
        period(&mut f, 20_000);
        assert!((alpha(&f) - expected).abs() < 3.0 * ULP, "{}", alpha(&f));
    }
    for _ in 0..30 {
        period(&mut f, 20_000);
    }
    assert_eq!(alpha(&f), 1.0);
}

/// The edges: q = Tmin is high speed, q = qmax / 2 competes, between them is safe. Where both hold,
/// it competes (reading MP-i).
#[test]
fn edges_of_the_regions() {
    for (q_us, expected) in
        [(5_000, 10.5), (5_001, 9.0), (49_999, 9.0), (50_000, 10.1), (99_000, 10.1)]
    {
        let mut f = settled(&[("alpha0", 10_000_000)], 10);
        period(&mut f, q_us);
        assert!((alpha(&f) - expected).abs() < 2.0 * ULP, "q {q_us}: {}", alpha(&f));
    }
    // qmax = 10 ms: 5 ms are both.
    let mut f = settled(&[("alpha0", 10_000_000), ("qmax", 10_000)], 10);
    period(&mut f, 5_000);
    assert!((alpha(&f) - 10.1).abs() < 2.0 * ULP, "{}", alpha(&f));
}

/// "At least one window of ACKs" in a row, in packets (reading MP-b).
#[test]
fn a_region_needs_a_window_in_a_row() {
    for (acks, expected) in [
        (&[(9, 0)][..], 9.0),                  // one packet short
        (&[(10, 0)], 10.5),                    // a window
        (&[(1, 0), (1, 0), (8, 0)], 10.5),     // in three ACKs
        (&[(9, 0), (2, 20_000), (9, 0)], 9.0), // interrupted
        (&[(9, 0), (2, 60_000), (9, 0)], 9.0), // by the other region
        (&[(20, 20_000), (10, 0)], 10.5),
    ] {
        let mut f = settled(&[("alpha0", 10_000_000)], 10);
        f.conn.cwnd_limited = 0;
        f.ack(0, 20_000, NEVER); // the row of `settled` ends
        f.send(100);
        let (last, before) = acks.split_last().expect("ACKs");
        for (n, q_us) in before {
            f.ack(*n, *q_us, NEVER);
        }
        f.conn.now_us = 200_000;
        f.ack(last.0, last.1, NEVER);
        assert!((alpha(&f) - expected).abs() < 2.0 * ULP, "{acks:?}: {}", alpha(&f));
    }
}

/// Slow start leaves alpha as it is; its first period begins afterwards (reading MP-j).
#[test]
fn alpha_rests_in_slow_start() {
    let mut f = settled(&[("alpha0", 32_000_000)], 10);
    f.conn.ssthresh_pkts = 1_000;
    for _ in 0..10 {
        period(&mut f, 20_000);
    }
    assert_eq!(alpha(&f), 32.0);
    f.conn.ssthresh_pkts = 2;
    f.conn.now_us += 299_999;
    f.send(20);
    f.ack(10, 20_000, NEVER);
    assert_eq!(alpha(&f), 32.0);
    f.conn.now_us += 1;
    f.ack(10, 20_000, NEVER);
    assert!((alpha(&f) - 28.8).abs() < ULP);
}

/// Competing without a loss so far: +0.1 every 5 S, up to 32. After n steps the rounding of 0.1 to
/// 6554/65536 has added n * 0.4/65536, at most 0.0019.
#[test]
fn compete_region_without_a_loss() {
    let mut f = settled(&[], 10);
    for n in 1..=320 {
        period(&mut f, 70_000);
        let error = alpha(&f) - (1.0 + 0.1 * f64::from(n)).min(32.0);
        assert!((-0.000_002..0.001_95).contains(&error), "{error} after {n}");
    }
    assert_eq!(alpha(&f), 32.0);
}

/// Target 1 + p_E / p_L at q >= 0.65 qmax, 1 at 0.5 qmax, k2 - k1 / (q - 0.49 qmax) between.
#[test]
fn compete_region_with_losses() {
    let mut f = settled(&[("alpha0", 32_000_000)], 10);
    early_after(&mut f, 999); // with the packet of `settled`, 1000
    early_after(&mut f, 1_000);
    early_after(&mut f, 1_000);
    loss_after(&mut f, 0); // 3000 packets after the start
    assert_eq!(early_per_loss(&f), 3.0);
    // k1 = 3 * 100 * 16 / 1500 = 3.2 (ms), k2 = 1 + 100 * 3.2 / 100 = 4.2.
    for (q_us, target) in [
        (50_000, 1.0),
        (50_100, 1.290_909), // 4.2 - 3.2 / 1.1
        (57_500, 3.823_529), // 4.2 - 3.2 / 8.5
        (64_999, 3.999_987), // 4.2 - 3.2 / 15.999
        (65_000, 4.0),
        (100_000, 4.0),
    ] {
        let mut g = f.clone();
        period(&mut g, q_us);
        assert!((alpha(&g) - target).abs() < 2.0 * ULP, "q {q_us}: {}", alpha(&g));
    }
    // From below alpha comes by steps of 0.1.
    let mut f = settled(&[], 10);
    early_after(&mut f, 999);
    loss_after(&mut f, 3_000); // 4000 after the start, 3000 after the response: target 7/3
    for expected in [1.1, 1.2, 1.3] {
        period(&mut f, 70_000);
        assert!((alpha(&f) - expected).abs() < 4.0 * ULP, "{}", alpha(&f));
    }
}

/// No early response so far: p_E = 0, target 1.
#[test]
fn compete_region_with_losses_only() {
    let mut f = settled(&[("alpha0", 20_000_000)], 10);
    loss_after(&mut f, 1_000);
    assert_eq!(early_per_loss(&f), 0.0);
    period(&mut f, 70_000);
    assert_eq!(alpha(&f), 1.0);
}

/// However rare losses are compared with early responses, alpha stays at 32.
#[test]
fn the_target_is_at_most_32() {
    let mut f = settled(&[("alpha0", 32_000_000)], 10);
    f.conn.cwnd_limited = 0;
    for _ in 0..5 {
        f.send(1 << 30);
        f.ack(1 << 30, 0, NEVER);
    }
    for _ in 0..9 {
        early_after(&mut f, 1); // the first is as long as the loss interval, and forgotten
    }
    loss_after(&mut f, 0);
    assert_eq!(f.cc.observe()[3], u32::MAX, "2^32 and more");
    for (q_us, target) in [(100_000, 32.0), (65_000, 32.0), (50_001, 32.0), (50_000, 1.0)] {
        let mut g = f.clone();
        period(&mut g, q_us);
        assert_eq!(alpha(&g), target, "q {q_us}");
    }
}

// ---------------------------------------------------------------------------------------------
// Intervals: RFC 5348 section 5.4
// ---------------------------------------------------------------------------------------------

/// Average interval: weights 1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2 from the newest on, of those there are;
/// or with the running one in front and without the oldest, if that is more.
fn average(newest_first: &[f64], running: f64) -> f64 {
    const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
    let known = &newest_first[..newest_first.len().min(8)];
    let weighted = |n: &mut dyn Iterator<Item = f64>| {
        n.zip(WEIGHTS).take(known.len()).map(|(n, w)| n * w).sum::<f64>()
    };
    let past = weighted(&mut known.iter().copied());
    let shifted = weighted(&mut std::iter::once(running).chain(known.iter().copied()));
    past.max(shifted) / WEIGHTS[..known.len()].iter().sum::<f64>()
}

#[test]
fn average_by_hand() {
    // 6 * average = 8 + 7 + 6 + 5 + 0.8 * 4 + 0.6 * 3 + 0.4 * 2 + 0.2 = 32
    let eight = [8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0];
    assert!((average(&eight, 0.0) - 32.0 / 6.0).abs() < 1e-9);
    // 20 + 8 + 7 + 6 + 0.8 * 5 + 0.6 * 4 + 0.4 * 3 + 0.2 * 2 = 49
    assert!((average(&eight, 20.0) - 49.0 / 6.0).abs() < 1e-9);
    assert_eq!(average(&[100.0], 7.0), 100.0);
    assert_eq!(average(&[100.0], 107.0), 107.0);
    assert_eq!(average(&[100.0, 50.0], 10.0), 75.0); // (100 + 50) / 2, not (10 + 100) / 2
    assert_eq!(average(&[100.0, 50.0], 60.0), 80.0); // (60 + 100) / 2
}

/// p_L = 1/1000 from one loss; p_E from up to nine early responses, 100, 200, ... packets apart.
#[test]
fn intervals_by_hand() {
    let mut f = settled(&[], 10);
    loss_after(&mut f, 999);
    let mut g = settled(&[], 10);
    loss_after(&mut g, 999);
    assert_eq!(early_per_loss(&f), 0.0);
    // Average interval between early responses after each: by the weights above.
    for (n, average) in [
        (100, 1_100.0),   // the 1000 before the loss belong to the first
        (200, 650.0),     // (200 + 1100) / 2
        (300, 533.333),   // 1600 / 3
        (400, 500.0),     // 2000 / 4
        (500, 475.0),     // (500 + 400 + 300 + 200 + 0.8 * 1100) / 4.8
        (600, 485.185_2), // (1800 + 0.8 * 200 + 0.6 * 1100) / 5.4 = 2620 / 5.4
        (700, 517.241_4), // (2200 + 0.8 * 300 + 0.6 * 200 + 0.4 * 1100) / 5.8 = 3000 / 5.8
        (800, 566.666_7), // (2600 + 320 + 180 + 80 + 0.2 * 1100) / 6 = 3400 / 6
        (900, 633.333_3), // (3000 + 400 + 240 + 120 + 40) / 6: the first is forgotten
    ] {
        early_after(&mut f, n);
        // Losses: one of 1000, and the running interval where that is longer.
        let running: f64 = (1..=n / 100).map(|k| f64::from(k) * 100.0).sum();
        let ratio = running.max(1_000.0) / average;
        assert!(
            (early_per_loss(&f) / ratio - 1.0).abs() < 4e-5,
            "after {n}: {}",
            early_per_loss(&f)
        );
    }
    // The running interval raises the average, not before.
    early_after(&mut g, 1_000); // 2000 after the start
    assert_eq!(early_per_loss(&g), 0.5);
    g.send(5_000);
    g.ack(2_000, 0, NEVER);
    assert_eq!(early_per_loss(&g), 1.5); // losses: 3000 running; early responses: 2000
    g.ack(2_000, 0, NEVER);
    assert_eq!(early_per_loss(&g), 1.25); // 5000, 4000
}

/// Twelve bits of an interval are kept, rounded to the nearest: 8195 = 4 * 2048.75 as 8196, 8193 =
/// 4 * 2048.25 as 8192, 16381 = 4 * 4095.25 as 16380, 16382 = 4 * 4095.5 as 16384.
#[test]
fn long_intervals_are_rounded() {
    for (n, kept) in [
        (4_095, 4_095.0),
        (4_096, 4_096.0),
        (8_195, 8_196.0),
        (8_193, 8_192.0),
        (16_381, 16_380.0),
        (16_382, 16_384.0),
    ] {
        let mut f = settled(&[], 10);
        loss_after(&mut f, n - 1);
        for _ in 0..9 {
            early_after(&mut f, 100);
        }
        assert!((early_per_loss(&f) - kept / 100.0).abs() < 2e-5, "{n}: {}", early_per_loss(&f));
    }
}

/// Two losses with nothing acknowledged between them are one packet apart.
#[test]
fn an_interval_is_at_least_one_packet() {
    let mut f = settled(&[], 10);
    loss_after(&mut f, 999);
    for _ in 0..9 {
        early_after(&mut f, 10);
    }
    loss_after(&mut f, 909); // 999 after the first
    loss_after(&mut f, 0);
    // Losses: (1 + 999 + 1000) / 3. Early responses: the running interval of 909 in front of seven
    // of the eight of 10.
    let ratio = 2_000.0 / 3.0 / average(&[10.0; 8], 909.0);
    assert!((early_per_loss(&f) - ratio).abs() < 2e-5, "{}", early_per_loss(&f));
}

/// Undo: the loss that was none ends no interval.
#[test]
fn undo_restores_the_intervals() {
    let mut f = settled(&[], 10);
    early_after(&mut f, 12_345);
    for n in [70_001, 33_333, 1_000_003, 5, 77, 123_457, 9_999, 4_097, 12_289] {
        let mut spurious = f.clone();
        spurious.send(n);
        f.send(n);
        spurious.ack(n - 3, 0, NEVER);
        f.ack(n - 3, 0, NEVER);
        let before = spurious.cc.observe();
        spurious.loss();
        spurious.cc.undo(&mut spurious.conn);
        spurious.recovered();
        assert_eq!(spurious.cc.observe(), before);
        spurious.ack(3, 0, NEVER);
        f.ack(3, 0, NEVER);
        assert_eq!(spurious.cc.observe(), f.cc.observe());
        spurious.loss();
        f.loss();
        assert_eq!(spurious.cc.observe(), f.cc.observe());
        f.recovered();
        // A second undo has nothing to take back.
        let mut twice = f.clone();
        twice.cc.undo(&mut twice.conn);
        let once = twice.cc.observe();
        twice.cc.undo(&mut twice.conn);
        assert_eq!(twice.cc.observe(), once);
    }
}

#[derive(Clone, Copy, Debug)]
enum Happens {
    Early(u32),
    Loss(u32),
}

fn happens() -> impl Strategy<Value = Happens> {
    let pkts = (1_u32..1 << 30, 0_u32..30).prop_map(|(n, shift)| (n >> shift).max(1));
    (any::<bool>(), pkts)
        .prop_map(|(early, n)| if early { Happens::Early(n) } else { Happens::Loss(n) })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The 16-bit intervals keep p_E / p_L within 2^-11 of that of the exact average, for intervals
    /// of 1 to 2^30 packets in any order, and exactly while none is longer than 4096.
    #[test]
    fn the_ratio_is_within_its_bound(events in prop::collection::vec(happens(), 1..40), short in any::<bool>()) {
        let mut f = settled(&[], 10);
        let (mut losses, mut earlies) = (Vec::new(), Vec::new());
        let (mut since_loss, mut since_early) = (1.0, 1.0); // the packet of `settled`
        for event in events {
            let n = match event {
                Happens::Early(n) | Happens::Loss(n) => if short { n % 100 + 1 } else { n },
            };
            // Running intervals saturate.
            since_loss = f64::min(since_loss + f64::from(n), f64::from(u32::MAX));
            since_early = f64::min(since_early + f64::from(n), f64::from(u32::MAX));
            match event {
                Happens::Early(_) => {
                    early_after(&mut f, n);
                    earlies.insert(0, std::mem::take(&mut since_early));
                }
                Happens::Loss(_) => {
                    loss_after(&mut f, n);
                    losses.insert(0, std::mem::take(&mut since_loss));
                }
            }
            let exact = if losses.is_empty() || earlies.is_empty() {
                0.0
            } else {
                average(&losses, since_loss) / average(&earlies, since_early)
            };
            if exact < 4_000.0 {
                let rounding = ULP + 1e-6; // of the ratio, and of observed values
                let packing = if short { 0.0 } else { exact * 4.885e-4 };
                let error = early_per_loss(&f) - exact;
                prop_assert!(
                    (-packing - rounding..=packing + 1e-9).contains(&error),
                    "{exact}, off by {error}"
                );
            }
        }
    }

    /// alpha over a long life, against the rules in real numbers: off by at most one unit of 2^-16
    /// per change, whatever the parameters.
    #[test]
    fn alpha_is_within_its_bound(
        delays in prop::collection::vec(
            prop_oneof![Just(0_u32), Just(20_000), 50_000_u32..=70_000, Just(100_000)], 1..300),
        alpha0 in 1_000_000_u32..=32_000_000,
        steps in prop_oneof![Just((100_000_u32, 500_000_u32)), (0_u32..=31_000_000, 0_u32..=31_000_000)],
        factor in prop_oneof![Just(900_000_u32), 0_u32..=1_000_000],
        ratio in 0_u32..=40,
    ) {
        let mut f = settled(&[
            ("alpha0", alpha0.into()),
            ("compete_step", steps.0.into()),
            ("high_speed_step", steps.1.into()),
            ("safe_factor", factor.into()),
        ], 2);
        // p_E / p_L at first; 0: no loss so far.
        for _ in 0..ratio {
            early_after(&mut f, 100);
        }
        if ratio != 0 {
            loss_after(&mut f, 0);
        }
        let real = |ppm: u32| f64::from(ppm) / 1e6;
        let (mut exact, mut n) = (real(alpha0), 1.0);
        for q_us in delays {
            period(&mut f, q_us);
            n += 1.0;
            let x = f64::from(q_us) / 100_000.0;
            exact = if x >= 0.5 {
                // Running intervals change it as time goes by.
                let ratio_now = early_per_loss(&f);
                let k1 = ratio_now * 100_000.0 * 16.0 / 1_500.0;
                let k2 = 1.0 + 100.0 * k1 / 100_000.0;
                let target = if ratio == 0 {
                    32.0
                } else if x >= 0.65 {
                    1.0 + ratio_now
                } else {
                    k2 - k1 / (f64::from(q_us) - 49_000.0)
                };
                (exact + real(steps.0)).min(target)
            } else if x <= 0.05 {
                exact + real(steps.1)
            } else {
                exact * real(factor)
            }
            .clamp(1.0, 32.0);
            let error = alpha(&f) - exact;
            // Observed to 10^-6, and so is the ratio.
            prop_assert!(error.abs() <= n * (ULP + 2e-6), "{exact}, off by {error} after {n}");
        }
    }
}
