//! `knee duel` and `knee matrix`.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, assert_same_files, files, repository, text};
use knee_cc::algorithms;
use serde_json::Value;
use std::fs;

/// Small and quick: 10 s of 10 Mbit/s.
const QUICK: [&str; 4] = ["--path", "10mbit,40ms,1bdp", "--duration", "10s"];

fn duel(place: &Place, words: &[&str], duration: &str) -> Value {
    let common = ["--path", QUICK[1], "--duration", duration, "--format", "json"];
    place.json(&[&["duel"], words, &common].concat())
}

fn p50(cell: &Value, name: &str) -> f64 {
    cell[name]["p50"].as_f64().unwrap_or_else(|| panic!("{name}: {cell}"))
}

#[test]
fn who_is_named_first_does_not_matter() {
    let place = Place::new();
    let ab = duel(&place, &["chd:qth=20ms", "newreno", "--repeat", "3"], "10s");
    let ba = duel(&place, &["newreno", "chd:qth=20ms", "--repeat", "3"], "10s");
    assert_eq!((&ab["a"], &ab["b"]), (&ba["b"], &ba["a"]));
    for (here, there) in [
        ("a_beside_b", "b_beside_a"),
        ("b_beside_a", "a_beside_b"),
        ("a_beside_a", "b_beside_b"),
        ("b_beside_b", "a_beside_a"),
    ] {
        assert_eq!(ab[here], ba[there], "{here}");
    }
    // The shares of both sides add up to one.
    let (one, other) = (&ab["a_beside_b"], &ab["b_beside_a"]);
    assert!((p50(one, "share_a") + p50(other, "share_a") - 1.0).abs() < 1e-9);
    assert_eq!(one["goodput_a_bps"], other["goodput_b_bps"]);
    assert_eq!(one["queueing_mean_ms"], other["queueing_mean_ms"]);
    assert_eq!(one["loss_a"], other["loss_b"]);
}

#[test]
fn an_algorithm_against_itself_has_half() {
    let place = Place::new();
    for name in ["newreno", "chd"] {
        let d = duel(&place, &[name, name, "--repeat", "8"], "30s");
        assert_eq!(d["runs"].as_array().unwrap().len(), 8, "one order is both");
        let cell = &d["a_beside_b"];
        for (measure, middle) in [("share_a", 0.5), ("harm_goodput", 0.0), ("harm_delay", 0.0)] {
            let [low, median, high] =
                ["p20", "p50", "p80"].map(|p| cell[measure][p].as_f64().unwrap());
            assert!((median - middle).abs() < 1e-9, "{name}: {measure} {cell}");
            assert!((low + high - 2.0 * middle).abs() < 1e-9, "{name}: {measure} {cell}");
        }
        // Neither is favoured for having come first, as far as the repetitions can tell.
        let share = &d["a_first"]["share_a"];
        let [low, high] = ["p20", "p80"].map(|p| share[p].as_f64().unwrap());
        assert!(low <= 0.5 && 0.5 <= high, "{name} first: {share}");
    }
}

#[test]
fn known_results_of_delay_and_loss_based_flows_come_out() {
    let place = Place::new();
    let d = duel(&place, &["vegas", "newreno", "--repeat", "4"], "30s");
    let (vegas, newreno) = (&d["a_beside_b"], &d["b_beside_a"]);
    // Vegas yields to flows that fill the queue (Mo et al., INFOCOM 1999).
    assert!(p50(vegas, "share_a") < 0.4, "{vegas}");
    assert!(p50(newreno, "harm_goodput") > 0.1 && p50(newreno, "harm_delay") > 0.1, "{newreno}");
    assert!(p50(vegas, "harm_goodput") < 0.0, "NewReno gains: {vegas}");
    let own = |name: &str| p50(&d[name], "queueing_mean_ms");
    assert!(own("a_beside_a") < own("b_beside_b"));
    assert!(d["sentence"].as_str().unwrap().contains("vegas harms newreno by −"));
}

#[test]
fn the_same_seed_gives_the_same_and_another_gives_another() {
    let place = Place::new();
    let run = |more: &[&str]| {
        place.stdout(&[&["duel", "hd", "newreno", "--repeat", "2"], &QUICK[..], more].concat())
    };
    let first = run(&[]);
    assert_eq!(first, run(&["--jobs", "1"]));
    assert_ne!(first, run(&["--seed", "2"]));
    assert!(first.starts_with("On 10mbit,40ms,33p, hd gets "), "{first}");
    for word in ["hd first", "newreno first", "convergence (s)", "Harm", "of delay (%)"] {
        assert!(first.contains(word), "{word}: {first}");
    }
    assert!(first.lines().all(|l| l == l.trim_end()), "blanks at the ends of lines");
    assert_eq!(place.entries(), ["two.toml"], "nothing is kept unless asked for");
}

#[test]
fn the_folder_of_a_duel_is_complete_and_its_scenarios_run() {
    let place = Place::new();
    let words = ["duel", "chd:qth=20ms", "newreno", "--repeat", "2", "--out", "results"];
    let output = place.run(&[&words[..], &QUICK].concat());
    assert!(output.status.success());
    assert_eq!(text(&output.stderr), "results: results\n");
    let kept = files(&place.path("results"));
    for name in ["duel.json", "runs.parquet", "report.html", "figures/goodput-1.svg"] {
        assert!(kept.contains_key(name), "{name}: {:?}", kept.keys());
    }
    let json: Value = serde_json::from_slice(&kept["duel.json"]).unwrap();
    assert_eq!(json["runs"].as_array().unwrap().len(), 8);
    let html = text(&kept["report.html"]);
    assert!(html.contains("chd:qth=20ms against newreno") && html.contains("Host"));
    // A scenario is the duel's own: its first flow's goodput over the same stretch is the same.
    let summary = place.json(&["run", "results/scenarios/a-then-b.toml", "--format", "json"]);
    assert_eq!(summary["repetitions"], 2);
    let names = |s: &Value| s["runs"][0]["flows"].as_array().unwrap().len();
    assert_eq!(names(&summary), 2);
    assert_eq!(summary["runs"][0]["flows"][0]["kind"], "chd");
    let sets = ["b-then-a", "a-then-a", "b-then-b"].map(|n| format!("scenarios/{n}.toml"));
    assert!(sets.iter().all(|name| kept.contains_key(name)));
    let again = [&words[..6], &["again"], &QUICK[..]].concat();
    place.stdout(&again);
    assert_same_files(&place.path("results"), &place.path("again"));
}

#[test]
fn a_matrix_has_every_pair_of_the_registry_and_is_the_duels() {
    let place = Place::new();
    let matrix = ["matrix", "--repeat", "2", "--format", "json"];
    let json = place.json(&[&matrix[..], &QUICK].concat());
    let n = algorithms().len();
    assert_eq!(json["algorithms"].as_array().unwrap().len(), n);
    let cells = json["cells"].as_array().unwrap();
    assert_eq!(cells.len(), n * n);
    assert_eq!(json["solos"].as_array().unwrap().len(), n * 2);
    let find = |a: &str, b: &str| {
        let mut found = cells.iter().filter(|c| c["algorithm"] == a && c["beside"] == b);
        let cell = found.next().unwrap();
        assert!(found.next().is_none());
        cell
    };
    // Whole packets leave: in 20/3 s of 10 Mbit/s there may be one more than there is time for.
    let full = 1.0 + 12_000.0 / (10e6 * 20.0 / 3.0);
    for cell in cells {
        assert!(p50(cell, "harm_goodput") <= 1.0 && p50(cell, "utilisation") <= full, "{cell}");
        assert!((0.5..=1.0).contains(&p50(cell, "jain")), "{cell}");
        let mirror = find(cell["beside"].as_str().unwrap(), cell["algorithm"].as_str().unwrap());
        assert!((p50(cell, "share_a") + p50(mirror, "share_a") - 1.0).abs() < 1e-9, "{cell}");
    }
    let of_duel = &duel(&place, &["chd", "newreno", "--repeat", "2"], "10s")["a_beside_b"];
    let of_matrix = find("chd", "newreno");
    for (name, value) in of_duel.as_object().unwrap() {
        assert_eq!(value, &of_matrix[name], "{name}");
    }
    // Sorted by the share that they take.
    let shares: Vec<f64> = json["algorithms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a["mean_share"].as_f64().unwrap())
        .collect();
    assert!(shares.is_sorted_by(|a, b| a >= b), "{shares:?}");
    assert_eq!(place.entries(), ["knee-out", "two.toml"]);
    let kept = files(&place.path("knee-out/matrix"));
    for name in ["matrix.json", "cells.parquet", "runs.parquet", "solos.parquet", "report.html"] {
        assert!(kept.contains_key(name), "{name}");
    }
    for figure in ["share", "harm-goodput", "harm-delay", "queueing-p95", "loss", "jain", "plane"] {
        assert!(kept.contains_key(&format!("figures/{figure}-1.svg")), "{figure}");
    }
    let html = text(&kept["report.html"]);
    assert!(html.contains("smaller to the right") && !html.contains(" src="));
    assert_eq!(html.matches("class=\"drawing\"").count(), 9);
}

#[test]
fn a_matrix_of_two_paths() {
    let place = Place::new();
    let words = "matrix --cc chd,chd:qth=20ms,newreno --path 10mbit,40ms,84p --repeat 1 \
                 --path 10mbit,40ms,84p,loss=0.01 --duration 5s --out out";
    let words: Vec<&str> = words.split(' ').collect();
    let table = place.stdout(&words);
    for word in ["10mbit,40ms,84p:", "10mbit,40ms,84p,loss=0.01:", "chd:qth=20ms", "aggressiveness"]
    {
        assert!(table.contains(word), "{word}: {table}");
    }
    let json: Value =
        serde_json::from_slice(&fs::read(place.path("out/matrix.json")).unwrap()).unwrap();
    assert_eq!(json["cells"].as_array().unwrap().len(), 2 * 9);
    assert_eq!(json["paths"][1]["loss"], 0.01);
    assert!(place.path("out/figures/share-2.svg").exists());
}

/// The sentence in the documents is the output of the command next to it.
#[test]
fn the_documents_show_the_sentence_of_a_duel() {
    let text = repository("docs/how-to/compare-algorithms.md");
    let (_, rest) = text.split_once("```sh\nknee duel ").unwrap();
    let (words, rest) = rest.split_once('\n').unwrap();
    let words = words.split('#').next().unwrap().split_whitespace();
    let words: Vec<&str> = ["duel"].into_iter().chain(words).collect();
    let said = Place::new().stdout(&words);
    let quoted: Vec<&str> = rest
        .lines()
        .skip_while(|line| !line.starts_with("> "))
        .take_while(|line| line.starts_with("> "))
        .map(|line| &line[2..])
        .collect();
    assert_eq!(quoted.join(" "), said.lines().next().unwrap());
}
