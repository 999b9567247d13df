//! Both ends of a QUIC connection in virtual time: quinn's connections on the path.

use crate::{
    Calls, EcnCodepoint, Failed, Maker, Out, Qlog, Receiver, Sender, Terms, peer,
    terms::UDP_HEADERS_BYTES,
};
use bytes::BytesMut;
use knee_model::{
    FlowCounters, FlowKind, FlowRecord, FlowSample, HostError, Ns, RunOptions, RunRecord, RunSpec,
    Tell, Transfer, Unfinished, failure::unsupported, sysctl,
};
use knee_net::{
    Connection, Direction, Ecn, End, FlowContext, LazyTimer, NEVER, Numbered, run_in_virtual_time,
};
use std::{
    collections::VecDeque,
    path::PathBuf,
    time::{Duration, Instant},
};

/// Timers of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Timer {
    Sender,
    Receiver,
}

/// A packet of either end.
#[derive(Clone, Default)]
pub(crate) struct Packet {
    flow: u32,
    number: u32,
    wire_bytes: u32,
    ecn: Option<EcnCodepoint>,
    /// UDP payload; empty of flows without feedback.
    payload: BytesMut,
}

impl knee_net::Packet for Packet {
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

impl Numbered for Packet {
    fn flow(&self) -> u32 {
        self.flow
    }

    fn number(&self) -> u32 {
        self.number
    }
}

/// State that the connections of a run share.
pub(crate) struct Shared {
    maker: Maker,
    /// Folder for qlogs.
    qlog: Option<PathBuf>,
    /// Time 0 on quinn's clock.
    zero: Instant,
}

impl Shared {
    /// A time of the run as one of quinn's.
    fn at(&self, time_ns: Ns) -> Instant {
        self.zero + Duration::from_nanos(time_ns)
    }

    /// A time of quinn's as one of the run; [`NEVER`]: none.
    fn since(&self, time: Option<Instant>) -> Ns {
        let since = time.map(|time| time.saturating_duration_since(self.zero).as_nanos());
        since.map_or(NEVER, |ns| Ns::try_from(ns).unwrap_or(NEVER))
    }
}

pub(crate) struct Quic {
    name: String,
    terms: Terms,
    /// Both ends, from the flow's start on.
    ends: Option<Ends>,
    arrived_pkts: u64,
    /// Transfers under way: where each ends in the stream, start, size.
    transfers: VecDeque<(u64, Ns, u64)>,
    written_bytes: u64,
    completed: Vec<Transfer>,
}

struct Ends {
    sender: Sender,
    receiver: Receiver,
    calls: Calls,
    qlog: Option<Qlog>,
    sender_timer: LazyTimer,
    receiver_timer: LazyTimer,
}

/// A run of `spec` that can be made: its connections' terms, and the deviations from the spec.
pub(crate) struct Prepared<'a> {
    spec: &'a RunSpec,
    terms: Vec<Option<Terms>>,
    approximations: Vec<String>,
}

impl<'a> Prepared<'a> {
    pub(crate) fn new(spec: &'a RunSpec) -> Result<Self, HostError> {
        let mut approximations: Vec<_> = sysctl::unset(&spec.sysctls).into_iter().collect();
        let mut terms = Vec::with_capacity(spec.flows.len());
        for (index, flow) in spec.flows.iter().enumerate() {
            if spec.packets(index) >= u128::from(u32::MAX) {
                let (name, max) = (&flow.name, u32::MAX);
                let why = format!("flow `{name}` could send more than {max} packets");
                let help = "shorten the run or lower the rate";
                return Err(unsupported(why).with_help(help));
            }
            terms.push(match &flow.kind {
                FlowKind::Tcp(tcp) => Some(Terms::of(spec, flow, tcp, &mut approximations)?),
                FlowKind::Udp { .. } | FlowKind::Probe { .. } => None,
            });
        }
        approximations.sort();
        approximations.dedup();
        Ok(Self { spec, terms, approximations })
    }

    pub(crate) fn run(self, options: &RunOptions, tell: Tell<'_>) -> Result<RunRecord, HostError> {
        let Self { spec, mut terms, approximations } = self;
        let shared = Shared {
            maker: Maker::new(spec.seed, &spec.record)?,
            qlog: options.qlog.clone(),
            // quinn counts back from the present; nothing depends on where 0 lies.
            zero: Instant::now(),
        };
        let record = run_in_virtual_time(spec, shared, &mut |told| tell(told), |index, _| Quic {
            name: spec.flows[index].name.clone(),
            terms: terms[index].take().expect("a flow with feedback has terms"),
            ends: None,
            arrived_pkts: 0,
            transfers: VecDeque::new(),
            written_bytes: 0,
            completed: Vec::new(),
        })?;
        Ok(RunRecord { approximations, ..record })
    }
}

impl Quic {
    /// Lets the sender act, then handles its timer.
    fn with_sender(
        &mut self,
        at: &mut FlowContext<'_, Self>,
        act: impl FnOnce(&mut Sender, Instant, &mut Out<'_>) -> Result<(), Failed>,
    ) -> Result<(), HostError> {
        let Some(ends) = &mut self.ends else { return Ok(()) };
        let (now, capable) = (at.shared.at(at.now_ns()), self.terms.ecn());
        let mut out = |payload: &[u8], ecn: Option<EcnCodepoint>| {
            let number = at.data_pkts();
            at.send(packet(at.flow, number, payload, ecn.filter(|_| capable)), End::Sender);
        };
        act(&mut ends.sender, now, &mut out).map_err(|failed| failed.of(&self.name))?;
        let due_ns = at.shared.since(ends.sender.due());
        at.arm(&mut ends.sender_timer, due_ns, Timer::Sender);
        Ok(())
    }

    /// Lets the receiver act, then handles its timer and the received data.
    fn with_receiver(
        &mut self,
        at: &mut FlowContext<'_, Self>,
        act: impl FnOnce(&mut Receiver, Instant, &mut Out<'_>) -> Result<(), Failed>,
    ) -> Result<(), HostError> {
        let Some(ends) = &mut self.ends else { return Ok(()) };
        let (now_ns, capable) = (at.now_ns(), self.terms.ecn());
        let now = at.shared.at(now_ns);
        let mut out = |payload: &[u8], ecn: Option<EcnCodepoint>| {
            let number = at.ack_pkts();
            at.send(packet(at.flow, number, payload, ecn.filter(|_| capable)), End::Receiver);
        };
        act(&mut ends.receiver, now, &mut out).map_err(|failed| failed.of(&self.name))?;
        while let Some(&(end, start_ns, bytes)) = self.transfers.front()
            && end <= ends.receiver.delivered_bytes
        {
            self.transfers.pop_front();
            self.completed.push(Transfer { start_ns, end_ns: now_ns, bytes });
        }
        let due_ns = at.shared.since(ends.receiver.due());
        at.arm(&mut ends.receiver_timer, due_ns, Timer::Receiver);
        Ok(())
    }
}

fn packet(flow: u32, number: u32, payload: &[u8], ecn: Option<EcnCodepoint>) -> Packet {
    let wire_bytes = payload.len() as u32 + UDP_HEADERS_BYTES;
    Packet { flow, number, wire_bytes, ecn, payload: payload.into() }
}

impl Connection for Quic {
    type Packet = Packet;
    type Timer = Timer;
    type Shared = Shared;
    type Error = HostError;

    fn udp(flow: u32, number: u32, bytes: u32) -> Packet {
        Packet { flow, number, wire_bytes: bytes, ecn: None, payload: BytesMut::new() }
    }

    fn start(&mut self, at: &mut FlowContext<'_, Self>) -> Result<(), HostError> {
        let now = at.shared.at(at.now_ns());
        let Shared { maker, qlog, zero } = &*at.shared;
        let (qlog, stream) = match qlog {
            Some(folder) => {
                let (qlog, stream) = Qlog::create(folder, &self.name, *zero)?;
                (Some(qlog), stream)
            }
            None => (None, None),
        };
        let index = at.flow as usize;
        let (sender, calls) = maker
            .sender(&self.terms, index, [*zero, now], peer::RECEIVER, stream)
            .map_err(|failed| failed.of(&self.name))?;
        self.ends = Some(Ends {
            sender,
            receiver: maker.receiver(&self.terms, index, peer::SENDER),
            calls,
            qlog,
            sender_timer: LazyTimer::default(),
            receiver_timer: LazyTimer::default(),
        });
        Ok(())
    }

    fn write(
        &mut self,
        bytes: Option<u64>,
        at: &mut FlowContext<'_, Self>,
    ) -> Result<(), HostError> {
        if let Some(bytes) = bytes {
            self.written_bytes += bytes;
            self.transfers.push_back((self.written_bytes, at.now_ns(), bytes));
        }
        self.with_sender(at, |sender, now, out| {
            sender.write(bytes);
            sender.drive(now, out)
        })
    }

    fn stop(&mut self, at: &mut FlowContext<'_, Self>) -> Result<(), HostError> {
        self.with_sender(at, |sender, now, out| {
            sender.close(now);
            sender.drive(now, out)
        })
    }

    fn arrive(
        &mut self,
        packet: Packet,
        direction: Direction,
        at: &mut FlowContext<'_, Self>,
    ) -> Result<(), HostError> {
        match at.end(direction) {
            End::Receiver => {
                self.arrived_pkts += 1;
                self.with_receiver(at, |receiver, now, out| {
                    receiver.receive(now, packet.payload, packet.ecn, out)?;
                    receiver.drive(now, out)
                })
            }
            End::Sender => self.with_sender(at, |sender, now, out| {
                sender.receive(now, packet.payload, packet.ecn, out);
                sender.drive(now, out)
            }),
        }
    }

    fn on_timer(&mut self, timer: Timer, at: &mut FlowContext<'_, Self>) -> Result<(), HostError> {
        let Some(ends) = &mut self.ends else { return Ok(()) };
        let (lazy, due) = match timer {
            Timer::Sender => (&mut ends.sender_timer, ends.sender.due()),
            Timer::Receiver => (&mut ends.receiver_timer, ends.receiver.due()),
        };
        let due_ns = at.shared.since(due);
        if !at.came_up(lazy, due_ns, timer) {
            return Ok(());
        }
        match timer {
            Timer::Sender => self.with_sender(at, |sender, now, out| sender.drive(now, out)),
            Timer::Receiver => {
                self.with_receiver(at, |receiver, now, out| receiver.drive(now, out))
            }
        }
    }

    fn counters(&self) -> FlowCounters {
        let Some(ends) = &self.ends else { return FlowCounters::default() };
        FlowCounters {
            retransmitted_pkts: ends.sender.lost_pkts(),
            delivered_pkts: self.arrived_pkts,
            delivered_bytes: ends.receiver.delivered_bytes,
            ..ends.calls.called().counters
        }
    }

    fn sample(&self, row: FlowSample) -> FlowSample {
        match &self.ends {
            Some(ends) => ends.calls.called().sample(row),
            None => row,
        }
    }

    fn finish(self, record: FlowRecord) -> Result<FlowRecord, HostError> {
        let unfinished =
            self.transfers.iter().map(|&(_, start_ns, bytes)| Unfinished { start_ns, bytes });
        let unfinished = unfinished.collect();
        let record = FlowRecord { transfers: self.completed, unfinished, ..record };
        let Some(Ends { sender, receiver, calls, qlog, .. }) = self.ends else { return Ok(record) };
        // The connection reports its last call, and ends its qlog.
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
