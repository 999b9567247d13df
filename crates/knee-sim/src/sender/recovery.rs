//! Detection and repair of losses; one file per way, chosen by the scenario.

mod duplicates;
mod newreno;
mod newreno_prr;
mod sack;
mod verdict;

use super::{scoreboard::News, tcb::Tcb};
use knee_cc::Phase;

pub(super) use newreno::NewReno;
pub(super) use newreno_prr::NewRenoPrr;
pub(super) use sack::Sack;
pub(super) use verdict::Verdict;

/// The recovery of one sender and its state.
pub(super) enum Recovery {
    Sack(Sack),
    NewReno(NewReno),
    NewRenoPrr(NewRenoPrr),
}

impl Recovery {
    pub(super) fn new(kind: knee_model::Recovery) -> Self {
        match kind {
            knee_model::Recovery::Sack => Self::Sack(Sack::new(false)),
            knee_model::Recovery::Freebsd7 => Self::Sack(Sack::new(true)),
            knee_model::Recovery::Newreno => Self::NewReno(NewReno::default()),
            knee_model::Recovery::NewrenoPrr => Self::NewRenoPrr(NewRenoPrr::default()),
        }
    }

    #[inline]
    pub(super) fn is_sack(&self) -> bool {
        matches!(self, Self::Sack(_))
    }

    /// Packets delivered by an ACK that advanced by `advanced` segments, if there is no SACK.
    pub(super) fn delivered_pkts(&mut self, tcb: &mut Tcb, advanced: u32) -> Option<u32> {
        match self {
            Self::Sack(_) => None,
            Self::NewReno(newreno) => Some(newreno.delivered_pkts(tcb, advanced)),
            Self::NewRenoPrr(newreno) => Some(newreno.delivered_pkts(tcb, advanced)),
        }
    }

    /// Moves between phases after an ACK that advanced by `advanced` segments and delivered
    /// `acked_pkts`.
    #[inline]
    pub(super) fn judge(
        &mut self,
        tcb: &mut Tcb,
        now_ns: u64,
        advanced: u32,
        acked_pkts: u32,
    ) -> Verdict {
        match self {
            Self::Sack(sack) => sack.judge(tcb, now_ns, advanced, acked_pkts),
            Self::NewReno(newreno) => newreno.judge(tcb, now_ns, advanced),
            Self::NewRenoPrr(newreno) => newreno.judge(tcb, now_ns, advanced, acked_pkts),
        }
    }

    /// Time from the sending of a segment until a timeout counts it as lost.
    pub(super) fn patience_ns(&self, tcb: &Tcb) -> u64 {
        match self {
            Self::Sack(sack) => sack.patience_ns(tcb),
            Self::NewReno(_) | Self::NewRenoPrr(_) => 0,
        }
    }

    /// The retransmission timer has expired, phase LOSS has begun; `again`: a recovery was under way, or a
    /// timeout whose repairs have advanced.
    pub(super) fn on_timeout(&mut self, tcb: &mut Tcb, again: bool) {
        match self {
            Self::Sack(_) => {}
            Self::NewReno(newreno) => newreno.on_timeout(tcb.reduction_end),
            Self::NewRenoPrr(newreno) => newreno.on_timeout(tcb, again),
        }
    }

    /// Returns whether new data are to be sent before repairs, this time.
    #[inline]
    pub(super) fn sends_new_first(&mut self) -> bool {
        match self {
            Self::Sack(_) | Self::NewReno(_) => false,
            Self::NewRenoPrr(newreno) => newreno.sends_new_first(),
        }
    }

    /// Returns whether an ACK shows that the timeout under repair was unnecessary; it advanced by `advanced`
    /// segments and reports `news`.
    #[inline]
    pub(super) fn was_spurious(&self, tcb: &Tcb, news: &News, advanced: u32) -> bool {
        match self {
            Self::Sack(_) | Self::NewReno(_) => false,
            Self::NewRenoPrr(newreno) => newreno.was_spurious(tcb, news, advanced),
        }
    }

    /// No new data could be sent.
    pub(super) fn has_no_new(&mut self) {
        if let Self::NewRenoPrr(newreno) = self {
            newreno.has_no_new();
        }
    }

    /// Packets that may be in the network beyond the window; below 0: fewer than the window.
    #[inline]
    pub(super) fn inflation_pkts(&self, phase: Phase) -> i32 {
        match self {
            Self::NewReno(newreno) => newreno.inflation_pkts(),
            Self::Sack(sack) => sack.inflation_pkts(phase),
            Self::NewRenoPrr(_) => 0,
        }
    }

    /// Returns whether an ACK that advances restarts the timer (RFC 6298 section 5.3).
    #[inline]
    pub(super) fn restarts_timer(&mut self, phase: Phase) -> bool {
        match self {
            Self::NewReno(newreno) => newreno.restarts_timer(phase),
            Self::Sack(_) | Self::NewRenoPrr(_) => true,
        }
    }

    /// Returns whether retransmitting the first hole restarts the timer: it then has a whole timeout to be
    /// acknowledged, as in Linux. Without SACK this is RFC 6582's slow-but-steady variant (section 4);
    /// [`NewReno`] is the other.
    pub(super) fn repair_restarts_timer(&self) -> bool {
        !matches!(self, Self::NewReno(_))
    }
}
