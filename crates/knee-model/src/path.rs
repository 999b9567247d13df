//! The path of a run: hops, delays, losses, routes.

use crate::{Aqm, BurstLoss, Ns, QueueLimit, Rate, Varying};
use serde::{Deserialize, Serialize};

/// Hops in the forward direction, towards the receivers, and a reverse direction that is uncongested
/// unless it has a rate of its own.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PathSpec {
    /// Hops in the forward direction, in order, at least one. Packets pass those of their flow's
    /// [`Route`].
    pub hops: Vec<HopSpec>,
    /// Propagation delay from a flow's last hop to its receiver, at the start.
    pub delay_forward_ns: Ns,
    /// Propagation delay from the receivers to the senders, at the start.
    pub delay_reverse_ns: Ns,
    /// From these times on packets leave the last hop with these delays instead; in order of time.
    /// None overtakes another when the delay falls, unless [`PathSpec::falls_reorder`].
    pub delay_forward_steps: Vec<(Ns, Ns)>,
    /// The same for packets that leave the receivers (the link there, if it has a rate).
    pub delay_reverse_steps: Vec<(Ns, Ns)>,
    /// True if packets overtake earlier ones when the forward delay falls.
    pub falls_reorder: bool,
    /// Probability that a packet is lost in the reverse direction.
    pub loss_reverse: f64,
    /// Losses in bursts in the reverse direction.
    pub bursts_reverse: Option<BurstLoss>,
    /// Extra delay after the last hop, uniform from 0 to this, never reordering.
    pub jitter_forward_ns: Ns,
    /// Extra delay in the reverse direction, uniform from 0 to this, never reordering.
    pub jitter_reverse_ns: Ns,
    /// Extra delay of each packet on its flow's access link, in either direction, uniform from 0 to this;
    /// packets of a flow never overtake each other there.
    pub noise_ns: Ns,
    /// Packets that others overtake, after the last hop.
    pub reorder: Option<Reorder>,
    /// Link that packets in the reverse direction pass first; none: they pass at once.
    pub reverse: Option<ReverseLink>,
}

impl PathSpec {
    /// This path, with `change` made to each hop.
    pub fn with_each_hop(mut self, change: impl FnMut(&mut HopSpec)) -> Self {
        self.hops.iter_mut().for_each(change);
        self
    }

    /// Hops that packets in the forward direction of a flow with `route` pass, in order.
    pub fn hops_of(&self, route: &Route) -> &[HopSpec] {
        self.hops.get(route.first_hop..=route.last_hop(self)).unwrap_or_default()
    }

    /// Rates of the links that the data of a flow with `route` pass, in order.
    pub fn rates_of(&self, route: &Route) -> impl Iterator<Item = Rate<'_>> {
        let hops = if route.reverse { &[] } else { self.hops_of(route) };
        let reverse = self.reverse.iter().filter(|_| route.reverse).map(ReverseLink::rate);
        hops.iter().map(HopSpec::rate).chain(reverse)
    }

    /// Capacity for the data of a flow with `route` in a part of the run, bit/s: the least of the
    /// mean rates of its links.
    pub fn capacity_bps(&self, route: &Route, from_ns: Ns, to_ns: Ns) -> f64 {
        let means = self.rates_of(route).map(|rate| rate.mean_bps(from_ns, to_ns));
        means.reduce(f64::min).unwrap_or(0.0)
    }

    /// One-way delay between the first and the last hop of `route`. It comes on top of the path's own
    /// delays, in both directions.
    pub fn hops_delay_ns(&self, route: &Route) -> Ns {
        self.hops_of(route).iter().skip(1).map(|hop| hop.delay_ns).sum()
    }

    /// Bounds of the round-trip time of an empty path without jitter, access delays and delays between
    /// hops: the sums of the lowest and of the highest delays of both directions. The two need not apply
    /// at the same time: a packet can meet the forward delay before a step and the reverse delay after it.
    pub fn rtt_range_ns(&self) -> (Ns, Ns) {
        let range = |first: Ns, steps: &[(Ns, Ns)]| {
            steps
                .iter()
                .fold((first, first), |(least, most), (_, ns)| (least.min(*ns), most.max(*ns)))
        };
        let forward = range(self.delay_forward_ns, &self.delay_forward_steps);
        let reverse = range(self.delay_reverse_ns, &self.delay_reverse_steps);
        (forward.0 + reverse.0, forward.1 + reverse.1)
    }

    /// A path over one drop-tail hop of `rate_bps`, otherwise as [`PathSpec::over`].
    pub fn symmetric(rate_bps: u64, rtt_ns: Ns, queue: QueueLimit) -> Self {
        Self::over(vec![HopSpec::new(rate_bps, queue)], rtt_ns)
    }

    /// A path over `hops` with a round-trip time, split evenly, without jitter or loss in the reverse
    /// direction.
    pub fn over(hops: Vec<HopSpec>, rtt_ns: Ns) -> Self {
        Self {
            hops,
            delay_forward_ns: rtt_ns / 2,
            delay_reverse_ns: rtt_ns - rtt_ns / 2,
            ..Self::default()
        }
    }
}

/// A hop: random loss, a queue, and the link behind it, a possible bottleneck.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HopSpec {
    /// Propagation delay to it from the hop before it. Packets that enter the path here do not pass
    /// it, so the first hop's delay has no effect.
    pub delay_ns: Ns,
    /// Rate at the start, bit/s, of whole packets including headers; of a delivery trace its mean.
    pub rate_bps: u64,
    /// Variation of the rate; none: constant.
    pub rate_varies: Option<Varying>,
    /// Limit of its queue; the packet in transmission counts.
    pub queue: QueueLimit,
    /// Active queue management; none: drop-tail.
    pub aqm: Option<Aqm>,
    /// Probability that a packet is lost before its queue.
    pub loss: f64,
    /// Losses in bursts before its queue.
    pub bursts: Option<BurstLoss>,
}

impl HopSpec {
    /// A drop-tail hop of a constant rate, bit/s, without loss.
    pub fn new(rate_bps: u64, queue: QueueLimit) -> Self {
        Self { delay_ns: 0, rate_bps, rate_varies: None, queue, aqm: None, loss: 0.0, bursts: None }
    }

    /// Its rate.
    pub fn rate(&self) -> Rate<'_> {
        Rate { bps: self.rate_bps, varying: self.rate_varies.as_ref() }
    }
}

/// The way of a flow through the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// True if it runs against the others: its data pass the reverse link, which must be there, and
    /// its ACKs the hops.
    pub reverse: bool,
    /// Index of the first hop that it passes.
    pub first_hop: usize,
    /// Index of the last one; none: the path's last.
    pub last_hop: Option<usize>,
}

impl Route {
    /// Index of the last hop of `path` that it passes.
    pub fn last_hop(&self, path: &PathSpec) -> usize {
        self.last_hop.unwrap_or(path.hops.len() - 1)
    }
}

/// Reordering: some packets take longer, and those behind overtake them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reorder {
    /// Probability that a packet is one of them, each independently.
    pub probability: f64,
    /// Its extra delay.
    pub extra_delay_ns: Ns,
}

/// The link of the reverse direction, with a drop-tail queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReverseLink {
    /// Rate at the start, bit/s, of whole packets including headers; of a delivery trace its mean.
    pub rate_bps: u64,
    /// Variation of the rate; none: constant.
    pub rate_varies: Option<Varying>,
    /// Limit of its queue; the packet in transmission counts.
    pub queue: QueueLimit,
}

impl ReverseLink {
    /// Its rate.
    pub fn rate(&self) -> Rate<'_> {
        Rate { bps: self.rate_bps, varying: self.rate_varies.as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_may_meet_delays_of_different_times() {
        let path = PathSpec {
            delay_forward_steps: vec![(3, 15), (9, 7)],
            delay_reverse_steps: vec![(4, 1), (5, 50)],
            ..PathSpec::symmetric(1_000_000, 50, QueueLimit::Packets(1))
        };
        assert_eq!((path.delay_forward_ns, path.delay_reverse_ns), (25, 25));
        assert_eq!(path.rtt_range_ns(), (7 + 1, 25 + 50));
        let constant = PathSpec::symmetric(1_000_000, 51, QueueLimit::Packets(1));
        assert_eq!(constant.rtt_range_ns(), (51, 51));
    }
}
