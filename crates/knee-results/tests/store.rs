//! The results folder: complete or not there, whatever happens.
#![allow(clippy::unwrap_used)]

use knee_results::{ResultsError, store::ResultWriter};
use miette::Diagnostic;
use std::{
    fs,
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};
use tempfile::tempdir;

fn entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn help(error: &ResultsError) -> String {
    error.help().expect("every error says what to do").to_string()
}

#[test]
fn finished_results_are_complete() {
    let dir = tempdir().unwrap();
    let out = dir.path().join("results");
    let results = ResultWriter::create(&out).unwrap();
    results.bytes("a.txt", "text").unwrap();
    results.json("sub/b.json", &[1, 2]).unwrap();
    assert!(!out.exists(), "nothing shows before the end");
    assert_eq!(results.finish().unwrap(), out);
    assert_eq!(entries(dir.path()), ["results"]);
    assert_eq!(entries(&out), ["a.txt", "sub"]);
    assert_eq!(fs::read_to_string(out.join("a.txt")).unwrap(), "text");
    assert_eq!(fs::read_to_string(out.join("sub/b.json")).unwrap(), "[\n  1,\n  2\n]\n");
    // As a folder made by `mkdir`, not private to the user.
    let plain = dir.path().join("plain");
    fs::create_dir(&plain).unwrap();
    assert_eq!(
        fs::metadata(&out).unwrap().permissions(),
        fs::metadata(&plain).unwrap().permissions()
    );
}

#[test]
fn nothing_is_overwritten() {
    let dir = tempdir().unwrap();
    let folder = dir.path().join("folder");
    let file = dir.path().join("file");
    let link = dir.path().join("link");
    fs::create_dir(&folder).unwrap();
    fs::write(&file, "precious").unwrap();
    std::os::unix::fs::symlink(dir.path().join("nowhere"), &link).unwrap();
    for path in [&folder, &file, &link] {
        let error = ResultWriter::create(path).unwrap_err();
        assert_eq!(error.to_string(), format!("`{}` already exists", path.display()));
        assert!(help(&error).contains("choose another name"));
    }
    // Also if it comes to be during the run.
    let late = dir.path().join("late");
    let results = ResultWriter::create(&late).unwrap();
    results.bytes("a", "x").unwrap();
    fs::create_dir(&late).unwrap();
    let error = results.finish().unwrap_err();
    assert_eq!(error.to_string(), format!("`{}` already exists", late.display()));
    assert_eq!(entries(dir.path()), ["file", "folder", "late", "link"]);
    assert!(entries(&late).is_empty());
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
}

#[test]
fn impossible_places_are_refused_with_advice() {
    let dir = tempdir().unwrap();
    let missing = dir.path().join("missing");
    let error = ResultWriter::create(&missing.join("out")).unwrap_err();
    let missing = missing.display();
    assert_eq!(error.to_string(), format!("there is no folder `{missing}` for the results"));
    assert_eq!(help(&error), format!("create it (`mkdir -p {missing}`), or choose another place"));

    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = ResultWriter::create(&file.join("out")).unwrap_err();
    let what = format!("`{}` is not a folder, so it cannot hold results", file.display());
    assert_eq!((error.to_string(), help(&error).as_str()), (what, "choose another place"));

    for path in ["/", "..", ""] {
        let error = ResultWriter::create(Path::new(path)).unwrap_err();
        let what = format!("`{path}` cannot be the name of a results folder");
        assert_eq!(error.to_string(), what);
        assert!(help(&error).contains("a name of at most 255 bytes"));
    }
}

/// `/proc` takes no folders, not even from root.
#[cfg(target_os = "linux")]
#[test]
fn an_unwritable_parent_is_refused_with_advice() {
    let error = ResultWriter::create(Path::new("/proc/out")).unwrap_err();
    assert_eq!(error.to_string(), "results cannot be written to /proc");
    assert!(error.source.is_some());
    assert!(help(&error).contains("you can write to"));
}

#[test]
fn a_failed_run_leaves_nothing() {
    let dir = tempdir().unwrap();
    let out = dir.path().join("out");
    let results = ResultWriter::create(&out).unwrap();
    results.bytes("a", "x").unwrap();
    let error = results
        .write("b", |file| {
            file.write_all(b"half")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        })
        .unwrap_err();
    assert!(error.to_string().contains('b'));
    assert!(help(&error).contains("no room"));
    assert!(results.bytes("a", "again").is_err(), "a file is written once");
    assert!(results.bytes("../escape", "x").is_err());
    drop(results);
    assert!(entries(dir.path()).is_empty());
}

/// Abandons as a signal does: while the writer still writes.
#[test]
fn abandoned_results_are_gone_and_stay_gone() {
    for finishing in [false, true] {
        let dir = tempdir().unwrap();
        let out = dir.path().join("out");
        let results = ResultWriter::create(&out).unwrap();
        let abandon = results.abandon();
        // The writer continues once its message is received.
        let (say, hear) = std::sync::mpsc::sync_channel(0);
        // Never ends: the program would.
        std::thread::spawn(move || {
            for n in 0.. {
                results.bytes(&format!("folder-{n}/file"), "x").unwrap();
                say.send(n).unwrap();
                if finishing && n == 20 {
                    break;
                }
            }
            results.finish().unwrap();
        });
        while hear.recv().unwrap() < 20 {}
        abandon.now();
        // From here on no step begins: it is complete or never will be.
        if finishing && out.exists() {
            assert_eq!(entries(&out).len(), 21);
        } else {
            assert!(entries(dir.path()).is_empty(), "{:?}", entries(dir.path()));
            // The step that had begun may end.
            let wait = std::time::Duration::from_millis(50);
            let more = std::iter::from_fn(|| hear.recv_timeout(wait).ok()).take(2).count();
            assert!(more <= 1, "it writes on");
            assert!(entries(dir.path()).is_empty(), "{:?}", entries(dir.path()));
        }
    }
}

#[test]
fn abandoning_finished_results_leaves_them() {
    let dir = tempdir().unwrap();
    let out = dir.path().join("out");
    let results = ResultWriter::create(&out).unwrap();
    results.bytes("a", "x").unwrap();
    let abandon = results.abandon();
    results.finish().unwrap();
    abandon.now();
    assert_eq!(entries(&out), ["a"]);
}

/// Runs the test `name` of this program as a child that writes into `out`.
fn child(name: &str, out: &Path, limit: &str) -> Child {
    let exe = std::env::current_exe().unwrap();
    let script = format!("trap '' XFSZ; {limit} exec \"$0\" --exact {name} --nocapture");
    Command::new("sh")
        .args(["-c", &script])
        .arg(exe)
        .env("KNEE_TEST_OUT", out)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn wait_for(child: &mut Child, marker: &str) -> bool {
    let out = child.stdout.as_mut().unwrap();
    BufReader::new(out).lines().any(|l| l.unwrap().ends_with(marker))
}

/// Target of the writer, in a child.
fn in_child() -> Option<PathBuf> {
    std::env::var_os("KNEE_TEST_OUT").map(PathBuf::from)
}

#[test]
fn a_killed_run_leaves_nothing_that_looks_complete() {
    if let Some(out) = in_child() {
        let results = ResultWriter::create(&out).unwrap();
        results.bytes("summary.json", "{}").unwrap();
        let _ = results.write("flows.parquet", |file| {
            file.write_all(&[0; 100_000])?;
            println!("writing");
            std::thread::sleep(std::time::Duration::from_secs(60));
            Ok(())
        });
        return;
    }
    let dir = tempdir().unwrap();
    let out = dir.path().join("out");
    let mut killed = child("a_killed_run_leaves_nothing_that_looks_complete", &out, "");
    assert!(wait_for(&mut killed, "writing"));
    killed.kill().unwrap();
    killed.wait().unwrap();

    let left = entries(dir.path());
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].starts_with(".knee-unfinished-"), "{left:?}");
    assert!(entries(&dir.path().join(&left[0])).contains(&"summary.json".to_owned()));

    // The next run removes it, and leaves those alone that are still at work.
    let other = ResultWriter::create(&dir.path().join("other")).unwrap();
    assert!(!dir.path().join(&left[0]).exists());
    let results = ResultWriter::create(&out).unwrap();
    results.bytes("a", "x").unwrap();
    other.bytes("b", "y").unwrap();
    results.finish().unwrap();
    other.finish().unwrap();
    assert_eq!(entries(dir.path()), ["other", "out"]);
}

/// A limit on the size of files stands for a full disk: the system refuses to write on.
#[test]
fn a_write_that_the_system_refuses_leaves_nothing() {
    if let Some(out) = in_child() {
        let results = ResultWriter::create(&out).unwrap();
        results.bytes("small", "x").unwrap();
        let error = results.bytes("large", vec![0; 1 << 20]).unwrap_err();
        println!("refused: {}", help(&error));
        return;
    }
    let dir = tempdir().unwrap();
    let out = dir.path().join("out");
    let name = "a_write_that_the_system_refuses_leaves_nothing";
    let mut refused = child(name, &out, "ulimit -f 64;");
    let stdout = refused.stdout.take().unwrap();
    let said: Vec<String> = BufReader::new(stdout).lines().map(Result::unwrap).collect();
    assert!(refused.wait().unwrap().success());
    assert!(said.iter().any(|l| l.contains("refused: a limit on the size of files")), "{said:?}");
    assert!(entries(dir.path()).is_empty());
}
