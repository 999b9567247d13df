//! Writes tables of any rows as Parquet files.

pub use crate::column::{Column, Get};
use crate::{ResultsError, store::ResultWriter};
use ::parquet::{
    basic::Compression,
    data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type},
    errors::ParquetError,
    file::{
        properties::WriterProperties,
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::parser::parse_message_type,
};
use Get::{Bytes, F64, MaybeF64, MaybeU32, MaybeU64, Text, U32, U64};
use std::{fmt::Write as _, io, sync::Arc};

/// Rows held in memory at a time.
pub(crate) const ROWS_PER_GROUP: usize = 1 << 17;
/// The same of a trace, whose rows are large.
pub(crate) const CALLS_PER_GROUP: usize = 1 << 14;

/// Writes `rows` as the file `name`, unless there are none.
pub fn write_if_any<R>(
    results: &ResultWriter,
    name: &str,
    columns: &[Column<R>],
    rows: impl Iterator<Item = R>,
) -> Result<(), ResultsError> {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return Ok(());
    }
    results.write(name, |file| {
        let mut table = TableWriter::new(file, columns, ROWS_PER_GROUP)?;
        rows.try_for_each(|row| table.push(row))?;
        table.finish()
    })
}

/// The system's error, if there is one.
pub fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}

/// Writes a table row by row.
pub(crate) struct TableWriter<'a, R, W: io::Write + Send> {
    columns: &'a [Column<R>],
    rows_per_group: usize,
    rows: Vec<R>,
    file: SerializedFileWriter<W>,
}

impl<'a, R, W: io::Write + Send> TableWriter<'a, R, W> {
    /// Begins the table; `rows_per_group` rows are in memory at a time.
    pub(crate) fn new(out: W, columns: &'a [Column<R>], rows_per_group: usize) -> io::Result<Self> {
        let mut schema = String::from("message knee {");
        for Column(name, get) in columns {
            let kind = match get {
                U32(_) => "required int32 {} (integer(32,false));",
                U64(_) => "required int64 {} (integer(64,false));",
                F64(_) => "required double {};",
                Text(_) => "required binary {} (string);",
                Bytes(_) => "required binary {};",
                MaybeU32(_) => "optional int32 {} (integer(32,false));",
                MaybeU64(_) => "optional int64 {} (integer(64,false));",
                MaybeF64(_) => "optional double {};",
            };
            let _ = write!(schema, " {}", kind.replace("{}", name));
        }
        schema.push_str(" }");
        let schema = Arc::new(parse_message_type(&schema).map_err(io_error)?);
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("knee {}", env!("CARGO_PKG_VERSION")))
            .build();
        let file =
            SerializedFileWriter::new(out, schema, Arc::new(properties)).map_err(io_error)?;
        Ok(Self { columns, rows_per_group, rows: Vec::new(), file })
    }

    pub(crate) fn push(&mut self, row: R) -> io::Result<()> {
        self.rows.push(row);
        if self.rows.len() < self.rows_per_group {
            return Ok(());
        }
        self.write_group().map_err(io_error)
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        if !self.rows.is_empty() {
            self.write_group().map_err(io_error)?;
        }
        self.file.close().map(drop).map_err(io_error)
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let group = &self.rows;
        let mut writer = self.file.next_row_group()?;
        for Column(_, get) in self.columns {
            // Parquet keeps unsigned numbers as signed ones of the same bits.
            match get {
                U32(get) => put::<Int32Type>(&mut writer, group.iter().map(|r| get(r) as i32)),
                U64(get) => put::<Int64Type>(&mut writer, group.iter().map(|r| get(r) as i64)),
                F64(get) => put::<DoubleType>(&mut writer, group.iter().map(get)),
                Text(get) => {
                    put::<ByteArrayType>(&mut writer, group.iter().map(|r| ByteArray::from(get(r))))
                }
                Bytes(get) => put::<ByteArrayType>(
                    &mut writer,
                    group.iter().map(|r| ByteArray::from(get(r).to_vec())),
                ),
                MaybeU32(get) => {
                    let values = group.iter().map(|r| get(r).map(|v| v as i32));
                    put_maybe::<Int32Type>(&mut writer, values)
                }
                MaybeU64(get) => {
                    let values = group.iter().map(|r| get(r).map(|v| v as i64));
                    put_maybe::<Int64Type>(&mut writer, values)
                }
                MaybeF64(get) => put_maybe::<DoubleType>(&mut writer, group.iter().map(get)),
            }?;
        }
        writer.close()?;
        self.rows.clear();
        Ok(())
    }
}

type Group<'a, W> = SerializedRowGroupWriter<'a, W>;

fn put<T: DataType>(
    group: &mut Group<'_, impl io::Write + Send>,
    values: impl Iterator<Item = T::T>,
) -> Result<(), ParquetError> {
    put_levels::<T>(group, &values.collect::<Vec<_>>(), None)
}

fn put_maybe<T: DataType>(
    group: &mut Group<'_, impl io::Write + Send>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let values: Vec<_> = values.collect();
    let present: Vec<i16> = values.iter().map(|v| v.is_some().into()).collect();
    put_levels::<T>(group, &values.into_iter().flatten().collect::<Vec<_>>(), Some(&present))
}

fn put_levels<T: DataType>(
    group: &mut Group<'_, impl io::Write + Send>,
    values: &[T::T],
    present: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut column = group
        .next_column()?
        .ok_or_else(|| ParquetError::General("more columns than the schema has".to_owned()))?;
    column.typed::<T>().write_batch(values, present, None)?;
    column.close()
}
