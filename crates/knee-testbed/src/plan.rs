//! The requests to the kernel: addresses, ports, options.

use knee_model::{
    FlowKind, HostError, Ns, RunSpec, TcpOptions, TcpSpec, Transport,
    failure::unsupported,
    linux::{self, FIRST_PORT, Refusal, Stack},
    sysctl,
};
use knee_quic_run::Terms;
use nix::sys::socket::SockaddrIn;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV4};

/// IP and UDP headers, bytes.
pub(crate) const UDP_HEADERS_BYTES: u32 = 28;
/// The smallest UDP packet: headers, number, time of sending.
const MIN_UDP_BYTES: u32 = UDP_HEADERS_BYTES + 12;

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
    pub(crate) fn new(spec: &RunSpec) -> Result<Self, HostError> {
        linux::check_flows(spec).map_err(refused)?;
        let mut approximations: Vec<_> = sysctl::unset(&spec.sysctls).into_iter().collect();
        let mut stack: Option<Stack> = None;
        let mut flows = Vec::with_capacity(spec.flows.len());
        for (index, flow) in spec.flows.iter().enumerate() {
            let mut quic = None;
            let (packet_bytes, tcp, receive_window_bytes) = match &flow.kind {
                FlowKind::Tcp(tcp) if tcp.transport == Transport::Quic => {
                    if tcp.options.ecn {
                        let why = "QUIC over real sockets does not support it: leave it out, or \
                                   run it with --host quic";
                        return Err(refused(Refusal::of(flow, "tcp.ecn", why)));
                    }
                    quic = Some(Terms::of(spec, flow, tcp, &mut approximations)?);
                    (flow.packet_bytes(), None, 0)
                }
                FlowKind::Tcp(TcpSpec { options, .. }) => {
                    let own = linux::check(flow, options, &mut approximations);
                    let own = own.map_err(refused)?;
                    own.check_same(flow, stack.get_or_insert(own)).map_err(refused)?;
                    let window_bytes =
                        linux::receive_window_bytes(spec, flow, options, &mut approximations);
                    let packet_bytes = options.mss_bytes + options.header_bytes;
                    (packet_bytes, Some(options.clone()), window_bytes)
                }
                FlowKind::Udp { packet_bytes, .. } | FlowKind::Probe { packet_bytes, .. } => {
                    if *packet_bytes < MIN_UDP_BYTES {
                        let why =
                            format!("a packet needs {MIN_UDP_BYTES} B for headers and timestamp");
                        return Err(refused(Refusal::of(flow, "packet size", why)));
                    }
                    (*packet_bytes, None, 0)
                }
            };
            linux::check_packet(flow, packet_bytes).map_err(refused)?;
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
        let stack = stack.unwrap_or_default();
        // Most hold for every flow.
        approximations.sort();
        approximations.dedup();
        Ok(Self { stack, flows, mtu_bytes, approximations })
    }
}

fn refused(refusal: Refusal) -> HostError {
    let Refusal { what, why } = refusal;
    unsupported(format!("{what}: not possible on the kernel: {why}"))
}
