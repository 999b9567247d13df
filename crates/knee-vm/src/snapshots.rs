//! Guests that have booted, kept in the cache: each run goes on from one.

use crate::{
    error::{broken, doing},
    initramfs::Parts,
    kernels::{self, Kernel},
    machine::{self, Machine, Snapshot},
    remembered::{Remembered, hex},
};
use knee_run::HostError;
use nix::{
    fcntl::{AT_FDCWD, AtFlags},
    unistd::linkat,
};
use sha2::{Digest, Sha256};
use std::{
    fs::{self, File, OpenOptions},
    io::ErrorKind,
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
    time::SystemTime,
};

/// Snapshots that stay in the cache, the latest ones. Each build of this program makes its own.
const KEPT: usize = 6;

/// A guest that waits for a run.
pub(crate) struct Booted {
    pub kernel: Kernel,
    /// QEMU's version.
    pub qemu: String,
    /// Hash of all that it is made of: kernel, file system with this program, QEMU, arguments.
    pub hash: String,
    pub arguments: Vec<String>,
    pub snapshot: Snapshot,
}

impl Booted {
    /// The one with `kernel`, from the cache or booted now.
    pub(crate) fn with(kernel: Kernel) -> Result<Self, HostError> {
        let folder = kernels::cache()?.join("vm");
        let remembered = Remembered::in_folder(kernels::cache()?.join("known"));
        let program = machine::program()?;
        let qemu = remembered.of(&program, "version", || machine::version(&program))?;
        let parts = Parts::of(&kernel)?;
        let arguments = machine::arguments(&kernel.image);
        let mut hash = Sha256::new();
        hash.update(parts.hashes(&remembered)?);
        hash.update(remembered.hash(&kernel.image)?);
        hash.update(format!("{qemu} {:?}", machine::arguments(Path::new("IMAGE"))));
        let hash = hex(&hash.finalize());
        let path = folder.join(format!("{hash}.snapshot"));
        let snapshot = match open(&path) {
            Ok(file) => Snapshot::of(file),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs::create_dir_all(&folder).map_err(doing("creating", &folder))?;
                let snapshot = boot(&arguments, &parts.archive()?, &folder, &path)?;
                forget_old(&folder);
                snapshot
            }
            Err(error) => return Err(doing("opening", &path)(error)),
        };
        Ok(Self { kernel, qemu, hash, arguments, snapshot })
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    // QEMU wants to open it for writing, and does not write.
    OpenOptions::new().read(true).write(true).open(path)
}

/// Boots a guest. Its snapshot gets its name when it is whole; until then it has none.
fn boot(
    arguments: &[String],
    initramfs: &[u8],
    folder: &Path,
    path: &Path,
) -> Result<Snapshot, HostError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE);
    let file = options.open(folder).map_err(doing("making a file in", folder))?;
    let kept = Machine::boot(arguments, initramfs, file)?;
    let snapshot = kept.map_err(|e| {
        let error = doing("keeping a virtual machine in", folder)(e);
        error.with_help("it takes 100 MB or more; XDG_CACHE_HOME names another place for the cache")
    })?;
    let unnamed = PathBuf::from(format!("/proc/self/fd/{}", snapshot.file().as_raw_fd()));
    match linkat(AT_FDCWD, &unnamed, AT_FDCWD, path, AtFlags::AT_SYMLINK_FOLLOW) {
        // Another process was faster.
        Ok(()) | Err(nix::errno::Errno::EEXIST) => Ok(snapshot),
        Err(error) => Err(broken(format!("naming {}: {error}", path.display()))),
    }
}

/// Removes snapshots that have not been made lately. Who uses one has it open.
fn forget_old(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    files.sort();
    let old = files.len().saturating_sub(KEPT);
    for (_, path) in &files[..old] {
        // What cannot be removed stays.
        let _ = fs::remove_file(path);
    }
}
