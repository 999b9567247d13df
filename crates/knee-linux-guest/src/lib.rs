//! The path of the host `linux`: a library that the process of a User-Mode Linux kernel loads before the kernel
//! starts. It carries the kernel's packets from one end to the other, and holds the algorithms. `cc/host/linux` is
//! the kernel's side.
//!
//! The kernel calls on one processor with interrupts off, so there is one caller at a time. No function of `kernel`
//! calls back into this crate.

mod capture;
mod kernel;
mod message;
mod output;
mod skb;
mod tcp;

use capture::Capture;
use kernel::{
    Called, FlowTerms, Kernel, KernelPacket, PARAMS_MAX, Path, Stack, SysctlTerms, VariantTerms,
    c_text,
};
use knee_cc::{Call, Params, Source};
use knee_model::{
    Cc, FlowKind, FlowSpec, HostError, HostErrorKind, NS_PER_MS, Ns, Progress, Random, RunSpec,
    TcpSpec, linux,
};
use knee_net::{NEVER, VirtualRun, headers};
use message::{Message, Request};
use output::Output;
use std::{
    cell::UnsafeCell,
    ffi::{CStr, c_char},
    io::{self, Read},
    rc::Rc,
};
use tcp::Tcp;

/// Calls of [`advance`] after which the host hears that the guest is alive.
const ALIVE_CALLS: u32 = 1 << 16;
/// Time between two ticks of the kernel's clock.
const TICK_NS: Ns = 4 * NS_PER_MS;

/// The run in progress.
struct Guest {
    spec: Rc<RunSpec>,
    variants: Vec<Params>,
    /// The call of each flow whose RTT samples count; none without an algorithm of Knee's.
    rtt_calls: Vec<Option<Call>>,
    run: Option<VirtualRun<Rc<RunSpec>, Watch, Tcp>>,
    output: Output,
    capture: bool,
    calls: u32,
    ended: bool,
}

type Watch = Box<dyn FnMut(Progress)>;

struct Cell(UnsafeCell<Option<Guest>>);
// SAFETY: there is one processor, and one caller at a time.
unsafe impl Sync for Cell {}
static GUEST: Cell = Cell(UnsafeCell::new(None));

/// Lets `act` act on the guest; `otherwise` without one.
fn with<R>(otherwise: R, act: impl FnOnce(&mut Guest) -> R) -> R {
    // SAFETY: there is one caller at a time, and no function of the kernel's that `act` calls calls back.
    match unsafe { &mut *GUEST.0.get() } {
        Some(guest) => act(guest),
        None => otherwise,
    }
}

fn broken(why: impl std::fmt::Display) -> HostError {
    HostError::new(HostErrorKind::Broken, why)
}

impl Guest {
    fn new(mut output: Output) -> Result<Self, (Output, HostError)> {
        let mut bytes = Vec::new();
        let read = io::stdin().read_to_end(&mut bytes).map_err(broken);
        let spec = read.and_then(|_| {
            let request: Request = postcard::from_bytes(&bytes)
                .map_err(|e| broken(format!("the request is of another version: {e}")))?;
            for (file, text, object) in request.sources {
                knee_cc::load_compiled(Source { file, text, object }).map_err(broken)?;
            }
            // It names the algorithms loaded above.
            let spec = postcard::from_bytes::<RunSpec>(&request.spec).map_err(broken)?;
            Ok((Rc::new(spec), request.capture))
        });
        let (spec, capture) = match spec {
            Ok(spec) => spec,
            Err(error) => return Err((output, error)),
        };
        let mut variants: Vec<Params> = Vec::new();
        let mut rtt_calls = Vec::with_capacity(spec.flows.len());
        for flow in &spec.flows {
            let params = match &flow.kind {
                FlowKind::Tcp(tcp) => tcp.cc.params(),
                _ => None,
            };
            rtt_calls.push(params.map(|params| Call::of_every_ack(params.algorithm().profile())));
            if let Some(params) = params.filter(|params| !variants.contains(params)) {
                variants.push(params.clone());
            }
        }
        if let Err(error) = output.send(&Message::Progress(Progress::At(0))) {
            return Err((output, error));
        }
        Ok(Self { spec, variants, rtt_calls, run: None, output, capture, calls: 0, ended: false })
    }

    fn stack(&self) -> Stack {
        let stack = self.spec.flows.iter().find_map(|flow| match &flow.kind {
            // The host has checked that all flows have the same.
            FlowKind::Tcp(tcp) => linux::check(flow, &tcp.options, &mut Vec::new()).ok(),
            _ => None,
        });
        let stack = stack.unwrap_or_default();
        let packet_bytes = self.spec.flows.iter().map(|flow| flow.packet_bytes());
        Stack {
            zero_after_ns: Random::stream(self.spec.seed, "clock tick", 0).up_to(TICK_NS - 1),
            flows: self.spec.flows.len() as u32,
            variants: self.variants.len() as u32,
            mtu_bytes: packet_bytes.fold(1500, u32::max),
            sack: stack.sack.into(),
            timestamps: stack.timestamps.into(),
            idle_restart: stack.idle_restart.into(),
            ecn: stack.ecn.into(),
            reserved: 0,
        }
    }

    fn variant(&self, index: usize) -> Option<VariantTerms> {
        let variant = self.variants.get(index)?;
        let mut params = [0; PARAMS_MAX];
        params.get_mut(..variant.words().len())?.copy_from_slice(variant.words());
        Some(VariantTerms {
            algorithm: variant.algorithm().descriptor(),
            name: c_text(&format!("knee.{index}")),
            n_params: variant.words().len() as u32,
            params,
        })
    }

    fn flow(&self, index: usize) -> FlowTerms {
        let Some(flow) = self.spec.flows.get(index) else { return FlowTerms::default() };
        let FlowKind::Tcp(tcp) = &flow.kind else { return FlowTerms::default() };
        let cc = match &tcp.cc {
            Cc::Kernel(name) => name.clone(),
            Cc::Knee(params) => {
                format!("knee.{}", self.variants.iter().position(|v| v == params).unwrap_or(0))
            }
        };
        let options = &tcp.options;
        FlowTerms {
            window_bytes: linux::receive_window_bytes(&self.spec, flow, options, &mut Vec::new()),
            tcp: 1,
            reverse: flow.route.reverse.into(),
            packet_bytes: flow.packet_bytes(),
            mss_bytes: options.mss_bytes,
            initial_window_pkts: options.initial_window_pkts,
            rto_min_ms: (options.rto_min_ns / NS_PER_MS) as u32,
            ack_each: (options.delayed_ack.every_pkts == 1).into(),
            cc: c_text(&cc),
            reserved: 0,
        }
    }

    /// The run; it begins with the first call.
    fn run(&mut self) -> &mut VirtualRun<Rc<RunSpec>, Watch, Tcp> {
        self.run.get_or_insert_with(|| {
            let spec = self.spec.clone();
            // SAFETY: it writes whole messages, between those of `output`.
            let mut output = std::mem::ManuallyDrop::new(unsafe { Output::inherited() });
            let watch = move |progress| {
                // An error shows with the record.
                let _ = output.send(&Message::Progress(progress));
            };
            let (open_spec, capture) = (spec.clone(), self.capture);
            VirtualRun::begin(
                spec,
                Capture::new(capture),
                Box::new(watch) as Watch,
                move |index, tcp| Tcp::new(&open_spec, index, tcp),
            )
        })
    }

    /// Carries out what is due by `now_ns`; when something is due next.
    fn advance(&mut self, now_ns: Ns) -> Result<Ns, HostError> {
        let duration_ns = self.spec.duration_ns;
        self.calls = self.calls.wrapping_add(1);
        if self.calls.is_multiple_of(ALIVE_CALLS) {
            self.output.send(&Message::Progress(Progress::At(now_ns.min(duration_ns))))?;
        }
        self.run().advance(now_ns)?;
        self.send_packets(false)?;
        if now_ns >= duration_ns {
            self.end();
        }
        Ok(self.next_due_ns())
    }

    /// Time at which the path is to be called next.
    fn next_due_ns(&mut self) -> Ns {
        match self.ended {
            true => NEVER,
            false => self.run().network.next_due_ns().min(self.spec.duration_ns),
        }
    }

    /// Sends the packets that were noted.
    fn send_packets(&mut self, last: bool) -> Result<(), HostError> {
        match &mut self.run {
            Some(run) => run.shared().send(&mut self.output, last),
            None => Ok(()),
        }
    }

    /// A packet of the kernel leaves the end `end`; when something is due next.
    fn send(&mut self, now_ns: Ns, end: u32, packet: &KernelPacket) -> Result<Ns, HostError> {
        let flow_of = |headers: &headers::Headers| {
            let flow = headers.source_port.checked_sub(linux::FIRST_PORT)?;
            let known = self.spec.flows.get(usize::from(flow))?;
            matches!(known.kind, FlowKind::Tcp(_)).then_some(u32::from(flow))
        };
        let known = headers::parse(packet.start(), packet.bytes);
        let known = known.and_then(|headers| Some((flow_of(&headers)?, headers)));
        if !self.ended && known.is_some() {
            self.advance(now_ns)?;
        }
        let Some((flow, headers)) = known.filter(|_| !self.ended) else {
            kernel::drop_packet(packet.skb);
            // The reset of a connection that is no more does not stop the others.
            return Ok(self.next_due_ns());
        };
        self.run().with(flow, |tcp, at| {
            tcp.send(packet, end, &headers, at);
            Ok(())
        })?;
        // The path reports a drop at once.
        self.advance(now_ns)
    }

    fn end(&mut self) {
        self.ended = true;
        kernel::run_ended();
    }

    fn fail(&mut self, error: HostError) {
        if !self.ended {
            // If the error cannot be reported, the missing record shows it.
            let _ = self.output.send(&Message::Failed(error));
            self.run = None;
            self.end();
        }
    }

    fn finish(&mut self) -> Result<(), HostError> {
        self.send_packets(true)?;
        let Some(mut run) = self.run.take() else { return Ok(()) };
        for flow in 0..self.spec.flows.len() {
            if let Some(connection) = run.connection(flow) {
                connection.send_calls(&mut self.output)?;
            }
        }
        let record = run.finish()?;
        self.output.send(&Message::Record(Box::new(record)))
    }
}

/// The functions of this library that the kernel calls.
#[unsafe(export_name = "knee_path")]
static PATH: Path = Path {
    read,
    open,
    variant,
    flow,
    sysctl,
    refuse,
    advance,
    send,
    received,
    called,
    first_draw,
    ended,
    fail,
    finish,
};

/// Reads the run's specification. 1: it has failed.
extern "C" fn read() -> i32 {
    // SAFETY: the process has inherited the descriptor for this.
    match Guest::new(unsafe { Output::inherited() }) {
        Ok(guest) => {
            // SAFETY: there is one caller at a time.
            unsafe { *GUEST.0.get() = Some(guest) };
            0
        }
        Err((mut output, error)) => {
            // If the error cannot be reported, the missing record shows it.
            let _ = output.send(&Message::Failed(error));
            1
        }
    }
}

/// Takes the kernel's functions and describes the stack.
///
/// # Safety
/// `kernel` is readable and `stack` is writable.
unsafe extern "C" fn open(kernel: *const Kernel, stack: *mut Stack) {
    // SAFETY: the caller grants it.
    kernel::take(unsafe { *kernel });
    if let Some(of) = with(None, |guest| Some(guest.stack())) {
        // SAFETY: the caller grants it.
        unsafe { *stack = of };
    }
}

/// Describes an algorithm with its parameters.
///
/// # Safety
/// `terms` is writable.
unsafe extern "C" fn variant(variant: u32, terms: *mut VariantTerms) {
    if let Some(of) = with(None, |guest| guest.variant(variant as usize)) {
        // SAFETY: the caller grants it.
        unsafe { *terms = of };
    }
}

/// Describes a flow.
///
/// # Safety
/// `terms` is writable.
unsafe extern "C" fn flow(flow: u32, terms: *mut FlowTerms) {
    let of = with(FlowTerms::default(), |guest| guest.flow(flow as usize));
    // SAFETY: the caller grants it.
    unsafe { *terms = of };
}

/// Gives a sysctl of an end. 0: there are no more.
///
/// # Safety
/// `terms` is writable.
unsafe extern "C" fn sysctl(end: u32, index: u32, terms: *mut SysctlTerms) -> i32 {
    let of = with(None, |guest| {
        let mut of_end = guest.spec.sysctls.iter().filter(|sysctl| sysctl.ends[end as usize & 1]);
        let sysctl = of_end.nth(index as usize)?;
        Some(SysctlTerms { name: c_text(&sysctl.name), value: c_text(&sysctl.value) })
    });
    let found = of.is_some().into();
    if let Some(of) = of {
        // SAFETY: the caller grants it.
        unsafe { *terms = of };
    }
    found
}

/// The kernel does not take a sysctl.
///
/// # Safety
/// `terms` is readable and holds C strings.
unsafe extern "C" fn refuse(terms: *const SysctlTerms, error: i32) {
    // SAFETY: the caller grants it.
    let [name, value] = unsafe { [(*terms).name.as_ptr(), (*terms).value.as_ptr()] }
        // SAFETY: the caller grants it.
        .map(|text| unsafe { CStr::from_ptr(text) }.to_string_lossy());
    let error = io::Error::from_raw_os_error(-error);
    let (why, help) = match error.kind() {
        io::ErrorKind::NotFound => (
            format!("linux.sysctl: this kernel has no sysctl net.ipv4.{name}"),
            "leave it out, or run another kernel with --kernel".to_owned(),
        ),
        _ => (
            format!("linux.sysctl: the kernel does not take net.ipv4.{name} = {value}: {error}"),
            format!("Documentation/networking/ip-sysctl.rst of Linux has the values of {name}"),
        ),
    };
    let error = HostError::new(HostErrorKind::Unsupported, why).with_help(help);
    with((), |guest| guest.fail(error));
}

/// Time has passed.
extern "C" fn advance(now_ns: u64) -> u64 {
    with(NEVER, |guest| {
        if guest.ended {
            return NEVER;
        }
        guest.advance(now_ns).unwrap_or_else(|error| {
            guest.fail(error);
            NEVER
        })
    })
}

/// An end sends a packet.
///
/// # Safety
/// `packet` is readable.
unsafe extern "C" fn send(now_ns: u64, end: u32, packet: *const KernelPacket) -> u64 {
    // SAFETY: the caller grants it.
    let packet = unsafe { &*packet };
    with(NEVER, |guest| {
        guest.send(now_ns, end, packet).unwrap_or_else(|error| {
            guest.fail(error);
            NEVER
        })
    })
}

/// The receiver of a flow has read this many bytes.
extern "C" fn received(now_ns: u64, flow: u32, bytes: u32) {
    with((), |guest| {
        if guest.ended {
            return;
        }
        if let Some(connection) = guest.run().connection(flow as usize) {
            connection.received(now_ns, bytes);
        }
    });
}

/// The algorithm of a flow was called.
///
/// # Safety
/// `call` is readable.
unsafe extern "C" fn called(flow: u32, call: *const Called) {
    // SAFETY: the caller grants it.
    let call = unsafe { &*call };
    with((), |guest| {
        let Some(rtt_call) = guest.rtt_calls.get(flow as usize).copied().flatten() else { return };
        let Some(run) = guest.run.as_mut().filter(|_| !guest.ended) else { return };
        let Some(connection) = run.connection(flow as usize) else { return };
        if let Err(error) = connection.called(call, rtt_call, &mut guest.output) {
            guest.fail(error);
        }
    });
}

/// The first random number of a flow's algorithm.
extern "C" fn first_draw(flow: u32) -> u32 {
    with(0, |guest| match guest.spec.flows.get(flow as usize) {
        Some(_) => guest.spec.random("algorithm", flow as usize).bits32(),
        None => 0,
    })
}

/// 1 after the run's end or failure, else 0.
extern "C" fn ended() -> i32 {
    with(1, |guest| guest.ended.into())
}

/// The kernel could not do something for a flow.
///
/// # Safety
/// `doing` is a C string.
unsafe extern "C" fn fail(flow: u32, doing: *const c_char, error: i32) {
    // SAFETY: the caller grants it.
    let doing = unsafe { CStr::from_ptr(doing) }.to_string_lossy();
    with((), |guest| {
        let flow = guest.spec.flows.get(flow as usize);
        let of_flow = flow.map_or(String::new(), |flow| format!("flow {}: ", flow.name));
        let error = match flow.and_then(kernel_algorithm) {
            Some(name) if error == NOT_FOUND => HostError {
                help: Some(
                    "the names are those of the congestion controls in net/ipv4 of the kernel's source, such as \
                     kernel:reno"
                        .to_owned(),
                ),
                ..broken(format!("{of_flow}this kernel has no congestion control {name:?}"))
            },
            _ => {
                let error = io::Error::from_raw_os_error(-error);
                broken(format!("{of_flow}{doing}: {error}"))
            }
        };
        guest.fail(error);
    });
}

/// The kernel's error for a name that it does not know: `-ENOENT`.
const NOT_FOUND: i32 = -2;

/// Name of the kernel's own congestion control that a flow uses, if it uses one.
fn kernel_algorithm(flow: &FlowSpec) -> Option<&str> {
    match &flow.kind {
        FlowKind::Tcp(TcpSpec { cc: Cc::Kernel(name), .. }) => Some(name),
        _ => None,
    }
}

/// Sends the record.
extern "C" fn finish() {
    with((), |guest| {
        if let Err(error) = guest.finish() {
            guest.ended = false;
            guest.fail(error);
        }
    });
}
