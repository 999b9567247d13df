//! The virtual machine as a [`Host`].

use crate::{
    kernels::{self, KernelChoice},
    machine::{BUDGET, Machine, Snapshot},
    message::{Answer, Compiled, PCAP, Request, Run},
    snapshots::Booted,
};
use knee_cc::{Algorithm, Params};
use knee_model::{
    Host, HostError, HostErrorKind, NS_PER_S, Ns, Progress, RunOptions, RunRecord, RunSpec, Tell,
    failure::{broken, too_slow},
};
use knee_testbed::{Variants, lateness};
use std::{
    env,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{Arc, Mutex, PoisonError, Weak},
};

/// A guest's budget in addition to twice the run's length: for its start, and for handling long traces.
const BUDGET_NS: u64 = 300 * NS_PER_S;
/// Measured: 200 Mbit/s are in time, 300 are not.
const TOO_FAST: &str = "its processor executes 10⁹ instructions in a second of its time, enough for about \
    16 000 packets: take a slower path, or --host kernel";

/// Real Linux TCP in virtual time.
#[derive(Default)]
pub struct Vm {
    /// A guest with each kernel that runs have requested.
    booted: Mutex<Vec<(Option<String>, Arc<Booted>)>>,
    /// Those that have loaded a run's algorithms, too.
    loaded: Mutex<Vec<Loaded>>,
}

/// A guest, by its hash, with algorithms. Runs that use it now have it open; nobody else, so that the
/// cache can forget it.
struct Loaded {
    hash: String,
    needed: Vec<Params>,
    snapshot: Arc<Mutex<Weak<Snapshot>>>,
}

impl Vm {
    /// Without a guest yet.
    pub const fn new() -> Self {
        Self { booted: Mutex::new(Vec::new()), loaded: Mutex::new(Vec::new()) }
    }

    /// The guest from which runs with `options` start. It is booted by whoever needs it first; the others
    /// wait.
    fn booted(&self, options: &RunOptions) -> Result<Arc<Booted>, HostError> {
        let mut all = self.booted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, booted)) = all.iter().find(|(kernel, _)| *kernel == options.kernel) {
            return Ok(booted.clone());
        }
        let choice = options.kernel.as_deref().map(str::parse::<KernelChoice>).transpose();
        let choice = choice.map_err(|e| HostError::new(HostErrorKind::Unavailable, e))?;
        let booted = Arc::new(Booted::with(kernels::find(choice.as_ref())?)?);
        all.push((options.kernel.clone(), booted.clone()));
        Ok(booted)
    }

    /// The guest from which a run with these algorithms starts: it has loaded them. They are loaded by
    /// whoever needs them first; the others wait.
    fn loaded(&self, booted: &Booted, needed: &[Params]) -> Result<Arc<Snapshot>, HostError> {
        if needed.is_empty() {
            return Ok(booted.snapshot.clone());
        }
        let slot = {
            let mut all = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            let known = all.iter().find(|l| l.hash == booted.hash && l.needed == needed);
            known.map(|l| l.snapshot.clone()).unwrap_or_else(|| {
                let snapshot = Arc::default();
                let hash = booted.hash.clone();
                all.push(Loaded { hash, needed: needed.to_vec(), snapshot: Arc::clone(&snapshot) });
                snapshot
            })
        };
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(snapshot) = slot.upgrade() {
            return Ok(snapshot);
        }
        let snapshot = Arc::new(booted.loaded(needed)?);
        *slot = Arc::downgrade(&snapshot);
        Ok(snapshot)
    }
}

impl Host for Vm {
    fn name(&self) -> &'static str {
        "vm"
    }

    fn about(&self) -> &'static str {
        "Linux in a virtual machine: real TCP in virtual time, the same bytes each time; needs QEMU"
    }

    fn doing(&self) -> &'static str {
        "running in virtual machines"
    }

    fn check(&self, spec: &RunSpec, options: &RunOptions) -> Result<(), HostError> {
        knee_testbed::check(spec, options)
    }

    fn has_kernels(&self) -> bool {
        true
    }

    fn run_with_progress(
        &self,
        spec: &RunSpec,
        options: &RunOptions,
        tell: Tell<'_>,
    ) -> Result<RunRecord, HostError> {
        self.check(spec, options)?;
        if let Some(pcap) = options.pcap.as_deref().filter(|pcap| pcap.exists()) {
            let help = "choose another name, or remove it first";
            return Err(broken(format!("`{}` exists already", pcap.display())).with_help(help));
        }
        let booted = self.booted(options)?;
        let needed = Variants::needed(spec);
        let snapshot = self.loaded(&booted, &needed)?;
        let request = Request::Run(Box::new(Run {
            spec: spec.clone(),
            pcap: options.pcap.is_some(),
            qlog: options.qlog.is_some(),
            budget_ns: budget_ns(spec)?,
        }));
        // The guest knows those that it has loaded.
        let known = |a: &Algorithm| needed.iter().any(|params| params.algorithm() == *a);
        let own = Compiled::all(spec.algorithms().filter(|a| !known(a)))?;
        let request = postcard::to_stdvec(&(own, request)).map_err(broken)?;
        let arguments = &booted.arguments;
        let results = Machine::resume(arguments, &snapshot, &request, |ns| tell(Progress::At(ns)))?;
        drop(snapshot);
        let answer = Answer::of(&results)?;
        let mut record = answer.record?;
        record.name_observed(spec);
        if let Some(late) = lateness(spec, &record) {
            let why = format!("the guest was too slow for this path: {late}");
            return Err(too_slow(why, TOO_FAST));
        }
        for (flow, trace) in record.flows.iter_mut().zip(answer.traces) {
            flow.trace = trace;
        }
        let mut rest = results.get(1).map_or(&[][..], Vec::as_slice);
        for file in &answer.files {
            let (contents, after) = rest
                .split_at_checked(file.bytes as usize)
                .ok_or_else(|| broken("the guest gave less than its files have"))?;
            rest = after;
            match (&options.pcap, &options.qlog) {
                (Some(pcap), _) if file.name == PCAP => keep(pcap, contents)?,
                (_, Some(folder)) => keep(&folder.join(&file.name), contents)?,
                _ => {}
            }
        }
        Ok(record)
    }

    fn fingerprint(&self, _: &RunSpec, options: &RunOptions) -> Option<String> {
        // The hash covers this program, and with it the algorithms.
        Some(format!("vm {}", self.booted(options).ok()?.hash))
    }

    fn made_with(&self, options: &RunOptions) -> Vec<(&'static str, String)> {
        let Ok(booted) = self.booted(options) else { return Vec::new() };
        vec![
            ("kernel", booted.kernel.release.clone()),
            ("kernel package", booted.kernel.describe()),
            ("QEMU", booted.qemu.clone()),
            ("virtual machine (SHA-256)", booted.hash.clone()),
        ]
    }
}

/// Longest time that a guest may take, of its own.
pub(crate) fn budget_ns(spec: &RunSpec) -> Result<Ns, HostError> {
    let Some(seconds) = env::var_os(BUDGET) else {
        return Ok(spec.duration_ns.saturating_mul(2).saturating_add(BUDGET_NS));
    };
    let number = seconds.to_str().and_then(|text| text.parse::<Ns>().ok()).filter(|s| *s > 0);
    number.map(|s| s.saturating_mul(NS_PER_S)).ok_or_else(|| {
        broken(format!("{BUDGET}={}: not a number of seconds", seconds.display()))
            .with_help(format!("write a whole number, as in {BUDGET}=1000, or unset it"))
    })
}

/// Writes a new file, which has its name once it is whole.
fn keep(path: &Path, contents: &[u8]) -> Result<(), HostError> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let written = fs::create_dir_all(folder).and_then(|()| {
        // As files usually are; the process's mask still applies.
        let usual = Permissions::from_mode(0o666);
        let mut new = tempfile::Builder::new().permissions(usual).tempfile_in(folder)?;
        std::io::Write::write_all(&mut new, contents)?;
        new.persist_noclobber(path).map_err(|e| e.error)
    });
    written.map(drop).map_err(|e| {
        let why = format!("cannot write {}: {e}", path.display());
        broken(why)
    })
}
