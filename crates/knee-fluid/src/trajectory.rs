//! Solutions over time: common types of both models, and the solution without feedback delay.

use crate::{Error, FlowState, Fluid, Rule, check, check_positive};
use differential_equations::prelude::{ExplicitRungeKutta, IVP};

/// One point of a trajectory of `K` classes of flows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point<const K: usize> {
    /// Time since the start, s.
    pub t_s: f64,
    /// Queueing delay, s.
    pub delay_s: f64,
    /// State of each flow of each class.
    pub classes: [FlowState; K],
    /// Fraction of the arriving packets that the full queue drops, 0 ... 1. Always 0 in [`Fluid`].
    pub loss: f64,
}

impl Rule {
    /// Packets that a loss takes off the window: half of it; for F-TCP, the decrease of a response.
    pub(crate) fn loss_decrease_pkts(&self, state: &FlowState, rtt_s: f64) -> f64 {
        match self {
            Rule::FTcp { .. } => self.decrease_pkts(state, rtt_s),
            _ => state.window_pkts / 2.0,
        }
    }

    /// dBE/dt, packets/s², of a flow whose packets are delivered at `delivered_pps`. The rules
    /// without an estimate keep its value.
    pub(crate) fn estimate_rate(&self, estimate_pps: f64, delivered_pps: f64) -> f64 {
        match self {
            Rule::FTcp { tau_s, .. } => (delivered_pps - estimate_pps) / tau_s,
            _ => 0.0,
        }
    }
}

impl Fluid {
    /// The solution of eq. 2 from `initial`, a point every `step_s` seconds from 0 to `duration_s`.
    ///
    /// The delay follows from the window: `δ = (N W/C − T)⁺` (eq. 1; with a window too small for
    /// a queue the RTT is T). The model knows no loss: the delay is not held at the full queue,
    /// and a window above an unstable equilibrium grows without end.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a value out of its range, [`Error::Solver`] if the solver gives up.
    pub fn trajectory(
        &self,
        initial: FlowState,
        duration_s: f64,
        step_s: f64,
    ) -> Result<Vec<Point<1>>, Error> {
        check_state(&initial)?;
        let times = times(duration_s, step_s)?;
        let end_s = just_after(&times, step_s);
        let y0 = [initial.window_pkts, initial.estimate_pps];
        let diff = |_t: f64, y: &[f64; 2], dydt: &mut [f64; 2]| {
            let state = FlowState { window_pkts: y[0], estimate_pps: y[1] };
            let delay_s = self.delay_s(y[0]);
            let rtt_s = self.class.rtt_s + delay_s;
            dydt[0] = self.gain_per_rtt(delay_s, &state) / rtt_s;
            dydt[1] = self.class.rule.estimate_rate(y[1], y[0] / rtt_s);
        };
        // Far tighter than the points need, because they are interpolated to a lower order than the
        // steps that this controls.
        let method = ExplicitRungeKutta::dopri5()
            .rtol(1e-12)
            .atol(1e-12)
            .h_max(step_s)
            .max_steps(100_000_000);
        let solution = IVP::ode_from_fn(diff, 0.0, end_s, y0)
            .t_eval(&times)
            .method(method)
            .solve()
            .map_err(|e| Error::Solver(format!("{e:?}")))?;
        let point = |(t_s, y): (&f64, &[f64; 2])| Point {
            t_s: *t_s,
            delay_s: self.delay_s(y[0]),
            classes: [FlowState { window_pkts: y[0], estimate_pps: y[1] }],
            loss: 0.0,
        };
        Ok(solution.t.iter().zip(&solution.y).map(point).collect())
    }

    /// The queueing delay that windows of `window_pkts` keep (eq. 1), 0 if they fill no queue.
    fn delay_s(&self, window_pkts: f64) -> f64 {
        let rtt_s = f64::from(self.class.flows) * window_pkts / self.link.capacity_pps;
        (rtt_s - self.class.rtt_s).max(0.0)
    }
}

pub(crate) fn check_state(state: &FlowState) -> Result<(), Error> {
    check_positive("the initial window (packets)", state.window_pkts)?;
    let be = state.estimate_pps;
    let ok = be >= 0.0 && be.is_finite();
    check(ok, "the initial bandwidth estimate (packets/s)", "at least 0 and finite", be)
}

/// The times of a trajectory's points, 0 ... `duration_s` every `step_s`.
pub(crate) fn times(duration_s: f64, step_s: f64) -> Result<Vec<f64>, Error> {
    check_positive("the duration (s)", duration_s)?;
    let ok = step_s > 0.0 && step_s <= duration_s;
    check(ok, "the step (s)", "above 0 and at most the duration", step_s)?;
    // The slack keeps the last point where the quotient is a whole number but for rounding.
    let count = (duration_s / step_s * (1.0 + 1e-12)).floor();
    check(count <= 1e7, "the number of steps", "at most 10 million", count)?;
    Ok((0..=count as usize).map(|i| i as f64 * step_s).collect())
}

/// Time at which a solver must stop so that none of `times` is lost to the rounding of its last step.
pub(crate) fn just_after(times: &[f64], step_s: f64) -> f64 {
    times.last().copied().unwrap_or(0.0) + 1e-6 * step_s
}
