//! Charts, drawn as SVG. A report has the same drawing, with names of its parts and the values as JSON for its script.

pub use crate::axis::{Axis, Scale};
use crate::{
    axis::{Ruler, round, short},
    palette::{HUES, color, marker},
    svg::{Frame, Paper, document, place, points, width_of},
};
use maud::{Markup, html};
use serde_json::{Value, json};
use std::ops::Range;

/// A chart.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// Identifier, unique in a report; becomes part of an HTML id.
    pub id: String,
    /// Title.
    pub title: String,
    /// Explanations for the reader; may be empty.
    pub caption: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Series of the chart.
    pub series: Vec<Series>,
    /// Shaded stretches of the x axis.
    pub spans: Vec<Span>,
}

/// A series.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Style of the drawing.
    pub style: Style,
    /// Colour and marker, by number, the same for series that belong together; by default the
    /// series' own position.
    pub hue: Option<usize>,
    /// Points by ascending x. One whose y is not finite leaves a gap.
    pub points: Vec<Point>,
}

/// The style of a series.
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
    /// Returns whether it is a line with gaps.
    pub fn is_broken(self) -> bool {
        matches!(self, Self::Dashed | Self::Dotted)
    }
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
    /// Description of the event.
    pub label: String,
}

impl Point {
    /// A point without an error bar.
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, low: None, high: None }
    }

    /// The median of repetitions with a bar from their 20th to their 80th percentile.
    pub fn percentiles(x: f64, y: knee_results::metrics::Percentiles) -> Self {
        Self { x, y: y.p50, low: Some(y.p20), high: Some(y.p80) }
    }
}

impl Series {
    /// A series of points without error bars.
    pub fn new(
        name: impl Into<String>,
        style: Style,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        let points = points.into_iter().map(|(x, y)| Point::new(x, y)).collect();
        Self { name: name.into(), style, hue: None, points }
    }

    /// The series with the colour and marker of `hue`.
    pub fn hue(self, hue: usize) -> Self {
        Self { hue: Some(hue), ..self }
    }
}

impl Chart {
    /// An empty chart with linear axes.
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

    /// Returns whether lines need markers to be distinguished without colour.
    fn marked(&self) -> bool {
        let mut hues = (0..self.series.len()).map(|i| self.hue(i));
        hues.next().is_some_and(|first| hues.any(|h| h != first))
    }

    /// Returns whether `point` is drawn; one beyond the limits of the y axis is drawn at its edge.
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
        self.document(false)
    }

    /// The same for a report, whose script looks for the names of the parts.
    pub(crate) fn page_svg(&self) -> String {
        self.document(true)
    }

    fn document(&self, named: bool) -> String {
        let (legend, height) = self.legend();
        let frame = self.frame(height, named);
        let content = html! {
            (legend)
            @for span in &self.spans { (span_markup(span, &frame)) }
            (frame.axes(&self.x.label, &self.y.label))
            @for index in 0..self.series.len() { (self.series_markup(index, &frame)) }
        };
        let height = frame.bottom + TEXT * 3.7;
        document(Paper::White, (WIDTH, height), &self.title, TEXT, &content)
    }

    /// The place of the plot below a legend of this height.
    fn frame(&self, legend_height: f64, named: bool) -> Frame {
        let (x, y) = self.ranges();
        let (x, y) = (Ruler::new(&self.x, x), Ruler::new(&self.y, y));
        let widest = y.ticks(6).iter().map(|t| width_of(&short(*t), TEXT)).fold(0.0, f64::max);
        Frame {
            left: TEXT * 2.4 + widest,
            right: WIDTH - 24.0,
            top: legend_height + 10.0,
            bottom: legend_height + 10.0 + PLOT_HEIGHT,
            x,
            y,
            text_size: TEXT,
            named,
        }
    }

    /// A line or marks, with their error bars.
    fn series_markup(&self, index: usize, frame: &Frame) -> Markup {
        let (series, hue) = (&self.series[index], self.hue(index));
        let ends = frame.y.range();
        let at = |p: &Point| (frame.x(p.x), frame.y(p.y.clamp(ends.start, ends.end)));
        let runs = series.points.split(|p| !self.shows(p)).filter(|run| !run.is_empty());
        let line = |run: &[Point]| -> Vec<(f64, f64)> {
            if series.style != Style::Steps {
                return run.iter().map(at).collect();
            }
            // Each value holds until the next x.
            let corner = |pair: &[Point]| [at(&pair[0]), (frame.x(pair[1].x), at(&pair[0]).1)];
            run.windows(2).flat_map(corner).chain(run.last().map(at)).collect()
        };
        let shown = || series.points.iter().filter(|p| self.shows(p));
        html! {
            g data-part=[frame.part(format!("series-{index}"))] stroke=(color(hue)) fill=(color(hue)) {
                @if series.style != Style::Marks {
                    g fill="none" stroke-width=(STROKE) stroke-linejoin="round"
                        stroke-dasharray=[dashes(series.style)] {
                        @for run in runs { polyline points=(points(line(run))) {} }
                    }
                }
                @for p in shown() {
                    @if let (Some(low), Some(high)) = (p.low, p.high) {
                        (bar(frame, p.x, low, high))
                    }
                }
                @for corner in self.marked_places(index, frame, shown().map(at)) {
                    polygon stroke="#fff" points=(points(marker_at(hue, corner))) {}
                }
            }
        }
    }

    /// Selects the `places`, those of the points of a series, that have a marker.
    fn marked_places(
        &self,
        index: usize,
        frame: &Frame,
        places: impl Iterator<Item = (f64, f64)>,
    ) -> Vec<(f64, f64)> {
        let every = match self.series[index].style {
            Style::Marks | Style::LineMarks => 0.0,
            Style::Line | Style::Steps if self.marked() => MARKER_EVERY,
            _ => return Vec::new(),
        };
        // Staggered, so that lines on top of each other still show who they are.
        let mut last = frame.left + every * ((self.hue(index) % 4) as f64 - 4.0) / 4.0;
        let wanted = |(x, _): &(f64, f64)| {
            let far = (x - last).abs() >= every;
            if far {
                last = *x;
            }
            far
        };
        places.filter(wanted).collect()
    }

    /// The legend, and its height.
    fn legend(&self) -> (Markup, f64) {
        if self.series.len() < 2 && self.series.iter().all(|s| s.name.is_empty()) {
            return (Markup::default(), 6.0);
        }
        let (left, row) = (35.0, TEXT * 1.7);
        let (mut x, mut y) = (left, row / 2.0 + 6.0);
        let mut places = Vec::with_capacity(self.series.len());
        for series in &self.series {
            let width = KEY + TEXT * 1.8 + width_of(&series.name, TEXT);
            if x > left && x + width > WIDTH {
                (x, y) = (left, y + row);
            }
            places.push((x, y));
            x += width;
        }
        let markup = html! {
            @for (index, (series, &(x, y))) in self.series.iter().zip(&places).enumerate() {
                @let hue = self.hue(index);
                g stroke=(color(hue)) fill=(color(hue)) {
                    @if series.style != Style::Marks {
                        polyline fill="none" stroke-width=(STROKE)
                            stroke-dasharray=[dashes(series.style)]
                            points=(points([(x, y), (x + KEY, y)])) {}
                    }
                    @if has_marks(series) || (self.marked() && !series.style.is_broken()) {
                        polygon stroke="#fff" points=(points(marker_at(hue, (x + KEY / 2.0, y)))) {}
                    }
                }
                text x=(place(x + KEY + TEXT * 0.4)) y=(place(y + TEXT * 0.36)) { (series.name) }
            }
        };
        (markup, y + row / 2.0)
    }

    /// The data for the report's script: the place of the plot, its axes, and the values of each series.
    pub(crate) fn json(&self) -> Value {
        let frame = self.frame(self.legend().1, true);
        let ends = [frame.left, frame.right, frame.top, frame.bottom].map(place);
        let x = frame.x.range();
        let series = self.series.iter().enumerate().map(|(index, s)| {
            let points = || s.points.iter().filter(|p| self.x.shows(p.x) && self.x.within(p.x));
            let y = |p: &Point| Some(p.y).filter(|y| self.y.shows(*y)).map(round);
            json!({
                "name": s.name,
                "hue": self.hue(index) % HUES,
                "x": points().map(|p| round(p.x)).collect::<Vec<_>>(),
                "y": points().map(y).collect::<Vec<_>>(),
            })
        });
        json!({
            "id": self.id,
            "frame": ends,
            "x": {
                "label": self.x.label,
                "log": self.x.scale == Scale::Log,
                "reversed": self.x.reversed,
                "min": x.start,
                "max": x.end,
            },
            "y": { "label": self.y.label },
            "series": series.collect::<Vec<_>>(),
        })
    }
}

/// Width of a chart; it scales, so only the proportions of text to plot matter.
const WIDTH: f64 = 800.0;
const PLOT_HEIGHT: f64 = 310.0;
const TEXT: f64 = 17.0;
const STROKE: f64 = 2.0;
const MARKER: f64 = 6.2;
/// Half the width of the ends of an error bar.
const CAP: f64 = 5.0;
/// Distance between the markers of a line, units.
const MARKER_EVERY: f64 = 95.0;
/// Length of a line in the legend.
const KEY: f64 = 35.0;

/// Dashes and gaps of a broken line.
fn dashes(style: Style) -> Option<&'static str> {
    match style {
        Style::Dashed => Some("9 6"),
        Style::Dotted => Some("2.5 4.5"),
        _ => None,
    }
}

/// An error bar. On a logarithmic axis one that reaches 0 goes down to the edge.
fn bar(frame: &Frame, x: f64, low: f64, high: f64) -> Markup {
    let ends = frame.y.range();
    let y = |v: f64| place(frame.y(v.clamp(ends.start, ends.end)));
    let (x, low, high) = (frame.x(x), y(low), y(high));
    let (left, middle, right) = (place(x - CAP), place(x), place(x + CAP));
    html! {
        path fill="none" stroke-width="1.3"
            d=(format!("M{middle} {low}V{high}M{left} {low}H{right}M{left} {high}H{right}")) {}
    }
}

/// A shaded stretch of the x axis, cut at the edges of the plot.
fn span_markup(span: &Span, frame: &Frame) -> Markup {
    let ends = frame.x.range();
    let (from, to) = (span.from.max(ends.start), span.to.min(ends.end));
    if from >= to {
        return Markup::default();
    }
    let (a, b) = (frame.x(from), frame.x(to));
    let (left, width) = (a.min(b), (b - a).abs());
    html! {
        rect data-part=[frame.part("span")] x=(place(left)) y=(place(frame.top)) width=(place(width))
            height=(place(frame.bottom - frame.top)) fill="#ececec" {}
        text data-part=[frame.part("span-label")] x=(place(left + 5.0)) y=(place(frame.top + TEXT))
            font-size=(place(TEXT * 0.8))
            fill="#5a5a5a" { (span.label) }
    }
}

/// The marker of `hue` around a place.
fn marker_at(hue: usize, (x, y): (f64, f64)) -> impl Iterator<Item = (f64, f64)> {
    marker(hue).into_iter().map(move |(dx, dy)| (x + dx * MARKER, y + dy * MARKER))
}

fn has_marks(series: &Series) -> bool {
    matches!(series.style, Style::Marks | Style::LineMarks)
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
        // The axes, two lines, two entries of the legend; a bar at each of four points.
        assert_eq!(svg.matches("<polyline").count(), 1 + 2 + 2);
        assert_eq!(svg.matches("<path").count(), 4);
        // Four points and two entries of the legend.
        assert_eq!(svg.matches("<polygon").count(), 6);
    }

    #[test]
    fn a_logarithmic_axis_names_left_out_values() {
        let chart = sweep();
        assert_eq!(
            chart.full_caption(),
            "Not on the logarithmic axis: CHD <&> at x = 0: 9; HD at x = 0: 4."
        );
        assert_eq!(chart.json()["series"][0]["x"], json!([0.001, 0.01]));
        assert_eq!(chart.json()["series"][0]["y"], json!([9.0, 8.0]));
    }

    #[test]
    fn a_report_has_the_file_and_names_of_its_parts() {
        let mut chart = sweep();
        chart.spans.push(Span { from: 2e-3, to: 5e-3, label: "idle".into() });
        let mut page = chart.page_svg();
        for (part, count) in [("series-0", 1), ("series-1", 1), ("span", 1), ("span-label", 1)] {
            let name = format!(" data-part=\"{part}\"");
            assert_eq!(page.matches(&name).count(), count, "{part}");
            page = page.replace(&name, "");
        }
        let ticks = chart.frame(0.0, true).x.ticks(10).len();
        for part in ["grid", "tick", "number"] {
            let name = format!(" data-part=\"{part}\"");
            assert_eq!(page.matches(&name).count(), ticks, "{part}");
            page = page.replace(&name, "");
        }
        assert_eq!(page, chart.svg());
    }

    #[test]
    fn gaps_split_lines_and_become_null() {
        let mut chart = Chart::new("gap", "Gap", "t (s)", "q (ms)");
        let points = [(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 1.0), (4.0, 3.0)];
        chart.series.push(Series::new("", Style::Line, points));
        // The axes and two lines.
        assert_eq!(chart.svg().matches("<polyline").count(), 3);
        assert_eq!(chart.json()["series"][0]["y"], json!([1.0, 2.0, null, 1.0, 3.0]));
    }

    #[test]
    fn empty_and_constant_data_draw() {
        let mut chart = Chart::new("none", "None", "x", "y");
        assert!(chart.svg().contains("</svg>"));
        chart.series.push(Series::new("", Style::Steps, [(1.0, 5.0)]));
        assert!(!chart.svg().contains("NaN"));
        assert_eq!(chart.json()["x"]["min"], 0.5);
        assert_eq!(chart.json()["x"]["max"], 1.5);
        chart.x.scale = Scale::Log;
        chart.y.scale = Scale::Log;
        assert!(!chart.svg().contains("NaN") && !chart.svg().contains("inf"));
    }

    /// Coordinates of the polylines, in the order of the drawing.
    fn lines(svg: &str) -> Vec<Vec<(f64, f64)>> {
        let lists = svg.split("<polyline").skip(1).map(|rest| {
            let (_, rest) = rest.split_once("points=\"").unwrap();
            rest.split_once('"').unwrap().0
        });
        let corner = |text: &str| {
            let (x, y) = text.split_once(',').unwrap();
            (x.parse().unwrap(), y.parse().unwrap())
        };
        lists.map(|list| list.split(' ').map(corner).collect()).collect()
    }

    #[test]
    fn lines_go_where_the_values_are() {
        let mut chart = Chart::new("line", "Line", "t (s)", "q (ms)");
        (chart.x.max, chart.y.max) = (Some(10.0), Some(4.0));
        chart.series.push(Series::new("", Style::Line, [(0.0, 0.0), (2.5, 1.0), (10.0, 9.0)]));
        let drawn = lines(&chart.svg());
        let [(left, top), (_, bottom), (right, _)] = drawn[0][..] else { panic!("axes") };
        let quarter = place(left + (right - left) / 4.0);
        // A value beyond the axis is drawn at its edge.
        assert_eq!(
            drawn[1],
            [(left, bottom), (quarter, place(bottom - (bottom - top) / 4.0)), (right, top)]
        );
        // A value of steps holds until the next.
        chart.series[0].style = Style::Steps;
        let steps = lines(&chart.svg()).remove(1);
        assert_eq!(steps.len(), 5);
        assert_eq!(steps[..3], [(left, bottom), (quarter, bottom), (quarter, drawn[1][1].1)]);
        // To the left.
        chart.series[0].style = Style::Line;
        chart.x.reversed = true;
        assert_eq!(lines(&chart.svg())[1][0], (right, bottom));
    }

    #[test]
    fn broken_lines_are_dashed_in_plot_and_legend() {
        let mut chart = Chart::new("two", "Two", "x", "y");
        chart.series.push(Series::new("line", Style::Line, [(0.0, 1.0), (1.0, 2.0)]));
        chart.series.push(Series::new("model", Style::Dashed, [(0.0, 2.0), (1.0, 2.0)]));
        chart.spans.push(Span { from: -5.0, to: 0.5, label: "<idle>".into() });
        let svg = chart.svg();
        assert_eq!(svg.matches("stroke-dasharray").count(), 2);
        assert!(svg.contains("&lt;idle&gt;") && svg.contains("#ececec"));
    }

    #[test]
    fn a_legend_of_many_takes_several_rows() {
        let height = |n: usize| -> f64 {
            let mut chart = Chart::new("many", "Many", "x", "y");
            for i in 0..n {
                chart.series.push(Series::new(format!("flow {i}"), Style::Line, [(0.0, 1.0)]));
            }
            let svg = chart.svg();
            svg.split("height=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        assert_eq!(height(2), height(3));
        assert!(height(12) > height(3) + TEXT);
    }
}
