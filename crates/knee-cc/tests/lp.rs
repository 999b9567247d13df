//! Every rule of TCP-LP against values worked out by hand. Queueing delays are microseconds; the
//! minimum RTT is 40 ms. The smoothed delay is the latest sample (`srtt_weight` = 0) unless said
//! otherwise.

#[allow(dead_code)] // each test file uses a part of it
mod common;

use common::{BASE_US, Flow, NEVER, NO_SAMPLE, params};
use knee_cc::{Ack, NOTE_DELAY_BACKOFF, NOTE_ROUND, Phase};
use proptest::prelude::*;

const REDUCED: u32 = NOTE_ROUND | NOTE_DELAY_BACKOFF;

/// RTTs 40 ms to 140 ms have been seen, 140 ms twice: the threshold is 15 ms.
fn settled(given: &[(&str, u64)], cwnd_pkts: u32, ssthresh_pkts: u32) -> Flow {
    let weight = [("srtt_weight", 0)];
    let given: Vec<_> = weight.iter().chain(given).copied().collect();
    let mut f = Flow::new(params("lp", &given), cwnd_pkts, ssthresh_pkts);
    f.conn.phase = Phase::Recovery as u8; // nothing is tested
    for q_us in [0, 100_000, 100_000, 0] {
        f.round(q_us, NEVER);
    }
    f.conn.phase = Phase::Open as u8;
    assert_eq!(f.cc.observe(), [0, 100_000, 0, 0]);
    f
}

fn avoiding(given: &[(&str, u64)], cwnd_pkts: u32) -> Flow {
    settled(given, cwnd_pkts, cwnd_pkts)
}

/// Rounds that are left of the inference phase.
fn rounds_left(f: &Flow) -> u32 {
    f.cc.observe()[2]
}

/// Smoothed delay > dmin + 0.15 (dmax - dmin), strictly: the window is halved.
#[test]
fn the_threshold() {
    for (q_us, after) in [(0, 65), (15_000, 65), (15_001, 32), (100_000, 32)] {
        let mut f = avoiding(&[], 64);
        let notes = f.round(q_us, NEVER);
        assert_eq!(f.w(), after, "q {q_us}");
        assert_eq!(notes, if after == 32 { REDUCED } else { NOTE_ROUND });
        assert_eq!(f.cc.observe()[3], u32::from(after == 32));
    }
    for (delta, q_us, after) in [(0, 1, 32), (500_000, 50_000, 65), (500_000, 50_001, 32)] {
        let mut f = avoiding(&[("delta", delta)], 64);
        f.round(q_us, NEVER);
        assert_eq!(f.w(), after, "delta {delta}");
    }
}

/// Half, rounded down, at least 2 packets; slow start does not resume.
#[test]
fn the_reduction() {
    for (w, after) in [(2, 2), (3, 2), (5, 2), (9, 4), (1 << 30, 1 << 29)] {
        let mut f = avoiding(&[], w);
        f.conn.cwnd_cnt = 1;
        let notes = f.round(50_000, NEVER);
        assert_eq!((f.w(), f.conn.ssthresh_pkts, f.conn.cwnd_cnt), (after, after, 0));
        assert_eq!(notes & NOTE_DELAY_BACKOFF != 0, after < w);
    }
}

/// Three round trips without growth, then NewReno's again, from the ACK on that ends the last.
#[test]
fn the_inference_phase() {
    for (inference, rounds) in [(3, 3), (1, 1), (0, 0)] {
        let mut f = avoiding(&[("inference", inference)], 64);
        f.round(50_000, NEVER);
        assert_eq!((f.w(), rounds_left(&f)), (32, rounds));
        for left in (0..rounds).rev() {
            assert_eq!(f.w(), 32);
            f.round(0, NEVER);
            assert_eq!(rounds_left(&f), left);
        }
        if rounds == 0 {
            f.round(0, NEVER);
        }
        assert_eq!(f.w(), 33);
    }
}

/// Another indication within the phase: the least window, and the phase begins again.
#[test]
fn an_indication_within_the_phase() {
    for quiet in 0..3 {
        let mut f = avoiding(&[], 64);
        f.round(50_000, NEVER);
        for _ in 0..quiet {
            f.round(0, NEVER);
        }
        let notes = f.round(50_000, NEVER);
        if quiet < 2 {
            assert_eq!((f.w(), rounds_left(&f), notes), (2, 3, REDUCED), "{quiet} rounds between");
        } else {
            // The third round trip is over with this ACK: a first indication.
            assert_eq!((f.w(), rounds_left(&f), notes), (16, 3, REDUCED));
        }
    }
    // As long as there is congestion, there is no growth.
    let mut f = avoiding(&[], 64);
    for _ in 0..10 {
        f.round(50_000, NEVER);
    }
    assert_eq!((f.w(), rounds_left(&f)), (2, 3));
    for _ in 0..3 {
        assert_eq!(f.w(), 2);
        f.round(0, NEVER);
    }
    assert_eq!(f.w(), 3);
}

/// Reading LP-d: packets that were sent before an indication say nothing new.
#[test]
fn holdoff() {
    for (holdoff, after) in [(1, 32), (0, 2)] {
        let mut f = avoiding(&[("holdoff", holdoff)], 64);
        f.send(64);
        f.ack(2, 50_000, NEVER);
        assert_eq!(f.w(), 32);
        f.ack(30, 50_000, NEVER);
        f.ack(32, 50_000, NEVER); // all that was outstanding at the indication
        assert_eq!(f.w(), after, "holdoff {holdoff}");
    }
    let mut f = avoiding(&[], 64);
    f.send(64);
    f.ack(2, 50_000, NEVER);
    f.send(2);
    f.ack(62, 50_000, NEVER);
    assert_eq!(f.w(), 32);
    f.ack(2, 50_000, NEVER);
    assert_eq!(f.w(), 2);
}

/// Reading LP-b: a single spike does not raise dmax.
#[test]
fn the_second_largest_sample() {
    for (dmax, ranges) in
        [(1, [0, 0, 10_000, 30_000, 30_000]), (0, [0, 10_000, 90_000, 90_000, 90_000])]
    {
        let given = [("srtt_weight", 0), ("dmax", dmax)];
        let mut f = Flow::avoiding(params("lp", &given), 64);
        for (q_us, range_us) in [0, 10_000, 90_000, 30_000, 20_000].into_iter().zip(ranges) {
            let ack = Ack { rtt_us: BASE_US + q_us, acked_pkts: 2, ..Ack::default() };
            f.cc.on_rtt(&mut f.conn, &ack);
            assert_eq!(f.cc.observe()[1], range_us, "dmax {dmax}, q {q_us}");
        }
    }
    // The first sample is no range, and no reason to give way.
    let mut f = Flow::avoiding(params("lp", &[]), 64);
    assert_eq!(f.round(100_000, NEVER), NOTE_ROUND);
    assert_eq!((f.w(), f.cc.observe()), (65, [0; 4]));
}

/// Weights 7/8 and 1/8.
#[test]
fn the_smoothed_delay() {
    let mut f = Flow::avoiding(params("lp", &[]), 64);
    f.conn.phase = Phase::Recovery as u8;
    for (q_us, smoothed_us) in [(0, 0), (80_000, 10_000), (80_000, 18_750), (0, 16_406)] {
        f.round(q_us, NEVER);
        assert_eq!(f.cc.observe()[0], smoothed_us);
    }
    f.round(NO_SAMPLE, NEVER);
    assert_eq!(f.cc.observe()[0], 16_406);
}

#[test]
fn delayed_acks_are_left_out() {
    for (filter, q_us) in [(1, 0), (0, 30_000)] {
        let mut f = avoiding(&[("delack_filter", filter)], 64);
        let lone = Ack { rtt_us: BASE_US + 30_000, acked_pkts: 1, ..Ack::default() };
        f.cc.on_rtt(&mut f.conn, &lone);
        assert_eq!(f.cc.observe()[0], q_us, "filter {filter}");
    }
}

/// Reading LP-f.
#[test]
fn slow_start() {
    for (test, after) in [(1, (32, 32)), (0, (128, 1_000))] {
        let mut f = settled(&[("ss_test", test)], 64, 1_000);
        f.round(50_000, NEVER);
        assert_eq!((f.w(), f.conn.ssthresh_pkts), after);
    }
}

/// RFC 5681 eq. 4; reading LP-g: a recovery begins no phase and ends none.
#[test]
fn loss_recovery_and_undo() {
    let mut f = avoiding(&[], 64);
    f.send(64);
    assert_eq!(f.loss().0, 32);
    assert_eq!(f.cc.undo(&mut f.conn), 64);
    assert_eq!(f.ack(32, 50_000, NEVER), NOTE_ROUND);
    f.ack_ending_recovery(32, 0, NEVER);
    assert_eq!((f.w(), rounds_left(&f)), (33, 0), "32 packets of the 32 that make +1");
    let mut f = avoiding(&[], 64);
    f.round(50_000, NEVER);
    f.send(32);
    assert_eq!(f.loss().0, 16);
    f.ack_ending_recovery(32, 0, NEVER);
    assert_eq!((f.w(), rounds_left(&f)), (16, 2));
}

/// NewReno's growth while the losses of a timeout are repaired, whatever the delay, and no phase.
#[test]
fn timeout() {
    let mut f = avoiding(&[], 64);
    f.round(50_000, NEVER);
    f.send(32);
    assert_eq!(f.timeout(), 16);
    assert_eq!(rounds_left(&f), 0);
    for after in [2, 3, 4] {
        f.ack(1, 50_000, NEVER);
        assert_eq!(f.w(), after);
    }
}

#[test]
fn the_application_limits() {
    let mut f = avoiding(&[], 64);
    f.conn.cwnd_limited = 0;
    f.round(0, NEVER);
    assert_eq!(f.w(), 64);
    assert_eq!(f.round(50_000, NEVER), REDUCED);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The test is that of exact arithmetic on the latest sample, over all delays.
    #[test]
    fn decisions_are_exact(
        base in 1_u32..1_000_000,
        range in 0_u32..10_000_000,
        (part, near) in (0_u32..=1_000_000, any::<bool>()),
        delta in 0_u32..=1_000_000,
        off in 0_u32..3,
    ) {
        let given = [("srtt_weight", 0), ("delta", delta.into())];
        let mut f = Flow::avoiding(params("lp", &given), 64);
        f.conn.cwnd_limited = 0;
        let sample = |f: &mut Flow, q: u32| {
            let ack = Ack { rtt_us: (base + q) as i32, acked_pkts: 2, ..Ack::default() };
            f.cc.on_rtt(&mut f.conn, &ack);
            ack
        };
        for q in [0, range, range] {
            sample(&mut f, q);
        }
        let part = if near { delta } else { part };
        let q = (u64::from(range) * u64::from(part) / 1_000_000) as u32 + off;
        let q = q.saturating_sub(1).min(range);
        let ack = sample(&mut f, q);
        f.cc.on_ack(&mut f.conn, &ack);
        let high = u64::from(q) * 1_000_000 > u64::from(range) * u64::from(delta);
        prop_assert_eq!(f.w(), if high { 32 } else { 64 });
    }

    /// dmax is the second largest of all samples.
    #[test]
    fn the_second_largest_of_all(rtts in prop::collection::vec(1_i32..1 << 24, 2..40)) {
        let mut f = Flow::avoiding(params("lp", &[]), 64);
        for rtt_us in &rtts {
            let ack = Ack { rtt_us: *rtt_us, acked_pkts: 2, ..Ack::default() };
            f.cc.on_rtt(&mut f.conn, &ack);
        }
        let mut sorted = rtts;
        sorted.sort_unstable();
        let range = sorted[sorted.len() - 2] - sorted[0];
        prop_assert_eq!(f.cc.observe()[1], range as u32);
    }
}

// ---------------------------------------------------------------------------------------------
// Behaviour
// ---------------------------------------------------------------------------------------------

/// Low priority: with a queue that competitors hold LP falls to the smallest window and stays there; alone
/// it uses the path.
#[test]
fn gives_way_to_others_and_uses_the_rest() {
    let (bdp, per_pkt_us) = (40, 1_000);
    let mut f = Flow::avoiding(params("lp", &[("delack_filter", 0)]), 2);
    let mut run = |others: u32, rounds: u32| {
        let mut sum = 0;
        for _ in 0..rounds {
            f.send(f.w());
            let queue = (f.w() + others).saturating_sub(bdp);
            for _ in 0..f.conn.outstanding_pkts {
                f.ack(1, queue * per_pkt_us, NEVER);
            }
            sum += f.w();
        }
        sum / rounds
    };
    run(90, 10); // learns that 50 ms of queue exist
    let alone = run(0, 500);
    let beside = run(80, 500);
    let again = run(0, 500);
    assert!((28..=50).contains(&alone) && (28..=50).contains(&again), "{alone}, {again} of {bdp}");
    assert!(beside <= 3, "{beside}");
}
