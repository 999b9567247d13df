//! `[[path.hop]]`, and the keys of a flow that say which way it takes.

#![allow(clippy::unwrap_used)]

use knee_model::{
    BurstLoss, DeliveryTrace, Discipline, NS_PER_MS, NS_PER_S, QueueLimit, Route, Varying,
};
use knee_scenario::{Scenario, ScenarioError, Set};
use miette::Diagnostic;
use std::{fs, path::Path, sync::Arc};
use tempfile::tempdir;

const MS: u64 = NS_PER_MS;
const S: u64 = NS_PER_S;

/// Three bottlenecks, and these lines in `[path]` and in the flow.
fn text(path: &str, flow: &str) -> String {
    format!(
        "duration = \"10s\"\n[path]\nrtt = \"40ms\"\n{path}\n\
         [[path.hop]]\nrate = \"10mbit\"\nqueue = \"84p\"\ndelay = \"5ms\"\n\
         [[path.hop]]\nrate = \"4mbit\"\nrate_steps = [[\"2s\", \"1mbit\"]]\nqueue = \"9kB\"\nloss = 0.01\n\
         aqm = {{ kind = \"codel\", ecn = true }}\ndelay = \"7ms\"\n\
         [[path.hop]]\nrate = \"8mbit\"\nqueue = \"60p\"\n\
         burst_loss = {{ loss = 0.01, burst = 4 }}\n\
         [[flow]]\ncc = \"newreno\"\n{flow}\n"
    )
}

/// One bottleneck, and these lines.
fn one(path: &str, flow: &str) -> String {
    format!(
        "duration = \"10s\"\n[path]\nrate = \"10mbit\"\nrtt = \"40ms\"\nqueue = \"84p\"\n{path}\n\
         [[flow]]\ncc = \"newreno\"\n{flow}\n"
    )
}

fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse("lot.toml", text, &[])
}

fn valid(text: &str) -> Scenario {
    parse(text).unwrap_or_else(|e| panic!("{e}: {:?}", e.help().map(|h| h.to_string())))
}

/// The error and its remedy.
fn refused(text: &str) -> (String, String) {
    let error = parse(text).expect_err(text);
    (error.to_string(), error.help().expect("every error has a remedy").to_string())
}

#[test]
fn hops_are_bottlenecks_in_a_row() {
    let spec = valid(&text("jitter_forward = \"1ms\"", "")).spec(1);
    let path = &spec.path;
    let [first, second, third] = &path.hops[..] else { panic!("three hops") };
    assert_eq!((first.rate_bps, first.queue), (10_000_000, QueueLimit::Packets(84)));
    assert_eq!((second.delay_ns, second.rate_bps), (5 * MS, 4_000_000));
    assert_eq!(second.rate_varies, Some(Varying::Steps(vec![(2 * S, 1_000_000)])));
    assert_eq!((second.queue, second.loss), (QueueLimit::Bytes(9000), 0.01));
    let aqm = second.aqm.as_ref().unwrap();
    assert!(matches!(aqm.discipline, Discipline::CoDel(_)) && aqm.ecn);
    assert_eq!((third.delay_ns, third.rate_bps), (7 * MS, 8_000_000));
    assert_eq!(third.bursts, BurstLoss::of_means(0.01, 4.0));
    assert_eq!((path.delay_forward_ns, path.jitter_forward_ns), (20 * MS, MS));
    // All of them by default: the slowest limits the flow.
    let route = spec.flows[0].route;
    assert_eq!(route, Route::default());
    assert_eq!(path.hops_delay_ns(&route), 12 * MS);
    assert_eq!(path.capacity_bps(&route, 0, 2 * S), 4e6);
}

#[test]
fn flows_take_the_way_that_they_are_told() {
    let route = |flow: &str| valid(&text("", flow)).spec(1).flows[0].route;
    let over = |first_hop, last_hop| Route { reverse: false, first_hop, last_hop };
    assert_eq!(route("enters = 2"), over(1, None));
    assert_eq!(route("leaves = 1"), over(0, Some(0)));
    assert_eq!(route("enters = 2\nleaves = 3\ndirection = \"forward\""), over(1, Some(2)));
    let reverse = "reverse_rate = \"2mbit\"\nreverse_queue = \"50p\"";
    let spec = valid(&one(reverse, "direction = \"reverse\"")).spec(1);
    assert_eq!(spec.flows[0].route, Route { reverse: true, ..Route::default() });
    assert_eq!(spec.path.capacity_bps(&spec.flows[0].route, 0, S), 2e6);
    // A share of the load is one of the slowest link on the way.
    let source = "arrivals = { load = 0.5 }\nsize = \"12500B\"\nleaves = 1";
    let count = |text: &str| valid(text).spec(1).flows.len();
    assert!((400..600).contains(&count(&text("", source))));
    let (hop, reverse) =
        (text("", &source.replace("leaves = 1", "enters = 2")), one(reverse, source));
    assert!((150..250).contains(&count(&hop)));
    assert!((60..140).contains(&count(&reverse.replace("leaves = 1", "direction = \"reverse\""))));
}

#[test]
fn nonsense_is_refused() {
    let hop = "[[path.hop]]\nrate = \"1mbit\"\nqueue = \"9p\"\n";
    let flow = "[[flow]]\ncc = \"newreno\"\n";
    let head = "duration = \"1s\"\n[path]\nrtt = \"9ms\"\n";
    for (text, wrong, remedy) in [
        (text("rate = \"1mbit\"", ""), "path.rate: `[[path.hop]]` is there too", "write `rate` in"),
        (text("loss_forward = 0.1", ""), "path.loss_forward: `[[path.hop]]`", "write `loss` in"),
        (format!("{head}{hop}{flow}"), "path.hop: a path of one bottleneck", "add the next hop"),
        (format!("{head}hop = []\n{flow}"), "path.hop: a path of one bottleneck", "in [path]"),
        (format!("{head}hop = 3\n{flow}"), "path.hop is an integer", "headed `[[path.hop]]`"),
        (format!("{head}{}{flow}", hop.repeat(65)), "path.hop: there are 65 hops", "at most 64"),
        (
            format!("{head}{hop}{hop}delay = \"1ms\"\n{flow}"),
            "path.hop.1.delay: no bottleneck follows",
            "remove it",
        ),
        (
            format!("{head}{hop}[[path.hop]]\nqueue = \"9p\"\n{flow}"),
            "path.hop.1.rate is missing",
            "write rate",
        ),
        (
            format!("{head}{hop}[[path.hop]]\nrate = \"1mbit\"\n{flow}"),
            "path.hop.1.queue is missing",
            "write queue",
        ),
        (
            format!("{head}{hop}{hop}rtt = \"1ms\"\n{flow}"),
            "path.hop.1.rtt: no such key",
            "keys here: rate,",
        ),
        (
            format!("{head}{hop}{hop}queue_limit = 1\n{flow}")
                .replace("queue_limit = 1", "loss = 1"),
            "path.hop.1.loss = 1 is out of range",
            "below 1",
        ),
        (text("", "enters = 0"), "flow.0.enters = 0 is out of range", "from 1"),
        (text("", "enters = 4"), "flow.0.enters = 4: there is no such hop", "has hops 1 to 3"),
        (text("", "leaves = 4"), "flow.0.leaves = 4: there is no such hop", "has hops 1 to 3"),
        (
            text("", "enters = 3\nleaves = 2"),
            "flow.0.leaves = 2, but the flow enters at hop 3",
            "the same hop or a later one",
        ),
        (one("", "enters = 2"), "flow.0.enters = 2: the path has one bottleneck", "[[path.hop]]"),
        (
            one("", "direction = \"reverse\""),
            "flow.0.direction = reverse: the reverse direction has no rate",
            "write `reverse_rate`",
        ),
        (one("", "direction = \"up\""), "flow.0.direction: `up` is not one", "forward, reverse"),
        // Queues too small for the packets that pass them.
        (
            text("", "tcp = { packet = \"9001B\" }"),
            "path.hop.1.queue = 9kB is smaller than one packet of flow newreno-1",
            "at least \"9001B\"",
        ),
        (
            one("reverse_rate = \"1mbit\"\nreverse_queue = \"1000B\"", "direction = \"reverse\""),
            "path.reverse_queue is smaller than one packet of flow newreno-1",
            "at least \"1500B\"",
        ),
    ] {
        let (what, help) = refused(&text);
        assert!(what.starts_with(wrong) && help.contains(remedy), "{what}: {help}\n{text}");
    }
    // Those that do not pass it do not mind, nor do ACKs of a reverse flow.
    valid(&text("", "leaves = 1\ntcp = { packet = \"9001B\" }"));
    let reverse = "reverse_rate = \"1mbit\"\nreverse_queue = \"9p\"";
    valid(&text(reverse, "direction = \"reverse\"\ntcp = { packet = \"9001B\" }"));
}

#[test]
fn hops_are_set_and_their_traces_stay_in_the_text() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("down"), "2\n2\n5\n10\n").unwrap();
    let file = folder.path().join("lot.toml");
    let text = text("", "").replace("rate = \"8mbit\"", "rate_trace = \"down\"");
    fs::write(&file, text).unwrap();
    let sets = ["path.hop.0.rate=20mbit", "path.hop.1.delay=9ms"].map(|s| Set::parse(s).unwrap());
    let scenario = Scenario::load(&file, &sets).unwrap();
    let path = scenario.spec(1).path;
    let trace = DeliveryTrace::new(&[2, 2, 5, 10]).unwrap();
    assert_eq!(path.hops[2].rate_varies, Some(Varying::Trace(Arc::new(trace))));
    assert_eq!((path.hops[0].rate_bps, path.hops[2].delay_ns), (20_000_000, 9 * MS));
    assert!(scenario.text().contains("rate_trace = [2, 2, 5, 10]"), "{}", scenario.text());
    let again = valid(scenario.text()).spec(1);
    assert_eq!(format!("{again:?}"), format!("{:?}", scenario.spec(1)));
    // As a list of inline tables too.
    let inline = "duration = \"1s\"\n[path]\nrtt = \"9ms\"\nhop = [\n  { rate = \"1mbit\", queue = \"9p\" },\n  \
                  { rate_trace = \"down\", queue = \"9p\" },\n]\n[[flow]]\ncc = \"newreno\"\n";
    fs::write(&file, inline).unwrap();
    let scenario = Scenario::load(&file, &[]).unwrap();
    assert!(scenario.text().contains("[2, 2, 5, 10]"), "{}", scenario.text());
    assert_eq!(valid(scenario.text()).spec(1).path.hops.len(), 2);
}

#[test]
fn the_examples_are_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/topologies");
    let load = |name| Scenario::load(&folder.join(name), &[]).unwrap().spec(1);
    let lot = load("parking-lot.toml");
    assert_eq!((lot.path.hops.len(), lot.flows.len()), (3, 5));
    assert!(load("two-way.toml").flows[1].route.reverse);
}
