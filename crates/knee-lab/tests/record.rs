//! The table of docs/record.md says what the papers' records say.
#![allow(clippy::unwrap_used, missing_docs)]

use knee_lab::reproduce::{Claim, Found, PAPERS, Paper, load};
use std::{env, fs};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/record.md");
const BEGIN: &str =
    "<!-- claims: made by KNEE_UPDATE_RECORD=1 cargo test -p knee-lab --test record -->\n";
const END: &str = "<!-- end of claims -->\n";

fn ids<'a>(claims: impl Iterator<Item = &'a Claim>) -> String {
    let ids: Vec<&str> = claims.map(|c| c.id.as_str()).collect();
    if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
}

/// How many of the claims on record hold on `host`, and which do not.
fn found(paper: &Paper, claims: &[Claim], host: &str) -> [String; 2] {
    let recorded = |wanted: fn(&Found) -> bool| {
        claims.iter().filter(move |c| c.found.get(host).is_some_and(wanted))
    };
    let holds = recorded(|f| matches!(f, Found::Holds)).count();
    let fails = || recorded(|f| matches!(f, Found::Fails(_)));
    let skipped = |c: &Claim| c.skipped(host, &paper.figures).is_some();
    match holds + fails().count() {
        0 if claims.iter().all(skipped) => ["cannot be judged there".to_owned(), "–".to_owned()],
        0 => ["not judged yet".to_owned(), "–".to_owned()],
        n => [format!("{holds} of {n}"), ids(fails())],
    }
}

fn table() -> String {
    let mut text =
        "| paper | claims | hold in the simulator | do not | hold on real TCP, of those \
                    on record | do not | hold over QUIC, of those on record | do not |\n\
                    |---|---|---|---|---|---|---|---|\n"
            .to_owned();
    for id in PAPERS {
        let (paper, claims) = load(id).unwrap();
        let holding = claims.iter().filter(|c| c.holds).count();
        let [kernel, not_on_kernel] = found(&paper, &claims, "kernel");
        let [quic, not_on_quic] = found(&paper, &claims, "quic");
        text += &format!(
            "| `{id}`: {} | {} | {holding} | {} | {kernel} | {not_on_kernel} | {quic} | \
             {not_on_quic} |\n",
            paper.title,
            claims.len(),
            ids(claims.iter().filter(|c| !c.holds)),
        );
    }
    text
}

#[test]
fn document_has_the_record() {
    let document = fs::read_to_string(DOCUMENT).unwrap();
    let (before, rest) = document.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    let table = table();
    if env::var_os("KNEE_UPDATE_RECORD").is_some() {
        fs::write(DOCUMENT, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    } else {
        assert_eq!(found, table, "run the command in the comment above the table");
    }
}
