//! The fluid model of a scenario's path, for the algorithms that `knee-fluid` knows: the curve of their
//! responses to delay, the locus of equilibria, and where the two meet.

use crate::Refusal;
use knee_cc::Params;
use knee_fluid::{Backoff, Class, Fluid, GentleRed, Link, Rule, Stability};
use knee_model::{FlowSpec, QueueLimit as Limit, RunSpec, seconds};
use serde::Serialize;

/// Points of a curve.
const POINTS: usize = 400;
/// Time constant of F-TCP's bandwidth estimate, s. It moves no equilibrium.
const TAU_S: f64 = 1.0;

/// Results of the model.
#[derive(Debug, Serialize)]
pub(crate) struct Theory {
    /// The algorithm whose rule it is.
    cc: &'static str,
    /// Number of flows with it.
    flows: usize,
    /// Names of the flows that the model leaves out: of other algorithms, or with other parameters.
    left_out: Vec<String>,
    rtt_ms: f64,
    queue_ms: f64,
    /// Corners of the curve: parameters and their values.
    corners_ms: Vec<(&'static str, f64)>,
    /// The curve's parameter `pmax`.
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

/// The model of the first flow of `spec` whose algorithm has one, and of all flows that are like it, on
/// the first hop. The numbers are the delays (ms), the curve, and the locus of equilibria, which may be
/// infinite.
///
/// # Errors
/// No such flow, or a path that the model cannot have.
pub(crate) fn theory(spec: &RunSpec) -> Result<(Theory, Vec<f64>), Refusal> {
    let Some(hop) = spec.path.hops.first() else {
        return Err(Refusal::new("the path has no hop", "give [path] a rate and a queue"));
    };
    let Some((flow, params)) = spec.flows.iter().find_map(modelled) else {
        return Err(unknown(spec));
    };
    let packet_bits = f64::from(flow.packet_bytes()) * 8.0;
    let capacity_bps = hop.rate().mean_bps(0, spec.duration_ns);
    let capacity_pps = capacity_bps / packet_bits;
    let queue_s = match hop.queue {
        Limit::Packets(packets) => f64::from(packets) / capacity_pps,
        Limit::Bytes(bytes) | Limit::BytesAndOne(bytes) => bytes as f64 * 8.0 / capacity_bps,
    };
    let rtt_ns = spec.path.delay_forward_ns + spec.path.delay_reverse_ns + 2 * flow.access_delay_ns;
    let rtt_s = seconds(rtt_ns);
    let (like, others): (Vec<_>, Vec<_>) =
        spec.flows.iter().partition(|other| other.params() == Some(params));
    let rule = rule(params, queue_s);
    let class = Class { rtt_s, flows: like.len() as u32, rule };
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
    let (corners_s, pmax) = match rule {
        Rule::PerPacket { backoff: b, .. } | Rule::PerRound { backoff: b, .. } => {
            (vec![("qmin", b.qmin_s), ("qth", b.qth_s), ("qmax", b.qmax_s)], b.pmax)
        }
        Rule::FTcp { curve: c, .. } => (vec![("tmin", c.tmin_s), ("tmax", c.tmax_s)], c.pmax),
    };
    let theory = Theory {
        cc: params.algorithm().name(),
        flows: like.len(),
        left_out: others.iter().map(|flow| flow.name.clone()).collect(),
        rtt_ms: rtt_s * 1e3,
        queue_ms: queue_s * 1e3,
        corners_ms: corners_s.into_iter().map(|(name, s)| (name, s * 1e3)).collect(),
        pmax,
        equilibria: model.equilibria().into_iter().map(meeting).collect(),
    };
    Ok((theory, numbers.collect()))
}

/// The flow, if its algorithm is one of those in [`rule`].
fn modelled(flow: &FlowSpec) -> Option<(&FlowSpec, &Params)> {
    let params = flow.params()?;
    matches!(params.algorithm().name(), "hd" | "chd" | "ftcp").then_some((flow, params))
}

fn unknown(spec: &RunSpec) -> Refusal {
    let mut algorithms: Vec<&str> = spec.algorithms().map(|algorithm| algorithm.name()).collect();
    algorithms.sort_unstable();
    algorithms.dedup();
    let error = match &algorithms[..] {
        [] => "no flow has an algorithm of Knee".to_owned(),
        names => format!("there is no model of {}", names.join(", ")),
    };
    Refusal::new(error, "the fluid models are of HD, CHD and F-TCP: choose one of them for a flow")
}

/// The rule of these parameters on a queue of this length. Where `qmax` is an observed delay, that
/// of a full queue is taken for it.
fn rule(params: &Params, queue_s: f64) -> Rule {
    let table = params.algorithm().params();
    let raw = |name: &str| {
        let mut rows = table.iter().zip(params.words());
        rows.find(|(param, _)| param.name == name).map_or(0.0, |(_, word)| f64::from(*word) / 1e6)
    };
    let backoff = || Backoff {
        qmin_s: raw("qmin"),
        qth_s: raw("qth"),
        qmax_s: match raw("qmax") {
            0.0 => queue_s.max(raw("qth") * 1.001),
            given_s => given_s,
        },
        pmax: raw("pmax"),
    };
    match params.algorithm().name() {
        "hd" => Rule::PerPacket { backoff: backoff(), decrease: 0.5 },
        "chd" => Rule::PerRound { backoff: backoff(), decrease: 0.5 },
        _ => {
            let curve = GentleRed { tmin_s: raw("tmin"), tmax_s: raw("tmax"), pmax: raw("pmax") };
            Rule::FTcp { curve, tau_s: TAU_S }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cc: &str, more: &str) -> Result<(Theory, Vec<f64>), Refusal> {
        let text = format!(
            "duration = \"5s\"\n[path]\nrate = \"12mbit\"\nrtt = \"40ms\"\nqueue = \"100p\"\n\
             [[flow]]\ncc = \"{cc}\"\ncount = 2\n{more}"
        );
        theory(&crate::spec_to_draw(&text)?)
    }

    #[test]
    fn f_tcp_has_one_equilibrium_where_growth_and_response_cancel() {
        let (theory, numbers) = of("ftcp", "").expect("a model");
        assert_eq!(theory.corners_ms, [("tmin", 5.0), ("tmax", 10.0)]);
        assert_eq!((theory.pmax, theory.flows), (0.05, 2));
        let [meeting] = &theory.equilibria[..] else { panic!("{:?}", theory.equilibria) };
        assert_eq!(meeting.stability, "stable");
        // P(δ) C δ / N = 1 (knee-fluid), with C = 1000 packets/s.
        let p = 1.0 - (1.0 - meeting.probability).powf(meeting.window_pkts);
        assert!((p * meeting.delay_ms / 2.0 - 1.0).abs() < 1e-6, "{meeting:?}");
        // A response takes nothing off where there is no queue: none could hold it.
        assert_eq!(numbers.len(), 3 * (POINTS + 1));
        assert_eq!(numbers[2 * (POINTS + 1)], f64::INFINITY);
    }

    #[test]
    fn left_out_flows_are_named() {
        let (theory, _) = of("chd", "[[flow]]\nname = \"other\"\ncc = \"bbr\"\n").expect("a model");
        assert_eq!((theory.cc, theory.flows), ("chd", 2));
        assert_eq!(theory.left_out, ["other"]);
        let refusal = of("vegas", "[[flow]]\ncc = \"bbr\"\n").expect_err("no model");
        assert_eq!(refusal.error, "there is no model of bbr, vegas");
    }
}
