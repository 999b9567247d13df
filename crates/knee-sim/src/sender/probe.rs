//! Tail loss probe (RFC 8985 section 7): with no ACK for two round trips a probe is sent, so that its
//! ACK reveals a loss at the tail before the retransmission timer does.

use crate::packet::{NONE, Sack};
use knee_model::NS_PER_MS;

/// Longest delay of the ACK of a lone segment at a receiver (section 7.2, `TLP.max_ack_delay`).
const MAX_ACK_DELAY_NS: u64 = 200 * NS_PER_MS;

/// A probe that is not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    /// `TLP.end_seq`.
    pub end: u32,
    /// `TLP.is_retrans`.
    pub retransmitted: bool,
}

/// The probe timeout (section 7.2); `alone`: only one segment is outstanding.
#[inline]
pub(super) fn timeout_ns(srtt_ns: u64, alone: bool) -> u64 {
    2 * srtt_ns + if alone { MAX_ACK_DELAY_NS } else { 0 }
}

impl Probe {
    /// The ACK reports the probe itself as a duplicate: the original had arrived.
    fn is_reported_by(self, sack: &Sack) -> bool {
        sack.duplicate != NONE && sack.duplicate + 1 == self.end
    }

    /// Returns whether the ACK reveals the fate of the probe; `advanced`: segments it newly acknowledges.
    pub(super) fn is_answered_by(self, cumulative: u32, sack: &Sack, advanced: u32) -> bool {
        let duplicate = advanced == 0 && !sack.has_blocks();
        let beyond = cumulative > self.end;
        !self.retransmitted || self.is_reported_by(sack) || beyond || duplicate
    }

    /// Returns whether it shows that the probe was needed: it acknowledges more, and no duplicate.
    pub(super) fn is_repair_by(self, cumulative: u32, sack: &Sack) -> bool {
        self.retransmitted && cumulative > self.end && !self.is_reported_by(sack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    /// Section 7.2: two round trips; the delay of an ACK on top where nothing else would cause one.
    #[test]
    fn a_probe_waits_two_round_trips() {
        assert_eq!(timeout_ns(40 * NS_PER_MS, false), 80 * NS_PER_MS);
        assert_eq!(timeout_ns(40 * NS_PER_MS, true), 280 * NS_PER_MS);
    }

    /// Section 7.4.2, of a probe that is segment 9 again: beyond it without a report, the original
    /// was lost; reported, or acknowledged twice, it was not; at its end nothing is known yet.
    #[test]
    fn the_ack_of_a_probe_reveals_its_fate() {
        let again = Probe { end: 10, retransmitted: true };
        let told = |cumulative, duplicate, advanced| {
            let sack = Sack { duplicate, ..Sack::NOTHING };
            (
                again.is_answered_by(cumulative, &sack, advanced),
                again.is_repair_by(cumulative, &sack),
            )
        };
        assert_eq!(told(10, NONE, 3), (false, false));
        assert_eq!(told(11, NONE, 3), (true, true));
        assert_eq!(told(11, 9, 3), (true, false));
        assert_eq!(told(10, 9, 0), (true, false));
        assert_eq!(told(10, NONE, 0), (true, false));
        assert_eq!(told(11, 5, 3), (true, true), "a report of another segment");
        // A new segment repairs nothing.
        let new = Probe { end: 10, retransmitted: false };
        assert!(new.is_answered_by(10, &Sack::NOTHING, 3) && !new.is_repair_by(11, &Sack::NOTHING));
    }
}
