//! docs/evaluate.md shows the record of `knee evaluate --all --quick`, and names every criterion.
#![allow(clippy::unwrap_used, missing_docs)]

use knee_lab::{
    duel::Entrant,
    evaluate::{Record, criteria},
};
use std::{env, fs};

const BEGIN: &str =
    "<!-- scorecard: made by KNEE_UPDATE_RECORD=1 cargo test -p knee-lab --test scorecard -->\n";
const END: &str = "<!-- end of scorecard -->\n";

fn sign(word: Option<&str>) -> &'static str {
    match word {
        Some("passes") => "✓",
        Some("no worse than the baseline") => "≈",
        Some("fails") => "✗",
        Some("informs") => "·",
        _ => "?",
    }
}

fn table(record: &Record) -> String {
    let criteria = criteria().unwrap();
    let names: Vec<String> = Entrant::all().into_iter().map(|e| e.name).collect();
    let mut text =
        format!("\n| criterion | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
    for criterion in &criteria {
        let signs: Vec<&str> =
            names.iter().map(|name| sign(record.verdict(name, &criterion.id))).collect();
        text += &format!("| `{}` | {} |\n", criterion.id, signs.join(" | "));
    }
    text + "\n"
}

#[test]
fn the_document_shows_the_record() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/evaluate.md");
    let text = fs::read_to_string(path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (shown, after) = rest.split_once(END).unwrap();
    let wanted = table(&Record::of_repository().unwrap());
    if env::var_os("KNEE_UPDATE_RECORD").is_some() {
        fs::write(path, format!("{before}{BEGIN}{wanted}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(shown, wanted, "docs/evaluate.md is not what the record says: {BEGIN}");
    for criterion in criteria().unwrap() {
        assert!(before.contains(&format!("| `{}` |", criterion.id)), "{}", criterion.id);
    }
}
