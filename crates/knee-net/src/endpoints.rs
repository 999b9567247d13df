//! The endpoints of the flows, as the event loop calls them.

use crate::{Direction, LostPacket, Numbered, Path};
use knee_model::Ns;

/// The endpoints of a path's flows; they act through the network `N`, a [`crate::Network`].
pub trait Endpoints<N> {
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
        network: &mut N,
    ) -> Result<(), Self::Error>;

    /// A timer of `flow` expires; for lazy timers see [`crate::Network::came_up`].
    ///
    /// # Errors
    /// An error of the endpoints.
    fn on_timer(
        &mut self,
        flow: u32,
        timer: Self::Timer,
        network: &mut N,
    ) -> Result<(), Self::Error>;

    /// A packet was lost or dropped. The path has counted it.
    ///
    /// # Errors
    /// An error of the endpoints.
    fn on_lost(&mut self, lost: LostPacket<Self::Packet>) -> Result<(), Self::Error>;

    /// A bin of the time series ends.
    fn close_bin(&mut self, now_ns: Ns, path: &Path<Self::Packet>);
}
