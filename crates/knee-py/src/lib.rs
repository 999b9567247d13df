//! The native part of the Python package `knee`: runs, metrics, and tables as Arrow streams.
//! `python/knee` gives it its typed face.

mod algorithm;
mod error;
mod interruptible;
mod paths;
mod request;
mod results;
mod sweep;
mod table;

use error::host_error;
use interruptible::{Interruptible, interruptible};
use knee_cc::algorithms;
use knee_lab::pipeline::{in_parallel, work};
use knee_model::{Host, RunOptions};
use pyo3::{prelude::*, types::PyBytes};
use request::{Ready, Wanted, host_names};
use results::{Made, Results};
use std::{ffi::OsString, path::Path, sync::atomic::AtomicBool};

/// The runs of scenarios, to be made by the program: the input of its command `run-apart`.
#[pyfunction]
fn runs_asked(py: Python<'_>, wanted: Vec<Wanted>) -> PyResult<Bound<'_, PyBytes>> {
    let mut all = Vec::new();
    for wanted in &wanted {
        let (_, specs, _) = wanted.parse()?;
        if let Some(origin) = specs[0].algorithms().find_map(|a| a.defined_here()) {
            let what = format!(
                "{origin}: it exists in this process only, and the host {} has another",
                wanted.host
            );
            return Err(error::new("HostError", &what, Some("write it as a C file")));
        }
        all.extend(specs);
    }
    let message =
        knee::apart::question(&all).map_err(|e| error::new("HostError", &e.to_string(), None))?;
    Ok(PyBytes::new(py, &message))
}

/// The results of the runs that [`runs_asked`] requested, from the program's answer.
#[pyfunction]
fn runs_made(wanted: Vec<Wanted>, answer: &[u8]) -> PyResult<Vec<Results>> {
    let help = "the program `knee` must be built from the same sources as this package";
    let made = knee::apart::answer(answer).map_err(|e| error::new("HostError", &e, Some(help)))?;
    let mut records = made.records.map_err(host_error)?.into_iter().map(|(mut record, calls)| {
        for (flow, calls) in record.flows.iter_mut().zip(calls) {
            flow.trace = calls;
        }
        record
    });
    let results = wanted.iter().map(|wanted| {
        let (scenario, specs, name) = wanted.parse()?;
        let mut records: Vec<_> = records.by_ref().take(specs.len()).collect();
        for (record, spec) in records.iter_mut().zip(&specs) {
            record.name_observed(spec);
        }
        let host = Made { host: wanted.host.clone(), with: made.made_with.clone() };
        Results::new(scenario, specs.into_iter().next(), records, name, host)
    });
    results.collect()
}

/// Makes all runs of all scenarios, on `jobs` threads (0: one for each core), unless it is `ended`.
fn make(all: Vec<Ready>, jobs: usize, ended: &AtomicBool) -> PyResult<Vec<Results>> {
    let runs: Vec<_> = all.iter().flat_map(|r| r.specs.iter().map(move |s| (r.host, s))).collect();
    let simulator = Interruptible { ended };
    let works: Vec<f64> = runs.iter().map(|(_, spec)| work(spec)).collect();
    let records = in_parallel(Some(jobs).filter(|jobs| *jobs > 0), &works, |n| {
        let (host, spec) = runs[n];
        let host = if host.name() == simulator.name() { &simulator } else { host };
        simulator.go_on().and_then(|()| host.run(spec, &RunOptions::default()))
    });
    let mut records = records.map_err(host_error)?.into_iter();
    let results = all.into_iter().map(|Ready { scenario, specs, name, host }| {
        let records = records.by_ref().take(specs.len()).collect();
        let spec = specs.into_iter().next();
        Results::new(scenario, spec, records, name, Made::by(host))
    });
    results.collect()
}

/// Makes all runs on this thread, one after the other: their algorithms call Python.
fn make_here(py: Python<'_>, all: Vec<Ready>) -> PyResult<Vec<Results>> {
    let results = all.into_iter().map(|Ready { scenario, specs, name, host }| {
        let records = specs.iter().map(|spec| {
            py.check_signals()?;
            algorithm::with_methods(py, || host.run(spec, &RunOptions::default()))
        });
        let records = records.collect::<PyResult<Vec<_>>>()?;
        Results::new(scenario, specs.into_iter().next(), records, name, Made::by(host))
    });
    results.collect()
}

/// Returns whether a flow of a scenario waits for an agent.
fn has_agent(ready: &Ready) -> bool {
    ready.specs[0].algorithms().any(paths::is_agent)
}

/// Runs scenarios; the results in their order.
#[pyfunction]
fn run_many(py: Python<'_>, wanted: Vec<Wanted>, jobs: usize) -> PyResult<Vec<Results>> {
    let all = wanted.iter().map(Wanted::ready).collect::<PyResult<Vec<_>>>()?;
    if all.iter().any(has_agent) {
        let help = "use knee.gym, or another algorithm";
        return Err(error::new("ScenarioError", "`agent` is steered by knee.gym only", Some(help)));
    }
    if all.iter().any(Ready::has_methods) {
        return make_here(py, all);
    }
    interruptible(py, &AtomicBool::new(false), |ended| make(all, jobs, ended))?
}

/// The keys of a scenario's `[[flow]]`.
#[pyfunction]
fn flow_keys() -> Vec<&'static str> {
    knee_scenario::flow_keys()
}

/// TOML that says what a JSON object says.
#[pyfunction]
fn toml_of(json: &str) -> PyResult<String> {
    let refuse =
        |e: String| error::new("ScenarioError", &e, Some("a scenario is a dict of tables"));
    let value: toml::Table = serde_json::from_str(json).map_err(|e| refuse(e.to_string()))?;
    toml::to_string(&value).map_err(|e| refuse(e.to_string()))
}

/// The algorithms as JSON, as `knee list --format json` prints them: the built-in ones, or those of
/// these names and C files.
#[pyfunction]
fn algorithms_json(names: Vec<String>) -> PyResult<String> {
    let found = names.iter().map(|name| match knee_cc::find(name, Path::new("")) {
        Ok(Some(found)) => Ok(found),
        Ok(None) => {
            let known: Vec<_> = algorithms().iter().map(|a| a.name()).collect();
            let help = format!("algorithms: {}", known.join(", "));
            Err(error::new("AlgorithmError", &format!("no such algorithm: `{name}`"), Some(&help)))
        }
        Err(e) => Err(error::new("AlgorithmError", &e.to_string(), Some(e.help()))),
    });
    let found = found.collect::<PyResult<Vec<_>>>()?;
    let wanted = if found.is_empty() { algorithms() } else { &found };
    Ok(knee::list::as_json(wanted).to_string())
}

/// Compiles and loads an algorithm from C text; gives its name.
#[pyfunction]
fn load_c(file: &str, text: &str) -> PyResult<&'static str> {
    knee_cc::load_text(file, text)
        .map(|algorithm| algorithm.name())
        .map_err(|e| error::new("AlgorithmError", &e.to_string(), Some(e.help())))
}

/// The command `knee` with these arguments, the first of which is its name; gives its exit code. `itself`
/// starts it in another process.
#[pyfunction]
fn main(py: Python<'_>, itself: Vec<OsString>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| knee::main(itself, arguments))
}

/// Native part of the package. It needs no lock of Python's: data shared by threads are frozen or locked.
#[pymodule(gil_used = false)]
mod _knee {
    use super::{host_names, paths};
    use pyo3::{prelude::*, types::PyTuple};

    #[pymodule_export]
    use super::{
        algorithm::{PyAck, PyConn, PyRound, define_class, define_functions, is_class, layout},
        algorithms_json, flow_keys, load_c, main,
        paths::Paths,
        results::{Results, metrics, percentile_of},
        run_many, runs_asked, runs_made,
        sweep::{Plan, Writing, read_table, status},
        table::Table,
        toml_of,
    };

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("HOSTS", PyTuple::new(module.py(), host_names())?)?;
        paths::know_agent()
    }
}
