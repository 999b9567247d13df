//! `knee run`.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, SCENARIO, assert_same_files, files, repository, text};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs};

fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            found.insert(key.clone());
            keys(value, found);
        }),
        Value::Array(list) => list.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

#[test]
fn table_tells_the_flows_and_the_bottleneck() {
    let place = Place::new();
    let table = place.stdout(&["run", "two.toml"]);
    assert!(!table.contains('\x1b'), "colours in a pipe");
    for word in ["chd-1", "newreno-2", "probe-3", "goodput (Mbit/s)", "queueing delay", "Jain"] {
        assert!(table.contains(word), "{word}: {table}");
    }
    assert!(table.contains("3 repetitions: median"), "{table}");
    assert!(table.lines().all(|l| l == l.trim_end()), "blanks at the ends of lines");
    assert_eq!(table, place.stdout(&["run", "two.toml", "--format", "table"]));
    assert_eq!(place.entries(), ["two.toml"], "nothing is kept unless asked for");
}

#[test]
fn json_is_the_documented_summary() {
    let place = Place::new();
    let summary = place.json(&["run", "two.toml", "--format", "json"]);
    assert_eq!(summary["repetitions"], 3);
    assert_eq!(summary["runs"].as_array().unwrap().len(), 3);
    assert_eq!(summary["seed"], 1);
    assert_eq!(summary["duration_s"], 5.0);
    assert_eq!(summary["host"], "sim");
    assert_eq!(summary["scenario"]["text"], SCENARIO);
    for run in summary["runs"].as_array().unwrap() {
        let utilisation = run["queue"]["utilisation"].as_f64().unwrap();
        assert!((0.5..=1.0).contains(&utilisation), "{utilisation}");
        for flow in &run["flows"].as_array().unwrap()[..2] {
            let c = |name: &str| flow["counters"][name].as_u64().unwrap();
            assert!(c("delivered_pkts") > 0);
            assert_eq!(
                c("sent_pkts"),
                c("delivered_pkts")
                    + c("duplicate_pkts")
                    + c("queue_drops_pkts")
                    + c("random_losses_pkts")
                    + c("in_network_pkts"),
                "every packet is somewhere"
            );
        }
    }
    let mut used = BTreeSet::new();
    keys(&summary, &mut used);
    let documented = ["results", "metrics"];
    let documented =
        documented.map(|page| repository(&format!("docs/reference/{page}.md"))).concat();
    let missing: Vec<_> = used.iter().filter(|k| !documented.contains(&format!("`{k}`"))).collect();
    assert!(missing.is_empty(), "not in docs/reference: {missing:?}");
}

#[test]
fn the_folder_holds_the_documented_files() {
    let place = Place::new();
    let transfers = ["--set", "flow.1.size=30kB", "--set", "flow.1.every=1s"];
    let rest = ["--trace", "--out", "results", "--format", "json"];
    let output = place.run(&[&["run", "two.toml"], &transfers[..], &rest[..]].concat());
    assert!(output.status.success());
    assert_eq!(text(&output.stderr), "results: results\n");
    assert_eq!(place.entries(), ["results", "two.toml"]);
    let kept = files(&place.path("results"));

    let documented = repository("docs/reference/results.md");
    let table = documented.split("\n\n").find(|p| p.starts_with("| file |")).unwrap();
    let listed: BTreeSet<String> = table
        .lines()
        .filter_map(|row| row.strip_prefix("| `")?.split('`').next().map(str::to_owned))
        .collect();
    let mut found: BTreeSet<String> = kept.keys().cloned().collect();
    let figures = found.split_off("figures/");
    let (figures, rest): (Vec<_>, Vec<_>) =
        figures.into_iter().partition(|name| name.starts_with("figures/"));
    found.extend(rest);
    found.insert("figures/".to_owned());
    assert_eq!(found, listed);
    assert!(!figures.is_empty() && figures.iter().all(|f| f.ends_with(".svg")), "{figures:?}");

    let summary: Value = serde_json::from_slice(&kept["summary.json"]).unwrap();
    assert_eq!(summary, serde_json::from_slice::<Value>(&output.stdout).unwrap());
    assert_eq!(summary["scenario"]["text"], text(&kept["scenario.toml"]));
    for (name, bytes) in kept.iter().filter(|(name, _)| name.ends_with(".parquet")) {
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{name}");
    }
    let report = text(&kept["report.html"]);
    for fact in ["Two flows", "chd-1", "Commit", env!("CARGO_PKG_VERSION")] {
        assert!(report.contains(fact), "{fact}");
    }
    for outside in ["src=\"http", "href=\"http", "url(http", "@import"] {
        assert!(!report.contains(outside), "the report needs a network: {outside}");
    }

    // The scenario that is kept runs by itself, and gives the same.
    fs::copy(place.path("results/scenario.toml"), place.path("again.toml")).unwrap();
    let again = place.json(&["run", "again.toml", "--format", "json"]);
    assert_eq!(again["runs"], summary["runs"]);
}

#[test]
fn without_records_their_tables_are_left_out() {
    let place = Place::new();
    place.stdout(&[
        "run",
        "two.toml",
        "--set",
        "record.queue_log=false",
        "--repeat",
        "1",
        "--out",
        "results",
    ]);
    let kept = files(&place.path("results"));
    assert!(!kept.contains_key("packets.parquet") && !kept.contains_key("trace.parquet"));
    assert!(kept.contains_key("flows.parquet") && kept.contains_key("probes.parquet"));
}

#[test]
fn same_seed_gives_the_same_bytes_with_any_number_of_threads() {
    let place = Place::new();
    for (out, jobs) in [("a", "1"), ("b", "1"), ("c", "2"), ("d", "1024")] {
        place.stdout(&["run", "two.toml", "--trace", "--jobs", jobs, "--out", out]);
    }
    for other in ["b", "c", "d"] {
        assert_same_files(&place.path("a"), &place.path(other));
    }
    place.stdout(&["run", "two.toml", "--trace", "--seed", "2", "--out", "e"]);
    assert_ne!(files(&place.path("a"))["flows.parquet"], files(&place.path("e"))["flows.parquet"]);
}

#[test]
fn a_repetition_can_be_run_again_by_its_seed() {
    let place = Place::new();
    let three = place.json(&["run", "two.toml", "--format", "json", "--seed", "7"]);
    assert_eq!(three["runs"][2]["seed"], 9);
    let mut one =
        place.json(&["run", "two.toml", "--format", "json", "--seed", "9", "--repeat", "1"]);
    assert_eq!(one["runs"][0]["repetition"], 1);
    one["runs"][0]["repetition"] = json!(3);
    assert_eq!(one["runs"][0], three["runs"][2]);
    assert_ne!(three["runs"][1]["queue"], three["runs"][2]["queue"], "seeds matter");
}

#[test]
fn set_replaces_values_the_last_one_wins() {
    let place = Place::new();
    let summary = place.json(&[
        "run",
        "two.toml",
        "--format",
        "json",
        "--repeat",
        "1",
        "--set",
        "path.rate=2mbit",
        "--set",
        "path.rate=5mbit",
        "--set",
        "flow.0.params.qth=20ms",
        "--set",
        "repeat=2",
    ]);
    assert_eq!(summary["repetitions"], 1, "an option is stronger than --set");
    let effective = summary["scenario"]["text"].as_str().unwrap();
    assert!(effective.contains("rate = \"5mbit\""), "{effective}");
    assert!(effective.contains("qth = \"20ms\""), "{effective}");
    let bytes = summary["runs"][0]["queue"]["departed_bytes"].as_u64().unwrap();
    let full = 5_000_000 / 8 * 5;
    assert!(bytes > full / 2 && bytes <= full, "{bytes}");
}

#[test]
fn existing_results_are_untouched() {
    let place = Place::new();
    place.stdout(&["run", "two.toml", "--out", "results"]);
    let before = files(&place.path("results"));
    let again = place.run(&["run", "two.toml", "--seed", "5", "--out", "results"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(files(&place.path("results")) == before);
    assert_eq!(place.entries(), ["results", "two.toml"]);
}
