//! Runs in a process of their own, for the lab and for the Python package, which lacks hosts. The process can
//! be ended at any moment, whatever its host does, and leaves nothing behind: its namespaces, devices, loaded
//! algorithms and virtual machine end with it.
//!
//! The specs are its standard input; its standard output has reports of progress and, at the end, the records.
//! Both begin with a line that names the build, and continue with messages, each after its length.

use crate::{ITSELF, hosts::OneHost, registry::RUN_APART, run::run_all};
use knee_model::{CallRecord, HostError, Progress, RunRecord, RunSpec};
use miette::{IntoDiagnostic, Result, miette};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    io::{self, BufRead, BufReader, BufWriter, Read, Write, stdin, stdout},
    iter,
    process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio, exit},
    slice,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// A report waits no longer than this for the next one.
const FLUSH_EVERY: Duration = Duration::from_millis(50);

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    on: OneHost,
    /// Report the progress of a single run, and end when the standard input ends
    #[arg(long)]
    followed: bool,
}

/// A message of the process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Said {
    Told(Progress),
    Ended(Box<Made>),
}

/// A record, and the calls of each flow's algorithm.
pub type WithCalls = (RunRecord, Vec<Vec<CallRecord>>);

/// Results of the specs.
#[derive(Debug, Serialize, Deserialize)]
pub struct Made {
    /// Record of each spec; or the first obstacle.
    pub records: Result<Vec<WithCalls>, HostError>,
    /// Versions that made them, see [`knee_model::Host::made_with`].
    pub made_with: Vec<(String, String)>,
}

/// The input of a process that is to run `specs`.
///
/// # Errors
/// They cannot be written.
pub fn question(specs: &[RunSpec]) -> io::Result<Vec<u8>> {
    let mut input = greeting().into_bytes();
    send(&mut input, &specs)?;
    Ok(input)
}

/// The results in the output of a process.
///
/// # Errors
/// There are none, or they are from a program of other sources, in words.
pub fn answer(output: &[u8]) -> Result<Made, String> {
    let made = said(output)?.find_map(|said| match said {
        Said::Ended(made) => Some(*made),
        Said::Told(_) => None,
    });
    made.ok_or_else(|| NO_ANSWER.to_owned())
}

const NO_ANSWER: &str = "the other program gave no answer";

/// The messages in the output of a process.
///
/// # Errors
/// It is from a program of other sources, in words.
pub(crate) fn said(mut output: impl BufRead) -> Result<impl Iterator<Item = Said>, String> {
    greeted(&mut output)?;
    Ok(iter::from_fn(move || receive(&mut output).ok()))
}

/// The first line of input and output: programs of other sources do not understand each other.
fn greeting() -> String {
    format!("knee {} {}\n", knee_study::VERSION, knee_study::ENGINE)
}

fn greeted(from: &mut impl BufRead) -> Result<(), String> {
    let (mut line, own) = (Vec::new(), greeting());
    let read = from.take(2 * own.len() as u64).read_until(b'\n', &mut line);
    read.map_err(|e| e.to_string())?;
    if line == own.as_bytes() {
        return Ok(());
    }
    Err(match String::from_utf8_lossy(&line).trim_end().strip_prefix("knee ") {
        Some(other) => format!("the other program is another build of Knee ({other})"),
        None => NO_ANSWER.to_owned(),
    })
}

fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let message = postcard::to_stdvec(message).map_err(io::Error::other)?;
    let bytes = u32::try_from(message.len()).map_err(io::Error::other)?;
    to.write_all(&bytes.to_le_bytes())?;
    to.write_all(&message)
}

fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes)?;
    let mut message = Vec::new();
    from.take(u32::from_le_bytes(bytes).into()).read_to_end(&mut message)?;
    postcard::from_bytes(&message).map_err(io::Error::other)
}

/// The process of a run.
pub(crate) struct Apart {
    child: Child,
    /// Its end tells the process that this one is gone.
    _input: ChildStdin,
}

impl Apart {
    /// Runs `spec` on `host`. Also returns the output of the process.
    pub(crate) fn start(host: &str, spec: &RunSpec) -> io::Result<(Self, BufReader<ChildStdout>)> {
        let itself = ITSELF.get().ok_or_else(|| io::Error::other("no program"))?;
        let mut child = Command::new(&itself[0])
            .args(&itself[1..])
            .args([RUN_APART, "--followed", "--host", host])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("no pipes"));
        };
        // If the process has ended, the reader learns of that.
        let _ = input.write_all(&question(slice::from_ref(spec))?);
        Ok((Self { child, _input: input }, BufReader::new(output)))
    }
}

/// Ends the process, wherever it is.
impl Drop for Apart {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The process.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut input = stdin().lock();
    greeted(&mut input).map_err(|e| {
        let help = "it is for the lab and the Python package, of the same version";
        miette!(help = help, "{e}")
    })?;
    let specs: Vec<RunSpec> = receive(&mut input).into_diagnostic()?;
    drop(input);
    let out = Mutex::new((BufWriter::new(stdout()), Instant::now()));
    let say = |said: &Said, at_once: bool| {
        let (out, flushed) = &mut *out.lock().unwrap_or_else(PoisonError::into_inner);
        send(out, said)?;
        if at_once || flushed.elapsed() >= FLUSH_EVERY {
            out.flush()?;
            *flushed = Instant::now();
        }
        io::Result::Ok(())
    };
    stdout().write_all(greeting().as_bytes()).into_diagnostic()?;
    let (host, options) = (args.on.host, args.on.options()?);
    let records = match &specs[..] {
        [spec] if args.followed => {
            thread::spawn(|| {
                // Nothing more comes: whoever asked is gone, and nobody wants the run.
                let _ = io::copy(&mut stdin().lock(), &mut io::sink());
                exit(1);
            });
            let tell = |progress| drop(say(&Said::Told(progress), false));
            host.run_with_progress(spec, &options, &tell).map(|record| vec![record])
        }
        specs => run_all(host, specs, &options),
    };
    let with_calls = |mut record: RunRecord| {
        let calls = record.flows.iter_mut().map(|flow| std::mem::take(&mut flow.trace)).collect();
        (record, calls)
    };
    let made_with = host.made_with(&options).into_iter();
    let made = Made {
        records: records.map(|records| records.into_iter().map(with_calls).collect()),
        made_with: made_with.map(|(name, value)| (name.to_owned(), value)).collect(),
    };
    say(&Said::Ended(Box::new(made)), true).into_diagnostic()?;
    Ok(ExitCode::SUCCESS)
}
