//! `knee compare`.

use crate::{
    Format,
    hosts::{self, AnyHost, Jobs, Named},
    made_by, output, registry,
    run::{Experiment, Given, run_all},
};
use knee_lab::compare::{OnHost, compare, compare_report, compare_table};
use miette::{Result, miette};
use serde_json::json;
use std::{path::PathBuf, process::ExitCode};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    given: Given,
    /// Two or three hosts, separated by commas; the others are compared with the first
    /// [default: sim,kernel; in a build without the kernel: sim,quic]
    #[arg(long, alias = "hosts", value_delimiter = ',', value_parser = Named)]
    host: Vec<AnyHost>,
    /// Write the table, and a report with the hosts' curves in one chart, to this new folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    jobs: Jobs,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

pub(crate) fn compare_hosts(args: &Args) -> Result<ExitCode> {
    let wanted: Vec<AnyHost> = match args.host.is_empty() {
        true => AnyHost::all().take(2).collect(),
        false => args.host.clone(),
    };
    if args.host.is_empty() && wanted.len() < 2 {
        let help = registry::second_host_remedy();
        return Err(miette!(
            help = help,
            "this build of knee has one host, and `compare` takes two"
        ));
    }
    let repeated = (1..wanted.len()).any(|i| wanted[..i].contains(&wanted[i]));
    if repeated || !(2..=3).contains(&wanted.len()) {
        return Err(miette!(help = "as in --host sim,kernel", "--host: name two or three hosts"));
    }
    let experiment = Experiment::load(&args.given, false)?;
    let results = args.out.as_deref().map(output::new_results).transpose()?;
    let names: Vec<&str> = wanted.iter().map(|host| host.name()).collect();
    let options = args.jobs.options(&wanted)?;
    let run_on = |host: &AnyHost| run_all(*host, &experiment.specs, &options);
    let records: Result<Vec<_>, _> = wanted.iter().map(run_on).collect();
    let records = records.map_err(hosts::report)?;
    let spec = &experiment.specs[0];
    let hosts: Vec<OnHost<'_>> =
        names.iter().zip(&records).map(|(name, records)| OnHost { name, records }).collect();
    let all = compare(spec, &hosts);
    let mut listing = json!({ "hosts": names, "measures": all });
    if spec.path.noise_ns > 0 {
        listing["noise_us"] = json!(spec.path.noise_ns as f64 / 1e3);
    }
    let mut kept = None;
    if let Some(results) = results {
        let mut report = compare_report(experiment.title(), spec, &hosts, &all);
        report.meta.extend(made_by(&names.join(", ")));
        report.meta.extend(args.given.noise.meta());
        results.json("compare.json", &listing)?;
        results.bytes("scenario.toml", experiment.scenario.text())?;
        results.algorithms(spec.algorithms())?;
        results.bytes("report.html", report.html())?;
        kept = Some(results.finish()?);
    }
    output::show(args.format, &listing, || compare_table(&all, &names).to_text(output::width()))?;
    records.iter().for_each(|records| crate::run::tell_notes(records));
    output::tell_kept("results", kept.as_deref());
    Ok(ExitCode::SUCCESS)
}
