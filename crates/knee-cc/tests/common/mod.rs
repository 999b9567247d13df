//! Drives one controller as a TCP sender would, in Linux's order of calls. Tests control the packets,
//! the RTT and the random bits of each ACK.

use knee_cc::{Ack, Conn, Controller, Event, Params, Phase, Profile, SSTHRESH_INFINITE, algorithm};
use std::collections::VecDeque;

/// Propagation delay of the test connection. A queueing delay q is measured as BASE + q.
pub const BASE_US: i32 = 40_000;
/// The draw that backs off wherever the backoff probability is above 0.
pub const ALWAYS: u32 = 0;
/// The draw that backs off only where the backoff probability is 1.
pub const NEVER: u32 = u32::MAX;
/// "No sample": RTT of an ACK that measured nothing.
pub const NO_SAMPLE: Option<u32> = None;

/// Parameters of the algorithm `name`: its defaults with `given` in their place, raw values.
pub fn params(name: &str, given: &[(&str, u64)]) -> Params {
    let algorithm = algorithm(name).expect("registered");
    Params::new(algorithm, given.iter().copied()).expect("valid")
}

/// Notes of an ACK's two calls, together.
pub type Notes = u32;

/// A connection and its controller.
#[derive(Clone)]
pub struct Flow {
    pub conn: Conn,
    pub cc: Controller,
    delivered_pkts: u64,
    /// Outstanding packets, oldest first: how many, and the total delivered when they were sent.
    sent: VecDeque<(u32, u64)>,
    /// Packets that the next ACK reports as lost.
    pub lost_pkts: u32,
}

impl Flow {
    /// A connection whose first packet has position 0.
    pub fn new(params: Params, cwnd_pkts: u32, ssthresh_pkts: u32) -> Self {
        Self::at(0, params, cwnd_pkts, ssthresh_pkts)
    }

    /// A connection whose first packet has position `pos`.
    pub fn at(pos: u32, params: Params, cwnd_pkts: u32, ssthresh_pkts: u32) -> Self {
        let mut conn = Conn {
            cwnd_pkts,
            ssthresh_pkts,
            cwnd_max_pkts: 1 << 30,
            mss_bytes: 1460,
            snd_pos: pos,
            ack_pos: pos,
            cwnd_limited: 1,
            ..Conn::default()
        };
        let cc = Controller::new(params, &mut conn);
        Self { conn, cc, delivered_pkts: 0, sent: VecDeque::new(), lost_pkts: 0 }
    }

    /// A connection in slow start that has seen no congestion.
    pub fn slow_start(params: Params, cwnd_pkts: u32) -> Self {
        Self::new(params, cwnd_pkts, SSTHRESH_INFINITE)
    }

    /// A connection in congestion avoidance at exactly its ssthresh.
    pub fn avoiding(params: Params, cwnd_pkts: u32) -> Self {
        Self::new(params, cwnd_pkts, cwnd_pkts)
    }

    /// (w, s): window, and CHD's shadow window.
    pub fn w_s(&self) -> (u32, u32) {
        (self.conn.cwnd_pkts, self.cc.observe()[2])
    }

    /// Window, packets.
    pub fn w(&self) -> u32 {
        self.conn.cwnd_pkts
    }

    /// Returns whether the algorithm owns the window in every phase.
    fn owns_window(&self) -> bool {
        self.cc.algorithm().profile() == Profile::Rate
    }

    /// Sends `n` new packets.
    pub fn send(&mut self, n: u32) {
        self.sent.push_back((n, self.delivered_pkts));
        self.conn.snd_pos = self.conn.snd_pos.wrapping_add(n);
        self.conn.outstanding_pkts += n;
        self.conn.inflight_pkts = self.conn.outstanding_pkts;
    }

    /// One ACK of `n` packets that measured the queueing delay `q_us`.
    pub fn ack(&mut self, n: u32, q_us: impl Into<Option<u32>>, random: u32) -> Notes {
        let ack = self.acknowledge(n, q_us.into(), random);
        self.cc.on_rtt(&mut self.conn, &ack);
        let notes = self.conn.notes;
        let may_grow = self.owns_window()
            || ![Phase::Recovery as u8, Phase::Cwr as u8].contains(&self.conn.phase);
        if may_grow {
            self.cc.on_ack(&mut self.conn, &ack);
            return notes | self.conn.notes;
        }
        notes
    }

    /// Sends a window of packets and acknowledges all that is outstanding with one ACK, which
    /// therefore ends a marked-packet round.
    pub fn round(&mut self, q_us: impl Into<Option<u32>>, random: u32) -> Notes {
        let room = self.conn.cwnd_pkts.saturating_sub(self.conn.outstanding_pkts).max(1);
        self.send(room);
        self.ack(self.conn.outstanding_pkts, q_us, random)
    }

    /// A loss is inferred: asks for the threshold and enters fast recovery, in profile CLASSIC with it
    /// as window. Gives (ssthresh, notes).
    pub fn loss(&mut self) -> (u32, Notes) {
        let ssthresh = self.cc.ssthresh(&mut self.conn);
        let notes = self.conn.notes;
        self.conn.ssthresh_pkts = ssthresh;
        if !self.owns_window() {
            self.conn.cwnd_pkts = ssthresh;
            self.conn.cwnd_cnt = 0;
        }
        self.conn.phase = Phase::Recovery as u8;
        (ssthresh, notes)
    }

    /// Recovery ends with the window at ssthresh.
    pub fn recovered(&mut self) {
        self.conn.cwnd_pkts = self.conn.ssthresh_pkts;
        self.conn.phase = Phase::Open as u8;
        self.cc.on_event(&mut self.conn, Event::Recovered);
    }

    /// One ACK of `n` packets that ends recovery: Linux measures first, still in recovery.
    pub fn ack_ending_recovery(&mut self, n: u32, q_us: impl Into<Option<u32>>, random: u32) {
        let ack = self.acknowledge(n, q_us.into(), random);
        self.cc.on_rtt(&mut self.conn, &ack);
        self.recovered();
        self.cc.on_ack(&mut self.conn, &ack);
    }

    /// The retransmission timer expires. Gives the ssthresh that results.
    pub fn timeout(&mut self) -> u32 {
        self.conn.ssthresh_pkts = self.cc.ssthresh(&mut self.conn);
        self.cc.on_event(&mut self.conn, Event::Rto);
        self.conn.cwnd_pkts = 1;
        self.conn.cwnd_cnt = 0;
        self.conn.phase = Phase::Loss as u8;
        self.conn.ssthresh_pkts
    }

    /// The smallest draw with which `next` does not end in a delay backoff: the backoff
    /// probability times 2^32, exactly. The flow itself is left as it is.
    pub fn threshold(&self, next: impl Fn(&mut Self, u32) -> Notes) -> u64 {
        let backs_off =
            |random: u32| next(&mut self.clone(), random) & knee_cc::NOTE_DELAY_BACKOFF != 0;
        let (mut low, mut high) = (0_u64, 1 << 32); // all draws below low do, none from high on
        while low < high {
            let middle = low + (high - low) / 2;
            if backs_off(middle as u32) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The total that was delivered when the latest of the oldest `n` outstanding packets was sent.
    fn delivered_before(&mut self, mut n: u32) -> u64 {
        let mut before = 0;
        while n > 0 {
            let (sent, delivered) = self.sent.front_mut().expect("acknowledges only what was sent");
            before = *delivered;
            let acked = n.min(*sent);
            *sent -= acked;
            n -= acked;
            if *sent == 0 {
                self.sent.pop_front();
            }
        }
        before
    }

    fn acknowledge(&mut self, n: u32, q_us: Option<u32>, random: u32) -> Ack {
        assert!(n <= self.conn.outstanding_pkts, "acknowledges only what was sent");
        self.conn.ack_pos = self.conn.ack_pos.wrapping_add(n);
        self.conn.outstanding_pkts -= n;
        self.conn.inflight_pkts = self.conn.outstanding_pkts;
        self.delivered_pkts += u64::from(n);
        let rtt_us = q_us.map_or(-1, |q| BASE_US + i32::try_from(q).expect("a short delay"));
        Ack {
            delivered_pkts: self.delivered_pkts,
            acked_pkts: n,
            lost_pkts: std::mem::take(&mut self.lost_pkts),
            advanced_pkts: n,
            rtt_us,
            random,
            sample_prior_pkts: self.delivered_before(n) as u32,
            ..Ack::default()
        }
    }
}
