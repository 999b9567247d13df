//! What a run is and what it measured, the same for every host.
//!
//! A [`RunSpec`] is a validated experiment in plain numbers: path, flows, what to record. A host
//! (simulator, kernel testbed, QUIC) takes one and gives a [`RunRecord`]. Times are integer
//! nanoseconds from the start of the run unless a name says otherwise. The [`Path`] of a spec is one
//! component for all hosts, and [`drive`] the one loop that carries out what is due on it. [`Host`] is what every host can do.

mod delay;
mod driver;
mod emission;
mod flows;
mod host;
mod path;
mod prefetch;
mod record;
mod replay;
mod spec;
pub mod testing;
mod timers;
mod udp;

pub use delay::DelayStats;
pub use driver::{Ends, Network, close_last_bin, drive};
pub use emission::Emission;
pub use flows::{At, Connection, FlowTimer, VirtualRun, run_in_virtual_time};
pub use host::{Host, HostError, HostErrorKind, Progress, RunOptions, Tell};
pub use knee_cc::{Call, CallRecord};
pub use knee_net::{
    Aqm, BurstLoss, CoDel, DeliveryTrace, Discipline, FqCoDel, Fred, Limit as QueueLimit, Pie,
    Random, Rate, Red, Thresholds, TraceError, Varying,
};
pub use knee_units::{NS_PER_MS, NS_PER_S, NS_PER_US};
pub use path::{Brief, Direction, End, Gone, Numbered, Path, PathQueues};
pub use prefetch::prefetch;
pub use record::{
    FlowCounters, FlowRecord, FlowSample, FlowTotals, Lateness, PacketEvent, PacketLog, QueueBin,
    QueueRecord, RealTime, RunRecord, Transfer, Unfinished,
};
pub use replay::{Difference, Replay};
pub use spec::{
    Cc, DelayedAck, Drawn, FlowKind, FlowSpec, HopSpec, KERNEL_PREFIX, Ns, PathSpec,
    ReceiverConduct, RecordSpec, Recovery, Reorder, ReverseLink, Route, RunSpec, TcpOptions,
    TcpSpec, Transport, Workload, Write,
};
pub use timers::LazyTimer;
pub use udp::UdpFlow;
