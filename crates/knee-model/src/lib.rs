//! The model of a run, the same for every host: its specification and its record.
//!
//! A [`RunSpec`] is a validated scenario in plain numbers: path, flows, data to record. A [`Host`]
//! (simulator, Linux, QUIC) carries it out and returns a [`RunRecord`]. [`Replay`] repeats the recorded calls
//! of an algorithm. Times are integer nanoseconds from the start of the run unless a name says otherwise.
//!
//! Nothing here moves a packet: the network is in `knee-net`.

mod burst_loss;
mod delay_stats;
mod delivery_trace;
pub mod digest;
pub mod failure;
mod flow;
mod host;
pub mod linux;
mod path;
mod queue;
mod random;
mod rate;
mod record;
mod replay;
mod run;
mod steps;
pub mod sysctl;
mod tcp;

pub use burst_loss::BurstLoss;
pub use delay_stats::DelayStats;
pub use delivery_trace::{DeliveryTrace, TraceError};
pub use flow::{Drawn, FlowKind, FlowSpec};
pub use host::{Host, HostError, HostErrorKind, Progress, RunOptions, Tell};
pub use knee_cc::{Call, CallRecord};
pub use knee_units::{NS_PER_MS, NS_PER_S, NS_PER_US, hex, milliseconds, seconds};
pub use path::{HopSpec, PathSpec, Reorder, ReverseLink, Route};
pub use queue::*;
pub use random::Random;
pub use rate::{Rate, Varying};
pub use record::{
    FlowCounters, FlowRecord, FlowSample, FlowTotals, Lateness, PacketEvent, PacketLog, PathQueues,
    QueueBin, QueueRecord, RealTime, RunRecord, Transfer, Unfinished,
};
pub use replay::{Difference, Replay};
pub use run::{RecordSpec, RunSpec};
pub use steps::Steps;
pub use tcp::{
    Cc, DelayedAck, KERNEL_PREFIX, ReceiverConduct, Recovery, TcpOptions, TcpSpec, Transport,
    Workload, Write,
};

/// A time or duration in nanoseconds.
pub type Ns = u64;
