//! Packets on the path.

use knee_net::{Ecn, Numbered, Packet, headers};

/// A packet between the devices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Datagram {
    /// Room for a packet of any size; the first `len` bytes count.
    pub room: Vec<u8>,
    pub len: u32,
    pub flow: u32,
    /// Segment or packet number within the flow.
    pub number: u32,
    /// Sequence space that it covers; empty of UDP and pure ACKs.
    pub covers: (u64, u64),
}

impl Packet for Datagram {
    #[inline]
    fn wire_bytes(&self) -> u32 {
        self.len
    }

    /// A hash of addresses and ports: it tells flows apart where there is no plan, too.
    fn flow_key(&self) -> u32 {
        let bytes = self.bytes();
        let (addresses, ports) = match bytes.first().map(|first| first >> 4) {
            Some(4) => (12..20, usize::from(bytes[0] & 15) * 4),
            Some(6) => (8..40, 40),
            _ => return 0,
        };
        let ports = bytes.get(ports..ports + 4).unwrap_or_default();
        // FNV-1a.
        let fold = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        bytes.get(addresses).unwrap_or_default().iter().chain(ports).fold(0x811c_9dc5, fold)
    }

    fn ecn(&self) -> Ecn {
        headers::ecn(self.bytes())
    }

    fn mark(&mut self) {
        headers::mark(&mut self.room);
    }
}

impl Numbered for Datagram {
    #[inline]
    fn flow(&self) -> u32 {
        self.flow
    }

    #[inline]
    fn number(&self) -> u32 {
        self.number
    }
}

impl Datagram {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.room[..self.len as usize]
    }
}

/// Returns whether a packet is for the other end. Multicast, which an end sends unasked, is not.
pub(crate) fn carried(packet: &[u8]) -> bool {
    match packet.first().map(|first| first >> 4) {
        Some(4) => packet.get(16).is_some_and(|first| *first < 224),
        Some(6) => packet.get(24).is_some_and(|first| *first != 0xff),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(flags: u8, seq: u32, payload: usize) -> Vec<u8> {
        let mut packet = vec![0; 20 + 32 + payload];
        packet[0] = 0x45;
        packet[9] = 6;
        packet[20..22].copy_from_slice(&10_003u16.to_be_bytes());
        packet[22..24].copy_from_slice(&10_004u16.to_be_bytes());
        packet[24..28].copy_from_slice(&seq.to_be_bytes());
        packet[32] = 8 << 4;
        packet[33] = flags;
        packet
    }

    #[test]
    fn flows_have_keys_of_their_own() {
        let key = |packet: Vec<u8>| {
            let len = packet.len() as u32;
            Datagram { room: packet, len, ..Datagram::default() }.flow_key()
        };
        let packet = tcp(0x10, 1, 100);
        assert_eq!(key(packet.clone()), key(tcp(0x10, 2, 10)));
        for at in [12, 19, 20, 23] {
            let mut other = packet.clone();
            other[at] ^= 1;
            assert_ne!(key(other), key(packet.clone()), "{at}");
        }
    }
}
