//! `knee replay`.

use crate::{
    output,
    run::{one_meaning, own},
};
use knee_cc::Algorithm;
use knee_report::table::Table;
use knee_results::replay::{TraceReplay, difference_text};
use miette::{Result, miette};
use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A file from `knee trace`, or a results folder from `knee run --trace --out`
    trace: PathBuf,
    /// An algorithm of your own in the trace, in a C file; may be repeated
    #[arg(long, value_name = "FILE", value_parser = own)]
    algorithm: Vec<Algorithm>,
}

pub(crate) fn replay(args: &Args) -> Result<ExitCode> {
    one_meaning(&args.algorithm)?;
    let replay = TraceReplay::of(&args.trace)?;
    let file = args.trace.display();
    if replay.flows().is_empty() {
        return Err(miette!(help = "trace while sockets are sending", "{file} contains no calls"));
    }
    let mut table = Table::new(
        "Replayed calls",
        &["flow", "algorithm"],
        &["repetition", "calls", "compared", "gaps", "differences"],
    );
    let (mut calls, mut gaps, mut first) = (0, 0, None);
    for (flow, replayed) in replay.flows() {
        let r = replayed.as_ref().map_err(|why| {
            let help = "replay it with the version of Knee that wrote it; if the algorithm came from a C file, \
                        name that with --algorithm";
            miette!(help = help, "{file}: {} cannot be replayed: {why}", flow.name)
        })?;
        table.row([
            flow.name.to_string(),
            flow.kind.to_string(),
            flow.repetition.to_string(),
            r.calls.to_string(),
            r.compared.to_string(),
            r.gaps.to_string(),
            r.differences.to_string(),
        ]);
        calls += r.compared;
        gaps += r.gaps;
        first = first.or(r.first.as_ref().map(|difference| (flow, difference)));
    }
    let mut text = table.to_text(output::width());
    if gaps > 0 {
        let _ = writeln!(
            text,
            "\ngaps: records were dropped; {gaps} calls only gave the state to continue from"
        );
    }
    if let Some(noise_us) = noise_us(&args.trace) {
        let _ = writeln!(text, "\nnoise of the run: 0 to {noise_us} us on each access link");
    }
    let differences = replay.differences();
    match first {
        None => {
            let _ = writeln!(text, "\n{calls} calls replay bit-identically");
        }
        Some((flow, difference)) => {
            let _ = writeln!(text, "\n{differences} of {calls} calls differ; the first one:");
            let _ = write!(text, "{}, {}", flow.name, difference_text(difference));
        }
    }
    output::print(&text)?;
    Ok(if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Largest delay of the noise in the run of a results folder; none: no noise, or no such folder.
fn noise_us(folder: &Path) -> Option<f64> {
    let summary = fs::read(folder.join("summary.json")).ok()?;
    let summary: serde_json::Value = serde_json::from_slice(&summary).ok()?;
    summary.get("noise_us")?.as_f64()
}
