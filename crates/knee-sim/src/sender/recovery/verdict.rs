//! The verdict of a recovery on an ACK.

use knee_net::NEVER;

/// A recovery's verdict on an ACK.
#[derive(Clone, Copy)]
pub(in crate::sender) struct Verdict {
    /// The window is the recovery's: the algorithm may not grow it.
    pub holds_window: bool,
    /// Segments newly marked lost.
    pub lost_pkts: u32,
    /// Time at which a segment will be lost unless it is delivered; or [`NEVER`].
    pub reordering_due_ns: u64,
    /// Segment to retransmit whatever the window allows.
    pub repair: Option<u32>,
}

impl Verdict {
    /// Nothing is missing.
    pub(in crate::sender) const NOTHING: Self =
        Self { holds_window: false, lost_pkts: 0, reordering_due_ns: NEVER, repair: None };
}
