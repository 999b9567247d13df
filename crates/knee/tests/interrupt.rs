//! Runs that are stopped leave nothing that looks like results.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod common;

use common::Place;
use nix::sys::resource::{Resource, setrlimit};
use std::{
    fs,
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Child, Command},
    thread::sleep,
    time::{Duration, Instant},
};

const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

/// Longer than any test.
const LONG: [&[&str]; 4] = [
    &["run", "two.toml", "--out", "out", "--set", "duration=1000000s", "--set", "record.bin=10s"],
    &["reproduce", "chd", "--figure", "5", "--repeat", "10000", "--out", "out"],
    &["duel", "chd", "newreno", "--repeat", "10000", "--out", "out"],
    &["matrix", "--repeat", "10000", "--out", "out"],
];

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(120), "never: {what}");
        sleep(Duration::from_millis(5));
    }
}

/// Returns whether the program catches `signal`.
fn catches(child: &Child, signal: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:")).unwrap_or("0").trim();
    u64::from_str_radix(caught, 16).unwrap() & (1 << (signal - 1)) != 0
}

/// Processor time that the program has used, in hundredths of a second. To start takes a few.
fn cpu_ticks(child: &Child) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    // Behind the name, which may have any characters.
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
    fields.skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

fn unfinished(place: &Place) -> bool {
    place.entries().iter().any(|name| name.starts_with(".knee-unfinished-"))
}

/// Starts `arguments`, sends `signal` once the work is on; gives the signal that ended it.
fn stop(place: &Place, arguments: &[&str], signal: i32) -> Option<i32> {
    let mut child = place.knee(arguments).spawn().unwrap();
    until("at work", || unfinished(place) && catches(&child, SIGTERM));
    let pid = child.id().to_string();
    let kill = ["-c", "kill -\"$0\" \"$1\"", &signal.to_string(), &pid];
    assert!(Command::new("sh").args(kill).status().unwrap().success());
    let mut status = None;
    until("ended", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap().signal()
}

#[test]
fn interrupted_or_terminated_leaves_nothing() {
    for arguments in LONG {
        for signal in [SIGINT, SIGTERM] {
            let place = Place::new();
            // A shell makes 130 and 143 of these.
            assert_eq!(stop(&place, arguments, signal), Some(signal), "{arguments:?}");
            assert_eq!(place.entries(), ["two.toml"], "{arguments:?}, signal {signal}");
        }
    }
}

#[test]
fn remains_of_a_killed_run_are_hidden_and_removed_by_the_next() {
    for arguments in LONG {
        let place = Place::new();
        assert_eq!(stop(&place, arguments, SIGKILL), Some(SIGKILL));
        assert!(unfinished(&place), "the system gives no chance to clean up");
        assert!(!place.path("out").exists());

        let next: &[&str] = match arguments[0] {
            "run" => &["run", "two.toml", "--out", "out"],
            "duel" => &["duel", "chd", "hd", "--repeat", "1", "--duration", "4s", "--out", "out"],
            "matrix" => {
                &["matrix", "--cc", "chd,hd", "--repeat", "1", "--duration", "4s", "--out", "out"]
            }
            _ => &["reproduce", "chd", "--figure", "1", "--out", "out"],
        };
        place.stdout(next);
        assert_eq!(place.entries(), ["out", "two.toml"]);
        assert!(place.path("out/report.html").exists());
    }
}

/// A qlog folder is treated as results are.
#[test]
fn a_qlog_is_whole_or_absent() {
    let run = ["run", "two.toml", "--host", "quic", "--repeat", "1", "--qlog", "out", "--set"];
    let long = [&run[..], &["duration=10000s"]].concat();
    for signal in [SIGINT, SIGTERM] {
        let place = Place::new();
        assert_eq!(stop(&place, &long, signal), Some(signal));
        assert_eq!(place.entries(), ["two.toml"], "signal {signal}");
    }
    let place = Place::new();
    assert_eq!(stop(&place, &long, SIGKILL), Some(SIGKILL));
    assert!(unfinished(&place) && !place.path("out").exists());
    place.stdout(&[&run[..], &["duration=2s"]].concat());
    assert_eq!(place.entries(), ["out", "two.toml"]);
}

/// A limit on memory ends a simulation as a kill does, with a message.
#[test]
fn out_of_memory_it_says_so_and_keeps_no_results() {
    let place = Place::new();
    let huge = ["run", "two.toml", "--out", "out", "--set", "duration=10000s"];
    let mut command = place.knee(&[&huge[..], &["--set", "record.bin=1ms"]].concat());
    let limit = 1 << 28;
    // SAFETY: nothing but a system call between fork and exec.
    unsafe { command.pre_exec(move || Ok(setrlimit(Resource::RLIMIT_AS, limit, limit)?)) };
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("memory allocation of"), "{said}");
    assert!(!place.path("out").exists());
    place.stdout(&["run", "two.toml", "--out", "out"]);
    assert_eq!(place.entries(), ["out", "two.toml"]);
}

/// Without --out there is nothing to clean up, and the signal has its usual effect.
#[test]
fn a_run_that_keeps_nothing_just_ends() {
    let place = Place::new();
    let arguments = ["run", "two.toml", "--set", "duration=1000000s", "--set", "record.bin=10s"];
    let mut child = place.knee(&arguments).spawn().unwrap();
    until("at work", || cpu_ticks(&child) >= 30);
    assert!(child.try_wait().unwrap().is_none() && !catches(&child, SIGTERM));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(place.entries(), ["two.toml"]);
}
