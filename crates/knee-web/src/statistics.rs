//! A run in figures: the metrics of the table (docs/reference/metrics.md), and the counters of each flow.

use knee_metrics::{METRICS, Metrics, QueueAt, Scope, Subject};
use knee_model::{HopSpec, RunRecord, RunSpec, seconds};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Metrics by name; `None` where one is undefined.
type Values = BTreeMap<&'static str, Option<f64>>;

fn values(subject: Subject, scope: &Scope<'_>) -> Values {
    let of_subject = METRICS.iter().filter(|metric| metric.subject == subject);
    of_subject.map(|metric| (metric.name, metric.value(scope))).collect()
}

/// Statistics of a run: `Statistics` of `web/src/protocol.ts`.
pub(crate) fn statistics(spec: &RunSpec, record: &RunRecord) -> Value {
    let run = Metrics::new(spec, record);
    let queues = run.queues();
    let hop = |(hop, queue): (&HopSpec, &QueueAt<'_>)| {
        json!({
            "capacity_bps": hop.rate().mean_bps(0, record.duration_ns),
            "metrics": values(Subject::Queue, &Scope::of_run(queue.metrics, None)),
        })
    };
    json!({
        "duration_s": seconds(record.duration_ns),
        "bin_s": seconds(record.bin_ns),
        "bins": crate::series::bins(record),
        "metrics": values(Subject::Run, &Scope::of_run(run, None)),
        "hops": spec.path.hops.iter().zip(&queues).map(hop).collect::<Vec<_>>(),
        "flows": (0..record.flows.len()).map(|index| flow(run, index)).collect::<Vec<_>>(),
        "approximations": record.approximations,
    })
}

fn flow(run: Metrics<'_>, index: usize) -> Value {
    let flow = &run.record().flows[index];
    json!({
        "name": flow.name,
        "kind": flow.kind,
        "source": flow.source,
        "observes": flow.observes,
        "start_s": seconds(flow.start_ns),
        "stop_s": seconds(flow.stop_ns),
        "metrics": values(Subject::Flow, &Scope::of_flow(run, index, None)),
        "counters": flow.counters,
    })
}
