//! Error messages of the program: exit code 2, one screen, the place and the remedy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, text};
use std::{fmt::Write as _, fs};

/// The messages of each of `commands` (words apart by spaces).
fn said(place: &Place, commands: &[&str]) -> String {
    let mut all = String::new();
    for command in commands {
        let before = place.entries();
        let output = place.run(&command.split(' ').collect::<Vec<_>>());
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command}: {stderr}");
        assert!(output.stdout.is_empty(), "{command}");
        assert!(stderr.lines().count() <= 20, "{command}: more than a screen: {stderr}");
        assert!(!stderr.contains('\x1b'), "{command}: colours in a pipe");
        assert!(stderr.lines().all(|l| l.chars().count() <= 160), "{command}: {stderr}");
        assert_eq!(place.entries(), before, "{command}: an error left something behind");
        let _ = writeln!(all, "$ knee {command}\n{}\n", stderr.trim_end());
    }
    all
}

#[test]
fn of_arguments() {
    let place = Place::new();
    let text = said(
        &place,
        &[
            "rnu",
            "--verbose",
            "run",
            "run two.toml three.toml",
            "run two.toml --sed 3",
            "run two.toml --seed -1",
            "run two.toml --seed 9223372036854775808",
            "run two.toml --seed 99999999999999999999",
            "run two.toml --repeat 0",
            "run two.toml --repeat 1.5",
            "run two.toml --repeat 10001",
            "run two.toml --jobs 0",
            "run two.toml --jobs 1025",
            "run two.toml --jobs --trace",
            "run two.toml --host ns3",
            "run two.toml --format jsn",
            "run two.toml --trace",
            "run two.toml --set",
            "list chdd",
            "list --format yaml",
            "completions",
            "completions tcsh",
        ],
    );
    insta::assert_snapshot!(text);
}

#[test]
fn of_scenarios() {
    let place = Place::new();
    let wrong = [
        ("typo.toml", "duration = \"5s\"\n\n[path]\nrate = \"10mbit\"\nrrt = \"40ms\"\n"),
        ("unitless.toml", "duration = 5\n\n[path]\nrate = \"10mbit\"\n"),
        ("no-path.toml", "duration = \"5s\"\n\n[[flow]]\ncc = \"chd\"\n"),
        ("not.toml", "duration: 5s\n"),
        ("empty.toml", ""),
    ];
    for (name, content) in wrong {
        fs::write(place.path(name), content).unwrap();
    }
    fs::write(place.path("binary.toml"), b"title = \"\xff\"\n").unwrap();
    fs::create_dir(place.path("folder")).unwrap();
    let text = said(
        &place,
        &[
            "run missing.toml",
            "run folder",
            "run binary.toml",
            "run not.toml",
            "run empty.toml",
            "run typo.toml",
            "run unitless.toml",
            "run no-path.toml",
            "run chd",
        ],
    );
    insta::assert_snapshot!(text);
}

#[test]
fn of_values() {
    let place = Place::new();
    let text = said(
        &place,
        &[
            "run two.toml --set path.rate",
            "run two.toml --set =5mbit",
            "run two.toml --set path..rate=5mbit",
            "run two.toml --set path.speed=5mbit",
            "run two.toml --set paths.rate=5mbit",
            "run two.toml --set path=5mbit",
            "run two.toml --set path.rate.max=5mbit",
            "run two.toml --set path.rate=5",
            "run two.toml --set path.rate=5Mbps",
            "run two.toml --set path.rate=-5mbit",
            "run two.toml --set path.rate=0mbit",
            "run two.toml --set path.rate=2000gbit",
            "run two.toml --set path.rtt=1e3ms",
            "run two.toml --set path.rtt=0ms",
            "run two.toml --set path.queue=84",
            "run two.toml --set path.queue=0p",
            "run two.toml --set path.queue=1kB",
            "run two.toml --set path.loss_forward=1",
            "run two.toml --set path.loss_forward=1%",
            "run two.toml --set flow.cc=hd",
            "run two.toml --set flow.7.cc=hd",
            "run two.toml --set flow.0.cc=chdd",
            "run two.toml --set flow.0.cc=tahoe",
            "run two.toml --set flow.0.cc=bbr --set tcp.recovery=newreno",
            "run two.toml --set flow.0.cc=kernel:bbr",
            "run two.toml --set flow.0.params.qht=20ms",
            "run two.toml --set flow.0.params.qth=20",
            "run two.toml --set flow.0.params.qth=1ms",
            "run two.toml --set flow.0.params.pmax=1.5",
            "run two.toml --set flow.1.params.qth=20ms",
            "run two.toml --set flow.1.start=6s",
            "run two.toml --set flow.0.size=1B --set flow.0.every=1ns",
            "run two.toml --set record.bin=1ns",
            "run two.toml --set duration=1000000s --set path.rate=1000gbit --set record.bin=1s",
        ],
    );
    insta::assert_snapshot!(text);
}

#[test]
fn of_results_folders() {
    let place = Place::new();
    fs::create_dir(place.path("there")).unwrap();
    fs::write(place.path("there/precious"), "1").unwrap();
    let text = said(
        &place,
        &[
            "run two.toml --out there",
            "run two.toml --out two.toml",
            "run two.toml --out missing/results",
            "run two.toml --out two.toml/results",
            "run two.toml --out q --qlog q --host quic --repeat 1",
            "run two.toml --qlog there --host quic --repeat 1",
            "run two.toml --qlog missing/q --host quic --repeat 1",
            "run two.toml --out ..",
            "run two.toml --out",
            "reproduce chd --out there",
            "reproduce chd --out missing/results",
        ],
    );
    insta::assert_snapshot!(text);
    assert_eq!(fs::read_to_string(place.path("there/precious")).unwrap(), "1");
    assert_eq!(fs::read_dir(place.path("there")).unwrap().count(), 1);
}

/// `/proc` takes no folders, not even from root.
#[cfg(target_os = "linux")]
#[test]
fn of_an_unwritable_folder() {
    let place = Place::new();
    for command in ["run two.toml --out /proc/results", "reproduce chd --out /proc/results"] {
        let text = said(&place, &[command]);
        assert!(text.contains("results cannot be written to /proc"), "{text}");
        assert!(text.contains("help: choose a folder that you can write to"), "{text}");
    }
}

/// The bad `--out` is refused before the work, whose length would show.
#[test]
fn of_results_folders_come_first() {
    let place = Place::new();
    let start = std::time::Instant::now();
    said(&place, &["run two.toml --set duration=1000000s --set record.bin=1s --out two.toml"]);
    said(&place, &["reproduce chd --repeat 10000 --out two.toml"]);
    // The work would take hours.
    assert!(start.elapsed().as_secs() < 300);
}

#[test]
fn of_papers() {
    let place = Place::new();
    let text = said(
        &place,
        &[
            "reproduce",
            "reproduce cdh",
            "reproduce CHD",
            "reproduce htcp --figure 2",
            "reproduce chd --figure 3",
            "reproduce all --figure fig4",
            "reproduce chd --claim C99",
            "reproduce chd --figure 9 --claim C1",
            "reproduce all --claim C5",
            "reproduce chd --short --claim C5",
            "reproduce chd --repeat 0",
            "reproduce chd --jobs x",
            "reproduce chd --host ns3",
        ],
    );
    insta::assert_snapshot!(text);
}

#[test]
fn of_benchmarks() {
    let place = Place::new();
    let text = said(
        &place,
        &[
            "bench",
            "bench dumbell",
            "bench dumbbell --flows 0",
            "bench dumbbell --flows 100001",
            "bench dumbbell --rate 10",
            "bench dumbbell --rate 0mbit",
            "bench dumbbell --rate 1001gbit",
            "bench dumbbell --rtt 0ms",
            "bench dumbbell --rtt 40",
            "bench dumbbell --queue 10",
            "bench dumbbell --queue 0p",
            "bench dumbbell --queue 1499B",
            "bench dumbbell --duration -1s",
            "bench dumbbell --duration 1000001s",
            "bench dumbbell --duration 1ms",
            "bench dumbbell --duration 1000000s --rate 1000gbit",
            "bench dumbbell --cc new-reno",
            "bench peers --queue 500kB",
        ],
    );
    insta::assert_snapshot!(text);
}

#[test]
fn of_duels() {
    let place = Place::new();
    fs::create_dir(place.path("there")).unwrap();
    let text = said(
        &place,
        &[
            "duel",
            "duel chd",
            "duel chdd newreno",
            "duel chd newreno hd",
            "duel chd:qht=20ms newreno",
            "duel chd:qth=20 newreno",
            "duel chd:qth=1ms newreno",
            "duel chd:20ms newreno",
            "duel kernel:bbr newreno",
            "duel kernel: newreno --host kernel",
            "duel chd newreno --path 100mbit",
            "duel chd newreno --path 100mbit,40ms",
            "duel chd newreno --path 100,40ms,1bdp",
            "duel chd newreno --path 100mbit,40,1bdp",
            "duel chd newreno --path 100mbit,40ms,1",
            "duel chd newreno --path 100mbit,40ms,0.001bdp",
            "duel chd newreno --path 100mbit,40ms,1bdp,0.1",
            "duel chd newreno --path -1mbit,40ms,1bdp",
            "duel chd newreno --path 100mbit,1s,1bdp",
            "duel chd newreno --path 1000gbit,1ms,1bdp --duration 1000000s",
            "duel chd newreno --duration 60",
            "duel chd newreno --repeat 0",
            "duel chd newreno --out there",
            "matrix --cc chd",
            "matrix --cc chd,,hd",
            "matrix --cc all,chd:qth=20ms,chd",
            "matrix --cc chd,newreno --path 1mbit,40ms,1bdp --path 1mbit,40ms,3p",
            "matrix --out there",
        ],
    );
    insta::assert_snapshot!(text);
}

/// `knee` alone shows what there is, as an error.
#[test]
fn of_no_arguments() {
    let place = Place::new();
    let output = place.knee(&[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("reproduce"), "{}", text(&output.stderr));
}

#[cfg(target_os = "linux")]
#[test]
fn of_a_full_disk_under_standard_output() {
    let place = Place::new();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = place.knee(&["list"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("standard output") && stderr.contains("No space"), "{stderr}");
}

/// Colours and drawing characters follow the usual variables, the words do not.
#[test]
fn are_the_same_words_in_any_surroundings() {
    let place = Place::new();
    for (variable, value) in [("FORCE_COLOR", "1"), ("LC_ALL", "C"), ("TERM", "dumb")] {
        let mut knee = place.knee(&["run", "missing.toml"]);
        let output = knee.env_remove("NO_COLOR").env(variable, value).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let words = text(&output.stderr);
        assert!(words.contains("missing.toml: no such file"), "{variable}: {words}");
        assert!(words.contains("check the path"), "{variable}: {words}");
    }
}
