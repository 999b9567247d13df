//! The scenario file: one experiment in TOML, read into a [`knee_model::RunSpec`].
//!
//! `docs/reference/scenario.md` is the reference of its keys. Everything is checked before anything runs:
//! unknown keys, numbers without a unit, values out of range and keys that contradict each other
//! are errors that show file, line, key and remedy.
//!
//! A scenario, run in the simulator:
//!
//! ```
//! let text = r#"
//!     duration = "5s"
//!     [path]
//!     rate = "10mbit"
//!     rtt = "40ms"
//!     queue = "84p"
//!     [[flow]]
//!     cc = "newreno"
//! "#;
//! let scenario = knee_scenario::Scenario::parse("example", text, &[])?;
//! let record = knee_sim::run(&scenario.spec(scenario.seed()))?;
//! let goodput_bps = record.flows[0].counters.delivered_bytes as f64 * 8.0 / 5.0;
//! assert!((8e6..10e6).contains(&goodput_bps));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod aqm;
mod error;
mod files;
mod flow;
mod hop;
mod key;
mod keys;
mod link;
mod linux;
mod schema;
mod section;
mod set;
mod sources;
mod traffic;
pub mod units;
mod workload;

pub use error::{ScenarioError, known, nearest};
pub use flow::FlowGroup;
use keys::ROOT;
pub use keys::{flow_keys, table_names};
pub use schema::{reference, schema};
pub use section::type_name;
pub use set::{Place, Set};

use crate::traffic::Source;
use error::{Fault, KeyPath, element_mut};
use files::Files;
use knee_model::{HopSpec, NS_PER_MS, Ns, PathSpec, RecordSpec, RunSpec, TcpOptions};
use section::Section;
use sources::Sources;
use std::{fs, io::ErrorKind, path::Path};
use toml_edit::{Document, DocumentMut, TableLike, TomlError, Value, value};

/// Most bins of a time series.
const BINS_MAX: u64 = 10_000_000;

/// A valid scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    title: Option<String>,
    repeat: u32,
    text: String,
    groups: Vec<FlowGroup>,
    /// Specification of the first repetition, without the flows that are drawn.
    run: RunSpec,
    sources: Vec<Source>,
}

impl Scenario {
    /// Reads the file at `path`, with `sets` put over what it says, in their order.
    ///
    /// # Errors
    /// The file cannot be read, or as [`Scenario::parse`].
    pub fn load(path: &Path, sets: &[Set]) -> Result<Self, ScenarioError> {
        let text = read_text(path, "scenario")?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse_beside(folder, &path.display().to_string(), &text, sets)
    }

    /// Reads `text`, called `name` in errors, with `sets` put over what it says, in their order.
    /// Delivery traces that it names are relative to the present folder; algorithms in C files are
    /// not loaded: the text may come from anywhere.
    ///
    /// # Errors
    /// Not TOML, a path of `sets` that leads nowhere, a file that it names and that cannot be read,
    /// or a scenario that `docs/reference/scenario.md` does not allow.
    pub fn parse(name: &str, text: &str, sets: &[Set]) -> Result<Self, ScenarioError> {
        Self::parse_in(None, name, text, sets)
    }

    /// Like [`Scenario::parse`], for the text of a file in `folder`. An algorithm in a C
    /// file that it names becomes part of this process.
    ///
    /// # Errors
    /// As [`Scenario::parse`]; an algorithm that does not compile, or is none.
    pub fn parse_beside(
        folder: &Path,
        name: &str,
        text: &str,
        sets: &[Set],
    ) -> Result<Self, ScenarioError> {
        Self::parse_in(Some(folder), name, text, sets)
    }

    fn parse_in(
        folder: Option<&Path>,
        name: &str,
        text: &str,
        sets: &[Set],
    ) -> Result<Self, ScenarioError> {
        let file = Document::parse(text).map_err(|e| not_toml(name, text, &e))?;
        let sources = Sources { name, file: &file, sets };
        let mut document: DocumentMut = file.clone().into_mut();
        for set in sets {
            set.apply(&mut document).map_err(|fault| sources.locate(fault))?;
        }
        let files = Files::new(folder);
        let root = Section::root(document.as_table(), &ROOT);
        let mut scenario = read(&root, &files).map_err(|fault| sources.locate(fault))?;
        let files = files.into_read();
        scenario.text = match sets.is_empty() && files.is_empty() {
            true => text.to_owned(),
            false => {
                embed(&mut document, files);
                document.to_string()
            }
        };
        Ok(scenario)
    }

    /// Title, for people.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// Number of repetitions, at least 1.
    pub fn repeat(&self) -> u32 {
        self.repeat
    }

    /// Seed of the first repetition.
    pub fn seed(&self) -> u64 {
        self.run.seed
    }

    /// Seed of repetition `r`, counted from 0: `seed + r`. A single repetition can so be run
    /// again with `--set seed=...` and `--set repeat=1`.
    pub fn seed_of(&self, r: u32) -> u64 {
        self.run.seed + u64::from(r)
    }

    /// The complete TOML: the file, with the values of `sets` and the times of delivery traces in place.
    /// An algorithm from a C file is `NAME.c`, to be put next to it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The `[[flow]]` tables whose flows are the same in each repetition, in order.
    pub fn groups(&self) -> &[FlowGroup] {
        &self.groups
    }

    /// One run of it: the flows that the scenario names, then those that its sources draw.
    pub fn spec(&self, seed: u64) -> RunSpec {
        let mut run = RunSpec { seed, ..self.run.clone() };
        run.flows.extend(self.sources.iter().flat_map(|source| source.flows(seed)));
        run
    }
}

/// Reads the text of a TOML file that describes a `what`, such as `scenario`.
///
/// # Errors
/// The file cannot be read, or is not UTF-8.
pub fn read_text(path: &Path, what: &str) -> Result<String, ScenarioError> {
    let name = path.display().to_string();
    let bytes = fs::read(path).map_err(|e| {
        let in_it = format!("name a {what} file in it");
        let (why, remedy) = match e.kind() {
            ErrorKind::NotFound => ("no such file", "check the path"),
            ErrorKind::IsADirectory => ("this is a directory", in_it.as_str()),
            ErrorKind::PermissionDenied => {
                ("reading it is not permitted", "check the file's permissions")
            }
            _ => return ScenarioError::of_file(format!("{name}: {e}"), "check the path"),
        };
        ScenarioError::of_file(format!("{name}: {why}"), remedy)
    })?;
    let text = str::from_utf8(&bytes).map_err(|e| {
        let line = bytes[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
        let remedy = format!("a {what} is a TOML file in UTF-8; save it as that");
        ScenarioError::of_file(format!("{name}: line {line} is not UTF-8 text"), &remedy)
    })?;
    Ok(text.to_owned())
}

/// The error of a `text`, called `name`, that is not TOML.
pub fn not_toml(name: &str, text: &str, error: &TomlError) -> ScenarioError {
    let what = format!("not valid TOML: {}", error.message().trim().replace('\n', "; "));
    let remedy = match error.message() {
        duplicate if duplicate.contains("duplicate key") => "keep one of the two",
        number if number.contains("overflow") => "write a smaller number",
        _ => "a line is `key = value`, `[table]` or `[[flow]]`; write text in double quotes",
    };
    let span = error.span().unwrap_or(0..0);
    ScenarioError::at(what, remedy.to_owned(), name, text, span)
}

/// Replaces the names of files by their contents.
fn embed(document: &mut DocumentMut, files: Vec<(KeyPath, Value)>) {
    for (at, content) in files {
        let Some((key, tables)) = at.split_last() else { continue };
        let Some(table) = table_mut(document.as_table_mut(), tables) else { continue };
        table.insert(key, value(content));
    }
}

/// The table at `path`, in which numbers count the tables of a list.
fn table_mut<'a>(table: &'a mut dyn TableLike, path: &[String]) -> Option<&'a mut dyn TableLike> {
    let Some((step, rest)) = path.split_first() else { return Some(table) };
    let item = table.get_mut(step)?;
    if item.is_table_like() {
        return table_mut(item.as_table_like_mut()?, rest);
    }
    let (index, rest) = rest.split_first()?;
    table_mut(element_mut(item, index.parse().ok()?)?, rest)
}

fn read(root: &Section, files: &Files) -> Result<Scenario, Fault> {
    root.only(None)?;
    let title = root.text("title")?.map(str::to_owned);
    let duration = root.time("duration")?;
    let duration_ns = root.required("duration", duration, "duration = \"100s\"")?;
    let seed = root.integer("seed")?.unwrap_or(1);
    let repeat = root.integer("repeat")?.unwrap_or(1);

    let path_section = root.section("path")?;
    let path_section =
        root.required("path", path_section, "a [path] table with rate, rtt, queue")?;
    let path = path(&path_section, files)?;
    let mut tcp = TcpOptions::default();
    if let Some(section) = root.section("tcp")? {
        tcp = flow::tcp_options(&section, &tcp)?;
    }
    let mut record = RecordSpec { bin_ns: 100 * NS_PER_MS, ..RecordSpec::default() };
    if let Some(section) = root.section("record")? {
        section.only(None)?;
        record.bin_ns = section.time("bin")?.unwrap_or(record.bin_ns);
        record.queue_log = section.flag("queue_log")?.unwrap_or(false);
        record.trace = section.flag("trace")?.unwrap_or(false);
    }
    if duration_ns / record.bin_ns > BINS_MAX {
        let what = format!(": the run would have more than {BINS_MAX} bins");
        let record = root.section("record")?.filter(|section| section.has("bin"));
        let remedy = "lengthen `bin` in [record], or shorten `duration`";
        return Err(match record {
            Some(section) => section.fault("bin", &what, remedy),
            None => root.fault("duration", &what, remedy),
        });
    }
    let sysctls = match root.section("linux")? {
        Some(section) => linux::sysctls(&section)?,
        None => Vec::new(),
    };
    let flow::Flows { flows, groups, sources } =
        flow::flows(root, &tcp, &path, duration_ns, files)?;
    let all = || flows.iter().chain(sources.iter().map(|source| &source.flow));
    hop::queues_take_every_packet(&path_section, &path, all())?;
    let run = RunSpec { seed, duration_ns, path, flows, record, sysctls };
    Ok(Scenario { title, repeat, text: String::new(), groups, run, sources })
}

fn path(section: &Section, files: &Files) -> Result<PathSpec, Fault> {
    section.only(None)?;
    let mut hops = hop::hops(section, files)?;
    let only_rate = match hops.is_empty() {
        true => {
            let rate = link::rate(section, "", files)?;
            Some(section.required("rate", rate, "rate = \"10mbit\"")?)
        }
        false => None,
    };
    let split = |rtt: Ns| (rtt / 2, rtt - rtt / 2);
    let delays = (section.time("delay_forward")?, section.time("delay_reverse")?);
    let (delay_forward_ns, delay_reverse_ns) = match (section.time("rtt")?, delays) {
        (Some(rtt), (None, None)) => split(rtt),
        (None, (Some(0), Some(0))) => {
            let what = " and delay_forward are both 0";
            return Err(section.fault("delay_reverse", what, "make one of them more than 0"));
        }
        (None, (Some(forward), Some(reverse))) => (forward, reverse),
        (Some(_), (forward, _)) => {
            let other = if forward.is_some() { "delay_forward" } else { "delay_reverse" };
            return Err(section.conflict(
                "rtt",
                other,
                "the delay",
                &format!(": `{other}` is there too, and both say how long the path is"),
                "keep `rtt`, which is split evenly, or both `delay_forward` and `delay_reverse`",
            ));
        }
        (None, (Some(_), None)) => section.required(
            "delay_reverse",
            None,
            "delay_reverse = \"20ms\" with delay_forward",
        )?,
        (None, (None, Some(_))) => section.required(
            "delay_forward",
            None,
            "delay_forward = \"20ms\" with delay_reverse",
        )?,
        (None, (None, None)) => section.required(
            "rtt",
            None,
            "rtt = \"40ms\", or both delay_forward and delay_reverse",
        )?,
    };
    let [delay_forward_steps, delay_reverse_steps] = link::delay_steps(section, split)?;
    if let Some((rate_bps, rate_varies)) = only_rate {
        hops.push(HopSpec {
            delay_ns: 0,
            rate_bps,
            rate_varies,
            queue: hop::queue(section)?,
            aqm: hop::aqm(section)?,
            loss: section.number("loss_forward")?.unwrap_or(0.0),
            bursts: link::bursts(section, "burst_loss_forward", "loss_forward")?,
        });
    }
    let path = PathSpec {
        hops,
        delay_forward_ns,
        delay_reverse_ns,
        delay_forward_steps,
        delay_reverse_steps,
        falls_reorder: section.flag("delay_falls_reorder")?.unwrap_or(false),
        loss_reverse: section.number("loss_reverse")?.unwrap_or(0.0),
        bursts_reverse: link::bursts(section, "burst_loss_reverse", "loss_reverse")?,
        jitter_forward_ns: section.time("jitter_forward")?.unwrap_or(0),
        jitter_reverse_ns: section.time("jitter_reverse")?.unwrap_or(0),
        noise_ns: section.time("noise")?.unwrap_or(0),
        reorder: link::reorder(section)?,
        reverse: link::reverse(section, files)?,
    };
    link::always_some_delay(section, &path)?;
    Ok(path)
}
