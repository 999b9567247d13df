//! Finished runs, each in a file of its own, so that a reproduction that ended early can go on.

use knee_run::{HostError, HostErrorKind, RunRecord, RunSpec};
use sha2::{Digest, Sha256};
use std::{
    fmt::Display,
    fs,
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;

/// Version of the files: part of their names, so that others' are not read. Raise it with every
/// change of [`RunRecord`].
const VERSION: u32 = 4;
const CHECK_BYTES: usize = 32;

/// A folder of finished runs.
#[derive(Clone, Debug)]
pub struct KeptRuns {
    folder: PathBuf,
}

impl KeptRuns {
    /// Those in `folder`, which is made if it is not there.
    ///
    /// # Errors
    /// It cannot be made, in words.
    pub fn open(folder: &Path) -> Result<Self, String> {
        fs::create_dir_all(folder)
            .map_err(|e| format!("cannot create the folder {} for runs: {e}", folder.display()))?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// The record of `spec` as `host` made it before, or else as `run` makes it now, which is kept
    /// then. `host` says everything else that the record depends on. Runs with a trace are not
    /// kept.
    ///
    /// # Errors
    /// Those of `run`; a file that cannot be read or written. Failed runs are not kept.
    pub fn or_run(
        &self,
        host: &str,
        spec: &RunSpec,
        run: impl FnOnce(&RunSpec) -> Result<RunRecord, HostError>,
    ) -> Result<RunRecord, HostError> {
        if spec.record.trace {
            return run(spec);
        }
        let file = self.folder.join(name(host, spec));
        let told = |e: &dyn Display| {
            HostError::new(HostErrorKind::Broken, format!("{}: {e}", file.display()))
        };
        match fs::read(&file) {
            Ok(bytes) => {
                let record = decode(&bytes, spec);
                return record
                    .ok_or_else(|| told(&"damaged").with_help("remove it to run it again"));
            }
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(told(&e)),
        }
        let record = run(spec)?;
        let bytes = encode(&record).map_err(|e| told(&e))?;
        // It has its name only when it is whole.
        let mut new = NamedTempFile::new_in(&self.folder).map_err(|e| told(&e))?;
        new.write_all(&bytes).map_err(|e| told(&e))?;
        new.persist(&file).map_err(|e| told(&e.error))?;
        Ok(record)
    }
}

fn name(host: &str, spec: &RunSpec) -> String {
    let mut hash = Sha256::new();
    hash.update(format!("{VERSION} {} {host} {spec:?}", env!("CARGO_PKG_VERSION")));
    let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{hash}.run")
}

fn encode(record: &RunRecord) -> Result<Vec<u8>, postcard::Error> {
    let record = postcard::to_stdvec(record)?;
    Ok([Sha256::digest(&record).as_slice(), &record].concat())
}

fn decode(bytes: &[u8], spec: &RunSpec) -> Option<RunRecord> {
    let (check, record) = bytes.split_at_checked(CHECK_BYTES)?;
    if Sha256::digest(record).as_slice() != check {
        return None;
    }
    let mut record: RunRecord = postcard::from_bytes(record).ok()?;
    record.name_observed(spec);
    Some(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_run::{
        FlowRecord, FlowSample, PacketEvent, PacketLog, QueueBin, QueueRecord, RealTime, Transfer,
        Unfinished,
    };

    /// A record with one of everything has this length: who changes that raises [`VERSION`], and
    /// then this number.
    #[test]
    fn the_version_is_that_of_the_record() {
        let real_time = Some(RealTime { lateness: Default::default() });
        let mut record = RunRecord { real_time, ..RunRecord::default() };
        record.approximations.push(String::new());
        record.queues = vec![QueueRecord::default(); 2];
        record.queues[0].bins.push(QueueBin::default());
        record.reverse_queue = Some(QueueRecord::default());
        record.queues[0].log.push(PacketLog {
            time_ns: 0,
            flow: 0,
            number: 0,
            bytes: 0,
            held_pkts: 0,
            event: PacketEvent::Lost,
        });
        record.flows.push(FlowRecord {
            samples: vec![FlowSample::default()],
            transfers: vec![Transfer { start_ns: 0, end_ns: 0, bytes: 0 }],
            unfinished: vec![Unfinished { start_ns: 0, bytes: 0 }],
            probe_delays: vec![(0, 0)],
            ..FlowRecord::default()
        });
        let bytes = encode(&record).expect("it can be encoded").len();
        assert_eq!((VERSION, bytes), (4, 150));
    }
}
