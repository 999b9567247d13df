//! The scoreboard and the judgement on it, against their definitions.

use crate::{
    receiver::Receiver,
    sender::{
        loss_detection::Losses,
        scoreboard::{News, Scoreboard},
    },
};
use knee_model::TcpOptions;
use knee_net::NEVER;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// The definitions, as sets of segment numbers.
#[derive(Default)]
struct Model {
    una: u32,
    /// RFC 8985 `RACK.xmit_ts` and `RACK.end_seq`; `RACK.rtt`.
    latest: (u64, u32),
    rtt_ns: u64,
    /// Latest sending time of each segment ever sent, and true if it was sent more than once.
    sent: Vec<(u64, bool)>,
    sacked: BTreeSet<u32>,
    lost: BTreeSet<u32>,
    retrans: BTreeSet<u32>,
}

impl Model {
    fn nxt(&self) -> u32 {
        self.sent.len() as u32
    }

    /// RFC 8985 section 6.2, steps 1 and 2; no RTT is known here that could rule one out.
    fn delivered(&mut self, number: u32, now_ns: u64) {
        let (sent_ns, _) = self.sent[number as usize];
        if (sent_ns, number + 1) > self.latest {
            self.latest = (sent_ns, number + 1);
            self.rtt_ns = now_ns - sent_ns;
        }
    }

    fn acknowledge(&mut self, cumulative: u32, blocks: &[(u32, u32)], now_ns: u64) -> News {
        let mut news = News::default();
        let covered = self.una..cumulative;
        let ambiguous = covered.clone().any(|n| self.sent[n as usize].1);
        if covered.contains(&self.una) && !self.sacked.contains(&self.una) {
            let (sent_ns, again) = self.sent[self.una as usize];
            news.repair_sent_ns = again.then_some(sent_ns);
        }
        let covered: Vec<u32> = covered.filter(|n| !self.sacked.contains(n)).collect();
        for number in covered {
            self.delivered(number, now_ns);
            news.delivered_pkts += 1;
            news.newest = news.newest.max((self.sent[number as usize].0, number + 1));
            if !ambiguous {
                news.sent_ns = news.sent_ns.max(Some(self.sent[number as usize].0));
            }
        }
        self.una = cumulative;
        for number in blocks.iter().flat_map(|&(start, end)| start..end) {
            if number >= cumulative && self.sacked.insert(number) {
                news.delivered_pkts += 1;
                self.delivered(number, now_ns);
                let (sent_ns, again) = self.sent[number as usize];
                news.newest = news.newest.max((sent_ns, number + 1));
                news.sent_ns = news.sent_ns.max((!again).then_some(sent_ns));
            }
        }
        self.sacked.retain(|&n| n >= cumulative);
        self.lost.retain(|n| *n >= cumulative && !self.sacked.contains(n));
        self.retrans.retain(|n| *n >= cumulative && !self.sacked.contains(n));
        news
    }

    /// RFC 8985 section 6.2, step 5.
    fn mark_lost(&mut self, now_ns: u64, reo_wnd_ns: u64) -> Losses {
        let mut losses = Losses { marked_pkts: 0, again: false, next_ns: NEVER };
        for number in (self.una..self.nxt()).filter(|n| !self.sacked.contains(n)) {
            let (sent_ns, _) = self.sent[number as usize];
            let waits = !self.lost.contains(&number) || self.retrans.contains(&number);
            if !waits || self.latest <= (sent_ns, number + 1) {
                continue;
            }
            let due_ns = sent_ns + self.rtt_ns + reo_wnd_ns;
            if due_ns > now_ns {
                losses.next_ns = losses.next_ns.min(due_ns);
                continue;
            }
            self.lost.insert(number);
            losses.marked_pkts += 1;
            losses.again |= self.retrans.remove(&number);
        }
        losses
    }
}

#[derive(Clone, Debug)]
enum Step {
    Send(u8),
    /// The packet so many places into the network arrives, those before it are lost; true if its ACK arrives.
    Arrive(u8, bool),
    Retransmit(u8),
    /// All segments sent so long ago are lost.
    Timeout(u8),
    Forget,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u8..8).prop_map(Step::Send),
        24 => (prop_oneof![6 => Just(0), 1 => 0u8..6], prop::bool::weighted(0.8))
            .prop_map(|(skip, heard)| Step::Arrive(skip, heard)),
        4 => (1u8..4).prop_map(Step::Retransmit),
        1 => (0u8..20).prop_map(Step::Timeout),
        1 => Just(Step::Forget),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// After any sequence of sending, losses, ACKs and repairs, the board agrees with the model.
    #[test]
    fn the_board_agrees_with_the_model(steps in prop::collection::vec(step(), 1..200)) {
        let mut board = Scoreboard::default();
        let mut model = Model::default();
        let mut receiver = Receiver::new(&TcpOptions { mss_bytes: 1, ..TcpOptions::default() });
        let mut network: Vec<u32> = Vec::new();
        for (now_ns, step) in (0u64..).zip(steps) {
            match step {
                Step::Send(count) => for _ in 0..count {
                    prop_assert_eq!(board.push(now_ns), model.nxt());
                    network.push(model.nxt());
                    model.sent.push((now_ns, false));
                },
                Step::Arrive(skip, heard) => {
                    let at = usize::from(skip);
                    if at >= network.len() {
                        continue;
                    }
                    let number = network.drain(..=at).next_back().expect("not empty");
                    receiver.arrive(now_ns, number);
                    if !heard {
                        continue;
                    }
                    let blocks = receiver.blocks();
                    let mut news = board.acknowledge(receiver.next, now_ns);
                    board.sack(&blocks, now_ns, &mut news);
                    let known = model.acknowledge(receiver.next, &blocks, now_ns);
                    prop_assert_eq!(news, known);
                    let reo_wnd_ns = now_ns % 3;
                    let found = board.mark_lost(now_ns, reo_wnd_ns);
                    prop_assert_eq!(found, model.mark_lost(now_ns, reo_wnd_ns));
                }
                Step::Retransmit(count) => for _ in 0..count {
                    let next = model.lost.difference(&model.retrans).next().copied();
                    prop_assert_eq!(board.next_lost(), next);
                    let Some(number) = next else { break };
                    board.retransmitted(number, now_ns);
                    model.retrans.insert(number);
                    model.sent[number as usize] = (now_ns, true);
                    network.push(number);
                },
                Step::Timeout(patience_ns) => {
                    let patience_ns = u64::from(patience_ns);
                    board.mark_timed_out(now_ns, patience_ns);
                    let missing = (model.una..model.nxt()).filter(|n| !model.sacked.contains(n));
                    for (place, number) in missing.enumerate() {
                        if place == 0 || model.sent[number as usize].0 + patience_ns <= now_ns {
                            model.lost.insert(number);
                            model.retrans.remove(&number);
                        }
                    }
                }
                Step::Forget => {
                    board.forget_losses();
                    model.lost.clear();
                    model.retrans.clear();
                }
            }
            let outstanding = model.nxt() - model.una;
            prop_assert_eq!((board.una, board.nxt()), (model.una, model.nxt()));
            prop_assert_eq!(board.outstanding(), outstanding);
            prop_assert_eq!(board.sacked as usize, model.sacked.len());
            prop_assert_eq!(board.lost as usize, model.lost.len());
            let in_network = outstanding as usize + model.retrans.len()
                - model.sacked.len() - model.lost.len();
            prop_assert_eq!(board.in_network() as usize, in_network);
        }
    }
}
