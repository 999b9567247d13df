//! A run in a process of its own. It can be ended at any moment, whatever its host does, and leaves nothing
//! behind: its namespaces, devices, loaded algorithms and virtual machine end with its process.

use crate::{ITSELF, hosts::OneHost};
use knee_model::{HostError, Progress, RunOptions, RunRecord};
use knee_web::spec_to_draw;
use miette::{IntoDiagnostic, Result, miette};
use serde::{Deserialize, Serialize};
use std::{
    io::{self, BufReader, BufWriter, Read, Write, stdin, stdout},
    process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio, exit},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// The command's name; nobody means it by accident.
pub(crate) const COMMAND: &str = "run-apart";

/// Rows that are told wait no longer than this for the next one.
const FLUSH_EVERY: Duration = Duration::from_millis(50);

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    on: OneHost,
}

/// Message about the run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Said {
    Told(Progress),
    Ended(Box<Result<RunRecord, HostError>>),
}

/// The process that runs.
pub(crate) struct Apart {
    child: Child,
    /// Its end tells the process that this one is gone.
    _input: ChildStdin,
}

/// Messages from the process.
pub(crate) struct Heard(BufReader<ChildStdout>);

impl Apart {
    /// Runs the scenario `text` as the lab does, on `host`.
    pub(crate) fn start(host: &str, text: &str) -> io::Result<(Self, Heard)> {
        let itself = ITSELF.get().ok_or_else(|| io::Error::other("no program"))?;
        let mut child = Command::new(&itself[0])
            .args(&itself[1..])
            .args([COMMAND, "--host", host])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("no pipes"));
        };
        // If the process has ended, the reader learns of that.
        let _ = send(&mut input, text.as_bytes());
        Ok((Self { child, _input: input }, Heard(BufReader::new(output))))
    }

    /// Ends it, wherever it is.
    pub(crate) fn end(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.end();
    }
}

impl Heard {
    /// The next thing that it says; none: it has ended.
    pub(crate) fn next(&mut self) -> Option<Said> {
        let message = receive(&mut self.0).ok()?;
        postcard::from_bytes(&message).ok()
    }
}

fn send(to: &mut impl Write, message: &[u8]) -> io::Result<()> {
    let bytes = u32::try_from(message.len()).map_err(io::Error::other)?;
    to.write_all(&bytes.to_le_bytes())?;
    to.write_all(message)
}

fn receive(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes)?;
    let bytes = u64::from(u32::from_le_bytes(bytes));
    let mut message = Vec::new();
    from.take(bytes).read_to_end(&mut message)?;
    match message.len() as u64 == bytes {
        true => Ok(message),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// The other side.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let text = receive(&mut stdin().lock()).into_diagnostic()?;
    let text = String::from_utf8(text).into_diagnostic()?;
    thread::spawn(|| {
        // Nothing more comes: whoever asked is gone, and nobody wants the run.
        let _ = io::copy(&mut stdin().lock(), &mut io::sink());
        exit(1);
    });
    let spec = spec_to_draw(&text).map_err(|refusal| miette!("{}", refusal.error))?;
    let out = Mutex::new((BufWriter::new(stdout()), Instant::now()));
    let say = |said: &Said, at_once: bool| {
        let message = postcard::to_stdvec(said).map_err(io::Error::other)?;
        let (out, flushed) = &mut *out.lock().unwrap_or_else(PoisonError::into_inner);
        send(out, &message)?;
        if at_once || flushed.elapsed() >= FLUSH_EVERY {
            out.flush()?;
            *flushed = Instant::now();
        }
        io::Result::Ok(())
    };
    let tell = |progress| drop(say(&Said::Told(progress), false));
    let ended = args.on.host.run_with_progress(&spec, &RunOptions::default(), &tell);
    say(&Said::Ended(Box::new(ended)), true).into_diagnostic()?;
    Ok(ExitCode::SUCCESS)
}
