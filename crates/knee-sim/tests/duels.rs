//! Every algorithm beside itself and beside NewReno, on the papers' path. The results are recorded in a
//! snapshot for each algorithm, so that a change of any algorithm is seen. A new algorithm needs
//! none; `INSTA_UPDATE=always` records it.

mod common;

use common::{S, flow, run, ten_mbit};
use insta::assert_snapshot;
use knee_cc::{Algorithm, Params, algorithm, algorithms};
use knee_run::{
    Cc, FlowKind, FlowSpec, Ns, RecordSpec, RunRecord, RunSpec, TcpOptions, TcpSpec, Transport,
    Workload,
};
use std::{env, panic, path::Path, thread};

const DURATION_NS: Ns = 120 * S;
const CAPACITY_BPS: f64 = 10e6;
/// Packets that fill the queue: the CHD paper's 2.1 bandwidth-delay products.
const QUEUE_PKTS: u32 = 84;
/// Mean packet loss of a flow above which something other than congestion control is at work.
const MOST_LOSS: f64 = 0.05;

fn bulk(algorithm: Algorithm, start_ns: Ns) -> FlowSpec {
    let cc = Cc::Knee(Params::defaults(algorithm));
    let options = TcpOptions::default();
    let (transport, workload) = (Transport::Own, Workload::Bulk);
    let kind = FlowKind::Tcp(TcpSpec { transport, cc, workload, options });
    FlowSpec { start_ns, ..flow(algorithm.name(), kind) }
}

fn duel(first: Algorithm, second: Algorithm) -> RunSpec {
    RunSpec {
        seed: 1,
        duration_ns: DURATION_NS,
        path: ten_mbit(QUEUE_PKTS),
        flows: vec![bulk(first, 0), bulk(second, 5 * S)],
        record: RecordSpec { bin_ns: S, queue_log: false, trace: false },
    }
}

/// Goodput of each flow over the last two thirds, bit/s.
fn goodput_bps(record: &RunRecord) -> [f64; 2] {
    [0, 1].map(|i| {
        let bins = &record.flows[i].samples[40..];
        let bytes: u64 = bins.iter().map(|bin| bin.delivered_bytes).sum();
        bytes as f64 * 8.0 / bins.len() as f64
    })
}

/// What must be true of any two flows, and a line on what they did.
fn judged(spec: &RunSpec) -> String {
    let record = run(spec);
    assert!(record == run(spec), "the same run twice is not the same");
    let [first, second] = goodput_bps(&record);
    assert!(first + second <= CAPACITY_BPS);
    for flow in &record.flows {
        let c = &flow.counters;
        let lost = c.queue_drops_pkts as f64 / c.sent_pkts as f64;
        assert!(c.delivered_bytes > 0, "{} was starved from its start", flow.name);
        assert!(lost <= MOST_LOSS, "{} lost {lost} of its packets", flow.name);
    }
    format!(
        "{:>6.2} {:>6.2} {:>9.1} {:>6}",
        first / 1e6,
        second / 1e6,
        record.queues[0].delay.mean_ns() / 1e6,
        record.queues[0].dropped_pkts
    )
}

/// Whether an algorithm's results are on record, or are to be.
fn is_recorded(algorithm: Algorithm) -> bool {
    let snapshots = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
    let file = snapshots.join(format!("duels__{}.snap", algorithm.name()));
    file.exists() || env::var_os("INSTA_UPDATE").is_some()
}

#[test]
fn against_itself_and_newreno() {
    let newreno = algorithm("newreno").expect("registered");
    let mut recorded = 0;
    for &a in algorithms() {
        let (itself, other) = thread::scope(|scope| {
            let itself = scope.spawn(|| judged(&duel(a, a)));
            let other = judged(&duel(a, newreno));
            (itself.join().unwrap_or_else(|panic| panic::resume_unwind(panic)), other)
        });
        let table = format!(
            "beside     Mbit/s Mbit/s  delay ms  drops\nitself     {itself}\nnewreno    {other}\n"
        );
        if is_recorded(a) {
            assert_snapshot!(a.name(), table);
            recorded += 1;
        }
    }
    assert!(recorded > 0, "no records: run with INSTA_UPDATE=always");
}
