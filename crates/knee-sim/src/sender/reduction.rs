//! A reduction of the window, from its beginning to its end: for a loss (RFC 5681 section 3.2) or for
//! a congestion mark (RFC 3168 section 6.1.2). The algorithm gives the threshold; proportional rate
//! reduction (see `prr`) or, in NewReno recovery, `recovery::newreno` brings the window there.
//!
//! One reduction per window: while one is under way, neither a mark nor a loss begins another.

use super::{prr::Prr, tcb::Tcb};
use knee_cc::{Event, Phase};

/// The reduction under way, or the latest.
#[derive(Default)]
pub(super) struct Reduction {
    pub prr: Prr,
    /// Phases RECOVERY and LOSS end when this segment is reached, CWR when it is exceeded.
    pub high: u32,
}

impl Tcb {
    /// An ACK echoes a congestion mark.
    #[cold]
    pub(super) fn on_echo(&mut self, now_ns: u64) {
        // There was congestion: a reduction in progress is kept (Linux).
        self.undo.forbid();
        if matches!(self.phase(), Phase::Open | Phase::Disorder) {
            self.counters.ecn_reductions += 1;
            self.reduction.high = self.board.nxt();
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
            self.reduction.high = self.board.nxt();
            self.begin_reduction(now_ns);
        }
        self.set_phase(Phase::Recovery);
    }

    /// Asks for the threshold that the window is to be brought to.
    fn begin_reduction(&mut self, now_ns: u64) {
        self.counters.loss_events += 1;
        self.probe = None;
        self.reduction.prr = Prr::start(self.conn.cwnd_pkts);
        self.conn.cwnd_cnt = 0;
        self.refresh(now_ns);
        self.ask_ssthresh();
    }

    /// Asks the algorithm for the threshold and sets it.
    pub(super) fn ask_ssthresh(&mut self) {
        self.algorithm.ssthresh(&mut self.conn, &mut self.counters);
        self.cwr_pending = self.ecn;
    }

    /// An ACK delivered `acked_pkts` while the window is brought to the threshold; `progress`: it
    /// advances and reports no further loss.
    pub(super) fn reduce_in_proportion(&mut self, acked_pkts: u32, progress: bool) {
        if self.owns_window {
            return;
        }
        let (pipe_pkts, ssthresh_pkts) = (self.board.in_network(), self.conn.ssthresh_pkts);
        let prr = &mut self.reduction.prr;
        self.conn.cwnd_pkts = prr.window(acked_pkts, pipe_pkts, ssthresh_pkts, progress);
    }

    /// The reduction has come to its end; without SACK, PRR may leave the window below the threshold.
    pub(super) fn end_reduction(&mut self, now_ns: u64) {
        if !self.owns_window {
            self.conn.cwnd_pkts = self.conn.ssthresh_pkts;
        }
        self.leave_recovery(now_ns);
    }

    /// The reduction has come to its end with the window as it is.
    pub(super) fn leave_recovery(&mut self, now_ns: u64) {
        if !self.owns_window {
            self.refresh(now_ns);
            self.algorithm.on_event(&mut self.conn, Event::Recovered);
        }
        self.set_phase(Phase::Open);
    }
}
