//! F-TCP: Sansa-Otim, Rai, van der Hulst, ICN 2010, Algorithm 1, eq. 1 and Fig. 2, over ABSE (Wang
//! et al., Globecom 2002) with samples of the last two ACKs; interpretations FT-b to FT-n and AB-a to AB-f
//! of docs/evidence/interpretations/ftcp.md. The adaptive sampling interval is in ../abse.rs.

use crate::drive::{
    Comparison, Decision, Oracle, backed_off, compare, happens, newreno, newreno_loss, reduced,
};
use knee_cc::{Ack, Conn};
use std::collections::VecDeque;

struct Ftcp {
    tau_const_s: Option<f64>,
    /// Relative error of BE: its rounding, or the effect of 11 bits of U on tau.
    resolution: f64,
    tmin_us: f64,
    tmax_us: f64,
    pmax: f64,
    srtt_weight: f64,
    beta_loss: f64,
    beta_delay: f64,
    n: f64,
    after_delay: bool,
    rtt_min_us: Option<f64>,
    /// S, of which q is the part above RTTmin.
    slow_us: Option<f64>,
    latest_us: Option<u64>,
    s: Option<f64>,
    /// The ten most recent U, newest first.
    u: VecDeque<f64>,
    be: f64,
    gate_pos: u32,
    /// ssthresh = previous BE_cwnd, by this ACK. Some(None): too close to call.
    peak: Option<Option<f64>>,
}

impl Ftcp {
    fn new(conn: &Conn, tau_const_s: Option<f64>) -> Self {
        Self {
            tau_const_s,
            resolution: if tau_const_s.is_some() { 1e-6 } else { 2e-3 },
            tmin_us: 5_000.0,
            tmax_us: 10_000.0,
            pmax: 0.05,
            srtt_weight: 0.99,
            beta_loss: 0.6,
            beta_delay: 0.8,
            n: 10.0,
            after_delay: false,
            rtt_min_us: None,
            slow_us: None,
            latest_us: None,
            s: None,
            u: VecDeque::from(vec![0.0; 10]),
            be: 0.0,
            gate_pos: conn.ack_pos,
            peak: None,
        }
    }

    /// ABSE for one ACK. Gives s, if there was a sample.
    fn estimate(&mut self, conn: &Conn, ack: &Ack) -> Option<f64> {
        if conn.srtt_us == 0 {
            return None; // AB-e
        }
        let rtt_s = f64::from(conn.srtt_us) / 1e6;
        let latest_us = self.latest_us.replace(conn.now_us)?;
        let dt_s = (conn.now_us - latest_us) as f64 / 1e6;
        if dt_s > 2.0 * self.tau_const_s.unwrap_or(0.0).max(rtt_s) {
            return None; // AB-c: a pause
        }
        let s = f64::from(ack.acked_pkts) / dt_s; // the last two ACKs
        if let Some(before) = self.s {
            let beta = if self.after_delay { self.beta_delay } else { self.beta_loss };
            self.u.push_front(beta * self.u[0] + (1.0 - beta) * (s - before).abs()); // eq. 1
            self.u.truncate(10);
        }
        self.s = Some(s);
        let u_max = self.u.iter().fold(0.0_f64, |max, u| max.max(*u));
        let unstable = if u_max > 0.0 { self.u[0] / u_max } else { 0.0 };
        let tau_s = self.tau_const_s.unwrap_or(rtt_s * (1.0 + self.n * unstable));
        let a = ((2.0 * tau_s - dt_s) / (2.0 * tau_s + dt_s)).max(0.0);
        self.be = a * self.be + (1.0 - a) * s;
        Some(s)
    }

    /// BE RTTmin, packets.
    fn be_cwnd(&self) -> f64 {
        self.be * self.rtt_min_us.unwrap_or(0.0) / 1e6
    }

    /// Accepted difference of the C: it has 1/256 packet, of 1/256 packet/s.
    fn be_cwnd_within(&self, be_cwnd: f64) -> f64 {
        let rtt_min_s = self.rtt_min_us.unwrap_or(0.0) / 1e6;
        self.resolution * be_cwnd + (1.0 + rtt_min_s) / 256.0
    }

    /// BE_cwnd as a window.
    fn be_window(&self) -> Decision {
        reduced(self.be_cwnd(), self.be_cwnd_within(self.be_cwnd()))
    }

    /// Fig. 2a.
    fn f(&self, q_us: f64) -> f64 {
        match q_us {
            q if q <= self.tmin_us => 0.0,
            q if q <= self.tmax_us => {
                self.pmax * (q - self.tmin_us) / (self.tmax_us - self.tmin_us)
            }
            q => (self.pmax + (1.0 - self.pmax) * (q - self.tmax_us) / self.tmax_us).min(1.0),
        }
    }

    /// Returns whether this ACK responds to delay; None: too close to call.
    fn responds(&self, conn: &Conn, ack: &Ack) -> Option<bool> {
        let waits = (self.gate_pos.wrapping_sub(conn.ack_pos) as i32) > 0;
        let (Some(slow_us), Some(min_us)) = (self.slow_us, self.rtt_min_us) else {
            return Some(false);
        };
        if waits || self.be == 0.0 {
            return Some(false);
        }
        // S is rounded to whole microseconds.
        let q_us = (slow_us - min_us).max(0.0);
        let (low, high) = (self.f(q_us - 1.0), self.f(q_us + 1.0));
        let draw = f64::from(ack.random) / 4_294_967_296.0;
        if draw >= high || high == 0.0 {
            return Some(false);
        }
        let window = f64::from(conn.cwnd_pkts);
        let within = self.be_cwnd_within(self.be_cwnd());
        let share = |more: f64| (self.be_cwnd() + more).floor().max(2.0);
        if window <= share(-within) {
            return Some(false); // Fig. 2b: p = 0 up to BE_cwnd
        }
        if window <= share(within) || (low < 1.0 && draw > low) {
            return None;
        }
        happens(ack.random, low)
    }
}

impl Oracle for Ftcp {
    fn measure(&mut self, conn: &Conn, ack: &Ack) {
        let before = (self.be, self.be_cwnd());
        if ack.rtt_us >= 0 {
            let r = f64::from(ack.rtt_us);
            self.rtt_min_us = Some(self.rtt_min_us.map_or(r, |min| min.min(r)));
            let weight = self.srtt_weight;
            self.slow_us = Some(self.slow_us.map_or(r, |s| weight * s + (1.0 - weight) * r)); // FT-g
        }
        let s = self.estimate(conn, ack);
        if (self.gate_pos.wrapping_sub(conn.ack_pos) as i32) < 0 {
            self.gate_pos = conn.ack_pos;
        }
        // Algorithm 1: a fall of BE_cwnd, however small (FT-b), not while the stack repairs.
        self.peak = None;
        if conn.phase == knee_cc::Phase::Recovery as u8 || before.0 == 0.0 {
            return;
        }
        let close = s.is_some_and(|s| (s - before.0).abs() <= 4.0 * self.resolution * before.0);
        if self.be_cwnd() < before.1 || close {
            self.peak = Some((!close).then_some(before.1));
        }
    }

    fn decide(&mut self, conn: &Conn, ack: &Ack) -> Option<Decision> {
        let mut conn = *conn;
        let mut threshold = None;
        if let Some(peak) = self.peak {
            let down = reduced(peak?, self.be_cwnd_within(peak?));
            threshold = Some((down.window_pkts, down.within_pkts));
            if down.within_pkts >= 1.0 {
                return None;
            }
            conn.ssthresh_pkts = down.window_pkts as u32; // ssthresh = previous BE_cwnd
        }
        if conn.cwnd_pkts >= conn.ssthresh_pkts && self.responds(&conn, ack)? {
            // cwnd = BE_cwnd
            return Some(Decision { ssthresh_pkts: threshold, ..self.be_window() });
        }
        Some(Decision { ssthresh_pkts: threshold, ..newreno(&conn, ack) }) // alpha = 1
    }

    fn taken(&mut self, after: &Conn, _observed: [u32; 4]) {
        if backed_off(after) {
            self.gate_pos = after.snd_pos; // FT-k
            self.after_delay = true; // section III-A
        }
    }

    fn loss(&mut self, conn: &Conn) -> (f64, f64) {
        self.after_delay = false;
        if self.be == 0.0 {
            return (newreno_loss(conn), 0.0); // FT-n
        }
        let down = self.be_window();
        (down.window_pkts, down.within_pkts) // cwnd = ssthresh = BE_cwnd
    }

    fn observed(&self, values: [u32; 4]) -> bool {
        (f64::from(values[0]) - self.be).abs() <= 0.5 + self.resolution * self.be
    }
}

fn compared(tau_const_us: u64, change: impl Fn(&mut Ftcp)) -> Comparison {
    let given = [("sampling", 1), ("tau_const", tau_const_us)];
    compare("ftcp", &given, |conn| {
        let tau_s = (tau_const_us != 0).then_some(tau_const_us as f64 / 1e6);
        let mut ftcp = Ftcp::new(conn, tau_s);
        change(&mut ftcp);
        ftcp
    })
}

#[test]
fn agrees() {
    for tau_const_us in [100_000, 1_000_000, 0] {
        compared(tau_const_us, |_| {}).assert_agrees(50);
    }
}

#[test]
fn wrong_constants_show() {
    compared(1_000_000, |ftcp| ftcp.tau_const_s = Some(1.01)).assert_reports("tau");
    compared(100_000, |ftcp| ftcp.pmax = 0.06).assert_reports("pmax");
    compared(100_000, |ftcp| ftcp.srtt_weight = 0.98).assert_reports("the weight of S");
    compared(0, |ftcp| ftcp.n = 9.0).assert_reports("N");
    compared(0, |ftcp| ftcp.beta_delay = 0.6).assert_reports("beta after a response to delay");
}
