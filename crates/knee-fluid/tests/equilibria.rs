//! Equilibria: the numbers of the papers' settings, the limits of their existence, touching curves.
#![allow(clippy::unwrap_used)]

mod common;

use common::{backoff, chd, chd_paper, chd_thresholds, fluid, ftcp, hd, letter, model, pps};
use knee_fluid::{Error, Fluid, Rule, Stability};

fn assert_delays_ms(fluid: &Fluid, expected: &[(f64, Stability)]) {
    let found = fluid.equilibria();
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (e, (delay_ms, stability)) in found.iter().zip(expected) {
        assert!(
            (e.delay_s * 1e3 - delay_ms).abs() < 0.05,
            "{} ms, not {delay_ms}",
            e.delay_s * 1e3
        );
        assert_eq!(e.stability, *stability);
        assert!((e.probability / fluid.locus(e.delay_s) - 1.0).abs() < 1e-9);
        assert_eq!(e.window_pkts, fluid.at_delay(e.delay_s).window_pkts);
    }
}

/// The cases of Theorem 1 of the HD letter, by the curve at its top alone.
///
/// Case (i) has exactly two equilibria, as the theorem says. In the cases (ii) and (iii) the theorem
/// counts too few where the locus falls more steeply than the curve beyond the threshold, which
/// for HD is `T + qth < 2 (qmax − qth)` and for CHD `T + qth < qmax − qth`: then the two can cross
/// twice in region B with somewhat more flows than case (i) allows. [`Fluid::equilibria`] finds all.
#[derive(Debug, PartialEq, Eq)]
enum Regime {
    /// (i) p*(qth) < pmax: a stable equilibrium in region A, an unstable one in region B.
    TwoEquilibria,
    /// (ii) p*(qth) = pmax but for rounding: an equilibrium at the threshold.
    Touching,
    /// (iii) p*(qth) > pmax: none up to the threshold.
    LossDriven,
}

/// The case of flows whose threshold is `qth_ms`.
fn regime(fluid: &Fluid, qth_ms: f64) -> Regime {
    let qth_s = qth_ms / 1e3;
    match fluid.probability(qth_s) / fluid.locus(qth_s) - 1.0 {
        above if above > 1e-12 => Regime::TwoEquilibria,
        below if below < -1e-12 => Regime::LossDriven,
        _ => Regime::Touching,
    }
}

/// The largest number of flows of Theorem 1's case (i).
fn most_flows(qth_ms: f64, of: impl Fn(u32) -> Fluid) -> u32 {
    (1..1000).take_while(|n| regime(&of(*n), qth_ms) == Regime::TwoEquilibria).last().unwrap()
}

#[test]
fn the_letters_equilibria() {
    use Stability::{Stable, Unstable};
    assert_delays_ms(&letter(1000.0, 80.0, 50), &[(10.7, Stable), (88.8, Unstable)]);
    assert_delays_ms(&letter(1500.0, 80.0, 50), &[(18.6, Stable), (66.4, Unstable)]);
    assert_eq!(regime(&letter(1000.0, 80.0, 50), 20.0), Regime::TwoEquilibria);
}

#[test]
fn too_many_flows_have_no_equilibrium() {
    let fluid = letter(1500.0, 30.0, 50);
    assert!((fluid.locus(0.02) - 0.18).abs() < 1e-9);
    assert_eq!(regime(&fluid, 20.0), Regime::LossDriven);
    assert_eq!(fluid.equilibria(), []);
}

#[test]
fn the_chd_papers_equilibria() {
    for (n, hd_ms, chd_ms) in [(1, 6.7, 9.8), (2, 10.6, 13.9), (3, 15.5, 17.5)] {
        for (rule, delay_ms) in
            [(hd(chd_thresholds(0.02)), hd_ms), (chd(chd_thresholds(0.25)), chd_ms)]
        {
            let fluid = chd_paper(n, rule);
            let stable = fluid.equilibria()[0];
            assert_eq!(stable.stability, Stability::Stable);
            assert!((stable.delay_s * 1e3 - delay_ms).abs() < 0.05, "{n}: {stable:?}");
        }
    }
}

#[test]
fn limits_of_case_one() {
    assert_eq!(most_flows(30.0, |n| chd_paper(n, hd(chd_thresholds(0.02)))), 5);
    assert_eq!(most_flows(20.0, |n| chd_paper(n, hd(backoff(5.0, 20.0, 100.0, 0.05)))), 7);
    assert_eq!(most_flows(20.0, |n| letter(1000.0, 80.0, n)), 79);
    assert_eq!(most_flows(20.0, |n| letter(1500.0, 80.0, n)), 52);
    assert_eq!(most_flows(30.0, |n| chd_paper(n, chd(chd_thresholds(0.25)))), 7);
    assert_eq!(most_flows(20.0, |n| chd_paper(n, chd(backoff(5.0, 20.0, 100.0, 0.5)))), 12);
}

/// The locus is steeper than the curve beyond the threshold of the letter's own setting
/// (T + qth = 100 ms < 2 (qmax − qth) = 160 ms): in case (iii) they still cross twice, which
/// the theorem excludes, up to the N at which W² g/2 no longer reaches 1 in region B: its top is at
/// q = (2 qmax − T)/3 = 40 ms, where g = 0.0375 and C (T+q) = 600 packets, so N <= 82.
#[test]
fn case_three_can_have_two_equilibria_in_region_b() {
    for n in [80, 81, 82] {
        let fluid = letter(1000.0, 80.0, n);
        assert_eq!(regime(&fluid, 20.0), Regime::LossDriven);
        let found = fluid.equilibria();
        assert_eq!(found.len(), 2, "{n}: {found:?}");
        assert_eq!(found[0].stability, Stability::Stable);
        assert!(found[0].delay_s > 0.02 && found[0].delay_s < 0.04);
        assert_eq!(found[1].stability, Stability::Unstable);
    }
    assert_eq!(letter(1000.0, 80.0, 83).equilibria(), []);
    // CHD's has its top at the threshold on the CHD paper's link: nothing beyond 7 flows.
    assert_eq!(chd_paper(8, chd(chd_thresholds(0.25))).equilibria(), []);
}

/// pmax such that p*(qth) = pmax, for a link with T + qth on each side of 2 (qmax − qth).
#[test]
fn curves_that_meet_at_the_threshold() {
    let touching = |rtt_ms: f64| {
        let window = pps(40.0, 1000.0) * (rtt_ms + 20.0) / 1e3 / 50.0;
        let rule = hd(backoff(2.0, 20.0, 100.0, 2.0 / (window * window)));
        fluid(pps(40.0, 1000.0), rtt_ms, 50, rule)
    };
    // As the theorem's case (ii): one equilibrium, not stable. The delay rises on both sides.
    let long = touching(200.0);
    assert_eq!(regime(&long, 20.0), Regime::Touching);
    assert_delays_ms(&long, &[(20.0, Stability::Touching)]);
    let rises = |delay_s| long.probability(delay_s) < long.locus(delay_s);
    assert!(rises(0.0199) && rises(0.0201));
    // Not as the theorem says: the locus falls faster than the curve, the threshold is stable.
    let short = touching(80.0);
    assert_eq!(regime(&short, 20.0), Regime::Touching);
    let found = short.equilibria();
    assert_eq!(found.len(), 2);
    assert!((found[0].delay_s - 0.02).abs() < 1e-12);
    assert_eq!(found[0].stability, Stability::Stable);
    assert_eq!(found[1].stability, Stability::Unstable);
}

/// A touch inside region B: pmax such that the top of W² g/2, at 40 ms here, is 1.
#[test]
fn curves_that_touch_between_corners() {
    let window = pps(40.0, 1000.0) * 0.12 / 82.0;
    let at = |factor: f64| {
        let pmax = factor * 2.0 / (window * window) * 81.0 / 60.0;
        fluid(pps(40.0, 1000.0), 80.0, 82, hd(backoff(2.0, 19.0, 100.0, pmax))).equilibria()
    };
    let touch = at(1.0);
    assert_eq!(touch.len(), 1, "{touch:?}");
    assert!((touch[0].delay_s - 0.04).abs() < 1e-6);
    assert_eq!(touch[0].stability, Stability::Touching);
    // The distance of the two roots grows as the square root of the excess of pmax.
    let crossing = at(1.0 + 1e-10);
    assert_eq!(crossing.len(), 2, "{crossing:?}");
    assert_eq!(crossing[0].stability, Stability::Stable);
    assert!(crossing[1].delay_s - crossing[0].delay_s < 1e-5);
    assert_eq!(at(1.0 - 1e-10), []);
}

#[test]
fn without_region_b_the_curve_stays_up() {
    // The guard: a threshold of 30 ms with no more than 25 ms ever seen.
    let guarded = backoff(5.0, 30.0, 25.0, 0.02);
    assert_eq!(guarded.g(0.09), 0.02);
    assert!((guarded.g(0.0275) - 0.018).abs() < 1e-15);
    let few = chd_paper(3, hd(guarded));
    assert_delays_ms(&few, &[(15.5, Stability::Stable)]);
    // Above the threshold: W = 10 at N = 8, so T + q = 96 ms.
    assert_delays_ms(&chd_paper(8, hd(guarded)), &[(56.0, Stability::Stable)]);
}

#[test]
fn the_backoff_function() {
    let b = backoff(5.0, 30.0, 100.0, 0.25);
    for (q_ms, g) in [
        (0.0, 0.0),
        (5.0, 0.0),
        (17.5, 0.125),
        (30.0, 0.25),
        (65.0, 0.125),
        (100.0, 0.0),
        (200.0, 0.0),
    ] {
        assert!((b.g(q_ms / 1e3) - g).abs() < 1e-12, "g({q_ms} ms)");
    }
    let Rule::FTcp { curve, .. } = ftcp(1.0) else { unreachable!() };
    for (q_ms, f) in
        [(5.0, 0.0), (7.5, 0.025), (10.0, 0.05), (15.0, 0.525), (20.0, 1.0), (50.0, 1.0)]
    {
        assert!((curve.f(q_ms / 1e3) - f).abs() < 1e-12, "f({q_ms} ms)");
    }
}

/// A smaller decrease needs more backoffs: p* = 1/((1−β) W²) and 1/((1−β) W).
#[test]
fn general_decrease_factor() {
    let of = |rule| chd_paper(2, rule);
    let b = chd_thresholds(0.25);
    let window = of(chd(b)).at_delay(0.02).window_pkts;
    let per_packet = of(Rule::PerPacket { backoff: b, decrease: 0.8 });
    let per_round = of(Rule::PerRound { backoff: b, decrease: 0.8 });
    assert!((per_packet.locus(0.02) * 0.2 * window * window - 1.0).abs() < 1e-12);
    assert!((per_round.locus(0.02) * 0.2 * window - 1.0).abs() < 1e-12);
    assert!(per_round.equilibria()[0].delay_s > of(chd(b)).equilibria()[0].delay_s);
}

/// F-TCP's equilibrium: P C q/N = 1. Where each flow has less than a packet in 2 Tmax of queue, it
/// responds in every round trip, and the queue holds one packet of each: q = N/C.
#[test]
fn ftcp_equilibria() {
    for tau_s in [0.01, 1.0, 100.0] {
        assert_delays_ms(&chd_paper(20, ftcp(tau_s)), &[(24.0, Stability::Stable)]);
    }
    for n in [1, 4, 16] {
        let fluid = chd_paper(n, ftcp(1.0));
        let found = fluid.equilibria();
        let [e] = found[..] else { panic!("{found:?}") };
        assert_eq!(e.stability, Stability::Stable);
        let per_rtt = 1.0 - (1.0 - e.probability).powf(e.window_pkts);
        let backlog_pkts = pps(10.0, 1500.0) / f64::from(n) * e.delay_s;
        assert!((per_rtt * backlog_pkts - 1.0).abs() < 1e-9, "{n}: {e:?}");
        assert!(e.delay_s > 0.005 && e.delay_s < 0.02);
    }
    assert_eq!(chd_paper(20, ftcp(1.0)).locus(0.023), f64::INFINITY);
}

#[test]
fn impossible_input_is_refused() {
    let (link, class) = model(1000.0, 40.0, 3, chd(chd_thresholds(0.25)));
    let told = |link, class| Fluid::new(link, class).unwrap_err().to_string();
    let b = |qmin, qth, qmax, pmax| chd(backoff(qmin, qth, qmax, pmax));
    let with = |rule| told(link, knee_fluid::Class { rule, ..class });
    assert_eq!(with(b(30.0, 5.0, 100.0, 0.25)), "qth (s) must be above qmin and finite, not 0.005");
    assert_eq!(with(b(-1.0, 5.0, 100.0, 0.25)), "qmin (s) must be at least 0, not -0.001");
    assert_eq!(with(b(5.0, 30.0, 0.0, 0.25)), "qmax (s) must be above 0 and finite, not 0");
    assert_eq!(with(b(5.0, 30.0, 100.0, 1.5)), "pmax must be between 0 and 1, not 1.5");
    assert_eq!(with(b(5.0, 30.0, 100.0, f64::NAN)), "pmax must be between 0 and 1, not NaN");
    assert_eq!(
        with(Rule::PerRound { backoff: chd_thresholds(0.25), decrease: 1.0 }),
        "the decrease factor must be at least 0 and below 1, not 1"
    );
    assert_eq!(
        with(ftcp(0.0)),
        "the time constant of the bandwidth estimate (s) must be above 0 and finite, not 0"
    );
    assert_eq!(
        told(link, knee_fluid::Class { flows: 0, ..class }),
        "the number of flows must be at least 1, not 0"
    );
    assert_eq!(
        told(link, knee_fluid::Class { rtt_s: f64::INFINITY, ..class }),
        "the propagation RTT (s) must be above 0 and finite, not inf"
    );
    assert_eq!(
        told(knee_fluid::Link { capacity_pps: -1.0, ..link }, class),
        "the capacity (packets/s) must be above 0 and finite, not -1"
    );
    let fluid = Fluid::new(link, class).unwrap();
    let state = fluid.at_delay(0.01);
    for (duration_s, step_s) in [(1.0, 2.0), (1.0, 0.0), (-1.0, 0.1), (f64::NAN, 0.1), (1e9, 1e-3)]
    {
        let result = fluid.trajectory(state, duration_s, step_s);
        assert!(matches!(result, Err(Error::Parameter { .. })), "{duration_s} {step_s}");
    }
    let none = knee_fluid::FlowState { window_pkts: 0.0, ..state };
    assert!(matches!(fluid.trajectory(none, 1.0, 0.1), Err(Error::Parameter { .. })));
    let delayed = knee_fluid::Delayed::new(link, [class]).unwrap();
    assert!(matches!(delayed.trajectory(0.2, &[state], 1.0, 0.1), Err(Error::Parameter { .. })));
    assert!(matches!(knee_fluid::Delayed::new(link, []), Err(Error::Parameter { .. })));
}
