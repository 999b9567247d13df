//! Errors of the kernel host, each with a remedy.

use crate::PIN_DIR;
use knee_model::{HostError, HostErrorKind};
use libbpf_rs::{ErrorKind, PrintLevel};
use std::{cell::RefCell, io, path::PathBuf, sync::Once};
use thiserror::Error;

/// Capabilities, in words.
pub(crate) const NEEDED: &str =
    "CAP_BPF and CAP_PERFMON to load, CAP_SYS_ADMIN to list, trace and unload";

/// The reason why something about the kernel failed. Each message says what would help.
#[derive(Debug, Error)]
pub enum Error {
    /// An algorithm from a C file does not compile for the kernel.
    #[error("{file} does not compile for the kernel:\n{why}")]
    Compile {
        /// The file.
        file: String,
        /// The compiler's messages.
        why: String,
    },
    /// The name cannot be registered.
    #[error("{name:?} is not a valid name: {reason}; use 1 to 15 of a-z, 0-9 and _")]
    Name {
        /// The name given.
        name: String,
        /// The fault of the name.
        reason: &'static str,
    },
    /// The kernel has a congestion control of this name.
    #[error("the kernel already has a congestion control `{0}`; choose another name, or unload it")]
    Taken(String),
    /// Capabilities are missing.
    #[error("{what}: not permitted; this needs root, or {NEEDED}")]
    Privileges {
        /// The operation that failed.
        what: String,
    },
    /// No file can be made where variants are pinned.
    #[error("{PIN_DIR}: not permitted; only root can write there: `load --hold` needs no file")]
    NoPins,
    /// This process has too many files open.
    #[error("{what}: too many open files; raise the limit (ulimit -n)")]
    Descriptors {
        /// The operation that failed.
        what: String,
    },
    /// Not one of Knee's variants.
    #[error("no variant `{name}` is loaded; loaded: {loaded}")]
    NotLoaded {
        /// The name given.
        name: String,
        /// Names that are loaded.
        loaded: String,
    },
    /// There is no variant at all.
    #[error("no variant is loaded; `knee kernel load chd` loads CHD")]
    NothingLoaded,
    /// A variant does not end although its pin is gone.
    #[error(
        "`{0}` stays registered because another process holds it, and only Linux 6.11 or newer can \
         remove it; end the process that loaded it"
    )]
    Held(String),
    /// The variant has no pin to be removed.
    #[error("`{0}` is not pinned: it stays only as long as the process that loaded it")]
    NotPinned(String),
    /// Another process traces the variant.
    #[error("process {pid} is tracing `{name}`; end it first, or trace other variants")]
    Traced {
        /// The variant.
        name: String,
        /// Number of the process.
        pid: u32,
    },
    /// Another tracer, which did not see this one, traces the variant now.
    #[error("another process has taken over the trace of `{0}`")]
    Replaced(String),
    /// The variant's programs write no records that this program reads.
    #[error("`{0}` was loaded by another version of Knee; only that version can trace it")]
    Untraceable(String),
    /// The kernel refused an object.
    #[error("{what}: {source:#}{}", log_text(log))]
    Refused {
        /// The operation that failed.
        what: String,
        /// The kernel's or the library's error.
        #[source]
        source: libbpf_rs::Error,
        /// Messages of the library and the verifier.
        log: String,
    },
    /// A file cannot be used.
    #[error("{}: {source}{}", path.display(), help.map_or_else(String::new, |h| format!("; {h}")))]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
        /// A remedy.
        help: Option<&'static str>,
    },
    /// The kernel's types are not what this program knows, or absent.
    #[error("{0}; see `knee kernel check`")]
    Kernel(String),
}

impl From<Error> for HostError {
    fn from(error: Error) -> Self {
        let kind = match error {
            Error::Privileges { .. } | Error::Descriptors { .. } | Error::Kernel(_) => {
                HostErrorKind::Unavailable
            }
            _ => HostErrorKind::Broken,
        };
        Self::new(kind, error)
    }
}

fn log_text(log: &str) -> String {
    match log.trim() {
        "" => "; see `knee kernel check`".to_owned(),
        log => format!("; the library and the verifier said:\n{log}"),
    }
}

thread_local! {
    static LOG: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Does something with libbpf, whose messages go into the error instead of to standard error.
pub(crate) fn with_log<T>(
    what: impl FnOnce() -> String,
    action: impl FnOnce() -> Result<T, libbpf_rs::Error>,
) -> Result<T, Error> {
    static PRINT: Once = Once::new();
    PRINT.call_once(|| {
        libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| {
            LOG.with_borrow_mut(|log| log.push_str(&text));
        })));
    });
    LOG.take();
    action().map_err(|source| {
        let log = LOG.take();
        match source.kind() {
            // A refusal by the verifier may have the same number.
            ErrorKind::PermissionDenied if !log.contains(OF_VERIFIER) => {
                Error::Privileges { what: what() }
            }
            _ if of_descriptors(&source) => Error::Descriptors { what: what() },
            _ => Error::Refused { what: what(), source, log },
        }
    })
}

/// libbpf's line before the verifier's log.
const OF_VERIFIER: &str = "BEGIN PROG LOAD LOG";

/// Returns whether descriptors ran out: libbpf-rs gives the system's number in words only.
fn of_descriptors(error: &libbpf_rs::Error) -> bool {
    let words = io::Error::from(rustix::io::Errno::MFILE).to_string();
    format!("{error:#}").contains(&words)
}
