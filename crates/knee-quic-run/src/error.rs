//! Errors of a run.

use knee_cc::Broken;
use knee_model::{HostError, HostErrorKind};
use std::{io, path::PathBuf};
use thiserror::Error;

/// Why a run over QUIC is not possible, or failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A flow uses a congestion control that only the kernel has.
    #[error("flow `{flow}`: `kernel:{cc}` is the Linux kernel's own, for TCP")]
    KernelOnly {
        /// Name of the flow.
        flow: String,
        /// The kernel's name of it.
        cc: String,
    },
    /// The spec requires something that QUIC, or quinn, cannot do, and that would change the result.
    #[error("flow `{flow}`: `{key}`: not possible over QUIC: {why}")]
    Unsupported {
        /// Name of the flow.
        flow: String,
        /// The option.
        key: &'static str,
        /// The reason, and a possible alternative.
        why: String,
    },
    /// A flow could send more packets than its counters hold.
    #[error("flow `{flow}` could send more than {max} packets", max = u32::MAX)]
    TooLong {
        /// Name of the flow.
        flow: String,
    },
    /// A connection ended before its time.
    #[error("flow `{flow}`: the connection failed: {why}")]
    Connection {
        /// Name of the flow.
        flow: String,
        /// quinn's reason.
        why: String,
    },
    /// TLS could not be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
    /// A qlog could not be written; there is none of its flow.
    #[error("cannot write the qlog {}: {source}", file.display())]
    Qlog {
        /// The file.
        file: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// An algorithm from a C file broke the contract.
    #[error(transparent)]
    Broken(#[from] Broken),
}

impl Error {
    /// The effect of the error on other runs.
    pub fn kind(&self) -> HostErrorKind {
        match self {
            Self::KernelOnly { .. } | Self::Unsupported { .. } | Self::TooLong { .. } => {
                HostErrorKind::Unsupported
            }
            Self::Connection { .. } | Self::Tls(_) | Self::Qlog { .. } | Self::Broken(_) => {
                HostErrorKind::Broken
            }
        }
    }

    /// A remedy, unless the message already names it.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::KernelOnly { .. } => {
                Some("choose one of Knee's algorithms, or run it with --host kernel or vm")
            }
            Self::TooLong { .. } => Some("shorten the run or lower the rate"),
            Self::Qlog { .. } => Some("free some room, or choose another folder"),
            Self::Broken(broken) => Some(broken.help()),
            Self::Unsupported { .. } | Self::Connection { .. } | Self::Tls(_) => None,
        }
    }
}

impl From<Error> for HostError {
    fn from(error: Error) -> Self {
        Self { kind: error.kind(), why: error.to_string(), help: error.help().map(str::to_owned) }
    }
}

/// Why a connection failed, without its flow's name.
#[derive(Debug)]
pub struct Failed(pub(crate) String);

impl Failed {
    pub(crate) fn new(why: impl ToString) -> Self {
        Self(why.to_string())
    }

    /// The error of flow `flow`.
    pub fn of(self, flow: &str) -> Error {
        Error::Connection { flow: flow.to_owned(), why: self.0 }
    }
}
