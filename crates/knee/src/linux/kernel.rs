//! `knee kernel`.

mod bench;

use super::duration::time;
use crate::{Format, hosts::report, output};
use clap::Subcommand;
use knee_cc::{Params, algorithm};
use knee_kernel::{Report, State, Variant};
use knee_lab::duel::Entrant;
use knee_model::Cc;
use knee_report::table::Table;
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use serde_json::{Value, json};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};
use std::{path::PathBuf, process::ExitCode, time::Duration};

#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

const EXAMPLES: &str = "\
Examples:
  knee kernel check
  knee kernel load chd
  knee kernel load chd --set qth=20ms --as chd20
  iperf3 -c HOST -C knee_chd
  knee kernel list --measure 5s
  knee kernel unload knee_chd
All but check and export need root. More in docs/how-to/deploy-on-a-server.md.";

#[derive(Subcommand)]
enum What {
    /// Show what this kernel supports, and how to fix what is missing
    ///
    /// Exit code 0: algorithms can be loaded. 1: they cannot.
    Check {
        /// Output format
        #[arg(long, value_enum, default_value = "table")]
        format: Format,
    },
    /// Load an algorithm: every program of this machine may then use it by its name
    ///
    /// It stays until it is unloaded or the machine restarts.
    Load {
        #[command(flatten)]
        variant: VariantArgs,
        /// Keep it only while this command runs (Ctrl-C ends both)
        #[arg(long)]
        hold: bool,
    },
    /// Unload an algorithm; open connections keep it until they close
    Unload {
        /// The name it was loaded as
        name: String,
    },
    /// The loaded variants: parameters, sockets that use them, calls and their time
    List {
        /// Let the kernel count calls and their time for this long; without it, show the counts
        /// of the time when another program enabled counting
        #[arg(long, value_name = "TIME", value_parser = time)]
        measure: Option<Duration>,
        /// Output format
        #[arg(long, value_enum, default_value = "table")]
        format: Format,
    },
    /// Make a variant held by another process (load --hold) outlive that process
    Persist {
        /// The name it was loaded as
        name: String,
    },
    /// Reverse `persist`: the variant ends as soon as no process holds it
    Unpersist {
        /// The name it was loaded as
        name: String,
    },
    /// Measure the CPU time of the algorithms in this kernel, compared with the kernel's Reno and CUBIC
    Bench(bench::Args),
    /// Write an object file for machines without Knee
    ///
    /// Load it there with: bpftool struct_ops register FILE /sys/fs/bpf/DIR
    Export {
        #[command(flatten)]
        variant: VariantArgs,
        /// New file, such as chd.bpf.o
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// For kernels like Linux 7.2, which have a callback of its own for TX_START: without this
        /// option the file loads on any kernel but misses that event there
        #[arg(long)]
        tx_start: bool,
    },
}

#[derive(clap::Args)]
struct VariantArgs {
    /// The algorithm, one of `knee list`, or a C file (./mine.c)
    algorithm: String,
    /// A parameter and its value, as in qth=20ms; may be repeated
    #[arg(long, value_name = "PARAM=VALUE")]
    set: Vec<String>,
    /// Name for sockets, at most 15 of a-z, 0-9 and _ [default: knee_ and the algorithm]
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
}

impl VariantArgs {
    fn params(&self) -> Result<Params> {
        let parts = [&self.algorithm].into_iter().chain(&self.set);
        let written = parts.map(String::as_str).collect::<Vec<_>>().join(":");
        match Entrant::parse(&written).map_err(|e| miette!("{e}"))?.cc {
            Cc::Knee(params) => Ok(params),
            Cc::Kernel(name) => {
                let help = "set it as `sysctl net.ipv4.tcp_congestion_control` does";
                Err(miette!(help = help, "`{name}` is the kernel's own: there is nothing to load"))
            }
        }
    }

    fn name(&self, params: &Params) -> String {
        self.name.clone().unwrap_or_else(|| knee_kernel::default_name(params.algorithm()))
    }
}

pub(crate) fn kernel(args: &Args) -> Result<ExitCode> {
    match &args.what {
        What::Check { format } => check(*format),
        What::Load { variant, hold } => load(variant, *hold),
        What::Unload { name } => {
            knee_kernel::unload(name).map_err(report)?;
            output::print(&format!("unloaded {name}\n"))
        }
        What::List { measure, format } => {
            let variants = match measure {
                Some(time) => knee_kernel::measure(*time),
                None => knee_kernel::list(),
            };
            let variants = variants.map_err(report)?;
            output::show(*format, &as_json(&variants), || as_text(&variants, measure.is_some()))
        }
        What::Persist { name } => {
            let pinned = knee_kernel::persist(name).map_err(report)?;
            say_mounted(&pinned);
            output::print(&format!("{name} stays until `knee kernel unload {name}` or a restart\n"))
        }
        What::Unpersist { name } => {
            knee_kernel::unpersist(name).map_err(report)?;
            output::print(&format!("{name} ends with the process that holds it, if there is one\n"))
        }
        What::Bench(args) => bench::bench(args),
        What::Export { variant, out, tx_start } => {
            let params = variant.params()?;
            let name = variant.name(&params);
            knee_kernel::export(&params, &name, out, *tx_start).map_err(report)?;
            let file = out.display();
            output::print(&format!(
                "{file}: load it with `bpftool struct_ops register {file} /sys/fs/bpf/{name}`, \
                 then use it as {name}\n"
            ))
        }
    }
}

fn say_mounted(pinned: &knee_kernel::Pinned) {
    if pinned.mounted {
        eprintln!("mounted a BPF file system on /sys/fs/bpf");
    }
}

fn load(args: &VariantArgs, hold: bool) -> Result<ExitCode> {
    let params = args.params()?;
    let name = args.name(&params);
    // Before anything is registered, so that no signal is missed.
    let signals = hold.then(|| Signals::new([SIGINT, SIGTERM, SIGHUP])).transpose();
    let signals = signals.into_diagnostic().wrap_err("cannot listen for signals")?;
    let loaded = knee_kernel::load(&params, &name).map_err(report)?;
    if let Some(mut signals) = signals {
        output::print(&format!("loaded {name}; it ends with this command: press Ctrl-C\n"))?;
        signals.forever().next();
        drop(loaded);
        // Who may load need not be permitted to list.
        let stays = knee_kernel::list()
            .is_ok_and(|variants| variants.iter().any(|v| v.name == name && v.registered));
        return output::print(&match stays {
            false => format!("unloaded {name}\n"),
            true => format!("{name} stays loaded; remove it with `knee kernel unload {name}`\n"),
        });
    }
    say_mounted(&loaded.persist().map_err(report)?);
    output::print(&format!(
        "loaded {name}\n  one program:  iperf3 -c HOST -C {name}\n  the default:  sysctl \
         net.ipv4.tcp_congestion_control={name}\n  remove it:    knee kernel unload {name}\n"
    ))
}

fn check(format: Format) -> Result<ExitCode> {
    let report = knee_kernel::check();
    output::show(format, &report_json(&report), || report.to_string())?;
    Ok(if report.can_load() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn report_json(report: &Report) -> Value {
    let state = |state| match state {
        State::Good => "ok",
        State::Note => "note",
        State::Missing => "missing",
    };
    let findings = report.findings.iter().map(|f| {
        json!({ "what": f.what, "state": state(f.state), "found": f.found, "remedy": f.remedy })
    });
    json!({ "can_load": report.can_load(), "findings": findings.collect::<Vec<_>>() })
}

/// Parameters that are not the algorithm's defaults, as they would be typed.
fn changed(variant: &Variant) -> String {
    let Some(params) = &variant.params else {
        return "from a C file, or another version of Knee".to_owned();
    };
    let defaults =
        algorithm(&variant.algorithm).map_or_else(Vec::new, |a| Params::defaults(a).shown());
    let shown = params.shown().into_iter().filter(|p| !defaults.contains(p));
    let shown: Vec<_> = shown.map(|(name, value)| format!("{name}={value}")).collect();
    if shown.is_empty() { "defaults".to_owned() } else { shown.join(" ") }
}

fn as_json(variants: &[Variant]) -> Value {
    let one = |v: &Variant| {
        let callbacks = v.callbacks.iter().map(|c| {
            json!({
                "name": c.name,
                "calls": c.calls,
                "time_ns": c.time_ns,
                "ns_per_call": c.ns_per_call(),
            })
        });
        let params = v.params.as_ref().map(|p| p.shown().into_iter().collect::<Value>());
        json!({
            "name": v.name,
            "algorithm": v.algorithm,
            "params": params,
            "registered": v.registered,
            "pin": v.pin,
            "sockets": v.sockets,
            "callbacks": callbacks.collect::<Vec<_>>(),
        })
    };
    json!({ "variants": variants.iter().map(one).collect::<Vec<_>>() })
}

/// `counted`: calls were counted.
fn as_text(variants: &[Variant], counted: bool) -> String {
    if variants.is_empty() {
        return "nothing is loaded; `knee kernel load chd` loads CHD\n".to_owned();
    }
    let mut table = Table::new(
        "Loaded variants",
        &["name", "algorithm", "parameters", "stays"],
        &["sockets", "calls", "ns per call"],
    );
    for v in variants {
        let stays = match (v.registered, v.outlives_its_process()) {
            (false, _) => "unloaded, until its sockets close",
            (true, true) => "until unloaded",
            (true, false) => "while its process runs",
        };
        let calls: u64 = v.callbacks.iter().map(|c| c.calls).sum();
        let time_ns: u64 = v.callbacks.iter().map(|c| c.time_ns).sum();
        let (calls, ns) = match calls {
            0 if !counted => ("-".to_owned(), "-".to_owned()),
            0 => ("0".to_owned(), "-".to_owned()),
            n => (n.to_string(), format!("{:.0}", time_ns as f64 / n as f64)),
        };
        table.row([
            v.name.clone(),
            v.algorithm.clone(),
            changed(v),
            stays.to_owned(),
            v.sockets.to_string(),
            calls,
            ns,
        ]);
    }
    let mut text = table.to_text(output::width());
    if !counted && variants.iter().all(|v| v.callbacks.iter().all(|c| c.calls == 0)) {
        text += "\nThe kernel counts calls only on request: --measure 5s\n";
    }
    text
}
