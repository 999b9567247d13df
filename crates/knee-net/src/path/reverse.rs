//! The reverse direction, which all flows share: random loss, a link if there is one, delay and jitter.

use super::QueuedLink;
use crate::{Bursts, Ecn, Jitter, Link, Loss, NEVER, Numbered, Packet, Service, packet::Offered};
use knee_model::{Ns, PacketEvent, QueueRecord, Random, RunSpec, Steps};

/// The reverse direction of a path, from its end to the access of the flows.
pub(super) struct Reverse<P> {
    loss: Loss,
    bursts: Option<Bursts>,
    link: Option<QueuedLink<Jittered<P>>>,
    delay_ns: Steps,
    jitter: Jitter,
    /// The time at which the latest packet leaves: no packet overtakes another.
    latest_ns: Ns,
}

/// A packet on the reverse link, and its jitter behind the link.
#[derive(Clone, Default)]
struct Jittered<P> {
    packet: P,
    jitter_ns: Ns,
}

impl<P: Packet> Packet for Jittered<P> {
    #[inline]
    fn wire_bytes(&self) -> u32 {
        self.packet.wire_bytes()
    }

    fn ecn(&self) -> Ecn {
        self.packet.ecn()
    }
}

impl<P: Numbered> Numbered for Jittered<P> {
    fn flow(&self) -> u32 {
        self.packet.flow()
    }

    fn number(&self) -> u32 {
        self.packet.number()
    }
}

impl<P: Numbered> Reverse<P> {
    pub(super) fn new(spec: &RunSpec) -> Self {
        let path = &spec.path;
        let link = path.reverse.as_ref().map(|link| {
            let queue = Link::new(Service::of(&link.rate()), link.queue);
            QueuedLink::new(queue, spec.record.bin_ns > 0, false)
        });
        let bursts = path.bursts_reverse.as_ref();
        Self {
            loss: Loss::new(path.loss_reverse),
            bursts: bursts
                .map(|bursts| Bursts::new(bursts, Random::stream(spec.seed, "bursts reverse", 0))),
            link,
            delay_ns: Steps::new(path.delay_reverse_ns, &path.delay_reverse_steps),
            jitter: Jitter::new(path.jitter_reverse_ns),
            latest_ns: 0,
        }
    }

    /// Offers a packet; `random` is the random stream of its flow.
    #[inline(always)]
    pub(super) fn offer(&mut self, now_ns: Ns, packet: P, random: &mut Random) -> Offered<P> {
        if self.loss.loses(random) || self.bursts.as_mut().is_some_and(Bursts::loses) {
            return Offered::Dropped(packet, PacketEvent::Lost);
        }
        let jitter_ns = self.jitter.draw_ns(random);
        let Some(link) = &mut self.link else {
            return Offered::LeavesAt(self.leaves_at_ns(now_ns, jitter_ns), packet);
        };
        // Drop-tail drops no packet that it has accepted.
        match link.offer(now_ns, Jittered { packet, jitter_ns }, &mut |_| ()) {
            Ok(()) => Offered::Held,
            Err(dropped) => Offered::Dropped(dropped.packet, PacketEvent::Dropped),
        }
    }

    /// The packet that has left the link by now, and when it leaves the reverse direction.
    pub(super) fn depart(&mut self, now_ns: Ns) -> Option<(Ns, P)> {
        let departed = self.link.as_mut()?.depart(now_ns, &mut |_| ())?;
        Some((self.leaves_at_ns(now_ns, departed.jitter_ns), departed.packet))
    }

    /// The time at which the packet in transmission leaves the link; [`NEVER`] if there is none.
    pub(super) fn next_departure_ns(&self) -> Ns {
        self.link.as_ref().map_or(NEVER, |queued| queued.link.next_ns())
    }

    /// Ends a bin of the time series.
    pub(super) fn close_bin(&mut self) {
        self.link.iter_mut().for_each(QueuedLink::close_bin);
    }

    /// The packets held by the link.
    pub(super) fn packets(&self) -> impl Iterator<Item = &P> {
        self.link.iter().flat_map(|queued| queued.link.queue.iter()).map(|held| &held.packet)
    }

    /// The record of the link's queue, if there is a link.
    pub(super) fn into_record(self) -> Option<QueueRecord> {
        self.link.map(|queued| queued.record)
    }

    /// The time at which a packet leaves the reverse direction if its delay begins now.
    #[inline(always)]
    fn leaves_at_ns(&mut self, now_ns: Ns, jitter_ns: Ns) -> Ns {
        let delay_ns = self.delay_ns.at(now_ns) + jitter_ns;
        self.latest_ns = self.latest_ns.max(now_ns.saturating_add(delay_ns));
        self.latest_ns
    }
}
