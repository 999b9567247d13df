//! The model with feedback a round trip late and loss.
#![allow(clippy::unwrap_used)]

mod common;

use common::{
    backoff, chd, chd_paper, chd_thresholds, fluid, ftcp, hd, letter, model, newreno, pps,
};
use knee_fluid::{Class, FlowState, Fluid, Link, Point, Rule, Stability};

fn letter_rule() -> Rule {
    hd(backoff(2.0, 20.0, 100.0, 0.05))
}

fn mean_delay_s(points: &[Point]) -> f64 {
    points.iter().map(|p| p.delay_s).sum::<f64>() / points.len() as f64
}

/// A complex number: real and imaginary part.
type Complex = (f64, f64);

fn product(a: Complex, b: Complex) -> Complex {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

/// Number of roots right of `edge` of the characteristic equation of the linearised delayed model.
///
/// With u = δW/W, y = δq/R and z = s R, the equations give y (z + 1) = u and
/// z (z+1) + [a (z+1) + 1 + e^(−z) (b (z+1) + c − 1)] / W = 0, where the backoff term's relative
/// derivative is a to the present window, b to the window a round trip ago, and c to the queue
/// then, in units of R. Counted by the argument principle.
fn roots_right_of(edge: f64, window: f64, [a, b, c]: [f64; 3]) -> i32 {
    let value = |z: Complex| {
        let one_more = (z.0 + 1.0, z.1);
        let delay = ((-z.0).exp() * z.1.cos(), -(-z.0).exp() * z.1.sin());
        let past = product(delay, (b * one_more.0 + c - 1.0, b * one_more.1));
        let growth = product(z, one_more);
        (
            growth.0 + (a * one_more.0 + 1.0 + past.0) / window,
            growth.1 + (a * one_more.1 + past.1) / window,
        )
    };
    // No root is larger than this right of the edge, where |e^(−z)| is at most 1.1.
    let far = 3.0 + 2.0 * (a + b + c + 2.0) / window;
    let corners = [(edge, -far), (far, -far), (far, far), (edge, far), (edge, -far)];
    let mut turned = 0.0;
    for side in corners.windows(2) {
        const PARTS: u32 = 100_000;
        let at = |i: u32| {
            let part = f64::from(i) / f64::from(PARTS);
            (side[0].0 + part * (side[1].0 - side[0].0), side[0].1 + part * (side[1].1 - side[0].1))
        };
        for i in 0..PARTS {
            let (from, to) = (value(at(i)), value(at(i + 1)));
            let turn = product(to, (from.0, -from.1));
            turned += turn.1.atan2(turn.0);
        }
    }
    (turned / std::f64::consts::TAU).round() as i32
}

/// a, b, c of [`roots_right_of`] at an equilibrium, by differences of the rules themselves.
fn derivatives(fluid: &Fluid, rule: Rule, delay_s: f64, rtt_s: f64) -> [f64; 3] {
    let window = fluid.at_delay(delay_s).window_pkts;
    let slope = |f: &dyn Fn(f64) -> f64, x: f64| {
        let d = 1e-6 * x;
        (f(x + d) - f(x - d)) / (2.0 * d)
    };
    let p = fluid.probability(delay_s);
    let relative = slope(&|q| fluid.probability(q), delay_s) / p * rtt_s;
    match rule {
        Rule::PerPacket { .. } => [1.0, 1.0, relative],
        Rule::PerRound { .. } => [1.0, 0.0, relative],
        Rule::FTcp { .. } => {
            let per_rtt = |p: f64, w: f64| 1.0 - (1.0 - p).powf(w);
            let at = per_rtt(p, window);
            let b = slope(&|w| per_rtt(p, w), window) * window / at;
            let c = slope(&|q| per_rtt(fluid.probability(q), window), delay_s) * rtt_s / at;
            [rtt_s / delay_s, b, c]
        }
    }
}

/// Delays at which a rule's curve has a corner.
fn corners_s(rule: &Rule) -> [f64; 3] {
    match rule {
        Rule::PerPacket { backoff: b, .. } | Rule::PerRound { backoff: b, .. } => {
            [b.qmin_s, b.qth_s, b.qmax_s]
        }
        Rule::FTcp { curve, .. } => [curve.tmin_s, curve.tmax_s, 2.0 * curve.tmax_s],
    }
}

/// Returns whether a small disturbance of the windows at an equilibrium dies away: the linear stability of the
/// delayed system there, found from a disturbed trajectory of 30 round trips.
fn decays(link: Link, class: Class, delay_s: f64) -> bool {
    let linear_s = corners_s(&class.rule)
        .into_iter()
        .chain([0.0, link.queue_s])
        .map(|corner_s| (corner_s - delay_s).abs())
        .fold(f64::INFINITY, f64::min);
    assert!(linear_s > 0.0, "there is no linear range at a corner");
    let rtt_s = class.rtt_s + delay_s;
    let disturbance = f64::min(1e-5, 1e-3 * linear_s / rtt_s);
    let fluid = Fluid::new(link, class).unwrap();
    let rest = fluid.at_delay(delay_s);
    let disturbed = FlowState { window_pkts: rest.window_pkts * (1.0 + disturbance), ..rest };
    let points = fluid.delayed_trajectory(delay_s, disturbed, 30.0 * rtt_s, rtt_s / 50.0).unwrap();
    let distance = |point: &Point| (point.flow.window_pkts / rest.window_pkts - 1.0).abs();
    // Five round trips hold a peak of an oscillation, whose period is about four.
    let largest = |rtts: std::ops::RangeInclusive<f64>| {
        let inside = points.iter().filter(|p| rtts.contains(&(p.t_s / rtt_s)));
        inside.map(distance).fold(0.0, f64::max)
    };
    // A hundredfold disturbance, still in the linear range, has grown. Later values are no longer linear
    // and may well be smaller.
    largest(0.0..=30.0) < 100.0 * disturbance && largest(25.0..=30.0) < largest(1.0..=6.0)
}

/// The disturbed trajectory against the characteristic equation, which it does not know.
#[test]
fn linear_stability_agrees_with_the_characteristic_equation() {
    let chd_link = pps(10.0, 1500.0);
    let letter_link = pps(40.0, 1000.0);
    let chd_rule = chd(chd_thresholds(0.25));
    let cases = [
        (letter_link, 80.0, 50, letter_rule(), true),
        (pps(40.0, 1500.0), 80.0, 50, letter_rule(), true),
        (chd_link, 40.0, 1, hd(chd_thresholds(0.02)), true),
        (chd_link, 40.0, 3, hd(chd_thresholds(0.02)), true),
        (chd_link, 40.0, 1, chd_rule, true),
        (chd_link, 40.0, 3, chd_rule, true),
        (chd_link, 40.0, 20, ftcp(1.0), true),
        // Few flows with large windows: HD's loop gain grows with W, CHD's with R alone.
        (letter_link, 80.0, 8, letter_rule(), false),
        (pps(400.0, 1500.0), 40.0, 2, hd(chd_thresholds(0.02)), false),
        (pps(400.0, 1500.0), 40.0, 2, chd_rule, true),
        (chd_link, 300.0, 2, chd_rule, false),
        (pps(100.0, 1500.0), 70.0, 1, ftcp(1.0), false),
        (pps(1000.0, 1500.0), 300.0, 2, ftcp(1.0), false),
        (pps(100.0, 1500.0), 70.0, 20, ftcp(1.0), true),
        // On the steep part of the curve, above Tmax.
        (chd_link, 40.0, 5, ftcp(1.0), false),
    ];
    for (capacity_pps, rtt_ms, flows, rule, stable) in cases {
        let (link, class) = model(capacity_pps, rtt_ms, flows, rule);
        let fluid = Fluid::new(link, class).unwrap();
        let rest = fluid.equilibria()[0];
        assert_eq!(rest.stability, Stability::Stable);
        let rtt_s = rtt_ms / 1e3 + rest.delay_s;
        let slopes = derivatives(&fluid, rule, rest.delay_s, rtt_s);
        let count = |edge| roots_right_of(edge, rest.window_pkts, slopes);
        let case = format!("{capacity_pps} packets/s, {rtt_ms} ms, {flows} of {rule:?}");
        assert_eq!((count(-0.02) == 0, count(0.02) == 0), (stable, stable), "{case}");
        assert_eq!(decays(link, class, rest.delay_s), stable, "{case}");
    }
}

#[test]
fn the_unstable_root_is_unstable_with_delay() {
    let (link, class) = model(pps(40.0, 1000.0), 80.0, 50, letter_rule());
    let fluid = Fluid::new(link, class).unwrap();
    let high = fluid.equilibria()[1];
    assert!(!decays(link, class, high.delay_s));
}

#[test]
fn converges_to_the_stable_root_where_that_is_stable_with_delay() {
    for fluid in [
        fluid(pps(40.0, 1000.0), 80.0, 50, letter_rule()),
        fluid(pps(40.0, 1500.0), 80.0, 50, letter_rule()),
        fluid(pps(10.0, 1500.0), 40.0, 2, chd(chd_thresholds(0.25))),
    ] {
        let rest = fluid.equilibria()[0];
        for from_s in [0.0, rest.delay_s * 0.5, rest.delay_s * 1.5] {
            let points =
                fluid.delayed_trajectory(from_s, fluid.at_delay(from_s), 30.0, 0.05).unwrap();
            assert_eq!(points.len(), 601);
            let last = &points[500..];
            assert!(
                last.iter().all(|p| (p.delay_s - rest.delay_s).abs() < 1e-5 && p.loss == 0.0),
                "from {from_s}: {:?}, not {rest:?}",
                last[100]
            );
        }
    }
}

/// The queue swings around an equilibrium that is unstable with delay.
#[test]
fn a_limit_cycle_where_it_is_not() {
    let fluid = fluid(pps(40.0, 1000.0), 80.0, 8, letter_rule());
    let rest = fluid.equilibria()[0];
    let start = fluid.at_delay(rest.delay_s * 1.01);
    let points = fluid.delayed_trajectory(rest.delay_s, start, 60.0, 0.01).unwrap();
    let last: Vec<f64> = points[4000..].iter().map(|p| p.delay_s).collect();
    let (least, most) = last.iter().fold((1.0f64, 0.0f64), |(l, m), q| (l.min(*q), m.max(*q)));
    assert!(least < rest.delay_s && most > rest.delay_s + 1e-3, "{least} ... {most}: {rest:?}");
}

/// Case (iii) of Theorem 1: the queue fills and losses drive.
#[test]
fn losses_drive_where_there_is_no_equilibrium() {
    let fluid = fluid(pps(40.0, 1500.0), 30.0, 50, letter_rule());
    let points = fluid.delayed_trajectory(0.01, fluid.at_delay(0.01), 30.0, 0.01).unwrap();
    let last = &points[1500..];
    assert!(mean_delay_s(last) > 0.08, "{}", mean_delay_s(last));
    let loss = last.iter().map(|p| p.loss).sum::<f64>() / last.len() as f64;
    assert!(loss > 0.0 && loss < 0.1, "{loss}");
    assert!(points[0].loss == 0.0);
}

/// The queue is the arrivals minus the drops and the output of a busy link; and it stays within its bounds
/// while it is driven against both.
#[test]
fn packets_are_conserved_and_the_queue_is_bounded() {
    let capacity_pps = pps(10.0, 1500.0);
    let flow = |window_pkts| FlowState { window_pkts, estimate_pps: 0.0 };
    let step_s = 1e-3;
    let loss_based = fluid(capacity_pps, 40.0, 6, newreno());
    let points = loss_based.delayed_trajectory(0.05, flow(15.0), 60.0, step_s).unwrap();
    let accepted_over_capacity =
        |p: &Point| 6.0 * p.flow.window_pkts / (0.04 + p.delay_s) * (1.0 - p.loss) / capacity_pps;
    let (mut full, mut empty, mut gained) = (0, 0, 0.0);
    let mut start_s = points[0].delay_s;
    for pair in points.windows(2) {
        let (p, next) = (&pair[0], &pair[1]);
        assert!(p.delay_s > -1e-9 && p.delay_s < 0.1 + 1e-9, "{p:?}");
        assert!((0.0..1.0).contains(&p.loss), "{p:?}");
        full += i32::from(p.loss > 0.0);
        // A link that is not busy sends less than its capacity: count only while it is.
        if p.delay_s < 2e-3 {
            empty += 1;
            (gained, start_s) = (0.0, next.delay_s);
            continue;
        }
        gained += step_s * ((accepted_over_capacity(p) + accepted_over_capacity(next)) / 2.0 - 1.0);
        assert!((next.delay_s - start_s - gained).abs() < 2e-4, "{next:?}: {gained} gained");
    }
    assert!(full > 100, "the queue was full {full} ms");
    let few = fluid(capacity_pps, 40.0, 3, hd(chd_thresholds(0.02)));
    let drained = few.delayed_trajectory(0.05, flow(1.0), 1.0, step_s).unwrap();
    empty += drained.iter().filter(|p| p.delay_s < 1e-3).count() as i32;
    assert!(drained.iter().all(|p| p.delay_s > -1e-9 && p.loss == 0.0));
    assert!(empty > 100, "the queue was empty {empty} ms");
}

/// The trajectory against the equations as section C.7 and A.6 write them, with derivatives and
/// past values taken from the points.
#[test]
fn trajectories_solve_the_equations() {
    let letter_link = pps(40.0, 1000.0);
    for (capacity_pps, rtt_ms, flows, rule, from_s) in [
        (letter_link, 80.0, 8, letter_rule(), 0.03),
        (pps(40.0, 1500.0), 30.0, 50, letter_rule(), 0.09),
        (pps(10.0, 1500.0), 300.0, 2, chd(chd_thresholds(0.25)), 0.01),
        (pps(10.0, 1500.0), 40.0, 5, ftcp(0.3), 0.04),
    ] {
        let fluid = fluid(capacity_pps, rtt_ms, flows, rule);
        let step_s = 2e-4;
        let start = fluid.at_delay(from_s);
        let start = FlowState { estimate_pps: 0.8 * start.estimate_pps, ..start };
        let points = fluid.delayed_trajectory(from_s, start, 10.0, step_s).unwrap();
        let rtt = |p: &Point| rtt_ms / 1e3 + p.delay_s;
        let rate = |p: &Point| p.flow.window_pkts / rtt(p);
        let n = f64::from(flows);
        let mut off = [0.0f64; 3];
        let from = (0.5 / step_s) as usize;
        for i in from..points.len() - 1 {
            let p = &points[i];
            let [w, be] = [p.flow.window_pkts, p.flow.estimate_pps];
            let d = &points[i - (rtt(p) / step_s).round() as usize];
            let slope = |value: &dyn Fn(&Point) -> f64| {
                (value(&points[i + 1]) - value(&points[i - 1])) / (2.0 * step_s)
            };
            let g = fluid.probability(d.delay_s);
            let delivered_pps = if d.delay_s > 1e-3 || n * rate(d) > capacity_pps {
                capacity_pps / n
            } else {
                rate(d)
            };
            let (down, be_slope) = match rule {
                Rule::PerPacket { .. } => (w / 2.0 * rate(d) * (g + d.loss), 0.0),
                Rule::PerRound { .. } => (w / 2.0 * (g / rtt(d) + d.loss * rate(d)), 0.0),
                Rule::FTcp { tau_s, .. } => {
                    let per_rtt = 1.0 - (1.0 - g).powf(d.flow.window_pkts);
                    let step = (w - be * rtt_ms / 1e3).max(0.0);
                    (step * (per_rtt / rtt(d) + d.loss * rate(d)), (delivered_pps - be) / tau_s)
                }
            };
            let accepted = n * rate(p) / capacity_pps * (1.0 - p.loss);
            let w_off = slope(&|p| p.flow.window_pkts) - (1.0 / rtt(p) - down);
            off[0] += (w_off * rtt(p)).abs();
            off[1] += (slope(&|p| p.flow.estimate_pps) - be_slope).abs() / capacity_pps * n;
            if p.delay_s > 2e-3 {
                off[2] += (slope(&|p| p.delay_s) - (accepted - 1.0)).abs();
            }
        }
        let count = (points.len() - 1 - from) as f64;
        let mean = off.map(|sum| sum / count);
        // Packets per round trip, shares of the estimate per second, seconds per second. The past is known to
        // half a step, which explains the difference of the windows.
        let close = mean[0] < 1e-3 && mean[1] < 1e-6 && mean[2] < 1e-5;
        assert!(close, "{mean:?}: {rule:?}");
    }
}

/// The points do not depend on their spacing, so neither on the solver's step.
#[test]
fn independent_of_the_step() {
    let fluid = fluid(pps(40.0, 1000.0), 80.0, 50, letter_rule());
    let run = |step_s| fluid.delayed_trajectory(0.0, fluid.at_delay(0.0), 4.0, step_s).unwrap();
    let (coarse, fine) = (run(0.01), run(1e-4));
    for (i, p) in coarse.iter().enumerate() {
        assert!((p.delay_s - fine[100 * i].delay_s).abs() < 1e-7, "{p:?}, {:?}", fine[100 * i]);
    }
}

/// 50 HD flows that are at rest keep the queue below the threshold (HD letter Fig. 2, before the loss-based
/// flow).
#[test]
fn hd_flows_alone_stay_at_rest() {
    let rest = letter(1000.0, 80.0, 50);
    let points = rest.delayed_trajectory(0.0107, rest.at_delay(0.0107), 90.0, 0.1).unwrap();
    assert!(points.iter().all(|p| p.delay_s < 0.012));
}

/// F-TCP's estimate is the share of the link, C/N, whatever the window.
#[test]
fn ftcp_with_delay() {
    let fluid = fluid(pps(10.0, 1500.0), 40.0, 20, ftcp(0.5));
    let rest = fluid.equilibria()[0];
    let start = FlowState { estimate_pps: 30.0, ..fluid.at_delay(0.01) };
    let points = fluid.delayed_trajectory(0.01, start, 60.0, 0.1).unwrap();
    let end = points[600];
    assert!((end.delay_s - rest.delay_s).abs() < 1e-5, "{end:?}, not {rest:?}");
    assert!((end.flow.estimate_pps / start_fair(&fluid) - 1.0).abs() < 1e-6, "{end:?}");
}

fn start_fair(fluid: &Fluid) -> f64 {
    fluid.at_delay(0.0).estimate_pps
}

/// Results of the CHD paper's flows with feedback delay, against claim C13 (7 ... 16 ms for HD, 10 ... 18 ms
/// for CHD): as without it.
#[test]
fn the_chd_papers_flows_with_delay() {
    for n in 1..=3 {
        for rule in [hd(chd_thresholds(0.02)), chd(chd_thresholds(0.25))] {
            let rest = chd_paper(n, rule).equilibria()[0];
            let fluid = fluid(pps(10.0, 1500.0), 40.0, n, rule);
            let points = fluid.delayed_trajectory(0.0, fluid.at_delay(0.0), 30.0, 0.1).unwrap();
            assert!((points[300].delay_s - rest.delay_s).abs() < 1e-5, "{:?}", points[300]);
        }
    }
}
