//! Errors as the exceptions of `knee._errors`.

use knee_model::HostError;
use knee_scenario::ScenarioError;
use knee_study::StudyError;
use miette::Diagnostic;
use pyo3::prelude::*;

/// The parts of an exception, in the order of its arguments.
type Parts<'a> = (&'a str, Option<&'a str>, Option<&'a str>, Option<usize>, Option<&'a str>);

fn made(class: &str, parts: Parts<'_>) -> PyErr {
    Python::attach(|py| {
        let made = || py.import("knee._errors")?.getattr(class)?.call1(parts);
        match made() {
            Ok(exception) => PyErr::from_value(exception),
            Err(e) => e,
        }
    })
}

/// An exception of this class.
pub(crate) fn new(class: &str, what: &str, help: Option<&str>) -> PyErr {
    made(class, (what, help, None, None, None))
}

/// A host's error.
pub(crate) fn host_error(error: HostError) -> PyErr {
    new("HostError", &error.why, error.help.as_deref())
}

/// A scenario's error, with its place.
pub(crate) fn scenario(error: &ScenarioError) -> PyErr {
    placed("ScenarioError", error)
}

/// A study's error, with its place if it has one.
pub(crate) fn study(error: &StudyError) -> PyErr {
    match error {
        StudyError::File(error) => placed("StudyError", error),
        error => {
            let help = error.help().map(|help| help.to_string());
            new("StudyError", &error.to_string(), help.as_deref())
        }
    }
}

fn placed(class: &str, error: &ScenarioError) -> PyErr {
    let what = error.to_string();
    let (file, line) = error.place().unzip();
    made(class, (&what, Some(error.remedy()), file, line, error.key()))
}
