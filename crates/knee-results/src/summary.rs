//! `summary.json`: the scenario and the main results. `docs/reference/results.md` describes every field.
//!
//! It depends on the scenario, the seed, Knee and the kernel, and on nothing else: no time of day,
//! no path, no duration of the computation.

use crate::metrics::{
    Completion, DelayMs, Metric, Metrics, Percentiles, QueueAt, SIZE_CLASSES, Scope, Subject,
    in_summary, is_named,
};
use knee_model::{
    FlowCounters, FlowRecord, Lateness, NS_PER_US, Ns, RunRecord, RunSpec, Transfer, Unfinished,
    digest, seconds,
};
use serde_json::{Map, Value, json};
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

/// Transfers of any size.
const ALL_SIZES: Range<u64> = 0..u64::MAX;

/// All of `summary.json`, of `records`, the repetitions of `spec` in order.
pub fn summary(provenance: &Provenance<'_>, spec: &RunSpec, records: &[RunRecord]) -> Value {
    let runs: Vec<Metrics<'_>> = records.iter().map(|r| Metrics::new(spec, r)).collect();
    let made_with: BTreeMap<_, _> = provenance.made_with.iter().cloned().collect();
    let this_machine = || rustix::system::uname().release().to_string_lossy().into_owned();
    let noise_us = spec.path.noise_ns as f64 / NS_PER_US as f64;
    let all = json!({
        "knee_version": env!("CARGO_PKG_VERSION"),
        "knee_commit": provenance.commit,
        "host": provenance.host,
        "kernel": made_with.get("kernel").cloned().unwrap_or_else(this_machine),
        "made_with": Some(&made_with).filter(|parts| !parts.is_empty()),
        "scenario": {
            "name": provenance.scenario_name,
            "sha256": digest::of_bytes(provenance.scenario_text),
            "text": provenance.scenario_text,
        },
        "seed": records.first().map_or(spec.seed, |r| r.seed),
        "repetitions": records.len(),
        "duration_s": seconds(spec.duration_ns),
        "noise_us": (noise_us > 0.0).then_some(noise_us),
        "bin_s": seconds(spec.record.bin_ns),
        "over_repetitions": over_repetitions(&runs),
        "runs": runs.iter().zip(1..).map(|(m, number)| run(m, number)).collect::<Vec<_>>(),
    });
    without_nulls(all, &["made_with", "noise_us"])
}

/// Leaves out these keys where they are `null`.
fn without_nulls(mut object: Value, keys: &[&str]) -> Value {
    for key in keys {
        if object[key].is_null() {
            object.as_object_mut().map(|fields| fields.shift_remove(*key));
        }
    }
    object
}

/// A repetition.
fn run(m: &Metrics<'_>, repetition: usize) -> Value {
    let record = m.record();
    let tcp = m.tcp_flows();
    let together = m.common_life_s(&tcp);
    let mut hops: Vec<Value> = m.queues().iter().map(queue).collect();
    let reverse_queue = record.reverse_queue.as_ref().and_then(|_| hops.pop());
    let named = (0..record.flows.len()).filter(|index| is_named(&record.flows[*index]));
    let run = json!({
        "repetition": repetition,
        "seed": record.seed,
        "jain": m.jain(&tcp, together.start, together.end).filter(|_| tcp.len() > 1),
        "queue": hops[0],
        "hops": Some(&hops).filter(|hops| hops.len() > 1),
        "reverse_queue": reverse_queue,
        "flows": named.map(|index| flow(m, index)).collect::<Vec<_>>(),
        "sources": m.sources().into_iter().map(|name| source(m, name)).collect::<Vec<_>>(),
        "approximations": record.approximations,
        "real_time": record.real_time.as_ref().map(|real_time| lateness(&real_time.lateness)),
    });
    without_nulls(run, &["hops", "reverse_queue"])
}

fn lateness(lateness: &Lateness) -> Value {
    let us = |ns: Ns| ns as f64 / NS_PER_US as f64;
    json!({
        "lateness_mean_us": us(lateness.mean_ns),
        "lateness_p99_us": us(lateness.p99_ns),
        "lateness_p999_us": us(lateness.p999_ns),
        "lateness_max_us": us(lateness.max_ns),
    })
}

/// A queue and its link in a repetition.
fn queue(at: &QueueAt<'_>) -> Value {
    json!({
        "utilisation": at.metrics.utilisation(),
        "delay": at.metrics.queueing_delay(),
        "departed_pkts": at.record.departed_pkts,
        "departed_bytes": at.record.departed_bytes,
        "dropped_pkts": at.record.dropped_pkts,
        "marked_pkts": at.record.marked_pkts,
        "max_held_pkts": at.record.max_pkts,
    })
}

/// A flow in a repetition.
fn flow(m: &Metrics<'_>, index: usize) -> Value {
    let flow = &m.record().flows[index];
    let transfer = |t: &Transfer| {
        let (start_s, duration_s) = (seconds(t.start_ns), seconds(t.end_ns - t.start_ns));
        json!({ "start_s": start_s, "duration_s": duration_s, "bytes": t.bytes })
    };
    let unfinished = |t: &Unfinished| json!({ "start_s": seconds(t.start_ns), "bytes": t.bytes });
    json!({
        "name": flow.name,
        "kind": flow.kind,
        "start_s": seconds(flow.start_ns),
        "stop_s": seconds(flow.stop_ns),
        "goodput_bps": m.lifetime_goodput_bps(index),
        "rtt": DelayMs::of(&flow.rtt),
        "one_way_delay": DelayMs::of(&flow.one_way_delay),
        "rounds_in_region_a": m.rounds_in_region_a(&[index]),
        "backoffs": backoffs(&flow.counters),
        "counters": flow.counters,
        "observes": flow.observes.iter().filter(|name| !name.is_empty()).collect::<Vec<_>>(),
        "transfers": flow.transfers.iter().map(transfer).collect::<Vec<_>>(),
        "unfinished": flow.unfinished.iter().map(unfinished).collect::<Vec<_>>(),
        "completion": m.completion(&[index], &ALL_SIZES),
        "stalled_s": m.stalled_s(index),
    })
}

/// Reductions of a flow's window, by cause and region. An algorithm without regions judges every loss to
/// be in region A.
fn backoffs(c: &FlowCounters) -> Value {
    json!({
        "delay_region_a": c.delay_backoffs_region_a,
        "delay_region_b": c.delay_backoffs_region_b,
        "fast_recoveries": c.loss_events.saturating_sub(c.losses_tolerated),
        "losses_tolerated": c.losses_tolerated,
        "timeouts": c.timeouts,
        "losses_region_a": (c.loss_events + c.timeouts).saturating_sub(c.losses_region_b),
        "losses_region_b": c.losses_region_b,
        "undos": c.undos,
    })
}

/// The flows that were drawn from a source, in a repetition. The tables have each of them.
fn source(m: &Metrics<'_>, name: &str) -> Value {
    let flows = m.flows_from(name);
    let by_size = SIZE_CLASSES.into_iter().filter_map(|(_, sizes)| {
        Some(json!({
            "least_bytes": sizes.start,
            "below_bytes": Some(sizes.end).filter(|end| *end < u64::MAX),
            "completion": m.completion(&flows, &sizes)?,
        }))
    });
    json!({
        "name": name,
        "kind": flows.first().map_or("", |i| &m.record().flows[*i].kind),
        "connections": flows.len(),
        "goodput_bps": source_goodput_bps(m, &flows),
        "completion": m.completion(&flows, &ALL_SIZES),
        "by_size": by_size.collect::<Vec<_>>(),
    })
}

/// Goodput of these flows together over the run, bit/s.
fn source_goodput_bps(m: &Metrics<'_>, flows: &[usize]) -> Option<f64> {
    let bytes: u64 = flows.iter().map(|i| m.record().flows[*i].counters.delivered_bytes).sum();
    let duration_s = seconds(m.record().duration_ns);
    (duration_s > 0.0).then(|| bytes as f64 * 8.0 / duration_s)
}

/// 20th, 50th and 80th percentiles of metrics over the repetitions in which they are defined, by name
/// and in the order of the table; `null` for a metric that is defined in none.
fn metrics_over(subject: Subject, scopes: &[Scope<'_>]) -> Map<String, Value> {
    let over = |metric: &Metric| {
        let values = scopes.iter().filter_map(|scope| metric.value(scope));
        (metric.name.to_owned(), json!(Percentiles::of(values)))
    };
    in_summary(subject).map(over).collect()
}

/// Percentiles over the repetitions: metrics of the first bottleneck and of the run, of each flow that
/// the scenario names, and of each source of flows.
fn over_repetitions(runs: &[Metrics<'_>]) -> Value {
    let scopes: Vec<Scope<'_>> = runs.iter().map(|run| Scope::of_run(*run, None)).collect();
    let mut over = metrics_over(Subject::Queue, &scopes);
    over.extend(metrics_over(Subject::Run, &scopes));
    let first = runs.first().map_or(&[][..], |run| &run.record().flows);
    let flow = |(index, flow): (usize, &FlowRecord)| {
        let has = runs.iter().filter(|run| index < run.record().flows.len());
        let scopes: Vec<Scope<'_>> = has.map(|run| Scope::of_flow(*run, index, None)).collect();
        let mut over = Map::from_iter([("name".to_owned(), json!(flow.name))]);
        over.extend(metrics_over(Subject::Flow, &scopes));
        Value::Object(over)
    };
    let flows = first.iter().enumerate().filter(|(_, flow)| is_named(flow)).map(flow);
    over.insert("flows".to_owned(), flows.collect());
    // A source that drew nothing in one repetition may have in another.
    let mut sources: Vec<&str> = Vec::new();
    for name in runs.iter().flat_map(Metrics::sources) {
        if !sources.contains(&name) {
            sources.push(name);
        }
    }
    over.insert("sources".to_owned(), sources.iter().map(|name| source_over(runs, name)).collect());
    Value::Object(over)
}

/// A source of flows, over the repetitions.
fn source_over(runs: &[Metrics<'_>], name: &str) -> Value {
    let over = |of: &dyn Fn(&Metrics<'_>, &[usize]) -> Option<f64>| {
        let has = runs.iter().map(|m| (m, m.flows_from(name))).filter(|(_, f)| !f.is_empty());
        Percentiles::of(has.filter_map(|(m, flows)| of(m, &flows)))
    };
    let completion = |of: fn(&Completion) -> Option<f64>| {
        over(&|m, flows| of(&m.completion(flows, &ALL_SIZES)?))
    };
    json!({
        "name": name,
        "goodput_bps": over(&source_goodput_bps),
        "completion_p50_s": completion(|c| c.p50_s),
        "completion_p95_s": completion(|c| c.p95_s),
        "completion_p99_s": completion(|c| c.p99_s),
        "unfinished": completion(|c| Some(c.unfinished as f64)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_fixtures::{self as testing, MS};
    use knee_model::NS_PER_S;

    fn runs() -> Vec<RunRecord> {
        let run = |seed, bytes: u64| {
            let a = testing::flow("a", "chd", &[bytes, bytes]);
            let b = testing::flow("b", "newreno", &[0, bytes]);
            let probe = testing::flow("probe", "probe", &[0, 0]);
            let mut r = testing::record(2.0, 1.0, vec![a, b, probe]);
            r.seed = seed;
            r.flows[1].start_ns = NS_PER_S;
            r.flows[0].rtt.add(40 * MS);
            r.flows[0].transfers.push(Transfer { start_ns: 0, end_ns: NS_PER_S / 2, bytes: 9 });
            r.flows[2].one_way_delay.add(20 * MS);
            // Two flows from a source: sizes of two classes, and one that is not complete.
            for (n, bytes) in [(1, 9_999), (2, 10_000)] {
                let mut short = testing::flow(&format!("web#{n}"), "chd", &[bytes, 0]);
                short.source = "web".to_owned();
                short.stop_ns = r.duration_ns;
                let end_ns = n * NS_PER_S / 10;
                short.transfers.push(Transfer { start_ns: 0, end_ns, bytes });
                short.unfinished.push(Unfinished { start_ns: NS_PER_S, bytes: 500 });
                r.flows.push(short);
            }
            r.queues[0].departed_bytes = 125_000;
            r
        };
        vec![run(7, 1000), run(8, 2000), run(9, 3000)]
    }

    fn of(runs: &[RunRecord]) -> Value {
        let provenance = Provenance {
            commit: None,
            host: "sim",
            made_with: &[],
            scenario_name: "pair",
            scenario_text: "abc",
        };
        summary(&provenance, &testing::spec(&runs[0]), runs)
    }

    #[test]
    fn figures_are_right() {
        let s = of(&runs());
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
    fn reductions_have_a_cause_and_a_region() {
        let counters = FlowCounters {
            loss_events: 7,
            losses_tolerated: 2,
            losses_region_b: 4,
            timeouts: 1,
            delay_backoffs_region_a: 11,
            delay_backoffs_region_b: 12,
            ..FlowCounters::default()
        };
        let b = backoffs(&counters);
        assert_eq!((&b["fast_recoveries"], &b["losses_tolerated"]), (&json!(5), &json!(2)));
        assert_eq!((&b["losses_region_a"], &b["losses_region_b"]), (&json!(4), &json!(4)));
        assert_eq!((&b["delay_region_a"], &b["delay_region_b"]), (&json!(11), &json!(12)));
        assert_eq!((&b["timeouts"], &b["undos"]), (&json!(1), &json!(0)));
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
        let mut all = Vec::new();
        names(&of(&runs), &mut all);
        let docs = include_str!("../../../docs/reference/results.md");
        let (_, docs) = docs.split_once("## `summary.json`").unwrap();
        let docs = [docs, include_str!("../../../docs/reference/metrics.md")].concat();
        let missing: Vec<_> = all.iter().filter(|n| !docs.contains(&format!("`{n}`"))).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
