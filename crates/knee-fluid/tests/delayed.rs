//! The model with feedback a round trip late, loss and several classes.
#![allow(clippy::unwrap_used)]

mod common;

use common::{backoff, chd, chd_paper, chd_thresholds, ftcp, hd, letter, model, newreno, pps};
use knee_fluid::{Class, Delayed, FlowState, Fluid, Link, Point, Rule, Stability};

/// Both models of the same flows.
fn both(capacity_pps: f64, rtt_ms: f64, flows: u32, rule: Rule) -> (Fluid, Delayed<1>) {
    let (link, class) = model(capacity_pps, rtt_ms, flows, rule);
    (Fluid::new(link, class).unwrap(), Delayed::new(link, [class]).unwrap())
}

fn letter_rule() -> Rule {
    hd(backoff(2.0, 20.0, 100.0, 0.05))
}

fn mean_delay_s<const K: usize>(points: &[Point<K>]) -> f64 {
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

/// Tells whether a small disturbance of the windows at an equilibrium dies away: the linear stability of the
/// delayed system there, found from a disturbed trajectory of 30 round trips.
fn decays<const K: usize>(
    link: Link,
    classes: [Class; K],
    delay_s: f64,
    states: &[FlowState; K],
) -> bool {
    let linear_s = classes
        .iter()
        .flat_map(|c| corners_s(&c.rule))
        .chain([0.0, link.queue_s])
        .map(|corner_s| (corner_s - delay_s).abs())
        .fold(f64::INFINITY, f64::min);
    assert!(linear_s > 0.0, "there is no linear range at a corner");
    let rtt_s = classes.iter().map(|c| c.rtt_s).fold(0.0, f64::max) + delay_s;
    let disturbance = f64::min(1e-5, 1e-3 * linear_s / rtt_s);
    let mut disturbed = *states;
    for (i, state) in disturbed.iter_mut().enumerate() {
        // Not the same for each class, which would leave the differences between them alone.
        state.window_pkts *= 1.0 + disturbance * (i + 1) as f64 / K as f64;
    }
    let delayed = Delayed::new(link, classes).unwrap();
    let points = delayed.trajectory(delay_s, &disturbed, 30.0 * rtt_s, rtt_s / 50.0).unwrap();
    let distance = |point: &Point<K>| {
        let pairs = point.classes.iter().zip(states);
        pairs.map(|(a, b)| (a.window_pkts / b.window_pkts - 1.0).abs()).fold(0.0, f64::max)
    };
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
        let at_rest = [fluid.at_delay(rest.delay_s)];
        assert_eq!(decays(link, [class], rest.delay_s, &at_rest), stable, "{case}");
    }
}

#[test]
fn the_unstable_root_is_unstable_with_delay() {
    let (link, class) = model(pps(40.0, 1000.0), 80.0, 50, letter_rule());
    let fluid = Fluid::new(link, class).unwrap();
    let high = fluid.equilibria()[1];
    assert!(!decays(link, [class], high.delay_s, &[fluid.at_delay(high.delay_s)]));
}

#[test]
fn converges_to_the_stable_root_where_that_is_stable_with_delay() {
    for (fluid, delayed) in [
        both(pps(40.0, 1000.0), 80.0, 50, letter_rule()),
        both(pps(40.0, 1500.0), 80.0, 50, letter_rule()),
        both(pps(10.0, 1500.0), 40.0, 2, chd(chd_thresholds(0.25))),
    ] {
        let rest = fluid.equilibria()[0];
        for from_s in [0.0, rest.delay_s * 0.5, rest.delay_s * 1.5] {
            let points = delayed.trajectory(from_s, &[fluid.at_delay(from_s)], 30.0, 0.05).unwrap();
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
    let (fluid, delayed) = both(pps(40.0, 1000.0), 80.0, 8, letter_rule());
    let rest = fluid.equilibria()[0];
    let start = fluid.at_delay(rest.delay_s * 1.01);
    let points = delayed.trajectory(rest.delay_s, &[start], 60.0, 0.01).unwrap();
    let last: Vec<f64> = points[4000..].iter().map(|p| p.delay_s).collect();
    let (least, most) = last.iter().fold((1.0f64, 0.0f64), |(l, m), q| (l.min(*q), m.max(*q)));
    assert!(least < rest.delay_s && most > rest.delay_s + 1e-3, "{least} ... {most}: {rest:?}");
}

/// Case (iii) of Theorem 1: the queue fills and losses drive.
#[test]
fn losses_drive_where_there_is_no_equilibrium() {
    let (fluid, delayed) = both(pps(40.0, 1500.0), 30.0, 50, letter_rule());
    let points = delayed.trajectory(0.01, &[fluid.at_delay(0.01)], 30.0, 0.01).unwrap();
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
    let (link, class) = model(pps(10.0, 1500.0), 40.0, 3, hd(chd_thresholds(0.02)));
    let delayed = Delayed::new(link, [class, Class { rtt_s: 0.1, rule: newreno(), ..class }]);
    let flow = |window_pkts| FlowState { window_pkts, estimate_pps: 0.0 };
    let step_s = 1e-3;
    let points =
        delayed.unwrap().trajectory(0.05, &[flow(60.0), flow(40.0)], 60.0, step_s).unwrap();
    let accepted_over_capacity = |p: &Point<2>| {
        let rate = |s: FlowState, rtt_s: f64| 3.0 * s.window_pkts / (rtt_s + p.delay_s);
        (rate(p.classes[0], 0.04) + rate(p.classes[1], 0.1)) * (1.0 - p.loss) / link.capacity_pps
    };
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
    let few = Delayed::new(link, [class]).unwrap();
    let drained = few.trajectory(0.05, &[flow(1.0)], 1.0, step_s).unwrap();
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
        let (fluid, delayed) = both(capacity_pps, rtt_ms, flows, rule);
        let step_s = 2e-4;
        let start = fluid.at_delay(from_s);
        let start = FlowState { estimate_pps: 0.8 * start.estimate_pps, ..start };
        let points = delayed.trajectory(from_s, &[start], 10.0, step_s).unwrap();
        let rtt = |p: &Point<1>| rtt_ms / 1e3 + p.delay_s;
        let rate = |p: &Point<1>| p.classes[0].window_pkts / rtt(p);
        let n = f64::from(flows);
        let mut off = [0.0f64; 3];
        let from = (0.5 / step_s) as usize;
        for i in from..points.len() - 1 {
            let p = &points[i];
            let [w, be] = [p.classes[0].window_pkts, p.classes[0].estimate_pps];
            let d = &points[i - (rtt(p) / step_s).round() as usize];
            let slope = |value: &dyn Fn(&Point<1>) -> f64| {
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
                    let per_rtt = 1.0 - (1.0 - g).powf(d.classes[0].window_pkts);
                    let step = (w - be * rtt_ms / 1e3).max(0.0);
                    (step * (per_rtt / rtt(d) + d.loss * rate(d)), (delivered_pps - be) / tau_s)
                }
            };
            let accepted = n * rate(p) / capacity_pps * (1.0 - p.loss);
            let w_off = slope(&|p| p.classes[0].window_pkts) - (1.0 / rtt(p) - down);
            off[0] += (w_off * rtt(p)).abs();
            off[1] += (slope(&|p| p.classes[0].estimate_pps) - be_slope).abs() / capacity_pps * n;
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
    let (fluid, delayed) = both(pps(40.0, 1000.0), 80.0, 50, letter_rule());
    let run = |step_s| delayed.trajectory(0.0, &[fluid.at_delay(0.0)], 4.0, step_s).unwrap();
    let (coarse, fine) = (run(0.01), run(1e-4));
    for (i, p) in coarse.iter().enumerate() {
        assert!((p.delay_s - fine[100 * i].delay_s).abs() < 1e-7, "{p:?}, {:?}", fine[100 * i]);
    }
}

/// p* is a matter of the window alone: HD flows of different RTTs come to equal windows, so their
/// rates are as 1/R.
#[test]
fn classes_of_rtt() {
    let link = Link { capacity_pps: pps(40.0, 1000.0), queue_s: 0.1 };
    let class = |rtt_s| Class { rtt_s, flows: 25, rule: letter_rule() };
    let classes = [class(0.06), class(0.1)];
    let delayed = Delayed::new(link, classes).unwrap();
    let start = FlowState { window_pkts: 8.0, estimate_pps: 0.0 };
    let more = FlowState { window_pkts: 12.0, ..start };
    let points = delayed.trajectory(0.01, &[more, start], 100.0, 0.1).unwrap();
    let end = points[points.len() - 1];
    let [short, long] = end.classes.map(|s| s.window_pkts);
    assert!((short / long - 1.0).abs() < 1e-4, "{end:?}");
    let carried = 25.0 * (short / (0.06 + end.delay_s) + long / (0.1 + end.delay_s));
    assert!((carried / link.capacity_pps - 1.0).abs() < 1e-4, "{end:?}");
    assert!(decays(link, classes, end.delay_s, &end.classes));
    // A class of its own or one of two halves: the same.
    let (one, _) = both(link.capacity_pps, 80.0, 50, letter_rule());
    let halves = Delayed::new(link, [class(0.08), class(0.08)]).unwrap();
    let state = one.at_delay(0.005);
    let split = halves.trajectory(0.005, &[state, state], 5.0, 0.1).unwrap();
    let (_, whole) = both(link.capacity_pps, 80.0, 50, letter_rule());
    for (a, b) in split.iter().zip(whole.trajectory(0.005, &[state], 5.0, 0.1).unwrap()) {
        assert!((a.delay_s - b.delay_s).abs() < 1e-9);
    }
}

/// One loss-based flow among 49 HD flows drives the queue through region B into loss (HD letter
/// Fig. 2), again and again, while 50 HD flows keep it below the threshold. The queue does not
/// stay high, as it does in the letter: all flows see the same loss, and all back off at once.
#[test]
fn a_loss_based_flow_drives_hd_into_region_b() {
    let link = Link { capacity_pps: pps(40.0, 1000.0), queue_s: 0.1 };
    let class = |flows, rule| Class { rtt_s: 0.08, flows, rule };
    let rest = letter(1000.0, 80.0, 50).at_delay(0.0107);
    let alone = Delayed::new(link, [class(50, letter_rule())]).unwrap();
    let points = alone.trajectory(0.0107, &[rest], 90.0, 0.1).unwrap();
    assert!(points.iter().all(|p| p.delay_s < 0.012));
    let mixed = Delayed::new(link, [class(49, letter_rule()), class(1, newreno())]).unwrap();
    let points = mixed.trajectory(0.0107, &[rest, rest], 90.0, 0.01).unwrap();
    let overflows = points.windows(2).filter(|p| p[0].loss == 0.0 && p[1].loss > 0.0).count();
    assert!(overflows >= 2, "{overflows}");
    let in_b = points.iter().filter(|p| p.delay_s > 0.02).count();
    assert!(in_b > points.len() / 4, "{in_b} of {}", points.len());
}

/// F-TCP's estimate converges to the flow's share of the link, which is C/N in one class.
#[test]
fn ftcp_with_delay() {
    let (fluid, delayed) = both(pps(10.0, 1500.0), 40.0, 20, ftcp(0.5));
    let rest = fluid.equilibria()[0];
    let start = FlowState { estimate_pps: 30.0, ..fluid.at_delay(0.01) };
    let points = delayed.trajectory(0.01, &[start], 60.0, 0.1).unwrap();
    let end = points[600];
    assert!((end.delay_s - rest.delay_s).abs() < 1e-5, "{end:?}, not {rest:?}");
    assert!((end.classes[0].estimate_pps / start_fair(&fluid) - 1.0).abs() < 1e-6, "{end:?}");
    // Unequal starts become equal shares.
    let (link, class) = model(pps(10.0, 1500.0), 40.0, 10, ftcp(0.5));
    let two = Delayed::new(link, [class, class]).unwrap();
    let more = FlowState { window_pkts: 4.0, estimate_pps: 60.0 };
    let points = two.trajectory(0.02, &[start, more], 120.0, 0.1).unwrap();
    let [a, b] = points[1200].classes;
    assert!((a.window_pkts / b.window_pkts - 1.0).abs() < 1e-3, "{a:?} {b:?}");
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
            let (fluid, delayed) = both(pps(10.0, 1500.0), 40.0, n, rule);
            let points = delayed.trajectory(0.0, &[fluid.at_delay(0.0)], 30.0, 0.1).unwrap();
            assert!((points[300].delay_s - rest.delay_s).abs() < 1e-5, "{:?}", points[300]);
        }
    }
}
