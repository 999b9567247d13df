//! Verdicts on claims.

use super::{
    claim::{Cause, Claim, Judge},
    paper::Paper,
};
use crate::figure::{Formulas, Spread, Values};
use serde::Serialize;

/// A claim with its measured value.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Identifier.
    pub id: String,
    /// Paper.
    pub paper: String,
    /// Figure.
    pub figure: String,
    /// The claim in one sentence.
    pub statement: String,
    /// The value in the paper.
    pub paper_value: String,
    /// Accepted range, ends included; `null` for an open end.
    pub accepted: [Option<f64>; 2],
    /// Measured value, over repetitions.
    pub measured: Spread,
    /// Unit of the measured quantity and of the accepted range.
    pub unit: String,
    /// True if it holds; `null` if all runs that could tell failed.
    pub holds: Option<bool>,
    /// Expected verdict on this host; `null` if there is none.
    pub recorded_holds: Option<bool>,
    /// Minimum number of repetitions for a verdict on this host. A verdict from fewer is not compared with
    /// the expected one.
    pub repetitions_needed: u32,
    /// The recorded reason why it does not hold, or the error in its evaluation.
    pub reason: Option<String>,
    /// Name of the host.
    pub host: String,
    /// Settings and remarks.
    pub note: String,
    /// Cause of a claim that does not hold, if one is recorded and was run.
    pub cause: Option<Shown>,
}

/// The cause of a claim that does not hold, with the result of its runs.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// The cause, in words.
    pub statement: String,
    /// Changes in the runs that show it.
    pub changes: String,
    /// Measured value, over repetitions.
    pub measured: Spread,
    /// Unit of the measured quantity and of the accepted range.
    pub unit: String,
    /// Accepted range, ends included; `null` for an open end.
    pub accepted: [Option<f64>; 2],
    /// True if the runs show it; `null` if all that could tell failed.
    pub shown: Option<bool>,
    /// Error in its evaluation.
    pub trouble: Option<String>,
}

/// Part of the repetitions that must satisfy a claim judged by its repetitions, or a guard.
const MOST: f64 = 0.8;

fn most(satisfied: impl ExactSizeIterator<Item = bool>) -> bool {
    let n = satisfied.len();
    n > 0 && satisfied.filter(|s| *s).count() as f64 >= MOST * n as f64
}

/// A quantity and its guard, evaluated.
struct Judged {
    holds: Option<bool>,
    measured: Spread,
    trouble: Option<String>,
}

/// Judges `claim` by the runs at `index`.
fn judge(claim: &Claim, formulas: &Formulas, index: usize) -> Judged {
    let values = formulas.per_repetition(index, &claim.quantity);
    let guarded = claim.guard.as_ref().map(|g| formulas.per_repetition(index, g)).transpose();
    let [low, high] = claim.accepted;
    let inside = |x: f64| (low..=high).contains(&x);
    let mut measured = Spread::default();
    let (holds, trouble) = match (values, guarded) {
        (Err(e), _) | (_, Err(e)) => (Some(false), Some(e)),
        (Ok(Values { values, failed: Some(why) }), _) if values.is_empty() => (None, Some(why)),
        (_, Ok(Some(Values { values, failed: Some(why) }))) if values.is_empty() => {
            (None, Some(why))
        }
        (Ok(Values { values, .. }), Ok(guard)) => {
            measured = Spread::of(&values);
            let within = match claim.judge {
                Judge::Median => measured.p50.is_some_and(inside),
                Judge::Repetitions => most(values.iter().map(|v| inside(*v))),
            };
            let guarded = guard.is_none_or(|g| most(g.values.iter().map(|v| *v != 0.0)));
            (Some(within && guarded), None)
        }
    };
    Judged { holds, measured, trouble }
}

fn ends(accepted: [f64; 2]) -> [Option<f64>; 2] {
    accepted.map(|end| end.is_finite().then_some(end))
}

impl Shown {
    /// The result of `cause`, that of `claim`, by the runs at `index`.
    fn of(cause: &Cause, claim: &Claim, formulas: &Formulas, index: usize) -> Self {
        let shows = cause.as_claim(claim);
        let Judged { holds, measured, trouble } = judge(&shows, formulas, index);
        Self {
            changes: cause.changes(),
            measured,
            accepted: ends(shows.accepted),
            statement: shows.statement,
            unit: shows.unit,
            shown: holds,
            trouble,
        }
    }
}

impl Verdict {
    /// The verdict on `claim`; the runs of its cause are the cases at `of_cause`, if it was run.
    pub(super) fn of(
        paper: &Paper,
        claim: &Claim,
        host: &str,
        formulas: &Formulas,
        of_cause: Option<usize>,
    ) -> Self {
        let (recorded_holds, reason) = claim.record(host);
        let judged = match formulas.index(&claim.figure) {
            Ok(index) => judge(claim, formulas, index),
            Err(why) => {
                Judged { holds: Some(false), measured: Spread::default(), trouble: Some(why) }
            }
        };
        let cause = claim.cause.as_ref().zip(of_cause);
        Self {
            id: claim.id.clone(),
            paper: paper.id.clone(),
            figure: claim.figure.clone(),
            statement: claim.statement.clone(),
            paper_value: claim.paper_value.clone(),
            accepted: ends(claim.accepted),
            measured: judged.measured,
            unit: claim.unit.clone(),
            holds: judged.holds,
            recorded_holds,
            repetitions_needed: claim.repetitions_needed(host),
            reason: judged.trouble.or(reason),
            host: host.to_owned(),
            note: claim.note.clone(),
            cause: cause.map(|(cause, index)| Shown::of(cause, claim, formulas, index)),
        }
    }

    /// The verdict without an expected one, which other software made.
    pub(super) fn unexpected(self) -> Self {
        let is_about_runs = self.is_broken() || self.holds.is_none();
        let reason = if is_about_runs { self.reason } else { None };
        Self { recorded_holds: None, reason, ..self }
    }

    /// Returns whether its formula fails although there are runs.
    fn is_broken(&self) -> bool {
        self.holds == Some(false) && self.measured.n == 0
    }

    /// Returns whether it differs from the expected verdict, from however few repetitions.
    fn contradicts(&self) -> bool {
        matches!((self.holds, self.recorded_holds), (Some(found), Some(recorded)) if found != recorded)
    }

    /// Returns whether it differs from the expected verdict, but has too few repetitions to tell.
    pub fn from_too_few(&self) -> bool {
        !self.is_broken()
            && self.contradicts()
            && self.measured.n < self.repetitions_needed as usize
    }

    /// Returns whether it differs from the expected verdict. A formula that fails never agrees.
    pub fn differs(&self) -> bool {
        self.is_broken()
            || self.cause.as_ref().is_some_and(|c| c.shown == Some(false))
            || (self.contradicts() && !self.from_too_few())
    }

    /// Returns whether runs that could tell failed.
    pub fn untold(&self) -> bool {
        self.holds.is_none() || self.cause.as_ref().is_some_and(|c| c.shown.is_none())
    }

    /// Returns whether it does not hold, and its cause is shown.
    pub fn explained(&self) -> bool {
        self.holds == Some(false) && self.cause.as_ref().is_some_and(|c| c.shown == Some(true))
    }

    /// Verdict in words.
    pub fn word(&self) -> &'static str {
        match (self.holds, self.recorded_holds) {
            (None, _) => "not judged",
            _ if self.is_broken() => "cannot be evaluated",
            (Some(true), _) if self.from_too_few() => "holds; too few repetitions",
            (Some(false), _) if self.from_too_few() => "does not hold; too few repetitions",
            (Some(true), Some(true)) => "holds",
            (Some(false), Some(false)) => match self.cause.as_ref().map(|cause| cause.shown) {
                Some(Some(true)) => "explained",
                Some(Some(false)) => "does not hold, and its cause is not shown",
                Some(None) => "does not hold; its cause could not be judged",
                None => "does not hold",
            },
            (Some(true), Some(false)) => "holds; expected: does not hold",
            (Some(false), Some(true)) => "does not hold; expected: holds",
            (Some(true), None) => "holds; no expected verdict",
            (Some(false), None) => "does not hold; no expected verdict",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        figure::tests::{formulas, record},
        reproduce::load,
    };
    use knee_model::RunRecord;

    /// A repetition whose window at the start is this many packets.
    fn window(pkts: u32) -> Result<RunRecord, String> {
        let mut record = record();
        record.flows[0].samples[0].cwnd_pkts = pkts;
        Ok(record)
    }

    /// A claim that the window is 10 to 20 packets, with more of its table.
    fn claim(more: &str) -> Claim {
        let accepted = if more.starts_with("accepted") { "" } else { "accepted = [10.0, 20.0]\n" };
        toml::from_str(&format!(
            "id = \"C1\"\nfigure = \"1\"\nstatement = \"\"\npaper_value = \"\"\nunit = \"p\"\n\
             holds = true\nreason = \"known\"\nquantity = \"run(#{{}}).window(0, 0)\"\n{accepted}{more}"
        ))
        .expect("a claim")
    }

    fn judged(more: &str, records: Vec<Result<RunRecord, String>>) -> Verdict {
        let (paper, _) = load("chd").expect("the paper");
        Verdict::of(&paper, &claim(more), "sim", &formulas(records), None)
    }

    fn holds(more: &str, windows: &[u32]) -> Option<bool> {
        judged(more, windows.iter().map(|pkts| window(*pkts)).collect()).holds
    }

    #[test]
    fn the_median_lies_in_the_accepted_range() {
        // Percentiles of 8, 12, 16, 30, 40: at positions 0.8, 2, 3.2.
        let v = judged("", [8, 12, 16, 30, 40].map(window).to_vec());
        let m = v.measured;
        assert_eq!((v.holds, m.p50, m.n), (Some(true), Some(16.0), 5));
        assert!((m.p20.unwrap_or(0.0) - 11.2).abs() < 1e-12, "{m:?}");
        assert!((m.p80.unwrap_or(0.0) - 32.0).abs() < 1e-12, "{m:?}");
        // Both ends belong to the range.
        assert_eq!(holds("", &[10]), Some(true));
        assert_eq!(holds("", &[20]), Some(true));
        assert_eq!(holds("", &[9]), Some(false));
        assert_eq!(holds("", &[21]), Some(false));
        // Most of them inside, the median too.
        assert_eq!(holds("", &[9, 9, 15, 15, 15]), Some(true));
        assert_eq!(holds("", &[9, 9, 9, 15, 15]), Some(false));
    }

    #[test]
    fn of_the_repetitions_four_fifths_lie_in_the_range() {
        let most = "judge = \"repetitions\"\n";
        assert_eq!(holds(most, &[15, 15, 15, 15, 9]), Some(true));
        assert_eq!(holds(most, &[15, 15, 15, 9, 9]), Some(false));
        assert_eq!(holds(most, &[15, 15, 15, 9]), Some(false), "3 of 4 are 75 %");
        assert_eq!(holds(most, &[15]), Some(true));
    }

    #[test]
    fn open_ends() {
        let least = "accepted = [10.0, inf]\n";
        assert_eq!((holds(least, &[4_000_000]), holds(least, &[9])), (Some(true), Some(false)));
        assert_eq!(judged(least, vec![window(10)]).accepted, [Some(10.0), None]);
        let most = "accepted = [-inf, 10.0]\n";
        assert_eq!((holds(most, &[0]), holds(most, &[11])), (Some(true), Some(false)));
    }

    #[test]
    fn a_guard_must_be_true_in_four_fifths() {
        let guard = "guard = \"run(#{}).window(0, 0) < 16\"\n";
        assert_eq!(holds(guard, &[15, 15, 15, 15, 18]), Some(true));
        assert_eq!(holds(guard, &[15, 15, 15, 18, 18]), Some(false));
        // A guard does not save what is not in the range.
        assert_eq!(holds(guard, &[9]), Some(false));
    }

    #[test]
    fn without_an_expected_verdict_nothing_differs() {
        let found = judged("", vec![window(9)]);
        assert_eq!((found.holds, found.differs()), (Some(false), true));
        let found = found.unexpected();
        assert_eq!((found.holds, found.differs(), found.reason), (Some(false), false, None));
        // The reason of failed runs is theirs.
        let failed = judged("", vec![Err("late".to_owned())]).unexpected();
        assert_eq!(failed.reason.as_deref(), Some("late"));
    }

    #[test]
    fn failed_runs() {
        let late = || Err("late".to_owned());
        // The others judge.
        let v = judged("", vec![late(), window(15)]);
        assert_eq!((v.holds, v.measured.n, v.reason.as_deref()), (Some(true), 1, Some("known")));
        // Without any there is no verdict, and nothing differs; the reason is the runs'.
        let v = judged("", vec![late(), late()]);
        assert_eq!((v.holds, v.measured.n, v.reason.as_deref()), (None, 0, Some("late")));
        assert!(!v.differs());
        assert_eq!(v.word(), "not judged");
        // The same of a guard.
        let other = Claim {
            quantity: "run(#{size: 20}).window(0, 0)".to_owned(),
            guard: Some("run(#{}).window(0, 0) > 0".to_owned()),
            ..claim("")
        };
        let (paper, _) = load("chd").expect("the paper");
        let v = Verdict::of(&paper, &other, "sim", &formulas(vec![late()]), None);
        assert_eq!((v.holds, v.reason.as_deref()), (None, Some("late")));
    }

    #[test]
    fn a_formula_that_cannot_be_evaluated_does_not_hold() {
        let guard = "guard = \"run(#{}).window(9, 0) > 0\"\n";
        let v = judged(guard, vec![window(15)]);
        assert_eq!(v.holds, Some(false));
        assert!(v.reason.as_deref().is_some_and(|r| r.contains("no flow 9")), "{:?}", v.reason);
        // The expected verdict does not hold either, but that is no agreement.
        let v = Verdict { recorded_holds: Some(false), ..v };
        assert_eq!((v.differs(), v.word()), (true, "cannot be evaluated"));
    }

    #[test]
    fn reality_is_held_against_the_record() {
        let of = |found, recorded| {
            let v =
                Verdict { holds: found, recorded_holds: recorded, ..judged("", vec![window(15)]) };
            (v.differs(), v.word())
        };
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(of(yes, yes), (false, "holds"));
        assert_eq!(of(no, no), (false, "does not hold"));
        assert_eq!(of(yes, no), (true, "holds; expected: does not hold"));
        assert_eq!(of(no, yes), (true, "does not hold; expected: holds"));
        assert_eq!(of(yes, None), (false, "holds; no expected verdict"));
        assert_eq!(of(no, None), (false, "does not hold; no expected verdict"));
        assert_eq!(of(None, yes), (false, "not judged"));
    }

    /// The record, which is of five repetitions, says that the claim does not hold.
    #[test]
    fn few_repetitions_are_not_held_against_the_record() {
        let of = |windows: &[u32]| {
            let recorded = Claim { holds: false, ..claim("repetitions.sim = 5\n") };
            let (paper, _) = load("chd").expect("the paper");
            let records = windows.iter().map(|pkts| window(*pkts)).collect();
            let v = Verdict::of(&paper, &recorded, "sim", &formulas(records), None);
            (v.differs(), v.word())
        };
        let holds = "holds; too few repetitions";
        assert_eq!(of(&[15, 15, 15, 15]), (false, holds));
        assert_eq!(of(&[15, 15, 15, 15, 15]), (true, "holds; expected: does not hold"));
        assert_eq!(of(&[9]), (false, "does not hold"));
        let v = judged("repetitions.sim = 5\n", vec![window(9)]);
        let fails = "does not hold; too few repetitions";
        assert_eq!((v.differs(), v.word()), (false, fails));
        // Those of another host say nothing.
        let v = judged("repetitions.vm = 5\n", vec![window(9)]);
        assert_eq!((v.differs(), v.word()), (true, "does not hold; expected: holds"));
        // A formula that fails is no matter of repetitions.
        let v =
            judged("repetitions.sim = 5\nguard = \"run(#{}).window(9, 0) > 0\"", vec![window(15)]);
        assert_eq!((v.differs(), v.word()), (true, "cannot be evaluated"));
    }

    /// A claim that does not hold (a window of 8), with a cause whose runs are those of figure 2: a
    /// window of 20 at the start.
    fn explained(cause: &str, formulas: &Formulas) -> Verdict {
        let more = format!("[cause]\nstatement = \"the figure\"\nfigure = \"2\"\n{cause}");
        let recorded = Claim { holds: false, ..claim(&more) };
        let (paper, _) = load("chd").expect("the paper");
        Verdict::of(&paper, &recorded, "sim", formulas, Some(1))
    }

    #[test]
    fn a_cause_is_shown_or_not() {
        let runs = || formulas(vec![window(8)]);
        let state = |v: &Verdict| {
            let shown = v.cause.as_ref().and_then(|c| c.shown);
            (v.holds, shown, v.explained(), v.differs(), v.untold(), v.word())
        };
        let (yes, no) = (Some(true), Some(false));
        // The claim's own range, in other runs.
        let v = explained("", &runs());
        assert_eq!(state(&v), (no, yes, true, false, false, "explained"));
        let cause = v.cause.expect("a cause");
        assert_eq!((cause.measured.p50, cause.accepted), (Some(20.0), [Some(10.0), Some(20.0)]));
        assert_eq!((cause.unit.as_str(), cause.changes.as_str()), ("p", "figure 2"));
        // A value that is derived, of changed and of unchanged runs.
        let derived = "quantity = \"run(#{}).window(0, 0) / run('1', #{}).window(0, 0)\"\n\
                       unit = \"ratio\"\naccepted = [2.4, 2.6]";
        let derived = derived.replace('\'', "\\\"");
        let v = explained(&derived, &runs());
        assert_eq!(state(&v), (no, yes, true, false, false, "explained"), "{:?}", v.cause);
        assert_eq!(v.cause.and_then(|c| c.measured.p50), Some(2.5));
        // A cause that is not shown is a failure.
        let unshown = "does not hold, and its cause is not shown";
        let v = explained("accepted = [0.0, 19.0]", &runs());
        assert_eq!(state(&v), (no, no, false, true, false, unshown));
        let v = explained("guard = \"run(#{}).window(9, 0) > 0\"", &runs());
        assert_eq!(state(&v), (no, no, false, true, false, unshown));
        let trouble = v.cause.and_then(|c| c.trouble);
        assert!(trouble.as_deref().is_some_and(|t| t.contains("no flow 9")), "{trouble:?}");
        // A claim that starts to hold is against the record, whatever its cause.
        let v = explained("", &formulas(vec![window(15)]));
        assert_eq!(state(&v), (yes, yes, false, true, false, "holds; expected: does not hold"));
        // Runs that failed tell nothing.
        let late = formulas(vec![window(8), Err("late".to_owned())]);
        let quantity =
            "quantity = \"run('1', #{}).window(0, 0)\"\nunit = \"\"\naccepted = [8.0, 8.0]";
        let v = explained(&quantity.replace('\'', "\\\""), &late);
        assert_eq!(state(&v), (no, yes, true, false, false, "explained"));
        let failed = formulas(vec![Err("late".to_owned())]);
        let v = explained(&quantity.replace('\'', "\\\""), &failed);
        let v = Verdict { holds: no, measured: Spread::of(&[8.0]), ..v };
        let told = "does not hold; its cause could not be judged";
        assert_eq!(state(&v), (no, None, false, false, true, told));
    }

    #[test]
    fn a_guard_of_the_claim_guards_its_own_quantity() {
        let of = |cause: &str| {
            let text = format!("guard = \"1 > 2\"\n[cause]\nstatement = \"\"\n{cause}");
            let claim = claim(&text);
            claim.cause.clone().expect("a cause").as_claim(&claim).guard
        };
        assert_eq!(of("figure = \"2\"").as_deref(), Some("1 > 2"));
        assert_eq!(of("guard = \"true\"").as_deref(), Some("true"));
        assert_eq!(of("quantity = \"1\""), None);
    }

    #[test]
    fn json_has_the_cause() {
        let json = |v: &Verdict| serde_json::to_value(v).expect("JSON");
        let found = json(&explained("", &formulas(vec![window(8)])));
        let cause = &found["cause"];
        assert_eq!(cause["statement"], "the figure");
        assert_eq!(cause["measured"]["p50"], 20.0);
        assert_eq!(cause["accepted"][1], 20.0);
        assert_eq!((&cause["shown"], &cause["unit"]), (&true.into(), &"p".into()));
        assert!(json(&judged("", vec![window(15)]))["cause"].is_null());
    }
}
