//! Packets on the path, and the contents of their headers.

use knee_net::{Ecn, Numbered, Packet};

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
        let bits = match self.bytes() {
            [first, second, ..] if first >> 4 == 4 => second & 3,
            [first, second, ..] if first >> 4 == 6 => second >> 4 & 3,
            _ => 0,
        };
        match bits {
            0 => Ecn::NotCapable,
            3 => Ecn::Marked,
            _ => Ecn::Capable,
        }
    }

    fn mark(&mut self) {
        match &mut self.room[..] {
            [first, second, ..] if *first >> 4 == 6 => *second |= 0x30,
            [first, second, rest @ ..] if *first >> 4 == 4 && rest.len() >= 10 => {
                let before = u16::from_be_bytes([*first, *second]);
                *second |= 3;
                let after = u16::from_be_bytes([*first, *second]);
                let sum = u16::from_be_bytes([rest[8], rest[9]]);
                rest[8..10].copy_from_slice(&changed_sum(sum, before, after).to_be_bytes());
            }
            _ => {}
        }
    }
}

/// Returns the Internet checksum `sum` after a change of the word `before` to `after` (RFC 1624,
/// eqn. 3).
fn changed_sum(sum: u16, before: u16, after: u16) -> u16 {
    let mut total = u32::from(!sum) + u32::from(!before) + u32::from(after);
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    !(total as u16)
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

/// The contents of a packet's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Headers {
    pub source_port: u16,
    pub destination_port: u16,
    pub body: Body,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Tcp {
        seq: u32,
        syn: bool,
        /// Sequence space: payload, SYN, FIN.
        span: u32,
    },
    Udp {
        /// Number that the generator wrote.
        number: u32,
    },
}

const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// Headers of a whole IPv4 packet of TCP or UDP; none of anything else, nor of the reset with which an end
/// answers packets of a connection it no longer has: those have no ACK flag.
pub(crate) fn parse(packet: &[u8]) -> Option<Headers> {
    let first = *packet.first()?;
    if first >> 4 != 4 {
        return None;
    }
    let protocol = *packet.get(9)?;
    let segment = packet.get(usize::from(first & 15) * 4..)?;
    let half = |at: usize| Some(u16::from_be_bytes(segment.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_be_bytes(segment.get(at..at + 4)?.try_into().ok()?));
    let body = match protocol {
        PROTOCOL_TCP => {
            let flags = *segment.get(13)?;
            if flags & (RST | ACK) == RST {
                return None;
            }
            let header = usize::from(*segment.get(12)? >> 4) * 4;
            let payload = segment.len().checked_sub(header)? as u32;
            let syn = flags & SYN != 0;
            let span = payload + u32::from(syn) + u32::from(flags & FIN != 0);
            Body::Tcp { seq: word(4)?, syn, span }
        }
        PROTOCOL_UDP => Body::Udp { number: word(8)? },
        _ => return None,
    };
    Some(Headers { source_port: half(0)?, destination_port: half(2)?, body })
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
    fn headers_of_tcp_and_udp() {
        let headers = parse(&tcp(0x10, 77, 1448)).expect("TCP");
        assert_eq!((headers.source_port, headers.destination_port), (10_003, 10_004));
        assert_eq!(headers.body, Body::Tcp { seq: 77, syn: false, span: 1448 });
        let syn = parse(&tcp(2, 5, 0)).expect("TCP").body;
        assert_eq!(syn, Body::Tcp { seq: 5, syn: true, span: 1 });
        let mut udp = vec![0; 40];
        (udp[0], udp[9]) = (0x45, 17);
        udp[28..32].copy_from_slice(&9u32.to_be_bytes());
        assert_eq!(parse(&udp).expect("UDP").body, Body::Udp { number: 9 });
    }

    /// The checksum over whole 16-bit words, its own included, is 0 in a sound header (RFC 1071).
    fn sum(header: &[u8]) -> u16 {
        let words = header.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
        let mut total: u32 = words.sum();
        while total > 0xffff {
            total = (total & 0xffff) + (total >> 16);
        }
        !(total as u16)
    }

    #[test]
    fn marks_keep_the_checksum_sound() {
        let mut random = knee_model::Random::stream(1, "headers", 0);
        for ect in [1, 2] {
            for _ in 0..1000 {
                let mut header: Vec<u8> = (0..20).map(|_| random.bits32() as u8).collect();
                (header[0], header[1]) = (0x45, header[1] & !3 | ect);
                header[10..12].fill(0);
                let check = sum(&header);
                header[10..12].copy_from_slice(&check.to_be_bytes());
                let mut packet = Datagram { len: 20, room: header, ..Datagram::default() };
                assert_eq!((packet.ecn(), sum(&packet.room)), (Ecn::Capable, 0));
                let before = packet.room.clone();
                packet.mark();
                assert_eq!((packet.ecn(), sum(&packet.room)), (Ecn::Marked, 0));
                let changed: Vec<_> = (0..20).filter(|i| packet.room[*i] != before[*i]).collect();
                assert!(changed.iter().all(|i| [1, 10, 11].contains(i)), "{changed:?}");
                packet.mark();
                assert_eq!((packet.ecn(), sum(&packet.room)), (Ecn::Marked, 0));
            }
        }
        // The example of RFC 1624 section 4.
        assert_eq!(changed_sum(0xdd2f, 0x5555, 0x3285), 0x0000);
        let mut v6 = Datagram { len: 40, room: vec![0x60, 0x2a, 0, 0], ..Datagram::default() };
        v6.room.resize(40, 0);
        assert_eq!(v6.ecn(), Ecn::Capable);
        v6.mark();
        assert_eq!((v6.ecn(), &v6.room[..2]), (Ecn::Marked, &[0x60, 0x3a][..]));
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

    #[test]
    fn anything_else_is_refused_at_any_length() {
        let packet = tcp(0x10, 1, 0);
        for len in 0..52 {
            assert_eq!(parse(&packet[..len]), None, "{len}");
        }
        assert_eq!(parse(&tcp(RST, 1, 0)), None);
        assert!(parse(&tcp(RST | ACK, 1, 0)).is_some());
        let mut icmp = packet.clone();
        icmp[9] = 1;
        assert_eq!(parse(&icmp), None);
        let mut v6 = packet;
        v6[0] = 0x60;
        assert_eq!(parse(&v6), None);
    }
}
