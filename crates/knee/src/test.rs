//! `knee test`.

use crate::{bench::Known, hosts::AnyHost, integer, output};
use knee_cc::{Algorithm, algorithm};
use knee_conformance::{
    duels::{COLUMNS, duel, judged},
    invariants::Invariant,
    replay::replays,
};
use miette::{Result, miette};
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A C file (./mine.c), or an algorithm of `knee list`
    #[arg(value_name = "FILE", value_parser = Known)]
    algorithm: Algorithm,
    /// Random sequences of events for each invariant
    #[arg(long, value_name = "N", default_value = "256", value_parser = integer::<u32>(1..=1_000_000), allow_hyphen_values = true)]
    cases: u32,
}

pub(crate) fn test(args: &Args) -> Result<ExitCode> {
    let tested = args.algorithm;
    let mut all = Verdicts::default();
    all.tell("tables", "name, citation, state and parameters are consistent", tested.check())?;
    for invariant in Invariant::ALL {
        let held = invariant.check_repeatably(tested, args.cases);
        all.tell("invariants", invariant.about(), held)?;
    }
    let newreno = algorithm("newreno").ok_or_else(|| miette!("no algorithm `newreno`"))?;
    let mut rows = Vec::new();
    for (competitor, other) in [("itself", tested), ("newreno", newreno)] {
        let verdict = judged(&duel(tested, other));
        let about = format!("120 s against {competitor}: neither is starved, twice the same");
        rows.extend(verdict.iter().map(|row| format!("{competitor:<10} {row}")));
        all.tell("simulator", &about, verdict.map(drop))?;
    }
    for host in AnyHost::all().filter(|host| ["sim", "quic"].contains(&host.name())) {
        let about = format!("every call of a run on {} replays bit-identically", host.name());
        match replays(tested, &*host) {
            Ok(None) => {
                output::print(&format!("  -    replay      {} does not take it\n", host.name()))
                    .map(drop)?
            }
            verdict => all.tell("replay", &about, verdict.map(drop))?,
        }
    }
    #[cfg(feature = "kernel")]
    {
        let verdict = knee_kernel::compiled(tested).map(drop).map_err(|e| e.to_string());
        all.tell(
            "kernel",
            "it compiles for BPF (that the kernel takes it, `knee kernel load` shows)",
            verdict,
        )?;
    }
    let heading = format!("against    {COLUMNS}");
    if !rows.is_empty() {
        output::print(&format!("\n{heading}\n{}\n", rows.join("\n")))?;
    }
    let name = tested.name();
    match all.failed {
        0 => output::print(&format!("\n{name} passes\n")),
        1 => output::print(&format!("\n{name} fails one test\n")),
        n => output::print(&format!("\n{name} fails {n} tests\n")),
    }?;
    Ok(if all.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[derive(Default)]
struct Verdicts {
    failed: u32,
}

impl Verdicts {
    /// Prints a verdict as soon as it is there.
    fn tell(&mut self, part: &str, about: &str, verdict: Result<(), String>) -> Result<()> {
        let text = match verdict {
            Ok(()) => format!("  ok   {part:<11} {about}\n"),
            Err(why) => {
                self.failed += 1;
                format!("  FAIL {part:<11} {about}\n{}\n", indented(&why))
            }
        };
        output::print(&text).map(drop)
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("       {line}")).collect::<Vec<_>>().join("\n")
}
