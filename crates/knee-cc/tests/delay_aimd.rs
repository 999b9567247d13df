//! Delay-based AIMD against values worked out by hand. "AIMD paper": Leith et al., PFLDnet 2007.
//! Queueing delays are microseconds above [`BASE_US`].

#[allow(dead_code)] // each file of tests uses its part
mod common;

use common::{BASE_US, Flow, NEVER, NO_SAMPLE, Notes, params};
use knee_cc::{Ack, Conn, NOTE_DELAY_BACKOFF, Phase, SSTHRESH_INFINITE};
use proptest::{prelude::*, test_runner::FileFailurePersistence};

const SECOND_US: u64 = 1_000_000;
const BASE: u32 = BASE_US as u32;

type Given = (&'static str, u64);
/// Section II alone: a fixed threshold, and backoffs as often as round trips allow.
const BASIC: [Given; 2] = [("gamma", 0), ("kappa", 0)];
/// RTTmax stays.
const NO_DECAY: Given = ("rtt_max_decay", 0);
/// The values of `alpha_scaling`, `slow_start`, `theta`, `signal`.
const SCALING_OFF: Given = ("alpha_scaling", 0);
const SCALING_FLOOR: Given = ("alpha_scaling", 2);
const NO_SLOW_START: Given = ("slow_start", 0);
const STANDARD_SLOW_START: Given = ("slow_start", 1);
const THETA_BASE: Given = ("theta", 1);
const SRTT: Given = ("signal", 1);

fn config() -> ProptestConfig {
    let failures = FileFailurePersistence::WithSource("regressions");
    ProptestConfig { failure_persistence: Some(Box::new(failures)), ..ProptestConfig::default() }
}

/// Parameters of the values worked out here; the defaults are chosen by fit.
const WORKED_OUT: [Given; 3] = [("delack_filter", 0), ("gamma", 500_000), ("kappa", 10_000_000)];

/// A flow that has measured [`BASE_US`] at time 0; every sample of it counts. It has a window of
/// packets outstanding.
fn flow(w: u32, ssthresh: u32, given: &[&[Given]]) -> Flow {
    let given = [&WORKED_OUT, given.concat().as_slice()].concat();
    let mut f = Flow::new(params("delay_aimd", &given), w, ssthresh);
    f.send(w);
    f.conn.cwnd_limited = 0; // the base sample is not to grow the window
    f.ack(1, 0, NEVER);
    f.send(1);
    f.conn.cwnd_limited = 1;
    // Late enough for a backoff, early enough for alpha = 1.
    f.conn.now_us = 900_000;
    f
}

fn basic(w: u32, given: &[Given]) -> Flow {
    flow(w, w, &[&BASIC, given])
}

/// One ACK of one packet.
fn ack(f: &mut Flow, q_us: impl Into<Option<u32>>) -> Notes {
    f.send(1);
    f.ack(1, q_us, NEVER)
}

fn backs_off(f: &mut Flow, q_us: u32) -> bool {
    ack(f, q_us) & NOTE_DELAY_BACKOFF != 0
}

fn q_us(f: &Flow) -> u32 {
    f.cc.observe()[0]
}

fn tau0_us(f: &Flow) -> u32 {
    f.cc.observe()[1]
}

fn rtt_min_us(f: &Flow) -> u32 {
    f.cc.observe()[3]
}

/// A loss now and the recovery from it. Gives the threshold.
fn loss(f: &mut Flow) -> u32 {
    let (ssthresh, _) = f.loss();
    f.recovered();
    ssthresh
}

/// Increase per round trip, times 2^16, on an ACK at `now_us` with delay `q_us`: the credit towards the
/// window's growth that 2^16 packets add. The flow is left as it is.
fn alpha_q16(f: &Flow, now_us: u64, q_us: u32) -> u64 {
    const WINDOW_PKTS: u32 = 1 << 30;
    let mut f = f.clone();
    f.conn = Conn {
        now_us,
        cwnd_pkts: WINDOW_PKTS,
        cwnd_max_pkts: i32::MAX as u32,
        cwnd_cnt: 0,
        ssthresh_pkts: 2,
        cwnd_limited: 1,
        ..f.conn
    };
    f.send(1 << 16);
    assert_eq!(f.ack(1 << 16, q_us, NEVER), 0);
    u64::from(f.w() - WINDOW_PKTS) * u64::from(WINDOW_PKTS) + u64::from(f.conn.cwnd_cnt)
}

fn alpha(f: &Flow, now_us: u64, q_us: u32) -> f64 {
    alpha_q16(f, now_us, q_us) as f64 / 65536.0
}

// ---------------------------------------------------------------------------------------------
// The backoff: eqs. 1, 3, 4, 6; Algorithm 1 lines 5 and 22 to 26
// ---------------------------------------------------------------------------------------------

/// tau > tau0 (reading DA-g). 0.9 * 40/60.001 * 100 = 59.999.
#[test]
fn backs_off_above_the_threshold() {
    let mut f = basic(100, &[]);
    f.conn.cwnd_cnt = 7;
    assert!(!backs_off(&mut f, 20_000));
    assert_eq!(f.w(), 100);
    assert_eq!(ack(&mut f, 20_001), NOTE_DELAY_BACKOFF);
    // The window does not also grow, and the count towards growth is forgotten.
    assert_eq!((f.w(), f.conn.ssthresh_pkts, f.conn.cwnd_cnt), (59, 59, 0));
    for tau0 in [0, 50_000] {
        assert!(!backs_off(&mut basic(100, &[("tau0", tau0)]), tau0 as u32));
        assert!(backs_off(&mut basic(100, &[("tau0", tau0)]), tau0 as u32 + 1));
    }
}

/// cwnd > w0. 0.9 * 40/80 * 11 = 4.95.
#[test]
fn small_windows_do_not_back_off() {
    assert!(!backs_off(&mut basic(10, &[]), 40_000));
    let mut f = basic(11, &[]);
    assert!(backs_off(&mut f, 40_000));
    assert_eq!(f.w(), 4);
    assert!(!backs_off(&mut basic(50, &[("w0", 50)]), 40_000));
    assert!(backs_off(&mut basic(51, &[("w0", 50)]), 40_000));
    // Never below two packets.
    let mut f = basic(3, &[("w0", 0)]);
    assert!(backs_off(&mut f, 400_000));
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (2, 2));
}

/// Not while the stack repairs losses.
#[test]
fn backs_off_in_good_order_only() {
    for (phase, expected) in [
        (Phase::Open, true),
        (Phase::Disorder, true),
        (Phase::Cwr, false),
        (Phase::Recovery, false),
        (Phase::Loss, false),
    ] {
        let mut f = basic(100, &[]);
        f.conn.phase = phase as u8;
        assert_eq!(backs_off(&mut f, 40_000), expected, "{phase:?}");
    }
}

#[test]
fn no_backoff_before_a_sample() {
    let mut f = Flow::avoiding(params("delay_aimd", &[("tau0", 0), SRTT]), 100);
    f.conn.now_us = SECOND_US;
    f.conn.srtt_us = 50_000;
    assert!(ack(&mut f, NO_SAMPLE) == 0 && f.w() == 100);
}

/// beta = min(delta RTTmin/RTT, 0.9), on a window of 1000, and at a loss (eq. 6, third case).
#[test]
fn beta() {
    let cases: [(&[Given], u32, u32); 9] = [
        (&[], 40_000, 450),                                              // 0.9 * 40/80
        (&[], 20_000, 600),                                              // 0.9 * 40/60
        (&[], 8_000, 750), // 0.9 * 40/48, as of Fig. 8: 0.9 * 250/300
        (&[], 0, 900),     // 0.9 * 1, and the cap
        (&[("delta", 1_000_000)], 0, 900), // the cap
        (&[("delta", 1_000_000), ("beta_max", 1_000_000)], 10_000, 800), // eq. 3: 40/50
        (&[("delta", 750_000)], 20_000, 500), // Fig. 4: 0.75 * 40/60
        (&[("beta_min", 500_000)], 160_000, 500), // 0.9 * 0.2 and the floor
        (&[], 160_000, 180),
    ];
    for (given, q_us, expected) in cases {
        let mut f = basic(1000, given);
        f.conn.cwnd_limited = 0;
        ack(&mut f, q_us);
        if q_us <= 20_000 {
            assert_eq!(f.w(), 1000);
            assert_eq!(loss(&mut f), expected, "loss, {given:?}, {q_us} us");
        } else {
            assert_eq!(f.w(), expected, "{given:?}, {q_us} us");
            let mut f = basic(1000, &[given, &[("tau0", 10_000_000)]].concat());
            f.conn.cwnd_limited = 0;
            ack(&mut f, q_us);
            assert_eq!(loss(&mut f), expected, "loss, {given:?}, {q_us} us");
        }
    }
}

proptest! {
    #![proptest_config(config())]

    /// beta * cwnd over all RTTs, windows and deltas: rounded down; one more only where the product
    /// lies below a whole number by less than cwnd / 2^31.
    #[test]
    fn beta_times_cwnd_is_rounded_down(
        q_us in 0..(1_u32 << 24) - BASE,
        delta in 1..=1_000_000_u64,
        w in 1_u32..1 << 30,
    ) {
        let mut f = basic(100, &[("delta", delta), ("beta_max", 1_000_000), ("w0", 1 << 30)]);
        f.conn.cwnd_limited = 0;
        ack(&mut f, q_us);
        f.conn.cwnd_pkts = w;
        let whole = 1_000_000 * u128::from(BASE + q_us);
        let product = u128::from(w) * u128::from(delta) * u128::from(BASE);
        let exact = (product / whole) as u32;
        let up = ((product + ((u128::from(w) * whole) >> 31)) / whole) as u32;
        let got = loss(&mut f);
        prop_assert!((exact.max(2)..=up.max(2)).contains(&got), "{got}, exactly {exact}");
    }
}

/// A round trip apart at least, whatever Delta0: the data outstanding at the first backoff must be
/// acknowledged.
#[test]
fn backoffs_are_a_round_trip_apart() {
    let mut f = basic(100, &[]);
    assert!(backs_off(&mut f, 40_000));
    f.conn.now_us += 1; // eq. 6: Delta > 0
    let mut left = f.conn.outstanding_pkts;
    while left > 1 {
        assert!(!backs_off(&mut f, 40_000), "{left} of them left");
        left -= 1;
    }
    assert!(backs_off(&mut f, 40_000));
}

/// eq. 6: Delta > Delta0 = kappa (RTTmax - RTTmin) = 10 * 30 ms, since a backoff of any cause.
#[test]
fn backoffs_are_delta0_apart() {
    let given = [("gamma", 0), NO_DECAY];
    for by_loss in [false, true] {
        let mut f = flow(100, 100, &[&given]);
        if by_loss {
            f.conn.cwnd_limited = 0;
            f.conn.phase = Phase::Disorder as u8;
            f.conn.cwnd_pkts = 5; // too small for a delay backoff
            ack(&mut f, 30_000);
            loss(&mut f);
        } else {
            assert!(backs_off(&mut f, 30_000));
        }
        let start_us = f.conn.now_us;
        f.conn.cwnd_pkts = 100;
        f.send(100);
        f.ack(f.conn.outstanding_pkts, 30_000, NEVER); // a round trip
        f.conn.now_us = start_us + 300_000;
        assert!(!backs_off(&mut f, 30_000));
        f.conn.now_us += 1;
        assert!(backs_off(&mut f, 30_000));
    }
    // kappa = 2.5: 75 ms.
    let mut f = flow(100, 100, &[&given, &[("kappa", 2_500_000)]]);
    assert!(backs_off(&mut f, 30_000));
    f.conn.cwnd_pkts = 100;
    f.send(100);
    f.ack(f.conn.outstanding_pkts, 30_000, NEVER);
    f.conn.now_us += 75_000;
    assert!(!backs_off(&mut f, 30_000));
    f.conn.now_us += 1;
    assert!(backs_off(&mut f, 30_000));
}

/// `first_beta` (Fig. 2): the first backoff, of whatever cause, and no other.
#[test]
fn first_backoff_can_be_forced() {
    let given = [("first_beta", 500_000)];
    for by_loss in [false, true] {
        let mut f = basic(1000, &given);
        if by_loss {
            assert_eq!(loss(&mut f), 500);
        } else {
            assert!(backs_off(&mut f, 24_000));
            assert_eq!(f.w(), 500);
        }
        f.conn.cwnd_pkts = 1000;
        f.send(1000);
        f.ack(f.conn.outstanding_pkts, 10_000, NEVER);
        f.conn.cwnd_pkts = 1000;
        f.conn.now_us += 1;
        assert!(backs_off(&mut f, 24_000));
        assert_eq!(f.w(), 562); // 0.9 * 40/64 * 1000 = 562.5
    }
}

// ---------------------------------------------------------------------------------------------
// Growth: eqs. 2 and 6; Algorithm 1 line 19
// ---------------------------------------------------------------------------------------------

/// 2 (1 - beta) alpha. beta = 0.9: 0.2; at x = 1 s alpha = 11.25: 2.25. With 10 ms of queue beta =
/// 0.9 * 40/50 = 0.72: 0.56 * 11.25 = 6.3.
#[test]
fn increase_is_scaled_by_beta() {
    let f = basic(100, &[]);
    let start_us = f.conn.now_us;
    let mut f0 = f.clone();
    loss(&mut f0); // Delta from now
    let near =
        |got: f64, expected: f64| assert!((got - expected).abs() < 3e-5, "{got}, {expected}");
    near(alpha(&f0, start_us, 0), 0.2);
    near(alpha(&f0, start_us + SECOND_US, 0), 0.2);
    near(alpha(&f0, start_us + 2 * SECOND_US, 0), 2.25);
    near(alpha(&f0, start_us + 2 * SECOND_US, 10_000), 6.3);
    // Delta from the start of the connection, before any backoff: x = 9 s, 0.2 * 111.25.
    near(alpha(&f, 10 * SECOND_US, 0), 22.25);
    for (given, low, high) in [(SCALING_OFF, 1.0, 11.25), (SCALING_FLOOR, 1.0, 2.25)] {
        let mut f = basic(100, &[given]);
        loss(&mut f);
        near(alpha(&f, start_us, 0), low);
        near(alpha(&f, start_us + 2 * SECOND_US, 0), high);
    }
    // `delta_l`: alpha(1 s) = 11.25.
    let mut f = basic(100, &[("delta_l", 0)]);
    loss(&mut f);
    near(alpha(&f, start_us + SECOND_US, 0), 2.25);
}

proptest! {
    #![proptest_config(config())]

    /// Short of real numbers by 2^-16 for each of two roundings (scaled by at most 2), and by 2^-24
    /// of 2 (1 - beta), of which 0.2 is the least.
    #[test]
    fn increase_is_close(x_us in 0..=1_u64 << 30, q_us in 0..10_000_000_u32, delta in 1..=1_000_000_u64) {
        let mut f = basic(100, &[("delta", delta), ("tau0", 10_000_000)]);
        loss(&mut f);
        let x = x_us as f64 / 1e6;
        let rtt_us = f64::from(BASE + q_us);
        let beta = (delta as f64 / 1e6 * f64::from(BASE) / rtt_us).min(0.9);
        let real = 2.0 * (1.0 - beta) * (1.0 + 10.0 * x + x * x / 4.0);
        let got = alpha(&f, f.conn.now_us + SECOND_US + x_us, q_us);
        let allowed = 3.0 / 65536.0 + real * 5.0 / 16_777_216.0;
        prop_assert!((got - real).abs() <= allowed, "{got}, real {real}");
    }
}

/// eq. 6: growth while tau <= tau0 or cwnd <= w0; above, the flat section of Fig. 5 until Delta0.
#[test]
fn window_is_flat_above_the_threshold() {
    let given = [("gamma", 0), ("kappa", 1_000_000_000), NO_DECAY, SCALING_OFF];
    for (w, q_us, grows) in [(100, 20_000, true), (100, 20_001, false), (10, 20_001, true)] {
        let mut f = flow(w, w, &[&given]);
        loss(&mut f); // Delta from here: alpha = 1
        f.conn.cwnd_pkts = w;
        f.conn.ssthresh_pkts = w;
        for _ in 0..w {
            assert_eq!(ack(&mut f, q_us), 0);
        }
        assert_eq!((f.w(), f.conn.cwnd_cnt), (w + u32::from(grows), 0), "{w}, {q_us}");
    }
}

/// A backoff forgets the growth that is due, also its fraction. At x = 1 s an ACK is worth 11.25: three
/// make 33.75, and 34 with the fraction of one before.
#[test]
fn backoff_forgets_the_fraction() {
    for by_loss in [false, true] {
        let mut f = basic(1000, &[SCALING_OFF]);
        f.conn.now_us = 2 * SECOND_US;
        ack(&mut f, 0);
        assert_eq!(f.conn.cwnd_cnt, 11);
        if by_loss {
            loss(&mut f);
        } else {
            assert!(backs_off(&mut f, 40_000));
        }
        f.conn.now_us += 2 * SECOND_US;
        for count in [11, 22, 33] {
            ack(&mut f, 0);
            assert_eq!(f.conn.cwnd_cnt, count);
        }
    }
}

/// `signal=srtt`: the smoothed RTT gives tau; beta takes the sample (reading DA-f, DA-i).
#[test]
fn smoothed_rtt_gives_tau() {
    let mut f = basic(100, &[SRTT]);
    f.conn.srtt_us = BASE + 20_000;
    assert!(!backs_off(&mut f, 40_000));
    assert_eq!(q_us(&f), 20_000);
    f.conn.srtt_us = BASE + 20_001;
    assert!(backs_off(&mut f, 0));
    assert_eq!(f.w(), 90); // 0.9 * 40/40
    f.conn.srtt_us = BASE - 1;
    ack(&mut f, 0);
    assert_eq!(q_us(&f), 0);
}

#[test]
fn no_growth_while_the_application_limits() {
    for ssthresh in [100, SSTHRESH_INFINITE] {
        let mut f = flow(100, ssthresh, &[]);
        f.conn.cwnd_limited = 0;
        for _ in 0..300 {
            assert_eq!(ack(&mut f, 0), 0);
        }
        assert_eq!((f.w(), f.conn.cwnd_cnt), (100, 0));
        // A backoff needs no growth to be due.
        assert!(backs_off(&mut f, 80_000));
    }
}

// ---------------------------------------------------------------------------------------------
// The adaptive threshold: eq. 5; Algorithm 1 lines 2, 3
// ---------------------------------------------------------------------------------------------

/// tau0 = (1 - gamma) 20 ms + gamma (RTTmax - RTTmin).
#[test]
fn threshold_follows_the_recent_queue() {
    for (gamma, q_us, expected_us) in [
        (500_000, 0, 10_000),
        (500_000, 100_000, 60_000),
        (250_000, 100_000, 40_000),
        (0, 100_000, 20_000),
        (1_000_000, 100_000, 100_000),
        (333_333, 10_001, 16_667), // 0.666667 * 20000 + 0.333333 * 10001 = 16667.00
    ] {
        let mut f = flow(5, 5, &[&[("gamma", gamma), NO_DECAY]]);
        ack(&mut f, q_us);
        ack(&mut f, 0);
        assert_eq!(tau0_us(&f), expected_us, "gamma {gamma}, {q_us} us");
    }
}

/// Reading DA-c. After 100 ms tau0 is 60 ms; at 40 ms eq. 6 grows, Algorithm 1 line 22 backs off.
#[test]
fn theta_is_the_adaptive_or_the_base_threshold() {
    for (given, q_us, expected) in [
        (&[][..], 40_000, false),
        (&[], 60_000, false),
        (&[], 60_001, true),
        (&[THETA_BASE], 20_000, false),
        (&[THETA_BASE], 20_001, true),
        (&[THETA_BASE], 40_000, true),
    ] {
        let mut f = flow(5, 5, &[&[NO_DECAY, ("kappa", 0)], given]);
        ack(&mut f, 100_000);
        f.conn.cwnd_pkts = 100;
        assert_eq!(backs_off(&mut f, q_us), expected, "{given:?}, {q_us} us");
    }
}

/// Line 3: RTTmax falls by a RTT/cwnd per packet: with 1 % of 50 ms on a window of 100, 5 us, to the
/// present RTT and no further; a larger RTT raises it at once. gamma = 1 shows RTTmax - RTTmin.
#[test]
fn rtt_max_decays() {
    let given = [("gamma", 1_000_000), ("w0", 1 << 30), SCALING_OFF];
    let start = || {
        let mut f = flow(100, 100, &[&given]);
        f.conn.cwnd_limited = 0;
        ack(&mut f, 60_000);
        assert_eq!(tau0_us(&f), 60_000);
        f
    };
    let mut f = start();
    for n in 1..=1000 {
        ack(&mut f, 10_000);
        let expected_us = 60_000 - 5 * n;
        // Rounded down, and a = 0.01 is not of powers of two.
        assert!((expected_us - 1..=expected_us).contains(&tau0_us(&f)), "{n}: {}", tau0_us(&f));
    }
    for _ in 0..20_000 {
        ack(&mut f, 10_000);
    }
    assert_eq!(tau0_us(&f), 10_000);
    ack(&mut f, 10_001);
    assert_eq!(tau0_us(&f), 10_001);
    // One ACK of a window's packets: a RTT, 500 us; of more: no more. If ACKs count: 5 us.
    for (count, n, decay_us) in [(1, 100, 500), (1, 200, 500), (1, 50, 250), (0, 100, 5)] {
        let mut f = flow(100, 100, &[&given, &[("count", count)]]);
        f.conn.cwnd_limited = 0;
        ack(&mut f, 60_000);
        f.send(n);
        f.ack(n, 10_000, NEVER);
        let fallen_us = 60_000 - tau0_us(&f);
        assert!((decay_us..=decay_us + 1).contains(&fallen_us), "{count}, {n}: {fallen_us}");
    }
    // a = 0: never.
    let mut f = flow(100, 100, &[&given, &[NO_DECAY]]);
    f.conn.cwnd_limited = 0;
    ack(&mut f, 60_000);
    for _ in 0..1000 {
        ack(&mut f, 0);
    }
    assert_eq!(tau0_us(&f), 60_000);
}

proptest! {
    #![proptest_config(config())]

    /// Against real numbers: the whole microsecond that is shown, and 2^-16 us per round trip and
    /// 2^-24 us per packet.
    #[test]
    fn rtt_max_decay_is_close(
        w in 1_u32..1 << 22,
        decay in 0..=1_000_000_u64,
        acks in prop::collection::vec((0_u32..2_000_000, 1_u32..1 << 22), 1..200),
    ) {
        let given = [("gamma", 1_000_000), ("w0", 1 << 30), ("rtt_max_decay", decay)];
        let mut f = flow(100, 100, &[&given]);
        f.conn.cwnd_limited = 0;
        f.conn.cwnd_pkts = w;
        let (mut real, mut error) = (f64::from(BASE), 1.0);
        for (q_us, n) in acks {
            f.send(n);
            f.ack(n, q_us, NEVER);
            let rtt = f64::from(BASE + q_us);
            let part = (f64::from(n) / f64::from(w)).min(1.0);
            real = (real - decay as f64 / 1e6 * rtt * part).max(rtt);
            error += part / 65536.0 + f64::from(n) / 16_777_216.0;
            let got = f64::from(BASE + tau0_us(&f));
            prop_assert!((got - real).abs() <= error, "{got}, real {real}, allowed {error}");
        }
    }
}

// ---------------------------------------------------------------------------------------------
// Slow start: section IV; eq. 7; Algorithm 1 lines 6 to 16
// ---------------------------------------------------------------------------------------------

fn starting(w: u32, given: &[Given]) -> Flow {
    flow(w, SSTHRESH_INFINITE, &[&[("gamma", 0)], given])
}

/// Without an estimate, slow start is standard: +1 per packet.
#[test]
fn slow_start_without_an_estimate() {
    let mut f = starting(100, &[]);
    for n in 1..=50 {
        ack(&mut f, 0);
        assert_eq!(f.w(), 100 + n);
    }
    let mut f = starting(100, &[("ss_limit", 2)]);
    f.send(5);
    f.ack(5, 0, NEVER);
    assert_eq!(f.w(), 102);
}

/// eq. 7: max_ssthresh = 100/4 * 20/10 = 50 packets; above it, 25 packets per round trip: on a
/// window of 100 one for 4 packets.
#[test]
fn slow_start_is_limited() {
    let mut f = starting(100, &[]);
    for (w, count) in [(100, 25), (100, 50), (100, 75), (101, 0), (101, 25)] {
        ack(&mut f, 10_000);
        assert_eq!((f.w(), f.conn.cwnd_cnt), (w, count));
    }
    // Not above max_ssthresh: +1 per packet.
    let mut f = starting(100, &[]);
    ack(&mut f, 10_000);
    (f.conn.cwnd_pkts, f.conn.cwnd_cnt) = (49, 0);
    for w in [50, 51, 51] {
        ack(&mut f, 1_000); // no new maximum
        assert_eq!(f.w(), w);
    }
    // A growing queue gives new estimates: 100/4 * 20/16 = 31.25; half of it.
    let mut f = starting(100, &[]);
    ack(&mut f, 10_000);
    f.conn.cwnd_cnt = 0;
    for count in [15, 31, 46, 62] {
        ack(&mut f, 16_000);
        assert_eq!(f.conn.cwnd_cnt, count);
    }
}

/// An ACK whose RTT is below the decaying maximum gives no estimate: 50 of 100 packets stays, where
/// a window of 200 would give 100/2 = 50 per round trip.
#[test]
fn only_a_new_maximum_gives_an_estimate() {
    let mut f = starting(100, &[NO_DECAY]);
    ack(&mut f, 10_000);
    f.conn.cwnd_pkts = 200;
    f.conn.cwnd_cnt = 0;
    ack(&mut f, 9_999);
    assert_eq!(f.conn.cwnd_cnt, 25);
    ack(&mut f, 10_000); // as large as the maximum: the reading of line 8
    assert_eq!(f.conn.cwnd_cnt, 25 + 50);
    f.conn.cwnd_pkts = 400;
    ack(&mut f, NO_SAMPLE);
    assert_eq!(f.conn.cwnd_cnt, 25 + 50 + 50);
    // Nor one that sees no queue: 25 per round trip still.
    let mut f = starting(100, &[("rtt_max_decay", 1_000_000)]);
    ack(&mut f, 10_000);
    f.conn.cwnd_cnt = 0;
    f.send(100);
    f.ack(100, 0, NEVER);
    assert_eq!((f.w(), f.conn.cwnd_cnt), (125, 0));
}

/// Data outstanding at a timeout gives no estimate, however long an outage its RTT contains: the
/// window doubles. The next data does: 200/4 * 20/40000 packets are less than one.
#[test]
fn an_outage_gives_no_estimate() {
    let mut f = starting(100, &[]);
    f.timeout();
    (f.conn.cwnd_pkts, f.conn.ssthresh_pkts) = (100, 1000);
    for _ in 0..f.conn.outstanding_pkts {
        f.ack(1, 30_000_000, NEVER);
    }
    assert_eq!(f.w(), 200);
    ack(&mut f, 40_000_000);
    assert_eq!(f.w(), 200);
}

/// Reading DA-m: with tau0 = 0.5 * 20 + 0.5 * 10 = 15 ms in eq. 7, 37.5 packets; half per round trip.
#[test]
fn slow_start_may_take_the_adaptive_threshold() {
    let mut f = flow(100, SSTHRESH_INFINITE, &[&[("ss_tau", 1)]]);
    for count in [18, 37, 56, 75] {
        ack(&mut f, 10_000);
        assert_eq!(f.conn.cwnd_cnt, count);
    }
}

#[test]
fn slow_start_is_standard_or_off() {
    let mut f = starting(100, &[STANDARD_SLOW_START]);
    for w in 101..=150 {
        ack(&mut f, 10_000);
        assert_eq!(f.w(), w);
    }
    // Off: eq. 6 from the start, and after a timeout.
    let mut f = starting(100, &[NO_SLOW_START, SCALING_OFF]);
    f.conn.now_us = SECOND_US;
    for _ in 0..100 {
        ack(&mut f, 0);
    }
    assert_eq!((f.w(), f.conn.cwnd_cnt), (101, 0));
    f.timeout();
    ack(&mut f, 0);
    ack(&mut f, 0);
    ack(&mut f, 0);
    assert_eq!((f.w(), f.conn.cwnd_cnt), (3, 0)); // 1 + 1/1 + 2/2
}

/// The delay test runs in slow start and ends it (section IV). 0.9 * 40/64 * 100 = 56.25.
#[test]
fn delay_ends_slow_start() {
    let mut f = starting(100, &[("kappa", 0)]);
    assert!(backs_off(&mut f, 24_000));
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (56, 56));
}

/// Limited or not, slow start stops at ssthresh; the rest of a standard ACK counts beyond.
#[test]
fn slow_start_ends_at_ssthresh() {
    let mut f = flow(100, 102, &[&[("gamma", 0)]]);
    ack(&mut f, 10_000); // 25 of the first 100
    f.send(40);
    f.ack(40, 1_000, NEVER); // 1025 = 10 * 100 + 25
    assert_eq!((f.w(), f.conn.cwnd_cnt), (102, 25));
    let mut f = flow(100, 102, &[&BASIC, &[SCALING_OFF]]);
    loss(&mut f);
    (f.conn.cwnd_pkts, f.conn.ssthresh_pkts) = (100, 102);
    f.send(5);
    f.ack(5, 0, NEVER);
    assert_eq!((f.w(), f.conn.cwnd_cnt), (102, 3));
}

/// Section IV: at most max_ssthresh/2 per round trip, as long as the estimate holds. But where
/// RTTmax has decayed to the present RTT each ACK is a new maximum, and eq. 7 takes a quarter of the
/// window for the queue, which it is only while slow start doubles: 100/4 * 20/1 packets, no limit.
#[test]
fn limited_slow_start_is_linear() {
    for (given, lasts) in [(NO_DECAY, true), (("rtt_max_decay", 10_000), false)] {
        let mut f = starting(100, &[given]);
        ack(&mut f, 10_000);
        (f.conn.cwnd_pkts, f.conn.cwnd_cnt) = (100, 0);
        let mut growth = Vec::new();
        for _ in 0..40 {
            let before = f.w();
            for _ in 0..before {
                ack(&mut f, 1_000);
            }
            growth.push(f.w() - before);
        }
        let linear = |g: &u32| (22..=25).contains(g);
        // 9 ms at 1 % of 41 ms a round trip: 22.
        assert!(growth[..20].iter().all(linear), "{growth:?}");
        assert_eq!(growth[25..].iter().all(linear), lasts, "{growth:?}");
    }
}

#[test]
fn initial_ssthresh_limits_the_first_slow_start() {
    let mut f = Flow::slow_start(params("delay_aimd", &[("initial_ssthresh", 20)]), 10);
    f.send(15);
    f.ack(15, 0, NEVER);
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (20, 20));
    // 5 were left, 6 more: worth 0.2 each.
    f.send(6);
    f.ack(6, 0, NEVER);
    assert_eq!(f.conn.cwnd_cnt, 2);
}

/// Extremes: nothing wraps, and the window stays in range.
#[test]
fn extremes() {
    let given = [("w0", 0), ("tau0", 10_000_000), ("kappa", 1_000_000_000)];
    let mut f = flow((1 << 30) - 1, SSTHRESH_INFINITE, &[&given]);
    ack(&mut f, 1); // 2^28 * 10 s / 1 us packets
    f.send(1 << 29);
    f.ack(1 << 29, 0, NEVER);
    assert_eq!(f.w(), 1 << 30);
    f.send(1);
    f.ack(1, (1 << 24) - 1 - BASE, NEVER);
    f.conn.now_us = u64::MAX;
    f.conn.phase = Phase::Open as u8;
    // Delta0 = 1000 * 16.7 s has passed. 0.9 * 40000/16777215 * 2^30 = 2304000.1.
    assert!(backs_off(&mut f, (1 << 24) - 1 - BASE));
    assert_eq!(f.w(), 2_304_000);
}

/// Samples are taken as 1 us ... 2^24 - 1 us, so that nothing overflows and 0 is not "no sample".
/// With a = 1 the next ACK of a window takes RTTmax down to the RTT.
#[test]
fn extreme_samples() {
    let mut f = flow(5, 5, &[&[("rtt_max_decay", 1_000_000), ("gamma", 1_000_000)]]);
    let mut sample = |rtt_us| {
        let ack = Ack { rtt_us, acked_pkts: 5, ..Ack::default() };
        f.cc.on_rtt(&mut f.conn, &ack);
        let [q_us, tau0_us, _, rtt_min_us] = f.cc.observe();
        (q_us, tau0_us, rtt_min_us)
    };
    const MAX_US: u32 = (1 << 24) - 1;
    assert_eq!(sample(i32::MAX), (MAX_US - BASE, MAX_US - BASE, BASE));
    assert_eq!(sample(10_000_000), (10_000_000 - BASE, 10_000_000 - BASE, BASE));
    assert_eq!(sample(0), (0, 10_000_000 - 1 - 1, 1));
    assert_eq!(sample(i32::MAX), (MAX_US - 1, MAX_US - 1, 1));
}

// ---------------------------------------------------------------------------------------------
// Losses, timeouts, undo
// ---------------------------------------------------------------------------------------------

#[test]
fn loss_before_any_sample_halves() {
    let mut f = Flow::avoiding(params("delay_aimd", &[]), 100);
    assert_eq!(loss(&mut f), 50);
}

/// NewReno's threshold; Delta starts again.
#[test]
fn timeout() {
    let mut f = basic(100, &[SCALING_OFF]);
    f.conn.outstanding_pkts = 60;
    f.conn.now_us = 100 * SECOND_US;
    assert_eq!(f.timeout(), 30);
    f.conn.phase = Phase::Open as u8;
    assert_eq!(alpha(&f, 102 * SECOND_US, 0), 11.25);
}

#[test]
fn undo_restores_the_fields_that_the_loss_changed() {
    let mut f = basic(1000, &[SCALING_OFF, ("first_beta", 500_000)]);
    f.conn.now_us = 2 * SECOND_US;
    assert_eq!(loss(&mut f), 500);
    assert_eq!(alpha(&f, 4 * SECOND_US, 0), 11.25);
    assert_eq!(f.cc.undo(&mut f.conn), 1000);
    assert_eq!(alpha(&f, 4 * SECOND_US, 0), 1.0 + 30.0 + 2.25, "Delta from 0");
    f.conn.cwnd_pkts = 1000;
    assert_eq!(loss(&mut f), 500, "still the first");
    f.conn.cwnd_pkts = 1200; // has grown past it meanwhile
    assert_eq!(f.cc.undo(&mut f.conn), 1200);
}

// ---------------------------------------------------------------------------------------------
// RTTmin: its preset, its draining (section II-D), its age
// ---------------------------------------------------------------------------------------------

fn preset(given: &[Given]) -> Flow {
    let all = [&[("delack_filter", 0), ("preset_rtt_min", 200_000)], &BASIC[..], given].concat();
    let mut f = Flow::avoiding(params("delay_aimd", &all), 100);
    f.send(100);
    f
}

/// RTTs below the preset count as it until one has reached it; then RTTmin is the minimum RTT.
#[test]
fn preset_rtt_min_holds_until_the_queue_reaches_it() {
    let mut f = preset(&[]);
    for rtt_us in [120_000, 199_999] {
        ack(&mut f, rtt_us - BASE);
        assert_eq!((rtt_min_us(&f), q_us(&f)), (200_000, 0));
    }
    ack(&mut f, 210_000 - BASE);
    assert_eq!((rtt_min_us(&f), q_us(&f)), (200_000, 10_000));
    ack(&mut f, 180_000 - BASE);
    assert_eq!((rtt_min_us(&f), q_us(&f)), (180_000, 0));
    let mut f = preset(&[]);
    ack(&mut f, 200_000 - BASE);
    ack(&mut f, 150_000 - BASE);
    assert_eq!(rtt_min_us(&f), 150_000);
    // Or until a backoff: a queue that overflows before. 0.9 * 200/200.
    let mut f = preset(&[]);
    ack(&mut f, 150_000 - BASE);
    assert_eq!(loss(&mut f), 90);
    ack(&mut f, 140_000 - BASE);
    assert_eq!(rtt_min_us(&f), 140_000);
}

/// A flow alone on a link: its window beyond the bandwidth-delay product queues.
struct Link {
    flow: Flow,
    pkts_per_s: f64,
    base_us: f64,
    /// The competitors' packets in the queue.
    other_pkts: f64,
    due: f64,
}

impl Link {
    /// 50 Mbit/s, packets of 1500 bytes.
    fn new(flow: Flow, base_us: u32) -> Self {
        let pkts_per_s = 50e6 / 12_000.0;
        Self { flow, pkts_per_s, base_us: base_us.into(), other_pkts: 0.0, due: 0.0 }
    }

    fn rtt_us(&self) -> f64 {
        let queued_us = f64::from(self.flow.w()) / self.pkts_per_s * 1e6;
        queued_us.max(self.base_us) + self.other_pkts / self.pkts_per_s * 1e6
    }

    /// A twentieth of a round trip; whether there was a delay backoff, and the window before.
    fn step(&mut self) -> (bool, u32) {
        let f = &mut self.flow;
        f.send(f.w().saturating_sub(f.conn.outstanding_pkts));
        let before = f.w();
        let rtt_us = self.rtt_us();
        let f = &mut self.flow;
        f.conn.now_us += (rtt_us / 20.0) as u64;
        self.due += f64::from(before) / 20.0;
        let n = (self.due as u32).min(f.conn.outstanding_pkts);
        self.due -= f64::from(n);
        if n == 0 {
            return (false, before);
        }
        (f.ack(n, rtt_us as u32 - BASE, NEVER) & NOTE_DELAY_BACKOFF != 0, before)
    }

    fn now_s(&self) -> f64 {
        self.flow.conn.now_us as f64 / 1e6
    }

    /// Until the next delay backoff: gives the windows before and after it.
    fn backoff(&mut self) -> (u32, u32) {
        let end_s = self.now_s() + 600.0;
        while self.now_s() < end_s {
            if let (true, before) = self.step() {
                return (before, self.flow.w());
            }
        }
        panic!("no backoff in 600 s");
    }
}

/// Fig. 3, C28: from 200 ms to 120 ms by factors delta. 0.75: 150, 112; 0.9: 180, 162, 146, 131, 118;
/// 0.95 takes ten. With delta = 1 (eq. 3) the error stays, but for rounded windows.
#[test]
fn rtt_min_ratchets_down() {
    for (delta, backoffs) in [(750_000, 2), (900_000, 5), (950_000, 10)] {
        let mut link = Link::new(preset(&[("delta", delta)]), 120_000);
        let mut n = 0;
        while rtt_min_us(&link.flow) > 120_000 {
            let (before, after) = link.backoff();
            n += 1;
            assert!(after < before);
            link.step(); // the RTT after it
        }
        assert_eq!(n, backoffs, "delta {delta}");
        assert_eq!(rtt_min_us(&link.flow), 120_000);
    }
    let given = [("delta", 1_000_000), ("beta_max", 1_000_000), SCALING_OFF];
    let mut link = Link::new(preset(&given), 120_000);
    for _ in 0..10 {
        link.backoff();
    }
    assert!(rtt_min_us(&link.flow) > 197_000, "{}", rtt_min_us(&link.flow));
}

/// Fig. 2: 120 ms, tau0 = 20 ms, eq. 3: after a first backoff by 0.5 the link idles (250 of 500
/// packets); then beta = 120/140 = 0.857 and the queue just empties.
#[test]
fn backoff_just_empties_the_queue() {
    let given = [("delack_filter", 0), ("first_beta", 500_000), ("delta", 1_000_000)];
    let all = [&given[..], &BASIC].concat();
    let mut link = Link::new(Flow::avoiding(params("delay_aimd", &all), 400), 120_000);
    let (before, after) = link.backoff();
    assert!((583..600).contains(&before) && after == before / 2, "{before} to {after}");
    for _ in 0..5 {
        let (before, after) = link.backoff();
        let beta = f64::from(after) / f64::from(before);
        assert!((0.83..=0.858).contains(&beta), "{before} to {after}");
        assert!((499..=501).contains(&after), "{before} to {after}");
    }
}

/// Fig. 5, C30: with 60 ms of others' queue, tau0 = 10 + 30 ms: no growth, and backoffs more than
/// Delta0 = 10 * 60 ms apart, the window constant between them.
#[test]
fn flat_sections_between_backoffs() {
    let mut f = flow(500, 500, &[]);
    f.conn.now_us = 0;
    let mut last_us = 0;
    let mut backoffs = 0;
    let mut w = f.w();
    while f.w() > 10 {
        f.conn.now_us += 100;
        if backs_off(&mut f, 60_000) {
            assert!(f.conn.now_us - last_us > 600_000, "{} us", f.conn.now_us - last_us);
            assert!(f.conn.now_us - last_us <= 600_100);
            (last_us, w) = (f.conn.now_us, f.w());
            backoffs += 1;
        }
        assert_eq!(f.w(), w);
    }
    // 500 * 0.36^4 = 8.4.
    assert_eq!(backoffs, 4);
}

/// eq. 5: the threshold returns when the loss-based flow has gone, as RTTmax decays and each
/// backoff's RTTmax is that of a lower threshold.
#[test]
fn threshold_returns_to_its_base() {
    let given = [("delack_filter", 0), NO_SLOW_START];
    let mut link = Link::new(Flow::avoiding(params("delay_aimd", &given), 400), 120_000);
    for _ in 0..100 {
        link.step();
    }
    link.other_pkts = 833.0; // 200 ms
    for _ in 0..100 {
        link.step();
    }
    assert!(tau0_us(&link.flow) > 105_000, "{}", tau0_us(&link.flow));
    link.other_pkts = 0.0;
    let end_s = link.now_s() + 120.0;
    while link.now_s() < end_s {
        link.step();
    }
    let left_us = tau0_us(&link.flow);
    println!("tau0 after 120 s: {left_us} us");
    assert!((10_000..27_000).contains(&left_us), "{left_us}");
    assert_eq!(rtt_min_us(&link.flow), 120_000);
}

/// DA-l: RTTmin never rises. Where the path's own delay grows by 60 ms the flow takes it for queue
/// and stays at w0 for good. (What the paper's text does; an open problem, not a wish.)
#[test]
fn longer_path_is_taken_for_a_queue() {
    let mut f = flow(500, 500, &[]);
    for _ in 0..200_000 {
        f.conn.now_us += 1_000;
        ack(&mut f, 60_000);
    }
    assert_eq!(rtt_min_us(&f), BASE);
    assert!(f.w() <= 11, "{}", f.w());
}

// ---------------------------------------------------------------------------------------------
// Convergence: section VI-C
// ---------------------------------------------------------------------------------------------

/// Synchronised flows: the lead of one over the other shrinks by beta per epoch. 90 % of the way in
/// log 0.1/log beta epochs: 3.3 at 0.5 (C37), 8.0 at 0.75 and 7.0 at 0.72 (DA-k: the paper says 7 for
/// 0.75).
#[test]
fn rise_time() {
    for (q_us, beta, formula, epochs) in
        [(40_000, 0.5, 3.32, 4), (13_333, 0.75, 8.00, 9), (15_556, 0.72, 7.01, 8)]
    {
        let given = [("delta", 1_000_000), ("tau0", 10_000_000)];
        let mut flows = [2_000_000, 1_000_000].map(|w| basic(w, &given));
        let gap = |flows: &[Flow; 2]| f64::from(flows[0].w()) - f64::from(flows[1].w());
        let mut n = 0_u32;
        while gap(&flows) > 100_000.0 {
            let before = gap(&flows);
            for f in &mut flows {
                f.conn.cwnd_pkts += 500_000; // both grow alike
                f.conn.cwnd_limited = 0;
                ack(f, q_us);
                loss(f);
            }
            n += 1;
            assert!((gap(&flows) / before - beta).abs() < 1e-4, "{}", gap(&flows) / before);
        }
        assert_eq!(n, epochs, "beta {beta}");
        let rise = 0.1_f64.ln() / f64::ln(beta);
        assert!((rise - formula).abs() < 0.01 && rise <= f64::from(n) && rise > f64::from(n) - 1.0);
    }
}

/// The values for plots: beta at 10 ms of queue, 0.9 * 40/50.
#[test]
fn observed() {
    let mut f = flow(100, 100, &[]);
    ack(&mut f, 10_000);
    assert_eq!(f.cc.observe(), [10_000, 15_000, 719_999, 40_000]);
}
