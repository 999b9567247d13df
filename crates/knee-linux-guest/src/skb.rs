//! A packet on the path.

use knee_net::{Ecn, Numbered, Packet};
use std::{ffi::c_void, ptr};

/// A packet on the path: of the kernel, or of a flow without feedback, which has no `skb`.
#[derive(Clone, Debug)]
pub(crate) struct Skb {
    pub(crate) skb: *mut c_void,
    pub(crate) bytes: u32,
    pub(crate) flow: u32,
    pub(crate) number: u32,
    /// Sequence space that it covers; empty of pure ACKs.
    pub(crate) covers: (u64, u64),
    pub(crate) ecn: Ecn,
}

impl Default for Skb {
    fn default() -> Self {
        Self {
            skb: ptr::null_mut(),
            bytes: 0,
            flow: 0,
            number: 0,
            covers: (0, 0),
            ecn: Ecn::NotCapable,
        }
    }
}

impl Packet for Skb {
    #[inline]
    fn wire_bytes(&self) -> u32 {
        self.bytes
    }

    fn flow_key(&self) -> u32 {
        self.flow
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn mark(&mut self) {
        self.ecn = Ecn::Marked;
    }
}

impl Numbered for Skb {
    #[inline]
    fn flow(&self) -> u32 {
        self.flow
    }

    #[inline]
    fn number(&self) -> u32 {
        self.number
    }
}
