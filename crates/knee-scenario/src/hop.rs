//! The bottlenecks of a path: `[[path.hop]]`, and which of them a flow passes.

use super::aqm;
use super::error::{Fault, On};
use super::files::Files;
use super::keys::DIRECTIONS;
use super::link;
use super::section::Section;
use crate::units::{SIZE, show_queue};
use knee_model::{Aqm, FlowKind, FlowSpec, HopSpec, PathSpec, QueueLimit, Route};

/// Most bottlenecks of a path.
const HOPS_MAX: usize = 64;
/// Keys of `[path]` that describe its one bottleneck, and their counterparts for a hop.
const OF_ONE: [(&str, &str); 7] = [
    ("rate", "rate"),
    ("rate_steps", "rate_steps"),
    ("rate_trace", "rate_trace"),
    ("queue", "queue"),
    ("aqm", "aqm"),
    ("loss_forward", "loss"),
    ("burst_loss_forward", "burst_loss"),
];

/// The bottlenecks of `path`, if it lists them; none if its own keys say what its one is.
pub(super) fn hops(path: &Section, files: &Files) -> Result<Vec<HopSpec>, Fault> {
    if !path.has("hop") {
        return Ok(Vec::new());
    }
    let tables = path.sections("hop")?;
    if let Some((key, of_hop)) = OF_ONE.into_iter().find(|(key, _)| path.has(key)) {
        let what = ": `[[path.hop]]` is there too, and both define the bottleneck";
        return Err(path.fault(key, what, format!("write `{of_hop}` in the hops instead")));
    }
    if tables.len() < 2 {
        let remedy = "write its keys in [path], or add the next hop";
        return Err(path.fault("hop", ": a path of one bottleneck has no hops", remedy));
    }
    if tables.len() > HOPS_MAX {
        let what = format!(": there are {} hops", tables.len());
        return Err(path.fault("hop", &what, format!("write at most {HOPS_MAX}")));
    }
    let mut delay_ns = 0;
    let mut hops = Vec::with_capacity(tables.len());
    for (table, number) in tables.iter().zip(1..) {
        table.only(None)?;
        let last = number == tables.len();
        if last && table.has("delay") {
            let what = ": no bottleneck follows the last one";
            let remedy = "remove it: the delay behind it is the path's (`rtt` or `delay_forward`)";
            return Err(Fault { on: On::Key, ..table.fault("delay", what, remedy) });
        }
        let rate = link::rate(table, "", files)?;
        let (rate_bps, rate_varies) = table.required("rate", rate, "rate = \"10mbit\"")?;
        hops.push(HopSpec {
            delay_ns,
            rate_bps,
            rate_varies,
            queue: queue(table)?,
            aqm: aqm(table)?,
            loss: table.number("loss")?.unwrap_or(0.0),
            bursts: link::bursts(table, "burst_loss", "loss")?,
        });
        delay_ns = table.time("delay")?.unwrap_or(0);
    }
    Ok(hops)
}

/// `queue` of a bottleneck.
pub(super) fn queue(table: &Section) -> Result<QueueLimit, Fault> {
    let queue = table.queue("queue")?;
    table.required("queue", queue, "queue = \"84p\" or queue = \"100kB\"")
}

/// `aqm` of a bottleneck.
pub(super) fn aqm(table: &Section) -> Result<Option<Aqm>, Fault> {
    table.section("aqm")?.map(|section| aqm::aqm(&section)).transpose()
}

/// Hops of the flow of `table`.
pub(super) fn route(table: &Section, path: &PathSpec) -> Result<Route, Fault> {
    let reverse = table.word("direction", &DIRECTIONS)?.unwrap_or(false);
    if reverse && path.reverse.is_none() {
        let remedy =
            "write `reverse_rate` and `reverse_queue` in [path]: the flow's data pass them";
        return Err(table.fault(
            "direction",
            " = reverse: the reverse direction has no rate",
            remedy,
        ));
    }
    let hops = path.hops.len();
    let place = |key| {
        let number = table.integer::<u32>(key)?;
        let Some(number) = number.map(|number| number as usize) else { return Ok(None) };
        if number <= hops {
            return Ok(Some(number - 1));
        }
        let (what, remedy) = match hops {
            1 => (": the path has one bottleneck", "remove it, or add [[path.hop]]".to_owned()),
            _ => (": there is no such hop", format!("the path has hops 1 to {hops}")),
        };
        Err(table.fault(key, &format!(" = {number}{what}"), remedy))
    };
    let (first, last_hop) = (place("enters")?, place("leaves")?);
    let first_hop = first.unwrap_or(0);
    if let Some(last_hop) = last_hop.filter(|last| *last < first_hop) {
        let (enters, leaves) = (first_hop + 1, last_hop + 1);
        let what = format!(" = {leaves}, but the flow enters at hop {enters}");
        let remedy = "write the same hop or a later one; packets pass them in order";
        return Err(table.conflict("leaves", "enters", "where it enters", &what, remedy));
    }
    Ok(Route { reverse, first_hop, last_hop })
}

/// Refuses a queue that is too small for a packet that is to pass it.
pub(super) fn queues_take_every_packet<'a>(
    section: &Section,
    path: &PathSpec,
    mut flows: impl Iterator<Item = &'a FlowSpec> + Clone,
) -> Result<(), Fault> {
    let tables = section.sections("hop")?;
    for flow in flows.clone() {
        for (number, hop) in (flow.route.first_hop..).zip(path.hops_of(&flow.route)) {
            takes_packets(tables.get(number).unwrap_or(section), hop.queue, flow, false)?;
        }
    }
    let Some(link) = &path.reverse else { return Ok(()) };
    flows.try_for_each(|flow| takes_packets(section, link.queue, flow, true))
}

/// Refuses a queue that is too small for the largest packet of `flow` in one direction: its data, or its
/// ACKs where these take the other direction.
fn takes_packets(
    table: &Section,
    queue: QueueLimit,
    flow: &FlowSpec,
    reverse: bool,
) -> Result<(), Fault> {
    let (kind, bytes) = match &flow.kind {
        _ if flow.route.reverse == reverse => ("packet", flow.packet_bytes()),
        FlowKind::Tcp(_) => ("ACK", flow.ack_bytes()),
        FlowKind::Udp { .. } | FlowKind::Probe { .. } => return Ok(()),
    };
    match queue {
        QueueLimit::Bytes(limit) if u64::from(bytes) > limit => {}
        _ => return Ok(()),
    }
    let (key, value) = match reverse {
        false => ("queue", format!(" = {}", show_queue(queue))),
        true => ("reverse_queue", String::new()),
    };
    let packet = SIZE.show(bytes.into());
    let what = format!("{value} is smaller than one {kind} of flow {} ({packet})", flow.name);
    Err(table.fault(key, &what, format!("write at least \"{packet}\"")))
}
