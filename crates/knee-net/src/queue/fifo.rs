//! Waiting packets in the order of their arrival.

use crate::{Packet, timed_ring::TimedRing};

/// Packets with the times at which they came.
#[derive(Clone, Debug, Default)]
pub(super) struct Fifo<P> {
    held: TimedRing<P>,
    bytes: u64,
}

impl<P: Packet> Fifo<P> {
    #[inline]
    pub(super) fn push(&mut self, now_ns: u64, packet: P) {
        self.bytes += u64::from(packet.wire_bytes());
        self.held.push_back(now_ns, packet);
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<(u64, P)> {
        let (since_ns, packet) = self.held.pop_front()?;
        self.bytes -= u64::from(packet.wire_bytes());
        Some((since_ns, packet))
    }

    #[inline]
    pub(super) fn front(&self) -> Option<&P> {
        self.held.front()
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &P> {
        self.held.iter()
    }
}
