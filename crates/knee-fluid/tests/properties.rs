//! Properties of equilibria and trajectories for any parameters.
#![allow(clippy::unwrap_used)]

mod common;

use knee_fluid::{
    Backoff, Class, Delayed, Equilibrium, FlowState, Fluid, GentleRed, Link, Rule, Stability,
};
use proptest::prelude::*;

/// From `low` to `high`, evenly by magnitude.
fn magnitude(low: f64, high: f64) -> impl Strategy<Value = f64> + Clone {
    (low.ln()..high.ln()).prop_map(f64::exp)
}

fn rule() -> impl Strategy<Value = Rule> {
    let backoff = (0.0..0.02, magnitude(1e-3, 0.1), 0.1..5.0, magnitude(1e-3, 1.0)).prop_map(
        |(qmin_s, a_s, b, pmax)| {
            let qth_s = qmin_s + a_s;
            // Up to 5 of the threshold, and sometimes no region B.
            Backoff { qmin_s, qth_s, qmax_s: qth_s * b, pmax }
        },
    );
    prop_oneof![
        (backoff.clone(), 0.1..0.95)
            .prop_map(|(backoff, decrease)| Rule::PerPacket { backoff, decrease }),
        (backoff, 0.1..0.95).prop_map(|(backoff, decrease)| Rule::PerRound { backoff, decrease }),
        (0.0..0.02, magnitude(1e-3, 0.05), magnitude(1e-3, 1.0), magnitude(1e-2, 10.0)).prop_map(
            |(tmin_s, a_s, pmax, tau_s)| Rule::FTcp {
                curve: GentleRed { tmin_s, tmax_s: tmin_s + a_s, pmax },
                tau_s,
            }
        ),
    ]
}

fn parts() -> impl Strategy<Value = (Link, Class)> {
    (magnitude(50.0, 1e5), 0.02..0.5, magnitude(5e-3, 0.3), 1..200u32, rule()).prop_map(
        |(capacity_pps, queue_s, rtt_s, flows, rule)| {
            (Link { capacity_pps, queue_s }, Class { rtt_s, flows, rule })
        },
    )
}

/// Packets that a window gains in a round trip at a queueing delay (eq. 2), which has the sign of dδ/dt.
fn gain(link: &Link, class: &Class, delay_s: f64) -> f64 {
    let fair_pps = link.capacity_pps / f64::from(class.flows);
    let window = fair_pps * (class.rtt_s + delay_s);
    let (backoffs, decrease_pkts) = match class.rule {
        Rule::PerPacket { backoff, decrease } => {
            (backoff.g(delay_s) * window, (1.0 - decrease) * window)
        }
        Rule::PerRound { backoff, decrease } => (backoff.g(delay_s), (1.0 - decrease) * window),
        Rule::FTcp { curve, .. } => {
            let none = window * f64::ln_1p(-curve.f(delay_s));
            (-f64::exp_m1(none), (window - fair_pps * class.rtt_s).max(0.0))
        }
    };
    1.0 - backoffs * decrease_pkts
}

/// Sign of dδ/dt.
fn direction(link: &Link, class: &Class, delay_s: f64) -> f64 {
    gain(link, class, delay_s).signum()
}

/// The open intervals between the equilibria, the ends included.
fn intervals(link: &Link, equilibria: &[Equilibrium]) -> Vec<(f64, f64)> {
    let mut edges = vec![0.0];
    edges.extend(equilibria.iter().map(|e| e.delay_s));
    edges.push(link.queue_s);
    edges.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// dδ/dt changes its sign within a few ulps of an equilibrium that is not a touch, and is next
    /// to nothing at one that is.
    #[test]
    fn equilibria_are_roots((link, class) in parts()) {
        let fluid = Fluid::new(link, class).unwrap();
        for e in fluid.equilibria() {
            prop_assert!(e.delay_s > 0.0 && e.delay_s < link.queue_s);
            prop_assert_eq!(e.probability, fluid.probability(e.delay_s));
            prop_assert_eq!(e.window_pkts, fluid.at_delay(e.delay_s).window_pkts);
            let gain = gain(&link, &class, e.delay_s);
            let near = 1e-14;
            let crosses = direction(&link, &class, e.delay_s * (1.0 - near))
                != direction(&link, &class, e.delay_s * (1.0 + near));
            prop_assert!(crosses || gain.abs() < 1e-11, "{:?}: gains {} per RTT", e, gain);
        }
    }

    /// The sign of dδ/dt is one between two equilibria, so none is missing; it agrees with the
    /// stability of both.
    #[test]
    fn stability_is_the_sign_of_the_drift((link, class) in parts()) {
        let fluid = Fluid::new(link, class).unwrap();
        let equilibria = fluid.equilibria();
        let signs: Vec<f64> = intervals(&link, &equilibria)
            .into_iter()
            .map(|(low_s, high_s)| {
                let middle = direction(&link, &class, (low_s + high_s) / 2.0);
                for i in 1..1000 {
                    let delay_s = low_s + (high_s - low_s) * f64::from(i) / 1000.0;
                    let here = direction(&link, &class, delay_s);
                    assert_eq!(here, middle, "at {delay_s}: {equilibria:?}");
                }
                middle
            })
            .collect();
        prop_assert_eq!(signs[0], 1.0);
        for (e, around) in equilibria.iter().zip(signs.windows(2)) {
            let expected = match (around[0] > 0.0, around[1] > 0.0) {
                (true, false) => Stability::Stable,
                (false, true) => Stability::Unstable,
                _ => Stability::Touching,
            };
            prop_assert_eq!(e.stability, expected);
        }
    }

    /// The locus crosses the curve where the drift changes its sign.
    #[test]
    fn drift_is_the_distance_of_locus_and_curve((link, class) in parts(), part in 0.01..0.99) {
        let fluid = Fluid::new(link, class).unwrap();
        let delay_s = part * link.queue_s;
        let (p, locus) = (fluid.probability(delay_s), fluid.locus(delay_s));
        // F-TCP's P is 1 in floating point long before f is: compare where it is not.
        prop_assume!((p / locus - 1.0).abs() > 1e-6);
        prop_assume!(p < 1.0 && 1.0 - (1.0 - p).powf(fluid.at_delay(delay_s).window_pkts) < 0.999_999);
        prop_assert_eq!(direction(&link, &class, delay_s) > 0.0, p < locus);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// A trajectory goes where the sign says and does not cross an equilibrium.
    #[test]
    fn trajectories_follow_the_drift((link, class) in parts(), part in 0.05..0.95) {
        let fluid = Fluid::new(link, class).unwrap();
        for (low_s, high_s) in intervals(&link, &fluid.equilibria()) {
            prop_assume!(high_s - low_s > 1e-6);
            let from_s = low_s + part * (high_s - low_s);
            let rising = direction(&link, &class, from_s) > 0.0;
            let duration_s = 10.0 * (class.rtt_s + from_s);
            let points =
                fluid.trajectory(fluid.at_delay(from_s), duration_s, duration_s / 50.0).unwrap();
            for pair in points.windows(2) {
                let moved_s = pair[1].delay_s - pair[0].delay_s;
                // The solver's tolerance, 1e-9 of a window, as a delay.
                let tolerance_s = 1e-8 * (class.rtt_s + high_s);
                let onward_s = if rising { moved_s } else { -moved_s };
                prop_assert!(onward_s > -tolerance_s, "{:?}", pair);
                if rising && high_s < link.queue_s {
                    prop_assert!(pair[1].delay_s < high_s + tolerance_s);
                }
                if !rising {
                    prop_assert!(pair[1].delay_s > low_s - tolerance_s);
                }
            }
            prop_assert!((points[50].delay_s > from_s) == rising);
        }
    }

    /// From any start, the delayed model keeps its queue within bounds, its windows above 0 and its
    /// loss a fraction.
    #[test]
    fn the_delayed_model_stays_in_bounds(
        (link, class) in parts(),
        other in parts(),
        window in magnitude(1.0, 50.0),
        delay in 0.0..=1.0,
        pipe in prop::array::uniform2(magnitude(0.05, 3.0)),
    ) {
        let (rtt_s, apart) = (class.rtt_s, other.1.rtt_s / class.rtt_s);
        let other = Class { rtt_s: rtt_s * apart.clamp(0.2, 5.0), ..other.1 };
        // Windows for which the solver's steps, 1/200 of an RTT, are short enough however often a
        // flow is made to back off.
        let mean_rtt_s = (rtt_s + other.rtt_s) / 2.0 + link.queue_s;
        let flows = f64::from(class.flows + other.flows);
        let link = Link { capacity_pps: window * flows / mean_rtt_s, ..link };
        let delayed = Delayed::new(link, [class, other]).unwrap();
        let start = |of: Class, pipe: f64| {
            let rate_pps = pipe * link.capacity_pps / flows;
            FlowState {
                window_pkts: rate_pps * (of.rtt_s + delay * link.queue_s),
                estimate_pps: rate_pps,
            }
        };
        let states = [start(class, pipe[0]), start(other, pipe[1])];
        let duration_s = 20.0 * class.rtt_s;
        let points = delayed
            .trajectory(delay * link.queue_s, &states, duration_s, duration_s / 400.0)
            .unwrap();
        prop_assert_eq!(points.len(), 401);
        let slack_s = 1e-9;
        for p in points {
            prop_assert!(p.delay_s > -slack_s && p.delay_s < link.queue_s + slack_s, "{:?}", p);
            prop_assert!((0.0..1.0).contains(&p.loss), "{:?}", p);
            prop_assert!(p.classes.iter().all(|s| s.window_pkts > 0.0 && s.estimate_pps >= 0.0));
        }
    }
}
