//! The BPF file system, and the pins in it that keep variants.

use crate::{
    PIN_DIR,
    error::{not_permitted, of_file},
};
use knee_model::{HostError, failure::broken};
use libbpf_rs::Link;
use rustix::{
    fs::statfs,
    mount::{MountFlags, mount},
};
use std::{
    collections::HashMap,
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

/// Mount point of the BPF file system.
pub(crate) const BPFFS: &str = "/sys/fs/bpf";
/// `BPF_FS_MAGIC`.
const BPFFS_MAGIC: u32 = 0xcafe_4a11;

pub(crate) fn pin_path(name: &str) -> PathBuf {
    Path::new(PIN_DIR).join(name)
}

pub(crate) fn has_bpffs() -> io::Result<bool> {
    Ok(statfs(BPFFS)?.f_type as u32 == BPFFS_MAGIC)
}

/// Makes the folder of the pins; true if a file system had to be mounted for it.
pub(crate) fn ensure_pin_dir() -> Result<bool, HostError> {
    let mounted = !has_bpffs().map_err(|e| pin_error(BPFFS, e))?;
    if mounted {
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount("bpf", BPFFS, "bpf", flags, Some(c"mode=0700"))
            .map_err(|e| pin_error(BPFFS, e.into()))?;
    }
    match fs::DirBuilder::new().mode(0o700).create(PIN_DIR) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Err(broken(format!(
            "{PIN_DIR}: not permitted; only root can write there: `load --hold` needs no file"
        ))),
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(pin_error(PIN_DIR, e)),
        _ => Ok(mounted),
    }
}

/// Removes a pin, and the folder after the last one.
pub(crate) fn remove_pin(path: &Path) -> Result<(), HostError> {
    fs::remove_file(path).map_err(|e| pin_error(path, e))?;
    // Not empty: other variants are pinned.
    let _ = fs::remove_dir(PIN_DIR);
    Ok(())
}

/// Pins by the number of their link.
pub(crate) fn pins() -> HashMap<u32, PathBuf> {
    let entries = fs::read_dir(PIN_DIR).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let path = entry.path();
            Some((Link::open(&path).ok()?.info().ok()?.id, path))
        })
        .collect()
}

/// An error of a file below [`PIN_DIR`].
fn pin_error(path: impl AsRef<Path>, error: io::Error) -> HostError {
    let path = path.as_ref();
    match error.kind() {
        io::ErrorKind::PermissionDenied => not_permitted(path.display()),
        _ => of_file(path, &error),
    }
}
