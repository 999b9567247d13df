//! A matrix: every algorithm against every other.

use super::{
    Cell, Common, DEFINITIONS, Outcome, PathSummary, Solo, number, shown, shown_convergence,
    write_runs,
};
use knee_report::{
    drawing::{Colours, HeatCell, HeatMap, Plane, PlanePoint},
    report::{Report, Section},
    table::Table,
};
use knee_results::{
    ResultsError,
    metrics::Percentiles,
    parquet::{
        Column,
        Get::{F64, MaybeF64, Text, U32, U64},
        write_if_any,
    },
    store::ResultWriter,
};
use serde::Serialize;

/// Algorithms whose shares a terminal can show as a square.
const SQUARE_MAX: usize = 12;

/// All of `matrix.json`. What every run gave is in `runs.parquet`.
#[derive(Clone, Debug, Serialize)]
pub struct MatrixSummary {
    /// Settings of the runs.
    #[serde(flatten)]
    pub common: Common,
    /// The paths.
    pub paths: Vec<PathSummary>,
    /// The algorithms, the most aggressive first.
    pub algorithms: Vec<Ranked>,
    /// Results of each entrant against each, in this order, path by path.
    pub cells: Vec<CellRow>,
    /// Each alone, in this order, path by path, every repetition.
    pub solos: Vec<SoloRow>,
}

/// An algorithm in the order of aggressiveness.
#[derive(Clone, Debug, Serialize)]
pub struct Ranked {
    /// Its name, and the parameters that were given.
    pub algorithm: String,
    /// Mean over all paths and all others of its median share; `None` if it met no other.
    pub mean_share: Option<f64>,
}

/// One algorithm against another on a path.
#[derive(Clone, Debug, Serialize)]
pub struct CellRow {
    /// Path, as `--path` takes it.
    pub path: String,
    /// The algorithm: `a` of the measures.
    pub algorithm: String,
    /// The other algorithm: `b` of the measures.
    pub beside: String,
    /// Measured values.
    #[serde(flatten)]
    pub cell: Cell,
}

/// One algorithm alone on a path.
#[derive(Clone, Debug, Serialize)]
pub struct SoloRow {
    /// Path, as `--path` takes it.
    pub path: String,
    /// The algorithm.
    pub algorithm: String,
    /// Repetition, from 1.
    pub repetition: u32,
    /// Its seed.
    pub seed: u64,
    /// Measured values.
    #[serde(flatten)]
    pub solo: Solo,
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0u32), |(sum, n), v| (sum + v, n + 1));
    (n > 0).then(|| sum / f64::from(n))
}

impl MatrixSummary {
    /// The matrix of all entrants on all paths.
    pub fn new(common: Common, outcome: &Outcome) -> Self {
        let contest = &outcome.contest;
        let n = contest.entrants.len();
        let name = |entrant: usize| contest.entrants[entrant].name.clone();
        let cells: Vec<Vec<Cell>> = (0..contest.paths.len())
            .map(|path| (0..n * n).map(|i| outcome.cell(path, i / n, i % n)).collect())
            .collect();
        let share = |a: usize| {
            let others = move |of_path: &Vec<Cell>| {
                let beside = (0..n).filter(move |b| *b != a);
                beside.filter_map(|b| Some(of_path[a * n + b].share_a?.p50)).collect::<Vec<_>>()
            };
            mean(cells.iter().flat_map(others))
        };
        let mut order: Vec<(usize, Option<f64>)> = (0..n).map(|a| (a, share(a))).collect();
        // Stable: equals stay in the order in which they were named.
        order.sort_by(|(_, a), (_, b)| b.unwrap_or(-1.0).total_cmp(&a.unwrap_or(-1.0)));
        let paths = || contest.paths.iter().map(ToString::to_string).enumerate();
        let order = &order;
        let pairs =
            move || order.iter().flat_map(move |(a, _)| order.iter().map(move |(b, _)| (*a, *b)));
        let rows = paths().flat_map(|(at, path)| {
            let of_path = &cells[at];
            pairs().map(move |(a, b)| CellRow {
                path: path.clone(),
                algorithm: name(a),
                beside: name(b),
                cell: of_path[a * n + b].clone(),
            })
        });
        let solos = paths().flat_map(|(at, path)| {
            order.iter().flat_map(move |(a, _)| {
                let path = path.clone();
                outcome.solos(at, *a).map(move |(repetition, solo)| SoloRow {
                    path: path.clone(),
                    algorithm: name(*a),
                    repetition: repetition + 1,
                    seed: contest.plan.seed_of(repetition),
                    solo: *solo,
                })
            })
        });
        Self {
            common,
            paths: contest.paths.iter().map(PathSummary::new).collect(),
            algorithms: order
                .iter()
                .map(|(a, mean_share)| Ranked { algorithm: name(*a), mean_share: *mean_share })
                .collect(),
            cells: rows.collect(),
            solos: solos.collect(),
        }
    }

    /// Cells of path number `path`, row by row.
    fn square(&self, path: usize) -> std::slice::Chunks<'_, CellRow> {
        let n = self.algorithms.len();
        self.cells[path * n * n..(path + 1) * n * n].chunks(n)
    }

    fn names(&self) -> Vec<String> {
        self.algorithms.iter().map(|a| a.algorithm.clone()).collect()
    }
}

/// Means of the medians over the others of a row (done by an algorithm) and of a column (done to it),
/// and the values of the algorithm against itself.
fn ranking(matrix: &MatrixSummary, path: usize) -> Table {
    let caption = format!(
        "{}: mean over all others of the median; against its own kind: the median",
        matrix.paths[path].path
    );
    let mut table = Table::new(
        caption,
        &["algorithm"],
        &[
            "share (%)",
            "harm to others, goodput (%)",
            "delay (%)",
            "harm from others, goodput (%)",
            "delay (%)",
            "own kind: queueing (ms)",
            "loss (%)",
            "Jain",
            "convergence (s)",
        ],
    );
    let square: Vec<&[CellRow]> = matrix.square(path).collect();
    let n = square.len();
    let percent = |value: Option<f64>| shown_one(value.map(|v| v * 100.0), 1);
    for (a, row) in square.iter().enumerate() {
        let others = || (0..n).filter(move |b| *b != a);
        let done = |get: fn(&Cell) -> Option<Percentiles>| {
            percent(mean(others().filter_map(|b| Some(get(&row[b].cell)?.p50))))
        };
        let suffered = |get: fn(&Cell) -> Option<Percentiles>| {
            percent(mean(others().filter_map(|b| Some(get(&square[b][a].cell)?.p50))))
        };
        let own = &row[a].cell;
        table.row([
            row[a].algorithm.clone(),
            done(|c| c.share_a),
            done(|c| c.harm_goodput),
            done(|c| c.harm_delay),
            suffered(|c| c.harm_goodput),
            suffered(|c| c.harm_delay),
            shown_one(p50(own.queueing_mean_ms, 1.0), 1),
            shown_one(p50(own.loss_both, 100.0), 2),
            shown_one(p50(own.jain, 1.0), 2),
            own.usual_convergence_s().map_or("never".to_owned(), |s| format!("{s:.1}")),
        ]);
    }
    table
}

fn shown_one(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |v| number(v, digits))
}

/// A heat map's measure.
struct Shown {
    id: &'static str,
    title: &'static str,
    caption: &'static str,
    /// Median of a cell, in the unit shown.
    value: fn(&Cell) -> Option<f64>,
    digits: usize,
    detail: fn(&Cell) -> String,
    /// Colours, from the largest distance from 0 of all values.
    colours: fn(f64) -> Colours,
}

fn p50(p: Option<Percentiles>, scale: f64) -> Option<f64> {
    p.map(|p| p.p50 * scale)
}

/// The scale from 0 to a round number that is at least `largest`.
fn rising(largest: f64) -> Colours {
    let power = 10f64.powf(largest.max(1e-3).log10().floor());
    let round = [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * power);
    Colours::Rising { from: 0.0, to: round.into_iter().find(|r| *r >= largest).unwrap_or(largest) }
}

static MEASURES: [Shown; 8] = [
    Shown {
        id: "share",
        title: "Share of the goodput (%)",
        caption: "The row's share of the goodput of both; orange: more than half.",
        value: |c| p50(c.share_a, 100.0),
        digits: 0,
        detail: |c| shown(c.share_a, 100.0, 1),
        colours: |_| Colours::Around { middle: 50.0, reach: 50.0 },
    },
    Shown {
        id: "harm-goodput",
        title: "Harm to goodput (%)",
        caption: "The fraction of its goodput that the column's algorithm loses to the row's, compared with a flow of its \
                  own kind; orange: it loses, blue: it gains.",
        value: |c| p50(c.harm_goodput, 100.0),
        digits: 0,
        detail: |c| shown(c.harm_goodput, 100.0, 1),
        colours: |_| Colours::Around { middle: 0.0, reach: 100.0 },
    },
    Shown {
        id: "harm-delay",
        title: "Harm to delay (%)",
        caption: "The part of the column's round-trip time that is due to the row's algorithm rather \
                  than a flow of its own kind; orange: it is longer, blue: it is shorter.",
        value: |c| p50(c.harm_delay, 100.0),
        digits: 0,
        detail: |c| shown(c.harm_delay, 100.0, 1),
        colours: |largest| Colours::Around {
            middle: 0.0,
            reach: (largest / 10.0).ceil().max(1.0) * 10.0,
        },
    },
    Shown {
        id: "queueing-mean",
        title: "Mean queueing delay (ms)",
        caption: "",
        value: |c| p50(c.queueing_mean_ms, 1.0),
        digits: 1,
        detail: |c| shown(c.queueing_mean_ms, 1.0, 2),
        colours: rising,
    },
    Shown {
        id: "queueing-p95",
        title: "95th percentile of the queueing delay (ms)",
        caption: "",
        value: |c| p50(c.queueing_p95_ms, 1.0),
        digits: 1,
        detail: |c| shown(c.queueing_p95_ms, 1.0, 2),
        colours: rising,
    },
    Shown {
        id: "loss",
        title: "Packets lost, of both (%)",
        caption: "",
        value: |c| p50(c.loss_both, 100.0),
        digits: 2,
        detail: |c| shown(c.loss_both, 100.0, 3),
        colours: rising,
    },
    Shown {
        id: "jain",
        title: "Jain's index",
        caption: "1: both have the same goodput; 0.5: one has everything.",
        value: |c| p50(c.jain, 1.0),
        digits: 2,
        detail: |c| shown(c.jain, 1.0, 3),
        colours: |_| Colours::Rising { from: 0.5, to: 1.0 },
    },
    Shown {
        id: "convergence",
        title: "Convergence time (s)",
        caption: "The median of those runs that converged where most did; never: half of the runs or \
                  more did not.",
        value: Cell::usual_convergence_s,
        digits: 1,
        detail: shown_convergence,
        colours: rising,
    },
];

fn heat_map(matrix: &MatrixSummary, path: usize, measure: &Shown) -> HeatMap {
    let values = || matrix.square(path).flatten().filter_map(|row| (measure.value)(&row.cell));
    let largest = values().map(f64::abs).fold(0.0, f64::max);
    let cell = |row: &CellRow| {
        let value = (measure.value)(&row.cell);
        let text = match value {
            None if measure.id == "convergence" && row.cell.runs > 0 => "never".to_owned(),
            // Three characters or four fit into a cell.
            Some(v) if v.abs() >= 100.0 => number(v, 0),
            _ => shown_one(value, measure.digits),
        };
        HeatCell { value, text, detail: (measure.detail)(&row.cell) }
    };
    HeatMap {
        id: format!("{}-{}", measure.id, path + 1),
        title: measure.title.to_owned(),
        caption: measure.caption.to_owned(),
        row_head: "algorithm".to_owned(),
        column_head: "beside".to_owned(),
        rows: matrix.names(),
        columns: matrix.names(),
        colours: (measure.colours)(largest),
        cells: matrix.square(path).map(|row| row.iter().map(cell).collect()).collect(),
    }
}

fn plane(matrix: &MatrixSummary, path: usize) -> Plane {
    let of = &matrix.paths[path];
    let point = |ranked: &Ranked| {
        let own = |s: &&SoloRow| s.path == of.path && s.algorithm == ranked.algorithm;
        let runs = matrix.solos.iter().filter(own);
        let run = |s: &SoloRow| Some((s.solo.one_way_p95_ms?, s.solo.throughput_bps / 1e6));
        PlanePoint { name: ranked.algorithm.clone(), runs: runs.filter_map(run).collect() }
    };
    Plane {
        id: format!("plane-{}", path + 1),
        title: "One flow alone: throughput and delay".to_owned(),
        caption: "As Pantheon draws it: mean over the repetitions with an ellipse of one standard \
                  deviation; further up and to the right is better. Throughput counts whole packets \
                  that left the bottleneck, delay is from the sender to the receiver."
            .to_owned(),
        capacity_mbps: of.rate_bps as f64 / 1e6,
        points: matrix.algorithms.iter().map(point).collect(),
    }
}

const ORDER: &str = "Algorithms are in the order of aggressiveness: by the mean, over all paths and \
                     all others, of the median share that they take; the largest share first.";

/// The report: a table, heat maps and Pantheon's plot for each path. `example` is the scenario of a
/// pair.
pub fn matrix_report(matrix: &MatrixSummary, outcome: &Outcome, example: &str) -> Report {
    let common = &matrix.common;
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let mut sections: Vec<Section> = (0..matrix.paths.len())
        .map(|path| {
            let maps = MEASURES.iter().map(|measure| heat_map(matrix, path, measure).drawing());
            Section {
                tables: vec![ranking(matrix, path)],
                drawings: maps.chain([plane(matrix, path).drawing()]).collect(),
                ..Section::new(matrix.paths[path].path.clone())
            }
        })
        .collect();
    let words = [ORDER.to_owned(), outcome.contest.plan.words()];
    sections.push(Section {
        paragraphs: words.into_iter().chain(DEFINITIONS.map(str::to_owned)).collect(),
        listings: vec![("The scenario of one pair, for knee run".to_owned(), example.to_owned())],
        ..Section::new("How it was measured")
    });
    Report {
        title: format!("{} algorithms against each other", matrix.algorithms.len()),
        subtitle: ORDER.to_owned(),
        meta: vec![
            fact("Paths", matrix.paths.len().to_string()),
            fact("Duration of a run", format!("{} s", common.duration_s)),
            fact("Repetitions", common.repetitions.to_string()),
            fact("Seed", common.seed.to_string()),
        ],
        sections,
    }
}

/// The table of each path, and the shares if there is room for them.
pub fn matrix_text(matrix: &MatrixSummary, width: Option<u16>) -> String {
    let mut text = format!("{ORDER}\n");
    for path in 0..matrix.paths.len() {
        text += &format!("\n{}", ranking(matrix, path).to_text(width));
        if matrix.algorithms.len() > SQUARE_MAX {
            continue;
        }
        let names = matrix.names();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut shares = Table::new("Share of the row against the column (%)", &["share"], &names);
        for row in matrix.square(path) {
            let cells = row.iter().map(|c| shown_one(p50(c.cell.share_a, 100.0), 0));
            shares.row([row[0].algorithm.clone()].into_iter().chain(cells));
        }
        text += &format!("\n{}", shares.to_text(width));
    }
    text
}

macro_rules! cell_columns {
    ($($field:ident),+) => {
        vec![
            Column("path", Text(|r| &r.path)),
            Column("algorithm", Text(|r| &r.algorithm)),
            Column("beside", Text(|r| &r.beside)),
            Column("runs", U64(|r| r.cell.runs as u64)),
            Column("converged_runs", U64(|r| r.cell.converged_runs as u64)),
            $(
                Column(concat!(stringify!($field), "_p20"), MaybeF64(|r| Some(r.cell.$field?.p20))),
                Column(concat!(stringify!($field), "_p50"), MaybeF64(|r| Some(r.cell.$field?.p50))),
                Column(concat!(stringify!($field), "_p80"), MaybeF64(|r| Some(r.cell.$field?.p80))),
            )+
        ]
    };
}

fn cell_columns() -> Vec<Column<CellRow>> {
    cell_columns!(
        goodput_a_bps,
        goodput_b_bps,
        share_a,
        harm_goodput,
        harm_delay,
        queueing_mean_ms,
        queueing_p95_ms,
        loss_a,
        loss_b,
        loss_both,
        jain,
        convergence_s,
        utilisation
    )
}

fn solo_columns() -> Vec<Column<SoloRow>> {
    vec![
        Column("path", Text(|r| &r.path)),
        Column("algorithm", Text(|r| &r.algorithm)),
        Column("repetition", U32(|r| r.repetition)),
        Column("seed", U64(|r| r.seed)),
        Column("throughput_bps", F64(|r| r.solo.throughput_bps)),
        Column("one_way_p95_ms", MaybeF64(|r| r.solo.one_way_p95_ms)),
        Column("loss", MaybeF64(|r| r.solo.loss)),
    ]
}

/// Names of the columns of the tables, percentiles aside.
#[cfg(test)]
pub(super) fn column_names() -> impl Iterator<Item = &'static str> {
    let base = |name: &'static str| {
        ["_p20", "_p50", "_p80"].iter().find_map(|p| name.strip_suffix(p)).unwrap_or(name)
    };
    let cells = cell_columns().into_iter().map(|c| c.0);
    cells.chain(solo_columns().into_iter().map(|c| c.0)).map(base)
}

/// Writes `matrix.json`, `cells.parquet`, `runs.parquet`, `solos.parquet`, `report` and its figures.
///
/// # Errors
/// A file cannot be written.
pub fn write_matrix(
    results: &ResultWriter,
    matrix: &MatrixSummary,
    outcome: &Outcome,
    report: &Report,
) -> Result<(), ResultsError> {
    results.json("matrix.json", matrix)?;
    results.algorithms(outcome.contest.algorithms())?;
    write_if_any(results, "cells.parquet", &cell_columns(), matrix.cells.iter().cloned())?;
    write_runs(results, outcome)?;
    write_if_any(results, "solos.parquet", &solo_columns(), matrix.solos.iter().cloned())?;
    for drawing in report.sections.iter().flat_map(|s| &s.drawings) {
        results.bytes(&format!("figures/{}.svg", drawing.id), &drawing.svg)?;
    }
    results.bytes("report.html", report.html())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::duel::{Run, contest::tests};

    fn outcome() -> Outcome {
        let solo = |first, throughput_bps, one_way_ms| {
            let run = Run { path: 0, first, second: None, repetition: 0 };
            let one_way_p95_ms = Some(one_way_ms);
            (run, Solo { throughput_bps, one_way_p95_ms, loss: Some(0.0) })
        };
        let solos = [solo(0, 90e6, 25.0), solo(1, 95e6, 55.0)];
        Outcome { solos: solos.into(), ..tests::outcome() }
    }

    fn matrix() -> MatrixSummary {
        let outcome = outcome();
        MatrixSummary::new(Common::new(&outcome.contest.plan, "sim", None), &outcome)
    }

    #[test]
    fn the_most_aggressive_come_first() {
        let m = matrix();
        assert_eq!(m.names(), ["newreno", "chd"]);
        // Half-way between 3/4 and 8/9.
        assert!((m.algorithms[0].mean_share.unwrap() - (0.75 + 8.0 / 9.0) / 2.0).abs() < 1e-12);
        let order: Vec<_> = m.cells.iter().map(|c| (&*c.algorithm, &*c.beside)).collect();
        let pairs =
            [("newreno", "newreno"), ("newreno", "chd"), ("chd", "newreno"), ("chd", "chd")];
        assert_eq!(order, pairs);
        let shares: Vec<f64> = m.cells.iter().map(|c| c.cell.share_a.unwrap().p50).collect();
        assert!((shares[1] + shares[2] - 1.0).abs() < 1e-12 && shares[0] == 0.5, "{shares:?}");
    }

    #[test]
    fn maps_have_every_pair_and_every_measure() {
        let m = matrix();
        let outcome = outcome();
        let report = matrix_report(&m, &outcome, "duration = \"60s\"");
        let drawings = &report.sections[0].drawings;
        assert_eq!(drawings.len(), MEASURES.len() + 1);
        let mut ids: Vec<&str> = drawings.iter().map(|d| d.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), drawings.len());
        let harm = heat_map(&m, 0, &MEASURES[1]);
        let texts: Vec<&str> = harm.cells.iter().flatten().map(|c| c.text.as_str()).collect();
        // Harm of the row to the column: 67 % of CHD's goodput; NewReno gains 75 %.
        assert_eq!(texts, ["0", "67", "−75", "0"]);
        let convergence = heat_map(&m, 0, &MEASURES[7]);
        assert_eq!(convergence.cells[1][1].text, "never");
        assert_eq!(convergence.cells[1][1].value, None);
        let html = report.html();
        for word in ["Jain's index", "smaller to the right", "order of aggressiveness"] {
            assert!(html.contains(word), "{word}");
        }
        assert!(drawings.iter().all(|d| !d.svg.contains("NaN")));
    }

    #[test]
    fn the_table_shows_harm_done_and_suffered() {
        let text = matrix_text(&matrix(), None);
        let row = |name: &str| -> Vec<String> {
            let line = text.lines().find(|l| l.trim_start().starts_with(name)).unwrap();
            line.split_whitespace().skip(1).map(str::to_owned).collect()
        };
        let chd = row("chd");
        // Share, harm done, harm suffered; then the values against itself.
        assert_eq!(chd[..5], ["18.1", "−75.0", "−6.9", "66.7", "19.8"]);
        assert_eq!(chd[5..], ["5.0", "2.00", "1.00", "never"]);
        assert!(text.contains("Share of the row against the column"));
    }

    #[test]
    fn colours_end_at_round_numbers() {
        let end = |largest| rising(largest);
        assert_eq!(end(0.0), Colours::Rising { from: 0.0, to: 0.001 });
        assert_eq!(end(3.1), Colours::Rising { from: 0.0, to: 5.0 });
        assert_eq!(end(10.0), Colours::Rising { from: 0.0, to: 10.0 });
        assert_eq!(end(70.0), Colours::Rising { from: 0.0, to: 100.0 });
    }

    #[test]
    fn tables_are_written() {
        let place = tempfile::tempdir().unwrap();
        let results = ResultWriter::create(&place.path().join("out")).unwrap();
        let (m, outcome) = (matrix(), outcome());
        write_matrix(&results, &m, &outcome, &matrix_report(&m, &outcome, "")).unwrap();
        let out = results.finish().unwrap();
        let rows = |name: &str| {
            let file = std::fs::File::open(out.join(name)).unwrap();
            let reader = ::parquet::file::reader::SerializedFileReader::new(file).unwrap();
            let rows = ::parquet::file::reader::FileReader::get_row_iter(&reader, None).unwrap();
            rows.map(|row| row.unwrap().into_columns()).collect::<Vec<_>>()
        };
        let cells = rows("cells.parquet");
        assert_eq!(
            (cells.len(), rows("runs.parquet").len(), rows("solos.parquet").len()),
            (4, 4, 2)
        );
        let value = |row: usize, name: &str| {
            cells[row].iter().find(|(column, _)| column == name).unwrap().1.to_string()
        };
        assert_eq!(
            (value(1, "algorithm"), value(1, "beside")),
            ("\"newreno\"".into(), "\"chd\"".into())
        );
        assert!(
            value(1, "harm_goodput_p50").starts_with("0.6666"),
            "{}",
            value(1, "harm_goodput_p50")
        );
        assert_eq!(value(3, "convergence_s_p50"), "null");
        let json: serde_json::Value =
            serde_json::from_slice(&std::fs::read(out.join("matrix.json")).unwrap()).unwrap();
        assert_eq!(json["cells"].as_array().unwrap().len(), 4);
        assert_eq!(std::fs::read_dir(out.join("figures")).unwrap().count(), 9);
    }
}
