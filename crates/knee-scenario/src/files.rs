//! Files that a scenario names: delivery traces, and algorithms in C.

use super::error::{Fault, KeyPath};
use super::section::{Section, TraceSource};
use crate::units::clip;
use knee_cc::Algorithm;
use knee_model::DeliveryTrace;
use std::{cell::RefCell, fs, path::Path, sync::Arc};
use toml_edit::{Array, Value};

/// Reads files, and remembers the keys that named them and the values to write there instead, so that the
/// scenario is complete by itself.
pub(super) struct Files<'a> {
    /// None: algorithms are not loaded.
    folder: Option<&'a Path>,
    read: RefCell<Vec<(KeyPath, Value)>>,
}

impl<'a> Files<'a> {
    /// Files are relative to `folder`; without one, to the present folder, and no algorithm is
    /// loaded.
    pub(super) fn new(folder: Option<&'a Path>) -> Self {
        Self { folder, read: RefCell::default() }
    }

    /// Keys whose files were read, and the values to write there.
    pub(super) fn into_read(self) -> Vec<(KeyPath, Value)> {
        self.read.into_inner()
    }

    fn folder(&self) -> &Path {
        self.folder.unwrap_or(Path::new(""))
    }

    /// A delivery trace, from its file or as the times themselves.
    pub(super) fn trace(
        &self,
        section: &Section,
        key: &str,
    ) -> Result<Option<Arc<DeliveryTrace>>, Fault> {
        let (trace, file) = match section.trace(key)? {
            None => return Ok(None),
            Some(TraceSource::Times(times_ms)) => (DeliveryTrace::new(&times_ms), None),
            Some(TraceSource::File(name)) => {
                let path = self.folder().join(name);
                let refuse = |why: &str| {
                    let remedy = "write a file's name, relative to the folder of the scenario";
                    section.fault(key, &format!(": cannot read `{}`: {why}", clip(name)), remedy)
                };
                let about = fs::metadata(&path).map_err(|e| refuse(&e.to_string()))?;
                if !about.is_file() {
                    return Err(refuse("it is not a file"));
                }
                let bytes = fs::read(&path).map_err(|e| refuse(&e.to_string()))?;
                // Text that is not UTF-8 is no time, and refused with its line.
                (DeliveryTrace::parse(&String::from_utf8_lossy(&bytes)), Some(name))
            }
        };
        let trace = trace.map(Arc::new).map_err(|error| {
            let place = match (file, error.line) {
                (Some(name), 0) => format!(": {}", clip(name)),
                (Some(name), line) => format!(": {}, line {line}", clip(name)),
                (None, 0) => String::new(),
                (None, number) => format!(": time {number}"),
            };
            section.fault(key, &format!("{place}: {}", error.what), error.remedy)
        })?;
        if file.is_some() {
            let times: Array = trace.times_ms().map(u64::cast_signed).collect();
            self.read.borrow_mut().push((section.at(key), times.into()));
        }
        Ok(Some(trace))
    }

    /// The algorithm in the C file `name`.
    pub(super) fn algorithm(
        &self,
        section: &Section,
        key: &str,
        name: &str,
    ) -> Result<Algorithm, Fault> {
        let Some(folder) = self.folder else {
            let what = format!(": `{}`: C files are not loaded here", clip(name));
            let remedy = "write the scenario to a file, and run it with `knee run`";
            return Err(section.fault(key, &what, remedy));
        };
        let algorithm = knee_cc::load(&folder.join(name))
            .map_err(|e| section.fault(key, &format!(": {e}"), e.help()))?;
        // Results keep it under this name, next to the scenario.
        let kept = format!("{}.c", algorithm.name());
        self.read.borrow_mut().push((section.at(key), kept.into()));
        Ok(algorithm)
    }
}
