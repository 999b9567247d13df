//! A transfer over a lossy path, on a kernel: it arrives whole, and every call of it replays.

use crate::{
    duels::{CAPACITY_BPS, QUEUE_PKTS, bulk},
    replay::replayed,
};
use knee_cc::Algorithm;
use knee_model::{
    FlowKind, FlowSpec, NS_PER_MS, NS_PER_S, PathSpec, QueueLimit, RecordSpec, RunRecord, RunSpec,
    TcpSpec, Workload,
};

/// Size of the transfer.
pub const SIZE_BYTES: u64 = 1_000_000;
/// Random loss on the way.
pub const LOSS: f64 = 0.005;

/// Result of a kernel with an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transferred {
    /// Instructions that the kernel's verifier looked at: those of the largest program.
    pub verified_instructions: u32,
    /// Calls that were replayed.
    pub calls: u64,
}

/// The transfer, with a trace.
pub fn spec(algorithm: Algorithm) -> RunSpec {
    let mut path =
        PathSpec::symmetric(CAPACITY_BPS, 40 * NS_PER_MS, QueueLimit::Packets(QUEUE_PKTS));
    path.hops[0].loss = LOSS;
    let flow = bulk(algorithm, 0);
    let kind = match flow.kind {
        FlowKind::Tcp(tcp) => {
            let workload = Workload::Transfers { size_bytes: SIZE_BYTES, every_ns: None };
            FlowKind::Tcp(TcpSpec { workload, ..tcp })
        }
        other => other,
    };
    RunSpec {
        seed: 1,
        duration_ns: 20 * NS_PER_S,
        path,
        flows: vec![FlowSpec { kind, ..flow }],
        record: RecordSpec { bin_ns: 0, queue_log: false, trace: true },
        sysctls: Vec::new(),
    }
}

/// Judges the record of [`spec`], of a host that compares the received data with the sent data.
///
/// # Errors
/// The fault, in words.
pub fn judge(algorithm: Algorithm, record: &RunRecord) -> Result<Transferred, String> {
    if !record.flows.iter().all(|flow| flow.unfinished.is_empty() && flow.transfers.len() == 1) {
        return Err("the transfer did not come to its end".to_owned());
    }
    let verified = record.real_time.iter().flat_map(|real| &real.verified);
    let mine = verified.filter(|(name, _)| name == algorithm.name()).map(|(_, n)| *n).next();
    let verified_instructions = mine.ok_or("the kernel does not tell what it has verified")?;
    Ok(Transferred { verified_instructions, calls: replayed(algorithm, record)? })
}
