//! Records of the calls of loaded variants, through a ring buffer.
//!
//! The programs of every variant look whether somebody traces (`cc/host/bpf/knee/trace.h`). A
//! [`Tracer`] makes the ring and puts it where they find it, so nothing is kept while nobody does.

use crate::{
    Variant,
    error::{untraceable, with_log},
    list,
    variants::{not_loaded, value_of},
};
use knee_cc::{Ack, Conn, OBSERVE_N, Params, State};
use knee_model::{Call, CallRecord, HostError, failure::broken};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, RingBuffer, RingBufferBuilder};
use std::{
    fs,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    os::fd::{AsFd, AsRawFd},
    process, slice,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// The sockets whose calls are wanted; the default is all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Port of either end.
    pub port: Option<u16>,
    /// Address of either end.
    pub address: Option<IpAddr>,
}

/// One life of a connection, as its own end sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketId {
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Initial sequence number: tells two lives of the same addresses and ports apart.
    pub id: u32,
}

/// A variant that is being traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedVariant {
    /// Name that sockets know.
    pub name: String,
    /// Its algorithm and parameters.
    pub params: Params,
}

/// A call, with its variant and connection.
#[derive(Clone, Copy, Debug)]
pub struct TracedCall<'a> {
    /// Whose program.
    pub variant: &'a TracedVariant,
    /// The connection.
    pub socket: SocketId,
    /// The call's input and output.
    pub call: CallRecord,
    /// Calls of this variant that had found no room when this one was recorded.
    pub dropped: u64,
}

/// Traces until it is dropped. A tracer that is killed leaves its ring in the kernel until the
/// next one takes its place or the variant ends; no traffic is disturbed.
#[derive(Debug)]
pub struct Tracer {
    targets: Vec<Target>,
    variants: Vec<TracedVariant>,
    ring_id: u32,
    /// Records that the ring can hold.
    room: usize,
    ring: RingBuffer<'static>,
    inbox: Arc<Mutex<Vec<Record>>>,
    ring_map: MapHandle,
}

/// A variant's maps.
#[derive(Debug)]
struct Target {
    name: String,
    tracing: MapHandle,
    rings: MapHandle,
}

/// `struct knee_tracing`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Tracing {
    dropped: u64,
    tracer_started: u64,
    tracer_pid: u32,
    ring: u32,
    on: u32,
    variant: u32,
    port: u32,
    any_address: u32,
    record_bytes: u32,
    reserved: u32,
    address: [u8; 16],
}

impl Tracing {
    fn off() -> Self {
        Self { record_bytes: size_of::<Record>() as u32, ..Self::default() }
    }
}

/// `struct knee_record`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Record {
    variant: u32,
    socket: u32,
    local: [u8; 16],
    remote: [u8; 16],
    local_port: u16,
    remote_port: u16,
    call: u32,
    event: u32,
    result_pkts: u32,
    dropped: u64,
    before: Conn,
    after: Conn,
    ack: Ack,
    observed: [u32; OBSERVE_N],
    state: State,
}

/// A C structure that is nothing but integers, without gaps.
///
/// # Safety
/// That must be so.
unsafe trait Plain: Copy {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        // SAFETY: there are as many bytes as are read, and any are integers.
        (bytes.len() == size_of::<Self>())
            .then(|| unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the whole of it was written, and lives as long as the result.
        unsafe { slice::from_raw_parts((&raw const *self).cast(), size_of::<Self>()) }
    }
}
// SAFETY: integers only, and the sizes of the fields add up (see the layout below).
unsafe impl Plain for Tracing {}
// SAFETY: as above.
unsafe impl Plain for Record {}
/// The layout, as `cc/host/bpf/knee/trace.h` asserts it with the same numbers.
const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<Tracing>() == 64 && offset_of!(Tracing, tracer_pid) == 16);
    assert!(offset_of!(Tracing, record_bytes) == 40 && offset_of!(Tracing, address) == 48);
    assert!(size_of::<Record>() == 344 && offset_of!(Record, local) == 8);
    assert!(offset_of!(Record, remote) == 24 && offset_of!(Record, local_port) == 40);
    assert!(offset_of!(Record, call) == 44 && offset_of!(Record, dropped) == 56);
    assert!(offset_of!(Record, before) == 64 && offset_of!(Record, after) == 128);
    assert!(offset_of!(Record, ack) == 192 && offset_of!(Record, observed) == 240);
    assert!(offset_of!(Record, state) == 256);
};

/// Records taken from the ring at a time.
const BATCH: usize = 4096;
/// Time between two looks at an empty ring. The programs do not wake the reader, which would cost
/// them more than all the rest.
const REST: Duration = Duration::from_millis(2);

impl Tracer {
    /// Begins to trace the variants of these names (all that are loaded if there are none, and
    /// those that were unloaded but still serve sockets) with a ring of at least `ring_bytes`. At
    /// most one tracer can trace a variant.
    ///
    /// # Errors
    /// A name is not loaded, or nothing is; another process traces one of the variants, or another version of
    /// Knee loaded one that is named; missing privileges or memory.
    pub fn start<N: AsRef<str>>(
        names: &[N],
        filter: Filter,
        ring_bytes: u32,
    ) -> Result<Self, HostError> {
        let ring_bytes = ring_bytes.max(rustix::param::page_size() as u32);
        let ring_bytes = ring_bytes.checked_next_power_of_two().unwrap_or(1 << 31);
        let chosen = choose(names)?;
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
            ..Default::default()
        };
        let what = || format!("making a ring of {ring_bytes} bytes");
        let name = Some("knee_ring");
        let ring_map = with_log(what, || {
            MapHandle::create(MapType::RingBuf, name, 0, 0, ring_bytes, &options)
        })?;
        let ring_id = with_log(what, || Ok(ring_map.info()?.info.id))?;
        let inbox = Arc::new(Mutex::new(Vec::with_capacity(BATCH)));
        let arrived = inbox.clone();
        let ring = with_log(what, || {
            let mut builder = RingBufferBuilder::new();
            builder.add(&ring_map, move |bytes| {
                // Other lengths come from other versions, which `target` does not let pass.
                let record = Record::from_bytes(bytes);
                arrived.lock().unwrap_or_else(PoisonError::into_inner).extend(record);
                0
            })?;
            builder.build()
        })?;
        let mut tracer = Self {
            targets: Vec::new(),
            variants: Vec::new(),
            ring_id,
            room: ring_bytes as usize / size_of::<Record>(),
            ring,
            inbox,
            ring_map,
        };
        for (target, variant) in chosen {
            tracer.add(target, variant, filter)?;
        }
        Ok(tracer)
    }

    fn add(
        &mut self,
        target: Target,
        variant: TracedVariant,
        filter: Filter,
    ) -> Result<(), HostError> {
        let ring = self.ring_map.as_fd().as_raw_fd() as u32;
        let mut wanted = Tracing {
            tracer_started: started(process::id()).unwrap_or(0),
            tracer_pid: process::id(),
            ring: self.ring_id,
            variant: self.variants.len() as u32,
            port: filter.port.unwrap_or(0).into(),
            any_address: filter.address.is_none().into(),
            address: filter.address.map_or([0; 16], |address| match address {
                IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
                IpAddr::V6(v6) => v6.octets(),
            }),
            ..Tracing::off()
        };
        target.set(&wanted)?;
        let key = 0_u32.to_ne_bytes();
        with_log(
            || format!("putting the ring into `{}`", target.name),
            || target.rings.update(&key, &ring.to_ne_bytes(), MapFlags::ANY),
        )?;
        // From here on dropping the tracer takes all this back.
        self.targets.push(target);
        self.variants.push(variant);
        wanted.on = 1;
        // Last: a program that sees it sees the rest.
        self.targets[self.targets.len() - 1].set(&wanted)
    }

    /// Returns the traced variants.
    pub fn variants(&self) -> &[TracedVariant] {
        &self.variants
    }

    /// Gives `to` what was recorded, in order for each connection, and waits for `timeout` at
    /// most if there is nothing. Gives the number of calls.
    ///
    /// # Errors
    /// Another process has taken over the trace; the kernel refuses.
    pub fn poll(
        &mut self,
        timeout: Duration,
        mut to: impl FnMut(TracedCall<'_>),
    ) -> Result<usize, HostError> {
        let start = Instant::now();
        loop {
            let calls = self.take(&mut to)?;
            let left = timeout.saturating_sub(start.elapsed());
            if calls > 0 || left.is_zero() {
                return Ok(calls);
            }
            thread::sleep(REST.min(left));
        }
    }

    /// Takes the calls in the ring, no more than it can hold: the sockets may be faster than `to`.
    fn take(&mut self, to: &mut impl FnMut(TracedCall<'_>)) -> Result<usize, HostError> {
        let mut calls = 0;
        loop {
            let got = self.ring.consume_raw_n(BATCH);
            if got < 0 {
                let error = libbpf_rs::Error::from_raw_os_error(-got);
                with_log(|| "reading the ring".to_owned(), || Err(error))?;
            }
            let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
            for record in inbox.drain(..) {
                if let Some(call) = record.decode(&self.variants) {
                    to(call);
                }
            }
            calls += got as usize;
            if (got as usize) < BATCH || calls >= self.room {
                return Ok(calls);
            }
        }
    }

    /// Calls of sockets that were wanted and found no room in the ring.
    ///
    /// # Errors
    /// Another process has taken over the trace; the kernel refuses.
    pub fn dropped(&self) -> Result<u64, HostError> {
        let mut sum = 0;
        for target in &self.targets {
            let tracing = target.get()?;
            if tracing.ring != self.ring_id {
                let why = "another process has taken over the trace of";
                return Err(broken(format!("{why} `{}`", target.name)));
            }
            sum += tracing.dropped;
        }
        Ok(sum)
    }

    /// Ends recording. The calls in the ring can still be had by [`poll`](Self::poll).
    ///
    /// # Errors
    /// As [`dropped`](Self::dropped).
    pub fn stop(&mut self) -> Result<(), HostError> {
        self.dropped()?;
        for target in &self.targets {
            target.set(&Tracing { on: 0, ..target.get()? })?;
        }
        // A call that is under way may still record.
        thread::sleep(REST);
        Ok(())
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        for target in &self.targets {
            if target.get().is_ok_and(|t| t.ring == self.ring_id) {
                // If it cannot be taken away, the next tracer replaces it.
                let _ = target.set(&Tracing::off());
                let _ = target.rings.delete(&0_u32.to_ne_bytes());
            }
        }
    }
}

impl Target {
    /// Reads the request; the only error is that it is of another version of Knee.
    fn get(&self) -> Result<Tracing, HostError> {
        let tracing = value_of(&self.tracing).and_then(|value| Tracing::from_bytes(&value));
        let known = tracing.filter(|t| t.record_bytes == Tracing::off().record_bytes);
        known.ok_or_else(|| untraceable(&self.name))
    }

    fn set(&self, tracing: &Tracing) -> Result<(), HostError> {
        let what = || format!("tracing `{}`", self.name);
        let key = 0_u32.to_ne_bytes();
        with_log(what, || self.tracing.update(&key, tracing.bytes(), MapFlags::ANY))
    }
}

impl Record {
    fn decode(self, variants: &[TracedVariant]) -> Option<TracedCall<'_>> {
        let end = |address, port| SocketAddr::new(Ipv6Addr::from(address).to_canonical(), port);
        Some(TracedCall {
            variant: variants.get(self.variant as usize)?,
            socket: SocketId {
                local: end(self.local, self.local_port),
                remote: end(self.remote, self.remote_port),
                id: self.socket,
            },
            call: CallRecord {
                call: *Call::ALL.get(self.call as usize)?,
                event: self.event,
                ack: self.ack,
                before: self.before,
                after: self.after,
                result: self.result_pkts,
                observed: self.observed,
                state: self.state,
            },
            dropped: self.dropped,
        })
    }
}

/// The variants of these names and their maps.
fn choose<N: AsRef<str>>(names: &[N]) -> Result<Vec<(Target, TracedVariant)>, HostError> {
    let variants = list()?;
    for name in names.iter().map(AsRef::as_ref) {
        if !variants.iter().any(|v| v.name == name) {
            return Err(not_loaded(name, &variants));
        }
    }
    if variants.is_empty() {
        return Err(broken("no variant is loaded; `knee kernel load chd` loads CHD"));
    }
    let mut chosen = Vec::new();
    for variant in variants {
        let named = names.iter().any(|n| n.as_ref() == variant.name);
        if !named && !names.is_empty() {
            continue;
        }
        match target(&variant)? {
            Some(found) => chosen.push(found),
            None if named => return Err(untraceable(&variant.name)),
            None => {}
        }
    }
    Ok(chosen)
}

/// A variant and its maps; none if another version of Knee loaded it.
fn target(variant: &Variant) -> Result<Option<(Target, TracedVariant)>, HostError> {
    let name = variant.name.clone();
    let Some((params, (tracing, rings))) = variant.params.clone().zip(variant.trace_maps) else {
        return Ok(None);
    };
    let open = |id| with_log(|| format!("tracing `{name}`"), || MapHandle::from_map_id(id));
    let target = Target { tracing: open(tracing)?, rings: open(rings)?, name: name.clone() };
    let Ok(old) = target.get() else { return Ok(None) };
    if old.ring != 0 && started(old.tracer_pid) == Some(old.tracer_started) {
        let why = format!("process {} is tracing `{name}`", old.tracer_pid);
        return Err(broken(format!("{why}; end it first, or trace other variants")));
    }
    Ok(Some((target, TracedVariant { name, params })))
}

/// Returns the start of a process, in the kernel's ticks; none if there is no such process.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program is in brackets and may contain anything.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}
