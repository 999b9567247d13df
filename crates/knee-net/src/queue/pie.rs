//! Proportional integral controller, enhanced (Pan et al.: RFC 8033): the basic controller of section 4 with
//! the marks of section 5.1.
//!
//! The queueing delay is measured, not estimated from the departure rate. It is the waiting time of the
//! packet whose transmission began last, and 0 while the queue is empty. So PIE need not know the rate, which
//! may change. Overdue updates of the controller are made before each event.

use super::judgement::{Arrival, Verdict, happens};
use knee_model::{Pie, Random};

/// Section 4.2: below each of these probabilities its change is divided by so much.
const SCALES: [(f64, f64); 6] = [
    (0.000_001, 2048.0),
    (0.000_01, 512.0),
    (0.000_1, 128.0),
    (0.001, 32.0),
    (0.01, 8.0),
    (0.1, 2.0),
];
/// The probability falls by so much at each update without a delay.
const DECAY: f64 = 0.98;
/// Below this probability a delay of less than half the target is left alone.
const CALM_PROBABILITY: f64 = 0.2;

#[derive(Clone, Debug)]
pub(super) struct State {
    pie: Pie,
    probability: f64,
    delay_ns: u64,
    old_delay_ns: u64,
    burst_ns: u64,
    update_due_ns: u64,
    random: Random,
}

impl State {
    pub(super) fn new(pie: &Pie, random: Random) -> Self {
        Self {
            pie: *pie,
            probability: 0.0,
            delay_ns: 0,
            old_delay_ns: 0,
            burst_ns: pie.burst_ns,
            update_due_ns: pie.update_ns,
            random,
        }
    }

    /// Makes the updates that are due. Nothing has changed since the latest event.
    fn catch_up(&mut self, now_ns: u64) {
        while self.update_due_ns <= now_ns {
            self.update();
            self.update_due_ns += self.pie.update_ns;
            let calm = self.probability == 0.0 && self.delay_ns == 0 && self.old_delay_ns == 0;
            if calm && self.update_due_ns <= now_ns {
                // All further ones do the same.
                let rest = (now_ns - self.update_due_ns) / self.pie.update_ns + 1;
                self.update_due_ns += rest * self.pie.update_ns;
            }
        }
    }

    /// Sections 4.2 and 4.4.
    fn update(&mut self) {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let (delay, old) = (seconds(self.delay_ns), seconds(self.old_delay_ns));
        let mut change = self.pie.alpha_per_s * (delay - seconds(self.pie.target_ns))
            + self.pie.beta_per_s * (delay - old);
        if let Some((_, scale)) = SCALES.iter().find(|(below, _)| self.probability < *below) {
            change /= scale;
        }
        self.probability += change;
        if self.delay_ns == 0 && self.old_delay_ns == 0 {
            self.probability *= DECAY;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        let half_ns = self.pie.target_ns / 2;
        if self.probability == 0.0 && self.delay_ns < half_ns && self.old_delay_ns < half_ns {
            self.burst_ns = self.pie.burst_ns;
        } else {
            self.burst_ns = self.burst_ns.saturating_sub(self.pie.update_ns);
        }
        self.old_delay_ns = self.delay_ns;
    }

    /// Sections 4.1 and 5.1.
    pub(super) fn arrive(&mut self, arrival: &Arrival) -> Verdict {
        self.catch_up(arrival.now_ns);
        let calm =
            self.old_delay_ns < self.pie.target_ns / 2 && self.probability < CALM_PROBABILITY;
        let short = arrival.held_bytes <= 2 * u64::from(self.pie.packet_bytes);
        if self.burst_ns > 0 || calm || short || !happens(self.probability, &mut self.random) {
            Verdict::Accept
        } else if self.probability < self.pie.mark_limit {
            Verdict::Signal
        } else {
            Verdict::Drop
        }
    }

    /// A packet's transmission begins after it had waited so long.
    pub(super) fn begin(&mut self, now_ns: u64, waited_ns: u64) {
        self.catch_up(now_ns);
        self.delay_ns = waited_ns;
    }

    /// The queue has become empty.
    pub(super) fn idle(&mut self, now_ns: u64) {
        self.catch_up(now_ns);
        self.delay_ns = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn state() -> State {
        State::new(&Pie::default(), Random::stream(1, "test", 0))
    }

    fn arrival(now_ns: u64, held_bytes: u64) -> Arrival {
        Arrival { now_ns, held_pkts: 0, held_bytes, bytes: 1500, flow_key: 0 }
    }

    /// The change of the probability from `p` in one update, with a delay of 35 ms after 25 ms:
    /// 0.125 * 0.020 + 1.25 * 0.010 = 0.015, divided as section 4.2 says.
    #[test]
    fn the_table_by_hand() {
        for (p, scale) in [
            (0.0, 2048.0),
            (0.000_000_999, 2048.0),
            (0.000_001, 512.0),
            (0.000_01, 128.0),
            (0.000_1, 32.0),
            (0.001, 8.0),
            (0.01, 2.0),
            (0.099, 2.0),
            (0.1, 1.0),
            (0.5, 1.0),
        ] {
            let mut s = state();
            (s.probability, s.delay_ns, s.old_delay_ns) = (p, 35 * MS, 25 * MS);
            s.update();
            assert!((s.probability - p - 0.015 / scale).abs() < 1e-15, "{p}: {}", s.probability);
            assert_eq!(s.old_delay_ns, 35 * MS);
        }
    }

    #[test]
    fn the_probability_stays_in_its_range_and_decays() {
        let mut s = state();
        (s.probability, s.delay_ns) = (0.9, 10_000 * MS);
        s.update();
        assert_eq!(s.probability, 1.0);
        // Idle: 1 - 0.125 * 0.015 and - 1.25 * 10 for the fall.
        s.delay_ns = 0;
        s.update();
        assert_eq!(s.probability, 0.0);
        (s.probability, s.old_delay_ns) = (0.5, 0);
        s.update();
        assert!((s.probability - (0.5 - 0.001_875) * 0.98).abs() < 1e-15);
    }

    /// For 150 ms from the first delay on nothing is dropped, and after a calm time again.
    #[test]
    fn bursts_pass() {
        let mut s = state();
        s.begin(1, 100 * MS);
        for update in 1..=10u64 {
            assert_eq!(s.arrive(&arrival(update * 15 * MS - 1, 1 << 20)), Verdict::Accept);
            assert_eq!(s.burst_ns, 150 * MS - (update - 1) * 15 * MS);
        }
        s.probability = 1.0;
        assert_eq!(s.arrive(&arrival(150 * MS, 1 << 20)), Verdict::Drop);
        s.idle(150 * MS);
        // A long idle time is caught up with at once.
        s.catch_up(1_000_000_000 * MS);
        assert_eq!((s.probability, s.burst_ns), (0.0, 150 * MS));
        assert_eq!(s.update_due_ns, 1_000_000_000 * MS / (15 * MS) * (15 * MS) + 15 * MS);
    }

    #[test]
    fn signals_by_the_rules() {
        let mut s = state();
        (s.burst_ns, s.update_due_ns) = (0, u64::MAX);
        let verdict = |s: &mut State, p, old_ms, held_bytes| {
            (s.probability, s.old_delay_ns) = (p, old_ms * MS);
            let all: Vec<_> = (0..1000).map(|_| s.arrive(&arrival(0, held_bytes))).collect();
            let of = |v| all.iter().filter(|x| **x == v).count();
            (of(Verdict::Accept), of(Verdict::Signal), of(Verdict::Drop))
        };
        // Below 0.1 it may mark, then it drops.
        let (_, signals, drops) = verdict(&mut s, 0.0999, 15, 1 << 20);
        assert!((60..140).contains(&signals) && drops == 0, "{signals}");
        let (_, signals, drops) = verdict(&mut s, 0.1, 15, 1 << 20);
        assert!((60..140).contains(&drops) && signals == 0, "{drops}");
        // Less than half the target and less than 0.2; two packets.
        assert_eq!(verdict(&mut s, 0.199, 7, 1 << 20).0, 1000);
        assert!(verdict(&mut s, 0.2, 7, 1 << 20).0 < 900);
        assert_eq!(verdict(&mut s, 0.9, 15, 3000).0, 1000);
        assert!(verdict(&mut s, 0.9, 15, 3001).0 < 200);
    }
}
