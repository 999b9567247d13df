//! Common parts of charts and drawings: documents, places, texts, and the frame of two axes.

use crate::axis::{Ruler, short};
use maud::{Markup, PreEscaped, html};
use std::fmt::Write as _;

const FONT: &str = "system-ui, 'DejaVu Sans', sans-serif";
/// Average width of a character, as a fraction of the text's size.
const CHARACTER: f64 = 0.56;

/// Width of `text` at a size, about.
pub(crate) fn width_of(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * CHARACTER * size
}

/// A place or length: a tenth of a unit is finer than print.
pub(crate) fn place(value: f64) -> f64 {
    // Adding 0 makes -0 positive.
    (value * 10.0).round() / 10.0 + 0.0
}

/// Corners of a polygon or polyline, as its `points`.
pub(crate) fn points(corners: impl IntoIterator<Item = (f64, f64)>) -> PreEscaped<String> {
    let mut text = String::new();
    for (x, y) in corners {
        let _ = write!(text, "{},{} ", place(x), place(y));
    }
    PreEscaped(text.trim_end().to_owned())
}

/// The surface of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paper {
    /// White, in its own size: a standalone file.
    White,
    /// The page around it, whose colour of text it takes.
    Page,
}

/// An SVG document of `content`. Nothing is loaded.
pub(crate) fn document(
    paper: Paper,
    (width, height): (f64, f64),
    label: &str,
    text_size: f64,
    content: &Markup,
) -> String {
    let (width, height) = (width.round(), height.round());
    let view = format!("0 0 {width} {height}");
    let white = paper == Paper::White;
    let size = |v: f64| white.then_some(v);
    let most = (!white).then(|| format!("max-width:{:.0}px", width * 1.25));
    html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(view) width=[size(width)] height=[size(height)]
            role="img" aria-label=(label) style=[most] color=[white.then_some("#000")]
            font-family=(FONT) font-size=(text_size) fill="currentColor" {
            @if white { rect width=(width) height=(height) fill="#fff" {} }
            (content)
        }
    }
    .into_string()
}

/// The place of a plot in a document: four edges and a ruler along two of them.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
    pub x: Ruler,
    pub y: Ruler,
    pub text_size: f64,
    /// True if the parts have names, `data-part`, for the report's script.
    pub named: bool,
}

impl Frame {
    /// The attribute `data-part` of a part.
    pub(crate) fn part(&self, name: impl Into<String>) -> Option<String> {
        self.named.then(|| name.into())
    }

    /// Position of a value of the x axis.
    pub(crate) fn x(&self, value: f64) -> f64 {
        self.left + (self.right - self.left) * self.x.part(value)
    }

    /// Position of a value of the y axis.
    pub(crate) fn y(&self, value: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * self.y.part(value)
    }

    /// Numbers along the x axis, at most about `n`, and few enough not to touch.
    fn x_ticks(&self, n: usize) -> Vec<f64> {
        let apart = |ticks: &[f64]| {
            ticks.windows(2).all(|pair| {
                let widths = pair.iter().map(|t| width_of(&short(*t), self.text_size));
                let between = (self.x(pair[1]) - self.x(pair[0])).abs();
                between >= widths.sum::<f64>() / 2.0 + self.text_size * 0.7
            })
        };
        let tried = (2..=n).rev().map(|n| self.x.ticks(n));
        tried.into_iter().find(|ticks| apart(ticks)).unwrap_or_else(|| self.x.ticks(2))
    }

    /// The axes with numbers, labels and lines across the plot.
    pub(crate) fn axes(&self, x_label: &str, y_label: &str) -> Markup {
        let Self { left, right, top, bottom, text_size, .. } = *self;
        let middle = (place((left + right) / 2.0), place((top + bottom) / 2.0));
        let tick = place(text_size * 0.3);
        let label_y = place(bottom + text_size * 3.1);
        let label_x = place(text_size * 1.2);
        html! {
            g stroke="currentColor" {
                g stroke-opacity="0.16" {
                    @for x in self.x_ticks(10).into_iter().map(|t| place(self.x(t))) {
                        line data-part=[self.part("grid")] x1=(x) x2=(x)
                            y1=(place(top)) y2=(place(bottom)) {}
                    }
                    @for y in self.y.ticks(6).into_iter().map(|t| place(self.y(t))) {
                        line x1=(place(left)) x2=(place(right)) y1=(y) y2=(y) {}
                    }
                }
                @for x in self.x_ticks(10).into_iter().map(|t| place(self.x(t))) {
                    line data-part=[self.part("tick")] x1=(x) x2=(x)
                        y1=(place(bottom)) y2=(place(bottom + tick)) {}
                }
                @for y in self.y.ticks(6).into_iter().map(|t| place(self.y(t))) {
                    line x1=(place(left - tick)) x2=(place(left)) y1=(y) y2=(y) {}
                }
                polyline fill="none" points=(points([(left, top), (left, bottom), (right, bottom)])) {}
            }
            @for tick in self.x_ticks(10) {
                text data-part=[self.part("number")] x=(place(self.x(tick)))
                    y=(place(bottom + text_size * 1.45)) text-anchor="middle" { (short(tick)) }
            }
            @for tick in self.y.ticks(6) {
                text x=(place(left - text_size * 0.55)) y=(place(self.y(tick) + text_size * 0.36))
                    text-anchor="end" { (short(tick)) }
            }
            text x=(middle.0) y=(label_y) text-anchor="middle" { (x_label) }
            text x=(label_x) y=(middle.1) text-anchor="middle"
                transform=(format!("rotate(-90 {label_x} {})", middle.1)) { (y_label) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Axis;

    fn frame(range: std::ops::Range<f64>) -> Frame {
        Frame {
            left: 50.0,
            right: 150.0,
            top: 10.0,
            bottom: 60.0,
            x: Ruler::new(&Axis::default(), range),
            y: Ruler::new(&Axis::default(), 0.0..5.0),
            text_size: 10.0,
            named: false,
        }
    }

    #[test]
    fn places_are_not_rounded_to_units() {
        let frame = frame(0.0..1000.0);
        assert_eq!((frame.x(0.0), frame.x(123.0), frame.x(1000.0)), (50.0, 62.3, 150.0));
        assert_eq!((frame.y(0.0), frame.y(1.23), frame.y(5.0)), (60.0, 47.7, 10.0));
        assert_eq!(points([(62.345, -0.01), (1.0, 2.06)]).0, "62.3,0 1,2.1");
    }

    #[test]
    fn numbers_keep_apart() {
        // In 100 units there is room for ten numbers of one digit, not for ten of six.
        assert_eq!(frame(0.0..9.0).x_ticks(10).len(), 5);
        assert_eq!(frame(0.0..9.0).x_ticks(10), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(frame(0.0..900_000.0).x_ticks(10), [0.0, 500_000.0]);
    }

    #[test]
    fn paper_is_white_only_in_files() {
        let of = |paper| document(paper, (80.0, 40.0), "<&>", 10.0, &html! {});
        assert!(
            of(Paper::White).contains("fill=\"#fff\"")
                && of(Paper::White).contains("color=\"#000\"")
        );
        assert!(!of(Paper::Page).contains("fff") && of(Paper::Page).contains("max-width:100px"));
        assert!(of(Paper::Page).contains("aria-label=\"&lt;&amp;&gt;\""));
    }
}
