//! Delay without order.

use crate::NEVER;
use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

/// Holds packets for their delay and returns each when it is due, whatever the order of their arrival. If
/// several are due at the same time, the earliest arrival is first.
#[derive(Clone, Debug)]
pub struct Overtaking<P> {
    held: BinaryHeap<Reverse<Held<P>>>,
    taken_in: u64,
}

#[derive(Clone, Debug)]
struct Held<P> {
    due_ns: u64,
    place: u64,
    packet: P,
}

impl<P> Held<P> {
    fn key(&self) -> (u64, u64) {
        (self.due_ns, self.place)
    }
}

impl<P> PartialEq for Held<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<P> Eq for Held<P> {}

impl<P> PartialOrd for Held<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for Held<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<P> Default for Overtaking<P> {
    fn default() -> Self {
        Self { held: BinaryHeap::new(), taken_in: 0 }
    }
}

impl<P> Overtaking<P> {
    /// Takes a packet in, to be given back at `due_ns`.
    pub fn push(&mut self, due_ns: u64, packet: P) {
        self.held.push(Reverse(Held { due_ns, place: self.taken_in, packet }));
        self.taken_in += 1;
    }

    /// Returns the time at which the next packet is due; [`NEVER`] if none is held.
    pub fn next_ns(&self) -> u64 {
        self.held.peek().map_or(NEVER, |Reverse(held)| held.due_ns)
    }

    /// The next packet, if it is due.
    pub fn pop(&mut self, now_ns: u64) -> Option<P> {
        if self.next_ns() > now_ns {
            return None;
        }
        self.held.pop().map(|Reverse(held)| held.packet)
    }

    /// Packets held, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &P> {
        self.held.iter().map(|Reverse(held)| &held.packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn gives_each_back_when_it_is_due(dues in prop::collection::vec(0u64..50, 0..200)) {
            let mut line = Overtaking::default();
            dues.iter().enumerate().for_each(|(n, due_ns)| line.push(*due_ns, n));
            prop_assert_eq!(line.iter().count(), dues.len());
            let mut expected: Vec<usize> = (0..dues.len()).collect();
            expected.sort_by_key(|n| dues[*n]);
            for n in expected {
                prop_assert_eq!(line.next_ns(), dues[n]);
                prop_assert!(dues[n] == 0 || line.pop(dues[n] - 1).is_none());
                prop_assert_eq!(line.pop(dues[n]), Some(n));
            }
            prop_assert_eq!(line.next_ns(), NEVER);
        }
    }
}
