//! The timers of a run's flows, which are one source of events.

use crate::Ns;
use knee_net::NEVER;
use std::{cmp::Reverse, collections::BinaryHeap};

/// Timers `T` of all flows. Of those due at the same time the one of the first flow is first, and of
/// one flow's the least.
pub(crate) struct Timers<T> {
    heap: BinaryHeap<Reverse<(Ns, u32, T)>>,
    /// The first was taken, and is still in the heap: what is pushed next takes its place, which costs
    /// half of taking it out and putting that in.
    taken: bool,
}

/// A timer of a flow that is usually put off before it is due. It is in the heap at most once:
/// when it is put off it stays there, and is armed again when it comes up.
#[derive(Clone, Copy, Debug)]
pub struct LazyTimer {
    /// When it comes up; [`NEVER`]: it is not in the heap.
    up_ns: Ns,
}

impl Default for LazyTimer {
    fn default() -> Self {
        Self { up_ns: NEVER }
    }
}

impl<T: Copy + Ord> Timers<T> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), taken: false }
    }

    /// When the first is due.
    #[inline]
    pub(crate) fn next_ns(&mut self) -> Ns {
        self.take_out();
        self.heap.peek().map_or(NEVER, |Reverse((due_ns, ..))| *due_ns)
    }

    /// A timer that is due once.
    pub(crate) fn push(&mut self, due_ns: Ns, flow: u32, timer: T) {
        if due_ns == NEVER {
            return;
        }
        let new = Reverse((due_ns, flow, timer));
        match self.heap.peek_mut() {
            Some(mut first) if std::mem::take(&mut self.taken) => *first = new,
            first => {
                drop(first);
                self.heap.push(new);
            }
        }
    }

    pub(crate) fn pop(&mut self) -> Option<(Ns, u32, T)> {
        self.take_out();
        self.taken = !self.heap.is_empty();
        self.heap.peek().map(|Reverse(first)| *first)
    }

    /// The flows of which one has the timer that comes after the first.
    #[inline]
    pub(crate) fn after_first(&self) -> impl Iterator<Item = u32> {
        self.heap.as_slice().iter().skip(1).take(2).map(|Reverse((_, flow, _))| *flow)
    }

    /// What was taken leaves the heap.
    #[inline]
    fn take_out(&mut self) {
        if std::mem::take(&mut self.taken) {
            self.heap.pop();
        }
    }

    /// The lazy timer is due at `due_ns` ([`NEVER`]: it is not); whether that comes before all that was
    /// known of it.
    #[inline(always)]
    pub(crate) fn arm(&mut self, lazy: &mut LazyTimer, due_ns: Ns, flow: u32, timer: T) -> bool {
        let sooner = due_ns < lazy.up_ns;
        if sooner {
            lazy.up_ns = due_ns;
            self.push(due_ns, flow, timer);
        }
        sooner
    }

    /// The lazy timer came up at `up_ns`: whether it is due, which is at `due_ns`. If it was put off it
    /// is armed again.
    pub(crate) fn came_up(
        &mut self,
        lazy: &mut LazyTimer,
        up_ns: Ns,
        due_ns: Ns,
        flow: u32,
        timer: T,
    ) -> bool {
        if up_ns != lazy.up_ns {
            return false; // superseded by an earlier one
        }
        lazy.up_ns = NEVER;
        if due_ns > up_ns {
            self.arm(lazy, due_ns, flow, timer);
        }
        due_ns <= up_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes up and is due, of a timer that is to be due at these times from these times on.
    fn due_times(changes: &[(Ns, Ns)]) -> Vec<Ns> {
        let (mut timers, mut lazy, mut due_ns) = (Timers::new(), LazyTimer::default(), NEVER);
        let mut seen = Vec::new();
        let mut changes = changes.iter().copied().peekable();
        loop {
            let next_ns = timers.next_ns();
            if let Some((_, new_ns)) = changes.next_if(|(at_ns, _)| *at_ns <= next_ns) {
                due_ns = new_ns;
                timers.arm(&mut lazy, due_ns, 0, ());
            } else if let Some((up_ns, flow, ())) = timers.pop() {
                if timers.came_up(&mut lazy, up_ns, due_ns, flow, ()) {
                    seen.push(up_ns);
                    due_ns = NEVER;
                }
            } else {
                return seen;
            }
        }
    }

    #[test]
    fn a_lazy_timer_is_due_once_at_its_time() {
        assert_eq!(due_times(&[(0, 10)]), [10]);
        // Put off twice, then off, then on again.
        assert_eq!(due_times(&[(0, 10), (5, 20), (15, 30)]), [30]);
        assert_eq!(due_times(&[(0, 10), (5, NEVER)]), []);
        assert_eq!(due_times(&[(0, 10), (5, NEVER), (12, 40)]), [40]);
        // Put forward: the later one is superseded.
        assert_eq!(due_times(&[(0, 30), (5, 10)]), [10]);
        assert_eq!(due_times(&[(0, 30), (5, 10), (12, 50)]), [10, 50]);
    }

    #[test]
    fn the_first_flow_and_the_least_timer_come_first() {
        let mut timers = Timers::new();
        for (due_ns, flow, timer) in [(5, 1, 0), (5, 0, 2), (5, 0, 1), (NEVER, 0, 0), (4, 9, 9)] {
            timers.push(due_ns, flow, timer);
        }
        let order: Vec<_> = std::iter::from_fn(|| timers.pop()).collect();
        assert_eq!(order, [(4, 9, 9), (5, 0, 1), (5, 0, 2), (5, 1, 0)]);
    }
}
