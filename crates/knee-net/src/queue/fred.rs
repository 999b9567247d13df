//! Flow random early drop (Lin, Morris: Dynamics of random early detection, SIGCOMM 1997).
//!
//! RED that counts the packets that each flow holds: a flow may hold `min_queue` whatever the
//! average, is signalled at random only if it holds its share, and never holds more than a bound;
//! one that tries repeatedly is kept to its share. Signals at random can be marks; drops that keep
//! a flow to its bound or its share, and those above the upper threshold, are always drops.
//!
//! The average is updated by accepted arrivals and by departures, as in the paper. For an empty queue, Fig.
//! 11 of the paper computes it twice for one arrival; here it is computed once.

use super::{
    judgement::{Arrival, Verdict},
    red::{Average, Spread},
};
use knee_model::{Fred, Random};
use std::collections::HashMap;

/// A flow that holds packets.
#[derive(Clone, Copy, Debug, Default)]
struct Active {
    /// `qlen`.
    held_pkts: u32,
    /// Number of attempts to hold more than its bound.
    strikes: u32,
}

#[derive(Clone, Debug)]
pub(super) struct State {
    fred: Fred,
    average: Average,
    /// `avgcq`: the average share of a flow, at least one packet.
    share: f64,
    /// Flows that hold packets, and flows that were just refused one. Nothing iterates over them, so their
    /// order does not matter.
    flows: HashMap<u32, Active>,
    spread: Spread,
    random: Random,
}

impl State {
    pub(super) fn new(fred: &Fred, rate_bps: u64, random: Random) -> Self {
        let average = Average::new(fred.weight, fred.packet_bytes, rate_bps);
        let (flows, spread) = (HashMap::new(), Spread::new());
        Self { fred: *fred, average, share: 1.0, flows, spread, random }
    }

    fn update_share(&mut self) {
        let active = self.flows.len().max(1) as f64;
        self.share = (self.average.value() / active).max(1.0);
    }

    pub(super) fn arrive(&mut self, arrival: &Arrival) -> Verdict {
        if arrival.held_pkts == 0 {
            self.average.arrive(arrival.now_ns, 0.0);
            self.update_share();
        }
        let average = self.average.value();
        let (min, max) = (f64::from(self.fred.min_pkts), f64::from(self.fred.max_pkts));
        let bound_pkts = if average >= max { 2 } else { self.fred.min_pkts };
        // A flow that holds nothing is remembered only once a packet of it is accepted.
        let Active { held_pkts, strikes } =
            self.flows.get(&arrival.flow_key).copied().unwrap_or_default();
        let held = f64::from(held_pkts);
        if held_pkts >= bound_pkts
            || (average >= max && held > 2.0 * self.share)
            || (held >= self.share && strikes > 1)
        {
            if let Some(flow) = self.flows.get_mut(&arrival.flow_key) {
                flow.strikes = strikes.saturating_add(1);
            }
            return Verdict::Drop;
        }
        if average < min {
            self.spread.calm();
            return Verdict::Accept;
        }
        if average >= max {
            self.spread.restart();
            return Verdict::Drop;
        }
        self.spread.advance();
        if held >= self.share.max(f64::from(self.fred.min_queue_pkts)) {
            let base = self.fred.max_probability * (average - min) / (max - min);
            if self.spread.signals(base, &mut self.random) {
                return Verdict::Signal;
            }
        }
        Verdict::Accept
    }

    /// The packet that arrived joins the queue.
    pub(super) fn accept(&mut self, arrival: &Arrival) {
        self.flows.entry(arrival.flow_key).or_default().held_pkts += 1;
        if arrival.held_pkts > 0 {
            self.average.sample(f64::from(arrival.held_pkts));
        }
        self.update_share();
    }

    /// A packet has left; the number that remain.
    pub(super) fn depart(&mut self, now_ns: u64, flow_key: u32, held_pkts: u32) {
        self.average.sample(f64::from(held_pkts));
        if held_pkts == 0 {
            self.average.idle(now_ns);
        }
        if let Some(flow) = self.flows.get_mut(&flow_key) {
            flow.held_pkts -= 1;
            if flow.held_pkts == 0 {
                self.flows.remove(&flow_key);
            }
        }
        self.update_share();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(fred: Fred) -> State {
        State::new(&fred, 12_000_000, Random::stream(1, "test", 0))
    }

    fn arrival(flow_key: u32, held_pkts: u32) -> Arrival {
        Arrival { now_ns: 0, held_pkts, held_bytes: 0, bytes: 1500, flow_key }
    }

    fn offer(s: &mut State, flow_key: u32, held_pkts: u32) -> Verdict {
        let arrival = arrival(flow_key, held_pkts);
        let verdict = s.arrive(&arrival);
        if verdict == Verdict::Accept {
            s.accept(&arrival);
        }
        verdict
    }

    /// With w = 1/2: a packet into an empty queue leaves the average at 0; one that finds it makes it
    /// 1/2; one of another flow that finds both 1.25. The departures that leave two, one and none:
    /// 1.625, 1.3125, 0.65625.
    #[test]
    fn average_and_share_by_hand() {
        let mut s = state(Fred { weight: 0.5, ..Fred::default() });
        let mut seen = Vec::new();
        for (flow, held) in [(1, 0), (1, 1), (2, 2)] {
            assert_eq!(offer(&mut s, flow, held), Verdict::Accept);
            seen.push((s.average.value(), s.flows.len()));
        }
        for (flow, left) in [(1, 2), (1, 1), (2, 0)] {
            s.depart(0, flow, left);
            seen.push((s.average.value(), s.flows.len()));
        }
        let by_hand = [(0.0, 1), (0.5, 1), (1.25, 2), (1.625, 2), (1.3125, 1), (0.65625, 0)];
        assert_eq!(seen, by_hand);
        assert_eq!(s.share, 1.0, "at least a packet");
        s.average.sample(7.0);
        s.flows.insert(1, Active::default());
        s.flows.insert(2, Active::default());
        s.update_share();
        assert_eq!(s.share, (0.65625 + 7.0) / 2.0 / 2.0);
    }

    /// One flow alone may hold `min_th` packets and no more; after two attempts it is kept to its
    /// share.
    #[test]
    fn a_greedy_flow_strikes_out() {
        let mut s = state(Fred::default());
        let verdicts: Vec<_> = (0..7).map(|held| offer(&mut s, 1, held.min(5))).collect();
        assert_eq!(verdicts[..5], [Verdict::Accept; 5]);
        assert_eq!(verdicts[5..], [Verdict::Drop; 2]);
        assert_eq!(s.flows[&1].strikes, 2);
        // It holds two, twice its share of one: refused now, while another is not.
        (2..5).rev().for_each(|left| s.depart(0, 1, left));
        assert_eq!((s.flows[&1].held_pkts, s.share), (2, 1.0));
        assert_eq!(offer(&mut s, 1, 2), Verdict::Drop);
        assert_eq!(offer(&mut s, 2, 2), Verdict::Accept);
        assert_eq!(offer(&mut s, 2, 3), Verdict::Accept);
        // Once it holds nothing, all is forgotten.
        s.depart(0, 1, 3);
        s.depart(0, 1, 2);
        assert_eq!(offer(&mut s, 1, 2), Verdict::Accept);
    }

    /// Between the thresholds only flows with at least `min_q` packets, and at least their share,
    /// are signalled.
    #[test]
    fn fragile_flows_are_spared() {
        let fred = Fred { min_pkts: 8, max_pkts: 12, max_probability: 1.0, ..Fred::default() };
        let mut s = state(fred);
        s.average = Average::new(1.0, 1500, 12_000_000);
        s.average.sample(11.999);
        s.flows.insert(1, Active { held_pkts: 7, strikes: 0 });
        s.flows.insert(2, Active { held_pkts: 3, strikes: 0 });
        s.update_share();
        let signalled = |s: &mut State, flow| {
            (0..1000).filter(|_| s.arrive(&arrival(flow, 10)) == Verdict::Signal).count()
        };
        assert_eq!(signalled(&mut s, 2), 0);
        assert!(signalled(&mut s, 1) > 990);
        // From the upper threshold on everything is refused.
        s.average.sample(12.0);
        s.spread.calm();
        assert_eq!(s.arrive(&arrival(3, 10)), Verdict::Drop);
    }
}
