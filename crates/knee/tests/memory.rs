//! Memory of the simulator, as `knee bench` shows it.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, text};
#[cfg(target_os = "linux")]
use std::os::unix::process::CommandExt;

/// Peak resident bytes without the pages of files, most packets queued.
fn bench(place: &Place, arguments: &str) -> (f64, f64) {
    let words = ["bench", "dumbbell", "--format", "json", "--rate", "10gbit"];
    let words: Vec<&str> = words.into_iter().chain(arguments.split(' ')).collect();
    let mut knee = place.knee(&words);
    // Huge pages would round each table up to 2 MB.
    #[cfg(target_os = "linux")]
    // SAFETY: one system call between fork and exec, no memory is allocated.
    unsafe {
        knee.pre_exec(|| Ok(nix::sys::prctl::set_thp_disable(true)?));
    }
    let output = knee.output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let value = |key: &str| json[key].as_f64().unwrap();
    (value("peak_anonymous_bytes"), value("max_held_pkts"))
}

#[test]
fn a_flow_takes_2_kb() {
    let place = Place::new();
    for cc in ["newreno", "chd"] {
        let of = |flows: &str| {
            bench(&place, &format!("--cc {cc} --flows {flows} --queue 33333p --duration 2s")).0
        };
        let per_flow = (of("10000") - of("16")) / 9984.0;
        println!("{cc}: {per_flow:.0} B per flow");
        assert!((500.0..=2000.0).contains(&per_flow), "{cc}: {per_flow} B per flow");
    }
}

/// Bytes for each packet in flight of 16 flows on a path that holds 333 333 packets, besides the queue;
/// `arguments` are those of a run that fills it.
fn per_packet_in_flight(arguments: &str) -> f64 {
    let place = Place::new();
    let (large, held) = bench(&place, arguments);
    assert!(held >= 300_000.0, "{held} packets in the queue: this measures nothing");
    let (small, _) = bench(&place, "--rtt 4ms --queue 333p --duration 1s");
    // The queue was full after the link had been busy for longer than a round-trip time.
    let in_flight = held + 10e9 * 0.4 / 12_000.0;
    (large - small) / in_flight
}

/// Slow start into a queue that takes all: each packet in flight is in a queue or a line of the network
/// (16 bytes) and on the scoreboard (8); tables grow by a sixteenth.
#[test]
fn a_packet_in_flight_takes_26_bytes() {
    let per_packet = per_packet_in_flight("--rtt 400ms --queue 3000000p --duration 6s");
    println!("{per_packet:.1} B per packet in flight");
    assert!((16.0..=26.0).contains(&per_packet), "{per_packet} B per packet in flight");
}

/// Slow start into a queue of 300 000: half of a window that is twice as large is lost, and the scoreboard,
/// the receiver's gaps and the retransmissions are in memory too.
#[test]
fn repairing_half_a_window_takes_47_bytes_per_packet() {
    let per_packet = per_packet_in_flight("--rtt 400ms --queue 300000p --duration 6s");
    println!("{per_packet:.1} B per packet in flight, with losses");
    assert!((16.0..=47.0).contains(&per_packet), "{per_packet} B per packet in flight");
}
