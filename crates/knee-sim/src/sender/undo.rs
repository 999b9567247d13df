//! Undoing a reduction that D-SACKs (RFC 2883) prove unnecessary: when the receiver has reported every
//! retransmission since the reduction as a duplicate, nothing had been lost. The response is that of Linux
//! (compare RFC 3708 section 3): the algorithm chooses the window.

use knee_cc::SSTHRESH_INFINITE;

/// The latest reduction, as far as it may be undone.
pub(super) struct Undo {
    /// Retransmissions not yet reported as duplicates; `None`: nothing may be undone, whatever is reported.
    pub pending_pkts: Option<u32>,
    /// First segment outstanding when it was made.
    from: u32,
    /// It was made by a fast recovery, not by a timeout.
    pub fast: bool,
    pub prior_ssthresh_pkts: u32,
}

impl Undo {
    pub(super) fn new() -> Self {
        Self { pending_pkts: None, from: 0, fast: false, prior_ssthresh_pkts: SSTHRESH_INFINITE }
    }

    /// A reduction that is about to be made, by a `fast` recovery or by a timeout, from a threshold of
    /// `prior_ssthresh_pkts`; segment `from` is the first outstanding.
    pub(super) fn of(from: u32, fast: bool, prior_ssthresh_pkts: u32) -> Self {
        Self { pending_pkts: Some(0), from, fast, prior_ssthresh_pkts }
    }

    pub(super) fn retransmitted(&mut self) {
        if let Some(pending_pkts) = &mut self.pending_pkts {
            *pending_pkts += 1;
        }
    }

    /// Segment `number` was reported as a duplicate; true if all retransmissions now are. Reports of
    /// an earlier window's retransmissions say nothing of this reduction.
    pub(super) fn is_proven_by(&mut self, number: u32) -> bool {
        let pending = self.pending_pkts.filter(|&p| p > 0 && number >= self.from);
        let Some(pending_pkts) = pending else { return false };
        self.pending_pkts = (pending_pkts > 1).then_some(pending_pkts - 1);
        pending_pkts == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two retransmissions: the second report of a segment at or above `from` proves it, once.
    #[test]
    fn every_retransmission_must_be_reported() {
        let mut undo = Undo { pending_pkts: Some(0), from: 10, ..Undo::new() };
        assert!(!undo.is_proven_by(10), "nothing was retransmitted");
        (0..2).for_each(|_| undo.retransmitted());
        assert!(!undo.is_proven_by(9), "of an earlier window");
        assert!(!undo.is_proven_by(10));
        assert!(undo.is_proven_by(12));
        assert!(!undo.is_proven_by(12));
    }

    #[test]
    fn a_forbidden_undo_is_never_proven() {
        let mut undo = Undo { pending_pkts: Some(1), ..Undo::new() };
        undo.pending_pkts = None;
        undo.retransmitted();
        assert!(!undo.is_proven_by(0));
    }
}
