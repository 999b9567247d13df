//! A paper as data: its figures (`paper.toml`) and its claims (`claims.toml`).

use super::{cause::Cause, fluid::FluidSpec, language};
use include_dir::{Dir, include_dir};
use knee_run::Host;
use serde::Deserialize;
use std::{collections::BTreeMap, fmt};
use thiserror::Error;
use toml::Spanned;

/// Every scenario, paper and claim of the repository, compiled in.
static SCENARIOS: Dir = include_dir!("$CARGO_MANIFEST_DIR/scenarios");

/// The host that a claim's `holds` and `reason` are about.
const SIMULATOR: &str = "sim";

/// Papers that Knee reproduces.
pub const PAPERS: [&str; 5] = ["chd", "delay-aimd", "htcp", "ftcp", "hd"];

/// A paper: what is run, how it is plotted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Name on the command line.
    pub id: String,
    /// Title.
    pub title: String,
    /// Authors, venue, year.
    pub citation: String,
    /// Why figures that do not say so themselves are not run on a host, by its name.
    #[serde(default)]
    not_on: BTreeMap<String, Unjudged>,
    /// Figures, in the paper's order.
    #[serde(rename = "figure")]
    pub figures: Vec<Figure>,
}

/// A figure.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Its number in the paper.
    pub number: String,
    /// What it shows.
    pub title: String,
    /// The scenario that its runs start from; none: it needs no runs.
    pub scenario: Option<String>,
    /// Values set for all of its runs.
    #[serde(default)]
    pub set: BTreeMap<String, toml::Value>,
    /// Why it is not run on a host, by the host's name.
    #[serde(default)]
    pub not_on: BTreeMap<String, Unjudged>,
    /// What varies between its runs.
    #[serde(default, rename = "axis")]
    pub axes: Vec<Axis>,
    /// Of the runs of a cause: what it changes, after what the axes set.
    #[serde(skip)]
    pub(super) changes: Option<BTreeMap<String, toml::Value>>,
    /// How it is plotted.
    #[serde(default, rename = "plot")]
    pub plots: Vec<Plot>,
    /// What is tabulated beside it.
    #[serde(default, rename = "table")]
    pub tables: Vec<Tabulated>,
}

/// A value of all cases of a figure, as a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tabulated {
    /// What it shows, with unit.
    pub title: String,
    /// Axis whose values are rows; the other axes' combinations are columns.
    pub rows: String,
    /// Formula of a run `r`; its median over repetitions is shown.
    pub value: String,
}

/// Something that varies between runs of a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Name in claims and plots.
    pub name: String,
    /// Path of the key that plain values set.
    pub set: Option<String>,
    /// Values; the first is meant where none is named.
    pub values: Vec<AxisValue>,
    /// Names of those that are run on hosts that keep real time; all, if not given.
    pub real_time: Option<Vec<toml::Value>>,
    /// Names of those that are run in the short form; all, if not given.
    pub short: Option<Vec<toml::Value>>,
}

/// A value of an axis.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum AxisValue {
    /// Several keys at once, under a name.
    Named {
        /// Name.
        name: String,
        /// Values by path of their keys.
        set: BTreeMap<String, toml::Value>,
    },
    /// A value of the axis' own key; named as it is written.
    Plain(toml::Value),
}

/// How a figure, or a panel of it, is plotted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// Title of the panel.
    pub title: String,
    /// Kind of plot.
    pub kind: PlotKind,
    /// Values of axes that are not the first.
    #[serde(default)]
    pub fixed: BTreeMap<String, toml::Value>,
    /// Sweep: axis along x.
    pub x: Option<String>,
    /// Sweep: axis whose values are series.
    pub series: Option<String>,
    /// Sweep: formula of y, of a run `r`.
    pub value: Option<String>,
    /// Label of the x axis, with unit.
    pub x_label: Option<String>,
    /// Label of the y axis, with unit.
    pub y_label: Option<String>,
    /// Sweep: a model plotted over it.
    pub model: Option<Model>,
    /// Sweep: a linear x axis.
    #[serde(default)]
    pub linear: bool,
    /// Timeline and history: width of the bins.
    pub bin_s: Option<f64>,
    /// History: what is plotted, each as a chart: goodput, windows, queue, probes, or the name of an
    /// observed value; goodput and windows if not given.
    #[serde(default)]
    pub what: Vec<String>,
    /// History: only these flows.
    pub flows: Option<Vec<usize>>,
    /// History and flows: only from here on, s. Curves: the smallest x.
    pub from: Option<f64>,
    /// History and flows: only until here, s. Curves: the largest x.
    pub to: Option<f64>,
    /// Curves: what is plotted.
    #[serde(default)]
    pub curves: Vec<Model>,
    /// Values that the paper's text gives, drawn as points over the first chart.
    #[serde(default)]
    pub points: Vec<PaperPoints>,
    /// Fluid: link and flows.
    pub fluid: Option<FluidSpec>,
    /// Fluid: queueing delays from which trajectories start, ms.
    #[serde(default)]
    pub starts: Vec<f64>,
}

/// Values that a paper gives.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperPoints {
    /// Name in the legend.
    pub name: String,
    /// x and y of each, in the units of the axes.
    pub at: Vec<(f64, f64)>,
}

/// A formula plotted as a curve.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Name in the legend.
    pub name: String,
    /// Formula of `x`.
    pub y: String,
}

/// Kinds of plots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlotKind {
    /// A value against an axis, percentiles over repetitions.
    Sweep,
    /// Goodput of each flow in bins, percentiles over repetitions.
    Timeline,
    /// What happened over time in the first repetition.
    History,
    /// Mean goodput of each flow, percentiles over repetitions.
    Flows,
    /// Formulas of `x`.
    Curves,
    /// The fluid model: its equilibria, and its trajectories over the first repetition's delay.
    Fluid,
    /// g(q) of HD and CHD.
    BackoffProbability,
    /// CHD's windows under a scripted sequence of delays.
    ShadowWindow,
}

/// A claim of a paper and what was found.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Identifier, `C1` and so on.
    pub id: String,
    /// Figure it is about.
    pub figure: String,
    /// What is claimed.
    pub statement: String,
    /// What the paper says, in its own unit.
    pub paper_value: String,
    /// Unit of the quantity.
    pub unit: String,
    /// Formula, evaluated per repetition.
    pub quantity: String,
    /// Condition that must hold too.
    pub guard: Option<String>,
    /// Accepted range.
    pub accepted: [f64; 2],
    /// How repetitions make a verdict.
    #[serde(default)]
    pub judge: Judge,
    /// What was found in the simulator: the record that reality is held against.
    pub holds: bool,
    /// Why it does not hold, and what was tried.
    pub reason: Option<String>,
    /// Of a claim that does not hold: its cause, with a run that shows it in the simulator.
    pub cause: Option<Cause>,
    /// What was found on other hosts, by their names; nothing is recorded of those not given.
    #[serde(default)]
    pub found: BTreeMap<String, Found>,
    /// Whether the short form judges it: one run must be enough to tell.
    #[serde(default)]
    pub short: bool,
    /// Settings under which it is judged, and other remarks.
    #[serde(default)]
    pub note: String,
}

/// What was found of a claim on a host other than the simulator.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Found {
    /// It holds there.
    Holds,
    /// It does not, for this reason.
    Fails(String),
    /// It cannot be judged there, for this reason.
    Skip(Unjudged),
}

/// Why something is not judged on a host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unjudged {
    /// When that was found: the longer ago, the sooner it should be tried again.
    pub since: toml::value::Date,
    /// The reason.
    pub reason: String,
}

impl fmt::Display for Unjudged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (on record since {})", self.reason, self.since)
    }
}

/// How repetitions make a verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Judge {
    /// The median lies in the accepted range.
    #[default]
    Median,
    /// At least 80 % of the repetitions do.
    Seeds,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    #[serde(rename = "claim")]
    claims: Vec<Spanned<Claim>>,
}

/// Why a paper cannot be had.
#[derive(Debug, Error, miette::Diagnostic)]
pub enum PaperError {
    /// No such paper.
    #[error("no such paper: `{id}`")]
    #[diagnostic(help("the papers are: {}, all", PAPERS.join(", ")))]
    Unknown {
        /// What was asked for.
        id: String,
    },
    /// A file of it is wrong.
    #[error("scenarios/{file}{}: {why}", line.map(|line| format!(":{line}")).unwrap_or_default())]
    #[diagnostic(help("{help}"))]
    File {
        /// The file, below `scenarios/`.
        file: String,
        /// Line, from 1, unless `why` names it.
        line: Option<usize>,
        /// What is wrong.
        why: String,
        /// What to do about it.
        help: String,
    },
}

/// Header of the table of a claim's cause.
pub(super) const CAUSE: &str = "[claim.cause]";

const FORMULAS: &str = "docs/claims.md describes formulas and their functions";

/// Help where there is no better.
const KEYS: &str = "docs/claims.md describes the keys";

/// Text of a file below `scenarios/`.
///
/// # Errors
/// [`PaperError::File`] if there is none.
pub fn text(file: &str) -> Result<&'static str, PaperError> {
    let found = SCENARIOS.get_file(file).and_then(|f| f.contents_utf8());
    found.ok_or_else(|| PaperError::File {
        file: file.to_owned(),
        line: None,
        why: "no such file".to_owned(),
        help: "the papers' files are compiled in: build Knee again".to_owned(),
    })
}

/// Names of the files of a folder below `scenarios/`, sorted.
pub(crate) fn file_names(folder: &str) -> Vec<&'static str> {
    let files = SCENARIOS.get_dir(folder).into_iter().flat_map(Dir::files);
    let mut names: Vec<&str> =
        files.filter_map(|f| f.path().file_name().and_then(|name| name.to_str())).collect();
    names.sort_unstable();
    names
}

/// The file of this name below `scenarios/`, as what it describes.
///
/// # Errors
/// It is not there, or is wrong.
pub(crate) fn read<T: for<'a> Deserialize<'a>>(file: &str) -> Result<T, PaperError> {
    parse(file, text(file)?)
}

fn parse<T: for<'a> Deserialize<'a>>(file: &str, text: &str) -> Result<T, PaperError> {
    toml::from_str(text).map_err(|e| PaperError::File {
        file: file.to_owned(),
        line: None,
        why: e.to_string(),
        help: KEYS.to_owned(),
    })
}

/// The paper called `id` and its claims.
///
/// # Errors
/// Unknown, or a broken file.
pub fn load(id: &str) -> Result<(Paper, Vec<Claim>), PaperError> {
    if !PAPERS.contains(&id) {
        return Err(PaperError::Unknown { id: id.to_owned() });
    }
    let (papers_file, claims_file) = (format!("{id}/paper.toml"), format!("{id}/claims.toml"));
    let paper = parse_paper(&papers_file, text(&papers_file)?)?;
    let claims = parse_claims(&claims_file, text(&claims_file)?, &paper)?;
    Ok((paper, claims))
}

fn parse_paper(file: &str, text: &str) -> Result<Paper, PaperError> {
    let mut paper: Paper = parse(file, text)?;
    for figure in &mut paper.figures {
        for (host, why) in &paper.not_on {
            figure.not_on.entry(host.clone()).or_insert_with(|| why.clone());
        }
    }
    // Told now rather than after the runs.
    for (figure, place, formula) in paper.figures.iter().flat_map(Figure::formulas) {
        language::check(formula).map_err(|e| PaperError::File {
            file: file.to_owned(),
            line: None,
            why: format!("figure {}: {place}: {e}", figure.number),
            help: FORMULAS.to_owned(),
        })?;
    }
    Ok(paper)
}

/// The claims of `paper`, from the `text` of a file.
fn parse_claims(file: &str, text: &str, paper: &Paper) -> Result<Vec<Claim>, PaperError> {
    let Claims { claims } = parse(file, text)?;
    for spanned in &claims {
        let claim = spanned.get_ref();
        // Line of `key`, of the claim or of its cause.
        let wrong = |cause: bool, key: &str, why: String, help: &str| PaperError::File {
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
            language::check(formula).map_err(|e| wrong(cause, key, e, FORMULAS))?;
        }
        if let Some(cause) = &claim.cause {
            cause.check(claim, paper).map_err(|(key, why, help)| wrong(true, key, why, &help))?;
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

impl Figure {
    /// Every formula, with the title of its plot or table.
    fn formulas(&self) -> impl Iterator<Item = (&Self, &str, &str)> {
        let of_plots = self.plots.iter().flat_map(|plot| {
            let models = plot.model.iter().chain(&plot.curves).map(|model| &model.y);
            plot.value.iter().chain(models).map(|text| (plot.title.as_str(), text.as_str()))
        });
        let of_tables = self.tables.iter().map(|t| (t.title.as_str(), t.value.as_str()));
        of_plots.chain(of_tables).map(move |(place, text)| (self, place, text))
    }
}

/// Which part of a paper is run.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub host: &'a dyn Host,
    pub short: bool,
}

impl Part<'_> {
    /// What of `figure` belongs to this part: its axes with the values that are run, its plots
    /// where those suffice.
    pub(crate) fn of(self, figure: &Figure) -> Figure {
        let mut figure = figure.clone();
        if figure.not_on.contains_key(self.host.name()) {
            figure.scenario = None;
            figure.plots.clear();
            figure.tables.clear();
        }
        for axis in &mut figure.axes {
            let lists = [(self.host.keeps_real_time(), &axis.real_time), (self.short, &axis.short)];
            for names in lists.into_iter().filter_map(|(applies, l)| l.as_ref().filter(|_| applies))
            {
                let names: Vec<String> = names.iter().map(plain_name).collect();
                axis.values.retain(|value| names.contains(&value.name()));
            }
        }
        let axes = &figure.axes;
        figure.plots.retain(|plot| {
            plot.fixed.iter().all(|(name, value)| {
                let axis = axes.iter().find(|a| a.name == *name);
                axis.is_none_or(|a| a.values.iter().any(|v| v.name() == plain_name(value)))
            })
        });
        figure
    }

    /// The runs that show the cause of `claim`, of one of `figures`: its id, and the figure with what
    /// is changed. Causes are those of the simulator, and take repetitions.
    pub(super) fn changed<'a>(
        self,
        claim: &'a Claim,
        figures: &[Figure],
    ) -> Option<(&'a str, Figure)> {
        let cause =
            claim.cause.as_ref().filter(|_| !self.short && self.host.name() == SIMULATOR)?;
        let number = cause.figure(claim);
        let figure = figures.iter().find(|f| f.number == number)?;
        Some((claim.id.as_str(), cause.changed(figure)))
    }

    /// Whether `claim` belongs to this part.
    pub(super) fn has(self, claim: &Claim) -> bool {
        claim.short || !self.short
    }
}

impl Claim {
    /// Why it, of one of `figures`, is not judged on the host called `host`, if it is not.
    pub fn skipped<'a>(&'a self, host: &str, figures: &'a [Figure]) -> Option<&'a Unjudged> {
        match self.found.get(host) {
            Some(Found::Skip(why)) => Some(why),
            _ => {
                let figure = figures.iter().find(|f| f.number == self.figure)?;
                figure.not_on.get(host)
            }
        }
    }

    /// What is recorded of the host called `host`: whether it holds, and why not. What was found in
    /// the simulator says nothing of other hosts.
    pub(super) fn record(&self, host: &str) -> (Option<bool>, Option<String>) {
        if host == SIMULATOR {
            return (Some(self.holds), self.reason.clone());
        }
        match self.found.get(host) {
            Some(Found::Holds) => (Some(true), None),
            Some(Found::Fails(reason)) => (Some(false), Some(reason.clone())),
            Some(Found::Skip(_)) | None => (None, None),
        }
    }
}

impl AxisValue {
    /// Name in claims, plots and legends.
    pub fn name(&self) -> String {
        match self {
            Self::Named { name, .. } => name.clone(),
            Self::Plain(value) => plain_name(value),
        }
    }

    /// Its number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Plain(toml::Value::Integer(n)) => Some(*n as f64),
            Self::Plain(toml::Value::Float(x)) => Some(*x),
            _ => None,
        }
    }
}

/// A value as a name: a string without quotes, a number as Rust prints it.
pub fn plain_name(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Float(x) => x.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A figure gives all of its formulas.
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
    fn what_is_not_judged_has_a_reason_and_a_date() {
        let claim = |kernel: &str| {
            toml::from_str::<Claim>(&format!(
                "id = \"C1\"\nfigure = \"1\"\nstatement = \"\"\npaper_value = \"\"\nunit = \"\"\n\
                 quantity = \"1\"\naccepted = [0.0, 1.0]\nholds = true\nfound.kernel = {kernel}\n"
            ))
        };
        let skip =
            claim("{ skip = { since = 2026-11-22, reason = \"too fast\" } }").expect("a claim");
        let why = skip.skipped("kernel", &[]).expect("a reason");
        assert_eq!(why.to_string(), "too fast (on record since 2026-11-22)");
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

    /// What was found in the simulator is no record of another host.
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
        let part = Part { host: &knee_sim::Simulator, short: true };
        let mut in_short = claims.iter().filter(|c| part.has(c)).peekable();
        assert!(in_short.peek().is_some());
        assert!(in_short.all(|c| c.record("kernel").0.is_some()));
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

    fn parsed(text: &str) -> Result<Vec<Claim>, PaperError> {
        let (paper, _) = load("chd").expect("the paper");
        parse_claims("chd/claims.toml", text, &paper)
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

    /// What is wrong with a cause is told with file, line, key and remedy.
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
            let Err(PaperError::File { file, line, why, help }) = parsed(&with_cause(holds, cause))
            else {
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
        // Of a claim itself, with its own line.
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
        let part = Part { host: &knee_sim::Simulator, short: false };
        let (id, figure) = part.changed(&claims[0], &paper.figures).expect("a cause");
        let names = |axis: &Axis| axis.values.iter().map(AxisValue::name).collect::<Vec<_>>();
        let names: Vec<Vec<String>> = figure.axes.iter().map(names).collect();
        assert_eq!(id, "C17");
        assert_eq!(names, [&["chd", "hd"][..], &["newreno"], &["delayed"]]);
        assert!(figure.plots.is_empty() && figure.tables.is_empty());
        let (cases, specs) =
            super::super::cases::prepare("chd", &figure, Some(1)).expect("the runs");
        assert_eq!(specs.len(), 2);
        let kinds = |case: &super::super::Case| -> Vec<String> {
            let flows = case.spec.flows.iter();
            flows
                .map(|f| match &f.kind {
                    knee_run::FlowKind::Tcp(tcp) => tcp.cc.name(),
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
