//! Printing, and progress of long work.

use crate::{Format, interrupt};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use knee_results::store::ResultWriter;
use miette::{IntoDiagnostic, Result, WrapErr};
use serde::Serialize;
use std::{
    fmt, fs,
    io::{self, ErrorKind, IsTerminal, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        OnceLock,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread,
    time::Duration,
};

/// Prints to standard output. A closed pipe is not an error.
pub(crate) fn print(text: &str) -> Result<ExitCode> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(e).into_diagnostic().wrap_err("cannot write to standard output")
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Prints `value` as indented JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<ExitCode> {
    let text = serde_json::to_string_pretty(value).into_diagnostic()?;
    print(&format!("{text}\n"))
}

/// Prints a result in the wanted format.
pub(crate) fn show(
    format: Format,
    json: &impl Serialize,
    text: impl FnOnce() -> String,
) -> Result<ExitCode> {
    match format {
        Format::Json => print_json(json),
        Format::Table => print(&text()),
    }
}

/// Prints a line to standard error, and ignores a failure to do so.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Says where something was kept, if it was.
pub(crate) fn tell_kept(what: &str, kept: Option<&Path>) {
    if let Some(path) = kept {
        tell(&format!("{what}: {}", path.display()));
    }
}

/// Width of the terminal; none if there is no terminal.
pub(crate) fn width() -> Option<u16> {
    if !io::stdout().is_terminal() {
        return None;
    }
    terminal_size::terminal_size().map(|(width, _)| width.0)
}

/// The new folder `out` for results; a signal that ends the program removes it.
pub(crate) fn new_results(out: &Path) -> Result<ResultWriter> {
    let results = ResultWriter::create(out)?;
    interrupt::abandons(vec![results.abandon()])?;
    Ok(results)
}

/// Folder of results without --out.
const DEFAULT_PARENT: &str = "knee-out";

/// Does `work` with a results folder: `out`, or the next free one in knee-out/ called `name`. An
/// impossible one is refused before the work.
pub(crate) fn with_results<T>(
    out: Option<&Path>,
    name: &str,
    work: impl FnOnce(ResultWriter) -> Result<T>,
) -> Result<T> {
    let place = || match out {
        Some(out) => Ok(out.to_owned()),
        None => next_free(name),
    };
    let result = place().and_then(|out| work(new_results(&out)?));
    if result.is_err() && out.is_none() {
        // Made for nothing, if it is empty.
        let _ = fs::remove_dir(DEFAULT_PARENT);
    }
    result
}

/// `knee-out/NAME`, or the first of `NAME-2`, `NAME-3`, ... that does not exist.
fn next_free(name: &str) -> Result<PathBuf> {
    let parent = Path::new(DEFAULT_PARENT);
    fs::create_dir_all(parent)
        .into_diagnostic()
        .wrap_err("cannot create the folder knee-out here; name another place with --out")?;
    let numbered = (2..).map(|n| format!("{name}-{n}"));
    let mut names = [name.to_owned()].into_iter().chain(numbered).map(|n| parent.join(n));
    Ok(names.find(|p| fs::symlink_metadata(p).is_err()).unwrap_or_else(|| parent.join(name)))
}

/// Steps of the progress bar for each run.
const STEPS: u64 = 1000;

/// A progress bar that shows itself only on a terminal, and only two seconds after the first report.
pub(crate) struct Progress {
    what: &'static str,
    shown: OnceLock<Shown>,
}

struct Shown {
    bar: ProgressBar,
    /// Dropped: the work ended before the bar was worth showing.
    _ended: Sender<()>,
}

impl Progress {
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what, shown: OnceLock::new() }
    }

    /// Reports that `done` of `all` runs are finished; a part of a run counts too.
    pub(crate) fn at(&self, done: f64, all: usize) {
        let shown = self.shown.get_or_init(|| Shown::new(self.what, all));
        shown.bar.set_position((done * STEPS as f64) as u64);
    }
}

impl Shown {
    fn new(what: &'static str, runs: usize) -> Self {
        let steps = runs as u64 * STEPS;
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        let template = "{msg} {wide_bar} {runs}, {elapsed} of about {duration}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            let runs = |state: &ProgressState, to: &mut dyn fmt::Write| {
                let done = state.pos() / STEPS;
                // A bar that cannot be drawn is no error.
                let _ = write!(to, "{done}/{}", state.len().unwrap_or_default() / STEPS);
            };
            bar.set_style(style.with_key("runs", runs));
        }
        bar.set_message(what);
        let (ended, wait) = channel::<()>();
        let shown = bar.clone();
        thread::spawn(move || {
            if wait.recv_timeout(Duration::from_secs(2)) == Err(RecvTimeoutError::Timeout) {
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(Duration::from_millis(200));
            }
        });
        Self { bar, _ended: ended }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
