//! A link behind a drop-tail queue.

use crate::{NEVER, Packet, Ring, Service};

/// Limit of a queue. The packet in transmission counts, as in dummynet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many packets.
    Packets(u32),
    /// So many bytes of whole packets.
    Bytes(u64),
}

/// First in, first out; what would exceed the limit is dropped on arrival.
#[derive(Clone, Debug)]
pub struct DropTail<P> {
    limit: Limit,
    held: Ring<(u64, P)>,
    held_bytes: u64,
}

impl<P: Packet> DropTail<P> {
    /// An empty queue.
    pub fn new(limit: Limit) -> Self {
        Self { limit, held: Ring::default(), held_bytes: 0 }
    }

    #[inline]
    fn push(&mut self, now_ns: u64, packet: P) -> Result<(), P> {
        let bytes = u64::from(packet.wire_bytes());
        let fits = match self.limit {
            Limit::Packets(limit) => self.held.len() < limit as usize,
            Limit::Bytes(limit) => self.held_bytes + bytes <= limit,
        };
        if !fits {
            return Err(packet);
        }
        self.held_bytes += bytes;
        self.held.push_back((now_ns, packet));
        Ok(())
    }

    #[inline]
    fn pop(&mut self) -> Option<(u64, P)> {
        let (since, packet) = self.held.pop_front()?;
        self.held_bytes -= u64::from(packet.wire_bytes());
        Some((since, packet))
    }
}

/// A packet that left a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departed<P> {
    /// The packet.
    pub packet: P,
    /// How long it waited for its transmission to start.
    pub waited_ns: u64,
}

/// Transmits queued packets one after the other.
#[derive(Clone, Debug)]
pub struct Link<P> {
    service: Service,
    queue: DropTail<P>,
    /// When the transmission of the head starts and ends.
    starts_ns: u64,
    ends_ns: u64,
}

impl<P: Packet> Link<P> {
    /// An idle link with this service.
    pub fn new(service: Service, limit: Limit) -> Self {
        let queue = DropTail::new(limit);
        Self { service, queue, starts_ns: 0, ends_ns: NEVER }
    }

    /// Offers a packet; a full queue gives it back.
    ///
    /// # Errors
    /// The packet, dropped.
    #[inline]
    pub fn enqueue(&mut self, now_ns: u64, packet: P) -> Result<(), P> {
        self.queue.push(now_ns, packet)?;
        if self.ends_ns == NEVER {
            self.start(now_ns);
        }
        Ok(())
    }

    #[inline(always)]
    fn start(&mut self, now_ns: u64) {
        (self.starts_ns, self.ends_ns) = match self.queue.held.front() {
            None => {
                self.service.rest();
                (now_ns, NEVER)
            }
            Some((_, head)) => self.service.transmit(now_ns, head.wire_bytes()),
        };
    }

    /// When the packet in transmission will have left; [`NEVER`] if there is none, or it never will.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.ends_ns
    }

    /// The packet that has left by now, if any; the next transmission starts where it ended.
    #[inline]
    pub fn dequeue(&mut self, now_ns: u64) -> Option<Departed<P>> {
        if self.ends_ns > now_ns {
            return None;
        }
        let (since, packet) = self.queue.pop()?;
        let waited_ns = self.starts_ns - since;
        self.start(self.ends_ns);
        Some(Departed { packet, waited_ns })
    }

    /// Packets held, the one in transmission included.
    #[inline]
    pub fn held_pkts(&self) -> u32 {
        self.queue.held.len() as u32
    }

    /// Packets held, in order.
    pub fn iter(&self) -> impl Iterator<Item = &P> {
        self.queue.held.iter().map(|(_, packet)| packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct P(u32);
    impl Packet for P {
        fn wire_bytes(&self) -> u32 {
            self.0
        }
    }

    #[test]
    fn the_papers_queue_holds_100_ms() {
        // 84 packets of 1500 B at 10 Mb/s: 84 * 1.2 ms = 100.8 ms (CHD paper section V).
        let mut link = Link::new(Service::constant(10_000_000), Limit::Packets(84));
        for _ in 0..84 {
            link.enqueue(0, P(1500)).expect("fits");
        }
        assert_eq!(link.enqueue(0, P(1500)), Err(P(1500)));
        let mut last = (0, 0);
        while link.next_ns() != NEVER {
            let now = link.next_ns();
            last = (now, link.dequeue(now).expect("due").waited_ns);
        }
        assert_eq!(last, (100_800_000, 83 * 1_200_000));
    }

    #[test]
    fn byte_limit_counts_bytes() {
        let mut link = Link::new(Service::constant(1_000_000), Limit::Bytes(3000));
        assert!(link.enqueue(0, P(1500)).is_ok());
        assert!(link.enqueue(0, P(1400)).is_ok());
        assert!(link.enqueue(0, P(101)).is_err());
        assert!(link.enqueue(0, P(100)).is_ok());
    }

    proptest! {
        /// Against the definition: departure i = max(arrival i, departure i-1) + size / rate,
        /// with the rate exact over any busy period; nothing lost but at a full queue.
        #[test]
        fn serves_at_its_rate(
            rate in 1_000u64..20_000_000_000,
            limit in 1u32..20,
            arrivals in prop::collection::vec((0u64..3_000_000, 40u32..9000), 1..300),
        ) {
            let mut link = Link::new(Service::constant(rate), Limit::Packets(limit));
            let mut now = 0;
            let (mut accepted, mut dropped, mut out) = (Vec::new(), 0, Vec::new());
            let drain = |link: &mut Link<P>, until: u64, out: &mut Vec<(u64, P, u64)>| {
                while link.next_ns() <= until && link.next_ns() != NEVER {
                    let t = link.next_ns();
                    let d = link.dequeue(t).expect("due");
                    out.push((t, d.packet, d.waited_ns));
                }
            };
            for (gap, bytes) in arrivals {
                now += gap;
                drain(&mut link, now, &mut out);
                let held = link.held_pkts();
                match link.enqueue(now, P(bytes)) {
                    Ok(()) => accepted.push((now, bytes)),
                    Err(_) => { dropped += 1; prop_assert_eq!(held, limit); }
                }
            }
            drain(&mut link, NEVER - 1, &mut out);
            prop_assert_eq!(out.len(), accepted.len());
            prop_assert!(dropped == 0 || limit <= accepted.len() as u32);
            let (mut busy_start, mut busy_bytes, mut last) = (0u64, 0u128, 0u64);
            for ((t, p, waited), (arrival, bytes)) in out.iter().zip(&accepted) {
                prop_assert_eq!(p.0, *bytes);
                if *arrival >= last { busy_start = *arrival; busy_bytes = 0; }
                prop_assert_eq!(*waited, last.max(*arrival) - arrival);
                busy_bytes += u128::from(*bytes);
                let exact = busy_start as f64 + busy_bytes as f64 * 8e9 / rate as f64;
                prop_assert!((*t as f64 - exact).abs() <= 1.0 + exact * 1e-12, "{t} {exact}");
                last = *t;
            }
        }
    }
}
