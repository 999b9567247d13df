//! Sending: repairs and new data, as far as the windows and the pace allow.

use super::{Sender, Transmit, offload::Offload, scoreboard::Scoreboard};
use knee_cc::{Event, Phase};
use knee_net::{Ecn, NEVER};

impl Sender {
    /// The first segment that is not written, or that the receive window does not allow.
    #[inline]
    pub(super) fn sendable_end(&self) -> u32 {
        self.tcb.written.min(self.tcb.board.una.saturating_add(self.receive_window_pkts))
    }

    /// Sends what the windows allow: repairs first, then new data.
    pub(super) fn send(&mut self, now_ns: u64, out: &mut impl Transmit) {
        let tcb = &self.tcb;
        // Without limited transmit, SACKed packets do not make room until a loss is inferred.
        let unused = tcb.conn.phase == Phase::Disorder as u8 && !tcb.limited_transmit;
        let held_back_pkts = if unused { tcb.board.sacked } else { 0 };
        let window_pkts =
            tcb.conn.cwnd_pkts.saturating_add_signed(self.recovery.inflation_pkts(tcb.phase()));
        let room = |board: &Scoreboard| board.in_network() + held_back_pkts < window_pkts;
        if self.rate.is_some() {
            self.send_paced(now_ns, room, out);
            return;
        }
        if self.recovery.sends_new_first() {
            let nxt = self.tcb.board.nxt();
            self.send_new_while(now_ns, room, out);
            if self.tcb.board.nxt() > nxt {
                return;
            }
            self.recovery.has_no_new();
        }
        while room(&self.tcb.board) {
            let Some(number) = self.tcb.board.next_lost() else { break };
            self.retransmit(number, now_ns, out);
        }
        match self.offload {
            None => self.send_new_while(now_ns, room, out),
            Some(offload) => {
                self.send_bursts(now_ns, offload, window_pkts.saturating_sub(held_back_pkts), out);
            }
        }
    }

    /// Sends new data in bursts; the room is `window_pkts` less the packets in the network.
    #[inline(never)]
    fn send_bursts(
        &mut self,
        now_ns: u64,
        offload: Offload,
        window_pkts: u32,
        out: &mut impl Transmit,
    ) {
        let end = self.sendable_end();
        self.note_start(now_ns, end);
        let receive_end = self.tcb.board.una.saturating_add(self.receive_window_pkts);
        let mut limited = true;
        loop {
            let nxt = self.tcb.board.nxt();
            let cwnd_room_pkts = window_pkts.saturating_sub(self.tcb.board.in_network());
            if cwnd_room_pkts == 0 {
                break;
            }
            let left_pkts = end.saturating_sub(nxt);
            if left_pkts == 0 {
                limited = false;
                break;
            }
            let room_pkts = cwnd_room_pkts.min(receive_end.saturating_sub(nxt));
            let burst_pkts = offload.burst_pkts(&self.tcb);
            if room_pkts < burst_pkts && left_pkts > 1 {
                let window_pkts = window_pkts.min(self.receive_window_pkts);
                let last_sent_ns = self.last_sent_ns;
                if offload.waits(&mut self.tcb, now_ns, last_sent_ns, room_pkts, window_pkts) {
                    break;
                }
            }
            for _ in 0..room_pkts.min(left_pkts).min(burst_pkts) {
                self.send_new(now_ns, out);
            }
        }
        self.tcb.validation.sent(&self.tcb.board, limited);
    }

    /// Sends new data while there is room for them.
    #[inline(always)]
    pub(super) fn send_new_while(
        &mut self,
        now_ns: u64,
        room: impl Fn(&Scoreboard) -> bool,
        out: &mut impl Transmit,
    ) {
        let end = self.sendable_end();
        self.note_start(now_ns, end);
        while room(&self.tcb.board) && self.tcb.board.nxt() < end {
            self.send_new(now_ns, out);
        }
        self.tcb.validation.sent(&self.tcb.board, !room(&self.tcb.board));
    }

    /// Sends at the pace that the algorithm sets: one packet when it is due; then computes the time of the
    /// next.
    fn send_paced(
        &mut self,
        now_ns: u64,
        room: impl Fn(&Scoreboard) -> bool,
        out: &mut impl Transmit,
    ) {
        self.pace_due_ns = NEVER;
        let end = self.sendable_end();
        while room(&self.tcb.board) {
            let lost = self.tcb.board.next_lost();
            if lost.is_none() && self.tcb.board.nxt() >= end {
                break;
            }
            let due_ns = self.rate.as_ref().map_or(0, |rate| rate.pacer.next_send_ns());
            if due_ns > now_ns && self.tcb.conn.pacing_bytes_per_s > 0 {
                self.pace_due_ns = due_ns;
                break;
            }
            match lost {
                Some(number) => self.retransmit(number, now_ns, out),
                None => {
                    self.note_start(now_ns, end);
                    self.note_sending(self.tcb.board.nxt(), now_ns);
                    self.send_new(now_ns, out);
                }
            }
        }
        self.tcb.validation.sent(&self.tcb.board, !room(&self.tcb.board));
    }

    /// The next packet may leave.
    pub(crate) fn on_pace(&mut self, now_ns: u64, out: &mut impl Transmit) {
        self.note_app_limit();
        self.send(now_ns, out);
    }

    #[inline(never)]
    pub(super) fn retransmit(&mut self, number: u32, now_ns: u64, out: &mut impl Transmit) {
        self.note_sending(number, now_ns);
        self.tcb.board.retransmitted(number, now_ns);
        self.tcb.counters.retransmitted_pkts += 1;
        self.tcb.undo.retransmitted();
        self.sent(now_ns);
        if number == self.tcb.board.una && self.recovery.repair_restarts_timer() {
            self.arm_rto(now_ns);
        }
        out.transmit(number, Ecn::NotCapable, false);
    }

    /// Sends the next segment for the first time.
    #[inline(always)]
    pub(super) fn send_new(&mut self, now_ns: u64, out: &mut impl Transmit) {
        let number = self.tcb.board.push(now_ns);
        self.sent(now_ns);
        let ecn = if self.tcb.ecn { Ecn::Capable } else { Ecn::NotCapable };
        let cwr = self.tcb.cwr_pending;
        if cwr {
            self.tcb.cwr_pending = false;
        }
        out.transmit(number, ecn, cwr);
    }

    /// A segment leaves, new or again.
    #[inline(always)]
    fn sent(&mut self, now_ns: u64) {
        let tcb = &mut self.tcb;
        self.last_sent_ns = now_ns;
        if (Phase::Cwr as u8..=Phase::Recovery as u8).contains(&tcb.conn.phase) {
            tcb.prr.sent();
        }
        if self.timer_due_ns == NEVER {
            self.arm(now_ns);
        }
    }

    /// The first transmission after everything was acknowledged.
    #[inline(always)]
    pub(super) fn note_start(&mut self, now_ns: u64, end: u32) {
        if self.tcb.board.outstanding() == 0 {
            self.note_start_from_nothing(now_ns, end);
        }
    }

    #[inline(never)]
    fn note_start_from_nothing(&mut self, now_ns: u64, end: u32) {
        let tcb = &mut self.tcb;
        if tcb.board.nxt() < end && tcb.delivered_pkts > 0 {
            tcb.refresh(now_ns);
            tcb.algorithm.on_event(&mut tcb.conn, Event::TxStart);
        }
    }

    /// Profile RATE: segment `number` is about to leave.
    #[inline]
    pub(super) fn note_sending(&mut self, number: u32, now_ns: u64) {
        if let Some(rate) = &mut self.rate {
            let tcb = &self.tcb;
            let idle = tcb.board.in_network() == 0;
            rate.delivery.sent(number, now_ns, idle, tcb.delivered_pkts);
            rate.pacer.sent(now_ns, tcb.conn.mss_bytes, tcb.conn.pacing_bytes_per_s);
        }
    }

    /// Profile RATE: notes whether the application holds sending back (draft-ietf-ccwg-bbr-06, section
    /// 4.1.2.4). Called before anything changes: when it writes, an ACK arrives, a timer expires.
    #[inline(always)]
    pub(super) fn note_app_limit(&mut self) {
        let Some(rate) = &mut self.rate else { return };
        let tcb = &mut self.tcb;
        if tcb.board.nxt() < tcb.written {
            return;
        }
        let in_network_pkts = tcb.board.in_network();
        let has_room = in_network_pkts < tcb.conn.cwnd_pkts;
        if has_room && tcb.board.next_lost().is_none() {
            rate.delivery.limited(tcb.delivered_pkts + u64::from(in_network_pkts));
        }
    }
}
