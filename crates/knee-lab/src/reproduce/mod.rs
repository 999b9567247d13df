//! `knee reproduce`: a paper's figures, run and plotted, with a verdict for each of its claims.
//!
//! Papers are data below `scenarios/`: `paper.toml` says what is run and how it is plotted,
//! `claims.toml` what must come out, as formulas (see `docs/reference/paper-and-claims.md`).

mod claim;
mod error;
mod paper;
mod runs;
mod verdict;

pub use claim::{Cause, Claim, Found, Judge};
pub use error::ReproduceError;
pub use paper::{PAPERS, Paper, PaperError, load};
pub use runs::RunsOn;
pub use verdict::{Shown, Verdict};

use crate::figure::{self, Case, Cases, Figure, Formulas, Part, Unjudged, number};
use knee_report::{
    chart::Chart,
    report::{Report, Section},
    table::{Cell, Table, Tone},
};
use knee_results::{
    caveats::{approximations, lateness},
    store::{ResultWriter, StoreError},
};
use runs::{Made, Uses};
use serde::Serialize;
use std::{collections::BTreeMap, fmt::Write as _};

/// Selection of runs and claims.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Only the figure of this number.
    pub figure: Option<String>,
    /// Only these claims, all of them if none is named; and on hosts after the first only the runs that
    /// they use, without figures.
    pub claims: Option<Vec<String>>,
    /// Only the runs and claims of the short form.
    pub short: bool,
    /// Also the runs that the paper's files leave out on a host.
    pub all_values: bool,
}

/// A paper with its runs, verdicts and charts.
pub struct Reproduction {
    /// The paper.
    pub paper: Paper,
    /// Results of each host.
    pub hosts: Vec<OnHost>,
    /// Claims that are not judged on a host: claim, host, why.
    pub skipped: Vec<(String, String, String)>,
}

/// A host's results for a paper.
pub struct OnHost {
    /// Name of the host.
    pub name: String,
    /// Verdicts on the claims that the runs cover.
    pub verdicts: Vec<Verdict>,
    plotted: Vec<PlottedFigure>,
    /// Number of failed runs, and the first one's reason.
    failures: Option<String>,
    /// The worst lateness of a host in real time.
    lateness: Option<String>,
    /// Deviations of a host in real time from the scenarios, once each.
    approximations: Vec<String>,
}

/// A figure that was run and plotted: the remains of its runs.
struct PlottedFigure {
    figure: Figure,
    charts: Vec<Chart>,
    tables: Vec<Table>,
    /// Name and scenario of the first case.
    listing: Option<(String, String)>,
}

/// Reproduces `id` on each of `hosts`.
///
/// # Errors
/// See [`ReproduceError`].
pub fn reproduce(
    id: &str,
    wanted: &Wanted,
    hosts: &[RunsOn<'_>],
) -> Result<Reproduction, ReproduceError> {
    let (paper, claims) = paper::load(id)?;
    let all = paper.figures.clone();
    let mut figures = all.clone();
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
    let is_asked = |c: &Claim| {
        let of_figure = figures.iter().any(|f| f.number == c.figure);
        of_figure && (c.short.is_some() || !wanted.short)
    };
    let mut claims: Vec<Claim> = claims.into_iter().filter(is_asked).collect();
    if let Some(named) = &wanted.claims {
        if let Some(unknown) = named.iter().find(|id| !claims.iter().any(|c| c.id == **id)) {
            let known: Vec<&str> = claims.iter().map(|c| c.id.as_str()).collect();
            let form = if wanted.short { "the short form of " } else { "" };
            let figure = wanted.figure.as_ref().map(|n| format!("figure {n} of "));
            return Err(ReproduceError::NoClaim {
                of: format!("{form}{}{id}", figure.unwrap_or_default()),
                claim: unknown.clone(),
                known: known.join(", "),
            });
        }
        claims.retain(|c| named.is_empty() || named.contains(&c.id));
        figures.retain(|f| claims.iter().any(|c| c.concerns(f)));
    }
    let mut uses = Uses::default();
    let mut reproduction = Reproduction { paper, hosts: Vec::new(), skipped: Vec::new() };
    for (index, on) in hosts.iter().enumerate() {
        let host = on.runner.host;
        let name = host.name();
        let part = Part { host, short: wanted.short, all_values: wanted.all_values };
        let only_used = index > 0 && wanted.claims.is_some();
        let why_not = |c: &Claim| c.skipped(name, &all).map(Unjudged::to_string);
        let (judged, skipped): (Vec<&Claim>, Vec<&Claim>) =
            claims.iter().partition(|c| why_not(c).is_none());
        // With several hosts, the first one's verdicts use all its repetitions.
        let few = wanted.short && (index > 0 || hosts.len() == 1);
        let mut made = Made::new();
        let (cases, formulas, verdicts) = loop {
            let needed = only_used.then(|| uses.of(&judged));
            let mut prepared = Vec::new();
            let mut specs = Vec::new();
            for figure in &figures {
                let repeat = on.repeat.or_else(|| few.then(|| Part::runs(figure, &judged)));
                let (cases, mut of_figure) =
                    runs::prepare(id, &part.of(figure), repeat, needed.as_ref())?;
                prepared.push(cases);
                specs.append(&mut of_figure);
            }
            // The runs of causes, after those of the figures.
            let mut of_causes = BTreeMap::new();
            for (claim, figure) in judged.iter().filter_map(|c| part.changed(c, &all)) {
                let (cases, mut of_cause) = runs::prepare(id, &figure, on.repeat, None)?;
                of_causes.insert(claim, prepared.len());
                prepared.push(cases);
                specs.append(&mut of_cause);
            }
            let cases = runs::run_cases(&on.runner, prepared, &specs, &mut made)?;
            let formulas = Formulas::new(cases.clone());
            let mut all_run = true;
            let mut verdict = |c: &&Claim| {
                let of_cause = of_causes.get(c.id.as_str()).copied();
                let verdict = Verdict::of(&reproduction.paper, c, name, &formulas, of_cause);
                all_run &= uses.note(c, &cases[..figures.len()]);
                verdict
            };
            let verdicts: Vec<Verdict> = judged.iter().map(&mut verdict).collect();
            // The cases that a formula uses may depend on its results: then there is more to run.
            if all_run {
                break (cases, formulas, verdicts);
            }
        };
        let of_figures = cases[..figures.len()].iter();
        let plotted = of_figures
            .map(|cases| {
                // The short form may leave out all runs of a figure.
                let not_run = cases.figure.scenario.is_some() && cases.cases.is_empty();
                if only_used || not_run { Ok(unplotted(cases)) } else { plot(cases, &formulas) }
            })
            .collect::<Result<_, _>>()
            .map_err(ReproduceError::PlotKind)?;
        reproduction.skipped.extend(
            skipped.into_iter().filter_map(|c| Some((c.id.clone(), name.to_owned(), why_not(c)?))),
        );
        // The records end here: those of all papers together would fill gigabytes.
        let records = || cases.iter().flat_map(|f| &f.cases).flat_map(Case::good);
        reproduction.hosts.push(OnHost {
            name: name.to_owned(),
            verdicts,
            plotted,
            failures: failures(&cases),
            lateness: lateness(records()),
            approximations: approximations(records()),
        });
    }
    Ok(reproduction)
}

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

/// Verdicts of one or more papers as JSON.
#[derive(Serialize)]
pub struct Claims<'a> {
    /// Verdicts, in the papers' order.
    pub claims: Vec<&'a Verdict>,
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
    Claims { claims: reproductions.iter().flat_map(Reproduction::verdicts).collect() }
}

/// A cause and the result of its runs.
fn shown(cause: &Shown) -> String {
    let changes = match cause.changes.as_str() {
        "" => String::new(),
        changes => format!(" ({changes})"),
    };
    let verdict = match (cause.shown, &cause.trouble) {
        (Some(true), _) => "shown".to_owned(),
        (Some(false), None) => "not shown".to_owned(),
        (Some(false), Some(trouble)) => format!("not shown: {trouble}"),
        (None, trouble) => format!("not judged: {}", trouble.as_deref().unwrap_or("runs failed")),
    };
    format!(
        "Cause: {}{changes}: {} {}, accepted {}: {verdict}",
        cause.statement.trim(),
        cause.measured.words(),
        cause.unit,
        range(cause.accepted)
    )
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

impl Reproduction {
    /// All verdicts, host by host.
    pub fn verdicts(&self) -> impl Iterator<Item = &Verdict> {
        self.hosts.iter().flat_map(|h| &h.verdicts)
    }

    /// Hosts in words.
    fn host_names(&self) -> String {
        let names: Vec<&str> = self.hosts.iter().map(|h| h.name.as_str()).collect();
        match &names[..] {
            [one] => format!("host {one}"),
            several => format!("hosts {}", several.join(", ")),
        }
    }

    /// Verdicts that `wanted` picks as a table, the hosts' side by side; with the settings under which
    /// each was judged, if `settings` is set.
    fn verdict_table(
        &self,
        caption: &str,
        wanted: impl Fn(&Verdict) -> bool,
        settings: bool,
    ) -> Table {
        let several = self.hosts.len() > 1;
        let mut columns: Vec<String> =
            ["claim", "fig.", "statement", "paper", "accepted"].map(str::to_owned).to_vec();
        for host in &self.hosts {
            let of = if several { format!(" ({})", host.name) } else { String::new() };
            columns.extend([format!("measured{of}"), format!("verdict{of}")]);
        }
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        let mut table = Table::new(caption, &columns, &[]);
        let mut seen: Vec<&str> = Vec::new();
        for v in self.verdicts().filter(|v| wanted(v)) {
            if seen.contains(&v.id.as_str()) {
                continue;
            }
            seen.push(&v.id);
            let mut cells = vec![
                Cell::from(v.id.clone()),
                Cell::from(v.figure.clone()),
                Cell::from(match settings && !v.note.is_empty() {
                    true => format!("{} ({})", v.statement, v.note),
                    false => v.statement.clone(),
                }),
                Cell::from(v.paper_value.clone()),
                Cell::from(range(v.accepted)),
            ];
            for host in &self.hosts {
                let Some(v) = host.verdicts.iter().find(|other| other.id == v.id) else {
                    cells.extend([Cell::from("–".to_owned()), Cell::from("not judged".to_owned())]);
                    continue;
                };
                let tone = match (v.recorded_holds, v.holds) {
                    (Some(true), Some(true)) => Tone::Good,
                    _ if v.explained() => Tone::Good,
                    (Some(false), Some(false)) => Tone::Bad,
                    _ => Tone::Caution,
                };
                cells.extend([
                    Cell::from(format!("{} {}", v.measured.words(), v.unit)),
                    Cell::toned(v.word(), tone),
                ]);
            }
            table.row(cells);
        }
        table
    }

    /// Reasons why verdicts are not those of the paper; the host is named if there are several.
    fn reasons(&self, wanted: impl Fn(&Verdict) -> bool) -> Vec<String> {
        let several = self.hosts.len() > 1;
        let of =
            |v: &&Verdict| (v.holds != Some(true) || v.differs() || v.from_too_few()) && wanted(v);
        self.verdicts()
            .filter(of)
            .map(|v| {
                let host = if several { format!(" ({})", v.host) } else { String::new() };
                let reason = v.reason.as_deref().unwrap_or("no reason is recorded");
                let few = match v.from_too_few() {
                    true => format!(" ({} of {})", v.measured.n, v.repetitions_needed),
                    false => String::new(),
                };
                let cause = v.cause.as_ref().map(|c| format!("\n{}", shown(c))).unwrap_or_default();
                format!("{}{host} {}{few}: {}{cause}", v.id, v.word(), reason.trim())
            })
            .collect()
    }

    /// Verdicts as a table for a terminal `width` characters wide.
    pub fn to_text(&self, width: Option<u16>) -> String {
        let caption =
            format!("{} ({}), {}", self.paper.title, self.paper.citation, self.host_names());
        if self.verdicts().next().is_none() {
            return format!("{caption}\nno claims about these runs\n");
        }
        let mut text = self.verdict_table(&caption, |_| true, false).to_text(width);
        for reason in self.reasons(|_| true) {
            let _ = writeln!(text, "\n{reason}");
        }
        for (claim, host, why) in &self.skipped {
            let _ = writeln!(text, "\n{claim} is not judged on the {host}: {why}");
        }
        text.push('\n');
        for host in &self.hosts {
            let count = |of: fn(&Verdict) -> bool| host.verdicts.iter().filter(|v| of(v)).count();
            let of = if self.hosts.len() > 1 { format!("{}: ", host.name) } else { String::new() };
            let _ = write!(
                text,
                "{of}{} of {} claims hold; {}{} differ from the record",
                count(|v| v.holds == Some(true)),
                host.verdicts.len(),
                match count(Verdict::explained) {
                    0 => String::new(),
                    1 => "1 is explained by a cause that was run; ".to_owned(),
                    n => format!("{n} are explained by causes that were run; "),
                },
                count(Verdict::differs)
            );
            for (n, what) in [
                (count(Verdict::from_too_few), "need more repetitions for a verdict"),
                (count(Verdict::untold), "could not be judged"),
            ] {
                if n > 0 {
                    let _ = write!(text, "; {n} {what}");
                }
            }
            text.push('\n');
            if let Some(failures) = &host.failures {
                let _ = writeln!(text, "{of}{failures}");
            }
        }
        text
    }

    /// The sections of a report: a summary, then each figure with its claims.
    pub fn sections(&self) -> Vec<Section> {
        let several = self.hosts.len() > 1;
        let mut summary = Section {
            tables: vec![self.verdict_table("All claims", |_| true, false)],
            ..Section::new(format!("{}: claims", self.paper.id))
        };
        let skipped = self.skipped.iter();
        summary.paragraphs.extend(
            skipped.map(|(claim, host, why)| format!("{claim} is not judged on the {host}: {why}")),
        );
        for host in &self.hosts {
            if let Some(text) = &host.failures {
                summary.paragraphs.push(format!("On the {}, {text}.", host.name));
            }
            if let Some(text) = &host.lateness {
                summary.paragraphs.push(format!("Lateness on the {}: {text}.", host.name));
            }
            summary.paragraphs.extend(host.approximations.iter().cloned());
        }
        let mut sections = vec![summary];
        let Some(first) = self.hosts.first() else { return sections };
        for (index, PlottedFigure { figure, listing, .. }) in first.plotted.iter().enumerate() {
            let mut section =
                Section::new(format!("{} Fig. {}: {}", self.paper.id, figure.number, figure.title));
            for host in &self.hosts {
                let charts = host.plotted[index].charts.iter().cloned();
                section.charts.extend(charts.map(|mut chart| {
                    if several {
                        chart.id = format!("{}-{}", chart.id, host.name);
                        chart.title = format!("{} ({})", chart.title, host.name);
                    }
                    chart
                }));
            }
            let of_figure = |v: &Verdict| v.figure == figure.number;
            if self.verdicts().any(of_figure) {
                section.tables.push(self.verdict_table("Claims", of_figure, true));
            }
            section.paragraphs.extend(self.reasons(of_figure));
            for host in &self.hosts {
                let tables = host.plotted[index].tables.iter().cloned();
                section.tables.extend(tables.map(|mut table| {
                    if several {
                        table.caption = format!("{} ({})", table.caption, host.name);
                    }
                    table
                }));
            }
            section.listings.extend(listing.clone());
            sections.push(section);
        }
        sections
    }

    fn write_figures(&self, out: &ResultWriter) -> Result<(), StoreError> {
        for (index, host) in self.hosts.iter().enumerate() {
            let of = if index == 0 { String::new() } else { format!("-{}", host.name) };
            for chart in host.plotted.iter().flat_map(|p| &p.charts) {
                let name = format!("figures/{}-{}{of}.svg", self.paper.id, chart.id);
                out.bytes(&name, chart.svg())?;
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Spread;

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
        Reproduction { paper, hosts: vec![host], skipped: Vec::new() }
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
