//! A TCP connection of the kernel, as the path and Knee's applications see it.

use crate::{
    capture::Capture,
    kernel::{self, Called, KernelPacket, flow_state},
    message::Message,
    output::Output,
    skb::Skb,
};
use knee_cc::{Call, CallRecord, OBSERVE_N, State};
use knee_model::{
    DelayStats, FlowCounters, FlowRecord, FlowSample, HostError, HostErrorKind, NS_PER_US, Ns,
    RunSpec, TcpSpec, Transfer, Unfinished, Workload, Write,
};
use knee_net::{
    Arrived, Connection, Direction, Ecn, End, FlowContext, LostPacket, Sequence,
    headers::{self, Body, Headers},
};
use std::{convert::Infallible, mem};

/// Calls that are sent together.
const CALLS: usize = 256;

/// A connection.
pub(crate) struct Tcp {
    flow: u32,
    /// The end at which the sender is.
    sender: u32,
    mss_bytes: u64,
    workload: Workload,
    /// The connection keeps RTT samples (`keep`) and calls (`trace`).
    keep: bool,
    trace: bool,
    sequence: Sequence,
    arrived: Arrived,
    counters: FlowCounters,
    /// Times at which each transfer was written and was complete.
    written_ns: Vec<Ns>,
    completed_ns: Vec<Ns>,
    completed_bytes: u64,
    rtt: DelayStats,
    observed: [u32; OBSERVE_N],
    calls: Vec<CallRecord>,
}

impl Tcp {
    /// The connection of flow `index`.
    pub(crate) fn new(spec: &RunSpec, index: usize, tcp: &TcpSpec) -> Self {
        Self {
            flow: index as u32,
            sender: spec.flows[index].route.reverse.into(),
            mss_bytes: tcp.options.mss_bytes.into(),
            workload: tcp.workload.clone(),
            keep: spec.record.bin_ns > 0,
            trace: spec.record.trace,
            sequence: Sequence::default(),
            arrived: Arrived::default(),
            counters: FlowCounters::default(),
            written_ns: Vec::new(),
            completed_ns: Vec::new(),
            completed_bytes: 0,
            rtt: DelayStats::default(),
            observed: [0; OBSERVE_N],
            calls: Vec::new(),
        }
    }

    /// The kernel sends `packet` from the end `from`.
    pub(crate) fn send(
        &mut self,
        packet: &KernelPacket,
        from: u32,
        headers: &Headers,
        at: &mut FlowContext<'_, Self>,
    ) {
        let (from, end) = (if from == self.sender { End::Sender } else { End::Receiver }, from);
        let (number, covers) = match (from, headers.body) {
            (End::Sender, Body::Tcp { seq, syn, span, .. }) => {
                let covers = self.sequence.send(seq, syn, span);
                ((covers.0.saturating_sub(1) / self.mss_bytes) as u32, covers)
            }
            _ => (0, (0, 0)),
        };
        let ecn = headers::ecn(packet.start());
        let skb =
            Skb { skb: packet.skb, bytes: packet.bytes, flow: self.flow, number, covers, ecn };
        at.shared.note(&skb, at.now_ns(), end, None);
        at.send(skb, from);
    }

    /// The receiver has read `bytes`.
    pub(crate) fn received(&mut self, now_ns: Ns, bytes: u32) {
        self.counters.delivered_bytes += u64::from(bytes);
        while let Some(Write { bytes, .. }) = self.workload.write(self.completed_ns.len())
            && self.completed_bytes + bytes <= self.counters.delivered_bytes
        {
            self.completed_bytes += bytes;
            self.completed_ns.push(now_ns);
        }
    }

    /// The algorithm was called.
    pub(crate) fn called(
        &mut self,
        call: &Called,
        rtt_call: Call,
        output: &mut Output,
    ) -> Result<(), HostError> {
        let Some(kind) = Call::ALL.get(call.call as usize).copied() else { return Ok(()) };
        self.counters.count(kind, &call.after, call.result_pkts);
        self.counters.undos += u64::from(kind == Call::Undo);
        self.observed = call.observed;
        if self.keep
            && kind == rtt_call
            && let Ok(us) = u64::try_from(call.ack.rtt_us)
        {
            self.rtt.add(us * NS_PER_US);
        }
        if !self.trace {
            return Ok(());
        }
        self.calls.push(CallRecord {
            call: kind,
            event: call.event,
            ack: call.ack,
            before: call.before,
            after: call.after,
            result: call.result_pkts,
            observed: call.observed,
            state: State::from(call.state),
        });
        if self.calls.len() == CALLS { self.send_calls(output) } else { Ok(()) }
    }

    /// Sends the calls that were not sent yet.
    pub(crate) fn send_calls(&mut self, output: &mut Output) -> Result<(), HostError> {
        if self.calls.is_empty() {
            return Ok(());
        }
        output.send(&Message::Calls(self.flow, mem::take(&mut self.calls)))
    }
}

impl Connection for Tcp {
    type Packet = Skb;
    /// The kernel has its own.
    type Timer = Infallible;
    type Shared = Capture;
    type Error = HostError;

    fn udp(flow: u32, number: u32, bytes: u32) -> Skb {
        Skb { bytes, flow, number, ..Skb::default() }
    }

    fn start(&mut self, _: &mut FlowContext<'_, Self>) -> Result<(), HostError> {
        kernel::flow_start(self.flow);
        Ok(())
    }

    fn write(
        &mut self,
        bytes: Option<u64>,
        at: &mut FlowContext<'_, Self>,
    ) -> Result<(), HostError> {
        if bytes.is_some() {
            self.written_ns.push(at.now_ns());
        }
        kernel::flow_write(self.flow, bytes);
        Ok(())
    }

    fn stop(&mut self, _: &mut FlowContext<'_, Self>) -> Result<(), HostError> {
        self.counters.timeouts = flow_state(self.flow).timeouts.into();
        kernel::flow_stop(self.flow);
        Ok(())
    }

    fn arrive(
        &mut self,
        packet: Skb,
        direction: Direction,
        at: &mut FlowContext<'_, Self>,
    ) -> Result<(), HostError> {
        let end = match at.end(direction) {
            End::Sender => self.sender,
            End::Receiver => {
                match self.arrived.take(packet.covers) {
                    true => self.counters.delivered_pkts += 1,
                    false => self.counters.duplicate_pkts += 1,
                }
                1 - self.sender
            }
        };
        at.shared.note(&packet, at.now_ns(), end, None);
        kernel::deliver(packet.skb, end, packet.ecn == Ecn::Marked);
        Ok(())
    }

    fn on_timer(
        &mut self,
        timer: Infallible,
        _: &mut FlowContext<'_, Self>,
    ) -> Result<(), HostError> {
        match timer {}
    }

    fn on_lost(lost: LostPacket<Skb>, capture: &mut Capture) {
        if !lost.packet.skb.is_null() {
            capture.note(&lost.packet, lost.time_ns, 0, Some(lost.how()));
            kernel::drop_packet(lost.packet.skb);
        }
    }

    fn counters(&self) -> FlowCounters {
        FlowCounters { retransmitted_pkts: self.sequence.retransmitted_pkts, ..self.counters }
    }

    fn sample(&self, row: FlowSample) -> FlowSample {
        let state = flow_state(self.flow);
        if state.connected == 0 {
            return row;
        }
        FlowSample {
            cwnd_pkts: state.cwnd_pkts,
            ssthresh_pkts: state.ssthresh_pkts,
            inflight_pkts: state.inflight_pkts,
            srtt_us: state.srtt_us,
            observed: self.observed,
            ..row
        }
    }

    fn is_idle(&self) -> bool {
        flow_state(self.flow).idle != 0
    }

    fn finish(self, record: FlowRecord) -> Result<FlowRecord, HostError> {
        let state = flow_state(self.flow);
        if state.connected != 0 && u64::from(state.mss_bytes) != self.mss_bytes {
            let why = format!(
                "flow {}: the connection used segments of {} bytes instead of {}",
                record.name, state.mss_bytes, self.mss_bytes
            );
            return Err(HostError::new(HostErrorKind::Broken, why));
        }
        let timeouts = self.counters.timeouts.max(state.timeouts.into());
        let bytes = |number| self.workload.write(number).map_or(0, |write| write.bytes);
        let written = self.written_ns.iter().copied().enumerate();
        let transfers =
            written.clone().zip(&self.completed_ns).map(|((number, start_ns), end_ns)| Transfer {
                start_ns,
                end_ns: *end_ns,
                bytes: bytes(number),
            });
        let unfinished = written
            .skip(self.completed_ns.len())
            .map(|(number, start_ns)| Unfinished { start_ns, bytes: bytes(number) });
        Ok(FlowRecord {
            counters: FlowCounters {
                timeouts,
                // A timeout too starts with a retransmission.
                loss_events: self.sequence.episodes.saturating_sub(timeouts),
                ..record.counters
            },
            transfers: transfers.collect(),
            unfinished: unfinished.collect(),
            rtt: self.rtt,
            ..record
        })
    }
}
