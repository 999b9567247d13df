//! A paper as data: its figures (`paper.toml`) and its claims (`claims.toml`).

use super::claim::{CAUSE, Cause, Claim, SIMULATOR};
use crate::{
    error::{FileError, LabError},
    figure::{Figure, Unjudged, check_formula},
    files::{parse, text},
};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// Papers that Knee reproduces, and the goals of its own algorithm.
pub const PAPERS: [&str; 7] = ["chd", "delay-aimd", "htcp", "ftcp", "hd", "others", "ebb"];

/// A paper: its runs and plots.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Name on the command line.
    pub id: String,
    /// Title.
    pub title: String,
    /// Authors, venue, year.
    pub citation: String,
    /// Reasons why figures without a reason of their own are not run on a host, by its name.
    #[serde(default)]
    not_on: BTreeMap<String, Unjudged>,
    /// Software that made the expected verdicts on a host, by the host's name: names and values of
    /// `Host::made_with`. With other software, no verdict is expected.
    #[serde(default)]
    recorded_with: BTreeMap<String, BTreeMap<String, String>>,
    /// Figures, in the paper's order.
    #[serde(rename = "figure")]
    pub figures: Vec<Figure>,
}

impl Paper {
    /// The difference between `present`, the software of the host called `host`, and the software that made
    /// its expected verdicts, in words.
    pub(super) fn other_software(
        &self,
        host: &str,
        present: &BTreeMap<&'static str, String>,
    ) -> Option<String> {
        self.recorded_with.get(host)?.iter().find_map(|(name, recorded)| {
            let value = present.get(name.as_str()).map_or("unknown", String::as_str);
            (value != recorded)
                .then(|| format!("the {name} is {value}; the recorded verdicts are of {recorded}"))
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    #[serde(rename = "claim")]
    claims: Vec<Spanned<Claim>>,
}

const FORMULAS: &str = "docs/reference/formulas.md describes formulas and their functions";

/// The paper called `id` and its claims.
///
/// # Errors
/// Unknown, or a broken file.
pub fn load(id: &str) -> Result<(Paper, Vec<Claim>), LabError> {
    if !PAPERS.contains(&id) {
        let help = format!("the papers are: {}, all", PAPERS.join(", "));
        return Err(LabError::new(format!("no such paper: `{id}`"), help));
    }
    let (papers_file, claims_file) = (format!("{id}/paper.toml"), format!("{id}/claims.toml"));
    let paper = parse_paper(&papers_file, text(&papers_file)?)?;
    let claims = parse_claims(&claims_file, text(&claims_file)?, &paper)?;
    Ok((paper, claims))
}

fn parse_paper(file: &str, text: &str) -> Result<Paper, FileError> {
    let mut paper: Paper = parse(file, text)?;
    for figure in &mut paper.figures {
        for (host, why) in &paper.not_on {
            figure.not_on.entry(host.clone()).or_insert_with(|| why.clone());
        }
    }
    // Told now rather than after the runs.
    for (figure, place, formula) in paper.figures.iter().flat_map(Figure::formulas) {
        check_formula(formula).map_err(|e| FileError {
            file: file.to_owned(),
            line: None,
            why: format!("figure {}: {place}: {e}", figure.number),
            help: FORMULAS.to_owned(),
        })?;
    }
    Ok(paper)
}

/// The claims of `paper`, from the `text` of a file.
fn parse_claims(file: &str, text: &str, paper: &Paper) -> Result<Vec<Claim>, FileError> {
    let Claims { claims } = parse(file, text)?;
    for spanned in &claims {
        let claim = spanned.get_ref();
        // Line of `key`, of the claim or of its cause.
        let wrong = |cause: bool, key: &str, why: String, help: &str| FileError {
            file: file.to_owned(),
            line: Some(line_of(text, spanned.span().start, cause, key)),
            why: match (cause, key) {
                (true, CAUSE) => format!("{}: cause: {why}", claim.id),
                (true, key) => format!("{}: cause: {key}: {why}", claim.id),
                (false, key) => format!("{}: {key}: {why}", claim.id),
            },
            help: help.to_owned(),
        };
        let of_claim = [("quantity", &claim.quantity)].into_iter();
        let of_claim = of_claim.chain(claim.guard.as_ref().map(|guard| ("guard", guard)));
        let of_cause = claim.cause.iter().flat_map(Cause::formulas).map(|of| (true, of));
        for (cause, (key, formula)) in of_claim.map(|of| (false, of)).chain(of_cause) {
            check_formula(formula).map_err(|e| wrong(cause, key, e, FORMULAS))?;
        }
        let mut counted = claim.repetitions.keys();
        if let Some(host) =
            counted.find(|host| *host != SIMULATOR && !claim.found.contains_key(*host))
        {
            let why = format!("no verdict on the host `{host}` is recorded");
            let help = "name `sim`, or a host that `found` names";
            return Err(wrong(false, &format!("repetitions.{host}"), why, help));
        }
        if let Some(cause) = &claim.cause {
            cause
                .check(claim, &paper.figures)
                .map_err(|(key, why, help)| wrong(true, key, why, &help))?;
        }
    }
    Ok(claims.into_iter().map(Spanned::into_inner).collect())
}

/// Line, from 1, of `key` in the claim that begins at byte `start`, or in the cause of that claim.
fn line_of(text: &str, start: usize, in_cause: bool, key: &str) -> usize {
    let before = text[..start].matches('\n').count();
    let own = text[start..].lines().enumerate();
    // The header of the claim itself, if the span begins with it, ends nothing.
    let own = own.take_while(|(i, line)| *i == 0 || !line.starts_with("[[claim]]"));
    let mut lines = own.skip_while(|(_, line)| in_cause && !line.starts_with(CAUSE));
    let first = lines.clone().next().map_or(0, |(i, _)| i);
    let found = lines.find(|(_, line)| line.starts_with(key)).map_or(first, |(i, _)| i);
    before + found + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        figure::{Axis, AxisValue, Case, Part},
        reproduce::runs::prepare,
    };

    /// A figure gives all of its formulas.
    #[test]
    fn other_software_has_no_expected_verdict() {
        let (paper, _) = load("chd").expect("the paper");
        let recorded = &paper.recorded_with["linux"];
        let name = "kernel package";
        let other = |package: &str| {
            let source = "kernel source (SHA-256)";
            let present = [(name, package.to_owned()), (source, recorded[source].clone())];
            paper.other_software("linux", &present.into())
        };
        assert_eq!(other(&recorded[name]), None);
        let expected = format!("the {name} is 7; the recorded verdicts are of {}", recorded[name]);
        assert_eq!(other("7"), Some(expected));
        // The simulator is part of this program.
        assert_eq!(paper.other_software("sim", &BTreeMap::new()), None);
    }

    #[test]
    fn formulas_are_found() {
        let (paper, _) = load("htcp").expect("the paper");
        let found: Vec<&str> =
            paper.figures.iter().flat_map(Figure::formulas).map(|(.., text)| text).collect();
        let tables = paper.figures.iter().flat_map(|f| &f.tables);
        assert!(tables.clone().count() > 0 && found.len() > tables.clone().count());
        assert!(tables.map(|t| t.value.as_str()).all(|text| found.contains(&text)));
    }

    /// A claim that is not judged on a host needs a reason and a date.
    #[test]
    fn every_unjudged_value_has_a_reason_and_a_date() {
        let claim = |kernel: &str| {
            toml::from_str::<Claim>(&format!(
                "id = \"C1\"\nfigure = \"1\"\nstatement = \"\"\npaper_value = \"\"\nunit = \"\"\n\
                 quantity = \"1\"\naccepted = [0.0, 1.0]\nholds = true\nfound.kernel = {kernel}\n"
            ))
        };
        let skip =
            claim("{ skip = { since = 2026-11-22, reason = \"too fast\" } }").expect("a claim");
        let why = skip.skipped("kernel", &[]).expect("a reason");
        assert_eq!(why.to_string(), "too fast (recorded 2026-11-22)");
        assert_eq!(skip.skipped("quic", &[]), None);
        for refused in [
            "{ skip = \"too fast\" }",
            "{ skip = { reason = \"too fast\" } }",
            "{ skip = { since = 2026-11-22 } }",
            "{ skip = { since = \"today\", reason = \"too fast\" } }",
        ] {
            assert!(claim(refused).is_err(), "{refused}");
        }
        assert!(claim("\"holds\"").is_ok());
    }

    /// A verdict in the simulator is no expected verdict of another host.
    #[test]
    fn each_host_has_its_own_record() {
        let (_, claims) = load("chd").expect("the paper");
        let of = |id: &str| claims.iter().find(|c| c.id == id).expect("a claim");
        let recorded = |id: &str, host| of(id).record(host).0;
        assert_eq!(recorded("C1", "sim"), Some(true));
        assert_eq!(recorded("C1", "kernel"), Some(true));
        assert_eq!(recorded("C5", "sim"), Some(true));
        assert_eq!(recorded("C5", "kernel"), None);
        let (holds, reason) = of("C17").record("kernel");
        assert!(holds == Some(false) && reason.is_some());
        let mut in_short = claims.iter().filter(|c| c.short.is_some()).peekable();
        assert!(in_short.peek().is_some());
        assert!(in_short.all(|c| c.record("kernel").0.is_some()));
    }

    /// The most that a claim of the figure asks for; one where none does.
    #[test]
    fn runs_of_the_short_form() {
        let (paper, claims) = load("chd").expect("the paper");
        let claims: Vec<&Claim> = claims.iter().collect();
        let runs = |number: &str, claims: &[&Claim]| {
            let figure = paper.figures.iter().find(|f| f.number == number).expect("a figure");
            Part::runs(figure, claims)
        };
        assert_eq!((runs("4", &claims), runs("5", &claims), runs("8", &claims)), (3, 1, 1));
        let c5: Vec<&Claim> = claims.iter().copied().filter(|c| c.id == "C5").collect();
        assert_eq!((c5[0].short, runs("4", &c5)), (None, 1));
    }

    /// A claims file of one claim of the CHD paper's figure 7, which does not hold, and its cause.
    fn with_cause(holds: bool, cause: &str) -> String {
        format!(
            "# a comment\n[[claim]]\nid = \"C17\"\nfigure = \"7\"\nstatement = \"\"\n\
             paper_value = \"\"\nunit = \"\"\nquantity = \"1\"\naccepted = [0.0, 1.0]\n\
             holds = {holds}\n[claim.cause]\nstatement = \"why\"\n{cause}\n\
             [[claim]]\nid = \"C18\"\nfigure = \"7\"\nstatement = \"\"\npaper_value = \"\"\n\
             unit = \"\"\nquantity = \"1\"\naccepted = [0.0, 1.0]\nholds = true\n"
        )
    }

    fn parsed(text: &str) -> Result<Vec<Claim>, FileError> {
        let (paper, _) = load("chd").expect("the paper");
        parse_claims("chd/claims.toml", text, &paper)
    }

    /// Repetitions are counted on hosts of which there is a record.
    #[test]
    fn repetitions_of_an_unknown_host_are_told() {
        let with = |more: &str| {
            let text = with_cause(false, "axes = { recovery = \"sack\" }");
            parsed(&text.replacen("holds = false\n", &format!("holds = false\n{more}\n"), 1))
        };
        let claims = with("found.vm = \"holds\"\nrepetitions.vm = 10\nrepetitions.sim = 2");
        let claims = claims.expect("claims");
        let needed = ["vm", "sim", "quic"].map(|host| claims[0].repetitions_needed(host));
        assert_eq!(needed, [10, 2, 1]);
        let e = with("found.quic = \"holds\"\nrepetitions.vm = 10").expect_err("no such record");
        assert_eq!((e.file.as_str(), e.line), ("chd/claims.toml", Some(12)));
        assert!(e.why.contains("C17: repetitions.vm: no verdict on the host `vm`"), "{}", e.why);
        assert!(e.help.contains("that `found` names"), "{}", e.help);
    }

    #[test]
    fn causes_are_read() {
        for cause in [
            "set = { \"tcp.delayed_ack_every\" = 1 }",
            "axes = { recovery = \"sack\" }",
            "axes = { cc = [\"hd\", \"chd\"], acks = \"each\" }",
            "figure = \"9\"",
            "quantity = \"run(#{}).mean_queue(0, 1)\"\nunit = \"packets\"\naccepted = [0.0, 1.0]",
        ] {
            let claims =
                parsed(&with_cause(false, cause)).unwrap_or_else(|e| panic!("{cause}: {e}"));
            assert!(claims[0].cause.is_some() && claims[1].cause.is_none());
        }
    }

    /// An error in a cause is reported with file, line, key and remedy.
    #[test]
    fn wrong_causes_are_told() {
        let formula = "unit = \"\"\naccepted = [0.0, 1.0]\n";
        for (holds, cause, expected_line, key, remedy) in [
            (true, "axes = { recovery = \"sack\" }", 11, "holds", "remove the cause"),
            (false, "", 11, "changes nothing", "give `set` or `axes`"),
            (false, "figure = \"12\"", 13, "figure: the paper has no figure 12", "1, 2, 4, 5"),
            (
                false,
                "axes = { speed = 1 }",
                13,
                "axes: figure 7 has no axis `speed`",
                "cc, recovery",
            ),
            (false, "axes = { acks = \"some\" }", 13, "no value `some`", "delayed, each"),
            (false, "axes = { acks = [] }", 13, "no value of the axis `acks`", "at least one"),
            (false, "figure = \"1\"\nset = { a = 1 }", 14, "set: figure 1 has no runs", "another"),
            (false, "quantity = \"1\"\nunit = \"\"", 13, "needs `accepted`", "another quantity"),
            (false, "quantity = \"1\"\naccepted = [0.0, 1.0]", 13, "needs `unit`", "another"),
            (false, &format!("{formula}quantity = \"run(\""), 15, "cause: quantity: ", "formulas"),
            (
                false,
                &format!("{formula}quantity = \"1\"\nguard = \")\""),
                16,
                "guard: ",
                "formulas",
            ),
        ] {
            let Err(FileError { file, line, why, help }) = parsed(&with_cause(holds, cause)) else {
                panic!("{cause}: accepted")
            };
            assert_eq!(
                (file.as_str(), line),
                ("chd/claims.toml", Some(expected_line)),
                "{cause}: {why}"
            );
            assert!(why.starts_with("C17: cause: ") && why.contains(key), "{cause}: {why}");
            assert!(help.contains(remedy), "{cause}: {help}");
        }
        // The parser itself names line and key.
        for (cause, told) in [
            ("reason = \"\"", "unknown field `reason`"),
            ("accepted = [1.0]", "accepted"),
            ("judge = \"me\"", "unknown variant `me`"),
        ] {
            let error = parsed(&with_cause(false, cause)).expect_err(cause).to_string();
            assert!(error.contains("line 13") && error.contains(told), "{cause}: {error}");
        }
        // An error in the claim itself has its own line.
        let text =
            with_cause(false, "figure = \"9\"").replace("quantity = \"1\"", "quantity = \"(\"");
        let error = parsed(&text).expect_err("no formula").to_string();
        assert!(error.contains("claims.toml:8: C17: quantity: "), "{error}");
    }

    /// The runs of a cause: the values that it names, the first ones of other axes, its keys last.
    #[test]
    fn a_cause_changes_runs() {
        let cause = "set = { \"flow.0.cc\" = \"vegas\" }\naxes = { cc = [\"chd\", \"hd\"] }";
        let claims = parsed(&with_cause(false, cause)).expect("claims");
        let (paper, _) = load("chd").expect("the paper");
        let part = Part { host: &knee_sim::Simulator, short: false, all_values: false };
        let (id, figure) = part.changed(&claims[0], &paper.figures).expect("a cause");
        let names = |axis: &Axis| axis.values.iter().map(AxisValue::name).collect::<Vec<_>>();
        let names: Vec<Vec<String>> = figure.axes.iter().map(names).collect();
        assert_eq!(id, "C17");
        assert_eq!(names, [&["chd", "hd"][..], &["newreno"], &["delayed"]]);
        assert!(figure.plots.is_empty() && figure.tables.is_empty());
        let (cases, specs) = prepare("chd", &figure, Some(1), None, &[]).expect("the runs");
        assert_eq!(specs.len(), 2);
        let kinds = |case: &Case| -> Vec<String> {
            let flows = case.spec.flows.iter();
            flows
                .map(|f| match &f.kind {
                    knee_model::FlowKind::Tcp(tcp) => tcp.cc.name(),
                    _ => String::new(),
                })
                .collect()
        };
        assert_eq!(kinds(&cases.cases[0]), ["vegas", "newreno", "newreno", "chd"]);
        assert_eq!(kinds(&cases.cases[1]), ["vegas", "newreno", "newreno", "hd"]);
        let missing = [("cc".to_owned(), "chd, hold-off".to_owned())].into();
        let error = cases.find(&missing).expect_err("not run");
        assert!(error.contains("among the `axes` of the cause"), "{error}");
        // Causes are the simulator's, and not of the short form.
        let short = Part { short: true, ..part };
        assert!(short.changed(&claims[0], &paper.figures).is_none());
        assert!(part.changed(&claims[1], &paper.figures).is_none());
    }
}
