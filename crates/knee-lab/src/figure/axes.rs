//! Axes that vary between runs, the values of each, and their combinations.

use knee_model::Host;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Something that varies between runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Name in claims and plots.
    pub name: String,
    /// Path of the key that plain values set.
    pub set: Option<String>,
    /// Values; the first is meant where none is named.
    pub values: Vec<AxisValue>,
    /// Names of those that are run on Linux's TCP; all, if not given.
    pub linux: Option<Vec<toml::Value>>,
    /// Names of those that are run over QUIC; all, if not given.
    pub quic: Option<Vec<toml::Value>>,
    /// Names of those that are run in the short form; all, if not given.
    pub short: Option<Vec<toml::Value>>,
}

/// A value of an axis.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum AxisValue {
    /// Several keys at once, under a name.
    Named {
        /// Name.
        name: String,
        /// Values by path of their keys.
        set: BTreeMap<String, toml::Value>,
    },
    /// A value of the axis' own key; named as it is written.
    Plain(toml::Value),
}

/// Values of axes: their names, and their settings, as after `--set`.
pub(crate) type Combination = (Vec<String>, Vec<String>);

impl AxisValue {
    /// Name in claims, plots and legends.
    pub fn name(&self) -> String {
        match self {
            Self::Named { name, .. } => name.clone(),
            Self::Plain(value) => plain_name(value),
        }
    }

    /// Its number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Plain(toml::Value::Integer(n)) => Some(*n as f64),
            Self::Plain(toml::Value::Float(x)) => Some(*x),
            _ => None,
        }
    }
}

/// A value as a name: a string without quotes, a number as Rust prints it.
pub fn plain_name(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Float(x) => x.to_string(),
        other => other.to_string(),
    }
}

/// The part of a description that is run.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub host: &'a dyn Host,
    pub short: bool,
    /// Also the values that are left out on this host.
    pub all_values: bool,
}

impl Part<'_> {
    /// `axes` with the values that are run.
    pub(crate) fn of_axes(self, axes: &[Axis]) -> Vec<Axis> {
        let mut axes = axes.to_vec();
        for axis in &mut axes {
            let of_host = match self.host.name() {
                "kernel" | "vm" => &axis.linux,
                "quic" => &axis.quic,
                _ => &None,
            };
            let lists = [(!self.all_values, of_host), (self.short, &axis.short)];
            for names in lists.into_iter().filter_map(|(applies, l)| l.as_ref().filter(|_| applies))
            {
                let names: Vec<String> = names.iter().map(plain_name).collect();
                axis.values.retain(|value| names.contains(&value.name()));
            }
        }
        axes
    }
}

/// Values by the paths of their keys, as after `--set`.
pub(crate) fn written(set: &BTreeMap<String, toml::Value>) -> impl Iterator<Item = String> {
    set.iter().map(|(path, value)| format!("{path}={value}"))
}

/// Combinations of the values of `axes`, which set their keys after `set`.
pub(crate) fn combinations(set: &BTreeMap<String, toml::Value>, axes: &[Axis]) -> Vec<Combination> {
    axes.iter().fold(vec![(Vec::new(), written(set).collect())], |all, axis| {
        let extend = |(names, sets): &Combination, value: &AxisValue| {
            let own: Vec<String> = match value {
                AxisValue::Named { set, .. } => written(set).collect(),
                AxisValue::Plain(value) => {
                    axis.set.iter().map(|path| format!("{path}={value}")).collect()
                }
            };
            ([&names[..], &[value.name()]].concat(), [&sets[..], &own].concat())
        };
        all.iter().flat_map(|c| axis.values.iter().map(move |v| extend(c, v))).collect()
    })
}
