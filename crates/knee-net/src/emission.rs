//! Sending times of a source without feedback.

use knee_model::{FlowKind, NS_PER_S, Ns};

/// Times of the packets of a UDP source or a probe. The rate may change in steps; each step begins
/// with a packet.
#[derive(Clone, Debug)]
pub struct Emission {
    /// Beginning of each step, in order.
    steps: Vec<(Ns, Interval)>,
    step: usize,
    /// Packets of the present step so far.
    sent: u64,
}

/// Time between packets: the first number in nanoseconds, divided by the second; a second of 0 is silence.
type Interval = (u64, u64);

impl Emission {
    /// The sending times of a flow that starts at `start_ns`; none if the flow is TCP.
    pub fn of(kind: &FlowKind, start_ns: Ns) -> Option<Self> {
        let new = |steps| Self { steps, step: 0, sent: 0 };
        match kind {
            FlowKind::Tcp(_) => None,
            FlowKind::Probe { interval_ns, .. } => Some(new(vec![(start_ns, (*interval_ns, 1))])),
            FlowKind::Udp { rate_bps, steps, packet_bytes } => {
                let packet = u64::from(*packet_bytes) * 8 * NS_PER_S;
                let (before, after): (Vec<_>, Vec<_>) =
                    steps.iter().partition(|(at_ns, _)| *at_ns <= start_ns);
                let first_bps = before.last().map_or(*rate_bps, |(_, bps)| *bps);
                let steps = [(start_ns, first_bps)].into_iter().chain(after);
                Some(new(steps.map(|(at_ns, bps)| (at_ns, (packet, bps))).collect()))
            }
        }
    }

    /// Returns the time at which the next packet is due; none if no packet is left.
    pub fn next_ns(&mut self) -> Option<Ns> {
        loop {
            let (from_ns, (over, under)) = *self.steps.get(self.step)?;
            let end_ns = self.steps.get(self.step + 1).map_or(Ns::MAX, |(at_ns, _)| *at_ns);
            if under > 0 {
                let elapsed_ns = u128::from(self.sent) * u128::from(over) / u128::from(under);
                let due_ns = Ns::try_from(u128::from(from_ns) + elapsed_ns);
                if let Some(due_ns) = due_ns.ok().filter(|due| *due < end_ns) {
                    self.sent += 1;
                    return Some(due_ns);
                }
            }
            (self.step, self.sent) = (self.step + 1, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Ns = NS_PER_S;

    fn times(start_ns: Ns, rate_bps: u64, steps: &[(Ns, u64)], packet_bytes: u32) -> Vec<Ns> {
        let kind = FlowKind::Udp { rate_bps, steps: steps.to_vec(), packet_bytes };
        let mut source = Emission::of(&kind, start_ns).expect("no TCP");
        std::iter::from_fn(|| source.next_ns()).take(8).collect()
    }

    #[test]
    fn a_constant_rate_does_not_drift() {
        // 8 bits at 7 bit/s: every 8/7 s, each rounded down by itself.
        let exact: Vec<_> = (0..8).map(|k| 5 + k * 8 * S / 7).collect();
        assert_eq!(times(5, 7, &[], 1), exact);
    }

    #[test]
    fn steps_begin_with_a_packet_and_may_be_silent() {
        // 1 packet/s to 2 s, silence to 4 s, 2 packets/s to 5 s, silence for good.
        let steps = [(2 * S, 0), (4 * S, 16_000), (5 * S, 0)];
        assert_eq!(times(0, 8000, &steps, 1000), [0, S, 4 * S, 4 * S + S / 2]);
        // A late start takes the rate of its time.
        let late = times(4 * S + S / 4, 8000, &steps, 1000);
        assert_eq!(late, [4 * S + S / 4, 4 * S + S * 3 / 4]);
    }
}
