//! The command line of Knee, as a library for the program `knee` and for the Python package.

#[cfg(feature = "lab")]
pub mod apart;
mod bench;
mod compare;
mod duel;
mod evaluate;
mod hosts;
mod interrupt;
#[cfg(feature = "linux")]
mod kernels;
#[cfg(feature = "lab")]
mod lab;
#[cfg(feature = "kernel")]
mod linux;
pub mod list;
mod man;
mod matrix;
mod metrics;
mod output;
mod registry;
mod replay;
mod reproduce;
pub mod run;
#[cfg(feature = "sweep")]
mod sweep;
#[cfg(feature = "test")]
mod test;

use clap::{
    CommandFactory, Parser, Subcommand, ValueEnum,
    error::{ContextKind, ContextValue},
};
use std::{ffi::OsString, ops::RangeInclusive, process::ExitCode, sync::OnceLock};

/// Delay-based TCP congestion control: simulate, reproduce, measure.
#[derive(Parser)]
#[command(name = "knee", version, max_term_width = 100, after_long_help = examples())]
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
      who gets how much, and who harms whom
  knee list
      the algorithms and their parameters";

/// The end of `knee --help`.
fn examples() -> String {
    format!("{EXAMPLES}{}", registry::help_on_missing())
}

#[derive(Subcommand)]
enum Command {
    /// List the algorithms with their parameters, units, ranges, defaults and sources
    List(list::Args),
    /// List the metrics: name, subject, unit, meaning, and where each appears
    Metrics(metrics::Args),
    /// Run a scenario and show the measurements
    Run(run::Args),
    /// Reproduce a paper: its figures, and a verdict for each of its claims
    ///
    /// Exit code 0: every verdict is the expected one. 1: a verdict differs from the expected one, in
    /// either direction. 2: an error. 3: no verdict differs, but some claims could not be judged
    /// because their runs failed, and `claims.toml` gives no reason.
    Reproduce(reproduce::Args),
    /// Run a scenario on two or three hosts and show where they differ
    ///
    /// The kernel host needs root.
    Compare(compare::Args),
    /// Run two algorithms on a shared path: share, harm, delay, loss, fairness, convergence
    ///
    /// Each algorithm competes with itself, and with the other one in both orders of start.
    Duel(duel::Args),
    /// Run every algorithm against every other: the metrics of `duel` as heat maps in a report
    Matrix(matrix::Args),
    /// Evaluate an algorithm by the criteria of RFC 9743: one verdict for each
    ///
    /// Exit code 0: no criterion fails. 1: at least one does; with --all --quick: a verdict differs
    /// from the expected one. 2: an error. 3: none fails, but some could not be judged because their runs failed.
    Evaluate(evaluate::Args),
    /// Run a study: a scenario at many points, on all cores or many machines
    #[cfg(feature = "sweep")]
    Sweep(sweep::Args),
    /// Open the lab in a browser: sliders, charts, and runs on the other hosts
    #[cfg(feature = "lab")]
    Lab(lab::Args),
    /// Measure the speed of the simulator
    Bench(bench::Args),
    /// Test an algorithm of your own, in a C file, as the built-in ones are tested
    ///
    /// Parameter table, random event sequences, runs against itself and NewReno, replay of every call,
    /// compilation for the kernel. Exit code 0: it passes. 1: it fails a test. 2: an error.
    #[cfg(feature = "test")]
    Test(test::Args),
    /// Replay every call of a trace natively and compare the results, bit for bit
    ///
    /// Exit code 0: all are identical. 1: at least one differs. 2: an error.
    Replay(replay::Args),
    /// Build and list the kernels of --host linux: real TCP in exact virtual time
    #[cfg(feature = "linux")]
    #[command(name = "linux")]
    Kernels(kernels::Args),
    #[cfg(feature = "kernel")]
    #[command(flatten)]
    Linux(linux::Command),
    /// Make runs for the lab or for the Python package
    #[cfg(feature = "lab")]
    #[command(name = registry::RUN_APART, hide = true)]
    Apart(apart::Args),
    /// Write the manual pages of all subcommands into a folder, for packages
    #[command(hide = true)]
    Man(man::Args),
    /// Print the reference of all commands, or of a scenario's keys, as Markdown, for docs/reference
    #[command(hide = true)]
    Markdown {
        /// A table of the scenario file, such as path.aqm; `top` for the keys outside tables
        table: Option<String>,
    },
    /// Print the JSON Schema of scenario files, with which editors complete and check keys
    ///
    /// Editors with Taplo, such as VS Code with Even Better TOML, take the schema that the first line of
    /// a scenario names: `#:schema scenario.schema.json`.
    Schema,
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

/// Formats of results.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables
    Table,
    /// JSON
    Json,
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
pub const COMMIT: Option<&str> = option_env!("KNEE_COMMIT");

/// Version and host that made a report.
fn made_by(host: &str) -> Vec<(String, String)> {
    let fact = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    vec![
        fact("Host", host),
        fact("Knee", env!("CARGO_PKG_VERSION")),
        fact("Commit", COMMIT.unwrap_or("unknown")),
    ]
}

/// Command that starts this program again.
static ITSELF: OnceLock<Vec<OsString>> = OnceLock::new();

/// The command `knee` with these arguments, the first of which is the program's name. Gives the exit
/// code. `itself`: the program and first arguments that start this command in another process.
pub fn main(itself: Vec<OsString>, arguments: impl IntoIterator<Item = OsString>) -> u8 {
    ITSELF.get_or_init(|| itself);
    let command = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli.command,
        Err(e) => {
            if let Some(ContextValue::String(name)) = e.get(ContextKind::InvalidSubcommand)
                && let Some(missing) = registry::missing_command(name)
            {
                output::tell(&format!("error: {missing}"));
                return 2;
            }
            // Help and the version too come as errors. If nobody reads, there is nobody to tell.
            let _ = e.print();
            return u8::try_from(e.exit_code()).unwrap_or(2);
        }
    };
    let result = match command {
        Command::List(args) => list::list(&args),
        Command::Metrics(args) => metrics::list(&args),
        Command::Run(args) => run::run(&args),
        Command::Reproduce(args) => reproduce::reproduce(&args),
        Command::Compare(args) => compare::compare_hosts(&args),
        Command::Duel(args) => duel::duel(&args),
        Command::Matrix(args) => matrix::matrix(&args),
        Command::Evaluate(args) => evaluate::evaluate(&args),
        #[cfg(feature = "sweep")]
        Command::Sweep(args) => sweep::sweep(&args),
        #[cfg(feature = "lab")]
        Command::Lab(args) => lab::lab(&args),
        Command::Bench(args) => bench::bench(&args),
        #[cfg(feature = "test")]
        Command::Test(args) => test::test(&args),
        Command::Replay(args) => replay::replay(&args),
        #[cfg(feature = "linux")]
        Command::Kernels(args) => kernels::kernels(&args),
        #[cfg(feature = "kernel")]
        Command::Linux(command) => linux::linux(&command),
        #[cfg(feature = "lab")]
        Command::Apart(args) => apart::run(&args),
        Command::Man(args) => man::man(&args),
        Command::Markdown { table: None } => man::markdown(),
        Command::Markdown { table: Some(table) } => man::keys(&table),
        Command::Schema => output::print_json(&knee_scenario::schema()),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "knee", &mut script);
            output::print(&String::from_utf8_lossy(&script))
        }
    };
    let code = result.unwrap_or_else(|error| {
        output::tell(&format!("{error:?}"));
        ExitCode::from(2)
    });
    // The number of an exit code cannot be read back.
    (0..=u8::MAX).find(|n| ExitCode::from(*n) == code).unwrap_or(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
