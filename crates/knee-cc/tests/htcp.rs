//! H-TCP against values worked out by hand. "H-TCP paper": Armitage et al., ACM CCR 38(3), 2008;
//! "AIMD paper": Leith et al., PFLDnet 2007, whose Table I comes from H-TCP's Internet draft.

#[allow(dead_code)] // each file of tests uses its part
mod common;

use common::{BASE_US, Flow, NEVER, NO_SAMPLE, params};
use knee_cc::{Ack, Event, NOTE_ROUND, Phase, SSTHRESH_INFINITE};
use proptest::{prelude::*, test_runner::FileFailurePersistence};

const SECOND_US: u64 = 1_000_000;
/// Length of the low-speed period, by default.
const DELTA_L_US: u64 = SECOND_US;
/// Beyond it alpha stays as it is.
const X_MAX_US: u64 = 1 << 30;
const ONE_Q16: u64 = 1 << 16;

const CORE: &[(&str, u64)] = &[];
const DE_FACTO: &[(&str, u64)] = &[("rtt_scaling", 1), ("adaptive_backoff", 1)];
/// Each sample counts as it is.
const RAW: (&str, u64) = ("signal", 0);
const SRTT: (&str, u64) = ("signal", 1);
const EXACT: u64 = 0;
const LISTING2: u64 = 1;

fn config() -> ProptestConfig {
    let failures = FileFailurePersistence::WithSource("regressions");
    ProptestConfig { failure_persistence: Some(Box::new(failures)), ..ProptestConfig::default() }
}

fn htcp(given: &[(&str, u64)], cwnd_pkts: u32) -> Flow {
    Flow::avoiding(params("htcp", given), cwnd_pkts)
}

/// The same with other parameters before it.
fn with(first: &[(&'static str, u64)], more: &[(&'static str, u64)]) -> Vec<(&'static str, u64)> {
    [first, more].concat()
}

/// alpha * 2^16 that the flow would use at `now_us`: the credit towards the window's growth that 2^16
/// packets add. The flow is left as it is.
fn alpha_q16(f: &Flow, now_us: u64) -> u64 {
    const WINDOW_PKTS: u32 = 1 << 30;
    let mut f = f.clone();
    f.conn = knee_cc::Conn {
        now_us,
        cwnd_pkts: WINDOW_PKTS,
        cwnd_max_pkts: i32::MAX as u32,
        cwnd_cnt: 0,
        ssthresh_pkts: 2,
        cwnd_limited: 1,
        ..f.conn
    };
    f.send(1 << 16);
    f.ack(1 << 16, NO_SAMPLE, NEVER);
    u64::from(f.w() - WINDOW_PKTS) * u64::from(WINDOW_PKTS) + u64::from(f.conn.cwnd_cnt)
}

fn alpha(f: &Flow, now_us: u64) -> f64 {
    alpha_q16(f, now_us) as f64 / 65536.0
}

/// H-TCP paper eq. 2, x in seconds.
fn eq2(x: f64) -> f64 {
    1.0 + 10.0 * x + (x / 2.0) * (x / 2.0)
}

/// `n` ACKs that measure `rtt_us`, both as sample and smoothed, and do not grow the window.
fn measure(f: &mut Flow, n: u32, rtt_us: u32) {
    f.conn.cwnd_limited = 0;
    for _ in 0..n {
        f.conn.srtt_us = rtt_us;
        f.send(2);
        f.ack(2, rtt_us - BASE_US as u32, NEVER);
    }
    f.conn.cwnd_limited = 1;
}

/// A congestion event at `now_us` and the recovery from it. Gives the threshold.
fn event(f: &mut Flow, now_us: u64) -> u32 {
    f.conn.now_us = now_us;
    let (ssthresh, notes) = f.loss();
    assert_eq!(notes, 0);
    f.recovered();
    ssthresh
}

fn rtt_min_max(f: &Flow) -> [u32; 2] {
    let [_, _, min, max] = f.cc.observe();
    [min, max]
}

// ---------------------------------------------------------------------------------------------
// alpha: eq. 2, Listing 2, Fig. 1
// ---------------------------------------------------------------------------------------------

/// x = 0.5: 1 + 5 + 0.0625; 1: 1 + 10 + 0.25; 1.5: 1 + 15 + 0.5625; 2: 1 + 20 + 1; 5: 1 + 50 + 6.25.
#[test]
fn alpha_of_eq_2() {
    let f = htcp(CORE, 100);
    for (x_us, expected) in [
        (500_000, 6.0625),
        (1_000_000, 11.25),
        (1_500_000, 16.5625),
        (2_000_000, 22.0),
        (5_000_000, 57.25),
    ] {
        assert_eq!(alpha(&f, DELTA_L_US + x_us), expected, "x = {x_us} us");
    }
}

/// Section 3.1: alpha = 1 until Delta exceeds Delta_L, whatever Delta_L is.
#[test]
fn alpha_is_1_in_the_low_speed_period() {
    for delta_l in [0, 1_000_000, 10_000_000] {
        let f = htcp(&[("delta_l", delta_l)], 100);
        for now_us in [0, delta_l / 2, delta_l.saturating_sub(1), delta_l] {
            assert_eq!(alpha_q16(&f, now_us), ONE_Q16, "Delta_L {delta_l}, Delta {now_us}");
        }
        // 1 + 10 * 0.1 + 0.05^2 = 2.0025; times 65536: 131235.84.
        assert_eq!(alpha_q16(&f, delta_l + 100_000), 131_235);
    }
}

/// The exact form lies below eq. 2 by less than 2^-16, for all times up to 17.9 minutes.
#[track_caller]
fn assert_exact(f: &Flow, x_us: u64) {
    let real_q16 = eq2(x_us as f64 / 1e6) * 65536.0;
    let short = real_q16 - alpha_q16(f, DELTA_L_US + x_us) as f64;
    // A double with 53 bits resolves 2^35 to 2^-18.
    assert!((-1e-5..1.0 + 1e-5).contains(&short), "x = {x_us} us: {short} / 2^16 short");
}

#[test]
fn alpha_is_exact_to_2_to_the_minus_16() {
    let f = htcp(CORE, 100);
    for x_us in (0..20_000_000).step_by(997) {
        assert_exact(&f, x_us);
    }
    for x_us in (0..=X_MAX_US).step_by(1 << 20) {
        assert_exact(&f, x_us);
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn alpha_is_exact_everywhere(x_us in 0..=X_MAX_US) {
        assert_exact(&htcp(CORE, 100), x_us);
    }

    /// Fig. 1's claim, "never more aggressive", holds beyond the figure too.
    #[test]
    fn alpha_of_listing_2_is_never_above_eq_2(x_us in 0..=X_MAX_US) {
        let f = htcp(&[("alpha_form", LISTING2)], 100);
        prop_assert!(alpha(&f, DELTA_L_US + x_us) <= eq2(x_us as f64 / 1e6));
    }
}

/// At 2^30 us alpha is 1 + 10737.41824 + (536.870912)^2 = 298968.79... and stays there.
#[test]
fn alpha_stays_at_its_largest() {
    for form in [EXACT, LISTING2] {
        let f = htcp(&[("alpha_form", form)], 100);
        let largest = alpha_q16(&f, DELTA_L_US + X_MAX_US);
        if form == EXACT {
            assert_eq!(largest >> 16, 298_968);
        }
        for now_us in [DELTA_L_US + X_MAX_US + 1, 1 << 31, 1 << 40, u64::MAX] {
            assert_eq!(alpha_q16(&f, now_us), largest, "{now_us}");
        }
    }
}

/// The macro of Listing 2, in the 32-bit arithmetic that it was written for.
fn listing2(diff: u32, hz: u32) -> u32 {
    (16 + (160 * diff) / hz + (diff / hz) * ((diff << 4) / (4 * hz))) >> 4
}

/// C38, Fig. 1: never above eq. 2 for 0 to 5 s; at most 2.4 below. The worst is 54 for 56.30 at
/// 4.924 s, where the quadratic term has (4 * 4.924)/4 for (4.924/2)^2 and 16ths are cut off.
#[test]
fn alpha_of_listing_2_in_fig_1() {
    let f = htcp(&[("alpha_form", LISTING2)], 100);
    let mut worst = (0.0, 0);
    for ms in 0..=5000_u32 {
        let got = alpha_q16(&f, DELTA_L_US + u64::from(ms) * 1000);
        assert_eq!(got, u64::from(listing2(ms, 1000)) << 16, "{ms} ms");
        let short = eq2(f64::from(ms) / 1e3) - got as f64 / 65536.0;
        assert!((0.0..=2.4).contains(&short), "{ms} ms: {short}");
        if short > worst.0 {
            worst = (short, ms);
        }
    }
    assert_eq!((format!("{:.2}", worst.0), worst.1), ("2.30".into(), 4924));
    assert_eq!(alpha(&f, DELTA_L_US + 4_924_000), 54.0);
}

/// Times between the ticks count as the tick before: 0.1 s gives (16 + 16) / 16 = 2, 99.999 ms 1.
#[test]
fn listing_2_counts_ticks() {
    let f = htcp(&[("alpha_form", LISTING2)], 100);
    assert_eq!([100_000, 99_999, 100_999].map(|x| alpha(&f, DELTA_L_US + x)), [2.0, 1.0, 2.0]);
}

// ---------------------------------------------------------------------------------------------
// Growth: eq. 1
// ---------------------------------------------------------------------------------------------

/// In the low-speed period H-TCP is NewReno (section 4.3), packet by packet, also with slow start
/// and whatever is counted.
#[test]
fn low_speed_is_newreno() {
    for given in [&[][..], &[("count", 0)], &[("ss_limit", 2)]] {
        for (w, ssthresh) in [(10, 10), (10, 40), (10, SSTHRESH_INFINITE), (333, 2)] {
            let mut flows = ["newreno", "htcp"].map(|n| Flow::new(params(n, given), w, ssthresh));
            for i in 0..5000_u64 {
                let n = [1, 2, 1, 5, 3][i as usize % 5];
                let [reno, htcp] = flows.each_mut().map(|f| {
                    f.conn.now_us = i * 200;
                    f.send(n);
                    f.ack(n, 0, NEVER);
                    (f.w(), f.conn.cwnd_cnt, f.conn.ssthresh_pkts)
                });
                assert_eq!(reno, htcp, "{given:?}, ACK {i}");
            }
        }
    }
}

/// alpha = 11.25 on a window of 10: an ACK of one packet is 1 step and 1.25 over, the next (1.25 +
/// 11.25)/11 one step and 1.5 over, the third (1.5 + 11.25)/12 one and 0.75 over.
#[test]
fn growth_carries_the_fraction() {
    let mut f = htcp(CORE, 10);
    f.conn.now_us = DELTA_L_US + 1_000_000;
    f.send(6);
    for (w, count) in [(11, 1), (12, 1), (13, 0), (13, 12)] {
        f.ack(1, NO_SAMPLE, NEVER);
        assert_eq!((f.w(), f.conn.cwnd_cnt), (w, count));
    }
    // 12 and no fraction over: 0.75 + 11.25. With 11.25 more: 23.25 = 13 + 10.25; and 21.5 = 14 + 7.5.
    for (w, count) in [(14, 10), (15, 7)] {
        f.ack(1, NO_SAMPLE, NEVER);
        assert_eq!((f.w(), f.conn.cwnd_cnt), (w, count));
    }
}

/// Section 4.1: standard slow start below ssthresh, even where alpha > 1; what an ACK has left over
/// at ssthresh is worth alpha each: 3 * 11.25 = 33.75 = 3 * 10 + 3.75.
#[test]
fn slow_start_does_not_know_alpha() {
    let mut f = Flow::new(params("htcp", CORE), 8, 10);
    f.conn.now_us = DELTA_L_US + 1_000_000;
    f.send(5);
    f.ack(5, NO_SAMPLE, NEVER);
    assert_eq!((f.w(), f.conn.cwnd_cnt), (13, 3));
    let mut f = Flow::slow_start(params("htcp", CORE), 8);
    f.conn.now_us = 100 * SECOND_US;
    f.send(5);
    f.ack(5, NO_SAMPLE, NEVER);
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (13, SSTHRESH_INFINITE));
}

/// Growth spends what alpha gives: from a window to the next one costs a window's worth of credit,
/// so w(w-1)/2 + count is the sum of all alphas, less 2^-16 per packet at most.
#[test]
fn growth_over_many_acks_is_exact_to_the_fixed_point() {
    let worth = |f: &Flow| {
        let w = f64::from(f.w());
        w * (w - 1.0) / 2.0 + f64::from(f.conn.cwnd_cnt)
    };
    let mut f = htcp(CORE, 2000);
    let (start, mut sum, mut packets, mut worst) = (worth(&f), 0.0, 0.0, 0.0_f64);
    // 20 s at 20 000 ACKs per second.
    for i in 0..400_000_u64 {
        let (now_us, n) = (i * 50 + i % 7, 1 + (i % 3) as u32);
        f.conn.now_us = now_us;
        f.send(n);
        f.ack(n, NO_SAMPLE, NEVER);
        sum += f64::from(n) * eq2((now_us as f64 / 1e6 - 1.0).max(0.0));
        packets += f64::from(n);
        let short = start + sum - worth(&f);
        // The fraction, which is not seen, is below 1.
        assert!((-1e-3..packets / 65536.0 + 1.0).contains(&short), "ACK {i}: {short} short");
        worst = worst.max(short);
    }
    assert!(f.w() > 10_000, "far enough: {}", f.w());
    // The bound at the end is nothing to a window of that size.
    println!("{worst:.3} short of {sum:.0}; window {}", f.w());
    assert!(worst / f64::from(f.w()) < 0.002);
}

/// The window with its count, w + count/w, against eq. 1 in real numbers: at most half a packet
/// ahead, since a whole window is paid for +1 where eq. 1 takes w + 1/2, and hardly behind.
#[test]
fn growth_follows_eq_1_in_real_numbers() {
    for start in [2_u32, 10, 100, 5000] {
        let mut f = htcp(CORE, start);
        let (mut real, mut t_us) = (f64::from(start), 0.0_f64);
        while t_us < 4e6 {
            t_us += 80_000.0 / real;
            f.conn.now_us = t_us as u64;
            f.send(1);
            f.ack(1, NO_SAMPLE, NEVER);
            real += eq2((t_us.floor() / 1e6 - 1.0).max(0.0)) / real;
            let mine = f64::from(f.w()) + f64::from(f.conn.cwnd_cnt) / f64::from(f.w());
            assert!((-0.5..=1.0).contains(&(mine - real)), "{t_us}: {mine}, eq. 1 {real}");
        }
    }
}

#[test]
fn no_growth_while_the_application_limits() {
    for ssthresh in [10, SSTHRESH_INFINITE] {
        let mut f = Flow::new(params("htcp", CORE), 10, ssthresh);
        f.conn.now_us = 100 * SECOND_US;
        f.conn.cwnd_limited = 0;
        f.send(30);
        f.ack(30, NO_SAMPLE, NEVER);
        assert_eq!((f.w(), f.conn.cwnd_cnt), (10, 0));
    }
}

/// Nothing wraps: the largest alpha, ACK and window there are. 2^25 packets of an ACK count.
#[test]
fn growth_of_extremes() {
    let given = [("rtt_scaling", 1), ("rho_max", 10_000_000), ("rtt_ref", 1000), RAW];
    let mut f = htcp(&given, 1 << 30);
    measure(&mut f, 8, 100_000);
    assert_eq!(alpha_q16(&f, u64::MAX) >> 16, 2_989_687); // 10 * 298968.79
    f.conn.now_us = u64::MAX;
    f.conn.cwnd_max_pkts = i32::MAX as u32;
    f.conn.cwnd_cnt = 77;
    let ack = Ack { rtt_us: -1, acked_pkts: u32::MAX, ..Ack::default() };
    f.cc.on_ack(&mut f.conn, &ack);
    // 2989687.9 * 2^25 / 2^30 = 93427.7 steps.
    assert_eq!(f.w(), (1 << 30) + 93_427);
    let mut f = htcp(CORE, 1);
    f.conn.now_us = u64::MAX;
    f.conn.cwnd_max_pkts = 5;
    f.cc.on_ack(&mut f.conn, &ack);
    assert_eq!(f.w(), 5);
}

/// Slow start ends at `initial_ssthresh`, until there has been congestion.
#[test]
fn initial_ssthresh_limits_the_first_slow_start() {
    let mut f = Flow::slow_start(params("htcp", &[("initial_ssthresh", 20)]), 10);
    f.send(15);
    f.ack(15, 0, NEVER);
    assert_eq!((f.w(), f.conn.cwnd_cnt, f.conn.ssthresh_pkts), (20, 5, 20));
    assert_eq!(event(&mut f, 1), 10);
    f.send(1);
    f.ack(1, 0, NEVER);
    assert_eq!(f.conn.ssthresh_pkts, 10);
    // A floor of two packets, as for every threshold.
    let mut f = Flow::slow_start(params("htcp", &[("initial_ssthresh", 1)]), 10);
    f.send(1);
    f.ack(1, 0, NEVER);
    assert_eq!(f.conn.ssthresh_pkts, 2);
}

/// C25, AIMD paper Table I: time from w/2 to w, RTT 0.1 s, Delta from 0.
#[test]
fn epochs_of_table_1() {
    let rows: [(u32, f64, f64); 7] = [
        // (window, Table I, the sum over round trips of alpha at their start reaches w/2)
        (100, 1.1, 1.0),
        (1_000, 3.1, 3.1),
        (2_000, 4.3, 4.3),
        (5_000, 6.6, 6.7),
        (10_000, 9.2, 9.3),
        (20_000, 12.8, 12.9),
        (50_000, 19.4, 19.5),
    ];
    for (w, table_s, discrete_s) in rows {
        // A round trip's ACKs all at its start, and spread over it.
        for parts in [1_u32, 20] {
            let mut f = htcp(&[("delta_l", 0)], w);
            assert_eq!(event(&mut f, 0), w / 2);
            let (mut part, mut due) = (0_u64, 0.0);
            while f.w() < w {
                f.conn.now_us = part * 100_000 / u64::from(parts);
                due += f64::from(f.w()) / f64::from(parts);
                let n = due as u32;
                due -= f64::from(n);
                f.send(n);
                f.ack(n, NO_SAMPLE, NEVER);
                part += 1;
            }
            let s = part as f64 / f64::from(parts) / 10.0;
            println!("{w}: {s:.3} s, Table I {table_s}");
            assert!((s - table_s).abs() <= 0.2, "{w}: {s} s, Table I {table_s}");
            assert!(parts != 1 || (s - discrete_s).abs() < 0.05, "{w}: {s} s, sum {discrete_s}");
        }
    }
}

/// Growth in the 2.5 s after an event, RTT 80 ms (the setting of Fig. 3).
fn growth_after_an_event(f: &mut Flow) -> u32 {
    f.conn.cwnd_pkts = 200;
    f.conn.srtt_us = 80_000;
    let start_us = f.conn.now_us + SECOND_US;
    event(f, start_us);
    f.conn.cwnd_pkts = 100; // whatever beta was
    f.conn.ssthresh_pkts = 100;
    let mut t_us = start_us as f64;
    loop {
        t_us += 80_000.0 / f64::from(f.w());
        if t_us > start_us as f64 + 2.5e6 {
            return f.w() - 100;
        }
        f.conn.now_us = t_us as u64;
        f.send(1);
        f.ack(1, 80_000 - BASE_US as u32, NEVER);
    }
}

/// The integral of alpha over 31.25 round trips: NewReno 31.25; core 12.5 (1 + 13.03125) = 175.4;
/// de facto with rho = 0.8 and beta = 0.5 12.5 (1.0249 + 0.8 * 13.0033) = 142.8; with beta = 0.8,
/// alpha = max(1, 0.32 alpha_raw), 12.5 (1.2114 + 0.32 * 12.5956) = 65.5.
#[test]
fn growth_of_fig_3() {
    let mut reno = Flow::avoiding(params("newreno", &[]), 100);
    assert_eq!(growth_after_an_event(&mut reno), 31);
    let core = growth_after_an_event(&mut htcp(CORE, 100));
    assert!((174..=176).contains(&core), "core {core}");

    let keep = with(DE_FACTO, &[("fade", 1_000_000), ("first_event", 1), RAW]);
    let mut f = htcp(&keep, 100);
    measure(&mut f, 8, 160_000);
    measure(&mut f, 8, 80_000);
    let deep = growth_after_an_event(&mut f);
    assert!((142..=144).contains(&deep), "de facto, beta 0.5: {deep}");
    let mut f = htcp(&keep, 100);
    measure(&mut f, 8, 80_000);
    let shallow = growth_after_an_event(&mut f);
    assert!((65..=66).contains(&shallow), "de facto, beta 0.8: {shallow}");
}

// ---------------------------------------------------------------------------------------------
// RTT scaling: eqs. 3 to 5
// ---------------------------------------------------------------------------------------------

/// rho = RTT / 1 s, held between 0.1 and 2. alpha_raw at x = 1 is 11.25.
#[test]
fn rho() {
    for (rtt_us, expected) in [
        (50_000, 1.125), // 0.05 -> 0.1
        (100_000, 1.125),
        (500_000, 5.625),
        (1_000_000, 11.25),
        (2_000_000, 22.5),
        (5_000_000, 22.5), // 5 -> 2
    ] {
        let mut f = htcp(&[("rtt_scaling", 1), ("rtt_ref", 1_000_000)], 100);
        measure(&mut f, 8, rtt_us);
        let got = alpha(&f, DELTA_L_US + 1_000_000);
        // rho is rounded down by 2^-24, alpha by 2^-16.
        assert!((0.0..2e-5).contains(&(expected - got)), "RTT {rtt_us}: {got}");
    }
}

/// eq. 5: at least 1. In the low-speed period too, where rho > 1 does scale alpha_raw = 1.
#[test]
fn rtt_scaling_never_stops_growth() {
    let mut f = htcp(&[("rtt_scaling", 1)], 100);
    measure(&mut f, 8, 50_000);
    assert_eq!(alpha_q16(&f, 0), ONE_Q16);
    assert_eq!(alpha_q16(&f, DELTA_L_US + 90_000), ONE_Q16); // 0.5 * 1.902
    let mut f = htcp(&[("rtt_scaling", 1)], 100);
    measure(&mut f, 8, 200_000);
    assert_eq!(alpha_q16(&f, 0), 2 * ONE_Q16);
}

/// `signal`: the latest sample, or the smoothed RTT; none before the eighth: rho = 1.
#[test]
fn rho_is_of_the_chosen_rtt() {
    for (signal, expected) in [(RAW, 4.5), (SRTT, 9.0)] {
        let mut f = htcp(&[("rtt_scaling", 1), signal], 100);
        for n in 1..=8 {
            assert_eq!(alpha(&f, DELTA_L_US + 1_000_000), 11.25, "{n}");
            f.conn.cwnd_limited = 0;
            f.conn.srtt_us = 80_000;
            f.send(2);
            f.ack(2, 0, NEVER); // 40 ms
        }
        let got = alpha(&f, DELTA_L_US + 1_000_000);
        assert!((0.0..2e-5).contains(&(expected - got)), "{signal:?}: {got}");
    }
}

// ---------------------------------------------------------------------------------------------
// Adaptive backoff: eqs. 6 to 11
// ---------------------------------------------------------------------------------------------

/// Section 4.3: RTTmin waits for eight RTT updates; then eqs. 6 and 7. ACKs without a sample are no
/// updates.
#[test]
fn rtt_extremes_wait_for_eight_updates() {
    for signal in [RAW, SRTT] {
        let mut f = htcp(&[signal], 100);
        for rtt_us in [50_000, 300_000, 41_000, 60_000, 60_000, 60_000, 60_000] {
            measure(&mut f, 1, rtt_us);
            f.send(2);
            f.ack(2, NO_SAMPLE, NEVER);
            assert_eq!(rtt_min_max(&f), [0, 0]);
        }
        measure(&mut f, 1, 80_000);
        assert_eq!(rtt_min_max(&f), [80_000, 80_000]);
        measure(&mut f, 1, 90_000);
        measure(&mut f, 1, 70_000);
        measure(&mut f, 1, 85_000);
        assert_eq!(rtt_min_max(&f), [70_000, 90_000]);
    }
}

/// A flow in adaptive backoff that has measured `min_us` and `max_us`, past its first event.
fn adaptive(more: &[(&'static str, u64)], min_us: u32, max_us: u32) -> Flow {
    let given = with(&[("adaptive_backoff", 1), ("first_event", 1)], more);
    let mut f = htcp(&given, 1000);
    measure(&mut f, 8, max_us);
    measure(&mut f, 1, min_us);
    f
}

/// eqs. 8 and 11 within [0.5, 0.8]. 80/110 * 1000 = 727.27.
#[test]
fn beta_is_the_ratio_of_the_extremes() {
    for (min_us, max_us, ssthresh, ppm) in [
        (80_000, 160_000, 500, 500_000),
        (80_000, 400_000, 500, 500_000),
        (80_000, 110_000, 727, 727_272),
        (80_000, 100_000, 800, 799_999), // 0.8 in binary, rounded down
        (80_000, 90_000, 800, 799_999),
        (80_000, 80_000, 800, 799_999),
    ] {
        let mut f = adaptive(&[], min_us, max_us);
        assert_eq!(f.cc.observe()[1], ppm, "{min_us} / {max_us}");
        assert_eq!(event(&mut f, 0), ssthresh, "{min_us} / {max_us}");
    }
}

proptest! {
    #![proptest_config(config())]

    /// beta * cwnd over all RTTs and windows: rounded down; one more only where the product lies
    /// below a whole number by less than cwnd / 2^31.
    #[test]
    fn beta_times_cwnd_is_rounded_down(
        (min_us, max_us) in (40_000_u32..1 << 24).prop_flat_map(|max| (40_000..=max, Just(max))),
        w in 1_u32..1 << 30,
    ) {
        let mut f = adaptive(&[("beta_min", 0), ("beta_max", 1_000_000)], min_us, max_us);
        f.conn.cwnd_pkts = w;
        let product = u128::from(w) * u128::from(min_us); // times RTTmax
        let exact = (product / u128::from(max_us)) as u32;
        let more = (u128::from(w) * u128::from(max_us)) >> 31;
        let up = ((product + more) / u128::from(max_us)) as u32;
        let got = event(&mut f, 0);
        prop_assert!((exact.max(2)..=up.max(2)).contains(&got), "{got}, exactly {exact}");
    }
}

/// eq. 10: RTTmin + 7/8 (RTTmax - RTTmin): 80 + 7/8 * 80 = 150; 80 + 7/8 * 70 = 141.25.
#[test]
fn rtt_max_fades() {
    let mut f = adaptive(&[], 80_000, 160_000);
    event(&mut f, 0);
    assert_eq!(rtt_min_max(&f), [80_000, 150_000]);
    event(&mut f, 1);
    assert_eq!(rtt_min_max(&f), [80_000, 141_250]);
    // beta is the ratio before the fading: 80 / 141.25 * 1000 = 566.4.
    f.conn.cwnd_pkts = 1000;
    assert_eq!(event(&mut f, 2), 566);
    // Linux and FreeBSD: 80 + 0.95 * 80 = 156.
    let mut f = adaptive(&[("fade", 950_000)], 80_000, 160_000);
    event(&mut f, 0);
    assert_eq!(rtt_min_max(&f), [80_000, 156_000]);
}

/// eq. 9: 2 (1 - beta) alpha_raw, at least 1. beta = 0.8: 0.4 * 11.25 = 4.5; beta = 80/120: 2/3 *
/// 11.25 = 7.5. With rho = 0.8 (HT-a): 0.8 * 0.4 * 11.25 = 3.6.
#[test]
fn alpha_makes_up_for_beta() {
    let at_1_s = DELTA_L_US + 1_000_000;
    let near = |f: &Flow, expected: f64| {
        let got = alpha(f, at_1_s);
        assert!((got - expected).abs() < 2e-5, "{got}, by hand {expected}");
    };
    near(&adaptive(&[], 80_000, 80_000), 4.5);
    near(&adaptive(&[], 80_000, 120_000), 7.5);
    near(&adaptive(&[], 80_000, 160_000), 11.25);
    near(&adaptive(&[("rtt_scaling", 1)], 80_000, 80_000), 3.6);
    // 0.4 * 1 is below 1.
    assert_eq!(alpha_q16(&adaptive(&[], 80_000, 80_000), 0), ONE_Q16);
    // One final max(1, .): 0.5 * 1.100015 * 1.8 = 0.99, where max(1, 0.55) * 1.8 would be 1.8.
    let f = adaptive(
        &[("rtt_scaling", 1), ("rtt_ref", 160_000), ("beta_min", 100_000)],
        80_000,
        800_000,
    );
    assert_eq!(alpha_q16(&f, DELTA_L_US + 9_999), ONE_Q16);
}

/// alpha with both extensions against real numbers, over times, RTTs and windows.
fn scaled_alpha(x_us: u64, min_us: u32, max_us: u32, rtt_us: u32) -> f64 {
    let rho = (f64::from(rtt_us) / 100_000.0).clamp(0.1, 2.0);
    let beta = (f64::from(min_us) / f64::from(max_us)).clamp(0.5, 0.8);
    (rho * 2.0 * (1.0 - beta) * eq2(x_us as f64 / 1e6)).max(1.0)
}

proptest! {
    #![proptest_config(config())]

    /// Short by at most 2^-16 for each of three roundings (scaled by factors up to 2) and by 2^-24
    /// of rho and of 2 (1 - beta), relatively 2^-24/0.1 and 2^-24/0.4.
    #[test]
    fn scaled_alpha_is_close(
        x_us in 0..=X_MAX_US,
        (min_us, max_us) in (40_000_u32..2_000_000).prop_flat_map(|max| (40_000..=max, Just(max))),
        part in 0.0..1.0_f64,
    ) {
        let rtt_us = min_us + (f64::from(max_us - min_us) * part) as u32;
        let mut f = htcp(&with(DE_FACTO, &[("first_event", 1)]), 100);
        measure(&mut f, 8, max_us);
        measure(&mut f, 1, min_us);
        measure(&mut f, 1, rtt_us);
        let real = scaled_alpha(x_us, min_us, max_us, rtt_us);
        let got = alpha(&f, DELTA_L_US + x_us);
        let allowed = 5.0 / 65536.0 + real * (10.0 + 2.5) / 16_777_216.0;
        prop_assert!((got - real).abs() <= allowed, "{got}, real {real}");
    }
}

/// The first congestion event halves (as Linux and FreeBSD); until then alpha takes beta = 0.5.
#[test]
fn first_event_halves() {
    let mut f = htcp(&[("adaptive_backoff", 1)], 1000);
    measure(&mut f, 8, 80_000);
    assert_eq!(alpha(&f, DELTA_L_US + 1_000_000), 11.25);
    assert_eq!(event(&mut f, 0), 500);
    f.conn.cwnd_pkts = 1000;
    assert_eq!(event(&mut f, 1), 800);
    assert_eq!(event(&mut adaptive(&[], 80_000, 80_000), 0), 800); // first_event=adaptive
}

/// Core: half, whatever the RTTs are. Floor: two packets.
#[test]
fn core_halves() {
    let mut f = htcp(&[("first_event", 1)], 1000);
    measure(&mut f, 8, 80_000);
    for (w, ssthresh) in [(1000, 500), (501, 250), (5, 2), (2, 2), (1, 2)] {
        f.conn.cwnd_pkts = w;
        assert_eq!(event(&mut f, 0), ssthresh);
    }
}

/// Section 4.5: Delta starts before recovery, so the time in recovery counts.
#[test]
fn delta_counts_recovery() {
    let mut f = htcp(CORE, 100);
    f.conn.now_us = 10 * SECOND_US;
    f.send(4);
    f.ack(1, NO_SAMPLE, NEVER); // 1 + 90 + 20.25 = 100 + 11.25
    assert_eq!((f.w(), f.conn.cwnd_cnt), (101, 11));
    f.loss();
    f.conn.now_us = 12 * SECOND_US;
    f.recovered();
    assert_eq!(alpha(&f, 12 * SECOND_US), 11.25); // x = 1 s
    // 3 * 11.25 = 33.75: the 0.25 from before the event is gone, as the stack's count is.
    f.ack(3, NO_SAMPLE, NEVER);
    assert_eq!((f.w(), f.conn.cwnd_cnt), (50, 33));
}

/// `signal=raw` leaves out samples that a delayed ACK may have lengthened, as HD and CHD do.
#[test]
fn raw_samples_pass_the_delayed_ack_filter() {
    for (filter, max_us) in [(1, 80_000), (0, 120_000)] {
        let mut f = htcp(&[RAW, ("delack_filter", filter)], 100);
        measure(&mut f, 8, 80_000); // ACKs of two packets
        f.send(1);
        f.ack(1, 80_000, NEVER); // a lone packet, 120 ms
        assert_eq!(rtt_min_max(&f), [80_000, max_us]);
    }
}

// ---------------------------------------------------------------------------------------------
// Timeouts and undo
// ---------------------------------------------------------------------------------------------

/// Two timeouts at 5 and 10 s; gives alpha at 12 s, which tells since when Delta runs.
fn alpha_after_timeouts(given: &[(&str, u64)], between: impl Fn(&mut Flow)) -> f64 {
    let mut f = htcp(given, 100);
    f.conn.now_us = 5 * SECOND_US;
    f.send(100);
    f.timeout();
    assert_eq!(alpha(&f, 2 * SECOND_US), 11.25, "the first one changes nothing");
    between(&mut f);
    f.conn.now_us = 10 * SECOND_US;
    f.timeout();
    alpha(&f, 12 * SECOND_US)
}

/// All of the Loss phase's data is acknowledged; the phase ends.
fn leave_loss(f: &mut Flow) {
    f.send(1);
    f.ack(f.conn.outstanding_pkts, NO_SAMPLE, NEVER);
    f.conn.phase = Phase::Open as u8;
}

/// Section 4.5: the first timeout may be a false alarm, the second in a row starts Delta again. In a
/// row: no round trip in good order, and no fast recovery, between them.
#[test]
fn second_timeout_in_a_row_starts_delta() {
    // Delta from 10 s: x = 1 s.
    assert_eq!(alpha_after_timeouts(CORE, |_| {}), 11.25);
    assert_eq!(alpha_after_timeouts(CORE, leave_loss), 11.25);
    // From 0: x = 11 s, 1 + 110 + 30.25.
    let in_order = |f: &mut Flow| {
        leave_loss(f);
        assert_ne!(f.round(NO_SAMPLE, NEVER) & NOTE_ROUND, 0);
    };
    assert_eq!(alpha_after_timeouts(CORE, in_order), 141.25);
    // A fast recovery at 5 s starts Delta itself: x = 6 s, 1 + 60 + 9.
    let lossy = |f: &mut Flow| {
        leave_loss(f);
        f.loss();
        f.recovered();
    };
    assert_eq!(alpha_after_timeouts(CORE, lossy), 70.0);
}

#[test]
fn every_timeout_can_start_delta() {
    let mut f = htcp(&[("rto_restart", 0)], 100);
    f.conn.now_us = 5 * SECOND_US;
    f.timeout();
    assert_eq!(alpha(&f, 7 * SECOND_US), 11.25);
    // The alarm was false: Delta from 0 again, x = 6 s.
    assert_eq!(f.cc.undo(&mut f.conn), 100);
    assert_eq!(alpha(&f, 7 * SECOND_US), 70.0);
}

/// RFC 5681 section 3.1 eq. 4 for the threshold; RTTmax does not fade, and a timeout is not the
/// first congestion event that lets beta adapt.
#[test]
fn timeout_is_newreno() {
    let mut f = htcp(&[("adaptive_backoff", 1)], 1000);
    measure(&mut f, 8, 80_000);
    measure(&mut f, 1, 160_000);
    f.conn.outstanding_pkts = 600;
    assert_eq!(f.timeout(), 300);
    assert_eq!(rtt_min_max(&f), [80_000, 160_000]);
    f.conn.cwnd_pkts = 1000;
    f.conn.phase = Phase::Open as u8;
    assert_eq!(event(&mut f, 0), 500, "the first event");
}

#[test]
fn undo_restores_the_fields_that_the_loss_changed() {
    let mut f = htcp(&[("adaptive_backoff", 1)], 1000);
    measure(&mut f, 8, 80_000);
    measure(&mut f, 1, 120_000);
    assert_eq!(event(&mut f, 3 * SECOND_US), 500);
    assert_eq!(rtt_min_max(&f), [80_000, 115_000]);
    assert_eq!(f.cc.undo(&mut f.conn), 1000);
    assert_eq!(rtt_min_max(&f), [80_000, 120_000]);
    assert_eq!(alpha(&f, 4 * SECOND_US), 1.0 + 30.0 + 2.25, "Delta from 0");
    f.conn.cwnd_pkts = 1000;
    assert_eq!(event(&mut f, 4 * SECOND_US), 500, "still the first event");
    f.conn.cwnd_pkts = 1200; // has grown past it meanwhile
    assert_eq!(f.cc.undo(&mut f.conn), 1200);
    // RTTmax has gone above meanwhile, and stays there.
    event(&mut f, 5 * SECOND_US);
    measure(&mut f, 1, 200_000);
    f.cc.undo(&mut f.conn);
    assert_eq!(rtt_min_max(&f), [80_000, 200_000]);
}

// ---------------------------------------------------------------------------------------------
// Adaptive reset; Linux
// ---------------------------------------------------------------------------------------------

/// A flow of 100 packets with beta = 80/120 for adaptive reset.
fn resetting() -> Flow {
    let mut f = adaptive(&[("adaptive_reset", 1), ("fade", 1_000_000)], 80_000, 120_000);
    f.conn.cwnd_limited = 0;
    assert_eq!(event_now(&mut f), 666, "nothing delivered yet that could change");
    f
}

/// Rounds of 100 packets, each `round_us` long.
fn rounds(f: &mut Flow, n: u32, round_us: u64) {
    for _ in 0..n {
        f.conn.cwnd_pkts = 100;
        f.conn.now_us += round_us;
        assert_eq!(f.round(NO_SAMPLE, NEVER), NOTE_ROUND);
    }
}

fn event_now(f: &mut Flow) -> u32 {
    event(f, f.conn.now_us)
}

/// Half where the throughput differs from the last epoch's by more than 20 %, and once more; else
/// 2/3 of 100.
#[test]
fn reset_on_a_change_of_throughput() {
    let mut f = resetting();
    for (round_us, ssthresh) in [
        (100_000, 50), // 1000 packets/s; nothing before
        (100_000, 50), // and once more
        (100_000, 66),
        (125_000, 66), // 800: 20 % less, not more than that
        (160_000, 50), // 625: 21.9 % less
        (160_000, 50),
        (160_000, 66),
        (133_333, 66), // 750: 20 % more
        (110_000, 50), // 909: 21.2 % more
        (80_000, 50),  // 1250: a change again
        (80_000, 50),
        (80_000, 66),
    ] {
        rounds(&mut f, 5, round_us);
        assert_eq!(event_now(&mut f), ssthresh, "{round_us} us");
    }
}

/// Smoothed by 3/4 and 1/4, but for the first three rounds; the epoch's largest counts.
#[test]
fn reset_smooths_the_throughput() {
    // (length of the fourth round, threshold): 1000 packets/s, then 2000: (3000 + 2000)/4 = 1250,
    // 25 % more; then 1666.7: 1166.7, 16.7 % more.
    for (fourth_us, ssthresh) in [(50_000, 50), (60_000, 66)] {
        let mut f = resetting();
        for _ in 0..3 {
            rounds(&mut f, 5, 100_000);
            event_now(&mut f);
        }
        // The first two rounds do not count, whatever they were.
        rounds(&mut f, 2, 20_000);
        rounds(&mut f, 1, 100_000);
        rounds(&mut f, 1, fourth_us);
        rounds(&mut f, 4, 200_000); // the largest stays
        assert_eq!(event_now(&mut f), ssthresh, "{fourth_us} us");
    }
}

/// An event taken back has changed nothing: neither the throughput to compare with, nor the epoch's
/// largest, nor whether beta adapts. Each case is (rounds before the event that is taken back, its
/// threshold, rounds after it, the threshold of the next event).
#[test]
fn undo_resumes_the_epoch_of_the_throughput() {
    for ((n, round_us), first, (m, then_us), second) in [
        ((5, 50_000), 50, (1, 50_000), 50), // 2000 packets/s against 1000, before and after
        ((5, 200_000), 50, (1, 200_000), 50), // 500 against 1000
        ((5, 200_000), 50, (9, 100_000), 66), // from 250 up to 944
        ((5, 100_000), 66, (2, 300_000), 66), // 1000 stays the largest
    ] {
        let mut f = resetting();
        for _ in 0..3 {
            rounds(&mut f, 5, 100_000);
            event_now(&mut f);
        }
        rounds(&mut f, n, round_us);
        assert_eq!(event_now(&mut f), first);
        rounds(&mut f, 1, 400_000); // 250 packets/s, until the undo comes
        f.cc.undo(&mut f.conn);
        f.cc.undo(&mut f.conn); // a host that asks again
        rounds(&mut f, m, then_us);
        assert_eq!(event_now(&mut f), second, "{n} of {round_us} us, {m} of {then_us} us");
    }
}

/// HT-f. RTTmax rises by at most 20 ms a sample, in good order only; rho = RTTmin / 100 ms; beta
/// adapts only where RTTmin > 10 ms.
#[test]
fn linux_compat() {
    let given = with(DE_FACTO, &[("linux_compat", 1), ("first_event", 1), ("rho_min", 0)]);
    let mut f = htcp(&given, 1000);
    measure(&mut f, 8, 80_000);
    for (rtt_us, max_us) in [(100_001, 80_000), (100_000, 100_000), (121_000, 100_000)] {
        measure(&mut f, 1, rtt_us);
        assert_eq!(rtt_min_max(&f), [80_000, max_us]);
    }
    f.conn.phase = Phase::Disorder as u8;
    measure(&mut f, 1, 110_000);
    assert_eq!(rtt_min_max(&f), [80_000, 100_000]);
    measure(&mut f, 1, 70_000);
    assert_eq!(rtt_min_max(&f), [70_000, 100_000]);
    f.conn.phase = Phase::Open as u8;
    measure(&mut f, 1, 110_000);
    // alpha = 11.25, in whole packets 11; rho = 0.7, 7; beta = 70/110: 2 * 40/110 * 7 = 5.0909.
    assert!((alpha(&f, DELTA_L_US + 1_000_000) - 5.0909).abs() < 1e-4);
    // Delta: a recovery that begins at 1 s ends at 1.5 s.
    f.conn.now_us = 1_000_000;
    f.loss();
    f.conn.now_us = 1_500_000;
    f.recovered();
    let first_ms = |f: &Flow, ms: u64| alpha(f, ms * 1000) > 1.0;
    assert!(!first_ms(&f, 2_500) && first_ms(&f, 2_800));

    for (rtt_us, ssthresh) in [(10_000, 500), (10_001, 800)] {
        let mut f = htcp(&with(&given, &[RAW]), 1000);
        for _ in 0..8 {
            f.cc.on_rtt(&mut f.conn, &Ack { rtt_us, acked_pkts: 1, ..Ack::default() });
        }
        assert_eq!(event(&mut f, 0), ssthresh, "RTTmin {rtt_us}");
    }
}

/// The values for plots.
#[test]
fn observed() {
    let mut f = adaptive(&[], 80_000, 120_000);
    f.conn.now_us = DELTA_L_US + 1_000_000;
    f.send(1);
    f.ack(1, NO_SAMPLE, NEVER);
    let [alpha_milli, beta_ppm, min_us, max_us] = f.cc.observe();
    assert!((7499..=7500).contains(&alpha_milli), "{alpha_milli}"); // 2/3 * 11.25
    assert_eq!((beta_ppm, min_us, max_us), (666_666, 80_000, 120_000));
    f.cc.on_event(&mut f.conn, Event::TxStart);
    assert_eq!(f.cc.observe(), [alpha_milli, beta_ppm, min_us, max_us]);
}
