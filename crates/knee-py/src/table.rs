//! Tables of results as Arrow, which other libraries take over without a copy.

use crate::error;
use arrow_array::{
    Array, BinaryArray, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator,
    RecordBatchReader, StringArray, UInt32Array, UInt64Array, ffi_stream::FFI_ArrowArrayStream,
};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef, ffi::FFI_ArrowSchema};
use knee_results::{
    arrow::{Rows, field},
    column::Column,
    tables::Tables,
};
use pyo3::{IntoPyObjectExt, exceptions::PyValueError, prelude::*, types::PyCapsule};
use std::sync::Arc;

/// Rows of a batch.
const ROWS: usize = 1 << 17;

/// A table in Arrow's format.
#[pyclass(frozen, module = "knee")]
#[derive(Clone)]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

/// Builds the one table that is wanted.
pub(crate) struct Wanted<'a> {
    pub(crate) name: &'a str,
    pub(crate) found: Option<Table>,
    /// Names of all that there are.
    pub(crate) names: Vec<String>,
}

impl Tables for Wanted<'_> {
    type Error = ArrowError;

    fn table<R>(
        &mut self,
        name: &str,
        columns: &[Column<R>],
        rows: impl Iterator<Item = R>,
    ) -> Result<(), ArrowError> {
        self.names.push(name.to_owned());
        if name == self.name {
            self.found = Some(Table::new(columns, rows)?);
        }
        Ok(())
    }
}

impl Table {
    /// The table of batches with one schema.
    pub(crate) fn of(batches: Vec<RecordBatch>) -> Self {
        let schema = batches.first().map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
        Self { schema, batches }
    }

    fn new<R>(columns: &[Column<R>], rows: impl Iterator<Item = R>) -> Result<Self, ArrowError> {
        let mut growing = Rows::new(columns.iter().map(field).collect());
        let mut batches = Vec::new();
        for row in rows {
            growing.push(columns.iter().map(|Column(_, get)| get.value(&row)));
            if growing.count() == ROWS {
                batches.push(growing.batch()?);
            }
        }
        if growing.count() > 0 {
            batches.push(growing.batch()?);
        }
        Ok(Self { schema: growing.schema(), batches })
    }
}

fn add_values<'py>(
    py: Python<'py>,
    array: &dyn Array,
    values: &mut Vec<Bound<'py, PyAny>>,
) -> PyResult<()> {
    macro_rules! add {
        ($($array:ty),*) => {
            $(if let Some(array) = array.as_any().downcast_ref::<$array>() {
                for value in array {
                    values.push(value.into_bound_py_any(py)?);
                }
                return Ok(());
            })*
        };
    }
    add!(
        Float64Array,
        UInt64Array,
        UInt32Array,
        Int64Array,
        StringArray,
        BooleanArray,
        BinaryArray
    );
    Err(PyValueError::new_err(format!("a column of {}", array.data_type())))
}

#[pymethods]
impl Table {
    /// The table as a stream of the Arrow PyCapsule interface. No value is copied; a consumer that
    /// wants another schema casts it itself.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader: Box<dyn RecordBatchReader + Send> =
            Box::new(RecordBatchIterator::new(batches, Arc::clone(&self.schema)));
        let stream = FFI_ArrowArrayStream::new(reader);
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Its schema, of the same interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref())
            .map_err(|e| PyValueError::new_err(e.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Values of a column.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let index = self.schema.index_of(name).map_err(|_| {
            let names: Vec<_> = self.schema.fields().iter().map(|f| f.name().as_str()).collect();
            let help = format!("columns: {}", names.join(", "));
            error::new("KneeError", &format!("no column `{name}`"), Some(&help))
        })?;
        let mut values = Vec::with_capacity(self.__len__());
        for batch in &self.batches {
            add_values(py, batch.column(index).as_ref(), &mut values)?;
        }
        Ok(values)
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Names of the columns, each with its Arrow type.
    #[getter]
    fn columns(&self) -> Vec<(String, String)> {
        let of = |f: &Arc<Field>| (f.name().clone(), f.data_type().to_string());
        self.schema.fields().iter().map(of).collect()
    }

    fn __repr__(&self) -> String {
        let names: Vec<_> = self.schema.fields().iter().map(|f| f.name().as_str()).collect();
        format!("<knee.Table of {} rows: {}>", self.__len__(), names.join(", "))
    }
}
