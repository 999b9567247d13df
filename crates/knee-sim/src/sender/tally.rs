//! Counts of a sender, in a quarter of the memory of [`FlowCounters`]: no count exceeds the number of its
//! packets, which fits into 32 bits.

use knee_cc::Conn;
use knee_model::{Call, FlowCounters};

/// The counts, with the names of [`FlowCounters`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub retransmitted_pkts: u32,
    pub loss_events: u32,
    pub ecn_reductions: u32,
    pub timeouts: u32,
    pub undos: u32,
    losses_tolerated: u32,
    losses_raised_window: u32,
    losses_region_b: u32,
    delay_backoffs_region_a: u32,
    delay_backoffs_region_b: u32,
    rounds_region_a: u32,
    rounds_region_b: u32,
}

impl Tally {
    /// Counts the notes of the algorithm in a call ([`FlowCounters::count`]).
    #[inline(always)]
    pub(super) fn count(&mut self, call: Call, after: &Conn, result: u32) {
        if after.notes != 0 || call == Call::Ssthresh {
            self.count_notes(call, after, result);
        }
    }

    #[inline(never)]
    fn count_notes(&mut self, call: Call, after: &Conn, result: u32) {
        let mut noted = FlowCounters::default();
        noted.count(call, after, result);
        self.losses_tolerated += noted.losses_tolerated as u32;
        self.losses_raised_window += noted.losses_raised_window as u32;
        self.losses_region_b += noted.losses_region_b as u32;
        self.delay_backoffs_region_a += noted.delay_backoffs_region_a as u32;
        self.delay_backoffs_region_b += noted.delay_backoffs_region_b as u32;
        self.rounds_region_a += noted.rounds_region_a as u32;
        self.rounds_region_b += noted.rounds_region_b as u32;
    }
}

impl From<Tally> for FlowCounters {
    fn from(tally: Tally) -> Self {
        Self {
            retransmitted_pkts: tally.retransmitted_pkts.into(),
            loss_events: tally.loss_events.into(),
            ecn_reductions: tally.ecn_reductions.into(),
            timeouts: tally.timeouts.into(),
            undos: tally.undos.into(),
            losses_tolerated: tally.losses_tolerated.into(),
            losses_raised_window: tally.losses_raised_window.into(),
            losses_region_b: tally.losses_region_b.into(),
            delay_backoffs_region_a: tally.delay_backoffs_region_a.into(),
            delay_backoffs_region_b: tally.delay_backoffs_region_b.into(),
            rounds_region_a: tally.rounds_region_a.into(),
            rounds_region_b: tally.rounds_region_b.into(),
            ..Self::default()
        }
    }
}
