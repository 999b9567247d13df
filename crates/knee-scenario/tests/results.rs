//! The simulator's result for every scenario file below `scenarios/`: a SHA-256 of the first repetition's record, and
//! its main metrics. `results.txt` has them. After an intended change:
//!
//! ```text
//! INSTA_UPDATE=always cargo test -p knee-scenario --test results
//! ```
//!
//! and a line under "Results" in CHANGELOG.md that says what changed and why.

use knee_results::metrics::DelayMs;
use knee_scenario::Scenario;
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
    thread,
};

/// Flows of a scenario whose metrics are recorded, at most.
const FLOWS: usize = 8;

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

/// The scenario files, by their path below `scenarios/`: what names a path, beside papers, claims and
/// criteria.
fn files() -> Vec<String> {
    let (mut folders, mut found) = (vec![scenarios()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if fs::read_to_string(&path).expect("a file").contains("\n[path]") {
                let name = path.strip_prefix(scenarios()).expect("below");
                found.push(name.display().to_string());
            }
        }
    }
    found
}

/// The result of a scenario: a block of lines, which begins with its file.
type Block = (String, String);

/// The hash of the record of a file's first repetition, and its main metrics, which show the size of a change.
fn result(file: &str) -> String {
    let scenario = Scenario::load(&scenarios().join(file), &[]);
    let scenario = scenario.unwrap_or_else(|e| panic!("{file}: {e}"));
    let spec = scenario.spec(scenario.seed());
    let record = knee_sim::run(&spec).unwrap_or_else(|e| panic!("{file}: {e}"));
    let bytes = postcard::to_stdvec(&record).expect("a record can be written");
    let mut block = "  sha256 ".to_owned();
    Sha256::digest(bytes).iter().for_each(|byte| _ = write!(block, "{byte:02x}"));
    for (number, queue) in record.queues.iter().enumerate() {
        let (departed, dropped, marked) =
            (queue.departed_pkts, queue.dropped_pkts, queue.marked_pkts);
        let delay = DelayMs::of(&queue.delay).map_or(0.0, |delay| delay.mean_ms);
        let _ = write!(
            block,
            "\n  queue {number}: {departed} departed, {dropped} dropped, {marked} marked, mean delay {delay:.3} ms"
        );
    }
    for flow in record.flows.iter().take(FLOWS) {
        let (name, of) = (&flow.name, &flow.counters);
        let backoffs = of.delay_backoffs_region_a + of.delay_backoffs_region_b;
        let _ = write!(
            block,
            "\n  {name}: {} sent, {} delivered, {} retransmitted, {} loss events, {backoffs} delay backoffs, {} timeouts",
            of.sent_pkts, of.delivered_pkts, of.retransmitted_pkts, of.loss_events, of.timeouts
        );
    }
    block
}

/// The blocks of `results.txt`.
fn blocks(text: &str) -> BTreeMap<String, String> {
    let block = |block: &str| -> Option<Block> {
        let (file, result) = block.trim_end().split_once('\n')?;
        Some((file.to_owned(), result.to_owned()))
    };
    text.split("\n\n").filter_map(block).collect()
}

#[test]
fn results_are_those_recorded() {
    let (left, results) = (Mutex::new(files()), Mutex::new(BTreeMap::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let Some(file) = left.lock().expect("no panic").pop() else { return };
                    let result = result(&file);
                    results.lock().expect("no panic").insert(file, result);
                }
            });
        }
    });
    let results = results.into_inner().expect("no panic");
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results.txt");
    if env::var_os("INSTA_UPDATE").is_some_and(|how| how == "always") {
        let blocks: Vec<_> =
            results.iter().map(|(file, result)| format!("{file}\n{result}\n")).collect();
        return fs::write(recorded, blocks.join("\n")).expect("written");
    }
    let recorded = blocks(&fs::read_to_string(recorded).expect("tests/results.txt"));
    let mut differences = String::new();
    for file in results.keys().chain(recorded.keys()).collect::<BTreeSet<_>>() {
        let (was, is) = (recorded.get(file), results.get(file));
        if was != is {
            let shown = |result: Option<&String>| result.map_or("  none".to_owned(), Clone::clone);
            let _ = write!(
                differences,
                "scenarios/{file}, recorded:\n{}\nnow:\n{}\n",
                shown(was),
                shown(is)
            );
        }
    }
    assert!(
        differences.is_empty(),
        "{differences}\nTo accept these results, run `INSTA_UPDATE=always cargo test -p knee-scenario --test \
         results`, and say under \"Results\" in CHANGELOG.md what changed and why. If only hashes changed, in all \
         scenarios, the record has another shape."
    );
}
