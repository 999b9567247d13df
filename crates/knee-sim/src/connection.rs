//! Both ends of a TCP connection, and the packets between them.

use crate::{
    packet::{Ack, Carried, Data, NONE, Packet, Sack, Store},
    receiver::{Receiver, Reply},
    sender::{Sender, Transmit},
};
use knee_cc::Params;
use knee_model::{FlowCounters, FlowRecord, FlowSample, Ns, Random, RunSpec, TcpOptions};
use knee_net::{Connection, Direction, Ecn, End, FlowContext, LazyTimer, LostPacket};
use std::convert::Infallible;

/// Timers of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Timer {
    Retransmission,
    DelayedAck,
    Pace,
}

pub(crate) struct Tcp {
    pub(crate) sender: Sender,
    receiver: Receiver,
    mss_bytes: u32,
    packet_bytes: u16,
    ack_bytes: u16,
    retransmission: LazyTimer,
    delayed_ack: LazyTimer,
    pace: LazyTimer,
}

impl Tcp {
    /// The connection of a flow that starts at `start_ns`; `keep`: its RTT samples are kept.
    pub(crate) fn new(
        spec: &RunSpec,
        params: Params,
        options: &TcpOptions,
        start_ns: Ns,
        random: Random,
        keep: bool,
    ) -> Self {
        Self {
            sender: Sender::new(params, options, start_ns, random, keep, spec.record.trace),
            receiver: Receiver::new(options),
            mss_bytes: options.mss_bytes,
            packet_bytes: (options.mss_bytes + options.header_bytes) as u16,
            ack_bytes: options.header_bytes as u16,
            retransmission: LazyTimer::default(),
            delayed_ack: LazyTimer::default(),
            pace: LazyTimer::default(),
        }
    }

    /// Lets the sender act, then sets its timers.
    #[inline(always)]
    fn with_sender(
        &mut self,
        at: &mut FlowContext<'_, Self>,
        act: impl FnOnce(&mut Sender, Ns, &mut Out<'_, '_>),
    ) {
        let now_ns = at.now_ns();
        act(&mut self.sender, now_ns, &mut Out { bytes: self.packet_bytes, at });
        self.arm(at);
    }

    /// Arms the sender's timers.
    #[inline(always)]
    fn arm(&mut self, at: &mut FlowContext<'_, Self>) {
        at.arm(&mut self.retransmission, self.sender.timer_due_ns, Timer::Retransmission);
        at.arm(&mut self.pace, self.sender.pace_due_ns, Timer::Pace);
    }

    /// A segment reaches the receiver.
    #[inline(always)]
    fn receive(&mut self, data: Data, at: &mut FlowContext<'_, Self>) {
        if data.ecn != Ecn::NotCapable {
            self.receiver.heed(data.number, data.ecn, data.cwr);
        }
        match self.receiver.arrive(at.now_ns(), data.number) {
            Reply::Now { duplicate } => {
                let ack = self.ack(duplicate, at.flow, at.shared);
                at.send(ack, End::Receiver);
            }
            Reply::Later => {
                at.arm(&mut self.delayed_ack, self.receiver.delack_due_ns, Timer::DelayedAck);
            }
        }
    }

    /// The receiver's ACK; `duplicate`: the segment that arrived again, or [`NONE`].
    #[inline(always)]
    fn ack(&mut self, duplicate: u32, flow: u32, shared: &mut Store<Sack>) -> Packet {
        self.receiver.acknowledged();
        let sack = match duplicate == NONE && self.receiver.misses_nothing() {
            true => NONE,
            false => shared.put(Sack { blocks: self.receiver.blocks(), duplicate }),
        };
        Packet::from(Ack {
            flow,
            cumulative: self.receiver.next,
            sack,
            bytes: self.ack_bytes,
            echo: self.receiver.echo,
        })
    }

    /// An ACK reaches the sender.
    #[inline(always)]
    fn on_ack(&mut self, ack: Ack, at: &mut FlowContext<'_, Self>) {
        let reports = ack.sack != NONE;
        let sack = if reports { at.shared.take(ack.sack) } else { Sack::NOTHING };
        self.with_sender(at, |sender, now_ns, out| {
            sender.on_ack(now_ns, ack, reports.then_some(&sack), out);
        });
    }
}

/// Sends the segments of a flow.
struct Out<'a, 'b> {
    bytes: u16,
    at: &'a mut FlowContext<'b, Tcp>,
}

impl Transmit for Out<'_, '_> {
    #[inline(always)]
    fn transmit(&mut self, number: u32, ecn: Ecn, cwr: bool) {
        let data = Data { flow: self.at.flow, number, bytes: self.bytes, ecn, cwr };
        self.at.send(data.into(), End::Sender);
    }
}

impl Connection for Tcp {
    type Packet = Packet;
    type Timer = Timer;
    /// SACK blocks and duplicates that ACKs in flight report.
    type Shared = Store<Sack>;
    type Error = Infallible;

    fn udp(flow: u32, number: u32, bytes: u32) -> Packet {
        let ecn = Ecn::NotCapable;
        Data { flow, number, bytes: bytes as u16, ecn, cwr: false }.into()
    }

    fn write(
        &mut self,
        bytes: Option<u64>,
        at: &mut FlowContext<'_, Self>,
    ) -> Result<(), Infallible> {
        let segments = bytes.map(|bytes| {
            let mss_bytes = u64::from(self.mss_bytes);
            let segments = bytes.div_ceil(mss_bytes) as u32;
            let short_bytes = (u64::from(segments) * mss_bytes - bytes) as u32;
            let end = self.sender.tcb.written.saturating_add(segments);
            self.receiver.expect(end, short_bytes, at.now_ns(), bytes);
            segments
        });
        self.with_sender(at, |sender, now_ns, out| sender.write(now_ns, segments, out));
        Ok(())
    }

    fn stop(&mut self, _: &mut FlowContext<'_, Self>) -> Result<(), Infallible> {
        self.sender.stop();
        Ok(())
    }

    #[inline(always)]
    fn arrive(
        &mut self,
        packet: Packet,
        _: Direction,
        at: &mut FlowContext<'_, Self>,
    ) -> Result<(), Infallible> {
        match packet.carried() {
            Carried::Data(data) => self.receive(data, at),
            Carried::Ack(ack) => self.on_ack(ack, at),
        }
        Ok(())
    }

    fn on_timer(&mut self, timer: Timer, at: &mut FlowContext<'_, Self>) -> Result<(), Infallible> {
        let (lazy, due_ns) = match timer {
            Timer::Retransmission => (&mut self.retransmission, self.sender.timer_due_ns),
            Timer::DelayedAck => (&mut self.delayed_ack, self.receiver.delack_due_ns),
            Timer::Pace => (&mut self.pace, self.sender.pace_due_ns),
        };
        if !at.came_up(lazy, due_ns, timer) {
            return Ok(());
        }
        match timer {
            Timer::Retransmission => {
                self.with_sender(at, |sender, now_ns, out| sender.on_timer(now_ns, out));
            }
            Timer::DelayedAck => {
                let ack = self.ack(NONE, at.flow, at.shared);
                at.send(ack, End::Receiver);
            }
            Timer::Pace => self.with_sender(at, |sender, now_ns, out| sender.on_pace(now_ns, out)),
        }
        Ok(())
    }

    fn on_lost(lost: LostPacket<Packet>, sacks: &mut Store<Sack>) {
        if let Carried::Ack(ack) = lost.packet.carried()
            && ack.sack != NONE
        {
            sacks.take(ack.sack);
        }
    }

    fn counters(&self) -> FlowCounters {
        FlowCounters {
            delivered_pkts: self.receiver.delivered_pkts,
            delivered_bytes: self.receiver.delivered_bytes,
            duplicate_pkts: self.receiver.duplicate_pkts,
            ..self.sender.tcb.counters.into()
        }
    }

    fn sample(&self, row: FlowSample) -> FlowSample {
        let tcb = &self.sender.tcb;
        FlowSample {
            cwnd_pkts: tcb.conn.cwnd_pkts,
            ssthresh_pkts: tcb.conn.ssthresh_pkts,
            inflight_pkts: self.sender.inflight_pkts(),
            srtt_us: tcb.conn.srtt_us,
            observed: tcb.algorithm.controller.observe(),
            ..row
        }
    }

    fn is_idle(&self) -> bool {
        self.sender.is_idle()
    }

    fn finish(mut self, record: FlowRecord) -> Result<FlowRecord, Infallible> {
        Ok(FlowRecord {
            unfinished: self.receiver.unfinished(),
            transfers: self.receiver.take_completed(),
            rtt: *self.sender.rtt_stats.unwrap_or_default(),
            trace: *self.sender.tcb.algorithm.trace.unwrap_or_default(),
            ..record
        })
    }
}
