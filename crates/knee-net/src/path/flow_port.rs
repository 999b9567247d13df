//! The port of a flow: its place at the path, and counts of its packets.

use crate::{Direction, Ecn, End, Jitter};
use knee_model::{FlowCounters, Ns, PacketEvent, Random, RunSpec};

/// Packets of one kind, data or ACKs, that did not get through.
#[derive(Clone, Copy, Debug, Default)]
struct Missed {
    lost_pkts: u32,
    dropped_pkts: u32,
}

/// The place of a flow at the path, and counts of its packets. Counts never exceed the number of the flow's
/// packets, which fits into 32 bits.
#[derive(Clone, Debug)]
pub(super) struct FlowPort {
    /// Index of the flow's access group.
    pub(super) group: usize,
    pub(super) last_hop: usize,
    /// True if its data take the reverse direction, and its ACKs the forward one.
    reverse: bool,
    access_jitter: Jitter,
    pub(super) forward_random: Random,
    pub(super) reverse_random: Random,
    pub(super) data_pkts: u32,
    pub(super) ack_pkts: u32,
    marked_pkts: u32,
    data: Missed,
    acks: Missed,
}

impl FlowPort {
    /// The port of flow `index`.
    pub(super) fn new(spec: &RunSpec, index: usize, group: usize, last_hop: usize) -> Self {
        let flow = &spec.flows[index];
        Self {
            group,
            last_hop,
            reverse: flow.route.reverse,
            access_jitter: Jitter::new(flow.access_jitter_ns),
            forward_random: spec.random("forward", index),
            reverse_random: spec.random("reverse", index),
            data_pkts: 0,
            ack_pkts: 0,
            marked_pkts: 0,
            data: Missed::default(),
            acks: Missed::default(),
        }
    }

    /// The end that packets in `direction` reach.
    pub(super) fn end(&self, direction: Direction) -> End {
        if self.carries_data(direction) { End::Receiver } else { End::Sender }
    }

    /// Returns whether packets in `direction` are the flow's data.
    #[inline]
    pub(super) fn carries_data(&self, direction: Direction) -> bool {
        self.reverse == (direction == Direction::Reverse)
    }

    /// Counts a packet that `from` sends; returns the packet's direction.
    #[inline(always)]
    pub(super) fn count_sent(&mut self, from: End) -> Direction {
        match from {
            End::Sender => self.data_pkts += 1,
            End::Receiver => self.ack_pkts += 1,
        }
        let forward = self.reverse == (from == End::Receiver);
        if forward { Direction::Forward } else { Direction::Reverse }
    }

    /// Counts the congestion mark of a data packet that leaves its last hop, if it has one.
    #[inline(always)]
    pub(super) fn count_departed(&mut self, ecn: Ecn) {
        self.marked_pkts += u32::from(ecn == Ecn::Marked);
    }

    /// Extra delay of the next packet on its way to the path, ns.
    #[inline]
    pub(super) fn access_jitter_ns(&mut self) -> Ns {
        self.access_jitter.draw_ns(&mut self.forward_random)
    }

    /// Counts a packet that did not get through.
    pub(super) fn count_lost(&mut self, direction: Direction, event: PacketEvent) {
        let data = self.carries_data(direction);
        let missed = if data { &mut self.data } else { &mut self.acks };
        match event {
            PacketEvent::Lost => missed.lost_pkts += 1,
            _ => missed.dropped_pkts += 1,
        }
    }

    /// Adds the counts of this port to `counters`.
    pub(super) fn count(&self, counters: FlowCounters) -> FlowCounters {
        FlowCounters {
            sent_pkts: self.data_pkts.into(),
            random_losses_pkts: self.data.lost_pkts.into(),
            queue_drops_pkts: self.data.dropped_pkts.into(),
            marked_pkts: self.marked_pkts.into(),
            ack_losses_pkts: self.acks.lost_pkts.into(),
            ack_drops_pkts: self.acks.dropped_pkts.into(),
            ..counters
        }
    }
}
