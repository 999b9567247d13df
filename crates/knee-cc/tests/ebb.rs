//! Ebb: the equations of docs/reference/algorithms/ebb.md against values worked out by hand. The base RTT is
//! 40 ms; an ACK of one packet is one sample, eight make a lane.

#[allow(dead_code)] // each file of tests uses its part
mod common;

use common::params;
use knee_cc::{
    Ack, Conn, Controller, Event, NOTE_LOSS_TOLERATED, NOTE_ROUND, Phase, Profile,
    SSTHRESH_INFINITE, STATE_MAX_BYTES, algorithm,
};

const BASE_US: i32 = 40_000;

#[derive(Clone)]
struct Ebb {
    conn: Conn,
    cc: Controller,
    delivered: u64,
    /// Delivered when the running round began.
    round_start: u64,
    /// Packets of the delivery rate sample, in a base RTT.
    rate_pkts: u32,
}

impl Ebb {
    fn new(given: &[(&str, u64)], cwnd_pkts: u32, ssthresh_pkts: u32) -> Self {
        let mut conn = Conn {
            now_us: 1 << 33,
            cwnd_pkts,
            ssthresh_pkts,
            cwnd_max_pkts: 1 << 30,
            mss_bytes: 1000,
            cwnd_limited: 1,
            ..Conn::default()
        };
        let cc = Controller::new(params("ebb", given), &mut conn);
        Self { conn, cc, delivered: 0, round_start: 0, rate_pkts: 80 }
    }

    /// A flow that avoids congestion on an empty path, and knows its base RTT.
    fn avoiding(given: &[(&str, u64)], cwnd_pkts: u32) -> Self {
        let mut f = Self::new(given, cwnd_pkts, cwnd_pkts);
        f.lane(0);
        f.conn.cwnd_pkts = cwnd_pkts;
        f.conn.cwnd_cnt = 0;
        f
    }

    /// An ACK of `acked` packets that saw the queueing delay `q_us`, of a packet sent when `prior`
    /// were delivered; 40 us later.
    fn hear(&mut self, acked: u32, lost: u32, q_us: i32, prior: u64) -> u32 {
        self.conn.now_us += 40;
        self.delivered += u64::from(acked);
        let ack = Ack {
            delivered_pkts: self.delivered,
            acked_pkts: acked,
            lost_pkts: lost,
            rtt_us: BASE_US + q_us,
            sample_pkts: self.rate_pkts,
            sample_us: BASE_US as u32,
            sample_prior_pkts: prior as u32,
            prior_inflight_pkts: self.conn.cwnd_pkts,
            ..Ack::default()
        };
        self.cc.on_ack(&mut self.conn, &ack);
        self.conn.notes
    }

    /// An ACK within a round.
    fn amid(&mut self, q_us: i32) -> u32 {
        self.hear(1, 0, q_us, self.round_start.wrapping_sub(1))
    }

    /// Eight of them: a lane.
    fn lane(&mut self, q_us: i32) {
        (0..8).for_each(|_| {
            self.amid(q_us);
        });
    }

    /// A lane, and the ACK that ends the round.
    fn round(&mut self, q_us: i32) -> u32 {
        self.lane(q_us);
        let notes = self.hear(1, 0, q_us, self.delivered);
        self.round_start = self.delivered;
        notes
    }

    fn w(&self) -> u32 {
        self.conn.cwnd_pkts
    }
    fn q_us(&self) -> u32 {
        self.cc.observe()[0]
    }
    fn base_us(&self) -> u32 {
        self.cc.observe()[1]
    }
    fn level_us(&self) -> u32 {
        self.cc.observe()[2]
    }
    fn test(&self) -> u32 {
        self.cc.observe()[3]
    }
}

/// Growth that would blur a window: a thousandth of sqrt(W RTT).
const STILL: (&str, u64) = ("gain", 1000);

#[test]
fn profile_and_state() {
    let ebb = algorithm("ebb").expect("registered");
    assert_eq!(ebb.profile(), Profile::Rate);
    assert_eq!(ebb.state_bytes(), STATE_MAX_BYTES);
}

#[test]
fn q_is_the_least_of_eight_samples() {
    let mut f = Ebb::avoiding(&[STILL], 100);
    for q_us in [9000, 5000, 7000, 3000, 8000, 6000, 4000] {
        f.amid(q_us);
        assert_eq!(f.q_us(), 0, "the lane is not complete");
    }
    f.amid(9000);
    assert_eq!((f.q_us(), f.base_us()), (3000, 40_000));
}

#[test]
fn the_end_of_a_round_ends_a_lane() {
    let mut f = Ebb::avoiding(&[STILL], 100);
    f.amid(2000);
    let notes = f.hear(1, 0, 1500, f.delivered);
    assert_ne!(notes & NOTE_ROUND, 0);
    assert_eq!(f.q_us(), 1500);
}

impl Ebb {
    /// A round whose RTTs are up to `most_us` above the base RTT, `least_us` at least.
    fn spread(&mut self, least_us: i32, most_us: i32) {
        (0..7).for_each(|_| {
            self.amid(least_us);
        });
        self.amid(most_us);
        self.hear(1, 0, least_us, self.delivered);
        self.round_start = self.delivered;
    }
}

// Two packets of 100 at 40 ms are 0.8 of 8 ms: 7.2 ms, or 11 sixteenths of 10 ms. The smoothed range begins
// at 0, and goes up by one at a time. J is 1.25 of it.
#[test]
fn delay_by_jitter_is_no_queue() {
    let jitter_us = |rounds: u32| {
        let mut f = Ebb::avoiding(&[STILL, ("patience", 200)], 100);
        (0..rounds).for_each(|_| f.spread(0, 8_000));
        f.lane(9_000);
        9_000 - f.q_us()
    };
    assert_eq!([jitter_us(0), jitter_us(1), jitter_us(4), jitter_us(40)], [0, 781, 3_125, 8_593]);
    // A calm round takes a quarter away, rounded up: 11 units become 8.
    let mut f = Ebb::avoiding(&[STILL, ("patience", 200)], 100);
    (0..40).for_each(|_| f.spread(0, 8_000));
    f.spread(0, 0);
    f.lane(9_000);
    assert_eq!(f.q_us(), 9_000 - 6_250);
}

// Fast growth moves the queue: after nine empty rounds (eq. 4) the range is not counted. Nine counted ones make 9 of its 11
// units, and J 7.031 ms.
#[test]
fn delay_by_fast_growth_is_no_jitter() {
    let mut f = Ebb::avoiding(&[STILL], 100);
    (0..40).for_each(|_| f.spread(0, 8_000));
    f.lane(9_000);
    assert_eq!(f.q_us(), 9_000 - 7_031);
}

// eq. 2 with RTT0 = 40 + 8.593 ms, at q = 10 ms: 100 * 48.593/58.593 * 0.97 = 80.4. Without J the same delay is a queue:
// 100 * 40/58.593 * 0.97 = 66.2.
#[test]
fn a_drain_leaves_packets_that_jitter_delays() {
    let wild = |jitter: u64| {
        // No fast growth.
        let given = [STILL, ("patience", 200), ("jitter", jitter)];
        let mut f = Ebb::avoiding(&given, 100);
        (0..40).for_each(|_| f.spread(0, 8_000));
        (f.conn.cwnd_pkts, f.conn.ssthresh_pkts, f.conn.cwnd_cnt) = (100, 100, 0);
        f.rate_pkts = 100;
        f
    };
    let mut f = wild(1_250_000);
    f.lane(18_592);
    assert_eq!((f.w(), f.test()), (100, 0));
    f.lane(18_594);
    assert_eq!((f.w(), f.test()), (80, 4));
    let mut f = wild(0);
    f.lane(18_594);
    assert_eq!((f.w(), f.test()), (66, 4));
}

// eq. 2: W (40/50) 0.97 = 100 * 0.776 = 77.6.
#[test]
fn a_drain_leaves_less_than_the_path_holds() {
    let mut f = Ebb::avoiding(&[STILL], 100);
    f.lane(9_999);
    assert_eq!((f.w(), f.test()), (100, 0));
    f.lane(10_000);
    assert_eq!((f.w(), f.test()), (77, 4));
    // 0.6 of a packet is 46 of 77.
    assert!((45..=46).contains(&f.conn.cwnd_cnt), "{}", f.conn.cwnd_cnt);
    assert_eq!(f.conn.ssthresh_pkts, 77);
}

// eq. 2: q is of the window of a round trip ago. With W = 100 and alpha = 4 sqrt(100 0.04) = 8 that was 95 by the rate
// sample: 0.97 0.8 95 = 73.7, not 78. A sample of fewer packets than W - alpha says only that not all of W was sent:
// 0.97 0.8 (100.6 - 8) = 71.9.
#[test]
fn a_drain_counts_from_the_window_that_q_is_of() {
    for (sample_pkts, left_pkts) in [(95, 73), (20, 71)] {
        let mut f = Ebb::avoiding(&[("gain", 4_000_000)], 100);
        f.rate_pkts = sample_pkts;
        f.round(0);
        f.lane(10_000);
        assert_eq!((f.test(), f.w()), (4, left_pkts), "a sample of {sample_pkts} packets");
        // eq. 10: a test paces at one window per base RTT.
        assert_eq!(f.conn.pacing_bytes_per_s, u64::from(left_pkts) * 1000 * 25);
    }
}

// Window 4, RTT 40 ms: a packet takes 10 ms at this rate, 1.25 of them 12.5 ms.
#[test]
fn a_slow_flow_may_queue_a_packet_and_a_quarter() {
    let mut f = Ebb::avoiding(&[STILL], 4);
    f.lane(12_400);
    assert_eq!(f.w(), 4);
    f.lane(12_500);
    // 4 * 40/52.5 * 0.97 = 2.96
    assert_eq!(f.w(), 2);
    let mut without = Ebb::avoiding(&[STILL, ("packet", 0)], 4);
    without.lane(10_000);
    // 4 * 0.776 = 3.1
    assert_eq!(without.w(), 3);
}

#[test]
fn no_drain_below_two_packets() {
    let mut f = Ebb::avoiding(&[STILL], 2);
    f.lane(100_000);
    assert_eq!((f.w(), f.test()), (2, 0));
}

// eq. 1: 0.625 sqrt(64 * 0.040) = 1.0 packet per round trip: one more window of ACKs, one packet.
#[test]
fn growth_in_low_delay() {
    let mut f = Ebb::avoiding(&[], 64);
    f.round(0);
    f.conn.cwnd_cnt = 0;
    let before = f.delivered;
    while f.w() == 64 {
        f.amid(0);
    }
    let acked = f.delivered - before;
    assert!((64..=66).contains(&acked), "{acked}");
}

// eq. 1 below 400 packets/s, 16 in 40 ms: 0.625 sqrt(16 * 0.040) = 0.5 packets per round trip, so 8 packets are one more
// after 16 ACKs, or 15 with a fraction that is left of before.
#[test]
fn growth_of_slow_flows_depends_on_the_rtt_alone() {
    let acked = |params: &[(&str, u64)], cwnd_pkts: u32| {
        let mut f = Ebb::avoiding(params, cwnd_pkts);
        f.round(0);
        f.conn.cwnd_cnt = 0;
        let before = f.delivered;
        while f.w() == cwnd_pkts {
            f.amid(0);
        }
        f.delivered - before
    };
    assert!((15..=17).contains(&acked(&[], 8)), "{}", acked(&[], 8));
    // 16 packets in 40 ms are at the limit: 32 ACKs, with the root alone too.
    assert_eq!(acked(&[], 16), acked(&[("slow", 0)], 16));
    // 8 / (0.625 sqrt(8 0.040)) = 22.6
    assert!((21..=24).contains(&acked(&[("slow", 0)], 8)), "{}", acked(&[("slow", 0)], 8));
}

// eq. 4: before the first drain growth doubles from the 9th empty round on, up to W/8 per round trip.
#[test]
fn an_empty_queue_is_filled_ever_faster() {
    let grown = |rounds: u32| {
        let mut f = Ebb::avoiding(&[], 1000);
        (0..rounds).for_each(|_| {
            f.round(0);
        });
        (f.conn.cwnd_pkts, f.conn.ssthresh_pkts) = (1000, 1000);
        f.conn.cwnd_cnt = 0;
        f.hear(1000, 0, 0, f.round_start.wrapping_sub(1));
        f.w() - 1000
    };
    // 0.625 sqrt(1000 * 0.040) = 3.95
    assert_eq!([grown(8), grown(9), grown(10)], [3, 7, 15]);
    // The window was 1009 packets when the round began.
    assert_eq!(grown(20), 126);
}

// After a drain of 1000 packets an epoch lasts longer: m = (0.03 + 10/160) sqrt(1000/0.040) / 0.625 = 23.4 rounds of
// growth, and 8 + 1.5 m = 43.
#[test]
fn the_growth_of_an_epoch_is_not_fast() {
    let grown = |rounds: u32| {
        let mut f = Ebb::avoiding(&[], 1000);
        f.lane(10_000);
        assert_eq!(f.test(), 4);
        (0..rounds).for_each(|_| {
            (f.conn.cwnd_pkts, f.conn.ssthresh_pkts) = (776, 776);
            f.round(0);
        });
        (f.conn.cwnd_pkts, f.conn.ssthresh_pkts) = (1000, 1000);
        f.conn.cwnd_cnt = 0;
        f.hear(1000, 0, 0, f.round_start.wrapping_sub(1));
        f.w() - 1000
    };
    // 0.625 sqrt(776 * 0.040) = 3.48
    assert_eq!([grown(43), grown(44), grown(45)], [3, 6, 13]);
}

// q does not show the packets of fast growth yet.
#[test]
fn after_fast_growth_the_window_rests_before_a_drain() {
    let mut f = Ebb::avoiding(&[], 1000);
    (0..10).for_each(|_| {
        f.round(0);
    });
    f.lane(10_000);
    let w = f.w();
    assert_eq!(f.test(), 0, "fast growth ends");
    f.round(10_000);
    f.lane(10_000);
    assert_eq!((f.test(), f.w()), (0, w), "and the window rests for a round trip");
    f.round(10_000);
    f.lane(10_000);
    assert_eq!(f.test(), 4);
}

/// A flow whose test began at 10 ms with 100 packets and is about to be judged; q since then.
fn tested(q_us: i32) -> Ebb {
    let mut f = Ebb::avoiding(&[STILL], 100);
    f.round(0);
    f.lane(10_000);
    (0..2).for_each(|_| {
        f.round(q_us);
    });
    f.lane(q_us);
    assert_eq!(f.test(), 2);
    f
}

impl Ebb {
    /// The round before the last of a test ends.
    fn judge(&mut self, q_us: i32) {
        self.hear(1, 0, q_us, self.delivered);
        self.round_start = self.delivered;
    }
}

// eq. 3: 23 of 100 packets were taken, which is 11.5 ms of RTT, more than q: a fall of 0.6 * 10 ms.
#[test]
fn a_queue_that_falls_passes_the_test() {
    let mut f = tested(4_000);
    f.judge(4_000);
    assert_eq!((f.test(), f.level_us()), (0, 10_000));
    assert_eq!(f.w(), 77);
}

// A link of 80 packets per base RTT carries 77.6, 0.97 of that, after the drain. A 22.4 % smaller
// window may cost an eighth of that more, 2.8 % of 80 or 2.2 packets, and a packet.
#[test]
fn a_rate_that_falls_fails_the_test() {
    let test_at = |rate_pkts: u32| {
        let mut f = tested(0);
        f.rate_pkts = rate_pkts;
        f.judge(0);
        f.test()
    };
    assert_eq!([test_at(77), test_at(76), test_at(75), test_at(74)], [0, 0, 0, 1]);
}

// 18 packets become 13.97. A link of 18 per base RTT must give 0.97 less an eighth of the 5 taken: 16.8, and
// two less below 16.
#[test]
fn a_small_window_may_miss_two_packets() {
    let test_at = |rate_pkts: u32| {
        let mut f = Ebb::avoiding(&[STILL], 18);
        f.rate_pkts = 18;
        f.round(0);
        f.lane(10_000);
        (0..3).for_each(|_| {
            f.round(10_000);
        });
        assert_eq!((f.w(), f.test()), (13, 1));
        f.rate_pkts = rate_pkts;
        f.lane(0);
        f.test()
    };
    assert_eq!([test_at(15), test_at(14)], [0, 1]);
}

// Windows of less than eight packets have no lane within a round.
#[test]
fn the_end_of_the_last_round_is_judged_too() {
    let mut f = Ebb::avoiding(&[STILL], 100);
    f.round(0);
    f.lane(10_000);
    (0..3).for_each(|_| {
        f.round(10_000);
    });
    (0..3).for_each(|_| {
        f.amid(0);
    });
    assert_eq!(f.test(), 1);
    f.judge(0);
    assert_eq!((f.test(), f.level_us(), f.w()), (0, 10_000, 77));
}

// From 8 ms, which is more than 0.75 theta, q has fallen by more than a 32nd of 48 ms: 100 (40/48) 0.97 = 80.8.
#[test]
fn a_flow_joins_a_drain_that_it_has_missed() {
    let after = |before_us: i32, q_us: i32| {
        let mut f = Ebb::avoiding(&[STILL], 100);
        f.rate_pkts = 100;
        f.round(0);
        f.round(before_us);
        f.lane(q_us);
        (f.w(), f.test())
    };
    assert_eq!(after(8_000, 6_500), (100, 0));
    assert_eq!(after(8_000, 6_499), (80, 4));
    assert_eq!(after(7_499, 3_000), (100, 0));
}

#[test]
fn a_queue_that_stays_fails_the_test() {
    let mut f = tested(4_100);
    f.judge(4_100);
    assert_eq!(f.test(), 1);
    f.round(4_100);
    assert_eq!((f.test(), f.level_us()), (0, 20_000));
    // Slow start leads back to the window before the drain.
    assert_eq!(f.conn.ssthresh_pkts, 100);
    f.hear(50, 0, 10_000, f.round_start.wrapping_sub(1));
    assert_eq!(f.w(), 100);
}

// The next test comes at the next 10 ms * 2^n above q; it takes at most a fifth of the window.
#[test]
fn levels_double_and_tests_there_take_a_fifth() {
    let mut f = Ebb::avoiding(&[STILL, ("alpha", 10_000)], 100);
    f.round(0);
    f.lane(45_000);
    assert_eq!(f.test(), 4);
    (0..4).for_each(|_| {
        f.round(45_000);
    });
    assert_eq!(f.level_us(), 80_000);
    (0..2).for_each(|_| {
        f.hear(50, 0, 70_000, f.delivered);
        f.round_start = f.delivered;
    });
    f.lane(70_000);
    assert_eq!((f.w(), f.test()), (100, 0));
    f.lane(80_000);
    assert_eq!((f.w(), f.test()), (80, 4));
}

#[test]
fn the_level_follows_a_falling_queue() {
    let mut f = tested(9_500);
    f.judge(9_500);
    f.round(9_500);
    assert_eq!(f.level_us(), 20_000);
    (0..2).for_each(|_| {
        f.round(9_500);
    });
    f.lane(9_000);
    assert_eq!(f.level_us(), 20_000, "not below 0.9 of 10 ms");
    f.lane(8_999);
    assert_eq!(f.level_us(), 10_000);
}

/// A flow that has seen 8 ms of queue, and now sees `q_us`.
fn after_8_ms(given: &[(&str, u64)], q_us: i32) -> Ebb {
    let mut f = Ebb::avoiding(given, 100);
    f.round(8_000);
    (0..2).for_each(|_| {
        f.round(q_us);
    });
    f.conn.cwnd_pkts = 100;
    f
}

fn lose(f: &mut Ebb, lost: u32) {
    let ssthresh = f.cc.ssthresh(&mut f.conn);
    assert_eq!((ssthresh, f.conn.notes), (f.w(), NOTE_LOSS_TOLERATED));
    f.conn.phase = Phase::Recovery as u8;
    f.hear(0, lost, 0, f.round_start.wrapping_sub(1));
}

// The largest q decays by a 32nd per round: 8 ms has become 7.5 to 7.8 ms, three quarters of it 5.6
// to 5.8 ms.
#[test]
fn a_loss_at_a_short_queue_is_tolerated() {
    let mut f = after_8_ms(&[STILL], 5_000);
    lose(&mut f, 1);
    assert_eq!(f.w(), 100);
}

// Where the queue never reaches theta the path is shared or its buffer short: NewReno's half.
#[test]
fn a_loss_at_a_full_queue_halves() {
    let mut f = after_8_ms(&[STILL], 6_000);
    lose(&mut f, 1);
    assert_eq!(f.w(), 50);
    // Once per two rounds.
    lose(&mut f, 1);
    assert_eq!(f.w(), 50);
}

// One packet of 100 is lost in each round with an empty queue: the usual losses come to 0.63 % in 32
// rounds, six times that is 3.8 %. One more loss makes 1.7 % of the loss rate at most; ten make 8 %.
#[test]
fn as_many_losses_as_at_an_empty_queue_are_tolerated_at_a_full_one() {
    let after = |usual: u32, lost: u32| {
        let mut f = Ebb::avoiding(&[STILL], 100);
        for _ in 0..32 {
            f.conn.cwnd_pkts = 100;
            let amid = f.round_start.wrapping_sub(1);
            f.hear(50, usual, 0, amid);
            f.hear(50 - usual, 0, 0, amid);
            f.round(0);
        }
        f.round(8_000);
        f.conn.cwnd_pkts = 100;
        lose(&mut f, lost);
        f.w()
    };
    assert_eq!([after(0, 1), after(1, 1), after(1, 10)], [50, 100, 50]);
}

// Two of 100 in 32 rounds are 1.3 %, six times that is 7.6 %. Five more make 5 % of the loss rate: more than `usual`, but not
// than 2.5 times that, which a window of 16 packets and more is allowed.
#[test]
fn a_larger_window_tolerates_more_usual_losses() {
    let after = |cwnd_pkts: u32| {
        let mut f = Ebb::avoiding(&[STILL], 100);
        for _ in 0..32 {
            f.conn.cwnd_pkts = 100;
            let amid = f.round_start.wrapping_sub(1);
            f.hear(50, 2, 0, amid);
            f.hear(48, 0, 0, amid);
            f.round(0);
        }
        f.round(8_000);
        f.conn.cwnd_pkts = cwnd_pkts;
        lose(&mut f, 5);
        f.w()
    };
    assert_eq!([after(16), after(14)], [16, 7]);
}

// 40 ms / 32 is 1.25 ms.
#[test]
fn a_loss_at_an_empty_queue_is_tolerated() {
    let after = |q_us: i32| {
        let mut f = Ebb::avoiding(&[STILL], 100);
        (0..2).for_each(|_| {
            f.round(q_us);
        });
        f.conn.cwnd_pkts = 100;
        lose(&mut f, 1);
        f.w()
    };
    assert_eq!([after(1_249), after(1_250)], [100, 50]);
}

// loss_limit: with a memory of 128 packets, 30 lost of 30 are a fraction of 30/128.
#[test]
fn too_much_loss_halves_at_any_queue() {
    let mut f = after_8_ms(&[STILL], 5_000);
    lose(&mut f, 30);
    assert_eq!(f.w(), 50);
}

// RFC 8511: at most 0.85, whatever the queue.
#[test]
fn a_mark_reduces() {
    let mut f = Ebb::avoiding(&[STILL], 100);
    f.round(20_000 - 10_001);
    (0..2).for_each(|_| {
        f.round(0);
    });
    f.conn.cwnd_pkts = 100;
    f.cc.ssthresh(&mut f.conn);
    f.conn.phase = Phase::Cwr as u8;
    f.amid(0);
    assert_eq!(f.w(), 50, "the queue was below theta");
}

#[test]
fn a_timeout_halves_the_threshold_and_forgets_the_queue() {
    let mut f = after_8_ms(&[STILL], 6_000);
    f.cc.ssthresh(&mut f.conn);
    f.cc.on_event(&mut f.conn, Event::Rto);
    assert_eq!(f.conn.ssthresh_pkts, 50);
    f.conn.cwnd_pkts = 1;
    f.conn.phase = Phase::Loss as u8;
    // An RTT of 2 s is of a packet that waited for the link.
    f.lane(2_000_000);
    assert_eq!(f.q_us(), 0);
    assert_eq!(f.w(), 9, "slow start");
}

#[test]
fn slow_start_ends_at_half_of_theta() {
    let mut f = Ebb::new(&[], 10, SSTHRESH_INFINITE);
    f.lane(0);
    assert_eq!(f.w(), 18);
    f.lane(4_999);
    assert_eq!(f.w(), 26);
    // At the eighth sample: 33 * 40/45 = 29.3.
    f.lane(5_000);
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (29, 29));
}

// 1.25 windows per base RTT, twice that in slow start: 20 packets of 1000 bytes in 40 ms are 500000
// bytes/s.
#[test]
fn paces_above_the_window() {
    let mut f = Ebb::new(&[STILL], 11, SSTHRESH_INFINITE);
    (0..9).for_each(|_| {
        f.amid(0);
    });
    assert_eq!((f.w(), f.conn.pacing_bytes_per_s), (20, 1_250_000));
    let mut f = Ebb::avoiding(&[STILL], 20);
    f.amid(0);
    assert_eq!(f.conn.pacing_bytes_per_s, 625_000);
}

#[test]
fn a_long_pause_restarts_the_window() {
    let mut f = Ebb::avoiding(&[STILL], 80);
    f.conn.now_us += 300_000; // 8 round trips are 320 ms
    f.cc.on_event(&mut f.conn, Event::TxStart);
    assert_eq!(f.w(), 80);
    f.conn.now_us += 30_000;
    f.cc.on_event(&mut f.conn, Event::TxStart);
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (10, 60));
}

#[test]
fn undo_restores_the_window() {
    let mut f = after_8_ms(&[STILL], 6_000);
    lose(&mut f, 1);
    assert_eq!(f.w(), 50);
    assert_eq!(f.cc.undo(&mut f.conn), 100);
}
