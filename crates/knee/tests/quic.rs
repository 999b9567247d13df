//! `--host quic`: scenarios over quinn's connections in virtual time.
#![cfg(feature = "quic")]
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, files, text};
use knee_results::trace::read_trace;
use serde_json::{Value, json};
use std::fs;

const SCENARIO: &str = r#"
duration = "10s"
repeat = 2
[path]
rate = "20mbit"
rtt = "40ms"
queue = "168p"
loss_forward = 0.01
"#;

/// A place with a scenario of two flows of each algorithm.
fn place() -> Place {
    let place = Place::new();
    let flow = |a: &knee_cc::Algorithm| format!("[[flow]]\ncc = \"{}\"\ncount = 2\n", a.name());
    let all = knee_cc::algorithms().iter().map(flow);
    let text: String = [SCENARIO.to_owned()].into_iter().chain(all).collect();
    fs::write(place.path("s.toml"), text).unwrap();
    place
}

#[test]
fn traces_over_quic_are_the_same_again() {
    let place = place();
    place.stdout(&["run", "s.toml", "--host", "quic", "--trace", "--out", "results"]);
    let mut calls = 0;
    read_trace(&place.path("results"), |_| calls += 1).unwrap();
    let output = place.run(&["replay", "results"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", text(&output.stderr));
    assert!(
        calls > 10_000 && said.contains(&format!("{calls} calls replay bit-identically")),
        "{said}"
    );
    let summary: Value =
        serde_json::from_slice(&files(&place.path("results"))["summary.json"]).unwrap();
    assert_eq!(summary["host"], "quic");
    let notes = summary["runs"][0]["approximations"].as_array().unwrap();
    assert!(notes.iter().any(|n| n.as_str().unwrap().contains("RFC 9002")), "{notes:?}");
}

#[test]
fn qlogs_are_whole_and_of_one_repetition() {
    let place = place();
    let run = |given: &[&str]| {
        let output = place.run(&[&["run", "s.toml", "--qlog", "q"], given].concat());
        (output.status.code(), text(&output.stderr))
    };
    let (code, said) = run(&["--host", "quic"]);
    assert!(code == Some(2) && said.contains("--repeat 1"), "{said}");
    let (code, said) = run(&["--repeat", "1"]);
    assert!(code == Some(2) && said.contains("--host quic"), "{said}");
    assert!(!place.path("q").exists());
    let (code, said) = run(&["--host", "quic", "--repeat", "1"]);
    assert_eq!(code, Some(0), "{said}");
    let logs = files(&place.path("q"));
    assert_eq!(logs.len(), 2 * knee_cc::algorithms().len());
    for (name, log) in logs {
        // JSON text sequences (RFC 7464).
        let log = text(&log);
        let events: Vec<Value> = log
            .split('\u{1e}')
            .filter(|event| !event.trim().is_empty())
            .map(|event| serde_json::from_str(event).unwrap_or_else(|e| panic!("{name}: {e}")))
            .collect();
        assert!(events.len() > 100, "{name}: {} events", events.len());
    }
    let (code, said) = run(&["--host", "quic", "--repeat", "1"]);
    assert!(code == Some(2) && said.contains("already exists"), "{said}");
}

#[test]
fn simulator_and_quic_are_compared() {
    let place = place();
    let compare =
        |hosts: &str, out: &str| place.run(&["compare", "s.toml", "--host", hosts, "--out", out]);
    let output = compare("sim,quic", "r");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let kept = files(&place.path("r"));
    let all: Value = serde_json::from_slice(&kept["compare.json"]).unwrap();
    assert_eq!(all["hosts"], json!(["sim", "quic"]));
    // Fifty flows keep a queue of 168 packets full: 100 ms, and no part of the link idle.
    let median = |name: &str, host: usize| {
        let measures = all["measures"].as_array().unwrap();
        let measure = measures.iter().find(|m| m["measure"] == name && m["flow"].is_null());
        measure.unwrap()["hosts"][host]["value"]["p50"].as_f64().unwrap()
    };
    for host in [0, 1] {
        let queueing_ms = median("queueing delay, median", host);
        assert!((94.0..100.8).contains(&queueing_ms), "{queueing_ms}");
        assert!((99.5..=100.0).contains(&median("utilisation", host)));
    }
    for hosts in ["sim", "sim,sim"] {
        let output = compare(hosts, "other");
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("two or three"), "{}", text(&output.stderr));
        assert!(!place.path("other").exists());
    }
}

#[test]
fn limits_of_quic_are_reported() {
    let place = place();
    let refused = |given: &[&str]| {
        let output = place.run(&[&["run", "s.toml"], given].concat());
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let said = refused(&["--host", "quic", "--set", "flow.0.cc=kernel:cubic"]);
    assert!(said.contains("kernel:cubic") && said.contains("choose"), "{said}");
    let said = refused(&["--host", "quic", "--set", "tcp.packet=600B"]);
    assert!(said.contains("tcp.packet") && said.contains("1228"), "{said}");
    let said = refused(&["--set", "flow.0.transport=quic"]);
    assert!(said.contains("--host quic"), "{said}");
    let said = refused(&["--set", "flow.0.transport=sctp"]);
    assert!(said.contains("transport") && said.contains("quic"), "{said}");
}
