//! Two flows on the papers' path: 10 Mbit/s, 40 ms.

use knee_cc::{Algorithm, Params};
use knee_model::{
    Cc, FlowKind, FlowSpec, NS_PER_MS, NS_PER_S, Ns, PathSpec, QueueLimit, RecordSpec, RunRecord,
    RunSpec, TcpOptions, TcpSpec, Transport, Workload,
};

const DURATION_NS: Ns = 120 * NS_PER_S;
pub(crate) const CAPACITY_BPS: u64 = 10_000_000;
/// Packets that fill the queue: the CHD paper's 2.1 bandwidth-delay products.
pub(crate) const QUEUE_PKTS: u32 = 84;
/// Mean packet loss of a flow above which something other than congestion control is at work.
const MOST_LOSS: f64 = 0.05;

pub(crate) fn bulk(algorithm: Algorithm, start_ns: Ns) -> FlowSpec {
    FlowSpec {
        start_ns,
        ..FlowSpec::new(
            algorithm.name(),
            FlowKind::Tcp(TcpSpec {
                transport: Transport::Own,
                cc: Cc::Knee(Params::defaults(algorithm)),
                workload: Workload::Bulk,
                options: TcpOptions::default(),
            }),
        )
    }
}

/// A flow of each, the second one 5 s later, for 120 s.
pub fn duel(first: Algorithm, second: Algorithm) -> RunSpec {
    RunSpec {
        seed: 1,
        duration_ns: DURATION_NS,
        path: PathSpec::symmetric(CAPACITY_BPS, 40 * NS_PER_MS, QueueLimit::Packets(QUEUE_PKTS)),
        flows: vec![bulk(first, 0), bulk(second, 5 * NS_PER_S)],
        record: RecordSpec { bin_ns: NS_PER_S, queue_log: false, trace: false },
        sysctls: Vec::new(),
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

/// The columns of [`judged`].
pub const COLUMNS: &str = "Mbit/s Mbit/s  delay ms  drops";

/// Result of two flows in the simulator: goodput of each over the last two thirds, mean queueing delay,
/// drops.
///
/// # Errors
/// A property that is violated, though it must hold for any two flows: the same run twice is the same,
/// neither is starved from its start, neither loses more packets than congestion control explains.
pub fn judged(spec: &RunSpec) -> Result<String, String> {
    let run = || knee_sim::run(spec).map_err(|e| e.to_string());
    let record = run()?;
    if record != run()? {
        return Err("the same run twice is not the same".to_owned());
    }
    let [first, second] = goodput_bps(&record);
    if first + second > CAPACITY_BPS as f64 {
        return Err(format!("{} bit/s passed a path of {CAPACITY_BPS}", first + second));
    }
    for flow in &record.flows {
        let c = &flow.counters;
        let lost = c.queue_drops_pkts as f64 / c.sent_pkts as f64;
        if c.delivered_bytes == 0 {
            return Err(format!("{} was starved from its start", flow.name));
        }
        if lost > MOST_LOSS {
            return Err(format!("{} lost {:.1} % of its packets", flow.name, lost * 100.0));
        }
    }
    Ok(format!(
        "{:>6.2} {:>6.2} {:>9.1} {:>6}",
        first / 1e6,
        second / 1e6,
        record.queues[0].delay.mean_ns() / 1e6,
        record.queues[0].dropped_pkts
    ))
}
