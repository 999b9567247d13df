//! `knee list`.

use crate::{Format, bench::Known, output};
use knee_cc::{Algorithm, Param, ParamKind, RuleOp, algorithms};
use knee_report::table::Table;
use miette::Result;
use serde_json::{Value, json};
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Only these: names, or C files [default: all that are built in]
    #[arg(value_name = "ALGORITHM", value_parser = Known)]
    algorithms: Vec<Algorithm>,
}

pub(crate) fn list(args: &Args) -> Result<ExitCode> {
    let wanted = match args.algorithms.as_slice() {
        [] => algorithms(),
        some => some,
    };
    output::show(args.format, &as_json(wanted), || as_text(wanted))
}

fn unit(param: &Param) -> &'static str {
    match param.kind {
        ParamKind::TimeUs => "us",
        _ => param.unit(),
    }
}

/// A raw value in the parameter's unit.
fn value(param: &Param, raw: u32) -> Value {
    match param.kind {
        ParamKind::ProbabilityPpm | ParamKind::NumberPpm => json!(f64::from(raw) / 1e6),
        ParamKind::Choice => json!(param.show(raw)),
        _ => json!(raw),
    }
}

/// The algorithms as `knee list --format json` prints them.
pub fn as_json(wanted: &[Algorithm]) -> Value {
    let param = |p: &Param| {
        json!({
            "name": p.name,
            "alias": p.alias,
            "unit": unit(p),
            "min": value(p, p.min),
            "max": value(p, p.max),
            "default": value(p, p.default),
            "choices": p.choices(),
            "typed": { "min": p.show(p.min), "max": p.show(p.max), "default": p.show(p.default) },
            "source": p.source,
            "help": p.help,
        })
    };
    let algorithm = |a: &knee_cc::Algorithm| {
        let rules: Vec<String> = a
            .rules()
            .iter()
            .map(|r| match r.op {
                RuleOp::LessThan => format!("{} < {}", r.left.name, r.right.name),
                RuleOp::ZeroOrMoreThan => {
                    format!("{0} = 0 or {0} > {1}", r.left.name, r.right.name)
                }
            })
            .collect();
        json!({
            "name": a.name(),
            "summary": a.summary(),
            "source": a.citation(),
            "state_bytes": a.state_bytes(),
            "observes": a.observes().iter().filter(|o| !o.is_empty()).collect::<Vec<_>>(),
            "params": a.params().iter().map(param).collect::<Vec<_>>(),
            "rules": rules,
        })
    };
    json!({ "algorithms": wanted.iter().map(algorithm).collect::<Vec<_>>() })
}

fn as_text(wanted: &[Algorithm]) -> String {
    let mut text = String::new();
    for a in wanted {
        let caption = format!(
            "{}: {}\n  {}; {} B of state",
            a.name(),
            a.summary(),
            a.citation(),
            a.state_bytes()
        );
        let columns = ["parameter", "range", "default", "meaning", "source"];
        let mut table = Table::new(caption, &columns, &[]);
        for p in a.params() {
            let name =
                p.alias.map_or_else(|| p.name.to_owned(), |alias| format!("{} ({alias})", p.name));
            let range = match p.kind {
                ParamKind::Choice => p.choices().join(" | "),
                _ => format!("{} to {}", p.show(p.min), p.show(p.max)),
            };
            table.row([name, range, p.show(p.default), p.help.to_owned(), p.source.to_owned()]);
        }
        text += &table.to_text(output::width());
        text.push('\n');
    }
    text + "Set one with params = { qth = \"20ms\" } in a scenario, or --set flow.0.params.qth=20ms.\n"
}
