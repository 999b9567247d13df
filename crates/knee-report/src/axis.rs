//! Axes: scales, ranges, round numbers along them. `assets/scale.js` has the scales for pages.

use std::ops::Range;

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

impl Axis {
    /// Linear, range from the data.
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// Logarithmic, range from the data.
    pub fn log(label: impl Into<String>) -> Self {
        Self { scale: Scale::Log, ..Self::new(label) }
    }

    pub(crate) fn shows(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == Scale::Linear || value > 0.0)
    }

    /// Returns whether a point at `value` falls within the axis' own limits.
    pub(crate) fn within(&self, value: f64) -> bool {
        self.min.is_none_or(|min| value >= min) && self.max.is_none_or(|max| value <= max)
    }

    /// Range that shows `values`, with some room at the ends that are not fixed.
    pub(crate) fn range(
        &self,
        values: impl Iterator<Item = f64>,
        from_zero: bool,
        room: f64,
    ) -> Range<f64> {
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
                // A single value has room on both sides, or the axis has no length.
                let (width, room) = match base == high {
                    true => (high.abs().max(1.0), room.max(0.5)),
                    false => (high - base, room),
                };
                (if base == 0.0 { 0.0 } else { base - width * room }, high + width * room)
            }
        };
        self.min.unwrap_or(start)..self.max.unwrap_or(end)
    }
}

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

    /// Position of `value` along the axis: 0 at its start on paper, 1 at its end.
    pub(crate) fn part(&self, value: f64) -> f64 {
        let place = |v: f64| if self.scale == Scale::Log { v.log10() } else { v };
        let (low, high) = (place(self.range.start), place(self.range.end));
        let part = (place(value) - low) / (high - low);
        if self.reversed { 1.0 - part } else { part }
    }

    /// Smallest and largest value.
    pub(crate) fn range(&self) -> Range<f64> {
        self.range.clone()
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

/// A number with six significant digits and no more zeros than needed.
pub(crate) fn short(value: f64) -> String {
    let rounded = round(value);
    if rounded != 0.0 && !(1e-4..1e7).contains(&rounded.abs()) {
        return format!("{rounded:e}");
    }
    rounded.to_string()
}

/// Six significant digits: more than a chart shows, less than a file needs.
pub(crate) fn round(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for line in include_str!("../tests/ticks.tsv").lines().filter(|l| !l.starts_with('#')) {
            let [scale, low, high, n, ticks] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("{line}");
            };
            let number = |text: &str| text.parse::<f64>().unwrap();
            let scale = if scale == "log" { Scale::Log } else { Scale::Linear };
            let ruler = Ruler { scale, reversed: false, range: number(low)..number(high) };
            let found: Vec<f64> = ruler.ticks(n.parse().unwrap()).into_iter().map(round).collect();
            assert_eq!(found, ticks.split(' ').map(number).collect::<Vec<_>>(), "{line}");
        }
        assert_eq!(short(0.1 + 0.2), "0.3");
        assert_eq!(short(1e-5), "1e-5");
        assert_eq!(short(1_500_000.0), "1500000");
    }

    #[test]
    fn a_reversed_axis_grows_to_the_left() {
        let ruler = Ruler { scale: Scale::Linear, reversed: true, range: 0.0..10.0 };
        assert_eq!((ruler.part(0.0), ruler.part(2.0)), (1.0, 0.8));
    }
}
