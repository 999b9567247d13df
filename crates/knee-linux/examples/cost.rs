//! Processor time per packet: `cargo run --release --example cost -- [SECONDS]`.

use knee_cc::{Params, algorithm};
use knee_linux::Linux;
use knee_model::{Host, HostError, NS_PER_MS, NS_PER_S, PathSpec, QueueLimit, RunOptions, RunSpec};
use nix::sys::{
    resource::{Usage, UsageWho, getrusage},
    time::TimeValLike,
};

fn of_children() -> Option<Usage> {
    getrusage(UsageWho::RUSAGE_CHILDREN).ok()
}

fn main() -> Result<(), HostError> {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(10);
    for (name, mbit_per_s) in
        [("newreno", 10), ("newreno", 100), ("newreno", 500), ("bbr", 100), ("ebb", 500)]
    {
        let path = PathSpec::symmetric(
            mbit_per_s * 1_000_000,
            40 * NS_PER_MS,
            QueueLimit::Packets((mbit_per_s * 8) as u32),
        );
        let Some(algorithm) = algorithm(name) else { continue };
        let spec = RunSpec::dumbbell(1, path, seconds * NS_PER_S, &Params::defaults(algorithm), 1);
        let before = of_children();
        let record = Linux.run(&spec, &RunOptions::default())?;
        let (Some(before), Some(after)) = (before, of_children()) else { continue };
        let cpu = |usage: &Usage| (usage.user_time() + usage.system_time()).num_microseconds();
        let counters = record.flows[0].counters;
        let cpu_us = (cpu(&after) - cpu(&before)) as f64;
        println!(
            "{name} at {mbit_per_s} Mbit/s: {:.2} us per packet, {} packets, {:.3} of the link, {:.2} s, at most {} MiB",
            cpu_us / counters.sent_pkts as f64,
            counters.sent_pkts,
            counters.delivered_bytes as f64 * 8.0 / (mbit_per_s * seconds * 1_000_000) as f64,
            cpu_us / 1e6,
            after.max_rss() >> 10,
        );
    }
    Ok(())
}
