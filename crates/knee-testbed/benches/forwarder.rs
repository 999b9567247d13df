//! Speed of the forwarder: bulk TCP at a rate beyond its reach, and how late it is at one within.
//! Needs root. `cargo bench -p knee-testbed`

#![allow(missing_docs)]

use knee_cc::{Params, algorithms};
use knee_model::{
    Cc, FlowKind, NS_PER_MS, NS_PER_S, PathSpec, QueueLimit, RealTime, RunOptions, RunSpec,
};
use knee_testbed::run;

fn measure(
    what: &str,
    [rate_bps, rtt_ms, queue_pkts]: [u64; 3],
    every_pkts: u32,
    options: &RunOptions,
) {
    let path =
        PathSpec::symmetric(rate_bps, rtt_ms * NS_PER_MS, QueueLimit::Packets(queue_pkts as u32));
    let params = Params::defaults(algorithms()[0]);
    let mut spec = RunSpec::dumbbell(1, path, 5 * NS_PER_S, &params, 1);
    spec.record.bin_ns = NS_PER_S;
    // Beyond the forwarder's reach the window is all that holds the sender back.
    if let FlowKind::Tcp(tcp) = &mut spec.flows[0].kind {
        tcp.options.receive_window_pkts = 10_000;
        tcp.options.delayed_ack.every_pkts = every_pkts;
    }
    for cc in ["reno", "cubic"] {
        if let FlowKind::Tcp(tcp) = &mut spec.flows[0].kind {
            tcp.cc = Cc::Kernel(cc.to_owned());
        }
        match run(&spec, options, None) {
            Ok(record) => {
                let Some(RealTime { lateness, .. }) = record.real_time else { continue };
                let counters = &record.flows[0].counters;
                // Without the slow start.
                let bytes: u64 =
                    record.flows[0].samples[1..].iter().map(|s| s.delivered_bytes).sum();
                println!(
                    "{what}, {cc}: {:.2} Gbit/s delivered, {} packets; queue at most {}; late: \
                     mean {:.1} us, 99 % {:.1} us, largest {:.0} us",
                    bytes as f64 * 8e-9 / 4.0,
                    counters.delivered_pkts,
                    record.queues[0].max_pkts,
                    lateness.mean_ns as f64 / 1e3,
                    lateness.p99_ns as f64 / 1e3,
                    lateness.max_ns as f64 / 1e3,
                );
            }
            Err(error) => println!("{what}, {cc}: {error}"),
        }
        if let Some(file) = &options.pcap {
            let _ = std::fs::remove_file(file);
        }
    }
}

fn main() {
    let plain = RunOptions::default();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.pcapng");
    let captured = RunOptions { pcap: Some(file), ..RunOptions::default() };
    let (fast, slow) = ([5_000_000_000, 1, 20_000], [100_000_000, 40, 333]);
    measure("5 Gbit/s, 1 ms, an ACK for two packets", fast, 2, &plain);
    measure("5 Gbit/s, 1 ms, an ACK for each", fast, 1, &plain);
    measure("1.6 Gbit/s, 1 ms, an ACK for two packets", [1_600_000_000, 1, 1_000], 2, &plain);
    measure("100 Mbit/s, 40 ms", slow, 1, &plain);
    measure("100 Mbit/s, 40 ms, --pcap", slow, 1, &captured);
}
