//! Random loss and jitter.

use knee_model::Random;

/// Loses each packet with the same probability, independently (dummynet's `plr`).
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    threshold: u64,
}

impl Loss {
    /// Loss with `probability`, 0 <= p < 1.
    pub fn new(probability: f64) -> Self {
        // 2^64 is exact in f64; the product of a p < 1 stays below it.
        Self { threshold: (probability * 18_446_744_073_709_551_616.0) as u64 }
    }

    /// Returns whether no packet is ever lost.
    pub fn is_none(&self) -> bool {
        self.threshold == 0
    }

    /// Returns whether this packet is lost. Draws nothing if the probability is 0.
    #[inline]
    pub fn loses(&self, random: &mut Random) -> bool {
        self.threshold != 0 && random.bits64() < self.threshold
    }
}

/// Extra delay, uniform from 0 to a maximum.
#[derive(Clone, Copy, Debug)]
pub struct Jitter {
    max_ns: u64,
}

impl Jitter {
    /// Jitter from 0 to `max_ns`.
    pub fn new(max_ns: u64) -> Self {
        Self { max_ns }
    }

    /// This packet's extra delay. Draws nothing where the maximum is 0.
    #[inline]
    pub fn draw_ns(&self, random: &mut Random) -> u64 {
        if self.max_ns == 0 { 0 } else { random.up_to(self.max_ns) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_rate_is_the_probability() {
        let mut random = Random::stream(1, "test", 0);
        for p in [0.0, 0.003, 0.01, 0.5] {
            let loss = Loss::new(p);
            let n = 200_000;
            let lost = (0..n).filter(|_| loss.loses(&mut random)).count() as f64;
            let sigma = (f64::from(n) * p * (1.0 - p)).sqrt();
            assert!((lost - p * f64::from(n)).abs() <= 4.0 * sigma, "{p}: {lost}");
        }
    }

    #[test]
    fn jitter_covers_its_range_evenly() {
        let mut random = Random::stream(1, "test", 1);
        let draws: Vec<u64> = (0..10_000).map(|_| Jitter::new(9).draw_ns(&mut random)).collect();
        for value in 0..=9 {
            let share = draws.iter().filter(|&&d| d == value).count();
            assert!((850..1150).contains(&share), "{value}: {share}");
        }
    }
}
