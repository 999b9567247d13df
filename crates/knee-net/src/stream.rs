//! The bytes of a TCP connection, as somebody on the path sees them.

use std::collections::BTreeMap;

/// The segments that one end has sent: unwraps sequence numbers and recognises retransmissions.
#[derive(Debug, Default)]
pub struct Sequence {
    initial: u32,
    /// End of the sequence space sent.
    highest: u64,
    /// Retransmissions below this belong to the present episode.
    recovery_point: u64,
    /// Segments that were sent before.
    pub retransmitted_pkts: u64,
    /// Episodes of retransmissions.
    pub episodes: u64,
}

impl Sequence {
    /// Takes a segment in that is being sent; gives the sequence space that it covers, counted
    /// from the SYN.
    pub fn send(&mut self, seq: u32, syn: bool, span: u32) -> (u64, u64) {
        if syn && self.highest == 0 {
            self.initial = seq;
        }
        let at = seq.wrapping_sub(self.initial);
        let ahead = at.wrapping_sub(self.highest as u32) as i32;
        let start = self.highest.saturating_add_signed(i64::from(ahead));
        let end = start + u64::from(span);
        if span > 0 && end <= self.highest {
            self.retransmitted_pkts += 1;
            if start >= self.recovery_point {
                self.episodes += 1;
                self.recovery_point = self.highest;
            }
        }
        self.highest = self.highest.max(end);
        (start, end)
    }
}

/// The segments that have reached the other end: recognises those that arrive again.
#[derive(Debug, Default)]
pub struct Arrived {
    /// All before this has.
    edge: u64,
    /// Disjoint ranges beyond a gap.
    ahead: BTreeMap<u64, u64>,
}

impl Arrived {
    /// Takes a range in; whether any of it is new. An empty one is.
    pub fn take(&mut self, (start, end): (u64, u64)) -> bool {
        if start == end {
            return true;
        }
        if end <= self.edge {
            return false;
        }
        let (mut start, mut end) = (start.max(self.edge), end);
        while let Some((&from, &to)) = self.ahead.range(..=end).next_back() {
            if to < start {
                break;
            }
            if from <= start && end <= to {
                return false;
            }
            self.ahead.remove(&from);
            (start, end) = (start.min(from), end.max(to));
        }
        if start <= self.edge {
            self.edge = end;
        } else {
            self.ahead.insert(start, end);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_wrap_and_episodes_are_counted() {
        let initial = u32::MAX - 1000;
        let mut sequence = Sequence::default();
        assert_eq!(sequence.send(initial, true, 1), (0, 1));
        let mut send = |start: u64| sequence.send(initial.wrapping_add(start as u32), false, 1000);
        for start in [1, 1001, 2001, 3001] {
            assert_eq!(send(start), (start, start + 1000));
        }
        // One episode of two retransmissions, new data, the first again: an episode of its own
        // only from the recovery point on.
        for start in [1, 1001, 4001, 2001, 5001] {
            assert_eq!(send(start).0, start);
        }
        assert_eq!((sequence.retransmitted_pkts, sequence.episodes), (3, 1));
        sequence.send(initial.wrapping_add(4001), false, 1000);
        assert_eq!((sequence.retransmitted_pkts, sequence.episodes), (4, 2));
    }

    #[test]
    fn arrivals_against_a_set() {
        let mut random = knee_model::Random::stream(1, "arrivals", 0);
        for _ in 0..300 {
            let (mut arrived, mut model) = (Arrived::default(), [false; 64]);
            for _ in 0..60 {
                let start = random.up_to(59) as usize;
                let end = start + 1 + random.up_to(3) as usize;
                let new = model[start..end].iter().any(|seen| !seen);
                model[start..end].fill(true);
                assert_eq!(arrived.take((start as u64, end as u64)), new);
            }
        }
    }
}
