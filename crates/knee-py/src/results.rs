//! Results of a scenario's runs.

use crate::{
    error,
    table::{Table, Wanted},
};
use knee::run::{report, write_results};
use knee_model::{Host, RunOptions, RunRecord, RunSpec, seconds};
use knee_report::{
    chart::Style,
    run_report::{run_charts, run_text},
};
use knee_results::{
    caveats::approximations,
    metrics::{METRICS, Metric, Metrics, Scope, metric, percentile},
    store::ResultWriter,
    summary::{Provenance, summary},
    tables::tables,
};
use knee_scenario::Scenario;
use pyo3::{exceptions::PyIndexError, prelude::*};
use std::{ops::Range, path::PathBuf};

/// Name, title, labels of x and y, and each series: name, style, points.
type Drawn = (String, String, String, String, Vec<DrawnSeries>);
type DrawnSeries = (String, &'static str, Vec<(f64, Option<f64>)>);

/// The repetitions of a scenario.
#[pyclass(frozen, module = "knee._knee")]
pub(crate) struct Results {
    scenario: Scenario,
    spec: RunSpec,
    records: Vec<RunRecord>,
    name: String,
    made: Made,
}

/// The origin of runs.
pub(crate) struct Made {
    /// The host's name.
    pub(crate) host: String,
    /// See [`Host::made_with`].
    pub(crate) with: Vec<(String, String)>,
}

impl Made {
    /// The origin of runs in this process, by `host`.
    pub(crate) fn by(host: &dyn Host) -> Self {
        let with = host.made_with(&RunOptions::default()).into_iter();
        let with = with.map(|(name, value)| (name.to_owned(), value)).collect();
        Self { host: host.name().to_owned(), with }
    }
}

impl Results {
    pub(crate) fn new(
        scenario: Scenario,
        spec: Option<RunSpec>,
        records: Vec<RunRecord>,
        name: String,
        made: Made,
    ) -> PyResult<Self> {
        let spec = spec.ok_or_else(|| error::new("HostError", "nothing was run", None))?;
        Ok(Self { scenario, spec, records, name, made })
    }

    fn provenance<T>(&self, of: impl FnOnce(&Provenance<'_>) -> T) -> T {
        of(&Provenance {
            commit: knee::COMMIT,
            host: &self.made.host,
            made_with: &self.made.with,
            scenario_name: &self.name,
            scenario_text: self.scenario.text(),
        })
    }

    fn metrics(&self, repetition: usize) -> PyResult<Metrics<'_>> {
        let n = self.records.len();
        let record = self.records.get(repetition).ok_or_else(|| {
            PyIndexError::new_err(format!(
                "index {repetition} of a repetition: there are {n}, from 0"
            ))
        })?;
        Ok(Metrics::new(&self.spec, record))
    }

    fn title(&self) -> &str {
        self.scenario.title().unwrap_or(&self.name)
    }

    /// A window with its missing ends filled in.
    fn window(&self, from_s: Option<f64>, to_s: Option<f64>) -> Range<f64> {
        let end = seconds(self.spec.duration_ns);
        from_s.unwrap_or(0.0)..to_s.unwrap_or(end)
    }
}

/// Arguments of the metrics: the repetition (here from 0), flows by number, a window in seconds.
#[pymethods]
impl Results {
    fn __len__(&self) -> usize {
        self.records.len()
    }

    #[getter]
    fn text(&self) -> &str {
        self.scenario.text()
    }

    #[getter]
    fn host(&self) -> &str {
        &self.made.host
    }

    #[getter]
    fn seeds(&self) -> Vec<u64> {
        self.records.iter().map(|record| record.seed).collect()
    }

    #[getter]
    fn duration_s(&self) -> f64 {
        seconds(self.spec.duration_ns)
    }

    #[getter]
    fn notes(&self) -> Vec<String> {
        approximations(&self.records).into_iter().map(|line| line.to_string()).collect()
    }

    /// Name, kind (algorithm) and source of each flow of a repetition.
    fn flow_names(&self, repetition: usize) -> PyResult<Vec<(String, String, String)>> {
        let record = self.metrics(repetition)?.record();
        let of = |f: &knee_model::FlowRecord| {
            (f.name.to_string(), f.kind.to_string(), f.source.to_string())
        };
        Ok(record.flows.iter().map(of).collect())
    }

    fn table(&self, name: &str) -> PyResult<Table> {
        let mut wanted = Wanted { name, found: None, names: Vec::new() };
        tables(&mut wanted, &self.spec, &self.records)
            .map_err(|e| error::new("KneeError", &e.to_string(), None))?;
        wanted.found.ok_or_else(|| {
            let help = format!("tables: {}", wanted.names.join(", "));
            error::new("KneeError", &format!("no table `{name}`"), Some(&help))
        })
    }

    fn summary_json(&self) -> String {
        self.provenance(|p| summary(p, &self.spec, &self.records)).to_string()
    }

    fn report_text(&self) -> String {
        run_text(&self.spec, &self.records, Some(100))
    }

    fn report_html(&self) -> String {
        self.provenance(|p| report(p, self.title(), &self.spec, &self.records)).html()
    }

    /// The report's charts of a repetition: name, SVG.
    fn charts(&self, repetition: usize) -> PyResult<Vec<(String, String)>> {
        let record = self.metrics(repetition)?.record();
        let charts = run_charts(&self.spec, record);
        Ok(charts.iter().map(|chart| (chart.id.to_string(), chart.svg())).collect())
    }

    /// The data for the report's charts of a repetition.
    fn drawn(&self, repetition: usize) -> PyResult<Vec<Drawn>> {
        let record = self.metrics(repetition)?.record();
        let charts = run_charts(&self.spec, record).into_iter().map(|chart| {
            let series = chart.series.into_iter().map(|series| {
                let style = match series.style {
                    Style::Line | Style::LineMarks => "line",
                    Style::Steps => "steps",
                    Style::Dashed => "dashed",
                    Style::Dotted => "dotted",
                    Style::Marks => "marks",
                };
                let points = series.points.iter();
                let points = points.map(|p| (p.x, p.y.is_finite().then_some(p.y))).collect();
                (series.name, style, points)
            });
            (chart.id, chart.title, chart.x.label, chart.y.label, series.collect())
        });
        Ok(charts.collect())
    }

    /// Writes the results folder that `knee run --out` writes.
    fn save(&self, py: Python<'_>, out: PathBuf) -> PyResult<PathBuf> {
        py.detach(|| {
            let write = || {
                let results = ResultWriter::create(&out)?;
                self.provenance(|provenance| {
                    let summary = summary(provenance, &self.spec, &self.records);
                    let (title, spec) = (self.title(), &self.spec);
                    let records = &self.records;
                    write_results(&results, provenance, &summary, title, spec, records)
                })?;
                results.finish()
            };
            write().map_err(|e: knee_results::ResultsError| {
                let help = miette_help(&e);
                error::new("KneeError", &e.to_string(), help.as_deref())
            })
        })
    }

    fn goodput_bps(
        &self,
        repetition: usize,
        flows: Vec<usize>,
        from_s: Option<f64>,
        to_s: Option<f64>,
    ) -> PyResult<Option<f64>> {
        let at = self.window(from_s, to_s);
        Ok(self.metrics(repetition)?.total_goodput_bps(&flows, at.start, at.end))
    }

    fn jain(
        &self,
        repetition: usize,
        flows: Vec<usize>,
        from_s: Option<f64>,
        to_s: Option<f64>,
    ) -> PyResult<Option<f64>> {
        let metrics = self.metrics(repetition)?;
        let life = metrics.common_life_s(&flows);
        Ok(metrics.jain(&flows, from_s.unwrap_or(life.start), to_s.unwrap_or(life.end)))
    }

    fn share(
        &self,
        repetition: usize,
        group: Vec<usize>,
        others: Vec<usize>,
        from_s: Option<f64>,
        to_s: Option<f64>,
    ) -> PyResult<Option<f64>> {
        let at = self.window(from_s, to_s);
        Ok(self.metrics(repetition)?.share(&group, &others, at.start, at.end))
    }

    #[expect(clippy::too_many_arguments, reason = "those of the metric")]
    fn convergence_s(
        &self,
        repetition: usize,
        flows: Vec<usize>,
        from_s: Option<f64>,
        to_s: Option<f64>,
        width_s: f64,
        threshold: f64,
        hold_s: f64,
    ) -> PyResult<Option<f64>> {
        let at = self.window(from_s, to_s);
        let metrics = self.metrics(repetition)?;
        Ok(metrics.convergence_s(&flows, at.start, at.end, width_s, threshold, hold_s))
    }

    /// A metric of the table: of a flow, or of the run and its first queue.
    fn metric(
        &self,
        repetition: usize,
        name: &str,
        flow: Option<usize>,
        from_s: Option<f64>,
        to_s: Option<f64>,
    ) -> PyResult<Option<f64>> {
        let run = self.metrics(repetition)?;
        let Some(metric) = metric(name, flow.is_some()) else {
            let subject = if flow.is_some() { "a flow" } else { "a run" };
            let what = format!("no metric `{name}` of {subject}");
            return Err(error::new("KneeError", &what, Some("knee.metrics() lists all")));
        };
        let windowed = from_s.is_some() || to_s.is_some();
        if windowed && !metric.is_windowed() {
            let what = format!("`{name}` always covers the whole run");
            return Err(error::new("KneeError", &what, Some("leave out from_s and to_s")));
        }
        let at = self.window(from_s, to_s);
        let window_s = windowed.then_some((at.start, at.end));
        Ok(metric.value(&match flow {
            Some(flow) => Scope::of_flow(run, flow, window_s),
            None => Scope::of_run(run, window_s),
        }))
    }

    fn queueing_delay_ms(
        &self,
        repetition: usize,
        q: Option<f64>,
        from_s: Option<f64>,
        to_s: Option<f64>,
    ) -> PyResult<Option<f64>> {
        let metrics = self.metrics(repetition)?;
        let at = self.window(from_s, to_s);
        Ok(match q {
            None => metrics.mean_queueing_delay_ms(at.start, at.end),
            Some(q) => metrics.queueing_delay_percentile_ms(q, at.start, at.end),
        })
    }

    fn loss_fraction(
        &self,
        repetition: usize,
        flows: Vec<usize>,
        from_s: Option<f64>,
        to_s: Option<f64>,
    ) -> PyResult<Option<f64>> {
        let at = self.window(from_s, to_s);
        Ok(self.metrics(repetition)?.loss_fraction(&flows, at.start, at.end))
    }
}

fn miette_help(error: &dyn miette::Diagnostic) -> Option<String> {
    error.help().map(|help| help.to_string())
}

/// Name, subject, unit and meaning of a metric, and whether it takes a window.
type Described = (&'static str, &'static str, &'static str, &'static str, bool);

/// The table of metrics.
#[pyfunction]
pub(crate) fn metrics() -> Vec<Described> {
    let of = |m: &Metric| (m.name, m.subject.name(), m.unit, m.meaning, m.is_windowed());
    METRICS.iter().map(of).collect()
}

/// Percentile `q` (0..=1) of values, as results have it.
#[pyfunction]
pub(crate) fn percentile_of(mut values: Vec<f64>, q: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    percentile(&values, q)
}
