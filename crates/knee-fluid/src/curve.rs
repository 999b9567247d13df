//! Probability of a backoff against queueing delay.

use crate::{Error, check};

/// The backoff function g(q) of HD and CHD: rises from `qmin_s` to `pmax` at `qth_s` (region A),
/// then falls to 0 at `qmax_s` (region B). HD letter Fig. 1, CHD paper Fig. 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// Delay up to which there is no backoff, s, at least 0.
    pub qmin_s: f64,
    /// Delay of the highest probability, s, above `qmin_s`.
    pub qth_s: f64,
    /// Largest inferred delay, s, above 0. At `qth_s` or less there is no region B yet.
    pub qmax_s: f64,
    /// Highest probability, 0 ... 1: per packet for HD, per round trip for CHD. 0 is a flow that
    /// knows no delay backoff.
    pub pmax: f64,
}

impl Backoff {
    /// Probability of a backoff at a queueing delay of `q_s` seconds.
    ///
    /// Where nothing beyond the threshold was observed (`qmax_s <= qth_s`), the probability stays
    /// at `pmax` from the threshold on.
    pub fn g(&self, q_s: f64) -> f64 {
        let Backoff { qmin_s, qth_s, qmax_s, pmax } = *self;
        if q_s <= qmin_s {
            0.0
        } else if q_s < qth_s {
            pmax * (q_s - qmin_s) / (qth_s - qmin_s)
        } else if qmax_s <= qth_s {
            pmax
        } else if q_s < qmax_s {
            pmax * (qmax_s - q_s) / (qmax_s - qth_s)
        } else {
            0.0
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let finite = self.qth_s.is_finite();
        check(self.qmin_s >= 0.0, "qmin (s)", "at least 0", self.qmin_s)?;
        check(self.qth_s > self.qmin_s && finite, "qth (s)", "above qmin and finite", self.qth_s)?;
        crate::check_positive("qmax (s)", self.qmax_s)?;
        check_probability(self.pmax)
    }
}

/// F-TCP's response curve f(q), the shape of gentle RED: 0 up to `tmin_s`, rises to `pmax` at
/// `tmax_s` and to 1 at twice `tmax_s`. F-TCP paper Fig. 2a.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GentleRed {
    /// Delay up to which there is no response, s, at least 0.
    pub tmin_s: f64,
    /// Delay at which the probability is `pmax`, s, above `tmin_s`.
    pub tmax_s: f64,
    /// Probability at `tmax_s`, per packet, 0 ... 1.
    pub pmax: f64,
}

impl GentleRed {
    /// Probability of a response at a queueing delay of `q_s` seconds.
    pub fn f(&self, q_s: f64) -> f64 {
        let GentleRed { tmin_s, tmax_s, pmax } = *self;
        if q_s <= tmin_s {
            0.0
        } else if q_s <= tmax_s {
            pmax * (q_s - tmin_s) / (tmax_s - tmin_s)
        } else if q_s < 2.0 * tmax_s {
            pmax + (1.0 - pmax) * (q_s - tmax_s) / tmax_s
        } else {
            1.0
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let ok = self.tmax_s > self.tmin_s && self.tmax_s.is_finite();
        check(self.tmin_s >= 0.0, "tmin (s)", "at least 0", self.tmin_s)?;
        check(ok, "tmax (s)", "above tmin and finite", self.tmax_s)?;
        check_probability(self.pmax)
    }
}

fn check_probability(pmax: f64) -> Result<(), Error> {
    check((0.0..=1.0).contains(&pmax), "pmax", "between 0 and 1", pmax)
}
