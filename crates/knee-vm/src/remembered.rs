//! Results worked out about a file, remembered until the file changes: a run is to begin at once, and a
//! hash of all that goes into it takes longer than that.
//!
//! Each is a symbolic link whose target is the text: made at once and whole, or not at all.

use knee_model::{HostError, digest, failure::doing};
use std::{
    fs::{self, File},
    io,
    os::unix::fs::{MetadataExt, symlink},
    path::{Path, PathBuf},
    time::SystemTime,
};

/// Number of texts kept; a program, its libraries and the modules of a kernel are about 30.
const KEPT: usize = 500;

/// A folder of them.
pub(crate) struct Remembered {
    folder: PathBuf,
}

impl Remembered {
    /// Those in this folder, which is made when something is remembered.
    pub(crate) fn in_folder(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// SHA-256 of a file's contents, in hexadecimal digits.
    pub(crate) fn hash(&self, file: &Path) -> Result<String, HostError> {
        self.of(file, "sha256", || {
            File::open(file).and_then(digest::of_all).map_err(doing("reading", file))
        })
    }

    /// Returns the result of `work` about `file`, under the name `what`. If it cannot be remembered, it is
    /// worked out each time.
    pub(crate) fn of(
        &self,
        file: &Path,
        what: &str,
        work: impl FnOnce() -> Result<String, HostError>,
    ) -> Result<String, HostError> {
        let identity = |file: &Path| -> io::Result<String> {
            let of = fs::metadata(file)?;
            let changed = [of.mtime(), of.mtime_nsec(), of.ctime(), of.ctime_nsec()];
            Ok(format!("{what} {} {} {} {changed:?}", of.dev(), of.ino(), of.size()))
        };
        let name = identity(file).map_err(doing("looking at", file))?;
        let link = self.folder.join(digest::of_bytes(&name));
        if let Some(known) = fs::read_link(&link).ok().and_then(|t| t.to_str().map(str::to_owned)) {
            return Ok(known);
        }
        let text = work()?;
        // Not of a file that changed meanwhile.
        if identity(file).is_ok_and(|now| now == name) {
            let _ = fs::create_dir_all(&self.folder).and_then(|()| symlink(&text, &link));
            forget_old(&self.folder, KEPT);
        }
        Ok(text)
    }
}

/// Removes the oldest files of a folder, so that `kept` are left.
pub(crate) fn forget_old(folder: &Path, kept: usize) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    files.sort();
    for (_, path) in &files[..files.len().saturating_sub(kept)] {
        // A file that cannot be removed stays.
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests

    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_file_is_looked_at_again_once_it_has_changed() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        let remembered = Remembered::in_folder(place.path().join("links"));
        let worked = Cell::new(0);
        let size = || {
            let work = || {
                worked.set(worked.get() + 1);
                Ok(fs::metadata(&file).unwrap().len().to_string())
            };
            remembered.of(&file, "size", work).unwrap()
        };
        fs::write(&file, "four").unwrap();
        assert_eq!([size(), size()], ["4", "4"]);
        assert_eq!(worked.get(), 1);
        fs::write(&file, "fives").unwrap();
        assert_eq!(size(), "5");
        assert_eq!(worked.get(), 2);
        // SHA-256 of "fives", by another program.
        let hash = remembered.hash(&file).unwrap();
        assert_eq!(hash, "cca00fd88d774fe5aee1be5ca1a1561b1672892011d8f48da6cc2c202181c5f9");
        assert_eq!(remembered.hash(&file).unwrap(), hash);
    }

    #[test]
    fn without_a_folder_the_answer_is_the_same() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, "x").unwrap();
        let remembered = Remembered::in_folder(file.join("no folder"));
        assert_eq!(remembered.of(&file, "word", || Ok("x".to_owned())).unwrap(), "x");
    }
}
