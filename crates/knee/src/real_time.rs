//! Runs on this machine's kernel.

use knee_run::{NS_PER_US, RunRecord, RunSpec};
use knee_testbed::{Options, run_with};
use std::{fs, path::Path};

/// Runs that turn out to be too late to be trusted before it is given up.
const ATTEMPTS: usize = 2;

/// Runs `spec`, again if the emulated path was late; its packets go to the new file `pcap`.
pub(crate) fn run(spec: &RunSpec, pcap: Option<&Path>) -> Result<RunRecord, String> {
    let options = Options { pcap: pcap.map(Path::to_owned), ..Options::default() };
    let mut late = String::new();
    for _ in 0..ATTEMPTS {
        let record = run_with(spec, &options).map_err(|e| e.to_string())?;
        let Some(real_time) = &record.real_time else { return Ok(record) };
        let lateness = real_time.lateness;
        if lateness.acceptable(spec.path.rtt_ns()) {
            return Ok(record);
        }
        if let Some(file) = pcap {
            fs::remove_file(file).map_err(|e| format!("{}: {e}", file.display()))?;
        }
        late = format!(
            "one packet in 1000 was late by {} us, one by {} us",
            lateness.p999_ns / NS_PER_US,
            lateness.max_ns / NS_PER_US
        );
    }
    Err(format!(
        "this machine was too slow for a trustworthy run, {ATTEMPTS} times: {late}; give fewer \
         --jobs, lower the rate, or leave the machine more time"
    ))
}
