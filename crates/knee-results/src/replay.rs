//! Replaying a trace: every call made again by the native build.

use crate::{
    ResultsError,
    column::Column,
    trace::{TraceFlow, TraceRow, columns, read_trace},
};
use knee_cc::State;
use knee_model::{CallRecord, Difference, Replay};
use std::{collections::HashMap, fmt::Write as _, path::Path};

/// Name and value.
type Field = (&'static str, String);

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

/// Columns before the first one of a call.
const OF_FLOW: usize = 5;
/// The first column of a call's results.
const FIRST_RESULT: &str = "cwnd_after_pkts";

/// The inputs and the results of a call: names and values of the trace's columns.
fn fields(record: &CallRecord) -> (Vec<Field>, Vec<Field>) {
    let row = TraceRow { flow: TraceFlow::default(), dropped: 0, call: *record };
    let field = |Column(name, get): &Column<TraceRow>| match *name {
        "state" => (*name, state(&record.state)),
        _ => match get.value(&row).csv() {
            text if text.is_empty() => (*name, "null".to_owned()),
            text => (*name, text.into_owned()),
        },
    };
    let mut inputs: Vec<Field> = columns()[OF_FLOW..].iter().map(field).collect();
    let results = inputs.iter().position(|(name, _)| *name == FIRST_RESULT);
    let results = inputs.split_off(results.unwrap_or(0));
    (inputs, results)
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
    let list = |fields: &[Field]| {
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
