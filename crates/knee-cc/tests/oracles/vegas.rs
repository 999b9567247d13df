//! Vegas: Brakmo, Peterson, IEEE JSAC 13(8), 1995, with alpha, beta, gamma of 1, 3, 1 packets as in
//! Fig. 1 of Leith et al., PFLDnet 2007; interpretations VG-a to VG-c of
//! docs/evidence/interpretations/vegas.md.

use crate::drive::{
    Comparison, Decision, Oracle, Round, Rtts, compare, newreno, newreno_loss, position_pkts,
};
use knee_cc::{Ack, Conn};

struct Vegas {
    alpha_pkts: f64,
    beta_pkts: f64,
    gamma_pkts: f64,
    rtt: Rtts,
    round: Round,
    round_ended: bool,
    sum_us: f64,
    samples: f64,
    /// True if the latest round had a sample; the mean RTT of the latest that had.
    measured: bool,
    mean_us: f64,
    growing: bool,
}

impl Vegas {
    fn new(conn: &Conn) -> Self {
        Self {
            alpha_pkts: 1.0,
            beta_pkts: 3.0,
            gamma_pkts: 1.0,
            rtt: Rtts::default(),
            round: Round::new(conn),
            round_ended: false,
            sum_us: 0.0,
            samples: 0.0,
            measured: false,
            mean_us: 1.0,
            growing: false,
        }
    }

    /// A smaller window; None where a threshold is within 1/256 us of the RTT. `Ok`: the window
    /// stays, and may grow.
    fn at_end_of_round(&mut self, conn: &Conn) -> Option<Result<(), Decision>> {
        let cwnd = f64::from(conn.cwnd_pkts);
        let base_us = self.rtt.min_us.unwrap_or(0.0);
        // diff = (expected - actual) baseRTT, expected = cwnd / baseRTT, actual = cwnd / RTT.
        let diff = cwnd * (1.0 - base_us / self.mean_us);
        let thresholds = [self.alpha_pkts, self.beta_pkts, self.gamma_pkts];
        let resolution = cwnd / (256.0 * self.mean_us) + 1e-9;
        if self.measured && thresholds.iter().any(|t| (diff - t).abs() <= resolution) {
            return None;
        }
        let in_slow_start = conn.cwnd_pkts < conn.ssthresh_pkts;
        if in_slow_start && self.measured && diff > self.gamma_pkts {
            self.growing = false;
            // VG-a: the packets that the path carried, and one more.
            let exact = cwnd * base_us / self.mean_us;
            let target = (exact.floor() + 1.0).max(2.0);
            let on_whole = (exact - exact.round()).abs() <= resolution;
            let within_pkts = if on_whole { 1.0 } else { 1e-9 };
            return Some(Err(Decision {
                window_pkts: target.min(cwnd),
                within_pkts,
                ssthresh_pkts: Some((target, within_pkts)),
            }));
        }
        if in_slow_start {
            self.growing = !self.growing; // VG-c: in every other round
            return Some(Ok(()));
        }
        self.growing = !self.measured || diff < self.alpha_pkts;
        if self.measured && diff > self.beta_pkts {
            return Some(Err(Decision::exact((cwnd - 1.0).max(2.0))));
        }
        Some(Ok(()))
    }
}

impl Oracle for Vegas {
    fn measure(&mut self, conn: &Conn, ack: &Ack) {
        if ack.rtt_us >= 0 {
            self.rtt.sample(f64::from(ack.rtt_us));
            self.sum_us += f64::from(ack.rtt_us);
            self.samples += 1.0;
        }
        self.round_ended = self.round.ended(conn);
        if self.round_ended {
            self.measured = self.samples > 0.0;
            if self.measured {
                self.mean_us = self.sum_us / self.samples; // VG-b
            }
            (self.sum_us, self.samples) = (0.0, 0.0);
        }
    }

    fn decide(&mut self, conn: &Conn, ack: &Ack) -> Option<Decision> {
        if self.round_ended
            && let Err(decision) = self.at_end_of_round(conn)?
        {
            return Some(decision);
        }
        if self.growing {
            return Some(newreno(conn, ack)); // one packet more over the next round
        }
        Some(Decision::exact(position_pkts(conn)))
    }

    fn taken(&mut self, _after: &Conn, observed: [u32; 4]) {
        self.growing = observed[3] != 0;
    }

    fn loss(&mut self, conn: &Conn) -> (f64, f64) {
        (newreno_loss(conn), 0.0)
    }

    fn recovered(&mut self, conn: &Conn) {
        // A round that a recovery overlapped decides nothing.
        self.round = Round::new(conn);
        (self.round_ended, self.growing) = (false, false);
        (self.sum_us, self.samples) = (0.0, 0.0);
    }

    fn observed(&self, values: [u32; 4]) -> bool {
        !self.round_ended || (values[3] != 0) == self.growing
    }
}

fn compared(change: impl Fn(&mut Vegas)) -> Comparison {
    compare("vegas", &[("delack_filter", 0)], |conn| {
        let mut vegas = Vegas::new(conn);
        change(&mut vegas);
        vegas
    })
}

#[test]
fn agrees() {
    compared(|_| {}).assert_agrees(100);
}

#[test]
fn wrong_constants_show() {
    compared(|vegas| vegas.alpha_pkts = 1.1).assert_reports("alpha");
    compared(|vegas| vegas.beta_pkts = 3.2).assert_reports("beta");
    compared(|vegas| vegas.gamma_pkts = 1.2).assert_reports("gamma");
}
