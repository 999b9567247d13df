//! QUIC connections over real UDP sockets: quinn's own connections, driven by one thread for both
//! ends.

use crate::{
    Alarm, Clock,
    calls::Called,
    error::Doing,
    namespace::Namespace,
    plan::{End, Plan},
    traffic::{EVENTS, Received, Sent, UDP_BUFFER_BYTES, open, wait},
};
use bytes::BytesMut;
use knee_model::{FlowCounters, FlowSample, HostError, Ns, Progress, RunSpec, Tell};
use knee_quic_run::{Calls, EcnCodepoint, Failed, Maker, Out, Qlog, Receiver, Sender, Terms};
use nix::{
    errno::Errno,
    sys::{
        epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags},
        prctl::set_timerslack,
        socket::{MsgFlags, SetSockOpt, SockType, bind, connect, recv, send, sockopt},
    },
};
use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
    time::Instant,
};

/// Datagrams taken from one socket before another has its turn.
const BATCH: usize = 32;

/// The results of a QUIC flow.
pub(crate) struct Done {
    pub index: usize,
    pub sent: Sent,
    pub received: Received,
    pub called: Called,
    /// The connection's own counts: reductions, timeouts, packets taken for lost.
    pub counters: FlowCounters,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Start,
    Stop,
    Write,
}

struct Flow {
    index: usize,
    terms: Terms,
    /// The sender's and the receiver's.
    sockets: [OwnedFd; 2],
    ends: Option<Ends>,
    stopped: bool,
    sent: Sent,
    received: Received,
}

struct Ends {
    sender: Sender,
    receiver: Receiver,
    calls: Calls,
    qlog: Option<Qlog>,
}

/// All QUIC connections of a run.
pub(crate) struct Connections<'a> {
    spec: &'a RunSpec,
    plan: &'a Plan,
    qlog: Option<&'a Path>,
    maker: Maker,
    epoll: Epoll,
    timers: BinaryHeap<Reverse<(Ns, usize, Timer)>>,
    flows: Vec<Flow>,
    bytes: Vec<u8>,
}

impl<'a> Connections<'a> {
    /// Opens the sockets of all QUIC flows in `ends`; none if there are no such flows.
    pub(crate) fn new(
        spec: &'a RunSpec,
        plan: &'a Plan,
        ends: [&Namespace; 2],
        qlog: Option<&'a Path>,
    ) -> Result<Option<Self>, HostError> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing("creating an epoll")?;
        let (mut timers, mut flows) = (BinaryHeap::new(), Vec::new());
        for (index, flow) in plan.flows.iter().enumerate() {
            let Some(terms) = &flow.quic else { continue };
            let at = flows.len();
            let socket = |end: End| ends[end as usize].inside(|| udp_socket(end, index))?;
            let sockets = [socket(flow.source)?, socket(flow.source.other())?];
            for (socket, end) in sockets.iter().zip(0..) {
                let event = EpollEvent::new(EpollFlags::EPOLLIN, 2 * at as u64 + end);
                epoll.add(socket, event).doing("watching a socket")?;
            }
            timers.push(Reverse((flow.start_ns, at, Timer::Start)));
            if let Some(stop_ns) = spec.flows[index].stop_ns {
                timers.push(Reverse((stop_ns, at, Timer::Stop)));
            }
            flows.push(Flow {
                index,
                terms: terms.clone(),
                sockets,
                ends: None,
                stopped: false,
                sent: Sent::default(),
                received: Received { bins: vec![0; spec.bins()], ..Received::default() },
            });
        }
        if flows.is_empty() {
            return Ok(None);
        }
        let maker = Maker::new(spec.seed, &spec.record)?;
        let bytes = vec![0; plan.mtu_bytes as usize];
        Ok(Some(Self { spec, plan, qlog, maker, epoll, timers, flows, bytes }))
    }

    pub(crate) fn run(
        mut self,
        clock: Clock,
        alarm: &Alarm,
        tell: Option<Tell<'_>>,
    ) -> Result<Vec<Done>, HostError> {
        set_timerslack(1).doing("setting the timer slack")?;
        clock.wait_for_zero();
        let (end_ns, bin_ns) = (self.spec.duration_ns, self.spec.record.bin_ns);
        let (mut bin, bins) = (0, self.spec.bins());
        let mut events = [EpollEvent::empty(); EVENTS];
        while !alarm.raised() {
            let now_ns = clock.now_ns();
            while let Some(&Reverse((due_ns, at, timer))) = self.timers.peek()
                && due_ns <= now_ns.min(end_ns)
            {
                self.timers.pop();
                self.fire(clock, at, timer)?;
            }
            while bin < bins && now_ns >= ((bin as u64 + 1) * bin_ns).min(end_ns) {
                bin += 1;
                self.flows.iter_mut().for_each(|flow| flow.sample(bin, tell));
            }
            if now_ns >= end_ns {
                break;
            }
            let mut until_ns = self.timers.peek().map_or(end_ns, |Reverse((due_ns, ..))| *due_ns);
            if bin < bins {
                until_ns = until_ns.min((bin as u64 + 1) * bin_ns);
            }
            for flow in &mut self.flows {
                if let Some(due) = flow.drive_if_due(self.spec, clock)? {
                    let due_ns = due.saturating_duration_since(clock.zero).as_nanos();
                    until_ns = until_ns.min(due_ns as Ns);
                }
            }
            let wait_ns = until_ns.min(end_ns).saturating_sub(clock.now_ns());
            for event in wait(&self.epoll, &mut events, wait_ns)? {
                let (at, end) = (event.data() as usize / 2, event.data() as usize % 2);
                self.flows[at].on_socket(self.spec, clock, end, &mut self.bytes)?;
            }
        }
        let spec = self.spec;
        self.flows.into_iter().map(|flow| flow.finish(spec)).collect()
    }

    fn fire(&mut self, clock: Clock, at: usize, timer: Timer) -> Result<(), HostError> {
        let flow = &mut self.flows[at];
        match timer {
            Timer::Start => {
                let name = &self.spec.flows[flow.index].name;
                let (qlog, stream) = match self.qlog {
                    Some(folder) => {
                        let (qlog, stream) = Qlog::create(folder, name, clock.zero)?;
                        (Some(qlog), stream)
                    }
                    None => (None, None),
                };
                let times = [clock.zero, Instant::now()];
                let source = self.plan.flows[flow.index].source;
                let to = source.other().service(flow.index).into();
                let made = self.maker.sender(&flow.terms, flow.index, times, to, stream);
                let (sender, calls) = made.map_err(|failed| failed.of(name))?;
                let from = source.service(flow.index).into();
                let receiver = self.maker.receiver(&flow.terms, flow.index, from);
                flow.ends = Some(Ends { sender, receiver, calls, qlog });
                self.write(clock, at)
            }
            Timer::Write => self.write(clock, at),
            Timer::Stop => {
                flow.stopped = true;
                flow.with_sender(self.spec, |sender, out| {
                    sender.close(Instant::now());
                    sender.drive(Instant::now(), out)
                })
            }
        }
    }

    /// The application writes.
    fn write(&mut self, clock: Clock, at: usize) -> Result<(), HostError> {
        let flow = &mut self.flows[at];
        if flow.stopped {
            return Ok(());
        }
        let bytes = flow.terms.workload.write(flow.sent.writes.len()).map(|write| {
            flow.sent.writes.push(clock.now_ns());
            if let Some(next) = flow.terms.workload.write(flow.sent.writes.len()) {
                let due_ns = self.plan.flows[flow.index].start_ns + next.after_ns;
                self.timers.push(Reverse((due_ns, at, Timer::Write)));
            }
            write.bytes
        });
        flow.with_sender(self.spec, |sender, out| {
            sender.write(bytes);
            sender.drive(Instant::now(), out)
        })
    }
}

impl Flow {
    /// Lets the sender act, and sends what it has to send.
    fn with_sender(
        &mut self,
        spec: &RunSpec,
        act: impl FnOnce(&mut Sender, &mut Out<'_>) -> Result<(), Failed>,
    ) -> Result<(), HostError> {
        let Some(ends) = &mut self.ends else { return Ok(()) };
        sending(spec, self.index, &self.sockets[0], |out| act(&mut ends.sender, out))
    }

    /// Lets the receiver act, sends what it has to send, and counts what it has got.
    fn with_receiver(
        &mut self,
        spec: &RunSpec,
        clock: Clock,
        act: impl FnOnce(&mut Receiver, &mut Out<'_>) -> Result<(), Failed>,
    ) -> Result<(), HostError> {
        let Some(ends) = &mut self.ends else { return Ok(()) };
        sending(spec, self.index, &self.sockets[1], |out| act(&mut ends.receiver, out))?;
        let now_ns = clock.now_ns();
        let new_bytes = ends.receiver.delivered_bytes - self.received.bytes;
        if new_bytes > 0 && now_ns < spec.duration_ns {
            self.received.add(spec, now_ns, new_bytes, Some(&self.terms.workload));
        }
        Ok(())
    }

    /// Takes in the packets that have arrived at an end.
    fn on_socket(
        &mut self,
        spec: &RunSpec,
        clock: Clock,
        end: usize,
        bytes: &mut [u8],
    ) -> Result<(), HostError> {
        for _ in 0..BATCH {
            let datagram = match recv(self.sockets[end].as_raw_fd(), bytes, MsgFlags::MSG_DONTWAIT)
            {
                Ok(len) => BytesMut::from(&bytes[..len]),
                Err(Errno::EAGAIN) => break,
                Err(error) => return Err(error).doing("receiving"),
            };
            let now = Instant::now();
            if end == 0 {
                self.with_sender(spec, |sender, out| {
                    sender.receive(now, datagram, None, out);
                    sender.drive(now, out)
                })?;
            } else {
                self.with_receiver(spec, clock, |receiver, out| {
                    receiver.receive(now, datagram, None, out)?;
                    receiver.drive(now, out)
                })?;
            }
        }
        Ok(())
    }

    /// Lets both ends do what is due; when the next is.
    fn drive_if_due(&mut self, spec: &RunSpec, clock: Clock) -> Result<Option<Instant>, HostError> {
        let now = Instant::now();
        let is_due = |due: Option<Instant>| due.is_some_and(|due| due <= now);
        if self.ends.as_mut().is_some_and(|ends| is_due(ends.sender.due())) {
            self.with_sender(spec, |sender, out| sender.drive(now, out))?;
        }
        if self.ends.as_mut().is_some_and(|ends| is_due(ends.receiver.due())) {
            self.with_receiver(spec, clock, |receiver, out| receiver.drive(now, out))?;
        }
        let Some(ends) = &mut self.ends else { return Ok(None) };
        Ok(ends.sender.due().into_iter().chain(ends.receiver.due()).min())
    }

    /// Notes the present state as that at the end of bin number `bin`.
    fn sample(&mut self, bin: usize, tell: Option<Tell<'_>>) {
        let sample = match &self.ends {
            Some(ends) if !self.stopped => ends.calls.called().sample(FlowSample::default()),
            _ => FlowSample::default(),
        };
        self.sent.samples.resize(bin, sample);
        if let Some(tell) = tell {
            tell(Progress::Flow { flow: self.index, bin: bin - 1, part: sample });
            self.received.tell(self.index, bin - 1..bin, tell);
        }
    }

    fn finish(self, spec: &RunSpec) -> Result<Done, HostError> {
        let Self { index, mut sent, received, ends, .. } = self;
        sent.samples.resize(spec.bins(), FlowSample::default());
        let mut called = Called::default();
        called.observed = sent.samples.iter().map(|sample| sample.observed).collect();
        let mut done = Done { index, sent, received, called, counters: FlowCounters::default() };
        let Some(Ends { sender, receiver, calls, qlog }) = ends else { return Ok(done) };
        let retransmitted_pkts = sender.lost_pkts();
        drop((sender, receiver));
        if let Some(qlog) = qlog {
            qlog.finish()?;
        }
        let mut called = calls.called();
        done.counters = FlowCounters { retransmitted_pkts, ..called.counters };
        done.sent.timeouts = called.counters.timeouts;
        done.called.counters = called.counters;
        done.called.rtt = std::mem::take(&mut called.rtt);
        done.called.trace = std::mem::take(&mut called.trace);
        Ok(done)
    }
}

/// Gives `act` what sends datagrams through `socket`.
fn sending(
    spec: &RunSpec,
    index: usize,
    socket: &OwnedFd,
    act: impl FnOnce(&mut Out<'_>) -> Result<(), Failed>,
) -> Result<(), HostError> {
    let mut sent = Ok(());
    let mut out = |datagram: &[u8], _: Option<EcnCodepoint>| {
        if let Err(error) = send(socket.as_raw_fd(), datagram, MsgFlags::MSG_DONTWAIT) {
            sent = Err(error);
        }
    };
    let acted = act(&mut out);
    sent.doing("sending a datagram")?;
    acted.map_err(|failed| failed.of(&spec.flows[index].name))
}

/// A flow's socket on one end, connected to the other: of the present thread's namespace.
fn udp_socket(end: End, index: usize) -> Result<OwnedFd, HostError> {
    let socket = open(SockType::Datagram)?;
    sockopt::RcvBufForce.set(&socket, &UDP_BUFFER_BYTES).doing("setting SO_RCVBUFFORCE")?;
    sockopt::SndBufForce.set(&socket, &UDP_BUFFER_BYTES).doing("setting SO_SNDBUFFORCE")?;
    bind(socket.as_raw_fd(), &end.socket_address(index)).doing("binding a socket")?;
    connect(socket.as_raw_fd(), &end.other().socket_address(index)).doing("connecting")?;
    Ok(socket)
}
