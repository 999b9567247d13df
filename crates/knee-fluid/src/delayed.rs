//! The model with feedback a round trip late, a limited queue and loss, for classes of flows.

use differential_equations::prelude::{DDE, ExplicitRungeKutta, IVP};

use crate::fluid::{Class, Link};
use crate::trajectory::{Point, check_state, just_after, times};
use crate::{Error, FlowState, check};

/// `K` classes of flows that share one link, with feedback a round trip late and loss at the full
/// queue. With `R_i = T_i + q`, and `d` marking values a round trip `R_i(t)` ago:
///
/// * `dq/dt = Σ N_i W_i/R_i / C − 1`, kept within 0 and the full queue `Q`;
/// * `loss = ` the fraction of the arrivals that the full queue turns away. Each lost packet counts
///   as a backoff of its own, also several in one round trip: when the queue overflows, a large
///   window falls further than TCP's would;
/// * HD: `dW_i/dt = 1/R_i − (W_id/R_id) [(1−β) g(q_d) + loss_d/2] W_i`, and CHD with
///   `(1−β) g(q_d) / R_id` for its delay term;
/// * F-TCP: `dW_i/dt = 1/R_i − [P_d/R_id + loss_d W_id/R_id] (W_i − BE_i T_i)⁺`, where
///   `P = 1 − (1−f)^W`, and `dBE_i/dt = (x_i − BE_i)/τ` with `x_i` the rate at which the link
///   served the flow's packets of a round trip ago.
///
/// The bounds of the queue are approached within a fiftieth of the least propagation RTT, not hit:
/// `dq/dt` is held between `−q/θ` and `(Q−q)/θ`, with `θ` that time. So the equations are
/// continuous, the queue stays within its bounds, and no packet is lost but those that are counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Delayed<const K: usize> {
    link: Link,
    classes: [Class; K],
    least_rtt_s: f64,
}

/// θ of the bounds of the queue over the least propagation RTT.
const BOUND_RTTS: f64 = 1.0 / 50.0;

/// Integration steps in the least propagation RTT: four in θ.
const STEPS_PER_RTT: f64 = 200.0;

/// The behaviour of the link in one state.
struct Bottleneck {
    /// Queueing delay within its bounds, s.
    delay_s: f64,
    /// dq/dt, s/s.
    filling: f64,
    /// Arrivals over capacity.
    offered: f64,
    /// Fraction of the arrivals that is dropped.
    loss: f64,
}

impl Bottleneck {
    /// Fraction of the arrivals that the link serves, neither dropping nor queueing them.
    fn served(&self) -> f64 {
        1.0 - self.loss - self.filling / self.offered
    }
}

impl<const K: usize> Delayed<K> {
    /// The model of some classes of flows on a link.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a value out of its range or no class.
    pub fn new(link: Link, classes: [Class; K]) -> Result<Delayed<K>, Error> {
        link.check()?;
        check(K >= 1, "the number of classes", "at least 1", K as f64)?;
        classes.iter().try_for_each(Class::check)?;
        let least_rtt_s = classes.iter().map(|c| c.rtt_s).fold(f64::INFINITY, f64::min);
        Ok(Delayed { link, classes, least_rtt_s })
    }

    /// The solution from a queueing delay of `delay_s` and flows in the state `classes`, which
    /// held for ever before; a point every `step_s` seconds from 0 to `duration_s`.
    ///
    /// Solved with steps of at most `step_s` and 1/200 of the least propagation RTT.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a value out of its range, [`Error::Solver`] if the solver gives up
    /// or its steps are too long for these values.
    pub fn trajectory(
        &self,
        delay_s: f64,
        classes: &[FlowState; K],
        duration_s: f64,
        step_s: f64,
    ) -> Result<Vec<Point<K>>, Error> {
        let initial = self.pack(delay_s, classes)?;
        let times = times(duration_s, step_s)?;
        let end_s = just_after(&times, step_s);
        // A whole number of steps from point to point.
        let substeps = (step_s / self.least_rtt_s * STEPS_PER_RTT).ceil();
        let longest_rtt_s = self.classes.iter().map(|c| c.rtt_s).fold(0.0, f64::max);
        let method = ExplicitRungeKutta::rk4(step_s / substeps)
            .max_delay(longest_rtt_s + self.link.queue_s)
            .max_steps(usize::MAX);
        let solution =
            IVP::dde(&System(self), 0.0, end_s, initial.clone(), |_: f64| initial.clone())
                .t_eval(&times)
                .method(method)
                .solve()
                .map_err(|e| Error::Solver(format!("{e:?}")))?;
        solution.t.iter().zip(&solution.y).map(|(t_s, y)| self.point(*t_s, y)).collect()
    }

    /// The solver's state: the queueing delay, then window and estimate of each class.
    fn pack(&self, delay_s: f64, classes: &[FlowState; K]) -> Result<Vec<f64>, Error> {
        let ok = delay_s >= 0.0 && delay_s <= self.link.queue_s;
        check(ok, "the initial queueing delay (s)", "between 0 and the full queue's", delay_s)?;
        classes.iter().try_for_each(check_state)?;
        let flows = classes.iter().flat_map(|s| [s.window_pkts, s.estimate_pps]);
        Ok(std::iter::once(delay_s).chain(flows).collect())
    }

    fn point(&self, t_s: f64, y: &[f64]) -> Result<Point<K>, Error> {
        let classes = std::array::from_fn(|i| flow(y, i));
        if !classes.iter().all(|s: &FlowState| s.window_pkts > 0.0 && s.window_pkts.is_finite()) {
            let reason = "the steps are too long for such windows; make them shorter";
            return Err(Error::Solver(reason.to_owned()));
        }
        Ok(Point { t_s, delay_s: y[0], classes, loss: self.bottleneck(y).loss })
    }

    fn bottleneck(&self, y: &[f64]) -> Bottleneck {
        let queue_s = self.link.queue_s;
        let bound_s = self.least_rtt_s * BOUND_RTTS;
        let delay_s = y[0].clamp(0.0, queue_s);
        let arrivals_pps = self.classes.iter().enumerate().map(|(i, class)| {
            f64::from(class.flows) * flow(y, i).window_pkts / (class.rtt_s + delay_s)
        });
        let offered = arrivals_pps.sum::<f64>() / self.link.capacity_pps;
        let excess = offered - 1.0;
        let filling = excess.clamp(-y[0] / bound_s, (queue_s - y[0]) / bound_s);
        Bottleneck { delay_s, filling, offered, loss: (excess - filling).max(0.0) / offered }
    }
}

/// State of the flows of class `i`.
fn flow(y: &[f64], i: usize) -> FlowState {
    FlowState { window_pkts: y[1 + 2 * i], estimate_pps: y[2 + 2 * i] }
}

/// The equations in the solver's terms.
struct System<'a, const K: usize>(&'a Delayed<K>);

impl<const K: usize> DDE<K, f64, Vec<f64>> for System<'_, K> {
    fn diff(&self, _t: f64, y: &Vec<f64>, yd: &[Vec<f64>; K], dydt: &mut Vec<f64>) {
        let now = self.0.bottleneck(y);
        dydt[0] = now.filling;
        for (i, class) in self.0.classes.iter().enumerate() {
            let then = self.0.bottleneck(&yd[i]);
            let (state, state_then) = (flow(y, i), flow(&yd[i], i));
            let rtt_then_s = class.rtt_s + then.delay_s;
            let sent_pps = state_then.window_pkts / rtt_then_s;
            let rule = &class.rule;
            let backoffs_per_s =
                rule.backoffs_per_rtt(then.delay_s, state_then.window_pkts) / rtt_then_s;
            dydt[1 + 2 * i] = 1.0 / (class.rtt_s + now.delay_s)
                - backoffs_per_s * rule.decrease_pkts(&state, class.rtt_s)
                - sent_pps * then.loss * rule.loss_decrease_pkts(&state, class.rtt_s);
            dydt[2 + 2 * i] = rule.estimate_rate(state.estimate_pps, sent_pps * then.served());
        }
    }

    fn lags(&self, _t: f64, y: &Vec<f64>, lags: &mut [f64; K]) {
        let delay_s = y[0].clamp(0.0, self.0.link.queue_s);
        *lags = std::array::from_fn(|i| self.0.classes[i].rtt_s + delay_s);
    }
}
