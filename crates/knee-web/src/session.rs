//! Requests and answers.

use crate::{
    Refusal, catalogue, document, document::Edit, events, series, series::Want,
    statistics::statistics, theory,
};
use knee_model::{FlowSpec, NS_PER_MS, Ns, Progress, RunRecord, RunSpec, digest, seconds};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{collections::BTreeMap, fmt::Write as _};

/// Bins of a run whose scenario asks for fewer: enough for a wide screen.
const BINS_LEAST: u64 = 2000;
/// Bins of several flows together that a run keeps at most.
const ROWS_MAX: u64 = 12_000_000;

/// The watcher of a run that is under way: it receives the completed part, 0 to 1.
pub type Watch<'a> = &'a mut dyn FnMut(f64);

/// The answer to a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// JSON: the answer, or a [`Refusal`], which alone has a key `error`.
    pub text: String,
    /// Columns of numbers, one after the other, where the request asks for some.
    pub numbers: Vec<f64>,
}

/// The runs that a page holds.
#[derive(Debug, Default)]
pub struct Session {
    runs: BTreeMap<u32, Run>,
}

#[derive(Debug)]
struct Run {
    spec: RunSpec,
    record: RunRecord,
}

/// A request of the page.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", tag = "op")]
enum Request {
    /// Algorithms and scenarios.
    Catalogue,
    /// A scenario's text after some changes, and its contents; refused if it is no scenario.
    Edit {
        text: String,
        #[serde(default)]
        edits: Vec<Edit>,
    },
    /// Simulates the first repetition of a scenario and keeps it as `slot`.
    Run { slot: u32, text: String },
    /// Lets a run go.
    Forget { slot: u32 },
    /// Columns for a chart.
    Series { slot: u32, wants: Vec<Want>, from_s: f64, to_s: f64, columns: usize },
    /// The reductions of a run, from a second run with the trace on.
    Reductions { text: String },
    /// The fluid model of a scenario.
    Theory { text: String },
    /// The time series of a run as CSV.
    Csv { slot: u32 },
    /// SHA-256 of the record of a scenario's first repetition, exactly as the scenario has it.
    Digest { text: String },
}

type Answered = Result<Answer, Refusal>;

fn answer(answer: &impl Serialize, numbers: Vec<f64>) -> Answered {
    let text = serde_json::to_string(answer).map_err(|error| Refusal::new(error, ""))?;
    Ok(Answer { text, numbers })
}

fn text(text: &str) -> Answered {
    answer(&json!({ "text": text }), Vec::new())
}

/// A refusal instead of the answer, if it is one.
fn answered(answered: Answered) -> Answer {
    answered.unwrap_or_else(|refusal| Answer {
        text: serde_json::to_string(&refusal).unwrap_or_default(),
        numbers: Vec::new(),
    })
}

impl Session {
    /// Answers a request in JSON. `watch` is told how far a run is.
    pub fn answer(&mut self, request: &[u8], watch: Watch<'_>) -> Answer {
        let request = serde_json::from_slice(request)
            .map_err(|error| Refusal::new(format!("no such request: {error}"), "reload the page"));
        answered(request.and_then(|request| self.perform(request, watch)))
    }

    /// Keeps a run that another host made of `spec`; the answer is that to `run`.
    #[cfg(not(target_family = "wasm"))]
    pub fn add(&mut self, slot: u32, spec: RunSpec, record: RunRecord) -> Answer {
        answered(self.keep(slot, spec, record))
    }

    /// Keeps a run of `spec` that another host has begun; the answer is that to `run`, with all totals 0.
    #[cfg(not(target_family = "wasm"))]
    pub fn begin(&mut self, slot: u32, spec: RunSpec) -> Answer {
        let record = crate::live::begun(&spec);
        self.add(slot, spec, record)
    }

    /// Adds what the host tells of that run.
    #[cfg(not(target_family = "wasm"))]
    pub fn tell(&mut self, slot: u32, told: Progress) {
        if let Some(run) = self.runs.get_mut(&slot) {
            crate::live::add(&mut run.record, told);
        }
    }

    fn keep(&mut self, slot: u32, spec: RunSpec, record: RunRecord) -> Answered {
        let statistics = statistics(&spec, &record);
        self.runs.insert(slot, Run { spec, record });
        answer(&statistics, Vec::new())
    }

    fn perform(&mut self, request: Request, watch: Watch<'_>) -> Answered {
        match request {
            Request::Catalogue => answer(&catalogue::catalogue(), Vec::new()),
            Request::Edit { text, edits } => edit(&text, &edits),
            Request::Run { slot, text } => {
                // Its memory may be needed.
                self.runs.remove(&slot);
                let spec = spec_to_draw(&text)?;
                let record = simulate(&spec, watch)?;
                self.keep(slot, spec, record)
            }
            Request::Forget { slot } => {
                self.runs.remove(&slot);
                answer(&(), Vec::new())
            }
            Request::Series { slot, wants, from_s, to_s, columns } => {
                let run = self.run(slot)?;
                let (count, numbers) = series::columns(&run.record, &wants, from_s, to_s, columns);
                answer(&json!({ "count": count }), numbers)
            }
            Request::Reductions { text } => {
                let mut spec = spec(&text)?;
                if events::packets(&spec) > events::PACKETS_MAX {
                    return Err(Refusal::new(
                        "the run is too long for a trace of every call",
                        "shorten it or lower the rate to see which rule fired",
                    ));
                }
                spec.record = knee_model::RecordSpec { trace: true, ..Default::default() };
                answer(&events::reductions(&simulate(&spec, watch)?), Vec::new())
            }
            Request::Theory { text } => {
                let (theory, numbers) = theory::theory(&spec(&text)?)?;
                answer(&theory, numbers)
            }
            Request::Csv { slot } => text(&csv(self.run(slot)?)),
            Request::Digest { text: of } => text(&digest(&simulate(&spec(&of)?, watch)?)?),
        }
    }

    fn run(&self, slot: u32) -> Result<&Run, Refusal> {
        self.runs.get(&slot).ok_or_else(|| Refusal::new("nothing has run yet", "run a scenario"))
    }
}

fn edit(text: &str, edits: &[Edit]) -> Answered {
    let text = document::edited(text, edits)?;
    let scenario = document::scenario(&text)?;
    let spec = scenario.spec(scenario.seed());
    let flow = |flow: &FlowSpec| {
        json!({
            "name": flow.name,
            "start_s": seconds(flow.start_ns),
            "stop_s": seconds(flow.stop_ns.unwrap_or(spec.duration_ns)),
        })
    };
    let flows = spec.flows.iter().filter(|flow| flow.drawn.is_none()).map(flow);
    let edited = json!({
        "document": document::view(&text)?,
        "title": scenario.title(),
        "duration_s": seconds(spec.duration_ns),
        // For an estimate of the run's time.
        "packets": events::packets(&spec) as f64,
        "flows": flows.collect::<Vec<_>>(),
        "text": text,
    });
    answer(&edited, Vec::new())
}

fn spec(text: &str) -> Result<RunSpec, Refusal> {
    let scenario = document::scenario(text)?;
    Ok(scenario.spec(scenario.seed()))
}

/// The first repetition of a scenario, with a time series to draw and nothing else recorded.
///
/// # Errors
/// No scenario, or one whose time series would be too long.
pub fn spec_to_draw(text: &str) -> Result<RunSpec, Refusal> {
    let mut spec = spec(text)?;
    spec.record = knee_model::RecordSpec { bin_ns: bin_ns(&spec)?, ..Default::default() };
    Ok(spec)
}

/// Bins fine enough to look at: the scenario's, or shorter ones where they are few.
fn bin_ns(spec: &RunSpec) -> Result<Ns, Refusal> {
    let fine_ns = (spec.duration_ns / BINS_LEAST / NS_PER_MS).max(1) * NS_PER_MS;
    let named = spec.flows.iter().filter(|flow| flow.drawn.is_none()).count() as u64;
    let bin_ns = match spec.record.bin_ns {
        0 => fine_ns,
        given => given.min(fine_ns),
    };
    // Many flows for a long time: no finer than the scenario asks for.
    let rows = |bin_ns: Ns| (spec.duration_ns / bin_ns).saturating_mul(named.max(1));
    if rows(bin_ns) <= ROWS_MAX {
        return Ok(bin_ns);
    }
    let given = spec.record.bin_ns;
    if given > 0 && rows(given) <= ROWS_MAX {
        return Ok(given);
    }
    Err(Refusal::new(
        format!("the time series would have {} rows; a page holds {ROWS_MAX}", rows(bin_ns)),
        "lengthen `bin` in [record], or shorten `duration`",
    ))
}

fn simulate(spec: &RunSpec, watch: Watch<'_>) -> Result<RunRecord, Refusal> {
    let duration_ns = spec.duration_ns as f64;
    let mut watch = |progress| {
        if let Progress::At(now_ns) = progress {
            watch(now_ns as f64 / duration_ns);
        }
    };
    knee_sim::run_watched(spec, &mut watch)
        .map_err(|error| Refusal::new(error, "the lab runs the simulator only"))
}

/// SHA-256 of the record as `postcard` has it, hexadecimal.
fn digest(record: &RunRecord) -> Result<String, Refusal> {
    let bytes = postcard::to_stdvec(record).map_err(|error| Refusal::new(error, ""))?;
    Ok(digest::of_bytes(bytes))
}

/// One row per bin and flow.
fn csv(run: &Run) -> String {
    let Run { spec, record } = run;
    let mut text = String::from(
        "time_s,flow,cwnd_pkts,ssthresh_pkts,inflight_pkts,srtt_us,delivered_bytes,sent_pkts,\
         lost_pkts,queue_pkts,queue_delay_mean_us\n",
    );
    let end_s = seconds(record.duration_ns);
    let named = spec.flows.iter().zip(&record.flows).filter(|(of, _)| of.drawn.is_none());
    let flows: Vec<_> = named.map(|(_, flow)| flow).collect();
    for bin in 0..series::bins(record) {
        let time_s = ((bin + 1) as f64 * record.bin_ns as f64 / 1e9).min(end_s);
        let queue = record.queues.first().and_then(|queue| queue.bins.get(bin));
        let (held, delay) = queue.map_or((0, String::new()), |b| {
            let mean_us = b.delay_sum_ns as f64 / f64::from(b.departed_pkts) / 1e3;
            (b.held_pkts, if b.departed_pkts > 0 { format!("{mean_us:.3}") } else { String::new() })
        });
        for flow in &flows {
            let Some(s) = flow.sample(bin) else { continue };
            let _ = writeln!(
                text,
                "{time_s},{},{},{},{},{},{},{},{},{held},{delay}",
                flow.name,
                s.cwnd_pkts,
                s.ssthresh_pkts,
                s.inflight_pkts,
                s.srtt_us,
                s.delivered_bytes,
                s.sent_pkts,
                s.lost_pkts
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const TEXT: &str = "# kept\nduration = \"5s\"\n[path]\nrate = \"8mbit\"\nrtt = \"40ms\"\nqueue = \
                        \"50p\"\n[[flow]]\ncc = \"chd\"\n";

    fn ask(session: &mut Session, request: Value) -> (Value, Vec<f64>) {
        let Answer { text, numbers } = session.answer(request.to_string().as_bytes(), &mut |_| ());
        (serde_json::from_str(&text).expect("answers are JSON"), numbers)
    }

    #[test]
    fn edits_change_the_text_and_keep_its_comments() {
        let edits = json!([
            { "kind": "set", "path": "flow.0.params.qth", "value": "20ms" },
            { "kind": "add_flow", "toml": "cc = \"newreno\"\nstart = \"1s\"" },
            { "kind": "set", "path": "path.aqm.kind", "value": "codel" },
        ]);
        let request = json!({ "op": "edit", "text": TEXT, "edits": edits });
        let (answer, _) = ask(&mut Session::default(), request);
        assert_eq!(answer["flows"][1]["start_s"], 1.0);
        assert_eq!(answer["document"]["flow"][0]["params"]["qth"], "20ms");
        let text = answer["text"].as_str().expect("a text");
        assert!(text.starts_with("# kept\n"), "{text}");
        let edits = json!([
            { "kind": "unset", "path": "flow.0.params.qth" },
            { "kind": "unset", "path": "path.aqm" },
            { "kind": "remove_flow", "index": 1 },
        ]);
        let request = json!({ "op": "edit", "text": text, "edits": edits });
        let (answer, _) = ask(&mut Session::default(), request);
        assert_eq!(answer["text"], TEXT);
    }

    #[test]
    fn an_impossible_value_is_refused_with_its_place() {
        let mut session = Session::default();
        let text = TEXT.replace("40ms", "40");
        let (answer, _) = ask(&mut session, json!({ "op": "run", "slot": 0, "text": text }));
        assert_eq!(answer["line"], 5);
        assert_eq!(answer["excerpt"], "rtt = \"40\"");
        let request = json!({ "op": "series", "slot": 0, "wants": [], "from_s": 0.0, "to_s": 1.0,
                              "columns": 10 });
        let (answer, _) = ask(&mut session, request);
        assert_eq!(answer["error"], "nothing has run yet");
        let (answer, _) = ask(&mut session, json!({ "op": "dance" }));
        assert!(answer["error"].as_str().is_some_and(|e| e.starts_with("no such request")));
    }

    #[test]
    fn a_run_tells_how_far_it_is_and_is_kept() {
        let mut session = Session::default();
        let mut told = Vec::new();
        let request = json!({ "op": "run", "slot": 3, "text": TEXT }).to_string();
        let answer = session.answer(request.as_bytes(), &mut |fraction| told.push(fraction));
        assert!(told.is_sorted() && told.len() > 1000, "{} times", told.len());
        assert_eq!(told.last(), Some(&1.0));
        let statistics: Value = serde_json::from_str(&answer.text).expect("JSON");
        assert_eq!(statistics["flows"][0]["kind"], "chd");
        let wants = json!([{ "what": "cwnd", "flow": 0 }]);
        let request = json!({ "op": "series", "slot": 3, "wants": wants, "from_s": 0.0, "to_s": 5.0,
                              "columns": 100 });
        let (columns, numbers) = ask(&mut session, request);
        assert_eq!((columns["count"].as_u64(), numbers.len()), (Some(200), 400));
        assert!(numbers[200..].iter().copied().fold(0.0, f64::max) > 10.0);
        let (csv, _) = ask(&mut session, json!({ "op": "csv", "slot": 3 }));
        let rows = csv["text"].as_str().map_or(0, |text| text.lines().count());
        assert_eq!(rows as u64, 1 + statistics["bins"].as_u64().unwrap_or(0));
    }

    #[test]
    fn the_traced_run_has_the_backoffs_that_the_run_counts() {
        let mut session = Session::default();
        let (run, _) = ask(&mut session, json!({ "op": "run", "slot": 0, "text": TEXT }));
        let (traced, _) = ask(&mut session, json!({ "op": "reductions", "text": TEXT }));
        let all = traced["reductions"].as_array().expect("a list");
        let backoffs = all.iter().filter(|r| r["kind"] == "delay_backoff").count() as u64;
        let counters = &run["flows"][0]["counters"];
        let counted = ["delay_backoffs_region_a", "delay_backoffs_region_b"]
            .iter()
            .filter_map(|name| counters[name].as_u64())
            .sum::<u64>();
        assert_eq!((backoffs, backoffs > 0), (counted, true));
    }
}
