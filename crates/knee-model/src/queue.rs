//! Queues of a path: their limits, and the disciplines with their parameters.
//!
//! The disciplines themselves are in `knee-net`, one file each.

use serde::{Deserialize, Serialize};

/// Limit of a queue. The packet in transmission counts, as in dummynet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum QueueLimit {
    /// Limit in packets.
    Packets(u32),
    /// Limit in bytes of whole packets.
    Bytes(u64),
    /// Limit in bytes held before the packet joins: one packet more than [`Self::Bytes`], as in dummynet.
    BytesAndOne(u64),
}

impl QueueLimit {
    /// True if a packet of `bytes` may join the packets held.
    #[inline]
    pub fn takes(self, held_pkts: usize, held_bytes: u64, bytes: u64) -> bool {
        match self {
            Self::Packets(limit) => held_pkts < limit as usize,
            Self::Bytes(limit) => held_bytes + bytes <= limit,
            Self::BytesAndOne(limit) => held_bytes <= limit,
        }
    }
}

/// Active queue management.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Aqm {
    /// The rule that decides which packets signal congestion.
    pub discipline: Discipline,
    /// Marks packets of ECN-capable transports instead of dropping them (RFC 3168), as far as the
    /// discipline's own source allows.
    pub ecn: bool,
}

/// A discipline with its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Discipline {
    /// Random early detection.
    Red(Red),
    /// Flow random early drop.
    Fred(Fred),
    /// Controlled delay.
    CoDel(CoDel),
    /// Fair queues, each with CoDel.
    FqCoDel(FqCoDel),
    /// Proportional integral controller, enhanced.
    Pie(Pie),
}

impl Discipline {
    /// Its usual name.
    pub fn title(&self) -> &'static str {
        match self {
            Self::Red(Red { gentle: true, .. }) => "gentle RED",
            Self::Red(_) => "RED",
            Self::Fred(_) => "FRED",
            Self::CoDel(_) => "CoDel",
            Self::FqCoDel(_) => "FQ-CoDel",
            Self::Pie(_) => "PIE",
        }
    }
}

/// Bounds of the average queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Thresholds {
    /// Packets; the average counts packets.
    Packets {
        /// Below this nothing is signalled.
        min: u32,
        /// From this on everything is dropped, or the gentle slope begins; above `min`.
        max: u32,
    },
    /// Bytes; the average counts bytes.
    Bytes {
        /// Below this nothing is signalled.
        min: u64,
        /// From this on everything is dropped, or the gentle slope begins; above `min`.
        max: u64,
    },
}

/// Parameters of RED.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Red {
    /// `min_th`, `max_th`.
    pub thresholds: Thresholds,
    /// `w_q`, the weight of the present queue in the average; 0 < w <= 1.
    pub weight: f64,
    /// `max_p`, the probability at the upper threshold; 0 < p <= 1.
    pub max_probability: f64,
    /// Above the upper threshold the probability rises on to 1 at twice that, instead of being 1 at
    /// once.
    pub gentle: bool,
    /// Size of a typical packet, bytes: how long the average of an idle queue takes to fall, and a
    /// full packet where thresholds are bytes.
    pub packet_bytes: u32,
}

impl Default for Red {
    /// The values of the 1993 paper: `w_q` = 0.002, `max_p` = 1/50, thresholds of 5 and 15 packets, not
    /// gentle.
    fn default() -> Self {
        Self {
            thresholds: Thresholds::Packets { min: 5, max: 15 },
            weight: 0.002,
            max_probability: 0.02,
            gentle: false,
            packet_bytes: 1500,
        }
    }
}

/// Parameters of FRED.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fred {
    /// `min_th`: below this average nothing is signalled at random, packets.
    pub min_pkts: u32,
    /// `max_th`: from this average on nothing is accepted, packets; above `min_pkts`.
    pub max_pkts: u32,
    /// `w_q`, the weight of the present queue in the average; 0 < w <= 1.
    pub weight: f64,
    /// `max_p`, the probability at the upper threshold; 0 < p <= 1.
    pub max_probability: f64,
    /// `min_q`: so many packets each flow may hold without being signalled at random.
    pub min_queue_pkts: u32,
    /// Size of a typical packet, bytes: how long the average of an idle queue takes to fall.
    pub packet_bytes: u32,
}

impl Default for Fred {
    /// RED's values, with `min_q` = 4, the paper's value for large buffers (2 for small ones).
    fn default() -> Self {
        Self {
            min_pkts: 5,
            max_pkts: 15,
            weight: 0.002,
            max_probability: 0.02,
            min_queue_pkts: 4,
            packet_bytes: 1500,
        }
    }
}

/// Parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoDel {
    /// Standing delay that is accepted, ns.
    pub target_ns: u64,
    /// Time for which the delay may exceed the target, ns: a round trip of most connections; more than 0.
    pub interval_ns: u64,
}

impl Default for CoDel {
    /// RFC 8289 section 4.4: 5 ms, 100 ms.
    fn default() -> Self {
        Self { target_ns: 5_000_000, interval_ns: 100_000_000 }
    }
}

/// Parameters of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FqCoDel {
    /// CoDel's parameters for each queue.
    pub codel: CoDel,
    /// Bytes that a queue may send in its turn; more than 0.
    pub quantum_bytes: u32,
    /// Number of queues; more than 0.
    pub queues: u32,
}

impl Default for FqCoDel {
    /// RFC 8290 section 5.2: CoDel's defaults, a quantum of 1514 bytes, 1024 queues.
    fn default() -> Self {
        Self { codel: CoDel::default(), quantum_bytes: 1514, queues: 1024 }
    }
}

/// Parameters of PIE.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pie {
    /// `QDELAY_REF`: the delay that it aims at, ns.
    pub target_ns: u64,
    /// `T_UPDATE`: how often the probability is computed, ns; more than 0.
    pub update_ns: u64,
    /// `MAX_BURST`: so long after a calm time nothing is signalled, ns.
    pub burst_ns: u64,
    /// Weight of the delay's distance from the target, 1/s.
    pub alpha_per_s: f64,
    /// Weight of the delay's change, 1/s.
    pub beta_per_s: f64,
    /// `mark_ecnth`: from this probability on packets are dropped even if they could be marked.
    pub mark_limit: f64,
    /// `MEAN_PKTSIZE`, bytes: a queue of no more than two such packets is left alone.
    pub packet_bytes: u32,
}

impl Default for Pie {
    /// RFC 8033: 15 ms, 15 ms, 150 ms, 1/8 and 5/4 Hz, marks below 0.1.
    fn default() -> Self {
        Self {
            target_ns: 15_000_000,
            update_ns: 15_000_000,
            burst_ns: 150_000_000,
            alpha_per_s: 0.125,
            beta_per_s: 1.25,
            mark_limit: 0.1,
            packet_bytes: 1500,
        }
    }
}
