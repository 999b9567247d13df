//! The program as its user meets it: arguments in, exit code and text out.
#![allow(dead_code)]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};
use tempfile::TempDir;

/// A folder to be in, with a scenario.
pub struct Place {
    pub dir: TempDir,
}

/// Two flows that react to each other and to random loss, so that a seed shows in every result.
pub const SCENARIO: &str = r#"title = "Two flows"
duration = "5s"
repeat = 3

[path]
rate = "10mbit"
rtt = "40ms"
queue = "84p"
loss_forward = 0.002

[record]
queue_log = true

[[flow]]
cc = "chd"
start_jitter = "10ms"

[[flow]]
cc = "newreno"
start = "1s"

[[flow]]
kind = "probe"
"#;

impl Place {
    /// A folder with `two.toml`.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("two.toml"), SCENARIO).unwrap();
        Self { dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// `knee` in this folder. Its output does not depend on the surroundings.
    pub fn knee(&self, arguments: &[&str]) -> Command {
        let mut knee = Command::new(env!("CARGO_BIN_EXE_knee"));
        knee.args(arguments).current_dir(self.dir.path()).env_clear().env("LC_ALL", "C.UTF-8");
        knee.env("NO_COLOR", "1");
        knee.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        knee
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.knee(arguments).output().unwrap()
    }

    /// Standard output of a success.
    pub fn stdout(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Standard output of a success, which is JSON.
    pub fn json(&self, arguments: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.stdout(arguments)).unwrap()
    }

    /// Names in this folder, hidden ones too, sorted.
    pub fn entries(&self) -> Vec<String> {
        let names = fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<String> =
            names.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Every file below `folder` by its path from there.
pub fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

/// Fails naming the files that differ, not printing them.
pub fn assert_same_files(one: &Path, other: &Path) {
    let (one, other) = (files(one), files(other));
    assert!(one.keys().eq(other.keys()), "{:?} {:?}", one.keys(), other.keys());
    let differing: Vec<_> = one.iter().filter(|(name, bytes)| other[*name] != **bytes).collect();
    assert!(differing.is_empty(), "{:?}", differing.iter().map(|d| d.0).collect::<Vec<_>>());
}

/// A file of the repository.
pub fn repository(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).unwrap()
}

/// Runs `command` as root with these capabilities alone.
pub fn with(capabilities: &[&str], command: &Command) -> Command {
    let bounding = capabilities.iter().fold("-all".to_owned(), |all, one| format!("{all},+{one}"));
    let mut limited = Command::new("setpriv");
    limited.arg(format!("--bounding-set={bounding}"));
    limited.arg("--inh-caps=-all").arg(command.get_program()).args(command.get_args());
    limited.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    limited.current_dir(command.get_current_dir().unwrap());
    limited.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    limited
}
