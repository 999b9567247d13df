//! Every rule of TCP-Illinois against values worked out by hand, and its functions against floating
//! point. Queueing delays are microseconds; the base RTT is 40 ms.

#[allow(dead_code)] // each test file uses a part of it
mod common;

use common::{BASE_US, Flow, NEVER, NO_SAMPLE, params};
use knee_cc::{Ack, NOTE_ROUND};
use proptest::prelude::*;

/// 100 ms: the low range ends at 1 ms, beta rises from 10 to 80 ms.
const DM_US: u32 = 100_000;

/// The largest queueing delay is `dm_us`, the latest round measured `da_us`.
fn measured(given: &[(&str, u64)], cwnd_pkts: u32, dm_us: u32, da_us: u32) -> Flow {
    let mut f = Flow::avoiding(params("illinois", given), cwnd_pkts);
    f.conn.cwnd_limited = 0;
    for q_us in [0, dm_us, da_us] {
        assert_eq!(f.round(q_us, NEVER), NOTE_ROUND);
    }
    f.conn.cwnd_limited = 1;
    assert_eq!((f.w(), f.cc.observe()[0], f.cc.observe()[1]), (cwnd_pkts, da_us, dm_us));
    f
}

/// (alpha in thousandths, beta in ppm)
fn functions(f: &Flow) -> (u32, u32) {
    let [_, _, alpha, beta] = f.cc.observe();
    (alpha, beta)
}

/// alpha = kappa1/(kappa2 + da): D = 99 ms, 99 * 0.3 * 10 / (99 * 0.3 + (da - 1) 9.7).
#[test]
fn alpha() {
    for (da_us, thousandths) in [
        (1_001, 9_996),  // 297/29.7097 = 9.99673
        (10_000, 2_538), // 297/117 = 2.53846
        (50_500, 582),   // 297/509.85 = 0.58252
        (100_000, 299),  // 0.3, rounded down to 2^-16
    ] {
        let f = measured(&[], 100, DM_US, da_us);
        assert_eq!(functions(&f).0, thousandths, "da {da_us}");
    }
    let given = [("alpha_min", 1_000_000), ("alpha_max", 5_000_000), ("eta1", 200_000)];
    // D = 80 ms: 80 * 5/(80 + (40 - 20) 4) = 2.5, rounded down.
    assert_eq!(functions(&measured(&given, 100, DM_US, 40_000)).0, 2_499);
}

/// beta: 1/8 up to 10 ms, 1/2 from 80 ms on, linear between: 0.125 + 0.375 (da - 10)/70.
#[test]
fn beta() {
    for (da_us, ppm) in [
        (500, 125_000),
        (10_000, 125_000),
        (10_100, 125_535), // 0.375/700 = 0.000536
        (45_000, 312_500),
        (79_900, 499_464),
        (80_000, 500_000),
        (100_000, 500_000),
    ] {
        assert_eq!(functions(&measured(&[], 100, DM_US, da_us)).1, ppm, "da {da_us}");
    }
    let given = [("beta_min", 0), ("beta_max", 800_000), ("eta2", 200_000), ("eta3", 400_000)];
    for (da_us, ppm) in [(20_000, 0), (25_000, 200_000), (40_000, 800_000)] {
        assert_eq!(functions(&measured(&given, 100, DM_US, da_us)).1, ppm);
    }
}

/// Before any round: NewReno. Low delay from the start: alpha_max at once.
#[test]
fn the_start() {
    let mut f = Flow::avoiding(params("illinois", &[]), 100);
    assert_eq!(functions(&f), (1_000, 500_000));
    f.round(NO_SAMPLE, NEVER);
    assert_eq!(functions(&f), (1_000, 500_000), "nothing measured");
    f.round(0, NEVER);
    assert_eq!(functions(&f), (10_000, 125_000));
}

/// Having left the low delay, five round trips of it restore alpha_max (reading IL-a).
#[test]
fn low_delay_has_to_last() {
    for (wait, rounds) in [(None, 5), (Some(1), 1), (Some(0), 1), (Some(3), 3)] {
        let given: Vec<_> = wait.map(|n| ("low_rounds", n)).into_iter().collect();
        let mut f = measured(&given, 100, DM_US, 10_000);
        for round in 1..rounds {
            f.round(1_000, NEVER);
            assert_eq!(functions(&f), (2_538, 125_000), "round {round}: as it was");
        }
        f.round(1_000, NEVER);
        assert_eq!(functions(&f).0, 10_000);
        f.round(1_000, NEVER);
        assert_eq!(functions(&f).0, 10_000);
    }
    // Not in a row: starts again.
    let mut f = measured(&[], 100, DM_US, 10_000);
    for q_us in [0, 0, 0, 0, 1_001, 0, 0, 0, 0] {
        f.round(q_us, NEVER);
    }
    assert_eq!(functions(&f).0, 9_996);
    f.round(0, NEVER);
    assert_eq!(functions(&f).0, 10_000);
}

/// da is the mean of the round's samples.
#[test]
fn the_mean_of_the_round() {
    let mut f = measured(&[], 100, DM_US, 0);
    f.send(100);
    for q_us in [20_000, 70_000] {
        let ack = Ack { rtt_us: BASE_US + q_us, acked_pkts: 2, ..Ack::default() };
        f.cc.on_rtt(&mut f.conn, &ack);
    }
    f.ack(100, 45_000, NEVER);
    assert_eq!((f.cc.observe()[0], functions(&f).1), (45_000, 312_500));
    // A round without a sample leaves everything.
    f.round(NO_SAMPLE, NEVER);
    assert_eq!((f.cc.observe()[0], functions(&f).1), (45_000, 312_500));
}

#[test]
fn delayed_acks_are_left_out() {
    for (filter, da_us) in [(1, 0), (0, 15_000)] {
        let mut f = measured(&[("delack_filter", filter)], 100, DM_US, 0);
        f.send(10);
        let lone = Ack { rtt_us: BASE_US + 30_000, acked_pkts: 1, ..Ack::default() };
        f.cc.on_rtt(&mut f.conn, &lone);
        f.ack(10, 0, NEVER);
        assert_eq!(f.cc.observe()[0], da_us, "filter {filter}");
    }
}

/// cwnd += alpha/cwnd for each packet; the fraction is kept.
#[test]
fn growth() {
    // alpha = 10: one packet more for each tenth of the window.
    let mut f = Flow::avoiding(params("illinois", &[]), 100);
    f.conn.cwnd_limited = 0;
    f.round(0, NEVER);
    f.conn.cwnd_limited = 1;
    f.send(100);
    for acked in 1..=21 {
        f.ack(1, 0, NEVER);
        // 10 * 10/100; then 11 * 10/101.
        let grown = u32::from(acked >= 10) + u32::from(acked >= 21);
        assert_eq!(f.w(), 100 + grown, "{acked} ACKs");
    }
    // alpha = 2.53846 at 10 ms of 100: 100 rounds of 1000 packets give 253.8.
    let mut f = measured(&[], 1_000, DM_US, 10_000);
    let mut gained = 0;
    for _ in 0..100 {
        f.round(10_000, NEVER);
        assert!((1_002..=1_003).contains(&f.w()));
        gained += f.w() - 1_000;
        f.conn.cwnd_pkts = 1_000;
    }
    assert_eq!(gained, 253);
}

/// IL-e: an ACK that delivers one packet and acknowledges 50, as at the end of a recovery. alpha = 10:
/// a tenth of a packet more, or five.
#[test]
fn counted_packets() {
    for (counted, after) in [(0, 100), (1, 105)] {
        let mut f = Flow::avoiding(params("illinois", &[("counted", counted)]), 100);
        f.conn.cwnd_limited = 0;
        f.round(0, NEVER);
        f.conn.cwnd_limited = 1;
        let ack = Ack { acked_pkts: 1, rtt_us: BASE_US, ..Ack::default() };
        f.cc.on_rtt(&mut f.conn, &Ack { advanced_pkts: 50, ..ack });
        f.cc.on_ack(&mut f.conn, &ack);
        assert_eq!(f.w(), after);
    }
}

/// W < 15: alpha = 1, beta = 1/2, whatever the delay; judged when they are used (reading IL-d).
#[test]
fn small_windows() {
    for (threshold, w, grown, reduced) in
        [(15, 14, 15, 7), (15, 15, 25, 13), (10, 14, 24, 12), (0, 2, 12, 2)]
    {
        let given = [("threshold", threshold)];
        let mut f = Flow::avoiding(params("illinois", &given), w);
        f.conn.cwnd_limited = 0;
        f.round(0, NEVER);
        f.conn.cwnd_limited = 1;
        assert_eq!(functions(&f), (10_000, 125_000));
        let ssthresh = f.clone().loss().0;
        assert_eq!(ssthresh, reduced, "{w}: 7/8 of it or half"); // 13.1, 12.25
        f.round(0, NEVER);
        assert_eq!(f.w(), grown, "{w}");
    }
}

/// cwnd = (1 - beta) cwnd, rounded down. The other functions stay; undo gives the window back.
#[test]
fn loss() {
    for (da_us, after) in [(10_000, 87), (45_000, 68), (80_000, 50)] {
        let mut f = measured(&[], 100, DM_US, da_us); // 87.5, 68.75
        f.send(100);
        let before = functions(&f);
        assert_eq!(f.loss().0, after);
        assert_eq!(f.cc.undo(&mut f.conn), 100);
        f.ack_ending_recovery(100, da_us, NEVER);
        assert_eq!((f.conn.ssthresh_pkts, functions(&f)), (after, before));
    }
}

/// Slow start is NewReno's, whatever the delay; the rest of an ACK goes to congestion avoidance.
#[test]
fn slow_start() {
    let mut f = Flow::new(params("illinois", &[]), 40, 50);
    f.round(0, NEVER);
    assert_eq!(f.w(), 56); // 10 to ssthresh; alpha = 10 for 30 packets at a window of 50
}

/// A timeout: NewReno's threshold, alpha = 1 and beta = 1/2 until the next round is measured.
#[test]
fn timeout() {
    let mut f = measured(&[], 100, DM_US, 10_000);
    f.send(100);
    assert_eq!(f.timeout(), 50);
    assert_eq!(functions(&f), (1_000, 500_000));
    f.ack(100, 10_000, NEVER); // ends a round
    assert_eq!(functions(&f), (2_538, 125_000));
    // The wait for low delay starts afresh as well.
    let mut f = measured(&[], 100, DM_US, 10_000);
    f.timeout();
    f.send(1);
    f.ack(1, NO_SAMPLE, NEVER);
    f.send(1);
    f.ack(1, 0, NEVER);
    assert_eq!(functions(&f).0, 1_000, "a lone packet's ACK after others is not trusted");
    f.send(2);
    f.ack(2, 0, NEVER);
    assert_eq!(functions(&f).0, 10_000);
}

#[test]
fn the_application_limits() {
    for ssthresh in [50, 1_000] {
        let mut f = Flow::new(params("illinois", &[]), 100, ssthresh);
        f.conn.cwnd_limited = 0;
        for _ in 0..3 {
            f.round(0, NEVER);
            assert_eq!(f.w(), 100);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// alpha and beta are those of the equations in floating point, for all delays and parameters.
    #[test]
    fn functions_over_their_range(
        (dm, shift) in (2_u32..10_000_000, 0_u32..22),
        part in 0.0_f64..=1.0,
        alphas in (10_000_u32..=100_000_000, 10_000_u32..=100_000_000),
        betas in (0_u32..=1_000_000, 0_u32..=1_000_000),
        etas in (0_u32..=990_000, 0_u32..=1_000_000, 0_u32..=1_000_000),
        defaults in any::<bool>(),
    ) {
        let dm = (dm >> shift).max(2);
        let da = (f64::from(dm) * part) as u32;
        let order = |(a, b): (u32, u32)| (a.min(b), a.max(b));
        let ((a0, a1), (b0, b1)) = (order(alphas), order(betas));
        let (eta1, (eta2, eta3)) = (etas.0, order((etas.1, etas.2)));
        let [a0, a1, b0, b1, eta1, eta2, eta3] = if defaults {
            [300_000, 10_000_000, 125_000, 500_000, 10_000, 100_000, 800_000]
        } else {
            prop_assume!(a0 < a1 && b0 < b1 && eta2 < eta3);
            [a0, a1, b0, b1, eta1, eta2, eta3]
        };
        let given = [
            ("alpha_min", a0), ("alpha_max", a1), ("beta_min", b0), ("beta_max", b1),
            ("eta1", eta1), ("eta2", eta2), ("eta3", eta3), ("low_rounds", 0),
        ].map(|(name, value)| (name, u64::from(value)));
        let f = measured(&given, 100, dm, da);

        // The bounds of the ranges in 1/16 us.
        let [d1, d2, d3] = [eta1, eta2, eta3]
            .map(|eta| (u64::from(dm) * 16 * u64::from(eta) / 1_000_000) as f64 / 16.0);
        let [a0, a1, b0, b1] = [a0, a1, b0, b1].map(|v| f64::from(v) / 1e6);
        let [dm, da] = [dm, da].map(f64::from);
        let alpha = if da <= d1 {
            a1
        } else {
            let kappa1 = (dm - d1) * a0 * a1 / (a1 - a0);
            let kappa2 = (dm - d1) * a0 / (a1 - a0) - d1;
            kappa1 / (kappa2 + da)
        };
        let beta = if da <= d2 {
            b0
        } else if da >= d3 {
            b1
        } else {
            let kappa4 = (b1 - b0) / (d3 - d2);
            b0 - kappa4 * d2 + kappa4 * da
        };
        let (got_alpha, got_beta) = functions(&f);
        // rho has 24 bits, the quotient 22, alpha_max and alpha 16; observed values are in thousandths.
        let far = alpha * a1 / a0 / f64::from(1 << 24)
            + a1 / f64::from(1 << 21)
            + (1.0 + alpha / a1) / 65_536.0;
        let short = alpha - f64::from(got_alpha) / 1e3;
        prop_assert!((-1e-6..=far + 1e-3 + 1e-6).contains(&short), "alpha {alpha}, {got_alpha}");
        let short = beta * 1e6 - f64::from(got_beta);
        prop_assert!((-1e-3..=1.001).contains(&short), "beta {beta}, {got_beta}");
    }
}

// ---------------------------------------------------------------------------------------------
// Behaviour
// ---------------------------------------------------------------------------------------------

/// "Concave window curve": between two losses on a droptail queue the window grows fast first and
/// slowly near the loss; NewReno's grows evenly.
#[test]
fn the_window_is_concave_between_losses() {
    let (bdp, buffer) = (200_u32, 200_u32);
    let mut f = Flow::avoiding(params("illinois", &[("delack_filter", 0)]), 20);
    let (mut epoch, mut windows) = (0, Vec::new());
    for _ in 0..3_000 {
        f.send(f.w());
        if f.w() > bdp + buffer {
            epoch += 1;
            if epoch == 4 {
                break;
            }
            windows.clear();
            f.loss();
            f.ack_ending_recovery(f.conn.outstanding_pkts, buffer * 200, NEVER);
            continue;
        }
        windows.push(f.w());
        let queue = f.w().saturating_sub(bdp);
        for _ in 0..f.conn.outstanding_pkts {
            f.ack(1, queue * 200, NEVER);
        }
    }
    assert_eq!(epoch, 4, "losses");
    let (first, last) = (windows[0], windows[windows.len() - 1]);
    let middle = windows[windows.len() / 2];
    assert!(first <= 205 && last >= 390, "{first} ... {last}: by half, at a full queue");
    assert!(middle - first > 2 * (last - middle), "{first}, {middle}, {last}");
}
