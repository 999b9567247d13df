//! `[tcp]`, `[[flow]]` and an algorithm's parameters.

use super::error::{Fault, On, known, nearest};
use super::files::Files;
use super::hop;
use super::key::FLOWS_MAX;
use super::keys::{FLOW_KINDS, RECEIVERS, RECOVERIES, TCP, TRANSPORTS};
use super::section::{Section, number_text};
use super::workload::{Sends, sends};
use crate::{
    traffic::{Pattern, Source},
    units::{SIZE, TIME, clip, parse_ppm},
};
use knee_cc::{Algorithm, Param, ParamError, ParamKind, Params, algorithm, algorithms, is_file};
use knee_model::{
    Cc, DelayedAck, FlowKind, FlowSpec, KERNEL_PREFIX, NS_PER_MS, NS_PER_US, Ns, PathSpec,
    TcpOptions, TcpSpec, Workload,
};
use std::collections::HashSet;
use std::ops::Range;
use toml_edit::Item;

/// Most transfers that a source may be expected to draw.
const TRANSFERS_MAX: f64 = 1e6;
const NAME_MAX: usize = 40;
/// Longest name of a congestion control in Linux.
const CC_NAME_MAX: usize = 15;
/// `base` with the keys of `section` put in their place.
pub(super) fn tcp_options(section: &Section, base: &TcpOptions) -> Result<TcpOptions, Fault> {
    section.only(None)?;
    let packet = section.packet_bytes("packet")?.unwrap_or(base.mss_bytes + base.header_bytes);
    let header = section.packet_bytes("header")?.unwrap_or(base.header_bytes);
    let Some(mss_bytes) = packet.checked_sub(header).filter(|mss| *mss > 0) else {
        let (key, other) = match section.has("packet") {
            true => ("packet", "header"),
            false => ("header", "packet"),
        };
        let what = format!(
            ": a packet of {} has no room for data after its header of {}",
            SIZE.show(packet.into()),
            SIZE.show(header.into())
        );
        let remedy =
            "`packet` is the size of the whole packet, `header` that of its part without data";
        return Err(section.conflict(key, other, "the other size", &what, remedy));
    };
    Ok(TcpOptions {
        mss_bytes,
        header_bytes: header,
        recovery: section.word("recovery", &RECOVERIES)?.unwrap_or(base.recovery),
        initial_window_pkts: section.packets("initial_window")?.unwrap_or(base.initial_window_pkts),
        receive_window_pkts: section.packets("receive_window")?.unwrap_or(base.receive_window_pkts),
        rto_min_ns: section.time("rto_min")?.unwrap_or(base.rto_min_ns),
        delayed_ack: DelayedAck {
            every_pkts: section
                .integer("delayed_ack_every")?
                .unwrap_or(base.delayed_ack.every_pkts),
            timeout_ns: section.time("delayed_ack_timeout")?.unwrap_or(base.delayed_ack.timeout_ns),
        },
        quick_ack_pkts: section.packets("quick_ack")?.unwrap_or(base.quick_ack_pkts),
        limited_transmit: section.flag("limited_transmit")?.unwrap_or(base.limited_transmit),
        idle_restart: section.flag("idle_restart")?.unwrap_or(base.idle_restart),
        segmentation_offload: section
            .flag("segmentation_offload")?
            .unwrap_or(base.segmentation_offload),
        rtt_tick_ns: section.time("rtt_tick")?.unwrap_or(base.rtt_tick_ns),
        ecn: section.flag("ecn")?.unwrap_or(base.ecn),
        receiver: section.word("receiver", &RECEIVERS)?.unwrap_or(base.receiver),
    })
}

/// The flows that one `[[flow]]` table defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowGroup {
    /// Name of the table; the name of its flow if it defines one.
    pub name: String,
    /// The positions of its flows in [`knee_model::RunSpec::flows`].
    pub flows: Range<usize>,
}

/// Contents of all `[[flow]]` tables.
pub(super) struct Flows {
    /// Flows that are the same in each repetition.
    pub(super) flows: Vec<FlowSpec>,
    /// Their tables.
    pub(super) groups: Vec<FlowGroup>,
    /// The other tables: flows drawn again for each repetition.
    pub(super) sources: Vec<Source>,
}

/// Flows of all `[[flow]]` tables.
pub(super) fn flows(
    root: &Section,
    tcp: &TcpOptions,
    path: &PathSpec,
    duration_ns: Ns,
    files: &Files,
) -> Result<Flows, Fault> {
    let tables = root.sections("flow")?;
    root.required("flow", tables.first(), "at least one [[flow]] table")?;
    let mut flows: Vec<FlowSpec> = Vec::new();
    let mut groups = Vec::new();
    let mut sources: Vec<Source> = Vec::new();
    // Six standard deviations above the mean: no seed draws more.
    let mut drawn_at_most = 0.0;
    let mut names = HashSet::new();
    for (index, table) in tables.iter().enumerate() {
        let first = flows.len();
        let (Meant { flow, count, spacing_ns }, pattern) =
            flow(table, index, tcp, path, duration_ns, files)?;
        one_meaning(table, &flow, flows.iter().chain(sources.iter().map(|s| &s.flow)))?;
        if let Some((key, pattern)) = pattern {
            let window = flow.start_ns..flow.stop_ns.map_or(duration_ns, |s| s.min(duration_ns));
            let flow = FlowSpec { stop_ns: None, ..flow };
            let source = Source { flow, table: index as u32, window, pattern };
            let expected = source.expected_flows();
            let at_most = expected + 6.0 * expected.sqrt();
            drawn_at_most += at_most;
            if first as f64 + drawn_at_most > f64::from(FLOWS_MAX) {
                let what = format!(
                    " may draw {at_most:.0} flows: a scenario has at most {FLOWS_MAX} in all"
                );
                return Err(table.fault(key, &what, "draw fewer, or for a shorter time"));
            }
            let transfers = source.expected_transfers();
            if transfers > TRANSFERS_MAX {
                let what = format!(
                    " would draw about {transfers:.0} transfers: a source has at most {TRANSFERS_MAX}"
                );
                return Err(table.fault(key, &what, "draw fewer, or for a shorter time"));
            }
            if !names.insert(source.flow.name.clone()) {
                return Err(same_name(table, &source.flow.name));
            }
            sources.push(source);
            continue;
        }
        if let FlowKind::Tcp(TcpSpec { workload, .. }) = &flow.kind
            && let Workload::Transfers { every_ns: Some(every_ns), .. } = workload
        {
            let stop_ns = flow.stop_ns.map_or(duration_ns, |stop_ns| stop_ns.min(duration_ns));
            let life_ns = stop_ns.saturating_sub(flow.start_ns);
            let transfers = life_ns as f64 / *every_ns as f64 * f64::from(count);
            if transfers > TRANSFERS_MAX {
                let key = if table.has("every") { "every" } else { "video" };
                let what = format!(
                    " would begin {transfers:.0} transfers: a [[flow]] table has at most {TRANSFERS_MAX}"
                );
                return Err(table.fault(key, &what, "repeat them less often, or stop earlier"));
            }
        }
        if (first + count as usize) as f64 + drawn_at_most > f64::from(FLOWS_MAX) {
            let what = format!(": with it the scenario has more than {FLOWS_MAX} flows");
            return Err(table.fault("count", &what, "lower the counts"));
        }
        for copy in 0..count {
            let name = match count {
                1 => flow.name.clone(),
                _ => format!("{}-{}", flow.name, copy + 1),
            };
            if !names.insert(name.clone()) {
                return Err(same_name(table, &name));
            }
            let later_ns = spacing_ns * u64::from(copy);
            let start_ns = flow.start_ns + later_ns;
            // The stop of a flow with a lifetime was given relative to its start.
            let stop_ns = match table.has("lifetime") {
                true => flow.stop_ns.map(|stop| stop + later_ns),
                false => flow.stop_ns,
            };
            let stop_ns = stop_ns.filter(|stop| *stop < duration_ns);
            flows.push(FlowSpec { name, start_ns, stop_ns, ..flow.clone() });
        }
        groups.push(FlowGroup { name: flow.name, flows: first..flows.len() });
    }
    Ok(Flows { flows, groups, sources })
}

/// Refuses a flow whose algorithm has the name of another one: results tell them apart by it.
fn one_meaning<'a>(
    table: &Section,
    flow: &FlowSpec,
    mut others: impl Iterator<Item = &'a FlowSpec>,
) -> Result<(), Fault> {
    let algorithm = |flow: &FlowSpec| flow.params().map(Params::algorithm);
    let Some(mine) = algorithm(flow).filter(|mine| !mine.is_built_in()) else { return Ok(()) };
    let same = |other: Algorithm| other.name() == mine.name() && other != mine;
    match others.any(|other| algorithm(other).is_some_and(same)) {
        true => {
            let what = format!(": another algorithm is called `{}` too", mine.name());
            Err(table.fault("cc", &what, "give one of the two another name, in its file"))
        }
        false => Ok(()),
    }
}

fn same_name(table: &Section, name: &str) -> Fault {
    let what = format!(": two flows would be called `{name}`");
    let remedy = "give each [[flow]] a `name` of its own (copies get -1, -2, ...)";
    table.fault("name", &what, remedy)
}

/// Drawings of a source, and the key that defines them.
type Draws = (&'static str, Pattern);

/// Flows of a table.
struct Meant {
    /// The first.
    flow: FlowSpec,
    /// Number of copies.
    count: u32,
    /// Time between their starts.
    spacing_ns: Ns,
}

/// Flow or source of a table; for a source also its drawings, with the key that defines them.
fn flow(
    table: &Section,
    index: usize,
    tcp: &TcpOptions,
    path: &PathSpec,
    duration_ns: Ns,
    files: &Files,
) -> Result<(Meant, Option<Draws>), Fault> {
    let kind = table.word("kind", &FLOW_KINDS)?.unwrap_or("tcp");
    check_keys(table, kind)?;
    let route = hop::route(table, path)?;
    let mut pattern = None;
    let (label, kind) = match kind {
        "tcp" => {
            let rate_bps = path.rates_of(&route).map(|rate| rate.bps).min().unwrap_or(0);
            let (label, kind, draws) = tcp_flow(table, tcp, rate_bps, files)?;
            pattern = draws;
            (label, kind)
        }
        "udp" => {
            let rate = table.rate("rate")?;
            let rate_bps = table.required("rate", rate, "rate = \"1mbit\"")?;
            let packet_bytes = table.packet_bytes("packet")?.unwrap_or(1500);
            let steps = table.rate_steps("rate_steps")?;
            ("udp".to_owned(), FlowKind::Udp { rate_bps, steps, packet_bytes })
        }
        _ => {
            let interval_ns = table.time("interval")?.unwrap_or(20 * NS_PER_MS);
            let packet_bytes = table.packet_bytes("packet")?.unwrap_or(200);
            ("probe".to_owned(), FlowKind::Probe { interval_ns, packet_bytes })
        }
    };
    let name = match table.text("name")? {
        Some(name) => check_name(table, name)?.to_owned(),
        None => format!("{label}-{}", index + 1),
    };
    let count = table.integer("count")?.unwrap_or(1);
    let start_ns = table.time("start")?.unwrap_or(0);
    let spacing_ns = table.time("start_spacing")?.unwrap_or(0);
    let start_jitter_ns = table.time("start_jitter")?.unwrap_or(0);
    let last_start_ns = start_ns.saturating_add(spacing_ns.saturating_mul(u64::from(count - 1)));
    let end = TIME.show(duration_ns);
    let too_late = |key: &str, what: &str, ns: Ns| {
        let what = format!(": {what} at {}, the run ends at {end}", TIME.show(ns));
        Err(table.fault(key, &what, "start earlier, or lengthen `duration`"))
    };
    if start_ns >= duration_ns {
        return too_late("start", "the flow would start", start_ns);
    }
    if last_start_ns >= duration_ns {
        return too_late("start_spacing", &format!("copy {count} would start"), last_start_ns);
    }
    let latest_start_ns = last_start_ns + start_jitter_ns;
    if latest_start_ns > duration_ns {
        return too_late("start_jitter", "the flow might start", latest_start_ns);
    }
    let stop_ns = match (table.time("stop")?, table.time("lifetime")?) {
        (Some(_), Some(_)) => {
            return Err(table.conflict(
                "lifetime",
                "stop",
                "the stop",
                ": `stop` is there too, and both say when the flow ends",
                "keep `stop` (a time of the run) or `lifetime` (counted from the start)",
            ));
        }
        (Some(stop_ns), None) if stop_ns <= latest_start_ns => {
            let latest = TIME.show(latest_start_ns);
            let what = format!(" = {}, but the last start may be at {latest}", TIME.show(stop_ns));
            return Err(table.fault("stop", &what, format!("write a time after {latest}")));
        }
        (None, Some(lifetime_ns)) if lifetime_ns <= start_jitter_ns => {
            let jitter = TIME.show(start_jitter_ns);
            let what = format!(
                " = {}: `start_jitter` may delay the start past it",
                TIME.show(lifetime_ns)
            );
            return Err(table.conflict(
                "lifetime",
                "start_jitter",
                "the jitter",
                &what,
                format!("write more than {jitter}; jitter does not move the stop"),
            ));
        }
        (stop_ns, lifetime_ns) => stop_ns.or(lifetime_ns.map(|lifetime| start_ns + lifetime)),
    };
    let spec = FlowSpec {
        name,
        start_ns,
        start_jitter_ns,
        stop_ns,
        access_delay_ns: table.time("access_delay")?.unwrap_or(0),
        access_delay_spread_ns: table.time("access_delay_spread")?.unwrap_or(0),
        access_jitter_ns: table.time("access_jitter")?.unwrap_or(0),
        route,
        drawn: None,
        kind,
    };
    Ok((Meant { flow: spec, count, spacing_ns }, pattern))
}

fn check_keys(table: &Section, kind: &str) -> Result<(), Fault> {
    let Some(key) = table.stranger(Some(kind)) else { return Ok(()) };
    let wrong_place =
        |what: &str, remedy: &str| Err(Fault { on: On::Key, ..table.fault(key, what, remedy) });
    if kind == "tcp" && TCP.key(key).is_some() {
        return wrong_place(
            ": options of the TCP stack belong in a table of their own",
            &format!("write `tcp = {{ {key} = ... }}` in this flow, or `{key}` in [tcp]"),
        );
    }
    match table.variants_with(key).first() {
        Some(other) => wrong_place(
            &format!(" is for {other} flows; this flow's kind is {kind}"),
            &format!("remove it, or write kind = \"{other}\""),
        ),
        None => Err(table.unknown(key, Some(kind))),
    }
}

fn check_name<'a>(table: &Section, name: &'a str) -> Result<&'a str, Fault> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if (1..=NAME_MAX).contains(&name.len()) && name.chars().all(is_plain) {
        return Ok(name);
    }
    let what = format!(": `{}` cannot name a flow", clip(name));
    let remedy = format!("use 1 to {NAME_MAX} of the characters A-Z a-z 0-9 _ . -");
    Err(table.fault("name", &what, remedy))
}

/// Label and kind of a TCP flow whose way has a rate of `rate_bps`, and its pattern if it is a source.
fn tcp_flow(
    table: &Section,
    tcp: &TcpOptions,
    rate_bps: u64,
    files: &Files,
) -> Result<(String, FlowKind, Option<Draws>), Fault> {
    let transport = table.word("transport", &TRANSPORTS)?.unwrap_or_default();
    let cc = cc_of(table, files)?;
    let label = match &cc {
        Cc::Knee(params) => params.algorithm().name().to_owned(),
        Cc::Kernel(name) => name.clone(),
    };
    let (workload, pattern) = match sends(table, rate_bps)? {
        Sends::Writes(workload) => (workload, None),
        Sends::Draws(key, pattern) => (Workload::Bulk, Some((key, pattern))),
    };
    let options = match table.section("tcp")? {
        Some(section) => tcp_options(&section, tcp)?,
        None => tcp.clone(),
    };
    Ok((label, FlowKind::Tcp(TcpSpec { transport, cc, workload, options }), pattern))
}

fn cc_of(table: &Section, files: &Files) -> Result<Cc, Fault> {
    let names: Vec<_> = algorithms().iter().map(Algorithm::name).collect();
    let cc = table.text("cc")?;
    let example = format!("cc = \"chd\"; algorithms: {}", names.join(", "));
    let cc = table.required("cc", cc, &example)?;
    let params_section = table.section("params")?;
    let found = match is_file(cc) {
        true => Some(files.algorithm(table, "cc", cc)?),
        false => algorithm(cc),
    };
    if let Some(algorithm) = found {
        return Ok(Cc::Knee(match params_section {
            Some(section) => params(&section, algorithm)?,
            None => Params::defaults(algorithm),
        }));
    }
    let Some(name) = cc.strip_prefix(KERNEL_PREFIX) else {
        let what = format!(": no such algorithm: `{}`", clip(cc));
        return Err(table.fault("cc", &what, known(cc, "algorithms", &names)));
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if !(1..=CC_NAME_MAX).contains(&name.len()) || !name.chars().all(is_plain) {
        let what = format!(": `{}` names no congestion control of a kernel", clip(cc));
        let remedy = "write one of `sysctl net.ipv4.tcp_available_congestion_control`, as in \
                      cc = \"kernel:cubic\"";
        return Err(table.fault("cc", &what, remedy));
    }
    if params_section.is_some() {
        let what = format!(": `{cc}` is the kernel's own and takes no parameters");
        return Err(table.fault("params", &what, "remove them"));
    }
    Ok(Cc::Kernel(name.to_owned()))
}

fn params(section: &Section, algorithm: Algorithm) -> Result<Params, Fault> {
    // Each with the name that was written, Knee's or FreeBSD's.
    let mut given: Vec<(&str, Param, u64)> = Vec::new();
    for (key, item) in section.table.iter() {
        let param = Params::find(algorithm, key).map_err(|_| no_param(section, algorithm, key))?;
        if let Some((other, ..)) = given.iter().find(|(_, p, _)| *p == param) {
            let what = format!(" and {other} are names of the same parameter");
            return Err(section.conflict(key, other, "the first", &what, "keep one of them"));
        }
        given.push((key, param, raw_value(section, key, &param, item)?));
    }
    Params::new(algorithm, given.iter().map(|(_, param, raw)| (param.name, *raw))).map_err(|e| {
        let written = |name: &str| given.iter().find(|g| g.1.name == name).map(|g| g.0);
        match &e {
            ParamError::Rule { left, left_value, relation, right, right_value } => {
                let default = |name| if written(name).is_none() { " (its default)" } else { "" };
                let what = format!(
                    ": {left} = {left_value}{} must be {relation} {right} = {right_value}{}",
                    default(left),
                    default(right)
                );
                let remedy = format!("write {left} {relation} {right_value}, or change {right}");
                match (written(left), written(right)) {
                    (Some(key), Some(other)) => {
                        section.conflict(key, other, "the other value", &what, remedy)
                    }
                    (key, other) => section.fault(key.or(other).unwrap_or(left), &what, remedy),
                }
            }
            _ => {
                let key = written(e.param()).unwrap_or(e.param());
                let help =
                    given.iter().find(|g| g.0 == key).map_or_else(String::new, |g| help(&g.1));
                section.fault(key, &format!(": {e}"), help)
            }
        }
    })
}

fn no_param(section: &Section, algorithm: Algorithm, key: &str) -> Fault {
    let table = algorithm.params();
    let names: Vec<_> = table.iter().map(|p| p.name).collect();
    let aliases: Vec<_> = table.iter().filter_map(|p| p.alias).collect();
    let mut remedy = known(key, "it has", &names);
    if let (None, Some(alias)) = (nearest(key, &names), nearest(key, &aliases)) {
        remedy = format!("did you mean `{alias}`? {remedy}");
    }
    let what = format!(": {} has no such parameter", algorithm.name());
    Fault { on: On::Key, ..section.fault(key, &what, remedy) }
}

/// Description of a parameter, for an error's remedy.
fn help(param: &Param) -> String {
    format!("{}: {} (default {})", param.name, param.help, param.show(param.default))
}

/// A parameter's value in the unit of its table.
fn raw_value(section: &Section, key: &str, param: &Param, item: &Item) -> Result<u64, Fault> {
    let range = u64::from(param.min)..=u64::from(param.max);
    let value = match param.kind {
        ParamKind::TimeUs => {
            let range = range.start() * NS_PER_US..=range.end() * NS_PER_US;
            section.time_in(key, &range)?.map(|ns| {
                let remedy = "round it to whole microseconds";
                let what = " is finer than a microsecond, the algorithms' unit of time";
                let is_whole = ns.is_multiple_of(NS_PER_US);
                if is_whole { Ok(ns / NS_PER_US) } else { Err(section.fault(key, what, remedy)) }
            })
        }
        ParamKind::Packets => section.packets_in(key, &range)?.map(Ok),
        ParamKind::Count => section.integer_in(key, &range)?.map(Ok),
        ParamKind::ProbabilityPpm | ParamKind::NumberPpm => number_text(item)
            .map(|text| parse_ppm(&text).map_err(|e| section.bad_quantity(key, &e))),
        ParamKind::Choice => {
            let choices = param.choices();
            let on_off = choices == ["off", "on"];
            match item.as_bool().filter(|_| on_off) {
                Some(on) => Some(Ok(on.into())),
                None => {
                    let words: Vec<_> = choices.iter().zip(0..).map(|(c, i)| (*c, i)).collect();
                    section.word(key, &words)?.map(Ok)
                }
            }
        }
    };
    value.unwrap_or_else(|| {
        let what = ": this is not a number";
        Err(section.fault(key, what, "write it without quotes, such as 0.25"))
    })
}
