//! RTT estimate and retransmission timeout (RFC 6298), as in Linux where the RFC leaves room.

use super::scoreboard::News;
use knee_model::{NS_PER_MS, NS_PER_S, NS_PER_US, TcpOptions};

/// RTO before the first RTT sample (RFC 6298 section 2.1).
const RTO_INITIAL_NS: u64 = NS_PER_S;
/// Upper bound of the RTO (RFC 6298 section 2.5 allows one of at least 60 s).
const RTO_MAX_NS: u64 = 60 * NS_PER_S;
/// Tick of timestamps (RFC 7323 section 5.4; Linux and FreeBSD).
const TIMESTAMP_TICK_NS: u64 = NS_PER_MS;
/// Headers of at least this size hold a timestamp, bytes.
const HEADERS_WITH_TIMESTAMP_BYTES: u32 = 52;

pub(super) struct RttEstimator {
    /// `SRTT`; 0: no sample yet.
    pub srtt_ns: u64,
    /// `RTTVAR`.
    rttvar_ns: u64,
    /// `RTO` without backoff.
    pub rto_ns: u64,
    /// Timeouts since the last sample: each doubles the timeout (section 5.5).
    pub backoffs: u32,
    timestamps: bool,
    /// Tick of the clock that measures RTTs (`G`); 0: it is exact.
    tick_ns: u64,
    /// Least margin of the timeout above SRTT.
    margin_min_ns: u64,
}

/// The smoothed RTT after a sample that is not the first (section 2.3).
#[inline(always)]
pub(super) fn smoothed_ns(srtt_ns: u64, rtt_ns: u64) -> u64 {
    srtt_ns - srtt_ns / 8 + rtt_ns / 8
}

impl RttEstimator {
    pub(super) fn new(options: &TcpOptions) -> Self {
        Self {
            srtt_ns: 0,
            rttvar_ns: 0,
            rto_ns: RTO_INITIAL_NS.max(options.rto_min_ns),
            backoffs: 0,
            timestamps: options.header_bytes >= HEADERS_WITH_TIMESTAMP_BYTES,
            tick_ns: options.rtt_tick_ns,
            margin_min_ns: options.rto_min_ns.max(options.rtt_tick_ns),
        }
    }

    /// Smoothed RTT as algorithms see it.
    #[inline]
    pub(super) fn srtt_us(&self) -> u32 {
        (self.srtt_ns / NS_PER_US).min(u64::from(u32::MAX)) as u32
    }

    /// The timeout, doubled for each one since the last sample (section 5.5).
    #[inline]
    pub(super) fn backed_off_rto_ns(&self) -> u64 {
        self.rto_ns.saturating_mul(1 << self.backoffs.min(16)).min(RTO_MAX_NS)
    }

    /// The RTT sample of an ACK as a clock of the chosen tick would read it: at least one tick. With
    /// timestamps a retransmission gives one too (RFC 7323 section 4.1), unless it came sooner than
    /// `min_rtt_ns`, the minimum RTT so far: the echo is then that of the first transmission.
    #[inline(always)]
    pub(super) fn sample_ns(&self, now_ns: u64, news: &News, min_rtt_ns: u64) -> Option<u64> {
        match (news.sent_ns, self.tick_ns) {
            (Some(sent_ns), 0) => Some(now_ns - sent_ns),
            (Some(sent_ns), tick_ns) => Some((now_ns / tick_ns - sent_ns / tick_ns + 1) * tick_ns),
            (None, _) => {
                let sent_ns = news.repair_sent_ns.filter(|_| self.timestamps)?;
                if min_rtt_ns == 0 || now_ns - sent_ns < min_rtt_ns {
                    return None;
                }
                let ticks = now_ns / TIMESTAMP_TICK_NS - sent_ns / TIMESTAMP_TICK_NS;
                Some(ticks.max(1) * TIMESTAMP_TICK_NS)
            }
        }
    }

    /// Takes a sample in (sections 2.2 to 2.5). Only a sample ends the backoff (section 5, Karn): an
    /// RTT that has outgrown the timer could otherwise never be measured.
    #[inline(always)]
    pub(super) fn learn(&mut self, rtt_ns: u64) {
        self.backoffs = 0;
        if self.srtt_ns == 0 {
            self.srtt_ns = rtt_ns;
            self.rttvar_ns = rtt_ns / 2;
        } else {
            let error_ns = self.srtt_ns.abs_diff(rtt_ns);
            self.rttvar_ns = self.rttvar_ns - self.rttvar_ns / 4 + error_ns / 4;
            self.srtt_ns = smoothed_ns(self.srtt_ns, rtt_ns);
        }
        // The minimum bounds the margin, not the timeout, as in Linux and FreeBSD: a steady RTT above the
        // minimum would otherwise time out as soon as a queue grows.
        let margin_ns = (4 * self.rttvar_ns).max(self.margin_min_ns);
        self.rto_ns = (self.srtt_ns + margin_ns).min(RTO_MAX_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An estimator with an exact clock and a least margin of `rto_min_ms`.
    fn estimator(rto_min_ms: u64) -> RttEstimator {
        let rto_min_ns = rto_min_ms * NS_PER_MS;
        RttEstimator::new(&TcpOptions { rto_min_ns, rtt_tick_ns: 0, ..TcpOptions::default() })
    }

    fn learn_ms(rtt: &mut RttEstimator, ms: u64) -> (u64, u64, u64) {
        rtt.learn(ms * NS_PER_MS);
        (rtt.srtt_ns, rtt.rttvar_ns, rtt.rto_ns)
    }

    /// Section 2.1: 1 s, unless the minimum is longer.
    #[test]
    fn before_a_sample_the_timeout_is_one_second() {
        assert_eq!(estimator(200).backed_off_rto_ns(), 1000 * NS_PER_MS);
        assert_eq!(estimator(3000).backed_off_rto_ns(), 3000 * NS_PER_MS);
        assert_eq!(estimator(200).srtt_us(), 0);
    }

    /// Sections 2.2 and 2.3 with RTTs of 80, 120 and 40 ms. First: SRTT 80, RTTVAR 40, RTO 80 + 160.
    /// Then RTTVAR 3/4 * 40 + 1/4 * |80 - 120| = 40, with the SRTT of before; SRTT 7/8 * 80 +
    /// 1/8 * 120 = 85. Then RTTVAR 30 + 45/4 = 41.25; SRTT 74.375 + 5 = 79.375.
    #[test]
    fn the_estimate_follows_the_rfc() {
        let mut rtt = estimator(0);
        assert_eq!(learn_ms(&mut rtt, 80), (80_000_000, 40_000_000, 240_000_000));
        assert_eq!(learn_ms(&mut rtt, 120), (85_000_000, 40_000_000, 245_000_000));
        assert_eq!(learn_ms(&mut rtt, 40), (79_375_000, 41_250_000, 244_375_000));
        assert_eq!(rtt.srtt_us(), 79_375);
    }

    /// The minimum is added to SRTT if 4 * RTTVAR is less: here 40 + 200, not max(40 + 80, 200).
    #[test]
    fn the_minimum_bounds_the_margin() {
        let mut rtt = estimator(200);
        assert_eq!(learn_ms(&mut rtt, 40).2, 240 * NS_PER_MS);
        // A margin above it persists: RTTVAR 15 + 160/4 = 55, SRTT 60.
        assert_eq!(learn_ms(&mut rtt, 200), (60_000_000, 55_000_000, 280_000_000));
    }

    /// Section 2.3: the margin is at least the clock's tick `G`. After ten samples of 50 ms RTTVAR is
    /// 25 ms * (3/4)^9 = 1.88 ms, four of it 7.5 ms.
    #[test]
    fn the_tick_bounds_the_margin() {
        let options =
            TcpOptions { rto_min_ns: 0, rtt_tick_ns: 10 * NS_PER_MS, ..TcpOptions::default() };
        let mut rtt = RttEstimator::new(&options);
        for _ in 0..10 {
            rtt.learn(50 * NS_PER_MS);
        }
        assert_eq!(rtt.rttvar_ns / 1000, 1877);
        assert_eq!(rtt.rto_ns, 60 * NS_PER_MS);
    }

    /// Sections 2.4, 2.5 and 5.5: each timeout doubles, 60 s is the most, a sample ends it.
    #[test]
    fn timeouts_double_until_a_sample() {
        let mut rtt = estimator(200);
        rtt.learn(100 * NS_PER_MS);
        let timeouts_ms: Vec<u64> = (0..10)
            .map(|_| {
                let rto_ns = rtt.backed_off_rto_ns();
                rtt.backoffs += 1;
                rto_ns / NS_PER_MS
            })
            .collect();
        assert_eq!(timeouts_ms, [300, 600, 1200, 2400, 4800, 9600, 19_200, 38_400, 60_000, 60_000]);
        assert_eq!(rtt.rto_ns, 300 * NS_PER_MS);
        rtt.learn(100 * NS_PER_MS);
        // RTTVAR 3/4 * 50 = 37.5, so the margin is the minimum.
        assert_eq!(rtt.backed_off_rto_ns(), 300 * NS_PER_MS);
        // An RTT of a minute and more.
        rtt.learn(500_000 * NS_PER_MS);
        assert_eq!(rtt.rto_ns, 60_000 * NS_PER_MS);
    }

    /// A clock of 10 ms reads 9.9 ms and 10.1 ms as the first and the second tick; a time within a tick
    /// counts as one.
    #[test]
    fn a_coarse_clock_reads_whole_ticks() {
        let options = TcpOptions { rtt_tick_ns: 10_000_000, ..TcpOptions::default() };
        let rtt = RttEstimator::new(&options);
        let sample = |sent_ns, now_ns| {
            rtt.sample_ns(now_ns, &News { sent_ns: Some(sent_ns), ..News::default() }, 0)
        };
        assert_eq!(sample(1_000_000, 9_000_000), Some(10_000_000));
        assert_eq!(sample(9_900_000, 10_100_000), Some(20_000_000));
        assert_eq!(sample(9_900_000, 29_900_000), Some(30_000_000));
        let exact = estimator(200);
        let news = News { sent_ns: Some(9_900_000), ..News::default() };
        assert_eq!(exact.sample_ns(10_100_001, &news, 0), Some(200_001));
    }

    /// Karn: a retransmission gives a sample only with timestamps, in their ticks, and only if it is no
    /// sooner than the minimum RTT.
    #[test]
    fn a_retransmission_is_measured_by_timestamps_only() {
        let news = News { repair_sent_ns: Some(1_900_000), ..News::default() };
        let with_bytes = |header_bytes| {
            RttEstimator::new(&TcpOptions { header_bytes, rtt_tick_ns: 0, ..TcpOptions::default() })
        };
        let at = |rtt: &RttEstimator, now_ns| rtt.sample_ns(now_ns, &news, 20_000_000);
        assert_eq!(at(&with_bytes(40), 100_000_000), None);
        let stamped = with_bytes(52);
        // 98.1 ms are the ticks from 1 to 100.
        assert_eq!(at(&stamped, 100_000_000), Some(99_000_000));
        assert_eq!(at(&stamped, 21_900_000), Some(20_000_000));
        assert_eq!(at(&stamped, 21_899_999), None, "sooner than any packet comes back");
        assert_eq!(stamped.sample_ns(100_000_000, &news, 0), None, "no RTT is known yet");
    }
}
