//! The hosts that this program was built with, and the options that name them.

use crate::{JOBS, integer, registry::HOSTS};
use clap::{
    Arg, Command,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use knee_model::{Host, HostError, RunOptions};
use miette::{MietteDiagnostic, Report, Result};
use std::{ffi::OsStr, ops::Deref};

/// A host that this program was built with.
#[derive(Clone, Copy)]
pub(crate) struct AnyHost(&'static dyn Host);

impl AnyHost {
    /// The hosts that this program was built with.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        HOSTS.iter().filter_map(|entry| entry.host.map(Self))
    }
}

/// The simulator.
impl Default for AnyHost {
    fn default() -> Self {
        Self(&knee_sim::Simulator)
    }
}

impl Deref for AnyHost {
    type Target = dyn Host;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl PartialEq for AnyHost {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

/// The option of commands that run on one host.
#[derive(clap::Args)]
pub(crate) struct OneHost {
    /// The host that runs it
    #[arg(long, default_value = HOSTS[0].name, value_parser = Named)]
    pub(crate) host: AnyHost,
    #[command(flatten)]
    pub(crate) jobs: Jobs,
}

/// Options of all runs.
#[derive(clap::Args, Clone)]
pub(crate) struct Jobs {
    /// Number of runs at once; default: one per core; real-time hosts: one
    #[arg(long = "jobs", value_name = "N", value_parser = integer::<usize>(JOBS), allow_hyphen_values = true)]
    pub(crate) asked: Option<usize>,
    /// Kernel of --host vm or linux: debian:6.12 or the like (`knee vm kernels` and `knee linux list` list them);
    /// for vm also a bzImage as PATH or PATH,MODULES, for linux the path of a built source tree; default: the newest; of
    /// linux debian:6.12
    #[cfg(feature = "vm")]
    #[arg(long, value_name = "KERNEL")]
    kernel: Option<knee_vm::KernelChoice>,
}

impl Jobs {
    /// Options of runs on `hosts`, with nothing special.
    pub(crate) fn options(&self, hosts: &[AnyHost]) -> Result<RunOptions> {
        #[cfg(feature = "vm")]
        if self.kernel.is_some() && !hosts.iter().any(|host| host.has_kernels()) {
            let names: Vec<&str> = hosts.iter().map(|host| host.name()).collect();
            let names = names.join(", ");
            let help = "add --host vm or linux, or leave out --kernel";
            return Err(miette::miette!(help = help, "--kernel has no meaning on --host {names}"));
        }
        let _ = hosts;
        Ok(RunOptions {
            runs_at_once: self.asked,
            #[cfg(feature = "vm")]
            kernel: self.kernel.as_ref().map(ToString::to_string),
            ..RunOptions::default()
        })
    }
}

impl OneHost {
    /// Options of runs without further requirements.
    pub(crate) fn options(&self) -> Result<RunOptions> {
        self.jobs.options(&[self.host])
    }
}

/// Reads the name of a host; shells complete it.
#[derive(Clone)]
pub(crate) struct Named;

impl TypedValueParser for Named {
    type Value = AnyHost;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<AnyHost, clap::Error> {
        let missing = HOSTS.iter().find(|entry| entry.name == value && entry.host.is_none());
        if let Some(entry) = missing {
            let refuse = |_: &str| Err::<AnyHost, _>(entry.missing());
            return refuse.parse_ref(command, argument, value);
        }
        let names = PossibleValuesParser::new(HOSTS.iter().map(|entry| entry.name));
        let name = names.parse_ref(command, argument, value)?;
        let found = AnyHost::all().find(|host| host.name() == name);
        found.ok_or_else(|| clap::Error::new(clap::error::ErrorKind::InvalidValue))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(
            AnyHost::all().map(|host| PossibleValue::new(host.name()).help(host.about())),
        ))
    }
}

/// A host's error for people.
pub(crate) fn report(error: HostError) -> Report {
    let mut told = MietteDiagnostic::new(error.why);
    told.help = error.help;
    told.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_lab::reproduce::{PAPERS, load};

    /// A name that is written wrong would be no record at all.
    #[test]
    fn records_of_papers_are_of_hosts_that_there_are() {
        for id in PAPERS {
            let (paper, claims) = load(id).unwrap_or_else(|e| panic!("{id}: {e}"));
            let of_figures = paper.figures.iter().flat_map(|f| f.not_on.keys());
            for name in claims.iter().flat_map(|c| c.found.keys()).chain(of_figures) {
                assert!(HOSTS.iter().skip(1).any(|entry| entry.name == name), "{id}: {name}");
            }
        }
    }
}
