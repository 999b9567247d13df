//! `knee bench`.

mod peers;
mod values;

pub(crate) use values::{delay, time};

use crate::{Format, hosts, integer, output};
use clap::{
    Arg, Command, Subcommand,
    builder::{PossibleValue, TypedValueParser},
};
use knee_cc::{Algorithm, Params, algorithms, find};
use knee_model::{NS_PER_S, Ns, PathSpec, QueueLimit, RunSpec, seconds};
use knee_scenario::{
    Scenario,
    units::{RATE, SIZE, TIME, show_queue},
};
use miette::{Result, miette};
use nix::sys::resource::{UsageWho, getrusage};
use serde::Serialize;
use std::{ffi::OsStr, fs, path::Path, process::ExitCode, time::Instant};
use values::{queue, rate, size};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Bulk flows through one bottleneck, SACK, an ACK for each packet
    Dumbbell(Dumbbell),
    /// Short flows that arrive at random, of heavy-tailed sizes, through one bottleneck, with a
    /// time series
    Short(Short),
    /// The same dumbbell in other simulators that are installed, and in Knee, in turn
    ///
    /// ns-2 (Debian package ns2) and ns-3 (libns3-dev, with g++): whole processes, SACK; medians of all
    /// pairs.
    Peers(peers::Peers),
}

#[derive(clap::Args)]
struct Dumbbell {
    /// Number of flows
    #[arg(long, value_name = "N", default_value = "16", value_parser = integer::<u32>(1..=100_000), allow_hyphen_values = true)]
    flows: u32,
    /// Rate of the bottleneck
    #[arg(long, default_value = "100mbit", value_parser = rate, allow_hyphen_values = true)]
    rate: u64,
    /// Round-trip time without queueing
    #[arg(long, default_value = "40ms", value_parser = time, allow_hyphen_values = true)]
    rtt: Ns,
    /// Limit of the bottleneck's queue, as 333p or 500kB
    #[arg(long, default_value = "333p", value_parser = queue, allow_hyphen_values = true)]
    queue: QueueLimit,
    /// Simulated time
    #[arg(long, default_value = "60s", value_parser = time, allow_hyphen_values = true)]
    duration: Ns,
    /// Algorithm of all flows, as `knee list` names it, or a C file
    #[arg(long, value_name = "NAME", default_value = "newreno", value_parser = Known)]
    cc: Algorithm,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

#[derive(clap::Args)]
struct Short {
    /// Number of flows, on average
    #[arg(long, value_name = "N", default_value = "10000", value_parser = integer::<u32>(1..=90_000), allow_hyphen_values = true)]
    flows: u32,
    /// Rate of the bottleneck
    #[arg(long, default_value = "100mbit", value_parser = rate, allow_hyphen_values = true)]
    rate: u64,
    /// Round-trip time without queueing
    #[arg(long, default_value = "40ms", value_parser = time, allow_hyphen_values = true)]
    rtt: Ns,
    /// Limit of the bottleneck's queue, as 333p or 500kB
    #[arg(long, default_value = "333p", value_parser = queue, allow_hyphen_values = true)]
    queue: QueueLimit,
    /// Payload that arrives, in percent of the rate
    #[arg(long, value_name = "PERCENT", default_value = "50", value_parser = integer::<u32>(1..=1000), allow_hyphen_values = true)]
    load: u32,
    /// Mean size (Pareto's law of shape 1.2, up to 10 MB)
    #[arg(long, default_value = "30kB", value_parser = size, allow_hyphen_values = true)]
    mean: u64,
    /// Algorithm of all flows, as `knee list` names it, or a C file
    #[arg(long, value_name = "NAME", default_value = "newreno", value_parser = Known)]
    cc: Algorithm,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

impl Short {
    fn spec(&self) -> Result<RunSpec> {
        let bits = u128::from(self.flows) * u128::from(self.mean) * 8 * 100;
        let per_s = u128::from(self.rate) * u128::from(self.load);
        let duration_ns = (bits * u128::from(NS_PER_S) / per_s).max(1);
        let text = format!(
            "duration = \"{duration_ns}ns\"\n\
             [path]\nrate = \"{}\"\nrtt = \"{}\"\nqueue = \"{}\"\n\
             [[flow]]\ncc = \"{}\"\narrivals.load = {:?}\n\
             size = {{ law = \"pareto\", mean = \"{}\", shape = 1.2, max = \"10MB\" }}\n",
            RATE.show(self.rate),
            TIME.show(self.rtt),
            show_queue(self.queue),
            self.cc.name(),
            f64::from(self.load) / 100.0,
            SIZE.show(self.mean)
        );
        Ok(Scenario::parse("bench short", &text, &[])?.spec(1))
    }
}

/// An algorithm by its name, which shells complete, or by its C file.
#[derive(Clone)]
pub(crate) struct Known;

impl TypedValueParser for Known {
    type Value = Algorithm;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Algorithm, clap::Error> {
        let found = |name: &str| match find(name, Path::new("")) {
            Ok(found) => found.ok_or("no such algorithm; `knee list` shows all".to_owned()),
            Err(e) => Err(format!("{e}; {}", e.help())),
        };
        found.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(algorithms().iter().map(|a| PossibleValue::new(a.name()))))
    }
}

/// Measurements.
#[derive(Serialize)]
struct Speed {
    /// Wall-clock time of the simulation alone.
    wall_s: f64,
    /// Packets that arrived for the first time.
    delivered_pkts: u64,
    ns_per_delivered_pkt: f64,
    /// Largest resident memory of the whole process.
    peak_rss_bytes: u64,
    /// The same without the pages of files, which the system maps and drops as it likes. Linux only.
    peak_anonymous_bytes: Option<u64>,
    /// Most packets that the bottleneck's queue held.
    max_held_pkts: u32,
    goodput_bps: f64,
    flows: usize,
}

/// Largest resident memory of this program, and without the pages of files. The system's count for the
/// process includes that of the one that started it.
fn peak_memory_bytes() -> Result<(u64, Option<u64>)> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bytes = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
    };
    if let (Some(peak), Some(files)) = (bytes("VmHWM:"), bytes("RssFile:")) {
        return Ok((peak, Some(peak.saturating_sub(files))));
    }
    let usage = getrusage(UsageWho::RUSAGE_SELF).map_err(|e| miette!("getrusage: {e}"))?;
    Ok((usage.max_rss().unsigned_abs() * 1024, None))
}

pub(crate) fn bench(args: &Args) -> Result<ExitCode> {
    let (spec, format) = match &args.what {
        What::Peers(peers) => return peers.bench(),
        What::Dumbbell(d) => {
            let path = PathSpec::symmetric(d.rate, d.rtt, d.queue);
            let params = Params::defaults(d.cc);
            (RunSpec::dumbbell(d.flows, path, d.duration, &params, 1), &d.format)
        }
        What::Short(short) => (short.spec()?, &short.format),
    };
    let start = Instant::now();
    let record = knee_sim::run(&spec).map_err(hosts::report)?;
    let wall_s = start.elapsed().as_secs_f64();
    let total = |of: fn(&knee_model::FlowCounters) -> u64| -> u64 {
        record.flows.iter().map(|f| of(&f.counters)).sum()
    };
    let delivered_pkts = total(|c| c.delivered_pkts);
    if delivered_pkts == 0 {
        let help = match args.what {
            What::Dumbbell(_) => "make --duration longer than --rtt, or raise --rate",
            What::Short(_) | What::Peers(_) => {
                "raise --flows, so that the run lasts longer than --rtt"
            }
        };
        return Err(miette!(help = help, "no packet was delivered: there is nothing to measure"));
    }
    let (peak_rss_bytes, peak_anonymous_bytes) = peak_memory_bytes()?;
    let speed = Speed {
        wall_s,
        delivered_pkts,
        ns_per_delivered_pkt: wall_s * 1e9 / delivered_pkts as f64,
        peak_rss_bytes,
        peak_anonymous_bytes,
        max_held_pkts: record.queues[0].max_pkts,
        goodput_bps: total(|c| c.delivered_bytes) as f64 * 8.0 / seconds(spec.duration_ns),
        flows: record.flows.len(),
    };
    output::show(*format, &speed, || {
        format!(
            "{:.4} s for {} packets delivered of {} flows: {:.1} ns per packet; {:.1} MB at most; goodput {:.2} Mbit/s\n",
            speed.wall_s,
            speed.delivered_pkts,
            speed.flows,
            speed.ns_per_delivered_pkt,
            speed.peak_rss_bytes as f64 / 1e6,
            speed.goodput_bps / 1e6,
        )
    })
}
