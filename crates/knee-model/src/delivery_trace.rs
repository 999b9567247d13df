//! Delivery traces in the format of mahimahi.

use serde::{Deserialize, Serialize};
use std::fmt;

const NS_PER_MS: u64 = 1_000_000;
const NS_PER_S: u64 = 1_000_000_000;
/// Latest stamp: sums of a few of them stay far from the limit of 64 bits.
const LATEST_MS: u64 = 1_000_000_000;
/// Most opportunities of one millisecond.
const MOST_AT_ONCE: u64 = 1_000_000;

/// Times at which a link can deliver a packet, repeated for ever (mahimahi's `mm-link`).
///
/// Each line of the file is a time in milliseconds, in order; a time that appears n times is
/// n opportunities. The trace begins again at its last time. An opportunity carries one packet of
/// 1500 bytes, or several smaller ones, or parts of packets: mahimahi counts 1504 bytes, and for
/// each packet the 4 bytes that its TUN device puts before it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryTrace {
    /// Times within the trace, ascending, in (0, period], and how many opportunities came before.
    /// An opportunity at time 0 is at the end of the trace instead: at time 0 of the run no packet
    /// has come that could use it, and later the two are the same.
    instants: Vec<(u64, u64)>,
    opportunities: u64,
    period_ns: u64,
}

/// A trace may have many thousand times: only its distinguishing fields.
impl fmt::Debug for DeliveryTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // FNV-1a over all that there is.
        let words = self.instants.iter().flat_map(|(time_ns, before)| [*time_ns, *before]);
        let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = words.flat_map(u64::to_le_bytes).fold(0xcbf2_9ce4_8422_2325, fold);
        f.debug_struct("DeliveryTrace")
            .field("opportunities", &self.opportunities)
            .field("period_ns", &self.period_ns)
            .field("hash", &format_args!("{hash:016x}"))
            .finish()
    }
}

/// The reason why times are no delivery trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// Number of the line, or of the time in a list, from 1; 0: the whole.
    pub line: usize,
    /// The fault.
    pub what: String,
    /// The remedy.
    pub remedy: &'static str,
}

impl TraceError {
    fn new(line: usize, what: impl Into<String>, remedy: &'static str) -> Self {
        Self { line, what: what.into(), remedy }
    }
}

impl DeliveryTrace {
    /// Bytes that an opportunity carries: a packet of [`Self::PACKET_BYTES`] with the header of a TUN device.
    pub const OPPORTUNITY_BYTES: u64 = 1504;
    /// Bytes of an opportunity that each packet needs in addition to its own.
    pub const TUN_HEADER_BYTES: u64 = 4;
    /// Size of a packet that fills an opportunity.
    pub const PACKET_BYTES: u64 = Self::OPPORTUNITY_BYTES - Self::TUN_HEADER_BYTES;

    /// Reads the `text` of a file as a trace.
    ///
    /// # Errors
    /// A line that is not a time, and the errors of [`DeliveryTrace::new`].
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let time = |(index, line): (usize, &str)| {
            line.trim().parse::<u64>().map_err(|_| {
                let shown: String = line.chars().take(20).flat_map(char::escape_debug).collect();
                TraceError::new(
                    index + 1,
                    format!("`{shown}` is not a time"),
                    "a trace has one whole number of milliseconds on each line",
                )
            })
        };
        let times_ms: Vec<u64> = text.lines().enumerate().map(time).collect::<Result<_, _>>()?;
        Self::new(&times_ms)
    }

    /// The trace of opportunities at `times_ms`.
    ///
    /// # Errors
    /// None, all at 0, not in order, later than 10^9 ms, more than a million at once.
    pub fn new(times_ms: &[u64]) -> Result<Self, TraceError> {
        let Some(&last_ms) = times_ms.last() else {
            let remedy = "write the time of each delivery in milliseconds, one on each line";
            return Err(TraceError::new(0, "it contains no time", remedy));
        };
        let mut before_ms = 0;
        for (index, &ms) in times_ms.iter().enumerate() {
            if ms < before_ms {
                let what = format!("{ms} is before the time above it, {before_ms}");
                return Err(TraceError::new(index + 1, what, "put the times in order"));
            }
            if ms > LATEST_MS {
                let remedy = "write times up to 1000000000 (ms)";
                return Err(TraceError::new(index + 1, format!("{ms} is out of range"), remedy));
            }
            before_ms = ms;
        }
        if last_ms == 0 {
            let remedy = "a trace lasts until its last time; write one after 0";
            return Err(TraceError::new(times_ms.len(), "the trace has no duration", remedy));
        }
        let at_zero = times_ms.iter().take_while(|ms| **ms == 0).count();
        let mut instants: Vec<(u64, u64)> = Vec::new();
        let (ahead, later) = times_ms.split_at(at_zero);
        for (before, ms) in (0..).zip(later) {
            if instants.last().is_none_or(|(time_ns, _)| *time_ns != ms * NS_PER_MS) {
                instants.push((ms * NS_PER_MS, before));
            }
        }
        let opportunities = (later.len() + ahead.len()) as u64;
        let new = Self { instants, opportunities, period_ns: last_ms * NS_PER_MS };
        if let Some(place) = (0..new.places()).find(|place| new.count(*place) > MOST_AT_ONCE) {
            let ms = new.instants[place].0 / NS_PER_MS;
            let line = times_ms.partition_point(|time_ms| *time_ms < ms) + 1;
            let what = format!("{ms} appears more than {MOST_AT_ONCE} times");
            return Err(TraceError::new(line, what, "use it less often"));
        }
        Ok(new)
    }

    /// The times from which [`DeliveryTrace::new`] makes this trace.
    pub fn times_ms(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.places()).flat_map(move |place| {
            let ms = self.instants[place].0 / NS_PER_MS;
            (0..self.count(place)).map(move |_| ms)
        })
    }

    /// Time until the trace begins again.
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// Number of places: the different times in it.
    pub fn places(&self) -> usize {
        self.instants.len()
    }

    /// The time at `place` within the trace.
    pub fn time_ns(&self, place: usize) -> u64 {
        self.instants[place].0
    }

    /// Opportunities at `place`.
    pub fn count(&self, place: usize) -> u64 {
        let end = self.instants.get(place + 1).map_or(self.opportunities, |(_, before)| *before);
        end - self.instants[place].1
    }

    /// The first place later than `time_ns` within the trace; none in it: its length.
    pub fn after(&self, time_ns: u64) -> usize {
        self.instants.partition_point(|(at_ns, _)| *at_ns <= time_ns)
    }

    /// Opportunities before `time_ns` of the run.
    fn before(&self, time_ns: u64) -> u64 {
        let (periods, within_ns) = (time_ns / self.period_ns, time_ns % self.period_ns);
        let place = self.instants.partition_point(|(at_ns, _)| *at_ns < within_ns);
        let within = self.instants.get(place).map_or(self.opportunities, |(_, before)| *before);
        // An opportunity at the very end of a period is not before it.
        let at_end = if within_ns == 0 && periods > 0 { self.count(self.places() - 1) } else { 0 };
        periods * self.opportunities + within - at_end
    }

    /// Packets of 1500 bytes that can be delivered from `from_ns` to before `to_ns`.
    pub fn opportunities(&self, from_ns: u64, to_ns: u64) -> u64 {
        self.before(to_ns).saturating_sub(self.before(from_ns))
    }

    /// Bit/s of packets of 1500 bytes, over the whole trace.
    pub fn mean_bps(&self) -> u64 {
        self.bps(self.opportunities, self.period_ns)
    }

    /// Bit/s in the busiest second, or over the whole trace if it is shorter.
    pub fn busiest_bps(&self) -> u64 {
        if self.period_ns <= NS_PER_S {
            return self.mean_bps();
        }
        let in_second =
            |(time_ns, _): &(u64, u64)| self.opportunities(*time_ns, time_ns + NS_PER_S);
        let most = self.instants.iter().map(in_second).max().unwrap_or(0);
        self.bps(most, NS_PER_S)
    }

    fn bps(&self, opportunities: u64, in_ns: u64) -> u64 {
        let bits = u128::from(opportunities) * u128::from(Self::PACKET_BYTES) * 8;
        u64::try_from(bits * u128::from(NS_PER_S) / u128::from(in_ns)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = NS_PER_MS;

    #[test]
    fn a_fixed_rate_is_one_line() {
        // mahimahi's example: one packet in each millisecond, 12 Mbit/s.
        let trace = DeliveryTrace::parse("1\n").unwrap();
        assert_eq!((trace.mean_bps(), trace.busiest_bps()), (12_000_000, 12_000_000));
        assert_eq!(trace.opportunities(0, 1000 * MS), 999);
        assert_eq!(trace.opportunities(0, 1000 * MS + 1), 1000);
        assert_eq!(trace.opportunities(5 * MS, 7 * MS), 2);
    }

    #[test]
    fn the_start_is_the_end_of_the_time_before() {
        let trace = DeliveryTrace::parse("0\n0\n3\n10").unwrap();
        assert_eq!(trace.times_ms().collect::<Vec<_>>(), [3, 10, 10, 10]);
        assert_eq!(trace.opportunities(0, 10 * MS), 1);
        assert_eq!(trace.opportunities(10 * MS, 10 * MS + 1), 3);
        assert_eq!(trace.opportunities(0, 20 * MS + 1), 8);
        // 4 packets in 10 ms.
        assert_eq!(trace.mean_bps(), 4_800_000);
    }

    #[test]
    fn the_busiest_second_is_found_at_the_end_of_the_trace_too() {
        // 10 packets within the last 100 ms of 2 s, and 5 in the first.
        let times: Vec<u64> = (1..=5).chain(1991..=2000).collect();
        let trace = DeliveryTrace::new(&times).unwrap();
        assert_eq!(trace.busiest_bps(), 15 * 12_000);
        assert_eq!(trace.mean_bps(), 15 * 6_000);
    }

    #[test]
    fn invalid_traces_are_refused_with_the_line() {
        let refused = |text: &str| DeliveryTrace::parse(text).expect_err("must be refused");
        assert_eq!((refused("").line, refused("1\n2\n\n4").line), (0, 3));
        let not_a_time = refused("1\n2.5\n4");
        assert_eq!((not_a_time.line, not_a_time.what.as_str()), (2, "`2.5` is not a time"));
        let disorder = refused("1\n5\n4");
        assert_eq!(
            (disorder.line, disorder.what.as_str()),
            (3, "4 is before the time above it, 5")
        );
        assert_eq!((refused("0\n0").line, refused("-1").line), (2, 1));
        assert_eq!(refused("7\n1000000001").line, 2);
    }

    proptest! {
        /// Against the definition: opportunity i of n is at (i / n) periods + its time.
        #[test]
        fn counts_every_opportunity(
            gaps in prop::collection::vec(0u64..4, 1..40),
            from in 0u64..400,
            length in 0u64..400,
        ) {
            let times: Vec<u64> = gaps
                .iter()
                .scan(0, |ms, gap| { *ms += gap; Some(*ms) })
                .collect();
            prop_assume!(times.last() != Some(&0));
            let trace = DeliveryTrace::new(&times).unwrap();
            let period = times[times.len() - 1];
            let all = (0..).flat_map(|i| times.iter().map(move |ms| i * period + ms));
            let (from, to) = (from * MS / 2, (from + length) * MS / 2);
            // No packet can use one at time 0.
            let within = |ms: &u64| *ms > 0 && (from..to).contains(&(ms * MS));
            let count = all.take_while(|ms| *ms < 500).filter(within).count() as u64;
            prop_assert_eq!(trace.opportunities(from, to), count);
            prop_assert_eq!(DeliveryTrace::new(&trace.times_ms().collect::<Vec<_>>()), Ok(trace));
        }
    }
}
