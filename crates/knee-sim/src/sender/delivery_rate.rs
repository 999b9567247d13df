//! Delivery rate samples (draft-ietf-ccwg-bbr-06, section 4.1.2), for algorithms of profile RATE.

use knee_cc::Ack;
use knee_model::NS_PER_US;
use knee_net::Ring;

/// The state at the latest transmission of a segment (section 4.1.2.3.1).
#[derive(Clone, Copy, Default)]
pub(super) struct Sent {
    /// `P.send_time`.
    sent_ns: u64,
    /// `P.first_send_time`.
    first_sent_ns: u64,
    /// `P.delivered_time`.
    delivered_ns: u64,
    /// `P.delivered`.
    delivered_pkts: u64,
    /// `P.is_app_limited`.
    app_limited: bool,
}

/// State of one sender.
#[derive(Default)]
pub(super) struct DeliveryRate {
    /// Entries of the outstanding segments.
    sent: Ring<Sent>,
    /// Number of the first of them.
    una: u32,
    /// `C.first_send_time`: sending time of the segment that was delivered last.
    first_sent_ns: u64,
    /// `C.delivered_time`.
    delivered_ns: u64,
    /// `C.app_limited`: samples are limited by the application until more than this is delivered;
    /// 0: they are not.
    app_limited_pkts: u64,
    /// `C.min_rtt`; none is known at first.
    min_rtt_ns: Option<u64>,
}

impl DeliveryRate {
    /// Segment `number` leaves, for the first time or again; `idle`: there was no other packet in
    /// the network.
    pub(super) fn sent(&mut self, number: u32, now_ns: u64, idle: bool, delivered_pkts: u64) {
        if idle {
            (self.first_sent_ns, self.delivered_ns) = (now_ns, now_ns);
        }
        let sent = Sent {
            sent_ns: now_ns,
            first_sent_ns: self.first_sent_ns,
            delivered_ns: self.delivered_ns,
            delivered_pkts,
            app_limited: self.app_limited_pkts != 0,
        };
        match self.sent.get_mut((number - self.una) as usize) {
            Some(again) => *again = sent,
            None => self.sent.push_back(sent),
        }
    }

    /// Samples are limited by the application until `delivered_and_under_way_pkts` are delivered.
    pub(super) fn limited(&mut self, delivered_and_under_way_pkts: u64) {
        self.app_limited_pkts = delivered_and_under_way_pkts.max(1);
    }

    /// An ACK: everything below `una` is acknowledged, and the segment that ends at `newest_end` was sent
    /// last of those that it newly acknowledges (0: none). Returns the state at that segment's sending.
    #[inline(always)]
    pub(super) fn take_up_to(&mut self, una: u32, newest_end: u32) -> Option<Sent> {
        let newest = newest_end.checked_sub(self.una + 1);
        let newest = newest.and_then(|index| self.sent.get(index as usize).copied());
        while self.una < una && self.sent.take_front().is_some() {
            self.una += 1;
        }
        newest
    }

    /// The sample of the ACK `ack`; `newest` was sent last of the segments that it newly acknowledges.
    /// `rtt_ns`: its RTT, unless it was sent more than once. There is no sample over less than the minimum
    /// RTT, nor before there is one: it is then unknown whether a retransmission was needless.
    #[inline(always)]
    pub(super) fn acknowledged(
        &mut self,
        newest: Option<Sent>,
        now_ns: u64,
        rtt_ns: Option<u64>,
        ack: &mut Ack,
    ) {
        if self.app_limited_pkts < ack.delivered_pkts {
            self.app_limited_pkts = 0;
        }
        if let Some(rtt_ns) = rtt_ns {
            self.min_rtt_ns = Some(self.min_rtt_ns.map_or(rtt_ns, |least_ns| least_ns.min(rtt_ns)));
        }
        let Some(p) = newest else { return };
        self.delivered_ns = now_ns;
        self.first_sent_ns = p.sent_ns;
        ack.sample_prior_pkts = p.delivered_pkts as u32;
        ack.sample_app_limited = u32::from(p.app_limited);
        let interval_ns = (p.sent_ns - p.first_sent_ns).max(now_ns - p.delivered_ns);
        let interval_us = interval_ns / NS_PER_US;
        if interval_us > 0 && self.min_rtt_ns.is_some_and(|least_ns| interval_ns >= least_ns) {
            ack.sample_us = interval_us.min(u64::from(u32::MAX)) as u32;
            ack.sample_pkts = (ack.delivered_pkts - p.delivered_pkts) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_model::NS_PER_MS;

    fn ack(delivered_pkts: u64) -> Ack {
        Ack { delivered_pkts, ..Ack::default() }
    }

    impl DeliveryRate {
        /// An ACK, as the sender takes it in.
        fn hear(&mut self, una: u32, newest: u32, now_ns: u64, rtt_ns: Option<u64>, ack: &mut Ack) {
            let newest = self.take_up_to(una, newest);
            self.acknowledged(newest, now_ns, rtt_ns, ack);
        }
    }

    /// Packets, interval, `delivered` at sending, application-limited.
    fn sample(ack: Ack) -> (u32, u32, u32, u32) {
        (ack.sample_pkts, ack.sample_us, ack.sample_prior_pkts, ack.sample_app_limited)
    }

    /// Ten packets leave at once at 0; they arrive from 40 ms on, one each millisecond. The first sample is
    /// one packet in 40 ms, the tenth ten packets in 49 ms. The sample of packets sent with the first ACK
    /// covers the deliveries after that.
    #[test]
    fn samples_span_a_round_trip() {
        let mut rate = DeliveryRate::default();
        (0..10).for_each(|n| rate.sent(n, 0, n == 0, 0));
        for n in 0..10 {
            let now_ns = u64::from(40 + n) * NS_PER_MS;
            let mut ack = ack(u64::from(n) + 1);
            rate.hear(n + 1, n + 1, now_ns, Some(now_ns), &mut ack);
            assert_eq!(sample(ack), (n + 1, (40 + n) * 1000, 0, 0));
            rate.sent(10 + n, now_ns, false, u64::from(n) + 1);
        }
        // 10 was sent at 40 ms, after 1 had been delivered, then; by 80 ms, 2 to 11 are. Had it been
        // sent over a longer time than acknowledged, that would count: 0 ... 40 ms.
        let mut ack = ack(11);
        rate.hear(11, 11, 80 * NS_PER_MS, Some(40 * NS_PER_MS), &mut ack);
        assert_eq!(sample(ack), (10, 40_000, 1, 0));
    }

    /// For a compressed stretch of ACKs, the sample is over the time that sending took (section 4.1.1.2).
    #[test]
    fn the_longer_of_the_times_counts() {
        let mut rate = DeliveryRate::default();
        for n in 0..5 {
            rate.sent(n, u64::from(n) * 10 * NS_PER_MS, n == 0, 0);
        }
        let mut first = ack(1);
        rate.hear(1, 1, 100 * NS_PER_MS, Some(100 * NS_PER_MS), &mut first);
        assert_eq!(sample(first), (1, 100_000, 0, 0));
        // Sent 100 ms after the segment that was delivered last.
        rate.sent(5, 100 * NS_PER_MS, false, 1);
        let mut rest = ack(6);
        rate.hear(6, 6, 141 * NS_PER_MS, Some(41 * NS_PER_MS), &mut rest);
        assert_eq!(sample(rest), (5, 100_000, 1, 0));
    }

    /// An ACK that comes sooner than a round trip is of a transmission before: no rate; nor is there
    /// one of a retransmission before an RTT is known, nor over less than a microsecond.
    #[test]
    fn too_short_an_interval_is_no_sample() {
        let mut rate = DeliveryRate::default();
        rate.sent(0, 0, true, 0);
        rate.sent(0, 50 * NS_PER_MS, true, 0);
        let mut early = ack(1);
        rate.hear(1, 1, 90 * NS_PER_MS, None, &mut early);
        assert_eq!(sample(early), (0, 0, 0, 0));
        let mut of_again = |number: u32, rtt_ns: u64| {
            rate.sent(number, 100 * NS_PER_MS, true, number.into());
            let mut known = ack(u64::from(number) + 1);
            let now_ns = 100 * NS_PER_MS + rtt_ns;
            rate.hear(number + 1, number + 1, now_ns, Some(rtt_ns), &mut known);
            rate.sent(number + 1, now_ns, true, u64::from(number) + 1);
            let mut again = ack(u64::from(number) + 2);
            rate.hear(number + 2, number + 2, now_ns + rtt_ns - 1, None, &mut again);
            [known, again].map(sample)
        };
        assert_eq!(of_again(1, 40 * NS_PER_MS), [(1, 40_000, 1, 0), (0, 0, 2, 0)]);
        assert_eq!(of_again(3, 999), [(0, 0, 3, 0), (0, 0, 4, 0)]);
    }

    /// The sample comes from the segment that was sent last among those newly acknowledged, wherever it lies.
    /// A segment's entry is that of its latest transmission.
    #[test]
    fn the_newest_segment_gives_the_sample() {
        let mut rate = DeliveryRate::default();
        rate.sent(0, 0, true, 0);
        rate.sent(1, NS_PER_MS, false, 0);
        rate.sent(2, 2 * NS_PER_MS, false, 0);
        // 1 and 2 selectively.
        let mut sacked = ack(2);
        rate.hear(0, 3, 42 * NS_PER_MS, Some(40 * NS_PER_MS), &mut sacked);
        assert_eq!(sample(sacked), (2, 42_000, 0, 0));
        rate.sent(0, 42 * NS_PER_MS, true, 2);
        let mut repaired = ack(3);
        rate.hear(3, 1, 82 * NS_PER_MS, None, &mut repaired);
        assert_eq!(sample(repaired), (1, 40_000, 2, 0));
        // Nothing new.
        let mut none = ack(3);
        rate.hear(3, 0, 83 * NS_PER_MS, None, &mut none);
        assert_eq!(sample(none), (0, 0, 0, 0));
    }

    /// The bubble has left the pipe when more is delivered than was under way.
    #[test]
    fn application_limits_mark_a_round_trip() {
        let mut rate = DeliveryRate::default();
        rate.sent(0, 0, true, 0);
        rate.limited(1);
        rate.sent(1, NS_PER_MS, false, 0);
        let mut first = ack(1);
        rate.hear(1, 1, 40 * NS_PER_MS, Some(39 * NS_PER_MS), &mut first);
        rate.sent(2, 40 * NS_PER_MS, false, 1);
        let mut second = ack(2);
        rate.hear(2, 2, 41 * NS_PER_MS, Some(39 * NS_PER_MS), &mut second);
        rate.sent(3, 41 * NS_PER_MS, false, 2);
        let mut later = [ack(3), ack(4)];
        rate.hear(3, 3, 80 * NS_PER_MS, Some(39 * NS_PER_MS), &mut later[0]);
        rate.hear(4, 4, 81 * NS_PER_MS, Some(39 * NS_PER_MS), &mut later[1]);
        let limited = [first, second, later[0], later[1]].map(|a| a.sample_app_limited);
        assert_eq!(limited, [0, 1, 1, 0]);
    }
}
