//! A duration on the command line.

use knee_scenario::units::TIME;
use std::time::Duration;

/// A duration above 0.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let ns = TIME.parse(text).map_err(|e| format!("{e}; {}", e.remedy))?;
    if ns == 0 { Err("must be more than 0".to_owned()) } else { Ok(Duration::from_nanos(ns)) }
}
