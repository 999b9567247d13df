//! `knee reproduce`.

use crate::{Format, Host, JOBS, REPEAT, integer, interrupt, made_by, output};
use clap::builder::{PossibleValue, PossibleValuesParser};
use knee_lab::{
    reproduce::{
        PAPERS, Reproduction, Wanted, as_recorded, available, claims, reproduce as run, write,
    },
    store::ResultWriter,
};
use miette::{IntoDiagnostic, Result, WrapErr};
use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::OnceLock,
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The paper, or all that can be reproduced
    #[arg(value_parser = papers())]
    paper: String,
    /// Only this figure and its claims
    #[arg(long, value_name = "N")]
    figure: Option<String>,
    /// Repetitions instead of the scenarios' own
    #[arg(long, value_name = "N", value_parser = integer::<u32>(REPEAT), allow_hyphen_values = true)]
    repeat: Option<u32>,
    /// Threads; default: one per core
    #[arg(long, value_name = "N", value_parser = integer::<usize>(JOBS), allow_hyphen_values = true)]
    jobs: Option<usize>,
    /// What runs the scenarios
    #[arg(long, value_enum, default_value = "sim")]
    host: Host,
    /// New folder for report, claims and figures; default: the next free one in knee-out/
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How to print the verdicts
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// Papers that are not there yet are not shown, but known.
fn papers() -> PossibleValuesParser {
    let there = available();
    let known = PAPERS.map(|id| PossibleValue::new(id).hide(!there.contains(&id)));
    PossibleValuesParser::new(known.into_iter().chain([PossibleValue::new("all")]))
}

/// Where results go unless --out names a place.
const DEFAULT_PARENT: &str = "knee-out";

pub(crate) fn reproduce(args: &Args) -> Result<ExitCode> {
    let result = reproduced(args);
    if result.is_err() && args.out.is_none() {
        // Made for nothing, if it is empty.
        let _ = fs::remove_dir(DEFAULT_PARENT);
    }
    result
}

fn reproduced(args: &Args) -> Result<ExitCode> {
    let papers = match args.paper.as_str() {
        "all" => available(),
        one => vec![one],
    };
    let wanted = Wanted { figure: args.figure.clone(), repeat: args.repeat, jobs: args.jobs };
    // Refused now rather than after the work.
    let out = match &args.out {
        Some(out) => out.clone(),
        None => next_free(&args.paper)?,
    };
    let results = ResultWriter::create(&out)?;
    interrupt::abandons(results.abandon())?;
    let reproductions = papers
        .iter()
        .map(|paper| one(paper, &wanted, args.host))
        .collect::<Result<Vec<Reproduction>>>()?;
    write(&reproductions, made_by(args.host), &results)?;
    let path = results.finish()?;
    match args.format {
        Format::Json => output::print_json(&claims(&reproductions))?,
        Format::Table => {
            let texts = reproductions.iter().map(|r| r.to_text(output::width()));
            output::print(&texts.collect::<Vec<_>>().join("\n"))?
        }
    };
    output::tell(&format!("report: {}", path.join("report.html").display()));
    Ok(if as_recorded(&reproductions) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn one(paper: &str, wanted: &Wanted, host: Host) -> Result<Reproduction> {
    let bar = OnceLock::new();
    let progress = |done, total| {
        bar.get_or_init(|| output::Progress::new(total, "simulating")).done(done);
    };
    Ok(run(paper, wanted, host.name(), &move |spec| host.run(spec), &progress)?)
}

/// `knee-out/NAME`, or the first of `NAME-2`, `NAME-3`, ... that does not exist.
fn next_free(name: &str) -> Result<PathBuf> {
    let parent = Path::new(DEFAULT_PARENT);
    fs::create_dir_all(parent)
        .into_diagnostic()
        .wrap_err("cannot make the folder knee-out here; name another place with --out")?;
    let numbered = (2..).map(|n| format!("{name}-{n}"));
    let mut names = [name.to_owned()].into_iter().chain(numbered).map(|n| parent.join(n));
    Ok(names.find(|p| fs::symlink_metadata(p).is_err()).unwrap_or_else(|| parent.join(name)))
}
