//! The access of the flows: between their endpoints at the path's start and the shared path.

use super::FlowPort;
use crate::{DelayLine, Jitter};
use knee_model::{Ns, Random, RunSpec};
use std::collections::BTreeMap;

/// The flows that share an access delay and a route. Their packets keep their order.
pub(super) struct AccessGroup<P> {
    pub(super) first_hop: usize,
    /// Packets have neither delay nor jitter on their way to the path's first hop.
    pub(super) direct: bool,
    access_delay_ns: Ns,
    /// From the shared reverse direction to the flows: the access delay, and the delays between the hops.
    return_delay_ns: Ns,
    noise: Jitter,
    noise_random: Random,
    /// Packets on their way to the first hop.
    pub(super) entries: DelayLine<P>,
    /// Packets on their way back from the shared reverse direction, to the path's start.
    pub(super) returns: DelayLine<P>,
}

/// Key of an access group: access delay, first hop, last hop. A flow with access jitter or noise has
/// a group of its own: its jitter must not hold back another flow's packets.
type Key = (Ns, usize, usize, Option<usize>);

/// The access groups of `spec`, and the port of each flow.
pub(super) fn connect_flows<P: Default>(spec: &RunSpec) -> (Vec<AccessGroup<P>>, Vec<FlowPort>) {
    let mut groups: Vec<AccessGroup<P>> = Vec::new();
    let mut group_of: BTreeMap<Key, usize> = BTreeMap::new();
    let mut ports = Vec::with_capacity(spec.flows.len());
    for (index, flow) in spec.flows.iter().enumerate() {
        let mut random = spec.random("access delay", index);
        let access_delay_ns = flow.access_delay_ns + random.up_to(flow.access_delay_spread_ns);
        let noise_ns = spec.path.noise_ns;
        let own = (flow.access_jitter_ns > 0 || noise_ns > 0).then_some(index);
        let (first_hop, last_hop) = (flow.route.first_hop, flow.route.last_hop(&spec.path));
        let group =
            *group_of.entry((access_delay_ns, first_hop, last_hop, own)).or_insert_with(|| {
                groups.push(AccessGroup {
                    first_hop,
                    direct: first_hop == 0 && access_delay_ns == 0 && own.is_none(),
                    access_delay_ns,
                    return_delay_ns: access_delay_ns + spec.path.hops_delay_ns(&flow.route),
                    noise: Jitter::new(noise_ns),
                    noise_random: spec.random("noise", index),
                    entries: DelayLine::default(),
                    returns: DelayLine::default(),
                });
                groups.len() - 1
            });
        ports.push(FlowPort::new(spec, index, group, last_hop));
    }
    (groups, ports)
}

impl<P: Default> AccessGroup<P> {
    /// A packet sets out for the first hop.
    #[inline(always)]
    pub(super) fn enter(&mut self, now_ns: Ns, jitter_ns: Ns, packet: P) {
        let delay_ns = self.access_delay_ns + jitter_ns + self.noise_ns();
        self.entries.push(now_ns, delay_ns, packet);
    }

    /// A packet leaves the shared reverse direction at `leaves_at_ns`.
    #[inline(always)]
    pub(super) fn come_back(&mut self, leaves_at_ns: Ns, packet: P) {
        let delay_ns = self.return_delay_ns + self.noise_ns();
        self.returns.push(leaves_at_ns, delay_ns, packet);
    }

    /// Extra delay of the next packet on the access link.
    #[inline(always)]
    fn noise_ns(&mut self) -> Ns {
        self.noise.draw_ns(&mut self.noise_random)
    }
}
