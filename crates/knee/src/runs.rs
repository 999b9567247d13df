//! Runs for another program, which may not have the hosts that this one has: specs come in on standard
//! input, records go out on standard output.

use crate::{hosts::OneHost, run::run_all};
use knee_model::{CallRecord, HostError, RunRecord, RunSpec};
use miette::{IntoDiagnostic, Result, miette};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    io::{Read, Write, stdin, stdout},
    process::ExitCode,
};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    on: OneHost,
}

/// A record, and the calls of each flow's algorithm.
pub type WithCalls = (RunRecord, Vec<Vec<CallRecord>>);

/// Results of the specs.
#[derive(Debug, Serialize, Deserialize)]
pub struct Made {
    /// Record of each spec; or the first obstacle.
    pub records: std::result::Result<Vec<WithCalls>, HostError>,
    /// Versions that made them, see [`knee_model::Host::made_with`].
    pub made_with: Vec<(String, String)>,
}

/// Beginning of both messages: programs of other sources do not understand each other.
fn greeting() -> String {
    format!("knee {} {}\n", knee_study::VERSION, knee_study::ENGINE)
}

/// A message.
///
/// # Errors
/// In words.
pub fn message(content: &impl Serialize) -> std::result::Result<Vec<u8>, String> {
    let content = postcard::to_stdvec(content).map_err(|e| e.to_string())?;
    Ok([greeting().as_bytes(), &content].concat())
}

/// Contents of a message.
///
/// # Errors
/// It is none, or from a program of other sources.
pub fn content<T: DeserializeOwned>(message: &[u8]) -> std::result::Result<T, String> {
    let content = message.strip_prefix(greeting().as_bytes()).ok_or_else(|| {
        let first = message.split(|byte| *byte == b'\n').next().unwrap_or_default();
        match String::from_utf8_lossy(first).strip_prefix("knee ") {
            Some(other) => format!("the other program is another build of Knee ({other})"),
            None => "the other program gave no answer".to_owned(),
        }
    })?;
    postcard::from_bytes(content).map_err(|e| e.to_string())
}

pub(crate) fn runs(args: &Args) -> Result<ExitCode> {
    let mut asked = Vec::new();
    stdin().lock().read_to_end(&mut asked).into_diagnostic()?;
    let specs: Vec<RunSpec> = content(&asked).map_err(|e| {
        let help = "it is for the Python package, of the same version";
        miette!(help = help, "{e}")
    })?;
    let options = args.on.options()?;
    let made_with = args.on.host.made_with(&options);
    let records = run_all(args.on.host, &specs, &options).map(|records| {
        let with_calls = records.into_iter().map(|mut record| {
            let calls = record.flows.iter_mut().map(|flow| std::mem::take(&mut flow.trace));
            let calls = calls.collect();
            (record, calls)
        });
        with_calls.collect()
    });
    let made = Made {
        records,
        made_with: made_with.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    };
    let answer = message(&made).map_err(|e| miette!("{e}"))?;
    let mut out = stdout().lock();
    out.write_all(&answer).into_diagnostic()?;
    // As a library in Python, nothing else does it at the end.
    out.flush().into_diagnostic()?;
    Ok(ExitCode::SUCCESS)
}
