//! TCP receiver: reassembly, SACK blocks, delayed acknowledgements.

use crate::packet::{NO_BLOCKS, NONE, SackBlocks};
use knee_model::{DelayedAck, ReceiverConduct, TcpOptions, Transfer, Unfinished};
use knee_net::{Ecn, NEVER};
use std::collections::VecDeque;

/// The receiver's reaction to an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Acknowledge at once; the segment number if it had arrived before, else [`NONE`].
    Now { duplicate: u32 },
    /// Wait for the next segment or the timer.
    Later,
}

pub(crate) struct Receiver {
    /// First segment not received in order: the number of a cumulative ACK.
    pub(crate) next: u32,
    mss_bytes: u32,
    delayed: DelayedAck,
    /// Acknowledges missing segments too.
    conceals_loss: bool,
    /// Segments below this number are acknowledged each.
    quick_pkts: u32,
    /// ACKs echo a congestion mark: one has arrived, and the sender has not yet confirmed its reduction (CWR).
    pub(crate) echo: bool,
    /// In-order segments not acknowledged yet.
    pending_pkts: u32,
    pub(crate) delack_due_ns: u64,
    /// Segments received out of order: `[start, end)`, ascending, not touching.
    ranges: Vec<(u32, u32)>,
    /// A segment of each of the ranges that changed last, latest first.
    recent: [u32; 3],
    /// The segments in `recent` that still are ranges are the highest ones, the highest first. This holds as
    /// long as the arrivals are new to the sender; if false, [`Self::blocks`] finds out.
    recent_are_highest: bool,
    /// Transfers, if the application writes transfers that end.
    transfers: Option<Box<Transfers>>,
    pub(crate) delivered_bytes: u64,
    pub(crate) delivered_pkts: u64,
    pub(crate) duplicate_pkts: u64,
}

/// The transfers of the application, and how much of each has arrived.
#[derive(Default)]
struct Transfers {
    /// Segments shorter than an MSS that lie ahead, and how many bytes each lacks.
    short: VecDeque<(u32, u32)>,
    /// Transfers under way: last segment + 1, start, size.
    under_way: VecDeque<(u32, u64, u64)>,
    completed: Vec<Transfer>,
}

impl Transfers {
    /// Notes that everything before segment `end` has arrived; returns how many bytes its short segments
    /// lack.
    fn deliver_to(&mut self, now_ns: u64, end: u32) -> u64 {
        let mut lacks_bytes = 0;
        while let Some(&(_, lacks)) = self.short.front().filter(|(number, _)| *number < end) {
            self.short.pop_front();
            lacks_bytes += u64::from(lacks);
        }
        while let Some(&(_, start_ns, bytes)) =
            self.under_way.front().filter(|(last, ..)| *last <= end)
        {
            self.under_way.pop_front();
            self.completed.push(Transfer { start_ns, end_ns: now_ns, bytes });
        }
        lacks_bytes
    }
}

impl Receiver {
    pub(crate) fn new(options: &TcpOptions) -> Self {
        Self {
            next: 0,
            mss_bytes: options.mss_bytes,
            delayed: options.delayed_ack,
            conceals_loss: options.receiver == ReceiverConduct::ConcealsLoss,
            quick_pkts: options.quick_ack_pkts,
            echo: false,
            pending_pkts: 0,
            delack_due_ns: NEVER,
            ranges: Vec::new(),
            recent: [NONE; 3],
            recent_are_highest: true,
            transfers: None,
            delivered_bytes: 0,
            delivered_pkts: 0,
            duplicate_pkts: 0,
        }
    }

    /// Expects a transfer that ends before segment `end`, whose last segment lacks `short_bytes`.
    pub(crate) fn expect(&mut self, end: u32, short_bytes: u32, start_ns: u64, size_bytes: u64) {
        let transfers = self.transfers.get_or_insert_default();
        if short_bytes > 0 {
            transfers.short.push_back((end - 1, short_bytes));
        }
        transfers.under_way.push_back((end, start_ns, size_bytes));
    }

    /// Transfers that are not complete yet.
    pub(crate) fn unfinished(&self) -> Vec<Unfinished> {
        let transfers = self.transfers.iter().flat_map(|transfers| &transfers.under_way);
        transfers.map(|&(_, start_ns, bytes)| Unfinished { start_ns, bytes }).collect()
    }

    /// Transfers that are complete.
    pub(crate) fn take_completed(&mut self) -> Vec<Transfer> {
        let completed = |transfers: &mut Box<Transfers>| std::mem::take(&mut transfers.completed);
        self.transfers.as_mut().map(completed).unwrap_or_default()
    }

    /// Notes the congestion mark and CWR of an arriving segment (RFC 3168 section 6.1.3); called before
    /// [`Self::arrive`]. A segment that begins or ends an echo is acknowledged at once. The first mark does
    /// the same for the next segment, as in Linux.
    pub(crate) fn heed(&mut self, number: u32, ecn: Ecn, cwr: bool) {
        if cwr {
            self.echo = false;
            self.quick_pkts = self.quick_pkts.max(number + 1);
        }
        if ecn == Ecn::Marked {
            if !self.echo {
                self.quick_pkts = self.quick_pkts.max(number + 2);
            }
            self.echo = true;
        }
    }

    /// A segment arrives.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, now_ns: u64, number: u32) -> Reply {
        if number == self.next && self.ranges.is_empty() {
            self.delivered_pkts += 1;
            self.deliver_to(now_ns, number + 1);
            if self.delayed.every_pkts <= 1 {
                return Reply::Now { duplicate: NONE };
            }
            self.pending_pkts += 1;
            if self.pending_pkts >= self.delayed.every_pkts || number < self.quick_pkts {
                return Reply::Now { duplicate: NONE };
            }
            if self.delack_due_ns == NEVER {
                self.delack_due_ns = now_ns + self.delayed.timeout_ns;
            }
            return Reply::Later;
        }
        self.arrive_out_of_order(now_ns, number)
    }

    /// RFC 5681 section 4.2: out-of-order arrivals and fills of a hole are acknowledged at once.
    #[inline(never)]
    fn arrive_out_of_order(&mut self, now_ns: u64, number: u32) -> Reply {
        if self.conceals_loss && number > self.next {
            self.skip_to(number);
            return self.arrive(now_ns, number);
        }
        if number < self.next || !self.insert(number) {
            self.duplicate_pkts += 1;
            return Reply::Now { duplicate: number };
        }
        self.delivered_pkts += 1;
        if self.ranges[0].0 == self.next {
            let end = self.ranges.remove(0).1;
            self.deliver_to(now_ns, end);
        }
        Reply::Now { duplicate: NONE }
    }

    /// Gives up the missing segments before segment `number`.
    fn skip_to(&mut self, number: u32) {
        if let Some(transfers) = &mut self.transfers {
            while transfers.short.front().is_some_and(|(short, _)| *short < number) {
                transfers.short.pop_front();
            }
        }
        self.next = number;
    }

    /// Hands everything before `end` to the application.
    #[inline(always)]
    fn deliver_to(&mut self, now_ns: u64, end: u32) {
        self.delivered_bytes += u64::from(end - self.next) * u64::from(self.mss_bytes);
        self.next = end;
        if let Some(transfers) = &mut self.transfers {
            self.delivered_bytes -= transfers.deliver_to(now_ns, end);
        }
    }

    /// Puts an out-of-order segment into its range; false if it was there.
    fn insert(&mut self, number: u32) -> bool {
        match self.ranges.last_mut() {
            Some(last) if number < last.1 => {
                if !self.insert_within(number) {
                    return false;
                }
            }
            Some(last) if last.1 == number => last.1 = number + 1,
            _ => self.ranges.push((number, number + 1)),
        }
        self.recent = [number, self.recent[0], self.recent[1]];
        true
    }

    /// Inserts a segment before the end of the highest range.
    fn insert_within(&mut self, number: u32) -> bool {
        // The first range that ends at or after the segment is the only one it can touch from below.
        let at = self.ranges.partition_point(|&(_, end)| end < number);
        let (start, end) = self.ranges[at];
        if start <= number && number < end {
            return false;
        }
        if end == number {
            self.ranges[at].1 = number + 1;
            if self.ranges.get(at + 1).is_some_and(|r| r.0 == number + 1) {
                self.ranges[at].1 = self.ranges.remove(at + 1).1;
            }
        } else if start == number + 1 {
            self.ranges[at].0 = number;
        } else {
            self.ranges.insert(at, (number, number + 1));
        }
        // A range that begins with the next missing segment is about to be delivered, and ceases to be a
        // range.
        let is_delivered = self.ranges[at].0 == self.next;
        self.recent_are_highest &= is_delivered || at + 1 == self.ranges.len();
        true
    }

    /// Returns whether everything before the highest arrival has arrived.
    #[inline(always)]
    pub(crate) fn misses_nothing(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The SACK blocks to report now.
    #[inline(never)]
    pub(crate) fn blocks(&mut self) -> SackBlocks {
        let mut highest = NO_BLOCKS;
        match self.ranges.last_chunk() {
            Some(&[third, second, first]) => highest = [first, second, third],
            None => {
                let highest_first = self.ranges.iter().rev();
                highest.iter_mut().zip(highest_first).for_each(|(block, range)| *block = *range);
            }
        }
        if self.recent_are_highest {
            return highest;
        }
        let blocks = self.latest_blocks();
        self.recent_are_highest = blocks == highest;
        blocks
    }

    /// The blocks, wherever the latest arrivals were.
    #[inline(never)]
    fn latest_blocks(&self) -> SackBlocks {
        let mut blocks = NO_BLOCKS;
        let mut used = 0;
        for number in self.recent {
            let at = self.ranges.partition_point(|&(_, end)| end <= number);
            let Some(&range) = self.ranges.get(at).filter(|r| number != NONE && r.0 <= number)
            else {
                continue;
            };
            if !blocks[..used].contains(&range) {
                blocks[used] = range;
                used += 1;
            }
        }
        // A range that lies further back fills a free place: the reports then survive lost ACKs.
        for &range in self.ranges.iter().rev() {
            if used == blocks.len() {
                break;
            }
            if !blocks[..used].contains(&range) {
                blocks[used] = range;
                used += 1;
            }
        }
        blocks
    }

    /// An acknowledgement has been sent.
    #[inline]
    pub(crate) fn acknowledged(&mut self) {
        if self.delayed.every_pkts > 1 {
            self.pending_pkts = 0;
            self.delack_due_ns = NEVER;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn receiver(mss_bytes: u32, every_pkts: u32, quick_ack_pkts: u32) -> Receiver {
        let delayed_ack = DelayedAck { every_pkts, timeout_ns: 40 };
        Receiver::new(&TcpOptions {
            mss_bytes,
            delayed_ack,
            quick_ack_pkts,
            ..TcpOptions::default()
        })
    }

    #[test]
    fn losses_are_concealed() {
        let receiver = ReceiverConduct::ConcealsLoss;
        let mut r =
            Receiver::new(&TcpOptions { mss_bytes: 1000, receiver, ..TcpOptions::default() });
        r.expect(2, 400, 0, 1600);
        for (number, next, bytes) in [(0, 1, 1000), (3, 4, 2000), (4, 5, 3000)] {
            assert_eq!(r.arrive(0, number), Reply::Now { duplicate: NONE });
            assert_eq!((r.next, r.blocks(), r.delivered_bytes), (next, NO_BLOCKS, bytes));
        }
        // A concealed segment that arrives late counts as a duplicate.
        assert_eq!(r.arrive(0, 2), Reply::Now { duplicate: 2 });
        assert_eq!((r.next, r.delivered_pkts, r.duplicate_pkts), (5, 3, 1));
        assert_eq!(r.take_completed().len(), 1);
    }

    #[test]
    fn the_first_packets_are_acknowledged_each() {
        let mut r = receiver(1000, 2, 3);
        let replies: Vec<bool> = (0..7)
            .map(|number| {
                let now = r.arrive(0, number) != Reply::Later;
                if now {
                    r.acknowledged();
                }
                now
            })
            .collect();
        assert_eq!(replies, [true, true, true, false, true, false, true]);
    }

    #[test]
    fn delayed_acks_wait_for_the_second_segment_or_a_hole() {
        let mut r = receiver(1000, 2, 0);
        assert_eq!(r.arrive(5, 0), Reply::Later);
        assert_eq!(r.delack_due_ns, 45);
        assert_eq!(r.arrive(6, 1), Reply::Now { duplicate: NONE });
        r.acknowledged();
        assert_eq!(r.delack_due_ns, NEVER);
        assert_eq!(r.arrive(7, 3), Reply::Now { duplicate: NONE });
        assert_eq!(r.blocks()[0], (3, 4));
        assert_eq!(r.arrive(8, 2), Reply::Now { duplicate: NONE });
        assert_eq!((r.next, r.blocks()), (4, NO_BLOCKS));
    }

    #[test]
    fn marks_are_echoed_until_they_are_heeded() {
        let mut r = receiver(1000, 2, 0);
        let (capable, marked) = (Ecn::Capable, Ecn::Marked);
        let fates = [
            (capable, false), // waits
            (marked, false),  // begins the echo: at once, and so is the next
            (capable, false),
            (capable, false), // waits
            (marked, false),  // the second since an ACK
            (capable, true),  // heeded: at once
            (capable, false), // waits
            (marked, true),   // heeded, and marked again
        ];
        let seen: Vec<_> = (0..)
            .zip(fates)
            .map(|(number, (ecn, cwr))| {
                r.heed(number, ecn, cwr);
                let now = r.arrive(0, number) != Reply::Later;
                if now {
                    r.acknowledged();
                }
                (now, r.echo)
            })
            .collect();
        let (at_once, echo) = (true, true);
        assert_eq!(
            seen,
            [
                (!at_once, !echo),
                (at_once, echo),
                (at_once, echo),
                (!at_once, echo),
                (at_once, echo),
                (at_once, !echo),
                (!at_once, !echo),
                (at_once, echo),
            ]
        );
    }

    #[test]
    fn latest_range_is_reported_first() {
        let mut r = receiver(1000, 1, 0);
        for n in [2, 4, 6, 8, 5] {
            r.arrive(0, n);
        }
        assert_eq!(r.blocks(), [(4, 7), (8, 9), (2, 3)]);
    }

    #[test]
    fn transfer_with_a_short_tail() {
        let mut r = receiver(1000, 1, 0);
        r.expect(3, 400, 10, 2600);
        for (t, n) in [(20, 0), (30, 2), (40, 1)] {
            r.arrive(t, n);
        }
        assert_eq!(r.delivered_bytes, 2600);
        assert_eq!(r.take_completed(), [Transfer { start_ns: 10, end_ns: 40, bytes: 2600 }]);
    }

    proptest! {
        /// Against a set: whatever order and duplication, each segment is delivered in order
        /// exactly once, and the blocks are ranges of the set, the latest arrival's first.
        #[test]
        fn reassembles(numbers in prop::collection::vec(0u32..40, 1..200)) {
            let mut r = receiver(10, 1, 0);
            let mut have = std::collections::BTreeSet::new();
            for &n in &numbers {
                let new = have.insert(n);
                let reply = r.arrive(0, n);
                prop_assert_eq!(reply, Reply::Now { duplicate: if new { NONE } else { n } });
                let in_order = (0..).take_while(|i| have.contains(i)).count() as u32;
                prop_assert_eq!(r.next, in_order);
                prop_assert_eq!(r.delivered_bytes, u64::from(in_order) * 10);
                prop_assert_eq!(r.delivered_pkts, have.len() as u64);
                let blocks: Vec<_> = r.blocks().into_iter().filter(|b| b.1 > 0).collect();
                for (start, end) in &blocks {
                    prop_assert!(*start > in_order && (*start..*end).all(|i| have.contains(&i)));
                    prop_assert!(!have.contains(&(start - 1)) && !have.contains(end));
                }
                prop_assert_eq!(blocks.is_empty(), have.len() as u32 == in_order);
                prop_assert_eq!(r.blocks(), r.latest_blocks());
                if new && n >= in_order {
                    prop_assert!(blocks[0].0 <= n && n < blocks[0].1);
                }
            }
        }
    }
}
