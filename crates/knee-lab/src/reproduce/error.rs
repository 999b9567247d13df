//! Errors of a reproduction.

use crate::files::FileError;
use knee_model::HostError;
use knee_scenario::ScenarioError;
use thiserror::Error;

/// The reason why a paper could not be reproduced.
#[derive(Debug, Error, miette::Diagnostic)]
pub enum ReproduceError {
    /// No such paper.
    #[error("no such paper: `{id}`")]
    #[diagnostic(help("the papers are: {known}, all"))]
    NoPaper {
        /// Requested name.
        id: String,
        /// Papers that exist.
        known: String,
    },
    /// It has no such figure.
    #[error("{paper} has no figure {figure}")]
    #[diagnostic(help("its figures are: {known}"))]
    NoFigure {
        /// Paper.
        paper: String,
        /// Requested number.
        figure: String,
        /// Numbers that exist.
        known: String,
    },
    /// It has no such claim.
    #[error("{of} has no claim {claim}")]
    #[diagnostic(help("its claims are: {known}"))]
    NoClaim {
        /// Paper, figure of it, or the short form of one of them.
        of: String,
        /// Requested claim.
        claim: String,
        /// Claims that exist.
        known: String,
    },
    /// A scenario of it is wrong.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Scenario(#[from] ScenarioError),
    /// All runs on a host failed.
    #[error("every run on the host {host} failed; the first: {error}")]
    #[diagnostic(help("{}", error.help.as_deref().unwrap_or("run one of its scenarios by itself")))]
    AllFailed {
        /// Name of the host.
        host: String,
        /// Error of the first run.
        error: HostError,
    },
    /// A chart or table cannot be made.
    #[error("{0}")]
    PlotKind(String),
    /// A file of the repository is wrong.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
    /// The runs could not begin.
    #[error("{0}")]
    Host(#[from] HostError),
}
