//! A run in figures: the metrics of the table (docs/reference/metrics.md), and the counters of each flow.

use knee_metrics::{METRICS, Metrics, QueueAt, Scope, Subject};
use knee_model::{FlowCounters, HopSpec, NS_PER_S, RunRecord, RunSpec};
use serde::Serialize;
use std::collections::BTreeMap;

/// Metrics by name; `None` where one is undefined.
type Values = BTreeMap<&'static str, Option<f64>>;

/// Statistics of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Statistics {
    duration_s: f64,
    bin_s: f64,
    /// Bins of the time series.
    bins: usize,
    /// Metrics of all TCP flows together.
    metrics: Values,
    hops: Vec<Hop>,
    flows: Vec<Flow>,
    approximations: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Hop {
    /// Mean capacity of its link.
    capacity_bps: f64,
    metrics: Values,
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
    metrics: Values,
    counters: FlowCounters,
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / NS_PER_S as f64
}

fn values(subject: Subject, scope: &Scope<'_>) -> Values {
    let of_subject = METRICS.iter().filter(|metric| metric.subject == subject);
    of_subject.map(|metric| (metric.name, metric.value(scope))).collect()
}

impl Statistics {
    pub(crate) fn of(spec: &RunSpec, record: &RunRecord) -> Self {
        let run = Metrics::new(spec, record);
        let queues = run.queues();
        let hop = |(hop, queue): (&HopSpec, &QueueAt<'_>)| Hop {
            capacity_bps: hop.rate().mean_bps(0, record.duration_ns),
            metrics: values(Subject::Queue, &Scope::of_run(queue.metrics, None)),
        };
        Self {
            duration_s: seconds(record.duration_ns),
            bin_s: seconds(record.bin_ns),
            bins: crate::series::bins(record),
            metrics: values(Subject::Run, &Scope::of_run(run, None)),
            hops: spec.path.hops.iter().zip(&queues).map(hop).collect(),
            flows: (0..record.flows.len()).map(|index| flow(run, index)).collect(),
            approximations: record.approximations.clone(),
        }
    }
}

fn flow(run: Metrics<'_>, index: usize) -> Flow {
    let flow = &run.record().flows[index];
    Flow {
        name: flow.name.clone(),
        kind: flow.kind.clone(),
        source: flow.source.clone(),
        observes: flow.observes,
        start_s: seconds(flow.start_ns),
        stop_s: seconds(flow.stop_ns),
        metrics: values(Subject::Flow, &Scope::of_flow(run, index, None)),
        counters: flow.counters,
    }
}
