//! `knee matrix`.

use crate::{
    REPEAT,
    duel::{DEFAULT_PATH, Given, fight},
    integer, made_by, output,
    run::tell_notes,
};
use knee_lab::duel::{
    Contest, Entrant, MatrixSummary, WrittenPath, matrix_report, matrix_text, write_matrix,
};
use knee_results::store::ResultWriter;
use miette::{Result, miette};
use std::{path::PathBuf, process::ExitCode};

const EXAMPLES: &str = "\
Examples:
  knee matrix
      all algorithms with their defaults, on 100 Mbit/s and 40 ms
  knee matrix --cc chd,hd,newreno --path 10mbit,40ms,84p --path 10mbit,40ms,84p,loss=0.01
      three of them, on two paths
  knee matrix --cc chd:qth=10ms,chd:qth=20ms,chd:qth=40ms,newreno
      variants of one

docs/reference/duel-json.md defines every metric.";

#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Algorithms, separated by commas, with parameters if needed (chd:qth=20ms); all: those of `knee
    /// list`
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', default_value = ALL, value_parser = wanted)]
    cc: Vec<Wanted>,
    /// Rate, RTT and queue, as in `knee duel`; may be repeated
    #[arg(long, default_value = DEFAULT_PATH, value_parser = WrittenPath::parse, allow_hyphen_values = true)]
    path: Vec<WrittenPath>,
    /// Repetitions of each run
    #[arg(long, value_name = "N", default_value = "3", value_parser = integer::<u32>(REPEAT), allow_hyphen_values = true)]
    repeat: u32,
    /// New folder for report, matrix.json and tables; default: the next free one in knee-out/
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    given: Given,
}

const ALL: &str = "all";

/// A part of `--cc`.
#[derive(Clone)]
enum Wanted {
    All,
    One(Box<Entrant>),
}

fn wanted(text: &str) -> Result<Wanted, String> {
    if text.trim() == ALL {
        return Ok(Wanted::All);
    }
    Entrant::parse(text).map(|entrant| Wanted::One(Box::new(entrant)))
}

fn entrants(wanted: &[Wanted]) -> Result<Vec<Entrant>> {
    let mut entrants: Vec<Entrant> = Vec::new();
    for one in wanted {
        let next = match one {
            Wanted::All => Entrant::all(),
            Wanted::One(entrant) => vec![(**entrant).clone()],
        };
        for entrant in next {
            if let Some(before) = entrants.iter().find(|e| e.cc == entrant.cc) {
                let help = "name each one once; with other parameters it counts as another";
                let (before, again) = (&before.name, &entrant.name);
                return Err(miette!(help = help, "--cc: {before} and {again} are the same"));
            }
            entrants.push(entrant);
        }
    }
    match entrants.len() {
        0 | 1 => {
            let help = "as in --cc chd,newreno; `knee duel chd chd` runs one against itself";
            Err(miette!(help = help, "--cc: name at least two algorithms"))
        }
        _ => Ok(entrants),
    }
}

pub(crate) fn matrix(args: &Args) -> Result<ExitCode> {
    let entrants = entrants(&args.cc)?;
    let mut paths: Vec<WrittenPath> = Vec::new();
    for path in &args.path {
        if paths.contains(path) {
            return Err(miette!(help = "name each one once", "--path {path} is given twice"));
        }
        paths.push(*path);
    }
    let contest = args.given.contest(entrants, paths, args.repeat)?;
    output::with_results(args.out.as_deref(), "matrix", |results| made(args, &contest, results))
}

fn made(args: &Args, contest: &Contest, results: ResultWriter) -> Result<ExitCode> {
    let given = &args.given;
    let settings = contest.settings(true)?;
    let example = settings.iter().find(|(run, _)| run.second.is_some());
    let example = example.map_or("", |(_, scenario)| scenario.text());
    let fought = fight(contest, given, &settings, false)?;
    let outcome = &fought.outcome;
    let summary = MatrixSummary::new(given.common(&contest.plan), outcome);
    let mut report = matrix_report(&summary, outcome, example);
    report.meta.extend(made_by(given.on.host.name()));
    report.meta.extend(given.noise.meta());
    write_matrix(&results, &summary, outcome, &report)?;
    let path = results.finish()?;
    output::show(given.format, &summary, || matrix_text(&summary, output::width()))?;
    tell_notes(&fought.notes);
    given.noise.tell();
    output::tell(&format!("report: {}", path.join("report.html").display()));
    Ok(ExitCode::SUCCESS)
}
