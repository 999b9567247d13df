//! The outstanding segments, and the state of each: the scoreboard of RFC 6675, kept by the SACK blocks of
//! RFC 2018. `loss_detection` judges losses.

use super::rack::Rack;
use crate::packet::SackBlocks;
use knee_net::Ring;

/// One outstanding segment in eight bytes: its latest sending time, and flags.
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

/// The report of an acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    /// Newly delivered, cumulatively or selectively.
    pub delivered_pkts: u32,
    /// Sending time of the latest of them, unless one that was retransmitted makes it ambiguous.
    pub sent_ns: Option<u64>,
    /// Sending time of the retransmission that filled the first hole: a receiver's timestamp echo shows it
    /// (RFC 7323 section 4.3).
    pub repair_sent_ns: Option<u64>,
    /// Sending time and end of the newly delivered segment that was sent last; of two sent at once, the one
    /// with the higher number. An end of 0: nothing is newly delivered.
    pub newest: (u64, u32),
}

/// The segments from `una` to `nxt`.
#[derive(Default)]
pub(super) struct Scoreboard {
    pub(super) segments: Ring<Segment>,
    /// First segment not cumulatively acknowledged.
    pub(super) una: u32,
    pub(super) sacked: u32,
    pub(super) lost: u32,
    pub(super) retrans: u32,
    /// Everything below that was lost has been retransmitted.
    pub(super) repaired: u32,
    /// No segment from here on has a flag: beyond it the shorter method suffices.
    pub(super) flagged_end: u32,
    /// End of the highest segment that was SACKed (RFC 8985 `RACK.fack`, where it is meaningful).
    sacked_end: u32,
    pub(super) rack: Rack,
    /// The blocks of the ACK before, so that long ones are not walked again with every ACK.
    known: SackBlocks,
}

impl Scoreboard {
    #[inline]
    pub(super) fn nxt(&self) -> u32 {
        self.una + self.segments.len() as u32
    }
    #[inline]
    pub(super) fn outstanding(&self) -> u32 {
        self.segments.len() as u32
    }
    /// Packets thought to be in the network (`pipe` of RFC 6675).
    #[inline]
    pub(super) fn in_network(&self) -> u32 {
        (self.segments.len() as u32 + self.retrans).saturating_sub(self.sacked + self.lost)
    }

    /// A new segment was sent; returns its number.
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
        if self.una >= self.flagged_end {
            return self.acknowledge_in_order(cumulative, now_ns);
        }
        let mut news = News::default();
        let mut ambiguous = false;
        for number in self.una..cumulative {
            let Some(segment) = self.segments.take_front() else { break };
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
                    self.rack.reordered = true;
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
            // Segments behind a hole were delayed by the hole, not by the path.
            news.sent_ns = None;
        }
        news
    }

    /// Like [`Self::acknowledge`], when no segment has a flag.
    #[inline(always)]
    pub(super) fn acknowledge_in_order(&mut self, cumulative: u32, now_ns: u64) -> News {
        let count = cumulative - self.una;
        self.una = cumulative;
        // RTT of the latest segment: the one whose arrival caused this ACK.
        let last = match count {
            0 => None,
            1 => self.segments.take_front(),
            _ => self.segments.take_up_to(count as usize - 1),
        };
        let sent_ns = last.map(Segment::sent_ns);
        let newest = sent_ns.map_or((0, 0), |sent_ns| (sent_ns, cumulative));
        if let Some(sent_ns) = sent_ns {
            self.rack.delivered_in_order(sent_ns, cumulative, now_ns);
        }
        News { delivered_pkts: count, sent_ns, repair_sent_ns: None, newest }
    }

    /// Processes SACK blocks.
    pub(super) fn sack(&mut self, blocks: &SackBlocks, now_ns: u64, news: &mut News) {
        // The blocks of one ACK are in order: the ACKs before it may be lost.
        let before_end = self.sacked_end;
        let before = std::mem::replace(&mut self.known, *blocks);
        let (una, nxt) = (self.una, self.nxt());
        for &(start, end) in blocks {
            // Without branches, since it is as good as random which blocks are known. Unused ones are empty.
            let (mut from, mut to) = (start.max(una), end.min(nxt));
            self.sacked_end = self.sacked_end.max(to);
            for (known_start, known_end) in before {
                from = if (known_start <= from) & (from < known_end) { known_end } else { from };
                to = if (known_start < to) & (to <= known_end) { known_start } else { to };
            }
            for number in from..to {
                self.sack_one(number, before_end, now_ns, news);
            }
        }
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
                self.rack.reordered = true;
            }
            news.sent_ns = news.sent_ns.max(Some(was.sent_ns()));
        }
    }

    /// Marks the first segment lost, whatever its state; returns 1 if it was not marked before.
    pub(super) fn mark_first_lost(&mut self) -> u32 {
        let Some(segment) = self.segments.get_mut(0).filter(|s| !s.has(LOST)) else { return 0 };
        segment.0 |= LOST;
        self.lost += 1;
        self.flagged_end = self.flagged_end.max(self.una + 1);
        1
    }

    /// Sets the number of packets that have arrived, judged by the duplicate ACKs, when nothing is SACKed.
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
