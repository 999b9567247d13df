//! Errors of evaluations and reproductions.

use knee_model::HostError;
use knee_results::ResultsError;
use knee_scenario::ScenarioError;
use thiserror::Error;

/// The reason why an evaluation or a reproduction cannot be made.
#[derive(Debug, Error, miette::Diagnostic)]
pub enum LabError {
    /// A file of the repository is wrong.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
    /// A scenario is wrong.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Scenario(#[from] ScenarioError),
    /// Results cannot be stored.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Kept(#[from] ResultsError),
    /// A run failed, or could not begin.
    #[error("{0}")]
    Run(#[from] HostError),
    /// A paper has no such figure.
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
    /// Anything else.
    #[error("{what}")]
    Other {
        /// Description of the error.
        what: String,
        /// The remedy, if one is known.
        #[help]
        help: Option<String>,
    },
}

impl LabError {
    /// An error with its remedy.
    pub(crate) fn new(what: String, help: String) -> Self {
        Self::Other { what, help: Some(help) }
    }
}

/// A file below `scenarios/` is wrong.
#[derive(Debug, Error, miette::Diagnostic)]
#[error("scenarios/{file}{}: {why}", line.map(|line| format!(":{line}")).unwrap_or_default())]
#[diagnostic(help("{help}"))]
pub struct FileError {
    /// The file, below `scenarios/`.
    pub file: String,
    /// Line, from 1, unless `why` names it.
    pub line: Option<usize>,
    /// Description of the error.
    pub why: String,
    /// The remedy.
    pub help: String,
}
