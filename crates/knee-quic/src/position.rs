//! Packet numbers as the contract's wrapping positions.
//!
//! quinn gives the number of the last packet of each datagram, and with each ACK frame the largest number
//! acknowledged so far. It does not give the packet number space, of which there are three (RFC 9000 section
//! 12.3). Numbers of one space only rise. A number that does not rise begins another space, and positions
//! continue after it. Only in the handshake are several spaces in use. A number of another space than assumed
//! moves a position forward too early, never back, so that a round of the handshake may be counted short.

/// Positions of sending and acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Positions {
    /// Position of packet number 0 of the present space.
    base: u32,
    /// Number after the last one known to be sent in the present space.
    next_number: u64,
    snd_pos: u32,
    ack_pos: u32,
}

impl Positions {
    /// Starts anywhere, as a real connection's sequence numbers do.
    pub(crate) fn new(start: u32) -> Self {
        Self { base: start, next_number: 0, snd_pos: start, ack_pos: start }
    }

    /// Position after the last packet sent.
    pub(crate) fn snd_pos(&self) -> u32 {
        self.snd_pos
    }

    /// Position after the newest packet acknowledged.
    pub(crate) fn ack_pos(&self) -> u32 {
        self.ack_pos
    }

    /// A datagram's last packet has this number.
    pub(crate) fn sent(&mut self, number: u64) {
        if number < self.next_number {
            self.base = self.base.wrapping_add(self.next_number as u32);
        }
        self.reach(number);
    }

    /// Sets the largest number acknowledged; returns whether it is new.
    pub(crate) fn acked(&mut self, number: u64) -> bool {
        if number >= self.next_number {
            // quinn does not report probes of the path's MTU.
            self.reach(number);
        }
        let pos = self.base.wrapping_add(number as u32).wrapping_add(1);
        let news = after(pos, self.ack_pos);
        if news {
            self.ack_pos = pos;
        }
        news
    }

    fn reach(&mut self, number: u64) {
        self.next_number = number.saturating_add(1);
        self.snd_pos = self.base.wrapping_add(self.next_number as u32);
    }
}

/// Returns whether `a` comes after `b`.
pub(crate) fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_follow_each_other() {
        let mut p = Positions::new(u32::MAX - 1);
        let at = |p: &Positions| (p.snd_pos().wrapping_add(2), p.ack_pos().wrapping_add(2));
        // Initial 0 and 1, acknowledged; Handshake 0; then data.
        p.sent(1);
        assert!(p.acked(1) && !p.acked(1));
        assert_eq!(at(&p), (2, 2));
        p.sent(0);
        assert_eq!(at(&p), (3, 2));
        assert!(p.acked(0));
        p.sent(0);
        p.sent(9);
        assert_eq!(at(&p), (13, 3));
        assert!(p.acked(4) && !p.acked(3));
        assert_eq!(at(&p), (13, 8));
        // A probe of the MTU, which quinn did not report.
        assert!(p.acked(10));
        assert_eq!(at(&p), (14, 14));
    }

    #[test]
    fn a_new_path_continues_the_numbers() {
        let mut p = Positions::new(7);
        p.sent(1000);
        assert!(p.acked(1000));
        assert_eq!((p.snd_pos(), p.ack_pos()), (1008, 1008));
    }
}
