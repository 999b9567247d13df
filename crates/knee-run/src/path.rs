//! The path of a run: what every host steps with its own clock.

use crate::{
    FlowCounters, FlowSpec, Ns, PacketEvent, PacketLog, PathSpec, QueueBin, QueueRecord,
    ReverseLink, RunSpec,
};
use knee_net::{
    BurstLoss, Bursts, DelayLine, Ecn, Jitter, Link, Loss, NEVER, Overtaking, Packet, Queue,
    Random, Ring, Schedule, Steps,
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
    /// A departure from the bottleneck.
    Departure,
    /// An arrival at a receiver.
    Arrival,
    /// An arrival at the bottleneck, of a packet of this delay class.
    Bottleneck(usize),
    /// An arrival at a sender, of a packet of this delay class.
    Sender(usize),
    /// A departure from the link of the way back.
    DepartureBack,
}

const BINS: usize = 0;
const TIMERS: usize = 1;
const DEPARTURE: usize = 2;
const ARRIVAL: usize = 3;
const CLASSES: usize = 4;

/// The two ways, in pairs.
const FORWARD: usize = 0;
const BACK: usize = 1;

fn to_bottleneck(class: usize) -> usize {
    CLASSES + 2 * class
}

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
    /// Lost at random towards the receiver.
    pub random_losses_pkts: u64,
    /// Dropped by the bottleneck's queue. Those that [`Path::take_dropped`] gives, the host counts.
    pub queue_drops_pkts: u64,
    /// Left the bottleneck with a congestion mark; the host counts what [`Path::depart`] tells.
    pub marked_pkts: u64,
    /// Lost at random on the way back.
    pub ack_losses_pkts: u64,
    /// Dropped by the full queue of the way back.
    pub ack_drops_pkts: u64,
}

impl Port {
    /// `counters` with what became of the flow's packets on the path.
    pub fn count(&self, counters: FlowCounters) -> FlowCounters {
        FlowCounters {
            random_losses_pkts: self.random_losses_pkts,
            queue_drops_pkts: self.queue_drops_pkts,
            marked_pkts: self.marked_pkts,
            ack_losses_pkts: self.ack_losses_pkts,
            ack_drops_pkts: self.ack_drops_pkts,
            ..counters
        }
    }
}

/// Packets between the senders of one access delay and the shared path.
struct Class<F, B> {
    access_delay_ns: Ns,
    /// Neither delay nor jitter on the way to the bottleneck: packets are there at once.
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
    fn of(path: &PathSpec, seed: u64) -> Option<Box<Self>> {
        if path.reorder.is_none() && !path.falls_reorder {
            return None;
        }
        Some(Box::new(Self {
            late: Loss::new(path.reorder.map_or(0.0, |r| r.probability)),
            extra_delay_ns: path.reorder.map_or(0, |r| r.extra_delay_ns),
            // The link's, not a flow's: it is the link that delays.
            random: Random::stream(seed, "reordering", 0),
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

/// The path of a [`RunSpec`]: packets `F` towards the receivers pass access, random loss, the
/// bottleneck, delay and jitter; packets `B` back to the senders pass random loss, the link of the
/// way back if there is one, delay and jitter, access.
///
/// It says what is next due ([`Path::first`]); the host then calls the function of that source
/// with the time at which it was due. What the queue did is recorded as the spec asks.
pub struct Path<F, B> {
    link: Link<F>,
    /// Dropped by the queue after it had taken them, and not yet taken by the host.
    dropped: Ring<F>,
    to_receivers: DelayLine<F>,
    disorder: Option<Box<Disorder<F>>>,
    link_back: Option<Box<Link<Held<B>>>>,
    classes: Vec<Class<F, B>>,
    schedule: Schedule,
    loss_forward: Loss,
    queue: QueueRecord,
    bin: QueueBin,
    bin_ns: Ns,
    log: bool,
    loss_reverse: Loss,
    /// One box for both ways: most paths have neither.
    bursts: Option<Box<[Option<Bursts>; 2]>>,
    /// The least that what happens inside precedes what comes out by.
    least_delay_ns: Ns,
    delay_forward_ns: Steps,
    delay_reverse_ns: Steps,
    jitter_forward: Jitter,
    jitter_reverse: Jitter,
    /// When the latest packet leaves the shared way back: none overtakes it.
    reverse_passed_ns: Ns,
    jitter_random: Random,
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
        let mut class_of: BTreeMap<(Ns, Option<usize>), u32> = BTreeMap::new();
        let port = |(index, flow): (usize, &FlowSpec)| {
            // Jitter is a flow's own: it must not hold another flow's packets back.
            let mut random = spec.random("access delay", index);
            let access_delay_ns = flow.access_delay_ns + random.up_to(flow.access_delay_spread_ns);
            let key = (access_delay_ns, (flow.access_jitter_ns > 0).then_some(index));
            let class = *class_of.entry(key).or_insert_with(|| {
                classes.push(Class {
                    access_delay_ns,
                    direct: access_delay_ns == 0 && flow.access_jitter_ns == 0,
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
                random_losses_pkts: 0,
                queue_drops_pkts: 0,
                marked_pkts: 0,
                ack_losses_pkts: 0,
                ack_drops_pkts: 0,
            }
        };
        let ports = spec.flows.iter().enumerate().map(port).collect();
        let (path, bin_ns) = (&spec.path, spec.record.bin_ns);
        // The link of the way back comes last: it is a source only where there is one.
        let sources = to_bottleneck(classes.len()) + usize::from(path.reverse.is_some());
        let mut schedule = Schedule::new(sources);
        schedule.set(BINS, if bin_ns > 0 { bin_ns } else { NEVER });
        let queue = match &path.aqm {
            None => Queue::drop_tail(path.queue),
            Some(aqm) => {
                let mean_bps = path.rate().mean_bps(0, spec.duration_ns);
                Queue::managed(path.queue, aqm, mean_bps as u64, spec.seed)
            }
        };
        let link_back = |back: &ReverseLink| Box::new(Link::new(back.rate().service(), back.queue));
        let bursts = |loss: &Option<BurstLoss>, way: &str| {
            loss.as_ref().map(|loss| Bursts::new(loss, Random::stream(spec.seed, way, 0)))
        };
        let bursts = [
            bursts(&path.bursts_forward, "bursts forward"),
            bursts(&path.bursts_reverse, "bursts reverse"),
        ];
        let path = Self {
            link: Link::behind(queue, path.rate().service()),
            dropped: Ring::default(),
            to_receivers: DelayLine::default(),
            disorder: Disorder::of(path, spec.seed),
            link_back: path.reverse.as_ref().map(link_back),
            classes,
            schedule,
            loss_forward: Loss::new(path.loss_forward),
            queue: QueueRecord::default(),
            bin: QueueBin::default(),
            bin_ns,
            log: spec.record.queue_log,
            loss_reverse: Loss::new(path.loss_reverse),
            bursts: bursts.iter().any(Option::is_some).then(|| Box::new(bursts)),
            least_delay_ns: least_delay_ns(path),
            delay_forward_ns: Steps::new(path.delay_forward_ns, &path.delay_forward_steps),
            delay_reverse_ns: Steps::new(path.delay_reverse_ns, &path.delay_reverse_steps),
            jitter_forward: Jitter::new(path.jitter_forward_ns),
            jitter_reverse: Jitter::new(path.jitter_reverse_ns),
            reverse_passed_ns: 0,
            jitter_random: Random::stream(spec.seed, "path jitter", 0),
        };
        (path, ports)
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
            _ if !source.is_multiple_of(2) => Source::Sender((source - CLASSES) / 2),
            _ if source == to_bottleneck(self.classes.len()) => Source::DepartureBack,
            _ => Source::Bottleneck((source - CLASSES) / 2),
        };
        (source, due_ns)
    }

    /// Until then no packet reaches a receiver or a sender, unless another enters the path first.
    /// What is due before happens inside the path: a host in real time may let it wait, and have
    /// it happen at the times that [`Path::first`] gives.
    pub fn next_out_ns(&self) -> Ns {
        let (_, first_ns) = self.schedule.first();
        let inside_ns = first_ns.saturating_add(self.least_delay_ns);
        let overtaking_ns = self.disorder.as_ref().map_or(NEVER, |d| d.to_receivers.next_ns());
        let there_ns = self.to_receivers.next_ns().min(overtaking_ns);
        let back = self.classes.iter().map(|class| class.to_sender.next_ns());
        back.fold(inside_ns.min(there_ns), Ns::min)
    }

    /// Says when [`Source::Timers`] is next due.
    #[inline]
    pub fn set_timers(&mut self, due_ns: Ns) {
        self.schedule.set(TIMERS, due_ns);
    }

    /// A sender's packet starts on its way. If it is at the bottleneck at once, as
    /// [`Path::offer`].
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
            return self.offer(now_ns, packet, port, refused);
        }
        let delay_ns = class.access_delay_ns + port.access_jitter.draw_ns(&mut port.forward);
        class.to_bottleneck.push(now_ns, delay_ns, packet);
        let due_ns = class.to_bottleneck.next_ns();
        self.schedule.set(to_bottleneck(port.class as usize), due_ns);
    }

    /// On [`Source::Bottleneck`]: the packet of `class` that reaches it, to be offered.
    #[inline]
    pub fn at_bottleneck(&mut self, class: usize, now_ns: Ns) -> Option<F> {
        let line = &mut self.classes[class].to_bottleneck;
        let packet = line.pop(now_ns)?;
        self.schedule.set(to_bottleneck(class), line.next_ns());
        Some(packet)
    }

    /// A packet from `port` reaches the bottleneck. Lost or dropped, it is given to `refused`. Others
    /// may be dropped for it: see [`Path::take_dropped`].
    #[inline]
    pub fn offer(
        &mut self,
        now_ns: Ns,
        packet: F,
        port: &mut Port,
        refused: impl FnOnce(PacketEvent, F),
    ) {
        let label = Label::of(&packet);
        let event = if self.loss_forward.loses(&mut port.forward) || self.in_burst(FORWARD) {
            port.random_losses_pkts += 1;
            refused(PacketEvent::Lost, packet);
            PacketEvent::Lost
        } else if let Err(packet) = self.link.enqueue(now_ns, packet) {
            port.queue_drops_pkts += 1;
            self.queue.dropped_pkts += 1;
            self.bin.dropped_pkts += 1;
            self.collect_dropped(now_ns, self.link.held_pkts());
            refused(PacketEvent::Dropped, packet);
            PacketEvent::Dropped
        } else {
            self.schedule.set(DEPARTURE, self.link.next_ns());
            self.queue.max_pkts = self.queue.max_pkts.max(self.link.held_pkts());
            // They made room before it came in.
            self.collect_dropped(now_ns, self.link.held_pkts() - 1);
            PacketEvent::Enqueued
        };
        self.note(now_ns, label, event, self.link.held_pkts());
    }

    /// Takes what the queue has dropped after it had taken it; `held_pkts` were then left.
    #[inline(always)]
    fn collect_dropped(&mut self, now_ns: Ns, held_pkts: u32) {
        // Drop-tail never does.
        if self.link.dropped_pkts() > 0 {
            self.collect_all_dropped(now_ns, held_pkts);
        }
    }

    #[inline(never)]
    fn collect_all_dropped(&mut self, now_ns: Ns, held_pkts: u32) {
        while let Some(packet) = self.link.take_dropped() {
            self.queue.dropped_pkts += 1;
            self.bin.dropped_pkts += 1;
            let held_pkts = held_pkts + self.link.dropped_pkts();
            self.note(now_ns, Label::of(&packet), PacketEvent::Dropped, held_pkts);
            self.dropped.push_back(packet);
        }
    }

    /// A packet that the queue dropped after it had taken it. After each event the host takes them
    /// all, and counts them at their flows' ports.
    #[inline]
    pub fn take_dropped(&mut self) -> Option<F> {
        self.dropped.pop_front()
    }

    /// Whether a packet of this way is lost in a burst.
    #[inline]
    fn in_burst(&mut self, way: usize) -> bool {
        let bursts = self.bursts.as_mut().and_then(|bursts| bursts[way].as_mut());
        bursts.is_some_and(Bursts::loses)
    }

    #[inline(always)]
    fn note(&mut self, time_ns: Ns, label: Label, event: PacketEvent, held_pkts: u32) {
        if self.log {
            let Label { flow, number, bytes } = label;
            self.queue.log.push(PacketLog { time_ns, flow, number, bytes, held_pkts, event });
        }
    }

    /// On [`Source::Departure`]: a packet leaves the bottleneck; the flow whose it is, if it has a
    /// congestion mark. Others may be dropped then: see [`Path::take_dropped`].
    #[inline(always)]
    pub fn depart(&mut self, now_ns: Ns) -> Option<u32> {
        let departed = self.link.dequeue(now_ns)?;
        self.schedule.set(DEPARTURE, self.link.next_ns());
        let (packet, waited_ns) = (departed.packet, departed.waited_ns);
        let bytes = u64::from(packet.wire_bytes());
        self.queue.departed_pkts += 1;
        self.queue.departed_bytes += bytes;
        if self.bin_ns > 0 {
            self.queue.delay.add(waited_ns);
            self.bin.departed_pkts += 1;
            self.bin.departed_bytes += bytes;
            self.bin.delay_sum_ns += waited_ns;
            self.bin.delay_max_ns = self.bin.delay_max_ns.max(waited_ns);
        }
        let held_pkts = self.link.held_pkts();
        let before_drops_pkts = held_pkts + self.link.dropped_pkts();
        self.note(now_ns, Label::of(&packet), PacketEvent::Departed, before_drops_pkts);
        self.collect_dropped(now_ns, held_pkts);
        let marked = (packet.ecn() == Ecn::Marked).then(|| packet.flow());
        if marked.is_some() {
            self.queue.marked_pkts += 1;
            self.bin.marked_pkts += 1;
        }
        let jitter_ns = self.jitter_forward.draw_ns(&mut self.jitter_random);
        let delay_ns = self.delay_forward_ns.at(now_ns) + jitter_ns;
        if self.disorder.is_some() {
            self.depart_in_disorder(now_ns, delay_ns, packet);
        } else {
            self.to_receivers.push(now_ns, delay_ns, packet);
            self.schedule.set(ARRIVAL, self.to_receivers.next_ns());
        }
        marked
    }

    /// A packet leaves the bottleneck for a way on which packets overtake each other.
    #[inline(never)]
    fn depart_in_disorder(&mut self, now_ns: Ns, delay_ns: Ns, packet: F) {
        let Some(disorder) = &mut self.disorder else { return };
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
        self.schedule
            .set(ARRIVAL, disorder.to_receivers.next_ns().min(self.to_receivers.next_ns()));
    }

    /// As [`Path::arrive`], where packets overtake each other. Of two that arrive at once the one
    /// that was overtaken is first: it left before.
    #[inline(never)]
    fn arrive_in_disorder(&mut self, now_ns: Ns) -> Option<F> {
        let disorder = self.disorder.as_mut()?;
        let in_order_ns = self.to_receivers.next_ns();
        let packet = if disorder.to_receivers.next_ns() <= in_order_ns {
            disorder.to_receivers.pop(now_ns)?
        } else {
            self.to_receivers.pop(now_ns)?
        };
        self.schedule
            .set(ARRIVAL, disorder.to_receivers.next_ns().min(self.to_receivers.next_ns()));
        Some(packet)
    }

    /// On [`Source::Arrival`]: the packet that reaches its receiver.
    #[inline]
    pub fn arrive(&mut self, now_ns: Ns) -> Option<F> {
        if self.disorder.is_some() {
            return self.arrive_in_disorder(now_ns);
        }
        let packet = self.to_receivers.pop(now_ns)?;
        self.schedule.set(ARRIVAL, self.to_receivers.next_ns());
        Some(packet)
    }

    /// Whether a packet of `port` is lost on the way back; asked before [`Path::send_back`].
    #[inline]
    pub fn loses_back(&mut self, port: &mut Port) -> bool {
        let loses = self.loss_reverse.loses(&mut port.reverse) || self.in_burst(BACK);
        port.ack_losses_pkts += u64::from(loses);
        loses
    }

    /// A receiver's packet of `bytes` starts on its way. If the queue of the way back drops it, it
    /// is given to `refused`.
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
        let link = self.link_back.as_mut()?;
        if let Err(held) = link.enqueue(now_ns, held) {
            port.ack_drops_pkts += 1;
            return Some(held.packet);
        }
        self.schedule.set(to_bottleneck(self.classes.len()), link.next_ns());
        None
    }

    /// On [`Source::DepartureBack`]: a packet leaves the link of the way back.
    pub fn depart_back(&mut self, now_ns: Ns) {
        let Some(link) = &mut self.link_back else { return };
        let Some(departed) = link.dequeue(now_ns) else { return };
        self.schedule.set(to_bottleneck(self.classes.len()), link.next_ns());
        let Held { packet, class, jitter_ns, .. } = departed.packet;
        self.leave_back(now_ns, packet, class, jitter_ns);
    }

    /// A packet enters the delay of the way back.
    #[inline]
    fn leave_back(&mut self, now_ns: Ns, packet: B, class_index: u32, jitter_ns: Ns) {
        let class = &mut self.classes[class_index as usize];
        let delay_ns = self.delay_reverse_ns.at(now_ns) + jitter_ns;
        // All flows share the way back as they share the way there; access comes after it.
        self.reverse_passed_ns = self.reverse_passed_ns.max(now_ns + delay_ns);
        class.to_sender.push(self.reverse_passed_ns, class.access_delay_ns, packet);
        let due_ns = class.to_sender.next_ns();
        self.schedule.set(to_sender(class_index as usize), due_ns);
    }

    /// On [`Source::Sender`]: the packet of `class` that reaches its sender.
    #[inline]
    pub fn back(&mut self, class: usize, now_ns: Ns) -> Option<B> {
        let line = &mut self.classes[class].to_sender;
        let packet = line.pop(now_ns)?;
        self.schedule.set(to_sender(class), line.next_ns());
        Some(packet)
    }

    /// The packet that will arrive `ahead` places after the next one.
    #[inline]
    pub fn peek_arrival(&self, ahead: usize) -> Option<&F> {
        self.to_receivers.peek(ahead)
    }

    /// The packet that will come back `ahead` places after the next one of `class`.
    #[inline]
    pub fn peek_back(&self, class: usize, ahead: usize) -> Option<&B> {
        self.classes[class].to_sender.peek(ahead)
    }

    /// On [`Source::Bins`], and at the end of a run: ends a bin of the time series.
    pub fn close_bin(&mut self, now_ns: Ns) {
        self.bin.held_pkts = self.link.held_pkts();
        self.queue.bins.push(std::mem::take(&mut self.bin));
        self.schedule.set(BINS, now_ns.saturating_add(self.bin_ns));
    }

    /// Packets that the bottleneck holds, the one in transmission included.
    pub fn held_pkts(&self) -> u32 {
        self.link.held_pkts()
    }

    /// Packets on their way to the receivers.
    pub fn under_way(&self) -> impl Iterator<Item = &F> {
        let held = self.link.iter().chain(self.to_receivers.iter());
        let held = held.chain(self.disorder.iter().flat_map(|d| d.to_receivers.iter()));
        held.chain(self.classes.iter().flat_map(|class| class.to_bottleneck.iter()))
    }

    /// What the queue did until now.
    pub fn queue(&self) -> &QueueRecord {
        &self.queue
    }

    /// Ends the path; what its queue did.
    pub fn finish(self) -> QueueRecord {
        self.queue
    }
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
