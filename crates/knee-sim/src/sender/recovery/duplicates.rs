//! Information from duplicate ACKs without SACK (RFC 5681 section 3.2): each one shows that one more packet
//! beyond the hole has arrived.

use crate::sender::tcb::Tcb;
use knee_cc::Phase;

#[derive(Default)]
pub(super) struct Duplicates {
    /// Duplicate ACKs in a row.
    pub count: u32,
    /// Packets above the first hole that have arrived, by the number of duplicates.
    pub arrived_pkts: u32,
}

impl Duplicates {
    /// An ACK advanced by `advanced` segments: one of them fills the hole, the rest had arrived.
    pub(super) fn hear(&mut self, tcb: &Tcb, advanced: u32) {
        self.arrived_pkts = match advanced {
            // The timer's retransmissions may themselves be duplicates.
            0 if tcb.phase() == Phase::Loss => self.arrived_pkts,
            0 => self.arrived_pkts + 1,
            _ => self.arrived_pkts.saturating_sub(advanced - 1),
        };
        let most_pkts = tcb.board.outstanding().saturating_sub(1);
        self.arrived_pkts = self.arrived_pkts.min(most_pkts);
    }

    /// Packets delivered by the ACK: duplicates have already reported part of the range that it covers.
    /// (Counted whole, a full ACK would be worth a window of growth.)
    pub(super) fn delivered_pkts(&self, tcb: &Tcb) -> u32 {
        let delivered_pkts = u64::from(tcb.board.una) + u64::from(self.arrived_pkts);
        delivered_pkts.saturating_sub(tcb.delivered_pkts) as u32
    }

    /// Counts an ACK that advanced by `advanced` segments.
    pub(super) fn count(&mut self, advanced: u32) {
        self.count = if advanced > 0 { 0 } else { self.count + 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_cc::Params;
    use knee_model::{Random, TcpOptions};

    /// 5 outstanding, the first lost: 3 duplicates, then an ACK of 3. The hole and 2 that had arrived are
    /// covered, one remains above.
    #[test]
    fn duplicates_tell_of_arrivals_above_the_hole() {
        let params = Params::defaults(knee_cc::algorithm("newreno").expect("registered"));
        let mut random = Random::stream(1, "test", 0);
        let mut tcb = Tcb::new(params, &TcpOptions::default(), 0, &mut random, false);
        (0..5).for_each(|_| _ = tcb.board.push(0));
        let mut duplicates = Duplicates::default();
        let mut hear = |tcb: &mut Tcb, cumulative| {
            let advanced = cumulative - tcb.board.una;
            tcb.board.acknowledge(cumulative, 1);
            duplicates.hear(tcb, advanced);
            let delivered_pkts = duplicates.delivered_pkts(tcb);
            tcb.delivered_pkts += u64::from(delivered_pkts);
            (duplicates.arrived_pkts, delivered_pkts)
        };
        assert_eq!([0, 0, 0].map(|ack| hear(&mut tcb, ack)), [(1, 1), (2, 1), (3, 1)]);
        assert_eq!(hear(&mut tcb, 3), (1, 1));
        // No more can have arrived than lies above the hole: 4 only, and that is known.
        assert_eq!([3, 3].map(|ack| hear(&mut tcb, ack)), [(1, 0), (1, 0)]);
        // While a timeout is repaired, duplicates tell nothing.
        tcb.set_phase(Phase::Loss);
        tcb.board.push(0);
        assert_eq!(hear(&mut tcb, 3), (1, 0));
        assert_eq!(hear(&mut tcb, 6), (0, 2));
    }
}
