//! What duplicate ACKs tell where there is no SACK (RFC 5681 section 3.2): each, that one more packet
//! beyond the hole has arrived.

use crate::sender::tcb::Tcb;
use knee_cc::Phase;

#[derive(Default)]
pub(super) struct Duplicates {
    /// In a row.
    pub count: u32,
    /// Packets above the first hole that have arrived, as duplicates say.
    pub arrived_pkts: u32,
}

impl Duplicates {
    /// An ACK advanced by so many segments: one of them fills the hole, the rest had arrived.
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

    /// What the ACK delivered: of what it covers, duplicates have told some already. (Counted
    /// whole, a full ACK would be worth a window of growth.)
    pub(super) fn delivered_pkts(&self, tcb: &Tcb) -> u32 {
        let delivered_pkts = u64::from(tcb.board.una()) + u64::from(self.arrived_pkts);
        delivered_pkts.saturating_sub(tcb.delivered_pkts) as u32
    }

    /// Counts an ACK that advanced by so many segments.
    pub(super) fn count(&mut self, advanced: u32) {
        self.count = if advanced > 0 { 0 } else { self.count + 1 };
    }
}
