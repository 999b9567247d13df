//! Speed of QUIC in virtual time, per packet delivered.

#![allow(missing_docs)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use knee_cc::{Params, algorithm};
use knee_model::{NS_PER_MS, NS_PER_S, PathSpec, QueueLimit, RunSpec};

fn delivered(spec: &RunSpec) -> u64 {
    let record = knee_quic_run::run(spec).expect("a valid run");
    record.flows.iter().map(|f| f.counters.delivered_pkts).sum()
}

fn speed(c: &mut Criterion) {
    let mut group = c.benchmark_group("quic");
    group.sample_size(10);
    for (flows, rate_mbit, name, loss) in [
        (1, 10, "newreno", 0.0),
        (1, 10, "chd", 0.0),
        (1, 10, "newreno", 0.01),
        (16, 100, "newreno", 0.0),
    ] {
        let params = Params::defaults(algorithm(name).expect("registered"));
        let queue = QueueLimit::Packets(84 * rate_mbit as u32 / 10);
        let mut path = PathSpec::symmetric(rate_mbit * 1_000_000, 40 * NS_PER_MS, queue);
        path.hops[0].loss = loss;
        let spec = RunSpec::dumbbell(flows, path, 60 * NS_PER_S, &params, 1);
        group.throughput(Throughput::Elements(delivered(&spec)));
        let name = format!("{flows} {name}, {rate_mbit} Mbit/s, {} % loss, 60 s", loss * 100.0);
        group.bench_with_input(BenchmarkId::from_parameter(name), &spec, |b, s| {
            b.iter(|| delivered(s));
        });
    }
}

criterion_group!(benches, speed);
criterion_main!(benches);
