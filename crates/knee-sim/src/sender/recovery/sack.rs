//! Recovery with SACK: RACK finds the losses (RFC 8985, see `loss_detection`), PRR gives the window
//! (RFC 6937), and holes are filled in order (RFC 6675 section 5).
//!
//! `freebsd7`: the window is that of FreeBSD 7 instead. It counts the packets sent since the recovery began:
//! one at first, and one more for each ACK while fewer packets than the threshold are in the network. It ends
//! at min(threshold, flight + 1), RFC 6582's rule against bursts.

use super::verdict::Verdict;
use crate::sender::{
    loss_detection::{Losses, ReoWnd},
    tcb::Tcb,
};
use knee_cc::Phase;

pub(in crate::sender) struct Sack {
    reo_wnd: ReoWnd,
    freebsd7: bool,
    /// `freebsd7`, in recovery: packets that may be in the network beyond the window.
    inflation_pkts: i32,
}

impl Sack {
    pub(super) fn new(freebsd7: bool) -> Self {
        Self { reo_wnd: ReoWnd::new(), freebsd7, inflation_pkts: 0 }
    }

    #[inline]
    pub(super) fn inflation_pkts(&self, phase: Phase) -> i32 {
        if phase == Phase::Recovery { self.inflation_pkts } else { 0 }
    }

    /// The window after an ACK in recovery, which may have begun with it.
    fn set_window(&mut self, tcb: &mut Tcb, began: bool, acked_pkts: u32, progress: bool) {
        if !self.freebsd7 {
            tcb.reduce_in_proportion(acked_pkts, progress);
        } else if !tcb.owns_window {
            let pipe_pkts = tcb.board.in_network();
            let mut allowed_pkts = 1;
            if began {
                tcb.conn.cwnd_pkts = 1;
            } else if pipe_pkts < tcb.conn.ssthresh_pkts && acked_pkts > 0 {
                tcb.conn.cwnd_pkts = (tcb.conn.cwnd_pkts + 1).min(tcb.conn.ssthresh_pkts);
            } else {
                allowed_pkts = 0;
            }
            self.inflation_pkts = (pipe_pkts + allowed_pkts) as i32 - tcb.conn.cwnd_pkts as i32;
        }
    }

    fn end_recovery(&mut self, tcb: &mut Tcb, now_ns: u64) {
        if self.freebsd7 && !tcb.owns_window {
            let flight_pkts = tcb.board.outstanding();
            tcb.conn.cwnd_pkts = tcb.conn.ssthresh_pkts.min(flight_pkts + 1);
            tcb.leave_recovery(now_ns);
        } else {
            tcb.end_reduction(now_ns);
        }
        self.reo_wnd.recovery_ended();
    }

    /// The receiver reports a segment that arrived twice (D-SACK, RFC 2883).
    pub(in crate::sender) fn on_duplicate_report(&mut self, tcb: &Tcb) {
        self.reo_wnd.widen(&tcb.board);
    }

    fn reo_wnd_ns(&self, tcb: &Tcb) -> u64 {
        self.reo_wnd.tolerance_ns(&tcb.board, tcb.phase(), tcb.rtt.srtt_ns)
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
        let reached = tcb.board.una >= tcb.reduction_end;
        match tcb.phase() {
            Phase::Recovery if reached => self.end_recovery(tcb, now_ns),
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
        let before = tcb.phase();
        enter_if_lost(tcb, now_ns, losses);
        let holds_window = tcb.phase() == Phase::Recovery;
        if holds_window && acked_pkts > 0 {
            let progress = advanced > 0 && losses.marked_pkts == 0;
            self.set_window(tcb, before != Phase::Recovery, acked_pkts, progress);
        }
        Verdict {
            holds_window,
            lost_pkts: losses.marked_pkts,
            reordering_due_ns: losses.next_ns,
            repair: None,
        }
    }

    /// A segment was not delivered in time (RFC 8985 section 6.3). Returns the time at which the next one
    /// will be lost unless it is delivered; or [`knee_net::NEVER`].
    pub(in crate::sender) fn on_reordering_timer(&mut self, tcb: &mut Tcb, now_ns: u64) -> u64 {
        let losses = tcb.board.mark_lost(now_ns, self.reo_wnd_ns(tcb));
        let before = tcb.phase();
        enter_if_lost(tcb, now_ns, losses);
        if before != Phase::Recovery && tcb.phase() == Phase::Recovery {
            // Nothing has been delivered: the repair leaves, and the packets that the next ACK would release
            // do not.
            self.set_window(tcb, true, 0, false);
        } else if self.freebsd7 && before == Phase::Recovery {
            self.set_window(tcb, false, 0, false);
        }
        losses.next_ns
    }
}

/// Begins a recovery if there is a loss, and none before it that is still being repaired.
fn enter_if_lost(tcb: &mut Tcb, now_ns: u64, losses: Losses) {
    match tcb.phase() {
        Phase::Loss if !losses.again => return,
        Phase::Recovery => return,
        _ => {}
    }
    if tcb.board.lost > 0 {
        tcb.enter_recovery(now_ns);
    } else if tcb.phase() != Phase::Cwr {
        let suspicious = tcb.board.sacked > 0;
        tcb.set_phase(if suspicious { Phase::Disorder } else { Phase::Open });
    }
}
