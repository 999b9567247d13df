//! Every algorithm compiles for BPF as it stands, with the shim that makes it a congestion control of
//! the kernel; it calls nothing and keeps nothing outside its state. (That the kernel takes the
//! objects is tested in `knee-kernel`.) One of them is the worked example of
//! `docs/adding-an-algorithm.md`.

use object::{
    Endianness, Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind, elf,
    read::elf::ElfFile64,
};
use std::{
    fs,
    path::{Path, PathBuf},
};

#[path = "../../knee-kernel/clang.rs"]
mod clang;

/// The programs that the shim makes, one per call of the contract that the kernel knows; `on_rtt`
/// not in profile RATE.
const PROGRAMS: [&str; 6] = ["init", "on_rtt", "on_ack", "ssthresh", "on_event", "undo"];
/// What the shim stores: the licence, the operations, the parameters, and for a tracer what it
/// wants and its ring.
const DATA_SECTIONS: [&str; 5] =
    ["license", ".struct_ops.link", ".rodata.knee", ".data.knee", ".maps"];

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

/// Compiles for BPF and checks the object; gives its bytes of code.
fn check_bpf(source: &Path) -> usize {
    let name = source.file_stem().expect("a name").to_string_lossy().into_owned();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.bpf.o"));
    clang::compile(&root(), source, &path).unwrap_or_else(|e| panic!("{e}"));

    let bytes = fs::read(&path).expect("the object");
    let object = ElfFile64::<Endianness>::parse(&*bytes).expect("an ELF file");
    assert_eq!(object.elf_header().e_machine.get(object.endian()), elf::EM_BPF);
    for symbol in object.symbols().filter(|s| s.is_undefined()) {
        let wanted = symbol.name().expect("a name");
        assert_eq!(wanted, "", "{name} refers to `{wanted}`, which is not in the file");
    }
    let text = fs::read_to_string(source).expect("text");
    let is_rate = text.contains("\nKNEE_RATE_ALGORITHM(");
    for program in PROGRAMS {
        let symbol = object.symbol_by_name(&format!("knee_{program}"));
        if is_rate && program == "on_rtt" {
            assert!(symbol.is_none(), "{name} has {program}");
            continue;
        }
        assert!(symbol.is_some_and(|s| s.is_global() && s.size() > 0), "{name} lacks {program}");
    }
    let licence = object.section_by_name("license").expect("a licence");
    assert_eq!(licence.data().expect("its text"), b"Dual BSD/GPL\0");
    let (mut code_bytes, mut helper_calls) = (0, Vec::new());
    for section in object.sections().filter(|s| s.size() != 0) {
        let section_name = section.name().expect("a name");
        match section.kind() {
            SectionKind::Text => {
                // Functions that are called rather than compiled in: the shim's.
                if section_name != "struct_ops" {
                    let mut called: Vec<_> = object
                        .symbols()
                        .filter(|s| s.section_index() == Some(section.index()))
                        .filter(|s| s.kind() == SymbolKind::Text)
                        .map(|s| s.name().expect("a name").to_owned())
                        .collect();
                    called.sort();
                    let shims: &[&str] =
                        if is_rate { &["knee_decide", "knee_note"] } else { &["knee_note"] };
                    assert_eq!(called, shims, "{name}, {section_name}");
                }
                let code = section.data().expect("code");
                code_bytes += code.len();
                helper_calls.extend(helpers(&name, code));
            }
            SectionKind::Data
            | SectionKind::ReadOnlyData
            | SectionKind::ReadOnlyString
            | SectionKind::UninitializedData => assert!(
                DATA_SECTIONS.contains(&section_name),
                "{name} keeps variables outside its state, in {section_name}"
            ),
            _ => {}
        }
    }
    // The shim's own: the start of a random sequence, and what is done for a tracer.
    let draws = if text.contains("CC_USES_RANDOM") { 1 } else { 0 };
    let calls_of = |helper| helper_calls.iter().filter(|h| **h == helper).count();
    assert_eq!(calls_of(GET_PRANDOM_U32), draws, "{name} draws");
    assert_eq!(TRACER_HELPERS.map(calls_of), [1; 3], "{name}: {helper_calls:?}");
    assert_eq!(helper_calls.len(), draws + 3, "{name} calls helpers: {helper_calls:?}");
    code_bytes
}

/// Helper `bpf_get_prandom_u32`.
const GET_PRANDOM_U32: i32 = 7;
/// Helpers `bpf_map_lookup_elem`, `bpf_ringbuf_reserve`, `bpf_ringbuf_submit`.
const TRACER_HELPERS: [i32; 3] = [1, 131, 132];

/// Numbers of the helpers that the code calls; fails on calls of anything else but functions of the
/// same object (RFC 9669 section 4.3).
fn helpers(name: &str, code: &[u8]) -> Vec<i32> {
    const LOAD_64: u8 = 0x18;
    const CALL: u8 = 0x85;
    const CALL_REGISTER: u8 = 0x8d;
    const HELPER: u8 = 0;
    const LOCAL_FUNCTION: u8 = 1;
    let (mut at, mut found) = (0, Vec::new());
    while at < code.len() {
        let (opcode, source_register) = (code[at], code[at + 1] >> 4);
        assert_ne!(opcode, CALL_REGISTER, "{name} calls through a pointer");
        match (opcode, source_register) {
            (CALL, HELPER) => {
                let number = code[at + 4..at + 8].try_into().expect("four bytes");
                found.push(i32::from_le_bytes(number));
            }
            (CALL, callee) => assert_eq!(callee, LOCAL_FUNCTION, "{name} calls the kernel"),
            _ => {}
        }
        at += if opcode == LOAD_64 { 16 } else { 8 };
    }
    found
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

/// The worked example of the document is a file that is really there, word for word.
#[test]
fn documented_example_is_the_file() {
    let doc = root().join("docs/adding-an-algorithm.md");
    let text = fs::read_to_string(&doc).expect("the document");
    let mut blocks = text.split("\n```c\n").skip(1);
    let block = blocks.next().expect("a C block");
    assert_eq!(blocks.next(), None, "one C block");
    let (code, _) = block.split_once("\n```\n").expect("the block ends");
    let file = fs::read_to_string(root().join("cc/algorithms/dual.c")).expect("the file");
    assert!(
        format!("{code}\n") == file,
        "docs/adding-an-algorithm.md does not show cc/algorithms/dual.c as it is: copy it there"
    );
}
