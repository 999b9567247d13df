//! HighSpeed TCP against RFC 3649: a(w) and b(w) against the formulas over all windows, and the RFC's
//! own numbers.

#[allow(dead_code)] // each file of tests uses its part
mod common;

use common::{Flow, NEVER, NO_SAMPLE, params};

const LARGEST_PKTS: u32 = 1 << 30;

fn hstcp(cwnd_pkts: u32) -> Flow {
    Flow::avoiding(params("hstcp", &[]), cwnd_pkts)
}

/// One ACK of `n` packets in congestion avoidance.
fn ack(f: &mut Flow, n: u32) {
    f.send(n.saturating_sub(f.conn.outstanding_pkts));
    f.ack(n, NO_SAMPLE, NEVER);
}

/// a(w) * 2^16: the credit towards the window's growth that 2^16 packets add.
fn a_q16(w: u32) -> u64 {
    let mut f = hstcp(w);
    f.conn.cwnd_max_pkts = i32::MAX as u32;
    ack(&mut f, 1 << 16);
    u64::from(f.w() - w) * u64::from(w) + u64::from(f.conn.cwnd_cnt)
}

/// b(w) as it is observed, ppm, and ssthresh.
fn b_ppm(w: u32) -> (u32, u32) {
    let mut f = hstcp(w);
    let (ssthresh, notes) = f.loss();
    assert_eq!(notes, 0);
    (f.cc.observe()[1], ssthresh)
}

/// Section 5, Low_Window 38, High_Window 83000, High_Decrease 0.1.
fn b(w: f64) -> f64 {
    (0.5 - 0.4 * (w / 38.0).ln() / (83_000.0_f64 / 38.0).ln()).clamp(0.1, 0.5)
}

/// Section 5: w^2 p(w) 2 b(w) / (2 - b(w)), p(w) = 0.078 / w^1.2; 1 up to 38, and at least.
fn a(w: f64) -> f64 {
    if w <= 38.0 {
        return 1.0;
    }
    (w * w * (0.078 / w.powf(1.2)) * 2.0 * b(w) / (2.0 - b(w))).max(1.0)
}

/// All small windows, then steps of a thousandth.
fn windows() -> impl Iterator<Item = u32> {
    let large = (0..).map(|i| (5000.0 * 1.001_f64.powi(i)) as u32);
    (1..5000).chain(large.take_while(|w| *w <= LARGEST_PKTS)).chain([LARGEST_PKTS])
}

/// a within 3 parts in 10^6 and 2^-16 of the formula; it ends at 2^16.
#[test]
fn a_is_the_formula() {
    for w in windows() {
        let (got, exact) = (a_q16(w) as f64 / 65536.0, a(w.into()).min(65536.0));
        let most = 3e-6 * exact + 1.0 / 65536.0;
        assert!((got - exact).abs() <= most, "a({w}) = {got}, not {exact}");
    }
}

/// b within 2^-16, of which what is observed cuts off a millionth; ssthresh = (1 - b) w.
#[test]
fn b_is_the_formula() {
    for w in windows() {
        let (got_ppm, ssthresh) = b_ppm(w);
        let exact = b(w.into());
        let error = f64::from(got_ppm) / 1e6 - exact;
        assert!(error.abs() <= 1.0 / 65536.0 + 1e-6, "b({w}): {error}");
        let left = (f64::from(w) * (1.0 - exact)).max(2.0);
        let most = 1.0 + f64::from(w) / 65536.0;
        assert!((left - f64::from(ssthresh)).abs() <= most, "{w}: {ssthresh}, not {left}");
    }
}

/// a(w) and b(w) of the RFC's table (appendix B) where it changes, and at round windows. (w, a, b)
#[test]
fn values_of_the_rfc() {
    for (w, a, b) in [
        (38, "1.0", "0.50"),
        (118, "2.0", "0.44"),
        (221, "3.0", "0.41"),
        (1_000, "7.7", "0.33"),
        (10_000, "29.0", "0.21"),
        (83_000, "70.7", "0.10"),
    ] {
        let got = (format!("{:.1}", a_q16(w) as f64 / 65536.0), b_ppm(w).0);
        assert_eq!(
            (got.0.as_str(), format!("{:.2}", f64::from(got.1) / 1e6).as_str()),
            (a, b),
            "{w}"
        );
    }
}

/// Up to Low_Window, NewReno: +1 per window, half of it at a loss; a is 1 up to 40.
#[test]
fn newreno_up_to_38() {
    for w in 2..=38 {
        assert_eq!(a_q16(w), 1 << 16, "{w}");
        assert_eq!(b_ppm(w), (500_000, (w / 2).max(2)), "{w}");
        let mut f = hstcp(w);
        ack(&mut f, w - 1);
        assert_eq!(f.w(), w);
        ack(&mut f, 1);
        assert_eq!(f.w(), w + 1);
    }
    // 0.156 * 40^0.8 * 0.4973 / 1.5027 = 0.987; at 41: 1.0038.
    assert_eq!((a_q16(40), a_q16(41) > 1 << 16), (1 << 16, true));
}

/// Neither function goes the wrong way.
#[test]
fn a_rises_and_b_falls() {
    let (mut a, mut b) = (0, u32::MAX);
    for w in windows() {
        let (now_a, now_b) = (a_q16(w), b_ppm(w).0);
        assert!(now_a >= a && now_b <= b, "{w}");
        (a, b) = (now_a, now_b);
    }
}

/// a(1000) = 7.74 packets for a window of ACKs, whatever each acknowledges; the fraction is kept.
#[test]
fn growth_is_a_per_window() {
    for per_ack in [1, 2, 8, 1000] {
        let mut f = hstcp(1000);
        (0..1000 / per_ack).for_each(|_| ack(&mut f, per_ack));
        assert_eq!(f.w(), 1007, "{per_ack}");
    }
    let mut f = hstcp(1000);
    f.conn.cwnd_limited = 0;
    ack(&mut f, 1000);
    assert_eq!(f.w(), 1000);
}

/// Loss, timeout and undo: (1 - b) cwnd, half of the flight, the window from before.
#[test]
fn loss_timeout_undo() {
    // b(1000) = 0.32989.
    let mut f = hstcp(1000);
    f.send(600);
    assert_eq!(f.loss().0, 670);
    assert_eq!(f.cc.undo(&mut f.conn), 1000);
    let mut f = hstcp(1000);
    f.send(600);
    assert_eq!(f.timeout(), 300);
    assert_eq!(f.cc.undo(&mut f.conn), 1000);
}

/// The response function, table 2 of the RFC: 263 packets at a loss in 10^4, 1795 in 10^5; the mean
/// over the later half of the epochs.
#[test]
fn response_function() {
    for (packets, expected) in [(10_000_u32, 263.0), (100_000, 1795.0)] {
        let mut f = hstcp(100);
        let (mut sum, mut rounds) = (0.0, 0.0);
        for loss in 0..40 {
            for _ in 0..packets {
                if loss >= 20 {
                    sum += 1.0;
                    rounds += 1.0 / f64::from(f.w());
                }
                ack(&mut f, 1);
            }
            f.loss();
            f.recovered();
        }
        let got: f64 = sum / rounds;
        assert!((got / expected - 1.0).abs() < 0.05, "1/{packets}: {got}, not {expected}");
    }
}
