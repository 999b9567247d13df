//! Paths and flows that the tests share.
#![allow(dead_code, reason = "each test binary uses its own part")]

use knee_cc::{Params, algorithm};
use knee_model::{
    Cc, FlowKind, FlowSpec, NS_PER_MS, Ns, PathSpec, QueueLimit, RecordSpec, Recovery, RunRecord,
    RunSpec, TcpOptions, TcpSpec, Transport, Workload,
};

pub const MS: Ns = NS_PER_MS;
pub const S: Ns = 1_000 * MS;

/// `run`, which none of the tests' specs may refuse.
pub fn run(spec: &RunSpec) -> RunRecord {
    knee_sim::run(spec).expect("the spec is short enough")
}

/// Defaults of `name` with `given` in their place.
pub fn params(name: &str, given: &[(&str, u64)]) -> Params {
    let algorithm = algorithm(name).expect("registered");
    Params::new(algorithm, given.iter().copied()).expect("in range")
}

/// NewReno that counts packets.
pub fn newreno(workload: Workload, options: TcpOptions) -> FlowSpec {
    let params = params("newreno", &[]);
    FlowSpec::new(
        "newreno",
        FlowKind::Tcp(TcpSpec {
            transport: Transport::Own,
            cc: Cc::Knee(params),
            workload,
            options,
        }),
    )
}

/// Default options with the given way of repair.
pub fn options(recovery: Recovery) -> TcpOptions {
    TcpOptions { recovery, ..TcpOptions::default() }
}

/// One transfer of `pkts` full packets.
pub fn transfer(pkts: u64) -> Workload {
    Workload::Transfers { size_bytes: pkts * 1448, every_ns: None }
}

/// A run over `path` with everything recorded but the time series.
pub fn spec(path: PathSpec, duration_ns: Ns, flows: Vec<FlowSpec>) -> RunSpec {
    let record = RecordSpec { bin_ns: 0, queue_log: true, trace: true };
    RunSpec { seed: 1, duration_ns, path, flows, record, sysctls: vec![] }
}

/// The papers' path: 10 Mb/s, 40 ms, with a queue of `queue_pkts`. A 1500-byte packet takes 1.2 ms.
pub fn ten_mbit(queue_pkts: u32) -> PathSpec {
    PathSpec::symmetric(10_000_000, 40 * MS, QueueLimit::Packets(queue_pkts))
}
