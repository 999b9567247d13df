//! The timers of a run's flows, which are one source of events.

use crate::NEVER;
use knee_model::Ns;
use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

/// Timers `T` of all flows. If several are due at the same time, the lowest flow number is first; within a
/// flow, the smallest timer is first.
pub(crate) struct Timers<T> {
    /// Those due before `heap_end_ns`.
    heap: BinaryHeap<Reverse<Due<T>>>,
    heap_end_ns: Ns,
    /// The first timer was taken, and is still in the heap: the next timer pushed replaces it, at half the
    /// cost of a removal and an insertion.
    taken: bool,
    /// All others, where there are many.
    later: Option<Box<Later<T>>>,
}

/// Largest heap that is not split: a way through a larger one is a dozen cache misses, each after the other.
const MANY: usize = 2048;

/// Timers in slots by due time; within a slot, in the order of arrival.
struct Later<T> {
    slots: Vec<Vec<Reverse<Due<T>>>>,
    in_slots: usize,
    /// Those due after all slots.
    beyond: BinaryHeap<Reverse<Due<T>>>,
}

/// Slots, and the time of each: a millisecond, and four seconds of them.
const SLOTS: usize = 1 << 12;
const SLOT_NS: Ns = 1 << 20;

impl<T: Ord> Later<T> {
    fn new() -> Self {
        let slots = std::iter::repeat_with(Vec::new).take(SLOTS).collect();
        Self { slots, in_slots: 0, beyond: BinaryHeap::new() }
    }

    fn slot(&mut self, at_ns: Ns) -> &mut Vec<Reverse<Due<T>>> {
        &mut self.slots[(at_ns / SLOT_NS) as usize % SLOTS]
    }

    /// Adds a timer that is due at `heap_end_ns`, where the first slot begins, or after that.
    fn push(&mut self, heap_end_ns: Ns, new: Reverse<Due<T>>) {
        let due_ns = new.0.due_ns;
        if due_ns - heap_end_ns < SLOTS as Ns * SLOT_NS {
            self.slot(due_ns).push(new);
            self.in_slots += 1;
        } else {
            self.beyond.push(new);
        }
    }

    /// Takes the timers of the first non-empty slot, if there is one. That slot begins at or after
    /// `heap_end_ns`, which becomes the slot's end.
    fn take_first(&mut self, heap_end_ns: &mut Ns) -> BinaryHeap<Reverse<Due<T>>> {
        loop {
            if self.in_slots == 0 {
                let Some(Reverse(first)) = self.beyond.peek() else { return BinaryHeap::new() };
                *heap_end_ns = first.due_ns - first.due_ns % SLOT_NS;
            }
            let mut taken = BinaryHeap::from(std::mem::take(self.slot(*heap_end_ns)));
            self.in_slots -= taken.len();
            *heap_end_ns = heap_end_ns.saturating_add(SLOT_NS);
            while self.beyond.peek().is_some_and(|Reverse(due)| due.due_ns < *heap_end_ns) {
                taken.extend(self.beyond.pop());
            }
            if !taken.is_empty() {
                return taken;
            }
        }
    }
}

/// A timer `T` of a flow, and when it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Due<T> {
    due_ns: Ns,
    flow: u32,
    timer: T,
}

impl<T: Ord> Ord for Due<T> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |due: &Self| (due.due_ns, due.flow);
        key(self).cmp(&key(other)).then_with(|| self.timer.cmp(&other.timer))
    }
}

impl<T: Ord> PartialOrd for Due<T> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    // The heap calls this. No branch depends on which timer is first, since no processor predicts that.
    #[inline(always)]
    fn le(&self, other: &Self) -> bool {
        if self.due_ns == other.due_ns {
            return self.cmp(other).is_le();
        }
        self.due_ns < other.due_ns
    }
}

/// A timer of a flow that is usually put off before it is due. It is in the heap at most once:
/// when it is put off it stays there, and is armed again when it comes up.
#[derive(Clone, Copy, Debug)]
pub struct LazyTimer {
    /// Time at which it comes up; [`NEVER`] if it is not in the heap.
    up_ns: Ns,
}

impl Default for LazyTimer {
    fn default() -> Self {
        Self { up_ns: NEVER }
    }
}

impl<T: Copy + Ord> Timers<T> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), heap_end_ns: NEVER, taken: false, later: None }
    }

    /// Returns the time at which the first timer is due.
    #[inline]
    pub(crate) fn next_ns(&mut self) -> Ns {
        self.take_out();
        self.heap.peek().map_or(NEVER, |Reverse(first)| first.due_ns)
    }

    /// A timer that is due once.
    pub(crate) fn push(&mut self, due_ns: Ns, flow: u32, timer: T) {
        if due_ns == NEVER {
            return;
        }
        // Built where it is put: in memory it would be read as a whole right after it was written in parts.
        let new = || Reverse(Due { due_ns, flow, timer });
        if due_ns >= self.heap_end_ns {
            return self.push_later(new());
        }
        match self.heap.peek_mut() {
            Some(mut first) if std::mem::take(&mut self.taken) => *first = new(),
            first => {
                drop(first);
                self.heap.push(new());
                if self.heap.len() > MANY && self.later.is_none() {
                    self.split();
                }
            }
        }
    }

    #[inline(never)]
    fn push_later(&mut self, new: Reverse<Due<T>>) {
        if let Some(later) = &mut self.later {
            later.push(self.heap_end_ns, new);
        }
        if self.heap.is_empty() {
            self.refill();
        }
    }

    /// Splits the timers: those in the slot of the first one stay in the heap.
    #[cold]
    fn split(&mut self) {
        let first_ns = self.next_ns();
        self.heap_end_ns = first_ns - first_ns % SLOT_NS;
        let mut later = Box::new(Later::new());
        self.heap.drain().for_each(|due| later.push(self.heap_end_ns, due));
        self.later = Some(later);
        self.refill();
    }

    /// Fills the empty heap with the timers that are due next, if there are any.
    #[inline(never)]
    fn refill(&mut self) {
        if let Some(later) = &mut self.later {
            self.heap = later.take_first(&mut self.heap_end_ns);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<(Ns, u32, T)> {
        self.take_out();
        self.taken = !self.heap.is_empty();
        self.heap.peek().map(|Reverse(first)| (first.due_ns, first.flow, first.timer))
    }

    /// Removes the taken timer from the heap.
    #[inline]
    fn take_out(&mut self) {
        if std::mem::take(&mut self.taken) {
            self.heap.pop();
            if self.heap.is_empty() {
                self.refill();
            }
        }
    }

    /// Sets the lazy timer to `due_ns` ([`NEVER`]: it does not expire). Returns whether it is earlier than
    /// the timer's entry in the heap.
    #[inline(always)]
    pub(crate) fn arm(&mut self, lazy: &mut LazyTimer, due_ns: Ns, flow: u32, timer: T) -> bool {
        let sooner = due_ns < lazy.up_ns;
        if sooner {
            lazy.up_ns = due_ns;
            self.push(due_ns, flow, timer);
        }
        sooner
    }

    /// Handles a lazy timer that came up at `up_ns`; `due_ns` is its due time. Returns whether it is due; a
    /// timer that was put off is armed again.
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
    use knee_model::Random;
    use std::collections::BTreeSet;

    /// The times at which a timer comes up and is due; `changes` are pairs of the present and its new due
    /// time.
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

    /// Many timers, due at once or up to twice as late as there are slots for, come up as from a sorted set;
    /// some are added meanwhile, and twice all come up before more are added.
    #[test]
    fn many_timers_come_up_in_order() {
        let mut random = Random::stream(1, "timers", 0);
        let (mut timers, mut model) = (Timers::new(), BTreeSet::new());
        let mut now_ns = 0;
        for round in 0..3 {
            for flow in 0..3 * MANY as u32 {
                let ahead_ns = random.up_to(2 * SLOTS as Ns * SLOT_NS) >> random.up_to(30);
                let due_ns = now_ns + ahead_ns;
                let timer = random.up_to(3);
                timers.push(due_ns, flow, timer);
                assert!(model.insert((due_ns, flow, timer)), "each flow has one");
                if random.up_to(3) == 0 {
                    let popped = timers.pop();
                    assert_eq!(popped, model.pop_first());
                    (now_ns, ..) = popped.expect("one was added");
                }
                if random.up_to(1) == 0 {
                    assert_eq!(timers.next_ns(), model.first().map_or(NEVER, |first| first.0));
                }
            }
            assert!(timers.later.is_some() && (round == 0 || model.len() > MANY));
            while let Some(popped) = timers.pop() {
                assert_eq!(Some(popped), model.pop_first());
                now_ns = popped.0;
            }
            assert!(model.is_empty());
        }
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
