//! A hop: random loss, a queue, the link behind it, and the way from there to the path's end.

use super::{Gone, Numbered};
use crate::{
    Bursts, DelayLine, Ecn, Jitter, Link, Loss, NEVER, Overtaking, Packet, Queue, Service,
    Timetable,
};
use knee_model::{
    BurstLoss, Discipline, HopSpec, Ns, PacketEvent, PacketLog, PathSpec, QueueBin, QueueRecord,
    Random, RunSpec, Steps,
};
use std::collections::VecDeque;

/// What a queue did, and what it does in the present bin.
#[derive(Default)]
pub(super) struct Watch {
    pub(super) queue: QueueRecord,
    bin: QueueBin,
}

impl Watch {
    #[inline(always)]
    pub(super) fn count_drop(&mut self) {
        self.queue.dropped_pkts += 1;
        self.bin.dropped_pkts += 1;
    }

    /// `bytes` have left after a wait; `bins`: a time series is kept.
    #[inline(always)]
    pub(super) fn depart(&mut self, bytes: u32, waited_ns: Ns, bins: bool) {
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

    fn count_mark(&mut self) {
        self.queue.marked_pkts += 1;
        self.bin.marked_pkts += 1;
    }

    /// Takes what the queue has dropped after it had taken it; `held_pkts` were then left.
    #[inline(always)]
    fn collect_dropped<P: Numbered>(
        &mut self,
        link: &mut Link<P>,
        now_ns: Ns,
        held_pkts: u32,
        log: bool,
        gone: &mut VecDeque<Gone<P>>,
    ) {
        // Drop-tail never does.
        if link.dropped_pkts() > 0 {
            self.collect_all_dropped(link, now_ns, held_pkts, log, gone);
        }
    }

    #[inline(never)]
    fn collect_all_dropped<P: Numbered>(
        &mut self,
        link: &mut Link<P>,
        now_ns: Ns,
        held_pkts: u32,
        log: bool,
        gone: &mut VecDeque<Gone<P>>,
    ) {
        while let Some(packet) = link.take_dropped() {
            self.count_drop();
            let held_pkts = held_pkts + link.dropped_pkts();
            if log {
                self.note(now_ns, Label::of(&packet), PacketEvent::Dropped, held_pkts);
            }
            gone.push_back(Gone::forward(now_ns, packet, PacketEvent::Dropped));
        }
    }

    fn note(&mut self, time_ns: Ns, label: Label, event: PacketEvent, held_pkts: u32) {
        let Label { flow, number, bytes } = label;
        let line = PacketLog { time_ns, flow, number, bytes, held_pkts, event };
        self.queue.log.push(line);
    }

    pub(super) fn close_bin(&mut self, held_pkts: u32) {
        self.bin.held_pkts = held_pkts;
        self.queue.bins.push(std::mem::take(&mut self.bin));
    }
}

/// A queue and its link.
pub(super) enum Server<P> {
    /// They hold packets, and let them go when they leave.
    Holds(Link<P>),
    /// They hold none: of each it is known when it leaves as soon as they have taken it.
    Times(Timetable),
}

/// A queue and its link, of a hop or of the reverse direction, and what they did.
pub(super) struct Station<P> {
    pub(super) server: Server<P>,
    /// Where it is foreseen: when the next packet leaves. Nobody waits for that; it is made up for before
    /// somebody looks at the queue.
    pub(super) departs_ns: Ns,
    pub(super) watch: Watch,
}

impl<P: Packet> Station<P> {
    pub(super) fn new(server: Server<P>) -> Self {
        Self { server, departs_ns: NEVER, watch: Watch::default() }
    }

    /// Packets that it holds, the one in transmission included.
    #[inline(always)]
    pub(super) fn held_pkts(&self) -> u32 {
        match &self.server {
            Server::Holds(link) => link.held_pkts(),
            Server::Times(timetable) => timetable.held_pkts(),
        }
    }

    /// A packet of `bytes` comes, and is not held; if it is taken: when it will have left.
    #[inline(always)]
    pub(super) fn foresee(&mut self, now_ns: Ns, bytes: u32) -> Option<Ns> {
        let Server::Times(timetable) = &mut self.server else { return None };
        let Some(departs_ns) = timetable.enqueue(now_ns, bytes) else {
            self.watch.count_drop();
            return None;
        };
        let held_pkts = timetable.held_pkts();
        self.watch.queue.max_pkts = self.watch.queue.max_pkts.max(held_pkts);
        if held_pkts == 1 {
            self.departs_ns = departs_ns;
        }
        Some(departs_ns)
    }

    /// What was foreseen happens where packets are not held: the next one leaves. `bins`: a time series is
    /// kept.
    #[inline(always)]
    pub(super) fn leave(&mut self, bins: bool) {
        let Server::Times(timetable) = &mut self.server else { return };
        self.departs_ns = match timetable.leave() {
            Some((bytes, waited_ns, next_ns)) => {
                self.watch.depart(bytes, waited_ns, bins);
                next_ns
            }
            None => NEVER,
        };
    }

    pub(super) fn close_bin(&mut self) {
        self.watch.close_bin(self.held_pkts());
    }

    /// The packets that it holds, the one in transmission first.
    pub(super) fn packets(&self) -> impl Iterator<Item = &P> {
        let link = match &self.server {
            Server::Holds(link) => Some(link),
            Server::Times(_) => None,
        };
        link.into_iter().flat_map(Link::iter)
    }
}

/// A hop, and the way from it to the path's end.
pub(super) struct Hop<P> {
    pub(super) station: Station<P>,
    /// It says of packets when they leave as soon as that is certain.
    foresees: bool,
    /// Where it foresees: when it makes up for what has happened, whatever else does; [`NEVER`]: nothing will.
    pub(super) wakes_ns: Ns,
    pub(super) loss: Loss,
    pub(super) bursts: Option<Box<Bursts>>,
    pub(super) to_end: DelayLine<P>,
    pub(super) disorder: Option<Box<Disorder<P>>>,
    pub(super) delay_forward_ns: Steps,
    pub(super) jitter_forward: Jitter,
    pub(super) jitter_random: Random,
    /// From the hop before it.
    pub(super) approach: DelayLine<P>,
    pub(super) approach_delay_ns: Ns,
    /// Where it foresees: the latest arrival at the path's end, which none overtakes.
    arrived_ns: Ns,
}

/// Packets that do not reach the receivers in the order in which they left the hop.
pub(super) struct Disorder<P> {
    late: Loss,
    extra_delay_ns: Ns,
    random: Random,
    /// When the forward delay falls, packets overtake.
    falls_reorder: bool,
    /// The delay of the latest packet.
    delay_ns: Ns,
    to_end: Overtaking<P>,
}

impl<P> Disorder<P> {
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
            to_end: Overtaking::default(),
        }))
    }
}

pub(super) fn bursts(
    loss: &Option<BurstLoss>,
    seed: u64,
    way: &str,
    hop: u64,
) -> Option<Box<Bursts>> {
    let loss = loss.as_ref()?;
    Some(Box::new(Bursts::new(loss, Random::stream(seed, way, hop))))
}

/// Whether a packet is lost in a burst.
#[inline]
pub(super) fn in_burst(bursts: &mut Option<Box<Bursts>>) -> bool {
    bursts.as_mut().is_some_and(|bursts| bursts.loses())
}

impl<P: Numbered> Hop<P> {
    /// Hop `number`, which `hop` describes; `foresees`: it says of packets when they leave as soon as that is
    /// certain.
    pub(super) fn new(spec: &RunSpec, hop: &HopSpec, number: u64, foresees: bool) -> Self {
        let path = &spec.path;
        let marked = path.hops.iter().flat_map(|hop| &hop.aqm).any(|aqm| aqm.ecn);
        let sees = foresees && !marked && !spec.record.queue_log;
        let timetable = || {
            let service = Service::of(&hop.rate());
            Timetable::new(service, hop.queue, spec.record.bin_ns > 0)
        };
        let server = match hop.aqm.as_ref().map(|aqm| &aqm.discipline) {
            None if sees => Server::Times(timetable()),
            Some(Discipline::Red(red)) if sees => {
                let (mean_bps, random) = (mean_bps(spec, hop), queue_random(spec, number));
                Server::Times(timetable().with_red(red, mean_bps, random))
            }
            _ => Server::Holds(Link::behind(queue(spec, hop, number), Service::of(&hop.rate()))),
        };
        Self {
            station: Station::new(server),
            foresees,
            wakes_ns: NEVER,
            loss: Loss::new(hop.loss),
            bursts: bursts(&hop.bursts, spec.seed, "bursts forward", number),
            to_end: DelayLine::default(),
            disorder: Disorder::of(path, spec.seed, number),
            delay_forward_ns: Steps::new(path.delay_forward_ns, &path.delay_forward_steps),
            jitter_forward: Jitter::new(path.jitter_forward_ns),
            jitter_random: Random::stream(spec.seed, "path jitter", number),
            approach: DelayLine::default(),
            approach_delay_ns: hop.delay_ns,
            arrived_ns: 0,
        }
    }

    /// Whether it holds no packets, and all that it does not drop take the same time from there to the path's
    /// end; how long, then.
    pub(super) fn plain_delay_ns(&self, path: &PathSpec) -> Option<Ns> {
        let plain = !self.holds_packets()
            && self.loss.is_none()
            && self.bursts.is_none()
            && path.jitter_forward_ns == 0
            && path.delay_forward_steps.is_empty();
        plain.then_some(path.delay_forward_ns)
    }

    /// Whether it holds packets.
    #[inline(always)]
    pub(super) fn holds_packets(&self) -> bool {
        matches!(self.station.server, Server::Holds(_))
    }

    /// A packet comes to it, which holds none; if it is taken: when it will have left.
    #[inline(always)]
    pub(super) fn foresee(
        &mut self,
        now_ns: Ns,
        packet: &P,
        random: &mut Random,
        gone: &mut VecDeque<Gone<P>>,
    ) -> Option<Ns> {
        if self.loss.loses(random) || in_burst(&mut self.bursts) {
            gone.push_back(Gone::forward(now_ns, packet.clone(), PacketEvent::Lost));
            return None;
        }
        self.foresee_plain(now_ns, packet, gone)
    }

    /// The same where no packet is lost.
    #[inline(always)]
    pub(super) fn foresee_plain(
        &mut self,
        now_ns: Ns,
        packet: &P,
        gone: &mut VecDeque<Gone<P>>,
    ) -> Option<Ns> {
        let departs_ns = self.station.foresee(now_ns, packet.wire_bytes());
        if departs_ns.is_none() {
            gone.push_back(Gone::forward(now_ns, packet.clone(), PacketEvent::Dropped));
        }
        departs_ns
    }

    /// Where it foresees and holds packets, and the transmission of one has just begun: a copy of it, of
    /// which all is certain now, and when it will have left.
    #[inline(always)]
    pub(super) fn begun(&mut self) -> Option<(P, Ns)> {
        let Server::Holds(link) = &self.station.server else { return None };
        self.station.departs_ns = link.next_ns();
        link.sending().cloned().map(|packet| (packet, self.station.departs_ns))
    }

    /// Where it does not: when the packet in transmission leaves.
    #[inline(always)]
    pub(super) fn departure_ns(&self) -> Ns {
        match &self.station.server {
            Server::Holds(link) => link.next_ns(),
            Server::Times(_) => NEVER,
        }
    }

    /// Where it foresees: when something happens here next that has to be made up for, lest it is missed.
    pub(super) fn next_ns(&self) -> Ns {
        let departs_ns = if self.holds_packets() { self.station.departs_ns } else { NEVER };
        departs_ns.min(self.approach.next_ns())
    }

    /// When a packet reaches the path's end that leaves at `departs_ns`; those before it have been
    /// asked for.
    #[inline(always)]
    pub(super) fn arrival_ns(&mut self, departs_ns: Ns) -> Ns {
        let jitter_ns = self.jitter_forward.draw_ns(&mut self.jitter_random);
        let delay_ns = self.delay_forward_ns.at(departs_ns) + jitter_ns;
        self.arrived_ns = self.arrived_ns.max(departs_ns.saturating_add(delay_ns));
        self.arrived_ns
    }

    /// A packet comes to it; whether it is taken.
    #[inline(always)]
    pub(super) fn offer(
        &mut self,
        now_ns: Ns,
        packet: P,
        random: &mut Random,
        log: bool,
        gone: &mut VecDeque<Gone<P>>,
    ) -> bool {
        let Station { server: Server::Holds(link), watch, .. } = &mut self.station else {
            return false;
        };
        // The queue is about to own it.
        let label = log.then(|| Label::of(&packet));
        let event = if self.loss.loses(random) || in_burst(&mut self.bursts) {
            gone.push_back(Gone::forward(now_ns, packet, PacketEvent::Lost));
            PacketEvent::Lost
        } else if let Err(packet) = link.enqueue(now_ns, packet) {
            watch.count_drop();
            watch.collect_dropped(link, now_ns, link.held_pkts(), log, gone);
            gone.push_back(Gone::forward(now_ns, packet, PacketEvent::Dropped));
            PacketEvent::Dropped
        } else {
            let held_pkts = link.held_pkts();
            watch.queue.max_pkts = watch.queue.max_pkts.max(held_pkts);
            // They made room before it came in.
            watch.collect_dropped(link, now_ns, held_pkts - 1, log, gone);
            PacketEvent::Enqueued
        };
        if let Some(label) = label {
            watch.note(now_ns, label, event, link.held_pkts());
        }
        event == PacketEvent::Enqueued
    }

    /// The packet that leaves it, and whether with a congestion mark; `bins`: a time series is kept.
    #[inline(always)]
    pub(super) fn depart(
        &mut self,
        now_ns: Ns,
        bins: bool,
        log: bool,
        gone: &mut VecDeque<Gone<P>>,
    ) -> Option<(P, bool)> {
        let Station { server: Server::Holds(link), watch, .. } = &mut self.station else {
            return None;
        };
        let departed = link.dequeue(now_ns)?;
        let (packet, waited_ns) = (departed.packet, departed.waited_ns);
        watch.depart(packet.wire_bytes(), waited_ns, bins);
        let held_pkts = link.held_pkts();
        let before_drops_pkts = held_pkts + link.dropped_pkts();
        if log {
            watch.note(now_ns, Label::of(&packet), PacketEvent::Departed, before_drops_pkts);
        }
        watch.collect_dropped(link, now_ns, held_pkts, log, gone);
        let marked = packet.ecn() == Ecn::Marked;
        if marked {
            watch.count_mark();
        }
        Some((packet, marked))
    }

    /// A packet that left it, the path's last for its flow, continues to the path's end; when the next
    /// one arrives there.
    #[inline(always)]
    pub(super) fn go_on(&mut self, now_ns: Ns, packet: P) -> Ns {
        let jitter_ns = self.jitter_forward.draw_ns(&mut self.jitter_random);
        let delay_ns = self.delay_forward_ns.at(now_ns) + jitter_ns;
        if self.disorder.is_some() {
            return self.depart_in_disorder(now_ns, delay_ns, packet);
        }
        self.to_end.push(now_ns, delay_ns, packet);
        self.to_end.next_ns()
    }

    /// The packet that reaches the path's end, and when the next one does.
    #[inline(always)]
    pub(super) fn arrive(&mut self, now_ns: Ns) -> Option<(P, Ns)> {
        // Taken apart, so that the usual packet stays in registers; the call returns its own in memory.
        let (packet, due_ns) = match &self.disorder {
            None => (self.to_end.pop(now_ns)?, self.to_end.next_ns()),
            Some(_) => self.arrive_in_disorder(now_ns)?,
        };
        Some((packet, due_ns))
    }

    /// When the next packet from it reaches the path's end.
    pub(super) fn next_out_ns(&self) -> Ns {
        let in_order_ns = self.to_end.next_ns();
        match &self.disorder {
            None => in_order_ns,
            Some(disorder) => in_order_ns.min(disorder.to_end.next_ns()),
        }
    }

    /// A packet leaves for a way on which packets overtake each other; when the next one arrives.
    #[inline(never)]
    fn depart_in_disorder(&mut self, now_ns: Ns, delay_ns: Ns, packet: P) -> Ns {
        let Some(disorder) = &mut self.disorder else { return NEVER };
        let path_delay_ns = self.delay_forward_ns.at(now_ns);
        if disorder.falls_reorder && path_delay_ns < disorder.delay_ns {
            // Those that left before take their time; those behind are no longer held up by them.
            let mut before = std::mem::take(&mut self.to_end);
            loop {
                let due_ns = before.next_ns();
                let Some(packet) = before.pop(due_ns) else { break };
                disorder.to_end.push(due_ns, packet);
            }
        }
        disorder.delay_ns = path_delay_ns;
        if disorder.late.loses(&mut disorder.random) {
            disorder.to_end.push(now_ns + delay_ns + disorder.extra_delay_ns, packet);
        } else {
            self.to_end.push(now_ns, delay_ns, packet);
        }
        self.next_out_ns()
    }

    /// As [`Hop::arrive`], where packets overtake each other; with when the next one arrives. Of two
    /// that arrive at once the one that was overtaken is first: it left before.
    #[inline(never)]
    fn arrive_in_disorder(&mut self, now_ns: Ns) -> Option<(P, Ns)> {
        let disorder = self.disorder.as_mut()?;
        let packet = if disorder.to_end.next_ns() <= self.to_end.next_ns() {
            disorder.to_end.pop(now_ns)?
        } else {
            self.to_end.pop(now_ns)?
        };
        Some((packet, self.next_out_ns()))
    }

    /// Packets at it, before it and behind it, up to the next hop.
    pub(super) fn under_way(&self) -> impl Iterator<Item = &P> {
        // What is foreseen is on its way since its transmission began.
        let waiting = self.station.packets().skip(usize::from(self.foresees));
        let held = waiting.chain(self.to_end.iter()).chain(self.approach.iter());
        held.chain(self.disorder.iter().flat_map(|d| d.to_end.iter()))
    }
}

/// The queue of hop `number`.
fn queue<P: Packet>(spec: &RunSpec, hop: &HopSpec, number: u64) -> Queue<P> {
    match &hop.aqm {
        None => Queue::drop_tail(hop.queue),
        Some(aqm) => {
            let (mean_bps, random) = (mean_bps(spec, hop), queue_random(spec, number));
            Queue::managed(hop.queue, aqm, mean_bps, random)
        }
    }
}

fn mean_bps(spec: &RunSpec, hop: &HopSpec) -> u64 {
    hop.rate().mean_bps(0, spec.duration_ns) as u64
}

/// What the queue of hop `number` draws from.
fn queue_random(spec: &RunSpec, number: u64) -> Random {
    Random::stream(spec.seed, "queue", number)
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
