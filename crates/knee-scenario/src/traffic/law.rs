//! Laws of sizes: the distribution of the transfers' sizes of a source.
//!
//! All are bounded: a single draw must not be larger than a run can carry. The mean is that of the
//! bounded law. Functions of real numbers come from a library of our own choice rather than the system's, so
//! that every machine draws the same.

use knee_model::Random;
use libm::{erfc, exp, expm1, log, log1p};
use std::f64::consts::SQRT_2;

/// A law of sizes between two bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SizeLaw {
    family: Family,
    /// The lower bound, bytes; of Pareto's law the size from which it starts.
    least: f64,
    most: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Family {
    Fixed,
    /// Density falls by e over `scale` bytes.
    Exponential {
        scale: f64,
    },
    /// P(X > x) falls as x^-shape.
    Pareto {
        shape: f64,
    },
    /// The logarithm is normal.
    Lognormal {
        mu: f64,
        sigma: f64,
    },
}

/// Steps of a bisection: more than a number has bits.
const BISECTIONS: u32 = 64;
/// Largest distance between a law's mean and the requested one.
const MEAN_TOLERANCE: f64 = 1e-6;
/// Least share of a lognormal law that must lie within its bounds.
const LEAST_SHARE: f64 = 1e-6;

/// Zero of `f`, which grows, between `low` and `high`, or the end that is nearer to it.
fn bisect(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..BISECTIONS {
        let middle = low + (high - low) / 2.0;
        *if f(middle) < 0.0 { &mut low } else { &mut high } = middle;
    }
    high
}

/// Probability that a standard normal variable is below `z`.
fn normal_below(z: f64) -> f64 {
    0.5 * erfc(-z / SQRT_2)
}

/// Integral of e^(-c t) from 0 to `end`.
fn decay(c: f64, end: f64) -> f64 {
    if (c * end).abs() < 1e-9 { end } else { -expm1(-c * end) / c }
}

impl SizeLaw {
    /// Always `bytes`.
    pub(crate) fn fixed(bytes: u64) -> Self {
        Self { family: Family::Fixed, least: bytes as f64, most: bytes as f64 }
    }

    /// The law with mean `mean` of those that `of` gives, whose means grow with its argument; none
    /// if there is no such law.
    fn with_mean(mean: f64, low: f64, high: f64, of: impl Fn(f64) -> Self) -> Option<Self> {
        let law = of(bisect(low, high, |at| of(at).mean() - mean));
        ((law.mean() - mean).abs() <= MEAN_TOLERANCE * mean).then_some(law)
    }

    /// Exponential above `least`, bounded by `most`, of the given mean, bytes. None if there is no
    /// such law: the mean must lie in the lower half of the bounds.
    pub(crate) fn exponential(mean: f64, least: f64, most: f64) -> Option<Self> {
        let width = most - least;
        let of =
            |log_scale| Self { family: Family::Exponential { scale: exp(log_scale) }, least, most };
        Self::with_mean(mean, log(width * 1e-9), log(width * 1e4), of)
    }

    /// Pareto's law of `shape`, bounded by `most`, of the given mean, bytes. None if it would have
    /// to start below 1 byte.
    pub(crate) fn pareto(mean: f64, shape: f64, most: f64) -> Option<Self> {
        let of = |log_least| Self::pareto_from(exp(log_least), shape, most);
        Self::with_mean(mean, 0.0, log(most), of)
    }

    /// Pareto's law of `shape` from `least` to `most` bytes.
    pub(crate) fn pareto_from(least: f64, shape: f64, most: f64) -> Self {
        Self { family: Family::Pareto { shape }, least, most }
    }

    /// Lognormal within bounds, `sigma` being the standard deviation of the natural logarithm
    /// without bounds, of the given mean, bytes. None if there is no such law.
    pub(crate) fn lognormal(mean: f64, sigma: f64, least: f64, most: f64) -> Option<Self> {
        let of = |mu| Self { family: Family::Lognormal { mu, sigma }, least, most };
        if of(log(least)).share() < LEAST_SHARE || of(log(most)).share() < LEAST_SHARE {
            return None;
        }
        Self::with_mean(mean, log(least), log(most), of)
    }

    /// Lognormal with this mean and standard deviation before it is bounded.
    pub(crate) fn lognormal_before_bounds(
        mean: f64,
        deviation: f64,
        least: f64,
        most: f64,
    ) -> Self {
        let variance = log1p((deviation / mean) * (deviation / mean));
        let family = Family::Lognormal { mu: log(mean) - variance / 2.0, sigma: variance.sqrt() };
        Self { family, least, most }
    }

    /// Bounds of a lognormal law as normal variables.
    fn normal_bounds(&self, mu: f64, sigma: f64) -> (f64, f64) {
        ((log(self.least) - mu) / sigma, (log(self.most) - mu) / sigma)
    }

    /// Part of a lognormal law that lies within its bounds.
    fn share(&self) -> f64 {
        let Family::Lognormal { mu, sigma } = self.family else { return 1.0 };
        let (from, to) = self.normal_bounds(mu, sigma);
        normal_below(to) - normal_below(from)
    }

    /// Mean, bytes, but for the rounding to whole bytes.
    pub(crate) fn mean(&self) -> f64 {
        match self.family {
            Family::Fixed => self.least,
            Family::Exponential { scale } => {
                let width = self.most - self.least;
                self.least + scale - width / expm1(width / scale)
            }
            Family::Pareto { shape } => {
                // ln(x / least) has the density e^(-shape t) / decay(shape).
                let end = log(self.most / self.least);
                self.least * decay(shape - 1.0, end) / decay(shape, end)
            }
            Family::Lognormal { mu, sigma } => {
                let (from, to) = self.normal_bounds(mu, sigma);
                let above = normal_below(sigma - from) - normal_below(sigma - to);
                exp(mu + sigma * sigma / 2.0) * above / self.share()
            }
        }
    }

    /// The size below which a draw lies with probability `p`, in 0..=1, bytes.
    pub(crate) fn quantile(&self, p: f64) -> f64 {
        let (least, most) = (self.least, self.most);
        let size = match self.family {
            Family::Fixed => least,
            Family::Exponential { scale } => {
                least - scale * log1p(p * expm1((least - most) / scale))
            }
            Family::Pareto { shape } => {
                let within = -expm1(-shape * log(most / least));
                least * exp(-log1p(-p * within) / shape)
            }
            Family::Lognormal { mu, sigma } => {
                let (from, to) = self.normal_bounds(mu, sigma);
                let wanted = normal_below(from) + p * self.share();
                exp(mu + sigma * bisect(from, to, |z| normal_below(z) - wanted))
            }
        };
        size.clamp(least, most)
    }

    /// A draw, whole bytes, at least 1.
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        (self.quantile(uniform(random)).round() as u64).max(1)
    }
}

/// Uniform between 0 and 1, neither of them.
pub(crate) fn uniform(random: &mut Random) -> f64 {
    ((random.bits64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// Exponential with a mean of `mean`.
pub(crate) fn exponential(random: &mut Random, mean: f64) -> f64 {
    -mean * log(uniform(random))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl SizeLaw {
        /// Probability of a size below `x`, from the definition of each law.
        fn below(&self, x: f64) -> f64 {
            let unbounded = |x: f64| match self.family {
                Family::Fixed => f64::from(u8::from(x >= self.least)),
                Family::Exponential { scale } => 1.0 - (-(x - self.least) / scale).exp(),
                Family::Pareto { shape } => 1.0 - (self.least / x).powf(shape),
                Family::Lognormal { mu, sigma } => normal_below((x.ln() - mu) / sigma),
            };
            let (from, to) = (unbounded(self.least), unbounded(self.most));
            (unbounded(x) - from) / (to - from)
        }
    }

    fn laws() -> Vec<SizeLaw> {
        vec![
            SizeLaw::exponential(30e3, 1.0, 1e9).unwrap(),
            SizeLaw::exponential(30e3, 20e3, 50e3).unwrap(),
            SizeLaw::pareto(30e3, 1.2, 10e6).unwrap(),
            SizeLaw::pareto(30e3, 1.0, 10e6).unwrap(),
            SizeLaw::pareto(30e3, 0.7, 10e6).unwrap(),
            SizeLaw::pareto(30e3, 2.5, 1e9).unwrap(),
            SizeLaw::lognormal(30e3, 1.37, 100.0, 2e6).unwrap(),
            SizeLaw::lognormal(30e3, 0.2, 1.0, 1e9).unwrap(),
        ]
    }

    /// Mean by the midpoint rule over the quantiles.
    fn mean_of_quantiles(law: &SizeLaw) -> f64 {
        // p = 1 - e^-s: equal steps of s look into the tail.
        let (steps, end) = (40_000, 40.0);
        let term = |i: u32| {
            let rest = (-end * (f64::from(i) + 0.5) / f64::from(steps)).exp();
            law.quantile(1.0 - rest) * rest
        };
        (0..steps).map(term).sum::<f64>() * end / f64::from(steps)
    }

    #[test]
    fn means_of_bounded_laws_are_as_given() {
        for law in laws() {
            assert!((law.mean() - 30e3).abs() < 0.1, "{law:?}: {}", law.mean());
            let integral = mean_of_quantiles(&law);
            assert!((integral / 30e3 - 1.0).abs() < 1e-4, "{law:?}: {integral}");
        }
    }

    #[test]
    fn known_parameters_come_out() {
        // Without a bound that matters: Pareto's mean is shape / (shape - 1) times its start.
        let law = SizeLaw::pareto(30e3, 2.5, 1e15).unwrap();
        assert!((law.least - 30e3 * 1.5 / 2.5).abs() < 1e-2, "{}", law.least);
        // shape 1 from k to m: k m / (m - k) ln(m / k).
        let (k, m): (f64, f64) = (1e3, 1e6);
        let mean = k * m / (m - k) * (m / k).ln();
        assert!((SizeLaw::pareto_from(k, 1.0, m).mean() / mean - 1.0).abs() < 1e-12);
        // shape 2: 2 k m / (k + m).
        let mean = 2.0 * k * m / (k + m);
        assert!((SizeLaw::pareto_from(k, 2.0, m).mean() / mean - 1.0).abs() < 1e-12);
        let Family::Exponential { scale } = SizeLaw::exponential(30e3, 1.0, 1e9).unwrap().family
        else {
            panic!()
        };
        assert!((scale - 29_999.0).abs() < 0.1, "{scale}");
        // Mean and deviation of the model of web pages give the sigma and mu that it is known by.
        let Family::Lognormal { mu, sigma } =
            SizeLaw::lognormal_before_bounds(10_710.0, 25_032.0, 100.0, 2e6).family
        else {
            panic!()
        };
        assert!((sigma - 1.37).abs() < 0.005 && (mu - 8.35).abs() < 0.005, "{sigma} {mu}");
    }

    #[test]
    fn impossible_means_are_none() {
        assert_eq!(SizeLaw::exponential(40e3, 20e3, 50e3), None, "beyond the middle");
        assert_eq!(SizeLaw::exponential(10e3, 20e3, 50e3), None, "below the bounds");
        assert_eq!(SizeLaw::pareto(20e6, 1.2, 10e6), None);
        assert_eq!(SizeLaw::pareto(2.0, 1.2, 10e6), None, "would start below a byte");
        assert_eq!(SizeLaw::lognormal(3e6, 1.37, 100.0, 2e6), None);
        assert_eq!(SizeLaw::lognormal(1e3, 0.01, 1.0, 1.0 + 1e-9), None);
    }

    /// Largest distance between the share of draws below each draw and the law's own.
    fn kolmogorov_distance(law: &SizeLaw, draws: u32) -> f64 {
        let mut random = Random::stream(1, "law", 0);
        let mut sizes: Vec<f64> = (0..draws).map(|_| law.quantile(uniform(&mut random))).collect();
        sizes.sort_by(f64::total_cmp);
        let shares = sizes.iter().enumerate().map(|(i, x)| {
            let (below, p) = (i as f64 / f64::from(draws), law.below(*x));
            (p - below).abs().max((p - below - 1.0 / f64::from(draws)).abs())
        });
        shares.fold(0.0, f64::max)
    }

    #[test]
    fn draws_follow_their_law() {
        let draws = 100_000;
        for law in laws() {
            let distance = kolmogorov_distance(&law, draws);
            // Exceeded with a probability of 0.1 % (Kolmogorov's limit law).
            assert!(distance < 1.95 / f64::from(draws).sqrt(), "{law:?}: {distance}");
        }
        // The measure can fail: a law that differs by 5 % of its mean is told apart.
        let (law, other) = (laws()[0], SizeLaw::exponential(31.5e3, 1.0, 1e9).unwrap());
        let mut random = Random::stream(1, "law", 0);
        let below = (0..draws).filter(|_| other.quantile(uniform(&mut random)) < 30e3).count();
        let differs = (below as f64 / f64::from(draws) - law.below(30e3)).abs();
        assert!(differs > 1.95 / f64::from(draws).sqrt(), "{differs}");
    }

    #[test]
    fn drawn_sizes_are_whole_and_keep_the_mean() {
        let law = SizeLaw::exponential(30e3, 1.0, 1e9).unwrap();
        let mut random = Random::stream(2, "law", 0);
        let n = 100_000;
        let sum: u64 = (0..n).map(|_| law.draw(&mut random)).sum();
        // Four standard deviations of the mean.
        assert!((sum as f64 / n as f64 - 30e3).abs() < 4.0 * 30e3 / (n as f64).sqrt());
        assert_eq!(SizeLaw::fixed(700).draw(&mut random), 700);
        assert!(SizeLaw::pareto_from(0.1, 3.0, 0.2).draw(&mut random) >= 1);
    }

    proptest! {
        #[test]
        fn quantiles_invert_the_law(
            which in 0usize..8,
            p in 0.0..1.0f64,
        ) {
            let law = laws()[which];
            let x = law.quantile(p);
            prop_assert!((law.least..=law.most).contains(&x));
            prop_assert!((law.below(x) - p).abs() < 1e-6, "{law:?}: {p} gives {x}, {}", law.below(x));
        }

        #[test]
        fn any_mean_is_met_or_refused(
            mean in 2.0..1e8f64,
            shape in 0.3..4.0f64,
            sigma in 0.05..3.0f64,
            most in 10.0..1e9f64,
        ) {
            let laws = [
                SizeLaw::exponential(mean, 1.0, most),
                SizeLaw::pareto(mean, shape, most),
                SizeLaw::lognormal(mean, sigma, 1.0, most),
            ];
            for law in laws.into_iter().flatten() {
                prop_assert!((law.mean() / mean - 1.0).abs() <= MEAN_TOLERANCE);
                prop_assert!(law.least >= 1.0 && law.quantile(1.0) <= most);
            }
            prop_assert!(laws.iter().all(Option::is_none) || mean < most);
        }
    }
}
