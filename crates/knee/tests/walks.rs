//! `docs/contributing/code-walks.md` names files and functions, and quotes a line of C; they are where it says.

use std::{fs, path::Path};

/// Whether `text` holds `name` as a whole word.
fn has_word(text: &str, name: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(name).any(|(at, _)| {
        !part(text[..at].chars().next_back()) && !part(text[at + name.len()..].chars().next())
    })
}

#[test]
fn the_walks_name_what_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let walks =
        fs::read_to_string(root.join("docs/contributing/code-walks.md")).expect("the document");
    let mut steps = 0;
    for row in walks.lines().filter(|line| line.starts_with('|')) {
        // The last two cells: file, functions.
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [.., file, functions] = cells[..] else { panic!("no cells: {row}") };
        let Some(file) = file.strip_prefix('`').and_then(|f| f.strip_suffix('`')) else { continue };
        let source = fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        for function in functions.split(", ") {
            let name = function.trim_matches('`');
            assert!(has_word(&source, name), "{file} has no {name}: {row}");
            steps += 1;
        }
    }
    assert!(steps > 40, "{steps} steps");
    let (_, quoted) = walks.split_once("```c\n").expect("a line of C");
    let (quoted, _) = quoted.split_once("\n```").expect("its end");
    let chd = fs::read_to_string(root.join("cc/algorithms/chd.c")).expect("the algorithm");
    assert!(chd.contains(quoted), "chd.c has no line `{quoted}`");
}
