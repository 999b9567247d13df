//! `knee duel`.

use crate::{
    COMMIT, Format, REPEAT, bench,
    hosts::{self, OneHost},
    integer, made_by,
    noise::Noise,
    output,
    run::tell_notes,
};
use knee_lab::{
    duel::{
        Common, Contest, DuelSummary, Entrant, Fought, Plan, Setting, WrittenPath, duel_report,
        duel_text, write_duel,
    },
    pipeline::Runner,
};
use knee_model::Ns;
use miette::{Result, miette};
use std::{path::PathBuf, process::ExitCode};

const EXAMPLES: &str = "\
Examples:
  knee duel chd newreno
  knee duel chd:qth=20ms chd:qth=40ms --path 10mbit,100ms,84p --repeat 20
  knee duel ftcp newreno --path 100mbit,40ms,2bdp,loss=0.001 --out results
  knee duel chd kernel:cubic --path 50mbit,40ms,20ms --repeat 3 --host kernel

docs/reference/duel-json.md defines every metric.";

/// Options of a contest.
#[derive(clap::Args)]
pub(crate) struct Given {
    /// Length of a run; the second flow starts after a twelfth; the first third is not measured
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = bench::time, allow_hyphen_values = true)]
    duration: Ns,
    /// Seed of the first repetition; the next ones count up from it
    #[arg(long, value_name = "N", default_value = "1", value_parser = integer::<u64>(0..=i64::MAX as u64), allow_hyphen_values = true)]
    seed: u64,
    #[command(flatten)]
    pub(crate) noise: Noise,
    #[command(flatten)]
    pub(crate) on: OneHost,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

impl Given {
    /// The contest of `entrants` on `paths`, each run repeated so often.
    pub(crate) fn contest(
        &self,
        entrants: Vec<Entrant>,
        paths: Vec<WrittenPath>,
        repeat: u32,
    ) -> Result<Contest> {
        let noise_ns = self.noise.most_ns();
        let plan = Plan { duration_ns: self.duration, repeat, seed: self.seed, noise_ns };
        paths.iter().try_for_each(|path| plan.check(path)).map_err(|e| miette!("{e}"))?;
        Ok(Contest { entrants, paths, plan })
    }

    pub(crate) fn common(&self, plan: &Plan) -> Common {
        Common::new(plan, self.on.host.name(), COMMIT)
    }
}

/// Value of `--path` unless one is given.
pub(crate) const DEFAULT_PATH: &str = "100mbit,40ms,1bdp";

#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// An algorithm, with parameters if needed: chd, chd:qth=20ms:qmin=5ms
    #[arg(value_name = "A", value_parser = Entrant::parse)]
    a: Entrant,
    /// The other algorithm; may be the same
    #[arg(value_name = "B", value_parser = Entrant::parse)]
    b: Entrant,
    /// Rate, RTT and queue; the queue in BDPs (1bdp), packets (84p), bytes (100kB) or time (20ms);
    /// ,loss=0.01 adds random loss
    #[arg(long, default_value = DEFAULT_PATH, value_parser = WrittenPath::parse, allow_hyphen_values = true)]
    path: WrittenPath,
    /// Repetitions of each run
    #[arg(long, value_name = "N", default_value = "10", value_parser = integer::<u32>(REPEAT), allow_hyphen_values = true)]
    repeat: u32,
    /// Write all results to this new folder: duel.json, runs.parquet, scenarios, report.html
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    given: Given,
}

pub(crate) fn duel(args: &Args) -> Result<ExitCode> {
    let given = &args.given;
    let (entrants, pair) = match args.a.cc == args.b.cc {
        true => (vec![args.a.clone()], (0, 0)),
        false => (vec![args.a.clone(), args.b.clone()], (0, 1)),
    };
    let contest = given.contest(entrants, vec![args.path], args.repeat)?;
    // Refused now rather than after the work.
    let results = args.out.as_deref().map(output::new_results).transpose()?;
    let fought = fight(&contest, given, &contest.settings(false)?, true)?;
    let outcome = &fought.outcome;
    let summary = DuelSummary::new(given.common(&contest.plan), outcome, pair);
    let mut kept = None;
    if let Some(results) = results {
        let mut report = duel_report(&summary, outcome, &fought.charted);
        report.meta.extend(made_by(given.on.host.name()));
        report.meta.extend(given.noise.meta());
        write_duel(&results, &summary, outcome, &fought.charted, &report)?;
        kept = Some(results.finish()?);
    }
    output::show(given.format, &summary, || duel_text(&summary, output::width()))?;
    tell_notes(&fought.notes);
    given.noise.tell();
    output::tell_kept("results", kept.as_deref());
    Ok(ExitCode::SUCCESS)
}

/// Makes the runs of `contest` and shows the progress; see [`Contest::run`].
pub(crate) fn fight(
    contest: &Contest,
    given: &Given,
    settings: &[Setting],
    draw: bool,
) -> Result<Fought> {
    let (host, options) = (given.on.host, given.on.options()?);
    let progress = output::Progress::new(host.doing());
    let runner =
        Runner { progress: &|done, all| progress.at(done, all), ..Runner::new(&*host, &options) };
    contest.run(&runner, settings, draw).map_err(hosts::report)
}
