//! Columns of tables. One definition of a table, a list of [`Column`]s, gives its Parquet file, its CSV file, its Arrow
//! batches and its section of `docs/reference/results.md`.

use std::borrow::Cow;

/// A column: its name, and its value for a row `R`.
pub struct Column<R>(pub &'static str, pub Get<R>);

/// The function that finds a column's value; the `Maybe` ones can be null.
pub enum Get<R> {
    /// 32 bits, unsigned.
    U32(fn(&R) -> u32),
    /// 64 bits, unsigned.
    U64(fn(&R) -> u64),
    /// A number.
    F64(fn(&R) -> f64),
    /// Text.
    Text(fn(&R) -> &str),
    /// Bytes.
    Bytes(fn(&R) -> &[u8]),
    /// 32 bits, unsigned, or null.
    MaybeU32(fn(&R) -> Option<u32>),
    /// 64 bits, unsigned, or null.
    MaybeU64(fn(&R) -> Option<u64>),
    /// A number or null.
    MaybeF64(fn(&R) -> Option<f64>),
}

/// A value of a table; `None` is null.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// 32 bits, unsigned.
    U32(Option<u32>),
    /// 64 bits, unsigned.
    U64(Option<u64>),
    /// 64 bits, signed.
    I64(Option<i64>),
    /// A number.
    F64(Option<f64>),
    /// Text.
    Text(Option<&'a str>),
    /// Bytes.
    Bytes(&'a [u8]),
}

impl<R> Get<R> {
    /// The value of the column in `row`.
    pub fn value<'a>(&self, row: &'a R) -> Value<'a> {
        match self {
            Self::U32(get) => Value::U32(Some(get(row))),
            Self::U64(get) => Value::U64(Some(get(row))),
            Self::F64(get) => Value::F64(Some(get(row))),
            Self::Text(get) => Value::Text(Some(get(row))),
            Self::Bytes(get) => Value::Bytes(get(row)),
            Self::MaybeU32(get) => Value::U32(get(row)),
            Self::MaybeU64(get) => Value::U64(get(row)),
            Self::MaybeF64(get) => Value::F64(get(row)),
        }
    }
}

impl<'a> Value<'a> {
    /// The value in a CSV file: null is empty, bytes are hexadecimal.
    pub(crate) fn csv(self) -> Cow<'a, str> {
        fn shown<'a>(value: Option<impl ToString>) -> Cow<'a, str> {
            value.map_or_else(String::new, |value| value.to_string()).into()
        }
        match self {
            Self::U32(value) => shown(value),
            Self::U64(value) => shown(value),
            Self::I64(value) => shown(value),
            Self::F64(value) => shown(value),
            Self::Text(text) => text.unwrap_or_default().into(),
            Self::Bytes(bytes) => bytes.iter().map(|b| format!("{b:02x}")).collect(),
        }
    }
}
