//! The error of this crate.

use knee_model::{HostError, HostErrorKind};
use miette::Diagnostic;
use std::io;
use thiserror::Error;

/// The reason why results cannot be stored, kept or read.
#[derive(Debug, Error, Diagnostic)]
#[error("{what}")]
pub struct ResultsError {
    /// Description of the error.
    pub what: String,
    /// The remedy.
    #[help]
    pub help: String,
    /// Reason given by the system.
    pub source: Option<io::Error>,
}

impl ResultsError {
    pub(crate) fn new(
        what: impl Into<String>,
        help: impl Into<String>,
        source: Option<io::Error>,
    ) -> Self {
        Self { what: what.into(), help: help.into(), source }
    }
}

impl From<ResultsError> for HostError {
    fn from(error: ResultsError) -> Self {
        Self::new(HostErrorKind::Broken, error.what).with_help(error.help)
    }
}
