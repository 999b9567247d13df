//! Errors: the error, its key, and the remedy.

use crate::units::clip;
use miette::{Diagnostic, LabeledSpan, NamedSource};
use std::{ops::Range, sync::Arc};
use thiserror::Error;
use toml_edit::{Item, TableLike};

/// The reason why a scenario is refused: the error, its place (file or `--set` argument, line, key), and
/// the remedy.
#[derive(Debug, Error, Diagnostic)]
#[error("{what}")]
pub struct ScenarioError {
    what: String,
    #[help]
    remedy: String,
    /// File or `--set`, and line.
    place: Option<Box<(String, usize)>>,
    key: Option<String>,
    #[source_code]
    source_code: Option<Arc<NamedSource<String>>>,
    #[label(collection)]
    labels: Vec<LabeledSpan>,
}

impl ScenarioError {
    /// An error of a whole file.
    pub fn of_file(what: String, remedy: &str) -> Self {
        let remedy = remedy.to_owned();
        Self { what, remedy, place: None, key: None, source_code: None, labels: Vec::new() }
    }

    /// An error at `span`, bytes of `text`, which is called `name`.
    pub fn at(what: String, remedy: String, name: &str, text: &str, span: Range<usize>) -> Self {
        let line = text.get(..span.start).map_or(1, |before| before.matches('\n').count() + 1);
        let place = Some(Box::new((name.to_owned(), line)));
        let source_code = Arc::new(NamedSource::new(name, text.to_owned()));
        let labels = vec![LabeledSpan::new_with_span(None, first_line(text, span))];
        Self { what, remedy, place, key: None, source_code: Some(source_code), labels }
    }

    /// The remedy.
    pub fn remedy(&self) -> &str {
        &self.remedy
    }

    /// Its place: file (or `--set`) and line, counted from 1.
    pub fn place(&self) -> Option<(&str, usize)> {
        self.place.as_deref().map(|(name, line)| (name.as_str(), *line))
    }

    /// The key that it is about, as `flow.0.params.qth`.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The error, with the key that it is about.
    pub fn about(self, key: String) -> Self {
        Self { key: Some(key), ..self }
    }

    /// Underlines `span` of the same `text` too, labelled with `label`.
    pub(super) fn also(&mut self, label: String, text: &str, span: Range<usize>) {
        self.labels.push(LabeledSpan::new_with_span(Some(label), first_line(text, span)));
    }
}

/// Keys and list indices from the top of the file, as `--set` has them.
pub(super) type KeyPath = Vec<String>;

/// `flow.0.params.qth`.
pub(super) fn dotted(path: &[String]) -> String {
    path.iter().map(|step| clip(step)).collect::<Vec<_>>().join(".")
}

/// The part to underline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum On {
    Key,
    Value,
}

/// An error before it is known where its key was written.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) at: KeyPath,
    pub(super) on: On,
    pub(super) what: String,
    pub(super) remedy: String,
    /// Another key that takes part, and its role.
    pub(super) also: Vec<(KeyPath, String)>,
}

/// An element of a list of tables, and its span.
type Element<'a> = (&'a dyn TableLike, Option<Range<usize>>);

/// The tables of a list: `[[flow]]` or `flow = [{ ... }]`.
pub(super) fn elements(item: &Item) -> Option<Vec<Element<'_>>> {
    match item {
        Item::ArrayOfTables(list) => {
            Some(list.iter().map(|t| (t as &dyn TableLike, t.span())).collect())
        }
        Item::Value(toml_edit::Value::Array(list)) => list
            .iter()
            .map(|v| v.as_inline_table().map(|t| (t as &dyn TableLike, t.span())))
            .collect(),
        _ => None,
    }
}

/// Table `index` of a list, as in [`elements`].
pub(super) fn element_mut(item: &mut Item, index: usize) -> Option<&mut dyn TableLike> {
    match item {
        Item::ArrayOfTables(list) => list.get_mut(index).map(|table| table as &mut dyn TableLike),
        Item::Value(toml_edit::Value::Array(list)) => {
            let table = list.get_mut(index)?.as_inline_table_mut()?;
            Some(table as &mut dyn TableLike)
        }
        _ => None,
    }
}

/// `span` cut at the end of its first line, so that an error stays on one screen.
fn first_line(text: &str, span: Range<usize>) -> Range<usize> {
    let line = text.get(span.clone()).and_then(|s| s.lines().next()).unwrap_or("");
    span.start..span.start + line.len()
}

/// The candidate that `word` was probably meant to be.
pub fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let score = |candidate: &str| match strsim::damerau_levenshtein(word, candidate) {
        0 | 1 => 1.0,
        _ => strsim::jaro_winkler(word, candidate),
    };
    // The first of equally good ones.
    let best = candidates.iter().rev().copied().max_by(|a, b| score(a).total_cmp(&score(b)))?;
    (score(best) > 0.8).then_some(best)
}

/// "did you mean ...? " and the list of valid words.
pub fn known(word: &str, what: &str, candidates: &[&str]) -> String {
    let list = candidates.join(", ");
    match nearest(word, candidates) {
        Some(near) => format!("did you mean `{near}`? {what}: {list}"),
        None => format!("{what}: {list}"),
    }
}
