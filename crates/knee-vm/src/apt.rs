//! Debian's package lists: those of the system, and those of the suite sid, which has newer kernels than any release.
//!
//! `knee-linux` contains this file too.

use knee_model::{
    HostError,
    failure::{broken, doing, unavailable},
};
use std::{fs, io::ErrorKind, path::Path, process::Command};

/// Suite of Debian with newer kernels than any release.
const SID: &str = "sid";
/// The keys of all of Debian's suites, from the package `debian-archive-keyring`.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Package lists that apt reads.
pub(crate) struct Lists {
    /// None: those of the system.
    pub(crate) suite: Option<&'static str>,
    /// Options for apt's programs.
    options: Vec<String>,
}

impl Lists {
    pub(crate) fn of_system() -> Self {
        Self { suite: None, options: Vec::new() }
    }

    /// Downloads the lists of sid into `folder`, from the mirror that the system's own lists are from.
    pub(crate) fn of_sid(folder: &Path) -> Result<Self, HostError> {
        let format = "$(ORIGIN) $(LABEL) $(COMPONENT) $(REPO_URI)";
        let mut known = Command::new("apt-get");
        known.args(["indextargets", "--format", format, "Created-By: Packages"]);
        let known = command(&mut known)?;
        let mirror = known.lines().find_map(|line| line.strip_prefix("Debian Debian main "));
        let mirror = mirror.ok_or_else(|| {
            let why =
                "the system's package lists name no mirror of Debian, so there is none for sid";
            unavailable(why, "on Debian, `apt-get update` as root gets the lists")
        })?;
        let source = folder.join("sid.list");
        let line = format!("deb [arch=amd64 signed-by={KEYRING}] {mirror} {SID} main\n");
        fs::write(&source, line).map_err(doing("writing", &source))?;
        // apt creates the cache, but not this.
        let partial = folder.join("lists/partial");
        fs::create_dir_all(&partial).map_err(doing("creating", &partial))?;
        let mut options = Vec::new();
        let places = [
            ("Dir::Etc::SourceList", source.as_path()),
            ("Dir::Etc::SourceParts", Path::new("/dev/null")),
            ("Dir::State::Lists", &folder.join("lists")),
            ("Dir::Cache", &folder.join("cache")),
        ];
        for (name, place) in places {
            options.extend(["-o".to_owned(), format!("{name}={}", place.display())]);
        }
        for index in ["DEP-11", "DEP-11-icons-small", "DEP-11-icons", "Contents-deb"] {
            let off = format!("Acquire::IndexTargets::deb::{index}::DefaultEnabled=false");
            options.extend(["-o".to_owned(), off]);
        }
        let lists = Self { suite: Some(SID), options };
        let mut update = lists.command("apt-get");
        update.args(["update", "-qq", "-o", "Acquire::Languages=none"]);
        command(update.args(["-o", "APT::Update::Error-Mode=any"]))?;
        Ok(lists)
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.args(&self.options);
        command
    }

    /// The packages on offer whose names begin with `prefix`; none without apt.
    pub(crate) fn names(&self, prefix: &str) -> Vec<String> {
        let names = self.command("apt-cache").args(["pkgnames", prefix]).output();
        let names = names.map(|out| String::from_utf8_lossy(&out.stdout).into_owned());
        names.unwrap_or_default().lines().map(str::to_owned).collect()
    }
}

/// Runs a program to its end; gives its output.
pub(crate) fn command(command: &mut Command) -> Result<String, HostError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| match e.kind() {
        ErrorKind::NotFound => unavailable(
            format!("there is no {name}"),
            "fetch kernels on Debian or a system made of it; elsewhere give a bzImage with --kernel",
        ),
        _ => broken(format!("{name}: {e}")),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let told = String::from_utf8_lossy(&output.stderr);
    Err(broken(format!("{name} failed ({}): {}", output.status, told.trim())))
}
