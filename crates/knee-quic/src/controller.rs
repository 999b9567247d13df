//! quinn's events as the contract's calls (`cc/include/knee/contract.h`).
//!
//! quinn reports an ACK frame in pieces: `on_ack` for each packet, `on_end_acks`, then
//! `on_congestion_event` if the frame proves losses, once more if it reports congestion marks. One
//! frame becomes one `cc_ack`. The contract wants an ACK that begins a recovery not to grow the
//! window, but quinn may ask for the window before it reports the loss, or there may be none; so
//! `on_ack` is called at once, and taken back if the same frame proves a loss. An algorithm is a
//! pure function of its state: nothing else has to be undone.
//!
//! In profile RATE the window is the algorithm's in every phase: the call of `on_ack` is taken back
//! and made again with the losses of its frame, after `ssthresh` where they begin a recovery.
//!
//! quinn paces by the window that it is given, at 5/4 of it per RTT, and knows no other rate. So the window
//! is limited to one RTT at the algorithm's pacing rate, which then is the mean rate of sending.
//!
//! Bytes occur only at the interface. A packet is the path's MTU, which full packets fill; the remainder of
//! acknowledged bytes, of lost bytes and of the window is carried over.

use crate::{
    algorithm::Algorithm,
    delivery::{Delivery, Left, Sample},
    position::{Positions, after},
};
use knee_cc::{Ack, Conn, Event, OBSERVE_N, Params, Phase, Profile, SSTHRESH_INFINITE, State};
use quinn_proto::{
    RttEstimator,
    congestion::{self, ControllerMetrics},
};
use rand_xoshiro::{
    SplitMix64,
    rand_core::{Rng, SeedableRng},
};
use std::{
    any::Any,
    time::{Duration, Instant},
};

/// Smallest window (RFC 9002 section 7.2), where TCP goes down to 1 after a timeout.
const CWND_MIN_PKTS: u32 = 2;
/// Largest window: more than a gigabyte.
const CWND_MAX_PKTS: u32 = 1 << 20;
/// Packets beyond those that the pacing rate sends in an RTT. Half of one is lost as only whole ones
/// are sent, and half as receivers acknowledge every second (RFC 9000 section 13.2.2), so that one
/// in two waits longer than the RTT says. More would fill the queue by as much in every round trip.
const PACING_MARGIN_PKTS: u64 = 1;
/// Bounds of the initial window (RFC 9002 section 7.2).
const INITIAL_WINDOW_PKTS: u64 = 10;
const INITIAL_WINDOW_BYTES: u64 = 14_720;
/// Largest RTT that `cc_ack` can hold.
const RTT_MAX: Duration = Duration::from_micros(i32::MAX as u64);
/// RTO before the first RTT sample (RFC 6298 section 2.1), and the least that Linux and the
/// simulator add to the smoothed RTT. Only restarts after idle times depend on it.
const RTO_INITIAL: Duration = Duration::from_secs(1);
const RTO_MARGIN_MIN: Duration = Duration::from_millis(200);

/// One path's congestion controller.
pub struct Controller {
    algorithm: Algorithm,
    conn: Conn,
    random: SplitMix64,
    /// The application's choice.
    initial_window_pkts: Option<u32>,
    clock_zero: Instant,
    /// Packets sent before this were on another path.
    built: Instant,
    positions: Positions,
    /// Bytes of the window beyond whole packets: left over when the MTU changed.
    spare_bytes: u64,
    /// Sent, neither acknowledged nor lost, as far as is known; of packets that only acknowledge,
    /// too, until quinn's count replaces this.
    inflight_bytes: u64,
    /// Time of the latest ACK, and `inflight_bytes` before it.
    latest_ack: Option<(Instant, u64)>,
    /// Packets of the present ACK frame so far.
    batch: Option<Batch>,
    /// Acknowledged and lost bytes that make no whole packet yet.
    acked_rest_bytes: u64,
    lost_rest_bytes: u64,
    delivered_pkts: u64,
    something_acked: bool,
    srtt: Option<(Duration, Duration)>,
    /// Largest flight of the present window, whose end is the position.
    max_flight_pkts: u32,
    window_end_pos: u32,
    app_limited: bool,
    last_sent: Instant,
    /// Start of the latest recovery, or of the phase after persistent congestion.
    reduced: Option<Instant>,
    cwnd_before_pkts: u32,
    /// The latest call of `on_ack`, while its ACK frame may yet prove a loss.
    growth: Option<Growth>,
    /// In profile RATE.
    delivery: Option<Delivery>,
}

/// Packets of one ACK frame.
#[derive(Clone, Copy)]
struct Batch {
    bytes: u64,
    newest_sent: Instant,
}

/// The state before a call of `on_ack`.
#[derive(Clone, Copy)]
struct Growth {
    now: Instant,
    ack: Ack,
    conn: Conn,
    state: State,
    spare_bytes: u64,
}

impl Controller {
    pub(crate) fn new(
        algorithm: impl FnOnce(&mut Conn) -> Algorithm,
        mut random: SplitMix64,
        initial_window_pkts: Option<u32>,
        clock_zero: Instant,
        now: Instant,
        mtu_bytes: u16,
        profile: Profile,
    ) -> Self {
        let mss_bytes = u32::from(mtu_bytes).max(1);
        let positions = Positions::new(random.next_u64() as u32);
        let first_pkts = first_window_pkts(initial_window_pkts, mss_bytes);
        let mut conn = Conn {
            now_us: micros(now.saturating_duration_since(clock_zero)),
            cwnd_pkts: first_pkts,
            ssthresh_pkts: SSTHRESH_INFINITE,
            cwnd_max_pkts: CWND_MAX_PKTS,
            mss_bytes,
            snd_pos: positions.snd_pos(),
            ack_pos: positions.ack_pos(),
            ..Conn::default()
        };
        let algorithm = algorithm(&mut conn);
        let mut new = Self {
            algorithm,
            conn,
            random,
            initial_window_pkts,
            clock_zero,
            built: now,
            positions,
            spare_bytes: 0,
            inflight_bytes: 0,
            latest_ack: None,
            batch: None,
            acked_rest_bytes: 0,
            lost_rest_bytes: 0,
            delivered_pkts: 0,
            something_acked: false,
            srtt: None,
            max_flight_pkts: 0,
            window_end_pos: positions.snd_pos(),
            app_limited: false,
            last_sent: now,
            reduced: None,
            cwnd_before_pkts: first_pkts,
            growth: None,
            delivery: (profile == Profile::Rate).then(|| Delivery::new(now)),
        };
        new.bound(first_pkts);
        new
    }

    /// Algorithm and parameters.
    pub fn params(&self) -> &Params {
        self.algorithm.params()
    }

    /// The connection as the algorithm saw it last: window, threshold, phase, smoothed RTT.
    pub fn conn(&self) -> &Conn {
        &self.conn
    }

    /// Internals of the algorithm, named by [`knee_cc::Algorithm::observes`].
    pub fn observed(&self) -> [u32; OBSERVE_N] {
        self.algorithm.observe()
    }

    /// The window, bytes.
    pub fn window_bytes(&self) -> u64 {
        u64::from(self.conn.cwnd_pkts) * self.mss() + self.spare_bytes
    }

    /// The slow start threshold, bytes; none before any congestion.
    pub fn ssthresh_bytes(&self) -> Option<u64> {
        let pkts = self.conn.ssthresh_pkts;
        (pkts < SSTHRESH_INFINITE).then(|| u64::from(pkts) * self.mss())
    }

    /// The window that quinn is given, bytes: the pacing rate keeps it lower.
    fn sending_window_bytes(&self) -> u64 {
        let (bytes_per_s, srtt_us) = (self.conn.pacing_bytes_per_s, self.conn.srtt_us);
        if self.delivery.is_none() || bytes_per_s == 0 || srtt_us == 0 {
            return self.window_bytes();
        }
        let of_rtt_bytes = bytes_per_s.saturating_mul(srtt_us.into()) / 1_000_000;
        let paced_bytes = of_rtt_bytes + PACING_MARGIN_PKTS * self.mss();
        self.window_bytes().min(paced_bytes.max(u64::from(CWND_MIN_PKTS) * self.mss()))
    }

    fn mss(&self) -> u64 {
        self.conn.mss_bytes.into()
    }

    /// Bytes as packets, begun ones counted.
    fn pkts(&self, bytes: u64) -> u32 {
        bytes.div_ceil(self.mss()).min(u32::MAX.into()) as u32
    }

    /// Updates the contract's view; `outstanding_bytes` is the flight that an algorithm would halve.
    fn refresh(&mut self, now: Instant, outstanding_bytes: u64) {
        self.conn.now_us = micros(now.saturating_duration_since(self.clock_zero));
        self.conn.inflight_pkts = self.pkts(self.inflight_bytes);
        self.conn.outstanding_pkts = self.pkts(outstanding_bytes);
        self.conn.srtt_us =
            self.srtt.map_or(0, |(srtt, _)| micros(srtt).clamp(1, u32::MAX.into()) as u32);
        self.conn.snd_pos = self.positions.snd_pos();
        self.conn.ack_pos = self.positions.ack_pos();
        // A paced sender need not fill its window to be held back by it (RFC 9002 section 7.8):
        // quinn's judgement, and a window that is half used at least.
        let half_used = u64::from(self.conn.cwnd_pkts) < 2 * u64::from(self.max_flight_pkts);
        let paced = self.sending_window_bytes() < self.window_bytes();
        self.conn.cwnd_limited = u8::from(!self.app_limited && half_used && !paced);
        self.conn.app_limited = u8::from(self.app_limited);
    }

    /// Bounds the window after an algorithm wrote it; it was `before_pkts`. The remainder of an earlier MTU
    /// does not survive a reduction.
    fn bound(&mut self, before_pkts: u32) {
        let cwnd_pkts = self.conn.cwnd_pkts.clamp(CWND_MIN_PKTS, CWND_MAX_PKTS);
        if cwnd_pkts < before_pkts || cwnd_pkts == CWND_MAX_PKTS {
            self.spare_bytes = 0;
        }
        self.conn.cwnd_pkts = cwnd_pkts;
    }

    /// The stack's own window.
    fn set_cwnd(&mut self, pkts: u32) {
        let before_pkts = self.conn.cwnd_pkts;
        self.conn.cwnd_pkts = pkts;
        self.bound(before_pkts);
    }

    fn event(&mut self, event: Event) {
        let before_pkts = self.conn.cwnd_pkts;
        self.algorithm.on_event(&mut self.conn, event);
        self.bound(before_pkts);
    }

    fn phase(&self) -> u8 {
        self.conn.phase
    }

    fn set_phase(&mut self, phase: Phase) {
        self.conn.phase = phase as u8;
    }

    fn in_recovery(&self) -> bool {
        self.phase() == Phase::Recovery as u8 || self.phase() == Phase::Cwr as u8
    }

    /// RFC 9002 section 7.3.2: the threshold at once. Where the algorithm's lies above the window
    /// that there was, the window waits there until the recovery ends.
    fn hold_window(&mut self) {
        self.set_cwnd(self.conn.ssthresh_pkts.min(self.cwnd_before_pkts));
    }

    /// A packet sent after the reduction was acknowledged, or lost itself. In profile RATE only the
    /// phase shows it.
    fn leave(&mut self) {
        if self.in_recovery() && self.delivery.is_none() {
            if self.conn.ssthresh_pkts < SSTHRESH_INFINITE {
                self.set_cwnd(self.conn.ssthresh_pkts);
            }
            self.event(Event::Recovered);
        }
        self.set_phase(Phase::Open);
    }

    /// RFC 6298 section 2, for raw samples, as in TCP.
    fn estimate(&mut self, rtt: Duration) {
        self.srtt = Some(match self.srtt {
            None => (rtt, rtt / 2),
            Some((srtt, var)) => ((srtt * 7 + rtt) / 8, (var * 3 + srtt.abs_diff(rtt)) / 4),
        });
    }

    fn rto(&self) -> Duration {
        self.srtt.map_or(RTO_INITIAL, |(srtt, var)| srtt + (var * 4).max(RTO_MARGIN_MIN))
    }

    /// A packet of this frame was acknowledged. One of another path says nothing of this one (RFC
    /// 9000 section 9.4).
    fn acked(&mut self, sent: Instant, bytes: u64) {
        if sent < self.built {
            return;
        }
        if let Some(delivery) = &mut self.delivery {
            delivery.acked(sent, bytes);
        }
        let batch = self.batch.get_or_insert(Batch { bytes: 0, newest_sent: sent });
        batch.bytes = batch.bytes.saturating_add(bytes);
        batch.newest_sent = batch.newest_sent.max(sent);
    }

    /// Calls `on_ack`, so that it can be taken back.
    fn grow(&mut self, now: Instant, ack: Ack) {
        let (conn, spare_bytes) = (self.conn, self.spare_bytes);
        let state = self.algorithm.on_ack(&mut self.conn, &ack);
        self.bound(conn.cwnd_pkts);
        self.growth = Some(Growth { now, ack, conn, state, spare_bytes });
    }

    /// The same ACK, which was taken back, with the losses of its frame.
    fn grow_again(&mut self, now: Instant, ack: Option<Ack>, lost_pkts: u32) {
        if let Some(ack) = ack {
            self.refresh(now, self.inflight_bytes);
            self.grow(now, Ack { lost_pkts: ack.lost_pkts.saturating_add(lost_pkts), ..ack });
        }
    }

    /// Takes back the growth of this ACK frame; returns the known part of the frame.
    fn take_back(&mut self, now: Instant) -> Option<Ack> {
        let growth = self.growth.take().filter(|growth| growth.now == now)?;
        self.algorithm.take_back(growth.state);
        self.conn = growth.conn;
        self.spare_bytes = growth.spare_bytes;
        Some(growth.ack)
    }

    /// The call of `on_ack` before this event is final.
    fn settle(&mut self) {
        self.growth = None;
        self.algorithm.flush();
    }
}

impl congestion::Controller for Controller {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.settle();
        // Where the flight ended in losses, their repair follows: nothing starts.
        let is_start = self.inflight_bytes == 0 && self.phase() == Phase::Open as u8;
        if is_start && self.something_acked {
            let idle = now.saturating_duration_since(self.last_sent);
            self.refresh(now, 0);
            if idle > self.rto() && self.delivery.is_none() {
                // RFC 5681 section 4.1.
                let first_pkts = first_window_pkts(self.initial_window_pkts, self.conn.mss_bytes);
                self.set_cwnd(self.conn.cwnd_pkts.min(first_pkts));
                self.event(Event::CwndRestart);
            }
            self.event(Event::TxStart);
        }
        self.last_sent = now;
        let (window_bytes, idle) = (self.window_bytes(), self.inflight_bytes == 0);
        if let Some(delivery) = &mut self.delivery {
            delivery.sent(now, bytes, idle, self.delivered_pkts, window_bytes);
        }
        self.inflight_bytes = self.inflight_bytes.saturating_add(bytes);
        self.positions.sent(last_packet_number);
        let flight_pkts = self.pkts(self.inflight_bytes);
        if after(self.window_end_pos, self.positions.ack_pos()) {
            self.max_flight_pkts = self.max_flight_pkts.max(flight_pkts);
        } else {
            self.max_flight_pkts = flight_pkts;
            self.window_end_pos = self.positions.snd_pos();
        }
    }

    fn on_ack(
        &mut self,
        _now: Instant,
        sent: Instant,
        bytes: u64,
        _app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        self.acked(sent, bytes);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.settle();
        let before_pos = self.positions.ack_pos();
        let news = largest_packet_num_acked.is_some_and(|number| self.positions.acked(number));
        let advanced_pkts = self.positions.ack_pos().wrapping_sub(before_pos);
        let prior_inflight_pkts = self.pkts(self.inflight_bytes);
        self.latest_ack = Some((now, self.inflight_bytes));
        self.inflight_bytes = in_flight;
        self.app_limited = app_limited;
        // Nothing that concerns congestion control: only ACKs, or packets of an earlier path.
        let Some(batch) = self.batch.take() else { return };
        self.something_acked = true;
        let acked_bytes = self.acked_rest_bytes.saturating_add(batch.bytes);
        let acked_pkts = (acked_bytes / self.mss()).min(u32::MAX.into()) as u32;
        self.acked_rest_bytes = acked_bytes % self.mss();
        self.delivered_pkts += u64::from(acked_pkts);
        // RFC 9002 section 5.1: only of the newest packet.
        let rtt = news.then(|| now.saturating_duration_since(batch.newest_sent).min(RTT_MAX));
        if let Some(rtt) = rtt {
            self.estimate(rtt);
        }
        let ack = Ack {
            delivered_pkts: self.delivered_pkts,
            acked_pkts,
            lost_pkts: 0,
            rtt_us: rtt.map_or(-1, |rtt| rtt.as_micros() as i32),
            random: if self.algorithm.uses_random() { self.random.next_u32() } else { 0 },
            ..Ack::default()
        };
        let left = Left { bytes: in_flight, pkts: self.pkts(in_flight) };
        let sample = self
            .delivery
            .as_mut()
            .map(|delivery| delivery.sample(now, self.delivered_pkts, left, app_limited));
        self.refresh(now, in_flight);
        if sample.is_none() {
            let before_pkts = self.conn.cwnd_pkts;
            self.algorithm.on_rtt(&mut self.conn, &Ack { advanced_pkts, ..ack });
            self.bound(before_pkts);
        }
        if self.phase() != Phase::Open as u8 && self.reduced.is_some_and(|t| batch.newest_sent > t)
        {
            self.leave();
        }
        match sample {
            Some(sample) => {
                let Sample { pkts, us, prior_pkts, app_limited } = sample;
                let ack = Ack {
                    sample_pkts: pkts,
                    sample_us: us,
                    sample_prior_pkts: prior_pkts,
                    sample_app_limited: app_limited.into(),
                    prior_inflight_pkts,
                    ..ack
                };
                self.grow(now, ack);
            }
            None if self.in_recovery() => self.hold_window(),
            None => self.grow(now, ack),
        }
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let lost_bytes_all = self.lost_rest_bytes.saturating_add(lost_bytes);
        let lost_pkts = (lost_bytes_all / self.mss()).min(u32::MAX.into()) as u32;
        self.lost_rest_bytes = lost_bytes_all % self.mss();
        // For an ACK that proves a loss, the contract counts as outstanding the packets before the ACK: the
        // hole and all above it.
        let outstanding_bytes = match self.latest_ack {
            Some((time, before_bytes)) if time == now => before_bytes,
            _ => self.inflight_bytes,
        };
        self.inflight_bytes = self.inflight_bytes.saturating_sub(lost_bytes);
        let ack = self.take_back(now);
        let is_rate = self.delivery.is_some();
        // RFC 9002 section 7.3.2: one reduction for all packets sent before it.
        let is_new = match self.reduced {
            Some(reduced) => sent > reduced,
            None => sent >= self.built,
        };
        if is_new {
            if self.phase() != Phase::Open as u8 {
                self.leave();
            }
            self.refresh(now, outstanding_bytes);
            self.cwnd_before_pkts = self.conn.cwnd_pkts;
            if !is_persistent_congestion {
                self.conn.cwnd_cnt = 0;
            }
            self.algorithm.ssthresh(&mut self.conn);
            self.reduced = Some(now);
        }
        if is_persistent_congestion {
            if is_new {
                self.event(Event::Rto);
            }
            self.set_cwnd(CWND_MIN_PKTS);
            self.conn.cwnd_cnt = 0;
            self.set_phase(Phase::Loss);
            self.reduced = Some(now);
        } else if is_new {
            self.set_phase(if lost_bytes == 0 { Phase::Cwr } else { Phase::Recovery });
            if !is_rate {
                self.hold_window();
            }
        } else if self.phase() == Phase::Cwr as u8 && lost_bytes > 0 {
            self.set_phase(Phase::Recovery);
        }
        if is_rate || !(is_new || is_persistent_congestion) {
            self.grow_again(now, ack, lost_pkts);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.settle();
        let new_bytes = u64::from(new_mtu).max(1);
        let (window_bytes, old_bytes) = (self.window_bytes(), self.mss());
        let scaled = |pkts: u32| u64::from(pkts) * old_bytes / new_bytes;
        // RFC 8899 section 3: another packet size must not make the
        // window larger in bytes; nor is there a reason to make it smaller.
        let cwnd_pkts = window_bytes / new_bytes;
        self.spare_bytes = window_bytes % new_bytes;
        self.conn.cwnd_cnt = scaled(self.conn.cwnd_cnt).min(u32::MAX.into()) as u32;
        if self.conn.ssthresh_pkts < SSTHRESH_INFINITE {
            let pkts = scaled(self.conn.ssthresh_pkts);
            self.conn.ssthresh_pkts =
                pkts.clamp(CWND_MIN_PKTS.into(), (SSTHRESH_INFINITE - 1).into()) as u32;
        }
        self.cwnd_before_pkts = scaled(self.cwnd_before_pkts).min(u32::MAX.into()) as u32;
        self.conn.mss_bytes = new_bytes as u32;
        self.conn.cwnd_pkts = cwnd_pkts.min(u32::MAX.into()) as u32;
        if cwnd_pkts < u64::from(CWND_MIN_PKTS) {
            self.spare_bytes = 0;
        }
        self.bound(0);
    }

    fn window(&self) -> u64 {
        // quinn sends only packets that leave a byte of the window unused: the last packet of a window of
        // whole packets would never be sent, and of 2 packets only 1.
        self.sending_window_bytes() + 1
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window_bytes();
        metrics.ssthresh = self.ssthresh_bytes();
        let pacing_bytes_per_s = self.conn.pacing_bytes_per_s;
        metrics.pacing_rate =
            (pacing_bytes_per_s > 0).then(|| pacing_bytes_per_s.saturating_mul(8));
        metrics
    }

    fn clone_box(&self) -> Box<dyn congestion::Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        let pkts = first_window_pkts(self.initial_window_pkts, self.conn.mss_bytes);
        u64::from(pkts) * self.mss()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// For a path that looks like the same one (a NAT rebinding): all that was learnt, nothing in
/// flight, other random bits.
impl Clone for Controller {
    fn clone(&self) -> Self {
        let mut fork = self.random.clone();
        Self {
            algorithm: self.algorithm.clone(),
            random: SplitMix64::seed_from_u64(fork.next_u64()),
            inflight_bytes: 0,
            latest_ack: None,
            batch: None,
            growth: None,
            delivery: self.delivery.as_ref().map(Delivery::without_flight),
            ..*self
        }
    }
}

/// The first window, and the one after idle times: the application's choice, or that of RFC 9002
/// section 7.2.
fn first_window_pkts(chosen_pkts: Option<u32>, mss_bytes: u32) -> u32 {
    let mss_bytes = u64::from(mss_bytes);
    let bytes = (INITIAL_WINDOW_PKTS * mss_bytes).min(INITIAL_WINDOW_BYTES.max(2 * mss_bytes));
    let pkts = chosen_pkts.unwrap_or((bytes / mss_bytes) as u32);
    pkts.clamp(CWND_MIN_PKTS, CWND_MAX_PKTS)
}

fn micros(time: Duration) -> u64 {
    time.as_micros().min(u64::MAX.into()) as u64
}

#[cfg(test)]
mod tests;
