//! The guest's file system: an archive in the format `newc` of cpio, unpacked by the kernel into
//! memory. It holds this very program with its libraries, and modules of the kernel.

use crate::kernels::{Kernel, module_files, module_name, uncompressed};
use cpio::newc;
use knee_model::{
    HostError,
    failure::{broken, doing, unavailable},
};
use std::{
    collections::BTreeMap,
    ffi::CStr,
    fs,
    io::Cursor,
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

const FOLDER_MODE: u32 = 0o040_755;
const FILE_MODE: u32 = 0o100_755;

/// Files and folders by their places, so that a folder comes before its files; a folder has no contents.
type Entries = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// The archive of a guest with `kernel`.
///
/// # Errors
/// A part cannot be read.
pub(crate) fn archive(kernel: &Kernel) -> Result<Vec<u8>, HostError> {
    let read = |file: &Path| fs::read(file).map_err(doing("reading", file));
    let mut entries: Entries = MOUNT_POINTS.map(|folder| (folder.into(), None)).into();
    entries.insert(PROGRAM.into(), Some(read(Path::new("/proc/self/exe"))?));
    for library in libraries() {
        let bytes = read(&library)?;
        entries.insert(library, Some(bytes));
    }
    for file in modules(kernel)? {
        let at = Path::new(MODULES).join(format!("{}.ko", module_name(&file)));
        entries.insert(at, Some(uncompressed(&file).map_err(doing("unpacking", &file))?));
    }
    packed(entries)
}

/// The archive of these entries and the folders above them.
fn packed(mut entries: Entries) -> Result<Vec<u8>, HostError> {
    let folders = entries.keys().flat_map(|at| at.ancestors().skip(1));
    let folders: Vec<_> = folders.filter(|at| at.parent().is_some()).map(Path::to_owned).collect();
    entries.extend(folders.into_iter().map(|folder| (folder, None)));
    let records = entries.into_iter().zip(1..).map(|((at, contents), inode)| {
        let name = at.strip_prefix("/").unwrap_or(&at).to_string_lossy().into_owned();
        let mode = if contents.is_some() { FILE_MODE } else { FOLDER_MODE };
        let record = newc::Builder::new(&name).ino(inode).mode(mode);
        (record, Cursor::new(contents.unwrap_or_default()))
    });
    cpio::write_cpio(records, Vec::new()).map_err(broken)
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

/// The libraries that this process has loaded, and the program that loads them.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests

    use super::*;
    use std::io::Read;

    #[test]
    fn folders_come_before_their_files() {
        let entries: Entries = [
            ("/proc".into(), None),
            ("/lib/x86/a.so".into(), Some(b"hello".to_vec())),
            ("/lib/b".into(), Some(Vec::new())),
        ]
        .into();
        let bytes = packed(entries).unwrap();
        let (mut rest, mut names) = (&bytes[..], Vec::new());
        loop {
            let mut record = newc::Reader::new(rest).unwrap();
            if record.entry().is_trailer() {
                break;
            }
            let mut contents = String::new();
            record.read_to_string(&mut contents).unwrap();
            names.push((record.entry().name().to_owned(), record.entry().mode(), contents));
            rest = record.finish().unwrap();
        }
        let names: Vec<_> = names.iter().map(|(n, m, c)| (n.as_str(), *m, c.as_str())).collect();
        assert_eq!(
            names,
            [
                ("lib", FOLDER_MODE, ""),
                ("lib/b", FILE_MODE, ""),
                ("lib/x86", FOLDER_MODE, ""),
                ("lib/x86/a.so", FILE_MODE, "hello"),
                ("proc", FOLDER_MODE, ""),
            ]
        );
    }

    #[test]
    fn the_loader_is_among_the_libraries() {
        let all = libraries();
        assert!(all.iter().all(|library| library.exists()), "{all:?}");
        assert!(all.iter().any(|library| library.ends_with("ld-linux-x86-64.so.2")), "{all:?}");
    }
}
