//! The same scenario on several hosts, side by side.

use knee_model::{RunRecord, RunSpec};
use knee_report::{
    chart::{Chart, Series, Style},
    report::{Report, Section},
    run_report::{run_charts, run_report},
    table::{Cell, Table, Tone},
};
use knee_results::{
    caveats::{approximations, lateness},
    metrics::{Metrics, Percentiles, Scale, Scope, is_named, is_tcp, metric, percentile},
};
use serde::Serialize;

/// A host's runs of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct OnHost<'a> {
    /// Name of the host.
    pub name: &'a str,
    /// Repetitions, in order.
    pub records: &'a [RunRecord],
}

/// The tolerance within which a host must be to the first one for a measure to count as agreeing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tolerance {
    /// Largest difference relative to the first host's value.
    pub relative: f64,
    /// Largest difference in the measure's unit; either suffices.
    pub absolute: f64,
}

impl Tolerance {
    const fn relative(relative: f64) -> Self {
        Self { relative, absolute: 0.0 }
    }

    fn takes(&self, [first, second]: [f64; 2]) -> bool {
        let difference = (second - first).abs();
        difference <= self.absolute || difference <= self.relative * first.abs()
    }
}

/// Goodput of a flow that is alone, or among others of its kind.
const GOODPUT: Tolerance = Tolerance::relative(0.05);
/// Median queueing delay, milliseconds.
const QUEUEING: Tolerance = Tolerance { relative: 0.10, absolute: 1.0 };
/// Share of a flow among flows of other kinds.
const SHARE: Tolerance = Tolerance::relative(0.15);

/// A measure on all hosts.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// Name of the measure.
    pub measure: String,
    /// The flow; `None` for a measure of the path.
    pub flow: Option<String>,
    /// Unit.
    pub unit: &'static str,
    /// Tolerance to the first host, if this measure has one.
    pub tolerance: Option<Tolerance>,
    /// Value of each host, in their order.
    pub hosts: Vec<Value>,
}

/// A measure on one host.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Value {
    /// Percentiles over the repetitions in which it is defined.
    pub value: Option<Percentiles>,
    /// True if the median is within the tolerance; none for the first host.
    pub agrees: Option<bool>,
}

/// A measure that is a metric: its name, unit and tolerance, and the metric with its conversion.
struct Row(&'static str, &'static str, Option<Tolerance>, &'static str, Scale);

#[rustfmt::skip]
const OF_PATH: [Row; 5] = [
    Row("queueing delay, median", "ms", Some(QUEUEING), "queueing_delay_p50_ms", Scale::One),
    Row("queueing delay, mean", "ms", None, "queueing_delay_mean_ms", Scale::One),
    Row("queueing delay, 95th percentile", "ms", None, "queueing_delay_p95_ms", Scale::One),
    Row("utilisation", "%", None, "utilisation", Scale::Percent),
    Row("packets dropped by the queue", "packets", None, "dropped_pkts", Scale::One),
];

#[rustfmt::skip]
const OF_TCP_FLOW: [Row; 5] = [
    Row("RTT that the algorithm sees, mean", "ms", None, "rtt_mean_ms", Scale::One),
    Row("fast recoveries", "", None, "fast_recoveries", Scale::One),
    Row("timeouts", "", None, "timeouts", Scale::One),
    Row("retransmissions", "packets", None, "retransmitted_pkts", Scale::One),
    Row("delay backoffs", "", None, "delay_backoffs", Scale::One),
];

/// Measures of the hosts' runs of `spec`. Tolerances are those of `docs/evidence/fidelity.md`: goodput
/// where all TCP flows are of one kind, else shares; median queueing delay.
pub fn compare(spec: &RunSpec, hosts: &[OnHost<'_>]) -> Vec<Compared> {
    let Some(record) = hosts.first().and_then(|h| h.records.first()) else { return Vec::new() };
    let tcp = Metrics::new(spec, record).tcp_flows();
    let one_kind = tcp.windows(2).all(|w| record.flows[w[0]].kind == record.flows[w[1]].kind);
    let of = |name: (&str, &'static str), flow: Option<&str>, tolerance, get: Get<'_>| {
        let value = |host: &OnHost<'_>| {
            Percentiles::of(host.records.iter().filter_map(|r| get(&Metrics::new(spec, r))))
        };
        compared(name, flow, tolerance, hosts.iter().map(value).collect())
    };
    let metric_of = |row: &Row, flow: Option<usize>| {
        let Row(measure, unit, tolerance, name, scale) = *row;
        let flow_name = flow.map(|flow| record.flows[flow].name.as_str());
        of((measure, unit), flow_name, tolerance, &|m| {
            let scope = match flow {
                Some(flow) => Scope::of_flow(*m, flow, None),
                None => Scope::of_run(*m, None),
            };
            Some(scale.of(metric(name, flow.is_some())?.value(&scope)?))
        })
    };
    let mut all: Vec<Compared> = OF_PATH.iter().map(|row| metric_of(row, None)).collect();
    if tcp.len() > 1 {
        all.push(metric_of(&Row("Jain's index", "", None, "jain", Scale::One), None));
    }
    for source in Metrics::new(spec, record).sources() {
        let completion = |q: f64| {
            move |m: &Metrics<'_>| {
                let times_s = m.completion_times_s(&m.flows_from(source), &(0..u64::MAX));
                percentile(&times_s, q)
            }
        };
        let of = |measure, unit, get: Get<'_>| of((measure, unit), Some(source), None, get);
        all.extend([
            of("completion time, median", "s", &completion(0.5)),
            of("completion time, 95th percentile", "s", &completion(0.95)),
            of("unfinished transfers", "", &|m| {
                Some(m.unfinished(&m.flows_from(source), &(0..u64::MAX)) as f64)
            }),
        ]);
    }
    for (index, flow) in record.flows.iter().enumerate().filter(|(_, f)| is_named(f)) {
        let tolerance = (is_tcp(flow) && one_kind).then_some(GOODPUT);
        let goodput = Row("goodput", "Mbit/s", tolerance, "goodput_bps", Scale::Mega);
        all.push(metric_of(&goodput, Some(index)));
        if is_tcp(flow) && tcp.len() > 1 {
            let tolerance = (!one_kind).then_some(SHARE);
            let name = ("share of the goodput of all TCP flows", "%");
            all.push(of(name, Some(&flow.name), tolerance, &|m| {
                let bytes = |i: usize| m.record().flows[i].counters.delivered_bytes as f64;
                let sum: f64 = tcp.iter().map(|i| bytes(*i)).sum();
                (sum > 0.0).then(|| bytes(index) / sum * 100.0)
            }));
        }
        let of_tcp = OF_TCP_FLOW.iter().filter(|_| is_tcp(flow));
        all.extend(of_tcp.map(|row| metric_of(row, Some(index))));
    }
    all
}

/// A measure of a run.
type Get<'a> = &'a dyn Fn(&Metrics<'_>) -> Option<f64>;

/// A measure of all hosts, from its values.
fn compared(
    (measure, unit): (&str, &'static str),
    flow: Option<&str>,
    tolerance: Option<Tolerance>,
    values: Vec<Option<Percentiles>>,
) -> Compared {
    let first = values.first().copied().flatten();
    let of_host = |(index, value): (usize, Option<Percentiles>)| {
        let medians = first.zip(value).filter(|_| index > 0).map(|(a, b)| [a.p50, b.p50]);
        let agrees = tolerance.zip(medians).map(|(tolerance, m)| tolerance.takes(m));
        Value { value, agrees }
    };
    let hosts = values.into_iter().enumerate().map(of_host).collect();
    Compared { measure: measure.to_owned(), flow: flow.map(str::to_owned), unit, tolerance, hosts }
}

/// `all`, of the hosts called `names`, as a table.
pub fn compare_table(all: &[Compared], names: &[&str]) -> Table {
    let several = names.len() > 2;
    let others = names.iter().skip(1).flat_map(|name| {
        let of = if several { format!(" ({name})") } else { String::new() };
        [(*name).to_owned(), format!("difference{of}"), format!("agrees{of}")]
    });
    let columns: Vec<String> =
        names.iter().take(1).map(|name| (*name).to_owned()).chain(others).collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let caption = "Median over repetitions (20th–80th percentile)";
    let mut table = Table::new(caption, &["measure", "flow"], &columns);
    for c in all {
        let shown = |p: Option<Percentiles>| {
            let text = match p {
                None => "–".to_owned(),
                Some(p) if p.p20 == p.p80 => format!("{} {}", round(p.p50), c.unit),
                Some(p) => {
                    format!("{} ({}–{}) {}", round(p.p50), round(p.p20), round(p.p80), c.unit)
                }
            };
            Cell::from(text.trim_end().to_owned())
        };
        let mut cells =
            vec![Cell::from(c.measure.clone()), Cell::from(c.flow.clone().unwrap_or_default())];
        let Some((first, others)) = c.hosts.split_first() else { continue };
        cells.push(shown(first.value));
        for other in others {
            let difference = first.value.zip(other.value).map_or_else(
                || "–".to_owned(),
                |(a, b)| match a.p50 {
                    0.0 => format!("{:+} {}", Rounded(b.p50 - a.p50), c.unit),
                    from => format!("{:+.1} %", (b.p50 / from - 1.0) * 100.0),
                },
            );
            cells.push(shown(other.value));
            cells.push(Cell::from(difference.trim_end().to_owned()));
            cells.push(match other.agrees {
                Some(true) => Cell::toned("yes", Tone::Good),
                Some(false) => Cell::toned("no", Tone::Bad),
                None => Cell::from(String::new()),
            });
        }
        table.row(cells);
    }
    table
}

/// Three significant digits or so.
fn round(x: f64) -> String {
    Rounded(x).to_string()
}

struct Rounded(f64);

impl std::fmt::Display for Rounded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = match self.0.abs() {
            big if big >= 100.0 || self.0.fract() == 0.0 => 0,
            ten if ten >= 10.0 => 1,
            _ => 2,
        };
        if f.sign_plus() {
            write!(f, "{:+.digits$}", self.0)
        } else {
            write!(f, "{:.digits$}", self.0)
        }
    }
}

/// The report on the hosts' runs of `spec`: the table, charts of their first repetitions over each
/// other, the set-up.
pub fn compare_report(
    title: &str,
    spec: &RunSpec,
    hosts: &[OnHost<'_>],
    all: &[Compared],
) -> Report {
    let names: Vec<&str> = hosts.iter().map(|host| host.name).collect();
    let Some((first, others)) = names.split_first() else { return Report::default() };
    let mut report = run_report(title, spec, hosts[0].records);
    let set_up = report.sections.pop();
    let mut compared = Section {
        tables: vec![compare_table(all, &names)],
        ..Section::new(format!("{} against {first}", others.join(" and ")))
    };
    compared.paragraphs.push(
        "A measure agrees if the medians differ by no more than the target: goodput 5 % \
         where all TCP flows are of one kind, shares 15 % where they are not, median queueing \
         delay 10 % or 1 ms."
            .to_owned(),
    );
    let mut over_time = Section::new("Over time, first repetition of each");
    let charted = hosts.iter().filter_map(|host| Some((host.name, host.records.first()?)));
    over_time.charts = overlaid(charted.map(|(n, record)| (n, run_charts(spec, record))).collect());
    report.sections = vec![compared, over_time];
    for host in hosts {
        let notes = approximations(host.records).into_iter();
        let notes = notes.map(|note| format!("On {}: {note}.", host.name));
        let late =
            lateness(host.records).map(|l| format!("Lateness on the host {}: {l}.", host.name));
        report.sections[0].paragraphs.extend(late.into_iter().chain(notes));
    }
    report.sections.extend(set_up);
    report
}

/// Charts of the same kind in one: the second host's lines dashed, the third's dotted, in the
/// first's colours. Lines that a host draws dashed itself (thresholds) are left out: they look like another
/// host's.
fn overlaid(hosts: Vec<(&str, Vec<Chart>)>) -> Vec<Chart> {
    let mut hosts = hosts.into_iter();
    let Some((first, charts)) = hosts.next() else { return Vec::new() };
    let mut others: Vec<(&str, Vec<Chart>)> = hosts.collect();
    let lines = |chart: &mut Chart, host: &str, style: Option<Style>| {
        let all = std::mem::take(&mut chart.series).into_iter().enumerate();
        let solid = all.filter(|(_, s)| !s.style.is_broken());
        let renamed = |(i, s): (usize, Series)| Series {
            name: format!("{} ({host})", s.name),
            style: style.unwrap_or(s.style),
            hue: s.hue.or(Some(i)),
            points: s.points,
        };
        solid.map(renamed).collect::<Vec<_>>()
    };
    let of_all = charts.into_iter().filter_map(|mut chart| {
        let mut series = lines(&mut chart, first, None);
        for ((name, charts), style) in others.iter_mut().zip([Style::Dashed, Style::Dotted]) {
            let at = charts.iter().position(|c| c.id == chart.id)?;
            series.extend(lines(&mut charts.swap_remove(at), name, Some(style)));
        }
        chart.series = series;
        Some(chart)
    });
    of_all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_fixtures as testing;

    fn on<'a>(name: &'a str, records: &'a [RunRecord]) -> OnHost<'a> {
        OnHost { name, records }
    }

    fn find<'a>(all: &'a [Compared], measure: &str, flow: Option<&str>) -> &'a Compared {
        let found = all.iter().find(|c| c.measure == measure && c.flow.as_deref() == flow);
        found.expect("measured")
    }

    #[test]
    fn goodput_of_one_kind_and_shares_of_several() {
        let run = |kinds: [&str; 2], bytes: [u64; 2]| {
            let flows = kinds.iter().zip(bytes).zip(["a", "b"]);
            testing::record(
                2.0,
                1.0,
                flows.map(|((k, b), n)| testing::flow(n, k, &[b, b])).collect(),
            )
        };
        let (sim, kernel) =
            ([run(["chd", "chd"], [1000, 1000])], [run(["chd", "chd"], [1049, 1060])]);
        let spec = testing::spec(&sim[0]);
        let all = compare(&spec, &[on("sim", &sim), on("kernel", &kernel)]);
        assert_eq!(find(&all, "goodput", Some("a")).hosts[1].agrees, Some(true));
        assert_eq!(find(&all, "goodput", Some("b")).hosts[1].agrees, Some(false));
        let share = "share of the goodput of all TCP flows";
        assert_eq!(find(&all, share, Some("a")).hosts[1].agrees, None);

        let mixed = ["chd", "newreno"];
        let (sim, kernel) = ([run(mixed, [1000, 3000])], [run(mixed, [2000, 7000])]);
        let spec = testing::spec(&sim[0]);
        let all = compare(&spec, &[on("sim", &sim), on("kernel", &kernel)]);
        assert_eq!(find(&all, "goodput", Some("a")).hosts[1].agrees, None);
        // 25 and 22 %: 11 % less.
        let a = find(&all, share, Some("a"));
        assert_eq!((a.hosts[0].agrees, a.hosts[1].agrees), (None, Some(true)));
        assert_eq!(a.hosts[0].value.map(|p| p.p50), Some(25.0));
    }

    #[test]
    fn a_small_delay_may_differ_by_a_millisecond() {
        assert!(QUEUEING.takes([0.5, 1.4]) && !QUEUEING.takes([0.5, 1.6]));
        assert!(QUEUEING.takes([50.0, 54.9]) && !QUEUEING.takes([50.0, 55.1]));
        assert!(!GOODPUT.takes([0.0, 0.1]));
    }
}
