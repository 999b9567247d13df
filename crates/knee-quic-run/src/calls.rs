//! Actions of the algorithm of a flow.

use knee_cc::{Call, CallRecord, Conn, Event, OBSERVE_N, Profile};
use knee_model::{DelayStats, FlowCounters, FlowSample, NS_PER_US, RecordSpec};
use knee_quic::Observer;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Receives every call; shared between a connection's controller and the code that measures.
#[derive(Clone)]
pub struct Calls(Arc<Mutex<Called>>);

/// The reports of the calls.
#[derive(Default)]
pub struct Called {
    /// Notes of the algorithm, fast recoveries, timeouts (persistent congestion), undos.
    pub counters: FlowCounters,
    /// RTT samples that the algorithm was given, if a time series is kept.
    pub rtt: DelayStats,
    /// Every call, if traced.
    pub trace: Vec<CallRecord>,
    latest: Option<(Conn, [u32; OBSERVE_N])>,
    /// The call whose RTT samples are kept.
    rtt_call: Option<Call>,
    keep_trace: bool,
}

impl Calls {
    /// Keeps what `record` asks for, of an algorithm of this profile.
    pub fn new(record: &RecordSpec, profile: Profile) -> Self {
        Self(Arc::new(Mutex::new(Called {
            rtt_call: (record.bin_ns > 0).then(|| Call::of_every_ack(profile)),
            keep_trace: record.trace,
            ..Called::default()
        })))
    }

    /// The reports until now.
    pub fn called(&self) -> MutexGuard<'_, Called> {
        // A thread that panicked left whole values.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Called {
    /// `row` with the state after the latest call.
    pub fn sample(&self, row: FlowSample) -> FlowSample {
        let Some((conn, observed)) = self.latest else { return row };
        FlowSample {
            cwnd_pkts: conn.cwnd_pkts,
            ssthresh_pkts: conn.ssthresh_pkts,
            inflight_pkts: conn.inflight_pkts,
            srtt_us: conn.srtt_us,
            observed,
            ..row
        }
    }
}

impl Observer for Calls {
    fn called(&self, _controller: u64, call: &CallRecord) {
        let mut called = Calls::called(self);
        called.counters.count(call.call, &call.after, call.result);
        if called.rtt_call == Some(call.call)
            && let Ok(us) = u64::try_from(call.ack.rtt_us)
        {
            called.rtt.add(us * NS_PER_US);
        }
        match call.call {
            Call::Ssthresh => called.counters.loss_events += 1,
            // The algorithm gave a timeout's threshold just before.
            Call::OnEvent if call.event == Event::Rto as u32 => {
                called.counters.timeouts += 1;
                called.counters.loss_events -= 1;
            }
            Call::Undo => called.counters.undos += 1,
            _ => {}
        }
        called.latest = Some((call.after, call.observed));
        if called.keep_trace {
            called.trace.push(*call);
        }
    }
}
