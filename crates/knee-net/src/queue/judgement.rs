//! The judgement of packets by a discipline: its inputs, its answers, and the accounts that it keeps.

use crate::{Ecn, Packet, Ring};
use knee_model::Random;

/// The state of the queue at the arrival of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub now_ns: u64,
    /// Packets held before it, the packet in transmission included.
    pub held_pkts: u32,
    pub held_bytes: u64,
    /// Its own size.
    pub bytes: u32,
    /// Used by FRED only.
    pub flow_key: u32,
}

/// The answer of a discipline to an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Accept,
    /// It is to signal congestion: marked if it can be, else dropped.
    Signal,
    /// Dropped, whether it could be marked or not.
    Drop,
}

/// Counts of the packets in the queue, and the packets that were dropped after acceptance.
#[derive(Clone, Debug)]
pub(super) struct Taken<P> {
    /// Packets held, the packet in transmission included.
    pub(super) pkts: u32,
    pub(super) bytes: u64,
    pub(super) ecn: bool,
    pub(super) dropped: Ring<P>,
}

impl<P: Packet> Taken<P> {
    /// Signals congestion by this waiting packet: marks it and returns it, or else drops it.
    pub(super) fn signal(&mut self, (since_ns, mut packet): (u64, P)) -> Option<(u64, P)> {
        if self.marks(&packet) {
            packet.mark();
            return Some((since_ns, packet));
        }
        self.drop(packet);
        None
    }

    /// Returns whether this packet is marked rather than dropped.
    pub(super) fn marks(&self, packet: &P) -> bool {
        self.ecn && packet.ecn() != Ecn::NotCapable
    }

    /// A packet of `bytes` joins.
    pub(super) fn enter(&mut self, bytes: u32) {
        self.pkts += 1;
        self.bytes += u64::from(bytes);
    }

    pub(super) fn drop(&mut self, packet: P) {
        self.leave(&packet);
        self.dropped.push_back(packet);
    }

    pub(super) fn leave(&mut self, packet: &P) {
        self.pkts -= 1;
        self.bytes -= u64::from(packet.wire_bytes());
    }
}

/// Returns whether a draw with this probability succeeds. The draw is 53 bits, exact in `f64`; nothing is
/// drawn if the outcome is certain.
pub(super) fn happens(probability: f64, random: &mut Random) -> bool {
    if probability <= 0.0 || probability >= 1.0 {
        return probability >= 1.0;
    }
    (random.bits64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0) < probability
}
