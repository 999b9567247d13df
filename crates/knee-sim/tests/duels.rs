//! Every algorithm against itself and against NewReno, on the papers' path. The results are recorded in a
//! snapshot for each algorithm, so that a change of any algorithm is seen. A new algorithm needs none;
//! `INSTA_UPDATE=always` records it.

use insta::assert_snapshot;
use knee_cc::{Algorithm, algorithm, algorithms};
use knee_conformance::duels::{COLUMNS, duel, judged};
use std::{env, panic, path::Path, thread};

/// Returns whether an algorithm has a snapshot, or is to get one.
fn is_recorded(algorithm: Algorithm) -> bool {
    let snapshots = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
    let file = snapshots.join(format!("duels__{}.snap", algorithm.name()));
    file.exists() || env::var_os("INSTA_UPDATE").is_some()
}

#[test]
fn against_itself_and_newreno() {
    let newreno = algorithm("newreno").expect("registered");
    let mut recorded = 0;
    for &a in algorithms() {
        let (itself, other) = thread::scope(|scope| {
            let judged = |other| judged(&duel(a, other)).unwrap_or_else(|e| panic!("{e}"));
            let itself = scope.spawn(move || judged(a));
            let other = judged(newreno);
            (itself.join().unwrap_or_else(|panic| panic::resume_unwind(panic)), other)
        });
        let table = format!("against    {COLUMNS}\nitself     {itself}\nnewreno    {other}\n");
        if is_recorded(a) {
            assert_snapshot!(a.name(), table);
            recorded += 1;
        }
    }
    assert!(recorded > 0, "no records: run with INSTA_UPDATE=always");
}
