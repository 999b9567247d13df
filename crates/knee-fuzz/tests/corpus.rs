//! Each target on all of its corpus, and on as many mutations as take a few seconds.

use knee_fuzz::{Mutator, TARGETS, Target, corpora};
use std::{
    env, fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

/// Mutations of each target, unless KNEE_FUZZ_MUTATIONS says otherwise.
const MUTATIONS: u64 = 3000;

/// The files under `folder` whose names end so.
fn files(folder: &Path, end: &str, into: &mut Vec<Vec<u8>>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            files(&path, end, into);
        } else if path.to_string_lossy().ends_with(end) {
            into.push(fs::read(&path).expect("a file"));
        }
    }
}

fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let mut corpus = Vec::new();
    files(&corpora().join(target.name), "", &mut corpus);
    if let Some((folder, end)) = target.also {
        files(&corpora().join("../..").join(folder), end, &mut corpus);
    }
    assert!(!corpus.is_empty(), "{} has no corpus", target.name);
    corpus
}

/// Runs it; a failure keeps the input.
fn run(target: &Target, input: &[u8]) {
    let result = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    if let Err(panic) = result {
        let found = Path::new(env!("CARGO_TARGET_TMPDIR")).join(target.name);
        fs::write(&found, input).expect("a file");
        eprintln!("{}: this input is in {}", target.name, found.display());
        std::panic::resume_unwind(panic);
    }
}

fn fuzz(name: &str) {
    let target = knee_fuzz::target(name).expect("there is one");
    let corpus = corpus(target);
    corpus.iter().for_each(|input| run(target, input));
    let wanted = env::var("KNEE_FUZZ_MUTATIONS").ok().map(|n| n.parse().expect("a number"));
    let mut mutator = Mutator::new(1, target.longest_bytes);
    for _ in 0..wanted.unwrap_or(MUTATIONS) {
        run(target, &mutator.next(&corpus, target.is_text));
    }
}

macro_rules! each {
    ($($test:ident $name:literal)*) => {
        $(#[test] fn $test() { fuzz($name); })*

        #[test]
        fn every_target_is_run() {
            let here = [$($name),*];
            assert_eq!(TARGETS.map(|target| target.name), here);
        }
    };
}

each! {
    scenario "scenario"
    study "study"
    set "set"
    arguments "arguments"
    delivery "delivery"
    trace_csv "trace-csv"
    trace_parquet "trace-parquet"
    kept "kept"
}
