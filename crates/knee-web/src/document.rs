//! A scenario's text as the page's controls see and change it.

use crate::Refusal;
use knee_scenario::{Scenario, Set};
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use toml_edit::{ArrayOfTables, DocumentMut, Item, TableLike, Value};

/// A change to a scenario's text.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub(crate) enum Edit {
    /// Puts a value in, as `--set` does.
    Set { path: String, value: String },
    /// Takes a key away, if it is there.
    Unset { path: String },
    /// Adds a flow, the TOML of its table.
    AddFlow { toml: String },
    /// Takes a flow away.
    RemoveFlow { index: usize },
}

/// `text` with the edits in place. Whether the result is a scenario is not looked at.
pub(crate) fn edited(text: &str, edits: &[Edit]) -> Result<String, Refusal> {
    let mut document = parse(text)?;
    for edit in edits {
        apply(&mut document, edit)?;
    }
    Ok(document.to_string())
}

fn apply(document: &mut DocumentMut, edit: &Edit) -> Result<(), Refusal> {
    match edit {
        Edit::Set { path, value } => {
            Set::parse(&format!("{path}={value}"))?.put_into(document)?;
        }
        Edit::Unset { path } => {
            unset(document.as_table_mut(), &path.split('.').collect::<Vec<_>>())
        }
        Edit::AddFlow { toml } => {
            let table = parse(toml)?.as_table().clone();
            flows(document)?.push(table);
        }
        Edit::RemoveFlow { index } => {
            let flows = flows(document)?;
            if *index < flows.len() {
                flows.remove(*index);
            }
        }
    }
    Ok(())
}

fn parse(text: &str) -> Result<DocumentMut, Refusal> {
    text.parse::<DocumentMut>().map_err(|error| Refusal::new(error.message(), "correct the TOML"))
}

fn flows(document: &mut DocumentMut) -> Result<&mut ArrayOfTables, Refusal> {
    let item = document.entry("flow").or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    item.as_array_of_tables_mut().ok_or_else(|| {
        Refusal::new("`flow` is not a list of [[flow]] tables", "write each flow as [[flow]]")
    })
}

fn unset(table: &mut dyn TableLike, path: &[&str]) {
    let Some((step, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        table.remove(step);
        return;
    }
    match table.get_mut(step) {
        Some(Item::ArrayOfTables(list)) => {
            let Some((index, rest)) = rest.split_first() else { return };
            let index = index.parse::<usize>().ok();
            if let Some(table) = index.and_then(|index| list.get_mut(index)) {
                unset(table, rest);
            }
        }
        Some(item) => {
            let Some(inner) = item.as_table_like_mut() else { return };
            unset(inner, rest);
            if inner.is_empty() {
                table.remove(step);
            }
        }
        None => {}
    }
}

/// The contents of `text`, as JSON, for the controls.
pub(crate) fn view(text: &str) -> Result<Json, Refusal> {
    Ok(of_table(parse(text)?.as_table()))
}

fn of_table(table: &dyn TableLike) -> Json {
    let entries = table.iter().map(|(key, item)| (key.to_owned(), of_item(item)));
    Json::Object(entries.collect::<Map<_, _>>())
}

fn of_item(item: &Item) -> Json {
    match item {
        Item::None => Json::Null,
        Item::Value(value) => of_value(value),
        Item::Table(table) => of_table(table),
        Item::ArrayOfTables(list) => list.iter().map(|table| of_table(table)).collect(),
    }
}

fn of_value(value: &Value) -> Json {
    match value {
        Value::String(text) => text.value().as_str().into(),
        Value::Integer(number) => (*number.value()).into(),
        Value::Float(number) => (*number.value()).into(),
        Value::Boolean(flag) => (*flag.value()).into(),
        Value::Datetime(time) => time.value().to_string().into(),
        Value::Array(list) => list.iter().map(of_value).collect(),
        Value::InlineTable(table) => of_table(table),
    }
}

/// Reads a scenario.
pub(crate) fn scenario(text: &str) -> Result<Scenario, Refusal> {
    Ok(Scenario::parse("scenario", text, &[])?)
}
