//! What carries out runs.

use crate::{FlowSample, Ns, QueueBin, RunRecord, RunSpec};
use serde::{Deserialize, Serialize};
use std::{
    fmt::{self, Display},
    path::PathBuf,
};

/// What carries out runs: the simulator, this machine's kernel, QUIC.
///
/// What a command can do on one host it can do on all, or [`Host::check`] says why not.
pub trait Host: Send + Sync {
    /// Name on the command line, in results and in the record of claims, such as `sim`.
    fn name(&self) -> &'static str;

    /// What it is, in a line of a help text, without a full stop.
    fn about(&self) -> &'static str;

    /// What a run on it is doing, for progress: `simulating`.
    fn doing(&self) -> &'static str;

    /// How many runs to begin at once unless the user gives a number; none: one for each core.
    fn runs_at_once(&self) -> Option<usize> {
        None
    }

    /// Whether it can carry out `spec` with `options`, as far as that is known without a run: what
    /// this machine lacks may show only then.
    ///
    /// # Errors
    /// [`HostErrorKind::Unsupported`], with what to do instead.
    fn check(&self, spec: &RunSpec, options: &RunOptions) -> Result<(), HostError>;

    /// Carries out `spec`.
    ///
    /// # Errors
    /// Those of [`Host::check`]; any other [`HostErrorKind`].
    fn run(&self, spec: &RunSpec, options: &RunOptions) -> Result<RunRecord, HostError> {
        self.run_with_progress(spec, options, &|_| ())
    }

    /// As [`Host::run`]; `tell` receives what there is to tell of the run while it is under way. A host
    /// tells what it can: the simulator, whose runs are short, nothing; one whose rows are known only
    /// at the end, [`Progress::At`] alone.
    ///
    /// # Errors
    /// Those of [`Host::run`].
    fn run_with_progress(
        &self,
        spec: &RunSpec,
        options: &RunOptions,
        tell: Tell<'_>,
    ) -> Result<RunRecord, HostError>;

    /// Whether there are several kernels to choose from ([`RunOptions::kernel`]).
    fn has_kernels(&self) -> bool {
        false
    }

    /// What a record of `spec` depends on that neither the spec nor this program holds, such as the
    /// kernel. None: the run takes so little time that its record is not worth keeping.
    fn fingerprint(&self, spec: &RunSpec, options: &RunOptions) -> Option<String> {
        let _ = (spec, options);
        None
    }

    /// What made the records of runs with `options`, beside this program: name and value, such as
    /// `kernel` (its release), where that is not this machine's.
    fn made_with(&self, options: &RunOptions) -> Vec<(&'static str, String)> {
        let _ = options;
        Vec::new()
    }
}

/// Takes what is told of a run that is under way, from any thread.
pub type Tell<'a> = &'a (dyn Fn(Progress) + Sync);

/// What a host tells of a run that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Progress {
    /// So many nanoseconds of its time are over.
    At(Ns),
    /// What is known of a row of a flow's time series. Its parts may come one by one: their fields add
    /// up. Observed values may be missing.
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
    /// The run begins, or begins again: nothing of what was told counts.
    Again,
}

/// What a run is to do beside making its record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// New file for the packets of the path, as pcapng; it has this name once it is complete.
    pub pcap: Option<PathBuf>,
    /// Folder for a qlog of each QUIC connection, as its sender saw it: `FLOW.sqlog`, there once the
    /// run is over. The folder is made if it is not there.
    pub qlog: Option<PathBuf>,
    /// How many runs the user wants at once. None: the host lets a run wait while this machine has
    /// enough to do with others.
    pub runs_at_once: Option<usize>,
    /// Which kernel, on a host that has several to choose from. None: its newest.
    pub kernel: Option<String>,
}

/// Why there is no record of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostError {
    /// What it means for other runs.
    pub kind: HostErrorKind,
    /// What went wrong.
    pub why: String,
    /// What to do about it, if that is known.
    pub help: Option<String>,
}

/// What an error of a host means for other runs.
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

    /// With what to do about it.
    pub fn with_help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

impl Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for HostError {}
