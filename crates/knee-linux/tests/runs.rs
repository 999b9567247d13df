//! Runs in a real kernel.

#![allow(clippy::unwrap_used)] // tests

use knee_cc::{Params, algorithm};
use knee_linux::Linux;
use knee_model::{Host, NS_PER_MS, NS_PER_S, PathSpec, QueueLimit, RunOptions, RunSpec};

fn spec(name: &str, rate_bps: u64, seconds: u64) -> RunSpec {
    let path = PathSpec::symmetric(rate_bps, 40 * NS_PER_MS, QueueLimit::Packets(100));
    let params = Params::defaults(algorithm(name).unwrap());
    let mut spec = RunSpec::dumbbell(1, path, seconds * NS_PER_S, &params, 1);
    spec.record.bin_ns = 100 * NS_PER_MS;
    spec
}

#[test]
fn first() {
    let start = std::time::Instant::now();
    let record = Linux.run(&spec("newreno", 10_000_000, 10), &RunOptions::default());
    match record {
        Ok(record) => {
            println!("{:?} {:?}", record.flows[0].counters, start.elapsed());
            println!("{:?}", record.flows[0].samples.last());
            println!("{:?}", record.queues[0].delay.quantile_ns(0.5));
        }
        Err(error) => panic!("{} {}", error.why, error.help.unwrap_or_default()),
    }
}
