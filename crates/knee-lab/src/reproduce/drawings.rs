//! Drawings of figures as charts.

use super::{
    cases::{Case, Cases},
    formula::Formulas,
    paper::{Drawing, Figure, Plot, Tabulated, plain_name},
};
use crate::{
    chart::{Axis, Chart, Point, Series, Span, Style},
    metrics::{Metrics, Percentiles},
    table::Table,
};
use knee_cc::{
    Ack, Conn, Controller, NOTE_DELAY_BACKOFF, ParamError, Params, SSTHRESH_INFINITE, algorithm,
};
use std::collections::BTreeMap;

/// The charts of one plot of a figure.
pub(super) fn charts(
    cases: &Cases,
    index: usize,
    plot: &Plot,
    formulas: &Formulas,
) -> Result<Vec<Chart>, String> {
    let figure = &cases.figure;
    let draw = Draw { cases, figure, plot, formulas };
    if matches!(plot.drawn, Drawing::Timeline | Drawing::History)
        && draw.case()?.good().next().is_none()
    {
        // All its runs failed.
        return Ok(Vec::new());
    }
    let mut charts = match plot.drawn {
        Drawing::Sweep => vec![draw.sweep()?],
        Drawing::Timeline => vec![draw.timeline()?],
        Drawing::History => draw.history()?,
        Drawing::BackoffProbability => vec![backoff_probability().map_err(|e| e.to_string())?],
        Drawing::ShadowWindow => vec![shadow_window().map_err(|e| e.to_string())?],
    };
    for (panel, chart) in charts.iter_mut().enumerate() {
        let letter = (b'a' + (index + panel) as u8) as char;
        chart.id = format!("figure-{}{letter}", figure.number);
        chart.title = format!("Fig. {}: {}", figure.number, chart.title);
    }
    Ok(charts)
}

/// The medians of a formula over all cases of a figure.
pub(super) fn table(
    cases: &Cases,
    wanted: &Tabulated,
    formulas: &Formulas,
) -> Result<Table, String> {
    let axes = &cases.figure.axes;
    let at = axes.iter().position(|a| a.name == wanted.rows);
    let at = at.ok_or_else(|| format!("there is no axis `{}`", wanted.rows))?;
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
        self.cases.find(&self.fixed())
    }

    /// Values of all axes for the caption: nothing of how a picture came about is left unsaid.
    fn settings(&self, shown: &[&str]) -> String {
        let fixed = self.fixed();
        let of = |axis: &super::paper::Axis| {
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
            x: Axis::log(plot.x_label.clone().unwrap_or(x)),
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
            let (start_s, stop_s) = (
                spec.start_ns as f64 / 1e9,
                spec.stop_ns.unwrap_or(case.spec.duration_ns) as f64 / 1e9,
            );
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
        let series = first.flows.iter().enumerate().map(|(i, f)| Series {
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
            y: Axis { min: Some(0.0), max: Some(10.0), ..Axis::new("goodput (Mbit/s)") },
            series: series.collect(),
            ..Chart::default()
        })
    }

    /// The first repetition: goodput, then the windows.
    fn history(&self) -> Result<Vec<Chart>, String> {
        let (case, width_s) = (self.case()?, self.bin_s());
        let record = case.good().next().ok_or("no runs")?;
        let metrics = Metrics::new(&case.spec, record);
        let caption = format!("One run, seed {}. {}", record.seed, self.settings(&[]));
        let mut goodput = Vec::new();
        let mut windows = Vec::new();
        for (i, flow) in record.flows.iter().enumerate() {
            let life_s = flow.start_ns as f64 / 1e9..flow.stop_ns as f64 / 1e9;
            let name = format!("{} ({})", flow.name, flow.kind);
            let bins = metrics.goodput_series(i, width_s).into_iter();
            let alive = bins.filter(|(t, _)| *t + width_s > life_s.start && *t < life_s.end);
            let points = alive.map(|(t, bps)| (t + width_s / 2.0, bps / 1e6));
            goodput.push(Series::new(&name, Style::Line, points).hue(i));
            let samples = || {
                let ends = flow.samples.iter().enumerate();
                let ends = ends.map(|(bin, s)| (metrics.bin_s(bin).end, s));
                ends.filter(|(t, _)| life_s.contains(t))
            };
            let cwnd = samples().map(|(t, s)| (t, f64::from(s.cwnd_pkts)));
            windows.push(Series::new(&name, Style::Line, cwnd).hue(i));
            if let Some(at) = flow.observes.iter().position(|o| *o == "shadow_pkts") {
                let shadow = samples().map(|(t, s)| (t, f64::from(s.observed[at])));
                let name = format!("{name}, shadow window");
                windows.push(Series::new(name, Style::Dashed, shadow).hue(i));
            }
        }
        let chart = |what: &str, unit: &str, series| Chart {
            title: format!("{}, {what}", self.plot.title),
            caption: caption.clone(),
            x: Axis::new("time (s)"),
            y: Axis { min: Some(0.0), ..Axis::new(format!("{what} ({unit})")) },
            series,
            ..Chart::default()
        };
        Ok(vec![chart("goodput", "Mbit/s", goodput), chart("windows", "packets", windows)])
    }
}

/// Base RTT of the scripts below, microseconds.
const BASE_US: i32 = 40_000;

fn params(name: &str, given: &[(&str, u64)]) -> Result<Params, ParamError> {
    let found = algorithm(name).ok_or_else(|| ParamError::Unknown {
        algorithm: "registry",
        name: name.to_owned(),
        known: String::new(),
    })?;
    Params::new(found, given.iter().copied())
}

fn connection() -> Conn {
    Conn {
        cwnd_pkts: 20,
        ssthresh_pkts: 2,
        cwnd_max_pkts: 1 << 20,
        mss_bytes: 1448,
        cwnd_limited: 1,
        ..Conn::default()
    }
}

/// Fig. 1: g(q) as HD's compiled code observes it, with a largest observed delay of 100 ms.
fn backoff_probability() -> Result<Chart, ParamError> {
    let mut conn = connection();
    let mut hd = Controller::new(params("hd", &[])?, &mut conn);
    let (qmax_us, pmax) = (100_000, 0.02);
    let sample = |rtt_us| Ack { rtt_us, acked_pkts: 1, ..Ack::default() };
    hd.on_rtt(&mut conn, &sample(BASE_US));
    hd.on_rtt(&mut conn, &sample(BASE_US + qmax_us));
    let points = (0..=qmax_us + 20_000).step_by(500).map(|q_us| {
        // Beyond the largest delay a sample would move it: there g is 0 by definition.
        let g = if q_us > qmax_us {
            0.0
        } else {
            hd.on_rtt(&mut conn, &sample(BASE_US + q_us));
            f64::from(hd.observe()[2]) / 1e6 / pmax
        };
        (f64::from(q_us) / 1e3, g)
    });
    let span = |from, to, label: &str| Span { from, to, label: label.to_owned() };
    Ok(Chart {
        title: "Backoff probability g(q) / pmax".to_owned(),
        caption: "qmin 5 ms, qth 30 ms, largest observed delay 100 ms. HD draws per ACK (pmax 0.02), CHD per RTT (pmax 0.25) with the same function.".to_owned(),
        x: Axis::new("queueing delay q (ms)"),
        y: Axis::new("g(q) / pmax"),
        series: vec![Series::new("g(q) / pmax", Style::Line, points.collect::<Vec<_>>())],
        spans: vec![span(5.0, 30.0, "region A"), span(30.0, 100.0, "region B")],
        ..Chart::default()
    })
}

/// Fig. 2: rounds of rising delay, backoffs in regions A and B, then a loss in region B.
fn shadow_window() -> Result<Chart, ParamError> {
    let mut conn = connection();
    let mut chd = Controller::new(params("chd", &[("qmax", 100_000)])?, &mut conn);
    let rounds = 40;
    let (backoffs, loss) = ([12, 20, 27], 34);
    let (mut cwnd, mut shadow, mut delay) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        // Base RTT in the first round, then delay rising through A (below 30 ms) into B.
        let q_us = if round == 0 { 0 } else { 4_000 + 2_000 * round };
        conn.ack_pos = conn.snd_pos.wrapping_add(1);
        conn.snd_pos = conn.ack_pos.wrapping_add(conn.cwnd_pkts);
        conn.outstanding_pkts = conn.cwnd_pkts;
        let random = if backoffs.contains(&round) { 0 } else { u32::MAX };
        let ack = Ack { rtt_us: BASE_US + q_us, acked_pkts: 1, random, ..Ack::default() };
        chd.on_rtt(&mut conn, &ack);
        if round == loss {
            conn.ssthresh_pkts = chd.ssthresh(&mut conn);
            conn.cwnd_pkts = conn.ssthresh_pkts;
        } else {
            chd.on_ack(&mut conn, &ack);
            debug_assert_eq!(conn.notes & NOTE_DELAY_BACKOFF != 0, backoffs.contains(&round));
        }
        debug_assert!(conn.ssthresh_pkts < SSTHRESH_INFINITE);
        cwnd.push((f64::from(round), f64::from(conn.cwnd_pkts)));
        shadow.push((f64::from(round), f64::from(chd.observe()[2])));
        delay.push((f64::from(round), f64::from(q_us) / 1e3));
    }
    Ok(Chart {
        title: "Shadow window s and congestion window w".to_owned(),
        caption: format!(
            "Round delays rise from region A into region B (from round 14 on); the draws make the delay backoffs come in rounds {backoffs:?}; a loss comes in round {loss}: w becomes s/2 instead of w/2 (eq. 4)."
        ),
        x: Axis::new("round (RTT)"),
        y: Axis { min: Some(0.0), ..Axis::new("packets; ms for the delay") },
        series: vec![
            Series::new("congestion window w", Style::LineMarks, cwnd),
            Series::new("shadow window s", Style::LineMarks, shadow),
            Series::new("round delay h (ms)", Style::Dashed, delay),
        ],
        ..Chart::default()
    })
}
