//! Finished runs, each in a file of its own, so that a reproduction or an evaluation that ended early can
//! resume.
//!
//! A file's name is a hash of everything that made its content: the program, the host, the spec. The
//! program enters by a hash of the executable itself. A commit would leave out uncommitted changes, a hash of
//! the sources the compiler and the libraries; the executable holds all of them, the BPF objects too. A
//! rebuild that changes nothing of a run costs that run again, and no stale record is ever taken as evidence.

use crate::ResultsError;
use knee_model::{HostError, RunRecord, RunSpec, digest};
use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use std::{
    env,
    fmt::Display,
    fs::{self, File},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;

const CHECK_BYTES: usize = 32;

/// A folder of finished runs.
#[derive(Clone, Debug)]
pub struct KeptRuns {
    folder: PathBuf,
    program: String,
}

impl KeptRuns {
    /// The runs in `folder` that this very program made. The folder is made if it is not there.
    ///
    /// # Errors
    /// It cannot be made, or the program's own file cannot be read, in words.
    pub fn open(folder: &Path) -> Result<Self, String> {
        let program = running_program()
            .map_err(|e| format!("cannot read this program's own file, to tell its runs: {e}"))?;
        Self::made_by(&program, folder)
    }

    /// The runs in `folder` that `program` made, which this text distinguishes from others.
    ///
    /// # Errors
    /// The folder is not there and cannot be made, in words.
    pub fn made_by(program: &str, folder: &Path) -> Result<Self, String> {
        fs::create_dir_all(folder)
            .map_err(|e| format!("cannot create the folder {} for runs: {e}", folder.display()))?;
        Ok(Self { folder: folder.to_owned(), program: program.to_owned() })
    }

    /// The stored record of `spec`, or else the record that `run` makes, which is then stored. `host` is the
    /// host's fingerprint: everything but program and spec on which the record depends, such as the kernel.
    /// Runs with a trace are not stored.
    ///
    /// # Errors
    /// The errors of `run`; a file that cannot be read or written. Failed runs are not kept.
    pub fn or_run(
        &self,
        host: &str,
        spec: &RunSpec,
        run: impl FnOnce(&RunSpec) -> Result<RunRecord, HostError>,
    ) -> Result<RunRecord, HostError> {
        if spec.record.trace {
            return run(spec);
        }
        let mut record: RunRecord = self.or_make(&[host, &format!("{spec:?}")], || run(spec))?;
        record.name_observed(spec);
        Ok(record)
    }

    /// The stored value of `key`, or else the value that `make` makes, which is then stored. The key holds
    /// everything but the program on which the value depends.
    ///
    /// # Errors
    /// The errors of `make`; a file that cannot be read or written.
    pub fn or_make<T: Serialize + DeserializeOwned, E: From<ResultsError>>(
        &self,
        key: &[&str],
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let name = digest::of_parts([self.program.as_str()].iter().chain(key));
        let file = self.folder.join(format!("{name}.run"));
        let told = |why: &dyn Display| {
            let what = format!("{}: {why}", file.display());
            ResultsError::new(what, "free space, or name another folder", None)
        };
        match fs::read(&file) {
            Ok(bytes) => {
                let help = "remove it to run it again".to_owned();
                return Ok(decode(&bytes).ok_or_else(|| ResultsError { help, ..told(&"damaged") })?);
            }
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(told(&e).into()),
        }
        let value = make()?;
        let bytes = encode(&value).map_err(|e| told(&e))?;
        // It has its name only when it is whole.
        let mut new = NamedTempFile::new_in(&self.folder).map_err(|e| told(&e))?;
        new.write_all(&bytes).map_err(|e| told(&e))?;
        new.persist(&file).map_err(|e| told(&e.error))?;
        Ok(value)
    }
}

/// Hash of the executable that runs, in hexadecimal.
///
/// # Errors
/// Its file cannot be read.
fn running_program() -> io::Result<String> {
    // Linux opens there what runs, even if another file has its name by now.
    let path = match cfg!(target_os = "linux") {
        true => PathBuf::from("/proc/self/exe"),
        false => env::current_exe()?,
    };
    digest::of_all(File::open(path)?)
}

fn encode(value: &impl Serialize) -> Result<Vec<u8>, postcard::Error> {
    let value = postcard::to_stdvec(value)?;
    Ok([Sha256::digest(&value).as_slice(), &value].concat())
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (check, value) = bytes.split_at_checked(CHECK_BYTES)?;
    if Sha256::digest(value).as_slice() != check {
        return None;
    }
    postcard::from_bytes(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_told_by_its_bytes() {
        let exe = fs::read(env::current_exe().expect("a path")).expect("the test's own file");
        assert_eq!(running_program().expect("a hash"), digest::of_bytes(exe));
        assert_eq!(knee_model::hex(&[0, 171, 255]), "00abff");
    }
}
