//! Finished runs that are kept.

use knee_fixtures as testing;
use knee_model::{HostError, HostErrorKind, RunSpec};
use knee_results::kept::KeptRuns;
use std::{cell::Cell, fs};
use tempfile::tempdir;

/// One flow of CHD and a probe, 3 s on 1 Mbit/s with random losses.
fn spec(seed: u64) -> RunSpec {
    let flows = vec![testing::flow("bulk", "chd", &[]), testing::flow("probe", "probe", &[])];
    let mut spec = testing::spec(&testing::record(3.0, 0.1, flows));
    spec.seed = seed;
    spec.path.hops[0].loss = 0.01;
    spec.record.queue_log = true;
    spec
}

/// The stored record is the one that was made, to the last packet.
#[test]
fn a_kept_run_is_the_same() {
    let folder = tempdir().expect("a folder");
    let kept = KeptRuns::open(&folder.path().join("runs")).expect("a folder");
    let spec = spec(1);
    let made = Cell::new(0);
    let run = || {
        kept.or_run("sim", &spec, |spec| {
            made.set(made.get() + 1);
            knee_sim::run(spec)
        })
    };
    let (first, second) = (run().expect("a run"), run().expect("a run"));
    assert_eq!(made.get(), 1);
    assert!(!first.flows[0].samples.is_empty() && !first.queues[0].log.is_empty());
    assert!(!first.flows[1].probe_delays.is_empty() && !first.flows[0].observes[0].is_empty());
    assert!(first == second);
}

/// Another program, another kernel, another seed, another path: another run.
#[test]
fn only_the_very_same_run_is_taken() {
    let folder = tempdir().expect("a folder");
    let made = Cell::new(0);
    let made_by = |program: &str, host: &str, spec: &RunSpec| {
        let kept = KeptRuns::made_by(program, folder.path()).expect("a folder");
        let ran = kept.or_run(host, spec, |spec| {
            made.set(made.get() + 1);
            knee_sim::run(spec)
        });
        ran.expect("a run");
        made.get()
    };
    let run = |host: &str, spec: &RunSpec| made_by("p", host, spec);
    assert_eq!(run("a", &spec(1)), 1);
    assert_eq!(run("b", &spec(1)), 2);
    assert_eq!(run("a", &spec(2)), 3);
    let mut other = spec(1);
    other.path.hops[0].rate_bps += 1;
    assert_eq!(run("a", &other), 4);
    // A rebuilt forwarder is another program.
    assert_eq!(made_by("q", "a", &spec(1)), 5);
    // Where one part ends and the next begins counts too.
    assert_eq!(made_by("pa", "", &spec(1)), 6);
    assert_eq!(made_by("", "pa", &spec(1)), 7);
    // All of them are still there.
    assert_eq!((run("a", &spec(1)), run("a", &other), made_by("q", "a", &spec(1))), (7, 7, 7));
}

/// The same program, opened twice, finds what it kept.
#[test]
fn this_program_finds_its_own_runs() {
    let folder = tempdir().expect("a folder");
    let open = || KeptRuns::open(folder.path()).expect("a folder");
    open().or_run("a", &spec(1), knee_sim::run).expect("a run");
    open().or_run("a", &spec(1), |_| panic!("it is there")).expect("the record");
}

/// A failed run is run again; a damaged file is told of.
#[test]
fn nothing_half_done_is_taken() {
    let folder = tempdir().expect("a folder");
    let kept = KeptRuns::open(folder.path()).expect("a folder");
    let spec = spec(1);
    let late = || HostError::new(HostErrorKind::TooSlow, "late");
    assert_eq!(kept.or_run("a", &spec, |_| Err(late())), Err(late()));
    kept.or_run("a", &spec, knee_sim::run).expect("a run");
    let files: Vec<_> = fs::read_dir(folder.path()).expect("a folder").flatten().collect();
    assert_eq!(files.len(), 1);
    let mut bytes = fs::read(files[0].path()).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(files[0].path(), bytes).expect("a file");
    let error = kept.or_run("a", &spec, |_| panic!("not run again unasked")).expect_err("damaged");
    assert!(error.why.contains("damaged"), "{error}");
    assert!(error.help.is_some_and(|help| help.contains("remove it")));
}
