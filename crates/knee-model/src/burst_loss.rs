//! Loss in bursts: the model of Gilbert and Elliott.

use serde::{Deserialize, Serialize};

/// A loss process with a good and a bad state (Gilbert 1960, Elliott 1963). With each packet the
/// state changes, or does not; then the packet is lost with the probability of the state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BurstLoss {
    /// Probability that a packet finds the state bad if the one before it found it good.
    pub good_to_bad: f64,
    /// Probability that a packet finds the state good if the one before it found it bad; > 0.
    pub bad_to_good: f64,
    /// Probability of a loss in the good state.
    pub loss_good: f64,
    /// Probability of a loss in the bad state.
    pub loss_bad: f64,
}

impl BurstLoss {
    /// The process that loses `mean_loss` (0 < p < 1) of all packets in runs of `mean_burst_pkts`
    /// (>= 1) on average: all packets in the bad state and none in the good one. None if no process
    /// has so short bursts: between two of them lies at least one packet that is not lost.
    pub fn of_means(mean_loss: f64, mean_burst_pkts: f64) -> Option<Self> {
        let bad_to_good = 1.0 / mean_burst_pkts;
        // Share of the bad state: good_to_bad / (good_to_bad + bad_to_good) = mean_loss.
        let good_to_bad = bad_to_good * mean_loss / (1.0 - mean_loss);
        // The shortest bursts may come out a little above 1.
        let possible = bad_to_good <= 1.0 && good_to_bad <= 1.0 + 1e-12;
        let good_to_bad = good_to_bad.min(1.0);
        possible.then_some(Self { good_to_bad, bad_to_good, loss_good: 0.0, loss_bad: 1.0 })
    }

    /// Share of all packets that find the state bad.
    pub fn bad_share(&self) -> f64 {
        match self.good_to_bad + self.bad_to_good {
            0.0 => 0.0,
            sum => self.good_to_bad / sum,
        }
    }

    /// Share of all packets that is lost.
    pub fn mean_loss(&self) -> f64 {
        let bad = self.bad_share();
        bad * self.loss_bad + (1.0 - bad) * self.loss_good
    }
}
