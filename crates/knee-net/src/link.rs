//! A link behind a queue.

use crate::{NEVER, Packet, Queue, Service};
use knee_model::QueueLimit;

/// A packet that left a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departed<P> {
    /// The packet.
    pub packet: P,
    /// Time that it waited for its transmission to start.
    pub waited_ns: u64,
}

/// Transmits queued packets one after the other.
#[derive(Clone, Debug)]
pub struct Link<P> {
    service: Service,
    /// Holds the packet in transmission too, first.
    pub(crate) queue: Queue<P>,
    /// Times at which the transmission of the head starts and ends.
    starts_ns: u64,
    ends_ns: u64,
}

impl<P: Packet> Link<P> {
    /// An idle link with this service behind a drop-tail queue.
    pub fn new(service: Service, limit: QueueLimit) -> Self {
        Self::behind(Queue::drop_tail(limit), service)
    }

    /// An idle link with this service behind `queue`.
    pub fn behind(queue: Queue<P>, service: Service) -> Self {
        Self { service, queue, starts_ns: 0, ends_ns: NEVER }
    }

    /// Offers a packet; the queue may give it back, and may drop others for it.
    ///
    /// # Errors
    /// The packet, dropped.
    #[inline(always)]
    pub fn enqueue(&mut self, now_ns: u64, packet: P) -> Result<(), P> {
        self.queue.push(now_ns, packet)?;
        // It was idle.
        if self.queue.held_pkts() == 1 {
            self.start(now_ns);
        }
        Ok(())
    }

    #[inline(always)]
    fn start(&mut self, now_ns: u64) {
        (self.starts_ns, self.ends_ns) = match self.queue.begin(now_ns) {
            None => {
                self.service.rest();
                (now_ns, NEVER)
            }
            Some(bytes) => self.service.transmit(now_ns, bytes),
        };
    }

    /// Returns the time at which the packet in transmission leaves; [`NEVER`] if there is none, or it never
    /// will.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.ends_ns
    }

    /// The packet that has left by now, if any; the next transmission starts where it ended.
    #[inline(always)]
    pub fn dequeue(&mut self, now_ns: u64) -> Option<Departed<P>> {
        if self.ends_ns > now_ns {
            return None;
        }
        let (since, packet) = self.queue.pop(self.ends_ns)?;
        let waited_ns = self.starts_ns - since;
        self.start(self.ends_ns);
        Some(Departed { packet, waited_ns })
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
        let mut link = Link::new(Service::constant(10_000_000), QueueLimit::Packets(84));
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
        let mut link = Link::new(Service::constant(1_000_000), QueueLimit::Bytes(3000));
        assert!(link.enqueue(0, P(1500)).is_ok());
        assert!(link.enqueue(0, P(1400)).is_ok());
        assert!(link.enqueue(0, P(101)).is_err());
        assert!(link.enqueue(0, P(100)).is_ok());
    }

    /// Rates from far below the arrival rate of the tests (24 Mbit/s) to far above it.
    fn rate_bps() -> impl Strategy<Value = u64> {
        (3.0..10.3f64).prop_map(|exponent| 10f64.powf(exponent) as u64)
    }

    proptest! {
        /// Against the definition: departure i = max(arrival i, departure i-1) + size / rate,
        /// with the rate exact over any busy period; nothing lost but at a full queue.
        #[test]
        fn serves_at_its_rate(
            rate in rate_bps(),
            limit in 1u32..20,
            arrivals in prop::collection::vec((0u64..3_000_000, 40u32..9000), 1..300),
        ) {
            let mut link = Link::new(Service::constant(rate), QueueLimit::Packets(limit));
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
                let held = link.queue.held_pkts();
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
