//! The path of a run: what every host steps with its own clock.

use crate::{FlowCounters, FlowSpec, Ns, PacketEvent, PacketLog, QueueBin, QueueRecord, RunSpec};
use knee_net::{DelayLine, Ecn, Jitter, Link, Loss, NEVER, Packet, Queue, Random, Ring, Schedule};
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
}

const BINS: usize = 0;
const TIMERS: usize = 1;
const DEPARTURE: usize = 2;
const ARRIVAL: usize = 3;
const CLASSES: usize = 4;

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
}

impl Port {
    /// `counters` with what became of the flow's packets on the path.
    pub fn count(&self, counters: FlowCounters) -> FlowCounters {
        FlowCounters {
            random_losses_pkts: self.random_losses_pkts,
            queue_drops_pkts: self.queue_drops_pkts,
            marked_pkts: self.marked_pkts,
            ack_losses_pkts: self.ack_losses_pkts,
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

/// The path of a [`RunSpec`]: packets `F` towards the receivers pass access, random loss, the
/// bottleneck, delay and jitter; packets `B` back to the senders pass random loss, delay and
/// jitter, access.
///
/// It says what is next due ([`Path::first`]); the host then calls the function of that source
/// with the time at which it was due. What the queue did is recorded as the spec asks.
pub struct Path<F, B> {
    link: Link<F>,
    /// Dropped by the queue after it had taken them, and not yet taken by the host.
    dropped: Ring<F>,
    to_receivers: DelayLine<F>,
    classes: Vec<Class<F, B>>,
    schedule: Schedule,
    loss_forward: Loss,
    queue: QueueRecord,
    bin: QueueBin,
    bin_ns: Ns,
    log: bool,
    loss_reverse: Loss,
    delay_forward_ns: Ns,
    delay_reverse_ns: Ns,
    jitter_forward: Jitter,
    jitter_reverse: Jitter,
    /// When the latest packet leaves the shared way back: none overtakes it.
    reverse_passed_ns: Ns,
    jitter_random: Random,
}

impl<F: Numbered, B: Default> Path<F, B> {
    /// The path of `spec`, with a port for each flow.
    pub fn new(spec: &RunSpec) -> (Self, Vec<Port>) {
        let mut classes: Vec<Class<F, B>> = Vec::new();
        let mut class_of: BTreeMap<(Ns, Option<usize>), u32> = BTreeMap::new();
        let port = |(index, flow): (usize, &FlowSpec)| {
            // Jitter is a flow's own: it must not hold another flow's packets back.
            let mut random = Random::stream(spec.seed, "access delay", index as u64);
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
                access_jitter: Jitter::new(flow.access_jitter_ns),
                forward: Random::stream(spec.seed, "forward", index as u64),
                reverse: Random::stream(spec.seed, "reverse", index as u64),
                random_losses_pkts: 0,
                queue_drops_pkts: 0,
                marked_pkts: 0,
                ack_losses_pkts: 0,
            }
        };
        let ports = spec.flows.iter().enumerate().map(port).collect();
        let (path, bin_ns) = (&spec.path, spec.record.bin_ns);
        let mut schedule = Schedule::new(CLASSES + 2 * classes.len());
        schedule.set(BINS, if bin_ns > 0 { bin_ns } else { NEVER });
        let queue = match &path.aqm {
            None => Queue::drop_tail(path.queue),
            Some(aqm) => Queue::managed(path.queue, aqm, path.rate_bps, spec.seed),
        };
        let path = Self {
            link: Link::behind(queue, path.rate_bps),
            dropped: Ring::default(),
            to_receivers: DelayLine::default(),
            classes,
            schedule,
            loss_forward: Loss::new(path.loss_forward),
            queue: QueueRecord::default(),
            bin: QueueBin::default(),
            bin_ns,
            log: spec.record.queue_log,
            loss_reverse: Loss::new(path.loss_reverse),
            delay_forward_ns: path.delay_forward_ns,
            delay_reverse_ns: path.delay_reverse_ns,
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
            _ if source.is_multiple_of(2) => Source::Bottleneck((source - CLASSES) / 2),
            _ => Source::Sender((source - CLASSES) / 2),
        };
        (source, due_ns)
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
        let event = if self.loss_forward.loses(&mut port.forward) {
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
        self.to_receivers.push(now_ns, self.delay_forward_ns + jitter_ns, packet);
        self.schedule.set(ARRIVAL, self.to_receivers.next_ns());
        marked
    }

    /// On [`Source::Arrival`]: the packet that reaches its receiver.
    #[inline]
    pub fn arrive(&mut self, now_ns: Ns) -> Option<F> {
        let packet = self.to_receivers.pop(now_ns)?;
        self.schedule.set(ARRIVAL, self.to_receivers.next_ns());
        Some(packet)
    }

    /// Whether a packet of `port` is lost on the way back; asked before [`Path::send_back`].
    #[inline]
    pub fn loses_back(&mut self, port: &mut Port) -> bool {
        let loses = self.loss_reverse.loses(&mut port.reverse);
        port.ack_losses_pkts += u64::from(loses);
        loses
    }

    /// A receiver's packet starts on its way.
    #[inline]
    pub fn send_back(&mut self, now_ns: Ns, packet: B, port: &mut Port) {
        let class = &mut self.classes[port.class as usize];
        let delay_ns = self.delay_reverse_ns + self.jitter_reverse.draw_ns(&mut port.reverse);
        // All flows share the way back as they share the way there; access comes after it.
        self.reverse_passed_ns = self.reverse_passed_ns.max(now_ns + delay_ns);
        class.to_sender.push(self.reverse_passed_ns, class.access_delay_ns, packet);
        let due_ns = class.to_sender.next_ns();
        self.schedule.set(to_sender(port.class as usize), due_ns);
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
