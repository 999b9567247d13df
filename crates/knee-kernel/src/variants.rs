//! Loading, pinning, listing and unloading.
//!
//! A variant is a struct_ops map registered by a BPF link. The link lives as long as something
//! refers to it: a process, or a pin in the BPF file system. Sockets refer to the map, so a variant
//! that is unloaded continues to serve the sockets that use it, and disappears with the last.
//!
//! Before Linux 6.4 there are no such links: giving the map its value registers it, deleting that value
//! ends it, and nothing but that does.

use crate::{
    check::{OPS_TYPE, has_links, need_btf},
    error::{not_permitted, of_file, taken, unfit, with_log},
    object::{PARAMS_MAP, RINGS_MAP, SEED_MAP, TRACING_MAP, build, check_name, decode},
    pins::{ensure_pin_dir, pin_path, pins, remove_pin},
};
use knee_cc::{Params, algorithm};
use knee_model::{HostError, failure::broken};
use libbpf_rs::{
    ErrorKind, Link, MapCore, MapFlags, MapHandle, MapType, ObjectBuilder,
    btf::{
        Btf,
        types::{MemberAttr, Struct},
    },
    query::{
        LinkInfoIter, LinkTypeInfo, MapInfoIter, ProgInfoIter, ProgInfoQueryOptions, ProgramInfo,
    },
};
use std::{
    collections::HashMap,
    ffi::CString,
    fs, io,
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::PathBuf,
    sync::OnceLock,
    thread,
    time::Duration,
};

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// `enum bpf_struct_ops_state`: registered without a link.
const STATE_IN_USE: u32 = 1;
/// Key of the one value that a struct_ops map has.
const KEY: [u8; 4] = 0_u32.to_ne_bytes();

/// A registered variant. Dropping it unregisters it, unless it is pinned.
#[derive(Debug)]
pub struct Loaded {
    name: String,
    registration: Registration,
    seed: MapHandle,
}

#[derive(Debug)]
enum Registration {
    /// Its end is that of the variant.
    Link(Link),
    /// The struct_ops map, on kernels without links; none once it is to stay.
    Map(Option<MapHandle>),
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Self::Map(Some(map)) = self {
            // As with a link, nobody hears of a failure here.
            let _ = map.delete(&KEY);
        }
    }
}

/// A variant that outlives this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// The pin; the variant stays until this file is removed or the machine restarts. None before Linux
    /// 6.4, where it stays until it is unloaded.
    pub path: Option<PathBuf>,
    /// A BPF file system had to be mounted on `/sys/fs/bpf` first.
    pub mounted: bool,
}

/// A variant in the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Name for `TCP_CONGESTION`.
    pub name: String,
    /// Name of the algorithm.
    pub algorithm: String,
    /// Its parameters; none if another version of Knee, with another table, loaded it.
    pub params: Option<Params>,
    /// New sockets can use it. If not, it was unloaded and serves the sockets that it has.
    pub registered: bool,
    /// Its pin, if it has one.
    pub pin: Option<PathBuf>,
    /// Sockets that use it, in all network namespaces. Listening ones count, and each namespace whose
    /// default it is counts as one.
    pub sockets: u64,
    /// Its programs.
    pub callbacks: Vec<Callback>,
    map_id: u32,
    /// Number of the link that registers it; none if it is not registered, or without one.
    link_id: Option<u32>,
    /// Numbers of the tracer's maps: its requests, and its ring.
    pub(crate) trace_maps: Option<(u32, u32)>,
}

/// One program of a variant and its cost. The kernel counts only while that is enabled: see
/// [`measure`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callback {
    /// Name in the contract: `init`, `on_rtt` (profile CLASSIC only), `on_ack`, `ssthresh`,
    /// `on_event`, `undo`; or `on_tx_start`, which is `on_event` where the kernel has a callback of its own
    /// for `TX_START`.
    pub name: String,
    /// Counted calls.
    pub calls: u64,
    /// Time in them, nanoseconds.
    pub time_ns: u64,
    /// Instructions that the verifier looked at before it took the program; its limit is a million.
    pub verified_instructions: u32,
}

impl Variant {
    /// Returns whether it stays when the process that loaded it ends.
    pub fn outlives_its_process(&self) -> bool {
        self.registered && (self.pin.is_some() || self.link_id.is_none())
    }
}

impl Callback {
    /// Mean time of a call, nanoseconds; none without calls.
    pub fn ns_per_call(&self) -> Option<f64> {
        (self.calls > 0).then(|| self.time_ns as f64 / self.calls as f64)
    }
}

/// Names that the kernel has.
fn available() -> Result<String, HostError> {
    fs::read_to_string(AVAILABLE).map_err(|e| of_file(AVAILABLE.as_ref(), &e))
}

/// Registers an algorithm with these parameters under `name`.
///
/// # Errors
/// An impossible name, or one that is taken; missing privileges; the kernel refuses, or does not tell its
/// types.
pub fn load(params: &Params, name: &str) -> Result<Loaded, HostError> {
    let layout = Layout::of_kernel()?;
    let bytes = build(params, name, layout.has_tx_start)?;
    if available()?.split_whitespace().any(|known| known == name) {
        return Err(taken(name));
    }
    let linked = layout.has_links;
    let what = || format!("loading {} as `{name}`", params.algorithm().name());
    let object = with_log(what, || {
        let mut object = ObjectBuilder::default().name(name)?.open_memory(&bytes)?;
        let ops = object.maps_mut().find(|map| map.map_type() == MapType::StructOps);
        if let Some(mut ops) = ops.filter(|_| !linked) {
            // The object asks for a map that a link registers.
            ops.set_map_flags(0)?;
        }
        object.load()
    });
    let mut object = object?;
    let seed = object.maps().find(|map| map.name() == SEED_MAP);
    let seed = seed.ok_or_else(|| unfit(format!("the object has no map {SEED_MAP}")))?;
    let seed = with_log(|| format!("opening {SEED_MAP}"), || MapHandle::try_from(&seed))?;
    let ops = object.maps_mut().find(|map| map.map_type() == MapType::StructOps);
    let mut ops = ops.ok_or_else(|| unfit("the object has no struct_ops map"))?;
    let registered = with_log(
        || format!("registering `{name}`"),
        || {
            let mut link = match ops.attach_struct_ops() {
                // Somebody else was quicker.
                Err(e) if e.kind() == ErrorKind::AlreadyExists => return Ok(None),
                link => link?,
            };
            if linked {
                return Ok(Some(Registration::Link(link)));
            }
            // libbpf's link borrows the map's descriptor, which ends here.
            link.disconnect();
            Ok(Some(Registration::Map(Some(MapHandle::try_from(&*ops)?))))
        },
    );
    let registration = registered?.ok_or_else(|| taken(name))?;
    Ok(Loaded { name: name.to_owned(), registration, seed })
}

impl Loaded {
    /// Name under which sockets find it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Lets the random sequences of sockets that open from now on depend on `seed` too. They depend on the
    /// kernel's generator as well, so they are the same again only where that is.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn seed(&self, seed: u32) -> Result<(), HostError> {
        let what = || format!("seeding `{}`", self.name);
        with_log(what, || self.seed.update(&KEY, &seed.to_ne_bytes(), MapFlags::ANY))
    }

    /// Pins the variant: it stays until it is unloaded or the machine restarts.
    ///
    /// # Errors
    /// No BPF file system where one belongs, and none can be mounted; or the pin cannot be made.
    pub fn persist(mut self) -> Result<Pinned, HostError> {
        let link = match &mut self.registration {
            Registration::Link(link) => link,
            Registration::Map(map) => {
                *map = None;
                return Ok(Pinned { path: None, mounted: false });
            }
        };
        let mounted = ensure_pin_dir()?;
        let path = pin_path(&self.name);
        let what = || format!("pinning `{}` as {}", self.name, path.display());
        with_log(what, || link.pin(&path))?;
        Ok(Pinned { path: Some(path), mounted })
    }
}

/// The variant called `name`, which new sockets can use.
fn find(name: &str) -> Result<Variant, HostError> {
    check_name(name)?;
    let variants = list()?;
    let missing = not_loaded(name, &variants);
    variants.into_iter().find(|v| v.registered && v.name == name).ok_or(missing)
}

/// The variant called `name`, and the number of its link.
fn find_link(name: &str) -> Result<(Variant, u32), HostError> {
    let variant = find(name)?;
    let id = variant.link_id.ok_or_else(|| {
        let why = "has no link, as Linux has none before 6.4: it stays until it is unloaded";
        unfit(format!("`{name}` {why}"))
    })?;
    Ok((variant, id))
}

/// The error that there is no variant called `name` among these.
pub(crate) fn not_loaded(name: &str, variants: &[Variant]) -> HostError {
    let loaded: Vec<&str> =
        variants.iter().filter(|v| v.registered).map(|v| v.name.as_str()).collect();
    let loaded = if loaded.is_empty() { "none".to_owned() } else { loaded.join(", ") };
    broken(format!("no variant `{name}` is loaded; loaded: {loaded}"))
}

fn link_by_id(id: u32, name: &str) -> Result<OwnedFd, HostError> {
    // SAFETY: the call takes a number, and gives a new descriptor or a negative number.
    let fd = unsafe { libbpf_sys::bpf_link_get_fd_by_id(id) };
    done(fd, || format!("opening the link of `{name}`"))?;
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The result of a call that gives a negative number and sets errno if it fails.
fn done(result: i32, what: impl FnOnce() -> String) -> Result<(), HostError> {
    if result >= 0 {
        return Ok(());
    }
    let code = io::Error::last_os_error().raw_os_error().unwrap_or(0).max(1);
    with_log(what, || Err(libbpf_rs::Error::from_raw_os_error(code)))
}

/// Ends a variant: no new socket can use it. Those that do keep it until they close.
///
/// # Errors
/// There is no such variant; before Linux 6.11, another process holds it; missing privileges.
pub fn unload(name: &str) -> Result<(), HostError> {
    let variant = find(name)?;
    let Some(id) = variant.link_id else {
        let what = || format!("unloading `{name}`");
        return with_log(what, || MapHandle::from_map_id(variant.map_id)?.delete(&KEY));
    };
    let link = link_by_id(id, name)?;
    // SAFETY: the descriptor is open for the duration of the call.
    let detached = unsafe { libbpf_sys::bpf_link_detach(link.as_raw_fd()) } == 0;
    drop(link);
    if let Some(pin) = variant.pin {
        remove_pin(&pin)?;
    }
    if !detached && find(name).is_ok() {
        return Err(broken(format!(
            "`{name}` stays registered because another process holds it, and only Linux 6.11 or \
             newer can remove it; end the process that loaded it"
        )));
    }
    Ok(())
}

/// Pins a variant that another process holds ([`Loaded`]), so that it outlives that process.
///
/// # Errors
/// The errors of [`Loaded::persist`]; there is no such variant.
pub fn persist(name: &str) -> Result<Pinned, HostError> {
    let (variant, id) = find_link(name)?;
    let link = link_by_id(id, name)?;
    if let Some(path) = variant.pin {
        return Ok(Pinned { path: Some(path), mounted: false });
    }
    let mounted = ensure_pin_dir()?;
    let path = pin_path(name);
    let c_path = CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
    // SAFETY: the path is a string with a final 0, the descriptor is open.
    let result = unsafe { libbpf_sys::bpf_obj_pin(link.as_raw_fd(), c_path.as_ptr()) };
    done(result, || format!("pinning `{name}` as {}", path.display()))?;
    Ok(Pinned { path: Some(path), mounted })
}

/// Removes a variant's pin: it ends with the process that holds it, or at once if none does.
///
/// # Errors
/// There is no such variant, or it is not pinned; missing privileges.
pub fn unpersist(name: &str) -> Result<(), HostError> {
    let (variant, _) = find_link(name)?;
    let pin = variant.pin.ok_or_else(|| {
        let why = "is not pinned: it stays only as long as the process that loaded it";
        broken(format!("`{name}` {why}"))
    })?;
    remove_pin(&pin)
}

/// All variants of Knee in the kernel, whoever loaded them, by name.
///
/// # Errors
/// Missing privileges, or a kernel without the types that are needed.
pub fn list() -> Result<Vec<Variant>, HostError> {
    permitted()?;
    let layout = Layout::of_kernel()?;
    let links: HashMap<u32, u32> = LinkInfoIter::default()
        .filter_map(|link| match link.info {
            LinkTypeInfo::StructOps(ops) => Some((ops.map_id, link.id)),
            _ => None,
        })
        .collect();
    let pins = pins();
    let options = ProgInfoQueryOptions::default().include_map_ids(true);
    let programs: HashMap<u32, ProgramInfo> =
        ProgInfoIter::with_query_opts(options).map(|p| (p.id, p)).collect();
    let mut variants: Vec<Variant> = MapInfoIter::default()
        .filter(|map| {
            map.ty == MapType::StructOps && map.btf_vmlinux_value_type_id == layout.type_id
        })
        .filter_map(|map| {
            let link_id = links.get(&map.id).copied();
            layout.variant(map.id, link_id, &programs, &pins)
        })
        .collect();
    variants.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(variants)
}

/// The iterators below end silently where they are not permitted.
fn permitted() -> Result<(), HostError> {
    let mut id = 0;
    // SAFETY: the call reads a number and writes one.
    let result = unsafe { libbpf_sys::bpf_map_get_next_id(0, &mut id) };
    let error = io::Error::last_os_error();
    match error.kind() {
        io::ErrorKind::PermissionDenied if result < 0 => {
            Err(not_permitted("listing what is loaded"))
        }
        _ => Ok(()),
    }
}

/// The kernel's types of variants: offsets are in the value of a struct_ops map, bytes.
struct Layout {
    has_links: bool,
    has_tx_start: bool,
    type_id: u32,
    /// References to the map in addition to those of open descriptors.
    refcnt: usize,
    /// `enum bpf_struct_ops_state`.
    state: usize,
    name: usize,
    /// Program of each callback, as its number.
    programs: Vec<usize>,
}

/// Members of `struct tcp_congestion_ops` that the shim fills on every kernel.
const OPS: [&str; 7] =
    ["init", "pkts_acked", "cong_avoid", "cong_control", "ssthresh", "cwnd_event", "undo_cwnd"];
/// One more, on kernels that deliver `CA_EVENT_TX_START` through it instead of `cwnd_event` (Linux 7.2).
const TX_START: &str = "cwnd_event_tx_start";

impl Layout {
    /// Returns the layout of the running kernel, read once: that takes milliseconds, and it does not change.
    fn of_kernel() -> Result<&'static Self, HostError> {
        static LAYOUT: OnceLock<Layout> = OnceLock::new();
        if let Some(layout) = LAYOUT.get() {
            return Ok(layout);
        }
        need_btf()?;
        let btf = with_log(|| "reading the kernel's types".to_owned(), Btf::from_vmlinux)?;
        let layout = Self::of(&btf)?;
        Ok(LAYOUT.get_or_init(|| layout))
    }

    fn of(btf: &Btf<'_>) -> Result<Self, HostError> {
        let lacks = |what: &str| unfit(format!("the kernel's types lack {what}"));
        let of = |name: &str| btf.type_by_name::<Struct<'_>>(name).ok_or_else(|| lacks(name));
        let at = |of: &Struct<'_>, name: &str| {
            let member = of.iter().find(|m| m.name.is_some_and(|n| n == name));
            match member.map(|m| m.attr) {
                Some(MemberAttr::Normal { offset }) => Ok(offset as usize / 8),
                _ => Err(lacks(name)),
            }
        };
        let value = of(OPS_TYPE)?;
        let ops = of("tcp_congestion_ops")?;
        let data = at(&value, "data")?;
        // Since Linux 6.9 in a structure of their own.
        let in_common = |name| match of("bpf_struct_ops_common_value") {
            Ok(common) => Ok(at(&value, "common")? + at(&common, name)?),
            Err(_) => at(&value, name),
        };
        let (refcnt, state) = (in_common("refcnt")?, in_common("state")?);
        let mut programs = Vec::new();
        for member in OPS {
            programs.push(data + at(&ops, member)?);
        }
        let tx_start = at(&ops, TX_START).ok();
        programs.extend(tx_start.map(|at| data + at));
        let has_tx_start = tx_start.is_some();
        let type_id = value.type_id().into();
        let has_links = has_links(btf);
        let name = data + at(&ops, "name")?;
        Ok(Self { has_links, has_tx_start, type_id, refcnt, state, name, programs })
    }

    /// The variant whose operations are this map; none if it is not Knee's, or just went away.
    fn variant(
        &self,
        map_id: u32,
        link_id: Option<u32>,
        programs: &HashMap<u32, ProgramInfo>,
        pins: &HashMap<u32, PathBuf>,
    ) -> Option<Variant> {
        let value = value_of(&MapHandle::from_map_id(map_id).ok()?)?;
        let word = |at: usize| Some(u32::from_ne_bytes(value.get(at..at + 4)?.try_into().ok()?));
        let mine: Vec<&ProgramInfo> =
            self.programs.iter().filter_map(|at| programs.get(&word(*at)?)).collect();
        let mut ids: Vec<u32> = mine.iter().flat_map(|p| &p.map_ids).copied().collect();
        ids.sort_unstable();
        ids.dedup();
        let maps: Vec<(u32, MapHandle)> =
            ids.iter().filter_map(|id| Some((*id, MapHandle::from_map_id(*id).ok()?))).collect();
        let called = |name: &str| maps.iter().find(|(_, map)| map.name() == name);
        let id = |name: &str| called(name).map(|(id, _)| *id);
        let params = value_of(&called(PARAMS_MAP)?.1)?;
        let (algorithm_name, words) = decode(&params)?;
        let name = value.get(self.name..)?.split(|b| *b == 0).next()?;
        let callback = |p: &&ProgramInfo| {
            let name = p.name.to_string_lossy();
            let name = name.strip_prefix("knee_").unwrap_or(&name).to_owned();
            Callback {
                name,
                calls: p.run_cnt,
                time_ns: p.run_time_ns,
                verified_instructions: p.verified_insns,
            }
        };
        let registered = link_id.is_some() || word(self.state)? == STATE_IN_USE;
        Some(Variant {
            name: String::from_utf8_lossy(name).into_owned(),
            params: params_of(&algorithm_name, &words),
            algorithm: algorithm_name,
            registered,
            pin: link_id.and_then(|id| pins.get(&id).cloned()),
            sockets: u64::from(word(self.refcnt)?).saturating_sub(registered.into()),
            callbacks: mine.iter().map(callback).collect(),
            map_id,
            link_id,
            trace_maps: id(TRACING_MAP).zip(id(RINGS_MAP)),
        })
    }
}

pub(crate) fn value_of(map: &MapHandle) -> Option<Vec<u8>> {
    map.lookup(&KEY, MapFlags::empty()).ok().flatten()
}

/// The parameters, if the table that this program has explains these words.
fn params_of(name: &str, words: &[u32]) -> Option<Params> {
    let table = algorithm(name)?.params();
    let given = table.iter().zip(words).map(|(p, word)| (p.name, u64::from(*word)));
    Params::new(algorithm(name)?, given).ok().filter(|params| params.words() == words)
}

/// Lets the kernel count for a while; gives the variants with the counts of that time only. Counting
/// itself costs every BPF program of the machine some tens of nanoseconds per call.
///
/// # Errors
/// As [`list`].
pub fn measure(time: Duration) -> Result<Vec<Variant>, HostError> {
    // SAFETY: the call takes a number, and gives a new descriptor or a negative number.
    let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    done(fd, || "enabling the kernel's BPF statistics".to_owned())?;
    // SAFETY: the descriptor is new and nobody else's. The kernel counts until it is closed.
    let counting = unsafe { OwnedFd::from_raw_fd(fd) };
    let before = list()?;
    thread::sleep(time);
    let mut after = list()?;
    drop(counting);
    for variant in &mut after {
        let Some(old) = before.iter().find(|v| v.name == variant.name) else { continue };
        for callback in &mut variant.callbacks {
            let Some(old) = old.callbacks.iter().find(|c| c.name == callback.name) else {
                continue;
            };
            callback.calls = callback.calls.saturating_sub(old.calls);
            callback.time_ns = callback.time_ns.saturating_sub(old.time_ns);
        }
    }
    Ok(after)
}
