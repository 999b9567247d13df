//! What a run is and what it measured, the same for every host.
//!
//! A [`RunSpec`] is a validated experiment in plain numbers: path, flows, what to record. A host
//! (simulator, kernel testbed, QUIC) takes one and gives a [`RunRecord`]. Times are integer
//! nanoseconds from the start of the run unless a name says otherwise. The [`Path`] of a spec is one
//! component for all hosts; it knows no clock. What every [`Host`] does is a trait.

mod delay;
mod emission;
mod host;
mod path;
mod record;
mod replay;
mod spec;
#[cfg(feature = "testing")]
pub mod testing;
mod udp;

pub use delay::DelayStats;
pub use emission::Emission;
pub use host::{Host, HostError, HostErrorKind, RunOptions};
pub use knee_cc::{Call, CallRecord};
pub use knee_net::{
    Aqm, BurstLoss, CoDel, DeliveryTrace, Discipline, FqCoDel, Fred, Limit as QueueLimit, Pie,
    Random, Rate, Red, Thresholds, TraceError, Varying,
};
pub use knee_units::{NS_PER_MS, NS_PER_S, NS_PER_US};
pub use path::{Numbered, Path, PathQueues, Port, Source};
pub use record::{
    FlowCounters, FlowRecord, FlowSample, FlowTotals, Lateness, PacketEvent, PacketLog, QueueBin,
    QueueRecord, RealTime, RunRecord, Transfer, Unfinished,
};
pub use replay::{Difference, Replay};
pub use spec::{
    Cc, DelayedAck, Drawn, FlowKind, FlowSpec, HopSpec, KERNEL_PREFIX, Ns, PathSpec, RecordSpec,
    Recovery, Reorder, ReverseLink, Route, RunSpec, TcpOptions, TcpSpec, Transport, Workload,
    Write,
};
pub use udp::UdpFlow;
