//! Output of `knee run`: tables for terminal and report, charts over time.

use crate::{
    chart::{Axis, Chart, Series, Style},
    report::{Report, Section},
    table::Table,
};
use knee_cc::Params;
use knee_cc::SSTHRESH_INFINITE;
use knee_model::{
    Aqm, BurstLoss, FlowKind, FlowRecord, FlowSample, FlowSpec, NS_PER_MS, NS_PER_S, Ns, PathSpec,
    QueueBin, QueueLimit, Recovery, Route, RunRecord, RunSpec, TcpSpec, Transport, Varying,
    Workload, milliseconds, seconds,
};
use knee_results::{
    caveats::{approximations, lateness},
    metrics::{
        Completion, Metric, Metrics, Percentiles, Place, QueueAt, SIZE_CLASSES, Scope, Shown,
        Subject, is_named, is_tcp, percentile, shown_in,
    },
};
use std::{collections::BTreeMap, ops::Range};

/// Observed values that are an algorithm's own idea of the queueing delay.
const QUEUEING_DELAY: [&str; 2] = ["q_us", "h_us"];
/// The observed value that is a shadow window.
const SHADOW_WINDOW: &str = "shadow_pkts";
/// Lines that a chart can carry.
const MAX_LINES: usize = 8;
/// Points that a line needs at most.
const MAX_POINTS: usize = 1000;

/// The report on `records`, repetitions of `spec`: charts of the first, percentiles of all.
pub fn run_report(title: &str, spec: &RunSpec, records: &[RunRecord]) -> Report {
    let path = &spec.path;
    let first = &path.hops[0];
    let ms = |ns: Ns| format!("{} ms", trim(milliseconds(ns)));
    let managed = |limit, aqm: Option<&Aqm>| {
        let (discipline, marks) = match aqm {
            None => ("drop-tail", ""),
            Some(aqm) => (aqm.discipline.title(), if aqm.ecn { ", marking" } else { "" }),
        };
        format!("{}, {discipline}{marks}", shown_limit(limit))
    };
    let meta = [
        ("Bottleneck", shown_rate(first.rate_bps, first.rate_varies.as_ref())),
        ("Queue", managed(first.queue, first.aqm.as_ref())),
        (
            "Delay, forward and reverse",
            format!(
                "{}{} + {}{}",
                ms(path.delay_forward_ns),
                steps(&path.delay_forward_steps, ms),
                ms(path.delay_reverse_ns),
                steps(&path.delay_reverse_steps, ms)
            ),
        ),
        (
            "Random loss, forward and reverse",
            format!(
                "{} and {}",
                shown_loss(first.loss, first.bursts.as_ref()),
                shown_loss(path.loss_reverse, path.bursts_reverse.as_ref())
            ),
        ),
        ("Duration", format!("{} s", trim(seconds(spec.duration_ns)))),
        ("Repetitions", records.len().to_string()),
        ("Seed", records.first().map_or(spec.seed, |r| r.seed).to_string()),
    ];
    let mut meta = meta.map(|(name, value)| (name.to_owned(), value)).to_vec();
    for (hop, number) in path.hops.iter().zip(1..).skip(1) {
        let rate = shown_rate(hop.rate_bps, hop.rate_varies.as_ref());
        let queue = managed(hop.queue, hop.aqm.as_ref());
        let loss = shown_loss(hop.loss, hop.bursts.as_ref());
        let delay = ms(hop.delay_ns);
        let value = format!("{rate}; {queue}; {delay} behind hop {}; loss {loss}", number - 1);
        meta.push((format!("Hop {number}"), value));
    }
    if path.noise_ns > 0 {
        let most = ms(path.noise_ns);
        meta.push(("Noise".to_owned(), format!("0 to {most} for each packet on each access link")));
    }
    if let Some(reorder) = &path.reorder {
        let late = ms(reorder.extra_delay_ns);
        meta.push((
            "Reordering".to_owned(),
            format!("{} of all packets {late} late", reorder.probability),
        ));
    }
    if let Some(link) = &path.reverse {
        let rate = shown_rate(link.rate_bps, link.rate_varies.as_ref());
        meta.push(("Reverse link".to_owned(), format!("{rate}, {}", managed(link.queue, None))));
    }
    meta.extend(lateness(records).map(|text| ("Lateness".to_owned(), text)));
    let results = Section { tables: run_tables(spec, records), ..Section::new("Results") };
    let mut sections = vec![results];
    let runs: Vec<Metrics<'_>> = records.iter().map(|r| Metrics::new(spec, r)).collect();
    let charts = completion_charts(&runs);
    if !charts.is_empty() {
        let paragraphs = match records.len() {
            1 => Vec::new(),
            n => vec![format!("All {n} repetitions together.")],
        };
        sections.push(Section { paragraphs, charts, ..Section::new("Completion times") });
    }
    if let Some(first) = records.first() {
        let charts = run_charts(spec, first);
        let which = match records.len() {
            1 => None,
            n => Some(format!("The first of {n} repetitions, seed {}.", first.seed)),
        };
        if !charts.is_empty() {
            let paragraphs = which.into_iter().collect();
            sections.push(Section { paragraphs, charts, ..Section::new("Over time") });
        }
    }
    sections.push(Section {
        tables: vec![set_up(spec)],
        paragraphs: approximations(records),
        ..Section::new("Set-up")
    });
    Report { title: title.to_owned(), meta, sections, ..Report::default() }
}

/// A queue of several in words.
fn shown_place(queue: &QueueAt<'_>) -> String {
    match queue.name.as_str() {
        "reverse" => "reverse link".to_owned(),
        number => format!("hop {number}"),
    }
}

fn shown_limit(limit: QueueLimit) -> String {
    match limit {
        QueueLimit::Packets(n) => format!("{n} packets"),
        QueueLimit::Bytes(n) => format!("{n} bytes"),
        QueueLimit::BytesAndOne(n) => format!("{n} bytes and one packet"),
    }
}

/// A rate in words: at the start, and its changes.
fn shown_rate(bps: u64, varies: Option<&Varying>) -> String {
    let mbit = |bps: u64| format!("{} Mbit/s", trim(bps as f64 / 1e6));
    match varies {
        None => mbit(bps),
        Some(Varying::Steps(later)) => format!("{}{}", mbit(bps), steps(later, mbit)),
        Some(Varying::Trace(trace)) => {
            let period_s = seconds(trace.period_ns());
            format!("delivery trace of {} s, mean {}", trim(period_s), mbit(bps))
        }
    }
}

/// Later values in words.
fn steps(later: &[(Ns, u64)], show: impl Fn(u64) -> String) -> String {
    let step =
        |(at_ns, value): &(Ns, u64)| format!(", from {} s {}", trim(seconds(*at_ns)), show(*value));
    later.iter().map(step).collect()
}

/// Losses in words: independent ones, or those in bursts.
fn shown_loss(independent: f64, bursts: Option<&BurstLoss>) -> String {
    let Some(b) = bursts else { return independent.to_string() };
    format!(
        "{} in bursts (good to bad {}, bad to good {}, loss {} and {})",
        trim(b.mean_loss()),
        trim(b.good_to_bad),
        trim(b.bad_to_good),
        b.loss_good,
        b.loss_bad
    )
}

/// The tables of the report as text for a terminal `width` characters wide, or as wide as needed.
pub fn run_text(spec: &RunSpec, records: &[RunRecord], width: Option<u16>) -> String {
    let tables = run_tables(spec, records);
    tables.iter().map(|t| t.to_text(width)).collect::<Vec<_>>().join("\n")
}

/// Number with no more digits than needed.
fn trim(value: f64) -> String {
    format!("{}", (value * 1e6).round() / 1e6)
}

/// A measure over repetitions: its median, with 20th and 80th percentile where they differ.
fn spread(values: impl Iterator<Item = Option<f64>>, digits: usize) -> String {
    let Some(p) = Percentiles::of(values.flatten()) else { return "–".to_owned() };
    let [low, median, high] = [p.p20, p.p50, p.p80].map(|v| format!("{v:.digits$}"));
    if low == high { median } else { format!("{median} ({low}–{high})") }
}

/// The metrics of flows that a table shows: a row for each flow that the scenario names and that is
/// `wanted`, which begins with the first `heads.len()` of its name and algorithm.
fn flow_table(
    caption: String,
    runs: &[Metrics<'_>],
    place: Place,
    heads: &[&str],
    wanted: fn(&FlowRecord) -> bool,
) -> Table {
    let shown: Vec<_> = shown_in(Subject::Flow, place).collect();
    let columns: Vec<&str> = shown.iter().map(|(_, shown)| shown.heading).collect();
    let mut table = Table::new(caption, heads, &columns);
    let first = runs.first().map_or(&[][..], |run| &run.record().flows);
    for (i, flow) in first.iter().enumerate().filter(|(_, f)| is_named(f) && wanted(f)) {
        let scopes: Vec<Scope<'_>> = runs.iter().map(|run| Scope::of_flow(*run, i, None)).collect();
        let names = [flow.name.clone(), flow.kind.clone()].into_iter().take(heads.len());
        table.row(names.chain(shown.iter().map(|(metric, shown)| over(&scopes, metric, *shown))));
    }
    table
}

/// The metrics of queues and of the run: a row for each, a column for each queue.
fn queue_table(of_repetitions: &str, runs: &[Metrics<'_>]) -> Table {
    let queues: Vec<Vec<QueueAt<'_>>> = runs.iter().map(Metrics::queues).collect();
    let names: Vec<String> = queues[0].iter().map(shown_place).collect();
    let (caption, heads): (_, Vec<&str>) = match names.len() {
        1 => ("Bottleneck", vec!["value"]),
        _ => ("Queues", names.iter().map(String::as_str).collect()),
    };
    let mut table = Table::new(format!("{caption}{of_repetitions}"), &["measure"], &heads);
    let places = (0..names.len()).map(|place| {
        let at = queues.iter().filter_map(|queues| queues.get(place));
        at.map(|queue| Scope::of_run(queue.metrics, None)).collect()
    });
    let places: Vec<Vec<Scope<'_>>> = places.collect();
    for (metric, shown) in shown_in(Subject::Queue, Place::Queues) {
        let mut values = places.iter().flatten().filter_map(|scope| metric.value(scope));
        if !shown.unless_zero || values.any(|value| value > 0.0) {
            let cells = places.iter().map(|scopes| over(scopes, metric, shown));
            table.row(std::iter::once(shown.heading.to_owned()).chain(cells));
        }
    }
    // Metrics of all flows together.
    if runs[0].tcp_flows().len() > 1 {
        for (metric, shown) in shown_in(Subject::Run, Place::Queues) {
            table.row([shown.heading.to_owned(), over(&places[0], metric, shown)]);
        }
    }
    table
}

/// A metric over the scopes of repetitions.
fn over(scopes: &[Scope<'_>], metric: &Metric, shown: Shown) -> String {
    let values = scopes.iter().map(|scope| metric.value(scope).map(|value| shown.scale.of(value)));
    spread(values, shown.decimals)
}

/// The tables on `records`, repetitions of `spec`. For several repetitions they show the median,
/// with 20th and 80th percentile in parentheses where they differ.
pub fn run_tables(spec: &RunSpec, records: &[RunRecord]) -> Vec<Table> {
    let runs: Vec<Metrics<'_>> = records.iter().map(|r| Metrics::new(spec, r)).collect();
    let Some(first) = records.first() else { return Vec::new() };
    let flows = |want: fn(&FlowRecord) -> bool| {
        first.flows.iter().enumerate().filter(move |(_, f)| is_named(f) && want(f))
    };
    let of_repetitions = match records.len() {
        1 => String::new(),
        n => format!(", {n} repetitions: median (20th–80th percentile)"),
    };
    let table = |caption: &str, place, heads: &[&str], wanted| {
        flow_table(format!("{caption}{of_repetitions}"), &runs, place, heads, wanted)
    };
    let goodput = table("Flows", Place::Flows, &["flow", "algorithm"], |f| f.kind != "probe");
    let queue = queue_table(&of_repetitions, &runs);
    let losses = table("Packets", Place::Packets, &["flow"], is_tcp);
    let reductions = table("Reductions of the window", Place::Reductions, &["flow"], is_tcp);
    let probes = table("One-way delay", Place::Probes, &["probe"], |f| f.kind == "probe");

    let mut transfers = Table::new(
        "Completed transfers, of all repetitions together",
        &["flow"],
        &["number", "median time (s)", "p20 (s)", "p80 (s)"],
    );
    for (i, flow) in flows(is_tcp) {
        let all = records.iter().flat_map(|r| &r.flows[i].transfers);
        let mut times: Vec<f64> = all.map(|t| seconds(t.end_ns - t.start_ns)).collect();
        times.sort_by(f64::total_cmp);
        if !times.is_empty() {
            let at = |q| percentile(&times, q).map_or_else(String::new, |s| format!("{s:.3}"));
            transfers.row([flow.name.clone(), times.len().to_string(), at(0.5), at(0.2), at(0.8)]);
        }
    }

    let short = short_flows(&runs);
    let mut stalls = Table::new(
        format!("Players of periodic transfers{of_repetitions}"),
        &["flow"],
        &["stalled (s)", "unfinished transfers"],
    );
    for (i, flow) in flows(is_tcp) {
        if runs.iter().any(|m| m.stalled_s(i).is_some()) {
            let unfinished = runs.iter().map(|m| Some(m.record().flows[i].unfinished.len() as f64));
            let stalled = spread(runs.iter().map(|m| m.stalled_s(i)), 2);
            stalls.row([flow.name.clone(), stalled, spread(unfinished, 0)]);
        }
    }

    let tables = [goodput, short, queue, losses, reductions, probes, transfers, stalls];
    tables.into_iter().filter(|t| !t.rows.is_empty()).collect()
}

/// Names of the sources of all `runs`.
fn sources<'a>(runs: &[Metrics<'a>]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for name in runs.iter().flat_map(Metrics::sources) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Completion times of a source's transfers with sizes in `sizes`, of all `runs`: seconds,
/// ascending, and how many more were not complete.
fn completions(runs: &[Metrics<'_>], source: &str, sizes: &Range<u64>) -> (Vec<f64>, usize) {
    let (mut times_s, mut unfinished) = (Vec::new(), 0);
    for m in runs {
        let flows = m.flows_from(source);
        times_s.append(&mut m.completion_times_s(&flows, sizes));
        unfinished += m.unfinished(&flows, sizes);
    }
    times_s.sort_by(f64::total_cmp);
    (times_s, unfinished)
}

/// Completion times by source and size.
fn short_flows(runs: &[Metrics<'_>]) -> Table {
    let mut table = Table::new(
        "Completion times of the flows drawn from sources, all repetitions together",
        &["source", "transfers"],
        &["completed", "unfinished", "mean (s)", "median (s)", "p95 (s)", "p99 (s)"],
    );
    for source in sources(runs) {
        let classes = [("all", 0..u64::MAX)].into_iter().chain(SIZE_CLASSES);
        for (class, sizes) in classes {
            let (times_s, unfinished) = completions(runs, source, &sizes);
            let all = Completion::of(&times_s, unfinished);
            if all.completed + all.unfinished == 0 {
                continue;
            }
            let s =
                |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |s| format!("{s:.3}"));
            table.row([
                source.to_owned(),
                class.to_owned(),
                all.completed.to_string(),
                all.unfinished.to_string(),
                s(all.mean_s),
                s(all.p50_s),
                s(all.p95_s),
                s(all.p99_s),
            ]);
        }
    }
    table
}

/// Distributions of the completion times of sources, by size; none without sources.
fn completion_charts(runs: &[Metrics<'_>]) -> Vec<Chart> {
    let chart = |(number, source): (usize, &str)| {
        let id = format!("completion-{}", number + 1);
        let title = format!("Completion times of {source}");
        let mut chart = Chart::new(id.as_str(), title.as_str(), "", "fraction of the transfers");
        chart.x = Axis::log("completion time (s)");
        (chart.y.min, chart.y.max) = (Some(0.0), Some(1.0));
        let mut incomplete = 0;
        for (hue, (class, sizes)) in SIZE_CLASSES.into_iter().enumerate() {
            let (times_s, unfinished) = completions(runs, source, &sizes);
            incomplete += unfinished;
            let every = times_s.len().div_ceil(MAX_POINTS).max(1);
            // Transfers that were never complete lie beyond every time.
            let all = (times_s.len() + unfinished) as f64;
            let last = times_s.len().saturating_sub(1);
            let points = times_s.iter().enumerate();
            let points = points.filter(|(i, _)| i % every == 0 || *i == last);
            let points: Vec<_> = points.map(|(i, s)| (*s, (i + 1) as f64 / all)).collect();
            if !points.is_empty() {
                chart.series.push(Series::new(class, Style::Steps, points).hue(hue));
            }
        }
        if incomplete > 0 {
            chart.caption = format!(
                "{incomplete} transfers were unfinished at the end of their run, so the lines end below 1."
            );
        }
        chart
    };
    let charts = sources(runs).into_iter().enumerate().map(chart);
    charts.filter(|chart| !chart.series.is_empty()).collect()
}

/// The task of each flow.
fn set_up(spec: &RunSpec) -> Table {
    let head = ["flow", "sends", "parameters", "stack"];
    let mut table = Table::new("Flows", &head, &["start (s)", "stop (s)", "extra delay (ms)"]);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for drawn in spec.flows.iter().filter_map(|f| f.drawn.as_ref()) {
        *counts.entry(&drawn.source).or_default() += 1;
    }
    for flow in &spec.flows {
        let [mut sends, parameters, stack] = described(flow);
        let way = shown_route(&flow.route, &spec.path);
        // One row for all that a source draws.
        let mut name = flow.name.clone();
        if let Some(drawn) = &flow.drawn {
            let Some(count) = counts.remove(&*drawn.source) else { continue };
            name = drawn.source.to_string();
            sends = match &flow.kind {
                FlowKind::Tcp(tcp) => {
                    format!("{}: {count} flows drawn in the first repetition", tcp.cc.name())
                }
                _ => sends,
            };
        }
        let s = |ns: Ns| trim(seconds(ns));
        let start = match flow.start_jitter_ns {
            0 => s(flow.start_ns),
            jitter => format!("{}–{}", s(flow.start_ns), s(flow.start_ns + jitter)),
        };
        table.row([
            name,
            format!("{sends}{way}"),
            parameters,
            stack,
            start,
            s(flow.stop_ns.unwrap_or(spec.duration_ns)),
            match (flow.access_delay_ns, flow.access_delay_spread_ns) {
                (least, 0) => trim(milliseconds(least)),
                (least, spread) => format!(
                    "{} to {}",
                    trim(milliseconds(least)),
                    trim(milliseconds(least + spread))
                ),
            },
        ]);
    }
    table
}

/// The route of a flow, in words; empty for the usual one.
fn shown_route(route: &Route, path: &PathSpec) -> String {
    let (first, last) = (route.first_hop + 1, route.last_hop(path) + 1);
    let hops = match (path.hops.len(), first == last) {
        (hops, _) if (first, last) == (1, hops) => String::new(),
        (_, true) => format!("hop {first}"),
        (_, false) => format!("hops {first} to {last}"),
    };
    match (route.reverse, hops.is_empty()) {
        (false, true) => String::new(),
        (false, false) => format!(", over {hops}"),
        (true, true) => ", in the reverse direction".to_owned(),
        (true, false) => format!(", in the reverse direction, its ACKs over {hops}"),
    }
}

/// The data that a flow sends, its parameters, its stack.
fn described(flow: &FlowSpec) -> [String; 3] {
    let udp = |sends| [sends, String::new(), String::new()];
    match &flow.kind {
        FlowKind::Udp { rate_bps, steps: later, packet_bytes } => {
            let mbit = |bps: u64| trim(bps as f64 / 1e6);
            udp(format!(
                "UDP, {}{} Mbit/s in packets of {packet_bytes} bytes",
                mbit(*rate_bps),
                steps(later, mbit)
            ))
        }
        FlowKind::Probe { interval_ns, packet_bytes } => udp(format!(
            "probes of {packet_bytes} bytes every {} ms",
            trim(milliseconds(*interval_ns))
        )),
        FlowKind::Tcp(TcpSpec { transport, cc, workload, options }) => {
            let amount = match workload {
                Workload::Bulk => "as much as it can".to_owned(),
                Workload::Transfers { size_bytes, every_ns: None } => format!("{size_bytes} bytes"),
                Workload::Transfers { size_bytes, every_ns: Some(every) } => {
                    format!("{size_bytes} bytes every {} s", trim(seconds(*every)))
                }
                Workload::Writes(writes) => format!("{} transfers", writes.len()),
            };
            let shown = cc.params().map_or_else(Vec::new, Params::shown);
            let shown = shown.into_iter().map(|(name, value)| format!("{name} = {value}"));
            let recovery = match options.recovery {
                Recovery::Sack => "SACK",
                Recovery::Freebsd7 => "SACK as in FreeBSD 7",
                Recovery::Newreno => "NewReno recovery",
                Recovery::NewrenoPrr => "NewReno recovery with PRR",
            };
            let stack = match transport {
                // Recovery, packets and ACKs are its own.
                Transport::Quic => "QUIC".to_owned(),
                Transport::Own => format!(
                    "{recovery}, {}-byte packets, an ACK for every {}",
                    options.mss_bytes + options.header_bytes,
                    options.delayed_ack.every_pkts
                ),
            };
            [format!("{}: {amount}", cc.name()), shown.collect::<Vec<_>>().join(", "), stack]
        }
    }
}

/// Charts of `record`, a run of `spec`, over time; none without a time series.
pub fn run_charts(spec: &RunSpec, record: &RunRecord) -> Vec<Chart> {
    let m = Metrics::new(spec, record);
    if m.bins() == 0 {
        return Vec::new();
    }
    let per_point = m.bins().div_ceil(MAX_POINTS);
    let groups: Vec<Range<usize>> = (0..m.bins())
        .step_by(per_point)
        .map(|first| first..(first + per_point).min(m.bins()))
        .collect();
    let view = View { m, record, per_point, groups };
    // Those of a source have one line together.
    let named = || record.flows.iter().enumerate().filter(|(_, f)| is_named(f));
    let tcp = || named().filter(|(_, f)| is_tcp(f));
    let sources: Vec<_> =
        view.m.sources().into_iter().map(|s| view.m.together(s, &view.m.flows_from(s))).collect();

    let mut goodput = view.chart("goodput", "Goodput", "goodput (Mbit/s)");
    let sending =
        (named().count()..).zip(&sources).chain(named().filter(|(_, f)| f.kind != "probe"));
    view.lines(&mut goodput, sending, MAX_LINES, |i, flow| {
        let points = view.steps(|g, length_s| {
            let times = view.m.bin_s(g.start).start..view.m.bin_s(g.end - 1).end;
            let bytes: u64 = flow.samples.get(g)?.iter().map(|s| s.delivered_bytes).sum();
            let alive = times.end * NS_PER_S as f64 > flow.start_ns as f64
                && times.start * (NS_PER_S as f64) < flow.stop_ns as f64;
            (alive || bytes > 0).then(|| bytes as f64 * 8.0 / length_s / 1e6)
        });
        vec![Series::new(&flow.name, Style::Steps, points).hue(i)]
    });
    let rate = spec.path.hops[0].rate();
    let capacity = match rate.varying {
        None => {
            let end = seconds(record.duration_ns);
            [0.0, end].map(|time_s| (time_s, rate.bps as f64 / 1e6)).to_vec()
        }
        Some(_) => view.steps(|group, _| {
            let window = group.start as Ns * record.bin_ns..group.end as Ns * record.bin_ns;
            Some(rate.mean_bps(window.start, window.end.min(record.duration_ns)) / 1e6)
        }),
    };
    let of_hop = if spec.path.hops.len() > 1 { "hop 1" } else { "bottleneck" };
    goodput.series.push(Series::new(of_hop, Style::Dashed, capacity).hue(MAX_LINES - 1));

    let mut cwnd = view.chart("cwnd", "Congestion window and slow start threshold", "packets");
    view.lines(&mut cwnd, tcp(), MAX_LINES / 2, |i, flow| {
        let ssthresh = |s: &FlowSample| {
            let known = s.cwnd_pkts > 0 && s.ssthresh_pkts < SSTHRESH_INFINITE;
            known.then_some(f64::from(s.ssthresh_pkts))
        };
        let window = view.states(flow, |s| Some(f64::from(s.cwnd_pkts)));
        let threshold = view.states(flow, ssthresh);
        vec![
            Series::new(&flow.name, Style::Line, window).hue(i),
            Series::new(format!("{}: ssthresh", flow.name), Style::Dashed, threshold).hue(i),
        ]
    });

    let mut shadow = view.chart("shadow", "Shadow window", "packets");
    let with = |names: &'static [&str]| {
        tcp().filter(move |(_, f)| f.observes.iter().any(|o| names.contains(o)))
    };
    view.lines(&mut shadow, with(&[SHADOW_WINDOW]), MAX_LINES, |i, flow| {
        let points = view.observed(flow, &[SHADOW_WINDOW], 1.0);
        vec![Series::new(&flow.name, Style::Line, points).hue(i)]
    });

    let mut queue = view.chart("queue", "Queueing delay at the bottleneck", "delay (ms)");
    let mean = |bins: &[QueueBin]| {
        view.steps(|g, _| {
            let bins = bins.get(g)?;
            let pkts: u64 = bins.iter().map(|b| u64::from(b.departed_pkts)).sum();
            let sum_ns: u64 = bins.iter().map(|b| b.delay_sum_ns).sum();
            (pkts > 0).then(|| sum_ns as f64 / pkts as f64 / NS_PER_MS as f64)
        })
    };
    let bins = &record.queues[0].bins;
    let max = view.steps(|g, _| {
        let bins = bins.get(g)?.iter().filter(|b| b.departed_pkts > 0);
        bins.map(|b| milliseconds(b.delay_max_ns)).reduce(f64::max)
    });
    queue.series = match &view.m.queues()[..] {
        [_] => vec![
            Series::new("mean", Style::Steps, mean(bins)),
            Series::new("largest", Style::Steps, max),
        ],
        several => {
            queue.title = "Mean queueing delay".to_owned();
            let lines = several.iter().take(MAX_LINES).enumerate();
            let line = |(i, at): (usize, &QueueAt<'_>)| {
                Series::new(shown_place(at), Style::Steps, mean(&at.record.bins)).hue(i)
            };
            lines.map(line).collect()
        }
    };

    let mut seen = view.chart("seen", "Queueing delay that the algorithm sees", "delay (ms)");
    view.lines(&mut seen, with(&QUEUEING_DELAY), MAX_LINES, |i, flow| {
        let points = view.observed(flow, &QUEUEING_DELAY, 1e-3);
        vec![Series::new(&flow.name, Style::Line, points).hue(i)]
    });

    let mut probes = view.chart("probes", "One-way delay", "delay (ms)");
    let all = record.flows.iter().enumerate().filter(|(_, f)| !f.probe_delays.is_empty());
    probes.caption.clear();
    if record.flows.iter().any(|f| f.probe_delays.len() > MAX_POINTS) {
        probes.caption = "Not every probe is plotted; the tables have them all.".to_owned();
    }
    view.lines(&mut probes, all, MAX_LINES, |i, flow| {
        let every = flow.probe_delays.len().div_ceil(MAX_POINTS);
        let points = flow
            .probe_delays
            .iter()
            .step_by(every)
            .map(|(sent_ns, delay_ns)| (seconds(*sent_ns), milliseconds(*delay_ns)));
        vec![Series::new(&flow.name, Style::Line, points).hue(i)]
    });

    let charts = [goodput, cwnd, shadow, queue, seen, probes];
    let plotted = |c: &Chart| c.series.iter().any(|s| s.points.iter().any(|p| p.y.is_finite()));
    charts.into_iter().filter(plotted).collect()
}

/// A run, thinned to the number of points that a chart can show.
struct View<'a> {
    m: Metrics<'a>,
    record: &'a RunRecord,
    per_point: usize,
    /// Bins of each point.
    groups: Vec<Range<usize>>,
}

impl View<'_> {
    fn chart(&self, id: &str, title: &str, y_label: &str) -> Chart {
        let mut chart = Chart::new(id, title, "time (s)", y_label);
        let end_s = seconds(self.record.duration_ns);
        (chart.x.min, chart.x.max) = (Some(0.0), Some(end_s));
        if self.per_point > 1 {
            let step_s = seconds(self.per_point as Ns * self.record.bin_ns);
            chart.caption =
                format!("One point every {} s; the tables have them all.", trim(step_s));
        }
        chart
    }

    /// Adds the lines of the first of `flows`, as many as a chart can carry; the caption says so.
    fn lines<'f>(
        &self,
        chart: &mut Chart,
        flows: impl Iterator<Item = (usize, &'f FlowRecord)>,
        most: usize,
        lines: impl Fn(usize, &'f FlowRecord) -> Vec<Series>,
    ) {
        let flows: Vec<_> = flows.collect();
        chart.series.extend(flows.iter().take(most).flat_map(|(i, flow)| lines(*i, flow)));
        if flows.len() > most {
            let note = format!("The first {most} of {} flows.", flows.len());
            chart.caption = [note.as_str(), &chart.caption].join(" ").trim_end().to_owned();
        }
    }

    /// A value for each group of bins, from their indices and length; gaps where there is none.
    fn steps(&self, of: impl Fn(Range<usize>, f64) -> Option<f64>) -> Vec<(f64, f64)> {
        let mut points = Vec::with_capacity(self.groups.len() + 1);
        for group in &self.groups {
            let (start, end) = (self.m.bin_s(group.start).start, self.m.bin_s(group.end - 1).end);
            points.push((start, of(group.clone(), end - start).unwrap_or(f64::NAN)));
            if group.end == self.m.bins() {
                points.extend(points.last().map(|(_, last)| (end, *last)));
            }
        }
        points
    }

    /// A state of `flow` at the end of each group of bins; gaps outside its life.
    fn states(
        &self,
        flow: &FlowRecord,
        of: impl Fn(&FlowSample) -> Option<f64>,
    ) -> Vec<(f64, f64)> {
        let at = |group: &Range<usize>| {
            let last = group.end - 1;
            let sample = flow.samples.get(last).filter(|s| s.cwnd_pkts > 0);
            (self.m.bin_s(last).end, sample.and_then(&of).unwrap_or(f64::NAN))
        };
        self.groups.iter().map(at).collect()
    }

    /// The first observed value called one of `names`, times `unit`.
    fn observed(&self, flow: &FlowRecord, names: &[&str], unit: f64) -> Vec<(f64, f64)> {
        let index = flow.observes.iter().position(|o| names.contains(o));
        self.states(flow, |s| Some(f64::from(s.observed[index?]) * unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_fixtures::{self as testing, MS};
    use knee_model::{CoDel, Discipline, HopSpec, QueueBin, ReverseLink};

    fn run(goodput: u64) -> RunRecord {
        let mut chd = testing::flow("fast", "chd", &[goodput, 2 * goodput, 0, 0]);
        let mut reno = testing::flow("slow", "newreno", &[0, goodput, 0, 0]);
        let probe = testing::flow("probe", "probe", &[0; 4]);
        for (s, cwnd) in chd.samples.iter_mut().zip([10, 20, 30, 0]) {
            s.cwnd_pkts = cwnd;
            s.ssthresh_pkts = if cwnd == 10 { SSTHRESH_INFINITE } else { 15 };
            s.observed = [2000, 0, 7, 0];
        }
        reno.samples[3].cwnd_pkts = 4;
        let mut r = testing::record(4.0, 1.0, vec![chd, reno, probe]);
        let bin = QueueBin {
            departed_pkts: 2,
            delay_sum_ns: 6 * MS,
            delay_max_ns: 5 * MS,
            ..QueueBin::default()
        };
        r.queues[0] = testing::queue(&[bin, bin, QueueBin::default(), bin]);
        r.flows[2].probe_delays = vec![(0, 25 * MS), (MS, 30 * MS)];
        r.flows[2].one_way_delay.add(25 * MS);
        r
    }

    fn values(chart: &Chart, series: usize) -> Vec<(f64, f64)> {
        chart.series[series].points.iter().map(|p| (p.x, p.y)).collect()
    }

    #[test]
    fn charts_show_the_run() {
        let r = run(125_000);
        let charts = run_charts(&testing::spec(&r), &r);
        let ids: Vec<&str> = charts.iter().map(|c| c.id.as_str()).collect();
        assert_eq!(ids, ["goodput", "cwnd", "shadow", "queue", "seen", "probes"]);
        let names: Vec<&str> = charts[0].series.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["fast", "slow", "bottleneck"]);
        assert_eq!(
            values(&charts[0], 0),
            [(0.0, 1.0), (1.0, 2.0), (2.0, 0.0), (3.0, 0.0), (4.0, 0.0)]
        );
        let cwnd = values(&charts[1], 0);
        assert_eq!(cwnd[..3], [(1.0, 10.0), (2.0, 20.0), (3.0, 30.0)]);
        assert!(cwnd[3].1.is_nan(), "not alive");
        assert!(values(&charts[1], 1)[0].1.is_nan(), "no threshold yet");
        assert_eq!(values(&charts[1], 1)[1], (2.0, 15.0));
        assert_eq!(values(&charts[2], 0)[0], (1.0, 7.0));
        assert_eq!(values(&charts[3], 0)[0], (0.0, 3.0));
        assert_eq!(values(&charts[3], 1)[0], (0.0, 5.0));
        assert_eq!(values(&charts[4], 0)[0], (1.0, 2.0));
        assert_eq!(values(&charts[5], 0), [(0.0, 25.0), (0.001, 30.0)]);
    }

    #[test]
    fn long_series_and_many_flows_are_thinned_and_say_so() {
        let flow = |n: usize| testing::flow(&format!("f{n}"), "hd", &[1000; 2500]);
        let mut r = testing::record(250.0, 0.1, (0..10).map(flow).collect());
        r.flows[0].samples[2].delivered_bytes = 4000;
        let charts = run_charts(&testing::spec(&r), &r);
        let goodput = &charts[0];
        assert_eq!(goodput.series.len(), MAX_LINES + 1);
        assert_eq!(
            goodput.caption,
            "The first 8 of 10 flows. One point every 0.3 s; the tables have them all."
        );
        // 834 groups of three bins, the last of one, and its end.
        let points = values(goodput, 0);
        assert_eq!(points.len(), 835);
        assert!((points[0].1 - 6000.0 * 8.0 / 0.3 / 1e6).abs() < 1e-12);
        assert!((points[833].1 - 0.08).abs() < 1e-12);
        assert_eq!(points[834].0, 250.0);
    }

    #[test]
    fn tables_show_percentiles_of_repetitions() {
        let runs = [run(100_000), run(200_000), run(300_000)];
        let spec = testing::spec(&runs[0]);
        let tables = run_tables(&spec, &runs);
        assert_eq!(tables[0].rows[0][2].text, "1.200 (0.840–1.560)");
        assert_eq!(tables[0].rows.len(), 2, "probes have no goodput");
        let text = run_text(&spec, &runs[..1], None);
        assert!(text.contains("fast") && text.contains("0.600"));
        assert!(text.contains("Jain's index"));
        assert!(!text.contains("Completed transfers"));
        // Plain numbers for one run.
        assert_eq!(run_tables(&spec, &runs[..1])[0].rows[0][2].text, "0.600");
        assert!(run_tables(&spec, &[]).is_empty());
    }

    /// Each queue with its limit and its discipline, once.
    #[test]
    fn the_report_names_each_queue_once() {
        let runs = [run(100_000)];
        let mut spec = testing::spec(&runs[0]);
        let codel = Aqm { discipline: Discipline::CoDel(CoDel::default()), ecn: true };
        spec.path.hops[0].queue = QueueLimit::Packets(20);
        spec.path.hops.push(HopSpec {
            aqm: Some(codel),
            ..HopSpec::new(2_000_000, QueueLimit::Bytes(30_000))
        });
        spec.path.reverse = Some(ReverseLink {
            rate_bps: 500_000,
            rate_varies: None,
            queue: QueueLimit::Packets(9),
        });
        let meta = run_report("Queues", &spec, &runs).meta;
        let of = |name: &str| &meta.iter().find(|(n, _)| n == name).expect(name).1;
        assert_eq!(of("Queue"), "20 packets, drop-tail");
        assert_eq!(of("Hop 2"), "2 Mbit/s; 30000 bytes, CoDel, marking; 0 ms behind hop 1; loss 0");
        assert_eq!(of("Reverse link"), "0.5 Mbit/s, 9 packets, drop-tail");
    }

    #[test]
    fn the_report_has_all_of_it() {
        let runs = [run(100_000), run(200_000)];
        let report = run_report("Pair", &testing::spec(&runs[0]), &runs);
        let headings: Vec<&str> = report.sections.iter().map(|s| s.heading.as_str()).collect();
        assert_eq!(headings, ["Results", "Over time", "Set-up"]);
        let html = report.html();
        for text in ["84 packets", "20 ms + 20 ms", "The first of 2 repetitions", "qth"] {
            assert!(html.contains(text), "{text}");
        }
    }
}
