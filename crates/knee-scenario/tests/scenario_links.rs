//! Keys of `[path]` for links that change, lose in bursts, reorder, or are narrow in the reverse direction.

#![allow(clippy::unwrap_used)]

use knee_model::{BurstLoss, DeliveryTrace, NS_PER_MS, NS_PER_S, PathSpec, QueueLimit, Varying};
use knee_scenario::{Scenario, ScenarioError, Set};
use miette::Diagnostic;
use proptest::prelude::*;
use std::{fs, path::Path, sync::Arc};
use tempfile::tempdir;

const MS: u64 = NS_PER_MS;
const S: u64 = NS_PER_S;
const MBIT: u64 = 1_000_000;

/// A scenario with these lines in `[path]`, in addition to the queue.
fn with(lines: &str) -> String {
    format!("duration = \"10s\"\n[path]\nqueue = \"84p\"\n{lines}\n[[flow]]\ncc = \"newreno\"\n")
}

fn parse(lines: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse("links.toml", &with(lines), &[])
}

fn path(lines: &str) -> PathSpec {
    parse(lines)
        .unwrap_or_else(|e| panic!("{e}: {:?}", e.help().map(|h| h.to_string())))
        .spec(1)
        .path
}

/// A constant link and these lines.
fn plain(lines: &str) -> String {
    format!("rate = \"10mbit\"\nrtt = \"40ms\"\n{lines}")
}

/// The error and its remedy.
fn refused(lines: &str) -> (String, String) {
    let error = parse(lines).expect_err(lines);
    (error.to_string(), error.help().expect("every error has a remedy").to_string())
}

#[test]
fn rates_and_delays_change() {
    let path = path(&plain(
        "rate_steps = [[\"2s\", \"5mbit\"], [\"3.5s\", \"0bit\"]]\nrtt_steps = [[\"1s\", \"5ns\"]]\n\
         delay_falls_reorder = true",
    ));
    assert_eq!(path.hops[0].rate_bps, 10 * MBIT);
    assert_eq!(
        path.hops[0].rate_varies,
        Some(Varying::Steps(vec![(2 * S, 5 * MBIT), (3500 * MS, 0)]))
    );
    assert_eq!(
        (&path.delay_forward_steps[..], &path.delay_reverse_steps[..]),
        (&[(S, 2)][..], &[(S, 3)][..])
    );
    assert!(path.falls_reorder);
    assert_eq!(path.rtt_range_ns(), (5, 40 * MS));
}

#[test]
fn the_two_ways_change_by_themselves() {
    let path = path(
        "rate = \"1mbit\"\ndelay_forward = \"10ms\"\ndelay_reverse = \"20ms\"\n\
         delay_forward_steps = [[\"1s\", \"0ms\"], [\"3s\", \"50ms\"]]\n\
         delay_reverse_steps = [[\"2s\", \"5ms\"], [\"3s\", \"25ms\"]]",
    );
    assert_eq!(path.delay_forward_steps, [(S, 0), (3 * S, 50 * MS)]);
    // The lowest delays are 0 and 5 ms, the highest 50 and 25 ms.
    assert_eq!(path.rtt_range_ns(), (5 * MS, 75 * MS));
    assert!(!path.falls_reorder);
}

#[test]
fn losses_come_in_bursts() {
    let path = path(&plain(
        "burst_loss_forward = { loss = 0.01, burst = 4 }\n\
         burst_loss_reverse = { good_to_bad = 0.003, bad_to_good = 1, loss_good = 0.0001, loss_bad = 0.8 }",
    ));
    assert_eq!(path.hops[0].bursts, BurstLoss::of_means(0.01, 4.0));
    let exact =
        BurstLoss { good_to_bad: 0.003, bad_to_good: 1.0, loss_good: 0.0001, loss_bad: 0.8 };
    assert_eq!(path.bursts_reverse, Some(exact));
    assert_eq!((path.hops[0].loss, path.loss_reverse), (0.0, 0.0));
}

#[test]
fn packets_are_late_and_the_reverse_link_is_narrow() {
    let path = path(&plain(
        "reorder = { probability = 0.02, delay = \"3ms\" }\nreverse_rate = \"256kbit\"\n\
         reverse_rate_steps = [[\"1s\", \"128kbit\"]]\nreverse_queue = \"10kB\"",
    ));
    assert_eq!(path.reorder.map(|r| (r.probability, r.extra_delay_ns)), Some((0.02, 3 * MS)));
    let reverse = path.reverse.unwrap();
    assert_eq!((reverse.rate_bps, reverse.queue), (256_000, QueueLimit::Bytes(10_000)));
    assert_eq!(reverse.rate_varies, Some(Varying::Steps(vec![(S, 128_000)])));
}

#[test]
fn a_plain_path_has_none_of_it() {
    let path = path(&plain(""));
    assert!(path.hops[0].rate_varies.is_none() && path.reverse.is_none() && path.reorder.is_none());
    assert!(path.delay_forward_steps.is_empty() && path.delay_reverse_steps.is_empty());
    assert!(path.hops[0].bursts.is_none() && path.bursts_reverse.is_none());
}

#[test]
fn traces_are_files_near_the_scenario_and_stay_in_its_text() {
    let folder = tempdir().unwrap();
    fs::create_dir(folder.path().join("traces")).unwrap();
    fs::write(folder.path().join("traces/down"), "2\n2\n5\n10\n").unwrap();
    let file = folder.path().join("cellular.toml");
    let text = with(
        "rtt = \"40ms\"\nrate_trace = \"traces/down\" # measured\nreverse_rate_trace = [0, 1]\n\
         reverse_queue = \"100p\"",
    );
    fs::write(&file, &text).unwrap();
    let scenario = Scenario::load(&file, &[]).unwrap();
    let spec = scenario.spec(1);
    let trace = DeliveryTrace::new(&[2, 2, 5, 10]).unwrap();
    assert_eq!(spec.path.hops[0].rate_varies, Some(Varying::Trace(Arc::new(trace))));
    // 4 packets of 12000 bits in 10 ms.
    assert_eq!(spec.path.hops[0].rate_bps, 4_800_000);
    assert_eq!(spec.path.reverse.as_ref().map(|reverse| reverse.rate_bps), Some(24_000_000));
    // The text needs the file no more.
    assert!(scenario.text().contains("rate_trace = [2, 2, 5, 10]"), "{}", scenario.text());
    let again = Scenario::parse("scenario.toml", scenario.text(), &[]).unwrap();
    assert_eq!(format!("{:?}", again.spec(1)), format!("{spec:?}"));
    assert_eq!(again.text(), scenario.text());
    // A value that is set is relative to the scenario too.
    fs::write(folder.path().join("up"), "7").unwrap();
    let set = [Set::parse("path.rate_trace=up").unwrap()];
    let spec = Scenario::load(&file, &set).unwrap().spec(1);
    assert_eq!(spec.path.hops[0].rate().highest_bps(), 12_000_000 / 7);
}

#[test]
fn an_error_in_a_trace_names_file_and_line() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("scenario.toml");
    let load = |name: &str| {
        fs::write(&file, with(&format!("rtt = \"40ms\"\nrate_trace = \"{name}\""))).unwrap();
        let error = Scenario::load(&file, &[]).expect_err(name);
        (error.to_string(), error.help().unwrap().to_string())
    };
    fs::write(folder.path().join("words"), "1\n2\nthree\n").unwrap();
    let (what, remedy) = load("words");
    assert_eq!(what, "path.rate_trace: words, line 3: `three` is not a time");
    assert!(remedy.contains("milliseconds"), "{remedy}");
    fs::write(folder.path().join("disordered"), "1\n9\n3\n").unwrap();
    assert_eq!(
        load("disordered").0,
        "path.rate_trace: disordered, line 3: 3 is before the time above it, 9"
    );
    fs::write(folder.path().join("empty"), "").unwrap();
    assert_eq!(load("empty").0, "path.rate_trace: empty: it contains no time");
    fs::write(folder.path().join("zero"), "0\n0\n").unwrap();
    assert_eq!(load("zero").0, "path.rate_trace: zero, line 2: the trace has no duration");
    let (what, remedy) = load("nowhere");
    assert!(what.starts_with("path.rate_trace: cannot read `nowhere`: "), "{what}");
    assert!(remedy.contains("relative to the folder of the scenario"), "{remedy}");
    assert_eq!(load(".").0, "path.rate_trace: cannot read `.`: it is not a file");
    fs::write(folder.path().join("binary"), b"1\n\xff\n").unwrap();
    assert_eq!(load("binary").0, "path.rate_trace: binary, line 2: `\u{fffd}` is not a time");
    assert!(
        Path::new("/dev/zero")
            .exists()
            .then(|| load("/dev/zero").0)
            .is_none_or(|what| what.ends_with("it is not a file"))
    );
}

#[test]
fn contradictions_and_gaps_are_refused() {
    let cases: &[(&str, &str, &str)] = &[
        ("rtt = \"40ms\"", "path.rate is missing", "rate = \"10mbit\""),
        (
            "rtt = \"40ms\"\nrate = \"1mbit\"\nrate_trace = [1]",
            "path.rate_trace: `rate` is there too",
            "keep one",
        ),
        (
            "rtt = \"40ms\"\nrate_steps = [[\"1s\", \"1mbit\"]]\nrate_trace = [1]",
            "path.rate_trace: `rate_steps` is there too",
            "keep one",
        ),
        (
            "rtt = \"40ms\"\nrate_steps = [[\"1s\", \"1mbit\"]]",
            "path.rate_steps: there is no rate to begin with",
            "write `rate` too",
        ),
        ("rtt = \"40ms\"\nrate_trace = [1, -2]", "path.rate_trace is a list", "the name of a file"),
        ("rtt = \"40ms\"\nrate_trace = 5", "path.rate_trace is an integer", "the name of a file"),
        (
            "rtt = \"40ms\"\nrate_trace = [2, 1]",
            "path.rate_trace: time 2: 1 is before the time above it, 2",
            "in order",
        ),
        (
            "rtt = \"40ms\"\nrate_trace = []",
            "path.rate_trace: it contains no time",
            "write the time",
        ),
        (
            &plain("rate_steps = [[\"2s\", \"1mbit\"], [\"1s\", \"2mbit\"]]"),
            "path.rate_steps: step 2 is not after the one before it",
            "in order",
        ),
        (
            &plain("rtt_steps = [[\"2s\", \"1mbit\"]]"),
            "path.rtt_steps: step 1: `1mbit`: `mbit` is not a unit of a time",
            "ms",
        ),
        (
            &plain("rtt_steps = [[\"2s\", 5]]"),
            "path.rtt_steps: step 1 is not a time and a time",
            "[[\"20s\", \"80ms\"]",
        ),
        (
            &plain("rtt_steps = [[\"2s\", \"2000000s\"]]"),
            "path.rtt_steps: step 1 is out of range",
            "delays up to 1000000s",
        ),
        (
            &plain("rtt_steps = [[\"2s\", \"0ms\"]]"),
            "path.rtt_steps: both delays would be 0, one after the other or at once",
            "longer than 0",
        ),
        (
            &plain("rtt_steps = [[\"2s\", \"1ms\"]]\ndelay_reverse_steps = [[\"2s\", \"1ms\"]]"),
            "path.rtt_steps: `delay_reverse_steps` is there too",
            "keep `rtt_steps`",
        ),
        (
            "rate = \"1mbit\"\ndelay_forward = \"1ms\"\ndelay_reverse = \"1ms\"\n\
             rtt_steps = [[\"2s\", \"1ms\"]]",
            "path.rtt_steps: there is no rtt to begin with",
            "delay_forward_steps",
        ),
        (
            &plain("loss_forward = 0.1\nburst_loss_forward = { loss = 0.1, burst = 2 }"),
            "path.burst_loss_forward: `loss_forward` is there too",
            "`loss_good`",
        ),
        (
            &plain("burst_loss_forward = { loss = 0.1 }"),
            "path.burst_loss_forward.burst is missing",
            "burst = 4",
        ),
        (
            &plain("burst_loss_forward = { burst = 4 }"),
            "path.burst_loss_forward.loss is missing",
            "loss = 0.01",
        ),
        (
            &plain("burst_loss_forward = { loss = 0.1, burst = 0.5 }"),
            "path.burst_loss_forward.burst = 0.5 is out of range",
            "from 1 on",
        ),
        (
            &plain("burst_loss_forward = { loss = 0.75, burst = 2 }"),
            "path.burst_loss_forward.burst = 2 is too short for so much loss",
            "at least 3",
        ),
        (
            &plain("burst_loss_reverse = { loss = 0.1, burst = 2, good_to_bad = 0.5 }"),
            "path.burst_loss_reverse.loss: `good_to_bad` is there too",
            "four probabilities",
        ),
        (
            &plain("burst_loss_reverse = { good_to_bad = 0.1, bad_to_good = 0 }"),
            "path.burst_loss_reverse.bad_to_good = 0 is out of range",
            "above 0",
        ),
        (
            &plain("burst_loss_reverse = { bad_to_good = 0.1 }"),
            "path.burst_loss_reverse.good_to_bad is missing",
            "good_to_bad",
        ),
        (
            &plain("burst_loss_reverse = { bad_to_god = 0.1 }"),
            "path.burst_loss_reverse.bad_to_god: no such key",
            "did you mean `bad_to_good`?",
        ),
        (&plain("reorder = { probability = 0.1 }"), "path.reorder.delay is missing", "\"5ms\""),
        (
            &plain("reorder = { probability = 1, delay = \"5ms\" }"),
            "path.reorder.probability = 1 is out of range",
            "below 1",
        ),
        (&plain("reorder = 0.1"), "path.reorder is a number", "a table"),
        (&plain("reverse_rate = \"1mbit\""), "path.reverse_queue is missing", "\"100p\""),
        (
            &plain("reverse_queue = \"10p\""),
            "path.reverse_queue: the reverse direction has no rate",
            "`reverse_rate`",
        ),
        (
            &plain("reverse_rate = \"1mbit\"\nreverse_queue = \"51B\""),
            "path.reverse_queue is smaller than one ACK of flow newreno-1 (52B)",
            "at least \"52B\"",
        ),
    ];
    for (lines, what, remedy) in cases {
        let (said, help) = refused(lines);
        assert!(said.contains(what), "{lines}\n{said}");
        assert!(help.contains(remedy), "{lines}\n{said}\n{help}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_value_makes_it_panic(
        key in prop::sample::select(vec![
            "rate_steps", "rtt_steps", "delay_forward_steps", "rate_trace", "reverse_rate_trace",
            "burst_loss_forward", "burst_loss_reverse", "reorder", "reverse_rate", "reverse_queue",
            "burst_loss_forward.loss", "burst_loss_forward.burst", "reorder.delay",
        ]),
        value in prop::sample::select(vec![
            "[]", "[[]]", "[[\"1s\", \"1mbit\"]]", "[[\"1s\", \"1ms\"]]", "[1, 2]", "[0]",
            "[9223372036854775807]", "{}", "{ loss = 0.5, burst = 1 }", "{ loss = nan, burst = inf }",
            "nan", "inf", "-0.0", "1e-320", "0.999999999999999999", "\"\"", "\"\\u0000\"", "\"5ms\"",
            "\"1mbit\"", "\"1p\"", "true",
        ]),
        more in prop::sample::select(vec!["", "reverse_queue = \"1p\"", "burst_loss_forward.loss = 0.1"]),
    ) {
        if let Ok(scenario) = parse(&plain(&format!("{key} = {value}\n{more}"))) {
            let (least, most) = scenario.spec(1).path.rtt_range_ns();
            prop_assert!(least > 0 && least <= most);
        }
    }
}
