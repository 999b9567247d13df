//! The README's table of claims says what the papers' records say.
#![allow(clippy::unwrap_used, missing_docs)]

use knee_lab::reproduce::{Claim, OnKernel, PAPERS, load};
use std::{env, fs};

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
const BEGIN: &str =
    "<!-- claims: made by KNEE_UPDATE_README=1 cargo test -p knee-lab --test readme -->\n";
const END: &str = "<!-- end of claims -->\n";

fn ids<'a>(claims: impl Iterator<Item = &'a Claim>) -> String {
    let ids: Vec<&str> = claims.map(|c| c.id.as_str()).collect();
    if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
}

fn table() -> String {
    let mut text = "| paper | claims | hold in the simulator | do not hold there | hold on real TCP, of those \
                    on record | do not hold there |\n|---|---|---|---|---|---|\n"
        .to_owned();
    for id in PAPERS {
        let (paper, claims) = load(id).unwrap();
        let holding = claims.iter().filter(|c| c.holds).count();
        let kernel = |wanted: fn(&OnKernel) -> bool| {
            claims.iter().filter(move |c| c.kernel.as_ref().is_some_and(wanted))
        };
        let (holds, fails) = (
            kernel(|k| matches!(k, OnKernel::Holds)).count(),
            kernel(|k| matches!(k, OnKernel::Fails(_))).count(),
        );
        let on_kernel = match holds + fails {
            0 => ["not judged yet".to_owned(), "–".to_owned()],
            n => [format!("{holds} of {n}"), ids(kernel(|k| matches!(k, OnKernel::Fails(_))))],
        };
        text += &format!(
            "| `{id}`: {} | {} | {holding} | {} | {} | {} |\n",
            paper.title,
            claims.len(),
            ids(claims.iter().filter(|c| !c.holds)),
            on_kernel[0],
            on_kernel[1],
        );
    }
    text
}

#[test]
fn readme_has_the_record() {
    let readme = fs::read_to_string(README).unwrap();
    let (before, rest) = readme.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    let table = table();
    if env::var_os("KNEE_UPDATE_README").is_some() {
        fs::write(README, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    } else {
        assert_eq!(found, table, "make it anew as the comment above the table says");
    }
}
