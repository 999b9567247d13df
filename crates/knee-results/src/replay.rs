//! Replaying a trace: every call made again by the native build.

use crate::{
    ResultsError,
    trace::{TraceFlow, TraceRow, read_trace},
};
use knee_cc::{Conn, State};
use knee_model::{CallRecord, Difference, Replay};
use std::{collections::HashMap, fmt::Write as _, path::Path};

/// The flows of a trace, made again.
#[derive(Clone, Debug, Default)]
pub struct TraceReplay {
    numbers: HashMap<TraceFlow, usize>,
    flows: Vec<(TraceFlow, Result<Replay, String>)>,
}

impl TraceReplay {
    /// Replays a file, or the trace of a results folder.
    ///
    /// # Errors
    /// It cannot be read or is no trace.
    pub fn of(path: &Path) -> Result<Self, ResultsError> {
        let mut new = Self::default();
        read_trace(path, |row| new.call(&row))?;
        Ok(new)
    }

    /// Makes the next call again.
    pub fn call(&mut self, row: &TraceRow) {
        let next = self.flows.len();
        let number = match self.numbers.get(&row.flow) {
            Some(number) => *number,
            None => {
                let replay = row.flow.params().map(Replay::new);
                self.flows.push((row.flow.clone(), replay));
                self.numbers.insert(row.flow.clone(), next);
                next
            }
        };
        if let Ok(replay) = &mut self.flows[number].1 {
            replay.call(&row.call, row.dropped);
        }
    }

    /// The flows in the order in which they began; an error says why one cannot be replayed.
    pub fn flows(&self) -> &[(TraceFlow, Result<Replay, String>)] {
        &self.flows
    }

    /// Calls of which something else came out.
    pub fn differences(&self) -> u64 {
        self.flows.iter().filter_map(|(_, r)| r.as_ref().ok()).map(|r| r.differences).sum()
    }
}

/// Names and values.
type Fields = Vec<(String, String)>;

/// Every field of a record, its inputs and its outputs.
fn fields(record: &CallRecord) -> (Fields, Fields) {
    let mut input = vec![
        ("call".to_owned(), record.call.name().to_owned()),
        ("event".to_owned(), record.event.to_string()),
        ("ack_delivered_pkts".to_owned(), record.ack.delivered_pkts.to_string()),
        ("ack_acked_pkts".to_owned(), record.ack.acked_pkts.to_string()),
        ("ack_lost_pkts".to_owned(), record.ack.lost_pkts.to_string()),
        ("ack_rtt_us".to_owned(), record.ack.rtt_us.to_string()),
        ("ack_random".to_owned(), record.ack.random.to_string()),
        ("ack_advanced_pkts".to_owned(), record.ack.advanced_pkts.to_string()),
        ("sample_pkts".to_owned(), record.ack.sample_pkts.to_string()),
        ("sample_us".to_owned(), record.ack.sample_us.to_string()),
        ("sample_prior_pkts".to_owned(), record.ack.sample_prior_pkts.to_string()),
        ("prior_inflight_pkts".to_owned(), record.ack.prior_inflight_pkts.to_string()),
        ("sample_app_limited".to_owned(), record.ack.sample_app_limited.to_string()),
    ];
    input.extend(conn(&record.before).map(|(n, v)| (format!("before.{n}"), v)));
    let mut output: Vec<_> = conn(&record.after).map(|(n, v)| (format!("after.{n}"), v)).collect();
    output.push(("result_pkts".to_owned(), record.result.to_string()));
    for (i, value) in record.observed.iter().enumerate() {
        output.push((format!("observe_{i}"), value.to_string()));
    }
    output.push(("state".to_owned(), state(&record.state)));
    (input, output)
}

fn conn(c: &Conn) -> impl Iterator<Item = (&'static str, String)> {
    [
        ("now_us", c.now_us),
        ("cwnd_pkts", c.cwnd_pkts.into()),
        ("cwnd_cnt_pkts", c.cwnd_cnt.into()),
        ("ssthresh_pkts", c.ssthresh_pkts.into()),
        ("pacing_bytes_per_s", c.pacing_bytes_per_s),
        ("notes", c.notes.into()),
        ("cwnd_max_pkts", c.cwnd_max_pkts.into()),
        ("mss_bytes", c.mss_bytes.into()),
        ("inflight_pkts", c.inflight_pkts.into()),
        ("outstanding_pkts", c.outstanding_pkts.into()),
        ("srtt_us", c.srtt_us.into()),
        ("snd_pos", c.snd_pos.into()),
        ("ack_pos", c.ack_pos.into()),
        ("phase", c.phase.into()),
        ("cwnd_limited", c.cwnd_limited.into()),
        ("app_limited", c.app_limited.into()),
        ("reserved", c.reserved.into()),
    ]
    .into_iter()
    .map(|(name, value)| (name, value.to_string()))
}

fn state(state: &State) -> String {
    // Every known state is made of words of 32 bits.
    let words = state.bytes().chunks_exact(4);
    let words: Vec<String> =
        words.map(|w| format!("{:x}", u32::from_ne_bytes([w[0], w[1], w[2], w[3]]))).collect();
    words.join(" ").trim_end_matches(" 0").to_owned()
}

/// A difference in words: the differing fields, the inputs, and the calls before.
pub fn difference_text(difference: &Difference) -> String {
    let Difference { number, state: start, before, recorded, again } = difference;
    let mut text = format!("call {number}, {}:\n", recorded.call.name());
    let (input, output) = fields(recorded);
    match again.as_ref().map(fields) {
        None => text += "  the record is impossible\n",
        Some((_, got)) => {
            for ((name, recorded), (_, got)) in output.iter().zip(&got).filter(|(a, b)| a != b) {
                let _ = writeln!(text, "  {name}: recorded {recorded}, replayed {got}");
            }
        }
    }
    let list = |fields: &[(String, String)]| {
        fields.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(" ")
    };
    let _ = writeln!(text, "  from state: {}\n  inputs: {}", state(start), list(&input));
    for (i, record) in before.iter().enumerate() {
        let (input, output) = fields(record);
        let number = number - (before.len() - i) as u64;
        let _ = writeln!(text, "  call {number}: {} -> {}", list(&input), list(&output));
    }
    text
}
