//! Drawings of figures as charts.

use super::{
    axes::{Axis as FigureAxis, plain_name},
    cases::{Case, Cases},
    compiled,
    description::{Figure, Plot, PlotKind, Tabulated},
    fluid::thinned,
    formula::Formulas,
};
use knee_model::{FlowRecord, FlowSample, RunRecord, milliseconds, seconds};
use knee_report::{
    chart::{Axis, Chart, Point, Series, Style},
    table::Table,
};
use knee_results::metrics::{Metrics, Percentiles, is_named, is_tcp};
use std::collections::BTreeMap;

/// The charts of one plot of a figure.
pub(crate) fn charts(
    cases: &Cases,
    index: usize,
    plot: &Plot,
    formulas: &Formulas,
) -> Result<Vec<Chart>, String> {
    let figure = &cases.figure;
    let draw = Draw { cases, figure, plot, formulas };
    if matches!(plot.kind, PlotKind::Timeline | PlotKind::History | PlotKind::Flows)
        && draw.case()?.good().next().is_none()
    {
        // All its runs failed.
        return Ok(Vec::new());
    }
    let mut charts = match plot.kind {
        PlotKind::Sweep => vec![draw.sweep()?],
        PlotKind::Timeline => vec![draw.timeline()?],
        PlotKind::History => draw.history()?,
        PlotKind::Flows => vec![draw.flows()?],
        PlotKind::Curves => vec![draw.curves()?],
        PlotKind::Fluid => draw.fluid()?,
        PlotKind::BackoffProbability => {
            vec![compiled::backoff_probability().map_err(|e| e.to_string())?]
        }
        PlotKind::ShadowWindow => vec![compiled::shadow_window().map_err(|e| e.to_string())?],
    };
    if let Some(first) = charts.first_mut() {
        let points = plot.points.iter();
        let given = points.map(|p| Series::new(&p.name, Style::Marks, p.at.iter().copied()));
        first.series.extend(given);
    }
    for (panel, chart) in charts.iter_mut().enumerate() {
        let letter = (b'a' + (index + panel) as u8) as char;
        chart.id = format!("figure-{}{letter}", figure.number);
        chart.title = format!("Fig. {}: {}", figure.number, chart.title);
    }
    Ok(charts)
}

/// The medians of a formula over all cases of a figure.
pub(crate) fn table(
    cases: &Cases,
    wanted: &Tabulated,
    formulas: &Formulas,
) -> Result<Table, String> {
    let axes = &cases.figure.axes;
    let at = axes.iter().position(|a| a.name == wanted.rows);
    let at = at.ok_or_else(|| format!("no such axis: `{}`", wanted.rows))?;
    let column_of = |case: &Case| {
        let others = case.values.iter().enumerate().filter(|(i, _)| *i != at);
        others.map(|(i, v)| format!("{} {v}", axes[i].name)).collect::<Vec<_>>().join(", ")
    };
    let first_row = axes[at].values.first().map(|v| v.name());
    let of_first = cases.cases.iter().filter(|c| Some(&c.values[at]) == first_row.as_ref());
    let columns: Vec<String> = of_first.map(column_of).collect();
    let heads: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new(&wanted.title, &[&wanted.rows], &heads);
    for row in &axes[at].values {
        let mut cells = vec![row.name()];
        for column in &columns {
            let case =
                cases.cases.iter().find(|c| c.values[at] == row.name() && column_of(c) == *column);
            let case = case.ok_or("a combination is missing")?;
            let named = axes.iter().map(|a| a.name.clone()).zip(case.values.iter().cloned());
            let values = formulas.of_case(&cases.figure.number, &named.collect(), &wanted.value)?;
            cells.push(
                Percentiles::of(values).map_or_else(String::new, |p| format!("{:.3}", p.p50)),
            );
        }
        table.row(cells);
    }
    Ok(table)
}

struct Draw<'a> {
    cases: &'a Cases,
    figure: &'a Figure,
    plot: &'a Plot,
    formulas: &'a Formulas,
}

impl Draw<'_> {
    fn fixed(&self) -> BTreeMap<String, String> {
        self.plot.fixed.iter().map(|(axis, value)| (axis.clone(), plain_name(value))).collect()
    }

    fn case(&self) -> Result<&Case, String> {
        Ok(&self.cases.cases[self.cases.find(&self.fixed())?])
    }

    /// Values of all axes for the caption: nothing of how a picture came about is left unsaid.
    fn settings(&self, shown: &[&str]) -> String {
        let fixed = self.fixed();
        let of = |axis: &FigureAxis| {
            let first = axis.values.first().map_or_else(String::new, |v| v.name());
            format!("{}: {}", axis.name, fixed.get(&axis.name).unwrap_or(&first))
        };
        let axes = self.figure.axes.iter().filter(|a| !shown.contains(&a.name.as_str()));
        let axes = axes.map(of).collect::<Vec<_>>().join(", ");
        if axes.is_empty() { axes } else { format!("{axes}.") }
    }

    fn sweep(&self) -> Result<Chart, String> {
        let plot = self.plot;
        let name = |part: &Option<String>, key: &str| {
            part.clone().ok_or_else(|| format!("a sweep needs `{key}`"))
        };
        let (x, by, value) =
            (name(&plot.x, "x")?, name(&plot.series, "series")?, name(&plot.value, "value")?);
        let axis = |name: &str| {
            let found = self.figure.axes.iter().find(|a| a.name == name);
            found.ok_or_else(|| format!("figure {} has no axis `{name}`", self.figure.number))
        };
        let mut series = Vec::new();
        for one in &axis(&by)?.values {
            let mut points = Vec::new();
            for at in &axis(&x)?.values {
                let mut named = self.fixed();
                named.insert(by.clone(), one.name());
                named.insert(x.clone(), at.name());
                let values = self.formulas.of_case(&self.figure.number, &named, &value)?;
                let number = at.number().ok_or("the x axis of a sweep needs numbers")?;
                points.extend(Percentiles::of(values).map(|p| Point::percentiles(number, p)));
            }
            series.push(Series { points, ..Series::new(one.name(), Style::LineMarks, []) });
        }
        if let Some(model) = &plot.model {
            let xs: Vec<f64> = axis(&x)?.values.iter().filter_map(|v| v.number()).collect();
            let positive = xs.iter().copied().filter(|x| *x > 0.0);
            let (low, high) = positive.fold((f64::MAX, 0.0f64), |(l, h), x| (l.min(x), h.max(x)));
            let curve = (0..=60).map(|i| low * (high / low).powf(f64::from(i) / 60.0));
            let points: Result<Vec<_>, String> =
                curve.map(|x| Ok((x, self.formulas.of_x(&model.y, x)?))).collect();
            series.push(Series::new(&model.name, Style::Dashed, points?));
        }
        Ok(Chart {
            title: plot.title.clone(),
            caption: format!(
                "Median with 20th and 80th percentile over repetitions. {}",
                self.settings(&[&by, &x])
            ),
            x: match plot.linear {
                true => Axis::new(plot.x_label.clone().unwrap_or(x)),
                false => Axis::log(plot.x_label.clone().unwrap_or(x)),
            },
            y: Axis::new(plot.y_label.clone().unwrap_or(value)),
            series,
            ..Chart::default()
        })
    }

    fn bin_s(&self) -> f64 {
        self.plot.bin_s.unwrap_or(1.0)
    }

    /// Goodput of each flow in bins that lie within its life, at the middle of each bin.
    fn timeline(&self) -> Result<Chart, String> {
        let (case, width_s) = (self.case()?, self.bin_s());
        let first = case.good().next().ok_or("no runs")?;
        let series_of = |flow: usize| {
            let runs: Vec<Vec<(f64, f64)>> = case
                .good()
                .map(|r| Metrics::new(&case.spec, r).goodput_series(flow, width_s))
                .collect();
            let spec = &case.spec.flows[flow];
            let (start_s, stop_s) =
                (seconds(spec.start_ns), seconds(spec.stop_ns.unwrap_or(case.spec.duration_ns)));
            let steps = runs.first().map_or(0, Vec::len);
            let alive = (0..steps).filter(|i| {
                let from = *i as f64 * width_s;
                from >= start_s - 1e-9 && from + width_s <= stop_s + 1e-9
            });
            let point = |i: usize| {
                let values = runs.iter().filter_map(|r| r.get(i)).map(|(_, bps)| bps / 1e6);
                Percentiles::of(values)
                    .map(|p| Point::percentiles(i as f64 * width_s + width_s / 2.0, p))
            };
            alive.filter_map(point).collect::<Vec<_>>()
        };
        let named = first.flows.iter().enumerate().filter(|(_, f)| is_named(f));
        let series = named.map(|(i, f)| Series {
            points: series_of(i),
            ..Series::new(format!("{} ({})", f.name, f.kind), Style::LineMarks, [])
        });
        Ok(Chart {
            title: self.plot.title.clone(),
            caption: format!(
                "Means over {width_s} s, at the middle of each; median with 20th and 80th percentile over {} repetitions. {}",
                case.good().count(),
                self.settings(&[])
            ),
            x: Axis::new("time (s)"),
            y: Axis {
                min: Some(0.0),
                max: Some(case.spec.path.hops[0].rate().highest_bps() as f64 / 1e6),
                ..Axis::new("goodput (Mbit/s)")
            },
            series: series.collect(),
            ..Chart::default()
        })
    }

    /// The first repetition over time, a chart for each requested quantity.
    fn history(&self) -> Result<Vec<Chart>, String> {
        let default = ["goodput", "windows"].map(str::to_owned);
        let what = if self.plot.what.is_empty() { &default[..] } else { &self.plot.what };
        let case = self.case()?;
        let record = case.good().next().ok_or("no runs")?;
        let history = History {
            plot: self.plot,
            metrics: Metrics::new(&case.spec, record),
            record,
            width_s: self.bin_s(),
        };
        let caption = format!("One run, seed {}. {}", record.seed, self.settings(&[]));
        what.iter()
            .map(|what| {
                let (label, series) = history.of(what)?;
                let name = label.split(" (").next().unwrap_or(what);
                Ok(Chart {
                    title: format!("{}, {name}", self.plot.title),
                    caption: caption.clone(),
                    x: Axis::new("time (s)"),
                    y: Axis { min: Some(0.0), ..Axis::new(label) },
                    series,
                    ..Chart::default()
                })
            })
            .collect()
    }

    /// Mean goodput of each flow over its life, or over the given times.
    fn flows(&self) -> Result<Chart, String> {
        let case = self.case()?;
        let first = case.good().next().ok_or("no runs")?;
        let mut series: Vec<Series> = Vec::new();
        for (i, flow) in first.flows.iter().enumerate().filter(|(_, f)| is_named(f)) {
            let goodput = |record| {
                let metrics = Metrics::new(&case.spec, record);
                let life_s = metrics.common_life_s(&[i]);
                let from_s = self.plot.from.unwrap_or(life_s.start);
                let to_s = self.plot.to.unwrap_or(life_s.end);
                metrics.goodput_bps(i, from_s, to_s).map(|bps| bps / 1e6)
            };
            let Some(percentiles) = Percentiles::of(case.good().filter_map(goodput)) else {
                continue;
            };
            let point = Point::percentiles((i + 1) as f64, percentiles);
            match series.iter_mut().find(|s| s.name == flow.kind) {
                Some(series) => series.points.push(point),
                None => series.push(Series {
                    points: vec![point],
                    ..Series::new(&flow.kind, Style::Marks, [])
                }),
            }
        }
        Ok(Chart {
            title: self.plot.title.clone(),
            caption: format!(
                "Mean goodput of each flow; median with 20th and 80th percentile over {} repetitions. {}",
                case.good().count(),
                self.settings(&[])
            ),
            x: Axis::new("flow"),
            y: Axis { min: Some(0.0), ..Axis::new("goodput (Mbit/s)") },
            series,
            ..Chart::default()
        })
    }

    /// The fluid model compared with the first repetition.
    fn fluid(&self) -> Result<Vec<Chart>, String> {
        let (plot, case) = (self.plot, self.case()?);
        let spec = plot.fluid.as_ref().ok_or("the fluid model needs `fluid`")?;
        let simulated = case.good().next().map(|record| {
            let metrics = Metrics::new(&case.spec, record);
            let history = History { plot, metrics, record, width_s: self.bin_s() };
            Series { name: "simulated".to_owned(), ..thinned(history.queue()) }
        });
        let duration_s = plot.to.unwrap_or(seconds(case.spec.duration_ns));
        Ok(vec![
            spec.curves(&plot.title)?,
            spec.trajectories(&plot.title, &plot.starts, duration_s, simulated)?,
        ])
    }

    /// Formulas of x.
    fn curves(&self) -> Result<Chart, String> {
        let plot = self.plot;
        let range = plot.from.zip(plot.to).filter(|(from, to)| from < to);
        let (from, to) = range.ok_or("curves need `from` and a larger `to`")?;
        let x = |i: u32| from + (to - from) * f64::from(i) / f64::from(CURVE_POINTS);
        let series = plot.curves.iter().map(|curve| {
            let points: Result<Vec<_>, String> = (0..=CURVE_POINTS)
                .map(|i| Ok((x(i), self.formulas.of_x(&curve.y, x(i))?)))
                .collect();
            Ok(Series::new(&curve.name, Style::Line, points?))
        });
        let label = |label: &Option<String>| label.clone().unwrap_or_default();
        Ok(Chart {
            title: plot.title.clone(),
            x: Axis::new(label(&plot.x_label)),
            y: Axis { min: Some(0.0), ..Axis::new(label(&plot.y_label)) },
            series: series.collect::<Result<_, String>>()?,
            ..Chart::default()
        })
    }
}

/// Points of a plotted curve.
const CURVE_POINTS: u32 = 500;

/// One run over time.
struct History<'a> {
    plot: &'a Plot,
    metrics: Metrics<'a>,
    record: &'a RunRecord,
    /// Width of the bins of goodput.
    width_s: f64,
}

impl History<'_> {
    fn shows(&self, time_s: f64) -> bool {
        self.plot.from.is_none_or(|from| time_s >= from)
            && self.plot.to.is_none_or(|to| time_s <= to)
    }

    /// The requested flows, with their index and name.
    fn flows(&self) -> impl Iterator<Item = (usize, &FlowRecord, String)> {
        let wanted = |i: &usize| self.plot.flows.as_ref().is_none_or(|flows| flows.contains(i));
        let named = self.record.flows.iter().enumerate().filter(|(_, f)| is_named(f));
        let all = named.filter(move |(i, _)| wanted(i));
        all.map(|(i, flow)| (i, flow, format!("{} ({})", flow.name, flow.kind)))
    }

    /// A value of each sample within the flow's life.
    fn samples(&self, flow: &FlowRecord, value: impl Fn(&FlowSample) -> f64) -> Vec<(f64, f64)> {
        let life_s = seconds(flow.start_ns)..seconds(flow.stop_ns);
        let ends = (flow.first_bin as usize..).zip(&flow.samples);
        let ends = ends.map(|(bin, s)| (self.metrics.bin_s(bin).end, s));
        let alive = ends.filter(|(t, _)| life_s.contains(t) && self.shows(*t));
        alive.map(|(t, s)| (t, value(s))).collect()
    }

    /// Label of the y axis, and the series.
    fn of(&self, what: &str) -> Result<(String, Vec<Series>), String> {
        let series: Vec<Series> = match what {
            "goodput" => self.flows().map(|(i, flow, name)| self.goodput(i, flow, &name)).collect(),
            "windows" => self.flows().flat_map(|(i, f, name)| self.windows(i, f, &name)).collect(),
            "queue" => vec![self.queue()],
            "probes" => self.flows().filter_map(|(_, f, name)| self.probes(f, &name)).collect(),
            observed => {
                let of = |(i, flow, name): (usize, &FlowRecord, String)| {
                    let at = flow.observes.iter().position(|o| *o == observed)?;
                    let points = self.samples(flow, |s| f64::from(s.observed[at]));
                    Some(Series::new(name, Style::Line, points).hue(i))
                };
                self.flows().filter_map(of).collect()
            }
        };
        let label = match what {
            "goodput" => "goodput (Mbit/s)",
            "windows" => "windows (packets)",
            "queue" => "queueing delay (ms)",
            "probes" => "one-way delay (ms)",
            observed => observed,
        };
        if series.is_empty() {
            return Err(format!("no flow has `{what}`"));
        }
        Ok((label.to_owned(), series))
    }

    fn goodput(&self, i: usize, flow: &FlowRecord, name: &str) -> Series {
        let life_s = seconds(flow.start_ns)..seconds(flow.stop_ns);
        let bins = self.metrics.goodput_series(i, self.width_s).into_iter();
        let alive = bins
            .filter(|(t, _)| *t + self.width_s > life_s.start && *t < life_s.end && self.shows(*t));
        let points = alive.map(|(t, bps)| (t + self.width_s / 2.0, bps / 1e6));
        Series::new(name, Style::Line, points).hue(i)
    }

    /// The congestion window, and the shadow window if there is one.
    fn windows(&self, i: usize, flow: &FlowRecord, name: &str) -> Vec<Series> {
        if !is_tcp(flow) {
            return Vec::new();
        }
        let cwnd = self.samples(flow, |s| f64::from(s.cwnd_pkts));
        let mut series = vec![Series::new(name, Style::Line, cwnd).hue(i)];
        if let Some(at) = flow.observes.iter().position(|o| *o == "shadow_pkts") {
            let shadow = self.samples(flow, |s| f64::from(s.observed[at]));
            let name = format!("{name}, shadow window");
            series.push(Series::new(name, Style::Dashed, shadow).hue(i));
        }
        series
    }

    /// Mean queueing delay of the packets that left within each bin.
    fn queue(&self) -> Series {
        let bins = self.record.queues[0].bins.iter().enumerate();
        let points = bins.filter(|(_, b)| b.departed_pkts > 0).map(|(i, bin)| {
            let mean_ms = bin.delay_sum_ns as f64 / f64::from(bin.departed_pkts) / 1e6;
            (self.metrics.bin_s(i).end, mean_ms)
        });
        Series::new("bottleneck", Style::Line, points.filter(|(t, _)| self.shows(*t)))
    }

    fn probes(&self, flow: &FlowRecord, name: &str) -> Option<Series> {
        let points = flow.probe_delays.iter().map(|(t, d)| (seconds(*t), milliseconds(*d)));
        let points = points.filter(|(t, _)| self.shows(*t));
        (!flow.probe_delays.is_empty()).then(|| Series::new(name, Style::Line, points))
    }
}
