//! What travels through the simulated network.

use knee_net::{Ecn, Packet};
use knee_run::Numbered;

/// No value.
pub(crate) const NONE: u32 = u32::MAX;

/// A packet on the way there: TCP segment, UDP packet or probe; of a flow that goes back an ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Data {
    pub flow: u32,
    /// Segment or packet number within the flow, from 0; of an ACK the first segment not received in
    /// order.
    pub number: u32,
    /// Where the rest of an ACK stands; [`NONE`]: it is none.
    pub ack: u32,
    /// An IP packet's size fits.
    pub bytes: u16,
    pub ecn: Ecn,
    /// The sender has heeded a congestion mark (RFC 3168 section 6.1.2); only on packets that are
    /// ECN-capable.
    pub cwr: bool,
}

impl Packet for Data {
    #[inline]
    fn wire_bytes(&self) -> u32 {
        self.bytes.into()
    }

    #[inline]
    fn flow_key(&self) -> u32 {
        self.flow
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        self.ecn
    }

    #[inline]
    fn mark(&mut self) {
        self.ecn = Ecn::Marked;
    }
}

impl Numbered for Data {
    #[inline]
    fn flow(&self) -> u32 {
        self.flow
    }

    #[inline]
    fn number(&self) -> u32 {
        self.number
    }
}

/// Index of the flow that a packet on the way back belongs to; of an ACK, whether it echoes a
/// congestion mark (ECE, RFC 3168 section 6.1.3), or whether it is none, but data: in one word, so that
/// ACKs in flight take no more room for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AckTo(u32);

impl AckTo {
    const ECHO: u32 = 1 << 31;
    const DATA: u32 = 1 << 30;

    #[inline]
    pub(crate) fn new(flow: u32, echo: bool) -> Self {
        debug_assert!(flow < Self::DATA);
        Self(if echo { flow | Self::ECHO } else { flow })
    }

    /// Of data of a flow that goes back.
    pub(crate) fn data(flow: u32) -> Self {
        debug_assert!(flow < Self::DATA);
        Self(flow | Self::DATA)
    }

    #[inline]
    pub(crate) fn is_data(self) -> bool {
        self.0 & Self::DATA != 0
    }

    #[inline]
    pub(crate) fn flow(self) -> u32 {
        self.0 & !(Self::ECHO | Self::DATA)
    }

    #[inline]
    pub(crate) fn echo(self) -> bool {
        self.0 & Self::ECHO != 0
    }
}

/// A packet on the way back: an acknowledgement; of a flow that goes back a segment or packet, of
/// which there is only the number. SACK blocks, needed only while something is missing, stand apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AckPacket {
    pub to: AckTo,
    /// First segment not received in order; of data its number.
    pub cumulative: u32,
    /// Segment that arrived again (D-SACK, RFC 2883), or [`NONE`].
    pub duplicate: u32,
    /// Where the SACK blocks stand, or [`NONE`].
    pub blocks: u32,
}

/// Up to three SACK blocks (what fits beside timestamps, RFC 2018): `[start, end)`, the one that
/// holds the latest arrival first; unused ones empty.
pub(crate) type SackBlocks = [(u32, u32); 3];

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
