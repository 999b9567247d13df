//! Verdicts as text for a terminal, and a reproduction as a report.

use super::{Reproduction, Shown, Verdict, claims, on_host::PlottedFigure};
use crate::figure::number;
use knee_report::{
    report::{Report, Section},
    table::{Cell, Table, Tone},
};
use knee_results::{ResultsError, store::ResultWriter};
use std::fmt::Write as _;

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
        for sentence in &self.skipped {
            let _ = writeln!(text, "\n{sentence}");
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
            if let Some(other) = &host.other_software {
                let _ = writeln!(text, "{of}no verdict is expected: {other}");
            }
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
        summary.paragraphs.extend(self.skipped.iter().cloned());
        for host in &self.hosts {
            if !host.made_with.is_empty() {
                let facts: Vec<String> =
                    host.made_with.iter().map(|(name, value)| format!("{name} {value}")).collect();
                summary.paragraphs.push(format!(
                    "Made on the host {} with {}.",
                    host.name,
                    facts.join(", ")
                ));
            }
            if let Some(other) = &host.other_software {
                summary
                    .paragraphs
                    .push(format!("No verdict is expected on the host {}: {other}.", host.name));
            }
            if let Some(text) = &host.failures {
                summary.paragraphs.push(format!("On the host {}, {text}.", host.name));
            }
            if let Some(text) = &host.lateness {
                summary.paragraphs.push(format!("Lateness on the host {}: {text}.", host.name));
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

    fn write_figures(&self, out: &ResultWriter) -> Result<(), ResultsError> {
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
) -> Result<(), ResultsError> {
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
