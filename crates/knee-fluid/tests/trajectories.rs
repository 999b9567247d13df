//! Trajectories of the model without feedback delay.
#![allow(clippy::unwrap_used)]

mod common;

use common::{chd, chd_paper, chd_thresholds, fluid, ftcp, letter, newreno};
use knee_fluid::{FlowState, Fluid, Stability};

fn end_delay_s(fluid: &Fluid, from_s: f64, duration_s: f64) -> f64 {
    let points = fluid.trajectory(fluid.at_delay(from_s), duration_s, duration_s / 100.0).unwrap();
    assert_eq!(points.len(), 101);
    assert!((points[0].delay_s - from_s).abs() < 1e-12 && points[0].t_s == 0.0);
    points[100].delay_s
}

#[test]
fn converge_to_the_stable_root_and_flee_the_unstable_one() {
    for fluid in [
        letter(1000.0, 80.0, 50),
        letter(1500.0, 80.0, 50),
        letter(1000.0, 80.0, 81),
        chd_paper(2, chd(chd_thresholds(0.25))),
    ] {
        let roots = fluid.equilibria();
        let (low_s, high_s) = (roots[0].delay_s, roots[1].delay_s);
        assert_eq!(roots[1].stability, Stability::Unstable);
        let between_s = low_s + 0.9 * (high_s - low_s);
        for from_s in [0.0, low_s / 2.0, between_s, high_s - 1e-5] {
            let end_s = end_delay_s(&fluid, from_s, 200.0);
            assert!((end_s - low_s).abs() < 1e-6, "{from_s} -> {end_s}, not {low_s}");
        }
        assert!(end_delay_s(&fluid, high_s + 1e-5, 200.0) > 0.1);
    }
}

#[test]
fn without_an_equilibrium_the_queue_fills_from_anywhere() {
    let fluid = letter(1500.0, 30.0, 50);
    for from_s in [0.0, 0.02, 0.05] {
        assert!(end_delay_s(&fluid, from_s, 20.0) > 0.1);
    }
}

/// Without backoffs and without a queue the window grows by one packet per RTT.
#[test]
fn one_packet_per_rtt() {
    let fluid = fluid(1000.0, 50.0, 10, newreno());
    // 5 packets fill the pipe: stay below.
    let points = fluid.trajectory(FlowState { window_pkts: 1.0, estimate_pps: 0.0 }, 0.2, 0.01);
    for p in points.unwrap() {
        let expected = 1.0 + p.t_s / 0.05;
        assert!((p.classes[0].window_pkts - expected).abs() < 1e-9, "{p:?}");
        assert!(p.delay_s.abs() < 1e-12);
    }
}

/// With a standing queue R = N W/C, so W dW/dt = C/N: W² grows linearly.
#[test]
fn growth_against_a_standing_queue() {
    let fluid = fluid(1000.0, 50.0, 10, newreno());
    let start = fluid.at_delay(0.01);
    for p in fluid.trajectory(start, 10.0, 0.1).unwrap() {
        let expected = (start.window_pkts.powi(2) + 2.0 * 100.0 * p.t_s).sqrt();
        assert!((p.classes[0].window_pkts / expected - 1.0).abs() < 1e-8, "{p:?}");
        assert!((p.delay_s - (p.classes[0].window_pkts / 100.0 - 0.05)).abs() < 1e-12);
    }
}

/// With a standing queue the estimate's error is exp(−t/τ), whatever the window does; the window
/// ends at the one equilibrium from every side.
#[test]
fn ftcp_converges_and_its_estimate_decays_by_itself() {
    // The first is stiff: the filter is a thousand times as fast as the window.
    for tau_s in [5e-5, 0.02, 0.5, 5.0] {
        let fluid = chd_paper(4, ftcp(tau_s));
        let rest = fluid.equilibria()[0];
        let fair = fluid.at_delay(rest.delay_s);
        for (delay_s, estimate) in [(0.001, 0.9), (0.05, 0.9), (0.01, 1.05)] {
            let start =
                FlowState { estimate_pps: estimate * fair.estimate_pps, ..fluid.at_delay(delay_s) };
            let points = fluid.trajectory(start, 20.0 * tau_s + 20.0, 0.1).unwrap();
            assert!(points.iter().all(|p| p.delay_s > 0.0), "the queue is never empty here");
            for p in &points {
                let error = p.classes[0].estimate_pps / fair.estimate_pps - 1.0;
                let expected = (estimate - 1.0) * (-p.t_s / tau_s).exp();
                assert!((error - expected).abs() < 1e-6, "{error} not {expected} at {}", p.t_s);
            }
            let end = points[points.len() - 1];
            assert!((end.delay_s - rest.delay_s).abs() < 1e-6, "{end:?}, not {rest:?}");
        }
    }
}

#[test]
fn every_point_is_there() {
    let fluid = letter(1000.0, 80.0, 50);
    for (duration_s, step_s, count) in [(1.0, 0.1, 11), (0.3, 0.1, 4), (1.0, 0.3, 4), (1.0, 1.0, 2)]
    {
        let points = fluid.trajectory(fluid.at_delay(0.01), duration_s, step_s).unwrap();
        assert_eq!(points.len(), count, "{duration_s} by {step_s}");
        assert!(points.iter().enumerate().all(|(i, p)| p.t_s == i as f64 * step_s));
    }
}
