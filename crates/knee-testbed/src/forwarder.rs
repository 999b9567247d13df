//! The path: carries packets between the two ends' devices in real time.
//!
//! It steps the same [`Path`] as the simulator. Each event happens at the time that the path gave,
//! however late the thread is: a late packet delays itself, not those after it.
//!
//! In a virtual machine whose clock counts instructions it does the same, but never waits awake:
//! that would only count more of them.

use crate::{
    Alarm, Clock, TestbedError, Time, bins,
    capture::{Capture, Place},
    error::Doing,
    namespace::OPEN_MTU_BYTES,
    packet::{Arrived, Body, Datagram, Headers, Sequence, carried, parse},
    passed::Passed,
    plan::{Plan, flow_of},
};
use knee_net::{NEVER, Packet};
use knee_run::{
    DelayStats, FlowCounters, Lateness, NS_PER_MS, NS_PER_S, NS_PER_US, Ns, PacketEvent, Path,
    PathQueues, Port, RunSpec, Source,
};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, ppoll},
    sys::{
        prctl::set_timerslack,
        time::{TimeSpec, TimeValLike},
    },
};
use std::{
    fs::File,
    io::{ErrorKind, Read, Write},
    os::fd::AsFd,
    thread,
    time::Duration,
};

/// A packet may be late by so small a part of the round-trip time: what falls due within it is given
/// out together. Waking up for each packet takes more of a processor than the packets do.
const LATE_SHARE: Ns = 1000;
/// But by no more than this part of a packet's transmission: some algorithms measure how far ACKs are
/// apart.
const GAP_SHARE: Ns = 4;
/// Waking up takes about that long. What that leaves too little time for is awaited awake.
const WAKE_NS: Ns = 15 * NS_PER_US;
/// The kernel takes a processor away for 50 ms from a real-time thread that uses more than 95 % of
/// a second. So about once a millisecond it makes sure to have slept a twelfth of the time.
const TURN_NS: Ns = NS_PER_MS;
const REST_SHARE: Ns = 12;
/// Longest sleep: how soon the failure of another thread is noticed.
const LONGEST_SLEEP_NS: Ns = 100 * NS_PER_MS;
/// Packets read from one device before the other has its turn.
const BATCH: usize = 32;
/// Room for a packet where there is no plan, bytes.
const ROOM_BYTES: usize = OPEN_MTU_BYTES as usize;

/// What the path saw.
pub(crate) struct PathRecord {
    pub flows: Vec<FlowPath>,
    pub queues: PathQueues,
    pub lateness: DelayStats,
    pub passed: Passed,
}

/// What the path saw of one flow.
#[derive(Default)]
pub(crate) struct FlowPath {
    pub counters: FlowCounters,
    /// Runs of retransmissions.
    pub retransmission_episodes: u64,
    pub bins: Vec<FlowBin>,
    /// Packets that the receiver sent.
    pub back_pkts: u64,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct FlowBin {
    pub sent_pkts: u32,
    pub lost_pkts: u32,
}

/// How a flow's packets are numbered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tcp,
    Quic,
    Udp,
}

struct Flow {
    record: FlowPath,
    port: Port,
    /// Totals at the last bin: sent, lost.
    last: (u64, u64),
    kind: Kind,
    mss_bytes: u64,
    sequence: Sequence,
    arrived: Arrived,
}

impl Flow {
    fn new(port: Port) -> Self {
        Self {
            record: FlowPath::default(),
            port,
            last: (0, 0),
            kind: Kind::Udp,
            mss_bytes: 1,
            sequence: Sequence::default(),
            arrived: Arrived::default(),
        }
    }

    /// Counts a packet that starts on its way: `data`, or what the receiver sends.
    fn count(&mut self, data: bool) {
        if data {
            self.record.counters.sent_pkts += 1;
        } else {
            self.record.back_pkts += 1;
        }
    }

    fn counters(&self) -> FlowCounters {
        let retransmitted_pkts = self.sequence.retransmitted_pkts;
        self.port.count(FlowCounters { retransmitted_pkts, ..self.record.counters })
    }

    fn close_bin(&mut self) {
        let c = self.counters();
        let total = (c.sent_pkts, c.random_losses_pkts + c.queue_drops_pkts);
        self.record.bins.push(FlowBin {
            sent_pkts: (total.0 - self.last.0) as u32,
            lost_pkts: (total.1 - self.last.1) as u32,
        });
        self.last = total;
    }
}

pub(crate) struct Forwarder<'a> {
    spec: &'a RunSpec,
    clock: Clock,
    senders: File,
    receivers: File,
    flows: Vec<Flow>,
    /// Whether only the flows of a plan are carried; if not, all packets are of flow 0.
    planned: bool,
    path: Path<Datagram, Datagram>,
    capture: Option<Capture>,
    lateness: DelayStats,
    /// So late a packet may be.
    late_ns: Ns,
    room_bytes: usize,
    free: Vec<Vec<u8>>,
    pace: Pace,
    /// Whether there may be packets to read from the sender's end, and from the receiver's.
    readable: [bool; 2],
}

/// How the thread waits.
#[derive(Clone, Copy)]
struct Pace {
    /// Waking up takes about that long. What that leaves too little time for is awaited awake.
    wake_ns: Ns,
    /// Whether the kernel stops a real-time thread that never rests.
    rests: bool,
}

impl Pace {
    fn of(time: Time) -> Self {
        match time {
            Time::Real => Self { wake_ns: WAKE_NS, rests: true },
            Time::Virtual => Self { wake_ns: 0, rests: false },
        }
    }
}

impl<'a> Forwarder<'a> {
    /// Carries the flows of `plan`; without one, whatever the ends send, as the one flow of `spec`.
    pub(crate) fn new(
        spec: &'a RunSpec,
        plan: Option<&Plan>,
        clock: Clock,
        [senders, receivers]: [File; 2],
        capture: Option<Capture>,
        time: Time,
    ) -> Self {
        let (path, ports) = Path::new(spec);
        let mut flows: Vec<Flow> = ports.into_iter().map(Flow::new).collect();
        for (index, flow) in flows.iter_mut().enumerate() {
            let Some(planned) = plan.map(|plan| &plan.flows[index]) else { continue };
            if let Some(tcp) = &planned.tcp {
                (flow.kind, flow.mss_bytes) = (Kind::Tcp, u64::from(tcp.mss_bytes));
            } else if planned.quic.is_some() {
                flow.kind = Kind::Quic;
            }
        }
        Self {
            spec,
            clock,
            senders,
            receivers,
            flows,
            planned: plan.is_some(),
            path,
            capture,
            lateness: DelayStats::default(),
            late_ns: late_ns(spec),
            room_bytes: plan.map_or(ROOM_BYTES, |plan| plan.mtu_bytes as usize),
            free: Vec::new(),
            pace: Pace::of(time),
            readable: [true; 2],
        }
    }

    /// Carries packets until the spec's end or the alarm. Once a millisecond `watch` may look.
    pub(crate) fn run(
        mut self,
        alarm: &Alarm,
        mut watch: impl FnMut(&Self),
    ) -> Result<PathRecord, TestbedError> {
        urgent()?;
        self.clock.wait_for_zero();
        let end_ns = self.spec.duration_ns;
        let (mut turn_ns, mut slept_ns) = (0, 0);
        while !alarm.raised() {
            let now_ns = self.clock.now_ns();
            if now_ns >= turn_ns + TURN_NS {
                let rest_ns = ((now_ns - turn_ns) / REST_SHARE).saturating_sub(slept_ns);
                if self.pace.rests && rest_ns > 0 {
                    thread::sleep(Duration::from_nanos(rest_ns));
                }
                (turn_ns, slept_ns) = (self.clock.now_ns(), 0);
                watch(&self);
                continue;
            }
            self.advance(now_ns.min(end_ns))?;
            if now_ns >= end_ns {
                break;
            }
            let forward = self.take_in(true)?;
            let back = self.take_in(false)?;
            if !forward && !back {
                slept_ns += self.sleep(end_ns)?;
            }
        }
        self.finish()
    }

    /// Sleeps until a packet comes or is to be given out; how long.
    fn sleep(&mut self, end_ns: Ns) -> Result<Ns, TestbedError> {
        let due_ns = self.path.next_out_ns();
        let now_ns = self.clock.now_ns();
        let wake_ns = due_ns.saturating_add(self.late_ns).min(end_ns);
        let sleep_ns = wake_ns.saturating_sub(now_ns + self.pace.wake_ns).min(LONGEST_SLEEP_NS);
        if sleep_ns == 0 {
            std::hint::spin_loop();
            self.readable = [true; 2];
            return Ok(0);
        }
        let mut devices = [
            PollFd::new(self.senders.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.receivers.as_fd(), PollFlags::POLLIN),
        ];
        match ppoll(&mut devices, Some(TimeSpec::nanoseconds(sleep_ns as i64)), None) {
            Ok(_) | Err(Errno::EINTR) => {
                self.readable = devices.map(|device| device.any().unwrap_or(true));
                Ok(self.clock.now_ns() - now_ns)
            }
            Err(error) => Err(error).doing("waiting for packets"),
        }
    }

    /// Takes in what an end has sent; whether it was anything.
    fn take_in(&mut self, forward: bool) -> Result<bool, TestbedError> {
        if !self.readable[usize::from(!forward)] {
            return Ok(false);
        }
        for taken in 0..BATCH {
            let mut room = self.free.pop().unwrap_or_else(|| vec![0; self.room_bytes]);
            let device = if forward { &self.senders } else { &self.receivers };
            let len = match (&mut &*device).read(&mut room) {
                Ok(len) => len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.free.push(room);
                    self.readable[usize::from(!forward)] = false;
                    return Ok(taken > 0);
                }
                Err(error) => return Err(error).doing("reading a packet from a device"),
            };
            let now_ns = self.clock.now_ns();
            if now_ns >= self.spec.duration_ns {
                return Ok(false);
            }
            let Some((flow, number, covers)) = self.identify(&room[..len], forward) else {
                self.free.push(room);
                continue;
            };
            let place = if forward { Place::Sender } else { Place::Receiver };
            self.captured(place, now_ns, &room[..len], None)?;
            self.advance(now_ns)?;
            let packet = Datagram { room, len: len as u32, flow: flow as u32, number, covers };
            if forward {
                self.send(now_ns, packet)?;
            } else {
                self.send_back(now_ns, packet)?;
            }
        }
        Ok(true)
    }

    fn captured(
        &mut self,
        place: Place,
        time_ns: Ns,
        bytes: &[u8],
        comment: Option<&'static str>,
    ) -> Result<(), TestbedError> {
        match &mut self.capture {
            Some(capture) => capture.packet(place, time_ns, bytes, comment),
            None => Ok(()),
        }
    }

    /// Flow, number and sequence space of a packet, if it is to be carried.
    fn identify(&mut self, bytes: &[u8], forward: bool) -> Option<(usize, u32, (u64, u64))> {
        if !self.planned {
            let sent_pkts = self.flows[0].record.counters.sent_pkts;
            return carried(bytes).then_some((0, sent_pkts as u32, (0, 0)));
        }
        let headers: Headers = parse(bytes)?;
        let service = if forward { headers.destination_port } else { headers.source_port };
        let index = flow_of(service)?;
        let flow = self.flows.get_mut(index)?;
        match headers.body {
            Body::Tcp { seq, syn, span } if flow.kind == Kind::Tcp => {
                if forward == flow.port.goes_back {
                    return Some((index, 0, (0, 0)));
                }
                let covers = flow.sequence.send(seq, syn, span);
                let number = covers.0.saturating_sub(1) / flow.mss_bytes;
                Some((index, number as u32, covers))
            }
            Body::Udp { number } if flow.kind == Kind::Udp => Some((index, number, (0, 0))),
            // Encrypted: they are numbered as they come.
            Body::Udp { .. } if flow.kind == Kind::Quic => {
                Some((index, flow.record.counters.sent_pkts as u32, (0, 0)))
            }
            _ => None,
        }
    }

    /// A packet starts on its way from the path's start.
    fn send(&mut self, now_ns: Ns, packet: Datagram) -> Result<(), TestbedError> {
        let flow = &mut self.flows[packet.flow as usize];
        flow.count(!flow.port.goes_back);
        let mut refused = None;
        let keep = |event, packet| refused = Some((event, packet));
        self.path.send(now_ns, packet, &mut flow.port, keep);
        self.refused(now_ns, refused)
    }

    /// Takes back what the path did not take.
    fn refused(
        &mut self,
        now_ns: Ns,
        refused: Option<(PacketEvent, Datagram)>,
    ) -> Result<(), TestbedError> {
        self.take_dropped(now_ns)?;
        let Some((event, packet)) = refused else { return Ok(()) };
        self.captured(Place::Lost, now_ns, packet.bytes(), Some(event.name()))?;
        self.free.push(packet.room);
        Ok(())
    }

    /// Takes back what the queue dropped after it had taken it.
    fn take_dropped(&mut self, now_ns: Ns) -> Result<(), TestbedError> {
        while let Some(packet) = self.path.take_dropped() {
            self.flows[packet.flow as usize].port.there_drops_pkts += 1;
            let event = PacketEvent::Dropped.name();
            self.captured(Place::Lost, now_ns, packet.bytes(), Some(event))?;
            self.free.push(packet.room);
        }
        Ok(())
    }

    /// A packet starts on its way from the path's end.
    fn send_back(&mut self, now_ns: Ns, packet: Datagram) -> Result<(), TestbedError> {
        let flow = &mut self.flows[packet.flow as usize];
        flow.count(flow.port.goes_back);
        let (gone, how) = if self.path.loses_back(&mut flow.port) {
            (packet, "lost on the reverse path")
        } else {
            let (bytes, mut dropped) = (packet.wire_bytes(), None);
            let keep = |packet| dropped = Some(packet);
            self.path.send_back(now_ns, packet, bytes, &mut flow.port, keep);
            let Some(packet) = dropped else { return Ok(()) };
            (packet, "dropped on the reverse path")
        };
        self.captured(Place::Lost, now_ns, gone.bytes(), Some(how))?;
        self.free.push(gone.room);
        Ok(())
    }

    /// Lets all happen that is due by `until_ns`.
    fn advance(&mut self, until_ns: Ns) -> Result<(), TestbedError> {
        loop {
            let (source, due_ns) = self.path.first();
            if due_ns > until_ns {
                return Ok(());
            }
            match source {
                Source::Bins => self.close_bin(due_ns),
                // There are none: the ends keep their own.
                Source::Timers => self.path.set_timers(NEVER),
                Source::Departure => self.depart(0, due_ns)?,
                Source::LaterDeparture(hop) => self.depart(hop, due_ns)?,
                Source::Arrival => self.arrive(0, due_ns)?,
                Source::LaterArrival(hop) => self.arrive(hop, due_ns)?,
                Source::Bottleneck(entrance) => {
                    if let Some((packet, hop)) = self.path.at_bottleneck(entrance, due_ns) {
                        let port = &mut self.flows[packet.flow as usize].port;
                        let mut refused = None;
                        let keep = |event, packet| refused = Some((event, packet));
                        self.path.offer(due_ns, packet, hop, port, keep);
                        self.refused(due_ns, refused)?;
                    }
                }
                Source::Sender(class) => {
                    if let Some(packet) = self.path.back(class, due_ns) {
                        self.deliver(due_ns, packet, false)?;
                    }
                }
                Source::DepartureBack => self.path.depart_back(due_ns),
            }
        }
    }

    /// A packet leaves bottleneck `hop`.
    fn depart(&mut self, hop: usize, due_ns: Ns) -> Result<(), TestbedError> {
        if let Some(flow) = self.path.depart(hop, due_ns) {
            self.flows[flow as usize].port.marked_pkts += 1;
        }
        self.take_dropped(due_ns)
    }

    /// A packet from bottleneck `hop` reaches the path's end.
    fn arrive(&mut self, hop: usize, due_ns: Ns) -> Result<(), TestbedError> {
        match self.path.arrive(hop, due_ns) {
            Some(packet) => self.deliver(due_ns, packet, true),
            None => Ok(()),
        }
    }

    /// Counts a packet that reaches an end, if that is its flow's receiver.
    fn count_arrival(&mut self, packet: &Datagram, forward: bool) {
        let flow = &mut self.flows[packet.flow as usize];
        if forward == flow.port.goes_back {
            return;
        }
        if flow.arrived.take(packet.covers) {
            flow.record.counters.delivered_pkts += 1;
        } else {
            flow.record.counters.duplicate_pkts += 1;
        }
    }

    /// Gives a packet to an end.
    fn deliver(&mut self, due_ns: Ns, packet: Datagram, forward: bool) -> Result<(), TestbedError> {
        self.count_arrival(&packet, forward);
        let now_ns = self.clock.now_ns();
        self.lateness.add(now_ns.saturating_sub(due_ns));
        let device = if forward { &self.receivers } else { &self.senders };
        (&mut &*device).write_all(packet.bytes()).doing("writing a packet to a device")?;
        // The end may have answered at once.
        self.readable[usize::from(forward)] = true;
        let place = if forward { Place::Receiver } else { Place::Sender };
        self.captured(place, now_ns, packet.bytes(), None)?;
        self.free.push(packet.room);
        Ok(())
    }

    /// Ends a bin of the time series.
    fn close_bin(&mut self, now_ns: Ns) {
        self.flows.iter_mut().for_each(Flow::close_bin);
        self.path.close_bin(now_ns);
    }

    /// What has passed until now.
    pub(crate) fn passed(&self) -> Passed {
        let flow = &self.flows[0];
        let (c, queue) = (flow.counters(), self.path.queue());
        let delay = |q| queue.delay.quantile_ns(q);
        Passed {
            time_ns: self.clock.now_ns(),
            forward_pkts: c.sent_pkts,
            delivered_pkts: c.delivered_pkts,
            delivered_bytes: self.path.departed_bytes(),
            queue_drops_pkts: c.queue_drops_pkts,
            random_losses_pkts: c.random_losses_pkts,
            back_pkts: flow.record.back_pkts,
            back_losses_pkts: c.ack_losses_pkts,
            back_drops_pkts: c.ack_drops_pkts,
            queue_pkts: self.path.held_pkts(),
            queue_max_pkts: queue.max_pkts,
            queue_delay_ns: [delay(0.5), delay(0.95), delay(0.99), queue.delay.max_ns()],
            lateness: Lateness::of(&self.lateness),
        }
    }

    fn finish(mut self) -> Result<PathRecord, TestbedError> {
        if self.path.queue().bins.len() < bins(self.spec) {
            self.close_bin(self.spec.duration_ns);
        }
        let passed = self.passed();
        let there = self.path.under_way().map(|packet| (packet, false));
        let back = self.path.under_way_back().map(|packet| (packet, true));
        for (packet, back) in there.chain(back) {
            let flow = &mut self.flows[packet.flow as usize];
            flow.record.counters.in_network_pkts += u64::from(flow.port.goes_back == back);
        }
        if let Some(capture) = self.capture {
            capture.finish()?;
        }
        let flows = self.flows.into_iter().map(|flow| FlowPath {
            counters: flow.counters(),
            retransmission_episodes: flow.sequence.episodes,
            ..flow.record
        });
        let (flows, queues) = (flows.collect(), self.path.finish());
        Ok(PathRecord { flows, queues, lateness: self.lateness, passed })
    }
}

/// How late a packet may be.
fn late_ns(spec: &RunSpec) -> Ns {
    let packet_bits =
        8 * spec.flows.iter().map(|flow| u64::from(flow.packet_bytes())).min().unwrap_or(0);
    let highest_bps = spec.path.hops.iter().map(|hop| hop.rate().highest_bps()).fold(1, u64::max);
    let gap_ns = packet_bits.saturating_mul(NS_PER_S) / highest_bps;
    (spec.path.rtt_range_ns().0 / LATE_SHARE).min(gap_ns / GAP_SHARE)
}

/// Asks for exact wake-ups of the present thread, and to run before others. Without the second
/// the path still works; how well, its lateness says.
fn urgent() -> Result<(), TestbedError> {
    set_timerslack(1).doing("setting the timer slack")?;
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: 0 is the calling thread; the parameters outlive the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &lowest) };
    Ok(())
}
