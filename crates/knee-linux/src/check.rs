//! The parts of a specification that the kernel honours, approximates, or does not carry.

use knee_model::{
    FlowKind, FlowSpec, HostError, HostErrorKind, NS_PER_MS, Ns, ReceiverConduct, Recovery,
    RunOptions, RunSpec, TcpOptions, TcpSpec, Transport,
};
use std::ops::RangeInclusive;

/// Flows for which there are ports: from 10 000 on.
const MAX_FLOWS: usize = 55_536;
/// IP and TCP headers without options, bytes.
const TCP_HEADERS_BYTES: u32 = 40;
/// The timestamp option, padded, bytes.
const TIMESTAMPS_BYTES: u32 = 12;
/// Largest IP packet, bytes.
const MAX_PACKET_BYTES: u32 = 65_535;
/// The largest window that TCP's window scale can announce, bytes.
const MAX_WINDOW_BYTES: u64 = 65_535 << 14;
/// The kernel's shortest and longest delayed ACK.
const DELAYED_ACK_NS: RangeInclusive<Ns> = 40 * NS_PER_MS..=200 * NS_PER_MS;
/// Longest name of a congestion control of the kernel.
const MAX_CC_NAME_BYTES: usize = 15;

/// Settings that all flows share.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stack {
    sack: bool,
    timestamps: bool,
    idle_restart: bool,
    ecn: bool,
}

/// The parts of `spec` that the kernel only approximates, in words.
///
/// # Errors
/// [`HostErrorKind::Unsupported`]: a part that it does not carry.
pub(crate) fn check(spec: &RunSpec, options: &RunOptions) -> Result<Vec<String>, HostError> {
    if options.pcap.is_some() {
        return Err(unsupported(
            "--pcap",
            "this host does not write packets yet",
            "use --host vm or --host sim",
        ));
    }
    if options.qlog.is_some() {
        return Err(unsupported("--qlog", "only QUIC connections have a qlog", "use --host quic"));
    }
    if spec.flows.len() > MAX_FLOWS {
        let why = format!("there are ports for at most {MAX_FLOWS}");
        return Err(unsupported("flows", &why, "use fewer flows, or --host sim"));
    }
    let mut approximations = Vec::new();
    let mut common = None;
    for flow in &spec.flows {
        if flow.packet_bytes() > MAX_PACKET_BYTES {
            return Err(of(
                flow,
                "packet size",
                "an IP packet has at most 65535 B",
                "use a smaller one",
            ));
        }
        if let FlowKind::Tcp(tcp) = &flow.kind {
            let own = stack(flow, tcp, &mut approximations)?;
            same(flow, own, *common.get_or_insert(own))?;
        }
    }
    approximations.sort();
    approximations.dedup();
    Ok(approximations)
}

fn stack(
    flow: &FlowSpec,
    tcp: &TcpSpec,
    approximations: &mut Vec<String>,
) -> Result<Stack, HostError> {
    if tcp.transport == Transport::Quic {
        return Err(of(
            flow,
            "transport",
            "this host runs TCP",
            "leave it out, or use --host quic",
        ));
    }
    match tcp.cc.params().map(|params| params.algorithm()) {
        Some(algorithm) if !algorithm.is_built_in() => {
            let why = "this host runs the built-in algorithms and those of the kernel";
            return Err(of(flow, "cc", why, "use --host sim or --host vm"));
        }
        None if tcp.cc.name().len() > MAX_CC_NAME_BYTES + knee_model::KERNEL_PREFIX.len() => {
            return Err(of(
                flow,
                "cc",
                "the kernel's names have at most 15 characters",
                "shorten it",
            ));
        }
        _ => {}
    }
    let options = &tcp.options;
    let timestamps = match options.header_bytes.checked_sub(TCP_HEADERS_BYTES) {
        Some(0) => false,
        Some(TIMESTAMPS_BYTES) => true,
        _ => {
            let why = "headers have 52 B with timestamps, 40 B without";
            return Err(of(flow, "tcp.header", why, "write \"52B\" or \"40B\""));
        }
    };
    options_of(flow, options)?;
    approximate(options, approximations);
    Ok(Stack {
        sack: matches!(options.recovery, Recovery::Sack | Recovery::Freebsd7),
        timestamps,
        idle_restart: options.idle_restart,
        ecn: options.ecn,
    })
}

fn options_of(flow: &FlowSpec, options: &TcpOptions) -> Result<(), HostError> {
    let window_bytes = u64::from(options.receive_window_pkts) * u64::from(options.mss_bytes);
    let refusals = [
        (
            window_bytes > MAX_WINDOW_BYTES,
            "tcp.receive_window",
            "TCP can announce at most 1 GiB",
            "use a smaller one",
        ),
        (
            options.rto_min_ns < NS_PER_MS || !options.rto_min_ns.is_multiple_of(NS_PER_MS),
            "tcp.rto_min",
            "the kernel takes whole milliseconds",
            "write \"200ms\"",
        ),
        (
            !matches!(options.delayed_ack.every_pkts, 1 | 2),
            "tcp.delayed_ack_every",
            "the kernel acknowledges every packet or every second one",
            "write 1 or 2",
        ),
        (
            options.delayed_ack.every_pkts == 2
                && !DELAYED_ACK_NS.contains(&options.delayed_ack.timeout_ns),
            "tcp.delayed_ack_timeout",
            "the kernel waits 40 to 200 ms, as it chooses",
            "write \"40ms\"",
        ),
        (
            !options.limited_transmit,
            "tcp.limited_transmit",
            "the kernel always has it",
            "leave it out",
        ),
        (
            options.receiver != ReceiverConduct::Honest,
            "tcp.receiver",
            "the kernel's receiver is honest",
            "use --host sim",
        ),
        (
            options.rtt_tick_ns != 0,
            "tcp.rtt_tick",
            "the kernel's RTT samples are in microseconds",
            "leave it out",
        ),
    ];
    match refusals.into_iter().find(|(refused, ..)| *refused) {
        Some((_, option, why, help)) => Err(of(flow, option, why, help)),
        None => Ok(()),
    }
}

fn approximate(options: &TcpOptions, approximations: &mut Vec<String>) {
    if options.delayed_ack.every_pkts == 2 {
        approximations.push(format!(
            "delayed ACKs are the kernel's own: for every second packet once the receive window has opened (until \
             then for each), after 40 to 200 ms (in the scenario: {} ms)",
            options.delayed_ack.timeout_ns / NS_PER_MS
        ));
    }
    let recovery = match options.recovery {
        Recovery::Freebsd7 => {
            "recovery with SACK is the kernel's own: proportional rate reduction instead of the \
             window of FreeBSD 7 (the simulator's `sack`)"
        }
        Recovery::Newreno => {
            "recovery without SACK is the kernel's own: proportional rate reduction instead of \
             window inflation (the simulator's `newreno-prr`)"
        }
        Recovery::Sack | Recovery::NewrenoPrr => return,
    };
    approximations.push(recovery.to_owned());
}

fn same(flow: &FlowSpec, own: Stack, common: Stack) -> Result<(), HostError> {
    let shared = [
        ("tcp.recovery", own.sack == common.sack),
        ("tcp.header", own.timestamps == common.timestamps),
        ("tcp.idle_restart", own.idle_restart == common.idle_restart),
        ("tcp.ecn", own.ecn == common.ecn),
    ];
    match shared.into_iter().find(|(_, same)| !same) {
        Some((option, _)) => {
            Err(of(flow, option, "all TCP flows of a run share it", "give them one value"))
        }
        None => Ok(()),
    }
}

fn of(flow: &FlowSpec, option: &str, why: &str, help: &str) -> HostError {
    unsupported(&format!("flow {}: {option}", flow.name), why, help)
}

fn unsupported(what: &str, why: &str, help: &str) -> HostError {
    HostError::new(HostErrorKind::Unsupported, format!("{what}: {why}")).with_help(help)
}
