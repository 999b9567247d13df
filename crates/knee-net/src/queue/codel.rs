//! Controlled delay (Nichols, Jacobson: RFC 8289).
//!
//! Packets are judged when their transmission is to start, by how long they have waited. Once the
//! delay has stayed above the target for an interval, packets are dropped (or marked) at shrinking
//! distances, `interval / sqrt(count)`, until it is below the target again. With marks nothing is
//! dropped in between, so one packet is marked at a time.

use super::{fifo::Fifo, judgement::Taken};
use crate::Packet;
use knee_model::CoDel;

/// State of one queue, by the names of RFC 8289 section 5.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    codel: CoDel,
    /// 0: the delay is not above the target.
    first_above_time_ns: u64,
    drop_next_ns: u64,
    count: u32,
    last_count: u32,
    dropping: bool,
    /// Largest packet seen, bytes; no less than the RFC's first guess.
    max_packet_bytes: u32,
}

impl State {
    pub(super) fn new(codel: &CoDel) -> Self {
        Self { codel: *codel, max_packet_bytes: 512, ..Self::default() }
    }

    /// Section 5.3: `t + interval / sqrt(count)`. The root is exact to the last bit everywhere.
    fn control_law(&self, time_ns: u64) -> u64 {
        time_ns + (self.codel.interval_ns as f64 / f64::from(self.count).sqrt()) as u64
    }

    /// Section 5.4, `dodequeue`: returns whether a packet that came at `since_ns` may be dropped, with
    /// `waiting_bytes` behind it.
    #[inline]
    fn may_drop(&mut self, now_ns: u64, since_ns: u64, bytes: u32, waiting_bytes: u64) -> bool {
        self.max_packet_bytes = self.max_packet_bytes.max(bytes);
        let waited_ns = now_ns - since_ns;
        if waited_ns < self.codel.target_ns || waiting_bytes <= u64::from(self.max_packet_bytes) {
            self.first_above_time_ns = 0;
        } else if self.first_above_time_ns == 0 {
            self.first_above_time_ns = now_ns + self.codel.interval_ns;
        } else {
            return now_ns >= self.first_above_time_ns;
        }
        false
    }

    /// The packet at the head, and whether it may be dropped.
    #[inline]
    fn judge<P: Packet>(&mut self, now_ns: u64, fifo: &mut Fifo<P>) -> Option<((u64, P), bool)> {
        let Some(head) = fifo.pop() else {
            self.first_above_time_ns = 0;
            return None;
        };
        let may_drop = self.may_drop(now_ns, head.0, head.1.wire_bytes(), fifo.bytes());
        Some((head, may_drop))
    }

    /// Section 5.5, `dequeue`: the packet to be transmitted next.
    #[inline]
    pub(super) fn next<P: Packet>(
        &mut self,
        now_ns: u64,
        fifo: &mut Fifo<P>,
        taken: &mut Taken<P>,
    ) -> Option<(u64, P)> {
        match self.judge(now_ns, fifo) {
            Some((head, false)) => {
                self.dropping = false;
                Some(head)
            }
            Some((head, true)) => self.control(now_ns, head, fifo, taken),
            None => {
                self.dropping = false;
                None
            }
        }
    }

    /// The same where the head may be dropped.
    #[inline(never)]
    fn control<P: Packet>(
        &mut self,
        now_ns: u64,
        head: (u64, P),
        fifo: &mut Fifo<P>,
        taken: &mut Taken<P>,
    ) -> Option<(u64, P)> {
        if !self.dropping {
            let next = match taken.signal(head) {
                Some(marked) => Some(marked),
                None => self.judge(now_ns, fifo).map(|(packet, _)| packet),
            };
            self.dropping = true;
            // The rate that held the queue last time, if that is not long ago.
            let delta = self.count.saturating_sub(self.last_count);
            let recent = now_ns.saturating_sub(self.drop_next_ns) < 16 * self.codel.interval_ns;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.last_count = self.count;
            self.drop_next_ns = self.control_law(now_ns);
            return next;
        }
        let mut next = Some(head);
        while self.dropping && now_ns >= self.drop_next_ns {
            self.count = self.count.saturating_add(1);
            if let Some(marked) = taken.signal(next?) {
                self.drop_next_ns = self.control_law(self.drop_next_ns);
                return Some(marked);
            }
            let judged = self.judge(now_ns, fifo);
            self.dropping = judged.as_ref().is_some_and(|(_, may_drop)| *may_drop);
            if self.dropping {
                self.drop_next_ns = self.control_law(self.drop_next_ns);
            }
            next = judged.map(|(packet, _)| packet);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{P, taken};
    use super::*;

    const MS: u64 = 1_000_000;

    /// A queue of `n` packets that came at time 0.
    fn standing(n: u32, capable: bool, ecn: bool) -> (Fifo<P>, Taken<P>) {
        let (mut fifo, mut taken) = (Fifo::default(), taken(ecn));
        for number in 0..n {
            fifo.push(0, P { number, bytes: 1500, capable, ..P::default() });
            taken.pkts += 1;
            taken.bytes += 1500;
        }
        (fifo, taken)
    }

    type Signals = Vec<(u64, u32)>;

    /// Numbers dropped and marked, with the times in ms, if a packet is sent each ms from 1 on.
    fn signals(n: u32, capable: bool, ecn: bool, sent: u64) -> (Signals, Signals) {
        let (mut fifo, mut taken) = standing(n, capable, ecn);
        let mut state = State::new(&CoDel::default());
        let (mut dropped, mut marked) = (Vec::new(), Vec::new());
        for ms in 1..=sent {
            let (_, packet) = state.next(ms * MS, &mut fifo, &mut taken).expect("stands");
            if packet.marked {
                marked.push((ms, packet.number));
            }
            while let Some(packet) = taken.dropped.pop_front() {
                dropped.push((ms, packet.number));
            }
        }
        (dropped, marked)
    }

    /// Above 5 ms for the first time at 5 ms, so the first drop is at 105 ms; then 100/sqrt(1),
    /// 100/sqrt(2), ... ms later: 205, 275.7, 333.4, 383.4, 428.2, each at the next ms.
    #[test]
    fn drop_times_by_hand() {
        let (dropped, marked) = signals(1000, false, true, 430);
        let times: Vec<u64> = dropped.iter().map(|d| d.0).collect();
        assert_eq!(times, [105, 205, 276, 334, 384, 429]);
        // The k-th drop comes with as many packets out before it as milliseconds and drops.
        for (k, (ms, number)) in dropped.iter().enumerate() {
            assert_eq!(u64::from(*number), ms - 1 + k as u64);
        }
        assert!(marked.is_empty());
    }

    /// Marks come at the same times as drops, and nothing is dropped.
    #[test]
    fn marks_in_place_of_drops() {
        let (dropped, marked) = signals(1000, true, true, 430);
        assert!(dropped.is_empty());
        let times: Vec<u64> = marked.iter().map(|m| m.0).collect();
        assert_eq!(times, [105, 205, 276, 334, 384, 429]);
        // Without `ecn` the same packets are dropped.
        let (dropped, marked) = signals(1000, true, false, 430);
        assert_eq!((dropped.len(), marked.len()), (6, 0));
    }

    /// A queue of no more than one packet besides is never touched, nor a delay below the target.
    #[test]
    fn short_queues_are_left_alone() {
        let mut state = State::new(&CoDel::default());
        let (mut fifo, mut taken) = standing(2, false, false);
        assert!(state.next(500 * MS, &mut fifo, &mut taken).is_some());
        assert_eq!(state.first_above_time_ns, 0);
        let (mut fifo, mut taken) = standing(100, false, false);
        assert!(state.next(4_999_999, &mut fifo, &mut taken).is_some());
        assert_eq!(state.first_above_time_ns, 0);
        assert!(state.next(5 * MS, &mut fifo, &mut taken).is_some());
        assert_eq!(state.first_above_time_ns, 105 * MS);
    }

    /// Section 5.5: soon after the last cycle the rate resumes at its previous value.
    #[test]
    fn remembers_the_rate_for_16_intervals() {
        let again = |ms: u64| {
            let mut state = State::new(&CoDel::default());
            (state.count, state.last_count, state.drop_next_ns) = (7, 1, 400 * MS);
            state.first_above_time_ns = (ms - 1) * MS;
            let (mut fifo, mut taken) = standing(100, false, false);
            state.next(ms * MS, &mut fifo, &mut taken);
            assert!(state.dropping);
            (state.count, state.drop_next_ns - ms * MS)
        };
        assert_eq!(again(1999), (6, (100e6 / 6f64.sqrt()) as u64));
        assert_eq!(again(2000), (1, 100 * MS));
    }

    #[test]
    fn an_empty_queue_ends_the_cycle() {
        let mut state = State::new(&CoDel::default());
        (state.dropping, state.first_above_time_ns) = (true, 1);
        let (mut fifo, mut taken) = standing(0, false, false);
        assert!(state.next(MS, &mut fifo, &mut taken).is_none());
        assert_eq!((state.dropping, state.first_above_time_ns), (false, 0));
    }
}
