//! Records in the order of their times.

use crate::{NEVER, Ring};
use std::collections::VecDeque;

/// First in, first out, each record with its time, none before the one in front of it. Of a time only the
/// distance from the one before is kept, in 4 bytes: there may be a record for each packet in flight.
#[derive(Clone, Debug)]
pub struct Timeline<T> {
    records: Ring<(u32, T)>,
    /// Time of the first record; [`NEVER`] if there is none.
    first_ns: u64,
    last_ns: u64,
    /// Times of the records that are [`FAR`] from the one before them.
    far_ns: VecDeque<u64>,
}

/// A distance that 4 bytes do not hold: 4.3 s.
const FAR: u32 = u32::MAX;

impl<T: Default> Default for Timeline<T> {
    fn default() -> Self {
        Self { records: Ring::default(), first_ns: NEVER, last_ns: 0, far_ns: VecDeque::new() }
    }
}

impl<T: Copy + Default> Timeline<T> {
    /// Appends a record whose time is not before that of the last one.
    #[inline(always)]
    pub fn push(&mut self, at_ns: u64, record: T) {
        debug_assert!(self.records.is_empty() || at_ns >= self.last_ns);
        let mut gap_ns = 0;
        if self.records.is_empty() {
            self.first_ns = at_ns;
        } else {
            gap_ns = (at_ns - self.last_ns).min(FAR.into()) as u32;
            if gap_ns == FAR {
                self.far_ns.push_back(at_ns);
            }
        }
        self.last_ns = at_ns;
        self.records.push_back((gap_ns, record));
    }

    /// The first record and its time, taken out.
    #[inline(always)]
    pub fn take(&mut self) -> Option<(u64, T)> {
        let (_, record) = self.records.take_front()?;
        let at_ns = self.first_ns;
        self.first_ns = match self.records.front() {
            None => NEVER,
            Some(&(FAR, _)) => self.far_ns.pop_front().unwrap_or(NEVER),
            Some(&(gap_ns, _)) => at_ns + u64::from(gap_ns),
        };
        Some((at_ns, record))
    }

    /// Time of the first record; [`NEVER`] if there is none.
    #[inline(always)]
    pub fn next_ns(&self) -> u64 {
        self.first_ns
    }

    /// The first record.
    #[inline]
    pub fn front(&self) -> Option<T> {
        self.get(0)
    }

    /// The record `index` places after the first.
    #[inline]
    pub fn get(&self, index: usize) -> Option<T> {
        self.records.get(index).map(|(_, record)| *record)
    }

    /// Number of records.
    #[inline]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// All records, in order.
    pub fn iter(&self) -> impl Iterator<Item = T> {
        self.records.iter().map(|(_, record)| *record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a queue of pairs, with distances about the largest that 4 bytes hold, and with what never
        /// happens.
        #[test]
        fn keeps_every_time(
            steps in prop::collection::vec(
                prop::option::weighted(0.6, prop_oneof![
                    6 => 0u64..3,
                    2 => u64::from(FAR) - 2..u64::from(FAR) + 3,
                    1 => Just(20_000_000_000),
                    1 => Just(NEVER),
                ]),
                1..400,
            ),
        ) {
            let (mut line, mut model) = (Timeline::default(), VecDeque::new());
            let mut at_ns = 0u64;
            for (number, step) in (0u32..).zip(steps) {
                match step {
                    Some(gap_ns) => {
                        at_ns = at_ns.saturating_add(gap_ns);
                        line.push(at_ns, number);
                        model.push_back((at_ns, number));
                    }
                    None => prop_assert_eq!(line.take(), model.pop_front()),
                }
                prop_assert_eq!((line.len(), line.is_empty()), (model.len(), model.is_empty()));
                prop_assert_eq!(line.next_ns(), model.front().map_or(NEVER, |(at_ns, _)| *at_ns));
                prop_assert_eq!(line.front(), model.front().map(|(_, number)| *number));
                prop_assert!(line.iter().eq(model.iter().map(|(_, number)| *number)));
                if model.is_empty() && at_ns == NEVER {
                    at_ns = 0;
                }
            }
        }
    }
}
