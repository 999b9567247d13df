//! Drawings that are no curves: heat maps, and Pantheon's plot of throughput against delay. As SVG
//! in the colours of the page around it, with their values as a table.

use crate::{
    axis::{Axis, Ruler, Scale, short},
    palette::{color, marker},
    svg::{Frame, Paper, document, place, points, width_of},
    table::Table,
};
use maud::{Markup, html};
use std::{f64::consts::TAU, ops::Range};

/// A drawing of a report.
#[derive(Clone, Debug, Default)]
pub struct Drawing {
    /// Identifier, unique in a report; becomes part of an HTML id.
    pub id: String,
    /// Title.
    pub title: String,
    /// Explanations for the reader; may be empty.
    pub caption: String,
    /// The drawing as an SVG document. Text stays text; nothing is loaded.
    pub svg: String,
    /// Its values, in numbers.
    pub table: Table,
}

/// A value for each pair of a row and a column.
#[derive(Clone, Debug)]
pub struct HeatMap {
    /// Identifier, unique in a report.
    pub id: String,
    /// Title, with its unit.
    pub title: String,
    /// Explanations for the reader.
    pub caption: String,
    /// Meaning of a row, in one or two words.
    pub row_head: String,
    /// Meaning of a column, in one or two words.
    pub column_head: String,
    /// Names of the rows.
    pub rows: Vec<String>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Mapping of values to colours.
    pub colours: Colours,
    /// Rows of cells.
    pub cells: Vec<Vec<HeatCell>>,
}

/// A cell of a heat map.
#[derive(Clone, Debug, Default)]
pub struct HeatCell {
    /// Decides its colour; without one it stays blank.
    pub value: Option<f64>,
    /// Written in it: few characters.
    pub text: String,
    /// Shown on pointing at it, and in the table.
    pub detail: String,
}

/// The mapping of values to colours. Values beyond the ends have the colours of the ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Colours {
    /// A scale from pale to dark.
    Rising {
        /// Palest.
        from: f64,
        /// Darkest.
        to: f64,
    },
    /// Blue below a middle, orange above it.
    Around {
        /// Neither.
        middle: f64,
        /// Distance of the full colours from it.
        reach: f64,
    },
}

type Rgb = (u8, u8, u8);

const PALE: Rgb = (240, 246, 252);
const MEDIUM: Rgb = (86, 150, 205);
const DARK: Rgb = (10, 50, 110);
const BLUE: Rgb = (0, 114, 178);
const NEUTRAL: Rgb = (247, 247, 247);
const ORANGE: Rgb = (213, 94, 0);

/// `#rrggbb`.
fn hex((r, g, b): Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn mix(from: Rgb, to: Rgb, part: f64) -> Rgb {
    let of = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * part).round() as u8;
    (of(from.0, to.0), of(from.1, to.1), of(from.2, to.2))
}

impl Colours {
    /// Position of `value` between the ends, 0 to 1.
    fn part(self, value: f64) -> f64 {
        let (from, to) = self.ends();
        if to > from { ((value - from) / (to - from)).clamp(0.0, 1.0) } else { 0.5 }
    }

    fn ends(self) -> (f64, f64) {
        match self {
            Self::Rising { from, to } => (from, to),
            Self::Around { middle, reach } => (middle - reach, middle + reach),
        }
    }

    fn at(self, part: f64) -> Rgb {
        let [low, middle, high] = match self {
            Self::Rising { .. } => [PALE, MEDIUM, DARK],
            Self::Around { .. } => [BLUE, NEUTRAL, ORANGE],
        };
        if part < 0.5 { mix(low, middle, part * 2.0) } else { mix(middle, high, part * 2.0 - 1.0) }
    }
}

/// Relative luminance, 0 to 1, as WCAG 2 defines it.
fn luminance(color: Rgb) -> f64 {
    let linear = |c: u8| {
        let c = f64::from(c) / 255.0;
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(color.0) + 0.7152 * linear(color.1) + 0.0722 * linear(color.2)
}

/// Black or white, whichever is easier to read on `on`: at this luminance they are equal.
fn ink(on: Rgb) -> &'static str {
    if luminance(on) > 0.179 { "#000" } else { "#fff" }
}

const TEXT: f64 = 13.0;
const CELL_WIDTH: f64 = 46.0;
const CELL_HEIGHT: f64 = 28.0;
/// Slant of the names of columns.
const SLANT_DEGREES: f64 = 50.0;

impl HeatMap {
    /// Converts it to a drawing.
    pub fn drawing(&self) -> Drawing {
        Drawing {
            id: self.id.clone(),
            title: self.title.clone(),
            caption: self.caption.clone(),
            svg: self.svg(),
            table: self.table(),
        }
    }

    fn table(&self) -> Table {
        let head = format!("{} \\ {}", self.row_head, self.column_head);
        let columns: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        let mut table = Table::new(self.title.clone(), &[&head], &columns);
        for (name, cells) in self.rows.iter().zip(&self.cells) {
            let details = cells.iter().map(|cell| cell.detail.clone());
            table.row([name.clone()].into_iter().chain(details));
        }
        table
    }

    fn svg(&self) -> String {
        let longest =
            |names: &[String]| names.iter().map(|n| width_of(n, TEXT)).fold(0.0, f64::max);
        let (longest_row, longest_column) = (longest(&self.rows), longest(&self.columns));
        let slant = SLANT_DEGREES.to_radians();
        let heads = width_of(&self.row_head, TEXT).max(width_of(&self.column_head, TEXT) * 0.6);
        let left = longest_row.max(heads) + 16.0;
        let top = longest_column * slant.sin() + 30.0;
        let side = CELL_WIDTH * self.columns.len() as f64;
        let bottom = top + CELL_HEIGHT * self.rows.len() as f64;
        let width = left + side + longest_column * slant.cos() + 12.0;
        let column = |i: usize| left + CELL_WIDTH * i as f64;
        let row = |i: usize| top + CELL_HEIGHT * i as f64;
        let content = html! {
            text x=(left - 10.0) y=(top - 8.0) text-anchor="end" font-style="italic" {
                (self.row_head) " ↓"
            }
            text x=(left - 10.0) y=(TEXT + 2.0) text-anchor="end" font-style="italic" {
                (self.column_head) " →"
            }
            @for (i, name) in self.columns.iter().enumerate() {
                @let (x, y) = (column(i) + CELL_WIDTH * 0.55, top - 8.0);
                text x=(x) y=(y) transform=(format!("rotate(-{SLANT_DEGREES} {x} {y})")) { (name) }
            }
            @for (i, name) in self.rows.iter().enumerate() {
                text x=(left - 10.0) y=(row(i) + CELL_HEIGHT * 0.66) text-anchor="end" { (name) }
            }
            @for (r, cells) in self.cells.iter().enumerate() {
                @for (c, cell) in cells.iter().enumerate() {
                    (self.cell(cell, (r, c), (column(c), row(r))))
                }
            }
            (self.legend(left, bottom + 16.0))
        };
        let size = (width.max(left + 320.0), bottom + 58.0);
        document(Paper::Page, size, &self.title, TEXT, &content)
    }

    fn cell(&self, cell: &HeatCell, (r, c): (usize, usize), (x, y): (f64, f64)) -> Markup {
        let back = cell.value.map(|v| self.colours.at(self.colours.part(v)));
        let (fill, ink) = match back {
            Some(back) => (hex(back), ink(back)),
            None => ("none".to_owned(), "currentColor"),
        };
        html! {
            g {
                title {
                    (self.row_head) " " (self.rows[r]) ", " (self.column_head) " "
                    (self.columns[c]) ": " (cell.detail)
                }
                rect x=(x + 0.5) y=(y + 0.5) width=(CELL_WIDTH - 1.0) height=(CELL_HEIGHT - 1.0)
                    fill=(fill) stroke="currentColor" stroke-opacity="0.25" {}
                text x=(x + CELL_WIDTH / 2.0) y=(y + CELL_HEIGHT * 0.66) text-anchor="middle"
                    fill=(ink) { (cell.text) }
            }
        }
    }

    /// The colours from end to end, with the values at the ends and in the middle.
    fn legend(&self, x: f64, y: f64) -> Markup {
        const STEPS: usize = 48;
        const STEP: f64 = 5.0;
        let (from, to) = self.colours.ends();
        let length = STEPS as f64 * STEP;
        html! {
            @for i in 0..STEPS {
                @let color = self.colours.at((i as f64 + 0.5) / STEPS as f64);
                rect x=(x + STEP * i as f64) y=(y) width=(STEP + 0.3) height="10" fill=(hex(color)) {}
            }
            @for (part, anchor) in [(0.0, "start"), (0.5, "middle"), (1.0, "end")] {
                text x=(x + length * part) y=(y + 26.0) text-anchor=(anchor) {
                    (short(from + (to - from) * part))
                }
            }
        }
    }
}

/// Pantheon's plot: each contestant's mean throughput and delay with an ellipse of one standard
/// deviation over its runs. Delay grows to the left: up and to the right is better.
#[derive(Clone, Debug, Default)]
pub struct Plane {
    /// Identifier, unique in a report.
    pub id: String,
    /// Title.
    pub title: String,
    /// Explanations for the reader.
    pub caption: String,
    /// Largest throughput that there can be, Mbit/s.
    pub capacity_mbps: f64,
    /// Contestants.
    pub points: Vec<PlanePoint>,
}

/// A contestant of a [`Plane`].
#[derive(Clone, Debug)]
pub struct PlanePoint {
    /// Its name.
    pub name: String,
    /// Delay (ms) and throughput (Mbit/s) of each run.
    pub runs: Vec<(f64, f64)>,
}

/// Mean and covariance.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    mean: (f64, f64),
    /// Half axes of the ellipse of one standard deviation, and the angle of the first from x.
    axes: (f64, f64),
    angle: f64,
}

impl Spread {
    /// The ellipse of `points`; `None` if there are none. A single one has no extent.
    fn of(points: &[(f64, f64)]) -> Option<Self> {
        let n = points.len() as f64;
        let mean_of = |get: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(get).sum::<f64>() / n;
        let mean = (mean_of(&|p| p.0), mean_of(&|p| p.1));
        let covariance = |get: &dyn Fn(f64, f64) -> f64| {
            let sum: f64 = points.iter().map(|p| get(p.0 - mean.0, p.1 - mean.1)).sum();
            if n > 1.0 { sum / (n - 1.0) } else { 0.0 }
        };
        let (xx, yy) = (covariance(&|x, _| x * x), covariance(&|_, y| y * y));
        let xy = covariance(&|x, y| x * y);
        // Eigenvalues of [[xx, xy], [xy, yy]].
        let (middle, reach) = ((xx + yy) / 2.0, ((xx - yy) / 2.0).hypot(xy));
        let axes = ((middle + reach).sqrt(), (middle - reach).max(0.0).sqrt());
        (!points.is_empty()).then_some(Self { mean, axes, angle: (2.0 * xy).atan2(xx - yy) / 2.0 })
    }

    fn outline(&self) -> impl Iterator<Item = (f64, f64)> {
        const CORNERS: u32 = 48;
        let (this, (sin, cos)) = (*self, self.angle.sin_cos());
        (0..CORNERS).map(move |i| {
            let turn = TAU * f64::from(i) / f64::from(CORNERS);
            let (x, y) = (this.axes.0 * turn.cos(), this.axes.1 * turn.sin());
            (this.mean.0 + x * cos - y * sin, this.mean.1 + x * sin + y * cos)
        })
    }
}

const PLANE: (f64, f64) = (900.0, 520.0);
const PLANE_LEFT: f64 = 70.0;
const PLANE_RIGHT: f64 = 24.0;
const PLANE_TOP: f64 = 16.0;
const PLANE_BOTTOM: f64 = 56.0;
const PLANE_MARKER: f64 = 5.5;
/// Delays that differ by more than this factor are drawn on a logarithmic axis.
const LINEAR_FACTOR: f64 = 4.0;

impl Plane {
    /// Converts it to a drawing.
    pub fn drawing(&self) -> Drawing {
        let columns = ["runs", "throughput (Mbit/s)", "± 1 σ", "95 % one-way delay (ms)", "± 1 σ"];
        let mut table = Table::new(self.title.clone(), &["algorithm"], &columns);
        for (point, spread) in self.spreads() {
            let sigma = |get: fn(&(f64, f64)) -> f64, mean: f64| {
                let squares: f64 = point.runs.iter().map(|run| (get(run) - mean).powi(2)).sum();
                match point.runs.len() {
                    1 => "–".to_owned(),
                    n => format!("{:.2}", (squares / (n - 1) as f64).sqrt()),
                }
            };
            table.row([
                point.name.clone(),
                point.runs.len().to_string(),
                format!("{:.2}", spread.mean.1),
                sigma(|run| run.1, spread.mean.1),
                format!("{:.2}", spread.mean.0),
                sigma(|run| run.0, spread.mean.0),
            ]);
        }
        Drawing {
            id: self.id.clone(),
            title: self.title.clone(),
            caption: self.caption.clone(),
            svg: self.svg(),
            table,
        }
    }

    fn spreads(&self) -> Vec<(&PlanePoint, Spread)> {
        self.points.iter().filter_map(|p| Some((p, Spread::of(&p.runs)?))).collect()
    }

    fn svg(&self) -> String {
        let spreads = self.spreads();
        let delays = || spreads.iter().flat_map(|(_, s)| s.outline().map(|p| p.0));
        let (low, high) = delays()
            .filter(|d| *d > 0.0)
            .fold((f64::MAX, f64::MIN), |(low, high), d| (low.min(d), high.max(d)));
        let (low, high) = if low > high { (1.0, 10.0) } else { (low, high) };
        let logarithmic = high / low > LINEAR_FACTOR;
        let axis = Axis {
            scale: if logarithmic { Scale::Log } else { Scale::Linear },
            reversed: true,
            ..Axis::default()
        };
        let range = if logarithmic {
            low / 1.15..high * 1.15
        } else {
            let room = ((high - low) * 0.12).max(high * 0.03);
            (low - room).max(0.0)..high + room
        };
        let least = range.start;
        let x = Ruler::new(&axis, range);
        let most = if self.capacity_mbps > 0.0 { self.capacity_mbps } else { 1.0 };
        let y = Ruler::new(&Axis::default(), 0.0..most * 1.05);
        let (width, height) = PLANE;
        let frame = Frame {
            left: PLANE_LEFT,
            right: width - PLANE_RIGHT,
            top: PLANE_TOP,
            bottom: height - PLANE_BOTTOM,
            x,
            y,
            text_size: TEXT,
            named: false,
        };
        let at = |(delay, rate): (f64, f64)| (frame.x(delay.max(least)), frame.y(rate));
        let places: Vec<(f64, f64)> = spreads.iter().map(|(_, s)| at(s.mean)).collect();
        let widths = spreads.iter().map(|(p, _)| width_of(&p.name, TEXT));
        let (xs, ys) = (frame.left..frame.right, frame.top..frame.bottom);
        let labels = place_labels(&places, widths, xs, ys);
        let delay = "95th percentile of the one-way delay (ms), smaller to the right";
        let content = html! {
            (frame.axes(delay, "throughput (Mbit/s)"))
            @for (hue, (point, spread)) in spreads.iter().enumerate() {
                @let color = color(hue);
                @if spread.axes.0 > 0.0 {
                    polygon points=(points(spread.outline().map(at)))
                        fill=(color) fill-opacity="0.18" stroke=(color) stroke-opacity="0.7" {}
                }
                @let (middle, label) = (places[hue], labels[hue]);
                g {
                    title {
                        (point.name) ": " (format!("{:.2}", spread.mean.1)) " Mbit/s, "
                        (format!("{:.2}", spread.mean.0)) " ms"
                    }
                    polygon fill=(color) points=(points(marker(hue).into_iter().map(|(dx, dy)| {
                        (middle.0 + dx * PLANE_MARKER, middle.1 + dy * PLANE_MARKER)
                    }))) {}
                    text x=(place(label.0)) y=(place(label.1)) { (point.name) }
                }
            }
        };
        document(Paper::Page, PLANE, &self.title, TEXT, &content)
    }
}

/// Starts of texts of `widths` next to `places`, so that they hide neither each other nor a place where
/// that can be helped.
fn place_labels(
    places: &[(f64, f64)],
    widths: impl Iterator<Item = f64>,
    xs: Range<f64>,
    ys: Range<f64>,
) -> Vec<(f64, f64)> {
    // Left, top, right, bottom.
    type Area = [f64; 4];
    let covers = |a: &Area, b: &Area| {
        let along = |low: usize, high: usize| a[high].min(b[high]) - a[low].max(b[low]);
        along(0, 2).max(0.0) * along(1, 3).max(0.0)
    };
    let half = PLANE_MARKER * 1.3;
    let mut taken: Vec<Area> =
        places.iter().map(|(x, y)| [x - half, y - half, x + half, y + half]).collect();
    let mut labels = Vec::with_capacity(places.len());
    for (&(x, y), width) in places.iter().zip(widths) {
        let gap = PLANE_MARKER * 2.0;
        let starts = [
            (x + gap, y + 4.5),
            (x - gap - width, y + 4.5),
            (x - width / 2.0, y - gap),
            (x - width / 2.0, y + gap + 9.0),
            (x + gap * 0.7, y - gap * 0.8),
            (x + gap * 0.7, y + gap * 0.8 + 8.0),
            (x - gap * 0.7 - width, y - gap * 0.8),
            (x - gap * 0.7 - width, y + gap * 0.8 + 8.0),
            (x + gap, y - gap * 2.0),
            (x + gap, y + gap * 2.0 + 8.0),
        ];
        let area = |start: &(f64, f64)| -> Area {
            [start.0, start.1 - TEXT * 0.8, start.0 + width, start.1 + TEXT * 0.25]
        };
        let hidden = |start: &(f64, f64)| {
            let a = area(start);
            let outside = (xs.start - a[0]).max(a[2] - xs.end).max(0.0)
                + (ys.start - a[1]).max(a[3] - ys.end).max(0.0);
            taken.iter().map(|t| covers(&a, t)).sum::<f64>() + outside * TEXT
        };
        // The first of equally good ones.
        let best = starts.iter().min_by(|a, b| hidden(a).total_cmp(&hidden(b)));
        let best = *best.unwrap_or(&starts[0]);
        taken.push(area(&best));
        labels.push(best);
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heat() -> HeatMap {
        let cell = |v: Option<f64>| HeatCell {
            value: v,
            text: v.map_or("–".into(), |v| format!("{v}")),
            detail: format!("{v:?} <&>"),
        };
        HeatMap {
            id: "share".into(),
            title: "Share <&>".into(),
            caption: String::new(),
            row_head: "of".into(),
            column_head: "beside".into(),
            rows: vec!["chd".into(), "a<b".into()],
            columns: vec!["chd".into(), "a<b".into()],
            colours: Colours::Around { middle: 50.0, reach: 50.0 },
            cells: vec![
                vec![cell(Some(50.0)), cell(Some(0.0))],
                vec![cell(Some(200.0)), cell(None)],
            ],
        }
    }

    #[test]
    fn heat_maps_show_every_cell_and_escape_text() {
        let drawing = heat().drawing();
        let svg = &drawing.svg;
        assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>"));
        assert!(
            !svg.contains("a<b") && svg.contains("a&lt;b") && svg.contains("Share &lt;&amp;&gt;")
        );
        assert_eq!(svg.matches("<title>").count(), 4);
        // The middle, the lower end, beyond the upper one; a cell without a value has no colour.
        for fill in ["#f7f7f7", "#0072b2", "#d55e00"] {
            assert!(svg.contains(&format!("fill=\"{fill}\"")), "{fill}");
        }
        assert_eq!(svg.matches("fill=\"none\"").count(), 1);
        assert_eq!(drawing.table.rows.len(), 2);
        assert_eq!(drawing.table.rows[1][0].text, "a<b");
        assert_eq!(drawing.table.rows[1][2].text, "None <&>");
    }

    #[test]
    fn text_is_readable_on_every_colour() {
        for colours in
            [Colours::Rising { from: 0.0, to: 1.0 }, Colours::Around { middle: 0.0, reach: 1.0 }]
        {
            for i in 0..=100 {
                let back = colours.at(f64::from(i) / 100.0);
                let light = luminance(back);
                let contrast =
                    if ink(back) == "#000" { (light + 0.05) / 0.05 } else { 1.05 / (light + 0.05) };
                assert!(contrast >= 4.5, "{back:?}: {contrast}");
            }
        }
        assert_eq!(Colours::Rising { from: 0.0, to: 0.0 }.part(0.0), 0.5, "all the same");
    }

    #[test]
    fn ellipses_by_hand() {
        // Along x and y: standard deviations √2 and √8, no correlation... of four points with
        // x = ±1, ±1: sum of squares 4, over 3.
        let square = [(1.0, 2.0), (-1.0, 2.0), (1.0, -2.0), (-1.0, -2.0)];
        let s = Spread::of(&square.map(|(x, y)| (10.0 + x, 20.0 + y))).unwrap();
        assert_eq!(s.mean, (10.0, 20.0));
        let (long, wide) = ((16.0f64 / 3.0).sqrt(), (4.0f64 / 3.0).sqrt());
        assert!((s.axes.0 - long).abs() < 1e-12 && (s.axes.1 - wide).abs() < 1e-12, "{s:?}");
        assert!((s.angle.abs() - TAU / 4.0).abs() < 1e-12, "the long axis is upright: {s:?}");
        // Two points: a line from one side of the mean to the other, half of it √2/2 of theirs.
        let s = Spread::of(&[(0.0, 0.0), (2.0, 2.0)]).unwrap();
        assert!((s.axes.0 - 2.0).abs() < 1e-12 && s.axes.1 < 1e-7, "{s:?}");
        assert!((s.angle - TAU / 8.0).abs() < 1e-12);
        let highest = s.outline().map(|p| p.1).fold(f64::MIN, f64::max);
        assert!((highest - (1.0 + 2.0f64.sqrt())).abs() < 1e-9, "{highest}");
        assert_eq!(
            Spread::of(&[(3.0, 4.0)]).map(|s| (s.mean, s.axes)),
            Some(((3.0, 4.0), (0.0, 0.0)))
        );
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn pantheons_plot_grows_to_the_left() {
        let point =
            |name: &str, runs: &[(f64, f64)]| PlanePoint { name: name.into(), runs: runs.to_vec() };
        let plane = Plane {
            id: "plane".into(),
            title: "Throughput".into(),
            capacity_mbps: 100.0,
            points: vec![
                point("fast <&>", &[(60.0, 95.0), (64.0, 97.0)]),
                point("slow", &[(21.0, 40.0), (22.0, 44.0)]),
                point("nothing", &[]),
            ],
            ..Plane::default()
        };
        let drawing = plane.drawing();
        let svg = &drawing.svg;
        assert!(svg.contains("fast &lt;&amp;&gt;") && !svg.contains("NaN"), "{svg}");
        assert!(!svg.contains("nothing"));
        // Two ellipses, two markers.
        assert_eq!(svg.matches("<polygon").count(), 4);
        let x_of = |name: &str| -> f64 {
            let (before, _) = svg.split_once(&format!(">{name}</text>")).unwrap();
            let (_, x) = before.rsplit_once("<text x=\"").unwrap();
            x.split('"').next().unwrap().parse().unwrap()
        };
        assert!(x_of("slow") > x_of("fast &lt;&amp;&gt;"), "short delays are on the right");
        assert_eq!(drawing.table.rows.len(), 2);
        let row: Vec<&str> = drawing.table.rows[0].iter().map(|c| c.text.as_str()).collect();
        assert_eq!(row, ["fast <&>", "2", "96.00", "1.41", "62.00", "2.83"]);
        assert!(Plane::default().drawing().svg.contains("</svg>"));
    }

    #[test]
    fn a_label_with_room_stands_to_the_right() {
        let labels = place_labels(&[(50.0, 60.0)], [40.0].into_iter(), 0.0..300.0, 0.0..300.0);
        assert_eq!(labels, [(61.0, 64.5)]);
        // Without room there, to the left.
        let labels = place_labels(&[(290.0, 60.0)], [40.0].into_iter(), 0.0..300.0, 0.0..300.0);
        assert_eq!(labels, [(239.0, 64.5)]);
    }

    #[test]
    fn labels_keep_off_each_other() {
        let places = [(100.0, 100.0), (104.0, 101.0), (98.0, 103.0)];
        let labels = place_labels(&places, [40.0; 3].into_iter(), 0.0..300.0, 0.0..300.0);
        for (i, a) in labels.iter().enumerate() {
            for b in &labels[..i] {
                let apart = (a.0 - b.0).abs() >= 40.0 || (a.1 - b.1).abs() >= TEXT;
                assert!(apart, "{labels:?}");
            }
        }
    }
}
