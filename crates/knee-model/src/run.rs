//! One run, as plain validated numbers.

use crate::{
    Cc, FlowKind, FlowSpec, Ns, PathSpec, Random, TcpOptions, TcpSpec, Transport, Workload,
    sysctl::Sysctl,
};
use knee_cc::{Algorithm, Params};
use serde::{Deserialize, Serialize};

/// One run: everything a host needs, nothing that it may choose.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunSpec {
    /// Seed of every random stream.
    pub seed: u64,
    /// End of the run.
    pub duration_ns: Ns,
    /// The path that all flows share.
    pub path: PathSpec,
    /// Flows: those that the scenario names, in its order, then those drawn from its sources.
    pub flows: Vec<FlowSpec>,
    /// Optional parts of the record.
    pub record: RecordSpec,
    /// Settings of Linux, for the host `linux`; a later one overrides an earlier one.
    pub sysctls: Vec<Sysctl>,
}

impl RunSpec {
    /// Knee's algorithms, of each flow that has one.
    pub fn algorithms(&self) -> impl Iterator<Item = Algorithm> {
        self.flows.iter().filter_map(FlowSpec::params).map(Params::algorithm)
    }

    /// Start time of flow `index`, jitter included.
    pub fn start_ns(&self, index: usize) -> Ns {
        let flow = &self.flows[index];
        let mut random = self.random("start", index);
        flow.start_ns + random.up_to(flow.start_jitter_ns)
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

    /// True if results distinguish several queues: those of several hops, or that of the reverse
    /// link, if a flow sends its data there.
    pub fn has_several_queues(&self) -> bool {
        self.path.hops.len() > 1 || self.flows.iter().any(|flow| flow.route.reverse)
    }

    /// Packets that flow `index` can number at most. No flow can send more than its slowest link carries,
    /// twice over to allow for drops; UDP sends at its own rate.
    pub fn packets(&self, index: usize) -> u128 {
        let flow = &self.flows[index];
        let packet_bits = u128::from(flow.packet_bytes()) * 8;
        let ns_per_s = u128::from(crate::NS_PER_S);
        let bits_per_s: u128 = match &flow.kind {
            // A transfer numbers the data that it writes, however often it sends them.
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
        let record = RecordSpec::default();
        Self { seed, duration_ns, path, flows, record, sysctls: Vec::new() }
    }
}

/// Optional parts of a run's record.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RecordSpec {
    /// Interval of the time series; 0: none.
    pub bin_ns: Ns,
    /// Every packet's arrival, departure or drop at the bottleneck.
    pub queue_log: bool,
    /// Every call of an algorithm with all inputs and outputs.
    pub trace: bool,
}
