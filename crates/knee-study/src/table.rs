//! The tables of a data set: the meaning of each column, and the conversion to Arrow record batches.
//!
//! `docs/reference/study.md` describes every column. `run` numbers the runs of the study, as in all tables.

use crate::axis::{AxisColumn, Cells, Dimension};
use arrow_array::{
    ArrayRef, RecordBatch,
    builder::{Float64Builder, Int64Builder, StringBuilder, UInt64Builder},
};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use knee_cc::SSTHRESH_INFINITE;
use knee_model::{FlowRecord, FlowSample, QueueBin, RunRecord, RunSpec};
use knee_results::metrics::{self, Metric, Metrics, QueueAt, Scope, in_study, is_named, is_tcp};
use std::sync::Arc;

/// Names of the tables: one row for each run; for each flow of it that the scenario names; for each
/// bin of a flow; for each bin of a queue.
pub const TABLES: [&str; 4] = ["runs", "flows", "flow_series", "queue_series"];

/// Rows of a record batch.
const ROWS: usize = 8192;

/// Tables and metrics that are kept of each run.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// Names of tables, in the order of [`TABLES`].
    pub(crate) tables: Vec<String>,
    /// Columns of the first two tables; none: all.
    pub(crate) metrics: Option<Vec<String>>,
    /// Window of the metrics, seconds; none: the whole run.
    pub(crate) window_s: Option<(f64, f64)>,
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

/// Source of a column's value in a row.
enum Get<R> {
    Whole(fn(&R) -> Option<u64>),
    Number(fn(&R) -> Option<f64>),
    Text(fn(&R) -> Option<String>),
}
use Get::{Number, Text, Whole};

/// A column: name, value.
struct Column<R>(&'static str, Get<R>);

/// Bin of a flow.
struct FlowBin<'a> {
    flow: &'a FlowRecord,
    sample: &'a FlowSample,
    bin_s: std::ops::Range<f64>,
}

impl FlowBin<'_> {
    fn tcp(&self, value: u32) -> Option<u64> {
        is_tcp(self.flow).then_some(value.into())
    }

    fn observed(&self, i: usize) -> Option<u64> {
        (!self.flow.observes[i].is_empty()).then_some(self.sample.observed[i].into())
    }
}

fn flow_series_columns<'a>() -> Vec<Column<FlowBin<'a>>> {
    vec![
        Column("time_s", Number(|r| Some(r.bin_s.end))),
        Column(
            "goodput_bps",
            Number(|r| Some(r.sample.delivered_bytes as f64 * 8.0 / (r.bin_s.end - r.bin_s.start))),
        ),
        Column("sent_pkts", Whole(|r| Some(r.sample.sent_pkts.into()))),
        Column("lost_pkts", Whole(|r| Some(r.sample.lost_pkts.into()))),
        Column("cwnd_pkts", Whole(|r| r.tcp(r.sample.cwnd_pkts))),
        Column(
            "ssthresh_pkts",
            Whole(|r| r.tcp(r.sample.ssthresh_pkts).filter(|p| *p != u64::from(SSTHRESH_INFINITE))),
        ),
        Column("inflight_pkts", Whole(|r| r.tcp(r.sample.inflight_pkts))),
        Column("srtt_us", Whole(|r| r.tcp(r.sample.srtt_us).filter(|us| *us > 0))),
        Column("observe_0", Whole(|r| r.observed(0))),
        Column("observe_1", Whole(|r| r.observed(1))),
        Column("observe_2", Whole(|r| r.observed(2))),
        Column("observe_3", Whole(|r| r.observed(3))),
    ]
}

/// Bin of a queue.
struct Bin<'a> {
    queue: &'a QueueAt<'a>,
    bin: &'a QueueBin,
    end_s: f64,
}

impl Bin<'_> {
    fn us(&self, ns: f64) -> Option<f64> {
        (self.bin.departed_pkts > 0).then_some(ns / 1e3)
    }
}

fn queue_series_columns<'a>() -> Vec<Column<Bin<'a>>> {
    vec![
        Column("hop", Text(|r| Some(r.queue.name.clone()))),
        Column("time_s", Number(|r| Some(r.end_s))),
        Column("departed_pkts", Whole(|r| Some(r.bin.departed_pkts.into()))),
        Column("departed_bytes", Whole(|r| Some(r.bin.departed_bytes))),
        Column("dropped_pkts", Whole(|r| Some(r.bin.dropped_pkts.into()))),
        Column("marked_pkts", Whole(|r| Some(r.bin.marked_pkts.into()))),
        Column(
            "mean_delay_us",
            Number(|r| r.us(r.bin.delay_sum_ns as f64 / f64::from(r.bin.departed_pkts))),
        ),
        Column("max_delay_us", Number(|r| r.us(r.bin.delay_max_ns as f64))),
        Column("held_pkts", Whole(|r| Some(r.bin.held_pkts.into()))),
    ]
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
    let series = flow_series_columns().into_iter().map(|c| c.0);
    let queues = queue_series_columns().into_iter().map(|c| c.0);
    let keys = ["run", "run_id", "seed", "failed", "flow", "kind"];
    metric_names().into_iter().chain(series).chain(queues).chain(keys)
}

/// A column that grows.
enum Growing {
    Whole(UInt64Builder),
    Integer(Int64Builder),
    Number(Float64Builder),
    Text(StringBuilder),
}

impl Growing {
    fn new(kind: &DataType) -> Self {
        match kind {
            DataType::UInt64 => Self::Whole(UInt64Builder::new()),
            DataType::Int64 => Self::Integer(Int64Builder::new()),
            DataType::Float64 => Self::Number(Float64Builder::new()),
            _ => Self::Text(StringBuilder::new()),
        }
    }

    fn text(&mut self, value: Option<&str>) {
        if let Self::Text(column) = self {
            column.append_option(value);
        }
    }

    fn whole(&mut self, value: Option<u64>) {
        if let Self::Whole(column) = self {
            column.append_option(value);
        }
    }

    fn add<R>(&mut self, get: &Get<R>, row: &R) {
        match (self, get) {
            (Self::Whole(column), Whole(get)) => column.append_option(get(row)),
            (Self::Number(column), Number(get)) => column.append_option(get(row)),
            (Self::Text(column), Text(get)) => column.append_option(get(row)),
            _ => {}
        }
    }

    /// Adds a metric in a scope, or no value.
    fn add_metric(&mut self, metric: &Metric, scope: Option<&Scope<'_>>) {
        match (self, metric.get) {
            (Self::Whole(column), metrics::Get::Count(get)) => {
                column.append_option(scope.and_then(get));
            }
            (Self::Number(column), _) => {
                column.append_option(scope.and_then(|scope| metric.value(scope)));
            }
            _ => {}
        }
    }

    fn add_cell(&mut self, cells: &Cells, at: usize) {
        match (self, cells) {
            (Self::Integer(column), Cells::Integer(all)) => column.append_value(all[at]),
            (Self::Number(column), Cells::Number(all)) => column.append_value(all[at]),
            (Self::Text(column), Cells::Text(all)) => column.append_value(&all[at]),
            _ => {}
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Whole(column) => Arc::new(column.finish()),
            Self::Integer(column) => Arc::new(column.finish()),
            Self::Number(column) => Arc::new(column.finish()),
            Self::Text(column) => Arc::new(column.finish()),
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
    schema: Arc<Schema>,
    columns: Vec<Growing>,
    rows: usize,
}

impl Growth {
    /// Schema of the table with this index in [`TABLES`].
    pub(crate) fn new(kept: Kept, dimensions: &[Dimension], table: usize) -> Self {
        let axes: Vec<(usize, AxisColumn)> = dimensions
            .iter()
            .enumerate()
            .flat_map(|(i, d)| d.columns.iter().map(move |c| (i, c.clone())))
            .collect();
        let mut fields = vec![Field::new("run", DataType::UInt64, false)];
        if table == 0 {
            fields.push(Field::new("run_id", DataType::Utf8, false));
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
        fn add<R>(fields: &mut Vec<Field>, columns: &[Column<R>]) {
            fields.extend(columns.iter().map(|Column(name, get)| {
                let kind = match get {
                    Whole(_) => DataType::UInt64,
                    Number(_) => DataType::Float64,
                    Text(_) => DataType::Utf8,
                };
                Field::new(*name, kind, true)
            }));
        }
        let text = |name: &str| Field::new(name, DataType::Utf8, false);
        let metric = |metric: &Metric| {
            let kind = match metric.get {
                metrics::Get::Count(_) => DataType::UInt64,
                _ => DataType::Float64,
            };
            Field::new(metric.name, kind, true)
        };
        match table {
            0 => {
                fields.extend(kept.metrics(false).map(metric));
                fields.push(Field::new("failed", DataType::Utf8, true));
            }
            1 => {
                fields.extend([text("flow"), text("kind")]);
                fields.extend(kept.metrics(true).map(metric));
            }
            2 => {
                fields.extend([text("flow"), text("kind")]);
                add(&mut fields, &flow_series_columns());
            }
            _ => add(&mut fields, &queue_series_columns()),
        }
        let columns = fields.iter().map(|field| Growing::new(field.data_type())).collect();
        let schema = Arc::new(Schema::new(fields));
        Self { table, kept, axes, schema, columns, rows: 0 }
    }

    pub(crate) fn schema(&self) -> Arc<Schema> {
        Arc::clone(&self.schema)
    }

    /// Adds the rows of a run, which may have failed.
    pub(crate) fn add(
        &mut self,
        key: &RunKey<'_>,
        spec: &RunSpec,
        outcome: &Result<RunRecord, String>,
    ) {
        let window_s = self.kept.window_s;
        if self.table == 0 {
            let run = outcome.as_ref().ok().map(|record| Metrics::new(spec, record));
            let scope = run.map(|run| Scope::of_run(run, window_s));
            let at = self.begin(key, None);
            let at = self.metrics(at, scope.as_ref());
            self.columns[at].text(outcome.as_ref().err().map(String::as_str));
            return;
        }
        let Ok(record) = outcome else { return };
        let metrics = Metrics::new(spec, record);
        match self.table {
            1 => {
                for (index, flow) in record.flows.iter().enumerate().filter(|(_, f)| is_named(f)) {
                    let scope = Scope::of_flow(metrics, index, window_s);
                    let at = self.begin(key, Some(flow));
                    self.metrics(at, Some(&scope));
                }
            }
            2 => {
                let columns = flow_series_columns();
                for flow in &record.flows {
                    for (i, sample) in (flow.first_bin as usize..).zip(&flow.samples) {
                        let row = FlowBin { flow, sample, bin_s: metrics.bin_s(i) };
                        let at = self.begin(key, Some(flow));
                        self.measures(at, &columns, &row);
                    }
                }
            }
            _ => {
                let columns = queue_series_columns();
                for queue in &metrics.queues() {
                    for (i, bin) in queue.record.bins.iter().enumerate() {
                        let row = Bin { queue, bin, end_s: metrics.bin_s(i).end };
                        let at = self.begin(key, None);
                        self.measures(at, &columns, &row);
                    }
                }
            }
        }
    }

    /// Begins a row, and gives the index of the next column.
    fn begin(&mut self, key: &RunKey<'_>, flow: Option<&FlowRecord>) -> usize {
        self.rows += 1;
        let mut at = 0;
        let mut next = || {
            at += 1;
            at - 1
        };
        self.columns[next()].whole(Some(key.number));
        if self.table == 0 {
            self.columns[next()].text(Some(key.id));
        }
        self.columns[next()].whole(Some(key.seed));
        for (dimension, column) in &self.axes {
            self.columns[next()].add_cell(&column.cells, key.digits[*dimension]);
        }
        if let Some(flow) = flow {
            self.columns[next()].text(Some(&flow.name));
            self.columns[next()].text(Some(&flow.kind));
        }
        at
    }

    /// Adds the metrics of a row, and gives the index of the next column.
    fn metrics(&mut self, mut at: usize, scope: Option<&Scope<'_>>) -> usize {
        for metric in self.kept.metrics(self.table == 1) {
            self.columns[at].add_metric(metric, scope);
            at += 1;
        }
        at
    }

    fn measures<R>(&mut self, at: usize, columns: &[Column<R>], row: &R) {
        for (column, Column(_, get)) in self.columns[at..].iter_mut().zip(columns) {
            column.add(get, row);
        }
    }

    /// The rows that there are, if they are many.
    pub(crate) fn full(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        (self.rows >= ROWS).then(|| self.batch())
    }

    /// The rows that there are.
    pub(crate) fn batch(&mut self) -> Result<RecordBatch, ArrowError> {
        self.rows = 0;
        RecordBatch::try_new(self.schema(), self.columns.iter_mut().map(Growing::finish).collect())
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
