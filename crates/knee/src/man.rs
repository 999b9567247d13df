//! `knee man` and `knee markdown`.

use crate::{Cli, output, registry};
use clap::{Arg, ArgAction, Command, CommandFactory};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::{error::Error, fmt::Write, fs, path::PathBuf, process::ExitCode};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder; created if missing
    folder: PathBuf,
}

pub(crate) fn man(args: &Args) -> Result<ExitCode> {
    let folder = &args.folder;
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
        .into_diagnostic()
        .wrap_err_with(|| format!("cannot write manual pages into {}", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the reference of all commands. A build that lacks commands or hosts does not print it.
pub(crate) fn markdown() -> Result<ExitCode> {
    let missing = registry::help_on_missing();
    if !missing.is_empty() {
        let missing = missing.trim();
        return Err(miette!(help = missing, "this build of Knee lacks commands or hosts"));
    }
    let mut root = Cli::command();
    root.build();
    let mut page = String::new();
    for command in listed(&root) {
        section(&mut page, command, &[command.get_name()]).into_diagnostic()?;
    }
    output::print(page.trim_start())
}

/// Prints the keys of a table of the scenario file.
pub(crate) fn keys(table: &str) -> Result<ExitCode> {
    let tables = knee_scenario::table_names();
    let keys = knee_scenario::reference(table).ok_or_else(|| {
        let help = knee_scenario::known(table, "tables", &tables);
        miette!(help = help, "no such table: `{table}`")
    })?;
    output::print(&keys)
}

/// The commands that `--help` lists.
fn listed(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help")
}

/// The section of a command, then those of its subcommands. `words`: the words typed after `knee`.
fn section(page: &mut String, command: &Command, words: &[&str]) -> std::fmt::Result {
    let heading = "#".repeat(words.len() + 2);
    writeln!(page, "\n{heading} knee {}\n", words.join(" "))?;
    let about = command.get_long_about().or_else(|| command.get_about());
    for paragraph in about.map(ToString::to_string).unwrap_or_default().split("\n\n") {
        // Indented lines are commands.
        if paragraph.contains("\n  ") {
            writeln!(page, "```text\n{paragraph}\n```\n")?;
        } else {
            writeln!(page, "{}\n", sentence(paragraph))?;
        }
    }
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").replace("\n       ", "\n");
    writeln!(page, "```text\n{usage}\n```")?;
    table(page, "argument", words, command.get_positionals())?;
    table(page, "option", words, options(command))?;
    if let Some(after) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        writeln!(page, "\n```text\n{}\n```", after.to_string().trim())?;
    }
    for sub in listed(command) {
        section(page, sub, &[words, &[sub.get_name()]].concat())?;
    }
    Ok(())
}

/// The options, except `--help`.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| {
        !arg.is_positional() && !matches!(arg.get_action(), ArgAction::Help | ArgAction::HelpLong)
    })
}

fn table<'a>(
    page: &mut String,
    kind: &str,
    words: &[&str],
    arguments: impl Iterator<Item = &'a Arg>,
) -> std::fmt::Result {
    let mut rows = String::new();
    for arg in arguments.filter(|arg| !arg.is_hide_set()) {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let (meaning, mut default) = without_default(&help);
        let defaults: Vec<String> =
            arg.get_default_values().iter().map(|v| format!("`{}`", v.display())).collect();
        if !defaults.is_empty() && arg.get_action().takes_values() {
            default = defaults.join(", ");
        }
        writeln!(
            rows,
            "| `{}` | {} | {} | {} |",
            shown(arg),
            cell(&sentence(meaning)),
            cell(&values(words, arg)),
            cell(&default)
        )?;
    }
    if rows.is_empty() {
        return Ok(());
    }
    write!(page, "\n| {kind} | meaning | values | default |\n|---|---|---|---|\n{rows}")
}

/// A help text, and the default that its end states.
fn without_default(help: &str) -> (&str, String) {
    let mut stated = [" [default: ", "; default: ", " (default: "].iter();
    let stated = stated.find_map(|begin| help.split_once(begin));
    stated.map_or((help, String::new()), |(meaning, default)| {
        (meaning, default.trim_end_matches([']', ')']).to_owned())
    })
}

/// An argument as it is typed: `--seed N`, `SCENARIO`.
fn shown(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let value = names.iter().map(|n| n.as_str()).collect::<Vec<_>>().join(" ");
    match arg.get_long() {
        None => value,
        Some(long) if arg.get_action().takes_values() => format!("--{long} {value}"),
        Some(long) => format!("--{long}"),
    }
}

/// The values of the argument: its possible ones, or its parser's message on text that is none.
fn values(words: &[&str], arg: &Arg) -> String {
    let possible = arg.get_possible_values();
    let possible: Vec<String> = possible
        .iter()
        .filter(|v| !v.is_hide_set())
        .map(|v| format!("`{}`", v.get_name()))
        .collect();
    // The algorithms.
    if possible.len() > 10 {
        return "a name from `knee list`, or a C file".to_owned();
    }
    if !possible.is_empty() && arg.get_action().takes_values() {
        return possible.join(", ");
    }
    let (Some(long), true) = (arg.get_long(), arg.get_action().takes_values()) else {
        return String::new();
    };
    let root = Cli::command();
    let typed = ["knee"].iter().chain(words).map(|word| (*word).to_owned());
    let typed = typed.chain([format!("--{long}=\u{1}")]);
    let said = root.try_get_matches_from(typed).err();
    let said = said.as_ref().and_then(|e| e.source()).map(ToString::to_string).unwrap_or_default();
    said.strip_prefix("write ").unwrap_or_default().to_owned()
}

/// Help texts end without a full stop.
fn sentence(text: &str) -> String {
    let text = text.trim().replace('<', "&lt;");
    if text.is_empty() || text.ends_with(['.', ':']) { text } else { format!("{text}.") }
}

/// Text that does not end a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
