//! The interface between a network and the endpoints of its flows.

use crate::{Direction, LostPacket, Network, Numbered, Path};
use knee_model::Ns;

/// The endpoints of a path's flows.
pub trait Endpoints {
    /// The packets of the endpoints.
    type Packet: Numbered;
    /// Their timers. If several timers of one flow are due at the same time, the smallest is first.
    type Timer: Copy + Ord;
    /// Errors of the endpoints.
    type Error;

    /// A packet reaches an end of the path.
    ///
    /// # Errors
    /// An error of the endpoints.
    fn arrive(
        &mut self,
        packet: Self::Packet,
        direction: Direction,
        network: &mut Network<Self::Packet, Self::Timer>,
    ) -> Result<(), Self::Error>;

    /// A timer of `flow` expires; for lazy timers see [`Network::came_up`].
    ///
    /// # Errors
    /// An error of the endpoints.
    fn on_timer(
        &mut self,
        flow: u32,
        timer: Self::Timer,
        network: &mut Network<Self::Packet, Self::Timer>,
    ) -> Result<(), Self::Error>;

    /// A packet was lost or dropped. The path has counted it.
    ///
    /// # Errors
    /// An error of the endpoints.
    fn on_lost(&mut self, lost: LostPacket<Self::Packet>) -> Result<(), Self::Error>;

    /// A bin of the time series ends.
    fn close_bin(&mut self, now_ns: Ns, path: &Path<Self::Packet>);
}
