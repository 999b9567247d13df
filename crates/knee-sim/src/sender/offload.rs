//! Bursts, as Linux's segmentation offload makes them (`tcp_tso_autosize`, `tcp_tso_should_defer`): the
//! stack hands several packets down at once, and waits for the next ACK if there is room for a few.

use super::{
    scoreboard::{EVER_RETRANS, SACKED},
    tcb::Tcb,
};
use knee_cc::Phase;
use knee_run::{NS_PER_MS, NS_PER_US};

/// A burst is what the rate sends in 1/1024 s, at least two packets.
const PER_S: u64 = 1024;
const LEAST_PKTS: u64 = 2;
/// Twice the rate of the window in the first half of slow start, else 1.2 times; percent.
const SLOW_START_PERCENT: u64 = 200;
const PERCENT: u64 = 120;
/// On short paths bursts are longer: by the largest one, halved for each 512 us of the least RTT.
const MOST_BYTES: u64 = 1 << 16;
const HALVED_EACH_NS: u64 = 512 * NS_PER_US;
/// The stack waits only if it has sent within this time, and
const RECENT_NS: u64 = NS_PER_MS;
/// an ACK is due within this one, or half an RTT if that is less (older kernels: half an RTT).
const SOON_NS: u64 = NS_PER_MS;
/// It sends what is at least this part of the window.
const PART_OF_WINDOW: u32 = 3;

/// Weight of a sample in the smoothed RTT (RFC 6298).
const WEIGHT: u64 = 8;

/// What the stack knows for this: the smoothed RTT of the first packet that each ACK is for, delayed ACKs
/// included, where [`super::rtt`] has that of the last.
#[derive(Default)]
pub(super) struct Offload {
    srtt_ns: u64,
}

impl Offload {
    /// An ACK of new data is about to be taken in, the first of which may have been sent again.
    pub(super) fn learn(&mut self, tcb: &mut Tcb, now_ns: u64) {
        let una = tcb.board.una();
        let first = *tcb.board.at(una);
        if first.has(EVER_RETRANS | SACKED) {
            return;
        }
        let rtt_ns = now_ns - first.sent_ns();
        self.srtt_ns = match self.srtt_ns {
            0 => rtt_ns,
            srtt_ns => srtt_ns - srtt_ns / WEIGHT + rtt_ns / WEIGHT,
        };
    }

    /// Packets that leave at once if there is room.
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

    /// Whether the sender waits for more room. There is some, of `room_pkts`, but not for a burst; the window
    /// has `window_pkts`.
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
        let oldest = tcb.board.una();
        let ack_due_ns = tcb.board.at(oldest).sent_ns() + self.srtt_ns;
        let soon_ns = now_ns + SOON_NS.min(self.srtt_ns / 2);
        ack_due_ns <= soon_ns && room_pkts < window_pkts / PART_OF_WINDOW
    }
}
