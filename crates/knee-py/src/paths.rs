//! Many simulated paths that advance together, monitor interval by monitor interval: on each, one flow
//! whose window is steered from outside.

use crate::{error, request::Wanted};
use knee_cc::{Ack, Algorithm, Conn, Definition, Functions, Profile, State, define};
use knee_model::{FlowSpec, Ns, RecordSpec, seconds};
use knee_scenario::Scenario;
use knee_sim::Stepped;
use knee_units::TIME;
use pyo3::{prelude::*, sync::MutexExt, types::PyBytes};
use rayon::prelude::*;
use std::{
    ffi::c_void,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

/// Name of the steered algorithm in scenarios.
const AGENT: &str = "agent";
/// Module that defines it.
const ORIGIN: &str = "knee.gym";
/// Bounds of its window, packets.
const WINDOW_PKTS: (f64, f64) = (1.0, 65_536.0);
/// Pacing, as a multiple of a window in each smoothed RTT: not to send in bursts, nor to hold back.
const PACING_GAIN: f64 = 1.25;
/// Values of an observation.
const OBSERVED: usize = 7;

/// The algorithm's state: its window, and the ACKs of the present interval.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Steered {
    window_pkts: f64,
    acked_pkts: u32,
    lost_pkts: u32,
    rtt_sum_us: u64,
    rtt_samples: u32,
    /// Least of the connection; 0: none.
    rtt_min_us: u32,
}

impl Steered {
    fn of(state: &State) -> Self {
        // SAFETY: the state is larger, and any bytes are a value.
        unsafe { state.bytes().as_ptr().cast::<Self>().read_unaligned() }
    }

    fn to(self, state: &State) -> State {
        let mut bytes = *state.bytes();
        // SAFETY: as above.
        unsafe { bytes.as_mut_ptr().cast::<Self>().write_unaligned(self) };
        bytes.into()
    }
}

unsafe extern "C" fn on_ack(
    conn: *mut Conn,
    state: *mut c_void,
    _: *const c_void,
    ack: *const Ack,
) {
    // SAFETY: the caller passes a view, a state that is aligned for any field, and an ACK.
    let (conn, st, ack) = unsafe { (&mut *conn, &mut *state.cast::<Steered>(), &*ack) };
    st.acked_pkts = st.acked_pkts.saturating_add(ack.acked_pkts);
    st.lost_pkts = st.lost_pkts.saturating_add(ack.lost_pkts);
    if let Ok(rtt_us) = u32::try_from(ack.rtt_us) {
        st.rtt_sum_us += u64::from(rtt_us);
        st.rtt_samples += 1;
        let least = if st.rtt_min_us == 0 { u32::MAX } else { st.rtt_min_us };
        st.rtt_min_us = least.min(rtt_us).max(1);
    }
    if st.window_pkts == 0.0 {
        st.window_pkts = f64::from(conn.cwnd_pkts);
    }
    conn.cwnd_pkts = ((st.window_pkts + 0.5) as u32).clamp(1, conn.cwnd_max_pkts);
    if conn.srtt_us > 0 {
        let window_bytes = f64::from(conn.cwnd_pkts) * f64::from(conn.mss_bytes);
        conn.pacing_bytes_per_s =
            (PACING_GAIN * window_bytes * 1e6 / f64::from(conn.srtt_us)) as u64;
    }
}

/// Returns whether `algorithm` is the steered one.
pub(crate) fn is_agent(algorithm: Algorithm) -> bool {
    algorithm.defined_here() == Some(ORIGIN)
}

/// Makes the algorithm of the steered flow known.
pub(crate) fn know_agent() -> PyResult<()> {
    static KNOWN: OnceLock<Result<(), String>> = OnceLock::new();
    let known = KNOWN.get_or_init(|| {
        let definition = Definition {
            name: AGENT.to_owned(),
            summary: "a window that is steered from outside".to_owned(),
            origin: ORIGIN.to_owned(),
            observes: vec!["none".to_owned()],
            profile: Profile::Rate,
            uses_random: false,
            params: Vec::new(),
        };
        let functions = Functions {
            init: None,
            on_rtt: None,
            on_ack,
            ssthresh: None,
            on_event: None,
            undo: None,
            observe: None,
        };
        // SAFETY: `on_ack` keeps to the contract.
        unsafe { define(&definition, functions) }.map(drop).map_err(|e| e.to_string())
    });
    known.clone().map_err(|e| error::new("AlgorithmError", &e, None))
}

/// A path in the middle of an episode.
struct Episode {
    run: Stepped,
    flow: usize,
    duration_ns: Ns,
    /// Mean RTT of the interval before, if it had a sample.
    rtt_us: Option<f64>,
}

impl Episode {
    fn begin(scenario: &Scenario, seed: u64) -> PyResult<Self> {
        let mut spec = scenario.spec(seed);
        spec.record = RecordSpec::default();
        spec.record.bin_ns = 0;
        let is_steered = |flow: &FlowSpec| flow.params().is_some_and(|p| is_agent(p.algorithm()));
        let steered = spec.flows.iter().enumerate().filter(|(_, flow)| is_steered(flow));
        let steered: Vec<usize> = steered.map(|(index, _)| index).collect();
        let [flow] = steered[..] else {
            let what = format!("{} flows have `cc = \"{AGENT}\"`", steered.len());
            return Err(error::new("ScenarioError", &what, Some("give it to one flow")));
        };
        let duration_ns = spec.duration_ns;
        let run = Stepped::new(Arc::new(spec)).map_err(error::host_error)?;
        Ok(Self { run, flow, duration_ns, rtt_us: None })
    }

    /// Changes the window, lets an interval pass, and says what was seen.
    fn step(&mut self, action: f64, interval_ns: Ns) -> PyResult<[f64; OBSERVED]> {
        let start_ns = self.run.now_ns();
        let end_ns = (start_ns + interval_ns).min(self.duration_ns);
        if let Some((_, state)) = self.run.flow(self.flow) {
            let mut steered = Steered::of(&state);
            let action = action.clamp(-1.0, 1.0);
            let factor = if action >= 0.0 { 1.0 + action } else { 1.0 / (1.0 - action) };
            // 0 until the first ACK.
            if steered.window_pkts > 0.0 {
                steered.window_pkts =
                    (steered.window_pkts * factor).clamp(WINDOW_PKTS.0, WINDOW_PKTS.1);
            }
            self.run.set_state(self.flow, steered.to(&state));
        }
        self.run.advance(end_ns).map_err(error::host_error)?;
        let Some((conn, state)) = self.run.flow(self.flow) else { return Ok([0.0; OBSERVED]) };
        let seen = Steered::of(&state);
        let next = Steered {
            window_pkts: seen.window_pkts,
            rtt_min_us: seen.rtt_min_us,
            ..Steered::default()
        };
        self.run.set_state(self.flow, next.to(&state));
        let interval_s = seconds((end_ns - start_ns).max(1));
        let (acked, lost) = (f64::from(seen.acked_pkts), f64::from(seen.lost_pkts));
        let rtt_us =
            (seen.rtt_samples > 0).then(|| seen.rtt_sum_us as f64 / f64::from(seen.rtt_samples));
        let gradient = match (self.rtt_us, rtt_us) {
            (Some(before), Some(now)) => (now - before) / 1e6 / interval_s,
            _ => 0.0,
        };
        self.rtt_us = rtt_us.or(self.rtt_us);
        Ok([
            acked * f64::from(conn.mss_bytes) * 8.0 / 1e6 / interval_s,
            self.rtt_us.unwrap_or(0.0) / 1e3,
            f64::from(seen.rtt_min_us) / 1e3,
            gradient,
            if lost > 0.0 { lost / (lost + acked) } else { 0.0 },
            seen.window_pkts,
            f64::from(conn.inflight_pkts),
        ])
    }

    fn is_over(&self) -> bool {
        self.run.now_ns() >= self.duration_ns
    }
}

/// Paths of several scenarios.
#[pyclass(frozen, module = "knee._knee")]
pub(crate) struct Paths {
    scenarios: Vec<Scenario>,
    interval_ns: Ns,
    slots: Mutex<Vec<Option<Box<Episode>>>>,
}

/// Below this many, threads cost more than they save.
const SLOTS_PER_TASK: usize = 4;

#[pymethods]
impl Paths {
    /// `slots` paths at once, none of which has begun.
    #[new]
    fn new(wanted: Vec<Wanted>, interval: &str, slots: usize) -> PyResult<Self> {
        let interval_ns = TIME
            .parse(interval)
            .map_err(|e| error::new("ScenarioError", &format!("interval: {e}"), Some(&e.remedy)))?;
        if interval_ns == 0 {
            let help = "give a time, such as \"100ms\"";
            return Err(error::new("ScenarioError", "interval is 0", Some(help)));
        }
        let scenarios = wanted.iter().map(|wanted| Ok(wanted.ready()?.scenario));
        let scenarios = scenarios.collect::<PyResult<Vec<_>>>()?;
        for scenario in &scenarios {
            Episode::begin(scenario, scenario.seed())?;
        }
        let slots = Mutex::new((0..slots).map(|_| None).collect());
        Ok(Self { scenarios, interval_ns, slots })
    }

    /// Begins an episode in each of `slots` and lets its first interval pass; returns the observations, as
    /// doubles.
    fn reset<'py>(
        &self,
        py: Python<'py>,
        slots: Vec<usize>,
        scenarios: Vec<usize>,
        seeds: Vec<u64>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let wanted: Vec<_> = scenarios.into_iter().zip(seeds).collect();
        let begun = py.detach(|| {
            let begin = |(scenario, seed): &(usize, u64)| {
                let scenario = self.scenarios.get(*scenario).ok_or_else(|| {
                    error::new("ScenarioError", &format!("no scenario {scenario}"), None)
                })?;
                let mut episode = Episode::begin(scenario, *seed)?;
                let seen = episode.step(0.0, self.interval_ns)?;
                Ok((episode, seen))
            };
            wanted.par_iter().with_min_len(SLOTS_PER_TASK).map(begin).collect::<PyResult<Vec<_>>>()
        })?;
        let mut all = self.slots.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let mut bytes = Vec::with_capacity(begun.len() * OBSERVED * 8);
        for (slot, (episode, seen)) in slots.into_iter().zip(begun) {
            let known = all.len();
            let place = all.get_mut(slot).ok_or_else(|| {
                error::new("KneeError", &format!("slot {slot}: there are {known}"), None)
            })?;
            *place = Some(Box::new(episode));
            bytes.extend(seen.iter().flat_map(|value| value.to_ne_bytes()));
        }
        Ok(PyBytes::new(py, &bytes))
    }

    /// Lets an interval pass in every slot that has an episode and an action; NaN is none. Returns the
    /// observations, as doubles, 0 where nothing happened; and which episodes are over.
    fn step<'py>(
        &self,
        py: Python<'py>,
        actions: Vec<f64>,
    ) -> PyResult<(Bound<'py, PyBytes>, Vec<bool>)> {
        let seen = py.detach(|| {
            let mut all = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            if all.len() != actions.len() {
                let what = format!("{} actions for {} paths", actions.len(), all.len());
                return Err(error::new("KneeError", &what, Some("give one for each")));
            }
            let step = |(slot, action): (&mut Option<Box<Episode>>, &f64)| match slot {
                Some(episode) if !action.is_nan() && !episode.is_over() => {
                    Ok((episode.step(*action, self.interval_ns)?, episode.is_over()))
                }
                Some(episode) => Ok(([0.0; OBSERVED], episode.is_over())),
                None => {
                    let help = "call reset() first";
                    Err(error::new("KneeError", "the path has not begun", Some(help)))
                }
            };
            let each = all.par_iter_mut().zip(&actions).with_min_len(SLOTS_PER_TASK);
            each.map(step).collect::<PyResult<Vec<_>>>()
        })?;
        let values = seen.iter().flat_map(|(values, _)| values);
        let bytes: Vec<u8> = values.flat_map(|value| value.to_ne_bytes()).collect();
        Ok((PyBytes::new(py, &bytes), seen.into_iter().map(|(_, over)| over).collect()))
    }
}
