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
use knee_cc::{Profile, contain};
use knee_model::{
    Cc, FlowKind, Host, HostError, Progress, Recovery, RunOptions, RunRecord, RunSpec, TcpSpec,
    Tell, Transport, failure::unsupported,
};
use knee_net::run_in_virtual_time;
use packet::{Packet, Store};

/// Simulates `spec`.
///
/// # Errors
/// The simulator cannot carry out `spec`, or an algorithm from a C file breaks the contract.
pub fn run(spec: &RunSpec) -> Result<RunRecord, HostError> {
    run_watched(spec, &mut |_| ())
}

/// Simulates `spec`; `watch` gets each bin of the time series at its end.
///
/// # Errors
/// See [`run`].
pub fn run_watched(
    spec: &RunSpec,
    watch: &mut dyn FnMut(Progress),
) -> Result<RunRecord, HostError> {
    check(spec)?;
    let open = |index: usize, tcp: &TcpSpec| open(spec, index, tcp);
    let Ok(record) = contain(|| run_in_virtual_time(spec, Store::default(), watch, open))?;
    Ok(record)
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
fn check(spec: &RunSpec) -> Result<(), HostError> {
    let refused = |why: String, help: &str| Err(unsupported(why).with_help(help));
    if spec.flows.len() > Packet::FLOWS_MAX {
        let (flows, max) = (spec.flows.len(), Packet::FLOWS_MAX);
        let why = format!("{flows} flows are more than the simulator's {max}");
        return refused(why, "give it fewer flows");
    }
    for (index, flow) in spec.flows.iter().enumerate() {
        let name = &flow.name;
        if let FlowKind::Tcp(tcp) = &flow.kind {
            if tcp.transport == Transport::Quic {
                let why = format!("flow `{name}`: the simulator's flows are TCP, not QUIC");
                let help = "run it with --host quic, or alongside TCP with --host kernel or vm";
                return refused(why, help);
            }
            let algorithm = match &tcp.cc {
                Cc::Knee(params) => params.algorithm(),
                Cc::Kernel(cc) => {
                    let why = format!("flow `{name}`: `kernel:{cc}` is the Linux kernel's own");
                    return refused(why, "run it with --host kernel or vm");
                }
            };
            if algorithm.profile() == Profile::Rate && tcp.options.recovery != Recovery::Sack {
                let cc = algorithm.name();
                let why = format!(
                    "flow `{name}`: {cc} measures its delivery rate, which needs selective acknowledgements"
                );
                return refused(why, "write recovery = \"sack\"");
            }
        }
        let max = u32::MAX;
        if spec.packets(index) >= u128::from(max) {
            let why = format!("flow `{name}` could send more than {max} packets");
            return refused(why, "shorten the run or lower the rate");
        }
        let (bytes, max) = (flow.packet_bytes().max(flow.ack_bytes()), u16::MAX);
        if bytes > u32::from(max) {
            let why = format!("flow `{name}` has packets of {bytes} bytes; the maximum is {max}");
            return refused(why, "give it smaller packets");
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
        check(spec)
    }

    fn run_with_progress(
        &self,
        spec: &RunSpec,
        options: &RunOptions,
        _: Tell<'_>,
    ) -> Result<RunRecord, HostError> {
        can_keep(options)?;
        run(spec)
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
    Err(unsupported(why).with_help(help))
}
