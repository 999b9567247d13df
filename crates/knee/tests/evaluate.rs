//! `knee evaluate`: verdicts, their JSON, the record, resuming after an end, errors.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, text};
use serde_json::Value;
use std::{collections::BTreeSet, env, fs, path::Path};

/// A place with algorithms that are not fit to be used.
fn place() -> Place {
    let place = Place::new();
    fs::write(place.path("bad.c"), include_str!("bad.c")).unwrap();
    place
}

/// The JSON output of `knee evaluate` with `arguments`, and its exit code.
fn evaluated(place: &Place, arguments: &str) -> (Value, i32) {
    let all: Vec<&str> =
        ["evaluate"].into_iter().chain(arguments.split(' ')).chain(["--format", "json"]).collect();
    let mut knee = place.knee(&all);
    knee.env("PATH", env::var_os("PATH").unwrap()).env("TMPDIR", place.dir.path());
    let output = knee.output().unwrap();
    let json = serde_json::from_slice(&output.stdout);
    (
        json.unwrap_or_else(|e| panic!("{e}: {}", text(&output.stderr))),
        output.status.code().unwrap(),
    )
}

fn failing(evaluation: &Value) -> BTreeSet<String> {
    let criteria = evaluation["criteria"].as_array().unwrap();
    let failing = criteria.iter().filter(|c| c["verdict"] == "fails");
    failing.map(|c| c["id"].as_str().unwrap().to_owned()).collect()
}

/// A criterion that nothing fails would say nothing.
#[test]
fn every_criterion_is_failed_by_an_algorithm_that_should() {
    let place = place();
    let mut all = BTreeSet::new();
    let mut failed = BTreeSet::new();
    for fault in ["greedy", "timid", "unfair", "stuck"] {
        let arguments = format!("./bad.c:fault={fault} --quick --repeat 1");
        let (found, code) = evaluated(&place, &arguments);
        assert_eq!(code, 1, "{fault}");
        let criteria = found["criteria"].as_array().unwrap();
        all.extend(criteria.iter().map(|c| c["id"].as_str().unwrap().to_owned()));
        failed.extend(failing(&found));
    }
    let never: Vec<&String> = all.difference(&failed).collect();
    assert!(never.is_empty(), "nothing fails {never:?}");
    assert!(all.len() > 30, "{}", all.len());
}

/// Known results of algorithms come out.
#[test]
fn known_truths() {
    let place = place();
    let fails = |name: &str, criteria: &str| {
        let arguments = format!("{name} --quick --only {criteria} --against newreno");
        failing(&evaluated(&place, &arguments).0)
    };
    // Vegas starves against CUBIC and NewReno; NewReno does not against them.
    assert!(fails("vegas", "starvation").contains("starvation"));
    assert!(fails("newreno", "starvation").is_empty());
    // LEDBAT++ yields: it harms nobody, and starves.
    assert!(fails("ledbatpp", "harm-to-newreno").is_empty());
    assert!(fails("ledbatpp", "starvation").contains("starvation"));
    // CUBIC fills buffers.
    let (cubic, _) = evaluated(&place, "cubic --quick --only bufferbloat --against newreno");
    let point = cubic["criteria"][0]["points"]
        .as_array()
        .unwrap()
        .iter()
        .find(|p| p["point"]["queue"] == "8 BDP" && p["measured"]["unit"] == "ms");
    let point = point.unwrap();
    assert!(point["measured"]["p50"].as_f64().unwrap() > 100.0, "{point}");
    assert_ne!(point["verdict"], "passes");
    // CHD keeps its goodput under random loss, NewReno does not.
    let (chd, _) = evaluated(&place, "chd --quick --only random-loss --against newreno");
    let of = |who: &dyn Fn(&Value) -> f64| {
        let points = chd["criteria"][0]["points"].as_array().unwrap();
        let at = points.iter().find(|p| {
            p["point"]["loss"] == "0.01" && p["measured"]["measure"] == "goodput of the capacity"
        });
        who(&at.unwrap()["measured"])
    };
    let mine = of(&|m| m["p50"].as_f64().unwrap());
    let newreno = of(&|m| m["baselines"]["newreno"]["p50"].as_f64().unwrap());
    assert!(mine > 1.3 * newreno, "{mine} {newreno}");
}

#[test]
fn the_json_has_the_measures_and_a_command_that_shows_them() {
    let place = place();
    let arguments = "chd --quick --only starvation --repeat 3";
    let (found, code) = evaluated(&place, arguments);
    assert_eq!(code, 1);
    assert_eq!((&found["algorithm"], &found["repetitions"]), (&"chd".into(), &3.into()));
    let criterion = &found["criteria"][0];
    assert_eq!((&criterion["id"], &criterion["section"]), (&"starvation".into(), &"5.2".into()));
    assert_eq!(criterion["verdict"], "fails");
    assert_eq!(criterion["measured"]["n"], 3);
    assert_eq!(criterion["asked"]["direction"], "at least");
    let measured = criterion["measured"]["p50"].as_f64().unwrap();
    assert!(measured < criterion["asked"]["bound"].as_f64().unwrap());
    // The same again, whatever the threads did.
    assert_eq!(evaluated(&place, arguments).0, found);
    assert_eq!(evaluated(&place, &format!("{arguments} --jobs 1")).0, found);
    // The command of the worst run runs, from a folder that holds the scenarios.
    let command = criterion["worst"]["command"].as_str().unwrap();
    let scenarios = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    std::os::unix::fs::symlink(scenarios, place.path("scenarios")).unwrap();
    let arguments = command.strip_prefix("knee ").unwrap().replace('\'', "");
    let output = place.run(&arguments.split(' ').collect::<Vec<_>>());
    assert!(output.status.success(), "{command}: {}", text(&output.stderr));
}

#[test]
fn an_evaluation_that_ended_early_goes_on() {
    let place = place();
    let arguments = "copa --quick --only late-comer,wireless --keep kept";
    let (whole, _) = evaluated(&place, "copa --quick --only late-comer,wireless");
    assert_eq!(evaluated(&place, arguments).0, whole);
    let mut files: Vec<_> =
        fs::read_dir(place.path("kept")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 6, "{files:?}");
    // The runs that are missing are made, and only these.
    let made = |file: &Path| fs::metadata(file).unwrap().modified().unwrap();
    let before = made(&files[1]);
    fs::remove_file(&files[0]).unwrap();
    assert_eq!(evaluated(&place, arguments).0, whole);
    assert!(files[0].exists());
    assert_eq!(made(&files[1]), before);
    // The stored measures are read: a damaged file is an error.
    fs::write(&files[0], "half").unwrap();
    let all: Vec<&str> = ["evaluate"].into_iter().chain(arguments.split(' ')).collect();
    let output = place.run(&all);
    assert_eq!(output.status.code(), Some(2));
    let told = text(&output.stderr);
    assert!(told.contains("damaged") && told.contains("remove it to run it again"), "{told}");
}

/// An algorithm's file that has changed since is another algorithm.
#[test]
fn measures_of_an_edited_algorithm_are_not_reused() {
    let place = place();
    let arguments = "./bad.c:fault=stuck --quick --only wireless --keep kept";
    let (before, _) = evaluated(&place, arguments);
    assert_eq!(evaluated(&place, arguments).0, before);
    let source = include_str!("bad.c");
    assert_eq!(source.matches("kept_pkts = 40U").count(), 1);
    fs::write(place.path("bad.c"), source.replace("kept_pkts = 40U", "kept_pkts = 9U")).unwrap();
    assert_ne!(evaluated(&place, arguments).0, before);
}

#[test]
fn a_report_and_the_results() {
    let place = place();
    let output =
        place.run(&["evaluate", "vegas", "--quick", "--only", "starvation", "--out", "got"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    assert!(
        stdout.contains("1 fails") && stdout.contains("knee run scenarios/evaluation"),
        "{stdout}"
    );
    let html = fs::read_to_string(place.path("got/report.html")).unwrap();
    assert!(html.contains("Evaluation of vegas") && html.contains("in the worst run"));
    let json = fs::read(place.path("got/evaluation.json")).unwrap();
    let json: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["criteria"][0]["id"], "starvation");
}

#[test]
fn errors() {
    let place = place();
    for (arguments, told) in [
        ("evaluate chd --only nothing", "no such criterion: `nothing`"),
        ("evaluate nothing", "no such algorithm"),
        ("evaluate", "required"),
        ("evaluate chd --all", "cannot be used with"),
        ("evaluate chd --against nothing", "no such algorithm"),
        ("evaluate chd --repeat 0", "write an integer from 1"),
        ("evaluate chd --seeds 2 --repeat 2", "cannot be used with"),
        ("evaluate chd --seeds 2 --only nothing", "--seeds: write --repeat"),
    ] {
        let output = place.run(&arguments.split(' ').collect::<Vec<_>>());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(said.contains(told), "{arguments}: {said}");
    }
}
