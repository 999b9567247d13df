//! The path of a run: what every host steps with its own clock.

use crate::{
    FlowCounters, FlowSpec, HopSpec, Ns, PacketEvent, PacketLog, PathSpec, QueueBin, QueueRecord,
    ReverseLink, RunSpec,
};
use knee_net::{
    Aqm, BurstLoss, Bursts, DelayLine, Ecn, Jitter, Limit, Link, Loss, NEVER, Overtaking, Packet,
    Queue, Random, Rate, Ring, Schedule, Steps,
};
use std::collections::BTreeMap;

/// A packet that the queue's log can name.
pub trait Numbered: Packet {
    /// Index of its flow.
    fn flow(&self) -> u32;
    /// Segment or packet number within the flow.
    fn number(&self) -> u32;
}

/// What is next due, in order of precedence at the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The end of a bin of the time series.
    Bins,
    /// A timer of the host's own.
    Timers,
    /// A departure from the (first) bottleneck, number 0.
    Departure,
    /// An arrival at the path's end, of a packet that left it.
    Arrival,
    /// An arrival at a bottleneck, through this entrance.
    Bottleneck(usize),
    /// An arrival at the path's start, of a packet of this delay class.
    Sender(usize),
    /// A departure from the link of the way back.
    DepartureBack,
    /// A departure from the bottleneck of this number, behind the first: from 1 on.
    LaterDeparture(usize),
    /// An arrival at the path's end, of a packet that left the bottleneck of this number.
    LaterArrival(usize),
}

const BINS: usize = 0;
const TIMERS: usize = 1;
const DEPARTURE: usize = 2;
const ARRIVAL: usize = 3;
const CLASSES: usize = 4;

/// Sources of each bottleneck behind the first: departure, arrival, what comes from the one before.
const OF_HOP: usize = 3;

#[inline(always)]
fn to_bottleneck(class: usize) -> usize {
    CLASSES + 2 * class
}

#[inline(always)]
fn to_sender(class: usize) -> usize {
    CLASSES + 2 * class + 1
}

/// Where a flow's packets enter the path, and what became of them on it.
#[derive(Clone, Debug)]
pub struct Port {
    class: u32,
    /// Size of its full packets, bytes.
    pub packet_bytes: u32,
    /// Size of its acknowledgements, where the host makes none of its own, bytes.
    pub ack_bytes: u32,
    access_jitter: Jitter,
    forward: Random,
    reverse: Random,
    /// Whether the flow's data take the way back, and its ACKs the way there.
    pub goes_back: bool,
    /// Lost at random on the way there.
    there_losses_pkts: u64,
    /// Dropped by a bottleneck's queue. Those that [`Path::take_dropped`] gives, the host counts.
    pub there_drops_pkts: u64,
    /// Left the last bottleneck with a congestion mark; the host counts what [`Path::depart`] tells.
    pub marked_pkts: u64,
    /// Lost at random on the way back.
    back_losses_pkts: u64,
    /// Dropped by the full queue of the way back.
    back_drops_pkts: u64,
}

impl Port {
    /// `counters` with what became of the flow's packets on the path.
    pub fn count(&self, counters: FlowCounters) -> FlowCounters {
        let there = (self.there_losses_pkts, self.there_drops_pkts);
        let back = (self.back_losses_pkts, self.back_drops_pkts);
        let (data, acks) = if self.goes_back { (back, there) } else { (there, back) };
        FlowCounters {
            random_losses_pkts: data.0,
            queue_drops_pkts: data.1,
            marked_pkts: self.marked_pkts,
            ack_losses_pkts: acks.0,
            ack_drops_pkts: acks.1,
            ..counters
        }
    }
}

/// Packets between the flows' ends at the path's start, those of one delay, and the shared path.
struct Class<F, B> {
    access_delay_ns: Ns,
    /// After the shared way back: that delay, and those between the bottlenecks that it passes.
    back_delay_ns: Ns,
    /// The bottleneck that it leads to.
    first_hop: usize,
    /// Neither delay nor jitter on the way to the first bottleneck: packets are there at once.
    direct: bool,
    to_bottleneck: DelayLine<F>,
    to_sender: DelayLine<B>,
}

/// Packets that do not reach the receivers in the order in which they left the bottleneck.
struct Disorder<F> {
    late: Loss,
    extra_delay_ns: Ns,
    random: Random,
    /// When the forward delay falls, packets overtake.
    falls_reorder: bool,
    /// The delay of the latest packet.
    delay_ns: Ns,
    to_receivers: Overtaking<F>,
}

impl<F> Disorder<F> {
    fn of(path: &PathSpec, seed: u64, hop: u64) -> Option<Box<Self>> {
        if path.reorder.is_none() && !path.falls_reorder {
            return None;
        }
        Some(Box::new(Self {
            late: Loss::new(path.reorder.map_or(0.0, |r| r.probability)),
            extra_delay_ns: path.reorder.map_or(0, |r| r.extra_delay_ns),
            // The link's, not a flow's: it is the link that delays.
            random: Random::stream(seed, "reordering", hop),
            falls_reorder: path.falls_reorder,
            delay_ns: 0,
            to_receivers: Overtaking::default(),
        }))
    }
}

/// A packet on the link of the way back, and where it goes from there.
#[derive(Default)]
struct Held<B> {
    packet: B,
    bytes: u32,
    class: u32,
    jitter_ns: Ns,
}

impl<B: Default> Packet for Held<B> {
    fn wire_bytes(&self) -> u32 {
        self.bytes
    }
}

/// What a queue did, and what it does in the present bin.
#[derive(Default)]
struct Watch {
    queue: QueueRecord,
    bin: QueueBin,
}

impl Watch {
    #[inline(always)]
    fn count_drop(&mut self) {
        self.queue.dropped_pkts += 1;
        self.bin.dropped_pkts += 1;
    }

    /// `bytes` have left after a wait; `bins`: a time series is kept.
    #[inline(always)]
    fn depart(&mut self, bytes: u32, waited_ns: Ns, bins: bool) {
        let bytes = u64::from(bytes);
        self.queue.departed_pkts += 1;
        self.queue.departed_bytes += bytes;
        if bins {
            self.queue.delay.add(waited_ns);
            self.bin.departed_pkts += 1;
            self.bin.departed_bytes += bytes;
            self.bin.delay_sum_ns += waited_ns;
            self.bin.delay_max_ns = self.bin.delay_max_ns.max(waited_ns);
        }
    }

    fn close_bin(&mut self, held_pkts: u32) {
        self.bin.held_pkts = held_pkts;
        self.queue.bins.push(std::mem::take(&mut self.bin));
    }
}

/// A bottleneck and the way from it to the receivers.
struct Hop<F> {
    link: Link<F>,
    loss: Loss,
    bursts: Option<Box<Bursts>>,
    watch: Watch,
    to_receivers: DelayLine<F>,
    disorder: Option<Box<Disorder<F>>>,
    delay_forward_ns: Steps,
    jitter_forward: Jitter,
    jitter_random: Random,
    /// From the bottleneck before it.
    approach: DelayLine<F>,
    approach_delay_ns: Ns,
}

/// The link of the way back.
struct Back<B> {
    link: Link<Held<B>>,
    watch: Watch,
}

/// The path of a [`RunSpec`]: packets `F` towards the receivers pass access, then random loss and
/// bottleneck, once or several times, then delay and jitter; packets `B` back to the senders pass
/// random loss, the link of the way back if there is one, delay and jitter, access. Of a flow that
/// goes back ([`Port::goes_back`]) the former are the ACKs, the latter the data.
///
/// It says what is next due ([`Path::first`]); the host then calls the function of that source
/// with the time at which it was due. What the queues did is recorded as the spec asks.
pub struct Path<F, B> {
    first: Hop<F>,
    /// Dropped by a queue after it had taken them, and not yet taken by the host.
    dropped: Ring<F>,
    link_back: Option<Box<Back<B>>>,
    classes: Vec<Class<F, B>>,
    schedule: Schedule,
    bin_ns: Ns,
    log: bool,
    loss_reverse: Loss,
    bursts_reverse: Option<Box<Bursts>>,
    /// The least that what happens inside precedes what comes out by.
    least_delay_ns: Ns,
    delay_reverse_ns: Steps,
    jitter_reverse: Jitter,
    /// When the latest packet leaves the shared way back: none overtakes it.
    reverse_passed_ns: Ns,
    /// Where the sources stand in the schedule that not every path has.
    rare_sources: usize,
    /// The bottlenecks behind the first, and where their sources stand in the schedule.
    later: Vec<Hop<F>>,
    later_sources: usize,
    /// The last bottleneck of each flow; empty where there is but one.
    last_hops: Vec<usize>,
    /// Whether a flow goes back.
    two_way: bool,
}

/// What the queues of a path did.
#[derive(Debug)]
pub struct PathQueues {
    /// Those of the hops, in order.
    pub queues: Vec<QueueRecord>,
    /// That of the reverse link; none where no flow sends its data there.
    pub reverse_queue: Option<QueueRecord>,
}

/// Bottleneck number `hop`. A function of the fields, not of the path: the others stay free.
#[inline(always)]
fn hop_of<'a, F>(first: &'a mut Hop<F>, later: &'a mut [Hop<F>], hop: usize) -> &'a mut Hop<F> {
    match hop.checked_sub(1) {
        None => first,
        Some(index) => &mut later[index],
    }
}

/// The least delay after a link: of the way there, and of the way back if that has one.
fn least_delay_ns(path: &PathSpec) -> Ns {
    let least =
        |delay_ns: Ns, steps: &[(Ns, Ns)]| steps.iter().map(|(_, ns)| *ns).fold(delay_ns, Ns::min);
    let there_ns = least(path.delay_forward_ns, &path.delay_forward_steps);
    match path.reverse {
        None => there_ns,
        Some(_) => there_ns.min(least(path.delay_reverse_ns, &path.delay_reverse_steps)),
    }
}

impl<F: Numbered, B: Default> Path<F, B> {
    /// The path of `spec`, with a port for each flow.
    pub fn new(spec: &RunSpec) -> (Self, Vec<Port>) {
        let mut classes: Vec<Class<F, B>> = Vec::new();
        let mut class_of: BTreeMap<(Ns, Option<usize>, usize, usize), u32> = BTreeMap::new();
        let port = |(index, flow): (usize, &FlowSpec)| {
            // Jitter is a flow's own: it must not hold another flow's packets back.
            let mut random = spec.random("access delay", index);
            let access_delay_ns = flow.access_delay_ns + random.up_to(flow.access_delay_spread_ns);
            let own = (flow.access_jitter_ns > 0).then_some(index);
            let (first_hop, last_hop) = (flow.route.first_hop, flow.route.last_hop(&spec.path));
            let key = (access_delay_ns, own, first_hop, last_hop);
            let class = *class_of.entry(key).or_insert_with(|| {
                classes.push(Class {
                    access_delay_ns,
                    back_delay_ns: access_delay_ns + spec.path.hops_delay_ns(&flow.route),
                    first_hop,
                    direct: first_hop == 0 && access_delay_ns == 0 && flow.access_jitter_ns == 0,
                    to_bottleneck: DelayLine::default(),
                    to_sender: DelayLine::default(),
                });
                (classes.len() - 1) as u32
            });
            Port {
                class,
                packet_bytes: flow.packet_bytes(),
                ack_bytes: flow.ack_bytes(),
                access_jitter: Jitter::new(flow.access_jitter_ns),
                forward: spec.random("forward", index),
                reverse: spec.random("reverse", index),
                goes_back: flow.route.reverse,
                there_losses_pkts: 0,
                there_drops_pkts: 0,
                marked_pkts: 0,
                back_losses_pkts: 0,
                back_drops_pkts: 0,
            }
        };
        let ports = spec.flows.iter().enumerate().map(port).collect();
        let (path, bin_ns) = (&spec.path, spec.record.bin_ns);
        // What not every path has comes last: it is no source where there is none.
        let rare_sources = to_bottleneck(classes.len());
        let later_sources = rare_sources + usize::from(path.reverse.is_some());
        let mut schedule = Schedule::new(later_sources + OF_HOP * (path.hops.len() - 1));
        schedule.set(BINS, if bin_ns > 0 { bin_ns } else { NEVER });
        let link_back = |back: &ReverseLink| {
            let link = Link::new(back.rate().service(), back.queue);
            Box::new(Back { link, watch: Watch::default() })
        };
        let last_hops = match path.hops.len() {
            1 => Vec::new(),
            _ => spec.flows.iter().map(|flow| flow.route.last_hop(path)).collect(),
        };
        let mut hops = path.hops.iter().zip(0..).map(|(hop, number)| Hop::new(spec, hop, number));
        let path = Self {
            first: hops.next().expect("a path has a hop"),
            dropped: Ring::default(),
            link_back: path.reverse.as_ref().map(link_back),
            classes,
            schedule,
            bin_ns,
            log: spec.record.queue_log,
            loss_reverse: Loss::new(path.loss_reverse),
            bursts_reverse: bursts(&path.bursts_reverse, spec.seed, "bursts reverse", 0),
            least_delay_ns: least_delay_ns(path),
            delay_reverse_ns: Steps::new(path.delay_reverse_ns, &path.delay_reverse_steps),
            jitter_reverse: Jitter::new(path.jitter_reverse_ns),
            reverse_passed_ns: 0,
            rare_sources,
            later: hops.collect(),
            later_sources,
            last_hops,
            two_way: spec.flows.iter().any(|flow| flow.route.reverse),
        };
        (path, ports)
    }

    /// Number of the departures from bottleneck `hop` in the schedule.
    #[inline(always)]
    fn departure(&self, hop: usize) -> usize {
        match hop.checked_sub(1) {
            None => DEPARTURE,
            Some(index) => self.later_sources + OF_HOP * index,
        }
    }

    /// Number of the arrivals from bottleneck `hop` at the path's end in the schedule.
    #[inline(always)]
    fn arrival(&self, hop: usize) -> usize {
        match hop.checked_sub(1) {
            None => ARRIVAL,
            Some(index) => self.later_sources + OF_HOP * index + 1,
        }
    }

    /// What is next due, and when; the time is [`NEVER`] if nothing is.
    #[inline(always)]
    pub fn first(&self) -> (Source, Ns) {
        let (source, due_ns) = self.schedule.first();
        let source = match source {
            BINS => Source::Bins,
            TIMERS => Source::Timers,
            DEPARTURE => Source::Departure,
            ARRIVAL => Source::Arrival,
            _ if source >= self.rare_sources => self.rare_source(source),
            _ if !source.is_multiple_of(2) => Source::Sender((source - CLASSES) / 2),
            _ => Source::Bottleneck((source - CLASSES) / 2),
        };
        (source, due_ns)
    }

    /// A source that not every path has.
    #[inline(never)]
    fn rare_source(&self, source: usize) -> Source {
        let Some(of_hops) = source.checked_sub(self.later_sources) else {
            return Source::DepartureBack;
        };
        let index = of_hops / OF_HOP;
        match of_hops % OF_HOP {
            0 => Source::LaterDeparture(index + 1),
            1 => Source::LaterArrival(index + 1),
            // Behind the entrances of the classes.
            _ => Source::Bottleneck(self.classes.len() + index),
        }
    }

    /// Until then no packet reaches a receiver or a sender, unless another enters the path first.
    /// What is due before happens inside the path: a host in real time may let it wait, and have
    /// it happen at the times that [`Path::first`] gives.
    pub fn next_out_ns(&self) -> Ns {
        let (_, first_ns) = self.schedule.first();
        let inside_ns = first_ns.saturating_add(self.least_delay_ns);
        let later = self.later.iter().map(Hop::next_out_ns);
        let back = self.classes.iter().map(|class| class.to_sender.next_ns());
        back.chain(later).fold(inside_ns.min(self.first.next_out_ns()), Ns::min)
    }

    /// Says when [`Source::Timers`] is next due.
    #[inline]
    pub fn set_timers(&mut self, due_ns: Ns) {
        self.schedule.set(TIMERS, due_ns);
    }

    /// A packet starts on its way from the path's start: a sender's, or the ACK of a flow that goes
    /// back. If it is at the bottleneck at once, as [`Path::offer`].
    #[inline(always)]
    pub fn send(
        &mut self,
        now_ns: Ns,
        packet: F,
        port: &mut Port,
        refused: impl FnOnce(PacketEvent, F),
    ) {
        let class = &mut self.classes[port.class as usize];
        // Not by this packet's own delay: a jitter of 0 must not overtake an earlier packet's.
        if class.direct {
            return self.offer_at(now_ns, packet, 0, port, refused);
        }
        let delay_ns = class.access_delay_ns + port.access_jitter.draw_ns(&mut port.forward);
        class.to_bottleneck.push(now_ns, delay_ns, packet);
        let due_ns = class.to_bottleneck.next_ns();
        self.schedule.set(to_bottleneck(port.class as usize), due_ns);
    }

    /// On [`Source::Bottleneck`]: the packet that reaches a bottleneck through `entrance`, to be
    /// offered, and which bottleneck that is.
    #[inline]
    pub fn at_bottleneck(&mut self, entrance: usize, now_ns: Ns) -> Option<(F, usize)> {
        let Some(class) = self.classes.get_mut(entrance) else {
            return self.at_later_hop(entrance - self.classes.len() + 1, now_ns);
        };
        let packet = class.to_bottleneck.pop(now_ns)?;
        self.schedule.set(to_bottleneck(entrance), class.to_bottleneck.next_ns());
        Some((packet, class.first_hop))
    }

    #[inline(never)]
    fn at_later_hop(&mut self, hop: usize, now_ns: Ns) -> Option<(F, usize)> {
        let source = self.departure(hop) + 2;
        let line = &mut self.later.get_mut(hop - 1)?.approach;
        let packet = line.pop(now_ns)?;
        self.schedule.set(source, line.next_ns());
        Some((packet, hop))
    }

    /// A packet from `port` reaches bottleneck `hop`. Lost or dropped, it is given to `refused`.
    /// Others may be dropped for it: see [`Path::take_dropped`].
    #[inline(always)]
    pub fn offer(
        &mut self,
        now_ns: Ns,
        packet: F,
        hop: usize,
        port: &mut Port,
        refused: impl FnOnce(PacketEvent, F),
    ) {
        // Most paths have one bottleneck: for that one the code stands by itself.
        match hop {
            0 => self.offer_at(now_ns, packet, 0, port, refused),
            later => self.offer_later(now_ns, packet, later, port, refused),
        }
    }

    #[inline(never)]
    fn offer_later(
        &mut self,
        now_ns: Ns,
        packet: F,
        hop: usize,
        port: &mut Port,
        refused: impl FnOnce(PacketEvent, F),
    ) {
        self.offer_at(now_ns, packet, hop, port, refused);
    }

    #[inline(always)]
    fn offer_at(
        &mut self,
        now_ns: Ns,
        packet: F,
        hop: usize,
        port: &mut Port,
        refused: impl FnOnce(PacketEvent, F),
    ) {
        let departure = self.departure(hop);
        let at = hop_of(&mut self.first, &mut self.later, hop);
        let label = Label::of(&packet);
        let event = if at.loss.loses(&mut port.forward) || in_burst(&mut at.bursts) {
            port.there_losses_pkts += 1;
            refused(PacketEvent::Lost, packet);
            PacketEvent::Lost
        } else if let Err(packet) = at.link.enqueue(now_ns, packet) {
            port.there_drops_pkts += 1;
            at.watch.count_drop();
            at.collect_dropped(now_ns, at.link.held_pkts(), self.log, &mut self.dropped);
            refused(PacketEvent::Dropped, packet);
            PacketEvent::Dropped
        } else {
            self.schedule.set(departure, at.link.next_ns());
            at.watch.queue.max_pkts = at.watch.queue.max_pkts.max(at.link.held_pkts());
            // They made room before it came in.
            at.collect_dropped(now_ns, at.link.held_pkts() - 1, self.log, &mut self.dropped);
            PacketEvent::Enqueued
        };
        at.note(now_ns, label, event, at.link.held_pkts(), self.log);
    }

    /// A packet that a queue dropped after it had taken it. After each event in which packets came to
    /// a bottleneck or left one the host takes them all, and counts them at their flows' ports.
    #[inline]
    pub fn take_dropped(&mut self) -> Option<F> {
        self.dropped.pop_front()
    }

    /// On [`Source::Departure`] and [`Source::LaterDeparture`]: a packet leaves bottleneck `hop`; the flow whose it is, if it leaves
    /// its last one with a congestion mark. Others may be dropped then: see [`Path::take_dropped`].
    #[inline(always)]
    pub fn depart(&mut self, hop: usize, now_ns: Ns) -> Option<u32> {
        let departure = self.departure(hop);
        let at = hop_of(&mut self.first, &mut self.later, hop);
        let departed = at.link.dequeue(now_ns)?;
        self.schedule.set(departure, at.link.next_ns());
        let (packet, waited_ns) = (departed.packet, departed.waited_ns);
        at.watch.depart(packet.wire_bytes(), waited_ns, self.bin_ns > 0);
        let held_pkts = at.link.held_pkts();
        let before_drops_pkts = held_pkts + at.link.dropped_pkts();
        at.note(now_ns, Label::of(&packet), PacketEvent::Departed, before_drops_pkts, self.log);
        at.collect_dropped(now_ns, held_pkts, self.log, &mut self.dropped);
        let marked = (packet.ecn() == Ecn::Marked).then(|| packet.flow());
        if marked.is_some() {
            at.watch.queue.marked_pkts += 1;
            at.watch.bin.marked_pkts += 1;
        }
        if self.last_hops.get(packet.flow() as usize).is_some_and(|last| hop < *last) {
            self.pass_on(hop, now_ns, packet);
            return None;
        }
        let jitter_ns = at.jitter_forward.draw_ns(&mut at.jitter_random);
        let delay_ns = at.delay_forward_ns.at(now_ns) + jitter_ns;
        let due_ns = if at.disorder.is_some() {
            at.depart_in_disorder(now_ns, delay_ns, packet)
        } else {
            at.to_receivers.push(now_ns, delay_ns, packet);
            at.to_receivers.next_ns()
        };
        let arrival = self.arrival(hop);
        self.schedule.set(arrival, due_ns);
        marked
    }

    /// A packet goes from bottleneck `hop` to the next one.
    #[inline(never)]
    fn pass_on(&mut self, hop: usize, now_ns: Ns, packet: F) {
        let source = self.departure(hop + 1) + 2;
        let next = &mut self.later[hop];
        next.approach.push(now_ns, next.approach_delay_ns, packet);
        self.schedule.set(source, next.approach.next_ns());
    }

    /// On [`Source::Arrival`] and [`Source::LaterArrival`]: the packet that left bottleneck `hop` and reaches the path's end.
    #[inline(always)]
    pub fn arrive(&mut self, hop: usize, now_ns: Ns) -> Option<F> {
        let at = hop_of(&mut self.first, &mut self.later, hop);
        let (packet, due_ns) = if at.disorder.is_some() {
            at.arrive_in_disorder(now_ns)?
        } else {
            (at.to_receivers.pop(now_ns)?, at.to_receivers.next_ns())
        };
        let arrival = self.arrival(hop);
        self.schedule.set(arrival, due_ns);
        Some(packet)
    }

    /// Whether a packet of `port` is lost on the reverse path; asked before [`Path::send_back`].
    #[inline]
    pub fn loses_back(&mut self, port: &mut Port) -> bool {
        let loses =
            self.loss_reverse.loses(&mut port.reverse) || in_burst(&mut self.bursts_reverse);
        port.back_losses_pkts += u64::from(loses);
        loses
    }

    /// A packet of `bytes` starts on its way from the path's end: a receiver's, or the data of a flow
    /// that goes back. If the queue of the way back drops it, it is given to `refused`.
    #[inline(always)]
    pub fn send_back(
        &mut self,
        now_ns: Ns,
        packet: B,
        bytes: u32,
        port: &mut Port,
        refused: impl FnOnce(B),
    ) {
        let jitter_ns = self.jitter_reverse.draw_ns(&mut port.reverse);
        if self.link_back.is_none() {
            return self.leave_back(now_ns, packet, port.class, jitter_ns);
        }
        let held = Held { packet, bytes, class: port.class, jitter_ns };
        if let Some(dropped) = self.queue_back(now_ns, held, port) {
            refused(dropped);
        }
    }

    /// A packet comes to the link of the way back; the packet, if its queue is full.
    #[inline(never)]
    fn queue_back(&mut self, now_ns: Ns, held: Held<B>, port: &mut Port) -> Option<B> {
        let Back { link, watch } = &mut **self.link_back.as_mut()?;
        if let Err(held) = link.enqueue(now_ns, held) {
            port.back_drops_pkts += 1;
            watch.count_drop();
            return Some(held.packet);
        }
        watch.queue.max_pkts = watch.queue.max_pkts.max(link.held_pkts());
        self.schedule.set(self.rare_sources, link.next_ns());
        None
    }

    /// On [`Source::DepartureBack`]: a packet leaves the link of the way back.
    pub fn depart_back(&mut self, now_ns: Ns) {
        let Some(back) = &mut self.link_back else { return };
        let Some(departed) = back.link.dequeue(now_ns) else { return };
        self.schedule.set(self.rare_sources, back.link.next_ns());
        let Held { packet, bytes, class, jitter_ns } = departed.packet;
        back.watch.depart(bytes, departed.waited_ns, self.bin_ns > 0);
        self.leave_back(now_ns, packet, class, jitter_ns);
    }

    /// A packet enters the delay of the way back.
    #[inline(always)]
    fn leave_back(&mut self, now_ns: Ns, packet: B, class_index: u32, jitter_ns: Ns) {
        let class = &mut self.classes[class_index as usize];
        let delay_ns = self.delay_reverse_ns.at(now_ns) + jitter_ns;
        // All flows share the way back as they share the way there; access comes after it.
        self.reverse_passed_ns = self.reverse_passed_ns.max(now_ns + delay_ns);
        class.to_sender.push(self.reverse_passed_ns, class.back_delay_ns, packet);
        let due_ns = class.to_sender.next_ns();
        self.schedule.set(to_sender(class_index as usize), due_ns);
    }

    /// On [`Source::Sender`]: the packet of `class` that reaches the path's start.
    #[inline]
    pub fn back(&mut self, class: usize, now_ns: Ns) -> Option<B> {
        let line = &mut self.classes[class].to_sender;
        let packet = line.pop(now_ns)?;
        self.schedule.set(to_sender(class), line.next_ns());
        Some(packet)
    }

    /// The packet from the first bottleneck that will arrive `ahead` places after the next one.
    #[inline]
    pub fn peek_arrival(&self, ahead: usize) -> Option<&F> {
        self.first.to_receivers.peek(ahead)
    }

    /// The packet that will come back `ahead` places after the next one of `class`.
    #[inline]
    pub fn peek_back(&self, class: usize, ahead: usize) -> Option<&B> {
        self.classes[class].to_sender.peek(ahead)
    }

    /// On [`Source::Bins`], and at the end of a run: ends a bin of the time series.
    pub fn close_bin(&mut self, now_ns: Ns) {
        for hop in std::iter::once(&mut self.first).chain(&mut self.later) {
            hop.watch.close_bin(hop.link.held_pkts());
        }
        if let Some(back) = &mut self.link_back {
            back.watch.close_bin(back.link.held_pkts());
        }
        self.schedule.set(BINS, now_ns.saturating_add(self.bin_ns));
    }

    /// Packets that the (first) bottleneck holds, the one in transmission included.
    pub fn held_pkts(&self) -> u32 {
        self.first.link.held_pkts()
    }

    /// Packets on the way there: data, and the ACKs of flows that go back.
    pub fn under_way(&self) -> impl Iterator<Item = &F> {
        let hops = std::iter::once(&self.first).chain(&self.later);
        let classes = self.classes.iter().flat_map(|class| class.to_bottleneck.iter());
        hops.flat_map(Hop::under_way).chain(classes)
    }

    /// Packets on the way back: ACKs, and the data of flows that go back.
    pub fn under_way_back(&self) -> impl Iterator<Item = &B> {
        let held = self.link_back.iter().flat_map(|back| back.link.iter());
        let classes = self.classes.iter().flat_map(|class| class.to_sender.iter());
        held.map(|held| &held.packet).chain(classes)
    }

    /// What the queue of the (first) bottleneck did until now.
    pub fn queue(&self) -> &QueueRecord {
        &self.first.watch.queue
    }

    /// Bytes that have left the path's last bottleneck until now.
    pub fn departed_bytes(&self) -> u64 {
        self.later.last().unwrap_or(&self.first).watch.queue.departed_bytes
    }

    /// Ends the path; what its queues did.
    pub fn finish(self) -> PathQueues {
        let back = self.link_back.filter(|_| self.two_way);
        PathQueues {
            queues: [self.first].into_iter().chain(self.later).map(|hop| hop.watch.queue).collect(),
            reverse_queue: back.map(|back| back.watch.queue),
        }
    }
}

fn bursts(loss: &Option<BurstLoss>, seed: u64, way: &str, hop: u64) -> Option<Box<Bursts>> {
    let loss = loss.as_ref()?;
    Some(Box::new(Bursts::new(loss, Random::stream(seed, way, hop))))
}

/// Whether a packet is lost in a burst.
#[inline]
fn in_burst(bursts: &mut Option<Box<Bursts>>) -> bool {
    bursts.as_mut().is_some_and(|bursts| bursts.loses())
}

impl<F: Numbered> Hop<F> {
    /// Hop `number`, which `hop` describes.
    fn new(spec: &RunSpec, hop: &HopSpec, number: u64) -> Self {
        let path = &spec.path;
        Self {
            link: link(spec, hop.rate(), hop.queue, hop.aqm.as_ref(), number),
            loss: Loss::new(hop.loss),
            bursts: bursts(&hop.bursts, spec.seed, "bursts forward", number),
            watch: Watch::default(),
            to_receivers: DelayLine::default(),
            disorder: Disorder::of(path, spec.seed, number),
            delay_forward_ns: Steps::new(path.delay_forward_ns, &path.delay_forward_steps),
            jitter_forward: Jitter::new(path.jitter_forward_ns),
            jitter_random: Random::stream(spec.seed, "path jitter", number),
            approach: DelayLine::default(),
            approach_delay_ns: hop.delay_ns,
        }
    }

    /// When the next packet from it reaches the path's end.
    fn next_out_ns(&self) -> Ns {
        let in_order_ns = self.to_receivers.next_ns();
        match &self.disorder {
            None => in_order_ns,
            Some(disorder) => in_order_ns.min(disorder.to_receivers.next_ns()),
        }
    }

    /// Takes what the queue has dropped after it had taken it; `held_pkts` were then left.
    #[inline(always)]
    fn collect_dropped(&mut self, now_ns: Ns, held_pkts: u32, log: bool, dropped: &mut Ring<F>) {
        // Drop-tail never does.
        if self.link.dropped_pkts() > 0 {
            self.collect_all_dropped(now_ns, held_pkts, log, dropped);
        }
    }

    #[inline(never)]
    fn collect_all_dropped(
        &mut self,
        now_ns: Ns,
        held_pkts: u32,
        log: bool,
        dropped: &mut Ring<F>,
    ) {
        while let Some(packet) = self.link.take_dropped() {
            self.watch.count_drop();
            let held_pkts = held_pkts + self.link.dropped_pkts();
            self.note(now_ns, Label::of(&packet), PacketEvent::Dropped, held_pkts, log);
            dropped.push_back(packet);
        }
    }

    #[inline(always)]
    fn note(&mut self, time_ns: Ns, label: Label, event: PacketEvent, held_pkts: u32, log: bool) {
        if log {
            let Label { flow, number, bytes } = label;
            let line = PacketLog { time_ns, flow, number, bytes, held_pkts, event };
            self.watch.queue.log.push(line);
        }
    }

    /// A packet leaves for a way on which packets overtake each other; when the next one arrives.
    #[inline(never)]
    fn depart_in_disorder(&mut self, now_ns: Ns, delay_ns: Ns, packet: F) -> Ns {
        let Some(disorder) = &mut self.disorder else { return NEVER };
        let path_delay_ns = self.delay_forward_ns.at(now_ns);
        if disorder.falls_reorder && path_delay_ns < disorder.delay_ns {
            // Those that left before take their time; those behind are no longer held up by them.
            let mut before = std::mem::take(&mut self.to_receivers);
            loop {
                let due_ns = before.next_ns();
                let Some(packet) = before.pop(due_ns) else { break };
                disorder.to_receivers.push(due_ns, packet);
            }
        }
        disorder.delay_ns = path_delay_ns;
        if disorder.late.loses(&mut disorder.random) {
            disorder.to_receivers.push(now_ns + delay_ns + disorder.extra_delay_ns, packet);
        } else {
            self.to_receivers.push(now_ns, delay_ns, packet);
        }
        self.next_out_ns()
    }

    /// As [`Path::arrive`], where packets overtake each other; with when the next one arrives. Of two
    /// that arrive at once the one that was overtaken is first: it left before.
    #[inline(never)]
    fn arrive_in_disorder(&mut self, now_ns: Ns) -> Option<(F, Ns)> {
        let disorder = self.disorder.as_mut()?;
        let packet = if disorder.to_receivers.next_ns() <= self.to_receivers.next_ns() {
            disorder.to_receivers.pop(now_ns)?
        } else {
            self.to_receivers.pop(now_ns)?
        };
        Some((packet, self.next_out_ns()))
    }

    /// Packets at it, before it and behind it, up to the next bottleneck.
    fn under_way(&self) -> impl Iterator<Item = &F> {
        let held = self.link.iter().chain(self.to_receivers.iter()).chain(self.approach.iter());
        held.chain(self.disorder.iter().flat_map(|d| d.to_receivers.iter()))
    }
}

/// The link of bottleneck `number`, with its queue.
fn link<F: Packet>(
    spec: &RunSpec,
    rate: Rate<'_>,
    limit: Limit,
    aqm: Option<&Aqm>,
    number: u64,
) -> Link<F> {
    let queue = match aqm {
        None => Queue::drop_tail(limit),
        Some(aqm) => {
            let mean_bps = rate.mean_bps(0, spec.duration_ns);
            let random = Random::stream(spec.seed, "queue", number);
            Queue::managed(limit, aqm, mean_bps as u64, random)
        }
    };
    Link::behind(queue, rate.service())
}

/// What the log needs of a packet that the queue is to own.
#[derive(Clone, Copy)]
struct Label {
    flow: u32,
    number: u32,
    bytes: u32,
}

impl Label {
    #[inline]
    fn of(packet: &impl Numbered) -> Self {
        Self { flow: packet.flow(), number: packet.number(), bytes: packet.wire_bytes() }
    }
}
