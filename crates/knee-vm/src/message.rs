//! A guest's request, and its answer.

use knee_cc::{Algorithm, Source};
use knee_model::{
    CallRecord, HostError, RunRecord, RunSpec,
    failure::{broken, unsupported},
};
use serde::{Deserialize, Serialize};

/// An algorithm from a C file, compiled: the guest has no compiler.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Compiled {
    file: String,
    text: String,
    /// For this processor.
    #[serde(with = "serde_bytes")]
    native: Vec<u8>,
    /// For BPF.
    #[serde(with = "serde_bytes")]
    bpf: Vec<u8>,
}

impl Compiled {
    /// The objects of `algorithms`, each once.
    ///
    /// # Errors
    /// clang is missing, or finds faults.
    pub(crate) fn all(algorithms: impl Iterator<Item = Algorithm>) -> Result<Vec<Self>, HostError> {
        let mut all: Vec<Self> = Vec::new();
        for algorithm in algorithms {
            let Some(Source { file, text, object }) = algorithm.source() else { continue };
            if all.iter().any(|known| known.file == *file && known.text == *text) {
                continue;
            }
            let bpf = knee_kernel::compiled(algorithm).map_err(unsupported)?;
            let (file, text, native) = (file.clone(), text.clone(), object.clone());
            all.push(Self { file, text, native, bpf });
        }
        Ok(all)
    }

    /// Makes this process know it.
    ///
    /// # Errors
    /// It cannot be loaded.
    pub(crate) fn load(self) -> Result<(), HostError> {
        let Self { file, text, native, bpf } = self;
        let loaded = knee_cc::load_compiled(Source { file, text, object: native });
        knee_kernel::give_compiled(loaded.map_err(broken)?, bpf);
        Ok(())
    }
}

/// A run. The guest reads it once it knows the algorithms that it names ([`Compiled`]).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    /// The run.
    pub spec: RunSpec,
    /// True if the packets are wanted.
    pub pcap: bool,
    /// True if qlogs are wanted.
    pub qlog: bool,
    /// Longest time that the guest may take, ns of its clock. It executes at most one instruction in
    /// each.
    pub budget_ns: u64,
}

/// A guest's result of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// The record, without traces, or why there is none.
    pub record: Result<RunRecord, HostError>,
    /// Calls of each flow's algorithm, if traced.
    pub traces: Vec<Vec<CallRecord>>,
    /// Requested files.
    pub files: Vec<File>,
}

/// A file that the guest made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct File {
    /// Name.
    pub name: String,
    /// Contents.
    #[serde(with = "serde_bytes")]
    pub contents: Vec<u8>,
}

/// Name of the file with the packets.
pub(crate) const PCAP: &str = "packets.pcapng";
