//! The C sources, and the example of `docs/how-to/add-an-algorithm.md`, have no host in them. (`knee-kernel`
//! compiles them for BPF.)

use std::{
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Lines that choose what is compiled; an include guard does not count.
fn conditionals(text: &str) -> Vec<&str> {
    let directives: Vec<_> = text
        .lines()
        .filter(|line| line.trim_start().starts_with('#'))
        .map(|line| (line, line.trim_start().trim_start_matches('#').trim_start()))
        .collect();
    let guarded = match (directives.first(), directives.get(1), directives.last()) {
        (Some((_, first)), Some((_, second)), Some((_, last))) => {
            let guard = first.strip_prefix("ifndef ");
            guard.is_some() && guard == second.strip_prefix("define ") && last.starts_with("endif")
        }
        _ => false,
    };
    let inner = if guarded { &directives[2..directives.len() - 1] } else { &directives[..] };
    let chooses = |d: &str| ["if", "el", "endif"].iter().any(|word| d.starts_with(word));
    inner.iter().filter(|(_, d)| chooses(d)).map(|(line, _)| *line).collect()
}

#[test]
fn no_conditional_compilation_outside_the_hosts() {
    let mut looked_at = 0;
    for file in files_below(&root().join("cc")) {
        if file.starts_with(root().join("cc/host")) {
            continue;
        }
        looked_at += 1;
        let text = fs::read_to_string(&file).expect("text");
        assert_eq!(conditionals(&text), Vec::<&str>::new(), "{}", file.display());
    }
    assert!(looked_at > 5, "the headers and the algorithms");
}

#[test]
fn conditionals_are_found() {
    let guarded = "#ifndef A_H\n#define A_H\n#include \"b.h\"\n#endif\n";
    assert_eq!(conditionals(guarded), Vec::<&str>::new());
    let inner = "#ifndef A_H\n#define A_H\n  # ifdef __bpf__\nint x;\n  # endif\n#endif\n";
    assert_eq!(conditionals(inner), ["  # ifdef __bpf__", "  # endif"]);
    assert_eq!(conditionals("#include \"a.h\"\n#if 1\n#else\n#endif").len(), 3);
    assert_eq!(conditionals("#ifndef A_H\n#define B_H\n#endif").len(), 2);
}

/// The example of the document has no host in it either. (`newcomer.rs`, and `own.rs` of
/// `knee`, run all tests on it.)
#[test]
fn the_documented_example_has_no_host() {
    let doc = root().join("docs/how-to/add-an-algorithm.md");
    let text = fs::read_to_string(&doc).expect("the document");
    let mut blocks = text.split("\n```c\n").skip(1);
    let block = blocks.next().expect("a C block");
    assert_eq!(blocks.next(), None, "one C block");
    let (code, _) = block.split_once("\n```\n").expect("the block ends");
    assert_eq!(conditionals(code), Vec::<&str>::new());
}
