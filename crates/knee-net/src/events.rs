//! The events of a path, and the rule for ties.

use crate::Schedule;
use knee_model::Ns;

/// An event of a run. Events that are due at the same instant happen in the order of this list; of one
/// kind, in the order of their group or hop. Two exceptions: entry and return alternate by group (entry of
/// group 0, return of group 0, entry of group 1, ...), and the events of the hops behind the first come
/// last, hop by hop: departure, delivery, arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A bin of the time series ends.
    BinEnd,
    /// A timer of an endpoint expires.
    Timer,
    /// A packet leaves the link of this hop.
    Departure(usize),
    /// A packet that left this hop reaches the path's end.
    Delivery(usize),
    /// A packet of this access group reaches the group's first hop.
    Entry(usize),
    /// A packet of this access group reaches the path's start.
    Return(usize),
    /// A packet leaves the reverse link.
    ReverseDeparture,
    /// A packet from the hop before reaches this hop.
    Arrival(usize),
}

// Places in the schedule; of events due at the same instant the lowest place is first.
const BIN_END: usize = 0;
const TIMER: usize = 1;
const FIRST_DEPARTURE: usize = 2;
const FIRST_DELIVERY: usize = 3;
const GROUPS: usize = 4;
const PER_GROUP: usize = 2;
const PER_LATER_HOP: usize = 3;

/// The time at which each event of a path is next due. Each place of the schedule holds the earliest event of
/// its kind; later ones wait in the element that causes them.
pub(crate) struct Events {
    schedule: Schedule,
    /// Place of the reverse link's departures; the hops behind the first follow.
    reverse: usize,
}

impl Events {
    /// No event is due on a path with so many access groups and hops.
    pub(crate) fn new(groups: usize, hops: usize) -> Self {
        let reverse = GROUPS + PER_GROUP * groups;
        let later_hops = hops.saturating_sub(1);
        Self { schedule: Schedule::new(reverse + 1 + PER_LATER_HOP * later_hops), reverse }
    }

    /// Sets the time at which `event` is next due; [`crate::NEVER`]: it is not due.
    #[inline(always)]
    pub(crate) fn set(&mut self, event: Event, due_ns: Ns) {
        self.schedule.set(self.place(event), due_ns);
    }

    /// The event that is due first, and its time; the time is [`crate::NEVER`] if none is due.
    #[inline(always)]
    pub(crate) fn first(&self) -> (Event, Ns) {
        let (place, due_ns) = self.schedule.first();
        (self.event(place), due_ns)
    }

    #[inline(always)]
    fn place(&self, event: Event) -> usize {
        let later_hop = |hop: usize| self.reverse + 1 + PER_LATER_HOP * (hop - 1);
        match event {
            Event::BinEnd => BIN_END,
            Event::Timer => TIMER,
            Event::Departure(0) => FIRST_DEPARTURE,
            Event::Delivery(0) => FIRST_DELIVERY,
            Event::Entry(group) => GROUPS + PER_GROUP * group,
            Event::Return(group) => GROUPS + PER_GROUP * group + 1,
            Event::ReverseDeparture => self.reverse,
            Event::Departure(hop) => later_hop(hop),
            Event::Delivery(hop) => later_hop(hop) + 1,
            Event::Arrival(hop) => later_hop(hop) + 2,
        }
    }

    #[inline(always)]
    fn event(&self, place: usize) -> Event {
        match place {
            BIN_END => Event::BinEnd,
            TIMER => Event::Timer,
            FIRST_DEPARTURE => Event::Departure(0),
            FIRST_DELIVERY => Event::Delivery(0),
            _ if place < self.reverse => {
                let group = (place - GROUPS) / PER_GROUP;
                let entry = (place - GROUPS).is_multiple_of(PER_GROUP);
                if entry { Event::Entry(group) } else { Event::Return(group) }
            }
            _ if place == self.reverse => Event::ReverseDeparture,
            _ => {
                let of_later_hops = place - self.reverse - 1;
                let hop = of_later_hops / PER_LATER_HOP + 1;
                match of_later_hops % PER_LATER_HOP {
                    0 => Event::Departure(hop),
                    1 => Event::Delivery(hop),
                    _ => Event::Arrival(hop),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NEVER;

    /// All events of two groups and three hops, in the order of the rule for ties.
    #[test]
    fn events_of_one_instant_keep_their_order() {
        use Event::*;
        let order = [
            BinEnd,
            Timer,
            Departure(0),
            Delivery(0),
            Entry(0),
            Return(0),
            Entry(1),
            Return(1),
            ReverseDeparture,
            Departure(1),
            Delivery(1),
            Arrival(1),
            Departure(2),
            Delivery(2),
            Arrival(2),
        ];
        let mut events = Events::new(2, 3);
        order.iter().rev().for_each(|event| events.set(*event, 7));
        for event in order {
            assert_eq!(events.first(), (event, 7));
            events.set(event, NEVER);
        }
        assert_eq!(events.first().1, NEVER);
    }
}
