//! Every rule of Compound TCP against values worked out by hand, and its arithmetic against floating
//! point. Queueing delays are microseconds; baseRTT is 40 ms, so that at q = 10 ms
//! diff = win / 5. The smoothed RTT is the latest sample (`srtt_weight` = 0) unless said otherwise.

#[allow(dead_code)] // each test file uses a part of it
mod common;

use common::{Flow, NEVER, NO_SAMPLE, params};
use knee_cc::{Ack, Event, NOTE_DELAY_BACKOFF, NOTE_ROUND, Phase};
use proptest::prelude::*;

const REDUCED: u32 = NOTE_ROUND | NOTE_DELAY_BACKOFF;

/// baseRTT is known, the smoothed RTT is the latest sample, dwnd is 0.
fn settled(given: &[(&str, u64)], win_pkts: u32) -> Flow {
    let weight = [("srtt_weight", 0)];
    let given: Vec<_> = weight.iter().chain(given).copied().collect();
    let mut f = Flow::avoiding(params("compound", &given), win_pkts);
    f.conn.cwnd_limited = 0;
    f.round(0, NEVER);
    f.conn.cwnd_limited = 1;
    assert_eq!((f.w(), dwnd(&f)), (win_pkts, 0));
    f
}

fn dwnd(f: &Flow) -> u32 {
    f.cc.observe()[0]
}

/// One ACK of a whole window, which ends a round: dwnd grows by all of its gain. Where it does not grow or fall,
/// cwnd grows by a packet.
fn judge(f: &mut Flow, q_us: impl Into<Option<u32>>) -> u32 {
    f.conn.cwnd_cnt = 0;
    f.send(f.w());
    f.ack(f.w(), q_us, NEVER)
}

/// dwnd is 63 packets exactly, which a round at 4096 packets gives: 512/8 - 1. Then the window is this.
fn with_dwnd(given: &[(&str, u64)], win_pkts: u32) -> Flow {
    let mut f = settled(given, 4_096);
    judge(&mut f, 0);
    assert_eq!((f.w(), dwnd(&f)), (4_096 + 63, 63));
    // No growth until the next round has been judged.
    f.recovered();
    f.conn.cwnd_pkts = win_pkts;
    f.conn.ssthresh_pkts = 2;
    f
}

/// diff < gamma: dwnd += max(win^(3/4)/8 - 1, 0), from 41 packets on.
#[test]
fn dwnd_grows() {
    for (win, gain) in [
        (40, 0),
        (41, 1),     // 16.2/8 - 1 = 1.03
        (256, 7),    // 64/8 - 1
        (1_000, 21), // 177.8/8 - 1 = 21.2
        (4_096, 63),
        (10_000, 124),
        (65_536, 511),
        (16_777_216, 32_767),
    ] {
        let mut f = settled(&[], win);
        assert_eq!(judge(&mut f, 0), NOTE_ROUND);
        assert_eq!((f.w(), dwnd(&f)), (win + gain.max(1), gain), "{win}");
    }
    for (given, gain) in [
        (("alpha", 250_000), 15),
        (("alpha", 0), 0),
        (("low_window", 256), 7),
        (("low_window", 257), 0),
    ] {
        let mut f = settled(&[given], 256);
        judge(&mut f, 0);
        assert_eq!(dwnd(&f), gain, "{given:?}");
    }
    // Where alpha win^(3/4) is below 1, nothing is taken away.
    let mut f = with_dwnd(&[("low_window", 0)], 63);
    f.conn.cwnd_pkts = 15;
    judge(&mut f, 0);
    assert_eq!((f.w(), dwnd(&f)), (16, 15), "dwnd is a part of the window");
}

/// Reading CT-d: the growth of a round is spread over the ACKs of the next one.
#[test]
fn growth_is_spread() {
    let mut f = settled(&[], 4_096);
    f.send(1);
    f.ack(1, 0, NEVER);
    f.send(4_096);
    let mut before = dwnd(&f);
    for _ in 0..4_000 {
        f.ack(1, 0, NEVER);
        assert!(dwnd(&f) <= before + 1);
        before = dwnd(&f);
    }
    // 63 of 4096 packets; the window grows meanwhile.
    assert!((60..=62).contains(&before), "{before}");
}

/// Fractions of a packet add up.
#[test]
fn fractions_add_up() {
    let mut f = settled(&[("low_window", 0)], 20);
    let mut exact = 0.0_f64; // 20^(3/4)/8 - 1 = 0.18 in the first round
    for _ in 0..60 {
        let win = f64::from(20 + dwnd(&f));
        exact += win.powf(0.75) / 8.0 - 1.0;
        judge(&mut f, 0);
        f.conn.cwnd_pkts = 20 + dwnd(&f); // without cwnd's growth
        assert!(
            (exact - 0.1 - 1.0..=exact).contains(&f64::from(dwnd(&f))),
            "{exact}, {}",
            dwnd(&f)
        );
    }
    assert!(dwnd(&f) > 20);
}

/// diff = win/5 at q = 10 ms against gamma = 30.
#[test]
fn gamma_decides() {
    // 149: 29.8, so 149^(3/4)/8 - 1 = 4.33 more. 150: 30, so 63 - 30.
    for (win, after, dwnd_after, notes) in [(149, 153, 67, NOTE_ROUND), (150, 120, 33, REDUCED)] {
        let mut f = with_dwnd(&[], win);
        assert_eq!(judge(&mut f, 10_000), notes);
        assert_eq!((f.w(), dwnd(&f), f.cc.observe()[1]), (after, dwnd_after, win * 200));
    }
    let mut f = with_dwnd(&[("gamma", 31)], 150);
    judge(&mut f, 10_000);
    assert!(f.w() > 150);
}

/// diff >= gamma: dwnd = max(dwnd - zeta diff, 0); slow start does not resume.
#[test]
fn dwnd_falls() {
    // win = 200, diff = 100 at q = 40 ms.
    for (zeta, after, dwnd_after) in
        [(1_000_000, 137, 0), (500_000, 150, 13), (255_000, 174, 37), (0, 201, 63)]
    {
        // 255 000: 63 - 25.5 = 37.5; the window has the whole packets, 200 - (63 - 37).
        let mut f = with_dwnd(&[("zeta", zeta)], 200);
        f.conn.ssthresh_pkts = 180;
        let notes = judge(&mut f, 40_000);
        assert_eq!((f.w(), dwnd(&f)), (after, dwnd_after), "zeta {zeta}");
        assert_eq!(notes, if after < 200 { REDUCED } else { NOTE_ROUND });
        assert_eq!(f.conn.ssthresh_pkts, if after < 200 { after } else { 180 });
    }
    // NewReno where dwnd is 0: +1 in a window's worth of packets.
    let mut f = settled(&[], 200);
    f.send(200);
    assert_eq!(f.ack(200, 40_000, NEVER), NOTE_ROUND);
    assert_eq!((f.w(), dwnd(&f)), (201, 0));
}

/// cwnd grows by 1/win for each packet, not by 1/cwnd.
#[test]
fn cwnd_grows() {
    let mut f = with_dwnd(&[("low_window", 4_096)], 100);
    f.conn.cwnd_cnt = 0;
    f.send(100);
    for acked in 1..=100 {
        f.ack(1, 0, NEVER);
        assert_eq!((f.w(), dwnd(&f)), (100 + acked / 100, 63));
    }
}

/// dwnd = max(win (1 - beta) - cwnd/2, 0), cwnd = cwnd/2.
#[test]
fn loss_and_undo() {
    for (given, win, ssthresh, dwnd_after) in [
        (("beta", 500_000), 163, 81, 31),  // 81.5 - 50
        (("beta", 500_000), 164, 82, 31),  // 82 - 50.5
        (("beta", 125_000), 163, 142, 92), // 142.6 - 50
        (("beta", 800_000), 163, 50, 0),   // 32.6 - 50
        (("beta", 1_000_000), 163, 50, 0),
        (("beta", 500_000), 63, 31, 31), // cwnd = 0
    ] {
        let mut f = with_dwnd(&[given], win);
        f.send(win);
        assert_eq!(f.loss().0, ssthresh, "{given:?}, {win}");
        assert_eq!(dwnd(&f), dwnd_after);
        let mut undone = f.clone();
        assert_eq!((undone.cc.undo(&mut undone.conn), dwnd(&undone)), (win, 63));
        f.ack_ending_recovery(2, 0, NEVER);
        assert_eq!((f.w(), dwnd(&f)), (ssthresh, dwnd_after));
    }
    let mut f = settled(&[], 3);
    assert_eq!(f.loss().0, 2);
}

/// Nothing changes dwnd in recovery, and the round that a recovery overlapped does not either.
#[test]
fn recovery() {
    let mut f = with_dwnd(&[], 163);
    f.send(163);
    f.loss();
    for q_us in [40_000, 0] {
        f.send(2);
        assert_eq!(f.ack(f.conn.outstanding_pkts, q_us, NEVER), NOTE_ROUND);
    }
    f.send(2);
    f.ack_ending_recovery(2, 40_000, NEVER);
    assert_eq!((f.w(), dwnd(&f)), (81, 31));
    // 81 packets, diff = 40.5: the next round decides again.
    assert_eq!(judge(&mut f, 40_000), REDUCED);
    assert_eq!((f.w(), dwnd(&f)), (50, 0));
}

/// Reading CT-b: gamma = (1 - lambda) gamma + lambda 3/4 diff of cwnd alone, 5 to 30 packets.
#[test]
fn gamma_is_learnt() {
    let seen = |f: &mut Flow, q_us: i32| {
        let ack = Ack { rtt_us: 40_000 + q_us, acked_pkts: 2, ..Ack::default() };
        f.cc.on_rtt(&mut f.conn, &ack);
    };
    for (lambda, q_us, gamma) in [
        (800_000, 10_000, 18_000), // 6 + 0.8 * 15
        (200_000, 10_000, 27_000), // 24 + 0.2 * 15
        (800_000, 0, 6_000),
        (900_000, 0, 5_000),        // 3
        (800_000, 120_000, 30_000), // 6 + 0.8 * 56
    ] {
        // cwnd = 100.
        let mut f = with_dwnd(&[("gamma_tuning", 1), ("lambda", lambda)], 163);
        seen(&mut f, q_us);
        f.loss();
        assert_eq!(f.cc.observe()[2], gamma, "lambda {lambda}, q {q_us}");
        f.cc.undo(&mut f.conn);
        assert_eq!(f.cc.observe()[2], 30_000);
    }
    let mut f = with_dwnd(&[("gamma_tuning", 0)], 163);
    seen(&mut f, 0);
    f.loss();
    assert_eq!(f.cc.observe()[2], 30_000);
    // The learnt gamma decides: 25 packets of 125 queued.
    let mut f = with_dwnd(&[("gamma_tuning", 1), ("lambda", 1_000_000)], 163);
    seen(&mut f, 10_000);
    f.loss(); // 15
    f.recovered();
    f.conn.cwnd_pkts = 125;
    assert_eq!(judge(&mut f, 10_000), REDUCED);
}

/// Reading CT-f: dwnd, baseRTT and gamma start afresh; NewReno's threshold and growth.
#[test]
fn timeout() {
    let mut f = with_dwnd(&[("gamma_tuning", 1)], 163);
    f.send(163);
    assert_eq!(f.timeout(), 81);
    let [dwnd, _, gamma, base] = f.cc.observe();
    assert_eq!((dwnd, gamma, base), (0, 30_000, 0));
    for after in [2, 3, 4] {
        f.ack(1, 40_000, NEVER);
        assert_eq!(f.w(), after);
    }
    assert_eq!(f.cc.observe()[3], 80_000);
    assert_eq!(f.cc.undo(&mut f.conn), 163);
    assert_eq!(f.cc.observe()[0], 63);
}

#[test]
fn idle_restart() {
    let mut f = with_dwnd(&[], 163);
    f.cc.on_event(&mut f.conn, Event::TxStart);
    assert_eq!(dwnd(&f), 63);
    f.cc.on_event(&mut f.conn, Event::CwndRestart);
    assert_eq!(dwnd(&f), 0);
}

/// NewReno's, without dwnd, whatever the delay.
#[test]
fn slow_start() {
    let mut f = Flow::slow_start(params("compound", &[]), 50);
    for (q_us, after) in [(0, 100), (80_000, 200), (0, 400)] {
        assert_eq!(f.round(q_us, NEVER), NOTE_ROUND);
        assert_eq!((f.w(), dwnd(&f)), (after, 0));
    }
}

/// Reading CT-a: 7/8 of the past. 35 + 15 = 50 ms after a sample of 120 ms.
#[test]
fn the_smoothed_rtt() {
    let mut f = Flow::avoiding(params("compound", &[]), 100);
    f.conn.cwnd_limited = 0;
    f.round(0, NEVER);
    f.round(80_000, NEVER);
    assert_eq!(f.cc.observe()[1], 20_000);
    f.round(NO_SAMPLE, NEVER);
    assert_eq!(f.cc.observe()[1], 20_000);
}

/// No growth, but dwnd falls.
#[test]
fn the_application_limits() {
    let mut f = with_dwnd(&[], 200);
    f.conn.cwnd_limited = 0;
    judge(&mut f, 0);
    assert_eq!((f.w(), dwnd(&f)), (200, 63));
    assert_eq!(judge(&mut f, 40_000), REDUCED);
}

#[test]
fn disorder_does_not_keep_a_decision_away() {
    let mut f = with_dwnd(&[], 200);
    f.conn.phase = Phase::Disorder as u8;
    assert_eq!(judge(&mut f, 40_000), REDUCED);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// alpha win^(3/4) - 1 over all windows: short by at most alpha 2^-7, and 2^-16 win^(3/4) where
    /// alpha is no multiple of that.
    #[test]
    fn growth_over_its_range(
        (window, shift) in (2_u32..=1 << 25, 0_u32..25),
        alpha in prop_oneof![Just(125_000_u32), 0_u32..=1_000_000],
    ) {
        let window = (window >> shift).max(2);
        let mut f = settled(&[("alpha", alpha.into()), ("low_window", 0)], window);
        f.conn.cwnd_cnt = 0;
        judge(&mut f, 0);
        let (alpha, power) = (f64::from(alpha) / 1e6, f64::from(window).powf(0.75));
        let exact = (alpha * power - 1.0).max(0.0);
        let far = alpha / 128.0 + power / 65_536.0 + 2e-5;
        let got = f64::from(dwnd(&f));
        prop_assert!(((exact - far).floor()..=(exact + 1e-6).floor()).contains(&got), "{exact}, {got}");
    }

    /// The window after a loss is max(win (1 - beta), cwnd/2), rounded down, for all windows.
    #[test]
    fn losses_are_exact(
        (window, shift) in (2_u32..=1 << 30, 0_u32..30),
        beta in 0_u32..=1_000_000,
    ) {
        let window = (window >> shift).max(64);
        let mut f = with_dwnd(&[("beta", beta.into())], window);
        let left = u128::from(window) * u128::from(1_000_000 - beta) / 1_000_000;
        let half = u128::from(window - 63) / 2;
        prop_assert_eq!(u128::from(f.loss().0), left.max(half).max(2));
    }

    /// dwnd falls by zeta diff, within a packet: of the fractions of both.
    #[test]
    fn falls_over_their_range(
        (base, over) in (1_u32..8_000_000, 0_u32..8_000_000),
        window in 64_u32..1_000_000,
        zeta in 0_u32..=2_000_000,
    ) {
        let given = [("srtt_weight", 0), ("zeta", zeta.into()), ("gamma", 1)];
        let mut f = Flow::avoiding(params("compound", &given), 4_096);
        let round = |f: &mut Flow, rtt_us: u32| {
            f.conn.cwnd_cnt = 0;
            f.conn.snd_pos = f.conn.snd_pos.wrapping_add(1);
            f.conn.ack_pos = f.conn.snd_pos;
            let acked_pkts = f.w();
            let ack = Ack { rtt_us: rtt_us as i32, acked_pkts, ..Ack::default() };
            f.cc.on_rtt(&mut f.conn, &ack);
            f.cc.on_ack(&mut f.conn, &ack);
        };
        round(&mut f, base);
        prop_assert_eq!(dwnd(&f), 63);
        f.conn.cwnd_pkts = window;
        f.conn.ssthresh_pkts = 2;
        f.conn.cwnd_limited = 0;
        round(&mut f, base + over);
        let [base, over, win] = [base, over, window].map(f64::from);
        let diff = win * over / (base + over);
        let exact = if diff >= 1.0 { (63.0 - diff * f64::from(zeta) / 1e6).max(0.0) } else { 63.0 };
        let got = f64::from(dwnd(&f));
        let far = diff / 65_536.0 + 1e-3;
        prop_assert!(
            ((exact - 1e-6).floor()..=(exact + far).floor()).contains(&got) || (diff - 1.0).abs() < 1e-3,
            "{exact}, {got}"
        );
        prop_assert_eq!(f.w(), window - (63 - dwnd(&f)));
    }
}

// ---------------------------------------------------------------------------------------------
// Behaviour
// ---------------------------------------------------------------------------------------------

/// From 100 packets to a BDP of 1000: dw/dt = w^(3/4)/8 takes 32 (1000^(1/4) - 100^(1/4)) = 79 round
/// trips, NewReno 900. Then about 30 packets are queued, and dwnd gives way to cwnd.
#[test]
fn fills_the_path_and_gives_way() {
    let (bdp, per_pkt_us) = (1_000, 40);
    let mut f = Flow::avoiding(params("compound", &[("delack_filter", 0)]), 100);
    let round = |f: &mut Flow| {
        f.send(f.w());
        let queue = f.w().saturating_sub(bdp);
        for _ in 0..f.conn.outstanding_pkts {
            f.ack(1, queue * per_pkt_us, NEVER);
        }
        queue
    };
    let mut rounds = 0;
    while f.w() < bdp {
        round(&mut f);
        rounds += 1;
    }
    assert!((70..=90).contains(&rounds), "{rounds} rounds");
    let (at_first, mut most, mut sum) = (dwnd(&f), 0, 0);
    for _ in 0..300 {
        let queue = round(&mut f);
        most = most.max(queue);
        sum += queue;
    }
    // diff tells of the round before, and dwnd gains 21 to 22 in a round: at most two gains above 30.
    assert!(most <= 30 + 2 * 22 && (10..=45).contains(&(sum / 300)), "{most}, {}", sum / 300);
    assert!((at_first - dwnd(&f)).abs_diff(300) < 60, "{at_first}, {}", dwnd(&f));
}
