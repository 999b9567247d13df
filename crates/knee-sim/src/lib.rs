//! Deterministic packet-level simulator.
//!
//! [`run`] takes a [`RunSpec`] and gives a [`RunRecord`]. Time is integer nanoseconds, and events at the same
//! instant happen in a fixed order (see [`knee_net::Network::advance_to`]). Random streams are keyed by
//! (seed, component, flow), so the same spec gives the same bytes on any machine.
//!
//! - `connection`, `packet`: both ends of a TCP connection, and the packets between them.
//! - `sender`: TCP sender in Linux's order of events; its head lists its parts.
//! - `stepped`: a run that pauses.
//! - `receiver`: TCP receiver: reassembly, SACK blocks, delayed ACKs.
//!
//! The crate `knee-scenario` reads a spec from a file; its documentation has an example of a run.

mod connection;
mod packet;
mod receiver;
mod sender;
mod stepped;

pub use stepped::Stepped;

use connection::Tcp;
use knee_cc::{Broken, Profile, contain};
use knee_model::{
    Cc, FlowKind, Host, HostError, HostErrorKind, Progress, Recovery, RunOptions, RunRecord,
    RunSpec, TcpSpec, Tell, Transport,
};
use knee_net::run_in_virtual_time;
use packet::{Packet, Store};
use std::convert::Infallible;
use thiserror::Error;

/// A reason why a run cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SimError {
    /// A flow uses a congestion control that only the kernel has.
    #[error("flow `{flow}`: `kernel:{cc}` is the Linux kernel's own")]
    NotSimulated {
        /// Name of the flow.
        flow: String,
        /// The kernel's name of it.
        cc: String,
    },
    /// A flow is QUIC.
    #[error("flow `{flow}`: the simulator's flows are TCP, not QUIC")]
    Quic {
        /// Name of the flow.
        flow: String,
    },
    /// An algorithm of profile RATE without selective acknowledgements.
    #[error(
        "flow `{flow}`: {cc} measures its delivery rate, which needs selective acknowledgements"
    )]
    NoSack {
        /// Name of the flow.
        flow: String,
        /// Name of the algorithm.
        cc: &'static str,
    },
    /// A flow's packets are larger than IP's.
    #[error(
        "flow `{flow}` has packets of {bytes} bytes; the maximum is {max}",
        max = u16::MAX
    )]
    TooLarge {
        /// Name of the flow.
        flow: String,
        /// Their size.
        bytes: u32,
    },
    /// There are more flows than packets can name.
    #[error("{flows} flows are more than the simulator's {max}", max = Packet::FLOWS_MAX)]
    TooManyFlows {
        /// Their number.
        flows: usize,
    },
    /// A flow could send more packets than its counters hold.
    #[error("flow `{flow}` could send more than {max} packets", max = u32::MAX)]
    TooLong {
        /// Name of the flow.
        flow: String,
    },
    /// An algorithm from a C file broke the contract.
    #[error(transparent)]
    Broken(#[from] Broken),
}

impl SimError {
    /// The remedy.
    pub fn help(&self) -> &'static str {
        match self {
            Self::NotSimulated { .. } => "run it with --host kernel or vm",
            Self::Quic { .. } => {
                "run it with --host quic, or alongside TCP with --host kernel or vm"
            }
            Self::NoSack { .. } => "write recovery = \"sack\"",
            Self::TooLarge { .. } => "give it smaller packets",
            Self::TooManyFlows { .. } => "give it fewer flows",
            Self::TooLong { .. } => "shorten the run or lower the rate",
            Self::Broken(broken) => broken.help(),
        }
    }
}

impl From<SimError> for HostError {
    fn from(error: SimError) -> Self {
        let kind = match error {
            SimError::Broken(_) => HostErrorKind::Broken,
            _ => HostErrorKind::Unsupported,
        };
        Self::new(kind, &error).with_help(error.help())
    }
}

/// Simulates `spec`.
///
/// # Errors
/// [`SimError::TooLong`] if packet numbers (32 bits) could run out; [`SimError::TooLarge`]; [`SimError::TooManyFlows`];
/// [`SimError::NotSimulated`]; [`SimError::Quic`]; [`SimError::NoSack`]; [`SimError::Broken`].
pub fn run(spec: &RunSpec) -> Result<RunRecord, SimError> {
    run_watched(spec, &mut |_| ())
}

/// Simulates `spec`; `watch` gets each bin of the time series at its end.
///
/// # Errors
/// See [`run`].
pub fn run_watched(spec: &RunSpec, watch: &mut dyn FnMut(Progress)) -> Result<RunRecord, SimError> {
    check(spec)?;
    let open = |index: usize, tcp: &TcpSpec| open(spec, index, tcp);
    let record: Result<RunRecord, Infallible> =
        contain(|| run_in_virtual_time(spec, Store::default(), watch, open))?;
    match record {
        Ok(record) => Ok(record),
        Err(never) => match never {},
    }
}

/// The connection of a flow of a spec that was checked.
fn open(spec: &RunSpec, index: usize, tcp: &TcpSpec) -> Tcp {
    let params = tcp.cc.params().expect("checked").clone();
    // A distribution takes 20 kB: too much for each of thousands of short flows.
    let keep = spec.record.bin_ns > 0 && spec.flows[index].drawn.is_none();
    let random = spec.random("algorithm", index);
    Tcp::new(spec, params, &tcp.options, spec.start_ns(index), random, keep)
}

/// Refuses specs that the simulator cannot run.
fn check(spec: &RunSpec) -> Result<(), SimError> {
    if spec.flows.len() > Packet::FLOWS_MAX {
        return Err(SimError::TooManyFlows { flows: spec.flows.len() });
    }
    for (index, flow) in spec.flows.iter().enumerate() {
        let name = || flow.name.clone();
        if let FlowKind::Tcp(tcp) = &flow.kind {
            if tcp.transport == Transport::Quic {
                return Err(SimError::Quic { flow: name() });
            }
            let algorithm = match &tcp.cc {
                Cc::Knee(params) => params.algorithm(),
                Cc::Kernel(cc) => {
                    return Err(SimError::NotSimulated { flow: name(), cc: cc.clone() });
                }
            };
            if algorithm.profile() == Profile::Rate && tcp.options.recovery != Recovery::Sack {
                return Err(SimError::NoSack { flow: name(), cc: algorithm.name() });
            }
        }
        if spec.packets(index) >= u128::from(u32::MAX) {
            return Err(SimError::TooLong { flow: name() });
        }
        let bytes = flow.packet_bytes().max(flow.ack_bytes());
        if bytes > u32::from(u16::MAX) {
            return Err(SimError::TooLarge { flow: name(), bytes });
        }
    }
    Ok(())
}

/// The simulator as a [`Host`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Simulator;

impl Host for Simulator {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn about(&self) -> &'static str {
        "The simulator"
    }

    fn doing(&self) -> &'static str {
        "simulating"
    }

    fn check(&self, spec: &RunSpec, options: &RunOptions) -> Result<(), HostError> {
        can_keep(options)?;
        Ok(check(spec)?)
    }

    fn run_with_progress(
        &self,
        spec: &RunSpec,
        options: &RunOptions,
        _: Tell<'_>,
    ) -> Result<RunRecord, HostError> {
        can_keep(options)?;
        Ok(run(spec)?)
    }
}

/// Rejects unsupported capture options.
fn can_keep(options: &RunOptions) -> Result<(), HostError> {
    let (why, help) = if options.pcap.is_some() {
        (
            "the simulator's packets have no contents to keep",
            "add --host kernel or vm, or keep each packet's way through the queue with --set \
             record.queue_log=true",
        )
    } else if options.qlog.is_some() {
        ("the simulator has no QUIC connections to log", "add --host quic")
    } else {
        return Ok(());
    };
    Err(HostError::new(HostErrorKind::Unsupported, why).with_help(help))
}
