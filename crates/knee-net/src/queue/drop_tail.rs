//! Drop-tail.

use super::fifo::Fifo;
use crate::Packet;
use knee_model::QueueLimit;

/// First in, first out; a packet that would exceed the limit is dropped on arrival. The packet in
/// transmission is the first.
#[derive(Clone, Debug)]
pub(super) struct DropTail<P> {
    limit: QueueLimit,
    held: Fifo<P>,
}

impl<P: Packet> DropTail<P> {
    pub(super) fn new(limit: QueueLimit) -> Self {
        Self { limit, held: Fifo::default() }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, now_ns: u64, packet: P) -> Result<(), P> {
        let bytes = u64::from(packet.wire_bytes());
        if !self.limit.takes(self.held.len(), self.held.bytes(), bytes) {
            return Err(packet);
        }
        self.held.push(now_ns, packet);
        Ok(())
    }

    #[inline]
    pub(super) fn front(&self) -> Option<&P> {
        self.held.front()
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<(u64, P)> {
        self.held.pop()
    }

    #[inline]
    pub(super) fn held_pkts(&self) -> u32 {
        self.held.len() as u32
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &P> {
        self.held.iter()
    }
}
