//! CUBIC: RFC 9438, section 4, with interpretations CU-a to CU-j of docs/evidence/interpretations/cubic.md.

use crate::drive::{
    Comparison, Decision, Growth, Oracle, at, compare, position_pkts, reduced, slow_start,
};
use knee_cc::{Ack, Conn};

struct Cubic {
    c: f64,
    beta: f64,
    /// Factor of alpha_cubic.
    reno: f64,
    /// Wmax; None: undefined.
    wmax: Option<f64>,
    k_s: f64,
    /// Start of the stage of congestion avoidance, and its latest ACK.
    epoch_us: Option<u64>,
    latest_us: u64,
    w_est: f64,
    cwnd_prior: f64,
    growth: Growth,
    slack_pkts: f64,
}

/// t, K and RTT are rounded down to 2^-16 s.
const TIME_RESOLUTION_S: f64 = 3.0 / 65_536.0;

impl Cubic {
    fn new(conn: &Conn) -> Self {
        Self {
            c: 0.4,
            beta: 0.7,
            reno: 3.0,
            wmax: None,
            k_s: 0.0,
            epoch_us: None,
            latest_us: conn.now_us,
            w_est: 0.0,
            cwnd_prior: f64::from(conn.cwnd_pkts),
            growth: Growth::default(),
            slack_pkts: 0.0,
        }
    }

    /// Section 4.2 eq. 1, and how far rounding of t, K and RTT takes it.
    fn w_cubic(&self, t_s: f64) -> (f64, f64) {
        let (from_k, wmax) = (t_s - self.k_s, self.wmax.unwrap_or(0.0));
        let slope = 3.0 * self.c * (from_k.abs() + TIME_RESOLUTION_S).powi(2);
        (self.c * from_k.powi(3) + wmax, slope * TIME_RESOLUTION_S + 4.0 / 65_536.0)
    }

    fn start_stage(&mut self, conn: &Conn) {
        let cwnd = f64::from(conn.cwnd_pkts);
        match self.wmax {
            Some(wmax) if wmax > cwnd => self.k_s = ((wmax - cwnd) / self.c).cbrt(), // eq. 2
            _ => (self.wmax, self.k_s) = (Some(cwnd), 0.0), // section 4.8; CU-f
        }
        self.epoch_us = Some(conn.now_us);
        self.w_est = cwnd; // section 4.3
        self.growth.clear();
        self.slack_pkts = 0.0;
    }

    fn avoid(&mut self, conn: &Conn, packets: f64) -> Option<Decision> {
        let cwnd = f64::from(conn.cwnd_pkts);
        let stays = Decision::exact(cwnd + f64::from(conn.cwnd_cnt) / cwnd);
        match &mut self.epoch_us {
            None if conn.cwnd_limited == 0 => return Some(stays),
            None => self.start_stage(conn),
            Some(epoch_us) if conn.cwnd_limited == 0 => {
                *epoch_us += conn.now_us - self.latest_us; // section 5.8
                self.latest_us = conn.now_us;
                return Some(stays);
            }
            Some(_) => {}
        }
        self.latest_us = conn.now_us;
        let packets = packets.min(cwnd);
        // Section 4.3 eq. 4.
        let alpha = if self.w_est >= self.cwnd_prior {
            1.0
        } else {
            self.reno * (1.0 - self.beta) / (1.0 + self.beta)
        };
        self.w_est += alpha * packets / cwnd;
        let t_s = (conn.now_us - self.epoch_us.unwrap_or(conn.now_us)) as f64 / 1e6;
        let (now, within) = self.w_cubic(t_s);
        if (now - self.w_est).abs() <= within {
            return None;
        }
        if now < self.w_est {
            let window = cwnd.max(self.w_est.floor());
            let on_whole = (self.w_est - self.w_est.round()).abs() < 1e-6;
            return Some(Decision {
                window_pkts: window + f64::from(conn.cwnd_cnt) / window,
                within_pkts: if on_whole { 1.0 } else { 1e-9 },
                ssthresh_pkts: None,
            });
        }
        let (target, within) = self.w_cubic(t_s + f64::from(conn.srtt_us) / 1e6);
        let target = target.clamp(cwnd, 1.5 * cwnd); // section 4.2
        self.slack_pkts += packets * within;
        // cwnd += (target - cwnd) / cwnd: section 4.4.
        Some(self.growth.grow(conn, target - cwnd, packets, self.slack_pkts))
    }
}

impl Oracle for Cubic {
    fn measure(&mut self, _conn: &Conn, _ack: &Ack) {}

    fn decide(&mut self, conn: &Conn, ack: &Ack) -> Option<Decision> {
        let packets = f64::from(ack.acked_pkts);
        if conn.cwnd_pkts >= conn.ssthresh_pkts {
            return self.avoid(conn, packets);
        }
        self.epoch_us = None; // after slow start a new stage begins (CU-e)
        if conn.cwnd_limited == 0 {
            return Some(Decision::exact(position_pkts(conn)));
        }
        let (cwnd, left) = slow_start(conn, packets); // section 4.10
        if cwnd >= f64::from(conn.ssthresh_pkts) && left > 0.0 {
            return self.avoid(&at(conn, cwnd), left);
        }
        Some(Decision::exact(cwnd + f64::from(conn.cwnd_cnt) / cwnd))
    }

    fn loss(&mut self, conn: &Conn) -> (f64, f64) {
        let cwnd = f64::from(conn.cwnd_pkts);
        let flight = f64::from(conn.cwnd_pkts.min(conn.outstanding_pkts));
        self.wmax = Some(match self.wmax {
            // Section 4.7, whole packets.
            Some(wmax) if cwnd < wmax => (cwnd * (1.0 + self.beta) / 2.0 + 1e-9).floor(),
            _ => cwnd,
        });
        self.cwnd_prior = cwnd;
        self.epoch_us = None;
        let down = reduced(self.beta * flight + 1e-9, 1e-12); // section 4.6
        (down.window_pkts, 0.0)
    }

    fn observed(&self, values: [u32; 4]) -> bool {
        let wmax = f64::from(values[0]);
        let k_us = f64::from(values[1]);
        self.epoch_us.is_none()
            || (self.wmax == Some(wmax)
                && (k_us - self.k_s * 1e6).abs() <= 17.0 + self.k_s // 2^-16 s, a part in 10^6
                && (f64::from(values[2]) - (self.w_est - 0.5)).abs() <= 0.5001)
    }
}

fn compared(change: impl Fn(&mut Cubic)) -> Comparison {
    compare("cubic", &[], |conn| {
        let mut cubic = Cubic::new(conn);
        change(&mut cubic);
        cubic
    })
}

#[test]
fn agrees() {
    compared(|_| {}).assert_agrees(0);
}

#[test]
fn wrong_constants_show() {
    compared(|cubic| cubic.c = 0.41).assert_reports("C");
    compared(|cubic| cubic.beta = 0.71).assert_reports("beta");
    compared(|cubic| cubic.reno = 3.1).assert_reports("alpha_cubic");
}
