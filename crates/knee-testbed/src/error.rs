//! Errors of a run on the testbed.

use knee_model::{
    HostError,
    failure::{broken, unavailable},
};
use std::{
    io::{self, ErrorKind},
    thread::ScopedJoinHandle,
};

/// Help where the machine is too slow.
pub(crate) const TOO_SLOW: &str =
    "give fewer --jobs, lower the rate, or leave the machine more time";

/// The error of a process that may not create network namespaces, or devices in them.
pub(crate) fn needs_root() -> HostError {
    let why =
        "the testbed needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN) to create network namespaces";
    unavailable(why, "run it with sudo")
}

/// Says what was being done when a system call failed.
pub(crate) trait Doing<T> {
    fn doing(self, what: &str) -> Result<T, HostError>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, what: &str) -> Result<T, HostError> {
        self.map_err(|error| broken(format!("{what}: {}", error.into())))
    }
}

/// The result, where an error of this kind is none.
pub(crate) fn unless(kind: ErrorKind, result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if error.kind() == kind { Ok(()) } else { Err(error) })
}

/// A thread's result; its panic continues in this one.
pub(crate) fn joined<T>(handle: ScopedJoinHandle<'_, T>) -> T {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
