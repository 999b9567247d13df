//! NewReno recovery as in Linux without SACK: the phases of RFC 6582 section 3.2, but each duplicate
//! ACK counts as a packet that has left the network, and PRR gives the window (RFC 6937).
//!
//! A phase ends when a segment above those outstanding at its start is acknowledged: an ACK of just these may
//! have duplicates behind it.
//!
//! If there are more duplicates than packets in flight behind the holes, Linux assumes reordering. A packet
//! is then lost only after as many duplicates as packets are outstanding, until the connection ends. After a
//! timeout, which repeats arrived packets, that may happen without any reordering.
//!
//! After a timeout new data are sent before anything else is repaired, which shows whether the timeout was
//! necessary (F-RTO, RFC 5682 section 2.1). Linux also detects needless recoveries by timestamps; that is not
//! modelled here.

use super::{duplicates::Duplicates, verdict::Verdict};
use crate::sender::{loss_detection::DUP_THRESH, scoreboard::News, tcb::Tcb};
use knee_cc::Phase;
use knee_net::NEVER;

/// Linux asks for no more duplicates than these (`tcp_max_reordering`).
const MAX_THRESHOLD_PKTS: u32 = 300;

pub(in crate::sender) struct NewRenoPrr {
    /// Packets that have arrived, by duplicate ACKs.
    duplicates: Duplicates,
    /// Number of packets above the first hole that count as arrived: Linux forgets them at the end of each
    /// phase.
    arrived_pkts: u32,
    /// Number of packets that must have arrived above a packet before it is lost.
    threshold_pkts: u32,
    /// F-RTO: it is unknown yet whether the timeout was necessary.
    in_doubt: bool,
    /// New data come before repairs, if there are any.
    new_first: bool,
}

impl Default for NewRenoPrr {
    fn default() -> Self {
        Self {
            duplicates: Duplicates::default(),
            arrived_pkts: 0,
            threshold_pkts: DUP_THRESH,
            in_doubt: false,
            new_first: false,
        }
    }
}

impl NewRenoPrr {
    /// Packets delivered by an ACK that advanced by `advanced` segments. One of these fills the hole; the
    /// others had arrived, and duplicates have reported them.
    pub(super) fn delivered_pkts(&mut self, tcb: &mut Tcb, advanced: u32) -> u32 {
        let (una, high) = (tcb.board.una, tcb.reduction_end);
        if tcb.phase() == Phase::Recovery && advanced == 0 && una >= high {
            // All segments outstanding at the start have arrived: nothing is learned until the phase ends.
            self.arrived_pkts = 0;
            tcb.board.set_counted(0);
            return 0;
        }
        self.duplicates.hear(tcb, advanced);
        // The timer's retransmissions may themselves be duplicates; new data cannot.
        let heard = tcb.phase() != Phase::Loss || tcb.board.nxt() > high;
        self.arrived_pkts = match advanced {
            0 => self.arrived_pkts + u32::from(heard),
            _ => self.arrived_pkts.saturating_sub(advanced - 1),
        };
        self.limit(tcb, advanced);
        tcb.board.set_counted(self.arrived_pkts);
        self.duplicates.delivered_pkts(tcb)
    }

    /// Bounds the arrivals by the packets above the holes. If more have arrived, an ACK that advanced by
    /// `advanced` segments shows reordering.
    fn limit(&mut self, tcb: &Tcb, advanced: u32) {
        let outstanding_pkts = tcb.board.outstanding();
        let most_pkts = outstanding_pkts.saturating_sub(tcb.board.lost.max(1));
        if self.arrived_pkts > most_pkts && outstanding_pkts > 0 {
            self.arrived_pkts = most_pkts;
            self.threshold_pkts = (outstanding_pkts + advanced).min(MAX_THRESHOLD_PKTS);
        }
    }

    pub(super) fn judge(
        &mut self,
        tcb: &mut Tcb,
        now_ns: u64,
        advanced: u32,
        acked_pkts: u32,
    ) -> Verdict {
        let (una, high) = (tcb.board.una, tcb.reduction_end);
        let mut lost_pkts = 0;
        match tcb.phase() {
            Phase::Recovery if una > high => {
                self.arrived_pkts = 0;
                tcb.end_reduction(now_ns);
            }
            Phase::Recovery if advanced > 0 && una < high => {
                lost_pkts = tcb.board.mark_first_lost();
            }
            Phase::Recovery => {}
            Phase::Loss => self.judge_timeout(tcb, advanced),
            before => {
                if advanced > 0 {
                    self.arrived_pkts = 0;
                }
                if self.arrived_pkts >= self.threshold_pkts {
                    tcb.enter_recovery(now_ns);
                    lost_pkts = tcb.board.mark_first_lost();
                } else if before != Phase::Cwr {
                    let suspicious = self.arrived_pkts > 0;
                    tcb.set_phase(if suspicious { Phase::Disorder } else { Phase::Open });
                }
            }
        }
        tcb.board.set_counted(self.arrived_pkts);
        let holds_window = tcb.phase() == Phase::Recovery;
        if holds_window && acked_pkts > 0 {
            tcb.reduce_in_proportion(acked_pkts, advanced > 0 && lost_pkts == 0);
        }
        Verdict { holds_window, lost_pkts, reordering_due_ns: NEVER, repair: None }
    }

    /// Judges while a timeout is repaired; RFC 5682 section 2.1, steps 2 and 3a.
    fn judge_timeout(&mut self, tcb: &mut Tcb, advanced: u32) {
        let (una, high) = (tcb.board.una, tcb.reduction_end);
        let new_sent = tcb.board.nxt() > high;
        if self.in_doubt && new_sent {
            self.in_doubt = advanced > 0;
        } else if self.in_doubt && advanced > 0 && una < high {
            tcb.reduction_end = tcb.board.nxt();
            self.new_first = true;
            return;
        }
        if una > high {
            tcb.set_phase(Phase::Open);
        }
        if advanced > 0 {
            self.arrived_pkts = 0;
        }
    }

    /// RFC 5682 section 2.1, step 3b: the segments that the ACK covers were outstanding at the timeout, and
    /// none of them was sent again.
    pub(super) fn was_spurious(&self, tcb: &Tcb, news: &News, advanced: u32) -> bool {
        let from = tcb.board.una - advanced;
        let first_sent = news.sent_ns.is_some() && from < tcb.reduction_end;
        tcb.phase() == Phase::Loss && self.in_doubt && first_sent
    }

    /// Returns whether new data come before repairs this time; not if there are none.
    pub(super) fn sends_new_first(&mut self) -> bool {
        std::mem::take(&mut self.new_first)
    }

    /// No new data could be sent.
    pub(super) fn has_no_new(&mut self) {
        self.in_doubt = false;
    }

    /// A timeout. `again`: a recovery was under way, or another timeout whose repairs have advanced.
    pub(super) fn on_timeout(&mut self, tcb: &mut Tcb, again: bool) {
        self.arrived_pkts = 0;
        (self.in_doubt, self.new_first) = (!again, false);
        tcb.board.set_counted(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_cc::Params;
    use knee_model::{Random, TcpOptions};

    /// A window of 20, `outstanding_pkts` of it outstanding.
    fn tcb(outstanding_pkts: u32) -> Tcb {
        let params = Params::defaults(knee_cc::algorithm("newreno").expect("registered"));
        let options = TcpOptions { initial_window_pkts: 20, ..TcpOptions::default() };
        let mut tcb = Tcb::new(params, &options, 0, &mut Random::stream(1, "test", 0), false);
        (0..outstanding_pkts).for_each(|_| _ = tcb.board.push(0));
        tcb
    }

    /// An ACK of everything below `cumulative`; returns the packets that it delivers, and the phase after it.
    fn hear(newreno: &mut NewRenoPrr, tcb: &mut Tcb, cumulative: u32) -> (u32, Phase) {
        let advanced = cumulative - tcb.board.una;
        tcb.board.acknowledge(cumulative, 1);
        let delivered_pkts = newreno.delivered_pkts(tcb, advanced);
        tcb.delivered_pkts += u64::from(delivered_pkts);
        newreno.judge(tcb, 1, advanced, delivered_pkts);
        (delivered_pkts, tcb.phase())
    }

    /// With 5 outstanding, 4 can have arrived above the hole. A fifth duplicate shows reordering: from then
    /// on the threshold is 5, the number outstanding, rather than 3.
    #[test]
    fn too_many_duplicates_show_reordering() {
        use Phase::{Disorder, Open, Recovery};
        let (mut newreno, mut tcb) = (NewRenoPrr::default(), tcb(5));
        let heard = [0; 5].map(|ack| hear(&mut newreno, &mut tcb, ack));
        assert_eq!(
            heard,
            [(1, Disorder), (1, Disorder), (1, Recovery), (1, Recovery), (0, Recovery)]
        );
        (0..20).for_each(|_| _ = tcb.board.push(1));
        assert_eq!(hear(&mut newreno, &mut tcb, 6), (2, Open));
        let phases = [6; 5].map(|ack| hear(&mut newreno, &mut tcb, ack).1);
        assert_eq!(phases, [Disorder, Disorder, Disorder, Disorder, Recovery]);
    }

    /// All segments outstanding when the recovery began have arrived, and nothing above them: duplicates tell
    /// nothing more, and the phase stays.
    #[test]
    fn a_phase_ends_above_the_packets_outstanding_at_its_start() {
        let (mut newreno, mut tcb) = (NewRenoPrr::default(), tcb(5));
        (0..3).for_each(|_| _ = hear(&mut newreno, &mut tcb, 0));
        (0..5).for_each(|_| _ = tcb.board.push(1));
        assert_eq!(hear(&mut newreno, &mut tcb, 5), (2, Phase::Recovery));
        assert_eq!([5; 4].map(|ack| hear(&mut newreno, &mut tcb, ack)), [(0, Phase::Recovery); 4]);
        assert_eq!(hear(&mut newreno, &mut tcb, 6), (1, Phase::Open));
    }

    /// RFC 5682 section 2.1: after the first ACK of a timeout that advances, new data come first, once. A
    /// duplicate, step 3a, shows that the timeout was necessary. For a second timeout that is known.
    #[test]
    fn new_data_come_first_after_a_timeout() {
        for again in [false, true] {
            let (mut newreno, mut tcb) = (NewRenoPrr::default(), tcb(10));
            tcb.set_phase(Phase::Loss);
            tcb.reduction_end = 10;
            tcb.board.mark_timed_out(1, 0);
            newreno.on_timeout(&mut tcb, again);
            hear(&mut newreno, &mut tcb, 2);
            assert_eq!(newreno.sends_new_first(), !again);
            assert!(!newreno.sends_new_first());
            tcb.board.push(1);
            hear(&mut newreno, &mut tcb, 2);
            assert!(!newreno.in_doubt);
            hear(&mut newreno, &mut tcb, 4);
            assert!(!newreno.sends_new_first());
            assert_eq!(hear(&mut newreno, &mut tcb, 11), (7, Phase::Open));
        }
    }
}
