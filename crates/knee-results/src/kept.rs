//! Finished runs, each in a file of its own, so that a reproduction that ended early can resume.
//!
//! A file's name is a hash of everything that made the record: the program, the host, the spec. The
//! program enters by a hash of the executable itself. A commit would leave out uncommitted changes, a hash of
//! the sources the compiler and the libraries; the executable holds all of them, the BPF objects too. A
//! rebuild that changes nothing of a run costs that run again, and no stale record is ever taken as evidence.

use knee_model::{HostError, HostErrorKind, RunRecord, RunSpec};
use sha2::{Digest, Sha256};
use std::{
    env,
    fmt::Display,
    fs::{self, File},
    io::{self, ErrorKind, Read, Write},
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
        let file = self.folder.join(self.file_name(host, spec));
        let told = |e: &dyn Display| {
            HostError::new(HostErrorKind::Broken, format!("{}: {e}", file.display()))
        };
        match fs::read(&file) {
            Ok(bytes) => {
                let record = decode(&bytes, spec);
                return record
                    .ok_or_else(|| told(&"damaged").with_help("remove it to run it again"));
            }
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(told(&e)),
        }
        let record = run(spec)?;
        let bytes = encode(&record).map_err(|e| told(&e))?;
        // It has its name only when it is whole.
        let mut new = NamedTempFile::new_in(&self.folder).map_err(|e| told(&e))?;
        new.write_all(&bytes).map_err(|e| told(&e))?;
        new.persist(&file).map_err(|e| told(&e.error))?;
        Ok(record)
    }

    fn file_name(&self, host: &str, spec: &RunSpec) -> String {
        format!("{}.run", digest([self.program.as_str(), host, &format!("{spec:?}")]))
    }
}

/// Hash of texts, in hexadecimal. Other texts, or the same ones cut elsewhere, have another.
pub fn digest<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        // With their lengths, so that no two keys are the same text.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex(&hash.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Hash of the executable that runs, in hexadecimal.
///
/// # Errors
/// Its file cannot be read.
pub fn running_program() -> io::Result<String> {
    // Linux opens there what runs, even if another file has its name by now.
    let path = match cfg!(target_os = "linux") {
        true => PathBuf::from("/proc/self/exe"),
        false => env::current_exe()?,
    };
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hash.finalize())),
            n => hash.update(&buffer[..n]),
        }
    }
}

fn encode(record: &RunRecord) -> Result<Vec<u8>, postcard::Error> {
    let record = postcard::to_stdvec(record)?;
    Ok([Sha256::digest(&record).as_slice(), &record].concat())
}

fn decode(bytes: &[u8], spec: &RunSpec) -> Option<RunRecord> {
    let (check, record) = bytes.split_at_checked(CHECK_BYTES)?;
    if Sha256::digest(record).as_slice() != check {
        return None;
    }
    let mut record: RunRecord = postcard::from_bytes(record).ok()?;
    record.name_observed(spec);
    Some(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_told_by_its_bytes() {
        let exe = fs::read(env::current_exe().expect("a path")).expect("the test's own file");
        assert_eq!(running_program().expect("a hash"), hex(&Sha256::digest(exe)));
        assert_eq!(hex(&[0, 171, 255]), "00abff");
    }
}
