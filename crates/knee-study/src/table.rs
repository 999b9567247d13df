//! The tables of a data set: the meaning of each column, and the conversion to Arrow record batches.
//!
//! `docs/reference/study.md` describes every column. `run` numbers the runs of the study, as in all tables.

use crate::axis::{AxisColumn, Cells, Dimension};
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use knee_model::{RunRecord, RunSpec};
use knee_results::{
    arrow::{Rows, field},
    column::{Column, Value},
    metrics::{self, Metric, Metrics, Scope, in_study, is_named},
    tables::{FlowRow, QueueRow, flow_columns, queue_columns},
};
use std::sync::Arc;

/// Names of the tables: one row for each run; for each flow of it that the scenario names; for each
/// bin of a flow; for each bin of a queue.
pub const TABLES: [&str; 4] = ["runs", "flows", "flow_series", "queue_series"];

/// Rows of a record batch.
const ROWS: usize = 8192;

/// Tables and metrics that are kept of each run.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Names of tables, in the order of [`TABLES`].
    pub tables: Vec<String>,
    /// Columns of the first two tables; none: all.
    pub metrics: Option<Vec<String>>,
    /// Window of the metrics, seconds; none: the whole run.
    pub window_s: Option<(f64, f64)>,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            tables: TABLES[..2].iter().map(|t| (*t).to_owned()).collect(),
            metrics: None,
            window_s: None,
        }
    }
}

/// Names of the metrics of runs and flows that `metrics` of `[keep]` can list.
pub fn metric_names() -> Vec<&'static str> {
    let mut names: Vec<&str> = in_study(false).map(|metric| metric.name).collect();
    for metric in in_study(true) {
        if !names.contains(&metric.name) {
            names.push(metric.name);
        }
    }
    names
}

/// Names of all columns but those of axes.
pub fn column_names() -> impl Iterator<Item = &'static str> {
    let series = flow_columns().into_iter().map(|c| c.0);
    let queues = queue_columns(true).into_iter().map(|c| c.0);
    let keys = ["run", "run_id", "seed", "failed"];
    let all = metric_names().into_iter().chain(series).chain(queues).chain(keys);
    all.filter(|name| *name != REPETITION)
}

/// The column of a run's tables that a study has the columns of the run for.
const REPETITION: &str = "repetition";

/// The columns of a run's table that a series has.
fn measured<R>(columns: &[Column<R>]) -> impl Iterator<Item = &Column<R>> {
    columns.iter().filter(|Column(name, _)| *name != REPETITION)
}

/// The fields of these columns. All whole numbers have 64 bits, and all that is not a name can be null.
fn series_fields<R>(columns: &[Column<R>]) -> Vec<Field> {
    let wide = |column: &Column<R>| {
        let field = field(column);
        let nullable = !["flow", "kind"].contains(&column.0);
        match field.data_type() {
            DataType::UInt32 => field.with_data_type(DataType::UInt64),
            _ => field,
        }
        .with_nullable(nullable)
    };
    measured(columns).map(wide).collect()
}

fn metric_field(metric: &Metric) -> Field {
    let kind = match metric.get {
        metrics::Get::Count(_) => DataType::UInt64,
        _ => DataType::Float64,
    };
    Field::new(metric.name, kind, true)
}

/// A metric in a scope; null without one.
fn metric_value(metric: &Metric, scope: Option<&Scope<'_>>) -> Value<'static> {
    match metric.get {
        metrics::Get::Count(get) => Value::U64(scope.and_then(get)),
        _ => Value::F64(scope.and_then(|scope| metric.value(scope))),
    }
}

impl Cells {
    fn value(&self, at: usize) -> Value<'_> {
        match self {
            Self::Integer(all) => Value::I64(Some(all[at])),
            Self::Number(all) => Value::F64(Some(all[at])),
            Self::Text(all) => Value::Text(Some(&all[at])),
        }
    }
}

/// The run of some rows.
pub(crate) struct RunKey<'a> {
    pub(crate) number: u64,
    pub(crate) id: &'a str,
    pub(crate) seed: u64,
    /// Index of the point in each dimension.
    pub(crate) digits: &'a [usize],
}

/// A table that grows run by run.
pub(crate) struct Growth {
    table: usize,
    kept: Kept,
    axes: Vec<(usize, AxisColumn)>,
    rows: Rows,
}

impl Growth {
    /// The table with this index in [`TABLES`], without rows.
    pub(crate) fn new(kept: Kept, dimensions: &[Dimension], table: usize) -> Self {
        let axes: Vec<(usize, AxisColumn)> = dimensions
            .iter()
            .enumerate()
            .flat_map(|(i, d)| d.columns.iter().map(move |c| (i, c.clone())))
            .collect();
        let text = |name: &str| Field::new(name, DataType::Utf8, false);
        let mut fields = vec![Field::new("run", DataType::UInt64, false)];
        if table == 0 {
            fields.push(text("run_id"));
        }
        fields.push(Field::new("seed", DataType::UInt64, false));
        fields.extend(axes.iter().map(|(_, column)| {
            let kind = match column.cells {
                Cells::Integer(_) => DataType::Int64,
                Cells::Number(_) => DataType::Float64,
                Cells::Text(_) => DataType::Utf8,
            };
            Field::new(&column.name, kind, false)
        }));
        match table {
            0 => {
                fields.extend(kept.metrics(false).map(metric_field));
                fields.push(Field::new("failed", DataType::Utf8, true));
            }
            1 => {
                fields.extend([text("flow"), text("kind")]);
                fields.extend(kept.metrics(true).map(metric_field));
            }
            2 => fields.extend(series_fields(&flow_columns())),
            _ => fields.extend(series_fields(&queue_columns(true))),
        }
        Self { table, kept, axes, rows: Rows::new(fields) }
    }

    pub(crate) fn schema(&self) -> Arc<Schema> {
        self.rows.schema()
    }

    /// Adds the rows of a run, which may have failed.
    pub(crate) fn add(
        &mut self,
        key: &RunKey<'_>,
        spec: &RunSpec,
        outcome: &Result<RunRecord, String>,
    ) {
        let Self { table, kept, axes, rows } = self;
        let mut keys = vec![Value::U64(Some(key.number))];
        if *table == 0 {
            keys.push(Value::Text(Some(key.id)));
        }
        keys.push(Value::U64(Some(key.seed)));
        keys.extend(axes.iter().map(|(dimension, axis)| axis.cells.value(key.digits[*dimension])));
        let keys = || keys.iter().copied();
        let run = outcome.as_ref().ok().map(|record| Metrics::new(spec, record));
        if *table == 0 {
            let scope = run.map(|run| Scope::of_run(run, kept.window_s));
            let metrics = kept.metrics(false).map(|metric| metric_value(metric, scope.as_ref()));
            let failed = Value::Text(outcome.as_ref().err().map(String::as_str));
            rows.push(keys().chain(metrics).chain([failed]));
            return;
        }
        let Some(run) = run else { return };
        match table {
            1 => {
                let flows = run.record().flows.iter().enumerate();
                for (index, flow) in flows.filter(|(_, flow)| is_named(flow)) {
                    let scope = Scope::of_flow(run, index, kept.window_s);
                    let names = [&flow.name, &flow.kind].map(|name| Value::Text(Some(name)));
                    let metrics =
                        kept.metrics(true).map(|metric| metric_value(metric, Some(&scope)));
                    rows.push(keys().chain(names).chain(metrics));
                }
            }
            2 => {
                let columns = flow_columns();
                for row in FlowRow::all(1, run) {
                    rows.push(keys().chain(measured(&columns).map(|c| c.1.value(&row))));
                }
            }
            _ => {
                let (columns, queues) = (queue_columns(true), run.queues());
                for row in queues.iter().flat_map(|queue| QueueRow::all(1, queue)) {
                    rows.push(keys().chain(measured(&columns).map(|c| c.1.value(&row))));
                }
            }
        }
    }

    /// The rows that there are, if they are many.
    pub(crate) fn full(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        (self.rows.count() >= ROWS).then(|| self.batch())
    }

    /// The rows that there are.
    pub(crate) fn batch(&mut self) -> Result<RecordBatch, ArrowError> {
        self.rows.batch()
    }
}

impl Kept {
    /// The metrics of runs, or of flows.
    fn metrics(&self, of_flows: bool) -> impl Iterator<Item = &'static Metric> + use<'_> {
        let names = self.metrics.as_ref();
        let keeps = move |name| names.is_none_or(|names| names.iter().any(|n| n == name));
        in_study(of_flows).filter(move |metric| keeps(metric.name))
    }
}
