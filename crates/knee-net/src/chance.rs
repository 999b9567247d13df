//! Randomness: independent streams, random loss, jitter.

use rand_xoshiro::{
    SplitMix64,
    rand_core::{Rng, SeedableRng},
};

/// A random stream keyed by (seed, component, index): adding a flow or an element leaves all other
/// streams as they were.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// The stream of `component`'s instance `index` in a run with `seed`.
    pub fn stream(seed: u64, component: &str, index: u64) -> Self {
        // FNV-1a over the key's bytes, then two steps of the generator to spread neighbours.
        let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let key =
            seed.to_le_bytes().into_iter().chain(index.to_le_bytes()).chain(component.bytes());
        let mut mix = SplitMix64::seed_from_u64(key.fold(0xcbf2_9ce4_8422_2325, fold));
        mix.next_u64();
        Self(SplitMix64::seed_from_u64(mix.next_u64()))
    }

    /// 64 uniform bits.
    #[inline]
    pub fn bits64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// 32 uniform bits.
    #[inline]
    pub fn bits32(&mut self) -> u32 {
        (self.0.next_u64() >> 32) as u32
    }

    /// Uniform in `0..=max`.
    pub fn up_to(&mut self, max: u64) -> u64 {
        ((u128::from(self.bits64()) * (u128::from(max) + 1)) >> 64) as u64
    }
}

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

    /// Whether it never happens.
    pub fn is_none(&self) -> bool {
        self.threshold == 0
    }

    /// Whether this packet is lost. Draws nothing where the probability is 0.
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
    fn streams_are_distinct_and_repeatable() {
        let first = |s, c, i| Random::stream(s, c, i).bits64();
        assert_eq!(first(1, "loss", 0), first(1, "loss", 0));
        let others = [first(1, "loss", 1), first(2, "loss", 0), first(1, "jitter", 0)];
        assert!(others.iter().all(|&x| x != first(1, "loss", 0)));
    }

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
