//! A fast path for the most frequent ACK: it acknowledges new data, reports nothing else, and nothing is lost
//! or in doubt. The fast path does the same as [`Sender::process_ack`], without the steps that change
//! nothing. Without this file and the branch in [`Sender::on_ack`] every result is the same; the tests
//! compare both ways.

use super::{Sender, Transmit, scoreboard::Scoreboard};
use crate::packet::{self, Sack};
use knee_cc::Phase;
use knee_net::NEVER;

impl Sender {
    /// Returns whether the fast path serves this ACK.
    #[inline(always)]
    pub(super) fn is_in_order(&self, ack: packet::Ack, sack: Option<&Sack>) -> bool {
        let tcb = &self.tcb;
        let in_doubt = tcb.probe.is_some() || tcb.board.may_have_lost();
        let reports = sack.is_some() || ack.echo || ack.cumulative <= tcb.board.una;
        self.permits_fast_path
            && self.rate.is_none()
            && tcb.phase() == Phase::Open
            && !in_doubt
            && !reports
    }

    /// The steps for an ACK that [`Self::is_in_order`].
    #[inline(always)]
    pub(super) fn process_in_order(
        &mut self,
        now_ns: u64,
        cumulative: u32,
        out: &mut impl Transmit,
    ) {
        let tcb = &mut self.tcb;
        let advanced = cumulative - tcb.board.una;
        let (sent_ns, _) = tcb.board.acknowledge_in_order(cumulative, now_ns).newest;
        tcb.delivered_pkts += u64::from(advanced);
        self.learn_rtt(now_ns - sent_ns);
        self.tcb.refresh(now_ns);
        let mut seen = self.view_of(advanced, Some(now_ns - sent_ns));
        seen.advanced_pkts = advanced;
        let tcb = &mut self.tcb;
        tcb.algorithm.on_rtt(&mut tcb.conn, &seen, &mut tcb.counters);
        tcb.refresh_limited();
        seen.advanced_pkts = 0;
        tcb.algorithm.on_ack(&mut tcb.conn, &seen, &mut tcb.counters);
        tcb.conn.cwnd_pkts = tcb.conn.cwnd_pkts.max(1);
        self.rearm(now_ns, advanced, NEVER);
        let window_pkts = self.tcb.conn.cwnd_pkts;
        let has_room = |board: &Scoreboard| board.outstanding() < window_pkts;
        self.send_new_while(now_ns, has_room, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        packet::NONE,
        receiver::{Receiver, Reply},
    };
    use knee_cc::{Params, Profile, algorithms};
    use knee_model::{FlowCounters, NS_PER_MS, Random, TcpOptions};
    use knee_net::Ecn;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    impl Transmit for VecDeque<u32> {
        fn transmit(&mut self, number: u32, _: Ecn, _: bool) {
            self.push_back(number);
        }
    }

    /// A sender, and the segments that it has on the path.
    fn sender(params: Params, options: &TcpOptions, fast: bool) -> (Sender, VecDeque<u32>) {
        let random = Random::stream(1, "test", 0);
        let mut sender = Sender::new(params, options, 0, random, true, true);
        sender.permits_fast_path &= fast;
        let mut path = VecDeque::new();
        sender.write(0, Some(10), &mut path);
        (sender, path)
    }

    proptest! {
        /// Two senders get the same ACKs over a lossy path, one without the fast path. They send the same
        /// segments, set the same timers and call the algorithm with the same arguments.
        #[test]
        fn changes_nothing(
            which in 0..algorithms().len(),
            lost in prop::collection::vec(prop::bool::weighted(0.03), 500),
            gaps_ms in prop::collection::vec(1u64..12, 500),
            written in prop::collection::vec(0u32..4, 500),
        ) {
            let algorithm = algorithms()[which];
            let options = TcpOptions::default();
            let params = Params::defaults(algorithm);
            let mut receiver = Receiver::new(&options);
            let (mut fast, mut fast_path) = sender(params.clone(), &options, true);
            let (mut slow, mut slow_path) = sender(params, &options, false);
            let mut now_ns = 40 * NS_PER_MS;
            let mut in_order = 0;
            for ((lost, gap_ms), written) in lost.into_iter().zip(gaps_ms).zip(written) {
                now_ns += gap_ms * NS_PER_MS;
                for (sender, path) in [(&mut fast, &mut fast_path), (&mut slow, &mut slow_path)] {
                    sender.write(now_ns, Some(written), path);
                    if sender.timer_due_ns <= now_ns {
                        sender.on_timer(now_ns, path);
                    }
                    if sender.pace_due_ns <= now_ns {
                        sender.on_pace(now_ns, path);
                    }
                }
                prop_assert_eq!(&fast_path, &slow_path);
                slow_path.pop_front();
                let Some(number) = fast_path.pop_front().filter(|_| !lost) else { continue };
                let Reply::Now { duplicate } = receiver.arrive(now_ns, number) else { continue };
                receiver.acknowledged();
                let cumulative = receiver.next;
                let ack = packet::Ack { flow: 0, cumulative, sack: NONE, bytes: 52, echo: false };
                let sack = Sack { blocks: receiver.blocks(), duplicate };
                let reports = duplicate != NONE || !receiver.misses_nothing();
                let sack = reports.then_some(&sack);
                in_order += u32::from(fast.is_in_order(ack, sack));
                fast.on_ack(now_ns, ack, sack, &mut fast_path);
                slow.on_ack(now_ns, ack, sack, &mut slow_path);
                prop_assert_eq!(&fast_path, &slow_path);
                prop_assert_eq!(fast.tcb.conn, slow.tcb.conn);
                prop_assert_eq!(fast.timer_due_ns, slow.timer_due_ns);
                let state = |sender: &Sender| *sender.tcb.algorithm.controller.state();
                prop_assert_eq!(state(&fast), state(&slow));
            }
            let counters = |sender: &Sender| FlowCounters::from(sender.tcb.counters);
            prop_assert_eq!(counters(&fast), counters(&slow));
            prop_assert_eq!(fast.tcb.algorithm.trace, slow.tcb.algorithm.trace);
            prop_assert_eq!(fast.rtt_stats, slow.rtt_stats);
            prop_assert_eq!(in_order > 0, algorithm.profile() == Profile::Classic);
        }
    }
}
