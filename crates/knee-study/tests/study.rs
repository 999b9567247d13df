//! Studies: their contents, their shards, and refused files.
#![allow(clippy::unwrap_used)]

use knee_sim::Simulator;
use knee_study::{DataSet, Plan, Slice, Study, StudyError};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};
use tempfile::TempDir;

const SCENARIO: &str = "duration = \"1s\"\n[path]\nrate = \"5mbit\"\nrtt = \"20ms\"\nqueue = \"20p\"\n\
                        [[flow]]\ncc = \"chd\"\nstart_jitter = \"10ms\"\n";

const STUDY: &str = r#"scenario = "base.toml"
repeat = 3
runs_per_shard = 7

[axes]
"path.loss_forward" = [0, 0.01, 0.02]
"flow.0.cc" = ["chd", "newreno"]
path.rtt = { from = "10ms", to = "40ms", steps = 2, scale = "log" }

[keep]
tables = ["runs", "flows", "queue_series"]
"#;

fn place() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("base.toml"), SCENARIO).unwrap();
    dir
}

fn study(dir: &Path, text: &str) -> Result<Study, StudyError> {
    Study::parse(dir, "study.toml", text)
}

fn plan(dir: &Path, text: &str) -> Plan {
    Plan::new(study(dir, text).unwrap(), &Simulator, Some("abc")).unwrap()
}

fn write(plan: &Plan, out: &Path, slice: Slice, shards: impl Iterator<Item = usize>) -> bool {
    let data = DataSet::open(out, plan, slice).unwrap();
    for number in shards {
        plan.write_shard(number, out, &Simulator, &AtomicBool::new(false), &|_| ()).unwrap();
    }
    data.finish(plan)
}

/// All files of a folder, by their paths in it.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn add(top: &Path, folder: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            match entry.path() {
                path if path.is_dir() => add(top, &path, all),
                path => {
                    let name = path.strip_prefix(top).unwrap().to_owned();
                    all.insert(name, fs::read(path).unwrap());
                }
            }
        }
    }
    let mut all = BTreeMap::new();
    add(folder, folder, &mut all);
    all
}

#[test]
fn every_run_is_in_one_shard() {
    let dir = place();
    let plan = plan(dir.path(), STUDY);
    assert_eq!(plan.study.runs, 3 * 2 * 2 * 3);
    let of = |algorithm: &str| -> u64 {
        plan.shards.iter().filter(|s| s.algorithm == algorithm).map(|s| s.runs()).sum()
    };
    assert_eq!((of("chd"), of("newreno"), plan.shards.len()), (18, 18, 6));
    let out = dir.path().join("out");
    assert!(write(&plan, &out, Slice::WHOLE, 0..6));
    let data = DataSet::reading(&out).unwrap();
    let mut seen = Vec::new();
    for batch in data.read("runs").unwrap().map(Result::unwrap) {
        let column = |name: &str| batch.column_by_name(name).unwrap();
        let text = |name: &str| {
            let column = column(name).as_any();
            column.downcast_ref::<arrow_array::StringArray>().unwrap().clone()
        };
        let whole = |name: &str| {
            let column = column(name).as_any();
            column.downcast_ref::<arrow_array::UInt64Array>().unwrap().clone()
        };
        let number = |name: &str| {
            let column = column(name).as_any();
            column.downcast_ref::<arrow_array::Float64Array>().unwrap().clone()
        };
        for row in 0..batch.num_rows() {
            let run = whole("run").value(row);
            // The scenario of this run in the study.
            let spec = plan.study.run(run).unwrap().spec;
            assert_eq!(whole("seed").value(row), spec.seed);
            assert_eq!(number("path_loss_forward").value(row), spec.path.hops[0].loss);
            let rtt_ns = spec.path.delay_forward_ns + spec.path.delay_reverse_ns;
            assert_eq!(number("path_rtt_ms").value(row), rtt_ns as f64 / 1e6);
            assert_eq!(text("flow_0_cc").value(row), spec.flows[0].kind.name());
            assert_eq!(text("algorithm").value(row), spec.flows[0].kind.name());
            assert_eq!(text("run_id").value(row), knee_study::run_id("sim", &spec));
            // The same measure as `knee run` has.
            let record = knee_sim::run(&spec).unwrap();
            let m = knee_results::metrics::Metrics::new(&spec, &record);
            assert_eq!(number("utilisation").value(row), m.utilisation().unwrap());
            let delivered = record.flows[0].counters.delivered_bytes as f64 * 8.0;
            assert_eq!(number("goodput_bps").value(row), delivered);
            seen.push((run, text("run_id").value(row).to_owned()));
        }
    }
    seen.sort();
    assert_eq!(seen.iter().map(|s| s.0).collect::<Vec<_>>(), (0..36).collect::<Vec<_>>());
    let mut ids: Vec<_> = seen.into_iter().map(|s| s.1).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 36);
    let rows =
        |table: &str| -> usize { data.read(table).unwrap().map(|b| b.unwrap().num_rows()).sum() };
    assert_eq!((rows("flows"), rows("queue_series")), (36, 360));
    assert!(data.read("flow_series").is_err());
}

#[test]
fn slices_and_order_make_no_difference() {
    let dir = place();
    let plan = plan(dir.path(), STUDY);
    let at = |name: &str| dir.path().join(name);
    assert!(write(&plan, &at("whole"), Slice::WHOLE, 0..6));
    assert!(write(&plan, &at("reversed"), Slice::WHOLE, (0..6).rev()));
    assert_eq!(files(&at("whole")), files(&at("reversed")));
    // In three folders, then in one.
    for index in 1..=3 {
        let slice = Slice::new(index, 3).unwrap();
        let part = at(&format!("part-{index}"));
        assert!(!write(&plan, &part, slice, (0..6).filter(|n| slice.has(*n))));
    }
    let merged = DataSet::open(&at("merged"), &plan, Slice::WHOLE).unwrap();
    let parts = [1, 2, 3].map(|i| at(&format!("part-{i}")));
    assert_eq!(merged.merge(&plan, &parts[..2]).unwrap(), 4);
    assert!(!merged.finish(&plan));
    assert_eq!(merged.missing(&plan), [2, 5]);
    assert_eq!(merged.merge(&plan, &parts).unwrap(), 2);
    assert!(merged.finish(&plan));
    assert_eq!(files(&at("whole")), files(&at("merged")));
    let status = merged.status().unwrap();
    assert_eq!((status.runs, status.runs_all, status.complete), (36, 36, true));
}

#[test]
fn a_folder_belongs_to_one_study_and_one_writer() {
    let dir = place();
    let first = plan(dir.path(), STUDY);
    let out = dir.path().join("out");
    let open = |plan: &Plan, slice| DataSet::open(&out, plan, slice).map_err(|e| e.to_string());
    let part = |index, of| Slice::new(index, of).unwrap();
    let held = open(&first, Slice::WHOLE).unwrap();
    assert!(open(&first, Slice::WHOLE).unwrap_err().contains("another knee is writing"));
    assert!(open(&first, part(1, 2)).unwrap_err().contains("another knee is writing"));
    drop(held);
    let (_one, _two) = (open(&first, part(1, 2)).unwrap(), open(&first, part(2, 2)).unwrap());
    assert!(open(&first, part(2, 2)).unwrap_err().contains("part 2/2"));
    assert!(open(&first, Slice::WHOLE).unwrap_err().contains("another knee is writing"));
    drop((_one, _two));
    let other = plan(dir.path(), &STUDY.replace("0.02", "0.03"));
    let error = open(&other, Slice::WHOLE).unwrap_err();
    assert!(error.contains("line 6 of its study.toml") && error.contains("0.03"), "{error}");
    let other = Plan::new(study(dir.path(), STUDY).unwrap(), &Simulator, Some("def")).unwrap();
    let error = open(&other, Slice::WHOLE).unwrap_err();
    assert!(error.contains("another commit of Knee: abc, this is def"), "{error}");
    fs::create_dir(dir.path().join("photos")).unwrap();
    fs::write(dir.path().join("photos/one.jpg"), "").unwrap();
    let error = DataSet::open(&dir.path().join("photos"), &first, Slice::WHOLE).unwrap_err();
    assert!(error.to_string().contains("one.jpg"), "{error}");
    // Only the files that identify the folder are left.
    assert_eq!(files(&out).len(), 3);
}

#[test]
fn unfinished_files_are_removed() {
    let dir = place();
    let plan = plan(dir.path(), STUDY);
    let out = dir.path().join("out");
    write(&plan, &out, Slice::WHOLE, 0..1);
    let left = out.join("runs/algorithm=chd/.knee-unfinished-x");
    fs::write(&left, "half").unwrap();
    write(&plan, &out, Slice::WHOLE, 1..2);
    assert!(!left.exists());
}

#[test]
fn the_same_run_has_the_same_id_however_it_is_written() {
    let dir = place();
    let id = |text: &str, number| {
        let study = study(dir.path(), text).unwrap();
        knee_study::run_id("sim", &study.run(number).unwrap().spec)
    };
    let head = "scenario = \"base.toml\"\n[axes]\n";
    let one = id(&format!("{head}path.rtt = [\"40ms\", \"50ms\"]\n"), 0);
    assert_eq!(one, id(&format!("{head}\"path.rtt\" = [\"10ms\", \"0.04s\"]\n"), 1));
    assert_ne!(one, id(&format!("{head}path.rtt = [\"41ms\", \"50ms\"]\n"), 0));
    assert_ne!(one, id(&format!("seeds = [2]\n{head}path.rtt = [\"40ms\"]\n"), 0));
    assert_ne!(one, id(&format!("{head}path.rtt=[\"40ms\"]\nflow.0.cc=[\"hd\"]\n"), 0));
}

/// A number of `seeds`, the old spelling of `repeat`, still works; the file's author is told where it is.
#[test]
fn a_number_of_seeds_is_the_old_spelling_of_repeat() {
    let dir = place();
    let read = |line: &str| {
        let text = format!("scenario = \"base.toml\"\n{line}\n");
        Study::parse(dir.path(), "study.toml", &text).unwrap()
    };
    let (new, old) = (read("repeat = 3"), read("seeds = 3"));
    assert_eq!((new.repeat(), old.repeat()), (3, 3));
    assert!(new.notes.is_empty() && read("seeds = [1, 7]").notes.is_empty());
    let note = "study.toml:2: write repeat = 3 instead of seeds = 3";
    assert!(old.notes[0].starts_with(note), "{:?}", old.notes);
}

/// Mistakes, each with a word of the message and one of the remedy, and the line that is shown.
#[test]
fn mistakes_are_told_where_they_are() {
    let dir = place();
    let head = "scenario = \"base.toml\"\n";
    let cases = [
        ("[axes]\npath.rtt = []\n", "makes no runs", "write a list", 3),
        ("[axes]\npath.rtt = {}\n", "makes no runs", "write a list", 3),
        ("seeds = []\n", "makes no runs", "repeat = 4", 2),
        ("repeat = 0\n", "out of range", "from 1", 2),
        ("seeds = 0\n", "out of range", "from 1", 2),
        ("repeat = 2\nseeds = 2\n", "both repeat and seeds", "remove one", 3),
        ("seeds = [1, 2, 1]\n", "1 is there twice", "once", 2),
        ("[axes]\npath.rtt = [\"10ms\", \"10ms\"]\n", "10ms is there twice", "once", 3),
        ("[axes]\npath.rtt = [\"10ms\", \"0.01s\"]\n", "0.01s is there twice", "once", 3),
        ("[axes]\npath.loss_forward = [1, 1.0]\n", "1.0 is there twice", "once", 3),
        (
            "[axes]\npath.rtt = [\"10ms\"]\nvariant = [{ name = \"a\", set = { \"path.rtt\" = \"50ms\" } }]\n",
            "path.rtt is varied twice",
            "keep one",
            2,
        ),
        (
            "[axes]\nflow.0.params.qth = [\"10ms\"]\nvariant = [{ name = \"a\", set = { \"flow.0.params\" = {} } }]\n",
            "flow.0.params and flow.0.params.qth are varied independently",
            "keep one",
            2,
        ),
        ("[axes]\npath.rtt = \"10ms\"\n", "path.rtt is text", "write a list", 3),
        ("[axes]\npath.rtt = [10]\n", "has no unit", "10ms", 3),
        ("[axes]\npath.rtx = [\"10ms\"]\n", "path.rtx: no such key", "did you mean `rtt`", 3),
        ("[axes]\nflow.3.cc = [\"chd\"]\n", "there is no flow.3", "flow.0", 3),
        ("[axes]\nflow.0.cc = [\"chd\", \"chdd\"]\n", "chdd", "chd", 3),
        ("[axes]\nseed = [1, 2]\n", "seed cannot be an axis", "repeat = 4", 3),
        ("axs = 1\n", "axs: no such key", "did you mean `axes`", 2),
        (
            "[axes]\npath.rtt = { from = \"1ms\", to = 5, steps = 3 }\n",
            "not of one kind",
            "unit",
            3,
        ),
        (
            "[axes]\npath.rtt = { from = \"9ms\", to = \"5ms\", steps = 3 }\n",
            "makes no runs",
            "smaller",
            3,
        ),
        (
            "[axes]\npath.rtt = { from = \"1ms\", to = \"5ms\", steps = 1 }\n",
            "makes no runs",
            "steps = 2",
            3,
        ),
        (
            "[axes]\npath.rtt = { from = \"1ms\", to = \"5ms\", draws = 0 }\n",
            "makes no runs",
            "draws = 2",
            3,
        ),
        ("[axes]\npath.rtt = { from = \"1ms\", to = \"5ms\" }\n", "how many", "steps = 11", 3),
        (
            "[axes]\npath.rtt = { from = \"1 ms\", to = \"5 parsec\", steps = 3 }\n",
            "no unit that is known",
            "10ms",
            3,
        ),
        (
            "[axes]\npath.loss_forward = { from = 0, to = 0.1, steps = 3, scale = \"log\" }\n",
            "no 0",
            "above 0",
            3,
        ),
        (
            "[axes]\npath.loss_forward = { from = 0, to = 0.1, steps = 3, sale = \"log\" }\n",
            "sale: no such key",
            "`scale`",
            3,
        ),
        (
            "[axes]\npath.loss_forward = { from = 0.0, to = 1.5, steps = 3 }\n",
            "path.loss_forward",
            "0",
            3,
        ),
        (
            "[[latin_hypercube]]\npoints = 1\naxes = { path.rtt = { from = \"1ms\", to = \"5ms\" } }\n",
            "points = 1",
            "2 or more",
            3,
        ),
        ("[[latin_hypercube]]\npoints = 9\n", "axes is missing", "axes = {", 2),
        ("[keep]\ntables = [\"runs\", \"flow\"]\n", "`flow`", "did you mean `flows`", 3),
        ("[keep]\nmetrics = [\"godput_bps\"]\n", "`godput_bps`", "did you mean `goodput_bps`", 3),
        ("[keep]\nwindow = [\"10s\", \"1s\"]\n", "ends before it begins", "two times", 3),
        ("title = 3\n", "title is an integer", "text in quotes", 2),
        ("[axes\n", "not valid TOML", "table", 2),
    ];
    for (text, what, remedy, line) in cases {
        let error = study(dir.path(), &format!("{head}{text}")).expect_err(text);
        let report = miette::NarratableReportHandler::new();
        let mut shown = String::new();
        report.render_report(&mut shown, &error).unwrap();
        let place = format!("at line {line}");
        for part in [what, remedy, "study.toml", place.as_str()] {
            assert!(shown.contains(part), "{text}: no `{part}` in\n{shown}");
        }
    }
    let wide = "[axes]\npath.rtt = { from = 0.0, to = 1.0, draws = 100000 }\n\
                path.rate = { from = 0.0, to = 1.0, draws = 10000 }\n";
    let error = study(dir.path(), &format!("{head}{wide}")).unwrap_err().to_string();
    assert!(error.contains("too many runs: 100000 × 10000 × 1"), "{error}");
    let error = study(dir.path(), &format!("{head}[keep]\nwindow = [\"0s\", \"9s\"]\n"));
    assert!(error.unwrap_err().to_string().contains("the run ends at 1s"));
    let error = study(dir.path(), "scenario = \"bass.toml\"\n").unwrap_err().to_string();
    assert!(error.contains("there is no scenario"), "{error}");
}

#[test]
fn cases_and_hypercubes_set_several_keys() {
    let dir = place();
    let text = r#"scenario = "base.toml"
[axes]
variant = [
    { name = "gentle", set = { "flow.0.cc" = "chd", "flow.0.params.qth" = "20ms" } },
    { name = "reno", set = { "flow.0.cc" = "newreno" } },
]
[[latin_hypercube]]
points = 5
seed = 3
axes.path.rate = { from = "1mbit", to = "10mbit", scale = "log" }
axes.path.loss_forward = { from = 0.0, to = 0.1 }
"#;
    let plan = plan(dir.path(), text);
    assert_eq!(plan.study.runs, 10);
    let names: Vec<&str> = plan.study.columns().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["variant", "path_rate_bps", "path_loss_forward"]);
    let mut algorithms: Vec<&str> = plan.shards.iter().map(|s| s.algorithm.as_str()).collect();
    algorithms.dedup();
    assert_eq!(algorithms, ["chd", "newreno"]);
    // One rate in each fifth of the range.
    let mut fifths: Vec<i32> = (0..5)
        .map(|run| plan.study.run(run).unwrap().spec.path.hops[0].rate_bps as f64)
        .map(|bps| ((bps / 1e6).log10() * 5.0) as i32)
        .collect();
    fifths.sort_unstable();
    assert_eq!(fifths, [0, 1, 2, 3, 4]);
}

#[test]
fn a_window_leaves_out_the_beginning() {
    let dir = place();
    let base = "scenario = \"base.toml\"\n";
    let goodput = |name: &str, text: &str| {
        let plan = plan(dir.path(), &format!("{base}{text}"));
        let out = dir.path().join(name);
        assert!(write(&plan, &out, Slice::WHOLE, 0..1));
        let batch = DataSet::reading(&out).unwrap().read("runs").unwrap().next().unwrap().unwrap();
        let column = batch.column_by_name("goodput_bps").unwrap().as_any();
        (column.downcast_ref::<arrow_array::Float64Array>().unwrap().value(0), batch.num_columns())
    };
    let (whole, columns) = goodput("whole", "");
    let (late, few) =
        goodput("late", "[keep]\nwindow = [\"500ms\", \"1s\"]\nmetrics = [\"goodput_bps\"]\n");
    assert!(late > whole, "slow start is left out: {late} {whole}");
    assert!(columns > 15 && few == 6, "{columns} {few}");
}

/// Data sets that users have remain readable together with new ones: names, types and order of columns.
#[test]
fn series_have_the_columns_of_a_runs_tables() {
    let dir = place();
    let keep = "[keep]\ntables = [\"runs\", \"flow_series\", \"queue_series\"]\n";
    let plan = plan(dir.path(), &format!("scenario = \"base.toml\"\n{keep}"));
    let out = dir.path().join("out");
    assert!(write(&plan, &out, Slice::WHOLE, 0..1));
    let columns = |table: &str| {
        let batch = DataSet::reading(&out).unwrap().read(table).unwrap().next().unwrap().unwrap();
        assert!(batch.num_rows() > 0);
        let schema = batch.schema();
        let shown = schema.fields().iter().map(|field| {
            let null = if field.is_nullable() { "?" } else { "" };
            format!("{}:{}{null}", field.name(), field.data_type())
        });
        shown.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        columns("flow_series"),
        "algorithm:Utf8 run:UInt64 seed:UInt64 flow:Utf8 kind:Utf8 time_s:Float64? goodput_bps:Float64? \
         sent_pkts:UInt64? lost_pkts:UInt64? cwnd_pkts:UInt64? ssthresh_pkts:UInt64? inflight_pkts:UInt64? \
         srtt_us:UInt64? observe_0:UInt64? observe_1:UInt64? observe_2:UInt64? observe_3:UInt64?"
    );
    assert_eq!(
        columns("queue_series"),
        "algorithm:Utf8 run:UInt64 seed:UInt64 hop:Utf8? time_s:Float64? departed_pkts:UInt64? \
         departed_bytes:UInt64? dropped_pkts:UInt64? marked_pkts:UInt64? mean_delay_us:Float64? \
         max_delay_us:Float64? held_pkts:UInt64?"
    );
}
