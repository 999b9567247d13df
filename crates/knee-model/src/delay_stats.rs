//! Distribution of a delay.

/// Counts of delays in logarithmic buckets: relative error below 1/256, any range, no allocation
/// per sample. Mean, count and maximum are exact.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DelayStats {
    count: u64,
    sum_ns: u128,
    max_ns: u64,
    buckets: Vec<u64>,
}

/// Buckets per factor of two: 2^7, so a bucket's width is at most 1/128 of its value.
const SUB_BITS: u32 = 7;

fn bucket(ns: u64) -> usize {
    let shift = (63 - (ns | 1).leading_zeros()).saturating_sub(SUB_BITS);
    (((shift as u64) << SUB_BITS) + (ns >> shift)) as usize
}

/// Middle of bucket `index`.
fn middle(index: usize) -> u64 {
    let shift = ((index >> SUB_BITS) as u32).saturating_sub(1);
    let low = (index as u64 - (u64::from(shift) << SUB_BITS)) << shift;
    low + (1u64 << shift) / 2
}

impl DelayStats {
    /// Takes a delay in.
    #[inline]
    pub fn add(&mut self, ns: u64) {
        self.count += 1;
        self.sum_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
        let bucket = bucket(ns);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
    }

    /// Gives up memory that is not needed.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.buckets.shrink_to_fit();
    }

    /// Number of delays taken in.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean, ns; 0 if there are no delays.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 }
    }

    /// Largest, ns.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Quantile `q` in 0..=1, ns, by nearest rank; 0 if there are no delays.
    pub fn quantile_ns(&self, q: f64) -> u64 {
        let rank = ((self.count as f64 * q).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (index, n) in self.buckets.iter().enumerate() {
            seen += n;
            if seen >= rank {
                return middle(index).min(self.max_ns);
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_contiguous_and_narrow() {
        let mut last = 0;
        for ns in (0..100_000u64).chain((17..60).map(|e| 1u64 << e)) {
            let b = bucket(ns);
            assert!(b == last || b == last + 1 || ns >= 100_000, "{ns}");
            last = b;
            assert!(middle(b).abs_diff(ns) as f64 <= (ns as f64 / 256.0).max(0.5) + 0.5, "{ns}");
        }
    }

    #[test]
    fn quantiles_of_a_known_series() {
        let mut d = DelayStats::default();
        (1..=1000u64).for_each(|ms| d.add(ms * 1_000_000));
        assert_eq!(d.count(), 1000);
        assert_eq!(d.max_ns(), 1_000_000_000);
        assert_eq!(d.mean_ns(), 500_500_000.0);
        for (q, want) in [(0.5, 500e6), (0.95, 950e6), (0.99, 990e6), (1.0, 1e9)] {
            let got = d.quantile_ns(q) as f64;
            assert!((got / want - 1.0).abs() < 0.005, "{q}: {got}");
        }
        assert_eq!(DelayStats::default().quantile_ns(0.5), 0);
    }
}
