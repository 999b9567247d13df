//! Studies: their plans, their shards carried out anywhere, and their data sets.

use crate::{
    error,
    interruptible::{Interruptible, interruptible},
    table::Table,
};
use knee_sim::Simulator;
use knee_study::{DataSet, RecordBatch, Slice, Study, StudyError};
use pyo3::prelude::*;
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool},
};

/// A study in shards.
#[pyclass(frozen, module = "knee._knee")]
pub(crate) struct Plan {
    plan: Arc<knee_study::Plan>,
    stop: AtomicBool,
}

fn told<T>(result: Result<T, StudyError>) -> PyResult<T> {
    result.map_err(|e| error::study(&e))
}

impl Plan {
    fn of(
        py: Python<'_>,
        read: impl FnOnce() -> Result<Study, StudyError> + Send,
    ) -> PyResult<Self> {
        let plan =
            py.detach(|| read().and_then(|s| knee_study::Plan::new(s, &Simulator, knee::COMMIT)));
        Ok(Self { plan: Arc::new(told(plan)?), stop: AtomicBool::new(false) })
    }
}

#[pymethods]
impl Plan {
    /// The study in a text; without `scenario`, with the file that the text names, relative to `folder`.
    #[new]
    #[pyo3(signature = (name, text, scenario = None, folder = PathBuf::new()))]
    fn new(
        py: Python<'_>,
        name: &str,
        text: &str,
        scenario: Option<&str>,
        folder: PathBuf,
    ) -> PyResult<Self> {
        Self::of(py, || match scenario {
            None => Study::parse(&folder, name, text),
            Some(scenario) => Study::with_scenario(name, text, scenario, &folder),
        })
    }

    /// The study in a file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Self::of(py, || Study::load(&path))
    }

    /// The constructor's arguments, from which another process makes the same plan.
    #[getter]
    fn parts(&self) -> PyResult<(&str, &str, &str, PathBuf)> {
        let study = &self.plan.study;
        let folder = &study.scenario.folder;
        let folder = match folder.as_os_str().is_empty() {
            true => std::env::current_dir(),
            false => std::path::absolute(folder),
        };
        let folder = folder.map_err(|e| error::new("StudyError", &e.to_string(), None))?;
        Ok((&study.name, &study.text, &study.scenario.text, folder))
    }

    #[getter]
    fn text(&self) -> &str {
        &self.plan.study.text
    }

    #[getter]
    fn scenario(&self) -> &str {
        &self.plan.study.scenario.text
    }

    #[getter]
    fn runs(&self) -> u64 {
        self.plan.study.runs
    }

    #[getter]
    fn shards(&self) -> usize {
        self.plan.shards.len()
    }

    /// Notices to the author of the study.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.plan.study.notes.clone()
    }

    /// Names of the tables that the study keeps.
    #[getter]
    fn tables(&self) -> Vec<String> {
        self.plan.study.keep.tables.clone()
    }

    /// Ends what this plan is running in other threads.
    fn stop(&self) {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    /// Begins the data set in `folder`, or resumes it; nobody else writes to it meanwhile.
    fn begin(&self, folder: PathBuf) -> PyResult<Writing> {
        let data = told(DataSet::open(&folder, &self.plan, Slice::WHOLE))?;
        Ok(Writing { plan: Arc::clone(&self.plan), data: Mutex::new(Some(data)) })
    }

    /// Runs a shard and writes it into the data set in `folder`, which another process may have
    /// begun, unless it is there: schedulers repeat tasks whose worker was lost.
    fn write_shard(&self, py: Python<'_>, number: usize, folder: PathBuf) -> PyResult<()> {
        let written = interruptible(py, &self.stop, |stop| {
            let data = DataSet::reading(&folder)?;
            data.check(&self.plan)?;
            if self.plan.shards.get(number).is_some_and(|shard| data.has(&self.plan, shard)) {
                return Ok(());
            }
            let host = Interruptible { ended: stop };
            self.plan.write_shard(number, &folder, &host, stop, &|_| ()).map(drop)
        })?;
        told(written)
    }

    /// Runs all shards, one after the other, and gives the rows of `table`; nothing is written.
    fn run(&self, py: Python<'_>, table: &str) -> PyResult<Table> {
        let batches = interruptible(py, &self.stop, |stop| {
            let (host, mut batches) = (Interruptible { ended: stop }, Vec::new());
            for shard in &self.plan.shards {
                self.plan.run_shard(shard.number, table, &host, stop, &mut |batch| {
                    batches.push(batch);
                    Ok(())
                })?;
            }
            Ok(batches)
        })?;
        told(batches).map(Table::of)
    }

    /// Rows of a finished shard.
    fn read_shard(&self, number: usize, folder: PathBuf, table: &str) -> PyResult<Table> {
        let read = || DataSet::reading(&folder)?.read_shard(&self.plan, number, table);
        told(read()).map(Table::of)
    }
}

/// A data set while it is written.
#[pyclass(frozen, module = "knee._knee")]
pub(crate) struct Writing {
    plan: Arc<knee_study::Plan>,
    data: Mutex<Option<DataSet>>,
}

impl Writing {
    fn data<T>(&self, of: impl FnOnce(&DataSet) -> PyResult<T>) -> PyResult<T> {
        let data = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        of(data.as_ref().ok_or_else(|| error::new("StudyError", "the data set is closed", None))?)
    }
}

#[pymethods]
impl Writing {
    /// Numbers of the shards that are not finished.
    fn missing(&self) -> PyResult<Vec<usize>> {
        self.data(|data| Ok(data.missing(&self.plan)))
    }

    /// Removes what killed workers left if all shards are finished; says whether they are.
    fn finish(&self) -> PyResult<bool> {
        self.data(|data| Ok(data.finish(&self.plan)))
    }

    /// Lets others write to it.
    fn close(&self) {
        self.data.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// The finished rows of a table of the data set in `folder`.
#[pyfunction]
pub(crate) fn read_table(py: Python<'_>, folder: PathBuf, table: &str) -> PyResult<Table> {
    let batches = py.detach(|| {
        DataSet::reading(&folder)?.read(table)?.collect::<Result<Vec<RecordBatch>, _>>()
    });
    told(batches).map(Table::of)
}

/// Finished runs, all runs, finished shards, all shards, bytes, and whether it is complete.
#[pyfunction]
pub(crate) fn status(folder: PathBuf) -> PyResult<(u64, u64, usize, usize, u64, bool)> {
    let status = told(DataSet::reading(&folder).and_then(|data| data.status()))?;
    let knee_study::Status { runs, runs_all, shards, shards_all, bytes, complete, .. } = status;
    Ok((runs, runs_all, shards, shards_all, bytes, complete))
}
