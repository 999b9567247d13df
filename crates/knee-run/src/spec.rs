//! The experiment, as plain validated numbers.

use knee_cc::{Algorithm, OBSERVE_N, Params};
use knee_net::{Aqm, BurstLoss, Jitter, Limit as QueueLimit, Random, Rate, Varying};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A time or duration in nanoseconds.
pub type Ns = u64;

/// One run: everything a host needs, nothing that it may choose.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunSpec {
    /// Seed of every random stream.
    pub seed: u64,
    /// When the run ends.
    pub duration_ns: Ns,
    /// The path that all flows share.
    pub path: PathSpec,
    /// Flows: those that the scenario names, in its order, then those drawn from its sources.
    pub flows: Vec<FlowSpec>,
    /// What to keep.
    pub record: RecordSpec,
}

impl RunSpec {
    /// Knee's algorithms, of each flow that has one.
    pub fn algorithms(&self) -> impl Iterator<Item = Algorithm> {
        self.flows.iter().filter_map(|flow| match &flow.kind {
            FlowKind::Tcp(tcp) => tcp.cc.params().map(Params::algorithm),
            _ => None,
        })
    }

    /// When flow `index` starts, jitter included.
    pub fn start_ns(&self, index: usize) -> Ns {
        let flow = &self.flows[index];
        let mut random = self.random("start", index);
        flow.start_ns + Jitter::new(flow.start_jitter_ns).draw_ns(&mut random)
    }

    /// Number of bins of the time series; the last one may be short.
    pub fn bins(&self) -> usize {
        match self.record.bin_ns {
            0 => 0,
            bin_ns => self.duration_ns.div_ceil(bin_ns) as usize,
        }
    }

    /// The random stream of `component` for flow `index`: the same however many flows are drawn.
    pub fn random(&self, component: &str, index: usize) -> Random {
        let drawn = self.flows[index].drawn.as_ref();
        Random::stream(self.seed, component, drawn.map_or(index as u64, |drawn| drawn.stream))
    }

    /// Packets that flow `index` can number at most. No flow can send more than its slowest link
    /// carries, twice over for what is dropped; UDP sends at its own rate.
    pub fn packets(&self, index: usize) -> u128 {
        let flow = &self.flows[index];
        let packet_bits = u128::from(flow.packet_bytes()) * 8;
        let ns_per_s = u128::from(crate::NS_PER_S);
        let bits_per_s: u128 = match &flow.kind {
            // A transfer numbers what it writes, however often it sends it.
            FlowKind::Tcp(TcpSpec {
                workload: Workload::Transfers { size_bytes, every_ns },
                options,
                ..
            }) => {
                let times = every_ns.map_or(1, |e| self.duration_ns / e.max(1) + 1);
                return u128::from(size_bytes.div_ceil(u64::from(options.mss_bytes)))
                    * u128::from(times);
            }
            FlowKind::Tcp(TcpSpec { workload: Workload::Writes(writes), options, .. }) => {
                let mss_bytes = u64::from(options.mss_bytes);
                return writes.iter().map(|w| u128::from(w.bytes.div_ceil(mss_bytes))).sum();
            }
            // Rounded up; exact up to 2^53 bit/s.
            FlowKind::Tcp(_) => {
                self.path.capacity_bps(&flow.route, 0, self.duration_ns).ceil() as u128 * 2
            }
            FlowKind::Udp { rate_bps, steps, .. } => {
                u128::from(steps.iter().map(|(_, bps)| *bps).fold(*rate_bps, u64::max))
            }
            FlowKind::Probe { interval_ns, .. } => {
                packet_bits * ns_per_s / u128::from((*interval_ns).max(1))
            }
        };
        bits_per_s * u128::from(self.duration_ns) / (packet_bits * ns_per_s)
    }

    /// The dumbbell of speed comparisons: `flows` bulk flows of one algorithm, SACK, an ACK for
    /// each packet, started within the first 100 ms; nothing recorded but counters.
    pub fn dumbbell(
        flows: u32,
        path: PathSpec,
        duration_ns: Ns,
        params: &Params,
        seed: u64,
    ) -> Self {
        let flow = |i: u32| FlowSpec {
            start_ns: u64::from(i) * 100 * crate::NS_PER_MS / u64::from(flows.max(1)),
            ..FlowSpec::new(
                format!("{}-{}", params.algorithm().name(), i + 1),
                FlowKind::Tcp(TcpSpec {
                    transport: Transport::Own,
                    cc: Cc::Knee(params.clone()),
                    workload: Workload::Bulk,
                    options: TcpOptions::default(),
                }),
            )
        };
        let flows = (0..flows).map(flow).collect();
        Self { seed, duration_ns, path, flows, record: RecordSpec::default() }
    }
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

    /// Whether results tell more than one queue apart: those of several hops, or that of the reverse
    /// link, if one of `flows` sends its data there.
    pub fn has_several_queues(&self, flows: &[FlowSpec]) -> bool {
        self.hops.len() > 1 || flows.iter().any(|flow| flow.route.reverse)
    }

    /// Rates of the links that the data of a flow with `route` pass, in order.
    pub fn rates_of(&self, route: &Route) -> impl Iterator<Item = Rate<'_>> {
        let hops = if route.reverse { &[] } else { self.hops_of(route) };
        let reverse = self.reverse.iter().filter(|_| route.reverse).map(ReverseLink::rate);
        hops.iter().map(HopSpec::rate).chain(reverse)
    }

    /// What the data of a flow with `route` can have in a part of the run, bit/s: the least of the
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
            delay_forward_steps: Vec::new(),
            delay_reverse_steps: Vec::new(),
            falls_reorder: false,
            loss_reverse: 0.0,
            bursts_reverse: None,
            jitter_forward_ns: 0,
            jitter_reverse_ns: 0,
            reorder: None,
            reverse: None,
        }
    }
}

impl Default for TcpOptions {
    /// 1500-byte packets with timestamps, SACK, initial window 10, an ACK for each packet, RTO of
    /// at least 200 ms beyond the RTT, exact RTT samples.
    fn default() -> Self {
        Self {
            mss_bytes: 1448,
            header_bytes: 52,
            recovery: Recovery::Sack,
            initial_window_pkts: 10,
            receive_window_pkts: 100_000,
            rto_min_ns: 200 * crate::NS_PER_MS,
            delayed_ack: DelayedAck { every_pkts: 1, timeout_ns: 40 * crate::NS_PER_MS },
            limited_transmit: true,
            idle_restart: true,
            segmentation_offload: false,
            rtt_tick_ns: 0,
            quick_ack_pkts: 0,
            ecn: false,
            receiver: ReceiverConduct::Honest,
        }
    }
}

/// Hops in the forward direction, towards the receivers, and a reverse direction that is uncongested
/// unless it has a rate of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    /// The same of packets that leave the receivers (the link there, if it has a rate).
    pub delay_reverse_steps: Vec<(Ns, Ns)>,
    /// When the forward delay falls, packets overtake those that left before.
    pub falls_reorder: bool,
    /// Probability that a packet is lost in the reverse direction.
    pub loss_reverse: f64,
    /// Losses in bursts in the reverse direction.
    pub bursts_reverse: Option<BurstLoss>,
    /// Extra delay after the last hop, uniform from 0 to this, never reordering.
    pub jitter_forward_ns: Ns,
    /// Extra delay in the reverse direction, uniform from 0 to this, never reordering.
    pub jitter_reverse_ns: Ns,
    /// Packets that others overtake, after the last hop.
    pub reorder: Option<Reorder>,
    /// Link that packets in the reverse direction pass first; none: they pass at once.
    pub reverse: Option<ReverseLink>,
}

/// A hop: random loss, a queue, and the link behind it, a possible bottleneck.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HopSpec {
    /// Propagation delay to it from the hop before it. Packets that enter the path here do not pass
    /// it, so that of the first hop has no effect.
    pub delay_ns: Ns,
    /// Rate at the start, bit/s, of whole packets including headers; of a delivery trace its mean.
    pub rate_bps: u64,
    /// What the rate is instead, if it is not constant.
    pub rate_varies: Option<Varying>,
    /// Limit of its queue; the packet in transmission counts.
    pub queue: QueueLimit,
    /// How the queue is managed; none: drop-tail.
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

/// Which way a flow takes on the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Whether it goes against the others: its data pass the reverse link, which must be there, and
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
    /// How much longer it takes.
    pub extra_delay_ns: Ns,
}

/// The link of the reverse direction, with a drop-tail queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReverseLink {
    /// Rate at the start, bit/s, of whole packets including headers; of a delivery trace its mean.
    pub rate_bps: u64,
    /// What the rate is instead, if it is not constant.
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

/// One flow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FlowSpec {
    /// Name in results; unique within the run.
    pub name: String,
    /// When it starts.
    pub start_ns: Ns,
    /// The start is later by a uniform draw from 0 to this.
    pub start_jitter_ns: Ns,
    /// When it stops sending (counted from time 0, not from its start); end of the run if none.
    /// The start's jitter does not move it.
    pub stop_ns: Option<Ns>,
    /// Extra one-way delay between the flow's end at the path's start (its sender, or the receiver of
    /// a flow in the reverse direction) and the path, in each direction.
    pub access_delay_ns: Ns,
    /// That delay is longer by a uniform draw from 0 to this, one for each run.
    pub access_delay_spread_ns: Ns,
    /// Time between that end and the bottleneck that varies per packet, uniform from 0 to this, never
    /// reordering: what real hosts do, and what breaks the phase effects of drop-tail queues.
    pub access_jitter_ns: Ns,
    /// Which way it takes.
    pub route: Route,
    /// Where it comes from, if it was drawn at random.
    pub drawn: Option<Drawn>,
    /// What it sends.
    pub kind: FlowKind,
}

/// Where a flow comes from that the scenario does not name: a source of many flows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drawn {
    /// Name of the source.
    pub source: Arc<str>,
    /// Number of the flow's random streams: at least 2^32, where no index of a flow lies, and
    /// no other flow of the run has it.
    pub stream: u64,
}

impl FlowSpec {
    /// A flow that starts at once and has nothing of its own on its way.
    pub fn new(name: impl Into<String>, kind: FlowKind) -> Self {
        Self {
            name: name.into(),
            start_ns: 0,
            start_jitter_ns: 0,
            stop_ns: None,
            access_delay_ns: 0,
            access_delay_spread_ns: 0,
            access_jitter_ns: 0,
            route: Route::default(),
            drawn: None,
            kind,
        }
    }

    /// Size of its full packets, headers included, bytes.
    pub fn packet_bytes(&self) -> u32 {
        match &self.kind {
            FlowKind::Tcp(tcp) => tcp.options.mss_bytes + tcp.options.header_bytes,
            FlowKind::Udp { packet_bytes, .. } | FlowKind::Probe { packet_bytes, .. } => {
                *packet_bytes
            }
        }
    }

    /// Size of an acknowledgement, where the host makes none of its own, bytes.
    pub fn ack_bytes(&self) -> u32 {
        match &self.kind {
            FlowKind::Tcp(tcp) => tcp.options.header_bytes,
            FlowKind::Udp { .. } | FlowKind::Probe { .. } => 0,
        }
    }
}

/// What a flow sends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum FlowKind {
    /// TCP, or QUIC.
    Tcp(TcpSpec),
    /// UDP at a given rate.
    Udp {
        /// Rate of whole packets, bit/s.
        rate_bps: u64,
        /// From these times of the run on, these rates instead, 0 for silence; in order of time.
        steps: Vec<(Ns, u64)>,
        /// Size of whole packets, bytes.
        packet_bytes: u32,
    },
    /// One-way delay probe: small UDP packets at fixed intervals, each one's delay recorded.
    Probe {
        /// Time between packets.
        interval_ns: Ns,
        /// Size of whole packets, bytes.
        packet_bytes: u32,
    },
}

impl FlowKind {
    /// What its application writes, unless it sends without feedback.
    pub fn workload(&self) -> Option<&Workload> {
        match self {
            Self::Tcp(tcp) => Some(&tcp.workload),
            Self::Udp { .. } | Self::Probe { .. } => None,
        }
    }

    /// Name in results: of the algorithm, or `udp`, `probe`.
    pub fn name(&self) -> String {
        match self {
            Self::Tcp(tcp) => tcp.cc.name(),
            Self::Udp { .. } => "udp".to_owned(),
            Self::Probe { .. } => "probe".to_owned(),
        }
    }

    /// Names of the values that its algorithm lets be observed; empty where there is none.
    pub fn observes(&self) -> [&'static str; OBSERVE_N] {
        match self {
            Self::Tcp(tcp) => tcp.cc.observes(),
            Self::Udp { .. } | Self::Probe { .. } => [""; OBSERVE_N],
        }
    }
}

/// A TCP flow, or a QUIC connection with the same options.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TcpSpec {
    /// What carries it, on hosts that have both.
    pub transport: Transport,
    /// What controls its window.
    pub cc: Cc,
    /// What the application writes.
    pub workload: Workload,
    /// The stack's options.
    pub options: TcpOptions,
}

/// What carries a flow with feedback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transport {
    /// The host's own: TCP in the simulator and on the kernel, QUIC where all flows are.
    #[default]
    Own,
    /// QUIC.
    Quic,
}

/// What controls a flow's congestion window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Cc {
    /// An algorithm of Knee, with its parameters: on every host.
    Knee(Params),
    /// A congestion control of the kernel's own, by its name there: on the kernel only.
    Kernel(String),
}

/// What names a congestion control of the kernel's own in scenarios and results.
pub const KERNEL_PREFIX: &str = "kernel:";

impl Cc {
    /// Name in results: `chd`, or `kernel:cubic`.
    pub fn name(&self) -> String {
        match self {
            Self::Knee(params) => params.algorithm().name().to_owned(),
            Self::Kernel(name) => format!("{KERNEL_PREFIX}{name}"),
        }
    }

    /// Names of the values that the algorithm lets be observed; empty where there is none.
    pub fn observes(&self) -> [&'static str; OBSERVE_N] {
        self.params().map_or([""; OBSERVE_N], |params| params.algorithm().observes())
    }

    /// Algorithm and parameters, if it is Knee's.
    pub fn params(&self) -> Option<&Params> {
        match self {
            Self::Knee(params) => Some(params),
            Self::Kernel(_) => None,
        }
    }
}

/// What a TCP application writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Workload {
    /// As much as the connection takes.
    Bulk,
    /// Transfers of a fixed size on one connection.
    Transfers {
        /// Bytes of each.
        size_bytes: u64,
        /// Time from one write to the next (what is not sent yet queues); `None`: one transfer.
        every_ns: Option<Ns>,
    },
    /// Transfers of given sizes at given times on one connection, in order of time, the first at
    /// the flow's start. What is not sent yet queues.
    Writes(Arc<[Write]>),
}

/// A transfer that an application writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// When, from the flow's start.
    pub after_ns: Ns,
    /// How much, at least 1 byte.
    pub bytes: u64,
}

impl Workload {
    /// Transfer `number`, from 0; none if there are no more, or none at all.
    pub fn write(&self, number: usize) -> Option<Write> {
        match self {
            Self::Bulk => None,
            Self::Transfers { size_bytes, every_ns } => {
                let after_ns = every_ns.map_or((number == 0).then_some(0), |every_ns| {
                    every_ns.checked_mul(number as u64)
                });
                after_ns.map(|after_ns| Write { after_ns, bytes: *size_bytes })
            }
            Self::Writes(writes) => writes.get(number).copied(),
        }
    }
}

/// Options of the TCP stack, sender and receiver.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TcpOptions {
    /// Payload of a full packet, bytes.
    pub mss_bytes: u32,
    /// Headers of each data packet, bytes; an ACK is this long.
    pub header_bytes: u32,
    /// How losses are repaired.
    pub recovery: Recovery,
    /// Initial window, packets.
    pub initial_window_pkts: u32,
    /// Receive window, packets.
    pub receive_window_pkts: u32,
    /// Least margin of the retransmission timeout beyond the smoothed RTT.
    pub rto_min_ns: Ns,
    /// Delayed acknowledgements.
    pub delayed_ack: DelayedAck,
    /// So many packets at the start of a connection are each acknowledged, whatever the above says:
    /// Linux does that until the receive window has opened.
    pub quick_ack_pkts: u32,
    /// Send new data on the first two duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Restart the window after an idle time longer than the RTO (RFC 5681 section 4.1).
    pub idle_restart: bool,
    /// Send new data in bursts, as Linux does for segmentation offload; not for algorithms that pace.
    pub segmentation_offload: bool,
    /// Clock tick to which RTT samples are quantised; 0: exact.
    pub rtt_tick_ns: Ns,
    /// Explicit congestion notification (RFC 3168): data packets may be marked instead of dropped.
    pub ecn: bool,
    /// What the receiver acknowledges.
    pub receiver: ReceiverConduct,
}

/// What a receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiverConduct {
    /// What has arrived.
    Honest,
    /// Everything before the last segment that has arrived, as if nothing was missing: a kind of
    /// optimistic ACKing (Savage et al., "TCP congestion control with a misbehaving receiver", 1999).
    ConcealsLoss,
}

/// How losses are repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// Selective acknowledgements, loss detection by time (RACK-TLP, RFC 8985) and proportional rate
    /// reduction (RFC 6937).
    Sack,
    /// Cumulative ACKs only, window inflation and partial ACKs (RFC 6582).
    Newreno,
    /// Cumulative ACKs only, partial ACKs, proportional rate reduction, as in Linux without SACK.
    NewrenoPrr,
    /// As [`Self::Sack`], but with the window of FreeBSD 7: one packet when recovery begins, from
    /// which it grows.
    Freebsd7,
}

/// Delayed acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayedAck {
    /// Packets per ACK; 1: an ACK for each.
    pub every_pkts: u32,
    /// Longest wait for the next packet.
    pub timeout_ns: Ns,
}

/// What to keep of a run beside counters.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RecordSpec {
    /// Interval of the time series; 0: none.
    pub bin_ns: Ns,
    /// Every packet's arrival, departure or drop at the bottleneck.
    pub queue_log: bool,
    /// Every call of an algorithm with all inputs and outputs.
    pub trace: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_are_written_at_their_times() {
        let times = |workload: &Workload| -> Vec<(Ns, u64)> {
            let writes = (0..4).map_while(|n| workload.write(n));
            writes.map(|w| (w.after_ns, w.bytes)).collect()
        };
        assert_eq!(times(&Workload::Bulk), []);
        let transfers = |every_ns| Workload::Transfers { size_bytes: 9, every_ns };
        assert_eq!(times(&transfers(None)), [(0, 9)]);
        assert_eq!(times(&transfers(Some(5))), [(0, 9), (5, 9), (10, 9), (15, 9)]);
        let writes = [(0, 3), (7, 1)].map(|(after_ns, bytes)| Write { after_ns, bytes });
        assert_eq!(times(&Workload::Writes(writes.into())), [(0, 3), (7, 1)]);
    }

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
