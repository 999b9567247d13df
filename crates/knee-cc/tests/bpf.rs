//! Every algorithm compiles for BPF as it stands, calls nothing, and keeps nothing outside its state;
//! so does the worked example of `docs/adding-an-algorithm.md`.

use object::{
    Endianness, Object, ObjectSection, ObjectSymbol, SectionKind, elf, read::elf::ElfFile64,
};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

const ENTRY_POINTS: [&str; 7] =
    ["init", "on_rtt", "on_ack", "ssthresh", "on_event", "undo", "observe"];

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

fn algorithm_files() -> Vec<PathBuf> {
    let files = files_below(&root().join("cc/algorithms"));
    assert!(!files.is_empty(), "there are algorithms");
    files
}

/// `KNEE_CLANG`, or the newest clang on the path.
fn clang() -> PathBuf {
    if let Some(given) = env::var_os("KNEE_CLANG") {
        return given.into();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let versioned = env::split_paths(&path).filter_map(|d| fs::read_dir(d).ok()).flatten();
    let newest = versioned
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let version: u32 = path.file_name()?.to_str()?.strip_prefix("clang-")?.parse().ok()?;
            Some((version, path))
        })
        .max();
    let plain = || env::split_paths(&path).map(|d| d.join("clang")).find(|p| p.is_file());
    newest.map(|(_, path)| path).or_else(plain).expect(
        "no clang found: install the Debian package clang-19, or set KNEE_CLANG to a clang that \
         knows BPF (version 18 or newer)",
    )
}

fn compile(source: &Path, object: &Path, target: &[&str]) {
    let mut command = Command::new(clang());
    command.current_dir(root());
    command.args("-std=c11 -O2 -g -Wall -Wextra -Werror -Wconversion -ffreestanding".split(' '));
    command.args(target).arg("-Icc/include").arg("-c").arg(source).arg("-o").arg(object);
    let output = command.output().unwrap_or_else(|e| {
        panic!("{command:?}: {e}; install the Debian package clang-19, or set KNEE_CLANG")
    });
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{said}");
}

/// Compiles for BPF and checks the object; gives its bytes of code.
fn check_bpf(source: &Path) -> usize {
    let name = source.file_stem().expect("a name").to_string_lossy().into_owned();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.bpf.o"));
    compile(source, &path, &["-target", "bpf", "-mcpu=v4", "-Icc/host/bpf"]);

    let bytes = fs::read(&path).expect("the object");
    let object = ElfFile64::<Endianness>::parse(&*bytes).expect("an ELF file");
    assert_eq!(object.elf_header().e_machine.get(object.endian()), elf::EM_BPF);
    for symbol in object.symbols().filter(|s| s.is_undefined()) {
        let wanted = symbol.name().expect("a name");
        assert_eq!(wanted, "", "{name} refers to `{wanted}`, which is not in the file");
    }
    for entry in ENTRY_POINTS {
        let symbol = format!("knee_{name}_{entry}");
        let found = object.symbol_by_name(&symbol).is_some_and(|s| s.is_global());
        assert!(found, "{name} has no entry point {symbol}");
    }
    let mut code_bytes = 0;
    for section in object.sections().filter(|s| s.size() != 0) {
        let section_name = section.name().expect("a name");
        match section.kind() {
            SectionKind::Text => {
                let code = section.data().expect("code");
                code_bytes += code.len();
                check_calls(&name, code);
            }
            SectionKind::Data | SectionKind::UninitializedData => {
                panic!("{name} keeps variables outside its state, in {section_name}")
            }
            _ => {}
        }
    }
    code_bytes
}

/// Fails on calls of anything but functions of the same object (RFC 9669 section 4.3).
fn check_calls(name: &str, code: &[u8]) {
    const LOAD_64: u8 = 0x18;
    const CALL: u8 = 0x85;
    const CALL_REGISTER: u8 = 0x8d;
    const LOCAL_FUNCTION: u8 = 1;
    let mut at = 0;
    while at < code.len() {
        let (opcode, source_register) = (code[at], code[at + 1] >> 4);
        assert_ne!(opcode, CALL_REGISTER, "{name} calls through a pointer");
        assert!(
            opcode != CALL || source_register == LOCAL_FUNCTION,
            "{name} calls a helper of the kernel"
        );
        at += if opcode == LOAD_64 { 16 } else { 8 };
    }
}

#[test]
fn algorithms_compile_for_bpf() {
    for file in algorithm_files() {
        let code_bytes = check_bpf(&file);
        assert!(code_bytes > 0, "{}: no code", file.display());
    }
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

/// The C block of the document, under the name that it gives itself.
fn example() -> PathBuf {
    let doc = root().join("docs/adding-an-algorithm.md");
    let text = fs::read_to_string(&doc).expect("the document");
    let mut blocks = text.split("\n```c\n").skip(1);
    let block = blocks.next().expect("a C block");
    assert_eq!(blocks.next(), None, "one C block");
    let (code, _) = block.split_once("\n```\n").expect("the block ends");
    let (_, after) = code.split_once("KNEE_ALGORITHM(").expect("an algorithm");
    let name = after.split(',').next().expect("its name").trim();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.c"));
    fs::write(&path, format!("{code}\n")).expect("written");
    path
}

#[test]
fn documented_example_compiles_natively_and_for_bpf() {
    let source = example();
    assert!(check_bpf(&source) > 0);
    let object = source.with_extension("native.o");
    compile(&source, &object, &["-Wsign-conversion", "-Icc/host/native"]);
    let bytes = fs::read(&object).expect("the object");
    let file = object::File::parse(&*bytes).expect("an object file");
    let name = source.file_stem().expect("a name").to_string_lossy().into_owned();
    let descriptor = format!("knee_{name}");
    assert!(file.symbols().any(|s| s.is_definition() && s.name() == Ok(&descriptor)));
}
