//! Algorithms that are defined in Python: a class whose methods are called, or compiled functions.

use crate::error;
use knee_cc::{
    About, Ack, Algorithm, Call, Callee, Conn, Controller, Definition, Failure, Functions,
    LoadError, OBSERVE_N, Params, Phase, Profile, State, define, define_callee, fault, ffi,
};
use knee_model::{HostError, NS_PER_S, RunSpec};
use pyo3::{
    exceptions::{PyException, PyOverflowError, PyTypeError},
    prelude::*,
    types::PyString,
};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    ffi::c_long,
    io,
    mem::{offset_of, transmute},
    ops::RangeInclusive,
    panic::resume_unwind,
    rc::Rc,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

/// Reads an algorithm's definition, which Python writes as JSON. Python itself refuses unknown profiles and units.
fn definition(described: &str) -> PyResult<Definition> {
    serde_json::from_str(described).map_err(|e| PyTypeError::new_err(e.to_string()))
}

fn refuse(e: &LoadError) -> PyErr {
    error::new("AlgorithmError", &e.to_string(), Some(e.help()))
}

/// The algorithms that are classes.
struct Classes {
    by_name: BTreeMap<&'static str, Algorithm>,
    /// Number of requests for a name.
    asked: BTreeMap<String, u64>,
}

impl Classes {
    fn lock() -> MutexGuard<'static, Self> {
        static CLASSES: Mutex<Classes> =
            Mutex::new(Classes { by_name: BTreeMap::new(), asked: BTreeMap::new() });
        CLASSES.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a class. Its name gets a number if another algorithm of this process has it.
    fn add(&mut self, definition: &Definition, class: Class) -> Result<Algorithm, LoadError> {
        let base = &definition.name;
        let mut number = self.asked.get(base).map_or(1, |last| last + 1);
        let mut name = numbered(base, number);
        // That of a built-in one is refused below.
        while knee_cc::algorithm(&name).is_some_and(|a| !a.is_built_in()) {
            number += 1;
            name = numbered(base, number);
        }
        let definition = Definition { name, ..definition.clone() };
        let algorithm = define_callee(&definition, Box::new(class))?;
        self.asked.insert(base.clone(), number);
        self.by_name.insert(algorithm.name(), algorithm);
        Ok(algorithm)
    }
}

fn numbered(base: &str, number: u64) -> String {
    if number == 1 { base.to_owned() } else { format!("{base}_{number}") }
}

/// Returns whether `name` means a class: one loaded after it may have taken its name.
#[pyfunction]
pub(crate) fn is_class(name: &str) -> bool {
    let class = Classes::lock().by_name.get(name).copied();
    class.is_some() && class == knee_cc::algorithm(name)
}

/// Refuses a scenario in which one of `names`, which are those of its classes, means another algorithm:
/// a C file that was loaded with it may have taken it.
pub(crate) fn are_classes(names: &[String], spec: &RunSpec) -> PyResult<()> {
    let is_other = |algorithm: &Algorithm| {
        names.iter().any(|name| name == algorithm.name())
            && Classes::lock().by_name.get(algorithm.name()) != Some(algorithm)
    };
    let Some(other) = spec.algorithms().find(is_other) else { return Ok(()) };
    let what = format!("a class and another algorithm are called `{}`", other.name());
    Err(error::new("AlgorithmError", &what, Some("give one of the two another name")))
}

/// Adds an algorithm made of compiled functions: addresses by name, 0 of those that there are not.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the contract's functions")]
pub(crate) fn define_functions(
    described: &str,
    init: usize,
    on_rtt: usize,
    on_ack: usize,
    ssthresh: usize,
    on_event: usize,
    undo: usize,
    observe: usize,
) -> PyResult<&'static str> {
    type AckCall = ffi::Call<*const Ack>;
    let definition = definition(described)?;
    // SAFETY: an address that is not 0 is, by the caller's word, that of such a function; 0 is None.
    let functions = unsafe {
        Functions {
            init: transmute::<usize, Option<ffi::Init>>(init),
            on_rtt: transmute::<usize, Option<AckCall>>(on_rtt),
            on_ack: transmute::<usize, Option<AckCall>>(on_ack).ok_or_else(|| {
                error::new(
                    "AlgorithmError",
                    &format!("{}: there is no on_ack", definition.origin),
                    Some("give the function that grows the window"),
                )
            })?,
            ssthresh: transmute::<usize, Option<ffi::Window>>(ssthresh),
            on_event: transmute::<usize, Option<ffi::Call<u32>>>(on_event),
            undo: transmute::<usize, Option<ffi::Window>>(undo),
            observe: transmute::<usize, Option<ffi::Observe>>(observe),
        }
    };
    // SAFETY: by the caller's word; calls are made under guard.
    let algorithm = unsafe { define(&definition, functions) };
    algorithm.map(|algorithm| algorithm.name()).map_err(|e| refuse(&e))
}

/// Adds an algorithm whose calls are `methods` of objects: `make` is given the parameters' raw values
/// and gives an object. A call may take `limit_s` of processor time. Gives the name that it got.
#[pyfunction]
pub(crate) fn define_class(
    described: &str,
    make: Py<PyAny>,
    methods: Vec<String>,
    limit_s: f64,
) -> PyResult<&'static str> {
    let definition = definition(described)?;
    let newreno = knee_cc::algorithm("newreno")
        .ok_or_else(|| error::new("AlgorithmError", "newreno is missing", None))?;
    let class = Class {
        make,
        limit_s,
        rate: definition.profile == Profile::Rate,
        observes: definition.observes.clone(),
        methods,
        newreno: Params::defaults(newreno),
    };
    let definition = if definition.observes.is_empty() {
        Definition { observes: vec!["python_calls".to_owned()], ..definition }
    } else {
        definition
    };
    let algorithm = Classes::lock().add(&definition, class);
    algorithm.map(|algorithm| algorithm.name()).map_err(|e| refuse(&e))
}

/// Name, offset and size in bytes, and whether it is signed, of each field of `struct cc_conn` and
/// `struct cc_ack`.
#[pyfunction]
pub(crate) fn layout() -> [Vec<(&'static str, usize, usize, bool)>; 2] {
    fn size<S, F>(_: fn(&S) -> &F) -> usize {
        size_of::<F>()
    }
    macro_rules! fields {
        ($type:ty: $($field:ident)*) => {
            vec![$((
                stringify!($field),
                offset_of!($type, $field),
                size(|s: &$type| &s.$field),
                stringify!($field) == "rtt_us",
            )),*]
        };
    }
    [
        fields!(Conn: now_us pacing_bytes_per_s cwnd_pkts cwnd_cnt ssthresh_pkts cwnd_max_pkts
            mss_bytes inflight_pkts outstanding_pkts srtt_us snd_pos ack_pos notes phase
            cwnd_limited app_limited reserved),
        fields!(Ack: delivered_pkts acked_pkts lost_pkts rtt_us random sample_pkts sample_us
            sample_prior_pkts prior_inflight_pkts sample_app_limited advanced_pkts),
    ]
}

/// The connection, as methods see it: a copy, which is copied back when they return.
#[pyclass(name = "Conn", module = "knee", get_all)]
#[derive(Default)]
pub(crate) struct PyConn {
    now_us: u64,
    pacing_bytes_per_s: u64,
    cwnd_pkts: u32,
    cwnd_cnt: u32,
    ssthresh_pkts: u32,
    cwnd_max_pkts: u32,
    mss_bytes: u32,
    inflight_pkts: u32,
    outstanding_pkts: u32,
    srtt_us: u32,
    snd_pos: u32,
    ack_pos: u32,
    notes: u32,
    phase: u8,
    cwnd_limited: bool,
    app_limited: bool,
}

/// Writes the value given for a field. A value outside `allowed` is refused when the call returns, unless the
/// field cannot even hold it.
fn write<T: TryFrom<u64>>(
    field: &mut T,
    name: &str,
    given: &Bound<'_, PyAny>,
    allowed: RangeInclusive<u64>,
) -> PyResult<()> {
    let number = given.extract::<u64>();
    if let Some(held) = number.as_ref().ok().and_then(|number| T::try_from(*number).ok()) {
        *field = held;
        return Ok(());
    }
    let (least, most) = allowed.into_inner();
    let what = format!("conn.{name} = {given:?}: it must be an integer from {least} to {most}");
    let is_integer = number.map_or_else(|raised| is_overflow(given.py(), &raised), |_| true);
    Err(out_of_range(is_integer, what))
}

fn is_overflow(py: Python<'_>, raised: &PyErr) -> bool {
    raised.is_instance_of::<PyOverflowError>(py)
}

/// The exception for an integer out of range, and for a value that is no integer.
fn out_of_range(is_integer: bool, what: String) -> PyErr {
    if is_integer { PyOverflowError::new_err(what) } else { PyTypeError::new_err(what) }
}

const U32_MAX: u64 = u32::MAX as u64;

#[pymethods]
impl PyConn {
    #[setter]
    fn set_pacing_bytes_per_s(&mut self, given: &Bound<'_, PyAny>) -> PyResult<()> {
        write(&mut self.pacing_bytes_per_s, "pacing_bytes_per_s", given, 0..=u64::MAX)
    }

    #[setter]
    fn set_cwnd_pkts(&mut self, given: &Bound<'_, PyAny>) -> PyResult<()> {
        write(&mut self.cwnd_pkts, "cwnd_pkts", given, 1..=self.cwnd_max_pkts.into())
    }

    #[setter]
    fn set_cwnd_cnt(&mut self, given: &Bound<'_, PyAny>) -> PyResult<()> {
        write(&mut self.cwnd_cnt, "cwnd_cnt", given, 0..=U32_MAX)
    }

    #[setter]
    fn set_ssthresh_pkts(&mut self, given: &Bound<'_, PyAny>) -> PyResult<()> {
        write(&mut self.ssthresh_pkts, "ssthresh_pkts", given, 2..=U32_MAX)
    }

    #[setter]
    fn set_notes(&mut self, given: &Bound<'_, PyAny>) -> PyResult<()> {
        write(&mut self.notes, "notes", given, 0..=U32_MAX)
    }
}

impl PyConn {
    fn show(&mut self, conn: &Conn) {
        *self = Self {
            now_us: conn.now_us,
            pacing_bytes_per_s: conn.pacing_bytes_per_s,
            cwnd_pkts: conn.cwnd_pkts,
            cwnd_cnt: conn.cwnd_cnt,
            ssthresh_pkts: conn.ssthresh_pkts,
            cwnd_max_pkts: conn.cwnd_max_pkts,
            mss_bytes: conn.mss_bytes,
            inflight_pkts: conn.inflight_pkts,
            outstanding_pkts: conn.outstanding_pkts,
            srtt_us: conn.srtt_us,
            snd_pos: conn.snd_pos,
            ack_pos: conn.ack_pos,
            notes: conn.notes,
            phase: conn.phase,
            cwnd_limited: conn.cwnd_limited != 0,
            app_limited: conn.app_limited != 0,
        };
    }

    fn copy_to(&self, conn: &mut Conn) {
        conn.pacing_bytes_per_s = self.pacing_bytes_per_s;
        conn.cwnd_pkts = self.cwnd_pkts;
        conn.cwnd_cnt = self.cwnd_cnt;
        conn.ssthresh_pkts = self.ssthresh_pkts;
        conn.notes = self.notes;
    }
}

/// An acknowledgement, as methods see it.
#[pyclass(name = "Ack", module = "knee", get_all)]
#[derive(Default)]
pub(crate) struct PyAck {
    delivered_pkts: u64,
    acked_pkts: u32,
    lost_pkts: u32,
    rtt_us: i32,
    random: u32,
    sample_pkts: u32,
    sample_us: u32,
    sample_prior_pkts: u32,
    prior_inflight_pkts: u32,
    sample_app_limited: bool,
    advanced_pkts: u32,
}

impl PyAck {
    fn show(&mut self, ack: &Ack) {
        *self = Self {
            delivered_pkts: ack.delivered_pkts,
            acked_pkts: ack.acked_pkts,
            lost_pkts: ack.lost_pkts,
            rtt_us: ack.rtt_us,
            random: ack.random,
            sample_pkts: ack.sample_pkts,
            sample_us: ack.sample_us,
            sample_prior_pkts: ack.sample_prior_pkts,
            prior_inflight_pkts: ack.prior_inflight_pkts,
            sample_app_limited: ack.sample_app_limited != 0,
            advanced_pkts: ack.advanced_pkts,
        };
    }
}

/// Summary of the ACKs of a round trip.
#[pyclass(name = "Round", module = "knee", get_all, frozen)]
pub(crate) struct PyRound {
    /// Number of the round, from 1.
    number: u64,
    duration_us: u64,
    acked_pkts: u64,
    lost_pkts: u64,
    rtt_samples: u32,
    rtt_min_us: Option<u32>,
    rtt_mean_us: Option<f64>,
    rtt_max_us: Option<u32>,
}

/// A round trip that is under way.
#[derive(Clone, Copy, Default)]
struct Round {
    number: u64,
    began_us: u64,
    /// It is over when all before this is acknowledged.
    end_pos: u32,
    acked_pkts: u64,
    lost_pkts: u64,
    samples: u32,
    min_us: u32,
    max_us: u32,
    sum_us: u64,
}

impl Round {
    fn after(number: u64, conn: &Conn) -> Self {
        let (began_us, end_pos) = (conn.now_us, conn.snd_pos);
        Self { number: number + 1, began_us, end_pos, min_us: u32::MAX, ..Self::default() }
    }

    fn add(&mut self, ack: &Ack) {
        self.acked_pkts += u64::from(ack.acked_pkts);
        self.lost_pkts += u64::from(ack.lost_pkts);
        if let Ok(rtt_us) = u32::try_from(ack.rtt_us) {
            self.samples += 1;
            self.min_us = self.min_us.min(rtt_us);
            self.max_us = self.max_us.max(rtt_us);
            self.sum_us += u64::from(rtt_us);
        }
    }

    fn is_over(&self, conn: &Conn) -> bool {
        conn.ack_pos.wrapping_sub(self.end_pos) < 1 << 31
    }

    fn shown(&self, conn: &Conn) -> PyRound {
        let known = self.samples > 0;
        PyRound {
            number: self.number,
            duration_us: conn.now_us - self.began_us,
            acked_pkts: self.acked_pkts,
            lost_pkts: self.lost_pkts,
            rtt_samples: self.samples,
            rtt_min_us: known.then_some(self.min_us),
            rtt_mean_us: known.then(|| self.sum_us as f64 / f64::from(self.samples)),
            rtt_max_us: known.then_some(self.max_us),
        }
    }
}

/// An algorithm whose calls are methods.
struct Class {
    make: Py<PyAny>,
    limit_s: f64,
    rate: bool,
    /// Attributes worth plotting; none: the number of calls is.
    observes: Vec<String>,
    /// Names of the methods that it has.
    methods: Vec<String>,
    /// Parameters of NewReno, which replaces missing methods.
    newreno: Params,
}

/// One connection's object.
struct Instance {
    object: Py<PyAny>,
    conn: Py<PyConn>,
    ack: Py<PyAck>,
    newreno: RefCell<Controller>,
    round: Cell<Round>,
    calls: Cell<u32>,
}

/// State of the run that this thread is making.
#[derive(Default)]
struct Scope {
    instances: Vec<Rc<Instance>>,
    watch: Arc<Watch>,
    /// Exception of a method, which ended the run.
    raised: Option<PyErr>,
}

thread_local! {
    static SCOPE: RefCell<Option<Scope>> = const { RefCell::new(None) };
}

/// The call that is being made.
#[derive(Default)]
struct Watch {
    /// Odd while there is one.
    calls: AtomicU64,
    /// Processor time that it may take, nanoseconds.
    limit_ns: AtomicU64,
    over: AtomicBool,
}

/// Interval between two looks of the watchdog.
const LOOK: Duration = Duration::from_millis(50);

/// Returns whether `algorithm` can only run within [`with_methods`].
pub(crate) fn has_methods(algorithm: Algorithm) -> bool {
    algorithm.keeps_its_own_state()
}

/// Makes a run whose algorithms may be Python's, on this thread. If a method raised, that is the error.
pub(crate) fn with_methods<T>(
    py: Python<'_>,
    run: impl FnOnce() -> Result<T, HostError>,
) -> PyResult<T> {
    let scope = Scope::default();
    let watch = scope.watch.clone();
    // A method may itself make runs.
    let outer = SCOPE.replace(Some(scope));
    let dog = Watchdog { watch: watch.clone(), thread: this_thread(py)?, seen: None };
    let dog = thread::spawn(|| dog.watch());
    let result = run();
    watch.over.store(true, Ordering::Relaxed);
    dog.thread().unpark();
    // It may be waiting for Python's lock.
    let dog = py.detach(|| dog.join());
    let scope = SCOPE.replace(outer);
    dog.unwrap_or_else(|panic| resume_unwind(panic));
    result.map_err(|e| {
        let raised = scope.and_then(|scope| scope.raised);
        match raised {
            // Ctrl-C, and any other exception that is no mistake.
            Some(raised) if !raised.is_instance_of::<PyException>(py) && !is_limit(py, &raised) => {
                raised
            }
            raised => {
                let error = error::host_error(e);
                error.set_cause(py, raised);
                error
            }
        }
    })
}

/// The number of this thread, as Python knows it, and its clock.
fn this_thread(py: Python<'_>) -> PyResult<(c_long, libc::clockid_t)> {
    let ident = py.import("threading")?.call_method0("get_ident")?.extract()?;
    let mut clock = 0;
    // SAFETY: the present thread lives, and `clock` is written.
    match unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) } {
        0 => Ok((ident, clock)),
        e => Err(io::Error::from_raw_os_error(e).into()),
    }
}

fn limit_class<'py>(py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
    py.import("knee._errors")?.getattr("CallLimit")
}

fn is_limit(py: Python<'_>, raised: &PyErr) -> bool {
    limit_class(py).is_ok_and(|class| raised.matches(py, class).unwrap_or(false))
}

/// Ends calls that take too long: it raises an exception in them.
struct Watchdog {
    watch: Arc<Watch>,
    thread: (c_long, libc::clockid_t),
    /// The call that was there the last time, and how much its thread had spent when it was first seen.
    seen: Option<(u64, u64)>,
}

impl Watchdog {
    fn watch(mut self) {
        while !self.watch.over.load(Ordering::Relaxed) {
            thread::park_timeout(LOOK);
            self.look();
        }
    }

    fn look(&mut self) {
        let call = self.watch.calls.load(Ordering::Acquire);
        if call.is_multiple_of(2) {
            self.seen = None;
            return;
        }
        let spent_ns = spent_ns(self.thread.1);
        match self.seen {
            Some((seen, since_ns)) if seen == call => {
                let limit_ns = self.watch.limit_ns.load(Ordering::Relaxed);
                if spent_ns.saturating_sub(since_ns) >= limit_ns {
                    self.end(call);
                    self.seen = None;
                }
            }
            _ => self.seen = Some((call, spent_ns)),
        }
    }

    fn end(&self, call: u64) {
        Python::attach(|py| {
            // With Python's lock held, the call can neither end nor be followed by another.
            if self.watch.calls.load(Ordering::Acquire) != call {
                return;
            }
            if let Ok(class) = limit_class(py) {
                // SAFETY: this thread is attached, and the class is an exception's.
                unsafe { pyo3::ffi::PyThreadState_SetAsyncExc(self.thread.0, class.as_ptr()) };
            }
        });
    }
}

/// Processor time by a thread's clock.
fn spent_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is written; of a thread that is gone the clock is refused, and the time stays 0.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec.unsigned_abs() * NS_PER_S + time.tv_nsec.unsigned_abs()
}

impl Class {
    fn has(&self, name: &str) -> bool {
        self.methods.iter().any(|method| method == name)
    }

    /// The object of a connection.
    fn instance(state: &State) -> Result<Rc<Instance>, Failure> {
        let [a, b, c, d, ..] = *state.bytes();
        let number = u32::from_ne_bytes([a, b, c, d]) as usize;
        SCOPE
            .with_borrow(|scope| scope.as_ref()?.instances.get(number).cloned())
            .ok_or_else(|| ("init", "can only be made by knee.run and knee.run_many".to_owned()))
    }

    /// Calls a method; gives what it returned.
    fn method<'py>(
        &self,
        py: Python<'py>,
        name: &'static str,
        instance: &Instance,
        conn: &mut Conn,
        argument: Option<Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        instance.calls.set(instance.calls.get().saturating_add(1));
        instance.conn.borrow_mut(py).show(conn);
        let view = instance.conn.bind(py);
        let name_py = PyString::intern(py, name);
        let object = instance.object.bind(py);
        let result = self.watched(py, name, || match argument {
            Some(argument) => object.call_method1(&name_py, (view, argument)),
            None => object.call_method1(&name_py, (view,)),
        })?;
        let view = instance.conn.borrow(py);
        if !self.rate && view.pacing_bytes_per_s != conn.pacing_bytes_per_s {
            let why = "wrote pacing_bytes_per_s, which only profile `rate` may";
            return Err((name, why.to_owned()));
        }
        view.copy_to(conn);
        fault(conn).map_or(Ok(result), |why| Err((name, why)))
    }

    /// Does `work` under the watchdog.
    fn watched<'py, T>(
        &self,
        py: Python<'py>,
        name: &'static str,
        work: impl FnOnce() -> PyResult<T>,
    ) -> Result<T, Failure> {
        let watch = SCOPE.with_borrow(|scope| scope.as_ref().map(|scope| scope.watch.clone()));
        if let Some(watch) = &watch {
            watch.limit_ns.store((self.limit_s * NS_PER_S as f64) as u64, Ordering::Relaxed);
            watch.calls.fetch_add(1, Ordering::AcqRel);
        }
        let result = work();
        if let Some(watch) = &watch {
            watch.calls.fetch_add(1, Ordering::AcqRel);
        }
        result.map_err(|raised| self.failure(py, name, raised))
    }

    fn failure(&self, py: Python<'_>, name: &'static str, raised: PyErr) -> Failure {
        let why = if is_limit(py, &raised) {
            format!("did not return within {} s of processor time", self.limit_s)
        } else {
            format!("raised {raised}")
        };
        SCOPE.with_borrow_mut(|scope| {
            if let Some(scope) = scope {
                scope.raised = Some(raised);
            }
        });
        (name, why)
    }

    fn number(
        &self,
        py: Python<'_>,
        name: &'static str,
        given: &Bound<'_, PyAny>,
    ) -> Result<u32, Failure> {
        given.extract().map_err(|raised: PyErr| {
            let what = format!("it returned {given:?}, not a number of packets");
            let raised = out_of_range(is_overflow(py, &raised), what);
            self.failure(py, name, raised)
        })
    }

    fn begin(
        &self,
        py: Python<'_>,
        params: &[u32],
        state: &mut State,
        conn: &mut Conn,
    ) -> Result<(), Failure> {
        let made = || -> PyResult<_> {
            let object = self.make.call1(py, (params.to_vec(),))?;
            Ok((object, Py::new(py, PyConn::default())?, Py::new(py, PyAck::default())?))
        };
        let (object, view, ack) = self.watched(py, "__init__", made)?;
        let newreno = RefCell::new(Controller::new(self.newreno.clone(), conn));
        let round = Cell::new(Round::after(0, conn));
        let calls = Cell::default();
        let instance = Rc::new(Instance { object, conn: view, ack, newreno, round, calls });
        let number = SCOPE.with_borrow_mut(|scope| {
            let instances = &mut scope.as_mut()?.instances;
            instances.push(instance.clone());
            u32::try_from(instances.len() - 1).ok()
        });
        let Some(number) = number else {
            return Err(("init", "can only be made by knee.run and knee.run_many".to_owned()));
        };
        let mut bytes = *state.bytes();
        bytes[..4].copy_from_slice(&number.to_ne_bytes());
        *state = bytes.into();
        if self.has("init") {
            self.method(py, "init", &instance, conn, None)?;
        }
        Ok(())
    }

    /// Counts the ACK; calls `on_round` if it ends a round in which the window is the algorithm's.
    fn round(
        &self,
        py: Python<'_>,
        instance: &Instance,
        ack: &Ack,
        conn: &mut Conn,
    ) -> Result<(), Failure> {
        let mut round = instance.round.get();
        round.add(ack);
        if !round.is_over(conn) {
            instance.round.set(round);
            return Ok(());
        }
        instance.round.set(Round::after(round.number, conn));
        let in_reduction = conn.phase == Phase::Cwr as u8 || conn.phase == Phase::Recovery as u8;
        if in_reduction && !self.rate {
            return Ok(());
        }
        let shown = Py::new(py, round.shown(conn));
        let shown = shown.map_err(|raised| self.failure(py, "on_round", raised))?;
        let shown = shown.into_bound(py).into_any();
        self.method(py, "on_round", instance, conn, Some(shown)).map(drop)
    }

    fn on_ack(
        &self,
        py: Python<'_>,
        name: &'static str,
        instance: &Instance,
        ack: &Ack,
        conn: &mut Conn,
    ) -> Result<(), Failure> {
        instance.ack.borrow_mut(py).show(ack);
        let ack = instance.ack.bind(py).clone().into_any();
        self.method(py, name, instance, conn, Some(ack)).map(drop)
    }
}

impl Callee for Class {
    fn call(
        &self,
        call: Call,
        about: About<'_>,
        params: &[u32],
        state: &mut State,
        conn: &mut Conn,
    ) -> Result<u32, Failure> {
        Python::attach(|py| {
            if call == Call::Init {
                return self.begin(py, params, state, conn).map(|()| 0);
            }
            let instance = Self::instance(state)?;
            let instance = instance.as_ref();
            match (call, about) {
                (Call::OnRtt, About::Ack(ack)) => {
                    if self.has("on_rtt") {
                        self.on_ack(py, "on_rtt", instance, ack, conn)?;
                    }
                    if self.has("on_round") {
                        self.round(py, instance, ack, conn)?;
                    }
                }
                (Call::OnAck, About::Ack(ack)) => {
                    if self.has("on_ack") {
                        self.on_ack(py, "on_ack", instance, ack, conn)?;
                    } else if !self.has("on_round") {
                        instance.newreno.borrow_mut().on_ack(conn, ack);
                    }
                    if self.has("on_round") && self.rate {
                        self.round(py, instance, ack, conn)?;
                    }
                }
                (Call::Ssthresh, _) => {
                    // It also remembers the window for the undo.
                    let pkts = instance.newreno.borrow_mut().ssthresh(conn);
                    if self.has("ssthresh") {
                        let given = self.method(py, "ssthresh", instance, conn, None)?;
                        return self.number(py, "ssthresh", &given);
                    }
                    return Ok(pkts);
                }
                (Call::OnEvent, About::Event(event)) if self.has("on_event") => {
                    let Ok(number) = (event as u32).into_pyobject(py);
                    self.method(py, "on_event", instance, conn, Some(number.into_any()))?;
                }
                (Call::Undo, _) => {
                    if self.has("undo") {
                        let given = self.method(py, "undo", instance, conn, None)?;
                        return self.number(py, "undo", &given);
                    }
                    return Ok(instance.newreno.borrow_mut().undo(conn));
                }
                _ => {}
            }
            Ok(0)
        })
    }

    fn observe(&self, _: &[u32], state: &State) -> Result<[u32; OBSERVE_N], Failure> {
        let instance = Self::instance(state)?;
        let mut out = [0; OBSERVE_N];
        if self.observes.is_empty() {
            out[0] = instance.calls.get();
            return Ok(out);
        }
        Python::attach(|py| {
            let object = instance.object.bind(py);
            for (out, name) in out.iter_mut().zip(&self.observes) {
                let value = object.getattr(name.as_str()).and_then(|value| value.extract());
                *out = value.map_err(|raised| self.failure(py, "observe", raised))?;
            }
            Ok(out)
        })
    }
}
