//! Packets of the simulated network.

use knee_net::Numbered;
use knee_net::{Ecn, Packet as _};

/// No value.
pub(crate) const NONE: u32 = u32::MAX;

/// A data packet of a sender, or the answer of a receiver. It consists of two numbers, so that queues hold it in
/// 12 bytes and copy it as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, packed(4))]
pub(crate) struct Packet {
    /// The fields below, from the lowest bit.
    fields: u64,
    /// [`Data::number`] or [`Ack::cumulative`].
    number: u32,
}

// Queues hold them by the million.
const _: () = assert!(size_of::<Packet>() == 12);

/// Place of a field in [`Packet::fields`].
#[derive(Clone, Copy)]
struct Field {
    shift: u32,
    bits: u32,
}

impl Field {
    const fn after(self, bits: u32) -> Self {
        Self { shift: self.shift + self.bits, bits }
    }

    const fn max(self) -> u32 {
        ((1 << self.bits) - 1) as u32
    }

    #[inline(always)]
    fn get(self, fields: u64) -> u32 {
        (fields >> self.shift) as u32 & self.max()
    }

    #[inline(always)]
    fn put(self, value: u32) -> u64 {
        debug_assert!(value <= self.max(), "{value} needs more than {} bits", self.bits);
        u64::from(value) << self.shift
    }
}

const BYTES: Field = Field { shift: 0, bits: 16 };
/// 1: it is an ACK.
const ACK: Field = BYTES.after(1);
/// [`Data::cwr`] of data, [`Ack::echo`] of an ACK.
const FLAG: Field = ACK.after(1);
const ECN: Field = FLAG.after(2);
const FLOW: Field = ECN.after(20);
/// [`Ack::sack`]; its maximum stands for [`NONE`].
const SACK: Field = FLOW.after(24);

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
        let flags = FLAG.put(cwr.into()) | ECN.put(ecn as u32);
        Self { fields: BYTES.put(bytes.into()) | flags | FLOW.put(flow), number }
    }
}

impl From<Ack> for Packet {
    #[inline(always)]
    fn from(Ack { flow, cumulative, sack, bytes, echo }: Ack) -> Self {
        let flags = ACK.put(1) | FLAG.put(echo.into());
        let sack = SACK.put(sack.min(SACK.max()));
        Self { fields: BYTES.put(bytes.into()) | flags | FLOW.put(flow) | sack, number: cumulative }
    }
}

impl Packet {
    /// Most flows whose packets differ.
    pub(crate) const FLOWS_MAX: usize = 1 << FLOW.bits;

    #[inline(always)]
    fn is_ack(self) -> bool {
        ACK.get(self.fields) != 0
    }

    #[inline(always)]
    pub(crate) fn carried(self) -> Carried {
        let Self { fields, number } = self;
        let (flow, bytes) = (FLOW.get(fields), BYTES.get(fields) as u16);
        let flag = FLAG.get(fields) != 0;
        if self.is_ack() {
            let sack = Some(SACK.get(fields)).filter(|sack| *sack < SACK.max());
            Carried::Ack(Ack {
                flow,
                cumulative: number,
                sack: sack.unwrap_or(NONE),
                bytes,
                echo: flag,
            })
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

impl knee_net::Packet for Packet {
    #[inline]
    fn wire_bytes(&self) -> u32 {
        BYTES.get(self.fields)
    }

    #[inline]
    fn flow_key(&self) -> u32 {
        self.flow()
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        match ECN.get(self.fields) {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable,
            _ => Ecn::Marked,
        }
    }

    #[inline]
    fn mark(&mut self) {
        if !self.is_ack() {
            self.fields = self.fields & !ECN.put(ECN.max()) | ECN.put(Ecn::Marked as u32);
        }
    }
}

impl Numbered for Packet {
    #[inline]
    fn flow(&self) -> u32 {
        FLOW.get(self.fields)
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
                assert!(
                    self.slots.len() < SACK.max() as usize,
                    "too many ACKs in flight report gaps"
                );
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
