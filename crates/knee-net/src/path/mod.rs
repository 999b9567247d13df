//! The path of a run: what every host steps with its own clock.

mod brief;
mod hop;
mod port;

pub use brief::Brief;

use crate::{
    Bursts, DelayLine, Jitter, Link, Loss, NEVER, Packet, Ring, Schedule, Service, Timetable,
    prefetch,
};
use hop::{Hop, Server, Station, bursts, in_burst};
use knee_model::{
    FlowCounters, FlowKind, Ns, PacketEvent, PathQueues, PathSpec, QueueRecord, ReverseLink,
    RunSpec, Steps,
};
use port::Port;
use std::collections::{BTreeMap, VecDeque};

/// A packet that a path carries.
pub trait Numbered: Packet + Clone {
    /// Index of its flow.
    fn flow(&self) -> u32;
    /// Segment or packet number within the flow.
    fn number(&self) -> u32;
    /// Whether its sender has heeded a congestion mark (RFC 3168 section 6.1.2).
    fn cwr(&self) -> bool {
        false
    }
}

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the path's start to its end, over the hops.
    Forward,
    /// From the path's end to its start, over the reverse link if there is one.
    Reverse,
}

impl Direction {
    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::Forward => Self::Reverse,
            Self::Reverse => Self::Forward,
        }
    }
}

/// An end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// What comes from it are data.
    Sender,
    /// What comes from it are ACKs.
    Receiver,
}

/// A packet that the path did not carry to its end.
#[derive(Debug)]
pub struct Gone<P> {
    /// When.
    pub time_ns: Ns,
    /// Which.
    pub packet: P,
    /// Which way it went.
    pub direction: Direction,
    /// [`PacketEvent::Lost`] at random, or [`PacketEvent::Dropped`] by a queue.
    pub event: PacketEvent,
}

impl<P> Gone<P> {
    fn forward(time_ns: Ns, packet: P, event: PacketEvent) -> Self {
        Self { time_ns, packet, direction: Direction::Forward, event }
    }

    fn reverse(time_ns: Ns, packet: P, event: PacketEvent) -> Self {
        Self { time_ns, packet, direction: Direction::Reverse, event }
    }
}

/// What is next due, in order of precedence at the same instant: of each hop but the first, which
/// come last, its departures, then its arrivals, then what reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The end of a bin of the time series.
    Bins,
    /// A timer of the ends.
    Timers,
    /// A departure from the hop of this number.
    Departure(usize),
    /// An arrival at the path's end, of a packet that left the hop of this number.
    Arrival(usize),
    /// An arrival at a hop, of a packet of this class.
    Hop(usize),
    /// An arrival at the path's start, of a packet of this class.
    Start(usize),
    /// A departure from the reverse link.
    ReverseDeparture,
    /// An arrival at the hop of this number, from the one before it.
    Approach(usize),
}

const BINS: usize = 0;
const TIMERS: usize = 1;
const DEPARTURE: usize = 2;
const ARRIVAL: usize = 3;
const CLASSES: usize = 4;

/// Sources of each hop behind the first: departures, arrivals at the path's end, arrivals from the hop
/// before it. Where a packet's return is foreseen it has only the last.
const OF_HOP: usize = 3;

#[inline(always)]
fn to_hop(class: usize) -> usize {
    CLASSES + 2 * class
}

#[inline(always)]
fn to_start(class: usize) -> usize {
    CLASSES + 2 * class + 1
}

/// Packets between the flows' ends at the path's start, those of one delay, and the shared path.
struct Class<P> {
    access_delay_ns: Ns,
    /// After the shared reverse direction: that delay, and those between the hops of the flows.
    reverse_delay_ns: Ns,
    /// The hop that it leads to.
    first_hop: usize,
    /// Neither delay nor jitter on the way to the first hop: packets are there at once.
    direct: bool,
    to_hop: DelayLine<P>,
    to_start: DelayLine<P>,
    /// Where receivers answer at once: packets by the times of their arrival at the path's end, up to
    /// the return of the answers.
    round: Round,
}

impl<P: Packet> Class<P> {
    /// When the next packet is back at the path's start, as far as is known.
    #[inline(always)]
    fn next_back_ns(&self) -> Ns {
        // What has been answered left the round before what has not.
        match self.to_start.next_ns() {
            NEVER => self.round.next_back_ns(),
            due_ns => due_ns,
        }
    }
}

/// Data of a class from their last hop to the path's end, and what is answered to them back to its start.
/// The answer is asked for when it returns, or before that when somebody wants to know what has arrived.
struct Round {
    /// By the times of their arrival at the path's end.
    line: Ring<(Ns, Brief)>,
    /// From the path's end to its start.
    back_ns: Ns,
}

impl Round {
    #[inline(always)]
    fn next_back_ns(&self) -> Ns {
        self.next_ns().saturating_add(self.back_ns)
    }

    /// When the next packet arrives at the path's end.
    #[inline(always)]
    fn next_ns(&self) -> Ns {
        self.line.front().map_or(NEVER, |(arrives_ns, _)| *arrives_ns)
    }
}

/// What is back at the path's start.
pub(crate) enum Back<P> {
    /// An answer.
    Answer(P),
    /// The answer to these data, which arrived at the path's end at this time, if there is one; it has
    /// not been asked for.
    ToAnswer(Ns, Brief),
}

/// What the path's end does with a packet that has arrived there, where it answers at once.
pub(crate) trait Answer<P> {
    /// The answer to `data`, which arrived at `at_ns`, if there is one.
    fn answer(&mut self, data: Brief, at_ns: Ns) -> Option<P>;
}

/// What of a packet's way is known before it happens. What the path cannot say at once it says later, event
/// by event; both ways give the same results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Foresight {
    /// When it reaches the next hop or the path's end: as soon as its transmission has begun, or before that.
    /// No packet overtakes another behind a queue.
    arrival: bool,
    /// When what is answered to it is back, too: the delay back is fixed, and each arrival is answered
    /// at once if at all.
    answer: bool,
    /// When a packet is back from the reverse link, as soon as that has taken it.
    reverse: bool,
}

impl Foresight {
    const NONE: Self = Self { arrival: false, answer: false, reverse: false };

    /// On the path of `spec`, whose receivers can answer at once if the scenario lets them.
    fn of(spec: &RunSpec) -> Self {
        let path = &spec.path;
        let arrival = path.reorder.is_none() && !path.falls_reorder;
        let fixed = path.reverse.is_none()
            && path.bursts_reverse.is_none()
            && path.delay_reverse_steps.is_empty()
            && path.jitter_reverse_ns == 0
            // Without a delay the ACKs of packets that arrive together from a later hop would be back
            // before the next of them has arrived.
            && (path.hops.len() == 1 || path.delay_reverse_ns > 0);
        let at_once = |kind: &FlowKind| match kind {
            FlowKind::Tcp(tcp) => tcp.options.delayed_ack.every_pkts <= 1,
            FlowKind::Udp { .. } | FlowKind::Probe { .. } => true,
        };
        let answer = arrival && fixed && spec.flows.iter().all(|flow| at_once(&flow.kind));
        // What leaves the reverse link would else be back before others at the same instant.
        let reverse = least_ns(path.delay_reverse_ns, &path.delay_reverse_steps) > 0;
        Self { arrival, answer, reverse }
    }

    /// For how long nothing is seen of what happens at a hop; `classes` are those of the flows.
    fn hidden_ns<P>(self, path: &PathSpec, classes: &[Class<P>]) -> Ns {
        // Of each flow the losses at all hops are drawn in turn.
        if path.hops[1..].iter().any(|hop| hop.loss > 0.0) {
            return 0;
        }
        let forward_ns = least_ns(path.delay_forward_ns, &path.delay_forward_steps);
        let back_ns = classes.iter().map(|class| class.round.back_ns).min().unwrap_or(0);
        let seen_ns = forward_ns + if self.answer { back_ns } else { 0 };
        // It is to be known before anything else happens at the instant at which it is seen.
        seen_ns.saturating_sub(1)
    }
}

/// A packet on the reverse link.
#[derive(Default)]
struct Held<P> {
    packet: P,
    jitter_ns: Ns,
}

impl<P: Packet> Packet for Held<P> {
    #[inline]
    fn wire_bytes(&self) -> u32 {
        self.packet.wire_bytes()
    }
}

/// The path of a [`RunSpec`]: packets in the forward direction pass access, then random loss, queue
/// and link of one hop or several, then delay and jitter; packets in the reverse direction pass random
/// loss, the reverse link if there is one, delay and jitter, access. It counts what flows send and
/// what becomes of it; what its queues did is recorded as the spec asks.
///
/// The ends send packets ([`Path::send`]); [`crate::drive`] carries out what is due.
pub struct Path<P> {
    ports: Vec<Port>,
    links: Links<P>,
}

/// A path without the flows' ports. The hop that every path has is separate: most have no other,
/// and for that one the code knows where everything is.
struct Links<P> {
    first: Hop<P>,
    /// The hops behind the first.
    later: Vec<Hop<P>>,
    /// The last hop of each flow; empty where there is but one.
    last_hops: Vec<usize>,
    /// Lost and dropped, and not yet taken by the driver.
    gone: VecDeque<Gone<P>>,
    reverse: Option<Box<Station<Held<P>>>>,
    classes: Vec<Class<P>>,
    schedule: Schedule,
    /// Positions in the schedule of the sources that not every path has: of the reverse link, and of
    /// the hops behind the first.
    rare_sources: usize,
    later_sources: usize,
    /// Sources of each hop behind the first.
    of_hop: usize,
    foresight: Foresight,
    /// Nothing is seen of what happens at a hop before this time has passed.
    hidden_ns: Ns,
    /// When the next packet of each class enters the first hop, where that is no event: it is made up for, as
    /// what happens there is.
    entries: Option<Box<Schedule>>,
    /// See [`Links::offer_plain`].
    plain_delay_ns: Ns,
    bin_ns: Ns,
    log: bool,
    loss_reverse: Loss,
    bursts_reverse: Option<Box<Bursts>>,
    delay_reverse_ns: Steps,
    jitter_reverse: Jitter,
    /// When the latest packet leaves the shared reverse direction: none overtakes it.
    reverse_passed_ns: Ns,
    /// The least time between an event inside and what it lets out.
    least_delay_ns: Ns,
}

/// Hop number `hop`. A function of the fields, not of the path: the others stay free.
#[inline(always)]
fn hop_of<'a, P>(first: &'a mut Hop<P>, later: &'a mut [Hop<P>], hop: usize) -> &'a mut Hop<P> {
    match hop.checked_sub(1) {
        None => first,
        Some(index) => &mut later[index],
    }
}

/// The least of a delay that changes.
fn least_ns(delay_ns: Ns, steps: &[(Ns, Ns)]) -> Ns {
    steps.iter().map(|(_, ns)| *ns).fold(delay_ns, Ns::min)
}

/// The least delay after a link: forward, and reverse if there is a link.
fn least_delay_ns(path: &PathSpec) -> Ns {
    let forward_ns = least_ns(path.delay_forward_ns, &path.delay_forward_steps);
    match path.reverse {
        None => forward_ns,
        Some(_) => forward_ns.min(least_ns(path.delay_reverse_ns, &path.delay_reverse_steps)),
    }
}

impl<P: Numbered> Path<P> {
    /// The path of `spec`.
    pub fn new(spec: &RunSpec) -> Self {
        Self::with(spec, Foresight::NONE)
    }

    /// The path of `spec` for receivers that answer at once if the scenario lets them: it looks as far
    /// ahead as it can.
    pub(crate) fn foreseeing(spec: &RunSpec) -> Self {
        Self::with(spec, Foresight::of(spec))
    }

    fn with(spec: &RunSpec, foresight: Foresight) -> Self {
        let mut classes: Vec<Class<P>> = Vec::new();
        let mut class_of: BTreeMap<(Ns, Option<usize>, usize, usize), u32> = BTreeMap::new();
        let mut ports = Vec::with_capacity(spec.flows.len());
        for (index, flow) in spec.flows.iter().enumerate() {
            // Jitter is a flow's own: it must not hold another flow's packets back.
            let mut random = spec.random("access delay", index);
            let access_delay_ns = flow.access_delay_ns + random.up_to(flow.access_delay_spread_ns);
            let own = (flow.access_jitter_ns > 0).then_some(index);
            let (first_hop, last_hop) = (flow.route.first_hop, flow.route.last_hop(&spec.path));
            let key = (access_delay_ns, own, first_hop, last_hop);
            let class = *class_of.entry(key).or_insert_with(|| {
                let reverse_delay_ns = access_delay_ns + spec.path.hops_delay_ns(&flow.route);
                classes.push(Class {
                    access_delay_ns,
                    reverse_delay_ns,
                    first_hop,
                    direct: first_hop == 0 && access_delay_ns == 0 && flow.access_jitter_ns == 0,
                    to_hop: DelayLine::default(),
                    to_start: DelayLine::default(),
                    round: Round {
                        line: Ring::default(),
                        back_ns: spec.path.delay_reverse_ns + reverse_delay_ns,
                    },
                });
                (classes.len() - 1) as u32
            });
            ports.push(Port::new(spec, index, class));
        }
        let mut links = Links::new(spec, classes, foresight);
        links.entries = links.late_entries(spec);
        links.plain_delay_ns = links.first.plain_delay_ns(&spec.path).unwrap_or(0);
        for port in &mut ports {
            port.plain_hop = links.has_plain_hop(port, &spec.path);
            port.plain = port.plain_hop && links.classes[port.class as usize].direct;
        }
        Self { ports, links }
    }

    /// A packet starts on its way from this end of its flow. What is lost or dropped at once is among
    /// `Path::take_gone`.
    #[inline(always)]
    pub fn send(&mut self, now_ns: Ns, packet: P, from: End) {
        let port = &mut self.ports[packet.flow() as usize];
        match (from, port.reverse) {
            (End::Sender, _) if port.plain => {
                port.data_pkts += 1;
                self.links.offer_plain(now_ns, packet, port.class as usize);
            }
            (End::Sender, false) => {
                port.data_pkts += 1;
                self.links.send_forward(now_ns, packet, port);
            }
            (End::Receiver, false) => {
                port.ack_pkts += 1;
                self.links.send_reverse(now_ns, packet, port);
            }
            (End::Sender, true) => {
                port.data_pkts += 1;
                self.links.send_data_reverse(now_ns, packet, port);
            }
            (End::Receiver, true) => {
                port.ack_pkts += 1;
                self.links.send_ack_forward(now_ns, packet, port);
            }
        }
    }

    /// The end of `flow` that packets in `direction` reach.
    pub fn end(&self, flow: u32, direction: Direction) -> End {
        match self.ports[flow as usize].carries_data(direction) {
            true => End::Receiver,
            false => End::Sender,
        }
    }

    /// Packets that the sender of `flow` has sent.
    pub fn data_pkts(&self, flow: u32) -> u32 {
        self.ports[flow as usize].data_pkts
    }

    /// Packets that the receiver of `flow` has sent.
    pub fn ack_pkts(&self, flow: u32) -> u32 {
        self.ports[flow as usize].ack_pkts
    }

    /// `counters` with what became of the packets of flow `index` on the path.
    pub fn count(&self, index: usize, counters: FlowCounters) -> FlowCounters {
        self.ports[index].count(counters)
    }

    /// Data that are on the path, of each flow.
    pub fn in_network_pkts(&self) -> Vec<u64> {
        let mut in_network_pkts = vec![0; self.ports.len()];
        let mut count = |packet: &P, direction| {
            let flow = packet.flow() as usize;
            in_network_pkts[flow] += u64::from(self.ports[flow].carries_data(direction));
        };
        self.links.forward_packets().for_each(|packet| count(packet, Direction::Forward));
        self.links.reverse_packets().for_each(|packet| count(packet, Direction::Reverse));
        for class in &self.links.classes {
            class
                .round
                .line
                .iter()
                .for_each(|(_, data)| in_network_pkts[data.flow() as usize] += 1);
        }
        in_network_pkts
    }

    /// Whether packets return from their round answered or to be answered: [`Path::come_round`], not
    /// [`Path::return_to_start`].
    #[inline(always)]
    pub(crate) fn goes_round(&self) -> bool {
        self.links.foresight.answer
    }

    /// Makes up for what left the first hop before `until_ns`, unless what enters it is made up for, too.
    #[inline(always)]
    pub(crate) fn settle(&mut self, until_ns: Ns) {
        while self.links.first.station.departs_ns < until_ns {
            if self.links.entries.is_some() {
                return;
            }
            self.leave_first();
        }
    }

    /// The next packet leaves the first hop, which foresees.
    #[inline(always)]
    fn leave_first(&mut self) {
        if self.links.first.holds_packets() {
            self.let_go(0);
        } else {
            self.links.first.station.leave(self.links.bin_ns > 0);
        }
    }

    /// Makes up for what left the first hop before `until_ns`, and, if that is made up for, for what entered it
    /// before `entered_ns`.
    #[inline(never)]
    fn settle_first(&mut self, until_ns: Ns, entered_ns: Ns) {
        loop {
            let next = self.links.entries.as_ref().map(|entries| entries.first());
            let (class_index, enters_ns) = next.unwrap_or((0, NEVER));
            // Departures come before arrivals at the same instant.
            let before_ns = until_ns.min(enters_ns.saturating_add(1));
            while self.links.first.station.departs_ns < before_ns {
                self.leave_first();
            }
            if enters_ns >= entered_ns {
                return;
            }
            let class = &mut self.links.classes[class_index];
            let Some((_, packet)) = class.to_hop.take() else { return };
            let next_ns = class.to_hop.next_ns();
            if let Some(entries) = &mut self.links.entries {
                entries.set(class_index, next_ns);
            }
            let port = &mut self.ports[packet.flow() as usize];
            match port.plain_hop {
                true => self.links.offer_plain(enters_ns, packet, class_index),
                false => self.links.foresee(enters_ns, packet, 0, port),
            }
        }
    }

    /// Makes up for what came to a hop behind the first before `came_ns` and left it before `until_ns`; what
    /// comes to the hops before it is known up to then.
    fn settle_later(&mut self, hop: usize, until_ns: Ns, came_ns: Ns) {
        loop {
            let Links { later, gone, bin_ns, .. } = &mut self.links;
            let at = &mut later[hop - 1];
            let comes_ns = at.approach.next_ns();
            // Departures come before arrivals at the same instant.
            let before_ns = until_ns.min(comes_ns.saturating_add(1));
            if at.holds_packets() {
                if at.station.departs_ns < before_ns {
                    self.let_go(hop);
                    continue;
                }
            } else {
                while at.station.departs_ns < before_ns {
                    at.station.leave(*bin_ns > 0);
                }
            }
            if comes_ns >= came_ns {
                return;
            }
            let Some((_, packet)) = at.approach.take() else { return };
            let port = &mut self.ports[packet.flow() as usize];
            if at.holds_packets() {
                self.links.foresee_held(comes_ns, packet, hop, port);
            } else if let Some(departs_ns) =
                at.foresee(comes_ns, &packet, &mut port.forward_random, gone)
            {
                self.links.foreseen(packet, departs_ns, hop, port);
            }
        }
    }

    /// What was foreseen happens at hop `hop`, which holds packets: the next one leaves.
    #[inline(never)]
    fn let_go(&mut self, hop: usize) {
        let Links { first, later, bin_ns, log, gone, .. } = &mut self.links;
        let at = hop_of(first, later, hop);
        let left = at.depart(at.station.departs_ns, *bin_ns > 0, *log, gone);
        if let Some((packet, departs_ns)) = at.begun() {
            let port = &mut self.ports[packet.flow() as usize];
            self.links.foreseen(packet, departs_ns, hop, port);
        }
        if let Some((packet, true)) = left {
            self.count_mark(hop, &packet);
        }
    }

    /// Makes up for what happened at the hops and at the reverse link before `until_ns`.
    pub(crate) fn settle_all(&mut self, until_ns: Ns) {
        self.settle_first(until_ns, until_ns);
        self.settle_behind_first(self.links.later.len(), until_ns);
        self.links.settle_reverse(until_ns);
    }

    /// Makes up for what happened at the hops up to `last` by `now_ns`. Not for what enters the first one just
    /// then, if that is made up for: who sends now may still be before it.
    fn settle_up_to(&mut self, last: usize, now_ns: Ns) {
        let until_ns = now_ns.saturating_add(1);
        self.settle_first(until_ns, now_ns);
        self.settle_behind_first(last, until_ns);
    }

    /// Makes up for what happened at the hops from the second to `last` before `until_ns`; what happened at the
    /// first is known.
    #[inline]
    fn settle_behind_first(&mut self, last: usize, until_ns: Ns) {
        if self.links.foresight.arrival {
            for hop in 1..=last {
                self.settle_later(hop, until_ns, until_ns);
            }
        }
    }

    /// It is time to make up for what happened at hop `hop`: something will be seen of it.
    #[inline(never)]
    fn wake(&mut self, hop: usize, now_ns: Ns) {
        self.settle_up_to(hop, now_ns);
        self.links.wake_again(hop);
    }

    /// `packet` has left hop `hop` with a congestion mark: its last hop counts that.
    fn count_mark(&mut self, hop: usize, packet: &P) {
        let flow = packet.flow() as usize;
        if self.links.last_hops.get(flow).is_none_or(|last| hop == *last) {
            self.ports[flow].marked_pkts += 1;
        }
    }

    /// Has what arrived before `until_ns` answered, in so far as it has not been.
    pub(crate) fn settle_answers(&mut self, until_ns: Ns, end: &mut impl Answer<P>) {
        for class_index in 0..self.links.classes.len() {
            loop {
                let round = &mut self.links.classes[class_index].round;
                if round.next_ns() >= until_ns {
                    break;
                }
                let Some((at_ns, data)) = round.line.take_front() else { break };
                let answer = end.answer(data, at_ns);
                let answer = answer.and_then(|answer| self.gets_back(at_ns, answer));
                let class = &mut self.links.classes[class_index];
                let back_ns = class.round.back_ns;
                answer.into_iter().for_each(|answer| class.to_start.push(at_ns, back_ns, answer));
            }
            let due_ns = self.links.classes[class_index].next_back_ns();
            self.links.schedule.set(to_start(class_index), due_ns);
        }
    }

    /// `answer` starts on its way back at `at_ns`; it, if it is not lost.
    #[inline(always)]
    pub(crate) fn gets_back(&mut self, at_ns: Ns, answer: P) -> Option<P> {
        let port = &mut self.ports[answer.flow() as usize];
        port.ack_pkts += 1;
        if self.links.loss_reverse.loses(&mut port.reverse_random) {
            self.links.gone.push_back(Gone::reverse(at_ns, answer, PacketEvent::Lost));
            return None;
        }
        Some(answer)
    }

    /// On [`Source::Start`], where packets go round: this class is next, and may be again and again until
    /// [`Path::leave`].
    pub(crate) fn stay(&mut self, class_index: usize) {
        self.links.schedule.stay(to_start(class_index));
    }

    /// On [`Source::Start`], where packets go round: what of `class` is back now.
    pub(crate) fn come_round(&mut self, class_index: usize) -> Option<Back<P>> {
        let class = &mut self.links.classes[class_index];
        if !class.to_start.is_empty() {
            return class.to_start.take().map(|(_, answer)| Back::Answer(answer));
        }
        let (at_ns, data) = class.round.line.take_front()?;
        Some(Back::ToAnswer(at_ns, data))
    }

    /// Between [`Path::stay`] and [`Path::leave`]: what of `class` is back next, if that is by `until_ns` and
    /// nothing else happens before; and when.
    #[inline(always)]
    pub(crate) fn comes_round_too(
        &mut self,
        class_index: usize,
        until_ns: Ns,
    ) -> Option<(Ns, Back<P>)> {
        let Links { classes, schedule, .. } = &mut self.links;
        let Class { to_start, round, .. } = &mut classes[class_index];
        let comes = |back_ns| back_ns <= until_ns && schedule.comes_first(back_ns);
        if !to_start.is_empty() {
            let (back_ns, answer) = to_start.take_if(comes)?;
            return Some((back_ns, Back::Answer(answer)));
        }
        let back_ns = |at_ns: Ns| at_ns.saturating_add(round.back_ns);
        let (at_ns, data) = round.line.take_front_if(|(at_ns, _)| comes(back_ns(*at_ns)))?;
        Some((back_ns(at_ns), Back::ToAnswer(at_ns, data)))
    }

    /// The end of what [`Path::stay`] began.
    pub(crate) fn leave(&mut self, class_index: usize) {
        let due_ns = self.links.classes[class_index].next_back_ns();
        self.links.schedule.leave(to_start(class_index), due_ns);
    }

    /// Whether [`Path::take_gone`] has any.
    #[inline(always)]
    pub(crate) fn has_gone(&self) -> bool {
        !self.links.gone.is_empty()
    }

    /// The next packet that was lost or dropped, counted with its flow.
    pub(crate) fn take_gone(&mut self) -> Option<Gone<P>> {
        let gone = self.links.gone.pop_front()?;
        self.ports[gone.packet.flow() as usize].miss(gone.direction, gone.event);
        Some(gone)
    }

    /// What is next due, and when; the time is [`NEVER`] if nothing is.
    #[inline(always)]
    pub(crate) fn first(&self) -> (Source, Ns) {
        self.links.first()
    }

    /// Says when [`Source::Timers`] is next due.
    #[inline]
    pub(crate) fn set_timers(&mut self, due_ns: Ns) {
        self.links.schedule.set(TIMERS, due_ns);
    }

    /// On [`Source::Hop`]: a packet of `class` reaches its first hop.
    #[inline(always)]
    pub(crate) fn enter(&mut self, class: usize, now_ns: Ns) {
        let Some((packet, hop)) = self.links.at_hop(class, now_ns) else { return };
        // What happens at a later hop comes after what flows send to it at the same instant.
        self.settle_behind_first(hop, now_ns);
        let port = &mut self.ports[packet.flow() as usize];
        // Most paths have one hop: it has code of its own.
        match hop {
            0 => self.links.offer(now_ns, packet, 0, port),
            later => self.links.offer_later(now_ns, packet, later, port),
        }
    }

    /// On [`Source::Approach`]: a packet from the hop before it reaches hop `hop`.
    #[inline(never)]
    pub(crate) fn approach(&mut self, hop: usize, now_ns: Ns) {
        if self.links.foresight.arrival {
            return self.wake(hop, now_ns);
        }
        let Some(packet) = self.links.at_later_hop(hop, now_ns) else { return };
        let port = &mut self.ports[packet.flow() as usize];
        self.links.offer_later(now_ns, packet, hop, port);
    }

    /// On [`Source::Departure`]: a packet leaves hop `hop`.
    #[inline(always)]
    pub(crate) fn depart(&mut self, hop: usize, now_ns: Ns) {
        if self.links.foresight.arrival {
            return self.wake(hop, now_ns);
        }
        if let Some(flow) = self.links.depart(hop, now_ns) {
            self.ports[flow as usize].marked_pkts += 1;
        }
    }

    /// On [`Source::Arrival`]: the packet that left hop `hop` and reaches the path's end.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, hop: usize, now_ns: Ns) -> Option<P> {
        if hop > 0 {
            let until_ns = now_ns.saturating_add(1);
            if self.links.foresight.arrival {
                // Departures come before these, what comes to the hop after them: who is answered now may
                // send before it.
                self.settle_up_to(hop - 1, now_ns);
                self.settle_later(hop, until_ns, now_ns);
            }
            self.links.settle_reverse(until_ns);
        }
        self.links.arrive(hop, now_ns)
    }

    /// On [`Source::ReverseDeparture`]: a packet leaves the reverse link.
    pub(crate) fn depart_reverse(&mut self, now_ns: Ns) {
        if let Some(Held { packet, jitter_ns }) = self.links.leave_reverse_link(now_ns) {
            let class = self.ports[packet.flow() as usize].class;
            self.links.delay_reverse(now_ns, packet, class, jitter_ns);
        }
    }

    /// On [`Source::Start`]: the packet of `class` that reaches the path's start.
    #[inline]
    pub(crate) fn return_to_start(&mut self, class: usize, now_ns: Ns) -> Option<P> {
        let line = &mut self.links.classes[class].to_start;
        let packet = line.pop(now_ns)?;
        let due_ns = line.next_ns();
        self.links.schedule.set(to_start(class), due_ns);
        Some(packet)
    }

    /// The packet from the first hop that will arrive `ahead` places after the next one.
    #[inline]
    pub(crate) fn peek_end(&self, ahead: usize) -> Option<&P> {
        self.links.first.to_end.peek(ahead)
    }

    /// The packet of `class` that will return `ahead` places after the next one.
    #[inline]
    pub(crate) fn peek_start(&self, class: usize, ahead: usize) -> Option<&P> {
        self.links.classes[class].to_start.peek(ahead)
    }

    /// The flow of which something of `class` will come round `ahead` places after the next.
    #[inline]
    pub(crate) fn peek_round(&self, class: usize, ahead: usize) -> Option<u32> {
        let Class { to_start, round, .. } = &self.links.classes[class];
        match ahead.checked_sub(to_start.len()) {
            None => to_start.peek(ahead).map(P::flow),
            Some(ahead) => round.line.get(ahead).map(|(_, data)| data.flow()),
        }
    }

    /// A packet of `flow` will be sent soon.
    #[inline]
    pub(crate) fn comes_soon(&self, flow: u32) {
        prefetch(&self.ports[flow as usize]);
    }

    /// On [`Source::Bins`], and at the end of a run: ends a bin of the time series.
    pub(crate) fn close_bin(&mut self, now_ns: Ns) {
        self.links.close_bin(now_ns);
    }

    /// Until then no packet reaches an end, unless another enters the path first. What is due before
    /// happens inside the path: a host in real time may let it wait, and have it happen at the times
    /// that the path gives.
    pub fn next_out_ns(&self) -> Ns {
        self.links.next_out_ns()
    }

    /// Packets that hop `hop` holds, the one in transmission included.
    pub fn held_pkts(&self, hop: usize) -> u32 {
        self.links.hops().nth(hop).map_or(0, |hop| hop.station.held_pkts())
    }

    /// What the queues of the hops did until now, in order.
    pub fn queues(&self) -> impl Iterator<Item = &QueueRecord> {
        self.links.hops().map(|hop| &hop.station.watch.queue)
    }

    /// Ends the path; what its queues did.
    pub fn finish(self) -> PathQueues {
        let Links { first, later, reverse, .. } = self.links;
        let reverse = reverse.filter(|_| self.ports.iter().any(|port| port.reverse));
        PathQueues {
            hops: [first].into_iter().chain(later).map(|hop| hop.station.watch.queue).collect(),
            reverse: reverse.map(|reverse| reverse.watch.queue),
        }
    }
}

impl<P: Numbered> Links<P> {
    fn new(spec: &RunSpec, classes: Vec<Class<P>>, foresight: Foresight) -> Self {
        let (path, bin_ns) = (&spec.path, spec.record.bin_ns);
        // What not every path has comes last: it is no source where there is none.
        let rare_sources = to_hop(classes.len());
        let later_sources = rare_sources + usize::from(path.reverse.is_some());
        let of_hop = if foresight.answer { 1 } else { OF_HOP };
        let mut schedule = Schedule::new(later_sources + of_hop * (path.hops.len() - 1));
        schedule.set(BINS, if bin_ns > 0 { bin_ns } else { NEVER });
        let reverse = |link: &ReverseLink| {
            let (service, limit) = (Service::of(&link.rate()), link.queue);
            Box::new(Station::new(match foresight.reverse {
                true => Server::Times(Timetable::new(service, limit, bin_ns > 0)),
                false => Server::Holds(Link::new(service, limit)),
            }))
        };
        let last_hops = match path.hops.len() {
            1 => Vec::new(),
            _ => spec.flows.iter().map(|flow| flow.route.last_hop(path)).collect(),
        };
        let mut hops = path
            .hops
            .iter()
            .zip(0..)
            .map(|(hop, number)| Hop::new(spec, hop, number, foresight.arrival));
        Self {
            first: hops.next().expect("a path has a hop"),
            later: hops.collect(),
            last_hops,
            gone: VecDeque::new(),
            reverse: path.reverse.as_ref().map(reverse),
            hidden_ns: foresight.hidden_ns(path, &classes),
            entries: None,
            classes,
            schedule,
            rare_sources,
            later_sources,
            of_hop,
            foresight,
            plain_delay_ns: 0,
            bin_ns,
            log: spec.record.queue_log,
            loss_reverse: Loss::new(path.loss_reverse),
            bursts_reverse: bursts(&path.bursts_reverse, spec.seed, "bursts reverse", 0),
            delay_reverse_ns: Steps::new(path.delay_reverse_ns, &path.delay_reverse_steps),
            jitter_reverse: Jitter::new(path.jitter_reverse_ns),
            reverse_passed_ns: 0,
            least_delay_ns: least_delay_ns(path),
        }
    }

    fn hops(&self) -> impl Iterator<Item = &Hop<P>> {
        std::iter::once(&self.first).chain(&self.later)
    }

    /// Number of the departures from hop `hop` in the schedule.
    #[inline(always)]
    fn departure(&self, hop: usize) -> usize {
        match hop.checked_sub(1) {
            None => DEPARTURE,
            Some(index) => self.later_sources + self.of_hop * index,
        }
    }

    /// Number of the arrivals at hop `hop`, not the first, from the one before it in the schedule.
    #[inline(always)]
    fn approach(&self, hop: usize) -> usize {
        self.later_sources + self.of_hop * hop - 1
    }

    /// Number of the arrivals from hop `hop` at the path's end in the schedule.
    #[inline(always)]
    fn arrival(&self, hop: usize) -> usize {
        match hop.checked_sub(1) {
            None => ARRIVAL,
            Some(index) => self.later_sources + self.of_hop * index + 1,
        }
    }

    #[inline(always)]
    fn first(&self) -> (Source, Ns) {
        let (source, due_ns) = self.schedule.first();
        let source = match source {
            BINS => Source::Bins,
            TIMERS => Source::Timers,
            DEPARTURE => Source::Departure(0),
            ARRIVAL => Source::Arrival(0),
            _ if source >= self.rare_sources => self.rare_source(source),
            _ if !source.is_multiple_of(2) => Source::Start((source - CLASSES) / 2),
            _ => Source::Hop((source - CLASSES) / 2),
        };
        (source, due_ns)
    }

    /// A source that not every path has.
    #[inline(never)]
    fn rare_source(&self, source: usize) -> Source {
        let Some(of_hops) = source.checked_sub(self.later_sources) else {
            return Source::ReverseDeparture;
        };
        if self.of_hop == 1 {
            return Source::Approach(of_hops + 1);
        }
        let hop = of_hops / OF_HOP + 1;
        match of_hops % OF_HOP {
            0 => Source::Departure(hop),
            1 => Source::Arrival(hop),
            _ => Source::Approach(hop),
        }
    }

    fn next_out_ns(&self) -> Ns {
        let (_, first_ns) = self.schedule.first();
        let inside_ns = first_ns.saturating_add(self.least_delay_ns);
        let to_start = self.classes.iter().map(|class| class.to_start.next_ns());
        to_start.chain(self.hops().map(Hop::next_out_ns)).fold(inside_ns, Ns::min)
    }

    /// [`Self::entries`], none due, where no packet enters the first hop at the instant at which it is sent.
    fn late_entries(&self, spec: &RunSpec) -> Option<Box<Schedule>> {
        let later = |class: &Class<P>| class.first_hop == 0 && !class.direct;
        // Of each flow jitter and losses are drawn in turn, as its packets are sent and enter.
        let jitter = spec.flows.iter().any(|flow| flow.access_jitter_ns > 0);
        let draws_in_turn = jitter && spec.path.hops.iter().any(|hop| hop.loss > 0.0);
        // Else a packet could be answered, and another sent, at an instant of which more is known already.
        let back_later = self.foresight.answer || self.foresight.reverse;
        let late = self.foresight.arrival
            && self.hidden_ns > 0
            && back_later
            && self.classes.iter().all(later)
            && !draws_in_turn;
        late.then(|| Box::new(Schedule::new(self.classes.len())))
    }

    /// Whether the path's only hop is a plain one for data of `port`, and their return is foreseen.
    fn has_plain_hop(&self, port: &Port, path: &PathSpec) -> bool {
        self.foresight.answer
            && self.later.is_empty()
            && self.first.plain_delay_ns(path).is_some()
            && !port.reverse
    }

    /// A packet comes to the first hop where [`Self::has_plain_hop`] holds: all that most packets need.
    #[inline(always)]
    fn offer_plain(&mut self, now_ns: Ns, packet: P, class_index: usize) {
        let Some(departs_ns) = self.first.foresee_plain(now_ns, &packet, &mut self.gone) else {
            return;
        };
        let arrives_ns = departs_ns.saturating_add(self.plain_delay_ns);
        self.go_round(class_index, arrives_ns, &packet);
    }

    /// A packet of a class will arrive at the path's end at `arrives_ns`.
    #[inline(always)]
    fn go_round(&mut self, class_index: usize, arrives_ns: Ns, packet: &P) {
        let class = &mut self.classes[class_index];
        let first = class.round.line.is_empty();
        class.round.line.push_back((arrives_ns, Brief::of(packet)));
        if first {
            let due_ns = class.next_back_ns();
            self.schedule.set(to_start(class_index), due_ns);
        }
    }

    /// A packet starts from the path's start.
    #[inline(always)]
    fn send_forward(&mut self, now_ns: Ns, packet: P, port: &mut Port) {
        let class = &mut self.classes[port.class as usize];
        // Not by this packet's own delay: a jitter of 0 must not overtake an earlier packet's.
        if class.direct {
            return self.offer(now_ns, packet, 0, port);
        }
        let delay_ns = class.access_delay_ns + port.access_jitter_ns();
        let first = class.to_hop.is_empty();
        class.to_hop.push(now_ns, delay_ns, packet);
        if first {
            let due_ns = class.to_hop.next_ns();
            match &mut self.entries {
                None => self.schedule.set(to_hop(port.class as usize), due_ns),
                Some(entries) => {
                    entries.set(port.class as usize, due_ns);
                    self.wake_in_time(0);
                }
            }
        }
    }

    #[inline(never)]
    fn send_ack_forward(&mut self, now_ns: Ns, packet: P, port: &mut Port) {
        self.send_forward(now_ns, packet, port);
    }

    /// A packet of `class` reaches its first hop: it, and which hop that is.
    #[inline]
    fn at_hop(&mut self, class_index: usize, now_ns: Ns) -> Option<(P, usize)> {
        let class = &mut self.classes[class_index];
        let packet = class.to_hop.pop(now_ns)?;
        self.schedule.set(to_hop(class_index), class.to_hop.next_ns());
        Some((packet, class.first_hop))
    }

    fn at_later_hop(&mut self, hop: usize, now_ns: Ns) -> Option<P> {
        let source = self.approach(hop);
        let line = &mut self.later.get_mut(hop - 1)?.approach;
        let packet = line.pop(now_ns)?;
        self.schedule.set(source, line.next_ns());
        Some(packet)
    }

    /// A packet comes to hop `hop`.
    #[inline(always)]
    fn offer(&mut self, now_ns: Ns, packet: P, hop: usize, port: &mut Port) {
        if self.foresight.arrival {
            return self.foresee(now_ns, packet, hop, port);
        }
        let departure = self.departure(hop);
        let at = hop_of(&mut self.first, &mut self.later, hop);
        at.offer(now_ns, packet, &mut port.forward_random, self.log, &mut self.gone);
        self.schedule.set(departure, at.departure_ns());
    }

    /// A packet comes to hop `hop`, which says when packets leave as soon as that is certain.
    #[inline(always)]
    fn foresee(&mut self, now_ns: Ns, packet: P, hop: usize, port: &mut Port) {
        let at = hop_of(&mut self.first, &mut self.later, hop);
        if at.holds_packets() {
            return self.foresee_held(now_ns, packet, hop, port);
        }
        let random = &mut port.forward_random;
        if let Some(departs_ns) = at.foresee(now_ns, &packet, random, &mut self.gone) {
            self.foreseen(packet, departs_ns, hop, port);
        }
    }

    /// The same where the hop holds packets.
    #[inline(never)]
    fn foresee_held(&mut self, now_ns: Ns, packet: P, hop: usize, port: &mut Port) {
        let at = hop_of(&mut self.first, &mut self.later, hop);
        let idle = at.station.held_pkts() == 0;
        let (random, log) = (&mut port.forward_random, self.log);
        let taken = at.offer(now_ns, packet, random, log, &mut self.gone);
        if idle
            && taken
            && let Some((packet, departs_ns)) = at.begun()
        {
            self.foreseen(packet, departs_ns, hop, port);
            self.wake_in_time(hop);
        }
    }

    /// A packet will have left hop `hop` at `departs_ns`: where it is then.
    #[inline(always)]
    fn foreseen(&mut self, packet: P, departs_ns: Ns, hop: usize, port: &mut Port) {
        let at = hop_of(&mut self.first, &mut self.later, hop);
        if self.last_hops.get(packet.flow() as usize).is_some_and(|last| hop < *last) {
            return self.pass_on(hop, departs_ns, packet);
        }
        let arrives_ns = at.arrival_ns(departs_ns);
        if self.foresight.answer {
            self.go_round(port.class as usize, arrives_ns, &packet);
        } else {
            let first = at.to_end.is_empty();
            at.to_end.push(arrives_ns, 0, packet);
            if first {
                self.schedule.set(self.arrival(hop), arrives_ns);
            }
        }
    }

    #[inline(never)]
    fn offer_later(&mut self, now_ns: Ns, packet: P, hop: usize, port: &mut Port) {
        self.offer(now_ns, packet, hop, port);
    }

    /// A packet leaves hop `hop`; the flow whose it is, if that is its last one and it has a
    /// congestion mark.
    #[inline(always)]
    fn depart(&mut self, hop: usize, now_ns: Ns) -> Option<u32> {
        let (departure, arrival) = (self.departure(hop), self.arrival(hop));
        let at = hop_of(&mut self.first, &mut self.later, hop);
        let (packet, marked) = at.depart(now_ns, self.bin_ns > 0, self.log, &mut self.gone)?;
        self.schedule.set(departure, at.departure_ns());
        let flow = packet.flow();
        if self.last_hops.get(flow as usize).is_some_and(|last| hop < *last) {
            self.pass_on(hop, now_ns, packet);
            return None;
        }
        let due_ns = at.go_on(now_ns, packet);
        self.schedule.set(arrival, due_ns);
        marked.then_some(flow)
    }

    /// A packet that leaves hop `hop` at `departs_ns` goes to the next one.
    #[inline(always)]
    fn pass_on(&mut self, hop: usize, departs_ns: Ns, packet: P) {
        let next = &mut self.later[hop];
        let first = next.approach.is_empty();
        next.approach.push(departs_ns, next.approach_delay_ns, packet);
        if self.foresight.arrival {
            if first {
                self.wake_in_time(hop + 1);
            }
        } else {
            let due_ns = next.approach.next_ns();
            self.schedule.set(self.approach(hop + 1), due_ns);
        }
    }

    /// Sees to it that what happens at hop `hop`, which foresees, is made up for before anything is seen of it.
    fn wake_in_time(&mut self, hop: usize) {
        let source = if hop == 0 { DEPARTURE } else { self.approach(hop) };
        let entries = self.entries.as_ref().filter(|_| hop == 0);
        let enters_ns = entries.map_or(NEVER, |entries| entries.first().1);
        let at = hop_of(&mut self.first, &mut self.later, hop);
        let due_ns = at.next_ns().min(enters_ns).saturating_add(self.hidden_ns);
        if due_ns < at.wakes_ns {
            at.wakes_ns = due_ns;
            self.schedule.set(source, due_ns);
        }
    }

    /// The same after it was made up for.
    fn wake_again(&mut self, hop: usize) {
        let source = if hop == 0 { DEPARTURE } else { self.approach(hop) };
        hop_of(&mut self.first, &mut self.later, hop).wakes_ns = NEVER;
        self.schedule.set(source, NEVER);
        self.wake_in_time(hop);
    }

    #[inline(always)]
    fn arrive(&mut self, hop: usize, now_ns: Ns) -> Option<P> {
        let arrival = self.arrival(hop);
        let at = hop_of(&mut self.first, &mut self.later, hop);
        let (packet, due_ns) = at.arrive(now_ns)?;
        self.schedule.set(arrival, due_ns);
        Some(packet)
    }

    /// A packet starts from the path's end.
    #[inline(always)]
    fn send_reverse(&mut self, now_ns: Ns, packet: P, port: &mut Port) {
        let random = &mut port.reverse_random;
        if self.loss_reverse.loses(random) || in_burst(&mut self.bursts_reverse) {
            return self.gone.push_back(Gone::reverse(now_ns, packet, PacketEvent::Lost));
        }
        let jitter_ns = self.jitter_reverse.draw_ns(random);
        match &self.reverse {
            None => self.delay_reverse(now_ns, packet, port.class, jitter_ns),
            Some(_) => self.enter_reverse_link(now_ns, Held { packet, jitter_ns }, port.class),
        }
    }

    #[inline(never)]
    fn send_data_reverse(&mut self, now_ns: Ns, packet: P, port: &mut Port) {
        self.send_reverse(now_ns, packet, port);
    }

    #[inline(never)]
    fn enter_reverse_link(&mut self, now_ns: Ns, held: Held<P>, class: u32) {
        self.settle_reverse(now_ns);
        let Some(reverse) = self.reverse.as_deref_mut() else { return };
        let dropped = match &mut reverse.server {
            Server::Times(_) => match reverse.foresee(now_ns, held.wire_bytes()) {
                Some(departs_ns) => {
                    return self.delay_reverse(departs_ns, held.packet, class, held.jitter_ns);
                }
                None => held,
            },
            Server::Holds(link) => match link.enqueue(now_ns, held) {
                Ok(()) => {
                    let max_pkts = &mut reverse.watch.queue.max_pkts;
                    *max_pkts = link.held_pkts().max(*max_pkts);
                    return self.schedule.set(self.rare_sources, link.next_ns());
                }
                Err(held) => {
                    reverse.watch.count_drop();
                    held
                }
            },
        };
        self.gone.push_back(Gone::reverse(now_ns, dropped.packet, PacketEvent::Dropped));
    }

    /// Makes up for what left the reverse link before `until_ns`.
    #[inline]
    fn settle_reverse(&mut self, until_ns: Ns) {
        let Some(reverse) = self.reverse.as_deref_mut() else { return };
        while reverse.departs_ns < until_ns {
            reverse.leave(self.bin_ns > 0);
        }
    }

    fn leave_reverse_link(&mut self, now_ns: Ns) -> Option<Held<P>> {
        let Station { server: Server::Holds(link), watch, .. } = self.reverse.as_deref_mut()?
        else {
            return None;
        };
        let departed = link.dequeue(now_ns)?;
        self.schedule.set(self.rare_sources, link.next_ns());
        watch.depart(departed.packet.wire_bytes(), departed.waited_ns, self.bin_ns > 0);
        Some(departed.packet)
    }

    /// A packet enters the delay of the reverse direction.
    #[inline(always)]
    fn delay_reverse(&mut self, now_ns: Ns, packet: P, class_index: u32, jitter_ns: Ns) {
        let class = &mut self.classes[class_index as usize];
        let delay_ns = self.delay_reverse_ns.at(now_ns) + jitter_ns;
        // All flows share the reverse direction as they share the forward one; access comes after it.
        self.reverse_passed_ns = self.reverse_passed_ns.max(now_ns.saturating_add(delay_ns));
        let first = class.to_start.is_empty();
        class.to_start.push(self.reverse_passed_ns, class.reverse_delay_ns, packet);
        if first {
            let due_ns = class.to_start.next_ns();
            self.schedule.set(to_start(class_index as usize), due_ns);
        }
    }

    fn close_bin(&mut self, now_ns: Ns) {
        for hop in std::iter::once(&mut self.first).chain(&mut self.later) {
            hop.station.close_bin();
        }
        if let Some(reverse) = &mut self.reverse {
            reverse.close_bin();
        }
        self.schedule.set(BINS, now_ns.saturating_add(self.bin_ns));
    }

    /// Packets on their way in the forward direction, but for data on their round.
    fn forward_packets(&self) -> impl Iterator<Item = &P> {
        let access = self.classes.iter().flat_map(|class| class.to_hop.iter());
        self.hops().flat_map(Hop::under_way).chain(access)
    }

    /// Packets on their way in the reverse direction.
    fn reverse_packets(&self) -> impl Iterator<Item = &P> {
        let held = self.reverse.iter().flat_map(|reverse| reverse.packets());
        let access = self.classes.iter().flat_map(|class| class.to_start.iter());
        held.map(|held| &held.packet).chain(access)
    }
}
