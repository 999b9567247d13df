//! `knee compare`.

use crate::{
    Format, Host, JOBS, integer, interrupt, made_by, output,
    run::{Experiment, Given, run_all},
};
use knee_lab::{
    compare::{OnHost, compare, compare_report, compare_table},
    store::ResultWriter,
};
use miette::Result;
use serde_json::json;
use std::{path::PathBuf, process::ExitCode};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    given: Given,
    /// Keep the table and a report with both hosts' curves over each other in this new folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Repetitions at once on the kernel; default: as many as it bears
    #[arg(long, value_name = "N", value_parser = integer::<usize>(JOBS), allow_hyphen_values = true)]
    jobs: Option<usize>,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

pub(crate) fn compare_hosts(args: &Args) -> Result<ExitCode> {
    let experiment = Experiment::load(&args.given, false)?;
    let results = args.out.as_deref().map(ResultWriter::create).transpose()?;
    if let Some(results) = &results {
        interrupt::abandons(results.abandon())?;
    }
    let names = [Host::Sim, Host::Kernel].map(Host::name);
    let simulated = run_all(Host::Sim, None, &experiment.specs)?;
    let real = run_all(Host::Kernel, args.jobs, &experiment.specs)?;
    let spec = &experiment.specs[0];
    let hosts =
        [(names[0], &simulated), (names[1], &real)].map(|(name, records)| OnHost { name, records });
    let all = compare(spec, hosts);
    let listing = json!({ "hosts": names, "measures": all });
    let mut kept = None;
    if let Some(results) = results {
        let mut report = compare_report(experiment.title(), spec, hosts, &all);
        report.meta.extend(made_by(Host::Kernel));
        results.json("compare.json", &listing)?;
        results.bytes("scenario.toml", experiment.scenario.text())?;
        results.bytes("report.html", report.html())?;
        kept = Some(results.finish()?);
    }
    match args.format {
        Format::Json => output::print_json(&listing)?,
        Format::Table => output::print(&compare_table(&all, names).to_text(output::width()))?,
    };
    crate::run::tell_real_time(&real);
    if let Some(path) = kept {
        output::tell(&format!("results: {}", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}
