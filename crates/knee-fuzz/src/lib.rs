//! Fuzz targets: whatever Knee reads that somebody else may have written.
//!
//! A target takes any bytes. A fault in them must give an error, never a panic, a signal or an endless
//! loop. `tests/corpus.rs` runs each target on its corpus and on a fixed number of mutations;
//! `scripts/fuzz.sh` runs libFuzzer on them for as long as one likes.
//!
//! (The C of the algorithms has a target of its own, `fuzz/calls.c`; QUIC's controllers and the
//! testbed's packets are tested with random events where they are.)

mod mutate;

pub use mutate::Mutator;

use knee_cc::algorithms;
use knee_lab::duel::{Entrant, WrittenPath};
use knee_model::{
    DeliveryTrace, FlowKind, FlowSpec, HopSpec, HostError, HostErrorKind, NS_PER_MS, RunSpec,
    Varying,
};
use knee_results::{kept::KeptRuns, replay::TraceReplay};
use knee_scenario::{Scenario, Set};
use knee_study::{Plan, Study};
use rustix::fs::{MemfdFlags, memfd_create};
use sha2::{Digest, Sha256};
use std::{
    fs::{self, File},
    io::Write,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// Something that is fuzzed.
pub struct Target {
    /// Name, and folder of its corpus under `fuzz/corpus/`.
    pub name: &'static str,
    /// Other files that its corpus begins with: a folder of the repository, and how names end.
    pub also: Option<(&'static str, &'static str)>,
    /// True if the inputs are lines of text, which are mutated as such.
    pub is_text: bool,
    /// Longest input, bytes.
    pub longest_bytes: usize,
    /// Takes an input.
    pub run: fn(&[u8]),
}

/// All of them.
pub const TARGETS: [Target; 8] = [
    Target {
        name: "scenario",
        also: Some(("scenarios", ".toml")),
        is_text: true,
        longest_bytes: 1 << 14,
        run: scenario,
    },
    Target {
        name: "study",
        also: Some(("studies", "study.toml")),
        is_text: true,
        longest_bytes: 1 << 13,
        run: study,
    },
    Target { name: "set", also: None, is_text: true, longest_bytes: 256, run: set },
    Target { name: "arguments", also: None, is_text: true, longest_bytes: 256, run: arguments },
    Target { name: "delivery", also: None, is_text: true, longest_bytes: 1 << 12, run: delivery },
    Target { name: "trace-csv", also: None, is_text: true, longest_bytes: 1 << 14, run: trace },
    Target {
        name: "trace-parquet",
        also: None,
        is_text: false,
        longest_bytes: 1 << 16,
        run: trace,
    },
    Target { name: "kept", also: None, is_text: false, longest_bytes: 1 << 16, run: kept },
];

/// The target of that name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// The folder of the corpora.
pub fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

/// Most packets that a run of a scenario may have here, about.
const RUN_PKTS: u64 = 3000;
/// Most flows, and longest run.
const RUN_FLOWS: usize = 12;
const RUN_NS: u64 = 2000 * NS_PER_MS;

/// A scenario file: if it is valid, its kept text is the same scenario, and the simulator can run it.
fn scenario(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(scenario) = Scenario::parse("fuzz", text, &[]) else { return };
    check(&scenario);
}

fn check(scenario: &Scenario) {
    let spec = scenario.spec(scenario.seed());
    let again = match Scenario::parse("kept", scenario.text(), &[]) {
        Ok(again) => again,
        Err(e) => panic!("its own text is no scenario: {e}\n{}", scenario.text()),
    };
    let again = again.spec(again.seed());
    assert_eq!(format!("{spec:?}"), format!("{again:?}"), "its own text is another scenario");
    simulate(spec);
}

/// Runs the start of it: as long as takes moderately many packets.
fn simulate(mut spec: RunSpec) {
    if spec.flows.len() > RUN_FLOWS {
        return;
    }
    let fastest_bps = spec.path.hops.iter().map(fastest_bps).max().unwrap_or(1);
    let offered_bps = spec.flows.iter().map(offered_bps).max().unwrap_or(1);
    let pkts_per_s = fastest_bps.max(offered_bps) / 8 / 1000 + 1;
    let most_ns = (RUN_PKTS * 1000 * NS_PER_MS / pkts_per_s).max(1);
    spec.duration_ns = spec.duration_ns.min(most_ns).min(RUN_NS);
    spec.record.bin_ns = spec.record.bin_ns.max(spec.duration_ns / 100);
    if let Ok(record) = knee_sim::run(&spec) {
        assert_eq!(record.flows.len(), spec.flows.len());
    }
}

fn fastest_bps(hop: &HopSpec) -> u64 {
    let steps = match &hop.rate_varies {
        Some(Varying::Steps(steps)) => steps.as_slice(),
        _ => &[],
    };
    steps.iter().map(|(_, bps)| *bps).fold(hop.rate_bps, u64::max)
}

fn offered_bps(flow: &FlowSpec) -> u64 {
    match &flow.kind {
        FlowKind::Tcp(_) => 0,
        FlowKind::Udp { rate_bps, steps, packet_bytes } => {
            let most = steps.iter().map(|(_, bps)| *bps).fold(*rate_bps, u64::max);
            most.saturating_mul(1000) / u64::from((*packet_bytes).max(1))
        }
        FlowKind::Probe { interval_ns, .. } => 8_000_000 * NS_PER_MS / (*interval_ns).max(1),
    }
}

/// Arguments of `--set`, one per line, on a scenario that has a table of every kind.
fn set(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let sets: Result<Vec<_>, _> = text.lines().map(Set::parse).collect();
    let Ok(sets) = sets else { return };
    if let Ok(scenario) = Scenario::parse("fuzz", EXAMPLE, &sets) {
        check(&scenario);
    }
}

const EXAMPLE: &str = r#"
duration = "2s"
[path]
rate = "5mbit"
rtt = "40ms"
queue = "20p"
[[flow]]
cc = "chd"
[[flow]]
cc = "cubic"
start = "100ms"
[[flow]]
kind = "udp"
rate = "200kbit"
"#;

/// A study of that scenario: if it is valid, its shards are all of its runs, and its first and last
/// points are scenarios or errors.
fn study(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(study) = Study::with_scenario("fuzz", text, EXAMPLE, Path::new("")) else { return };
    let runs = study.runs;
    for column in study.columns() {
        assert!(!column.labels.is_empty(), "{} has no values", column.key);
    }
    for number in [0, runs - 1] {
        if let Ok(run) = study.run(number) {
            assert_eq!(run.number, number);
            simulate(run.spec);
        }
    }
    let Ok(plan) = Plan::new(study, &knee_sim::Simulator, None) else { return };
    assert!(plan.estimate_s() >= 0.0, "{text}");
    assert_eq!(plan.shards.iter().map(knee_study::Shard::runs).sum::<u64>(), runs);
}

/// Arguments of the command line: entrants and paths of duels, values of parameters.
fn arguments(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    // Not the names of files: an algorithm in C becomes part of the process.
    if !text.contains(".c") && !text.contains('/') {
        let _ = Entrant::parse(text);
    }
    let _ = WrittenPath::parse(text);
    for algorithm in algorithms() {
        for param in algorithm.params() {
            let raw = param.parse(text).ok().and_then(|raw| u32::try_from(raw).ok());
            // A number that no choice has is no value yet.
            let Some(raw) = raw.filter(|raw| (param.min..=param.max).contains(raw)) else {
                continue;
            };
            let shown = param.show(raw);
            assert_eq!(param.parse(&shown), Ok(raw.into()), "{text:?} is shown as {shown:?}");
        }
    }
}

/// A delivery trace: if it is valid, its times make it again.
fn delivery(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Ok(trace) = DeliveryTrace::parse(text) {
        let times_ms: Vec<u64> = trace.times_ms().collect();
        assert_eq!(DeliveryTrace::new(&times_ms), Ok(trace));
    }
}

/// A file for `knee replay`.
fn trace(bytes: &[u8]) {
    let file = memory(bytes);
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    if let Ok(replay) = TraceReplay::of(Path::new(&path)) {
        let _ = replay.differences();
    }
}

fn memory(bytes: &[u8]) -> File {
    let mut file = File::from(memfd_create("fuzz", MemfdFlags::CLOEXEC).expect("memory"));
    file.write_all(bytes).expect("memory");
    file
}

/// A finished run that `knee reproduce` kept, with a checksum that is right.
fn kept(bytes: &[u8]) {
    thread_local! {
        static KEPT: Kept = Kept::new();
    }
    KEPT.with(|kept| {
        kept.put(bytes);
        let other = |_: &RunSpec| Err(HostError::new(HostErrorKind::Broken, "it is there"));
        let _ = kept.runs.or_run("fuzz", &kept.spec, other);
    });
}

/// A folder with one finished run.
pub struct Kept {
    folder: TempDir,
    runs: KeptRuns,
    spec: RunSpec,
}

/// The checksum before a record.
const CHECK_BYTES: usize = 32;

impl Kept {
    /// Makes the run.
    #[allow(clippy::new_without_default, reason = "it runs a simulation")]
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let runs = KeptRuns::made_by("fuzz", folder.path()).expect("the folder");
        let spec = Scenario::parse("fuzz", EXAMPLE, &[]).expect("valid").spec(1);
        let run = |spec: &RunSpec| {
            knee_sim::run(spec).map_err(|e| HostError::new(HostErrorKind::Broken, e.to_string()))
        };
        runs.or_run("fuzz", &spec, run).expect("a run");
        Self { folder, runs, spec }
    }

    fn file(&self) -> PathBuf {
        let mut files = fs::read_dir(self.folder.path()).expect("the folder");
        files.next().expect("a file").expect("its name").path()
    }

    /// The record without its checksum.
    pub fn record(&self) -> Vec<u8> {
        fs::read(self.file()).expect("the file")[CHECK_BYTES..].to_vec()
    }

    fn put(&self, record: &[u8]) {
        let file = [Sha256::digest(record).as_slice(), record].concat();
        fs::write(self.file(), file).expect("the file");
    }
}
