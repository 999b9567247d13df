//! Checks of this kernel's features.

use crate::{
    error::{NEEDED, unfit},
    pins::{BPFFS, has_bpffs},
};
use knee_model::HostError;
use libbpf_rs::btf::{Btf, types::Struct};
use rustix::{
    fs::{Access, access},
    thread::{CapabilitySet, capabilities},
};
use std::{fmt, fs, path::Path};

/// The oldest kernel that the objects were tested on.
const OLDEST: (u32, u32) = (6, 1);
const BTF_FILE: &str = "/sys/kernel/btf/vmlinux";
const BTF_REMEDY: &str = "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y, as distributions' are";
/// Kernel's type of the struct_ops map that is registered.
pub(crate) const OPS_TYPE: &str = "bpf_struct_ops_tcp_congestion_ops";
/// Kernel's type of the link that holds a registration: there since Linux 6.4.
const LINK_TYPE: &str = "bpf_struct_ops_link";

/// A finding's consequence for loading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// All is well.
    Good,
    /// No obstacle, but worth knowing.
    Note,
    /// Loading is impossible until this is remedied.
    Missing,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The feature looked at, such as `"kernel types (BTF)"`.
    pub what: &'static str,
    /// Its consequence for loading.
    pub state: State,
    /// The finding in words.
    pub found: String,
    /// A remedy; empty if none is needed.
    pub remedy: String,
}

/// The findings of [`check`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// In the order of importance.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Returns whether nothing prevents loading.
    pub fn can_load(&self) -> bool {
        self.findings.iter().all(|f| f.state != State::Missing)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            let Finding { what, state, found, remedy } = finding;
            let mark = match state {
                State::Good => "ok",
                State::Note => "note",
                State::Missing => "MISSING",
            };
            writeln!(f, "{mark:<8} {what}: {found}")?;
            if !remedy.is_empty() {
                writeln!(f, "{:<8} {remedy}", "")?;
            }
        }
        Ok(())
    }
}

/// Looks at the kernel and at this process's privileges; changes nothing.
pub fn check() -> Report {
    let mut findings =
        vec![release(), btf(), struct_ops(), links(), jit(), privileges(), lockdown(), bpffs()];
    findings.extend(skips_programs().then(skipped));
    Report { findings }
}

/// Returns whether this kernel, not of the mainline, skips a BPF program that comes up while process 1
/// is being interrupted. A call is then left out now and then, and the window or threshold that it
/// should give is whatever a register held: such a connection's measurements are worth nothing.
pub fn skips_programs() -> bool {
    let types = Path::new(BTF_FILE).exists().then(|| Btf::from_vmlinux().ok()).flatten();
    types.is_some_and(|btf| {
        let aux = btf.type_by_name::<Struct<'_>>("bpf_prog_aux");
        aux.is_some_and(|aux| aux.iter().any(|m| m.name.is_some_and(|n| n == "init_owned")))
    })
}

fn skipped() -> Finding {
    finding(
        "calls of programs",
        State::Note,
        "a patch in this kernel (bpf_prog_aux.init_owned) skips those that interrupt process 1",
        "on rare occasions a window jumps for no reason: repeat suspicious runs, and measure on a stock kernel",
    )
}

fn finding(
    what: &'static str,
    state: State,
    found: impl Into<String>,
    remedy: impl Into<String>,
) -> Finding {
    let remedy = if state == State::Good { String::new() } else { remedy.into() };
    Finding { what, state, found: found.into(), remedy }
}

fn release() -> Finding {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let state = if version >= OLDEST { State::Good } else { State::Missing };
    let (major, minor) = OLDEST;
    finding("kernel release", state, release, format!("boot Linux {major}.{minor} or newer"))
}

fn btf() -> Finding {
    let what = "kernel types (BTF)";
    match fs::metadata(BTF_FILE) {
        Ok(_) => finding(what, State::Good, BTF_FILE, ""),
        Err(e) => finding(what, State::Missing, format!("{BTF_FILE}: {e}"), BTF_REMEDY),
    }
}

/// Checks that the kernel tells of its types.
pub(crate) fn need_btf() -> Result<(), HostError> {
    let missing = |e| unfit(format!("no kernel types (BTF): {BTF_FILE}: {e}; {BTF_REMEDY}"));
    fs::metadata(BTF_FILE).map(drop).map_err(missing)
}

fn struct_ops() -> Finding {
    let what = "TCP congestion control in BPF";
    let remedy = "boot a kernel built with CONFIG_BPF_SYSCALL=y, CONFIG_BPF_JIT=y, CONFIG_INET=y";
    let found = Path::new(BTF_FILE)
        .exists()
        .then(|| Btf::from_vmlinux().ok()?.type_by_name::<Struct<'_>>(OPS_TYPE).map(|_| ()));
    match found.flatten() {
        Some(()) => finding(what, State::Good, "struct_ops of type tcp_congestion_ops", ""),
        None => finding(what, State::Missing, format!("no type {OPS_TYPE}"), remedy),
    }
}

/// Returns whether a process can hold a registration, so that it ends with that process.
pub(crate) fn has_links(btf: &Btf<'_>) -> bool {
    btf.type_by_name::<Struct<'_>>(LINK_TYPE).is_some()
}

fn links() -> Finding {
    let what = "variants that end with their process";
    let types = Path::new(BTF_FILE).exists().then(|| Btf::from_vmlinux().ok()).flatten();
    match types.is_some_and(|btf| has_links(&btf)) {
        true => finding(what, State::Good, "struct_ops links", ""),
        false => finding(
            what,
            State::Note,
            "none: each stays until it is unloaded, even if its process is killed",
            "boot Linux 6.4 or newer, or look at `knee kernel list` after a crash",
        ),
    }
}

fn jit() -> Finding {
    let path = "/proc/sys/net/core/bpf_jit_enable";
    let (state, found) = match fs::read_to_string(path).as_deref().map(str::trim) {
        Ok("0") => (State::Missing, "off".to_owned()),
        Ok(_) => (State::Good, "on".to_owned()),
        // Readable by root only, and only outside of network namespaces.
        Err(_) => return finding("BPF compiler (JIT)", State::Note, "not shown here", ""),
    };
    finding("BPF compiler (JIT)", state, found, "sysctl net.core.bpf_jit_enable=1")
}

/// Returns the needed capabilities that this thread lacks.
fn lacking(needed: CapabilitySet) -> CapabilitySet {
    capabilities(None).map_or(needed, |sets| needed - sets.effective)
}

fn privileges() -> Finding {
    let load = CapabilitySet::BPF | CapabilitySet::PERFMON;
    let missing = lacking(load | CapabilitySet::SYS_ADMIN);
    let names: Vec<String> = missing.iter_names().map(|(name, _)| format!("CAP_{name}")).collect();
    let remedy = format!("run as root, or with {NEEDED}");
    // CAP_SYS_ADMIN implies the newer ones.
    let state = match missing.contains(CapabilitySet::SYS_ADMIN) {
        _ if missing.is_empty() => State::Good,
        true if missing.intersects(load) => State::Missing,
        _ => State::Note,
    };
    let pins = access(BPFFS, Access::WRITE_OK).is_ok();
    match names.is_empty() {
        true if !pins => {
            let found = format!("all but write access to {BPFFS}, where variants are pinned");
            finding("privileges", State::Note, found, "run as root, or use `load --hold`")
        }
        true => finding("privileges", state, "all that is needed", remedy),
        false => finding("privileges", state, format!("without {}", names.join(", ")), remedy),
    }
}

fn lockdown() -> Finding {
    let what = "kernel lockdown";
    let text = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    let mode =
        text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(mode, _)| mode);
    match mode {
        Some("confidentiality") => finding(
            what,
            State::Note,
            "confidentiality, which restricts what BPF may read",
            "if loading is refused, boot with lockdown=integrity",
        ),
        mode => finding(what, State::Good, mode.unwrap_or("none"), ""),
    }
}

fn bpffs() -> Finding {
    let what = "BPF file system";
    match has_bpffs() {
        Ok(true) => finding(what, State::Good, BPFFS, ""),
        Ok(false) => {
            let remedy = "`knee kernel load` mounts one (mount -t bpf bpf /sys/fs/bpf)";
            finding(what, State::Note, format!("none on {BPFFS}"), remedy)
        }
        Err(e) => {
            let remedy = "mount sysfs on /sys";
            finding(what, State::Note, format!("{BPFFS}: {e}"), remedy)
        }
    }
}
