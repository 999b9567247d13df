//! A flow without feedback in virtual time.

use crate::{Emission, NEVER};
use knee_model::{DelayStats, FlowCounters, FlowKind, FlowRecord, Ns};

/// Source and sink of a UDP flow or a probe.
#[derive(Clone, Debug)]
pub struct UdpFlow {
    emission: Emission,
    /// Time at which the next packet is due; [`NEVER`] if there is none.
    due_ns: Ns,
    next_number: u32,
    /// Start and time between packets of a probe.
    probe: Option<(Ns, Ns)>,
    counters: FlowCounters,
    delays: Vec<(Ns, Ns)>,
    delay: DelayStats,
}

impl UdpFlow {
    /// Source and sink of a flow that starts at `start_ns`; none if the flow is TCP.
    pub fn of(kind: &FlowKind, start_ns: Ns) -> Option<Self> {
        let mut emission = Emission::of(kind, start_ns)?;
        let due_ns = emission.next_ns().unwrap_or(NEVER);
        let probe = match kind {
            FlowKind::Probe { interval_ns, .. } => Some((start_ns, *interval_ns)),
            _ => None,
        };
        Some(Self {
            emission,
            due_ns,
            next_number: 0,
            probe,
            counters: FlowCounters::default(),
            delays: Vec::new(),
            delay: DelayStats::default(),
        })
    }

    /// Returns the time at which the next packet is due; [`NEVER`] if there is none.
    pub fn due_ns(&self) -> Ns {
        self.due_ns
    }

    /// Sends the packet that is due; returns its number, from 0.
    pub fn send(&mut self) -> u32 {
        let number = self.next_number;
        self.next_number += 1;
        self.due_ns = self.emission.next_ns().unwrap_or(NEVER);
        number
    }

    /// Packet `number` of `bytes` arrives.
    pub fn arrive(&mut self, now_ns: Ns, number: u32, bytes: u32) {
        self.counters.delivered_pkts += 1;
        self.counters.delivered_bytes += u64::from(bytes);
        if let Some((start_ns, interval_ns)) = self.probe {
            let sent_ns = start_ns + u64::from(number) * interval_ns;
            let delay_ns = now_ns - sent_ns;
            self.delays.push((sent_ns, delay_ns));
            self.delay.add(delay_ns);
        }
    }

    /// Totals, without the counts of the path.
    pub fn counters(&self) -> FlowCounters {
        self.counters
    }

    /// Adds the measurements of this flow to `record`.
    pub fn finish(self, record: FlowRecord) -> FlowRecord {
        FlowRecord { probe_delays: self.delays, one_way_delay: self.delay, ..record }
    }
}
