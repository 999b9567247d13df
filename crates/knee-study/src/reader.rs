//! Reads the TOML of a study, and says where a mistake is.

use knee_scenario::{Place, ScenarioError, known, type_name};
use std::{ops::Range, sync::Arc};
use toml_edit::{Item, TableLike};

/// The file.
pub(crate) struct Reader<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a Arc<str>,
}

/// A table of the file.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    pub(crate) reader: &'a Reader<'a>,
    pub(crate) table: &'a dyn TableLike,
    /// Its own place.
    span: (usize, usize),
}

pub(crate) type Read<T> = Result<T, ScenarioError>;

impl<'a> Reader<'a> {
    pub(crate) fn error(&self, span: Range<usize>, what: String, remedy: String) -> ScenarioError {
        ScenarioError::at(what, remedy, self.name, self.text, span)
    }

    pub(crate) fn table(
        &'a self,
        table: &'a dyn TableLike,
        span: Option<Range<usize>>,
    ) -> Table<'a> {
        let span = span.unwrap_or(0..0);
        Table { reader: self, table, span: (span.start, span.end) }
    }
}

impl<'a> Table<'a> {
    pub(crate) fn key_span(&self, key: &str) -> Range<usize> {
        self.table.key(key).and_then(|k| k.span()).unwrap_or(self.span.0..self.span.1)
    }

    pub(crate) fn value_span(&self, key: &str) -> Range<usize> {
        let value = self.table.get(key).and_then(Item::span);
        value.unwrap_or_else(|| self.key_span(key))
    }

    pub(crate) fn place(&self, key: &str) -> Arc<Place> {
        Arc::new(Place {
            name: self.reader.name.to_owned(),
            text: Arc::clone(self.reader.text),
            key: self.key_span(key),
            value: self.value_span(key),
        })
    }

    /// An error at the value of `key`.
    pub(crate) fn fault(
        &self,
        key: &str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> ScenarioError {
        let span = self.value_span(key);
        self.reader.error(span, what.into(), remedy.into()).about(key.to_owned())
    }

    pub(crate) fn only(&self, keys: &[&str]) -> Read<()> {
        match self.table.iter().find(|(key, _)| !keys.contains(key)) {
            None => Ok(()),
            Some((key, _)) => {
                let what = format!("{key}: no such key");
                let remedy = known(key, "keys here", keys);
                Err(self.reader.error(self.key_span(key), what, remedy))
            }
        }
    }

    /// The value of `key`, if `convert` accepts it.
    pub(crate) fn value<T>(
        &self,
        key: &str,
        expected: &str,
        convert: impl FnOnce(&'a Item) -> Option<T>,
    ) -> Read<Option<T>> {
        let Some(item) = self.table.get(key) else { return Ok(None) };
        convert(item).map(Some).ok_or_else(|| {
            let what = format!("{key} is {}", type_name(item));
            self.fault(key, what, format!("it must be {expected}"))
        })
    }

    pub(crate) fn text(&self, key: &str) -> Read<Option<&'a str>> {
        self.value(key, "text in quotes", Item::as_str)
    }

    pub(crate) fn integer(&self, key: &str, least: i64, most: i64) -> Read<Option<i64>> {
        let expected = format!("an integer from {least} to {most}");
        let Some(given) = self.value(key, &expected, Item::as_integer)? else { return Ok(None) };
        match (least..=most).contains(&given) {
            true => Ok(Some(given)),
            false => {
                let what = format!("{key} = {given} is out of range");
                Err(self.fault(key, what, format!("write {expected}")))
            }
        }
    }

    pub(crate) fn table(&self, key: &str) -> Read<Option<Table<'a>>> {
        let span = self.key_span(key);
        let table = self.value(key, "a table", Item::as_table_like)?;
        Ok(table.map(|table| Table { table, span: (span.start, span.end), ..*self }))
    }

    /// A list of words, each one of `all`.
    pub(crate) fn words(&self, key: &str, all: &[&str], what: &str) -> Read<Option<Vec<String>>> {
        let expected = format!("a list of text, such as [\"{}\"]", all[0]);
        let list = self.value(key, &expected, Item::as_array)?;
        let Some(list) = list else { return Ok(None) };
        let mut words: Vec<String> = Vec::new();
        for value in list {
            let span = || value.span().unwrap_or_else(|| self.value_span(key));
            let Some(word) = value.as_str() else {
                let what = format!("{key}: {value} is not text");
                return Err(self.reader.error(span(), what, format!("it must be {expected}")));
            };
            if !all.contains(&word) {
                let what = format!("{key}: no {what} is called `{word}`");
                return Err(self.reader.error(span(), what, known(word, "there are", all)));
            }
            if !words.iter().any(|w| w == word) {
                words.push(word.to_owned());
            }
        }
        Ok(Some(words))
    }
}
