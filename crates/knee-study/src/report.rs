//! A report on a data set: a measure over one axis as charts, over two as heat maps; a panel for each
//! combination of the others.

use crate::{axis::AxisColumn, dataset::DataSet, error::StudyError};
use arrow_array::{Array, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use knee_report::{
    chart::{Axis, Chart, Point, Series, Style},
    drawing::{Colours, HeatCell, HeatMap},
    report::{Report, Section},
};
use knee_results::metrics::Percentiles;
use std::collections::BTreeMap;

/// Most rows or columns of a heat map.
const SIDE_MAX: usize = 40;
/// Fewer values of an axis than this are named where another one was requested.
const NAMED_MAX: usize = 20;
/// Most panels.
const PANELS_MAX: usize = 60;

/// Contents of a report.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Axis along x: a key as in `--set`, or the name of a column.
    pub x: String,
    /// Axis along y: heat maps. None: charts of the value.
    pub y: Option<String>,
    /// Measure, by the name of its column.
    pub value: String,
    /// Flow whose measure it is; none: a measure of the run.
    pub flow: Option<String>,
    /// Charts: axis whose values are series; none: the first one that is left.
    pub series: Option<String>,
    /// Axes over which the median is taken, as over the repetitions.
    pub over: Vec<String>,
    /// Axes of which only one value is shown, and that value.
    pub only: Vec<(String, String)>,
}

/// A value of an axis. Text comes in the order of the data.
#[derive(Clone, Debug, PartialEq)]
enum Key {
    Number(f64),
    Text(String),
}

impl Key {
    fn shown(&self) -> String {
        match self {
            Self::Number(n) => n.to_string(),
            Self::Text(text) => text.clone(),
        }
    }

    /// Meanings of `text` in `column`: text, a number in the column's unit, or one with a unit of its own.
    fn meant(column: &str, text: &str) -> Vec<Self> {
        let written = AxisColumn::new("", &[text.into()]);
        let in_unit = written.number(0).filter(|_| column.ends_with(&written.name));
        let numbers = text.parse().ok().into_iter().chain(in_unit).map(Self::Number);
        numbers.chain([Self::Text(text.to_owned())]).collect()
    }
}

/// Values of an axis that occur, in order.
#[derive(Clone, Debug)]
struct Values {
    name: String,
    all: Vec<Key>,
}

impl Values {
    fn index(&mut self, key: Key) -> usize {
        match self.all.iter().position(|k| *k == key) {
            Some(index) => index,
            None => {
                self.all.push(key);
                self.all.len() - 1
            }
        }
    }

    /// Places of its values in ascending order; those of text as they are.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        let number = |i: &usize| match &self.all[*i] {
            Key::Number(n) => *n,
            Key::Text(_) => 0.0,
        };
        order.sort_by(|a, b| number(a).total_cmp(&number(b)));
        order
    }
}

/// Measures by the places of their axes' values.
struct Points {
    axes: Vec<Values>,
    values: BTreeMap<Vec<usize>, Vec<f64>>,
}

fn key_at(column: &dyn Array, row: usize) -> Key {
    let column = column.as_any();
    if let Some(numbers) = column.downcast_ref::<Float64Array>() {
        return Key::Number(numbers.value(row));
    }
    if let Some(numbers) = column.downcast_ref::<Int64Array>() {
        return Key::Number(numbers.value(row) as f64);
    }
    let text = column.downcast_ref::<StringArray>();
    Key::Text(text.map_or_else(String::new, |text| text.value(row).to_owned()))
}

/// A measure, if it is a number.
fn number_at(column: &dyn Array, row: usize) -> Option<f64> {
    if column.is_null(row) {
        return None;
    }
    let any = column.as_any();
    let float = any.downcast_ref::<Float64Array>().map(|c| c.value(row));
    float.or_else(|| any.downcast_ref::<UInt64Array>().map(|c| c.value(row) as f64))
}

impl DataSet {
    /// A report of the `wanted` metrics.
    ///
    /// # Errors
    /// An axis, a measure or a flow that the data do not have; too many values for a figure.
    pub fn report(&self, wanted: &Wanted) -> Result<Report, StudyError> {
        let axes = self.axes()?;
        let named = |name: &str| -> Result<String, StudyError> {
            let found = axes.iter().find(|(key, column)| key == name || column == name);
            let all: Vec<&str> = axes.iter().map(|a| a.0.as_str()).collect();
            found.map(|(_, column)| column.clone()).ok_or_else(|| {
                let what = format!("the study has no axis `{name}`");
                StudyError::new(what, knee_scenario::known(name, "its axes", &all))
            })
        };
        let x = named(&wanted.x)?;
        let y = wanted.y.as_deref().map(named).transpose()?;
        if y.as_ref() == Some(&x) {
            return Err(StudyError::new("x and y are the same axis", "name two axes"));
        }
        let over = wanted.over.iter().map(|n| named(n)).collect::<Result<Vec<_>, _>>()?;
        let only = wanted.only.iter().map(|(n, v)| Ok((named(n)?, v.clone())));
        let only = only.collect::<Result<Vec<(String, String)>, StudyError>>()?;
        let shown = |column: &&(String, String)| {
            !over.contains(&column.1) && !only.iter().any(|o| o.0 == column.1)
        };
        let mut order: Vec<String> = [Some(x.clone()), y.clone()].into_iter().flatten().collect();
        if let Some(series) = wanted.series.as_deref().filter(|_| y.is_none()) {
            order.push(named(series)?);
        }
        for (_, column) in axes.iter().filter(shown) {
            if !order.contains(column) {
                order.push(column.clone());
            }
        }
        if let Some(column) = order.iter().find(|column| over.contains(column)) {
            let what = format!("`{column}` is shown, and the median is taken over it");
            return Err(StudyError::new(what, "name it once"));
        }
        let points = self.points(wanted, order, &only)?;
        if points.values.is_empty() {
            let remedy = "finish some shards first, or show other values";
            return Err(StudyError::new("there is nothing to show", remedy));
        }
        let mut section = Section::new(wanted.value.clone());
        match y {
            Some(_) => section.drawings = heat_maps(&points, wanted)?,
            None => section.charts = charts(&points, wanted)?,
        }
        let status = self.status()?;
        if status.shards < status.shards_all {
            section.paragraphs.push(format!(
                "Only {} of {} shards are finished: this is not the whole study.",
                status.shards, status.shards_all
            ));
        }
        let study = std::fs::read_to_string(self.folder().join("study.toml")).unwrap_or_default();
        let scenario =
            std::fs::read_to_string(self.folder().join("scenario.toml")).unwrap_or_default();
        section.listings =
            vec![("The study".to_owned(), study), ("Its scenario".to_owned(), scenario)];
        let fact = |name: &str, value: String| (name.to_owned(), value);
        Ok(Report {
            title: status.title.unwrap_or_else(|| "A sweep".to_owned()),
            subtitle: format!("{} over {}", wanted.value, words(&wanted.x, wanted.y.as_deref())),
            meta: vec![
                fact("Runs", format!("{} of {}", status.runs, status.runs_all)),
                fact("Shards", format!("{} of {}", status.shards, status.shards_all)),
            ],
            sections: vec![section],
        })
    }

    fn points(
        &self,
        wanted: &Wanted,
        order: Vec<String>,
        only: &[(String, String)],
    ) -> Result<Points, StudyError> {
        let table = if wanted.flow.is_some() { "flows" } else { "runs" };
        let axis = |name| Values { name, all: Vec::new() };
        let mut points =
            Points { axes: order.into_iter().map(axis).collect(), values: BTreeMap::new() };
        let mut flows: Vec<String> = Vec::new();
        let fixed = |(name, text): &(String, String)| (axis(name.clone()), Key::meant(name, text));
        let mut fixed: Vec<(Values, Vec<Key>)> = only.iter().map(fixed).collect();
        for batch in self.read(table)? {
            let batch = batch?;
            let value = measure(&batch, &wanted.value)?;
            let column = |name: &str| -> Result<&dyn Array, StudyError> {
                let column = batch.column_by_name(name).map(|c| &**c);
                column.ok_or_else(|| StudyError::new(format!("no column `{name}`"), "see the data"))
            };
            let columns =
                points.axes.iter().map(|a| column(&a.name)).collect::<Result<Vec<_>, _>>()?;
            let fixed_columns =
                fixed.iter().map(|(axis, _)| column(&axis.name)).collect::<Result<Vec<_>, _>>()?;
            for row in 0..batch.num_rows() {
                if let Some(wanted) = &wanted.flow {
                    let Key::Text(flow) = key_at(column("flow")?, row) else { continue };
                    let is = flow == *wanted;
                    if !flows.contains(&flow) {
                        flows.push(flow);
                    }
                    if !is {
                        continue;
                    }
                }
                let mut is_shown = true;
                for ((seen, meant), column) in fixed.iter_mut().zip(&fixed_columns) {
                    let key = key_at(*column, row);
                    is_shown &= meant.contains(&key);
                    if seen.all.len() < NAMED_MAX {
                        seen.index(key);
                    }
                }
                if !is_shown {
                    continue;
                }
                let keys: Vec<Key> = columns.iter().map(|c| key_at(*c, row)).collect();
                let keys = points.axes.iter_mut().zip(keys).map(|(axis, key)| axis.index(key));
                let keys: Vec<usize> = keys.collect();
                let all = points.values.entry(keys).or_default();
                all.extend(number_at(value, row));
            }
        }
        match &wanted.flow {
            Some(flow) if !flows.contains(flow) => {
                let all: Vec<&str> = flows.iter().map(String::as_str).collect();
                let what = format!("no flow is called `{flow}`");
                return Err(StudyError::new(what, knee_scenario::known(flow, "there are", &all)));
            }
            _ => {}
        }
        for ((seen, meant), (_, text)) in fixed.iter().zip(only) {
            let none = !seen.all.is_empty() && !seen.all.iter().any(|key| meant.contains(key));
            if none && seen.all.len() < NAMED_MAX {
                let all: Vec<String> = seen.all.iter().map(Key::shown).collect();
                return Err(StudyError::new(
                    format!("`{}` is never `{text}`", seen.name),
                    format!("its values are {}", all.join(", ")),
                ));
            }
        }
        Ok(points)
    }
}

fn words(x: &str, y: Option<&str>) -> String {
    y.map_or_else(|| x.to_owned(), |y| format!("{x} and {y}"))
}

fn measure<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a dyn Array, StudyError> {
    let numbers: Vec<&str> = crate::table::metric_names()
        .into_iter()
        .filter(|n| batch.column_by_name(n).is_some())
        .collect();
    match batch.column_by_name(name).filter(|_| numbers.contains(&name)) {
        Some(column) => Ok(&**column),
        None => {
            let what = format!("the data have no metric `{name}`");
            Err(StudyError::new(what, knee_scenario::known(name, "there are", &numbers)))
        }
    }
}

/// The panels: the combinations of the axes from number `from` on, in words, and their places.
fn panels(points: &Points, from: usize) -> Result<Vec<(String, Vec<usize>)>, StudyError> {
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    for axis in &points.axes[from..] {
        let order = axis.order();
        let extend = |panel: &Vec<usize>| {
            let panel = panel.clone();
            order.iter().map(move |i| [panel.clone(), vec![*i]].concat()).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(extend).collect();
        if all.len() > PANELS_MAX {
            let what = format!("the other axes make more than {PANELS_MAX} figures");
            let name = &axis.name;
            let remedy = format!(
                "choose a value with --where {name}=VALUE, or take the median over an axis with \
                 --over {name}"
            );
            return Err(StudyError::new(what, remedy));
        }
    }
    let there = |panel: &Vec<usize>| points.values.keys().any(|key| key[from..] == panel[..]);
    let named = |panel: Vec<usize>| {
        let parts = points.axes[from..].iter().zip(&panel).filter(|(axis, _)| axis.all.len() > 1);
        let parts = parts.map(|(axis, i)| format!("{} {}", axis.name, axis.all[*i].shown()));
        (parts.collect::<Vec<_>>().join(", "), panel)
    };
    Ok(all.into_iter().filter(there).map(named).collect())
}

fn title(value: &str, panel: &str) -> String {
    if panel.is_empty() { value.to_owned() } else { format!("{value}: {panel}") }
}

fn median(values: &[f64]) -> Option<Percentiles> {
    Percentiles::of(values.iter().copied())
}

/// A number of three or four characters, what has its place in a cell.
fn brief(value: f64) -> String {
    let size = value.abs();
    let (scaled, unit) = match size {
        s if s >= 1e9 => (value / 1e9, "G"),
        s if s >= 1e6 => (value / 1e6, "M"),
        s if s >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = match scaled.abs() {
        s if s >= 100.0 => 0,
        s if s >= 10.0 => 1,
        s if s >= 1.0 || s == 0.0 => 2,
        _ => 3,
    };
    let text = format!("{scaled:.digits$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

fn heat_maps(
    points: &Points,
    wanted: &Wanted,
) -> Result<Vec<knee_report::drawing::Drawing>, StudyError> {
    let (x, y) = (&points.axes[0], &points.axes[1]);
    for axis in [x, y] {
        if axis.all.len() > SIDE_MAX {
            let what = format!("{} has {} values", axis.name, axis.all.len());
            let remedy = format!("a heat map has room for {SIDE_MAX}: leave out --y, for a chart");
            return Err(StudyError::new(what, remedy));
        }
    }
    let medians = points.values.values().filter_map(|v| Some(median(v)?.p50));
    let (low, high) =
        medians.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    // Small values stay small: a scale that does not begin at 0 shows differences that are none.
    let from = if low >= 0.0 && low < high / 2.0 { 0.0 } else { low };
    let map = |(number, (panel, rest)): (usize, (String, Vec<usize>))| {
        let cell = |row: &usize, column: &usize| {
            let key = [vec![*column, *row], rest.clone()].concat();
            let Some(p) = points.values.get(&key).and_then(|v| median(v)) else {
                return HeatCell { value: None, text: "–".to_owned(), detail: "–".to_owned() };
            };
            let n = points.values[&key].len();
            let bounds = format!("{:.4} ({:.4} to {:.4}) of {n}", p.p50, p.p20, p.p80);
            let detail = if n > 1 { bounds } else { format!("{:.4}", p.p50) };
            HeatCell { value: Some(p.p50), text: brief(p.p50), detail }
        };
        let shown = |axis: &Values| axis.order().iter().map(|i| axis.all[*i].shown()).collect();
        HeatMap {
            id: format!("map-{}", number + 1),
            title: title(&wanted.value, &panel),
            caption: "Median over the repetitions; all maps have the same scale.".to_owned(),
            row_head: y.name.clone(),
            column_head: x.name.clone(),
            rows: shown(y),
            columns: shown(x),
            colours: Colours::Rising { from, to: high },
            cells: y
                .order()
                .iter()
                .map(|row| x.order().iter().map(|column| cell(row, column)).collect())
                .collect(),
        }
        .drawing()
    };
    Ok(panels(points, 2)?.into_iter().enumerate().map(map).collect())
}

fn charts(points: &Points, wanted: &Wanted) -> Result<Vec<Chart>, StudyError> {
    let x = &points.axes[0];
    if x.all.iter().any(|key| matches!(key, Key::Text(_))) {
        let what = format!("{} is not a number, so it cannot be along x of a chart", x.name);
        return Err(StudyError::new(what, "name an axis of numbers, or make heat maps with --y"));
    }
    let number = |i: &usize| match &x.all[*i] {
        Key::Number(n) => *n,
        Key::Text(_) => 0.0,
    };
    let order = x.order();
    let has_series = points.axes.len() > 1;
    let ranges: Vec<f64> = order.iter().map(number).filter(|n| *n > 0.0).collect();
    let wide = ranges.first().zip(ranges.last()).is_some_and(|(low, high)| high / low >= 30.0);
    let all = points.values.values().filter_map(|v| Some(median(v)?.p80));
    let highest = all.fold(0.0, f64::max);
    let chart = |(number_of, (panel, rest)): (usize, (String, Vec<usize>))| {
        let id = format!("chart-{}", number_of + 1);
        let mut chart = Chart::new(id, title(&wanted.value, &panel), &x.name, &wanted.value);
        chart.caption =
            "Median over the repetitions, bars from the 20th to the 80th percentile.".to_owned();
        if wide && ranges.len() == order.len() {
            chart.x = Axis::log(&x.name);
        }
        chart.y.max = Some(highest * 1.05).filter(|max| *max > 0.0);
        let series: Vec<Vec<usize>> = match has_series {
            true => points.axes[1].order().into_iter().map(|i| vec![i]).collect(),
            false => vec![Vec::new()],
        };
        for (hue, own) in series.into_iter().enumerate() {
            let at = |i: &usize| {
                let key = [vec![*i], own.clone(), rest.clone()].concat();
                let p = median(points.values.get(&key)?)?;
                Some(Point::percentiles(number(i), p))
            };
            let found: Vec<Point> = order.iter().filter_map(at).collect();
            if found.is_empty() {
                continue;
            }
            let name = own.first().map_or_else(String::new, |i| points.axes[1].all[*i].shown());
            let style = if found.len() > 60 { Style::Marks } else { Style::LineMarks };
            chart.series.push(Series { name, style, hue: Some(hue), points: found });
        }
        chart
    };
    let panels = panels(points, if has_series { 2 } else { 1 })?;
    Ok(panels.into_iter().enumerate().map(chart).collect())
}
