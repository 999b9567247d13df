//! Recovery with SACK: RACK finds the losses (RFC 8985, see `loss_detection`), PRR gives the window
//! (RFC 6937), and holes are filled in order (RFC 6675 section 5).

use super::Verdict;
use crate::sender::{
    loss_detection::{Losses, ReoWnd},
    tcb::Tcb,
};
use knee_cc::Phase;

pub(in crate::sender) struct Sack {
    reo_wnd: ReoWnd,
}

impl Sack {
    pub(super) fn new() -> Self {
        Self { reo_wnd: ReoWnd::new() }
    }

    /// The receiver reports a segment that arrived twice (D-SACK, RFC 2883).
    pub(in crate::sender) fn on_duplicate_report(&mut self, tcb: &Tcb) {
        self.reo_wnd.widen(&tcb.board);
    }

    fn reo_wnd_ns(&self, tcb: &Tcb) -> u64 {
        self.reo_wnd.tolerance_ns(&tcb.board, tcb.phase(), tcb.rtt.srtt_ns())
    }

    pub(super) fn patience_ns(&self, tcb: &Tcb) -> u64 {
        tcb.board.patience_ns(self.reo_wnd_ns(tcb))
    }

    #[inline(never)]
    pub(super) fn judge(
        &mut self,
        tcb: &mut Tcb,
        now_ns: u64,
        advanced: u32,
        acked_pkts: u32,
    ) -> Verdict {
        let reached = tcb.board.una() >= tcb.reduction.high;
        match tcb.phase() {
            Phase::Recovery if reached => {
                tcb.end_reduction(now_ns);
                self.reo_wnd.recovery_ended();
            }
            Phase::Loss if reached => {
                tcb.set_phase(Phase::Open);
                self.reo_wnd.recovery_ended();
            }
            _ => {}
        }
        let losses = if tcb.board.may_have_lost() {
            tcb.board.mark_lost(now_ns, self.reo_wnd_ns(tcb))
        } else {
            Losses::NONE
        };
        enter_if_lost(tcb, now_ns, losses);
        let holds_window = tcb.phase() == Phase::Recovery;
        if holds_window && acked_pkts > 0 {
            tcb.reduce_in_proportion(acked_pkts, advanced > 0 && losses.marked_pkts == 0);
        }
        Verdict {
            holds_window,
            lost_pkts: losses.marked_pkts,
            reordering_due_ns: losses.next_ns,
            repair: None,
        }
    }

    /// A segment was not delivered in time (RFC 8985 section 6.3). Gives when the next one will be
    /// lost unless it is; or [`knee_net::NEVER`].
    pub(in crate::sender) fn on_reordering_timer(&mut self, tcb: &mut Tcb, now_ns: u64) -> u64 {
        let losses = tcb.board.mark_lost(now_ns, self.reo_wnd_ns(tcb));
        let before = tcb.phase();
        enter_if_lost(tcb, now_ns, losses);
        if before != Phase::Recovery && tcb.phase() == Phase::Recovery {
            tcb.reduce_in_proportion(1, false);
        }
        losses.next_ns
    }
}

/// Begins a recovery where there is a loss, and none before it that is still being repaired.
fn enter_if_lost(tcb: &mut Tcb, now_ns: u64, losses: Losses) {
    match tcb.phase() {
        Phase::Loss if !losses.again => return,
        Phase::Recovery => return,
        _ => {}
    }
    if tcb.board.lost() > 0 {
        tcb.enter_recovery(now_ns);
    } else if tcb.phase() != Phase::Cwr {
        let suspicious = tcb.board.sacked() > 0;
        tcb.set_phase(if suspicious { Phase::Disorder } else { Phase::Open });
    }
}
