//! What the simulator foresees of a packet's way changes no result, on any scenario of this repository.

use knee_model::NS_PER_S;
use knee_scenario::Scenario;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The files under `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("read").path());
    let all = entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] });
    all.collect()
}

#[test]
fn foresight_changes_no_scenario() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let (mut compared, mut with_packets) = (0, 0);
    for path in files(&folder).iter().filter(|path| path.extension().is_some_and(|e| e == "toml")) {
        // Papers, figures and traffic patterns are not scenarios of their own.
        let Ok(scenario) = Scenario::load(path, &[]) else { continue };
        let mut spec = scenario.spec(scenario.seed());
        // Some are minutes of gigabits; this much of them shows a difference if there is one.
        let fastest_bps = spec.path.hops.iter().map(|hop| hop.rate_bps).max().expect("a hop");
        let long_ns = (20 * NS_PER_S).min(NS_PER_S * 2_000_000_000 / fastest_bps);
        spec.duration_ns = spec.duration_ns.min(long_ns.max(NS_PER_S));
        // A queue that is logged holds the packets themselves: both ways are seen.
        spec.record.queue_log = compared % 2 == 1;
        let Ok(foreseen) = knee_sim::run(&spec) else { continue };
        let stepped = knee_sim::run_event_by_event(&spec).expect("as the other");
        assert!(foreseen == stepped, "{}", path.display());
        compared += 1;
        with_packets += u32::from(foreseen.queues[0].departed_pkts > 0);
    }
    assert!(compared >= 20 && with_packets == compared, "{with_packets} of {compared}");
}
