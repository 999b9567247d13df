//! Guests that have booted, and those of them that have loaded algorithms too, kept in the cache: each
//! run starts from one.

use crate::{
    initramfs::Parts,
    kernels::Kernel,
    machine::{self, Machine, Prepared, Snapshot},
    message::{Answer, Compiled, Request},
    places::cache,
    remembered::{Remembered, forget_old},
};
use knee_cc::Params;
use knee_model::{
    HostError,
    failure::{broken, doing},
    hex,
};
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
    sync::Arc,
    time::SystemTime,
};

/// Snapshots that stay in the cache, those used last. Each build of this program makes its own, and for
/// each set of algorithms in a run another.
const KEPT: usize = 16;

/// A guest that waits for a run.
pub(crate) struct Booted {
    pub kernel: Kernel,
    /// QEMU's version.
    pub qemu: String,
    /// Hash of all that it is made of: kernel, file system with this program, QEMU, arguments.
    pub hash: String,
    pub arguments: Vec<String>,
    pub snapshot: Arc<Snapshot>,
}

impl Booted {
    /// The one with `kernel`, from the cache or booted now.
    pub(crate) fn with(kernel: Kernel) -> Result<Self, HostError> {
        let folder = cache()?.join("vm");
        let remembered = Remembered::in_folder(cache()?.join("known"));
        let program = machine::program()?;
        let qemu = remembered.of(&program, "version", || machine::version(&program))?;
        let parts = Parts::of(&kernel)?;
        let arguments = machine::arguments(&kernel.image);
        let mut hash = Sha256::new();
        hash.update(parts.hashes(&remembered)?);
        hash.update(remembered.hash(&kernel.image)?);
        hash.update(format!("{qemu} {:?}", machine::arguments(Path::new("IMAGE"))));
        let hash = hex(&hash.finalize());
        let boot = |file| Machine::boot(&arguments, &parts.archive()?, file);
        let snapshot = kept(&folder, &hash, boot)?.into();
        Ok(Self { kernel, qemu, hash, arguments, snapshot })
    }

    /// It, once it has loaded these algorithms: from the cache, or loaded now. Reading the kernel's types
    /// and the verifier take three times as long as all else in a run's start.
    pub(crate) fn loaded(&self, needed: &[Params]) -> Result<Snapshot, HostError> {
        let own = Compiled::all(needed.iter().map(Params::algorithm))?;
        let request = postcard::to_stdvec(&(own, Request::Load(needed.to_vec())));
        let request = request.map_err(broken)?;
        let hash = hex(&Sha256::new().chain_update(&self.hash).chain_update(&request).finalize());
        let load = |file| match Machine::prepare(&self.arguments, &self.snapshot, &request, file)? {
            Prepared::Kept(kept) => Ok(kept),
            Prepared::Refused(results) => Err(Answer::of(&results)?
                .record
                .err()
                .unwrap_or_else(|| broken("the guest made a run, and was to load algorithms"))),
        };
        kept(&cache()?.join("vm"), &hash, load)
    }
}

/// The snapshot of this hash, from the cache or made now.
fn kept(
    folder: &Path,
    hash: &str,
    make: impl FnOnce(File) -> Result<std::io::Result<Snapshot>, HostError>,
) -> Result<Snapshot, HostError> {
    let path = folder.join(format!("{hash}.snapshot"));
    // QEMU wants to open it for writing, and does not write.
    match OpenOptions::new().read(true).write(true).open(&path) {
        Ok(file) => {
            // Where that is not possible, it is forgotten earlier.
            let _ = file.set_modified(SystemTime::now());
            return Ok(Snapshot::of(file));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(doing("opening", &path)(error)),
    }
    fs::create_dir_all(folder).map_err(doing("creating", folder))?;
    let snapshot = named(make, folder, &path)?;
    // Those that have not been used lately. Who uses one has it open.
    forget_old(folder, KEPT);
    Ok(snapshot)
}

/// Makes a snapshot. It gets its name when it is whole; until then it has none.
fn named(
    make: impl FnOnce(File) -> Result<std::io::Result<Snapshot>, HostError>,
    folder: &Path,
    path: &Path,
) -> Result<Snapshot, HostError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE);
    let file = options.open(folder).map_err(doing("making a file in", folder))?;
    let snapshot = make(file)?.map_err(|e| {
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
