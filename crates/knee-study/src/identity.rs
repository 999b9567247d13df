//! Identity of a run: a hash of everything that decides its result.

use knee_cc::Algorithm;
use knee_model::{RunSpec, digest};
use serde_json::Value;
use std::collections::BTreeMap;

include!(concat!(env!("OUT_DIR"), "/engine.rs"));

/// Version of Knee.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Digits of a run's id.
const ID_DIGITS: usize = 16;

/// Id of a run on `host`: 16 hexadecimal digits of a hash of the validated scenario, the seed, the
/// sources of its algorithms and those of the engine. Neither the writing of the scenario nor the
/// machine makes a difference.
pub fn run_id(host: &str, spec: &RunSpec) -> String {
    let (run, sources) = (canonical(spec), algorithms_of(spec));
    let parts = [host.as_bytes(), ENGINE.as_bytes(), &run].into_iter();
    let parts = parts.chain(sources.values().map(String::as_bytes));
    digest::of_parts(parts)[..ID_DIGITS].to_owned()
}

/// A spec as bytes: fields in their order, numbers exactly. Where the files of algorithms lie is left
/// out.
fn canonical(spec: &RunSpec) -> Vec<u8> {
    fn without_sources(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("source");
                fields.values_mut().for_each(without_sources);
            }
            Value::Array(items) => items.iter_mut().for_each(without_sources),
            _ => {}
        }
    }
    if !spec.algorithms().any(|algorithm| algorithm.source().is_some()) {
        return postcard::to_stdvec(spec).unwrap_or_default();
    }
    let mut value = serde_json::to_value(spec).unwrap_or_default();
    without_sources(&mut value);
    value.to_string().into_bytes()
}

/// The algorithms of a run by name, each with a hash of its source.
pub(crate) fn algorithms_of(spec: &RunSpec) -> BTreeMap<&'static str, String> {
    let mut all = BTreeMap::new();
    for algorithm in spec.algorithms() {
        all.entry(algorithm.name()).or_insert_with(|| source_of(algorithm));
    }
    all
}

/// Hash of an algorithm's source: of one from a C file, its text.
fn source_of(algorithm: Algorithm) -> String {
    if let Some(source) = algorithm.source() {
        return digest::of_bytes(&source.text);
    }
    let built_in = ALGORITHMS.iter().find(|(of, _)| *of == algorithm.name());
    built_in.map_or_else(String::new, |(_, hash)| (*hash).to_owned())
}
