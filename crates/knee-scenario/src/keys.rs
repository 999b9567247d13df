//! The declaration of every key of a scenario, except those of queue disciplines and of traffic, which
//! their readers declare: reading, its errors, the tables of
//! `docs/reference/scenario.md`, the JSON Schema and the Python package take the keys from here.
//!
//! The comment of a key is its meaning on the reference page and in an editor. The order of keys is
//! their order on the page and in errors.

use crate::aqm::AQM;
use crate::key::{
    ANY_TIME, BURST_PKTS, FLOWS_MAX, HOP, Kind, LOSS, MEAN_LOSS, NONE, PACKET, PROBABILITY,
    REQUIRED, SIZE_MAX_BYTES, SOME_PROBABILITY, SOME_TIME, Table, WINDOW, WINDOW_MAX_PKTS,
    described, is, table,
};
use crate::workload::{ARRIVALS, SIZE_LAW, VIDEO, WEB};
use knee_model::{ReceiverConduct, Recovery, Transport};

pub(crate) static RECOVERIES: [(&str, Recovery); 4] = [
    ("sack", Recovery::Sack),
    ("newreno", Recovery::Newreno),
    ("newreno-prr", Recovery::NewrenoPrr),
    ("freebsd7", Recovery::Freebsd7),
];
pub(crate) static RECEIVERS: [(&str, ReceiverConduct); 2] =
    [("honest", ReceiverConduct::Honest), ("conceals-loss", ReceiverConduct::ConcealsLoss)];
pub(crate) static TRANSPORTS: [(&str, Transport); 2] =
    [("own", Transport::Own), ("quic", Transport::Quic)];
/// Directions, and whether each is the reverse one.
pub(crate) static DIRECTIONS: [(&str, bool); 2] = [("forward", false), ("reverse", true)];
/// Kinds of flow.
pub(crate) static FLOW_KINDS: [(&str, &str); 3] =
    [("tcp", "tcp"), ("udp", "udp"), ("probe", "probe")];

table! { ROOT "top"
    /// for readers
    title: Kind::Text, NONE;
    /// length of a run
    duration: SOME_TIME, REQUIRED;
    /// seed of the first repetition; each further repetition has the next integer
    seed: Kind::Integer(0..=i64::MAX as u64), is("1");
    /// number of repetitions
    repeat: Kind::Integer(1..=10_000), is("1");
    /// [the network path](#path-required)
    path: Kind::Table(&PATH), REQUIRED;
    /// [options of all TCP flows](#tcp)
    tcp: Kind::Table(&TCP), described("the defaults");
    /// [settings of Linux](#linux), for the host `linux`
    linux: Kind::Table(&LINUX), described("the kernel's own");
    /// [contents of the results](#record)
    record: Kind::Table(&RECORD), described("the defaults");
    /// [flows](#flow-at-least-one)
    flow: Kind::Tables(&FLOW), REQUIRED;
}

table! { PATH "path"
    /// rate of the bottleneck, counting whole packets with headers
    rate: Kind::Rate, described("required, or `rate_trace`");
    /// new rates, each from the given time of the run on: `[["20s", "5mbit"], ["40s", "0bit"]]`, in
    /// order; 0 is an outage
    rate_steps: Kind::RateSteps, NONE;
    /// instead of `rate`: [a delivery trace](#rate_trace)
    rate_trace: Kind::Trace, described("");
    /// propagation delay, forward and reverse together; split evenly (an odd nanosecond goes to the
    /// reverse path)
    rtt: SOME_TIME, described("");
    /// with `rtt`: new values, each from the given time of the run on, split evenly:
    /// `[["20s", "80ms"], ["40s", "20ms"]]`
    rtt_steps: Kind::DelaySteps, NONE;
    /// instead of `rtt`: from the bottleneck to the receivers
    delay_forward: ANY_TIME, described("");
    /// new values of `delay_forward`, as in `rtt_steps`: the delay of packets that leave the
    /// bottleneck from then on
    delay_forward_steps: Kind::DelaySteps, NONE;
    /// instead of `rtt`: from the receivers to the senders
    delay_reverse: ANY_TIME, described("");
    /// the same for the reverse path
    delay_reverse_steps: Kind::DelaySteps, NONE;
    /// when the forward delay falls, packets overtake those that left earlier, as after a change of
    /// route; otherwise they arrive together with the last of these
    delay_falls_reorder: Kind::Flag, is("false");
    /// [limit of the queue](#queue-limits); in bytes, at least one packet of every flow
    queue: Kind::Queue, described("required");
    /// [active queue management](#pathaqm)
    aqm: Kind::Table(&AQM), described("drop-tail");
    /// instead of `rate`, `queue`, `aqm`, `loss_forward` and the keys that belong to them: [several
    /// bottlenecks](#pathhop)
    hop: Kind::Tables(&PATH_HOP), described("one bottleneck");
    /// probability that a packet is lost before the queue
    loss_forward: LOSS, is("0");
    /// probability that a packet is lost on the reverse path
    loss_reverse: LOSS, is("0");
    /// instead of `loss_forward`: [loss in bursts](#burst_loss_forward-burst_loss_reverse) before the
    /// queue
    burst_loss_forward: Kind::Table(&BURST_LOSS), NONE;
    /// instead of `loss_reverse`: the same on the reverse path
    burst_loss_reverse: Kind::Table(&BURST_LOSS), NONE;
    /// extra delay after the bottleneck, uniform from 0 to this; never reorders
    jitter_forward: ANY_TIME, is("0ms");
    /// the same on the reverse path
    jitter_reverse: ANY_TIME, is("0ms");
    /// [packets that others overtake](#reorder)
    reorder: Kind::Table(&REORDER), NONE;
    /// rate of the reverse path, counting whole packets with headers; without it packets pass at once
    reverse_rate: Kind::Rate, NONE;
    /// as `rate_steps`
    reverse_rate_steps: Kind::RateSteps, NONE;
    /// instead of `reverse_rate`: [a delivery trace](#rate_trace)
    reverse_rate_trace: Kind::Trace, described("");
    /// limit of the reverse path's drop-tail queue
    reverse_queue: Kind::Queue, described("required with a rate");
}

table! { PATH_HOP "path.hop"
    /// as in `[path]`
    rate: Kind::Rate, described("required, or `rate_trace`");
    /// as in `[path]`
    rate_steps: Kind::RateSteps, NONE;
    /// as in `[path]`
    rate_trace: Kind::Trace, described("");
    /// as in `[path]`; in bytes, at least one packet of every flow that passes it
    queue: Kind::Queue, REQUIRED;
    /// as `[path.aqm]`
    aqm: Kind::Table(&AQM), described("drop-tail");
    /// as `loss_forward`, before this queue
    loss: LOSS, is("0");
    /// as `burst_loss_forward`, instead of `loss`
    burst_loss: Kind::Table(&BURST_LOSS), NONE;
    /// propagation delay to the next bottleneck; an error for the last one
    delay: ANY_TIME, is("0ms");
}

table! { BURST_LOSS "path.burst_loss_forward"
    /// mean loss, with `burst`
    loss: MEAN_LOSS, described("");
    /// mean length of a burst in packets, with `loss`; at least `loss / (1 - loss)`, because no such
    /// process has shorter bursts
    burst: BURST_PKTS, described("");
    /// instead of `loss` and `burst`: probability that a good state becomes a bad one
    good_to_bad: PROBABILITY, described("");
    /// with `good_to_bad`: probability that a bad state becomes a good one
    bad_to_good: SOME_PROBABILITY, described("");
    /// with `good_to_bad`: probability of a loss in a good state
    loss_good: LOSS, is("0");
    /// with `good_to_bad`: probability of a loss in a bad state
    loss_bad: PROBABILITY, is("1");
}

table! { REORDER "path.reorder"
    /// probability that a packet is late
    probability: LOSS, REQUIRED;
    /// extra delay of a late packet
    delay: SOME_TIME, REQUIRED;
}

table! { TCP "tcp"
    /// whole data packet
    packet: PACKET, is("1500B");
    /// its headers; also the size of an ACK; `packet - header` is the MSS, at least 1B
    header: PACKET, is("52B");
    /// [loss recovery](#recovery)
    recovery: Kind::Words(&RECOVERIES), is("sack");
    /// congestion window at the start
    initial_window: WINDOW, is("10p");
    /// most packets in flight that the receiver allows
    receive_window: WINDOW, is("100000p");
    /// minimum margin of the retransmission timeout beyond the smoothed RTT: RTO = srtt + max(4 rttvar,
    /// this), as in Linux
    rto_min: SOME_TIME, is("200ms");
    /// number of packets per ACK; 1: no delayed ACKs
    delayed_ack_every: Kind::Integer(1..=1_000_000), is("1");
    /// longest wait for the next packet before an ACK
    delayed_ack_timeout: SOME_TIME, is("40ms");
    /// number of packets at the start of a connection that are acknowledged one by one. Linux does this
    /// until the receive window has opened, so the host `kernel` ignores this key
    quick_ack: Kind::Packets(0..=WINDOW_MAX_PKTS), is("0p");
    /// send new data on the first two duplicate ACKs (RFC 3042)
    limited_transmit: Kind::Flag, is("true");
    /// restart the window after an idle time longer than the RTO (RFC 5681, section 4.1)
    idle_restart: Kind::Flag, is("true");
    /// [send new data in bursts](#segmentation_offload), as Linux does
    segmentation_offload: Kind::Flag, is("false");
    /// clock tick that quantises RTT samples; 0: exact
    rtt_tick: ANY_TIME, is("0ms");
    /// [explicit congestion notification](#ecn)
    ecn: Kind::Flag, is("false");
    /// [acknowledgement of lost packets](#receiver)
    receiver: Kind::Words(&RECEIVERS), is("honest");
}

table! { LINUX "linux"
    /// sysctls of both ends of the path
    sysctl: Kind::Sysctls, NONE;
    /// sysctls of the path's start only, where flows send (those with `direction = "reverse"` receive there);
    /// they override `sysctl`
    sysctl_start: Kind::Sysctls, NONE;
    /// sysctls of the path's end only
    sysctl_end: Kind::Sysctls, NONE;
}

table! { RECORD "record"
    /// interval of the time series; at most 10 million in a run
    bin: SOME_TIME, is("100ms");
    /// record every arrival, departure and drop at the bottlenecks
    queue_log: Kind::Flag, is("false");
    /// record every call of an algorithm with inputs and outputs
    trace: Kind::Flag, is("false");
}

table! { FLOW "flow"
    /// unique, 1 to 40 of `A-Z a-z 0-9 _ . -`; `<i>` counts the `[[flow]]` tables from 1
    name: Kind::Text, described("`<cc>-<i>`, `udp-<i>`, `probe-<i>`");
    /// the data of the flow: TCP, UDP at a rate, or small packets whose one-way delay is measured
    kind: Kind::Words(&FLOW_KINDS), is("tcp");
    /// number of copies; with more than one, their names end in `-1`, `-2`, ...; at most 100000 flows in
    /// all; with `web`: users
    count: Kind::Integer(1..=FLOWS_MAX as u64), is("1");
    /// before the end of the run
    start: ANY_TIME, is("0ms");
    /// copy i (from 0) starts at `start + i * start_spacing`; the last one must start before the end
    start_spacing: ANY_TIME, is("0ms");
    /// each start is delayed by a uniform draw from 0 to this, at most until the end
    start_jitter: ANY_TIME, is("0ms");
    /// counted from time 0, the same for all copies; must be after the latest start
    stop: ANY_TIME, described("end of the run");
    /// instead of `stop`: counted from each copy's start without its jitter; more than `start_jitter`
    lifetime: SOME_TIME, described("");
    /// extra one-way delay between sender and bottleneck, in each direction; for a flow with
    /// `direction = "reverse"`, between its receiver and the bottleneck
    access_delay: ANY_TIME, is("0ms");
    /// adds a uniform draw from 0 to this to `access_delay`, one for each flow and repetition
    access_delay_spread: ANY_TIME, is("0ms");
    /// extra delay of each packet between sender and bottleneck, uniform from 0 to this; never reorders
    access_jitter: ANY_TIME, is("0ms");
    /// the first bottleneck that the flow passes, counted from 1
    enters: HOP, is("1");
    /// the last bottleneck that the flow passes, not before `enters`
    leaves: HOP, described("the last");
    /// `reverse`: the flow runs in the opposite direction. Its data take the link and queue of the
    /// reverse path (`reverse_rate` is required), its ACKs the bottlenecks
    direction: Kind::Words(&DIRECTIONS), is("forward");
    /// carrier of the flow. `own`: the host's transport, which is TCP in the simulator and on the kernel,
    /// QUIC with `--host quic`. `quic`: QUIC on the kernel host too, over real UDP sockets, in
    /// competition with TCP
    transport for "tcp": Kind::Words(&TRANSPORTS), is("own");
    /// `"./mine.c"` is an algorithm of your own, relative to the folder of the scenario ([Adding an
    /// algorithm](../how-to/add-an-algorithm.md)); `kernel:reno`, `kernel:cubic`, `kernel:bbr`, ... are
    /// the Linux kernel's own algorithms, as competitors; they take no `params` and run only with
    /// `--host kernel` or `vm`, over TCP
    cc for "tcp": Kind::Algorithm, REQUIRED;
    /// [the algorithm's parameters](#params)
    params for "tcp": Kind::Params, described("the algorithm's defaults");
    /// size of each transfer; without it the flow always has data to send; with `arrivals` a
    /// [law](#sources-of-flows) too
    size for "tcp": Kind::SizeOrLaw(1..=SIZE_MAX_BYTES, &SIZE_LAW), NONE;
    /// with `size`: the interval at which the application writes transfers; those not sent yet queue
    every for "tcp": SOME_TIME, described("one transfer");
    /// makes the table a [source of short flows](#sources-of-flows)
    arrivals for "tcp": Kind::Table(&ARRIVALS), NONE;
    /// makes the table a [source of web pages](#web-pages)
    web for "tcp": Kind::Table(&WEB), NONE;
    /// makes the flow [stream](#streaming)
    video for "tcp": Kind::Table(&VIDEO), NONE;
    /// options for this flow
    tcp for "tcp": Kind::Table(&TCP), described("`[tcp]`");
    /// rate, counting whole packets
    rate for "udp": Kind::Rate, REQUIRED;
    /// new rates, each from the given time of the run on: `[["20s", "5mbit"], ["40s", "0bit"]]`, in
    /// order; 0 is silence
    rate_steps for "udp": Kind::RateSteps, NONE;
    /// time between packets
    interval for "probe": SOME_TIME, is("20ms");
    /// size of a whole packet
    packet for "udp": PACKET, is("1500B");
    /// size of a whole packet
    packet for "probe": PACKET, is("200B");
}

/// The tables, in the order of the reference page.
#[rustfmt::skip]
pub(crate) static TABLES: &[&Table] = &[
    &ROOT, &PATH, &PATH_HOP, &BURST_LOSS, &REORDER, &AQM, &TCP, &LINUX, &RECORD, &FLOW, &ARRIVALS, &SIZE_LAW,
    &WEB, &VIDEO,
];

/// The names of the tables of a scenario, in the order of the reference page.
pub fn table_names() -> Vec<&'static str> {
    TABLES.iter().map(|table| table.name).collect()
}

/// The keys of `[[flow]]`, whatever its kind.
pub fn flow_keys() -> Vec<&'static str> {
    FLOW.names(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scenario, Set, key::Key};
    use std::collections::HashSet;

    const ONE: &str =
        "duration = \"10s\"\npath = { rate = \"10mbit\", rtt = \"40ms\", queue = \"84p\" }\n";
    const ROW: &str = "duration = \"10s\"\n[path]\nrtt = \"40ms\"\n\
        [[path.hop]]\nrate = \"10mbit\"\nqueue = \"84p\"\n[[path.hop]]\nrate = \"9mbit\"\nqueue = \"84p\"\n";
    const BULK: &str = "[[flow]]\ncc = \"newreno\"\n";

    /// The specification of `text` with `key` set to `value`.
    fn spec(text: &str, key: &str, value: &str) -> String {
        let set = Set::parse(&format!("{key}={value}")).expect("a setting");
        match Scenario::parse("scenario.toml", text, &[set]) {
            Ok(scenario) => format!("{:?} {:?}", scenario.repeat(), scenario.spec(scenario.seed())),
            Err(e) => panic!("{key} = {value}: {e}"),
        }
    }

    /// Writes out each default of a table in `text`, and removes the keys from `left`.
    fn compare(
        text: &str,
        at: &str,
        table: &Table,
        variant: Option<&str>,
        left: &mut HashSet<String>,
    ) {
        let unchanged = spec(text, "title", "none");
        for key in table.keys.iter().filter(|key| key.is_of(variant)) {
            let Some(value) = key.default_toml() else { continue };
            let decides = table.variants().is_some_and(|(selector, _)| selector == key.name);
            if decides && variant.is_some_and(|variant| value != format!("\"{variant}\"")) {
                continue;
            }
            left.remove(&format!("{}.{} {:?}", table.name, key.name, key.of));
            // Thresholds are given both or neither.
            if matches!(key.kind, Kind::Threshold) {
                let (min, max) = (at.to_owned() + "min_threshold", at.to_owned() + "max_threshold");
                let [min, max] = [min + "=5p", max + "=15p"].map(|set| Set::parse(&set).unwrap());
                let scenario = Scenario::parse("scenario.toml", text, &[min, max]).unwrap();
                assert_eq!(format!("1 {:?}", scenario.spec(1)), unchanged);
                continue;
            }
            assert_eq!(spec(text, &format!("{at}{}", key.name), &value), unchanged, "{}", key.name);
        }
    }

    /// Every declared default is the value that applies when the key is missing.
    #[test]
    fn defaults_are_the_declared_ones() {
        let with_default = |key: &&Key| key.default_toml().is_some();
        let names = TABLES.iter().flat_map(|table| {
            let keys = table.keys.iter().filter(with_default);
            keys.map(|key| format!("{}.{} {:?}", table.name, key.name, key.of))
        });
        let mut left: HashSet<String> = names.collect();
        let mut check = |path: &str, flow: &str, at: &str, table: &Table, variant: Option<&str>| {
            compare(&format!("{path}{flow}"), at, table, variant, &mut left);
        };
        check(ONE, BULK, "", &ROOT, None);
        check(ONE, BULK, "path.", &PATH, None);
        check(ROW, BULK, "path.hop.0.", &PATH_HOP, None);
        let model = "{ good_to_bad = 0.1, bad_to_good = 0.1 }";
        let bursty = ONE.replace("84p\" }", &format!("84p\", burst_loss_forward = {model} }}"));
        check(&bursty, BULK, "path.burst_loss_forward.", &BURST_LOSS, None);
        for (kind, _) in &crate::aqm::KINDS {
            let managed =
                ONE.replace("84p\" }", &format!("84p\", aqm = {{ kind = \"{kind}\" }} }}"));
            check(&managed, BULK, "path.aqm.", &AQM, Some(kind));
        }
        check(ONE, BULK, "tcp.", &TCP, None);
        check(ONE, BULK, "record.", &RECORD, None);
        check(ONE, BULK, "flow.0.", &FLOW, Some("tcp"));
        check(ONE, "[[flow]]\nkind = \"udp\"\nrate = \"1mbit\"\n", "flow.0.", &FLOW, Some("udp"));
        check(ONE, "[[flow]]\nkind = \"probe\"\n", "flow.0.", &FLOW, Some("probe"));
        for (law, more) in
            [("exponential", ""), ("pareto", "shape = 1.2,"), ("lognormal", "sigma = 1,")]
        {
            let size = format!("size = {{ law = \"{law}\", {more} mean = \"30kB\" }}");
            let source = format!("{BULK}arrivals = {{ rate_per_s = 20 }}\n{size}\n");
            check(ONE, &source, "flow.0.size.", &SIZE_LAW, Some(law));
        }
        check(ONE, &format!("{BULK}web = {{}}\n"), "flow.0.web.", &WEB, None);
        let video = format!("{BULK}video = {{ rate = \"1mbit\" }}\n");
        check(ONE, &video, "flow.0.video.", &VIDEO, None);
        assert!(left.is_empty(), "not compared: {left:?}");
    }
}
