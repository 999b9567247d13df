//! The one list of hosts, and of commands that a Cargo feature adds: their names, the feature, and the remedy for a
//! program that was built without it.
//!
//! To add a host: add its entry to [`HOSTS`], and its crate and feature to this crate's `Cargo.toml`.

use knee_model::Host;

/// A Cargo feature of this crate.
pub(crate) struct Feature {
    /// Name in `Cargo.toml`.
    name: &'static str,
    /// Debian packages that it needs to build.
    packages: &'static str,
    /// True if this program was built with it.
    built: bool,
}

const KERNEL_PACKAGES: &str = "clang-19 libelf-dev zlib1g-dev pkg-config make";

macro_rules! feature {
    ($name:literal, $packages:expr) => {
        Feature { name: $name, packages: $packages, built: cfg!(feature = $name) }
    };
}

const KERNEL: Feature = feature!("kernel", KERNEL_PACKAGES);
const QUIC: Feature = feature!("quic", "");
const LAB: Feature = feature!("lab", "");
const SWEEP: Feature = feature!("sweep", "");
const TEST: Feature = feature!("test", "");
const LINUX: Feature = feature!("linux", "");
const VM: Feature = feature!("vm", KERNEL_PACKAGES);

/// A host, whether or not this program was built with it.
pub(crate) struct HostEntry {
    /// Name after `--host`.
    pub(crate) name: &'static str,
    /// The feature that adds it; `None`: every build has it.
    feature: Option<Feature>,
    /// The host itself, if this program was built with it.
    pub(crate) host: Option<&'static dyn Host>,
}

/// All hosts. The first is the default, and every build has it.
pub(crate) static HOSTS: &[HostEntry] = &[
    HostEntry { name: "sim", feature: None, host: Some(&knee_sim::Simulator) },
    HostEntry {
        name: "kernel",
        feature: Some(KERNEL),
        #[cfg(feature = "kernel")]
        host: Some(&knee_testbed::Kernel),
        #[cfg(not(feature = "kernel"))]
        host: None,
    },
    HostEntry {
        name: "quic",
        feature: Some(QUIC),
        #[cfg(feature = "quic")]
        host: Some(&knee_quic_run::Quic),
        #[cfg(not(feature = "quic"))]
        host: None,
    },
    HostEntry {
        name: "vm",
        feature: Some(VM),
        #[cfg(feature = "vm")]
        host: Some(&VM_HOST),
        #[cfg(not(feature = "vm"))]
        host: None,
    },
    HostEntry {
        name: "linux",
        feature: Some(LINUX),
        #[cfg(feature = "linux")]
        host: Some(&knee_linux::Linux),
        #[cfg(not(feature = "linux"))]
        host: None,
    },
];

#[cfg(feature = "vm")]
static VM_HOST: knee_vm::Vm = knee_vm::Vm::new();

/// The commands that some builds lack, and the features that add them.
static COMMANDS: &[(&str, Feature)] = &[
    ("kernel", KERNEL),
    ("testbed", KERNEL),
    ("trace", KERNEL),
    ("vm", VM),
    ("linux", LINUX),
    ("lab", LAB),
    ("test", TEST),
    ("sweep", SWEEP),
    (RUN_APART, LAB),
];

/// A command that nobody means by accident, and that help does not list.
pub(crate) const RUN_APART: &str = "run-apart";

impl Feature {
    /// The error for `missing`, which needs this feature.
    fn error(&self, missing: &str) -> String {
        let name = self.name;
        format!(
            "this build of knee lacks {missing}, which the feature `{name}` adds; in Knee's source folder run:\n{}",
            self.install()
        )
    }

    /// The commands that install a program with this feature.
    fn install(&self) -> String {
        match self.packages {
            "" => "  cargo install --path crates/knee --no-default-features --features portable"
                .to_owned(),
            packages => {
                format!("  sudo apt-get install {packages}\n  cargo install --path crates/knee")
            }
        }
    }
}

impl HostEntry {
    /// The error for a host that this program was built without.
    pub(crate) fn missing(&self) -> String {
        self.feature
            .as_ref()
            .map_or_else(String::new, |f| f.error(&format!("the host `{}`", self.name)))
    }
}

/// The remedy for a command that compares hosts, in a program that has only one.
pub(crate) fn second_host_remedy() -> String {
    format!("to add the host `quic`, run in Knee's source folder:\n{}", QUIC.install())
}

/// The line of `knee --help` that names the commands and hosts that this program was built without.
pub(crate) fn help_on_missing() -> String {
    let hosts = HOSTS.iter().filter(|entry| entry.host.is_none());
    let hosts = hosts.map(|entry| format!("--host {}", entry.name));
    let missing = COMMANDS.iter().filter(|(name, feature)| !feature.built && *name != RUN_APART);
    let missing: Vec<_> = missing.map(|(name, _)| (*name).to_owned()).chain(hosts).collect();
    match missing.is_empty() {
        true => String::new(),
        false => format!("\n\nNot in this build: {}; each names its remedy.", missing.join(", ")),
    }
}

/// The error for `name` as a subcommand, if it is a command that this program was built without.
pub(crate) fn missing_command(name: &str) -> Option<String> {
    let (_, feature) = COMMANDS.iter().find(|(known, feature)| *known == name && !feature.built)?;
    Some(feature.error(&format!("the command `{name}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_hosts() {
        assert!(HOSTS[0].host.is_some(), "the default is part of every build");
        for entry in HOSTS {
            assert!(entry.host.is_none_or(|host| host.name() == entry.name), "{}", entry.name);
        }
    }

    #[test]
    fn the_remedy_gives_the_feature_and_the_packages() {
        assert_eq!(
            HOSTS[3].missing(),
            "this build of knee lacks the host `vm`, which the feature `vm` adds; in Knee's source folder run:\n  \
             sudo apt-get install clang-19 libelf-dev zlib1g-dev pkg-config make\n  cargo install --path crates/knee"
        );
        assert_eq!(missing_command("rnu"), None);
        assert_eq!(missing_command("sweep").is_some(), cfg!(not(feature = "sweep")));
    }
}
