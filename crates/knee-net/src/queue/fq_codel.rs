//! Fair queues with CoDel (Hoeiland-Joergensen et al.: RFC 8290).
//!
//! Flows are hashed into queues, each managed by CoDel and served by deficit round robin in bytes; queues
//! that have just become active come first. A full buffer drops from the head of the queue that holds the
//! most bytes. The hash covers the flow's key and a draw from the run's seed: collisions of flows differ
//! between repetitions, as they do between boots of a machine.

use super::{codel, fifo::Fifo, judgement::Taken};
use crate::{Packet, Ring};
use knee_model::{FqCoDel, Random};
use std::cmp::Reverse;

/// The list that a queue is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    None,
    New,
    Old,
}

#[derive(Clone, Debug)]
struct Lane<P> {
    fifo: Fifo<P>,
    codel: codel::State,
    deficit_bytes: i64,
    list: List,
}

#[derive(Clone, Debug)]
pub(super) struct State<P> {
    quantum_bytes: i64,
    lanes: Vec<Lane<P>>,
    new: Ring<u32>,
    old: Ring<u32>,
    hash_key: u64,
}

impl<P: Packet> State<P> {
    pub(super) fn new(fq: &FqCoDel, mut random: Random) -> Self {
        let lane = Lane {
            fifo: Fifo::default(),
            codel: codel::State::new(&fq.codel),
            deficit_bytes: 0,
            list: List::None,
        };
        let lanes = (0..fq.queues.max(1))
            .map(|_| Lane { fifo: Fifo::default(), codel: lane.codel.clone(), ..lane })
            .collect();
        Self {
            quantum_bytes: i64::from(fq.quantum_bytes.max(1)),
            lanes,
            new: Ring::default(),
            old: Ring::default(),
            hash_key: random.bits64(),
        }
    }

    /// The queue of a flow: the key is mixed as SplitMix64 mixes its state, then scaled.
    fn lane_of(&self, flow_key: u32) -> usize {
        let mut mix = self.hash_key ^ u64::from(flow_key);
        mix = (mix ^ (mix >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mix = (mix ^ (mix >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mix ^= mix >> 31;
        ((u128::from(mix) * self.lanes.len() as u128) >> 64) as usize
    }

    pub(super) fn push(&mut self, now_ns: u64, packet: P) {
        let index = self.lane_of(packet.flow_key());
        let lane = &mut self.lanes[index];
        lane.fifo.push(now_ns, packet);
        if lane.list == List::None {
            lane.list = List::New;
            lane.deficit_bytes = self.quantum_bytes;
            self.new.push_back(index as u32);
        }
    }

    /// Drops the first packet of the queue that would hold the most bytes with `arriving` in its
    /// own (section 4.1). False if that is `arriving` itself.
    pub(super) fn make_room(&mut self, arriving: &P, taken: &mut Taken<P>) -> bool {
        let own = self.lane_of(arriving.flow_key());
        let bytes = |index: usize| {
            let arriving = if index == own { u64::from(arriving.wire_bytes()) } else { 0 };
            self.lanes[index].fifo.bytes() + arriving
        };
        let active = self.new.iter().chain(self.old.iter()).map(|index| *index as usize);
        // Among equal queues, the one with the lowest number.
        let fattest = active.chain([own]).max_by_key(|index| (bytes(*index), Reverse(*index)));
        let Some((_, packet)) = fattest.and_then(|index| self.lanes[index].fifo.pop()) else {
            return false;
        };
        taken.drop(packet);
        true
    }

    /// Section 4.2: the packet to be transmitted next.
    #[inline(always)]
    pub(super) fn next(&mut self, now_ns: u64, taken: &mut Taken<P>) -> Option<(u64, P)> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let lane = &mut self.lanes[index as usize];
            if lane.deficit_bytes <= 0 {
                lane.deficit_bytes += self.quantum_bytes;
                lane.list = List::Old;
                list.take_front();
                self.old.push_back(index);
                continue;
            }
            if let Some((since_ns, packet)) = lane.codel.next(now_ns, &mut lane.fifo, taken) {
                lane.deficit_bytes -= i64::from(packet.wire_bytes());
                return Some((since_ns, packet));
            }
            list.take_front();
            // A queue that was new is served after all others once more, lest it stays new for ever
            // by being empty in between.
            if is_new {
                lane.list = List::Old;
                self.old.push_back(index);
            } else {
                lane.list = List::None;
            }
        }
    }

    /// Waiting packets; those of one flow in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &P> {
        self.lanes.iter().flat_map(|lane| lane.fifo.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{P, taken};
    use super::*;

    fn fq(queues: u32) -> State<P> {
        State::new(&FqCoDel { queues, ..FqCoDel::default() }, Random::stream(1, "queue", 0))
    }

    fn packet(flow: u32, number: u32, bytes: u32) -> P {
        P { flow, number, bytes, ..P::default() }
    }

    fn put(fq: &mut State<P>, taken: &mut Taken<P>, packet: P) {
        taken.pkts += 1;
        taken.bytes += u64::from(packet.bytes);
        fq.push(0, packet);
    }

    fn sent(fq: &mut State<P>, taken: &mut Taken<P>, n: usize) -> Vec<(u32, u32)> {
        let mut next = || fq.next(0, taken).map(|(_, p)| (p.flow, p.number));
        (0..n).map_while(|_| next()).collect()
    }

    /// Two flows in turn; a third that comes later is new, so it is before them.
    #[test]
    fn turns_by_hand() {
        let (mut fq, mut taken) = (fq(1024), taken(false));
        for number in 0..3 {
            put(&mut fq, &mut taken, packet(1, number, 1500));
            put(&mut fq, &mut taken, packet(2, number, 1500));
        }
        // 1514 - 1500 = 14 is left of each quantum: a second packet each, then the others' turn.
        assert_eq!(sent(&mut fq, &mut taken, 3), [(1, 0), (1, 1), (2, 0)]);
        put(&mut fq, &mut taken, packet(3, 0, 100));
        assert_eq!(sent(&mut fq, &mut taken, 9), [(2, 1), (3, 0), (1, 2), (2, 2)]);
        assert_eq!(fq.lanes.iter().filter(|l| l.list != List::None).count(), 0);
    }

    /// Section 4.1: the packet that arrives is not the one that is dropped.
    #[test]
    fn the_fattest_queue_gives_way_from_its_head() {
        let (mut fq, mut taken) = (fq(1024), taken(false));
        for number in 0..3 {
            put(&mut fq, &mut taken, packet(1, number, 1000));
        }
        put(&mut fq, &mut taken, packet(2, 0, 1500));
        assert!(fq.make_room(&packet(2, 1, 1400), &mut taken));
        assert_eq!(taken.dropped.pop_front().map(|p| (p.flow, p.number)), Some((1, 0)));
        assert!(fq.make_room(&packet(2, 1, 1400), &mut taken));
        assert_eq!(taken.dropped.pop_front().map(|p| (p.flow, p.number)), Some((2, 0)));
        // Now 2000 against the packet alone.
        assert!(!fq.make_room(&packet(3, 0, 2001), &mut taken));
        assert_eq!((taken.pkts, taken.bytes), (2, 2000));
    }

    #[test]
    fn flows_spread_over_the_queues() {
        let fq = fq(64);
        let mut hits = [0; 64];
        (0..6400).for_each(|flow| hits[fq.lane_of(flow)] += 1);
        assert!(hits.iter().all(|n| (60..145).contains(n)), "{hits:?}");
        let other = State::<P>::new(&FqCoDel::default(), Random::stream(2, "queue", 0));
        assert!((0..64).any(|flow| other.lane_of(flow) / 16 != fq.lane_of(flow)));
    }
}
