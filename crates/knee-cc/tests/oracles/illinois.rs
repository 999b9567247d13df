//! TCP-Illinois: Liu, Basar, Srikant, VALUETOOLS 2006: alpha and beta as functions of the average
//! delay, with the constants of public implementations.

use crate::drive::{
    Comparison, Decision, Growth, Oracle, Round, Rtts, at, compare, position_pkts, slow_start,
};
use knee_cc::{Ack, Conn};

struct Illinois {
    alpha_min: f64,
    alpha_max: f64,
    beta_min: f64,
    beta_max: f64,
    eta: [f64; 3],
    low_rounds_needed: u32,
    threshold_pkts: f64,
    rtt: Rtts,
    round: Round,
    sum_us: f64,
    samples: f64,
    alpha: f64,
    beta: f64,
    /// Accepted difference of the C.
    alpha_within: f64,
    beta_within: f64,
    left_low: bool,
    low_rounds: u32,
    growth: Growth,
    slack_pkts: f64,
}

/// da and eta dm are rounded down to 1/16 us.
const DELAY_RESOLUTION_US: f64 = 1.0 / 8.0;
/// alpha has 22 bits of a quotient, and 16 of fraction; beta is in parts per million.
const QUOTIENT_RESOLUTION: f64 = 2e-5;

impl Illinois {
    fn new(conn: &Conn) -> Self {
        Self {
            alpha_min: 0.3,
            alpha_max: 10.0,
            beta_min: 0.125,
            beta_max: 0.5,
            eta: [0.01, 0.1, 0.8],
            low_rounds_needed: 5,
            threshold_pkts: 15.0,
            rtt: Rtts::default(),
            round: Round::new(conn),
            sum_us: 0.0,
            samples: 0.0,
            alpha: 1.0,
            beta: 0.5,
            alpha_within: 0.0,
            beta_within: 0.0,
            left_low: false,
            low_rounds: 0,
            growth: Growth::default(),
            slack_pkts: 0.0,
        }
    }

    /// alpha(da): alpha_max up to d1 = eta1 dm, then kappa1 / (kappa2 + da), which is alpha_max at
    /// d1 and alpha_min at dm.
    fn alpha_at(&self, da: f64, dm: f64) -> f64 {
        let d1 = self.eta[0] * dm;
        let kappa2 =
            (self.alpha_min * dm - self.alpha_max * d1) / (self.alpha_max - self.alpha_min);
        let kappa1 = self.alpha_max * (kappa2 + d1);
        kappa1 / (kappa2 + da)
    }

    /// beta(da): beta_min up to d2, beta_max from d3, kappa3 + kappa4 da between.
    fn beta_at(&self, da: f64, dm: f64) -> f64 {
        let (d2, d3) = (self.eta[1] * dm, self.eta[2] * dm);
        if da <= d2 {
            return self.beta_min;
        }
        let kappa4 = (self.beta_max - self.beta_min) / (d3 - d2);
        let kappa3 = self.beta_min - kappa4 * d2;
        (kappa3 + kappa4 * da).min(self.beta_max)
    }

    fn end_of_round(&mut self) {
        let (Some(min), dm) = (self.rtt.min_us, self.rtt.range_us()) else { return };
        let da = (self.sum_us / self.samples - min).max(0.0);
        let around = [da - DELAY_RESOLUTION_US, da + DELAY_RESOLUTION_US];
        let [low, high] = around.map(|da| self.beta_at(da, dm));
        (self.beta, self.beta_within) = (self.beta_at(da, dm), high - low + QUOTIENT_RESOLUTION);
        if da > self.eta[0] * dm {
            (self.left_low, self.low_rounds) = (true, 0);
            let [high, low] = around.map(|da| self.alpha_at(da.max(0.0), dm).min(self.alpha_max));
            self.alpha = self.alpha_at(da, dm);
            self.alpha_within = high - low + QUOTIENT_RESOLUTION * self.alpha.max(1.0);
            return;
        }
        if self.left_low {
            // Low delay must last before alpha is alpha_max again.
            self.low_rounds += 1;
            if self.low_rounds < self.low_rounds_needed {
                return;
            }
            (self.left_low, self.low_rounds) = (false, 0);
        }
        (self.alpha, self.alpha_within) = (self.alpha_max, QUOTIENT_RESOLUTION * self.alpha_max);
    }

    fn is_small(&self, cwnd: f64) -> bool {
        cwnd < self.threshold_pkts
    }
}

impl Oracle for Illinois {
    fn measure(&mut self, conn: &Conn, ack: &Ack) {
        if ack.rtt_us >= 0 {
            self.rtt.sample(f64::from(ack.rtt_us));
            self.sum_us += f64::from(ack.rtt_us);
            self.samples += 1.0;
        }
        if self.round.ended(conn) && self.samples > 0.0 {
            self.end_of_round();
            (self.sum_us, self.samples) = (0.0, 0.0);
        }
    }

    fn decide(&mut self, conn: &Conn, ack: &Ack) -> Option<Decision> {
        if conn.cwnd_limited == 0 {
            return Some(Decision::exact(position_pkts(conn)));
        }
        let (cwnd, left) = slow_start(conn, f64::from(ack.acked_pkts));
        if cwnd < f64::from(conn.ssthresh_pkts) || left == 0.0 {
            return Some(Decision::exact(cwnd + f64::from(conn.cwnd_cnt) / cwnd));
        }
        let small = self.is_small(cwnd);
        let (alpha, within) = if small { (1.0, 0.0) } else { (self.alpha, self.alpha_within) };
        self.slack_pkts += left * within;
        Some(self.growth.grow(&at(conn, cwnd), alpha, left, self.slack_pkts))
    }

    fn loss(&mut self, conn: &Conn) -> (f64, f64) {
        let cwnd = f64::from(conn.cwnd_pkts);
        let beta = if self.is_small(cwnd) { 0.5 } else { self.beta };
        self.growth.clear();
        self.slack_pkts = 0.0;
        // (1 - beta) cwnd in whole packets, rounded down.
        (((1.0 - beta) * cwnd).max(2.0) - 0.5, 0.5 + self.beta_within * cwnd)
    }

    fn observed(&self, values: [u32; 4]) -> bool {
        // alpha in thousandths, rounded down; beta in ppm.
        (f64::from(values[2]) / 1e3 - self.alpha).abs() <= 0.001 + self.alpha_within
            && (f64::from(values[3]) / 1e6 - self.beta).abs() <= self.beta_within
    }
}

fn compared(change: impl Fn(&mut Illinois)) -> Comparison {
    compare("illinois", &[("delack_filter", 0)], |conn| {
        let mut illinois = Illinois::new(conn);
        change(&mut illinois);
        illinois
    })
}

#[test]
fn agrees() {
    compared(|_| {}).assert_agrees(0);
}

#[test]
fn wrong_constants_show() {
    compared(|illinois| illinois.alpha_min = 0.31).assert_reports("alpha_min");
    compared(|illinois| illinois.eta[2] = 0.81).assert_reports("eta3");
    compared(|illinois| illinois.threshold_pkts = 16.0).assert_reports("the threshold window");
}
