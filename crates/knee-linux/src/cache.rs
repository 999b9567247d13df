//! The cache of kernels, below the user's folder of caches.
//!
//! A kernel has its place in the cache only when it is whole.

use crate::{
    choice::KernelChoice,
    parts::hash_with,
    places::{cache, paths_in},
};
use knee_model::{
    HostError,
    failure::{doing, unavailable},
};
use serde::{Deserialize, Serialize};
use std::{
    cmp::Reverse,
    env,
    fs::{self, File},
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

/// File with the description of a kernel, and its program.
pub(crate) const ABOUT_FILE: &str = "kernel.json";
pub(crate) const PROGRAM_FILE: &str = "linux";
/// Folders that are not whole begin so.
pub(crate) const UNFINISHED: &str = ".new-";
/// The largest size of the cache, and the variable of the environment that changes it.
const LIMIT_BYTES: u64 = 8 << 30;
const LIMIT: &str = "8GiB";
const LIMIT_VARIABLE: &str = "KNEE_LINUX_CACHE";

/// Description of a kernel in the cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The choice that it was built for.
    pub choice: String,
    /// Name of its source package, or `tree`.
    pub package: String,
    /// Version of that package, or the tree's path.
    pub version: String,
    /// Its own name for its version.
    pub release: String,
    /// SHA-256 of the source archive.
    pub source_sha256: String,
    /// SHA-256 of everything that went in.
    pub hash: String,
}

impl About {
    /// Name and version of the source package.
    pub fn package(&self) -> String {
        format!("{} {}", self.package, self.version)
    }
}

/// A kernel in the cache.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its description.
    pub about: About,
    /// The program.
    pub program: PathBuf,
}

/// A kernel in the cache, and whether this program can use it.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The kernel.
    pub kernel: Kernel,
    /// False: it was built by another version of Knee.
    pub current: bool,
    /// Bytes that it takes.
    pub bytes: u64,
    /// Time of its build.
    pub built: SystemTime,
}

/// The folder of the cache.
pub(crate) fn folder() -> Result<PathBuf, HostError> {
    Ok(cache()?.join("linux"))
}

/// All kernels in the cache, newest version first, and among those of one version the latest.
///
/// # Errors
/// The cache cannot be read.
pub fn list() -> Result<Vec<Listed>, HostError> {
    let mut listed = Vec::new();
    for path in paths_in(&folder()?)? {
        // A folder without this file is not whole, or of another version of Knee.
        let Ok(json) = fs::read(path.join(ABOUT_FILE)) else { continue };
        let Ok(about) = serde_json::from_slice::<About>(&json) else { continue };
        let program = path.join(PROGRAM_FILE);
        let Ok(metadata) = fs::metadata(&program) else { continue };
        let built = metadata.modified().unwrap_or(UNIX_EPOCH);
        let current = about.hash == hash_with(&about.source_sha256);
        let bytes = metadata.len();
        listed.push(Listed { kernel: Kernel { about, program }, current, bytes, built });
    }
    listed.sort_by(|a, b| {
        let key = |listed: &Listed| (listed.kernel.about.release.clone(), listed.built);
        key(b).cmp(&key(a))
    });
    Ok(listed)
}

/// The kernel in the cache for `choice`.
///
/// # Errors
/// There is none that this program can use.
pub(crate) fn find(choice: &KernelChoice) -> Result<Kernel, HostError> {
    let name = choice.to_string();
    let mut known =
        list()?.into_iter().filter(|listed| listed.kernel.about.choice == name).peekable();
    let other = known.peek().is_some();
    known.find(|listed| listed.current).map(|listed| listed.kernel).ok_or_else(|| {
        let why = match other {
            true => format!("the kernel {name} in the cache was built by another version of Knee"),
            false => format!("there is no kernel {name} in the cache for `--host linux`"),
        };
        unavailable(why, format!("`knee linux build {name}` builds it, in about 5 minutes"))
    })
}

/// The kernels that are to be removed from the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remove {
    /// All of them.
    All,
    /// Kernels of other versions of Knee, and the oldest, until the others take at most this many bytes.
    Beyond(u64),
}

/// The largest size of the cache, bytes.
///
/// # Errors
/// The variable that sets it is no size.
pub fn limit_bytes() -> Result<u64, HostError> {
    let Some(text) = env::var_os(LIMIT_VARIABLE) else { return Ok(LIMIT_BYTES) };
    let text = text.to_string_lossy();
    knee_units::SIZE.parse(&text).map_err(|e| {
        unavailable(format!("{LIMIT_VARIABLE}: {e}"), format!("set it to a size such as {LIMIT}"))
    })
}

/// Removes kernels from the cache. Returns their number and their bytes.
///
/// # Errors
/// One cannot be removed.
pub fn clean(which: Remove) -> Result<(usize, u64), HostError> {
    if !folder()?.exists() {
        return Ok((0, 0));
    }
    let _lock = lock()?;
    remove_unfinished()?;
    let is_old = |listed: &Listed| which == Remove::All || !listed.current;
    let (old, mut kept): (Vec<_>, Vec<_>) = list()?.into_iter().partition(is_old);
    let Remove::Beyond(limit_bytes) = which else { return remove(&old) };
    kept.sort_by_key(|listed| Reverse(listed.built));
    let removed = remove(&old)?;
    let beyond = remove(&kept[kept.len().min(within(&kept, limit_bytes))..])?;
    Ok((removed.0 + beyond.0, removed.1 + beyond.1))
}

/// Removes the oldest kernels until the others, `new` among them, take at most `limit_bytes`. Nobody else builds now.
pub(crate) fn make_room(new: &Kernel, limit_bytes: u64) -> Result<(), HostError> {
    let mut kept = list()?;
    kept.sort_by_key(|listed| Reverse((listed.kernel.program == new.program, listed.built)));
    // The new one stays, however large it is.
    remove(&kept[kept.len().min(within(&kept, limit_bytes).max(1))..]).map(drop)
}

/// The number of kernels, from the first one on, that together take at most `limit_bytes`.
fn within(kernels: &[Listed], limit_bytes: u64) -> usize {
    let totals = kernels.iter().scan(0_u64, |total, listed| {
        *total = total.saturating_add(listed.bytes);
        Some(*total)
    });
    totals.take_while(|total| *total <= limit_bytes).count()
}

/// Removes kernels. Returns their number and their bytes. A run in one of them continues.
fn remove(kernels: &[Listed]) -> Result<(usize, u64), HostError> {
    for place in kernels.iter().filter_map(|listed| listed.kernel.program.parent()) {
        fs::remove_dir_all(place).map_err(doing("removing", place))?;
    }
    Ok((kernels.len(), kernels.iter().map(|listed| listed.bytes).sum()))
}

/// Waits until no other process builds or removes kernels.
pub(crate) fn lock() -> Result<File, HostError> {
    let folder = folder()?;
    fs::create_dir_all(&folder).map_err(doing("creating", &folder))?;
    let path = folder.join("lock");
    let file = File::create(&path).map_err(doing("creating", &path))?;
    file.lock().map_err(doing("locking", &path))?;
    Ok(file)
}

/// Removes the remains of builds that were killed. Nobody builds now.
pub(crate) fn remove_unfinished() -> Result<(), HostError> {
    let folder = folder()?;
    for entry in fs::read_dir(&folder).map_err(doing("reading", &folder))?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            let path = entry.path();
            fs::remove_dir_all(&path).map_err(doing("removing", &path))?;
        }
    }
    Ok(())
}
