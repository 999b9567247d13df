//! Pacing (draft-ietf-ccwg-bbr-06, section 5.6.2), for algorithms of profile RATE.

use knee_model::NS_PER_S;

/// Fractions of a nanosecond, so that no rate is rounded.
const FRACTION_BITS: u32 = 16;

/// Times at which packets may leave.
#[derive(Default)]
pub(super) struct Pacer {
    /// `C.next_send_time`, and a fraction of it.
    next_send_ns: u64,
    next_send_fraction: u64,
}

impl Pacer {
    /// Returns the time at which the next packet may leave.
    pub(super) fn next_send_ns(&self) -> u64 {
        self.next_send_ns + u64::from(self.next_send_fraction > 0)
    }

    /// A packet with `bytes` of payload leaves; the next one not before `bytes` / `bytes_per_s`. A
    /// time that was not used is lost: there is no burst to make up for it.
    pub(super) fn sent(&mut self, now_ns: u64, bytes: u32, bytes_per_s: u64) {
        if self.next_send_ns() < now_ns {
            (self.next_send_ns, self.next_send_fraction) = (now_ns, 0);
        }
        // 17, 30 and 16 bits; no packet is larger.
        let product = (u64::from(bytes.min(1 << 17)) * NS_PER_S) << FRACTION_BITS;
        let Some(wait) = product.checked_div(bytes_per_s) else { return };
        let wait = wait + self.next_send_fraction;
        self.next_send_ns += wait >> FRACTION_BITS;
        self.next_send_fraction = wait & ((1 << FRACTION_BITS) - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_model::NS_PER_MS;

    /// 1000 packets at a rate that does not divide a second leave within a nanosecond of their exact times. A
    /// packet that is late for another reason restarts the schedule.
    #[test]
    fn pacing_does_not_drift() {
        let mut pacer = Pacer::default();
        let bytes_per_s = 1_234_567;
        for n in 0..1000 {
            let due_ns = pacer.next_send_ns();
            let exact_ns = f64::from(n) * 1448.0 * 1e9 / 1_234_567.0;
            assert!((due_ns as f64 - exact_ns).abs() < 1.0, "{n}: {due_ns}, {exact_ns}");
            pacer.sent(due_ns, 1448, bytes_per_s);
        }
        let later_ns = pacer.next_send_ns() + NS_PER_S;
        pacer.sent(later_ns, 1000, 1_000_000);
        assert_eq!(pacer.next_send_ns(), later_ns + NS_PER_MS);
        // No rate, no wait.
        pacer.sent(later_ns + NS_PER_S, 1000, 0);
        assert_eq!(pacer.next_send_ns(), later_ns + NS_PER_S);
    }
}
