//! The limit cycle of Ebb in low delay; the equations are those of docs/reference/algorithms/ebb.md.

use crate::{Error, check, check_positive};

/// Flows of Ebb that share one link and drain together, at level 0.
///
/// Packets are a fluid, and each flow is served at its share of the link, `C/N`. Window and eq. 10 limit
/// sending; the queue is the sent packets that have not left; an ACK comes a propagation RTT after its packet
/// has left. From the ACKs a flow derives the same quantities as the algorithm: lanes of eight packets, round
/// trips, W′, the test. So there is no jitter, no packet that is late because windows are whole numbers, and
/// no flow that differs from the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EbbCycle {
    /// Mean time between drains, s. Infinite where fewer than two were seen.
    pub period_s: f64,
    /// Mean queueing delay, s.
    pub mean_queue_s: f64,
    /// Fraction of the tests that failed.
    pub failed: f64,
}

/// Steps of a propagation RTT.
const STEPS_PER_RTT: usize = 200;
/// Time left out at the start, and time observed, s. Counted in round trips where those are long.
const SETTLE_S: f64 = 20.0;
const OBSERVED_S: f64 = 40.0;
const SETTLE_RTTS: f64 = 200.0;

/// Parameters of Ebb, at their defaults.
const THETA_S: f64 = 0.01;
const PACKET: f64 = 1.25;
const DRAIN: f64 = 0.97;
const GAIN: f64 = 0.625;
const SLOW_PPS: f64 = 400.0;
const YIELD: f64 = 0.6;
const PATIENCE: f64 = 8.0;
const PACING: f64 = 1.25;
/// Most round trips with an empty queue before growth doubles.
const PATIENCE_MAX: f64 = 200.0;
/// Packets of a lane, and rounds of a test, after one that failed, and after fast growth.
const LANE_PKTS: f64 = 8.0;
const TEST_ROUNDS: u32 = 4;
const HOLD_ROUNDS: u32 = 2;
const SETTLE_ROUNDS: u32 = 2;

impl EbbCycle {
    /// The cycle of `flows` flows on a link of `capacity_pps` packets per second, whose RTT without
    /// a queue is `rtt_s`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a value out of its range: windows without a queue are to be 4 to
    /// 100 000 packets.
    pub fn new(capacity_pps: f64, rtt_s: f64, flows: f64) -> Result<Self, Error> {
        check_positive("the capacity in packets/s", capacity_pps)?;
        check((1e-4..=10.0).contains(&rtt_s), "the RTT in s", "0.0001 to 10", rtt_s)?;
        check(flows >= 1.0 && flows.is_finite(), "the number of flows", "at least 1", flows)?;
        let window_pkts = capacity_pps / flows * rtt_s;
        let range = "4 to 100 000";
        check((4.0..=1e5).contains(&window_pkts), "the window in packets", range, window_pkts)?;
        let settle_s = SETTLE_S.max(SETTLE_RTTS * rtt_s);
        let steps_per_s = STEPS_PER_RTT as f64 / rtt_s;
        let settle = (settle_s * steps_per_s) as usize;
        let observed = (OBSERVED_S / SETTLE_S * settle_s * steps_per_s) as usize;
        let mut path = Path::new(capacity_pps / flows, rtt_s);
        let mut flow = Flow::new(window_pkts);
        let (mut drains, mut queue_s) = (Vec::new(), 0.0);
        for step in 0..settle + observed {
            let drained = path.ack().is_some_and(|ack| flow.on_ack(&ack, path.rtt_s));
            path.send(flow.window_pkts, flow.pacing_pps(rtt_s));
            if step >= settle {
                queue_s += path.queue_s();
                if drained {
                    drains.push(step as f64 / steps_per_s);
                }
            } else {
                (flow.ended, flow.failed) = (0, 0);
            }
        }
        let period_s = match drains.as_slice() {
            [first, .., last] => (last - first) / (drains.len() - 1) as f64,
            _ => f64::INFINITY,
        };
        let failed = f64::from(flow.failed) / f64::from(flow.ended.max(1));
        Ok(EbbCycle { period_s, mean_queue_s: queue_s / observed as f64, failed })
    }
}

/// A flow's share of the link: totals of packets at each step.
struct Path {
    share_pps: f64,
    rtt_s: f64,
    step_s: f64,
    sent: Vec<f64>,
    left: Vec<f64>,
    /// Step before which the packet that is acknowledged now was sent.
    of: usize,
}

/// The information in an ACK.
struct Ack {
    acked_pkts: f64,
    /// In all.
    delivered_pkts: f64,
    /// In all, when the sender sends next.
    sent_pkts: f64,
    rtt_s: f64,
    /// Delivered while the packet was on its way.
    sample_pkts: f64,
}

impl Path {
    fn new(share_pps: f64, rtt_s: f64) -> Path {
        let step_s = rtt_s / STEPS_PER_RTT as f64;
        Path { share_pps, rtt_s, step_s, sent: vec![0.0], left: vec![0.0], of: 0 }
    }

    /// Packets acknowledged at a step.
    fn acked(&self, step: usize) -> f64 {
        step.checked_sub(STEPS_PER_RTT).map_or(0.0, |then| self.left[then])
    }

    fn ack(&mut self) -> Option<Ack> {
        let now = self.sent.len();
        let delivered_pkts = self.acked(now);
        let acked_pkts = delivered_pkts - self.acked(now - 1);
        if acked_pkts <= 0.0 {
            return None;
        }
        while self.of + 1 < now - 1 && self.sent[self.of + 1] < delivered_pkts {
            self.of += 1;
        }
        let (before, after) = (self.sent[self.of], self.sent[self.of + 1]);
        let part = if after > before { (delivered_pkts - before) / (after - before) } else { 0.0 };
        Some(Ack {
            acked_pkts,
            delivered_pkts,
            sent_pkts: self.sent[now - 1],
            rtt_s: (now as f64 - self.of as f64 - part) * self.step_s,
            sample_pkts: delivered_pkts - self.acked(self.of),
        })
    }

    fn send(&mut self, window_pkts: f64, pacing_pps: f64) {
        let now = self.sent.len();
        let (sent, left) = (self.sent[now - 1], self.left[now - 1]);
        let paced = sent + pacing_pps * self.step_s;
        let sent = paced.min(self.acked(now) + window_pkts).max(sent);
        self.sent.push(sent);
        self.left.push((left + self.share_pps * self.step_s).min(sent));
    }

    fn queue_s(&self) -> f64 {
        (self.sent[self.sent.len() - 1] - self.left[self.left.len() - 1]) / self.share_pps
    }
}

#[derive(Default)]
struct Flow {
    window_pkts: f64,
    /// q of the latest lane, and the least of the running lane and round.
    q_s: f64,
    lane_s: f64,
    round_s: f64,
    lane_end_pkts: f64,
    round_end_pkts: f64,
    /// Packets per round trip.
    alpha_pkts: f64,
    empty_rounds: u32,
    /// Doublings of eq. 4.
    doublings: u32,
    test: u32,
    hold: u32,
    /// Results of the latest drain.
    test_window_pkts: f64,
    test_q_s: f64,
    test_rate_pps: f64,
    ended: u32,
    failed: u32,
}

impl Flow {
    fn new(window_pkts: f64) -> Flow {
        let (lane_s, round_s) = (f64::INFINITY, f64::INFINITY);
        Flow { window_pkts, lane_s, round_s, ..Flow::default() }
    }

    /// eq. 10.
    fn pacing_pps(&self, base_s: f64) -> f64 {
        let gain = if self.test > 0 { 1.0 } else { PACING };
        gain * self.window_pkts / base_s
    }

    /// Handles an ACK; returns whether the flow drained.
    fn on_ack(&mut self, ack: &Ack, base_s: f64) -> bool {
        let q_s = (ack.rtt_s - base_s).max(0.0);
        self.lane_s = self.lane_s.min(q_s);
        self.round_s = self.round_s.min(q_s);
        let round = ack.delivered_pkts >= self.round_end_pkts;
        if round || ack.delivered_pkts >= self.lane_end_pkts {
            self.q_s = self.lane_s;
            self.lane_s = f64::INFINITY;
            self.lane_end_pkts = ack.delivered_pkts + LANE_PKTS;
        }
        if round {
            self.round_end_pkts = ack.sent_pkts;
            self.judge(ack, base_s);
            self.end_round(base_s);
        }
        self.judge(ack, base_s);
        if self.test > 0 || self.hold > 0 {
            return false;
        }
        if self.q_s >= THETA_S.max(PACKET * base_s / self.window_pkts) {
            return self.drain(ack, base_s);
        }
        self.window_pkts += self.alpha_pkts * ack.acked_pkts / self.window_pkts;
        false
    }

    fn end_round(&mut self, base_s: f64) {
        if self.round_s <= THETA_S / 4.0 {
            self.empty_rounds += 1;
        } else if self.doublings > 0 && self.test == 0 {
            self.settle();
        } else {
            self.empty_rounds = 0;
        }
        self.round_s = f64::INFINITY;
        self.hold = self.hold.saturating_sub(1);
        if self.test == 1 {
            // The map stays in low delay: it does not go back to the window before.
            (self.ended, self.failed) = (self.ended + 1, self.failed + 1);
            self.hold = HOLD_ROUNDS;
        }
        self.test = self.test.saturating_sub(1);
        // eq. 1.
        let rtt_s = base_s + self.q_s;
        let low = GAIN * (rtt_s * self.window_pkts.max(SLOW_PPS * rtt_s)).sqrt();
        // eq. 4.
        self.doublings = self.empty_rounds.saturating_sub(self.patience(base_s)).min(20);
        self.alpha_pkts = if self.doublings > 0 {
            low.max((low * f64::from(1u32 << self.doublings)).min(self.window_pkts / 8.0))
        } else {
            low
        };
    }

    /// Round trips with an empty queue before growth doubles (eq. 4).
    fn patience(&self, base_s: f64) -> u32 {
        let missing = 1.0 - DRAIN + THETA_S / 4.0 / base_s;
        let rounds = missing * (self.test_window_pkts / base_s).sqrt() / GAIN;
        (PATIENCE + 1.5 * rounds).min(PATIENCE_MAX) as u32
    }

    /// Fast growth ends: once all added packets have arrived, q is valid.
    fn settle(&mut self) {
        (self.empty_rounds, self.doublings, self.hold) = (0, 0, SETTLE_ROUNDS);
    }

    /// eq. 3.
    fn judge(&mut self, ack: &Ack, base_s: f64) {
        if self.test != 1 {
            return;
        }
        let taken = 1.0 - self.window_pkts / self.test_window_pkts;
        let fall_s = (taken * (base_s + self.test_q_s)).min(self.test_q_s);
        let more_pkts = if self.window_pkts < 16.0 { 2.0 } else { 1.0 };
        let rate_pps = (ack.sample_pkts + more_pkts) / ack.rtt_s;
        let slower = DRAIN * self.test_rate_pps - rate_pps > taken / 8.0 * self.test_rate_pps;
        let rate_tells = self.window_pkts >= 8.0 && taken >= 0.1;
        if self.test_q_s - self.q_s >= YIELD * fall_s && !(rate_tells && slower) {
            (self.test, self.hold) = (0, 0);
            self.ended += 1;
        }
    }

    /// Applies eq. 2; returns whether the flow drained.
    fn drain(&mut self, ack: &Ack, base_s: f64) -> bool {
        if self.doublings > 0 {
            self.settle();
            return false;
        }
        let rtt_s = base_s + self.q_s;
        let measured_pkts =
            ack.sample_pkts.max(self.window_pkts - self.alpha_pkts).min(self.window_pkts);
        self.test_window_pkts = self.window_pkts;
        self.test_q_s = rtt_s * self.window_pkts / measured_pkts - base_s;
        self.test_rate_pps = ack.sample_pkts / ack.rtt_s * measured_pkts / self.window_pkts;
        (self.test, self.hold) = (TEST_ROUNDS, TEST_ROUNDS);
        self.window_pkts = DRAIN * base_s / rtt_s * measured_pkts;
        true
    }
}
