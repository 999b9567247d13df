//! A run in figures, named and defined as in `summary.json` (docs/reference/results.md).

use knee_model::{FlowCounters, FlowRecord, NS_PER_S, QueueRecord, RunRecord, RunSpec};
use serde::Serialize;

/// Statistics of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Statistics {
    duration_s: f64,
    bin_s: f64,
    /// Bins of the time series.
    bins: usize,
    hops: Vec<Hop>,
    flows: Vec<Flow>,
    /// Jain's index of the goodputs of TCP flows over the lives of each.
    jain: Option<f64>,
    approximations: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Hop {
    utilisation: Option<f64>,
    /// Mean capacity of its link.
    capacity_bps: f64,
    delay_mean_ms: Option<f64>,
    delay_p95_ms: Option<f64>,
    delay_max_ms: Option<f64>,
    dropped_pkts: u64,
    marked_pkts: u64,
    max_pkts: u32,
}

#[derive(Debug, Serialize)]
struct Flow {
    name: String,
    kind: String,
    /// Name of the source that it was drawn from; empty if the scenario names it.
    source: String,
    observes: [&'static str; knee_cc::OBSERVE_N],
    start_s: f64,
    stop_s: f64,
    /// Goodput over its life.
    goodput_bps: Option<f64>,
    rtt_mean_ms: Option<f64>,
    rtt_p95_ms: Option<f64>,
    counters: FlowCounters,
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / NS_PER_S as f64
}

fn ms(ns: f64) -> f64 {
    ns / 1e6
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

impl Statistics {
    pub(crate) fn of(spec: &RunSpec, record: &RunRecord) -> Self {
        let hops = spec.path.hops.iter().zip(&record.queues);
        let flows: Vec<Flow> = record.flows.iter().map(flow).collect();
        let has_feedback = |flow: &&Flow| !matches!(flow.kind.as_str(), "udp" | "probe");
        let goodputs: Vec<f64> =
            flows.iter().filter(has_feedback).filter_map(|flow| flow.goodput_bps).collect();
        let (sum, squares) =
            goodputs.iter().fold((0.0, 0.0), |(sum, squares), g| (sum + g, squares + g * g));
        Self {
            duration_s: seconds(record.duration_ns),
            bin_s: seconds(record.bin_ns),
            bins: crate::series::bins(record),
            hops: hops
                .map(|(hop, queue)| {
                    self::hop(hop.rate().mean_bps(0, record.duration_ns), record, queue)
                })
                .collect(),
            jain: ratio(sum * sum, goodputs.len() as f64 * squares),
            flows,
            approximations: record.approximations.clone(),
        }
    }
}

fn hop(capacity_bps: f64, record: &RunRecord, queue: &QueueRecord) -> Hop {
    let delay = (queue.delay.count() > 0).then_some(&queue.delay);
    let capacity_bits = capacity_bps * seconds(record.duration_ns);
    Hop {
        utilisation: ratio(queue.departed_bytes as f64 * 8.0, capacity_bits),
        capacity_bps,
        delay_mean_ms: delay.map(|d| ms(d.mean_ns())),
        delay_p95_ms: delay.map(|d| ms(d.quantile_ns(0.95) as f64)),
        delay_max_ms: delay.map(|d| ms(d.max_ns() as f64)),
        dropped_pkts: queue.dropped_pkts,
        marked_pkts: queue.marked_pkts,
        max_pkts: queue.max_pkts,
    }
}

fn flow(flow: &FlowRecord) -> Flow {
    let rtt = (flow.rtt.count() > 0).then_some(&flow.rtt);
    let life_s = seconds(flow.stop_ns.saturating_sub(flow.start_ns));
    Flow {
        name: flow.name.clone(),
        kind: flow.kind.clone(),
        source: flow.source.clone(),
        observes: flow.observes,
        start_s: seconds(flow.start_ns),
        stop_s: seconds(flow.stop_ns),
        goodput_bps: ratio(flow.counters.delivered_bytes as f64 * 8.0, life_s),
        rtt_mean_ms: rtt.map(|d| ms(d.mean_ns())),
        rtt_p95_ms: rtt.map(|d| ms(d.quantile_ns(0.95) as f64)),
        counters: flow.counters,
    }
}
