//! `knee list`, `knee bench`, `knee completions`, help, and pipes whose reader goes away.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, text};
use knee_cc::algorithms;
use std::{
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
};

#[test]
fn list_tells_the_same_as_table_and_as_json() {
    let place = Place::new();
    let table = place.stdout(&["list"]);
    assert!(table.lines().all(|l| l == l.trim_end()), "blanks at the ends of lines");
    let json = place.json(&["list", "--format", "json"]);
    let listed = json["algorithms"].as_array().unwrap();
    let names: Vec<_> = listed.iter().map(|a| a["name"].as_str().unwrap()).collect();
    assert_eq!(names, algorithms().iter().map(|a| a.name()).collect::<Vec<_>>());

    let mut rows = 0;
    for algorithm in listed {
        let word = |key: &str| algorithm[key].as_str().unwrap();
        let caption = format!("{}: {}\n", word("name"), word("summary"));
        let section = table.split_once(&caption).unwrap().1;
        let section = section.split_once("\n\n").unwrap().0;
        assert!(section.contains(word("source")));
        assert!(section.contains(&format!("{} B of state", algorithm["state_bytes"])));
        for param in algorithm["params"].as_array().unwrap() {
            let word = |key: &str| param[key].as_str().unwrap();
            let name = match param["alias"].as_str() {
                Some(alias) => format!(" {} ({alias}) ", word("name")),
                None => format!(" {} ", word("name")),
            };
            let row = section.lines().find(|l| l.starts_with(&name)).unwrap();
            let typed = |key: &str| param["typed"][key].as_str().unwrap().to_owned();
            let range = match word("unit") {
                "choice" => {
                    let choices = param["choices"].as_array().unwrap();
                    let names: Vec<_> = choices.iter().map(|c| c.as_str().unwrap()).collect();
                    names.join(" | ")
                }
                _ => format!("{} to {}", typed("min"), typed("max")),
            };
            for shown in [range, typed("default"), word("help").into(), word("source").into()] {
                assert!(row.contains(&shown), "{shown}: {row}");
            }
            if param["default"].is_number() {
                let value = |key: &str| param[key].as_f64().unwrap();
                assert!(value("min") <= value("default") && value("default") <= value("max"));
            }
            rows += 1;
        }
    }
    // Nothing but these rows, and a caption, a source, heads and a rule for each algorithm.
    let lines = table.lines().filter(|l| !l.is_empty()).count();
    assert_eq!(lines, rows + 4 * listed.len() + 1);
}

#[test]
fn bench_measures() {
    let place = Place::new();
    let json = place.json(&["bench", "dumbbell", "--duration", "1s", "--format", "json"]);
    let value = |key: &str| json[key].as_f64().unwrap();
    // 100 Mbit/s for 1 s of 1500-byte packets, less the first round trips.
    assert!((4000.0..8334.0).contains(&value("delivered_pkts")), "{json}");
    assert!(value("wall_s") > 0.0);
    let ns = value("wall_s") * 1e9 / value("delivered_pkts");
    assert!((value("ns_per_delivered_pkt") / ns - 1.0).abs() < 1e-9);
    assert!((1e6..1e9).contains(&value("peak_rss_bytes")), "{json}");
    assert!((1.0..=333.0).contains(&value("max_held_pkts")), "{json}");
    let goodput = value("delivered_pkts") * 1448.0 * 8.0;
    assert!((value("goodput_bps") / goodput - 1.0).abs() < 0.01, "{json}");

    let line = place.stdout(&["bench", "dumbbell", "--duration", "1s"]);
    assert!(line.lines().count() == 1 && line.contains("ns per packet"), "{line}");
}

/// With no program in reach both peers are named with their packages. With a stand-in for ns-2 (it
/// delivers 5000 packets) there are pairs, and nothing is left behind.
#[test]
fn bench_compares_with_peers() {
    let place = Place::new();
    let arguments = ["bench", "peers", "--pairs", "2", "--duration", "1s", "--format", "json"];
    let json = place.json(&arguments);
    let missing = serde_json::json!([
        { "peer": "ns-2", "package": "ns2" },
        { "peer": "ns-3", "package": "libns3-dev" },
    ]);
    assert_eq!((&json["missing"], &json["peers"]), (&missing, &serde_json::json!([])));

    let (programs, temporary) = (place.path("programs"), place.path("temporary"));
    fs::create_dir(&programs).unwrap();
    fs::create_dir(&temporary).unwrap();
    let ns = programs.join("ns");
    fs::write(&ns, "#!/bin/sh\ntest -s $1 && test $2 = sack && echo delivered pkts 5000\n")
        .unwrap();
    fs::set_permissions(&ns, fs::Permissions::from_mode(0o755)).unwrap();
    let output = place.knee(&arguments).env("PATH", &programs).env("TMPDIR", &temporary).output();
    let json: serde_json::Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    let peer = &json["peers"][0];
    let pairs = peer["pairs"].as_array().unwrap();
    let mean = |key: &str| pairs.iter().map(|pair| pair[key].as_f64().unwrap()).sum::<f64>() / 2.0;
    assert_eq!((pairs.len(), peer["peer"].as_str()), (2, Some("ns-2")));
    let ns_per_pkt = mean("peer_s") * 1e9 / 5000.0;
    assert!((peer["peer_ns_per_delivered_pkt"].as_f64().unwrap() / ns_per_pkt - 1.0).abs() < 1e-9);
    assert!(peer["ratio"].as_f64().unwrap() > 0.0 && mean("knee_s") > 0.0);
    assert_eq!(json["missing"][0]["package"], "libns3-dev");
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}

/// Runs `script` with standard input `input`, if there is such a shell.
fn shell(shell: &str, arguments: &[&str], input: &str) -> Option<String> {
    let command = Command::new(shell)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = command.ok()?;
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{shell}: {}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "", "{shell}");
    Some(text(&output.stdout))
}

#[test]
fn completions_are_scripts_of_their_shells() {
    let place = Place::new();
    for (name, check) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        let script = place.stdout(&["completions", name]);
        for word in ["reproduce", "dumbbell", "loss_forward", "newreno"] {
            // Commands and values of arguments; a scenario's keys are not known to a shell.
            assert_eq!(script.contains(word), word != "loss_forward", "{name}: {word}");
        }
        shell(name, &[check], &script);
    }
    let script = place.stdout(&["completions", "bash"]);
    let ask =
        "COMP_WORDS=(knee repr); COMP_CWORD=1; _knee knee repr knee; echo \"${COMPREPLY[@]}\"";
    let reply = shell("bash", &["--norc"], &format!("{script}\n{ask}\n"));
    if let Some(reply) = reply {
        assert_eq!(reply.trim(), "reproduce");
    }
}

#[test]
fn the_schema_is_the_one_of_the_repository() {
    let recorded = include_str!("../../../docs/reference/scenario.schema.json");
    assert!(Place::new().stdout(&["schema"]) == recorded);
    assert!(Place::new().stdout(&["markdown", "record"]).contains("| `queue_log` |"));
}

#[test]
fn help_teaches() {
    let place = Place::new();
    let long = place.stdout(&["--help"]);
    for command in ["list", "run", "reproduce", "duel", "matrix", "replay", "bench", "completions"]
    {
        assert!(long.contains(command), "{command}");
        let arguments = [command, "--help"];
        let help = place.stdout(&arguments);
        assert!(help.contains("Usage: knee "), "{help}");
        assert!(help.lines().all(|l| l.chars().count() <= 100), "{help}");
    }
    assert!(long.contains("knee reproduce chd"), "an example: {long}");

    // The example is one: it runs.
    let run = place.stdout(&["run", "--help"]);
    let example = run.split_once("all keys):\n").unwrap().1.split_once("\n\n").unwrap().0;
    std::fs::write(place.path("example.toml"), example).unwrap();
    let sets = run.lines().last().unwrap().split_whitespace();
    let words = ["run", "example.toml"].into_iter().chain(sets).collect::<Vec<_>>();
    assert!(words.len() > 4, "{words:?}");
    assert!(place.stdout(&words).contains("newreno-2-3"));
    assert!(place.stdout(&["--version"]).starts_with("knee "));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::new();
    let commands: [&[&str]; 6] = [
        &["list"],
        &["list", "--format", "json"],
        &["completions", "bash"],
        &["--help"],
        &["run", "two.toml", "--format", "json"],
        &["run", "two.toml", "--out", "results"],
    ];
    for arguments in commands {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = place.knee(arguments).stdout(writer).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {:?}", output.status);
        let stderr = text(&output.stderr);
        assert!(stderr.is_empty() || stderr == "results: results\n", "{arguments:?}: {stderr}");
    }
    assert!(place.path("results/report.html").exists());
    // Nor does a closed standard error turn a success, or an error, into a crash.
    for (arguments, code) in [(["run", "two.toml", "--out=r2"], 0), (["run", "no", "--out=r3"], 2)]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = place.knee(&arguments).stderr(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    }
}
