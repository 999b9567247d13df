//! The request to the guest and the messages from it. Postcard writes both; a message follows its length, 4 bytes,
//! little-endian.

use knee_cc::CallRecord;
use knee_model::{HostError, Progress, RunRecord};
use serde::{Deserialize, Serialize};

/// A run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// Algorithms from C files: name and text of the file, and the compiler's result.
    pub sources: Vec<(String, String, Vec<u8>)>,
    /// The [`knee_model::RunSpec`], which names them.
    pub spec: Vec<u8>,
}

/// A message from the guest.
#[derive(Debug, Serialize, Deserialize)]
pub enum Message {
    /// The guest is alive.
    Progress(Progress),
    /// The next calls of the algorithm of this flow.
    Calls(u32, Vec<CallRecord>),
    /// The run broke. Nothing follows.
    Failed(HostError),
    /// The run is over. Nothing follows.
    Record(Box<RunRecord>),
}
