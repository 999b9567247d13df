//! Verdicts on claims.

use super::{
    formula::{Formulas, Values},
    paper::{Claim, Judge, Paper},
};
use serde::Serialize;

/// A claim with what was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Identifier.
    pub id: String,
    /// Paper.
    pub paper: String,
    /// Figure.
    pub figure: String,
    /// What is claimed.
    pub statement: String,
    /// What the paper says.
    pub paper_value: String,
    /// Accepted range, ends included; `null` for an open end.
    pub accepted: [Option<f64>; 2],
    /// What was measured, over repetitions.
    pub measured: Measured,
    /// Unit of the measured quantity and of the accepted range.
    pub unit: String,
    /// Whether it holds; `null` if all runs that could tell failed.
    pub holds: Option<bool>,
    /// Whether the repository records it as holding on this host; `null` if it records nothing.
    pub recorded_holds: Option<bool>,
    /// Why it does not hold, from the record; or what went wrong in evaluating it.
    pub reason: Option<String>,
    /// What ran it.
    pub host: String,
    /// Settings and remarks.
    pub note: String,
}

/// Percentiles over repetitions; `null` where nothing could be measured.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Measured {
    /// 20th percentile.
    pub p20: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 80th percentile.
    pub p80: Option<f64>,
    /// Repetitions.
    pub n: usize,
}

/// Part of the repetitions that must satisfy a claim judged by seeds, or a guard.
const MOST: f64 = 0.8;

fn most(satisfied: impl ExactSizeIterator<Item = bool>) -> bool {
    let n = satisfied.len();
    n > 0 && satisfied.filter(|s| *s).count() as f64 >= MOST * n as f64
}

impl Verdict {
    pub(super) fn of(paper: &Paper, claim: &Claim, host: &str, formulas: &Formulas) -> Self {
        let (recorded_holds, reason) = claim.record(host);
        let values = formulas.claim(&claim.figure, &claim.quantity);
        let guarded = claim.guard.as_ref().map(|g| formulas.claim(&claim.figure, g)).transpose();
        let [low, high] = claim.accepted;
        let inside = |x: f64| (low..=high).contains(&x);
        let mut measured = Measured::default();
        let (holds, trouble) = match (values, guarded) {
            (Err(e), _) | (_, Err(e)) => (Some(false), Some(e)),
            (Ok(Values { values, failed: Some(why) }), _) if values.is_empty() => (None, Some(why)),
            (_, Ok(Some(Values { values, failed: Some(why) }))) if values.is_empty() => {
                (None, Some(why))
            }
            (Ok(Values { values, .. }), Ok(guard)) => {
                measured = Measured::of(&values);
                let within = match claim.judge {
                    Judge::Median => measured.p50.is_some_and(inside),
                    Judge::Seeds => most(values.iter().map(|v| inside(*v))),
                };
                let guarded = guard.is_none_or(|g| most(g.values.iter().map(|v| *v != 0.0)));
                (Some(within && guarded), None)
            }
        };
        Self {
            id: claim.id.clone(),
            paper: paper.id.clone(),
            figure: claim.figure.clone(),
            statement: claim.statement.clone(),
            paper_value: claim.paper_value.clone(),
            accepted: claim.accepted.map(|end| end.is_finite().then_some(end)),
            measured,
            unit: claim.unit.clone(),
            holds,
            recorded_holds,
            reason: trouble.or(reason),
            host: host.to_owned(),
            note: claim.note.clone(),
        }
    }

    /// Whether reality is not as the repository records it.
    pub fn differs(&self) -> bool {
        matches!((self.holds, self.recorded_holds), (Some(found), Some(recorded)) if found != recorded)
    }

    /// Verdict in words.
    pub fn word(&self) -> &'static str {
        match (self.holds, self.recorded_holds) {
            (None, _) => "not judged",
            (Some(true), Some(true)) => "holds",
            (Some(false), Some(false)) => "does not hold",
            (Some(true), Some(false)) => "holds, against the record",
            (Some(false), Some(true)) => "does not hold, against the record",
            (Some(true), None) => "holds, not on record",
            (Some(false), None) => "does not hold, not on record",
        }
    }
}

impl Measured {
    fn of(values: &[f64]) -> Self {
        let of = knee_results::metrics::Percentiles::of(values.iter().copied());
        Self {
            p20: of.map(|p| p.p20),
            p50: of.map(|p| p.p50),
            p80: of.map(|p| p.p80),
            n: values.len(),
        }
    }
}
