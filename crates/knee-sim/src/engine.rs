//! The event loop.
//!
//! Event sources in order of precedence at the same instant: end of a time-series bin, timers
//! (by flow), departure from the bottleneck, arrival at a receiver, then for each delay class the
//! arrival at the bottleneck and the arrival of an ACK at a sender. A FIFO element is one source
//! with one pending event, however many packets it holds.

use crate::{
    SimError,
    packet::{AckPacket, BlockStore, Data, NONE},
    receiver::{Receiver, Reply},
    schedule::Schedule,
    sender::{Sender, Transmit},
};
use knee_net::{DelayLine, Jitter, Link, Loss, NEVER, Random};
use knee_run::{
    DelayStats, FlowCounters, FlowKind, FlowRecord, FlowSample, FlowSpec, Ns, PacketEvent,
    PacketLog, QueueBin, QueueRecord, RunRecord, RunSpec, TcpSpec, Workload,
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

const BINS: usize = 0;
const TIMERS: usize = 1;
const DEPARTURE: usize = 2;
const ARRIVAL: usize = 3;
const CLASSES: usize = 4;

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
}

/// Timers of all flows. A flow's retransmission and delayed-ACK timers stand in the heap at most
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

/// Packets between the senders or receivers of one access delay and the shared path.
struct Class {
    access_delay_ns: Ns,
    /// Neither delay nor jitter on the way to the bottleneck: packets are there at once.
    direct: bool,
    to_bottleneck: DelayLine<Data>,
    to_sender: DelayLine<AckPacket>,
}

impl Class {
    fn source_out(index: usize) -> usize {
        CLASSES + 2 * index
    }
    fn source_back(index: usize) -> usize {
        CLASSES + 2 * index + 1
    }
}

// TCP flows are the many: what they need stands in the flow itself, not behind a pointer.
#[allow(clippy::large_enum_variant)]
enum Kind {
    Tcp(Tcp),
    Udp(Udp),
}

struct Tcp {
    sender: Sender,
    receiver: Receiver,
    /// When the timers of this flow stand in the heap; [`NEVER`]: they do not.
    rto_in_heap_ns: Ns,
    delack_in_heap_ns: Ns,
}

struct Udp {
    packet_bytes: u32,
    /// Time between packets, in units of 1/denominator ns.
    interval: (u64, u64),
    start_ns: Ns,
    next_number: u32,
    counters: FlowCounters,
    keep_delays: bool,
    delays: Vec<(Ns, Ns)>,
    delay: DelayStats,
}

struct Flow {
    kind: Kind,
    port: Port,
    started: bool,
    start_ns: Ns,
    stopped: bool,
    ack_losses_pkts: u64,
    reverse: Random,
    samples: Vec<FlowSample>,
    /// Totals at the last bin: delivered bytes, sent, lost.
    last: (u64, u64, u64),
}

/// Where a flow's packets leave its host, and what became of them on the way.
struct Port {
    class: u32,
    data_bytes: u32,
    access_jitter: Jitter,
    random: Random,
    random_losses_pkts: u64,
    queue_drops_pkts: u64,
}

/// What all flows share, apart from the flows themselves.
struct Network {
    link: Link<Data>,
    to_receivers: DelayLine<Data>,
    classes: Vec<Class>,
    schedule: Schedule,
    loss_forward: Loss,
    queue: QueueRecord,
    bin: QueueBin,
    log: bool,
}

pub(crate) struct Engine<'a> {
    spec: &'a RunSpec,
    now_ns: Ns,
    flows: Vec<Flow>,
    net: Network,
    timers: Timers,
    blocks: BlockStore,
    loss_reverse: Loss,
    jitter_forward: Jitter,
    jitter_reverse: Jitter,
    /// When the latest ACK leaves the shared way back: none overtakes it.
    reverse_passed_ns: Ns,
    jitter_random: Random,
}

/// Sends a flow's packets.
struct Out<'a> {
    net: &'a mut Network,
    now_ns: Ns,
    flow: u32,
    port: &'a mut Port,
}

impl Transmit for Out<'_> {
    #[inline]
    fn transmit(&mut self, number: u32) {
        let port = &mut *self.port;
        let data = Data { flow: self.flow, number, bytes: port.data_bytes };
        let class = &mut self.net.classes[port.class as usize];
        // Not by this packet's own delay: a jitter of 0 must not overtake an earlier packet's.
        if class.direct {
            self.net.offer(self.now_ns, data, port);
            return;
        }
        let delay_ns = class.access_delay_ns + port.access_jitter.draw_ns(&mut port.random);
        class.to_bottleneck.push(self.now_ns, delay_ns, data);
        let due = class.to_bottleneck.next_ns();
        self.net.schedule.set(Class::source_out(port.class as usize), due);
    }
}

impl Network {
    /// A packet from `port` reaches the bottleneck.
    #[inline]
    fn offer(&mut self, now_ns: Ns, data: Data, port: &mut Port) {
        let event = if self.loss_forward.loses(&mut port.random) {
            port.random_losses_pkts += 1;
            PacketEvent::Lost
        } else if self.link.enqueue(now_ns, data).is_err() {
            port.queue_drops_pkts += 1;
            self.queue.dropped_pkts += 1;
            self.bin.dropped_pkts += 1;
            PacketEvent::Dropped
        } else {
            self.schedule.set(DEPARTURE, self.link.next_ns());
            self.queue.max_pkts = self.queue.max_pkts.max(self.link.held_pkts());
            PacketEvent::Enqueued
        };
        self.note(now_ns, &data, event);
    }

    #[inline]
    fn note(&mut self, time_ns: Ns, data: &Data, event: PacketEvent) {
        if self.log {
            self.queue.log.push(PacketLog {
                time_ns,
                flow: data.flow,
                number: data.number,
                bytes: data.bytes,
                held_pkts: self.link.held_pkts(),
                event,
            });
        }
    }
}

impl<'a> Engine<'a> {
    pub(crate) fn new(spec: &'a RunSpec) -> Result<Self, SimError> {
        let mut classes: Vec<Class> = Vec::new();
        let mut class_of: BTreeMap<(Ns, Option<usize>), u32> = BTreeMap::new();
        let mut flows = Vec::with_capacity(spec.flows.len());
        let mut timers = Timers::default();
        for (index, flow) in spec.flows.iter().enumerate() {
            // Jitter is a flow's own: it must not hold another flow's packets back.
            let key = (flow.access_delay_ns, (flow.access_jitter_ns > 0).then_some(index));
            let class = *class_of.entry(key).or_insert_with(|| {
                classes.push(Class {
                    access_delay_ns: flow.access_delay_ns,
                    direct: flow.access_delay_ns == 0 && flow.access_jitter_ns == 0,
                    to_bottleneck: DelayLine::default(),
                    to_sender: DelayLine::default(),
                });
                (classes.len() - 1) as u32
            });
            let new = Flow::new(spec, index as u32, class)?;
            timers.push(new.start_ns, index as u32, Timer::Start);
            if let Some(stop_ns) = flow.stop_ns {
                timers.push(stop_ns, index as u32, Timer::Stop);
            }
            flows.push(new);
        }
        let mut schedule = Schedule::new(CLASSES + 2 * classes.len());
        schedule.set(TIMERS, timers.next_ns());
        schedule.set(BINS, if spec.record.bin_ns > 0 { spec.record.bin_ns } else { NEVER });
        Ok(Self {
            spec,
            now_ns: 0,
            flows,
            net: Network {
                link: Link::new(spec.path.rate_bps, spec.path.queue),
                to_receivers: DelayLine::default(),
                classes,
                schedule,
                loss_forward: Loss::new(spec.path.loss_forward),
                queue: QueueRecord::default(),
                bin: QueueBin::default(),
                log: spec.record.queue_log,
            },
            timers,
            blocks: BlockStore::default(),
            loss_reverse: Loss::new(spec.path.loss_reverse),
            jitter_forward: Jitter::new(spec.path.jitter_forward_ns),
            jitter_reverse: Jitter::new(spec.path.jitter_reverse_ns),
            reverse_passed_ns: 0,
            jitter_random: Random::stream(spec.seed, "path jitter", 0),
        })
    }

    pub(crate) fn run(mut self) -> Result<RunRecord, SimError> {
        loop {
            let (source, due_ns) = self.net.schedule.first();
            if due_ns > self.spec.duration_ns {
                break;
            }
            debug_assert!(due_ns >= self.now_ns, "an event before its time");
            self.now_ns = due_ns;
            match source {
                BINS => self.close_bin(),
                TIMERS => self.on_timer(),
                DEPARTURE => self.on_departure(),
                ARRIVAL => self.on_arrival(),
                _ if source.is_multiple_of(2) => self.on_bottleneck((source - CLASSES) / 2),
                _ => self.on_sender((source - CLASSES) / 2),
            }
        }
        Ok(self.finish())
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

    fn on_departure(&mut self) {
        let net = &mut self.net;
        let Some(departed) = net.link.dequeue(self.now_ns) else { return };
        net.schedule.set(DEPARTURE, net.link.next_ns());
        let data = departed.packet;
        net.queue.departed_pkts += 1;
        net.queue.departed_bytes += u64::from(data.bytes);
        if self.spec.record.bin_ns > 0 {
            let waited_ns = departed.waited_ns;
            net.queue.delay.add(waited_ns);
            net.bin.departed_pkts += 1;
            net.bin.departed_bytes += u64::from(data.bytes);
            net.bin.delay_sum_ns += waited_ns;
            net.bin.delay_max_ns = net.bin.delay_max_ns.max(waited_ns);
        }
        net.note(self.now_ns, &data, PacketEvent::Departed);
        let jitter_ns = self.jitter_forward.draw_ns(&mut self.jitter_random);
        let delay_ns = self.spec.path.delay_forward_ns + jitter_ns;
        net.to_receivers.push(self.now_ns, delay_ns, data);
        net.schedule.set(ARRIVAL, net.to_receivers.next_ns());
    }

    fn on_arrival(&mut self) {
        let Some(data) = self.net.to_receivers.pop(self.now_ns) else { return };
        self.net.schedule.set(ARRIVAL, self.net.to_receivers.next_ns());
        if let Some(ahead) = self.ahead(self.net.to_receivers.peek(PREFETCH_AHEAD).map(|d| d.flow))
        {
            prefetch(&ahead.receiver);
        }
        let flow = &mut self.flows[data.flow as usize];
        match &mut flow.kind {
            Kind::Tcp(tcp) => match tcp.receiver.arrive(self.now_ns, data.number) {
                Reply::Now { duplicate } => self.acknowledge(data.flow, duplicate),
                Reply::Later => {
                    let due_ns = tcp.receiver.delack_due_ns;
                    if due_ns < tcp.delack_in_heap_ns {
                        tcp.delack_in_heap_ns = due_ns;
                        self.timers.push(due_ns, data.flow, Timer::DelayedAck);
                        self.net.schedule.set(TIMERS, self.timers.next_ns());
                    }
                }
            },
            Kind::Udp(udp) => udp.arrive(self.now_ns, &data),
        }
    }

    /// Flow `flow`'s receiver sends an ACK.
    #[inline]
    fn acknowledge(&mut self, index: u32, duplicate: u32) {
        let flow = &mut self.flows[index as usize];
        let Kind::Tcp(tcp) = &mut flow.kind else { return };
        tcp.receiver.acknowledged();
        let cumulative = tcp.receiver.cumulative();
        if self.loss_reverse.loses(&mut flow.reverse) {
            flow.ack_losses_pkts += 1;
            return;
        }
        let blocks = tcp.receiver.blocks().map_or(NONE, |blocks| self.blocks.put(blocks));
        let ack = AckPacket { flow: index, cumulative, duplicate, blocks };
        let class = &mut self.net.classes[flow.port.class as usize];
        let delay_ns =
            self.spec.path.delay_reverse_ns + self.jitter_reverse.draw_ns(&mut flow.reverse);
        // All flows share the way back as they share the way there; access comes after it.
        self.reverse_passed_ns = self.reverse_passed_ns.max(self.now_ns + delay_ns);
        class.to_sender.push(self.reverse_passed_ns, class.access_delay_ns, ack);
        let due_ns = class.to_sender.next_ns();
        self.net.schedule.set(Class::source_back(flow.port.class as usize), due_ns);
    }

    /// A packet of class `class` reaches the bottleneck.
    fn on_bottleneck(&mut self, class: usize) {
        let line = &mut self.net.classes[class].to_bottleneck;
        let Some(data) = line.pop(self.now_ns) else { return };
        let next_ns = line.next_ns();
        self.net.schedule.set(Class::source_out(class), next_ns);
        let flow = &mut self.flows[data.flow as usize];
        self.net.offer(self.now_ns, data, &mut flow.port);
    }

    /// An ACK of class `class` reaches its sender.
    fn on_sender(&mut self, class: usize) {
        let line = &mut self.net.classes[class].to_sender;
        let Some(ack) = line.pop(self.now_ns) else { return };
        let next_ns = line.next_ns();
        let ahead = |n| line.peek(n).map(|a| a.flow);
        let (soon, later) = (ahead(PREFETCH_AHEAD), ahead(2 * PREFETCH_AHEAD));
        self.net.schedule.set(Class::source_back(class), next_ns);
        if let Some(later) = self.ahead(later) {
            prefetch(&later.sender);
        }
        // By now its own memory is there, and says where the rest is.
        if let Some(first) = self.ahead(soon).and_then(|tcp| tcp.sender.first_outstanding()) {
            prefetch(first);
        }
        let blocks = self.blocks.take(ack.blocks);
        self.with_sender(ack.flow, |sender, now_ns, out| sender.on_ack(now_ns, ack, blocks, out));
    }

    /// Lets a sender act, then sees to its timer.
    #[inline]
    fn with_sender(&mut self, index: u32, act: impl FnOnce(&mut Sender, Ns, &mut Out)) {
        let flow = &mut self.flows[index as usize];
        let Kind::Tcp(tcp) = &mut flow.kind else { return };
        let mut out =
            Out { net: &mut self.net, now_ns: self.now_ns, flow: index, port: &mut flow.port };
        act(&mut tcp.sender, self.now_ns, &mut out);
        if tcp.sender.timer_due_ns < tcp.rto_in_heap_ns {
            tcp.rto_in_heap_ns = tcp.sender.timer_due_ns;
            self.timers.push(tcp.rto_in_heap_ns, index, Timer::Retransmission);
            self.net.schedule.set(TIMERS, self.timers.next_ns());
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
        }
        self.net.schedule.set(TIMERS, self.timers.next_ns());
    }

    fn start(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        flow.started = true;
        match &flow.kind {
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
        let segments = match spec.workload {
            Workload::Bulk => None,
            Workload::Transfers { size_bytes, every_ns } => {
                if let Some(every_ns) = every_ns {
                    self.timers.push(self.now_ns + every_ns, index, Timer::Write);
                }
                let mss_bytes = u64::from(spec.options.mss_bytes);
                let segments = size_bytes.div_ceil(mss_bytes) as u32;
                let short_bytes = (u64::from(segments) * mss_bytes - size_bytes) as u32;
                let end = tcp.sender.written().saturating_add(segments);
                tcp.receiver.expect(end, short_bytes, self.now_ns, size_bytes);
                Some(segments)
            }
        };
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
        let number = udp.next_number;
        udp.next_number += 1;
        udp.counters.sent_pkts += 1;
        self.timers.push(udp.sent_ns(udp.next_number), index, Timer::Udp);
        let mut out =
            Out { net: &mut self.net, now_ns: self.now_ns, flow: index, port: &mut flow.port };
        out.transmit(number);
    }

    /// Ends a bin of the time series.
    fn close_bin(&mut self) {
        for flow in &mut self.flows {
            flow.sample();
        }
        let net = &mut self.net;
        net.bin.held_pkts = net.link.held_pkts();
        net.queue.bins.push(std::mem::take(&mut net.bin));
        net.schedule.set(BINS, self.now_ns + self.spec.record.bin_ns);
    }

    fn finish(mut self) -> RunRecord {
        let bin_ns = self.spec.record.bin_ns;
        if bin_ns > 0 && !self.spec.duration_ns.is_multiple_of(bin_ns) {
            self.close_bin();
        }
        let mut in_network = vec![0u64; self.flows.len()];
        let held = self.net.link.iter().chain(self.net.to_receivers.iter());
        for data in held.chain(self.net.classes.iter().flat_map(|c| c.to_bottleneck.iter())) {
            in_network[data.flow as usize] += 1;
        }
        let queue = std::mem::take(&mut self.net.queue);
        // Their memory is needed for the records.
        drop((self.net, self.timers, self.blocks));
        let (specs, duration_ns) = (&self.spec.flows, self.spec.duration_ns);
        // Collected in place: a flow and its record do not stand beside each other.
        let flows = self.flows.into_iter().enumerate();
        let flows = flows.map(|(i, flow)| flow.finish(&specs[i], in_network[i], duration_ns));
        RunRecord {
            seed: self.spec.seed,
            duration_ns: self.spec.duration_ns,
            bin_ns,
            flows: flows.collect(),
            queue,
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
    fn new(spec: &RunSpec, index: u32, class: u32) -> Result<Self, SimError> {
        let flow: &FlowSpec = &spec.flows[index as usize];
        let stream = |component| Random::stream(spec.seed, component, u64::from(index));
        let start_ns =
            flow.start_ns + Jitter::new(flow.start_jitter_ns).draw_ns(&mut stream("start"));
        let keep = spec.record.bin_ns > 0;
        let (kind, data_bytes) = match &flow.kind {
            FlowKind::Tcp(tcp) => {
                let o = &tcp.options;
                (
                    Kind::Tcp(Tcp::new(spec, tcp, start_ns, stream("algorithm"), keep)),
                    o.mss_bytes + o.header_bytes,
                )
            }
            FlowKind::Udp { rate_bps, packet_bytes } => {
                let bits_ns = u64::from(*packet_bytes) * 8 * knee_run::NS_PER_S;
                (
                    Kind::Udp(Udp::new(*packet_bytes, (bits_ns, *rate_bps), start_ns, false)),
                    *packet_bytes,
                )
            }
            FlowKind::Probe { interval_ns, packet_bytes } => (
                Kind::Udp(Udp::new(*packet_bytes, (*interval_ns, 1), start_ns, true)),
                *packet_bytes,
            ),
        };
        // No flow can send more than the link carries, twice over for what is dropped; UDP sends
        // at its own rate.
        let bits_per_s = match &kind {
            Kind::Tcp(_) => u128::from(spec.path.rate_bps) * 2,
            Kind::Udp(udp) => {
                u128::from(udp.packet_bytes)
                    * 8
                    * u128::from(knee_run::NS_PER_S)
                    * u128::from(udp.interval.1)
                    / u128::from(udp.interval.0.max(1))
            }
        };
        let numbers = match &flow.kind {
            // A transfer numbers what it writes, however often it sends it.
            FlowKind::Tcp(TcpSpec {
                workload: Workload::Transfers { size_bytes, every_ns },
                options,
                ..
            }) => {
                let times = every_ns.map_or(1, |e| spec.duration_ns / e.max(1) + 1);
                u128::from(size_bytes.div_ceil(u64::from(options.mss_bytes))) * u128::from(times)
            }
            _ => {
                bits_per_s * u128::from(spec.duration_ns)
                    / (u128::from(data_bytes) * 8 * u128::from(knee_run::NS_PER_S))
            }
        };
        if numbers >= u128::from(u32::MAX) {
            return Err(SimError::TooLong { flow: flow.name.clone() });
        }
        Ok(Self {
            kind,
            port: Port {
                class,
                data_bytes,
                access_jitter: Jitter::new(flow.access_jitter_ns),
                random: stream("forward"),
                random_losses_pkts: 0,
                queue_drops_pkts: 0,
            },
            started: false,
            start_ns,
            stopped: false,
            ack_losses_pkts: 0,
            reverse: stream("reverse"),
            samples: Vec::new(),
            last: (0, 0, 0),
        })
    }

    fn counters(&self) -> FlowCounters {
        let counters = match &self.kind {
            Kind::Tcp(tcp) => FlowCounters {
                delivered_pkts: tcp.receiver.delivered_pkts,
                delivered_bytes: tcp.receiver.delivered_bytes,
                duplicate_pkts: tcp.receiver.duplicate_pkts,
                ..tcp.sender.counters
            },
            Kind::Udp(udp) => udp.counters,
        };
        FlowCounters {
            random_losses_pkts: self.port.random_losses_pkts,
            queue_drops_pkts: self.port.queue_drops_pkts,
            ack_losses_pkts: self.ack_losses_pkts,
            ..counters
        }
    }

    fn sample(&mut self) {
        let c = self.counters();
        let lost = c.random_losses_pkts + c.queue_drops_pkts;
        let (bytes_before, sent_before, lost_before) = self.last;
        let mut sample = FlowSample {
            delivered_bytes: c.delivered_bytes - bytes_before,
            sent_pkts: (c.sent_pkts - sent_before) as u32,
            lost_pkts: (lost - lost_before) as u32,
            ..FlowSample::default()
        };
        self.last = (c.delivered_bytes, c.sent_pkts, lost);
        if let Kind::Tcp(tcp) = &self.kind
            && self.started
            && !self.stopped
        {
            let conn = &tcp.sender.conn;
            sample.cwnd_pkts = conn.cwnd_pkts;
            sample.ssthresh_pkts = conn.ssthresh_pkts;
            sample.inflight_pkts = tcp.sender.inflight_pkts();
            sample.srtt_us = conn.srtt_us;
            sample.observed = tcp.sender.observe();
        }
        self.samples.push(sample);
    }

    fn finish(self, spec: &FlowSpec, in_network_pkts: u64, duration_ns: Ns) -> FlowRecord {
        let counters = FlowCounters { in_network_pkts, ..self.counters() };
        let record = FlowRecord {
            name: spec.name.clone(),
            start_ns: self.start_ns,
            stop_ns: spec.stop_ns.map_or(duration_ns, |stop_ns| stop_ns.min(duration_ns)),
            counters,
            samples: self.samples,
            ..FlowRecord::default()
        };
        match (self.kind, &spec.kind) {
            (Kind::Tcp(mut tcp), FlowKind::Tcp(t)) => FlowRecord {
                kind: t.params.algorithm().name().to_owned(),
                observes: t.params.algorithm().observes(),
                transfers: std::mem::take(&mut tcp.receiver.completed),
                rtt: std::mem::take(&mut tcp.sender.rtt),
                trace: tcp.sender.take_trace(),
                ..record
            },
            (Kind::Udp(udp), kind) => FlowRecord {
                kind: if matches!(kind, FlowKind::Probe { .. }) { "probe" } else { "udp" }
                    .to_owned(),
                probe_delays: udp.delays,
                one_way_delay: udp.delay,
                ..record
            },
            (Kind::Tcp(_), _) => record,
        }
    }
}

impl Tcp {
    fn new(spec: &RunSpec, tcp: &TcpSpec, start_ns: Ns, random: Random, keep: bool) -> Self {
        let o = &tcp.options;
        Self {
            sender: Sender::new(tcp, start_ns, random, keep, spec.record.trace),
            receiver: Receiver::new(o.mss_bytes, o.delayed_ack),
            rto_in_heap_ns: NEVER,
            delack_in_heap_ns: NEVER,
        }
    }
}

impl Udp {
    fn new(packet_bytes: u32, interval: (u64, u64), start_ns: Ns, keep_delays: bool) -> Self {
        Self {
            packet_bytes,
            interval,
            start_ns,
            next_number: 0,
            counters: FlowCounters::default(),
            keep_delays,
            delays: Vec::new(),
            delay: DelayStats::default(),
        }
    }

    /// When packet `number` is sent.
    fn sent_ns(&self, number: u32) -> Ns {
        let elapsed = u128::from(number) * u128::from(self.interval.0);
        self.start_ns + (elapsed / u128::from(self.interval.1)) as u64
    }

    fn arrive(&mut self, now_ns: Ns, data: &Data) {
        self.counters.delivered_pkts += 1;
        self.counters.delivered_bytes += u64::from(data.bytes);
        if self.keep_delays {
            let sent_ns = self.sent_ns(data.number);
            let delay_ns = now_ns - sent_ns;
            self.delays.push((sent_ns, delay_ns));
            self.delay.add(delay_ns);
        }
    }
}
