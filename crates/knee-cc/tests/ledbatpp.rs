//! LEDBAT++: every rule of draft-irtf-iccrg-ledbat-plus-plus ("draft") against values worked out by
//! hand. Queueing delays are microseconds over a base RTT of 40 ms, where GAIN = 1/3.

#[allow(dead_code)] // each file of tests uses its part
mod common;
#[path = "common/link.rs"]
mod link;

use common::{BASE_US, Flow, NEVER, NO_SAMPLE, Notes, params};
use knee_cc::{Ack, NOTE_DELAY_BACKOFF, NOTE_ROUND, Phase, SSTHRESH_INFINITE, algorithm};
use proptest::prelude::*;

/// Parameters by name, raw values.
type Given<'a> = &'a [(&'a str, u64)];

const REDUCED: Notes = NOTE_ROUND | NOTE_DELAY_BACKOFF;
const NO_SLOWDOWN: (&str, u64) = ("slowdown", 0);
const ONE_SAMPLE: (&str, u64) = ("filter", 1);
const START: u32 = 0;
const SOON: u32 = 1;
const FROZEN: u32 = 2;
const RAMP: u32 = 3;
const STEADY: u32 = 4;

fn flow(given: Given, cwnd_pkts: u32, ssthresh_pkts: u32) -> Flow {
    Flow::new(params("ledbatpp", given), cwnd_pkts, ssthresh_pkts)
}

/// A flow in congestion avoidance that knows its base RTT, reacts to each sample and has no
/// slowdowns.
fn avoiding(given: Given, cwnd_pkts: u32) -> Flow {
    let given: Vec<_> = [NO_SLOWDOWN, ONE_SAMPLE].iter().chain(given).copied().collect();
    let mut f = flow(&given, cwnd_pkts, 2);
    f.conn.cwnd_limited = 0;
    f.round(0, NEVER);
    f.conn.cwnd_limited = 1;
    assert_eq!((f.w(), f.conn.cwnd_cnt), (cwnd_pkts, 0));
    f
}

fn divisor(f: &Flow) -> u32 {
    f.cc.observe()[2]
}

fn stage(f: &Flow) -> u32 {
    f.cc.observe()[3]
}

/// The window with the part that is acknowledged towards the next packet.
fn window(f: &Flow) -> f64 {
    let per_packet = f64::from(f.w()) * f64::from(divisor(f));
    f64::from(f.w()) + f64::from(f.conn.cwnd_cnt) / per_packet.min(f64::from(u32::MAX))
}

// ---------------------------------------------------------------------------------------------
// Gain, increase
// ---------------------------------------------------------------------------------------------

/// Section 4.2: GAIN = 1 / min(16, ceil(2 TARGET / base)).
#[test]
fn gain() {
    let gain_of = |given: Given, rtt_us: i32| {
        let mut f = flow(given, 10, 2);
        f.cc.on_rtt(&mut f.conn, &Ack { rtt_us, acked_pkts: 1, ..Ack::default() });
        divisor(&f)
    };
    for (rtt_us, by_hand) in [
        (0, 16),
        (1_000, 16),
        (7_500, 16), // 120 / 7.5
        (7_999, 16), // 15.002
        (8_000, 15),
        (20_000, 6),
        (40_000, 3),
        (59_999, 3),
        (60_000, 2),
        (119_999, 2),
        (120_000, 1),
        (i32::MAX, 1),
    ] {
        assert_eq!(gain_of(&[], rtt_us), by_hand, "{rtt_us}");
    }
    assert_eq!(gain_of(&[("gain_limit", 4)], 20_000), 4);
    assert_eq!(gain_of(&[("target", 100_000)], 40_000), 5);
    assert_eq!(divisor(&flow(&[], 10, 2)), 16, "no RTT yet");
}

/// Section 4.3: W += GAIN per round trip while the delay is at most the target: 90 packets for the
/// next one of a window of 30.
#[test]
fn increase() {
    for q_us in [0, 30_000, 60_000] {
        let mut f = avoiding(&[], 30);
        f.send(200);
        assert_eq!(f.ack(89, q_us, NEVER) & NOTE_DELAY_BACKOFF, 0);
        assert_eq!((f.w(), f.conn.cwnd_cnt), (30, 89));
        f.ack(2, q_us, NEVER);
        assert_eq!((f.w(), f.conn.cwnd_cnt), (31, 1));
    }
    // Above it, none.
    let mut f = avoiding(&[], 30);
    f.send(300);
    f.ack(2, 0, NEVER); // the round ends here
    f.ack(200, 60_001, NEVER);
    assert_eq!((f.w(), f.conn.cwnd_cnt), (30, 2));
    let mut f = avoiding(&[("count", 0)], 30);
    f.send(200);
    f.ack(89, 0, NEVER);
    assert_eq!(f.conn.cwnd_cnt, 1);
}

#[test]
fn the_application_and_the_host_limit() {
    for ssthresh in [2, 1000] {
        let mut f = avoiding(&[], 30);
        f.conn.ssthresh_pkts = ssthresh;
        f.conn.cwnd_limited = 0;
        f.send(200);
        f.ack(200, 0, NEVER);
        assert_eq!((f.w(), f.conn.cwnd_cnt), (30, 0));
        f.conn.cwnd_limited = 1;
        f.conn.cwnd_max_pkts = 31;
        f.send(1000);
        f.ack(1000, 0, NEVER);
        assert_eq!(f.w(), 31);
    }
}

// ---------------------------------------------------------------------------------------------
// Decrease
// ---------------------------------------------------------------------------------------------

/// Section 4.3: W += max(GAIN - C W (delay/TARGET - 1), -W/2), at the end of a round.
#[test]
fn decrease() {
    for (q_us, by_hand) in [
        (60_000, 60.0 + 1.0 / 3.0), // at the target: GAIN, by the ACK of the whole window
        (60_300, 60.0 + 1.0 / 3.0 - 0.3),
        (60_400, 60.0 + 1.0 / 3.0 - 0.4),
        (66_000, 54.0 + 1.0 / 3.0),
        (75_000, 45.0 + 1.0 / 3.0),
        (90_000, 30.0 + 1.0 / 3.0),
        (90_500, 30.0), // -30.17
        (180_000, 30.0),
        (10_000_000, 30.0),
    ] {
        let mut f = avoiding(&[], 60);
        let notes = f.round(q_us, NEVER);
        assert!((window(&f) - by_hand).abs() < 0.02, "{q_us}: {}", window(&f));
        assert_eq!(notes == REDUCED, by_hand < 60.0, "{q_us}");
    }
    // C = 2, C = 0.1.
    for (constant, by_hand) in [(2_000_000, 48.0), (100_000, 59.4)] {
        let mut f = avoiding(&[("constant", constant)], 60);
        f.round(66_000, NEVER);
        assert!((window(&f) - by_hand - 1.0 / 3.0).abs() < 0.02, "{}", window(&f));
    }
}

/// Acknowledged packets towards the next one count; ssthresh falls along; two packets stay.
#[test]
fn decrease_keeps_fractions() {
    let mut f = avoiding(&[], 60);
    f.conn.ssthresh_pkts = 60;
    f.conn.cwnd_cnt = 90; // 60.5
    f.round(66_000, NEVER); // 60.5 + 0.33 - 6 = 54.83
    assert!((window(&f) - 54.833).abs() < 0.02, "{}", window(&f));
    assert_eq!(f.conn.ssthresh_pkts, 54);
    for (before, after) in [(4, 2), (3, 2), (2, 2), (1, 1)] {
        let mut f = avoiding(&[], before);
        f.conn.ssthresh_pkts = 2.min(before);
        f.round(1_000_000, NEVER);
        assert_eq!(f.w(), after, "{before}");
    }
}

#[test]
fn decrease_once_per_round() {
    let mut f = avoiding(&[], 60);
    f.send(60);
    assert_eq!(f.ack(2, 66_000, NEVER), REDUCED);
    assert_eq!(f.ack(57, 66_000, NEVER), 0);
    assert_eq!(f.w(), 54);
    f.send(10);
    assert_eq!(f.ack(1, 66_000, NEVER), 0);
    assert_eq!(f.ack(2, 66_000, NEVER), REDUCED);
    // The application does not matter, unless the sum is an increase.
    let mut f = avoiding(&[], 60);
    f.conn.cwnd_limited = 0;
    f.round(66_000, NEVER);
    assert_eq!(f.w(), 54);
    f.conn.cwnd_cnt = 0;
    f.round(60_100, NEVER);
    assert_eq!(window(&f), 54.0);
}

#[test]
fn delay_decides_in_open_and_disorder_only() {
    for (phase, after) in [
        (Phase::Open, 54),
        (Phase::Disorder, 54),
        (Phase::Cwr, 60),
        (Phase::Recovery, 60),
        (Phase::Loss, 60),
    ] {
        let mut f = avoiding(&[], 60);
        f.conn.phase = phase as u8;
        f.round(66_000, NEVER);
        assert_eq!(f.w(), after, "{phase:?}");
    }
}

// ---------------------------------------------------------------------------------------------
// The delay
// ---------------------------------------------------------------------------------------------

/// RFC 6817's filter: the least of the last four samples.
#[test]
fn least_of_the_last_samples() {
    for (n, by_hand) in [(4, [0, 0, 0, 0, 10_000]), (2, [0, 0, 10_000, 20_000, 10_000])] {
        let mut f = flow(&[("filter", n)], 10, 2);
        f.conn.cwnd_limited = 0;
        f.send(100);
        let seen = [0, 10_000, 20_000, 30_000, 10_000].map(|q_us| {
            f.ack(1, q_us, NEVER);
            f.cc.observe()[0]
        });
        assert_eq!(seen, by_hand);
        f.ack(1, NO_SAMPLE, NEVER);
        assert_eq!(f.cc.observe()[0], by_hand[4]);
    }
}

/// The base RTT of ten to twelve and a half minutes (LB-d).
#[test]
fn base_is_forgotten() {
    let mut f = flow(&[ONE_SAMPLE], 10, 2);
    f.conn.cwnd_limited = 0;
    f.send(1000);
    f.ack(1, 0, NEVER);
    for minute in 1..=13_u32 {
        f.conn.now_us += 60_000_000;
        f.ack(1, 20_000, NEVER);
        let base = f.cc.observe()[1];
        match minute {
            ..=10 => assert_eq!(base, 40_000, "{minute} minutes"),
            13 => assert_eq!((base, f.cc.observe()[0]), (60_000, 0)),
            _ => {}
        }
    }
}

// ---------------------------------------------------------------------------------------------
// Slow start
// ---------------------------------------------------------------------------------------------

/// Section 4.1: GAIN per packet; the first ends where the delay is above 3/4 TARGET = 45 ms.
#[test]
fn slow_start() {
    let mut f = flow(&[ONE_SAMPLE], 10, SSTHRESH_INFINITE);
    f.send(100);
    f.ack(2, 0, NEVER);
    assert_eq!((f.w(), f.conn.cwnd_cnt), (10, 2));
    f.ack(8, 45_000, NEVER);
    assert_eq!((f.w(), f.conn.cwnd_cnt, stage(&f)), (13, 1, START)); // 10 / 3
    f.ack(2, 45_001, NEVER);
    assert_eq!((f.w(), f.conn.ssthresh_pkts, stage(&f)), (13, 13, SOON));
    assert_eq!(f.conn.cwnd_cnt, 3, "congestion avoidance from here");
    let mut f = flow(&[("ss_limit", 2)], 10, SSTHRESH_INFINITE);
    f.send(100);
    f.ack(30, 0, NEVER);
    assert_eq!(f.conn.cwnd_cnt, 2);
    // To a threshold and not beyond.
    let mut f = flow(&[], 10, 15);
    f.send(100);
    f.ack(100, 0, NEVER);
    assert_eq!((f.w(), stage(&f)), (15, SOON));
}

/// LB-a.
#[test]
fn which_slow_starts_end_by_delay() {
    for (ss_exit, first, later) in [(0, false, false), (1, true, false), (2, true, true)] {
        let given = [NO_SLOWDOWN, ONE_SAMPLE, ("ss_exit", ss_exit)];
        let mut f = flow(&given, 10, SSTHRESH_INFINITE);
        f.send(100);
        f.ack(2, 0, NEVER);
        f.ack(2, 50_000, NEVER);
        assert_eq!(f.conn.ssthresh_pkts == 10, first, "{ss_exit}");
        // One after the first, as a timeout makes it.
        f.conn.cwnd_pkts = 1000;
        f.conn.ssthresh_pkts = 2;
        f.ack(2, 0, NEVER);
        assert_ne!(stage(&f), START);
        (f.conn.cwnd_pkts, f.conn.ssthresh_pkts) = (10, 500);
        f.ack(2, 50_000, NEVER);
        assert_eq!(f.conn.ssthresh_pkts == 10, later, "{ss_exit}");
    }
}

// ---------------------------------------------------------------------------------------------
// Slowdowns
// ---------------------------------------------------------------------------------------------

/// A round of one RTT, with time.
fn timed_round(f: &mut Flow, q_us: u32) -> Notes {
    f.conn.now_us += 40_000 + u64::from(q_us);
    f.round(q_us, NEVER)
}

/// A flow whose first slow start has just ended at 40 packets.
fn soon(given: Given) -> Flow {
    let given: Vec<_> = [ONE_SAMPLE].iter().chain(given).copied().collect();
    let mut f = flow(&given, 39, 40);
    timed_round(&mut f, 0);
    assert_eq!((f.w(), stage(&f)), (40, SOON));
    f
}

/// Section 4.4: two round trips after the first slow start the window is two packets for two round
/// trips; then slow start by GAIN to the window before; the next after nine times that time.
#[test]
fn slowdowns() {
    let mut f = soon(&[]);
    assert_eq!(timed_round(&mut f, 0), NOTE_ROUND);
    assert_eq!(timed_round(&mut f, 0), REDUCED);
    let begun = f.conn.now_us;
    assert_eq!((f.w(), f.conn.ssthresh_pkts, stage(&f)), (2, 40, FROZEN));
    assert_eq!((timed_round(&mut f, 0), f.w(), stage(&f)), (NOTE_ROUND, 2, FROZEN));
    assert_eq!(timed_round(&mut f, 0), NOTE_ROUND);
    assert_eq!((f.conn.now_us - begun, stage(&f)), (80_000, RAMP));
    let mut rounds = 2;
    while stage(&f) == RAMP {
        let before = f.w() * 3 + f.conn.cwnd_cnt;
        timed_round(&mut f, 0);
        assert!(f.w() == 40 || f.w() * 3 + f.conn.cwnd_cnt == before + before / 3);
        rounds += 1;
    }
    assert_eq!((f.w(), stage(&f)), (40, STEADY));
    let ended = f.conn.now_us;
    assert_eq!(ended - begun, rounds * 40_000);
    // Nine times as long until the next, at the end of a round.
    let mut steady = 0;
    while timed_round(&mut f, 0) != REDUCED {
        steady += 1;
        assert_eq!(stage(&f), STEADY);
    }
    assert_eq!(steady + 1, 9 * rounds);
    assert_eq!((f.w(), stage(&f)), (2, FROZEN));
    assert_eq!(f.conn.ssthresh_pkts, f.cc.state().bytes()[56].into(), "to return to");
}

#[test]
fn slowdowns_with_other_parameters() {
    let mut f = soon(&[NO_SLOWDOWN]);
    (0..100).for_each(|_| assert_eq!(timed_round(&mut f, 0), NOTE_ROUND));
    let mut f = soon(&[("frozen", 4), ("interval", 0)]);
    timed_round(&mut f, 0);
    timed_round(&mut f, 0);
    let frozen = [0; 4].map(|_| {
        timed_round(&mut f, 0);
        (f.w() == 2, stage(&f))
    });
    assert_eq!(frozen[..3], [(true, FROZEN); 3]);
    assert_eq!(frozen[3].1, RAMP);
    while stage(&f) == RAMP {
        timed_round(&mut f, 0);
    }
    assert_eq!(timed_round(&mut f, 0), REDUCED, "at once");
}

/// LB-e: a loss halves the window; in a slowdown's two round trips also what it returns to.
#[test]
fn loss() {
    let mut f = avoiding(&[], 60);
    f.send(60);
    assert_eq!(f.loss(), (30, 0));
    assert_eq!(f.cc.undo(&mut f.conn), 60);

    let mut f = soon(&[]);
    timed_round(&mut f, 0);
    timed_round(&mut f, 0);
    f.send(2);
    assert_eq!(f.loss(), (2, 0));
    let mut undone = f.clone();
    assert_eq!(undone.cc.undo(&mut undone.conn), 2);
    f.recovered();
    undone.recovered();
    for (mut f, resume) in [(f, 20), (undone, 40)] {
        timed_round(&mut f, 0);
        timed_round(&mut f, 0);
        assert_eq!((stage(&f), f.conn.ssthresh_pkts), (RAMP, resume));
    }
}

/// The loss before a slowdown is undone in it: the window to which it returns is the old one.
#[test]
fn undo_in_a_slowdown() {
    let mut f = soon(&[]);
    timed_round(&mut f, 0);
    f.send(40);
    assert_eq!(f.loss().0, 20);
    f.recovered();
    timed_round(&mut f, 0);
    assert_eq!((f.w(), stage(&f), f.conn.ssthresh_pkts), (2, FROZEN, 20));
    assert_eq!(f.cc.undo(&mut f.conn), 2);
    timed_round(&mut f, 0);
    timed_round(&mut f, 0);
    assert_eq!((stage(&f), f.conn.ssthresh_pkts), (RAMP, 40));
}

/// LB-f: a loss ends the return at ssthresh.
#[test]
fn loss_on_the_reverse_path() {
    let mut f = soon(&[]);
    (0..5).for_each(|_| _ = timed_round(&mut f, 0));
    assert_eq!(stage(&f), RAMP);
    let window = f.w();
    f.send(window);
    assert_eq!(f.loss().0, (window / 2).max(2));
    f.recovered();
    timed_round(&mut f, 0);
    assert_eq!(stage(&f), STEADY);
}

#[test]
fn timeout() {
    let mut f = avoiding(&[], 60);
    f.send(60);
    assert_eq!((f.timeout(), f.w()), (30, 1));
    f.ack(2, 90_000, NEVER);
    f.ack(2, 90_000, NEVER);
    assert_eq!((f.w(), f.conn.cwnd_cnt), (2, 1), "slow start by GAIN, whatever the delay");
    f.conn.phase = Phase::Open as u8;
    f.conn.cwnd_pkts = 30;
    f.ack(56, 90_000, NEVER);
    assert_eq!(f.round(90_000, NEVER), REDUCED);
}

// ---------------------------------------------------------------------------------------------
// Exactness
// ---------------------------------------------------------------------------------------------

#[test]
fn state_fits_the_kernel() {
    assert_eq!(algorithm("ledbatpp").expect("registered").state_bytes(), 72);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The response to delay against floating point: within 2^-22 of the window and the part that
    /// one acknowledged packet makes.
    #[test]
    fn response_is_within_its_bound(
        (cwnd, shift) in (4_u32..1 << 28, 0_u32..26),
        (over, over_shift) in (1_u32..10_000_000, 0_u32..23),
        target in 1_000_u64..100_000,
        constant in 10_000_u64..10_000_000,
        part in 0.0..1.0,
    ) {
        let cwnd = (cwnd >> shift).max(4);
        let over = (over >> over_shift).max(1);
        let mut f = avoiding(&[("target", target), ("constant", constant)], cwnd);
        let per_packet = (f64::from(cwnd) * f64::from(divisor(&f))).min(f64::from(u32::MAX));
        f.conn.cwnd_cnt = (part * (per_packet - 1.0)) as u32;
        let before = window(&f);
        f.round(target as u32 + over, NEVER);
        let (w, target, c) = (f64::from(cwnd), target as f64, constant as f64 / 1e6);
        let gain = 1.0 / f64::from(divisor(&f));
        let by_hand = (before + (gain - c * w * f64::from(over) / target).max(-w / 2.0)).max(2.0);
        let bound = w / 4e6 * (1.0 + c) + 2.0 / per_packet.min(f64::from(f.w()) / gain) + 1e-6;
        prop_assert!((window(&f) - by_hand).abs() <= bound, "{} for {by_hand}", window(&f));
    }
}

// ---------------------------------------------------------------------------------------------
// What the draft promises
// ---------------------------------------------------------------------------------------------

/// Section 4.4: slowdowns cost a tenth of the time at most; between them the queue stays at about the
/// target or below.
#[test]
fn one_flow() {
    let mut flows = [flow(&[], 2, SSTHRESH_INFINITE)];
    let (mut slow_us, mut before_us, mut largest) = (0, 0, 0_f64);
    let end_us = 120_000_000;
    link::run(&mut flows, &[0], end_us, |now_us, _, queue, flows| {
        if now_us > end_us / 4 {
            let slow = [FROZEN, RAMP].contains(&stage(&flows[0]));
            slow_us += if slow { now_us - before_us } else { 0 };
            largest = largest.max(queue);
        }
        before_us = now_us;
    });
    let part = slow_us as f64 / (end_us * 3 / 4) as f64;
    assert!((0.05..=0.11).contains(&part), "{part} of the time");
    assert!(largest <= 63.0, "{largest} packets: the target is 60");
}

/// Section 4.4: without slowdowns a flow that comes late takes the queue of the first for a part of
/// its base RTT and pushes it aside; with them they share.
#[test]
fn a_latecomer() {
    let shares = |given: Given| {
        let mut flows = [flow(given, 2, SSTHRESH_INFINITE), flow(given, 2, SSTHRESH_INFINITE)];
        let mut delivered = [0_u32; 2];
        let end_us = 400_000_000;
        link::run(&mut flows, &[0, 40_000_000], end_us, |now_us, whose, _, _| {
            delivered[whose] += u32::from(now_us > end_us / 2);
        });
        f64::from(delivered[1]) / f64::from(delivered[0] + delivered[1])
    };
    let (with, without) = (shares(&[]), shares(&[NO_SLOWDOWN]));
    assert!((0.35..=0.65).contains(&with), "{with} with slowdowns");
    assert!(without > 0.8, "{without} without");
    assert_eq!(BASE_US, 40_000);
}
