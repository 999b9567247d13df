//! Copa: every rule of Arun and Balakrishnan, NSDI 2018 ("Copa paper"), against values worked out by
//! hand. Queueing delays are microseconds over a base RTT of 40 ms; srtt is 40 ms, so that
//! RTTstanding is of the last 17.8 to 22.3 ms.

#[allow(dead_code)] // each file of tests uses its part
mod common;
#[path = "common/link.rs"]
mod link;

use common::{BASE_US, Flow, NEVER, NO_SAMPLE, Notes, params};
use knee_cc::{
    Ack, NOTE_LOSS_TOLERATED, NOTE_ROUND, Phase, Profile, SSTHRESH_INFINITE, STATE_MAX_BYTES,
    algorithm,
};
use proptest::prelude::*;

/// Parameters by name, raw values.
type Given<'a> = &'a [(&'a str, u64)];

/// Longer than RTTstanding's window with its last bucket.
const FORGET_STANDING_US: u64 = 26_000;
const TWO_32: f64 = 4_294_967_296.0;

fn flow(given: Given, cwnd_pkts: u32, ssthresh_pkts: u32) -> Flow {
    let mut f = Flow::new(params("copa", given), cwnd_pkts, ssthresh_pkts);
    f.conn.srtt_us = BASE_US as u32;
    f
}

fn ack_after(f: &mut Flow, us: u64, n: u32, q_us: impl Into<Option<u32>>) -> Notes {
    f.conn.now_us += us;
    f.ack(n, q_us, NEVER)
}

/// A flow in congestion avoidance, with many packets outstanding, whose dq is `q_us`.
fn at_delay(given: Given, cwnd_pkts: u32, q_us: u32) -> Flow {
    let mut f = flow(given, cwnd_pkts, 2);
    f.conn.cwnd_limited = 0;
    f.send(1 << 20);
    ack_after(&mut f, 0, 2, 0);
    let now = [0, FORGET_STANDING_US];
    for us in now {
        // These may decrease the window.
        ack_after(&mut f, us, 2, q_us);
    }
    assert_eq!(f.cc.observe()[..2], [q_us, BASE_US as u32]);
    f.conn.cwnd_pkts = cwnd_pkts;
    f.conn.cwnd_limited = 1;
    set_fraction(&mut f, 0);
    f
}

fn word(f: &Flow, at: usize) -> u32 {
    u32::from_ne_bytes(f.cc.state().bytes()[at..at + 4].try_into().expect("four bytes"))
}

/// The window with its fraction of a packet.
fn window(f: &Flow) -> f64 {
    f64::from(f.w()) + f64::from(word(f, 64)) / TWO_32
}

/// The same, exactly, in 1/2^32.
fn position(f: &Flow) -> u64 {
    u64::from(f.w()) << 32 | u64::from(word(f, 64))
}

fn set_fraction(f: &mut Flow, fraction: u32) {
    let mut bytes = *f.cc.state().bytes();
    bytes[64..68].copy_from_slice(&fraction.to_ne_bytes());
    f.cc.restore(bytes.into());
}

/// 1/delta, packets.
fn inv_delta(f: &Flow) -> f64 {
    f64::from(word(f, 68)) / 65_536.0
}

fn velocity(f: &Flow) -> u32 {
    f.cc.observe()[3]
}

/// 0 in default mode.
fn competitive(f: &Flow) -> u32 {
    f.cc.observe()[2]
}

// ---------------------------------------------------------------------------------------------
// Section 2.1: target rate and change of the window
// ---------------------------------------------------------------------------------------------

/// cwnd / RTTstanding <= 1 / (delta dq): with dq = 2 ms, RTTstanding = 42 ms and delta = 0.5 up to
/// cwnd = 42 ms / (0.5 * 2 ms) = 42.
#[test]
fn target() {
    for (cwnd, rises) in [(2, true), (41, true), (42, true), (43, false), (1 << 30, false)] {
        let mut f = at_delay(&[], cwnd, 2_000);
        ack_after(&mut f, 0, 2, 2_000);
        assert_eq!(position(&f) > u64::from(cwnd) << 32, rises, "{cwnd}");
        assert_eq!(position(&f) < u64::from(cwnd) << 32, !rises, "{cwnd}");
    }
    // Without queueing delay the target is infinite.
    let mut f = at_delay(&[], 1 << 29, 0);
    ack_after(&mut f, 0, 2, 0);
    assert!(position(&f) > 1 << 61);
    // delta = 0.1: five times as much: 210.
    for (cwnd, rises) in [(210, true), (211, false)] {
        let mut f = at_delay(&[("delta", 100_000)], cwnd, 2_000);
        ack_after(&mut f, 0, 2, 2_000);
        assert_eq!(position(&f) > u64::from(cwnd) << 32, rises, "{cwnd}");
    }
}

/// v / (delta cwnd) per packet: 2/cwnd with delta = 0.5.
#[test]
fn change_of_the_window() {
    for (cwnd, q_us, n, by_hand) in [
        (100, 0, 50, 101.0),
        (100, 0, 1, 100.02),
        (40, 0, 40, 42.0),  // v / delta in a window
        (40, 0, 100, 42.0), // an ACK counts for a window at most
        (100, 10_000, 50, 99.0),
        (100, 10_000, 1, 99.98),
        (3, 100_000, 3, 2.0), // not below two packets
    ] {
        let mut f = at_delay(&[], cwnd, q_us);
        ack_after(&mut f, 0, n, q_us);
        assert!((window(&f) - by_hand).abs() < 1e-7, "{cwnd}, {n}: {}", window(&f));
    }
    // delta = 1, dq = 100 ms: the target is 1.4 packets, and two stay.
    let mut f = at_delay(&[("delta", 1_000_000)], 2, 100_000);
    assert_eq!((ack_after(&mut f, 0, 2, 100_000), window(&f)), (0, 2.0));
    // A round trip of single packets: 100 becomes 102, less what 1/cwnd loses as cwnd grows.
    let mut f = at_delay(&[], 100, 0);
    (0..100).for_each(|_| _ = ack_after(&mut f, 0, 1, 0));
    assert!((101.9..102.0).contains(&window(&f)), "{}", window(&f));
}

/// Whole packets appear where they are due, although each ACK's part is rounded.
#[test]
fn parts_add_up_to_packets() {
    for (q_us, after) in [(0, 43), (200_000, 41)] {
        let mut f = at_delay(&[], 42, q_us);
        // 21 times 2/42, of a window that stays 42 (or 41.x) meanwhile.
        ack_after(&mut f, 0, 21, q_us);
        assert_eq!(f.w(), after);
    }
}

/// A decrease takes ssthresh along, and needs no filled window; an increase does.
#[test]
fn the_application_limits() {
    let mut f = at_delay(&[], 100, 10_000);
    f.conn.cwnd_limited = 0;
    f.conn.ssthresh_pkts = 100;
    ack_after(&mut f, 0, 60, 10_000);
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (98, 98)); // 98.8
    let mut f = at_delay(&[], 100, 0);
    f.conn.cwnd_limited = 0;
    ack_after(&mut f, 0, 60, 0);
    assert_eq!(window(&f), 100.0);
}

#[test]
fn the_hosts_largest_window() {
    let mut f = at_delay(&[], 100, 0);
    f.conn.cwnd_max_pkts = 101;
    (0..4).for_each(|_| _ = ack_after(&mut f, 0, 50, 0));
    assert_eq!(window(&f), 101.0);
}

/// Without an RTT sample there is no queueing delay.
#[test]
fn no_sample_yet() {
    let mut f = flow(&[], 10, 2);
    f.send(20);
    f.ack(5, NO_SAMPLE, NEVER);
    assert_eq!((f.w(), f.cc.observe()[0], f.conn.pacing_bytes_per_s), (11, 0, 0));
}

/// Section 2.1 step 4: v doubles once the direction has been the same for three round trips.
#[test]
fn velocity_doubles() {
    let mut f = flow(&[], 10, 2);
    // The first round has no window before it. Its growth is 2, as the next rounds': up, up, up.
    let mut seen = Vec::new();
    for _ in 0..8 {
        f.round(0, NEVER);
        seen.push((velocity(&f), f.w()));
    }
    let by_hand = [(1, 12), (1, 14), (1, 16), (2, 20), (4, 28), (8, 44), (16, 76), (32, 140)];
    assert_eq!(seen, by_hand);
    let mut f = flow(&[("velocity_after", 1)], 10, 2);
    f.round(0, NEVER);
    f.round(0, NEVER);
    assert_eq!((velocity(&f), f.w()), (2, 16));
}

/// "If not, then reset v to 1"; and three round trips down again before it doubles.
#[test]
fn velocity_starts_again() {
    let mut f = flow(&[], 10, 2);
    (0..6).for_each(|_| _ = f.round(0, NEVER));
    assert_eq!((velocity(&f), f.w()), (8, 44));
    let down = |f: &mut Flow| {
        f.conn.now_us += FORGET_STANDING_US;
        f.round(300_000, NEVER);
        (velocity(f), f.w())
    };
    // The round that ends has gone up: v = 16, by then downwards.
    assert_eq!(down(&mut f), (16, 12));
    // 44 to 12: down.
    assert_eq!([down(&mut f), down(&mut f), down(&mut f)], [(1, 10), (1, 8), (2, 4)]);
}

/// CO-h: with velocity_reset=reversal v is 1 as soon as the direction turns, and a new round begins.
#[test]
fn velocity_of_a_reversal() {
    let mut f = flow(&[("velocity_reset", 1)], 10, 2);
    (0..6).for_each(|_| _ = f.round(0, NEVER));
    assert_eq!((velocity(&f), f.w()), (8, 44));
    f.send(44);
    // v / delta = 2 packets a round trip, not 16; the rest of the window does not end the new round.
    ack_after(&mut f, FORGET_STANDING_US, 11, 300_000);
    assert_eq!(velocity(&f), 1);
    assert!((window(&f) - 43.5).abs() < 1e-7, "{}", window(&f));
    assert_eq!(f.ack(33, 300_000, NEVER) & NOTE_ROUND, 0);
    assert_eq!(f.w(), 41);
    // Without a doubled v nothing is reset: the third round trip down doubles it.
    assert_eq!([0; 3].map(|_| (f.round(300_000, NEVER), velocity(&f)).1), [1, 1, 2]);
    // And back: v falls to 1 at the first ACK that raises the window.
    f.conn.now_us += FORGET_STANDING_US;
    f.send(10);
    f.ack(1, 0, NEVER);
    assert_eq!(velocity(&f), 1);
}

/// CO-c: no direction without a change.
#[test]
fn velocity_of_a_window_that_stays() {
    let mut f = flow(&[], 10, 2);
    (0..5).for_each(|_| _ = f.round(0, NEVER));
    assert_eq!(velocity(&f), 4);
    f.conn.cwnd_limited = 0;
    f.round(0, NEVER); // up, until it ended
    assert_eq!((velocity(&f), f.w()), (8, 28));
    f.round(0, NEVER);
    assert_eq!(velocity(&f), 1);
}

/// CO-b: 1/delta = 100 packets double a window of 10 in a round trip, no more.
#[test]
fn growth_is_at_most_slow_starts() {
    let mut f = flow(&[("delta", 10_000)], 10, 2);
    assert_eq!(
        [0; 5].map(|_| {
            f.round(0, NEVER);
            f.w()
        }),
        [20, 40, 80, 160, 320]
    );
}

// ---------------------------------------------------------------------------------------------
// RTTmin and RTTstanding
// ---------------------------------------------------------------------------------------------

/// RTTmin is forgotten after 10 s to 12.5 s, RTTstanding after 17.8 ms to 22.3 ms (CO-a).
#[test]
fn minima_are_forgotten() {
    let mut f = flow(&[], 10, 2);
    f.conn.cwnd_limited = 0;
    f.send(1 << 20);
    ack_after(&mut f, 0, 2, 0);
    ack_after(&mut f, 17_777, 2, 7_000);
    assert_eq!(f.cc.observe()[..2], [0, 40_000], "8/9 of srtt/2 ago");
    ack_after(&mut f, 4_453, 2, 7_000);
    assert_eq!(f.cc.observe()[..2], [7_000, 40_000]);
    ack_after(&mut f, 9_976_769, 2, 7_000);
    assert_eq!(f.cc.observe()[..2], [7_000, 40_000], "10 s less 1 ms");
    ack_after(&mut f, 2_502_000, 2, 7_000);
    assert_eq!(f.cc.observe()[..2], [0, 47_000]);
    // A long pause forgets everything but the sample that follows it.
    ack_after(&mut f, 1 << 39, 2, 9_000);
    assert_eq!(f.cc.observe()[..2], [0, 49_000]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// CO-a: RTTmin is of at least one and at most five quarters of its window, RTTstanding of 8/9 to
    /// 10/9 of srtt/2.
    #[test]
    fn minima_are_of_their_windows(
        samples in prop::collection::vec((0_u64..40_000, 0_u32..200_000), 1..200),
        window in 100_000_u64..1_000_000,
        origin in 0_u64..1 << 60,
    ) {
        let mut f = flow(&[("rtt_min_window", window)], 10, 2);
        f.conn.cwnd_limited = 0;
        f.conn.now_us = origin;
        f.send(1 << 20);
        let mut seen: Vec<(u64, u32)> = Vec::new();
        for (after_us, q_us) in samples {
            ack_after(&mut f, after_us, 2, q_us);
            let now = f.conn.now_us;
            seen.push((now, 40_000 + q_us));
            let least = |over_us: u64| {
                seen.iter().filter(|(t, _)| now - t <= over_us).map(|(_, rtt)| *rtt).min()
                    .expect("this one")
            };
            let [dq, rtt_min, ..] = f.cc.observe();
            // A bucket is a microsecond longer than a quarter, rounded down.
            let longest = |window: u64| 5 * (window / 4 + 1);
            prop_assert!((least(longest(window))..=least(window)).contains(&rtt_min));
            let standing = dq + rtt_min;
            let least_possible = least(longest(17_777)).max(rtt_min);
            prop_assert!((least_possible..=least(17_777).max(rtt_min)).contains(&standing));
        }
    }

    /// The comparison of the rates is exact: cwnd dq <= RTTstanding / delta.
    #[test]
    fn target_is_exact(
        (q_us, shift) in (1_u32..10_000_000, 0_u32..23),
        near in -2_i64..=2,
        delta in 1_000_u64..10_000_000,
    ) {
        let q_us = (q_us >> shift).max(1);
        let inv_delta = (1_000_000_u128 << 16) / u128::from(delta);
        let target = u128::from(40_000 + q_us) * inv_delta;
        let edge = (target / (u128::from(q_us) << 16)) as i64;
        let cwnd = u32::try_from((edge + near).clamp(3, 1 << 30)).expect("a window");
        let mut f = at_delay(&[("delta", delta)], cwnd, q_us);
        ack_after(&mut f, 0, 2, q_us);
        let rises = (u128::from(cwnd) * u128::from(q_us)) << 16 <= target;
        prop_assert_eq!(position(&f) > u64::from(cwnd) << 32, rises);
    }

    /// The change against floating point: within 2^-32 packets for each packet acknowledged.
    #[test]
    fn change_is_within_its_bound(
        (cwnd, shift) in (2_u32..1 << 30, 0_u32..29),
        n in 2_u32..1000,
        delta in 1_000_u64..10_000_000,
        falls in any::<bool>(),
    ) {
        let cwnd = (cwnd >> shift).max(2);
        let q_us = if falls { 10_000_000 } else { 0 };
        let mut f = at_delay(&[("delta", delta)], cwnd, q_us);
        let inv_delta = inv_delta(&f);
        prop_assert!((inv_delta - 1e6 / delta as f64).abs() <= 1.0 / 65_536.0);
        prop_assume!(!falls || f64::from(cwnd) * 1e7 > 10_040_000.0 * inv_delta);
        ack_after(&mut f, 0, n, q_us);
        let n = f64::from(n.min(cwnd));
        let change = n * (inv_delta / f64::from(cwnd)).min(1.0);
        let by_hand = if falls {
            (f64::from(cwnd) - change).max(2.0)
        } else {
            (f64::from(cwnd) + change).min(1_073_741_824.0)
        };
        let off = window(&f) - by_hand;
        // In favour of the larger window; a little for the rounding of f64.
        prop_assert!((-2e-7..=n / TWO_32 + 2e-7).contains(&off), "off by {off}");
    }
}

// ---------------------------------------------------------------------------------------------
// Slow start
// ---------------------------------------------------------------------------------------------

/// "cwnd doubles once per RTT until lambda exceeds lambda_t".
#[test]
fn slow_start() {
    let mut f = flow(&[], 10, SSTHRESH_INFINITE);
    f.round(0, NEVER);
    f.round(0, NEVER);
    assert_eq!((f.w(), velocity(&f)), (40, 1));
    // dq = 1 ms: the target is 41 / (0.5 * 1) = 82 packets.
    f.conn.now_us += FORGET_STANDING_US;
    f.round(1_000, NEVER);
    assert_eq!(f.w(), 80);
    f.conn.cwnd_limited = 0;
    f.round(1_000, NEVER);
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (80, SSTHRESH_INFINITE));
    f.conn.cwnd_limited = 1;
    f.send(40);
    f.ack(20, 1_000, NEVER);
    assert_eq!(f.w(), 100);
    // Now it exceeds it: slow start ends here, and this ACK decreases by 2 * 20/100.
    f.ack(20, 1_000, NEVER);
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (99, 99));
    assert!((window(&f) - 99.6).abs() < 1e-7);
}

/// A first threshold ends it too, without overshoot.
#[test]
fn slow_start_to_a_threshold() {
    let mut f = flow(&[], 10, 15);
    f.round(0, NEVER);
    assert_eq!(f.w(), 15);
    f.round(0, NEVER);
    assert_eq!(f.w(), 17);
}

// ---------------------------------------------------------------------------------------------
// Section 2.2: competing with loss-based flows
// ---------------------------------------------------------------------------------------------

/// A round trip whose RTTs are these, with a window that does not grow by itself, and no queue left
/// behind in RTTstanding.
fn quiet_round(f: &mut Flow, q_us: u32) {
    f.conn.cwnd_limited = 0;
    f.conn.now_us += 40_000;
    f.conn.cwnd_pkts = 20;
    f.round(q_us, NEVER);
}

/// dq <= 0.1 (RTTmax - RTTmin) within five round trips, or the mode is competitive (CO-d).
#[test]
fn modes() {
    // RTTmax - RTTmin = 50 ms for as long as the first round trip is among the last four: 5 ms is
    // nearly empty, 5.001 ms is not.
    for (q_us, empty) in [(5_000, true), (5_001, false)] {
        let mut f = flow(&[], 20, 2);
        quiet_round(&mut f, 0);
        quiet_round(&mut f, 50_000);
        let bytes = |f: &Flow| f.cc.state().bytes()[83];
        assert_eq!(bytes(&f), 1 + u8::from(f.cc.observe()[0] > 0));
        quiet_round(&mut f, q_us);
        assert_eq!(bytes(&f) == 1, empty, "{q_us}");
    }
    // Five whole round trips without one: the sixth end of a round after it.
    let mut f = flow(&[], 20, 2);
    quiet_round(&mut f, 0);
    let modes = [0; 8].map(|_| {
        quiet_round(&mut f, 30_000);
        competitive(&f)
    });
    // 1/delta starts at the default's 2 and grows by 1 in each round trip.
    assert_eq!(modes, [0, 0, 0, 0, 2, 3, 4, 5]);
    // Nearly empty once: default mode and its delta at the end of that round trip.
    quiet_round(&mut f, 0);
    assert_eq!((competitive(&f), inv_delta(&f)), (0, 2.0));
}

#[test]
fn modes_can_be_forced() {
    let mut f = flow(&[("mode", 1)], 20, 2);
    quiet_round(&mut f, 0);
    (0..20).for_each(|_| quiet_round(&mut f, 30_000));
    assert_eq!((competitive(&f), inv_delta(&f)), (0, 2.0));
    let mut f = flow(&[("mode", 2)], 20, 2);
    assert_eq!(competitive(&f), 2);
    (0..3).for_each(|_| quiet_round(&mut f, 0));
    assert_eq!(competitive(&f), 5);
    let mut f = flow(&[("empty_rounds", 2)], 20, 2);
    quiet_round(&mut f, 0);
    assert_eq!(
        [0; 3].map(|_| {
            quiet_round(&mut f, 30_000);
            competitive(&f)
        }),
        [0, 2, 3]
    );
}

/// CO-k: one packet at the flow's own rate is nearly empty, 42 ms / 20 = 2.1 ms, however little the
/// RTT has varied.
#[test]
fn one_packet_is_nearly_empty() {
    for (floor, q_us, empty) in
        [(1, 2_000, true), (1, 2_105, true), (1, 2_106, false), (0, 2_000, false)]
    {
        let mut f = flow(&[("empty_floor", floor)], 20, 2);
        quiet_round(&mut f, 0);
        (0..6).for_each(|_| quiet_round(&mut f, q_us));
        assert_eq!(competitive(&f) == 0, empty, "{floor}, {q_us}");
    }
}

/// CO-e.
#[test]
fn slow_start_is_no_competition() {
    let mut f = flow(&[], 20, SSTHRESH_INFINITE);
    for q_us in [0, 10, 10, 10, 10, 10, 10, 10, 10, 10] {
        quiet_round(&mut f, q_us);
    }
    assert_eq!((competitive(&f), f.conn.ssthresh_pkts), (0, SSTHRESH_INFINITE));
}

/// AIMD on 1/delta: halved by a loss, at least the default's.
#[test]
fn loss_in_competitive_mode() {
    let mut f = flow(&[], 20, 2);
    quiet_round(&mut f, 0);
    (0..8).for_each(|_| quiet_round(&mut f, 30_000));
    assert_eq!(competitive(&f), 5);
    let cwnd = f.w();
    assert_eq!(f.loss(), (cwnd, NOTE_LOSS_TOLERATED));
    assert_eq!(inv_delta(&f), 2.5);
    assert_eq!(f.cc.undo(&mut f.conn), cwnd);
    assert_eq!(inv_delta(&f), 5.0);
    f.loss();
    f.loss();
    assert_eq!(inv_delta(&f), 2.0);
}

/// CO-m: 1/delta is halved by the loss that begins a recovery, then by those of its third and later round
/// trips.
#[test]
fn losses_of_a_long_recovery() {
    let mut f = flow(&[], 20, 2);
    quiet_round(&mut f, 0);
    (0..11).for_each(|_| quiet_round(&mut f, 30_000));
    assert_eq!(inv_delta(&f), 8.0);
    f.loss();
    assert_eq!(inv_delta(&f), 4.0);
    let after = [1, 1, 1, 1, 0, 3].map(|lost_pkts| {
        f.lost_pkts = lost_pkts;
        quiet_round(&mut f, 30_000);
        inv_delta(&f)
    });
    assert_eq!(after, [5.0, 6.0, 3.0, 2.0, 3.0, 2.0]);
}

// ---------------------------------------------------------------------------------------------
// Losses
// ---------------------------------------------------------------------------------------------

/// A round trip that delivers and loses so many packets. Gives the window after it.
fn lossy_round(f: &mut Flow, (delivered, lost): (u32, u32)) -> u32 {
    f.lost_pkts = lost;
    f.send(delivered);
    f.ack(delivered, 0, NEVER);
    f.w()
}

/// CO-n: more than 30 % in two round trips, of at least 20 packets, leave 0.7 of the window.
#[test]
fn excess_loss() {
    let after = |given: Given, rounds: &[(u32, u32)]| -> Vec<u32> {
        let mut f = flow(given, 100, SSTHRESH_INFINITE);
        f.conn.cwnd_limited = 0;
        let windows = rounds.iter().map(|round| lossy_round(&mut f, *round)).collect();
        // Slow start does not resume.
        assert_eq!(f.conn.ssthresh_pkts == SSTHRESH_INFINITE, f.w() == 100);
        assert!(f.w() == 100 || f.conn.ssthresh_pkts == f.w());
        windows
    };
    // 30 of 100; then 31 of them.
    let rounds = [(35, 15), (35, 15), (35, 15), (34, 16), (1, 0), (1, 40)];
    assert_eq!(after(&[], &rounds), [100, 100, 100, 70, 70, 49]);
    // 19 packets do not suffice, 20 do.
    assert_eq!(after(&[], &[(6, 3), (6, 4), (1, 0)]), [100, 100, 70]);
    // The first 65535 packets of the two round trips decide.
    assert_eq!(after(&[], &[(1 << 20, 0), (1, 1 << 20)]), [100, 100]);
    assert_eq!(after(&[], &[(1, 1 << 20), (1 << 20, 0)]), [100, 70]);
    assert_eq!(after(&[("excess_loss", 1_000_000)], &[(1, 99), (1, 99)]), [100, 100]);
    assert_eq!(after(&[("excess_loss", 0)], &[(99, 0), (99, 1)]), [100, 70]);
}

/// CO-n: a reduction gives no direction, and a timeout forgets what was lost before it.
#[test]
fn excess_loss_and_other_rules() {
    let mut f = flow(&[], 100, 2);
    let seen = [0; 6].map(|_| (lossy_round(&mut f, (60, 40)), velocity(&f)));
    assert_eq!(seen, [(101, 1), (72, 1), (74, 1), (56, 2), (64, 4), (60, 8)]);
    let mut f = flow(&[], 100, 2);
    f.conn.cwnd_limited = 0;
    lossy_round(&mut f, (10, 90));
    f.send(100);
    assert_eq!(f.timeout(), 50);
    f.ack(100, 0, NEVER);
    assert_eq!((lossy_round(&mut f, (10, 0)), f.conn.ssthresh_pkts), (1, 50));
}

/// CO-f: the window stays; slow start ends.
#[test]
fn loss() {
    let mut f = flow(&[], 100, SSTHRESH_INFINITE);
    f.send(100);
    assert_eq!(f.loss(), (100, NOTE_LOSS_TOLERATED));
    assert_eq!(inv_delta(&f), 2.0);
    let mut f = flow(&[("loss_window", 1)], 100, SSTHRESH_INFINITE);
    f.send(100);
    assert_eq!((f.loss(), f.w()), ((50, 0), 100));
    f.conn.cwnd_limited = 0;
    f.ack(1, 0, NEVER);
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (50, 50));
    f.ack(1, 0, NEVER);
    assert_eq!(f.w(), 50, "once");
    assert_eq!(f.cc.undo(&mut f.conn), 100);
    // A timeout has its own threshold, and its own window.
    f.timeout();
    f.ack(1, 0, NEVER);
    assert_eq!(f.w(), 1);
    let mut f = flow(&[], 1, 2);
    assert_eq!(f.loss().0, 2);
}

/// CO-g: the rule moves the window in recovery too, and rounds end with a delivery.
#[test]
fn recovery() {
    let mut f = at_delay(&[], 100, 10_000);
    f.loss();
    ack_after(&mut f, 0, 50, 10_000);
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (99, 99));
    let mut f = at_delay(&[], 100, 0);
    f.loss();
    ack_after(&mut f, 0, 50, 0);
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (101, 100));
    // The cumulative position does not move, as with a hole; a packet sent since ends the round.
    for (sample_prior_pkts, ended) in [(1, 0), (99, NOTE_ROUND)] {
        let ack = Ack {
            delivered_pkts: 100,
            acked_pkts: 1,
            rtt_us: BASE_US,
            sample_prior_pkts,
            ..Ack::default()
        };
        f.cc.on_ack(&mut f.conn, &ack);
        assert_eq!(f.conn.notes & NOTE_ROUND, ended);
    }
}

/// CO-i: NewReno; until the data then outstanding is acknowledged, whatever the delay.
#[test]
fn timeout() {
    let mut f = flow(&[], 12, 2);
    (0..6).for_each(|_| _ = f.round(0, NEVER));
    assert_eq!((velocity(&f), f.w()), (8, 46));
    f.conn.cwnd_pkts = 12;
    f.send(12);
    assert_eq!((f.timeout(), f.w(), velocity(&f)), (6, 1, 1));
    for after in [3, 5, 6] {
        ack_after(&mut f, FORGET_STANDING_US, 2, 300_000);
        assert_eq!(f.w(), after);
    }
    f.conn.phase = Phase::Open as u8;
    ack_after(&mut f, 0, 6, 300_000);
    assert!(window(&f) < 6.0, "{}", window(&f));
}

// ---------------------------------------------------------------------------------------------
// Pacing
// ---------------------------------------------------------------------------------------------

/// "The sender paces packets at a rate of 2 cwnd / RTTstanding".
#[test]
fn pacing() {
    let mut f = at_delay(&[], 100, 0);
    f.conn.cwnd_limited = 0;
    ack_after(&mut f, 0, 2, 0);
    assert_eq!(f.conn.pacing_bytes_per_s, 7_300_000); // 2 * 100 * 1460 / 0.04
    ack_after(&mut f, FORGET_STANDING_US, 2, 3_000);
    // The window has fallen by 2 * 2/100: 99 whole packets.
    assert_eq!((f.w(), f.conn.pacing_bytes_per_s), (99, 6_722_790)); // 289 080 / 0.043
    // No overflow: 2 * 2^30 * 65527 / 1 us = 1.4 * 10^20, of which 2^42 us^-1 are let through.
    let mut f = flow(&[], 1 << 30, 2);
    f.conn.mss_bytes = u32::MAX;
    f.send(10);
    let ack = Ack { rtt_us: 0, acked_pkts: 2, ..Ack::default() };
    f.cc.on_ack(&mut f.conn, &ack);
    assert_eq!(f.conn.pacing_bytes_per_s, (1 << 42) * 1_000_000);
    let mut f = at_delay(&[("pacing", 0)], 100, 0);
    ack_after(&mut f, 0, 2, 0);
    assert_eq!(f.conn.pacing_bytes_per_s, 0);
}

#[test]
fn profile_and_state() {
    let copa = algorithm("copa").expect("registered");
    assert_eq!((copa.profile(), copa.state_bytes()), (Profile::Rate, STATE_MAX_BYTES));
}

// ---------------------------------------------------------------------------------------------
// Equilibrium: section 3
// ---------------------------------------------------------------------------------------------

/// Flows over one ideal link, each from a window of its own. Gives the least and the largest queue of
/// each 40 ms in the second half, and the packets that each flow delivered in it.
fn share(given: Given, windows: &[u32], seconds: u64) -> (Vec<(f64, f64)>, Vec<u32>) {
    let mut flows: Vec<_> = windows.iter().map(|w| flow(given, *w, 2)).collect();
    let end_us = seconds * 1_000_000;
    let mut queues: Vec<(f64, f64)> = Vec::new();
    let mut delivered = vec![0; windows.len()];
    let starts = vec![0; windows.len()];
    link::run(&mut flows, &starts, end_us, |now_us, whose, queue, _| {
        let Some(late_us) = now_us.checked_sub(end_us / 2) else { return };
        delivered[whose] += 1;
        if late_us / 40_000 >= queues.len() as u64 {
            queues.push((queue, queue));
        }
        let last = queues.last_mut().expect("one");
        *last = (last.0.min(queue), last.1.max(queue));
    });
    (queues, delivered)
}

/// "the queue oscillates between having 0 and 2.5/delta^ packets every five RTTs", delta^ being
/// 1/sum(1/delta_i); so the link is busy but empties in every five round trips, and one flow never
/// takes itself for a competitor.
#[test]
fn one_flow_oscillates() {
    let (queues, _) = share(&[], &[40], 20);
    let largest = queues.iter().map(|q| q.1).fold(0.0, f64::max);
    assert!((2.0..=5.0 + 1.0).contains(&largest), "{largest} packets");
    let empties = queues.windows(5).filter(|w| w.iter().any(|q| q.0 <= 1.0)).count();
    assert_eq!(empties, queues.len() - 4, "of all five round trips in a row");
}

/// Flows that start apart come to share, with a queue in proportion to their number. Two of them do
/// so by themselves; more are kept from taking each other for loss-based flows.
#[test]
fn flows_share() {
    let default_mode = [("mode", 1)];
    for (given, windows) in [
        (&[][..], &[70, 5][..]),
        (&[], &[5, 70]),
        (&default_mode, &[70, 5]),
        (&default_mode, &[90, 5, 5, 5]),
    ] {
        let (queues, delivered) = share(given, windows, 60);
        let n = windows.len() as f64;
        let mean = queues.iter().map(|q| (q.0 + q.1) / 2.0).sum::<f64>() / queues.len() as f64;
        assert!((0.5 * n..=5.0 * n).contains(&mean), "{windows:?}: {mean} packets queued");
        let (least, most) = (delivered.iter().min(), delivered.iter().max());
        let ratio = f64::from(*most.expect("one")) / f64::from(*least.expect("one"));
        assert!(ratio < 1.6, "{windows:?}: {delivered:?}");
    }
}
