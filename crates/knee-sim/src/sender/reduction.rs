//! A reduction of the window, from its beginning to its end: for a loss (RFC 5681 section 3.2) or for a
//! congestion mark (RFC 3168 section 6.1.2). The algorithm gives the threshold; proportional rate reduction
//! (see `prr`) or, in NewReno recovery, `recovery::newreno` moves the window there.
//!
//! One reduction per window: while one is under way, neither a mark nor a loss begins another. It is
//! taken back when it turns out to have been unnecessary (`undo`), and made without a recovery when a
//! probe has repaired the loss (`probe`).

use super::{probe::Probe, prr::Prr, tcb::Tcb, undo::Undo};
use crate::packet::Sack;
use knee_cc::{Event, Phase};

impl Tcb {
    /// An ACK echoes a congestion mark.
    #[cold]
    pub(super) fn on_echo(&mut self, now_ns: u64) {
        // There was congestion: a reduction in progress is kept (Linux).
        self.undo.pending_pkts = None;
        if matches!(self.phase(), Phase::Open | Phase::Disorder) {
            self.counters.ecn_reductions += 1;
            self.reduction_end = self.board.nxt();
            self.begin_reduction(now_ns);
            self.set_phase(Phase::Cwr);
        }
    }

    /// A loss was found: phase RECOVERY.
    pub(super) fn enter_recovery(&mut self, now_ns: u64) {
        // Once per window: a reduction for a mark continues as one for the loss, and ends where it
        // would have ended.
        if self.phase() != Phase::Cwr {
            self.allow_undo(true);
            self.reduction_end = self.board.nxt();
            self.begin_reduction(now_ns);
        }
        self.set_phase(Phase::Recovery);
    }

    /// Asks the algorithm for the threshold that the window is to reach.
    fn begin_reduction(&mut self, now_ns: u64) {
        self.counters.loss_events += 1;
        self.probe = None;
        self.prr = Prr::start(self.conn.cwnd_pkts);
        self.conn.cwnd_cnt = 0;
        self.refresh(now_ns);
        self.ask_ssthresh();
    }

    /// Asks the algorithm for the threshold and sets it.
    pub(super) fn ask_ssthresh(&mut self) {
        self.algorithm.ssthresh(&mut self.conn, &mut self.counters);
        self.cwr_pending = self.ecn;
    }

    /// An ACK delivered `acked_pkts` while the window approaches the threshold; `progress`: it advances and
    /// reports no further loss.
    pub(super) fn reduce_in_proportion(&mut self, acked_pkts: u32, progress: bool) {
        if self.owns_window {
            return;
        }
        let (pipe_pkts, ssthresh_pkts) = (self.board.in_network(), self.conn.ssthresh_pkts);
        let prr = &mut self.prr;
        self.conn.cwnd_pkts = prr.window(acked_pkts, pipe_pkts, ssthresh_pkts, progress);
    }

    /// The reduction has ended; without SACK, PRR may leave the window below the threshold.
    pub(super) fn end_reduction(&mut self, now_ns: u64) {
        if !self.owns_window {
            self.conn.cwnd_pkts = self.conn.ssthresh_pkts;
        }
        self.leave_recovery(now_ns);
    }

    /// The reduction has ended with the window as it is.
    pub(super) fn leave_recovery(&mut self, now_ns: u64) {
        if !self.owns_window {
            self.refresh(now_ns);
            self.algorithm.on_event(&mut self.conn, Event::Recovered);
        }
        self.set_phase(Phase::Open);
    }

    /// From here on D-SACKs count towards undoing the reduction that is about to be made, by a `fast`
    /// recovery or by a timeout.
    pub(super) fn allow_undo(&mut self, fast: bool) {
        self.undo = Undo::of(self.board.una, fast, self.conn.ssthresh_pkts);
    }

    /// A D-SACK: the retransmission of segment `number` was unnecessary.
    pub(super) fn on_duplicate_report(&mut self, number: u32) {
        if !self.undo.is_proven_by(number) {
            return;
        }
        if self.undo.fast {
            // The packets taken for lost were late. RFC 8985 section 6.2, step 3, detects that only if
            // nothing was retransmitted; without this line, a path that always delays by more than three
            // packets would never be known to reorder.
            self.board.rack.reordered = true;
        }
        self.take_back();
    }

    /// The latest reduction was unnecessary.
    pub(super) fn take_back(&mut self) {
        self.counters.undos += 1;
        self.algorithm.undo(&mut self.conn);
        self.conn.ssthresh_pkts = self.conn.ssthresh_pkts.max(self.undo.prior_ssthresh_pkts);
        self.board.forget_losses();
        self.set_phase(Phase::Open);
    }

    /// Section 7.4: finds whether a probe has repaired a loss, which then reduces the window.
    #[cold]
    pub(super) fn on_probe_answered(
        &mut self,
        probe: Probe,
        cumulative: u32,
        sack: &Sack,
        advanced: u32,
    ) {
        if cumulative < probe.end {
            return;
        }
        if probe.is_answered_by(cumulative, sack, advanced) {
            self.probe = None;
        }
        // For a mark, which a loss may have joined since the probe left.
        let reducing = matches!(self.phase(), Phase::Cwr | Phase::Recovery);
        if probe.is_repair_by(cumulative, sack) && !reducing {
            self.counters.loss_events += 1;
            self.conn.cwnd_cnt = 0;
            self.ask_ssthresh();
            if self.owns_window {
                return;
            }
            self.set_phase(Phase::Cwr);
            self.conn.cwnd_pkts = self.conn.ssthresh_pkts;
            self.algorithm.on_event(&mut self.conn, Event::Recovered);
            self.set_phase(Phase::Open);
        }
    }
}
