//! What rate of bulk TCP the emulator carries, and how late it is.
//!
//! `rate [MBIT_PER_S [RTT_MS [QUEUE_BYTES [SECONDS [CC [PACKETS_PER_ACK]]]]]]`; 5000 Mbit/s, no
//! delay, 10 MB, 5 s, cubic and 1 if not given.

use knee_cc::{Params, algorithms};
use knee_run::{Cc, FlowKind, NS_PER_MS, NS_PER_S, PathSpec, QueueLimit, RunSpec};
use std::{env, error::Error};

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = env::args().skip(1).collect();
    let number = |at: usize, default: u64| given.get(at).map_or(Ok(default), |g| g.parse());
    let (mbit_per_s, rtt_ms) = (number(0, 5000)?, number(1, 0)?);
    let (queue_bytes, seconds) = (number(2, 10_000_000)?, number(3, 5)?);
    let cc = given.get(4).map_or("cubic", String::as_str);
    let queue = QueueLimit::Bytes(queue_bytes);
    let path = PathSpec::symmetric(mbit_per_s * 1_000_000, rtt_ms * NS_PER_MS, queue);
    let params = Params::defaults(algorithms()[0]);
    let mut spec = RunSpec::dumbbell(1, path, seconds * NS_PER_S, &params, 1);
    if let FlowKind::Tcp(tcp) = &mut spec.flows[0].kind {
        tcp.cc = Cc::Kernel(cc.to_owned());
        tcp.options.delayed_ack.every_pkts = number(5, 1)? as u32;
    }
    spec.record.bin_ns = NS_PER_S / 10;

    let run = knee_testbed::run(&spec)?;
    let (flow, queue) = (&run.flows[0], &run.queue);
    let bits = flow.counters.delivered_bytes as f64 * 8.0;
    println!("goodput   {:.1} Mbit/s", bits / seconds as f64 / 1e6);
    println!("packets   {} departed, {} dropped", queue.departed_pkts, queue.dropped_pkts);
    println!(
        "queueing  {:.2} ms median, {:.2} ms largest",
        queue.delay.quantile_ns(0.5) as f64 / 1e6,
        queue.delay.max_ns() as f64 / 1e6
    );
    let lateness = run.real_time.ok_or("not in real time")?.lateness;
    println!(
        "lateness  {:.1} us mean, {:.1} us 99th percentile, {:.1} us largest",
        lateness.mean_ns as f64 / 1e3,
        lateness.p99_ns as f64 / 1e3,
        lateness.max_ns as f64 / 1e3
    );
    Ok(())
}
