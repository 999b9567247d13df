//! BIC: every rule against values worked out by hand, and the increase over the whole range of the
//! parameters. Xu, Harfoush, Rhee, INFOCOM 2004, in the form named in cc/algorithms/bic.c.

#[allow(dead_code)] // each file of tests uses its part
mod common;

use common::{Flow, NEVER, NO_SAMPLE, params};
use proptest::{prelude::*, test_runner::FileFailurePersistence};

const DEFAULTS: &[(&str, u64)] = &[];
const LARGEST_PKTS: u32 = 1 << 30;

fn config() -> ProptestConfig {
    let failures = FileFailurePersistence::WithSource("regressions");
    ProptestConfig { failure_persistence: Some(Box::new(failures)), ..ProptestConfig::default() }
}

/// In congestion avoidance after a loss at `wmax` (0: none), with this window.
fn bic(given: &[(&str, u64)], wmax: u32, cwnd: u32) -> Flow {
    let mut f = Flow::avoiding(params("bic", given), wmax.max(2));
    if wmax != 0 {
        f.loss();
        f.recovered();
    }
    f.conn.cwnd_pkts = cwnd;
    f.conn.ssthresh_pkts = 2;
    f.conn.cwnd_max_pkts = i32::MAX as u32;
    f
}

fn ack(f: &mut Flow, n: u32) {
    f.send(n.saturating_sub(f.conn.outstanding_pkts));
    f.ack(n, NO_SAMPLE, NEVER);
}

fn wmax(f: &Flow) -> u32 {
    f.cc.observe()[0]
}

/// Growth per window, packets: the credit towards it that 2^16 packets add.
fn increase(f: &Flow) -> f64 {
    let mut f = f.clone();
    let w = f.w();
    f.conn.cwnd_cnt = 0;
    ack(&mut f, 1 << 16);
    let q16 = u64::from(f.w() - w) * u64::from(w) + u64::from(f.conn.cwnd_cnt);
    q16 as f64 / 65536.0
}

/// BI-e: times 31/16 packets per ACK, which ACKs of one packet keep.
#[test]
fn linux_compat() {
    let given = &[("linux_compat", 1)];
    for (wmax, cwnd, milli, each) in [
        (1000, 800, 16_000, 26),  // 800/16 16/31 = 25.8
        (1000, 990, 2_000, 256),  // 10/4, whole packets; 495 16/31 = 255.5
        (1000, 995, 199, 2_569),  // 5/4 is 1; 4975.1 16/31 = 2567.8, rounding apart
        (1000, 1006, 2_000, 260), // 6/3; 503 16/31 = 259.6
        (0, 1000, 16_000, 11),    // 5 % are 50; 20 16/31 = 10.3
    ] {
        let mut f = bic(given, wmax, cwnd);
        let first = (1..10_000).find(|_| {
            ack(&mut f, 1);
            assert_eq!(f.cc.observe()[1], milli);
            f.w() > cwnd
        });
        assert!(first.is_some_and(|n: u32| n.abs_diff(each) <= 1), "{cwnd}: {first:?}");
    }
    // 15 ACKs of nothing: the ratio falls from 2 by 2/16, then by 1/16 each, to 1.
    let mut f = bic(given, 1000, 800);
    (0..15).for_each(|_| ack(&mut f, 0));
    for _ in 1..50 {
        ack(&mut f, 1);
        assert_eq!(f.w(), 800);
    }
    ack(&mut f, 1);
    assert_eq!(f.w(), 801);
    f.timeout();
    assert_eq!(wmax(&f), 0);
}

/// B = 4, Smax = 16, Smin = 0.2, Wmax = 1000.
#[test]
fn increase_around_wmax() {
    for (cwnd, expected) in [
        (15, 16.0),
        (800, 16.0), // 200 / 4 = 50
        (936, 16.0), // 64 / 4
        (940, 15.0),
        (990, 2.5),
        (995, 1.25),
        (996, 0.2), // 1
        (999, 0.2),
        (1000, 0.2),
        (1003, 0.2),
        (1004, 4.0 / 3.0),
        (1030, 10.0),
        (1047, 47.0 / 3.0),
        (1048, 16.0),
        (100_000, 16.0),
    ] {
        let got = increase(&bic(DEFAULTS, 1000, cwnd));
        assert!((got - expected).abs() < 1e-4, "{cwnd}: {got}, not {expected}");
    }
}

/// The paper's constants: binary search, Smax 32, Smin 0.01.
#[test]
fn increase_of_the_paper() {
    let given = [("b", 2_000_000), ("smax", 32), ("smin", 10_000)];
    for (cwnd, expected) in
        [(900, 32.0), (940, 30.0), (996, 2.0), (998, 0.01), (1000, 0.01), (1005, 5.0)]
    {
        let got = increase(&bic(&given, 1000, cwnd));
        assert!((got - expected).abs() < 1e-4, "{cwnd}: {got}, not {expected}");
    }
}

/// Before any loss Wmax is 0: from B packets on the window grows faster, up to Smax (BI-c).
#[test]
fn increase_before_a_loss() {
    let given = [("low_window", 0)];
    for (cwnd, expected) in [(3, 0.2), (6, 2.0), (48, 16.0), (500, 16.0)] {
        let got = increase(&bic(&given, 0, cwnd));
        assert!((got - expected).abs() < 1e-4, "{cwnd}: {got}, not {expected}");
    }
}

/// The rule in floating point.
fn rule(cwnd: f64, wmax: f64, b: f64, smax: f64, smin: f64) -> f64 {
    if cwnd < wmax {
        let step = (wmax - cwnd) / b;
        return if step <= 1.0 { smin } else { step.min(smax) };
    }
    if cwnd - wmax < b { smin } else { ((cwnd - wmax) / (b - 1.0)).min(smax) }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn increase_is_the_rule(
        wmax in 2..=LARGEST_PKTS, shift in 0_u32..29, away in -(1_i64 << 30)..1 << 30, near in 0_u32..30,
        b_ppm in 1_500_000_u64..=64_000_000, smax in 1_u64..=65_535, smin_ppm in 1000_u64..=1_000_000,
    ) {
        let wmax = (wmax >> shift).max(2);
        let cwnd = (i64::from(wmax) + (away >> near)).clamp(2, i64::from(LARGEST_PKTS)) as u32;
        let given = [("b", b_ppm), ("smax", smax), ("smin", smin_ppm), ("low_window", 0)];
        let f = bic(&given, wmax, cwnd);
        let got = increase(&f);
        let smin = smin_ppm as f64 / 1e6;
        let exact = rule(cwnd.into(), wmax.into(), b_ppm as f64 / 1e6, smax as f64, smin);
        prop_assert!((got - exact).abs() <= 1.0 / 65536.0 + 1e-9, "{got}, not {exact}");
    }
}

/// A loss: 0.799805 cwnd, rounded down; Wmax = cwnd, or 0.8999 cwnd where the window stayed below it.
#[test]
fn loss() {
    let mut f = bic(DEFAULTS, 1000, 1000);
    assert_eq!(wmax(&f), 1000);
    assert_eq!((f.loss().0, wmax(&f)), (799, 1000));
    for (on, cwnd, expected) in [(1, 800, 719), (1, 999, 899), (1, 1200, 1200), (0, 800, 800)] {
        let mut f = bic(&[("fast_convergence", on)], 1000, cwnd);
        f.loss();
        assert_eq!(wmax(&f), expected, "{on} {cwnd}");
        assert_eq!((f.cc.undo(&mut f.conn), wmax(&f)), (cwnd, 1000));
    }
    let mut f = bic(&[("beta", 875_000)], 1000, 1000);
    assert_eq!(f.loss().0, 875);
}

/// Up to low_window, NewReno: +1 per window, half of the flight.
#[test]
fn newreno_up_to_low_window() {
    for cwnd in 2..=14 {
        let f = bic(DEFAULTS, 1000, cwnd);
        assert_eq!(increase(&f), 1.0);
        let mut f = f;
        f.send(cwnd);
        assert_eq!(
            (f.loss().0, wmax(&f)),
            ((cwnd / 2).max(2), (f64::from(cwnd) * 0.8999025) as u32)
        );
    }
    let mut f = bic(DEFAULTS, 0, 15);
    f.send(15);
    assert_eq!(f.loss().0, 11); // 11.997
}

/// A timeout is NewReno's, but Wmax follows.
#[test]
fn timeout() {
    let mut f = bic(DEFAULTS, 1000, 1200);
    f.send(600);
    assert_eq!((f.timeout(), wmax(&f)), (300, 1200));
    assert_eq!((f.cc.undo(&mut f.conn), wmax(&f)), (1200, 1000));
}

/// Growth continues window by window and keeps its fractions: from 940 on 15 packets, then 60 - 15 over
/// 4, ...; and none while the application limits.
#[test]
fn growth_over_windows() {
    let mut f = bic(DEFAULTS, 1000, 940);
    let windows: Vec<_> = (0..5)
        .map(|_| {
            let cwnd = f.w();
            ack(&mut f, cwnd);
            f.w()
        })
        .collect();
    // 15, 45/4 = 11.25, (34 to go) 8.5, 6.4 and the carried fraction.
    assert_eq!(windows, [955, 966, 974, 981, 985]);
    f.conn.cwnd_limited = 0;
    ack(&mut f, 1000);
    assert_eq!(f.w(), 985);
}

/// Slow start, and the rest of its last ACK for congestion avoidance.
#[test]
fn slow_start_ends_at_ssthresh() {
    let mut f = Flow::new(params("bic", &[]), 95, 100);
    // 5 to the threshold; then 16 per 100 for 100 packets (Wmax = 0).
    ack(&mut f, 105);
    assert_eq!(f.w(), 116);
}
