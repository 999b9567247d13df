//! Formulas of claims and plots, in the Rhai language, over the runs of figures.
//!
//! `docs/reference/formulas.md` documents the functions for those who write claims.

use super::{
    cases::{Case, Cases},
    compiled,
    description::Figure,
    fluid::FluidSpec,
    language::engine,
};
use knee_fluid::{EbbCycle, Stability};
use knee_model::{RunRecord, RunSpec, milliseconds};
use knee_results::metrics::{self, METRICS, Metric, Metrics, Subject, percentile};
use rhai::{Array, Dynamic, Engine, EvalAltResult, Map, Position, Scope};
use std::{
    cell::Cell,
    collections::BTreeMap,
    ops::Range,
    rc::Rc,
    sync::{Arc, atomic::Ordering},
};

type Fallible<T> = Result<T, Box<EvalAltResult>>;

/// Error of a formula that needs a run which failed.
#[derive(Clone)]
struct FailedRun(String);

/// A formula's value in each repetition.
pub(crate) struct Values {
    /// Values of the repetitions whose runs did not fail.
    pub values: Vec<f64>,
    /// Reason of the first failed run.
    pub failed: Option<String>,
}

impl Values {
    fn collect(each: impl Iterator<Item = (usize, Fallible<f64>)>) -> Result<Self, String> {
        let mut all = Self { values: Vec::new(), failed: None };
        for (repetition, value) in each {
            match value {
                Ok(value) => all.values.push(value),
                Err(error) => match error.unwrap_inner() {
                    EvalAltResult::ErrorRuntime(inner, _) if inner.is::<FailedRun>() => {
                        all.failed = all.failed.or_else(|| Some(inner.clone_cast::<FailedRun>().0));
                    }
                    _ => return Err(format!("repetition {}: {error}", repetition + 1)),
                },
            }
        }
        Ok(all)
    }
}

/// A run as formulas see it: one repetition of one case.
#[derive(Clone)]
struct Run {
    figures: Arc<Vec<Cases>>,
    figure: usize,
    case: usize,
    repetition: usize,
}

impl Run {
    fn parts(&self) -> Fallible<(&RunSpec, &RunRecord)> {
        let case = &self.figures[self.figure].cases[self.case];
        case.used.store(true, Ordering::Relaxed);
        match case.records.get(self.repetition).ok_or("this repetition was not run")? {
            Ok(record) => Ok((&case.spec, record)),
            Err(error) => {
                let why = Dynamic::from(FailedRun(error.to_string()));
                Err(Box::new(EvalAltResult::ErrorRuntime(why, Position::NONE)))
            }
        }
    }

    fn measure(&self, what: &str, of: impl Fn(&Metrics) -> Option<f64>) -> Fallible<f64> {
        let (spec, record) = self.parts()?;
        of(&Metrics::new(spec, record))
            .ok_or_else(|| format!("{what}: {UNDEFINED} (empty window?)").into())
    }

    /// A metric of the table: of a flow, or of the run and its first queue.
    fn metric(
        &self,
        metric: &Metric,
        flow: Option<i64>,
        window_s: Option<(f64, f64)>,
    ) -> Fallible<f64> {
        let flow = flow.map(|flow| self.flow(flow)).transpose()?;
        self.measure(metric.name, |run| {
            metric.value(&match flow {
                Some(flow) => metrics::Scope::of_flow(*run, flow, window_s),
                None => metrics::Scope::of_run(*run, window_s),
            })
        })
    }

    /// Indices of the flows that `which` selects.
    fn select(&self, which: impl Fn(&Metrics) -> Vec<usize>) -> Fallible<Array> {
        let (spec, record) = self.parts()?;
        let flows = which(&Metrics::new(spec, record)).into_iter();
        Ok(flows.map(|flow| Dynamic::from(flow as i64)).collect())
    }

    fn flow(&self, flow: i64) -> Fallible<usize> {
        let n = self.parts()?.1.flows.len();
        usize::try_from(flow)
            .ok()
            .filter(|f| *f < n)
            .ok_or_else(|| format!("no flow {flow}: there are {n}").into())
    }
}

/// An argument of a function of a run.
trait Argument {
    type Value;

    fn value(&self, run: &Run) -> Fallible<Self::Value>;
}

type Flow = i64;
type Flows = Array;
type Number = Dynamic;

impl Argument for Flow {
    type Value = usize;

    fn value(&self, run: &Run) -> Fallible<usize> {
        run.flow(*self)
    }
}

impl Argument for Flows {
    type Value = Vec<usize>;

    fn value(&self, run: &Run) -> Fallible<Vec<usize>> {
        self.iter().map(|f| run.flow(f.as_int()?)).collect()
    }
}

impl Argument for Number {
    type Value = f64;

    fn value(&self, _: &Run) -> Fallible<f64> {
        number(self)
    }
}

/// Registers a measure of a run: its name, and its value by the metrics and the arguments.
macro_rules! measure {
    ($engine:expr, $name:literal, |$m:ident $(, $argument:ident: $kind:ty)*| $value:expr) => {
        $engine.register_fn($name, |r: &mut Run $(, $argument: $kind)*| -> Fallible<f64> {
            $(let $argument = $argument.value(r)?;)*
            r.measure($name, |$m| $value)
        });
    };
}

fn number(value: &Dynamic) -> Fallible<f64> {
    match (value.as_float(), value.as_int(), value.as_bool()) {
        (Ok(x), ..) => Ok(x),
        (_, Ok(n), _) => Ok(n as f64),
        (.., Ok(b)) => Ok(f64::from(u8::from(b))),
        _ => Err(format!("a number is needed, not {}", value.type_name()).into()),
    }
}

/// Name of an axis' value as a formula gives it.
fn axis_value(value: &Dynamic) -> String {
    value.as_float().map_or_else(|_| value.to_string(), |x| x.to_string())
}

/// Message for a measure that a run leaves undefined.
const UNDEFINED: &str = "undefined in this run";

/// The values of `formulas` of a run `r`; not a number where the run leaves one undefined.
///
/// # Errors
/// A formula that cannot be evaluated, in words.
pub(crate) fn measure(
    spec: &RunSpec,
    record: RunRecord,
    formulas: &[&str],
) -> Result<Vec<f64>, String> {
    let cases = Cases { figure: Figure::default(), cases: vec![Case::of_one(spec, record)] };
    let figures = Arc::new(vec![cases]);
    let all = Formulas::new(figures.clone());
    let value = |text: &&str| {
        let mut scope = Scope::new();
        scope.push("r", Run { figures: figures.clone(), figure: 0, case: 0, repetition: 0 });
        let value = all.engine.eval_with_scope::<Dynamic>(&mut scope, text);
        match value.and_then(|v| number(&v)).map_err(|e| e.to_string()) {
            Err(e) if e.contains(UNDEFINED) => Ok(f64::NAN),
            value => value.map_err(|e| format!("{text}: {e}")),
        }
    };
    formulas.iter().map(value).collect()
}

/// Evaluates formulas over the runs of figures.
pub(crate) struct Formulas {
    engine: Engine,
    figures: Arc<Vec<Cases>>,
    /// Figure that `run` means, and repetition that is evaluated.
    now: Rc<Cell<(usize, usize)>>,
}

impl Formulas {
    pub(crate) fn new(figures: Arc<Vec<Cases>>) -> Self {
        let now = Rc::new(Cell::new((0, 0)));
        let mut engine = engine();
        engine.register_type_with_name::<Run>("Run");
        Self::register_choice(&mut engine, &figures, &now);
        Self::register_measures(&mut engine);
        for (name, of) in
            [("min", f64::min as fn(f64, f64) -> f64), ("max", f64::max as fn(f64, f64) -> f64)]
        {
            engine.register_fn(name, move |a: Dynamic, b: Dynamic| -> Fallible<f64> {
                Ok(of(number(&a)?, number(&b)?))
            });
        }
        Self { engine, figures, now }
    }

    /// `run(#{...})`, `run(figure, #{...})`.
    fn register_choice(
        engine: &mut Engine,
        figures: &Arc<Vec<Cases>>,
        now: &Rc<Cell<(usize, usize)>>,
    ) {
        let choose = {
            let (figures, now) = (figures.clone(), now.clone());
            move |figure: usize, values: &Map| -> Fallible<Run> {
                let named: BTreeMap<String, String> =
                    values.iter().map(|(k, v)| (k.to_string(), axis_value(v))).collect();
                let case = figures[figure].find(&named)?;
                Ok(Run { figures: figures.clone(), figure, case, repetition: now.get().1 })
            }
        };
        let of_claim = (choose.clone(), now.clone());
        engine.register_fn("run", move |values: Map| (of_claim.0)(of_claim.1.get().0, &values));
        let figures = figures.clone();
        engine.register_fn("run", move |number: &str, values: Map| -> Fallible<Run> {
            let figure = figures.iter().position(|f| f.figure.number == number);
            choose(figure.ok_or_else(|| format!("figure {number} was not run"))?, &values)
        });
    }

    fn register_measures(engine: &mut Engine) {
        Self::register_table(engine);
        Self::register_samples(engine);
        Self::register_paths(engine);
        Self::register_flows(engine);
        Self::register_transfers(engine);
        Self::register_models(engine);
    }

    /// Functions of models and of compiled algorithms, which need no run.
    fn register_models(engine: &mut Engine) {
        engine.register_fn("htcp_alpha", |form: &str, elapsed_s: Dynamic| -> Fallible<f64> {
            Ok(compiled::htcp_alpha(form, number(&elapsed_s)?)?)
        });
        engine.register_fn("equilibria", |model: Map| -> Fallible<Array> {
            let spec: FluidSpec = rhai::serde::from_dynamic(&Dynamic::from_map(model))?;
            let found = spec.equilibria()?.into_iter().map(|e| {
                let mut map = Map::new();
                map.insert("delay_ms".into(), Dynamic::from(e.delay_s * 1e3));
                map.insert("window_pkts".into(), Dynamic::from(e.window_pkts));
                map.insert("probability".into(), Dynamic::from(e.probability));
                map.insert("stable".into(), Dynamic::from(e.stability == Stability::Stable));
                Dynamic::from_map(map)
            });
            Ok(found.collect())
        });
        engine.register_fn(
            "ebb_cycle",
            |rate_mbps: Dynamic, rtt_ms: Dynamic, flows: Dynamic| -> Fallible<Map> {
                let capacity_pps = number(&rate_mbps)? * 1e6 / 12_000.0;
                // The RTT without a queue has the time of one packet on the link.
                let rtt_s = number(&rtt_ms)? / 1e3 + 1.0 / capacity_pps;
                let cycle = EbbCycle::new(capacity_pps, rtt_s, number(&flows)?)
                    .map_err(|e| e.to_string())?;
                let mut map = Map::new();
                map.insert("period_s".into(), Dynamic::from(cycle.period_s));
                map.insert("queue_ms".into(), Dynamic::from(cycle.mean_queue_s * 1e3));
                Ok(map)
            },
        );
        engine.register_fn("response", |name: &str, q_ms: Dynamic| -> Fallible<f64> {
            Ok(compiled::response(name, number(&q_ms)?)?)
        });
    }

    /// Functions of flows within a window, or over the whole run.
    fn register_flows(engine: &mut Engine) {
        measure!(engine, "goodput", |m, flow: Flow, from: Number, to: Number| {
            m.goodput_bps(flow, from, to).map(|bps| bps / 1e6)
        });
        measure!(engine, "jain", |m, flows: Flows, from: Number, to: Number| {
            m.jain(&flows, from, to)
        });
        measure!(engine, "share", |m, group: Flows, others: Flows, from: Number, to: Number| {
            m.share(&group, &others, from, to)
        });
        measure!(engine, "mean_ratio", |m,
                                        group: Flows,
                                        others: Flows,
                                        from: Number,
                                        to: Number| {
            m.mean_ratio(&group, &others, from, to)
        });
        measure!(engine, "probe_delay", |m, flow: Flow, q: Number, from: Number, to: Number| {
            m.probe_delay_ms(flow, q, from, to)
        });
        measure!(engine, "loss", |m, flows: Flows| m.lost_fraction(&flows));
        measure!(engine, "of_capacity", |m, flows: Flows, from: Number, to: Number| {
            m.goodput_of_capacity(&flows, from, to)
        });
        measure!(engine, "loss_within", |m, flows: Flows, from: Number, to: Number| {
            m.loss_fraction(&flows, from, to)
        });
        measure!(engine, "sent", |m, flows: Flows, from: Number, to: Number| {
            m.sent_pkts(&flows, from, to)
        });
        measure!(engine, "mean_goodput", |m, flows: Flows, from: Number, to: Number| {
            let all = m.total_goodput_bps(&flows, from, to)?;
            (!flows.is_empty()).then(|| all / 1e6 / flows.len() as f64)
        });
        measure!(engine, "least_goodput", |m, flows: Flows, from: Number, to: Number| {
            let each = flows.iter().map(|f| m.goodput_bps(*f, from, to));
            each.collect::<Option<Vec<_>>>()?.into_iter().reduce(f64::min).map(|bps| bps / 1e6)
        });
        measure!(engine, "convergence", |m,
                                         flows: Flows,
                                         from: Number,
                                         to: Number,
                                         width: Number,
                                         jain: Number,
                                         hold: Number| {
            let time_s = m.convergence_s(&flows, from, to, width, jain, hold);
            Some(time_s.unwrap_or(to - from))
        });
        engine.register_fn("count", |r: &mut Run, flow: i64, what: &str| -> Fallible<f64> {
            let flow = r.flow(flow)?;
            let counters = serde_json::to_value(r.parts()?.1.flows[flow].counters);
            let counters = counters.map_err(|e| e.to_string())?;
            counters
                .get(what)
                .and_then(serde_json::Value::as_f64)
                .ok_or_else(|| format!("no such counter: `{what}`").into())
        });
    }

    /// The metrics of the table by name: of the run and its first queue, or of a flow; those that take a
    /// window also with one.
    fn register_table(engine: &mut Engine) {
        for metric in METRICS {
            if metric.subject == Subject::Flow {
                engine.register_fn(metric.name, |r: &mut Run, flow: i64| {
                    r.metric(metric, Some(flow), None)
                });
            } else {
                engine.register_fn(metric.name, |r: &mut Run| r.metric(metric, None, None));
            }
            if !metric.is_windowed() {
                continue;
            }
            if metric.subject == Subject::Flow {
                engine.register_fn(
                    metric.name,
                    |r: &mut Run, flow: i64, from: Dynamic, to: Dynamic| {
                        r.metric(metric, Some(flow), Some((number(&from)?, number(&to)?)))
                    },
                );
            } else {
                engine.register_fn(metric.name, |r: &mut Run, from: Dynamic, to: Dynamic| {
                    r.metric(metric, None, Some((number(&from)?, number(&to)?)))
                });
            }
        }
    }

    /// Functions of transfers, of all sizes or of some.
    fn register_transfers(engine: &mut Engine) {
        /// Sizes from `least` to below `below`, bytes.
        fn sizes(least: f64, below: f64) -> Range<u64> {
            least.max(0.0) as u64..below.max(0.0) as u64
        }
        const ALL: Range<u64> = 0..u64::MAX;
        measure!(engine, "completion", |m, flows: Flows, q: Number| {
            percentile(&m.completion_times_s(&flows, &ALL), q)
        });
        measure!(engine, "completion", |m,
                                        flows: Flows,
                                        q: Number,
                                        least: Number,
                                        below: Number| {
            percentile(&m.completion_times_s(&flows, &sizes(least, below)), q)
        });
        measure!(engine, "unfinished", |m, flows: Flows| Some(m.unfinished(&flows, &ALL) as f64));
        measure!(engine, "unfinished", |m, flows: Flows, least: Number, below: Number| {
            Some(m.unfinished(&flows, &sizes(least, below)) as f64)
        });
        measure!(engine, "stalled", |m, flow: Flow| m.stalled_s(flow));
    }

    /// Functions of the path, and of the names of flows.
    fn register_paths(engine: &mut Engine) {
        engine.register_fn("base_rtt", |r: &mut Run| -> Fallible<f64> {
            let path = &r.parts()?.0.path;
            Ok(milliseconds(path.delay_forward_ns + path.delay_reverse_ns))
        });
        measure!(engine, "rate", |m, from: Number, to: Number| {
            m.rate_bps(from, to).map(|bps| bps / 1e6)
        });
        measure!(engine, "mean_queueing_delay", |m, from: Number, to: Number| {
            m.mean_queueing_delay_ms(from, to)
        });
        measure!(engine, "max_queueing_delay", |m, from: Number, to: Number| {
            m.max_queueing_delay_ms(from, to)
        });
        measure!(engine, "mean_queue", |m, from: Number, to: Number| m.mean_queue_pkts(from, to));
        measure!(engine, "delay_percentile", |m, q: Number, from: Number, to: Number| {
            m.queueing_delay_percentile_ms(q, from, to)
        });
        engine.register_fn("flows", |r: &mut Run, kind: &str| r.select(|m| m.flows_of(kind)));
        engine.register_fn("source", |r: &mut Run, name: &str| r.select(|m| m.flows_from(name)));
        engine.register_fn("named", |r: &mut Run, name: &str| -> Fallible<Array> {
            let flows = &r.parts()?.1.flows;
            let copy = |rest: &str| {
                let number = rest.strip_prefix('-');
                rest.is_empty() || number.is_some_and(|n| n.parse::<u32>().is_ok())
            };
            let is_meant = |full: &str| full.strip_prefix(name).is_some_and(copy);
            let found = flows.iter().enumerate().filter(|(_, f)| is_meant(&f.name));
            Ok(found.map(|(i, _)| Dynamic::from(i as i64)).collect())
        });
    }

    /// Functions of a flow at a time.
    fn register_samples(engine: &mut Engine) {
        measure!(engine, "lost", |m, flow: Flow, from: Number, to: Number| {
            m.lost_pkts(flow, from, to)
        });
        engine.register_fn(
            "loss_times",
            |r: &mut Run, flow: i64, gap: Dynamic| -> Fallible<Array> {
                let (flow, gap) = (r.flow(flow)?, number(&gap)?);
                let (spec, record) = r.parts()?;
                let times = Metrics::new(spec, record).loss_times_s(flow, gap);
                Ok(times.into_iter().map(Dynamic::from).collect())
            },
        );
        measure!(engine, "window", |m, flow: Flow, at: Number| {
            m.sample(flow, at).map(|sample| f64::from(sample.cwnd_pkts))
        });
        engine.register_fn(
            "observed",
            |r: &mut Run, flow: i64, name: &str, at: Dynamic| -> Fallible<f64> {
                let (flow, at) = (r.flow(flow)?, number(&at)?);
                let names = r.parts()?.1.flows[flow].observes;
                let which = names.iter().position(|n| *n == name && !n.is_empty());
                let which = which.ok_or_else(|| {
                    format!("flow {flow} observes no `{name}`, but {}", names.join(" "))
                })?;
                r.measure(name, |m| m.sample(flow, at).map(|s| f64::from(s.observed[which])))
            },
        );
    }

    /// The index of the figure of this number among the cases.
    pub(crate) fn index(&self, figure: &str) -> Result<usize, String> {
        self.figures
            .iter()
            .position(|f| f.figure.number == figure)
            .ok_or_else(|| format!("figure {figure} was not run"))
    }

    /// `formula`, in which `run(#{...})` means the cases at `index`, for each repetition.
    pub(crate) fn per_repetition(&self, index: usize, formula: &str) -> Result<Values, String> {
        let ast = self.engine.compile(formula).map_err(|e| e.to_string())?;
        let cases = &self.figures[index].cases;
        let run = cases.iter().filter(|c| c.repetitions > 0);
        // A figure without runs has one value.
        let repetitions = run.map(|c| c.records.len()).min().unwrap_or(1);
        Values::collect((0..repetitions).map(|r| {
            self.now.set((index, r));
            (r, self.engine.eval_ast::<Dynamic>(&ast).and_then(|v| number(&v)))
        }))
    }

    /// `formula` of a run `r` of `figure`'s case with the values `named`, for each repetition.
    pub(crate) fn of_case(
        &self,
        figure: &str,
        named: &BTreeMap<String, String>,
        formula: &str,
    ) -> Result<Vec<f64>, String> {
        let index = self.index(figure)?;
        let cases = &self.figures[index];
        let case = cases.find(named)?;
        let ast = self.engine.compile(formula).map_err(|e| e.to_string())?;
        let each = (0..cases.cases[case].records.len()).map(|repetition| {
            let figures = self.figures.clone();
            let mut scope = Scope::new();
            scope.push("r", Run { figures, figure: index, case, repetition });
            let value = self.engine.eval_ast_with_scope::<Dynamic>(&mut scope, &ast);
            (repetition, value.and_then(|v| number(&v)))
        });
        Values::collect(each).map(|all| all.values)
    }

    /// `formula` of `x`.
    pub(crate) fn of_x(&self, formula: &str, x: f64) -> Result<f64, String> {
        let mut scope = Scope::new();
        scope.push("x", x);
        let value = self.engine.eval_with_scope::<Dynamic>(&mut scope, formula);
        value.and_then(|v| number(&v)).map_err(|e| e.to_string())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use knee_fixtures as testing;
    use knee_model::{
        FlowKind, NS_PER_MS as MS, NS_PER_S, QueueBin, Transfer, Unfinished, Workload,
    };

    /// 4 s in bins of 1 s on 1 Mbit/s: a flow of CHD, one of NewReno, a probe, one flow of the
    /// source `web`, and a video.
    fn run() -> (RunSpec, RunRecord) {
        let mut r = testing::record(
            4.0,
            1.0,
            vec![
                testing::flow("a", "chd", &[1000, 3000, 2000, 2000]),
                testing::flow("b", "newreno", &[0, 1000, 2000, 2000]),
                testing::flow("probe", "probe", &[0; 4]),
                testing::flow("web#1", "newreno", &[0; 4]),
                testing::flow("video", "hd", &[0; 4]),
            ],
        );
        let samples = r.flows[0].samples.iter_mut().zip([(1, 10), (2, 20), (0, 30), (4, 40)]);
        for (sample, (lost, cwnd)) in samples {
            (sample.sent_pkts, sample.lost_pkts, sample.cwnd_pkts) = (10, lost, cwnd);
            sample.observed = [cwnd * 100, cwnd * 1000, 0, 1];
        }
        let counters = &mut r.flows[0].counters;
        (counters.sent_pkts, counters.queue_drops_pkts, counters.random_losses_pkts) = (90, 6, 3);
        counters.timeouts = 2;
        let sent_and_delay = [(0, 50), (1, 40), (2, 60), (3, 90)];
        r.flows[2].probe_delays = sent_and_delay.map(|(s, ms)| (s * NS_PER_S, ms * MS)).to_vec();
        let took = |ms, bytes| Transfer { start_ns: NS_PER_S, end_ns: NS_PER_S + ms * MS, bytes };
        r.flows[3].source = "web".to_owned();
        r.flows[3].transfers = vec![took(300, 9999), took(100, 100), took(900, 10_000)];
        r.flows[3].unfinished =
            vec![Unfinished { start_ns: 0, bytes: 500 }, Unfinished { start_ns: 0, bytes: 20_000 }];
        // Chunks of 1 s arrive at 0.5, 1.8 and 2.0 s; the fourth does not.
        let ends_ms = [500, 1800, 2000];
        r.flows[4].transfers =
            ends_ms.map(|ms| Transfer { start_ns: 0, end_ns: ms * MS, bytes: 1 }).to_vec();
        r.flows[4].unfinished = vec![Unfinished { start_ns: 3 * NS_PER_S, bytes: 1 }];
        let bin = |pkts: u32, mean_ms: u64, max_ms: u64, held_pkts| QueueBin {
            departed_pkts: pkts,
            departed_bytes: u64::from(pkts) * 1250,
            delay_sum_ns: u64::from(pkts) * mean_ms * MS,
            delay_max_ns: max_ms * MS,
            held_pkts,
            ..QueueBin::default()
        };
        r.queues[0] = testing::queue(&[
            bin(10, 1, 2, 4),
            bin(20, 4, 8, 8),
            bin(0, 0, 0, 0),
            bin(40, 10, 30, 2),
        ]);
        let mut spec = testing::spec(&r);
        if let FlowKind::Tcp(tcp) = &mut spec.flows[4].kind {
            tcp.workload = Workload::Transfers { size_bytes: 1, every_ns: Some(NS_PER_S) };
        }
        (spec, r)
    }

    /// Figure 1 with two values of an axis, figure 2 with one run. `records`: the repetitions of figure 1's
    /// first case.
    pub(crate) fn formulas(records: Vec<Result<RunRecord, String>>) -> Formulas {
        let figure = |number: &str| -> Figure {
            let text = format!(
                "number = \"{number}\"\ntitle = \"\"\n[[axis]]\nname = \"size\"\nset = \"x\"\n\
                 values = [10, 20]\n"
            );
            toml::from_str(&text).expect("a figure")
        };
        let (spec, record) = run();
        let twice = |mut record: RunRecord| {
            record.flows[0].samples.iter_mut().for_each(|s| s.cwnd_pkts *= 2);
            record
        };
        let second = records.iter().map(|_| Ok(twice(record.clone()))).collect();
        let cases = |number, records| Cases {
            figure: figure(number),
            cases: vec![
                Case::made_by_hand(&["10"], spec.clone(), records),
                Case::made_by_hand(&["20"], spec.clone(), second),
            ],
        };
        let first = cases("1", records);
        let other = Cases {
            figure: figure("2"),
            cases: vec![Case::made_by_hand(&["10"], spec.clone(), vec![Ok(twice(record.clone()))])],
        };
        Formulas::new(Arc::new(vec![first, other]))
    }

    pub(crate) fn record() -> RunRecord {
        run().1
    }

    fn value(formula: &str) -> Result<f64, String> {
        let found = formulas(vec![Ok(record())]).per_repetition(0, formula)?;
        assert_eq!((found.values.len(), found.failed), (1, None), "{formula}");
        Ok(found.values[0])
    }

    #[track_caller]
    fn is(formula: &str, expected: f64) {
        let found = value(formula).unwrap_or_else(|e| panic!("{formula}: {e}"));
        assert!((found - expected).abs() < 1e-9, "{formula}: {found}, by hand {expected}");
    }

    #[test]
    fn goodputs_and_shares() {
        // 5000 B in 2 s.
        is("run(#{}).goodput(0, 1, 3)", 0.02);
        is("run(#{}).goodput(0, 0.5, 1)", 0.008);
        // 3000 and 1000 B: 16 / (2 · 10).
        is("run(#{}).jain([0, 1], 1, 2)", 0.8);
        is("run(#{}).share([0], [1], 0, 4)", 8.0 / 13.0);
        is("run(#{}).share([0, 1], [2], 0, 4)", 1.0);
        is("run(#{}).mean_ratio([0], [1], 0, 4)", 1.6);
        is("run(#{}).mean_ratio([0, 1], [1], 1, 2)", 2.0);
        // Jain's index by the second: 0.5, 0.8, 1, 1.
        is("run(#{}).convergence([0, 1], 0, 4, 1, 0.99, 1)", 2.0);
        is("run(#{}).convergence([0, 1], 0, 4, 1, 0.75, 1)", 1.0);
        is("run(#{}).convergence([0, 1], 1, 3, 1, 0.99, 1)", 2.0); // never, within 2 s
    }

    #[test]
    fn the_bottleneck() {
        is("run(#{}).mean_queueing_delay(0, 2)", 3.0); // (10·1 + 20·4) / 30
        is("run(#{}).max_queueing_delay(0, 2)", 8.0);
        is("run(#{}).mean_queue(0, 4)", 3.5);
        is("run(#{}).utilisation(0, 4)", 0.175); // 70 packets of 10 kbit in 4 s
        is("run(#{}).probe_delay(2, 0.5, 0, 3)", 50.0);
        is("run(#{}).probe_delay(2, 0.25, 0, 3)", 45.0);
    }

    #[test]
    fn every_metric_is_a_function() {
        let (spec, record) = run();
        let run = Metrics::new(&spec, &record);
        let of_run = |window_s| metrics::Scope::of_run(run, window_s);
        let of_flow = |window_s| metrics::Scope::of_flow(run, 0, window_s);
        for metric in METRICS {
            let name = metric.name;
            let both = match metric.subject {
                Subject::Flow => [("(0)", of_flow(None)), ("(0, 1, 3)", of_flow(Some((1.0, 3.0))))],
                _ => [("()", of_run(None)), ("(1, 3)", of_run(Some((1.0, 3.0))))],
            };
            for (arguments, scope) in &both[..1 + usize::from(metric.is_windowed())] {
                let found = value(&format!("run(#{{}}).{name}{arguments}"));
                match metric.value(scope) {
                    Some(expected) => assert_eq!(found, Ok(expected), "{name}{arguments}"),
                    None => assert!(found.is_err_and(|e| e.contains(UNDEFINED)), "{name}"),
                }
            }
        }
        is("run(#{}).queueing_delay_mean_ms(0, 2)", 3.0);
        is("run(#{}).goodput_bps(0, 1, 3)", 20_000.0);
        is("run(#{}).goodput_bps(1, 2)", 32_000.0); // 3000 and 1000 B
        is("run(#{}).timeouts(0)", 2.0);
        let error = value("run(#{}).timeouts(0, 1, 2)").expect_err("a count takes no window");
        assert!(error.contains("Function not found"), "{error}");
    }

    #[test]
    fn states_losses_and_counters() {
        is("run(#{}).lost(0, 0.5, 2)", 2.5);
        is("run(#{}).loss([0])", 0.1);
        is("run(#{}).loss_times(0, 1).len()", 3.0);
        is("run(#{}).loss_times(0, 2)[1]", 3.0);
        is("run(#{}).window(0, 1.5)", 20.0);
        is("run(#{}).observed(0, \"h_us\", 2.5)", 3000.0);
        is("run(#{}).observed(0, \"qmax_us\", 3.5)", 40_000.0);
        is("run(#{}).count(0, \"timeouts\")", 2.0);
    }

    #[test]
    fn flows_and_transfers() {
        is("run(#{}).flows(\"chd\")[0]", 0.0);
        // Those of sources are not among them.
        is("run(#{}).flows(\"newreno\").len()", 1.0);
        is("run(#{}).flows(\"probe\")[0]", 2.0);
        is("run(#{}).source(\"web\")[0]", 3.0);
        is("run(#{}).source(\"other\").len()", 0.0);
        is("run(#{}).completion([3], 0.5)", 0.3);
        is("run(#{}).completion([3], 1)", 0.9);
        is("run(#{}).completion([3], 0.5, 0, 10000)", 0.2); // 0.1 and 0.3
        is("run(#{}).unfinished([3])", 2.0);
        is("run(#{}).unfinished([3], 0, 10000)", 1.0);
        // The second chunk is needed at 1.5 s, comes 0.3 s late; the fourth is needed at 3.8 s, and
        // the run ends at 4 s.
        is("run(#{}).stalled(4)", 0.5);
    }

    #[test]
    fn formulas_without_runs() {
        is("min(3, 2.5)", 2.5);
        is("max(3, 2.5)", 3.0);
        is("1 < 2", 1.0);
        is("let a = 2; a > 3", 0.0);
        // 1 + 10 (3 - 1) + ((3 - 1) / 2)²; nothing is added within the first second.
        is("htcp_alpha(\"exact\", 3)", 22.0);
        is("htcp_alpha(\"exact\", 0.5)", 1.0);
        // PERT's gentle RED: 0 to 5 % from 5 to 10 ms, to 100 % at 20 ms.
        let response = |q| value(&format!("response(\"pert\", {q})")).expect("a probability");
        for (q_ms, expected) in [(4.0, 0.0), (7.5, 0.025), (10.0, 0.05), (15.0, 0.525)] {
            assert!((response(q_ms) - expected).abs() < 1e-3, "{q_ms}: {}", response(q_ms));
        }
        // 1000 packets/s, 10 flows, 100 ms: at a delay of 100 ms a window of 20 packets, for which
        // 2/W² is 0.005; g is that half way from 50 to 150 ms.
        let equilibrium = |of: &str| {
            format!(
                "equilibria(#{{rule: \"hd\", rate_mbps: 8.0, packet_bytes: 1000.0, queue_ms: 500.0, \
                 rtt_ms: 100.0, flows: 10, qmin_ms: 50.0, qth_ms: 150.0, qmax_ms: 200.0, pmax: 0.01}})\
                 .filter(|e| e.stable)[0].{of}"
            )
        };
        for (of, expected) in [("delay_ms", 100.0), ("window_pkts", 20.0), ("probability", 0.005)] {
            let found = value(&equilibrium(of)).expect("an equilibrium");
            assert!((found / expected - 1.0).abs() < 1e-6, "{of}: {found}");
        }
    }

    #[test]
    fn runs_are_chosen_by_axis_and_figure() {
        is("run(#{size: 10}).window(0, 0)", 10.0);
        is("run(#{size: 20}).window(0, 0)", 20.0);
        is("run(\"2\", #{}).window(0, 3)", 80.0);
        let of_case = formulas(vec![Ok(record()), Ok(record())]).of_case(
            "1",
            &BTreeMap::from([("size".to_owned(), "20".to_owned())]),
            "r.window(0, 1)",
        );
        assert_eq!(of_case, Ok(vec![40.0, 40.0]));
        assert_eq!(formulas(Vec::new()).of_x("2 * x + 1", 3.5), Ok(8.0));
    }

    #[test]
    fn a_failed_evaluation_is_reported() {
        for (formula, why) in [
            ("run(#{size: 30}).window(0, 0)", "has no value `30`"),
            ("run(#{length: 1}).window(0, 0)", "has no axis `length`"),
            ("run(\"3\", #{}).window(0, 0)", "figure 3 was not run"),
            ("run(#{}).goodput(5, 0, 1)", "no flow 5: there are 5"),
            ("run(#{}).goodput(0, 3, 5)", "undefined in this run"),
            ("run(#{}).mean_queueing_delay(2, 3)", "undefined in this run"),
            ("run(#{}).count(0, \"colds\")", "no such counter: `colds`"),
            ("run(#{}).observed(0, \"colour\", 0)", "observes no `colour`"),
            ("response(\"nobody\", 1)", "nobody"),
            ("htcp_alpha(\"other\", 1)", "no choice `other`"),
            ("\"text\"", "a number is needed"),
            ("loop {}", "operations"),
        ] {
            let error = value(formula).expect_err(formula);
            assert!(error.contains(why), "{formula}: {error}");
        }
    }

    #[test]
    fn failed_runs_are_left_out() {
        let some = formulas(vec![Err("late".to_owned()), Ok(record()), Err("later".to_owned())]);
        let found = some.per_repetition(0, "run(#{}).window(0, 0)").expect("values");
        assert_eq!((found.values, found.failed.as_deref()), (vec![10.0], Some("late")));
        let found = some.per_repetition(0, "run(#{size: 20}).window(0, 0)").expect("values");
        assert_eq!((found.values.len(), found.failed), (3, None));
    }
}
