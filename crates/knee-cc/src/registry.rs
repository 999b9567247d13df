//! Algorithms, their parameters and rules, as the C tables give them.

#[cfg(can_load)]
use crate::Callee;
use crate::{Profile, ffi};
use serde::Deserialize;
use std::{
    ffi::{CStr, c_char},
    fmt, slice,
    sync::{PoisonError, RwLock},
};

include!(concat!(env!("OUT_DIR"), "/registry.rs"));

/// One congestion control algorithm.
#[derive(Clone, Copy)]
pub struct Algorithm {
    pub(crate) raw: &'static ffi::Algorithm,
    /// None: it is built in.
    pub(crate) own: Option<&'static Own>,
}

/// A C file that an algorithm was loaded from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name, as it was given.
    pub file: String,
    /// Its text at that time.
    pub text: String,
    /// The compiler's result: a shared object.
    pub object: Vec<u8>,
}

/// The origin of an algorithm that is not built in.
#[derive(Debug)]
#[cfg_attr(not(can_load), expect(dead_code, reason = "nothing makes one"))]
pub(crate) enum Own {
    /// A C file.
    File(Source),
    /// This program.
    #[cfg(can_load)]
    Here(Here),
}

/// An algorithm that this program defined.
#[cfg(can_load)]
pub(crate) struct Here {
    pub(crate) origin: String,
    /// None: the functions are in the descriptor.
    pub(crate) callee: Option<Box<dyn Callee>>,
}

#[cfg(can_load)]
impl fmt::Debug for Here {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)
    }
}

/// Interpretation of a parameter's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[repr(u32)]
#[serde(rename_all = "lowercase")]
pub enum ParamKind {
    /// A time in microseconds; typed with a unit (`"30ms"`).
    #[serde(rename = "time")]
    TimeUs,
    /// A count of packets (`"84p"` or a bare number).
    Packets,
    /// A probability in parts per million; typed as a number from 0 to 1.
    #[serde(rename = "probability")]
    ProbabilityPpm,
    /// One of a few names, stored as its index.
    Choice,
    /// A number without unit, in parts per million.
    #[serde(rename = "number")]
    NumberPpm,
    /// A whole number without unit.
    Count,
}

impl ParamKind {
    /// All kinds, in the order of C's numbers (`enum cc_param_kind`), and how their values are written.
    const ALL: [(Self, &'static str); 6] = [
        (Self::TimeUs, "time"),
        (Self::Packets, "packets"),
        (Self::ProbabilityPpm, "probability"),
        (Self::Choice, "choice"),
        (Self::NumberPpm, "number"),
        (Self::Count, "count"),
    ];
}

/// One row of an algorithm's parameter table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Name in scenario files and on the command line.
    pub name: &'static str,
    /// FreeBSD's name for it, where there is one that differs.
    pub alias: Option<&'static str>,
    /// Interpretation of its number.
    pub kind: ParamKind,
    /// Smallest raw value.
    pub min: u32,
    /// Largest raw value.
    pub max: u32,
    /// Raw value that applies when none is given.
    pub default: u32,
    /// Names of a [`ParamKind::Choice`], `|`-separated.
    choices: &'static str,
    /// Source of the default.
    pub source: &'static str,
    /// One line of help.
    pub help: &'static str,
    pub(crate) index: usize,
}

/// Comparison of a [`Rule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleOp {
    /// left < right.
    LessThan,
    /// left = 0 or left > right.
    ZeroOrMoreThan,
}

/// A condition on two parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Left operand.
    pub left: Param,
    /// Comparison.
    pub op: RuleOp,
    /// Right operand.
    pub right: Param,
}

/// Those that were loaded, in order.
static LOADED: RwLock<Vec<Algorithm>> = RwLock::new(Vec::new());

/// The built-in algorithms, by name.
pub fn algorithms() -> &'static [Algorithm] {
    &ALGORITHMS
}

/// The algorithm called `name`: a built-in one, or the one loaded last ([`crate::load()`]).
pub fn algorithm(name: &str) -> Option<Algorithm> {
    let built_in = ALGORITHMS.iter().copied().find(|a| a.name() == name);
    built_in.or_else(|| {
        let loaded = LOADED.read().unwrap_or_else(PoisonError::into_inner);
        loaded.iter().rev().copied().find(|a| a.name() == name)
    })
}

/// The algorithm that was loaded from such a source.
#[cfg(can_load)]
pub(crate) fn loaded(is_meant: impl Fn(&Source) -> bool) -> Option<Algorithm> {
    let loaded = LOADED.read().unwrap_or_else(PoisonError::into_inner);
    loaded.iter().copied().find(|a| a.source().is_some_and(&is_meant))
}

#[cfg(can_load)]
pub(crate) fn add(algorithm: Algorithm) {
    LOADED.write().unwrap_or_else(PoisonError::into_inner).push(algorithm);
}

fn text(pointer: *const c_char) -> &'static str {
    // SAFETY: the C tables hold string literals only.
    unsafe { CStr::from_ptr(pointer) }.to_str().expect("tables are ASCII")
}

fn number(value: u64) -> u32 {
    u32::try_from(value).expect("tables hold 32-bit values")
}

impl Algorithm {
    /// Name, as in `cc = "chd"`.
    pub fn name(&self) -> &'static str {
        text(self.raw.name)
    }

    /// Returns a summary of one line.
    pub fn summary(&self) -> &'static str {
        text(self.raw.summary)
    }

    /// The paper or RFC it comes from.
    pub fn citation(&self) -> &'static str {
        text(self.raw.citation)
    }

    /// Names of the values that [`crate::Controller::observe`] gives; unused ones are empty.
    pub fn observes(&self) -> [&'static str; crate::OBSERVE_N] {
        let mut names = text(self.raw.observes).split('|');
        std::array::from_fn(|_| names.next().unwrap_or(""))
    }

    /// Bytes of state per connection.
    pub fn state_bytes(&self) -> usize {
        self.raw.state_bytes as usize
    }

    /// Returns whether it wants random bits with each ACK.
    pub fn uses_random(&self) -> bool {
        self.raw.uses_random != 0
    }

    /// Returns the owner of its window.
    pub fn profile(&self) -> Profile {
        if self.raw.profile == 0 { Profile::Classic } else { Profile::Rate }
    }

    /// The C file that it was loaded from, if it was.
    #[inline]
    pub fn source(&self) -> Option<&'static Source> {
        match self.own {
            Some(Own::File(source)) => Some(source),
            _ => None,
        }
    }

    /// Its C descriptor, a `struct cc_algorithm` of cc/host/native/knee/host.h.
    pub fn descriptor(&self) -> *const std::ffi::c_void {
        std::ptr::from_ref(self.raw).cast()
    }

    /// Returns whether it is built in.
    #[inline]
    pub fn is_built_in(&self) -> bool {
        self.own.is_none()
    }

    /// The construct in this program that defines it, if this program does: no other process can run it.
    pub fn defined_here(&self) -> Option<&'static str> {
        match self.own {
            #[cfg(can_load)]
            Some(Own::Here(here)) => Some(&here.origin),
            _ => None,
        }
    }

    /// Returns whether its functions keep their state elsewhere than in [`crate::State`], which is then of
    /// no use to go back to.
    pub fn keeps_its_own_state(&self) -> bool {
        match self.own {
            #[cfg(can_load)]
            Some(Own::Here(here)) => here.callee.is_some(),
            _ => false,
        }
    }

    /// Its parameter table.
    pub fn params(&self) -> Vec<Param> {
        // SAFETY: the C descriptor gives the table's length.
        unsafe { slice::from_raw_parts(self.raw.params, self.raw.n_params as usize) }
            .iter()
            .map(Param::from_raw)
            .collect()
    }

    /// Its cross-field rules.
    pub fn rules(&self) -> Vec<Rule> {
        let params = self.params();
        let at = |index: u32| params[index as usize];
        // SAFETY: the C descriptor gives the table's length.
        unsafe { slice::from_raw_parts(self.raw.rules, self.raw.n_rules as usize) }
            .iter()
            .map(|r| Rule {
                left: at(r.left),
                op: if r.op == 0 { RuleOp::LessThan } else { RuleOp::ZeroOrMoreThan },
                right: at(r.right),
            })
            .collect()
    }
}

impl fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.own {
            None => write!(f, "Algorithm({})", self.name()),
            // Keys of kept runs hold this: an edited file is another algorithm.
            Some(own) => write!(f, "Algorithm({}, {own:?})", self.name()),
        }
    }
}

impl PartialEq for Algorithm {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.raw, other.raw)
    }
}

impl Eq for Algorithm {}

impl Param {
    /// One that is there to read values with.
    #[cfg(can_load)]
    pub(crate) fn unbounded(kind: ParamKind, choices: &'static str) -> Self {
        let (name, source, help) = ("value", "", "");
        Self {
            name,
            alias: None,
            kind,
            min: 0,
            max: u32::MAX,
            default: 0,
            choices,
            source,
            help,
            index: 0,
        }
    }

    fn from_raw(raw: &ffi::Param) -> Self {
        let alias = text(raw.alias);
        let name = text(raw.name);
        Self {
            name,
            alias: (!alias.is_empty() && alias != name).then_some(alias),
            kind: ParamKind::ALL[raw.kind as usize].0,
            min: number(raw.min),
            max: number(raw.max),
            default: number(raw.def),
            choices: text(raw.choices),
            source: text(raw.source),
            help: text(raw.help),
            index: raw.index as usize,
        }
    }

    /// Names that a [`ParamKind::Choice`] takes, in order of their raw values; else empty.
    pub fn choices(&self) -> Vec<&'static str> {
        self.choices.split('|').filter(|c| !c.is_empty()).collect()
    }

    /// Unit of a typed value: `"time"`, `"packets"`, `"probability"`, `"number"`, `"count"`, or
    /// `"choice"`.
    pub fn unit(&self) -> &'static str {
        ParamKind::ALL[self.kind as usize].1
    }

    /// A raw value as a person would type it: `"30ms"`, `"8p"`, `"0.25"`, `"3"`, `"one_round"`.
    pub fn show(&self, raw: u32) -> String {
        match self.kind {
            ParamKind::TimeUs if raw != 0 && raw.is_multiple_of(1_000_000) => {
                format!("{}s", raw / 1_000_000)
            }
            ParamKind::TimeUs if raw.is_multiple_of(1000) => format!("{}ms", raw / 1000),
            ParamKind::TimeUs => format!("{raw}us"),
            ParamKind::Packets => format!("{raw}p"),
            ParamKind::ProbabilityPpm | ParamKind::NumberPpm => format!("{}", f64::from(raw) / 1e6),
            ParamKind::Count => raw.to_string(),
            ParamKind::Choice => self
                .choices()
                .get(raw as usize)
                .map_or_else(|| raw.to_string(), |c| (*c).to_owned()),
        }
    }
}
