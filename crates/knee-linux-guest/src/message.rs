//! Messages from the guest to the host. The request is a [`knee_model::RunSpec`]. Postcard writes both; a message
//! follows its length, 4 bytes, little-endian.

use knee_cc::CallRecord;
use knee_model::{HostError, Progress, RunRecord};
use serde::{Deserialize, Serialize};

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
