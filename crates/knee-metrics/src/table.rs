//! The table of metrics, from which the summary, the tables of `knee run`, the formulas of claims, the
//! columns of studies, the Python package, the lab and `docs/reference/metrics.md` are made.

use crate::{Completion, Metrics, is_tcp, ms, ratio};
use knee_model::{DelayStats, FlowCounters, FlowRecord, seconds};
use std::cell::OnceCell;

/// A metric: a named measurement of a run, of one of its queues or of one of its flows.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Name, whose last part is the unit.
    pub name: &'static str,
    /// Subject.
    pub subject: Subject,
    /// Unit; a range for a number without one.
    pub unit: &'static str,
    /// Description: a noun phrase.
    pub meaning: &'static str,
    /// Function that measures it.
    pub get: Get,
    /// True if `over_repetitions` of `summary.json` has it.
    pub in_summary: bool,
    /// True if the tables `runs` or `flows` of a study have it.
    pub in_study: bool,
    /// Its place in the tables that `knee run` prints.
    pub shown: Option<Shown>,
}

/// The subject of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// All TCP flows of a run together.
    Run,
    /// A queue and its link; the first bottleneck where nothing else is said.
    Queue,
    /// A flow.
    Flow,
}

impl Subject {
    /// Name of the subject in the reference and in Python.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Queue => "queue",
            Self::Flow => "flow",
        }
    }
}

/// The function of a metric: its value, `None` where it is undefined.
#[derive(Clone, Copy, Debug)]
pub enum Get {
    /// A count over the whole run.
    Count(fn(&Scope<'_>) -> Option<u64>),
    /// A number over the whole run.
    Number(fn(&Scope<'_>) -> Option<f64>),
    /// A number over the window of the scope.
    Windowed(fn(&Scope<'_>) -> Option<f64>),
}
use Get::{Count, Number, Windowed};

/// A table of `knee run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Flows that carry data.
    Flows,
    /// Queues, and the run as a whole.
    Queues,
    /// Packets of the TCP flows.
    Packets,
    /// Reductions of the windows of the TCP flows.
    Reductions,
    /// Probes of the one-way delay.
    Probes,
}

/// The form of a metric in a table of `knee run`.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// The table.
    pub place: Place,
    /// Name and unit as they are shown.
    pub heading: &'static str,
    /// Conversion from the metric's unit.
    pub scale: Scale,
    /// Number of decimals.
    pub decimals: usize,
    /// True if a row of zeros is left out.
    pub unless_zero: bool,
}

/// Conversion of a metric's unit for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// The metric's unit.
    One,
    /// A fraction in percent.
    Percent,
    /// bit/s in Mbit/s.
    Mega,
}

impl Scale {
    /// The converted value.
    pub fn of(self, value: f64) -> f64 {
        match self {
            Self::One => value,
            Self::Percent => value * 100.0,
            Self::Mega => value / 1e6,
        }
    }
}

/// The subject of a metric in a run: a flow or all TCP flows, a queue, a window.
#[derive(Debug)]
pub struct Scope<'a> {
    run: Metrics<'a>,
    flows: Vec<usize>,
    window_s: Option<(f64, f64)>,
    completion: OnceCell<Option<Completion>>,
}

impl<'a> Scope<'a> {
    /// A run, with the queue to which `run` refers, and all its TCP flows, those of sources too. Metrics
    /// cover the window, seconds, or the whole run.
    pub fn of_run(run: Metrics<'a>, window_s: Option<(f64, f64)>) -> Self {
        let flows = run.select(is_tcp);
        Self { run, flows, window_s, completion: OnceCell::new() }
    }

    /// A flow of a run within a window, seconds, or over the whole run.
    pub fn of_flow(run: Metrics<'a>, flow: usize, window_s: Option<(f64, f64)>) -> Self {
        Self { run, flows: vec![flow], window_s, completion: OnceCell::new() }
    }

    fn flow(&self) -> &'a FlowRecord {
        &self.run.record.flows[self.flows[0]]
    }

    fn counters(&self) -> &'a FlowCounters {
        &self.flow().counters
    }

    /// A count that only TCP flows have.
    fn tcp(&self, count: u64) -> Option<u64> {
        is_tcp(self.flow()).then_some(count)
    }

    /// A metric of the window if there is one, else of the whole run.
    fn within(
        &self,
        whole: impl FnOnce(&Metrics<'a>) -> Option<f64>,
        within: impl FnOnce(&Metrics<'a>, f64, f64) -> Option<f64>,
    ) -> Option<f64> {
        match self.window_s {
            None => whole(&self.run),
            Some((from_s, to_s)) => within(&self.run, from_s, to_s),
        }
    }

    fn total_goodput_bps(&self) -> Option<f64> {
        let whole = |m: &Metrics<'a>| {
            let bytes = m.count(&self.flows, |c| c.delivered_bytes);
            ratio(bytes as f64 * 8.0, seconds(m.record.duration_ns))
        };
        self.within(whole, |m, from_s, to_s| m.total_goodput_bps(&self.flows, from_s, to_s))
    }

    fn goodput_bps(&self) -> Option<f64> {
        let flow = self.flows[0];
        self.within(
            |m| m.lifetime_goodput_bps(flow),
            |m, from_s, to_s| m.goodput_bps(flow, from_s, to_s),
        )
    }

    fn queueing_delay_ms(&self, q: f64) -> Option<f64> {
        self.within(
            |m| quantile_ms(&m.queue().delay, q),
            |m, from_s, to_s| m.queueing_delay_percentile_ms(q, from_s, to_s),
        )
    }

    fn jain(&self) -> Option<f64> {
        let flows = self.run.tcp_flows();
        let life = self.run.common_life_s(&flows);
        let (from_s, to_s) = self.window_s.unwrap_or((life.start, life.end));
        let jain = self.run.jain(&flows, from_s.max(life.start), to_s.min(life.end));
        jain.filter(|_| flows.len() > 1)
    }

    fn loss(&self) -> Option<f64> {
        self.within(
            |m| m.lost_fraction(&self.flows),
            |m, from_s, to_s| m.loss_fraction(&self.flows, from_s, to_s),
        )
    }

    fn completion(&self) -> Option<Completion> {
        *self.completion.get_or_init(|| self.run.completion(&self.flows, &(0..u64::MAX)))
    }
}

fn mean_ms(delay: &DelayStats) -> Option<f64> {
    (delay.count() > 0).then(|| ms(delay.mean_ns()))
}

fn max_ms(delay: &DelayStats) -> Option<f64> {
    (delay.count() > 0).then(|| ms(delay.max_ns() as f64))
}

fn quantile_ms(delay: &DelayStats, q: f64) -> Option<f64> {
    (delay.count() > 0).then(|| ms(delay.quantile_ns(q) as f64))
}

impl Metric {
    const fn new(
        subject: Subject,
        name: &'static str,
        unit: &'static str,
        meaning: &'static str,
        get: Get,
    ) -> Self {
        let (in_summary, in_study, shown) = (false, false, None);
        Self { name, subject, unit, meaning, get, in_summary, in_study, shown }
    }

    const fn in_summary(mut self) -> Self {
        self.in_summary = true;
        self
    }

    const fn in_study(mut self) -> Self {
        self.in_study = true;
        self
    }

    const fn shown(
        mut self,
        place: Place,
        heading: &'static str,
        scale: Scale,
        decimals: usize,
    ) -> Self {
        self.shown = Some(Shown { place, heading, scale, decimals, unless_zero: false });
        self
    }

    const fn unless_zero(mut self) -> Self {
        if let Some(shown) = &mut self.shown {
            shown.unless_zero = true;
        }
        self
    }

    /// Returns whether the metric takes a window.
    pub fn is_windowed(&self) -> bool {
        matches!(self.get, Windowed(_))
    }

    /// The value in `scope`, which is of the metric's subject.
    pub fn value(&self, scope: &Scope<'_>) -> Option<f64> {
        match self.get {
            Count(get) => get(scope).map(|count| count as f64),
            Number(get) | Windowed(get) => get(scope),
        }
    }
}

/// Metrics of `subject` in `over_repetitions` of `summary.json`.
pub fn in_summary(subject: Subject) -> impl Iterator<Item = &'static Metric> {
    METRICS.iter().filter(move |m| m.subject == subject && m.in_summary)
}

/// Metrics in the table of a study that has a row for each run or flow.
pub fn in_study(of_flows: bool) -> impl Iterator<Item = &'static Metric> {
    METRICS.iter().filter(move |m| (m.subject == Subject::Flow) == of_flows && m.in_study)
}

/// Metrics of `subject` in a table of `knee run`, each with its form.
pub fn shown_in(subject: Subject, place: Place) -> impl Iterator<Item = (&'static Metric, Shown)> {
    let of_subject = METRICS.iter().filter(move |m| m.subject == subject);
    of_subject.filter_map(|m| Some((m, m.shown?))).filter(move |(_, shown)| shown.place == place)
}

/// The metric of a flow (`of_flow`), or of a run or queue, called `name`.
pub fn metric(name: &str, of_flow: bool) -> Option<&'static Metric> {
    METRICS.iter().find(|m| m.name == name && (m.subject == Subject::Flow) == of_flow)
}

const fn run(name: &'static str, unit: &'static str, meaning: &'static str, get: Get) -> Metric {
    Metric::new(Subject::Run, name, unit, meaning, get)
}

const fn queue(name: &'static str, unit: &'static str, meaning: &'static str, get: Get) -> Metric {
    Metric::new(Subject::Queue, name, unit, meaning, get)
}

const fn flow(name: &'static str, unit: &'static str, meaning: &'static str, get: Get) -> Metric {
    Metric::new(Subject::Flow, name, unit, meaning, get)
}

use Place::{Flows, Packets, Probes, Queues, Reductions};
use Scale::{Mega, One, Percent};

/// All metrics, in the order of every output. To add one, add its row here
/// (`CONTRIBUTING.md`, Recipes).
#[rustfmt::skip]
pub static METRICS: &[Metric] = &[
    run("goodput_bps", "bit/s", "payload that all TCP flows together delivered in order",
        Windowed(|v| v.total_goodput_bps())).in_study(),
    queue("utilisation", "0 to 1", "used fraction of the link's capacity, headers included",
        Windowed(|v| v.within(Metrics::utilisation, Metrics::utilisation_in)))
        .in_study().in_summary().shown(Queues, "utilisation (%)", Percent, 2),
    queue("queueing_delay_mean_ms", "ms",
        "mean waiting time of the packets that left, own transmission excluded",
        Windowed(|v| v.within(|m| mean_ms(&m.queue().delay), Metrics::mean_queueing_delay_ms)))
        .in_study().in_summary().shown(Queues, "queueing delay, mean (ms)", One, 2),
    queue("queueing_delay_p50_ms", "ms",
        "median of the waiting times; within a window each packet has the mean of its bin",
        Windowed(|v| v.queueing_delay_ms(0.5)))
        .in_study().shown(Queues, "queueing delay, median (ms)", One, 2),
    queue("queueing_delay_p95_ms", "ms",
        "95th percentile of the waiting times; windows as for the median",
        Windowed(|v| v.queueing_delay_ms(0.95)))
        .in_study().in_summary().shown(Queues, "queueing delay, 95th percentile (ms)", One, 2),
    queue("queueing_delay_p99_ms", "ms",
        "99th percentile of the waiting times; windows as for the median",
        Windowed(|v| v.queueing_delay_ms(0.99)))
        .in_study().shown(Queues, "queueing delay, 99th percentile (ms)", One, 2),
    queue("queueing_delay_max_ms", "ms", "longest waiting time",
        Windowed(|v| v.within(|m| max_ms(&m.queue().delay), Metrics::max_queueing_delay_ms)))
        .in_study().shown(Queues, "queueing delay, largest (ms)", One, 2),
    run("jain", "1/n to 1",
        "Jain's index of the goodputs of the TCP flows that the scenario names, while all of them \
         are alive; undefined with fewer than two",
        Windowed(|v| v.jain()))
        .in_study().in_summary().shown(Queues, "Jain's index, while all TCP flows were alive", One, 3),
    run("loss", "0 to 1", "fraction of the sent TCP packets that were dropped or lost",
        Windowed(|v| v.loss())).in_study(),
    queue("departed_pkts", "packets", "packets that left the queue",
        Count(|v| Some(v.run.queue().departed_pkts))).in_study(),
    queue("dropped_pkts", "packets",
        "packets dropped: the queue was full, or its discipline chose them",
        Count(|v| Some(v.run.queue().dropped_pkts)))
        .in_study().in_summary().shown(Queues, "dropped by the queue (packets)", One, 0),
    queue("marked_pkts", "packets", "packets that left the queue with a congestion mark (ECN)",
        Count(|v| Some(v.run.queue().marked_pkts)))
        .in_study().in_summary().shown(Queues, "marked (packets)", One, 0).unless_zero(),
    queue("max_held_pkts", "packets", "largest number of packets in the queue",
        Count(|v| Some(v.run.queue().max_pkts.into())))
        .in_study().shown(Queues, "most packets held", One, 0),
    run("transfers_completed", "transfers", "completed transfers of all flows",
        Count(|v| Some(v.completion()?.completed as u64))).in_study(),
    run("transfers_unfinished", "transfers",
        "transfers of all flows that were unfinished at the end of the run",
        Count(|v| Some(v.completion()?.unfinished as u64))).in_study(),
    run("completion_mean_s", "s", "mean completion time of the completed transfers",
        Number(|v| v.completion()?.mean_s)).in_study(),
    run("completion_p50_s", "s", "median of the completion times",
        Number(|v| v.completion()?.p50_s)).in_study(),
    run("completion_p95_s", "s", "95th percentile of the completion times",
        Number(|v| v.completion()?.p95_s)).in_study(),
    run("completion_p99_s", "s", "99th percentile of the completion times",
        Number(|v| v.completion()?.p99_s)).in_study(),

    flow("goodput_bps", "bit/s", "payload delivered in order, over the flow's life",
        Windowed(|v| v.goodput_bps()))
        .in_study().in_summary().shown(Flows, "goodput (Mbit/s)", Mega, 3),
    flow("goodput_of_capacity", "0 to 1",
        "goodput over the flow's life as a fraction of the capacity of the slowest link on its route",
        Number(|v| v.run.lifetime_goodput_of_capacity(v.flows[0])))
        .shown(Flows, "of capacity (%)", Percent, 1),
    flow("rtt_mean_ms", "ms", "mean of the RTT samples that the algorithm received",
        Number(|v| mean_ms(&v.flow().rtt)))
        .in_study().in_summary().shown(Flows, "RTT mean (ms)", One, 1),
    flow("rtt_p50_ms", "ms", "median of the RTT samples",
        Number(|v| quantile_ms(&v.flow().rtt, 0.5))).in_study(),
    flow("rtt_p95_ms", "ms", "95th percentile of the RTT samples",
        Number(|v| quantile_ms(&v.flow().rtt, 0.95)))
        .in_study().in_summary().shown(Flows, "RTT p95 (ms)", One, 1),
    flow("one_way_delay_p50_ms", "ms", "median of a probe's one-way delays",
        Number(|v| quantile_ms(&v.flow().one_way_delay, 0.5)))
        .in_study().in_summary().shown(Probes, "median (ms)", One, 2),
    flow("one_way_delay_p95_ms", "ms", "95th percentile of a probe's one-way delays",
        Number(|v| quantile_ms(&v.flow().one_way_delay, 0.95)))
        .in_study().shown(Probes, "p95 (ms)", One, 2),
    flow("one_way_delay_p99_ms", "ms", "99th percentile of a probe's one-way delays",
        Number(|v| quantile_ms(&v.flow().one_way_delay, 0.99)))
        .shown(Probes, "p99 (ms)", One, 2),
    flow("lost_pkts", "packets", "packets dropped or lost on the way to the receiver",
        Count(|v| Some(v.counters().queue_drops_pkts + v.counters().random_losses_pkts)))
        .shown(Probes, "lost (packets)", One, 0),
    flow("sent_pkts", "packets", "packets sent, retransmissions included",
        Count(|v| Some(v.counters().sent_pkts)))
        .in_study().shown(Packets, "sent", One, 0),
    flow("retransmitted_pkts", "packets", "retransmissions of a TCP flow",
        Count(|v| v.tcp(v.counters().retransmitted_pkts)))
        .in_study().shown(Packets, "retransmitted", One, 0),
    flow("delivered_bytes", "bytes", "payload delivered in order, exactly once",
        Count(|v| Some(v.counters().delivered_bytes))).in_study(),
    flow("queue_drops_pkts", "packets", "packets dropped by a queue on the way to the receiver",
        Count(|v| Some(v.counters().queue_drops_pkts)))
        .in_study().shown(Packets, "dropped by the queue", One, 0),
    flow("marked_pkts", "packets", "packets that left the bottleneck with a congestion mark (ECN)",
        Count(|v| Some(v.counters().marked_pkts)))
        .shown(Packets, "marked", One, 0),
    flow("random_losses_pkts", "packets", "packets lost at random on the way to the receiver",
        Count(|v| Some(v.counters().random_losses_pkts)))
        .in_study().shown(Packets, "lost at random", One, 0),
    flow("lost_acks_pkts", "packets", "ACKs lost at random, or dropped by a queue",
        Count(|v| Some(v.counters().ack_losses_pkts + v.counters().ack_drops_pkts)))
        .shown(Packets, "ACKs lost or dropped", One, 0),
    flow("delay_backoffs_region_a", "events", "reductions of the window on delay, in region A",
        Count(|v| v.tcp(v.counters().delay_backoffs_region_a)))
        .shown(Reductions, "on delay, region A", One, 0),
    flow("delay_backoffs_region_b", "events", "reductions of the window on delay, in region B",
        Count(|v| v.tcp(v.counters().delay_backoffs_region_b)))
        .shown(Reductions, "on delay, region B", One, 0),
    flow("fast_recoveries", "events",
        "fast recoveries, and reductions on congestion marks, that reduced the window",
        Count(|v| v.tcp(v.counters().loss_events.saturating_sub(v.counters().losses_tolerated))))
        .in_study().shown(Reductions, "fast recoveries", One, 0),
    flow("losses_tolerated", "events", "fast recoveries that left the window unchanged",
        Count(|v| v.tcp(v.counters().losses_tolerated)))
        .in_study().shown(Reductions, "losses tolerated", One, 0),
    flow("timeouts", "events", "retransmission timeouts",
        Count(|v| v.tcp(v.counters().timeouts)))
        .in_study().shown(Reductions, "timeouts", One, 0),
    flow("delay_backoffs", "events", "reductions of the window on delay",
        Count(|v| {
            let counters = v.counters();
            v.tcp(counters.delay_backoffs_region_a + counters.delay_backoffs_region_b)
        })).in_study(),
    flow("rounds_in_region_a", "0 to 1", "fraction of the rounds whose delay lay in region A",
        Number(|v| v.run.rounds_in_region_a(&v.flows)))
        .in_study().shown(Reductions, "rounds in region A (%)", Percent, 1),
    flow("completion_p50_s", "s", "median of the completion times of the flow's transfers",
        Number(|v| v.completion()?.p50_s)).in_study(),
    flow("completion_p95_s", "s", "95th percentile of the completion times of the flow's transfers",
        Number(|v| v.completion()?.p95_s)).in_study(),
    flow("stalled_s", "s", "total time for which a player of the flow's periodic transfers stalled",
        Number(|v| v.run.stalled_s(v.flows[0]))).in_study().in_summary(),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Formulas, Python and the study's columns find a metric by its name alone.
    #[test]
    fn a_name_is_unique_for_flows_and_for_the_rest() {
        for (n, of) in METRICS.iter().enumerate() {
            let first = metric(of.name, of.subject == Subject::Flow).expect("the metric itself");
            assert!(std::ptr::eq(first, &raw const METRICS[n]), "{} is there twice", of.name);
        }
    }

    #[test]
    fn a_name_ends_with_its_unit() {
        let suffixes = [
            ("bit/s", "_bps"),
            ("ms", "_ms"),
            ("s", "_s"),
            ("packets", "_pkts"),
            ("bytes", "_bytes"),
        ];
        for metric in METRICS {
            if let Some((_, suffix)) = suffixes.iter().find(|(unit, _)| *unit == metric.unit) {
                assert!(metric.name.ends_with(suffix), "{}: {}", metric.name, metric.unit);
            }
        }
    }
}
