//! The guest's file system: an archive in the format `newc` of cpio, unpacked by the kernel into
//! memory. It holds this very program with its libraries, and modules of the kernel.

use crate::{
    kernels::{Kernel, module_files, module_name, uncompressed},
    remembered::Remembered,
};
use knee_model::{
    HostError,
    failure::{broken, doing, unavailable},
};
use object::{
    Endianness, U16, U64,
    elf::{FileHeader64, PT_INTERP, PT_LOAD, SymbolSection},
    pod::bytes_of,
    read::elf::{FileHeader, ProgramHeader},
};
use std::{
    collections::BTreeSet,
    ffi::CStr,
    fs,
    path::{Path, PathBuf},
};

/// The program's place in the guest.
pub(crate) const PROGRAM: &str = "/knee";
/// Folder of modules in the guest; they are loaded in the order of their names.
pub(crate) const MODULES: &str = "/modules";
/// Folders that file systems are mounted on.
const MOUNT_POINTS: [&str; 5] = ["/proc", "/sys", "/dev", "/tmp", "/run"];
/// Drivers without which there is no run.
const NEEDED: [&str; 1] = ["tun"];

/// The parts of the file system.
pub(crate) struct Parts(Vec<Part>);

/// A file of it.
struct Part {
    /// Its place in the guest.
    at: PathBuf,
    from: PathBuf,
    kind: Kind,
}

enum Kind {
    Program,
    Library,
    Module,
}

impl Parts {
    /// The parts of a guest with `kernel`.
    pub(crate) fn of(kernel: &Kernel) -> Result<Self, HostError> {
        let part = |at: &Path, from: &Path, kind| Part { at: at.into(), from: from.into(), kind };
        let mut parts = vec![part(Path::new(PROGRAM), Path::new("/proc/self/exe"), Kind::Program)];
        parts.extend(libraries().iter().map(|library| part(library, library, Kind::Library)));
        for file in modules(kernel)? {
            let at = Path::new(MODULES).join(format!("{}.ko", module_name(&file)));
            parts.push(part(&at, &file, Kind::Module));
        }
        Ok(Self(parts))
    }

    /// A line for each, with its place and its hash.
    pub(crate) fn hashes(&self, remembered: &Remembered) -> Result<String, HostError> {
        let line = |part: &Part| {
            remembered.hash(&part.from).map(|hash| format!("{} {hash}\n", part.at.display()))
        };
        self.0.iter().map(line).collect()
    }

    /// The archive.
    pub(crate) fn archive(&self) -> Result<Vec<u8>, HostError> {
        let mut archive = Archive::default();
        for folder in MOUNT_POINTS {
            archive.folder(Path::new(folder));
        }
        for Part { at, from, kind } in &self.0 {
            let read = || fs::read(from).map_err(doing("reading", from));
            match kind {
                Kind::Program => {
                    let (bytes, interpreter) = trimmed(read()?)?;
                    archive.file(at, 0o755, &bytes);
                    if let Some(interpreter) = interpreter {
                        let bytes = fs::read(&interpreter);
                        let bytes = bytes.map_err(doing("reading", &interpreter))?;
                        archive.file(&interpreter, 0o755, &bytes);
                    }
                }
                Kind::Library => archive.file(at, 0o755, &read()?),
                Kind::Module => {
                    let bytes = uncompressed(from).map_err(doing("unpacking", from))?;
                    archive.file(at, 0o644, &bytes);
                }
            }
        }
        Ok(archive.finish())
    }
}

/// The modules of the kernel that a run needs: drivers, and all congestion controls.
fn modules(kernel: &Kernel) -> Result<Vec<PathBuf>, HostError> {
    let files = module_files(&kernel.modules).map_err(|e| {
        let why =
            format!("modules of the kernel {}: {}: {e}", kernel.release, kernel.modules.display());
        unavailable(why, "name their folder too: --kernel IMAGE,MODULES")
    })?;
    let wanted = |file: &PathBuf| {
        let name = module_name(file);
        let is_congestion_control = file.parent().is_some_and(|p| p.ends_with("net/ipv4"))
            && name.starts_with("tcp_")
            && name != "tcp_diag";
        is_congestion_control || NEEDED.contains(&name)
    };
    Ok(files.into_iter().filter(wanted).collect())
}

/// The libraries that this process has loaded.
fn libraries() -> Vec<PathBuf> {
    unsafe extern "C" fn take(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        found: *mut libc::c_void,
    ) -> libc::c_int {
        // SAFETY: the C library gives a valid description; `found` is the vector below, which
        // nobody else uses during the call. A name is a string with a final 0.
        unsafe {
            let found = &mut *found.cast::<Vec<PathBuf>>();
            if let Ok(name) = CStr::from_ptr((*info).dlpi_name).to_str() {
                found.push(name.into());
            }
        }
        0
    }
    let mut found: Vec<PathBuf> = Vec::new();
    // SAFETY: `take` has the type that the call requires, and `found` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(take), (&raw mut found).cast()) };
    // The program itself has no name, and that of the kernel's library no folder. An algorithm from a
    // C file is loaded from a file that is gone since; a run takes it along.
    found.retain(|path| path.is_absolute() && path.exists());
    found
}

/// An executable without what no process needs of it (symbols, debugging information), and the
/// program that links it.
fn trimmed(mut bytes: Vec<u8>) -> Result<(Vec<u8>, Option<PathBuf>), HostError> {
    type Header = FileHeader64<Endianness>;
    let wrong = |e: object::Error| broken(format!("reading this program: {e}"));
    let header = Header::parse(&*bytes).map_err(wrong)?;
    let endian = header.endian().map_err(wrong)?;
    let segments = header.program_headers(endian, &*bytes).map_err(wrong)?;
    let ends = segments.iter().filter(|s| s.p_type(endian) == PT_LOAD);
    let end = ends.map(|s| s.p_offset(endian) + s.p_filesz(endian)).max().unwrap_or(0);
    let interpreter = segments.iter().find(|s| s.p_type(endian) == PT_INTERP);
    let interpreter = interpreter.and_then(|s| s.interpreter(endian, &*bytes).ok().flatten());
    let interpreter = interpreter.map(|path| PathBuf::from(String::from_utf8_lossy(path).as_ref()));
    let mut header = *header;
    header.e_shoff = U64::new(endian, 0);
    header.e_shnum = U16::new(endian, 0);
    header.e_shstrndx = U16::new(endian, SymbolSection(0));
    bytes.truncate(end as usize);
    bytes[..size_of::<Header>()].copy_from_slice(bytes_of(&header));
    Ok((bytes, interpreter))
}

/// An archive in the making.
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    paths: BTreeSet<PathBuf>,
}

const FOLDER_MODE: u32 = 0o040_755;
const FILE_MODE: u32 = 0o100_000;

impl Archive {
    /// Adds a folder and those above it, once.
    fn folder(&mut self, path: &Path) {
        if path.parent().is_none() || self.paths.contains(path) {
            return;
        }
        if let Some(above) = path.parent() {
            self.folder(above);
        }
        self.entry(path, FOLDER_MODE, &[]);
    }

    /// Adds a file, once.
    fn file(&mut self, path: &Path, permissions: u32, bytes: &[u8]) {
        if self.paths.contains(path) {
            return;
        }
        if let Some(folder) = path.parent() {
            self.folder(folder);
        }
        self.entry(path, FILE_MODE | permissions, bytes);
    }

    fn entry(&mut self, path: &Path, mode: u32, bytes: &[u8]) {
        self.paths.insert(path.to_owned());
        let name = path.strip_prefix("/").unwrap_or(path).to_string_lossy().into_owned();
        self.record(&name, self.paths.len() as u32, mode, bytes);
    }

    /// One record: thirteen numbers of eight hexadecimal digits, the name with a final 0, the
    /// contents; both padded to four bytes. All belongs to root, and is as old as time.
    fn record(&mut self, name: &str, inode: u32, mode: u32, bytes: &[u8]) {
        let name_bytes = name.len() as u32 + 1;
        let numbers = [inode, mode, 0, 0, 1, 0, bytes.len() as u32, 0, 0, 0, 0, name_bytes, 0];
        self.bytes.extend_from_slice(b"070701");
        for number in numbers {
            self.bytes.extend_from_slice(format!("{number:08X}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(bytes);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        self.record("TRAILER!!!", 0, 0, &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests

    use super::*;

    /// Names, modes and contents of an archive's records, read by the format's own rules.
    fn read(mut bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut records = Vec::new();
        let mut at = 0;
        while !bytes.is_empty() {
            assert_eq!(&bytes[..6], b"070701");
            let number = |n: usize| {
                let digits = std::str::from_utf8(&bytes[6 + 8 * n..14 + 8 * n]).unwrap();
                u32::from_str_radix(digits, 16).unwrap() as usize
            };
            let (mode, size, name_bytes) = (number(1), number(6), number(11));
            let name = &bytes[110..110 + name_bytes - 1];
            let start = (110 + name_bytes).next_multiple_of(4);
            let contents = bytes[start..start + size].to_vec();
            records.push((String::from_utf8(name.to_vec()).unwrap(), mode as u32, contents));
            let next = (start + size).next_multiple_of(4);
            bytes = &bytes[next..];
            at += next;
            assert_eq!(at % 4, 0);
        }
        records
    }

    #[test]
    fn an_archive_holds_its_input() {
        let mut archive = Archive::default();
        archive.folder(Path::new("/proc"));
        archive.file(Path::new("/lib/x86/a.so"), 0o755, b"hello");
        archive.file(Path::new("/lib/b"), 0o644, b"");
        archive.file(Path::new("/lib/b"), 0o644, b"a second time");
        let records = read(&archive.finish());
        let names: Vec<(&str, u32, &[u8])> =
            records.iter().map(|(n, m, c)| (n.as_str(), *m, c.as_slice())).collect();
        assert_eq!(
            names,
            [
                ("proc", 0o040_755, &b""[..]),
                ("lib", 0o040_755, b""),
                ("lib/x86", 0o040_755, b""),
                ("lib/x86/a.so", 0o100_755, b"hello"),
                ("lib/b", 0o100_644, b""),
                ("TRAILER!!!", 0, b""),
            ]
        );
    }

    #[test]
    fn a_trimmed_program_still_runs() {
        let bytes = fs::read("/proc/self/exe").unwrap();
        let whole = bytes.len();
        let (trimmed, interpreter) = trimmed(bytes).unwrap();
        assert!(trimmed.len() < whole, "{} {whole}", trimmed.len());
        if let Some(interpreter) = interpreter {
            assert!(interpreter.exists(), "{}", interpreter.display());
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trimmed");
        fs::write(&file, trimmed).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&file, mode).unwrap();
        let list = || std::process::Command::new(&file).arg("--list").output();
        let mut listed = list();
        // A process that another test has just forked holds the file open until it is another program.
        while matches!(&listed, Err(e) if e.kind() == std::io::ErrorKind::ExecutableFileBusy) {
            std::thread::yield_now();
            listed = list();
        }
        let listed = listed.unwrap();
        assert!(String::from_utf8_lossy(&listed.stdout).contains("a_trimmed_program_still_runs"));
    }

    #[test]
    fn libraries_are_files() {
        for library in libraries() {
            assert!(library.exists(), "{}", library.display());
        }
    }
}
