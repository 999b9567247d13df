//! Ctrl-C and the like while results are being written.

use knee_results::store::Abandon;
use miette::{IntoDiagnostic, Result, WrapErr};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
    low_level::emulate_default_handler,
};
use std::thread;

/// On a signal to end, removes all unfinished results and then ends as the signal would have.
pub(crate) fn abandons(results: Vec<Abandon>) -> Result<()> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM]).into_diagnostic().wrap_err("cannot listen for signals")?;
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            results.iter().for_each(Abandon::now);
            // A shell sees that a signal ended the program: 130 for SIGINT, 143 for SIGTERM.
            let _ = emulate_default_handler(signal);
        }
    });
    Ok(())
}
