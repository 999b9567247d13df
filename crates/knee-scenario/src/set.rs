//! `--set path=value`.

use super::error::{Fault, KeyPath, On, ScenarioError, dotted};
use knee_cc::is_file;
use std::{ops::Range, path::absolute, sync::Arc};
use toml_edit::{DocumentMut, InlineTable, Item, TableLike, Value};

/// One value that replaces a value of the file, or is added to it: `path.rate=5mbit`,
/// `flow.0.params.qth=20ms`. Indices count the `[[flow]]` tables from 0, as they are written.
#[derive(Clone, Debug)]
pub struct Set {
    argument: String,
    path: KeyPath,
    value: Value,
    /// Byte of `argument` at which the value starts.
    value_at: usize,
    /// Its place, if it is not an argument.
    place: Option<Arc<Place>>,
}

/// Place of a value that a program puts over a scenario: errors show it.
#[derive(Clone, Debug)]
pub struct Place {
    /// Name of the file.
    pub name: String,
    /// All of its text.
    pub text: Arc<str>,
    /// Bytes of the key.
    pub key: Range<usize>,
    /// Bytes of the value.
    pub value: Range<usize>,
}

impl Set {
    /// From an argument as typed. A value that is a TOML number, boolean, quoted string, list or
    /// inline table is that; anything else is a string, without quotes. A C file of an algorithm
    /// is relative to the present folder.
    ///
    /// # Errors
    /// No `=`.
    pub fn parse(argument: &str) -> Result<Self, ScenarioError> {
        let Some((path, typed)) = argument.split_once('=') else {
            return Err(ScenarioError::at(
                "no `=` in this argument".to_owned(),
                "write --set path=value, such as --set path.rate=5mbit".to_owned(),
                "--set",
                argument,
                0..argument.len(),
            ));
        };
        let value_at = path.len() + 1 + (typed.len() - typed.trim_start().len());
        let typed = typed.trim();
        let value = match typed.parse::<Value>() {
            Ok(value) if !value.is_datetime() => value,
            _ => Value::from(typed),
        };
        let path = steps(path);
        // Files in arguments are relative to the present folder, not to the scenario's.
        let file = value.as_str().filter(|v| path.last().is_some_and(|k| k == "cc") && is_file(v));
        let file = file.and_then(|file| absolute(file).ok()).map(|f| f.display().to_string());
        let value = file.map_or(value, Value::from);
        Ok(Self { argument: argument.to_owned(), path, value, value_at, place: None })
    }

    /// A value from a program.
    pub fn new(path: &str, value: impl Into<Value>) -> Self {
        let mut value = value.into();
        value.decor_mut().clear();
        let argument = format!("{path}={value}");
        Self { argument, path: steps(path), value, value_at: path.len() + 1, place: None }
    }

    /// The value, with the place where it was written.
    pub fn written_at(self, place: Arc<Place>) -> Self {
        Self { place: Some(place), ..self }
    }

    /// The argument of `--set` for it.
    pub fn argument(&self) -> &str {
        &self.argument
    }

    /// The keys that lead to the value.
    pub fn path(&self) -> &[String] {
        &self.path
    }

    /// Puts the value into `document`, whether or not that makes a scenario.
    ///
    /// # Errors
    /// The path leads nowhere.
    pub fn put_into(&self, document: &mut DocumentMut) -> Result<(), ScenarioError> {
        self.apply(document).map_err(|fault| {
            let (name, text) = self.written();
            ScenarioError::at(fault.what, fault.remedy, name, text, self.span(fault.on))
        })
    }

    /// Name and text of its source.
    pub(super) fn written(&self) -> (&str, &str) {
        match &self.place {
            Some(place) => (&place.name, &place.text),
            None => ("--set", &self.argument),
        }
    }

    pub(super) fn span(&self, on: On) -> Range<usize> {
        if let Some(place) = &self.place {
            return if on == On::Key { place.key.clone() } else { place.value.clone() };
        }
        match on {
            On::Key => 0..self.argument.find('=').unwrap_or(0),
            On::Value => self.value_at..self.argument.trim_end().len().max(self.value_at),
        }
    }

    /// Puts the value in. Whether its key means anything is left to the reader of the result.
    pub(super) fn apply(&self, document: &mut DocumentMut) -> Result<(), Fault> {
        let mut table: &mut dyn TableLike = document.as_table_mut();
        let mut at = 0;
        while at + 1 < self.path.len() {
            let step = self.step(at)?;
            let item = table
                .entry(step)
                .or_insert_with(|| Item::Value(Value::InlineTable(InlineTable::new())));
            at += 1;
            table = match item {
                Item::ArrayOfTables(list) => {
                    let n = list.len();
                    at += 1;
                    list.get_mut(self.index(at - 1, n)?)
                        .ok_or_else(|| self.no_element(at - 1, n))?
                }
                Item::Value(Value::Array(list)) => {
                    let n = list.len();
                    at += 1;
                    list.get_mut(self.index(at - 1, n)?)
                        .and_then(Value::as_inline_table_mut)
                        .ok_or_else(|| self.no_element(at - 1, n))?
                }
                item => item.as_table_like_mut().ok_or_else(|| {
                    self.fault(
                        format!("{} is a single value", dotted(&self.path[..at])),
                        format!("write --set {}=value", dotted(&self.path[..at])),
                    )
                })?,
            };
        }
        if at == self.path.len() {
            let path = dotted(&self.path);
            return Err(self.fault(
                format!("{path} is a whole table"),
                format!("set one key of it, such as --set {path}.count=2"),
            ));
        }
        let key = self.step(at)?;
        let mut value = self.value.clone();
        if let Some(old) = table.get(key).and_then(Item::as_value) {
            *value.decor_mut() = old.decor().clone();
        }
        table.insert(key, Item::Value(value));
        Ok(())
    }

    fn step(&self, at: usize) -> Result<&str, Fault> {
        Some(self.path[at].as_str()).filter(|s| !s.is_empty()).ok_or_else(|| {
            self.fault(
                "this path has an empty part".to_owned(),
                "write --set path=value, such as --set path.rate=5mbit".to_owned(),
            )
        })
    }

    fn index(&self, at: usize, n: usize) -> Result<usize, Fault> {
        self.path[at].parse().map_err(|_| self.no_element(at, n))
    }

    fn no_element(&self, at: usize, n: usize) -> Fault {
        let list = dotted(&self.path[..at]);
        let (count, range) = match n {
            0 => (format!("no {list} tables"), "add one to the file first".to_owned()),
            1 => (format!("one {list} table"), format!("its path is {list}.0")),
            _ => (format!("{n} {list} tables"), format!("write {list}.0 to {list}.{}", n - 1)),
        };
        self.fault(
            format!("there is no {}: the scenario has {count}", dotted(&self.path[..=at])),
            range,
        )
    }

    fn fault(&self, what: String, remedy: String) -> Fault {
        Fault { at: self.path.clone(), on: On::Key, what, remedy, also: Vec::new() }
    }
}

fn steps(path: &str) -> KeyPath {
    path.trim().split('.').map(|step| step.trim().to_owned()).collect()
}
