//! A connection's qlog in a file that is whole or absent.

use knee_model::{HostError, failure::broken};
use quinn_proto::{QlogConfig, QlogStream};
use std::{
    fs::{self, Permissions},
    io::{self, BufWriter, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};
use tempfile::NamedTempFile;

/// A qlog (draft-ietf-quic-qlog, JSON text sequences) that is being written.
pub struct Qlog {
    file: PathBuf,
    log: Arc<Mutex<Log>>,
}

struct Log {
    writer: BufWriter<NamedTempFile>,
    /// quinn continues after an error without reporting it.
    error: Option<io::Error>,
}

struct Writer(Arc<Mutex<Log>>);

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // All or nothing: an event is not written in two parts.
        if log.error.is_none() {
            log.error = log.writer.write_all(bytes).err();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The error of a qlog that could not be written; there is none of its flow.
fn not_written(file: &Path, error: io::Error) -> HostError {
    let why = format!("cannot write the qlog {}: {error}", file.display());
    broken(why).with_help("free some room, or choose another folder")
}

impl Qlog {
    /// The file of the flow called `flow` in `folder`.
    pub fn file(folder: &Path, flow: &str) -> PathBuf {
        folder.join(format!("{flow}.sqlog"))
    }

    /// Begins the qlog of the flow called `flow` in `folder`, with times since `zero`; also returns the part
    /// for quinn.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(
        folder: &Path,
        flow: &str,
        zero: Instant,
    ) -> Result<(Self, Option<QlogStream>), HostError> {
        let file = Self::file(folder, flow);
        let failed = |error| not_written(&file, error);
        fs::create_dir_all(folder).map_err(failed)?;
        // As files usually are; the process's mask still applies.
        let temporary = tempfile::Builder::new()
            .prefix(".")
            .suffix(".sqlog.partial")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
            .map_err(failed)?;
        let writer = BufWriter::new(temporary);
        let log = Arc::new(Mutex::new(Log { writer, error: None }));
        let mut config = QlogConfig::default();
        config.writer(Box::new(Writer(log.clone()))).title(Some(flow.to_owned())).start_time(zero);
        Ok((Self { file, log }, config.into_stream()))
    }

    /// Gives the file its name. The connection must be gone: nothing is written after this.
    ///
    /// # Errors
    /// This or an earlier write failed; there is no file then.
    pub fn finish(self) -> Result<(), HostError> {
        let Self { file, log } = self;
        let failed = |error| not_written(&file, error);
        let log = Arc::into_inner(log)
            .ok_or_else(|| failed(io::Error::other("the connection still writes it")))?;
        let Log { writer, error } = log.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = error {
            return Err(failed(error));
        }
        let whole = writer.into_inner().map_err(|error| failed(error.into_error()))?;
        whole.persist(&file).map_err(|error| failed(error.error))?;
        Ok(())
    }
}
