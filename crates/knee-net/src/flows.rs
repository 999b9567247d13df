//! A run in virtual time: its flows, from their starts to their records.

use crate::{
    Direction, End, Endpoints, LazyTimer, LostPacket, NEVER, Network, Numbered, Packet, Path,
    UdpFlow,
};
use knee_model::{
    FlowCounters, FlowKind, FlowRecord, FlowSample, FlowSpec, FlowTotals, Ns, Progress, RunRecord,
    RunSpec, TcpSpec, Write,
};
use std::ops::Deref;

/// Both ends of a flow with feedback, in virtual time.
pub trait Connection: Sized {
    /// The packets of both ends.
    type Packet: Numbered;
    /// Their timers. If several are due at the same time, the smallest is first.
    type Timer: Copy + Ord;
    /// State that the connections of a run share.
    type Shared;
    /// Errors of a connection.
    type Error;

    /// A packet of a flow without feedback.
    fn udp(flow: u32, number: u32, bytes: u32) -> Self::Packet;

    /// The flow starts; its application may write from now on.
    ///
    /// # Errors
    /// The connection's.
    fn start(&mut self, at: &mut FlowContext<'_, Self>) -> Result<(), Self::Error> {
        let _ = at;
        Ok(())
    }

    /// The application writes this many bytes, a transfer; none: without end.
    ///
    /// # Errors
    /// The connection's.
    fn write(
        &mut self,
        bytes: Option<u64>,
        at: &mut FlowContext<'_, Self>,
    ) -> Result<(), Self::Error>;

    /// The application stops.
    ///
    /// # Errors
    /// The connection's.
    fn stop(&mut self, at: &mut FlowContext<'_, Self>) -> Result<(), Self::Error>;

    /// A packet arrives from this direction of the path.
    ///
    /// # Errors
    /// The connection's.
    fn arrive(
        &mut self,
        packet: Self::Packet,
        direction: Direction,
        at: &mut FlowContext<'_, Self>,
    ) -> Result<(), Self::Error>;

    /// A lazy timer comes up: see [`FlowContext::came_up`].
    ///
    /// # Errors
    /// The connection's.
    fn on_timer(
        &mut self,
        timer: Self::Timer,
        at: &mut FlowContext<'_, Self>,
    ) -> Result<(), Self::Error>;

    /// A packet was lost or dropped.
    fn on_lost(lost: LostPacket<Self::Packet>, shared: &mut Self::Shared) {
        let _ = (lost, shared);
    }

    /// Totals, without the counts of the path.
    fn counters(&self) -> FlowCounters;

    /// Adds the state at the end of a bin to `row`.
    fn sample(&self, row: FlowSample) -> FlowSample;

    /// Returns whether all written data have arrived and are acknowledged, as far as the sender knows.
    fn is_idle(&self) -> bool {
        false
    }

    /// Adds the connection's measurements to `record`.
    ///
    /// # Errors
    /// The connection's.
    fn finish(self, record: FlowRecord) -> Result<FlowRecord, Self::Error>;
}

/// Timers of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlowTimer<T> {
    /// It starts.
    Start,
    /// It stops.
    Stop,
    /// Its application writes; without feedback: it sends its next packet.
    Write,
    /// Its connection's own.
    Own(T),
}

/// A flow's view of the run, through which its connection acts.
pub struct FlowContext<'a, C: Connection> {
    /// State that the connections of the run share.
    pub shared: &'a mut C::Shared,
    network: &'a mut Network<C::Packet, FlowTimer<C::Timer>>,
    /// Index of the flow.
    pub flow: u32,
}

impl<C: Connection> FlowContext<'_, C> {
    /// The present time.
    #[inline(always)]
    pub fn now_ns(&self) -> Ns {
        self.network.now_ns()
    }

    /// Packets that the sender has sent.
    pub fn data_pkts(&self) -> u32 {
        self.network.path.data_pkts(self.flow)
    }

    /// Packets that the receiver has sent.
    pub fn ack_pkts(&self) -> u32 {
        self.network.path.ack_pkts(self.flow)
    }

    /// The end that packets in `direction` reach.
    pub fn end(&self, direction: Direction) -> End {
        self.network.path.end(self.flow, direction)
    }

    /// Sends a packet of the flow.
    #[inline(always)]
    pub fn send(&mut self, packet: C::Packet, from: End) {
        self.network.offer(packet, from);
    }

    /// The lazy timer is due at `due_ns` ([`NEVER`]: it is not).
    #[inline(always)]
    pub fn arm(&mut self, lazy: &mut LazyTimer, due_ns: Ns, timer: C::Timer) {
        self.network.arm(lazy, due_ns, self.flow, FlowTimer::Own(timer));
    }

    /// Handles a lazy timer that came up; `due_ns` is its due time. Returns whether it is due; a timer that
    /// was put off is armed again.
    pub fn came_up(&mut self, lazy: &mut LazyTimer, due_ns: Ns, timer: C::Timer) -> bool {
        self.network.came_up(lazy, due_ns, self.flow, FlowTimer::Own(timer))
    }
}

// Most flows have feedback: their data are in the flow itself, not behind a pointer.
#[allow(clippy::large_enum_variant)]
enum Kind<C> {
    Connection(C),
    Udp(UdpFlow),
}

struct Flow<C> {
    kind: Kind<C>,
    start_ns: Ns,
    started: bool,
    stopped: bool,
    /// Drawn from a source: its time series covers its life only.
    drawn: bool,
    /// Transfers that the application has written.
    writes: usize,
    /// True if it has written all that it ever will.
    all_written: bool,
    samples: Vec<FlowSample>,
    /// Totals at the end of the latest bin.
    last: FlowTotals,
}

struct Flows<S, W, C: Connection> {
    spec: S,
    shared: C::Shared,
    flows: Vec<Flow<C>>,
    /// Flows whose time series continues.
    sampled: Vec<u32>,
    /// Receives each bin at its end.
    watch: W,
}

/// Runs `spec` in virtual time: `open` makes the connection of each flow with feedback, `watch`
/// gets each bin at its end: the rows of all flows that the scenario names, and the time. The row of
/// a queue comes one bin later.
///
/// # Errors
/// An error of `open` or of a connection.
pub fn run_in_virtual_time<C: Connection>(
    spec: &RunSpec,
    shared: C::Shared,
    watch: &mut dyn FnMut(Progress),
    open: impl FnMut(usize, &TcpSpec) -> C,
) -> Result<RunRecord, C::Error> {
    let mut run = VirtualRun::begin(spec, shared, watch, open);
    run.advance(spec.duration_ns)?;
    run.finish()
}

/// A run in virtual time that advances in steps; the size of the steps does not change the results.
pub struct VirtualRun<S, W, C: Connection> {
    /// The network at the present time.
    pub network: Network<C::Packet, FlowTimer<C::Timer>>,
    flows: Flows<S, W, C>,
}

impl<S: Deref<Target = RunSpec>, W: FnMut(Progress), C: Connection> VirtualRun<S, W, C> {
    /// The run of `spec` at its start; the arguments are those of [`run_in_virtual_time`].
    pub fn begin(
        spec: S,
        shared: C::Shared,
        watch: W,
        mut open: impl FnMut(usize, &TcpSpec) -> C,
    ) -> Self {
        let mut network = Network::new(&spec);
        let mut flows = Vec::with_capacity(spec.flows.len());
        for (index, flow) in spec.flows.iter().enumerate() {
            let start_ns = spec.start_ns(index);
            let kind = match &flow.kind {
                FlowKind::Tcp(tcp) => Kind::Connection(open(index, tcp)),
                kind => Kind::Udp(UdpFlow::of(kind, start_ns).expect("no feedback")),
            };
            network.set_timer(start_ns, index as u32, FlowTimer::Start);
            network.set_timer(flow.stop_ns.unwrap_or(NEVER), index as u32, FlowTimer::Stop);
            flows.push(Flow {
                kind,
                start_ns,
                started: false,
                stopped: false,
                drawn: flow.drawn.is_some(),
                writes: 0,
                all_written: false,
                samples: Vec::new(),
                last: FlowTotals::default(),
            });
        }
        let sampled = (0..).zip(&flows).filter(|(_, flow)| !flow.drawn).map(|(i, _)| i).collect();
        Self { network, flows: Flows { spec, shared, flows, sampled, watch } }
    }

    /// Advances to `until_ns`, at most to the end.
    ///
    /// # Errors
    /// An error of a connection; the run cannot continue then.
    pub fn advance(&mut self, until_ns: Ns) -> Result<(), C::Error> {
        let until_ns = until_ns.min(self.flows.spec.duration_ns);
        self.network.advance_to(until_ns, &mut self.flows)
    }

    /// Lets the connection of a flow act, if it has one.
    ///
    /// # Errors
    /// The connection's.
    pub fn with(
        &mut self,
        flow: u32,
        act: impl FnOnce(&mut C, &mut FlowContext<'_, C>) -> Result<(), C::Error>,
    ) -> Result<(), C::Error> {
        self.flows.with(flow, &mut self.network, act)
    }

    /// State that the connections share.
    pub fn shared(&mut self) -> &mut C::Shared {
        &mut self.flows.shared
    }

    /// The connection of a flow, if it has one.
    pub fn connection(&mut self, flow: usize) -> Option<&mut C> {
        match &mut self.flows.flows.get_mut(flow)?.kind {
            Kind::Connection(connection) => Some(connection),
            Kind::Udp(_) => None,
        }
    }

    /// The record of a run that is at its end.
    ///
    /// # Errors
    /// An error of a connection.
    pub fn finish(self) -> Result<RunRecord, C::Error> {
        let Self { mut network, mut flows } = self;
        let bins = flows.spec.bins();
        network.close_last_bin(&mut flows, bins);
        let (spec, records) = flows.finish(&network.path)?;
        Ok(RunRecord::new(&spec, records, network.path.finish()))
    }
}

impl<S: Deref<Target = RunSpec>, W: FnMut(Progress), C: Connection> Flows<S, W, C> {
    /// Lets the connection of a flow act.
    #[inline(always)]
    fn with(
        &mut self,
        index: u32,
        network: &mut Network<C::Packet, FlowTimer<C::Timer>>,
        act: impl FnOnce(&mut C, &mut FlowContext<'_, C>) -> Result<(), C::Error>,
    ) -> Result<(), C::Error> {
        let Kind::Connection(connection) = &mut self.flows[index as usize].kind else {
            return Ok(());
        };
        act(connection, &mut FlowContext { shared: &mut self.shared, network, flow: index })
    }

    fn start(
        &mut self,
        index: u32,
        network: &mut Network<C::Packet, FlowTimer<C::Timer>>,
    ) -> Result<(), C::Error> {
        let flow = &mut self.flows[index as usize];
        flow.started = true;
        if flow.drawn && self.spec.record.bin_ns > 0 {
            self.sampled.push(index);
        }
        if let Kind::Udp(udp) = &flow.kind
            && udp.due_ns() > network.now_ns()
        {
            network.set_timer(udp.due_ns(), index, FlowTimer::Write);
            return Ok(());
        }
        self.with(index, network, |connection, at| connection.start(at))?;
        self.write(index, network)
    }

    /// The application of a flow writes, or sends its next packet.
    fn write(
        &mut self,
        index: u32,
        network: &mut Network<C::Packet, FlowTimer<C::Timer>>,
    ) -> Result<(), C::Error> {
        let flow = &mut self.flows[index as usize];
        if flow.stopped {
            return Ok(());
        }
        if let Kind::Udp(udp) = &mut flow.kind {
            let packet = C::udp(index, udp.send(), self.spec.flows[index as usize].packet_bytes());
            network.set_timer(udp.due_ns(), index, FlowTimer::Write);
            network.offer(packet, End::Sender);
            return Ok(());
        }
        let workload = self.spec.flows[index as usize].kind.workload();
        let write = |number| workload.and_then(|workload| workload.write(number));
        let bytes = write(flow.writes).map(|Write { bytes, .. }| {
            flow.writes += 1;
            match write(flow.writes) {
                Some(next) => {
                    network.set_timer(flow.start_ns + next.after_ns, index, FlowTimer::Write);
                }
                None => flow.all_written = true,
            }
            bytes
        });
        self.with(index, network, |connection, at| connection.write(bytes, at))
    }

    fn finish(self, path: &Path<C::Packet>) -> Result<(S, Vec<FlowRecord>), C::Error> {
        let Self { spec, shared, flows, .. } = self;
        // Its memory is needed for the records.
        drop(shared);
        let in_network_pkts = path.in_network_pkts();
        // Collected in place: a flow and its record are not in memory at the same time.
        let flows = flows.into_iter().enumerate();
        let records = flows.map(|(index, flow)| {
            let counters = flow.counters(index, path);
            let counters = FlowCounters { in_network_pkts: in_network_pkts[index], ..counters };
            flow.finish(&spec.flows[index], counters, &spec)
        });
        let records = records.collect::<Result<_, _>>()?;
        Ok((spec, records))
    }
}

impl<S: Deref<Target = RunSpec>, W: FnMut(Progress), C: Connection>
    Endpoints<Network<C::Packet, FlowTimer<C::Timer>>> for Flows<S, W, C>
{
    type Packet = C::Packet;
    type Timer = FlowTimer<C::Timer>;
    type Error = C::Error;

    #[inline(always)]
    fn arrive(
        &mut self,
        packet: C::Packet,
        direction: Direction,
        network: &mut Network<C::Packet, FlowTimer<C::Timer>>,
    ) -> Result<(), C::Error> {
        let index = packet.flow();
        match &mut self.flows[index as usize].kind {
            Kind::Connection(connection) => {
                let at = &mut FlowContext { shared: &mut self.shared, network, flow: index };
                connection.arrive(packet, direction, at)
            }
            Kind::Udp(udp) => {
                udp.arrive(network.now_ns(), packet.number(), packet.wire_bytes());
                Ok(())
            }
        }
    }

    fn on_timer(
        &mut self,
        index: u32,
        timer: FlowTimer<C::Timer>,
        network: &mut Network<C::Packet, FlowTimer<C::Timer>>,
    ) -> Result<(), C::Error> {
        match timer {
            FlowTimer::Start => self.start(index, network),
            FlowTimer::Stop => {
                self.flows[index as usize].stopped = true;
                self.with(index, network, |connection, at| connection.stop(at))
            }
            FlowTimer::Write => self.write(index, network),
            FlowTimer::Own(timer) => {
                self.with(index, network, |connection, at| connection.on_timer(timer, at))
            }
        }
    }

    fn on_lost(&mut self, lost: LostPacket<C::Packet>) -> Result<(), C::Error> {
        C::on_lost(lost, &mut self.shared);
        Ok(())
    }

    fn close_bin(&mut self, now_ns: Ns, path: &Path<C::Packet>) {
        let flows = &mut self.flows;
        self.sampled.retain(|index| {
            let flow = &mut flows[*index as usize];
            let counters = flow.counters(*index as usize, path);
            flow.sample(&counters);
            if let Some(part) = flow.samples.last().filter(|_| !flow.drawn) {
                let (flow, bin) = (*index as usize, flow.samples.len() - 1);
                (self.watch)(Progress::Flow { flow, bin, part: *part });
            }
            !flow.drawn || !flow.has_ended(&counters)
        });
        for (hop, queue) in path.queues().enumerate() {
            if let Some(row) = queue.bins.last() {
                (self.watch)(Progress::Queue { hop, bin: queue.bins.len() - 1, row: *row });
            }
        }
        (self.watch)(Progress::At(now_ns));
    }
}

impl<C: Connection> Flow<C> {
    fn counters(&self, index: usize, path: &Path<C::Packet>) -> FlowCounters {
        let own = match &self.kind {
            Kind::Connection(connection) => connection.counters(),
            Kind::Udp(udp) => udp.counters(),
        };
        path.count(index, own)
    }

    fn sample(&mut self, counters: &FlowCounters) {
        let row = self.last.close_bin(counters);
        self.samples.push(match &self.kind {
            Kind::Connection(connection) if self.started && !self.stopped => connection.sample(row),
            _ => row,
        });
    }

    /// Returns whether nothing more will happen: all data of the run have arrived and are acknowledged, and
    /// no packet is on its way to the receiver.
    fn has_ended(&self, c: &FlowCounters) -> bool {
        let Kind::Connection(connection) = &self.kind else { return false };
        let gone_pkts = c.delivered_pkts + c.duplicate_pkts;
        let gone_pkts = gone_pkts + c.queue_drops_pkts + c.random_losses_pkts;
        (self.all_written || self.stopped) && connection.is_idle() && c.sent_pkts == gone_pkts
    }

    fn finish(
        self,
        flow: &FlowSpec,
        counters: FlowCounters,
        spec: &RunSpec,
    ) -> Result<FlowRecord, C::Error> {
        let bin_ns = spec.record.bin_ns;
        let start_bin = self.start_ns.checked_div(bin_ns).filter(|_| self.drawn);
        let record = FlowRecord {
            counters,
            first_bin: start_bin.unwrap_or(0) as u32,
            samples: self.samples,
            ..FlowRecord::of(flow, self.start_ns, spec.duration_ns)
        };
        let record = match self.kind {
            Kind::Connection(connection) => connection.finish(record)?,
            Kind::Udp(udp) => udp.finish(record),
        };
        Ok(record.without_idle_rows(bin_ns))
    }
}
