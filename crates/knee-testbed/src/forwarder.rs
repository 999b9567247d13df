//! The path: carries packets between the two hosts' devices in real time.
//!
//! The elements are the simulator's, in the simulator's order. Each event happens at the time that
//! its element gave, however late the thread is: a late packet delays itself, not those after it.

use crate::{
    Alarm, Clock, TestbedError, bins,
    error::Doing,
    packet::{Arrived, Body, Datagram, Headers, Sequence, parse},
    plan::{Plan, flow_of},
};
use knee_net::{DelayLine, Jitter, Link, Loss, NEVER, Random};
use knee_run::{
    DelayStats, FlowCounters, FlowKind, NS_PER_MS, NS_PER_US, Ns, PacketEvent, PacketLog, QueueBin,
    QueueRecord, RunSpec,
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

/// The thread sleeps until so long before the next event, then looks at the clock: waking up
/// takes that long.
const SPIN_NS: Ns = 15 * NS_PER_US;
/// The kernel takes a processor away for 50 ms from a real-time thread that uses more than 95 % of
/// a second. So about once a millisecond it makes sure to have slept a twelfth of the time.
const TURN_NS: Ns = NS_PER_MS;
const REST_SHARE: Ns = 12;
/// Longest sleep: how soon the failure of another thread is noticed.
const LONGEST_SLEEP_NS: Ns = 100 * NS_PER_MS;
/// Packets read from one device before the other has its turn.
const BATCH: usize = 32;

/// What the path saw.
pub(crate) struct PathRecord {
    pub flows: Vec<FlowPath>,
    pub queue: QueueRecord,
    pub lateness: DelayStats,
}

/// What the path saw of one flow.
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

struct Flow {
    record: FlowPath,
    bin: FlowBin,
    class: usize,
    access_jitter: Jitter,
    tcp: bool,
    mss_bytes: u64,
    forward: Random,
    reverse: Random,
    sequence: Sequence,
    arrived: Arrived,
}

/// Packets between the senders of one access delay and the shared path.
struct Class {
    access_delay_ns: Ns,
    /// Neither delay nor jitter on the way to the bottleneck: packets are there at once.
    direct: bool,
    to_bottleneck: DelayLine<Datagram>,
    to_sender: DelayLine<Datagram>,
}

/// In order of precedence at the same instant.
#[derive(Clone, Copy)]
enum Source {
    Bins,
    Departure,
    Arrival,
    ToBottleneck(usize),
    ToSender(usize),
}

pub(crate) struct Forwarder<'a> {
    spec: &'a RunSpec,
    clock: Clock,
    senders: File,
    receivers: File,
    flows: Vec<Flow>,
    link: Link<Datagram>,
    to_receivers: DelayLine<Datagram>,
    classes: Vec<Class>,
    next_bin_ns: Ns,
    loss_forward: Loss,
    loss_reverse: Loss,
    jitter_forward: Jitter,
    jitter_reverse: Jitter,
    jitter_random: Random,
    /// When the latest packet leaves the shared way back: none overtakes it.
    reverse_passed_ns: Ns,
    queue: QueueRecord,
    bin: QueueBin,
    lateness: DelayStats,
    room_bytes: usize,
    free: Vec<Vec<u8>>,
}

impl<'a> Forwarder<'a> {
    pub(crate) fn new(
        spec: &'a RunSpec,
        plan: &Plan,
        clock: Clock,
        senders: File,
        receivers: File,
    ) -> Self {
        let path = &spec.path;
        let mut classes = Vec::new();
        // Jitter is a flow's own: it must not hold another flow's packets back.
        let mut keys: Vec<(Ns, Option<usize>)> = Vec::new();
        let flows = spec.flows.iter().enumerate().map(|(index, flow)| {
            let key = (flow.access_delay_ns, (flow.access_jitter_ns > 0).then_some(index));
            let class = keys.iter().position(|k| *k == key).unwrap_or_else(|| {
                keys.push(key);
                classes.push(Class {
                    access_delay_ns: flow.access_delay_ns,
                    direct: flow.access_delay_ns == 0 && flow.access_jitter_ns == 0,
                    to_bottleneck: DelayLine::default(),
                    to_sender: DelayLine::default(),
                });
                classes.len() - 1
            });
            let stream = |component| Random::stream(spec.seed, component, index as u64);
            Flow {
                record: FlowPath::default(),
                bin: FlowBin::default(),
                class,
                access_jitter: Jitter::new(flow.access_jitter_ns),
                tcp: matches!(flow.kind, FlowKind::Tcp(_)),
                mss_bytes: plan.flows[index].tcp.as_ref().map_or(1, |t| u64::from(t.mss_bytes)),
                forward: stream("forward"),
                reverse: stream("reverse"),
                sequence: Sequence::default(),
                arrived: Arrived::default(),
            }
        });
        Self {
            spec,
            clock,
            senders,
            receivers,
            flows: flows.collect(),
            link: Link::new(path.rate_bps, path.queue),
            to_receivers: DelayLine::default(),
            classes,
            next_bin_ns: if spec.record.bin_ns > 0 { spec.record.bin_ns } else { NEVER },
            loss_forward: Loss::new(path.loss_forward),
            loss_reverse: Loss::new(path.loss_reverse),
            jitter_forward: Jitter::new(path.jitter_forward_ns),
            jitter_reverse: Jitter::new(path.jitter_reverse_ns),
            jitter_random: Random::stream(spec.seed, "path jitter", 0),
            reverse_passed_ns: 0,
            queue: QueueRecord::default(),
            bin: QueueBin::default(),
            lateness: DelayStats::default(),
            room_bytes: plan.mtu_bytes as usize,
            free: Vec::new(),
        }
    }

    pub(crate) fn run(mut self, alarm: &Alarm) -> Result<PathRecord, TestbedError> {
        urgent()?;
        self.clock.wait_for_zero();
        let end_ns = self.spec.duration_ns;
        let (mut turn_ns, mut slept_ns) = (0, 0);
        while !alarm.raised() {
            let now_ns = self.clock.now_ns();
            if now_ns >= turn_ns + TURN_NS {
                let rest_ns = ((now_ns - turn_ns) / REST_SHARE).saturating_sub(slept_ns);
                if rest_ns > 0 {
                    thread::sleep(Duration::from_nanos(rest_ns));
                }
                (turn_ns, slept_ns) = (self.clock.now_ns(), 0);
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
        Ok(self.finish())
    }

    /// Sleeps until a packet comes or an event is near; how long.
    fn sleep(&self, end_ns: Ns) -> Result<Ns, TestbedError> {
        let (due_ns, _) = self.next();
        let now_ns = self.clock.now_ns();
        let sleep_ns = due_ns.min(end_ns).saturating_sub(now_ns + SPIN_NS).min(LONGEST_SLEEP_NS);
        if sleep_ns == 0 {
            std::hint::spin_loop();
            return Ok(0);
        }
        let mut devices = [
            PollFd::new(self.senders.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.receivers.as_fd(), PollFlags::POLLIN),
        ];
        match ppoll(&mut devices, Some(TimeSpec::nanoseconds(sleep_ns as i64)), None) {
            Ok(_) | Err(Errno::EINTR) => Ok(self.clock.now_ns() - now_ns),
            Err(error) => Err(error).doing("waiting for packets"),
        }
    }

    /// Takes in what a host has sent; whether it was anything.
    fn take_in(&mut self, forward: bool) -> Result<bool, TestbedError> {
        for taken in 0..BATCH {
            let mut room = self.free.pop().unwrap_or_else(|| vec![0; self.room_bytes]);
            let device = if forward { &self.senders } else { &self.receivers };
            let len = match (&mut &*device).read(&mut room) {
                Ok(len) => len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.free.push(room);
                    return Ok(taken > 0);
                }
                Err(error) => return Err(error).doing("reading a packet from a device"),
            };
            let now_ns = self.clock.now_ns();
            if now_ns >= self.spec.duration_ns {
                return Ok(false);
            }
            self.advance(now_ns)?;
            match parse(&room[..len]).and_then(|headers| self.identify(&headers, forward)) {
                // ICMP and the like: not of the flows, and not on the path.
                None => self.free.push(room),
                Some((flow, number, covers)) => {
                    let packet =
                        Datagram { room, len: len as u32, flow: flow as u32, number, covers };
                    if forward {
                        self.send(now_ns, packet);
                    } else {
                        self.send_back(now_ns, packet);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Flow, number and sequence space of a packet, if a flow of the run sent it.
    fn identify(&mut self, headers: &Headers, forward: bool) -> Option<(usize, u32, (u64, u64))> {
        let service = if forward { headers.destination_port } else { headers.source_port };
        let index = flow_of(service)?;
        let flow = self.flows.get_mut(index)?;
        match headers.body {
            Body::Tcp { seq, syn, span } if flow.tcp => {
                if !forward {
                    return Some((index, 0, (0, 0)));
                }
                let covers = flow.sequence.send(seq, syn, span);
                let number = covers.0.saturating_sub(1) / flow.mss_bytes;
                Some((index, number as u32, covers))
            }
            Body::Udp { number } if !flow.tcp => Some((index, number, (0, 0))),
            _ => None,
        }
    }

    /// A sender's packet starts on its way.
    fn send(&mut self, now_ns: Ns, packet: Datagram) {
        let flow = &mut self.flows[packet.flow as usize];
        flow.record.counters.sent_pkts += 1;
        flow.bin.sent_pkts += 1;
        let class = &mut self.classes[flow.class];
        if class.direct {
            return self.offer(now_ns, packet);
        }
        let delay_ns = class.access_delay_ns + flow.access_jitter.draw_ns(&mut flow.forward);
        class.to_bottleneck.push(now_ns, delay_ns, packet);
    }

    /// A receiver's packet starts on its way.
    fn send_back(&mut self, now_ns: Ns, packet: Datagram) {
        let flow = &mut self.flows[packet.flow as usize];
        if self.loss_reverse.loses(&mut flow.reverse) {
            flow.record.counters.ack_losses_pkts += 1;
            self.free.push(packet.room);
            return;
        }
        let delay_ns =
            self.spec.path.delay_reverse_ns + self.jitter_reverse.draw_ns(&mut flow.reverse);
        self.reverse_passed_ns = self.reverse_passed_ns.max(now_ns + delay_ns);
        let class = &mut self.classes[flow.class];
        class.to_sender.push(self.reverse_passed_ns, class.access_delay_ns, packet);
    }

    /// The next event.
    fn next(&self) -> (Ns, Source) {
        let mut first = (self.next_bin_ns, Source::Bins);
        let mut consider = |due_ns: Ns, source| {
            if due_ns < first.0 {
                first = (due_ns, source);
            }
        };
        consider(self.link.next_ns(), Source::Departure);
        consider(self.to_receivers.next_ns(), Source::Arrival);
        for (index, class) in self.classes.iter().enumerate() {
            consider(class.to_bottleneck.next_ns(), Source::ToBottleneck(index));
            consider(class.to_sender.next_ns(), Source::ToSender(index));
        }
        first
    }

    /// Lets all happen that is due by `until_ns`.
    fn advance(&mut self, until_ns: Ns) -> Result<(), TestbedError> {
        loop {
            let (due_ns, source) = self.next();
            if due_ns > until_ns {
                return Ok(());
            }
            match source {
                Source::Bins => self.close_bin(),
                Source::Departure => self.depart(due_ns),
                Source::Arrival => {
                    if let Some(packet) = self.to_receivers.pop(due_ns) {
                        self.arrive(packet.flow, packet.covers);
                        self.deliver(due_ns, packet, true)?;
                    }
                }
                Source::ToBottleneck(class) => {
                    if let Some(packet) = self.classes[class].to_bottleneck.pop(due_ns) {
                        self.offer(due_ns, packet);
                    }
                }
                Source::ToSender(class) => {
                    if let Some(packet) = self.classes[class].to_sender.pop(due_ns) {
                        self.deliver(due_ns, packet, false)?;
                    }
                }
            }
        }
    }

    /// A packet reaches the bottleneck.
    fn offer(&mut self, now_ns: Ns, packet: Datagram) {
        let flow = &mut self.flows[packet.flow as usize];
        if self.loss_forward.loses(&mut flow.forward) {
            flow.record.counters.random_losses_pkts += 1;
            flow.bin.lost_pkts += 1;
            self.note(now_ns, &packet, PacketEvent::Lost);
            self.free.push(packet.room);
            return;
        }
        let label = label(&packet);
        match self.link.enqueue(now_ns, packet) {
            Ok(()) => {
                self.queue.max_pkts = self.queue.max_pkts.max(self.link.held_pkts());
                self.note(now_ns, &label, PacketEvent::Enqueued);
            }
            Err(packet) => {
                flow.record.counters.queue_drops_pkts += 1;
                flow.bin.lost_pkts += 1;
                self.queue.dropped_pkts += 1;
                self.bin.dropped_pkts += 1;
                self.note(now_ns, &packet, PacketEvent::Dropped);
                self.free.push(packet.room);
            }
        }
    }

    /// A packet leaves the bottleneck.
    fn depart(&mut self, due_ns: Ns) {
        let Some(departed) = self.link.dequeue(due_ns) else { return };
        self.lateness.add(self.clock.now_ns().saturating_sub(due_ns));
        let (packet, waited_ns) = (departed.packet, departed.waited_ns);
        self.queue.departed_pkts += 1;
        self.queue.departed_bytes += u64::from(packet.len);
        if self.spec.record.bin_ns > 0 {
            self.queue.delay.add(waited_ns);
            self.bin.departed_pkts += 1;
            self.bin.departed_bytes += u64::from(packet.len);
            self.bin.delay_sum_ns += waited_ns;
            self.bin.delay_max_ns = self.bin.delay_max_ns.max(waited_ns);
        }
        self.note(due_ns, &packet, PacketEvent::Departed);
        let jitter_ns = self.jitter_forward.draw_ns(&mut self.jitter_random);
        self.to_receivers.push(due_ns, self.spec.path.delay_forward_ns + jitter_ns, packet);
    }

    /// Counts a packet that reaches its receiver.
    fn arrive(&mut self, flow: u32, covers: (u64, u64)) {
        let flow = &mut self.flows[flow as usize];
        if flow.arrived.take(covers) {
            flow.record.counters.delivered_pkts += 1;
        } else {
            flow.record.counters.duplicate_pkts += 1;
        }
    }

    /// Gives a packet to a host.
    fn deliver(&mut self, due_ns: Ns, packet: Datagram, forward: bool) -> Result<(), TestbedError> {
        self.lateness.add(self.clock.now_ns().saturating_sub(due_ns));
        let device = if forward { &self.receivers } else { &self.senders };
        let bytes = &packet.room[..packet.len as usize];
        (&mut &*device).write_all(bytes).doing("writing a packet to a device")?;
        self.free.push(packet.room);
        Ok(())
    }

    fn note(&mut self, time_ns: Ns, packet: &Datagram, event: PacketEvent) {
        if self.spec.record.queue_log {
            self.queue.log.push(PacketLog {
                time_ns,
                flow: packet.flow,
                number: packet.number,
                bytes: packet.len,
                held_pkts: self.link.held_pkts(),
                event,
            });
        }
    }

    /// Ends a bin of the time series.
    fn close_bin(&mut self) {
        for flow in &mut self.flows {
            flow.record.bins.push(std::mem::take(&mut flow.bin));
        }
        self.bin.held_pkts = self.link.held_pkts();
        self.queue.bins.push(std::mem::take(&mut self.bin));
        self.next_bin_ns += self.spec.record.bin_ns;
    }

    fn finish(mut self) -> PathRecord {
        if self.queue.bins.len() < bins(self.spec) {
            self.close_bin();
        }
        let held = self.link.iter().chain(self.to_receivers.iter());
        for packet in held.chain(self.classes.iter().flat_map(|c| c.to_bottleneck.iter())) {
            self.flows[packet.flow as usize].record.counters.in_network_pkts += 1;
        }
        let flows = self.flows.into_iter().map(|mut flow| {
            flow.record.counters.retransmitted_pkts = flow.sequence.retransmitted_pkts;
            flow.record.retransmission_episodes = flow.sequence.episodes;
            flow.record
        });
        PathRecord { flows: flows.collect(), queue: self.queue, lateness: self.lateness }
    }
}

/// What the log needs of a packet that the queue is to own.
fn label(packet: &Datagram) -> Datagram {
    Datagram { room: Vec::new(), ..*packet }
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
