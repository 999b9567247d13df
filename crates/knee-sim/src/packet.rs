//! What travels through the simulated network.

use knee_net::Ecn;
use knee_run::Numbered;

/// No value.
pub(crate) const NONE: u32 = u32::MAX;

/// A packet: what a sender sends, or what a receiver answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packet {
    Data(Data),
    Ack(Ack),
}

/// A TCP segment, UDP packet or probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Data {
    pub flow: u32,
    /// Segment or packet number within the flow, from 0.
    pub number: u32,
    /// An IP packet's size fits.
    pub bytes: u16,
    pub ecn: Ecn,
    /// The sender has heeded a congestion mark (RFC 3168 section 6.1.2); only on packets that are
    /// ECN-capable.
    pub cwr: bool,
}

/// An acknowledgement. What it reports besides its number is stored elsewhere, since it is needed only
/// while something is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Ack {
    pub flow: u32,
    /// First segment not received in order.
    pub cumulative: u32,
    /// Index of its [`Sack`] in the [`Store`], or [`NONE`].
    pub sack: u32,
    pub bytes: u16,
    /// It echoes a congestion mark (ECE, RFC 3168 section 6.1.3).
    pub echo: bool,
}

/// What an ACK reports besides its number. Aligned, since it is copied in words of 16 bytes and read in parts
/// soon after: a part that lies in two of them waits for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(16))]
pub(crate) struct Sack {
    /// What has arrived out of order.
    pub blocks: SackBlocks,
    /// Segment that arrived again (D-SACK, RFC 2883), or [`NONE`].
    pub duplicate: u32,
}

impl Sack {
    /// Of an ACK that reports no more than its number.
    pub(crate) const NOTHING: Self = Self { blocks: NO_BLOCKS, duplicate: NONE };

    /// Whether something has arrived out of order.
    pub(crate) fn has_blocks(&self) -> bool {
        self.blocks != NO_BLOCKS
    }
}

// Queues hold them by the thousand.
const _: () = assert!(size_of::<Packet>() == 16);

impl Default for Packet {
    fn default() -> Self {
        Self::Data(Data::default())
    }
}

impl knee_net::Packet for Packet {
    #[inline]
    fn wire_bytes(&self) -> u32 {
        match self {
            Self::Data(data) => data.bytes.into(),
            Self::Ack(ack) => ack.bytes.into(),
        }
    }

    #[inline]
    fn flow_key(&self) -> u32 {
        self.flow()
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        match self {
            Self::Data(data) => data.ecn,
            Self::Ack(_) => Ecn::NotCapable,
        }
    }

    #[inline]
    fn mark(&mut self) {
        if let Self::Data(data) = self {
            data.ecn = Ecn::Marked;
        }
    }
}

impl Numbered for Packet {
    #[inline]
    fn flow(&self) -> u32 {
        match self {
            Self::Data(data) => data.flow,
            Self::Ack(ack) => ack.flow,
        }
    }

    #[inline]
    fn number(&self) -> u32 {
        match self {
            Self::Data(data) => data.number,
            Self::Ack(ack) => ack.cumulative,
        }
    }

    #[inline]
    fn cwr(&self) -> bool {
        match self {
            Self::Data(data) => data.cwr,
            Self::Ack(_) => false,
        }
    }
}

/// Up to three SACK blocks (what fits beside timestamps, RFC 2018): `[start, end)`, the one that
/// holds the latest arrival first; unused ones empty.
pub(crate) type SackBlocks = [(u32, u32); 3];

/// Nothing has arrived out of order.
pub(crate) const NO_BLOCKS: SackBlocks = [(0, 0); 3];

/// What some of the packets in flight have no room for.
pub(crate) struct Store<T> {
    slots: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T: Copy> Store<T> {
    pub(crate) fn put(&mut self, record: T) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = record;
                slot
            }
            None => {
                self.slots.push(record);
                (self.slots.len() - 1) as u32
            }
        }
    }

    /// Takes the record of slot `slot` out; none for [`NONE`].
    #[inline]
    pub(crate) fn take(&mut self, slot: u32) -> Option<T> {
        if slot == NONE {
            return None;
        }
        self.free.push(slot);
        Some(self.slots[slot as usize])
    }
}
