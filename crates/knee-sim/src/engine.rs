//! The event loop.
//!
//! The path says what is next due ([`Source`], in order of precedence at the same instant). A FIFO
//! element is one source with one pending event, however many packets it holds; so are the timers
//! of all flows.

use crate::{
    SimError,
    packet::{AckPacket, AckTo, Data, NONE, SackBlocks, Store},
    receiver::{Receiver, Reply},
    sender::{Sender, Transmit},
};
use knee_cc::{Params, Profile};
use knee_net::{Ecn, NEVER};
use knee_run::{
    Cc, FlowCounters, FlowKind, FlowRecord, FlowSample, FlowSpec, FlowTotals, Ns, PacketEvent,
    Path, PathQueues, Port, Random, Recovery, RunRecord, RunSpec, Source, TcpOptions, TcpSpec,
    Transport, UdpFlow,
};
use std::{cmp::Reverse, collections::BinaryHeap};

/// How many packets ahead of an arrival its flow's memory is asked for.
const PREFETCH_AHEAD: usize = 6;
/// From how many flows on: fewer stay in the cache.
const PREFETCH_FLOWS: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Timer {
    Start,
    Stop,
    Write,
    Retransmission,
    DelayedAck,
    Udp,
    Pace,
}

/// Timers of all flows. A flow's retransmission, delayed-ACK and pacing timers stand in the heap at most
/// once each; moved to a later time they stay where they are and are re-armed when they come up.
#[derive(Default)]
struct Timers {
    heap: BinaryHeap<Reverse<(Ns, u32, Timer)>>,
}

impl Timers {
    fn next_ns(&self) -> Ns {
        self.heap.peek().map_or(NEVER, |Reverse((due, ..))| *due)
    }
    fn push(&mut self, due_ns: Ns, flow: u32, timer: Timer) {
        if due_ns != NEVER {
            self.heap.push(Reverse((due_ns, flow, timer)));
        }
    }
}

// TCP flows are the many: what they need stands in the flow itself, not behind a pointer.
#[allow(clippy::large_enum_variant)]
enum Kind {
    Tcp(Tcp),
    Udp(UdpFlow),
}

struct Tcp {
    sender: Sender,
    receiver: Receiver,
    /// Transfers that the application has written.
    writes: usize,
    /// Whether it has written all that it ever will.
    all_written: bool,
    /// When the timers of this flow stand in the heap; [`NEVER`]: they do not.
    rto_in_heap_ns: Ns,
    delack_in_heap_ns: Ns,
    pace_in_heap_ns: Ns,
}

struct Flow {
    kind: Kind,
    port: Port,
    started: bool,
    start_ns: Ns,
    stopped: bool,
    /// Drawn from a source: its time series covers its life only.
    drawn: bool,
    samples: Vec<FlowSample>,
    /// Up to the latest bin.
    last: FlowTotals,
}

pub(crate) struct Engine<'a> {
    spec: &'a RunSpec,
    /// Told the time at the end of each bin.
    watch: &'a mut dyn FnMut(Ns),
    now_ns: Ns,
    flows: Vec<Flow>,
    /// Flows whose time series goes on.
    sampled: Vec<u32>,
    path: Path<Data, AckPacket>,
    timers: Timers,
    /// SACK blocks of the ACKs in flight.
    blocks: Store<SackBlocks>,
    /// ACKs in flight of flows that go back.
    acks: Store<AckPacket>,
}

/// Sends a flow's packets.
struct Out<'a> {
    path: &'a mut Path<Data, AckPacket>,
    now_ns: Ns,
    flow: u32,
    port: &'a mut Port,
}

/// What is lost, its port counts.
fn lost(_: PacketEvent, _: Data) {}

impl Transmit for Out<'_> {
    #[inline]
    fn transmit(&mut self, number: u32, ecn: Ecn, cwr: bool) {
        if self.port.goes_back {
            return self.transmit_back(number);
        }
        let bytes = self.port.packet_bytes as u16;
        let data = Data { flow: self.flow, number, ack: NONE, bytes, ecn, cwr };
        self.path.send(self.now_ns, data, self.port, lost);
    }
}

impl Out<'_> {
    /// The queue of the way back is drop-tail: it marks nothing.
    #[inline(never)]
    fn transmit_back(&mut self, number: u32) {
        if self.path.loses_back(self.port) {
            return;
        }
        let to = AckTo::data(self.flow);
        let data = AckPacket { to, cumulative: number, duplicate: NONE, blocks: NONE };
        // What is dropped, its port counts.
        self.path.send_back(self.now_ns, data, self.port.packet_bytes, self.port, |_| ());
    }
}

impl<'a> Engine<'a> {
    pub(crate) fn new(spec: &'a RunSpec, watch: &'a mut dyn FnMut(Ns)) -> Result<Self, SimError> {
        let (mut path, ports) = Path::new(spec);
        let mut flows = Vec::with_capacity(spec.flows.len());
        let mut timers = Timers::default();
        for ((index, flow), port) in spec.flows.iter().enumerate().zip(ports) {
            let new = Flow::new(spec, index as u32, port)?;
            timers.push(new.start_ns, index as u32, Timer::Start);
            if let Some(stop_ns) = flow.stop_ns {
                timers.push(stop_ns, index as u32, Timer::Stop);
            }
            flows.push(new);
        }
        path.set_timers(timers.next_ns());
        let sampled = (0..).zip(&flows).filter(|(_, flow)| !flow.drawn).map(|(i, _)| i).collect();
        let (blocks, acks) = (Store::default(), Store::default());
        Ok(Self { spec, watch, now_ns: 0, flows, sampled, path, timers, blocks, acks })
    }

    pub(crate) fn run(mut self) -> Result<RunRecord, SimError> {
        loop {
            let (source, due_ns) = self.path.first();
            if due_ns > self.spec.duration_ns {
                break;
            }
            debug_assert!(due_ns >= self.now_ns, "an event before its time");
            self.now_ns = due_ns;
            match source {
                Source::Bins => self.close_bin(),
                Source::Timers => self.on_timer(),
                Source::Departure => self.depart(0),
                // What receivers send passes the way back, whose queue is drop-tail; see also
                // `acknowledge_there`.
                Source::Arrival => {
                    self.on_arrival();
                    continue;
                }
                Source::Bottleneck(entrance) => self.on_bottleneck(entrance),
                Source::Sender(class) => self.on_sender(class),
                Source::DepartureBack => self.path.depart_back(due_ns),
                Source::LaterDeparture(hop) => self.depart_later(hop),
                Source::LaterArrival(hop) => self.on_later_arrival(hop),
            }
            self.take_dropped();
        }
        Ok(self.finish())
    }

    /// Counts what queues dropped after they had taken it.
    #[inline(always)]
    fn take_dropped(&mut self) {
        while let Some(data) = self.path.take_dropped() {
            self.flows[data.flow as usize].port.there_drops_pkts += 1;
            self.gone(data);
        }
    }

    /// A packet was lost or dropped on the way there.
    fn gone(&mut self, data: Data) {
        if let Some(ack) = self.acks.take(data.ack) {
            self.blocks.take(ack.blocks);
        }
    }

    /// The TCP flow `flow`, if its memory may be out of the cache.
    #[inline]
    fn ahead(&self, flow: Option<u32>) -> Option<&Tcp> {
        if self.flows.len() < PREFETCH_FLOWS {
            return None;
        }
        match &self.flows[flow? as usize].kind {
            Kind::Tcp(tcp) => Some(tcp),
            Kind::Udp(_) => None,
        }
    }

    #[inline(always)]
    fn depart(&mut self, hop: usize) {
        if let Some(flow) = self.path.depart(hop, self.now_ns) {
            self.flows[flow as usize].port.marked_pkts += 1;
        }
    }

    #[inline(never)]
    fn depart_later(&mut self, hop: usize) {
        self.depart(hop);
    }

    #[inline(never)]
    fn on_later_arrival(&mut self, hop: usize) {
        let Some(data) = self.path.arrive(hop, self.now_ns) else { return };
        if data.ack != NONE {
            return self.on_ack_from_there(data.ack);
        }
        self.deliver_rare(data);
    }

    #[inline(always)]
    fn on_arrival(&mut self) {
        let Some(data) = self.path.arrive(0, self.now_ns) else { return };
        if let Some(ahead) = self.ahead(self.path.peek_arrival(PREFETCH_AHEAD).map(|d| d.flow)) {
            prefetch(&ahead.receiver);
        }
        if data.ack != NONE {
            return self.on_ack_from_there(data.ack);
        }
        self.deliver(data);
    }

    /// The ACK `ack` of a flow that goes back reaches its sender.
    #[inline(never)]
    fn on_ack_from_there(&mut self, ack: u32) {
        if let Some(ack) = self.acks.take(ack) {
            self.deliver_ack(ack);
        }
    }

    #[inline(never)]
    fn deliver_rare(&mut self, data: Data) {
        self.deliver(data);
    }

    /// A packet reaches its receiver.
    #[inline(always)]
    fn deliver(&mut self, data: Data) {
        let flow = &mut self.flows[data.flow as usize];
        match &mut flow.kind {
            Kind::Tcp(tcp) => {
                if data.ecn != Ecn::NotCapable {
                    tcp.receiver.heed(data.number, data.ecn, data.cwr);
                }
                match tcp.receiver.arrive(self.now_ns, data.number) {
                    Reply::Now { duplicate } => self.acknowledge(data.flow, duplicate),
                    Reply::Later => {
                        let due_ns = tcp.receiver.delack_due_ns;
                        if due_ns < tcp.delack_in_heap_ns {
                            tcp.delack_in_heap_ns = due_ns;
                            self.timers.push(due_ns, data.flow, Timer::DelayedAck);
                            self.path.set_timers(self.timers.next_ns());
                        }
                    }
                }
            }
            Kind::Udp(udp) => udp.arrive(self.now_ns, data.number, data.bytes.into()),
        }
    }

    /// Flow `flow`'s receiver sends an ACK.
    #[inline]
    fn acknowledge(&mut self, index: u32, duplicate: u32) {
        let flow = &mut self.flows[index as usize];
        let Kind::Tcp(tcp) = &mut flow.kind else { return };
        tcp.receiver.acknowledged();
        let cumulative = tcp.receiver.cumulative();
        if flow.port.goes_back {
            return self.acknowledge_there(index, duplicate);
        }
        if self.path.loses_back(&mut flow.port) {
            return;
        }
        let blocks = tcp.receiver.blocks().map_or(NONE, |blocks| self.blocks.put(blocks));
        let to = AckTo::new(index, tcp.receiver.echoes());
        let ack = AckPacket { to, cumulative, duplicate, blocks };
        let (bytes, store) = (flow.port.ack_bytes, &mut self.blocks);
        self.path.send_back(self.now_ns, ack, bytes, &mut flow.port, |dropped| {
            store.take(dropped.blocks);
        });
    }

    /// As [`Self::acknowledge`], of a flow that goes back.
    #[inline(never)]
    fn acknowledge_there(&mut self, index: u32, duplicate: u32) {
        let flow = &mut self.flows[index as usize];
        let Kind::Tcp(tcp) = &mut flow.kind else { return };
        let cumulative = tcp.receiver.cumulative();
        let blocks = tcp.receiver.blocks().map_or(NONE, |blocks| self.blocks.put(blocks));
        let to = AckTo::new(index, tcp.receiver.echoes());
        let ack = self.acks.put(AckPacket { to, cumulative, duplicate, blocks });
        let bytes = flow.port.ack_bytes as u16;
        let (number, ecn) = (cumulative, Ecn::NotCapable);
        let data = Data { flow: index, number, ack, bytes, ecn, cwr: false };
        let mut refused = None;
        self.path.send(self.now_ns, data, &mut flow.port, |_, data| refused = Some(data));
        if let Some(data) = refused {
            self.gone(data);
        }
        self.take_dropped();
    }

    /// A packet reaches a bottleneck.
    #[inline(always)]
    fn on_bottleneck(&mut self, entrance: usize) {
        let Some((data, hop)) = self.path.at_bottleneck(entrance, self.now_ns) else { return };
        let port = &mut self.flows[data.flow as usize].port;
        let mut refused = false;
        self.path.offer(self.now_ns, data, hop, port, |_, _| refused = true);
        if refused {
            self.gone(data);
        }
    }

    /// A packet of class `class` reaches the path's start.
    #[inline(always)]
    fn on_sender(&mut self, class: usize) {
        let Some(ack) = self.path.back(class, self.now_ns) else { return };
        let ahead = |n| self.path.peek_back(class, n).map(|a| a.to.flow());
        let (soon, later) = (ahead(PREFETCH_AHEAD), ahead(2 * PREFETCH_AHEAD));
        if let Some(later) = self.ahead(later) {
            prefetch(&later.sender);
        }
        // By now its own memory is there, and says where the rest is.
        if let Some(first) = self.ahead(soon).and_then(|tcp| tcp.sender.first_outstanding()) {
            prefetch(first);
        }
        if ack.to.is_data() {
            return self.on_data_from_back(ack);
        }
        self.deliver_ack(ack);
    }

    /// Data of a flow that goes back reach their receiver.
    #[inline(never)]
    fn on_data_from_back(&mut self, packet: AckPacket) {
        let (flow, number) = (packet.to.flow(), packet.cumulative);
        let bytes = self.flows[flow as usize].port.packet_bytes as u16;
        self.deliver_rare(Data {
            flow,
            number,
            ack: NONE,
            bytes,
            ecn: Ecn::NotCapable,
            cwr: false,
        });
    }

    /// An ACK reaches its sender.
    #[inline(always)]
    fn deliver_ack(&mut self, ack: AckPacket) {
        let blocks = self.blocks.take(ack.blocks);
        self.with_sender(ack.to.flow(), |sender, now_ns, out| {
            sender.on_ack(now_ns, ack, blocks, out)
        });
    }

    /// Lets a sender act, then sees to its timer.
    #[inline(always)]
    fn with_sender(&mut self, index: u32, act: impl FnOnce(&mut Sender, Ns, &mut Out)) {
        let flow = &mut self.flows[index as usize];
        let Kind::Tcp(tcp) = &mut flow.kind else { return };
        let mut out =
            Out { path: &mut self.path, now_ns: self.now_ns, flow: index, port: &mut flow.port };
        act(&mut tcp.sender, self.now_ns, &mut out);
        if tcp.sender.timer_due_ns < tcp.rto_in_heap_ns {
            tcp.rto_in_heap_ns = tcp.sender.timer_due_ns;
            self.timers.push(tcp.rto_in_heap_ns, index, Timer::Retransmission);
            self.path.set_timers(self.timers.next_ns());
        }
        if tcp.sender.pace_due_ns < tcp.pace_in_heap_ns {
            tcp.pace_in_heap_ns = tcp.sender.pace_due_ns;
            self.timers.push(tcp.pace_in_heap_ns, index, Timer::Pace);
            self.path.set_timers(self.timers.next_ns());
        }
    }

    fn on_timer(&mut self) {
        let Some(Reverse((due_ns, index, timer))) = self.timers.heap.pop() else { return };
        match timer {
            Timer::Start => self.start(index),
            Timer::Stop => {
                let flow = &mut self.flows[index as usize];
                flow.stopped = true;
                if let Kind::Tcp(tcp) = &mut flow.kind {
                    tcp.sender.stop();
                }
            }
            Timer::Write => self.write(index),
            Timer::Retransmission => self.on_rto(index, due_ns),
            Timer::DelayedAck => self.on_delayed_ack(index, due_ns),
            Timer::Udp => self.send_udp(index),
            Timer::Pace => self.on_pace(index, due_ns),
        }
        self.path.set_timers(self.timers.next_ns());
    }

    fn start(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        flow.started = true;
        if flow.drawn && self.spec.record.bin_ns > 0 {
            self.sampled.push(index);
        }
        match &flow.kind {
            Kind::Udp(udp) if udp.due_ns() > self.now_ns => {
                self.timers.push(udp.due_ns(), index, Timer::Udp);
            }
            Kind::Udp(_) => self.send_udp(index),
            Kind::Tcp(_) => self.write(index),
        }
    }

    /// The application of a TCP flow writes.
    fn write(&mut self, index: u32) {
        let FlowKind::Tcp(spec) = &self.spec.flows[index as usize].kind else { return };
        let flow = &mut self.flows[index as usize];
        let Kind::Tcp(tcp) = &mut flow.kind else { return };
        if flow.stopped {
            return;
        }
        let segments = spec.workload.write(tcp.writes).map(|write| {
            tcp.writes += 1;
            match spec.workload.write(tcp.writes) {
                Some(next) => {
                    self.timers.push(flow.start_ns + next.after_ns, index, Timer::Write);
                }
                None => tcp.all_written = true,
            }
            let mss_bytes = u64::from(spec.options.mss_bytes);
            let segments = write.bytes.div_ceil(mss_bytes) as u32;
            let short_bytes = (u64::from(segments) * mss_bytes - write.bytes) as u32;
            let end = tcp.sender.written().saturating_add(segments);
            tcp.receiver.expect(end, short_bytes, self.now_ns, write.bytes);
            segments
        });
        self.with_sender(index, |sender, now_ns, out| sender.write(now_ns, segments, out));
    }

    fn on_rto(&mut self, index: u32, due_ns: Ns) {
        let Kind::Tcp(tcp) = &mut self.flows[index as usize].kind else { return };
        if due_ns != tcp.rto_in_heap_ns {
            return; // superseded by an earlier one
        }
        tcp.rto_in_heap_ns = NEVER;
        if tcp.sender.timer_due_ns > self.now_ns {
            tcp.rto_in_heap_ns = tcp.sender.timer_due_ns;
            self.timers.push(tcp.rto_in_heap_ns, index, Timer::Retransmission);
        } else {
            self.with_sender(index, |sender, now_ns, out| sender.on_timer(now_ns, out));
        }
    }

    fn on_pace(&mut self, index: u32, due_ns: Ns) {
        let Kind::Tcp(tcp) = &mut self.flows[index as usize].kind else { return };
        if due_ns != tcp.pace_in_heap_ns {
            return;
        }
        tcp.pace_in_heap_ns = NEVER;
        if tcp.sender.pace_due_ns > self.now_ns {
            tcp.pace_in_heap_ns = tcp.sender.pace_due_ns;
            self.timers.push(tcp.pace_in_heap_ns, index, Timer::Pace);
        } else {
            self.with_sender(index, |sender, now_ns, out| sender.on_pace(now_ns, out));
        }
    }

    fn on_delayed_ack(&mut self, index: u32, due_ns: Ns) {
        let Kind::Tcp(tcp) = &mut self.flows[index as usize].kind else { return };
        if due_ns != tcp.delack_in_heap_ns {
            return;
        }
        tcp.delack_in_heap_ns = NEVER;
        if tcp.receiver.delack_due_ns > self.now_ns {
            tcp.delack_in_heap_ns = tcp.receiver.delack_due_ns;
            self.timers.push(tcp.delack_in_heap_ns, index, Timer::DelayedAck);
        } else {
            self.acknowledge(index, NONE);
        }
    }

    fn send_udp(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        let Kind::Udp(udp) = &mut flow.kind else { return };
        if flow.stopped {
            return;
        }
        let number = udp.send();
        self.timers.push(udp.due_ns(), index, Timer::Udp);
        let mut out =
            Out { path: &mut self.path, now_ns: self.now_ns, flow: index, port: &mut flow.port };
        out.transmit(number, Ecn::NotCapable, false);
    }

    /// Ends a bin of the time series.
    fn close_bin(&mut self) {
        let flows = &mut self.flows;
        self.sampled.retain(|index| {
            let flow = &mut flows[*index as usize];
            flow.sample();
            !flow.drawn || !flow.has_ended()
        });
        self.path.close_bin(self.now_ns);
        (self.watch)(self.now_ns);
    }

    fn finish(mut self) -> RunRecord {
        let bin_ns = self.spec.record.bin_ns;
        if bin_ns > 0 && !self.spec.duration_ns.is_multiple_of(bin_ns) {
            self.close_bin();
        }
        let mut in_network = vec![0u64; self.flows.len()];
        for data in self.path.under_way().filter(|data| data.ack == NONE) {
            in_network[data.flow as usize] += 1;
        }
        for packet in self.path.under_way_back().filter(|packet| packet.to.is_data()) {
            in_network[packet.to.flow() as usize] += 1;
        }
        // Their memory is needed for the records.
        drop((self.timers, self.blocks, self.acks));
        let PathQueues { queues, reverse_queue } = self.path.finish();
        let (specs, duration_ns) = (&self.spec.flows, self.spec.duration_ns);
        // Collected in place: a flow and its record do not stand beside each other.
        let flows = self.flows.into_iter().enumerate();
        let flows = flows.map(|(i, flow)| {
            let record = flow.finish(&specs[i], in_network[i], duration_ns, bin_ns);
            record.without_idle_rows(bin_ns)
        });
        RunRecord {
            seed: self.spec.seed,
            duration_ns: self.spec.duration_ns,
            bin_ns,
            flows: flows.collect(),
            queues,
            reverse_queue,
            approximations: Vec::new(),
            real_time: None,
        }
    }
}

/// Asks for memory before it is needed: with thousands of flows it is not in the cache.
#[inline]
fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..size_of::<T>()).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let at = std::ptr::from_ref(value).cast::<i8>().wrapping_add(line);
        // SAFETY: a prefetch accepts any address and has no effect that a program can see.
        unsafe { _mm_prefetch(at, _MM_HINT_T0) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

impl Flow {
    fn new(spec: &RunSpec, index: u32, port: Port) -> Result<Self, SimError> {
        let flow: &FlowSpec = &spec.flows[index as usize];
        let stream = |component| spec.random(component, index as usize);
        let start_ns = spec.start_ns(index as usize);
        // A distribution takes 20 kB: too much for each of thousands of short flows.
        let keep = spec.record.bin_ns > 0 && flow.drawn.is_none();
        let kind = match &flow.kind {
            FlowKind::Tcp(TcpSpec { transport: Transport::Quic, .. }) => {
                return Err(SimError::Quic { flow: flow.name.clone() });
            }
            FlowKind::Tcp(TcpSpec { cc: Cc::Kernel(name), .. }) => {
                return Err(SimError::NotSimulated { flow: flow.name.clone(), cc: name.clone() });
            }
            FlowKind::Tcp(TcpSpec { cc: Cc::Knee(params), options, .. })
                if params.algorithm().profile() == Profile::Rate
                    && options.recovery != Recovery::Sack =>
            {
                let cc = params.algorithm().name();
                return Err(SimError::NoSack { flow: flow.name.clone(), cc });
            }
            FlowKind::Tcp(TcpSpec { cc: Cc::Knee(params), options, .. }) => {
                let params = params.clone();
                Kind::Tcp(Tcp::new(spec, params, options, start_ns, stream("algorithm"), keep))
            }
            FlowKind::Udp { .. } | FlowKind::Probe { .. } => {
                let udp = UdpFlow::of(&flow.kind, start_ns).expect("no TCP");
                Kind::Udp(udp)
            }
        };
        if spec.packets(index as usize) >= u128::from(u32::MAX) {
            return Err(SimError::TooLong { flow: flow.name.clone() });
        }
        let bytes = port.packet_bytes.max(port.ack_bytes);
        if bytes > u32::from(u16::MAX) {
            return Err(SimError::TooLarge { flow: flow.name.clone(), bytes });
        }
        Ok(Self {
            kind,
            port,
            started: false,
            start_ns,
            stopped: false,
            drawn: flow.drawn.is_some(),
            samples: Vec::new(),
            last: FlowTotals::default(),
        })
    }

    fn counters(&self) -> FlowCounters {
        let counters = match &self.kind {
            Kind::Tcp(tcp) => FlowCounters {
                delivered_pkts: tcp.receiver.delivered_pkts,
                delivered_bytes: tcp.receiver.delivered_bytes,
                duplicate_pkts: tcp.receiver.duplicate_pkts,
                ..tcp.sender.counters()
            },
            Kind::Udp(udp) => udp.counters(),
        };
        self.port.count(counters)
    }

    fn sample(&mut self) {
        let c = self.counters();
        let mut sample = self.last.close_bin(&c);
        if let Kind::Tcp(tcp) = &self.kind
            && self.started
            && !self.stopped
        {
            let conn = tcp.sender.conn();
            sample.cwnd_pkts = conn.cwnd_pkts;
            sample.ssthresh_pkts = conn.ssthresh_pkts;
            sample.inflight_pkts = tcp.sender.inflight_pkts();
            sample.srtt_us = conn.srtt_us;
            sample.observed = tcp.sender.observe();
        }
        self.samples.push(sample);
    }

    /// Whether nothing more will happen: all that there ever is to send has arrived and is
    /// acknowledged, and no packet is on its way to the receiver.
    fn has_ended(&self) -> bool {
        let Kind::Tcp(tcp) = &self.kind else { return false };
        let c = self.counters();
        let gone_pkts = c.delivered_pkts + c.duplicate_pkts;
        let gone_pkts = gone_pkts + c.queue_drops_pkts + c.random_losses_pkts;
        (tcp.all_written || self.stopped) && tcp.sender.is_idle() && c.sent_pkts == gone_pkts
    }

    fn finish(
        self,
        spec: &FlowSpec,
        in_network_pkts: u64,
        duration_ns: Ns,
        bin_ns: Ns,
    ) -> FlowRecord {
        let counters = FlowCounters { in_network_pkts, ..self.counters() };
        let start_bin = self.start_ns.checked_div(bin_ns).filter(|_| self.drawn);
        let record = FlowRecord {
            counters,
            first_bin: start_bin.unwrap_or(0) as u32,
            samples: self.samples,
            ..FlowRecord::of(spec, self.start_ns, duration_ns)
        };
        match (self.kind, &spec.kind) {
            (Kind::Tcp(mut tcp), FlowKind::Tcp(t)) => FlowRecord {
                kind: t.cc.name(),
                observes: t.cc.observes(),
                unfinished: tcp.receiver.unfinished(),
                transfers: std::mem::take(&mut tcp.receiver.completed),
                rtt: tcp.sender.take_rtt_stats(),
                trace: tcp.sender.take_trace(),
                ..record
            },
            (Kind::Udp(udp), _) => udp.finish(record),
            (Kind::Tcp(_), _) => record,
        }
    }
}

impl Tcp {
    fn new(
        spec: &RunSpec,
        params: Params,
        options: &TcpOptions,
        start_ns: Ns,
        random: Random,
        keep: bool,
    ) -> Self {
        Self {
            sender: Sender::new(params, options, start_ns, random, keep, spec.record.trace),
            receiver: Receiver::new(options.mss_bytes, options.delayed_ack, options.quick_ack_pkts),
            writes: 0,
            all_written: false,
            rto_in_heap_ns: NEVER,
            delack_in_heap_ns: NEVER,
            pace_in_heap_ns: NEVER,
        }
    }
}
