//! Colours and markers of series; either distinguishes them.

use crate::axis::round;
use serde_json::{Value, json};
use std::f64::consts::TAU;

/// Number of hues; then they begin again.
pub(crate) const HUES: usize = 8;

/// Colours that colour-blind readers tell apart: Okabe and Ito's, with their yellow, too pale on
/// white, replaced by grey.
const PALETTE: [(u8, u8, u8); HUES] = [
    (0, 114, 178),
    (213, 94, 0),
    (0, 158, 115),
    (0, 0, 0),
    (204, 121, 167),
    (230, 159, 0),
    (86, 180, 233),
    (110, 110, 110),
];

/// Outline of the marker of `hue`, around the origin, radius about 1: distinguishable without colour.
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
    match hue % HUES {
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

/// Colour of `hue`. Black is that of the text around it.
pub(crate) fn color(hue: usize) -> String {
    match PALETTE[hue % HUES] {
        (0, 0, 0) => "currentColor".to_owned(),
        color => hex(color),
    }
}

/// `#rrggbb`.
pub(crate) fn hex((r, g, b): (u8, u8, u8)) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// The colours as properties of a report, `--hue-0` and so on. Black is that of the text.
pub(crate) fn palette_css() -> String {
    let hue = |(hue, color): (usize, &_)| match *color {
        (0, 0, 0) => format!("--hue-{hue}:var(--ink);"),
        color => format!("--hue-{hue}:{};", hex(color)),
    };
    format!(":root{{{}}}", PALETTE.iter().enumerate().map(hue).collect::<String>())
}

/// Markers of all hues for the report's script.
pub(crate) fn markers_json() -> Value {
    let outline =
        |hue| -> Vec<_> { marker(hue).into_iter().map(|(x, y)| [round(x), round(y)]).collect() };
    json!((0..HUES).map(outline).collect::<Vec<_>>())
}
