//! The compiled objects, with a name and parameters put in.

use crate::clang;
use knee_cc::{Algorithm, Params, Source};
use knee_model::{HostError, failure::broken};
use object::{Object, ObjectSection};
use std::{
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{Mutex, PoisonError},
};

include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// Longest name of a congestion control in Linux, bytes (`TCP_CA_NAME_MAX` without the final 0).
pub const NAME_MAX_BYTES: usize = 15;

/// Sections of an object that are changed before it is loaded (`cc/host/bpf/knee/host.h`).
const PARAMS_SECTION: &str = ".rodata.knee";
const OPS_SECTION: &str = ".struct_ops.link";
/// Relocations that fill the operations with programs: entries of an offset and a symbol, 8 bytes each.
const OPS_RELOCATIONS: &str = ".rel.struct_ops.link";
const RELOCATION_BYTES: usize = 16;
/// Place of `cwnd_event_tx_start` in the operations (`cc/host/bpf/knee/kernel.h`).
const TX_START_AT: u64 = 16;
/// Name of the map that the parameters become.
pub(crate) const PARAMS_MAP: &str = PARAMS_SECTION;
/// Name of the map that `knee_seed` becomes (`cc/host/bpf/knee/programs.h`).
pub(crate) const SEED_MAP: &str = ".data.seed";
/// Names of the tracer's maps (`cc/host/bpf/knee/trace.h`).
pub(crate) const TRACING_MAP: &str = ".data.knee";
pub(crate) const RINGS_MAP: &str = "knee_rings";
/// The algorithm's name precedes the parameters.
const ALGORITHM_BYTES: usize = 16;

/// Name that a variant gets if none is given, such as `knee_chd`.
pub fn default_name(algorithm: Algorithm) -> String {
    format!("knee_{}", algorithm.name())
}

/// Checks that `name` can be registered, apart from being taken.
pub(crate) fn check_name(name: &str) -> Result<(), HostError> {
    let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let reason = match name {
        "" => "it is empty",
        _ if name.len() > NAME_MAX_BYTES => "it is too long",
        _ if !name.chars().all(known) => "it has other characters than the kernel takes",
        _ => return Ok(()),
    };
    let remedy = "use 1 to 15 of a-z, 0-9 and _";
    Err(broken(format!("{name:?} is not a valid name: {reason}; {remedy}")))
}

/// Objects of algorithms from C files, each compiled once.
static COMPILED: Mutex<Vec<(&'static Source, Vec<u8>)>> = Mutex::new(Vec::new());

/// The object of `algorithm`, still without name and parameters. Whether the kernel's verifier takes it
/// shows when it is loaded.
///
/// # Errors
/// An algorithm from a C file does not compile for the kernel.
pub fn compiled(algorithm: Algorithm) -> Result<Vec<u8>, HostError> {
    if let Some(source) = algorithm.source() {
        let mut all = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, object)) = all.iter().find(|(of, _)| *of == source) {
            return Ok(object.clone());
        }
        let object = compile(source)?;
        all.push((source, object.clone()));
        return Ok(object);
    }
    let found = OBJECTS.iter().find(|(of, _)| *of == algorithm.name()).map(|(_, bytes)| *bytes);
    // Both lists are made from the same folder when this is compiled.
    Ok(found.expect("an object for each algorithm").to_vec())
}

/// Names and contents of libbpf's headers that `cc/host/bpf` includes.
const LIBBPF: [(&str, &str); 3] = [
    ("bpf_core_read.h", include_str!(concat!(env!("KNEE_LIBBPF"), "/bpf/bpf_core_read.h"))),
    ("bpf_helpers.h", include_str!(concat!(env!("KNEE_LIBBPF"), "/bpf/bpf_helpers.h"))),
    ("bpf_helper_defs.h", include_str!(concat!(env!("KNEE_LIBBPF"), "/bpf/bpf_helper_defs.h"))),
];

/// Compiles an algorithm that was loaded from a C file, as the build compiles the others.
fn compile(source: &Source) -> Result<Vec<u8>, HostError> {
    let fail = |why| broken(format!("{} does not compile for the kernel:\n{why}", source.file));
    let in_folder = |e: std::io::Error| fail(e.to_string());
    let folder = tempfile::Builder::new().prefix("knee-bpf-").tempdir().map_err(in_folder)?;
    knee_cc::write_sources(folder.path()).map_err(in_folder)?;
    let text = knee_cc::numbered(&source.file, &source.text);
    fs::write(folder.path().join("algorithm.c"), text).map_err(in_folder)?;
    fs::create_dir_all(folder.path().join("libbpf/bpf")).map_err(in_folder)?;
    for (name, text) in LIBBPF {
        fs::write(folder.path().join("libbpf/bpf").join(name), text).map_err(in_folder)?;
    }
    let object = folder.path().join("algorithm.o");
    clang::compile(folder.path(), "libbpf", Path::new("algorithm.c"), &object).map_err(fail)?;
    fs::read(object).map_err(in_folder)
}

/// Takes what [`compiled`] gave another process of this program, so that a machine without clang can load
/// an algorithm from a C file.
pub fn give_compiled(algorithm: Algorithm, object: Vec<u8>) {
    if let Some(source) = algorithm.source() {
        COMPILED.lock().unwrap_or_else(PoisonError::into_inner).push((source, object));
    }
}

/// The object of the algorithm, complete: for loading and for exporting. `tx_start`: for a kernel whose
/// `tcp_congestion_ops` has `cwnd_event_tx_start`; libbpf refuses the member where the kernel lacks it.
pub(crate) fn build(params: &Params, name: &str, tx_start: bool) -> Result<Vec<u8>, HostError> {
    check_name(name)?;
    let mut bytes = compiled(params.algorithm())?;
    let words: Vec<u8> = params.words().iter().flat_map(|w| w.to_le_bytes()).collect();
    let mut padded = [0; NAME_MAX_BYTES + 1];
    padded[..name.len()].copy_from_slice(name.as_bytes());
    put(&mut bytes, PARAMS_SECTION, ALGORITHM_BYTES, &words);
    put(&mut bytes, OPS_SECTION, 0, &padded);
    if !tx_start {
        leave_out_tx_start(&mut bytes);
    }
    Ok(bytes)
}

/// Overwrites the relocation of `cwnd_event_tx_start` with another one, which may be there twice. Its
/// program is optional: without the relocation nothing loads it.
fn leave_out_tx_start(bytes: &mut [u8]) {
    let (start, size) = place(bytes, OPS_RELOCATIONS);
    let (all, _) = bytes[start..start + size].as_chunks_mut::<RELOCATION_BYTES>();
    let is_tx_start =
        |entry: &[u8; RELOCATION_BYTES]| entry.starts_with(&TX_START_AT.to_le_bytes());
    let other = *all.iter().find(|entry| !is_tx_start(entry)).expect("the shim has other programs");
    let entry = all.iter_mut().find(|entry| is_tx_start(entry));
    *entry.expect("the shim sets cwnd_event_tx_start") = other;
}

/// Overwrites part of a section. The objects are made with the shim that is part of this program: a
/// fault in them is its defect.
fn put(bytes: &mut [u8], section: &str, at: usize, new: &[u8]) {
    let (start, size) = place(bytes, section);
    assert!(at + new.len() <= size, "the shim and the table disagree on {section}");
    let start = start + at;
    bytes[start..start + new.len()].copy_from_slice(new);
}

/// Start and size of a section in the file.
fn place(bytes: &[u8], section: &str) -> (usize, usize) {
    let file = object::File::parse(bytes).expect("an object is an ELF file");
    let range = file.section_by_name(section).and_then(|s| s.file_range());
    let (start, size) = range.expect("the shim makes the section");
    (start as usize, size as usize)
}

/// Algorithm and parameter words in the value of a [`PARAMS_MAP`].
pub(crate) fn decode(value: &[u8]) -> Option<(String, Vec<u32>)> {
    let (algorithm, words) = value.split_at_checked(ALGORITHM_BYTES)?;
    let end = algorithm.iter().position(|b| *b == 0)?;
    let algorithm = str::from_utf8(&algorithm[..end]).ok()?.to_owned();
    let words = words.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
    Some((algorithm, words.collect()))
}

/// Writes an object that `bpftool struct_ops register FILE DIR` loads on a machine without Knee,
/// under `name` and with these parameters. Without `tx_start` it loads on any kernel, but on one that
/// delivers `TX_START` through `cwnd_event_tx_start` (Linux 7.2) the algorithm misses that event; with it,
/// it loads only there.
///
/// # Errors
/// An impossible name; a file that exists or cannot be written.
pub fn export(params: &Params, name: &str, path: &Path, tx_start: bool) -> Result<(), HostError> {
    let bytes = build(params, name, tx_start)?;
    let fail = |error: std::io::Error| {
        let help = match error.kind() {
            std::io::ErrorKind::AlreadyExists => "; remove it, or give another name",
            std::io::ErrorKind::StorageFull => "; free some room, or choose another folder",
            _ => "",
        };
        broken(format!("{}: {error}{help}", path.display()))
    };
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // It has its name once it is whole.
    let usual = fs::Permissions::from_mode(0o644);
    let mut file = tempfile::Builder::new().permissions(usual).tempfile_in(folder).map_err(fail)?;
    file.write_all(&bytes).map_err(fail)?;
    file.persist_noclobber(path).map(drop).map_err(|e| fail(e.error))
}
