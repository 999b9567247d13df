//! Reproductions in which runs fail, as on a machine too slow for real time.
#![allow(clippy::unwrap_used, missing_docs)]

use knee_lab::reproduce::{
    Outcome, ReproduceError, Reproduction, RunsOn, Wanted, outcome, reproduce,
};
use knee_run::{Host, HostError, HostErrorKind, RunOptions, RunRecord, RunSpec, Tell};
use knee_sim::Simulator;

/// The simulator, on a machine that is too slow for the runs that this picks.
struct Slow(fn(&RunSpec) -> bool);

impl Host for Slow {
    fn name(&self) -> &'static str {
        Simulator.name()
    }

    fn about(&self) -> &'static str {
        Simulator.about()
    }

    fn doing(&self) -> &'static str {
        Simulator.doing()
    }

    fn check(&self, spec: &RunSpec, options: &RunOptions) -> Result<(), HostError> {
        Simulator.check(spec, options)
    }

    fn run_with_progress(
        &self,
        spec: &RunSpec,
        options: &RunOptions,
        _: Tell<'_>,
    ) -> Result<RunRecord, HostError> {
        match self.0(spec) {
            true => Err(HostError::new(HostErrorKind::TooSlow, "too slow").with_help("wait")),
            false => Simulator.run(spec, options),
        }
    }
}

/// Fig. 9 of the CHD paper, two repetitions (seeds 1 and 2), without the runs that `fails` picks.
fn without(fails: fn(&RunSpec) -> bool) -> Result<Reproduction, ReproduceError> {
    let options = RunOptions { runs_at_once: Some(1), ..RunOptions::default() };
    let on = RunsOn { host: &Slow(fails), options: &options, repeat: Some(2), kept: None };
    let wanted = Wanted { figure: Some("9".to_owned()), short: false };
    reproduce("chd", &wanted, &[on], &|_, _, _| {})
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
    let Err(ReproduceError::AllFailed { host, error }) = without(|_| true) else {
        panic!("no run, and yet a reproduction");
    };
    assert_eq!((host.as_str(), error.kind), ("sim", HostErrorKind::TooSlow));
    assert_eq!((error.why.as_str(), error.help.as_deref()), ("too slow", Some("wait")));
}
