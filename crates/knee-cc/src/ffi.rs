//! The C side of the contract, field for field (`cc/include/knee/contract.h`,
//! `cc/host/native/knee/host.h`). Layouts are checked against each other by the tests.

use std::ffi::{c_char, c_void};

/// `struct cc_conn`: the connection as an algorithm sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Conn {
    /// Host clock at this event, microseconds.
    pub now_us: u64,
    /// Pacing rate that the algorithm asks for, bytes/s; 0: host decides.
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
    /// What the algorithm reports of this call: `NOTE_*`.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

type Call<A> = unsafe extern "C" fn(*mut Conn, *mut c_void, *const c_void, A);
type Window = unsafe extern "C" fn(*mut Conn, *mut c_void, *const c_void) -> u32;

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
    pub init: unsafe extern "C" fn(*mut Conn, *mut c_void, *const c_void),
    pub on_rtt: Call<*const Ack>,
    pub on_ack: Call<*const Ack>,
    pub ssthresh: Window,
    pub on_event: Call<u32>,
    pub undo: Window,
    pub observe: unsafe extern "C" fn(*const c_void, *const c_void, *mut [u32; 4]),
}

// SAFETY: every pointer leads to constant data of static lifetime.
unsafe impl Sync for Algorithm {}
