//! The record of a run: everything measured.

use crate::{DelayStats, FlowSpec, Ns, RunSpec, sysctl};
use knee_cc::{
    Call, CallRecord, Conn, NOTE_DELAY_BACKOFF, NOTE_LOSS_TOLERATED, NOTE_REGION_B, NOTE_ROUND,
    OBSERVE_N,
};
use serde::{Deserialize, Serialize};

/// Everything measured in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Seed that was used.
    pub seed: u64,
    /// Length of the run.
    pub duration_ns: Ns,
    /// Interval of the time series; 0: none were kept.
    pub bin_ns: Ns,
    /// Flows, in the order of the specification.
    pub flows: Vec<FlowRecord>,
    /// Queues of the hops, in order.
    pub queues: Vec<QueueRecord>,
    /// The queue of the reverse link, without a log; none where no flow sends its data there.
    pub reverse_queue: Option<QueueRecord>,
    /// Parts of the specification that the host only approximated, in words.
    pub approximations: Vec<String>,
    /// Quality of a run in real time; none for a run in virtual time.
    pub real_time: Option<RealTime>,
}

impl RunRecord {
    /// The record of a run of `spec` in virtual time on a host that does everything except set sysctls.
    pub fn new(spec: &RunSpec, mut flows: Vec<FlowRecord>, mut queues: PathQueues) -> Self {
        // Hundreds are kept at a time: none takes more memory than it needs.
        flows.iter_mut().for_each(FlowRecord::shrink);
        queues.hops.iter_mut().chain(&mut queues.reverse).for_each(QueueRecord::shrink);
        Self {
            seed: spec.seed,
            duration_ns: spec.duration_ns,
            bin_ns: spec.record.bin_ns,
            flows,
            queues: queues.hops,
            reverse_queue: queues.reverse,
            approximations: sysctl::unset(&spec.sysctls).into_iter().collect(),
            real_time: None,
        }
    }

    /// Names the observed values of the flows of `spec`, whose record this is: a record that was
    /// written and read has lost them.
    pub fn name_observed(&mut self, spec: &RunSpec) {
        for (flow, of) in self.flows.iter_mut().zip(&spec.flows) {
            flow.observes = of.kind.observes();
        }
    }
}

/// Records of the queues of a path.
#[derive(Debug, Default)]
pub struct PathQueues {
    /// Queues of the hops, in order.
    pub hops: Vec<QueueRecord>,
    /// Queue of the reverse link; none where no flow sends its data there.
    pub reverse: Option<QueueRecord>,
}

/// Quality of a run in real time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RealTime {
    /// Delays of packets when leaving the bottleneck or the path.
    pub lateness: Lateness,
    /// Knee's algorithms that were loaded into the kernel, and the number of instructions that its
    /// verifier examined: those of the largest program.
    pub verified: Vec<(String, u32)>,
}

/// Delays of packets when leaving the bottleneck or the path, relative to the times that the network elements
/// gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// Departures and deliveries measured.
    pub count: u64,
    /// Mean.
    pub mean_ns: Ns,
    /// 99th percentile.
    pub p99_ns: Ns,
    /// 99.9th percentile.
    pub p999_ns: Ns,
    /// Largest.
    pub max_ns: Ns,
}

impl Lateness {
    /// Summary of `stats`.
    pub fn of(stats: &DelayStats) -> Self {
        Self {
            count: stats.count(),
            mean_ns: stats.mean_ns() as Ns,
            p99_ns: stats.quantile_ns(0.99),
            p999_ns: stats.quantile_ns(0.999),
            max_ns: stats.max_ns(),
        }
    }

    /// Returns whether a run on a path of this round-trip time is to be published. At most one packet in a
    /// thousand was late by more than a twentieth of it. None was late by more than the whole, which a sender
    /// could take for a loss.
    pub fn acceptable(&self, rtt_ns: Ns) -> bool {
        self.p999_ns <= rtt_ns / 20 && self.max_ns <= rtt_ns
    }
}

/// Record of one flow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowRecord {
    /// Name, from the scenario.
    pub name: String,
    /// Name of the source that it was drawn from; empty if the scenario names the flow itself.
    pub source: String,
    /// Algorithm, or `udp`, `probe`.
    pub kind: String,
    /// Start time, jitter included.
    pub start_ns: Ns,
    /// Stop time; the end of the run if none was given.
    pub stop_ns: Ns,
    /// Names of the observed values in [`FlowSample::observed`]; unused ones empty. The
    /// specification has them too: see [`RunRecord::name_observed`].
    #[serde(skip)]
    pub observes: [&'static str; OBSERVE_N],
    /// Totals.
    pub counters: FlowCounters,
    /// Bin of the first row of the time series: 0, but for flows drawn from a source.
    pub first_bin: u32,
    /// Time series, one row per bin: bin `i` covers `[i·bin, (i+1)·bin)`, with state at its end. A flow drawn
    /// from a source has only the bins from its start to its last traffic.
    pub samples: Vec<FlowSample>,
    /// Transfers that were completed.
    pub transfers: Vec<Transfer>,
    /// Transfers that were written, but not complete when the run ended.
    pub unfinished: Vec<Unfinished>,
    /// Probes: time of sending and one-way delay of each that arrived.
    pub probe_delays: Vec<(Ns, Ns)>,
    /// One-way delay of every packet that arrived (probes only).
    pub one_way_delay: DelayStats,
    /// RTT samples that the algorithm was given; empty if no time series was kept, and of flows drawn
    /// from a source in the simulator.
    pub rtt: DelayStats,
    /// Calls of the algorithm, if traced. Kept as a table of its own, not with the rest.
    #[serde(skip)]
    pub trace: Vec<CallRecord>,
}

impl FlowRecord {
    /// The record of `flow`, started at `start_ns` in a run of `duration_ns`, before anything is measured.
    pub fn of(flow: &FlowSpec, start_ns: Ns, duration_ns: Ns) -> Self {
        Self {
            name: flow.name.clone(),
            kind: flow.kind.name(),
            observes: flow.kind.observes(),
            source: flow.drawn.as_ref().map_or_else(String::new, |d| d.source.to_string()),
            start_ns,
            stop_ns: flow.stop_ns.map_or(duration_ns, |stop_ns| stop_ns.min(duration_ns)),
            ..Self::default()
        }
    }

    /// The row of bin `bin` in the time series.
    pub fn sample(&self, bin: usize) -> Option<&FlowSample> {
        self.samples.get(bin.checked_sub(self.first_bin as usize)?)
    }

    /// Removes the rows before the start and after the last traffic from the time series of a flow drawn from
    /// a source. Thousands of flows would fill the memory with them.
    pub fn without_idle_rows(mut self, bin_ns: Ns) -> Self {
        if self.source.is_empty() {
            return self;
        }
        let start_bin = self.start_ns.checked_div(bin_ns).unwrap_or(0);
        let before = start_bin.saturating_sub(self.first_bin.into());
        let before = before.min(self.samples.len() as u64);
        self.samples.drain(..before as usize);
        self.first_bin += before as u32;
        let has_traffic =
            |s: &FlowSample| s.delivered_bytes > 0 || s.sent_pkts > 0 || s.lost_pkts > 0;
        let rows = self.samples.iter().rposition(has_traffic).map_or(0, |last| last + 1);
        self.samples.truncate(rows);
        self
    }

    fn shrink(&mut self) {
        self.samples.shrink_to_fit();
        self.transfers.shrink_to_fit();
        self.rtt.shrink_to_fit();
        self.one_way_delay.shrink_to_fit();
    }
}

/// Totals of one flow. Packets unless a name says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowCounters {
    /// Sent, retransmissions included.
    pub sent_pkts: u64,
    /// Retransmissions among the sent packets.
    pub retransmitted_pkts: u64,
    /// Arrived at the receiver for the first time.
    pub delivered_pkts: u64,
    /// Payload handed to the receiving application in order, exactly once; of UDP, whole packets.
    pub delivered_bytes: u64,
    /// Arrived again.
    pub duplicate_pkts: u64,
    /// Dropped by a queue on the way to the receiver: it was full, or its discipline chose them.
    pub queue_drops_pkts: u64,
    /// Left the last bottleneck with a congestion mark (ECN).
    pub marked_pkts: u64,
    /// Lost at random towards the receiver.
    pub random_losses_pkts: u64,
    /// Still on their way to the receiver when the run ended.
    pub in_network_pkts: u64,
    /// ACKs lost at random on their way.
    pub ack_losses_pkts: u64,
    /// ACKs dropped by a queue on their way: that of the reverse link, if there is one; of a flow in
    /// the reverse direction, those of the hops.
    pub ack_drops_pkts: u64,
    /// Reductions other than for a delay or a timeout: fast recoveries, and reductions for congestion
    /// marks. One that becomes the other counts once.
    pub loss_events: u64,
    /// Loss events for congestion marks (ECN). Only the simulator counts them; elsewhere 0.
    pub ecn_reductions: u64,
    /// Loss events that left the window as it was.
    pub losses_tolerated: u64,
    /// Losses (of either kind) after which the threshold lay above the present window.
    pub losses_raised_window: u64,
    /// Losses (of either kind) that the algorithm judged to be in region B.
    pub losses_region_b: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Reductions taken back because the retransmissions were unnecessary.
    pub undos: u64,
    /// Delay backoffs in region A.
    pub delay_backoffs_region_a: u64,
    /// Delay backoffs in region B.
    pub delay_backoffs_region_b: u64,
    /// Rounds whose delay lay in region A (or below).
    pub rounds_region_a: u64,
    /// Rounds whose delay lay in region B.
    pub rounds_region_b: u64,
}

impl FlowCounters {
    /// Counts the notes of the algorithm in a call; `after` and `result` are the call's results.
    #[inline]
    pub fn count(&mut self, call: Call, after: &Conn, result: u32) {
        let region_b = after.notes & NOTE_REGION_B != 0;
        match call {
            // Profile RATE knows no on_rtt, and its rounds no backoffs.
            Call::OnRtt | Call::OnAck if after.notes & NOTE_ROUND != 0 => {
                self.rounds_region_a += u64::from(!region_b);
                self.rounds_region_b += u64::from(region_b);
            }
            Call::OnAck if after.notes & NOTE_DELAY_BACKOFF != 0 => {
                self.delay_backoffs_region_a += u64::from(!region_b);
                self.delay_backoffs_region_b += u64::from(region_b);
            }
            Call::Ssthresh => {
                self.losses_tolerated += u64::from(after.notes & NOTE_LOSS_TOLERATED != 0);
                self.losses_raised_window += u64::from(result > after.cwnd_pkts);
                self.losses_region_b += u64::from(region_b);
            }
            _ => {}
        }
    }
}

/// Totals of a flow up to the latest bin: the start of the next row of its time series.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowTotals {
    delivered_bytes: u64,
    sent_pkts: u64,
    lost_pkts: u64,
}

impl FlowTotals {
    /// Ends a bin with the totals `c`: the row of its time series, without the state.
    pub fn close_bin(&mut self, c: &FlowCounters) -> FlowSample {
        let before = *self;
        *self = Self {
            delivered_bytes: c.delivered_bytes,
            sent_pkts: c.sent_pkts,
            lost_pkts: c.random_losses_pkts + c.queue_drops_pkts,
        };
        FlowSample {
            delivered_bytes: self.delivered_bytes - before.delivered_bytes,
            sent_pkts: (self.sent_pkts - before.sent_pkts) as u32,
            lost_pkts: (self.lost_pkts - before.lost_pkts) as u32,
            ..FlowSample::default()
        }
    }
}

/// State of a flow at the end of a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowSample {
    /// Payload delivered in order within the bin, bytes.
    pub delivered_bytes: u64,
    /// Packets sent within the bin.
    pub sent_pkts: u32,
    /// Packets dropped or lost within the bin.
    pub lost_pkts: u32,
    /// Congestion window, packets; 0 outside the flow's life.
    pub cwnd_pkts: u32,
    /// Slow start threshold, packets.
    pub ssthresh_pkts: u32,
    /// Packets in flight.
    pub inflight_pkts: u32,
    /// Smoothed RTT, microseconds.
    pub srtt_us: u32,
    /// Internals of the algorithm, named by [`FlowRecord::observes`].
    pub observed: [u32; OBSERVE_N],
}

/// A completed transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// Time at which the application wrote it.
    pub start_ns: Ns,
    /// Time at which the receiver had all of it.
    pub end_ns: Ns,
    /// Its size.
    pub bytes: u64,
}

/// A transfer that was not complete when the run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfinished {
    /// Time at which the application wrote it.
    pub start_ns: Ns,
    /// Its size.
    pub bytes: u64,
}

/// The queue of a hop, or of the reverse link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueRecord {
    /// Waiting times of all packets that left, their own transmission excluded; empty if no time
    /// series was kept.
    pub delay: DelayStats,
    /// Time series, one row per bin.
    pub bins: Vec<QueueBin>,
    /// Bytes that left.
    pub departed_bytes: u64,
    /// Packets that left.
    pub departed_pkts: u64,
    /// Packets dropped: it was full, or its discipline chose them.
    pub dropped_pkts: u64,
    /// Packets that left with a congestion mark (ECN), whichever hop made it.
    pub marked_pkts: u64,
    /// Largest number of packets held.
    pub max_pkts: u32,
    /// Every packet, if logged.
    pub log: Vec<PacketLog>,
}

impl QueueRecord {
    fn shrink(&mut self) {
        self.delay.shrink_to_fit();
        self.bins.shrink_to_fit();
        self.log.shrink_to_fit();
    }
}

/// The queue within a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueBin {
    /// Packets that left.
    pub departed_pkts: u32,
    /// Bytes that left.
    pub departed_bytes: u64,
    /// Packets dropped.
    pub dropped_pkts: u32,
    /// Packets that left with a congestion mark.
    pub marked_pkts: u32,
    /// Sum of the waiting times of those that left.
    pub delay_sum_ns: u64,
    /// Largest of them.
    pub delay_max_ns: u64,
    /// Packets held at the end of the bin.
    pub held_pkts: u32,
}

/// An event of a packet at the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum PacketEvent {
    /// Joined the queue.
    Enqueued = 0,
    /// Left the queue, wholly transmitted.
    Departed = 1,
    /// Dropped by the queue: it was full, or its discipline chose the packet.
    Dropped = 2,
    /// Lost at random before the queue.
    Lost = 3,
}

impl PacketEvent {
    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Enqueued => "enqueued",
            Self::Departed => "departed",
            Self::Dropped => "dropped",
            Self::Lost => "lost",
        }
    }
}

/// One line of the queue's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketLog {
    /// Time of the event.
    pub time_ns: Ns,
    /// Index of the flow.
    pub flow: u32,
    /// Segment or packet number within the flow.
    pub number: u32,
    /// Size of the whole packet.
    pub bytes: u32,
    /// Packets held after the event.
    pub held_pkts: u32,
    /// The event.
    pub event: PacketEvent,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(start_ns: Ns, first_bin: u32, sent: &[u32]) -> FlowRecord {
        let row = |sent_pkts: &u32| FlowSample { sent_pkts: *sent_pkts, ..FlowSample::default() };
        FlowRecord {
            source: "web".to_owned(),
            start_ns,
            first_bin,
            samples: sent.iter().map(row).collect(),
            ..FlowRecord::default()
        }
    }

    fn rows(record: &FlowRecord) -> (u32, Vec<u32>) {
        (record.first_bin, record.samples.iter().map(|s| s.sent_pkts).collect())
    }

    #[test]
    fn drawn_flows_keep_the_rows_of_their_life() {
        let of = |record: FlowRecord| rows(&record.without_idle_rows(10));
        // Started within bin 2; silent in bin 3; nothing from bin 5 on.
        assert_eq!(of(drawn(25, 0, &[0, 0, 4, 0, 1, 0, 0])), (2, vec![4, 0, 1]));
        assert_eq!(of(drawn(25, 2, &[4, 0, 1, 0])), (2, vec![4, 0, 1]));
        assert_eq!(of(drawn(95, 0, &[0, 0])), (2, vec![]));
        let named = FlowRecord { source: String::new(), ..drawn(25, 0, &[0, 0, 4, 0]) };
        assert_eq!(of(named), (0, vec![0, 0, 4, 0]));
        let kept = drawn(25, 0, &[0, 0, 4]).without_idle_rows(10);
        assert_eq!((kept.sample(1), kept.sample(2).map(|s| s.sent_pkts)), (None, Some(4)));
        // No time series.
        assert_eq!(rows(&drawn(25, 0, &[]).without_idle_rows(0)), (0, vec![]));
    }
}
