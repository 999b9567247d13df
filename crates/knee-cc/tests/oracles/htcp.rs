//! H-TCP: Armitage et al., ACM CCR 38(3), 2008, eqs. 1 to 11, with interpretations HT-a, HT-b, HT-e and
//! HT-h of docs/evidence/interpretations/htcp.md.

use crate::drive::{
    Comparison, Decision, Growth, Oracle, Rtts, at, compare, position_pkts, slow_start,
};
use knee_cc::{Ack, Conn};

struct Htcp {
    extensions: bool,
    delta_l_s: f64,
    quadratic: f64,
    fade: f64,
    /// Last congestion event, or the start.
    event_us: u64,
    rtt: Rtts,
    /// RTT updates, up to eight.
    updates: u32,
    events: u32,
    growth: Growth,
    /// Growth that rounding may have lost since the last event, packets.
    slack_pkts: f64,
}

/// alpha is rounded down to 2^-16 at each of up to three products.
const ALPHA_RESOLUTION: f64 = 3.0 / 65_536.0;

impl Htcp {
    fn new(conn: &Conn, extensions: bool) -> Self {
        Self {
            extensions,
            delta_l_s: 1.0,
            quadratic: 0.25,
            fade: 7.0 / 8.0,
            event_us: conn.now_us,
            rtt: Rtts::default(),
            updates: 0,
            events: 0,
            growth: Growth::default(),
            slack_pkts: 0.0,
        }
    }

    fn beta(&self) -> f64 {
        match self.rtt.min_us {
            // eqs. 8 and 11; the first event halves.
            Some(min) if self.extensions && self.events > 0 => {
                (min / self.rtt.max_us).clamp(0.5, 0.8)
            }
            _ => 0.5,
        }
    }

    fn alpha(&self, now_us: u64) -> f64 {
        let x = (now_us - self.event_us) as f64 / 1e6 - self.delta_l_s;
        let raw = if x <= 0.0 { 1.0 } else { 1.0 + 10.0 * x + self.quadratic * x * x }; // eq. 2
        if !self.extensions {
            return raw;
        }
        let rho = match self.rtt.min_us {
            Some(min) => ((min + self.rtt.q_us) / 100_000.0).clamp(0.1, 2.0), // eqs. 3 and 4
            None => 1.0,
        };
        (2.0 * (1.0 - self.beta()) * rho * raw).max(1.0) // eqs. 5 and 9 together
    }
}

impl Oracle for Htcp {
    fn measure(&mut self, conn: &Conn, ack: &Ack) {
        if ack.rtt_us < 0 || conn.srtt_us == 0 {
            return;
        }
        self.updates += 1;
        if self.updates >= 8 {
            self.rtt.sample(f64::from(conn.srtt_us)); // eqs. 6 and 7; section 4.3
        }
    }

    fn decide(&mut self, conn: &Conn, ack: &Ack) -> Option<Decision> {
        if conn.cwnd_limited == 0 {
            return Some(Decision { within_pkts: 1e-9, ..Decision::exact(position_pkts(conn)) });
        }
        let (cwnd, left) = slow_start(conn, f64::from(ack.acked_pkts)); // section 4.1
        if cwnd < f64::from(conn.ssthresh_pkts) || left == 0.0 {
            return Some(Decision::exact(cwnd + f64::from(conn.cwnd_cnt) / cwnd));
        }
        let alpha = self.alpha(conn.now_us);
        // rho and beta are rounded down to 2^-24.
        self.slack_pkts += left * (ALPHA_RESOLUTION + alpha * 4.0 / 16_777_216.0);
        Some(self.growth.grow(&at(conn, cwnd), alpha, left, self.slack_pkts)) // eq. 1
    }

    fn loss(&mut self, conn: &Conn) -> (f64, f64) {
        let cwnd = f64::from(conn.cwnd_pkts);
        let expected = (self.beta() * cwnd).max(2.0); // eq. 11
        self.events += 1;
        self.event_us = conn.now_us; // section 4.5: before recovery
        self.growth.clear();
        self.slack_pkts = 0.0;
        if let Some(min) = self.rtt.min_us {
            self.rtt.max_us = min + self.fade * self.rtt.range_us(); // eq. 10
        }
        // Whole packets, rounded down; RTTmax loses less than a microsecond at each event.
        (expected - 0.5, 0.5 + cwnd * 1e-4)
    }
}

fn compared(extensions: bool, change: impl Fn(&mut Htcp)) -> Comparison {
    let on = u64::from(extensions);
    let given = [("rtt_scaling", on), ("adaptive_backoff", on), ("delack_filter", 0)];
    compare("htcp", &given, |conn| {
        let mut htcp = Htcp::new(conn, extensions);
        change(&mut htcp);
        htcp
    })
}

#[test]
fn agrees() {
    for extensions in [false, true] {
        compared(extensions, |_| {}).assert_agrees(0);
    }
}

#[test]
fn wrong_constants_show() {
    compared(false, |htcp| htcp.quadratic = 0.5).assert_reports("the quadratic term");
    compared(false, |htcp| htcp.delta_l_s = 1.02).assert_reports("delta_l");
    compared(true, |htcp| htcp.fade = 0.95).assert_reports("the fading of RTTmax");
}
