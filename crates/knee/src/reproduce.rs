//! `knee reproduce`.

use crate::{
    Format, REPEAT,
    hosts::{AnyHost, Jobs, Named},
    integer, made_by,
    noise::Noise,
    output,
};
use clap::builder::PossibleValuesParser;
use knee_lab::{
    LabError,
    pipeline::Runner,
    reproduce::{
        Outcome, PAPERS, Reproduction, RunsOn, Wanted, claims, outcome, reproduce as run, write,
    },
};
use knee_model::RunOptions;
use knee_results::{kept::KeptRuns, store::ResultWriter};
use miette::{Result, miette};
use std::{iter, path::PathBuf, process::ExitCode};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The paper, or all
    #[arg(value_parser = papers())]
    paper: String,
    /// Judge only claims that need few runs, and make only those runs
    #[arg(long)]
    short: bool,
    /// Only this figure and its claims
    #[arg(long, value_name = "N")]
    figure: Option<String>,
    /// Only these claims (all: each of them), and on hosts other than the simulator only the runs that
    /// they use, without figures
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    claim: Vec<String>,
    /// Also the runs that the paper's files leave out on a host: interpretations that no claim uses
    #[arg(long)]
    all_values: bool,
    /// Number of repetitions (overrides the scenarios)
    #[arg(long, value_name = "N", value_parser = integer::<u32>(REPEAT), allow_hyphen_values = true)]
    repeat: Option<u32>,
    #[command(flatten)]
    noise: Noise,
    #[command(flatten)]
    jobs: Jobs,
    /// Hosts that run the scenarios, separated by commas; reports compare them
    #[arg(long, alias = "hosts", value_delimiter = ',', value_parser = Named, default_value = "sim")]
    host: Vec<AnyHost>,
    /// Keep finished kernel runs in this folder, and reuse those that this same build of Knee kept
    /// there on this kernel: an interrupted reproduction continues
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// New folder for report, claims and figures; default: the next free one in knee-out/
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Output format of the verdicts
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

fn papers() -> PossibleValuesParser {
    PossibleValuesParser::new(PAPERS.into_iter().chain(["all"]))
}

pub(crate) fn reproduce(args: &Args) -> Result<ExitCode> {
    output::with_results(args.out.as_deref(), &args.paper, |results| reproduced(args, results))
}

fn reproduced(args: &Args, results: ResultWriter) -> Result<ExitCode> {
    let papers = match args.paper.as_str() {
        "all" => PAPERS.to_vec(),
        one => vec![one],
    };
    let options = args.jobs.options(&args.host)?;
    let of_claims = match &args.claim[..] {
        [] => None,
        [all] if all == "all" => Some(Vec::new()),
        _ if papers.len() > 1 => {
            let help =
                "name one paper instead of `all`; for every claim of all papers, --claim all";
            return Err(miette!(help = help, "--claim needs one paper"));
        }
        named => Some(named.to_vec()),
    };
    let wanted = Wanted {
        figure: args.figure.clone(),
        claims: of_claims,
        short: args.short,
        all_values: args.all_values,
        sets: args.noise.set().into_iter().collect(),
    };
    let kept = args.keep.as_deref().map(KeptRuns::open).transpose().map_err(|e| miette!("{e}"))?;
    let mut reproductions = Vec::new();
    for paper in &papers {
        match one(paper, &wanted, args, &options, kept.as_ref()) {
            // Among several papers, those without the figure are left out.
            Err(LabError::NoFigure { .. }) if papers.len() > 1 => {}
            reproduction => reproductions.push(reproduction?),
        }
    }
    if let (true, Some(figure)) = (reproductions.is_empty(), &args.figure) {
        let help = "name a paper instead of `all` to see which figures it has";
        return Err(miette!(help = help, "no paper has a figure {figure}"));
    }
    let hosts: Vec<&str> = args.host.iter().map(|host| host.name()).collect();
    let hosts = hosts.join(", ");
    let meta = made_by(&hosts).into_iter().chain(args.noise.meta()).collect();
    write(&reproductions, meta, &results)?;
    let path = results.finish()?;
    output::show(args.format, &claims(&reproductions), || {
        let texts = reproductions.iter().map(|r| r.to_text(output::width()));
        texts.collect::<Vec<_>>().join("\n")
    })?;
    args.noise.tell();
    output::tell(&format!("report: {}", path.join("report.html").display()));
    Ok(match outcome(&reproductions) {
        Outcome::AsRecorded => ExitCode::SUCCESS,
        Outcome::Differs => ExitCode::FAILURE,
        Outcome::NotAllJudged => ExitCode::from(3),
    })
}

fn one(
    paper: &str,
    wanted: &Wanted,
    args: &Args,
    options: &RunOptions,
    kept: Option<&KeptRuns>,
) -> Result<Reproduction, LabError> {
    // Other hosts' verdicts are shown with the simulator's, which take seconds.
    let simulator = AnyHost::default();
    let mut others: Vec<AnyHost> = Vec::new();
    for host in args.host.iter().filter(|host| **host != simulator) {
        if !others.contains(host) {
            others.push(*host);
        }
    }
    let simulated = (simulator, args.repeat.filter(|_| others.is_empty()));
    let hosts: Vec<(AnyHost, Option<u32>)> =
        iter::once(simulated).chain(others.into_iter().map(|host| (host, args.repeat))).collect();
    let progress: Vec<output::Progress> =
        hosts.iter().map(|(host, _)| output::Progress::new(host.doing())).collect();
    let reports: Vec<_> = progress.iter().map(|p| |done, all| p.at(done, all)).collect();
    let hosts: Vec<RunsOn<'_>> = hosts
        .iter()
        .zip(&reports)
        .map(|((host, repeat), progress)| RunsOn {
            runner: Runner { host: &**host, options, kept, progress },
            repeat: *repeat,
        })
        .collect();
    run(paper, wanted, &hosts)
}
