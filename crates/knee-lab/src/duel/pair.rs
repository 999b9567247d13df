//! A duel: two algorithms on one path.

use super::{
    Cell, Charted, Common, DEFINITIONS, Outcome, PathSummary, RunRow, shown, shown_convergence,
    write_runs,
};
use knee_report::{
    report::{Report, Section},
    run_report::run_charts,
    table::Table,
};
use knee_results::{ResultsError, metrics::Percentiles, store::ResultWriter};
use serde::Serialize;

/// All of `duel.json`.
#[derive(Clone, Debug, Serialize)]
pub struct DuelSummary {
    /// Settings of the runs.
    #[serde(flatten)]
    pub common: Common,
    /// The path.
    #[serde(flatten)]
    pub path: PathSummary,
    /// One algorithm.
    pub a: String,
    /// The other.
    pub b: String,
    /// The main result in words.
    pub sentence: String,
    /// `a` against `b`, over both orders of the start.
    pub a_beside_b: Cell,
    /// The other entrant of the same runs.
    pub b_beside_a: Cell,
    /// `a` against `b`, of the runs in which `a` started first.
    pub a_first: Cell,
    /// `a` against `b`, of the runs in which `b` started first.
    pub b_first: Cell,
    /// `a` against itself.
    pub a_beside_a: Cell,
    /// `b` against itself.
    pub b_beside_b: Cell,
    /// Every run.
    pub runs: Vec<RunRow>,
}

impl DuelSummary {
    /// The duel of entrants `a` and `b` on the first path; the same number twice is a duel of an algorithm
    /// with itself.
    pub fn new(common: Common, outcome: &Outcome, (a, b): (usize, usize)) -> Self {
        let name = |entrant: usize| outcome.contest.entrants[entrant].name.clone();
        let path = PathSummary::new(&outcome.contest.paths[0]);
        let (a_beside_b, b_beside_a) = (outcome.cell(0, a, b), outcome.cell(0, b, a));
        let sentence = match a == b {
            false => sentence(&name(a), &name(b), &path.path, &a_beside_b, &b_beside_a),
            true => sentence_of_one(&name(a), &path.path, &a_beside_b),
        };
        Self {
            common,
            path,
            a: name(a),
            b: name(b),
            sentence,
            a_beside_b,
            b_beside_a,
            a_first: outcome.cell_first(0, a, b),
            b_first: outcome.cell_second(0, a, b),
            a_beside_a: outcome.cell(0, a, a),
            b_beside_b: outcome.cell(0, b, b),
            runs: outcome.run_rows().collect(),
        }
    }

    fn is_of_one(&self) -> bool {
        self.a == self.b
    }
}

fn percent(p: Option<Percentiles>) -> String {
    match p {
        None => "an unknown part".to_owned(),
        p => format!("{} %", shown(p, 100.0, 0)),
    }
}

fn sentence(a: &str, b: &str, path: &str, ab: &Cell, ba: &Cell) -> String {
    let queueing = |c: &Cell| format!("{} ms", shown(c.queueing_mean_ms, 1.0, 1));
    format!(
        "On {path}, {a} gets {} of the goodput against {b}. {a} harms {b} by {} in goodput and {} in \
         delay; {b} harms {a} by {} and {} (relative to each against its own kind; below 0 is a gain). \
         The mean queueing delay is {}.",
        percent(ab.share_a),
        percent(ab.harm_goodput),
        percent(ab.harm_delay),
        percent(ba.harm_goodput),
        percent(ba.harm_delay),
        queueing(ab),
    )
}

fn sentence_of_one(a: &str, path: &str, cell: &Cell) -> String {
    format!(
        "On {path}, two flows of {a} have a Jain's index of {} and use {} of the bottleneck; the mean \
         queueing delay is {} ms. Convergence takes {} s.",
        shown(cell.jain, 1.0, 3),
        percent(cell.utilisation),
        shown(cell.queueing_mean_ms, 1.0, 1),
        shown_convergence(cell),
    )
}

/// Text of a measure of a cell.
type Get = fn(&Cell) -> String;

fn tables(duel: &DuelSummary) -> Vec<Table> {
    let (a, b) = (&duel.a, &duel.b);
    let n = duel.common.repetitions;
    let of = match n {
        1 => String::new(),
        _ => ": median (20th–80th percentile)".to_owned(),
    };
    let both = format!("{a} and {b}");
    let settings: Vec<(String, &Cell, bool, bool)> = match duel.is_of_one() {
        true => vec![(format!("{a} and {a}"), &duel.a_beside_a, true, false)],
        false => vec![
            (format!("{a} first"), &duel.a_first, true, true),
            (format!("{b} first"), &duel.b_first, true, true),
            (both, &duel.a_beside_b, true, true),
            (format!("{a} and {a}"), &duel.a_beside_a, true, false),
            (format!("{b} and {b}"), &duel.b_beside_b, false, true),
        ],
    };
    let heads: Vec<&str> = settings.iter().map(|(head, ..)| head.as_str()).collect();
    let runs = if n == 1 { String::new() } else { format!(", {n} repetitions") };
    let mut all = Table::new(format!("Two flows{runs}{of}"), &["measure"], &heads);
    let mut row =
        |name: String, wanted: fn(bool, bool) -> bool, get: Get| {
            let cells = settings.iter().map(|(_, cell, of_a, of_b)| {
                if wanted(*of_a, *of_b) { get(cell) } else { "–".to_owned() }
            });
            all.row([name].into_iter().chain(cells));
        };
    let always: fn(bool, bool) -> bool = |_, _| true;
    let of_a: fn(bool, bool) -> bool = |of_a, _| of_a;
    let of_b: fn(bool, bool) -> bool = |_, of_b| of_b;
    // Against itself, a flow of either side is one of the two.
    row(format!("goodput of {a} (Mbit/s)"), of_a, |c| shown(c.goodput_a_bps, 1e-6, 2));
    if !duel.is_of_one() {
        row(format!("goodput of {b} (Mbit/s)"), of_b, |c| shown(c.goodput_b_bps, 1e-6, 2));
        row(format!("share of {a} (%)"), |of_a, of_b| of_a && of_b, |c| shown(c.share_a, 100.0, 1));
    }
    row("utilisation (%)".to_owned(), always, |c| shown(c.utilisation, 100.0, 1));
    row("queueing delay, mean (ms)".to_owned(), always, |c| shown(c.queueing_mean_ms, 1.0, 2));
    row("queueing delay, p95 (ms)".to_owned(), always, |c| shown(c.queueing_p95_ms, 1.0, 2));
    row(format!("packets of {a} lost (%)"), of_a, |c| shown(c.loss_a, 100.0, 3));
    if !duel.is_of_one() {
        row(format!("packets of {b} lost (%)"), of_b, |c| shown(c.loss_b, 100.0, 3));
    }
    row("Jain's index".to_owned(), always, |c| shown(c.jain, 1.0, 3));
    row("convergence (s)".to_owned(), always, shown_convergence);
    if duel.is_of_one() {
        return vec![all];
    }
    let columns = ["of goodput (%)", "of delay (%)"];
    let mut harm = Table::new(format!("Harm{of}; below 0 is a gain"), &["from", "to"], &columns);
    for (from, to, cell) in [(a, b, &duel.a_beside_b), (b, a, &duel.b_beside_a)] {
        let [goodput, delay] = [cell.harm_goodput, cell.harm_delay].map(|p| shown(p, 100.0, 1));
        harm.row([from.clone(), to.clone(), goodput, delay]);
    }
    vec![all, harm]
}

/// The sentence, then the tables, for a terminal `width` characters wide, or as wide as needed.
pub fn duel_text(duel: &DuelSummary, width: Option<u16>) -> String {
    let tables: Vec<String> = tables(duel).iter().map(|t| t.to_text(width)).collect();
    format!("{}\n\n{}", duel.sentence, tables.join("\n"))
}

/// The report: sentence, tables, and the charts of `charted`, the first repetition of each setting.
pub fn duel_report(duel: &DuelSummary, outcome: &Outcome, charted: &[Charted]) -> Report {
    let path = &duel.path;
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let names = &outcome.contest.entrants;
    let mut over_time = Section::new("Over time, first repetition of each");
    let mut set_up = Section::new("How it was measured");
    set_up.paragraphs = std::iter::once(outcome.contest.plan.words())
        .chain(DEFINITIONS.map(str::to_owned))
        .collect();
    for Charted { run, scenario, record } in charted {
        let second = run.second.map_or("nobody", |s| names[s].name.as_str());
        let title = format!("{}, then {second}", names[run.first].name);
        for mut chart in run_charts(&scenario.spec(record.seed), record) {
            if ["goodput", "queue"].contains(&chart.id.as_str()) {
                chart.id = format!("{}-{}", chart.id, over_time.charts.len() + 1);
                chart.title = format!("{title}: {}", chart.title);
                over_time.charts.push(chart);
            }
        }
        let caption = format!("{title}: the scenario, which knee run takes");
        set_up.listings.push((caption, scenario.text().to_owned()));
    }
    let results = Section {
        paragraphs: vec![duel.sentence.clone()],
        tables: tables(duel),
        ..Section::new("Results")
    };
    Report {
        title: match duel.is_of_one() {
            true => format!("{} against itself", duel.a),
            false => format!("{} against {}", duel.a, duel.b),
        },
        meta: vec![
            fact("Bottleneck", format!("{} Mbit/s", path.rate_bps as f64 / 1e6)),
            fact("Round-trip time", format!("{} ms", path.rtt_ms)),
            fact("Queue", format!("{}, drop-tail", path.queue)),
            fact("Random loss", path.loss.to_string()),
            fact("Duration", format!("{} s", duel.common.duration_s)),
            fact("Repetitions", duel.common.repetitions.to_string()),
            fact("Seed", duel.common.seed.to_string()),
        ],
        sections: vec![results, over_time, set_up],
        ..Report::default()
    }
}

/// Writes `duel.json`, `runs.parquet`, the scenarios, `report` and its figures.
///
/// # Errors
/// A file cannot be written.
pub fn write_duel(
    results: &ResultWriter,
    duel: &DuelSummary,
    outcome: &Outcome,
    charted: &[Charted],
    report: &Report,
) -> Result<(), ResultsError> {
    results.json("duel.json", duel)?;
    results.algorithms(outcome.contest.algorithms())?;
    write_runs(results, outcome)?;
    let file_name = |entrant: usize| {
        let is_b = outcome.contest.entrants[entrant].name == duel.b && !duel.is_of_one();
        if is_b { "b" } else { "a" }
    };
    for Charted { run, scenario, .. } in charted {
        let second = file_name(run.second.unwrap_or(run.first));
        let name = format!("scenarios/{}-then-{second}.toml", file_name(run.first));
        results.bytes(&name, scenario.text())?;
    }
    for chart in report.sections.iter().flat_map(|s| &s.charts) {
        results.bytes(&format!("figures/{}.svg", chart.id), chart.svg())?;
    }
    results.bytes("report.html", report.html())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::duel::contest::tests::outcome;

    fn duel(pair: (usize, usize)) -> DuelSummary {
        let outcome = outcome();
        DuelSummary::new(Common::new(&outcome.contest.plan, "sim", None), &outcome, pair)
    }

    #[test]
    fn the_sentence_says_who_wins() {
        let words = duel((0, 1)).sentence;
        // Shares of 1/9 and 1/4; harms as in `harm_by_hand`.
        assert_eq!(
            words,
            "On 100mbit,40ms,333p, chd gets 18 (14–22) % of the goodput against newreno. chd harms \
             newreno by −75 (−90 to −60) % in goodput and −7 (−15 to 1) % in delay; newreno harms chd by 67 \
             (60–73) % and 20 (14–26) % (relative to each against its own kind; below 0 is a gain). The \
             mean queueing delay is 17.0 (12.8–21.2) ms."
        );
    }

    #[test]
    fn tables_have_both_orders_and_the_baselines() {
        let text = duel_text(&duel((0, 1)), None);
        assert!(text.starts_with("On 100mbit"));
        for word in ["chd first", "newreno first", "chd and newreno", "newreno and newreno"] {
            assert!(text.contains(word), "{word}: {text}");
        }
        let row = |name: &str| -> Vec<String> {
            let line = text.lines().find(|l| l.contains(name)).unwrap();
            let cells = line.split_once(name).unwrap().1.split("  ");
            cells.map(str::trim).filter(|c| !c.is_empty()).map(str::to_owned).collect()
        };
        assert_eq!(row("goodput of chd (Mbit/s)")[..2], ["20.00", "10.00"]);
        assert_eq!(row("goodput of chd (Mbit/s)")[4], "–");
        assert_eq!(row("goodput of newreno (Mbit/s)")[3], "–");
        assert_eq!(row("queueing delay, mean (ms)")[3..], ["5.00", "20.00"]);
        assert_eq!(row("convergence (s)")[0], "never");
    }

    #[test]
    fn one_algorithm_has_one_setting() {
        let one = duel((1, 1));
        assert!(one.sentence.contains("two flows of newreno"), "{}", one.sentence);
        assert_eq!(tables(&one).len(), 1);
        assert_eq!(tables(&one)[0].columns.len(), 2);
        let outcome = outcome();
        let report = duel_report(&one, &outcome, &[]);
        assert!(report.html().contains("newreno against itself"));
    }
}
