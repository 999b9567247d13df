//! A hop: random loss, a queue, the link behind it, and the way from there to the path's end.

use super::{Gone, Numbered};
use crate::{HopSpec, Ns, PacketEvent, PacketLog, PathSpec, QueueBin, QueueRecord, RunSpec};
use knee_net::{
    Aqm, BurstLoss, Bursts, DelayLine, Ecn, Forecast, Jitter, Limit, Link, Loss, NEVER, Overtaking,
    Packet, Queue, Random, Rate, Steps, Timetable,
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

/// The queue and the link of a hop.
enum Server<P> {
    /// They hold packets, and let them go when they leave.
    Holds(Link<P>),
    /// Of each packet it is known when it leaves as soon as they have taken it: it is then on its way, and
    /// they hold a copy, which the queue's discipline or the log needs.
    Copies(Link<P>, Box<Forecast>),
    /// The same where nobody needs the copies.
    Times(Timetable),
}

impl<P: Packet> Server<P> {
    #[inline(always)]
    fn held_pkts(&self) -> u32 {
        match self {
            Self::Holds(link) | Self::Copies(link, _) => link.held_pkts(),
            Self::Times(timetable) => timetable.held_pkts(),
        }
    }

    /// When the next packet leaves.
    #[inline(always)]
    fn next_ns(&self) -> Ns {
        match self {
            Self::Holds(link) | Self::Copies(link, _) => link.next_ns(),
            Self::Times(timetable) => timetable.next_ns(),
        }
    }

    /// What it holds, if that is the packets themselves.
    fn packets(&self) -> impl Iterator<Item = &P> {
        let link = match self {
            Self::Holds(link) => Some(link),
            Self::Copies(..) | Self::Times(_) => None,
        };
        link.into_iter().flat_map(Link::iter)
    }
}

/// A hop, and the way from it to the path's end.
pub(super) struct Hop<P> {
    server: Server<P>,
    /// Where it says at once when packets leave: when the next one does. Nobody waits for that; it is made
    /// up for before somebody looks at the queue.
    pub(super) departs_ns: Ns,
    /// Packets may be marked in the queue.
    marks: bool,
    pub(super) loss: Loss,
    pub(super) bursts: Option<Box<Bursts>>,
    pub(super) watch: Watch,
    pub(super) to_end: DelayLine<P>,
    pub(super) disorder: Option<Box<Disorder<P>>>,
    pub(super) delay_forward_ns: Steps,
    pub(super) jitter_forward: Jitter,
    pub(super) jitter_random: Random,
    /// From the hop before it.
    pub(super) approach: DelayLine<P>,
    pub(super) approach_delay_ns: Ns,
    /// Where it says at once when packets leave: the latest arrival at the path's end, which none overtakes.
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
    /// Hop `number`, which `hop` describes; `foresees`: it says at once when packets leave.
    pub(super) fn new(spec: &RunSpec, hop: &HopSpec, number: u64, foresees: bool) -> Self {
        let path = &spec.path;
        let service = || hop.rate().service();
        let link = || link(spec, hop.rate(), hop.queue, hop.aqm.as_ref(), number);
        let marked = path.hops.iter().flat_map(|hop| &hop.aqm).any(|aqm| aqm.ecn);
        let server = if !foresees {
            Server::Holds(link())
        } else if hop.aqm.is_some() || marked || spec.record.queue_log {
            Server::Copies(link(), Box::new(Forecast::new(service())))
        } else {
            Server::Times(Timetable::new(service(), hop.queue, spec.record.bin_ns > 0))
        };
        Self {
            server,
            departs_ns: NEVER,
            marks: hop.aqm.as_ref().is_some_and(|aqm| aqm.ecn),
            loss: Loss::new(hop.loss),
            bursts: bursts(&hop.bursts, spec.seed, "bursts forward", number),
            watch: Watch::default(),
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

    /// Whether it says at once when packets leave, holds none of them, and all that it does not drop take the
    /// same time from there to the path's end; how long, then.
    pub(super) fn plain_delay_ns(&self, path: &PathSpec) -> Option<Ns> {
        let plain = matches!(self.server, Server::Times(_))
            && self.loss.is_none()
            && self.bursts.is_none()
            && path.jitter_forward_ns == 0
            && path.delay_forward_steps.is_empty();
        plain.then_some(path.delay_forward_ns)
    }

    /// Whether it says at once when packets leave, and holds copies of them.
    #[inline(always)]
    pub(super) fn holds_copies(&self) -> bool {
        matches!(self.server, Server::Copies(..))
    }

    /// A packet comes to it, which says at once when packets leave; if it is taken: when it will have left.
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
        let Server::Times(timetable) = &mut self.server else { return None };
        let Some(departs_ns) = timetable.enqueue(now_ns, packet.wire_bytes()) else {
            self.watch.count_drop();
            gone.push_back(Gone::forward(now_ns, packet.clone(), PacketEvent::Dropped));
            return None;
        };
        let held_pkts = timetable.held_pkts();
        self.watch.queue.max_pkts = self.watch.queue.max_pkts.max(held_pkts);
        if held_pkts == 1 {
            self.departs_ns = departs_ns;
        }
        Some(departs_ns)
    }

    /// The same where copies are held; the packet may be marked.
    #[inline(never)]
    pub(super) fn foresee_copy(
        &mut self,
        now_ns: Ns,
        packet: &mut P,
        random: &mut Random,
        log: bool,
        gone: &mut VecDeque<Gone<P>>,
    ) -> Option<Ns> {
        if !self.offer(now_ns, packet.clone(), random, log, gone) {
            return None;
        }
        let Server::Copies(link, forecast) = &mut self.server else { return None };
        if self.marks && link.newest().is_some_and(|newest| newest.ecn() == Ecn::Marked) {
            packet.mark();
        }
        let idle = link.held_pkts() == 1;
        let (_, departs_ns) = forecast.transmission_ns(now_ns, idle, packet.wire_bytes());
        if idle {
            self.departs_ns = link.next_ns();
        }
        Some(departs_ns)
    }

    /// What was foreseen happens: the next packet leaves; it, if it has a congestion mark. `bins`: a time
    /// series is kept.
    #[inline(always)]
    pub(super) fn leave(
        &mut self,
        bins: bool,
        log: bool,
        gone: &mut VecDeque<Gone<P>>,
    ) -> Option<P> {
        let Server::Times(timetable) = &mut self.server else {
            return self.leave_copy(bins, log, gone);
        };
        self.departs_ns = match timetable.leave() {
            Some((bytes, waited_ns, next_ns)) => {
                self.watch.depart(bytes, waited_ns, bins);
                next_ns
            }
            None => NEVER,
        };
        None
    }

    #[inline(never)]
    fn leave_copy(&mut self, bins: bool, log: bool, gone: &mut VecDeque<Gone<P>>) -> Option<P> {
        let departed = self.depart(self.departs_ns, bins, log, gone);
        self.departs_ns = self.server.next_ns();
        departed.filter(|(_, marked)| *marked).map(|(packet, _)| packet)
    }

    /// Packets that it holds, the one in transmission included.
    #[inline(always)]
    pub(super) fn held_pkts(&self) -> u32 {
        self.server.held_pkts()
    }

    /// When the packet in transmission leaves.
    #[inline(always)]
    pub(super) fn next_ns(&self) -> Ns {
        self.server.next_ns()
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
        let (Server::Holds(link) | Server::Copies(link, _)) = &mut self.server else {
            return false;
        };
        // The queue is about to own it.
        let label = log.then(|| Label::of(&packet));
        let event = if self.loss.loses(random) || in_burst(&mut self.bursts) {
            gone.push_back(Gone::forward(now_ns, packet, PacketEvent::Lost));
            PacketEvent::Lost
        } else if let Err(packet) = link.enqueue(now_ns, packet) {
            self.watch.count_drop();
            self.watch.collect_dropped(link, now_ns, link.held_pkts(), log, gone);
            gone.push_back(Gone::forward(now_ns, packet, PacketEvent::Dropped));
            PacketEvent::Dropped
        } else {
            let held_pkts = link.held_pkts();
            self.watch.queue.max_pkts = self.watch.queue.max_pkts.max(held_pkts);
            // They made room before it came in.
            self.watch.collect_dropped(link, now_ns, held_pkts - 1, log, gone);
            PacketEvent::Enqueued
        };
        if let Some(label) = label {
            self.watch.note(now_ns, label, event, link.held_pkts());
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
        let (Server::Holds(link) | Server::Copies(link, _)) = &mut self.server else { return None };
        let departed = link.dequeue(now_ns)?;
        let (packet, waited_ns) = (departed.packet, departed.waited_ns);
        self.watch.depart(packet.wire_bytes(), waited_ns, bins);
        let held_pkts = link.held_pkts();
        let before_drops_pkts = held_pkts + link.dropped_pkts();
        if log {
            self.watch.note(now_ns, Label::of(&packet), PacketEvent::Departed, before_drops_pkts);
        }
        self.watch.collect_dropped(link, now_ns, held_pkts, log, gone);
        let marked = packet.ecn() == Ecn::Marked;
        if marked {
            self.watch.count_mark();
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
        if self.disorder.is_some() {
            return self.arrive_in_disorder(now_ns);
        }
        Some((self.to_end.pop(now_ns)?, self.to_end.next_ns()))
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
        let held = self.server.packets().chain(self.to_end.iter()).chain(self.approach.iter());
        held.chain(self.disorder.iter().flat_map(|d| d.to_end.iter()))
    }
}

/// The link of hop `number`, with its queue.
fn link<P: Packet>(
    spec: &RunSpec,
    rate: Rate<'_>,
    limit: Limit,
    aqm: Option<&Aqm>,
    number: u64,
) -> Link<P> {
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
