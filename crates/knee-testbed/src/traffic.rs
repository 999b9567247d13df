//! The applications at both ends: real sockets that write, read and measure.

use crate::{
    Alarm, Clock,
    error::Doing,
    namespace::Namespace,
    payload::{CHUNK_BYTES, Payload},
    plan::{End, FlowPlan, Plan, UDP_HEADERS_BYTES},
    variants::Variants,
};
use knee_model::{
    DelayStats, FlowKind, FlowSample, HostError, NS_PER_MS, Ns, Progress, RunSpec, TcpSpec, Tell,
    Workload,
    failure::{broken, unavailable},
};
use knee_net::Emission;
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, ppoll},
    setsockopt_impl, sockopt_impl,
    sys::{
        epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout},
        prctl::set_timerslack,
        socket::{
            AddressFamily, Backlog, GetSockOpt, MsgFlags, SetSockOpt, SockFlag, SockType, accept4,
            bind, connect, listen, recv, send, setsockopt, socket, sockopt,
        },
        time::{TimeSpec, TimeValLike},
    },
};
use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    ffi::OsString,
    fmt::Display,
    fs, io,
    ops::Range,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

sockopt_impl!(
    /// Largest receive window, bytes.
    WindowClamp,
    SetOnly,
    libc::IPPROTO_TCP,
    libc::TCP_WINDOW_CLAMP,
    libc::c_int
);

sockopt_impl!(
    /// From how many bytes that have not been sent on a socket has no room for more.
    UnsentLimit,
    SetOnly,
    libc::IPPROTO_TCP,
    libc::TCP_NOTSENT_LOWAT,
    libc::c_int
);

/// Send buffer of a TCP socket, bytes. The kernel would make it twice the window: without SACK that is
/// full while a recovery waits for its second repair, and the sender stops for want of data.
const SEND_BUFFER_BYTES: usize = 128 << 20;
/// Bytes that a TCP socket takes in addition to those sent, if it is given as many.
const UNSENT_BYTES: libc::c_int = 256 << 10;
/// After so many bytes a segment of full size has arrived. Until then the window is no larger than the
/// kernel's window at the start of a connection.
const FIRST_WINDOW_BYTES: u64 = 64 << 10;
/// Receive buffer of UDP sockets, bytes.
pub(crate) const UDP_BUFFER_BYTES: usize = 8 << 20;
/// Longest sleep: how soon the failure of another thread is noticed.
const LONGEST_SLEEP_NS: Ns = 100 * NS_PER_MS;
pub(crate) const EVENTS: usize = 64;
/// Bytes of number and time of sending at the start of a UDP payload.
const STAMP_BYTES: usize = 12;

/// The results of a sender.
#[derive(Clone, Default)]
pub(crate) struct Sent {
    /// State at the end of each bin.
    pub samples: Vec<FlowSample>,
    /// Time at which each transfer was written.
    pub writes: Vec<Ns>,
    pub timeouts: u64,
}

/// The results of a receiver.
#[derive(Clone, Default)]
pub(crate) struct Received {
    pub bytes: u64,
    /// Bytes within each bin.
    pub bins: Vec<u64>,
    /// Time at which each transfer was complete.
    pub completed_ns: Vec<Ns>,
    /// Bytes that belong to complete transfers.
    pub completed_bytes: u64,
    pub probe_delays: Vec<(Ns, Ns)>,
    pub one_way_delay: DelayStats,
}

impl Received {
    /// Tells what flow `flow` received in each of `bins`.
    pub(crate) fn tell(&self, flow: usize, bins: Range<usize>, tell: Tell<'_>) {
        for bin in bins {
            let part = FlowSample { delivered_bytes: self.bins[bin], ..FlowSample::default() };
            tell(Progress::Flow { flow, bin, part });
        }
    }

    /// `bytes` more have arrived at `now_ns`, of a flow with `workload`, if it is TCP or QUIC.
    pub(crate) fn add(
        &mut self,
        spec: &RunSpec,
        now_ns: Ns,
        bytes: u64,
        workload: Option<&Workload>,
    ) {
        self.bytes += bytes;
        if let Some(bin) = now_ns.checked_div(spec.record.bin_ns) {
            self.bins[bin as usize] += bytes;
        }
        while let Some(write) = workload.and_then(|w| w.write(self.completed_ns.len()))
            && self.completed_bytes + write.bytes <= self.bytes
        {
            self.completed_bytes += write.bytes;
            self.completed_ns.push(now_ns);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Start,
    Stop,
    Write,
    Udp,
}

#[derive(Default)]
struct Sender {
    /// The kernel's name of its congestion control; empty of UDP.
    cc: String,
    socket: Option<OwnedFd>,
    connected: bool,
    /// True while the socket is watched for room.
    watched: bool,
    /// Bytes that the application has for the socket; `u64::MAX`: no end.
    pending_bytes: u64,
    /// Bytes that the socket has taken.
    written_bytes: u64,
    next_number: u32,
    emission: Option<Emission>,
    sent: Sent,
}

/// An epoll whose events carry the number of a flow.
pub(crate) fn new_epoll() -> Result<Epoll, HostError> {
    Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing("creating an epoll")
}

/// All senders of a run over TCP and UDP.
pub(crate) struct Senders<'a> {
    spec: &'a RunSpec,
    plan: &'a Plan,
    epoll: Epoll,
    /// Bins that have ended.
    bin: usize,
    timers: BinaryHeap<Reverse<(Ns, usize, Timer)>>,
    flows: Vec<Sender>,
    payload: Payload,
}

impl<'a> Senders<'a> {
    /// Opens the sockets in the present thread's namespace; those of reverse flows on `far`.
    pub(crate) fn new(
        spec: &'a RunSpec,
        plan: &'a Plan,
        variants: &Variants,
        far: &Namespace,
    ) -> Result<Self, HostError> {
        let mut timers = BinaryHeap::new();
        let mut flows = Vec::with_capacity(spec.flows.len());
        for (index, flow) in spec.flows.iter().enumerate() {
            if plan.flows[index].quic.is_some() {
                // It has its own.
                flows.push(Sender::default());
                continue;
            }
            let cc = match &flow.kind {
                FlowKind::Tcp(tcp) => variants.name(&tcp.cc),
                _ => String::new(),
            };
            let source = plan.flows[index].source;
            let open = || {
                let socket = match flow.kind {
                    FlowKind::Tcp(_) => {
                        let socket = tcp_socket(&flow.name, &cc)?;
                        // It ends with its descriptor, however that is closed. The socket of a killed run
                        // would live on for minutes, and keep its algorithm in the kernel.
                        let reset = libc::linger { l_onoff: 1, l_linger: 0 };
                        sockopt::Linger.set(&socket, &reset).doing("setting SO_LINGER")?;
                        sockopt::SndBufForce
                            .set(&socket, &SEND_BUFFER_BYTES)
                            .doing("setting SO_SNDBUFFORCE")?;
                        UnsentLimit
                            .set(&socket, &UNSENT_BYTES)
                            .doing("setting TCP_NOTSENT_LOWAT")?;
                        socket
                    }
                    _ => open(SockType::Datagram)?,
                };
                bind(socket.as_raw_fd(), &source.socket_address(index))
                    .doing("binding a sender")?;
                Ok::<_, HostError>(socket)
            };
            let socket = if flow.route.reverse { far.inside(open)?? } else { open()? };
            timers.push(Reverse((plan.flows[index].start_ns, index, Timer::Start)));
            if let Some(stop_ns) = flow.stop_ns {
                timers.push(Reverse((stop_ns, index, Timer::Stop)));
            }
            flows.push(Sender {
                cc,
                socket: Some(socket),
                emission: Emission::of(&flow.kind, plan.flows[index].start_ns),
                ..Sender::default()
            });
        }
        let (epoll, payload) = (new_epoll()?, Payload::new());
        Ok(Self { spec, plan, epoll, bin: 0, timers, flows, payload })
    }

    pub(crate) fn run(
        mut self,
        clock: Clock,
        alarm: &Alarm,
        tell: Option<Tell<'_>>,
    ) -> Result<Vec<Sent>, HostError> {
        set_timerslack(1).doing("setting the timer slack")?;
        clock.wait_for_zero();
        let mut events = [EpollEvent::empty(); EVENTS];
        while !alarm.raised()
            && let Some(until_ns) = self.turn(clock, tell)?
        {
            for event in wait(&self.epoll, &mut events, until_ns.saturating_sub(clock.now_ns()))? {
                self.on_socket(event.data() as usize)?;
            }
        }
        self.finish()
    }

    /// Does what is due; when the next is, unless the run has ended.
    fn turn(&mut self, clock: Clock, tell: Option<Tell<'_>>) -> Result<Option<Ns>, HostError> {
        let (end_ns, bin_ns) = (self.spec.duration_ns, self.spec.record.bin_ns);
        let (bins, now_ns) = (self.spec.bins(), clock.now_ns());
        while let Some(&Reverse((due_ns, index, timer))) = self.timers.peek()
            && due_ns <= now_ns.min(end_ns)
        {
            self.timers.pop();
            self.fire(clock, index, timer)?;
        }
        while self.bin < bins && now_ns >= ((self.bin as u64 + 1) * bin_ns).min(end_ns) {
            self.bin += 1;
            self.sample(self.bin, tell)?;
        }
        if now_ns >= end_ns {
            return Ok(None);
        }
        let timer_ns = self.timers.peek().map_or(end_ns, |Reverse((due_ns, ..))| *due_ns);
        let bin_ns = if self.bin < bins { (self.bin as u64 + 1) * bin_ns } else { end_ns };
        Ok(Some(timer_ns.min(bin_ns).min(end_ns)))
    }

    fn finish(mut self) -> Result<Vec<Sent>, HostError> {
        for index in 0..self.flows.len() {
            self.close(index)?;
        }
        Ok(self.flows.into_iter().map(|flow| flow.sent).collect())
    }

    fn fire(&mut self, clock: Clock, index: usize, timer: Timer) -> Result<(), HostError> {
        match timer {
            Timer::Stop => self.close(index),
            Timer::Udp => self.send_udp(clock, index),
            Timer::Write => self.write(clock.now_ns(), index),
            Timer::Start => {
                let to = self.plan.flows[index].source.other().socket_address(index);
                let Some(socket) = &self.flows[index].socket else { return Ok(()) };
                match connect(socket.as_raw_fd(), &to) {
                    Ok(()) | Err(Errno::EINPROGRESS) => {}
                    Err(error) => return Err(error).doing("connecting"),
                }
                if self.plan.flows[index].tcp.is_none() {
                    self.time_udp(index);
                    return Ok(());
                }
                let room = EpollEvent::new(EpollFlags::EPOLLOUT, index as u64);
                self.epoll.add(socket, room).doing("watching a socket")?;
                self.flows[index].watched = true;
                self.write(clock.now_ns(), index)
            }
        }
    }

    /// The application of a TCP flow writes.
    fn write(&mut self, now_ns: Ns, index: usize) -> Result<(), HostError> {
        let flow = &mut self.flows[index];
        let FlowKind::Tcp(TcpSpec { workload, .. }) = &self.spec.flows[index].kind else {
            return Ok(());
        };
        if flow.socket.is_none() {
            return Ok(());
        }
        match workload.write(flow.sent.writes.len()) {
            None => flow.pending_bytes = u64::MAX,
            Some(write) => {
                flow.pending_bytes += write.bytes;
                flow.sent.writes.push(now_ns);
                if let Some(next) = workload.write(flow.sent.writes.len()) {
                    let due_ns = self.plan.flows[index].start_ns + next.after_ns;
                    self.timers.push(Reverse((due_ns, index, Timer::Write)));
                }
            }
        }
        self.watch(index, true)
    }

    /// Sets whether a socket is to be watched for room.
    fn watch(&mut self, index: usize, wanted: bool) -> Result<(), HostError> {
        let flow = &mut self.flows[index];
        if flow.watched == wanted {
            return Ok(());
        }
        flow.watched = wanted;
        let flags = if wanted { EpollFlags::EPOLLOUT } else { EpollFlags::empty() };
        let mut room = EpollEvent::new(flags, index as u64);
        match &flow.socket {
            Some(socket) => self.epoll.modify(socket, &mut room).doing("watching a socket"),
            None => Ok(()),
        }
    }

    /// A socket has room, or has failed.
    fn on_socket(&mut self, index: usize) -> Result<(), HostError> {
        let flow = &mut self.flows[index];
        let Some(socket) = &flow.socket else { return Ok(()) };
        let failed = |error: io::Error| {
            let name = &self.spec.flows[index].name;
            broken(format!("flow {name}: connection failed: {error}"))
        };
        match sockopt::SocketError.get(socket).doing("asking a socket for its error")? {
            0 => {}
            error => return Err(failed(io::Error::from_raw_os_error(error))),
        }
        if !flow.connected {
            flow.connected = true;
            used(&self.spec.flows[index].name, &flow.cc, &self.plan.flows[index], socket)?;
        }
        if flow.pending_bytes == 0 {
            return self.watch(index, false);
        }
        let len = flow.pending_bytes.min(CHUNK_BYTES as u64) as usize;
        let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
        match send(socket.as_raw_fd(), self.payload.at(flow.written_bytes, len), flags) {
            Ok(written) => {
                flow.written_bytes += written as u64;
                if flow.pending_bytes != u64::MAX {
                    flow.pending_bytes -= written as u64;
                }
                Ok(())
            }
            Err(Errno::EAGAIN) => Ok(()),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Sets the timer of the next packet.
    fn time_udp(&mut self, index: usize) {
        if let Some(due_ns) = self.flows[index].emission.as_mut().and_then(Emission::next_ns) {
            self.timers.push(Reverse((due_ns, index, Timer::Udp)));
        }
    }

    fn send_udp(&mut self, clock: Clock, index: usize) -> Result<(), HostError> {
        let flow = &mut self.flows[index];
        let Some(socket) = &flow.socket else { return Ok(()) };
        let packet_bytes = self.plan.flows[index].packet_bytes;
        let mut payload = vec![0; (packet_bytes - UDP_HEADERS_BYTES) as usize];
        payload[..4].copy_from_slice(&flow.next_number.to_be_bytes());
        payload[4..STAMP_BYTES].copy_from_slice(&clock.now_ns().to_be_bytes());
        match send(socket.as_raw_fd(), &payload, MsgFlags::MSG_DONTWAIT) {
            Ok(_) => {}
            Err(error) => return Err(error).doing("sending a UDP packet"),
        }
        flow.next_number += 1;
        self.time_udp(index);
        Ok(())
    }

    /// Notes the state of all connections as that at the end of bin number `bin`.
    fn sample(&mut self, bin: usize, tell: Option<Tell<'_>>) -> Result<(), HostError> {
        for (index, flow) in self.flows.iter_mut().enumerate() {
            let sample = match &flow.socket {
                Some(socket) if flow.connected => {
                    let info = tcp_info(socket)?;
                    let gone = info.tcpi_sacked + info.tcpi_lost;
                    FlowSample {
                        cwnd_pkts: info.tcpi_snd_cwnd,
                        ssthresh_pkts: info.tcpi_snd_ssthresh,
                        inflight_pkts: (info.tcpi_unacked + info.tcpi_retrans).saturating_sub(gone),
                        srtt_us: info.tcpi_rtt,
                        ..FlowSample::default()
                    }
                }
                _ => FlowSample::default(),
            };
            flow.sent.samples.resize(bin, sample);
            if let Some(tell) = tell.filter(|_| sample.cwnd_pkts > 0) {
                tell(Progress::Flow { flow: index, bin: bin - 1, part: sample });
            }
        }
        Ok(())
    }

    /// Ends a flow at once, with a reset: data not sent yet never will be.
    fn close(&mut self, index: usize) -> Result<(), HostError> {
        let flow = &mut self.flows[index];
        let Some(socket) = flow.socket.take() else { return Ok(()) };
        if flow.connected {
            used(&self.spec.flows[index].name, &flow.cc, &self.plan.flows[index], &socket)?;
            flow.sent.timeouts = u64::from(tcp_info(&socket)?.tcpi_total_rto);
        }
        Ok(())
    }
}

enum Receiver {
    /// Waits for the flow's connection.
    Listens(OwnedFd),
    Connected(OwnedFd),
    Udp(OwnedFd),
    Closed,
}

/// All receivers of a run over TCP and UDP.
pub(crate) struct Receivers<'a> {
    spec: &'a RunSpec,
    epoll: Epoll,
    /// Bins that have been told of.
    told: usize,
    sockets: Vec<Receiver>,
    /// Receive window of each flow; 0 without one.
    windows_bytes: Vec<u64>,
    /// Bytes that each has read: also after the run's end, when nothing is counted any more.
    read_bytes: Vec<u64>,
    received: Vec<Received>,
    payload: Payload,
    bytes: Vec<u8>,
}

impl<'a> Receivers<'a> {
    /// Opens the sockets in the present thread's namespace; those of reverse flows on `far`.
    pub(crate) fn new(spec: &'a RunSpec, plan: &Plan, far: &Namespace) -> Result<Self, HostError> {
        let epoll = new_epoll()?;
        let mut sockets = Vec::with_capacity(spec.flows.len());
        for (index, flow) in plan.flows.iter().enumerate() {
            if flow.quic.is_some() {
                sockets.push(Receiver::Closed);
                continue;
            }
            let kind = if flow.tcp.is_some() { SockType::Stream } else { SockType::Datagram };
            let socket = match flow.source {
                End::Sender => open(kind)?,
                End::Receiver => far.inside(|| open(kind))??,
            };
            let at = flow.source.other().socket_address(index);
            bind(socket.as_raw_fd(), &at).doing("binding a receiver")?;
            let buffer_bytes = if flow.tcp.is_some() {
                // Twice, for the kernel's bookkeeping: the clamp is to be what limits.
                (2 * flow.receive_window_bytes as usize).min(i32::MAX as usize / 2)
            } else {
                UDP_BUFFER_BYTES
            };
            setsockopt(&socket, sockopt::RcvBufForce, &buffer_bytes)
                .doing("setting SO_RCVBUFFORCE")?;
            if flow.tcp.is_some() {
                clamp(&socket, flow.receive_window_bytes)?;
                listen(&socket, Backlog::MAXCONN).doing("listening")?;
            }
            let event = EpollEvent::new(EpollFlags::EPOLLIN, index as u64);
            epoll.add(&socket, event).doing("watching a socket")?;
            sockets.push(match flow.tcp {
                Some(_) => Receiver::Listens(socket),
                None => Receiver::Udp(socket),
            });
        }
        let flows = 0..spec.flows.len();
        let received =
            flows.clone().map(|_| Received { bins: vec![0; spec.bins()], ..Received::default() });
        Ok(Self {
            spec,
            epoll,
            told: 0,
            sockets,
            windows_bytes: plan.flows.iter().map(|flow| flow.receive_window_bytes).collect(),
            read_bytes: vec![0; spec.flows.len()],
            received: received.collect(),
            payload: Payload::new(),
            bytes: vec![0; CHUNK_BYTES],
        })
    }

    pub(crate) fn run(
        mut self,
        clock: Clock,
        alarm: &Alarm,
        tell: Option<Tell<'_>>,
    ) -> Result<Vec<Received>, HostError> {
        set_timerslack(1).doing("setting the timer slack")?;
        let mut events = [EpollEvent::empty(); EVENTS];
        while !alarm.raised() {
            let now_ns = clock.now_ns();
            let left_ns = self.spec.duration_ns.saturating_sub(now_ns);
            if left_ns == 0 {
                break;
            }
            self.tell(now_ns, tell);
            for event in wait(&self.epoll, &mut events, left_ns)? {
                self.on_socket(clock, event.data() as usize)?;
            }
        }
        Ok(self.finish())
    }

    /// Tells of the bins that have ended.
    fn tell(&mut self, now_ns: Ns, tell: Option<Tell<'_>>) {
        let Some(tell) = tell else { return };
        let ended = now_ns.checked_div(self.spec.record.bin_ns).unwrap_or(0) as usize;
        for (flow, received) in self.received.iter().enumerate() {
            received.tell(flow, self.told..ended, tell);
        }
        self.told = ended;
    }

    fn finish(self) -> Vec<Received> {
        self.received
    }

    fn on_socket(&mut self, clock: Clock, index: usize) -> Result<(), HostError> {
        let socket = match &self.sockets[index] {
            Receiver::Listens(socket) => {
                let new = match accept4(
                    socket.as_raw_fd(),
                    SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC,
                ) {
                    // SAFETY: the call has just given this descriptor to nobody else.
                    Ok(new) => unsafe { OwnedFd::from_raw_fd(new) },
                    Err(Errno::EAGAIN | Errno::ECONNABORTED) => return Ok(()),
                    Err(error) => return Err(error).doing("accepting a connection"),
                };
                let event = EpollEvent::new(EpollFlags::EPOLLIN, index as u64);
                self.epoll.add(&new, event).doing("watching a socket")?;
                self.sockets[index] = Receiver::Connected(new);
                return Ok(());
            }
            Receiver::Closed => return Ok(()),
            Receiver::Connected(socket) | Receiver::Udp(socket) => socket,
        };
        let udp = matches!(self.sockets[index], Receiver::Udp(_));
        match recv(socket.as_raw_fd(), &mut self.bytes, MsgFlags::MSG_DONTWAIT) {
            Ok(0) | Err(Errno::ECONNRESET) => self.sockets[index] = Receiver::Closed,
            Ok(len) => {
                let position = self.read_bytes[index];
                if !udp && self.bytes[..len] != *self.payload.at(position, len) {
                    let flow = &self.spec.flows[index].name;
                    return Err(broken(format!(
                        "flow {flow}: of the {len} bytes from {position} on, not all arrived as they were sent"
                    )));
                }
                // Linux 6.12, unlike 6.1, forgets the clamp when a larger segment than before has shown what
                // memory segments take, and computes another from the size of the buffer.
                if !udp && position < FIRST_WINDOW_BYTES {
                    clamp(socket, self.windows_bytes[index])?;
                }
                self.read_bytes[index] += len as u64;
                self.count(clock.now_ns(), index, len, udp);
            }
            Err(Errno::EAGAIN) => {}
            Err(error) => return Err(error).doing("receiving"),
        }
        Ok(())
    }

    fn count(&mut self, now_ns: Ns, index: usize, len: usize, udp: bool) {
        if now_ns >= self.spec.duration_ns {
            return;
        }
        let received = &mut self.received[index];
        let bytes = len as u64 + if udp { u64::from(UDP_HEADERS_BYTES) } else { 0 };
        received.add(self.spec, now_ns, bytes, self.spec.flows[index].kind.workload());
        if matches!(self.spec.flows[index].kind, FlowKind::Probe { .. })
            && let Some(stamp) = self.bytes[..len].get(4..STAMP_BYTES)
            && let Ok(stamp) = stamp.try_into()
        {
            let sent_ns = Ns::from_be_bytes(stamp);
            let delay_ns = now_ns.saturating_sub(sent_ns);
            received.probe_delays.push((sent_ns, delay_ns));
            received.one_way_delay.add(delay_ns);
        }
    }
}

/// Waits for events of an epoll, at most `timeout_ns`, to the nanosecond.
pub(crate) fn wait<'e>(
    epoll: &Epoll,
    events: &'e mut [EpollEvent],
    timeout_ns: Ns,
) -> Result<&'e [EpollEvent], HostError> {
    use std::os::fd::AsFd;
    let timeout = TimeSpec::nanoseconds(timeout_ns.min(LONGEST_SLEEP_NS) as i64);
    let mut ready = [PollFd::new(epoll.0.as_fd(), PollFlags::POLLIN)];
    let waited =
        ppoll(&mut ready, Some(timeout), None).and_then(|_| epoll.wait(events, EpollTimeout::ZERO));
    match waited {
        Ok(n) => Ok(&events[..n]),
        Err(Errno::EINTR) => Ok(&[]),
        Err(error) => Err(error).doing("waiting for sockets"),
    }
}

pub(crate) fn open(kind: SockType) -> Result<OwnedFd, HostError> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    socket(AddressFamily::Inet, kind, flags, None).doing("opening a socket")
}

/// Limits the receive window of a connection, or of those that a listening socket accepts.
fn clamp(socket: &OwnedFd, window_bytes: u64) -> Result<(), HostError> {
    WindowClamp.set(socket, &(window_bytes as libc::c_int)).doing("setting TCP_WINDOW_CLAMP")
}

/// A TCP socket with a flow's congestion control.
fn tcp_socket(flow: &str, cc: &str) -> Result<OwnedFd, HostError> {
    let socket = open(SockType::Stream)?;
    match sockopt::TcpCongestion.set(&socket, &OsString::from(cc)) {
        Ok(()) => Ok(socket),
        Err(Errno::ENOENT) => {
            let list = "/proc/sys/net/ipv4/tcp_available_congestion_control";
            let available = fs::read_to_string(list).doing("listing congestion controls")?;
            let why = format!("flow {flow}: this kernel has no congestion control {cc:?}");
            let help = format!("choose one that it has: {}", available.trim());
            Err(unavailable(why, help))
        }
        Err(error) => Err(error).doing(&format!("flow {flow}: setting TCP_CONGESTION")),
    }
}

/// Makes sure that a connection uses what its flow asks for.
fn used(flow: &str, cc: &str, plan: &FlowPlan, socket: &OwnedFd) -> Result<(), HostError> {
    let differs = |option: &str, wanted: &dyn Display, used: &dyn Display| {
        let why =
            format!("flow {flow}: the socket used {option} {used}, not {wanted} as requested");
        Err(broken(why))
    };
    let in_use = sockopt::TcpCongestion.get(socket).doing("asking for TCP_CONGESTION")?;
    let in_use = in_use.to_string_lossy();
    let in_use = in_use.trim_end_matches('\0');
    if in_use != cc {
        return differs("congestion control", &cc, &in_use);
    }
    let mss_bytes = tcp_info(socket)?.tcpi_snd_mss;
    match &plan.tcp {
        Some(tcp) if tcp.mss_bytes != mss_bytes => differs("tcp.mss", &tcp.mss_bytes, &mss_bytes),
        _ => Ok(()),
    }
}

/// `TCP_INFO`; fields that an older kernel does not know are 0.
fn tcp_info(socket: &OwnedFd) -> Result<libc::tcp_info, HostError> {
    // SAFETY: a tcp_info is plain numbers; all zeros are a value of it.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
    let to = (&raw mut info).cast();
    // SAFETY: the kernel writes at most `len` bytes, the size of the structure at `to`.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, to, &mut len)
    };
    Errno::result(result).doing("asking for TCP_INFO")?;
    Ok(info)
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_model::{Cc, FlowSpec, PathSpec, QueueLimit, RecordSpec, TcpOptions, Transport};
    use std::{
        io::Write,
        net::{TcpListener, TcpStream},
        time::Duration,
    };

    /// Two reads in a row after the end of the run, as happens where a read takes long.
    #[test]
    fn bytes_read_after_the_end_are_checked_and_not_counted() {
        let (cc, workload) = (Cc::Kernel("reno".to_owned()), Workload::Bulk);
        let tcp =
            TcpSpec { transport: Transport::Own, cc, workload, options: TcpOptions::default() };
        let flow = FlowSpec::new("late", FlowKind::Tcp(tcp));
        let path = PathSpec::symmetric(1_000_000, NS_PER_MS, QueueLimit::Packets(10));
        let record = RecordSpec::default();
        let spec =
            RunSpec { seed: 1, duration_ns: 0, path, flows: vec![flow], record, sysctls: vec![] };

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        let mut receivers = Receivers {
            spec: &spec,
            epoll: new_epoll().unwrap(),
            told: 0,
            sockets: vec![Receiver::Connected(socket.into())],
            windows_bytes: vec![1 << 20],
            read_bytes: vec![0],
            received: vec![Received::default()],
            payload: Payload::new(),
            bytes: vec![0; CHUNK_BYTES],
        };
        let clock = Clock::starting_in(Duration::ZERO);
        let payload = Payload::new();
        let mut read = |position, bytes: &[u8]| {
            sender.write_all(bytes).unwrap();
            while receivers.read_bytes[0] < position + bytes.len() as u64 {
                receivers.on_socket(clock, 0)?;
            }
            Ok::<u64, HostError>(receivers.received[0].bytes)
        };
        assert_eq!(read(0, payload.at(0, 1000)).unwrap(), 0);
        assert_eq!(read(1000, payload.at(1000, 500)).unwrap(), 0);
        let error = read(1500, payload.at(1501, 500)).unwrap_err();
        assert!(error.why.contains("from 1500 on, not all arrived as they were sent"), "{error}");
    }
}
