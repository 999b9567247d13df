//! Losses, backoffs and timeouts of a traced run: the rule of the algorithm that fired, and its values.

use knee_cc::{
    Call, CallRecord, Event, NOTE_DELAY_BACKOFF, NOTE_LOSS_TOLERATED, NOTE_REGION_B, OBSERVE_N,
};
use knee_model::{RunRecord, RunSpec};
use serde::Serialize;

/// Most packets of a run that is traced: its calls fill the memory, about 600 bytes for each packet.
pub(crate) const PACKETS_MAX: u128 = 800_000;
/// Most events that are told.
const EVENTS_MAX: usize = 20_000;

/// An event of a flow's window.
#[derive(Debug, Serialize)]
pub(crate) struct Reduction {
    t_s: f64,
    flow: usize,
    kind: Kind,
    /// True if the algorithm took the delay for that of region B.
    region_b: bool,
    before_pkts: u32,
    /// The window, or of a loss the threshold that recovery takes it to.
    after_pkts: u32,
    srtt_us: u32,
    /// Internals after the call.
    observed: [u32; OBSERVE_N],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    DelayBackoff,
    Loss,
    LossTolerated,
    Timeout,
    Undo,
}

/// All of a run, in order of time.
#[derive(Debug, Serialize)]
pub(crate) struct Reductions {
    reductions: Vec<Reduction>,
    /// Number of events left out.
    left_out: usize,
}

/// The largest number of packets that `spec` may send at its paths' rates.
pub(crate) fn packets(spec: &RunSpec) -> u128 {
    (0..spec.flows.len()).map(|flow| spec.packets(flow)).max().unwrap_or(0) / 2
}

pub(crate) fn reductions(record: &RunRecord) -> Reductions {
    let mut all = Vec::new();
    for (flow, of) in record.flows.iter().enumerate() {
        for call in &of.trace {
            let Some(kind) = kind(call) else { continue };
            let last: Option<&mut Reduction> = all.last_mut();
            if kind == Kind::Timeout
                && let Some(last) = last.filter(|r| r.flow == flow && r.kind != Kind::DelayBackoff)
                && last.t_s == time_s(call)
            {
                // The threshold was requested just before.
                last.kind = kind;
                continue;
            }
            all.push(reduction(flow, kind, call));
        }
    }
    all.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
    let left_out = all.len().saturating_sub(EVENTS_MAX);
    all.truncate(EVENTS_MAX);
    Reductions { reductions: all, left_out }
}

fn kind(call: &CallRecord) -> Option<Kind> {
    let notes = call.after.notes;
    match call.call {
        Call::OnAck | Call::OnRtt if notes & NOTE_DELAY_BACKOFF != 0 => Some(Kind::DelayBackoff),
        Call::Ssthresh if notes & NOTE_LOSS_TOLERATED != 0 => Some(Kind::LossTolerated),
        Call::Ssthresh => Some(Kind::Loss),
        Call::OnEvent if call.event == Event::Rto as u32 => Some(Kind::Timeout),
        Call::Undo => Some(Kind::Undo),
        _ => None,
    }
}

fn time_s(call: &CallRecord) -> f64 {
    call.before.now_us as f64 / 1e6
}

fn reduction(flow: usize, kind: Kind, call: &CallRecord) -> Reduction {
    Reduction {
        t_s: time_s(call),
        flow,
        kind,
        region_b: call.after.notes & NOTE_REGION_B != 0,
        before_pkts: call.before.cwnd_pkts,
        after_pkts: match call.call {
            Call::Ssthresh | Call::Undo => call.result,
            _ => call.after.cwnd_pkts,
        },
        srtt_us: call.before.srtt_us,
        observed: call.observed,
    }
}
