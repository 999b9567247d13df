//! The parts of a specification that the kernel honours, approximates, or does not carry.

use knee_model::{
    FlowKind, FlowSpec, HostError, RunOptions, RunSpec, TcpSpec, Transport, failure,
    linux::{self, Refusal, Stack},
    sysctl,
};

/// Longest name of a congestion control of the kernel.
const MAX_CC_NAME_BYTES: usize = 15;
/// The help for parts that other hosts carry.
const HELP: &str = "change it, or use --host sim";

/// The parts of `spec` that the kernel only approximates, in words.
///
/// # Errors
/// [`HostErrorKind::Unsupported`]: a part that it does not carry.
pub(crate) fn check(spec: &RunSpec, options: &RunOptions) -> Result<Vec<String>, HostError> {
    if options.qlog.is_some() {
        return Err(unsupported("--qlog", "only QUIC connections have a qlog", "use --host quic"));
    }
    linux::check_flows(spec).map_err(refused)?;
    let mut approximations: Vec<_> = sysctl::set(&spec.sysctls).into_iter().collect();
    let mut common = None;
    for flow in &spec.flows {
        linux::check_packet(flow, flow.packet_bytes()).map_err(refused)?;
        if let FlowKind::Tcp(tcp) = &flow.kind {
            let own = stack(spec, flow, tcp, &mut approximations)?;
            own.check_same(flow, common.get_or_insert(own)).map_err(refused)?;
        }
    }
    approximations.sort();
    approximations.dedup();
    Ok(approximations)
}

fn stack(
    spec: &RunSpec,
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
    let defined_here = tcp.cc.params().and_then(|params| params.algorithm().defined_here());
    if let Some(origin) = defined_here {
        let why = format!("{origin} exists in this process only, and the kernel is another one");
        return Err(of(flow, "cc", &why, "write it as a C file, or use --host sim"));
    }
    if tcp.cc.params().is_none()
        && tcp.cc.name().len() > MAX_CC_NAME_BYTES + knee_model::KERNEL_PREFIX.len()
    {
        let why = "the kernel's names have at most 15 characters";
        return Err(of(flow, "cc", why, "shorten it"));
    }
    linux::receive_window_bytes(spec, flow, &tcp.options, approximations);
    linux::check(flow, &tcp.options, approximations).map_err(refused)
}

fn refused(refusal: Refusal) -> HostError {
    unsupported(&refusal.what, &refusal.why, HELP)
}

fn of(flow: &FlowSpec, option: &str, why: &str, help: &str) -> HostError {
    unsupported(&format!("flow {}: {option}", flow.name), why, help)
}

fn unsupported(what: &str, why: &str, help: &str) -> HostError {
    failure::unsupported(format!("{what}: {why}")).with_help(help)
}
