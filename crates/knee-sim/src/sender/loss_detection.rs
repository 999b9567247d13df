//! Loss detection by time: RACK (RFC 8985 sections 5 and 6). A segment is lost when one sent after it
//! has been delivered and its own round trip, with some tolerance for reordering, has passed.

use super::scoreboard::{EVER_RETRANS, LOST, RETRANS, SACKED, Scoreboard};
use knee_cc::Phase;
use knee_net::NEVER;

/// Duplicate ACKs, or SACKed segments, that indicate a loss (RFC 5681, RFC 8985 `DupThresh`).
pub(super) const DUP_THRESH: u32 = 3;

/// Recoveries without a D-SACK after which the tolerance for reordering is small again (RFC 8985
/// section 6.2, step 4).
const REO_WND_RECOVERIES: u32 = 16;

/// The losses found by [`Scoreboard::mark_lost`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Losses {
    /// Segments newly marked lost.
    pub marked_pkts: u32,
    /// Some of them were repairs.
    pub again: bool,
    /// Time at which the next one will be lost unless it is delivered; or [`NEVER`].
    pub next_ns: u64,
}

impl Losses {
    pub(super) const NONE: Self = Self { marked_pkts: 0, again: false, next_ns: NEVER };
}

impl Scoreboard {
    /// An RTT was measured.
    #[inline]
    pub(super) fn learn_rtt(&mut self, rtt_ns: u64) {
        if self.rack.min_rtt_ns == 0 || rtt_ns < self.rack.min_rtt_ns {
            self.rack.min_rtt_ns = rtt_ns;
        }
    }

    /// Marks lost the segments sent before the latest delivered one, more than its RTT and `reo_wnd_ns` ago
    /// (RFC 8985 section 6.2, step 5); retransmissions too.
    pub(super) fn mark_lost(&mut self, now_ns: u64, reo_wnd_ns: u64) -> Losses {
        let mut losses = Losses::NONE;
        let patience_ns = self.rack.latest.rtt_ns + reo_wnd_ns;
        // First transmissions are ordered by number as by time.
        let mut number = self.rack.judged.max(self.una);
        while number < self.nxt() {
            let segment = *self.at(number);
            if !segment.has(SACKED | LOST | EVER_RETRANS) {
                if !self.rack.latest.is_after(segment.sent_ns(), number) {
                    break;
                }
                if segment.sent_ns() + patience_ns > now_ns {
                    losses.next_ns = segment.sent_ns() + patience_ns;
                    break;
                }
                self.at(number).0 |= LOST;
                losses.marked_pkts += 1;
            }
            number += 1;
        }
        self.rack.judged = number;
        self.lost += losses.marked_pkts;
        if losses.marked_pkts > 0 {
            self.flagged_end = self.flagged_end.max(number);
        }
        while let Some(&(sent_ns, number)) = self.rack.resent.front() {
            if self.is_unanswered(number, sent_ns) {
                if !self.rack.latest.is_after(sent_ns, number) {
                    break;
                }
                if sent_ns + patience_ns > now_ns {
                    losses.next_ns = losses.next_ns.min(sent_ns + patience_ns);
                    break;
                }
                let was = *self.at(number);
                self.at(number).0 = (was.0 | LOST) & !RETRANS;
                self.lost += u32::from(!was.has(LOST));
                self.retrans -= u32::from(was.has(RETRANS));
                self.repaired = self.repaired.min(number);
                losses.marked_pkts += 1;
                losses.again |= was.has(RETRANS);
            }
            self.rack.resent.take_front();
        }
        losses
    }

    /// Returns whether the retransmission of `number` at `sent_ns` is the last one, and may be in the
    /// network.
    fn is_unanswered(&mut self, number: u32, sent_ns: u64) -> bool {
        if number < self.una {
            return false;
        }
        let segment = self.at(number);
        let gone = segment.has(SACKED) || segment.has(LOST) && !segment.has(RETRANS);
        !gone && segment.sent_ns() == sent_ns
    }

    /// A timeout: the first segment is lost, and every segment sent at least `patience_ns` ago,
    /// retransmissions included (RFC 8985 section 6.3).
    pub(super) fn mark_timed_out(&mut self, now_ns: u64, patience_ns: u64) {
        (self.lost, self.retrans) = (0, 0);
        let mut first = true;
        for segment in self.segments.iter_mut().filter(|s| !s.has(SACKED)) {
            if std::mem::take(&mut first) || segment.sent_ns() + patience_ns <= now_ns {
                segment.0 = (segment.0 | LOST) & !RETRANS;
            }
            self.lost += u32::from(segment.has(LOST));
            self.retrans += u32::from(segment.has(RETRANS));
        }
        self.rack.judged = self.una;
        self.repaired = self.una;
        self.flagged_end = self.nxt();
    }

    /// Returns whether anything outstanding can have been sent before the latest delivered segment.
    #[inline]
    pub(super) fn may_have_lost(&self) -> bool {
        self.una < self.flagged_end || self.rack.latest.retransmitted
    }

    /// Time from the sending of a segment until a timeout counts it as lost; `reo_wnd_ns` is the tolerance
    /// for reordering.
    pub(super) fn patience_ns(&self, reo_wnd_ns: u64) -> u64 {
        self.rack.latest.rtt_ns + reo_wnd_ns
    }
}

/// The tolerance for reordering (RFC 8985 section 6.2, step 4).
pub(super) struct ReoWnd {
    /// `RACK.reo_wnd_mult`, in quarters of the minimum RTT.
    quarters: u32,
    /// `RACK.dsack_round`: D-SACKs of a round count once.
    round_end: Option<u32>,
    /// `RACK.reo_wnd_persist`.
    recoveries_left: u32,
}

impl ReoWnd {
    pub(super) fn new() -> Self {
        Self { quarters: 1, round_end: None, recoveries_left: 0 }
    }

    /// The tolerance now. Until reordering was seen there is none in a recovery, nor once enough is
    /// SACKed.
    pub(super) fn tolerance_ns(&self, board: &Scoreboard, phase: Phase, srtt_ns: u64) -> u64 {
        let hasty = matches!(phase, Phase::Recovery | Phase::Loss);
        if !board.rack.reordered && (hasty || board.sacked >= DUP_THRESH) {
            return 0;
        }
        (u64::from(self.quarters) * board.rack.min_rtt_ns / 4).min(srtt_ns)
    }

    /// A D-SACK: on a path that is known to reorder, more patience. On other paths it reports a
    /// needless timeout.
    pub(super) fn widen(&mut self, board: &Scoreboard) {
        if board.rack.reordered && self.round_end.is_none_or(|end| board.una >= end) {
            *self = Self {
                quarters: self.quarters + 1,
                round_end: Some(board.nxt()),
                recoveries_left: REO_WND_RECOVERIES,
            };
        }
    }

    /// The end of a recovery, fast or not.
    pub(super) fn recovery_ended(&mut self) {
        self.recoveries_left = self.recoveries_left.saturating_sub(1);
        if self.recoveries_left == 0 {
            self.quarters = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A board whose path has an RTT of 40 ns and is known to reorder or not.
    fn board(reordered: bool) -> Scoreboard {
        let mut board = Scoreboard::default();
        board.learn_rtt(40);
        board.rack.reordered = reordered;
        board
    }

    /// Section 6.2, step 4: a quarter of the minimum RTT, at most SRTT; none in a recovery or with
    /// `DupThresh` SACKed segments, until reordering was seen.
    #[test]
    fn the_tolerance_is_a_quarter_of_the_minimum_rtt() {
        let reo_wnd = ReoWnd::new();
        let mut calm = board(false);
        assert_eq!(reo_wnd.tolerance_ns(&calm, Phase::Open, 80), 10);
        assert_eq!(reo_wnd.tolerance_ns(&calm, Phase::Open, 8), 8);
        assert_eq!(reo_wnd.tolerance_ns(&calm, Phase::Recovery, 80), 0);
        assert_eq!(reo_wnd.tolerance_ns(&calm, Phase::Loss, 80), 0);
        calm.set_counted(2);
        assert_eq!(reo_wnd.tolerance_ns(&calm, Phase::Disorder, 80), 10);
        calm.set_counted(3);
        assert_eq!(reo_wnd.tolerance_ns(&calm, Phase::Disorder, 80), 0);
        let mut reordering = board(true);
        reordering.set_counted(3);
        assert_eq!(reo_wnd.tolerance_ns(&reordering, Phase::Recovery, 80), 10);
    }

    /// Each round with a D-SACK adds a quarter; 16 recoveries without one take them all back.
    #[test]
    fn dsacks_widen_the_tolerance_for_sixteen_recoveries() {
        let mut reo_wnd = ReoWnd::new();
        reo_wnd.widen(&board(false));
        assert_eq!(reo_wnd.tolerance_ns(&board(true), Phase::Open, 80), 10);
        let mut path = board(true);
        (0..4).for_each(|_| _ = path.push(0));
        reo_wnd.widen(&path);
        reo_wnd.widen(&path);
        assert_eq!(reo_wnd.tolerance_ns(&path, Phase::Open, 80), 20, "once per round");
        path.acknowledge(4, 40);
        reo_wnd.widen(&path);
        assert_eq!(reo_wnd.tolerance_ns(&path, Phase::Open, 80), 30);
        (0..15).for_each(|_| reo_wnd.recovery_ended());
        assert_eq!(reo_wnd.tolerance_ns(&path, Phase::Open, 80), 30);
        reo_wnd.recovery_ended();
        assert_eq!(reo_wnd.tolerance_ns(&path, Phase::Open, 80), 10);
    }

    /// Five segments sent at 0, 1, 2, 3, 4; the last arrives at 44: RTT 40, tolerance 2. By 44 those of
    /// 0, 1 and 2 are lost; that of 3 at 45.
    #[test]
    fn a_segment_is_lost_a_round_trip_after_its_sending() {
        let mut board = Scoreboard::default();
        (0..5).for_each(|now_ns| _ = board.push(now_ns));
        let mut news = board.acknowledge(0, 44);
        board.sack(&[(4, 5), (0, 0), (0, 0)], 44, &mut news);
        let found = board.mark_lost(44, 2);
        assert_eq!(found, Losses { marked_pkts: 3, again: false, next_ns: 45 });
        assert_eq!(board.mark_lost(45, 2), Losses { marked_pkts: 1, again: false, next_ns: NEVER });
    }
}
