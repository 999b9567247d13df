//! Every algorithm's object, with the shim that makes it a congestion control of the kernel: it calls
//! nothing and keeps nothing outside its state. (That the kernel takes the objects is tested in
//! `kernel.rs`.)

use knee_cc::{Algorithm, Params, Profile, algorithms};
use object::{
    Endianness, Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind, elf,
    read::elf::ElfFile64,
};
use std::fs;

/// The programs that the shim makes, one per call of the contract that the kernel knows and one for
/// `TX_START` where that is a call of its own; `on_rtt` not in profile RATE.
const PROGRAMS: [&str; 7] =
    ["init", "on_rtt", "on_ack", "ssthresh", "on_event", "on_tx_start", "undo"];
/// The shim's sections: the licence, the operations, the parameters, the seed, and for a tracer its
/// requests and its ring.
const DATA_SECTIONS: [&str; 6] =
    ["license", ".struct_ops.link", ".rodata.knee", ".data.knee", ".data.seed", ".maps"];

/// Checks the object of an algorithm; gives its bytes of code.
fn check(algorithm: Algorithm) -> usize {
    let name = algorithm.name();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("object");
    knee_kernel::export(&Params::defaults(algorithm), "test", &path, true).expect("exported");
    let bytes = fs::read(&path).expect("the object");
    let object = ElfFile64::<Endianness>::parse(&*bytes).expect("an ELF file");
    assert_eq!(object.elf_header().e_machine.get(object.endian()), elf::EM_BPF);
    for symbol in object.symbols().filter(|s| s.is_undefined()) {
        let wanted = symbol.name().expect("a name");
        assert_eq!(wanted, "", "{name} refers to `{wanted}`, which is not in the file");
    }
    let is_rate = algorithm.profile() == Profile::Rate;
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
                if !["struct_ops", "?struct_ops"].contains(&section_name) {
                    let mut called: Vec<_> = object
                        .symbols()
                        .filter(|s| s.section_index() == Some(section.index()))
                        .filter(|s| s.kind() == SymbolKind::Text)
                        .map(|s| s.name().expect("a name").to_owned())
                        .collect();
                    called.sort();
                    let decides = if is_rate { "knee_decide" } else { "knee_measure" };
                    assert_eq!(called, [decides, "knee_note"], "{name}, {section_name}");
                }
                let code = section.data().expect("code");
                code_bytes += code.len();
                helper_calls.extend(helpers(name, code));
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
    // The shim's own: the start of a random sequence, and the calls for a tracer.
    let draws = usize::from(algorithm.uses_random());
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
fn objects_hold_the_algorithm_and_the_shim_only() {
    for algorithm in algorithms() {
        assert!(check(*algorithm) > 0, "{}: no code", algorithm.name());
    }
}
