//! ABSE, the bandwidth estimator of F-TCP (`cc/include/knee/abse.h`): its rules against values worked
//! out by hand, and the whole against its equations in floating point with every ACK remembered.
//!
//! "ABSE": Wang et al., Globecom 2002; "F-TCP paper": Sansa-Otim et al., ICN 2010. It is driven
//! through `ftcp`, whose state begins with the estimator's.

#[allow(dead_code)] // each file of tests uses its part
mod common;

use common::params;
use knee_cc::{Ack, Conn, Controller};
use std::collections::VecDeque;

/// Parameters by name, raw values.
type Given<'a> = &'a [(&'a str, u64)];

const LAST_TWO_ACKS: (&str, u64) = ("sampling", 1);
const FTCP_TEXT: (&str, u64) = ("agility", 1);
const ZERO_SAMPLES: (&str, u64) = ("idle", 1);
const FIRST_SAMPLE: (&str, u64) = ("be_start", 1);
/// Every time is at most this (`CC_TIME_MAX_US`).
const TIME_MAX_US: f64 = 16_777_215.0;

/// A float of `cc/include/knee/abse.h`, whose unit is 2^-24.
fn float(code: u32, bits: u32) -> f64 {
    let significand = f64::from((code % (1 << bits)) + (1 << bits));
    (significand * 2_f64.powi((code >> bits) as i32) - f64::from(1_u32 << bits)) / 2_f64.powi(24)
}

/// One ACK as the estimator sees it.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    now_us: u64,
    pkts: u32,
    rtt_us: u32,
    srtt_us: u32,
    cwnd_pkts: u32,
}

/// The estimator under test.
#[derive(Clone)]
struct Estimator {
    conn: Conn,
    cc: Controller,
    at: Arrival,
}

impl Estimator {
    /// On a connection of RTT 100 ms without a queue, at a window that needs no more than the last
    /// two ACKs.
    fn new(given: Given) -> Self {
        let mut conn = Conn { cwnd_max_pkts: 1 << 30, ..Conn::default() };
        conn.cwnd_pkts = 10;
        conn.ssthresh_pkts = 10;
        let cc = Controller::new(params("ftcp", given), &mut conn);
        let at = Arrival { now_us: 0, pkts: 0, rtt_us: 100_000, srtt_us: 100_000, cwnd_pkts: 10 };
        Self { conn, cc, at }
    }

    /// An estimator that has just taken in a first sample of `rate` packets/s over 100 ms.
    fn estimating(given: Given, rate: u32) -> Self {
        let given: Vec<_> = given.iter().chain(&[FIRST_SAMPLE]).copied().collect();
        let mut new = Self::new(&given);
        new.after(0, 1);
        new.after(100_000, rate / 10);
        new
    }

    fn take(&mut self, arrival: Arrival) {
        self.at = arrival;
        self.conn.now_us = arrival.now_us;
        self.conn.srtt_us = arrival.srtt_us;
        self.conn.cwnd_pkts = arrival.cwnd_pkts;
        let rtt_us = arrival.rtt_us as i32;
        let ack = Ack { acked_pkts: arrival.pkts, rtt_us, ..Ack::default() };
        self.cc.on_rtt(&mut self.conn, &ack);
    }

    /// An ACK of `pkts`, `us` after the one before.
    fn after(&mut self, us: u64, pkts: u32) {
        self.take(Arrival { now_us: self.at.now_us + us, pkts, ..self.at });
    }

    fn word(&self, offset: usize) -> u32 {
        let bytes = self.cc.state().bytes();
        u32::from_ne_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"))
    }

    /// BE, packets/s.
    fn be(&self) -> f64 {
        let bytes = self.cc.state().bytes()[..8].try_into().expect("eight bytes");
        u64::from_ne_bytes(bytes) as f64 / f64::from(1 << 24)
    }

    /// The latest sample s, packets/s.
    fn s(&self) -> f64 {
        float(self.word(32), 26)
    }

    /// Th, packets/s.
    fn th(&self) -> f64 {
        f64::from(self.word(28)) / 256.0
    }

    /// U / Umax.
    fn instability(&self) -> f64 {
        f64::from(self.cc.observe()[3]) / 1e6
    }
}

/// Fails unless the value is the one worked out by hand, to `parts` of it.
#[track_caller]
fn assert_near(value: f64, hand: f64, parts: f64, case: &str) {
    assert!((value - hand).abs() <= parts * hand.abs(), "{case}: {value}, by hand {hand}");
}

// ---------------------------------------------------------------------------------------------
// The filter
// ---------------------------------------------------------------------------------------------

/// BE <- a BE + (1 - a) s, a = (2 tau - dt) / (2 tau + dt).
#[test]
fn filter_with_constant_tau() {
    let mut e = Estimator::estimating(&[("tau_const", 100_000), LAST_TWO_ACKS], 1000);
    assert_near(e.be(), 1000.0, 1e-12, "first sample: 100 / 0.1 s");
    // a = (200 - 100) / (200 + 100) = 1/3: 1000 / 3 + 400 * 2/3.
    e.after(100_000, 40);
    assert_near(e.be(), 600.0, 1e-9, "400/s for 0.1 s");
    // a = (200 - 10) / (200 + 10) = 19/21: 600 * 19/21 + 4000 * 2/21.
    e.after(10_000, 40);
    assert_near(e.be(), 600.0 * 19.0 / 21.0 + 4000.0 * 2.0 / 21.0, 1e-8, "4000/s for 10 ms");
    // The same rates with tau = 1 s: a = 1.9 / 2.1, then 1.99 / 2.01.
    let mut e = Estimator::estimating(&[("tau_const", 1_000_000), LAST_TWO_ACKS], 1000);
    e.after(100_000, 40);
    let by_hand = 1000.0 * 19.0 / 21.0 + 400.0 * 2.0 / 21.0;
    assert_near(e.be(), by_hand, 1e-8, "tau = 1 s, 400/s");
    e.after(10_000, 40);
    assert_near(e.be(), by_hand * 199.0 / 201.0 + 4000.0 * 2.0 / 201.0, 1e-7, "4000/s");
}

/// AB-a: from 0, the first sample counts as any other: 1000 * (1 - 1/3).
#[test]
fn filter_from_zero() {
    let mut e = Estimator::new(&[("tau_const", 100_000), LAST_TWO_ACKS]);
    e.after(0, 1);
    e.after(100_000, 100);
    assert_near(e.be(), 2000.0 / 3.0, 1e-9, "be_start = zero");
}

/// A gap of up to two RTTs, or twice a longer constant tau, is a sample, with a = 0 beyond 2 tau. A
/// longer one is a pause: BE is held, or samples of 0 come every tau/2, each leaving (2 - 1/2) /
/// (2 + 1/2) = 3/5. AB-c.
#[test]
fn gaps_and_pauses() {
    // tau = 20 ms, RTT = 100 ms.
    for idle in [
        &[("tau_const", 20_000), LAST_TWO_ACKS][..],
        &[("tau_const", 20_000), LAST_TWO_ACKS, ZERO_SAMPLES],
    ] {
        for gap_us in [40_000, 100_000, 200_000] {
            let mut e = Estimator::estimating(idle, 1000);
            e.after(gap_us, 6);
            assert_near(e.be(), 6e6 / gap_us as f64, 1e-9, "a = 0");
        }
    }
    // tau = 100 ms: a = 0 at 200 ms, a pause above.
    for (gap_us, held, zeroed) in [
        (200_000, 30.0, 30.0), // 6 / 0.2 s
        (200_001, 1000.0, 1000.0 * 0.6_f64.powi(4)),
        (300_000, 1000.0, 1000.0 * 0.6_f64.powi(6)),
        (349_999, 1000.0, 1000.0 * 0.6_f64.powi(6)),
        (350_000, 1000.0, 1000.0 * 0.6_f64.powi(7)),
        (2_000_000, 1000.0, 1000.0 * 0.6_f64.powi(40)),
        (3_600_000_000, 1000.0, 1000.0 * 0.6_f64.powi(40)), // an hour
    ] {
        for (given, by_hand) in [
            (&[("tau_const", 100_000), LAST_TWO_ACKS][..], held),
            (&[("tau_const", 100_000), LAST_TWO_ACKS, ZERO_SAMPLES], zeroed),
        ] {
            let mut e = Estimator::estimating(given, 1000);
            e.after(gap_us, 6);
            // The smallest is 1.3e-6 packets/s: 22 units of the fixed point.
            assert_near(e.be(), by_hand, if by_hand > 1.0 { 1e-8 } else { 0.3 }, "pause");
            assert_eq!(e.s() < 999.0, gap_us == 200_000, "a pause gives no sample");
            let before = e.be();
            e.after(100_000, 100);
            let filtered = before / 3.0 + 1000.0 * 2.0 / 3.0;
            assert_near(e.be(), filtered, 1e-8, "and goes on from there");
        }
    }
    // tau = 1 s: 2 s are a gap still. a = 0 there: 6 / 2 s; at 0.2 s it is 1.8 / 2.2.
    for (gap_us, by_hand) in
        [(200_000, 1000.0 * 9.0 / 11.0 + 30.0 * 2.0 / 11.0), (2_000_000, 3.0), (2_000_001, 1000.0)]
    {
        let mut e = Estimator::estimating(&[("tau_const", 1_000_000), LAST_TWO_ACKS], 1000);
        e.after(gap_us, 6);
        assert_near(e.be(), by_hand, 1e-7, "tau = 1 s");
    }
    // tau adaptive, RTT = 100 ms: 200 ms of almost nothing are a sample, of which U = Umax makes
    // tau = 1.1 s: a = 2 / 2.4. A longer gap is a pause, however unstable it was before.
    for (gap_us, by_hand) in
        [(200_000, 1000.0 * 5.0 / 6.0 + 30.0 / 6.0), (200_001, 1000.0), (1_500_000, 1000.0)]
    {
        let mut e = Estimator::estimating(&[LAST_TWO_ACKS], 1000);
        e.after(gap_us, 6);
        assert_near(e.be(), by_hand, 1e-7, "tau adaptive");
    }
    // Samples of 0 every 50 ms where tau = RTT = 100 ms, U being 0.
    let mut e = Estimator::estimating(&[LAST_TWO_ACKS, ZERO_SAMPLES], 1000);
    e.after(300_000, 6);
    assert_near(e.be(), 1000.0 * 0.6_f64.powi(6), 1e-8, "tau adaptive, zero samples");
}

/// ACKs in the same microsecond as one before count with the next: 5 + 1 + 40 packets in 0.1 s. AB-b.
#[test]
fn several_acks_in_one_microsecond() {
    for given in [&[("tau_const", 100_000), LAST_TWO_ACKS][..], &[("tau_const", 100_000)]] {
        let mut e = Estimator::estimating(given, 1000);
        e.after(0, 5);
        e.after(0, 1);
        assert_near(e.be(), 1000.0, 1e-9, "nothing yet");
        e.after(100_000, 40);
        assert_near(e.s(), 460.0, 1e-7, "(5 + 1 + 40) / 0.1 s");
        assert_near(e.be(), 1000.0 / 3.0 + 460.0 * 2.0 / 3.0, 1e-7, "a = 1/3");
        e.after(100_000, 40);
        assert_near(e.s(), 400.0, 1e-7, "once");
    }
    let mut e = Estimator::new(&[LAST_TWO_ACKS, FIRST_SAMPLE]);
    e.after(0, 1);
    e.after(0, 1);
    assert_eq!(e.be(), 0.0, "no interval yet");
    e.after(100_000, 99);
    assert_near(e.be(), 1000.0, 1e-9, "(1 + 99) / 0.1 s");
}

/// One packet an hour later, or a million at once: finite values stay finite and in proportion.
#[test]
fn extreme_acks() {
    let mut e = Estimator::estimating(&[("tau_const", 10_000_000), LAST_TWO_ACKS], 1000);
    e.after(1, 1_000_000); // 10^12/s, taken as 2^30/s, at a weight of 2 / 20 000 001
    assert_near(e.be(), 1000.0 + 2.0 / 20_000_001.0 * 2_f64.powi(30), 1e-3, "2^30 packets/s");
    for pkts in [u32::MAX, 1 << 30] {
        let mut e = Estimator::estimating(&[("tau_const", 1), LAST_TWO_ACKS], 1000);
        for _ in 0..100 {
            e.after(0, pkts);
            e.after(1, pkts);
        }
        assert_near(e.be(), 2_f64.powi(30), 1e-9, "the largest rate");
    }
    let mut e = Estimator::new(&[LAST_TWO_ACKS, FIRST_SAMPLE]);
    e.after(0, 1);
    e.after(1, 1000);
    assert_near(e.be(), 2_f64.powi(24), 1e-9, "the largest rate that a start believes");
}

/// ACKs that deliver nothing, or that come before an RTT is known, leave everything as it was. AB-e.
#[test]
fn acks_that_do_not_count() {
    let mut e = Estimator::estimating(&[LAST_TWO_ACKS], 1000);
    let before = *e.cc.state();
    e.after(50_000, 0);
    assert_eq!(*e.cc.state(), before);
    e.after(50_000, 100);
    assert_near(e.s(), 1000.0, 1e-9, "100 in 0.1 s");
    let mut e = Estimator::new(&[LAST_TWO_ACKS, FIRST_SAMPLE]);
    e.at.srtt_us = 0;
    e.after(0, 1);
    e.after(100_000, 100);
    e.at.srtt_us = 100_000;
    e.after(100_000, 100);
    assert_eq!(e.be(), 0.0, "the first ACK that counts");
    e.after(100_000, 70);
    assert_near(e.be(), 700.0, 1e-9, "70 in 0.1 s");
}

/// Only differences of the clock count, also where its low 32 bits wrap.
#[test]
fn clock_wraps() {
    let run = |origin_us: u64| {
        let mut e = Estimator::new(&[]);
        e.at.now_us = origin_us;
        e.at.cwnd_pkts = 30;
        let mut seen = Vec::new();
        for i in 0..2000_u32 {
            e.after(1000 + u64::from(i % 7) * 100, 1 + i % 3);
            seen.push(e.be());
        }
        seen
    };
    assert_eq!(run(0), run((1 << 32) - 1_000_000));
}

// ---------------------------------------------------------------------------------------------
// Instability and agility: F-TCP paper eq. 1; ABSE
// ---------------------------------------------------------------------------------------------

/// U = 0.6 U + 0.4 |s - s before|; tau = RTT + 10 RTT U / Umax. Samples 1000, 400, 400, 700 /s, each
/// over 0.1 s, which is the RTT.
#[test]
fn tau_follows_the_instability() {
    let mut e = Estimator::estimating(&[LAST_TWO_ACKS], 1000);
    assert_eq!(e.instability(), 0.0);
    // U = 0.4 * 600 = 240 = Umax: tau = 1.1 s, a = 2.1 / 2.3.
    e.after(100_000, 40);
    let mut be = 1000.0 * 21.0 / 23.0 + 400.0 * 2.0 / 23.0;
    assert_near(e.instability(), 1.0, 0.0, "U = Umax");
    assert_near(e.be(), be, 1e-7, "s = 400");
    // U = 144 = 0.6 Umax: tau = 0.7 s, a = 1.3 / 1.5.
    e.after(100_000, 40);
    be = be * 13.0 / 15.0 + 400.0 * 2.0 / 15.0;
    assert_near(e.instability(), 0.6, 5e-4, "U = 144");
    assert_near(e.be(), be, 1e-4, "s = 400 again");
    // U = 86.4 + 120 = 206.4 = 0.86 Umax: tau = 0.96 s, a = 1.82 / 2.02.
    e.after(100_000, 70);
    be = be * 182.0 / 202.0 + 700.0 * 20.0 / 202.0;
    assert_near(e.instability(), 0.86, 1e-3, "U = 206.4");
    assert_near(e.be(), be, 2e-4, "s = 700");
}

/// FT-j: the F-TCP paper's text has tau shrink with U: tau = RTT + 10 RTT (1 - U / Umax).
#[test]
fn agility_of_the_ftcp_text() {
    let mut e = Estimator::estimating(&[LAST_TWO_ACKS, FTCP_TEXT], 1000);
    // U = Umax: tau = 0.1 s, a = 1/3.
    e.after(100_000, 40);
    assert_near(e.be(), 600.0, 1e-8, "s = 400");
    // U = 0.6 Umax: tau = 0.5 s, a = 0.9 / 1.1.
    e.after(100_000, 40);
    assert_near(e.be(), 600.0 * 9.0 / 11.0 + 400.0 * 2.0 / 11.0, 2e-4, "s = 400 again");
    // Nothing ever unstable: U / Umax = 0 (AB-d), tau = 1.1 s.
    let mut e = Estimator::new(&[LAST_TWO_ACKS, FTCP_TEXT]);
    e.after(0, 1);
    for sample in 1..=20 {
        e.after(100_000, 100);
        let by_hand = 1000.0 * (1.0 - (21.0_f64 / 23.0).powi(sample));
        assert_near(e.be(), by_hand, 1e-7, "U = Umax = 0");
    }
}

/// N = 0 makes tau the RTT; N = 2.5 makes it 3.5 RTT at U = Umax.
#[test]
fn agility_n() {
    let mut e = Estimator::estimating(&[LAST_TWO_ACKS, ("agility_n", 0)], 1000);
    e.after(100_000, 40);
    assert_near(e.be(), 600.0, 1e-8, "a = 1/3");
    let mut e = Estimator::estimating(&[LAST_TWO_ACKS, ("agility_n", 2_500_000)], 1000);
    e.after(100_000, 40);
    assert_near(e.be(), 1000.0 * 0.75 + 400.0 * 0.25, 1e-8, "a = (0.7 - 0.1) / (0.7 + 0.1)");
    // The longest tau: 16 s RTT, N = 100, held at 16.777215 s; a dt of 0.1 s.
    let mut e = Estimator::estimating(&[LAST_TWO_ACKS, ("agility_n", 100_000_000)], 1000);
    e.at.srtt_us = 16_000_000;
    e.after(100_000, 40);
    let weight = 0.2 / (2.0 * TIME_MAX_US / 1e6 + 0.1);
    assert_near(e.be(), 1000.0 - 600.0 * weight, 1e-8, "tau = 2^24 - 1 us");
}

/// Umax is the largest of the ten most recent U, the present one among them: once a single change
/// was n samples ago, U / Umax = 0.6^n for n <= 9, and 0.6^9 ever after, since U keeps falling.
#[test]
fn largest_of_the_ten_most_recent() {
    for (given, beta) in [
        (&[LAST_TWO_ACKS][..], 0.6_f64),
        (&[LAST_TWO_ACKS, ("beta_u", 0)], 0.0),
        (&[LAST_TWO_ACKS, ("beta_u", 990_000)], 0.99),
    ] {
        let mut e = Estimator::estimating(given, 1000);
        e.after(100_000, 40);
        for n in 0..200_i32 {
            let by_hand = beta.powi(n.min(9));
            // The significand has 11 bits, rounded at each of the steps behind U.
            let rounding = 0.0005 * f64::from(n.min(9) + 1);
            assert_near(e.instability(), by_hand, rounding, &format!("{n} samples ago"));
            e.after(100_000, 40);
        }
    }
}

// ---------------------------------------------------------------------------------------------
// Sampling interval: ABSE
// ---------------------------------------------------------------------------------------------

/// 1000 packets/s, one by one, with RTT 100 ms and RTTmin 80 ms.
fn backlogged(given: Given, cwnd_pkts: u32) -> Estimator {
    let given: Vec<_> = given.iter().chain(&[("tau_const", 100_000)]).copied().collect();
    let mut e = Estimator::new(&given);
    e.at = Arrival { rtt_us: 80_000, cwnd_pkts, ..e.at };
    for _ in 0..2000 {
        e.after(1000, 1);
    }
    e
}

/// Th = 1000/s needs 80 packets. At a window of 100, T = 100 ms (100 - 80) / 100 = 20 ms. An ACK of
/// 10 packets then: Th = 0.6 * 1000 + 0.4 * 1090 = 1036/s, T = 100 (100 - 82.88) / 100 = 17.12 ms,
/// in which it and 16.12 ms of single packets lie: s = 26.12 / 17.12 ms. At a window of 80 there is
/// no backlog: s = 10 / 1 ms.
#[test]
fn interval_grows_with_the_backlog() {
    let mut e = backlogged(&[], 100);
    assert_near(e.th(), 1000.0, 1e-3, "Th");
    assert_near(e.s(), 1000.0, 1e-3, "s");
    assert_near(e.be(), 1000.0, 1e-3, "BE");
    e.after(1000, 10);
    assert_near(e.th(), 1036.0, 1e-3, "Th with 10 more");
    assert_near(e.s(), 26.12 / 0.01712, 5e-3, "over T");
    for cwnd_pkts in [80, 2] {
        let mut e = backlogged(&[], cwnd_pkts);
        e.after(1000, 10);
        assert_near(e.s(), 10_000.0, 1e-6, "no backlog: the last two ACKs");
    }
    // A window of which nothing is needed: T is the RTT. 1000/s * 0.1 s + 9 more.
    let mut e = backlogged(&[], 1 << 20);
    e.after(1000, 10);
    assert_near(e.s(), 1090.0, 1e-3, "all backlog: one RTT");
    let mut e = backlogged(&[LAST_TWO_ACKS], 100);
    e.after(1000, 10);
    assert_near(e.s(), 10_000.0, 1e-6, "sampling = last_two_acks");
}

/// Th = eps Th + (1 - eps) (packets of the last RTT) / RTT, from 0. Ten ACKs of 100 packets, 1 ms
/// apart.
#[test]
fn throughput_of_the_last_rtt() {
    for (given, epsilon) in
        [(&[][..], 0.6), (&[("epsilon", 0)], 0.0), (&[("epsilon", 990_000)], 0.99)]
    {
        let mut e = Estimator::new(given);
        e.after(0, 7);
        assert_eq!(e.th(), 0.0, "the first ACK starts the clock");
        let mut th = 0.0;
        for n in 1..=10 {
            e.after(1000, 100);
            th = epsilon * th + (1.0 - epsilon) * f64::from(n) * 1000.0;
            assert_near(e.th(), th, 1e-3, &format!("ACK {n}"));
        }
        // 100 packets in 200 ms: 50 in the last RTT, and none of the others. AB-f.
        e.after(200_000, 100);
        th = epsilon * th + (1.0 - epsilon) * 500.0;
        assert_near(e.th(), th, 1e-3, "after a gap");
    }
}

// ---------------------------------------------------------------------------------------------
// The equations with every ACK remembered
// ---------------------------------------------------------------------------------------------

/// The reference's parameters; their defaults.
#[derive(Clone, Copy, Debug)]
struct Equations {
    tau_const_s: Option<f64>,
    ftcp_text: bool,
    last_two_acks: bool,
    beta: f64,
    first_sample: bool,
    /// Packets count at the time of their ACK, not evenly over the time since the one before.
    whole_acks: bool,
}

const DEFAULT: Equations = Equations {
    tau_const_s: None,
    ftcp_text: false,
    last_two_acks: false,
    beta: 0.6,
    first_sample: false,
    whole_acks: false,
};

impl Equations {
    fn given(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("tau_const", self.tau_const_s.map_or(0, |s| (s * 1e6) as u64)),
            ("agility", u64::from(self.ftcp_text)),
            ("sampling", u64::from(self.last_two_acks)),
            ("beta_u", (self.beta * 1e6) as u64),
            ("be_start", u64::from(self.first_sample)),
        ]
    }
}

/// ABSE in floating point, seconds and packets/s.
struct Reference {
    eq: Equations,
    /// Time of each ACK and the packets delivered up to and with it.
    history: Vec<(u64, u64)>,
    /// Packets of ACKs in the same microsecond as the latest of these.
    waiting: u32,
    rtt_min_us: u32,
    th: f64,
    s: Option<f64>,
    /// The ten most recent U, newest first.
    u: VecDeque<f64>,
    be: Option<f64>,
}

impl Reference {
    fn new(eq: Equations) -> Self {
        let u = VecDeque::from(vec![0.0; 10]);
        let (history, rtt_min_us) = (Vec::new(), u32::MAX);
        Self { eq, history, waiting: 0, rtt_min_us, th: 0.0, s: None, u, be: None }
    }

    /// Packets delivered after `now - window`.
    fn packets(&self, now_us: u64, window_s: f64) -> f64 {
        let age_s = |t_us: u64| (now_us - t_us) as f64 / 1e6;
        let old = self.history.partition_point(|(t_us, _)| age_s(*t_us) >= window_s);
        let total = self.history.last().map_or(0, |(_, sum)| *sum);
        let Some((old_us, gone)) = old.checked_sub(1).map(|i| self.history[i]) else {
            return total as f64;
        };
        let mut part_gone = 0.0;
        if let (false, Some((next_us, next))) = (self.eq.whole_acks, self.history.get(old)) {
            let interval_s = age_s(old_us) - age_s(*next_us);
            part_gone = (next - gone) as f64 * (age_s(old_us) - window_s) / interval_s;
        }
        (total - gone) as f64 - part_gone
    }

    fn tau_s(&self, rtt_s: f64) -> f64 {
        let u_max = self.u.iter().fold(0.0_f64, |max, u| max.max(*u));
        let instability = if u_max > 0.0 { self.u[0] / u_max } else { 0.0 };
        let slowed = if self.eq.ftcp_text { 1.0 - instability } else { instability };
        self.eq.tau_const_s.unwrap_or((rtt_s * (1.0 + 10.0 * slowed)).min(TIME_MAX_US / 1e6))
    }

    fn take(&mut self, a: Arrival) {
        let rtt_s = f64::from(a.srtt_us) / 1e6;
        self.rtt_min_us = self.rtt_min_us.min(a.rtt_us);
        let Some((latest_us, delivered)) = self.history.last().copied() else {
            self.history.push((a.now_us, 0));
            return;
        };
        self.waiting += a.pkts;
        if a.now_us == latest_us {
            return;
        }
        let pkts = std::mem::take(&mut self.waiting);
        self.history.push((a.now_us, delivered + u64::from(pkts)));
        self.th = 0.6 * self.th + 0.4 * self.packets(a.now_us, rtt_s) / rtt_s;
        let dt_s = (a.now_us - latest_us) as f64 / 1e6;
        if dt_s > 2.0 * self.eq.tau_const_s.unwrap_or(0.0).max(rtt_s) {
            return;
        }
        let cwnd = f64::from(a.cwnd_pkts);
        let backlog = (cwnd - self.th * f64::from(self.rtt_min_us) / 1e6).max(0.0);
        // In whole microseconds, as all times are.
        let backlog_s = (rtt_s * backlog / cwnd * 1e6).floor() / 1e6;
        let t_s = if self.eq.last_two_acks { dt_s } else { backlog_s.max(dt_s) };
        let delivered = if t_s == dt_s { f64::from(pkts) } else { self.packets(a.now_us, t_s) };
        let s = delivered / t_s;
        if let Some(before) = self.s {
            let u = self.eq.beta * self.u[0] + (1.0 - self.eq.beta) * (s - before).abs();
            self.u.push_front(u);
            self.u.truncate(10);
            // With constant samples U falls for ever; only U / Umax counts.
            if u > 0.0 && u < 1e-200 {
                self.u.iter_mut().for_each(|u| *u *= 1e100);
            }
        }
        self.s = Some(s);
        let tau_s = self.tau_s(rtt_s);
        let alpha = ((2.0 * tau_s - dt_s) / (2.0 * tau_s + dt_s)).max(0.0);
        let before = self.be.unwrap_or(if self.eq.first_sample { s } else { 0.0 });
        self.be = Some(alpha * before + (1.0 - alpha) * s);
    }
}

/// A sender of a given window on one bottleneck: the ACKs that it gets.
struct Path {
    /// Packets/s, by the time in seconds.
    rate: fn(&Self, f64) -> f64,
    /// Packets, by the time in seconds.
    window: fn(&Self, f64) -> f64,
    /// True while the application sends.
    sends: fn(&Self, f64) -> bool,
    full_rate: f64,
    base_rtt_s: f64,
    /// Packets for which the receiver sends one ACK.
    stretch: usize,
    rtts: f64,
}

impl Path {
    fn bdp(&self) -> f64 {
        self.full_rate * self.base_rtt_s
    }

    /// Time in RTTs, where two packets at least are in flight.
    fn rtt_of(&self, t_s: f64) -> f64 {
        t_s / self.base_rtt_s.max(2.0 / self.full_rate)
    }

    fn arrivals(&self) -> Vec<Arrival> {
        let mut arrivals = Vec::new();
        let (mut now_s, mut free_s, mut srtt_s) = (0.0_f64, 0.0_f64, None);
        let mut flying: VecDeque<(f64, f64)> = VecDeque::new(); // sent, arrives
        while self.rtt_of(now_s) < self.rtts {
            let window = (self.window)(self, now_s).max(2.0) as usize;
            while flying.len() < window && (self.sends)(self, now_s) {
                free_s = free_s.max(now_s);
                free_s += 1.0 / (self.rate)(self, free_s);
                flying.push_back((now_s, free_s + self.base_rtt_s));
            }
            let pkts = self.stretch.min(flying.len());
            if pkts == 0 {
                now_s += self.base_rtt_s / 100.0;
                continue;
            }
            let (sent_s, arrives_s) = flying[pkts - 1];
            flying.drain(..pkts);
            now_s = arrives_s;
            let rtt_s = now_s - sent_s;
            let smoothed = srtt_s.map_or(rtt_s, |s: f64| s + (rtt_s - s) / 8.0);
            srtt_s = Some(smoothed);
            let us = |s: f64| (s * 1e6) as u32;
            arrivals.push(Arrival {
                now_us: (now_s * 1e6) as u64,
                pkts: pkts as u32,
                rtt_us: us(rtt_s),
                srtt_us: us(smoothed),
                cwnd_pkts: window as u32,
            });
        }
        arrivals
    }
}

/// The distance of BE from the equations, relative to them, after the first three RTTs.
#[derive(Clone, Copy, Debug, Default)]
struct Difference {
    largest: f64,
    root_mean_square: f64,
    of_means: f64,
}

/// `be` of each ACK against the equations' on the same path.
fn difference(path: &Path, eq: Equations, mut be: impl FnMut(Arrival) -> f64) -> Difference {
    let mut reference = Reference::new(eq);
    let (mut largest, mut squares, mut sum, mut exact_sum, mut n) = (0.0_f64, 0.0, 0.0, 0.0, 0);
    for a in path.arrivals() {
        let found = be(a);
        reference.take(a);
        let Some(exact) = reference.be else {
            assert_eq!(found, 0.0, "an estimate where there is none");
            continue;
        };
        if path.rtt_of(a.now_us as f64 / 1e6) < 3.0 {
            continue;
        }
        let relative = (found - exact).abs() / exact;
        largest = largest.max(relative);
        squares += relative * relative;
        sum += found;
        exact_sum += exact;
        n += 1;
    }
    assert!(n > 20, "ACKs");
    Difference {
        largest,
        root_mean_square: (squares / f64::from(n)).sqrt(),
        of_means: (sum / exact_sum - 1.0).abs(),
    }
}

/// The estimator's.
fn error(path: &Path, eq: Equations) -> Difference {
    let mut e = Estimator::new(&eq.given());
    difference(path, eq, |a| {
        e.take(a);
        e.be()
    })
}

const STEADY: fn(&Path, f64) -> f64 = |p, _| p.full_rate;
const ALWAYS: fn(&Path, f64) -> bool = |_, _| true;

/// Rates, windows and applications, from 1 Mbit/s to 10 Gbit/s.
fn paths(full_rate: f64, base_rtt_s: f64, stretch: usize) -> Vec<(&'static str, Path)> {
    let path = |rate, window, sends| Path {
        rate,
        window,
        sends,
        full_rate,
        base_rtt_s,
        stretch,
        rtts: 60.0,
    };
    // Down to a half at 20 RTTs, to a quarter at 30, up to all at 45.
    let steps: fn(&Path, f64) -> f64 = |p, t| match p.rtt_of(t) {
        rtts if !(20.0..45.0).contains(&rtts) => p.full_rate,
        rtts if rtts < 30.0 => p.full_rate / 2.0,
        _ => p.full_rate / 4.0,
    };
    vec![
        ("full pipe", path(STEADY, |p, _| p.bdp(), ALWAYS)),
        ("standing queue", path(STEADY, |p, _| 1.5 * p.bdp(), ALWAYS)),
        ("bursts", path(STEADY, |p, _| 0.3 * p.bdp(), ALWAYS)),
        ("steps of the rate", path(steps, |p, _| 1.2 * p.bdp(), ALWAYS)),
        ("steps of the rate below the window", path(steps, |p, _| 0.9 * p.bdp(), ALWAYS)),
        ("sawtooth", path(STEADY, |p, t| (0.7 + p.rtt_of(t) % 20.0 / 20.0) * p.bdp(), ALWAYS)),
        (
            "slow start",
            path(STEADY, |p, t| p.rtt_of(t).min(30.0).exp2().min(1.5 * p.bdp()), ALWAYS),
        ),
        // Longer and shorter than two RTTs.
        ("pauses", path(STEADY, |p, _| 1.1 * p.bdp(), |p, t| p.rtt_of(t) % 45.0 < 10.0)),
        ("gaps", path(STEADY, |p, _| 1.1 * p.bdp(), |p, t| p.rtt_of(t) % 5.0 < 4.0)),
    ]
}

/// 1 Mbit/s, 100 Mbit/s and 10 Gbit/s of 1000-byte packets, RTTs of 1 ms to 1 s, ACKs for 1 to 64
/// packets.
const GRID: [(f64, f64, usize); 12] = [
    (125.0, 0.001, 1),
    (125.0, 0.04, 1),
    (125.0, 1.0, 1),
    (125.0, 1.0, 2),
    (12_500.0, 0.001, 1),
    (12_500.0, 0.04, 1),
    (12_500.0, 0.04, 2),
    (12_500.0, 0.04, 16),
    (12_500.0, 1.0, 2),
    (1_250_000.0, 0.001, 1),
    (1_250_000.0, 0.001, 40),
    (1_250_000.0, 0.04, 64),
];

/// The largest of each over the grid, but for the paths left out.
fn over_the_grid(left_out: &[&str], difference: impl Fn(&Path) -> Difference) -> Difference {
    let mut most = Difference::default();
    for (full_rate, base_rtt_s, stretch) in GRID {
        for (name, path) in paths(full_rate, base_rtt_s, stretch) {
            if left_out.contains(&name) {
                continue;
            }
            let d = difference(&path);
            most.largest = most.largest.max(d.largest);
            most.root_mean_square = most.root_mean_square.max(d.root_mean_square);
            most.of_means = most.of_means.max(d.of_means);
        }
    }
    most
}

#[track_caller]
fn assert_within(found: Difference, largest: f64, root_mean_square: f64, of_means: f64) {
    assert!(
        found.largest <= largest
            && found.root_mean_square <= root_mean_square
            && found.of_means <= of_means,
        "{found:?}"
    );
}

const TWO_ACKS: Equations = Equations { last_two_acks: true, first_sample: true, ..DEFAULT };

/// Fig. 1 (a) and (b): rounding only.
#[test]
fn close_to_the_equations_with_constant_tau() {
    for tau_s in [0.1, 1.0] {
        let eq = Equations { tau_const_s: Some(tau_s), ..TWO_ACKS };
        assert_within(over_the_grid(&[], |path| error(path, eq)), 3e-6, 3e-6, 3e-6);
    }
}

/// Fig. 1 (c) and (d): U has 11 significant bits. Where BE itself falls to little in a gap, that is
/// more of it.
#[test]
fn close_to_the_equations_with_adaptive_tau() {
    let gaps = ["slow start", "gaps"];
    for beta in [0.6, 0.8] {
        let eq = Equations { beta, ..TWO_ACKS };
        assert_within(over_the_grid(&gaps, |path| error(path, eq)), 1e-3, 3e-4, 2e-4);
        assert_within(over_the_grid(&[], |path| error(path, eq)), 5e-2, 1e-2, 2e-3);
    }
    let eq = Equations { ftcp_text: true, ..TWO_ACKS };
    assert_within(over_the_grid(&[], |path| error(path, eq)), 0.15, 0.03, 0.01);
}

/// Adaptive sampling with tau = RTT: the error of six straight pieces for an RTT.
#[test]
fn near_the_equations_with_adaptive_sampling() {
    let error =
        |path: &Path| error(path, Equations { tau_const_s: Some(path.base_rtt_s), ..DEFAULT });
    assert_within(over_the_grid(&[], error), 0.06, 0.01, 0.008);
}

/// ACKs that come as one train per round trip, `pkts` at 12 500 packets/s, of which a queue of
/// others makes RTTs `queue_us` longer than 140 ms after the first ten.
fn trains(pkts: u32, queue_us: u32) -> Vec<Arrival> {
    let (mut arrivals, mut start_us) = (Vec::new(), 0);
    for train in 0..60 {
        let rtt_us = 140_000 + if train < 10 { 0 } else { queue_us };
        for i in 1..=u64::from(pkts) {
            let now_us = start_us + 80 * i;
            arrivals.push(Arrival { now_us, pkts: 1, rtt_us, srtt_us: rtt_us, cwnd_pkts: pkts });
        }
        start_us += u64::from(rtt_us);
    }
    arrivals
}

/// The adaptive estimate for trains shorter than RTT/8: averaged over the ACKs, s is within 2 % of the
/// equations'. BE, which is 0.24 to 5.2 times the sending rate, is within 40 %. (Buckets of RTT/8 make
/// it nine times too large.) The rest of BE's error is tau: ACKs exactly 80 us apart make U / Umax that
/// of the last change, and the error of s makes it 1.
#[test]
fn near_the_equations_for_trains() {
    for queue_us in [2_000, 5_000, 10_000, 20_000] {
        for pkts in [10, 20, 40, 60, 80, 100, 120, 150, 180, 210] {
            let mut e = Estimator::new(&[]);
            let mut reference = Reference::new(DEFAULT);
            let (mut be, mut exact_be, mut s, mut exact_s) = (0.0, 0.0, 0.0, 0.0);
            for a in trains(pkts, queue_us) {
                e.take(a);
                reference.take(a);
                if a.now_us > 4_000_000 {
                    be += e.be();
                    exact_be += reference.be.unwrap_or(0.0);
                    s += e.s();
                    exact_s += reference.s.unwrap_or(0.0);
                }
            }
            let case = format!("BE, trains of {pkts} packets, queue of {queue_us} us");
            assert_near(be, exact_be, 0.4, &case);
            assert_near(s, exact_s, 0.02, &case.replace("BE", "s"));
        }
    }
}

/// AB-g: the largest U ever, where the default forgets one after ten samples. After one change,
/// n samples ago, U / Umax = 0.6^n.
#[test]
fn largest_ever() {
    let mut e = Estimator::estimating(&[LAST_TWO_ACKS, ("umax", 1)], 1000);
    e.after(100_000, 40);
    for n in 0..15_i32 {
        let by_hand = 0.6_f64.powi(n);
        assert_near(e.instability(), by_hand, 0.0005 * f64::from(n + 2), "U / Umax");
        e.after(100_000, 40);
    }
    // A larger one takes its place: U = 0.4 * 3960 = 6.6 times what the first was.
    e.after(100_000, 436);
    assert_near(e.instability(), 1.0, 0.0, "the largest");
}

/// All adaptive. U / Umax knows no scale: of a smooth stream of ACKs it amplifies whatever noise
/// there is. The equations themselves move by half of BE when smoothed RTTs are read 0 ... 2 us too
/// long, so that sums of less than all ACKs cannot be held to much.
#[test]
fn adaptive_tau_amplifies_noise() {
    for (ftcp_text, largest, root_mean_square, of_means) in
        [(false, 0.8, 0.45, 0.4), (true, 1.4, 0.65, 0.5)]
    {
        let eq = Equations { ftcp_text, ..DEFAULT };
        let found = over_the_grid(&[], |path| error(path, eq));
        assert_within(found, largest, root_mean_square, of_means);
        let shaken = over_the_grid(&[], |path| {
            let (mut reference, mut n) = (Reference::new(eq), 0);
            difference(path, eq, |a| {
                n = (n + 2) % 3;
                reference.take(Arrival { srtt_us: a.srtt_us + n, ..a });
                reference.be.unwrap_or(0.0)
            })
        });
        assert!(shaken.largest > 0.5 && shaken.root_mean_square > 0.2, "{shaken:?}");
    }
}

/// AB-f: counted at once, a packet counts for more wherever T is a little more than some ACK
/// intervals, and BE is off by more than its rounding, its buckets and its noise together.
#[test]
fn packets_counted_at_once_make_another_estimate() {
    let eq = Equations { whole_acks: true, ..DEFAULT };
    let found = over_the_grid(&[], |path| error(path, eq));
    assert_within(found, 3.5, 0.8, 0.8);
    assert!(found.largest > 2.0 && found.of_means > 0.5, "{found:?}");
}
