//! docs/evidence/results.md and the README say what the papers' records say.
#![allow(clippy::unwrap_used, missing_docs)]

use knee_lab::reproduce::{Claim, Found, PAPERS, Paper, load};
use std::{env, fs};

const BEGIN: &str =
    "<!-- claims: made by KNEE_UPDATE_RECORD=1 cargo test -p knee-lab --test record -->\n";
const END: &str = "<!-- end of claims -->\n";

fn ids<'a>(claims: impl Iterator<Item = &'a Claim>) -> String {
    let ids: Vec<&str> = claims.map(|c| c.id.as_str()).collect();
    if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
}

/// Number of recorded claims that hold on the first of `hosts` with a record of them, and the failing ones.
fn found(paper: &Paper, claims: &[Claim], hosts: &[&str]) -> [String; 2] {
    let recorded = |wanted: fn(&Found) -> bool| {
        let on_record =
            move |c: &&Claim| hosts.iter().find_map(|host| c.found.get(*host)).is_some_and(wanted);
        claims.iter().filter(on_record)
    };
    let holds = recorded(|f| matches!(f, Found::Holds)).count();
    let fails = || recorded(|f| matches!(f, Found::Fails(_)));
    let skipped = |c: &Claim| hosts.iter().any(|host| c.skipped(host, &paper.figures).is_some());
    match holds + fails().count() {
        0 if claims.iter().all(skipped) => ["cannot be judged there".to_owned(), "–".to_owned()],
        0 => ["not judged yet".to_owned(), "–".to_owned()],
        n => [format!("{holds} of {n}"), ids(fails())],
    }
}

/// Claims recorded as holding in the simulator, as explained by a cause that is run, and as neither.
struct Recorded<'a> {
    holding: usize,
    explained: Vec<&'a Claim>,
    open: Vec<&'a Claim>,
}

impl<'a> Recorded<'a> {
    fn of(claims: &'a [Claim]) -> Self {
        let (explained, open) = claims.iter().filter(|c| !c.holds).partition(|c| c.cause.is_some());
        Self { holding: claims.iter().filter(|c| c.holds).count(), explained, open }
    }
}

fn table() -> String {
    let mut text =
        "| paper | claims | hold in the simulator | fail there for a demonstrated reason | fail \
                    there unexplained | hold on Linux TCP, of those judged there | fail there | hold \
                    over QUIC, of those judged there | fail there |\n\
                    |---|---|---|---|---|---|---|---|---|\n"
            .to_owned();
    for id in PAPERS {
        let (paper, claims) = load(id).unwrap();
        let Recorded { holding, explained, open } = Recorded::of(&claims);
        let [linux, not_on_linux] = found(&paper, &claims, &["vm", "kernel"]);
        let [quic, not_on_quic] = found(&paper, &claims, &["quic"]);
        text += &format!(
            "| `{id}`: {} | {} | {holding} | {} | {} | {linux} | {not_on_linux} | {quic} | \
             {not_on_quic} |\n",
            paper.title,
            claims.len(),
            ids(explained.into_iter()),
            ids(open.into_iter()),
        );
    }
    text
}

/// A number of claims, and the verb in the number that fits.
fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// Numbers of `claims` that hold and that fail in the simulator, in a sentence that begins with `what`.
fn sentence(claims: &[Claim], what: &str) -> String {
    let Recorded { holding, explained, open } = Recorded::of(claims);
    format!(
        "{what}: in the simulator {}; {} for a demonstrated reason; {} unexplained.\n",
        count(holding, "holds", "hold"),
        count(explained.len(), "fails", "fail"),
        count(open.len(), "fails", "fail"),
    )
}

/// The sums over all papers, and over the goals of Ebb, which is none.
fn sum() -> String {
    let papers = PAPERS.iter().filter(|id| **id != "ebb");
    let claims: Vec<Claim> = papers.clone().flat_map(|id| load(id).unwrap().1).collect();
    let goals = load("ebb").unwrap().1;
    let of_papers = format!("{} papers, {} claims", papers.count(), claims.len());
    let of_ebb = format!("Ebb, an algorithm of this project, {} goals", goals.len());
    format!("{}\n{}", sentence(&claims, &of_papers), sentence(&goals, &of_ebb))
}

#[track_caller]
fn has(document: &str, text: &str) {
    let file = format!("{}/../../{document}", env!("CARGO_MANIFEST_DIR"));
    let whole = fs::read_to_string(&file).unwrap();
    let (before, rest) = whole.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    if env::var_os("KNEE_UPDATE_RECORD").is_some() {
        fs::write(&file, format!("{before}{BEGIN}{text}{END}{after}")).unwrap();
    } else {
        assert_eq!(found, text, "run the command in the comment in {document}");
    }
}

#[test]
fn documents_have_the_record() {
    has("docs/evidence/results.md", &table());
    has("README.md", &sum());
}
