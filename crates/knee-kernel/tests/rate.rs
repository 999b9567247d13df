//! Profile RATE in the real kernel: the window and the pacing are the algorithm's, and the delivery
//! rate samples arrive. With `rate.c`, an algorithm that shows both. Needs root, as the tests in
//! `kernel.rs` do.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

#[path = "../clang.rs"]
mod clang;
mod common;

use common::*;
use libbpf_rs::{Link, MapCore, ObjectBuilder};
use rustix::net::sockopt;
use std::{
    net::TcpStream,
    ops::Range,
    os::fd::AsRawFd,
    path::Path,
    time::{Duration, Instant},
};

/// Name that `rate.c` registers.
const NAME: &str = "knee_rate";
/// Its window and pacing rate.
const WINDOW_PKTS: u32 = 100;
const PACING_BYTES_PER_S: u64 = 1_000_000;
/// Place of `cwnd_event_tx_start` in the operations (`cc/host/bpf/knee/kernel.h`). Kernels before 7.2 lack
/// it, and libbpf refuses a member that is set and that the kernel lacks.
const TX_START: Range<usize> = 16..24;
/// `sk_pacing_rate` of a socket that is not paced.
const UNPACED: u64 = u64::MAX;
/// `include/uapi/asm-generic/socket.h`.
const SO_MAX_PACING_RATE: libc::c_int = 47;

/// Compiles `rate.c` with the shim and registers it.
fn register() -> Link {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().unwrap();
    let object = folder.path().join("rate.bpf.o");
    let source = Path::new("crates/knee-kernel/tests/rate.c");
    clang::compile(&root, env!("KNEE_LIBBPF"), source, &object).unwrap_or_else(|e| panic!("{e}"));
    let mut object = ObjectBuilder::default().open_file(&object).unwrap();
    let mut ops = object.maps_mut().find(|m| *m.name() == *NAME).unwrap();
    ops.initial_value_mut().unwrap()[TX_START].fill(0);
    let mut object = object.load().unwrap();
    let mut ops = object.maps_mut().find(|m| *m.name() == *NAME).unwrap();
    ops.attach_struct_ops().unwrap()
}

fn limit_pacing(stream: &TcpStream, bytes_per_s: u32) {
    let (fd, at) = (stream.as_raw_fd(), (&raw const bytes_per_s).cast());
    let length = size_of::<u32>() as libc::socklen_t;
    // SAFETY: the kernel reads the number, which outlives the call.
    let result = unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, SO_MAX_PACING_RATE, at, length) };
    assert_eq!(result, 0);
}

/// Writes `n` bytes and waits until they are acknowledged.
fn deliver(stream: &mut TcpStream, bytes: &mut Bytes, n: usize) {
    let before = tcp_info(stream).tcpi_bytes_acked;
    bytes.write(stream, n);
    let acked = || tcp_info(stream).tcpi_bytes_acked - before;
    wait_until(|| acked() >= n as u64, "everything is acknowledged");
}

/// Sends `n` bytes over the bottleneck, of 20 Mbit/s; gives the time until all were acknowledged, and
/// the sender's view.
fn send(prepare: impl Fn(&TcpStream), n: usize) -> (Duration, libc::tcp_info) {
    let (far, _router) = bottleneck();
    let (to, arrived) = far.run(|| receiver("10.77.2.1:0"));
    let mut stream = connect(to, NAME);
    prepare(&stream);
    let start = Instant::now();
    let mut bytes = Bytes::new();
    deliver(&mut stream, &mut bytes, n);
    let (took, info) = (start.elapsed(), tcp_info(&stream));
    drop(stream);
    assert_eq!(arrived.join().unwrap(), bytes.hash());
    run("ip link del s0");
    (took, info)
}

/// One test: there is one name.
#[test]
fn window_and_pacing_are_the_algorithms() {
    despite_skips(|| {
        machine(&[NAME], || {
            let link = register();
            paces_at_its_rate();
            heeds_the_sockets_limit();
            begins_unpaced();
            drop(link);
        });
    });
}

/// `scripts/nightly.sh measured` runs this test: a busy machine sends later than it should.
#[test]
#[ignore = "needs an idle machine"]
fn pacing_is_no_slower_than_the_algorithms_rate() {
    despite_skips(|| {
        machine(&[NAME], || {
            let link = register();
            let (took, least) = paces_at_its_rate();
            assert!(took < least * 1.1, "{took:.2} s, not {least:.2} s");
            drop(link);
        });
    });
}

/// TCP's own timer paces: there is no fq on the device. Returns the seconds that the transfer took, and that it takes at
/// the algorithm's rate.
fn paces_at_its_rate() -> (f64, f64) {
    let n = 2 << 20;
    let (took, info) = send(|_| (), n);
    let least = n as f64 / PACING_BYTES_PER_S as f64;
    let took = took.as_secs_f64();
    // The first ten packets are not paced. At the path's own rate it would take 0.8 s; a busy machine takes longer.
    assert!(took > least * 0.95, "{took:.2} s, not {least:.2} s");
    assert_eq!(info.tcpi_snd_cwnd, WINDOW_PKTS);
    assert_eq!(info.tcpi_pacing_rate, PACING_BYTES_PER_S);
    // The latest delivery rate sample, packets/s, and the kernel's own figure of it.
    let rate = f64::from(info.tcpi_snd_ssthresh) * f64::from(info.tcpi_snd_mss);
    let kernels = info.tcpi_delivery_rate as f64;
    assert!((rate / kernels - 1.0).abs() < 0.02, "{rate} bytes/s, the kernel says {kernels}");
    (took, least)
}

fn heeds_the_sockets_limit() {
    let limit = 400_000;
    let n = 3 << 18;
    let (took, info) = send(|stream| limit_pacing(stream, limit), n);
    let least = n as f64 / f64::from(limit);
    assert!(took.as_secs_f64() > least * 0.9, "{took:?}, not {least:.2} s");
    assert_eq!(info.tcpi_pacing_rate, u64::from(limit));
}

/// Whatever another algorithm left.
fn begins_unpaced() {
    let (to, arrived) = receiver("127.0.0.1:0");
    let mut stream = connect(to, "reno");
    let mut bytes = Bytes::new();
    deliver(&mut stream, &mut bytes, 1 << 20);
    assert_ne!(tcp_info(&stream).tcpi_pacing_rate, UNPACED, "reno computes one");
    sockopt::set_tcp_congestion(&stream, NAME).unwrap();
    assert_eq!(tcp_info(&stream).tcpi_pacing_rate, UNPACED);
    deliver(&mut stream, &mut bytes, 1 << 18);
    assert_eq!(tcp_info(&stream).tcpi_pacing_rate, PACING_BYTES_PER_S);
    drop(stream);
    assert_eq!(arrived.join().unwrap(), bytes.hash());
}
