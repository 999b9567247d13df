//! Reproductions in which runs fail, as on a machine too slow for real time.
#![allow(clippy::unwrap_used, missing_docs)]

use knee_lab::reproduce::{
    Host, HostKind, Outcome, ReproduceError, Reproduction, Wanted, outcome, reproduce,
};
use knee_run::RunSpec;

/// Fig. 9 of the CHD paper, two repetitions (seeds 1 and 2), without the runs that `fails` picks.
fn without(fails: fn(&RunSpec) -> bool) -> Result<Reproduction, ReproduceError> {
    let run = move |spec: &RunSpec| match fails(spec) {
        true => Err("too slow".to_owned()),
        false => knee_sim::run(spec).map_err(|e| e.to_string()),
    };
    let host = Host { name: "sim", kind: HostKind::Simulator, run: &run, jobs: 1, repeat: Some(2) };
    let wanted = Wanted { figure: Some("9".to_owned()), short: false };
    reproduce("chd", &wanted, &[host], &|_, _, _| {})
}

fn is_hd(spec: &RunSpec) -> bool {
    spec.flows[0].name == "delay-1" && spec.flows.iter().any(|f| kind(f) == "hd")
}

fn kind(flow: &knee_run::FlowSpec) -> String {
    match &flow.kind {
        knee_run::FlowKind::Tcp(tcp) => tcp.cc.name(),
        _ => String::new(),
    }
}

#[test]
fn the_other_repetitions_judge() {
    let whole = without(|_| false).unwrap();
    assert!(whole.verdicts().count() > 0);
    assert!(whole.verdicts().all(|v| v.measured.n == 2 && v.holds.is_some()));
    let half = without(|spec| spec.seed == 2).unwrap();
    assert!(half.verdicts().all(|v| v.measured.n == 1 && v.holds.is_some()));
    let text = half.to_text(None);
    assert!(text.contains("runs failed; the first: too slow"), "{text}");
}

#[test]
fn a_claim_without_runs_is_not_judged() {
    let some = without(is_hd).unwrap();
    assert!(some.verdicts().all(|v| v.holds.is_none() && v.reason.as_deref() == Some("too slow")));
    assert_eq!(outcome(&[some]), Outcome::NotAllJudged);
    // C22 needs HD only; C23 has CHD alone in its guard, and both in its quantity.
    let others = without(|spec| !is_hd(spec)).unwrap();
    let judged: Vec<_> = others.verdicts().map(|v| (v.id.as_str(), v.holds.is_some())).collect();
    assert_eq!(judged, [("C22", true), ("C23", false)]);
}

#[test]
fn without_any_run_there_is_no_reproduction() {
    assert!(matches!(without(|_| true), Err(ReproduceError::AllFailed(why)) if why == "too slow"));
}
