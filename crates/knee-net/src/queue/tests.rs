//! Properties of every discipline.

use super::*;
use crate::{Ecn, Link, NEVER, Service};
use knee_model::{CoDel, FqCoDel, Fred, Pie, Red, Thresholds};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct P {
    pub(super) flow: u32,
    pub(super) number: u32,
    pub(super) bytes: u32,
    pub(super) capable: bool,
    pub(super) marked: bool,
}

impl Packet for P {
    fn wire_bytes(&self) -> u32 {
        self.bytes
    }

    fn flow_key(&self) -> u32 {
        self.flow
    }

    fn ecn(&self) -> Ecn {
        match (self.marked, self.capable) {
            (true, _) => Ecn::Marked,
            (false, true) => Ecn::Capable,
            (false, false) => Ecn::NotCapable,
        }
    }

    fn mark(&mut self) {
        self.marked = true;
    }
}

/// The counts of an empty queue.
pub(super) fn taken(ecn: bool) -> Taken<P> {
    Taken { pkts: 0, bytes: 0, ecn, dropped: Ring::default() }
}

/// Every discipline, with parameters that make it act on short queues.
fn discipline() -> impl Strategy<Value = Discipline> {
    let packets =
        (1u32..6, 1u32..6).prop_map(|(min, more)| Thresholds::Packets { min, max: min + more });
    let bytes =
        (1u64..8000, 1u64..8000).prop_map(|(min, more)| Thresholds::Bytes { min, max: min + more });
    let weight = || prop_oneof![Just(0.002), 0.1..1.0f64, Just(1.0)];
    let red = (prop_oneof![packets, bytes], weight(), 0.01..1.0f64, any::<bool>()).prop_map(
        |(thresholds, weight, max_probability, gentle)| {
            Discipline::Red(Red { thresholds, weight, max_probability, gentle, ..Red::default() })
        },
    );
    let fred = (1u32..6, 1u32..6, weight(), 0.01..1.0f64, 1u32..5).prop_map(
        |(min_pkts, more, weight, max_probability, min_queue_pkts)| {
            Discipline::Fred(Fred {
                min_pkts,
                max_pkts: min_pkts + more,
                weight,
                max_probability,
                min_queue_pkts,
                ..Fred::default()
            })
        },
    );
    let codel = || {
        (0u64..5_000_000, 1u64..20_000_000)
            .prop_map(|(target_ns, interval_ns)| CoDel { target_ns, interval_ns })
    };
    let fq = (codel(), 1u32..4000, 1u32..5).prop_map(|(codel, quantum_bytes, queues)| {
        Discipline::FqCoDel(FqCoDel { codel, quantum_bytes, queues })
    });
    let pie = (1u64..5_000_000, 1u64..5_000_000, 0u64..5_000_000).prop_map(
        |(target_ns, update_ns, burst_ns)| {
            // Weights so large that it acts within the case.
            let (alpha_per_s, beta_per_s) = (100.0, 1000.0);
            let pie =
                Pie { target_ns, update_ns, burst_ns, alpha_per_s, beta_per_s, ..Pie::default() };
            Discipline::Pie(pie)
        },
    );
    prop_oneof![red, fred, codel().prop_map(Discipline::CoDel), fq, pie]
}

fn limit() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        (1u32..20).prop_map(QueueLimit::Packets),
        (1500u64..20_000).prop_map(QueueLimit::Bytes),
        (0u64..20_000).prop_map(QueueLimit::BytesAndOne)
    ]
}

/// Packets: time since the one before it, flow, size, whether it can be marked.
fn arrivals() -> impl Strategy<Value = Vec<(u64, u32, u32, bool)>> {
    let gap = prop_oneof![4 => 0u64..1_000_000, 1 => 0u64..100_000_000];
    prop::collection::vec((gap, 0u32..4, 40u32..1501, any::<bool>()), 1..300)
}

/// A link with its accounts.
struct Books {
    link: Link<P>,
    limit: QueueLimit,
    arrived: u32,
    dropped: Vec<P>,
    left: Vec<(u64, P, u64)>,
}

impl Books {
    /// After each event: the limit holds, all is accounted for, and the link is busy unless empty.
    fn check(&mut self) -> Result<(), TestCaseError> {
        let told = self.link.queue.dropped_pkts() as usize;
        let before = self.dropped.len();
        self.dropped.extend(std::iter::from_fn(|| self.link.queue.take_dropped()));
        prop_assert_eq!(self.dropped.len() - before, told);
        let held: Vec<P> = self.link.queue.iter().copied().collect();
        prop_assert_eq!(held.len(), self.link.queue.held_pkts() as usize);
        let bytes: u64 = held.iter().map(|p| u64::from(p.bytes)).sum();
        match self.limit {
            QueueLimit::Packets(limit) => prop_assert!(held.len() <= limit as usize),
            QueueLimit::Bytes(limit) => prop_assert!(bytes <= limit),
            QueueLimit::BytesAndOne(limit) => prop_assert!(bytes <= limit + 1500),
        }
        let accounted = self.dropped.len() + self.left.len() + held.len();
        prop_assert_eq!(self.arrived as usize, accounted);
        prop_assert_eq!(self.link.next_ns() == NEVER, held.is_empty());
        Ok(())
    }

    fn run_to(&mut self, until_ns: u64) -> Result<(), TestCaseError> {
        while self.link.next_ns() < until_ns {
            let now_ns = self.link.next_ns();
            let departed = self.link.dequeue(now_ns).expect("due");
            self.left.push((now_ns, departed.packet, departed.waited_ns));
            self.check()?;
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    /// In = out + dropped + held at every step, the limit is never exceeded, and the link works while it has
    /// packets. Each flow's packets leave in order. Packets are marked only if they are markable and marks
    /// are enabled.
    #[test]
    fn books_balance(
        discipline in discipline(),
        ecn in any::<bool>(),
        limit in limit(),
        rate_bps in 1_000_000u64..100_000_000,
        seed in any::<u64>(),
        arrivals in arrivals(),
    ) {
        let aqm = Aqm { discipline, ecn };
        let queue = Queue::managed(limit, &aqm, rate_bps, Random::stream(seed, "queue", 0));
        let link = Link::behind(queue, Service::constant(rate_bps));
        let mut books = Books { link, limit, arrived: 0, dropped: Vec::new(), left: Vec::new() };
        let mut now_ns = 0;
        let mut numbers = [0u32; 4];
        let mut came = BTreeMap::new();
        for (gap_ns, flow, bytes, capable) in arrivals {
            now_ns += gap_ns;
            books.run_to(now_ns + 1)?;
            let number = numbers[flow as usize];
            numbers[flow as usize] += 1;
            came.insert((flow, number), now_ns);
            books.arrived += 1;
            let packet = P { flow, number, bytes, capable, marked: false };
            if let Err(packet) = books.link.enqueue(now_ns, packet) {
                prop_assert_eq!((packet.flow, packet.number), (flow, number));
                prop_assert!(!packet.marked);
                books.dropped.push(packet);
            }
            books.check()?;
        }
        books.run_to(NEVER)?;
        prop_assert_eq!(books.link.queue.held_pkts(), 0);
        let mut next = [0; 4];
        for (at_ns, packet, waited_ns) in &books.left {
            let next = &mut next[packet.flow as usize];
            prop_assert!(packet.number >= *next, "{packet:?} was overtaken");
            *next = packet.number + 1;
            prop_assert!(!packet.marked || (packet.capable && ecn));
            prop_assert!(came[&(packet.flow, packet.number)] + waited_ns <= *at_ns);
        }
    }

    /// The same seed gives the same fates.
    #[test]
    fn fates_repeat(discipline in discipline(), seed in any::<u64>(), arrivals in arrivals()) {
        let aqm = Aqm { discipline, ecn: true };
        let fates = || {
            let mut link = Link::behind(Queue::managed(QueueLimit::Packets(20), &aqm, 10_000_000, Random::stream(seed, "queue", 0)), Service::constant(10_000_000));
            let (mut now_ns, mut fates) = (0, Vec::new());
            for (number, (gap_ns, flow, bytes, capable)) in arrivals.iter().enumerate() {
                now_ns += gap_ns;
                while link.next_ns() <= now_ns {
                    fates.push(link.dequeue(link.next_ns()).map(|d| d.packet));
                }
                let (flow, bytes, capable) = (*flow, *bytes, *capable);
                let packet = P { flow, number: number as u32, bytes, capable, marked: false };
                fates.push(link.enqueue(now_ns, packet).err());
                fates.extend(std::iter::from_fn(|| link.queue.take_dropped()).map(Some));
            }
            fates
        };
        prop_assert_eq!(fates(), fates());
    }
}

/// The effect of each discipline on a queue of 100 packets: two flows, offered at twice the rate of 12 Mbit/s
/// for 10 s, half of the packets markable. Each discipline has an effect.
#[test]
fn each_discipline_acts() {
    let fates = |discipline: Option<Discipline>, ecn| {
        let queue: Queue<P> = match discipline {
            None => Queue::drop_tail(QueueLimit::Packets(100)),
            Some(discipline) => Queue::managed(
                QueueLimit::Packets(100),
                &Aqm { discipline, ecn },
                12_000_000,
                Random::stream(1, "queue", 0),
            ),
        };
        let mut link = Link::behind(queue, Service::constant(12_000_000));
        let (mut dropped, mut marked, mut waited_ns) = (0u32, 0, 0);
        for number in 0..20_000u32 {
            let now_ns = u64::from(number) * 500_000;
            while link.next_ns() <= now_ns {
                let departed = link.dequeue(link.next_ns()).expect("due");
                marked += u32::from(departed.packet.marked);
                waited_ns = departed.waited_ns;
            }
            let (flow, capable) = (number % 2, number % 4 < 2);
            let packet = P { flow, number, bytes: 1500, capable, marked: false };
            dropped += u32::from(link.enqueue(now_ns, packet).is_err());
            dropped += std::iter::from_fn(|| link.queue.take_dropped()).count() as u32;
        }
        (dropped, marked, waited_ns / 1_000_000)
    };
    // 20 000 arrive and 10 000 leave, whatever is done.
    let (dropped, marked, waited_ms) = fates(None, true);
    assert!(dropped > 9800 && marked == 0 && waited_ms > 97, "{dropped} {waited_ms}");
    let pie = Discipline::Pie(Pie::default());
    for (discipline, most_ms) in [
        (Discipline::Red(Red::default()), 20),
        (Discipline::Fred(Fred::default()), 12),
        (pie, 40),
        // Against flows that never react CoDel drops ever faster, but not fast enough in 10 s.
        (Discipline::CoDel(CoDel::default()), 99),
        (Discipline::FqCoDel(FqCoDel::default()), 99),
    ] {
        let (dropped, marked, waited_ms) = fates(Some(discipline.clone()), false);
        assert!(dropped > 9800 && marked == 0, "{discipline:?}: {dropped}, {marked}");
        assert!(waited_ms <= most_ms, "{discipline:?}: {waited_ms} ms");
        let (_, marked, _) = fates(Some(discipline.clone()), true);
        // FRED keeps two greedy flows to their shares by force alone.
        let by_force = matches!(discipline, Discipline::Fred(_));
        assert!((marked == 0) == by_force, "{discipline:?}: {marked}");
    }
}
