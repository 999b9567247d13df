//! `knee vm matrix`.

use crate::{
    hosts,
    output::{self, Progress},
};
use knee_cc::{Algorithm, algorithm, algorithms};
use knee_conformance::transfer::{LOSS, SIZE_BYTES, Transferred, judge, spec};
use knee_model::{Host, HostError, HostErrorKind, RunOptions, RunRecord, RunSpec};
use knee_report::table::{Table, Tone};
use knee_vm::{KernelChoice, Vm, kernels::list};
use miette::{Result, miette};
use std::{cell::Cell, fmt::Write as _, process::ExitCode};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A kernel, as for --kernel of `knee run`; may be repeated [default: all in the cache]
    #[arg(long, value_name = "KERNEL")]
    kernel: Vec<KernelChoice>,
    /// This machine's own kernel too, in real time; needs root
    #[arg(long)]
    own: bool,
    /// An algorithm; may be repeated [default: all]
    #[arg(long, value_name = "NAME", value_parser = named)]
    algorithm: Vec<Algorithm>,
    /// Print Markdown
    #[arg(long)]
    markdown: bool,
}

fn named(name: &str) -> Result<Algorithm, String> {
    algorithm(name).ok_or_else(|| "not one of `knee list`".to_owned())
}

/// A kernel, and the result of each algorithm there.
struct Column {
    title: String,
    about: String,
    results: Vec<Result<Transferred, String>>,
}

pub(crate) fn matrix(args: &Args) -> Result<ExitCode> {
    let rows = if args.algorithm.is_empty() { algorithms() } else { &args.algorithm };
    let mut kernels = args.kernel.clone();
    if kernels.is_empty() {
        let cached = list().map_err(hosts::report)?.into_iter().filter_map(|l| l.cached);
        kernels.extend(cached.map(|kernel| kernel.choice));
    }
    if kernels.is_empty() && !args.own {
        let help = "`knee vm fetch debian:6.12` gets one; --own tries this machine's";
        return Err(miette!(help = help, "there is no kernel in the cache"));
    }
    let all = rows.len() * (kernels.len() + usize::from(args.own));
    let (progress, done) = (Progress::new("trying"), Cell::new(0_u32));
    let begin = || progress.at(done.replace(done.get() + 1).into(), all);
    let mut columns = Vec::new();
    let vm = Vm::new();
    for kernel in &kernels {
        let options = RunOptions { kernel: Some(kernel.to_string()), ..RunOptions::default() };
        let results = try_all(rows, &begin, &|spec| vm.run(spec, &options))?;
        let facts = vm.made_with(&options);
        let fact = |name| facts.iter().find(|(n, _)| *n == name).map(|(_, f)| f.clone());
        columns.push(Column {
            title: fact("kernel").unwrap_or_default(),
            about: format!("virtual time, {}", fact("kernel package").unwrap_or_default()),
            results,
        });
    }
    if args.own {
        // How late the path is makes no difference here.
        let run =
            |spec: &RunSpec| knee_testbed::run(spec, &knee_model::RunOptions::default(), None);
        columns.push(Column {
            title: nix::sys::utsname::uname()
                .map(|system| system.release().to_string_lossy().into_owned())
                .unwrap_or_default(),
            about: "real time, the machine's own".to_owned(),
            results: try_all(rows, &begin, &run)?,
        });
    }
    drop(progress);
    let failed = columns.iter().flat_map(|column| &column.results).any(Result::is_err);
    let text = if args.markdown { markdown(rows, &columns) } else { plain(rows, &columns) };
    output::print(&text)?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn try_all(
    rows: &[Algorithm],
    begin: &dyn Fn(),
    run: &dyn Fn(&RunSpec) -> Result<RunRecord, HostError>,
) -> Result<Vec<Result<Transferred, String>>> {
    let mut results = Vec::new();
    for algorithm in rows {
        begin();
        results.push(match run(&spec(*algorithm)) {
            Ok(record) => judge(*algorithm, &record),
            // A part that is missing for one algorithm is missing for all.
            Err(error) if error.kind == HostErrorKind::Unavailable => {
                return Err(hosts::report(error));
            }
            Err(error) => Err(error.to_string()),
        });
    }
    Ok(results)
}

/// Description of the test, as lines of Markdown.
fn about() -> String {
    format!(
        "Each kernel loads each algorithm, which then transfers {} MB over 10 Mbit/s, 40 ms and {} % random loss with a\n\
         trace. Knee compares every byte that arrives with the data sent, and makes every call again natively. A cell has\n\
         the number of instructions that the kernel's verifier examined in the largest program (its limit is a million),\n\
         and the number of calls that replay bit-identically.",
        SIZE_BYTES as f64 / 1e6,
        LOSS * 100.0
    )
}

fn cell(result: &Result<Transferred, String>) -> String {
    match result {
        Ok(Transferred { verified_instructions, calls }) => {
            format!("{verified_instructions}, {calls}")
        }
        Err(_) => "fails".to_owned(),
    }
}

/// Description of each failure.
fn failures(rows: &[Algorithm], columns: &[Column]) -> String {
    let mut text = String::new();
    for column in columns {
        for (algorithm, result) in rows.iter().zip(&column.results) {
            if let Err(why) = result {
                let _ = writeln!(text, "\n{} on {}: {why}", algorithm.name(), column.title);
            }
        }
    }
    text
}

fn plain(rows: &[Algorithm], columns: &[Column]) -> String {
    let mut titles = vec!["algorithm"];
    titles.extend(columns.iter().map(|column| column.title.as_str()));
    let mut table = Table::new("Verified instructions, replayed calls", &titles, &[]);
    for (i, algorithm) in rows.iter().enumerate() {
        let cells = columns.iter().map(|column| {
            let result = &column.results[i];
            let tone = if result.is_ok() { Tone::Good } else { Tone::Bad };
            knee_report::table::Cell::toned(cell(result), tone)
        });
        table.row([algorithm.name().into()].into_iter().chain(cells));
    }
    table.to_text(output::width()) + failures(rows, columns).as_str()
}

fn markdown(rows: &[Algorithm], columns: &[Column]) -> String {
    let mut text = "<!-- made by: knee vm matrix --own --markdown -->\n\n".to_owned();
    let _ = writeln!(text, "{}\n", about());
    text += "| kernel | how it was run | algorithms that pass |\n|---|---|---|\n";
    for Column { title, about, results } in columns {
        let passed = results.iter().filter(|result| result.is_ok()).count();
        let _ = writeln!(text, "| {title} | {about} | {passed} of {} |", results.len());
    }
    text += "\n| algorithm |";
    columns.iter().for_each(|column| text += &format!(" {} |", column.title));
    text += "\n|---|";
    columns.iter().for_each(|_| text += "---|");
    text += "\n";
    for (i, algorithm) in rows.iter().enumerate() {
        let _ = write!(text, "| `{}` |", algorithm.name());
        columns.iter().for_each(|column| text += &format!(" {} |", cell(&column.results[i])));
        text += "\n";
    }
    text + failures(rows, columns).as_str()
}
