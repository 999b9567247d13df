//! Invariants of every algorithm of the registry, whatever its parameters and whatever happens on the
//! connection: `knee-conformance` has them. A new file in `cc/algorithms/` is under these tests without
//! any edit here.

use knee_cc::{NOTE_DELAY_BACKOFF, NOTE_LOSS_TOLERATED, NOTE_REGION_B, NOTE_ROUND, algorithms};
use knee_conformance::invariants::{Config, Invariant, Reached};
use proptest::test_runner::FileFailurePersistence;
use std::{collections::BTreeSet, fs, path::Path};

fn holds_for_every_algorithm(invariant: Invariant) {
    for &algorithm in algorithms() {
        let config = Config {
            source_file: Some(file!()),
            failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
            ..Config::default()
        };
        if let Err(failure) = invariant.check(algorithm, config) {
            panic!("{}: {failure}", algorithm.name());
        }
    }
}

#[test]
fn windows_notes_and_spacing() {
    holds_for_every_algorithm(Invariant::WindowsNotesAndSpacing);
}

#[test]
fn same_calls_same_results() {
    holds_for_every_algorithm(Invariant::SameCallsSameResults);
}

#[test]
fn nothing_outside_the_contract_matters() {
    holds_for_every_algorithm(Invariant::NothingOutsideTheContractMatters);
}

/// Notes by the name that they have in C.
const NOTES: [(&str, u32); 4] = [
    ("CC_NOTE_ROUND", NOTE_ROUND),
    ("CC_NOTE_DELAY_BACKOFF", NOTE_DELAY_BACKOFF),
    ("CC_NOTE_REGION_B", NOTE_REGION_B),
    ("CC_NOTE_LOSS_TOLERATED", NOTE_LOSS_TOLERATED),
];

/// Words of a C source that may be names; comments do not count.
fn names(source: &str) -> BTreeSet<String> {
    let mut code = String::new();
    for (i, part) in source.split("/*").enumerate() {
        code += if i == 0 { part } else { part.split_once("*/").expect("a comment ends").1 };
    }
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    code.split(|c: char| !word(c)).map(str::to_owned).collect()
}

/// Functions of the shared headers that set notes, with these.
fn helpers_that_note(headers: &Path) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(headers).expect("the headers") {
        let text = fs::read_to_string(entry.expect("an entry").path()).expect("text");
        for function in text.split("static inline ").skip(1) {
            let (head, _) = function.split_once('(').expect("a function has arguments");
            let name = head.rsplit([' ', '*']).next().expect("a name").to_owned();
            let (function, _) = function.split_once("\n}\n").expect("a function ends");
            match notes_named(&names(function)) {
                0 => {}
                notes => found.push((name, notes)),
            }
        }
    }
    found
}

fn notes_named(names: &BTreeSet<String>) -> u32 {
    NOTES.iter().filter(|(name, _)| names.contains(*name)).map(|(_, note)| note).sum()
}

/// The sequences drawn here do reach what the invariants are about: each algorithm sets every note that
/// its source names, itself or by a helper, and no other.
#[test]
fn sequences_reach_every_decision() {
    let cc = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cc");
    let helpers = helpers_that_note(&cc.join("include/knee"));
    for (helper, note) in [
        ("cc_delay_backoff", NOTE_DELAY_BACKOFF),
        ("cc_delay_reduce", NOTE_DELAY_BACKOFF),
        ("cc_early_response", NOTE_DELAY_BACKOFF),
    ] {
        assert!(helpers.contains(&(helper.to_owned(), note)), "{helper}: {helpers:?}");
    }
    for &algorithm in algorithms() {
        let name = algorithm.name();
        let file = cc.join(format!("algorithms/{name}.c"));
        let named = names(&fs::read_to_string(file).expect("its source"));
        let by_helpers = helpers.iter().filter(|(helper, _)| named.contains(helper));
        let expected = by_helpers.fold(notes_named(&named), |notes, (_, note)| notes | note);
        let Reached { notes, backoffs, calls } = Reached::of(algorithm, 200);
        assert_eq!(notes, expected, "{name}: notes set, and those that its source names");
        assert!(
            expected & NOTE_DELAY_BACKOFF == 0 || backoffs > 100,
            "{name}: {backoffs} delay backoffs in {calls}"
        );
    }
}
