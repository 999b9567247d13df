//! `knee run`.

use crate::{
    COMMIT, Format, REPEAT,
    hosts::{self, AnyHost, OneHost},
    integer, interrupt, made_by,
    noise::{self, Noise},
    output,
};
use knee_cc::Algorithm;
use knee_lab::{
    pipeline::{Runner, work},
    reproduce::PAPERS,
};
use knee_model::{HostError, RunOptions, RunRecord, RunSpec};
use knee_report::{
    report::Report,
    run_report::{run_report, run_text},
};
use knee_results::{
    ResultsError,
    caveats::{approximations, lateness},
    store::ResultWriter,
    summary::{Provenance, summary},
    tables::write_tables,
};
use knee_scenario::{Scenario, ScenarioError, Set};
use miette::{Result, miette};
use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

const EXAMPLE: &str = "\
A small scenario (docs/reference/scenario.md has all keys):
  duration = \"60s\"
  [path]
  rate = \"10mbit\"
  rtt = \"40ms\"
  queue = \"84p\"
  [[flow]]
  cc = \"chd\"
  params = { qth = \"20ms\" }
  [[flow]]
  cc = \"newreno\"
  start = \"20s\"

Values of it are changed by path, [[flow]] tables being counted from 0:
  --set path.rate=5mbit --set flow.0.params.qth=30ms --set flow.1.count=3";

/// The experiment.
#[derive(clap::Args)]
pub(crate) struct Given {
    /// The scenario: a TOML file (`knee run --help` shows one)
    scenario: PathBuf,
    /// Seed of the first repetition (overrides the scenario); the next ones count up from it
    #[arg(long, value_name = "N", value_parser = integer::<u64>(0..=i64::MAX as u64), allow_hyphen_values = true)]
    seed: Option<u64>,
    /// Number of repetitions (overrides the scenario)
    #[arg(long, value_name = "N", value_parser = integer::<u32>(REPEAT), allow_hyphen_values = true)]
    repeat: Option<u32>,
    /// An algorithm of your own, in a C file: flows name it in `cc`; may be repeated
    #[arg(long, value_name = "FILE", value_parser = own)]
    algorithm: Vec<Algorithm>,
    /// Override a value of the scenario, as in path.rate=5mbit; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    pub(crate) noise: Noise,
}

#[derive(clap::Args)]
#[command(after_long_help = EXAMPLE)]
pub(crate) struct Args {
    #[command(flatten)]
    given: Given,
    #[command(flatten)]
    on: OneHost,
    /// Record every call of each algorithm with all inputs and outputs (needs --out)
    #[arg(long)]
    trace: bool,
    /// Write the packets of the path to this new file, as pcapng for Wireshark (one repetition, with
    /// --host kernel, vm or linux)
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write a qlog of each QUIC connection to this new folder, for qvis and similar tools (one
    /// repetition)
    #[arg(long, value_name = "DIR")]
    qlog: Option<PathBuf>,
    /// Write all results to this new folder: summary.json, Parquet tables, report.html
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.trace && args.out.is_none() {
        let help = "name a new folder with --out";
        return Err(miette!(help = help, "--trace needs a results folder for the calls"));
    }
    let experiment = Experiment::load(&args.given, args.trace)?;
    let Experiment { scenario, specs, name } = &experiment;
    // Refused now rather than after the work.
    let Kept { results, pcap, qlog } = Kept::create(args, specs)?;
    let options = RunOptions {
        pcap: pcap.as_ref().map(|pcap| pcap.folder().join(PCAP)),
        qlog: qlog.as_ref().map(|qlog| qlog.folder().to_owned()),
        ..args.on.options()?
    };
    let records = run_all(args.on.host, specs, &options).map_err(hosts::report)?;
    let pcap = pcap.map(|pcap| pcap.finish_file(PCAP)).transpose()?;
    let qlog = qlog.map(ResultWriter::finish).transpose()?;
    output::tell_kept("packets", pcap.as_deref());
    output::tell_kept("qlog", qlog.as_deref());
    let spec = &specs[0];
    let made_with = args.on.host.made_with(&args.on.options()?).into_iter();
    let made_with: Vec<_> = made_with.map(|(name, value)| (name.to_owned(), value)).collect();
    let provenance = Provenance {
        commit: COMMIT,
        host: args.on.host.name(),
        made_with: &made_with,
        scenario_name: name,
        scenario_text: scenario.text(),
    };
    let summary = summary(&provenance, spec, &records);
    let mut kept = None;
    if let Some(results) = results {
        write_results(&results, &provenance, &summary, experiment.title(), spec, &records)?;
        kept = Some(results.finish()?);
    }
    output::show(args.format, &summary, || run_text(spec, &records, output::width()))?;
    tell_notes(&records);
    args.given.noise.tell();
    output::tell_kept("results", kept.as_deref());
    Ok(ExitCode::SUCCESS)
}

/// The report of a run's repetitions, with their host.
pub fn report(
    provenance: &Provenance<'_>,
    title: &str,
    spec: &RunSpec,
    records: &[RunRecord],
) -> Report {
    let mut report = run_report(title, spec, records);
    report.meta.extend(made_by(provenance.host));
    report.meta.extend(provenance.made_with.iter().cloned());
    report
}

/// Writes what `knee run --out` keeps.
///
/// # Errors
/// A file cannot be written.
pub fn write_results(
    results: &ResultWriter,
    provenance: &Provenance<'_>,
    summary: &Value,
    title: &str,
    spec: &RunSpec,
    records: &[RunRecord],
) -> Result<(), ResultsError> {
    results.json("summary.json", summary)?;
    results.bytes("scenario.toml", provenance.scenario_text)?;
    results.algorithms(spec.algorithms())?;
    write_tables(results, spec, records)?;
    let report = report(provenance, title, spec, records);
    for chart in report.sections.iter().flat_map(|s| &s.charts) {
        results.bytes(&format!("figures/{}.svg", chart.id), chart.svg())?;
    }
    results.bytes("report.html", report.html())
}

/// Name of the captured packets while the run is under way.
const PCAP: &str = "packets.pcapng";

/// Files of a run; each appears when it is complete.
struct Kept {
    results: Option<ResultWriter>,
    pcap: Option<ResultWriter>,
    qlog: Option<ResultWriter>,
}

impl Kept {
    fn create(args: &Args, specs: &[RunSpec]) -> Result<Self> {
        let wanted =
            RunOptions { pcap: args.pcap.clone(), qlog: args.qlog.clone(), ..args.on.options()? };
        if wanted.pcap.is_some() || wanted.qlog.is_some() {
            args.on.host.check(&specs[0], &wanted).map_err(hosts::report)?;
        }
        let given = [("--out", &args.out), ("--pcap", &args.pcap), ("--qlog", &args.qlog)];
        let given = given.iter().filter_map(|(option, path)| Some((*option, path.as_ref()?)));
        for (n, (option, path)) in given.clone().enumerate() {
            if option != "--out" && specs.len() > 1 {
                let help = "add --repeat 1, and --seed to choose a repetition other than the first";
                return Err(miette!(help = help, "{option} records only one repetition"));
            }
            if let Some((other, _)) = given.clone().take(n).find(|(_, other)| *other == path) {
                let help = "give each a name of its own";
                let path = path.display();
                return Err(miette!(help = help, "{other} and {option} are both `{path}`"));
            }
        }
        let create = |path: &Option<PathBuf>| path.as_deref().map(ResultWriter::create).transpose();
        let kept = Self {
            results: create(&args.out)?,
            pcap: create(&args.pcap)?,
            qlog: create(&args.qlog)?,
        };
        let all = [&kept.results, &kept.pcap, &kept.qlog];
        let all: Vec<_> = all.into_iter().flatten().map(ResultWriter::abandon).collect();
        if !all.is_empty() {
            interrupt::abandons(all)?;
        }
        Ok(kept)
    }
}

/// Notes on runs.
pub(crate) fn tell_notes(records: &[RunRecord]) {
    for line in approximations(records) {
        output::tell(&format!("note: {line}"));
    }
    if let Some(lateness) = lateness(records) {
        output::tell(&format!("lateness of the emulated path {lateness}"));
    }
}

/// A scenario and its repetitions.
pub(crate) struct Experiment {
    pub(crate) scenario: Scenario,
    /// One for each repetition: at least one.
    pub(crate) specs: Vec<RunSpec>,
    name: String,
}

impl Experiment {
    /// Reads the scenario and applies the overrides; with `trace` its calls are recorded.
    pub(crate) fn load(given: &Given, trace: bool) -> Result<Self> {
        one_meaning(&given.algorithm)?;
        let path = &given.scenario;
        let seed = given.seed.map(|n| format!("seed={n}"));
        let repeat = given.repeat.map(|n| format!("repeat={n}"));
        let trace = trace.then(|| "record.trace=true".to_owned());
        let noise = given.noise.set();
        let sets = given.set.iter().chain(&seed).chain(&repeat).chain(&trace).chain(&noise);
        let mut sets = sets.map(|s| Set::parse(s)).collect::<Result<Vec<_>, _>>()?;
        let mut scenario = Scenario::load(path, &sets).map_err(|e| paper_meant(path, e))?;
        // A scenario without noise stays as it is.
        let has_noise = scenario.spec(scenario.seed()).path.noise_ns > 0;
        if given.noise.noise == Some(0) && has_noise {
            sets.push(Set::parse(&noise::set(0))?);
            scenario = Scenario::load(path, &sets)?;
        }
        let specs = (0..scenario.repeat()).map(|r| scenario.spec(scenario.seed_of(r))).collect();
        let stem = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
        Ok(Self { scenario, specs, name: stem })
    }

    /// Its title, or its file's name.
    pub(crate) fn title(&self) -> &str {
        self.scenario.title().unwrap_or(&self.name)
    }
}

/// Loads an algorithm from a C file.
pub(crate) fn own(file: &str) -> std::result::Result<Algorithm, String> {
    knee_cc::load(Path::new(file)).map_err(|e| format!("{e}; {}", e.help()))
}

/// Refuses two different algorithms of the same name: which one is meant would depend on their order.
pub(crate) fn one_meaning(own: &[Algorithm]) -> Result<()> {
    let twice =
        |(n, a): (usize, &Algorithm)| own[..n].iter().any(|b| a.name() == b.name() && a != b);
    match own.iter().enumerate().find(|(n, a)| twice((*n, *a))) {
        None => Ok(()),
        Some((_, algorithm)) => {
            let help = "give one of the two another name, in its file";
            Err(miette!(help = help, "two algorithms are called `{}`", algorithm.name()))
        }
    }
}

/// Points to `knee reproduce` if a paper was named instead of a file.
fn paper_meant(path: &Path, error: ScenarioError) -> miette::Report {
    match path.to_str().filter(|name| PAPERS.contains(name)) {
        Some(paper) if !path.exists() => {
            let help = format!(
                "to run a paper, use `knee reproduce {paper}`; \
                 its scenarios are in scenarios/{paper}/"
            );
            miette!(help = help, "{paper}: no such file")
        }
        _ => error.into(),
    }
}

/// Runs `specs`, repetitions of one scenario, on `host`, and shows the progress.
pub(crate) fn run_all(
    host: AnyHost,
    specs: &[RunSpec],
    options: &RunOptions,
) -> Result<Vec<RunRecord>, HostError> {
    let works: Vec<f64> = specs.iter().map(work).collect();
    let progress = output::Progress::new(host.doing());
    let runner =
        Runner { progress: &|done, all| progress.at(done, all), ..Runner::new(&*host, options) };
    runner.each(&works, |n, turn| turn.record(&specs[n]))
}
