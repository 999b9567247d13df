//! Paths and flows that the tests share.
#![allow(dead_code, reason = "each test binary uses its own part")]

use knee_cc::{Params, algorithm};
use knee_model::{
    Cc, FlowKind, FlowSpec, NS_PER_MS, Ns, PathSpec, QueueLimit, RecordSpec, RunRecord, RunSpec,
    TcpOptions, TcpSpec, Transport, Workload,
};

pub const MS: Ns = NS_PER_MS;
pub const S: Ns = 1_000 * MS;

/// `run`, which none of the tests' specs may refuse.
pub fn run(spec: &RunSpec) -> RunRecord {
    knee_quic_run::run(spec).expect("the spec is possible over QUIC")
}

pub fn params(name: &str) -> Params {
    Params::defaults(algorithm(name).expect("registered"))
}

/// A flow of the algorithm `cc`, with its defaults.
pub fn tcp(cc: &str, workload: Workload, options: TcpOptions) -> FlowSpec {
    FlowSpec::new(
        cc,
        FlowKind::Tcp(TcpSpec {
            transport: Transport::Own,
            cc: Cc::Knee(params(cc)),
            workload,
            options,
        }),
    )
}

pub fn bulk(cc: &str) -> FlowSpec {
    tcp(cc, Workload::Bulk, TcpOptions::default())
}

/// A run over `path` with everything recorded. It ends within a bin: that at whose very end it ended
/// would lack what happened at that moment.
pub fn spec(path: PathSpec, duration_ns: Ns, flows: Vec<FlowSpec>) -> RunSpec {
    let record = RecordSpec { bin_ns: 100 * MS, queue_log: true, trace: true };
    RunSpec { seed: 1, duration_ns: duration_ns + 1, path, flows, record, sysctls: vec![] }
}

/// The papers' path: 10 Mb/s, 40 ms, with a queue of `queue_pkts`. A 1500-byte packet takes 1.2 ms.
pub fn ten_mbit(queue_pkts: u32) -> PathSpec {
    PathSpec::symmetric(10_000_000, 40 * MS, QueueLimit::Packets(queue_pkts))
}
