//! Results of the simulator for every scenario file below `scenarios/`, to the last bit: a SHA-256 of
//! the first repetition's record. The hashes are in `results.txt`. After an intended change:
//!
//! ```text
//! INSTA_UPDATE=always cargo test -p knee-scenario --test results
//! ```
//!
//! and a line under "Results" in CHANGELOG.md that names the change and its reason.

use knee_scenario::Scenario;
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
    thread,
};

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

/// The scenario files, by their path below `scenarios/`: those that name a path, without papers, claims
/// and criteria.
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

/// Hash of the record of a file's first repetition.
fn hash(file: &str) -> String {
    let scenario = Scenario::load(&scenarios().join(file), &[]);
    let scenario = scenario.unwrap_or_else(|e| panic!("{file}: {e}"));
    let record =
        knee_sim::run(&scenario.spec(scenario.seed())).unwrap_or_else(|e| panic!("{file}: {e}"));
    let bytes = postcard::to_stdvec(&record).expect("a record can be written");
    Sha256::digest(bytes).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[test]
fn results_are_those_recorded() {
    let (left, hashes) = (Mutex::new(files()), Mutex::new(BTreeMap::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let Some(file) = left.lock().expect("no panic").pop() else { return };
                    let hash = hash(&file);
                    hashes.lock().expect("no panic").insert(file, hash);
                }
            });
        }
    });
    let hashes = hashes.into_inner().expect("no panic");
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results.txt");
    if env::var_os("INSTA_UPDATE").is_some_and(|how| how == "always") {
        let lines = hashes.iter().map(|(file, hash)| format!("{hash}  {file}\n"));
        return fs::write(recorded, lines.collect::<String>()).expect("written");
    }
    let text = fs::read_to_string(recorded).expect("tests/results.txt");
    let recorded: BTreeMap<_, _> = text
        .lines()
        .map(|line| line.split_once("  ").expect("HASH  FILE"))
        .map(|(hash, file)| (file.to_owned(), hash.to_owned()))
        .collect();
    let listed = |files: Vec<&String>| {
        files.iter().map(|file| format!("\n  scenarios/{file}")).collect::<String>()
    };
    let changed = hashes.iter().filter(|(file, hash)| recorded.get(*file) != Some(hash));
    let changed = listed(changed.map(|(file, _)| file).collect());
    let gone = listed(recorded.keys().filter(|file| !hashes.contains_key(*file)).collect());
    assert!(
        changed.is_empty() && gone.is_empty(),
        "other results than recorded, or a new scenario:{changed}\nrecorded, but gone:{gone}\n\
         If that is meant, run `INSTA_UPDATE=always cargo test -p knee-scenario --test results`, and \
         say under \"Results\" in CHANGELOG.md what changed and why. If all have changed at once, it \
         may be the record that has another shape."
    );
}
