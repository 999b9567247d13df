//! TCP sender in Linux's order of events.
//!
//! For each ACK: acknowledge and SACK, RTT estimate, `on_rtt`; judge losses; leave or enter
//! recovery (`ssthresh`); then either the recovery's window or `on_ack`; then send. This file ties
//! the parts together; each of them can be read alone:
//!
//! - `tcb`: what they share: the contract's view with window and phase, scoreboard, counters.
//! - `algorithm`: calls the congestion control algorithm; logs and counts what it did. `tally`: counters.
//! - `rtt`: RTT and retransmission timeout (RFC 6298).
//! - `scoreboard`: what is outstanding, and what is known of it (RFC 6675, RFC 2018).
//! - `loss_detection`: RACK (RFC 8985 sections 5 and 6), `rack`: what it remembers; `probe`: TLP (RFC
//!   8985 section 7).
//! - `recovery`: `sack` (RFC 6675, RFC 8985), `newreno` (RFC 6582, RFC 3042), `newreno_prr`.
//! - `reduction`: a reduction from its beginning to its end (RFC 5681, RFC 3168); `prr`: the window
//!   meanwhile (RFC 6937, RFC 9937); `undo`: when it was unnecessary (RFC 2883).
//! - `timers`: what happens without an ACK.
//! - `cwnd_validation`: whether the window is the limit.
//! - `delivery_rate`, `pacing`: for algorithms of profile RATE.
//!
//! Congestion marks (RFC 3168): an ACK that echoes one begins a reduction, in phase CWR, unless one
//! is under way or a loss is being repaired. PRR brings the window to the threshold, whatever the
//! recovery; the phase ends when something sent after its beginning is acknowledged. A loss that is
//! found meanwhile is repaired in the same reduction. New data are ECN-capable, retransmissions not.
//!
//! An algorithm of profile RATE owns the window instead: no `on_rtt`, no PRR, no event at the end of
//! a recovery, no restart after idle times, but `on_ack` last of all for every ACK, with a delivery
//! rate sample; and packets are paced. Losses are found with SACK there.

mod algorithm;
mod cwnd_validation;
mod delivery_rate;
mod loss_detection;
mod offload;
mod pacing;
mod probe;
mod prr;
mod rack;
mod recovery;
mod reduction;
mod rtt;
mod scoreboard;
mod tally;
mod tcb;
#[cfg(test)]
mod tests;
mod timers;
mod undo;

use crate::packet::{self, NONE, Sack, SackBlocks};
use delivery_rate::DeliveryRate;
use knee_cc::{Ack, Conn, Event, Params, Phase, State};
use knee_model::{CallRecord, DelayStats, FlowCounters, NS_PER_US, Random, TcpOptions};
use knee_net::{Ecn, NEVER};
use offload::Offload;
use pacing::Pacer;
use recovery::{Recovery, Verdict};
use scoreboard::{News, Scoreboard};
use tcb::Tcb;

// `repr(C)` keeps the order, see `Tcb`: all but the last three fields are touched by every ACK.
#[repr(C)]
pub(crate) struct Sender {
    pub(crate) timer_due_ns: u64,
    /// When the next packet may leave, if pacing holds one back.
    pub(crate) pace_due_ns: u64,
    /// Profile RATE only.
    rate: Option<Box<Rate>>,
    last_sent_ns: u64,
    receive_window_pkts: u32,
    timer: Timer,
    /// Recovery with SACK, an exact clock, no bursts, no trace.
    plain: bool,
    /// New data leave in bursts.
    offload: Option<Offload>,
    /// [`Self::can_use_fast_path`], as of the latest step that could change it.
    calm: bool,
    idle_restart: bool,
    random: Random,
    recovery: Recovery,
    /// The distribution of RTTs, if it is wanted.
    rtt_stats: Option<Box<DelayStats>>,
    tcb: Tcb,
    initial_window_pkts: u32,
}

/// What the timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// Retransmission after a timeout.
    Timeout,
    /// A segment is lost unless it is delivered by then (RFC 8985 section 6.2, step 5).
    Reordering,
    /// Tail loss probe.
    Probe,
}

/// What algorithms of profile RATE need beside the rest.
#[derive(Default)]
struct Rate {
    delivery: DeliveryRate,
    pacer: Pacer,
}

/// Sends one segment: its number, its ECN field, and whether it has the CWR flag.
pub(crate) trait Transmit {
    fn transmit(&mut self, number: u32, ecn: Ecn, cwr: bool);
}

impl Sender {
    /// `keep_rtt`: the distribution of RTTs is wanted; `trace`: each call of the algorithm is.
    pub(crate) fn new(
        params: Params,
        options: &TcpOptions,
        now_ns: u64,
        mut random: Random,
        keep_rtt: bool,
        trace: bool,
    ) -> Self {
        let tcb = Tcb::new(params, options, now_ns, &mut random, trace);
        let recovery = Recovery::new(options.recovery);
        let offload = options.segmentation_offload.then(Offload::default);
        let plain = recovery.is_sack() && options.rtt_tick_ns == 0 && offload.is_none() && !trace;
        Self {
            timer_due_ns: NEVER,
            pace_due_ns: NEVER,
            rate: tcb.owns_window.then(Box::default),
            last_sent_ns: now_ns,
            receive_window_pkts: options.receive_window_pkts,
            timer: Timer::Timeout,
            plain,
            offload,
            calm: plain,
            idle_restart: options.idle_restart,
            random,
            recovery,
            rtt_stats: keep_rtt.then(Box::default),
            tcb,
            initial_window_pkts: options.initial_window_pkts,
        }
    }

    /// The contract's view as of the last call.
    pub(crate) fn conn(&self) -> &Conn {
        &self.tcb.conn
    }

    pub(crate) fn counters(&self) -> FlowCounters {
        self.tcb.counters.into()
    }

    pub(crate) fn observe(&self) -> [u32; knee_cc::OBSERVE_N] {
        self.tcb.algorithm.observe()
    }

    /// What its algorithm remembers.
    pub(crate) fn state(&self) -> State {
        self.tcb.algorithm.state()
    }

    /// Makes its algorithm remember something else.
    pub(crate) fn set_state(&mut self, state: State) {
        self.tcb.algorithm.set_state(state);
    }

    pub(crate) fn take_trace(&mut self) -> Vec<CallRecord> {
        self.tcb.algorithm.take_trace()
    }

    /// The distribution of the RTT samples.
    pub(crate) fn take_rtt_stats(&mut self) -> DelayStats {
        self.rtt_stats.take().map_or_else(DelayStats::default, |stats| *stats)
    }

    /// Packets thought to be in the network.
    #[inline]
    pub(crate) fn inflight_pkts(&self) -> u32 {
        self.tcb.board.in_network()
    }

    /// First segment after those written so far.
    pub(crate) fn written(&self) -> u32 {
        self.tcb.written
    }

    /// Whether all that was written is acknowledged.
    pub(crate) fn is_idle(&self) -> bool {
        self.tcb.board.outstanding() == 0 && self.tcb.board.nxt() >= self.tcb.written
    }

    /// The application writes no more; what is outstanding is still repaired.
    pub(crate) fn stop(&mut self) {
        self.tcb.written = self.tcb.board.nxt();
    }

    /// The application writes `segments` more, or as many as there can be.
    pub(crate) fn write(&mut self, now_ns: u64, segments: Option<u32>, out: &mut impl Transmit) {
        self.note_app_limit::<false>();
        let tcb = &mut self.tcb;
        let idle_ns = now_ns.saturating_sub(self.last_sent_ns);
        let idle = tcb.board.outstanding() == 0 && idle_ns > tcb.rtt.rto_ns();
        if idle && self.idle_restart && !tcb.owns_window {
            // RFC 5681 section 4.1.
            tcb.refresh::<false>(now_ns);
            tcb.conn.cwnd_pkts = tcb.conn.cwnd_pkts.min(self.initial_window_pkts);
            tcb.algorithm.on_event(&mut tcb.conn, Event::CwndRestart);
        }
        tcb.written = segments.map_or(u32::MAX - 1, |n| tcb.written.saturating_add(n));
        self.send(now_ns, out);
    }

    /// An acknowledgement arrives; `sack`: what it reports besides its number, if it does.
    #[inline(always)]
    pub(crate) fn on_ack(
        &mut self,
        now_ns: u64,
        ack: packet::Ack,
        sack: Option<&Sack>,
        out: &mut impl Transmit,
    ) {
        if self.is_calm(ack, sack.is_some()) {
            self.process_ack::<true>(now_ns, ack, &Sack::NOTHING, out);
        } else if ack.cumulative >= self.tcb.board.una() && self.tcb.board.outstanding() > 0 {
            self.process_ack::<false>(now_ns, ack, sack.unwrap_or(&Sack::NOTHING), out);
        }
    }

    /// Whether an acknowledgement is of new data, where [`Self::can_use_fast_path`]; `reports`: it has more
    /// than its number.
    #[inline(always)]
    fn is_calm(&self, ack: packet::Ack, reports: bool) -> bool {
        debug_assert_eq!(self.calm, self.can_use_fast_path());
        self.calm && !reports && !ack.echo && ack.cumulative > self.tcb.board.una()
    }

    /// Whether nothing is missing, marked, sent again or in doubt.
    fn can_use_fast_path(&self) -> bool {
        let tcb = &self.tcb;
        let in_doubt = tcb.probe.is_some() || tcb.board.may_have_lost();
        self.plain && tcb.phase() == Phase::Open && !in_doubt
    }

    /// The steps for an ACK. `CALM`: [`Self::is_calm`]; steps that have nothing to do then are left out.
    #[inline(always)]
    fn process_ack<const CALM: bool>(
        &mut self,
        now_ns: u64,
        ack: packet::Ack,
        sack: &Sack,
        out: &mut impl Transmit,
    ) {
        let mut prior_inflight_pkts = 0;
        if self.rate.is_some() {
            self.note_app_limit::<CALM>();
            prior_inflight_pkts = self.inflight_pkts();
        }
        let advanced = ack.cumulative - self.tcb.board.una();
        if !CALM
            && advanced > 0
            && let Some(offload) = &mut self.offload
        {
            offload.learn(&mut self.tcb, now_ns);
        }
        let news = self.take_in::<CALM>(now_ns, ack.cumulative, &sack.blocks);
        let rtt_ns = self.measure_rtt::<CALM>(now_ns, &news);
        let tcb = &mut self.tcb;
        tcb.refresh::<CALM>(now_ns);
        let mut seen = Ack {
            delivered_pkts: tcb.delivered_pkts,
            acked_pkts: news.delivered_pkts,
            lost_pkts: 0,
            rtt_us: rtt_ns.map_or(-1, |ns| (ns / NS_PER_US).min(i32::MAX as u64) as i32),
            random: if tcb.algorithm.uses_random() { self.random.bits32() } else { 0 },
            prior_inflight_pkts,
            ..Ack::default()
        };
        let before = tcb.mutable();
        let mut both_called = false;
        match &mut self.rate {
            Some(rate) => {
                let rtt_ns = news.sent_ns.map(|sent_ns| now_ns - sent_ns);
                let delivery = &mut rate.delivery;
                let newest = delivery.take_up_to::<CALM>(ack.cumulative, news.newest.1);
                delivery.acknowledged(newest, now_ns, rtt_ns, &mut seen);
                if news.sent_ns.is_none() {
                    seen.rtt_us = -1; // of a retransmission
                }
            }
            None => {
                seen.advanced_pkts = advanced;
                // If the window was the limit, it is whatever on_rtt makes of it.
                both_called = CALM
                    && tcb.validation.limited
                    && tcb.algorithm.on_rtt_and_ack(&mut tcb.conn, &mut seen, &mut tcb.counters);
                if !both_called {
                    tcb.algorithm.on_rtt::<CALM>(&mut tcb.conn, &seen, &mut tcb.counters);
                }
                seen.advanced_pkts = 0;
            }
        }
        let mut verdict = Verdict::CALM;
        if !CALM {
            if sack.duplicate != NONE
                && let Recovery::Sack(recovery) = &mut self.recovery
            {
                recovery.on_duplicate_report(tcb);
                tcb.on_duplicate_report(sack.duplicate);
            }
            if let Some(probe) = tcb.probe {
                tcb.on_probe_answered(probe, ack.cumulative, sack, advanced);
            }
            if advanced > 0 && self.recovery.was_spurious(tcb, &news, advanced) {
                tcb.take_back();
            }
            verdict = self.judge(now_ns, advanced, news.delivered_pkts, ack.echo, out);
        }
        seen.lost_pkts = verdict.lost_pkts;
        let tcb = &mut self.tcb;
        let grows = CALM || tcb.owns_window || (advanced > 0 && !verdict.holds_window);
        if grows && !both_called {
            if CALM {
                tcb.refresh_limited();
            } else if tcb.owns_window || before != tcb.mutable() || seen.lost_pkts > 0 {
                tcb.refresh::<false>(now_ns);
            }
            tcb.algorithm.on_ack::<CALM>(&mut tcb.conn, &seen, &mut tcb.counters);
        }
        tcb.conn.cwnd_pkts = tcb.conn.cwnd_pkts.max(1);
        self.rearm::<CALM>(now_ns, advanced, verdict.reordering_due_ns);
        match CALM {
            true => self.send_what_fits::<true>(now_ns, out),
            false => self.send(now_ns, out),
        }
    }

    /// Brings the scoreboard up to date with an ACK.
    #[inline(always)]
    fn take_in<const CALM: bool>(
        &mut self,
        now_ns: u64,
        cumulative: u32,
        blocks: &SackBlocks,
    ) -> News {
        let tcb = &mut self.tcb;
        let advanced = cumulative - tcb.board.una();
        if CALM {
            debug_assert_eq!(tcb.board.in_network(), tcb.board.outstanding());
            tcb.delivered_pkts += u64::from(advanced);
            return tcb.board.acknowledge_in_order(cumulative, now_ns);
        }
        let mut news = tcb.board.acknowledge(cumulative, now_ns);
        if let Some(delivered_pkts) = self.recovery.delivered_pkts(tcb, advanced) {
            news.delivered_pkts = delivered_pkts;
        } else {
            tcb.board.sack(blocks, now_ns, &mut news);
        }
        tcb.delivered_pkts += u64::from(news.delivered_pkts);
        news
    }

    /// The RTT sample of an ACK, if it gives one.
    #[inline(always)]
    fn measure_rtt<const CALM: bool>(&mut self, now_ns: u64, news: &News) -> Option<u64> {
        let tcb = &mut self.tcb;
        let rtt_ns = match CALM {
            true => now_ns - news.newest.0,
            false => tcb.rtt.sample_ns(now_ns, news, tcb.board.min_rtt_ns())?,
        };
        if let Some(rtt_stats) = &mut self.rtt_stats {
            rtt_stats.add(rtt_ns);
        }
        tcb.board.learn_rtt(rtt_ns);
        tcb.rtt.learn(rtt_ns);
        Some(rtt_ns)
    }

    /// Moves between phases after an ACK that advanced by `advanced` segments and delivered
    /// `acked_pkts`; `echo`: it echoes a congestion mark.
    #[inline]
    fn judge(
        &mut self,
        now_ns: u64,
        advanced: u32,
        acked_pkts: u32,
        echo: bool,
        out: &mut impl Transmit,
    ) -> Verdict {
        let tcb = &mut self.tcb;
        let calm = tcb.phase() == Phase::Open && !echo;
        if calm && self.recovery.is_sack() && !tcb.board.may_have_lost() {
            return Verdict::CALM;
        }
        if tcb.phase() == Phase::Cwr && tcb.board.una() > tcb.reduction_end {
            tcb.end_reduction(now_ns);
        }
        let mut verdict = self.recovery.judge(tcb, now_ns, advanced, acked_pkts);
        if let Some(number) = verdict.repair {
            self.retransmit(number, now_ns, out);
        }
        let tcb = &mut self.tcb;
        if echo {
            tcb.on_echo(now_ns);
        }
        if tcb.phase() == Phase::Cwr {
            verdict.holds_window = true;
            if acked_pkts > 0 {
                tcb.reduce_in_proportion(acked_pkts, advanced > 0 && verdict.lost_pkts == 0);
            }
        }
        verdict
    }

    /// The first segment that is not written, or that the receive window does not allow.
    #[inline]
    fn sendable_end(&self) -> u32 {
        self.tcb.written.min(self.tcb.board.una().saturating_add(self.receive_window_pkts))
    }

    /// Sends what the windows allow: repairs first, then new data. The end of each step that is not calm.
    fn send(&mut self, now_ns: u64, out: &mut impl Transmit) {
        self.send_what_fits::<false>(now_ns, out);
        self.calm = self.can_use_fast_path();
    }

    /// Sends what the windows allow. `CALM`: nothing is missing, and the window is no recovery's.
    #[inline(always)]
    fn send_what_fits<const CALM: bool>(&mut self, now_ns: u64, out: &mut impl Transmit) {
        if CALM {
            let window_pkts = self.tcb.conn.cwnd_pkts;
            let room = |board: &Scoreboard| board.outstanding() < window_pkts;
            return match self.rate {
                Some(_) => self.send_paced::<true>(now_ns, room, out),
                None => self.send_new_while::<true>(now_ns, room, out),
            };
        }
        let tcb = &self.tcb;
        // Without limited transmit, SACKed packets do not make room until a loss is inferred.
        let unused = tcb.conn.phase == Phase::Disorder as u8 && !tcb.limited_transmit;
        let held_back_pkts = if unused { tcb.board.sacked() } else { 0 };
        let window_pkts =
            tcb.conn.cwnd_pkts.saturating_add_signed(self.recovery.inflation_pkts(tcb.phase()));
        let room = |board: &Scoreboard| board.in_network() + held_back_pkts < window_pkts;
        if self.rate.is_some() {
            self.send_paced::<false>(now_ns, room, out);
            return;
        }
        if self.recovery.sends_new_first() {
            let nxt = self.tcb.board.nxt();
            self.send_new_while::<false>(now_ns, room, out);
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
            None => self.send_new_while::<false>(now_ns, room, out),
            Some(offload) => {
                self.send_bursts(now_ns, offload, window_pkts.saturating_sub(held_back_pkts), out);
            }
        }
    }

    /// Sends new data in bursts, for which `window_pkts` less what is in the network are the room.
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
        let receive_end = self.tcb.board.una().saturating_add(self.receive_window_pkts);
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

    /// Sends new data while there is room for them; `CALM`: outside recovery.
    #[inline(always)]
    fn send_new_while<const CALM: bool>(
        &mut self,
        now_ns: u64,
        room: impl Fn(&Scoreboard) -> bool,
        out: &mut impl Transmit,
    ) {
        let end = self.sendable_end();
        self.note_start(now_ns, end);
        while room(&self.tcb.board) && self.tcb.board.nxt() < end {
            match CALM {
                true => self.send_new_now::<true>(now_ns, out),
                false => self.send_new(now_ns, out),
            }
        }
        self.tcb.validation.sent(&self.tcb.board, !room(&self.tcb.board));
    }

    /// The same at the pace that the algorithm asks for: one packet when it is due, then the time of
    /// the next.
    #[inline(never)]
    fn send_paced<const CALM: bool>(
        &mut self,
        now_ns: u64,
        room: impl Fn(&Scoreboard) -> bool,
        out: &mut impl Transmit,
    ) {
        self.pace_due_ns = NEVER;
        let end = self.sendable_end();
        while room(&self.tcb.board) {
            let lost = if CALM { None } else { self.tcb.board.next_lost() };
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
        self.note_app_limit::<false>();
        if self.calm {
            self.send_what_fits::<true>(now_ns, out);
        } else {
            self.send(now_ns, out);
        }
    }

    #[inline(never)]
    fn retransmit(&mut self, number: u32, now_ns: u64, out: &mut impl Transmit) {
        self.note_sending(number, now_ns);
        self.tcb.board.retransmitted(number, now_ns);
        self.tcb.counters.retransmitted_pkts += 1;
        self.tcb.undo.retransmitted();
        self.sent::<false>(now_ns);
        if number == self.tcb.board.una() && self.recovery.repair_restarts_timer() {
            self.arm_rto(now_ns);
        }
        out.transmit(number, Ecn::NotCapable, false);
    }

    #[inline(never)]
    fn send_new(&mut self, now_ns: u64, out: &mut impl Transmit) {
        self.send_new_now::<false>(now_ns, out);
    }

    #[inline(always)]
    fn send_new_now<const CALM: bool>(&mut self, now_ns: u64, out: &mut impl Transmit) {
        let number = self.tcb.board.push(now_ns);
        self.sent::<CALM>(now_ns);
        let ecn = if self.tcb.ecn { Ecn::Capable } else { Ecn::NotCapable };
        let cwr = self.tcb.cwr_pending;
        if cwr {
            self.tcb.cwr_pending = false;
        }
        out.transmit(number, ecn, cwr);
    }

    /// A segment leaves, new or again.
    #[inline(always)]
    fn sent<const CALM: bool>(&mut self, now_ns: u64) {
        let tcb = &mut self.tcb;
        self.last_sent_ns = now_ns;
        if !CALM && (Phase::Cwr as u8..=Phase::Recovery as u8).contains(&tcb.conn.phase) {
            tcb.prr.sent();
        }
        if self.timer_due_ns == NEVER {
            self.arm(now_ns);
        }
    }

    /// The first transmission after everything was acknowledged.
    #[inline(always)]
    fn note_start(&mut self, now_ns: u64, end: u32) {
        if self.tcb.board.outstanding() == 0 {
            self.note_start_from_nothing(now_ns, end);
        }
    }

    #[inline(never)]
    fn note_start_from_nothing(&mut self, now_ns: u64, end: u32) {
        let tcb = &mut self.tcb;
        if tcb.board.nxt() < end && tcb.delivered_pkts > 0 {
            tcb.refresh::<false>(now_ns);
            tcb.algorithm.on_event(&mut tcb.conn, Event::TxStart);
        }
    }

    /// Profile RATE: segment `number` is about to leave.
    #[inline]
    fn note_sending(&mut self, number: u32, now_ns: u64) {
        if let Some(rate) = &mut self.rate {
            let tcb = &self.tcb;
            let idle = tcb.board.in_network() == 0;
            rate.delivery.sent(number, now_ns, idle, tcb.delivered_pkts);
            rate.pacer.sent(now_ns, tcb.conn.mss_bytes, tcb.conn.pacing_bytes_per_s);
        }
    }

    /// Profile RATE: whether the application holds sending back (draft-ietf-ccwg-bbr-06, section
    /// 4.1.2.4). Asked before anything changes: when it writes, an ACK arrives, a timer expires.
    #[inline(always)]
    fn note_app_limit<const CALM: bool>(&mut self) {
        let Some(rate) = &mut self.rate else { return };
        let tcb = &mut self.tcb;
        if tcb.board.nxt() < tcb.written {
            return;
        }
        let in_network_pkts = tcb.board.in_network();
        let has_room = in_network_pkts < tcb.conn.cwnd_pkts;
        if has_room && (CALM || tcb.board.next_lost().is_none()) {
            rate.delivery.limited(tcb.delivered_pkts + u64::from(in_network_pkts));
        }
    }
}
