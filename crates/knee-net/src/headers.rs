//! The headers of packets: the fields that a path reads, and the ECN field, which it may set.

use crate::Ecn;

/// The contents of a packet's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// The rest of the transport's header.
    pub body: Body,
}

/// The part of a transport's header that a path reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// TCP.
    Tcp {
        /// Sequence number.
        seq: u32,
        /// The SYN flag.
        syn: bool,
        /// Sequence space: payload, SYN, FIN.
        span: u32,
        /// Bytes of all headers, IP's included.
        headers_bytes: u32,
    },
    /// UDP.
    Udp {
        /// The first word of the payload, where Knee's generator writes the packet's number.
        number: u32,
    },
}

const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// Reads the headers of an IPv4 packet of TCP or UDP, `packet_bytes` long, that begins with `start`. Returns none for
/// anything else, and for the reset with which an end answers packets of a connection that it no longer has: such a
/// reset has no ACK flag.
pub fn parse(start: &[u8], packet_bytes: u32) -> Option<Headers> {
    let first = *start.first()?;
    if first >> 4 != 4 {
        return None;
    }
    let protocol = *start.get(9)?;
    let ip_bytes = u32::from(first & 15) * 4;
    let segment = start.get(ip_bytes as usize..)?;
    let half = |at: usize| Some(u16::from_be_bytes(segment.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_be_bytes(segment.get(at..at + 4)?.try_into().ok()?));
    let body = match protocol {
        PROTOCOL_TCP => {
            let flags = *segment.get(13)?;
            if flags & (RST | ACK) == RST {
                return None;
            }
            let headers_bytes = ip_bytes + u32::from(*segment.get(12)? >> 4) * 4;
            let payload_bytes = packet_bytes.checked_sub(headers_bytes)?;
            let syn = flags & SYN != 0;
            let span = payload_bytes + u32::from(syn) + u32::from(flags & FIN != 0);
            Body::Tcp { seq: word(4)?, syn, span, headers_bytes }
        }
        PROTOCOL_UDP => Body::Udp { number: word(8)? },
        _ => return None,
    };
    Some(Headers { source_port: half(0)?, destination_port: half(2)?, body })
}

/// The ECN field of an IPv4 or IPv6 packet that begins with `start`.
pub fn ecn(start: &[u8]) -> Ecn {
    let bits = match start {
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

/// Sets the ECN field of an IPv4 or IPv6 packet that begins with `start` to [`Ecn::Marked`]; IPv4's checksum stays sound.
pub fn mark(start: &mut [u8]) {
    match start {
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

/// Sets the checksum of the TCP segment in an IPv4 packet, `packet_bytes` long, with these `headers` and a payload of
/// zeros (RFC 9293, section 3.1).
pub fn set_checksum_of_zeros(headers: &mut [u8], packet_bytes: u32) {
    let ip_bytes = usize::from(headers.first().map_or(0, |first| first & 15)) * 4;
    if headers.len() < ip_bytes.max(20) + 20 {
        return;
    }
    headers[ip_bytes + 16..ip_bytes + 18].fill(0);
    let segment_bytes = packet_bytes - ip_bytes as u32;
    let words = headers[12..20].chunks(2).chain(headers[ip_bytes..].chunks(2));
    let words = words.map(|word| u32::from(word[0]) << 8 | word.get(1).map_or(0, |b| (*b).into()));
    let sum = folded(words.sum::<u32>() + u32::from(PROTOCOL_TCP) + segment_bytes);
    headers[ip_bytes + 16..ip_bytes + 18].copy_from_slice(&(!sum).to_be_bytes());
}

/// A sum of 16-bit words with its carries added (RFC 1071).
fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Returns the Internet checksum `sum` after a change of the word `before` to `after` (RFC 1624,
/// eqn. 3).
fn changed_sum(sum: u16, before: u16, after: u16) -> u16 {
    !folded(u32::from(!sum) + u32::from(!before) + u32::from(after))
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

    fn parsed(packet: &[u8]) -> Option<Headers> {
        parse(packet, packet.len() as u32)
    }

    #[test]
    fn headers_of_tcp_and_udp() {
        let headers = parsed(&tcp(0x10, 77, 1448)).expect("TCP");
        assert_eq!((headers.source_port, headers.destination_port), (10_003, 10_004));
        assert_eq!(headers.body, Body::Tcp { seq: 77, syn: false, span: 1448, headers_bytes: 52 });
        let syn = parsed(&tcp(2, 5, 0)).expect("TCP").body;
        assert_eq!(syn, Body::Tcp { seq: 5, syn: true, span: 1, headers_bytes: 52 });
        let mut udp = vec![0; 40];
        (udp[0], udp[9]) = (0x45, 17);
        udp[28..32].copy_from_slice(&9u32.to_be_bytes());
        assert_eq!(parsed(&udp).expect("UDP").body, Body::Udp { number: 9 });
    }

    /// The checksum over whole 16-bit words, its own included, is 0 in a sound header (RFC 1071).
    fn sum(header: &[u8]) -> u16 {
        let words = header.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
        !folded(words.sum())
    }

    #[test]
    fn a_segment_of_zeros_has_its_checksum() {
        let mut packet = tcp(0x18, 0x8000_0001, 99);
        packet[12..20].copy_from_slice(&[10, 1, 0, 1, 10, 2, 0, 1]);
        packet[36..38].copy_from_slice(&[0xab, 0xcd]);
        let bytes = packet.len() as u32;
        set_checksum_of_zeros(&mut packet[..52], bytes);
        let mut summed = packet[12..].to_vec();
        summed.extend([0, PROTOCOL_TCP, 0, 131, 0]);
        // An odd payload is filled up with a zero.
        let pseudo = summed.split_off(summed.len() - 5);
        summed.push(0);
        summed.extend(&pseudo[..4]);
        assert_eq!(sum(&summed), 0);
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
                assert_eq!((ecn(&header), sum(&header)), (Ecn::Capable, 0));
                let before = header.clone();
                mark(&mut header);
                assert_eq!((ecn(&header), sum(&header)), (Ecn::Marked, 0));
                let changed: Vec<_> = (0..20).filter(|i| header[*i] != before[*i]).collect();
                assert!(changed.iter().all(|i| [1, 10, 11].contains(i)), "{changed:?}");
                mark(&mut header);
                assert_eq!((ecn(&header), sum(&header)), (Ecn::Marked, 0));
            }
        }
        // The example of RFC 1624 section 4.
        assert_eq!(changed_sum(0xdd2f, 0x5555, 0x3285), 0x0000);
        let mut v6 = vec![0; 40];
        v6[..2].copy_from_slice(&[0x60, 0x2a]);
        assert_eq!(ecn(&v6), Ecn::Capable);
        mark(&mut v6);
        assert_eq!((ecn(&v6), &v6[..2]), (Ecn::Marked, &[0x60, 0x3a][..]));
    }

    #[test]
    fn anything_else_is_refused_at_any_length() {
        let packet = tcp(0x10, 1, 0);
        for len in 0..52 {
            assert_eq!(parsed(&packet[..len]), None, "{len}");
        }
        assert_eq!(parsed(&tcp(RST, 1, 0)), None);
        assert!(parsed(&tcp(RST | ACK, 1, 0)).is_some());
        let mut icmp = packet.clone();
        icmp[9] = 1;
        assert_eq!(parsed(&icmp), None);
        let mut v6 = packet;
        v6[0] = 0x60;
        assert_eq!(parsed(&v6), None);
    }
}
