//! What this kernel offers.

use crate::{
    Error,
    error::{NEEDED, with_log},
    pins::{BPFFS, has_bpffs},
};
use knee_cc::{Algorithm, Profile};
use libbpf_rs::btf::{
    Btf, ReferencesType,
    types::{FuncProto, Ptr, Struct},
};
use rustix::thread::{CapabilitySet, capabilities};
use std::{fmt, fs, path::Path};

/// The oldest kernel that runs the objects: BPF instruction set version 4.
const OLDEST: (u32, u32) = (6, 6);
const BTF_FILE: &str = "/sys/kernel/btf/vmlinux";
const BTF_REMEDY: &str = "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y, as distributions' are";
/// Kernel's type of the struct_ops map that is registered.
pub(crate) const OPS_TYPE: &str = "bpf_struct_ops_tcp_congestion_ops";
/// Arguments of `cong_control` as the objects of profile RATE take them, and the oldest kernel that
/// gives them.
const CONG_CONTROL_ARGUMENTS: usize = 4;
const OLDEST_RATE: &str = "6.10";
/// What a finding means for loading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// As it should be.
    Good,
    /// No obstacle, but worth knowing.
    Note,
    /// Loading is impossible until this is remedied.
    Missing,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at, such as `"kernel types (BTF)"`.
    pub what: &'static str,
    /// What it means for loading.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What to do about it; empty if nothing.
    pub remedy: String,
}

/// What [`check`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// In the order of importance.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether nothing prevents loading.
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
        vec![release(), btf(), struct_ops(), rate(), jit(), privileges(), lockdown(), bpffs()];
    findings.extend(skips_programs().then(skipped));
    Report { findings }
}

/// Whether this kernel is one of those, not of the mainline, that do not run a BPF program that
/// comes up while process 1 is being interrupted. A call is then left out now and then, and a
/// window or threshold that it should give is whatever stood in a register: such a connection's
/// measurements are worth nothing.
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

/// That the kernel tells of its types.
pub(crate) fn need_btf() -> Result<(), Error> {
    let missing = |e| format!("no kernel types (BTF): {BTF_FILE}: {e}; {BTF_REMEDY}");
    fs::metadata(BTF_FILE).map(|_| ()).map_err(|e| Error::Kernel(missing(e)))
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

/// Number of arguments that the kernel with these types gives `cong_control`.
fn cong_control_arguments(btf: &Btf<'_>) -> Option<usize> {
    let ops = btf.type_by_name::<Struct<'_>>("tcp_congestion_ops")?;
    let member = ops.iter().find(|m| m.name.is_some_and(|n| n == "cong_control"))?;
    let function = btf.type_by_id::<Ptr<'_>>(member.ty)?.referenced_type();
    Some(FuncProto::try_from(function).ok()?.iter().len())
}

/// What is wrong with a kernel that gives `cong_control` this many arguments, for profile RATE.
fn too_old_for_rate(arguments: Option<usize>) -> Option<String> {
    match arguments {
        Some(CONG_CONTROL_ARGUMENTS) => None,
        Some(n) => Some(format!(
            "this kernel calls cong_control with {n} arguments, not {CONG_CONTROL_ARGUMENTS}"
        )),
        None => Some("the kernel's types do not tell the arguments of cong_control".to_owned()),
    }
}

fn rate() -> Finding {
    let what = "algorithms that own their window (profile RATE)";
    let arguments = Path::new(BTF_FILE)
        .exists()
        .then(|| cong_control_arguments(&Btf::from_vmlinux().ok()?))
        .flatten();
    let remedy = format!("boot Linux {OLDEST_RATE} or newer for these; the others run");
    match too_old_for_rate(arguments) {
        None => finding(what, State::Good, "cong_control has the arguments that they take", ""),
        Some(found) => finding(what, State::Note, found, remedy),
    }
}

/// That the kernel can run an algorithm of this profile.
pub(crate) fn need_profile(algorithm: Algorithm) -> Result<(), Error> {
    if algorithm.profile() == Profile::Classic {
        return Ok(());
    }
    let btf = with_log(|| "reading the kernel's types".to_owned(), Btf::from_vmlinux)?;
    too_old_for_rate(cong_control_arguments(&btf)).map_or(Ok(()), |found| {
        let name = algorithm.name();
        Err(Error::Kernel(format!(
            "`{name}` owns its window (profile RATE), and {found}; boot Linux {OLDEST_RATE} or newer"
        )))
    })
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

/// Of the needed capabilities, those that this thread lacks.
fn lacking(needed: CapabilitySet) -> CapabilitySet {
    capabilities(None).map_or(needed, |sets| needed - sets.effective)
}

fn privileges() -> Finding {
    let load = CapabilitySet::BPF | CapabilitySet::PERFMON | CapabilitySet::NET_ADMIN;
    let missing = lacking(load | CapabilitySet::SYS_ADMIN);
    let names: Vec<String> = missing.iter_names().map(|(name, _)| format!("CAP_{name}")).collect();
    let remedy = format!("run as root, or with {NEEDED}");
    // CAP_SYS_ADMIN implies the newer ones.
    let state = match (missing.contains(CapabilitySet::SYS_ADMIN), missing.is_empty()) {
        (_, true) => State::Good,
        (true, _) if missing.intersects(load) => State::Missing,
        (false, _) if missing.contains(CapabilitySet::NET_ADMIN) => State::Missing,
        _ => State::Note,
    };
    let found = match names.is_empty() {
        true => "all that is needed".to_owned(),
        false => format!("without {}", names.join(", ")),
    };
    finding("privileges", state, found, remedy)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests

    use super::*;
    use crate::clang;

    /// The types of a kernel whose `cong_control` has these arguments.
    fn types(arguments: &str) -> Btf<'static> {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let source = format!(
            "struct sock; struct rate_sample; struct tcp_congestion_ops {{ \
             void (*cong_control)({arguments}); }} ops;"
        );
        fs::write(at("kernel.c"), source).unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        clang::run(root, &at("kernel.c"), &at("kernel.o"), &["-O2"]).unwrap();
        Btf::from_path(at("kernel.o")).unwrap()
    }

    #[test]
    fn the_arguments_of_cong_control_decide() {
        let new = types("struct sock *, unsigned, int, const struct rate_sample *");
        let old = types("struct sock *, const struct rate_sample *");
        assert_eq!([&new, &old].map(cong_control_arguments), [Some(4), Some(2)]);
        assert_eq!(too_old_for_rate(Some(4)), None);
        let found = too_old_for_rate(Some(2)).unwrap();
        assert!(found.contains("with 2 arguments, not 4"), "{found}");
        assert!(too_old_for_rate(None).is_some());
        let here = Btf::from_vmlinux().unwrap();
        assert_eq!(rate().state == State::Good, cong_control_arguments(&here) == Some(4));
    }
}
