//! What is outstanding, and what is known of each segment: the scoreboard of RFC 6675 with the
//! loss detection of RFC 8985 (RACK).

use knee_net::{NEVER, Ring};

/// One outstanding segment in eight bytes: when it was last sent, and flags.
#[derive(Clone, Copy, Default)]
struct Segment(u64);

const SACKED: u64 = 1;
const LOST: u64 = 2;
/// A retransmission is in the network.
const RETRANS: u64 = 4;
/// Retransmitted at some time: without timestamps it gives no RTT sample (Karn).
const EVER_RETRANS: u64 = 8;
const FLAG_BITS: u32 = 4;

impl Segment {
    fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }
    fn sent_ns(self) -> u64 {
        self.0 >> FLAG_BITS
    }
}

/// Duplicate ACKs, or SACKed segments, that tell of a loss (RFC 5681, RFC 8985 `DupThresh`).
pub(crate) const DUP_THRESH: u32 = 3;

/// What an acknowledgement told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
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

/// The delivered segment that was sent last (RFC 8985 section 5.2): everything sent before it can
/// be judged.
#[derive(Default)]
struct Latest {
    sent_ns: u64,
    end: u32,
    rtt_ns: u64,
    retransmitted: bool,
}

impl Latest {
    /// Whether a segment was sent before: of two sent at once, the one of the lower number.
    fn is_after(&self, sent_ns: u64, number: u32) -> bool {
        (self.sent_ns, self.end) > (sent_ns, number + 1)
    }
}

/// What [`Scoreboard::mark_lost`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Losses {
    /// Segments newly marked lost.
    pub marked_pkts: u32,
    /// Some of them were repairs.
    pub again: bool,
    /// When the next one will be lost unless it is delivered; or [`NEVER`].
    pub next_ns: u64,
}

impl Losses {
    pub(crate) const NONE: Self = Self { marked_pkts: 0, again: false, next_ns: NEVER };
}

/// The segments from `una` to `nxt`.
#[derive(Default)]
pub(crate) struct Scoreboard {
    segments: Ring<Segment>,
    /// First segment not cumulatively acknowledged.
    una: u32,
    sacked: u32,
    lost: u32,
    retrans: u32,
    latest: Latest,
    /// Least RTT so far, or 0: an ACK that comes sooner after a retransmission is of the original.
    min_rtt_ns: u64,
    /// Everything below has been judged: it is SACKed, marked lost or retransmitted.
    judged: u32,
    /// Retransmissions not judged yet, in the order of their sending: number, time.
    resent: Ring<(u32, u64)>,
    /// Everything below that was lost has been retransmitted.
    repaired: u32,
    /// No segment from here on has a flag: beyond it the short way does.
    flagged_end: u32,
    /// End of the highest segment that was SACKed (RFC 8985 `RACK.fack`, where it tells something).
    sacked_end: u32,
    /// A segment arrived after a later one, though it was sent only once (`RACK.reordering_seen`).
    reordered: bool,
    /// Blocks that were worked off, so that long ones are not walked again with every ACK.
    known: [(u32, u32); 4],
}

impl Scoreboard {
    #[inline]
    pub(crate) fn una(&self) -> u32 {
        self.una
    }
    #[inline]
    pub(crate) fn nxt(&self) -> u32 {
        self.una + self.segments.len() as u32
    }
    #[inline]
    pub(crate) fn outstanding(&self) -> u32 {
        self.segments.len() as u32
    }
    pub(crate) fn sacked(&self) -> u32 {
        self.sacked
    }
    pub(crate) fn lost(&self) -> u32 {
        self.lost
    }
    /// Packets thought to be in the network (`pipe` of RFC 6675).
    #[inline]
    pub(crate) fn in_network(&self) -> u32 {
        (self.segments.len() as u32 + self.retrans).saturating_sub(self.sacked + self.lost)
    }

    /// The first outstanding segment's entry.
    pub(crate) fn first(&self) -> Option<&impl Sized> {
        self.segments.front()
    }

    /// A new segment was sent; gives its number.
    #[inline]
    pub(crate) fn push(&mut self, now_ns: u64) -> u32 {
        self.segments.push_back(Segment(now_ns << FLAG_BITS));
        self.nxt() - 1
    }

    fn at(&mut self, number: u32) -> &mut Segment {
        self.segments.get_mut((number - self.una) as usize).expect("outstanding")
    }

    /// Everything below `cumulative` (>= una) is acknowledged.
    #[inline]
    pub(crate) fn acknowledge(&mut self, cumulative: u32, now_ns: u64) -> News {
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
            if let Some(sent_ns) = sent_ns
                && sent_ns >= self.latest.sent_ns
            {
                let rtt_ns = now_ns - sent_ns;
                self.latest = Latest { sent_ns, end: cumulative, rtt_ns, retransmitted: false };
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
                self.reordered |= number + 1 < self.sacked_end && !segment.has(EVER_RETRANS);
                news.delivered_pkts += 1;
                news.sent_ns = news.sent_ns.max(Some(segment.sent_ns()));
                news.newest = news.newest.max((segment.sent_ns(), number + 1));
                let again = segment.has(EVER_RETRANS);
                self.delivered(segment.sent_ns(), number + 1, now_ns, again);
            }
        }
        self.una = cumulative;
        if ambiguous {
            // What waited behind a hole was delayed by the hole, not by the path.
            news.sent_ns = None;
        }
        news
    }

    /// An RTT was measured.
    #[inline]
    pub(crate) fn learn_rtt(&mut self, rtt_ns: u64) {
        if self.min_rtt_ns == 0 || rtt_ns < self.min_rtt_ns {
            self.min_rtt_ns = rtt_ns;
        }
    }

    pub(crate) fn min_rtt_ns(&self) -> u64 {
        self.min_rtt_ns
    }

    /// Whether the path is known to reorder (RFC 8985 section 6.2, step 3).
    pub(crate) fn reordered(&self) -> bool {
        self.reordered
    }

    /// A retransmission turned out to be unnecessary: its segment was late, not lost.
    pub(crate) fn note_reordering(&mut self) {
        self.reordered = true;
    }

    /// RFC 8985 section 6.2, steps 1 and 2; its RTT is that of the segment that was sent last.
    fn delivered(&mut self, sent_ns: u64, end: u32, now_ns: u64, retransmitted: bool) {
        let rtt_ns = now_ns - sent_ns;
        let original = retransmitted && rtt_ns < self.min_rtt_ns;
        if !original && (sent_ns, end) > (self.latest.sent_ns, self.latest.end) {
            self.latest = Latest { sent_ns, end, rtt_ns, retransmitted };
        }
    }

    /// Takes SACK blocks in.
    pub(crate) fn sack(&mut self, blocks: &[(u32, u32)], now_ns: u64, news: &mut News) {
        // What one ACK tells of is in order: the ACKs before it may be lost.
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
        self.delivered(was.sent_ns(), number + 1, now_ns, was.has(EVER_RETRANS));
        news.delivered_pkts += 1;
        news.newest = news.newest.max((was.sent_ns(), number + 1));
        if !was.has(EVER_RETRANS) {
            self.reordered |= number + 1 < before_end;
            news.sent_ns = news.sent_ns.max(Some(was.sent_ns()));
        }
    }

    /// Marks lost what was sent before the latest delivered segment, more than its RTT and
    /// `reo_wnd_ns` ago (RFC 8985 section 6.2, step 5); retransmissions too.
    pub(crate) fn mark_lost(&mut self, now_ns: u64, reo_wnd_ns: u64) -> Losses {
        let mut losses = Losses::NONE;
        let patience_ns = self.latest.rtt_ns + reo_wnd_ns;
        // First transmissions are ordered by number as by time.
        let mut number = self.judged.max(self.una);
        while number < self.nxt() {
            let segment = *self.at(number);
            if !segment.has(SACKED | LOST | EVER_RETRANS) {
                if !self.latest.is_after(segment.sent_ns(), number) {
                    break;
                }
                if segment.sent_ns() + patience_ns > now_ns {
                    losses.next_ns = segment.sent_ns() + patience_ns;
                    break;
                }
                self.at(number).0 |= LOST;
                losses.marked_pkts += 1;
            }
            number += 1;
        }
        self.judged = number;
        self.lost += losses.marked_pkts;
        if losses.marked_pkts > 0 {
            self.flagged_end = self.flagged_end.max(number);
        }
        while let Some(&(number, sent_ns)) = self.resent.front() {
            if self.is_unanswered(number, sent_ns) {
                if !self.latest.is_after(sent_ns, number) {
                    break;
                }
                if sent_ns + patience_ns > now_ns {
                    losses.next_ns = losses.next_ns.min(sent_ns + patience_ns);
                    break;
                }
                let was = *self.at(number);
                self.at(number).0 = (was.0 | LOST) & !RETRANS;
                self.lost += u32::from(!was.has(LOST));
                self.retrans -= u32::from(was.has(RETRANS));
                self.repaired = self.repaired.min(number);
                losses.marked_pkts += 1;
                losses.again |= was.has(RETRANS);
            }
            self.resent.pop_front();
        }
        losses
    }

    /// Whether the retransmission of `number` at `sent_ns` is the last one, and may be in the
    /// network.
    fn is_unanswered(&mut self, number: u32, sent_ns: u64) -> bool {
        if number < self.una {
            return false;
        }
        let segment = self.at(number);
        let gone = segment.has(SACKED) || segment.has(LOST) && !segment.has(RETRANS);
        !gone && segment.sent_ns() == sent_ns
    }

    /// A timeout: the first segment is lost, and what was sent at least `patience_ns` ago,
    /// retransmissions included (RFC 8985 section 6.3).
    pub(crate) fn mark_timed_out(&mut self, now_ns: u64, patience_ns: u64) {
        (self.lost, self.retrans) = (0, 0);
        let mut first = true;
        for segment in self.segments.iter_mut().filter(|s| !s.has(SACKED)) {
            if std::mem::take(&mut first) || segment.sent_ns() + patience_ns <= now_ns {
                segment.0 = (segment.0 | LOST) & !RETRANS;
            }
            self.lost += u32::from(segment.has(LOST));
            self.retrans += u32::from(segment.has(RETRANS));
        }
        self.judged = self.una;
        self.repaired = self.una;
        self.flagged_end = self.nxt();
    }

    /// The first segment is lost, whatever is known of it; gives 1 if that is news.
    pub(crate) fn mark_first_lost(&mut self) -> u32 {
        let Some(segment) = self.segments.get_mut(0).filter(|s| !s.has(LOST)) else { return 0 };
        segment.0 |= LOST;
        self.lost += 1;
        self.flagged_end = self.flagged_end.max(self.una + 1);
        1
    }

    /// Where nothing is SACKed: how many duplicate ACKs say that so many have arrived.
    pub(crate) fn set_counted(&mut self, pkts: u32) {
        self.sacked = pkts;
    }

    /// Whether anything outstanding can have been sent before the latest delivered segment.
    #[inline]
    pub(crate) fn may_have_lost(&self) -> bool {
        self.una < self.flagged_end || self.latest.retransmitted
    }

    /// How long after its sending a segment is lost on a timeout, `reo_wnd_ns` being the tolerance
    /// for reordering.
    pub(crate) fn patience_ns(&self, reo_wnd_ns: u64) -> u64 {
        self.latest.rtt_ns + reo_wnd_ns
    }

    /// Reductions were unnecessary: nothing is thought lost any more.
    pub(crate) fn forget_losses(&mut self) {
        let mut resent = Vec::new();
        for (number, segment) in (self.una..).zip(self.segments.iter_mut()) {
            segment.0 &= !(LOST | RETRANS);
            if segment.has(EVER_RETRANS) && !segment.has(SACKED) {
                resent.push((segment.sent_ns(), number));
            }
        }
        resent.sort_unstable();
        self.resent = Ring::default();
        resent.into_iter().for_each(|(sent_ns, number)| self.resent.push_back((number, sent_ns)));
        (self.lost, self.retrans) = (0, 0);
        self.judged = self.una;
        self.repaired = self.una;
    }

    /// The first segment that is lost and not retransmitted since.
    pub(crate) fn next_lost(&mut self) -> Option<u32> {
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
    pub(crate) fn retransmitted(&mut self, number: u32, now_ns: u64) {
        let segment = self.at(number);
        let flags = segment.0 & (SACKED | LOST | RETRANS) | EVER_RETRANS;
        let newly = u64::from(segment.has(LOST) && !segment.has(RETRANS));
        segment.0 = (now_ns << FLAG_BITS) | flags | (newly * RETRANS);
        self.retrans += newly as u32;
        self.flagged_end = self.flagged_end.max(number + 1);
        while self.resent.front().is_some_and(|(n, _)| *n < self.una) {
            self.resent.pop_front();
        }
        self.resent.push_back((number, now_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receiver::Receiver;
    use knee_run::DelayedAck;
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
            let mut receiver = Receiver::new(1, DelayedAck { every_pkts: 1, timeout_ns: 0 }, 0);
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
