//! Subcommands that need the Linux kernel.

mod duration;
mod kernel;
mod testbed;
mod trace;
#[cfg(feature = "vm")]
mod vm;

use clap::Subcommand;
use miette::Result;
use std::process::ExitCode;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Record every call of the loaded algorithms while sockets use them
    Trace(trace::Args),
    /// Load algorithms into the running Linux kernel, for any program to use
    Kernel(kernel::Args),
    /// Give any program the emulated path of a scenario: two ends and the path between them
    Testbed(testbed::Args),
    /// Linux kernels for --host vm: real TCP in a virtual machine, in virtual time
    #[cfg(feature = "vm")]
    Vm(vm::Args),
}

pub(crate) fn linux(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Trace(args) => trace::trace(args),
        Command::Kernel(args) => kernel::kernel(args),
        Command::Testbed(args) => testbed::testbed(args),
        #[cfg(feature = "vm")]
        Command::Vm(args) => vm::vm(args),
    }
}
