//! What is outstanding, and what is known of each segment: the scoreboard of RFC 6675, kept by the
//! SACK blocks of RFC 2018. What is lost is judged in `loss_detection`.

use super::loss_detection::Rack;
use knee_net::Ring;

/// One outstanding segment in eight bytes: when it was last sent, and flags.
#[derive(Clone, Copy, Default)]
pub(super) struct Segment(pub(super) u64);

pub(super) const SACKED: u64 = 1;
pub(super) const LOST: u64 = 2;
/// A retransmission is in the network.
pub(super) const RETRANS: u64 = 4;
/// Retransmitted at some time: without timestamps it gives no RTT sample (Karn).
pub(super) const EVER_RETRANS: u64 = 8;
const FLAG_BITS: u32 = 4;

impl Segment {
    pub(super) fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }
    pub(super) fn sent_ns(self) -> u64 {
        self.0 >> FLAG_BITS
    }
}

/// What an acknowledgement reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    /// Newly delivered, cumulatively or selectively.
    pub delivered_pkts: u32,
    /// When the latest of them was sent, unless one that was retransmitted makes it ambiguous.
    pub sent_ns: Option<u64>,
    /// When the retransmission was sent that filled the first hole: a receiver's timestamp echo
    /// tells (RFC 7323 section 4.3).
    pub repair_sent_ns: Option<u64>,
    /// Of what is newly delivered, when the segment was sent that was sent last, and its end; of two
    /// sent at once, the one of the higher number. An end of 0: nothing is.
    pub newest: (u64, u32),
}

/// The segments from `una` to `nxt`.
#[derive(Default)]
pub(super) struct Scoreboard {
    pub(super) segments: Ring<Segment>,
    /// First segment not cumulatively acknowledged.
    pub(super) una: u32,
    sacked: u32,
    pub(super) lost: u32,
    pub(super) retrans: u32,
    /// Everything below that was lost has been retransmitted.
    pub(super) repaired: u32,
    /// No segment from here on has a flag: beyond it the short way does.
    pub(super) flagged_end: u32,
    /// End of the highest segment that was SACKed (RFC 8985 `RACK.fack`, where it tells something).
    sacked_end: u32,
    pub(super) rack: Rack,
    /// Blocks that were processed, so that long ones are not walked again with every ACK.
    known: [(u32, u32); 4],
}

impl Scoreboard {
    #[inline]
    pub(super) fn una(&self) -> u32 {
        self.una
    }
    #[inline]
    pub(super) fn nxt(&self) -> u32 {
        self.una + self.segments.len() as u32
    }
    #[inline]
    pub(super) fn outstanding(&self) -> u32 {
        self.segments.len() as u32
    }
    pub(super) fn sacked(&self) -> u32 {
        self.sacked
    }
    pub(super) fn lost(&self) -> u32 {
        self.lost
    }
    /// Packets thought to be in the network (`pipe` of RFC 6675).
    #[inline]
    pub(super) fn in_network(&self) -> u32 {
        (self.segments.len() as u32 + self.retrans).saturating_sub(self.sacked + self.lost)
    }

    /// The first outstanding segment's entry.
    pub(super) fn first(&self) -> Option<&impl Sized> {
        self.segments.front()
    }

    /// A new segment was sent; gives its number.
    #[inline]
    pub(super) fn push(&mut self, now_ns: u64) -> u32 {
        self.segments.push_back(Segment(now_ns << FLAG_BITS));
        self.nxt() - 1
    }

    pub(super) fn at(&mut self, number: u32) -> &mut Segment {
        self.segments.get_mut((number - self.una) as usize).expect("outstanding")
    }

    /// Everything below `cumulative` (>= una) is acknowledged.
    #[inline]
    pub(super) fn acknowledge(&mut self, cumulative: u32, now_ns: u64) -> News {
        let count = cumulative - self.una;
        if self.una >= self.flagged_end {
            // RTT of the latest segment: the one whose arrival caused this ACK.
            let mut last = None;
            for _ in 0..count {
                last = self.segments.pop_front();
            }
            self.una = cumulative;
            let sent_ns = last.map(Segment::sent_ns);
            let newest = sent_ns.map_or((0, 0), |sent_ns| (sent_ns, cumulative));
            if let Some(sent_ns) = sent_ns {
                self.rack.delivered_in_order(sent_ns, cumulative, now_ns);
            }
            return News { delivered_pkts: count, sent_ns, repair_sent_ns: None, newest };
        }
        let mut news = News::default();
        let mut ambiguous = false;
        for number in self.una..cumulative {
            let Some(segment) = self.segments.pop_front() else { break };
            if number == self.una && segment.has(EVER_RETRANS) && !segment.has(SACKED) {
                news.repair_sent_ns = Some(segment.sent_ns());
            }
            self.lost -= u32::from(segment.has(LOST));
            self.retrans -= u32::from(segment.has(RETRANS));
            ambiguous |= segment.has(EVER_RETRANS);
            if segment.has(SACKED) {
                self.sacked -= 1;
            } else {
                if number + 1 < self.sacked_end && !segment.has(EVER_RETRANS) {
                    self.rack.note_reordering();
                }
                news.delivered_pkts += 1;
                news.sent_ns = news.sent_ns.max(Some(segment.sent_ns()));
                news.newest = news.newest.max((segment.sent_ns(), number + 1));
                let again = segment.has(EVER_RETRANS);
                self.rack.delivered(segment.sent_ns(), number + 1, now_ns, again);
            }
        }
        self.una = cumulative;
        if ambiguous {
            // What waited behind a hole was delayed by the hole, not by the path.
            news.sent_ns = None;
        }
        news
    }

    /// Takes SACK blocks in.
    pub(super) fn sack(&mut self, blocks: &[(u32, u32)], now_ns: u64, news: &mut News) {
        // What one ACK reports is in order: the ACKs before it may be lost.
        let before_end = self.sacked_end;
        for &(start, end) in blocks {
            let (start, end) = (start.max(self.una), end.min(self.nxt()));
            if start >= end {
                continue;
            }
            let (mut from, mut to) = (start, end);
            for &(known_start, known_end) in &self.known {
                if known_start <= from && from < known_end {
                    from = known_end;
                }
                if known_start < to && to <= known_end {
                    to = known_start;
                }
            }
            for number in from..to.max(from) {
                self.sack_one(number, before_end, now_ns, news);
            }
            self.sacked_end = self.sacked_end.max(end);
            self.remember((start, end));
        }
    }

    fn remember(&mut self, block: (u32, u32)) {
        let inside = |k: &(u32, u32)| block.0 <= k.0 && k.1 <= block.1;
        let slot = self.known.iter().position(inside).unwrap_or(self.known.len() - 1);
        self.known[..=slot].rotate_right(1);
        self.known[0] = block;
    }

    fn sack_one(&mut self, number: u32, before_end: u32, now_ns: u64, news: &mut News) {
        let segment = self.at(number);
        if segment.has(SACKED) {
            return;
        }
        let was = *segment;
        segment.0 = (segment.0 | SACKED) & !(LOST | RETRANS);
        self.lost -= u32::from(was.has(LOST));
        self.retrans -= u32::from(was.has(RETRANS));
        self.sacked += 1;
        self.flagged_end = self.flagged_end.max(number + 1);
        self.rack.delivered(was.sent_ns(), number + 1, now_ns, was.has(EVER_RETRANS));
        news.delivered_pkts += 1;
        news.newest = news.newest.max((was.sent_ns(), number + 1));
        if !was.has(EVER_RETRANS) {
            if number + 1 < before_end {
                self.rack.note_reordering();
            }
            news.sent_ns = news.sent_ns.max(Some(was.sent_ns()));
        }
    }

    /// The first segment is lost, whatever is known of it; gives 1 if that is news.
    pub(super) fn mark_first_lost(&mut self) -> u32 {
        let Some(segment) = self.segments.get_mut(0).filter(|s| !s.has(LOST)) else { return 0 };
        segment.0 |= LOST;
        self.lost += 1;
        self.flagged_end = self.flagged_end.max(self.una + 1);
        1
    }

    /// Where nothing is SACKed: packets that have arrived, judged by the duplicate ACKs.
    pub(super) fn set_counted(&mut self, pkts: u32) {
        self.sacked = pkts;
    }

    /// Reductions were unnecessary: nothing is thought lost any more.
    pub(super) fn forget_losses(&mut self) {
        let mut resent = Vec::new();
        for (number, segment) in (self.una..).zip(self.segments.iter_mut()) {
            segment.0 &= !(LOST | RETRANS);
            if segment.has(EVER_RETRANS) && !segment.has(SACKED) {
                resent.push((segment.sent_ns(), number));
            }
        }
        resent.sort_unstable();
        self.rack.restart(self.una, resent);
        (self.lost, self.retrans) = (0, 0);
        self.repaired = self.una;
    }

    /// The first segment that is lost and not retransmitted since.
    pub(super) fn next_lost(&mut self) -> Option<u32> {
        if self.lost == self.retrans {
            return None;
        }
        let mut number = self.repaired.max(self.una);
        while number < self.nxt() {
            let segment = self.at(number);
            if segment.has(LOST) && !segment.has(RETRANS) {
                self.repaired = number;
                return Some(number);
            }
            number += 1;
        }
        None
    }

    /// Segment `number` was sent again. One that was marked lost counts as in the network again.
    pub(super) fn retransmitted(&mut self, number: u32, now_ns: u64) {
        let segment = self.at(number);
        let flags = segment.0 & (SACKED | LOST | RETRANS) | EVER_RETRANS;
        let newly = u64::from(segment.has(LOST) && !segment.has(RETRANS));
        segment.0 = (now_ns << FLAG_BITS) | flags | (newly * RETRANS);
        self.retrans += newly as u32;
        self.flagged_end = self.flagged_end.max(number + 1);
        self.rack.retransmitted(number, now_ns, self.una);
    }
}

#[cfg(test)]
mod tests {
    use super::{super::loss_detection::Losses, *};
    use crate::receiver::Receiver;
    use knee_net::NEVER;
    use knee_run::TcpOptions;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The definitions, as sets of segment numbers.
    #[derive(Default)]
    struct Model {
        una: u32,
        /// RFC 8985 `RACK.xmit_ts` and `RACK.end_seq`; `RACK.rtt`.
        latest: (u64, u32),
        rtt_ns: u64,
        /// Of each segment ever sent: when last, and whether more than once.
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
        /// The packet so many places into the network arrives, those before it are lost; whether
        /// its ACK arrives.
        Arrive(u8, bool),
        Retransmit(u8),
        /// What was sent so long ago is lost.
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

        /// Whatever is sent, lost, acknowledged and sent again, the board says what the model says.
        #[test]
        fn knows_what_is_where(steps in prop::collection::vec(step(), 1..200)) {
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
                        let blocks = receiver.blocks().unwrap_or_default();
                        let mut news = board.acknowledge(receiver.cumulative(), now_ns);
                        board.sack(&blocks, now_ns, &mut news);
                        let known = model.acknowledge(receiver.cumulative(), &blocks, now_ns);
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
                prop_assert_eq!((board.una(), board.nxt()), (model.una, model.nxt()));
                prop_assert_eq!(board.outstanding(), outstanding);
                prop_assert_eq!(board.sacked() as usize, model.sacked.len());
                prop_assert_eq!(board.lost() as usize, model.lost.len());
                let in_network = outstanding as usize + model.retrans.len()
                    - model.sacked.len() - model.lost.len();
                prop_assert_eq!(board.in_network() as usize, in_network);
            }
        }
    }
}
