//! Sizes of bursts, and the wait until more packets can leave at once, as in Linux's segmentation offload
//! (`tcp_tso_autosize` and `tcp_tso_should_defer`, as of October 2025;
//! docs/explanation/simulator-vs-linux.md, "Bursts"). The sending itself is in `sender.rs`.

use super::{
    rtt::smoothed_ns,
    scoreboard::{EVER_RETRANS, SACKED},
    tcb::Tcb,
};
use knee_cc::Phase;
use knee_model::{NS_PER_MS, NS_PER_US};

/// A burst holds the packets of 1/1024 s at the rate, at least two.
const PER_S: u64 = 1024;
const LEAST_PKTS: u64 = 2;
/// Twice the rate of the window in the first half of slow start, else 1.2 times; percent.
const SLOW_START_PERCENT: u64 = 200;
const PERCENT: u64 = 120;
/// On short paths bursts are longer: by the largest one, halved for each 512 us of the minimum RTT.
const MOST_BYTES: u64 = 1 << 16;
const HALVED_EACH_NS: u64 = 512 * NS_PER_US;
/// The sender waits only if it has sent something within this time.
const RECENT_NS: u64 = NS_PER_MS;
/// It waits only if an ACK is due within this time, or within half an RTT if that is less.
const SOON_NS: u64 = NS_PER_MS;
/// It does not wait if there is room for this part of the window: a third.
const PART_OF_WINDOW: u32 = 3;

/// The smoothed RTT of the first packet that each ACK covers, delays of ACKs included. That of the
/// last packet is in [`super::rtt`].
#[derive(Clone, Copy, Default)]
pub(super) struct Offload {
    srtt_ns: u64,
}

impl Offload {
    /// To be called before an ACK that advances is taken in. Gives no sample if the first packet was sent
    /// again, or reported before.
    pub(super) fn learn(&mut self, tcb: &mut Tcb, now_ns: u64) {
        let una = tcb.board.una;
        let first = *tcb.board.at(una);
        if first.has(EVER_RETRANS | SACKED) {
            return;
        }
        let rtt_ns = now_ns - first.sent_ns();
        self.srtt_ns = match self.srtt_ns {
            0 => rtt_ns,
            srtt_ns => smoothed_ns(srtt_ns, rtt_ns),
        };
    }

    /// Size of a burst, packets.
    pub(super) fn burst_pkts(&self, tcb: &Tcb) -> u32 {
        let conn = &tcb.conn;
        let mss_bytes = u64::from(conn.mss_bytes);
        let percent = match conn.cwnd_pkts < conn.ssthresh_pkts / 2 {
            true => SLOW_START_PERCENT,
            false => PERCENT,
        };
        let window_pkts = u64::from(conn.cwnd_pkts.max(tcb.board.outstanding()));
        let bytes_per_s = (mss_bytes * window_pkts)
            .saturating_mul(percent * 10_000)
            .checked_div(self.srtt_ns / NS_PER_US)
            .unwrap_or(u64::MAX);
        let halvings = tcb.board.rack.min_rtt_ns / HALVED_EACH_NS;
        let longer_bytes = MOST_BYTES.checked_shr(halvings.min(64) as u32).unwrap_or(0);
        let bytes = (bytes_per_s / PER_S).saturating_add(longer_bytes).min(MOST_BYTES);
        (bytes / mss_bytes).max(LEAST_PKTS) as u32
    }

    /// Returns whether the sender waits for more room: there is room for `room_pkts` of a window of
    /// `window_pkts`, fewer than a burst.
    pub(super) fn waits(
        &self,
        tcb: &mut Tcb,
        now_ns: u64,
        last_sent_ns: u64,
        room_pkts: u32,
        window_pkts: u32,
    ) -> bool {
        let recovers = (Phase::Recovery as u8..).contains(&tcb.conn.phase);
        let recent = now_ns <= last_sent_ns.saturating_add(RECENT_NS);
        if tcb.board.outstanding() == 0 || recovers || !recent {
            return false;
        }
        // The next ACK must be due soon: that of the oldest packet, a smoothed RTT after it left.
        let oldest = tcb.board.una;
        let ack_due_ns = tcb.board.at(oldest).sent_ns() + self.srtt_ns;
        let soon_ns = now_ns + SOON_NS.min(self.srtt_ns / 2);
        ack_due_ns <= soon_ns && room_pkts < window_pkts / PART_OF_WINDOW
    }
}
