//! NewReno recovery as in Linux without SACK: the phases of RFC 6582 section 3.2, but each duplicate
//! ACK counts as a packet that has left the network, and PRR gives the window (RFC 6937).
//!
//! A phase ends when something above what was outstanding at its start is acknowledged: the ACK of
//! just that may have duplicates behind it.

use super::{duplicates::Duplicates, verdict::Verdict};
use crate::sender::{loss_detection::DUP_THRESH, tcb::Tcb};
use knee_cc::Phase;
use knee_net::NEVER;

#[derive(Default)]
pub(in crate::sender) struct NewRenoPrr {
    duplicates: Duplicates,
}

impl NewRenoPrr {
    pub(super) fn delivered_pkts(&mut self, tcb: &mut Tcb, advanced: u32) -> u32 {
        self.duplicates.hear(tcb, advanced);
        self.count_as_sacked(tcb);
        self.duplicates.delivered_pkts(tcb)
    }

    /// Duplicates stand for SACKs, but not while a timeout is repaired.
    fn count_as_sacked(&self, tcb: &mut Tcb) {
        let counts = matches!(tcb.phase(), Phase::Disorder | Phase::Cwr | Phase::Recovery);
        tcb.board.set_counted(if counts { self.duplicates.arrived_pkts } else { 0 });
    }

    pub(super) fn judge(
        &mut self,
        tcb: &mut Tcb,
        now_ns: u64,
        advanced: u32,
        acked_pkts: u32,
    ) -> Verdict {
        let (una, high) = (tcb.board.una(), tcb.reduction_end);
        let mut lost_pkts = 0;
        self.duplicates.count(advanced);
        match tcb.phase() {
            Phase::Recovery if una > high => tcb.end_reduction(now_ns),
            Phase::Recovery if advanced > 0 && una < high => {
                lost_pkts = tcb.board.mark_first_lost();
            }
            Phase::Loss if una > high => tcb.set_phase(Phase::Open),
            Phase::Recovery | Phase::Loss => {}
            _ if self.duplicates.count >= DUP_THRESH => {
                tcb.enter_recovery(now_ns);
                lost_pkts = tcb.board.mark_first_lost();
            }
            Phase::Cwr => {}
            _ if advanced > 0 => tcb.set_phase(Phase::Open),
            _ => tcb.set_phase(Phase::Disorder),
        }
        self.count_as_sacked(tcb);
        let holds_window = tcb.phase() == Phase::Recovery;
        if holds_window && acked_pkts > 0 {
            tcb.reduce_in_proportion(acked_pkts, advanced > 0 && lost_pkts == 0);
        }
        Verdict { holds_window, lost_pkts, reordering_due_ns: NEVER, repair: None }
    }

    pub(super) fn on_timeout(&mut self, tcb: &mut Tcb) {
        self.duplicates.count = 0;
        self.count_as_sacked(tcb);
    }
}
