//! Speed of the simulator, per packet delivered.

#![allow(missing_docs)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use knee_cc::{Params, algorithms};
use knee_model::{NS_PER_MS, NS_PER_S, PathSpec, QueueLimit, RunSpec};

/// `flows` flows through a link of `rate_bps` with a queue of one BDP of 40 ms.
fn dumbbell(flows: u32, rate_bps: u64, duration_ms: u64, params: &Params) -> RunSpec {
    let bdp_pkts = (rate_bps / 1000 * 40 / 8 / 1500) as u32;
    let path = PathSpec::symmetric(rate_bps, 40 * NS_PER_MS, QueueLimit::Packets(bdp_pkts));
    RunSpec::dumbbell(flows, path, duration_ms * NS_PER_MS, params, 1)
}

fn delivered(spec: &RunSpec) -> u64 {
    let record = knee_sim::run(spec).expect("a valid run");
    record.flows.iter().map(|f| f.counters.delivered_pkts).sum()
}

fn speed(c: &mut Criterion) {
    let mut group = c.benchmark_group("dumbbell");
    group.sample_size(10);
    let mut measure = |name: String, spec: RunSpec| {
        group.throughput(Throughput::Elements(delivered(&spec)));
        group.bench_with_input(BenchmarkId::from_parameter(name), &spec, |b, s| {
            b.iter(|| delivered(s));
        });
    };
    for algorithm in algorithms() {
        let params = Params::defaults(*algorithm);
        let name = algorithm.name();
        measure(format!("16 {name}, 100 Mbit/s"), dumbbell(16, 100_000_000, 10_000, &params));
        let mut lossy = dumbbell(16, 100_000_000, 10_000, &params);
        lossy.path.hops[0].loss = 0.01;
        measure(format!("16 {name}, 100 Mbit/s, 1 % loss"), lossy);
    }
    let params = Params::defaults(algorithms()[0]);
    for flows in [16, 1_000, 10_000] {
        measure(
            format!("{flows} flows, 10 Gbit/s"),
            dumbbell(flows, 10 * 1_000_000_000, 500, &params),
        );
    }
    let mut recorded = dumbbell(16, 100_000_000, 10_000, &params);
    recorded.record.bin_ns = NS_PER_S / 10;
    measure("16 flows, 100 Mbit/s, recorded".to_owned(), recorded);
}

criterion_group!(benches, speed);
criterion_main!(benches);
