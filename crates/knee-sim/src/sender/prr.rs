//! Proportional rate reduction (RFC 6937, RFC 9937): the window on its way to the threshold.

/// State of one recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prr {
    /// `RecoverFS`: the window when recovery began.
    flight_pkts: u32,
    delivered_pkts: u32,
    out_pkts: u32,
}

impl Prr {
    pub(super) fn start(flight_pkts: u32) -> Self {
        Self { flight_pkts: flight_pkts.max(1), delivered_pkts: 0, out_pkts: 0 }
    }

    /// A packet was sent during recovery.
    pub(super) fn sent(&mut self) {
        self.out_pkts += 1;
    }

    /// The window after an ACK that delivered `delivered_pkts`, with `pipe_pkts` in the network
    /// (RFC 6937 section 3). Below the threshold it grows as in slow start while there is
    /// `progress`, else it stays (RFC 9937 section 6): an ACK that advances and reports no
    /// further loss.
    pub(super) fn window(
        &mut self,
        delivered_pkts: u32,
        pipe_pkts: u32,
        ssthresh_pkts: u32,
        progress: bool,
    ) -> u32 {
        self.delivered_pkts += delivered_pkts;
        let owed = |budget: u64| (budget as u32).saturating_sub(self.out_pkts);
        let send = if pipe_pkts > ssthresh_pkts {
            let share = u64::from(self.delivered_pkts) * u64::from(ssthresh_pkts);
            owed(share.div_ceil(u64::from(self.flight_pkts)))
        } else {
            let limit =
                owed(u64::from(self.delivered_pkts)).max(delivered_pkts) + u32::from(progress);
            limit.min(ssthresh_pkts - pipe_pkts)
        };
        // The first retransmission must always leave.
        let least = u32::from(self.out_pkts == 0);
        // If a timer finds the loss, and nothing is in the network, no ACK would open a window of 0.
        (pipe_pkts + send.max(least)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Window of 20, one loss, threshold 10: one packet leaves for every two delivered, and the
    /// window ends at 10 (RFC 6937 section 4).
    #[test]
    fn reduces_in_proportion() {
        let mut prr = Prr::start(20);
        let (mut pipe, mut sent) = (19 - 3, 0);
        let window = prr.window(3, pipe, 10, false);
        for _ in pipe..window {
            prr.sent();
            sent += 1;
        }
        pipe = window;
        for _ in 0..16 {
            pipe -= 1;
            let window = prr.window(1, pipe, 10, false);
            for _ in pipe..window {
                prr.sent();
                sent += 1;
            }
            pipe = pipe.max(window);
        }
        assert_eq!((sent, pipe), (10, 10));
    }

    /// Below the threshold it refills by at most one more than the deliveries.
    #[test]
    fn refills_like_slow_start() {
        let mut prr = Prr::start(20);
        assert_eq!(prr.window(3, 2, 10, true), 2 + 4);
        (0..4).for_each(|_| prr.sent());
        assert_eq!(prr.window(1, 5, 10, true), 5 + 2);
        (0..2).for_each(|_| prr.sent());
        assert_eq!(prr.window(1, 6, 10, false), 6 + 1);
    }

    /// A timer finds that all is lost after packets have left during the reduction: a repair leaves.
    #[test]
    fn an_empty_network_leaves_a_window_of_one() {
        let mut prr = Prr::start(4);
        prr.sent();
        assert_eq!(prr.window(0, 0, 2, false), 1);
    }

    /// Before any delivery, the repair leaves all the same.
    #[test]
    fn first_repair_always_leaves() {
        let mut prr = Prr::start(20);
        assert_eq!(prr.window(0, 19, 10, false), 20);
        prr.sent();
        assert_eq!(prr.window(0, 20, 10, false), 20);
    }
}
