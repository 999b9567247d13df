//! `knee vm`.

mod matrix;

use crate::{Format, hosts, output};
use clap::Subcommand;
use knee_report::table::Table;
use knee_vm::{
    KernelChoice, Series,
    kernels::{Listed, fetch, list},
};
use miette::{Result, miette};
use serde_json::json;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// List the kernels that Debian's package lists offer and those that are in the cache
    Kernels {
        /// Output format
        #[arg(long, value_enum, default_value = "table")]
        format: Format,
    },
    /// Get a kernel through apt into the cache; nothing is installed
    Fetch {
        /// The kernel, such as debian:6.12
        kernel: KernelChoice,
    },
    /// Try every algorithm on each kernel: it loads, carries bytes, and its trace replays
    ///
    /// Exit code 0: all pass. 1: some do not.
    Matrix(matrix::Args),
    /// Process 1 of a virtual machine
    #[command(hide = true)]
    Guest,
}

pub(crate) fn vm(args: &Args) -> Result<ExitCode> {
    match &args.what {
        What::Kernels { format } => kernels(*format),
        What::Fetch { kernel: KernelChoice::Debian(series) } => fetched(*series),
        What::Fetch { kernel } => {
            let help = "--kernel takes it as it is";
            Err(miette!(help = help, "{kernel}: only Debian's kernels are fetched"))
        }
        What::Matrix(args) => matrix::matrix(args),
        What::Guest => {
            knee_vm::guest::main().map_err(|e| miette!("{e}"))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn kernels(format: Format) -> Result<ExitCode> {
    let listed = list().map_err(hosts::report)?;
    if format == Format::Json {
        let one = |l: &Listed| {
            json!({
                "kernel": format!("debian:{}", l.series),
                "offered": l.offered.as_ref().map(|package| &package.name),
                "cached": l.cached.as_ref().and_then(|kernel| kernel.package.as_ref()),
            })
        };
        return output::print_json(&listed.iter().map(one).collect::<Vec<_>>());
    }
    if listed.is_empty() {
        let help =
            "on Debian, `apt-get update` gets the lists; elsewhere give a bzImage with --kernel";
        return Err(miette!(
            help = help,
            "no package lists offer kernels, and none is in the cache"
        ));
    }
    let mut table = Table::new("Kernels", &["kernel", "newest package", "in the cache"], &[]);
    for Listed { series, offered, cached } in &listed {
        let offered = offered.as_ref().map(|package| package.name.clone());
        let cached = cached.as_ref().and_then(|kernel| kernel.package.as_ref());
        table.row([
            format!("debian:{series}"),
            offered.unwrap_or_else(|| "not offered".to_owned()),
            cached.map_or_else(|| "no".to_owned(), |package| package.version.clone()),
        ]);
    }
    let more = "`knee vm fetch KERNEL` gets one; `--host vm --kernel KERNEL` runs it.\n";
    output::print(&(table.to_text(output::width()) + more))
}

fn fetched(series: Series) -> Result<ExitCode> {
    let kernel = fetch(series).map_err(hosts::report)?;
    output::print(&format!("{}: {}\n", kernel.choice, kernel.describe()))
}
