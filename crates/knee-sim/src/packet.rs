//! Packets of the simulated network.

use knee_net::Numbered;
use knee_net::{Ecn, Packet as _};

/// No value.
pub(crate) const NONE: u32 = u32::MAX;

/// A data packet of a sender, or the answer of a receiver. It consists of numbers only, so that it is copied
/// as a whole: an enum is copied in pieces that do not match its fields, and reading a field right after that
/// takes long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Packet {
    flow: u32,
    /// [`Data::number`] or [`Ack::cumulative`].
    number: u32,
    /// [`Ack::sack`].
    sack: u32,
    bytes: u16,
    /// Three fields: ACK or not; [`Data::cwr`] of data, [`Ack::echo`] of an ACK; the ECN field.
    ecn_flag_ack: u16,
}

const ACK: u16 = 1;
const FLAG: u16 = 2;
const ECN_BITS: u32 = 2;

/// The contents of a packet.
pub(crate) enum Carried {
    Data(Data),
    Ack(Ack),
}

/// A TCP segment, UDP packet or probe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    pub flow: u32,
    /// Segment or packet number within the flow, from 0.
    pub number: u32,
    /// Size of the IP packet.
    pub bytes: u16,
    pub ecn: Ecn,
    /// The sender has heeded a congestion mark (RFC 3168 section 6.1.2); only on packets that are
    /// ECN-capable.
    pub cwr: bool,
}

/// An acknowledgement. The report besides its number is stored elsewhere, since it is needed only while
/// something is missing.
#[derive(Clone, Copy, Debug)]
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

impl From<Data> for Packet {
    #[inline(always)]
    fn from(Data { flow, number, bytes, ecn, cwr }: Data) -> Self {
        let ecn_flag_ack = (ecn as u16) << ECN_BITS | if cwr { FLAG } else { 0 };
        Self { flow, number, sack: NONE, bytes, ecn_flag_ack }
    }
}

impl From<Ack> for Packet {
    #[inline(always)]
    fn from(Ack { flow, cumulative, sack, bytes, echo }: Ack) -> Self {
        let ecn_flag_ack = ACK | if echo { FLAG } else { 0 };
        Self { flow, number: cumulative, sack, bytes, ecn_flag_ack }
    }
}

impl Packet {
    #[inline(always)]
    pub(crate) fn carried(self) -> Carried {
        let Self { flow, number, sack, bytes, ecn_flag_ack } = self;
        let flag = ecn_flag_ack & FLAG != 0;
        if ecn_flag_ack & ACK != 0 {
            Carried::Ack(Ack { flow, cumulative: number, sack, bytes, echo: flag })
        } else {
            Carried::Data(Data { flow, number, bytes, ecn: self.ecn(), cwr: flag })
        }
    }
}

/// The report of an ACK besides its number. It is aligned because it is copied in words of 16 bytes and read
/// in parts soon after: a part that lies in two words waits for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(16))]
pub(crate) struct Sack {
    /// Segments that have arrived out of order.
    pub blocks: SackBlocks,
    /// Segment that arrived again (D-SACK, RFC 2883), or [`NONE`].
    pub duplicate: u32,
}

impl Sack {
    /// The report of an ACK that has nothing besides its number.
    pub(crate) const NOTHING: Self = Self { blocks: NO_BLOCKS, duplicate: NONE };

    /// Returns whether something has arrived out of order.
    pub(crate) fn has_blocks(&self) -> bool {
        self.blocks != NO_BLOCKS
    }
}

// Queues hold them by the thousand.
const _: () = assert!(size_of::<Packet>() == 16);

impl knee_net::Packet for Packet {
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
        match self.ecn_flag_ack >> ECN_BITS {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable,
            _ => Ecn::Marked,
        }
    }

    #[inline]
    fn mark(&mut self) {
        if self.ecn_flag_ack & ACK == 0 {
            self.ecn_flag_ack = (Ecn::Marked as u16) << ECN_BITS | self.ecn_flag_ack & FLAG;
        }
    }
}

impl Numbered for Packet {
    #[inline]
    fn flow(&self) -> u32 {
        self.flow
    }

    #[inline]
    fn number(&self) -> u32 {
        self.number
    }
}

/// Up to three SACK blocks (as many as fit with timestamps, RFC 2018): `[start, end)`, the one that holds the
/// latest arrival first; unused ones empty.
pub(crate) type SackBlocks = [(u32, u32); 3];

/// Nothing has arrived out of order.
pub(crate) const NO_BLOCKS: SackBlocks = [(0, 0); 3];

/// The parts of some packets in flight for which the packets have no room.
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

    /// Takes the record of slot `slot` out.
    #[inline]
    pub(crate) fn take(&mut self, slot: u32) -> T {
        self.free.push(slot);
        self.slots[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_keep_their_fields() {
        let (flow, number, bytes) = (7, u32::MAX, 1500);
        for cwr in [false, true] {
            for ecn in [Ecn::NotCapable, Ecn::Capable, Ecn::Marked] {
                let mut packet = Packet::from(Data { flow, number, bytes, ecn, cwr });
                assert_eq!(
                    (packet.flow(), packet.number(), packet.wire_bytes()),
                    (7, number, 1500)
                );
                assert_eq!(packet.ecn(), ecn);
                assert!(
                    matches!(packet.carried(), Carried::Data(data) if data.cwr == cwr && data.ecn == ecn)
                );
                packet.mark();
                assert_eq!(packet.ecn(), Ecn::Marked);
                assert!(matches!(packet.carried(), Carried::Data(data) if data.cwr == cwr));
            }
        }
        for echo in [false, true] {
            let ack = Ack { flow, cumulative: 9, sack: 3, bytes: 52, echo };
            let mut packet = Packet::from(ack);
            // An ACK is not ECN-capable.
            packet.mark();
            assert_eq!((packet.number(), packet.ecn()), (9, Ecn::NotCapable));
            let same = |ack: Ack| (ack.sack, ack.echo, ack.cumulative) == (3, echo, 9);
            assert!(matches!(packet.carried(), Carried::Ack(ack) if same(ack)));
        }
    }
}
