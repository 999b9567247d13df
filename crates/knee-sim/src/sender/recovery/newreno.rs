//! NewReno recovery (RFC 6582) in its impatient variant, with the "careful" check of `recover` and
//! limited transmit (RFC 3042).
//!
//! Here `cwnd` is the deflated window; the inflation by duplicate ACKs is kept separately.

use super::{duplicates::Duplicates, verdict::Verdict};
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
            return Verdict { holds_window, repair, ..Verdict::NOTHING };
        }
        let repair = self.on_duplicate(tcb, now_ns);
        Verdict { holds_window: true, repair, ..Verdict::NOTHING }
    }

    fn on_advance(&mut self, tcb: &mut Tcb, now_ns: u64, advanced: u32) -> Option<u32> {
        let (una, high) = (tcb.board.una, tcb.reduction_end);
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
        let una = tcb.board.una;
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
                self.recover = Some(tcb.reduction_end);
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

    /// Step 4; `high`: end of the sent segments.
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

#[cfg(test)]
mod tests {
    use super::*;
    use knee_cc::Params;
    use knee_model::{Random, TcpOptions};

    /// A window of 20, all of it outstanding.
    fn tcb(limited_transmit: bool) -> Tcb {
        let params = Params::defaults(knee_cc::algorithm("newreno").expect("registered"));
        let options =
            TcpOptions { limited_transmit, initial_window_pkts: 20, ..TcpOptions::default() };
        let mut tcb = Tcb::new(params, &options, 0, &mut Random::stream(1, "test", 0), false);
        (0..20).for_each(|_| _ = tcb.board.push(0));
        tcb
    }

    /// Inflation, window, segment to repair, phase.
    type State = (i32, u32, Option<u32>, Phase);

    /// An ACK of everything below `cumulative`.
    fn hear(newreno: &mut NewReno, tcb: &mut Tcb, cumulative: u32) -> State {
        let advanced = cumulative - tcb.board.una;
        tcb.board.acknowledge(cumulative, 1);
        let verdict = newreno.judge(tcb, 1, advanced);
        (newreno.inflation_pkts(), tcb.conn.cwnd_pkts, verdict.repair, tcb.phase())
    }

    /// RFC 6582 section 3.2 with 0 and 5 lost. Step 2: the third duplicate halves the flight of 20 and
    /// adds 3; each further one adds 1. Step 3, partial: 4 + 1 - 5 = 0 beyond 10, 5 is repaired. Step 3,
    /// full: nothing is in flight, min(10, 1 + 1).
    #[test]
    fn a_recovery_by_its_steps() {
        let (mut newreno, mut tcb) = (NewReno::default(), tcb(true));
        let states: Vec<State> =
            [0, 0, 0, 0, 5, 20].map(|ack| hear(&mut newreno, &mut tcb, ack)).into();
        assert_eq!(
            states,
            [
                (1, 20, None, Phase::Disorder),
                (2, 20, None, Phase::Disorder),
                (3, 10, Some(0), Phase::Recovery),
                (4, 10, None, Phase::Recovery),
                (0, 10, Some(5), Phase::Recovery),
                (0, 2, None, Phase::Open),
            ]
        );
    }

    /// RFC 3042: one packet for each of the first two duplicates; without it none.
    #[test]
    fn limited_transmit_allows_two_packets() {
        for (limited_transmit, allowed_pkts) in [(true, [1, 2]), (false, [0, 0])] {
            let (mut newreno, mut tcb) = (NewReno::default(), tcb(limited_transmit));
            assert_eq!([0, 0].map(|ack| hear(&mut newreno, &mut tcb, ack).0), allowed_pkts);
        }
    }

    /// Step 2's check: after a timeout with 20 sent, duplicates of 20 may be due to the timer's
    /// retransmissions; those of 21 are not.
    #[test]
    fn duplicates_after_a_timeout_begin_no_recovery() {
        let (mut newreno, mut tcb) = (NewReno::default(), tcb(true));
        newreno.on_timeout(20);
        tcb.reduction_end = 20;
        (0..20).for_each(|_| _ = tcb.board.push(0));
        hear(&mut newreno, &mut tcb, 20);
        let repairs = [20, 20, 20].map(|ack| hear(&mut newreno, &mut tcb, ack).2);
        assert_eq!(repairs, [None; 3]);
        hear(&mut newreno, &mut tcb, 21);
        let repairs = [21, 21, 21].map(|ack| hear(&mut newreno, &mut tcb, ack).2);
        assert_eq!(repairs, [None, None, Some(21)]);
    }

    /// Section 4, impatient: of the partial ACKs of a recovery the first restarts the timer.
    #[test]
    fn the_first_partial_ack_restarts_the_timer() {
        let mut newreno = NewReno::default();
        assert!([Phase::Open, Phase::Open].iter().all(|p| newreno.restarts_timer(*p)));
        let in_recovery = [Phase::Recovery; 3].map(|phase| newreno.restarts_timer(phase));
        assert_eq!(in_recovery, [true, false, false]);
    }
}
