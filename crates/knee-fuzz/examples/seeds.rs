//! Writes what the corpora of binary formats begin with, from simulated runs: calls of every algorithm,
//! a trace and a kept run. Needed again when one of these formats changes.

use knee_cc::{Ack, CallRecord, Conn, Params, Profile, algorithms};
use knee_fuzz::{Kept, corpora};
use knee_model::RecordSpec;
use knee_results::trace::{TraceFlow, TraceRow, TraceWriter};
use knee_scenario::{Scenario, Set};
use std::{error::Error, fs, path::Path};

/// A short life with everything in it: slow start, losses, timeouts, a pause.
const LIFE: &str = r#"
duration = "20s"
[path]
rate = "3mbit"
rtt = "60ms"
queue = "12p"
loss_forward = 0.01
[[flow]]
[[flow]]
cc = "newreno"
start = "3s"
stop = "9s"
"#;
/// Calls of an input: those after init, and these at a time from later on.
const CALLS: usize = 40;
/// Rows of a trace.
const ROWS: usize = 12;

fn write(path: &Path, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(path, bytes)?;
    println!("{}: {} bytes", path.display(), bytes.len());
    Ok(())
}

/// `struct cc_conn`, `struct cc_ack`: their bytes.
fn layout(conn: &Conn, ack: &Ack) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend([conn.now_us, conn.pacing_bytes_per_s].map(u64::to_ne_bytes).concat());
    bytes.extend(
        [
            conn.cwnd_pkts,
            conn.cwnd_cnt,
            conn.ssthresh_pkts,
            conn.cwnd_max_pkts,
            conn.mss_bytes,
            conn.inflight_pkts,
            conn.outstanding_pkts,
            conn.srtt_us,
            conn.snd_pos,
            conn.ack_pos,
            conn.notes,
        ]
        .map(u32::to_ne_bytes)
        .concat(),
    );
    bytes.extend([conn.phase, conn.cwnd_limited, conn.app_limited, conn.reserved]);
    bytes.extend(ack.delivered_pkts.to_ne_bytes());
    bytes.extend(
        [
            ack.acked_pkts,
            ack.lost_pkts,
            ack.rtt_us as u32,
            ack.random,
            ack.sample_pkts,
            ack.sample_us,
            ack.sample_prior_pkts,
            ack.prior_inflight_pkts,
            ack.sample_app_limited,
            ack.advanced_pkts,
        ]
        .map(u32::to_ne_bytes)
        .concat(),
    );
    bytes
}

/// An input of `fuzz/calls.c`: the parameters' words, then `struct fuzz_call`s.
fn calls(params: &Params, records: &[CallRecord]) -> Vec<u8> {
    let mut bytes: Vec<u8> = params.words().iter().flat_map(|word| word.to_ne_bytes()).collect();
    for record in records {
        bytes.extend([record.call as u8, record.event as u8, 0, 0, 0, 0, 0, 0]);
        bytes.extend(layout(&record.before, &record.ack));
    }
    bytes
}

fn main() -> Result<(), Box<dyn Error>> {
    for algorithm in algorithms() {
        let name = algorithm.name();
        let scenario = Scenario::parse("life", LIFE, &[Set::new("flow.0.cc", name)])?;
        let mut spec = scenario.spec(1);
        spec.record = RecordSpec { trace: true, ..spec.record };
        let record = knee_sim::run(&spec)?;
        let trace = &record.flows[0].trace;
        // Where something other than ACKs happens.
        let eventful = |call: &CallRecord| call.call as u8 >= 3;
        let later = trace.iter().skip(CALLS).position(eventful).map_or(0, |at| at + CALLS / 2);
        let params = Params::defaults(*algorithm);
        let folder = corpora().join("calls").join(name);
        write(&folder.join("start"), &calls(&params, &trace[..CALLS.min(trace.len())]))?;
        let part = &trace[later..(later + CALLS).min(trace.len())];
        write(&folder.join("later"), &calls(&params, part))?;
        if name == "chd" || algorithm.profile() == Profile::Rate {
            let flow = TraceFlow::new(1, "a", name, Some(&params));
            let rows = trace.iter().take(ROWS).map(|call| TraceRow {
                flow: flow.clone(),
                dropped: 0,
                call: *call,
            });
            let (mut parquet, mut csv) = (Vec::new(), Vec::new());
            let mut as_parquet = TraceWriter::parquet(&mut parquet)?;
            let mut as_csv = TraceWriter::csv(&mut csv)?;
            for row in rows {
                as_parquet.push(row.clone())?;
                as_csv.push(row)?;
            }
            as_parquet.finish()?;
            as_csv.finish()?;
            write(&corpora().join("trace-parquet").join(name), &parquet)?;
            write(&corpora().join("trace-csv").join(name), &csv)?;
        }
    }
    write(&corpora().join("kept/run"), &Kept::new().record())
}
