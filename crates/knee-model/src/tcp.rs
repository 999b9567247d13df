//! A TCP flow, or a QUIC connection: congestion control, workload, options of the stack.

use crate::Ns;
use knee_cc::{OBSERVE_N, Params};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A TCP flow, or a QUIC connection with the same options.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TcpSpec {
    /// Transport, on hosts that have both.
    pub transport: Transport,
    /// Congestion control.
    pub cc: Cc,
    /// Data that the application writes.
    pub workload: Workload,
    /// The stack's options.
    pub options: TcpOptions,
}

/// Transport of a flow with feedback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transport {
    /// The host's own: TCP in the simulator and on the kernel, QUIC where all flows are.
    #[default]
    Own,
    /// QUIC.
    Quic,
}

/// Congestion control of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Cc {
    /// An algorithm of Knee, with its parameters: on every host.
    Knee(Params),
    /// A congestion control of the kernel's own, by its name there: on the kernel only.
    Kernel(String),
}

/// Prefix of the kernel's own congestion controls in scenarios and results.
pub const KERNEL_PREFIX: &str = "kernel:";

impl Cc {
    /// Name in results: `chd`, or `kernel:cubic`.
    pub fn name(&self) -> String {
        match self {
            Self::Knee(params) => params.algorithm().name().to_owned(),
            Self::Kernel(name) => format!("{KERNEL_PREFIX}{name}"),
        }
    }

    /// Names of the values that the algorithm lets be observed; empty where there is none.
    pub fn observes(&self) -> [&'static str; OBSERVE_N] {
        self.params().map_or([""; OBSERVE_N], |params| params.algorithm().observes())
    }

    /// Algorithm and parameters, if it is Knee's.
    pub fn params(&self) -> Option<&Params> {
        match self {
            Self::Knee(params) => Some(params),
            Self::Kernel(_) => None,
        }
    }
}

/// Data that a TCP application writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Workload {
    /// Data without end.
    Bulk,
    /// Transfers of a fixed size on one connection.
    Transfers {
        /// Bytes of each.
        size_bytes: u64,
        /// Time from one write to the next (unsent data queue); `None`: one transfer.
        every_ns: Option<Ns>,
    },
    /// Transfers of given sizes at given times on one connection, in order of time, the first at the flow's
    /// start. Unsent data queue.
    Writes(Arc<[Write]>),
}

/// A transfer that an application writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// Time after the flow's start.
    pub after_ns: Ns,
    /// Size, at least 1 byte.
    pub bytes: u64,
}

impl Workload {
    /// Transfer `number`, from 0; none if there are no more, or none at all.
    pub fn write(&self, number: usize) -> Option<Write> {
        match self {
            Self::Bulk => None,
            Self::Transfers { size_bytes, every_ns } => {
                let after_ns = every_ns.map_or((number == 0).then_some(0), |every_ns| {
                    every_ns.checked_mul(number as u64)
                });
                after_ns.map(|after_ns| Write { after_ns, bytes: *size_bytes })
            }
            Self::Writes(writes) => writes.get(number).copied(),
        }
    }
}

/// Options of the TCP stack, sender and receiver.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TcpOptions {
    /// Payload of a full packet, bytes.
    pub mss_bytes: u32,
    /// Headers of each data packet, bytes; an ACK is this long.
    pub header_bytes: u32,
    /// Loss recovery.
    pub recovery: Recovery,
    /// Initial window, packets.
    pub initial_window_pkts: u32,
    /// Receive window, packets.
    pub receive_window_pkts: u32,
    /// Least margin of the retransmission timeout beyond the smoothed RTT.
    pub rto_min_ns: Ns,
    /// Delayed acknowledgements.
    pub delayed_ack: DelayedAck,
    /// Number of packets at the start of a connection that are each acknowledged, delayed ACKs or not:
    /// Linux does that until the receive window has opened.
    pub quick_ack_pkts: u32,
    /// Send new data on the first two duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Restart the window after an idle time longer than the RTO (RFC 5681 section 4.1).
    pub idle_restart: bool,
    /// Send new data in bursts, as Linux does for segmentation offload; not for algorithms that pace.
    pub segmentation_offload: bool,
    /// Clock tick to which RTT samples are quantised; 0: exact.
    pub rtt_tick_ns: Ns,
    /// Explicit congestion notification (RFC 3168): data packets may be marked instead of dropped.
    pub ecn: bool,
    /// Conduct of the receiver.
    pub receiver: ReceiverConduct,
}

impl Default for TcpOptions {
    /// 1500-byte packets with timestamps, SACK, initial window 10, an ACK for each packet, RTO of
    /// at least 200 ms beyond the RTT, exact RTT samples.
    fn default() -> Self {
        Self {
            mss_bytes: 1448,
            header_bytes: 52,
            recovery: Recovery::Sack,
            initial_window_pkts: 10,
            receive_window_pkts: 100_000,
            rto_min_ns: 200 * crate::NS_PER_MS,
            delayed_ack: DelayedAck { every_pkts: 1, timeout_ns: 40 * crate::NS_PER_MS },
            limited_transmit: true,
            idle_restart: true,
            segmentation_offload: false,
            rtt_tick_ns: 0,
            quick_ack_pkts: 0,
            ecn: false,
            receiver: ReceiverConduct::Honest,
        }
    }
}

/// The rule by which a receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiverConduct {
    /// Acknowledges data that has arrived.
    Honest,
    /// Everything before the last segment that has arrived, as if nothing was missing: a kind of
    /// optimistic ACKing (Savage et al., "TCP congestion control with a misbehaving receiver", 1999).
    ConcealsLoss,
}

/// Loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// Selective acknowledgements, loss detection by time (RACK-TLP, RFC 8985) and proportional rate
    /// reduction (RFC 6937).
    Sack,
    /// Cumulative ACKs only, window inflation and partial ACKs (RFC 6582).
    Newreno,
    /// Cumulative ACKs only, partial ACKs, proportional rate reduction, as in Linux without SACK.
    NewrenoPrr,
    /// Like [`Self::Sack`], but with the window of FreeBSD 7: one packet when recovery begins, from
    /// which it grows.
    Freebsd7,
}

/// Delayed acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayedAck {
    /// Packets per ACK; 1: an ACK for each.
    pub every_pkts: u32,
    /// Longest wait for the next packet.
    pub timeout_ns: Ns,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_are_written_at_their_times() {
        let times = |workload: &Workload| -> Vec<(Ns, u64)> {
            let writes = (0..4).map_while(|n| workload.write(n));
            writes.map(|w| (w.after_ns, w.bytes)).collect()
        };
        assert_eq!(times(&Workload::Bulk), []);
        let transfers = |every_ns| Workload::Transfers { size_bytes: 9, every_ns };
        assert_eq!(times(&transfers(None)), [(0, 9)]);
        assert_eq!(times(&transfers(Some(5))), [(0, 9), (5, 9), (10, 9), (15, 9)]);
        let writes = [(0, 3), (7, 1)].map(|(after_ns, bytes)| Write { after_ns, bytes });
        assert_eq!(times(&Workload::Writes(writes.into())), [(0, 3), (7, 1)]);
    }
}
