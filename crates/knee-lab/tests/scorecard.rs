//! docs/reference/criteria.md lists every criterion, and docs/evidence/scorecard.md the verdicts of `knee evaluate`: of the
//! simulator, and of Linux.
#![allow(clippy::unwrap_used, missing_docs)]

use knee_lab::{
    duel::Entrant,
    evaluate::{Better, Bound, Criterion, Measure, Record, criteria},
};
use std::{env, fs};

/// Parts of the documents, between the first line and the second.
const CRITERIA: [&str; 2] = [
    "<!-- criteria: made by KNEE_UPDATE_RECORD=1 cargo test -p knee-lab --test scorecard -->\n",
    "<!-- end of criteria -->\n",
];
const SCORECARD: [&str; 2] = [
    "<!-- scorecard: made by KNEE_UPDATE_RECORD=1 cargo test -p knee-lab --test scorecard -->\n",
    "<!-- end of scorecard -->\n",
];
const ON_VM: [&str; 2] = [
    "<!-- on vm: made by KNEE_UPDATE_RECORD=1 cargo test -p knee-lab --test scorecard -->\n",
    "<!-- end of on vm -->\n",
];

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

/// The requirement of a criterion on `measure`, and the source of its bound.
fn requirement(measure: &Measure) -> (String, String) {
    let Measure { name, unit, bound, no_worse, better, source, .. } = measure;
    let unit = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
    let direction = match better {
        Better::Lower => "at most",
        Better::Higher => "at least",
    };
    let bound = bound.as_ref().map(|bound| match bound {
        Bound::Number(x) => format!("{direction} `{x}`"),
        Bound::Formula(text) => format!("{direction} `{text}`"),
    });
    let beside = no_worse
        .map(|part| format!("no worse than the baseline by more than {:.0} %", 100.0 * part));
    let all: Vec<String> = bound.into_iter().chain(beside).collect();
    let all = if all.is_empty() { "shown".to_owned() } else { all.join(" or ") };
    (format!("{name}{unit}: {all}"), source.clone().unwrap_or_default())
}

fn criteria_table() -> String {
    let mut text =
        "\n| section | criterion | title | requirement | source of bounds |\n|---|---|---|---|---|\n"
            .to_owned();
    for Criterion { id, section, title, measures, .. } in criteria().unwrap() {
        let (all, mut sources): (Vec<String>, Vec<String>) =
            measures.iter().map(requirement).unzip();
        sources.retain(|source| !source.is_empty());
        sources.dedup();
        let (all, sources) = (all.join("; "), sources.join("; "));
        text += &format!("| {section} | `{id}` | {title} | {all} | {sources} |\n");
    }
    text + "\n"
}

/// The criteria that were run on real TCP: each verdict there, and where it is another the simulator's.
fn vm_table() -> String {
    let (vm, sim) = (Record::on_vm().unwrap(), Record::of_repository().unwrap());
    let names: Vec<&str> = vm.algorithms().collect();
    let mut text =
        format!("\n| criterion | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
    for Criterion { id, .. } in criteria().unwrap() {
        if !names.iter().any(|name| vm.verdict(name, &id).is_some()) {
            continue;
        }
        let cell = |name: &&str| match (vm.verdict(name, &id), sim.verdict(name, &id)) {
            (real, simulated) if real == simulated => sign(real).to_owned(),
            (real, simulated) => format!("{} (simulator: {})", sign(real), sign(simulated)),
        };
        let cells: Vec<String> = names.iter().map(cell).collect();
        text += &format!("| `{id}` | {} |\n", cells.join(" | "));
    }
    text + "\n"
}

#[test]
fn the_documents_show_the_criteria_and_the_verdicts() {
    let (reference, scorecard) = ("docs/reference/criteria.md", "docs/evidence/scorecard.md");
    let parts = [
        (reference, CRITERIA, criteria_table()),
        (scorecard, SCORECARD, table(&Record::of_repository().unwrap())),
        (scorecard, ON_VM, vm_table()),
    ];
    for (page, [begin, end], wanted) in parts {
        let path = format!("{}/../../{page}", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once(begin).unwrap();
        let (shown, after) = rest.split_once(end).unwrap();
        if env::var_os("KNEE_UPDATE_RECORD").is_some() {
            fs::write(path, format!("{before}{begin}{wanted}{end}{after}")).unwrap();
        } else {
            assert_eq!(shown, wanted, "{page} is stale: {begin}");
        }
    }
}
