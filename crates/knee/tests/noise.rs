//! `--noise`: every command that runs scenarios takes it, names it in its results, and keeps its runs apart.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, text};
use serde_json::Value;
use std::fs;

fn run(place: &Place, noise: &[&str]) -> Value {
    place.json(&[&["run", "two.toml", "--format", "json"], noise].concat())
}

#[test]
fn a_run_names_its_noise_and_none_changes_nothing() {
    let place = Place::new();
    let quiet = run(&place, &[]);
    assert_eq!(quiet.get("noise_us"), None);
    assert_eq!(run(&place, &["--noise", "0us"]), quiet);
    let noisy = run(&place, &["--noise", "100us"]);
    assert_eq!(noisy["noise_us"], 100.0);
    assert!(noisy["scenario"]["text"].as_str().unwrap().contains("noise = \"100us\""));
    assert_ne!(noisy["runs"], quiet["runs"]);
    assert_eq!(run(&place, &["--set", "path.noise=100us"]), noisy);
    // The option is stronger than the scenario.
    let both = ["--set", "path.noise=1ms", "--noise"];
    assert_eq!(run(&place, &[&both[..], &["100us"]].concat())["runs"], noisy["runs"]);
    assert_eq!(run(&place, &[&both[..], &["0us"]].concat())["runs"], quiet["runs"]);
}

#[test]
fn a_replay_tells_the_noise_of_its_run() {
    let place = Place::new();
    let run = ["run", "two.toml", "--repeat", "1", "--trace", "--noise", "0.5ms", "--out", "got"];
    let output = place.run(&run);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("noise: 0 to 500us for each packet on each access link"));
    let report = fs::read_to_string(place.path("got/report.html")).unwrap();
    assert!(report.contains("0 to 0.5 ms for each packet"));
    let replay = place.stdout(&["replay", "got"]);
    assert!(replay.contains("noise of the run: 0 to 500 us on each access link"), "{replay}");
    assert!(replay.contains("bit-identically"), "{replay}");
}

#[test]
fn duels_evaluations_and_reproductions_name_it() {
    let place = Place::new();
    let common = ["--path", "10mbit,40ms,1bdp", "--duration", "10s", "--repeat", "1"];
    let noise = ["--noise", "1ms", "--format", "json"];
    let duel = place.json(&[&["duel", "vegas", "newreno"], &common[..], &noise[..]].concat());
    assert_eq!(duel["noise_us"], 1000.0);
    let plain = ["--format", "json"];
    let quiet = place.json(&[&["duel", "vegas", "newreno"], &common[..], &plain[..]].concat());
    assert_eq!(quiet.get("noise_us"), None);
    assert_ne!(duel["a_beside_b"], quiet["a_beside_b"]);
    let matrix = ["matrix", "--cc", "vegas,newreno", "--out", "matrix"];
    assert_eq!(place.json(&[&matrix[..], &common[..], &noise[..]].concat())["noise_us"], 1000.0);
    // C1 needs a single short run.
    let reproduce = ["reproduce", "chd", "--claim", "C1", "--repeat", "1", "--out", "claims"];
    let output = place.run(&[&reproduce[..], &noise[..]].concat());
    let claims: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(claims["set"][0], "path.noise=1ms", "{}", text(&output.stderr));
}

#[test]
fn kept_runs_with_noise_are_runs_of_their_own() {
    let place = Place::new();
    let evaluate = |noise: &[&str]| {
        let common = ["evaluate", "vegas", "--quick", "--only", "wireless", "--repeat", "1"];
        let rest = ["--keep", "kept", "--format", "json"];
        let output = place.run(&[&common[..], &rest[..], noise].concat());
        let evaluation: Value = serde_json::from_slice(&output.stdout).unwrap();
        (evaluation, fs::read_dir(place.path("kept")).unwrap().count())
    };
    let (quiet, files) = evaluate(&[]);
    let (noisy, more) = evaluate(&["--noise", "1ms"]);
    assert_eq!((quiet.get("set"), more), (None, 2 * files));
    assert_eq!(noisy["set"][0], "path.noise=1ms");
    let command = noisy["criteria"][0]["worst"]["command"].as_str().unwrap();
    assert!(command.contains("--set path.noise=1ms"), "{command}");
    assert_eq!(evaluate(&["--noise", "0ms"]), (quiet, more));
}

#[test]
fn bad_values_say_what_to_write() {
    let place = Place::new();
    for (value, told) in [("100", "has no unit"), ("-1us", "is negative"), ("2000000s", "1000000s")]
    {
        let output = place.run(&["run", "two.toml", "--noise", value]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{value}: {said}");
        assert!(said.contains("--noise") && said.contains(told), "{value}: {said}");
    }
}
