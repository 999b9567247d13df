//! The path: carries packets between the two ends' devices in real time.
//!
//! It drives the same [`Path`] as the simulator, up to the present. Each event happens at the time that the
//! path gave, however late the thread is: a late packet delays itself, not those after it.
//!
//! With one processor, as in a virtual machine, the thread does not busy-wait: that would keep the
//! applications from running.

use crate::{
    Alarm, Clock,
    error::Doing,
    namespace::OPEN_MTU_BYTES,
    packet::{Datagram, carried},
    passed::Passed,
    plan::{Plan, flow_of},
};
use knee_capture::{Capture, Place};
use knee_model::{
    DelayStats, FlowCounters, FlowSample, FlowTotals, HostError, Lateness, NS_PER_MS, NS_PER_S,
    NS_PER_US, Ns, PathQueues, Progress, RunSpec, Tell,
};
use knee_net::{
    Arrived, Direction, End, Endpoints, LostPacket, Network, Path, Sequence,
    headers::{self, Body},
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
    convert::Infallible,
    fs::File,
    io::{ErrorKind, Read, Write},
    os::fd::AsFd,
    thread,
    time::Duration,
};

/// A packet may be late by so small a part of the round-trip time: packets due within it are given out
/// together. Waking up for each packet takes more of a processor than the packets do.
const LATE_SHARE: Ns = 1000;
/// But by no more than this part of a packet's transmission: some algorithms measure how far ACKs are
/// apart.
const GAP_SHARE: Ns = 4;
/// Waking up takes about this long.
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

/// The path's record.
pub(crate) struct PathRecord {
    pub flows: Vec<FlowPath>,
    pub queues: PathQueues,
    pub lateness: DelayStats,
    pub passed: Passed,
}

/// The path's record of one flow.
#[derive(Default)]
pub(crate) struct FlowPath {
    pub counters: FlowCounters,
    /// Runs of retransmissions.
    pub retransmission_episodes: u64,
    pub bins: Vec<FlowBin>,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct FlowBin {
    pub sent_pkts: u32,
    pub lost_pkts: u32,
}

/// Numbering of a flow's packets.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    Tcp,
    Quic,
    #[default]
    Udp,
}

#[derive(Default)]
struct Flow {
    record: FlowPath,
    last: FlowTotals,
    kind: Kind,
    /// Segment size, if it is TCP.
    mss_bytes: u64,
    sequence: Sequence,
    arrived: Arrived,
}

impl Flow {
    /// Totals, without those that the path counts.
    fn counters(&self) -> FlowCounters {
        let retransmitted_pkts = self.sequence.retransmitted_pkts;
        FlowCounters { retransmitted_pkts, ..self.record.counters }
    }
}

pub(crate) struct Forwarder<'a> {
    spec: &'a RunSpec,
    network: Network<Datagram, Infallible>,
    devices: Devices,
    /// True if only the flows of a plan are carried; if not, all packets are of flow 0.
    planned: bool,
    /// So late a packet may be.
    late_ns: Ns,
    /// The thread stays awake for anything due sooner.
    wake_ns: Ns,
    room_bytes: usize,
}

/// The ends of the path: their devices, and the state of the packets.
struct Devices {
    clock: Clock,
    /// At the path's start, and at its end.
    start: File,
    end: File,
    flows: Vec<Flow>,
    capture: Option<Capture>,
    lateness: DelayStats,
    free: Vec<Vec<u8>>,
    /// True while there may be packets to read that go forward, and in reverse.
    readable: [bool; 2],
}

impl<'a> Forwarder<'a> {
    /// Carries the flows of `plan`; without one, whatever the ends send, as the one flow of `spec`.
    pub(crate) fn new(
        spec: &'a RunSpec,
        plan: Option<&Plan>,
        clock: Clock,
        [start, end]: [File; 2],
        capture: Option<Capture>,
    ) -> Self {
        let mut flows: Vec<Flow> = spec.flows.iter().map(|_| Flow::default()).collect();
        for (index, flow) in flows.iter_mut().enumerate() {
            let Some(planned) = plan.map(|plan| &plan.flows[index]) else { continue };
            if let Some(tcp) = &planned.tcp {
                (flow.kind, flow.mss_bytes) = (Kind::Tcp, u64::from(tcp.mss_bytes));
            } else if planned.quic.is_some() {
                flow.kind = Kind::Quic;
            }
        }
        // On one processor a thread that stays awake keeps the others from it.
        let alone = thread::available_parallelism().is_ok_and(|processors| processors.get() == 1);
        Self {
            spec,
            network: Network::new(spec),
            devices: Devices {
                clock,
                start,
                end,
                flows,
                capture,
                lateness: DelayStats::default(),
                free: Vec::new(),
                readable: [true; 2],
            },
            planned: plan.is_some(),
            late_ns: late_ns(spec),
            room_bytes: plan.map_or(ROOM_BYTES, |plan| plan.mtu_bytes as usize),
            wake_ns: if alone { 0 } else { WAKE_NS },
        }
    }

    /// Carries packets until the spec's end or the alarm. Once a millisecond `watch` may look.
    pub(crate) fn run(
        mut self,
        alarm: &Alarm,
        mut watch: impl FnMut(&Self),
    ) -> Result<PathRecord, HostError> {
        urgent()?;
        self.devices.clock.wait_for_zero();
        let end_ns = self.spec.duration_ns;
        let (mut turn_ns, mut slept_ns) = (0, 0);
        while !alarm.raised() {
            let now_ns = self.devices.clock.now_ns();
            if now_ns >= turn_ns + TURN_NS {
                let rest_ns = ((now_ns - turn_ns) / REST_SHARE).saturating_sub(slept_ns);
                if rest_ns > 0 {
                    thread::sleep(Duration::from_nanos(rest_ns));
                }
                (turn_ns, slept_ns) = (self.devices.clock.now_ns(), 0);
                watch(&self);
                continue;
            }
            self.advance(now_ns.min(end_ns))?;
            if now_ns >= end_ns {
                break;
            }
            let forward_pkts = self.take_in(Direction::Forward, BATCH)?;
            let reverse_pkts = self.take_in(Direction::Reverse, BATCH)?;
            if forward_pkts + reverse_pkts == 0 {
                slept_ns += self.sleep(end_ns)?;
            }
        }
        self.finish()
    }

    /// Sleeps until a packet comes or is to be given out; how long.
    fn sleep(&mut self, end_ns: Ns) -> Result<Ns, HostError> {
        let due_ns = self.network.path.next_out_ns();
        let now_ns = self.devices.clock.now_ns();
        let wake_ns = due_ns.saturating_add(self.late_ns).min(end_ns);
        let sleep_ns = wake_ns.saturating_sub(now_ns + self.wake_ns).min(LONGEST_SLEEP_NS);
        if sleep_ns == 0 {
            std::hint::spin_loop();
            self.devices.readable = [true; 2];
            return Ok(0);
        }
        let mut devices = [
            PollFd::new(self.devices.start.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.devices.end.as_fd(), PollFlags::POLLIN),
        ];
        match ppoll(&mut devices, Some(TimeSpec::nanoseconds(sleep_ns as i64)), None) {
            Ok(_) | Err(Errno::EINTR) => {
                self.devices.readable = devices.map(|device| device.any().unwrap_or(true));
                Ok(self.devices.clock.now_ns() - now_ns)
            }
            Err(error) => Err(error).doing("waiting for packets"),
        }
    }

    /// Takes in packets that one end has sent, in this direction, up to `most`; gives their number.
    fn take_in(&mut self, direction: Direction, most: usize) -> Result<usize, HostError> {
        if !self.devices.readable[direction as usize] {
            return Ok(0);
        }
        for taken in 0..most {
            let free = self.devices.free.pop();
            let mut room = free.unwrap_or_else(|| vec![0; self.room_bytes]);
            let len = match self.devices.before(direction).0.read(&mut room) {
                Ok(len) => len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.devices.free.push(room);
                    self.devices.readable[direction as usize] = false;
                    return Ok(taken);
                }
                Err(error) => return Err(error).doing("reading a packet from a device"),
            };
            let now_ns = self.devices.clock.now_ns();
            if now_ns >= self.spec.duration_ns {
                return Ok(taken);
            }
            let Some((flow, number, covers)) = self.identify(&room[..len], direction) else {
                self.devices.free.push(room);
                continue;
            };
            let (_, place) = self.devices.before(direction);
            self.devices.captured(place, now_ns, &room[..len], None)?;
            self.advance(now_ns)?;
            let packet = Datagram { room, len: len as u32, flow, number, covers };
            // A packet that goes one way comes from the end that the other way leads to.
            let from = self.network.path.end(flow, direction.other());
            self.network.offer(packet, from);
        }
        Ok(most)
    }

    /// Flow, number and sequence space of a packet, if it is to be carried.
    fn identify(&mut self, bytes: &[u8], direction: Direction) -> Option<(u32, u32, (u64, u64))> {
        let data_pkts = |flow| self.network.path.data_pkts(flow);
        if !self.planned {
            return carried(bytes).then(|| (0, data_pkts(0), (0, 0)));
        }
        let headers = headers::parse(bytes, bytes.len() as u32)?;
        let service = match direction {
            Direction::Forward => headers.destination_port,
            Direction::Reverse => headers.source_port,
        };
        let index = flow_of(service)?;
        let flow = self.devices.flows.get_mut(index)?;
        let index = index as u32;
        match headers.body {
            Body::Tcp { seq, syn, span, .. } if flow.kind == Kind::Tcp => {
                if self.network.path.end(index, direction) == End::Sender {
                    return Some((index, 0, (0, 0)));
                }
                let covers = flow.sequence.send(seq, syn, span);
                let number = covers.0.saturating_sub(1) / flow.mss_bytes;
                Some((index, number as u32, covers))
            }
            Body::Udp { number } if flow.kind == Kind::Udp => Some((index, number, (0, 0))),
            // Encrypted: they are numbered as they come.
            Body::Udp { .. } if flow.kind == Kind::Quic => Some((index, data_pkts(index), (0, 0))),
            _ => None,
        }
    }

    /// Carries out all that is due by `until_ns`.
    fn advance(&mut self, until_ns: Ns) -> Result<(), HostError> {
        self.network.advance_to(until_ns, &mut self.devices)
    }

    /// Tells of the bins that have ended, from bin number `from` on; how many have.
    pub(crate) fn tell(&self, from: usize, tell: Tell<'_>) -> usize {
        let path = &self.network.path;
        let ended = path.queues().map(|queue| queue.bins.len()).min().unwrap_or(0);
        for bin in from..ended {
            for (hop, queue) in path.queues().enumerate() {
                tell(Progress::Queue { hop, bin, row: queue.bins[bin] });
            }
            for (flow, of) in self.devices.flows.iter().enumerate() {
                let FlowBin { sent_pkts, lost_pkts } = of.record.bins[bin];
                let part = FlowSample { sent_pkts, lost_pkts, ..FlowSample::default() };
                tell(Progress::Flow { flow, bin, part });
            }
            tell(Progress::At((bin as u64 + 1) * self.spec.record.bin_ns));
        }
        ended
    }

    /// Returns the totals until now.
    pub(crate) fn passed(&self) -> Passed {
        let (path, devices) = (&self.network.path, &self.devices);
        let c = path.count(0, devices.flows[0].counters());
        let queues: Vec<_> = path.queues().collect();
        let (first, last) = (queues[0], queues[queues.len() - 1]);
        let delay = |q| first.delay.quantile_ns(q);
        Passed {
            time_ns: devices.clock.now_ns(),
            forward_pkts: c.sent_pkts,
            delivered_pkts: c.delivered_pkts,
            delivered_bytes: last.departed_bytes,
            queue_drops_pkts: c.queue_drops_pkts,
            random_losses_pkts: c.random_losses_pkts,
            reverse_pkts: path.ack_pkts(0).into(),
            reverse_losses_pkts: c.ack_losses_pkts,
            reverse_drops_pkts: c.ack_drops_pkts,
            queue_pkts: path.held_pkts(0),
            queue_max_pkts: first.max_pkts,
            queue_delay_ns: [delay(0.5), delay(0.95), delay(0.99), first.delay.max_ns()],
            lateness: Lateness::of(&devices.lateness),
        }
    }

    fn finish(mut self) -> Result<PathRecord, HostError> {
        self.network.close_last_bin(&mut self.devices, self.spec.bins());
        let passed = self.passed();
        let (path, Devices { flows, capture, lateness, .. }) = (self.network.path, self.devices);
        if let Some(capture) = capture {
            capture.finish()?;
        }
        let in_network = path.in_network_pkts();
        let flows = flows.into_iter().enumerate().map(|(index, flow)| {
            let counters = path.count(index, flow.counters());
            FlowPath {
                counters: FlowCounters { in_network_pkts: in_network[index], ..counters },
                retransmission_episodes: flow.sequence.episodes,
                ..flow.record
            }
        });
        Ok(PathRecord { flows: flows.collect(), queues: path.finish(), lateness, passed })
    }
}

impl Devices {
    /// Returns the device from which packets in `direction` come.
    fn before(&self, direction: Direction) -> (&File, Place) {
        match direction {
            Direction::Forward => (&self.start, Place::Sender),
            Direction::Reverse => (&self.end, Place::Receiver),
        }
    }

    fn captured(
        &mut self,
        place: Place,
        time_ns: Ns,
        bytes: &[u8],
        comment: Option<&'static str>,
    ) -> Result<(), HostError> {
        match &mut self.capture {
            Some(capture) => {
                let whole_bytes = bytes.len() as u32;
                capture.packet(place, time_ns, bytes, whole_bytes, comment)
            }
            None => Ok(()),
        }
    }
}

impl Endpoints<Network<Datagram, Infallible>> for Devices {
    type Packet = Datagram;
    /// There are none: the ends keep their own.
    type Timer = Infallible;
    type Error = HostError;

    /// Gives a packet to an end.
    fn arrive(
        &mut self,
        packet: Datagram,
        direction: Direction,
        network: &mut Network<Datagram, Infallible>,
    ) -> Result<(), HostError> {
        if network.path.end(packet.flow, direction) == End::Receiver {
            let flow = &mut self.flows[packet.flow as usize];
            if flow.arrived.take(packet.covers) {
                flow.record.counters.delivered_pkts += 1;
            } else {
                flow.record.counters.duplicate_pkts += 1;
            }
        }
        let now_ns = self.clock.now_ns();
        self.lateness.add(now_ns.saturating_sub(network.now_ns()));
        let (mut device, place) = self.before(direction.other());
        device.write_all(packet.bytes()).doing("writing a packet to a device")?;
        // The end may have answered at once.
        self.readable[direction.other() as usize] = true;
        self.captured(place, now_ns, packet.bytes(), None)?;
        self.free.push(packet.room);
        Ok(())
    }

    fn on_timer(
        &mut self,
        _: u32,
        timer: Infallible,
        _: &mut Network<Datagram, Infallible>,
    ) -> Result<(), HostError> {
        match timer {}
    }

    fn on_lost(&mut self, lost: LostPacket<Datagram>) -> Result<(), HostError> {
        let how = lost.how();
        self.captured(Place::Lost, lost.time_ns, lost.packet.bytes(), Some(how))?;
        self.free.push(lost.packet.room);
        Ok(())
    }

    fn close_bin(&mut self, _: Ns, path: &Path<Datagram>) {
        for (index, flow) in self.flows.iter_mut().enumerate() {
            let row = flow.last.close_bin(&path.count(index, flow.counters()));
            let FlowSample { sent_pkts, lost_pkts, .. } = row;
            flow.record.bins.push(FlowBin { sent_pkts, lost_pkts });
        }
    }
}

/// Time by which a packet may be late.
fn late_ns(spec: &RunSpec) -> Ns {
    let packet_bits =
        8 * spec.flows.iter().map(|flow| u64::from(flow.packet_bytes())).min().unwrap_or(0);
    let highest_bps = spec.path.hops.iter().map(|hop| hop.rate().highest_bps()).fold(1, u64::max);
    let gap_ns = packet_bits.saturating_mul(NS_PER_S) / highest_bps;
    (spec.path.rtt_range_ns().0 / LATE_SHARE).min(gap_ns / GAP_SHARE)
}

/// Asks for exact wake-ups of the present thread, and to run before others. Without the second
/// the path still works; how well, its lateness says.
fn urgent() -> Result<(), HostError> {
    set_timerslack(1).doing("setting the timer slack")?;
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: 0 is the calling thread; the parameters outlive the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &lowest) };
    Ok(())
}
