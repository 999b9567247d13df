//! The way out: a descriptor that the process inherits.

use crate::message::Message;
use knee_model::{HostError, HostErrorKind};
use std::{fs::File, io::Write, os::fd::FromRawFd};

/// Number of the descriptor.
pub(crate) const OUTPUT_FD: i32 = 3;

/// The host's end of the run.
pub(crate) struct Output(File);

impl Output {
    /// The descriptor that this process has inherited.
    ///
    /// # Safety
    /// Nobody else owns it.
    pub(crate) unsafe fn inherited() -> Self {
        // SAFETY: the caller grants it.
        Self(unsafe { File::from_raw_fd(OUTPUT_FD) })
    }

    /// Sends a message.
    pub(crate) fn send(&mut self, message: &Message) -> Result<(), HostError> {
        let broken = |e: &dyn std::fmt::Display| {
            HostError::new(
                HostErrorKind::Broken,
                format!("the kernel cannot report its results: {e}"),
            )
        };
        let bytes = postcard::to_stdvec(message).map_err(|e| broken(&e))?;
        let length = u32::try_from(bytes.len()).map_err(|e| broken(&e))?;
        let written =
            self.0.write_all(&length.to_le_bytes()).and_then(|()| self.0.write_all(&bytes));
        written.map_err(|e| broken(&e))
    }
}
