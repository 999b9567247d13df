//! The request to the guest and the messages from it. Postcard writes both; a message follows its length, 4 bytes,
//! little-endian.

use knee_cc::CallRecord;
use knee_model::{HostError, Ns, Progress, RunRecord};
use serde::{Deserialize, Serialize};

/// A run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// Algorithms from C files: name and text of the file, and the compiler's result.
    pub sources: Vec<(String, String, Vec<u8>)>,
    /// The [`knee_model::RunSpec`], which names them.
    pub spec: Vec<u8>,
    /// True if the host wants the packets.
    pub capture: bool,
}

/// A packet at an end, or where it was lost.
#[derive(Debug, Serialize, Deserialize)]
pub struct Captured {
    /// Time.
    pub time_ns: Ns,
    /// The end: 0 for the path's start, 1 for its end.
    pub end: u8,
    /// The loss in words, if the packet was lost.
    pub lost: Option<String>,
    /// The headers.
    pub headers: Vec<u8>,
    /// Bytes of the whole packet.
    pub bytes: u32,
}

/// A message from the guest.
#[derive(Debug, Serialize, Deserialize)]
pub enum Message {
    /// The guest is alive.
    Progress(Progress),
    /// The next calls of the algorithm of this flow.
    Calls(u32, Vec<CallRecord>),
    /// The next packets.
    Packets(Vec<Captured>),
    /// The run broke. Nothing follows.
    Failed(HostError),
    /// The run is over. Nothing follows.
    Record(Box<RunRecord>),
}
