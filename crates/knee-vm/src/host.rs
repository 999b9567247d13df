//! The virtual machine as a [`Host`].

use crate::{
    initramfs,
    kernels::{self, Kernel, KernelChoice},
    machine::{self, BUDGET},
    message::{Answer, Compiled, PCAP, Request},
    window::in_memory,
};
use knee_model::{
    Host, HostError, HostErrorKind, NS_PER_S, Ns, Progress, RunOptions, RunRecord, RunSpec, Tell,
    digest,
    failure::{broken, doing, too_slow},
};
use knee_testbed::lateness;
use std::{
    env,
    fs::{self, File, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

/// A guest's budget in addition to twice the run's length: for its start, and for handling long traces.
const BUDGET_NS: u64 = 300 * NS_PER_S;
/// Measured: 200 Mbit/s are in time, 300 are not.
const TOO_FAST: &str = "its processor executes 10⁹ instructions in a second of its time, enough for about \
    16 000 packets: take a slower path, or --host kernel";

/// Linux TCP of a distribution's kernel in virtual time.
#[derive(Default)]
pub struct Vm {
    /// The guest with each kernel that runs have requested.
    guests: Mutex<Vec<(Option<String>, Arc<Guest>)>>,
}

/// The parts of a guest.
struct Guest {
    kernel: Kernel,
    /// QEMU's version.
    qemu: String,
    /// The kernel's image, and the file system.
    image: File,
    initramfs: File,
    /// Hash of all that it is made of: kernel, file system with this program, QEMU, arguments.
    hash: String,
}

impl Guest {
    fn with(kernel: Kernel) -> Result<Self, HostError> {
        let qemu = machine::version()?;
        let archive = initramfs::archive(&kernel)?;
        let image = fs::read(&kernel.image).map_err(doing("reading", &kernel.image))?;
        let arguments = machine::arguments("IMAGE", "INITRAMFS", "WINDOW").join(" ");
        let hash = digest::of_parts([&image, &archive, qemu.as_bytes(), arguments.as_bytes()]);
        let [image, initramfs] = [in_memory(&image), in_memory(&archive)];
        let (image, initramfs) = (image.map_err(broken)?, initramfs.map_err(broken)?);
        Ok(Self { kernel, qemu, image, initramfs, hash })
    }
}

impl Vm {
    /// Without a guest yet.
    pub const fn new() -> Self {
        Self { guests: Mutex::new(Vec::new()) }
    }

    /// The guest of runs with `options`. It is put together by whoever needs it first; the others wait.
    fn guest(&self, options: &RunOptions) -> Result<Arc<Guest>, HostError> {
        let mut all = self.guests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, guest)) = all.iter().find(|(kernel, _)| *kernel == options.kernel) {
            return Ok(guest.clone());
        }
        let choice = options.kernel.as_deref().map(str::parse::<KernelChoice>).transpose();
        let choice = choice.map_err(|e| HostError::new(HostErrorKind::Unavailable, e))?;
        let guest = Arc::new(Guest::with(kernels::find(choice.as_ref())?)?);
        all.push((options.kernel.clone(), guest.clone()));
        Ok(guest)
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
        let guest = self.guest(options)?;
        let request = Request {
            spec: spec.clone(),
            pcap: options.pcap.is_some(),
            qlog: options.qlog.is_some(),
            budget_ns: budget_ns(spec)?,
        };
        let request = (Compiled::all(spec.algorithms())?, request);
        let request = postcard::to_stdvec(&request).map_err(broken)?;
        let told = |ns| tell(Progress::At(ns));
        let answer = machine::answer(&guest.image, &guest.initramfs, &request, told)?;
        let answer: Answer = postcard::from_bytes(&answer)
            .map_err(|e| broken(format!("the guest's answer cannot be read: {e}")))?;
        let mut record = answer.record?;
        record.name_observed(spec);
        if let Some(late) = lateness(spec, &record) {
            let why = format!("the guest was too slow for this path: {late}");
            return Err(too_slow(why, TOO_FAST));
        }
        for (flow, trace) in record.flows.iter_mut().zip(answer.traces) {
            flow.trace = trace;
        }
        for file in &answer.files {
            match (&options.pcap, &options.qlog) {
                (Some(pcap), _) if file.name == PCAP => keep(pcap, &file.contents)?,
                (_, Some(folder)) => keep(&folder.join(&file.name), &file.contents)?,
                _ => {}
            }
        }
        Ok(record)
    }

    fn fingerprint(&self, _: &RunSpec, options: &RunOptions) -> Option<String> {
        // The hash covers this program, and with it the algorithms.
        Some(format!("vm {}", self.guest(options).ok()?.hash))
    }

    fn made_with(&self, options: &RunOptions) -> Vec<(&'static str, String)> {
        let Ok(guest) = self.guest(options) else { return Vec::new() };
        vec![
            ("kernel", guest.kernel.release.clone()),
            ("kernel package", guest.kernel.describe()),
            ("QEMU", guest.qemu.clone()),
            ("virtual machine (SHA-256)", guest.hash.clone()),
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
