//! The flows of a run: start times, traffic, routes.

use crate::{Ns, Route, TcpSpec, Workload};
use knee_cc::{OBSERVE_N, Params};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One flow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FlowSpec {
    /// Name in results; unique within the run.
    pub name: String,
    /// Start time.
    pub start_ns: Ns,
    /// The start is later by a uniform draw from 0 to this.
    pub start_jitter_ns: Ns,
    /// Time at which it stops sending (counted from time 0, not from its start); end of the run if none.
    /// The start's jitter does not move it.
    pub stop_ns: Option<Ns>,
    /// Extra one-way delay between the flow's end at the path's start (its sender, or the receiver of
    /// a flow in the reverse direction) and the path, in each direction.
    pub access_delay_ns: Ns,
    /// Upper bound of a uniform draw, one for each run, that is added to that delay.
    pub access_delay_spread_ns: Ns,
    /// Time between that end and the bottleneck that varies per packet, uniform from 0 to this, never
    /// reordering: as on real machines. It breaks the phase effects of drop-tail queues.
    pub access_jitter_ns: Ns,
    /// Its way through the path.
    pub route: Route,
    /// Its source, if it was drawn at random.
    pub drawn: Option<Drawn>,
    /// The kind of its traffic.
    pub kind: FlowKind,
}

/// The source of a flow that the scenario does not name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drawn {
    /// Name of the source.
    pub source: Arc<str>,
    /// Number of the flow's random streams: at least 2^32, where no index of a flow lies, and
    /// no other flow of the run has it.
    pub stream: u64,
}

impl FlowSpec {
    /// A flow that starts at once and has nothing of its own on its way.
    pub fn new(name: impl Into<String>, kind: FlowKind) -> Self {
        Self {
            name: name.into(),
            start_ns: 0,
            start_jitter_ns: 0,
            stop_ns: None,
            access_delay_ns: 0,
            access_delay_spread_ns: 0,
            access_jitter_ns: 0,
            route: Route::default(),
            drawn: None,
            kind,
        }
    }

    /// Its algorithm with parameters, if it has one of Knee's.
    pub fn params(&self) -> Option<&Params> {
        match &self.kind {
            FlowKind::Tcp(tcp) => tcp.cc.params(),
            FlowKind::Udp { .. } | FlowKind::Probe { .. } => None,
        }
    }

    /// Size of its full packets, headers included, bytes.
    pub fn packet_bytes(&self) -> u32 {
        match &self.kind {
            FlowKind::Tcp(tcp) => tcp.options.mss_bytes + tcp.options.header_bytes,
            FlowKind::Udp { packet_bytes, .. } | FlowKind::Probe { packet_bytes, .. } => {
                *packet_bytes
            }
        }
    }

    /// Size of an acknowledgement, where the host makes none of its own, bytes.
    pub fn ack_bytes(&self) -> u32 {
        match &self.kind {
            FlowKind::Tcp(tcp) => tcp.options.header_bytes,
            FlowKind::Udp { .. } | FlowKind::Probe { .. } => 0,
        }
    }
}

/// Kind of traffic.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum FlowKind {
    /// TCP, or QUIC.
    Tcp(TcpSpec),
    /// UDP at a given rate.
    Udp {
        /// Rate of whole packets, bit/s.
        rate_bps: u64,
        /// From these times of the run on, these rates instead, 0 for silence; in order of time.
        steps: Vec<(Ns, u64)>,
        /// Size of whole packets, bytes.
        packet_bytes: u32,
    },
    /// One-way delay probe: small UDP packets at fixed intervals, each one's delay recorded.
    Probe {
        /// Time between packets.
        interval_ns: Ns,
        /// Size of whole packets, bytes.
        packet_bytes: u32,
    },
}

impl FlowKind {
    /// The data that its application writes; none for a flow without feedback.
    pub fn workload(&self) -> Option<&Workload> {
        match self {
            Self::Tcp(tcp) => Some(&tcp.workload),
            Self::Udp { .. } | Self::Probe { .. } => None,
        }
    }

    /// Name in results: of the algorithm, or `udp`, `probe`.
    pub fn name(&self) -> String {
        match self {
            Self::Tcp(tcp) => tcp.cc.name(),
            Self::Udp { .. } => "udp".to_owned(),
            Self::Probe { .. } => "probe".to_owned(),
        }
    }

    /// Names of the values that its algorithm lets be observed; empty where there is none.
    pub fn observes(&self) -> [&'static str; OBSERVE_N] {
        match self {
            Self::Tcp(tcp) => tcp.cc.observes(),
            Self::Udp { .. } | Self::Probe { .. } => [""; OBSERVE_N],
        }
    }
}
