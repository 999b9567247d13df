//! Where a flow's packets enter the path, and what became of them there.

use crate::{Direction, Jitter};
use knee_model::{FlowCounters, Ns, PacketEvent, Random, RunSpec};

/// Packets of one kind, data or ACKs, that did not get through.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Missed {
    lost_pkts: u32,
    dropped_pkts: u32,
}

/// A flow's place at the path. No count exceeds that of the flow's packets, which 32 bits hold.
// One cache line: with thousands of flows each is a miss.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Port {
    /// Which of the path's classes its packets belong to.
    pub(super) class: u32,
    /// Whether its data take the reverse direction, and its ACKs the forward one.
    pub(super) reverse: bool,
    /// Its data take the short way through the code, from the sender to the end of the path's only hop.
    pub(super) plain: bool,
    /// The same from the hop on.
    pub(super) plain_hop: bool,
    pub(super) access_jitter: Jitter,
    pub(super) forward_random: Random,
    pub(super) reverse_random: Random,
    pub(super) data_pkts: u32,
    pub(super) ack_pkts: u32,
    pub(super) marked_pkts: u32,
    data: Missed,
    acks: Missed,
}

const _: () = assert!(size_of::<Port>() == 64);

impl Port {
    /// That of flow `index`, whose packets belong to `class`.
    pub(super) fn new(spec: &RunSpec, index: usize, class: u32) -> Self {
        let flow = &spec.flows[index];
        Self {
            class,
            reverse: flow.route.reverse,
            plain: false,
            plain_hop: false,
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

    /// Whether packets in `direction` are the flow's data.
    #[inline]
    pub(super) fn carries_data(&self, direction: Direction) -> bool {
        self.reverse == (direction == Direction::Reverse)
    }

    /// Extra delay of the next packet on its way to the path, ns.
    #[inline]
    pub(super) fn access_jitter_ns(&mut self) -> Ns {
        self.access_jitter.draw_ns(&mut self.forward_random)
    }

    /// A packet did not get through.
    pub(super) fn miss(&mut self, direction: Direction, event: PacketEvent) {
        let data = self.carries_data(direction);
        let missed = if data { &mut self.data } else { &mut self.acks };
        match event {
            PacketEvent::Lost => missed.lost_pkts += 1,
            _ => missed.dropped_pkts += 1,
        }
    }

    /// `counters` with what became of the flow's packets.
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
