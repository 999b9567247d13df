//! The schema of scenario files, and the tables of keys on the reference page. To accept a change of the
//! schema: `INSTA_UPDATE=always cargo test -p knee-scenario --test schema`.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// The schema of the repository.
const SCHEMA: &str = "docs/reference/scenario.schema.json";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The scenario files below `folder`: the files that name a path.
fn scenarios(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => scenarios(&path),
            false if path.extension().is_none_or(|of| of != "toml") => Vec::new(),
            false => {
                let text = fs::read_to_string(&path).expect("a file");
                if text.contains("\n[path]") { vec![path] } else { Vec::new() }
            }
        })
        .collect()
}

#[test]
fn the_schema_in_the_repository_is_current() {
    let schema = serde_json::to_string_pretty(&knee_scenario::schema()).expect("JSON") + "\n";
    let file = root().join(SCHEMA);
    if env::var_os("INSTA_UPDATE").is_some_and(|how| how == "always") {
        return fs::write(file, schema).expect("written");
    }
    let recorded = fs::read_to_string(file).expect(SCHEMA);
    assert!(recorded == schema, "{SCHEMA} is stale: INSTA_UPDATE=always writes it");
}

#[test]
fn every_scenario_here_names_the_schema() {
    let wanted = root().join(SCHEMA).canonicalize().expect(SCHEMA);
    let files = ["scenarios", "studies"].map(|folder| scenarios(&root().join(folder))).concat();
    assert!(files.len() > 50, "{}", files.len());
    for file in files {
        let text = fs::read_to_string(&file).expect("a file");
        let named = text.lines().next().and_then(|line| line.strip_prefix("#:schema "));
        let named = named.and_then(|name| file.parent()?.join(name).canonicalize().ok());
        assert!(named.as_ref() == Some(&wanted), "{}: line 1: no #:schema", file.display());
    }
}

#[test]
fn the_reference_page_has_every_key() {
    let page = include_str!("../../../docs/reference/scenario.md");
    let begin = "<!-- generated: keys ";
    let blocks: Vec<&str> = page.split(begin).skip(1).collect();
    assert_eq!(blocks.len(), knee_scenario::table_names().len());
    for (block, table) in blocks.into_iter().zip(knee_scenario::table_names()) {
        let keys = knee_scenario::reference(table).expect("a table");
        let wanted = format!("{table} -->\n\n{keys}\n<!-- end of generated: keys {table} -->");
        assert!(block.starts_with(&wanted), "{table}: run scripts/update-docs.sh; keys:\n{keys}");
    }
}
