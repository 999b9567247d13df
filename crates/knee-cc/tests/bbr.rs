//! BBR: the rules of draft-ietf-ccwg-bbr-06 against values worked out by hand. Packets have 1448
//! bytes, a round trip takes 40 ms: `n` packets in a round trip are 25 n packets/s, and a BDP of n.

#[allow(dead_code)] // each file of tests uses its part
mod common;

use common::params;
use knee_cc::{
    Ack, Conn, Controller, Event, NOTE_LOSS_TOLERATED, NOTE_ROUND, Phase, Profile,
    SSTHRESH_INFINITE, STATE_MAX_BYTES, algorithm,
};

const RTT_US: u32 = 40_000;

const STARTUP: u32 = 0;
const DRAIN: u32 = 1;
const DOWN: u32 = 2;
const CRUISE: u32 = 3;
const REFILL: u32 = 4;
const UP: u32 = 5;
const PROBE_RTT: u32 = 6;

/// The report of one ACK.
#[derive(Clone, Copy)]
struct Heard {
    after_us: u64,
    acked: u32,
    /// Delivered since the sending of the packet that it is of.
    since: u32,
    over_us: u32,
    rtt_us: i32,
    lost: u32,
    limited: bool,
    /// In the network after it.
    inflight: u32,
    random: u32,
}

/// A round trip in which `n` packets were delivered, and as many are under way.
fn round(n: u32) -> Heard {
    Heard {
        after_us: RTT_US.into(),
        acked: n,
        since: n,
        over_us: RTT_US,
        rtt_us: RTT_US as i32,
        lost: 0,
        limited: false,
        inflight: n,
        random: 0,
    }
}

/// An ACK of one packet amid a round trip of `n`, at once.
fn amid(n: u32) -> Heard {
    Heard { after_us: 0, acked: 1, ..round(n) }
}

#[derive(Clone)]
struct Bbr {
    conn: Conn,
    cc: Controller,
    delivered: u64,
}

impl Bbr {
    fn with(given: &[(&str, u64)]) -> Self {
        let mut conn = Conn {
            now_us: 1 << 32, // the low bits of the clock are about to wrap, and do
            cwnd_pkts: 10,
            ssthresh_pkts: SSTHRESH_INFINITE,
            cwnd_max_pkts: 1 << 30,
            mss_bytes: 1448,
            ..Conn::default()
        };
        conn.now_us -= 1_000_000;
        let cc = Controller::new(params("bbr", given), &mut conn);
        Self { conn, cc, delivered: 0 }
    }

    fn new() -> Self {
        Self::with(&[])
    }

    fn hear(&mut self, heard: Heard) -> u32 {
        let h = heard;
        self.conn.now_us += h.after_us;
        self.delivered += u64::from(h.acked);
        self.conn.inflight_pkts = h.inflight;
        self.conn.srtt_us = RTT_US;
        let ack = Ack {
            delivered_pkts: self.delivered,
            acked_pkts: h.acked,
            lost_pkts: h.lost,
            rtt_us: h.rtt_us,
            random: h.random,
            sample_pkts: if h.over_us > 0 { h.since } else { 0 },
            sample_us: h.over_us,
            sample_prior_pkts: (self.delivered as u32).wrapping_sub(h.since),
            prior_inflight_pkts: h.inflight.saturating_add(h.acked),
            sample_app_limited: h.limited.into(),
            advanced_pkts: 0,
        };
        self.cc.on_ack(&mut self.conn, &ack);
        self.conn.notes
    }

    /// Rounds of `n`, with `inflight` packets in the network.
    fn rounds(&mut self, count: u32, n: u32, inflight: u32) -> &mut Self {
        (0..count).for_each(|_| {
            self.hear(Heard { inflight, ..round(n) });
        });
        self
    }

    fn bw_pps(&self) -> u32 {
        self.cc.observe()[0]
    }
    fn min_rtt_us(&self) -> u32 {
        self.cc.observe()[1]
    }
    fn inflight_longterm(&self) -> u32 {
        self.cc.observe()[2]
    }
    fn mode(&self) -> u32 {
        self.cc.observe()[3]
    }
    fn w(&self) -> u32 {
        self.conn.cwnd_pkts
    }
    /// Largest rates of this probing cycle and of the one before, packets/s.
    fn filter(&self) -> (u32, u32) {
        let word = |at: usize| {
            let bytes = self.cc.state().bytes()[at..at + 4].try_into().expect("four bytes");
            u32::from_ne_bytes(bytes) >> 6
        };
        (word(0), word(4))
    }

    /// In DRAIN at 1000 packets/s: a BDP of 40, and 100 in the network.
    fn draining(given: &[(&str, u64)]) -> Self {
        let mut f = Self::with(given);
        f.rounds(4, 40, 100);
        assert_eq!(f.mode(), DRAIN);
        f
    }

    /// In CRUISE at 1000 packets/s, no round since the last probe.
    fn cruising(given: &[(&str, u64)]) -> Self {
        let mut f = Self::draining(given);
        f.hear(amid(40));
        assert_eq!((f.mode(), f.bw_pps(), f.w()), (CRUISE, 1000, 80));
        f
    }

    /// In REFILL, after 40 round trips.
    fn refilling(given: &[(&str, u64)]) -> Self {
        let mut f = Self::cruising(given);
        f.rounds(39, 40, 40);
        assert_eq!(f.mode(), CRUISE);
        f.rounds(1, 40, 40);
        assert_eq!(f.mode(), REFILL);
        f
    }

    fn probing(given: &[(&str, u64)]) -> Self {
        let mut f = Self::refilling(given);
        f.rounds(1, 40, 40);
        assert_eq!(f.mode(), UP);
        f
    }

    /// The stack enters recovery.
    fn recovery(&mut self) -> u32 {
        let ssthresh = self.cc.ssthresh(&mut self.conn);
        assert_eq!(self.conn.notes, NOTE_LOSS_TOLERATED);
        self.conn.ssthresh_pkts = ssthresh;
        self.conn.phase = Phase::Recovery as u8;
        ssthresh
    }
}

#[test]
fn is_of_profile_rate_and_fills_the_state() {
    let bbr = algorithm("bbr").expect("registered");
    assert_eq!((bbr.profile(), bbr.state_bytes()), (Profile::Rate, STATE_MAX_BYTES));
    assert!(bbr.uses_random());
}

// Startup and drain.

/// Section 5.6.2: 2.77 initial windows per millisecond, then per RTT (BB-d). A window grows by the
/// packets acknowledged while less than the initial one has been delivered.
#[test]
fn starts_at_the_initial_window_per_round_trip() {
    let mut f = Bbr::new();
    assert_eq!(f.conn.pacing_bytes_per_s, 40_109_600);
    assert_eq!((f.w(), f.mode(), f.min_rtt_us()), (10, STARTUP, 0));
    let notes = f.hear(round(1));
    assert_eq!(notes, NOTE_ROUND);
    // 14480 bytes / 40 ms * 2.77
    assert_eq!(f.conn.pacing_bytes_per_s, 1_002_740);
    assert_eq!((f.w(), f.bw_pps(), f.min_rtt_us()), (11, 25, RTT_US));
    assert_eq!(f.conn.ssthresh_pkts, SSTHRESH_INFINITE);
}

/// 500 packets/s * 1448 * 2.77 * 0.99; startup does not pace slower than it did.
#[test]
fn startup_paces_at_its_gain_and_never_slower() {
    let mut f = Bbr::new();
    f.hear(round(20));
    assert_eq!((f.bw_pps(), f.conn.pacing_bytes_per_s), (500, 1_985_425));
    f.hear(round(5));
    assert_eq!((f.bw_pps(), f.conn.pacing_bytes_per_s), (500, 1_985_425));
    assert_eq!(f.w(), 10 + 25);
    // Twice the BDP is enough.
    f.rounds(1, 20, 40);
    assert_eq!(f.w(), 55);
    f.hear(Heard { acked: 20, since: 25, over_us: 50_000, inflight: 40, ..round(20) });
    assert_eq!((f.w(), f.mode()), (55, STARTUP));
}

/// Section 5.3.1.2: three rounds without growth by a quarter; not those that the application
/// limits, and no ACKs amid a round.
#[test]
fn startup_ends_when_the_rate_stops_growing() {
    let mut f = Bbr::new();
    f.rounds(1, 20, 100); // 500: the baseline
    f.rounds(1, 24, 100); // 600: one
    f.rounds(1, 25, 100); // 625: the new baseline
    f.rounds(2, 31, 100); // 775 < 781.25: two
    f.hear(Heard { limited: true, inflight: 100, ..round(31) });
    f.hear(Heard { inflight: 100, ..amid(31) });
    assert_eq!(f.mode(), STARTUP);
    f.rounds(1, 31, 100);
    assert_eq!(f.mode(), DRAIN);
    // 775 * 1448 * 0.5 * 0.99
    assert_eq!(f.conn.pacing_bytes_per_s, 555_489);
    assert_eq!(f.conn.ssthresh_pkts, f.w());
}

#[test]
fn the_rounds_of_startup_are_a_parameter() {
    let mut f = Bbr::with(&[("full_rounds", 1), ("full_growth", 2_000_000)]);
    f.rounds(1, 20, 100);
    f.rounds(1, 40, 100);
    assert_eq!(f.mode(), STARTUP);
    f.rounds(1, 79, 200);
    assert_eq!(f.mode(), DRAIN);
}

/// Section 5.3.1.3: in recovery for a round, more than 2 % lost, reported by six ACKs (BB-c). The bound
/// is the amount delivered in a round trip, if more than the BDP.
#[test]
fn startup_ends_by_loss() {
    let lossy = |acks: u32, lost: u32, recovers: bool| {
        let mut f = Bbr::new();
        f.rounds(1, 20, 100);
        f.rounds(1, 40, 100);
        if recovers {
            f.recovery();
        }
        (0..acks).for_each(|_| {
            f.hear(Heard { lost, inflight: 100, ..amid(40) });
        });
        // The round that began with the first loss.
        f.rounds(1, 60, 100);
        (f.mode(), f.inflight_longterm())
    };
    // 6 of 60 + 6; 1500 packets/s: a BDP of 60.
    assert_eq!(lossy(6, 1, true), (DRAIN, 60));
    assert_eq!(lossy(5, 4, true), (STARTUP, 0));
    assert_eq!(lossy(6, 1, false), (STARTUP, 0));
    assert_eq!(lossy(7, 0, true), (STARTUP, 0));
}

/// Section 5.3.2: until the BDP is in flight, or for three rounds and one that tells of it.
#[test]
fn drains_until_a_bdp_is_in_flight() {
    let f = Bbr::draining(&[]);
    assert_eq!(f.conn.pacing_bytes_per_s, 716_760); // 1000 * 1448 * 0.5 * 0.99
    let mut by_inflight = f.clone();
    by_inflight.hear(Heard { inflight: 41, ..amid(40) });
    assert_eq!(by_inflight.mode(), DRAIN);
    by_inflight.hear(Heard { inflight: 40, ..amid(40) });
    assert_eq!(by_inflight.mode(), CRUISE); // nothing is left for DOWN
    let mut by_rounds = f.clone();
    by_rounds.rounds(3, 40, 100);
    assert_eq!(by_rounds.mode(), DRAIN);
    by_rounds.rounds(1, 40, 100);
    assert_eq!(by_rounds.mode(), DOWN);
    assert_eq!(by_rounds.conn.pacing_bytes_per_s, 1_290_168); // 1000 * 1448 * 0.9 * 0.99
}

// Probing for bandwidth.

/// Section 5.3.3.8: at most as many round trips as the BDP has packets, no more than 63; a draw of
/// 1 in the lowest bit begins at 1.
#[test]
fn probes_after_as_many_rounds_as_the_bdp_has_packets() {
    let rounds = |n: u32, random: u32| {
        let mut f = Bbr::new();
        f.rounds(4, n, 10 * n);
        f.hear(Heard { random, ..amid(n) });
        assert_eq!(f.mode(), CRUISE);
        let mut count = 0;
        while f.mode() == CRUISE {
            f.hear(Heard { after_us: 20_000, ..round(n) });
            count += 1;
        }
        assert_eq!(f.mode(), REFILL);
        count
    };
    assert_eq!(rounds(40, 0), 40);
    assert_eq!(rounds(40, 1), 39);
    assert_eq!(rounds(100, 0), 63);
}

/// Section 5.3.3.8: after 2 to 3 s in any case.
#[test]
fn probes_after_two_to_three_seconds() {
    for (random, wait_us) in [(0, 2_000_000), (1 << 31, 2_500_000), (u32::MAX - 1, 2_999_000)] {
        let mut f = Bbr::draining(&[]);
        f.hear(Heard { random, ..amid(40) });
        f.hear(Heard { after_us: wait_us, ..amid(40) });
        assert_eq!(f.mode(), CRUISE);
        f.hear(Heard { after_us: 1, ..amid(40) });
        assert_eq!(f.mode(), REFILL, "{random:#x}");
    }
    let mut f = Bbr::draining(&[("probe_wait", 1_000_000), ("probe_spread", 0)]);
    f.hear(Heard { random: u32::MAX, ..amid(40) });
    f.hear(Heard { after_us: 1_000_001, ..amid(40) });
    assert_eq!(f.mode(), REFILL);
}

/// REFILL for a round at gain 1, then UP at 1.25 with a window of 2.25 BDP and two packets.
#[test]
fn refills_before_it_probes() {
    let mut f = Bbr::refilling(&[]);
    assert_eq!((f.conn.pacing_bytes_per_s, f.w()), (1_433_520, 80)); // 1000 * 1448 * 0.99
    f.hear(amid(40));
    assert_eq!(f.mode(), REFILL);
    f.hear(round(40));
    assert_eq!((f.mode(), f.conn.pacing_bytes_per_s, f.w()), (UP, 1_791_900, 92));
}

/// UP ends after three rounds without growth; the search for the full pipe starts over from the sample
/// that began it.
#[test]
fn a_probe_ends_when_the_rate_stops_growing() {
    let mut f = Bbr::probing(&[]);
    f.rounds(1, 50, 60); // 1250: growth
    assert_eq!((f.mode(), f.bw_pps()), (UP, 1250));
    f.rounds(2, 50, 60);
    assert_eq!(f.mode(), UP);
    f.rounds(1, 50, 60);
    assert_eq!(f.mode(), DOWN);
    f.hear(Heard { inflight: 50, ..amid(50) });
    assert_eq!(f.mode(), CRUISE);
}

/// Section 5.5.10.2: more than 2 % lost of the data in flight. With BB-a, 51 packets delivered since the
/// sending and 1 lost are 52 in flight, 1 of which is less than 2 %; of 49 and 1 it is exactly 2 %.
#[test]
fn a_probe_ends_by_loss_above_two_percent() {
    let probe = |since: u32, lost: u32, limited: bool| {
        let mut f = Bbr::probing(&[]);
        // At the same 1000 packets/s.
        f.hear(Heard { lost, since, over_us: 1000 * since, limited, inflight: 60, ..amid(40) });
        (f.mode(), f.inflight_longterm())
    };
    assert_eq!(probe(49, 1, false), (UP, 0));
    // 48 fit, of which 0.98 may be lost.
    assert_eq!(probe(48, 1, false), (DOWN, 48));
    // 30 of 1030: 20 of the first 1000, and 20.4 of those that follow: the 21st is one too many.
    assert_eq!(probe(1000, 30, false), (DOWN, 1020));
    // No less than 0.7 of the BDP.
    assert_eq!(probe(20, 1, false), (DOWN, 28));
    // The application did not let it see what fits.
    assert_eq!(probe(48, 1, true), (DOWN, 0));
}

/// Losses of a round add up; those of the round before do not count.
#[test]
fn losses_count_by_the_round() {
    let mut f = Bbr::probing(&[]);
    // 1 of 81 is less than 2 %; 2 of 82 are more.
    f.hear(Heard { lost: 1, since: 80, over_us: 80_000, inflight: 60, ..amid(40) });
    assert_eq!(f.mode(), UP);
    let mut same = f.clone();
    same.hear(Heard { lost: 1, since: 80, over_us: 80_000, inflight: 60, ..amid(40) });
    assert_eq!((same.mode(), same.inflight_longterm()), (DOWN, 81));
    f.rounds(1, 80, 90);
    f.hear(Heard { lost: 1, since: 80, inflight: 90, ..amid(80) });
    assert_eq!(f.mode(), UP);
}

/// In CRUISE 15 % of the bound are left to others, in DOWN it is reached; a loss-free sample of more
/// in flight raises it.
#[test]
fn headroom_is_left_below_the_bound() {
    let mut f = Bbr::probing(&[]);
    f.hear(Heard { lost: 1, since: 40, inflight: 60, ..amid(40) });
    assert_eq!((f.mode(), f.inflight_longterm(), f.w()), (DOWN, 40, 40));
    f.hear(Heard { inflight: 35, ..amid(40) });
    assert_eq!(f.mode(), DOWN);
    f.hear(Heard { inflight: 34, ..amid(40) });
    assert_eq!((f.mode(), f.w()), (CRUISE, 34));
    f.rounds(2, 34, 34);
    assert_eq!(f.inflight_longterm(), 40);
    f.rounds(1, 46, 34);
    assert_eq!((f.inflight_longterm(), f.w()), (46, 40)); // 46 - 6
}

/// Section 5.3.3.6: after a probe with too much loss the next one goes only to the bound, and if that
/// was without loss, another follows at once. With `precaution` = off the probe continues.
#[test]
fn precaution_after_a_probe_with_too_much_loss() {
    let reach = |given: &[(&str, u64)]| {
        let mut f = Bbr::probing(given);
        f.hear(Heard { lost: 1, since: 40, inflight: 60, ..amid(40) });
        f.hear(Heard { inflight: 34, ..amid(34) });
        assert_eq!((f.mode(), f.inflight_longterm()), (CRUISE, 40));
        // Past the round with the loss, and on to the next probe.
        while f.mode() != UP {
            f.hear(Heard { inflight: 34, ..round(34) });
        }
        f.hear(Heard { inflight: 39, ..amid(34) });
        assert_eq!(f.mode(), UP);
        f.hear(Heard { inflight: 40, ..amid(34) });
        f
    };
    let mut f = reach(&[]);
    assert_eq!(f.mode(), DOWN);
    f.hear(Heard { inflight: 40, ..round(38) });
    assert_eq!(f.mode(), REFILL);
    f.hear(Heard { inflight: 40, ..round(38) });
    f.hear(Heard { inflight: 40, ..amid(38) });
    assert_eq!(f.mode(), UP, "no precaution twice");
    assert_eq!(reach(&[("precaution", 0)]).mode(), UP);
}

/// Section 5.3.3.9: where the window is at the bound and limits, the bound rises by 1 packet for each
/// window acknowledged, in the next round by 2, then 4.
#[test]
fn the_bound_rises_faster_and_faster() {
    let mut f = Bbr::probing(&[("precaution", 0)]);
    f.hear(Heard { lost: 1, since: 40, inflight: 60, ..amid(40) });
    while f.mode() != UP {
        f.hear(Heard { inflight: 34, ..round(34) });
    }
    assert_eq!((f.inflight_longterm(), f.w()), (40, 40));
    f.conn.cwnd_limited = 1;
    let mut bounds = Vec::new();
    for _ in 0..4 {
        // A round of 40 that ends with its last ACK.
        (0..39).for_each(|_| {
            f.hear(Heard { inflight: 39, ..amid(40) });
        });
        f.hear(Heard { inflight: 39, ..amid(1) });
        bounds.push(f.inflight_longterm());
    }
    assert!(bounds.is_sorted() && bounds[0] >= 41 && f.mode() == UP, "{bounds:?}");
    let steps: Vec<_> = bounds.windows(2).map(|b| b[1] - b[0]).collect();
    assert!(steps.is_sorted() && steps[2] >= 2 * steps[0], "{bounds:?}");
    // Not where the application limits.
    f.conn.cwnd_limited = 0;
    let before = f.inflight_longterm();
    f.hear(Heard { acked: 40, since: 40, inflight: 39, ..amid(40) });
    assert_eq!(f.inflight_longterm(), before);
}

// The model.

/// Section 5.5.6: the largest rate of this probing cycle and of the one before. The round after a
/// probe ends a cycle.
#[test]
fn max_bw_is_of_two_cycles() {
    let mut f = Bbr::probing(&[]);
    let mut seen = Vec::new();
    for _ in 0..2 {
        // UP, DOWN, and the round after it, at 32 packets: 800 packets/s.
        while f.mode() == UP {
            f.hear(Heard { inflight: 100, ..round(32) });
        }
        f.hear(Heard { inflight: 20, ..round(32) });
        seen.push(f.bw_pps());
        while f.mode() != UP && seen.len() < 2 {
            f.hear(Heard { inflight: 20, ..round(32) });
        }
    }
    assert_eq!(seen, [1000, 800]);
}

/// Section 5.5.5: a sample limited by the application counts only where it exceeds the known rate.
#[test]
fn limited_samples_do_not_lower_the_rate() {
    let mut f = Bbr::cruising(&[]);
    assert_eq!(f.filter(), (1000, 0));
    f.hear(Heard { limited: true, ..round(10) });
    assert_eq!(f.filter(), (1000, 0));
    f.hear(Heard { limited: true, ..round(44) });
    assert_eq!(f.bw_pps(), 1100);
    // A cycle does not end with one.
    let mut f = Bbr::probing(&[]);
    f.rounds(3, 40, 100);
    assert_eq!(f.mode(), DOWN);
    f.hear(Heard { limited: true, inflight: 100, ..round(10) });
    assert_eq!(f.filter(), (1000, 1000));
    f.hear(Heard { inflight: 100, ..round(10) });
    assert_eq!(f.filter(), (1000, 1000), "nor with a later one");
}

/// Section 5.5.10.3: a loss outside of probes lowers the rate, at the end of its round, to that of the
/// round, but by no more than 0.7; the same of the data in flight.
#[test]
fn losses_bound_the_short_term() {
    let mut f = Bbr::cruising(&[]);
    f.rounds(1, 32, 40); // 800 packets/s is the latest
    f.hear(Heard { lost: 1, ..amid(32) });
    assert_eq!((f.bw_pps(), f.w()), (1000, 80));
    f.rounds(1, 32, 40);
    // 0.7 * 80 packets; 2 * 0.04 s * 800.
    assert_eq!((f.bw_pps(), f.w()), (800, 56));
    f.rounds(1, 20, 40);
    assert_eq!((f.bw_pps(), f.w()), (800, 56), "a round without loss changes nothing");
    f.hear(Heard { lost: 1, ..amid(20) });
    f.rounds(1, 20, 40);
    assert_eq!((f.bw_pps(), f.w()), (560, 39));
    // REFILL forgets both.
    while f.mode() == CRUISE {
        f.hear(round(20));
    }
    assert_eq!((f.mode(), f.bw_pps()), (REFILL, 1000));
}

/// The same parts as parameters.
#[test]
fn beta_is_a_parameter() {
    let mut f = Bbr::cruising(&[("beta", 900_000)]);
    f.rounds(1, 20, 40);
    f.hear(Heard { lost: 1, ..amid(20) });
    f.rounds(1, 20, 40);
    assert_eq!(f.bw_pps(), 900);
}

// RTT.

/// Section 5.3.4: after 5 s without a lower RTT the window is half a BDP, until that was in flight
/// for 200 ms and a round; then it is as before.
#[test]
fn probes_for_the_rtt() {
    let mut f = Bbr::cruising(&[]);
    // The lowest RTT is of the first round, 3 rounds before.
    f.hear(Heard { after_us: 5_000_000 - 120_000, rtt_us: 50_000, ..amid(40) });
    assert_ne!(f.mode(), PROBE_RTT);
    let before = f.w();
    f.hear(Heard { after_us: 1, rtt_us: 50_000, ..amid(40) });
    assert_eq!((f.mode(), f.w(), f.min_rtt_us()), (PROBE_RTT, 20, RTT_US));
    assert_eq!(f.conn.pacing_bytes_per_s, 1_433_520);
    f.hear(Heard { inflight: 21, ..amid(40) });
    f.hear(Heard { after_us: 300_000, inflight: 20, ..amid(40) }); // 200 ms begin
    f.hear(Heard { after_us: 200_000, inflight: 20, ..round(20) });
    assert_eq!(f.mode(), PROBE_RTT);
    f.hear(Heard { after_us: 1, inflight: 20, ..amid(20) });
    assert_eq!((f.mode(), f.w()), (CRUISE, before));
    // The next one 5 s later, and a round is needed however long it takes.
    let mut g = f.clone();
    g.hear(Heard { after_us: 5_000_000, rtt_us: 50_000, ..amid(40) });
    assert_ne!(g.mode(), PROBE_RTT);
    g.hear(Heard { after_us: 1, rtt_us: 50_000, inflight: 20, ..amid(40) });
    assert_eq!(g.mode(), PROBE_RTT);
    g.hear(Heard { after_us: 1_000_000, inflight: 20, ..amid(40) });
    assert_eq!(g.mode(), PROBE_RTT);
    g.hear(Heard { after_us: 0, inflight: 20, ..round(20) });
    assert_eq!(g.mode(), CRUISE);
}

/// Samples of PROBE_RTT do not end a cycle of the filter (BB-f).
#[test]
fn low_samples_of_an_rtt_probe_do_not_count() {
    let mut f = Bbr::cruising(&[]);
    f.hear(Heard { after_us: 5_000_000, rtt_us: 50_000, inflight: 20, ..amid(40) });
    assert_eq!(f.mode(), PROBE_RTT);
    f.rounds(10, 20, 20);
    assert_eq!((f.mode(), f.filter()), (CRUISE, (1000, 0)));
}

/// Section 5.3.4.3: min_rtt is given up after 10 s, for the least since the latest probe.
#[test]
fn the_minimum_rtt_is_of_ten_seconds() {
    let mut f = Bbr::cruising(&[]);
    let later = |f: &mut Bbr, after_us| {
        f.hear(Heard { after_us, rtt_us: 50_000, inflight: 20, ..round(20) });
        f.min_rtt_us()
    };
    assert_eq!(later(&mut f, 5_000_000), RTT_US);
    assert_eq!(later(&mut f, 4_880_000), RTT_US);
    assert_eq!(later(&mut f, 1), 50_000);
    // A lower one counts at once.
    f.hear(Heard { rtt_us: 30_000, ..round(20) });
    assert_eq!(f.min_rtt_us(), 30_000);
    // Without a sample there is none.
    f.hear(Heard { rtt_us: -1, ..round(20) });
    assert_eq!(f.min_rtt_us(), 30_000);
}

// Actions of the stack.

/// Section 5.4.1: after idleness at the rate of the path, and no probe for the RTT that idleness
/// has made unnecessary.
#[test]
fn restarts_after_idleness() {
    let mut f = Bbr::cruising(&[]);
    f.conn.pacing_bytes_per_s = 1;
    f.conn.now_us += 6_000_000;
    f.conn.inflight_pkts = 0;
    f.cc.on_event(&mut f.conn, Event::TxStart);
    assert_eq!((f.conn.pacing_bytes_per_s, f.w()), (1_433_520, 80));
    f.hear(Heard { rtt_us: 50_000, ..amid(40) });
    assert_ne!(f.mode(), PROBE_RTT);
    // In PROBE_RTT it ends that, if the time is over.
    let mut f = Bbr::cruising(&[]);
    f.hear(Heard { after_us: 5_000_000, rtt_us: 50_000, inflight: 20, ..amid(40) });
    f.hear(Heard { inflight: 20, ..amid(40) });
    assert_eq!(f.mode(), PROBE_RTT);
    let mut soon = f.clone();
    soon.conn.now_us += 200_000;
    soon.cc.on_event(&mut soon.conn, Event::TxStart);
    assert_eq!(soon.mode(), PROBE_RTT);
    f.conn.now_us += 200_001;
    f.cc.on_event(&mut f.conn, Event::TxStart);
    assert_eq!((f.mode(), f.w()), (CRUISE, 80));
}

/// The window stays in recovery, as far as the model lets it; after it, it is again what it was.
#[test]
fn recovery_leaves_the_window_to_the_model() {
    let mut f = Bbr::cruising(&[]);
    assert_eq!((f.recovery(), f.w()), (80, 80));
    f.hear(Heard { lost: 1, ..amid(40) });
    assert_eq!(f.w(), 80);
    f.conn.cwnd_pkts = 30;
    f.conn.phase = Phase::Open as u8;
    f.hear(amid(40));
    assert_eq!(f.w(), 80);
}

/// A loss that no ACK told of counts as one (BB-b); a congestion mark is none.
#[test]
fn a_loss_that_a_timer_found_counts() {
    let after = |phase: Phase| {
        let mut f = Bbr::cruising(&[]);
        f.rounds(1, 32, 40);
        f.recovery();
        f.conn.phase = phase as u8;
        f.hear(amid(32));
        f.rounds(1, 32, 40);
        f.bw_pps()
    };
    assert_eq!((after(Phase::Recovery), after(Phase::Cwr)), (800, 1000));
}

/// After a timeout the window is the stack's 1, and grows by the packets acknowledged, from at least 4;
/// when all is repaired it has its earlier value.
#[test]
fn a_timeout_starts_from_the_smallest_window() {
    let mut f = Bbr::cruising(&[]);
    f.recovery();
    f.cc.on_event(&mut f.conn, Event::Rto);
    (f.conn.cwnd_pkts, f.conn.phase) = (1, Phase::Loss as u8);
    f.hear(Heard { inflight: 0, ..amid(40) });
    assert_eq!(f.w(), 4);
    f.hear(Heard { inflight: 3, ..amid(40) });
    assert_eq!(f.w(), 5);
    f.conn.phase = Phase::Open as u8;
    f.hear(Heard { inflight: 3, ..amid(40) });
    assert_eq!(f.w(), 80);
}

/// Section 5.5.11.2: the bounds are as they were, and a probe that a loss ended begins again.
#[test]
fn undo_goes_back_to_the_model_before() {
    let mut f = Bbr::probing(&[]);
    let before = f.w();
    f.recovery();
    f.hear(Heard { lost: 1, since: 40, inflight: 60, ..amid(40) });
    assert_eq!((f.mode(), f.inflight_longterm(), f.w()), (DOWN, 40, 40));
    assert_eq!(f.cc.undo(&mut f.conn), before);
    assert_eq!((f.mode(), f.inflight_longterm()), (REFILL, 0));
    f.conn.phase = Phase::Open as u8;
    // A round of its own, from the next ACK on.
    f.hear(amid(40));
    assert_eq!(f.mode(), REFILL);
    f.rounds(1, 40, 60);
    assert_eq!(f.mode(), UP);

    // Startup continues.
    let mut f = Bbr::new();
    f.rounds(1, 20, 100);
    f.rounds(1, 40, 100);
    f.recovery();
    (0..6).for_each(|_| {
        f.hear(Heard { lost: 1, inflight: 100, ..amid(40) });
    });
    f.rounds(1, 60, 100);
    assert_eq!((f.mode(), f.inflight_longterm()), (DRAIN, 60));
    f.cc.undo(&mut f.conn);
    assert_eq!((f.mode(), f.inflight_longterm()), (STARTUP, 0));
}

/// Without a sample there is no round and no rate, whatever the rest says.
#[test]
fn no_sample_teaches_nothing() {
    let mut f = Bbr::cruising(&[]);
    let notes = f.hear(Heard { over_us: 0, ..round(90) });
    assert_eq!((notes, f.bw_pps(), f.mode()), (0, 1000, CRUISE));
}

/// Section 5.6.4.2 and 5.5.8: at a small BDP three quanta of two packets, at least `min_cwnd`.
#[test]
fn small_windows_hold_quanta() {
    let mut f = Bbr::new();
    f.rounds(5, 1, 1);
    assert_eq!((f.bw_pps(), f.w()), (25, 6));
    let mut f = Bbr::with(&[("quanta", 0)]);
    f.rounds(5, 1, 1);
    assert_eq!(f.w(), 4);
}

/// The extremes of each number fit: the largest rate and RTT, and the smallest.
#[test]
fn ranges() {
    let mut f = Bbr::new();
    f.conn.mss_bytes = 65_535;
    let most = Heard { acked: u32::MAX, since: u32::MAX, over_us: 1, ..round(40) };
    f.rounds(1, 40, 40);
    f.hear(most);
    assert_eq!(f.bw_pps(), u32::MAX >> 6);
    // 2^40 bytes/s at most, before gains.
    assert_eq!(f.conn.pacing_bytes_per_s, (1u64 << 40) * 277 / 100 * 99 / 100);
    f.hear(Heard { rtt_us: i32::MAX, ..most });
    f.hear(Heard { rtt_us: 0, ..round(40) });
    assert_eq!(f.min_rtt_us(), 1);
    assert!(f.w() <= f.conn.cwnd_max_pkts);
}
