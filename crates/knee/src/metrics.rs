//! `knee metrics`.

use crate::{Format, output};
use knee_report::table::Table;
use knee_results::metrics::{METRICS, Metric};
use miette::Result;
use serde_json::json;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

pub(crate) fn list(args: &Args) -> Result<ExitCode> {
    let entry = |m: &Metric| {
        json!({
            "name": m.name,
            "of": m.subject.name(),
            "unit": m.unit,
            "meaning": m.meaning,
            "windowed": m.is_windowed(),
            "appears": appears(m),
        })
    };
    let json = json!({ "metrics": METRICS.iter().map(entry).collect::<Vec<_>>() });
    output::show(args.format, &json, || {
        let mut table = Table::new("Metrics", &["metric", "of", "unit", "meaning"], &[]);
        for m in METRICS {
            table.row([m.name, m.subject.name(), m.unit, m.meaning]);
        }
        table.to_text(output::width())
    })
}

/// The outputs that have a metric, besides formulas and the Python package, which have all.
fn appears(metric: &Metric) -> Vec<&'static str> {
    let outputs = [
        ("table", metric.shown.is_some()),
        ("summary", metric.in_summary),
        ("study", metric.in_study),
    ];
    outputs.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect()
}
