//! A paper on one host: its runs, verdicts and plots.

use super::{
    Claim, Paper, RunsOn, Verdict,
    runs::{self, Made, Uses},
    selection::Selection,
};
use crate::{
    error::LabError,
    figure::{self, Case, Cases, Figure, Formulas, Part},
};
use knee_model::RunSpec;
use knee_report::{chart::Chart, table::Table};
use knee_results::caveats::{approximations, lateness};
use std::{collections::BTreeMap, sync::Arc};

/// A host's results for a paper.
pub struct OnHost {
    /// Name of the host.
    pub name: String,
    /// Verdicts on the claims that the runs cover.
    pub verdicts: Vec<Verdict>,
    /// Software that made the runs, if it is not this program's: name and value.
    pub(super) made_with: BTreeMap<&'static str, String>,
    /// The reason why no verdict is expected of this software.
    pub(super) other_software: Option<String>,
    pub(super) plotted: Vec<PlottedFigure>,
    /// Number of failed runs, and the first one's reason.
    pub(super) failures: Option<String>,
    /// The worst lateness of a host in real time.
    pub(super) lateness: Option<String>,
    /// Deviations of a host in real time from the scenarios, once each.
    pub(super) approximations: Vec<String>,
}

/// A figure that was run and plotted: the remains of its runs.
pub(super) struct PlottedFigure {
    pub(super) figure: Figure,
    pub(super) charts: Vec<Chart>,
    pub(super) tables: Vec<Table>,
    /// Name and scenario of the first case.
    pub(super) listing: Option<(String, String)>,
}

/// The position of a host among those of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    /// It is the only one.
    None,
    /// It is the first of several.
    Follow,
    /// Others come before it, which have noted the runs that the claims use.
    Precede,
}

impl OnHost {
    /// Runs the selected part of `paper` on a host, judges its claims and plots its figures.
    pub(super) fn of(
        paper: &Paper,
        selection: &Selection<'_>,
        on: &RunsOn<'_>,
        others: Others,
        uses: &mut Uses,
    ) -> Result<Self, LabError> {
        let host = on.runner.host;
        let (name, figures) = (host.name(), &selection.figures);
        let is_judged = |c: &&Claim| c.skipped(name, &paper.figures).is_none();
        let judged: Vec<&Claim> = selection.claims.iter().filter(is_judged).collect();
        let only_used = others == Others::Precede && selection.wanted.claims.is_some();
        let plan = Plan { paper, selection, on, others, judged, only_used };
        let (cases, formulas, verdicts) = plan.run(uses)?;
        let made_with = host.made_with(on.runner.options).into_iter().collect();
        let other_software = paper.other_software(name, &made_with);
        let verdicts = match other_software {
            Some(_) => verdicts.into_iter().map(Verdict::unexpected).collect(),
            None => verdicts,
        };
        let plotted = cases[..figures.len()].iter().map(|cases| {
            // The short form may leave out all runs of a figure.
            let not_run = cases.figure.scenario.is_some() && cases.cases.is_empty();
            if only_used || not_run { Ok(unplotted(cases)) } else { plot(cases, &formulas) }
        });
        let plotted = plotted.collect::<Result<_, _>>();
        let plotted = plotted.map_err(|what| LabError::Other { what, help: None })?;
        // The records end here: those of all papers together would fill gigabytes.
        let records = || cases.iter().flat_map(|f| &f.cases).flat_map(Case::good);
        Ok(Self {
            name: name.to_owned(),
            verdicts,
            made_with,
            other_software,
            plotted,
            failures: failures(&cases),
            lateness: lateness(records()),
            approximations: approximations(records()),
        })
    }
}

/// The runs of a paper on a host.
struct Plan<'a> {
    paper: &'a Paper,
    selection: &'a Selection<'a>,
    on: &'a RunsOn<'a>,
    others: Others,
    /// The claims that the host judges.
    judged: Vec<&'a Claim>,
    /// Only the runs that claims use, as earlier hosts have noted them.
    only_used: bool,
}

/// The cases of figures and then of causes, the formulas over them, and verdicts.
type Judged = (Arc<Vec<Cases>>, Formulas, Vec<Verdict>);

impl Plan<'_> {
    /// Makes the runs and judges the claims, again with more runs if formulas use cases that were not run.
    fn run(&self, uses: &mut Uses) -> Result<Judged, LabError> {
        let name = self.on.runner.host.name();
        let mut made = Made::new();
        loop {
            let (prepared, of_causes, specs) = self.prepare(uses)?;
            let cases = runs::run_cases(&self.on.runner, prepared, &specs, &mut made)?;
            let formulas = Formulas::new(cases.clone());
            let mut all_run = true;
            let verdicts = self.judged.iter().map(|claim| {
                let of_cause = of_causes.get(claim.id.as_str()).copied();
                let verdict = Verdict::of(self.paper, claim, name, &formulas, of_cause);
                all_run &= uses.note(claim, &cases[..self.selection.figures.len()]);
                verdict
            });
            let verdicts: Vec<Verdict> = verdicts.collect();
            // The cases that a formula uses may depend on its results: then there is more to run.
            if all_run {
                return Ok((cases, formulas, verdicts));
            }
        }
    }

    /// The cases of figures and then of causes, without records; the index of each claim's cause; the runs.
    fn prepare(&self, uses: &Uses) -> Result<Prepared<'_>, LabError> {
        let Self { paper, selection, on, others, judged, .. } = self;
        let wanted = selection.wanted;
        let (short, all_values) = (wanted.short, wanted.all_values);
        let part = Part { host: on.runner.host, short, all_values };
        // With several hosts, the first one's verdicts use all its repetitions.
        let few = short && *others != Others::Follow;
        let needed = self.only_used.then(|| uses.of(judged));
        let (mut prepared, mut specs) = (Vec::new(), Vec::new());
        for figure in &selection.figures {
            let repeat = on.repeat.or_else(|| few.then(|| Part::runs(figure, judged)));
            let (cases, mut of_figure) =
                runs::prepare(&paper.id, &part.of(figure), repeat, needed.as_ref(), &wanted.sets)?;
            prepared.push(cases);
            specs.append(&mut of_figure);
        }
        let mut of_causes = BTreeMap::new();
        for (claim, figure) in judged.iter().filter_map(|c| part.changed(c, &paper.figures)) {
            let (cases, mut of_cause) =
                runs::prepare(&paper.id, &figure, on.repeat, None, &wanted.sets)?;
            of_causes.insert(claim, prepared.len());
            prepared.push(cases);
            specs.append(&mut of_cause);
        }
        Ok((prepared, of_causes, specs))
    }
}

/// The result of [`Plan::prepare`].
type Prepared<'a> = (Vec<Cases>, BTreeMap<&'a str, usize>, Vec<RunSpec>);

/// Number of failed runs, and the first one's reason.
fn failures(figures: &[Cases]) -> Option<String> {
    let runs = || figures.iter().flat_map(|f| &f.cases).flat_map(|c| &c.records);
    let why = runs().find_map(|r| r.as_ref().err())?;
    let failed = runs().filter(|r| r.is_err()).count();
    Some(format!("{failed} of {} runs failed; the first: {why}", runs().count()))
}

fn plot(cases: &Cases, formulas: &Formulas) -> Result<PlottedFigure, String> {
    let number = &cases.figure.number;
    let mut charts = Vec::new();
    for plot in &cases.figure.plots {
        let mut more = figure::charts(cases, charts.len(), plot, formulas)
            .map_err(|e| format!("figure {number}: {}: {e}", plot.title))?;
        charts.append(&mut more);
    }
    let tables = cases.figure.tables.iter().map(|wanted| {
        let table = figure::table(cases, wanted, formulas);
        table.map_err(|e| format!("figure {number}: {}: {e}", wanted.title))
    });
    let tables = tables.collect::<Result<_, _>>()?;
    Ok(PlottedFigure { charts, tables, ..unplotted(cases) })
}

fn unplotted(cases: &Cases) -> PlottedFigure {
    let listing = cases.cases.first().map(|case| {
        let name = format!("Scenario of the first case ({})", case.values.join(", "));
        (name, case.text.clone())
    });
    let figure = cases.figure.clone();
    PlottedFigure { figure, charts: Vec::new(), tables: Vec::new(), listing }
}
