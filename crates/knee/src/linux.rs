//! Subcommands that need the Linux kernel.

mod kernel;
mod testbed;
mod trace;

use clap::Subcommand;
use miette::Result;
use std::process::ExitCode;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Record every call of the loaded algorithms while sockets use them
    Trace(trace::Args),
    /// Load algorithms into the running Linux kernel, for any program to use
    Kernel(kernel::Args),
    /// Give any program the emulated path of a scenario: two hosts and the path between them
    Testbed(testbed::Args),
}

pub(crate) fn linux(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Trace(args) => trace::trace(args),
        Command::Kernel(args) => kernel::kernel(args),
        Command::Testbed(args) => testbed::testbed(args),
    }
}
