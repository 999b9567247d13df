//! Results of an evaluation, for a terminal and as a report.

use super::{
    Evaluation,
    criterion::{Criterion, Measure},
    judge::{Asked, CriterionVerdict, MeasuredAt, PointVerdict, Word},
};
use crate::figure::{Spread, number};
use knee_model::{RunRecord, RunSpec};
use knee_report::{
    chart::{Axis, Chart, Point as Mark, Series, Style},
    report::{Report, Section},
    run_report::run_charts,
    table::{Cell, Table, Tone},
};
use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

impl Word {
    fn cell(self) -> Cell {
        let tone = match self {
            Self::Informs => return Cell::from(self.to_string()),
            Self::Passes => Tone::Good,
            Self::NoWorse | Self::NotJudged => Tone::Caution,
            Self::Fails => Tone::Bad,
        };
        Cell::toned(self.to_string(), tone)
    }
}

impl Asked {
    fn words(&self) -> String {
        let from_baseline =
            |x| format!("{} {} (from the baseline)", self.direction, number(Some(x)));
        match (self.bound, self.no_worse) {
            (Some(bound), None) => format!("{} {}", self.direction, number(Some(bound))),
            (Some(bound), Some(x)) => {
                format!("{} {}, or {}", self.direction, number(Some(bound)), from_baseline(x))
            }
            (None, Some(x)) => from_baseline(x),
            (None, None) => "–".to_owned(),
        }
    }
}

fn point_words(point: &BTreeMap<String, String>) -> String {
    let parts: Vec<String> = point.iter().map(|(axis, value)| format!("{axis} {value}")).collect();
    parts.join(", ")
}

/// Verdicts as a table; with `timed`, also the time of each criterion.
fn summary(evaluation: &Evaluation, timed: bool) -> Table {
    let mut table = Table::new(
        format!("{}: criteria of RFC 9743 and the worst points", evaluation.algorithm),
        &["criterion", "section", "verdict", "measure", "measured", "asked", "at"],
        if timed { &["took"] } else { &[] },
    );
    for c in &evaluation.criteria {
        let of = |get: &dyn Fn(&MeasuredAt) -> String| {
            Cell::from(c.measured.as_ref().map_or_else(|| "–".to_owned(), get))
        };
        let took = timed.then(|| Cell::from(format!("{:.1} s", c.took.as_secs_f64())));
        let cells = [
            Cell::from(c.id.clone()),
            Cell::from(c.section.clone()),
            c.verdict.cell(),
            of(&|m| m.measure.clone()),
            of(&|m| format!("{} {}", m.spread.words(), m.unit).trim_end().to_owned()),
            Cell::from(c.asked.as_ref().map_or_else(|| "–".to_owned(), Asked::words)),
            Cell::from(c.worst.as_ref().map_or_else(String::new, |w| point_words(&w.point))),
        ];
        table.row(cells.into_iter().chain(took));
    }
    table
}

fn counts(evaluation: &Evaluation) -> String {
    let of = |word| format!("{} {word}", evaluation.count(word));
    let mut text = [Word::Passes, Word::NoWorse, Word::Fails].map(of).join(", ");
    for word in [Word::Informs, Word::NotJudged] {
        if evaluation.count(word) > 0 {
            let _ = write!(text, ", {}", of(word));
        }
    }
    text
}

/// An evaluation for a terminal `width` characters wide.
pub fn evaluation_text(evaluation: &Evaluation, width: Option<u16>) -> String {
    let mut text = summary(evaluation, true).to_text(width);
    let _ = writeln!(text, "\n{} (against {})", counts(evaluation), evaluation.against.join(", "));
    let took: Duration = evaluation.criteria.iter().map(|c| c.took).sum();
    let _ =
        writeln!(text, "one core took {:.0} s for it, the baselines included", took.as_secs_f64());
    let failed: Vec<&CriterionVerdict> =
        evaluation.criteria.iter().filter(|c| c.verdict == Word::Fails).collect();
    if !failed.is_empty() {
        text.push_str("\nThe worst runs of the failing criteria:\n");
        for c in failed {
            if let Some(worst) = &c.worst {
                let _ = writeln!(text, "  {}\n    {}", c.id, worst.command);
            }
        }
    }
    text
}

/// An evaluation as a report. `worst` are the worst runs of criteria, by their names.
pub fn evaluation_report(
    evaluation: &Evaluation,
    criteria: &[Criterion],
    worst: &[(String, RunSpec, RunRecord)],
) -> Report {
    let mut first = Section::new("Summary");
    first.paragraphs.push(format!(
        "{}. Medians over {} repetitions, with the 20th and 80th percentile; the table shows each criterion \
         where the algorithm does worst. A criterion passes if its absolute bound is met. It is no worse \
         than the baseline if no baseline algorithm does better by more than the criterion allows. RFC 9743 sets no thresholds: every bound names its source.",
        counts(evaluation),
        evaluation.repetitions
    ));
    first.tables.push(summary(evaluation, false));
    let mut sections = vec![first];
    for verdict in &evaluation.criteria {
        if let Some(criterion) = criteria.iter().find(|c| c.id == verdict.id) {
            sections.push(section(evaluation, verdict, criterion, worst));
        }
    }
    Report {
        title: format!("Evaluation of {}", evaluation.algorithm),
        subtitle: format!(
            "What RFC 9743 asks of a congestion control, on the host {}, against {}",
            evaluation.host,
            evaluation.against.join(", ")
        ),
        meta: Vec::new(),
        sections,
    }
}

fn section(
    evaluation: &Evaluation,
    verdict: &CriterionVerdict,
    criterion: &Criterion,
    worst: &[(String, RunSpec, RunRecord)],
) -> Section {
    let mut section =
        Section::new(format!("{}: {} ({})", verdict.section, verdict.title, verdict.verdict));
    section.paragraphs.push(criterion.why.clone());
    for measure in &criterion.measures {
        let points: Vec<&PointVerdict> =
            verdict.points.iter().filter(|p| p.measured.measure == measure.name).collect();
        section.tables.push(points_table(evaluation, measure, &points));
        if points.len() > 1 {
            section.charts.push(points_chart(evaluation, criterion, measure, &points));
        }
    }
    if let Some(at) = &verdict.worst {
        section.listings.push(("The worst run".to_owned(), at.command.clone()));
    }
    if let Some((_, spec, record)) = worst.iter().find(|(id, ..)| *id == verdict.id) {
        for mut chart in run_charts(spec, record) {
            chart.id = format!("{}-worst-{}", verdict.id, chart.id);
            chart.title = format!("{} in the worst run", chart.title);
            section.charts.push(chart);
        }
    }
    section
}

fn points_table(evaluation: &Evaluation, measure: &Measure, points: &[&PointVerdict]) -> Table {
    let mut columns = vec!["at", "verdict", evaluation.algorithm.as_str()];
    columns.extend(evaluation.against.iter().map(String::as_str));
    columns.push("asked");
    let caption = match &measure.source {
        Some(source) => format!("{}. The bound's source: {source}.", measure.label()),
        None => measure.label(),
    };
    let mut table = Table::new(caption, &columns, &[]);
    for p in points {
        let mut cells = vec![
            Cell::from(point_words(&p.point)),
            p.verdict.cell(),
            Cell::from(p.measured.spread.words()),
        ];
        cells.extend(evaluation.against.iter().map(|name| {
            Cell::from(p.measured.baselines.get(name).map_or_else(String::new, Spread::words))
        }));
        cells.push(Cell::from(p.asked.words()));
        table.row(cells);
    }
    table
}

/// A measure over all points of a criterion, in the order of its axes' values.
fn points_chart(
    evaluation: &Evaluation,
    criterion: &Criterion,
    measure: &Measure,
    points: &[&PointVerdict],
) -> Chart {
    let marks = |of: &dyn Fn(&PointVerdict) -> Option<Spread>| {
        let all = points.iter().enumerate().filter_map(|(i, p)| {
            let s = of(p)?;
            Some(Mark { x: (i + 1) as f64, y: s.p50?, low: s.p20, high: s.p80 })
        });
        all.collect::<Vec<_>>()
    };
    let series = |name: &str, hue, points| Series {
        name: name.to_owned(),
        style: Style::LineMarks,
        hue: Some(hue),
        points,
    };
    let mut all = vec![series(&evaluation.algorithm, 0, marks(&|p| Some(p.measured.spread)))];
    for (i, name) in evaluation.against.iter().enumerate() {
        all.push(series(name, i + 1, marks(&|p| p.measured.baselines.get(name).copied())));
    }
    let bounds: Vec<(f64, f64)> = points
        .iter()
        .enumerate()
        .filter_map(|(i, p)| Some(((i + 1) as f64, p.asked.bound?)))
        .collect();
    if !bounds.is_empty() {
        all.push(Series::new("bound", Style::Dashed, bounds));
    }
    let names: Vec<String> = points
        .iter()
        .enumerate()
        .map(|(i, p)| format!("{}: {}", i + 1, point_words(&p.point)))
        .collect();
    let index = criterion.measures.iter().position(|m| m.name == measure.name).unwrap_or(0);
    Chart {
        id: format!("{}-{index}", criterion.id),
        title: measure.label(),
        caption: names.join("; "),
        x: Axis::new("number of the point"),
        y: Axis::new(measure.label()),
        series: all,
        ..Chart::default()
    }
}

/// Several evaluations for a terminal: how many criteria have each verdict, and which fail.
pub fn scorecard_text(evaluations: &[Evaluation], width: Option<u16>) -> String {
    let mut table = Table::new(
        "What RFC 9743 asks, by algorithm",
        &["algorithm"],
        &["passes", "no worse", "fails", "informs", "not judged"],
    );
    for e in evaluations {
        let words = [Word::Passes, Word::NoWorse, Word::Fails, Word::Informs, Word::NotJudged];
        let cells = words.map(|word| Cell::from(e.count(word).to_string()));
        table.row([Cell::from(e.algorithm.clone())].into_iter().chain(cells));
    }
    table.to_text(width)
}

/// Several evaluations as a report: criteria as rows, algorithms as columns.
pub fn scorecard_report(evaluations: &[Evaluation]) -> Report {
    let names: Vec<&str> = evaluations.iter().map(|e| e.algorithm.as_str()).collect();
    let mut table = Table::new(
        "✓ passes; ≈ no worse than the baseline; ✗ fails; · informs; ? not judged",
        &[&["criterion", "section"], &names[..]].concat(),
        &[],
    );
    for (i, c) in evaluations.first().map_or(&[][..], |e| &e.criteria).iter().enumerate() {
        let mut row = vec![Cell::from(c.id.clone()), Cell::from(c.section.clone())];
        row.extend(evaluations.iter().map(|e| match e.criteria[i].verdict {
            Word::Passes => Cell::toned("✓", Tone::Good),
            Word::NoWorse => Cell::toned("≈", Tone::Caution),
            Word::Fails => Cell::toned("✗", Tone::Bad),
            Word::Informs => Cell::from("·"),
            Word::NotJudged => Cell::toned("?", Tone::Caution),
        }));
        table.row(row);
    }
    let mut first = Section::new("Scorecard");
    first.tables.push(table);
    let mut sections = vec![first];
    sections.extend(evaluations.iter().map(|e| {
        let mut section = Section::new(e.algorithm.clone());
        section.paragraphs.push(format!("{}; against {}.", counts(e), e.against.join(", ")));
        section.tables.push(summary(e, false));
        section
    }));
    Report {
        title: "Scorecard".to_owned(),
        subtitle: "What RFC 9743 asks of a congestion control, by algorithm".to_owned(),
        meta: Vec::new(),
        sections,
    }
}
