//! The sender's timer: retransmission timeout (RFC 6298 section 5), reordering (RFC 8985 section 6.3)
//! and tail loss probe (RFC 8985 section 7.3). One timer serves all three: at most one is armed.

use super::{Sender, Timer, Transmit, probe, probe::Probe, recovery::Recovery};
use knee_cc::{Event, Phase};
use knee_net::NEVER;

impl Sender {
    /// Sets the timer for a timeout, or for a probe that comes first (RFC 8985 section 7.2).
    #[inline(always)]
    pub(super) fn arm(&mut self, now_ns: u64) {
        let tcb = &self.tcb;
        let in_probe_phase = [Phase::Open as u8, Phase::Cwr as u8].contains(&tcb.conn.phase);
        let may_probe = self.recovery.is_sack() && in_probe_phase;
        let srtt_ns = tcb.rtt.srtt_ns;
        if may_probe && srtt_ns > 0 {
            let pto_ns = probe::timeout_ns(srtt_ns, tcb.board.outstanding() == 1);
            // Backoff, which would only postpone the timeout, need not be considered.
            if pto_ns < tcb.rtt.rto_ns {
                (self.timer, self.timer_due_ns) = (Timer::Probe, now_ns + pto_ns);
                return;
            }
        }
        self.arm_rto(now_ns);
    }

    #[inline]
    pub(super) fn arm_rto(&mut self, now_ns: u64) {
        let due_ns = now_ns + self.tcb.rtt.backed_off_rto_ns();
        (self.timer, self.timer_due_ns) = (Timer::Timeout, due_ns);
    }

    /// Sets the timer after an ACK that advanced by `advanced` segments (RFC 6298 sections 5.2 and 5.3). A
    /// segment will be lost at `reordering_due_ns`, unless that is [`NEVER`].
    #[inline(always)]
    pub(super) fn rearm(&mut self, now_ns: u64, advanced: u32, reordering_due_ns: u64) {
        if self.tcb.board.outstanding() == 0 {
            self.timer_due_ns = NEVER;
        } else if reordering_due_ns != NEVER {
            (self.timer, self.timer_due_ns) = (Timer::Reordering, reordering_due_ns);
        } else if self.timer == Timer::Reordering
            || advanced > 0 && self.recovery.restarts_timer(self.tcb.phase())
        {
            self.arm(now_ns);
        }
    }

    /// The timer expired.
    pub(crate) fn on_timer(&mut self, now_ns: u64, out: &mut impl Transmit) {
        self.timer_due_ns = NEVER;
        if self.tcb.board.outstanding() == 0 {
            return;
        }
        self.note_app_limit();
        match self.timer {
            Timer::Timeout => self.on_timeout(now_ns, out),
            Timer::Reordering => self.on_reordering_timer(now_ns, out),
            Timer::Probe => self.send_probe(now_ns, out),
        }
    }

    fn on_reordering_timer(&mut self, now_ns: u64, out: &mut impl Transmit) {
        // Only SACK recovery arms it.
        let Recovery::Sack(sack) = &mut self.recovery else { return };
        let next_ns = sack.on_reordering_timer(&mut self.tcb, now_ns);
        if next_ns == NEVER {
            self.arm_rto(now_ns);
        } else {
            (self.timer, self.timer_due_ns) = (Timer::Reordering, next_ns);
        }
        self.send(now_ns, out);
    }

    /// RFC 8985 section 7.3: a new segment if there is one, else the last one again.
    fn send_probe(&mut self, now_ns: u64, out: &mut impl Transmit) {
        if self.tcb.probe.is_none() {
            let retransmitted = self.tcb.board.nxt() >= self.sendable_end();
            if retransmitted {
                self.retransmit(self.tcb.board.nxt() - 1, now_ns, out);
            } else {
                self.note_sending(self.tcb.board.nxt(), now_ns);
                self.send_new(now_ns, out);
            }
            self.tcb.probe = Some(Probe { end: self.tcb.board.nxt(), retransmitted });
        }
        self.arm_rto(now_ns);
    }

    /// RFC 6298 sections 5.4 to 5.6, RFC 5681 section 3.1: the window starts again at one packet.
    pub(super) fn on_timeout(&mut self, now_ns: u64, out: &mut impl Transmit) {
        let tcb = &mut self.tcb;
        tcb.counters.timeouts += 1;
        // One reduction per window: not again for a segment that the timer has sent before (RFC 5681 section
        // 3.1), or of a window that fast recovery is repairing (Linux). A loss further on while a timeout is
        // repaired is another loss.
        let una = tcb.board.una;
        let reduces = match tcb.phase() {
            Phase::Open | Phase::Disorder => true,
            Phase::Cwr | Phase::Recovery => una >= tcb.reduction_end,
            Phase::Loss => una > tcb.timed_out,
        };
        let again = match tcb.phase() {
            Phase::Open | Phase::Disorder | Phase::Cwr => false,
            Phase::Recovery => true,
            Phase::Loss => reduces,
        };
        tcb.timed_out = una;
        if reduces {
            tcb.allow_undo(false);
            tcb.refresh(now_ns);
            tcb.ask_ssthresh();
            tcb.algorithm.on_event(&mut tcb.conn, Event::Rto);
        }
        let patience_ns = self.recovery.patience_ns(tcb);
        tcb.board.mark_timed_out(now_ns, patience_ns);
        tcb.probe = None;
        tcb.set_phase(Phase::Loss);
        tcb.reduction_end = tcb.board.nxt();
        self.recovery.on_timeout(tcb, again);
        // Everything else in the network was sent too lately to be lost.
        tcb.conn.cwnd_pkts = tcb.board.in_network() + 1;
        tcb.conn.cwnd_cnt = 0;
        tcb.rtt.backoffs += 1;
        self.arm_rto(now_ns);
        self.send(now_ns, out);
    }
}
