//! The calls of a run's algorithms, as the kernel made them: values that only they know.

use crate::{Alarm, Clock, error::TOO_SLOW, plan::flow_of, variants::Variants};
use knee_cc::OBSERVE_N;
use knee_kernel::{Filter, TracedCall, Tracer};
use knee_model::{
    Call, CallRecord, DelayStats, FlowCounters, HostError, NS_PER_US, Ns, RunSpec,
    failure::too_slow,
};
use std::{
    sync::mpsc::{Receiver, Sender, TryRecvError},
    thread,
    time::Duration,
};

/// Room for the calls of a tenth of a second at some Gb/s.
const RING_BYTES: u32 = 16 << 20;
/// Time between two looks at the ring. Whoever looks often takes the processor from the path.
const REST: Duration = Duration::from_millis(20);

/// The reports of a flow's calls.
#[derive(Clone, Default)]
pub(crate) struct Called {
    /// Only the counts of [`FlowCounters::count`], and undos.
    pub counters: FlowCounters,
    pub rtt: DelayStats,
    /// Observed values at the end of each bin.
    pub observed: Vec<[u32; OBSERVE_N]>,
    pub trace: Vec<CallRecord>,
    latest: [u32; OBSERVE_N],
}

/// Follows the calls of `variants` from when it says `ready` until `end` has no sender any more.
/// `start` gives the run's clock once that runs.
pub(crate) fn follow(
    spec: &RunSpec,
    variants: &Variants,
    alarm: &Alarm,
    ready: Sender<()>,
    start: Receiver<Clock>,
    end: Receiver<()>,
) -> Result<Vec<Called>, HostError> {
    let mut flows = vec![Called::default(); spec.flows.len()];
    let mut tracer = Tracer::start(&variants.names(), Filter::default(), RING_BYTES)?;
    // Nobody waits for it, or for the clock, if another thread has failed.
    let _ = ready.send(());
    let Ok(clock) = start.recv() else { return Ok(flows) };
    let zero_ns = clock.zero_ns;
    let mut take = |call: TracedCall<'_>| {
        let flow = flow_of(call.socket.local.port()).and_then(|index| flows.get_mut(index));
        if let Some(flow) = flow {
            let profile = call.variant.params.algorithm().profile();
            flow.take(spec, zero_ns, Call::of_every_ack(profile), &call.call);
        }
    };
    while !alarm.raised() && end.try_recv() != Err(TryRecvError::Disconnected) {
        thread::sleep(REST);
        tracer.poll(Duration::ZERO, &mut take)?;
    }
    tracer.stop()?;
    while tracer.poll(Duration::ZERO, &mut take)? > 0 {}
    match tracer.dropped()? {
        0 => {}
        calls => {
            let why = format!("{calls} calls of the algorithms were not recorded in time");
            return Err(too_slow(why, TOO_SLOW));
        }
    }
    for flow in &mut flows {
        flow.observed.resize(spec.bins(), flow.latest);
    }
    Ok(flows)
}

impl Called {
    /// `rtt_call` is the one whose RTT samples count.
    fn take(&mut self, spec: &RunSpec, zero_ns: Ns, rtt_call: Call, call: &CallRecord) {
        self.counters.count(call.call, &call.after, call.result);
        self.counters.undos += u64::from(call.call == Call::Undo);
        if call.call == rtt_call
            && let Ok(us) = u64::try_from(call.ack.rtt_us)
        {
            self.rtt.add(us * NS_PER_US);
        }
        let at_ns = (call.before.now_us * NS_PER_US).saturating_sub(zero_ns);
        if let Some(bin) = at_ns.checked_div(spec.record.bin_ns) {
            let before = (bin as usize).clamp(self.observed.len(), spec.bins());
            self.observed.resize(before, self.latest);
            self.latest = call.observed;
        }
        if spec.record.trace {
            self.trace.push(*call);
        }
    }
}
