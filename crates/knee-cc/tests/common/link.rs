//! Flows over one ideal link, packet by packet: no losses, a queue without limit.

use super::common::{BASE_US, Flow, NEVER};
use std::collections::VecDeque;

/// Time that the link takes for a packet: 1000 packets/s.
pub const PER_PACKET_US: u64 = 1_000;

struct Link {
    free_at_us: u64,
    /// Arrival of the ACK, number of its flow, sending of the packet.
    in_network: VecDeque<(u64, usize, u64)>,
}

impl Link {
    fn fill(&mut self, flow: &mut Flow, whose: usize, now_us: u64) {
        while flow.conn.outstanding_pkts < flow.w() {
            flow.send(1);
            self.free_at_us = self.free_at_us.max(now_us) + PER_PACKET_US;
            let ack_at_us = self.free_at_us + BASE_US as u64 - PER_PACKET_US;
            self.in_network.push_back((ack_at_us, whose, now_us));
        }
    }
}

/// Runs flows, each from its start, until `end_us`. After every ACK `see` is told the time, whose ACK
/// it was, the packets queued or in transmission, and all flows.
pub fn run(
    flows: &mut [Flow],
    starts_us: &[u64],
    end_us: u64,
    mut see: impl FnMut(u64, usize, f64, &[Flow]),
) {
    let mut link = Link { free_at_us: 0, in_network: VecDeque::new() };
    let mut started = vec![false; flows.len()];
    let mut now_us = 0;
    while now_us < end_us {
        let next_ack = link.in_network.front().map_or(u64::MAX, |(at, ..)| *at);
        let waiting = |(i, start): (usize, &u64)| (!started[i]).then_some((*start, i));
        let next_start = starts_us.iter().enumerate().filter_map(waiting).min();
        if let Some((start_us, i)) = next_start.filter(|(start, _)| *start <= next_ack) {
            now_us = start_us;
            started[i] = true;
            flows[i].conn.now_us = now_us;
            link.fill(&mut flows[i], i, now_us);
            continue;
        }
        let (at_us, i, sent_us) = link.in_network.pop_front().expect("packets in the network");
        now_us = at_us;
        let rtt_us = u32::try_from(now_us - sent_us).expect("a delay");
        flows[i].conn.now_us = now_us;
        // RFC 6298 section 2.3.
        let srtt_us = flows[i].conn.srtt_us;
        flows[i].conn.srtt_us = if srtt_us == 0 { rtt_us } else { (7 * srtt_us + rtt_us) / 8 };
        flows[i].ack(1, rtt_us - BASE_US as u32, NEVER);
        link.fill(&mut flows[i], i, now_us);
        let queued = link.free_at_us.saturating_sub(now_us) as f64 / PER_PACKET_US as f64;
        see(now_us, i, queued, flows);
    }
}
