//! Algorithms against each other: `knee duel` and `knee matrix`.
//!
//! A contest runs two flows on a path, the second joining the first: each pair in both orders, and
//! each algorithm against itself, which is the reference for harm. `docs/reference/duel-json.md` defines
//! every metric.

mod contest;
mod entrant;
mod matrix;
mod pair;
mod path;
mod plan;

pub use contest::{Cell, Charted, Contest, Fought, Outcome, Run, Setting};
pub use entrant::Entrant;
pub use matrix::{MatrixSummary, matrix_report, matrix_text, write_matrix};
pub use pair::{DuelSummary, duel_report, duel_text, write_duel};
pub use path::{PACKET_BYTES, WrittenPath};
pub use plan::{Bout, Plan, Solo};

use knee_model::{milliseconds, seconds};
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
use knee_scenario::units::show_queue;
use serde::Serialize;

/// Values common to the results of a duel and of a matrix.
#[derive(Clone, Debug, Serialize)]
pub struct Common {
    /// Version of Knee.
    pub knee_version: &'static str,
    /// Commit of Knee, if known.
    pub knee_commit: Option<String>,
    /// Host: `sim`, `kernel`, `quic`.
    pub host: String,
    /// Length of a run, seconds.
    pub duration_s: f64,
    /// Start of the second flow, up to one round-trip time of jitter aside, seconds.
    pub second_starts_s: f64,
    /// Start of the measured stretch, seconds.
    pub measured_from_s: f64,
    /// Number of repetitions of each run.
    pub repetitions: u32,
    /// Seed of the first.
    pub seed: u64,
    /// Largest extra delay on each access link, microseconds; left out without noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_us: Option<f64>,
}

impl Common {
    /// The settings of `plan` on `host`; `commit` of Knee, if known.
    pub fn new(plan: &Plan, host: &str, commit: Option<&str>) -> Self {
        Self {
            knee_version: env!("CARGO_PKG_VERSION"),
            knee_commit: commit.map(str::to_owned),
            host: host.to_owned(),
            duration_s: seconds(plan.duration_ns),
            second_starts_s: seconds(plan.second_starts_ns()),
            measured_from_s: seconds(plan.measured_from_ns()),
            repetitions: plan.repeat,
            seed: plan.seed,
            noise_us: (plan.noise_ns > 0).then_some(plan.noise_ns as f64 / 1e3),
        }
    }
}

/// A path in results.
#[derive(Clone, Debug, Serialize)]
pub struct PathSummary {
    /// The path, as `--path` takes it.
    pub path: String,
    /// Rate of the bottleneck, bit/s.
    pub rate_bps: u64,
    /// Round-trip time without queueing, milliseconds.
    pub rtt_ms: f64,
    /// Limit of the queue, packets (`84p`) or bytes (`100kB`).
    pub queue: String,
    /// Probability of random loss.
    pub loss: f64,
}

impl PathSummary {
    fn new(path: &WrittenPath) -> Self {
        Self {
            path: path.to_string(),
            rate_bps: path.rate_bps,
            rtt_ms: milliseconds(path.rtt_ns),
            queue: show_queue(path.queue),
            loss: path.loss(),
        }
    }
}

/// A run of two flows in results.
#[derive(Clone, Debug, Serialize)]
pub struct RunRow {
    /// Path, as `--path` takes it.
    pub path: String,
    /// Name of the algorithm whose flow started first.
    pub first: String,
    /// Name of the algorithm whose flow joined it.
    pub second: String,
    /// Repetition, from 1.
    pub repetition: u32,
    /// Its seed.
    pub seed: u64,
    /// Measured values.
    #[serde(flatten)]
    pub bout: Bout,
}

impl Outcome {
    fn run_rows(&self) -> impl Iterator<Item = RunRow> {
        let contest = &self.contest;
        self.bouts.iter().map(|(run, bout)| RunRow {
            path: contest.paths[run.path].to_string(),
            first: contest.entrants[run.first].name.clone(),
            second: run.second.map_or_else(String::new, |s| contest.entrants[s].name.clone()),
            repetition: run.repetition + 1,
            seed: contest.plan.seed_of(run.repetition),
            bout: *bout,
        })
    }
}

fn run_columns() -> Vec<Column<RunRow>> {
    vec![
        Column("path", Text(|r| &r.path)),
        Column("first", Text(|r| &r.first)),
        Column("second", Text(|r| &r.second)),
        Column("repetition", U32(|r| r.repetition)),
        Column("seed", U64(|r| r.seed)),
        Column("goodput_first_bps", F64(|r| r.bout.goodput_bps[0])),
        Column("goodput_second_bps", F64(|r| r.bout.goodput_bps[1])),
        Column("loss_first", MaybeF64(|r| r.bout.loss[0])),
        Column("loss_second", MaybeF64(|r| r.bout.loss[1])),
        Column("loss_both", MaybeF64(|r| r.bout.loss_both)),
        Column("queueing_mean_ms", MaybeF64(|r| r.bout.queueing_mean_ms)),
        Column("queueing_p95_ms", MaybeF64(|r| r.bout.queueing_p95_ms)),
        Column("rtt_ms", MaybeF64(|r| r.bout.rtt_ms)),
        Column("jain", MaybeF64(|r| r.bout.jain)),
        Column("convergence_s", MaybeF64(|r| r.bout.convergence_s)),
        Column("utilisation", MaybeF64(|r| r.bout.utilisation)),
    ]
}

fn write_runs(results: &ResultWriter, outcome: &Outcome) -> Result<(), ResultsError> {
    write_if_any(results, "runs.parquet", &run_columns(), outcome.run_rows())
}

fn number(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    // No negative zero.
    if text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') {
        text.trim_start_matches('-').to_owned()
    } else {
        text.replace('-', "−")
    }
}

/// Median, with 20th and 80th percentile where they differ, times `scale`.
fn shown(p: Option<Percentiles>, scale: f64, digits: usize) -> String {
    let Some(p) = p else { return "–".to_owned() };
    let [low, median, high] = [p.p20, p.p50, p.p80].map(|v| number(v * scale, digits));
    let dash = if low.starts_with('−') { " to " } else { "–" };
    if low == high { median } else { format!("{median} ({low}{dash}{high})") }
}

/// Convergence time, with how many runs converged unless all did.
fn shown_convergence(cell: &Cell) -> String {
    match (cell.converged_runs, cell.runs) {
        (0, _) => "never".to_owned(),
        (some, all) if some == all => shown(cell.convergence_s, 1.0, 1),
        (some, all) => format!("{}, {some} of {all}", shown(cell.convergence_s, 1.0, 1)),
    }
}

/// Definitions of the words, for reports.
const DEFINITIONS: [&str; 3] = [
    "Share is a flow's part of the goodput of both. Harm follows Ware et al. (Beyond Jain's \
     Fairness Index, HotNets 2019): the part of its performance that an algorithm loses to another. \
     The reference is the algorithm against its own kind, in the same repetition: for goodput \
     (x − y)/x, where x is the mean goodput of two flows of its own kind and y its goodput against the \
     other; for delay (y − x)/y, where x and y are the round-trip times, propagation and mean \
     queueing delay. 0 is no harm, 100 % all there was; below 0 it gains.",
    "Queueing delay is the time that packets wait at the bottleneck, their own transmission excluded; \
     its 95th percentile takes each packet to have waited as long as the mean of its bin, which is \
     half a round-trip time long (1 to 20 ms). Loss is the part of the packets sent that was dropped or \
     lost. Jain's index is 1 if both goodputs are equal, 0.5 if one has everything.",
    "Percentiles are over all repetitions and both orders of the start. Each repetition has a seed of \
     its own, and starts that vary by up to a round-trip time.",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_are_shown_where_there_are_any() {
        let p = |p20, p50, p80| Some(Percentiles { p20, p50, p80 });
        assert_eq!(shown(p(0.1, 0.25, 0.5), 100.0, 0), "25 (10–50)");
        assert_eq!(shown(p(0.251, 0.25, 0.249), 100.0, 0), "25");
        assert_eq!(shown(p(-0.5, -0.001, 0.0), 100.0, 0), "0 (−50 to 0)");
        assert_eq!(shown(None, 1.0, 1), "–");
    }

    #[test]
    fn all_that_is_kept_is_documented() {
        let docs = include_str!("../../../../docs/reference/duel-json.md");
        let columns = run_columns().into_iter().map(|c| c.0).collect::<Vec<_>>();
        let columns = columns.into_iter().chain(matrix::column_names());
        let outcome = contest::tests::outcome();
        let common = || Common::new(&outcome.contest.plan, "sim", None);
        let mut keys = Vec::new();
        for value in [
            serde_json::to_value(DuelSummary::new(common(), &outcome, (0, 1))).unwrap(),
            serde_json::to_value(MatrixSummary::new(common(), &outcome)).unwrap(),
        ] {
            names(&value, &mut keys);
        }
        let used = columns.map(str::to_owned).chain(keys);
        let missing: Vec<String> = used.filter(|n| !docs.contains(&format!("`{n}`"))).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    fn names(value: &serde_json::Value, into: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(fields) => fields.iter().for_each(|(name, value)| {
                into.push(name.clone());
                names(value, into);
            }),
            serde_json::Value::Array(items) => items.iter().for_each(|v| names(v, into)),
            _ => {}
        }
    }
}
