//! Axes of a study: lists, ranges, random draws, Latin hypercubes.

use knee_model::Random;
use knee_scenario::Set;
use knee_units::{PACKETS, Quantity, RATE, SIZE, TIME, milliseconds};
use toml_edit::Value;

/// One or several keys that vary together, independently of all others.
#[derive(Clone, Debug)]
pub struct Dimension {
    /// Varied keys, at least one; several in a Latin hypercube.
    pub columns: Vec<AxisColumn>,
    /// Changes to the scenario at each point.
    pub(crate) sets: Vec<Vec<Set>>,
}

impl Dimension {
    /// Number of points, at least 1.
    pub fn len(&self) -> usize {
        self.sets.len()
    }

    /// Never: a dimension without points is refused.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }
}

/// A key, or a named axis, with its value at each point of its dimension.
#[derive(Clone, Debug)]
pub struct AxisColumn {
    /// The key as in `--set`, or the axis' name.
    pub key: String,
    /// Name of the column in tables: the key with `_` for `.`, and the unit.
    pub name: String,
    /// Values for tables.
    pub cells: Cells,
    /// Values as they are shown.
    pub labels: Vec<String>,
}

/// Values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// Whole numbers.
    Integer(Vec<i64>),
    /// Numbers.
    Number(Vec<f64>),
    /// Text.
    Text(Vec<String>),
}

impl AxisColumn {
    /// The axis with `values`; their type decides how they are stored.
    pub(crate) fn new(key: &str, values: &[Value]) -> Self {
        let name = key.replace('.', "_");
        let labels = values.iter().map(shown).collect::<Vec<_>>();
        let all = |of: fn(&Value) -> Option<f64>| values.iter().map(of).collect::<Option<Vec<_>>>();
        let integers: Option<Vec<i64>> = values.iter().map(Value::as_integer).collect();
        let number = |v: &Value| v.as_float().or_else(|| v.as_integer().map(|i| i as f64));
        if let Some(integers) = integers {
            return Self { key: key.to_owned(), name, cells: Cells::Integer(integers), labels };
        }
        if let Some(numbers) = all(number) {
            return Self { key: key.to_owned(), name, cells: Cells::Number(numbers), labels };
        }
        for kind in Kind::ALL {
            let parsed = values.iter().map(|v| kind.quantity().parse(v.as_str()?).ok());
            let Some(exact) = parsed.collect::<Option<Vec<u64>>>() else { continue };
            let (unit, cells) = kind.cells(&exact);
            return Self { key: key.to_owned(), name: format!("{name}_{unit}"), cells, labels };
        }
        Self { key: key.to_owned(), name, cells: Cells::Text(labels.clone()), labels }
    }

    /// The first value that is there before, however it was written: its index and label.
    pub(crate) fn twice(&self) -> Option<(usize, &str)> {
        fn first<T: PartialEq>(all: &[T]) -> Option<usize> {
            (1..all.len()).find(|i| all[..*i].contains(&all[*i]))
        }
        let index = match &self.cells {
            Cells::Integer(all) => first(all),
            Cells::Number(all) => first(all),
            Cells::Text(all) => first(all),
        }?;
        Some((index, &self.labels[index]))
    }
}

/// A value without quotes.
pub(crate) fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.clone().decorated("", "").to_string(), str::to_owned)
}

/// Kinds of quantities that are written with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Time,
    Rate,
    Size,
    Packets,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Time, Self::Rate, Self::Size, Self::Packets];

    pub(crate) fn quantity(self) -> &'static Quantity {
        match self {
            Self::Time => &TIME,
            Self::Rate => &RATE,
            Self::Size => &SIZE,
            Self::Packets => &PACKETS,
        }
    }

    /// Unit in tables, and values in it.
    fn cells(self, exact: &[u64]) -> (&'static str, Cells) {
        let integers = || Cells::Integer(exact.iter().map(|v| v.cast_signed()).collect());
        match self {
            Self::Time => ("ms", Cells::Number(exact.iter().map(|ns| milliseconds(*ns)).collect())),
            Self::Rate => ("bps", integers()),
            Self::Size => ("bytes", integers()),
            Self::Packets => ("pkts", integers()),
        }
    }
}

/// Notation of a range's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Integer,
    Number,
    Quantity(Kind),
}

/// The range from one value to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) logarithmic: bool,
    pub(crate) written: Written,
}

impl Span {
    /// The value at `part` of the way, 0..=1.
    fn at(&self, part: f64) -> Value {
        let Self { from, to, .. } = *self;
        // Ends are exact; between them six digits, which leave no room for the last bit of a
        // logarithm to differ between machines.
        let value = match part {
            0.0 => from,
            1.0 => to,
            _ if self.logarithmic => {
                let (low, high) = (libm::log(from), libm::log(to));
                self.rounded(libm::exp(low + (high - low) * part))
            }
            _ => self.rounded(from + (to - from) * part),
        };
        match self.written {
            Written::Integer => Value::from(value.round() as i64),
            Written::Number => Value::from(value),
            Written::Quantity(kind) => Value::from(kind.quantity().show(value.round() as u64)),
        }
    }

    /// Six digits; no finer than the ends, where algorithms know nothing finer: microseconds, parts
    /// per million.
    fn rounded(&self, value: f64) -> f64 {
        let value = six_digits(value);
        let parts = match self.written {
            Written::Quantity(Kind::Time) => 1e-3,
            Written::Number => 1e6,
            _ => return value,
        };
        let whole = |end: f64| (end * parts - (end * parts).round()).abs() < 1e-6;
        match whole(self.from) && whole(self.to) {
            true => (value * parts).round() / parts,
            false => value,
        }
    }

    /// `n` values at equal distances, both ends among them.
    pub(crate) fn steps(&self, n: usize) -> Vec<Value> {
        let last = n.saturating_sub(1).max(1) as f64;
        (0..n).map(|i| self.at(i as f64 / last)).collect()
    }

    /// `n` values drawn independently.
    pub(crate) fn draws(&self, n: usize, seed: u64, key: &str) -> Vec<Value> {
        let mut random = Random::stream(seed, key, 0);
        (0..n).map(|_| self.at(unit(&mut random))).collect()
    }

    /// `n` values, one within each `n`-th of the range, in random order.
    pub(crate) fn strata(&self, n: usize, seed: u64, key: &str) -> Vec<Value> {
        let mut random = Random::stream(seed, key, 1);
        let mut order: Vec<usize> = (0..n).collect();
        for last in (1..n).rev() {
            order.swap(last, random.up_to(last as u64) as usize);
        }
        order.into_iter().map(|s| self.at((s as f64 + unit(&mut random)) / n as f64)).collect()
    }
}

/// Uniform in [0, 1).
fn unit(random: &mut Random) -> f64 {
    (random.bits64() >> 11) as f64 / (1u64 << 53) as f64
}

fn six_digits(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: f64, to: f64, logarithmic: bool, written: Written) -> Span {
        Span { from, to, logarithmic, written }
    }

    fn texts(values: &[Value]) -> Vec<String> {
        values.iter().map(shown).collect()
    }

    #[test]
    fn steps_have_both_ends() {
        let rates = span(1e6, 1e9, true, Written::Quantity(Kind::Rate));
        assert_eq!(texts(&rates.steps(4)), ["1mbit", "10mbit", "100mbit", "1gbit"]);
        let losses = span(0.0, 0.1, false, Written::Number);
        assert_eq!(texts(&losses.steps(3)), ["0.0", "0.05", "0.1"]);
        assert_eq!(texts(&span(1.0, 9.0, true, Written::Integer).steps(3)), ["1", "3", "9"]);
        let times = |from, to| span(from, to, true, Written::Quantity(Kind::Time)).steps(3);
        assert_eq!(texts(&times(9e6, 80e6)), ["9ms", "26.833ms", "80ms"]);
        assert_eq!(texts(&times(100.0, 200.0)), ["100ns", "141ns", "200ns"]);
        let small = span(0.001, 0.1, true, Written::Number);
        assert_eq!(texts(&small.steps(4))[1], "0.004642");
    }

    #[test]
    fn draws_are_of_the_seed_and_the_key() {
        let times = span(1e6, 1e8, true, Written::Quantity(Kind::Time));
        let draws = times.draws(100, 7, "path.rtt");
        assert_eq!(draws.len(), 100);
        assert_eq!(texts(&draws), texts(&times.draws(100, 7, "path.rtt")));
        assert_ne!(texts(&draws), texts(&times.draws(100, 8, "path.rtt")));
        assert_ne!(texts(&draws), texts(&times.draws(100, 7, "path.rate")));
        let below = |ms: &f64| *ms < 10.0;
        let column = AxisColumn::new("path.rtt", &draws);
        let Cells::Number(all) = column.cells else { panic!("times are numbers") };
        // Half of them below the geometric mean.
        assert!((30..70).contains(&all.iter().filter(|v| below(v)).count()));
        assert_eq!(column.name, "path_rtt_ms");
    }

    #[test]
    fn a_hypercube_has_one_value_in_each_stratum() {
        let column = span(0.0, 10.0, false, Written::Number).strata(10, 3, "a");
        let mut strata: Vec<i64> =
            column.iter().map(|v| v.as_float().unwrap_or(0.0) as i64).collect();
        strata.sort_unstable();
        assert_eq!(strata, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn columns_are_typed() {
        let of = |values: &[Value]| AxisColumn::new("path.queue", values);
        let c = of(&["84p".into(), "10p".into()]);
        assert_eq!((c.name.as_str(), c.cells), ("path_queue_pkts", Cells::Integer(vec![84, 10])));
        let c = of(&["84p".into(), "10kB".into()]);
        assert_eq!(c.name, "path_queue");
        assert_eq!(c.cells, Cells::Text(vec!["84p".into(), "10kB".into()]));
        let c = of(&[0.into(), 0.5.into()]);
        assert_eq!(c.cells, Cells::Number(vec![0.0, 0.5]));
    }
}
