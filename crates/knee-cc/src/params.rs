//! Validated parameter sets.

use crate::registry::{Algorithm, Param, ParamKind, Rule, RuleOp};
use knee_units::{NS_PER_US, PACKETS, TIME, UnitError, clip, parse_ppm};
use std::sync::Arc;
use thiserror::Error;

/// A complete, valid set of parameters of one algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    algorithm: Algorithm,
    /// One word per parameter, in the order of the C structure.
    words: Arc<[u32]>,
}

/// The reason why a parameter set is refused. Each message says what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParamError {
    /// No such parameter.
    #[error("{algorithm} has no parameter `{name}`; it has: {known}")]
    Unknown {
        /// Algorithm asked.
        algorithm: &'static str,
        /// Name that was given.
        name: String,
        /// Names that exist.
        known: String,
    },
    /// Value outside its range.
    #[error("{name} = {given} is out of range: {min} to {max}")]
    Range {
        /// Parameter.
        name: &'static str,
        /// Value as typed.
        given: String,
        /// Smallest value.
        min: String,
        /// Largest value.
        max: String,
    },
    /// Not one of a choice's names.
    #[error("{name} = {given:?} is not one of: {choices}")]
    Choice {
        /// Parameter.
        name: &'static str,
        /// Value as typed.
        given: String,
        /// Names that exist.
        choices: String,
    },
    /// Not a value of the parameter's unit.
    #[error("{name}: {what}; {remedy}")]
    Value {
        /// Parameter.
        name: &'static str,
        /// The fault.
        what: String,
        /// A correct way to write it.
        remedy: String,
    },
    /// Two parameters contradict each other.
    #[error("{left} = {left_value} must be {relation} {right} = {right_value}")]
    Rule {
        /// Left parameter.
        left: &'static str,
        /// Its value.
        left_value: String,
        /// The rule in words.
        relation: &'static str,
        /// Right parameter.
        right: &'static str,
        /// Its value.
        right_value: String,
    },
}

impl ParamError {
    /// The parameter at fault (of a rule, the left one).
    pub fn param(&self) -> &str {
        match self {
            Self::Unknown { name, .. } => name,
            Self::Range { name, .. } | Self::Choice { name, .. } | Self::Value { name, .. } => name,
            Self::Rule { left, .. } => left,
        }
    }
}

impl Params {
    /// The defaults of `algorithm`.
    pub fn defaults(algorithm: Algorithm) -> Self {
        let words = algorithm.params().iter().map(|p| p.default).collect();
        Self { algorithm, words }
    }

    /// Defaults with `given` (raw values by name or FreeBSD name) put in their place.
    ///
    /// # Errors
    /// Unknown name, value out of range, or a cross-field rule broken.
    pub fn new<'a>(
        algorithm: Algorithm,
        given: impl IntoIterator<Item = (&'a str, u64)>,
    ) -> Result<Self, ParamError> {
        Self::defaults(algorithm).with(given)
    }

    /// These with `given` (raw values by name or FreeBSD name) put in their place. Cross-field
    /// rules are checked after the last.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with<'a>(
        self,
        given: impl IntoIterator<Item = (&'a str, u64)>,
    ) -> Result<Self, ParamError> {
        let algorithm = self.algorithm;
        let mut words = self.words.to_vec();
        for (name, value) in given {
            let param = Self::find(algorithm, name)?;
            words[param.index] = u32::try_from(value)
                .ok()
                .filter(|v| (param.min..=param.max).contains(v))
                .ok_or_else(|| ParamError::Range {
                    name: param.name,
                    given: u32::try_from(value)
                        .map_or_else(|_| value.to_string(), |raw| param.show(raw)),
                    min: param.show(param.min),
                    max: param.show(param.max),
                })?;
        }
        for rule in algorithm.rules() {
            rule.check(&words)?;
        }
        Ok(Self { algorithm, words: words.into() })
    }

    /// These with `given` put in their place, as [`Self::with`], each value as a person writes it
    /// ([`Param::parse`]).
    ///
    /// # Errors
    /// As [`Self::new`]; a value that is not of its parameter's unit.
    pub fn with_written<'a>(
        self,
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ParamError> {
        let raw: Vec<_> = given
            .into_iter()
            .map(|(name, text)| {
                let param = Self::find(self.algorithm, name)?;
                Ok((param.name, param.parse(text)?))
            })
            .collect::<Result<_, ParamError>>()?;
        self.with(raw)
    }

    /// The parameter called `name`, by Knee's name or FreeBSD's.
    ///
    /// # Errors
    /// [`ParamError::Unknown`].
    pub fn find(algorithm: Algorithm, name: &str) -> Result<Param, ParamError> {
        let table = algorithm.params();
        table.iter().copied().find(|p| p.name == name || p.alias == Some(name)).ok_or_else(|| {
            ParamError::Unknown {
                algorithm: algorithm.name(),
                name: name.to_owned(),
                known: table.iter().map(|p| p.name).collect::<Vec<_>>().join(", "),
            }
        })
    }

    /// The algorithm that these belong to.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Raw words in the order of the C structure (what a BPF loader writes).
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Name and value of each parameter, as a person would type it.
    pub fn shown(&self) -> Vec<(&'static str, String)> {
        let show = |p: &Param| (p.name, p.show(self.words[p.index]));
        self.algorithm.params().iter().map(show).collect()
    }
}

impl Param {
    /// Raw value of `"20ms"`, `"8p"` (or `"8"`), `"0.25"`, `"3"` or a choice's name (of `off|on` also
    /// `"false"`, `"true"`), by the parameter's kind. It may still be out of range.
    ///
    /// # Errors
    /// [`ParamError::Value`], [`ParamError::Choice`].
    pub fn parse(&self, text: &str) -> Result<u64, ParamError> {
        let refuse = |e: UnitError| self.refuse(e.to_string(), e.remedy);
        let text = text.trim();
        match self.kind {
            ParamKind::TimeUs => {
                let ns = TIME.parse(text).map_err(refuse)?;
                if !ns.is_multiple_of(NS_PER_US) {
                    let what = format!("`{}` is finer than a microsecond", clip(text));
                    return Err(self.refuse(what, "round it to whole microseconds".to_owned()));
                }
                Ok(ns / NS_PER_US)
            }
            // A bare integer cannot be misread.
            ParamKind::Packets => match text.parse::<u64>() {
                Ok(pkts) => Ok(pkts),
                Err(_) => PACKETS.parse(text).map_err(refuse),
            },
            ParamKind::ProbabilityPpm | ParamKind::NumberPpm => parse_ppm(text).map_err(refuse),
            ParamKind::Count => text.parse().map_err(|_| {
                let what = format!("`{}` is not a whole number", clip(text));
                self.refuse(what, format!("write one such as {}", self.show(self.default)))
            }),
            ParamKind::Choice => match (text, self.choices().as_slice()) {
                ("false", ["off", "on"]) => Ok(0),
                ("true", ["off", "on"]) => Ok(1),
                _ => self.choice(text),
            },
        }
    }

    fn refuse(&self, what: String, remedy: String) -> ParamError {
        ParamError::Value { name: self.name, what, remedy }
    }

    /// Raw value of a choice's name.
    ///
    /// # Errors
    /// [`ParamError::Choice`] with the names that exist.
    pub fn choice(&self, name: &str) -> Result<u64, ParamError> {
        debug_assert_eq!(self.kind, ParamKind::Choice);
        self.choices().iter().position(|c| *c == name).map(|i| i as u64).ok_or_else(|| {
            ParamError::Choice {
                name: self.name,
                given: name.to_owned(),
                choices: self.choices().join(", "),
            }
        })
    }
}

impl Rule {
    fn check(&self, words: &[u32]) -> Result<(), ParamError> {
        let (left, right) = (words[self.left.index], words[self.right.index]);
        let (holds, relation) = match self.op {
            RuleOp::LessThan => (left < right, "less than"),
            RuleOp::ZeroOrMoreThan => (left == 0 || left > right, "0 or more than"),
        };
        if holds {
            return Ok(());
        }
        Err(ParamError::Rule {
            left: self.left.name,
            left_value: self.left.show(left),
            relation,
            right: self.right.name,
            right_value: self.right.show(right),
        })
    }
}
