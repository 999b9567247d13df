//! A hop: random loss, a queue, the link behind it, and the way from there to the path's end.

use super::{QueuedLink, reordering::Reordering};
use crate::{
    Bursts, DelayLine, Direction, Jitter, Link, Loss, LostPacket, Numbered, Packet, Queue, Service,
    packet::Offered, scripted_loss::LossProcess,
};
use knee_model::{HopSpec, Ns, PacketEvent, Random, RunSpec, Steps};
use std::collections::VecDeque;

/// A hop, the way to it from the hop before, and the way from it to the path's end.
pub(super) struct Hop<P> {
    loss: Loss,
    pub(super) process: Option<LossProcess>,
    pub(super) queued_link: QueuedLink<P>,
    /// Packets from the hop before it.
    pub(super) arrivals: DelayLine<P>,
    arrival_delay_ns: Ns,
    /// Packets on their way to the path's end.
    deliveries: DelayLine<P>,
    reordering: Option<Box<Reordering<P>>>,
    delay_ns: Steps,
    jitter: Jitter,
    jitter_random: Random,
}

impl<P: Numbered> Hop<P> {
    /// Hop `number`, which `hop` describes.
    pub(super) fn new(spec: &RunSpec, hop: &HopSpec, number: u64) -> Self {
        let (path, record) = (&spec.path, &spec.record);
        let link = Link::behind(queue(spec, hop, number), Service::of(&hop.rate()));
        let bursts = hop.bursts.as_ref();
        Self {
            loss: Loss::new(hop.loss),
            process: bursts.map(|bursts| {
                let random = Random::stream(spec.seed, "bursts forward", number);
                LossProcess::Bursts(Bursts::new(bursts, random))
            }),
            queued_link: QueuedLink::new(link, record.bin_ns > 0, record.queue_log),
            arrivals: DelayLine::default(),
            arrival_delay_ns: hop.delay_ns,
            deliveries: DelayLine::default(),
            reordering: Reordering::of(path, spec.seed, number),
            delay_ns: Steps::new(path.delay_forward_ns, &path.delay_forward_steps),
            jitter: Jitter::new(path.jitter_forward_ns),
            jitter_random: Random::stream(spec.seed, "path jitter", number),
        }
    }

    /// Offers a packet; `random` is the random stream of its flow. `lost` gets the packets that the queue
    /// drops to make room.
    #[inline(always)]
    pub(super) fn offer(
        &mut self,
        now_ns: Ns,
        packet: P,
        random: &mut Random,
        lost: &mut VecDeque<LostPacket<P>>,
    ) -> Offered<P> {
        if self.loss.loses(random) || self.process.as_mut().is_some_and(LossProcess::loses) {
            self.queued_link.note_loss(now_ns, &packet);
            return Offered::Dropped(packet, PacketEvent::Lost);
        }
        match self.queued_link.offer(now_ns, packet, &mut dropped_into(lost, now_ns)) {
            Ok(()) => Offered::Held,
            Err(packet) => Offered::Dropped(packet, PacketEvent::Dropped),
        }
    }

    /// The packet that has left the link by now. `lost` gets the packets that the queue drops then.
    #[inline(always)]
    pub(super) fn depart(&mut self, now_ns: Ns, lost: &mut VecDeque<LostPacket<P>>) -> Option<P> {
        self.queued_link.depart(now_ns, &mut dropped_into(lost, now_ns))
    }

    /// A packet that leaves the hop before sets out for this hop.
    pub(super) fn approach(&mut self, now_ns: Ns, packet: P) {
        self.arrivals.push(now_ns, self.arrival_delay_ns, packet);
    }

    /// A packet that left the link, its last one, sets out for the path's end.
    #[inline(always)]
    pub(super) fn set_out(&mut self, now_ns: Ns, packet: P) {
        let jitter_ns = self.jitter.draw_ns(&mut self.jitter_random);
        let delay_ns = self.delay_ns.at(now_ns);
        match &mut self.reordering {
            None => self.deliveries.push(now_ns, delay_ns + jitter_ns, packet),
            Some(reordering) => {
                reordering.set_out(&mut self.deliveries, now_ns, delay_ns, jitter_ns, packet);
            }
        }
    }

    /// The packet that has reached the path's end by now. If two arrive at once, the overtaken packet is
    /// first: it left before.
    #[inline(always)]
    pub(super) fn deliver(&mut self, now_ns: Ns) -> Option<P> {
        match &mut self.reordering {
            Some(reordering) if reordering.late.next_ns() <= self.deliveries.next_ns() => {
                reordering.late.pop(now_ns)
            }
            _ => self.deliveries.pop(now_ns),
        }
    }

    /// The time at which the next packet from this hop reaches the path's end.
    #[inline(always)]
    pub(super) fn next_delivery_ns(&self) -> Ns {
        let in_order_ns = self.deliveries.next_ns();
        match &self.reordering {
            None => in_order_ns,
            Some(reordering) => in_order_ns.min(reordering.late.next_ns()),
        }
    }

    /// Packets at the hop, before it and behind it, up to the next hop.
    pub(super) fn packets(&self) -> impl Iterator<Item = &P> {
        let held = self.queued_link.link.queue.iter().chain(self.arrivals.iter());
        let late = self.reordering.iter().flat_map(|reordering| reordering.late.iter());
        held.chain(self.deliveries.iter()).chain(late)
    }
}

/// Puts the packets that a queue drops into `lost`.
#[inline(always)]
fn dropped_into<P>(lost: &mut VecDeque<LostPacket<P>>, time_ns: Ns) -> impl FnMut(P) {
    move |packet| {
        let (direction, event) = (Direction::Forward, PacketEvent::Dropped);
        lost.push_back(LostPacket { time_ns, packet, direction, event });
    }
}

/// The queue of hop `number`.
fn queue<P: Packet>(spec: &RunSpec, hop: &HopSpec, number: u64) -> Queue<P> {
    let Some(aqm) = &hop.aqm else { return Queue::drop_tail(hop.queue) };
    let mean_bps = hop.rate().mean_bps(0, spec.duration_ns) as u64;
    Queue::managed(hop.queue, aqm, mean_bps, Random::stream(spec.seed, "queue", number))
}
