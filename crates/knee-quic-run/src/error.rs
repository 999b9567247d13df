//! Errors of a connection.

use knee_model::{HostError, failure::broken};

/// Why a connection failed, without its flow's name.
#[derive(Debug)]
pub struct Failed(pub(crate) String);

impl Failed {
    pub(crate) fn new(why: impl ToString) -> Self {
        Self(why.to_string())
    }

    /// The error of flow `flow`.
    pub fn of(self, flow: &str) -> HostError {
        broken(format!("flow `{flow}`: the connection failed: {}", self.0))
    }
}
