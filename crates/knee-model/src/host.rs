//! The trait of a host, which carries out runs.

use crate::{FlowSample, Ns, QueueBin, RunRecord, RunSpec};
use serde::{Deserialize, Serialize};
use std::{fmt::Display, path::PathBuf};
use thiserror::Error;

/// A host carries out runs: the simulator, Linux, QUIC.
///
/// A command works on every host, or [`Host::check`] returns the reason.
pub trait Host: Send + Sync {
    /// Name on the command line, in results and in stored verdicts, such as `sim`.
    fn name(&self) -> &'static str;

    /// A line that describes it in a help text, without a full stop.
    fn about(&self) -> &'static str;

    /// The word for a run in progress: `simulating`.
    fn doing(&self) -> &'static str;

    /// Default number of runs at once; none: one for each core.
    fn runs_at_once(&self) -> Option<usize> {
        None
    }

    /// Checks that it can carry out `spec` with `options`, as far as that is known without a run: limits of
    /// this machine may show only then.
    ///
    /// # Errors
    /// [`HostErrorKind::Unsupported`], with a remedy.
    fn check(&self, spec: &RunSpec, options: &RunOptions) -> Result<(), HostError>;

    /// Carries out `spec`.
    ///
    /// # Errors
    /// The errors of [`Host::check`]; any other [`HostErrorKind`].
    fn run(&self, spec: &RunSpec, options: &RunOptions) -> Result<RunRecord, HostError> {
        self.run_with_progress(spec, options, &|_| ())
    }

    /// Like [`Host::run`]; `tell` receives reports of the run while it is under way. Not every host reports
    /// everything: the simulator, whose runs are short, reports nothing; a host whose rows are known only at
    /// the end, [`Progress::At`] alone.
    ///
    /// # Errors
    /// The errors of [`Host::run`].
    fn run_with_progress(
        &self,
        spec: &RunSpec,
        options: &RunOptions,
        tell: Tell<'_>,
    ) -> Result<RunRecord, HostError>;

    /// True if there are several kernels to choose from ([`RunOptions::kernel`]).
    fn has_kernels(&self) -> bool {
        false
    }

    /// Dependencies of a record of `spec` that neither the spec nor this program holds, such as the kernel.
    /// None: the run takes so little time that its record is not worth keeping.
    fn fingerprint(&self, spec: &RunSpec, options: &RunOptions) -> Option<String> {
        let _ = (spec, options);
        None
    }

    /// Software besides this program that made the records of runs with `options`: name and value, such as
    /// `kernel` (its release), if it is not this machine's.
    fn made_with(&self, options: &RunOptions) -> Vec<(&'static str, String)> {
        let _ = options;
        Vec::new()
    }
}

/// Receives reports of a run in progress, from any thread.
pub type Tell<'a> = &'a (dyn Fn(Progress) + Sync);

/// A report of a run in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Progress {
    /// Time of the run so far.
    At(Ns),
    /// The known part of a row of a flow's time series. Parts may come one by one: their fields add up.
    /// Observed values may be missing.
    Flow {
        /// Index of the flow.
        flow: usize,
        /// Number of the row.
        bin: usize,
        /// The part.
        part: FlowSample,
    },
    /// A row of the time series of a queue.
    Queue {
        /// Number of its hop.
        hop: usize,
        /// Number of the row.
        bin: usize,
        /// The row.
        row: QueueBin,
    },
    /// The run begins, or begins again: earlier reports are void.
    Again,
}

/// Options of a run that do not change its record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// New file for the packets of the path, as pcapng; it has this name once it is complete.
    pub pcap: Option<PathBuf>,
    /// Folder for a qlog of each QUIC connection, as its sender saw it: `FLOW.sqlog`, there once the
    /// run is over. The folder is made if it is not there.
    pub qlog: Option<PathBuf>,
    /// Number of runs that the user wants at once. None: the host lets a run wait while this machine has
    /// enough to do with others.
    pub runs_at_once: Option<usize>,
    /// The kernel, on a host that has several. None: its newest.
    pub kernel: Option<String>,
}

/// The reason why there is no record of a run.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("{why}")]
pub struct HostError {
    /// Consequence for other runs.
    pub kind: HostErrorKind,
    /// The fault.
    pub why: String,
    /// The remedy, if one is known.
    pub help: Option<String>,
}

/// The consequence of a host's error for other runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostErrorKind {
    /// This host never carries out such a run; another one may.
    Unsupported,
    /// This machine lacks what the host needs: rights, a driver, a program.
    Unavailable,
    /// This machine was too slow this time. The same run may succeed later.
    TooSlow,
    /// The run broke.
    Broken,
}

impl HostError {
    /// An error of this kind.
    pub fn new(kind: HostErrorKind, why: impl Display) -> Self {
        Self { kind, why: why.to_string(), help: None }
    }

    /// Adds a remedy.
    pub fn with_help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}
