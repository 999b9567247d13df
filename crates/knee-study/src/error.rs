//! Reasons why a study is refused, or stops.

use knee_model::HostError;
use knee_scenario::ScenarioError;
use miette::Diagnostic;
use std::{fmt::Display, io, path::Path};
use thiserror::Error;

/// The reason why a study is refused, or stops. Finished shards stay.
#[derive(Debug, Error, Diagnostic)]
pub enum StudyError {
    /// An error of the study, or of a scenario that it makes: message, file, line, key, remedy.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] ScenarioError),
    /// Anything else, with the remedy.
    #[error("{what}")]
    Other {
        /// The fault.
        what: String,
        /// The remedy.
        #[help]
        remedy: String,
    },
    /// Told to stop.
    #[error("stopped")]
    #[diagnostic(help("run the same command again: finished shards are not run again"))]
    Stopped,
}

impl From<HostError> for StudyError {
    fn from(error: HostError) -> Self {
        Self::new(&error.why, error.help.unwrap_or_default())
    }
}

impl StudyError {
    pub(crate) fn new(what: impl Display, remedy: impl Display) -> Self {
        Self::Other { what: what.to_string(), remedy: remedy.to_string() }
    }

    /// A file or folder that cannot be read or written.
    pub(crate) fn of_file(doing: &str, path: &Path, error: &io::Error) -> Self {
        use io::ErrorKind::{FileTooLarge, PermissionDenied, QuotaExceeded, StorageFull};
        let again = "run the same command again: finished shards are not run again";
        let remedy = match error.kind() {
            StorageFull | QuotaExceeded => {
                format!(
                    "there is no room: free some, or keep less (`tables` in [keep]); then {again}"
                )
            }
            FileTooLarge => {
                format!(
                    "a limit on the size of files was met (see `ulimit -f`): raise it, then {again}"
                )
            }
            PermissionDenied => "choose a folder that you can write to".to_owned(),
            _ => format!("when the cause is gone, {again}"),
        };
        Self::new(format!("cannot {doing} {}: {error}", path.display()), remedy)
    }

    /// A host that cannot carry out a run of this study, described by `run`.
    pub(crate) fn of_host(run: &str, error: &HostError) -> Self {
        let remedy = error.help.clone().unwrap_or_else(|| "change the study".to_owned());
        Self::new(format!("{run}: {error}"), remedy)
    }
}
