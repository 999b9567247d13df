//! `knee reproduce`.

use crate::{COMMIT, Format, Host, interrupt, output};
use knee_lab::{
    reproduce::{Reproduction, Wanted, as_recorded, available, claims, reproduce as run, write},
    store::ResultWriter,
};
use miette::{IntoDiagnostic, Result, WrapErr};
use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::OnceLock,
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// chd, delay-aimd, htcp, ftcp, hd, or all
    paper: String,
    /// Only this figure
    #[arg(long, value_name = "N")]
    figure: Option<String>,
    /// Repetitions instead of the scenarios' own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeat: Option<u32>,
    /// Threads; default: one per core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// What runs the scenarios
    #[arg(long, value_enum, default_value = "sim")]
    host: Host,
    /// New folder for report, claims and figures; default: the next free one in knee-out/
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How to print the verdicts
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

pub(crate) fn reproduce(args: &Args) -> Result<ExitCode> {
    let papers = match args.paper.as_str() {
        "all" => available(),
        one => vec![one],
    };
    let wanted = Wanted {
        figure: args.figure.clone(),
        repeat: args.repeat,
        jobs: args.jobs.map(usize::from),
    };
    // Refused now rather than after the work.
    let out = match &args.out {
        Some(out) => out.clone(),
        None => next_free(&args.paper)?,
    };
    let results = ResultWriter::create(&out)?;
    interrupt::abandons(results.abandon())?;
    let reproductions = papers
        .iter()
        .map(|paper| one(paper, &wanted, args.host))
        .collect::<Result<Vec<Reproduction>>>()?;
    let fact = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let meta = vec![
        fact("Host", args.host.name()),
        fact("Knee", env!("CARGO_PKG_VERSION")),
        fact("Commit", COMMIT.unwrap_or("unknown")),
    ];
    write(&reproductions, meta, &results)?;
    let path = results.finish()?;
    match args.format {
        Format::Json => output::print_json(&claims(&reproductions))?,
        Format::Table => {
            let texts = reproductions.iter().map(|r| r.to_text(output::width()));
            output::print(&texts.collect::<Vec<_>>().join("\n"))?
        }
    };
    eprintln!("report: {}", path.join("report.html").display());
    Ok(if as_recorded(&reproductions) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn one(paper: &str, wanted: &Wanted, host: Host) -> Result<Reproduction> {
    let bar = OnceLock::new();
    let progress = |done, total| {
        bar.get_or_init(|| output::Progress::new(total, "simulating")).done(done);
    };
    Ok(run(paper, wanted, host.name(), &move |spec| host.run(spec), &progress)?)
}

/// `knee-out/NAME`, or the first of `NAME-2`, `NAME-3`, ... that does not exist.
fn next_free(name: &str) -> Result<PathBuf> {
    let parent = Path::new("knee-out");
    fs::create_dir_all(parent)
        .into_diagnostic()
        .wrap_err("cannot make the folder knee-out here; name another place with --out")?;
    let numbered = (2..).map(|n| format!("{name}-{n}"));
    let mut names = [name.to_owned()].into_iter().chain(numbered).map(|n| parent.join(n));
    Ok(names.find(|p| fs::symlink_metadata(p).is_err()).unwrap_or_else(|| parent.join(name)))
}
