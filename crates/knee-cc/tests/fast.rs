//! Every rule of FAST TCP against values worked out by hand, and its equation against floating
//! point.
//!
//! w <- min(2 w, (1 - gamma) w + gamma (w_old baseRTT / avgRTT + alpha)). Queueing delays are
//! microseconds; baseRTT is 40 ms, so that at q = 10 ms baseRTT / RTT = 0.8. `avg_gain` = 1 and a
//! window of 3 packets or less make the average RTT the latest sample; elsewhere a constant delay
//! does.

#[allow(dead_code)] // each test file uses a part of it
mod common;

use common::{BASE_US, Flow, NEVER, params};
use knee_cc::{Ack, NOTE_DELAY_BACKOFF, NOTE_ROUND, Phase};
use proptest::prelude::*;

const REDUCED: u32 = NOTE_ROUND | NOTE_DELAY_BACKOFF;

/// One ACK of two packets with this RTT, which ends a round or none.
fn ack(f: &mut Flow, rtt_us: u32, ends_round: bool) -> u32 {
    if ends_round {
        f.conn.snd_pos = f.conn.snd_pos.wrapping_add(1);
        f.conn.ack_pos = f.conn.snd_pos;
    }
    let rtt_us = i32::try_from(rtt_us).expect("a time");
    let ack = Ack { rtt_us, acked_pkts: 2, random: NEVER, ..Ack::default() };
    f.cc.on_rtt(&mut f.conn, &ack);
    let notes = f.conn.notes;
    f.cc.on_ack(&mut f.conn, &ack);
    notes | f.conn.notes
}

/// baseRTT and the average RTT are these, the window is not FAST's own choice and was the same a
/// round trip ago; an even number of rounds has passed.
fn settled(given: &[(&str, u64)], cwnd_pkts: u32, base_us: u32, avg_us: u32) -> Flow {
    // In a window of 3 packets and with a gain of 1 the average is the sample.
    let gain = [("avg_gain", 1_000_000)];
    let given: Vec<_> = gain.iter().chain(given).copied().collect();
    let mut f = Flow::new(params("fast", &given), 3, 2);
    f.conn.cwnd_limited = 0;
    ack(&mut f, base_us, true);
    ack(&mut f, base_us, false);
    f.conn.cwnd_pkts = 3;
    f.conn.phase = Phase::Loss as u8;
    ack(&mut f, avg_us, false);
    f.conn.cwnd_pkts = cwnd_pkts;
    f.conn.ssthresh_pkts = 2;
    let none = Ack { rtt_us: -1, acked_pkts: 2, ..Ack::default() };
    f.cc.on_rtt(&mut f.conn, &none);
    f.cc.on_ack(&mut f.conn, &none);
    f.conn.phase = Phase::Open as u8;
    f.conn.cwnd_pkts = cwnd_pkts;
    f.conn.cwnd_limited = 1;
    let [avg, base, target, old] = f.cc.observe();
    assert_eq!((avg, base, target, old), (avg_us, base_us, cwnd_pkts, cwnd_pkts));
    f
}

/// Two rounds without a sample, the second of which updates. Gives the notes of both.
fn two_rounds(f: &mut Flow) -> (u32, u32) {
    (f.round(None, NEVER), f.round(None, NEVER))
}

/// Rounds without samples: the average stays.
#[test]
fn the_equation() {
    // (w, q, alpha, gamma, window after)
    for (w, q_us, alpha, gamma, after) in [
        (100, 10_000, 20, 0.5, 100), // 50 + (80 + 20)/2: equilibrium
        (100, 10_000, 40, 0.5, 110), // 50 + (80 + 40)/2
        (100, 10_000, 10, 0.5, 95),  // 50 + (80 + 10)/2
        (100, 10_000, 10, 1.0, 90),
        (100, 10_000, 10, 0.1, 99), // 90 + 9
        (100, 40_000, 20, 0.5, 85), // 50 + (50 + 20)/2
        (100, 40_000, 0, 0.5, 75),
        (10, 10_000, 200, 0.5, 20),  // 5 + 104 = 109, no more than 2 w
        (2, 40_000, 0, 1.0, 2),      // 1, no less than 2
        (101, 10_000, 20, 0.5, 100), // 50.5 + 50.4 = 100.9
        (1000, 40_000, 200, 0.5, 850),
    ] {
        let given = [("alpha", alpha), ("gamma", (gamma * 1e6) as u64)];
        let mut f = settled(&given, w, 40_000, 40_000 + q_us);
        let (first, second) = two_rounds(&mut f);
        assert_eq!(f.w(), after, "w {w}, q {q_us}, alpha {alpha}, gamma {gamma}");
        assert_eq!(first, NOTE_ROUND);
        assert_eq!(second, if after < w { REDUCED } else { NOTE_ROUND });
        if after < w {
            assert_eq!(f.conn.ssthresh_pkts, after, "slow start does not resume");
        }
    }
}

/// An eighth of a packet per update adds up: the fractions of the window and of w_old are kept. The
/// window approaches 105, where w (1 - 0.8) = alpha, from below.
#[test]
fn fractions_add_up() {
    let mut f = settled(&[("alpha", 21), ("gamma", 125_000)], 100, 40_000, 50_000);
    let mut w = 100.0_f64;
    for update in 0..400 {
        two_rounds(&mut f);
        w = 0.875 * w + 0.125 * (0.8 * w + 21.0);
        // Rounding takes 3 * 2^-16 from each update, of which 1/0.025 stay.
        let short = w - 40.0 * 3.0 / 65_536.0;
        assert!((short.floor() as u32..=w as u32).contains(&f.w()), "{update}: {}, {w}", f.w());
    }
    assert_eq!(f.w(), 104);
}

/// Reading FA-d: w_old is the window of a round trip ago.
#[test]
fn the_old_window() {
    // Held at 100 by the application, then found at 120: 60 + (80 + 20)/2.
    let mut f = settled(&[], 100, 40_000, 50_000);
    f.round(None, NEVER);
    f.conn.cwnd_pkts = 120;
    f.round(None, NEVER);
    assert_eq!(f.w(), 110);
    assert_eq!(f.cc.observe()[3], 110);
}

/// Reading FA-b: every other round trip.
#[test]
fn every_other_round() {
    let mut f = settled(&[("alpha", 0)], 1_000, 40_000, 80_000);
    let mut windows = Vec::new();
    for _ in 0..6 {
        f.round(None, NEVER);
        windows.push(f.w());
    }
    assert_eq!(windows, [1_000, 750, 750, 562, 562, 421]); // 562.5, then 281.25 + 281/2 = 421.75
}

/// Reading FA-e: an increase is spread over ACKs.
#[test]
fn an_increase_is_spread() {
    let mut f = settled(&[("alpha", 40)], 100, 40_000, 50_000);
    f.round(None, NEVER);
    f.send(100);
    for i in 1..=20 {
        f.ack(1, None, NEVER);
        assert_eq!(f.w(), 100 + i.min(10), "ACK {i}");
    }
    // RFC 3465's limit holds here too.
    let mut f = settled(&[("alpha", 40), ("ss_limit", 2)], 100, 40_000, 50_000);
    two_rounds(&mut f);
    assert_eq!(f.w(), 102);
    f.send(3);
    f.ack(3, None, NEVER);
    assert_eq!(f.w(), 104);
}

/// ns-2: hold while alpha <= w q / avgRTT < beta.
#[test]
fn between_alpha_and_beta() {
    for (w, after) in [(99, 99), (100, 100), (110, 110), (149, 149), (150, 145), (90, 91)] {
        // 0.2 w queued; 20 and 30. 90: 45 + (72 + 20)/2. 150: 75 + (120 + 20)/2.
        let mut f = settled(&[("beta", 30)], w, 40_000, 50_000);
        two_rounds(&mut f);
        assert_eq!(f.w(), after, "{w}");
    }
}

/// Below `mi_threshold` the window grows by one for each packet acknowledged.
#[test]
fn doubling() {
    for (threshold, q_us, after) in
        [(750, 749, 200), (750, 750, 109), (0, 0, 110), (1, 0, 200), (5_000, 4_999, 200)]
    {
        // 750: 50 + (98.2 + 20)/2 = 109.08
        let mut f = settled(&[("mi_threshold", threshold)], 100, 40_000, 40_000 + q_us);
        f.conn.cwnd_limited = 0;
        f.round(None, NEVER);
        f.conn.cwnd_limited = 1;
        f.round(None, NEVER);
        assert_eq!(f.w(), after, "threshold {threshold}, q {q_us}");
    }
}

/// Reading FA-g: slow start is the same doubling; the first delay above the threshold ends it.
#[test]
fn slow_start() {
    let mut f = Flow::slow_start(params("fast", &[]), 10);
    for after in [20, 40, 80] {
        f.round(0, NEVER);
        assert_eq!(f.w(), after);
    }
    // avgRTT += 3/80 q: 0.75 ms at q = 20 ms, exactly; it is above.
    f.conn.cwnd_limited = 0;
    let mut below = f.clone();
    below.round(19_990, NEVER);
    assert_eq!(below.conn.ssthresh_pkts, 0x7fff_ffff);
    f.round(20_001, NEVER);
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (80, 80));
    // Up to ssthresh without a sample.
    let mut f = Flow::new(params("fast", &[]), 10, 15);
    f.round(None, NEVER);
    assert_eq!(f.w(), 15);
    f.round(None, NEVER);
    assert_eq!(f.w(), 15, "nothing is known of the queue");
}

/// avgRTT moves by min(3/w, avg_gain) of the way.
#[test]
fn the_average() {
    // (w, gain, microseconds that 64 ms make)
    for (w, gain, moved) in [
        (2, 250_000, 16_000),
        (12, 250_000, 16_000),
        (16, 250_000, 12_000),
        (300, 250_000, 640),
        (3_000_000, 250_000, 0), // 0.064
        (300, 3_907, 250),       // ns-2: 1/256, in 1/2^16
        (768, 3_907, 250),
        (1_536, 3_907, 125),
        (1, 1_000_000, 64_000),
    ] {
        let mut f = Flow::new(params("fast", &[("avg_gain", gain)]), w, 2);
        f.conn.cwnd_limited = 0;
        ack(&mut f, 40_000, false);
        f.conn.cwnd_pkts = w;
        ack(&mut f, 104_000, false);
        assert_eq!(f.cc.observe()[0], 40_000 + moved, "w {w}, gain {gain}");
    }
}

/// `update = interval`: whenever so much time has passed; a second reduction waits for a round trip
/// unless `holdoff` is none (reading FA-f).
#[test]
fn updates_at_intervals() {
    for (holdoff, windows) in [(1, [750, 750, 750, 750]), (0, [750, 625, 562, 531])] {
        // w/2 + w_old/4 with w_old = 1000: 750, 625, 562.5, 531.25.
        let given = [("update", 1), ("alpha", 0), ("interval", 10_000), ("holdoff", holdoff)];
        let mut f = settled(&given, 1_000, 40_000, 80_000);
        f.send(1_000);
        f.conn.cwnd_limited = 0;
        let mut seen = Vec::new();
        for _ in 0..4 {
            for after_us in [9_999, 1] {
                let before = f.w();
                f.conn.now_us += after_us;
                ack(&mut f, 80_000, false);
                assert!(after_us == 1 || f.w() == before, "only after 10 ms");
            }
            seen.push(f.w());
        }
        assert_eq!(seen, windows, "holdoff {holdoff}");
        // All that was outstanding is acknowledged: reductions again.
        f.conn.now_us += 10_000;
        f.ack(1_000, None, NEVER);
        assert!(f.w() < seen[3]);
    }
}

/// RFC 5681 eq. 4. FAST continues with the window that the stack leaves.
#[test]
fn loss_recovery_and_undo() {
    let mut f = settled(&[], 100, 40_000, 80_000);
    f.send(100);
    assert_eq!(f.loss().0, 50);
    assert_eq!(f.cc.undo(&mut f.conn), 100);
    assert_eq!(f.ack(50, None, NEVER) & NOTE_DELAY_BACKOFF, 0);
    f.ack_ending_recovery(50, None, NEVER);
    assert_eq!(f.w(), 50);
    assert_eq!(f.cc.observe()[2..], [50, 50]);
    assert_eq!(two_rounds(&mut f), (NOTE_ROUND, REDUCED)); // 25 + (25 + 20)/2 = 47.5
    assert_eq!(f.w(), 47);
}

/// NewReno while the losses of a timeout are repaired, whatever the delay.
#[test]
fn timeout() {
    let mut f = settled(&[], 100, 40_000, 80_000);
    f.send(100);
    assert_eq!(f.timeout(), 50);
    for after in [2, 3, 4] {
        f.ack(1, 40_000, NEVER);
        assert_eq!(f.w(), after);
    }
}

#[test]
fn the_application_limits() {
    let mut f = settled(&[("alpha", 100)], 100, 40_000, 50_000);
    f.conn.cwnd_limited = 0;
    for _ in 0..6 {
        f.round(None, NEVER);
        assert_eq!(f.w(), 100);
    }
}

fn times() -> impl Strategy<Value = (u32, u32)> {
    let any = || (1_u32..1 << 24, 0_u32..24).prop_map(|(t, shift)| (t >> shift).max(1));
    (any(), any()).prop_map(|(base, over)| (base, (base + over).min((1 << 24) - 1)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The window that an update asks for is the equation's, rounded down, within 2^-16 packets,
    /// a part of 2^-16 of the window where gamma is not a multiple of 2^-16, and the precision of
    /// the floating-point numbers: over all windows, times and parameters.
    #[test]
    fn the_equation_over_its_range(
        (base, avg) in times(),
        (window, shift) in (2_u32..=1 << 30, 0_u32..30),
        alpha in prop_oneof![0_u32..1_000, 0_u32..=1_000_000],
        gamma in prop_oneof![Just(500_000_u32), 1_u32..=1_000_000],
    ) {
        let window = (window >> shift).max(2);
        let given = [
            ("alpha", alpha.into()), ("gamma", gamma.into()), ("mi_threshold", 0),
        ];
        let mut f = settled(&given, window, base, avg);
        f.conn.cwnd_limited = 0;
        ack(&mut f, avg, true);
        ack(&mut f, avg, true);
        let [w, base, avg, alpha] = [window, base, avg, alpha].map(f64::from);
        let gamma = f64::from(gamma) / 1e6;
        let target = ((1.0 - gamma) * w + gamma * (w * base / avg + alpha)).min(2.0 * w);
        let target = target.min(f64::from(1 << 30)).max(2.0);
        let far = w.max(alpha) / 65_536.0 + 2e-4;
        let got = f64::from(f.cc.observe()[2]);
        let (least, most) = ((target - far).floor(), (target + far).floor());
        prop_assert!((least..=most).contains(&got), "{got}, {target} within {far}");
        // It is the window itself where that falls; an increase waits for ACKs.
        prop_assert_eq!(f64::from(f.w()), got.min(w));
    }

    /// The average stays within its rounding of the exact recursion: below cwnd/3 steps of 2^-24 us
    /// per sample, or half of 2^-16 of the distance where the gain is capped.
    #[test]
    fn the_average_over_its_range(
        rtts in prop::collection::vec(1_u32..1 << 24, 2..40),
        (window, shift) in (2_u32..=1 << 30, 0_u32..30),
    ) {
        let window = (window >> shift).max(2);
        let mut f = Flow::new(params("fast", &[]), window, 2);
        f.conn.cwnd_limited = 0;
        let gain = (3.0 / f64::from(window)).min(0.25);
        let mut exact = 0.0;
        for (i, rtt) in rtts.iter().enumerate() {
            ack(&mut f, *rtt, false);
            exact += if i == 0 { f64::from(*rtt) } else { gain * (f64::from(*rtt) - exact) };
        }
        let far = f64::from(window) / 3.0 / f64::from(1 << 24) + 1e-3;
        let got = f64::from(f.cc.observe()[0]);
        prop_assert!(got > exact - 1.0 - far && got <= exact + far, "{got}, {exact}");
    }
}

// ---------------------------------------------------------------------------------------------
// Behaviour
// ---------------------------------------------------------------------------------------------

/// N flows with the right baseRTT keep N alpha packets queued, and share alike (FAST paper,
/// equilibrium): here in lockstep rounds over an ideal queue.
#[test]
fn alpha_packets_of_each_flow_are_queued() {
    let (base_us, per_us) = (40_000.0, 0.005);
    for n in [1, 2, 5] {
        let mut flows: Vec<_> = (0..n)
            .map(|i| Flow::new(params("fast", &[("delack_filter", 0)]), 2 + 30 * i, 2))
            .collect();
        for f in &mut flows {
            ack(f, 40_000, true);
        }
        let backlog = |flows: &[Flow]| {
            let windows: u32 = flows.iter().map(Flow::w).sum();
            (f64::from(windows) - base_us * per_us).max(0.0)
        };
        for _ in 0..400 {
            let q_us = (backlog(&flows) / per_us) as u32;
            for f in &mut flows {
                f.send(f.w());
                for _ in 0..f.conn.outstanding_pkts {
                    f.ack(1, q_us, NEVER);
                }
            }
        }
        let queued = backlog(&flows);
        let expected = 20.0 * f64::from(n);
        assert!((queued - expected).abs() <= 2.0 * f64::from(n), "{n} flows: {queued}");
        let windows: Vec<_> = flows.iter().map(Flow::w).collect();
        let mean = windows.iter().sum::<u32>() / n;
        assert!(windows.iter().all(|w| w.abs_diff(mean) <= mean / 10 + 2), "{windows:?}");
    }
    assert_eq!(BASE_US, 40_000);
}
