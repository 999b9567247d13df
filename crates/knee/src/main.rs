//! The command line of Knee.

mod bench;
#[cfg(any(feature = "kernel", feature = "quic"))]
mod compare;
mod duel;
mod interrupt;
#[cfg(feature = "kernel")]
mod kernel;
mod list;
mod matrix;
mod output;
#[cfg(feature = "kernel")]
mod real_time;
mod replay;
mod reproduce;
mod run;
#[cfg(feature = "kernel")]
mod testbed;
#[cfg(feature = "kernel")]
mod trace;

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use knee_lab::reproduce::HostKind;
use std::{ops::RangeInclusive, process::ExitCode};

/// Delay-based TCP congestion control: simulate, reproduce, measure.
#[derive(Parser)]
#[command(name = "knee", version, max_term_width = 100, after_long_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  knee reproduce chd
      every figure and claim of the CHD paper, with a report to open in a browser
  knee run scenarios/chd/coexistence.toml --set flow.0.params.qth=20ms
      one scenario, with one value changed
  knee run scenarios/chd/single-flow.toml --set path.loss_forward=0.01 --out results
      keep all measurements as JSON and Parquet, and a report, in a new folder
  knee duel chd newreno
      who gets what, and who harms whom
  knee list
      the algorithms and their parameters";

#[derive(Subcommand)]
enum Command {
    /// List the algorithms with their parameters, units, ranges, defaults and sources
    List(list::Args),
    /// Run a scenario and show what was measured
    Run(run::Args),
    /// Reproduce a paper: its figures, and a verdict for each of its claims
    ///
    /// Exit code 0: every claim holds, or is recorded in the repository as not holding with its
    /// reason. 1: reality differs from that record, in either direction. 2: an error. 3: nothing
    /// differs, but some claims could not be judged, as runs failed (a machine too slow for real time).
    Reproduce(reproduce::Args),
    /// Run a scenario on two or three hosts, and show where they differ
    ///
    /// The kernel needs root.
    #[cfg(any(feature = "kernel", feature = "quic"))]
    Compare(compare::Args),
    /// Let two algorithms share a path: share, harm, delay, loss, fairness, convergence
    ///
    /// Each beside its own kind, and one beside the other with either one first.
    Duel(duel::Args),
    /// Let every algorithm meet every other: the measures of `duel` as heat maps in a report
    Matrix(matrix::Args),
    /// Measure the speed of the simulator
    Bench(bench::Args),
    /// Make every call of a trace again, natively: the same must come out, bit for bit
    ///
    /// Exit code 0: it does. 1: something else came out. 2: an error.
    Replay(replay::Args),
    /// Record every call of the loaded algorithms, as sockets make them
    #[cfg(feature = "kernel")]
    Trace(trace::Args),
    /// Load algorithms into the running Linux kernel, for any program to use
    #[cfg(feature = "kernel")]
    Kernel(kernel::Args),
    /// The emulated path of a scenario for any program: two hosts, and the path between them
    #[cfg(feature = "kernel")]
    Testbed(testbed::Args),
    /// Print a completion script for a shell
    ///
    /// For bash:
    ///   knee completions bash > ~/.local/share/bash-completion/completions/knee
    /// For zsh, with ~/.zfunc in fpath:
    ///   knee completions zsh > ~/.zfunc/_knee
    /// For fish:
    ///   knee completions fish > ~/.config/fish/completions/knee.fish
    #[command(verbatim_doc_comment)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// How results are printed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables for people
    Table,
    /// JSON for programs
    Json,
}

/// What runs a scenario.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Host {
    /// The simulator
    Sim,
    /// This machine's Linux kernel: real TCP over an emulated path, in real time; needs root
    #[cfg(feature = "kernel")]
    Kernel,
    /// QUIC: each TCP flow becomes a connection of quinn, in virtual time
    #[cfg(feature = "quic")]
    Quic,
}

impl Host {
    fn kind(self) -> HostKind {
        match self {
            Self::Sim => HostKind::Simulator,
            #[cfg(feature = "kernel")]
            Self::Kernel => HostKind::Kernel,
            #[cfg(feature = "quic")]
            Self::Quic => HostKind::Quic,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            #[cfg(feature = "kernel")]
            Self::Kernel => "kernel",
            #[cfg(feature = "quic")]
            Self::Quic => "quic",
        }
    }

    /// Whether its runs take their time whatever the number of cores.
    #[cfg(any(feature = "kernel", feature = "quic"))]
    fn is_real_time(self) -> bool {
        self.kind() == HostKind::Kernel
    }

    /// Runs `spec`, one of those that are run at once, of which there are as many as `asked` for.
    #[cfg_attr(not(feature = "kernel"), allow(unused_variables))]
    fn run(
        self,
        spec: &knee_run::RunSpec,
        asked: Option<usize>,
    ) -> Result<knee_run::RunRecord, String> {
        match self {
            Self::Sim => knee_sim::run(spec).map_err(|e| e.to_string()),
            #[cfg(feature = "kernel")]
            Self::Kernel => {
                // Whoever gives a number knows what this machine bears.
                let _carried = asked.is_none().then(|| real_time::Carried::wait(spec));
                real_time::run(spec, None)
            }
            #[cfg(feature = "quic")]
            Self::Quic => knee_quic_run::run(spec).map_err(|e| e.to_string()),
        }
    }

    /// What a record depends on beside the spec; none if it is not worth keeping.
    #[cfg_attr(not(feature = "kernel"), allow(unused_variables))]
    fn identity(self, spec: &knee_run::RunSpec) -> Option<String> {
        match self {
            Self::Sim => None,
            #[cfg(feature = "kernel")]
            Self::Kernel => Some(real_time::identity(spec)),
            #[cfg(feature = "quic")]
            Self::Quic => None,
        }
    }

    /// How many runs to begin at once unless `asked` for a number; 0: one per core.
    fn jobs(self, asked: Option<usize>) -> usize {
        match self {
            Self::Sim => asked.unwrap_or(0),
            #[cfg(feature = "quic")]
            Self::Quic => asked.unwrap_or(0),
            // Runs wait for their time to pass rather than for a core.
            #[cfg(feature = "kernel")]
            Self::Kernel => asked.unwrap_or(real_time::AT_ONCE),
        }
    }

    /// What a run is doing, for progress.
    fn doing(self) -> &'static str {
        match self {
            Self::Sim => "simulating",
            #[cfg(feature = "kernel")]
            Self::Kernel => "running",
            #[cfg(feature = "quic")]
            Self::Quic => "running over QUIC",
        }
    }
}

/// Reads an integer argument.
fn integer<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let within = text.parse().ok().filter(|n| range.contains(n));
        within
            .and_then(|n| T::try_from(n).ok())
            .ok_or_else(|| format!("write an integer from {} to {}", range.start(), range.end()))
    }
}

/// Values of `--repeat`.
const REPEAT: RangeInclusive<u64> = 1..=10_000;
/// Values of `--jobs`.
const JOBS: RangeInclusive<u64> = 1..=1024;

/// Commit that this was built from.
const COMMIT: Option<&str> = option_env!("KNEE_COMMIT");

/// What made a report.
fn made_by(host: &str) -> Vec<(String, String)> {
    let fact = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    vec![
        fact("Host", host),
        fact("Knee", env!("CARGO_PKG_VERSION")),
        fact("Commit", COMMIT.unwrap_or("unknown")),
    ]
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::List(args) => list::list(&args),
        Command::Run(args) => run::run(&args),
        Command::Reproduce(args) => reproduce::reproduce(&args),
        #[cfg(any(feature = "kernel", feature = "quic"))]
        Command::Compare(args) => compare::compare_hosts(&args),
        Command::Duel(args) => duel::duel(&args),
        Command::Matrix(args) => matrix::matrix(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Replay(args) => replay::replay(&args),
        #[cfg(feature = "kernel")]
        Command::Trace(args) => trace::trace(&args),
        #[cfg(feature = "kernel")]
        Command::Kernel(args) => kernel::kernel(&args),
        #[cfg(feature = "kernel")]
        Command::Testbed(args) => testbed::testbed(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "knee", &mut script);
            output::print(&String::from_utf8_lossy(&script))
        }
    };
    result.unwrap_or_else(|error| {
        output::tell(&format!("{error:?}"));
        ExitCode::from(2)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
