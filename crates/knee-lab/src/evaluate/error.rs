//! Errors of an evaluation.

use crate::files::FileError;
use knee_model::HostError;
use knee_results::kept::KeptError;
use knee_scenario::ScenarioError;
use thiserror::Error;

/// The reason why an evaluation could not be made.
#[derive(Debug, Error, miette::Diagnostic)]
pub enum EvaluateError {
    /// A criterion's file is wrong.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
    /// There is no such criterion.
    #[error("no such criterion: `{id}`")]
    #[diagnostic(help("the criteria are: {known}"))]
    NoCriterion {
        /// Name that was requested.
        id: String,
        /// The existing criteria.
        known: String,
    },
    /// A scenario is wrong.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Scenario(#[from] ScenarioError),
    /// The host does not carry out a criterion's runs.
    #[error("{criterion}: {error}")]
    #[diagnostic(help(
        "{}name the criteria that it can run with --only",
        error.help.as_ref().map(|h| format!("{h}; or ")).unwrap_or_default()
    ))]
    Host {
        /// Criterion.
        criterion: String,
        /// Error of the host.
        error: HostError,
    },
    /// A formula cannot be evaluated.
    #[error("scenarios/evaluation/{criterion}.toml: {why}")]
    Formula {
        /// Criterion.
        criterion: String,
        /// The reason.
        why: String,
    },
    /// The measures cannot be stored.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Kept(#[from] KeptError),
    /// A run failed.
    #[error("{0}")]
    Run(#[from] HostError),
}
