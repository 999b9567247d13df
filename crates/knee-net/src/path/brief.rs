//! Data on their round, kept as small as can be: there is one of them for each packet in flight.

use super::Numbered;
use crate::Ecn;

/// What the receiver of a packet of data needs to know of it, in 8 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Brief {
    /// Flow, ECN field, CWR flag.
    flow_ecn_cwr: u32,
    number: u32,
}

const CWR: u32 = 1;
const ECN_BITS: u32 = 1;
const FLOW_BITS: u32 = 3;

impl Brief {
    /// Flows that can be told apart.
    pub const FLOWS: usize = 1 << (u32::BITS - FLOW_BITS);

    /// Of `packet`, whose flow is one of the first [`Self::FLOWS`].
    #[inline(always)]
    pub fn of(packet: &impl Numbered) -> Self {
        debug_assert!((packet.flow() as usize) < Self::FLOWS);
        let ecn = (packet.ecn() as u32) << ECN_BITS;
        let flow_ecn_cwr = packet.flow() << FLOW_BITS | ecn | u32::from(packet.cwr());
        Self { flow_ecn_cwr, number: packet.number() }
    }

    /// Index of its flow.
    #[inline(always)]
    pub fn flow(self) -> u32 {
        self.flow_ecn_cwr >> FLOW_BITS
    }

    /// Segment or packet number within the flow.
    #[inline(always)]
    pub fn number(self) -> u32 {
        self.number
    }

    /// Its ECN field.
    #[inline(always)]
    pub fn ecn(self) -> Ecn {
        match (self.flow_ecn_cwr >> ECN_BITS) & 3 {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable,
            _ => Ecn::Marked,
        }
    }

    /// Whether its sender has heeded a congestion mark.
    #[inline(always)]
    pub fn cwr(self) -> bool {
        self.flow_ecn_cwr & CWR != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Packet;

    #[derive(Clone, Default)]
    struct Data(u32, u32, Ecn, bool);

    impl Packet for Data {
        fn wire_bytes(&self) -> u32 {
            1500
        }
        fn ecn(&self) -> Ecn {
            self.2
        }
    }

    impl Numbered for Data {
        fn flow(&self) -> u32 {
            self.0
        }
        fn number(&self) -> u32 {
            self.1
        }
        fn cwr(&self) -> bool {
            self.3
        }
    }

    #[test]
    fn nothing_is_lost_by_being_brief() {
        for flow in [0, 1, Brief::FLOWS as u32 - 1] {
            for number in [0, 1, u32::MAX] {
                for ecn in [Ecn::NotCapable, Ecn::Capable, Ecn::Marked] {
                    for cwr in [false, true] {
                        let brief = Brief::of(&Data(flow, number, ecn, cwr));
                        assert_eq!((brief.flow(), brief.number()), (flow, number));
                        assert_eq!((brief.ecn(), brief.cwr()), (ecn, cwr));
                    }
                }
            }
        }
    }
}
