//! The path of a run: every host steps it with a clock of its own.

mod access;
mod flow_port;
mod hop;
mod queued_link;
mod reordering;
mod reverse;

use crate::{
    Direction, End, LostPacket, NEVER, Numbered, ScriptedLoss,
    events::{Event, Events},
    packet::Offered,
    scripted_loss::LossProcess,
};
use access::{AccessGroup, connect_flows};
use flow_port::FlowPort;
use hop::Hop;
use knee_model::{FlowCounters, Ns, PacketEvent, PathQueues, PathSpec, QueueRecord, RunSpec};
use queued_link::QueuedLink;
use reverse::Reverse;
use std::collections::VecDeque;

/// The path of a [`RunSpec`].
///
/// In the forward direction a packet passes the access of its flow, then random loss, queue and link of one
/// hop or several, then delay and jitter. In the reverse direction it passes random loss, the reverse link if
/// there is one, delay and jitter, then the access. The path counts sent and lost packets, and records the
/// actions of its queues.
///
/// [`crate::Network`] offers it packets and carries out its events.
pub struct Path<P> {
    ports: Vec<FlowPort>,
    groups: Vec<AccessGroup<P>>,
    hops: Vec<Hop<P>>,
    reverse: Reverse<P>,
    events: Events,
    /// Lost packets that the endpoints do not know of yet.
    lost: VecDeque<LostPacket<P>>,
    bin_ns: Ns,
    /// The least time between an event inside the path and the arrival that it causes.
    least_delay_ns: Ns,
}

/// The least delay after a link: forward, and reverse if there is a link.
fn least_delay_ns(path: &PathSpec) -> Ns {
    let least_ns = |delay_ns: Ns, steps: &[(Ns, Ns)]| {
        steps.iter().map(|(_, delay_ns)| *delay_ns).fold(delay_ns, Ns::min)
    };
    let forward_ns = least_ns(path.delay_forward_ns, &path.delay_forward_steps);
    match path.reverse {
        None => forward_ns,
        Some(_) => forward_ns.min(least_ns(path.delay_reverse_ns, &path.delay_reverse_steps)),
    }
}

impl<P: Numbered> Path<P> {
    /// The path of `spec`.
    pub fn new(spec: &RunSpec) -> Self {
        let (groups, ports) = connect_flows(spec);
        let hops = spec.path.hops.iter().zip(0..);
        let bin_ns = spec.record.bin_ns;
        let mut events = Events::new(groups.len(), spec.path.hops.len());
        events.set(Event::BinEnd, if bin_ns > 0 { bin_ns } else { NEVER });
        Self {
            ports,
            groups,
            hops: hops.map(|(hop, number)| Hop::new(spec, hop, number)).collect(),
            reverse: Reverse::new(spec),
            events,
            lost: VecDeque::new(),
            bin_ns,
            least_delay_ns: least_delay_ns(&spec.path),
        }
    }

    /// Loses the packets that `script` lists, of those that the first hop is offered, instead of bursts.
    pub fn script_loss(&mut self, script: ScriptedLoss) {
        self.hops[0].process = Some(LossProcess::Script(script));
    }

    /// The end of `flow` that packets in `direction` reach.
    pub fn end(&self, flow: u32, direction: Direction) -> End {
        self.ports[flow as usize].end(direction)
    }

    /// Packets that the sender of `flow` has sent.
    pub fn data_pkts(&self, flow: u32) -> u32 {
        self.ports[flow as usize].data_pkts
    }

    /// Packets that the receiver of `flow` has sent.
    pub fn ack_pkts(&self, flow: u32) -> u32 {
        self.ports[flow as usize].ack_pkts
    }

    /// Adds the path's counts of the packets of flow `index` to `counters`.
    pub fn count(&self, index: usize, counters: FlowCounters) -> FlowCounters {
        self.ports[index].count(counters)
    }

    /// Data packets that are on the path, of each flow.
    pub fn in_network_pkts(&self) -> Vec<u64> {
        let mut in_network_pkts = vec![0; self.ports.len()];
        let mut count = |packet: &P, direction| {
            let flow = packet.flow() as usize;
            in_network_pkts[flow] += u64::from(self.ports[flow].carries_data(direction));
        };
        let forward = self.groups.iter().flat_map(|group| group.entries.iter());
        let forward = forward.chain(self.hops.iter().flat_map(Hop::packets));
        let reverse = self.groups.iter().flat_map(|group| group.returns.iter());
        forward.for_each(|packet| count(packet, Direction::Forward));
        reverse.chain(self.reverse.packets()).for_each(|packet| count(packet, Direction::Reverse));
        in_network_pkts
    }

    /// The earliest time at which a packet can reach an end, unless another enters the path first. Events
    /// before then happen inside the path: a host in real time may delay them, and carry them out at the
    /// times that the path gives.
    pub fn next_out_ns(&self) -> Ns {
        let (_, first_ns) = self.events.first();
        let inside_ns = first_ns.saturating_add(self.least_delay_ns);
        let returns = self.groups.iter().map(|group| group.returns.next_ns());
        returns.chain(self.hops.iter().map(Hop::next_delivery_ns)).fold(inside_ns, Ns::min)
    }

    /// Packets that hop `hop` holds, the one in transmission included.
    pub fn held_pkts(&self, hop: usize) -> u32 {
        self.hops.get(hop).map_or(0, |hop| hop.queued_link.link.queue.held_pkts())
    }

    /// The records of the hops' queues until now, in order.
    pub fn queues(&self) -> impl Iterator<Item = &QueueRecord> {
        self.hops.iter().map(|hop| &hop.queued_link.record)
    }

    /// Ends the path; returns the records of its queues.
    pub fn finish(self) -> PathQueues {
        let reverse = self.reverse.into_record();
        let has_reverse_data = self.ports.iter().any(|port| port.carries_data(Direction::Reverse));
        PathQueues {
            hops: self.hops.into_iter().map(|hop| hop.queued_link.record).collect(),
            reverse: reverse.filter(|_| has_reverse_data),
        }
    }

    /// A packet sets out from this end of its flow.
    #[inline(always)]
    pub(crate) fn offer(&mut self, now_ns: Ns, packet: P, from: End) {
        match self.ports[packet.flow() as usize].count_sent(from) {
            Direction::Forward => self.enter(now_ns, packet),
            Direction::Reverse => self.send_reverse(now_ns, packet),
        }
    }

    /// The event that is due first, and its time; the time is [`NEVER`] if none is due.
    #[inline(always)]
    pub(crate) fn first(&self) -> (Event, Ns) {
        self.events.first()
    }

    /// The next timer is due at `due_ns`.
    #[inline]
    pub(crate) fn set_timer(&mut self, due_ns: Ns) {
        self.events.set(Event::Timer, due_ns);
    }

    /// Carries out an event of the path; returns the packet that reaches an end of the path by it.
    #[inline(always)]
    pub(crate) fn carry_out(&mut self, event: Event, now_ns: Ns) -> Option<(P, Direction)> {
        match event {
            Event::Departure(hop) => self.depart(hop, now_ns),
            Event::Delivery(hop) => {
                let packet = self.hops[hop].deliver(now_ns);
                self.events.set(event, self.hops[hop].next_delivery_ns());
                return packet.map(|packet| (packet, Direction::Forward));
            }
            Event::Return(group) => {
                let returns = &mut self.groups[group].returns;
                let packet = returns.pop(now_ns);
                self.events.set(event, returns.next_ns());
                return packet.map(|packet| (packet, Direction::Reverse));
            }
            Event::Entry(index) => {
                let group = &mut self.groups[index];
                let (packet, hop) = (group.entries.pop(now_ns), group.first_hop);
                self.events.set(event, group.entries.next_ns());
                packet.into_iter().for_each(|packet| self.offer_to_hop(hop, now_ns, packet));
            }
            Event::Arrival(hop) => {
                let arrivals = &mut self.hops[hop].arrivals;
                let packet = arrivals.pop(now_ns);
                self.events.set(event, arrivals.next_ns());
                packet.into_iter().for_each(|packet| self.offer_to_hop(hop, now_ns, packet));
            }
            Event::ReverseDeparture => self.depart_reverse(now_ns),
            Event::BinEnd => self.close_bin(now_ns),
            // The network's.
            Event::Timer => {}
        }
        None
    }

    /// Ends a bin of the time series.
    pub(crate) fn close_bin(&mut self, now_ns: Ns) {
        self.hops.iter_mut().for_each(|hop| hop.queued_link.close_bin());
        self.reverse.close_bin();
        self.events.set(Event::BinEnd, now_ns.saturating_add(self.bin_ns));
    }

    /// The next lost packet that the endpoints do not know of yet; it is counted.
    #[inline(always)]
    pub(crate) fn take_lost(&mut self) -> Option<LostPacket<P>> {
        if self.lost.is_empty() {
            return None;
        }
        let lost = self.lost.pop_front()?;
        self.ports[lost.packet.flow() as usize].count_lost(lost.direction, lost.event);
        Some(lost)
    }

    /// A packet sets out from the path's start.
    #[inline(always)]
    fn enter(&mut self, now_ns: Ns, packet: P) {
        let port = &mut self.ports[packet.flow() as usize];
        let group = &mut self.groups[port.group];
        if group.direct {
            return self.offer_to_hop(0, now_ns, packet);
        }
        group.enter(now_ns, port.access_jitter_ns(), packet);
        self.events.set(Event::Entry(port.group), group.entries.next_ns());
    }

    /// A packet reaches a hop.
    #[inline(always)]
    fn offer_to_hop(&mut self, index: usize, now_ns: Ns, packet: P) {
        let random = &mut self.ports[packet.flow() as usize].forward_random;
        let hop = &mut self.hops[index];
        match hop.offer(now_ns, packet, random, &mut self.lost) {
            Offered::Dropped(packet, event) => {
                self.lose(now_ns, packet, Direction::Forward, event);
            }
            Offered::Held => {
                self.events.set(Event::Departure(index), hop.queued_link.link.next_ns());
            }
            Offered::LeavesAt(..) => unreachable!("a hop holds each packet that it accepts"),
        }
    }

    /// A packet leaves the link of a hop.
    #[inline(always)]
    fn depart(&mut self, index: usize, now_ns: Ns) {
        let hop = &mut self.hops[index];
        let Some(packet) = hop.depart(now_ns, &mut self.lost) else { return };
        self.events.set(Event::Departure(index), hop.queued_link.link.next_ns());
        let port = &mut self.ports[packet.flow() as usize];
        if index < port.last_hop {
            let next = &mut self.hops[index + 1];
            next.approach(now_ns, packet);
            self.events.set(Event::Arrival(index + 1), next.arrivals.next_ns());
        } else {
            port.count_departed(packet.ecn());
            hop.set_out(now_ns, packet);
            self.events.set(Event::Delivery(index), hop.next_delivery_ns());
        }
    }

    /// A packet sets out from the path's end.
    #[inline(always)]
    fn send_reverse(&mut self, now_ns: Ns, packet: P) {
        let port = &mut self.ports[packet.flow() as usize];
        let group = port.group;
        match self.reverse.offer(now_ns, packet, &mut port.reverse_random) {
            Offered::LeavesAt(leaves_at_ns, packet) => self.come_back(leaves_at_ns, packet, group),
            Offered::Held => {
                self.events.set(Event::ReverseDeparture, self.reverse.next_departure_ns());
            }
            Offered::Dropped(packet, event) => {
                self.lose(now_ns, packet, Direction::Reverse, event);
            }
        }
    }

    /// A packet leaves the reverse link.
    fn depart_reverse(&mut self, now_ns: Ns) {
        let Some((leaves_at_ns, packet)) = self.reverse.depart(now_ns) else { return };
        self.events.set(Event::ReverseDeparture, self.reverse.next_departure_ns());
        let group = self.ports[packet.flow() as usize].group;
        self.come_back(leaves_at_ns, packet, group);
    }

    /// A packet leaves the shared reverse direction at `leaves_at_ns`, for the access of its flow.
    #[inline(always)]
    fn come_back(&mut self, leaves_at_ns: Ns, packet: P, index: usize) {
        let group = &mut self.groups[index];
        group.come_back(leaves_at_ns, packet);
        self.events.set(Event::Return(index), group.returns.next_ns());
    }

    fn lose(&mut self, time_ns: Ns, packet: P, direction: Direction, event: PacketEvent) {
        self.lost.push_back(LostPacket { time_ns, packet, direction, event });
    }
}
