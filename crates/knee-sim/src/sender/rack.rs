//! State of RACK for one connection (RFC 8985 section 5): the latest delivery and the retransmissions.
//! `loss_detection` judges by it.

use knee_net::Ring;

/// The delivered segment that was sent last (RFC 8985 section 5.2): everything sent before it can
/// be judged.
#[derive(Default)]
pub(super) struct Latest {
    sent_ns: u64,
    end: u32,
    pub rtt_ns: u64,
    pub retransmitted: bool,
}

impl Latest {
    /// Returns whether segment `number`, sent at `sent_ns`, was sent before; of two sent at once, the lower
    /// number was.
    pub(super) fn is_after(&self, sent_ns: u64, number: u32) -> bool {
        (self.sent_ns, self.end) > (sent_ns, number + 1)
    }
}

/// State of RACK for one connection.
#[derive(Default)]
pub(super) struct Rack {
    pub latest: Latest,
    /// `RACK.min_RTT`, or 0: an ACK that comes sooner after a retransmission is of the original.
    pub min_rtt_ns: u64,
    /// Everything below has been judged: it is SACKed, marked lost or retransmitted.
    pub judged: u32,
    /// A segment arrived after a later one, though it was sent only once (`RACK.reordering_seen`).
    pub reordered: bool,
    /// Times and numbers of the retransmissions not judged yet, in the order of their sending.
    pub resent: Ring<(u64, u32)>,
}

impl Rack {
    /// The segment that ends at `end` was delivered. Section 6.2, steps 1 and 2; `RACK.rtt` is that
    /// of the segment that was sent last.
    pub(super) fn delivered(&mut self, sent_ns: u64, end: u32, now_ns: u64, retransmitted: bool) {
        let rtt_ns = now_ns - sent_ns;
        let original = retransmitted && rtt_ns < self.min_rtt_ns;
        if !original && (sent_ns, end) > (self.latest.sent_ns, self.latest.end) {
            self.latest = Latest { sent_ns, end, rtt_ns, retransmitted };
        }
    }

    /// Like [`Self::delivered`], when nothing is known to be missing.
    #[inline]
    pub(super) fn delivered_in_order(&mut self, sent_ns: u64, end: u32, now_ns: u64) {
        if sent_ns >= self.latest.sent_ns {
            let rtt_ns = now_ns - sent_ns;
            self.latest = Latest { sent_ns, end, rtt_ns, retransmitted: false };
        }
    }

    /// Segment `number` was sent again; those below `una` are acknowledged.
    pub(super) fn retransmitted(&mut self, number: u32, now_ns: u64, una: u32) {
        while self.resent.front().is_some_and(|(_, n)| *n < una) {
            self.resent.take_front();
        }
        self.resent.push_back((now_ns, number));
    }

    /// Nothing from `una` on is judged. `resent`: sending time of each retransmission, ascending, and its
    /// number.
    pub(super) fn restart(&mut self, una: u32, resent: Vec<(u64, u32)>) {
        self.resent = Ring::default();
        resent.into_iter().for_each(|resent| self.resent.push_back(resent));
        self.judged = una;
    }
}
