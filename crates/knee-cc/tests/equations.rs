//! Every rule of NewReno, HD and CHD against values worked out by hand from its source.
//!
//! "CHD paper": Hayes, Armitage, LCN 2010, whose section III restates HD (eq. 1, Fig. 1); "HD
//! letter": Budzisz et al., IEEE Communications Letters 13(7). Queueing delays are microseconds.

mod common;

use common::{ALWAYS, BASE_US, Flow, NEVER, NO_SAMPLE, Notes, params};
use knee_cc::{
    Ack, NOTE_DELAY_BACKOFF, NOTE_LOSS_TOLERATED, NOTE_REGION_B, NOTE_ROUND, Phase,
    SSTHRESH_INFINITE,
};

/// Parameters by name, raw values.
type Given = &'static [(&'static str, u64)];

const CERTAIN: (&str, u64) = ("pmax", 1_000_000);

/// Fails unless `threshold` is probability * 2^32, give or take the rounding of two divisions.
#[track_caller]
fn assert_probability(threshold: u64, probability: f64, case: &str) {
    let hand = probability * 4_294_967_296.0;
    assert!((threshold as f64 - hand).abs() <= 2.0, "{case}: {threshold}, by hand {hand}");
}

// ---------------------------------------------------------------------------------------------
// g(q): HD letter Fig. 1, CHD paper Fig. 1
// ---------------------------------------------------------------------------------------------

/// (q, g/pmax) with qmin = 5 ms, qth = 30 ms, qmax = 100 ms (the papers' values).
const G: [(u32, f64); 11] = [
    (0, 0.0),
    (5_000, 0.0),                  // q = qmin
    (5_001, 1.0 / 25_000.0),       // (5001 - 5000) / (30000 - 5000)
    (17_500, 0.5),                 // 12500 / 25000
    (29_999, 24_999.0 / 25_000.0), // last of region A
    (30_000, 1.0),                 // q = qth
    (30_001, 69_999.0 / 70_000.0), // (100000 - 30001) / (100000 - 30000)
    (65_000, 0.5),                 // 35000 / 70000
    (99_999, 1.0 / 70_000.0),
    (100_000, 0.0), // q = qmax
    (130_000, 0.0), // above it (with `qmax` given)
];

fn hd_threshold(f: &Flow, q_us: u32) -> u64 {
    f.threshold(|f, random| f.ack(1, q_us, random))
}

fn chd_threshold(f: &Flow, q_us: u32) -> u64 {
    f.threshold(|f, random| f.round(q_us, random))
}

#[test]
fn g_of_hd_with_qmax_given() {
    let mut f = Flow::avoiding(params("hd", &[("qmax", 100_000)]), 100);
    f.send(100);
    f.ack(1, 0, NEVER);
    for (q_us, of_pmax) in G {
        assert_probability(hd_threshold(&f, q_us), 0.02 * of_pmax, &format!("q = {q_us}"));
    }
}

#[test]
fn g_of_hd_with_qmax_observed() {
    let mut f = Flow::avoiding(params("hd", &[]), 100);
    f.send(100);
    f.ack(1, 0, NEVER);
    f.ack(1, 100_000, NEVER); // RTTmax - RTTmin = 100 ms
    for (q_us, of_pmax) in &G[..10] {
        assert_probability(hd_threshold(&f, *q_us), 0.02 * of_pmax, &format!("q = {q_us}"));
    }
    // A new largest delay is qmax itself, so g = 0 there.
    assert_eq!(hd_threshold(&f, 130_000), 0);
    // With 130 ms seen, g(65 ms) = 0.02 (130 - 65) / (130 - 30) = 0.013.
    f.ack(1, 130_000, NEVER);
    assert_probability(hd_threshold(&f, 65_000), 0.013, "qmax = 130 ms");
    // A new RTTmin 10 ms lower: q of a 40 + 55 ms sample is 65 ms, qmax = 140 ms:
    // g = 0.02 (140 - 65) / (140 - 30).
    let lower = Ack { rtt_us: BASE_US - 10_000, acked_pkts: 1, random: NEVER, ..Ack::default() };
    f.cc.on_rtt(&mut f.conn, &lower);
    assert_probability(hd_threshold(&f, 55_000), 0.02 * 75.0 / 110.0, "RTTmin = 30 ms");
}

#[test]
fn g_of_chd_with_qmax_given() {
    let mut f = Flow::avoiding(params("chd", &[("qmax", 100_000)]), 100);
    f.round(0, NEVER);
    for (q_us, of_pmax) in G {
        assert_probability(chd_threshold(&f, q_us), 0.25 * of_pmax, &format!("h_r = {q_us}"));
    }
}

#[test]
fn g_of_chd_with_qmax_observed() {
    let mut f = Flow::avoiding(params("chd", &[]), 100);
    f.round(0, NEVER);
    f.round(100_000, NEVER);
    for (q_us, of_pmax) in &G[..10] {
        assert_probability(chd_threshold(&f, *q_us), 0.25 * of_pmax, &format!("h_r = {q_us}"));
    }
    assert_eq!(chd_threshold(&f, 130_000), 0);
}

/// Nothing seen beyond qth: there is no region B, g = pmax from qth on (docs/evidence/interpretations/hd.md).
#[test]
fn g_is_pmax_at_qth_while_nothing_lies_beyond() {
    let mut f = Flow::avoiding(params("hd", &[]), 100);
    f.send(100);
    f.ack(1, 0, NEVER);
    assert_probability(hd_threshold(&f, 30_000), 0.02, "hd, qmax = qth");
    let mut f = Flow::avoiding(params("chd", &[]), 100);
    f.round(0, NEVER);
    assert_probability(chd_threshold(&f, 30_000), 0.25, "chd, qmax = qth");
    // The smoothed RTT can stay above qth where no sample does: samples give qmax = 20 ms.
    let mut f = Flow::avoiding(params("hd", &[("signal", 1)]), 100);
    f.send(100);
    f.ack(1, 0, NEVER);
    f.ack(1, 20_000, NEVER);
    f.conn.srtt_us = BASE_US as u32 + 50_000;
    assert_probability(hd_threshold(&f, 20_000), 0.02, "hd, qmax < qth < q");
}

#[test]
fn g_is_exact_for_pmax_0_and_1() {
    for (pmax, expected) in [(0, 0), (1_000_000, 1_u64 << 32)] {
        let mut f = Flow::avoiding(params("hd", &[("pmax", pmax)]), 100);
        f.send(100);
        f.ack(1, 0, NEVER);
        assert_eq!(hd_threshold(&f, 30_000), expected);
        let mut f = Flow::avoiding(params("chd", &[("pmax", pmax)]), 100);
        f.round(0, NEVER);
        assert_eq!(chd_threshold(&f, 30_000), expected);
    }
}

/// The widest linear part that parameters allow: (q - qmin) / (qth - qmin) = 4 / 8 s.
#[test]
fn g_keeps_its_precision_over_seconds() {
    let wide = [("qmin", 1_000_000), ("qth", 9_000_000), ("qmax", 10_000_000)];
    let mut f = Flow::avoiding(params("chd", &wide), 100);
    f.round(0, NEVER);
    assert_probability(chd_threshold(&f, 5_000_000), 0.125, "mid A");
    // (10 - 9.75) / (10 - 9) of 0.25.
    assert_probability(chd_threshold(&f, 9_750_000), 0.0625, "B");
}

/// Samples are taken as 1 us ... 2^24 - 1 us: a 0 of a coarse clock must not pass for "no sample", and
/// larger ones must not overflow. With RTTmin = 1 us, q of 20 001 us is 20 ms:
/// g = (20 - 5) / (30 - 5) = 0.6. With qmax = 2^24 - 2 us, g(qth) = pmax.
#[test]
fn g_of_extreme_samples() {
    for signal in [0, 1] {
        let mut f = Flow::avoiding(params("hd", &[("signal", signal), CERTAIN]), 20);
        let sample = |f: &mut Flow, rtt_us: i32, random| {
            let ack = Ack { rtt_us, acked_pkts: 1, random, ..Ack::default() };
            f.conn.srtt_us = rtt_us as u32;
            f.cc.on_rtt(&mut f.conn, &ack);
            f.cc.on_ack(&mut f.conn, &ack);
            f.conn.notes
        };
        sample(&mut f, 0, NEVER);
        assert_probability(f.threshold(|f, x| sample(f, 20_001, x)), 0.6, "RTTmin = 0");
        sample(&mut f, i32::MAX, NEVER);
        assert_eq!(f.cc.observe()[..2], [(1 << 24) - 2; 2]);
        assert_probability(f.threshold(|f, x| sample(f, 30_001, x)), 1.0, "RTTmax = 2^31 - 1");
        // (16777214 - 8403607) / (16777214 - 30000) = 8373607 / 16747214 = 0.5.
        let middle = |f: &mut Flow, x| sample(f, 8_403_608, x);
        assert_probability(f.threshold(middle), 0.5, "mid B");
    }
}

// ---------------------------------------------------------------------------------------------
// NewReno: RFC 5681, RFC 3465; the growth that HD shares
// ---------------------------------------------------------------------------------------------

/// HD without delay must do the same as NewReno: each case runs on both.
fn reno_and_hd(given: &[(&str, u64)], case: impl Fn(knee_cc::Params)) {
    case(params("newreno", given));
    case(params("hd", given));
}

/// RFC 5681 section 3.1 eq. 2: cwnd += min(N, SMSS) for each ACK; RFC 3465 section 2.2 counts the
/// packets, up to L.
#[test]
fn slow_start_adds_the_packets_that_an_ack_counts() {
    // (parameters, packets that one ACK acknowledges, packets added)
    let cases: [(Given, u32, u32); 8] = [
        (&[], 1, 1),
        (&[], 2, 2),
        (&[], 5, 5),
        (&[("count", 0)], 1, 1),
        (&[("count", 0)], 2, 1), // a delayed ACK counts once
        (&[("ss_limit", 1)], 2, 1),
        (&[("ss_limit", 2)], 2, 2),
        (&[("ss_limit", 2)], 5, 2),
    ];
    for (given, acked, added) in cases {
        reno_and_hd(given, |p| {
            let mut f = Flow::slow_start(p, 10);
            f.send(10);
            f.ack(acked, 0, NEVER);
            assert_eq!(f.w(), 10 + added, "{given:?}, {acked} acknowledged");
            assert_eq!(f.conn.ssthresh_pkts, SSTHRESH_INFINITE);
        });
    }
}

/// Three packets and an ACK for each: 3, 6, 12, 24 after each round trip.
#[test]
fn slow_start_doubles_per_round_trip() {
    reno_and_hd(&[], |p| {
        let mut f = Flow::slow_start(p, 3);
        for expected in [6, 12, 24] {
            f.send(f.w());
            for _ in 0..f.conn.outstanding_pkts {
                f.ack(1, 0, NEVER);
            }
            assert_eq!(f.w(), expected);
        }
    });
}

/// Slow start only for cwnd < ssthresh strictly; packets that an ACK has left over at ssthresh count in
/// congestion avoidance, except those that `ss_limit` cut off.
#[test]
fn slow_start_ends_at_ssthresh() {
    reno_and_hd(&[], |p| {
        let mut f = Flow::new(p, 8, 10);
        f.send(8);
        f.ack(5, 0, NEVER); // 5 = 2 up to ssthresh + 3 of the 10 that make the next +1
        assert_eq!((f.w(), f.conn.cwnd_cnt), (10, 3));
    });
    reno_and_hd(&[("ss_limit", 1)], |p| {
        let mut f = Flow::new(p, 9, 10);
        f.send(8);
        f.ack(5, 0, NEVER);
        assert_eq!((f.w(), f.conn.cwnd_cnt), (10, 0));
    });
}

/// RFC 5681 section 3.1 eq. 3; CHD paper eq. 1, second case: +1/w per packet acknowledged.
#[test]
fn avoidance_adds_one_packet_per_window() {
    reno_and_hd(&[], |p| {
        let mut f = Flow::avoiding(p, 10);
        for (window, next) in [(10, 11), (11, 12)] {
            f.send(window);
            for _ in 1..window {
                f.ack(1, 0, NEVER);
                assert_eq!(f.w(), window);
            }
            f.ack(1, 0, NEVER);
            assert_eq!(f.w(), next);
        }
    });
}

/// 10 + (7 + 7)/10: one step, 4 left; 11 + (4 + 7)/11: one step, 0 left. A stretch ACK of three
/// windows makes three steps: 12 + 36/12, remainder 0; 37 would leave 1.
#[test]
fn avoidance_carries_the_remainder() {
    reno_and_hd(&[], |p| {
        let mut f = Flow::avoiding(p, 10);
        for (acked, w, count) in [(7, 10, 7), (7, 11, 4), (7, 12, 0), (37, 15, 1)] {
            f.send(acked);
            f.ack(acked, 0, NEVER);
            assert_eq!((f.w(), f.conn.cwnd_cnt), (w, count));
        }
    });
}

/// Ten delayed ACKs of two packets each on a window of 10: counted as 20 packets, +1 after five
/// ACKs, then 10 of 11; counted as ten ACKs, +1 only after the tenth.
#[test]
fn avoidance_counts_packets_or_acks() {
    for (count, half, end, left) in [(1, 11, 11, 10), (0, 10, 11, 0)] {
        reno_and_hd(&[("count", count)], |p| {
            let mut f = Flow::avoiding(p, 10);
            f.send(20);
            for _ in 0..5 {
                f.ack(2, 0, NEVER);
            }
            assert_eq!(f.w(), half);
            for _ in 0..5 {
                f.ack(2, 0, NEVER);
            }
            assert_eq!((f.w(), f.conn.cwnd_cnt), (end, left));
        });
    }
}

#[test]
fn no_growth_while_the_application_limits() {
    reno_and_hd(&[], |p| {
        for ssthresh in [10, SSTHRESH_INFINITE] {
            let mut f = Flow::new(p.clone(), 10, ssthresh);
            f.conn.cwnd_limited = 0;
            f.send(30);
            f.ack(30, 0, NEVER);
            assert_eq!((f.w(), f.conn.cwnd_cnt), (10, 0));
        }
    });
}

#[test]
fn growth_stops_at_the_largest_window() {
    reno_and_hd(&[], |p| {
        for ssthresh in [10, 2 * (1 << 30) - 1] {
            let mut f = Flow::new(p.clone(), (1 << 30) - 1, ssthresh);
            f.send(1 << 30);
            f.ack(1 << 30, 0, NEVER);
            assert_eq!(f.w(), 1 << 30);
        }
    });
}

/// 2^29 - 1 counted and 2^32 - 1 more: held at 2^32 - 1, which is 7 windows of 2^29 and a rest.
#[test]
fn avoidance_counts_without_wrapping() {
    reno_and_hd(&[], |p| {
        let mut f = Flow::avoiding(p, 1 << 29);
        f.conn.cwnd_cnt = (1 << 29) - 1;
        let ack = Ack { rtt_us: -1, acked_pkts: u32::MAX, random: NEVER, ..Ack::default() };
        f.cc.on_ack(&mut f.conn, &ack);
        assert_eq!((f.w(), f.conn.cwnd_cnt), ((1 << 29) + 7, (1 << 29) - 1));
    });
}

/// RFC 5681 section 3.1 eq. 4: max(FlightSize / 2, 2), and packets of limited transmit are not
/// flight (RFC 3042 section 2).
#[test]
fn loss_halves_the_flight() {
    reno_and_hd(&[], |p| {
        // (cwnd, outstanding, ssthresh)
        for (w, outstanding, ssthresh) in
            [(20, 20, 10), (11, 11, 5), (10, 6, 3), (10, 12, 5), (3, 3, 2), (2, 2, 2), (10, 0, 2)]
        {
            let mut f = Flow::avoiding(p.clone(), w);
            f.send(outstanding);
            assert_eq!(f.loss(), (ssthresh, 0), "cwnd {w}, outstanding {outstanding}");
            let mut f = Flow::avoiding(p.clone(), w);
            f.send(outstanding);
            assert_eq!(f.timeout(), ssthresh, "timeout at cwnd {w}, outstanding {outstanding}");
        }
    });
}

#[test]
fn undo_gives_the_window_back() {
    reno_and_hd(&[], |p| {
        let mut f = Flow::avoiding(p, 20);
        f.send(20);
        assert_eq!(f.loss().0, 10);
        assert_eq!(f.cc.undo(&mut f.conn), 20);
        f.conn.cwnd_pkts = 25; // has grown past it meanwhile
        assert_eq!(f.cc.undo(&mut f.conn), 25);
    });
}

// ---------------------------------------------------------------------------------------------
// HD: CHD paper section III, HD letter Algorithm 1
// ---------------------------------------------------------------------------------------------

/// A flow with a known RTTmin that backs off at will: pmax = 1, so g(qth) = 1.
fn hd(w: u32, ssthresh: u32, given: &[(&str, u64)]) -> Flow {
    hd_at(0, w, ssthresh, given)
}

fn hd_at(pos: u32, w: u32, ssthresh: u32, given: &[(&str, u64)]) -> Flow {
    let mut f = Flow::at(pos, params("hd", &[given, &[CERTAIN]].concat()), w, ssthresh);
    f.conn.cwnd_limited = 0; // the base sample is not to grow the window
    f.send(w);
    f.ack(1, 0, ALWAYS); // g(0) = 0: even this draw does not back off
    f.send(1);
    f.conn.cwnd_limited = 1;
    f
}

/// eq. 1: w/2, rounded down; floor 2. The ACK that halves does not also grow the window, and
/// packets counted towards the next +1 are forgotten.
#[test]
fn hd_halves() {
    for (before, after) in [(20, 10), (21, 10), (5, 2), (4, 2), (3, 2), (2, 2)] {
        let mut f = hd(before, before, &[]);
        f.conn.cwnd_cnt = 1;
        assert_eq!(f.ack(1, 20_000, ALWAYS), NOTE_DELAY_BACKOFF);
        // reading HD-d: ssthresh = new cwnd.
        assert_eq!((f.w(), f.conn.ssthresh_pkts, f.conn.cwnd_cnt), (after, after, 0));
    }
}

#[test]
fn hd_grows_as_newreno_where_it_does_not_halve() {
    let mut f = hd(10, 10, &[]);
    for _ in 0..9 {
        assert_eq!(f.ack(1, 20_000, NEVER), 0); // g(20 ms) = 0.6 and X is just below 1
        assert_eq!(f.w(), 10);
    }
    f.ack(1, 20_000, NEVER);
    assert_eq!(f.w(), 11);
}

/// reading HD-f: q = qth counts as region B.
#[test]
fn hd_names_the_region() {
    for (q_us, note) in [(29_999, 0), (30_000, NOTE_REGION_B), (60_000, NOTE_REGION_B)] {
        let mut f = hd(20, 20, &[("qmax", 100_000)]);
        assert_eq!(f.ack(1, q_us, ALWAYS), NOTE_DELAY_BACKOFF | note, "q = {q_us}");
    }
}

/// HD letter Algorithm 1 as printed: one Bernoulli trial per ACK, 20 -> 10 -> 5 -> 2 -> 2.
#[test]
fn hd_without_holdoff_halves_at_every_ack() {
    let mut f = hd(20, 20, &[("holdoff", 0)]);
    for expected in [10, 5, 2, 2] {
        f.ack(1, 20_000, ALWAYS);
        assert_eq!(f.w(), expected);
    }
}

/// reading HD-a: no second delay backoff until the data outstanding at the first is acknowledged;
/// at every position, so also where positions wrap.
#[test]
fn hd_holds_off_for_the_data_outstanding() {
    for start in [0, 1, u32::MAX - 9, u32::MAX - 20, u32::MAX, i32::MAX as u32 - 9] {
        let mut f = hd_at(start, 20, 20, &[]);
        assert_eq!(f.ack(1, 20_000, ALWAYS), NOTE_DELAY_BACKOFF);
        for _ in 0..18 {
            assert_eq!(f.ack(1, 20_000, ALWAYS), 0, "19 were outstanding");
        }
        f.send(10);
        assert_eq!(f.ack(1, 20_000, ALWAYS), NOTE_DELAY_BACKOFF, "the 19th");
        assert_eq!(f.ack(1, 20_000, ALWAYS), 0, "holds off anew");
    }
}

/// reading HD-b: with q = srtt - RTTmin = 10 ms, g = (10 - 5) / (30 - 5) = 0.2 whatever the sample.
#[test]
fn hd_can_use_the_smoothed_rtt() {
    let mut f = hd(20, 20, &[("signal", 1), ("qmax", 100_000)]);
    f.conn.srtt_us = BASE_US as u32 + 10_000;
    assert_probability(hd_threshold(&f, 60_000), 0.2, "srtt");
    // Below RTTmin: q = 0, so g = 0.
    let mut f = hd(20, 20, &[("signal", 1)]);
    f.conn.srtt_us = BASE_US as u32 - 1;
    assert_eq!(hd_threshold(&f, 0), 0);
    // Before the first sample there is no RTTmin to compare with.
    let mut f = Flow::avoiding(params("hd", &[("signal", 1), CERTAIN]), 20);
    f.conn.srtt_us = BASE_US as u32;
    f.send(20);
    assert_eq!(f.ack(1, NO_SAMPLE, ALWAYS), 0);
}

/// An ACK that measures nothing is judged by the latest sample.
#[test]
fn hd_judges_by_the_latest_sample() {
    let mut f = hd(20, 20, &[]);
    f.ack(1, 17_500, NEVER);
    assert_probability(f.threshold(|f, x| f.ack(1, NO_SAMPLE, x)), 0.5, "no new sample");
}

#[test]
fn hd_waits_for_its_first_sample() {
    let mut f = Flow::avoiding(params("hd", &[CERTAIN]), 20);
    f.send(20);
    assert_eq!(f.ack(1, NO_SAMPLE, ALWAYS), 0);
}

/// reading HD-e: no delay test in recovery, nor after a timeout.
#[test]
fn hd_tests_only_outside_recovery() {
    for (phase, backs_off) in [
        (Phase::Open, true),
        (Phase::Disorder, true),
        (Phase::Cwr, false),
        (Phase::Recovery, false),
        (Phase::Loss, false),
    ] {
        let mut f = hd(20, 20, &[]);
        f.conn.phase = phase as u8;
        let ack = Ack { rtt_us: BASE_US + 20_000, acked_pkts: 1, random: ALWAYS, ..Ack::default() };
        f.cc.on_rtt(&mut f.conn, &ack);
        f.cc.on_ack(&mut f.conn, &ack); // even if a host calls it where it should not
        assert_eq!(f.w() == 10, backs_off, "{phase:?}");
    }
}

/// reading HD-c: the test runs in slow start and ends it; `ss_test=off` leaves slow start alone.
#[test]
fn hd_in_slow_start() {
    let mut f = hd(20, SSTHRESH_INFINITE, &[]);
    f.ack(1, 20_000, ALWAYS);
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (10, 10));
    let mut f = hd(20, SSTHRESH_INFINITE, &[("ss_test", 0)]);
    f.ack(1, 20_000, ALWAYS);
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (21, SSTHRESH_INFINITE));
    f.conn.ssthresh_pkts = 21;
    f.ack(1, 20_000, ALWAYS);
    assert_eq!(f.w(), 10);
}

#[test]
fn hd_observes_its_inputs() {
    let mut f = Flow::avoiding(params("hd", &[("qmax", 100_000)]), 20);
    f.send(20);
    f.ack(1, 0, NEVER);
    f.ack(1, 65_000, NEVER);
    // g = 0.02 * 35/70 = 0.01, less the rounding of 2^-32.
    let [q_us, qmax_us, g_ppm, region_b] = f.cc.observe();
    assert_eq!((q_us, qmax_us, region_b), (65_000, 100_000, 1));
    assert!((9_999..=10_000).contains(&g_ppm), "{g_ppm}");
}

// ---------------------------------------------------------------------------------------------
// CHD: CHD paper section IV
// ---------------------------------------------------------------------------------------------

/// A flow of window `w` with a known RTTmin and nothing outstanding: pmax = 0.25 and qmax = 100 ms,
/// so that between qmin and qmax `ALWAYS` backs off and `NEVER` does not.
fn chd(w: u32, ssthresh: u32, given: &[(&str, u64)]) -> Flow {
    chd_at(0, w, ssthresh, given)
}

fn chd_at(pos: u32, w: u32, ssthresh: u32, given: &[(&str, u64)]) -> Flow {
    let given = [&[("qmax", 100_000)], given].concat();
    let mut f = Flow::at(pos, params("chd", &given), w, ssthresh);
    f.conn.cwnd_limited = 0; // the base round is not to grow the window
    f.round(0, ALWAYS);
    f.conn.cwnd_limited = 1;
    f
}

/// CHD in congestion avoidance.
fn chd_ca(w: u32, given: &[(&str, u64)]) -> Flow {
    chd(w, w, given)
}

/// A round of four samples; the last is that of the marked packet. Gives the notes of the three ACKs
/// before it, and its own.
fn round_of_four(f: &mut Flow, q_us: [u32; 4], random: u32) -> (Notes, Notes) {
    f.send(4);
    f.ack(1, 0, NEVER); // ends the round before; the next packet sent is the marked one
    f.send(1);
    let before = (0..3).fold(0, |notes, i| notes | f.ack(1, q_us[i], random));
    (before, f.ack(1, q_us[3], random))
}

/// Section IV-A and Fig. 2 item 1: +1 packet per RTT, not per ACK. A round ends when the marked
/// packet is acknowledged (footnote 2); the first packet of the flow is the first one marked.
#[test]
fn chd_grows_once_per_round() {
    for start in [0, 1, u32::MAX, u32::MAX - 14, u32::MAX - 40, i32::MAX as u32 - 5] {
        let mut f = Flow::at(start, params("chd", &[]), 10, 10);
        for w in 10..20 {
            f.send(w);
            // The first of this window is the first sent since the last round ended: marked.
            assert_eq!(f.ack(1, 0, NEVER), NOTE_ROUND, "from {start}, window {w}");
            assert_eq!(f.w(), w + 1);
            for _ in 1..w {
                assert_eq!(f.ack(1, 0, NEVER), 0, "from {start}, window {w}");
                assert_eq!(f.w(), w + 1);
            }
        }
    }
}

/// The mark is the next packet to be sent, not the one just acknowledged: with 9 packets still
/// outstanding at the end of a round, the round lasts for those 9 and one more.
#[test]
fn chd_round_lasts_until_the_marked_packet_is_acknowledged() {
    for start in [0, u32::MAX - 10, u32::MAX - 9, u32::MAX - 8] {
        let mut f = Flow::at(start, params("chd", &[]), 10, 10);
        f.send(10);
        assert_eq!(f.ack(1, 0, NEVER), NOTE_ROUND);
        f.send(2);
        for _ in 0..9 {
            assert_eq!(f.ack(1, 0, NEVER), 0);
        }
        assert_eq!(f.ack(1, 0, NEVER), NOTE_ROUND);
        assert_eq!(f.ack(1, 0, NEVER), 0);
        assert_eq!(f.w(), 12);
    }
}

/// reading CHD-a, the other reading: +1/w per ACK; s still gains 1 per round.
#[test]
fn chd_can_grow_per_ack() {
    let mut f = chd_ca(20, &[("growth", 1)]);
    f.round(12_000, ALWAYS); // eq. 3: s = 20; eq. 2: w = 10
    assert_eq!(f.w_s(), (10, 20));
    f.send(10);
    f.ack(1, 0, NEVER); // ends a round
    assert_eq!(f.w_s(), (10, 21));
    for _ in 0..8 {
        f.ack(1, 0, NEVER);
    }
    assert_eq!(f.w_s(), (10, 21));
    f.ack(1, 0, NEVER); // the tenth of 10
    assert_eq!(f.w_s(), (11, 21));
}

#[test]
fn chd_growth_per_ack_honours_the_counting_rule() {
    // 10 packets in 5 ACKs: a window's worth of packets, half a window's of ACKs.
    for (count, w) in [(1, 11), (0, 10)] {
        let mut f = chd_ca(10, &[("growth", 1), ("count", count)]);
        f.send(10);
        for _ in 0..5 {
            f.ack(2, 0, NEVER);
        }
        assert_eq!(f.w(), w);
    }
}

/// h_r = max over the round of q (section IV-A), of that round only; or its last one (`use_max`).
#[test]
fn chd_takes_the_largest_delay_of_the_round() {
    for (use_max, h_us) in [(1, 25_000), (0, 6_000)] {
        let mut f = chd_ca(20, &[("use_max", use_max)]);
        round_of_four(&mut f, [10_000, 25_000, 8_000, 6_000], NEVER);
        assert_eq!(f.cc.observe()[0], h_us);
        round_of_four(&mut f, [1_000, 2_000, 3_000, 3_000], NEVER);
        assert_eq!(f.cc.observe()[0], 3_000, "the round before is forgotten");
    }
}

/// A round in which every sample was of a retransmission records nothing new.
#[test]
fn chd_keeps_h_over_a_round_without_samples() {
    let mut f = chd_ca(20, &[]);
    f.round(12_000, NEVER);
    f.round(NO_SAMPLE, NEVER);
    assert_eq!(f.cc.observe()[0], 12_000);
}

/// "Delay based cwnd operations are performed only once per RTT" (section IV).
#[test]
fn chd_decides_once_per_round() {
    let mut f = chd_ca(20, &[]);
    let (before, at_mark) = round_of_four(&mut f, [20_000; 4], ALWAYS);
    assert_eq!(before, 0);
    assert_eq!(at_mark, NOTE_ROUND | NOTE_DELAY_BACKOFF);
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (10, 10)); // 20 + 1 in the first round: 21/2
}

/// eq. 2, first case, with the floor of 2 and ssthresh = w.
#[test]
fn chd_halves() {
    for (before, after) in [(20, 10), (21, 10), (4, 2), (3, 2), (2, 2)] {
        let mut f = chd_ca(before, &[]);
        assert_eq!(f.round(12_000, ALWAYS), NOTE_ROUND | NOTE_DELAY_BACKOFF);
        assert_eq!((f.w(), f.conn.ssthresh_pkts), (after, after));
    }
}

/// reading CHD-k: the test runs in slow start and ends it, unless `ss_test=off`.
#[test]
fn chd_in_slow_start() {
    let mut f = chd(20, SSTHRESH_INFINITE, &[]);
    f.round(12_000, ALWAYS);
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (10, 10));
    let mut f = chd(20, SSTHRESH_INFINITE, &[("ss_test", 0)]);
    f.round(12_000, ALWAYS);
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (40, SSTHRESH_INFINITE));
}

#[test]
fn chd_tests_only_outside_recovery() {
    for (phase, backs_off) in [
        (Phase::Open, true),
        (Phase::Disorder, true),
        (Phase::Cwr, false),
        (Phase::Recovery, false),
        (Phase::Loss, false),
    ] {
        let mut f = chd_ca(20, &[]);
        f.send(20);
        f.conn.phase = phase as u8;
        f.conn.ack_pos = f.conn.snd_pos;
        let ack =
            Ack { rtt_us: BASE_US + 12_000, acked_pkts: 20, random: ALWAYS, ..Ack::default() };
        f.cc.on_rtt(&mut f.conn, &ack);
        f.cc.on_ack(&mut f.conn, &ack);
        assert_eq!(f.w() == 10, backs_off, "{phase:?}");
    }
}

/// eq. 3. Each case: rounds as (h_r, draw), then (w, s) after each.
#[test]
fn chd_keeps_the_shadow_in_check() {
    type Rounds = &'static [((u32, u32), (u32, u32))];
    let cases: [(&str, Rounds); 8] = [
        // 12 ms > h_b = 0 and < qth: s = max(20, 0).
        ("rising in A", &[((12_000, ALWAYS), (10, 20))]),
        // h_b = 12 ms: 12 is not above it, "otherwise": 0.
        ("level in A", &[((12_000, ALWAYS), (10, 20)), ((12_000, ALWAYS), (5, 0))]),
        ("falling in A", &[((12_000, ALWAYS), (10, 20)), ((11_000, ALWAYS), (5, 0))]),
        // max(w, s) = max(11, 21) keeps the larger s.
        (
            "rising again in A",
            &[
                ((12_000, ALWAYS), (10, 20)),
                ((3_000, NEVER), (11, 21)),
                ((13_000, ALWAYS), (5, 21)),
            ],
        ),
        // In B every backoff sets s, falling or not.
        ("falling in B", &[((80_000, ALWAYS), (10, 20)), ((40_000, ALWAYS), (5, 20))]),
        // reading CHD-f: h_r = qth counts as B here, though 30 ms < h_b.
        ("falling to qth", &[((40_000, ALWAYS), (10, 20)), ((30_000, ALWAYS), (5, 20))]),
        ("falling from B to A", &[((40_000, ALWAYS), (10, 20)), ((29_999, ALWAYS), (5, 0))]),
        // h_b is the h_r of the last *reduction*: the 25 ms that went without one do not count.
        (
            "rising since the last backoff",
            &[
                ((12_000, ALWAYS), (10, 20)),
                ((25_000, NEVER), (11, 21)),
                ((13_000, ALWAYS), (5, 21)),
            ],
        ),
    ];
    for (case, rounds) in cases {
        let mut f = chd_ca(20, &[]);
        for ((h_us, random), w_s) in rounds {
            f.round(*h_us, *random);
            assert_eq!(f.w_s(), *w_s, "{case}, h_r = {h_us}");
        }
    }
}

/// eq. 3 with w > s: losses in region A halve s but not w, so that s falls below w.
#[test]
fn chd_shadow_is_raised_to_the_window() {
    let mut f = chd_ca(20, &[]);
    f.round(12_000, ALWAYS); // (10, 20)
    for s in [10, 5] {
        assert_eq!(f.loss().0, 10);
        f.recovered();
        assert_eq!(f.w_s(), (10, s));
    }
    f.round(14_000, ALWAYS);
    assert_eq!(f.w_s(), (5, 10)); // max(10, 5), 14 ms > h_b = 12 ms
}

/// Fig. 2 item 4: s is incremented as NewReno's window would be; an inactive one (0) is not.
#[test]
fn chd_shadow_grows_with_the_window() {
    let mut f = chd_ca(10, &[]);
    f.round(3_000, NEVER);
    assert_eq!(f.w_s(), (11, 0));
    f.round(12_000, ALWAYS);
    assert_eq!(f.w_s(), (5, 11));
    f.round(3_000, NEVER);
    f.round(3_000, NEVER);
    assert_eq!(f.w_s(), (7, 13));
    f.conn.cwnd_limited = 0;
    f.round(3_000, NEVER);
    assert_eq!(f.w_s(), (7, 13));
}

/// Slow start adds the same to s if s != 0. CHD-c: s may start at the initial window.
#[test]
fn chd_shadow_in_slow_start() {
    for (shadow_init, s) in [(1, [3, 5, 8]), (0, [0, 0, 0])] {
        let mut f = chd(3, 8, &[("shadow_init", shadow_init)]);
        assert_eq!(f.w_s(), (3, s[0]));
        f.send(8);
        f.ack(2, 0, NEVER);
        assert_eq!(f.w_s(), (5, s[1]));
        f.ack(6, 0, NEVER); // only 3 packets up to ssthresh
        assert_eq!(f.w_s(), (8, s[2]));
    }
    let f = chd(3, 8, &[("shadow_init", 1), ("loss_fair", 0)]);
    assert_eq!(f.w_s(), (3, 0));
}

/// An ACK of 20 packets ends slow start at ssthresh = 8 with 15 left. They earn nothing where growth
/// is per round; per ACK they are one window of 8 and 7 towards the next.
#[test]
fn chd_leaves_slow_start_within_an_ack() {
    for (growth, w, count) in [(0, 8, 0), (1, 9, 7)] {
        let mut f = chd(3, 8, &[("growth", growth)]);
        f.send(20);
        f.ack(20, 0, NEVER);
        assert_eq!((f.w(), f.conn.cwnd_cnt), (w, count));
    }
}

/// After a timeout in slow start: s gains the growth of slow start.
#[test]
fn chd_shadow_follows_slow_start_after_a_timeout() {
    let mut f = chd_ca(20, &[]);
    f.round(12_000, ALWAYS); // (10, 20)
    f.send(10);
    assert_eq!(f.timeout(), 5); // NewReno: 10/2, though region A would tolerate a loss
    assert_eq!(f.w_s(), (1, 10)); // s halved as at any loss
    f.ack(2, 0, NEVER);
    assert_eq!(f.w_s(), (3, 12));
}

/// reading CHD-b: eq. 3 as printed clears s at every round without a reduction.
#[test]
fn chd_can_clear_the_shadow_every_round() {
    let mut f = chd_ca(20, &[("shadow_clear", 1)]);
    f.round(12_000, ALWAYS);
    assert_eq!(f.w_s(), (10, 20));
    f.round(3_000, NEVER);
    assert_eq!(f.w_s(), (11, 0));
}

/// Section IV-B off: no shadow window, and a loss in B halves w; region A still tolerates.
#[test]
fn chd_without_the_shadow_window() {
    let mut f = chd_ca(20, &[("loss_fair", 0)]);
    f.round(50_000, ALWAYS);
    assert_eq!(f.w_s(), (10, 0));
    f.round(50_000, NEVER);
    assert_eq!(f.loss(), (5, NOTE_REGION_B)); // 11/2
    let mut f = chd_ca(20, &[("loss_fair", 0)]);
    f.round(12_000, NEVER);
    assert_eq!(f.loss(), (21, NOTE_LOSS_TOLERATED));
}

/// eq. 4: max(w, s)/2 where h_r > qth, else w. h_r = qth is A here (reading CHD-f).
#[test]
fn chd_loss_by_region() {
    // (h_r of the last round, ssthresh, s after, notes); w = 11, s = 21 at the loss
    for (h_us, ssthresh, s, notes) in [
        (3_000, 11, 10, NOTE_LOSS_TOLERATED),
        (29_999, 11, 10, NOTE_LOSS_TOLERATED),
        (30_000, 11, 10, NOTE_LOSS_TOLERATED),
        (30_001, 10, 10, NOTE_REGION_B), // max(11, 21)/2
        (99_000, 10, 10, NOTE_REGION_B),
    ] {
        let mut f = chd_ca(20, &[]);
        f.round(12_000, ALWAYS); // (10, 20)
        f.round(h_us, NEVER);
        assert_eq!(f.w_s(), (11, 21));
        assert_eq!(f.loss(), (ssthresh, notes), "h_r = {h_us}");
        assert_eq!(f.w_s(), (ssthresh, s), "h_r = {h_us}");
    }
    // Without a shadow window max(w, 0)/2, floor 2.
    for (w, ssthresh) in [(20, 10), (3, 2), (2, 2)] {
        let mut f = chd_ca(w, &[]);
        f.conn.cwnd_limited = 0;
        f.round(50_000, NEVER);
        assert_eq!(f.loss(), (ssthresh, NOTE_REGION_B));
    }
}

/// reading CHD-d: s is halved by every loss in either region, floor 2; `shadow_loss=keep` keeps it.
#[test]
fn chd_loss_halves_the_shadow() {
    for (keep, s) in [(false, [10, 5, 2, 2]), (true, [20; 4])] {
        let mut f = chd_ca(20, &[("shadow_loss", u64::from(!keep))]);
        f.round(12_000, ALWAYS);
        for s in s {
            f.loss();
            f.recovered();
            assert_eq!(f.w_s(), (10, s));
        }
    }
    // Halving does not wake a shadow window that is inactive.
    let mut f = chd_ca(20, &[]);
    f.loss();
    assert_eq!(f.w_s(), (20, 0));
}

/// reading CHD-e: the last round read 10 ms (A), the one that is running has seen 50 ms (B).
#[test]
fn chd_loss_is_judged_by_the_last_round_or_the_present_one() {
    for (loss_delay, expected) in [(1, (11, NOTE_REGION_B)), (0, (22, NOTE_LOSS_TOLERATED))] {
        let mut f = chd_ca(20, &[("loss_delay", loss_delay), ("delack_filter", 0)]);
        f.round(10_000, NEVER); // 21
        f.send(21);
        f.ack(1, 10_000, NEVER); // ends a round: 22
        f.ack(1, 50_000, NEVER); // within the next
        assert_eq!(f.loss(), expected);
    }
    // The other way round: the last round read B, the present one A so far.
    for loss_delay in [0, 1] {
        let mut f = chd_ca(20, &[("loss_delay", loss_delay), ("delack_filter", 0)]);
        f.round(10_000, NEVER);
        f.send(21);
        f.ack(1, 50_000, NEVER);
        f.ack(1, 10_000, NEVER);
        assert_eq!(f.loss(), (11, NOTE_REGION_B));
    }
}

/// reading RTT: an ACK for one packet gives no sample while ACKs for several have been seen lately:
/// each of these adds 1 to a suspicion of at most 5, each ACK for one takes 1 away.
#[test]
fn delayed_acks_give_no_samples() {
    // observe()[0] of HD is q of the latest sample taken in, that of CHD h of the last round.
    let q_after = |filter, acks: &[(u32, u32)]| {
        let mut f = Flow::avoiding(params("hd", &[("delack_filter", filter)]), 40);
        f.send(40);
        f.ack(1, 0, NEVER);
        for &(n, q_us) in acks {
            f.ack(n, q_us, NEVER);
        }
        f.cc.observe()[0]
    };
    // No suspicion: ACKs for one packet each are all taken.
    assert_eq!(q_after(1, &[(1, 3_000), (1, 4_000)]), 4_000);
    // After one for two, the next for one is not; the one after it is.
    assert_eq!(q_after(1, &[(2, 3_000), (1, 90_000)]), 3_000);
    assert_eq!(q_after(1, &[(2, 3_000), (1, 90_000), (1, 4_000)]), 4_000);
    // Ones for several are always taken.
    assert_eq!(q_after(1, &[(2, 3_000), (2, 5_000)]), 5_000);
    // Suspicion saturates at 5: six for two, then five for one are left out, the sixth is taken.
    let many: Vec<(u32, u32)> = [(2, 3_000); 6].into_iter().chain([(1, 90_000); 5]).collect();
    assert_eq!(q_after(1, &many), 3_000);
    assert_eq!(q_after(1, &[many, vec![(1, 4_000)]].concat()), 4_000);
    // Switched off, all are taken.
    assert_eq!(q_after(0, &[(2, 3_000), (1, 90_000)]), 90_000);
    // CHD has the same filter.
    let mut f = Flow::avoiding(params("chd", &[]), 40);
    f.round(0, NEVER);
    f.send(40);
    f.ack(2, 3_000, NEVER);
    f.ack(1, 90_000, NEVER);
    f.round(None, NEVER);
    assert_eq!(f.cc.observe()[0], 3_000);
}

/// Reading RTT: the suspicion of delayed ACKs changes only with ACKs of data in order. A receiver
/// answers what is out of order, or fills a hole, at once, however it treats the rest (RFC 5681
/// section 4.2), so a recovery says nothing about it.
#[test]
fn recovery_does_not_clear_the_suspicion_of_delayed_acks() {
    for name in ["hd", "chd", "vegas", "cdg"] {
        // Two ACKs for two packets each: suspicion 2. `other` then arrives, and at last a lone packet
        // that waited for the receiver's timer. Whether that sample is taken shows in the state.
        let taken = |other: &[Ack]| {
            let mut f = Flow::avoiding(params(name, &[]), 40);
            f.send(40);
            f.ack(2, 3_000, NEVER);
            f.ack(2, 3_000, NEVER);
            for ack in other {
                f.cc.on_rtt(&mut f.conn, ack);
            }
            let with = |rtt_us| {
                let mut f = f.clone();
                let lone = Ack { acked_pkts: 1, advanced_pkts: 1, rtt_us, ..Ack::default() };
                f.cc.on_rtt(&mut f.conn, &lone);
                *f.cc.state()
            };
            with(BASE_US + 150_000) != with(-1)
        };
        let ack = |acked_pkts, advanced_pkts| Ack {
            acked_pkts,
            advanced_pkts,
            rtt_us: -1,
            ..Ack::default()
        };
        assert!(!taken(&[]), "{name}");
        assert!(taken(&[ack(1, 1); 2]), "{name}: an ACK for each packet in order");
        assert!(!taken(&[ack(1, 0); 20]), "{name}: duplicates, each with a SACK for one packet");
        assert!(!taken(&[ack(1, 5); 20]), "{name}: each fills a hole; the rest had arrived");
        assert!(!taken(&[ack(0, 5); 20]), "{name}: all of it had been told of");
        // Signs that raise the suspicion: two in order for four, and none out of order.
        let trusting = [ack(1, 1); 2];
        assert!(!taken(&[&trusting[..], &[ack(2, 2)]].concat()), "{name}");
        assert!(taken(&[&trusting[..], &[ack(2, 0), ack(3, 9)]].concat()), "{name}");
    }
}

/// reading CHD-g: a loss in slow start in region A leaves w but ends slow start.
#[test]
fn chd_loss_ends_slow_start() {
    let mut f = chd(20, SSTHRESH_INFINITE, &[]);
    assert_eq!(f.loss(), (20, NOTE_LOSS_TOLERATED));
    f.recovered();
    assert_eq!(f.conn.ssthresh_pkts, 20);
    f.round(3_000, NEVER);
    assert_eq!(f.w(), 21); // +1 per round, not doubled
}

/// The paper is silent on timeouts: NewReno, in both regions and whatever s.
#[test]
fn chd_timeout_is_newreno() {
    for h_us in [3_000, 50_000] {
        let mut f = chd_ca(40, &[]);
        f.round(12_000, ALWAYS); // (20, 40)
        f.round(h_us, NEVER); // (21, 41)
        f.send(21);
        assert_eq!(f.timeout(), 10, "h_r = {h_us}"); // 21/2; s/2 would give 20
    }
}

/// Loss undone: w and s as before it.
#[test]
fn chd_undo_gives_window_and_shadow_back() {
    for h_us in [3_000, 50_000] {
        let mut f = chd_ca(40, &[]);
        f.round(12_000, ALWAYS);
        f.round(h_us, NEVER);
        assert_eq!(f.w_s(), (21, 41));
        f.send(21);
        f.timeout();
        assert_eq!(f.w_s(), (1, 20));
        f.conn.cwnd_pkts = f.cc.undo(&mut f.conn);
        assert_eq!(f.w_s(), (21, 41), "h_r = {h_us}");
    }
}

/// Section V-A: "does not increase its window during the RTT that a lost packet is recovered". The
/// round that recovery overlaps earns nothing; a new one starts with the next packet sent.
#[test]
fn chd_holds_the_window_in_recovery() {
    let mut f = chd_ca(20, &[]);
    f.send(20);
    f.ack(1, 3_000, NEVER); // ends a round: 21; 19 outstanding
    assert_eq!(f.loss().0, 21);
    f.send(4);
    f.ack(10, 3_000, NEVER);
    f.ack(10, 3_000, NEVER); // passes the mark: a round ends in recovery
    assert_eq!(f.conn.ssthresh_pkts, 21);
    f.send(1);
    f.ack_ending_recovery(1, 3_000, ALWAYS);
    assert_eq!(f.w(), 21);
    f.send(1);
    f.ack(3, 3_000, NEVER); // were outstanding when recovery ended
    assert_eq!(f.w(), 21);
    f.ack(1, 3_000, NEVER); // the marked packet
    assert_eq!(f.w(), 22);
}

/// The ACK that ends recovery takes no decision either, though it passes the old mark.
#[test]
fn chd_takes_no_decision_as_recovery_ends() {
    let mut f = chd_ca(20, &[]);
    f.send(20);
    f.loss();
    f.ack_ending_recovery(20, 12_000, ALWAYS);
    assert_eq!(f.w(), 20);
    f.round(12_000, ALWAYS);
    assert_eq!(f.w(), 10);
}

/// h_r is "the maximum queueing delay observed in RTT r", and RTT r begins when its marked packet
/// is sent (footnote 2): delays measured in recovery are not those of the round after it.
#[test]
fn chd_round_after_recovery_starts_afresh() {
    let mut f = chd_ca(20, &[]);
    f.send(20);
    f.ack(1, 3_000, NEVER); // a round ends: 21; the next one runs
    assert_eq!(f.loss(), (21, NOTE_LOSS_TOLERATED));
    f.ack(9, 80_000, NEVER); // the overflowing queue, before any mark is passed
    f.ack_ending_recovery(10, 80_000, NEVER);
    f.round(3_000, ALWAYS); // g(3 ms) = 0
    assert_eq!((f.w(), f.cc.observe()[0]), (22, 3_000));
}

/// Section VI: "allowed the congestion window to grow during the recovery process, even by the
/// single packet additive increase": the window to leave recovery with gains 1 per round, and a
/// round that ends together with recovery gains 1, not 2.
#[test]
fn chd_can_grow_in_recovery() {
    let mut f = chd_ca(20, &[("recovery_growth", 1)]);
    f.send(20);
    f.ack(1, 3_000, NEVER); // ends a round: 21
    assert_eq!(f.loss().0, 21);
    f.send(2);
    f.ack(19, 3_000, NEVER); // all before the mark
    assert_eq!(f.conn.ssthresh_pkts, 21);
    f.ack(1, 3_000, NEVER); // the marked packet
    assert_eq!(f.conn.ssthresh_pkts, 22);
    f.send(1);
    f.ack_ending_recovery(2, 3_000, NEVER); // the next marked packet, and the end
    assert_eq!(f.w(), 23);
    f.round(3_000, NEVER);
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (24, 23));
}

/// The round that runs when recovery ends counts too, unlike where the window is held.
#[test]
fn chd_can_grow_over_the_end_of_recovery() {
    let mut f = chd_ca(20, &[("recovery_growth", 1)]);
    f.send(20);
    f.ack(1, 3_000, NEVER); // ends a round: 21
    f.loss();
    f.send(3);
    f.ack_ending_recovery(19, 3_000, NEVER); // up to the mark
    assert_eq!(f.w(), 21);
    f.ack(1, 3_000, NEVER); // the marked packet
    assert_eq!(f.w(), 22);
}

/// reading HD-f: h_r = qth is region B, in the reports of a round and of a backoff.
#[test]
fn chd_names_the_region() {
    for (h_us, region) in [(29_999, 0), (30_000, NOTE_REGION_B), (60_000, NOTE_REGION_B)] {
        let mut f = chd_ca(20, &[]);
        f.send(20);
        f.conn.ack_pos = f.conn.snd_pos;
        let rtt_us = BASE_US + h_us;
        let ack = Ack { rtt_us, acked_pkts: 20, random: ALWAYS, ..Ack::default() };
        f.cc.on_rtt(&mut f.conn, &ack);
        assert_eq!(f.conn.notes, NOTE_ROUND | region, "h_r = {h_us}");
        f.cc.on_ack(&mut f.conn, &ack);
        assert_eq!(f.conn.notes, NOTE_DELAY_BACKOFF | region, "h_r = {h_us}");
        assert_eq!(f.cc.observe()[3], u32::from(region != 0), "h_r = {h_us}");
    }
}

/// Fig. 2, all five items. Per round: h_r, draw, (w, s) after it.
#[test]
fn chd_figure_2() {
    let mut f = chd_ca(20, &[]);
    let rounds: [(u32, u32, (u32, u32)); 11] = [
        // 1) w grows by 1 packet per RTT; h_r <= qmin: g = 0.
        (2_000, ALWAYS, (21, 0)),
        (4_000, ALWAYS, (22, 0)),
        // 2) A, 12 ms > h_b = 0: s = max(22, 0) is synchronised to w; w = 22/2. h_b = 12 ms.
        (12_000, ALWAYS, (11, 22)),
        // 4) both +1.
        (14_000, NEVER, (12, 23)),
        // 3) A, 18 > 12: s = max(12, 23); w = 12/2. h_b = 18 ms.
        (18_000, ALWAYS, (6, 23)),
        (24_000, NEVER, (7, 24)),
        // 3) B: s = max(7, 24); w = 7/2. h_b = 40 ms.
        (40_000, ALWAYS, (3, 24)),
        (60_000, NEVER, (4, 25)),
        // 3) B: s = max(4, 25); w = 4/2.
        (80_000, ALWAYS, (2, 25)),
        (85_000, NEVER, (3, 26)),
        (90_000, NEVER, (4, 27)),
    ];
    for (i, (h_us, random, w_s)) in rounds.into_iter().enumerate() {
        f.round(h_us, random);
        assert_eq!(f.w_s(), w_s, "round {}", i + 1);
    }
    // 5) Loss in B: w = s/2 = 27/2 = 13 rather than w/2 = 2; s is halved as NewReno's window.
    assert_eq!(f.loss(), (13, NOTE_REGION_B));
    f.recovered();
    assert_eq!((f.w_s(), f.conn.ssthresh_pkts), ((13, 13), 13));
    // Both grow on; a backoff in falling A ends the competition.
    f.round(20_000, NEVER);
    assert_eq!(f.w_s(), (14, 14));
    f.round(15_000, ALWAYS);
    assert_eq!(f.w_s(), (7, 0));
}
