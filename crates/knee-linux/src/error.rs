//! Errors in the words of [`HostError`].

use knee_model::{HostError, HostErrorKind};
use std::{fmt::Display, io, path::Path};

/// This machine lacks something.
pub(crate) fn unavailable(why: impl Display, help: impl Into<String>) -> HostError {
    HostError::new(HostErrorKind::Unavailable, why).with_help(help)
}

/// Something went wrong.
pub(crate) fn broken(why: impl Display) -> HostError {
    HostError::new(HostErrorKind::Broken, why)
}

/// Says what was being done to `path`.
pub(crate) fn doing<'a>(what: &'a str, path: &'a Path) -> impl Fn(io::Error) -> HostError + 'a {
    move |error| broken(format!("{what} {}: {error}", path.display()))
}
