//! Metrics of a run: pure functions of its specification and record.
//!
//! Windows are half-open, `[from_s, to_s)`, in seconds from the start of the run. They are measured
//! from the time series; a bin that lies partly inside counts in proportion to its overlap. A
//! measure of a window is `None` if the window is empty or not wholly within the run, if no time
//! series was kept, or if the measure is undefined there (a mean of nothing, 0/0).

use knee_model::{
    FlowCounters, FlowKind, FlowRecord, FlowSample, NS_PER_S, Ns, QueueRecord, Rate, Route,
    RunRecord, RunSpec, Workload, seconds,
};
use serde::Serialize;
use std::ops::Range;

mod table;
pub use table::{
    Get, METRICS, Metric, Place, Scale, Scope, Shown, Subject, in_study, in_summary, metric,
    shown_in,
};

/// 20th, 50th and 80th percentile, over repetitions unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    /// 20th percentile.
    pub p20: f64,
    /// Median.
    pub p50: f64,
    /// 80th percentile.
    pub p80: f64,
}

impl Percentiles {
    /// The percentiles of `values` in any order; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let at = |q| percentile(&sorted, q);
        Some(Self { p20: at(0.2)?, p50: at(0.5)?, p80: at(0.8)? })
    }
}

/// Percentile `q` (0..=1) of `sorted`, ascending; `None` of nothing.
///
/// Linear interpolation between order statistics: with `n` values the smallest is at `q = 0`, the
/// largest at `q = 1`, and `q` lies at position `q·(n-1)` between them (type 7 of Hyndman and Fan,
/// the default of R and NumPy).
pub fn percentile(sorted: &[f64], q: f64) -> Option<f64> {
    let position = q.clamp(0.0, 1.0) * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    Some(low + (high - low) * position.fract())
}

/// Jain's index of `values`: 1 if all are equal, 1/n if one has everything; `None` of nothing or
/// of zeros only.
pub fn jain(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|v| v * v).sum();
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

/// Delay of the bottleneck's queue, milliseconds: waiting time, own transmission excluded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DelayMs {
    /// Number of packets measured.
    pub pkts: u64,
    /// Mean.
    pub mean_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Largest.
    pub max_ms: f64,
}

impl DelayMs {
    /// The delays of a distribution; `None` if it is empty. Percentiles are within 0.4 % of exact, the mean
    /// and the largest are exact.
    pub fn of(delay: &knee_model::DelayStats) -> Option<Self> {
        let at = |q| ms(delay.quantile_ns(q) as f64);
        (delay.count() > 0).then(|| Self {
            pkts: delay.count(),
            mean_ms: ms(delay.mean_ns()),
            p50_ms: at(0.5),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            max_ms: ms(delay.max_ns() as f64),
        })
    }
}

/// Classes of transfer sizes: name, smallest, first that is larger, bytes.
pub const SIZE_CLASSES: [(&str, Range<u64>); 4] = [
    ("below 10 kB", 0..10_000),
    ("10 to 100 kB", 10_000..100_000),
    ("100 kB to 1 MB", 100_000..1_000_000),
    ("1 MB and more", 1_000_000..u64::MAX),
];

/// Duration of transfers: from the application's write until the receiver had all of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Completion {
    /// Completed transfers.
    pub completed: usize,
    /// Transfers that were written, but not complete when the run ended. They are in none of the
    /// figures below, which makes these too small where there are many.
    pub unfinished: usize,
    /// Mean, seconds; `None` if none was completed.
    pub mean_s: Option<f64>,
    /// Median.
    pub p50_s: Option<f64>,
    /// 95th percentile.
    pub p95_s: Option<f64>,
    /// 99th percentile.
    pub p99_s: Option<f64>,
    /// Longest.
    pub max_s: Option<f64>,
}

impl Completion {
    /// The durations of completed transfers, from their times in seconds, ascending.
    pub fn of(times_s: &[f64], unfinished: usize) -> Self {
        let at = |q| percentile(times_s, q);
        Self {
            completed: times_s.len(),
            unfinished,
            mean_s: ratio(times_s.iter().sum(), times_s.len() as f64),
            p50_s: at(0.5),
            p95_s: at(0.95),
            p99_s: at(0.99),
            max_s: times_s.last().copied(),
        }
    }
}

/// A queue of a path in a run.
#[derive(Clone, Debug)]
pub struct QueueAt<'a> {
    /// Name: `1` for the first bottleneck, and so on; `reverse` for the reverse link.
    pub name: String,
    /// Its record.
    pub record: &'a QueueRecord,
    /// The run, whose metrics of a queue refer to this one.
    pub metrics: Metrics<'a>,
}

/// A run seen through its measures. Flows are given by their index in the scenario. Measures of a queue
/// refer to that of the first hop; [`Metrics::queues`] gives the others.
#[derive(Clone, Copy, Debug)]
pub struct Metrics<'a> {
    spec: &'a RunSpec,
    record: &'a RunRecord,
    /// Index of the queue: the hops in order, then the reverse link.
    place: usize,
}

fn ms(ns: f64) -> f64 {
    ns / 1e6
}

fn ratio(over: f64, under: f64) -> Option<f64> {
    (under > 0.0).then(|| over / under)
}

impl<'a> Metrics<'a> {
    /// The measures of `record`, a run of `spec`.
    pub fn new(spec: &'a RunSpec, record: &'a RunRecord) -> Self {
        Self { spec, record, place: 0 }
    }

    /// The record itself.
    pub fn record(&self) -> &'a RunRecord {
        self.record
    }

    /// The queues of the path: those of its hops in order, and that of the reverse link if a flow sends
    /// its data there.
    pub fn queues(&self) -> Vec<QueueAt<'a>> {
        let hops = self.record.queues.len();
        let queues = self.record.queues.iter().chain(&self.record.reverse_queue).enumerate();
        let at = |(place, record): (usize, &'a QueueRecord)| QueueAt {
            name: if place < hops { (place + 1).to_string() } else { "reverse".to_owned() },
            record,
            metrics: Self { place, ..*self },
        };
        queues.map(at).collect()
    }

    fn queue(&self) -> &'a QueueRecord {
        let mut queues = self.record.queues.iter().chain(&self.record.reverse_queue);
        queues.nth(self.place).unwrap_or(&self.record.queues[0])
    }

    fn rate(&self) -> Rate<'a> {
        let path = &self.spec.path;
        let reverse = path.reverse.iter().map(|link| link.rate());
        let mut rates = path.hops.iter().map(|hop| hop.rate()).chain(reverse);
        rates.nth(self.place).unwrap_or_else(|| path.hops[0].rate())
    }

    /// Index of the flow called `name`.
    pub fn flow(&self, name: &str) -> Option<usize> {
        self.record.flows.iter().position(|f| f.name == name)
    }

    /// Indices of the flows of algorithm (or kind) `kind`, without those drawn from sources.
    pub fn flows_of(&self, kind: &str) -> Vec<usize> {
        self.select(|f| is_named(f) && f.kind == kind)
    }

    /// Indices of the TCP flows, without those drawn from sources.
    pub fn tcp_flows(&self) -> Vec<usize> {
        self.select(|f| is_named(f) && is_tcp(f))
    }

    /// Names of the sources from which flows were drawn, in scenario order.
    pub fn sources(&self) -> Vec<&'a str> {
        let mut names: Vec<&str> = self.record.flows.iter().map(|f| f.source.as_str()).collect();
        // The flows of a source are adjacent.
        names.dedup();
        names.retain(|name| !name.is_empty());
        names
    }

    /// Indices of the flows drawn from the source called `name`.
    pub fn flows_from(&self, name: &str) -> Vec<usize> {
        self.select(|f| !is_named(f) && f.source == name)
    }

    fn select(&self, want: impl Fn(&FlowRecord) -> bool) -> Vec<usize> {
        let flows = self.record.flows.iter().enumerate();
        flows.filter(|(_, f)| want(f)).map(|(i, _)| i).collect()
    }

    /// `flows` as if they were one, called `name`: sums of counters and of the time series,
    /// without states.
    pub fn together(&self, name: &str, flows: &[usize]) -> FlowRecord {
        let mut all = FlowRecord {
            name: name.to_owned(),
            stop_ns: self.record.duration_ns,
            samples: vec![FlowSample::default(); self.bins()],
            ..FlowRecord::default()
        };
        for flow in flows.iter().map(|i| &self.record.flows[*i]) {
            all.kind.clone_from(&flow.kind);
            all.counters.delivered_bytes += flow.counters.delivered_bytes;
            for (row, of_flow) in
                all.samples.iter_mut().skip(flow.first_bin as usize).zip(&flow.samples)
            {
                row.delivered_bytes += of_flow.delivered_bytes;
                row.sent_pkts += of_flow.sent_pkts;
                row.lost_pkts += of_flow.lost_pkts;
            }
        }
        all
    }

    /// Times of the completed transfers of `flows` whose size lies in `sizes`, bytes: seconds,
    /// ascending.
    pub fn completion_times_s(&self, flows: &[usize], sizes: &Range<u64>) -> Vec<f64> {
        let transfers = flows.iter().flat_map(|i| &self.record.flows[*i].transfers);
        let wanted = transfers.filter(|t| sizes.contains(&t.bytes));
        let mut times: Vec<f64> = wanted.map(|t| seconds(t.end_ns - t.start_ns)).collect();
        times.sort_by(f64::total_cmp);
        times
    }

    /// Transfers of `flows` whose size lies in `sizes`, bytes, that the run's end left incomplete.
    pub fn unfinished(&self, flows: &[usize], sizes: &Range<u64>) -> usize {
        let transfers = flows.iter().flat_map(|i| &self.record.flows[*i].unfinished);
        transfers.filter(|t| sizes.contains(&t.bytes)).count()
    }

    /// Durations of the transfers of `flows` with a size in `sizes`, bytes; `None` if there were none.
    pub fn completion(&self, flows: &[usize], sizes: &Range<u64>) -> Option<Completion> {
        let unfinished = self.unfinished(flows, sizes);
        let all = Completion::of(&self.completion_times_s(flows, sizes), unfinished);
        (all.completed + all.unfinished > 0).then_some(all)
    }

    /// Time during which a player of `flow`'s transfers stalled, seconds. It starts when the first one has
    /// arrived, and each one lasts as long as the time between two of them. It waits for late ones, at most
    /// until the flow's end. `None` if `flow` does not send one after the other, or the first one never
    /// arrived.
    pub fn stalled_s(&self, flow: usize) -> Option<f64> {
        let FlowKind::Tcp(tcp) = &self.spec.flows.get(flow)?.kind else { return None };
        let Workload::Transfers { every_ns: Some(every_ns), .. } = tcp.workload else {
            return None;
        };
        let record = &self.record.flows[flow];
        let end_ns = record.stop_ns.min(self.record.duration_ns);
        let (first, rest) = record.transfers.split_first()?;
        let arrivals = rest.iter().map(|t| t.end_ns);
        let never = record.unfinished.iter().map(|_| Ns::MAX);
        let mut stalled_ns = 0;
        let mut needed_ns = first.end_ns + every_ns;
        for arrived_ns in arrivals.chain(never) {
            if needed_ns >= end_ns {
                break;
            }
            let plays_ns = arrived_ns.max(needed_ns).min(end_ns);
            stalled_ns += plays_ns - needed_ns;
            needed_ns = plays_ns + every_ns;
        }
        Some(seconds(stalled_ns))
    }

    /// Times of the bins, in order; the last one may be cut short by the end of the run.
    fn bin(&self, index: usize) -> Range<Ns> {
        let start = index as Ns * self.record.bin_ns;
        start..(start + self.record.bin_ns).min(self.record.duration_ns)
    }

    /// Number of bins of the run.
    pub fn bins(&self) -> usize {
        match self.record.bin_ns {
            0 => 0,
            bin_ns => self.record.duration_ns.div_ceil(bin_ns) as usize,
        }
    }

    /// Start and end of bin `index`, seconds.
    pub fn bin_s(&self, index: usize) -> Range<f64> {
        let bin = self.bin(index);
        seconds(bin.start)..seconds(bin.end)
    }

    fn window(&self, from_s: f64, to_s: f64) -> Option<Range<Ns>> {
        let ns = |s: f64| (s * NS_PER_S as f64).round() as Ns;
        let window = ns(from_s)..ns(to_s);
        let inside = from_s >= 0.0 && !window.is_empty() && window.end <= self.record.duration_ns;
        (inside && self.record.bin_ns > 0).then_some(window)
    }

    /// Bins that overlap `window`, each with the part of it that lies inside, in 0..=1.
    fn overlaps(&self, window: Range<Ns>) -> impl Iterator<Item = (usize, f64)> + '_ {
        let bin_ns = self.record.bin_ns;
        let bins = (window.start / bin_ns) as usize..window.end.div_ceil(bin_ns) as usize;
        bins.map(move |i| {
            let bin = self.bin(i);
            let inside = bin.end.min(window.end) - bin.start.max(window.start);
            (i, inside as f64 / (bin.end - bin.start) as f64)
        })
    }

    fn goodput_in(&self, flow: usize, window: Range<Ns>) -> f64 {
        let record = &self.record.flows[flow];
        let length_s = seconds(window.end - window.start);
        let bytes: f64 = self
            .overlaps(window)
            .map(|(i, part)| part * record.sample(i).map_or(0.0, |s| s.delivered_bytes as f64))
            .sum();
        bytes * 8.0 / length_s
    }

    /// Goodput of `flow` over a window, bit/s: payload delivered in order, exactly once.
    pub fn goodput_bps(&self, flow: usize, from_s: f64, to_s: f64) -> Option<f64> {
        Some(self.goodput_in(flow, self.window(from_s, to_s)?))
    }

    /// Goodput of several flows together over a window, bit/s.
    pub fn total_goodput_bps(&self, flows: &[usize], from_s: f64, to_s: f64) -> Option<f64> {
        flows.iter().map(|f| self.goodput_bps(*f, from_s, to_s)).sum()
    }

    /// Mean rate of the bottleneck over a part of the run, bit/s.
    fn capacity_bps(&self, window: Range<Ns>) -> f64 {
        self.rate().mean_bps(window.start, window.end)
    }

    /// Goodput of several flows over a window as a fraction of the capacity of the (first) bottleneck.
    /// Headers take the rest of a full link.
    pub fn goodput_of_capacity(&self, flows: &[usize], from_s: f64, to_s: f64) -> Option<f64> {
        let capacity_bps = self.capacity_bps(self.window(from_s, to_s)?);
        ratio(self.total_goodput_bps(flows, from_s, to_s)?, capacity_bps)
    }

    /// Mean goodput of `flow` over its life, bit/s, from its counters: needs no time series. Data that
    /// arrive after the flow was told to stop count.
    pub fn lifetime_goodput_bps(&self, flow: usize) -> Option<f64> {
        let f = &self.record.flows[flow];
        let life_s = seconds(f.stop_ns.saturating_sub(f.start_ns));
        ratio(f.counters.delivered_bytes as f64 * 8.0, life_s)
    }

    /// The same as a fraction of the capacity in that time of the slowest link that its data pass.
    pub fn lifetime_goodput_of_capacity(&self, flow: usize) -> Option<f64> {
        let f = &self.record.flows[flow];
        let route = self.spec.flows.get(flow).map_or(Route::default(), |flow| flow.route);
        let capacity_bps = self.spec.path.capacity_bps(&route, f.start_ns, f.stop_ns);
        ratio(self.lifetime_goodput_bps(flow)?, capacity_bps)
    }

    /// Goodput of `flow` in steps of `width_s` from the start of the run: start of each step,
    /// seconds, and bit/s. A shorter last step is averaged over what there is of it.
    pub fn goodput_series(&self, flow: usize, width_s: f64) -> Vec<(f64, f64)> {
        let width_ns = (width_s * NS_PER_S as f64).round() as Ns;
        if width_ns == 0 || self.record.bin_ns == 0 {
            return Vec::new();
        }
        let end = self.record.duration_ns;
        (0..end.div_ceil(width_ns))
            .map(|i| i * width_ns..((i + 1) * width_ns).min(end))
            .map(|step| (seconds(step.start), self.goodput_in(flow, step)))
            .collect()
    }

    /// Utilisation of the bottleneck over the whole run, 0..=1, from its counters.
    pub fn utilisation(&self) -> Option<f64> {
        let capacity =
            self.capacity_bps(0..self.record.duration_ns) * seconds(self.record.duration_ns);
        ratio(self.queue().departed_bytes as f64 * 8.0, capacity)
    }

    /// Utilisation of the bottleneck over a window: whole packets that left, against what it could
    /// carry.
    pub fn utilisation_in(&self, from_s: f64, to_s: f64) -> Option<f64> {
        let window = self.window(from_s, to_s)?;
        let capacity = self.capacity_bps(window.clone()) * seconds(window.end - window.start);
        let bins = &self.queue().bins;
        let bytes: f64 = self
            .overlaps(window)
            .map(|(i, part)| part * bins.get(i).map_or(0.0, |b| b.departed_bytes as f64))
            .sum();
        ratio(bytes * 8.0, capacity)
    }

    /// Queueing delay over the whole run; `None` if no packet left.
    pub fn queueing_delay(&self) -> Option<DelayMs> {
        DelayMs::of(&self.queue().delay)
    }

    /// Mean queueing delay of the packets that left within a window, milliseconds.
    pub fn mean_queueing_delay_ms(&self, from_s: f64, to_s: f64) -> Option<f64> {
        let bins = &self.queue().bins;
        let (sum_ns, pkts) = self
            .overlaps(self.window(from_s, to_s)?)
            .filter_map(|(i, part)| Some((bins.get(i)?, part)))
            .fold((0.0, 0.0), |(sum_ns, pkts), (b, part)| {
                (sum_ns + part * b.delay_sum_ns as f64, pkts + part * f64::from(b.departed_pkts))
            });
        ratio(ms(sum_ns), pkts)
    }

    /// Largest queueing delay within a window, milliseconds. Bins partly inside count wholly.
    pub fn max_queueing_delay_ms(&self, from_s: f64, to_s: f64) -> Option<f64> {
        let bins = &self.queue().bins;
        self.overlaps(self.window(from_s, to_s)?)
            .filter_map(|(i, _)| bins.get(i))
            .filter(|b| b.departed_pkts > 0)
            .map(|b| ms(b.delay_max_ns as f64))
            .reduce(f64::max)
    }

    /// Percentile `q` (0..=1) of the queueing delay within a window, milliseconds, by nearest rank. Every
    /// packet counts as having waited as long as the mean of its bin: the error is the queue's change within
    /// a bin. Bins partly inside count in proportion.
    pub fn queueing_delay_percentile_ms(&self, q: f64, from_s: f64, to_s: f64) -> Option<f64> {
        let bins = &self.queue().bins;
        let mut means: Vec<(f64, f64)> = self
            .overlaps(self.window(from_s, to_s)?)
            .filter_map(|(i, part)| Some((bins.get(i)?, part)))
            .filter(|(b, _)| b.departed_pkts > 0)
            .map(|(b, part)| {
                let pkts = f64::from(b.departed_pkts);
                (ms(b.delay_sum_ns as f64) / pkts, part * pkts)
            })
            .collect();
        means.sort_by(|a, b| a.0.total_cmp(&b.0));
        let rank = q.clamp(0.0, 1.0) * means.iter().map(|(_, pkts)| pkts).sum::<f64>();
        let mut seen = 0.0;
        let reached = means.iter().find(|(_, pkts)| {
            seen += pkts;
            seen >= rank
        });
        // The sum of the parts may fall short of the whole by a rounding error.
        reached.or(means.last()).map(|(mean_ms, _)| *mean_ms)
    }

    /// Mean number of packets held over a window: mean of its states at the ends of the bins,
    /// weighted by their overlap.
    pub fn mean_queue_pkts(&self, from_s: f64, to_s: f64) -> Option<f64> {
        let bins = &self.queue().bins;
        let (sum, weight) = self
            .overlaps(self.window(from_s, to_s)?)
            .filter_map(|(i, part)| Some((bins.get(i)?, part)))
            .fold((0.0, 0.0), |(sum, weight), (b, part)| {
                (sum + part * f64::from(b.held_pkts), weight + part)
            });
        ratio(sum, weight)
    }

    /// State of `flow` at the end of the bin that holds `time_s`; `None` outside the run.
    pub fn sample(&self, flow: usize, time_s: f64) -> Option<&'a FlowSample> {
        let bin_ns = self.record.bin_ns;
        let inside = bin_ns > 0 && time_s >= 0.0;
        let record = &self.record.flows[flow];
        inside.then(|| record.sample((time_s * 1e9 / bin_ns as f64) as usize)).flatten()
    }

    /// Packets that `flow` lost within a window; bins partly inside count in proportion.
    pub fn lost_pkts(&self, flow: usize, from_s: f64, to_s: f64) -> Option<f64> {
        let record = &self.record.flows[flow];
        let lost = |(i, part): (usize, f64)| {
            part * record.sample(i).map_or(0.0, |s: &FlowSample| f64::from(s.lost_pkts))
        };
        Some(self.overlaps(self.window(from_s, to_s)?).map(lost).sum())
    }

    /// Packets that `flows` sent within a window; bins partly inside count in proportion.
    pub fn sent_pkts(&self, flows: &[usize], from_s: f64, to_s: f64) -> Option<f64> {
        let window = self.window(from_s, to_s)?;
        let of = |flow: &usize| -> f64 {
            let record = &self.record.flows[*flow];
            let sent = |(i, part): (usize, f64)| {
                part * record.sample(i).map_or(0.0, |s| f64::from(s.sent_pkts))
            };
            self.overlaps(window.clone()).map(sent).sum()
        };
        Some(flows.iter().map(of).sum())
    }

    /// Mean rate of the (first) bottleneck over a window, bit/s.
    pub fn rate_bps(&self, from_s: f64, to_s: f64) -> Option<f64> {
        Some(self.capacity_bps(self.window(from_s, to_s)?))
    }

    /// Fraction of the packets that `flows` sent within a window that were dropped or lost there.
    pub fn loss_fraction(&self, flows: &[usize], from_s: f64, to_s: f64) -> Option<f64> {
        let window = self.window(from_s, to_s)?;
        let (lost, sent) = flows
            .iter()
            .flat_map(|f| {
                let record = &self.record.flows[*f];
                self.overlaps(window.clone())
                    .filter_map(|(i, part)| Some((record.sample(i)?, part)))
            })
            .fold((0.0, 0.0), |(lost, sent), (s, part)| {
                (lost + part * f64::from(s.lost_pkts), sent + part * f64::from(s.sent_pkts))
            });
        ratio(lost, sent)
    }

    /// Times at which `flow` lost packets, seconds: the start of each bin with losses that comes at least
    /// `gap_s` after the one before. Bins nearer than that are one event.
    pub fn loss_times_s(&self, flow: usize, gap_s: f64) -> Vec<f64> {
        let mut times = Vec::new();
        let mut latest_s = f64::NEG_INFINITY;
        let record = &self.record.flows[flow];
        for (i, sample) in (record.first_bin as usize..).zip(&record.samples) {
            if sample.lost_pkts > 0 {
                let at_s = self.bin_s(i).start;
                if at_s - latest_s >= gap_s {
                    times.push(at_s);
                }
                latest_s = at_s;
            }
        }
        times
    }

    /// Jain's index of the goodputs of `flows` over a window.
    pub fn jain(&self, flows: &[usize], from_s: f64, to_s: f64) -> Option<f64> {
        self.jain_in(flows, self.window(from_s, to_s)?)
    }

    fn jain_in(&self, flows: &[usize], window: Range<Ns>) -> Option<f64> {
        let goodputs: Vec<f64> =
            flows.iter().map(|f| self.goodput_in(*f, window.clone())).collect();
        jain(&goodputs)
    }

    /// Time for which all of `flows` were alive, seconds; empty if there was none.
    pub fn common_life_s(&self, flows: &[usize]) -> Range<f64> {
        let of = |f: &usize| &self.record.flows[*f];
        let start = flows.iter().map(|f| of(f).start_ns).max().unwrap_or(0);
        let stop = flows.iter().map(|f| of(f).stop_ns).min().unwrap_or(0);
        seconds(start)..seconds(stop.min(self.record.duration_ns))
    }

    /// Convergence time of `flows` after `from_s`, seconds: the first `t` for which Jain's index
    /// of their goodputs is at least `threshold` in every window of `width_s` that starts within
    /// `[from_s + t, from_s + t + hold_s]`, windows sliding by one bin. `None` if there is no such
    /// `t` with all windows ending by `to_s`.
    pub fn convergence_s(
        &self,
        flows: &[usize],
        from_s: f64,
        to_s: f64,
        width_s: f64,
        threshold: f64,
        hold_s: f64,
    ) -> Option<f64> {
        let all = self.window(from_s, to_s)?;
        let width = self.window(0.0, width_s)?.end;
        let step = self.record.bin_ns;
        let needed = (hold_s * NS_PER_S as f64).round() as Ns / step + 1;
        let mut held = 0;
        let mut start = all.start;
        while start + width <= all.end {
            let fair = self.jain_in(flows, start..start + width).is_some_and(|j| j >= threshold);
            held = if fair { held + 1 } else { 0 };
            if held == needed {
                return Some(seconds(start - (needed - 1) * step - all.start));
            }
            start += step;
        }
        None
    }

    /// Goodput of the flows `group` over a window as a fraction of that of `group` and `others`.
    pub fn share(&self, group: &[usize], others: &[usize], from_s: f64, to_s: f64) -> Option<f64> {
        let of_group = self.total_goodput_bps(group, from_s, to_s)?;
        ratio(of_group, of_group + self.total_goodput_bps(others, from_s, to_s)?)
    }

    /// Mean goodput per flow of `group` over a window, divided by that of `others`.
    pub fn mean_ratio(
        &self,
        group: &[usize],
        others: &[usize],
        from_s: f64,
        to_s: f64,
    ) -> Option<f64> {
        let mean = |flows: &[usize]| {
            ratio(self.total_goodput_bps(flows, from_s, to_s)?, flows.len() as f64)
        };
        ratio(mean(group)?, mean(others)?)
    }

    /// Percentile `q` (0..=1) of the one-way delays of probe `flow`, milliseconds, of the probes
    /// sent within a window. Needs no time series.
    pub fn probe_delay_ms(&self, flow: usize, q: f64, from_s: f64, to_s: f64) -> Option<f64> {
        let probes = self.record.flows[flow].probe_delays.iter();
        let mut delays: Vec<f64> = probes
            .filter(|(sent_ns, _)| (from_s..to_s).contains(&seconds(*sent_ns)))
            .map(|(_, delay_ns)| ms(*delay_ns as f64))
            .collect();
        delays.sort_by(f64::total_cmp);
        percentile(&delays, q)
    }

    fn count(&self, flows: &[usize], of: impl Fn(&FlowCounters) -> u64) -> u64 {
        flows.iter().map(|f| of(&self.record.flows[*f].counters)).sum()
    }

    /// Fraction of the packets that `flows` sent over the whole run, retransmissions included, that were
    /// dropped or lost on the way to the receiver.
    pub fn lost_fraction(&self, flows: &[usize]) -> Option<f64> {
        let lost = self.count(flows, |c| c.queue_drops_pkts + c.random_losses_pkts);
        ratio(lost as f64, self.count(flows, |c| c.sent_pkts) as f64)
    }

    /// Fraction of the rounds of `flows` whose delay lay in region A; `None` without rounds.
    pub fn rounds_in_region_a(&self, flows: &[usize]) -> Option<f64> {
        let a = self.count(flows, |c| c.rounds_region_a) as f64;
        ratio(a, a + self.count(flows, |c| c.rounds_region_b) as f64)
    }
}

/// Returns whether the scenario names the flow itself; else it was drawn from a source.
pub fn is_named(flow: &FlowRecord) -> bool {
    flow.source.is_empty()
}

/// Returns whether a flow is TCP, which alone has a window.
pub fn is_tcp(flow: &FlowRecord) -> bool {
    !matches!(flow.kind.as_str(), "udp" | "probe")
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_fixtures::{MS, flow, queue, record, spec};
    use knee_model::{DelayStats, QueueBin, Transfer, Unfinished, Varying};

    /// Two flows, four bins of 1 s, 1 Mbit/s: bytes per bin of each.
    fn two(a: [u64; 4], b: [u64; 4]) -> RunRecord {
        record(4.0, 1.0, vec![flow("a", "chd", &a), flow("b", "newreno", &b)])
    }

    #[test]
    fn percentiles_interpolate_between_order_statistics() {
        let p = Percentiles::of([40.0, 10.0, 30.0, 20.0]).unwrap();
        // Positions 0.6, 1.5, 2.4 among 10, 20, 30, 40.
        assert!((p.p20 - 16.0).abs() < 1e-12 && p.p50 == 25.0 && (p.p80 - 34.0).abs() < 1e-12);
        assert_eq!(Percentiles::of([]), None);
        assert_eq!(Percentiles::of([7.0]), Some(Percentiles { p20: 7.0, p50: 7.0, p80: 7.0 }));
        assert_eq!(percentile(&[1.0, 2.0], 1.0), Some(2.0));
    }

    #[test]
    fn jain_of_known_shares() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain(&[5.0, 0.0]), Some(0.5));
        assert_eq!(jain(&[1.0, 3.0]), Some(0.8)); // 16 / (2·10)
        assert_eq!(jain(&[0.0, 0.0]), None);
        assert_eq!(jain(&[]), None);
    }

    #[test]
    fn goodput_takes_partial_bins_pro_rata() {
        let r = two([1000, 2000, 4000, 8000], [0; 4]);
        let s = spec(&r);
        let m = Metrics::new(&s, &r);
        assert_eq!(m.goodput_bps(0, 0.0, 4.0), Some(15_000.0 * 8.0 / 4.0));
        // Half of bin 1, all of bin 2, a quarter of bin 3: 1000 + 4000 + 2000 bytes in 1.75 s.
        assert_eq!(m.goodput_bps(0, 1.5, 3.25), Some(7000.0 * 8.0 / 1.75));
        assert_eq!(m.goodput_bps(0, 2.25, 2.5), Some(4000.0 * 8.0));
        assert_eq!(m.goodput_bps(0, 2.0, 2.0), None);
        assert_eq!(m.goodput_bps(0, 3.0, 4.5), None, "beyond the run");
        assert_eq!(m.goodput_bps(0, -1.0, 2.0), None);
        assert_eq!(m.goodput_of_capacity(&[0, 1], 0.0, 4.0), Some(0.03));
        assert_eq!(
            m.goodput_series(0, 1.5),
            [(0.0, 2000.0 * 8.0 / 1.5), (1.5, 5000.0 * 8.0 / 1.5), (3.0, 64_000.0)]
        );
        let without = RunRecord { bin_ns: 0, ..r.clone() };
        assert_eq!(Metrics::new(&s, &without).goodput_bps(0, 0.0, 4.0), None);
    }

    #[test]
    fn capacity_follows_the_rate_at_the_time() {
        let mut r = two([100_000, 50_000, 0, 25_000], [0; 4]);
        r.queues[0].departed_bytes = 175_000;
        let mut s = spec(&r);
        // 1 Mbit/s for 1 s, then half of it, from 2 s on nothing, from 3 s on 2 Mbit/s.
        let steps = vec![(NS_PER_S, 500_000), (2 * NS_PER_S, 0), (3 * NS_PER_S, 2_000_000)];
        s.path.hops[0].rate_varies = Some(Varying::Steps(steps));
        let m = Metrics::new(&s, &r);
        assert_eq!(m.goodput_of_capacity(&[0], 0.0, 1.0), Some(0.8));
        assert_eq!(m.goodput_of_capacity(&[0], 1.0, 2.0), Some(0.8));
        assert_eq!(m.goodput_of_capacity(&[0], 2.0, 3.0), None, "an outage");
        assert_eq!(m.goodput_of_capacity(&[0], 2.0, 4.0), Some(0.1));
        // 1.4 of 3.5 Mbit.
        assert_eq!(m.utilisation(), Some(0.4));
        assert_eq!(m.lifetime_goodput_of_capacity(0), Some(0.4));
    }

    #[test]
    fn a_last_bin_cut_short_counts_by_its_real_length() {
        let r = record(2.5, 1.0, vec![flow("a", "hd", &[1000, 1000, 1000])]);
        let s = spec(&r);
        let m = Metrics::new(&s, &r);
        assert_eq!(m.bins(), 3);
        assert_eq!(m.bin_s(2), 2.0..2.5);
        assert_eq!(m.goodput_bps(0, 2.0, 2.5), Some(16_000.0));
        assert_eq!(m.goodput_bps(0, 2.25, 2.5), Some(16_000.0));
    }

    #[test]
    fn lifetime_goodput_needs_no_bins() {
        let mut r = record(4.0, 0.0, vec![flow("a", "hd", &[])]);
        r.flows[0].start_ns = NS_PER_S;
        r.flows[0].stop_ns = 3 * NS_PER_S;
        r.flows[0].counters.delivered_bytes = 5000;
        let s = spec(&r);
        let m = Metrics::new(&s, &r);
        assert_eq!(m.lifetime_goodput_bps(0), Some(20_000.0));
        assert_eq!(m.common_life_s(&[0]), 1.0..3.0);
        assert!(m.goodput_series(0, 1.0).is_empty());
    }

    #[test]
    fn queue_measures() {
        let mut r = two([0; 4], [0; 4]);
        let bin = |pkts, mean_ms: u64, max_ms: u64, held| QueueBin {
            departed_pkts: pkts,
            departed_bytes: u64::from(pkts) * 1250,
            delay_sum_ns: u64::from(pkts) * mean_ms * MS,
            delay_max_ns: max_ms * MS,
            held_pkts: held,
            ..QueueBin::default()
        };
        r.queues[0] =
            queue(&[bin(10, 1, 2, 4), bin(20, 4, 8, 8), bin(0, 0, 0, 0), bin(40, 10, 30, 2)]);
        let s = spec(&r);
        let m = Metrics::new(&s, &r);
        // 1 Mbit/s; 70 packets of 10 000 bits in 4 s.
        assert_eq!(m.utilisation(), Some(0.175));
        assert_eq!(m.utilisation_in(0.0, 4.0), Some(0.175));
        assert_eq!(m.utilisation_in(0.5, 1.5), Some(0.15)); // 5 + 10 packets
        assert_eq!(m.mean_queueing_delay_ms(0.0, 2.0), Some(3.0)); // (10·1 + 20·4) / 30
        assert_eq!(m.mean_queueing_delay_ms(0.5, 1.5), Some(3.0));
        assert_eq!(m.mean_queueing_delay_ms(2.0, 3.0), None);
        assert_eq!(m.max_queueing_delay_ms(0.0, 1.5), Some(8.0));
        assert_eq!(m.max_queueing_delay_ms(2.0, 3.0), None);
        // 70 packets: 10 waited 1 ms, 20 waited 4 ms, 40 waited 10 ms.
        let percentile = |q| m.queueing_delay_percentile_ms(q, 0.0, 4.0);
        assert_eq!(percentile(10.0 / 70.0), Some(1.0));
        assert_eq!(percentile(30.0 / 70.0), Some(4.0));
        assert_eq!((percentile(0.5), percentile(1.0)), (Some(10.0), Some(10.0)));
        // Half of the first bin: 5 packets of 25.
        assert_eq!(m.queueing_delay_percentile_ms(0.2, 0.5, 2.0), Some(1.0));
        assert_eq!(m.queueing_delay_percentile_ms(0.21, 0.5, 2.0), Some(4.0));
        assert_eq!(m.queueing_delay_percentile_ms(0.5, 2.0, 3.0), None);
        assert_eq!(m.mean_queue_pkts(0.0, 4.0), Some(3.5));
        assert_eq!(m.mean_queue_pkts(0.5, 2.0), Some(10.0 / 1.5));
        assert_eq!(m.queueing_delay(), None);
        let mut delay = DelayStats::default();
        [1, 2, 3, 10].iter().for_each(|d| delay.add(d * MS));
        r.queues[0].delay = delay;
        let d = Metrics::new(&s, &r).queueing_delay().unwrap();
        assert_eq!((d.pkts, d.mean_ms, d.max_ms), (4, 4.0, 10.0));
        assert!((d.p50_ms - 2.0).abs() < 0.01 && (d.p99_ms - 10.0).abs() < 0.04);
    }

    #[test]
    fn fairness_over_windows() {
        let r = two([1000, 3000, 2000, 2000], [0, 1000, 2000, 2000]);
        let s = spec(&r);
        let m = Metrics::new(&s, &r);
        let both = [m.flow("a").unwrap(), m.flow("b").unwrap()];
        assert_eq!(m.jain(&both, 0.0, 1.0), Some(0.5));
        assert_eq!(m.jain(&both, 1.0, 2.0), Some(0.8));
        assert_eq!(m.jain(&both, 2.0, 4.0), Some(1.0));
        assert_eq!(m.share(&[0], &[1], 0.0, 4.0), Some(8.0 / 13.0));
        assert_eq!(m.mean_ratio(&[0], &[1], 0.0, 4.0), Some(8.0 / 5.0));
        assert_eq!(m.mean_ratio(&[0, 1], &[1], 1.0, 2.0), Some(2.0));
        assert_eq!(m.mean_ratio(&[0], &[1], 0.0, 1.0), None, "the other group had nothing");
        assert_eq!(m.flow("c"), None);
        assert_eq!(m.flows_of("newreno"), [1]);
    }

    #[test]
    fn losses_of_a_window() {
        let mut r = two([0; 4], [0; 4]);
        for (flow, counts) in [(0, [(10, 1), (20, 2), (30, 0), (0, 0)]), (1, [(40, 8); 4])] {
            for (sample, (sent, lost)) in r.flows[flow].samples.iter_mut().zip(counts) {
                (sample.sent_pkts, sample.lost_pkts) = (sent, lost);
            }
        }
        let s = spec(&r);
        let m = Metrics::new(&s, &r);
        assert_eq!(m.loss_fraction(&[0], 0.0, 4.0), Some(0.05));
        assert_eq!(m.loss_fraction(&[0], 0.5, 2.0), Some(2.5 / 25.0));
        assert_eq!(m.loss_fraction(&[0, 1], 1.0, 2.0), Some(10.0 / 60.0));
        assert_eq!(m.loss_fraction(&[0], 3.0, 4.0), None, "nothing was sent");
        assert_eq!(m.lost_pkts(0, 0.0, 4.0), Some(3.0));
        assert_eq!(m.lost_pkts(0, 0.5, 1.25), Some(1.0)); // half of 1 and a quarter of 2

        // A flow drawn from a source has rows from its start only: here from bin 2 on.
        r.flows[0].first_bin = 2;
        r.flows[0].samples.truncate(2);
        let m = Metrics::new(&s, &r);
        assert_eq!(m.loss_fraction(&[0], 0.0, 2.0), None, "nothing was sent yet");
        assert_eq!(m.loss_fraction(&[0], 2.0, 3.0), Some(0.1));
        assert_eq!(m.loss_fraction(&[0], 2.0, 4.0), Some(0.1)); // 3 of 30
        assert_eq!((m.lost_pkts(0, 0.0, 2.0), m.lost_pkts(0, 2.0, 4.0)), (Some(0.0), Some(3.0)));
    }

    #[test]
    fn losses_in_a_row_are_one_event() {
        let mut r = record(6.0, 1.0, vec![flow("a", "chd", &[0; 6])]);
        for bin in [0, 1, 4] {
            r.flows[0].samples[bin].lost_pkts = 1;
        }
        let s = spec(&r);
        assert_eq!(Metrics::new(&s, &r).loss_times_s(0, 2.0), [0.0, 4.0]);
        assert_eq!(Metrics::new(&s, &r).loss_times_s(0, 1.0), [0.0, 1.0, 4.0]);
        // The gap is from the bin before, not from the event's start.
        r.flows[0].samples[2].lost_pkts = 1;
        assert_eq!(Metrics::new(&s, &r).loss_times_s(0, 2.0), [0.0, 4.0]);
        r.flows[0].first_bin = 10;
        assert_eq!(Metrics::new(&s, &r).loss_times_s(0, 2.0), [10.0, 14.0]);
    }

    #[test]
    fn a_state_is_that_at_the_end_of_its_bin() {
        let mut r = record(4.0, 1.0, vec![flow("a", "chd", &[0; 4])]);
        for (sample, cwnd_pkts) in r.flows[0].samples.iter_mut().zip([10, 20, 30, 40]) {
            sample.cwnd_pkts = cwnd_pkts;
        }
        let s = spec(&r);
        let window = |r: &RunRecord, at| Metrics::new(&s, r).sample(0, at).map(|s| s.cwnd_pkts);
        assert_eq!(
            (window(&r, 0.0), window(&r, 1.99), window(&r, 3.5)),
            (Some(10), Some(20), Some(40))
        );
        assert_eq!((window(&r, 4.0), window(&r, -0.1)), (None, None));
        r.flows[0].first_bin = 2;
        assert_eq!((window(&r, 1.5), window(&r, 2.5)), (None, Some(10)));
    }

    #[test]
    fn convergence_is_the_first_time_that_lasts() {
        // Jain per bin: 0.5, 1, 0.5, 1, 1, 1.
        let a = flow("a", "hd", &[10, 10, 10, 10, 10, 10]);
        let b = flow("b", "hd", &[0, 10, 0, 10, 10, 10]);
        let r = record(6.0, 1.0, vec![a, b]);
        let s = spec(&r);
        let m = Metrics::new(&s, &r);
        let converged =
            |from, to, threshold| m.convergence_s(&[0, 1], from, to, 1.0, threshold, 1.0);
        // The fair second 1 does not last for a window; from 3 it does.
        assert_eq!(converged(0.0, 6.0, 0.99), Some(3.0));
        assert_eq!(converged(2.0, 6.0, 0.99), Some(1.0));
        assert_eq!(converged(3.0, 6.0, 0.99), Some(0.0));
        assert_eq!(converged(0.0, 4.0, 0.99), None, "must hold for a window before the end");
        assert_eq!(converged(0.0, 6.0, 0.5), Some(0.0));
        // Windows of 2 s: (10+10, 0+10) has 0.9, (10+10, 10+0) too, then 0.9, 1, 1.
        assert_eq!(m.convergence_s(&[0, 1], 0.0, 6.0, 2.0, 0.89, 2.0), Some(0.0));
        assert_eq!(m.convergence_s(&[0, 1], 0.0, 6.0, 2.0, 0.95, 2.0), None);
    }

    #[test]
    fn probes() {
        let mut r = two([0; 4], [0; 4]);
        r.flows[1].kind = "probe".into();
        r.flows[1].probe_delays =
            vec![(0, 50 * MS), (NS_PER_S, 40 * MS), (2 * NS_PER_S, 60 * MS), (3 * NS_PER_S, 0)];
        let s = spec(&r);
        let m = Metrics::new(&s, &r);
        assert_eq!(m.probe_delay_ms(1, 0.5, 0.0, 3.0), Some(50.0));
        assert_eq!(m.probe_delay_ms(1, 0.25, 0.0, 3.0), Some(45.0));
        assert_eq!(m.probe_delay_ms(1, 0.5, 3.5, 4.0), None);
        assert_eq!(m.tcp_flows(), [0]);
    }

    /// A run of 10 s of flow "video", a chunk every 2 s, with transfers that end at these times, and
    /// `unfinished` more.
    fn video(ends_ms: &[u64], unfinished: usize) -> (RunSpec, RunRecord) {
        let mut r = record(10.0, 1.0, vec![flow("video", "chd", &[])]);
        let start_ns = |n: usize| 2 * n as u64 * NS_PER_S;
        let chunk = |(n, end_ms): (usize, &u64)| Transfer {
            start_ns: start_ns(n),
            end_ns: end_ms * MS,
            bytes: 1000,
        };
        r.flows[0].transfers = ends_ms.iter().enumerate().map(chunk).collect();
        let more = ends_ms.len()..ends_ms.len() + unfinished;
        r.flows[0].unfinished =
            more.map(|n| Unfinished { start_ns: start_ns(n), bytes: 1000 }).collect();
        let mut s = spec(&r);
        if let FlowKind::Tcp(tcp) = &mut s.flows[0].kind {
            let every_ns = Some(2 * NS_PER_S);
            tcp.workload = Workload::Transfers { size_bytes: 1000, every_ns };
        }
        (s, r)
    }

    #[test]
    fn a_player_waits_for_late_chunks() {
        let stalled = |ends_ms: &[u64], unfinished| {
            let (s, r) = video(ends_ms, unfinished);
            Metrics::new(&s, &r).stalled_s(0)
        };
        // Plays from 0.5 s on; chunks are needed at 2.5, 4.5, 6.5, 8.5 s.
        assert_eq!(stalled(&[500, 2500, 4400, 6000, 8000], 0), Some(0.0));
        // The second is 0.3 s late, so that the third is needed at 4.8 s; then 0.7 s late; then the
        // fourth is needed at 7.5 s.
        assert_eq!(stalled(&[500, 2800, 5500, 7500, 7600], 0), Some(1.0));
        // Needed at 4.5 s, and never there: until the end of the run.
        assert_eq!(stalled(&[500, 2500], 3), Some(5.5));
        assert_eq!(stalled(&[], 5), None);
        let (s, r) = video(&[500], 0);
        let bulk = spec(&r);
        assert_eq!(Metrics::new(&bulk, &r).stalled_s(0), None);
        // Transfers after the stop of the flow are not needed.
        let (_, mut r) = (s.clone(), video(&[500, 2500], 3).1);
        r.flows[0].stop_ns = 5 * NS_PER_S;
        assert_eq!(Metrics::new(&s, &r).stalled_s(0), Some(0.5));
    }

    #[test]
    fn completion_times_by_size() {
        let mut r = two([1000, 0, 0, 0], [0; 4]);
        r.flows[1].source = "web".into();
        r.flows.push(FlowRecord { first_bin: 2, ..flow("web#2", "newreno", &[500, 300]) });
        r.flows[2].source = "web".into();
        let took =
            |ms: u64, bytes| Transfer { start_ns: NS_PER_S, end_ns: NS_PER_S + ms * MS, bytes };
        r.flows[1].transfers = vec![took(300, 100), took(100, 9999), took(900, 10_000)];
        r.flows[2].transfers = vec![took(200, 5000)];
        r.flows[2].unfinished = vec![Unfinished { start_ns: 0, bytes: 20_000 }];
        let s = spec(&r);
        let m = Metrics::new(&s, &r);
        assert_eq!((m.sources(), m.flows_from("web")), (vec!["web"], vec![1, 2]));
        assert_eq!((m.tcp_flows(), m.flows_of("newreno")), (vec![0], vec![]));
        assert_eq!(m.completion_times_s(&[1, 2], &SIZE_CLASSES[0].1), [0.1, 0.2, 0.3]);
        let all = m.completion(&[1, 2], &(0..u64::MAX)).unwrap();
        assert_eq!((all.completed, all.unfinished, all.max_s), (4, 1, Some(0.9)));
        assert_eq!(all.p50_s, Some(0.25));
        assert!((all.mean_s.unwrap() - 0.375).abs() < 1e-12);
        let larger = m.completion(&[2], &SIZE_CLASSES[1].1).unwrap();
        assert_eq!((larger.completed, larger.unfinished, larger.p99_s), (0, 1, None));
        assert_eq!(m.completion(&[0], &(0..u64::MAX)), None);
        // The second flow of the source has rows from its third bin on.
        assert_eq!(m.goodput_bps(2, 2.0, 3.0), Some(4000.0));
        assert_eq!(m.goodput_bps(2, 0.0, 2.0), Some(0.0));
        let together = m.together("web", &[1, 2]);
        let bytes: Vec<u64> = together.samples.iter().map(|s| s.delivered_bytes).collect();
        assert_eq!(bytes, [0, 0, 500, 300]);
    }

    #[test]
    fn classes_of_sizes_meet() {
        let ends = SIZE_CLASSES.windows(2).all(|c| c[0].1.end == c[1].1.start);
        assert!(ends && SIZE_CLASSES[0].1.start == 0 && SIZE_CLASSES[3].1.end == u64::MAX);
    }

    #[test]
    fn causes_and_regions() {
        let mut r = two([0; 4], [0; 4]);
        r.flows[0].counters = FlowCounters {
            sent_pkts: 90,
            queue_drops_pkts: 6,
            random_losses_pkts: 3,
            ack_losses_pkts: 5,
            loss_events: 7,
            losses_tolerated: 2,
            losses_region_b: 4,
            timeouts: 1,
            undos: 1,
            delay_backoffs_region_a: 11,
            delay_backoffs_region_b: 12,
            rounds_region_a: 19,
            rounds_region_b: 1,
            ..FlowCounters::default()
        };
        r.flows[1].counters =
            FlowCounters { sent_pkts: 10, queue_drops_pkts: 1, ..FlowCounters::default() };
        let s = spec(&r);
        let m = Metrics::new(&s, &r);
        assert_eq!(m.lost_fraction(&[0, 1]), Some(0.1));
        assert_eq!(m.lost_fraction(&[]), None);
        assert_eq!(m.rounds_in_region_a(&[0]), Some(0.95));
        assert_eq!(m.rounds_in_region_a(&[1]), None);
    }
}
