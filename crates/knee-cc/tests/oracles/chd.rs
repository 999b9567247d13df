//! CHD: Hayes, Armitage, "Improved coexistence and loss tolerance for delay based TCP congestion
//! control", LCN 2010, eqs. 1 to 4 and Fig. 2; interpretations CHD-a to CHD-i of
//! docs/evidence/interpretations/chd.md.

use crate::drive::{
    Comparison, Decision, Oracle, Round, Rtts, compare, happens, position_pkts, reduced, slow_start,
};
use crate::hd::Backoff;
use knee_cc::{Ack, Conn};

struct Chd {
    g: Backoff,
    /// The part of the shadow window that a loss leaves.
    shadow_beta: f64,
    rtt: Rtts,
    round: Round,
    round_ended: bool,
    /// Largest delay of the round that is running, if it has a sample.
    h_now_us: Option<f64>,
    /// h_r: of the last completed round.
    h_us: f64,
    /// h_b: h_r at the last delay backoff.
    h_backoff_us: f64,
    /// s; 0: inactive.
    shadow_pkts: f64,
}

impl Chd {
    /// Section V: qmin 5 ms, qth 30 ms, pmax 0.25 per RTT.
    fn new(conn: &Conn) -> Self {
        Self {
            g: Backoff { qmin_us: 5_000.0, qth_us: 30_000.0, pmax: 0.25 },
            shadow_beta: 0.5,
            rtt: Rtts::default(),
            round: Round::new(conn),
            round_ended: false,
            h_now_us: None,
            h_us: 0.0,
            h_backoff_us: 0.0,
            shadow_pkts: 0.0,
        }
    }

    /// eq. 3, with the window before the reduction.
    fn shadow_at_backoff(&mut self, w: f64) {
        let region_a_rising = self.h_us < self.g.qth_us && self.h_us > self.h_backoff_us;
        let region_b = self.h_us >= self.g.qth_us;
        self.shadow_pkts = if region_a_rising || region_b { self.shadow_pkts.max(w) } else { 0.0 };
    }
}

impl Oracle for Chd {
    fn measure(&mut self, conn: &Conn, ack: &Ack) {
        if ack.rtt_us >= 0 {
            self.rtt.sample(f64::from(ack.rtt_us));
            // Section IV-A: the largest delay of the round.
            self.h_now_us = Some(self.h_now_us.unwrap_or(0.0).max(self.rtt.q_us));
        }
        self.round_ended = self.round.ended(conn);
        if self.round_ended {
            self.h_us = self.h_now_us.take().unwrap_or(self.h_us);
        }
    }

    fn decide(&mut self, conn: &Conn, ack: &Ack) -> Option<Decision> {
        let w = f64::from(conn.cwnd_pkts);
        if self.round_ended && self.rtt.min_us.is_some() {
            let g = self.g.probability(self.h_us, self.rtt.range_us()); // eq. 1, at h_r
            let happens = happens(ack.random, g);
            if happens != Some(false) {
                self.shadow_at_backoff(w); // eq. 3
                self.h_backoff_us = self.h_us;
                let halved = reduced(w / 2.0, 0.0); // eq. 2, first case
                return happens.map(|_| Decision {
                    ssthresh_pkts: Some((halved.window_pkts, 0.0)),
                    within_pkts: 1e-9,
                    ..halved
                });
            }
        }
        let cnt = position_pkts(conn) - w;
        if conn.cwnd_limited == 0 {
            return Some(Decision::exact(w + cnt));
        }
        let grown = if w < f64::from(conn.ssthresh_pkts) {
            slow_start(conn, f64::from(ack.acked_pkts)).0 - w
        } else {
            f64::from(u8::from(self.round_ended)) // eq. 2, second case; Fig. 2: 1 packet per RTT
        };
        if self.shadow_pkts > 0.0 {
            self.shadow_pkts += grown; // Fig. 2: s grows as NewReno's window
        }
        Some(Decision::exact(w + grown + cnt * w / (w + grown)))
    }

    fn loss(&mut self, conn: &Conn) -> (f64, f64) {
        let w = f64::from(conn.cwnd_pkts);
        let larger = self.shadow_pkts.max(w);
        let h = self.h_us.max(self.h_now_us.unwrap_or(0.0)); // reading CHD-e
        if self.shadow_pkts > 0.0 {
            // Reading CHD-d, whole packets.
            self.shadow_pkts = (self.shadow_pkts * self.shadow_beta).floor().max(2.0);
        }
        if h > self.g.qth_us {
            return ((larger / 2.0).floor().max(2.0), 0.0); // eq. 4, region B
        }
        (w.max(2.0), 0.0) // eq. 4, region A: the loss is tolerated
    }

    fn recovered(&mut self, conn: &Conn) {
        // Section V-A: no growth for the round of a repair.
        self.round = Round::new(conn);
        (self.round_ended, self.h_now_us) = (false, None);
    }

    fn observed(&self, values: [u32; 4]) -> bool {
        f64::from(values[0]) == self.h_us && f64::from(values[2]) == self.shadow_pkts
    }
}

fn compared(change: impl Fn(&mut Chd)) -> Comparison {
    let given = [("delack_filter", 0), ("pmax", 250_000)];
    compare("chd", &given, |conn| {
        let mut chd = Chd::new(conn);
        change(&mut chd);
        chd
    })
}

#[test]
fn agrees() {
    compared(|_| {}).assert_agrees(100);
}

#[test]
fn wrong_constants_show() {
    compared(|chd| chd.g.pmax = 0.27).assert_reports("pmax");
    compared(|chd| chd.g.qmin_us = 6_000.0).assert_reports("qmin");
    compared(|chd| chd.shadow_beta = 0.6).assert_reports("halving of the shadow window");
}
