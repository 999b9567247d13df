//! Runs of which `scripts/bench-instructions.sh` counts the instructions, and which are timed.
//!
//! `instructions CASE short|long` runs a case once and prints the number of delivered packets (for
//! `start-up`: of runs). Difference of the two instruction counts over that of the packets: instructions per
//! packet, without the cost of a process. Without arguments it lists the cases.
//!
//! `instructions time ROUNDS [CASE]...` times the cases in turn, ten times as long, and those of many flows
//! too: medians of the time per packet, and of its ratio to the first case's in the same round.

use knee_cc::{Params, algorithm};
use knee_model::{
    Aqm, CoDel, Discipline, FlowKind, FqCoDel, HopSpec, NS_PER_MS, Ns, PathSpec, QueueLimit, Red,
    ReverseLink, Route, RunSpec,
};
use std::{process::ExitCode, time::Instant};

const MBIT: u64 = 1_000_000;
const GBIT: u64 = 1_000 * MBIT;

/// Simulated times of the short and the long run, ms.
type Times = [u64; 2];

struct Case {
    name: &'static str,
    algorithm: &'static str,
    flows: u32,
    rate_bps: u64,
    rtt_ms: u64,
    times_ms: Times,
    change: fn(&mut RunSpec),
}

/// 16 flows of `algorithm` at 100 Mbit/s and 40 ms, with a queue of one bandwidth-delay product: about
/// 8300 packets each second.
const fn sixteen(name: &'static str, algorithm: &'static str, change: fn(&mut RunSpec)) -> Case {
    let times_ms = [3_000, 6_000];
    Case { name, algorithm, flows: 16, rate_bps: 100 * MBIT, rtt_ms: 40, times_ms, change }
}

const SIXTEEN: Case = sixteen("16-flows", "newreno", as_it_is);

const CASES: [Case; 21] = [
    SIXTEEN,
    Case { name: "1-flow", flows: 1, ..SIXTEEN },
    Case { name: "16-flows-1gbit", rate_bps: GBIT, times_ms: [500, 1_000], ..SIXTEEN },
    Case {
        name: "128-flows-250ms",
        flows: 128,
        rate_bps: 500 * MBIT,
        rtt_ms: 250,
        times_ms: [5_000, 7_000],
        ..SIXTEEN
    },
    Case {
        name: "1000-flows-10gbit",
        flows: 1_000,
        rate_bps: 10 * GBIT,
        times_ms: [120, 180],
        ..SIXTEEN
    },
    sixteen("cubic", "cubic", as_it_is),
    sixteen("ftcp", "ftcp", as_it_is),
    sixteen("copa", "copa", as_it_is),
    sixteen("bbr", "bbr", as_it_is),
    sixteen("red", "newreno", |spec| managed(spec, Discipline::Red(Red::default()))),
    sixteen("codel", "newreno", |spec| managed(spec, Discipline::CoDel(CoDel::default()))),
    sixteen("fq-codel", "newreno", |spec| managed(spec, Discipline::FqCoDel(FqCoDel::default()))),
    sixteen("random-loss", "newreno", |spec| spec.path.hops[0].loss = 0.001),
    sixteen("delayed-acks", "newreno", |spec| {
        for flow in &mut spec.flows {
            if let FlowKind::Tcp(tcp) = &mut flow.kind {
                tcp.options.delayed_ack.every_pkts = 2;
            }
        }
    }),
    sixteen("jitter", "newreno", |spec| spec.path.jitter_forward_ns = NS_PER_MS),
    sixteen("two-way", "newreno", |spec| {
        let queue = QueueLimit::Packets(333);
        let link = ReverseLink { rate_bps: 100 * MBIT, rate_varies: None, queue };
        spec.path.reverse = Some(link);
        for flow in spec.flows.iter_mut().step_by(2) {
            flow.route = Route { reverse: true, ..Route::default() };
        }
    }),
    sixteen("three-hops", "newreno", |spec| {
        let hop = HopSpec::new(100 * MBIT, QueueLimit::Packets(333));
        spec.path.hops.extend([hop.clone(), hop]);
    }),
    sixteen("bins", "newreno", |spec| spec.record.bin_ns = 100 * NS_PER_MS),
    // As `knee duel` and `knee matrix` have them.
    Case {
        name: "duel",
        flows: 2,
        change: |spec| {
            spec.record.bin_ns = 20 * NS_PER_MS;
            spec.flows.iter_mut().for_each(|flow| flow.access_jitter_ns = NS_PER_MS / 10);
        },
        ..SIXTEEN
    },
    sixteen("access", "newreno", |spec| {
        for (flow, ms) in spec.flows.iter_mut().zip(1..) {
            flow.access_delay_ns = ms * NS_PER_MS;
        }
    }),
    Case { name: "start-up", flows: 1, times_ms: [200, 400], ..SIXTEEN },
];

/// Cases that are timed only: they have no short run.
const MANY: [Case; 3] = [
    Case {
        name: "10000-flows-10gbit",
        flows: 10_000,
        rate_bps: 10 * GBIT,
        times_ms: [0, 200],
        ..SIXTEEN
    },
    Case {
        name: "100000-flows-10gbit",
        flows: 100_000,
        rate_bps: 10 * GBIT,
        times_ms: [0, 600],
        ..SIXTEEN
    },
    Case {
        name: "100000-flows-100gbit",
        flows: 100_000,
        rate_bps: 100 * GBIT,
        times_ms: [0, 100],
        ..SIXTEEN
    },
];

/// Cases are timed over so many times their long run.
const TIMED: u64 = 10;

fn as_it_is(_: &mut RunSpec) {}

fn managed(spec: &mut RunSpec, discipline: Discipline) {
    spec.path.hops[0].aqm = Some(Aqm { discipline, ecn: false });
}

impl Case {
    fn spec(&self, duration_ns: Ns) -> RunSpec {
        let queue = QueueLimit::Packets((self.rate_bps / 1_000 * self.rtt_ms / 8 / 1_500) as u32);
        let path = PathSpec::symmetric(self.rate_bps, self.rtt_ms * NS_PER_MS, queue);
        let params = Params::defaults(algorithm(self.algorithm).expect("a known algorithm"));
        let mut spec = RunSpec::dumbbell(self.flows, path, duration_ns, &params, 1);
        (self.change)(&mut spec);
        spec
    }

    /// Packets that the run delivered; of `start-up`: runs, each up to its first packets.
    fn count(&self, long: bool) -> u64 {
        let time_ms = self.times_ms[usize::from(long)];
        if self.name == "start-up" {
            for _ in 0..time_ms {
                delivered_pkts(&self.spec(1));
            }
            return time_ms;
        }
        delivered_pkts(&self.spec(time_ms * NS_PER_MS))
    }

    /// Nanoseconds per packet delivered; of `start-up`: per run.
    fn time_ns(&self) -> f64 {
        let spec = self.spec(TIMED * self.times_ms[1] * NS_PER_MS);
        let start = Instant::now();
        let count = if self.name == "start-up" { self.count(true) } else { delivered_pkts(&spec) };
        start.elapsed().as_nanos() as f64 / count as f64
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Times `cases` in turn, the first case first in each round.
fn time(rounds: usize, cases: &[&Case]) {
    let times_ns: Vec<(f64, Vec<f64>)> = (0..rounds)
        .map(|_| (SIXTEEN.time_ns(), cases.iter().map(|case| case.time_ns()).collect()))
        .collect();
    println!("{:<22} {:>8} {:>12}", "case", "ns", "of 16 flows");
    for (index, case) in cases.iter().enumerate() {
        let ns = median(times_ns.iter().map(|(_, all_ns)| all_ns[index]).collect());
        let ratio =
            median(times_ns.iter().map(|(first_ns, all_ns)| all_ns[index] / first_ns).collect());
        println!("{:<22} {ns:>8.1} {ratio:>12.2}", case.name);
    }
}

fn delivered_pkts(spec: &RunSpec) -> u64 {
    let record = knee_sim::run(spec).expect("a valid run");
    record.flows.iter().map(|flow| flow.counters.delivered_pkts).sum()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let case = |name: &str| CASES.iter().find(|case| case.name == name);
    let timed = |name: &str| CASES.iter().chain(&MANY).find(|case| case.name == name);
    match arguments[..] {
        [] => CASES.iter().for_each(|case| println!("{}", case.name)),
        [name, length @ ("short" | "long")] if case(name).is_some() => {
            let counted = case(name).map_or(0, |case| case.count(length == "long"));
            println!("{counted}");
        }
        ["time", rounds, ref names @ ..]
            if rounds.parse().is_ok_and(|rounds: usize| rounds > 0)
                && names.iter().all(|name| timed(name).is_some()) =>
        {
            let named: Vec<&Case> = names.iter().filter_map(|name| timed(name)).collect();
            let all = || CASES.iter().chain(&MANY).collect();
            let cases = if named.is_empty() { all() } else { named };
            time(rounds.parse().unwrap_or(1), &cases);
        }
        _ => {
            eprintln!("usage: instructions [CASE short|long | time ROUNDS [CASE]...]");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
