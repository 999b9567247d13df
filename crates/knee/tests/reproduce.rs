//! `knee reproduce`.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, assert_same_files, files, text};
use serde_json::Value;
use std::fs;

/// 0 if all verdicts are as recorded, else 1.
fn expected_code(claims: &Value) -> i32 {
    let claims = claims["claims"].as_array().unwrap();
    i32::from(claims.iter().any(|c| c["holds"] != c["recorded_holds"]))
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
fn exit_code_says_whether_verdicts_are_as_recorded() {
    let place = Place::new();
    let mut claims = 0;
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
        claims += verdicts["claims"].as_array().unwrap().len();
    }
    assert!(claims > 10);
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
