//! `[path.aqm]`: how the bottleneck's queue is managed.

use super::error::{Fault, On};
use super::key::{ANY_TIME, Kind, PACKET, REQUIRED, SOME_TIME, is, number, table};
use super::section::Section;
use knee_model::{Aqm, CoDel, Discipline, FqCoDel, Fred, Pie, QueueLimit, Red, Thresholds};

type Read = fn(&Section) -> Result<Discipline, Fault>;
/// The disciplines.
pub(super) static KINDS: [(&str, (&str, Read)); 5] = [
    ("red", ("red", red)),
    ("fred", ("fred", fred)),
    ("codel", ("codel", |section| Ok(Discipline::CoDel(codel(section)?)))),
    ("fq-codel", ("fq-codel", fq_codel)),
    ("pie", ("pie", pie)),
];

table! { AQM "path.aqm"
    /// the discipline
    kind: Kind::Words(&KINDS), REQUIRED;
    /// packets of flows with `ecn = true` in their TCP options are marked instead of dropped, as far as
    /// the discipline allows
    ecn: Kind::Flag, is("false");
    /// average queue from which on packets are dropped or marked at random; more than 0; packets for
    /// fred
    min_threshold for "red", "fred": Kind::Threshold, is("5p");
    /// average queue from which on everything is dropped; more than `min_threshold`, in the same unit;
    /// give both or neither
    max_threshold for "red", "fred": Kind::Threshold, is("15p");
    /// weight of the present queue in the average (w_q)
    weight for "red", "fred": number(0.000_001, 1.0), is("0.002");
    /// probability at `max_threshold` (max_p); later recommendations say 0.1
    max_probability for "red", "fred": number(0.000_001, 1.0), is("0.02");
    /// above `max_threshold` the probability rises further, to 1 at twice that
    gentle for "red": Kind::Flag, is("false");
    /// packets that each flow may hold without random drops or marks (min_q; 2 for small buffers)
    min_queue for "fred": Kind::Packets(1..=u32::MAX as u64), is("4p");
    /// target of the queueing delay
    target for "codel", "fq-codel": SOME_TIME, is("5ms");
    /// target of the queueing delay
    target for "pie": SOME_TIME, is("15ms");
    /// how long the delay may be above the target
    interval for "codel", "fq-codel": SOME_TIME, is("100ms");
    /// bytes that a queue may send in its turn
    quantum for "fq-codel": PACKET, is("1514B");
    /// number of queues that flows are hashed into; the seed draws the hash; 1 puts all flows into one
    queues for "fq-codel": Kind::Integer(1..=65_535), is("1024");
    /// how often the probability is computed
    update for "pie": SOME_TIME, is("15ms");
    /// time after a calm period in which nothing is dropped or marked
    max_burst for "pie": ANY_TIME, is("150ms");
    /// weight of the delay's distance from the target, per second
    alpha for "pie": number(0.0, 1000.0), is("0.125");
    /// weight of the delay's change, per second
    beta for "pie": number(0.0, 1000.0), is("1.25");
    /// from this probability on packets are dropped even if they could be marked
    mark_limit for "pie": number(0.0, 1.0), is("0.1");
    /// a typical packet: decides how fast the average of an idle queue falls; a full packet where
    /// thresholds are bytes; PIE leaves queues of two such packets alone
    packet for "red", "fred", "pie": PACKET, is("1500B");
}

/// Reads `section`.
pub(super) fn aqm(section: &Section) -> Result<Aqm, Fault> {
    let kind = section.word("kind", &KINDS)?;
    let names = KINDS.map(|(name, ..)| name).join(", ");
    let example = format!("kind = \"codel\"; kinds: {names}");
    let (name, read) = section.required("kind", kind, &example)?;
    if let Some(key) = section.stranger(Some(name)) {
        let others = section.variants_with(key);
        if others.is_empty() {
            return Err(section.unknown(key, Some(name)));
        }
        let what = format!(" is for {}; this queue's kind is {name}", others.join(", "));
        let remedy = format!("remove it, or write kind = \"{}\"", others[0]);
        return Err(Fault { on: On::Key, ..section.fault(key, &what, remedy) });
    }
    Ok(Aqm { discipline: read(section)?, ecn: section.flag("ecn")?.unwrap_or(false) })
}

/// The two thresholds, or `default`; both at once, in one unit, in order.
fn thresholds(section: &Section, default: Thresholds) -> Result<Thresholds, Fault> {
    let (min, max) = (section.amount("min_threshold")?, section.amount("max_threshold")?);
    let thresholds = match (min, max) {
        (None, None) => return Ok(default),
        (Some(_), None) => {
            let example = "max_threshold = \"15p\" with min_threshold";
            return section.required("max_threshold", None, example);
        }
        (None, Some(_)) => {
            let example = "min_threshold = \"5p\" with max_threshold";
            return section.required("min_threshold", None, example);
        }
        (Some(QueueLimit::Packets(min)), Some(QueueLimit::Packets(max))) => {
            Thresholds::Packets { min, max }
        }
        (Some(QueueLimit::Bytes(min)), Some(QueueLimit::Bytes(max))) => {
            Thresholds::Bytes { min, max }
        }
        _ => {
            let what = " and min_threshold are not in the same unit";
            let remedy = "write both in packets (\"15p\") or both in bytes (\"22.5kB\")";
            return Err(section.conflict(
                "max_threshold",
                "min_threshold",
                "the lower one",
                what,
                remedy,
            ));
        }
    };
    let in_order = match thresholds {
        Thresholds::Packets { min, max } => 0 < min && min < max,
        Thresholds::Bytes { min, max } => 0 < min && min < max,
    };
    if in_order {
        return Ok(thresholds);
    }
    let what = " must be more than min_threshold, and that more than 0";
    let remedy = "write, for example, min_threshold = \"5p\" and max_threshold = \"15p\"";
    Err(section.conflict("max_threshold", "min_threshold", "the lower one", what, remedy))
}

fn red(section: &Section) -> Result<Discipline, Fault> {
    let default = Red::default();
    Ok(Discipline::Red(Red {
        thresholds: thresholds(section, default.thresholds)?,
        weight: section.number("weight")?.unwrap_or(default.weight),
        max_probability: section.number("max_probability")?.unwrap_or(default.max_probability),
        gentle: section.flag("gentle")?.unwrap_or(default.gentle),
        packet_bytes: section.packet_bytes("packet")?.unwrap_or(default.packet_bytes),
    }))
}

fn fred(section: &Section) -> Result<Discipline, Fault> {
    let default = Fred::default();
    let packets = Thresholds::Packets { min: default.min_pkts, max: default.max_pkts };
    let Thresholds::Packets { min: min_pkts, max: max_pkts } = thresholds(section, packets)? else {
        let remedy = "FRED counts the packets of each flow; write, for example, \"15p\"";
        return Err(section.fault("max_threshold", " is in bytes", remedy));
    };
    Ok(Discipline::Fred(Fred {
        min_pkts,
        max_pkts,
        weight: section.number("weight")?.unwrap_or(default.weight),
        max_probability: section.number("max_probability")?.unwrap_or(default.max_probability),
        min_queue_pkts: section.packets("min_queue")?.unwrap_or(default.min_queue_pkts),
        packet_bytes: section.packet_bytes("packet")?.unwrap_or(default.packet_bytes),
    }))
}

fn codel(section: &Section) -> Result<CoDel, Fault> {
    let default = CoDel::default();
    Ok(CoDel {
        target_ns: section.time("target")?.unwrap_or(default.target_ns),
        interval_ns: section.time("interval")?.unwrap_or(default.interval_ns),
    })
}

fn fq_codel(section: &Section) -> Result<Discipline, Fault> {
    let default = FqCoDel::default();
    Ok(Discipline::FqCoDel(FqCoDel {
        codel: codel(section)?,
        quantum_bytes: section.packet_bytes("quantum")?.unwrap_or(default.quantum_bytes),
        queues: section.integer("queues")?.unwrap_or(default.queues),
    }))
}

fn pie(section: &Section) -> Result<Discipline, Fault> {
    let default = Pie::default();
    Ok(Discipline::Pie(Pie {
        target_ns: section.time("target")?.unwrap_or(default.target_ns),
        update_ns: section.time("update")?.unwrap_or(default.update_ns),
        burst_ns: section.time("max_burst")?.unwrap_or(default.burst_ns),
        alpha_per_s: section.number("alpha")?.unwrap_or(default.alpha_per_s),
        beta_per_s: section.number("beta")?.unwrap_or(default.beta_per_s),
        mark_limit: section.number("mark_limit")?.unwrap_or(default.mark_limit),
        packet_bytes: section.packet_bytes("packet")?.unwrap_or(default.packet_bytes),
    }))
}
