//! Every call of a run made again: the results must be the same.

use crate::duels::duel;
use knee_cc::{Algorithm, Params};
use knee_model::{Host, HostErrorKind, NS_PER_S, Replay, RunOptions, RunRecord, RunSpec};

/// A run of 20 s with everything that comes up on a path: losses, a full queue, timeouts.
fn eventful(algorithm: Algorithm) -> RunSpec {
    let mut spec = duel(algorithm, algorithm);
    spec.duration_ns = 20 * NS_PER_S;
    spec.path.hops[0].loss = 0.01;
    spec.record.trace = true;
    spec
}

/// Runs `algorithm` on `host` with a trace, and replays the trace. Gives the number of calls.
///
/// # Errors
/// A run that fails, or a call with another result, in words. None: the host does not
/// take such a run.
pub fn replays(algorithm: Algorithm, host: &dyn Host) -> Result<Option<u64>, String> {
    let spec = eventful(algorithm);
    let record = match host.run(&spec, &RunOptions::default()) {
        Ok(record) => record,
        Err(e) if e.kind == HostErrorKind::Unsupported => return Ok(None),
        Err(e) => return Err(e.to_string()),
    };
    replayed(algorithm, &record).map(Some)
}

/// Replays the traces of a run in which all flows are of `algorithm`. Gives the number of calls.
pub(crate) fn replayed(algorithm: Algorithm, record: &RunRecord) -> Result<u64, String> {
    let mut calls = 0;
    for flow in &record.flows {
        let mut replay = Replay::new(Params::defaults(algorithm));
        flow.trace.iter().for_each(|call| replay.call(call, 0));
        if let Some(difference) = replay.first {
            let (number, call) = (difference.number, difference.recorded.call.name());
            return Err(format!(
                "{}: call {number}, {call}: {:?} was recorded; again it is {:?}",
                flow.name,
                difference.recorded.after,
                difference.again.map(|again| again.after)
            ));
        }
        calls += replay.compared;
    }
    if calls == 0 { Err("nothing was called".to_owned()) } else { Ok(calls) }
}
