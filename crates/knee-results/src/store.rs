//! A results folder that is either complete or not there.
//!
//! Everything is written into a hidden folder next to the final one, on the same file system, and
//! moved into place in one step at the end. The hidden folder is locked while its writer lives, so the next
//! run recognises and removes the remains of a killed one.

use crate::ResultsError;
use knee_cc::Algorithm;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    fs::{self, File, Permissions, TryLockError},
    io::{self, BufWriter, Write},
    os::unix::fs::PermissionsExt,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tempfile::TempDir;

/// Prefix of the folders that are being written.
const UNFINISHED: &str = ".knee-unfinished-";

/// Longest name of a file or folder in Linux.
const NAME_MAX_BYTES: usize = 255;

fn advice(error: &io::Error) -> &'static str {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded => {
            "there is no room: free some, choose another disk, or record less; \
             no unfinished results were left behind"
        }
        FileTooLarge => {
            "a limit on the size of files was met (see `ulimit -f`): raise it, or record less; \
             no unfinished results were left behind"
        }
        _ => "no unfinished results were left behind; run again when the cause is gone",
    }
}

/// Writes a results folder. Dropped before [`finish`](Self::finish), it leaves nothing behind.
#[derive(Debug)]
pub struct ResultWriter {
    out: PathBuf,
    parent: PathBuf,
    /// Locked as long as it is open. Closed before `work` is removed, which may take its descriptor.
    _lock: File,
    work: TempDir,
    /// Held while anything comes to be in the folder or it is moved; for good once abandoned.
    gate: Gate,
}

type Gate = Arc<Mutex<()>>;

fn pass(gate: &Gate) -> MutexGuard<'_, ()> {
    gate.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes a results folder that is being written, from another thread: for a program that is
/// told to end.
#[derive(Clone, Debug)]
pub struct Abandon {
    work: PathBuf,
    gate: Gate,
}

impl Abandon {
    /// Removes what there is of it, unless it is complete already. Its writer waits for ever at
    /// its next step: the program must end.
    pub fn now(&self) {
        std::mem::forget(pass(&self.gate));
        // The next run tries again.
        let _ = fs::remove_dir_all(&self.work);
    }
}

impl ResultWriter {
    /// Begins the results folder `out`, whose parent must exist. Removes what killed runs left
    /// unfinished in the same parent.
    ///
    /// # Errors
    /// Something is at `out` already, or its parent is missing or cannot be written to.
    pub fn create(out: &Path) -> Result<Self, ResultsError> {
        if out.file_name().is_none_or(|name| name.len() > NAME_MAX_BYTES) {
            let what = format!("`{}` cannot be the name of a results folder", out.display());
            let help =
                "give a path that ends in a name of at most 255 bytes, such as `results/first`";
            return Err(ResultsError::new(what, help, None));
        }
        let parent = match out.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        if fs::symlink_metadata(out).is_ok() {
            return Err(exists(out));
        }
        let shown = parent.display();
        if !parent.exists() {
            let what = format!("there is no folder `{shown}` for the results");
            let help = format!("create it (`mkdir -p {shown}`), or choose another place");
            return Err(ResultsError::new(what, help, None));
        }
        if !parent.is_dir() {
            let what = format!("`{shown}` is not a folder, so it cannot hold results");
            return Err(ResultsError::new(what, "choose another place", None));
        }
        remove_unfinished(&parent);
        let (work, lock) = open_work(&parent).map_err(|source| {
            let what = format!("results cannot be written to {shown}");
            ResultsError::new(what, "choose a folder that you can write to", Some(source))
        })?;
        Ok(Self { out: out.to_owned(), parent, work, _lock: lock, gate: Arc::default() })
    }

    /// A handle that removes the folder before it is finished.
    pub fn abandon(&self) -> Abandon {
        Abandon { work: self.work.path().to_owned(), gate: self.gate.clone() }
    }

    /// The folder's place until it is finished, for files that others write into it.
    pub fn folder(&self) -> &Path {
        self.work.path()
    }

    /// Writes the file `name` (relative to the results folder; folders in it are made) with
    /// whatever `content` writes.
    ///
    /// # Errors
    /// `content` failed, or the file could not be written, or `name` leads out of the folder.
    pub fn write(
        &self,
        name: &str,
        content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), ResultsError> {
        let write = || {
            if !Path::new(name).components().all(|c| matches!(c, Component::Normal(_))) {
                return Err(io::Error::other("the name leads out of the results folder"));
            }
            let mut file = BufWriter::new(self.open(&self.work.path().join(name))?);
            content(&mut file)?;
            file.into_inner()?.sync_all()
        };
        write().map_err(|source| self.failed(name, source))
    }

    /// Writes bytes (or text) as a file.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn bytes(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<(), ResultsError> {
        self.write(name, |file| file.write_all(bytes.as_ref()))
    }

    /// Writes a value as indented JSON.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn json(&self, name: &str, value: &impl Serialize) -> Result<(), ResultsError> {
        self.write(name, |file| {
            serde_json::to_writer_pretty(&mut *file, value)?;
            file.write_all(b"\n")
        })
    }

    /// Writes those of these algorithms that came from C files, as `NAME.c`.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn algorithms(&self, all: impl IntoIterator<Item = Algorithm>) -> Result<(), ResultsError> {
        let own = all.into_iter().filter_map(|a| Some((a.name(), &a.source()?.text)));
        let own: BTreeMap<_, _> = own.collect();
        own.into_iter().try_for_each(|(name, text)| self.bytes(&format!("{name}.c"), text))
    }

    /// Moves the folder into place, safe on disk. Gives its path.
    ///
    /// # Errors
    /// Something came to be at that path meanwhile, or the system refused; then nothing is left.
    pub fn finish(self) -> Result<PathBuf, ResultsError> {
        let from = self.work.path().to_owned();
        self.move_into_place(&from)
    }

    /// Moves the file `name` into place instead: the result is not a folder but this file.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub fn finish_file(self, name: &str) -> Result<PathBuf, ResultsError> {
        let from = self.work.path().join(name);
        self.move_into_place(&from)
    }

    fn move_into_place(mut self, from: &Path) -> Result<PathBuf, ResultsError> {
        let synced = sync_folders(self.work.path());
        let _passed = pass(&self.gate);
        let moved = synced.and_then(|()| rename(from, &self.out));
        match moved {
            Ok(()) => {
                self.work.disable_cleanup(from == self.work.path());
                // Without this a power cut may undo the move, but never half of it.
                let _ = File::open(&self.parent).and_then(|parent| parent.sync_all());
                Ok(self.out)
            }
            Err(e) if is_taken(&e) => Err(exists(&self.out)),
            Err(source) => Err(self.failed("the results folder", source)),
        }
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        let _passed = pass(&self.gate);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        File::create_new(path)
    }

    fn failed(&self, name: &str, source: io::Error) -> ResultsError {
        let what = format!("cannot write {name} in {}", self.parent.display());
        ResultsError::new(what, advice(&source), Some(source))
    }
}

fn exists(out: &Path) -> ResultsError {
    let help = "results are never overwritten: choose another name, or remove it first";
    ResultsError::new(format!("`{}` already exists", out.display()), help, None)
}

fn is_taken(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty, NotADirectory};
    matches!(error.kind(), AlreadyExists | DirectoryNotEmpty | NotADirectory)
}

/// Renames without replacing anything.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system knows the flag. Plain renaming replaces an empty folder at most.
        Err(rustix::io::Errno::INVAL) => fs::rename(from, to),
        result => Ok(result?),
    }
}

/// Makes the entries of `folder` and of all folders in it durable; the files are so already.
fn sync_folders(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    File::open(folder)?.sync_all()
}

/// Makes a folder to work in and locks it.
fn open_work(parent: &Path) -> io::Result<(TempDir, File)> {
    loop {
        let work = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .permissions(Permissions::from_mode(0o777))
            .tempdir_in(parent)?;
        let locked = File::open(work.path()).and_then(|folder| {
            // A file system without locks serves too: then leftovers are never removed.
            let _ = folder.lock();
            // Another run may have taken it for a leftover before it was locked.
            fs::metadata(work.path()).map(|_| folder)
        });
        match locked {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            result => return Ok((work, result?)),
        }
    }
}

/// Removes unfinished folders whose writers are gone. One that cannot be removed does no harm.
fn remove_unfinished(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(UNFINISHED)
            && entry.file_type().is_ok_and(|t| t.is_dir());
        let Some(folder) = ours.then(|| File::open(entry.path()).ok()).flatten() else { continue };
        match folder.try_lock() {
            Ok(()) => {
                let _ = fs::remove_dir_all(entry.path());
            }
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
        }
    }
}
