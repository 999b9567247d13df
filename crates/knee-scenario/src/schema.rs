//! The declared keys as a JSON Schema and as tables of the reference page.

use super::key::{Default, Interval, Key, Kind, Table};
use super::keys::{ROOT, TABLES};
use crate::units::{PACKETS, RATE, SIZE, TIME};
use knee_cc::{Algorithm, Param, ParamKind, algorithms};
use knee_model::{KERNEL_PREFIX, sysctl};
use serde_json::{Map, Value, json};
use std::ops::Bound;

/// A JSON Schema (draft 7) of scenario files, with which editors complete and check keys.
///
/// The schema accepts every valid scenario. It leaves conditions on several keys, names of flows and the
/// upper bounds of quantities with a unit to [`crate::Scenario::parse`].
pub fn schema() -> Value {
    let definitions: Map<_, _> =
        algorithms().iter().map(|a| (a.name().to_owned(), params(*a))).collect();
    let mut schema = object(&ROOT);
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("A scenario of Knee");
    schema["definitions"] = definitions.into();
    // Sorted, like the file in the repository.
    schema.sort_all_objects();
    schema
}

/// The keys of a table as Markdown; `name` is that of the table, such as `path.aqm`, or `top`.
pub fn reference(name: &str) -> Option<String> {
    let table = TABLES.iter().find(|table| table.name == name)?;
    let with_of = table.variants().is_some();
    let head = if with_of { ["| For ", "|---"] } else { ["", ""] };
    let mut text =
        format!("| Key {}| Kind | Default | Meaning |\n|---{}|---|---|---|\n", head[0], head[1]);
    for key in table.keys {
        let of = if with_of { format!("| {} ", key.of.join(", ")) } else { String::new() };
        let default = match (&key.default, key.default_toml()) {
            (Default::Required, _) => "required".to_owned(),
            (Default::Described(text), _) => (*text).to_owned(),
            (_, value) => format!("`{}`", value.unwrap_or_default()),
        };
        let (kind, meaning) = (kind_text(&key.kind), key.meaning.trim());
        text += &format!("| `{}` {of}| {kind} | {default} | {meaning} |\n", key.name);
    }
    Some(text)
}

/// The kind of a value, in words.
fn kind_text(kind: &Kind) -> String {
    let text = match kind {
        Kind::Text => "text",
        Kind::Algorithm => "name of an algorithm, or a C file",
        Kind::Flag => "`true` or `false`",
        Kind::Rate => "rate",
        Kind::Threshold => "packets or bytes",
        Kind::Queue => "queue",
        Kind::RateSteps => "list of time and rate",
        Kind::DelaySteps => "list of time and time",
        Kind::Trace => "file, or list of integers",
        Kind::Table(_) | Kind::Params => "table",
        Kind::Sysctls => "table of sysctls",
        Kind::Tables(_) => "list of tables",
        Kind::Time(range) if *range.start() == 0 => "time",
        Kind::Time(_) => "time > 0",
        Kind::Packets(range) => &format!("packets {} to {}", range.start(), range.end()),
        Kind::Integer(range) => &format!("integer {} to {}", range.start(), range.end()),
        Kind::Size(range) => {
            &format!("size {} to {}", SIZE.show(*range.start()), SIZE.show(*range.end()))
        }
        Kind::SizeOrLaw(range, _) => {
            &format!("{}, or table", kind_text(&Kind::Size(range.clone())))
        }
        Kind::Words(words) => &format!("`\"{}\"`", words.names().join("\"`, `\"")),
        Kind::Number(Interval { from, to, .. }) => {
            let bound = |bound: &Bound<f64>, excluded: &str| match bound {
                Bound::Excluded(value) => format!("{excluded} {value}"),
                Bound::Included(value) => value.to_string(),
                Bound::Unbounded => String::new(),
            };
            &format!("number {} to {}", bound(from, "above"), bound(to, "below"))
        }
    };
    text.to_owned()
}

/// The schema of a table.
fn object(table: &Table) -> Value {
    let mut properties = Map::new();
    for key in table.keys {
        let is_new = properties.get(key.name).is_none();
        let property = properties.entry(key.name).or_insert_with(|| property(key));
        // The default depends on the variant.
        if let (false, Some(property)) = (is_new, property.as_object_mut()) {
            property.remove("default");
        }
    }
    let mut object = json!({
        "type": "object",
        "properties": properties,
        "required": required(table, |key| key.of.is_empty()),
        "additionalProperties": false,
    });
    if let Some((selector, variants)) = table.variants() {
        let default = table.key(selector).and_then(Key::default_toml);
        let cases = variants.into_iter().map(|variant| {
            let is_default = default == Some(format!("\"{variant}\""));
            (case(selector, json!({ "const": variant }), !is_default), of_variant(table, variant))
        });
        merge(&mut object, choice(cases.collect()));
    }
    object
}

/// The names of the required keys among those that `are_meant`.
fn required(table: &Table, are_meant: impl Fn(&Key) -> bool) -> Vec<&'static str> {
    let keys = table.keys.iter().filter(|key| are_meant(key));
    keys.filter(|key| matches!(key.default, Default::Required)).map(|key| key.name).collect()
}

/// Conditions of a table that is a `variant`: without the keys of others.
fn of_variant(table: &Table, variant: &str) -> Value {
    let own = table.names(Some(variant));
    let others = table.names(None).into_iter().filter(|name| !own.contains(name));
    let others: Map<_, _> = others.map(|name| (name.to_owned(), json!(false))).collect();
    let mut conditions = json!({
        "properties": others,
        "required": required(table, |key| key.of.contains(&variant)),
    });
    let algorithm = table.keys.iter().find(|key| matches!(key.kind, Kind::Algorithm));
    if let Some(key) = algorithm.filter(|key| key.is_of(Some(variant))) {
        merge(&mut conditions, params_of(key.name));
    }
    conditions
}

/// The condition that `params` belong to the algorithm that the key `cc` names.
fn params_of(cc: &str) -> Value {
    let of = |algorithm: &Algorithm| {
        let name = algorithm.name();
        let params = json!({ "properties": { "params": definition(algorithm) } });
        (case(cc, json!({ "const": name }), true), params)
    };
    let of_kernel = case(cc, json!({ "pattern": format!("^{KERNEL_PREFIX}") }), true);
    let none = json!({ "properties": { "params": false } });
    choice(algorithms().iter().map(of).chain([(of_kernel, none)]).collect())
}

/// The condition that `key` has a value of `schema`, or is missing if it need not be `written`.
fn case(key: &str, schema: Value, written: bool) -> Value {
    let required = if written { vec![key] } else { vec![] };
    json!({ "properties": { key: schema }, "required": required })
}

/// The second schema of the first pair whose condition is met. Editors do not look into `allOf`.
fn choice(cases: Vec<(Value, Value)>) -> Value {
    cases.into_iter().rev().fold(
        json!({}),
        |rest, (condition, then)| json!({ "if": condition, "then": then, "else": rest }),
    )
}

/// Adds the members of `more` to `object`.
fn merge(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}

/// The schema of a key's value.
fn property(key: &Key) -> Value {
    let mut property = shape(&key.kind);
    property["title"] = json!(kind_text(&key.kind));
    property["description"] = json!(without_links(key.meaning.trim()));
    let default = key.default_toml().and_then(|toml| serde_json::from_str::<Value>(&toml).ok());
    if let Some(default) = default {
        property["default"] = default;
    }
    property
}

/// `text` with the words of its Markdown links only.
fn without_links(text: &str) -> String {
    let Some((before, after)) = text.split_once("](") else { return text.to_owned() };
    let (before, words) = before.rsplit_once('[').unwrap_or(("", before));
    let (_, after) = after.split_once(')').unwrap_or(("", after));
    format!("{before}{words}{}", without_links(after))
}

/// The values of a kind.
fn shape(kind: &Kind) -> Value {
    let text = |pattern: String| json!({ "type": "string", "pattern": whole(&pattern) });
    match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Algorithm => {
            let names: Vec<_> = algorithms().iter().map(Algorithm::name).collect();
            let others = format!(r"^{KERNEL_PREFIX}[A-Za-z0-9_-]{{1,15}}$|\.c$");
            json!({ "anyOf": [{ "enum": names }, { "type": "string", "pattern": others }] })
        }
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Words(words) => json!({ "enum": words.names() }),
        Kind::Integer(range) => {
            json!({ "type": "integer", "minimum": range.start(), "maximum": range.end() })
        }
        Kind::Number(interval) => numbers(interval),
        Kind::Time(range) => text(TIME.pattern(*range.start() > 0)),
        Kind::Rate => text(RATE.pattern(true)),
        Kind::Size(range) => text(SIZE.pattern(*range.start() > 0)),
        Kind::Packets(range) => json!({
            "type": ["integer", "string"],
            "minimum": range.start(),
            "maximum": range.end(),
            "pattern": whole(&PACKETS.pattern(*range.start() > 0)),
        }),
        Kind::Threshold => text(format!("{}|{}", PACKETS.pattern(true), SIZE.pattern(true))),
        Kind::Queue => {
            let [packets, bytes, and_one] =
                [PACKETS.pattern(true), SIZE.pattern(true), SIZE.pattern(false)];
            text(format!(r"{packets}|{bytes}|{and_one}\+1p"))
        }
        Kind::RateSteps => steps(RATE.pattern(false)),
        Kind::DelaySteps => steps(TIME.pattern(false)),
        Kind::Trace => json!({
            "type": ["string", "array"],
            "items": { "type": "integer", "minimum": 0 },
        }),
        Kind::Table(table) => object(table),
        Kind::Tables(table) => json!({ "type": "array", "minItems": 1, "items": object(table) }),
        Kind::SizeOrLaw(range, table) => {
            let mut either = object(table);
            merge(&mut either, shape(&Kind::Size(range.clone())));
            either["type"] = json!(["string", "object"]);
            either
        }
        Kind::Sysctls => json!({
            "type": "object",
            "propertyNames": { "anyOf": [{ "enum": sysctl::SYSCTLS.to_vec() }, { "pattern": r"^net\.ipv4\." }] },
            "additionalProperties": {
                "type": ["integer", "string", "array"],
                "items": { "type": "integer" },
            },
        }),
        // Any table is allowed here; the others are there to be completed.
        Kind::Params => {
            let all = [json!({})].into_iter().chain(algorithms().iter().map(definition));
            json!({ "type": "object", "anyOf": all.collect::<Vec<_>>() })
        }
    }
}

/// A list of times, each with a text that `pattern` matches.
fn steps(pattern: String) -> Value {
    let text = |pattern: String| json!({ "type": "string", "pattern": whole(&pattern) });
    json!({
        "type": "array",
        "items": {
            "type": "array",
            "items": [text(TIME.pattern(false)), text(pattern)],
            "minItems": 2,
            "maxItems": 2,
        },
    })
}

/// The pattern of a text that `pattern` matches from end to end, except for spaces.
fn whole(pattern: &str) -> String {
    format!(r"^\s*({pattern})\s*$")
}

fn numbers(interval: &Interval) -> Value {
    let mut numbers = json!({ "type": "number" });
    let mut bound = |bound: Bound<f64>, included: &str, excluded: &str| match bound {
        Bound::Included(value) => numbers[included] = json!(value),
        Bound::Excluded(value) => numbers[excluded] = json!(value),
        Bound::Unbounded => {}
    };
    bound(interval.from, "minimum", "exclusiveMinimum");
    bound(interval.to, "maximum", "exclusiveMaximum");
    numbers
}

/// A reference to the schema of an algorithm's parameters.
fn definition(algorithm: &Algorithm) -> Value {
    json!({ "$ref": format!("#/definitions/{}", algorithm.name()) })
}

/// The schema of an algorithm's parameters.
fn params(algorithm: Algorithm) -> Value {
    let names = |param: &Param| [Some(param.name), param.alias].into_iter().flatten();
    let table = algorithm.params();
    let properties: Map<_, _> = table
        .iter()
        .flat_map(|param| names(param).map(|name| (name.to_owned(), param_property(param))))
        .collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// The schema of a parameter's value.
fn param_property(param: &Param) -> Value {
    let range = u64::from(param.min)..=u64::from(param.max);
    let number = |raw: u32| Bound::Included(f64::from(raw) / 1e6);
    let default = param.show(param.default);
    let (shape, default) = match param.kind {
        ParamKind::TimeUs => (shape(&Kind::Time(range)), json!(default)),
        ParamKind::Packets => (shape(&Kind::Packets(range)), json!(default)),
        ParamKind::Count => (shape(&Kind::Integer(range)), json!(param.default)),
        ParamKind::ProbabilityPpm | ParamKind::NumberPpm => {
            let (from, to) = (number(param.min), number(param.max));
            let default = json!(f64::from(param.default) / 1e6);
            (numbers(&Interval { from, to, expected: "" }), default)
        }
        ParamKind::Choice => {
            let mut words: Vec<Value> = param.choices().into_iter().map(Value::from).collect();
            if param.choices() == ["off", "on"] {
                words.extend([json!(true), json!(false)]);
            }
            (json!({ "enum": words }), json!(default))
        }
    };
    let mut property = shape;
    let (min, max) = (param.show(param.min), param.show(param.max));
    property["title"] = json!(format!("{} {min} to {max}", param.unit()));
    property["description"] = json!(param.help);
    property["default"] = default;
    property
}
