//! Delivery rate samples (draft-ietf-ccwg-bbr section 4.1.2), for profile RATE.
//!
//! quinn identifies an acknowledged packet by its sending time, not by its number. So the state at sending is
//! kept by that time; packets sent at the same time share it. An entry is removed when all packets sent at
//! its time are acknowledged. Lost packets and packets with ACKs only are never reported again: the oldest
//! entry is removed when twice as much is kept as can be in flight.
//!
//! The draft drops a sample whose interval is less than the minimum RTT, since a repair may have been taken
//! for the original. Packets of QUIC are never taken for others, and the interval is at least the RTT of the
//! packet.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// Delivered data, and the times at which they were sent.
#[derive(Debug)]
pub(crate) struct Delivery {
    sent: BTreeMap<Instant, Sent>,
    /// Bytes of all in `sent`.
    kept_bytes: u64,
    /// After the latest ACK frame.
    in_flight_bytes: u64,
    /// Time at which the latest packet was acknowledged, or sending began after a pause.
    delivered_time: Instant,
    /// Sending time of the packet from which the next interval of sending counts.
    first_sent: Instant,
    /// The application held sending back until more than this was delivered, packets.
    app_limited_until: Option<u64>,
    /// The packet of the present ACK frame that was sent latest: its sending time, and the state then.
    newest: Option<(Instant, Sent)>,
}

/// The state when packets were sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// Bytes of these packets not acknowledged yet.
    bytes: u64,
    delivered_pkts: u64,
    delivered_time: Instant,
    first_sent: Instant,
    app_limited: bool,
}

/// Data in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    pub bytes: u64,
    pub pkts: u32,
}

/// A delivery rate sample, as `cc_ack` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Delivered from the packet's sending to its ACK.
    pub pkts: u32,
    /// The longer of the times to send and to acknowledge them, microseconds; 0: no sample.
    pub us: u32,
    /// Packets that had been delivered when it was sent; wraps.
    pub prior_pkts: u32,
    /// The application held sending back then.
    pub app_limited: bool,
}

impl Delivery {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            sent: BTreeMap::new(),
            kept_bytes: 0,
            in_flight_bytes: 0,
            delivered_time: now,
            first_sent: now,
            app_limited_until: None,
            newest: None,
        }
    }

    /// A copy for a path that looks like the same one: packets sent on the old one are not known.
    pub(crate) fn without_flight(&self) -> Self {
        Self { sent: BTreeMap::new(), kept_bytes: 0, newest: None, ..*self }
    }

    /// Packets were sent. `idle`: nothing was in flight; `window_bytes`: more is not sent.
    pub(crate) fn sent(
        &mut self,
        now: Instant,
        bytes: u64,
        idle: bool,
        delivered_pkts: u64,
        window_bytes: u64,
    ) {
        if idle {
            self.first_sent = now;
            self.delivered_time = now;
        }
        let before_bytes = self.sent.get(&now).map_or(0, |sent| sent.bytes);
        let sent = Sent {
            bytes: before_bytes.saturating_add(bytes),
            delivered_pkts,
            delivered_time: self.delivered_time,
            first_sent: self.first_sent,
            app_limited: self.app_limited_until.is_some(),
        };
        self.sent.insert(now, sent);
        self.kept_bytes = self.kept_bytes.saturating_add(bytes);
        let most_bytes = window_bytes.max(self.in_flight_bytes).saturating_mul(2).max(bytes);
        while self.kept_bytes > most_bytes {
            let Some((_, oldest)) = self.sent.pop_first() else { break };
            self.kept_bytes = self.kept_bytes.saturating_sub(oldest.bytes);
        }
    }

    /// A packet of the present ACK frame.
    pub(crate) fn acked(&mut self, sent: Instant, bytes: u64) {
        let Some(known) = self.sent.get_mut(&sent) else { return };
        if self.newest.is_none_or(|(newest, _)| sent >= newest) {
            self.newest = Some((sent, *known));
        }
        let bytes = bytes.min(known.bytes);
        known.bytes -= bytes;
        self.kept_bytes = self.kept_bytes.saturating_sub(bytes);
        if known.bytes == 0 {
            self.sent.remove(&sent);
        }
    }

    /// Ends the ACK frame; `delivered_pkts` are delivered now. If the application held sending back, the
    /// packets left in flight were all that it had to send.
    pub(crate) fn sample(
        &mut self,
        now: Instant,
        delivered_pkts: u64,
        left: Left,
        app_limited: bool,
    ) -> Sample {
        self.delivered_time = now;
        self.in_flight_bytes = left.bytes;
        if self.app_limited_until.is_some_and(|until| delivered_pkts > until) {
            self.app_limited_until = None;
        }
        if app_limited {
            self.app_limited_until = Some(delivered_pkts + u64::from(left.pkts));
        }
        let Some((sent, known)) = self.newest.take() else { return Sample::default() };
        self.first_sent = sent;
        let to_send = sent.saturating_duration_since(known.first_sent);
        let to_acknowledge = now.saturating_duration_since(known.delivered_time);
        let pkts = delivered_pkts.saturating_sub(known.delivered_pkts);
        Sample {
            pkts: pkts.min(u32::MAX.into()) as u32,
            us: micros(to_send.max(to_acknowledge)),
            prior_pkts: known.delivered_pkts as u32,
            app_limited: known.app_limited,
        }
    }
}

fn micros(time: Duration) -> u32 {
    time.as_micros().min(u32::MAX.into()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const WINDOW: u64 = 50_000;
    const PKT: u64 = 1000;

    /// Time in milliseconds, packets of [`PKT`] bytes.
    struct Drive {
        delivery: Delivery,
        zero: Instant,
        delivered_pkts: u64,
        in_flight: u32,
    }

    impl Drive {
        fn new() -> Self {
            let zero = Instant::now();
            Self { delivery: Delivery::new(zero), zero, delivered_pkts: 0, in_flight: 0 }
        }

        fn at(&self, ms: u32) -> Instant {
            self.zero + MS * ms
        }

        fn send(&mut self, ms: u32, pkts: u32) {
            let (now, idle) = (self.at(ms), self.in_flight == 0);
            self.delivery.sent(now, PKT * u64::from(pkts), idle, self.delivered_pkts, WINDOW);
            self.in_flight += pkts;
        }

        /// One frame that acknowledges one packet sent at each of these times.
        fn ack(&mut self, ms: u32, sent_ms: &[u32], app_limited: bool) -> Sample {
            for sent in sent_ms {
                self.delivery.acked(self.at(*sent), PKT);
            }
            self.delivered_pkts += sent_ms.len() as u64;
            self.in_flight = self.in_flight.saturating_sub(sent_ms.len() as u32);
            let left = Left { bytes: PKT * u64::from(self.in_flight), pkts: self.in_flight };
            self.delivery.sample(self.at(ms), self.delivered_pkts, left, app_limited)
        }
    }

    fn sample(pkts: u32, ms: u32, prior_pkts: u32) -> Sample {
        Sample { pkts, us: ms * 1000, prior_pkts, app_limited: false }
    }

    /// Ten packets 1 ms apart over an RTT of 40 ms; the bottleneck spreads them to 2 ms. Before the
    /// first ACK the interval begins with the first packet.
    #[test]
    fn a_paced_flight() {
        let mut d = Drive::new();
        (0..10).for_each(|ms| d.send(ms, 1));
        // Sent at 0: 1 packet in max(0, 40) ms.
        assert_eq!(d.ack(40, &[0], false), sample(1, 40, 0));
        // Sent at 1: 2 packets in max(1, 42) ms, from the flight's start.
        assert_eq!(d.ack(42, &[1], false), sample(2, 42, 0));
        for ms in 2..10 {
            d.ack(40 + 2 * ms, &[ms], false);
        }
        // A second flight, sent at 58 while nothing is in flight: counts from there.
        d.send(58, 2);
        assert_eq!(d.ack(98, &[58], false), sample(1, 40, 10));
        // The third while one is in flight, from the latest ACK, at 98, and the packet of 58.
        d.send(99, 1);
        assert_eq!(d.ack(100, &[58], false), sample(2, 42, 10));
        d.send(101, 1);
        assert_eq!(d.ack(139, &[99], false), sample(2, 41, 11));
        // Sent 41 ms after the packet that was known to have arrived last, that of 99.
        d.send(140, 1);
        assert_eq!(d.ack(141, &[101], false), sample(2, 43, 12));
        assert_eq!(d.ack(175, &[140], false), sample(2, 41, 13));
    }

    /// ACKs that come compressed: the sending took longer.
    #[test]
    fn the_longer_of_both_times() {
        let mut d = Drive::new();
        d.send(0, 1);
        d.send(1, 1);
        assert_eq!(d.ack(10, &[0], false), sample(1, 10, 0));
        for ms in 11..21 {
            d.send(ms, 1);
        }
        // All at once, with the packet of 1: the newest was sent at 20, from 0 on; the interval of
        // acknowledgement counts from 10.
        let mut acked: Vec<u32> = (11..21).collect();
        acked.insert(3, 1);
        assert_eq!(d.ack(25, &acked, false), sample(11, 20, 1));
    }

    #[test]
    fn the_newest_packet_of_a_frame_counts() {
        let mut d = Drive::new();
        d.send(0, 2);
        d.send(5, 1);
        d.send(7, 1);
        assert_eq!(d.ack(40, &[0], false), sample(1, 40, 0));
        // In any order.
        assert_eq!(d.ack(45, &[7, 0, 5], false), sample(4, 45, 0));
    }

    #[test]
    fn samples_limited_by_the_application_are_marked() {
        let mut d = Drive::new();
        d.send(0, 4);
        // Nothing more to send: until more than 2 + 2 are delivered.
        assert!(!d.ack(40, &[0, 0], true).app_limited);
        d.send(41, 3);
        assert!(!d.ack(42, &[0, 0], false).app_limited, "of a packet sent before");
        assert!(d.ack(81, &[41], false).app_limited);
        // Five are delivered: no more of it.
        d.send(82, 1);
        assert!(d.ack(83, &[41, 41], false).app_limited, "as known when it was sent");
        assert!(!d.ack(122, &[82], false).app_limited);
    }

    /// Lost packets are forgotten in the end, acknowledged ones at once.
    #[test]
    fn memory_is_bounded_by_the_flight() {
        let mut d = Drive::new();
        for ms in 0..1000 {
            d.send(ms, 1);
            match ms % 2 {
                0 => drop(d.ack(ms, &[ms], false)),
                _ => d.in_flight -= 1, // lost
            }
            assert!(d.delivery.kept_bytes <= 2 * WINDOW && d.delivery.sent.len() <= 100);
            let bytes: u64 = d.delivery.sent.values().map(|s| s.bytes).sum();
            assert_eq!(bytes, d.delivery.kept_bytes);
        }
        // The newest are those kept.
        assert!(d.ack(1000, &[999], false).us > 0);
        assert_eq!(d.ack(1001, &[1], false), Sample::default());
        // More at once than can be in flight is kept alone.
        d.send(1002, 200);
        assert_eq!((d.delivery.sent.len(), d.delivery.kept_bytes), (1, 200 * PKT));
    }

    #[test]
    fn packets_of_which_nothing_is_known_give_no_sample() {
        let mut d = Drive::new();
        d.send(0, 1);
        d.in_flight += 1;
        // A probe of the path's MTU.
        assert_eq!(d.ack(40, &[39], false), Sample::default());
        d.send(41, 1);
        let mut other = Drive { delivery: d.delivery.without_flight(), ..d };
        assert_eq!(other.ack(80, &[41], false), Sample::default());
    }
}
