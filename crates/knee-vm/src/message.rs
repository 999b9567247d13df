//! What goes into a guest, and what comes out.

use knee_run::{CallRecord, HostError, RunRecord, RunSpec};
use serde::{Deserialize, Serialize};

/// What a guest is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    /// The run.
    pub spec: RunSpec,
    /// Whether the packets are wanted.
    pub pcap: bool,
    /// Whether qlogs are wanted.
    pub qlog: bool,
    /// Longest time that the guest may take, ns of its clock. It executes at most one instruction in
    /// each.
    pub budget_ns: u64,
}

/// What a guest made of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// The record, without traces, or why there is none.
    pub record: Result<RunRecord, HostError>,
    /// Calls of each flow's algorithm, if traced.
    pub traces: Vec<Vec<CallRecord>>,
    /// Files that were asked for. Their contents come after the answer, one after the other.
    pub files: Vec<File>,
}

/// A file that the guest made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct File {
    /// Name.
    pub name: String,
    /// Length.
    pub bytes: u64,
}

/// Name of the file with the packets.
pub(crate) const PCAP: &str = "packets.pcapng";
