//! Reads single keys of a table.

use super::error::{Fault, KeyPath, On, dotted, elements, known};
use super::key::{FASTEST_BPS, Kind, LONGEST_NS, Table};
use crate::units::{self, PACKETS, Quantity, RATE, SIZE, TIME, UnitError, clip};
use knee_model::{Ns, QueueLimit};
use std::ops::{RangeBounds, RangeInclusive};
use toml_edit::{Item, TableLike};

/// Name of the type of a TOML value, for an error: "a list", "text", and so on.
pub fn type_name(item: &Item) -> &'static str {
    match item.type_name() {
        "array of tables" => "a list of tables",
        "array" => "a list",
        "integer" => "an integer",
        "float" => "a number",
        "boolean" => "a boolean",
        "string" => "text",
        "datetime" => "a date",
        _ => "a table",
    }
}

/// Declaration of a table whose keys are not those of scenarios.
static NO_KEYS: Table = Table { name: "", keys: &[] };

/// Source of a delivery trace.
pub(super) enum TraceSource<'a> {
    /// A file.
    File(&'a str),
    /// These times, ms.
    Times(Vec<u64>),
}

/// A table, its position and the declaration of its keys.
pub(super) struct Section<'a> {
    pub(super) table: &'a dyn TableLike,
    path: KeyPath,
    keys: &'static Table,
}

impl<'a> Section<'a> {
    pub(super) fn root(table: &'a dyn TableLike, keys: &'static Table) -> Self {
        Self { table, path: Vec::new(), keys }
    }

    /// Path of a key of this table.
    pub(super) fn at(&self, key: &str) -> KeyPath {
        self.path.iter().cloned().chain([key.to_owned()]).collect()
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// An error at the value of `key`; `what` follows the key's name.
    pub(super) fn fault(&self, key: &str, what: &str, remedy: impl Into<String>) -> Fault {
        let at = self.at(key);
        let what = format!("{}{what}", dotted(&at));
        Fault { at, on: On::Value, what, remedy: remedy.into(), also: Vec::new() }
    }

    /// An error at the value of `key` in which `other` takes part, if it is written.
    pub(super) fn conflict(
        &self,
        key: &str,
        other: &str,
        role: &str,
        what: &str,
        remedy: impl Into<String>,
    ) -> Fault {
        let written = self.has(other).then(|| (self.at(other), role.to_owned()));
        Fault { also: written.into_iter().collect(), ..self.fault(key, what, remedy) }
    }

    /// Refuses keys that are not declared, or not for this `variant` of the table.
    pub(super) fn only(&self, variant: Option<&str>) -> Result<(), Fault> {
        self.stranger(variant).map_or(Ok(()), |key| Err(self.unknown(key, variant)))
    }

    /// The first key that is not declared for this `variant` of the table.
    pub(super) fn stranger(&self, variant: Option<&str>) -> Option<&'a str> {
        let keys = self.keys.names(variant);
        self.table.iter().map(|(key, _)| key).find(|key| !keys.contains(key))
    }

    /// The variants of the table that have `key`.
    pub(super) fn variants_with(&self, key: &str) -> Vec<&'static str> {
        let variants = self.keys.variants().map_or_else(Vec::new, |(_, variants)| variants);
        let has = |variant: &&str| self.keys.names(Some(variant)).contains(&key);
        variants.into_iter().filter(has).collect()
    }

    /// Declared kind of `key`.
    fn kind(&self, key: &str) -> &'static Kind {
        let declared = self.keys.key(key);
        declared.map_or_else(|| misdeclared(key), |key| &key.kind)
    }

    pub(super) fn unknown(&self, key: &str, variant: Option<&str>) -> Fault {
        let remedy = known(key, "keys here", &self.keys.names(variant));
        Fault { on: On::Key, ..self.fault(key, ": no such key", remedy) }
    }

    pub(super) fn required<T>(
        &self,
        key: &str,
        value: Option<T>,
        example: &str,
    ) -> Result<T, Fault> {
        value.ok_or_else(|| Fault {
            on: On::Key,
            ..self.fault(key, " is missing", format!("write {example}"))
        })
    }

    /// A table within this one.
    pub(super) fn section(&self, key: &str) -> Result<Option<Section<'a>>, Fault> {
        let keys = self.keys_of(key);
        self.value(key, "a table", |item| {
            item.as_table_like().map(|table| Section { table, path: self.at(key), keys })
        })
    }

    /// Declaration of the keys of a table within this one; the parameters of an algorithm have their own.
    fn keys_of(&self, key: &str) -> &'static Table {
        match self.kind(key) {
            Kind::Table(keys) | Kind::Tables(keys) | Kind::SizeOrLaw(_, keys) => keys,
            _ => &NO_KEYS,
        }
    }

    /// A list of tables.
    pub(super) fn sections(&self, key: &str) -> Result<Vec<Section<'a>>, Fault> {
        let keys = self.keys_of(key);
        let section = |(i, (table, _)): (usize, (&'a dyn TableLike, _))| {
            let mut path = self.at(key);
            path.push(i.to_string());
            Section { table, path, keys }
        };
        let expected = format!("a list of tables, each headed `[[{}]]`", dotted(&self.at(key)));
        let list = self.value(key, &expected, |item| {
            elements(item).map(|list| list.into_iter().enumerate().map(section).collect())
        })?;
        Ok(list.unwrap_or_default())
    }

    /// The value of `key`, if `convert` accepts its type.
    fn value<T>(
        &self,
        key: &str,
        expected: &str,
        convert: impl FnOnce(&'a Item) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        let Some(item) = self.table.get(key) else { return Ok(None) };
        convert(item).map(Some).ok_or_else(|| {
            self.fault(key, &format!(" is {}", type_name(item)), format!("it must be {expected}"))
        })
    }

    /// Text.
    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>, Fault> {
        self.value(key, "text in quotes", Item::as_str)
    }

    /// `true` or `false`.
    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, Fault> {
        self.value(key, "true or false", Item::as_bool)
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Result<Option<T>, Fault> {
        let names: Vec<_> = words.iter().map(|w| w.0).collect();
        let expected = format!("one of \"{}\"", names.join("\", \""));
        let Some(given) = self.value(key, &expected, Item::as_str)? else { return Ok(None) };
        match words.iter().find(|w| w.0 == given) {
            Some((_, word)) => Ok(Some(*word)),
            None => Err(self.fault(
                key,
                &format!(": `{}` is not one of its values", clip(given)),
                known(given, "values", &names),
            )),
        }
    }

    /// An integer.
    pub(super) fn integer<T: TryFrom<u64>>(&self, key: &str) -> Result<Option<T>, Fault> {
        let Kind::Integer(range) = self.kind(key) else { misdeclared(key) };
        Ok(self.integer_in(key, range)?.and_then(|value| T::try_from(value).ok()))
    }

    /// An integer in `range`.
    pub(super) fn integer_in(
        &self,
        key: &str,
        range: &RangeInclusive<u64>,
    ) -> Result<Option<u64>, Fault> {
        let expected = format!("an integer from {} to {}", range.start(), range.end());
        let Some(given) = self.value(key, &expected, Item::as_integer)? else { return Ok(None) };
        match u64::try_from(given) {
            Ok(value) if range.contains(&value) => Ok(Some(value)),
            _ => Err(self.fault(
                key,
                &format!(" = {given} is out of range"),
                format!("write {expected}"),
            )),
        }
    }

    /// A number without a unit.
    pub(super) fn number(&self, key: &str) -> Result<Option<f64>, Fault> {
        let Kind::Number(interval) = self.kind(key) else { misdeclared(key) };
        let expected = interval.expected();
        let Some(given) = self.value(key, &expected, as_number)? else { return Ok(None) };
        if (interval.from, interval.to).contains(&given) {
            return Ok(Some(given));
        }
        let remedy = format!("write {expected}");
        Err(self.fault(key, &format!(" = {given} is out of range"), remedy))
    }

    pub(super) fn time(&self, key: &str) -> Result<Option<Ns>, Fault> {
        let Kind::Time(range) = self.kind(key) else { misdeclared(key) };
        self.time_in(key, range)
    }

    pub(super) fn time_in(
        &self,
        key: &str,
        range: &RangeInclusive<Ns>,
    ) -> Result<Option<Ns>, Fault> {
        self.quantity(key, &TIME, range)
    }

    pub(super) fn rate(&self, key: &str) -> Result<Option<u64>, Fault> {
        self.quantity(key, &RATE, &(1..=FASTEST_BPS))
    }

    /// A list of times, each with the rate from then on (0 for silence), in order.
    pub(super) fn rate_steps(&self, key: &str) -> Result<Vec<(Ns, u64)>, Fault> {
        const EXAMPLE: &str = "[[\"20s\", \"5mbit\"], [\"40s\", \"0bit\"]]";
        self.steps(key, &RATE, ("rates", FASTEST_BPS), EXAMPLE)
    }

    /// A list of times, each with the delay from then on, in order.
    pub(super) fn delay_steps(&self, key: &str) -> Result<Vec<(Ns, Ns)>, Fault> {
        const EXAMPLE: &str = "[[\"20s\", \"80ms\"], [\"40s\", \"20ms\"]]";
        self.steps(key, &TIME, ("delays", LONGEST_NS), EXAMPLE)
    }

    /// A list of times, each with the value from then on, in order; `most` of them, and the name of the
    /// values.
    fn steps(
        &self,
        key: &str,
        quantity: &Quantity,
        (values, most): (&str, u64),
        example: &str,
    ) -> Result<Vec<(Ns, u64)>, Fault> {
        let Some(list) = self.value(key, example, Item::as_array)? else { return Ok(Vec::new()) };
        let mut steps: Vec<(Ns, u64)> = Vec::new();
        for (index, step) in list.iter().enumerate() {
            let which = format!(": step {}", index + 1);
            let bad = |e: UnitError| self.fault(key, &format!("{which}: {e}"), &e.remedy);
            let texts = step.as_array().filter(|pair| pair.len() == 2);
            let texts =
                texts.and_then(|pair| Some([pair.get(0)?.as_str()?, pair.get(1)?.as_str()?]));
            let Some([time, value]) = texts else {
                let what = format!("{which} is not a time and {}", quantity.article_name);
                return Err(self.fault(key, &what, format!("write {example}")));
            };
            let (at_ns, value) =
                (TIME.parse(time).map_err(bad)?, quantity.parse(value).map_err(bad)?);
            if at_ns > LONGEST_NS || value > most {
                let (longest, most) = (TIME.show(LONGEST_NS), quantity.show(most));
                let what = format!("{which} is out of range");
                let remedy = format!("write times up to {longest} and {values} up to {most}");
                return Err(self.fault(key, &what, remedy));
            }
            if steps.last().is_some_and(|(before_ns, _)| *before_ns >= at_ns) {
                let what = format!("{which} is not after the one before it");
                return Err(self.fault(key, &what, "write the steps in order of time"));
            }
            steps.push((at_ns, value));
        }
        Ok(steps)
    }

    /// A delivery trace: the name of a file, or its times in milliseconds.
    pub(super) fn trace(&self, key: &str) -> Result<Option<TraceSource<'a>>, Fault> {
        let expected = "the name of a file, or a list of whole milliseconds, such as [1, 2, 4]";
        self.value(key, expected, |item| {
            if let Some(name) = item.as_str() {
                return Some(TraceSource::File(name));
            }
            let time = |value: &toml_edit::Value| u64::try_from(value.as_integer()?).ok();
            item.as_array()?.iter().map(time).collect::<Option<_>>().map(TraceSource::Times)
        })
    }

    pub(super) fn size(&self, key: &str) -> Result<Option<u64>, Fault> {
        match self.kind(key) {
            Kind::Size(range) | Kind::SizeOrLaw(range, _) => self.quantity(key, &SIZE, range),
            _ => misdeclared(key),
        }
    }

    /// Bytes of a packet or its headers.
    pub(super) fn packet_bytes(&self, key: &str) -> Result<Option<u32>, Fault> {
        Ok(self.size(key)?.and_then(|bytes| u32::try_from(bytes).ok()))
    }

    /// A number of packets: `"10p"`, or an integer, which cannot be misread.
    pub(super) fn packets(&self, key: &str) -> Result<Option<u32>, Fault> {
        let Kind::Packets(range) = self.kind(key) else { misdeclared(key) };
        Ok(self.packets_in(key, range)?.and_then(|pkts| u32::try_from(pkts).ok()))
    }

    /// A number of packets in `range`.
    pub(super) fn packets_in(
        &self,
        key: &str,
        range: &RangeInclusive<u64>,
    ) -> Result<Option<u64>, Fault> {
        match self.table.get(key).is_some_and(Item::is_integer) {
            true => self.integer_in(key, range),
            false => self.quantity(key, &PACKETS, range),
        }
    }

    /// Packets or bytes.
    pub(super) fn amount(&self, key: &str) -> Result<Option<QueueLimit>, Fault> {
        let given = self.quantity_text(key, "a queue limit", "84p")?;
        let limit = given.map(|given| units::parse_queue(&given)).transpose();
        limit.map_err(|e| self.bad_quantity(key, &e))
    }

    pub(super) fn queue(&self, key: &str) -> Result<Option<QueueLimit>, Fault> {
        let limit = self.amount(key)?;
        if matches!(limit, Some(QueueLimit::Packets(0) | QueueLimit::Bytes(0))) {
            let remedy = "write at least \"1p\", or bytes enough for one packet";
            return Err(self.fault(key, ": a queue of 0 lets nothing through", remedy));
        }
        Ok(limit)
    }

    fn quantity(
        &self,
        key: &str,
        quantity: &Quantity,
        range: &RangeInclusive<u64>,
    ) -> Result<Option<u64>, Fault> {
        let text = self.quantity_text(key, quantity.article_name, quantity.example)?;
        let Some(text) = text else { return Ok(None) };
        match quantity.parse(&text) {
            Ok(value) if range.contains(&value) => return Ok(Some(value)),
            Err(e) if !e.is_too_large => return Err(self.bad_quantity(key, &e)),
            _ => {}
        }
        let show = |value: &u64| quantity.show(*value);
        Err(self.fault(
            key,
            &format!(" = {} is out of range", clip(&text)),
            format!("write {} to {}", show(range.start()), show(range.end())),
        ))
    }

    /// Text of a quantity; of a bare number its digits, which lack a unit.
    fn quantity_text(&self, key: &str, name: &str, example: &str) -> Result<Option<String>, Fault> {
        self.value(key, &format!("{name}, such as \"{example}\""), |item| {
            item.as_str().map(str::to_owned).or_else(|| number_text(item))
        })
    }

    pub(super) fn bad_quantity(&self, key: &str, error: &UnitError) -> Fault {
        self.fault(key, &format!(": {error}"), &error.remedy)
    }
}

/// Reports a mistake of this crate: it reads a key that [`super::keys`] does not declare so.
fn misdeclared(key: &str) -> ! {
    unreachable!("`{key}` is read as another kind than it is declared")
}

fn as_number(item: &Item) -> Option<f64> {
    item.as_float().or_else(|| item.as_integer().map(|i| i as f64))
}

/// A number's shortest exact text, without an exponent.
pub(super) fn number_text(item: &Item) -> Option<String> {
    item.as_integer()
        .map(|integer| integer.to_string())
        .or_else(|| item.as_float().map(|float| format!("{float}")))
}
