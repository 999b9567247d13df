//! Places of values, the file or an argument of `--set`: errors show them.

use super::error::{Fault, On, ScenarioError, dotted, elements};
use super::set::Set;
use std::ops::Range;
use toml_edit::{Document, TableLike};

/// Places of values.
pub(super) struct Sources<'a> {
    pub(super) name: &'a str,
    pub(super) file: &'a Document<&'a str>,
    pub(super) sets: &'a [Set],
}

impl Sources<'_> {
    pub(super) fn locate(&self, fault: Fault) -> ScenarioError {
        let (set, span) = self.place(&fault.at, fault.on);
        let (name, text) = match set {
            Some(set) => set.written(),
            None => (self.name, self.file.raw()),
        };
        let mut error =
            ScenarioError::at(fault.what, fault.remedy, name, text, span).about(dotted(&fault.at));
        for (path, role) in fault.also {
            let (its_set, span) = self.place(&path, On::Value);
            if its_set.map(Set::argument) == set.map(Set::argument) {
                error.also(role, text, span);
            }
        }
        error
    }

    /// The `--set` argument (none: the file) and the span in it from which `path` comes.
    fn place(&self, path: &[String], on: On) -> (Option<&Set>, Range<usize>) {
        let last_set = |related: &dyn Fn(&Set) -> bool| self.sets.iter().rfind(|s| related(s));
        if let Some(set) = last_set(&|s| path.starts_with(s.path())) {
            return (Some(set), set.span(if set.path() == path { on } else { On::Value }));
        }
        if let Some(span) = find(self.file.as_table(), path, on) {
            return (None, span);
        }
        if let Some(set) = last_set(&|s| s.path().starts_with(path)) {
            return (Some(set), set.span(On::Key));
        }
        match path.split_last() {
            // A missing key is shown at the table that lacks it.
            Some((_, parent)) => self.place(parent, On::Key),
            None => (None, 0..0),
        }
    }
}

/// Span of the item at `path`: a value, or a key or table header.
fn find(table: &dyn TableLike, path: &[String], on: On) -> Option<Range<usize>> {
    let (step, rest) = path.split_first()?;
    let key_span = || table.key(step).and_then(|k| k.span());
    let item = table.get(step)?;
    let Some((index, deeper)) = rest.split_first() else {
        let is_value = item.is_value() && !item.is_inline_table();
        return if on == On::Value && is_value { item.span() } else { key_span() };
    };
    if let Some(table) = item.as_table_like() {
        return find(table, rest, on);
    }
    let element = elements(item)?.into_iter().nth(index.parse().ok()?)?;
    if deeper.is_empty() { element.1 } else { find(element.0, deeper, on) }
}
