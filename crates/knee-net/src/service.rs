//! The service of a link: at one rate, at rates that change, or by a delivery trace.

use crate::NEVER;
use knee_model::{DeliveryTrace, Rate, Steps, Varying};
use std::sync::Arc;

/// Work of one byte at 1 bit/s, ns.
const BIT_NS: u64 = 8 * 1_000_000_000;

/// Computes when the transmission of a packet starts and ends.
#[derive(Clone, Debug)]
pub struct Service {
    rate_bps: u64,
    /// Distance of the owed time to the next whole nanosecond, in units of 1/rate_bps, 1 to `rate_bps`: long
    /// runs keep the exact rate.
    missing: u64,
    /// Size of the latest packet; most packets have the same size. Its transmission time is kept, since a
    /// division costs more than all the rest.
    bytes: u32,
    takes_ns: u64,
    takes_owed: u64,
    /// Service at a varying rate, with `bytes` being [`NO_SIZE`]; apart, since most links are constant.
    other: Option<Box<Other>>,
}

/// The size of no packet, bytes.
const NO_SIZE: u32 = u32::MAX;

#[derive(Clone, Debug)]
enum Other {
    Stepped(Stepped),
    Traced(Traced),
}

#[derive(Clone, Debug)]
struct Stepped {
    rate_bps: Steps,
    /// Work left over when the latest end was rounded down, bit/s * ns.
    owed: u64,
}

#[derive(Clone, Debug)]
struct Traced {
    trace: Arc<DeliveryTrace>,
    /// Start of the present repetition, and the place in it of the next instant.
    base_ns: u64,
    next: usize,
    /// The instant in use, and the bytes left of it.
    open_ns: u64,
    left_bytes: u64,
}

impl Service {
    /// Transmits at `rate`.
    pub fn of(rate: &Rate<'_>) -> Self {
        let other = rate.varying.map(|varying| {
            Box::new(match varying {
                Varying::Steps(steps) => {
                    Other::Stepped(Stepped { rate_bps: Steps::new(rate.bps, steps), owed: 0 })
                }
                Varying::Trace(trace) => Other::Traced(Traced {
                    trace: Arc::clone(trace),
                    base_ns: 0,
                    next: 0,
                    open_ns: 0,
                    left_bytes: 0,
                }),
            })
        });
        Self { other, ..Self::constant(rate.bps) }
    }

    /// At `rate_bps` bit/s (> 0), always.
    pub fn constant(rate_bps: u64) -> Self {
        let missing = rate_bps;
        Self { rate_bps, missing, bytes: NO_SIZE, takes_ns: 0, takes_owed: 0, other: None }
    }

    /// Returns when the transmission of `bytes` starts and ends, if the link turns to it at `now_ns`: at the
    /// end of the transmission before, or when the link is idle. Both are [`NEVER`] if one of the two
    /// transmissions does not end.
    #[inline(always)]
    pub fn transmit(&mut self, now_ns: u64, bytes: u32) -> (u64, u64) {
        if bytes != self.bytes {
            return self.transmit_other(now_ns, bytes);
        }
        (now_ns, now_ns + self.take())
    }

    /// Transmission time of a packet like the latest.
    #[inline(always)]
    fn take(&mut self) -> u64 {
        if self.takes_owed < self.missing {
            self.missing -= self.takes_owed;
            self.takes_ns
        } else {
            self.missing += self.rate_bps - self.takes_owed;
            self.takes_ns + 1
        }
    }

    /// Like [`Self::transmit`], for a packet of another size.
    #[inline(never)]
    fn transmit_other(&mut self, now_ns: u64, bytes: u32) -> (u64, u64) {
        if let Some(other) = &mut self.other {
            return if now_ns == NEVER { (NEVER, NEVER) } else { other.transmit(now_ns, bytes) };
        }
        self.bytes = bytes;
        let work = u64::from(bytes) * BIT_NS;
        (self.takes_ns, self.takes_owed) = (work / self.rate_bps, work % self.rate_bps);
        (now_ns, now_ns + self.take())
    }

    /// There is nothing more to transmit.
    #[inline(always)]
    pub fn rest(&mut self) {
        if let Some(other) = &mut self.other {
            other.rest();
        }
    }
}

impl Other {
    #[inline(never)]
    fn transmit(&mut self, now_ns: u64, bytes: u32) -> (u64, u64) {
        match self {
            Self::Stepped(stepped) => stepped.transmit(now_ns, bytes),
            Self::Traced(traced) => traced.transmit(now_ns, bytes),
        }
    }

    #[inline(never)]
    fn rest(&mut self) {
        match self {
            // Less than a nanosecond's work at this rate could be much at the next one.
            Self::Stepped(stepped) => stepped.owed = 0,
            Self::Traced(traced) => traced.left_bytes = 0,
        }
    }
}

impl Stepped {
    /// Works at each rate in its time: if the rate changes during a packet, the rest of the packet is sent at
    /// the new rate.
    fn transmit(&mut self, mut now_ns: u64, bytes: u32) -> (u64, u64) {
        let mut work = u64::from(bytes) * BIT_NS + self.owed;
        let mut starts_ns = NEVER;
        loop {
            let rate_bps = self.rate_bps.at(now_ns);
            let left_ns = self.rate_bps.until_ns() - now_ns;
            if let Some(takes_ns) = work.checked_div(rate_bps) {
                starts_ns = starts_ns.min(now_ns);
                let owed = work % rate_bps;
                if takes_ns < left_ns || takes_ns == left_ns && owed == 0 {
                    self.owed = owed;
                    return (starts_ns, now_ns + takes_ns);
                }
                // No more than the work that there is: it fits.
                work -= rate_bps * left_ns;
            } else if self.rate_bps.until_ns() == NEVER {
                return (NEVER, NEVER);
            }
            now_ns += left_ns;
        }
    }
}

impl Traced {
    /// A packet uses opportunities after its arrival, first the rest that the previous packet left.
    fn transmit(&mut self, now_ns: u64, bytes: u32) -> (u64, u64) {
        if now_ns > self.open_ns {
            self.left_bytes = 0;
        }
        if self.left_bytes == 0 {
            self.skip_to(now_ns);
        }
        let mut needed_bytes = u64::from(bytes) + DeliveryTrace::TUN_HEADER_BYTES;
        let mut starts_ns = NEVER;
        loop {
            if self.left_bytes == 0 {
                self.open();
            }
            starts_ns = starts_ns.min(self.open_ns);
            let used_bytes = self.left_bytes.min(needed_bytes);
            self.left_bytes -= used_bytes;
            needed_bytes -= used_bytes;
            if needed_bytes == 0 {
                return (starts_ns, self.open_ns);
            }
        }
    }

    /// Skips the opportunities until `now_ns`, that instant included.
    fn skip_to(&mut self, now_ns: u64) {
        let since_ns = now_ns.saturating_sub(self.base_ns);
        if since_ns >= self.trace.period_ns() {
            self.base_ns = now_ns - now_ns % self.trace.period_ns();
            self.next = 0;
        }
        let is_past = |place| self.base_ns + self.trace.time_ns(place) <= now_ns;
        // Most often it is the next one, or the one after it.
        if self.next < self.trace.places() && is_past(self.next) {
            self.next = self.trace.after(now_ns - self.base_ns);
        }
    }

    /// Proceeds to the next instant.
    fn open(&mut self) {
        if self.next >= self.trace.places() {
            self.base_ns += self.trace.period_ns();
            self.next = 0;
        }
        self.open_ns = self.base_ns + self.trace.time_ns(self.next);
        self.left_bytes = self.trace.count(self.next) * DeliveryTrace::OPPORTUNITY_BYTES;
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;
    const S: u64 = 1_000 * MS;

    fn stepped(steps: &[(u64, u64)]) -> Varying {
        Varying::Steps(steps.to_vec())
    }

    fn traced(times_ms: &[u64]) -> Varying {
        Varying::Trace(Arc::new(DeliveryTrace::new(times_ms).unwrap()))
    }

    /// Ends of packets of `bytes` that all wait from time 0 on.
    fn ends(bps: u64, varying: &Varying, packets: &[u32]) -> Vec<(u64, u64)> {
        let mut service = Service::of(&Rate { bps, varying: Some(varying) });
        let mut now_ns = 0;
        let mut transmit = |bytes: &u32| {
            let (starts_ns, ends_ns) = service.transmit(now_ns, *bytes);
            now_ns = ends_ns;
            (starts_ns, ends_ns)
        };
        packets.iter().map(&mut transmit).collect()
    }

    #[test]
    fn the_rest_of_a_packet_is_sent_at_the_new_rate() {
        // 1000 bytes are 8 ms at 1 Mbit/s. At 4 ms half of them are left: 2 ms at 2 Mbit/s. The
        // second has sent 1.5 ms of its 4 ms at 7.5 ms, when the rate becomes 0 until 100 ms, then
        // 8 Mbit/s: 5000 bits, 0.625 ms. The third takes 1 ms.
        let varying = stepped(&[(4 * MS, 2_000_000), (15 * MS / 2, 0), (100 * MS, 8_000_000)]);
        let exact = [(0, 6 * MS), (6 * MS, 100_625_000), (100_625_000, 101_625_000)];
        assert_eq!(ends(1_000_000, &varying, &[1000; 3]), exact);
        // A packet that comes in an outage starts when it is over.
        let mut service = Service::of(&Rate { bps: 1_000_000, varying: Some(&varying) });
        assert_eq!(service.transmit(20 * MS, 1000), (100 * MS, 101 * MS));
    }

    #[test]
    fn an_outage_for_good_never_ends() {
        let varying = stepped(&[(4 * MS, 0)]);
        let mut service = Service::of(&Rate { bps: 1_000_000, varying: Some(&varying) });
        assert_eq!(service.transmit(0, 1000), (NEVER, NEVER));
        assert_eq!(service.transmit(5 * MS, 1), (NEVER, NEVER));
    }

    #[test]
    fn a_fraction_owed_at_a_high_rate_is_not_paid_at_a_low_one() {
        // 8 bits at 3 Gbit/s take 2.67 ns; two thirds of a nanosecond there are 2 s at 1 bit/s.
        let varying = stepped(&[(S, 1)]);
        let mut service = Service::of(&Rate { bps: 3_000_000_000, varying: Some(&varying) });
        assert_eq!(service.transmit(0, 1), (0, 2));
        service.rest();
        assert_eq!(service.transmit(S, 1), (S, 9 * S));
    }

    #[test]
    fn an_opportunity_carries_one_large_packet_or_some_small_ones() {
        // One at 1 ms, two at 3 ms, then again from 5 ms on.
        let trace = traced(&[1, 3, 3, 5]);
        let at = |ms: &[u64]| ms.iter().map(|ms| (ms * MS, ms * MS)).collect::<Vec<_>>();
        assert_eq!(ends(0, &trace, &[1500; 6]), at(&[1, 3, 3, 5, 6, 8]));
        // 1504 = 2 * (748 + 4).
        assert_eq!(ends(0, &trace, &[748; 5]), at(&[1, 1, 3, 3, 3]));
        // A packet may lie across several opportunities: of 4504 bytes here 1504, then 3000 of 3008;
        // the rest of that is used for a packet of 4 bytes.
        let large = [(MS, 3 * MS), (3 * MS, 3 * MS), (5 * MS, 5 * MS)];
        assert_eq!(ends(0, &trace, &[4500, 4, 1]), large);
    }

    #[test]
    fn opportunities_that_find_nothing_are_lost() {
        let trace = traced(&[1, 3, 3, 5]);
        let mut service = Service::of(&Rate { bps: 0, varying: Some(&trace) });
        // At the very time of an opportunity it is too late for it.
        assert_eq!(service.transmit(3 * MS, 100), (5 * MS, 5 * MS));
        service.rest();
        // The rest of it is lost as soon as there is nothing to send.
        assert_eq!(service.transmit(5 * MS, 100), (6 * MS, 6 * MS));
        service.rest();
        // Far ahead: 1_000_000 * 5 ms, and the end of that repetition.
        assert_eq!(service.transmit(5_000_002 * MS, 100), (5_000_003 * MS, 5_000_003 * MS));
        service.rest();
        assert_eq!(service.transmit(5_000_005 * MS, 100), (5_000_006 * MS, 5_000_006 * MS));
    }

    #[test]
    fn capacity_is_the_greatest_possible_output() {
        let steps = stepped(&[(10 * S, 4), (20 * S, 0)]);
        let rate = Rate { bps: 10, varying: Some(&steps) };
        assert_eq!(rate.mean_bps(0, 20 * S), 7.0);
        assert_eq!(rate.mean_bps(5 * S, 25 * S), (5.0 * 10.0 + 10.0 * 4.0) / 20.0);
        assert_eq!((rate.mean_bps(30 * S, 31 * S), rate.highest_bps()), (0.0, 10));
        let trace = traced(&[1, 3, 3, 5]);
        let rate = Rate { bps: 0, varying: Some(&trace) };
        // 4 packets of 12000 bits in 5 ms.
        assert_eq!(rate.mean_bps(1, 5 * S + 1), 9_600_000.0);
        assert_eq!(Rate { bps: 7, varying: None }.mean_bps(3, 9), 7.0);
    }

    proptest! {
        /// Over a busy time the work done is the integral of the rate, to less than one unit, and a
        /// single step to the same rate changes nothing.
        #[test]
        fn rates_are_exact_over_any_busy_time(
            first in 1_000u64..5_000_000_000,
            changes in prop::collection::vec((1u64..50_000_000, 0u64..5_000_000_000), 0..12),
            packets in prop::collection::vec(1u32..9000, 1..200),
        ) {
            let mut at_ns = 0;
            let mut steps: Vec<(u64, u64)> = changes
                .iter()
                .map(|(gap, bps)| { at_ns += gap; (at_ns, *bps) })
                .collect();
            // So that all of them are sent.
            steps.push((at_ns + 1, 1_000_000));
            let varying = Varying::Steps(steps.clone());
            let integral = |to_ns: u64| {
                let mut rate = Steps::new(first, &steps);
                let (mut now_ns, mut work) = (0, 0u128);
                while now_ns < to_ns {
                    let bps = rate.at(now_ns);
                    let end_ns = rate.until_ns().min(to_ns);
                    work += u128::from(bps) * u128::from(end_ns - now_ns);
                    now_ns = end_ns;
                }
                (work, rate.at(to_ns))
            };
            let mut asked = 0u128;
            let mut last = 0;
            for ((starts, ends), bytes) in ends(first, &varying, &packets).iter().zip(&packets) {
                prop_assert!(last <= *starts && starts <= ends);
                last = *ends;
                asked += u128::from(*bytes) * u128::from(BIT_NS);
                let (done, bps) = integral(*ends);
                prop_assert!(done <= asked && asked < done + u128::from(bps.max(1)), "{done} {asked}");
            }
        }

        #[test]
        fn a_step_to_the_same_rate_changes_nothing(
            bps in 1_000u64..5_000_000_000,
            at_ns in 0u64..20_000_000,
            packets in prop::collection::vec(1u32..9000, 1..100),
        ) {
            let varying = Varying::Steps(vec![(at_ns, bps)]);
            let mut plain = Service::constant(bps);
            let mut now_ns = 0;
            for ((starts, done), bytes) in ends(bps, &varying, &packets).iter().zip(&packets) {
                let expected = plain.transmit(now_ns, *bytes);
                prop_assert_eq!((*starts, *done), expected);
                now_ns = expected.1;
            }
        }

        /// A trace against its definition: byte by byte through the opportunities in order.
        #[test]
        fn a_trace_carries_every_byte_in_order(
            gaps in prop::collection::vec(0u64..4, 1..20),
            packets in prop::collection::vec((0u64..6 * MS, 1u32..4000), 1..100),
        ) {
            let times: Vec<u64> =
                gaps.iter().scan(0, |ms, gap| { *ms += gap; Some(*ms) }).collect();
            let period = times[times.len() - 1];
            prop_assume!(period > 0);
            let varying = traced(&times);
            let mut service = Service::of(&Rate { bps: 0, varying: Some(&varying) });
            let mut all = (0..)
                .flat_map(|i| times.iter().map(move |ms| (i * period + ms) * MS))
                .filter(|ns| *ns > 0)
                .peekable();
            let (mut arrival, mut free_ns, mut left) = (0, 0, 0u64);
            for (gap, bytes) in packets {
                arrival += gap;
                if arrival >= free_ns {
                    // The link was idle.
                    service.rest();
                    left = 0;
                    while all.next_if(|ns| *ns <= arrival).is_some() {}
                }
                let now_ns = arrival.max(free_ns);
                let (_, ends) = service.transmit(now_ns, bytes);
                let mut needed = u64::from(bytes) + 4;
                let mut expected = free_ns;
                while needed > 0 {
                    if left == 0 {
                        expected = all.next().unwrap();
                        left = 1504;
                    }
                    let used = left.min(needed);
                    left -= used;
                    needed -= used;
                }
                prop_assert_eq!(ends, expected);
                free_ns = ends;
            }
        }
    }
}
