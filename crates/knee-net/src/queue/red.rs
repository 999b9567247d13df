//! Random early detection (Floyd, Jacobson: Random early detection gateways for congestion
//! avoidance, IEEE/ACM ToN 1(4), 1993), and the gentle variant (Floyd, 2000).
//!
//! The averaged queue includes the packet in transmission. If thresholds are bytes, large packets signal more
//! often than small ones (section IV: `p_b` times the packet's share of a full one). From the upper threshold
//! on (twice that, if gentle) packets are dropped even if they could be marked: this also limits flows that
//! ignore marks.

use super::judgement::{Arrival, Verdict, happens};
use knee_model::{Random, Red, Thresholds};

/// Time to transmit a packet of `bytes`, ns; at least 1.
fn slot_ns(bytes: u32, rate_bps: u64) -> u64 {
    (u64::from(bytes) * 8 * 1_000_000_000 / rate_bps.max(1)).max(1)
}

/// `base` to the power of `exponent`, the same on every machine.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 && result > 0.0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

/// The exponentially weighted average of the queue (section III, Fig. 2).
#[derive(Clone, Copy, Debug)]
pub(super) struct Average {
    weight: f64,
    slot_ns: u64,
    idle_since_ns: u64,
    value: f64,
}

impl Average {
    pub(super) fn new(weight: f64, packet_bytes: u32, rate_bps: u64) -> Self {
        let slot_ns = slot_ns(packet_bytes, rate_bps);
        Self { weight, slot_ns, idle_since_ns: 0, value: 0.0 }
    }

    /// `avg <- (1 - w) avg + w q`; while the queue was empty instead once with q = 0 for each packet
    /// that could have been sent: `avg <- (1 - w)^m avg`.
    pub(super) fn arrive(&mut self, now_ns: u64, queue: f64) {
        if queue > 0.0 {
            self.sample(queue);
        } else {
            let slots = now_ns.saturating_sub(self.idle_since_ns) / self.slot_ns;
            self.value *= power(1.0 - self.weight, slots);
        }
    }

    pub(super) fn sample(&mut self, queue: f64) {
        self.value = (1.0 - self.weight) * self.value + self.weight * queue;
    }

    /// The queue has become empty.
    pub(super) fn idle(&mut self, now_ns: u64) {
        self.idle_since_ns = now_ns;
    }

    pub(super) fn value(&self) -> f64 {
        self.value
    }
}

/// Spreads signals evenly: `p_a = p_b / (1 - count p_b)`, `count` packets after the latest signal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    count: i64,
}

impl Spread {
    pub(super) fn new() -> Self {
        Self { count: -1 }
    }

    /// No packet is a candidate.
    pub(super) fn calm(&mut self) {
        self.count = -1;
    }

    /// A packet was dropped by force.
    pub(super) fn restart(&mut self) {
        self.count = 0;
    }

    /// The next packet counts.
    pub(super) fn advance(&mut self) {
        self.count += 1;
    }

    fn probability(&self, base: f64) -> f64 {
        let rest = 1.0 - self.count as f64 * base;
        if rest <= base { 1.0 } else { base / rest }
    }

    /// Returns whether the packet that was counted signals; `base` is `p_b`.
    pub(super) fn signals(&mut self, base: f64, random: &mut Random) -> bool {
        let signals = happens(self.probability(base), random);
        if signals {
            self.count = 0;
        }
        signals
    }
}

/// RED at work.
#[derive(Clone, Debug)]
pub(crate) struct State {
    red: Red,
    min: f64,
    max: f64,
    average: Average,
    spread: Spread,
    random: Random,
}

impl State {
    pub(crate) fn new(red: &Red, rate_bps: u64, random: Random) -> Self {
        let (min, max) = match red.thresholds {
            Thresholds::Packets { min, max } => (f64::from(min), f64::from(max)),
            Thresholds::Bytes { min, max } => (min as f64, max as f64),
        };
        let average = Average::new(red.weight, red.packet_bytes, rate_bps);
        Self { red: *red, min, max, average, spread: Spread::new(), random }
    }

    /// `p_b` at the present average: `None` below the lower threshold, 1 where all is dropped.
    fn base(&self) -> Option<f64> {
        let (average, peak) = (self.average.value(), self.red.max_probability);
        if average < self.min {
            None
        } else if average < self.max {
            Some(peak * (average - self.min) / (self.max - self.min))
        } else if self.red.gentle && average < 2.0 * self.max {
            Some(peak + (1.0 - peak) * (average - self.max) / self.max)
        } else {
            Some(1.0)
        }
    }

    pub(crate) fn arrive(&mut self, arrival: &Arrival) -> Verdict {
        let (queue, size) = match self.red.thresholds {
            Thresholds::Packets { .. } => (f64::from(arrival.held_pkts), 1.0),
            Thresholds::Bytes { .. } => {
                let full = f64::from(self.red.packet_bytes.max(1));
                (arrival.held_bytes as f64, f64::from(arrival.bytes) / full)
            }
        };
        self.average.arrive(arrival.now_ns, queue);
        match self.base() {
            None => {
                self.spread.calm();
                Verdict::Accept
            }
            Some(base) if base >= 1.0 => {
                self.spread.restart();
                Verdict::Drop
            }
            Some(base) => {
                self.spread.advance();
                match self.spread.signals((base * size).min(1.0), &mut self.random) {
                    true => Verdict::Signal,
                    false => Verdict::Accept,
                }
            }
        }
    }

    pub(crate) fn idle(&mut self, now_ns: u64) {
        self.average.idle(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MBIT: u64 = 1_000_000;

    fn state(red: Red) -> State {
        // 12 Mbit/s: a packet of 1500 bytes takes 1 ms.
        State::new(&red, 12 * MBIT, Random::stream(1, "test", 0))
    }

    fn arrival(now_ns: u64, held_pkts: u32) -> Arrival {
        let held_bytes = u64::from(held_pkts) * 1500;
        Arrival { now_ns, held_pkts, held_bytes, bytes: 1500, flow_key: 0 }
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{a} {b}");
    }

    /// Section III: with w = 1/4 from 0 and a queue of 8: 2, 3.5, 4.625.
    #[test]
    fn the_average_by_hand() {
        let mut average = Average::new(0.25, 1500, 12 * MBIT);
        for expected in [2.0, 3.5, 4.625] {
            average.arrive(0, 8.0);
            near(average.value(), expected);
        }
        // Idle from 10 ms to 13.9 ms: three packets of 1 ms, 4.625 * 0.75^3.
        average.idle(10_000_000);
        average.arrive(13_900_000, 0.0);
        near(average.value(), 4.625 * 0.421_875);
    }

    /// Section IV-A: starting from an empty queue, L packets that each find one more give
    /// avg_L = L + 1 + ((1 - w)^(L+1) - 1) / w.
    #[test]
    fn a_burst_raises_the_average_as_the_paper_says() {
        let w: f64 = 0.002;
        let mut average = Average::new(w, 1500, 12 * MBIT);
        for l in 1..=100u32 {
            average.arrive(0, f64::from(l));
            let l = f64::from(l);
            let paper = l + 1.0 + ((1.0 - w).powf(l + 1.0) - 1.0) / w;
            assert!((average.value() - paper).abs() < 1e-9, "{l}: {} {paper}", average.value());
        }
    }

    #[test]
    fn the_slope_by_hand() {
        let base = |gentle, average: f64| {
            let mut s = state(Red { gentle, max_probability: 0.1, ..Red::default() });
            s.average.value = average;
            s.base()
        };
        for gentle in [false, true] {
            assert_eq!(base(gentle, 4.999), None);
            assert_eq!(base(gentle, 5.0), Some(0.0));
            near(base(gentle, 10.0).expect("between"), 0.05);
        }
        assert_eq!(base(false, 15.0), Some(1.0));
        // Gentle: from 0.1 at 15 to 1 at 30; half-way 0.55.
        near(base(true, 15.0).expect("gentle"), 0.1);
        near(base(true, 22.5).expect("gentle"), 0.55);
        assert_eq!(base(true, 30.0), Some(1.0));
    }

    /// Section IV-B, method 2: with p_b = 1/10 the gap between signals is uniform from 1 to 10.
    #[test]
    fn signals_are_spread_evenly() {
        let mut spread = Spread::new();
        let by_hand = [0.1, 0.1 / 0.9, 0.125, 0.1 / 0.7, 0.1 / 0.6, 0.2, 0.25, 0.1 / 0.3, 0.5, 1.0];
        for p in by_hand {
            spread.advance();
            assert!((spread.probability(0.1) - p).abs() < 1e-9, "{}", spread.count);
        }
        let mut random = Random::stream(7, "test", 0);
        let (mut gaps, mut gap) = ([0u32; 11], 0);
        let mut spread = Spread { count: -1 };
        for _ in 0..200_000 {
            spread.advance();
            gap += 1;
            if spread.signals(0.1, &mut random) {
                gaps[gap] += 1;
                // The next packet is counted from 0 again, as the first was.
                (gap, spread.count) = (0, -1);
            }
        }
        let all: u32 = gaps.iter().sum();
        for (gap, n) in gaps.iter().enumerate().skip(1) {
            let expected = f64::from(all) / 10.0;
            assert!(
                (f64::from(*n) - expected).abs() < 5.0 * expected.sqrt(),
                "{gap}: {n} of {all}"
            );
        }
    }

    #[test]
    fn all_is_dropped_above_the_upper_threshold() {
        let mut s = state(Red { weight: 1.0, ..Red::default() });
        assert_eq!(s.arrive(&arrival(0, 4)), Verdict::Accept);
        assert_eq!(s.arrive(&arrival(0, 15)), Verdict::Drop);
        assert_eq!(s.spread.count, 0);
        assert_eq!(s.arrive(&arrival(0, 4)), Verdict::Accept);
        assert_eq!(s.spread.count, -1);
    }

    /// In bytes a packet of a third of the size signals a third as often.
    #[test]
    fn small_packets_signal_less_where_bytes_count() {
        let signals = |bytes: u32| {
            let thresholds = Thresholds::Bytes { min: 7500, max: 22_500 };
            let red = Red { thresholds, weight: 1.0, max_probability: 0.02, ..Red::default() };
            let mut s = state(red);
            let one = |s: &mut State| {
                let at = Arrival { bytes, ..arrival(0, 10) };
                s.arrive(&at) == Verdict::Signal
            };
            (0..300_000).filter(|_| one(&mut s)).count() as f64
        };
        // p_b is 0.01, and the packet after a signal is counted as 1: even gaps of 1 to 99, one
        // signal in 50. With a third of the size 1 to 299, one in 150.
        assert!((signals(1500) / 6000.0 - 1.0).abs() < 0.03, "{}", signals(1500));
        assert!((signals(500) / 2000.0 - 1.0).abs() < 0.05, "{}", signals(500));
    }

    #[test]
    fn powers() {
        near(power(0.998, 0), 1.0);
        near(power(0.998, 1000), 0.998f64.powi(1000));
        assert_eq!(power(0.998, u64::MAX), 0.0);
        assert_eq!(power(0.0, 3), 0.0);
    }
}
