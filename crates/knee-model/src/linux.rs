//! The limits of Linux's TCP: the parts of a specification that it honours, approximates, or does not carry. All hosts
//! with a Linux kernel share them.

use crate::{
    FlowSpec, NS_PER_MS, NS_PER_S, Ns, QueueLimit, ReceiverConduct, Recovery, RunSpec, TcpOptions,
};
use std::ops::RangeInclusive;

/// Service port of flow 0; flow `i` has the port that lies `i` above. Sender and receiver use it both.
pub const FIRST_PORT: u16 = 10_000;
/// Flows for which there are ports.
const MAX_FLOWS: usize = (u16::MAX - FIRST_PORT) as usize + 1;
/// IP and TCP headers without options, bytes.
const TCP_HEADERS_BYTES: u32 = 40;
/// The timestamp option, padded, bytes.
const TIMESTAMPS_BYTES: u32 = 12;
/// The largest window that TCP's window scale can announce, bytes.
const MAX_WINDOW_BYTES: u64 = 65_535 << 14;
/// The kernel's shortest and longest delayed ACK.
const DELAYED_ACK_NS: RangeInclusive<Ns> = 40 * NS_PER_MS..=200 * NS_PER_MS;

/// The settings that an end has once for all its flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Selective acknowledgements.
    pub sack: bool,
    /// The timestamp option.
    pub timestamps: bool,
    /// The window restarts after an idle time.
    pub idle_restart: bool,
    /// ECN is negotiated.
    pub ecn: bool,
}

impl Default for Stack {
    fn default() -> Self {
        Self { sack: true, timestamps: true, idle_restart: true, ecn: false }
    }
}

impl Stack {
    /// Checks that the settings of `flow` are `common`, those of the run's other flows.
    ///
    /// # Errors
    /// The first option that differs.
    pub fn check_same(&self, flow: &FlowSpec, common: &Self) -> Result<(), Refusal> {
        let shared = [
            ("tcp.recovery", self.sack == common.sack),
            ("tcp.header", self.timestamps == common.timestamps),
            ("tcp.idle_restart", self.idle_restart == common.idle_restart),
            ("tcp.ecn", self.ecn == common.ecn),
        ];
        match shared.into_iter().find(|(_, same)| !same) {
            Some((option, _)) => {
                let why = "all TCP flows of a run share it; give them one value";
                Err(Refusal::of(flow, option, why))
            }
            None => Ok(()),
        }
    }
}

/// A part of a specification that the kernel does not carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The option, with its flow.
    pub what: String,
    /// The kernel's restriction, and its abilities.
    pub why: String,
}

impl Refusal {
    /// The refusal of an option of `flow`.
    pub fn of(flow: &FlowSpec, option: &str, why: impl Into<String>) -> Self {
        Self { what: format!("flow {}: {option}", flow.name), why: why.into() }
    }
}

/// Checks that there are ports for all flows.
///
/// # Errors
/// There are not.
pub fn check_flows(spec: &RunSpec) -> Result<(), Refusal> {
    if spec.flows.len() <= MAX_FLOWS {
        return Ok(());
    }
    let why = format!("there are ports for at most {MAX_FLOWS}");
    Err(Refusal { what: "flows".to_owned(), why })
}

/// Checks that `packet_bytes`, a flow's largest packet, fits IP.
///
/// # Errors
/// It does not.
pub fn check_packet(flow: &FlowSpec, packet_bytes: u32) -> Result<(), Refusal> {
    if packet_bytes <= u32::from(u16::MAX) {
        return Ok(());
    }
    Err(Refusal::of(flow, "packet size", "an IP packet has at most 65535 B"))
}

/// Returns the receive window that the specification requests.
fn requested_window_bytes(options: &TcpOptions) -> u64 {
    u64::from(options.receive_window_pkts) * u64::from(options.mss_bytes)
}

/// The receive window of a flow, bytes; `approximations` gets a line if it is smaller than the one requested. The
/// kernel opens it from 64 kB by two packets for each that arrives, and acknowledges each of these at once. Where ACKs
/// are to be delayed, the path's capacity therefore bounds it: ten times over, for data that wait behind losses that
/// are repaired one by one.
pub fn receive_window_bytes(
    spec: &RunSpec,
    flow: &FlowSpec,
    options: &TcpOptions,
    approximations: &mut Vec<String>,
) -> u64 {
    let requested_bytes = requested_window_bytes(options);
    if options.delayed_ack.every_pkts == 1 {
        return requested_bytes;
    }
    let window_bytes = requested_bytes.min(capacity_bytes(spec, flow, options).saturating_mul(10));
    if window_bytes < requested_bytes {
        approximations.push(format!(
            "with delayed ACKs the receive window is limited to ten times what the path holds, {} packets: until it \
             has opened the kernel acknowledges each packet",
            window_bytes / u64::from(options.mss_bytes)
        ));
    }
    window_bytes
}

/// The bytes that the path of a flow holds at most, its queues included.
fn capacity_bytes(spec: &RunSpec, flow: &FlowSpec, options: &TcpOptions) -> u64 {
    let path = &spec.path;
    let rtt_ns = path.rtt_range_ns().1
        + path.jitter_forward_ns
        + path.jitter_reverse_ns
        + path.noise_ns.saturating_mul(2)
        + 2 * (flow.access_delay_ns + flow.access_delay_spread_ns)
        + flow.access_jitter_ns
        + 2 * path.hops_delay_ns(&flow.route);
    let highest_bps = path.rates_of(&flow.route).map(|rate| rate.highest_bps()).fold(0, u64::max);
    let in_flight = u128::from(highest_bps) * u128::from(rtt_ns) / (8 * u128::from(NS_PER_S));
    let bytes = |queue| match queue {
        QueueLimit::Packets(pkts) => {
            u64::from(pkts) * u64::from(options.mss_bytes + options.header_bytes)
        }
        QueueLimit::Bytes(bytes) => bytes,
        QueueLimit::BytesAndOne(bytes) => {
            bytes.saturating_add(u64::from(options.mss_bytes + options.header_bytes))
        }
    };
    let queue_bytes = match &path.reverse {
        Some(link) if flow.route.reverse => bytes(link.queue),
        _ => {
            let hops = path.hops_of(&flow.route).iter();
            hops.map(|hop| bytes(hop.queue)).fold(0, u64::saturating_add)
        }
    };
    u64::try_from(in_flight).unwrap_or(u64::MAX).saturating_add(queue_bytes)
}

/// Checks that the kernel can honour a flow's options; returns their requirements for its end. `approximations` gets a
/// line for each part that the kernel does in its own way.
///
/// # Errors
/// The first option that it cannot honour.
pub fn check(
    flow: &FlowSpec,
    options: &TcpOptions,
    approximations: &mut Vec<String>,
) -> Result<Stack, Refusal> {
    let timestamps = match options.header_bytes.checked_sub(TCP_HEADERS_BYTES) {
        Some(0) => false,
        Some(TIMESTAMPS_BYTES) => true,
        _ => {
            let why = "headers have 52 B with timestamps, 40 B without";
            return Err(Refusal::of(flow, "tcp.header", why));
        }
    };
    if requested_window_bytes(options) > MAX_WINDOW_BYTES {
        let why = "TCP can announce at most 1 GiB";
        return Err(Refusal::of(flow, "tcp.receive_window", why));
    }
    if options.rto_min_ns < NS_PER_MS || !options.rto_min_ns.is_multiple_of(NS_PER_MS) {
        return Err(Refusal::of(flow, "tcp.rto_min", "the kernel takes whole milliseconds"));
    }
    match options.delayed_ack.every_pkts {
        1 => {}
        2 => {
            if !DELAYED_ACK_NS.contains(&options.delayed_ack.timeout_ns) {
                let why = "the kernel waits 40 to 200 ms, as it chooses";
                return Err(Refusal::of(flow, "tcp.delayed_ack_timeout", why));
            }
            approximations.push(format!(
                "delayed ACKs are the kernel's own: for every second packet once the receive \
                 window has opened (until then for each), after 40 to 200 ms (requested: {} ms)",
                options.delayed_ack.timeout_ns / NS_PER_MS
            ));
        }
        _ => {
            let why = "the kernel acknowledges every packet or every second one";
            return Err(Refusal::of(flow, "tcp.delayed_ack_every", why));
        }
    }
    if !options.limited_transmit {
        return Err(Refusal::of(flow, "tcp.limited_transmit", "it cannot be turned off"));
    }
    if options.receiver != ReceiverConduct::Honest {
        let why = "the kernel's receiver is honest; run it in the simulator";
        return Err(Refusal::of(flow, "tcp.receiver", why));
    }
    if options.rtt_tick_ns != 0 {
        let why = "the kernel's RTT samples are in microseconds; leave the tick out";
        return Err(Refusal::of(flow, "tcp.rtt_tick", why));
    }
    if options.recovery == Recovery::Freebsd7 {
        approximations.push(
            "recovery with SACK is the kernel's own: proportional rate reduction instead of the \
             window of FreeBSD 7 (the simulator's `sack`)"
                .to_owned(),
        );
    }
    if options.recovery == Recovery::Newreno {
        approximations.push(
            "recovery without SACK is the kernel's own: proportional rate reduction instead of \
             window inflation (the simulator's `newreno-prr`)"
                .to_owned(),
        );
    }
    Ok(Stack {
        sack: matches!(options.recovery, Recovery::Sack | Recovery::Freebsd7),
        timestamps,
        idle_restart: options.idle_restart,
        ecn: options.ecn,
    })
}
