//! The declaration of a key: the kind and range of its value, its default and its meaning.

use crate::units::NS_PER_S;
use knee_model::Ns;
use std::collections::HashSet;
use std::ops::{
    Bound::{self, Excluded, Included},
    RangeInclusive,
};

/// A table of a scenario.
pub(crate) struct Table {
    /// Its key from the start of the file, without indices, such as `path.aqm`; of the file itself, `top`.
    pub(crate) name: &'static str,
    pub(crate) keys: &'static [Key],
}

/// A key of a table.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// The variants of the table that have the key, such as `udp`; empty: all.
    pub(crate) of: &'static [&'static str],
    pub(crate) kind: Kind,
    pub(crate) default: Default,
    pub(crate) meaning: &'static str,
}

/// The kind of a value, and its range.
pub(crate) enum Kind {
    Text,
    /// The name of an algorithm, or a C file.
    Algorithm,
    Flag,
    Words(&'static (dyn Words + Sync)),
    Integer(RangeInclusive<u64>),
    Number(Interval),
    Time(RangeInclusive<Ns>),
    Rate,
    Size(RangeInclusive<u64>),
    Packets(RangeInclusive<u64>),
    /// Packets or bytes.
    Threshold,
    /// Packets or bytes, not 0.
    Queue,
    RateSteps,
    DelaySteps,
    /// A delivery trace.
    Trace,
    Table(&'static Table),
    Tables(&'static Table),
    /// One size, or the table of a law.
    SizeOrLaw(RangeInclusive<u64>, &'static Table),
    /// The parameters of the algorithm.
    Params,
    /// Sysctls of `net.ipv4`.
    Sysctls,
}

/// Numbers without a unit, from one bound to the other.
pub(crate) struct Interval {
    pub(crate) from: Bound<f64>,
    pub(crate) to: Bound<f64>,
    /// Description in errors; empty: the bounds.
    pub(crate) expected: &'static str,
}

/// The value of a key that is not written.
pub(crate) enum Default {
    Required,
    /// This value, without quotes.
    Is(&'static str),
    /// A description.
    Described(&'static str),
}

/// Words, each with a value.
pub(crate) trait Words {
    fn names(&self) -> Vec<&'static str>;
}

impl<T, const N: usize> Words for [(&'static str, T); N] {
    fn names(&self) -> Vec<&'static str> {
        self.iter().map(|(name, _)| *name).collect()
    }
}

impl Table {
    /// The key called `name`.
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// The names of all keys, or of those that the table has as a `variant`.
    pub(crate) fn names(&self, variant: Option<&str>) -> Vec<&'static str> {
        let mut seen = HashSet::new();
        let keys = self.keys.iter().filter(|key| key.is_of(variant) && seen.insert(key.name));
        keys.map(|key| key.name).collect()
    }

    /// The key whose word decides the variant, and its words.
    pub(crate) fn variants(&self) -> Option<(&'static str, Vec<&'static str>)> {
        let named = self.keys.iter().flat_map(|key| key.of).next()?;
        self.keys.iter().find_map(|key| match key.kind {
            Kind::Words(words) if words.names().contains(named) => Some((key.name, words.names())),
            _ => None,
        })
    }
}

impl Key {
    /// Returns whether a table of `variant` has the key.
    pub(crate) fn is_of(&self, variant: Option<&str>) -> bool {
        self.of.is_empty() || variant.is_none_or(|variant| self.of.contains(&variant))
    }

    /// The default as TOML writes it, if it is a value.
    pub(crate) fn default_toml(&self) -> Option<String> {
        let Default::Is(value) = self.default else { return None };
        Some(match self.kind {
            Kind::Flag | Kind::Integer(_) | Kind::Number(_) => value.to_owned(),
            _ => format!("\"{value}\""),
        })
    }
}

impl Interval {
    /// Description of its numbers.
    pub(crate) fn expected(&self) -> String {
        match (self.expected, self.from, self.to) {
            ("", Included(from), Included(to)) => format!("a number from {from} to {to}"),
            (expected, ..) => expected.to_owned(),
        }
    }
}

/// Longest time that a scenario may hold: sums of a few stay far from the limit of 64 bits.
pub(crate) const LONGEST_NS: Ns = 1_000_000 * NS_PER_S;
/// Highest rate, bit/s.
pub(crate) const FASTEST_BPS: u64 = 1_000_000_000_000;
/// Most flows of a scenario.
pub(crate) const FLOWS_MAX: u32 = 100_000;
/// Largest transfer.
pub(crate) const SIZE_MAX_BYTES: u64 = 1_000_000_000_000_000;
/// Most packets; positions in a connection wrap at 32 bits.
pub(crate) const WINDOW_MAX_PKTS: u64 = 1_000_000_000;

pub(crate) const ANY_TIME: Kind = Kind::Time(0..=LONGEST_NS);
pub(crate) const SOME_TIME: Kind = Kind::Time(1..=LONGEST_NS);
pub(crate) const WINDOW: Kind = Kind::Packets(1..=WINDOW_MAX_PKTS);
pub(crate) const PACKET: Kind = Kind::Size(1..=65_535);
pub(crate) const SIZE: Kind = Kind::Size(1..=SIZE_MAX_BYTES);
pub(crate) const HOP: Kind = Kind::Integer(1..=u32::MAX as u64);
/// A probability below 1.
pub(crate) const LOSS: Kind =
    interval(Included(0.0), Excluded(1.0), "a number from 0 to below 1, such as 0.01 for 1%");
/// The mean loss in bursts.
pub(crate) const MEAN_LOSS: Kind =
    interval(Excluded(0.0), Excluded(1.0), "a number between 0 and 1, such as 0.01 for 1%");
pub(crate) const BURST_PKTS: Kind =
    interval(Included(1.0), Excluded(1e9), "a number of packets from 1 on, such as 4");
pub(crate) const PROBABILITY: Kind =
    interval(Included(0.0), Included(1.0), "a probability from 0 to 1, such as 0.01");
pub(crate) const SOME_PROBABILITY: Kind =
    interval(Excluded(0.0), Included(1.0), "a probability above 0, at most 1, such as 0.3");

pub(crate) const REQUIRED: Default = Default::Required;
pub(crate) const NONE: Default = Default::Described("none");

pub(crate) const fn is(value: &'static str) -> Default {
    Default::Is(value)
}

pub(crate) const fn described(text: &'static str) -> Default {
    Default::Described(text)
}

pub(crate) const fn interval(from: Bound<f64>, to: Bound<f64>, expected: &'static str) -> Kind {
    Kind::Number(Interval { from, to, expected })
}

pub(crate) const fn number(from: f64, to: f64) -> Kind {
    interval(Included(from), Included(to), "")
}

macro_rules! table {
    ($id:ident $name:literal $($(#[doc = $doc:literal])+
        $key:ident $(for $($of:literal),+)?: $kind:expr, $default:expr;)+) => {
        pub(crate) static $id: $crate::key::Table = $crate::key::Table {
            name: $name,
            keys: &[$($crate::key::Key {
                name: stringify!($key),
                of: &[$($($of),+)?],
                kind: $kind,
                default: $default,
                meaning: concat!($($doc),+),
            }),+],
        };
    };
}

pub(crate) use table;
