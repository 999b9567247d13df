//! Fluid models of delay-based congestion control: equilibria, their stability, trajectories.
//!
//! The model is that of the HD letter (Budzisz, Stanojević, Shorten, Baker: "A strategy for fair
//! coexistence of loss and delay-based congestion control algorithms"), §II. `N` flows with equal
//! windows `W` (packets) and propagation RTT `T` (s) share a link of `C` packets/s whose queueing
//! delay is `δ` (s):
//!
//! * eq. 1, a queue that is never empty: `N W / (T + δ) = C`;
//! * eq. 2, `dW/dt = 1/(T+δ) − p W² / (2 (T+δ))` for a probability `p = g(δ)` per packet of halving
//!   the window, so with eq. 1
//!   `dW/dt = [1 − (p/2) (C (T+δ)/N)²] / (T+δ)` and `dδ/dt = (N/C) dW/dt`;
//! * eq. 3, the locus of equilibria: `p*(δ) = 2 N² / (C² (T+δ)²) = 2/W²`.
//!
//! Derived from it here, not in the letter:
//!
//! * a backoff to `β W` rather than `W/2`: `p* = 1/((1−β) W²)`;
//! * CHD, whose probability holds once a round trip: `dW/dt = [1 − (1−β) g W] / (T+δ)`,
//!   `g* = 1/((1−β) W)`;
//! * F-TCP, which responds at most once a round trip, with probability `P = 1 − (1 − f(δ))^W` when
//!   each of the `W` ACKs of a round trip is tested with `f`, and then takes its window to
//!   `BE T`, the bandwidth estimate times the minimum RTT:
//!   `dW/dt = [1 − P (W − BE T)⁺] / (T+δ)`. The ABSE filter is taken as first order with a constant
//!   `τ`: `dBE/dt = (x − BE)/τ`, where `x` is the rate at which the flow's packets are delivered
//!   (the adaptation of ABSE's `τ` is not in the model). With a standing queue `x = C/N` whatever
//!   the window, so `BE = C/N` at equilibrium and its error decays as `exp(−t/τ)`, apart from the
//!   window: `τ` moves no equilibrium and cannot make one unstable. The equilibrium is where
//!   `P(δ) C δ / N = 1`. The left side rises with `δ` from 0 without bound, so there is always
//!   exactly one, and it is stable.
//!
//! [`Fluid`] is this model. [`Delayed`] has feedback a round trip late, a queue of limited size with loss,
//! and classes of flows that differ in RTT and rule. Neither has slow start or randomness. [`EbbCycle`] is
//! another model, for the sawtooth of Ebb. Times are seconds, windows packets, rates packets/s. The crate
//! `differential-equations` solves the differential equations. The feature `trajectories` (on by default)
//! adds that crate, [`Delayed`] and the trajectories of both.
//!
//! ```
//! let hd = knee_fluid::Backoff { qmin_s: 0.005, qth_s: 0.030, qmax_s: 0.100, pmax: 0.02 };
//! assert_eq!(hd.g(0.005), 0.0);
//! assert_eq!(hd.g(0.030), 0.02); // the peak
//! assert!((hd.g(0.065) - 0.01).abs() < 1e-12); // halfway down
//! ```

mod curve;
#[cfg(feature = "trajectories")]
mod delayed;
mod ebb;
mod fluid;
#[cfg(feature = "trajectories")]
mod trajectory;

pub use curve::{Backoff, GentleRed};
#[cfg(feature = "trajectories")]
pub use delayed::Delayed;
pub use ebb::EbbCycle;
pub use fluid::{Class, Equilibrium, Fluid, Link, Rule, Stability};
#[cfg(feature = "trajectories")]
pub use trajectory::Point;

/// The reason why a model could not be made or solved.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// A value outside the range in which the model means anything.
    #[error("{name} must be {range}, not {value}")]
    Parameter {
        /// Name of the value, with its unit.
        name: &'static str,
        /// The values that it may take.
        range: &'static str,
        /// The value given.
        value: f64,
    },
    /// The solver gave up, or its steps are too long for these values.
    #[error("the differential equation could not be solved: {0}")]
    Solver(String),
}

/// State of each flow of one class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowState {
    /// Congestion window, packets, above 0.
    pub window_pkts: f64,
    /// F-TCP's bandwidth estimate BE, packets/s, at least 0. The other rules ignore it.
    pub estimate_pps: f64,
}

/// Refuses a value outside its range. `ok` is false for NaN with every comparison in use.
fn check(ok: bool, name: &'static str, range: &'static str, value: f64) -> Result<(), Error> {
    if ok { Ok(()) } else { Err(Error::Parameter { name, range, value }) }
}

fn check_positive(name: &'static str, value: f64) -> Result<(), Error> {
    check(value > 0.0 && value.is_finite(), name, "above 0 and finite", value)
}
