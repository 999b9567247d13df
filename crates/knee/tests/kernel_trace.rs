//! `knee trace`, and the variants that it traces, as their user meets them. Needs root.
#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, text};
use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
    sys::{
        signal::{Signal, kill},
        socket::{SetSockOpt, sockopt::TcpCongestion},
    },
    unistd::Pid,
};
use std::{
    ffi::OsString,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, ChildStderr, Output},
    thread,
};

/// A variant that the kernel has until this goes.
struct Loaded {
    name: String,
    holder: Child,
}

impl Loaded {
    fn new(place: &Place, name: &str) -> Self {
        let name = format!("{name}{}", std::process::id());
        let mut holder =
            place.knee(&["kernel", "load", "chd", "--as", &name, "--hold"]).spawn().unwrap();
        // It says something once it is loaded.
        let mut line = String::new();
        BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains(&name), "{line}");
        Self { name, holder }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.holder.id() as i32), Signal::SIGTERM);
        let _ = self.holder.wait();
    }
}

/// A connection over loopback that sends `bytes` with the congestion control `name`; its port.
fn transfer(name: &str, bytes: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let receiver = thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        std::io::copy(&mut socket, &mut std::io::sink()).unwrap()
    });
    let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    TcpCongestion.set(&socket, &OsString::from(name)).unwrap();
    socket.write_all(&vec![7; bytes]).unwrap();
    drop(socket);
    assert_eq!(receiver.join().unwrap(), bytes as u64);
    port
}

/// `knee trace` at work: it has said what it traces.
fn tracing(place: &Place, arguments: &[&str]) -> (Child, BufReader<ChildStderr>) {
    let mut child = place.knee(&[&["trace"], arguments].concat()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.starts_with("tracing "), "{line}");
    (child, said)
}

/// Ends it as Ctrl-C does; returns its last messages.
fn interrupted((child, mut said): (Child, BufReader<ChildStderr>)) -> (Output, String) {
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    (child.wait_with_output().unwrap(), rest)
}

/// `--hold` says at its end whether the variant is gone: another command may have made it stay.
#[test]
fn held_variants_are_unloaded_or_reported() {
    let place = Place::new();
    for (persist, told) in [(false, "unloaded"), (true, "stays loaded")] {
        let mut variant = Loaded::new(&place, "h");
        let name = variant.name.clone();
        if persist {
            place.stdout(&["kernel", "persist", &name]);
        }
        kill(Pid::from_raw(variant.holder.id() as i32), Signal::SIGINT).unwrap();
        let mut said = String::new();
        variant.holder.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        let stays = place.stdout(&["kernel", "list"]).contains(&name);
        if stays {
            place.stdout(&["kernel", "unload", &name]);
        }
        assert!(said.contains(told) && said.contains(&name) && stays == persist, "{said}");
    }
}

#[test]
fn a_trace_can_be_replayed() {
    let place = Place::new();
    let variant = Loaded::new(&place, "t");
    let tracer = tracing(&place, &[&variant.name, "--out", "calls.parquet"]);
    transfer(&variant.name, 3_000_000);
    transfer(&variant.name, 1000);
    let (output, said) = interrupted(tracer);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains(" calls of 2 sockets, 0 dropped"), "{said}");
    let replayed = place.run(&["replay", "calls.parquet"]);
    assert_eq!(replayed.status.code(), Some(0), "{}", text(&replayed.stdout));
}

#[test]
fn csv_goes_to_standard_output_and_other_connections_are_left_out() {
    let place = Place::new();
    let variant = Loaded::new(&place, "u");
    // Found by letting the system choose.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let tracer = tracing(&place, &[&variant.name, "--port", &port.to_string()]);
    transfer(&variant.name, 100_000);
    let (output, said) = interrupted(tracer);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("0 calls of 0 sockets"), "{said}");
    let csv = text(&output.stdout);
    assert!(csv.lines().count() <= 1 && !csv.contains("127.0.0.1"), "{csv}");

    let tracer = tracing(&place, &[&variant.name, "--address", "127.0.0.1"]);
    transfer(&variant.name, 100_000);
    let (output, _) = interrupted(tracer);
    let csv = text(&output.stdout);
    let (head, rows) = csv.split_once('\n').unwrap();
    assert!(head.contains("cwnd_after_pkts") && head.contains("random"), "{head}");
    assert!(rows.lines().count() > 3 && rows.lines().all(|row| row.contains("127.0.0.1")));
}

#[test]
fn a_full_disk_keeps_no_trace() {
    let place = Place::new();
    let variant = Loaded::new(&place, "v");
    let disk = place.path("disk");
    fs::create_dir(&disk).unwrap();
    // Mounts are a thread's.
    let test = thread::spawn(move || {
        let (none, own) = (None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE);
        unshare(CloneFlags::CLONE_NEWNS).unwrap();
        mount(none, "/", none, own, none).unwrap();
        mount(Some("tmpfs"), &disk, Some("tmpfs"), MsFlags::empty(), Some("size=64k")).unwrap();
        let (child, mut said) = tracing(&place, &[&variant.name, "--out", "disk/calls.csv"]);
        while fs::read_dir(&disk).unwrap().count() > 0 {
            transfer(&variant.name, 1_000_000);
        }
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(2), "{rest}");
        assert!(rest.contains("No space left on device"), "{rest}");
    });
    test.join().unwrap();
}
