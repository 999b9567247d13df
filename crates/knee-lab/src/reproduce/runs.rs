//! The runs of a paper's figures, each made once.

use super::{ReproduceError, RunsOn};
use crate::{
    figure::{Case, Cases, Figure, longest_first, work},
    files,
};
use knee_run::RunSpec;
use knee_scenario::{Scenario, Set};
use std::{collections::HashMap, sync::Arc};

/// The cases of `figure`, without records, and the runs that they need, in order.
pub(super) fn prepare(
    paper: &str,
    figure: &Figure,
    repeat: Option<u32>,
) -> Result<(Cases, Vec<RunSpec>), ReproduceError> {
    let mut cases = Vec::new();
    let mut specs = Vec::new();
    if let Some(file) = &figure.scenario {
        let file = format!("{paper}/{file}");
        let text = files::text(&file)?;
        for (values, sets) in figure.combinations() {
            let sets: Vec<Set> = sets
                .iter()
                .map(|(path, value)| Set::parse(&format!("{path}={value}")))
                .collect::<Result<_, _>>()?;
            let scenario = Scenario::parse(&format!("scenarios/{file}"), text, &sets)?;
            let repeat = repeat.unwrap_or_else(|| scenario.repeat());
            specs.extend((0..repeat).map(|r| scenario.spec(scenario.seed_of(r))));
            cases.push(Case {
                values,
                spec: scenario.spec(scenario.seed()),
                text: scenario.text().to_owned(),
                records: Vec::new(),
                repetitions: repeat as usize,
            });
        }
    }
    Ok((Cases { figure: figure.clone(), cases }, specs))
}

/// The specifications that differ among `specs`, in order, and for each of `specs` the index of its
/// like among them.
fn distinct(specs: Vec<RunSpec>) -> Result<(Vec<RunSpec>, Vec<usize>), ReproduceError> {
    let mut seen = HashMap::new();
    let mut distinct = Vec::new();
    let mut indices = Vec::with_capacity(specs.len());
    for spec in specs {
        let key = serde_json::to_string(&spec).map_err(|e| ReproduceError::Spec(e.to_string()))?;
        let next = distinct.len();
        let index = *seen.entry(key).or_insert(next);
        if index == next {
            distinct.push(spec);
        }
        indices.push(index);
    }
    Ok((distinct, indices))
}

/// Runs `specs`, those of the cases in `prepared`, and gives these their records. What several cases
/// need is run once.
pub(super) fn run_cases(
    on: &RunsOn<'_>,
    mut prepared: Vec<Cases>,
    specs: Vec<RunSpec>,
    progress: &(dyn Fn(&str, usize, usize) + Sync),
) -> Result<Arc<Vec<Cases>>, ReproduceError> {
    let (specs, indices) = distinct(specs)?;
    let works: Vec<f64> = specs.iter().map(work).collect();
    let jobs = on.options.runs_at_once.or(on.host.runs_at_once()).unwrap_or(0);
    let name = on.host.name();
    let run = |i: usize| on.run(&specs[i]).map(Arc::new);
    let records = longest_first(jobs, &works, &run, &|done| progress(name, done, specs.len()))?;
    if let Some(Err(error)) = records.first()
        && records.iter().all(Result::is_err)
    {
        return Err(ReproduceError::AllFailed { host: name.to_owned(), error: error.clone() });
    }
    let mut records = indices.into_iter().map(|index| records[index].clone());
    prepared.iter_mut().flat_map(|f| &mut f.cases).for_each(|case| case.take(&mut records));
    Ok(Arc::new(prepared))
}
