//! Data of a TCP flow: endless, transfers, or a pattern of them.

use super::error::{Fault, On};
use super::key::{Kind, REQUIRED, SIZE, SIZE_MAX_BYTES, SOME_TIME, described, is, number, table};
use super::section::Section;
use crate::{
    traffic::{Pattern, READING_NS, SizeLaw},
    units::{self, RATE, TIME},
};
use knee_model::{NS_PER_S, Workload};

/// Bounds of a law of sizes where none are given.
const LAW_BYTES: [u64; 2] = [1, 1_000_000_000];
/// Laws of sizes.
pub(super) static LAWS: [(&str, &str); 3] =
    [("exponential", "exponential"), ("pareto", "pareto"), ("lognormal", "lognormal")];
/// Connections of a user of web pages, and whether they are parallel.
static CONNECTIONS: [(&str, bool); 2] = [("parallel", true), ("one", false)];

/// Keys that do not apply to a source, and their replacements.
const NOT_OF_SOURCES: &[(&str, &str)] = &[
    ("every", "each connection carries one transfer; more of them come with a higher rate"),
    ("start_spacing", "the starts are drawn; `start` and `stop` say between which times"),
    ("start_jitter", "the starts are drawn; `start` and `stop` say between which times"),
];

table! { ARRIVALS "flow.arrivals"
    /// flows per second, on average
    rate_per_s: number(1e-6, 1e9), described("required, or `load`");
    /// instead: average payload that arrives, as a fraction of the bottleneck's rate (the lowest of the
    /// links that its data pass); headers come on top
    load: number(1e-6, 100.0), described("");
}

table! { SIZE_LAW "flow.size"
    /// the law
    law: Kind::Words(&LAWS), REQUIRED;
    /// mean of the law within its bounds
    mean: SIZE, REQUIRED;
    /// P(size > x) falls as x^-`shape`; below 2 the tail is heavy
    shape for "pareto": number(0.1, 100.0), REQUIRED;
    /// standard deviation of the natural logarithm of the sizes, before the bounds
    sigma for "lognormal": number(0.01, 10.0), REQUIRED;
    /// lower bound; the one of `pareto` follows from its mean
    min for "exponential", "lognormal": SIZE, is("1B");
    /// upper bound: the law is truncated there, without piling up draws at the bound
    max: SIZE, is("1GB");
}

table! { WEB "flow.web"
    /// one connection per object, or one per user that carries all objects in order
    connections: Kind::Words(&CONNECTIONS), is("parallel");
    /// mean reading time
    reading: SOME_TIME, is("30s");
}

table! { VIDEO "flow.video"
    /// rate of the video, payload
    rate: Kind::Rate, REQUIRED;
    /// length of a chunk
    chunk: SOME_TIME, is("2s");
}

/// Data of a flow.
pub(super) enum Sends {
    /// One connection, which writes this.
    Writes(Workload),
    /// The flow is a source: its pattern, and the key that says so.
    Draws(&'static str, Pattern),
}

/// Data that the flow of `table` sends; `rate_bps` is the least rate of the links that it passes.
pub(super) fn sends(table: &Section, rate_bps: u64) -> Result<Sends, Fault> {
    let ways = ["arrivals", "web", "video"].into_iter().filter(|key| table.has(key));
    let ways: Vec<&str> = ways.collect();
    if let [first, second, ..] = ways[..] {
        let what = format!(": `{first}` is there too, and both define the data of the flow");
        return Err(table.conflict(second, first, "the other", &what, "keep one of them"));
    }
    if let Some(section) = table.section("arrivals")? {
        return arrivals(table, &section, rate_bps);
    }
    if let Some(section) = table.section("web")? {
        return web(table, &section);
    }
    let workload = match table.section("video")? {
        Some(section) => video(table, &section)?,
        None => transfers(table)?,
    };
    Ok(Sends::Writes(workload))
}

fn transfers(table: &Section) -> Result<Workload, Fault> {
    if table.table.get("size").is_some_and(|size| size.is_table_like()) {
        let what = ": a law of sizes is for a source of flows";
        let remedy =
            "add arrivals = { rate_per_s = 20 }, or write one size, such as size = \"1MB\"";
        return Err(table.fault("size", what, remedy));
    }
    let every_ns = table.time("every")?;
    match (table.size("size")?, every_ns) {
        (Some(size_bytes), every_ns) => Ok(Workload::Transfers { size_bytes, every_ns }),
        (None, None) => Ok(Workload::Bulk),
        (None, Some(_)) => {
            let remedy = "add the size of one transfer, such as size = \"1MB\"";
            Err(table.fault("every", " repeats transfers, but there is no `size`", remedy))
        }
    }
}

/// Refuses keys of `table` that have no meaning together with `key`.
fn without(table: &Section, key: &str, others: &[(&str, &str)]) -> Result<(), Fault> {
    match others.iter().find(|(other, _)| table.has(other)) {
        None => Ok(()),
        Some((other, why)) => {
            let what = format!(" has no meaning with `{key}`");
            let fault = table.conflict(other, key, "the other", &what, format!("remove it: {why}"));
            Err(Fault { on: On::Key, ..fault })
        }
    }
}

/// `arrivals`: connections with one transfer each.
fn arrivals(table: &Section, section: &Section, rate_bps: u64) -> Result<Sends, Fault> {
    const KEY: &str = "arrivals";
    without(table, KEY, NOT_OF_SOURCES)?;
    let count = [("count", "the number of flows is drawn; give a higher rate")];
    without(table, KEY, &count)?;
    let size = size_law(table)?;
    section.only(None)?;
    let rate = section.number("rate_per_s")?;
    let load = section.number("load")?;
    let per_s = match (rate, load) {
        (Some(_), Some(_)) => {
            let what = ": `rate_per_s` is there too, and both say how many flows there are";
            let remedy = "keep one of them";
            return Err(section.conflict("load", "rate_per_s", "the rate", what, remedy));
        }
        (Some(per_s), None) => per_s,
        (None, Some(load)) => load * rate_bps as f64 / (8.0 * size.mean()),
        (None, None) => {
            let example = "arrivals = { rate_per_s = 20 }, or load = 0.3 of the path's rate";
            section.required("rate_per_s", None, example)?
        }
    };
    Ok(Sends::Draws(KEY, Pattern::Arrivals { per_s, size }))
}

/// `size` of a source: one size, or a law.
fn size_law(table: &Section) -> Result<SizeLaw, Fault> {
    const EXAMPLE: &str = "size = \"30kB\", or size = { law = \"pareto\", mean = \"30kB\", shape = 1.2, max = \"10MB\" }";
    if !table.table.get("size").is_some_and(|size| size.is_table_like()) {
        let size = table.size("size")?;
        return table.required("size", size.map(SizeLaw::fixed), EXAMPLE);
    }
    let Some(section) = table.section("size")? else {
        return table.required("size", None, EXAMPLE);
    };
    let law = section.required("law", section.word("law", &LAWS)?, "law = \"pareto\"")?;
    section.only(Some(law))?;
    let mean = section.size("mean")?;
    let mean = section.required("mean", mean, "mean = \"30kB\"")? as f64;
    let least_bytes = section.size("min")?.unwrap_or(LAW_BYTES[0]);
    let most_bytes = section.size("max")?.unwrap_or(LAW_BYTES[1]);
    if least_bytes >= most_bytes {
        let what = format!(
            " = {} is not above the smallest size, {}",
            units::SIZE.show(most_bytes),
            units::SIZE.show(least_bytes)
        );
        let remedy = "write a `max` that is larger than `min`";
        return Err(section.conflict("max", "min", "the smallest", &what, remedy));
    }
    let (least, most) = (least_bytes as f64, most_bytes as f64);
    let (found, remedy) = match law {
        "exponential" => {
            let remedy = "write a mean below the middle of `min` and `max`";
            (SizeLaw::exponential(mean, least, most), remedy)
        }
        "pareto" => {
            let shape = section.number("shape")?;
            let shape = section.required("shape", shape, "shape = 1.2")?;
            let remedy = "write a mean below `max`, and large enough that no size is below a byte";
            (SizeLaw::pareto(mean, shape, most), remedy)
        }
        _ => {
            let sigma = section.number("sigma")?;
            let example = "sigma = 1.4, the standard deviation of the sizes' natural logarithm";
            let sigma = section.required("sigma", sigma, example)?;
            let remedy = "write a mean well between `min` and `max`, or other bounds";
            (SizeLaw::lognormal(mean, sigma, least, most), remedy)
        }
    };
    found.ok_or_else(|| {
        let (least, most) = (units::SIZE.show(least_bytes), units::SIZE.show(most_bytes));
        let what = format!(": no {law} law from {least} to {most} has this mean");
        section.fault("mean", &what, remedy)
    })
}

/// `web`: people who read pages.
fn web(table: &Section, section: &Section) -> Result<Sends, Fault> {
    const KEY: &str = "web";
    without(table, KEY, NOT_OF_SOURCES)?;
    without(table, KEY, &[("size", "the model of pages has sizes of its own")])?;
    let users = table.integer("count")?.unwrap_or(1);
    section.only(None)?;
    let parallel = section.word("connections", &CONNECTIONS)?.unwrap_or(true);
    let reading_ns = section.time("reading")?.unwrap_or(READING_NS);
    Ok(Sends::Draws(KEY, Pattern::Web { users, parallel, reading_ns }))
}

/// `video`: chunks of a bit rate, one after the other.
fn video(table: &Section, section: &Section) -> Result<Workload, Fault> {
    const KEY: &str = "video";
    let others = [
        ("size", "`rate` and `chunk` say how large each chunk is"),
        ("every", "`chunk` says how often one is written"),
    ];
    without(table, KEY, &others)?;
    section.only(None)?;
    let rate = section.rate("rate")?;
    let rate_bps = section.required("rate", rate, "rate = \"4mbit\", the video's")?;
    let chunk_ns = section.time("chunk")?.unwrap_or(2 * NS_PER_S);
    let bits = u128::from(rate_bps) * u128::from(chunk_ns) / u128::from(NS_PER_S);
    let size_bytes = u64::try_from(bits / 8).unwrap_or(u64::MAX);
    if !(1..=SIZE_MAX_BYTES).contains(&size_bytes) {
        let (rate, chunk) = (RATE.show(rate_bps), TIME.show(chunk_ns));
        let what = format!(": a chunk of {chunk} at {rate} would be of {size_bytes} bytes");
        let remedy = format!(
            "write a rate and a `chunk` that give 1B to {}",
            units::SIZE.show(SIZE_MAX_BYTES)
        );
        return Err(section.fault("rate", &what, remedy));
    }
    Ok(Workload::Transfers { size_bytes, every_ns: Some(chunk_ns) })
}
