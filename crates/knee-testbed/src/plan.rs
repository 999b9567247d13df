//! The requests to the kernel: addresses, ports, options.

use crate::TestbedError;
use knee_model::{
    FlowKind, FlowSpec, NS_PER_MS, NS_PER_S, Ns, QueueLimit, ReceiverConduct, Recovery, RunSpec,
    TcpOptions, TcpSpec, Transport,
};
use knee_quic_run::Terms;
use nix::sys::socket::SockaddrIn;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV4};

/// Service port of flow 0; flow `i` has the port that lies `i` above. Sender and receiver use it
/// both.
const FIRST_PORT: u16 = 10_000;
/// Flows for which there are ports.
const MAX_FLOWS: usize = (u16::MAX - FIRST_PORT) as usize + 1;
/// IP and UDP headers, bytes.
pub(crate) const UDP_HEADERS_BYTES: u32 = 28;
/// IP and TCP headers without options, bytes.
const TCP_HEADERS_BYTES: u32 = 40;
/// The timestamp option, padded, bytes.
const TIMESTAMPS_BYTES: u32 = 12;
/// The smallest UDP packet: headers, number, time of sending.
const MIN_UDP_BYTES: u32 = UDP_HEADERS_BYTES + 12;
/// The largest window that TCP's window scale can announce, bytes.
const MAX_WINDOW_BYTES: u64 = 65_535 << 14;
/// The kernel's shortest and longest delayed ACK.
const DELAYED_ACK_NS: std::ops::RangeInclusive<Ns> = 40 * NS_PER_MS..=200 * NS_PER_MS;

/// One of the two ends of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// Its packets pass the bottleneck.
    Sender,
    /// Its packets take the reverse path.
    Receiver,
}

impl End {
    /// Its addresses on a path by itself ([`crate::shell`]): IPv4, IPv6 (where the kernel has it).
    pub fn addresses(self) -> [IpAddr; 2] {
        [self.open_address().into(), self.open_address6().into()]
    }

    /// Network of the end's addresses: 10.1.0.0/16 or 10.2.0.0/16.
    pub(crate) fn network(self) -> Ipv4Addr {
        Ipv4Addr::new(10, if self == Self::Sender { 1 } else { 2 }, 0, 0)
    }

    pub(crate) fn other(self) -> Self {
        if self == Self::Sender { Self::Receiver } else { Self::Sender }
    }

    /// The address of flow `index` on this end: each flow has its own, so that it has its own
    /// route, and with it its own window, timer and acknowledgement settings.
    pub(crate) fn address(self, index: usize) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.network().to_bits() + index as u32 + 1)
    }

    /// The address of an open end, which has but one.
    pub(crate) fn open_address(self) -> Ipv4Addr {
        self.address(0)
    }

    /// The same as IPv6: unique local addresses (RFC 4193).
    pub(crate) fn open_address6(self) -> Ipv6Addr {
        let network = if self == Self::Sender { 1 } else { 2 };
        Ipv6Addr::new(0xfd6b, 0x6e65, 0x6500, network, 0, 0, 0, 1)
    }

    pub(crate) fn socket_address(self, index: usize) -> SockaddrIn {
        self.service(index).into()
    }

    /// Address and port of flow `index` on this end.
    pub(crate) fn service(self, index: usize) -> SocketAddrV4 {
        SocketAddrV4::new(self.address(index), FIRST_PORT + index as u16)
    }
}

/// The flow that uses `port`, if any does.
pub(crate) fn flow_of(port: u16) -> Option<usize> {
    port.checked_sub(FIRST_PORT).map(usize::from)
}

/// Settings that a namespace has once for all its flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stack {
    pub sack: bool,
    pub timestamps: bool,
    pub idle_restart: bool,
    pub ecn: bool,
}

pub(crate) struct FlowPlan {
    /// End from which its data come.
    pub source: End,
    pub start_ns: Ns,
    /// Largest whole packet, bytes.
    pub packet_bytes: u32,
    /// TCP options; none of UDP and QUIC.
    pub tcp: Option<TcpOptions>,
    /// A QUIC flow's task.
    pub quic: Option<Terms>,
    /// Largest receive window; 0 of UDP and QUIC.
    pub receive_window_bytes: u64,
}

pub(crate) struct Plan {
    pub stack: Stack,
    pub flows: Vec<FlowPlan>,
    /// MTU of the devices, bytes.
    pub mtu_bytes: u32,
    pub approximations: Vec<String>,
}

impl Plan {
    pub(crate) fn new(spec: &RunSpec) -> Result<Self, TestbedError> {
        if spec.flows.len() > MAX_FLOWS {
            return Err(unsupported("flows", format!("there are ports for at most {MAX_FLOWS}")));
        }
        let mut approximations = Vec::new();
        let mut stack: Option<Stack> = None;
        let mut flows = Vec::with_capacity(spec.flows.len());
        for (index, flow) in spec.flows.iter().enumerate() {
            let mut quic = None;
            let (packet_bytes, tcp, receive_window_bytes) = match &flow.kind {
                FlowKind::Tcp(tcp) if tcp.transport == Transport::Quic => {
                    if tcp.options.ecn {
                        let why = "QUIC over real sockets does not support it: leave it out, or \
                                   run it with --host quic";
                        return Err(unsupported_of(flow, "tcp.ecn", why));
                    }
                    quic = Some(Terms::of(spec, flow, tcp, &mut approximations)?);
                    (flow.packet_bytes(), None, 0)
                }
                FlowKind::Tcp(TcpSpec { options, .. }) => {
                    let own = check(flow, options, &mut approximations)?;
                    let common = *stack.get_or_insert(own);
                    same(flow, "tcp.recovery", own.sack, common.sack)?;
                    same(flow, "tcp.header", own.timestamps, common.timestamps)?;
                    same(flow, "tcp.idle_restart", own.idle_restart, common.idle_restart)?;
                    same(flow, "tcp.ecn", own.ecn, common.ecn)?;
                    let window_bytes = receive_window_bytes(spec, flow, options);
                    if window_bytes < requested_window_bytes(options) {
                        approximations.push(format!(
                            "with delayed ACKs the receive window is limited to ten times what \
                             the path holds, {} packets: until it has opened the kernel \
                             acknowledges each packet",
                            window_bytes / u64::from(options.mss_bytes)
                        ));
                    }
                    let packet_bytes = options.mss_bytes + options.header_bytes;
                    (packet_bytes, Some(options.clone()), window_bytes)
                }
                FlowKind::Udp { packet_bytes, .. } | FlowKind::Probe { packet_bytes, .. } => {
                    if *packet_bytes < MIN_UDP_BYTES {
                        let why =
                            format!("a packet needs {MIN_UDP_BYTES} B for headers and timestamp");
                        return Err(unsupported_of(flow, "packet size", why));
                    }
                    (*packet_bytes, None, 0)
                }
            };
            if packet_bytes > u32::from(u16::MAX) {
                return Err(unsupported_of(
                    flow,
                    "packet size",
                    "an IP packet has at most 65535 B",
                ));
            }
            flows.push(FlowPlan {
                source: if flow.route.reverse { End::Receiver } else { End::Sender },
                start_ns: spec.start_ns(index),
                packet_bytes,
                tcp,
                quic,
                receive_window_bytes,
            });
        }
        let mtu_bytes = flows.iter().map(|f| f.packet_bytes).fold(1500, u32::max);
        let stack =
            stack.unwrap_or(Stack { sack: true, timestamps: true, idle_restart: true, ecn: false });
        // Most hold for every flow.
        approximations.sort();
        approximations.dedup();
        Ok(Self { stack, flows, mtu_bytes, approximations })
    }
}

fn requested_window_bytes(options: &TcpOptions) -> u64 {
    u64::from(options.receive_window_pkts) * u64::from(options.mss_bytes)
}

/// The receive window of a flow. The kernel opens it from 64 kB by two packets for each that arrives,
/// and acknowledges each of these at once. Where ACKs are to be delayed, the path's capacity therefore
/// bounds it: ten times over, for data that wait behind losses that are repaired one by one.
fn receive_window_bytes(spec: &RunSpec, flow: &FlowSpec, options: &TcpOptions) -> u64 {
    let requested_bytes = requested_window_bytes(options);
    if options.delayed_ack.every_pkts == 1 {
        return requested_bytes;
    }
    let path = &spec.path;
    let rtt_ns = path.rtt_range_ns().1
        + path.jitter_forward_ns
        + path.jitter_reverse_ns
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
    let holds_bytes = u64::try_from(in_flight).unwrap_or(u64::MAX).saturating_add(queue_bytes);
    requested_bytes.min(holds_bytes.saturating_mul(10))
}

/// Checks that the kernel can honour a flow's options; gives their requirements for the namespace.
fn check(
    flow: &FlowSpec,
    options: &TcpOptions,
    approximations: &mut Vec<String>,
) -> Result<Stack, TestbedError> {
    let timestamps = match options.header_bytes.checked_sub(TCP_HEADERS_BYTES) {
        Some(0) => false,
        Some(TIMESTAMPS_BYTES) => true,
        _ => {
            let why = "headers have 52 B with timestamps, 40 B without";
            return Err(unsupported_of(flow, "tcp.header", why));
        }
    };
    if requested_window_bytes(options) > MAX_WINDOW_BYTES {
        let why = "TCP can announce at most 1 GiB";
        return Err(unsupported_of(flow, "tcp.receive_window", why));
    }
    if options.rto_min_ns < NS_PER_MS || !options.rto_min_ns.is_multiple_of(NS_PER_MS) {
        return Err(unsupported_of(flow, "tcp.rto_min", "the kernel takes whole milliseconds"));
    }
    match options.delayed_ack.every_pkts {
        1 => {}
        2 => {
            if !DELAYED_ACK_NS.contains(&options.delayed_ack.timeout_ns) {
                let why = "the kernel waits 40 to 200 ms, as it chooses";
                return Err(unsupported_of(flow, "tcp.delayed_ack_timeout", why));
            }
            approximations.push(format!(
                "delayed ACKs are the kernel's own: for every second packet once the receive \
                 window has opened (until then for each), after 40 to 200 ms (requested: {} ms)",
                options.delayed_ack.timeout_ns / NS_PER_MS
            ));
        }
        _ => {
            let why = "the kernel acknowledges every packet or every second one";
            return Err(unsupported_of(flow, "tcp.delayed_ack_every", why));
        }
    }
    if !options.limited_transmit {
        return Err(unsupported_of(flow, "tcp.limited_transmit", "it cannot be turned off"));
    }
    if options.receiver != ReceiverConduct::Honest {
        let why = "the kernel's receiver is honest; run it in the simulator";
        return Err(unsupported_of(flow, "tcp.receiver", why));
    }
    if options.rtt_tick_ns != 0 {
        let why = "the kernel's RTT samples are in microseconds; leave the tick out";
        return Err(unsupported_of(flow, "tcp.rtt_tick", why));
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

fn same(flow: &FlowSpec, option: &str, own: bool, common: bool) -> Result<(), TestbedError> {
    if own == common {
        return Ok(());
    }
    Err(unsupported_of(flow, option, "all TCP flows of a run share it; give them one value"))
}

fn unsupported_of(flow: &FlowSpec, option: &str, why: impl Into<String>) -> TestbedError {
    unsupported(&format!("flow {}: {option}", flow.name), why)
}

fn unsupported(what: &str, why: impl Into<String>) -> TestbedError {
    TestbedError::Unsupported { what: what.into(), why: why.into() }
}
