//! Congestion window validation: finds whether the window, not the application, held sending back. An
//! algorithm grows its window only if so. The question is that of RFC 7661, the rule that of Linux: the
//! largest flight of a window's time decides.

use super::scoreboard::Scoreboard;

#[derive(Default)]
pub(super) struct CwndValidation {
    /// Largest flight of the present window.
    max_outstanding_pkts: u32,
    /// The present window ends when this segment is acknowledged.
    window_end: u32,
    /// The window was the limit when the flight was largest.
    pub(super) limited: bool,
}

impl CwndValidation {
    /// Returns whether a window of `cwnd_pkts` counts as the limit. In slow start, using half of it is
    /// enough.
    #[inline]
    pub(super) fn is_limited(&self, cwnd_pkts: u32, ssthresh_pkts: u32) -> bool {
        let half_used = u64::from(cwnd_pkts) < 2 * u64::from(self.max_outstanding_pkts);
        let slow_start = cwnd_pkts < ssthresh_pkts;
        self.limited || (slow_start && half_used)
    }

    /// Everything was sent that could be; `limited`: the window does not allow more.
    #[inline]
    pub(super) fn sent(&mut self, board: &Scoreboard, limited: bool) {
        let outstanding_pkts = board.outstanding();
        let new_window = || board.una >= self.window_end;
        let larger = || !self.limited && outstanding_pkts > self.max_outstanding_pkts;
        if limited || new_window() || larger() {
            self.limited = limited;
            self.max_outstanding_pkts = outstanding_pkts;
            self.window_end = board.nxt();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window of 10 in congestion avoidance: once it was the limit it is until all that was
    /// outstanding then is acknowledged. A window of 12 in slow start is used by half with 7, not
    /// with 6.
    #[test]
    fn a_window_is_judged_by_its_largest_flight() {
        let mut board = Scoreboard::default();
        let mut validation = CwndValidation::default();
        (0..10).for_each(|_| _ = board.push(0));
        validation.sent(&board, true);
        assert!(validation.is_limited(10, 5));
        board.acknowledge(9, 1);
        validation.sent(&board, false);
        assert!(validation.is_limited(10, 5), "of the same window");
        (0..5).for_each(|_| _ = board.push(1));
        board.acknowledge(10, 2);
        validation.sent(&board, false);
        assert!(!validation.is_limited(10, 5));
        assert!(!validation.is_limited(10, 20), "5 of 10 outstanding");
        (0..2).for_each(|_| _ = board.push(2));
        validation.sent(&board, false);
        assert!(validation.is_limited(12, 20) && !validation.is_limited(14, 20), "7 outstanding");
    }
}
