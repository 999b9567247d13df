//! CDG: every rule of Hayes and Armitage, "Revisiting TCP congestion control using delay gradients",
//! Networking 2011, against values worked out by hand. Queueing delays are microseconds over a base
//! RTT of 40 ms, which CDG does not know.

#[allow(dead_code)] // each file of tests uses its part
mod common;

use common::{ALWAYS, BASE_US, Flow, NEVER, NO_SAMPLE, Notes, params};
use knee_cc::{
    NOTE_DELAY_BACKOFF, NOTE_LOSS_TOLERATED, NOTE_ROUND, Phase, SSTHRESH_INFINITE, STATE_MAX_BYTES,
    algorithm,
};
use proptest::prelude::*;

/// Parameters by name, raw values.
type Given<'a> = &'a [(&'a str, u64)];

const NO_HOLDOFF: (&str, u64) = ("holdoff", 0);
const BACKOFF: Notes = NOTE_ROUND | NOTE_DELAY_BACKOFF;
/// Rounds over which gradients are averaged, by default.
const A: f64 = 8.0;
/// G, microseconds, by default.
const G: f64 = 3_000.0;

/// States of the queue, as `observe` numbers them.
const UNKNOWN: u32 = 0;
const RISING: u32 = 1;
const FULL: u32 = 2;
const FALLING: u32 = 3;
const EMPTY: u32 = 4;

/// A flow whose first round measured `q_us` only, with a window that does not grow by itself.
fn measured(given: Given, cwnd_pkts: u32, ssthresh_pkts: u32, q_us: u32) -> Flow {
    let mut f = Flow::new(params("cdg", given), cwnd_pkts, ssthresh_pkts);
    f.conn.cwnd_limited = 0;
    f.send(10);
    assert_eq!(f.ack(2, q_us, ALWAYS), NOTE_ROUND, "one RTT has no gradient");
    f
}

fn avoiding(given: Given, cwnd_pkts: u32) -> Flow {
    measured(given, cwnd_pkts, cwnd_pkts, 0)
}

/// A round whose RTTs were these two. The first packet of a window ends the round before it.
fn round(f: &mut Flow, one_us: u32, other_us: u32, random: u32) -> Notes {
    let first = f.ack(f.conn.outstanding_pkts - 1, one_us, NEVER);
    assert_eq!(first, 0);
    f.send(9);
    f.ack(2, other_us, random)
}

/// Both gradients of the round alike.
fn flat(f: &mut Flow, q_us: u32, random: u32) -> Notes {
    round(f, q_us, q_us, random)
}

fn word(f: &Flow, at: usize) -> i32 {
    i32::from_ne_bytes(f.cc.state().bytes()[at..at + 4].try_into().expect("four bytes"))
}

/// g_min and g_max, times the rounds averaged over.
fn rises(f: &Flow) -> (i32, i32) {
    (word(f, 52), word(f, 56))
}

fn queue(f: &Flow) -> u32 {
    f.cc.observe()[1]
}

fn shadow(f: &Flow) -> u32 {
    f.cc.observe()[2]
}

fn suspended(f: &Flow) -> u32 {
    f.cc.observe()[3]
}

/// Fails unless `threshold` is 2^32 (1 - e^-x), give or take its rounding.
#[track_caller]
fn assert_probability(threshold: u64, x: f64) {
    let by_hand = (1.0 - (-x).exp()) * 4_294_967_296.0;
    assert!((threshold as f64 - by_hand).abs() <= 8.0, "x = {x}: {threshold}, {by_hand}");
}

// ---------------------------------------------------------------------------------------------
// Gradients and the probability of a backoff
// ---------------------------------------------------------------------------------------------

/// P = 1 - e^(-g/G), tried with g_min and with g_max: together 1 - e^-((g_min + g_max)/G). After one
/// rise of d, a moving average over 8 rounds has g = d/8.
#[test]
fn probability() {
    for (least, largest) in
        [(0, 0), (1, 1), (24_000, 24_000), (0, 24_000), (8_000, 100_000), (400_000, 400_000)]
    {
        let f = avoiding(&[], 100);
        let threshold = f.threshold(|f, random| round(f, least, largest, random));
        assert_probability(threshold, f64::from(least + largest) / A / G);
    }
    // By hand: d = 24 ms on both makes g = 3 ms = G on both: 1 - e^-2 = 0.864665.
    let f = avoiding(&[], 100);
    let threshold = f.threshold(|f, random| flat(f, 24_000, random)) as f64 / 4_294_967_296.0;
    assert!((threshold - 0.864_664_716_8).abs() < 1e-9, "{threshold}");
}

/// CG-a: one gradient only.
#[test]
fn probability_of_one_gradient() {
    for (signal, rise) in [(1, 8_000.0), (2, 20_000.0)] {
        let f = avoiding(&[("signal", signal)], 100);
        let threshold = f.threshold(|f, random| round(f, 8_000, 20_000, random));
        assert_probability(threshold, rise / A / G);
    }
}

/// CG-l: one gradient, the minimum's if it is above 0; the shadow window never raises the window.
#[test]
fn linux_compat() {
    let linux: Given = &[("linux_compat", 1)];
    for (least, largest, rise) in [(8_000, 20_000, 8_000.0), (0, 20_000, 20_000.0)] {
        let f = avoiding(linux, 100);
        let threshold = f.threshold(|f, random| round(f, least, largest, random));
        assert_probability(threshold, rise / A / G);
    }
    for (given, after) in [(linux, 30), (&[] as Given, 50)] {
        let mut f = backed_off(given);
        round(&mut f, 8_000, 20_000, NEVER);
        round(&mut f, 9_000, 20_000, NEVER);
        assert_eq!((queue(&f), shadow(&f)), (FULL, 100));
        f.conn.cwnd_pkts = 30;
        assert_eq!(f.loss(), (after, 0));
        assert_eq!(shadow(&f), after);
    }
}

/// Only gradients above 0 count: one that falls does not take from the other.
#[test]
fn falling_gradient_has_no_probability() {
    let mut f = avoiding(&[], 100);
    round(&mut f, 10_000, 50_000, NEVER); // rises 10 and 50 ms
    let threshold = f.threshold(|f, random| round(f, 0, 60_000, random)); // 0 and 60 ms
    assert_probability(threshold, 60_000.0 / A / G);
    let mut f = measured(&[], 100, 100, 50_000);
    assert_eq!(flat(&mut f, 20_000, ALWAYS), NOTE_ROUND);
    let mut f = measured(&[], 100, 100, 50_000);
    assert_eq!(flat(&mut f, 50_000, ALWAYS), NOTE_ROUND, "nor one of 0");
}

/// The scale and the rounds averaged over.
#[test]
fn probability_with_other_parameters() {
    let f = avoiding(&[("scale", 10_000_000), ("smoothing", 1)], 100);
    let threshold = f.threshold(|f, random| flat(f, 5_000_000, random));
    assert_probability(threshold, 1.0);
    let f = avoiding(&[("scale", 1), ("smoothing", 2)], 100);
    let threshold = f.threshold(|f, random| round(f, 0, 3, random));
    assert_probability(threshold, 1.5);
    let threshold = f.threshold(|f, random| flat(f, 10_000, random));
    assert_eq!(threshold, 1 << 32, "certain: e^-10000 is below 2^-32");
}

/// ḡ_n = ḡ_(n-1) + (g_n - g_(n-a))/a, worked out: RTTs of 0, 8, 16, ... ms are g = 8 ms at each round;
/// the average rises by 1 ms in eight rounds and stays.
#[test]
fn moving_average() {
    let mut f = avoiding(&[], 100);
    for n in 1..12_i32 {
        flat(&mut f, 8_000 * n as u32, NEVER);
        let sum = 8_000 * n.min(8);
        assert_eq!(rises(&f), (sum, sum), "round {n}");
    }
    // Flat from here: each round drops one gradient of 8 ms.
    for n in 1..10_i32 {
        flat(&mut f, 88_000, NEVER);
        let sum = 8_000 * (8 - n).max(0);
        assert_eq!(rises(&f), (sum, sum), "flat round {n}");
    }
}

/// The round's extremes, in whatever order they come.
#[test]
fn extremes_of_a_round() {
    for (one, other) in [(5_000, 90_000), (90_000, 5_000)] {
        let mut f = measured(&[], 100, 100, 20_000);
        round(&mut f, one, other, NEVER);
        assert_eq!(rises(&f), (-15_000, 70_000));
    }
}

/// CG-i: a round that measured nothing changes nothing, and is not tested.
#[test]
fn round_without_a_sample() {
    let mut f = avoiding(&[], 100);
    flat(&mut f, 24_000, NEVER);
    f.ack(f.conn.outstanding_pkts - 1, NO_SAMPLE, NEVER);
    f.send(9);
    assert_eq!(f.ack(2, NO_SAMPLE, ALWAYS), NOTE_ROUND);
    assert_eq!(rises(&f), (24_000, 24_000));
    flat(&mut f, 24_000, NEVER);
    assert_eq!(rises(&f), (24_000, 24_000), "one gradient of 24 ms and one of 0");
}

/// Section "slow start": the latest gradient (CG-b), or as `ss_test` says.
#[test]
fn probability_in_slow_start() {
    for (ss_test, x) in [(0, 0.0), (1, 2_000.0 / G), (2, 2.0 * 2_000.0 / A / G)] {
        // Twice a rise of 1 ms on both gradients.
        let mut f = measured(&[("ss_test", ss_test)], 100, SSTHRESH_INFINITE, 0);
        flat(&mut f, 1_000, NEVER);
        let threshold = f.threshold(|f, random| flat(f, 2_000, random));
        assert_probability(threshold, x);
    }
    // The latest gradient is 0 although the average is not.
    let mut f = measured(&[], 100, SSTHRESH_INFINITE, 0);
    flat(&mut f, 50_000, NEVER);
    assert_eq!(flat(&mut f, 50_000, ALWAYS), NOTE_ROUND);
}

#[test]
fn no_backoff_in_recovery_or_after_a_timeout() {
    for (phase, expected) in [
        (Phase::Open, BACKOFF),
        (Phase::Disorder, BACKOFF),
        (Phase::Cwr, NOTE_ROUND),
        (Phase::Recovery, NOTE_ROUND),
        (Phase::Loss, NOTE_ROUND),
    ] {
        let mut f = avoiding(&[], 100);
        f.conn.phase = phase as u8;
        assert_eq!(flat(&mut f, 24_000, ALWAYS), expected, "{phase:?}");
    }
}

/// Times outside the arithmetic's range are clamped: 16.777215 s at most, 1 us at least.
#[test]
fn extreme_times() {
    let mut f = Flow::new(params("cdg", &[]), 100, 100);
    let rtt = |f: &mut Flow, rtt_us: i32| {
        f.send(2);
        f.conn.ack_pos = f.conn.snd_pos;
        f.conn.outstanding_pkts = 0;
        let ack = knee_cc::Ack { rtt_us, acked_pkts: 2, random: NEVER, ..Default::default() };
        f.cc.on_rtt(&mut f.conn, &ack);
    };
    rtt(&mut f, 0);
    rtt(&mut f, i32::MAX);
    assert_eq!(rises(&f), ((1 << 24) - 2, (1 << 24) - 2));
    rtt(&mut f, 0);
    assert_eq!(rises(&f), (0, 0));
}

// ---------------------------------------------------------------------------------------------
// Backoff, growth
// ---------------------------------------------------------------------------------------------

/// w <- 0.7 w, rounded down (up where it is 2^-32 of w short), at least 2; ends slow start.
#[test]
fn backoff() {
    for (before, after) in [(100, 70), (99, 69), (10, 7), (3, 2), (2, 2), (1 << 30, 751_619_277)] {
        let mut f = measured(&[], before, SSTHRESH_INFINITE, 0);
        f.conn.cwnd_cnt = 1;
        assert_eq!(flat(&mut f, 50_000, ALWAYS), BACKOFF);
        assert_eq!((f.w(), f.conn.ssthresh_pkts, f.conn.cwnd_cnt), (after, after, 0), "{before}");
    }
    let mut f = avoiding(&[("beta_delay", 850_000)], 100);
    flat(&mut f, 50_000, ALWAYS);
    assert_eq!(f.w(), 85);
}

/// CG-c: "at most once every two RTTs".
#[test]
fn round_after_a_backoff() {
    let mut f = avoiding(&[], 100);
    assert_eq!(flat(&mut f, 24_000, ALWAYS), BACKOFF);
    assert_eq!(flat(&mut f, 48_000, ALWAYS), NOTE_ROUND);
    assert_eq!(rises(&f), (48_000, 48_000), "measured, not tested");
    assert_eq!(flat(&mut f, 48_000, ALWAYS), BACKOFF);
    let mut f = avoiding(&[NO_HOLDOFF], 100);
    assert_eq!([0, 1, 2].map(|_| flat(&mut f, 24_000, ALWAYS)), [BACKOFF; 3]);
    assert_eq!(f.w(), 34); // 100, 70, 49, 34.3
}

/// +1 packet per RTT, not in a round that ends in a backoff; CG-h.
#[test]
fn growth() {
    let mut f = avoiding(&[], 100);
    f.conn.cwnd_limited = 1;
    flat(&mut f, 0, ALWAYS);
    flat(&mut f, 0, ALWAYS);
    assert_eq!(f.w(), 102);
    flat(&mut f, 24_000, ALWAYS);
    assert_eq!(f.w(), 71);
    let mut f = avoiding(&[("growth", 1)], 10);
    f.conn.cwnd_limited = 1;
    f.ack(7, 0, NEVER);
    assert_eq!((f.w(), f.conn.cwnd_cnt), (10, 7));
    f.send(4);
    f.ack(3, 0, NEVER);
    assert_eq!((f.w(), f.conn.cwnd_cnt), (11, 0));
    // Slow start: as NewReno, to ssthresh and not beyond.
    let mut f = measured(&[], 10, 15, 0);
    f.conn.cwnd_limited = 1;
    f.ack(4, 0, NEVER);
    assert_eq!(f.w(), 14);
    f.ack(3, 0, NEVER);
    assert_eq!(f.w(), 15);
}

/// CG-k: the round that a recovery overlaps grows nothing; its RTTs do not count either.
#[test]
fn recovery() {
    let mut f = avoiding(&[], 20);
    f.conn.cwnd_limited = 1;
    flat(&mut f, 24_000, NEVER); // rising: the loss is tolerated
    let window = f.w();
    assert_eq!(f.loss(), (window, NOTE_LOSS_TOLERATED));
    f.ack(2, 90_000, NEVER);
    f.send(4);
    f.ack_ending_recovery(f.conn.outstanding_pkts - 4, 90_000, NEVER);
    assert_eq!(f.w(), window);
    f.ack(4, 26_000, NEVER);
    f.send(4);
    f.ack(2, 26_000, NEVER);
    assert_eq!((f.w(), rises(&f).0), (window + 1, 26_000));
}

// ---------------------------------------------------------------------------------------------
// Ineffectual backoffs
// ---------------------------------------------------------------------------------------------

/// A round on whose rising delay every test backs off; then one that is held off.
fn push_up(f: &mut Flow, step: u32) -> bool {
    let q_us = 1_000 * (2 * step + 2);
    let notes = flat(f, q_us, ALWAYS);
    if notes & NOTE_DELAY_BACKOFF != 0 {
        assert_eq!(flat(f, q_us + 1_000, ALWAYS), NOTE_ROUND, "held off");
    }
    notes & NOTE_DELAY_BACKOFF != 0
}

/// "b = 5 consecutive backoffs" without a negative gradient, then b' = 5 are suppressed, and so on.
#[test]
fn ineffectual_backoffs() {
    let mut f = avoiding(&[], 1 << 20);
    let backed_off: Vec<_> = (0..22).map(|step| push_up(&mut f, step)).collect();
    let expected: Vec<_> = (0..22).map(|step| step % 10 < 5).collect();
    assert_eq!(backed_off, expected);
    // Other numbers: three, then one; never.
    let mut f = avoiding(&[("ineffectual", 3), ("suspend", 1)], 1 << 20);
    let backed_off: Vec<_> = (0..8).map(|step| push_up(&mut f, step)).collect();
    assert_eq!(backed_off, [true, true, true, false, true, true, true, false]);
    for given in [("ineffectual", 0), ("suspend", 0)] {
        let mut f = avoiding(&[given], 1 << 20);
        assert!((0..20).all(|step| push_up(&mut f, step)), "{given:?}");
    }
}

/// CG-d: only backoffs that would have come count, or rounds.
#[test]
fn suspension_counts_backoffs_or_rounds() {
    for (unit, left) in [(0, 5), (1, 3)] {
        let mut f = avoiding(&[("suspend_unit", unit)], 1 << 20);
        (0..5).for_each(|step| assert!(push_up(&mut f, step)));
        assert_eq!(suspended(&f), 5);
        flat(&mut f, 20_000, NEVER);
        flat(&mut f, 21_000, NEVER);
        assert_eq!(suspended(&f), left, "two rounds without a backoff to suppress");
        flat(&mut f, 22_000, ALWAYS);
        assert_eq!(suspended(&f), left - 1);
    }
}

/// A gradient below 0 shows an effect: the count starts again, and a suspension ends.
#[test]
fn negative_gradient_ends_ineffectual_backoffs() {
    let mut f = avoiding(&[], 1 << 20);
    (0..4).for_each(|step| assert!(push_up(&mut f, step)));
    // The averages are sums of eight rounds: a fall below the RTT of eight rounds ago.
    round(&mut f, 0, 90_000, NEVER);
    assert_eq!(rises(&f).0, -2_000);
    (45..50).for_each(|step| assert!(push_up(&mut f, step), "{step}"));
    assert_eq!(suspended(&f), 5, "five after the fall");
    round(&mut f, 0, 200_000, NEVER);
    assert!(rises(&f).0 < 0 && rises(&f).1 > 0);
    assert_eq!(suspended(&f), 0);
    // Both fall.
    let mut f = avoiding(&[], 1 << 20);
    (0..5).for_each(|step| assert!(push_up(&mut f, step)));
    flat(&mut f, 0, NEVER);
    assert_eq!(suspended(&f), 0);
}

/// So does a loss; undo takes that back.
#[test]
fn loss_ends_a_suspension() {
    let mut f = avoiding(&[], 1 << 20);
    (0..5).for_each(|step| assert!(push_up(&mut f, step)));
    f.loss();
    assert_eq!(suspended(&f), 0);
    f.cc.undo(&mut f.conn);
    assert_eq!(suspended(&f), 5);
}

// ---------------------------------------------------------------------------------------------
// Queue state, losses, shadow window
// ---------------------------------------------------------------------------------------------

/// CG-e: signs of (g_min, g_max) and the state that was.
#[test]
fn queue_states() {
    // Delays in ms of the round before, of this one, and the state: least and largest of each.
    for (before, now, state) in [
        ((10, 20), (11, 21), RISING),
        ((10, 20), (11, 20), FULL), // "the maximum stops rising before the minimum"
        ((10, 20), (11, 19), FULL),
        ((10, 20), (9, 19), FALLING),
        ((10, 20), (10, 19), EMPTY), // "the minimum stops falling before the maximum"
        ((10, 20), (10, 20), UNKNOWN),
        ((10, 20), (10, 21), UNKNOWN),
        ((10, 20), (9, 21), UNKNOWN),
        ((10, 20), (9, 20), UNKNOWN),
    ] {
        // With one round per average, the gradient is the round's own.
        let mut f = avoiding(&[("smoothing", 1)], 100);
        for (least, largest) in [(10, 20), before] {
            round(&mut f, 1_000 * least, 1_000 * largest, NEVER);
        }
        assert_eq!(queue(&f), RISING, "from 0 and 0 to 10 and 20 ms");
        round(&mut f, 1_000 * now.0, 1_000 * now.1, NEVER);
        let expected = if state == UNKNOWN { RISING } else { state };
        assert_eq!(queue(&f), expected, "{now:?}");
    }
    let mut f = avoiding(&[], 100);
    assert_eq!(queue(&f), UNKNOWN);
    flat(&mut f, 0, NEVER);
    assert_eq!(queue(&f), UNKNOWN, "nothing has moved");
}

/// A flow whose queue is inferred to be in this state; no backoff has happened.
fn with_queue(given: Given, cwnd_pkts: u32, state: u32) -> Flow {
    let given: Vec<_> = [("smoothing", 1)].iter().chain(given).copied().collect();
    let mut f = measured(&given, cwnd_pkts, 2, 10_000);
    let rounds: &[(u32, u32)] = match state {
        RISING => &[(11, 12)],
        FULL => &[(8, 20), (9, 20)],
        FALLING => &[(8, 9)],
        EMPTY => &[(10, 20), (10, 15)],
        _ => &[],
    };
    for (least, largest) in rounds {
        round(&mut f, 1_000 * least, 1_000 * largest, NEVER);
    }
    assert_eq!((queue(&f), f.w(), shadow(&f)), (state, cwnd_pkts, 0));
    f
}

/// w <- max(w, s) / 2 if the queue is full, w otherwise; CG-f.
#[test]
fn loss_by_state_of_the_queue() {
    for (state, tolerated) in
        [(UNKNOWN, false), (RISING, true), (FULL, false), (FALLING, true), (EMPTY, true)]
    {
        let expected = if tolerated { (101, NOTE_LOSS_TOLERATED) } else { (50, 0) };
        assert_eq!(with_queue(&[], 101, state).loss(), expected, "{state}");
        let mut f = with_queue(&[("loss_tolerance", 0)], 101, state);
        assert_eq!(f.loss(), (50, 0), "{state}");
        let mut f = with_queue(&[], 101, state);
        f.conn.ssthresh_pkts = 102;
        assert_eq!(f.loss(), (50, 0), "{state}, slow start");
        let mut f = with_queue(&[], 101, state);
        f.send(200);
        assert_eq!(f.timeout(), 50, "{state}, timeout");
    }
    assert_eq!(with_queue(&[("beta_loss", 700_000)], 100, FULL).loss().0, 70);
    assert_eq!(with_queue(&[], 3, FULL).loss().0, 2);
    assert_eq!(with_queue(&[], 1, RISING).loss().0, 2);
}

#[test]
fn undo_restores_the_window() {
    let mut f = with_queue(&[], 100, FULL);
    f.loss();
    assert_eq!(f.cc.undo(&mut f.conn), 100);
}

/// A flow with w = 70, s = 100 after a backoff, the queue rising; smoothing over one round.
fn backed_off(given: Given) -> Flow {
    let given: Vec<_> = [("smoothing", 1)].iter().chain(given).copied().collect();
    let mut f = measured(&given, 100, 100, 0);
    assert_eq!(round(&mut f, 50_000, 60_000, ALWAYS), BACKOFF);
    assert_eq!(f.w(), 70);
    f
}

/// CG-g: s <- max(w, s) at a backoff; a loss with a full queue restores half of it.
#[test]
fn shadow_window() {
    let mut f = backed_off(&[]);
    assert_eq!(shadow(&f), 100);
    round(&mut f, 51_000, 61_000, NEVER);
    round(&mut f, 90_000, 99_000, ALWAYS);
    assert_eq!((f.w(), shadow(&f)), (49, 100), "max(70, 100)");
    round(&mut f, 91_000, 99_000, NEVER);
    assert_eq!(queue(&f), FULL);
    assert_eq!(f.loss(), (50, 0), "max(49, 100) / 2");
    assert_eq!(shadow(&f), 50, "halved");
    assert_eq!(f.cc.undo(&mut f.conn), 50);
    assert_eq!(shadow(&f), 100, "as before the loss");
    // A tolerated loss halves it too, unless told otherwise.
    for (shadow_loss, after) in [(0, 100), (1, 50)] {
        let mut f = backed_off(&[("shadow_loss", shadow_loss)]);
        assert_eq!(f.loss(), (70, NOTE_LOSS_TOLERATED));
        assert_eq!(shadow(&f), after);
    }
    let mut f = backed_off(&[("shadow", 0)]);
    round(&mut f, 51_000, 60_000, NEVER);
    assert_eq!((shadow(&f), f.loss()), (0, (35, 0)));
}

/// s grows by one packet per round as w does, in slow start by as much as w.
#[test]
fn shadow_window_grows() {
    let mut f = backed_off(&[]);
    f.conn.cwnd_limited = 1;
    (0..3).for_each(|_| _ = flat(&mut f, 60_000, NEVER));
    assert_eq!((f.w(), shadow(&f)), (73, 103));
    f.conn.ssthresh_pkts = 200;
    f.ack(7, 60_000, NEVER);
    assert_eq!((f.w(), shadow(&f)), (80, 110));
    f.conn.cwnd_max_pkts = 111;
    f.send(9);
    f.ack(2, 60_000, NEVER);
    assert_eq!((f.w(), shadow(&f)), (82, 111));
}

/// CG-g: an empty queue clears it.
#[test]
fn shadow_window_is_cleared() {
    for (clear, after) in [(0, 100), (1, 0)] {
        let mut f = backed_off(&[("shadow_clear", clear)]);
        round(&mut f, 40_000, 50_000, NEVER);
        assert_eq!((queue(&f), shadow(&f)), (FALLING, 100));
        round(&mut f, 40_000, 45_000, NEVER);
        assert_eq!((queue(&f), shadow(&f)), (EMPTY, after));
    }
}

// ---------------------------------------------------------------------------------------------
// Exactness
// ---------------------------------------------------------------------------------------------

#[test]
fn state_just_fits_the_kernel() {
    assert_eq!(algorithm("cdg").expect("registered").state_bytes(), STATE_MAX_BYTES);
}

/// A time of any magnitude.
fn delay() -> impl Strategy<Value = u32> {
    (0_u32..1 << 24, 0_u32..24).prop_map(|(t, shift)| (t >> shift).min((1 << 24) - 50_000))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The averages are the paper's recursion, exactly, whatever the RTTs:
    /// a ḡ_n = a ḡ_(n-1) + g_n - g_(n-a).
    #[test]
    fn averages_are_exact(
        rounds in prop::collection::vec((delay(), delay()), 1..30),
        a in 1_usize..=8,
    ) {
        let mut f = avoiding(&[("smoothing", a as u64)], 100);
        let (mut gradients, mut sums) = (vec![(0_i64, 0_i64); a], (0_i64, 0_i64));
        let mut before = (0_i64, 0_i64);
        for (one, other) in rounds {
            round(&mut f, one, other, NEVER);
            let now = (i64::from(one.min(other)), i64::from(one.max(other)));
            let g = (now.0 - before.0, now.1 - before.1);
            let old = gradients[gradients.len() - a];
            sums = (sums.0 + g.0 - old.0, sums.1 + g.1 - old.1);
            gradients.push(g);
            before = now;
            let rises = rises(&f);
            prop_assert_eq!((i64::from(rises.0), i64::from(rises.1)), sums);
        }
    }

    /// P(backoff) against floating point, over all parameters and gradients: within 8 * 2^-32.
    #[test]
    fn probability_is_within_its_bound(
        (one, other) in (delay(), delay()),
        (scale, shift) in (1_u32..=10_000_000, 0_u32..24),
        a in 1_u64..=8,
    ) {
        let scale = (scale >> shift).max(1);
        let f = avoiding(&[("scale", scale.into()), ("smoothing", a)], 100);
        let threshold = f.threshold(|f, random| round(f, one, other, random));
        let x = (f64::from(one) + f64::from(other)) / (a as f64 * f64::from(scale));
        let by_hand = (1.0 - (-x).exp()) * 4_294_967_296.0;
        prop_assert!((threshold as f64 - by_hand).abs() <= 8.0, "{threshold}, {by_hand}");
    }
}

/// The paper's reason for the exponential: a gradient spread over more round trips, as a shorter RTT
/// sees it, gives the same probability of no backoff over the same time.
#[test]
fn probability_does_not_depend_on_the_rtt() {
    let survives = |rounds: u32| {
        let f = avoiding(&[("smoothing", 1), ("signal", 1)], 100);
        let threshold = f.threshold(|f, random| flat(f, 12_000 / rounds, random));
        (1.0 - threshold as f64 / 4_294_967_296.0).powi(rounds as i32)
    };
    let once = survives(1); // e^-4
    for rounds in [2, 3, 4, 6, 12] {
        assert!((survives(rounds) / once - 1.0).abs() < 1e-6, "{rounds}: {once}");
    }
    assert_eq!(BASE_US, 40_000, "of which none of this knows");
}
