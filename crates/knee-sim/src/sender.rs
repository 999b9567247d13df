//! TCP sender in Linux's order of events.
//!
//! For each ACK: acknowledge and SACK, RTT estimate, `on_rtt`; judge losses; leave or enter
//! recovery (`ssthresh`); then either the recovery's window or `on_ack`; then send. This file ties
//! the parts together; each of them can be read alone:
//!
//! - `tcb`: the state that they share: the contract's view with window and phase, scoreboard, counters.
//! - `algorithm`: calls the congestion control algorithm; logs and counts its actions. `tally`: counters.
//! - `rtt`: RTT and retransmission timeout (RFC 6298).
//! - `scoreboard`: the outstanding segments, and the state of each (RFC 6675, RFC 2018).
//! - `loss_detection`: RACK (RFC 8985 sections 5 and 6); `rack`: its state; `probe`: TLP (section 7).
//! - `recovery`: `sack` (RFC 6675, RFC 8985), `newreno` (RFC 6582, RFC 3042), `newreno_prr`.
//! - `reduction`: a reduction from its beginning to its end (RFC 5681, RFC 3168); `prr`: the window meanwhile
//!   (RFC 6937, RFC 9937); `undo`: reversal of an unnecessary reduction (RFC 2883).
//! - `sending`: repairs and new data, and the times at which they leave. `offload`: sending in bursts.
//! - `timers`: timeouts and other events without an ACK.
//! - `cwnd_validation`: whether the window is the limit.
//! - `delivery_rate`, `pacing`: for algorithms of profile RATE.
//!
//! Congestion marks (RFC 3168): an ACK that echoes one begins a reduction, in phase CWR, unless one is under
//! way or a loss is being repaired. PRR reduces the window to the threshold, whatever the recovery. The phase
//! ends when something sent after its beginning is acknowledged. A loss that is found meanwhile is repaired
//! in the same reduction. New data are ECN-capable, retransmissions not.
//!
//! An algorithm of profile RATE owns the window instead: no `on_rtt`, no PRR, no event at the end of a
//! recovery, no restart after idle times. `on_ack` comes last for every ACK, with a delivery rate sample; and
//! packets are paced. Losses are found with SACK there.

mod algorithm;
mod cwnd_validation;
mod delivery_rate;
mod fast_path;
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
mod sending;
mod tally;
mod tcb;
#[cfg(test)]
mod tests;
mod timers;
mod undo;

use crate::packet::{self, NONE, Sack, SackBlocks};
use delivery_rate::DeliveryRate;
use knee_cc::{Ack, Event, Params, Phase};
use knee_model::{DelayStats, NS_PER_US, Random, TcpOptions};
use knee_net::{Ecn, NEVER};
use offload::Offload;
use pacing::Pacer;
use recovery::{Recovery, Verdict};
use scoreboard::News;
use tcb::Tcb;

// `repr(C)` keeps the order, see `Tcb`: all but the last three fields are touched by every ACK.
#[repr(C)]
pub(crate) struct Sender {
    pub(crate) timer_due_ns: u64,
    /// Time at which the next packet may leave, if pacing holds one back.
    pub(crate) pace_due_ns: u64,
    /// Profile RATE only.
    rate: Option<Box<Rate>>,
    last_sent_ns: u64,
    receive_window_pkts: u32,
    timer: Timer,
    /// True if the options permit the fast path: recovery with SACK, an exact clock, no bursts.
    permits_fast_path: bool,
    /// New data leave in bursts.
    offload: Option<Offload>,
    idle_restart: bool,
    random: Random,
    recovery: Recovery,
    /// The distribution of RTTs, if the run keeps it.
    pub(crate) rtt_stats: Option<Box<DelayStats>>,
    pub(crate) tcb: Tcb,
    initial_window_pkts: u32,
}

/// The purpose of the timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// Retransmission after a timeout.
    Timeout,
    /// A segment is lost unless it is delivered by then (RFC 8985 section 6.2, step 5).
    Reordering,
    /// Tail loss probe.
    Probe,
}

/// State for algorithms of profile RATE.
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
    /// `keep_rtt`: keeps the distribution of RTTs; `trace`: keeps each call of the algorithm.
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
        let exact_clock = options.rtt_tick_ns == 0;
        let permits_fast_path = recovery.is_sack() && exact_clock && offload.is_none();
        Self {
            timer_due_ns: NEVER,
            pace_due_ns: NEVER,
            rate: tcb.owns_window.then(Box::default),
            last_sent_ns: now_ns,
            receive_window_pkts: options.receive_window_pkts,
            timer: Timer::Timeout,
            permits_fast_path,
            offload,
            idle_restart: options.idle_restart,
            random,
            recovery,
            rtt_stats: keep_rtt.then(Box::default),
            tcb,
            initial_window_pkts: options.initial_window_pkts,
        }
    }

    /// Packets thought to be in the network.
    #[inline]
    pub(crate) fn inflight_pkts(&self) -> u32 {
        self.tcb.board.in_network()
    }

    /// Returns whether all written data are acknowledged.
    pub(crate) fn is_idle(&self) -> bool {
        self.tcb.board.outstanding() == 0 && self.tcb.board.nxt() >= self.tcb.written
    }

    /// The application writes no more; outstanding segments are still repaired.
    pub(crate) fn stop(&mut self) {
        self.tcb.written = self.tcb.board.nxt();
    }

    /// The application writes `segments` more, or as many as there can be.
    pub(crate) fn write(&mut self, now_ns: u64, segments: Option<u32>, out: &mut impl Transmit) {
        self.note_app_limit();
        let tcb = &mut self.tcb;
        let idle_ns = now_ns.saturating_sub(self.last_sent_ns);
        let idle = tcb.board.outstanding() == 0 && idle_ns > tcb.rtt.rto_ns;
        if idle && self.idle_restart && !tcb.owns_window {
            // RFC 5681 section 4.1.
            tcb.refresh(now_ns);
            tcb.conn.cwnd_pkts = tcb.conn.cwnd_pkts.min(self.initial_window_pkts);
            tcb.algorithm.on_event(&mut tcb.conn, Event::CwndRestart);
        }
        tcb.written = segments.map_or(u32::MAX - 1, |n| tcb.written.saturating_add(n));
        self.send(now_ns, out);
    }

    /// Handles an acknowledgement; `sack`: its report besides its number, if it has one.
    #[inline(always)]
    pub(crate) fn on_ack(
        &mut self,
        now_ns: u64,
        ack: packet::Ack,
        sack: Option<&Sack>,
        out: &mut impl Transmit,
    ) {
        if self.is_in_order(ack, sack) {
            return self.process_in_order(now_ns, ack.cumulative, out);
        }
        if ack.cumulative >= self.tcb.board.una && self.tcb.board.outstanding() > 0 {
            self.process_ack(now_ns, ack, sack.unwrap_or(&Sack::NOTHING), out);
        }
    }

    /// The steps for an ACK.
    pub(super) fn process_ack(
        &mut self,
        now_ns: u64,
        ack: packet::Ack,
        sack: &Sack,
        out: &mut impl Transmit,
    ) {
        self.note_app_limit();
        let prior_inflight_pkts = if self.rate.is_some() { self.inflight_pkts() } else { 0 };
        let advanced = ack.cumulative - self.tcb.board.una;
        if advanced > 0
            && let Some(offload) = &mut self.offload
        {
            offload.learn(&mut self.tcb, now_ns);
        }
        let news = self.take_in(now_ns, ack.cumulative, &sack.blocks);
        let tcb = &mut self.tcb;
        let rtt_ns = tcb.rtt.sample_ns(now_ns, &news, tcb.board.rack.min_rtt_ns);
        rtt_ns.into_iter().for_each(|rtt_ns| self.learn_rtt(rtt_ns));
        self.tcb.refresh(now_ns);
        let mut seen = self.view_of(news.delivered_pkts, rtt_ns);
        seen.prior_inflight_pkts = prior_inflight_pkts;
        let tcb = &mut self.tcb;
        let before = tcb.mutable();
        self.report_sample(now_ns, advanced, &news, &mut seen);
        self.undo_if_spurious(&ack, sack, advanced, &news);
        let verdict = self.judge(now_ns, advanced, news.delivered_pkts, ack.echo, out);
        seen.lost_pkts = verdict.lost_pkts;
        let tcb = &mut self.tcb;
        if tcb.owns_window || (advanced > 0 && !verdict.holds_window) {
            if tcb.owns_window || before != tcb.mutable() || seen.lost_pkts > 0 {
                tcb.refresh(now_ns);
            }
            tcb.algorithm.on_ack(&mut tcb.conn, &seen, &mut tcb.counters);
        }
        tcb.conn.cwnd_pkts = tcb.conn.cwnd_pkts.max(1);
        self.rearm(now_ns, advanced, verdict.reordering_due_ns);
        self.send(now_ns, out);
    }

    /// The algorithm's view of an ACK that delivered `acked_pkts`, with this RTT sample.
    #[inline(always)]
    fn view_of(&mut self, acked_pkts: u32, rtt_ns: Option<u64>) -> Ack {
        let tcb = &self.tcb;
        Ack {
            delivered_pkts: tcb.delivered_pkts,
            acked_pkts,
            rtt_us: rtt_ns.map_or(-1, |ns| (ns / NS_PER_US).min(i32::MAX as u64) as i32),
            random: if tcb.algorithm.uses_random { self.random.bits32() } else { 0 },
            ..Ack::default()
        }
    }

    /// Gives the sample of an ACK to the algorithm: `on_rtt` in profile CLASSIC, the delivery rate in RATE.
    fn report_sample(&mut self, now_ns: u64, advanced: u32, news: &News, seen: &mut Ack) {
        let tcb = &mut self.tcb;
        if let Some(rate) = &mut self.rate {
            let rtt_ns = news.sent_ns.map(|sent_ns| now_ns - sent_ns);
            let newest = rate.delivery.take_up_to(tcb.board.una, news.newest.1);
            rate.delivery.acknowledged(newest, now_ns, rtt_ns, seen);
            if news.sent_ns.is_none() {
                seen.rtt_us = -1; // of a retransmission
            }
            return;
        }
        seen.advanced_pkts = advanced;
        tcb.algorithm.on_rtt(&mut tcb.conn, seen, &mut tcb.counters);
        seen.advanced_pkts = 0;
    }

    /// Takes back a reduction that an ACK shows to be unnecessary.
    fn undo_if_spurious(&mut self, ack: &packet::Ack, sack: &Sack, advanced: u32, news: &News) {
        let tcb = &mut self.tcb;
        if sack.duplicate != NONE
            && let Recovery::Sack(recovery) = &mut self.recovery
        {
            recovery.on_duplicate_report(tcb);
            tcb.on_duplicate_report(sack.duplicate);
        }
        if let Some(probe) = tcb.probe {
            tcb.on_probe_answered(probe, ack.cumulative, sack, advanced);
        }
        if advanced > 0 && self.recovery.was_spurious(tcb, news, advanced) {
            tcb.take_back();
        }
    }

    /// Updates the scoreboard with an ACK.
    fn take_in(&mut self, now_ns: u64, cumulative: u32, blocks: &SackBlocks) -> News {
        let tcb = &mut self.tcb;
        let advanced = cumulative - tcb.board.una;
        let mut news = tcb.board.acknowledge(cumulative, now_ns);
        if let Some(delivered_pkts) = self.recovery.delivered_pkts(tcb, advanced) {
            news.delivered_pkts = delivered_pkts;
        } else {
            tcb.board.sack(blocks, now_ns, &mut news);
        }
        tcb.delivered_pkts += u64::from(news.delivered_pkts);
        news
    }

    /// Takes in an RTT sample.
    #[inline(always)]
    fn learn_rtt(&mut self, rtt_ns: u64) {
        if let Some(rtt_stats) = &mut self.rtt_stats {
            rtt_stats.add(rtt_ns);
        }
        self.tcb.board.learn_rtt(rtt_ns);
        self.tcb.rtt.learn(rtt_ns);
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
        let open = tcb.phase() == Phase::Open && !echo;
        if open && self.recovery.is_sack() && !tcb.board.may_have_lost() {
            return Verdict::NOTHING;
        }
        if tcb.phase() == Phase::Cwr && tcb.board.una > tcb.reduction_end {
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
}
