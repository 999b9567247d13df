//! Values on the command line of `knee bench`.

use knee_model::{NS_PER_S, Ns, QueueLimit};
use knee_scenario::units::{RATE, SIZE, TIME, UnitError, parse_queue};

fn said(error: &UnitError) -> String {
    format!("{error}; {}", error.remedy)
}

/// A value of 1 to `most`, in words an error.
fn within(value: u64, most: u64, shown: &str) -> Result<u64, String> {
    let fits = (1..=most).contains(&value);
    fits.then_some(value).ok_or_else(|| format!("write a value above 0, at most {shown}"))
}

/// A delay, which may be 0, in nanoseconds.
pub(crate) fn delay(text: &str) -> Result<Ns, String> {
    let most_ns = 1_000_000 * NS_PER_S;
    let delay_ns = TIME.parse(text).map_err(|e| said(&e))?;
    let fits = delay_ns <= most_ns;
    fits.then_some(delay_ns).ok_or_else(|| "write at most 1000000s".to_owned())
}

/// A duration, in nanoseconds.
pub(crate) fn time(text: &str) -> Result<Ns, String> {
    within(TIME.parse(text).map_err(|e| said(&e))?, 1_000_000 * NS_PER_S, "1000000s")
}

pub(super) fn rate(text: &str) -> Result<u64, String> {
    within(RATE.parse(text).map_err(|e| said(&e))?, 1_000_000_000_000, "1000gbit")
}

pub(super) fn queue(text: &str) -> Result<QueueLimit, String> {
    match parse_queue(text).map_err(|e| said(&e))? {
        QueueLimit::Packets(0) | QueueLimit::Bytes(0..1500) => {
            Err("write at least one packet: 1p or 1500B".to_owned())
        }
        limit => Ok(limit),
    }
}

pub(super) fn size(text: &str) -> Result<u64, String> {
    within(SIZE.parse(text).map_err(|e| said(&e))?, 5_000_000, "5MB")
}
