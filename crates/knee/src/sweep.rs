//! `knee sweep`.

use crate::{COMMIT, JOBS, integer, output};
use knee_lab::pipeline::in_parallel;
use knee_model::Host;
use knee_sim::Simulator;
use knee_study::{DataSet, Plan, Slice, Study, StudyError, Written};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    flag,
};
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

const EXAMPLES: &str = "\
A small study (docs/reference/study.md has all keys):
  scenario = \"base.toml\"
  repeat = 4
  [axes]
  path.loss_forward = [0, 0.001, 0.01]
  path.rtt = { from = \"10ms\", to = \"200ms\", steps = 8, scale = \"log\" }
  flow.0.cc = [\"chd\", \"newreno\"]

Examples:
  knee sweep study.toml --out data
      all runs, on all cores; after an interruption run the same command again
  knee sweep study.toml --out data --shard 1/8
      an eighth of them, for the first of eight jobs
  knee sweep plan study.toml --slurm 8 --out data | sbatch
      those eight jobs, on a Slurm cluster";

#[derive(clap::Args)]
#[command(
    after_long_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// The study: a TOML file
    #[arg(required = true)]
    study: Option<PathBuf>,
    /// Folder of the data set; finished shards there are not run again
    #[arg(long, value_name = "DIR", required = true)]
    out: Option<PathBuf>,
    /// Number of shards at once; default: one per core
    #[arg(long, value_name = "N", value_parser = integer::<usize>(JOBS), allow_hyphen_values = true)]
    jobs: Option<usize>,
    /// Run only part I of N equal parts
    #[arg(long, value_name = "I/N", value_parser = slice)]
    shard: Option<Slice>,
}

#[derive(clap::Subcommand)]
enum What {
    /// Check a study and show its runs, or print a script of jobs for a Slurm cluster
    Plan {
        /// The study: a TOML file
        study: PathBuf,
        /// Print a script for sbatch: an array of N jobs
        #[arg(long, value_name = "N", value_parser = integer::<usize>(1..=100_000), requires = "out")]
        slurm: Option<usize>,
        /// Folder of the data set, for the script
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Show how much of a data set is finished
    Status {
        /// Folder of the data set
        data: PathBuf,
    },
    /// Merge parts that were run in several folders
    Merge {
        /// The study: a TOML file
        study: PathBuf,
        /// Folders of the parts
        #[arg(required = true)]
        parts: Vec<PathBuf>,
        /// Folder of the data set
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

fn slice(text: &str) -> Result<Slice, String> {
    let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    parts
        .and_then(|(index, of)| Slice::new(index, of))
        .ok_or_else(|| "write a part as I/N, from 1/N to N/N".to_owned())
}

pub(crate) fn sweep(args: &Args) -> Result<ExitCode> {
    match &args.what {
        None => run(args),
        Some(What::Plan { study, slurm, out }) => show_plan(study, *slurm, out.as_deref()),
        Some(What::Status { data }) => status(data),
        Some(What::Merge { study, parts, out }) => merge(study, parts, out),
    }
}

fn plan_of(study: &Path) -> Result<Plan> {
    let study = Study::load(study)?;
    study.notes.iter().for_each(|note| output::tell(note));
    Ok(Plan::new(study, &Simulator, COMMIT)?)
}

fn run(args: &Args) -> Result<ExitCode> {
    let (Some(study), Some(out)) = (&args.study, &args.out) else {
        return Err(miette!("name a study, and a folder with --out"));
    };
    let plan = plan_of(study)?;
    let slice = args.shard.unwrap_or(Slice::WHOLE);
    let data = DataSet::open(out, &plan, slice)?;
    let missing = data.missing(&plan);
    let (stop, signal) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    for number in [SIGINT, SIGTERM] {
        // The second one ends at once: no file is ever half-written.
        flag::register_conditional_default(number, Arc::clone(&stop))
            .and_then(|_| flag::register_usize(number, Arc::clone(&signal), number as usize))
            .and_then(|_| flag::register(number, Arc::clone(&stop)))
            .into_diagnostic()
            .wrap_err("cannot listen for signals")?;
    }
    let written = match write_shards(&plan, &missing, out, args.jobs, &stop) {
        Err(StudyError::Stopped) => {
            output::tell(
                "stopped; run the same command again to resume: finished shards are not run again",
            );
            let number = u8::try_from(signal.load(Ordering::Relaxed)).unwrap_or(0);
            return Ok(ExitCode::from(128 + number));
        }
        result => result?,
    };
    let complete = data.finish(&plan);
    let status = data.status()?;
    let mut text = format!(
        "{} in {}; {} from before; the data set has {} of {} runs, {:.1} MB: {}\n",
        count_of(written.iter().map(|w| w.runs).sum(), "run"),
        count_of(missing.len() as u64, "shard"),
        count_of((status.shards - missing.len().min(status.shards)) as u64, "shard"),
        status.runs,
        status.runs_all,
        status.bytes as f64 / 1e6,
        out.display()
    );
    if !complete {
        text += "it is complete once the other parts are\n";
    }
    output::print(&text)?;
    let failed = written.iter().map(|w| w.failed).sum();
    if failed > 0 {
        let failed = count_of(failed, "run");
        output::tell(&format!("{failed} failed: column `failed` says why"));
        return Ok(ExitCode::from(1));
    }
    Ok(ExitCode::SUCCESS)
}

/// Carries out `shards`, several at a time.
fn write_shards(
    plan: &Plan,
    shards: &[usize],
    out: &Path,
    jobs: Option<usize>,
    stop: &AtomicBool,
) -> Result<Vec<Written>, StudyError> {
    let runs: u64 = shards.iter().map(|n| plan.shards[*n].runs()).sum();
    let (progress, done) = (output::Progress::new(Simulator.doing()), AtomicU64::new(0));
    let count = |n| {
        let done = done.fetch_add(n, Ordering::Relaxed) + n;
        progress.at(done as f64, runs as usize);
    };
    count(0);
    // All shards are of the same size.
    in_parallel(jobs, &vec![1.0; shards.len()], |n| {
        let written = plan.write_shard(shards[n], out, &Simulator, stop, &count);
        // After an error the other shards end.
        stop.fetch_or(written.is_err(), Ordering::Relaxed);
        written
    })
}

fn show_plan(path: &Path, slurm: Option<usize>, out: Option<&Path>) -> Result<ExitCode> {
    let plan = plan_of(path)?;
    if let (Some(jobs), Some(out)) = (slurm, out) {
        return output::print(&script(&plan, path, jobs, out));
    }
    let study = &plan.study;
    let points = study.check_all()?;
    let mut text = format!(
        "{}: {}, {}\n",
        count_of(study.runs, "run"),
        count_of(points, "point"),
        count_of(study.repeat(), "repetition")
    );
    for column in study.columns() {
        let (first, last) = (column.labels.first(), column.labels.last());
        let ends = first.zip(last).map_or_else(String::new, |(a, b)| format!("{a} ... {b}"));
        let values = count_of(column.labels.len() as u64, "value");
        text += &format!("  {}: {values}, {ends}\n", column.key);
    }
    let shards = &plan.shards;
    text += &format!(
        "{}, about {:.0} s of one core each, {:.0} s in all\n",
        count_of(shards.len() as u64, "shard"),
        plan.estimate_s() / shards.len().max(1) as f64,
        plan.estimate_s()
    );
    output::print(&text)
}

/// A shell's word.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

/// A job script. Each job takes every N-th shard; the one that ends last completes the data set.
fn script(plan: &Plan, study: &Path, jobs: usize, out: &Path) -> String {
    let jobs = jobs.min(plan.shards.len());
    let name = study.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name: String = name.chars().filter(|c| plain(*c)).collect();
    // Three times what is estimated, and time to start.
    let minutes = (plan.estimate_s() * 3.0 / jobs as f64 / 60.0).ceil() as u64 + 10;
    let (study, out) = (quoted(study), quoted(out));
    format!(
        "#!/bin/sh\n\
         #SBATCH --job-name=knee-{name}\n\
         #SBATCH --array=1-{jobs}\n\
         #SBATCH --cpus-per-task=1\n\
         #SBATCH --time={minutes}\n\
         #SBATCH --requeue\n\
         # {} runs in {} shards. A job that is killed and queued again resumes.\n\
         exec knee sweep {study} --out {out} --jobs 1 --shard \"$SLURM_ARRAY_TASK_ID/{jobs}\"\n",
        plan.study.runs,
        plan.shards.len(),
    )
}

fn status(folder: &Path) -> Result<ExitCode> {
    let status = DataSet::reading(folder)?.status()?;
    let title = status.title.map_or_else(String::new, |title| format!("{title}\n"));
    let complete = if status.complete { "complete" } else { "not complete" };
    output::print(&format!(
        "{title}{} of {} runs, {} of {} shards, {:.1} MB: {complete}\n",
        status.runs,
        status.runs_all,
        status.shards,
        status.shards_all,
        status.bytes as f64 / 1e6
    ))
}

fn merge(study: &Path, parts: &[PathBuf], out: &Path) -> Result<ExitCode> {
    let plan = plan_of(study)?;
    let data = DataSet::open(out, &plan, Slice::WHOLE)?;
    let added = data.merge(&plan, parts)?;
    let complete = data.finish(&plan);
    let missing = data.missing(&plan).len();
    let rest = match complete {
        true => "the data set is complete".to_owned(),
        false => format!("{missing} are missing: `knee sweep` runs them"),
    };
    output::print(&format!("{added} shards added; {rest}: {}\n", out.display()))
}

/// `1 run`, `2 runs`.
fn count_of(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}
