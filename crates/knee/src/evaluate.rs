//! `knee evaluate`.

use crate::{Format, REPEAT, hosts::OneHost, integer, interrupt, made_by, output};
use knee_lab::{
    duel::Entrant,
    evaluate::{
        Evaluation, HowToRun, Journal, Record, Word, criteria, evaluate as run, evaluation_report,
        evaluation_text, scorecard_report, scorecard_text, worst_run,
    },
};
use knee_results::store::ResultWriter;
use miette::{Result, miette};
use std::{path::PathBuf, process::ExitCode};

const EXAMPLES: &str = "\
Examples:
  knee evaluate chd --quick
  knee evaluate chd:qth=40ms --against newreno --only bufferbloat
  knee evaluate copa --seeds 5 --keep kept --out results

docs/evaluate.md says what each criterion asks, and why.";

/// Repetitions unless told.
const SEEDS: u32 = 20;
/// Those of the quick form.
const QUICK_SEEDS: u32 = 2;

#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// An algorithm, with parameters if needed: chd, chd:qth=20ms:qmin=5ms
    #[arg(value_name = "NAME", value_parser = Entrant::parse, required_unless_present = "all")]
    name: Option<Entrant>,
    /// All algorithms, each with its defaults; with --quick, held against the record
    #[arg(long, conflicts_with = "name")]
    all: bool,
    /// The algorithms that it is held against, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = Entrant::parse, default_value = "cubic,newreno")]
    against: Vec<Entrant>,
    /// Only these criteria, separated by commas
    #[arg(long, value_name = "CRITERION", value_delimiter = ',')]
    only: Vec<String>,
    /// Repetitions of each run; default: 20, with --quick 2
    #[arg(long, value_name = "N", value_parser = integer::<u32>(REPEAT), allow_hyphen_values = true)]
    seeds: Option<u32>,
    /// The quick form: fewer points and repetitions
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    on: OneHost,
    /// Keep what was measured in this folder, and reuse what this same build of Knee kept there: an
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

/// Verdicts of several algorithms as JSON.
#[derive(serde::Serialize)]
struct Scorecard<'a> {
    evaluations: &'a [Evaluation],
}

pub(crate) fn evaluate(args: &Args) -> Result<ExitCode> {
    let results = args.out.as_deref().map(ResultWriter::create).transpose()?;
    if let Some(results) = &results {
        interrupt::abandons(results.abandon())?;
    }
    let journal =
        args.keep.as_deref().map(Journal::open).transpose().map_err(|e| miette!("{e}"))?;
    let subjects = match &args.name {
        Some(name) => vec![name.clone()],
        None => Entrant::all(),
    };
    let host = args.on.host;
    let options = args.on.jobs.options(&[host])?;
    let bar = std::sync::OnceLock::new();
    let progress = |done, total| {
        bar.get_or_init(|| output::Progress::new(total, host.doing())).done(done);
    };
    let how = HowToRun {
        host: &*host,
        options: &options,
        seeds: args.seeds.unwrap_or(if args.quick { QUICK_SEEDS } else { SEEDS }),
        quick: args.quick,
        journal: journal.as_ref(),
        progress: &progress,
    };
    let evaluations = run(&subjects, &args.against, &args.only, &how)?;
    let found = Record::of(&evaluations);
    let mut kept = None;
    if let Some(results) = results {
        let mut report = match &args.name {
            Some(entrant) => {
                let evaluation = &evaluations[0];
                results.json("evaluation.json", evaluation)?;
                let mut worst = Vec::new();
                for verdict in evaluation.criteria.iter().filter(|c| c.verdict == Word::Fails) {
                    if let Some((spec, record)) = worst_run(verdict, entrant, &how)? {
                        worst.push((verdict.id.clone(), spec, record));
                    }
                }
                evaluation_report(evaluation, &criteria()?, &worst)
            }
            None => {
                results.json("evaluation.json", &Scorecard { evaluations: &evaluations })?;
                let record = found.to_toml().map_err(|e| miette!("record.toml: {e}"))?;
                results.bytes("record.toml", record)?;
                scorecard_report(&evaluations)
            }
        };
        report.meta.extend(made_by(host.name()));
        results.bytes("report.html", report.html())?;
        kept = Some(results.finish()?);
    }
    match (args.format, &args.name) {
        (Format::Json, Some(_)) => output::print_json(&evaluations[0])?,
        (Format::Json, None) => output::print_json(&Scorecard { evaluations: &evaluations })?,
        (Format::Table, Some(_)) => {
            output::print(&evaluation_text(&evaluations[0], output::width()))?
        }
        (Format::Table, None) => output::print(&scorecard_text(&evaluations, output::width()))?,
    };
    if let Some(path) = kept {
        output::tell(&format!("report: {}", path.join("report.html").display()));
    }
    if args.all {
        return against_the_record(args, &found);
    }
    Ok(match evaluations[0].word() {
        Word::Fails => ExitCode::FAILURE,
        Word::NotJudged => ExitCode::from(3),
        Word::Informs | Word::Passes | Word::NoWorse => ExitCode::SUCCESS,
    })
}

/// All algorithms: what fails is on record.
fn against_the_record(args: &Args, found: &Record) -> Result<ExitCode> {
    let as_recorded = args.quick
        && args.seeds.is_none()
        && args.only.is_empty()
        && args.on.host == crate::hosts::AnyHost::default();
    if !as_recorded {
        return Ok(ExitCode::SUCCESS);
    }
    let differences = Record::of_repository()?.differences(found);
    for [name, criterion, recorded, found] in &differences {
        output::tell(&format!("{name}, {criterion}: {found}; on record: {recorded}"));
    }
    Ok(match differences.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
