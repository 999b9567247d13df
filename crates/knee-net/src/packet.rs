//! The vocabulary of the network: packets, directions, ends, and an element's answers.

use knee_model::{Ns, PacketEvent};

/// The ECN field of a packet (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not-ECT: congestion is signalled by dropping it.
    #[default]
    NotCapable,
    /// ECT: it may be marked instead.
    Capable,
    /// CE: it was marked.
    Marked,
}

/// Anything that travels: an element needs only its size. An empty place in a queue holds the default value.
pub trait Packet: Default {
    /// Size of the whole packet, headers included, bytes.
    fn wire_bytes(&self) -> u32;

    /// Key by which queues distinguish flows.
    fn flow_key(&self) -> u32 {
        0
    }

    /// Its ECN field.
    fn ecn(&self) -> Ecn {
        Ecn::NotCapable
    }

    /// Sets its ECN field to [`Ecn::Marked`]; called only for packets that are capable or marked.
    fn mark(&mut self) {}
}

/// A packet that a path carries.
pub trait Numbered: Packet + Clone {
    /// Index of its flow.
    fn flow(&self) -> u32;
    /// Segment or packet number within the flow.
    fn number(&self) -> u32;
}

/// The direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the path's start to its end, over the hops.
    Forward,
    /// From the path's end to its start, over the reverse link if there is one.
    Reverse,
}

impl Direction {
    /// The opposite direction.
    pub fn other(self) -> Self {
        match self {
            Self::Forward => Self::Reverse,
            Self::Reverse => Self::Forward,
        }
    }
}

/// An end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Sends data.
    Sender,
    /// Sends ACKs.
    Receiver,
}

/// A packet that the path did not carry to its end.
#[derive(Debug)]
pub struct LostPacket<P> {
    /// Time of the loss.
    pub time_ns: Ns,
    /// The packet.
    pub packet: P,
    /// Its direction.
    pub direction: Direction,
    /// [`PacketEvent::Lost`] at random, or [`PacketEvent::Dropped`] by a queue.
    pub event: PacketEvent,
}

impl<P> LostPacket<P> {
    /// The loss in words, for a capture.
    pub fn how(&self) -> &'static str {
        match (self.direction, self.event) {
            (Direction::Forward, event) => event.name(),
            (Direction::Reverse, PacketEvent::Lost) => "lost on the reverse path",
            (Direction::Reverse, _) => "dropped on the reverse path",
        }
    }
}

/// The answer of an element to a packet that it is offered.
pub(crate) enum Offered<P> {
    /// It leaves the element at this time.
    LeavesAt(Ns, P),
    /// It is lost at random or dropped by the queue.
    Dropped(P, PacketEvent),
    /// The element holds it, and says later when it leaves.
    Held,
}
