//! Requests from Python: scenarios, read and checked.

use crate::{
    algorithm,
    error::{self, host_error},
};
use knee_model::{Host, RunOptions, RunSpec};
use knee_scenario::{Scenario, Set};
use knee_sim::Simulator;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};

/// A request from Python: file or text, name, `--set` arguments, names of those algorithms that are
/// classes, host.
#[derive(FromPyObject)]
pub(crate) struct Wanted {
    #[pyo3(item)]
    path: Option<PathBuf>,
    #[pyo3(item)]
    text: Option<String>,
    #[pyo3(item)]
    name: String,
    #[pyo3(item)]
    sets: Vec<String>,
    #[pyo3(item)]
    classes: Vec<String>,
    #[pyo3(item)]
    pub(crate) host: String,
}

/// A scenario that is ready to run.
pub(crate) struct Ready {
    pub(crate) scenario: Scenario,
    pub(crate) specs: Vec<RunSpec>,
    pub(crate) name: String,
    pub(crate) host: &'static dyn Host,
}

impl Ready {
    /// Returns whether an algorithm of it is a Python class.
    pub(crate) fn has_methods(&self) -> bool {
        self.specs[0].algorithms().any(algorithm::has_methods)
    }
}

/// The hosts of this library; the program `knee` has these and others.
pub(crate) static HOSTS: [&dyn Host; 2] = [&Simulator, &knee_quic_run::Quic];

pub(crate) fn host_names() -> Vec<&'static str> {
    HOSTS.iter().map(|host| host.name()).collect()
}

impl Wanted {
    pub(crate) fn ready(&self) -> PyResult<Ready> {
        let host = HOSTS.iter().copied().find(|host| host.name() == self.host);
        let host = host.ok_or_else(|| {
            error::new(
                "HostError",
                &format!("this package has no host `{}`", self.host),
                Some(&format!("hosts here: {}", host_names().join(", "))),
            )
        })?;
        let (scenario, specs, name) = self.parse()?;
        host.check(&specs[0], &RunOptions::default()).map_err(host_error)?;
        Ok(Ready { scenario, specs, name, host })
    }

    /// The scenario, its repetitions and its name.
    pub(crate) fn parse(&self) -> PyResult<(Scenario, Vec<RunSpec>, String)> {
        let sets = self.sets.iter().map(|set| Set::parse(set)).collect::<Result<Vec<_>, _>>();
        let sets = sets.map_err(|e| error::scenario(&e))?;
        let scenario = match (&self.path, &self.text) {
            (Some(path), _) => Scenario::load(path, &sets),
            (None, text) => {
                let text = text.as_deref().unwrap_or_default();
                Scenario::parse_beside(Path::new(""), &self.name, text, &sets)
            }
        };
        let scenario = scenario.map_err(|e| error::scenario(&e))?;
        let specs = (0..scenario.repeat()).map(|r| scenario.spec(scenario.seed_of(r)));
        let specs: Vec<RunSpec> = specs.collect();
        algorithm::are_classes(&self.classes, &specs[0])?;
        let stem = self.path.as_deref().and_then(Path::file_stem);
        let name = stem.map_or_else(|| self.name.clone(), |s| s.to_string_lossy().into_owned());
        Ok((scenario, specs, name))
    }
}
