//! The fluid model of HD and CHD for a scenario's path: the backoff curve, the locus of equilibria, and
//! where they meet.

use crate::Refusal;
use knee_cc::Params;
use knee_fluid::{Backoff, Class, Fluid, Link, Rule, Stability};
use knee_net::Limit;
use knee_run::{Cc, FlowKind, NS_PER_S, RunSpec};
use serde::Serialize;

/// Points of a curve.
const POINTS: usize = 400;

/// What the model says.
#[derive(Debug, Serialize)]
pub(crate) struct Theory {
    /// The algorithm whose rule it is.
    cc: &'static str,
    /// How many flows have it.
    flows: u32,
    rtt_ms: f64,
    queue_ms: f64,
    qmin_ms: f64,
    qth_ms: f64,
    qmax_ms: f64,
    pmax: f64,
    equilibria: Vec<Meeting>,
}

#[derive(Debug, Serialize)]
struct Meeting {
    delay_ms: f64,
    window_pkts: f64,
    probability: f64,
    stability: &'static str,
}

/// The model of the first HD or CHD flow of `spec` and all flows that are like it, on the first hop.
/// The numbers are the delays (ms), the curve, and the locus of equilibria.
///
/// # Errors
/// No such flow, or a path that the model cannot have.
pub(crate) fn theory(spec: &RunSpec) -> Result<(Theory, Vec<f64>), Refusal> {
    let of = |flow: &knee_run::FlowSpec| match &flow.kind {
        FlowKind::Tcp(tcp) => match &tcp.cc {
            Cc::Knee(params) if matches!(params.algorithm().name(), "hd" | "chd") => {
                Some(params.clone())
            }
            _ => None,
        },
        _ => None,
    };
    let flow = spec.flows.iter().find(|flow| of(flow).is_some());
    let (Some(flow), Some(params)) = (flow, flow.and_then(of)) else {
        return Err(Refusal::new(
            "there is no HD or CHD flow",
            "the model is of these two; choose one of them for a flow",
        ));
    };
    let Some(hop) = spec.path.hops.first() else {
        return Err(Refusal::new("the path has no hop", "give [path] a rate and a queue"));
    };
    let packet_bits = f64::from(flow.packet_bytes()) * 8.0;
    let capacity_bps = hop.rate().mean_bps(0, spec.duration_ns);
    let capacity_pps = capacity_bps / packet_bits;
    let queue_s = match hop.queue {
        Limit::Packets(packets) => f64::from(packets) / capacity_pps,
        Limit::Bytes(bytes) | Limit::BytesAndOne(bytes) => bytes as f64 * 8.0 / capacity_bps,
    };
    let rtt_ns = spec.path.delay_forward_ns + spec.path.delay_reverse_ns + 2 * flow.access_delay_ns;
    let rtt_s = rtt_ns as f64 / NS_PER_S as f64;
    let backoff = backoff(&params, queue_s);
    let flows = spec.flows.iter().filter(|other| of(other).as_ref() == Some(&params)).count();
    let class = Class {
        rtt_s,
        flows: flows as u32,
        rule: match params.algorithm().name() {
            "hd" => Rule::PerPacket { backoff, decrease: 0.5 },
            _ => Rule::PerRound { backoff, decrease: 0.5 },
        },
    };
    let no_model = |error| Refusal::new(error, "change the path or the parameters");
    let model = Fluid::new(Link { capacity_pps, queue_s }, class).map_err(no_model)?;
    let meeting = |e: knee_fluid::Equilibrium| Meeting {
        delay_ms: e.delay_s * 1e3,
        window_pkts: e.window_pkts,
        probability: e.probability,
        stability: match e.stability {
            Stability::Stable => "stable",
            Stability::Unstable => "unstable",
            Stability::Touching => "touching",
        },
    };
    let delays_s = (0..=POINTS).map(|i| queue_s * i as f64 / POINTS as f64);
    let numbers = delays_s
        .clone()
        .map(|s| s * 1e3)
        .chain(delays_s.clone().map(|s| model.probability(s)))
        .chain(delays_s.map(|s| model.locus(s)));
    let theory = Theory {
        cc: params.algorithm().name(),
        flows: flows as u32,
        rtt_ms: rtt_s * 1e3,
        queue_ms: queue_s * 1e3,
        qmin_ms: backoff.qmin_s * 1e3,
        qth_ms: backoff.qth_s * 1e3,
        qmax_ms: backoff.qmax_s * 1e3,
        pmax: backoff.pmax,
        equilibria: model.equilibria().into_iter().map(meeting).collect(),
    };
    Ok((theory, numbers.collect()))
}

/// The curve of these parameters. Where `qmax` is what was observed, a full queue is taken for it.
fn backoff(params: &Params, queue_s: f64) -> Backoff {
    let table = params.algorithm().params();
    let raw = |name: &str| {
        let mut rows = table.iter().zip(params.words());
        rows.find(|(param, _)| param.name == name).map_or(0.0, |(_, word)| f64::from(*word))
    };
    let qth_s = raw("qth") / 1e6;
    let qmax_s = match raw("qmax") {
        0.0 => queue_s.max(qth_s * 1.001),
        given_us => given_us / 1e6,
    };
    Backoff { qmin_s: raw("qmin") / 1e6, qth_s, qmax_s, pmax: raw("pmax") / 1e6 }
}
