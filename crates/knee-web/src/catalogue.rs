//! Catalogue of choices: algorithms with their parameters, and the repository's scenarios.

use include_dir::{Dir, DirEntry, include_dir};
use knee_cc::{Algorithm, Param, Profile, Rule, RuleOp, algorithms};
use knee_metrics::{METRICS, Metric};
use serde_json::{Value, json};

static SCENARIOS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/scenarios");

/// All of it: `Catalogue` of `web/src/protocol.ts`.
pub(crate) fn catalogue() -> Value {
    let mut scenarios = Vec::new();
    collect(&SCENARIOS, &mut scenarios);
    scenarios.sort();
    let scenario = |(name, text): &(String, &str)| json!({ "name": name, "text": text });
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "algorithms": algorithms().iter().map(entry).collect::<Vec<_>>(),
        "scenarios": scenarios.iter().map(scenario).collect::<Vec<_>>(),
        "metrics": METRICS.iter().map(metric).collect::<Vec<_>>(),
    })
}

fn entry(algorithm: &Algorithm) -> Value {
    let rule = |rule: &Rule| {
        let op = match rule.op {
            RuleOp::LessThan => "<",
            RuleOp::ZeroOrMoreThan => "0 or >",
        };
        json!({ "left": rule.left.name, "op": op, "right": rule.right.name })
    };
    json!({
        "name": algorithm.name(),
        "summary": algorithm.summary(),
        "citation": algorithm.citation(),
        "rate_based": algorithm.profile() == Profile::Rate,
        "observes": algorithm.observes(),
        "params": algorithm.params().iter().map(param).collect::<Vec<_>>(),
        "rules": algorithm.rules().iter().map(rule).collect::<Vec<_>>(),
    })
}

fn metric(metric: &Metric) -> Value {
    let Metric { name, subject, unit, meaning, .. } = *metric;
    json!({ "name": name, "of": subject.name(), "unit": unit, "meaning": meaning })
}

fn param(param: &Param) -> Value {
    let Param { name, min, max, default, source, help, .. } = *param;
    json!({
        "name": name,
        "unit": param.unit(),
        "min": min,
        "max": max,
        "default": default,
        "choices": param.choices(),
        "source": source,
        "help": help,
    })
}

/// Names, such as `chd/coexistence`, and texts.
fn collect(folder: &'static Dir<'_>, into: &mut Vec<(String, &'static str)>) {
    for item in folder.entries() {
        match item {
            DirEntry::Dir(inner) => collect(inner, into),
            DirEntry::File(file) => {
                let path = file.path().with_extension("");
                let is_toml = file.path().extension().is_some_and(|e| e == "toml");
                let Some(text) = file.contents_utf8().filter(|text| is_toml && is_scenario(text))
                else {
                    continue;
                };
                into.push((path.display().to_string(), text));
            }
        }
    }
}

fn is_scenario(text: &str) -> bool {
    text.lines().any(|line| line.trim() == "[path]")
}
