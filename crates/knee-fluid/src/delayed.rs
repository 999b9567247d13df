//! The model with feedback a round trip late, a limited queue and loss.

use differential_equations::prelude::{DDE, ExplicitRungeKutta, IVP};

use crate::fluid::Class;
use crate::trajectory::{Point, check_state, just_after, times};
use crate::{Error, FlowState, Fluid, check};

/// θ of the bounds of the queue over the propagation RTT.
const BOUND_RTTS: f64 = 1.0 / 50.0;

/// Integration steps in the propagation RTT: four in θ.
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

impl Fluid {
    /// The solution with feedback a round trip late and loss at the full queue, from a queueing delay of
    /// `delay_s` and flows in the state `initial`, which held for ever before; a point every `step_s`
    /// seconds from 0 to `duration_s`.
    ///
    /// With `R = T + q`, and `d` marking values a round trip `R(t)` ago:
    ///
    /// * `dq/dt = N W/R / C − 1`, kept within 0 and the full queue `Q`;
    /// * `loss = ` the fraction of the arrivals that the full queue turns away. Each lost packet counts
    ///   as a backoff of its own, also several in one round trip: when the queue overflows, a large
    ///   window falls further than TCP's would;
    /// * HD: `dW/dt = 1/R − (W_d/R_d) [(1−β) g(q_d) + loss_d/2] W`, and CHD with
    ///   `(1−β) g(q_d) / R_d` for its delay term;
    /// * F-TCP: `dW/dt = 1/R − [P_d/R_d + loss_d W_d/R_d] (W − BE T)⁺`, where
    ///   `P = 1 − (1−f)^W`, and `dBE/dt = (x − BE)/τ` with `x` the rate at which the link
    ///   served the flow's packets of a round trip ago.
    ///
    /// The bounds of the queue are approached within a fiftieth of the propagation RTT, not hit:
    /// `dq/dt` is held between `−q/θ` and `(Q−q)/θ`, with `θ` that time. So the equations are
    /// continuous, the queue stays within its bounds, and no packet is lost but those that are counted.
    ///
    /// Solved with steps of at most `step_s` and 1/200 of the propagation RTT.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a value out of its range, [`Error::Solver`] if the solver gives up
    /// or its steps are too long for these values.
    pub fn delayed_trajectory(
        &self,
        delay_s: f64,
        initial: FlowState,
        duration_s: f64,
        step_s: f64,
    ) -> Result<Vec<Point>, Error> {
        let ok = delay_s >= 0.0 && delay_s <= self.link.queue_s;
        check(ok, "the initial queueing delay (s)", "between 0 and the full queue's", delay_s)?;
        check_state(&initial)?;
        let y0 = [delay_s, initial.window_pkts, initial.estimate_pps];
        let times = times(duration_s, step_s)?;
        let end_s = just_after(&times, step_s);
        // A whole number of steps from point to point.
        let substeps = (step_s / self.class.rtt_s * STEPS_PER_RTT).ceil();
        let method = ExplicitRungeKutta::rk4(step_s / substeps)
            .max_delay(self.class.rtt_s + self.link.queue_s)
            .max_steps(usize::MAX);
        let solution = IVP::dde(&Equations(self), 0.0, end_s, y0, |_: f64| y0)
            .t_eval(&times)
            .method(method)
            .solve()
            .map_err(|e| Error::Solver(format!("{e:?}")))?;
        let point = |(t_s, y): (&f64, &[f64; 3])| {
            let (flow, loss) = (flow(y), self.bottleneck(y).loss);
            if !(flow.window_pkts > 0.0 && flow.window_pkts.is_finite()) {
                let reason = "the steps are too long for such windows; make them shorter";
                return Err(Error::Solver(reason.to_owned()));
            }
            Ok(Point { t_s: *t_s, delay_s: y[0], flow, loss })
        };
        solution.t.iter().zip(&solution.y).map(point).collect()
    }

    fn bottleneck(&self, y: &[f64; 3]) -> Bottleneck {
        let Class { rtt_s, flows, .. } = self.class;
        let queue_s = self.link.queue_s;
        let bound_s = rtt_s * BOUND_RTTS;
        let delay_s = y[0].clamp(0.0, queue_s);
        let arrivals_pps = f64::from(flows) * y[1] / (rtt_s + delay_s);
        let offered = arrivals_pps / self.link.capacity_pps;
        let excess = offered - 1.0;
        let filling = excess.clamp(-y[0] / bound_s, (queue_s - y[0]) / bound_s);
        Bottleneck { delay_s, filling, offered, loss: (excess - filling).max(0.0) / offered }
    }
}

/// State of each flow in that of the solver: queueing delay, window, estimate.
fn flow(y: &[f64; 3]) -> FlowState {
    FlowState { window_pkts: y[1], estimate_pps: y[2] }
}

/// The equations in the solver's terms.
struct Equations<'a>(&'a Fluid);

impl DDE<1, f64, [f64; 3]> for Equations<'_> {
    fn diff(&self, _t: f64, y: &[f64; 3], [yd]: &[[f64; 3]; 1], dydt: &mut [f64; 3]) {
        let Class { rtt_s, rule, .. } = self.0.class;
        let (now, then) = (self.0.bottleneck(y), self.0.bottleneck(yd));
        let (state, window_then_pkts) = (flow(y), yd[1]);
        let rtt_then_s = rtt_s + then.delay_s;
        let sent_pps = window_then_pkts / rtt_then_s;
        let backoffs_per_s = rule.backoffs_per_rtt(then.delay_s, window_then_pkts) / rtt_then_s;
        dydt[0] = now.filling;
        dydt[1] = 1.0 / (rtt_s + now.delay_s)
            - backoffs_per_s * rule.decrease_pkts(&state, rtt_s)
            - sent_pps * then.loss * rule.loss_decrease_pkts(&state, rtt_s);
        dydt[2] = rule.estimate_rate(state.estimate_pps, sent_pps * then.served());
    }

    fn lags(&self, _t: f64, y: &[f64; 3], lags: &mut [f64; 1]) {
        lags[0] = self.0.class.rtt_s + y[0].clamp(0.0, self.0.link.queue_s);
    }
}
