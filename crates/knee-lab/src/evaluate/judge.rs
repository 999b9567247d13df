//! Verdicts of criteria.

use super::{
    criterion::{Better, Criterion, Measure},
    runs::{Measured, Point},
};
use crate::figure::Spread;
use serde::Serialize;
use std::{collections::BTreeMap, fmt, time::Duration};

/// Verdict on a criterion, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Word {
    /// The criterion has no bound: the value is only shown.
    #[serde(rename = "informs")]
    Informs,
    /// The absolute bound is met.
    #[serde(rename = "passes")]
    Passes,
    /// The bound is not met or does not exist, but no baseline does better by more than allowed.
    #[serde(rename = "no worse than the baseline")]
    NoWorse,
    /// All runs that could tell failed.
    #[serde(rename = "not judged")]
    NotJudged,
    /// None of these.
    #[serde(rename = "fails")]
    Fails,
}

/// Writes the word as JSON has it, without quotes.
impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A criterion with its verdict.
#[derive(Clone, Debug, Serialize)]
pub struct CriterionVerdict {
    /// Criterion.
    pub id: String,
    /// Section of RFC 9743.
    pub section: String,
    /// Subject of the criterion.
    pub title: String,
    /// The worst verdict of its points and measures.
    pub verdict: Word,
    /// Measure at the worst point.
    pub measured: Option<MeasuredAt>,
    /// Requirement at the worst point.
    pub asked: Option<Asked>,
    /// The worst point.
    pub worst: Option<Worst>,
    /// Every measure at every point.
    pub points: Vec<PointVerdict>,
    /// Time of one core for its runs, the baselines' too; stored runs take none.
    #[serde(skip)]
    pub took: Duration,
}

/// A measure at a point.
#[derive(Clone, Debug, Serialize)]
pub struct PointVerdict {
    /// Values of the axes, by name.
    pub point: BTreeMap<String, String>,
    /// Verdict of the measure at the point.
    pub verdict: Word,
    /// Measured values.
    pub measured: MeasuredAt,
    /// Requirement.
    pub asked: Asked,
    /// Reason of the first failed run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Distance beyond the requirement, as a part of it; negative if the requirement is met.
    #[serde(skip)]
    beyond: f64,
    /// Number of the point and of the worst repetition.
    #[serde(skip)]
    pub(super) at: (usize, u32),
}

/// A measure, over repetitions.
#[derive(Clone, Debug, Serialize)]
pub struct MeasuredAt {
    /// Name of the measure.
    pub measure: String,
    /// Unit; empty for a ratio.
    pub unit: String,
    /// Spread of the evaluated algorithm.
    #[serde(flatten)]
    pub spread: Spread,
    /// Spreads of the baselines, in the same place.
    pub baselines: BTreeMap<String, Spread>,
}

/// A requirement on a measure.
#[derive(Clone, Debug, Serialize)]
pub struct Asked {
    /// `at most` or `at least`.
    pub direction: &'static str,
    /// Absolute bound; `null` if there is none.
    pub bound: Option<f64>,
    /// Source of the bound.
    pub source: Option<String>,
    /// Limit that follows from the worst baseline; `null` without a requirement relative to baselines.
    pub no_worse: Option<f64>,
}

/// The place where a criterion does worst.
#[derive(Clone, Debug, Serialize)]
pub struct Worst {
    /// Values of the axes, by name.
    pub point: BTreeMap<String, String>,
    /// Seed of the worst repetition.
    pub seed: u64,
    /// Command that shows it.
    pub command: String,
}

/// Repetitions of a point by one algorithm.
type Repetitions<'a> = &'a [Result<Measured, String>];

/// An algorithm's repetitions of every point.
pub(super) struct Of<'a> {
    /// Its name.
    pub name: &'a str,
    /// Repetitions by point.
    pub points: Vec<Repetitions<'a>>,
}

/// The worst verdict on `criterion`, and all of them, for `subject` compared with `baselines`.
pub(super) fn judge(
    criterion: &Criterion,
    points: &[Point],
    subject: &Of<'_>,
    baselines: &[Of<'_>],
) -> (Word, Vec<PointVerdict>) {
    let mut all = Vec::new();
    for (number, point) in points.iter().enumerate() {
        for (index, measure) in criterion.measures.iter().enumerate() {
            let beside: Vec<(&str, Vec<f64>)> =
                baselines.iter().map(|b| (b.name, quantities(b.points[number], index))).collect();
            all.push(at_point(measure, index, (number, point), subject.points[number], &beside));
        }
    }
    (all.iter().map(|p| p.verdict).max().unwrap_or(Word::NotJudged), all)
}

/// The worst of `all` points: of those with the worst verdict, the one furthest beyond its requirement.
pub(super) fn worst(all: &[PointVerdict]) -> Option<&PointVerdict> {
    all.iter().max_by(|a, b| {
        let key = |p: &PointVerdict| (p.verdict, p.beyond);
        let ((a, x), (b, y)) = (key(a), key(b));
        a.cmp(&b).then(x.total_cmp(&y))
    })
}

fn quantities(repetitions: Repetitions<'_>, index: usize) -> Vec<f64> {
    let all = repetitions.iter().flatten().map(|measured| measured[index].0);
    // A run may leave a measure undefined, such as the delay where nothing arrives.
    all.filter(|value| value.is_finite()).collect()
}

fn median(values: &[f64]) -> Option<f64> {
    Spread::of(values).p50
}

fn at_point(
    measure: &Measure,
    index: usize,
    (number, point): (usize, &Point),
    repetitions: Repetitions<'_>,
    beside: &[(&str, Vec<f64>)],
) -> PointVerdict {
    let better = measure.better;
    let values = quantities(repetitions, index);
    let spread = Spread::of(&values);
    let bounds: Vec<f64> = repetitions.iter().flatten().filter_map(|m| m[index].1).collect();
    let bound = median(&bounds);
    let others = beside.iter().filter_map(|(_, values)| median(values));
    let limit = others.reduce(|a, b| better.worse(a, b)).and_then(|v| measure.limit_relative_to(v));
    let verdict = match (spread.p50, bound, limit) {
        (None, ..) => Word::NotJudged,
        (Some(_), None, None) if measure.no_worse.is_some() => Word::NotJudged,
        (Some(_), None, None) => Word::Informs,
        (Some(value), Some(bound), _) if better.meets(value, bound) => Word::Passes,
        (Some(value), _, Some(limit)) if better.meets(value, limit) => Word::NoWorse,
        _ => Word::Fails,
    };
    let beyond =
        match (spread.p50, bound.into_iter().chain(limit).reduce(|a, b| better.worse(a, b))) {
            (Some(value), Some(asked)) => {
                let scale = asked.abs().max(measure.slack).max(1e-9);
                sign(better) * (value - asked) / scale
            }
            (Some(value), None) => sign(better) * value,
            (None, _) => f64::INFINITY,
        };
    // The first of those that are worst.
    let worse = |r: &Result<Measured, String>| {
        r.as_ref().map_or(f64::NEG_INFINITY, |m| sign(better) * m[index].0)
    };
    let each = (0_u32..).zip(repetitions.iter().map(worse));
    let worst = each.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
    let worst_repetition = worst.map_or(0, |(repetition, _)| repetition);
    PointVerdict {
        point: point.values.iter().cloned().collect(),
        verdict,
        measured: MeasuredAt {
            measure: measure.name.clone(),
            unit: measure.unit.clone(),
            spread,
            baselines: beside
                .iter()
                .map(|(name, values)| ((*name).to_owned(), Spread::of(values)))
                .collect(),
        },
        asked: Asked {
            direction: better.words(),
            bound,
            source: measure.source.clone(),
            no_worse: limit,
        },
        failed: repetitions.iter().find_map(|r| r.as_ref().err().cloned()),
        beyond,
        at: (number, worst_repetition),
    }
}

/// 1 where lower is better: larger is worse.
fn sign(better: Better) -> f64 {
    match better {
        Better::Lower => 1.0,
        Better::Higher => -1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::criterion::Criterion;

    fn criterion(measure: &str) -> Criterion {
        toml::from_str(&format!(
            "id = \"a\"\nsection = \"5.1.2\"\ntitle = \"\"\nwhy = \"\"\nscenario = \"s\"\n\
             [[measure]]\nname = \"delay\"\nquantity = \"1\"\nbetter = \"lower\"\n{measure}"
        ))
        .expect("a criterion")
    }

    /// Judges one point with these repetitions of the algorithm, the bound, and a baseline's.
    fn judged(measure: &str, values: &[f64], bound: Option<f64>, other: &[f64]) -> PointVerdict {
        let measured = |values: &[f64], bound| -> Vec<Result<Measured, String>> {
            values.iter().map(|x| Ok(vec![(*x, bound)])).collect()
        };
        let (mine, others) = (measured(values, bound), measured(other, None));
        let points = [Point::at(&[("queue", "1 BDP")])];
        let subject = Of { name: "mine", points: vec![&mine] };
        let baselines = [Of { name: "cubic", points: vec![&others] }];
        let (word, mut all) = judge(&criterion(measure), &points, &subject, &baselines);
        assert_eq!(word, all[0].verdict);
        all.remove(0)
    }

    #[test]
    fn words() {
        let absolute = "bound = 10.0\nsource = \"ours\"\n";
        let beside = "no_worse = 0.1\n";
        let both = &format!("{absolute}{beside}");
        let of = |measure: &str, value: f64, bound: Option<f64>| {
            judged(measure, &[value], bound, &[20.0]).verdict
        };
        assert_eq!(of("", 5.0, None), Word::Informs);
        assert_eq!(of(absolute, 10.0, Some(10.0)), Word::Passes);
        assert_eq!(of(absolute, 10.1, Some(10.0)), Word::Fails);
        assert_eq!(of(both, 9.0, Some(10.0)), Word::Passes);
        assert_eq!(of(both, 22.0, Some(10.0)), Word::NoWorse);
        assert_eq!(of(both, 22.1, Some(10.0)), Word::Fails);
        assert_eq!(of(beside, 5.0, None), Word::NoWorse);
        assert_eq!(judged(beside, &[5.0], None, &[]).verdict, Word::NotJudged);
        assert_eq!(judged(beside, &[], None, &[20.0]).verdict, Word::NotJudged);
    }

    #[test]
    fn the_median_decides_and_the_worst_seed_is_named() {
        let v = judged("no_worse = 0.0\n", &[10.0, 50.0, 19.0], None, &[18.0, 20.0, 90.0]);
        assert_eq!((v.verdict, v.asked.no_worse, v.at), (Word::NoWorse, Some(20.0), (0, 1)));
        assert_eq!(v.measured.spread.p50, Some(19.0));
    }

    #[test]
    fn the_worst_point_is_the_one_furthest_beyond() {
        let measure = "bound = 10.0\nsource = \"ours\"\n";
        let all: Vec<PointVerdict> =
            [9.0, 14.0, 12.0].iter().map(|x| judged(measure, &[*x], Some(10.0), &[])).collect();
        let found = worst(&all).expect("three points");
        assert_eq!(found.measured.spread.p50, Some(14.0));
        assert!(Word::Fails > Word::NotJudged && Word::NotJudged > Word::NoWorse);
        assert!(Word::NoWorse > Word::Passes && Word::Passes > Word::Informs);
    }
}
