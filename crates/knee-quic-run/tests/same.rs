//! The same spec gives the same record; recorded calls happen again.

mod common;

use common::{MS, S, bulk, run, spec, tcp, ten_mbit};
use knee_model::{
    DelayedAck, FlowKind, FlowSpec, Replay, RunOptions, RunRecord, RunSpec, TcpOptions, Workload,
};
use std::{fs, thread};

/// Every algorithm competing with NewReno, with all that draws random numbers.
fn specs() -> Vec<RunSpec> {
    let algorithms = knee_cc::algorithms().iter().map(|algorithm| {
        let mut path = ten_mbit(60);
        (path.hops[0].loss, path.loss_reverse) = (0.005, 0.005);
        (path.jitter_forward_ns, path.jitter_reverse_ns, path.noise_ns) = (MS, MS, MS);
        let options = TcpOptions {
            delayed_ack: DelayedAck { every_pkts: 2, timeout_ns: 25 * MS },
            ..TcpOptions::default()
        };
        let transfers = Workload::Transfers { size_bytes: 50_000, every_ns: Some(S) };
        let mut flows = vec![
            bulk(algorithm.name()),
            tcp("newreno", transfers, options),
            FlowSpec::new("probe", FlowKind::Probe { interval_ns: 20 * MS, packet_bytes: 64 }),
        ];
        flows[0].name = "first".to_owned();
        (flows[0].start_jitter_ns, flows[0].access_jitter_ns) = (50 * MS, MS);
        (flows[1].start_ns, flows[1].access_delay_spread_ns) = (200 * MS, 5 * MS);
        flows[1].stop_ns = Some(9 * S);
        spec(path, 10 * S, flows)
    });
    algorithms.collect()
}

#[test]
fn the_same_in_any_number_of_threads() {
    let specs = specs();
    let first: Vec<RunRecord> = specs.iter().map(run).collect();
    let again = thread::scope(|s| {
        let runs: Vec<_> = specs.iter().rev().map(|spec| s.spawn(|| run(spec))).collect();
        runs.into_iter().rev().map(|run| run.join().expect("no panic")).collect::<Vec<_>>()
    });
    for ((spec, first), again) in specs.iter().zip(&first).zip(&again) {
        assert!(first == again, "{:?}", spec.flows[0].kind);
    }
    // And a seed matters.
    let other = run(&RunSpec { seed: 2, ..specs[0].clone() });
    assert!(other.flows[0].counters != first[0].flows[0].counters);
}

#[test]
fn every_call_can_be_made_again() {
    for spec in specs() {
        let record = run(&spec);
        for (spec, flow) in spec.flows.iter().zip(&record.flows) {
            let FlowKind::Tcp(tcp) = &spec.kind else { continue };
            let params = tcp.cc.params().expect("Knee's").clone();
            let mut replay = Replay::new(params);
            flow.trace.iter().for_each(|call| replay.call(call, 0));
            assert!(!replay.joined && replay.gaps == 0 && replay.compared > 100);
            assert_eq!((replay.differences, replay.compared), (0, flow.trace.len() as u64));
            // On the run's clock.
            let times = flow.trace.iter().map(|call| call.before.now_us);
            assert!(times.clone().is_sorted());
            assert!(times.clone().min() >= Some(flow.start_ns / 1000), "{}", flow.name);
            assert!(times.max() <= Some(record.duration_ns / 1000));
        }
    }
}

#[test]
fn a_trace_changes_nothing() {
    let mut spec = specs().swap_remove(0);
    let traced = run(&spec);
    spec.record = Default::default();
    let bare = run(&spec);
    let counters = |record: &RunRecord| record.flows.iter().map(|f| f.counters).collect::<Vec<_>>();
    assert_eq!(counters(&traced), counters(&bare));
    assert!(bare.flows[0].trace.is_empty() && bare.flows[0].rtt.count() == 0);
}

#[test]
fn qlogs_are_whole_and_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let spec = specs().swap_remove(0);
    let with = |name: &str| {
        let options = RunOptions { qlog: Some(folder.path().join(name)), ..RunOptions::default() };
        knee_quic_run::run_with(&spec, &options).expect("runs");
        let mut files: Vec<_> = fs::read_dir(folder.path().join(name))
            .expect("made")
            .map(|entry| entry.expect("readable").path())
            .collect();
        files.sort();
        files
    };
    let (first, again) = (with("a"), with("b"));
    let names = first.iter().map(|f| f.file_name().expect("named").to_owned()).collect::<Vec<_>>();
    assert_eq!(names, ["first.sqlog", "newreno.sqlog"]);
    for (first, again) in first.iter().zip(&again) {
        let (first, again) = (fs::read(first).expect("read"), fs::read(again).expect("read"));
        // JSON text sequences (RFC 7464): a record separator, a text, a line feed.
        let mut texts = first.split(|byte| *byte == 0x1e);
        assert_eq!(texts.next(), Some(&b""[..]));
        let mut events = 0;
        let mut last_ms = 0.0;
        for text in texts {
            assert_eq!(text.last(), Some(&b'\n'));
            let value: serde_json::Value = serde_json::from_slice(text).expect("JSON");
            if let Some(time_ms) = value["time"].as_f64() {
                assert!((last_ms..=10_000.0).contains(&time_ms));
                last_ms = time_ms;
                events += 1;
            }
        }
        assert!(events > 100 && last_ms > 5000.0, "{events} events to {last_ms} ms");
        assert!(first == again);
    }
    // Where no folder can be, there is an error that says so.
    let file = folder.path().join("file");
    fs::write(&file, "").expect("written");
    let options = RunOptions { qlog: Some(file), ..RunOptions::default() };
    let error = knee_quic_run::run_with(&spec, &options).expect_err("no folder");
    assert!(error.why.starts_with("cannot write the qlog") && error.why.contains("file"));
}
