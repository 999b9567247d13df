//! A queue and its link, with a record of their actions.

use crate::{Ecn, Link, Numbered};
use knee_model::{Ns, PacketEvent, PacketLog, QueueBin, QueueRecord};

/// A queue and its link, of a hop or of the reverse direction.
pub(super) struct QueuedLink<P> {
    pub(super) link: Link<P>,
    /// The queue's record until now.
    pub(super) record: QueueRecord,
    /// The current bin of the time series.
    bin: QueueBin,
    keeps_bins: bool,
    keeps_log: bool,
}

impl<P: Numbered> QueuedLink<P> {
    /// Records a time series if `keeps_bins`, and each packet's way if `keeps_log`.
    pub(super) fn new(link: Link<P>, keeps_bins: bool, keeps_log: bool) -> Self {
        let (record, bin) = (QueueRecord::default(), QueueBin::default());
        Self { link, record, bin, keeps_bins, keeps_log }
    }

    /// Offers a packet to the queue. `on_drop` gets the packets that the queue drops to make room.
    ///
    /// # Errors
    /// The packet, dropped.
    #[inline(always)]
    pub(super) fn offer(
        &mut self,
        now_ns: Ns,
        packet: P,
        on_drop: &mut impl FnMut(P),
    ) -> Result<(), P> {
        // The queue is about to own the packet.
        let label = self.keeps_log.then(|| Label::of(&packet));
        let refused = self.link.enqueue(now_ns, packet);
        let held_pkts = self.link.queue.held_pkts();
        let event = if refused.is_ok() {
            self.record.max_pkts = self.record.max_pkts.max(held_pkts);
            // The queue made room before the packet came in.
            self.collect_dropped(now_ns, held_pkts - 1, on_drop);
            PacketEvent::Enqueued
        } else {
            self.count_drop();
            self.collect_dropped(now_ns, held_pkts, on_drop);
            PacketEvent::Dropped
        };
        if let Some(label) = label {
            self.note(now_ns, label, event, held_pkts);
        }
        refused
    }

    /// Logs that a packet was lost before it reached the queue.
    #[inline]
    pub(super) fn note_loss(&mut self, now_ns: Ns, packet: &P) {
        if self.keeps_log {
            let held_pkts = self.link.queue.held_pkts();
            self.note(now_ns, Label::of(packet), PacketEvent::Lost, held_pkts);
        }
    }

    /// The packet that has left the link by now. `on_drop` gets the packets that the queue drops before it
    /// chooses the next one.
    #[inline(always)]
    pub(super) fn depart(&mut self, now_ns: Ns, on_drop: &mut impl FnMut(P)) -> Option<P> {
        let departed = self.link.dequeue(now_ns)?;
        let packet = departed.packet;
        self.count_departure(&packet, departed.waited_ns);
        let held_pkts = self.link.queue.held_pkts();
        if self.keeps_log {
            let before_drops_pkts = held_pkts + self.link.queue.dropped_pkts();
            self.note(now_ns, Label::of(&packet), PacketEvent::Departed, before_drops_pkts);
        }
        self.collect_dropped(now_ns, held_pkts, on_drop);
        Some(packet)
    }

    /// Ends a bin of the time series.
    pub(super) fn close_bin(&mut self) {
        self.bin.held_pkts = self.link.queue.held_pkts();
        self.record.bins.push(std::mem::take(&mut self.bin));
    }

    /// Reports the packets that the queue dropped after it had accepted them; `held_pkts` remain.
    #[inline(always)]
    fn collect_dropped(&mut self, now_ns: Ns, held_pkts: u32, on_drop: &mut impl FnMut(P)) {
        while let Some(packet) = self.link.queue.take_dropped() {
            self.count_drop();
            if self.keeps_log {
                let held_pkts = held_pkts + self.link.queue.dropped_pkts();
                self.note(now_ns, Label::of(&packet), PacketEvent::Dropped, held_pkts);
            }
            on_drop(packet);
        }
    }

    #[inline]
    fn count_drop(&mut self) {
        self.record.dropped_pkts += 1;
        self.bin.dropped_pkts += 1;
    }

    #[inline(always)]
    fn count_departure(&mut self, packet: &P, waited_ns: Ns) {
        let bytes = u64::from(packet.wire_bytes());
        let marked = u32::from(packet.ecn() == Ecn::Marked);
        self.record.departed_pkts += 1;
        self.record.departed_bytes += bytes;
        self.record.marked_pkts += u64::from(marked);
        self.bin.marked_pkts += marked;
        if self.keeps_bins {
            self.record.delay.add(waited_ns);
            self.bin.departed_pkts += 1;
            self.bin.departed_bytes += bytes;
            self.bin.delay_sum_ns += waited_ns;
            self.bin.delay_max_ns = self.bin.delay_max_ns.max(waited_ns);
        }
    }

    fn note(&mut self, time_ns: Ns, label: Label, event: PacketEvent, held_pkts: u32) {
        let Label { flow, number, bytes } = label;
        self.record.log.push(PacketLog { time_ns, flow, number, bytes, held_pkts, event });
    }
}

/// The log's view of a packet.
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
