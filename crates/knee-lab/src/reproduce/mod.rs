//! `knee reproduce`: a paper's figures, run and drawn, with a verdict for each of its claims.
//!
//! Papers are data below `scenarios/`: `paper.toml` says what is run and how it is drawn,
//! `claims.toml` what must come out, as formulas (see `docs/claims.md`).

mod cases;
mod drawings;
mod formula;
mod paper;
mod verdict;

pub use cases::{Case, Cases};
pub use paper::{
    Axis, AxisValue, Claim, Drawing, Figure, Judge, Model, PAPERS, Paper, PaperError, Plot,
    available,
};
pub use verdict::{Measured, Verdict};

use crate::{
    chart::Chart,
    report::{Report, Section},
    scenario::ScenarioError,
    store::{ResultWriter, StoreError},
    table::{Cell, Table, Tone},
};
use formula::Formulas;
use knee_run::{RunRecord, RunSpec};
use serde::Serialize;
use std::{fmt::Write as _, sync::Arc};
use thiserror::Error;

/// Runs one specification on some host; the error in words.
pub type Runner = dyn Fn(&RunSpec) -> Result<RunRecord, String> + Sync;

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Only the figure of this number.
    pub figure: Option<String>,
    /// Repetitions instead of the scenarios' own.
    pub repeat: Option<u32>,
    /// Threads; none: one per core.
    pub jobs: Option<usize>,
}

/// Why a paper could not be reproduced.
#[derive(Debug, Error, miette::Diagnostic)]
pub enum ReproduceError {
    /// The paper cannot be had.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Paper(#[from] PaperError),
    /// It has no such figure.
    #[error("{paper} has no figure {figure}")]
    #[diagnostic(help("its figures are: {known}"))]
    NoFigure {
        /// Paper.
        paper: String,
        /// Number asked for.
        figure: String,
        /// Numbers that exist.
        known: String,
    },
    /// A scenario of it is wrong.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Scenario(#[from] ScenarioError),
    /// A run failed.
    #[error("a run failed: {0}")]
    Run(String),
    /// The threads could not be had.
    #[error("cannot start {jobs} threads: {why}")]
    #[diagnostic(help("give fewer with --jobs"))]
    Threads {
        /// Threads asked for.
        jobs: usize,
        /// What the system said.
        why: String,
    },
}

/// A paper with its runs, verdicts and charts.
pub struct Reproduction {
    /// The paper.
    pub paper: Paper,
    /// The figures that were run.
    pub figures: Arc<Vec<Cases>>,
    /// Verdicts on their claims.
    pub verdicts: Vec<Verdict>,
    drawn: Vec<Drawn>,
    host: String,
}

/// Charts and tables of a figure.
struct Drawn {
    charts: Vec<Chart>,
    tables: Vec<Table>,
}

/// Reproduces `id` with `runner` on `host`. `progress` is told how many runs of how many are done.
///
/// # Errors
/// See [`ReproduceError`].
pub fn reproduce(
    id: &str,
    wanted: &Wanted,
    host: &str,
    runner: &Runner,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Reproduction, ReproduceError> {
    let (paper, claims) = paper::load(id)?;
    let mut figures = paper.figures.clone();
    if let Some(number) = &wanted.figure {
        figures.retain(|f| f.number == *number);
        if figures.is_empty() {
            let known: Vec<&str> = paper.figures.iter().map(|f| f.number.as_str()).collect();
            return Err(ReproduceError::NoFigure {
                paper: id.to_owned(),
                figure: number.clone(),
                known: known.join(", "),
            });
        }
    }
    let mut prepared = Vec::new();
    let mut specs = Vec::new();
    for figure in &figures {
        let (cases, mut of_figure) = cases::prepare(id, figure, wanted.repeat)?;
        prepared.push(cases);
        specs.append(&mut of_figure);
    }
    let total = specs.len();
    let jobs = wanted.jobs.unwrap_or(0);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs)
        .build()
        .map_err(|e| ReproduceError::Threads { jobs, why: e.to_string() })?;
    let records = pool.install(|| cases::run_all(&specs, runner, &|done| progress(done, total)))?;
    let mut records = records.into_iter();
    prepared.iter_mut().flat_map(|f| &mut f.cases).for_each(|case| case.take(&mut records));

    let figures = Arc::new(prepared);
    let formulas = Formulas::new(figures.clone());
    let of_figures = |c: &&Claim| figures.iter().any(|f| f.figure.number == c.figure);
    let verdicts = claims
        .iter()
        .filter(of_figures)
        .map(|claim| Verdict::of(&paper, claim, host, &formulas))
        .collect();
    let drawn = figures
        .iter()
        .map(|cases| draw(cases, &formulas))
        .collect::<Result<_, _>>()
        .map_err(ReproduceError::Run)?;
    Ok(Reproduction { paper, figures, verdicts, drawn, host: host.to_owned() })
}

fn draw(cases: &Cases, formulas: &Formulas) -> Result<Drawn, String> {
    let number = &cases.figure.number;
    let mut charts = Vec::new();
    for plot in &cases.figure.plots {
        let mut more = drawings::charts(cases, charts.len(), plot, formulas)
            .map_err(|e| format!("figure {number}: {}: {e}", plot.title))?;
        charts.append(&mut more);
    }
    let tables = cases.figure.tables.iter().map(|wanted| {
        let table = drawings::table(cases, wanted, formulas);
        table.map_err(|e| format!("figure {number}: {}: {e}", wanted.title))
    });
    Ok(Drawn { charts, tables: tables.collect::<Result<_, _>>()? })
}

/// Verdicts of one or more papers as JSON.
#[derive(Serialize)]
pub struct Claims<'a> {
    /// Verdicts, in the papers' order.
    pub claims: Vec<&'a Verdict>,
}

/// Whether every verdict is as the repository records it.
pub fn as_recorded(reproductions: &[Reproduction]) -> bool {
    reproductions.iter().flat_map(|r| &r.verdicts).all(Verdict::as_recorded)
}

/// Verdicts of `reproductions`.
pub fn claims(reproductions: &[Reproduction]) -> Claims<'_> {
    Claims { claims: reproductions.iter().flat_map(|r| &r.verdicts).collect() }
}

/// A number with three significant digits or so, and no zeros at its end.
fn number(value: Option<f64>) -> String {
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

fn range([low, high]: [Option<f64>; 2]) -> String {
    match (low, high) {
        (Some(low), Some(high)) if low == high => number(Some(low)),
        (Some(low), Some(high)) => format!("{} to {}", number(Some(low)), number(Some(high))),
        (Some(low), None) => format!("at least {}", number(Some(low))),
        (None, Some(high)) => format!("at most {}", number(Some(high))),
        (None, None) => "any".to_owned(),
    }
}

/// Verdicts as a table, with the settings that each was judged under if asked for.
fn verdict_table<'a>(
    caption: &str,
    verdicts: impl Iterator<Item = &'a Verdict>,
    settings: bool,
) -> Table {
    let columns = ["claim", "fig.", "statement", "paper", "accepted", "measured", "verdict"];
    let mut table = Table::new(caption, &columns, &[]);
    for v in verdicts {
        let m = &v.measured;
        let tone = match (v.as_recorded(), v.holds) {
            (true, true) => Tone::Good,
            (true, false) => Tone::Bad,
            (false, _) => Tone::Caution,
        };
        let (low, middle, high) = (number(m.p20), number(m.p50), number(m.p80));
        table.row([
            Cell::from(v.id.clone()),
            Cell::from(v.figure.clone()),
            Cell::from(match settings && !v.note.is_empty() {
                true => format!("{} ({})", v.statement, v.note),
                false => v.statement.clone(),
            }),
            Cell::from(v.paper_value.clone()),
            Cell::from(range(v.accepted)),
            Cell::from(format!("{middle} [{low}, {high}] {}", v.unit)),
            Cell::toned(v.word(), tone),
        ]);
    }
    table
}

impl Reproduction {
    /// Verdicts as a table for a terminal `width` characters wide.
    pub fn to_text(&self, width: Option<u16>) -> String {
        let caption = format!("{} ({}), host {}", self.paper.title, self.paper.citation, self.host);
        if self.verdicts.is_empty() {
            return format!("{caption}\nno claims on what was run\n");
        }
        let mut text = verdict_table(&caption, self.verdicts.iter(), false).to_text(width);
        for v in self.verdicts.iter().filter(|v| !v.holds || !v.as_recorded()) {
            let reason = v.reason.as_deref().unwrap_or("no reason is recorded");
            let _ = writeln!(text, "\n{} {}: {}", v.id, v.word(), reason.trim());
        }
        let holding = self.verdicts.iter().filter(|v| v.holds).count();
        let differing = self.verdicts.iter().filter(|v| !v.as_recorded()).count();
        let _ = writeln!(
            text,
            "\n{holding} of {} claims hold; {differing} differ from the record",
            self.verdicts.len()
        );
        text
    }

    /// The sections of a report: a summary, then each figure beside its claims.
    pub fn sections(&self) -> Vec<Section> {
        let mut sections = vec![Section {
            tables: vec![verdict_table("All claims", self.verdicts.iter(), false)],
            ..Section::new(format!("{}: claims", self.paper.id))
        }];
        for (cases, drawn) in self.figures.iter().zip(&self.drawn) {
            let figure = &cases.figure;
            let mut section =
                Section::new(format!("{} Fig. {}: {}", self.paper.id, figure.number, figure.title));
            section.charts.clone_from(&drawn.charts);
            let of_figure = || self.verdicts.iter().filter(|v| v.figure == figure.number);
            if of_figure().next().is_some() {
                section.tables.push(verdict_table("Claims", of_figure(), true));
            }
            for v in of_figure().filter(|v| !v.holds) {
                let reason = v.reason.as_deref().unwrap_or("No reason is recorded.");
                section.paragraphs.push(format!("{} {}. {}", v.id, v.word(), reason.trim()));
            }
            section.tables.extend(drawn.tables.iter().cloned());
            if let Some(case) = cases.cases.first() {
                let name = format!("Scenario of the first case ({})", case.values.join(", "));
                section.listings.push((name, case.text.clone()));
            }
            sections.push(section);
        }
        sections
    }

    fn write_figures(&self, out: &ResultWriter) -> Result<(), StoreError> {
        for chart in self.drawn.iter().flat_map(|d| &d.charts) {
            out.bytes(&format!("figures/{}-{}.svg", self.paper.id, chart.id), chart.svg())?;
        }
        Ok(())
    }
}

/// Writes `report.html`, `claims.json` and the figures as SVG.
///
/// # Errors
/// A file cannot be written.
pub fn write(
    reproductions: &[Reproduction],
    meta: Vec<(String, String)>,
    out: &ResultWriter,
) -> Result<(), StoreError> {
    let report = Report {
        title: match reproductions {
            [one] => one.paper.title.clone(),
            _ => "Delay-based congestion control, reproduced".to_owned(),
        },
        subtitle: reproductions
            .iter()
            .map(|r| r.paper.citation.as_str())
            .collect::<Vec<_>>()
            .join("; "),
        meta,
        sections: reproductions.iter().flat_map(Reproduction::sections).collect(),
    };
    out.bytes("report.html", report.html())?;
    out.json("claims.json", &claims(reproductions))?;
    reproductions.iter().try_for_each(|r| r.write_figures(out))
}
