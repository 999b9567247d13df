//! A flow's options as quinn's configuration, and which of them QUIC cannot honour.

use crate::Calls;
use knee_cc::{Algorithm, Params, Profile};
use knee_model::{
    Cc, FlowSpec, HostError, NS_PER_MS, Ns, ReceiverConduct, RecordSpec, Recovery, RunSpec,
    TcpOptions, TcpSpec, Workload, failure::unsupported, milliseconds,
};
use knee_quic::CongestionControl;
use quinn_proto::{AckFrequencyConfig, TransportConfig, VarInt, congestion::NewRenoConfig};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// IPv4 and UDP headers, bytes.
pub(crate) const UDP_HEADERS_BYTES: u32 = 28;
/// Smallest UDP payload over which QUIC opens a connection (RFC 9000 section 14), bytes.
const MIN_PAYLOAD_BYTES: u32 = 1200;
/// Largest UDP payload, bytes: quinn pads the handshake's packets to the full size, and writes their
/// length in 14 bits.
const MAX_PAYLOAD_BYTES: u32 = 16_372;
/// Size of QUIC's own headers in a full packet: first byte, connection ID, packet number of two bytes, stream
/// frame with an offset of four, authentication tag.
const QUIC_HEADERS_BYTES: u32 = 1 + 8 + 2 + 6 + 16;
/// Congestion window of a receiver, packets.
const RECEIVER_WINDOW_PKTS: u64 = 64;
/// quinn lets ACKs wait for at least this, and at most for this or the RTT.
const MIN_ACK_DELAY_NS: Ns = NS_PER_MS;
const MAX_ACK_DELAY_NS: Ns = 25 * NS_PER_MS;

/// The task of a QUIC flow.
#[derive(Clone)]
pub struct Terms {
    params: Params,
    options: TcpOptions,
    /// Data that the application writes.
    pub workload: Workload,
}

impl Terms {
    /// The terms of the flow `flow` of `spec`, which is `tcp`. Adds the deviations of QUIC from the spec to
    /// `approximations`.
    ///
    /// # Errors
    /// QUIC, or quinn, cannot do what the flow requires.
    pub fn of(
        spec: &RunSpec,
        flow: &FlowSpec,
        tcp: &TcpSpec,
        approximations: &mut Vec<String>,
    ) -> Result<Self, HostError> {
        let params = match &tcp.cc {
            Cc::Knee(params) => params.clone(),
            Cc::Kernel(cc) => {
                let name = &flow.name;
                let why =
                    format!("flow `{name}`: `kernel:{cc}` is the Linux kernel's own, for TCP");
                let help = "choose one of Knee's algorithms, or run it with --host kernel or vm";
                return Err(unsupported(why).with_help(help));
            }
        };
        if let Some(origin) = params.algorithm().defined_here()
            && params.algorithm().keeps_its_own_state()
        {
            let why = format!("its state must be the contract's, and {origin} keeps its own");
            return Err(impossible(flow, "cc", &why));
        }
        check(flow, &tcp.options, &tcp.workload)?;
        approximate(spec, params.algorithm(), &tcp.options, approximations);
        Ok(Self { params, options: tcp.options.clone(), workload: tcp.workload.clone() })
    }

    /// UDP payload of a full packet, bytes.
    pub(crate) fn payload_bytes(&self) -> u16 {
        (self.options.mss_bytes + self.options.header_bytes - UDP_HEADERS_BYTES) as u16
    }

    /// Data that may be sent and not be acknowledged in order, bytes: TCP's receive window.
    pub(crate) fn window_bytes(&self) -> u64 {
        u64::from(self.options.receive_window_pkts) * u64::from(self.options.mss_bytes)
    }

    /// Returns whether packets may be marked instead of dropped.
    pub(crate) fn ecn(&self) -> bool {
        self.options.ecn
    }

    /// Keeps the algorithm's calls that `record` requires.
    pub(crate) fn calls(&self, record: &RecordSpec) -> Calls {
        Calls::new(record, self.params.algorithm().profile())
    }

    /// The sender's configuration.
    pub(crate) fn sender(&self, seed: u64, zero: Instant, calls: &Calls) -> TransportConfig {
        let control = CongestionControl::from_params(self.params.clone())
            .initial_window_pkts(self.options.initial_window_pkts)
            .seed(seed)
            .clock_zero(zero)
            .observer(Arc::new(calls.clone()));
        let mut acks = AckFrequencyConfig::default();
        // As TCP: at once if something is missing.
        acks.ack_eliciting_threshold(VarInt::from_u32(self.options.delayed_ack.every_pkts - 1))
            .reordering_threshold(VarInt::from_u32(1))
            .max_ack_delay(Some(Duration::from_nanos(self.options.delayed_ack.timeout_ns)));
        let mut transport = self.common();
        transport
            .congestion_controller_factory(Arc::new(control))
            .ack_frequency_config(Some(acks))
            // Unacknowledged data are bounded here, to the byte. QUIC's flow control would do it only nearly:
            // the receiver gives credit in steps.
            .send_window(self.window_bytes());
        transport
    }

    /// The receiver's configuration.
    pub(crate) fn receiver(&self) -> TransportConfig {
        // Credit comes when an eighth of the window is read; twice as much is never short.
        let window = VarInt::try_from(2 * self.window_bytes()).unwrap_or(VarInt::MAX);
        // It sends ACKs and credit, and of these quinn holds back even the ACKs where the window is
        // full, which one padded packet of 9000 B would do.
        let mut control = NewRenoConfig::default();
        control.initial_window(RECEIVER_WINDOW_PKTS * u64::from(self.payload_bytes()));
        let mut transport = self.common();
        transport
            .congestion_controller_factory(Arc::new(control))
            .stream_receive_window(window)
            .receive_window(window)
            .max_concurrent_uni_streams(VarInt::from_u32(1));
        transport
    }

    /// Packets of the spec's size from the first to the last; no idle timeout.
    fn common(&self) -> TransportConfig {
        let mut transport = TransportConfig::default();
        transport
            .initial_mtu(self.payload_bytes())
            .min_mtu(self.payload_bytes())
            .mtu_discovery_config(None)
            .max_idle_timeout(None)
            .enable_segmentation_offload(false)
            .allow_spin(false);
        transport
    }
}

/// The error of an option that QUIC, or quinn, does not have, and that would change the result.
fn impossible(flow: &FlowSpec, key: &str, why: &str) -> HostError {
    unsupported(format!("flow `{}`: `{key}`: not possible over QUIC: {why}", flow.name))
}

/// Refuses options that would falsify the result.
fn check(flow: &FlowSpec, options: &TcpOptions, workload: &Workload) -> Result<(), HostError> {
    let packet_bytes = options.mss_bytes + options.header_bytes;
    let (least, most) =
        (MIN_PAYLOAD_BYTES + UDP_HEADERS_BYTES, MAX_PAYLOAD_BYTES + UDP_HEADERS_BYTES);
    if !(least..=most).contains(&packet_bytes) {
        let why = format!("its packets have {least} to {most} B, not {packet_bytes} B; set one");
        return Err(impossible(flow, "tcp.packet", &why));
    }
    if options.receiver != ReceiverConduct::Honest {
        let why = "quinn's receiver is honest; run it in the simulator";
        return Err(impossible(flow, "tcp.receiver", why));
    }
    if options.rtt_tick_ns != 0 {
        let why = "quinn's RTT samples are exact; leave the tick out";
        return Err(impossible(flow, "tcp.rtt_tick", why));
    }
    let pauses = workload.write(1).is_some();
    if !options.idle_restart && pauses {
        let why = "the window always restarts after an idle time; set `true`";
        return Err(impossible(flow, "tcp.idle_restart", why));
    }
    Ok(())
}

/// Lists the approximations.
fn approximate(
    spec: &RunSpec,
    algorithm: Algorithm,
    options: &TcpOptions,
    approximations: &mut Vec<String>,
) {
    let packet_bytes = options.mss_bytes + options.header_bytes;
    approximations.push(format!(
        "a QUIC packet of {packet_bytes} B carries about {} B of data (requested: {} B)",
        packet_bytes - UDP_HEADERS_BYTES - QUIC_HEADERS_BYTES,
        options.mss_bytes
    ));
    approximations.push(match algorithm.profile() {
        Profile::Classic => {
            "quinn paces: after a burst of at least 10 packets, 1.25 windows per RTT".to_owned()
        }
        Profile::Rate => format!(
            "{} paces on average over an RTT: quinn lets a burst of at least 10 packets pass, and \
             1.25 times the rate",
            algorithm.name()
        ),
    });
    let recovery = match options.recovery {
        Recovery::Sack | Recovery::Freebsd7 => "",
        Recovery::Newreno | Recovery::NewrenoPrr => " (every ACK reports everything that arrived)",
    };
    approximations.push(format!(
        "losses are detected and repaired as in RFC 9002{recovery}: the options recovery, rto_min and \
         limited_transmit do not apply"
    ));
    if options.initial_window_pkts < 2 {
        approximations.push("QUIC's smallest initial window is 2 packets".to_owned());
    }
    if options.quick_ack_pkts > 0 {
        approximations
            .push("quinn does not acknowledge faster at the start (quick_ack)".to_owned());
    }
    if options.segmentation_offload {
        approximations.push(
            "quinn paces, and sends no bursts as Linux does (segmentation_offload)".to_owned(),
        );
    }
    let (asked_ns, most_ns) =
        (options.delayed_ack.timeout_ns, spec.path.rtt_range_ns().1.max(MAX_ACK_DELAY_NS));
    if options.delayed_ack.every_pkts > 1 && !(MIN_ACK_DELAY_NS..=most_ns).contains(&asked_ns) {
        approximations.push(format!(
            "a delayed ACK waits for 1 ms to the RTT, at most, or 25 ms if that is more (requested: \
             {} ms)",
            milliseconds(asked_ns)
        ));
    }
}
