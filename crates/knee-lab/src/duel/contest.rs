//! Runs of a contest, and their measures for each pair.

use super::{Bout, Entrant, Plan, Solo, WrittenPath};
use crate::pipeline::Runner;
use knee_cc::{Algorithm, Params};
use knee_model::{HostError, RunRecord};
use knee_results::metrics::Percentiles;
use knee_scenario::{Scenario, ScenarioError};
use serde::Serialize;
use std::collections::BTreeMap;

/// Entrants, and the paths on which they meet.
#[derive(Clone, Debug)]
pub struct Contest {
    /// The algorithms.
    pub entrants: Vec<Entrant>,
    /// The paths.
    pub paths: Vec<WrittenPath>,
    /// The plan of the runs.
    pub plan: Plan,
}

/// One run of a contest. Numbers count its paths and entrants from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    /// Number of the path.
    pub path: usize,
    /// Number of the entrant whose flow starts first.
    pub first: usize,
    /// Number of the entrant whose flow joins it; `None`: the first stays alone.
    pub second: Option<usize>,
    /// Repetition, counted from 0.
    pub repetition: u32,
}

/// The first repetition of a run, and the scenario of all its repetitions.
pub type Setting = (Run, Scenario);

/// A run that is charted over time.
#[derive(Clone, Debug)]
pub struct Charted {
    /// The run.
    pub run: Run,
    /// Its scenario.
    pub scenario: Scenario,
    /// Its record.
    pub record: RunRecord,
}

impl Contest {
    /// Knee's algorithms among the entrants.
    pub fn algorithms(&self) -> impl Iterator<Item = Algorithm> {
        self.entrants.iter().filter_map(|entrant| entrant.cc.params()).map(Params::algorithm)
    }

    /// The settings of all runs: each pair with either one first, each entrant against itself; with `solos`
    /// each alone as well. The two orders of a pair serve both of its cells.
    ///
    /// # Errors
    /// The errors of [`Plan::scenario`].
    pub fn settings(&self, solos: bool) -> Result<Vec<Setting>, ScenarioError> {
        let n = self.entrants.len();
        let seconds = || solos.then_some(None).into_iter().chain((0..n).map(Some));
        let pairs = (0..n).flat_map(|first| seconds().map(move |second| (first, second)));
        let pairs: Vec<_> = pairs.collect();
        let each =
            (0..self.paths.len()).flat_map(|path| pairs.iter().map(move |pair| (path, pair)));
        each.map(|(path, (first, second))| {
            let run = Run { path, first: *first, second: *second, repetition: 0 };
            let flows = [Some(*first), *second].into_iter().flatten();
            let flows: Vec<&Entrant> = flows.map(|entrant| &self.entrants[entrant]).collect();
            Ok((run, self.plan.scenario(&self.paths[path], &flows)?))
        })
        .collect()
    }

    /// Makes all repetitions of `settings`. Records are dropped as soon as they are measured, except the
    /// first repetitions if they are to be charted (`draw`).
    ///
    /// # Errors
    /// The host cannot make a run.
    pub fn run(
        &self,
        runner: &Runner<'_>,
        settings: &[Setting],
        draw: bool,
    ) -> Result<Fought, HostError> {
        for (_, scenario) in settings {
            runner.check(&scenario.spec(self.plan.seed))?;
        }
        let repeated: Vec<_> = settings.iter().map(|(_, s)| (s, self.plan.repeat)).collect();
        let all = runner.repetitions(&repeated, |n, spec, turn| {
            let (run, scenario) = &settings[n];
            let record = turn.record(spec)?;
            let path = &self.paths[run.path];
            let bout = run.second.map(|_| Bout::of(&self.plan, path, spec, &record));
            let solo = run.second.is_none().then(|| Solo::of(path, spec, &record));
            let note = RunRecord {
                seed: record.seed,
                approximations: record.approximations.clone(),
                real_time: record.real_time.clone(),
                ..RunRecord::default()
            };
            let is_charted = draw && spec.seed == self.plan.seed;
            let charted =
                is_charted.then(|| Charted { run: *run, scenario: scenario.clone(), record });
            Ok::<_, HostError>((bout, solo, note, charted))
        })?;
        let (bouts, solos) = (BTreeMap::new(), BTreeMap::new());
        let mut outcome = Outcome { contest: self.clone(), bouts, solos };
        let (mut charted, mut notes) = (Vec::new(), Vec::new());
        for ((run, _), of_run) in settings.iter().zip(all) {
            for (repetition, (bout, solo, note, chart)) in (0..).zip(of_run) {
                let run = Run { repetition, ..*run };
                outcome.bouts.extend(bout.map(|bout| (run, bout)));
                outcome.solos.extend(solo.map(|solo| (run, solo)));
                notes.push(note);
                charted.extend(chart);
            }
        }
        Ok(Fought { outcome, charted, notes })
    }
}

/// Results of a contest.
pub struct Fought {
    /// The measures.
    pub outcome: Outcome,
    /// The first repetitions of all settings, if they are to be charted.
    pub charted: Vec<Charted>,
    /// The notes of every run, without its measurements.
    pub notes: Vec<RunRecord>,
}

/// All that was measured in a contest.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The contest that was run.
    pub contest: Contest,
    pub(super) bouts: BTreeMap<Run, Bout>,
    pub(super) solos: BTreeMap<Run, Solo>,
}

/// One entrant of a pair, over its runs: the results of `a` against `b`, and the harm to `b`.
/// Percentiles are those over all repetitions and both orders of the start in which the measure is defined.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Goodput of `a`, bit/s.
    pub goodput_a_bps: Option<Percentiles>,
    /// Goodput of `b`, bit/s.
    pub goodput_b_bps: Option<Percentiles>,
    /// Goodput of `a` as a fraction of that of both.
    pub share_a: Option<Percentiles>,
    /// Fraction of the goodput of `b` against itself that it loses against `a`.
    pub harm_goodput: Option<Percentiles>,
    /// Fraction of the round-trip time of `b` against `a` that it does not have against itself.
    pub harm_delay: Option<Percentiles>,
    /// Mean queueing delay, milliseconds.
    pub queueing_mean_ms: Option<Percentiles>,
    /// 95th percentile of the queueing delay, milliseconds.
    pub queueing_p95_ms: Option<Percentiles>,
    /// Fraction of the packets of `a` that were lost.
    pub loss_a: Option<Percentiles>,
    /// Fraction of the packets of `b` that were lost.
    pub loss_b: Option<Percentiles>,
    /// Fraction of the packets of both that were lost.
    pub loss_both: Option<Percentiles>,
    /// Jain's index of the two goodputs.
    pub jain: Option<Percentiles>,
    /// Convergence time of the runs that converged, seconds.
    pub convergence_s: Option<Percentiles>,
    /// Number of runs that converged.
    pub converged_runs: usize,
    /// Number of runs.
    pub runs: usize,
    /// Utilisation of the bottleneck.
    pub utilisation: Option<Percentiles>,
}

impl Cell {
    /// Median convergence time, those runs counted as longer that did not converge; `None` if that
    /// is half of them or more.
    pub fn usual_convergence_s(&self) -> Option<f64> {
        let usual = self.converged_runs * 2 > self.runs;
        self.convergence_s.filter(|_| usual).map(|c| c.p50)
    }
}

/// A run as one of its two flows sees it.
struct View<'a> {
    bout: &'a Bout,
    repetition: u32,
    /// Index of `a` in the bout; `b` is the other one.
    a: usize,
}

impl View<'_> {
    fn goodput_a(&self) -> f64 {
        self.bout.goodput_bps[self.a]
    }
    fn goodput_b(&self) -> f64 {
        self.bout.goodput_bps[1 - self.a]
    }
}

/// Harm of Ware et al. (HotNets 2019, section 4): the lost part of a measure, where more is better
/// (`before`, `now`).
fn lost_part(before: f64, now: f64) -> Option<f64> {
    (before > 0.0).then(|| (before - now) / before)
}

impl Outcome {
    /// The bouts of `first` and then `second`, with their repetitions.
    pub fn bouts(
        &self,
        path: usize,
        first: usize,
        second: usize,
    ) -> impl Iterator<Item = (u32, &Bout)> {
        let run = move |repetition| Run { path, first, second: Some(second), repetition };
        let range = self.bouts.range(run(0)..=run(u32::MAX));
        range.map(|(run, bout)| (run.repetition, bout))
    }

    /// The runs of `entrant` alone, with their repetitions.
    pub fn solos(&self, path: usize, entrant: usize) -> impl Iterator<Item = (u32, &Solo)> {
        let run = move |repetition| Run { path, first: entrant, second: None, repetition };
        let range = self.solos.range(run(0)..=run(u32::MAX));
        range.map(|(run, solo)| (run.repetition, solo))
    }

    /// The results of `a` against `b` on `path`, whoever started first.
    pub fn cell(&self, path: usize, a: usize, b: usize) -> Cell {
        let first = self.views(path, a, b, 0);
        let second = self.views(path, b, a, 1);
        self.cell_of(path, b, &first.chain(second).collect::<Vec<_>>())
    }

    /// The same of the runs in which `a` started first.
    pub fn cell_first(&self, path: usize, a: usize, b: usize) -> Cell {
        self.cell_of(path, b, &self.views(path, a, b, 0).collect::<Vec<_>>())
    }

    /// The same of the runs in which `b` started first.
    pub fn cell_second(&self, path: usize, a: usize, b: usize) -> Cell {
        self.cell_of(path, b, &self.views(path, b, a, 1).collect::<Vec<_>>())
    }

    fn views(
        &self,
        path: usize,
        first: usize,
        second: usize,
        a: usize,
    ) -> impl Iterator<Item = View<'_>> {
        self.bouts(path, first, second).map(move |(repetition, bout)| View { bout, repetition, a })
    }

    /// A flow of `b` against itself in a repetition: mean goodput of the two, bit/s, and round-trip time,
    /// milliseconds.
    fn baseline(&self, path: usize, b: usize, repetition: u32) -> Option<(f64, Option<f64>)> {
        let run = Run { path, first: b, second: Some(b), repetition };
        let bout = self.bouts.get(&run)?;
        Some((bout.goodput_bps.iter().sum::<f64>() / 2.0, bout.rtt_ms))
    }

    fn cell_of(&self, path: usize, b: usize, views: &[View<'_>]) -> Cell {
        let over =
            |of: &dyn Fn(&View<'_>) -> Option<f64>| Percentiles::of(views.iter().filter_map(of));
        // A cell of an entrant against itself holds each run from both views.
        let convergence_s = over(&|s| s.bout.convergence_s);
        let converged_runs = views.iter().filter(|s| s.bout.convergence_s.is_some()).count();
        Cell {
            goodput_a_bps: over(&|s| Some(s.goodput_a())),
            goodput_b_bps: over(&|s| Some(s.goodput_b())),
            share_a: over(&|s| {
                let sum = s.goodput_a() + s.goodput_b();
                (sum > 0.0).then(|| s.goodput_a() / sum)
            }),
            harm_goodput: over(&|s| {
                lost_part(self.baseline(path, b, s.repetition)?.0, s.goodput_b())
            }),
            // Where less is better, the two change places.
            harm_delay: over(&|s| {
                lost_part(s.bout.rtt_ms?, self.baseline(path, b, s.repetition)?.1?)
            }),
            queueing_mean_ms: over(&|s| s.bout.queueing_mean_ms),
            queueing_p95_ms: over(&|s| s.bout.queueing_p95_ms),
            loss_a: over(&|s| s.bout.loss[s.a]),
            loss_b: over(&|s| s.bout.loss[1 - s.a]),
            loss_both: over(&|s| s.bout.loss_both),
            jain: over(&|s| s.bout.jain),
            convergence_s,
            converged_runs,
            runs: views.len(),
            utilisation: over(&|s| s.bout.utilisation),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use knee_model::NS_PER_S;

    pub fn contest(entrants: &[&str], repeat: u32) -> Contest {
        Contest {
            entrants: entrants.iter().map(|e| Entrant::parse(e).unwrap()).collect(),
            paths: vec![WrittenPath::parse("100mbit,40ms,1bdp").unwrap()],
            plan: Plan { duration_ns: 60 * NS_PER_S, repeat, seed: 1, noise_ns: 0 },
        }
    }

    pub fn bout(first: f64, second: f64, queueing_ms: f64) -> Bout {
        Bout {
            goodput_bps: [first, second],
            loss: [Some(0.01), Some(0.03)],
            loss_both: Some(0.02),
            queueing_mean_ms: Some(queueing_ms),
            queueing_p95_ms: Some(2.0 * queueing_ms),
            rtt_ms: Some(40.0 + queueing_ms),
            jain: knee_results::metrics::jain(&[first, second]),
            convergence_s: (first > second).then_some(first - second),
            utilisation: Some(0.9),
        }
    }

    /// `chd` (0) and `newreno` (1), one repetition.
    pub fn outcome() -> Outcome {
        let run = |first, second| Run { path: 0, first, second: Some(second), repetition: 0 };
        let bouts = [
            (run(0, 0), bout(44e6, 46e6, 5.0)),
            (run(1, 1), bout(50e6, 30e6, 20.0)),
            (run(0, 1), bout(20e6, 60e6, 10.0)),
            (run(1, 0), bout(80e6, 10e6, 24.0)),
        ];
        let contest = contest(&["chd", "newreno"], 1);
        Outcome { contest, bouts: bouts.into(), solos: BTreeMap::new() }
    }

    fn at(p: Option<Percentiles>, want: [f64; 3]) {
        let p = p.expect("measured");
        for (got, want) in [p.p20, p.p50, p.p80].into_iter().zip(want) {
            assert!((got - want).abs() < 1e-9, "{p:?}, wanted {want}");
        }
    }

    /// Percentiles of two values lie at 0.2, 0.5, 0.8 of the way between them.
    fn two(low: f64, high: f64) -> [f64; 3] {
        [0.2, 0.5, 0.8].map(|part| low + (high - low) * part)
    }

    #[test]
    fn every_pair_both_ways_and_alone_with_solos() {
        let c = contest(&["chd", "newreno", "hd"], 2);
        let settings = c.settings(false).unwrap();
        assert_eq!(settings.len(), 9);
        let different: std::collections::BTreeSet<Run> = settings.iter().map(|(r, _)| *r).collect();
        assert_eq!(different.len(), 9, "none twice");
        let with_solos = c.settings(true).unwrap();
        assert_eq!(with_solos.len(), 9 + 3);
        let alone = with_solos.iter().find(|(run, _)| run.second.is_none()).unwrap();
        assert_eq!(alone.1.spec(1).flows.len(), 1);
    }

    #[test]
    fn harm_by_hand() {
        let o = outcome();
        // NewReno against itself: 40 Mbit/s each, 60 ms. Against CHD: 60 Mbit/s at 50 ms, and
        // 80 Mbit/s at 64 ms.
        let chd = o.cell(0, 0, 1);
        assert_eq!(chd.runs, 2);
        at(chd.share_a, two(1.0 / 9.0, 0.25));
        at(chd.harm_goodput, two(-1.0, -0.5));
        at(chd.harm_delay, two(-0.2, 0.0625)); // (50 - 60)/50, (64 - 60)/64
        at(chd.goodput_a_bps, two(10e6, 20e6));
        at(chd.loss_a, two(0.01, 0.03));
        // CHD against itself: 45 Mbit/s each, 45 ms. Against NewReno: 20 at 50 ms, 10 at 64 ms.
        let newreno = o.cell(0, 1, 0);
        at(newreno.share_a, two(0.75, 8.0 / 9.0));
        at(newreno.harm_goodput, two(25.0 / 45.0, 35.0 / 45.0));
        at(newreno.harm_delay, two(0.1, 19.0 / 64.0));
        // Measures of the pair are the same from both views.
        assert_eq!(chd.queueing_p95_ms, newreno.queueing_p95_ms);
        assert_eq!(chd.jain, newreno.jain);
        at(chd.jain, two(8100.0 / 13_000.0, 0.8)); // 90²/(2·6500), 80²/(2·4000)
        // Of one order only.
        at(o.cell_first(0, 0, 1).share_a, [0.25; 3]);
        at(o.cell_second(0, 0, 1).share_a, [1.0 / 9.0; 3]);
        at(o.cell_second(0, 0, 1).loss_a, [0.03; 3]);
    }

    #[test]
    fn against_itself_the_medians_are_even() {
        let o = outcome();
        let same = o.cell(0, 1, 1);
        // 50 and 30 of 80: ±1/8 around a half, ±1/4 around no harm.
        at(same.share_a, two(0.375, 0.625));
        at(same.harm_goodput, two(-0.25, 0.25));
        at(same.harm_delay, [0.0; 3]);
        assert_eq!(same.runs, 2, "each run from both views");
    }

    #[test]
    fn convergence_counts_those_that_never_do() {
        // Only the run with NewReno first converged, after 70 Ms.
        let cell = outcome().cell(0, 0, 1);
        assert_eq!((cell.converged_runs, cell.runs), (1, 2));
        assert_eq!(cell.convergence_s.map(|c| c.p50), Some(70e6));
        assert_eq!(cell.usual_convergence_s(), None, "half of the runs is not most");
        assert_eq!(outcome().cell(0, 1, 1).usual_convergence_s(), Some(20e6));
    }

    #[test]
    fn without_a_baseline_there_is_no_harm_to_tell() {
        let run = Run { path: 0, first: 0, second: Some(1), repetition: 0 };
        let bouts = BTreeMap::from([(run, bout(20e6, 60e6, 10.0))]);
        let o = Outcome { bouts, ..outcome() };
        assert_eq!(o.cell(0, 0, 1).harm_goodput, None);
        assert!(o.cell(0, 0, 1).share_a.is_some());
        assert_eq!(o.solos(0, 0).count(), 0);
    }
}
