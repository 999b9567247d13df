//! Measures of finished runs, in a file that grows by a line for each. An evaluation that ended early
//! resumes from it.
//!
//! A line counts only when it is whole. Its key is a hash of everything that made it: the program,
//! the host, the spec, the formulas.

use super::criterion::Criterion;
use knee_model::{Host, RunOptions, RunSpec};
use knee_results::kept::{digest, running_program};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// Name of the file in its folder.
const FILE: &str = "evaluation.jsonl";

/// Measures of one run: each measure's quantity and bound.
pub(super) type Measured = Vec<(f64, Option<f64>)>;

/// Key that distinguishes a run's values from others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(String);

#[derive(Serialize, Deserialize)]
struct Line {
    key: String,
    measured: Measured,
}

/// A journal in a folder. A run that leaves a measure undefined is not kept.
pub struct Journal {
    program: String,
    path: PathBuf,
    known: BTreeMap<String, Measured>,
    file: Mutex<File>,
}

impl Journal {
    /// Opens that of `folder`, which is made if it is not there.
    ///
    /// # Errors
    /// It cannot be read or written, or another evaluation is writing it: in words.
    pub fn open(folder: &Path) -> Result<Self, String> {
        let program = running_program()
            .map_err(|e| format!("cannot read this program's own file, to tell its runs: {e}"))?;
        fs::create_dir_all(folder).map_err(|e| {
            format!("cannot create the folder {}: {e}; name another one", folder.display())
        })?;
        let path = folder.join(FILE);
        let told = |e: std::io::Error| format!("{}: {e}", path.display());
        let mut file = OpenOptions::new().create(true).append(true).open(&path).map_err(told)?;
        file.try_lock().map_err(|_| {
            format!(
                "{}: another evaluation is writing it; wait, or name another folder",
                path.display()
            )
        })?;
        let text = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(told(e)),
        };
        if text.last().is_some_and(|last| *last != b'\n') {
            // The last line was cut off, so the next entry needs a new line.
            file.write_all(b"\n").map_err(told)?;
        }
        let known = text
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice::<Line>(line).ok())
            .map(|line| (line.key, line.measured))
            .collect();
        Ok(Self { program, path, known, file: Mutex::new(file) })
    }

    /// The key of the values that `criterion` measures of `spec` on `host`.
    pub(super) fn key(
        &self,
        criterion: &Criterion,
        spec: &RunSpec,
        host: &dyn Host,
        options: &RunOptions,
    ) -> Key {
        let fingerprint = host.fingerprint(spec, options).unwrap_or_default();
        let (spec, measures) = (format!("{spec:?}"), format!("{:?}", criterion.measures));
        Key(digest([self.program.as_str(), host.name(), &fingerprint, &spec, &measures]))
    }

    pub(super) fn get(&self, key: &Key) -> Option<Measured> {
        self.known.get(&key.0).cloned()
    }

    pub(super) fn add(&self, key: Key, measured: &Measured) -> Result<(), String> {
        // JSON has no such numbers; the run is made again.
        if measured.iter().any(|(x, bound)| !x.is_finite() || bound.is_some_and(|b| !b.is_finite()))
        {
            return Ok(());
        }
        let line = Line { key: key.0, measured: measured.clone() };
        let told = |e: &dyn std::fmt::Display| format!("{}: {e}", self.path.display());
        let mut text = serde_json::to_vec(&line).map_err(|e| told(&e))?;
        text.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&text).map_err(|e| told(&e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_off_does_not_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let key = |name: &str| Key(name.to_owned());
        let journal = Journal::open(folder.path()).expect("a journal");
        journal.add(key("a"), &vec![(0.1, None), (2.0, Some(3.0))]).expect("room");
        journal.add(key("b"), &vec![(4.0, None)]).expect("room");
        assert!(Journal::open(folder.path()).is_err_and(|e| e.contains("another evaluation")));
        drop(journal);
        let path = folder.path().join(FILE);
        let bytes = fs::read(&path).expect("the file");
        fs::write(&path, &bytes[..bytes.len() - 5]).expect("room");
        let journal = Journal::open(folder.path()).expect("a journal");
        assert_eq!(journal.get(&key("a")), Some(vec![(0.1, None), (2.0, Some(3.0))]));
        assert_eq!(journal.get(&key("b")), None);
        // An entry added after the cut line is whole.
        journal.add(key("c"), &vec![(5.0, None)]).expect("room");
        drop(journal);
        let journal = Journal::open(folder.path()).expect("a journal");
        assert_eq!(journal.get(&key("c")), Some(vec![(5.0, None)]));
    }
}
