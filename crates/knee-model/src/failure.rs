//! Makes the errors of hosts.

use crate::{HostError, HostErrorKind};
use knee_cc::Broken;
use std::{fmt::Display, io, path::Path};

/// This host never carries out such a run.
pub fn unsupported(why: impl Display) -> HostError {
    HostError::new(HostErrorKind::Unsupported, why)
}

/// This machine lacks something; `help` says how to get it.
pub fn unavailable(why: impl Display, help: impl Into<String>) -> HostError {
    HostError::new(HostErrorKind::Unavailable, why).with_help(help)
}

/// This machine was too slow.
pub fn too_slow(why: impl Display, help: impl Into<String>) -> HostError {
    HostError::new(HostErrorKind::TooSlow, why).with_help(help)
}

/// Something went wrong.
pub fn broken(why: impl Display) -> HostError {
    HostError::new(HostErrorKind::Broken, why)
}

/// Says what was being done to `path`.
pub fn doing<'a>(what: &'a str, path: &'a Path) -> impl Fn(io::Error) -> HostError + 'a {
    move |error| broken(format!("{what} {}: {error}", path.display()))
}

/// An algorithm broke the contract, which ended the run.
impl From<Broken> for HostError {
    fn from(error: Broken) -> Self {
        broken(&error).with_help(error.help())
    }
}
