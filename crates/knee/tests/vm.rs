//! Runs in a virtual machine: the same bytes each time, however busy this machine is, and nothing
//! left of one that is killed. They need QEMU and a kernel in this user's cache (`knee vm fetch`):
//! without these they fail, and say how to get them.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used)]

mod common;

use common::Place;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    collections::BTreeMap,
    env, fs,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread::{self, sleep},
    time::{Duration, Instant},
};

/// CHD on a lossy path, with everything that can be kept.
const CHD: &str = r#"duration = "3s"
repeat = 1

[path]
rate = "10mbit"
rtt = "40ms"
queue = "84p"
loss_forward = 0.01

[record]
bin = "100ms"
queue_log = true

[[flow]]
cc = "chd"
"#;

const RUN: [&str; 7] = ["run", "chd.toml", "--host", "vm", "--trace", "--out", "out"];

fn place() -> Place {
    let place = Place::new();
    fs::write(place.path("chd.toml"), CHD).unwrap();
    place
}

/// `knee`, with the cache of this user.
fn knee(place: &Place, arguments: &[&str]) -> Command {
    let mut knee = place.knee(arguments);
    for name in ["HOME", "XDG_CACHE_HOME", "PATH"] {
        if let Some(value) = env::var_os(name) {
            knee.env(name, value);
        }
    }
    knee
}

fn succeeds(mut knee: Command) {
    let output = knee.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// All files below `folder`, with their contents.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_owned();
                files.insert(name, fs::read(path).unwrap());
            }
        }
    }
    files
}

/// One run, with packets.
fn run() -> BTreeMap<PathBuf, Vec<u8>> {
    let place = place();
    let mut arguments = RUN.to_vec();
    arguments.extend(["--pcap", "packets.pcapng"]);
    succeeds(knee(&place, &arguments));
    let mut all = files(&place.path("out"));
    let packets = fs::read(place.path("packets.pcapng")).unwrap();
    assert!(packets.len() > 1_000_000, "{}", packets.len());
    all.insert("packets.pcapng".into(), packets);
    all
}

/// Runs `work` while every core has more to do than it can.
fn under_load<T>(work: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    thread::scope(|s| {
        for _ in 0..2 * thread::available_parallelism().unwrap().get() {
            s.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = work();
        over.store(true, Ordering::Relaxed);
        result
    })
}

#[test]
fn a_run_gives_the_same_bytes_under_load() {
    let (quiet, loaded) = (run(), under_load(run));
    let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&quiet), names(&loaded));
    for (name, bytes) in &quiet {
        assert!(*bytes == loaded[name], "{} differs", name.display());
    }
    let summary = String::from_utf8_lossy(&quiet[Path::new("summary.json")]).into_owned();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["host"], "vm");
    for fact in ["kernel package", "QEMU", "virtual machine (SHA-256)"] {
        assert!(summary["made_with"][fact].is_string(), "{fact}: {}", summary["made_with"]);
    }
}

#[test]
fn traces_replay_natively() {
    let place = place();
    succeeds(knee(&place, &RUN));
    succeeds(knee(&place, &["replay", "out"]));
}

/// Processes with this parent.
fn children(parent: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let of = |task: fs::DirEntry| fs::read_to_string(task.path().join("children")).ok();
    let lists: Vec<String> = tasks.filter_map(of).collect();
    lists.iter().flat_map(|list| list.split_whitespace()).map(|id| id.parse().unwrap()).collect()
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(120), "never: {what}");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn nothing_is_left_of_a_killed_run() {
    let place = place();
    let cached = || {
        let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let cache =
            cache.unwrap_or_else(|| Path::new(&env::var_os("HOME").unwrap()).join(".cache"));
        let mut names: Vec<_> = fs::read_dir(cache.join("knee/vm"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        names
    };
    // Booted once, so that what is killed is a run.
    succeeds(knee(&place, &["run", "chd.toml", "--host", "vm", "--set", "duration=100ms"]));
    let (before, entries) = (cached(), place.entries());
    for signal in [Signal::SIGKILL, Signal::SIGINT] {
        let endless = ["run", "chd.toml", "--host", "vm", "--set", "duration=100000s"];
        let mut run = knee(&place, &endless).spawn().unwrap();
        let mut machines = Vec::new();
        until("a machine", || {
            machines = children(run.id());
            !machines.is_empty()
        });
        sleep(Duration::from_secs(2));
        kill(Pid::from_raw(run.id() as i32), signal).unwrap();
        assert_eq!(run.wait().unwrap().signal(), Some(signal as i32));
        let alive = |id: &u32| {
            let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
            status.lines().any(|l| l.starts_with("State:") && !l.contains('Z'))
        };
        until("the machine's end", || !machines.iter().any(alive));
        assert_eq!(cached(), before);
        assert_eq!(place.entries(), entries);
    }
}

#[test]
fn what_is_missing_is_said_with_the_remedy() {
    let place = place();
    let fails = |knee: &mut Command| {
        let output = knee.output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).replace('\n', " ")
    };
    let run = ["run", "chd.toml", "--host", "vm", "--kernel"];
    let with = |kernel| [&run[..], &[kernel]].concat();
    // No kernel in the cache.
    let empty = place.path("cache");
    let said = fails(knee(&place, &with("debian:6.12")).env("XDG_CACHE_HOME", &empty));
    assert!(said.contains("knee vm fetch debian:6.12"), "{said}");
    // Something else than a kernel.
    let said = fails(&mut knee(&place, &with("./chd.toml")));
    assert!(said.contains("not a Linux kernel (bzImage) for x86-64"), "{said}");
    let said = fails(&mut knee(&place, &with("6.12")));
    assert!(said.contains("debian:6.12"), "{said}");
    // No QEMU.
    let said = fails(knee(&place, &run[..4]).env("PATH", ""));
    assert!(said.contains("qemu-system-x86"), "{said}");
}
