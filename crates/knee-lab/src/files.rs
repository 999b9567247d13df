//! The files below `scenarios/`, compiled in: papers, claims, criteria.

use crate::error::{FileError, LabError};
use include_dir::{Dir, include_dir};
use knee_scenario::{Scenario, Set};
use serde::Deserialize;

/// Every scenario, paper and claim of the repository, compiled in.
static SCENARIOS: Dir = include_dir!("$CARGO_MANIFEST_DIR/scenarios");

/// Help where there is no better.
const KEYS: &str = "docs/reference/paper-and-claims.md describes the keys";

/// Text of a file below `scenarios/`.
///
/// # Errors
/// There is none.
pub(crate) fn text(file: &str) -> Result<&'static str, FileError> {
    let found = SCENARIOS.get_file(file).and_then(|f| f.contents_utf8());
    found.ok_or_else(|| FileError {
        file: file.to_owned(),
        line: None,
        why: "no such file".to_owned(),
        help: "the papers' files are compiled in: build Knee again".to_owned(),
    })
}

/// The scenario in the file of this name below `scenarios/`, with `sets`, as after `--set`.
///
/// # Errors
/// The file is not there, or it is no scenario with these values.
pub(crate) fn scenario(file: &str, sets: &[String]) -> Result<Scenario, LabError> {
    let sets = sets.iter().map(|s| Set::parse(s)).collect::<Result<Vec<_>, _>>()?;
    Ok(Scenario::parse(&format!("scenarios/{file}"), text(file)?, &sets)?)
}

/// Names of the files of a folder below `scenarios/`, sorted.
pub(crate) fn file_names(folder: &str) -> Vec<&'static str> {
    let files = SCENARIOS.get_dir(folder).into_iter().flat_map(Dir::files);
    let mut names: Vec<&str> =
        files.filter_map(|f| f.path().file_name().and_then(|name| name.to_str())).collect();
    names.sort_unstable();
    names
}

/// The description in the file of this name below `scenarios/`.
///
/// # Errors
/// It is not there, or is wrong.
pub(crate) fn read<T: for<'a> Deserialize<'a>>(file: &str) -> Result<T, FileError> {
    parse(file, text(file)?)
}

/// The description in `text`, that of the file of this name.
pub(crate) fn parse<T: for<'a> Deserialize<'a>>(file: &str, text: &str) -> Result<T, FileError> {
    toml::from_str(text).map_err(|e| FileError {
        file: file.to_owned(),
        line: None,
        why: e.to_string(),
        help: KEYS.to_owned(),
    })
}
