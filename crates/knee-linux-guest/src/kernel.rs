//! The structures of `cc/host/linux/linux.h` and `cc/host/module/knee/shim.h`, and the functions of the kernel.

use knee_cc::{Ack, Conn, OBSERVE_N, STATE_MAX_BYTES};
use std::{
    ffi::{c_char, c_void},
    ptr,
    sync::OnceLock,
};

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
    pub algorithm: *const c_void,
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
    pub headers: *const u8,
    pub headers_bytes: u32,
    pub bytes: u32,
}

impl KernelPacket {
    /// The start of the packet: at least its headers.
    pub(crate) fn start(&self) -> &[u8] {
        // SAFETY: the kernel says so, and changes no packet that is on the path.
        unsafe { std::slice::from_raw_parts(self.headers, self.headers_bytes as usize) }
    }
}

/// `struct knee_sysctl`.
#[repr(C)]
pub struct SysctlTerms {
    pub name: [c_char; 64],
    pub value: [c_char; 192],
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

/// `struct knee_kernel`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Kernel {
    pub deliver: unsafe extern "C" fn(skb: *mut c_void, end: u32, marked: u32),
    pub drop: unsafe extern "C" fn(skb: *mut c_void),
    pub packet: unsafe extern "C" fn(skb: *mut c_void, packet: *mut KernelPacket),
    pub flow_start: unsafe extern "C" fn(flow: u32),
    pub flow_write: unsafe extern "C" fn(flow: u32, bytes: u64),
    pub flow_stop: unsafe extern "C" fn(flow: u32),
    pub flow_state: unsafe extern "C" fn(flow: u32, state: *mut FlowState),
    pub run_ended: unsafe extern "C" fn(),
}

/// `struct knee_path`.
#[repr(C)]
pub struct Path {
    pub read: extern "C" fn() -> i32,
    pub open: unsafe extern "C" fn(kernel: *const Kernel, stack: *mut Stack),
    pub variant: unsafe extern "C" fn(variant: u32, terms: *mut VariantTerms),
    pub flow: unsafe extern "C" fn(flow: u32, terms: *mut FlowTerms),
    pub sysctl: unsafe extern "C" fn(end: u32, index: u32, terms: *mut SysctlTerms) -> i32,
    pub refuse: unsafe extern "C" fn(terms: *const SysctlTerms, error: i32),
    pub advance: extern "C" fn(now_ns: u64) -> u64,
    pub send: unsafe extern "C" fn(now_ns: u64, end: u32, packet: *const KernelPacket) -> u64,
    pub received: extern "C" fn(now_ns: u64, flow: u32, bytes: u32),
    pub called: unsafe extern "C" fn(flow: u32, call: *const Called),
    pub first_draw: extern "C" fn(flow: u32) -> u32,
    pub ended: extern "C" fn() -> i32,
    pub fail: unsafe extern "C" fn(flow: u32, doing: *const c_char, error: i32),
    pub finish: extern "C" fn(),
}

static KERNEL: OnceLock<Kernel> = OnceLock::new();

/// Takes the functions of the kernel.
pub(crate) fn take(kernel: Kernel) {
    KERNEL.get_or_init(|| kernel);
}

fn with(call: impl FnOnce(&Kernel)) {
    if let Some(kernel) = KERNEL.get() {
        call(kernel);
    }
}

/// Gives a packet of the kernel to the end `end`.
pub(crate) fn deliver(skb: *mut c_void, end: u32, marked: bool) {
    // SAFETY: the packet is the kernel's, and the path gives it back once.
    with(|kernel| unsafe { (kernel.deliver)(skb, end, marked.into()) });
}

/// Gives a packet of the kernel back that reaches no end.
pub(crate) fn drop_packet(skb: *mut c_void) {
    // SAFETY: the packet is the kernel's, and the path gives it back once.
    with(|kernel| unsafe { (kernel.drop)(skb) });
}

/// The packet of the kernel that `skb` is.
pub(crate) fn packet(skb: *mut c_void) -> KernelPacket {
    let mut packet = KernelPacket { skb, headers: ptr::dangling(), headers_bytes: 0, bytes: 0 };
    // SAFETY: the packet is the kernel's, and has not been given back.
    with(|kernel| unsafe { (kernel.packet)(skb, &mut packet) });
    packet
}

/// Lets a flow connect.
pub(crate) fn flow_start(flow: u32) {
    // SAFETY: the kernel knows the flow.
    with(|kernel| unsafe { (kernel.flow_start)(flow) });
}

/// Lets a flow write `bytes`; without a number, for ever.
pub(crate) fn flow_write(flow: u32, bytes: Option<u64>) {
    // SAFETY: the kernel knows the flow.
    with(|kernel| unsafe { (kernel.flow_write)(flow, bytes.unwrap_or(u64::MAX)) });
}

/// Ends a flow.
pub(crate) fn flow_stop(flow: u32) {
    // SAFETY: the kernel knows the flow.
    with(|kernel| unsafe { (kernel.flow_stop)(flow) });
}

/// Wakes the kernel's thread after the end of the run.
pub(crate) fn run_ended() {
    // SAFETY: it only wakes a thread.
    with(|kernel| unsafe { (kernel.run_ended)() });
}

/// The state of a flow's sender, now.
pub(crate) fn flow_state(flow: u32) -> FlowState {
    let mut state = FlowState::default();
    // SAFETY: the kernel knows the flow, and writes one of these.
    with(|kernel| unsafe { (kernel.flow_state)(flow, &mut state) });
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
