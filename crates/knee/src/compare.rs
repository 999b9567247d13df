//! `knee compare`.

use crate::{
    Format, Host, JOBS, integer, interrupt, made_by, output,
    run::{Experiment, Given, run_all},
};
use knee_lab::{
    compare::{OnHost, compare, compare_report, compare_table},
    store::ResultWriter,
};
use miette::{Result, miette};
use serde_json::json;
use std::{path::PathBuf, process::ExitCode};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    given: Given,
    /// The hosts, two or three; the others are held against the first
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["sim", OTHER])]
    hosts: Vec<Host>,
    /// Keep the table and a report with the hosts' curves over each other in this new folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Repetitions at once on the kernel; default: as many as it bears
    #[arg(long, value_name = "N", value_parser = integer::<usize>(JOBS), allow_hyphen_values = true)]
    jobs: Option<usize>,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// The host that the simulator is compared with unless others are asked for.
const OTHER: &str = if cfg!(feature = "kernel") { "kernel" } else { "quic" };

pub(crate) fn compare_hosts(args: &Args) -> Result<ExitCode> {
    let repeated = (1..args.hosts.len()).any(|i| args.hosts[..i].contains(&args.hosts[i]));
    if repeated || !(2..=3).contains(&args.hosts.len()) {
        return Err(miette!(help = "as in --hosts sim,kernel", "--hosts: name two or three"));
    }
    let experiment = Experiment::load(&args.given, false)?;
    let results = args.out.as_deref().map(ResultWriter::create).transpose()?;
    if let Some(results) = &results {
        interrupt::abandons(results.abandon())?;
    }
    let names: Vec<&str> = args.hosts.iter().map(|host| host.name()).collect();
    let records = args
        .hosts
        .iter()
        .map(|host| run_all(*host, args.jobs.filter(|_| host.is_real_time()), &experiment.specs))
        .collect::<Result<Vec<_>>>()?;
    let spec = &experiment.specs[0];
    let hosts: Vec<OnHost<'_>> =
        names.iter().zip(&records).map(|(name, records)| OnHost { name, records }).collect();
    let all = compare(spec, &hosts);
    let listing = json!({ "hosts": names, "measures": all });
    let mut kept = None;
    if let Some(results) = results {
        let mut report = compare_report(experiment.title(), spec, &hosts, &all);
        report.meta.extend(made_by(&names.join(", ")));
        results.json("compare.json", &listing)?;
        results.bytes("scenario.toml", experiment.scenario.text())?;
        results.bytes("report.html", report.html())?;
        kept = Some(results.finish()?);
    }
    match args.format {
        Format::Json => output::print_json(&listing)?,
        Format::Table => output::print(&compare_table(&all, &names).to_text(output::width()))?,
    };
    records.iter().for_each(|records| crate::run::tell_notes(records));
    if let Some(path) = kept {
        output::tell(&format!("results: {}", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}
