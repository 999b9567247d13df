//! `knee evaluate`.

use crate::{COMMIT, Format, REPEAT, hosts::OneHost, integer, made_by, noise::Noise, output};
use knee_lab::{
    duel::Entrant,
    evaluate::{
        Evaluation, HowToRun, Record, Word, criteria, evaluate as run, evaluation_report,
        evaluation_text, scorecard_report, scorecard_text, worst_run,
    },
    pipeline::Runner,
};
use knee_results::kept::KeptRuns;
use miette::{Result, miette};
use std::{path::PathBuf, process::ExitCode};

const EXAMPLES: &str = "\
Examples:
  knee evaluate chd --quick
  knee evaluate chd:qth=40ms --against newreno --only bufferbloat
  knee evaluate copa --repeat 5 --keep kept --out results
  knee evaluate newreno cubic chd --only two-way,real-time --host vm --quick

docs/reference/criteria.md lists the requirements of each criterion.";

/// Default number of repetitions.
const REPETITIONS: u32 = 20;
/// Default number of repetitions of the quick form.
const QUICK_REPETITIONS: u32 = 2;

#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Algorithms, with parameters if needed: chd, chd:qth=20ms:qmin=5ms
    #[arg(value_name = "NAME", value_parser = Entrant::parse, required_unless_present = "all")]
    names: Vec<Entrant>,
    /// All algorithms, each with its defaults; with --quick, compared with the expected verdicts
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// Baseline algorithms, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = Entrant::parse, default_value = "cubic,newreno")]
    against: Vec<Entrant>,
    /// Only these criteria, separated by commas
    #[arg(long, value_name = "CRITERION", value_delimiter = ',')]
    only: Vec<String>,
    /// Number of repetitions of each run; default: 20, with --quick 2
    #[arg(long, value_name = "N", value_parser = integer::<u32>(REPEAT), allow_hyphen_values = true)]
    repeat: Option<u32>,
    /// The old spelling of --repeat
    #[arg(long, hide = true, value_name = "N", value_parser = integer::<u32>(REPEAT), allow_hyphen_values = true, conflicts_with = "repeat")]
    seeds: Option<u32>,
    /// The quick form: fewer points and repetitions
    #[arg(long)]
    quick: bool,
    /// Set this in all runs, as in knee run: --only cellular --set path.rate_trace=/data/my.down
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    #[command(flatten)]
    noise: Noise,
    #[command(flatten)]
    on: OneHost,
    /// Keep measurements in this folder, and reuse those that this build of Knee kept there: an
    /// interrupted evaluation continues
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Write evaluation.json and report.html to this new folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

impl Args {
    fn given_repeat(&self) -> Option<u32> {
        self.repeat.or(self.seeds)
    }
}

/// Verdicts of several algorithms as JSON.
#[derive(serde::Serialize)]
struct Scorecard<'a> {
    evaluations: &'a [Evaluation],
}

pub(crate) fn evaluate(args: &Args) -> Result<ExitCode> {
    let results = args.out.as_deref().map(output::new_results).transpose()?;
    let keep = args.keep.as_deref().map(KeptRuns::open).transpose().map_err(|e| miette!("{e}"))?;
    let subjects = if args.all { Entrant::all() } else { args.names.clone() };
    let host = args.on.host;
    let options = args.on.jobs.options(&[host])?;
    if args.seeds.is_some() {
        output::tell("--seeds: write --repeat; the next version of Knee does not take --seeds");
    }
    let default = if args.quick { QUICK_REPETITIONS } else { REPETITIONS };
    let progress = output::Progress::new(host.doing());
    let runner = Runner {
        host: &*host,
        options: &options,
        kept: keep.as_ref(),
        progress: &|done, all| progress.at(done, all),
    };
    let sets: Vec<String> = args.sets.iter().cloned().chain(args.noise.set()).collect();
    let how = HowToRun {
        runner,
        repeat: args.given_repeat().unwrap_or(default),
        quick: args.quick,
        sets: &sets,
    };
    let evaluations = run(&subjects, &args.against, &args.only, &how)?;
    let found = Record::of(&evaluations, &made_with(args, &how));
    let mut kept = None;
    if let Some(results) = results {
        let mut report = match (&evaluations[..], &subjects[..]) {
            ([evaluation], [entrant]) => {
                results.json("evaluation.json", evaluation)?;
                let mut worst = Vec::new();
                for verdict in evaluation.criteria.iter().filter(|c| c.verdict == Word::Fails) {
                    if let Some((spec, record)) = worst_run(verdict, entrant, &how)? {
                        worst.push((verdict.id.clone(), spec, record));
                    }
                }
                evaluation_report(evaluation, &criteria()?, &worst)
            }
            _ => {
                results.json("evaluation.json", &Scorecard { evaluations: &evaluations })?;
                let record = found.to_toml(&command()).map_err(|e| miette!("record.toml: {e}"))?;
                results.bytes("record.toml", record)?;
                scorecard_report(&evaluations)
            }
        };
        report.meta.extend(made_by(host.name()));
        report.meta.extend(args.noise.meta());
        results.bytes("report.html", report.html())?;
        kept = Some(results.finish()?);
    }
    match (args.format, &evaluations[..]) {
        (Format::Json, [one]) => output::print_json(one)?,
        (Format::Json, all) => output::print_json(&Scorecard { evaluations: all })?,
        (Format::Table, [one]) => output::print(&evaluation_text(one, output::width()))?,
        (Format::Table, all) => output::print(&scorecard_text(all, output::width()))?,
    };
    args.noise.tell();
    output::tell_kept("report", kept.map(|folder| folder.join("report.html")).as_deref());
    if args.all {
        return against_the_record(args, &sets, &found);
    }
    Ok(match evaluations.iter().map(Evaluation::word).max() {
        Some(Word::Fails) => ExitCode::FAILURE,
        Some(Word::NotJudged) => ExitCode::from(3),
        Some(Word::Informs | Word::Passes | Word::NoWorse) | None => ExitCode::SUCCESS,
    })
}

/// Versions and repetitions for the record of a host whose results depend on them.
fn made_with(args: &Args, how: &HowToRun<'_>) -> Vec<(&'static str, String)> {
    let mut facts = args.on.host.made_with(how.runner.options);
    if !facts.is_empty() {
        facts.push(("Knee's commit", COMMIT.unwrap_or("unknown").to_owned()));
        facts.push(("repetitions", how.repeat.to_string()));
    }
    facts
}

/// This command, without options that have no part in verdicts.
fn command() -> String {
    const NO_PART: [&str; 4] = ["--out", "--keep", "--jobs", "--format"];
    let arguments = std::env::args_os().skip(1);
    let mut words = arguments.map(|word| word.to_string_lossy().into_owned());
    let mut command = "knee".to_owned();
    while let Some(word) = words.next() {
        if NO_PART.contains(&word.as_str()) {
            words.next();
        } else if !NO_PART.iter().any(|name| word.starts_with(&format!("{name}="))) {
            command += &format!(" {word}");
        }
    }
    command
}

/// Compares the verdicts of all algorithms with the expected ones.
fn against_the_record(args: &Args, sets: &[String], found: &Record) -> Result<ExitCode> {
    let as_recorded = args.quick
        && args.given_repeat().is_none()
        && args.only.is_empty()
        && sets.is_empty()
        && args.on.host == crate::hosts::AnyHost::default();
    if !as_recorded {
        return Ok(ExitCode::SUCCESS);
    }
    let differences = Record::of_repository()?.differences(found);
    for [name, criterion, recorded, found] in &differences {
        output::tell(&format!("{name}, {criterion}: {found}; expected: {recorded}"));
    }
    Ok(match differences.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
