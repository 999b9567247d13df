//! Errors of a run on the testbed.

use knee_model::{HostError, HostErrorKind};
use std::{
    io::{self, ErrorKind},
    thread::ScopedJoinHandle,
};
use thiserror::Error;

/// The reason why a run on the testbed is not possible, or failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TestbedError {
    /// The process may not create network namespaces, or devices in them.
    #[error(
        "the testbed needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN) to create network namespaces"
    )]
    NeedsRoot,
    /// There is no TUN driver.
    #[error("cannot open /dev/net/tun: {source}")]
    NoTun {
        /// The system's reason.
        source: io::Error,
    },
    /// The kernel does not know a congestion control.
    #[error("flow {flow}: this kernel has no congestion control {name:?}")]
    UnknownCongestionControl {
        /// Flow that requested it.
        flow: String,
        /// Requested name.
        name: String,
        /// Names that there are, separated by spaces.
        available: String,
    },
    /// A socket did not keep a requested value.
    #[error("flow {flow}: the socket used {option} {used}, not {wanted} as requested")]
    NotUsed {
        /// Flow.
        flow: String,
        /// The property.
        option: &'static str,
        /// Requested value.
        wanted: String,
        /// Value in use.
        used: String,
    },
    /// Other bytes came out of a connection than went in.
    #[error(
        "flow {flow}: of the {len} bytes from {position} on, not all arrived as they were sent"
    )]
    Damaged {
        /// Flow.
        flow: String,
        /// Bytes before these.
        position: u64,
        /// Bytes that were read at once.
        len: usize,
    },
    /// An algorithm of Knee could not be loaded into the kernel.
    #[error(transparent)]
    Load(#[from] knee_kernel::Error),
    /// A QUIC flow is not possible, or failed.
    #[error(transparent)]
    Quic(#[from] knee_quic_run::Error),
    /// The spec requests something that the kernel cannot do.
    #[error("{what}: not possible on the kernel: {why}")]
    Unsupported {
        /// Option, with its flow.
        what: String,
        /// The kernel's restriction, and its abilities.
        why: String,
    },
    /// Packets were lost outside the emulated path.
    #[error(
        "{lost_pkts} packets were lost between an end and the path, outside the emulated queue"
    )]
    Overrun {
        /// Number of packets.
        lost_pkts: u64,
    },
    /// Calls of an algorithm were not recorded.
    #[error("{calls} calls of the algorithms were not recorded in time")]
    CallsLost {
        /// Number of calls.
        calls: u64,
    },
    /// A connection failed.
    #[error("flow {flow}: connection failed: {source}")]
    Connection {
        /// Flow.
        flow: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The file for the packets could not be written; there is none.
    #[error(transparent)]
    Capture(#[from] knee_capture::CaptureError),
    /// A system call failed.
    #[error("{doing}: {source}")]
    System {
        /// The operation that failed.
        doing: String,
        /// The system's reason.
        source: io::Error,
    },
}

impl TestbedError {
    /// Returns the meaning of the error for other runs.
    pub fn kind(&self) -> HostErrorKind {
        use knee_kernel::Error as Load;
        match self {
            Self::Quic(error) => error.kind(),
            Self::Unsupported { .. } => HostErrorKind::Unsupported,
            Self::NeedsRoot
            | Self::NoTun { .. }
            | Self::UnknownCongestionControl { .. }
            | Self::Load(Load::Privileges { .. } | Load::Descriptors { .. } | Load::Kernel(_)) => {
                HostErrorKind::Unavailable
            }
            Self::Overrun { .. } | Self::CallsLost { .. } => HostErrorKind::TooSlow,
            Self::NotUsed { .. }
            | Self::Damaged { .. }
            | Self::Load(_)
            | Self::Connection { .. }
            | Self::Capture(_)
            | Self::System { .. } => HostErrorKind::Broken,
        }
    }

    /// Returns the next step for the user, where the message does not say so already.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            Self::Quic(error) => return error.help().map(str::to_owned),
            Self::NeedsRoot => "run it with sudo".to_owned(),
            Self::NoTun { .. } => {
                "load the driver (modprobe tun), or give the container the device".to_owned()
            }
            Self::UnknownCongestionControl { available, .. } => {
                format!("choose one that it has: {available}")
            }
            Self::Overrun { .. } | Self::CallsLost { .. } => TOO_SLOW.to_owned(),
            Self::Capture(error) => error.help().to_owned(),
            Self::NotUsed { .. }
            | Self::Damaged { .. }
            | Self::Load(_)
            | Self::Unsupported { .. }
            | Self::Connection { .. }
            | Self::System { .. } => return None,
        })
    }
}

/// Help where the machine is too slow.
pub(crate) const TOO_SLOW: &str =
    "give fewer --jobs, lower the rate, or leave the machine more time";

impl From<TestbedError> for HostError {
    fn from(error: TestbedError) -> Self {
        Self { kind: error.kind(), why: error.to_string(), help: error.help() }
    }
}

/// Says what was being done when a system call failed.
pub(crate) trait Doing<T> {
    fn doing(self, what: &str) -> Result<T, TestbedError>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, what: &str) -> Result<T, TestbedError> {
        self.map_err(|error| TestbedError::System { doing: what.into(), source: error.into() })
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
