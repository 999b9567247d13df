//! The model without feedback delay, HD letter §II: one class of flows and a standing queue.

use crate::{Backoff, Error, FlowState, GentleRed, check, check_positive};

/// The bottleneck.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Capacity C, packets/s, above 0.
    pub capacity_pps: f64,
    /// Largest queueing delay, that of the full queue, s, above 0.
    pub queue_s: f64,
}

/// Condition and size of a flow's window reductions. All flows grow by one packet per round trip.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// HD: with probability g(q) per acknowledged packet, W becomes β W (eqs 1-3; β = 1/2 there).
    PerPacket {
        /// The probability g.
        backoff: Backoff,
        /// β, at least 0 and below 1.
        decrease: f64,
    },
    /// CHD: with probability g(q) per round trip, W becomes β W (derived).
    PerRound {
        /// The probability g.
        backoff: Backoff,
        /// β, at least 0 and below 1.
        decrease: f64,
    },
    /// F-TCP: with probability 1 − (1 − f(q))^W per round trip, W becomes BE T (derived).
    FTcp {
        /// The probability f.
        curve: GentleRed,
        /// Time constant τ of the bandwidth estimate, s, above 0.
        tau_s: f64,
    },
}

/// Flows that are alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Class {
    /// Propagation RTT T, without queueing, s, above 0.
    pub rtt_s: f64,
    /// Number of flows N, at least 1.
    pub flows: u32,
    /// Their rule.
    pub rule: Rule,
}

impl Link {
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_positive("the capacity (packets/s)", self.capacity_pps)?;
        check_positive("the largest queueing delay (s)", self.queue_s)
    }
}

impl Rule {
    /// The curve's value at a queueing delay: g or f.
    pub(crate) fn probability(&self, delay_s: f64) -> f64 {
        match self {
            Rule::PerPacket { backoff, .. } | Rule::PerRound { backoff, .. } => backoff.g(delay_s),
            Rule::FTcp { curve, .. } => curve.f(delay_s),
        }
    }

    /// Mean number of backoffs in the round trip that a window of `window_pkts` takes: p W for HD
    /// (eq. 2 with φ ≈ p M), g for CHD, 1 − (1 − f)^W for F-TCP.
    pub(crate) fn backoffs_per_rtt(&self, delay_s: f64, window_pkts: f64) -> f64 {
        let probability = self.probability(delay_s);
        match self {
            Rule::PerPacket { .. } => probability * window_pkts,
            Rule::PerRound { .. } => probability,
            Rule::FTcp { .. } => -f64::exp_m1(window_pkts * f64::ln_1p(-probability)),
        }
    }

    /// Packets that one backoff takes off the window: (1−β) W, or (W − BE T)⁺ for F-TCP, which
    /// does not respond while its window is below BE T.
    pub(crate) fn decrease_pkts(&self, state: &FlowState, rtt_s: f64) -> f64 {
        match self {
            Rule::PerPacket { decrease, .. } | Rule::PerRound { decrease, .. } => {
                (1.0 - decrease) * state.window_pkts
            }
            Rule::FTcp { .. } => (state.window_pkts - state.estimate_pps * rtt_s).max(0.0),
        }
    }

    /// Delays at which the curve has a corner.
    pub(crate) fn corners_s(&self) -> [f64; 3] {
        match self {
            Rule::PerPacket { backoff, .. } | Rule::PerRound { backoff, .. } => {
                [backoff.qmin_s, backoff.qth_s, backoff.qmax_s]
            }
            Rule::FTcp { curve, .. } => [curve.tmin_s, curve.tmax_s, 2.0 * curve.tmax_s],
        }
    }
}

impl Class {
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_positive("the propagation RTT (s)", self.rtt_s)?;
        check(self.flows >= 1, "the number of flows", "at least 1", self.flows.into())?;
        match self.rule {
            Rule::PerPacket { backoff, decrease } | Rule::PerRound { backoff, decrease } => {
                backoff.check()?;
                let ok = (0.0..1.0).contains(&decrease);
                check(ok, "the decrease factor", "at least 0 and below 1", decrease)
            }
            Rule::FTcp { curve, tau_s } => {
                curve.check()?;
                check_positive("the time constant of the bandwidth estimate (s)", tau_s)
            }
        }
    }
}

/// Behaviour of a delay near an equilibrium, from the sign of dδ/dt on both sides of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stability {
    /// The delay rises below it and falls above it.
    Stable,
    /// The delay falls below it and rises above it.
    Unstable,
    /// The two curves touch: the delay moves the same way on both sides, comes to the equilibrium
    /// on one and leaves it on the other.
    Touching,
}

/// A root of dδ/dt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Equilibrium {
    /// Queueing delay δ, s.
    pub delay_s: f64,
    /// Window W of each flow, packets.
    pub window_pkts: f64,
    /// The curve's value there: g per packet (HD), g per round trip (CHD), f per packet (F-TCP).
    pub probability: f64,
    /// Behaviour of the delay near it.
    pub stability: Stability,
}

/// N like flows on one link with a standing queue and no feedback delay (eqs 1-3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fluid {
    pub(crate) link: Link,
    pub(crate) class: Class,
}

/// Relative distance below which growth and backoff are the same, which rounding cannot resolve.
const SAME: f64 = 1e-12;

/// Samples of dδ/dt between two corners of the curve. One extremum lies between two corners at
/// most, and is searched for; so the number matters little.
const SAMPLES: u32 = 128;

impl Fluid {
    /// The model of one class of flows on a link.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a value out of its range.
    pub fn new(link: Link, class: Class) -> Result<Fluid, Error> {
        link.check()?;
        class.check()?;
        Ok(Fluid { link, class })
    }

    /// The flow that goes with a standing queue of `delay_s`: W = C (T+δ)/N (eq. 1), BE = C/N.
    pub fn at_delay(&self, delay_s: f64) -> FlowState {
        let fair_pps = self.link.capacity_pps / f64::from(self.class.flows);
        FlowState { window_pkts: fair_pps * (self.class.rtt_s + delay_s), estimate_pps: fair_pps }
    }

    /// The flows' probability at a queueing delay: g (HD, CHD) or f (F-TCP).
    pub fn probability(&self, delay_s: f64) -> f64 {
        self.class.rule.probability(delay_s)
    }

    /// The probability p*(δ) that would hold the queue at `delay_s`, the locus of equilibria
    /// (eq. 3). May be above 1, and is infinite for F-TCP where even a response in every round
    /// trip takes off less than the flow grows.
    pub fn locus(&self, delay_s: f64) -> f64 {
        let state = self.at_delay(delay_s);
        let window_pkts = state.window_pkts;
        let decrease_pkts = self.class.rule.decrease_pkts(&state, self.class.rtt_s);
        match self.class.rule {
            Rule::PerPacket { .. } => 1.0 / (window_pkts * decrease_pkts),
            Rule::PerRound { .. } => 1.0 / decrease_pkts,
            Rule::FTcp { .. } if decrease_pkts < 1.0 => f64::INFINITY,
            Rule::FTcp { .. } => -f64::exp_m1(f64::ln_1p(-1.0 / decrease_pkts) / window_pkts),
        }
    }

    /// Packets that a window gains in a round trip at a queueing delay: 1 less the backoffs' share.
    fn balance(&self, delay_s: f64) -> f64 {
        self.gain_per_rtt(delay_s, &self.at_delay(delay_s))
    }

    pub(crate) fn gain_per_rtt(&self, delay_s: f64, state: &FlowState) -> f64 {
        let Class { rtt_s, rule, .. } = &self.class;
        1.0 - rule.backoffs_per_rtt(delay_s, state.window_pkts) * rule.decrease_pkts(state, *rtt_s)
    }

    /// All equilibria with a delay above 0 and below the full queue's, by rising delay.
    ///
    /// Found by a scan of dδ/dt between the corners of the curve, a search for its extrema so that
    /// neither two roots close together nor a touch are missed, and bisection.
    pub fn equilibria(&self) -> Vec<Equilibrium> {
        let delays = self.scan_delays_s();
        let signed: Vec<(f64, i8)> = delays.iter().map(|&q| (q, sign(self.balance(q)))).collect();
        let mut found = Vec::new();
        // The last delay whose sign is known, and the best root among those after it that are
        // roots themselves (a touch, or a corner that the two curves share).
        let mut below: Option<(f64, i8)> = None;
        let mut at: Option<f64> = None;
        for (delay_s, sign) in signed {
            if sign == 0 {
                let nearer = |q: &f64| self.balance(*q).abs() <= self.balance(delay_s).abs();
                at = Some(at.filter(nearer).unwrap_or(delay_s));
                continue;
            }
            if let Some((below_s, below_sign)) = below
                && (at.is_some() || below_sign != sign)
            {
                let root_s = at.unwrap_or_else(|| self.bisect(below_s, delay_s));
                found.push(self.equilibrium(root_s, below_sign, sign));
            }
            (below, at) = (Some((delay_s, sign)), None);
        }
        found
    }

    fn equilibrium(&self, delay_s: f64, below: i8, above: i8) -> Equilibrium {
        Equilibrium {
            delay_s,
            window_pkts: self.at_delay(delay_s).window_pkts,
            probability: self.probability(delay_s),
            stability: match (below, above) {
                (1, -1) => Stability::Stable,
                (-1, 1) => Stability::Unstable,
                _ => Stability::Touching,
            },
        }
    }

    /// Delays between which dδ/dt has one root at most.
    fn scan_delays_s(&self) -> Vec<f64> {
        let queue_s = self.link.queue_s;
        let inside = |corner_s: &f64| *corner_s > 0.0 && *corner_s < queue_s;
        let mut corners = vec![0.0];
        corners.extend(self.class.rule.corners_s().iter().filter(|c| inside(c)));
        corners.push(queue_s);
        corners.sort_by(f64::total_cmp);
        let mut delays = vec![0.0];
        for pair in corners.windows(2) {
            let part_s = (pair[1] - pair[0]) / f64::from(SAMPLES);
            delays.extend((1..SAMPLES).map(|i| pair[0] + part_s * f64::from(i)));
            delays.push(pair[1]);
        }
        let extrema: Vec<f64> = delays.windows(3).filter_map(|d| self.extremum(d)).collect();
        delays.extend(extrema);
        delays.sort_by(f64::total_cmp);
        delays
    }

    /// The delay at which dδ/dt is nearest to 0 between three delays of the same sign, if that is inside.
    fn extremum(&self, delays: &[f64]) -> Option<f64> {
        let [left, middle, right] = [delays[0], delays[1], delays[2]].map(|q| self.balance(q));
        let toward_zero = middle.signum();
        let height = |q: f64| toward_zero * self.balance(q);
        let dips = toward_zero * left >= height(delays[1])
            && toward_zero * right >= height(delays[1])
            && (left != middle || right != middle);
        dips.then(|| golden_section(height, delays[0], delays[2]))
    }

    /// The root between two delays at which dδ/dt has opposite signs, to the last bit.
    fn bisect(&self, mut low_s: f64, mut high_s: f64) -> f64 {
        let rising = self.balance(high_s) > 0.0;
        loop {
            let middle_s = low_s + (high_s - low_s) / 2.0;
            if middle_s <= low_s || middle_s >= high_s {
                return middle_s;
            }
            if (self.balance(middle_s) > 0.0) == rising {
                high_s = middle_s;
            } else {
                low_s = middle_s;
            }
        }
    }
}

/// Sign of a gain per round trip, 0 where rounding hides it.
fn sign(balance: f64) -> i8 {
    if balance > SAME {
        1
    } else if balance < -SAME {
        -1
    } else {
        0
    }
}

/// The minimum of `f` between `low` and `high`, if it has one minimum there.
fn golden_section(f: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    let ratio = (5f64.sqrt() - 1.0) / 2.0;
    // 0.618^100 of the interval: below its rounding.
    for _ in 0..100 {
        let (left, right) = (high - ratio * (high - low), low + ratio * (high - low));
        if f(left) < f(right) {
            high = right;
        } else {
            low = left;
        }
    }
    low + (high - low) / 2.0
}
