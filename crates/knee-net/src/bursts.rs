//! Loss in bursts: the model of Gilbert and Elliott.

use crate::Loss;
use knee_model::{BurstLoss, Random};

/// A [`BurstLoss`] at work. Its state and its random stream belong to the link, not to a flow: a bad state
/// affects the packets of all flows.
#[derive(Clone, Debug)]
pub struct Bursts {
    bad: bool,
    /// By the state, good and bad.
    change: [Chance; 2],
    loss: [Chance; 2],
    random: Random,
}

/// A probability up to and including 1.
#[derive(Clone, Copy, Debug)]
enum Chance {
    Certain,
    Below(Loss),
}

impl Chance {
    fn new(probability: f64) -> Self {
        if probability >= 1.0 { Self::Certain } else { Self::Below(Loss::new(probability)) }
    }

    fn happens(self, random: &mut Random) -> bool {
        match self {
            Self::Certain => true,
            Self::Below(loss) => loss.loses(random),
        }
    }
}

impl Bursts {
    /// The process `loss`, in the state that a draw from `random` gives: bad as often as it is in
    /// the long run.
    pub fn new(loss: &BurstLoss, mut random: Random) -> Self {
        Self {
            bad: Chance::new(loss.bad_share()).happens(&mut random),
            change: [loss.good_to_bad, loss.bad_to_good].map(Chance::new),
            loss: [loss.loss_good, loss.loss_bad].map(Chance::new),
            random,
        }
    }

    /// Returns whether the next packet is lost.
    pub fn loses(&mut self) -> bool {
        self.bad ^= self.change[usize::from(self.bad)].happens(&mut self.random);
        self.loss[usize::from(self.bad)].happens(&mut self.random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn means_give_the_probabilities() {
        // 1 % in bursts of 4: out with 1/4; in with 1/4 * 0.01 / 0.99.
        let loss = BurstLoss::of_means(0.01, 4.0).unwrap();
        assert_eq!((loss.bad_to_good, loss.loss_bad, loss.loss_good), (0.25, 1.0, 0.0));
        assert!((loss.good_to_bad - 0.002_525_252_525).abs() < 1e-12);
        assert!((loss.mean_loss() - 0.01).abs() < 1e-15);
        // Bursts of 1 at 1/2: each second packet; above that bursts must be longer.
        assert_eq!(BurstLoss::of_means(0.5, 1.0).map(|l| l.good_to_bad), Some(1.0));
        assert!(BurstLoss::of_means(0.6, 1.0).is_none() && BurstLoss::of_means(0.6, 1.5).is_some());
        assert!(BurstLoss::of_means(0.1, 0.9).is_none());
        // 0.9 / 9 / (1 - 0.9) is not 1 in binary.
        assert_eq!(BurstLoss::of_means(0.9, 9.0).map(|l| l.good_to_bad), Some(1.0));
        // Four parameters: bad 0.2 / (0.2 + 0.3) = 0.4 of the time.
        let loss = BurstLoss { good_to_bad: 0.2, bad_to_good: 0.3, loss_good: 0.1, loss_bad: 0.5 };
        assert!((loss.mean_loss() - (0.4 * 0.5 + 0.6 * 0.1)).abs() < 1e-15);
    }

    #[test]
    fn certain_changes_alternate() {
        let loss = BurstLoss { good_to_bad: 1.0, bad_to_good: 1.0, loss_good: 0.0, loss_bad: 1.0 };
        let mut bursts = Bursts::new(&loss, Random::stream(1, "test", 0));
        let first = bursts.loses();
        let rest: Vec<bool> = (0..6).map(|_| bursts.loses()).collect();
        assert_eq!(rest, [!first, first, !first, first, !first, first]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// Mean loss and mean length of bursts, within five standard errors. Runs of packets in the
        /// bad state have geometric lengths, so n bursts of mean B vary by B * sqrt((1 - 1/B) / n).
        #[test]
        fn bursts_have_the_given_means(seed: u64, mean_loss in 0.01f64..0.4, burst in 1.0f64..12.0) {
            let loss = BurstLoss::of_means(mean_loss, burst);
            prop_assume!(loss.is_some());
            let mut bursts = Bursts::new(&loss.unwrap(), Random::stream(seed, "test", 0));
            const PACKETS: u32 = 200_000;
            let (mut lost, mut runs, mut before) = (0u32, 0u32, false);
            for _ in 0..PACKETS {
                let now = bursts.loses();
                lost += u32::from(now);
                runs += u32::from(now && !before);
                before = now;
            }
            let runs = f64::from(runs);
            let mean = f64::from(lost) / runs;
            let error = burst * ((1.0 - 1.0 / burst) / runs).sqrt();
            prop_assert!((mean - burst).abs() <= 5.0 * error + 2.0 * burst / runs, "{mean} {burst}");
            // A two-state chain: the variance of its mean is that of independent packets times
            // (1 + c) / (1 - c), with the correlation c of neighbours.
            let c = 1.0 - loss.unwrap().good_to_bad - loss.unwrap().bad_to_good;
            let variance = mean_loss * (1.0 - mean_loss) / f64::from(PACKETS) * (1.0 + c) / (1.0 - c);
            let share = f64::from(lost) / f64::from(PACKETS);
            prop_assert!((share - mean_loss).abs() <= 5.0 * variance.sqrt() + 1e-5, "{share}");
        }
    }
}
