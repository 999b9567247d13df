//! The papers' links and flows.
#![allow(dead_code)] // each test file uses some

use knee_fluid::{Backoff, Class, Fluid, GentleRed, Link, Rule};

/// Packets/s of a link of `mbit_per_s` with packets of `packet_bytes`.
pub fn pps(mbit_per_s: f64, packet_bytes: f64) -> f64 {
    mbit_per_s * 1e6 / (8.0 * packet_bytes)
}

pub fn hd(backoff: Backoff) -> Rule {
    Rule::PerPacket { backoff, decrease: 0.5 }
}

pub fn chd(backoff: Backoff) -> Rule {
    Rule::PerRound { backoff, decrease: 0.5 }
}

/// A backoff function with thresholds in ms.
pub fn backoff(qmin_ms: f64, qth_ms: f64, qmax_ms: f64, pmax: f64) -> Backoff {
    Backoff { qmin_s: qmin_ms / 1e3, qth_s: qth_ms / 1e3, qmax_s: qmax_ms / 1e3, pmax }
}

/// No backoff at any delay: NewReno between losses.
pub fn newreno() -> Rule {
    hd(backoff(2.0, 20.0, 100.0, 0.0))
}

/// The parameters of the F-TCP paper.
pub fn ftcp(tau_s: f64) -> Rule {
    Rule::FTcp { curve: GentleRed { tmin_s: 0.005, tmax_s: 0.01, pmax: 0.05 }, tau_s }
}

/// Flows on a link with 100 ms of queue.
pub fn model(capacity_pps: f64, rtt_ms: f64, flows: u32, rule: Rule) -> (Link, Class) {
    (Link { capacity_pps, queue_s: 0.1 }, Class { rtt_s: rtt_ms / 1e3, flows, rule })
}

pub fn fluid(capacity_pps: f64, rtt_ms: f64, flows: u32, rule: Rule) -> Fluid {
    let (link, class) = model(capacity_pps, rtt_ms, flows, rule);
    Fluid::new(link, class).unwrap()
}

/// The HD letter's simulation: 40 Mb/s, δmin 2 ms, δth 20 ms, δmax 100 ms, pmax 0.05 per packet.
pub fn letter(packet_bytes: f64, rtt_ms: f64, flows: u32) -> Fluid {
    fluid(pps(40.0, packet_bytes), rtt_ms, flows, hd(backoff(2.0, 20.0, 100.0, 0.05)))
}

/// The CHD paper's link: 10 Mb/s, 40 ms, 1500-B packets.
pub fn chd_paper(flows: u32, rule: Rule) -> Fluid {
    fluid(pps(10.0, 1500.0), 40.0, flows, rule)
}

/// The CHD paper's thresholds, 5 and 30 ms, with the queue of 100 ms.
pub fn chd_thresholds(pmax: f64) -> Backoff {
    backoff(5.0, 30.0, 100.0, pmax)
}
