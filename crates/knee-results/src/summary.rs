//! `summary.json`: the scenario and the main results. `docs/reference/results.md` describes every field.
//!
//! It depends on the scenario, the seed, Knee and the kernel, and on nothing else: no time of day,
//! no path, no duration of the computation.

use crate::metrics::{
    Backoffs, Completion, DelayMs, Metric, Metrics, Percentiles, QueueAt, SIZE_CLASSES, Scope,
    Subject, in_summary, is_named,
};
use knee_model::{FlowCounters, FlowRecord, NS_PER_US, Ns, RunRecord, RunSpec, digest, seconds};
use serde::{Serialize, Serializer};
use std::{collections::BTreeMap, ops::Range};

/// Facts that a run cannot know of itself.
#[derive(Clone, Copy, Debug)]
pub struct Provenance<'a> {
    /// Commit of Knee, if known.
    pub commit: Option<&'a str>,
    /// Host: `sim`, `kernel`, `quic`.
    pub host: &'a str,
    /// Components of the host, by name, if it gives them: see [`knee_model::Host::made_with`].
    pub made_with: &'a [(String, String)],
    /// Name of the scenario.
    pub scenario_name: &'a str,
    /// Its file, as it was read.
    pub scenario_text: &'a str,
}

/// All of `summary.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Version of Knee.
    pub knee_version: &'static str,
    /// Commit of Knee, if known.
    pub knee_commit: Option<String>,
    /// Host that ran it.
    pub host: String,
    /// Release of the kernel: in a virtual machine its own, else that of this machine.
    pub kernel: String,
    /// Components of the host, by name: of a virtual machine its kernel, QEMU, a hash of all.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub made_with: BTreeMap<String, String>,
    /// The scenario.
    pub scenario: Scenario,
    /// Seed of the first repetition.
    pub seed: u64,
    /// Number of repetitions.
    pub repetitions: usize,
    /// Length of each, seconds.
    pub duration_s: f64,
    /// Largest extra delay on each access link, microseconds; left out without noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_us: Option<f64>,
    /// Width of the bins of the time series, seconds; 0: none were kept.
    pub bin_s: f64,
    /// Over the repetitions.
    pub over_repetitions: OverRepetitions,
    /// Each repetition.
    pub runs: Vec<Run>,
}

/// The scenario that was run.
#[derive(Clone, Debug, Serialize)]
pub struct Scenario {
    /// Name.
    pub name: String,
    /// SHA-256 of the text, hexadecimal.
    pub sha256: String,
    /// The file, as it was read.
    pub text: String,
}

/// 20th, 50th and 80th percentiles over the repetitions.
#[derive(Clone, Debug, Serialize)]
pub struct OverRepetitions {
    /// Metrics of the first bottleneck and of the run.
    #[serde(flatten)]
    pub metrics: MetricsOver,
    /// Each flow that the scenario names, in its order.
    pub flows: Vec<FlowOverRepetitions>,
    /// Each source of flows, in scenario order.
    pub sources: Vec<SourceOverRepetitions>,
}

/// Percentiles of metrics over the repetitions in which they are defined, by name and in the order of
/// the table; `None` for a metric that is defined in none.
#[derive(Clone, Debug)]
pub struct MetricsOver(pub Vec<(&'static str, Option<Percentiles>)>);

impl MetricsOver {
    fn new(subject: Subject, scopes: &[Scope<'_>]) -> Self {
        let over = |metric: &Metric| {
            (metric.name, Percentiles::of(scopes.iter().filter_map(|scope| metric.value(scope))))
        };
        Self(in_summary(subject).map(over).collect())
    }
}

impl Serialize for MetricsOver {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

/// A source of flows, over the repetitions.
#[derive(Clone, Debug, Serialize)]
pub struct SourceOverRepetitions {
    /// Name.
    pub name: String,
    /// Goodput of its flows together over the run, bit/s.
    pub goodput_bps: Option<Percentiles>,
    /// Median of a run's completion times, seconds.
    pub completion_p50_s: Option<Percentiles>,
    /// 95th percentile.
    pub completion_p95_s: Option<Percentiles>,
    /// 99th percentile.
    pub completion_p99_s: Option<Percentiles>,
    /// Transfers that the run's end left incomplete.
    pub unfinished: Option<Percentiles>,
}

/// A flow, over the repetitions.
#[derive(Clone, Debug, Serialize)]
pub struct FlowOverRepetitions {
    /// Name.
    pub name: String,
    /// Metrics of the flow.
    #[serde(flatten)]
    pub metrics: MetricsOver,
}

/// A repetition.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// Its number, from 1.
    pub repetition: usize,
    /// Its seed.
    pub seed: u64,
    /// Jain's index of the TCP flows over the time that all of them were alive.
    pub jain: Option<f64>,
    /// The (first) bottleneck.
    pub queue: Queue,
    /// All bottlenecks towards the receivers, in order; left out where there is but one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<Queue>,
    /// The queue of the reverse link; left out where no flow has `direction = "reverse"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverse_queue: Option<Queue>,
    /// Flows that the scenario names, in its order.
    pub flows: Vec<Flow>,
    /// Sources of flows, in scenario order.
    pub sources: Vec<Source>,
    /// Deviations of the host from the scenario.
    pub approximations: Vec<String>,
    /// Trustworthiness of a run in real time; `null` for a run in virtual time.
    pub real_time: Option<RealTime>,
}

/// Accuracy of a run in real time.
#[derive(Clone, Debug, Serialize)]
pub struct RealTime {
    /// Mean lateness of packets at the bottleneck or the path, microseconds.
    pub lateness_mean_us: f64,
    /// 99th percentile.
    pub lateness_p99_us: f64,
    /// 99.9th percentile.
    pub lateness_p999_us: f64,
    /// Largest.
    pub lateness_max_us: f64,
}

impl RealTime {
    fn new(of: &knee_model::RealTime) -> Self {
        let us = |ns: Ns| ns as f64 / NS_PER_US as f64;
        let lateness = &of.lateness;
        Self {
            lateness_mean_us: us(lateness.mean_ns),
            lateness_p99_us: us(lateness.p99_ns),
            lateness_p999_us: us(lateness.p999_ns),
            lateness_max_us: us(lateness.max_ns),
        }
    }
}

/// A queue and its link in a repetition.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Queue {
    /// Utilisation, 0..=1.
    pub utilisation: Option<f64>,
    /// Queueing delay of the packets that left.
    pub delay: Option<DelayMs>,
    /// Packets that left.
    pub departed_pkts: u64,
    /// Bytes that left.
    pub departed_bytes: u64,
    /// Packets dropped: it was full, or its discipline chose them.
    pub dropped_pkts: u64,
    /// Packets that left with a congestion mark.
    pub marked_pkts: u64,
    /// Largest number of packets held.
    pub max_held_pkts: u32,
}

/// A flow in a repetition.
#[derive(Clone, Debug, Serialize)]
pub struct Flow {
    /// Name.
    pub name: String,
    /// Algorithm, or `udp`, `probe`.
    pub kind: String,
    /// Start of the flow, seconds.
    pub start_s: f64,
    /// Time at which it was told to stop, seconds.
    pub stop_s: f64,
    /// Goodput over its life, bit/s.
    pub goodput_bps: Option<f64>,
    /// RTT samples that the algorithm was given.
    pub rtt: Option<DelayMs>,
    /// One-way delays, of a probe.
    pub one_way_delay: Option<DelayMs>,
    /// Fraction of its rounds whose delay lay in region A.
    pub rounds_in_region_a: Option<f64>,
    /// Reductions of its window.
    pub backoffs: Backoffs,
    /// Everything counted.
    pub counters: FlowCounters,
    /// Names of `observe_0` ... in the tables.
    pub observes: Vec<&'static str>,
    /// Transfers that were completed.
    pub transfers: Vec<Transfer>,
    /// Transfers that were written, but not complete when the run ended.
    pub unfinished: Vec<Unfinished>,
    /// Duration of transfers; `None` without any.
    pub completion: Option<Completion>,
    /// Time during which a player of transfers one after the other stalled, seconds.
    pub stalled_s: Option<f64>,
}

/// The flows that were drawn from a source, in a repetition. The tables have each of them.
#[derive(Clone, Debug, Serialize)]
pub struct Source {
    /// Name.
    pub name: String,
    /// Algorithm.
    pub kind: String,
    /// Number of flows.
    pub connections: usize,
    /// Goodput of all together over the run, bit/s.
    pub goodput_bps: Option<f64>,
    /// Duration of transfers; `None` without any.
    pub completion: Option<Completion>,
    /// The same by size, those classes that have any.
    pub by_size: Vec<OfSize>,
}

/// Transfers of a class of sizes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OfSize {
    /// Smallest size of the class.
    pub least_bytes: u64,
    /// Sizes of the class are smaller than this; `None`: no limit.
    pub below_bytes: Option<u64>,
    /// Duration of the transfers.
    pub completion: Completion,
}

/// A transfer that was not complete when the run ended.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Unfinished {
    /// Time at which the application wrote it, seconds.
    pub start_s: f64,
    /// Its size.
    pub bytes: u64,
}

/// A completed transfer.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Transfer {
    /// Time at which the application wrote it, seconds.
    pub start_s: f64,
    /// Time until the receiver had all of it, seconds.
    pub duration_s: f64,
    /// Its size.
    pub bytes: u64,
}

impl Summary {
    /// The summary of `records`, the repetitions of `spec` in order.
    pub fn new(provenance: &Provenance<'_>, spec: &RunSpec, records: &[RunRecord]) -> Self {
        let runs: Vec<Run> =
            (1..).zip(records).map(|(repetition, r)| Run::new(repetition, spec, r)).collect();
        let text = provenance.scenario_text;
        let of_host = provenance.made_with.iter().find(|(name, _)| name == "kernel");
        let of_host = of_host.map(|(_, release)| release.clone());
        Self {
            knee_version: env!("CARGO_PKG_VERSION"),
            knee_commit: provenance.commit.map(str::to_owned),
            host: provenance.host.to_owned(),
            made_with: provenance.made_with.iter().cloned().collect(),
            kernel: of_host.unwrap_or_else(|| {
                rustix::system::uname().release().to_string_lossy().into_owned()
            }),
            scenario: Scenario {
                name: provenance.scenario_name.to_owned(),
                sha256: digest::of_bytes(text),
                text: text.to_owned(),
            },
            seed: records.first().map_or(spec.seed, |r| r.seed),
            repetitions: records.len(),
            duration_s: seconds(spec.duration_ns),
            noise_us: (spec.path.noise_ns > 0)
                .then_some(spec.path.noise_ns as f64 / NS_PER_US as f64),
            bin_s: seconds(spec.record.bin_ns),
            over_repetitions: OverRepetitions::new(spec, records, &runs),
            runs,
        }
    }
}

impl Run {
    fn new(repetition: usize, spec: &RunSpec, record: &RunRecord) -> Self {
        let m = Metrics::new(spec, record);
        let tcp = m.tcp_flows();
        let together = m.common_life_s(&tcp);
        let mut hops: Vec<Queue> = m.queues().iter().map(Queue::new).collect();
        let reverse_queue = record.reverse_queue.as_ref().and_then(|_| hops.pop());
        let queue = hops[0];
        if hops.len() == 1 {
            hops.clear();
        }
        Self {
            repetition,
            seed: record.seed,
            jain: m.jain(&tcp, together.start, together.end).filter(|_| tcp.len() > 1),
            queue,
            hops,
            reverse_queue,
            flows: (0..record.flows.len())
                .filter(|flow| is_named(&record.flows[*flow]))
                .map(|flow| Flow::new(&m, flow))
                .collect(),
            sources: m.sources().into_iter().map(|name| Source::new(&m, name)).collect(),
            approximations: record.approximations.clone(),
            real_time: record.real_time.as_ref().map(RealTime::new),
        }
    }
}

impl Queue {
    fn new(at: &QueueAt<'_>) -> Self {
        let queue = at.record;
        Self {
            utilisation: at.metrics.utilisation(),
            delay: at.metrics.queueing_delay(),
            departed_pkts: queue.departed_pkts,
            departed_bytes: queue.departed_bytes,
            dropped_pkts: queue.dropped_pkts,
            marked_pkts: queue.marked_pkts,
            max_held_pkts: queue.max_pkts,
        }
    }
}

impl Flow {
    fn new(m: &Metrics<'_>, index: usize) -> Self {
        let flow = &m.record().flows[index];
        let transfer = |t: &knee_model::Transfer| Transfer {
            start_s: seconds(t.start_ns),
            duration_s: seconds(t.end_ns - t.start_ns),
            bytes: t.bytes,
        };
        let unfinished = |t: &knee_model::Unfinished| Unfinished {
            start_s: seconds(t.start_ns),
            bytes: t.bytes,
        };
        Self {
            name: flow.name.clone(),
            kind: flow.kind.clone(),
            start_s: seconds(flow.start_ns),
            stop_s: seconds(flow.stop_ns),
            goodput_bps: m.lifetime_goodput_bps(index),
            rtt: DelayMs::of(&flow.rtt),
            one_way_delay: DelayMs::of(&flow.one_way_delay),
            rounds_in_region_a: m.rounds_in_region_a(&[index]),
            backoffs: m.backoffs(&[index]),
            counters: flow.counters,
            observes: flow.observes.into_iter().filter(|name| !name.is_empty()).collect(),
            transfers: flow.transfers.iter().map(transfer).collect(),
            unfinished: flow.unfinished.iter().map(unfinished).collect(),
            completion: m.completion(&[index], &ALL_SIZES),
            stalled_s: m.stalled_s(index),
        }
    }
}

/// Transfers of any size.
const ALL_SIZES: Range<u64> = 0..u64::MAX;

impl Source {
    fn new(m: &Metrics<'_>, name: &str) -> Self {
        let flows = m.flows_from(name);
        let records = || flows.iter().map(|i| &m.record().flows[*i]);
        let bytes: u64 = records().map(|f| f.counters.delivered_bytes).sum();
        let duration_s = seconds(m.record().duration_ns);
        let of_size = |(_, sizes): (&str, Range<u64>)| {
            Some(OfSize {
                least_bytes: sizes.start,
                below_bytes: Some(sizes.end).filter(|end| *end < u64::MAX),
                completion: m.completion(&flows, &sizes)?,
            })
        };
        Self {
            name: name.to_owned(),
            kind: records().next().map_or_else(String::new, |f| f.kind.clone()),
            connections: flows.len(),
            goodput_bps: (duration_s > 0.0).then(|| bytes as f64 * 8.0 / duration_s),
            completion: m.completion(&flows, &ALL_SIZES),
            by_size: SIZE_CLASSES.into_iter().filter_map(of_size).collect(),
        }
    }
}

impl OverRepetitions {
    fn new(spec: &RunSpec, records: &[RunRecord], runs: &[Run]) -> Self {
        let metrics = || records.iter().map(|record| Metrics::new(spec, record));
        let scopes: Vec<Scope<'_>> = metrics().map(|run| Scope::of_run(run, None)).collect();
        let mut over = MetricsOver::new(Subject::Queue, &scopes);
        over.0.extend(MetricsOver::new(Subject::Run, &scopes).0);
        let named = records.first().map_or(&[][..], |record| &record.flows);
        let named = named.iter().enumerate().filter(|(_, flow)| is_named(flow));
        let flow = |(index, flow): (usize, &FlowRecord)| {
            let has = metrics().filter(|run| index < run.record().flows.len());
            let scopes: Vec<Scope<'_>> = has.map(|run| Scope::of_flow(run, index, None)).collect();
            let metrics = MetricsOver::new(Subject::Flow, &scopes);
            FlowOverRepetitions { name: flow.name.clone(), metrics }
        };
        Self { metrics: over, flows: named.map(flow).collect(), sources: sources_over(runs) }
    }
}

fn sources_over(runs: &[Run]) -> Vec<SourceOverRepetitions> {
    // A source that drew nothing in one repetition may have in another.
    let mut names: Vec<&str> = Vec::new();
    for source in runs.iter().flat_map(|r| &r.sources) {
        if !names.contains(&source.name.as_str()) {
            names.push(&source.name);
        }
    }
    let of_name = |name: &str| {
        let over = |of: fn(&Source) -> Option<f64>| {
            let all = runs.iter().flat_map(|r| &r.sources).filter(|s| s.name == name);
            Percentiles::of(all.filter_map(of))
        };
        SourceOverRepetitions {
            name: name.to_owned(),
            goodput_bps: over(|s| s.goodput_bps),
            completion_p50_s: over(|s| s.completion?.p50_s),
            completion_p95_s: over(|s| s.completion?.p95_s),
            completion_p99_s: over(|s| s.completion?.p99_s),
            unfinished: over(|s| Some(s.completion?.unfinished as f64)),
        }
    };
    names.into_iter().map(of_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_fixtures::{self as testing, MS};
    use knee_model::{NS_PER_S, Transfer as Completed, Unfinished as Incomplete};
    use serde_json::{Value, json};

    fn runs() -> Vec<RunRecord> {
        let run = |seed, bytes: u64| {
            let a = testing::flow("a", "chd", &[bytes, bytes]);
            let b = testing::flow("b", "newreno", &[0, bytes]);
            let probe = testing::flow("probe", "probe", &[0, 0]);
            let mut r = testing::record(2.0, 1.0, vec![a, b, probe]);
            r.seed = seed;
            r.flows[1].start_ns = NS_PER_S;
            r.flows[0].rtt.add(40 * MS);
            r.flows[0].transfers.push(Completed { start_ns: 0, end_ns: NS_PER_S / 2, bytes: 9 });
            r.flows[2].one_way_delay.add(20 * MS);
            // Two flows from a source: sizes of two classes, and one that is not complete.
            for (n, bytes) in [(1, 9_999), (2, 10_000)] {
                let mut short = testing::flow(&format!("web#{n}"), "chd", &[bytes, 0]);
                short.source = "web".to_owned();
                short.stop_ns = r.duration_ns;
                let end_ns = n * NS_PER_S / 10;
                short.transfers.push(Completed { start_ns: 0, end_ns, bytes });
                short.unfinished.push(Incomplete { start_ns: NS_PER_S, bytes: 500 });
                r.flows.push(short);
            }
            r.queues[0].departed_bytes = 125_000;
            r
        };
        vec![run(7, 1000), run(8, 2000), run(9, 3000)]
    }

    fn summary() -> Value {
        let runs = runs();
        let provenance = Provenance {
            commit: None,
            host: "sim",
            made_with: &[],
            scenario_name: "pair",
            scenario_text: "abc",
        };
        let summary = Summary::new(&provenance, &testing::spec(&runs[0]), &runs);
        serde_json::to_value(summary).unwrap()
    }

    #[test]
    fn figures_are_right() {
        let s = summary();
        assert_eq!((&s["seed"], &s["repetitions"]), (&json!(7), &json!(3)));
        // FIPS 180-2, appendix B.1.
        assert_eq!(
            s["scenario"]["sha256"],
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(s["runs"][1]["queue"]["utilisation"], 0.5);
        assert_eq!(s["runs"][1]["seed"], 8);
        // Both alive from 1 s on, with equal goodput.
        assert_eq!(s["runs"][0]["jain"], 1.0);
        let a = &s["runs"][0]["flows"][0];
        assert_eq!((&a["goodput_bps"], &a["rtt"]["mean_ms"]), (&json!(8000.0), &json!(40.0)));
        assert_eq!(a["transfers"], json!([{ "start_s": 0.0, "duration_s": 0.5, "bytes": 9 }]));
        assert_eq!(a["observes"], json!(["h_us", "qmax_us", "shadow_pkts", "region_b"]));
        assert_eq!(a["one_way_delay"], Value::Null);
        let over = &s["over_repetitions"];
        assert_eq!(over["flows"][0]["goodput_bps"]["p50"], 16_000.0);
        assert_eq!(over["flows"][0]["goodput_bps"]["p20"], 11_200.0);
        assert!(
            (over["flows"][2]["one_way_delay_p50_ms"]["p80"].as_f64().unwrap() - 20.0).abs() < 0.1
        );
        assert_eq!(over["queueing_delay_mean_ms"], Value::Null);
        // Flows of sources are summed up.
        assert_eq!(s["runs"][0]["flows"].as_array().unwrap().len(), 3);
        let web = &s["runs"][0]["sources"][0];
        assert_eq!((&web["name"], &web["connections"]), (&json!("web"), &json!(2)));
        assert_eq!(web["goodput_bps"], 19_999.0 * 8.0 / 2.0);
        assert_eq!(
            (&web["completion"]["completed"], &web["completion"]["unfinished"]),
            (&json!(2), &json!(2))
        );
        assert_eq!(web["completion"]["p50_s"], 0.15000000000000002);
        let classes = web["by_size"].as_array().unwrap();
        assert_eq!(classes.len(), 2);
        assert_eq!(classes[0]["completion"]["p50_s"], 0.1);
        assert_eq!(classes[0]["completion"]["unfinished"], 2);
        assert_eq!(
            (&classes[1]["least_bytes"], &classes[1]["below_bytes"]),
            (&json!(10_000), &json!(100_000))
        );
        assert_eq!(over["sources"][0]["completion_p50_s"]["p80"], 0.15000000000000002);
        assert_eq!(over["sources"][0]["unfinished"]["p50"], 2.0);
    }

    #[test]
    fn every_field_is_documented() {
        fn names(value: &Value, into: &mut Vec<String>) {
            match value {
                Value::Object(fields) => fields.iter().for_each(|(name, value)| {
                    into.push(name.clone());
                    names(value, into);
                }),
                Value::Array(items) => items.iter().for_each(|v| names(v, into)),
                _ => {}
            }
        }
        let mut runs = runs();
        runs[0].queues[0].delay.add(MS);
        let provenance = Provenance {
            commit: None,
            host: "sim",
            made_with: &[],
            scenario_name: "",
            scenario_text: "",
        };
        let summary = Summary::new(&provenance, &testing::spec(&runs[0]), &runs);
        let mut all = Vec::new();
        names(&serde_json::to_value(summary).unwrap(), &mut all);
        let docs = include_str!("../../../docs/reference/results.md");
        let (_, docs) = docs.split_once("## `summary.json`").unwrap();
        let docs = [docs, include_str!("../../../docs/reference/metrics.md")].concat();
        let missing: Vec<_> = all.iter().filter(|n| !docs.contains(&format!("`{n}`"))).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
