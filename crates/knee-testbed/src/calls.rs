//! The calls of a run's algorithms, as the kernel made them: values that only they know.

use crate::{Clock, error::TOO_SLOW, plan::flow_of, variants::Variants};
use knee_cc::OBSERVE_N;
use knee_kernel::{Filter, TracedCall, Tracer};
use knee_model::{
    Call, CallRecord, DelayStats, FlowCounters, HostError, NS_PER_US, Ns, RunSpec,
    failure::too_slow,
};
use std::{thread, time::Duration};

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

/// The calls of a run's variants, recorded from now on.
pub(crate) struct Calls<'a> {
    spec: &'a RunSpec,
    tracer: Tracer,
}

impl<'a> Calls<'a> {
    pub(crate) fn start(spec: &'a RunSpec, variants: &Variants) -> Result<Self, HostError> {
        let tracer = Tracer::start(&variants.names(), Filter::default(), RING_BYTES)?;
        Ok(Self { spec, tracer })
    }

    /// Takes in the calls until the run is `over`; each flow's.
    pub(crate) fn follow(
        mut self,
        clock: Clock,
        over: impl Fn() -> bool,
    ) -> Result<Vec<Called>, HostError> {
        let mut flows = vec![Called::default(); self.spec.flows.len()];
        let mut take = |call: TracedCall<'_>| {
            let flow = flow_of(call.socket.local.port()).and_then(|index| flows.get_mut(index));
            if let Some(flow) = flow {
                let profile = call.variant.params.algorithm().profile();
                flow.take(self.spec, clock.zero_ns, Call::of_every_ack(profile), &call.call);
            }
        };
        while !over() {
            thread::sleep(REST);
            self.tracer.poll(Duration::ZERO, &mut take)?;
        }
        self.tracer.stop()?;
        while self.tracer.poll(Duration::ZERO, &mut take)? > 0 {}
        match self.tracer.dropped()? {
            0 => {}
            calls => {
                let why = format!("{calls} calls of the algorithms were not recorded in time");
                return Err(too_slow(why, TOO_SLOW));
            }
        }
        for flow in &mut flows {
            flow.observed.resize(self.spec.bins(), flow.latest);
        }
        Ok(flows)
    }
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
