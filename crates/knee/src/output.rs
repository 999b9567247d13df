//! Printing, and progress of long work.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use miette::{IntoDiagnostic, Result, WrapErr};
use serde::Serialize;
use std::{
    io::{self, ErrorKind, IsTerminal, Write},
    process::ExitCode,
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    thread,
    time::Duration,
};

/// Prints to standard output. A reader that has gone away is no error.
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

/// Prints a line to standard error. If that cannot be had, there is nobody to tell.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Width of the terminal; none if there is no terminal.
pub(crate) fn width() -> Option<u16> {
    if !io::stdout().is_terminal() {
        return None;
    }
    terminal_size::terminal_size().map(|(width, _)| width.0)
}

/// A progress bar that shows itself only on a terminal and only after two seconds.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Dropped: the work ended before the bar was worth showing.
    _ended: Sender<()>,
}

impl Progress {
    pub(crate) fn new(total: usize, what: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::hidden());
        let template = "{msg} {wide_bar} {pos}/{len}, {elapsed} of about {duration}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
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

    pub(crate) fn done(&self, runs: usize) {
        self.bar.set_position(runs as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
