//! The same scenario on several hosts, side by side.

use knee_model::{FlowRecord, RunRecord, RunSpec};
use knee_report::{
    chart::{Chart, Series, Style},
    report::{Report, Section},
    run_report::{run_charts, run_report},
    table::{Cell, Table, Tone},
};
use knee_results::{
    caveats::{approximations, lateness},
    metrics::{Metrics, Percentiles, is_named, is_tcp, percentile},
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

/// Measures of the hosts' runs of `spec`. Tolerances are those of `docs/evidence/fidelity.md`: goodput
/// where all TCP flows are of one kind, else shares; median queueing delay.
pub fn compare(spec: &RunSpec, hosts: &[OnHost<'_>]) -> Vec<Compared> {
    let of = |measure: &str,
              flow: Option<&str>,
              unit,
              tolerance: Option<Tolerance>,
              get: &dyn Fn(&Metrics<'_>) -> Option<f64>| {
        let value = |host: &OnHost<'_>| {
            Percentiles::of(host.records.iter().filter_map(|r| get(&Metrics::new(spec, r))))
        };
        let first = hosts.first().and_then(value);
        let of_host = |(index, host)| {
            let value = value(host);
            let medians = first.zip(value).filter(|_| index > 0).map(|(a, b)| [a.p50, b.p50]);
            let agrees = tolerance.zip(medians).map(|(tolerance, m)| tolerance.takes(m));
            Value { value, agrees }
        };
        Compared {
            measure: measure.to_owned(),
            flow: flow.map(str::to_owned),
            unit,
            tolerance,
            hosts: hosts.iter().enumerate().map(of_host).collect(),
        }
    };
    let queueing = |q| {
        move |m: &Metrics<'_>| {
            let delay = &m.record().queues[0].delay;
            (delay.count() > 0).then(|| delay.quantile_ns(q) as f64 / 1e6)
        }
    };
    let mut all = vec![
        of("queueing delay, median", None, "ms", Some(QUEUEING), &queueing(0.5)),
        of("queueing delay, mean", None, "ms", None, &|m| Some(m.queueing_delay()?.mean_ms)),
        of("queueing delay, 95th percentile", None, "ms", None, &queueing(0.95)),
        of("utilisation", None, "%", None, &|m| Some(m.utilisation()? * 100.0)),
        of("packets dropped by the queue", None, "packets", None, &|m| {
            Some(m.record().queues[0].dropped_pkts as f64)
        }),
    ];
    let Some(record) = hosts.first().and_then(|h| h.records.first()) else { return all };
    let tcp = Metrics::new(spec, record).tcp_flows();
    let one_kind = tcp.windows(2).all(|w| record.flows[w[0]].kind == record.flows[w[1]].kind);
    if tcp.len() > 1 {
        all.push(of("Jain's index", None, "", None, &|m| {
            let together = m.common_life_s(&tcp);
            m.jain(&tcp, together.start, together.end)
        }));
    }
    for source in Metrics::new(spec, record).sources() {
        let completion = |q: f64| {
            move |m: &Metrics<'_>| {
                let times_s = m.completion_times_s(&m.flows_from(source), &(0..u64::MAX));
                percentile(&times_s, q)
            }
        };
        let of = |measure: &str, unit, get: &dyn Fn(&Metrics<'_>) -> Option<f64>| {
            of(measure, Some(source), unit, None, get)
        };
        all.extend([
            of("completion time, median", "s", &completion(0.5)),
            of("completion time, 95th percentile", "s", &completion(0.95)),
            of("unfinished transfers", "", &|m| {
                Some(m.unfinished(&m.flows_from(source), &(0..u64::MAX)) as f64)
            }),
        ]);
    }
    for (index, flow) in record.flows.iter().enumerate().filter(|(_, f)| is_named(f)) {
        let of = |measure: &str, unit, tolerance, get: &dyn Fn(&Metrics<'_>) -> Option<f64>| {
            of(measure, Some(&flow.name), unit, tolerance, get)
        };
        let counter = |get: fn(&FlowRecord) -> u64| {
            move |m: &Metrics<'_>| m.record().flows.get(index).map(|f| get(f) as f64)
        };
        let goodput = |m: &Metrics<'_>| Some(m.lifetime_goodput_bps(index)? / 1e6);
        if !is_tcp(flow) {
            all.push(of("goodput", "Mbit/s", None, &goodput));
            continue;
        }
        all.push(of("goodput", "Mbit/s", one_kind.then_some(GOODPUT), &goodput));
        if tcp.len() > 1 {
            let tolerance = (!one_kind).then_some(SHARE);
            all.push(of("share of the goodput of all TCP flows", "%", tolerance, &|m| {
                let bytes = |i: usize| m.record().flows[i].counters.delivered_bytes as f64;
                let sum: f64 = tcp.iter().map(|i| bytes(*i)).sum();
                (sum > 0.0).then(|| bytes(index) / sum * 100.0)
            }));
        }
        let rtt = |m: &Metrics<'_>| {
            let rtt = &m.record().flows[index].rtt;
            (rtt.count() > 0).then(|| rtt.mean_ns() / 1e6)
        };
        all.extend([
            of("RTT that the algorithm sees, mean", "ms", None, &rtt),
            of("fast recoveries", "", None, &counter(|f| f.counters.loss_events)),
            of("timeouts", "", None, &counter(|f| f.counters.timeouts)),
            of("retransmissions", "packets", None, &counter(|f| f.counters.retransmitted_pkts)),
            of(
                "delay backoffs",
                "",
                None,
                &counter(|f| {
                    f.counters.delay_backoffs_region_a + f.counters.delay_backoffs_region_b
                }),
            ),
        ]);
    }
    all
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
        let late = lateness(host.records).map(|l| format!("Lateness on the {}: {l}.", host.name));
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
