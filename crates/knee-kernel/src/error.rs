//! Errors of the kernel host. The text of each says what would help.

use knee_model::{HostError, HostErrorKind, failure::broken};
use libbpf_rs::{ErrorKind, PrintLevel};
use std::{cell::RefCell, fmt::Display, io, path::Path, sync::Once};

/// Capabilities, in words.
pub(crate) const NEEDED: &str =
    "CAP_BPF and CAP_PERFMON to load, CAP_SYS_ADMIN to list, trace and unload";

fn unavailable(why: impl Display) -> HostError {
    HostError::new(HostErrorKind::Unavailable, why)
}

/// Says that capabilities are missing for `what`.
pub(crate) fn not_permitted(what: impl Display) -> HostError {
    unavailable(format!("{what}: not permitted; this needs root, or {NEEDED}"))
}

/// Says why the kernel, or an object for it, is not as this program needs it.
pub(crate) fn unfit(why: impl Display) -> HostError {
    unavailable(format!("{why}; see `knee kernel check`"))
}

/// Says that the kernel has a congestion control called `name`.
pub(crate) fn taken(name: &str) -> HostError {
    let why = format!("the kernel already has a congestion control `{name}`");
    broken(format!("{why}; choose another name, or unload it"))
}

/// Says that the programs of the variant `name` write no records that this program reads.
pub(crate) fn untraceable(name: &str) -> HostError {
    let why = format!("`{name}` was loaded by another version of Knee");
    broken(format!("{why}; only that version can trace it"))
}

/// Says that a file cannot be used.
pub(crate) fn of_file(path: &Path, error: &io::Error) -> HostError {
    broken(format!("{}: {error}", path.display()))
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
) -> Result<T, HostError> {
    static PRINT: Once = Once::new();
    PRINT.call_once(|| {
        libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| {
            LOG.with_borrow_mut(|log| log.push_str(&text));
        })));
    });
    LOG.take();
    action().map_err(|source| {
        let (what, log) = (what(), LOG.take());
        match source.kind() {
            // A refusal by the verifier may have the same number.
            ErrorKind::PermissionDenied if !log.contains(OF_VERIFIER) => not_permitted(what),
            _ if of_descriptors(&source) => {
                unavailable(format!("{what}: too many open files; raise the limit (ulimit -n)"))
            }
            _ => broken(format!("{what}: {source:#}{}", log_text(&log))),
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
