//! `knee man`.

use crate::Cli;
use clap::CommandFactory;
use miette::{IntoDiagnostic, Result, WrapErr};
use std::{fs, path::PathBuf, process::ExitCode};

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
