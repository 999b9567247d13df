//! NewReno recovery (RFC 6582) in its impatient variant, with the "careful" check of `recover` and
//! limited transmit (RFC 3042).
//!
//! Here `cwnd` is the deflated window; the inflation by duplicate ACKs stands beside it.

use super::{Verdict, duplicates::Duplicates};
use crate::sender::{loss_detection::DUP_THRESH, tcb::Tcb};
use knee_cc::Phase;

#[derive(Default)]
pub(in crate::sender) struct NewReno {
    duplicates: Duplicates,
    /// `recover`: no fast retransmit unless more than this was acknowledged.
    recover: Option<u32>,
    /// Packets that duplicate ACKs allow beyond cwnd (RFC 6582, RFC 3042); below 0 after a partial
    /// ACK whose duplicates were lost.
    inflation_pkts: i32,
    /// A partial ACK has restarted the timer in this recovery.
    partial_acked: bool,
}

impl NewReno {
    pub(super) fn delivered_pkts(&mut self, tcb: &Tcb, advanced: u32) -> u32 {
        self.duplicates.hear(tcb, advanced);
        self.duplicates.delivered_pkts(tcb)
    }

    #[inline]
    pub(super) fn inflation_pkts(&self) -> i32 {
        self.inflation_pkts
    }

    /// RFC 6582 section 3.2, by its steps.
    pub(super) fn judge(&mut self, tcb: &mut Tcb, now_ns: u64, advanced: u32) -> Verdict {
        self.duplicates.count(advanced);
        if advanced > 0 {
            let repair = self.on_advance(tcb, now_ns, advanced);
            let holds_window = tcb.phase() == Phase::Recovery;
            return Verdict { holds_window, repair, ..Verdict::CALM };
        }
        let repair = self.on_duplicate(tcb, now_ns);
        Verdict { holds_window: true, repair, ..Verdict::CALM }
    }

    fn on_advance(&mut self, tcb: &mut Tcb, now_ns: u64, advanced: u32) -> Option<u32> {
        let (una, high) = (tcb.board.una(), tcb.reduction.high);
        match tcb.phase() {
            Phase::Recovery if una >= high => {
                // Step 3, full acknowledgement, the burst-avoiding form.
                let flight_pkts = tcb.board.outstanding().max(1);
                tcb.conn.cwnd_pkts = tcb.conn.ssthresh_pkts.min(flight_pkts + 1);
                self.inflation_pkts = 0;
                tcb.leave_recovery(now_ns);
            }
            Phase::Recovery => {
                // Step 3, partial acknowledgement: repair the next hole, deflate.
                tcb.conn.cwnd_pkts = tcb.conn.ssthresh_pkts;
                self.inflation_pkts += 1 - advanced as i32;
                return Some(una);
            }
            Phase::Loss if una < high => {}
            Phase::Cwr => self.inflation_pkts = 0,
            _ => {
                self.inflation_pkts = 0;
                tcb.set_phase(Phase::Open);
            }
        }
        None
    }

    fn on_duplicate(&mut self, tcb: &mut Tcb, now_ns: u64) -> Option<u32> {
        let una = tcb.board.una();
        match tcb.phase() {
            Phase::Recovery => {
                // Step 2: each duplicate means that a packet has left. The algorithm may have moved
                // its threshold meanwhile.
                tcb.conn.cwnd_pkts = tcb.conn.ssthresh_pkts;
                self.inflation_pkts += 1;
            }
            Phase::Loss => {}
            _ if self.duplicates.count >= DUP_THRESH && self.recover.is_none_or(|r| una > r) => {
                // Step 2, entering.
                tcb.enter_recovery(now_ns);
                self.partial_acked = false;
                self.recover = Some(tcb.reduction.high);
                tcb.conn.cwnd_pkts = tcb.conn.ssthresh_pkts;
                self.inflation_pkts = DUP_THRESH as i32;
                return Some(una);
            }
            phase => {
                if phase != Phase::Cwr {
                    tcb.set_phase(Phase::Disorder);
                }
                // RFC 3042: the first two duplicates each allow one new packet.
                let allowed_pkts = self.duplicates.count.min(DUP_THRESH - 1);
                self.inflation_pkts = if tcb.limited_transmit { allowed_pkts as i32 } else { 0 };
            }
        }
        None
    }

    /// Step 4; `high`: end of what was sent.
    pub(super) fn on_timeout(&mut self, high: u32) {
        self.recover = Some(high);
        self.duplicates.count = 0;
        self.inflation_pkts = 0;
    }

    /// Section 4, the impatient variant: only the first partial ACK restarts the timer.
    #[inline]
    pub(super) fn restarts_timer(&mut self, phase: Phase) -> bool {
        phase != Phase::Recovery || !std::mem::replace(&mut self.partial_acked, true)
    }
}
