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
//! - `sending`: what leaves, and when: repairs and new data. `offload`: in bursts.
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
mod sending;
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
use scoreboard::News;
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

    /// The state of its algorithm.
    pub(crate) fn state(&self) -> State {
        self.tcb.algorithm.state()
    }

    /// Replaces the state of its algorithm.
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
        let both_called = self.report_sample::<CALM>(now_ns, advanced, &news, &mut seen);
        let mut verdict = Verdict::CALM;
        if !CALM {
            self.undo_if_spurious(&ack, sack, advanced, &news);
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

    /// Gives the algorithm the sample of an ACK: `on_rtt` in profile CLASSIC, the delivery rate in profile RATE.
    /// Whether `on_ack` was called too.
    #[inline(always)]
    fn report_sample<const CALM: bool>(
        &mut self,
        now_ns: u64,
        advanced: u32,
        news: &News,
        seen: &mut Ack,
    ) -> bool {
        let tcb = &mut self.tcb;
        if let Some(rate) = &mut self.rate {
            let rtt_ns = news.sent_ns.map(|sent_ns| now_ns - sent_ns);
            let newest = rate.delivery.take_up_to::<CALM>(tcb.board.una(), news.newest.1);
            rate.delivery.acknowledged(newest, now_ns, rtt_ns, seen);
            if news.sent_ns.is_none() {
                seen.rtt_us = -1; // of a retransmission
            }
            return false;
        }
        seen.advanced_pkts = advanced;
        // If the window was the limit, it is whatever on_rtt makes of it.
        let both_called = CALM
            && tcb.validation.limited
            && tcb.algorithm.on_rtt_and_ack(&mut tcb.conn, seen, &mut tcb.counters);
        if !both_called {
            tcb.algorithm.on_rtt::<CALM>(&mut tcb.conn, seen, &mut tcb.counters);
        }
        seen.advanced_pkts = 0;
        both_called
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
}
