//! TCP sender in Linux's order of events.
//!
//! For each ACK: acknowledge and SACK, RTT estimate, `on_rtt`; judge losses; leave or enter
//! recovery (`ssthresh`); then either the recovery's window or `on_ack`; then send.
//!
//! SACK recovery: RACK-TLP loss detection (RFC 8985), PRR. NewReno recovery: RFC 6582, careful and
//! impatient variants; there `cwnd` is the deflated window, and the inflation by
//! duplicate ACKs stands beside it. NewReno-PRR recovery, as in Linux without SACK: its phases, but
//! each duplicate ACK counts as a packet that has left, and PRR gives the window.
//!
//! Congestion marks (RFC 3168): an ACK that echoes one begins a reduction, in phase CWR, unless one
//! is under way or a loss is being repaired. PRR brings the window to the threshold, whatever the
//! recovery; the phase ends when something sent after its beginning is acknowledged. A loss that is
//! found meanwhile is repaired in the same reduction. New data are ECN-capable, retransmissions not.
//!
//! An algorithm of profile RATE owns the window instead: no `on_rtt`, no PRR, no event at the end of
//! a recovery, no restart after idle times, but `on_ack` last of all for every ACK, with a delivery
//! rate sample; and packets are paced (see `rate`). Losses are found with SACK there.

use crate::{
    host::Host,
    packet::{AckPacket, NONE, SackBlocks},
    rate::Rate,
    recovery::Prr,
    scoreboard::{DUP_THRESH, Losses, News, Scoreboard},
};
use knee_cc::{Ack, Conn, Event, Params, Phase, Profile, SSTHRESH_INFINITE};
use knee_net::{Ecn, NEVER, Random};
use knee_run::{DelayStats, FlowCounters, NS_PER_MS, NS_PER_S, NS_PER_US, Recovery, TcpOptions};

/// RTO before the first RTT sample (RFC 6298 section 2.1).
const RTO_INITIAL_NS: u64 = NS_PER_S;
/// Upper bound of the RTO (RFC 6298 section 2.5 allows one of at least 60 s).
const RTO_MAX_NS: u64 = 60 * NS_PER_S;
/// Largest window the simulator lets an algorithm have.
const CWND_MAX_PKTS: u32 = 1 << 30;
/// Tick of timestamps (RFC 7323 section 5.4; Linux and FreeBSD).
const TIMESTAMP_TICK_NS: u64 = NS_PER_MS;
/// Headers that are at least so long hold a timestamp, bytes.
const HEADERS_WITH_TIMESTAMP_BYTES: u32 = 52;
/// Recoveries without a D-SACK after which the window for reordering is small again (RFC 8985
/// section 6.2, step 4).
const REO_WND_RECOVERIES: u32 = 16;
/// How long a receiver may delay the ACK of a lone segment (RFC 8985 section 7.2).
const MAX_ACK_DELAY_NS: u64 = 200 * NS_PER_MS;

/// What the timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// Retransmission after a timeout.
    Timeout,
    /// A segment is lost unless it is delivered by then (RFC 8985 section 6.2, step 5).
    Reordering,
    /// Tail loss probe (RFC 8985 section 7).
    Probe,
}

pub(crate) struct Sender {
    pub(crate) conn: Conn,
    board: Scoreboard,
    host: Host,
    random: Random,
    /// Position of segment 0 in the contract's wrapping positions: as a real connection's, anywhere.
    base_pos: u32,
    /// Segments that the application has written: those below this number.
    written: u32,
    recovery: Recovery,
    limited_transmit: bool,
    idle_restart: bool,
    ecn: bool,
    /// The next new segment is to say that a reduction was made.
    cwr_pending: bool,
    initial_window_pkts: u32,
    receive_window_pkts: u32,
    rto_min_ns: u64,
    rtt_tick_ns: u64,
    timestamps: bool,
    /// Recovery or loss phase ends when this segment is reached, CWR when it is exceeded.
    high: u32,
    /// RFC 6582 `recover`: no fast retransmit unless more than this was acknowledged.
    recover: Option<u32>,
    dupacks: u32,
    /// Packets that duplicate ACKs allow beyond cwnd (RFC 6582, RFC 3042); below 0 after a partial
    /// ACK whose duplicates were lost.
    inflation: i32,
    partial_acked: bool,
    /// Profile RATE: the algorithm owns the window.
    rate: Option<Box<Rate>>,
    /// When the next packet may leave, if pacing holds one back.
    pub(crate) pace_due_ns: u64,
    /// Packets above `una` that duplicate ACKs say have arrived; NewReno recovery only.
    arrived: u32,
    prr: Prr,
    delivered_pkts: u64,
    srtt_ns: u64,
    rttvar_ns: u64,
    rto_ns: u64,
    backoffs: u32,
    timer: Timer,
    pub(crate) timer_due_ns: u64,
    /// `TLP.end_seq`, and whether the probe was a retransmission.
    probe: Option<(u32, bool)>,
    last_sent_ns: u64,
    /// Linux's cwnd-limited judgement: largest flight of the present window.
    max_outstanding: u32,
    window_end: u32,
    cwnd_limited: bool,
    /// A reduction that D-SACKs may yet prove unnecessary: retransmissions not yet reported twice,
    /// of segments from `undo_from`.
    undo_pending: Option<u32>,
    undo_from: u32,
    /// It was made by a fast recovery, not by a timeout.
    undo_fast: bool,
    reo_wnd: ReoWnd,
    prior_ssthresh_pkts: u32,
    pub(crate) counters: FlowCounters,
    pub(crate) rtt: DelayStats,
    keep_rtt: bool,
}

/// How much reordering is tolerated, once there is some (RFC 8985 section 6.2, step 4).
struct ReoWnd {
    /// `RACK.reo_wnd_mult`, in quarters of the least RTT.
    quarters: u32,
    /// `RACK.dsack_round`: D-SACKs of a round count once.
    round_end: Option<u32>,
    /// `RACK.reo_wnd_persist`.
    recoveries_left: u32,
}

/// Sends one segment: its number, its ECN field, and whether it has the CWR flag.
pub(crate) trait Transmit {
    fn transmit(&mut self, number: u32, ecn: Ecn, cwr: bool);
}

impl Sender {
    pub(crate) fn new(
        params: Params,
        options: &TcpOptions,
        now_ns: u64,
        mut random: Random,
        keep: bool,
        trace: bool,
    ) -> Self {
        let o = options;
        let base_pos = random.bits32();
        let mut conn = Conn {
            now_us: now_ns / NS_PER_US,
            cwnd_pkts: o.initial_window_pkts,
            ssthresh_pkts: SSTHRESH_INFINITE,
            cwnd_max_pkts: CWND_MAX_PKTS,
            mss_bytes: o.mss_bytes,
            snd_pos: base_pos,
            ack_pos: base_pos,
            ..Conn::default()
        };
        let is_rate = params.algorithm().profile() == Profile::Rate;
        let host = Host::new(params, &mut conn, trace);
        Self {
            conn,
            board: Scoreboard::default(),
            host,
            random,
            base_pos,
            written: 0,
            recovery: o.recovery,
            limited_transmit: o.limited_transmit,
            idle_restart: o.idle_restart,
            ecn: o.ecn,
            cwr_pending: false,
            initial_window_pkts: o.initial_window_pkts,
            receive_window_pkts: o.receive_window_pkts,
            rto_min_ns: o.rto_min_ns,
            rtt_tick_ns: o.rtt_tick_ns,
            timestamps: o.header_bytes >= HEADERS_WITH_TIMESTAMP_BYTES,
            high: 0,
            recover: None,
            dupacks: 0,
            inflation: 0,
            partial_acked: false,
            rate: is_rate.then(Box::default),
            pace_due_ns: NEVER,
            arrived: 0,
            prr: Prr::default(),
            delivered_pkts: 0,
            srtt_ns: 0,
            rttvar_ns: 0,
            rto_ns: RTO_INITIAL_NS.max(o.rto_min_ns),
            backoffs: 0,
            timer: Timer::Timeout,
            timer_due_ns: NEVER,
            probe: None,
            last_sent_ns: now_ns,
            max_outstanding: 0,
            window_end: 0,
            cwnd_limited: false,
            undo_pending: None,
            undo_from: 0,
            undo_fast: false,
            reo_wnd: ReoWnd { quarters: 1, round_end: None, recoveries_left: 0 },
            prior_ssthresh_pkts: SSTHRESH_INFINITE,
            counters: FlowCounters::default(),
            rtt: DelayStats::default(),
            keep_rtt: keep,
        }
    }

    pub(crate) fn observe(&self) -> [u32; knee_cc::OBSERVE_N] {
        self.host.observe()
    }

    pub(crate) fn take_trace(&mut self) -> Vec<knee_run::CallRecord> {
        self.host.take_trace()
    }

    /// What the next ACK will touch first beside the sender itself.
    pub(crate) fn first_outstanding(&self) -> Option<&impl Sized> {
        self.board.first()
    }

    /// Packets thought to be in the network.
    #[inline]
    pub(crate) fn inflight_pkts(&self) -> u32 {
        self.board.in_network()
    }

    /// NewReno-PRR: duplicates stand for SACKs, but not while a timeout is repaired.
    fn count_arrived(&mut self) {
        if self.recovery == Recovery::NewrenoPrr {
            let counts = matches!(self.phase(), Phase::Disorder | Phase::Cwr | Phase::Recovery);
            self.board.set_counted(if counts { self.arrived } else { 0 });
        }
    }

    /// The application writes `segments` more, or as many as there can be.
    pub(crate) fn write(&mut self, now_ns: u64, segments: Option<u32>, out: &mut impl Transmit) {
        self.note_app_limit();
        let idle = self.board.outstanding() == 0 && self.rate.is_none();
        if idle && self.idle_restart && now_ns.saturating_sub(self.last_sent_ns) > self.rto_ns {
            // RFC 5681 section 4.1.
            self.refresh(now_ns);
            self.conn.cwnd_pkts = self.conn.cwnd_pkts.min(self.initial_window_pkts);
            self.host.on_event(&mut self.conn, Event::CwndRestart);
        }
        self.written = segments.map_or(u32::MAX - 1, |n| self.written.saturating_add(n));
        self.send(now_ns, out);
    }

    /// First segment after those written so far.
    pub(crate) fn written(&self) -> u32 {
        self.written
    }

    /// Whether all that was written is acknowledged.
    pub(crate) fn is_idle(&self) -> bool {
        self.board.outstanding() == 0 && self.board.nxt() >= self.written
    }

    /// The application writes no more; what is outstanding is still repaired.
    pub(crate) fn stop(&mut self) {
        self.written = self.board.nxt();
    }

    /// Brings the contract's view up to date.
    #[inline]
    fn refresh(&mut self, now_ns: u64) {
        let conn = &mut self.conn;
        conn.now_us = now_ns / NS_PER_US;
        conn.inflight_pkts = self.board.in_network();
        conn.outstanding_pkts = self.board.outstanding();
        conn.srtt_us = (self.srtt_ns / NS_PER_US).min(u64::from(u32::MAX)) as u32;
        conn.snd_pos = self.base_pos.wrapping_add(self.board.nxt());
        conn.ack_pos = self.base_pos.wrapping_add(self.board.una());
        // In slow start a window at least half used counts as limiting (Linux's rule).
        let half_used = u64::from(conn.cwnd_pkts) < 2 * u64::from(self.max_outstanding);
        let slow_start = conn.cwnd_pkts < conn.ssthresh_pkts;
        conn.cwnd_limited = u8::from(self.cwnd_limited || (slow_start && half_used));
        conn.app_limited = u8::from(self.board.nxt() >= self.written);
    }

    #[inline]
    fn phase(&self) -> Phase {
        match self.conn.phase {
            0 => Phase::Open,
            1 => Phase::Disorder,
            2 => Phase::Cwr,
            3 => Phase::Recovery,
            _ => Phase::Loss,
        }
    }

    fn set_phase(&mut self, phase: Phase) {
        self.conn.phase = phase as u8;
    }

    /// Profile RATE: whether the application holds sending back (draft-ietf-ccwg-bbr-06, section
    /// 4.1.2.4). Asked before anything changes: when it writes, an ACK arrives, a timer expires.
    #[inline(never)]
    fn note_app_limit(&mut self) {
        let Some(rate) = &mut self.rate else { return };
        let in_network_pkts = self.board.in_network();
        let has_room = in_network_pkts < self.conn.cwnd_pkts;
        if has_room && self.board.nxt() >= self.written && self.board.next_lost().is_none() {
            rate.limited(self.delivered_pkts + u64::from(in_network_pkts));
        }
    }

    /// An acknowledgement arrives.
    pub(crate) fn on_ack(
        &mut self,
        now_ns: u64,
        ack: AckPacket,
        blocks: Option<SackBlocks>,
        out: &mut impl Transmit,
    ) {
        if ack.cumulative < self.board.una() || self.board.outstanding() == 0 {
            return;
        }
        let mut prior_inflight_pkts = 0;
        if self.rate.is_some() {
            self.note_app_limit();
            prior_inflight_pkts = self.inflight_pkts();
        }
        let advanced = ack.cumulative - self.board.una();
        let mut news: News = self.board.acknowledge(ack.cumulative, now_ns);
        if let (Some(blocks), Recovery::Sack) = (blocks, self.recovery) {
            self.board.sack(&blocks, now_ns, &mut news);
        }
        if self.recovery != Recovery::Sack {
            news.delivered_pkts = self.delivered_without_sack(advanced);
        }
        self.delivered_pkts += u64::from(news.delivered_pkts);
        let rtt_ns = self.sample_ns(now_ns, &news);
        if let Some(rtt_ns) = rtt_ns {
            self.estimate(rtt_ns);
        }
        self.refresh(now_ns);
        let mut seen = Ack {
            delivered_pkts: self.delivered_pkts,
            acked_pkts: news.delivered_pkts,
            lost_pkts: 0,
            rtt_us: rtt_ns.map_or(-1, |ns| (ns / NS_PER_US).min(i32::MAX as u64) as i32),
            random: if self.host.uses_random() { self.random.bits32() } else { 0 },
            prior_inflight_pkts,
            ..Ack::default()
        };
        let before = self.mutable();
        match &mut self.rate {
            None => self.host.on_rtt(&mut self.conn, &seen, &mut self.counters),
            Some(rate) => {
                let rtt_ns = news.sent_ns.map(|sent_ns| now_ns - sent_ns);
                rate.acknowledged(ack.cumulative, news.newest.1, now_ns, rtt_ns, &mut seen);
                if news.sent_ns.is_none() {
                    seen.rtt_us = -1; // of a retransmission
                }
            }
        }
        if ack.duplicate != NONE && self.recovery == Recovery::Sack {
            self.widen_reo_wnd();
            self.on_duplicate_report(ack.duplicate);
        }

        if let Some(probe) = self.probe {
            self.on_probe_answered(probe, ack, advanced);
        }
        let echo = ack.to.echo();
        let (reduced, reordering_due_ns) = self.judge(now_ns, advanced, echo, &mut seen, out);
        let owned = self.rate.is_some();
        if reduced && !owned {
            // The recovery owns the window.
        } else if advanced > 0 || owned {
            if owned || before != self.mutable() || seen.lost_pkts > 0 {
                self.refresh(now_ns);
            }
            self.host.on_ack(&mut self.conn, &seen, &mut self.counters);
        }
        self.conn.cwnd_pkts = self.conn.cwnd_pkts.max(1);
        if self.board.outstanding() == 0 {
            self.timer_due_ns = NEVER;
        } else if reordering_due_ns != NEVER {
            (self.timer, self.timer_due_ns) = (Timer::Reordering, reordering_due_ns);
        } else if self.timer == Timer::Reordering
            || advanced > 0 && !(self.impatient() && self.partial_acked)
        {
            self.arm(now_ns);
        }
        if advanced > 0 && self.impatient() {
            self.partial_acked = true;
        }
        self.send(now_ns, out);
    }

    /// What of the view may change between two calls for one ACK, and then makes it out of date.
    #[inline]
    fn mutable(&self) -> (u8, u32, u32) {
        (self.conn.phase, self.conn.cwnd_pkts, self.conn.ssthresh_pkts)
    }

    /// What an ACK delivered, where only counting duplicates tells of packets beyond a hole: an ACK
    /// that then covers them brings nothing new. (Counted whole, a full ACK would be worth a window
    /// of growth.)
    fn delivered_without_sack(&mut self, advanced: u32) -> u32 {
        self.arrived = match advanced {
            // The timer's retransmissions may themselves be duplicates.
            0 if self.phase() == Phase::Loss => self.arrived,
            0 => self.arrived + 1,
            // One fills the hole, the rest had arrived.
            _ => self.arrived.saturating_sub(advanced - 1),
        };
        self.arrived = self.arrived.min(self.board.outstanding().saturating_sub(1));
        self.count_arrived();
        let delivered_pkts = u64::from(self.board.una()) + u64::from(self.arrived);
        delivered_pkts.saturating_sub(self.delivered_pkts) as u32
    }

    /// RFC 6582 section 3.2 step 3: only the first partial ACK restarts the timer.
    fn impatient(&self) -> bool {
        self.recovery == Recovery::Newreno && self.phase() == Phase::Recovery
    }

    /// RTT sample as a host clock of the chosen tick would read it: at least one tick. Timestamps
    /// give one of a repair too (RFC 7323 section 4.1).
    #[inline]
    fn sample_ns(&mut self, now_ns: u64, news: &News) -> Option<u64> {
        let rtt_ns = match (news.sent_ns, self.rtt_tick_ns) {
            (Some(sent_ns), 0) => now_ns - sent_ns,
            (Some(sent_ns), tick_ns) => (now_ns / tick_ns - sent_ns / tick_ns + 1) * tick_ns,
            (None, _) => {
                let sent_ns = news.repair_sent_ns.filter(|_| self.timestamps)?;
                // Sooner than any packet comes back: the echo is that of the first transmission.
                let least_ns = self.board.min_rtt_ns();
                if least_ns == 0 || now_ns - sent_ns < least_ns {
                    return None;
                }
                let ticks = now_ns / TIMESTAMP_TICK_NS - sent_ns / TIMESTAMP_TICK_NS;
                ticks.max(1) * TIMESTAMP_TICK_NS
            }
        };
        if self.keep_rtt {
            self.rtt.add(rtt_ns);
        }
        Some(rtt_ns)
    }

    /// RFC 6298 section 2. Only a sample ends the timer's backoff (section 5, Karn): an RTT that has
    /// outgrown the timer could otherwise never be measured.
    #[inline]
    fn estimate(&mut self, rtt_ns: u64) {
        self.backoffs = 0;
        self.board.learn_rtt(rtt_ns);
        if self.srtt_ns == 0 {
            self.srtt_ns = rtt_ns;
            self.rttvar_ns = rtt_ns / 2;
        } else {
            let error = self.srtt_ns.abs_diff(rtt_ns);
            self.rttvar_ns = self.rttvar_ns - self.rttvar_ns / 4 + error / 4;
            self.srtt_ns = self.srtt_ns - self.srtt_ns / 8 + rtt_ns / 8;
        }
        // The minimum bounds the margin, as in Linux and FreeBSD: an RTT beyond it, steady at first,
        // would otherwise time out as soon as a queue grows.
        let margin_ns = (4 * self.rttvar_ns).max(self.rtt_tick_ns).max(self.rto_min_ns);
        self.rto_ns = (self.srtt_ns + margin_ns).min(RTO_MAX_NS);
    }

    /// Sets the timer for a timeout, or for a probe that comes first (RFC 8985 section 7.2).
    #[inline]
    fn arm(&mut self, now_ns: u64) {
        let may_probe = [Phase::Open as u8, Phase::Cwr as u8].contains(&self.conn.phase);
        if self.recovery == Recovery::Sack && may_probe && self.srtt_ns > 0 {
            let alone = self.board.outstanding() == 1;
            let pto_ns = 2 * self.srtt_ns + if alone { MAX_ACK_DELAY_NS } else { 0 };
            // Backoff, which would only put the timeout off, has not to be looked at.
            if pto_ns < self.rto_ns {
                (self.timer, self.timer_due_ns) = (Timer::Probe, now_ns + pto_ns);
                return;
            }
        }
        self.arm_rto(now_ns);
    }

    #[inline]
    fn arm_rto(&mut self, now_ns: u64) {
        let rto_ns = self.rto_ns.saturating_mul(1 << self.backoffs.min(16)).min(RTO_MAX_NS);
        (self.timer, self.timer_due_ns) = (Timer::Timeout, now_ns + rto_ns);
    }

    /// Moves between phases; true if the window is not the algorithm's to grow. And when a segment
    /// will be lost unless it is delivered.
    #[inline]
    fn judge(
        &mut self,
        now_ns: u64,
        advanced: u32,
        echo: bool,
        seen: &mut Ack,
        out: &mut impl Transmit,
    ) -> (bool, u64) {
        let calm = self.phase() == Phase::Open && !echo;
        if calm && self.recovery == Recovery::Sack && !self.board.may_have_lost() {
            return (false, NEVER);
        }
        if self.phase() == Phase::Cwr && self.board.una() > self.high {
            self.end_reduction(now_ns);
        }
        let (reduced, reordering_due_ns) = match self.recovery {
            Recovery::Sack => self.judge_sack(now_ns, advanced, seen),
            Recovery::Newreno => (self.judge_newreno(now_ns, advanced, out), NEVER),
            Recovery::NewrenoPrr => (self.judge_newreno_prr(now_ns, advanced, seen), NEVER),
        };
        if echo {
            self.on_echo(now_ns);
        }
        if self.phase() != Phase::Cwr {
            return (reduced, reordering_due_ns);
        }
        if seen.acked_pkts > 0 {
            let progress = advanced > 0 && seen.lost_pkts == 0;
            self.reduce_in_proportion(seen.acked_pkts, progress);
        }
        (true, reordering_due_ns)
    }

    /// An ACK echoes a congestion mark.
    #[cold]
    fn on_echo(&mut self, now_ns: u64) {
        // Congestion there was: a reduction that is under way stands (Linux).
        self.undo_pending = None;
        if matches!(self.phase(), Phase::Open | Phase::Disorder) {
            self.counters.ecn_reductions += 1;
            self.high = self.board.nxt();
            self.begin_reduction(now_ns);
            self.set_phase(Phase::Cwr);
        }
    }

    /// Tolerance for reordering (RFC 8985 section 6.2, step 4).
    fn reo_wnd_ns(&self) -> u64 {
        let hasty = matches!(self.phase(), Phase::Recovery | Phase::Loss);
        if !self.board.reordered() && (hasty || self.board.sacked() >= DUP_THRESH) {
            return 0;
        }
        let quarters = u64::from(self.reo_wnd.quarters);
        (quarters * self.board.min_rtt_ns() / 4).min(self.srtt_ns)
    }

    /// A D-SACK: where packets are known to be reordered, more patience. On other paths it tells of
    /// a needless timeout.
    fn widen_reo_wnd(&mut self) {
        if !self.board.reordered() {
            return;
        }
        if self.reo_wnd.round_end.is_none_or(|end| self.board.una() >= end) {
            self.reo_wnd = ReoWnd {
                quarters: self.reo_wnd.quarters + 1,
                round_end: Some(self.board.nxt()),
                recoveries_left: REO_WND_RECOVERIES,
            };
        }
    }

    /// The end of a recovery, fast or not.
    fn narrow_reo_wnd(&mut self) {
        let left = self.reo_wnd.recoveries_left.saturating_sub(1);
        self.reo_wnd.recoveries_left = left;
        if left == 0 {
            self.reo_wnd.quarters = 1;
        }
    }

    #[inline(never)]
    fn judge_sack(&mut self, now_ns: u64, advanced: u32, seen: &mut Ack) -> (bool, u64) {
        let reached = self.board.una() >= self.high;
        match self.phase() {
            Phase::Recovery if reached => {
                self.end_reduction(now_ns);
                self.narrow_reo_wnd();
            }
            Phase::Loss if reached => {
                self.set_phase(Phase::Open);
                self.narrow_reo_wnd();
            }
            _ => {}
        }
        let losses = if self.board.may_have_lost() {
            self.board.mark_lost(now_ns, self.reo_wnd_ns())
        } else {
            Losses::NONE
        };
        seen.lost_pkts = losses.marked_pkts;
        self.enter_if_lost(now_ns, losses);
        if self.phase() != Phase::Recovery {
            return (false, losses.next_ns);
        }
        if seen.acked_pkts > 0 {
            let progress = advanced > 0 && losses.marked_pkts == 0;
            self.reduce_in_proportion(seen.acked_pkts, progress);
        }
        (true, losses.next_ns)
    }

    /// Begins a recovery where there is a loss, and none before it that is still being repaired.
    fn enter_if_lost(&mut self, now_ns: u64, losses: Losses) {
        match self.phase() {
            Phase::Loss if !losses.again => return,
            Phase::Recovery => return,
            _ => {}
        }
        if self.board.lost() > 0 {
            self.enter_recovery(now_ns);
        } else if self.phase() != Phase::Cwr {
            let suspicious = self.board.sacked() > 0;
            self.set_phase(if suspicious { Phase::Disorder } else { Phase::Open });
        }
    }

    fn reduce_in_proportion(&mut self, delivered_pkts: u32, progress: bool) {
        if self.rate.is_some() {
            return;
        }
        let (pipe, ssthresh) = (self.inflight_pkts(), self.conn.ssthresh_pkts);
        self.conn.cwnd_pkts = self.prr.window(delivered_pkts, pipe, ssthresh, progress);
    }

    /// RFC 6582 section 3.2 with the window of RFC 6937. A phase ends when something above what was
    /// outstanding at its start is acknowledged: the ACK of just that may have duplicates behind it.
    fn judge_newreno_prr(&mut self, now_ns: u64, advanced: u32, seen: &mut Ack) -> bool {
        let una = self.board.una();
        self.dupacks = if advanced > 0 { 0 } else { self.dupacks + 1 };
        match self.phase() {
            Phase::Recovery if una > self.high => self.end_reduction(now_ns),
            Phase::Recovery if advanced > 0 && una < self.high => {
                seen.lost_pkts = self.board.mark_first_lost();
            }
            Phase::Loss if una > self.high => self.set_phase(Phase::Open),
            Phase::Recovery | Phase::Loss => {}
            _ if self.dupacks >= DUP_THRESH => {
                self.enter_recovery(now_ns);
                seen.lost_pkts = self.board.mark_first_lost();
            }
            Phase::Cwr => {}
            _ if advanced > 0 => self.set_phase(Phase::Open),
            _ => self.set_phase(Phase::Disorder),
        }
        self.count_arrived();
        if self.phase() != Phase::Recovery {
            return false;
        }
        if seen.acked_pkts > 0 {
            let progress = advanced > 0 && seen.lost_pkts == 0;
            self.reduce_in_proportion(seen.acked_pkts, progress);
        }
        true
    }

    /// RFC 6582 section 3.2, by its steps.
    fn judge_newreno(&mut self, now_ns: u64, advanced: u32, out: &mut impl Transmit) -> bool {
        let una = self.board.una();
        if advanced > 0 {
            self.dupacks = 0;
            match self.phase() {
                Phase::Recovery if una >= self.high => {
                    // Step 3, full acknowledgement, the burst-avoiding form.
                    let flight = self.board.outstanding().max(1);
                    self.conn.cwnd_pkts = self.conn.ssthresh_pkts.min(flight + 1);
                    self.inflation = 0;
                    self.leave_recovery(now_ns);
                    self.set_phase(Phase::Open);
                }
                Phase::Recovery => {
                    // Step 3, partial acknowledgement: repair the next hole, deflate.
                    self.conn.cwnd_pkts = self.conn.ssthresh_pkts;
                    self.inflation += 1 - advanced as i32;
                    self.retransmit(una, now_ns, out);
                }
                Phase::Loss if una < self.high => {}
                Phase::Cwr => self.inflation = 0,
                _ => {
                    self.inflation = 0;
                    self.set_phase(Phase::Open);
                }
            }
            return self.phase() == Phase::Recovery;
        }
        self.dupacks += 1;
        match self.phase() {
            Phase::Recovery => {
                // Step 2: each duplicate means that a packet has left. The algorithm may have moved
                // its threshold meanwhile.
                self.conn.cwnd_pkts = self.conn.ssthresh_pkts;
                self.inflation += 1;
            }
            Phase::Loss => {}
            _ if self.dupacks >= DUP_THRESH && self.recover.is_none_or(|r| una > r) => {
                // Step 2, entering.
                self.enter_recovery(now_ns);
                self.recover = Some(self.high);
                self.conn.cwnd_pkts = self.conn.ssthresh_pkts;
                self.inflation = DUP_THRESH as i32;
                self.retransmit(una, now_ns, out);
            }
            phase => {
                if phase != Phase::Cwr {
                    self.set_phase(Phase::Disorder);
                }
                // RFC 3042: the first two duplicates each allow one new packet.
                let allowed = self.dupacks.min(DUP_THRESH - 1);
                self.inflation = if self.limited_transmit { allowed as i32 } else { 0 };
            }
        }
        true
    }

    fn enter_recovery(&mut self, now_ns: u64) {
        // Once per window: a reduction for a mark goes on as one for the loss, and ends where it would
        // have ended.
        if self.phase() != Phase::Cwr {
            self.allow_undo(true);
            self.high = self.board.nxt();
            self.begin_reduction(now_ns);
        }
        self.set_phase(Phase::Recovery);
        self.partial_acked = false;
    }

    /// Asks for the threshold that the window is to be brought to.
    fn begin_reduction(&mut self, now_ns: u64) {
        self.counters.loss_events += 1;
        self.probe = None;
        self.prr = Prr::start(self.conn.cwnd_pkts);
        self.conn.cwnd_cnt = 0;
        self.refresh(now_ns);
        self.host.ssthresh(&mut self.conn, &mut self.counters);
        self.cwr_pending = self.ecn;
    }

    /// The reduction has come to its end; without SACK's PRR the window may be below the threshold.
    fn end_reduction(&mut self, now_ns: u64) {
        if self.rate.is_none() {
            self.conn.cwnd_pkts = self.conn.ssthresh_pkts;
        }
        self.leave_recovery(now_ns);
    }

    fn leave_recovery(&mut self, now_ns: u64) {
        if self.rate.is_none() {
            self.refresh(now_ns);
            self.host.on_event(&mut self.conn, Event::Recovered);
        }
        self.set_phase(Phase::Open);
    }

    /// From here on D-SACKs count towards undoing the reduction that is being made, by a `fast`
    /// recovery or by a timeout.
    fn allow_undo(&mut self, fast: bool) {
        self.undo_fast = fast;
        self.prior_ssthresh_pkts = self.conn.ssthresh_pkts;
        self.undo_pending = Some(0);
        self.undo_from = self.board.una();
    }

    /// A D-SACK: one retransmission was unnecessary. When all were, so was the reduction. Reports of
    /// an earlier window's retransmissions say nothing of this reduction.
    fn on_duplicate_report(&mut self, number: u32) {
        let pending = self.undo_pending.filter(|&p| p > 0 && number >= self.undo_from);
        let Some(pending) = pending else { return };
        self.undo_pending = Some(pending - 1);
        if pending > 1 {
            return;
        }
        self.undo_pending = None;
        self.counters.undos += 1;
        if self.undo_fast {
            // What was taken for lost was late. RFC 8985 section 6.2, step 3, sees that only where
            // nothing was retransmitted; without this a path that always delays by more than three
            // packets would never be known to reorder.
            self.board.note_reordering();
        }
        self.host.undo(&mut self.conn);
        self.conn.ssthresh_pkts = self.conn.ssthresh_pkts.max(self.prior_ssthresh_pkts);
        self.board.forget_losses();
        self.set_phase(Phase::Open);
    }

    /// The timer expired.
    pub(crate) fn on_timer(&mut self, now_ns: u64, out: &mut impl Transmit) {
        self.timer_due_ns = NEVER;
        if self.board.outstanding() == 0 {
            return;
        }
        self.note_app_limit();
        match self.timer {
            Timer::Timeout => self.on_timeout(now_ns, out),
            Timer::Reordering => self.on_reordering_timer(now_ns, out),
            Timer::Probe => self.send_probe(now_ns, out),
        }
    }

    /// RFC 8985 section 6.3.
    fn on_reordering_timer(&mut self, now_ns: u64, out: &mut impl Transmit) {
        let losses = self.board.mark_lost(now_ns, self.reo_wnd_ns());
        let before = self.phase();
        self.enter_if_lost(now_ns, losses);
        if before != Phase::Recovery && self.phase() == Phase::Recovery {
            self.reduce_in_proportion(1, false);
        }
        if losses.next_ns == NEVER {
            self.arm_rto(now_ns);
        } else {
            (self.timer, self.timer_due_ns) = (Timer::Reordering, losses.next_ns);
        }
        self.send(now_ns, out);
    }

    /// RFC 8985 section 7.3: a new segment if there is one, else the last one again.
    fn send_probe(&mut self, now_ns: u64, out: &mut impl Transmit) {
        if self.probe.is_none() {
            let retransmits = self.board.nxt() >= self.sendable_end();
            if retransmits {
                self.retransmit(self.board.nxt() - 1, now_ns, out);
            } else {
                self.note_sending(self.board.nxt(), now_ns);
                self.send_new(now_ns, out);
            }
            self.probe = Some((self.board.nxt(), retransmits));
        }
        self.arm_rto(now_ns);
    }

    /// RFC 8985 section 7.4: whether a probe has repaired a loss, which then reduces the window.
    #[cold]
    fn on_probe_answered(&mut self, probe: (u32, bool), ack: AckPacket, advanced: u32) {
        let (end, retransmitted) = probe;
        if ack.cumulative < end {
            return;
        }
        let reported = ack.duplicate != NONE && ack.duplicate + 1 == end;
        let duplicate = advanced == 0 && ack.blocks == NONE;
        if !retransmitted || reported || ack.cumulative > end || duplicate {
            self.probe = None;
        }
        // For a mark, which a loss may have joined since the probe left.
        let reducing = matches!(self.phase(), Phase::Cwr | Phase::Recovery);
        if retransmitted && !reported && ack.cumulative > end && !reducing {
            self.counters.loss_events += 1;
            self.conn.cwnd_cnt = 0;
            self.host.ssthresh(&mut self.conn, &mut self.counters);
            self.cwr_pending = self.ecn;
            if self.rate.is_some() {
                return;
            }
            self.set_phase(Phase::Cwr);
            self.conn.cwnd_pkts = self.conn.ssthresh_pkts;
            self.host.on_event(&mut self.conn, Event::Recovered);
            self.set_phase(Phase::Open);
        }
    }

    fn on_timeout(&mut self, now_ns: u64, out: &mut impl Transmit) {
        self.counters.timeouts += 1;
        // One reduction per window: not again for a retransmission that was lost, be it the timer's
        // (RFC 5681 section 3.1) or fast recovery's (Linux).
        if matches!(self.phase(), Phase::Open | Phase::Disorder) {
            self.allow_undo(false);
            self.refresh(now_ns);
            self.host.ssthresh(&mut self.conn, &mut self.counters);
            self.host.on_event(&mut self.conn, Event::Rto);
            self.cwr_pending = self.ecn;
        }
        let patience_ns = match self.recovery {
            Recovery::Sack => self.board.patience_ns(self.reo_wnd_ns()),
            Recovery::Newreno | Recovery::NewrenoPrr => 0,
        };
        self.board.mark_timed_out(now_ns, patience_ns);
        self.probe = None;
        self.set_phase(Phase::Loss);
        self.count_arrived();
        // What else is in the network was sent too lately to be lost.
        self.conn.cwnd_pkts = self.board.in_network() + 1;
        self.conn.cwnd_cnt = 0;
        self.high = self.board.nxt();
        self.recover = Some(self.high);
        self.dupacks = 0;
        self.inflation = 0;
        self.backoffs += 1;
        self.arm_rto(now_ns);
        self.send(now_ns, out);
    }

    #[inline(never)]
    fn retransmit(&mut self, number: u32, now_ns: u64, out: &mut impl Transmit) {
        self.note_sending(number, now_ns);
        self.board.retransmitted(number, now_ns);
        self.counters.retransmitted_pkts += 1;
        if let Some(pending) = &mut self.undo_pending {
            *pending += 1;
        }
        self.sent(now_ns);
        if number == self.board.una() && self.recovery != Recovery::Newreno {
            // The repair of the first hole has the whole of a timeout to be acknowledged, as in
            // Linux; without SACK this is RFC 6582's slow-but-steady variant (section 4).
            self.arm_rto(now_ns);
        }
        out.transmit(number, Ecn::NotCapable, false);
    }

    #[inline]
    fn send_new(&mut self, now_ns: u64, out: &mut impl Transmit) {
        let number = self.board.push(now_ns);
        self.sent(now_ns);
        let ecn = if self.ecn { Ecn::Capable } else { Ecn::NotCapable };
        let cwr = self.cwr_pending;
        if cwr {
            self.cwr_pending = false;
        }
        out.transmit(number, ecn, cwr);
    }

    /// Profile RATE: segment `number` is about to leave.
    #[inline]
    fn note_sending(&mut self, number: u32, now_ns: u64) {
        if let Some(rate) = &mut self.rate {
            let idle = self.board.in_network() == 0;
            rate.sent(number, now_ns, idle, self.delivered_pkts);
            rate.pace(now_ns, self.conn.mss_bytes, self.conn.pacing_bytes_per_s);
        }
    }

    /// The first segment that is not written, or that the receive window does not allow.
    #[inline]
    fn sendable_end(&self) -> u32 {
        self.written.min(self.board.una().saturating_add(self.receive_window_pkts))
    }

    #[inline]
    fn sent(&mut self, now_ns: u64) {
        self.counters.sent_pkts += 1;
        self.last_sent_ns = now_ns;
        if (Phase::Cwr as u8..=Phase::Recovery as u8).contains(&self.conn.phase) {
            self.prr.sent();
        }
        if self.timer_due_ns == NEVER {
            self.arm(now_ns);
        }
    }

    /// Sends what the windows allow: repairs first, then new data.
    fn send(&mut self, now_ns: u64, out: &mut impl Transmit) {
        // Without limited transmit, SACKed packets do not make room until a loss is inferred.
        let unused = self.conn.phase == Phase::Disorder as u8 && !self.limited_transmit;
        let held_back = if unused { self.board.sacked() } else { 0 };
        let window = self.conn.cwnd_pkts.saturating_add_signed(self.inflation);
        let room = |board: &Scoreboard| board.in_network() + held_back < window;
        if self.rate.is_some() {
            self.send_paced(now_ns, room, out);
            return;
        }
        while room(&self.board) {
            let Some(number) = self.board.next_lost() else { break };
            self.retransmit(number, now_ns, out);
        }
        let end = self.sendable_end();
        self.note_start(now_ns, end);
        while room(&self.board) && self.board.nxt() < end {
            self.send_new(now_ns, out);
        }
        self.validate(!room(&self.board));
    }

    /// The first transmission after everything was acknowledged.
    #[inline]
    fn note_start(&mut self, now_ns: u64, end: u32) {
        if self.board.outstanding() == 0 && self.board.nxt() < end && self.delivered_pkts > 0 {
            self.refresh(now_ns);
            self.host.on_event(&mut self.conn, Event::TxStart);
        }
    }

    /// The same at the pace that the algorithm asks for: one packet when it is due, then the time of
    /// the next.
    #[inline(never)]
    fn send_paced(
        &mut self,
        now_ns: u64,
        room: impl Fn(&Scoreboard) -> bool,
        out: &mut impl Transmit,
    ) {
        self.pace_due_ns = NEVER;
        let end = self.sendable_end();
        while room(&self.board) {
            let lost = self.board.next_lost();
            if lost.is_none() && self.board.nxt() >= end {
                break;
            }
            let due_ns = self.rate.as_ref().map_or(0, |rate| rate.next_send_ns());
            if due_ns > now_ns && self.conn.pacing_bytes_per_s > 0 {
                self.pace_due_ns = due_ns;
                break;
            }
            match lost {
                Some(number) => self.retransmit(number, now_ns, out),
                None => {
                    self.note_start(now_ns, end);
                    self.note_sending(self.board.nxt(), now_ns);
                    self.send_new(now_ns, out);
                }
            }
        }
        self.validate(!room(&self.board));
    }

    /// The next packet may leave.
    pub(crate) fn on_pace(&mut self, now_ns: u64, out: &mut impl Transmit) {
        self.note_app_limit();
        self.send(now_ns, out);
    }

    /// Remembers whether the window was the limit, once per window as Linux does.
    #[inline]
    fn validate(&mut self, limited: bool) {
        let outstanding = self.board.outstanding();
        let new_window = self.board.una() >= self.window_end;
        if new_window || limited || (!self.cwnd_limited && outstanding > self.max_outstanding) {
            self.cwnd_limited = limited;
            self.max_outstanding = outstanding;
            self.window_end = self.board.nxt();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::AckTo;
    use knee_run::NS_PER_MS;

    impl Transmit for Vec<u32> {
        fn transmit(&mut self, number: u32, _: Ecn, _: bool) {
            self.push(number);
        }
    }

    /// A bulk sender whose initial window is out, and the packets of it.
    fn sender(recovery: Recovery, initial_window_pkts: u32) -> (Sender, Vec<u32>) {
        let params = Params::defaults(knee_cc::algorithm("newreno").unwrap());
        let options = TcpOptions { recovery, initial_window_pkts, ..TcpOptions::default() };
        let mut sender =
            Sender::new(params, &options, 0, Random::stream(1, "test", 0), false, false);
        let mut out = Vec::new();
        sender.write(0, None, &mut out);
        (sender, out)
    }

    fn ack(cumulative: u32) -> AckPacket {
        AckPacket { to: AckTo::default(), cumulative, duplicate: NONE, blocks: NONE }
    }

    /// What a sender puts on the wire: number, whether it may be marked, CWR.
    #[derive(Default)]
    struct Wire(Vec<(u32, bool, bool)>);

    impl Transmit for Wire {
        fn transmit(&mut self, number: u32, ecn: Ecn, cwr: bool) {
            self.0.push((number, ecn == Ecn::Capable, cwr));
        }
    }

    /// As `sender`, ECN-capable, with a window of 20 and a trace.
    fn capable(recovery: Recovery) -> (Sender, Wire) {
        let params = Params::defaults(knee_cc::algorithm("newreno").unwrap());
        let options =
            TcpOptions { recovery, initial_window_pkts: 20, ecn: true, ..TcpOptions::default() };
        let mut sender =
            Sender::new(params, &options, 0, Random::stream(1, "test", 0), false, true);
        let mut out = Wire::default();
        sender.write(0, None, &mut out);
        assert_eq!(out.0, (0..20).map(|n| (n, true, false)).collect::<Vec<_>>());
        out.0.clear();
        (sender, out)
    }

    fn echo(cumulative: u32) -> AckPacket {
        AckPacket { to: AckTo::new(0, true), ..ack(cumulative) }
    }

    /// An echo with the first of 20 packets, and with all others: one reduction. 19 are outstanding,
    /// so ssthresh is 9, and PRR lets ceil(k 9/20) packets out for k acknowledged: with the 1st, 3rd,
    /// 5th, 7th, 9th, 12th, 14th, 16th and 18th. The phase ends with the ACK of one of them.
    #[test]
    fn an_echo_reduces_once_per_window() {
        for recovery in [Recovery::Sack, Recovery::Newreno, Recovery::NewrenoPrr] {
            let (mut sender, mut out) = capable(recovery);
            let mut sent_at = Vec::new();
            for k in 1..=20 {
                sender.on_ack(100 * NS_PER_MS, echo(k), None, &mut out);
                assert_eq!(sender.phase(), Phase::Cwr);
                assert_eq!(sender.conn.ssthresh_pkts, 9);
                if out.0.len() > sent_at.len() {
                    sent_at.push(k);
                }
            }
            assert_eq!(sent_at, [1, 3, 5, 7, 9, 12, 14, 16, 18], "{recovery:?}");
            // The first new packet says that the window was reduced.
            let new: Vec<_> = (20..29).map(|n| (n, true, n == 20)).collect();
            assert_eq!(out.0, new);
            let c = sender.counters;
            assert_eq!((c.ecn_reductions, c.loss_events, c.timeouts), (1, 1, 0));
            sender.on_ack(200 * NS_PER_MS, ack(21), None, &mut out);
            assert_eq!((sender.phase(), sender.conn.cwnd_pkts), (Phase::Open, 9));
            // An echo now is of the next window.
            sender.on_ack(200 * NS_PER_MS, echo(22), None, &mut out);
            assert_eq!((sender.phase(), sender.counters.ecn_reductions), (Phase::Cwr, 2));
            let calls: Vec<_> = sender.take_trace().iter().map(|c| c.call).collect();
            use knee_run::Call::{Init, OnAck, OnEvent, OnRtt, Ssthresh};
            assert_eq!(calls[..3], [Init, OnRtt, Ssthresh]);
            assert_eq!(calls[3..22], [OnRtt; 19]);
            assert_eq!(calls[22..], [OnRtt, OnEvent, OnAck, OnRtt, Ssthresh]);
        }
    }

    /// A loss that is found while the window is reduced for a mark is repaired in the same reduction:
    /// the threshold is not asked for again, and the repair cannot be marked.
    #[test]
    fn a_loss_joins_the_reduction_for_a_mark() {
        for recovery in [Recovery::Sack, Recovery::Newreno, Recovery::NewrenoPrr] {
            let (mut sender, mut out) = capable(recovery);
            sender.on_ack(100 * NS_PER_MS, echo(1), None, &mut out);
            assert_eq!(sender.phase(), Phase::Cwr);
            // Packet 1 is lost; what came after it tells so.
            for k in 0..4 {
                let blocks = Some([(2, 3 + k), (0, 0), (0, 0)]);
                sender.on_ack((110 + u64::from(k)) * NS_PER_MS, echo(1), blocks, &mut out);
            }
            assert_eq!(sender.phase(), Phase::Recovery, "{recovery:?}");
            assert!(out.0.contains(&(1, false, false)), "{:?}", out.0);
            let c = sender.counters;
            assert_eq!((c.ecn_reductions, c.loss_events), (1, 1));
            assert_eq!(sender.conn.ssthresh_pkts, 9);
            let trace = sender.take_trace();
            let asked = trace.iter().filter(|c| c.call == knee_run::Call::Ssthresh).count();
            assert_eq!(asked, 1);
        }
    }

    /// A probe that leaves while the window is reduced for a mark, and repairs a loss that joins the
    /// reduction: there is no second one.
    #[test]
    fn a_probe_does_not_reduce_a_reduced_window() {
        let params = Params::defaults(knee_cc::algorithm("newreno").unwrap());
        let options = TcpOptions { initial_window_pkts: 20, ecn: true, ..TcpOptions::default() };
        let random = Random::stream(1, "test", 0);
        let mut sender = Sender::new(params, &options, 0, random, false, true);
        let mut out = Wire::default();
        sender.write(0, Some(20), &mut out);
        // All but 1 and 19 arrive; what follows 1 tells so after the probe, 19 again.
        sender.on_ack(100 * NS_PER_MS, echo(1), None, &mut out);
        assert_eq!((sender.phase(), sender.timer), (Phase::Cwr, Timer::Probe));
        out.0.clear();
        sender.on_timer(sender.timer_due_ns, &mut out);
        assert_eq!((out.0.last(), sender.probe), (Some(&(19, false, false)), Some((20, true))));
        sender.on_ack(310 * NS_PER_MS, ack(1), Some([(2, 19), (0, 0), (0, 0)]), &mut out);
        assert_eq!(sender.phase(), Phase::Recovery);
        sender.write(320 * NS_PER_MS, Some(5), &mut out);
        assert!(sender.board.nxt() > 20);
        sender.on_ack(420 * NS_PER_MS, ack(21), None, &mut out);
        assert_eq!((sender.probe, sender.phase()), (None, Phase::Open));
        let trace = sender.take_trace();
        assert_eq!(trace.iter().filter(|c| c.call == knee_run::Call::Ssthresh).count(), 1);
    }

    /// A marked window was no mistake: what D-SACKs tell later does not bring it back.
    #[test]
    fn an_echo_forbids_undoing() {
        let (mut sender, mut out) = capable(Recovery::Sack);
        sender.on_timeout(1000 * NS_PER_MS, &mut out);
        assert_eq!(out.0, [(0, false, false)]);
        sender.on_ack(1010 * NS_PER_MS, echo(10), None, &mut out);
        let report = AckPacket { duplicate: 0, ..ack(11) };
        sender.on_ack(1020 * NS_PER_MS, report, None, &mut out);
        assert_eq!(sender.counters.undos, 0);
        assert_eq!(sender.phase(), Phase::Loss);
    }

    /// Profile RATE: bbr starts at 2.77 initial windows per millisecond, 40 109 600 bytes/s, so that 1448
    /// bytes take 36 101.08 ns. All packets leave at their times, the tenth fills the window.
    #[test]
    fn an_algorithm_that_paces_is_obeyed() {
        let params = Params::defaults(knee_cc::algorithm("bbr").unwrap());
        let random = Random::stream(1, "test", 0);
        let mut sender = Sender::new(params, &TcpOptions::default(), 0, random, false, true);
        let mut out = Vec::new();
        sender.write(0, None, &mut out);
        let mut times_ns = Vec::new();
        while sender.pace_due_ns != NEVER {
            let due_ns = sender.pace_due_ns;
            sender.on_pace(due_ns - 1, &mut out);
            assert_eq!(out.len(), times_ns.len() + 1, "not before its time");
            sender.on_pace(due_ns, &mut out);
            times_ns.push(due_ns);
        }
        let exact_ns = |n: u32| (f64::from(n) * 1448.0 * 1e9 / 40_109_600.0).ceil() as u64;
        assert_eq!(times_ns, (1..10).map(exact_ns).collect::<Vec<_>>());
        assert_eq!(out, (0..10).collect::<Vec<_>>());
        // A long time later one packet leaves at once: no burst makes up for it.
        out.clear();
        sender.on_ack(100 * NS_PER_MS, ack(10), None, &mut out);
        assert_eq!(out, [10]);
        // The tenth left at 325 us: 14480 bytes * 2.77 in 99.675 ms are 402 403 bytes/s, one packet in
        // 3 598 382.7 ns.
        assert_eq!(sender.conn.pacing_bytes_per_s, 402_403);
        assert_eq!(sender.pace_due_ns, 100 * NS_PER_MS + 3_598_383);
        let calls: Vec<_> = sender.take_trace().iter().map(|c| c.call).collect();
        use knee_run::Call::{Init, OnAck, OnEvent};
        assert_eq!(calls, [Init, OnAck, OnEvent]);
    }

    /// Profile RATE: losses ask for a threshold and leave the window; the ACK of the loss is given after
    /// that, with what it lost, in recovery; the end of recovery is told by the phase alone.
    #[test]
    fn an_algorithm_that_owns_its_window_keeps_it_in_recovery() {
        let params = Params::defaults(knee_cc::algorithm("bbr").unwrap());
        let random = Random::stream(1, "test", 0);
        let mut sender = Sender::new(params, &TcpOptions::default(), 0, random, false, true);
        let mut out = Vec::new();
        sender.write(0, None, &mut out);
        while sender.pace_due_ns != NEVER {
            sender.on_pace(sender.pace_due_ns, &mut out);
        }
        sender.on_ack(100 * NS_PER_MS, ack(1), None, &mut out);
        // 1 is lost.
        for k in 0..3 {
            let blocks = Some([(2, 3 + k), (0, 0), (0, 0)]);
            sender.on_ack((101 + u64::from(k)) * NS_PER_MS, ack(1), blocks, &mut out);
        }
        assert_eq!((sender.phase(), sender.conn.cwnd_pkts), (Phase::Recovery, 14));
        sender.on_ack(400 * NS_PER_MS, ack(10), None, &mut out);
        assert_eq!(sender.counters.loss_events, 1);
        let trace = sender.take_trace();
        use knee_run::Call::{Init, OnAck, Ssthresh};
        let calls: Vec<_> = trace.iter().map(|c| c.call).collect();
        assert_eq!(calls, [Init, OnAck, OnAck, OnAck, Ssthresh, OnAck, OnAck]);
        let told: Vec<_> = trace.iter().map(|c| (c.before.phase, c.ack.lost_pkts)).collect();
        assert_eq!(told[1..], [(0, 0), (1, 0), (1, 0), (1, 0), (3, 1), (3, 0)]);
        let ack = trace[5].ack;
        assert_eq!((ack.acked_pkts, ack.delivered_pkts, ack.prior_inflight_pkts), (1, 4, 8));
        assert_eq!((ack.sample_pkts, ack.sample_us, ack.sample_prior_pkts), (4, 103_000, 0));
    }

    #[test]
    fn a_report_of_an_earlier_window_undoes_nothing() {
        let (mut sender, mut out) = sender(Recovery::Sack, 10);
        // A needless timeout; then the first flight turns out to have arrived.
        sender.on_timeout(1000 * NS_PER_MS, &mut out);
        sender.on_ack(1010 * NS_PER_MS, ack(10), None, &mut out);
        // Packet 10 of the next flight is lost indeed.
        let blocks = [(11, 14), (0, 0), (0, 0)];
        sender.on_ack(1050 * NS_PER_MS, ack(10), Some(blocks), &mut out);
        assert_eq!(sender.phase(), Phase::Recovery);
        // The timeout's retransmission has arrived, needless.
        let report = AckPacket { duplicate: 0, ..ack(10) };
        sender.on_ack(1060 * NS_PER_MS, report, Some(blocks), &mut out);
        assert_eq!((sender.counters.undos, sender.phase()), (0, Phase::Recovery));
        // A report of packet 10 would have been another matter.
        let report = AckPacket { duplicate: 10, ..ack(11) };
        sender.on_ack(1070 * NS_PER_MS, report, None, &mut out);
        assert_eq!(sender.counters.undos, 1);
    }

    /// RFC 6582 section 3.2 step 3: the window shrinks by what a partial ACK covers, though not all
    /// of it had been announced by duplicates.
    #[test]
    fn a_partial_ack_deflates_in_full() {
        let (mut sender, mut out) = sender(Recovery::Newreno, 20);
        out.clear();
        for _ in 0..3 {
            sender.on_ack(100 * NS_PER_MS, ack(0), None, &mut out);
        }
        // Limited transmit, then the repair; ssthresh = 10, the window 10 + 3.
        assert_eq!(out, [20, 21, 0]);
        // 10 is lost too, and the other duplicates were lost on their way: 13 - 10 + 1 = 4, with 12
        // outstanding.
        out.clear();
        sender.on_ack(200 * NS_PER_MS, ack(10), None, &mut out);
        assert_eq!(out, [10]);
        // Eight more duplicates only fill what is missing; the ninth lets a packet out.
        for _ in 0..8 {
            sender.on_ack(210 * NS_PER_MS, ack(10), None, &mut out);
        }
        assert_eq!(out, [10]);
        sender.on_ack(210 * NS_PER_MS, ack(10), None, &mut out);
        assert_eq!(out, [10, 22]);
    }

    /// Without SACK: what duplicates told of is delivered once, and a timeout's own duplicates tell
    /// of nothing.
    #[test]
    fn duplicates_count_as_deliveries_once() {
        let (mut sender, mut out) = sender(Recovery::Newreno, 20);
        let mut told = Vec::new();
        let mut hear = |sender: &mut Sender, ms: u64, cumulative: u32| {
            let before = sender.delivered_pkts;
            sender.on_ack(ms * NS_PER_MS, ack(cumulative), None, &mut out);
            told.push(sender.delivered_pkts - before);
        };
        // 0 and 5 are lost: 1 to 4 and 6 to 10 tell of themselves; then the repair of 0 arrives,
        // then 11, then the repair of 5.
        (0..9).for_each(|_| hear(&mut sender, 100, 0));
        hear(&mut sender, 200, 5);
        hear(&mut sender, 210, 5);
        hear(&mut sender, 300, 12);
        assert_eq!(told, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
        // A timeout, and 12 to 16 arrive twice.
        let mut none = Vec::new();
        sender.on_timeout(2000 * NS_PER_MS, &mut none);
        let mut hear = |cumulative| {
            let before = sender.delivered_pkts;
            sender.on_ack(2100 * NS_PER_MS, ack(cumulative), None, &mut none);
            sender.delivered_pkts - before
        };
        assert_eq!([hear(17), hear(17), hear(17), hear(18)], [5, 0, 0, 1]);
    }

    #[test]
    fn undoing_forgets_the_losses_too() {
        let (mut sender, mut out) = sender(Recovery::Sack, 10);
        // An RTT of 100, and two new packets.
        sender.on_ack(100 * NS_PER_MS, ack(1), None, &mut out);
        out.clear();
        sender.on_timeout(1000 * NS_PER_MS, &mut out);
        assert_eq!((&out[..], sender.board.lost()), (&[1][..], 11));
        out.clear();
        // The ACK of the original was lost, that of the retransmission reports it: all is well. It
        // came too soon to be one that tells of what was sent before it (RFC 8985 section 6.2).
        let report = AckPacket { duplicate: 1, ..ack(2) };
        sender.on_ack(1010 * NS_PER_MS, report, None, &mut out);
        assert_eq!((sender.counters.undos, sender.phase()), (1, Phase::Open));
        // 2 to 11 are in the network; the window is 11 again, and one more for this ACK.
        assert_eq!(out, [12, 13]);
    }
}
