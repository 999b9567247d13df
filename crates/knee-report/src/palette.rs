//! Colours and markers of series; either distinguishes them.

use std::{f64::consts::TAU, fmt::Write as _, sync::LazyLock};

/// Number of hues; then they begin again.
pub(crate) const HUES: usize = 8;

/// The colours of all charts, on light and on dark pages; the lab has them from the same file.
const HUES_CSS: &str = include_str!("../assets/hues.css");

/// The colours on a light page, `#rrggbb`.
static PALETTE: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let values = HUES_CSS.split("light-dark(").skip(1);
    values.filter_map(|value| value.split(',').next()).collect()
});

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
pub(crate) fn color(hue: usize) -> &'static str {
    match PALETTE[hue % HUES] {
        "#000000" => "currentColor",
        color => color,
    }
}

/// The style of a page's charts: its properties `--hue-0` and so on, and their use for the colours of SVG files.
pub(crate) fn palette_css() -> String {
    let mut css = HUES_CSS.to_owned();
    for (hue, color) in PALETTE.iter().enumerate() {
        for property in ["stroke", "fill"] {
            let _ = writeln!(
                css,
                ".chart [{property}=\"{color}\"] {{ {property}: var(--hue-{hue}); }}"
            );
        }
    }
    css
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hue_has_a_colour_of_its_own() {
        assert_eq!(PALETTE.len(), HUES);
        for (hue, color) in PALETTE.iter().enumerate() {
            assert!(HUES_CSS.contains(&format!("--hue-{hue}: light-dark({color}, #")), "{hue}");
            assert!(color.len() == 7 && !PALETTE[..hue].contains(color), "{color}");
        }
        assert_eq!((color(0), color(3), color(HUES)), ("#0072b2", "currentColor", "#0072b2"));
    }
}
