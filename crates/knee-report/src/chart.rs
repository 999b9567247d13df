//! Charts: one model, drawn as SVG for print and handed to the report's script as JSON.

use plotters::{
    coord::{
        Shift,
        ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter},
    },
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};
use serde_json::{Value, json};
use std::{f64::consts::TAU, ops::Range};

/// A chart.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// Identifier, unique in a report; becomes part of an HTML id.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// What to know to read it; may be empty.
    pub caption: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Shaded stretches of the x axis.
    pub spans: Vec<Span>,
}

/// An axis.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// Quantity and unit, `goodput (Mbit/s)`.
    pub label: String,
    /// Linear or logarithmic.
    pub scale: Scale,
    /// Grows to the left (or down).
    pub reversed: bool,
    /// Smallest value shown; from the data if none (0 for a linear y axis of positive data).
    pub min: Option<f64>,
    /// Largest value shown; from the data if none.
    pub max: Option<f64>,
}

/// Scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Linear.
    #[default]
    Linear,
    /// Logarithmic. Values of 0 and below have no place: the caption says which were left out.
    Log,
}

/// A series.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// How it is drawn.
    pub style: Style,
    /// Colour and marker, by number, the same for series that belong together; by default the
    /// series' own position.
    pub hue: Option<usize>,
    /// Points by ascending x. One whose y is not finite leaves a gap.
    pub points: Vec<Point>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Line.
    Line,
    /// Each value holds until the next x.
    Steps,
    /// Dashed line without markers: for thresholds and models.
    Dashed,
    /// Dotted line without markers: where a third kind of line is needed.
    Dotted,
    /// A marker at each point.
    Marks,
    /// Line and a marker at each point.
    LineMarks,
}

impl Style {
    /// Whether it is a line with gaps.
    pub fn is_broken(self) -> bool {
        matches!(self, Self::Dashed | Self::Dotted)
    }
}

/// Length of the dashes and gaps of a broken line.
fn dashes(style: Style) -> (u32, u32) {
    if style == Style::Dotted { (5, 9) } else { (18, 12) }
}

/// A point, with an error bar if it has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Horizontal position.
    pub x: f64,
    /// Vertical position.
    pub y: f64,
    /// Lower end of the error bar.
    pub low: Option<f64>,
    /// Upper end of the error bar.
    pub high: Option<f64>,
}

/// A shaded stretch of the x axis.
#[derive(Clone, Debug)]
pub struct Span {
    /// Left end.
    pub from: f64,
    /// Right end.
    pub to: f64,
    /// What happens there.
    pub label: String,
}

impl Axis {
    /// Linear, range from the data.
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// Logarithmic, range from the data.
    pub fn log(label: impl Into<String>) -> Self {
        Self { scale: Scale::Log, ..Self::new(label) }
    }

    fn shows(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == Scale::Linear || value > 0.0)
    }

    /// Whether a point at `value` falls within the axis' own limits.
    fn within(&self, value: f64) -> bool {
        self.min.is_none_or(|min| value >= min) && self.max.is_none_or(|max| value <= max)
    }

    /// Range that shows `values`, with some room at the ends that are not fixed.
    fn range(&self, values: impl Iterator<Item = f64>, from_zero: bool, room: f64) -> Range<f64> {
        let (mut low, mut high) = values
            .filter(|v| self.shows(*v))
            .fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        if low > high {
            (low, high) = if self.scale == Scale::Log { (1.0, 10.0) } else { (0.0, 1.0) };
        }
        let (start, end) = match self.scale {
            Scale::Log => {
                let factor = if low == high { 2.0 } else { (high / low).powf(room) };
                (low / factor, high * factor)
            }
            Scale::Linear => {
                let base = if from_zero && low >= 0.0 { 0.0 } else { low };
                let width = if base == high { high.abs().max(1.0) } else { high - base };
                (if base == 0.0 { 0.0 } else { base - width * room }, high + width * room)
            }
        };
        self.min.unwrap_or(start)..self.max.unwrap_or(end)
    }
}

impl Point {
    /// Without an error bar.
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, low: None, high: None }
    }

    /// The median of repetitions with a bar from their 20th to their 80th percentile.
    pub fn percentiles(x: f64, y: knee_results::metrics::Percentiles) -> Self {
        Self { x, y: y.p50, low: Some(y.p20), high: Some(y.p80) }
    }
}

impl Series {
    /// Of points without error bars.
    pub fn new(
        name: impl Into<String>,
        style: Style,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        let points = points.into_iter().map(|(x, y)| Point::new(x, y)).collect();
        Self { name: name.into(), style, hue: None, points }
    }

    /// With the colour and marker of `hue`.
    pub fn hue(self, hue: usize) -> Self {
        Self { hue: Some(hue), ..self }
    }
}

/// Colours that colour-blind readers tell apart: Okabe and Ito's, with their yellow, too pale on
/// white, replaced by grey.
const PALETTE: [(u8, u8, u8); 8] = [
    (0, 114, 178),
    (213, 94, 0),
    (0, 158, 115),
    (0, 0, 0),
    (204, 121, 167),
    (230, 159, 0),
    (86, 180, 233),
    (110, 110, 110),
];

/// Outline of the marker of `hue`, around the origin, radius about 1: told apart without colour.
pub(crate) fn marker(hue: usize) -> Vec<(f64, f64)> {
    let regular = |corners: usize, radius: f64, turn: f64| -> Vec<(f64, f64)> {
        let angle = |i: usize| TAU * (i as f64 / corners as f64 + turn);
        (0..corners).map(|i| (radius * angle(i).cos(), radius * angle(i).sin())).collect()
    };
    // Twelve corners of a plus sign, by arms: two at the end of an arm, one in the angle after it.
    let plus = |turn: f64| -> Vec<(f64, f64)> {
        let (reach, half) = (1.15, 0.36);
        (0..4)
            .flat_map(|arm| {
                let (sin, cos) = (TAU * (f64::from(arm) / 4.0 + turn)).sin_cos();
                [(reach, -half), (reach, half), (half, half)]
                    .map(|(x, y)| (x * cos - y * sin, x * sin + y * cos))
            })
            .collect()
    };
    match hue % PALETTE.len() {
        0 => regular(16, 0.95, 0.0),
        1 => regular(4, 1.2, 0.125),
        2 => regular(3, 1.35, -0.25),
        3 => regular(4, 1.3, 0.0),
        4 => regular(3, 1.35, 0.25),
        5 => plus(0.0),
        6 => plus(0.125),
        _ => regular(3, 1.35, 0.0),
    }
}

/// Colour of `hue`: red, green, blue.
pub(crate) fn color_of(hue: usize) -> (u8, u8, u8) {
    PALETTE[hue % PALETTE.len()]
}

fn color(hue: usize) -> RGBColor {
    let (r, g, b) = color_of(hue);
    RGBColor(r, g, b)
}

/// `#rrggbb`.
pub(crate) fn hex((r, g, b): (u8, u8, u8)) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Size of a drawing; it scales, so only the proportions of text to plot matter. The drawing
/// library rounds to whole units, which these make invisible.
const WIDTH: u32 = 1600;
const HEIGHT: u32 = 840;
const TEXT: i32 = 42;
const STROKE: u32 = 4;
const MARKER: f64 = 11.0;
/// Average width of a sans-serif character, as a fraction of the text's size.
const CHARACTER: f64 = 0.45;
/// Lines have a marker every so many units.
const MARKER_EVERY: i32 = 190;

/// An axis with its range decided.
#[derive(Clone, Debug)]
pub(crate) struct Ruler {
    scale: Scale,
    reversed: bool,
    range: Range<f64>,
}

impl Ruler {
    pub(crate) fn new(axis: &Axis, range: Range<f64>) -> Self {
        Self { scale: axis.scale, reversed: axis.reversed, range }
    }

    /// Where `value` lies along the axis: 0 at its start on paper, 1 at its end.
    pub(crate) fn part(&self, value: f64) -> f64 {
        let place = |v: f64| if self.scale == Scale::Log { v.log10() } else { v };
        let (low, high) = (place(self.range.start), place(self.range.end));
        let part = (place(value) - low) / (high - low);
        if self.reversed { 1.0 - part } else { part }
    }

    /// At most about `n` round numbers within the range.
    pub(crate) fn ticks(&self, n: usize) -> Vec<f64> {
        let (low, high) = (self.range.start, self.range.end);
        let n = n.max(2) as f64;
        if self.scale == Scale::Log {
            let decades = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
            let span = (high / low).log10();
            let digits: &[f64] = match span {
                s if s <= 1.5 => &[1.0, 2.0, 3.0, 5.0],
                s if s <= 3.0 => &[1.0, 3.0],
                _ => &[1.0],
            };
            let skip = (span / n).ceil().max(1.0) as i32;
            return decades
                .filter(|d| d.rem_euclid(skip) == 0)
                .flat_map(|d| digits.iter().map(move |digit| round(digit * 10f64.powi(d))))
                .filter(|t| (low..=high).contains(t))
                .collect();
        }
        let rough = (high - low) / n;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0].into_iter().find(|s| s * power >= rough).unwrap_or(10.0) * power;
        let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
        (first..=last).map(|i| i as f64 * step).collect()
    }
}

impl Ranged for Ruler {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (start, end): (i32, i32)) -> i32 {
        start + (f64::from(end - start) * self.part(*value)).round() as i32
    }

    fn key_points<H: KeyPointHint>(&self, hint: H) -> Vec<f64> {
        self.ticks(hint.bold_points())
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Ruler {
    fn format_ext(&self, value: &f64) -> String {
        short(*value)
    }
}

/// A number with six significant digits and no more zeros than needed.
pub(crate) fn short(value: f64) -> String {
    let rounded = round(value);
    if rounded != 0.0 && !(1e-4..1e7).contains(&rounded.abs()) {
        return format!("{rounded:e}");
    }
    rounded.to_string()
}

/// Six significant digits: more than a chart shows, less than a file needs.
fn round(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Plot<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Ruler, Ruler>>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

impl Chart {
    /// With linear axes and nothing on them.
    pub fn new(
        id: impl Into<String>,
        title: impl Into<String>,
        x_label: impl Into<String>,
        y_label: impl Into<String>,
    ) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            x: Axis::new(x_label),
            y: Axis::new(y_label),
            ..Self::default()
        }
    }

    fn hue(&self, index: usize) -> usize {
        self.series[index].hue.unwrap_or(index)
    }

    /// Whether lines need markers to be told apart without colour.
    fn marked(&self) -> bool {
        let mut hues = (0..self.series.len()).map(|i| self.hue(i));
        hues.next().is_some_and(|first| hues.any(|h| h != first))
    }

    /// Whether `point` is drawn; one beyond the limits of the y axis is drawn at its edge.
    fn shows(&self, point: &Point) -> bool {
        self.x.shows(point.x) && self.x.within(point.x) && self.y.shows(point.y)
    }

    fn ranges(&self) -> (Range<f64>, Range<f64>) {
        let all = || self.series.iter().flat_map(|s| &s.points).filter(|p| self.shows(p));
        let spread = |p: &Point| [Some(p.y), p.low, p.high].into_iter().flatten();
        let room = if self.x.scale == Scale::Log || self.series.iter().all(has_marks) {
            0.03
        } else {
            0.0
        };
        (
            self.x.range(all().map(|p| p.x), false, room),
            self.y.range(all().flat_map(spread), true, 0.05),
        )
    }

    /// The caption, with the points that a logarithmic axis cannot show.
    pub fn full_caption(&self) -> String {
        let left_out: Vec<String> = self
            .series
            .iter()
            .flat_map(|s| s.points.iter().map(move |p| (s, p)))
            .filter(|(_, p)| p.x.is_finite() && p.y.is_finite())
            .filter(|(_, p)| !self.x.shows(p.x) || !self.y.shows(p.y))
            .map(|(s, p)| format!("{} at x = {}: {}", s.name, short(p.x), short(p.y)))
            .collect();
        let note = match left_out.len() {
            0 => return self.caption.clone(),
            1..=12 => format!("Not on the logarithmic axis: {}.", left_out.join("; ")),
            n => format!("Not on the logarithmic axis: {n} points."),
        };
        [self.caption.as_str(), &note].join(" ").trim_start().to_owned()
    }

    /// The chart as an SVG document. Text stays text; nothing is loaded.
    pub fn svg(&self) -> String {
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
        self.draw(&area).expect("drawing into a string cannot fail");
        drop(area);
        svg
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        let legend_height = self.draw_legend(area)?;
        let (_, area) = area.split_vertically(legend_height);
        let text = || ("sans-serif", TEXT).into_font().color(&BLACK);
        let (x, y) = self.ranges();
        let (x, y) = (Ruler::new(&self.x, x), Ruler::new(&self.y, y));
        let widest = y.ticks(6).iter().map(|t| short(*t).len()).max().unwrap_or(1);
        let mut plot = ChartBuilder::on(&area)
            .margin(20)
            .margin_right(46)
            .x_label_area_size(TEXT * 5 / 2)
            .y_label_area_size(TEXT * 2 + (widest as f64 * CHARACTER * f64::from(TEXT)) as i32)
            .build_cartesian_2d(x.clone(), y.clone())?;
        for span in &self.spans {
            let (from, to) = (span.from.max(x.range.start), span.to.min(x.range.end));
            if from >= to {
                continue;
            }
            let corners = [(from, y.range.start), (to, y.range.end)];
            plot.draw_series([Rectangle::new(corners, RGBColor(236, 236, 236).filled())])?;
            let at = if self.x.reversed { to } else { from };
            let style = ("sans-serif", TEXT * 4 / 5).into_font().color(&RGBColor(90, 90, 90));
            plot.draw_series([
                EmptyElement::at((at, y.range.end)) + Text::new(span.label.clone(), (10, 8), style)
            ])?;
        }
        plot.configure_mesh()
            .x_labels(10)
            .y_labels(6)
            .bold_line_style(RGBColor(214, 214, 214).stroke_width(2))
            .light_line_style(TRANSPARENT)
            .axis_style(BLACK.stroke_width(3))
            .set_all_tick_mark_size(10)
            .label_style(text())
            .axis_desc_style(text())
            .x_desc(self.x.label.clone())
            .y_desc(self.y.label.clone())
            .draw()?;
        for index in 0..self.series.len() {
            self.draw_series(&mut plot, index, &y.range)?;
        }
        area.present()?;
        Ok(())
    }

    fn draw_series(&self, plot: &mut Plot<'_, '_>, index: usize, y: &Range<f64>) -> Drawn {
        let (series, hue) = (&self.series[index], self.hue(index));
        let stroke = color(hue).stroke_width(STROKE);
        let clip = |v: f64| v.clamp(y.start, y.end);
        for run in series.points.split(|p| !self.shows(p)).filter(|r| !r.is_empty()) {
            let line = run.iter().map(|p| (p.x, clip(p.y)));
            match series.style {
                Style::Marks => {}
                Style::Dashed | Style::Dotted => {
                    let line: Vec<_> = line.collect();
                    let (on, off) = dashes(series.style);
                    plot.draw_series(DashedLineSeries::new(line, on, off, stroke))?;
                }
                Style::Line | Style::LineMarks => {
                    plot.draw_series([PathElement::new(line.collect::<Vec<_>>(), stroke)])?;
                }
                Style::Steps => {
                    let corners = run.windows(2).map(|p| (p[1].x, clip(p[0].y)));
                    let mut steps: Vec<_> = line.zip(corners).flat_map(|(a, b)| [a, b]).collect();
                    steps.extend(run.last().map(|p| (p.x, clip(p.y))));
                    plot.draw_series([PathElement::new(steps, stroke)])?;
                }
            }
        }
        let bar = color(hue).stroke_width(STROKE * 2 / 3);
        let shown = || series.points.iter().filter(|p| self.shows(p));
        for p in shown() {
            let (Some(low), Some(high)) = (p.low, p.high) else { continue };
            // On a logarithmic axis a bar that reaches 0 goes down to the edge.
            let (low, high) = (clip(low), clip(high));
            let cap = || PathElement::new(vec![(-10, 0), (10, 0)], bar);
            plot.draw_series([PathElement::new(vec![(p.x, low), (p.x, high)], bar)])?;
            plot.draw_series([low, high].map(|v| EmptyElement::at((p.x, v)) + cap()))?;
        }
        let every = match series.style {
            Style::Marks | Style::LineMarks => 0,
            Style::Line | Style::Steps if self.marked() => MARKER_EVERY,
            _ => return Ok(()),
        };
        // Staggered, so that lines on top of each other still show who they are.
        let mut last =
            every * (hue as i32 % 4 - 4) / 4 + plot.plotting_area().get_pixel_range().0.start;
        for p in shown() {
            let at = (p.x, clip(p.y));
            let x = plot.backend_coord(&at).0;
            if every == 0 || (x - last).abs() >= every {
                last = x;
                let shape = |size, color: RGBColor| {
                    EmptyElement::at(at) + Polygon::new(marker_of(hue, size), color.filled())
                };
                if every > 0 {
                    // Stands out from a dense line of its own colour.
                    plot.draw_series([shape(MARKER + 5.0, WHITE)])?;
                }
                plot.draw_series([shape(MARKER, color(hue))])?;
            }
        }
        Ok(())
    }

    /// Draws the legend at the top of `area`; gives its height.
    fn draw_legend(&self, area: &Area<'_>) -> Result<i32, Box<dyn std::error::Error>> {
        if self.series.len() < 2 && self.series.iter().all(|s| s.name.is_empty()) {
            return Ok(10);
        }
        let (left, line) = (70, TEXT * 3 / 2);
        let (mut x, mut y) = (left, line / 2 + 10);
        for (index, series) in self.series.iter().enumerate() {
            let hue = self.hue(index);
            let stroke = color(hue).stroke_width(STROKE);
            let width = 130 + (series.name.chars().count() as f64 * 0.56 * f64::from(TEXT)) as i32;
            if x > left && x + width > WIDTH as i32 {
                (x, y) = (left, y + line);
            }
            match series.style {
                Style::Marks => {}
                Style::Dashed | Style::Dotted => {
                    // Shorter, so that a whole number of them fits.
                    let (on, off) = if series.style == Style::Dotted { (5, 9) } else { (17, 10) };
                    for dash in (0..70).step_by(on + off) {
                        let ends = vec![(x + dash, y), (x + dash + on as i32, y)];
                        area.draw(&PathElement::new(ends, stroke))?;
                    }
                }
                _ => area.draw(&PathElement::new(vec![(x, y), (x + 70, y)], stroke))?,
            }
            if has_marks(series) || (self.marked() && !series.style.is_broken()) {
                let shape = Polygon::new(marker_of(hue, MARKER), color(hue).filled());
                area.draw(&(EmptyElement::at((x + 35, y)) + shape))?;
            }
            let style = ("sans-serif", TEXT).into_font().color(&BLACK);
            let style = style.pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new(series.name.clone(), (x + 84, y), style))?;
            x += width;
        }
        Ok(y + line / 2)
    }

    /// What the report's script draws from.
    pub(crate) fn json(&self) -> Value {
        let (x, y) = self.ranges();
        let axis = |axis: &Axis, range: Range<f64>| {
            json!({
                "label": axis.label,
                "log": axis.scale == Scale::Log,
                "reversed": axis.reversed,
                "min": range.start,
                "max": range.end,
            })
        };
        let series = self.series.iter().enumerate().map(|(index, s)| {
            let points = || s.points.iter().filter(|p| self.x.shows(p.x) && self.x.within(p.x));
            let column = |of: fn(&Point) -> Option<f64>, axis: &Axis| -> Vec<Option<f64>> {
                points().map(|p| of(p).filter(|v| axis.shows(*v)).map(round)).collect()
            };
            let with_bars = s.points.iter().any(|p| p.low.is_some() && p.high.is_some());
            let bar = |of| with_bars.then(|| column(of, &Axis::default()));
            json!({
                "name": s.name,
                "style": match s.style {
                    Style::Line => "line",
                    Style::Steps => "steps",
                    Style::Dashed => "dashed",
                    Style::Dotted => "dotted",
                    Style::Marks => "marks",
                    Style::LineMarks => "line-marks",
                },
                "hue": self.hue(index) % PALETTE.len(),
                "x": column(|p| Some(p.x), &self.x),
                "y": column(|p| Some(p.y), &self.y),
                "low": bar(|p| p.low),
                "high": bar(|p| p.high),
            })
        });
        json!({
            "id": self.id,
            "x": axis(&self.x, x),
            "y": axis(&self.y, y),
            "marked": self.marked(),
            "series": series.collect::<Vec<_>>(),
            "spans": self
                .spans
                .iter()
                .map(|s| json!({ "from": s.from, "to": s.to, "label": s.label }))
                .collect::<Vec<_>>(),
        })
    }
}

fn has_marks(series: &Series) -> bool {
    matches!(series.style, Style::Marks | Style::LineMarks)
}

/// The marker of `hue` in the drawing's units.
fn marker_of(hue: usize, size: f64) -> Vec<(i32, i32)> {
    let scale = |v: f64| (v * size).round() as i32;
    marker(hue).into_iter().map(|(x, y)| (scale(x), scale(y))).collect()
}

/// Colours and markers for the report's script.
pub(crate) fn palette_json() -> Value {
    let hues = PALETTE.iter().enumerate().map(|(hue, color)| {
        let shape: Vec<_> = marker(hue).into_iter().map(|(x, y)| [round(x), round(y)]).collect();
        json!({ "color": hex(*color), "marker": shape })
    });
    hues.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_results::metrics::Percentiles;

    fn sweep() -> Chart {
        let mut chart = Chart::new("sweep", "Goodput and loss", "loss", "goodput (Mbit/s)");
        chart.x = Axis::log("loss probability");
        let p = |y| Percentiles { p20: y - 0.5, p50: y, p80: y + 1.0 };
        for (name, y) in [("CHD <&>", 9.0), ("HD", 4.0)] {
            let mut s = Series::new(name, Style::LineMarks, [(0.0, y)]);
            s.points.push(Point::percentiles(1e-3, p(y)));
            s.points.push(Point::percentiles(1e-2, p(y - 1.0)));
            chart.series.push(s);
        }
        chart
    }

    #[test]
    fn svg_is_well_formed_and_complete() {
        let svg = sweep().svg();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg:.80}");
        assert!(svg.contains("viewBox"));
        assert!(svg.contains("CHD &lt;&amp;&gt;") && !svg.contains("CHD <"));
        for text in ["loss probability", "goodput (Mbit/s)", "0.001", "0.01"] {
            assert!(svg.contains(text), "{text}");
        }
        // Two lines, and a bar with two caps at each of four points.
        assert!(svg.matches("<polyline").count() >= 2 + 4 * 3);
        // Four points and two entries of the legend.
        assert_eq!(svg.matches("<polygon").count(), 6);
    }

    #[test]
    fn a_logarithmic_axis_says_what_it_leaves_out() {
        let chart = sweep();
        assert_eq!(
            chart.full_caption(),
            "Not on the logarithmic axis: CHD <&> at x = 0: 9; HD at x = 0: 4."
        );
        assert_eq!(chart.json()["series"][0]["x"], json!([0.001, 0.01]));
        assert_eq!(chart.json()["series"][0]["low"], json!([8.5, 7.5]));
    }

    #[test]
    fn gaps_split_lines_and_become_null() {
        let mut chart = Chart::new("gap", "Gap", "t (s)", "q (ms)");
        let points = [(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 1.0), (4.0, 3.0)];
        chart.series.push(Series::new("", Style::Line, points));
        let blue = |svg: &str| svg.lines().filter(|l| l.contains("#0072B2")).count();
        assert_eq!(blue(&chart.svg()), 2);
        assert_eq!(chart.json()["series"][0]["y"], json!([1.0, 2.0, null, 1.0, 3.0]));
    }

    #[test]
    fn empty_and_constant_data_draw() {
        let mut chart = Chart::new("none", "None", "x", "y");
        assert!(chart.svg().contains("</svg>"));
        chart.series.push(Series::new("", Style::Steps, [(1.0, 5.0)]));
        assert!(!chart.svg().contains("NaN"));
        chart.x.scale = Scale::Log;
        chart.y.scale = Scale::Log;
        assert!(!chart.svg().contains("NaN") && !chart.svg().contains("inf"));
        assert!(!chart.svg().contains(&i32::MAX.to_string()));
    }

    #[test]
    fn ticks_are_round_and_few() {
        let ruler = |scale, range| Ruler { scale, reversed: false, range };
        assert_eq!(ruler(Scale::Linear, 0.0..10.5).ticks(6), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ruler(Scale::Log, 1e-4..0.06).ticks(10), [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2]);
        assert_eq!(short(0.1 + 0.2), "0.3");
        assert_eq!(short(1e-5), "1e-5");
        assert_eq!(short(1_500_000.0), "1500000");
    }

    #[test]
    fn a_reversed_axis_grows_to_the_left() {
        let ruler = Ruler { scale: Scale::Linear, reversed: true, range: 0.0..10.0 };
        assert_eq!((ruler.map(&0.0, (0, 100)), ruler.map(&2.0, (0, 100))), (100, 80));
    }
}
