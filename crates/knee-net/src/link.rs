//! A link behind a queue.

use crate::{
    NEVER, Packet, Queue, Ring, Service,
    queue::{Arrival, RedState, Verdict},
    runs::Runs,
};
use knee_model::{QueueLimit, Random, Red};

/// A packet that left a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departed<P> {
    /// The packet.
    pub packet: P,
    /// How long it waited for its transmission to start.
    pub waited_ns: u64,
}

/// Says of packets when they will have left a link, as soon as the link has taken them: where none is
/// dropped any more, and each waits for those before it only.
#[derive(Clone, Debug)]
struct Forecast {
    service: Service,
    /// When the last of them will have left.
    free_ns: u64,
}

impl Forecast {
    /// Of a link with this service that has taken nothing yet.
    fn new(service: Service) -> Self {
        Self { service, free_ns: 0 }
    }

    /// When the transmission of a packet of `bytes` starts and ends that the link takes at `now_ns`; `idle`:
    /// it holds no other. Both are [`NEVER`] if it does not end.
    #[inline(always)]
    fn transmission_ns(&mut self, now_ns: u64, idle: bool, bytes: u32) -> (u64, u64) {
        let turns_ns = if idle {
            self.service.rest();
            now_ns
        } else {
            self.free_ns
        };
        let (starts_ns, ends_ns) = self.service.transmit(turns_ns, bytes);
        self.free_ns = ends_ns;
        (starts_ns, ends_ns)
    }
}

/// A queue and its link, which say of a packet when it will have left as soon as they have taken it: drop-tail,
/// or RED where it drops. They hold no packets: those are on their way from the start. Nor do they hold
/// times: when the first packet leaves is worked out again from its size.
#[derive(Clone, Debug)]
pub struct Timetable {
    /// Of the packet that was taken last.
    taken: Forecast,
    /// Of the first one held.
    leaves: Forecast,
    limit: QueueLimit,
    /// While fewer are held neither the limit nor RED need be asked.
    sure_pkts: u32,
    held_pkts: u32,
    held_bytes: u64,
    /// The sizes of the packets, in order.
    sizes: Runs,
    /// How long each of them waits, if that is to be known.
    waits_ns: Option<Ring<u64>>,
    red: Option<Box<RedState>>,
}

impl Timetable {
    /// Of an idle link with this service; `keeps_waits`: [`Self::leave`] says how long a packet waited.
    pub fn new(service: Service, limit: QueueLimit, keeps_waits: bool) -> Self {
        Self {
            taken: Forecast::new(service.clone()),
            leaves: Forecast::new(service),
            limit,
            sure_pkts: if let QueueLimit::Packets(limit) = limit { limit } else { 0 },
            held_pkts: 0,
            held_bytes: 0,
            sizes: Runs::default(),
            waits_ns: keeps_waits.then(Ring::default),
            red: None,
        }
    }

    /// The same with RED, which drops what it would mark, before a link of `rate_bps` bit/s on average.
    pub fn with_red(self, red: &Red, rate_bps: u64, random: Random) -> Self {
        let red = Some(Box::new(RedState::new(red, rate_bps, random)));
        Self { red, sure_pkts: 0, ..self }
    }

    /// Offers a packet of `bytes`; when it will have left ([`NEVER`]: it never will), or nothing if it is
    /// dropped. What leaves before has been taken out.
    #[inline(always)]
    pub fn enqueue(&mut self, now_ns: u64, bytes: u32) -> Option<u64> {
        let (held_pkts, held_bytes) = (self.held_pkts as usize, self.held_bytes);
        if self.held_pkts >= self.sure_pkts {
            let takes = match self.red {
                None => self.limit.takes(held_pkts, held_bytes, bytes.into()),
                Some(_) => self.takes_early(now_ns, bytes),
            };
            if !takes {
                return None;
            }
        }
        let (starts_ns, departs_ns) = match self.held_pkts {
            0 => self.start(now_ns, bytes),
            _ => self.taken.transmission_ns(now_ns, false, bytes),
        };
        self.sizes.push(bytes);
        self.held_pkts += 1;
        self.held_bytes += u64::from(bytes);
        if let Some(waits_ns) = &mut self.waits_ns {
            waits_ns.push_back(starts_ns - now_ns);
        }
        Some(departs_ns)
    }

    /// Whether RED and the limit let a packet of `bytes` join.
    #[inline(never)]
    fn takes_early(&mut self, now_ns: u64, bytes: u32) -> bool {
        let (held_pkts, held_bytes) = (self.held_pkts, self.held_bytes);
        if let Some(red) = &mut self.red {
            let arrival = Arrival { now_ns, held_pkts, held_bytes, bytes, flow_key: 0 };
            if red.arrive(&arrival) != Verdict::Accept {
                return false;
            }
        }
        self.limit.takes(held_pkts as usize, held_bytes, bytes.into())
    }

    /// The link was idle: when the transmission of the packet that it takes starts and ends.
    #[inline(never)]
    fn start(&mut self, now_ns: u64, bytes: u32) -> (u64, u64) {
        self.leaves.transmission_ns(now_ns, true, bytes);
        self.taken.transmission_ns(now_ns, true, bytes)
    }

    /// When the first packet leaves; [`NEVER`] if there is none, or it never does.
    #[inline(always)]
    pub fn next_ns(&self) -> u64 {
        if self.held_pkts == 0 { NEVER } else { self.leaves.free_ns }
    }

    /// The first packet leaves: its size, how long it waited for its transmission to start (0 if that
    /// is not kept), and when the next one leaves, as [`Self::next_ns`] says.
    #[inline(always)]
    pub fn leave(&mut self) -> Option<(u32, u64, u64)> {
        let bytes = self.sizes.take()?;
        self.held_pkts -= 1;
        self.held_bytes -= u64::from(bytes);
        let next_ns = match self.sizes.front() {
            Some(next_bytes) => self.leaves.transmission_ns(0, false, next_bytes).1,
            None => {
                if self.red.is_some() {
                    self.come_to_rest();
                }
                NEVER
            }
        };
        let waited_ns = self.waits_ns.as_mut().and_then(Ring::take_front);
        Some((bytes, waited_ns.unwrap_or(0), next_ns))
    }

    /// The last packet has left.
    #[inline(never)]
    fn come_to_rest(&mut self) {
        if let Some(red) = &mut self.red {
            red.idle(self.leaves.free_ns);
        }
    }

    /// Packets held, the one in transmission included.
    #[inline]
    pub fn held_pkts(&self) -> u32 {
        self.held_pkts
    }
}

/// Transmits queued packets one after the other.
#[derive(Clone, Debug)]
pub struct Link<P> {
    service: Service,
    queue: Queue<P>,
    /// When the transmission of the head starts and ends.
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

    /// When the packet in transmission will have left; [`NEVER`] if there is none, or it never will.
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

    /// Packets held, the one in transmission included.
    #[inline]
    pub fn held_pkts(&self) -> u32 {
        self.queue.held_pkts()
    }

    /// A packet that the queue dropped after it had taken it, since this was last asked; each is given
    /// once, in the order of their dropping. It happens when a packet is offered or has left.
    #[inline]
    pub fn take_dropped(&mut self) -> Option<P> {
        self.queue.take_dropped()
    }

    /// How many packets [`Self::take_dropped`] has to give.
    #[inline]
    pub fn dropped_pkts(&self) -> u32 {
        self.queue.dropped_pkts()
    }

    /// The packet in transmission.
    #[inline]
    pub fn sending(&self) -> Option<&P> {
        self.queue.sending()
    }

    /// Packets held, the one in transmission first, then those of each flow in order.
    pub fn iter(&self) -> impl Iterator<Item = &P> {
        self.queue.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_model::{Aqm, Discipline};
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

    /// From much less than what arrives in the tests, 24 Mbit/s, to much more.
    fn rate_bps() -> impl Strategy<Value = u64> {
        (3.0..10.3f64).prop_map(|exponent| 10f64.powf(exponent) as u64)
    }

    fn or_nothing(rate_bps: impl Strategy<Value = u64>) -> impl Strategy<Value = u64> {
        prop::option::of(rate_bps).prop_map(Option::unwrap_or_default)
    }

    proptest! {
        /// A forecast says when each packet leaves, whatever the service does; a timetable also takes the
        /// same packets, with RED too, and knows how long each waits.
        #[test]
        fn the_forecast_comes_true(
            steps in prop::collection::vec((0u64..3_000_000, or_nothing(rate_bps())), 0..5),
            rate in rate_bps(),
            arrivals in prop::collection::vec((0u64..3_000_000, 40u32..9000), 1..300),
            early in prop::bool::ANY,
        ) {
            let mut from_ns = 0;
            let steps = steps.iter().map(|(gap, bps)| { from_ns += gap; (from_ns, *bps) });
            let varying = knee_model::Varying::Steps(steps.collect());
            let service = Service::of(&knee_model::Rate { bps: rate, varying: Some(&varying) });
            let limit = QueueLimit::Packets(20);
            let mut forecast = Forecast::new(service.clone());
            let mut link = Link::new(service.clone(), limit);
            let mut timetable = Timetable::new(service.clone(), limit, true);
            if early {
                let red = Red { weight: 0.2, max_probability: 0.3, ..Red::default() };
                let aqm = Aqm { discipline: Discipline::Red(red), ecn: false };
                let random = || Random::stream(1, "queue", 0);
                link = Link::behind(Queue::managed(limit, &aqm, rate, random()), service);
                timetable = timetable.with_red(&red, rate, random());
            }
            let (mut now, mut foretold, mut out) = (0, Vec::new(), Vec::new());
            let leave = |link: &mut Link<P>, timetable: &mut Timetable| {
                let at_ns = link.next_ns();
                assert_eq!(timetable.next_ns(), at_ns);
                let Departed { packet, waited_ns } = link.dequeue(at_ns).expect("due");
                let left = timetable.leave();
                assert_eq!(left, Some((packet.0, waited_ns, link.next_ns())));
                at_ns
            };
            for (gap, bytes) in arrivals {
                now += gap;
                while link.next_ns() <= now {
                    out.push(leave(&mut link, &mut timetable));
                }
                let departs_ns = timetable.enqueue(now, bytes);
                prop_assert_eq!(link.enqueue(now, P(bytes)).is_ok(), departs_ns.is_some());
                prop_assert_eq!(link.held_pkts(), timetable.held_pkts());
                if let Some(departs_ns) = departs_ns {
                    let idle = link.held_pkts() == 1;
                    let (_, ends_ns) = forecast.transmission_ns(now, idle, bytes);
                    prop_assert_eq!(ends_ns, departs_ns);
                    foretold.push(ends_ns);
                }
            }
            while link.next_ns() != NEVER {
                out.push(leave(&mut link, &mut timetable));
            }
            prop_assert_eq!(&foretold[..out.len()], &out[..]);
            prop_assert!(foretold[out.len()..].iter().all(|at_ns| *at_ns == NEVER));
        }

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
