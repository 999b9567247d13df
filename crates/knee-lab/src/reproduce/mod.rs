//! `knee reproduce`: a paper's figures, run and plotted, with a verdict for each of its claims.
//!
//! Papers are data below `scenarios/`: `paper.toml` says what is run and how it is plotted,
//! `claims.toml` what must come out, as formulas (see `docs/reference/paper-and-claims.md`).

mod claim;
mod on_host;
mod paper;
mod report;
mod runs;
mod selection;
mod verdict;

pub use claim::{Cause, Claim, Found, Judge};
pub use on_host::OnHost;
pub use paper::{PAPERS, Paper, load};
pub use report::write;
pub use runs::RunsOn;
pub use selection::Wanted;
pub use verdict::{Shown, Verdict};

use crate::error::LabError;
use on_host::Others;
use runs::Uses;
use selection::Selection;
use serde::Serialize;
use std::collections::BTreeMap;

/// A paper with its runs, verdicts and charts.
pub struct Reproduction {
    /// The paper.
    pub paper: Paper,
    /// Results of each host.
    pub hosts: Vec<OnHost>,
    /// A sentence for each claim that is not judged on a host.
    pub skipped: Vec<String>,
    /// Values set in all runs, as after `--set`.
    pub set: Vec<String>,
}

impl Reproduction {
    /// All verdicts, host by host.
    pub fn verdicts(&self) -> impl Iterator<Item = &Verdict> {
        self.hosts.iter().flat_map(|h| &h.verdicts)
    }
}

/// Reproduces `id` on each of `hosts`.
///
/// # Errors
/// See [`LabError`].
pub fn reproduce(
    id: &str,
    wanted: &Wanted,
    hosts: &[RunsOn<'_>],
) -> Result<Reproduction, LabError> {
    let (paper, claims) = paper::load(id)?;
    let selection = Selection::of(&paper, claims, wanted)?;
    let mut uses = Uses::default();
    let mut results = Vec::new();
    let mut skipped = Vec::new();
    for (index, on) in hosts.iter().enumerate() {
        let name = on.runner.host.name();
        for claim in &selection.claims {
            if let Some(why) = claim.skipped(name, &paper.figures) {
                skipped.push(format!("{} is not judged on the host {name}: {why}", claim.id));
            }
        }
        let others = match (index, hosts.len()) {
            (0, 1) => Others::None,
            (0, _) => Others::Follow,
            _ => Others::Precede,
        };
        results.push(OnHost::of(&paper, &selection, on, others, &mut uses)?);
    }
    Ok(Reproduction { paper, hosts: results, skipped, set: wanted.sets.clone() })
}

/// Verdicts of one or more papers as JSON.
#[derive(Serialize)]
pub struct Claims<'a> {
    /// Values set in all runs, as after `--set`; left out without any.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub set: &'a [String],
    /// Verdicts, in the papers' order.
    pub claims: Vec<&'a Verdict>,
    /// Software that made the runs of a host, by the host's name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub made_with: BTreeMap<&'a str, &'a BTreeMap<&'static str, String>>,
}

/// Summary of the verdicts of one or more papers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every verdict is as the repository records it.
    AsRecorded,
    /// Some verdict is not.
    Differs,
    /// None differs, but some claims could not be judged as runs failed, and the record does not say
    /// why they cannot be.
    NotAllJudged,
}

/// Summary of the verdicts of `reproductions`.
pub fn outcome(reproductions: &[Reproduction]) -> Outcome {
    let verdicts = || reproductions.iter().flat_map(Reproduction::verdicts);
    if verdicts().any(Verdict::differs) {
        Outcome::Differs
    } else if verdicts().any(Verdict::untold) {
        Outcome::NotAllJudged
    } else {
        Outcome::AsRecorded
    }
}

/// Verdicts of `reproductions`.
pub fn claims(reproductions: &[Reproduction]) -> Claims<'_> {
    let hosts = reproductions.iter().flat_map(|r| &r.hosts).filter(|h| !h.made_with.is_empty());
    Claims {
        set: reproductions.first().map_or(&[][..], |r| &r.set),
        claims: reproductions.iter().flat_map(Reproduction::verdicts).collect(),
        made_with: hosts.map(|h| (h.name.as_str(), &h.made_with)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{on_host::PlottedFigure, *};
    use crate::figure::Spread;
    use knee_report::report::Report;

    /// A paper of which one claim holds, one is explained and one has a cause that is not shown.
    fn reproduction(shown: Option<bool>) -> Reproduction {
        let (paper, _) = paper::load("chd").expect("the paper");
        let spread = Spread { p20: Some(1.0), p50: Some(2.0), p80: Some(3.0), n: 3 };
        let verdict = |id: &str, holds: bool, cause: Option<Shown>| Verdict {
            id: id.to_owned(),
            paper: "chd".to_owned(),
            figure: "7".to_owned(),
            statement: "a claim".to_owned(),
            paper_value: "1".to_owned(),
            accepted: [Some(1.0), Some(2.0)],
            measured: spread,
            unit: "ms".to_owned(),
            holds: Some(holds),
            recorded_holds: Some(holds),
            repetitions_needed: 1,
            reason: (!holds).then(|| "as tried".to_owned()),
            host: "sim".to_owned(),
            note: String::new(),
            cause,
        };
        let cause = |shown: Option<bool>| Shown {
            statement: "the packets".to_owned(),
            changes: "tcp.packet = 1500B".to_owned(),
            measured: spread,
            unit: "%".to_owned(),
            accepted: [None, Some(5.0)],
            shown,
            trouble: None,
        };
        let host = OnHost {
            name: "sim".to_owned(),
            verdicts: vec![
                verdict("C1", true, None),
                verdict("C2", false, Some(cause(shown))),
                verdict("C3", false, None),
            ],
            made_with: BTreeMap::new(),
            other_software: None,
            plotted: vec![PlottedFigure {
                figure: paper.figures.iter().find(|f| f.number == "7").expect("it").clone(),
                charts: Vec::new(),
                tables: Vec::new(),
                listing: None,
            }],
            failures: None,
            lateness: None,
            approximations: Vec::new(),
        };
        Reproduction { paper, hosts: vec![host], skipped: Vec::new(), set: Vec::new() }
    }

    const CAUSE: &str = "Cause: the packets (tcp.packet = 1500B): 2 [1, 3] %, accepted at most 5: ";

    #[test]
    fn text_and_report_have_causes() {
        let (yes, no) = (reproduction(Some(true)), reproduction(Some(false)));
        let text = yes.to_text(None);
        assert!(text.contains(&format!("C2 explained: as tried\n{CAUSE}shown\n")), "{text}");
        assert!(text.contains("C3 does not hold: as tried\n"), "{text}");
        let sum =
            "1 of 3 claims hold; 1 is explained by a cause that was run; 0 differ from the record";
        assert!(text.contains(sum), "{text}");
        let text = no.to_text(None);
        let line =
            format!("C2 does not hold, and its cause is not shown: as tried\n{CAUSE}not shown\n");
        assert!(text.contains(&line), "{text}");
        assert!(text.contains("1 of 3 claims hold; 1 differ from the record"), "{text}");

        let sections = yes.sections();
        let of_figure = sections.last().expect("a section");
        assert!(of_figure.paragraphs.iter().any(|p| p.contains(&format!("{CAUSE}shown"))));
        let report =
            Report { title: String::new(), subtitle: String::new(), meta: Vec::new(), sections };
        assert!(report.html().contains("explained"));
    }

    #[test]
    fn a_cause_that_is_not_shown_fails() {
        let of = |shown| outcome(&[reproduction(shown)]);
        assert_eq!(of(Some(true)), Outcome::AsRecorded);
        assert_eq!(of(Some(false)), Outcome::Differs);
        assert_eq!(of(None), Outcome::NotAllJudged);
    }
}
