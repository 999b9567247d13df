//! Algorithms of one's own: `cc = "./mine.c"`, `--algorithm`, `knee test`, and the messages on faulty
//! ones.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, repository, text};
use std::{env, fs, process::Output};

const SCENARIO: &str = "duration = \"5s\"\n[path]\nrate = \"10mbit\"\nrtt = \"40ms\"\nqueue = \"84p\"\n\
                        [[flow]]\ncc = \"mine.c\"\n[[flow]]\ncc = \"newreno\"\n";
const GROW: &str = "reno_grow(conn, p->count, p->ss_limit_pkts, ack->acked_pkts);";

/// NewReno under another name.
fn mine() -> String {
    let newreno = include_str!("../../../cc/algorithms/newreno.c");
    newreno.replace("newreno", "mine").replace("NEWRENO", "MINE")
}

/// A folder with an algorithm that says `code` where NewReno grows.
fn place(code: &str) -> Place {
    let place = Place::new();
    let source = mine();
    assert_eq!(source.matches(GROW).count(), 1);
    fs::write(place.path("mine.c"), source.replace(GROW, code)).unwrap();
    fs::write(place.path("mine.toml"), SCENARIO).unwrap();
    place
}

/// Runs `knee`, which finds compilers.
fn knee(place: &Place, command: &str) -> Output {
    let mut knee = place.knee(&command.split(' ').collect::<Vec<_>>());
    knee.env("PATH", env::var_os("PATH").unwrap()).env("TMPDIR", place.dir.path()).output().unwrap()
}

/// The message of a command that fails and leaves nothing behind, on one line.
fn said(place: &Place, command: &str) -> String {
    let before = place.entries();
    let output = knee(place, command);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{command}: {said}{}", text(&output.stdout));
    assert_eq!(place.entries(), before, "{command} left something behind");
    said.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn one_under_another_name_does_the_same() {
    let place = place(GROW);
    let json = |command: &str| {
        let output = knee(&place, command);
        assert!(output.status.success(), "{command}: {}", text(&output.stderr));
        let (_, runs) = text(&output.stdout)
            .split_once("\"runs\"")
            .map(|(a, b)| (a.len(), b.to_owned()))
            .unwrap();
        runs.replace("mine-1", "newreno-1").replace("\"mine\"", "\"newreno\"")
    };
    let reference = json("run mine.toml --format json --set flow.0.cc=newreno");
    for command in [
        "run mine.toml --format json",
        "run mine.toml --format json --set flow.0.cc=./mine.c",
        "run mine.toml --format json --algorithm mine.c --set flow.0.cc=mine",
    ] {
        assert!(json(command) == reference, "{command}");
    }
    // Relative to the scenario's folder, not to the present one.
    fs::create_dir(place.path("below")).unwrap();
    fs::rename(place.path("mine.toml"), place.path("below/mine.toml")).unwrap();
    fs::rename(place.path("mine.c"), place.path("below/mine.c")).unwrap();
    assert!(json("run below/mine.toml --format json") == reference);
}

#[test]
fn results_can_be_run_and_replayed() {
    let place = place(GROW);
    let output = knee(&place, "run mine.toml --trace --out results");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let kept = fs::read_to_string(place.path("results/mine.c")).unwrap();
    assert_eq!(kept, fs::read_to_string(place.path("mine.c")).unwrap());
    fs::remove_file(place.path("mine.c")).unwrap();
    let again = knee(&place, "run results/scenario.toml");
    assert!(again.status.success(), "{}", text(&again.stderr));
    let replay = knee(&place, "replay results --algorithm results/mine.c");
    assert!(replay.status.success(), "{}", text(&replay.stderr));
    assert!(text(&replay.stdout).contains("bit-identically"));
    let unknown = said(&place, "replay results");
    assert!(
        unknown.contains("no algorithm `mine`") && unknown.contains("--algorithm"),
        "{unknown}"
    );
}

/// The meaning of a name must not depend on their order.
#[test]
fn two_of_the_same_name_are_refused() {
    let place = place(GROW);
    fs::create_dir(place.path("other")).unwrap();
    let code = fs::read_to_string(place.path("mine.c")).unwrap();
    fs::write(place.path("other/mine.c"), format!("{code}/* another */\n")).unwrap();
    let both = "run mine.toml --algorithm mine.c --algorithm other/mine.c";
    assert!(said(&place, both).contains("two algorithms are called `mine`"));
    let once = knee(&place, "run mine.toml --algorithm mine.c --algorithm mine.c");
    assert!(once.status.success(), "{}", text(&once.stderr));
}

#[test]
fn every_command_takes_it() {
    let place = place(GROW);
    for (command, has) in [
        ("list ./mine.c", "mine: "),
        ("duel ./mine.c newreno --duration 10s --repeat 1", "against newreno"),
        ("duel ./mine.c:ss_limit=9p ./mine.c --duration 10s --repeat 1", "mine:ss_limit=9p"),
        ("bench dumbbell --cc ./mine.c --duration 1s", "packets delivered"),
        ("run mine.toml --host quic", "mine-1"),
    ] {
        let output = knee(&place, command);
        assert!(output.status.success(), "{command}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains(has), "{command}: {}", text(&output.stdout));
    }
}

#[test]
fn tested_as_the_built_in_ones_are() {
    let output = knee(&place(GROW), "test ./mine.c --cases 50");
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).ends_with("mine passes\n"));
    // It grows while the application holds sending back, as the contract forbids.
    let output = knee(
        &place(
            "conn->cwnd_pkts += (conn->cwnd_pkts < conn->cwnd_max_pkts) & p->count & (ack->acked_pkts | 1U);",
        ),
        "test ./mine.c --cases 50",
    );
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("grew while the application limited"), "{said}");
    assert!(said.contains("event 1: "), "{said}");
}

/// The example of the guide passes `knee test`.
#[test]
fn the_documented_example_passes() {
    let place = Place::new();
    let text_of_page = repository("docs/how-to/add-an-algorithm.md");
    let (_, rest) = text_of_page.split_once("\n```c\n").unwrap();
    let (code, _) = rest.split_once("```\n").unwrap();
    fs::write(place.path("soft.c"), code).unwrap();
    let output = knee(&place, "test ./soft.c --cases 8");
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

#[test]
fn compile_errors() {
    let said_of = |code: &str| said(&place(code), "run mine.toml");
    let unknown = said_of("grow(conn, p, ack);");
    assert!(unknown.contains("mine.c:46:") && unknown.contains("grow"), "{unknown}");
    assert!(unknown.contains("mine.toml:7:"), "the scenario's line: {unknown}");
    // Warnings are errors, as in the build.
    let warned =
        said_of("u32 unused; reno_grow(conn, p->count, p->ss_limit_pkts, ack->acked_pkts);");
    assert!(warned.contains("unused"), "{warned}");
    // The first of many messages.
    let many = said_of(&"ack = 1.0 * p;\n".repeat(100));
    assert!(many.contains("mine.c:46:") && many.contains("lines more"), "{many}");
    assert!(many.lines().count() < 60, "{many}");
    let place = place(GROW);
    let source = mine().replace("u32 prior_cwnd_pkts;", "u32 prior_cwnd_pkts; u8 more[88];");
    fs::write(place.path("mine.c"), source).unwrap();
    let large = said(&place, "run mine.toml");
    assert!(large.contains("state fits the socket"), "{large}");
    assert!(said(&place, "duel ./nothing.c chd").contains("cannot read"));
    assert!(said(&place, "run mine.toml --algorithm nothing.c").contains("nothing.c"));
}

#[test]
fn files_that_are_no_algorithm() {
    let refused = |source: &str| {
        let place = place(GROW);
        fs::write(place.path("mine.c"), source).unwrap();
        said(&place, "run mine.toml")
    };
    let said_of = |code: &str| said(&place(code), "run mine.toml");
    let calls =
        said_of("extern u32 outside(u32); conn->cwnd_cnt = outside(ack->acked_pkts); (void)p;");
    assert!(calls.contains("it calls `outside`, which it does not define"), "{calls}");
    let keeps = said_of("static u32 seen; seen++; conn->cwnd_cnt = seen; (void)p; (void)ack;");
    assert!(keeps.contains("variables outside its state: `seen"), "{keeps}");
    let nothing = refused("int one(void);\nint one(void) { return 1; }\n");
    assert!(nothing.contains("describes no algorithm"), "{nothing}");
    let taken = refused(include_str!("../../../cc/algorithms/hd.c"));
    assert!(taken.contains("`hd` is the name of a built-in algorithm"), "{taken}");
    let old = mine().replace(
        "KNEE_ALGORITHM(mine",
        "#undef CC_CONTRACT_VERSION\n#define CC_CONTRACT_VERSION 9U\nKNEE_ALGORITHM(mine",
    );
    let old = refused(&old);
    assert!(old.contains("written for version 9 of the contract"), "{old}");
    let row = mine().replace(
        "RENO_SSTHRESH_PARAM(X)",
        "RENO_SSTHRESH_PARAM(X) X(CC_COUNT, n, \"n\", \"\", 1, 9, 10, \"\", \"s\", \"h\")",
    );
    let row = refused(&row);
    assert!(row.contains("parameter `n`: its default 10 is not from 1 to 9"), "{row}");
    let place = place(GROW);
    fs::write(place.path("two.c"), mine() + "\n").unwrap();
    let two = said(&place, "run mine.toml --set flow.1.cc=two.c");
    assert!(two.contains("another algorithm is called `mine`"), "{two}");
}

/// The run ends, and the algorithm is named.
#[test]
fn broken_contracts() {
    for (code, why) in [
        (
            "conn->cwnd_pkts = p->count - p->count + ack->acked_pkts * 0U;",
            "left a window of 0 packets",
        ),
        (
            "conn->cwnd_pkts = conn->cwnd_max_pkts + p->count + (ack->acked_pkts | 1U);",
            "left a window of",
        ),
        ("conn->ssthresh_pkts = 1; (void)p; (void)ack;", "left ssthresh at 1 packets"),
        ("volatile u32 none = 0; conn->cwnd_cnt = p->count / none; (void)ack;", "divided by zero"),
        (
            "u32 *volatile wild = (u32 *)8; *wild = p->count; (void)ack; (void)conn;",
            "used memory that is not its own",
        ),
        (
            "for (volatile u32 on = 1; on;) conn->cwnd_cnt++; (void)p; (void)ack;",
            "did not return within a second",
        ),
    ] {
        for host in ["sim", "quic"] {
            let said = said(&place(code), &format!("run mine.toml --host {host}"));
            let start = "× algorithm `mine` (mine.c): on_ack() ";
            assert!(said.starts_with(start) && said.contains(why), "{host}, {code}: {said}");
        }
    }
}

#[test]
fn without_a_compiler() {
    let place = place(GROW);
    let output = place.knee(&["run", "mine.toml"]).env("PATH", place.dir.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no C compiler"), "{}", text(&output.stderr));
}
