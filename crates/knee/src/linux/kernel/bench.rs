//! `knee kernel bench`: the cost of the algorithms in the kernel, compared with the kernel's own.

use crate::{Format, hosts::report, integer, linux::duration::time, output};
use knee_cc::{Call, Params, algorithms};
use knee_kernel::{Loaded, Variant};
use knee_report::table::Table;
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use nix::sys::{
    resource::{UsageWho, getrusage},
    socket::{SetSockOpt, sockopt::TcpCongestion},
};
use serde::Serialize;
use std::{
    ffi::OsString,
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    process::{self, ExitCode},
    thread,
    time::{Duration, Instant},
};

/// Algorithms of the kernel's own to compare with; ratios refer to the first.
const NATIVE: [&str; 2] = ["reno", "cubic"];
const CHUNK_BYTES: usize = 256 << 10;
/// A transfer ends when nothing moves for so long.
const STUCK: Duration = Duration::from_secs(10);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of rounds; each algorithm runs once per round, so that other load affects all alike
    #[arg(long, value_name = "N", default_value = "7", value_parser = integer::<usize>(1..=1000))]
    rounds: usize,
    /// Length of each transfer
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    length: Duration,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// One bulk transfer over loopback.
#[derive(Clone, Copy)]
struct Transfer {
    gbit_per_s: f64,
    cpu_s_per_gbyte: f64,
}

/// Cost of an algorithm. Medians over the rounds; ratios are taken within each round.
#[derive(Serialize)]
struct Cost {
    /// `kernel:reno`, or an algorithm of Knee.
    name: String,
    /// Rate of the transfer, Gbit/s.
    rate_gbit_per_s: f64,
    /// Rate relative to that of `kernel:reno`.
    rate_ratio: f64,
    /// Time of all processors, both ends, for 10^9 bytes, seconds.
    cpu_s_per_gbyte: f64,
    /// CPU time relative to that of `kernel:reno`.
    cpu_ratio: f64,
    /// Mean time of a program's run, as the kernel counts; none of the kernel's own.
    ns_per_call: Option<f64>,
    /// The same of all runs for one ACK.
    ns_per_ack: Option<f64>,
}

pub(crate) fn bench(args: &Args) -> Result<ExitCode> {
    let loaded: Vec<(&'static str, Loaded)> = algorithms()
        .iter()
        .zip(0..)
        .map(|(algorithm, i)| {
            // Not the names that `knee kernel load` gives: those may be in use.
            let name = format!("kb{}_{i}", process::id());
            let loaded = knee_kernel::load(&Params::defaults(*algorithm), &name);
            Ok((algorithm.name(), loaded.map_err(report)?))
        })
        .collect::<Result<_>>()?;
    let mut contenders: Vec<(String, &str)> =
        NATIVE.iter().map(|name| (format!("kernel:{name}"), *name)).collect();
    contenders.extend(loaded.iter().map(|(of, loaded)| ((*of).to_owned(), loaded.name())));

    let progress = output::Progress::new("measuring");
    let mut rounds: Vec<Vec<Transfer>> = Vec::new();
    for round in 0..args.rounds {
        progress.at(round as f64, args.rounds);
        let turn = contenders.iter().map(|(_, cc)| transfer(cc, args.length));
        rounds.push(turn.collect::<Result<_>>()?);
    }
    let over = |of: &dyn Fn(&[Transfer]) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(|turn| of(turn)).collect();
        values.sort_by(f64::total_cmp);
        knee_results::metrics::percentile(&values, 0.5).unwrap_or(f64::NAN)
    };
    let mut costs = Vec::new();
    for (i, (name, cc)) in contenders.iter().enumerate() {
        let counted = match i.checked_sub(NATIVE.len()) {
            None => None,
            Some(_) => Some(counted(cc, args.length)?),
        };
        costs.push(Cost {
            name: name.clone(),
            rate_gbit_per_s: over(&|t| t[i].gbit_per_s),
            rate_ratio: over(&|t| t[i].gbit_per_s / t[0].gbit_per_s),
            cpu_s_per_gbyte: over(&|t| t[i].cpu_s_per_gbyte),
            cpu_ratio: over(&|t| t[i].cpu_s_per_gbyte / t[0].cpu_s_per_gbyte),
            ns_per_call: counted
                .as_ref()
                .map(|v| ns_per(v, v.callbacks.iter().map(|c| c.calls).sum())),
            ns_per_ack: counted.as_ref().map(|v| {
                let profile = v.params.as_ref().map(|p| p.algorithm().profile());
                let every_ack = profile.map(|profile| Call::of_every_ack(profile).name());
                let of_acks = v.callbacks.iter().filter(|c| Some(c.name.as_str()) == every_ack);
                ns_per(v, of_acks.map(|c| c.calls).sum())
            }),
        });
    }
    output::show(args.format, &costs, || table(args, &costs))
}

fn ns_per(variant: &Variant, count: u64) -> f64 {
    variant.callbacks.iter().map(|c| c.time_ns).sum::<u64>() as f64 / count.max(1) as f64
}

fn table(args: &Args, costs: &[Cost]) -> String {
    let mut table = Table::new(
        format!(
            "Bulk transfers of {:.1} s over loopback, medians of {} rounds; ratios to kernel:reno \
             within each round",
            args.length.as_secs_f64(),
            args.rounds
        ),
        &["algorithm"],
        &["Gbit/s", "ratio", "CPU s per GB", "ratio", "ns per call", "ns per ACK"],
    );
    let ns = |ns: Option<f64>| ns.map_or("–".to_owned(), |ns| format!("{ns:.0}"));
    for c in costs {
        table.row([
            c.name.clone(),
            format!("{:.2}", c.rate_gbit_per_s),
            format!("{:.3}", c.rate_ratio),
            format!("{:.3}", c.cpu_s_per_gbyte),
            format!("{:.3}", c.cpu_ratio),
            ns(c.ns_per_call),
            ns(c.ns_per_ack),
        ]);
    }
    table.to_text(output::width())
}

/// A transfer while the kernel counts the runs of `cc`'s programs.
fn counted(cc: &str, length: Duration) -> Result<Variant> {
    let variants = thread::scope(|s| {
        let transfer = s.spawn(|| transfer(cc, length));
        let variants = knee_kernel::measure(length).map_err(report);
        let ended = transfer.join().map_err(|_| miette!("a transfer panicked"))?;
        ended.and(variants)
    })?;
    variants.into_iter().find(|v| v.name == cc).ok_or_else(|| miette!("`{cc}` was unloaded"))
}

fn cpu_time() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).into_diagnostic()?;
    let of =
        |t: nix::sys::time::TimeVal| Duration::new(t.tv_sec() as u64, t.tv_usec() as u32 * 1000);
    Ok(of(usage.user_time()) + of(usage.system_time()))
}

/// Sends for `length` over a loopback connection that `cc` controls.
fn transfer(cc: &str, length: Duration) -> Result<Transfer> {
    let io = |e: std::io::Error| miette!("a transfer over loopback failed: {e}");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(io)?;
    let address = listener.local_addr().map_err(io)?;
    thread::scope(|s| {
        let receiver = s.spawn(move || -> std::io::Result<u64> {
            let (mut stream, _) = listener.accept()?;
            stream.set_read_timeout(Some(STUCK))?;
            let (mut bytes, mut room) = (0, vec![0; CHUNK_BYTES]);
            loop {
                match stream.read(&mut room) {
                    Ok(0) => return Ok(bytes),
                    Ok(read) => bytes += read as u64,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        });
        let mut stream = TcpStream::connect(address).map_err(io)?;
        stream.set_write_timeout(Some(STUCK)).map_err(io)?;
        TcpCongestion
            .set(&stream, &OsString::from(cc))
            .into_diagnostic()
            .wrap_err_with(|| format!("`{cc}` cannot be used"))?;
        let chunk = vec![0; CHUNK_BYTES];
        let (start, cpu) = (Instant::now(), cpu_time()?);
        while start.elapsed() < length {
            stream.write_all(&chunk).map_err(io)?;
        }
        drop(stream);
        let received = receiver.join().map_err(|_| miette!("a receiver panicked"))?;
        let bytes = received.map_err(io)? as f64;
        let (took, cpu) = (start.elapsed().as_secs_f64(), cpu_time()? - cpu);
        Ok(Transfer {
            gbit_per_s: bytes * 8.0 / took / 1e9,
            cpu_s_per_gbyte: cpu.as_secs_f64() / (bytes / 1e9),
        })
    })
}
