//! A queue of records, each with a time, that stores the times in half of their size.

use crate::{NEVER, Ring};
use std::collections::VecDeque;

/// Stands for a gap of 2^32 - 1 ns (4.3 s) or more, which `long_gaps_ns` holds.
const LONG: u32 = u32::MAX;

/// First in, first out; each record has a time, and times never decrease. A record's time is stored as the gap to
/// the record before it: 4 bytes instead of 8, where queues hold packets by the million.
#[derive(Clone, Debug)]
pub(crate) struct TimedRing<T> {
    /// Records, each with its gap in ns, or [`LONG`].
    held: Ring<(u32, T)>,
    long_gaps_ns: VecDeque<u64>,
    /// Time of the first record; [`NEVER`] if there is none.
    first_ns: u64,
    /// Time of the last record.
    last_ns: u64,
}

impl<T: Default> Default for TimedRing<T> {
    fn default() -> Self {
        let (held, long_gaps_ns) = (Ring::default(), VecDeque::new());
        Self { held, long_gaps_ns, first_ns: NEVER, last_ns: 0 }
    }
}

impl<T: Default> TimedRing<T> {
    /// Appends a record whose time is `time_ns`, not before the last one's.
    #[inline(always)]
    pub(crate) fn push_back(&mut self, time_ns: u64, record: T) {
        debug_assert!(time_ns >= self.last_ns, "{time_ns} ns after {} ns", self.last_ns);
        let gap_ns = if self.held.is_empty() {
            self.first_ns = time_ns;
            0
        } else {
            self.gap_ns(time_ns - self.last_ns)
        };
        self.last_ns = time_ns;
        self.held.push_back((gap_ns, record));
    }

    /// A gap as it is stored.
    #[inline(always)]
    fn gap_ns(&mut self, gap_ns: u64) -> u32 {
        if gap_ns >= LONG.into() {
            self.long_gaps_ns.push_back(gap_ns);
            return LONG;
        }
        gap_ns as u32
    }

    /// Takes the first record, and its time.
    #[inline(always)]
    pub(crate) fn pop_front(&mut self) -> Option<(u64, T)> {
        let (_, record) = self.held.pop_front()?;
        let time_ns = self.first_ns;
        self.first_ns = match self.held.front() {
            None => NEVER,
            Some((LONG, _)) => time_ns + self.long_gaps_ns.pop_front().unwrap_or(0),
            Some((gap_ns, _)) => time_ns + u64::from(*gap_ns),
        };
        Some((time_ns, record))
    }

    /// Time of the first record; [`NEVER`] if there is none.
    #[inline]
    pub(crate) fn first_ns(&self) -> u64 {
        self.first_ns
    }

    /// The first record.
    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.held.front().map(|(_, record)| record)
    }

    /// Number of records.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// All records, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.held.iter().map(|(_, record)| record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keeps_times_and_order(
            steps in prop::collection::vec(
                prop::option::weighted(0.6, prop_oneof![0..100u64, u64::from(LONG) - 2..u64::from(LONG) + 2]),
                1..300,
            ),
        ) {
            let (mut ring, mut model, mut now_ns) = (TimedRing::default(), VecDeque::new(), 0);
            for (record, step) in steps.into_iter().enumerate() {
                match step {
                    Some(gap_ns) => {
                        now_ns += gap_ns;
                        ring.push_back(now_ns, record);
                        model.push_back((now_ns, record));
                    }
                    None => prop_assert_eq!(ring.pop_front(), model.pop_front()),
                }
                prop_assert_eq!(ring.first_ns(), model.front().map_or(NEVER, |(time_ns, _)| *time_ns));
                prop_assert_eq!(ring.front(), model.front().map(|(_, record)| record));
                prop_assert_eq!(ring.len(), model.len());
                prop_assert!(ring.iter().eq(model.iter().map(|(_, record)| record)));
            }
        }
    }
}
