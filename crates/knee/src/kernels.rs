//! `knee linux`.

use crate::{Format, hosts, output};
use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use knee_linux::{Kernel, KernelChoice, Listed, Remove, build, clean, limit_bytes, list};
use knee_report::table::Table;
use miette::Result;
use serde_json::json;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Build a kernel from its source and keep it in the cache; nothing is installed
    ///
    /// apt gives the source package. The build takes about 5 minutes on two cores and 3 GB of disk space; the kernel
    /// takes 6 MB.
    Build {
        /// The kernel: debian:6.12 or the like, or the path of a source tree
        #[arg(default_value = "debian:6.12")]
        kernel: KernelChoice,
    },
    /// List the kernels in the cache
    List {
        /// Output format
        #[arg(long, value_enum, default_value = "table")]
        format: Format,
    },
    /// Remove the kernels that other versions of Knee have built, and the oldest beyond a size
    Clean {
        /// Remove every kernel
        #[arg(long)]
        all: bool,
        /// Largest size of the kernels that stay [default: KNEE_LINUX_CACHE, or 8GiB]
        #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "all")]
        max_size: Option<u64>,
    },
}

pub(crate) fn kernels(args: &Args) -> Result<ExitCode> {
    match &args.what {
        What::Build { kernel } => {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
                bar.set_style(style);
            }
            let built = build(kernel, &|what| {
                bar.set_message(what.to_owned());
                bar.tick();
            });
            bar.finish_and_clear();
            let built = built.map_err(hosts::report)?;
            output::print(&format!("{}: {}\n", built.about.choice, describe(&built)))
        }
        What::List { format } => listed(*format),
        What::Clean { all, max_size } => {
            let which = match (all, max_size) {
                (true, _) => Remove::All,
                (false, Some(bytes)) => Remove::Beyond(*bytes),
                (false, None) => Remove::Beyond(limit_bytes().map_err(hosts::report)?),
            };
            let (removed, bytes) = clean(which).map_err(hosts::report)?;
            output::print(&format!("removed {removed} kernels, {:.1} MB\n", bytes as f64 / 1e6))
        }
    }
}

fn size(text: &str) -> Result<u64, String> {
    knee_scenario::units::SIZE.parse(text).map_err(|e| e.to_string())
}

fn describe(kernel: &Kernel) -> String {
    format!("Linux {} from {}", kernel.about.release, kernel.about.package())
}

fn listed(format: Format) -> Result<ExitCode> {
    let listed = list().map_err(hosts::report)?;
    if format == Format::Json {
        let one =
            |l: &Listed| json!({"kernel": l.kernel.about, "current": l.current, "bytes": l.bytes});
        return output::print_json(&listed.iter().map(one).collect::<Vec<_>>());
    }
    if listed.is_empty() {
        return output::print(
            "no kernel is in the cache; `knee linux build debian:6.12` builds one\n",
        );
    }
    let mut table = Table::new("Kernels", &["kernel", "built from", "usable", "size"], &[]);
    for Listed { kernel, current, bytes, .. } in &listed {
        table.row([
            kernel.about.choice.clone(),
            describe(kernel),
            if *current { "yes".to_owned() } else { "no: by another version of Knee".to_owned() },
            format!("{:.1} MB", *bytes as f64 / 1e6),
        ]);
    }
    output::print(&(table.to_text(output::width()) + "`--host linux --kernel KERNEL` runs one.\n"))
}
