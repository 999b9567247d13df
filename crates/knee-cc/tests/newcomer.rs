//! "Nothing else needs to change": a copy of the tree with the example of `docs/how-to/add-an-algorithm.md`
//! passes the commands that end that page.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

/// Files of the tree that the documented commands need.
const NEEDED: [&str; 8] =
    ["Cargo.toml", "Cargo.lock", ".clang-format", "bench", "cc", "crates", "docs", "scripts"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

/// Copies a file, a link or a folder, except for built and hidden files inside it.
fn copy(from: &Path, to: &Path) {
    if let Ok(target) = fs::read_link(from) {
        return symlink(target, to).expect("a link");
    }
    if from.is_file() {
        fs::copy(from, to).unwrap_or_else(|e| panic!("{}: {e}", from.display()));
        return;
    }
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).unwrap_or_else(|e| panic!("{}: {e}", from.display())) {
        let name = entry.expect("an entry").file_name();
        let is_built = ["target", "node_modules"].iter().any(|built| name == *built);
        if !is_built && !name.to_string_lossy().starts_with('.') {
            copy(&from.join(&name), &to.join(&name));
        }
    }
}

/// The commands of the last block of code.
fn documented_commands(text: &str) -> Vec<&str> {
    let after = text.trim_end().rsplit("\n\n").next().expect("a last block");
    after.lines().map(|line| line.strip_prefix("    ").expect("a block of code")).collect()
}

/// The example of the document.
fn documented_example(text: &str) -> String {
    let (_, after) = text.split_once("\n```c\n").expect("a C block");
    let (code, _) = after.split_once("\n```\n").expect("the block ends");
    format!("{code}\n")
}

#[test]
#[ignore = "needs clang-19 and clang-format-19: scripts/test.sh --all runs it"]
fn a_new_algorithm_is_one_file() {
    let tree = Path::new(env!("CARGO_TARGET_TMPDIR")).join("newcomer");
    if tree.exists() {
        fs::remove_dir_all(&tree).expect("the tree of an earlier run");
    }
    fs::create_dir_all(&tree).expect("a folder");
    for part in NEEDED {
        copy(&root().join(part), &tree.join(part));
    }
    // Another version: cargo would take the crates here for those of this tree, as both are built in one
    // folder, and not rebuild them.
    let manifest = tree.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).expect("the manifest");
    let here = format!("\nversion = \"{}\"\n", env!("CARGO_PKG_VERSION"));
    let there = format!("\nversion = \"{}+newcomer\"\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(text.matches(&here).count(), 1, "the version of the workspace");
    fs::write(manifest, text.replace(&here, &there)).expect("the manifest");

    let doc =
        fs::read_to_string(tree.join("docs/how-to/add-an-algorithm.md")).expect("the document");
    fs::write(tree.join("cc/algorithms/soft.c"), documented_example(&doc))
        .expect("the new algorithm");
    let commands = documented_commands(&doc);
    assert!(commands.len() > 1 && commands.contains(&"scripts/check-c.sh"), "{commands:?}");
    for command in commands {
        let output = Command::new("bash")
            .args(["-c", command])
            .current_dir(&tree)
            // The folder of this build, in which the dependencies are built already.
            .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join(".."))
            .env("CARGO_NET_OFFLINE", "true")
            .env_remove("INSTA_UPDATE")
            .output()
            .expect("bash");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complained = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}:\n{said}\n{complained}");
        if let Some((_, test)) = command.split_once("--test ") {
            assert!(said.contains("test result: ok."), "{test}: {said}");
        }
    }
    fs::remove_dir_all(&tree).expect("the tree");
}
