//! Tables in Arrow's format.

use crate::column::{Column, Get, Value};
use arrow_array::{
    ArrayRef, RecordBatch,
    builder::{
        BinaryBuilder, Float64Builder, Int64Builder, StringBuilder, UInt32Builder, UInt64Builder,
    },
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use std::sync::Arc;

/// The field of a column.
pub fn field<R>(Column(name, get): &Column<R>) -> Field {
    let (kind, nullable) = match get {
        Get::U32(_) => (DataType::UInt32, false),
        Get::U64(_) => (DataType::UInt64, false),
        Get::F64(_) => (DataType::Float64, false),
        Get::Text(_) => (DataType::Utf8, false),
        Get::Bytes(_) => (DataType::Binary, false),
        Get::MaybeU32(_) => (DataType::UInt32, true),
        Get::MaybeU64(_) => (DataType::UInt64, true),
        Get::MaybeF64(_) => (DataType::Float64, true),
    };
    Field::new(*name, kind, nullable)
}

/// Rows that become a batch.
pub struct Rows {
    schema: SchemaRef,
    columns: Vec<Growing>,
    count: usize,
}

impl Rows {
    /// No rows yet, with these columns.
    pub fn new(fields: Vec<Field>) -> Self {
        let columns = fields.iter().map(|field| Growing::new(field.data_type())).collect();
        Self { schema: Arc::new(Schema::new(fields)), columns, count: 0 }
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Number of rows.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Adds a row, whose values have the order and the types of the columns.
    pub fn push<'a>(&mut self, values: impl IntoIterator<Item = Value<'a>>) {
        self.count += 1;
        for (column, value) in self.columns.iter_mut().zip(values) {
            column.push(value);
        }
    }

    /// The rows, which this then no longer has.
    ///
    /// # Errors
    /// A row lacked a value, or had one of another type.
    pub fn batch(&mut self) -> Result<RecordBatch, ArrowError> {
        self.count = 0;
        RecordBatch::try_new(self.schema(), self.columns.iter_mut().map(Growing::finish).collect())
    }
}

/// A column that grows.
enum Growing {
    U32(UInt32Builder),
    U64(UInt64Builder),
    I64(Int64Builder),
    F64(Float64Builder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
}

impl Growing {
    fn new(kind: &DataType) -> Self {
        match kind {
            DataType::UInt32 => Self::U32(UInt32Builder::new()),
            DataType::UInt64 => Self::U64(UInt64Builder::new()),
            DataType::Int64 => Self::I64(Int64Builder::new()),
            DataType::Float64 => Self::F64(Float64Builder::new()),
            DataType::Binary => Self::Bytes(BinaryBuilder::new()),
            _ => Self::Text(StringBuilder::new()),
        }
    }

    fn push(&mut self, value: Value<'_>) {
        match (self, value) {
            (Self::U32(column), Value::U32(value)) => column.append_option(value),
            (Self::U64(column), Value::U32(value)) => column.append_option(value.map(u64::from)),
            (Self::U64(column), Value::U64(value)) => column.append_option(value),
            (Self::I64(column), Value::I64(value)) => column.append_option(value),
            (Self::F64(column), Value::F64(value)) => column.append_option(value),
            (Self::Text(column), Value::Text(value)) => column.append_option(value),
            (Self::Bytes(column), Value::Bytes(value)) => column.append_value(value),
            // The column is then shorter than the others, and `batch` fails.
            _ => {}
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::U32(column) => Arc::new(column.finish()),
            Self::U64(column) => Arc::new(column.finish()),
            Self::I64(column) => Arc::new(column.finish()),
            Self::F64(column) => Arc::new(column.finish()),
            Self::Text(column) => Arc::new(column.finish()),
            Self::Bytes(column) => Arc::new(column.finish()),
        }
    }
}
