//! Randomness: independent streams.

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
}
