//! Totals of a path that runs without end.

use knee_model::{Lateness, Ns};
use serde::{Deserialize, Serialize};

/// Totals since the path was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Passed {
    /// Time since then.
    pub time_ns: Ns,
    /// Sent by the sender's end.
    pub forward_pkts: u64,
    /// Packets among them that were delivered.
    pub delivered_pkts: u64,
    /// Bytes of whole packets that left the bottleneck.
    pub delivered_bytes: u64,
    /// Dropped by the full queue.
    pub queue_drops_pkts: u64,
    /// Lost at random towards the receiver.
    pub random_losses_pkts: u64,
    /// Sent by the receiver's end.
    pub reverse_pkts: u64,
    /// Packets among them lost at random.
    pub reverse_losses_pkts: u64,
    /// Packets among them dropped by the full queue of the reverse link.
    pub reverse_drops_pkts: u64,
    /// In the queue now, the one in transmission included.
    pub queue_pkts: u32,
    /// At most.
    pub queue_max_pkts: u32,
    /// Queueing delay: median, 95th and 99th percentile, largest, ns.
    pub queue_delay_ns: [Ns; 4],
    /// Lateness of the forwarder.
    pub lateness: Lateness,
}
