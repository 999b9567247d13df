//! The transmission control block: the state that every recovery and every timer works on.

use super::{
    algorithm::Algorithm, cwnd_validation::CwndValidation, probe::Probe, prr::Prr,
    rtt::RttEstimator, scoreboard::Scoreboard, tally::Tally, undo::Undo,
};
use knee_cc::{Conn, Params, Phase, Profile, SSTHRESH_INFINITE};
use knee_model::{NS_PER_US, Random, TcpOptions};

/// Largest window that the simulator allows an algorithm.
const CWND_MAX_PKTS: u32 = 1 << 30;

// `repr(C)` keeps the order: the fields that every ACK touches come first and together; those that only
// losses, marks and timeouts touch come last. With thousands of flows each cache line is a miss.
#[repr(C)]
pub(crate) struct Tcb {
    /// The contract's view of the connection. Window, threshold and phase live here.
    pub(crate) conn: Conn,
    pub(super) rtt: RttEstimator,
    pub(super) validation: CwndValidation,
    /// Position of segment 0 in the contract's wrapping positions: anywhere, as a real connection's.
    base_pos: u32,
    /// Segments that the application has written: those below this number.
    pub(crate) written: u32,
    pub(super) delivered_pkts: u64,
    pub(super) board: Scoreboard,
    /// Profile RATE: the algorithm owns the window in every phase.
    pub(super) owns_window: bool,
    pub(super) limited_transmit: bool,
    pub(super) ecn: bool,
    /// The next new segment announces that a reduction was made (CWR, RFC 3168 section 6.1.2).
    pub(super) cwr_pending: bool,
    pub(crate) algorithm: Algorithm,
    pub(crate) counters: Tally,
    /// A tail loss probe that is not answered yet.
    pub(super) probe: Option<Probe>,
    /// PRR of the reduction under way, or of the latest.
    pub(super) prr: Prr,
    /// Phases RECOVERY and LOSS end when this segment is reached, CWR when it is exceeded.
    pub(super) reduction_end: u32,
    pub(super) undo: Undo,
    /// The segment that the timer sent last.
    pub(super) timed_out: u32,
}

impl Tcb {
    pub(super) fn new(
        params: Params,
        options: &TcpOptions,
        now_ns: u64,
        random: &mut Random,
        trace: bool,
    ) -> Self {
        let base_pos = random.bits32();
        let mut conn = Conn {
            now_us: now_ns / NS_PER_US,
            cwnd_pkts: options.initial_window_pkts,
            ssthresh_pkts: SSTHRESH_INFINITE,
            cwnd_max_pkts: CWND_MAX_PKTS,
            mss_bytes: options.mss_bytes,
            snd_pos: base_pos,
            ack_pos: base_pos,
            ..Conn::default()
        };
        let owns_window = params.algorithm().profile() == Profile::Rate;
        let algorithm = Algorithm::new(params, &mut conn, trace);
        Self {
            conn,
            rtt: RttEstimator::new(options),
            validation: CwndValidation::default(),
            base_pos,
            written: 0,
            delivered_pkts: 0,
            board: Scoreboard::default(),
            owns_window,
            limited_transmit: options.limited_transmit,
            ecn: options.ecn,
            cwr_pending: false,
            algorithm,
            counters: Tally::default(),
            probe: None,
            prr: Prr::default(),
            reduction_end: 0,
            undo: Undo::new(),
            timed_out: 0,
        }
    }

    /// Updates the contract's view.
    #[inline(always)]
    pub(super) fn refresh(&mut self, now_ns: u64) {
        let outstanding_pkts = self.board.outstanding();
        let conn = &mut self.conn;
        conn.now_us = now_ns / NS_PER_US;
        conn.inflight_pkts = self.board.in_network();
        conn.outstanding_pkts = outstanding_pkts;
        conn.srtt_us = self.rtt.srtt_us();
        conn.snd_pos = self.base_pos.wrapping_add(self.board.nxt());
        conn.ack_pos = self.base_pos.wrapping_add(self.board.una);
        conn.app_limited = u8::from(self.board.nxt() >= self.written);
        self.refresh_limited();
    }

    /// Updates the part of the view that depends on window and threshold.
    #[inline(always)]
    pub(super) fn refresh_limited(&mut self) {
        let conn = &mut self.conn;
        let limited = self.validation.is_limited(conn.cwnd_pkts, conn.ssthresh_pkts);
        conn.cwnd_limited = u8::from(limited);
    }

    #[inline]
    pub(super) fn phase(&self) -> Phase {
        match self.conn.phase {
            0 => Phase::Open,
            1 => Phase::Disorder,
            2 => Phase::Cwr,
            3 => Phase::Recovery,
            _ => Phase::Loss,
        }
    }

    #[inline]
    pub(super) fn set_phase(&mut self, phase: Phase) {
        self.conn.phase = phase as u8;
    }

    /// The part of the view that may change between two calls for one ACK, and then makes it out of date.
    #[inline]
    pub(super) fn mutable(&self) -> (u8, u32, u32) {
        (self.conn.phase, self.conn.cwnd_pkts, self.conn.ssthresh_pkts)
    }
}
