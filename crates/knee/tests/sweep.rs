//! `knee sweep`: interruptions leave no trace in the data.
#![allow(clippy::unwrap_used)]

mod common;

use common::Place;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Child,
    thread::sleep,
    time::Duration,
};

const STUDY: &str = r#"title = "Small"
scenario = "base.toml"
repeat = 4
runs_per_shard = 6

[axes]
path.loss_forward = [0, 0.01]
flow.0.cc = ["chd", "newreno"]
path.rtt = { from = "10ms", to = "80ms", steps = 3 }

[keep]
tables = ["runs", "flows", "flow_series"]
"#;

fn place() -> Place {
    let place = Place::new();
    let base = "duration = \"20s\"\n[path]\nrate = \"10mbit\"\nrtt = \"40ms\"\nqueue = \"84p\"\n\
                [[flow]]\ncc = \"chd\"\nstart_jitter = \"10ms\"\n";
    fs::write(place.path("base.toml"), base).unwrap();
    fs::write(place.path("study.toml"), STUDY).unwrap();
    place
}

/// All files of a folder, by their paths in it.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for path in fs::read_dir(next).unwrap().map(|e| e.unwrap().path()) {
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.strip_prefix(folder).unwrap().to_owned();
                    all.insert(name, fs::read(path).unwrap());
                }
            }
        }
    }
    all
}

fn sweep(place: &Place, out: &str, more: &[&str]) {
    let words = [&["sweep", "study.toml", "--out", out], more].concat();
    let output = place.knee(&words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_killed_sweep_goes_on_to_the_same_bytes() {
    let place = place();
    sweep(&place, "undisturbed", &["--jobs", "2"]);
    let undisturbed = files(&place.path("undisturbed"));
    assert_eq!(undisturbed.keys().filter(|p| p.extension().unwrap() == "parquet").count(), 8 * 3);
    let finished = || {
        let parts = fs::read_dir(place.path("killed/runs")).into_iter().flatten().flatten();
        let parts = parts.flat_map(|e| fs::read_dir(e.path()).into_iter().flatten().flatten());
        parts.filter(|e| e.file_name().to_string_lossy().starts_with("part-")).count()
    };
    let mut stop_at = [0, 2, 3, 5, 7].into_iter();
    let mut kills = 0;
    // In the middle of a shard, wherever that is; from the start again if all were too late.
    for _ in 0..100 {
        let Some(stop_at) = stop_at.next().or((kills == 0).then_some(0)) else { break };
        if finished() == 8 {
            fs::remove_dir_all(place.path("killed")).unwrap();
        }
        let mut child =
            place.knee(&["sweep", "study.toml", "--out", "killed", "--jobs", "2"]).spawn().unwrap();
        while finished() < stop_at && child.try_wait().unwrap().is_none() {
            sleep(Duration::from_millis(1));
        }
        kills += u32::from(child.try_wait().unwrap().is_none());
        let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
        child.wait().unwrap();
    }
    assert!(kills > 0, "nothing was interrupted");
    sweep(&place, "killed", &["--jobs", "1"]);
    assert!(files(&place.path("killed")) == undisturbed, "the data differ");
    // Nothing is left to do.
    let again = place.knee(&["sweep", "study.toml", "--out", "killed"]).output().unwrap();
    let text = String::from_utf8_lossy(&again.stdout).into_owned();
    assert!(text.starts_with("0 runs in 0 shards; 8 shards from before"), "{text}");
    assert!(files(&place.path("killed")) == undisturbed, "the data differ");
}

#[test]
fn parts_give_the_same_bytes() {
    let place = place();
    sweep(&place, "whole", &[]);
    for part in ["1/3", "2/3", "3/3"] {
        sweep(&place, &format!("part-{}", &part[..1]), &["--shard", part, "--jobs", "1"]);
        sweep(&place, "shared", &["--shard", part]);
    }
    let words = ["sweep", "merge", "study.toml", "part-1", "part-2", "part-3", "--out", "merged"];
    let text = place.knee(&words).output().unwrap();
    assert!(
        String::from_utf8_lossy(&text.stdout)
            .starts_with("8 shards added; the data set is complete")
    );
    let whole = files(&place.path("whole"));
    assert!(files(&place.path("merged")) == whole, "the merged data differ");
    assert!(files(&place.path("shared")) == whole, "the shared data differ");
}

/// Returns whether the program catches `signal`.
fn catches(child: &Child, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:")).unwrap_or("0").trim();
    u64::from_str_radix(caught, 16).unwrap() & (1 << (signal as i32 - 1)) != 0
}

#[test]
fn a_signal_stops_it_between_runs() {
    let place = place();
    let long = STUDY.replace("repeat = 4", "repeat = 4000");
    fs::write(place.path("study.toml"), long).unwrap();
    let mut child = place.knee(&["sweep", "study.toml", "--out", "out"]).spawn().unwrap();
    while !place.path("out/study.json").exists() || !catches(&child, Signal::SIGINT) {
        assert!(child.try_wait().unwrap().is_none());
        sleep(Duration::from_millis(1));
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(String::from_utf8_lossy(&output.stderr).contains("run the same command again"));
    let left = files(&place.path("out"));
    assert!(left.keys().all(|p| !p.to_string_lossy().contains("unfinished")), "{:?}", left.keys());
}

/// A file system that is too small: the effect of a full disk.
#[test]
fn a_full_disk_is_told_and_gone_on_from() {
    let place = place();
    sweep(&place, "undisturbed", &[]);
    // Files of at most 16 blocks of 512 bytes.
    let knee = env!("CARGO_BIN_EXE_knee");
    let script =
        format!("ulimit -f 16; trap '' XFSZ; exec {knee} sweep study.toml --out full --jobs 1");
    let mut limited = std::process::Command::new("sh");
    let output = limited.args(["-c", &script]).current_dir(place.dir.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("cannot write") && text.contains("ulimit -f"), "{text}");
    let left = files(&place.path("full"));
    assert!(left.keys().all(|p| !p.to_string_lossy().contains("unfinished")), "{:?}", left.keys());
    sweep(&place, "full", &[]);
    assert!(files(&place.path("full")) == files(&place.path("undisturbed")), "the data differ");
}

#[test]
fn plan_and_status_are_shown() {
    let place = place();
    let text = |words: &[&str]| {
        let output = place.knee(words).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let plan = text(&["sweep", "plan", "study.toml"]);
    assert!(plan.starts_with("48 runs: 12 points, 4 repetitions\n"), "{plan}");
    assert!(plan.contains("path.rtt: 3 values, 10ms ... 80ms"), "{plan}");
    let script = text(&["sweep", "plan", "study.toml", "--slurm", "4", "--out", "it's"]);
    for part in ["--array=1-4", "--shard \"$SLURM_ARRAY_TASK_ID/4\"", "--out 'it'\\''s'"] {
        assert!(script.contains(part), "{script}");
    }
    sweep(&place, "data", &["--shard", "1/2"]);
    assert!(text(&["sweep", "status", "data"]).contains("4 of 8 shards"));
    sweep(&place, "data", &[]);
    let status = text(&["sweep", "status", "data"]);
    assert!(status.contains("48 of 48 runs") && status.contains(": complete"), "{status}");
}
