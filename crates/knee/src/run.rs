//! `knee run`.

use crate::{COMMIT, Format, Host, interrupt, output};
use knee_lab::{
    parquet::write_tables,
    run_report::{run_report, run_text},
    scenario::{Scenario, Set},
    store::ResultWriter,
    summary::{Provenance, Summary},
};
use knee_run::{RunRecord, RunSpec};
use miette::{Result, miette};
use rayon::prelude::*;
use std::{
    path::PathBuf,
    process::ExitCode,
    sync::atomic::{AtomicUsize, Ordering},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The scenario, a TOML file (docs/scenario.md)
    scenario: PathBuf,
    /// What runs it
    #[arg(long, value_enum, default_value = "sim")]
    host: Host,
    /// Seed of the first repetition instead of the scenario's; repetition r uses seed + r
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,
    /// Repetitions instead of the scenario's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeat: Option<u32>,
    /// Put a value in place of what the scenario says, as in path.rate=5mbit; may be repeated
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Keep every call of each algorithm with all inputs and outputs (needs --out)
    #[arg(long, requires = "out")]
    trace: bool,
    /// Keep all results in this new folder: summary.json, Parquet tables, report.html
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Threads, one per repetition at most; default: one per core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut sets = args.set.iter().map(|s| Set::parse(s)).collect::<Result<Vec<_>, _>>()?;
    let overrides = [
        args.seed.map(|n| format!("seed={n}")),
        args.repeat.map(|n| format!("repeat={n}")),
        args.trace.then(|| "record.trace=true".to_owned()),
    ];
    for argument in overrides.into_iter().flatten() {
        sets.push(Set::parse(&argument)?);
    }
    let scenario = Scenario::load(&args.scenario, &sets)?;
    // Refused now rather than after the work.
    let results = args.out.as_deref().map(ResultWriter::create).transpose()?;
    if let Some(results) = &results {
        interrupt::abandons(results.abandon())?;
    }

    let specs: Vec<RunSpec> =
        (0..scenario.repeat()).map(|r| scenario.spec(scenario.seed_of(r))).collect();
    let records = run_all(args, &specs)?;
    let spec = &specs[0];
    let name =
        args.scenario.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    let summary = Summary::new(
        &Provenance {
            commit: COMMIT,
            host: args.host.name(),
            scenario_name: &name,
            scenario_text: scenario.text(),
        },
        spec,
        &records,
    );
    let mut kept = None;
    if let Some(results) = results {
        results.json("summary.json", &summary)?;
        results.bytes("scenario.toml", scenario.text())?;
        write_tables(&results, spec, &records)?;
        let report = run_report(scenario.title().unwrap_or(&name), spec, &records);
        for chart in report.sections.iter().flat_map(|s| &s.charts) {
            results.bytes(&format!("figures/{}.svg", chart.id), chart.svg())?;
        }
        results.bytes("report.html", report.html())?;
        kept = Some(results.finish()?);
    }
    match args.format {
        Format::Json => output::print_json(&summary)?,
        Format::Table => output::print(&run_text(spec, &records, output::width()))?,
    };
    if let Some(path) = kept {
        eprintln!("results: {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn run_all(args: &Args, specs: &[RunSpec]) -> Result<Vec<RunRecord>> {
    let progress = output::Progress::new(specs.len(), "simulating");
    let done = AtomicUsize::new(0);
    let one = |spec| {
        let record = args.host.run(spec).map_err(|e| miette!("{e}"))?;
        progress.done(done.fetch_add(1, Ordering::Relaxed) + 1);
        Ok(record)
    };
    let jobs = usize::from(args.jobs.unwrap_or(0));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
    let pool = pool.map_err(|e| miette!("cannot start threads: {e}; give fewer with --jobs"))?;
    pool.install(|| specs.par_iter().map(one).collect())
}
