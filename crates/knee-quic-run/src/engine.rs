//! The event loop: quinn's connections and the path in virtual time.
//!
//! As in the simulator the path says what is next due, and the timers of all flows are one of its
//! sources. A connection's timer stands in the heap at most once for each end; moved to a later time
//! it stays where it is and is looked at when it comes up.

use crate::{
    Calls, EcnCodepoint, Error, Failed, Maker, Out, Qlog, Receiver, Sender, Terms, peer,
    terms::check_route,
};
use bytes::BytesMut;
use knee_net::{Ecn, NEVER, Packet};
use knee_run::{
    FlowCounters, FlowKind, FlowRecord, FlowSample, FlowTotals, Ns, Numbered, PacketEvent, Path,
    PathQueues, Port, RunOptions, RunRecord, RunSpec, Source, Transfer, UdpFlow, Unfinished,
};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    time::{Duration, Instant},
};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Timer {
    Start,
    Stop,
    Write,
    Sender,
    Receiver,
    Udp,
}

/// A packet towards a receiver.
#[derive(Default)]
struct Forward {
    flow: u32,
    number: u32,
    wire_bytes: u32,
    ecn: Option<EcnCodepoint>,
    /// UDP payload; empty of flows without feedback.
    payload: BytesMut,
}

impl Packet for Forward {
    fn wire_bytes(&self) -> u32 {
        self.wire_bytes
    }

    fn flow_key(&self) -> u32 {
        self.flow
    }

    fn ecn(&self) -> Ecn {
        match self.ecn {
            None => Ecn::NotCapable,
            Some(EcnCodepoint::Ce) => Ecn::Marked,
            Some(_) => Ecn::Capable,
        }
    }

    fn mark(&mut self) {
        self.ecn = Some(EcnCodepoint::Ce);
    }
}

impl Numbered for Forward {
    fn flow(&self) -> u32 {
        self.flow
    }

    fn number(&self) -> u32 {
        self.number
    }
}

/// A packet back to a sender.
#[derive(Default)]
struct Back {
    flow: u32,
    ecn: Option<EcnCodepoint>,
    payload: BytesMut,
}

#[allow(clippy::large_enum_variant, reason = "most flows are of the large kind")]
enum Kind {
    Quic(Quic),
    Udp(UdpFlow),
}

struct Quic {
    terms: Terms,
    /// Both ends, from the flow's start on.
    ends: Option<Ends>,
    sent_pkts: u64,
    arrived_pkts: u64,
    /// Transfers under way: where each ends in the stream, start, size.
    transfers: VecDeque<(u64, Ns, u64)>,
    written_bytes: u64,
    /// Transfers that the application has written.
    writes: usize,
    completed: Vec<Transfer>,
}

struct Ends {
    sender: Sender,
    receiver: Receiver,
    calls: Calls,
    qlog: Option<Qlog>,
    /// When the timers stand in the heap; [`NEVER`]: they do not.
    sender_in_heap_ns: Ns,
    receiver_in_heap_ns: Ns,
}

struct Flow {
    kind: Kind,
    port: Port,
    start_ns: Ns,
    stopped: bool,
    samples: Vec<FlowSample>,
    last: FlowTotals,
}

pub(crate) struct Engine<'a> {
    spec: &'a RunSpec,
    options: &'a RunOptions,
    maker: Maker,
    approximations: Vec<String>,
    /// Time 0 on quinn's clock.
    zero: Instant,
    now_ns: Ns,
    flows: Vec<Flow>,
    path: Path<Forward, Back>,
    timers: BinaryHeap<Reverse<(Ns, u32, Timer)>>,
}

/// What is lost, its port counts.
fn lost(_: PacketEvent, _: Forward) {}

impl<'a> Engine<'a> {
    pub(crate) fn new(spec: &'a RunSpec, options: &'a RunOptions) -> Result<Self, Error> {
        // quinn counts back from the present; nothing depends on where 0 lies.
        let zero = Instant::now();
        let (path, ports) = Path::new(spec);
        let mut approximations = Vec::new();
        let mut flows = Vec::with_capacity(spec.flows.len());
        let mut timers = BinaryHeap::new();
        for ((index, flow), port) in spec.flows.iter().enumerate().zip(ports) {
            check_route(flow)?;
            if spec.packets(index) >= u128::from(u32::MAX) {
                return Err(Error::TooLong { flow: flow.name.clone() });
            }
            let start_ns = spec.start_ns(index);
            let kind = match &flow.kind {
                FlowKind::Tcp(tcp) => {
                    Kind::Quic(Quic::new(Terms::of(spec, flow, tcp, &mut approximations)?))
                }
                kind => Kind::Udp(UdpFlow::of(kind, start_ns).expect("no TCP")),
            };
            timers.push(Reverse((start_ns, index as u32, Timer::Start)));
            if let Some(stop_ns) = flow.stop_ns {
                timers.push(Reverse((stop_ns, index as u32, Timer::Stop)));
            }
            flows.push(Flow {
                kind,
                port,
                start_ns,
                stopped: false,
                samples: Vec::new(),
                last: FlowTotals::default(),
            });
        }
        approximations.sort();
        approximations.dedup();
        let maker = Maker::new(spec.seed, &spec.record)?;
        let mut new =
            Self { spec, options, maker, approximations, zero, now_ns: 0, flows, path, timers };
        new.set_timers();
        Ok(new)
    }

    fn set_timers(&mut self) {
        self.path.set_timers(self.timers.peek().map_or(NEVER, |Reverse((due_ns, ..))| *due_ns));
    }

    fn at(&self, ns: Ns) -> Instant {
        self.zero + Duration::from_nanos(ns)
    }

    pub(crate) fn run(mut self) -> Result<RunRecord, Error> {
        loop {
            let (source, due_ns) = self.path.first();
            if due_ns > self.spec.duration_ns {
                break;
            }
            debug_assert!(due_ns >= self.now_ns, "an event before its time");
            self.now_ns = due_ns;
            match source {
                Source::Bins => self.close_bin(),
                Source::Timers => self.on_timer()?,
                Source::Departure => self.depart(0),
                Source::Arrival => self.on_arrival(0)?,
                Source::LaterDeparture(hop) => self.depart(hop),
                Source::LaterArrival(hop) => self.on_arrival(hop)?,
                Source::Bottleneck(entrance) => self.on_bottleneck(entrance),
                Source::Sender(class) => self.on_sender(class)?,
                Source::DepartureBack => self.path.depart_back(due_ns),
            }
            while let Some(packet) = self.path.take_dropped() {
                self.flows[packet.flow as usize].port.there_drops_pkts += 1;
            }
        }
        self.finish()
    }

    fn depart(&mut self, hop: usize) {
        if let Some(flow) = self.path.depart(hop, self.now_ns) {
            self.flows[flow as usize].port.marked_pkts += 1;
        }
    }

    fn on_arrival(&mut self, hop: usize) -> Result<(), Error> {
        let Some(packet) = self.path.arrive(hop, self.now_ns) else { return Ok(()) };
        let index = packet.flow;
        let now = self.at(self.now_ns);
        match &mut self.flows[index as usize].kind {
            Kind::Udp(udp) => {
                udp.arrive(self.now_ns, packet.number, packet.wire_bytes);
                Ok(())
            }
            Kind::Quic(quic) => {
                quic.arrived_pkts += 1;
                self.with_receiver(index, |receiver, out| {
                    receiver.receive(now, packet.payload, packet.ecn, out)?;
                    receiver.drive(now, out)
                })
            }
        }
    }

    /// A packet reaches a bottleneck.
    fn on_bottleneck(&mut self, entrance: usize) {
        let Some((packet, hop)) = self.path.at_bottleneck(entrance, self.now_ns) else { return };
        let port = &mut self.flows[packet.flow as usize].port;
        self.path.offer(self.now_ns, packet, hop, port, lost);
    }

    /// A packet of class `class` reaches its sender.
    fn on_sender(&mut self, class: usize) -> Result<(), Error> {
        let Some(packet) = self.path.back(class, self.now_ns) else { return Ok(()) };
        let now = self.at(self.now_ns);
        self.with_sender(packet.flow, |sender, out| {
            sender.receive(now, packet.payload, packet.ecn, out);
            sender.drive(now, out)
        })
    }

    /// Lets a sender act, then sees to its timer.
    fn with_sender(
        &mut self,
        index: u32,
        act: impl FnOnce(&mut Sender, &mut Out<'_>) -> Result<(), Failed>,
    ) -> Result<(), Error> {
        let Flow { kind: Kind::Quic(quic), port, .. } = &mut self.flows[index as usize] else {
            return Ok(());
        };
        let Some(ends) = &mut quic.ends else { return Ok(()) };
        let (path, now_ns, sent_pkts) = (&mut self.path, self.now_ns, &mut quic.sent_pkts);
        let capable = quic.terms.ecn();
        let mut out = |payload: &[u8], ecn: Option<EcnCodepoint>| {
            let packet = Forward {
                flow: index,
                number: *sent_pkts as u32,
                wire_bytes: payload.len() as u32 + crate::terms::UDP_HEADERS_BYTES,
                ecn: ecn.filter(|_| capable),
                payload: payload.into(),
            };
            *sent_pkts += 1;
            path.send(now_ns, packet, port, lost);
        };
        act(&mut ends.sender, &mut out)
            .map_err(|failed| failed.of(&self.spec.flows[index as usize].name))?;
        let due_ns = since(self.zero, ends.sender.due());
        if due_ns < ends.sender_in_heap_ns {
            ends.sender_in_heap_ns = due_ns;
            self.timers.push(Reverse((due_ns, index, Timer::Sender)));
            self.set_timers();
        }
        Ok(())
    }

    /// Lets a receiver act, then sees to its timer and to what it has received.
    fn with_receiver(
        &mut self,
        index: u32,
        act: impl FnOnce(&mut Receiver, &mut Out<'_>) -> Result<(), Failed>,
    ) -> Result<(), Error> {
        let Flow { kind: Kind::Quic(quic), port, .. } = &mut self.flows[index as usize] else {
            return Ok(());
        };
        let Some(ends) = &mut quic.ends else { return Ok(()) };
        let (path, now_ns, capable) = (&mut self.path, self.now_ns, quic.terms.ecn());
        let mut out = |payload: &[u8], ecn: Option<EcnCodepoint>| {
            if !path.loses_back(port) {
                let ecn = ecn.filter(|_| capable);
                let packet = Back { flow: index, ecn, payload: payload.into() };
                let bytes = payload.len() as u32 + crate::terms::UDP_HEADERS_BYTES;
                // What is dropped, its port counts.
                path.send_back(now_ns, packet, bytes, port, drop);
            }
        };
        act(&mut ends.receiver, &mut out)
            .map_err(|failed| failed.of(&self.spec.flows[index as usize].name))?;
        while let Some(&(end, start_ns, bytes)) = quic.transfers.front()
            && end <= ends.receiver.delivered_bytes
        {
            quic.transfers.pop_front();
            quic.completed.push(Transfer { start_ns, end_ns: now_ns, bytes });
        }
        let due_ns = since(self.zero, ends.receiver.due());
        if due_ns < ends.receiver_in_heap_ns {
            ends.receiver_in_heap_ns = due_ns;
            self.timers.push(Reverse((due_ns, index, Timer::Receiver)));
            self.set_timers();
        }
        Ok(())
    }

    fn on_timer(&mut self) -> Result<(), Error> {
        let Some(Reverse((due_ns, index, timer))) = self.timers.pop() else { return Ok(()) };
        match timer {
            Timer::Start => self.start(index)?,
            Timer::Stop => self.stop(index)?,
            Timer::Write => self.write(index)?,
            Timer::Sender => self.on_sender_timer(index, due_ns)?,
            Timer::Receiver => self.on_receiver_timer(index, due_ns)?,
            Timer::Udp => self.send_udp(index),
        }
        self.set_timers();
        Ok(())
    }

    fn start(&mut self, index: u32) -> Result<(), Error> {
        let now = self.at(self.now_ns);
        let flow = &mut self.flows[index as usize];
        let name = &self.spec.flows[index as usize].name;
        match &mut flow.kind {
            Kind::Udp(udp) if udp.due_ns() > self.now_ns => {
                self.timers.push(Reverse((udp.due_ns(), index, Timer::Udp)));
                Ok(())
            }
            Kind::Udp(_) => {
                self.send_udp(index);
                Ok(())
            }
            Kind::Quic(quic) => {
                let (qlog, stream) = match &self.options.qlog {
                    Some(folder) => {
                        let (qlog, stream) = Qlog::create(folder, name, self.zero)?;
                        (Some(qlog), stream)
                    }
                    None => (None, None),
                };
                let (sender, calls) = self
                    .maker
                    .sender(&quic.terms, index as usize, [self.zero, now], peer::RECEIVER, stream)
                    .map_err(|failed| failed.of(name))?;
                quic.ends = Some(Ends {
                    sender,
                    receiver: self.maker.receiver(&quic.terms, index as usize, peer::SENDER),
                    calls,
                    qlog,
                    sender_in_heap_ns: NEVER,
                    receiver_in_heap_ns: NEVER,
                });
                self.write(index)
            }
        }
    }

    fn stop(&mut self, index: u32) -> Result<(), Error> {
        let now = self.at(self.now_ns);
        self.flows[index as usize].stopped = true;
        self.with_sender(index, |sender, out| {
            sender.close(now);
            sender.drive(now, out)
        })
    }

    /// The application of a QUIC flow writes.
    fn write(&mut self, index: u32) -> Result<(), Error> {
        let now = self.at(self.now_ns);
        let flow = &mut self.flows[index as usize];
        let Kind::Quic(quic) = &mut flow.kind else { return Ok(()) };
        if flow.stopped {
            return Ok(());
        }
        let bytes = quic.terms.workload.write(quic.writes).map(|write| {
            quic.writes += 1;
            if let Some(next) = quic.terms.workload.write(quic.writes) {
                let due_ns = flow.start_ns + next.after_ns;
                self.timers.push(Reverse((due_ns, index, Timer::Write)));
            }
            quic.written_bytes += write.bytes;
            quic.transfers.push_back((quic.written_bytes, self.now_ns, write.bytes));
            write.bytes
        });
        self.with_sender(index, |sender, out| {
            sender.write(bytes);
            sender.drive(now, out)
        })
    }

    fn on_sender_timer(&mut self, index: u32, due_ns: Ns) -> Result<(), Error> {
        let now = self.at(self.now_ns);
        if let Kind::Quic(Quic { ends: Some(ends), .. }) = &mut self.flows[index as usize].kind {
            if due_ns != ends.sender_in_heap_ns {
                return Ok(()); // superseded by an earlier one
            }
            ends.sender_in_heap_ns = NEVER;
        }
        self.with_sender(index, |sender, out| match sender.due() {
            Some(due) if due <= now => sender.drive(now, out),
            _ => Ok(()),
        })
    }

    fn on_receiver_timer(&mut self, index: u32, due_ns: Ns) -> Result<(), Error> {
        let now = self.at(self.now_ns);
        if let Kind::Quic(Quic { ends: Some(ends), .. }) = &mut self.flows[index as usize].kind {
            if due_ns != ends.receiver_in_heap_ns {
                return Ok(());
            }
            ends.receiver_in_heap_ns = NEVER;
        }
        self.with_receiver(index, |receiver, out| match receiver.due() {
            Some(due) if due <= now => receiver.drive(now, out),
            _ => Ok(()),
        })
    }

    fn send_udp(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        let Kind::Udp(udp) = &mut flow.kind else { return };
        if flow.stopped || udp.due_ns() > self.now_ns {
            return;
        }
        let packet = Forward {
            flow: index,
            number: udp.send(),
            wire_bytes: flow.port.packet_bytes,
            ecn: None,
            payload: BytesMut::new(),
        };
        self.timers.push(Reverse((udp.due_ns(), index, Timer::Udp)));
        self.path.send(self.now_ns, packet, &mut flow.port, lost);
    }

    /// Ends a bin of the time series.
    fn close_bin(&mut self) {
        for flow in &mut self.flows {
            flow.close_bin();
        }
        self.path.close_bin(self.now_ns);
    }

    fn finish(mut self) -> Result<RunRecord, Error> {
        let bin_ns = self.spec.record.bin_ns;
        if bin_ns > 0 && !self.spec.duration_ns.is_multiple_of(bin_ns) {
            self.close_bin();
        }
        let mut in_network = vec![0u64; self.flows.len()];
        for packet in self.path.under_way() {
            in_network[packet.flow as usize] += 1;
        }
        let duration_ns = self.spec.duration_ns;
        let PathQueues { queues, reverse_queue } = self.path.finish();
        let flows = self.flows.into_iter().zip(&self.spec.flows).zip(in_network);
        let flows = flows.map(|((flow, spec), in_network_pkts)| {
            let counters = FlowCounters { in_network_pkts, ..flow.counters() };
            let record = FlowRecord::of(spec, flow.start_ns, duration_ns);
            let record = FlowRecord { counters, samples: flow.samples, ..record };
            let record = match (flow.kind, &spec.kind) {
                (Kind::Udp(udp), _) => Ok(udp.finish(record)),
                (Kind::Quic(quic), FlowKind::Tcp(tcp)) => quic.finish(FlowRecord {
                    kind: tcp.cc.name(),
                    observes: tcp.cc.observes(),
                    ..record
                }),
                (Kind::Quic(_), _) => Ok(record),
            };
            record.map(|record| record.without_idle_rows(bin_ns))
        });
        Ok(RunRecord {
            seed: self.spec.seed,
            duration_ns,
            bin_ns,
            flows: flows.collect::<Result<_, _>>()?,
            queues,
            reverse_queue,
            approximations: self.approximations,
            real_time: None,
        })
    }
}

/// A time of quinn's as one of the run.
fn since(zero: Instant, time: Option<Instant>) -> Ns {
    let since = time.map(|time| time.saturating_duration_since(zero).as_nanos());
    since.map_or(NEVER, |ns| Ns::try_from(ns).unwrap_or(NEVER))
}

impl Quic {
    fn new(terms: Terms) -> Self {
        Self {
            terms,
            ends: None,
            sent_pkts: 0,
            arrived_pkts: 0,
            transfers: VecDeque::new(),
            written_bytes: 0,
            writes: 0,
            completed: Vec::new(),
        }
    }

    fn counters(&self) -> FlowCounters {
        let Some(ends) = &self.ends else { return FlowCounters::default() };
        FlowCounters {
            sent_pkts: self.sent_pkts,
            retransmitted_pkts: ends.sender.lost_pkts(),
            delivered_pkts: self.arrived_pkts,
            delivered_bytes: ends.receiver.delivered_bytes,
            ..ends.calls.called().counters
        }
    }

    fn finish(self, record: FlowRecord) -> Result<FlowRecord, Error> {
        let unfinished =
            self.transfers.iter().map(|&(_, start_ns, bytes)| Unfinished { start_ns, bytes });
        let unfinished = unfinished.collect();
        let record = FlowRecord { transfers: self.completed, unfinished, ..record };
        let Some(Ends { sender, receiver, calls, qlog, .. }) = self.ends else { return Ok(record) };
        // The connection tells of its last call, and ends its qlog.
        drop((sender, receiver));
        if let Some(qlog) = qlog {
            qlog.finish()?;
        }
        let mut called = calls.called();
        Ok(FlowRecord {
            rtt: std::mem::take(&mut called.rtt),
            trace: std::mem::take(&mut called.trace),
            ..record
        })
    }
}

impl Flow {
    fn counters(&self) -> FlowCounters {
        self.port.count(match &self.kind {
            Kind::Quic(quic) => quic.counters(),
            Kind::Udp(udp) => udp.counters(),
        })
    }

    fn close_bin(&mut self) {
        let row = self.last.close_bin(&self.counters());
        self.samples.push(match &self.kind {
            Kind::Quic(Quic { ends: Some(ends), .. }) if !self.stopped => {
                ends.calls.called().sample(row)
            }
            _ => row,
        });
    }
}
