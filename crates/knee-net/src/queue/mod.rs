//! Queues before a link: drop-tail, and the disciplines that manage one actively.
//!
//! A [`Queue`] holds the packet in transmission too, and its limit counts that one, as dummynet does.
//! Drop-tail is separate, so that it has no extra cost. The other disciplines share one frame: the limit, the
//! packet in transmission, and the packets that were dropped after acceptance.

mod codel;
mod drop_tail;
mod fifo;
mod fq_codel;
mod fred;
mod judgement;
mod pie;
mod red;
#[cfg(test)]
mod tests;

use crate::{Packet, Ring};
use drop_tail::DropTail;
use fifo::Fifo;
use judgement::{Arrival, Taken, Verdict};
use knee_model::{Aqm, Discipline, QueueLimit, Random};

/// A queue of any discipline. See the module.
#[derive(Clone, Debug)]
pub struct Queue<P>(Kind<P>);

#[derive(Clone, Debug)]
enum Kind<P> {
    DropTail(DropTail<P>),
    Managed(Box<Managed<P>>),
}

impl<P: Packet> Queue<P> {
    /// An empty drop-tail queue.
    pub fn drop_tail(limit: QueueLimit) -> Self {
        Self(Kind::DropTail(DropTail::new(limit)))
    }

    /// An empty queue with `aqm` before a link of `rate_bps` bit/s, which RED needs to know for the
    /// time of a packet. It draws from `random`, which is its own.
    pub fn managed(limit: QueueLimit, aqm: &Aqm, rate_bps: u64, random: Random) -> Self {
        let rule = match &aqm.discipline {
            Discipline::Red(red) => Rule::Red(red::State::new(red, rate_bps, random)),
            Discipline::Fred(fred) => Rule::Fred(fred::State::new(fred, rate_bps, random)),
            Discipline::CoDel(codel) => Rule::CoDel(codel::State::new(codel)),
            Discipline::FqCoDel(fq) => Rule::FqCoDel(fq_codel::State::new(fq, random)),
            Discipline::Pie(pie) => Rule::Pie(pie::State::new(pie, random)),
        };
        let taken = Taken { pkts: 0, bytes: 0, ecn: aqm.ecn, dropped: Ring::default() };
        let fifo = Fifo::default();
        Self(Kind::Managed(Box::new(Managed { limit, rule, fifo, sending: None, taken })))
    }

    /// Offers a packet.
    ///
    /// # Errors
    /// The packet, dropped.
    #[inline(always)]
    pub(crate) fn push(&mut self, now_ns: u64, packet: P) -> Result<(), P> {
        match &mut self.0 {
            Kind::DropTail(queue) => queue.push(now_ns, packet),
            Kind::Managed(queue) => queue.push(now_ns, packet),
        }
    }

    /// Chooses the packet whose transmission starts now; its size, if there is one.
    #[inline(always)]
    pub(crate) fn begin(&mut self, now_ns: u64) -> Option<u32> {
        match &mut self.0 {
            Kind::DropTail(queue) => queue.front().map(Packet::wire_bytes),
            Kind::Managed(queue) => queue.begin(now_ns),
        }
    }

    /// Takes the packet out whose transmission has ended, and when it came.
    #[inline(always)]
    pub(crate) fn pop(&mut self, now_ns: u64) -> Option<(u64, P)> {
        match &mut self.0 {
            Kind::DropTail(queue) => queue.pop(),
            Kind::Managed(queue) => queue.pop(now_ns),
        }
    }

    /// A packet that was dropped after it had been accepted; each is returned once, in the order of the
    /// drops.
    #[inline]
    pub(crate) fn take_dropped(&mut self) -> Option<P> {
        match &mut self.0 {
            Kind::DropTail(_) => None,
            Kind::Managed(queue) => queue.taken.dropped.pop_front(),
        }
    }

    /// Number of packets that [`Self::take_dropped`] has yet to return.
    #[inline]
    pub(crate) fn dropped_pkts(&self) -> u32 {
        match &self.0 {
            Kind::DropTail(_) => 0,
            Kind::Managed(queue) => queue.taken.dropped.len() as u32,
        }
    }

    /// Packets held, the one in transmission included.
    #[inline]
    pub(crate) fn held_pkts(&self) -> u32 {
        match &self.0 {
            Kind::DropTail(queue) => queue.held_pkts(),
            Kind::Managed(queue) => queue.taken.pkts,
        }
    }

    /// Packets held; those of one flow in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &P> {
        let (drop_tail, managed) = match &self.0 {
            Kind::DropTail(queue) => (Some(queue), None),
            Kind::Managed(queue) => (None, Some(queue)),
        };
        let drop_tail = drop_tail.into_iter().flat_map(DropTail::iter);
        drop_tail.chain(managed.into_iter().flat_map(|queue| queue.iter()))
    }
}

/// The frame of all disciplines but drop-tail.
#[derive(Clone, Debug)]
struct Managed<P> {
    limit: QueueLimit,
    rule: Rule<P>,
    /// Waiting packets of all disciplines but FQ-CoDel, which has its own queues.
    fifo: Fifo<P>,
    sending: Option<(u64, P)>,
    taken: Taken<P>,
}

#[derive(Clone, Debug)]
enum Rule<P> {
    Red(red::State),
    Fred(fred::State),
    CoDel(codel::State),
    FqCoDel(fq_codel::State<P>),
    Pie(pie::State),
}

/// The work of CoDel and FQ-CoDel for each packet is compiled into the callers, except for a push to
/// FQ-CoDel. The other disciplines have functions of their own, so that this stays short.
impl<P: Packet> Managed<P> {
    #[inline(always)]
    fn push(&mut self, now_ns: u64, packet: P) -> Result<(), P> {
        match self.rule {
            // It judges packets when they leave.
            Rule::CoDel(_) if !self.has_room(&packet) => Err(packet),
            Rule::CoDel(_) => {
                self.enter(now_ns, packet);
                Ok(())
            }
            Rule::FqCoDel(_) => self.push_fair(now_ns, packet),
            _ => self.push_judged(now_ns, packet),
        }
    }

    #[inline(always)]
    fn enter(&mut self, now_ns: u64, packet: P) {
        self.taken.enter(packet.wire_bytes());
        self.fifo.push(now_ns, packet);
    }

    /// FQ-CoDel makes room.
    #[inline(never)]
    fn push_fair(&mut self, now_ns: u64, packet: P) -> Result<(), P> {
        while !self.has_room(&packet) {
            let Rule::FqCoDel(fq) = &mut self.rule else { return Err(packet) };
            if !fq.make_room(&packet, &mut self.taken) {
                return Err(packet);
            }
        }
        if let Rule::FqCoDel(fq) = &mut self.rule {
            self.taken.enter(packet.wire_bytes());
            fq.push(now_ns, packet);
        }
        Ok(())
    }

    /// The others judge packets when they come.
    #[inline(never)]
    fn push_judged(&mut self, now_ns: u64, mut packet: P) -> Result<(), P> {
        let arrival = Arrival {
            now_ns,
            held_pkts: self.taken.pkts,
            held_bytes: self.taken.bytes,
            bytes: packet.wire_bytes(),
            flow_key: packet.flow_key(),
        };
        let verdict = match &mut self.rule {
            Rule::Red(red) => red.arrive(&arrival),
            Rule::Fred(fred) => fred.arrive(&arrival),
            Rule::Pie(pie) => pie.arrive(&arrival),
            Rule::CoDel(_) | Rule::FqCoDel(_) => Verdict::Accept,
        };
        let marks = verdict == Verdict::Signal && self.taken.marks(&packet);
        if verdict != Verdict::Accept && !marks || !self.has_room(&packet) {
            return Err(packet);
        }
        if marks {
            packet.mark();
        }
        self.enter(now_ns, packet);
        if let Rule::Fred(fred) = &mut self.rule {
            fred.accept(&arrival);
        }
        Ok(())
    }

    /// Returns whether the limit lets `packet` join.
    #[inline(always)]
    fn has_room(&self, packet: &P) -> bool {
        let held_pkts = self.taken.pkts as usize;
        self.limit.takes(held_pkts, self.taken.bytes, packet.wire_bytes().into())
    }

    #[inline(always)]
    fn begin(&mut self, now_ns: u64) -> Option<u32> {
        self.sending = match &mut self.rule {
            Rule::CoDel(codel) => codel.next(now_ns, &mut self.fifo, &mut self.taken),
            Rule::FqCoDel(fq) => fq.next(now_ns, &mut self.taken),
            _ => self.begin_first(now_ns),
        };
        self.sending.as_ref().map(|(_, packet)| packet.wire_bytes())
    }

    #[inline(never)]
    fn begin_first(&mut self, now_ns: u64) -> Option<(u64, P)> {
        let next = self.fifo.pop()?;
        if let Rule::Pie(pie) = &mut self.rule {
            pie.begin(now_ns, now_ns - next.0);
        }
        Some(next)
    }

    #[inline(always)]
    fn pop(&mut self, now_ns: u64) -> Option<(u64, P)> {
        let (since_ns, packet) = self.sending.take()?;
        self.taken.leave(&packet);
        match self.rule {
            Rule::CoDel(_) | Rule::FqCoDel(_) => {}
            _ => self.departed(now_ns, &packet),
        }
        Some((since_ns, packet))
    }

    /// Informs the discipline that `packet` has left.
    #[inline(never)]
    fn departed(&mut self, now_ns: u64, packet: &P) {
        match &mut self.rule {
            Rule::Red(red) if self.taken.pkts == 0 => red.idle(now_ns),
            Rule::Fred(fred) => fred.depart(now_ns, packet.flow_key(), self.taken.pkts),
            Rule::Pie(pie) if self.taken.pkts == 0 => pie.idle(now_ns),
            _ => {}
        }
    }

    fn iter(&self) -> impl Iterator<Item = &P> {
        let lanes = match &self.rule {
            Rule::FqCoDel(fq) => Some(fq),
            _ => None,
        };
        let waiting = self.fifo.iter().chain(lanes.into_iter().flat_map(fq_codel::State::iter));
        self.sending.iter().map(|(_, packet)| packet).chain(waiting)
    }
}
