//! Every rule of DUAL against values worked out by hand. Queueing delays are microseconds; RTTmin
//! is 40 ms unless said otherwise.

#[allow(dead_code)] // each test file uses a part of it
mod common;

use common::{BASE_US, Flow, NEVER, NO_SAMPLE, params};
use knee_cc::{Ack, NOTE_DELAY_BACKOFF, NOTE_ROUND, Phase};
use proptest::prelude::*;

const REDUCED: u32 = NOTE_ROUND | NOTE_DELAY_BACKOFF;

/// RTT 40 ms to 40 ms + `qmax_us` have been seen, and the next round is tested.
fn settled(given: &[(&str, u64)], cwnd_pkts: u32, ssthresh_pkts: u32, qmax_us: u32) -> Flow {
    let mut f = Flow::new(params("dual", given), cwnd_pkts, ssthresh_pkts);
    f.conn.cwnd_limited = 0;
    for q_us in [qmax_us, 0, 0] {
        f.round(q_us, NEVER);
    }
    f.conn.cwnd_limited = 1;
    assert_eq!((f.w(), f.cc.observe()[1]), (cwnd_pkts, qmax_us), "nothing yet");
    f
}

fn avoiding(given: &[(&str, u64)], cwnd_pkts: u32) -> Flow {
    settled(given, cwnd_pkts, cwnd_pkts, 100_000)
}

/// CHD paper Table I: RTT > (RTTmin + RTTmax) / 2. RTT 40 ... 140 ms: 90 ms is not above 90.
#[test]
fn above_the_middle_of_the_extremes() {
    for (q_us, after) in [(0, 65), (49_999, 65), (50_000, 65), (50_001, 56), (100_000, 56)] {
        let mut f = avoiding(&[], 64);
        let notes = f.round(q_us, NEVER);
        assert_eq!(f.w(), after, "q {q_us}"); // 64 * 7/8 = 56
        assert_eq!(notes, if after == 56 { REDUCED } else { NOTE_ROUND });
        assert_eq!(f.cc.observe(), [q_us, 100_000, BASE_US as u32, u32::from(after == 56)]);
    }
}

/// A sample that is itself the new maximum counts in the middle.
#[test]
fn a_new_maximum_is_above_the_middle() {
    let mut f = settled(&[], 64, 64, 0);
    f.round(1, NEVER); // 1 > 1/2
    assert_eq!(f.w(), 56);
}

/// beta = 7/8, rounded down, at least 2 packets.
#[test]
fn the_reduction() {
    for (cwnd, after) in [(2, 2), (3, 2), (4, 3), (8, 7), (9, 7), (10, 8), (1 << 30, 939_524_096)] {
        let mut f = avoiding(&[], cwnd);
        f.conn.cwnd_cnt = 1;
        let notes = f.round(100_000, NEVER);
        assert_eq!((f.w(), f.conn.ssthresh_pkts, f.conn.cwnd_cnt), (after, after, 0));
        assert_eq!(notes & NOTE_DELAY_BACKOFF != 0, after < cwnd, "{cwnd}");
    }
    let mut f = avoiding(&[("decrease", 500_000)], 64);
    f.round(100_000, NEVER);
    assert_eq!(f.w(), 32);
}

/// Every second round trip; the one between grows whatever the delay.
#[test]
fn every_second_round() {
    let mut f = avoiding(&[], 64);
    let mut windows = Vec::new();
    for _ in 0..4 {
        f.round(100_000, NEVER);
        windows.push(f.w());
    }
    assert_eq!(windows, [56, 57, 49, 50]); // 57 * 7/8 = 49.9
    let mut f = avoiding(&[("period", 0)], 64);
    for after in [56, 49, 42] {
        f.round(100_000, NEVER); // 49 * 7/8 = 42.9
        assert_eq!(f.w(), after);
    }
}

/// Reading DU-a: the latest sample of the round decides, and an ACK without one leaves it.
#[test]
fn the_latest_sample_decides() {
    for (first, last, after) in [(100_000, 0, 64), (0, 100_000, 56)] {
        let mut f = avoiding(&[], 64);
        f.conn.cwnd_limited = 0;
        f.send(8);
        for q_us in [first, last] {
            let ack = Ack { rtt_us: BASE_US + q_us, acked_pkts: 2, ..Ack::default() };
            f.cc.on_rtt(&mut f.conn, &ack); // selectively acknowledged: no round ends
            assert_eq!(f.conn.notes, 0);
        }
        f.ack(8, NO_SAMPLE, NEVER);
        assert_eq!(f.w(), after, "{first}, {last}");
    }
}

/// Reading DU-c.
#[test]
fn margin() {
    for (margin, after) in [(0, 56), (9_999, 56), (10_000, 65)] {
        let mut f = avoiding(&[("margin", margin)], 64);
        f.round(60_000, NEVER);
        assert_eq!(f.w(), after, "margin {margin}");
    }
}

/// Reading DU-b.
#[test]
fn slow_start() {
    for (test, after) in [(1, (56, 56)), (0, (128, 1_000))] {
        let mut f = settled(&[("ss_test", test)], 64, 1_000, 100_000);
        f.round(100_000, NEVER);
        assert_eq!((f.w(), f.conn.ssthresh_pkts), after);
    }
    let mut f = settled(&[("ss_test", 1)], 64, 1_000, 100_000);
    f.round(50_000, NEVER);
    assert_eq!(f.w(), 128);
}

#[test]
fn delayed_acks_are_left_out() {
    for (filter, qmax) in [(1, 100_000), (0, 200_000)] {
        let mut f = avoiding(&[("delack_filter", filter)], 10);
        f.send(10);
        f.ack(2, 0, NEVER);
        f.ack(1, 200_000, NEVER);
        assert_eq!(f.cc.observe()[1], qmax, "filter {filter}");
    }
}

/// RFC 5681 eq. 4. Reading DU-d: the round that a recovery overlapped is not tested, even if it ends
/// with the ACK that ends the recovery; of those after it, the second is.
#[test]
fn loss_recovery_and_undo() {
    let mut f = avoiding(&[], 20);
    f.send(20);
    assert_eq!(f.loss().0, 10);
    assert_eq!(f.cc.undo(&mut f.conn), 20);
    f.ack_ending_recovery(20, 100_000, NEVER);
    assert_eq!(f.w(), 12, "20 packets of the 10 that make +1");
    assert_eq!(f.round(100_000, NEVER), NOTE_ROUND);
    assert_eq!(f.round(100_000, NEVER), REDUCED);
}

/// No test in recovery, however many rounds it takes.
#[test]
fn no_test_in_recovery() {
    let mut f = avoiding(&[], 20);
    f.send(20);
    f.loss();
    for _ in 0..3 {
        f.send(1);
        assert_eq!(f.ack(f.conn.outstanding_pkts, 100_000, NEVER), NOTE_ROUND);
    }
    assert_eq!(f.w(), 10);
}

/// Reading DU-e: a timeout forgets the extremes; no test while its losses are repaired.
#[test]
fn timeout() {
    let mut f = avoiding(&[("period", 0), ("ss_test", 1)], 20);
    f.send(20);
    assert_eq!(f.timeout(), 10);
    assert_eq!(f.cc.observe()[..3], [0, 0, 0]);
    for after in [2, 3, 4] {
        f.send(1);
        f.ack(1, 50_000 + 1_000 * after, NEVER);
        assert_eq!(f.w(), after);
    }
    assert_eq!(f.cc.observe()[..3], [2_000, 2_000, BASE_US as u32 + 52_000]);
    f.conn.phase = Phase::Open as u8;
    assert_eq!(f.round(53_000, NEVER), NOTE_ROUND, "1 ms is not above half of 2");
    assert_eq!(f.round(53_001, NEVER), REDUCED);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The test and the reduction are those of exact arithmetic.
    #[test]
    fn decisions_are_exact(
        qmax in 0_u32..10_000_000,
        part in 0_u32..=1_000_000,
        (window, shift) in (2_u32..=1 << 30, 0_u32..30),
        margin in prop_oneof![Just(0), 0_u32..10_000_000],
        decrease in 0_u32..=1_000_000,
    ) {
        let q = (u64::from(qmax) * u64::from(part) / 1_000_000) as u32;
        let window = (window >> shift).max(2);
        let given = [("margin", margin.into()), ("decrease", decrease.into())];
        let mut f = settled(&given, window, 2, qmax);
        f.conn.cwnd_limited = 0;
        let notes = f.round(q, NEVER);
        let high = 2 * u64::from(q) > u64::from(qmax) + 2 * u64::from(margin);
        let kept = u64::from(window) * u64::from(1_000_000 - decrease) / 1_000_000;
        let after = if high { kept.max(2) as u32 } else { window };
        prop_assert_eq!(f.w(), after);
        prop_assert_eq!(notes & NOTE_DELAY_BACKOFF != 0, after < window);
    }
}

// ---------------------------------------------------------------------------------------------
// Behaviour
// ---------------------------------------------------------------------------------------------

/// Alone on an ideal queue of 100 packets of 1 ms each, with a BDP of 40: slow start learns by its
/// overflow how long the queue is; after that DUAL keeps between 7/8 of the window that queues 50
/// (79: 39 queued) and a round or two beyond it, without further loss.
#[test]
fn keeps_the_queue_around_its_middle() {
    let (bdp, buffer) = (40, 100);
    let mut f = Flow::slow_start(params("dual", &[("delack_filter", 0)]), 2);
    let (mut losses, mut queues) = (0, Vec::new());
    for round in 0..600 {
        f.send(f.w());
        if f.w() > bdp + buffer {
            losses += 1;
            f.loss();
            f.ack_ending_recovery(f.conn.outstanding_pkts, buffer * 1_000, NEVER);
            continue;
        }
        let queue = f.w().saturating_sub(bdp);
        for _ in 0..f.conn.outstanding_pkts {
            f.ack(1, queue * 1_000, NEVER);
        }
        if round >= 300 {
            queues.push(queue);
        }
    }
    assert_eq!(losses, 1);
    let (least, most) = (*queues.iter().min().expect("some"), *queues.iter().max().expect("some"));
    assert!((38..=41).contains(&least) && (51..=53).contains(&most), "{least} ... {most}");
}
