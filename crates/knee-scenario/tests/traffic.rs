//! Sources of flows in the simulator: against what queueing theory says.

#![allow(clippy::unwrap_used, missing_docs)]

use knee_model::{RunRecord, RunSpec};
use knee_results::{metrics::Metrics, summary};
use knee_scenario::Scenario;
use std::time::Instant;

fn run(text: &str) -> (RunSpec, RunRecord) {
    let spec = Scenario::parse("test.toml", text, &[]).unwrap().spec(1);
    let record = knee_sim::run(&spec).unwrap();
    (spec, record)
}

/// 12 Mbit/s: a packet of 1500 bytes takes 1 ms; 20 ms from the bottleneck to the receivers.
fn scenario(duration: &str, flows: &str) -> String {
    format!(
        "duration = \"{duration}\"\n[path]\nrate = \"12mbit\"\nrtt = \"40ms\"\nqueue = \"100000p\"\n{flows}"
    )
}

const ALL: std::ops::Range<u64> = 0..u64::MAX;

/// One packet each: Poisson arrivals at a server that takes 1 ms, the queue M/D/1.
#[test]
fn single_packets_wait_as_in_an_m_d_1_queue() {
    for load in [0.1, 0.5, 0.8] {
        let per_s = load * 1000.0;
        let flows = format!(
            "[[flow]]\nname = \"short\"\ncc = \"newreno\"\nsize = \"1448B\"\nstop = \"49s\"\n\
             arrivals.rate_per_s = {per_s:?}\n"
        );
        let (spec, record) = run(&scenario("50s", &flows));
        let m = Metrics::new(&spec, &record);
        let of = m.completion(&m.flows_from("short"), &ALL).unwrap();
        assert_eq!((of.completed, of.unfinished), (spec.flows.len(), 0));
        // Half a round trip and its own transmission are certain; a lone packet has nothing else.
        let least_ms = m.completion_times_s(&m.flows_from("short"), &ALL)[0] * 1e3;
        assert!((least_ms - 21.0).abs() < 1e-9, "{least_ms}");
        // Pollaczek and Khinchine: the mean wait is load / (2 (1 - load)) services. It comes from
        // 5000 to 40 000 waits, which depend on each other the longer the higher the load.
        let waits_ms = of.mean_s.unwrap() * 1e3 - 21.0;
        let theory_ms = load / (2.0 * (1.0 - load));
        println!("load {load}: {waits_ms:.4} ms, in theory {theory_ms:.4} ms");
        assert!((waits_ms / theory_ms - 1.0).abs() < 0.1, "{load}: {waits_ms} {theory_ms}");
    }
}

/// Alone on a fast path a transfer takes the round trips of slow start.
#[test]
fn a_lone_transfer_takes_the_rounds_of_slow_start() {
    let text = |pkts: u64| {
        format!(
            "duration = \"20s\"\n[path]\nrate = \"12gbit\"\nrtt = \"40ms\"\nqueue = \"100000p\"\n\
             [[flow]]\nname = \"short\"\ncc = \"newreno\"\nsize = \"{}B\"\narrivals.rate_per_s = 2\n",
            pkts * 1448
        )
    };
    // 10 packets at once, then 20, then 40: so many round trips before the last packet is sent. It
    // takes 1 us to transmit a packet, and 20 ms to arrive.
    for (pkts, rounds, last_pkts) in [(1, 0, 1), (10, 0, 10), (11, 1, 1), (30, 1, 20), (31, 2, 1)] {
        let (spec, record) = run(&text(pkts));
        assert!(spec.flows.len() > 10);
        let m = Metrics::new(&spec, &record);
        let times_s = m.completion_times_s(&m.flows_from("short"), &ALL);
        // An ACK comes back 1 us after the packet's departure; the packets that it lets out follow
        // each other as the ACKs do, two for each, so that the last one waits for the last but one.
        for time_s in times_s {
            let rounds_ms = 20.0 + 40.0 * f64::from(rounds);
            let late_us = (time_s * 1e3 - rounds_ms) * 1e3;
            let most_us = f64::from(last_pkts) + f64::from(rounds);
            assert!((1.0 - 1e-6..=most_us + 1e-6).contains(&late_us), "{pkts}: {time_s} {late_us}");
        }
    }
}

#[test]
fn a_load_is_offered_and_carried() {
    let flows = "[[flow]]\nname = \"short\"\ncc = \"newreno\"\narrivals.load = 0.5\n\
                 size = { law = \"exponential\", mean = \"20kB\" }\n";
    let (spec, record) = run(&scenario("400s", flows));
    let m = Metrics::new(&spec, &record);
    let short = m.flows_from("short");
    // 0.5 of 12 Mbit/s in transfers of 20 kB are 37.5 per second; counts and sizes each vary by
    // their own mean, over 15 000 flows.
    let per_s = spec.flows.len() as f64 / 400.0;
    assert!((per_s / 37.5 - 1.0).abs() < 4.0 / 15_000f64.sqrt(), "{per_s}");
    let bytes: u64 = short.iter().map(|i| record.flows[*i].counters.delivered_bytes).sum();
    let load = bytes as f64 * 8.0 / 400.0 / 12e6;
    assert!((load / 0.5 - 1.0).abs() < 4.0 * 2f64.sqrt() / 15_000f64.sqrt(), "{load}");
    // Everything that was written is either complete or told of.
    let of = m.completion(&short, &ALL).unwrap();
    assert_eq!(of.completed + of.unfinished, spec.flows.len());
    assert!(of.unfinished < 20, "{of:?}");
}

/// A source's draws do not depend on the other flows, nor theirs on the source.
#[test]
fn sources_leave_other_flows_as_they_were() {
    let bulk = "[[flow]]\nname = \"bulk\"\ncc = \"pert\"\nstart_jitter = \"1s\"\naccess_delay_spread = \"9ms\"\n";
    let source = |rate| {
        format!(
            "[[flow]]\nname = \"s{rate}\"\ncc = \"newreno\"\narrivals.rate_per_s = {rate}\nsize = \"9kB\"\n\
             access_delay_spread = \"3ms\"\n"
        )
    };
    let spec =
        |flows: &str| Scenario::parse("test.toml", &scenario("60s", flows), &[]).unwrap().spec(5);
    let alone = spec(bulk);
    let beside = spec(&[&source(3), bulk, &source(5)].concat());
    let other = spec(&[&source(4), bulk, &source(5)].concat());
    // Flows that the scenario names come first, whatever is drawn.
    assert_eq!(beside.flows[0].name, "bulk");
    let streams = |spec: &RunSpec, i: usize| {
        ["start", "forward", "reverse", "algorithm", "access delay"]
            .map(|component| spec.random(component, i).bits64())
    };
    assert_eq!((alone.start_ns(0), streams(&alone, 0)), (beside.start_ns(0), streams(&beside, 0)));
    let of = |spec: &RunSpec, source: &str| -> Vec<(u64, [u64; 5])> {
        let drawn = (0..spec.flows.len())
            .filter(|i| spec.flows[*i].drawn.as_ref().is_some_and(|d| &*d.source == source));
        drawn.map(|i| (spec.start_ns(i), streams(spec, i))).collect()
    };
    assert_eq!(of(&beside, "s5"), of(&other, "s5"));
    assert_ne!(of(&beside, "s3").len(), of(&other, "s4").len());
    let mut all: Vec<_> = (0..beside.flows.len()).map(|i| streams(&beside, i)).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), beside.flows.len(), "each flow has streams of its own");
}

#[test]
fn users_of_one_connection_and_of_many_ask_for_the_same() {
    let web = |connections: &str| {
        format!(
            "[[flow]]\nname = \"web\"\ncc = \"newreno\"\ncount = 30\n\
             web = {{ connections = \"{connections}\", reading = \"10s\" }}\n"
        )
    };
    let bytes = |connections| {
        let (spec, record) = run(&scenario("200s", &web(connections)));
        let m = Metrics::new(&spec, &record);
        let flows = m.flows_from("web");
        let of = m.completion(&flows, &ALL).unwrap();
        let written = flows.iter().map(|i| &record.flows[*i]);
        let bytes: u64 = written
            .flat_map(|f| {
                let completed = f.transfers.iter().map(|t| t.bytes);
                completed.chain(f.unfinished.iter().map(|t| t.bytes)).collect::<Vec<_>>()
            })
            .sum();
        (of.completed + of.unfinished, bytes, flows.len())
    };
    let (many, one) = (bytes("parallel"), bytes("one"));
    assert_eq!((many.0, many.1), (one.0, one.1));
    assert_eq!((many.2, one.2), (many.0, 30));
}

#[test]
fn a_video_stalls_where_the_path_is_too_slow() {
    let stalled = |rate| {
        let flows = format!(
            "[[flow]]\nname = \"video\"\ncc = \"newreno\"\nvideo = {{ rate = \"{rate}\", chunk = \"1s\" }}\n"
        );
        let (spec, record) = run(&scenario("60s", &flows));
        Metrics::new(&spec, &record).stalled_s(0).unwrap()
    };
    assert_eq!(stalled("4mbit"), 0.0);
    // 16 Mbit/s over at most 12 * 1448 / 1500: a second of video takes 1.381 s, so that of the 58.6 s
    // after the first chunk 58.6 * (1 - 1 / 1.381) are waiting, but for the chunk that is playing.
    let slow = stalled("16mbit");
    assert!((slow - 58.6 * (1.0 - 11.584 / 16.0)).abs() < 1.5, "{slow}");
}

/// Time series of thousands of ended flows take neither memory nor time.
#[test]
fn ended_flows_keep_only_their_counters() {
    let flows = "[[flow]]\ncc = \"newreno\"\nname = \"bulk\"\n[[flow]]\nname = \"short\"\ncc = \"chd\"\n\
                 arrivals.rate_per_s = 100\nsize = \"3kB\"\n";
    let start = Instant::now();
    let (spec, record) = run(&scenario("99.95s", flows).replace("100000p", "80p"));
    println!("{} flows: {:?}", spec.flows.len(), start.elapsed());
    assert_eq!(record.flows[0].samples.len(), 1000);
    let short = &record.flows[1..];
    let rows: usize = short.iter().map(|f| f.samples.len()).sum();
    // Packets may still arrive after a transfer is complete: those sent again for nothing.
    let completed = short.iter().flat_map(|f| &f.transfers).map(|t| t.end_ns - t.start_ns);
    let unfinished =
        short.iter().flat_map(|f| &f.unfinished).map(|t| spec.duration_ns - t.start_ns);
    let lives_ns: u64 = completed.chain(unfinished).sum();
    let most = lives_ns as f64 / 1e8 + 3.0 * short.len() as f64;
    assert!(rows as f64 <= most && rows >= short.len() * 9 / 10, "{rows} rows, at most {most}");
    // The rows agree with the counters.
    for flow in short {
        let sum = |of: fn(&knee_model::FlowSample) -> u64| flow.samples.iter().map(of).sum::<u64>();
        assert_eq!(sum(|s| s.delivered_bytes), flow.counters.delivered_bytes, "{}", flow.name);
        assert_eq!(sum(|s| s.sent_pkts.into()), flow.counters.sent_pkts, "{}", flow.name);
    }
    let provenance = summary::Provenance {
        commit: None,
        host: "sim",
        made_with: &[],
        scenario_name: "short",
        scenario_text: "",
    };
    let summary = summary::summary(&provenance, &spec, std::slice::from_ref(&record));
    assert_eq!(summary["runs"][0]["flows"].as_array().unwrap().len(), 1);
    assert_eq!(summary["runs"][0]["sources"][0]["connections"], short.len());
}
