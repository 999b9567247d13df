//! HD: Budzisz et al., IEEE Communications Letters 13(7), 2009 ("letter"), Algorithm 1 and Fig. 1;
//! restated in section III of Hayes, Armitage, LCN 2010 ("CHD paper").

use crate::drive::{
    Comparison, Decision, Oracle, Rtts, backed_off, compare, happens, newreno, newreno_loss,
    reduced,
};
use knee_cc::{Ack, Conn};

/// g(q) of the letter's Fig. 1 (CHD paper Fig. 1). Microseconds.
pub struct Backoff {
    pub qmin_us: f64,
    pub qth_us: f64,
    pub pmax: f64,
}

impl Backoff {
    pub fn probability(&self, q: f64, qmax: f64) -> f64 {
        let (qmin, qth) = (self.qmin_us, self.qth_us);
        match q {
            _ if q <= qmin => 0.0,
            _ if q < qth => self.pmax * (q - qmin) / (qth - qmin), // region A
            _ if qmax <= qth => self.pmax,                         // nothing seen beyond qth yet
            _ if q < qmax => self.pmax * (qmax - q) / (qmax - qth), // region B
            _ => 0.0,
        }
    }
}

struct Hd {
    g: Backoff,
    once_per_round: bool,
    rtt: Rtts,
    /// No backoff until this position is acknowledged.
    hold_pos: Option<u32>,
}

impl Hd {
    /// CHD paper section V.
    fn new(once_per_round: bool) -> Self {
        let g = Backoff { qmin_us: 5_000.0, qth_us: 30_000.0, pmax: 0.02 };
        Self { g, once_per_round, rtt: Rtts::default(), hold_pos: None }
    }
}

impl Oracle for Hd {
    fn measure(&mut self, conn: &Conn, ack: &Ack) {
        if ack.rtt_us >= 0 {
            self.rtt.sample(f64::from(ack.rtt_us)); // q = r - RTTmin
        }
        if self.hold_pos.is_some_and(|pos| (pos.wrapping_sub(conn.ack_pos) as i32) <= 0) {
            self.hold_pos = None;
        }
    }

    fn decide(&mut self, conn: &Conn, ack: &Ack) -> Option<Decision> {
        let g = self.g.probability(self.rtt.q_us, self.rtt.range_us());
        let may_test = self.rtt.min_us.is_some() && self.hold_pos.is_none();
        if may_test && happens(ack.random, g)? {
            // Algorithm 1: cwnd <- cwnd / 2; reading HD-d: ssthresh is the new window.
            let halved = reduced(f64::from(conn.cwnd_pkts) / 2.0, 0.0);
            return Some(Decision {
                ssthresh_pkts: Some((halved.window_pkts, 0.0)),
                within_pkts: 1e-9,
                ..halved
            });
        }
        Some(newreno(conn, ack)) // Algorithm 1: cwnd <- cwnd + 1 / cwnd
    }

    fn taken(&mut self, after: &Conn, _observed: [u32; 4]) {
        if self.once_per_round && backed_off(after) {
            self.hold_pos = Some(after.snd_pos); // reading HD-a
        }
    }

    fn loss(&mut self, conn: &Conn) -> (f64, f64) {
        (newreno_loss(conn), 0.0) // section III: conventional AIMD on loss
    }
}

fn compared(holdoff: u64, change: impl Fn(&mut Hd)) -> Comparison {
    let given = [("delack_filter", 0), ("holdoff", holdoff), ("pmax", 20_000)];
    compare("hd", &given, |_| {
        let mut hd = Hd::new(holdoff == 1);
        change(&mut hd);
        hd
    })
}

#[test]
fn agrees() {
    for holdoff in [0, 1] {
        compared(holdoff, |_| {}).assert_agrees(100);
    }
}

#[test]
fn wrong_constants_show() {
    compared(0, |hd| hd.g.pmax = 0.0205).assert_reports("pmax");
    compared(0, |hd| hd.g.qth_us = 30_500.0).assert_reports("qth");
    compared(0, |hd| hd.once_per_round = true).assert_reports("the hold-off");
}
