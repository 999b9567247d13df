//! `knee replay`, on traces of the simulator.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, text};
use knee_cc::{Call, Profile};
use knee_results::trace::{TraceRow, TraceWriter, read_trace};
use std::fs::{self, File};

/// Two flows of every algorithm, which lose packets at random and in the queue, together. Without
/// jitter those whose timers fall on the link's clock find the queue full each time (phase effects).
fn scenario() -> String {
    let path = "duration = \"20s\"\nrepeat = 2\n[path]\nrate = \"40mbit\"\nrtt = \"30ms\"\n\
                queue = \"120p\"\nloss_forward = 0.005\nloss_reverse = 0.01\n[record]\ntrace = true\n";
    let flow = |a: &knee_cc::Algorithm| {
        format!("[[flow]]\ncc = \"{}\"\ncount = 2\naccess_jitter = \"1ms\"\n", a.name())
    };
    [path.to_owned()].into_iter().chain(knee_cc::algorithms().iter().map(flow)).collect()
}

fn rows(place: &Place, name: &str) -> Vec<TraceRow> {
    let mut rows = Vec::new();
    read_trace(&place.path(name), |row| rows.push(row)).unwrap();
    rows
}

fn write(place: &Place, name: &str, rows: &[TraceRow]) {
    let file = File::create(place.path(name)).unwrap();
    let mut to = match name.ends_with(".csv") {
        true => TraceWriter::csv(file).unwrap(),
        false => TraceWriter::parquet(file).unwrap(),
    };
    rows.iter().for_each(|row| to.push(row.clone()).unwrap());
    to.finish().unwrap();
}

/// Exit code and standard output.
fn replay(place: &Place, name: &str) -> (Option<i32>, String) {
    let output = place.run(&["replay", name]);
    (output.status.code(), [text(&output.stdout), text(&output.stderr)].concat())
}

#[test]
fn traces_of_the_simulator_are_the_same_again() {
    let place = Place::new();
    fs::write(place.path("all.toml"), scenario()).unwrap();
    place.stdout(&["run", "all.toml", "--trace", "--out", "results"]);
    let rows = rows(&place, "results");
    let (code, said) = replay(&place, "results");
    assert_eq!(code, Some(0), "{said}");
    let calls = rows.len();
    assert!(said.contains(&format!("{calls} calls replay bit-identically")), "{said}");
    for a in knee_cc::algorithms() {
        let of = |call: &str| {
            let mine = rows.iter().filter(|r| *r.flow.kind == *a.name());
            mine.filter(|r| r.call.call.name() == call).count()
        };
        assert_eq!(of("init"), 4, "two flows, twice");
        // Profile RATE has on_ack alone, and is told of timeouts and idleness only.
        let (every_ack, least_events) = match a.profile() {
            Profile::Classic => ("on_rtt", 5),
            Profile::Rate => ("on_ack", 0),
        };
        let calls = [every_ack, "ssthresh", "on_event"].map(of);
        assert!(calls[0] > 500 && calls[1] > 4 && calls[2] >= least_events, "{a:?}: {calls:?}");
    }

    // Both kinds of file hold the same.
    for name in ["copy.csv", "copy.parquet"] {
        write(&place, name, &rows);
        assert!(self::rows(&place, name) == rows, "{name}");
        assert_eq!(replay(&place, name).0, Some(0), "{name}");
    }

    // One bit of one call, whether it went in or came out, shows.
    let flow = rows[0].flow.clone();
    // A call that leaves the window alone, so that a window that goes in comes out.
    let half = rows.iter().take_while(|r| r.flow == flow).count() / 2;
    let middle = half + rows[half..].iter().position(|r| r.call.call == Call::OnRtt).unwrap();
    // An ACK that a delivery rate sample came with, of an algorithm that keeps what it says.
    let sampled = |r: &TraceRow| &*r.flow.kind == "bbr" && r.call.ack.sample_us > 0;
    let sampled = rows.iter().rposition(sampled).unwrap();
    type Change = fn(&mut TraceRow);
    let changes: [(usize, &str, Change); 8] = [
        (sampled, "state", |r| r.call.ack.sample_pkts *= 1000),
        (sampled, "pacing_after_bytes_per_s", |r| r.call.after.pacing_bytes_per_s ^= 1),
        (middle, "cwnd_after_pkts", |r| r.call.before.cwnd_pkts ^= 1),
        (middle, "ssthresh_after_pkts", |r| r.call.after.ssthresh_pkts ^= 1),
        (middle, "notes", |r| r.call.after.notes ^= 1),
        (middle, "result_pkts", |r| r.call.result ^= 1),
        (middle, "observe_0", |r| r.call.observed[0] ^= 1),
        (middle, "state", |r| {
            let mut bytes = *r.call.state.bytes();
            bytes[2] ^= 1;
            r.call.state = bytes.into();
        }),
    ];
    for (at, shows, change) in changes {
        let mut rows = rows.clone();
        change(&mut rows[at]);
        write(&place, "changed.parquet", &rows);
        let (code, said) = replay(&place, "changed.parquet");
        assert_eq!(code, Some(1), "{shows}: {said}");
        assert!(said.contains(&format!("  {shows}: recorded ")), "{shows}: {said}");
        assert!(said.contains("the first one") && said.contains("inputs: "), "{said}");
    }

    // A missing record is a difference, unless the trace says that some were dropped.
    let mut gap = rows.clone();
    gap.drain(middle..middle + 40);
    write(&place, "gap.parquet", &gap);
    assert_eq!(replay(&place, "gap.parquet").0, Some(1));
    gap[middle..].iter_mut().filter(|r| r.flow == flow).for_each(|r| r.dropped = 40);
    write(&place, "gap.parquet", &gap);
    let (code, said) = replay(&place, "gap.parquet");
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("records were dropped; 1 calls only gave the state to continue from"),
        "{said}"
    );
}

#[test]
fn a_file_that_is_no_trace_is_refused() {
    let place = Place::new();
    place.stdout(&["run", "two.toml", "--out", "results"]);
    fs::write(place.path("empty.csv"), "").unwrap();
    fs::write(place.path("cut.parquet"), "PAR1 and no more").unwrap();
    fs::copy(place.path("results/flows.parquet"), place.path("flows.parquet")).unwrap();
    for (name, why) in [
        ("results", "cannot be read"),
        ("none.parquet", "cannot be read"),
        ("empty.csv", "no column"),
        ("cut.parquet", "is not a trace"),
        ("flows.parquet", "no column"),
    ] {
        let (code, said) = replay(&place, name);
        assert_eq!(code, Some(2), "{name}: {said}");
        assert!(said.replace('\n', " ").contains(why), "{name}: {said}");
    }
}
