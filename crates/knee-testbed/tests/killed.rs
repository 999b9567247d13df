//! A run that is killed leaves nothing behind.

#![allow(missing_docs)]

mod common;

use common::{S, bulk, spec, ten_mbit};
use knee_model::{Host, Progress, RunOptions};
use knee_testbed::Kernel;
use std::{
    collections::BTreeSet,
    env, fs,
    io::{BufRead, BufReader, Write, stdout},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const CHILD: &str = "KNEE_TESTBED_CHILD";

/// Network namespaces that the process in `proc` holds: by a descriptor or by a thread in it.
fn held(proc: &Path) -> BTreeSet<String> {
    let entries = |dir| fs::read_dir(proc.join(dir)).into_iter().flatten().flatten();
    let descriptors = entries("fd").map(|e| e.path());
    let threads = entries("task").map(|e| e.path().join("ns/net"));
    let targets = descriptors.chain(threads).filter_map(|link| fs::read_link(link).ok());
    let targets = targets.map(|target| target.to_string_lossy().into_owned());
    targets.filter(|target| target.starts_with("net:[")).collect()
}

/// Waits for `done`, at most a minute.
fn until(mut done: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(60);
    while !done() {
        if Instant::now() > end {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
    true
}

#[test]
fn killed_run_leaves_no_namespace_and_no_device() {
    if env::var_os(CHILD).is_some() {
        let long = spec(ten_mbit(84), 1000 * S, vec![bulk("bulk")]);
        // Says so once bins have ended in which it sent.
        let tell = |progress| match progress {
            Progress::Flow { part, .. } if part.sent_pkts > 0 => {
                stdout().write_all(b"sending\n").expect("heard");
            }
            _ => {}
        };
        let result = Kernel.run_with_progress(&long, &RunOptions::default(), &tell);
        panic!("not killed: {result:?}");
    }
    let own = held(Path::new("/proc/self"));
    let mut child = Command::new(env::current_exe().expect("this test's path"))
        .args(["--exact", "killed_run_leaves_no_namespace_and_no_device"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut said = BufReader::new(child.stdout.take().expect("piped")).lines();
    let sends = said.any(|line| line.expect("text").ends_with("sending"));
    let proc = format!("/proc/{}", child.id());
    let mut namespaces = BTreeSet::new();
    let running = until(|| {
        namespaces = held(Path::new(&proc)).difference(&own).cloned().collect();
        let threads = fs::read_dir(format!("{proc}/task")).into_iter().flatten().flatten();
        let names = threads.filter_map(|t| fs::read_to_string(t.path().join("comm")).ok());
        namespaces.len() == 2 && names.into_iter().any(|name| name.trim() == "knee-path")
    });
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(
        sends && running,
        "the child did not get as far as its run; it needs root and /dev/net/tun"
    );

    let gone = until(|| {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        processes.map(|p| p.path()).all(|p| held(&p).is_disjoint(&namespaces))
    });
    assert!(gone, "{namespaces:?} are still held");
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("readable");
    for namespace in &namespaces {
        assert!(!mounts.contains(namespace), "{namespace} is mounted");
    }
    let devices = fs::read_to_string("/proc/net/dev").expect("readable");
    assert!(!devices.contains("knee-"), "{devices}");
}
