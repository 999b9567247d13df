//! Knee's folder among the user's caches.
//!
//! `knee-linux` contains this file too.

use knee_model::{
    HostError,
    failure::{doing, unavailable},
};
use std::{
    env, fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// Knee's folder among the caches of this user.
pub(crate) fn cache() -> Result<PathBuf, HostError> {
    let of = |name, below| {
        env::var_os(name).filter(|v| !v.is_empty()).map(|v| Path::new(&v).join(below))
    };
    let caches = of("XDG_CACHE_HOME", "").or_else(|| of("HOME", ".cache"));
    caches.map(|caches| caches.join("knee")).ok_or_else(|| {
        unavailable("there is no folder for the cache", "set HOME, or XDG_CACHE_HOME")
    })
}

/// The paths in a folder; none if there is no such folder.
pub(crate) fn paths_in(folder: &Path) -> Result<Vec<PathBuf>, HostError> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(entries.flatten().map(|entry| entry.path()).collect()),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(doing("reading", folder)(e)),
    }
}
