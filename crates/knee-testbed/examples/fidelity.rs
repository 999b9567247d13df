//! Runs a scenario in the simulator, or over the kernel's TCP, and prints what to compare.
//!
//! `fidelity HOST SCENARIO FIRST_SEED SEEDS [KEY=VALUE ...]`; HOST is `sim`, `knee` (our algorithms
//! in the kernel) or `native` (reno for newreno). With `LOG=folder` in the environment, each run's
//! queue log and samples go there.

use knee_lab::scenario::{Scenario, Set};
use knee_run::{FlowKind, RunRecord, RunSpec};
use std::{collections::BTreeMap, env, error::Error, fmt::Write as _, fs, path::Path, thread};

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn algorithm(spec: &RunSpec, flow: usize) -> &'static str {
    match &spec.flows[flow].kind {
        FlowKind::Tcp(tcp) => tcp.params.algorithm().name(),
        _ => "",
    }
}

fn main() -> Fallible<()> {
    let given: Vec<String> = env::args().skip(1).collect();
    let [host, scenario, first, seeds, sets @ ..] = &given[..] else {
        return Err("fidelity HOST SCENARIO FIRST_SEED SEEDS [KEY=VALUE ...]".into());
    };
    let sets = sets.iter().map(|s| Set::parse(s)).collect::<Result<Vec<_>, _>>()?;
    let scenario = Scenario::load(Path::new(scenario), &sets)?;
    let (first, seeds): (u64, u64) = (first.parse()?, seeds.parse()?);
    let spec_of = |seed| {
        let mut spec = scenario.spec(seed);
        spec.record.bin_ns = 100_000_000;
        spec.record.queue_log = true;
        spec
    };
    let mut loaded = BTreeMap::new();
    let spec = spec_of(first);
    if host == "knee" {
        for flow in &spec.flows {
            if let FlowKind::Tcp(tcp) = &flow.kind {
                let name = tcp.params.algorithm().name();
                if !loaded.contains_key(name) {
                    let as_name = format!("f{}_{}", std::process::id(), &name[..name.len().min(7)]);
                    loaded.insert(name, knee_kernel::load(&tcp.params, &as_name)?);
                }
            }
        }
    }
    let names: Vec<String> = (0..spec.flows.len())
        .map(|i| match (host.as_str(), algorithm(&spec, i)) {
            ("knee", name) => loaded[name].name().to_owned(),
            (_, "newreno") => "reno".to_owned(),
            (_, name) => name.to_owned(),
        })
        .collect();
    let run = |seed: u64| -> Fallible<(RunRecord, String)> {
        let spec = spec_of(seed);
        if host == "sim" {
            return Ok((knee_sim::run(&spec)?, String::new()));
        }
        let outcome = knee_testbed::run(&spec, &names)?;
        let l = outcome.lateness;
        let late = format!("late p99 {} max {} us", l.p99_ns / 1000, l.max_ns / 1000);
        Ok((outcome.record, late))
    };
    let results: Vec<Fallible<(RunRecord, String)>> = thread::scope(|s| {
        let run = &run;
        let runs: Vec<_> = (first..first + seeds).map(|seed| s.spawn(move || run(seed))).collect();
        runs.into_iter().map(|r| r.join().expect("no panic")).collect()
    });
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for (seed, result) in (first..).zip(results) {
        let (record, late) = result?;
        if let Ok(folder) = env::var("LOG") {
            write(&Path::new(&folder).join(format!("{host}-{seed}")), &record)?;
        }
        let mut row = vec![
            record.queue.delay.quantile_ns(0.5) as f64 / 1e6,
            record.queue.delay.mean_ns() as f64 / 1e6,
        ];
        let sum = |f: fn(&knee_run::FlowCounters) -> u64| {
            record.flows.iter().map(|r| f(&r.counters)).sum::<u64>() as f64
        };
        row.extend([
            sum(|c| c.loss_events),
            sum(|c| c.timeouts),
            sum(|c| c.retransmitted_pkts),
            sum(|c| c.duplicate_pkts),
            sum(|c| c.random_losses_pkts),
            sum(|c| c.queue_drops_pkts),
        ]);
        for flow in &record.flows {
            let life_s = (flow.stop_ns - flow.start_ns) as f64 / 1e9;
            row.push(flow.counters.delivered_bytes as f64 * 8.0 / life_s / 1e6);
        }
        println!("  {host} {seed}: {} {late}", show(&row));
        rows.push(row);
    }
    let median = |at: usize| {
        let mut values: Vec<f64> = rows.iter().map(|r| r[at]).collect();
        values.sort_by(f64::total_cmp);
        (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
    };
    let medians: Vec<f64> = (0..rows[0].len()).map(median).collect();
    println!("{host} median {} {:?}", show(&medians), &given[4..]);
    Ok(())
}

fn show(row: &[f64]) -> String {
    let goodput: Vec<String> = row[8..].iter().map(|g| format!("{g:.3}")).collect();
    format!(
        "goodput {} queue median {:.2} mean {:.2} ms; recoveries {} timeouts {} rtx {} dup {} lost {} dropped {}",
        goodput.join(" "),
        row[0],
        row[1],
        row[2],
        row[3],
        row[4],
        row[5],
        row[6],
        row[7]
    )
}

fn write(to: &Path, record: &RunRecord) -> Fallible<()> {
    let mut log = String::from("time_us,flow,number,held,event\n");
    for l in &record.queue.log {
        writeln!(
            log,
            "{},{},{},{},{}",
            l.time_ns / 1000,
            l.flow,
            l.number,
            l.held_pkts,
            l.event.name()
        )?;
    }
    fs::write(to.with_extension("queue.csv"), log)?;
    let mut log = String::from("flow,t_ms,cwnd,ssthresh,inflight,srtt_us,bytes\n");
    for (i, flow) in record.flows.iter().enumerate() {
        for (bin, s) in flow.samples.iter().enumerate() {
            writeln!(
                log,
                "{i},{},{},{},{},{},{}",
                bin * 100,
                s.cwnd_pkts,
                s.ssthresh_pkts,
                s.inflight_pkts,
                s.srtt_us,
                s.delivered_bytes
            )?;
        }
    }
    fs::write(to.with_extension("flow.csv"), log)?;
    Ok(())
}
