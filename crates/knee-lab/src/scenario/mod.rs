//! The scenario file: one experiment in TOML, read into a [`knee_run::RunSpec`].
//!
//! `docs/scenario.md` is the reference of its keys. Everything is checked before anything runs:
//! unknown keys, numbers without a unit, values out of range and keys that contradict each other
//! are errors that show file, line, key and remedy.

mod error;
mod flow;
mod section;
mod set;

pub use error::ScenarioError;
pub(crate) use error::nearest;
pub use flow::FlowGroup;
pub use set::Set;

use crate::units::{show_queue, show_size};
use error::{Fault, Sources};
use knee_run::{FlowKind, NS_PER_MS, PathSpec, QueueLimit, RecordSpec, RunSpec, TcpOptions};
use section::{ANY_TIME, SOME_TIME, Section};
use std::{fs, io::ErrorKind, path::Path};
use toml_edit::{Document, DocumentMut, TomlError};

/// Most bins of a time series.
const BINS_MAX: u64 = 10_000_000;

/// A valid scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    title: Option<String>,
    repeat: u32,
    text: String,
    groups: Vec<FlowGroup>,
    /// Of the first repetition.
    run: RunSpec,
}

impl Scenario {
    /// Reads the file at `path`, with `sets` put over what it says, in their order.
    ///
    /// # Errors
    /// The file cannot be read, or as [`Scenario::parse`].
    pub fn load(path: &Path, sets: &[Set]) -> Result<Self, ScenarioError> {
        let name = path.display().to_string();
        let bytes = fs::read(path).map_err(|e| {
            let (why, remedy) = match e.kind() {
                ErrorKind::NotFound => ("there is no such file", "check the path"),
                ErrorKind::IsADirectory => ("this is a directory", "name a scenario file in it"),
                ErrorKind::PermissionDenied => {
                    ("reading it is not permitted", "check the file's permissions")
                }
                _ => return ScenarioError::of_file(format!("{name}: {e}"), "check the path"),
            };
            ScenarioError::of_file(format!("{name}: {why}"), remedy)
        })?;
        let text = str::from_utf8(&bytes).map_err(|e| {
            let line = bytes[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
            let what = format!("{name}: line {line} is not UTF-8 text");
            ScenarioError::of_file(what, "a scenario is a TOML file in UTF-8; save it as that")
        })?;
        Self::parse(&name, text, sets)
    }

    /// Reads `text`, called `name` in errors, with `sets` put over what it says, in their order.
    ///
    /// # Errors
    /// Not TOML, a path of `sets` that leads nowhere, or a scenario that `docs/scenario.md` does
    /// not allow.
    pub fn parse(name: &str, text: &str, sets: &[Set]) -> Result<Self, ScenarioError> {
        let file = Document::parse(text).map_err(|e| not_toml(name, text, &e))?;
        let sources = Sources { name, file: &file, sets };
        let mut document: DocumentMut = file.clone().into_mut();
        for set in sets {
            set.apply(&mut document).map_err(|fault| sources.locate(fault))?;
        }
        let text = if sets.is_empty() { text.to_owned() } else { document.to_string() };
        read(&Section::root(document.as_table()), text).map_err(|fault| sources.locate(fault))
    }

    /// What it is, for people.
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

    /// The TOML that says all of this by itself: the file, with the values of `sets` in place.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The `[[flow]]` tables, in order.
    pub fn groups(&self) -> &[FlowGroup] {
        &self.groups
    }

    /// One run of it.
    pub fn spec(&self, seed: u64) -> RunSpec {
        RunSpec { seed, ..self.run.clone() }
    }
}

fn not_toml(name: &str, text: &str, error: &TomlError) -> ScenarioError {
    let what = format!("not valid TOML: {}", error.message().trim().replace('\n', "; "));
    let remedy = match error.message() {
        duplicate if duplicate.contains("duplicate key") => "keep one of the two",
        number if number.contains("overflow") => "write a smaller number",
        _ => "a line is `key = value`, `[table]` or `[[flow]]`; text stands in double quotes",
    };
    let span = error.span().unwrap_or(0..0);
    ScenarioError::at(what, remedy.to_owned(), name, text, span)
}

fn read(root: &Section, text: String) -> Result<Scenario, Fault> {
    root.only(&["title", "duration", "seed", "repeat", "path", "tcp", "record", "flow"])?;
    let title = root.text("title")?.map(str::to_owned);
    let duration = root.time("duration", SOME_TIME)?;
    let duration_ns = root.required("duration", duration, "duration = \"100s\"")?;
    let seed = root.integer("seed", 0..=i64::MAX as u64)?.unwrap_or(1);
    let repeat = root.integer("repeat", 1..=10_000)?.unwrap_or(1);

    let path_section = root.section("path")?;
    let path_section =
        root.required("path", path_section, "a [path] table with rate, rtt, queue")?;
    let path = path(&path_section)?;
    let mut tcp = TcpOptions::default();
    if let Some(section) = root.section("tcp")? {
        tcp = flow::tcp_options(&section, &tcp)?;
    }
    let mut record = RecordSpec { bin_ns: 100 * NS_PER_MS, ..RecordSpec::default() };
    if let Some(section) = root.section("record")? {
        section.only(&["bin", "queue_log", "trace"])?;
        record.bin_ns = section.time("bin", SOME_TIME)?.unwrap_or(record.bin_ns);
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
    let (flows, groups) = flow::flows(root, &tcp, duration_ns)?;
    queue_takes_every_packet(&path_section, path.queue, &flows)?;
    let run = RunSpec { seed, duration_ns, path, flows, record };
    Ok(Scenario { title, repeat, text, groups, run })
}

fn path(section: &Section) -> Result<PathSpec, Fault> {
    section.only(&[
        "rate",
        "rtt",
        "delay_forward",
        "delay_reverse",
        "queue",
        "loss_forward",
        "loss_reverse",
        "jitter_forward",
        "jitter_reverse",
    ])?;
    let rate = section.rate("rate")?;
    let rate_bps = section.required("rate", rate, "rate = \"10mbit\"")?;
    let delays =
        (section.time("delay_forward", ANY_TIME)?, section.time("delay_reverse", ANY_TIME)?);
    let (delay_forward_ns, delay_reverse_ns) = match (section.time("rtt", SOME_TIME)?, delays) {
        (Some(rtt), (None, None)) => (rtt / 2, rtt - rtt / 2),
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
            "delay_reverse = \"20ms\" beside delay_forward",
        )?,
        (None, (None, Some(_))) => section.required(
            "delay_forward",
            None,
            "delay_forward = \"20ms\" beside delay_reverse",
        )?,
        (None, (None, None)) => section.required(
            "rtt",
            None,
            "rtt = \"40ms\", or both delay_forward and delay_reverse",
        )?,
    };
    let queue = section.queue("queue")?;
    Ok(PathSpec {
        rate_bps,
        queue: section.required("queue", queue, "queue = \"84p\" or queue = \"100kB\"")?,
        delay_forward_ns,
        delay_reverse_ns,
        loss_forward: section.loss("loss_forward")?.unwrap_or(0.0),
        loss_reverse: section.loss("loss_reverse")?.unwrap_or(0.0),
        jitter_forward_ns: section.time("jitter_forward", ANY_TIME)?.unwrap_or(0),
        jitter_reverse_ns: section.time("jitter_reverse", ANY_TIME)?.unwrap_or(0),
    })
}

fn queue_takes_every_packet(
    section: &Section,
    queue: QueueLimit,
    flows: &[knee_run::FlowSpec],
) -> Result<(), Fault> {
    let QueueLimit::Bytes(limit) = queue else { return Ok(()) };
    let packet_bytes = |kind: &FlowKind| match kind {
        FlowKind::Tcp(tcp) => tcp.options.mss_bytes + tcp.options.header_bytes,
        FlowKind::Udp { packet_bytes, .. } | FlowKind::Probe { packet_bytes, .. } => *packet_bytes,
    };
    let too_large = |flow: &&knee_run::FlowSpec| u64::from(packet_bytes(&flow.kind)) > limit;
    let Some(flow) = flows.iter().find(too_large) else { return Ok(()) };
    let packet = show_size(packet_bytes(&flow.kind).into());
    let what = format!(
        " = {} takes no packet of flow {}, which are {packet}",
        show_queue(queue),
        flow.name
    );
    Err(section.fault("queue", &what, format!("write at least \"{packet}\"")))
}
