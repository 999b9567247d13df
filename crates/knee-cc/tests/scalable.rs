//! Scalable TCP: every rule against values worked out by hand. Kelly, ACM CCR 33(2), 2003.

#[allow(dead_code)] // each file of tests uses its part
mod common;

use common::{Flow, NEVER, NO_SAMPLE, params};

fn scalable(given: &[(&str, u64)], cwnd_pkts: u32) -> Flow {
    Flow::avoiding(params("scalable", given), cwnd_pkts)
}

/// One ACK of `n` packets in congestion avoidance.
fn ack(f: &mut Flow, n: u32) {
    f.send(n.saturating_sub(f.conn.outstanding_pkts));
    f.ack(n, NO_SAMPLE, NEVER);
}

/// Above lwnd each packet adds 0.01, at any window: 100 packets one.
#[test]
fn a_hundred_packets_add_one() {
    for cwnd in [17, 50, 1000, 1 << 29] {
        for per_ack in [1, 2, 50] {
            let mut f = scalable(&[], cwnd);
            (0..100 / per_ack - 1).for_each(|_| ack(&mut f, per_ack));
            assert_eq!(f.w(), cwnd);
            ack(&mut f, per_ack);
            assert_eq!(f.w(), cwnd + 1, "{cwnd} {per_ack}");
        }
    }
    // a = 0.02, Linux's: 50. 12345 * 0.02 = 246.9 in one ACK.
    let mut f = scalable(&[("a", 20_000)], 1000);
    ack(&mut f, 12_345);
    assert_eq!(f.w(), 1246);
    ack(&mut f, 5);
    assert_eq!(f.w(), 1247);
}

/// Counted by ACKs, those of two packets add half.
#[test]
fn acks_or_packets() {
    for (count, expected) in [(0, 101), (1, 102)] {
        let mut f = scalable(&[("count", count)], 100);
        (0..100).for_each(|_| ack(&mut f, 2));
        assert_eq!(f.w(), expected);
    }
}

/// Up to lwnd, NewReno: +1 per window, half at a loss; from one packet more on 7/8, rounded down.
#[test]
fn newreno_up_to_lwnd() {
    for cwnd in 2..=16 {
        let mut f = scalable(&[], cwnd);
        ack(&mut f, cwnd - 1);
        assert_eq!(f.w(), cwnd);
        ack(&mut f, 1);
        assert_eq!(f.w(), cwnd + 1);
        let mut f = scalable(&[], cwnd);
        f.send(cwnd);
        assert_eq!(f.loss().0, (cwnd / 2).max(2));
    }
    // 17 * 7/8 = 14.875; lwnd = 0: always Scalable's.
    for (lwnd, cwnd, expected) in [(16, 17, 14), (17, 17, 8), (0, 8, 7), (0, 2, 2)] {
        let mut f = scalable(&[("lwnd", lwnd)], cwnd);
        f.send(cwnd);
        assert_eq!(f.loss().0, expected, "{lwnd} {cwnd}");
    }
}

/// cwnd - b cwnd, rounded down, exactly.
#[test]
fn a_loss_takes_an_eighth() {
    for cwnd in (17..3000).chain([1_000_000, 1 << 30]) {
        // In flight or not: b takes part of cwnd.
        let mut f = scalable(&[], cwnd);
        assert_eq!(f.loss(), ((u64::from(cwnd) * 7 / 8) as u32, 0), "{cwnd}");
        assert_eq!(f.cc.undo(&mut f.conn), cwnd);
        let mut f = scalable(&[("b", 500_000)], cwnd);
        assert_eq!(f.loss().0, cwnd / 2, "{cwnd}");
    }
}

/// A timeout is NewReno's: half of the flight.
#[test]
fn timeout() {
    let mut f = scalable(&[], 1000);
    f.send(600);
    assert_eq!(f.timeout(), 300);
    assert_eq!(f.cc.undo(&mut f.conn), 1000);
}

#[test]
fn no_growth_while_the_application_limits() {
    let mut f = scalable(&[], 1000);
    f.conn.cwnd_limited = 0;
    ack(&mut f, 1000);
    assert_eq!((f.w(), f.cc.observe()[1]), (1000, 0));
}

/// Slow start, and the rest of an ACK for congestion avoidance: 5 of 155 to the threshold, 1.5 for the
/// rest.
#[test]
fn slow_start_ends_at_ssthresh() {
    let mut f = Flow::new(params("scalable", &[]), 95, 100);
    ack(&mut f, 155);
    assert_eq!((f.w(), f.cc.observe()[1]), (101, 500_000));
    let mut f = Flow::new(params("scalable", &[("ss_limit", 2)]), 20, 100);
    ack(&mut f, 20);
    assert_eq!(f.w(), 22);
}

/// The claim that gives it its name: the time to make up for a loss is log(1 - b)/log(1 + a) = 13.4
/// round trips at any window, small steps aside.
#[test]
fn recovery_time_does_not_depend_on_the_window() {
    for cwnd in [1_000, 10_000, 100_000] {
        let mut f = scalable(&[], cwnd);
        f.loss();
        f.recovered();
        let mut rounds = 0;
        while f.w() < cwnd {
            let window = f.w();
            ack(&mut f, window);
            rounds += 1;
        }
        assert_eq!(rounds, 14, "{cwnd}");
    }
}

/// A loss in every 1/p packets: from 7/8 W to W is b W / a = 12.5 W packets, so W = 0.08 / p.
#[test]
fn window_is_inversely_proportional_to_the_loss_rate() {
    for packets in [1_000_u32, 10_000, 100_000] {
        let mut f = scalable(&[], 100);
        for _ in 0..60 {
            (0..packets).for_each(|_| ack(&mut f, 1));
            f.loss();
            f.recovered();
        }
        (0..packets).for_each(|_| ack(&mut f, 1));
        let expected = 0.08 * f64::from(packets);
        assert!(
            (f64::from(f.w()) - expected).abs() <= 0.01 * expected + 1.0,
            "{packets}: {}",
            f.w()
        );
    }
}
