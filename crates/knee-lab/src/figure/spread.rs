//! Percentiles of repetitions, and numbers as text.

use serde::Serialize;

/// Percentiles over repetitions; `null` where nothing could be measured.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Spread {
    /// 20th percentile.
    pub p20: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 80th percentile.
    pub p80: Option<f64>,
    /// Repetitions.
    pub n: usize,
}

impl Spread {
    pub(crate) fn of(values: &[f64]) -> Self {
        let of = knee_results::metrics::Percentiles::of(values.iter().copied());
        Self {
            p20: of.map(|p| p.p20),
            p50: of.map(|p| p.p50),
            p80: of.map(|p| p.p80),
            n: values.len(),
        }
    }

    /// The median, with the other percentiles if there are several repetitions.
    pub(crate) fn words(&self) -> String {
        let (low, middle, high) = (number(self.p20), number(self.p50), number(self.p80));
        match self.n {
            0 | 1 => middle,
            _ => format!("{middle} [{low}, {high}]"),
        }
    }
}

/// A number with three significant digits or so, and no zeros at its end.
pub(crate) fn number(value: Option<f64>) -> String {
    let Some(x) = value else { return "–".to_owned() };
    let digits = match x.abs() {
        big if big >= 100.0 => 0,
        ten if ten >= 10.0 => 1,
        _ => 3,
    };
    let text = format!("{x:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}
