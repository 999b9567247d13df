//! Loss of the packets that a list names, for tests of repairs.

use crate::Bursts;
use std::collections::BTreeSet;

/// The loss of listed packets, by their places in the order in which a link is offered packets, from 0.
#[derive(Clone, Debug, Default)]
pub struct ScriptedLoss {
    lost: BTreeSet<u64>,
    offered_pkts: u64,
}

impl ScriptedLoss {
    /// The loss of the packets at these places.
    pub fn new(lost: impl IntoIterator<Item = u64>) -> Self {
        Self { lost: lost.into_iter().collect(), offered_pkts: 0 }
    }

    /// Returns whether the next packet is lost.
    pub fn loses(&mut self) -> bool {
        self.offered_pkts += 1;
        self.lost.contains(&(self.offered_pkts - 1))
    }
}

/// Loss that depends on the packets before.
pub(crate) enum LossProcess {
    Bursts(Bursts),
    Script(ScriptedLoss),
}

impl LossProcess {
    /// Returns whether the next packet is lost.
    pub(crate) fn loses(&mut self) -> bool {
        match self {
            Self::Bursts(bursts) => bursts.loses(),
            Self::Script(script) => script.loses(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_packets_are_lost() {
        let mut script = ScriptedLoss::new([1, 4]);
        let lost: Vec<bool> = (0..6).map(|_| script.loses()).collect();
        assert_eq!(lost, [false, true, false, false, true, false]);
    }
}
