//! Reproductions in which runs fail, as on a machine too slow for real time.
#![allow(clippy::unwrap_used, missing_docs)]

use knee_lab::{
    LabError,
    pipeline::Runner,
    reproduce::{Outcome, Reproduction, RunsOn, Wanted, outcome, reproduce},
};
use knee_model::{Host, HostError, HostErrorKind, RunOptions, RunRecord, RunSpec, Tell};
use knee_sim::Simulator;
use std::{
    collections::BTreeSet,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The simulator by some name, with something else instead of its runs.
struct Fake<F> {
    name: &'static str,
    run: F,
}

impl<F> Host for Fake<F>
where
    F: Fn(&RunSpec, &RunOptions) -> Result<RunRecord, HostError> + Send + Sync,
{
    fn name(&self) -> &'static str {
        self.name
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
        (self.run)(spec, options)
    }
}

/// First algorithm, recovery and seed of each run.
type Seen = Mutex<BTreeSet<(String, String, u64)>>;

/// The simulator by this name, with another loss at random, if one is given; it tells what it runs.
fn other<'a>(name: &'static str, loss: Option<f64>, seen: &'a Seen) -> impl Host + 'a {
    let run = move |spec: &RunSpec, options: &RunOptions| {
        let knee_model::FlowKind::Tcp(tcp) = &spec.flows[0].kind else { panic!("no TCP") };
        let recovery = format!("{:?}", tcp.options.recovery);
        seen.lock().unwrap().insert((tcp.cc.name(), recovery, spec.seed));
        let mut spec = spec.clone();
        if let Some(loss) = loss {
            spec.path.hops[0].loss = loss;
        }
        Simulator.run(&spec, options)
    };
    Fake { name, run }
}

/// One claim on two hosts: its verdicts, and the runs of each host.
fn one_claim(id: &str, first: &dyn Host, second: &dyn Host) -> Reproduction {
    let options = RunOptions::default();
    let on = |host| RunsOn { runner: Runner::new(host, &options), repeat: Some(2) };
    let wanted = Wanted { claims: Some(vec![id.to_owned()]), ..Wanted::default() };
    reproduce("chd", &wanted, &[on(first), on(second)]).unwrap()
}

/// The second host runs only the cases that the claim's formulas use, and the verdict is the same.
#[test]
fn only_the_cases_of_a_claim_are_run() {
    let (first, second) = (Seen::default(), Seen::default());
    let found = one_claim("C22", &other("first", None, &first), &other("second", None, &second));
    let measured: Vec<_> = found.verdicts().map(|v| (v.measured.p50, v.holds)).collect();
    assert_eq!(measured.len(), 2);
    assert_eq!(measured[0], measured[1]);
    assert!(measured[0].1.is_some());
    assert!(first.into_inner().unwrap().len() > 4);
    let hd = |seed| ("hd".to_owned(), "Newreno".to_owned(), seed);
    assert_eq!(second.into_inner().unwrap(), BTreeSet::from([hd(1), hd(2)]));
    // Its figures are the first host's.
    let sections = found.sections();
    assert!(sections.iter().flat_map(|s| &s.charts).all(|c| c.title.ends_with("(first)")));
}

/// Without loss NewReno fills the link, so the guard of C14 does not ask for HD on the first host.
#[test]
fn a_case_that_only_the_second_host_uses_is_run_too() {
    let (first, second) = (Seen::default(), Seen::default());
    let found =
        one_claim("C14", &other("first", Some(0.0), &first), &other("second", None, &second));
    let holds: Vec<_> = found.verdicts().map(|v| v.holds).collect();
    assert_eq!(holds, [Some(false), Some(true)]);
    let kinds: BTreeSet<String> =
        second.into_inner().unwrap().into_iter().map(|(kind, ..)| kind).collect();
    assert_eq!(kinds, ["chd", "hd", "newreno"].map(str::to_owned).into());
}

#[test]
fn a_claim_that_does_not_exist_is_named() {
    let wanted = Wanted { claims: Some(vec!["C99".to_owned()]), ..Wanted::default() };
    let Err(LabError::Other { what, help: Some(help) }) = reproduce("chd", &wanted, &[]) else {
        panic!("no such claim, and yet a reproduction");
    };
    assert_eq!(what, "chd has no claim C99");
    assert!(help.contains("C22"), "{help}");
}

/// Fig. 9 of the CHD paper, two repetitions (seeds 1 and 2), without the runs that `fails` picks.
fn without(fails: fn(&RunSpec) -> bool) -> Result<Reproduction, LabError> {
    let options = RunOptions { runs_at_once: Some(1), ..RunOptions::default() };
    let run = |spec: &RunSpec, options: &RunOptions| match fails(spec) {
        true => Err(HostError::new(HostErrorKind::TooSlow, "too slow").with_help("wait")),
        false => Simulator.run(spec, options),
    };
    let host = Fake { name: Simulator.name(), run };
    let on = RunsOn { runner: Runner::new(&host, &options), repeat: Some(2) };
    let wanted = Wanted { figure: Some("9".to_owned()), ..Wanted::default() };
    reproduce("chd", &wanted, &[on])
}

fn is_hd(spec: &RunSpec) -> bool {
    spec.flows[0].name == "delay-1" && spec.flows.iter().any(|f| kind(f) == "hd")
}

fn kind(flow: &knee_model::FlowSpec) -> String {
    match &flow.kind {
        knee_model::FlowKind::Tcp(tcp) => tcp.cc.name(),
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
    let Err(LabError::Other { what, help }) = without(|_| true) else {
        panic!("no run, and yet a reproduction");
    };
    assert_eq!(what, "every run on the host sim failed; the first: too slow");
    assert_eq!(help.as_deref(), Some("wait"));
}

/// Linux's TCP runs two of Figure 7's 13 senders, those that claims use, and delayed ACKs alone.
#[test]
fn values_left_out_on_a_host_are_run_with_all_values() {
    let runs = |name, all_values| {
        let seen = AtomicUsize::new(0);
        let run = |_: &RunSpec, _: &RunOptions| {
            seen.fetch_add(1, Ordering::Relaxed);
            Err(HostError::new(HostErrorKind::TooSlow, "too slow"))
        };
        let host = Fake { name, run };
        let options = RunOptions::default();
        let on = RunsOn { runner: Runner::new(&host, &options), repeat: Some(1) };
        let wanted = Wanted { figure: Some("7".to_owned()), all_values, ..Wanted::default() };
        let reproduction = reproduce("chd", &wanted, &[on]);
        let error = reproduction.err().expect("no run").to_string();
        assert!(error.starts_with("every run on the host"), "{error}");
        seen.into_inner()
    };
    assert_eq!(["sim", "kernel", "vm"].map(|name| runs(name, false)), [78, 4, 4]);
    assert_eq!(runs("vm", true), 78);
}

/// No claim uses what is left out on Linux's TCP: on a simulator by that name, all formulas have their runs.
#[test]
fn claims_use_nothing_that_is_left_out_on_linux() {
    let run = |spec: &RunSpec, options: &RunOptions| Simulator.run(spec, options);
    let host = Fake { name: "vm", run };
    let options = RunOptions::default();
    for paper in ["chd", "htcp", "hd"] {
        let on = RunsOn { runner: Runner::new(&host, &options), repeat: Some(1) };
        let reproduction = reproduce(paper, &Wanted::default(), &[on]).unwrap();
        let failed: Vec<_> = reproduction
            .verdicts()
            .filter(|v| v.measured.n == 0)
            .map(|v| (v.id.as_str(), v.reason.as_deref()))
            .collect();
        assert!(reproduction.verdicts().next().is_some());
        assert_eq!(failed, []);
    }
}

/// The short form makes no runs of HD's Figure 3: it is not drawn, and that is no error.
#[test]
fn a_figure_without_runs_is_not_drawn() {
    let options = RunOptions::default();
    let on = RunsOn { runner: Runner::new(&Simulator, &options), repeat: None };
    let wanted = Wanted { figure: Some("3".to_owned()), short: true, ..Wanted::default() };
    let reproduction = reproduce("hd", &wanted, &[on]).expect("no error");
    assert!(reproduction.verdicts().next().is_none());
}
