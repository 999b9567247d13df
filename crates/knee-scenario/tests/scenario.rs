//! The scenario file: its values, and its error messages.

#![allow(clippy::unwrap_used)]

use knee_cc::{Params, algorithms};
use knee_model::{
    Aqm, CoDel, Discipline, FlowKind, FqCoDel, Fred, Pie, QueueLimit, Recovery, Red, RunSpec,
    TcpSpec, Thresholds, Workload,
};
use knee_scenario::{
    Scenario, ScenarioError, Set,
    units::{RATE, SIZE, TIME, show_queue},
};
use miette::{GraphicalReportHandler, GraphicalTheme};
use proptest::prelude::*;
use std::{fmt::Write as _, fs, path::Path};

const SMALL: &str = r#"duration = "10s"

[path]
rate = "10mbit"
rtt = "40ms"
queue = "84p"

[[flow]]
cc = "newreno"
"#;

const LARGE: &str = r#"# Everything at once.
title = "CHD paper, Fig. 5"
duration = "100s"
seed = 7
repeat = 10

[path]
rate = "10mbit" # as in the paper
delay_forward = "25ms"
delay_reverse = "15ms"
queue = "100kB"
loss_forward = 0.01
loss_reverse = 0
jitter_forward = "0.5ms"
jitter_reverse = "1us"
noise = "2us"
aqm = { kind = "fq-codel", ecn = true, target = "2ms" }

[tcp]
packet = "1000B"
recovery = "newreno"
delayed_ack_every = 2
delayed_ack_timeout = "50ms"
rtt_tick = "0.5ms"
quick_ack = "7p"
segmentation_offload = true
ecn = true

[record]
bin = "200ms"
queue_log = true
trace = true

[[flow]] # one of each kind
name = "chd"
cc = "chd"
params = { qth = "20ms", pmax = 0.5, queue_min = "6ms", use_max = false, growth = "ack" }
count = 3
start = "1s"
start_spacing = "20s"
start_jitter = "20ms"
lifetime = "60s"
access_delay = "2ms"
access_delay_spread = "1ms"
access_jitter = "3ms"
transport = "quic"
[flow.tcp]
header = "40B"
initial_window = 3
receive_window = "64p"
rto_min = "1s"
limited_transmit = false
idle_restart = false
receiver = "conceals-loss"

[[flow]]
cc = "newreno"
size = "1MB"
every = "5s"

[[flow]]
kind = "udp"
rate = "1.5mbit"
rate_steps = [["20s", "0bit"], ["30s", "2mbit"]]
packet = "600B"
stop = "60s"

[[flow]]
kind = "probe"
"#;

/// One source of each kind, and a video.
const SOURCES: &str = r#"[[flow]]
name = "short"
cc = "newreno"
stop = "20s"
arrivals = { rate_per_s = 5 }
size = { law = "lognormal", mean = "30kB", sigma = 1.5, min = "1kB", max = "1MB" }

[[flow]]
cc = "newreno"
web = { connections = "one", reading = "60s" }

[[flow]]
cc = "newreno"
video = { rate = "1mbit", chunk = "3s" }
"#;

fn set(argument: &str) -> Set {
    Set::parse(argument).unwrap()
}

fn parse(text: &str, sets: &[&str]) -> Result<Scenario, ScenarioError> {
    let sets = sets.iter().map(|s| Set::parse(s)).collect::<Result<Vec<_>, _>>()?;
    Scenario::parse("fig5.toml", text, &sets)
}

fn params(kind: &FlowKind) -> &Params {
    tcp(kind).cc.params().expect("an algorithm of Knee")
}

fn tcp(kind: &FlowKind) -> &TcpSpec {
    match kind {
        FlowKind::Tcp(tcp) => tcp,
        other => panic!("not TCP: {other:?}"),
    }
}

/// All of a spec but the raw parameters, which change whenever an algorithm gains one.
fn without_words(spec: &RunSpec) -> String {
    let text = format!("{spec:#?}");
    let mut parts = text.split("words: [");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |text, part| text + "words: [..." + &part[part.find(']').unwrap()..])
}

fn rendered(error: &ScenarioError) -> String {
    let mut out = String::new();
    GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
        .with_width(100)
        .with_links(false)
        .render_report(&mut out, error)
        .unwrap();
    let screen = out.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    assert!(screen.lines().count() <= 24, "more than one screen:\n{screen}");
    // Algorithms and parameters are added; the messages must list them all, the snapshots not.
    if let Some((before, list)) = screen.split_once("algorithms: ") {
        assert!(algorithms().iter().all(|a| list.contains(a.name())), "{list}");
        return format!("{before}algorithms: [all]");
    }
    if let Some((before, list)) = screen.split_once("it has: ") {
        let chd = knee_cc::algorithm("chd").unwrap();
        assert!(chd.params().iter().all(|p| list.contains(p.name)), "{list}");
        return format!("{before}it has: [all]");
    }
    screen
}

/// The messages of all `cases`, each a text and `--set` arguments.
fn messages(cases: &[(&str, &[&str])]) -> String {
    cases.iter().fold(String::new(), |mut out, (text, sets)| {
        let error = parse(text, sets).expect_err(text);
        writeln!(out, "{}\n", rendered(&error)).unwrap();
        out
    })
}

/// `SMALL` with one line replaced.
fn with(line: &str, new: &str) -> String {
    assert_eq!(SMALL.matches(line).count(), 1, "{line}");
    SMALL.replace(line, new)
}

/// Messages for `SMALL` with `line` replaced by each of `new`.
fn replacing(line: &str, new: &[&str]) -> String {
    let texts: Vec<_> = new.iter().map(|new| with(line, new)).collect();
    let cases: Vec<_> = texts.iter().map(|text| (text.as_str(), &[] as &[&str])).collect();
    messages(&cases)
}

/// Messages for `SMALL` with lines added to its flow.
fn in_flow(lines: &[&str]) -> String {
    let texts: Vec<_> = lines.iter().map(|lines| format!("{SMALL}{lines}\n")).collect();
    let cases: Vec<_> = texts.iter().map(|text| (text.as_str(), &[] as &[&str])).collect();
    messages(&cases)
}

#[test]
fn defaults() {
    let scenario = parse(SMALL, &[]).unwrap();
    assert_eq!((scenario.title(), scenario.seed(), scenario.repeat()), (None, 1, 1));
    assert_eq!(scenario.text(), SMALL);
    insta::assert_snapshot!(without_words(&scenario.spec(1)));

    let others = parse(SMALL, &["flow=[{kind=\"udp\",rate=\"1bit\"},{kind=\"probe\"}]"]).unwrap();
    let kinds: Vec<_> = others.spec(1).flows.into_iter().map(|f| f.kind).collect();
    let [FlowKind::Udp { packet_bytes: 1500, .. }, FlowKind::Probe { interval_ns, packet_bytes }] =
        kinds[..]
    else {
        panic!("{kinds:?}");
    };
    assert_eq!((interval_ns, packet_bytes), (20_000_000, 200));
}

#[test]
fn every_key_arrives() {
    let scenario = parse(LARGE, &[]).unwrap();
    assert_eq!(scenario.title(), Some("CHD paper, Fig. 5"));
    assert_eq!((scenario.seed(), scenario.repeat()), (7, 10));
    assert_eq!((scenario.seed_of(0), scenario.seed_of(9)), (7, 16));
    let spec = scenario.spec(scenario.seed_of(2));
    assert_eq!(spec.seed, 9);
    let groups: Vec<_> =
        scenario.groups().iter().map(|g| (g.name.as_str(), g.flows.clone())).collect();
    assert_eq!(groups, [("chd", 0..3), ("newreno-2", 3..4), ("udp-3", 4..5), ("probe-4", 5..6)]);
    let shown = params(&spec.flows[0].kind).shown();
    for (name, value) in
        [("qmin", "6ms"), ("qth", "20ms"), ("pmax", "0.5"), ("use_max", "off"), ("growth", "ack")]
    {
        assert!(shown.contains(&(name, value.to_owned())), "{name}: {shown:?}");
    }
    insta::assert_snapshot!(without_words(&spec));
}

#[test]
fn names_of_copies_and_tables() {
    let names = |sets: &[&str]| -> Vec<String> {
        parse(SMALL, sets).unwrap().spec(1).flows.into_iter().map(|f| f.name).collect()
    };
    assert_eq!(names(&[]), ["newreno-1"]);
    assert_eq!(names(&["flow.0.count=2"]), ["newreno-1-1", "newreno-1-2"]);
    assert_eq!(names(&["flow.0.name=a", "flow.0.count=1"]), ["a"]);
    assert_eq!(names(&["flow.0.kind=probe", "flow=[{kind=\"probe\"}]"]), ["probe-1"]);
}

#[test]
fn a_stop_after_the_end_is_none() {
    let stop = |sets: &[&str]| parse(SMALL, sets).unwrap().spec(1).flows[0].stop_ns;
    assert_eq!(stop(&["flow.0.stop=9s"]), Some(9_000_000_000));
    assert_eq!(stop(&["flow.0.stop=10s"]), None);
    assert_eq!(stop(&["flow.0.lifetime=1000000s"]), None);
}

#[test]
fn sets_change_the_scenario_and_its_text() {
    let scenario = parse(
        LARGE,
        &[
            "path.rate=5mbit",
            "flow.0.params.qth=30ms",
            " flow.0.params.qmin = 7ms ",
            "tcp.recovery=sack",
            "repeat=3",
            "flow.0.tcp.rtt_tick=1ms",
            "flow.1.params.ss_limit=2",
            "record.trace=false",
            "title=Fig. 5, slower",
        ],
    );
    let error = scenario.expect_err("qmin and queue_min are both there");
    assert!(error.to_string().contains("queue_min"), "{error}");

    let sets = [
        set("path.rate=5mbit"),
        set("flow.0.params.qth=30ms"),
        set(" tcp.recovery = sack "),
        Set::new("repeat", 3),
        set("flow.0.tcp.rtt_tick=1ms"),
        set("flow.1.params.ss_limit=2"),
        set("record.trace=false"),
        set("title=Fig. 5, slower"),
        Set::new("flow.0.params.pmax", 0.75),
        Set::new("flow.2.rate", "2mbit"),
        set("flow.1.tcp={ packet = \"576B\" }"),
    ];
    let scenario = Scenario::parse("fig5.toml", LARGE, &sets).unwrap();
    let spec = scenario.spec(1);
    assert_eq!(spec.path.hops[0].rate_bps, 5_000_000);
    let first = tcp(&spec.flows[0].kind);
    let first_params = params(&spec.flows[0].kind);
    assert!(first_params.shown().contains(&("qth", "30ms".to_owned())));
    assert!(first_params.shown().contains(&("pmax", "0.75".to_owned())));
    assert_eq!(first.options.rtt_tick_ns, 1_000_000);
    assert_eq!(first.options.recovery, Recovery::Sack);
    assert_eq!(scenario.repeat(), 3);
    assert!(!spec.record.trace);
    assert!(matches!(spec.flows[4].kind, FlowKind::Udp { rate_bps: 2_000_000, .. }));
    insta::assert_snapshot!(scenario.text());

    // The text says it all by itself.
    let again = parse(scenario.text(), &[]).unwrap();
    assert_eq!(format!("{:?}", again.spec(1)), format!("{spec:?}"));
    assert_eq!(again.title(), scenario.title());
}

#[test]
fn sets_reach_tables_that_are_not_there() {
    let spec = parse(SMALL, &["tcp.recovery=newreno", "flow.0.tcp.packet=576B", "record.bin=1s"])
        .unwrap()
        .spec(1);
    let options = &tcp(&spec.flows[0].kind).options;
    assert_eq!((options.recovery, options.mss_bytes), (Recovery::Newreno, 524));
    assert_eq!(spec.record.bin_ns, 1_000_000_000);
}

/// Each kind's defaults are its discipline's, and every key arrives.
#[test]
fn queues_can_be_managed() {
    let aqm = |value: &str| {
        parse(SMALL, &[&format!("path.aqm={value}")]).unwrap().spec(1).path.hops[0].aqm.clone()
    };
    assert_eq!(parse(SMALL, &[]).unwrap().spec(1).path.hops[0].aqm, None);
    for (kind, discipline) in [
        ("red", Discipline::Red(Red::default())),
        ("fred", Discipline::Fred(Fred::default())),
        ("codel", Discipline::CoDel(CoDel::default())),
        ("fq-codel", Discipline::FqCoDel(FqCoDel::default())),
        ("pie", Discipline::Pie(Pie::default())),
    ] {
        let meant = Aqm { discipline, ecn: false };
        assert_eq!(aqm(&format!("{{kind=\"{kind}\"}}")), Some(meant.clone()));
        // The table need not be there for single keys.
        let spec = parse(SMALL, &[&format!("path.aqm.kind={kind}"), "path.aqm.ecn=true"]).unwrap();
        assert_eq!(spec.spec(1).path.hops[0].aqm, Some(Aqm { ecn: true, ..meant }));
    }
    for (keys, discipline) in [
        (
            "kind='red', min_threshold='10p', max_threshold='30p', weight=0.5, max_probability=1, \
             gentle=true, packet='500B'",
            Discipline::Red(Red {
                thresholds: Thresholds::Packets { min: 10, max: 30 },
                weight: 0.5,
                max_probability: 1.0,
                gentle: true,
                packet_bytes: 500,
            }),
        ),
        (
            "kind='red', min_threshold='6kB', max_threshold='18kB'",
            Discipline::Red(Red {
                thresholds: Thresholds::Bytes { min: 6000, max: 18_000 },
                ..Red::default()
            }),
        ),
        (
            "kind='fred', min_threshold='10p', max_threshold='30p', weight=0.5, \
             max_probability=0.25, min_queue='2p', packet='500B'",
            Discipline::Fred(Fred {
                min_pkts: 10,
                max_pkts: 30,
                weight: 0.5,
                max_probability: 0.25,
                min_queue_pkts: 2,
                packet_bytes: 500,
            }),
        ),
        (
            "kind='fq-codel', target='1ms', interval='20ms', quantum='300B', queues=8",
            Discipline::FqCoDel(FqCoDel {
                codel: CoDel { target_ns: 1_000_000, interval_ns: 20_000_000 },
                quantum_bytes: 300,
                queues: 8,
            }),
        ),
        (
            "kind='pie', target='1ms', update='2ms', max_burst='0ms', alpha=0, beta=2.5, \
             mark_limit=1, packet='500B'",
            Discipline::Pie(Pie {
                target_ns: 1_000_000,
                update_ns: 2_000_000,
                burst_ns: 0,
                alpha_per_s: 0.0,
                beta_per_s: 2.5,
                mark_limit: 1.0,
                packet_bytes: 500,
            }),
        ),
    ] {
        let text = format!("{{{keys}, ecn=true}}");
        assert_eq!(aqm(&text), Some(Aqm { discipline, ecn: true }), "{text}");
    }
}

#[test]
fn errors_in_aqm() {
    let lines: Vec<String> = [
        "aqm = \"codel\"",
        "aqm = {}",
        "aqm = { kind = \"codle\" }",
        "aqm = { kind = \"codel\", quantum = \"1kB\" }",
        "aqm = { kind = \"codel\", zz = 1 }",
        "aqm = { kind = \"codel\", ecn = 1 }",
        "aqm = { kind = \"codel\", target = \"0ms\" }",
        "aqm = { kind = \"red\", min_threshold = \"5p\" }",
        "aqm = { kind = \"red\", max_threshold = \"5p\" }",
        "aqm = { kind = \"red\", min_threshold = \"5p\", max_threshold = \"15kB\" }",
        "aqm = { kind = \"red\", min_threshold = \"5p\", max_threshold = \"5p\" }",
        "aqm = { kind = \"red\", min_threshold = \"0p\", max_threshold = \"5p\" }",
        "aqm = { kind = \"red\", min_threshold = 5, max_threshold = 15 }",
        "aqm = { kind = \"red\", weight = 0 }",
        "aqm = { kind = \"red\", max_probability = 1.5 }",
        "aqm = { kind = \"fred\", min_threshold = \"5kB\", max_threshold = \"15kB\" }",
        "aqm = { kind = \"fq-codel\", queues = 0 }",
        "aqm = { kind = \"pie\", alpha = \"1\" }",
        "aqm = { kind = \"pie\", mark_limit = nan }",
    ]
    .iter()
    .map(|line| format!("queue = \"84p\"\n{line}"))
    .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    insta::assert_snapshot!(replacing("queue = \"84p\"", &lines));
}

#[test]
fn the_last_set_wins() {
    let spec = parse(SMALL, &["path.rtt=1s", "path.rtt=20ms"]).unwrap().spec(1);
    assert_eq!((spec.path.delay_forward_ns, spec.path.delay_reverse_ns), (10_000_000, 10_000_000));
}

#[test]
fn an_odd_rtt_is_split_without_loss() {
    let path = parse(SMALL, &["path.rtt=5ns"]).unwrap().spec(1).path;
    assert_eq!((path.delay_forward_ns, path.delay_reverse_ns), (2, 3));
}

#[test]
fn errors_in_the_top_table() {
    let mut out = replacing(
        "duration = \"10s\"",
        &[
            "",
            "duration = 10",
            "duration = 2.5",
            "duration = \"10\"",
            "duration = \"10sec\"",
            "duration = \"0s\"",
            "duration = \"1000001s\"",
            "duration = \"-1s\"",
            "duration = true",
            "duration = 2026-01-01",
            "duration = \"10s\"\nseed = -1",
            "duration = \"10s\"\nseed = \"1\"",
            "duration = \"10s\"\nrepeat = 0",
            "duration = \"10s\"\nrepeat = 10001",
            "duration = \"10s\"\nrepeat = 1.5",
            "duration = \"10s\"\ntitle = 5",
            "duration = \"10s\"\nrepeats = 5",
            "duration = \"10s\"\nzzz = 5",
            "duration = \"10s\"\ntcp = \"sack\"",
        ],
    );
    out += &messages(&[
        ("duration = \"10s\"\n[[flow]]\ncc = \"newreno\"", &[]),
        ("duration = \"10s\"\n[path]\nrate = \"1mbit\"\nrtt = \"1ms\"\nqueue = \"9p\"\n", &[]),
        (
            "duration = \"10s\"\nflow = 3\n[path]\nrate = \"1mbit\"\nrtt = \"1ms\"\nqueue = \"9p\"\n",
            &[],
        ),
        (
            "duration = \"9s\"\n[flow]\ncc = \"hd\"\n[path]\nrate = \"1mbit\"\nrtt = \"1ms\"\nqueue = \"9p\"",
            &[],
        ),
    ]);
    insta::assert_snapshot!(out);
}

#[test]
fn errors_that_are_toml() {
    let out = messages(&[
        ("", &[]),
        ("duration = 10s\n", &[]),
        ("duration = \"10s\n", &[]),
        ("[path]\nrate = \"1mbit\"\nrate = \"2mbit\"\n", &[]),
        ("[path]\n[path]\n", &[]),
        ("duration \"10s\"\n", &[]),
        ("seed = 99999999999999999999\n", &[]),
        ("[[flow]\n", &[]),
    ]);
    insta::assert_snapshot!(out);
}

#[test]
fn errors_in_path() {
    let mut out = replacing(
        "rate = \"10mbit\"",
        &[
            "",
            "rate = 10",
            "rate = \"10mbps\"",
            "rate = \"10Mbit\"",
            "rate = \"0bit\"",
            "rate = \"2000gbit\"",
            "rate = \"99999999999gbit\"",
            "rate = \"0.5bit\"",
            "rate = \"10mbit\"\nloss = 0.1",
            "rate = \"10mbit\"\nloss_forward = 1",
            "rate = \"10mbit\"\nloss_forward = -0.1",
            "rate = \"10mbit\"\nloss_forward = nan",
            "rate = \"10mbit\"\nloss_reverse = \"1%\"",
            "rate = \"10mbit\"\njitter_forward = 0",
        ],
    );
    out += &replacing(
        "rtt = \"40ms\"",
        &[
            "",
            "rtt = 40",
            "rtt = \"0ms\"",
            "rtt = \"40ms\"\ndelay_forward = \"20ms\"",
            "delay_forward = \"20ms\"\ndelay_reverse = \"20ms\"\nrtt = \"40ms\"",
            "delay_forward = \"20ms\"",
            "delay_reverse = \"20ms\"",
            "delay_forward = \"0ms\"\ndelay_reverse = \"0ms\"",
            "rtt = \"0.0000005ms\"",
        ],
    );
    out += &replacing(
        "queue = \"84p\"",
        &[
            "",
            "queue = 84",
            "queue = \"84\"",
            "queue = \"84 packets\"",
            "queue = \"0p\"",
            "queue = \"0B\"",
            "queue = \"1kB\"",
            "queue = \"5000000000p\"",
            "queue = []",
        ],
    );
    insta::assert_snapshot!(out);
}

#[test]
fn errors_in_tcp_and_record() {
    let out = replacing(
        "[[flow]]",
        &[
            "[tcp]\nmss = \"1448B\"\n[[flow]]",
            "[tcp]\npacket = 1500\n[[flow]]",
            "[tcp]\npacket = \"52B\"\n[[flow]]",
            "[tcp]\npacket = \"40B\"\nheader = \"40B\"\n[[flow]]",
            "[tcp]\nheader = \"1500B\"\n[[flow]]",
            "[tcp]\npacket = \"100kB\"\n[[flow]]",
            "[tcp]\nheader = \"0B\"\n[[flow]]",
            "[tcp]\nrecovery = \"reno\"\n[[flow]]",
            "[tcp]\nrecovery = 1\n[[flow]]",
            "[tcp]\ninitial_window = \"10\"\n[[flow]]",
            "[tcp]\ninitial_window = 0\n[[flow]]",
            "[tcp]\ninitial_window = 2.5\n[[flow]]",
            "[tcp]\nreceive_window = \"0p\"\n[[flow]]",
            "[tcp]\nrto_min = \"0ms\"\n[[flow]]",
            "[tcp]\ndelayed_ack_every = 0\n[[flow]]",
            "[tcp]\ndelayed_ack_every = \"2p\"\n[[flow]]",
            "[tcp]\nlimited_transmit = \"yes\"\n[[flow]]",
            "[tcp]\nidle_restart = 1\n[[flow]]",
            "[tcp]\nrtt_tick = 0.5\n[[flow]]",
            "[record]\nbin = \"0ms\"\n[[flow]]",
            "[record]\nbin = \"100ns\"\n[[flow]]",
            "[record]\ntraces = true\n[[flow]]",
            "[record]\nqueue_log = \"on\"\n[[flow]]",
        ],
    );
    insta::assert_snapshot!(out);
}

#[test]
fn sysctls_arrive_in_their_order() {
    let table = "sysctl_end = { tcp_sack = 0 }\nsysctl = { \"net.ipv4.mine\" = \"a b\", tcp_rmem = [1, 2, 3] }";
    let text = with("[[flow]]", &format!("[linux]\n{table}\n[[flow]]"));
    let spec = parse(&text, &["linux.sysctl_start.tcp_dsack=0"]).unwrap().spec(1);
    let all: Vec<_> =
        spec.sysctls.iter().map(|s| (s.name.as_str(), s.value.as_str(), s.ends)).collect();
    let (both, start, end) = ([true, true], [true, false], [false, true]);
    assert_eq!(
        all,
        [
            ("mine", "a b", both),
            ("tcp_rmem", "1 2 3", both),
            ("tcp_dsack", "0", start),
            ("tcp_sack", "0", end)
        ]
    );
    let record = knee_sim::run(&spec).unwrap();
    let named = "only the host `linux` sets sysctls: net.ipv4.mine = a b at both ends, ";
    assert!(record.approximations[0].starts_with(named), "{:?}", record.approximations);
}

#[test]
fn errors_in_linux() {
    let out = replacing(
        "[[flow]]",
        &[
            "[linux]\nsysctls = {}\n[[flow]]",
            "[linux]\nsysctl = 1\n[[flow]]",
            "[linux]\nsysctl = { tcp_reorderign = 5 }\n[[flow]]",
            "[linux.sysctl]\nip_forward = 1\n[[flow]]",
            "[linux.sysctl]\n\"net.ipv4.tcp mine\" = 1\n[[flow]]",
            "[linux.sysctl]\ntcp_sack = true\n[[flow]]",
            "[linux.sysctl]\ntcp_sack = 0.5\n[[flow]]",
            "[linux.sysctl]\ntcp_rmem = [1, \"2\"]\n[[flow]]",
            "[linux.sysctl]\ntcp_rmem = []\n[[flow]]",
            "[linux.sysctl]\ntcp_sack = \"1\\n0\"\n[[flow]]",
        ],
    );
    insta::assert_snapshot!(out);
}

#[test]
fn the_number_of_bins_is_limited_by_the_duration_too() {
    let error = parse(SMALL, &["duration=1000000s", "record.bin=10ms"]).unwrap_err();
    let at_duration =
        parse(&with("duration = \"10s\"", "duration = \"1000000s\""), &["record={queue_log=true}"]);
    assert!(at_duration.is_ok(), "10 million bins are allowed");
    insta::assert_snapshot!(rendered(&error));
}

#[test]
fn errors_in_flows() {
    let mut out = replacing(
        "cc = \"newreno\"",
        &[
            "",
            "cc = 5",
            "cc = \"newrenoo\"",
            "cc = \"quantum\"",
            "cc = \"kernel:\"",
            "cc = \"kernel:no such/name\"",
            "cc = \"kernel:reno\"\nparams = { beta = 0.5 }",
            "kind = \"tpc\"\ncc = \"newreno\"",
            "kind = \"udp\"\ncc = \"newreno\"",
            "kind = \"udp\"",
            "kind = \"udp\"\nrate = \"0bit\"",
            "kind = \"udp\"\nrate = \"1mbit\"\npacket = \"70kB\"",
            "kind = \"udp\"\nrate = \"1mbit\"\ntcp = {}",
            "kind = \"udp\"\nrate = \"1mbit\"\nrate_steps = \"2mbit\"",
            "kind = \"udp\"\nrate = \"1mbit\"\nrate_steps = [\"1s\", \"2mbit\"]",
            "kind = \"udp\"\nrate = \"1mbit\"\nrate_steps = [[\"1s\", 2]]",
            "kind = \"udp\"\nrate = \"1mbit\"\nrate_steps = [[\"1s\", \"0bit\"], [\"2\", \"1mbit\"]]",
            "kind = \"udp\"\nrate = \"1mbit\"\nrate_steps = [[\"2s\", \"0bit\"], [\"2s\", \"1mbit\"]]",
            "kind = \"udp\"\nrate = \"1mbit\"\nrate_steps = [[\"2s\", \"2000gbit\"]]",
            "kind = \"probe\"\nrate = \"1mbit\"",
            "kind = \"probe\"\ninterval = \"0ms\"",
            "kind = \"probe\"\nparams = {}",
        ],
    );
    out += &in_flow(&[
        "rate = \"1mbit\"",
        "interval = \"1ms\"",
        "packet = \"1500B\"",
        "colour = \"red\"",
        "starts = \"1s\"",
        "name = \"\"",
        "name = \"a b\"",
        "name = \"é\"",
        "name = \"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddx\"",
        "name = \"a\"\n[[flow]]\ncc = \"hd\"\nname = \"a\"",
        "name = \"a-2\"\n[[flow]]\ncc = \"hd\"\nname = \"a\"\ncount = 2",
        "name = \"hd-2\"\n[[flow]]\ncc = \"hd\"",
        "count = 0",
        "count = 100001",
        "count = 60000\n[[flow]]\ncc = \"hd\"\ncount = 60000",
        "start = 1",
        "start = \"10s\"",
        "start = \"-1s\"",
        "count = 3\nstart_spacing = \"5s\"",
        "start = \"9s\"\nstart_jitter = \"2s\"",
        "start = \"5s\"\nstop = \"5s\"",
        "count = 3\nstart_spacing = \"2s\"\nstop = \"3s\"",
        "start_jitter = \"1s\"\nstop = \"1s\"",
        "stop = \"5s\"\nlifetime = \"5s\"",
        "lifetime = \"0s\"",
        "start_jitter = \"2s\"\nlifetime = \"1s\"",
        "every = \"5s\"",
        "size = \"1MB\"\nevery = \"0s\"",
        "size = \"0B\"",
        "size = 1000",
        "size = \"1MB\"\nevery = 5",
        "access_delay = \"1\"",
        "access_delay_spread = \"-1ms\"",
        "tcp = 5",
        "[flow.tcp]\nmss = \"1B\"",
        "[flow.tcp]\npacket = \"20B\"",
        "params = \"qth\"",
    ]);
    insta::assert_snapshot!(out);
}

#[test]
fn errors_in_parameters() {
    let chd = |params: &str| with("cc = \"newreno\"", &format!("cc = \"chd\"\nparams = {params}"));
    let cdg = |params: &str| with("cc = \"newreno\"", &format!("cc = \"cdg\"\nparams = {params}"));
    let texts: Vec<_> = [
        "{ qht = \"20ms\" }",
        "{ beta = 1 }",
        "{ queue_thresh = \"20ms\" }",
        "{ qth = 20 }",
        "{ qth = \"20\" }",
        "{ qth = \"11s\" }",
        "{ qth = \"0.5us\" }",
        "{ qth = \"1.0005ms\" }",
        "{ qth = \"20ms\", queue_threshold = \"20ms\" }",
        "{ qmin = \"30ms\", qth = \"20ms\" }",
        "{ qmin = \"30ms\" }",
        "{ queue_threshold = \"4ms\" }",
        "{ qmax = \"30ms\" }",
        "{ pmax = 1.5 }",
        "{ pmax = -0.5 }",
        "{ pmax = 0.12345678 }",
        "{ pmax = \"25%\" }",
        "{ pmax = nan }",
        "{ pmax = 1e300 }",
        "{ growth = \"rounds\" }",
        "{ growth = true }",
        "{ use_max = \"yes\" }",
        "{ use_max = 1 }",
        "{ ss_limit = \"2\" }",
        "{ ss_limit = -2 }",
        "{ ss_limit = 2000000 }",
    ]
    .into_iter()
    .map(chd)
    .chain(["{ smoothing = 2.9 }", "{ smoothing = \"3\" }", "{ smoothing = 9 }"].map(cdg))
    .collect();
    let cases: Vec<_> = texts.iter().map(|text| (text.as_str(), &[] as &[&str])).collect();
    let out = messages(&cases);
    insta::assert_snapshot!(out);
}

#[test]
fn errors_of_sets() {
    let mut out = String::new();
    for argument in ["", "path.rate"] {
        let error = Set::parse(argument).unwrap_err();
        writeln!(out, "{}\n", rendered(&error)).unwrap();
    }
    out += &messages(&[
        (SMALL, &["=5"]),
        (SMALL, &["path..rate=5mbit"]),
        (SMALL, &["path.rate=5"]),
        (SMALL, &["path.rate = 5mbps "]),
        (SMALL, &["path.rat=5mbit"]),
        (SMALL, &["pth.rate=5mbit"]),
        (SMALL, &["path.rate.fast=5mbit"]),
        (SMALL, &["path=5"]),
        (SMALL, &["flow.1.cc=hd"]),
        (LARGE, &["flow.4.cc=hd"]),
        (LARGE, &["flow.first.cc=hd"]),
        (SMALL, &["flow.cc=hd"]),
        (SMALL, &["flow.0=hd"]),
        (SMALL, &["flow=[]", "flow.0.cc=hd"]),
        (SMALL, &["flow=[1]", "flow.0.cc=hd"]),
        (SMALL, &["flow=[{cc=\"hd\"}]", "flow.1.cc=hd"]),
        (SMALL, &["flow.0.param.qth=20ms"]),
        (SMALL, &["flow.0.cc=chd", "flow.0.params.qth=4ms"]),
        (SMALL, &["flow.0.cc=chd", "flow.0.params.qth=20ms", "flow.0.params.qmin=20ms"]),
        (SMALL, &["flow.0.cc=hd", "flow.0.cc=newrenoo"]),
        (SMALL, &["duration=1s", "flow.0.start=2s"]),
        (SMALL, &["path={rate=\"1mbit\",rtt=\"1ms\"}"]),
        (SMALL, &["record.trace=yes"]),
        (&with("[path]", "[path] # moved down\njitter_forward = 1"), &["seed=5"]),
    ]);
    let error = Scenario::parse("fig5.toml", SMALL, &[Set::new("path.queue", 84)]).unwrap_err();
    writeln!(out, "{}\n", rendered(&error)).unwrap();
    insta::assert_snapshot!(out);
}

#[test]
fn errors_of_files() {
    let folder = tempfile::tempdir().unwrap();
    let not_text = folder.path().join("latin1.toml");
    fs::write(&not_text, b"title = \"a\"\ntitle = \"caf\xe9\"\n").unwrap();
    let mut out = String::new();
    for path in [&folder.path().join("none.toml"), folder.path(), &not_text] as [&Path; 3] {
        let error = Scenario::load(path, &[]).unwrap_err();
        let text = rendered(&error).replace('\n', " ");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        // The folder's name is random, and so is where a line breaks.
        let shown = folder.path().display().to_string();
        assert!(text.contains(&shown), "{text}");
        writeln!(out, "{}", text.replace(&shown, "DIR")).unwrap();
    }
    insta::assert_snapshot!(out);

    let good = folder.path().join("good.toml");
    fs::write(&good, SMALL).unwrap();
    assert_eq!(Scenario::load(&good, &[]).unwrap().text(), SMALL);
}

const SOURCE: &str = "arrivals = { rate_per_s = 20 }";

#[test]
fn errors_in_sources() {
    let size = |law: &str| format!("{SOURCE}\nsize = {law}");
    let sizes = [
        "{ mean = \"30kB\" }",
        "{ law = \"weibull\", mean = \"30kB\" }",
        "{ law = \"pareto\", mean = \"30kB\" }",
        "{ law = \"pareto\", mean = \"30kB\", shape = 0 }",
        "{ law = \"pareto\", mean = \"30kB\", shape = 1.2, min = \"1kB\" }",
        "{ law = \"pareto\", mean = \"2B\", shape = 1.2 }",
        "{ law = \"lognormal\", mean = \"30kB\" }",
        "{ law = \"lognormal\", mean = \"30kB\", sigma = 1, max = \"20kB\" }",
        "{ law = \"exponential\", shape = 1.2 }",
        "{ law = \"exponential\", mean = \"30kB\", max = \"40kB\" }",
        "{ law = \"exponential\", mean = \"30kB\", min = \"50kB\", max = \"50kB\" }",
        "30000",
    ]
    .map(size);
    let others = [
        SOURCE,
        "arrivals = 20\nsize = \"30kB\"",
        "arrivals = {}\nsize = \"30kB\"",
        "arrivals = { rate_per_s = 20, load = 0.3 }\nsize = \"30kB\"",
        "arrivals = { rate = 20 }\nsize = \"30kB\"",
        "arrivals = { load = 0 }\nsize = \"30kB\"",
        "arrivals = { rate_per_s = 10000 }\nsize = \"30kB\"",
        "arrivals = { rate_per_s = 20 }\nsize = \"30kB\"\ncount = 2",
        "arrivals = { rate_per_s = 20 }\nsize = \"30kB\"\nevery = \"1s\"",
        "arrivals = { rate_per_s = 20 }\nsize = \"30kB\"\nstart_jitter = \"1s\"",
        "arrivals = { rate_per_s = 20 }\nsize = \"30kB\"\nweb = {}",
        "size = { law = \"pareto\", mean = \"30kB\", shape = 1.2 }",
        "web = { connections = \"two\" }",
        "web = { think = \"1s\" }",
        "web = {}\nsize = \"30kB\"",
        "web = { connections = \"one\", reading = \"1us\" }",
        "video = { chunk = \"1s\" }",
        "video = { rate = \"1bit\", chunk = \"1s\" }",
        "video = { rate = \"1mbit\" }\nevery = \"1s\"",
        "web = {}\nkind = \"udp\"",
    ];
    let all: Vec<&str> = sizes.iter().map(String::as_str).chain(others).collect();
    insta::assert_snapshot!(in_flow(&all));
}

#[test]
fn sources_draw_anew_in_each_repetition() {
    let lines = "name = \"short\"\nsize = \"30kB\"\nstart = \"2s\"\nlifetime = \"5s\"\n";
    let text = format!("{SMALL}{lines}{SOURCE}\n[[flow]]\ncc = \"chd\"\n");
    let scenario = parse(&text, &["repeat=2"]).unwrap();
    let [first, second] = [0, 1].map(|r| scenario.spec(scenario.seed_of(r)));
    assert_eq!(first.flows[0].name, "chd-2");
    let drawn = &first.flows[1..];
    assert_eq!(drawn[4].name, "short#5");
    assert!((60..140).contains(&drawn.len()), "{}", drawn.len());
    let inside = |f: &knee_model::FlowSpec| (2_000_000_000..7_000_000_000).contains(&f.start_ns);
    assert!(drawn.iter().all(|f| inside(f) && f.stop_ns.is_none()));
    let transfer = Workload::Transfers { size_bytes: 30_000, every_ns: None };
    assert!(drawn.iter().all(|f| tcp(&f.kind).workload == transfer));
    assert_ne!(first.flows[1].start_ns, second.flows[1].start_ns);
    // A load is of the path's rate: 0.5 of 10 Mbit/s in transfers of 31.25 kB are 20 per second.
    let sets = ["flow.0.arrivals={load=0.5}", "flow.0.size=\"31250B\""];
    assert_eq!(parse(&text, &sets).unwrap().spec(1).flows.len(), first.flows.len());
}

#[test]
fn a_video_is_transfers_one_after_the_other() {
    let workload =
        |sets: &[&str]| tcp(&parse(SMALL, sets).unwrap().spec(1).flows[0].kind).workload.clone();
    let transfers = |size_bytes, every_s: u64| Workload::Transfers {
        size_bytes,
        every_ns: Some(every_s * 1_000_000_000),
    };
    assert_eq!(workload(&["flow.0.video.rate=4mbit"]), transfers(1_000_000, 2));
    let sets = ["flow.0.video.rate=4mbit", "flow.0.video.chunk=4s"];
    assert_eq!(workload(&sets), transfers(2_000_000, 4));
}

#[test]
fn long_nonsense_makes_no_long_message() {
    let long = "x".repeat(5000);
    for text in [
        with("rate = \"10mbit\"", &format!("rate = \"{long}\"")),
        with("rate = \"10mbit\"", &format!("{long} = 1")),
        with("rate = \"10mbit\"", &format!("rate = \"\"\"{}\"\"\"", "a\n".repeat(500))),
        with("cc = \"newreno\"", &format!("name = \"{long}\"\ncc = \"newreno\"")),
    ] {
        let error = parse(&text, &[]).unwrap_err();
        assert!(error.to_string().chars().count() < 200, "{error}");
    }
}

#[test]
fn the_reference_is_complete_and_its_example_valid() {
    let reference = include_str!("../../../docs/reference/scenario.md");
    let example = reference.split("```toml").nth(1).and_then(|s| s.split("```").next()).unwrap();
    assert_eq!(parse(example, &[]).unwrap().spec(1).flows.len(), 3);
    // An unknown key is answered with the list of keys.
    let large = format!("{LARGE}\n{SOURCES}");
    let paths = ["zz", "path.zz", "path.aqm.zz", "tcp.zz", "record.zz"];
    let flows = ["flow.0.zz", "flow.2.zz", "flow.3.zz"];
    let sources = ["flow.4.arrivals.zz", "flow.4.size.zz", "flow.5.web.zz", "flow.6.video.zz"];
    for path in paths.into_iter().chain(flows).chain(sources) {
        let error = parse(&large, &[&format!("{path}=1")]).unwrap_err();
        let remedy = miette::Diagnostic::help(&error).unwrap().to_string();
        let keys: Vec<_> = remedy.split_once("keys here: ").unwrap().1.split(", ").collect();
        assert!(keys.len() > 1, "{remedy}");
        for key in keys {
            let documented = [format!("| `{key}` |"), format!("## `[{key}]`")];
            let table = format!("## `[[{key}]]`");
            let is_there = documented.iter().chain([&table]).any(|s| reference.contains(s));
            assert!(is_there, "{path}: {key} is not in the reference");
        }
    }
}

/// The scenarios of this repository: the files that name a path, without claims and figures.
#[test]
fn every_scenario_here_is_valid() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")];
    let mut loaded = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if fs::read_to_string(&entry).unwrap().contains("\n[path]") {
                loaded += 1;
                Scenario::load(&entry, &[]).unwrap_or_else(|e| panic!("{}", rendered(&e)));
            }
        }
    }
    assert!(loaded > 0);
}

/// Every algorithm's defaults, written out, are accepted and yield the same parameters.
#[test]
fn every_default_can_be_written() {
    for algorithm in algorithms() {
        let defaults = knee_cc::Params::defaults(*algorithm);
        let mut sets = vec![Set::new("flow.0.cc", algorithm.name())];
        for (param, (name, value)) in algorithm.params().iter().zip(defaults.shown()) {
            let path = format!("flow.0.params.{}", param.alias.unwrap_or(name));
            sets.push(set(&format!("{path}={value}")));
        }
        let spec = Scenario::parse("fig5.toml", SMALL, &sets)
            .unwrap_or_else(|e| panic!("{}", rendered(&e)))
            .spec(1);
        assert_eq!(*params(&spec.flows[0].kind), defaults);
    }
}

/// Reads and, if it is refused, renders: neither may panic. If it is not, its text says it all.
fn must_not_panic(text: &str, arguments: &[String]) {
    let sets: Vec<_> = arguments.iter().filter_map(|a| Set::parse(a).ok()).collect();
    match Scenario::parse("fuzz.toml", text, &sets) {
        Ok(scenario) => {
            let again = Scenario::parse("again.toml", scenario.text(), &[]).unwrap();
            assert_eq!(format!("{:?}", again.spec(1)), format!("{:?}", scenario.spec(1)));
        }
        Err(error) => {
            let mut out = String::new();
            GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
                .with_width(100)
                .render_report(&mut out, &error)
                .unwrap();
            assert!(!error.to_string().is_empty());
        }
    }
}

/// Parts of a scenario: words, quoted strings, punctuation, line ends.
fn tokens(text: &str) -> Vec<&str> {
    text.split_inclusive([' ', '\n', '"', '=', '.', ',', '[', ']']).collect()
}

#[derive(Clone, Debug)]
enum Edit {
    Delete,
    Duplicate,
    Swap(prop::sample::Index),
    Insert(String),
}

fn edit() -> impl Strategy<Value = (bool, prop::sample::Index, Edit)> {
    let odd = prop::sample::select(vec![
        "0",
        "-1",
        "1e999",
        "nan",
        "\"\"",
        "\"0s\"",
        "\"18446744073709551615ns\"",
        "{}",
        "[]",
        "[{}]",
        "true",
        "\"é\"",
        "\"99999999999p\"",
        "1979-05-27",
        "\u{feff}",
        "\t",
        "\r\n",
        "a.b",
        "100000",
        "\"1000000s\"",
        "\"1GB\"",
    ]);
    let edit = prop_oneof![
        Just(Edit::Delete),
        Just(Edit::Duplicate),
        any::<prop::sample::Index>().prop_map(Edit::Swap),
        odd.prop_map(|s| Edit::Insert(s.to_owned())),
        any::<String>().prop_map(Edit::Insert),
    ];
    (any::<bool>(), any::<prop::sample::Index>(), edit)
}

fn mutate(text: &str, edits: &[(bool, prop::sample::Index, Edit)]) -> String {
    edits.iter().fold(text.to_owned(), |text, (by_line, at, edit)| {
        let mut parts: Vec<&str> =
            if *by_line { text.split_inclusive('\n').collect() } else { tokens(&text) };
        if parts.is_empty() {
            return text;
        }
        let at = at.index(parts.len());
        match edit {
            Edit::Delete => drop(parts.remove(at)),
            Edit::Duplicate => parts.insert(at, parts[at]),
            Edit::Swap(other) => parts[at] = parts[other.index(parts.len())],
            Edit::Insert(new) => parts[at] = new,
        }
        parts.concat()
    })
}

fn set_argument() -> impl Strategy<Value = String> {
    let step = prop_oneof![
        8 => prop::sample::select(vec![
            "path", "rate", "rtt", "queue", "flow", "0", "1", "99", "params", "qth", "tcp",
            "packet", "count", "start", "start_spacing", "lifetime", "record", "bin", "",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    let value = prop_oneof![
        4 => prop::sample::select(vec![
            "5mbit", "20ms", "0", "-1", "true", "[]", "[{}]", "{}", "{cc=\"hd\"}", "1e9", "\"",
            "1979-05-27", "1000000s", "100000", "0.5", " x # y",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    prop_oneof![
        4 => (prop::collection::vec(step, 1..5), value)
            .prop_map(|(steps, value)| format!("{}={value}", steps.join("."))),
        1 => any::<String>(),
    ]
}

/// A flow as meant, and its table.
#[derive(Clone, Debug)]
struct Meant {
    count: u32,
    start_ns: u64,
    spacing_ns: u64,
    lifetime_ns: Option<u64>,
    kind: MeantKind,
}

#[derive(Clone, Debug)]
enum MeantKind {
    Newreno { packet: Option<u32>, size: Option<u64> },
    Chd { qth_us: u32, pmax_ppm: u32 },
    Udp { rate: u64, packet: u32 },
    Probe { interval_ns: u64 },
}

fn meant_flow() -> impl Strategy<Value = Meant> {
    let kind = prop_oneof![
        (prop::option::of(53u32..65_535), prop::option::of(1u64..1 << 40))
            .prop_map(|(packet, size)| MeantKind::Newreno { packet, size }),
        (5001u32..10_000_000, 0u32..=1_000_000)
            .prop_map(|(qth_us, pmax_ppm)| MeantKind::Chd { qth_us, pmax_ppm }),
        (1u64..=1_000_000_000_000, 1u32..65_535)
            .prop_map(|(rate, packet)| MeantKind::Udp { rate, packet }),
        (1u64..1 << 40).prop_map(|interval_ns| MeantKind::Probe { interval_ns }),
    ];
    let times =
        (0u64..50_000_000_000, 0u64..1_000_000_000, prop::option::of(1u64..100_000_000_000));
    (1u32..20, times, kind).prop_map(|(count, (start_ns, spacing_ns, lifetime_ns), kind)| Meant {
        count,
        start_ns,
        spacing_ns,
        lifetime_ns,
        kind,
    })
}

impl Meant {
    fn text(&self) -> String {
        let mut text = format!(
            "[[flow]]\ncount = {}\nstart = \"{}\"\nstart_spacing = \"{}\"\n",
            self.count,
            TIME.show(self.start_ns),
            TIME.show(self.spacing_ns)
        );
        if let Some(lifetime_ns) = self.lifetime_ns {
            text += &format!("lifetime = \"{}\"\n", TIME.show(lifetime_ns));
        }
        text += &match &self.kind {
            MeantKind::Newreno { packet, size } => {
                let size = size.map_or(String::new(), |s| format!("size = \"{}\"\n", SIZE.show(s)));
                let packet = packet.map_or(String::new(), |p| {
                    format!("tcp.packet = \"{}\"\n", SIZE.show(p.into()))
                });
                format!("cc = \"newreno\"\n{size}{packet}")
            }
            MeantKind::Chd { qth_us, pmax_ppm } => format!(
                "cc = \"chd\"\nparams.qth = \"{qth_us}us\"\nparams.pmax = {}\n",
                f64::from(*pmax_ppm) / 1e6
            ),
            MeantKind::Udp { rate, packet } => {
                format!("kind = \"udp\"\nrate = \"{}\"\npacket = \"{packet}B\"\n", RATE.show(*rate))
            }
            MeantKind::Probe { interval_ns } => {
                format!("kind = \"probe\"\ninterval = \"{}\"\n", TIME.show(*interval_ns))
            }
        };
        text
    }

    fn is(&self, kind: &FlowKind) -> bool {
        match (&self.kind, kind) {
            (MeantKind::Newreno { packet, size }, FlowKind::Tcp(tcp)) => {
                let workload = match *size {
                    Some(size_bytes) => Workload::Transfers { size_bytes, every_ns: None },
                    None => Workload::Bulk,
                };
                tcp.cc.name() == "newreno"
                    && tcp.workload == workload
                    && tcp.options.mss_bytes + 52 == packet.unwrap_or(1500)
            }
            (MeantKind::Chd { qth_us, pmax_ppm }, kind @ FlowKind::Tcp(_)) => {
                let algorithm = params(kind).algorithm();
                let words = params(kind).words();
                let word = |name| {
                    let at = algorithm.params().iter().position(|p| p.name == name);
                    at.map(|at| words[at])
                };
                algorithm.name() == "chd"
                    && word("qth") == Some(*qth_us)
                    && word("pmax") == Some(*pmax_ppm)
            }
            (MeantKind::Udp { rate, packet }, FlowKind::Udp { rate_bps, packet_bytes, .. }) => {
                rate == rate_bps && packet == packet_bytes
            }
            (MeantKind::Probe { interval_ns: meant }, FlowKind::Probe { interval_ns, .. }) => {
                meant == interval_ns
            }
            _ => false,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn arbitrary_text_never_panics(text: String) {
        must_not_panic(&text, &[]);
        must_not_panic(&format!("{SMALL}{text}"), &[]);
    }

    #[test]
    fn mutated_scenarios_never_panic(
        edits in prop::collection::vec(edit(), 1..6),
        arguments in prop::collection::vec(set_argument(), 0..2),
    ) {
        must_not_panic(&mutate(LARGE, &edits), &arguments);
        must_not_panic(&mutate(&format!("{SMALL}\n{SOURCES}"), &edits), &arguments);
        must_not_panic(&mutate(SMALL, &edits), &arguments);
    }

    #[test]
    fn arbitrary_sets_never_panic(arguments in prop::collection::vec(set_argument(), 1..4)) {
        must_not_panic(LARGE, &arguments);
        must_not_panic(SMALL, &arguments);
        must_not_panic("", &arguments);
    }

    #[test]
    fn a_valid_scenario_yields_its_values(
        rate in 1u64..=1_000_000_000_000,
        delays in (1u64..1 << 49, 0u64..1 << 49),
        queue in prop_oneof![
            (1u32..).prop_map(QueueLimit::Packets),
            (65_535u64..).prop_map(QueueLimit::Bytes),
            (1u64..).prop_map(QueueLimit::BytesAndOne),
        ],
        loss in 0.0f64..1.0,
        seed in 0..=i64::MAX as u64,
        meant in prop::collection::vec(meant_flow(), 1..8),
    ) {
        let mut text = format!(
            "duration = \"100s\"\nseed = {seed}\n[path]\nrate = \"{}\"\nqueue = \"{}\"\n\
             delay_forward = \"{}\"\ndelay_reverse = \"{}\"\nloss_forward = {loss:?}\n",
            RATE.show(rate), show_queue(queue), TIME.show(delays.0), TIME.show(delays.1),
        );
        meant.iter().for_each(|flow| text += &flow.text());
        let scenario = match parse(&text, &[]) {
            Ok(scenario) => scenario,
            Err(error) => return Err(TestCaseError::fail(format!("{text}\n{}", rendered(&error)))),
        };
        let spec = scenario.spec(scenario.seed_of(0));
        prop_assert_eq!(spec.seed, seed);
        prop_assert_eq!(spec.path.hops[0].rate_bps, rate);
        prop_assert_eq!(spec.path.hops[0].queue, queue);
        prop_assert_eq!((spec.path.delay_forward_ns, spec.path.delay_reverse_ns), delays);
        prop_assert_eq!(spec.path.hops[0].loss, loss);
        prop_assert_eq!(scenario.groups().len(), meant.len());
        let mut flows = spec.flows.iter();
        for flow in &meant {
            for copy in 0..u64::from(flow.count) {
                let got = flows.next().unwrap();
                let start_ns = flow.start_ns + copy * flow.spacing_ns;
                prop_assert_eq!(got.start_ns, start_ns);
                let stop_ns = flow.lifetime_ns.map(|l| start_ns + l).filter(|s| *s < spec.duration_ns);
                prop_assert_eq!(got.stop_ns, stop_ns);
                prop_assert!(flow.is(&got.kind), "{:?} is not {:?}", got.kind, flow.kind);
            }
        }
        prop_assert!(flows.next().is_none());
    }
}
