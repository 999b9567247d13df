//! Propagation delay.

use crate::timed_ring::TimedRing;

/// Holds packets for their delay and gives them back in the order in which they came: a packet
/// never overtakes an earlier one, whatever its own delay.
#[derive(Clone, Debug, Default)]
pub struct DelayLine<P> {
    held: TimedRing<P>,
    last_ns: u64,
}

impl<P: Default> DelayLine<P> {
    /// Takes a packet in at `now_ns`, to be given back `delay_ns` later.
    #[inline]
    pub fn push(&mut self, now_ns: u64, delay_ns: u64, packet: P) {
        self.last_ns = self.last_ns.max(now_ns.saturating_add(delay_ns));
        self.held.push_back(self.last_ns, packet);
    }

    /// Returns the time at which the next packet is due; [`crate::NEVER`] if none is held.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.held.first_ns()
    }

    /// The next packet, if it is due.
    #[inline]
    pub fn pop(&mut self, now_ns: u64) -> Option<P> {
        if self.next_ns() > now_ns {
            return None;
        }
        self.take().map(|(_, packet)| packet)
    }

    /// The next packet and when it is due.
    #[inline]
    pub fn take(&mut self) -> Option<(u64, P)> {
        self.held.pop_front()
    }

    /// Packets held, in order.
    pub fn iter(&self) -> impl Iterator<Item = &P> {
        self.held.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NEVER;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keeps_order_and_never_early(delays in prop::collection::vec((0u64..50, 0u64..100), 1..200)) {
            let mut line = DelayLine::default();
            let mut now = 0;
            let mut earliest = Vec::new();
            for (n, (gap, delay)) in delays.iter().enumerate() {
                now += gap;
                line.push(now, *delay, n);
                earliest.push(now + delay);
            }
            let mut expected = 0;
            while line.next_ns() != NEVER {
                let due = line.next_ns();
                prop_assert!(due == 0 || line.clone().pop(due - 1).is_none());
                let n = line.pop(due).expect("due");
                prop_assert_eq!(n, expected);
                prop_assert!(due >= earliest[n]);
                prop_assert_eq!(due, *earliest[..=n].iter().max().expect("not empty"));
                expected += 1;
            }
            prop_assert_eq!(expected, delays.len());
        }
    }
}
