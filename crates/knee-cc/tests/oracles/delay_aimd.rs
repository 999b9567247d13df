//! Delay-based AIMD: Leith et al., PFLDnet 2007, Algorithm 1 and eqs. 1 to 7, with interpretations DA-a to
//! DA-m of docs/evidence/interpretations/delay_aimd.md. Microseconds.

use crate::drive::{
    Comparison, Decision, Growth, Oracle, at, backed_off, compare, position_pkts, reduced,
    slow_start,
};
use knee_cc::{Ack, Conn};

struct DelayAimd {
    tau0: f64,
    w0_pkts: f64,
    delta: f64,
    beta_max: f64,
    gamma: f64,
    a: f64,
    kappa: f64,
    /// Coefficient of eq. 2's quadratic term.
    quadratic: f64,
    rtt_min: Option<f64>,
    rtt_max: f64,
    q: f64,
    new_rtt_max: bool,
    /// Last backoff of any cause, or the start.
    backoff_us: u64,
    hold_pos: Option<u32>,
    max_ssthresh: Option<f64>,
    growth: Growth,
    slack_pkts: f64,
}

impl DelayAimd {
    fn new(conn: &Conn) -> Self {
        Self {
            tau0: 20_000.0,
            w0_pkts: 10.0,
            delta: 0.9,
            beta_max: 0.9,
            gamma: 0.5,
            a: 0.01,
            kappa: 10.0,
            quadratic: 0.25,
            rtt_min: None,
            rtt_max: 0.0,
            q: 0.0,
            new_rtt_max: false,
            backoff_us: conn.now_us,
            hold_pos: None,
            max_ssthresh: None,
            growth: Growth::default(),
            slack_pkts: 0.0,
        }
    }

    /// RTTmax - RTTmin, in whole microseconds.
    fn range(&self) -> f64 {
        self.rtt_min.map_or(0.0, |min| self.rtt_max.floor() - min)
    }

    /// eq. 5: the adaptive threshold.
    fn adaptive_tau0(&self) -> f64 {
        (1.0 - self.gamma) * self.tau0 + self.gamma * self.range()
    }

    /// eq. 4; Algorithm 1 line 5.
    fn beta(&self) -> f64 {
        self.rtt_min.map_or(0.5, |min| (self.delta * min / (min + self.q)).min(self.beta_max))
    }

    /// eq. 2, with Algorithm 1 line 19's factor.
    fn alpha(&self, now_us: u64) -> f64 {
        let x = ((now_us - self.backoff_us) as f64 / 1e6 - 1.0).max(0.0);
        2.0 * (1.0 - self.beta()) * (1.0 + 10.0 * x + self.quadratic * x * x)
    }

    /// eq. 6, second case; None: too close to call.
    fn backs_off(&self, conn: &Conn) -> Option<bool> {
        let delta_us = (conn.now_us - self.backoff_us) as f64;
        let spacing_us = self.kappa * self.range();
        if f64::from(conn.cwnd_pkts) <= self.w0_pkts || self.hold_pos.is_some() {
            return Some(false);
        }
        // A microsecond of RTTmax is within its rounding.
        let close = (self.q - self.adaptive_tau0()).abs() <= 1.0
            || (delta_us - spacing_us).abs() <= 2.0 * self.kappa;
        (!close).then_some(self.q > self.adaptive_tau0() && delta_us > spacing_us)
    }

    fn note_backoff(&mut self, now_us: u64) {
        self.backoff_us = now_us;
        self.growth.clear();
        self.slack_pkts = 0.0;
    }

    /// Algorithm 1 lines 8 to 15. Gives the decision, or the window and the packets left over.
    fn limited_slow_start(
        &mut self,
        conn: &Conn,
        counted: f64,
    ) -> Result<(f64, f64), Option<Decision>> {
        let cwnd = f64::from(conn.cwnd_pkts);
        let Some(limit) = self.max_ssthresh else { return Ok(slow_start(conn, counted)) };
        // max_ssthresh is kept in 1/256 packet, of a range of whole microseconds.
        let resolution = 1.0 / 256.0 + 1.5 * limit / self.range().max(1.0);
        if (cwnd - limit).abs() <= resolution {
            return Err(None);
        }
        if cwnd < limit {
            return Ok(slow_start(conn, counted)); // line 12
        }
        self.slack_pkts += counted * resolution;
        let grown = self.growth.grow(conn, limit / 2.0, counted, self.slack_pkts); // line 14
        Err((grown.window_pkts < f64::from(conn.ssthresh_pkts)).then_some(grown))
    }
}

impl Oracle for DelayAimd {
    fn measure(&mut self, conn: &Conn, ack: &Ack) {
        self.new_rtt_max = false;
        if self.hold_pos.is_some_and(|pos| (pos.wrapping_sub(conn.ack_pos) as i32) <= 0) {
            self.hold_pos = None;
        }
        if ack.rtt_us < 0 {
            return;
        }
        let r = f64::from(ack.rtt_us);
        let min = self.rtt_min.map_or(r, |min| min.min(r)); // line 2
        let packets = f64::from(ack.acked_pkts).min(f64::from(conn.cwnd_pkts));
        let decayed = self.rtt_max - self.a * r * packets / f64::from(conn.cwnd_pkts); // line 3
        self.new_rtt_max = r >= decayed;
        self.rtt_max = decayed.max(r);
        self.rtt_min = Some(min);
        self.q = r - min; // line 4
    }

    fn decide(&mut self, conn: &Conn, ack: &Ack) -> Option<Decision> {
        let cwnd = f64::from(conn.cwnd_pkts);
        let in_slow_start = conn.cwnd_pkts < conn.ssthresh_pkts;
        if in_slow_start && self.new_rtt_max && self.range() > 0.0 {
            self.max_ssthresh = Some(cwnd / 4.0 * self.tau0 / self.range()); // eq. 7
        }
        if self.backs_off(conn)? {
            let down = reduced(self.beta() * cwnd, cwnd * 1e-9); // eq. 6, second case
            let threshold = Some((down.window_pkts, down.within_pkts));
            return Some(Decision { ssthresh_pkts: threshold, ..down });
        }
        if conn.cwnd_limited == 0 {
            return Some(Decision::exact(position_pkts(conn)));
        }
        let counted = f64::from(ack.acked_pkts);
        let (cwnd, left) = if in_slow_start {
            match self.limited_slow_start(conn, counted) {
                Ok(grown) => grown,
                Err(decision) => return decision,
            }
        } else {
            (cwnd, counted)
        };
        let avoiding = cwnd >= f64::from(conn.ssthresh_pkts) && left > 0.0;
        if !avoiding || (cwnd > self.w0_pkts && self.q > self.adaptive_tau0()) {
            return Some(Decision::exact(cwnd + f64::from(conn.cwnd_cnt) / cwnd)); // flat: Fig. 5
        }
        let alpha = self.alpha(conn.now_us);
        // alpha and its product are rounded down to 2^-16, 1 - beta to 2^-25.
        self.slack_pkts += left * (2.0 / 65_536.0 + alpha * 2e-7);
        Some(self.growth.grow(&at(conn, cwnd), alpha, left, self.slack_pkts)) // eq. 6, first case
    }

    fn taken(&mut self, after: &Conn, _observed: [u32; 4]) {
        if backed_off(after) {
            self.hold_pos = Some(after.snd_pos);
            self.note_backoff(after.now_us);
        }
    }

    fn loss(&mut self, conn: &Conn) -> (f64, f64) {
        let down = reduced(self.beta() * f64::from(conn.cwnd_pkts), 1e-6); // eq. 6, third case
        self.note_backoff(conn.now_us);
        (down.window_pkts, down.within_pkts)
    }
}

fn compared(change: impl Fn(&mut DelayAimd)) -> Comparison {
    let given = [("delack_filter", 0), ("kappa", 10_000_000), ("gamma", 500_000)];
    compare("delay_aimd", &given, |conn| {
        let mut aimd = DelayAimd::new(conn);
        change(&mut aimd);
        aimd
    })
}

#[test]
fn agrees() {
    compared(|_| {}).assert_agrees(50);
}

#[test]
fn wrong_constants_show() {
    compared(|aimd| aimd.delta = 0.89).assert_reports("delta");
    compared(|aimd| aimd.gamma = 0.51).assert_reports("gamma");
    compared(|aimd| aimd.a = 0.02).assert_reports("the decay of RTTmax");
    compared(|aimd| aimd.kappa = 11.0).assert_reports("kappa");
    compared(|aimd| aimd.quadratic = 0.5).assert_reports("the quadratic term");
}
