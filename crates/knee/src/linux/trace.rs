//! `knee trace`.

use super::duration::time;
use crate::{hosts::report, output};
use knee_kernel::{Filter, SocketId, Tracer};
use knee_results::{
    store::ResultWriter,
    trace::{TraceFlow, TraceRow, TraceWriter},
};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag,
};
use std::{
    collections::HashMap,
    io::{self, ErrorKind, Write},
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

const EXAMPLES: &str = "\
Examples:
  knee trace --duration 10s --out calls.parquet
  knee trace knee_chd --port 5201 > calls.csv
  knee replay calls.parquet
Needs root. Columns: docs/reference/results.md, `trace.parquet`; more in docs/how-to/trace-and-replay.md.";

#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Variants, as `knee kernel list` names them [default: all]
    names: Vec<String>,
    /// Only connections with this port at either end
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Only connections with this address at either end
    #[arg(long, value_name = "IP")]
    address: Option<IpAddr>,
    /// Stop after this time; without it, Ctrl-C stops
    #[arg(long, value_name = "TIME", value_parser = time)]
    duration: Option<Duration>,
    /// New file, .parquet or .csv; without it, CSV goes to standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Memory for calls not written yet, MiB; more memory drops fewer calls
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    ring: u32,
}

/// Longest time between two checks whether to end.
const LOOK: Duration = Duration::from_millis(100);

/// Names the connections as they appear.
#[derive(Default)]
struct Flows {
    lives: HashMap<(SocketAddr, SocketAddr), u32>,
    names: HashMap<SocketId, String>,
    flows: HashMap<(SocketId, String), TraceFlow>,
}

impl Flows {
    fn of(&mut self, call: &knee_kernel::TracedCall<'_>) -> TraceFlow {
        let socket = call.socket;
        let name = self.names.entry(socket).or_insert_with(|| {
            let life = self.lives.entry((socket.local, socket.remote)).or_default();
            *life += 1;
            format!("{}->{}#{life}", socket.local, socket.remote)
        });
        let variant = call.variant;
        let flow = self.flows.entry((socket, variant.name.clone())).or_insert_with(|| {
            let params = &variant.params;
            TraceFlow::new(1, name, params.algorithm().name(), Some(params))
        });
        flow.clone()
    }
}

pub(crate) fn trace(args: &Args) -> Result<ExitCode> {
    let ending = args.out.as_ref().map(|out| out.extension().and_then(|e| e.to_str()));
    let parquet = match ending {
        None | Some(Some("csv")) => false,
        Some(Some("parquet")) => true,
        _ => {
            let help = "choose a name that ends in .parquet or .csv";
            return Err(miette!(help = help, "cannot tell the file type from --out"));
        }
    };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let registered = flag::register(signal, stop.clone());
        registered.into_diagnostic().wrap_err("cannot listen for signals")?;
    }
    // Refused now rather than after the work.
    let file = args.out.as_deref().map(ResultWriter::create).transpose()?;
    let filter = Filter { port: args.port, address: args.address };
    let mut tracer = Tracer::start(&args.names, filter, args.ring << 20).map_err(report)?;
    let names: Vec<&str> = tracer.variants().iter().map(|v| v.name.as_str()).collect();
    let until = if args.duration.is_some() { "" } else { "; Ctrl-C ends it" };
    output::tell(&format!("tracing {}{until}", names.join(", ")));

    let mut told = String::new();
    match file {
        None => {
            let written = TraceWriter::csv(io::stdout())
                .and_then(|writer| record(args, &mut tracer, &stop, writer, &mut told));
            match written {
                // A reader that has gone away has seen enough.
                Err(e) if e.kind() == ErrorKind::BrokenPipe => {}
                written => {
                    written.into_diagnostic().wrap_err("the trace is not complete")?;
                }
            }
        }
        Some(file) => {
            file.write("trace", |out| match parquet {
                true => record(args, &mut tracer, &stop, TraceWriter::parquet(out)?, &mut told),
                false => record(args, &mut tracer, &stop, TraceWriter::csv(out)?, &mut told),
            })?;
            file.finish_file("trace")?;
        }
    }
    output::tell(&told);
    Ok(ExitCode::SUCCESS)
}

/// Writes calls until it is time to end.
fn record<W: Write + Send>(
    args: &Args,
    tracer: &mut Tracer,
    stop: &AtomicBool,
    mut to: TraceWriter<W>,
    told: &mut String,
) -> io::Result<()> {
    let start = Instant::now();
    let mut flows = Flows::default();
    let mut calls = 0;
    let mut ended = false;
    loop {
        let left = args.duration.map_or(LOOK, |d| d.saturating_sub(start.elapsed()).min(LOOK));
        let mut written = Ok(());
        let got = tracer.poll(left, |call| {
            if written.is_ok() {
                let row =
                    TraceRow { flow: flows.of(&call), dropped: call.dropped, call: call.call };
                written = to.push(row);
            }
        });
        calls += got.map_err(io::Error::other)?;
        written?;
        to.flush()?;
        if ended {
            break;
        }
        if stop.load(Ordering::Relaxed) || args.duration.is_some_and(|d| start.elapsed() >= d) {
            // Once more for the rows in the ring.
            tracer.stop().map_err(io::Error::other)?;
            ended = true;
        }
    }
    let dropped = tracer.dropped().map_err(io::Error::other)?;
    *told = format!("{calls} calls of {} sockets, {dropped} dropped", flows.names.len());
    if dropped > 0 {
        *told +=
            "; to drop fewer, filter with --port or --address, or give more memory with --ring";
    }
    to.finish()
}
