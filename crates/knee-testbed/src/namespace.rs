//! The two ends: network namespaces of the run's own, each with one TUN device.

use crate::{
    error::{Doing, joined, needs_root, unless},
    plan::{End, Plan},
};
use knee_model::{
    HostError,
    failure::{broken, unavailable},
};
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    address::{AddressAttribute, AddressHeaderFlags, AddressMessage},
    link::{LinkAttribute, LinkFlags, LinkMessage},
    route::{
        RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
        RouteScope, RouteType,
    },
    tc::{TcAttribute, TcHandle, TcHeader, TcMessage},
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::{
    errno::Errno,
    sched::{CloneFlags, setns, unshare},
};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read},
    net::{IpAddr, Ipv4Addr},
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    thread,
};

/// Packets that a device holds for the forwarder, so that a burst reaches the emulated path whole and
/// is queued or dropped there. Linux 6.12 refuses 100 000 (ERANGE). The forwarder reads packets as they
/// come, and senders have no more in flight than the path holds. This is a path of 1 Gbit/s and 120 ms
/// whose packets all come at once while the forwarder waits for a processor. The device counts packets
/// lost here nonetheless, and the run fails with [`HostErrorKind::TooSlow`].
const DEVICE_QUEUE_PKTS: u32 = 10_000;

/// Number of a route's minimum RTO among its metrics (linux/rtnetlink.h).
const RTAX_RTO_MIN: u32 = 13;
/// MTU of the open ends' devices, bytes.
pub(crate) const OPEN_MTU_BYTES: u32 = 1500;
const LOOPBACK: u32 = 1;
const TABLE_LOCAL: u8 = 255;

nix::ioctl_readwrite_bad!(interface_index, libc::SIOCGIFINDEX, libc::ifreq);
nix::ioctl_write_ptr_bad!(tun_set_interface, libc::TUNSETIFF, libc::ifreq);
nix::ioctl_write_int_bad!(tun_set_offload, libc::TUNSETOFFLOAD);

/// The network namespace of one end. Nothing names it: it ends when this is dropped and the run's
/// sockets are closed.
pub(crate) struct Namespace {
    file: File,
    device: File,
    device_name: String,
}

/// Both ends of a run, connected to nothing but their devices.
pub(crate) fn namespaces(plan: &Plan) -> Result<[Namespace; 2], HostError> {
    both(|end, device_name| set_up(plan, end, device_name))
}

/// The smallest MTU of IPv4 (RFC 791 section 3.1): over a route with less the kernel sends nothing.
const MIN_MTU_BYTES: u32 = 68;

/// Both ends for programs that know nothing of this: one address of each kind, and a route to the
/// other end's.
pub(crate) fn open_namespaces() -> Result<[Namespace; 2], HostError> {
    both(set_up_open)
}

fn both(
    set_up: impl Fn(End, &str) -> Result<File, HostError> + Sync,
) -> Result<[Namespace; 2], HostError> {
    let name = format!("knee-{:08x}", random_u32()?);
    Ok([
        Namespace::new(|name| set_up(End::Sender, name), format!("{name}-a"))?,
        Namespace::new(|name| set_up(End::Receiver, name), format!("{name}-b"))?,
    ])
}

/// For names that nobody else has.
pub(crate) fn random_u32() -> Result<u32, HostError> {
    let mut random = [0; 4];
    let mut source = File::open("/dev/urandom").doing("opening /dev/urandom")?;
    source.read_exact(&mut random).doing("a random name")?;
    Ok(u32::from_ne_bytes(random))
}

impl Namespace {
    fn new(
        set_up: impl FnOnce(&str) -> Result<File, HostError> + Send,
        device_name: String,
    ) -> Result<Self, HostError> {
        // A thread of its own moves to the new namespace; this one stays where it is.
        let new = || {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|error| match error {
                Errno::EPERM => needs_root(),
                error => broken(format!("creating a network namespace: {error}")),
            })?;
            let file = File::open("/proc/thread-self/ns/net").doing("opening the new namespace")?;
            let device = set_up(&device_name)?;
            Ok::<_, HostError>((file, device))
        };
        let (file, device) = thread::scope(|s| joined(s.spawn(new)))?;
        Ok(Self { file, device, device_name })
    }

    /// Calls `work` inside the namespace. Sockets that it opens stay there.
    pub(crate) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, HostError> {
        let enter = || {
            setns(&self.file, CloneFlags::CLONE_NEWNET).doing("entering a namespace")?;
            Ok(work())
        };
        thread::scope(|s| joined(s.spawn(enter)))
    }

    /// Returns the file with which others enter it.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// The device: a read takes a packet that the end sends, a write gives it one.
    pub(crate) fn device(&self) -> Result<File, HostError> {
        self.device.try_clone().doing("duplicating a device")
    }

    /// Packets that the device lost before the forwarder read them.
    pub(crate) fn device_drops(&self) -> Result<u64, HostError> {
        let table = self.inside(|| fs::read_to_string("/proc/thread-self/net/dev"))?;
        let table = table.doing("reading a device's counters")?;
        // Name, then eight counters of reception, then bytes, packets, errors, drops of sending.
        let drops = table.lines().find_map(|line| {
            let (name, counters) = line.split_once(':')?;
            let drops = counters.split_whitespace().nth(11)?.parse().ok();
            if name.trim() == self.device_name { drops } else { None }
        });
        let missing = || io::Error::new(ErrorKind::NotFound, self.device_name.clone());
        drops.ok_or_else(missing).doing("reading a device's counters")
    }
}

/// Sets the present thread's namespace up and opens its device.
fn set_up(plan: &Plan, end: End, device_name: &str) -> Result<File, HostError> {
    sysctls(plan)?;
    let device = open_device(device_name)?;
    let netlink = Netlink::new()?;
    let index = netlink.index(device_name)?;
    netlink.up(LOOPBACK, vec![])?;
    let queue = LinkAttribute::TxQueueLen(DEVICE_QUEUE_PKTS);
    netlink.up(index, vec![LinkAttribute::Mtu(plan.mtu_bytes), queue])?;
    netlink.unqueued(index)?;
    // All addresses of the end's network are here.
    netlink.route(RouteType::Local, end.network(), 16, LOOPBACK, vec![])?;
    for (flow, at) in plan.flows.iter().zip(0..) {
        let mut metrics = vec![RouteMetric::Mtu(flow.packet_bytes.max(MIN_MTU_BYTES))];
        if let Some(tcp) = &flow.tcp {
            if end == flow.source {
                metrics.extend([
                    // The kernel uses a route's minimum RTO only if the route locks it.
                    RouteMetric::Lock(1 << RTAX_RTO_MIN),
                    RouteMetric::InitCwnd(tcp.initial_window_pkts),
                    RouteMetric::RtoMin((tcp.rto_min_ns / knee_model::NS_PER_MS) as u32),
                ]);
            } else if tcp.delayed_ack.every_pkts == 1 {
                metrics.push(RouteMetric::QuickAck(1));
            }
        }
        netlink.route(RouteType::Unicast, end.other().address(at), 32, index, metrics)?;
    }
    Ok(device)
}

/// Sets the present thread's namespace up for any program, and opens its device.
fn set_up_open(end: End, device_name: &str) -> Result<File, HostError> {
    let device = open_device(device_name)?;
    let own = |kind: &str, value: &str| {
        match fs::write(format!("/proc/sys/net/ipv6/conf/{device_name}/{kind}"), value) {
            // A kernel without IPv6.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            result => result.map(|()| true).doing("setting the new device's IPv6 up"),
        }
    };
    // No link-local address, no solicitations: only packets that a program sends are on the path.
    let ipv6 = own("addr_gen_mode", "1")? && own("accept_ra", "0")?;
    let netlink = Netlink::new()?;
    let index = netlink.index(device_name)?;
    netlink.up(LOOPBACK, vec![])?;
    let queue = LinkAttribute::TxQueueLen(DEVICE_QUEUE_PKTS);
    netlink.up(index, vec![LinkAttribute::Mtu(OPEN_MTU_BYTES), queue])?;
    netlink.address(index, end.open_address().into(), end.other().open_address().into())?;
    if ipv6 {
        let (own, other) = (end.open_address6(), end.other().open_address6());
        netlink.address(index, own.into(), other.into())?;
    }
    Ok(device)
}

/// Writes the namespace's own sysctls. Those of the machine are not reachable from here by these
/// names.
fn sysctls(plan: &Plan) -> Result<(), HostError> {
    let flag = |on: bool| u8::from(on).to_string();
    let settings = [
        ("ipv4/tcp_sack", flag(plan.stack.sack)),
        ("ipv4/tcp_timestamps", flag(plan.stack.timestamps)),
        ("ipv4/tcp_slow_start_after_idle", flag(plan.stack.idle_restart)),
        ("ipv4/tcp_ecn", flag(plan.stack.ecn)),
        // A flow starts from nothing, whatever an earlier one found out.
        ("ipv4/tcp_no_metrics_save", flag(true)),
    ];
    for (name, value) in settings {
        fs::write(format!("/proc/sys/net/{name}"), value)
            .doing(&format!("setting the namespace's net/{name}"))?;
    }
    // Nothing but the flows is to pass; a kernel without IPv6 has nothing to turn off.
    let off = fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    unless(ErrorKind::NotFound, off).doing("turning off the namespace's IPv6")
}

/// Creates a TUN device without offloads: the packets read from it are those that would go out on a wire.
fn open_device(name: &str) -> Result<File, HostError> {
    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")
        .map_err(|error| {
            let help = "load the driver (modprobe tun), or give the container the device";
            unavailable(format!("cannot open /dev/net/tun: {error}"), help)
        })?;
    let mut request = request_about(name);
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the descriptor is open and `request` a valid ifreq; the second call takes a number.
    unsafe {
        match tun_set_interface(device.as_raw_fd(), &request) {
            Err(Errno::EPERM) => return Err(needs_root()),
            result => result.doing("creating a TUN device")?,
        };
        tun_set_offload(device.as_raw_fd(), 0).doing("turning offloads off")?;
    }
    Ok(device)
}

/// A request about the device `name`, otherwise all zeros.
fn request_about(name: &str) -> libc::ifreq {
    // SAFETY: an ifreq is plain data; all zeros are a value of it.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request
}

/// Requests to the kernel about the present thread's namespace.
struct Netlink(Socket);

impl Netlink {
    fn new() -> Result<Self, HostError> {
        let mut socket = Socket::new(NETLINK_ROUTE).doing("opening a netlink socket")?;
        socket.bind_auto().doing("binding a netlink socket")?;
        socket.connect(&SocketAddr::new(0, 0)).doing("connecting a netlink socket")?;
        Ok(Self(socket))
    }

    fn request(
        &self,
        message: RouteNetlinkMessage,
        flags: u16,
        what: &str,
    ) -> Result<(), HostError> {
        let mut request = NetlinkMessage::from(message);
        request.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.0.send(&bytes, 0).doing(what)?;
        let (reply, _) = self.0.recv_from_full().doing(what)?;
        let reply = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&reply);
        match reply.map(|reply| reply.payload) {
            Ok(NetlinkPayload::Error(error)) if error.code.is_none() => Ok(()),
            Ok(NetlinkPayload::Error(error)) => Err(error.to_io()).doing(what),
            other => Err(io::Error::other(format!("unexpected reply {other:?}"))).doing(what),
        }
    }

    /// Number of a device. The C library's function hides that descriptors ran out.
    fn index(&self, name: &str) -> Result<u32, HostError> {
        let mut request = request_about(name);
        // SAFETY: the socket is open, `request` a valid ifreq, and success sets the member read.
        unsafe {
            interface_index(self.0.as_raw_fd(), &mut request).doing("finding the new device")?;
            Ok(request.ifr_ifru.ifru_ifindex as u32)
        }
    }

    fn up(&self, index: u32, attributes: Vec<LinkAttribute>) -> Result<(), HostError> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        message.attributes = attributes;
        self.request(RouteNetlinkMessage::SetLink(message), 0, "setting a device up")
    }

    /// Takes the queueing discipline from a device, whatever the machine's default is: its packets are queued
    /// on the path, and `fq` would pace them.
    fn unqueued(&self, index: u32) -> Result<(), HostError> {
        let mut message = TcMessage::default();
        message.header =
            TcHeader { index: index as i32, parent: TcHandle::ROOT, ..TcHeader::default() };
        message.attributes = vec![TcAttribute::Kind("noqueue".to_owned())];
        let message = RouteNetlinkMessage::NewQueueDiscipline(message);
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        self.request(message, flags, "taking the queueing discipline from a device")
    }

    /// Gives a device an address, and with it a route to the other end.
    fn address(&self, index: u32, own: IpAddr, other: IpAddr) -> Result<(), HostError> {
        let mut message = AddressMessage::default();
        message.header.index = index;
        (message.header.family, message.header.prefix_len) = match own {
            IpAddr::V4(_) => (AddressFamily::Inet, 32),
            IpAddr::V6(_) => (AddressFamily::Inet6, 128),
        };
        message.header.flags = AddressHeaderFlags::Nodad;
        message.attributes = vec![AddressAttribute::Local(own), AddressAttribute::Address(other)];
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.request(RouteNetlinkMessage::NewAddress(message), flags, "adding an address")
    }

    fn route(
        &self,
        kind: RouteType,
        to: Ipv4Addr,
        prefix: u8,
        device: u32,
        metrics: Vec<RouteMetric>,
    ) -> Result<(), HostError> {
        let local = kind == RouteType::Local;
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: AddressFamily::Inet,
            destination_prefix_length: prefix,
            table: if local { TABLE_LOCAL } else { RouteHeader::RT_TABLE_MAIN },
            protocol: RouteProtocol::Static,
            scope: if local { RouteScope::Host } else { RouteScope::Link },
            kind,
            ..RouteHeader::default()
        };
        message.attributes =
            vec![RouteAttribute::Destination(RouteAddress::Inet(to)), RouteAttribute::Oif(device)];
        if !metrics.is_empty() {
            message.attributes.push(RouteAttribute::Metrics(metrics));
        }
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.request(RouteNetlinkMessage::NewRoute(message), flags, "adding a route")
    }
}
