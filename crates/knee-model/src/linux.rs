//! The limits of Linux's TCP: the parts of a specification that it honours, approximates, or does not carry. All hosts
//! with a Linux kernel share them.

use crate::{
    FlowSpec, NS_PER_MS, NS_PER_S, Ns, QueueLimit, ReceiverConduct, Recovery, RunSpec, TcpOptions,
};
use serde::{Deserialize, Serialize};
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

/// Longest name and value of a sysctl, bytes.
pub const SYSCTL_NAME_BYTES: usize = 63;
/// See [`SYSCTL_NAME_BYTES`].
pub const SYSCTL_VALUE_BYTES: usize = 191;

/// The sysctls of TCP that a scenario can set, without `net.ipv4.`, in any of Linux 6.1, 6.12 and 7.2.
pub const SYSCTLS: [&str; 85] = [
    "tcp_abort_on_overflow",
    "tcp_adv_win_scale",
    "tcp_app_win",
    "tcp_autocorking",
    "tcp_backlog_ack_defer",
    "tcp_base_mss",
    "tcp_challenge_ack_limit",
    "tcp_comp_sack_delay_ns",
    "tcp_comp_sack_nr",
    "tcp_comp_sack_rtt_percent",
    "tcp_comp_sack_slack_ns",
    "tcp_dsack",
    "tcp_early_demux",
    "tcp_early_retrans",
    "tcp_ecn",
    "tcp_ecn_fallback",
    "tcp_ecn_option",
    "tcp_ecn_option_beacon",
    "tcp_fack",
    "tcp_fastopen",
    "tcp_fastopen_blackhole_timeout_sec",
    "tcp_fastopen_key",
    "tcp_fin_timeout",
    "tcp_frto",
    "tcp_fwmark_accept",
    "tcp_invalid_ratelimit",
    "tcp_keepalive_intvl",
    "tcp_keepalive_probes",
    "tcp_keepalive_time",
    "tcp_l3mdev_accept",
    "tcp_limit_output_bytes",
    "tcp_max_orphans",
    "tcp_max_reordering",
    "tcp_max_syn_backlog",
    "tcp_max_tw_buckets",
    "tcp_mem",
    "tcp_migrate_req",
    "tcp_min_rtt_wlen",
    "tcp_min_snd_mss",
    "tcp_min_tso_segs",
    "tcp_moderate_rcvbuf",
    "tcp_mtu_probe_floor",
    "tcp_mtu_probing",
    "tcp_no_metrics_save",
    "tcp_no_ssthresh_metrics_save",
    "tcp_notsent_lowat",
    "tcp_orphan_retries",
    "tcp_pacing_ca_ratio",
    "tcp_pacing_ss_ratio",
    "tcp_pingpong_thresh",
    "tcp_plb_cong_thresh",
    "tcp_plb_enabled",
    "tcp_plb_idle_rehash_rounds",
    "tcp_plb_rehash_rounds",
    "tcp_plb_suspend_rto_sec",
    "tcp_probe_interval",
    "tcp_probe_threshold",
    "tcp_rcvbuf_low_rtt",
    "tcp_recovery",
    "tcp_reflect_tos",
    "tcp_reordering",
    "tcp_retrans_collapse",
    "tcp_retries1",
    "tcp_retries2",
    "tcp_rfc1337",
    "tcp_rmem",
    "tcp_rto_max_ms",
    "tcp_rto_min_us",
    "tcp_sack",
    "tcp_shrink_window",
    "tcp_slow_start_after_idle",
    "tcp_stdurg",
    "tcp_syn_linear_timeouts",
    "tcp_syn_retries",
    "tcp_synack_retries",
    "tcp_syncookies",
    "tcp_thin_linear_timeouts",
    "tcp_timestamps",
    "tcp_tso_rtt_log",
    "tcp_tso_win_divisor",
    "tcp_tw_reuse",
    "tcp_tw_reuse_delay",
    "tcp_window_scaling",
    "tcp_wmem",
    "tcp_workaround_signed_windows",
];

/// A sysctl of `net.ipv4` and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sysctl {
    /// Name, without `net.ipv4.`.
    pub name: String,
    /// Value, as it is written into the sysctl's file.
    pub value: String,
    /// The ends that it is set at: the path's start, the path's end.
    pub ends: [bool; 2],
}

/// Describes the sysctls that are set, if there are any.
pub fn set(spec: &RunSpec) -> Option<String> {
    let one = |sysctl: &Sysctl| {
        let ends = match sysctl.ends {
            [true, true] => "at both ends",
            [true, false] => "at the path's start",
            _ => "at the path's end",
        };
        format!("net.ipv4.{} = {} {ends}", sysctl.name, sysctl.value)
    };
    let all: Vec<_> = spec.sysctls.iter().map(one).collect();
    (!all.is_empty()).then(|| format!("sysctls: {}", all.join(", ")))
}

/// Describes the sysctls of a run on a host that sets none, if there are any.
pub fn unset(spec: &RunSpec) -> Option<String> {
    set(spec).map(|all| format!("only the host `linux` sets {all}"))
}

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
