//! `knee reproduce`.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, assert_same_files, files, repository, text};
use serde_json::Value;
use std::fs;

/// True if the repository's file records claim `id` of the CHD paper as holding, and true if the claim
/// has a condition in addition to its range.
fn recorded(id: &str) -> (bool, bool) {
    let file = repository("scenarios/chd/claims.toml");
    let own = file.split("[[claim]]").find(|c| c.contains(&format!("id = \"{id}\"\n"))).unwrap();
    (own.contains("\nholds = true\n"), own.contains("\nguard = "))
}

/// The exit code for verdicts of one repetition each: 0 if all are as recorded, else 1. It follows
/// from the measured values, the accepted ranges and the file of the record.
fn expected_code(claims: &Value) -> i32 {
    let mut differs = false;
    for claim in claims["claims"].as_array().unwrap() {
        let value = claim["measured"]["p50"].as_f64().unwrap();
        let [low, high] = [0, 1].map(|end| claim["accepted"][end].as_f64());
        let within = low.is_none_or(|low| low <= value) && high.is_none_or(|high| value <= high);
        let (on_record, guarded) = recorded(claim["id"].as_str().unwrap());
        let holds = claim["holds"].as_bool().unwrap();
        assert!(holds == within || (guarded && within), "{claim}");
        assert_eq!(claim["recorded_holds"].as_bool(), Some(on_record), "{claim}");
        differs |= holds != on_record || claim["cause"]["shown"] == false;
    }
    i32::from(differs)
}

#[test]
fn claims_have_the_documented_fields() {
    let place = Place::new();
    let output = place.run(&[
        "reproduce",
        "chd",
        "--figure",
        "4",
        "--repeat",
        "1",
        "--format",
        "json",
        "--out",
        "r",
    ]);
    let claims: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(expected_code(&claims)));
    assert_eq!(text(&output.stderr), "report: r/report.html\n");

    let list = claims["claims"].as_array().unwrap();
    assert!(!list.is_empty());
    for claim in list {
        for field in ["id", "paper", "figure", "statement", "paper_value", "host", "note", "unit"] {
            assert!(claim[field].is_string(), "{field}: {claim}");
        }
        assert_eq!(claim["paper"], "chd");
        assert_eq!(claim["figure"], "4");
        assert_eq!(claim["host"], "sim");
        assert!(claim["holds"].is_boolean() && claim["recorded_holds"].is_boolean());
        let accepted = claim["accepted"].as_array().unwrap();
        assert_eq!(accepted.len(), 2);
        assert!(claim.as_object().unwrap().contains_key("cause"), "{claim}");
        assert!(accepted.iter().all(|end| end.is_number() || end.is_null()), "{claim}");
        let measured = &claim["measured"];
        assert_eq!(measured["n"], 1);
        for percentile in ["p20", "p50", "p80"] {
            assert_eq!(measured[percentile].as_f64(), measured["p50"].as_f64());
            assert!(measured[percentile].is_number(), "{claim}");
        }
    }

    let kept = files(&place.path("r"));
    assert_eq!(serde_json::from_slice::<Value>(&kept["claims.json"]).unwrap(), claims);
    let report = text(&kept["report.html"]);
    for claim in list {
        assert!(report.contains(claim["id"].as_str().unwrap()));
    }
    let figures: Vec<_> = kept.keys().filter(|name| name.starts_with("figures/")).collect();
    assert!(figures.len() >= 2 && kept.len() == figures.len() + 2, "{:?}", kept.keys());
}

/// The whole paper with few repetitions, so that some verdicts may differ from the record.
#[test]
fn exit_code_follows_from_recorded_verdicts() {
    let place = Place::new();
    let mut claims = 0;
    let mut codes = Vec::new();
    for figure in ["5", "6", "7", "8", "9"] {
        let output = place.run(&[
            "reproduce",
            "chd",
            "--figure",
            figure,
            "--repeat",
            "1",
            "--format",
            "json",
        ]);
        let verdicts: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(expected_code(&verdicts)), "figure {figure}");
        codes.push(output.status.code());
        claims += verdicts["claims"].as_array().unwrap().len();
    }
    assert!(claims > 10);
    // C9 of figure 5 is at the edge of its range, and a single repetition misses it.
    assert_eq!(codes, [1, 0, 0, 0, 0].map(Some));
}

#[test]
fn threads_change_nothing() {
    let place = Place::new();
    let said: Vec<Vec<u8>> = ["1", "2"]
        .map(|jobs| {
            let out = format!("jobs-{jobs}");
            let figure = ["reproduce", "chd", "--figure", "5", "--repeat", "2"];
            place.run(&[&figure[..], &["--jobs", jobs, "--out", &out]].concat()).stdout
        })
        .into();
    assert!(!said[0].is_empty() && said[0] == said[1]);
    assert_same_files(&place.path("jobs-1"), &place.path("jobs-2"));
}

#[test]
fn results_go_to_the_next_free_folder() {
    let place = Place::new();
    let figure = ["reproduce", "chd", "--figure", "1"];
    for expected in ["knee-out/chd", "knee-out/chd-2", "knee-out/chd-3"] {
        let output = place.run(&figure);
        assert!(output.status.success());
        assert_eq!(text(&output.stderr), format!("report: {expected}/report.html\n"));
        assert!(place.path(expected).join("figures/chd-figure-1a.svg").exists());
    }
    assert_same_files(&place.path("knee-out/chd"), &place.path("knee-out/chd-3"));
    assert_eq!(fs::read_dir(place.path("knee-out")).unwrap().count(), 3, "nothing hidden");
}
