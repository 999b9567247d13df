//! The structures and functions of `cc/host/linux/linux.h` and `cc/host/module/knee/shim.h`.

use knee_cc::{Ack, Conn, OBSERVE_N, STATE_MAX_BYTES};
use std::ffi::{c_char, c_void};

/// `struct knee_stack`.
#[repr(C)]
#[derive(Default)]
pub struct Stack {
    pub zero_after_ns: u64,
    pub flows: u32,
    pub variants: u32,
    pub mtu_bytes: u32,
    pub sack: u32,
    pub timestamps: u32,
    pub idle_restart: u32,
    pub ecn: u32,
    pub reserved: u32,
}

/// Most parameters of an algorithm.
pub(crate) const PARAMS_MAX: usize = 64;

/// `struct knee_variant_terms`.
#[repr(C)]
pub struct VariantTerms {
    pub algorithm: [c_char; 32],
    pub name: [c_char; 16],
    pub n_params: u32,
    pub params: [u32; PARAMS_MAX],
}

/// `struct knee_flow_terms`.
#[repr(C)]
#[derive(Default)]
pub struct FlowTerms {
    pub window_bytes: u64,
    pub tcp: u32,
    pub reverse: u32,
    pub packet_bytes: u32,
    pub mss_bytes: u32,
    pub initial_window_pkts: u32,
    pub rto_min_ms: u32,
    pub ack_each: u32,
    pub cc: [c_char; 16],
    pub reserved: u32,
}

/// `struct knee_flow_state`.
#[repr(C)]
#[derive(Default)]
pub struct FlowState {
    pub connected: u32,
    pub cwnd_pkts: u32,
    pub ssthresh_pkts: u32,
    pub inflight_pkts: u32,
    pub srtt_us: u32,
    pub mss_bytes: u32,
    pub timeouts: u32,
    pub idle: u32,
}

/// `struct knee_packet`.
#[repr(C)]
pub struct KernelPacket {
    pub skb: *mut c_void,
    pub bytes: u32,
    pub flow: u32,
    pub end: u32,
    pub ecn: u32,
    pub seq: u32,
    pub span: u32,
    pub syn: u32,
    pub reserved: u32,
}

/// `struct knee_called`.
#[repr(C)]
pub struct Called {
    pub call: u32,
    pub event: u32,
    pub result_pkts: u32,
    pub state_bytes: u32,
    pub before: Conn,
    pub after: Conn,
    pub ack: Ack,
    pub observed: [u32; OBSERVE_N],
    pub state: [u8; STATE_MAX_BYTES],
}

unsafe extern "C" {
    pub(crate) fn knee_deliver(skb: *mut c_void, end: u32, marked: u32);
    pub(crate) fn knee_drop(skb: *mut c_void);
    pub(crate) fn knee_flow_start(flow: u32);
    pub(crate) fn knee_flow_write(flow: u32, bytes: u64);
    pub(crate) fn knee_flow_stop(flow: u32);
    pub(crate) fn knee_flow_state(flow: u32, state: *mut FlowState);
    pub(crate) fn knee_run_ended();
}

/// The state of a flow's sender, now.
pub(crate) fn flow_state(flow: u32) -> FlowState {
    let mut state = FlowState::default();
    // SAFETY: the kernel writes one of these.
    unsafe { knee_flow_state(flow, &mut state) };
    state
}

/// `text` as a C string, cut to the room that there is.
pub(crate) fn c_text<const N: usize>(text: &str) -> [c_char; N] {
    let mut to = [0; N];
    for (to, from) in to[..N - 1].iter_mut().zip(text.bytes()) {
        *to = from as c_char;
    }
    to
}
