//! The C side of the contract, field for field (`cc/include/knee/contract.h`,
//! `cc/host/native/knee/host.h`). Layouts are checked against each other by the tests.

use serde::{Deserialize, Serialize};
use std::ffi::{c_char, c_void};

/// `struct cc_conn`: the connection as an algorithm sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C)]
pub struct Conn {
    /// Host clock at this event, microseconds.
    pub now_us: u64,
    /// Pacing rate that the algorithm asks for, profile RATE only, bytes/s; 0: host decides.
    pub pacing_bytes_per_s: u64,
    /// Congestion window, packets.
    pub cwnd_pkts: u32,
    /// Packets acknowledged, counted towards the next +1.
    pub cwnd_cnt: u32,
    /// Slow start threshold, packets.
    pub ssthresh_pkts: u32,
    /// Largest window that the host accepts, packets.
    pub cwnd_max_pkts: u32,
    /// Payload of a full packet, bytes.
    pub mss_bytes: u32,
    /// Estimate of packets in the network.
    pub inflight_pkts: u32,
    /// Packets sent and not cumulatively acknowledged.
    pub outstanding_pkts: u32,
    /// Smoothed RTT, microseconds; 0: none yet.
    pub srtt_us: u32,
    /// Next new position to be sent; wraps.
    pub snd_pos: u32,
    /// First position not cumulatively acknowledged; wraps.
    pub ack_pos: u32,
    /// The algorithm's reports of this call: `NOTE_*`.
    pub notes: u32,
    /// Phase of the stack, see [`crate::Phase`].
    pub phase: u8,
    /// The window, not the application, held sending back.
    pub cwnd_limited: u8,
    /// The application had nothing to send.
    pub app_limited: u8,
    /// Padding.
    pub reserved: u8,
}

/// `struct cc_ack`: one acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C)]
pub struct Ack {
    /// Packets delivered on this connection so far.
    pub delivered_pkts: u64,
    /// Packets newly delivered by this ACK, cumulatively or selectively.
    pub acked_pkts: u32,
    /// Packets newly marked lost by this ACK.
    pub lost_pkts: u32,
    /// RTT sample, microseconds; -1: none.
    pub rtt_us: i32,
    /// 32 uniform random bits.
    pub random: u32,
    /// Profile RATE only, as all below: packets delivered from the sending of the packet sent
    /// latest, of those that this ACK newly acknowledges, to this ACK.
    pub sample_pkts: u32,
    /// The longer of the times to send and to acknowledge them, microseconds; 0: no sample.
    pub sample_us: u32,
    /// `delivered_pkts` when that packet was sent; wraps.
    pub sample_prior_pkts: u32,
    /// Packets in the network before this ACK.
    pub prior_inflight_pkts: u32,
    /// The application, not the window, held sending back: 0 or 1.
    pub sample_app_limited: u32,
    /// Packets by which `ack_pos` has moved; 0 of a duplicate. In `on_rtt` only, else 0.
    pub advanced_pkts: u32,
}

/// `struct cc_param`.
#[repr(C)]
pub struct Param {
    pub name: *const c_char,
    pub alias: *const c_char,
    pub choices: *const c_char,
    pub source: *const c_char,
    pub help: *const c_char,
    pub min: u64,
    pub max: u64,
    pub def: u64,
    pub kind: u32,
    pub index: u32,
}

/// `struct cc_rule`.
#[repr(C)]
pub struct Rule {
    pub left: u32,
    pub op: u32,
    pub right: u32,
}

pub type Init = unsafe extern "C" fn(*mut Conn, *mut c_void, *const c_void);
pub type Call<A> = unsafe extern "C" fn(*mut Conn, *mut c_void, *const c_void, A);
pub type Window = unsafe extern "C" fn(*mut Conn, *mut c_void, *const c_void) -> u32;
pub type Observe = unsafe extern "C" fn(*const c_void, *const c_void, *mut [u32; 4]);
pub type Violated = unsafe extern "C" fn(*const c_void, *const c_void) -> *const c_char;

/// `struct cc_algorithm`.
#[repr(C)]
pub struct Algorithm {
    pub name: *const c_char,
    pub summary: *const c_char,
    pub citation: *const c_char,
    pub observes: *const c_char,
    pub params: *const Param,
    pub rules: *const Rule,
    pub n_params: u32,
    pub n_rules: u32,
    pub state_bytes: u32,
    pub uses_random: u32,
    pub profile: u32,
    pub contract: u32,
    pub init: Init,
    pub on_rtt: Option<Call<*const Ack>>,
    pub on_ack: Call<*const Ack>,
    pub ssthresh: Window,
    pub on_event: Call<u32>,
    pub undo: Window,
    pub observe: Observe,
    pub violated: Violated,
}

// SAFETY: every pointer leads to constant data of static lifetime.
unsafe impl Sync for Algorithm {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{align_of, offset_of, size_of};

    unsafe extern "C" {
        static knee_layout: [u32; 0];
        static knee_layout_n: u32;
    }

    fn size_of_field<S, F>(_: fn(&S) -> &F) -> usize {
        size_of::<F>()
    }

    /// One structure as `layout.c` lists it: (name, size), alignment, (field, offset, size)...
    struct Layout {
        name: &'static str,
        size: usize,
        align: usize,
        fields: Vec<(&'static str, usize, usize)>,
    }

    macro_rules! layout {
        ($type:ty: $($field:ident)*) => {
            Layout {
                name: stringify!($type),
                size: size_of::<$type>(),
                align: align_of::<$type>(),
                fields: vec![$((
                    stringify!($field),
                    offset_of!($type, $field),
                    size_of_field(|s: &$type| &s.$field),
                )),*],
            }
        };
    }

    #[test]
    fn rust_and_c_lay_out_alike() {
        // SAFETY: layout.c defines the array and its length.
        let c: &[u32] = unsafe {
            std::slice::from_raw_parts((&raw const knee_layout).cast(), knee_layout_n as usize)
        };
        let mut c = c.iter().map(|n| *n as usize);
        let mut next = || c.next().expect("layout.c lists as much as this test");
        for rust in [
            layout!(Conn: now_us pacing_bytes_per_s cwnd_pkts cwnd_cnt ssthresh_pkts cwnd_max_pkts
                mss_bytes inflight_pkts outstanding_pkts srtt_us snd_pos ack_pos notes phase
                cwnd_limited app_limited reserved),
            layout!(Ack: delivered_pkts acked_pkts lost_pkts rtt_us random sample_pkts sample_us
                sample_prior_pkts prior_inflight_pkts sample_app_limited advanced_pkts),
            layout!(Param: name alias choices source help min max def kind index),
            layout!(Rule: left op right),
            layout!(Algorithm: name summary citation observes params rules n_params n_rules
                state_bytes uses_random profile contract init on_rtt on_ack ssthresh on_event undo observe violated),
        ] {
            let name = rust.name;
            assert_eq!(rust.size, next(), "size of {name}");
            // Rust may align more strictly (a cache line), never less.
            assert!(rust.align.is_multiple_of(next()), "alignment of {name}");
            assert_eq!(rust.fields.len(), next(), "number of fields of {name}");
            for (field, offset, size) in rust.fields {
                assert_eq!((offset, size), (next(), next()), "offset, size of {name}.{field}");
            }
        }
        assert_eq!(c.next(), None, "layout.c lists more than this test");
    }
}
