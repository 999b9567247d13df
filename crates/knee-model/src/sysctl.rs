//! Sysctls of `net.ipv4` that a scenario sets on the host `linux`.

use serde::{Deserialize, Serialize};

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
pub fn set(sysctls: &[Sysctl]) -> Option<String> {
    let one = |sysctl: &Sysctl| {
        let ends = match sysctl.ends {
            [true, true] => "at both ends",
            [true, false] => "at the path's start",
            _ => "at the path's end",
        };
        format!("net.ipv4.{} = {} {ends}", sysctl.name, sysctl.value)
    };
    let all: Vec<_> = sysctls.iter().map(one).collect();
    (!all.is_empty()).then(|| format!("sysctls: {}", all.join(", ")))
}

/// Describes the sysctls of a run on a host that sets none, if there are any.
pub fn unset(sysctls: &[Sysctl]) -> Option<String> {
    set(sysctls).map(|all| format!("only the host `linux` sets {all}"))
}
