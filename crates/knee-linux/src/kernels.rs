//! Kernels: from a source package or tree to a program in the cache, known by a hash of everything that went in.

use crate::{
    apt::Lists,
    cache::{
        ABOUT_FILE, About, Kernel, PROGRAM_FILE, UNFINISHED, find, folder, limit_bytes, list, lock,
        make_room, remove_unfinished,
    },
    choice::KernelChoice,
    machine::PATH_LIBRARY,
    parts::{CONFIG, EDITS, MAKEFILE, hash_with, parts},
    tree,
};
use knee_model::{
    HostError, digest,
    failure::{broken, doing, unavailable},
};
use nix::sys::statvfs::statvfs;
use std::{
    collections::BTreeSet,
    env,
    fs::{self, File},
    io::{self, BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Parts of the source that no kernel of this host contains; the configuration reads none of them.
const LEFT_OUT: [&str; 9] = [
    "*.rst",
    "*.yaml",
    "*/drivers/gpu/*.[ch]",
    "*/drivers/net/ethernet/*.[ch]",
    "*/drivers/net/wireless/*.[ch]",
    "*/drivers/media/*.[ch]",
    "*/sound/*.[ch]",
    "*/tools/testing",
    "*/tools/perf",
];
/// A device with less free space is full.
const FULL_BYTES: u64 = 4 << 20;
/// Results of other builds in a source tree, which would stand in the way.
const BUILT: [&str; 5] =
    ["./.config", "./vmlinux", "./linux", "./include/generated", "./include/config"];
/// The names of Debian's source packages, without the series.
const SOURCE_PACKAGE: &str = "linux-source-";
/// Programs that a build needs, and Debian's packages with them.
const TOOLS: [(&str, &str); 12] = [
    ("apt-get", "apt"),
    ("dpkg-deb", "dpkg"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
    ("make", "make"),
    ("gcc", "gcc"),
    ("ld", "binutils"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("sed", "sed"),
    ("grep", "grep"),
];
/// Kills all programs of the build when this process ends, however it does: the shell's input is a pipe from it.
const GUARD: &str = r#"exec 3<&0 </dev/null
"$@" 3<&- &
job=$!
{ cat <&3 >/dev/null 2>&1; kill -s KILL 0; } >/dev/null 2>&1 &
exec 3<&-
wait $job"#;
/// Last lines of a failed build that are shown, without a compiler's error.
const LAST_LINES: usize = 5;

/// Builds the kernel `choice`, unless the cache has it; waits for another process that builds one. `tell` is told
/// what is being done.
///
/// # Errors
/// A tool is missing; apt does not offer the source; the source has not what the edits change; it does not compile;
/// no room.
pub fn build(choice: &KernelChoice, tell: &dyn Fn(&str)) -> Result<Kernel, HostError> {
    if PATH_LIBRARY.is_empty() {
        let why = "this program was not built for x86-64 Linux";
        return Err(unavailable(why, "use --host sim"));
    }
    let limit_bytes = limit_bytes()?;
    tell("waiting for other builds");
    let _lock = lock()?;
    if let (KernelChoice::Debian(_), Ok(kernel)) = (choice, find(choice)) {
        return Ok(kernel);
    }
    tools()?;
    remove_unfinished()?;
    let folder = folder()?;
    let new = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(&folder);
    let new = new.map_err(doing("creating a folder in", &folder))?;
    // While the folder still holds what filled the disk.
    let kernel = build_in(new.path(), choice, tell).map_err(|error| full_disk(error, &folder))?;
    make_room(&kernel, limit_bytes)?;
    Ok(kernel)
}

/// Builds the kernel `choice` in the folder `new` and puts it into the cache.
fn build_in(new: &Path, choice: &KernelChoice, tell: &dyn Fn(&str)) -> Result<Kernel, HostError> {
    let (package, version, archive) = match choice {
        KernelChoice::Debian(series) => source(series, new, tell)?,
        KernelChoice::Tree(path) => archive_of(path, new, tell)?,
    };
    let opened = File::open(&archive).map_err(doing("opening", &archive))?;
    let source_sha256 = digest::of_all(opened).map_err(doing("reading", &archive))?;
    let hash = hash_with(&source_sha256);
    let name = choice.to_string();
    let is_same = |about: &About| about.hash == hash && about.choice == name;
    if let Some(same) = list()?.into_iter().find(|listed| is_same(&listed.kernel.about)) {
        return Ok(same.kernel);
    }
    let tree = new.join("tree");
    fs::create_dir(&tree).map_err(doing("creating", &tree))?;
    tell("unpacking the source");
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(&archive).arg("-C").arg(&tree).arg("--strip-components=1");
    run(tar.args(LEFT_OUT.iter().map(|pattern| format!("--exclude={pattern}"))), &mut |_| ())?;
    fs::remove_file(&archive).map_err(doing("removing", &archive))?;
    prepare(&tree)?;
    compile(&tree, tell)?;
    let release = run(make(&tree).args(["-s", "kernelrelease"]), &mut |_| ())?;
    let about = About {
        choice: name,
        package,
        version,
        release: release.trim().to_owned(),
        source_sha256,
        hash,
    };
    keep(&about, &tree, &folder()?)
}

/// `error`, which a full disk explains if there is one.
fn full_disk(error: HostError, folder: &Path) -> HostError {
    let free_bytes = statvfs(folder).map_or(u64::MAX, |s| s.blocks_available() * s.fragment_size());
    if free_bytes > FULL_BYTES {
        return error;
    }
    let why = format!("no space is left on the device of {}: {}", folder.display(), error.why);
    unavailable(why, "make room: a build needs 3 GB; XDG_CACHE_HOME names another place")
}

/// Puts a built kernel into the cache.
fn keep(about: &About, tree: &Path, folder: &Path) -> Result<Kernel, HostError> {
    let whole = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(folder);
    let whole = whole.map_err(doing("creating a folder in", folder))?;
    let program = whole.path().join(PROGRAM_FILE);
    run(Command::new("strip").arg("-o").arg(&program).arg(tree.join("linux")), &mut |_| ())?;
    let json = serde_json::to_vec_pretty(about).map_err(broken)?;
    let file = whole.path().join(ABOUT_FILE);
    fs::write(&file, json).map_err(doing("writing", &file))?;
    File::open(&program)
        .and_then(|program| program.sync_all())
        .map_err(doing("writing", &program))?;
    let kind = if about.package == "tree" { "tree".into() } else { about.choice.replace(':', "-") };
    let place = folder.join(format!("{kind}-{}", &about.hash[..16]));
    if place.exists() {
        // The same source from another place.
        fs::remove_dir_all(&place).map_err(doing("removing", &place))?;
    }
    fs::rename(whole.path(), &place).map_err(doing("naming", &place))?;
    // It has another name now.
    let _ = whole.keep();
    Ok(Kernel { about: about.clone(), program: place.join(PROGRAM_FILE) })
}

/// Checks that all programs of a build are there.
fn tools() -> Result<(), HostError> {
    let folders = env::var_os("PATH").unwrap_or_default();
    let is_there =
        |tool: &str| env::split_paths(&folders).any(|folder| folder.join(tool).is_file());
    let missing: Vec<_> = TOOLS.iter().filter(|(tool, _)| !is_there(tool)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = missing.iter().map(|(tool, _)| *tool).collect();
    let packages: Vec<_> = missing.iter().map(|(_, package)| *package).collect();
    let why = format!("building a kernel needs {}", names.join(", "));
    Err(unavailable(why, format!("sudo apt-get install {}", packages.join(" "))))
}

/// Gets the source package of a series through apt, without installing it: its name, version and archive.
fn source(
    series: &str,
    folder: &Path,
    tell: &dyn Fn(&str),
) -> Result<(String, String, PathBuf), HostError> {
    let package = format!("{SOURCE_PACKAGE}{series}");
    let lists = lists_with(&package, folder, tell)?;
    let of = lists.suite.map_or(String::new(), |suite| format!(" of {suite}"));
    tell(&format!("getting {package}{of} through apt"));
    let mut apt = lists.command("apt-get");
    run(apt.current_dir(folder).args(["download", "-qq", &package]), &mut |_| ()).map_err(
        |error| {
            let help = "`apt-get update` as root renews the package lists";
            unavailable(format!("apt does not give {package}: {error}"), help)
        },
    )?;
    let file = only_file(folder, ".deb")?;
    let version = run(Command::new("dpkg-deb").arg("-f").arg(&file).arg("Version"), &mut |_| ())?;
    run(Command::new("dpkg-deb").arg("-x").arg(&file).arg(folder.join("package")), &mut |_| ())?;
    fs::remove_file(&file).map_err(doing("removing", &file))?;
    let archive = only_file(&folder.join("package/usr/src"), ".tar.xz")?;
    Ok((package, version.trim().to_owned(), archive))
}

/// The package lists that offer `package`: the system's, or else those of sid, which come into `folder`.
fn lists_with(package: &str, folder: &Path, tell: &dyn Fn(&str)) -> Result<Lists, HostError> {
    let offers = |lists: &Lists| lists.names(package).iter().any(|name| name == package);
    let series = |lists: &Lists| {
        let names = lists.names(SOURCE_PACKAGE).into_iter();
        let series: BTreeSet<_> = names
            .filter_map(|name| name.strip_prefix(SOURCE_PACKAGE).map(str::to_owned))
            .filter(|series| series.split('.').all(|part| part.parse::<u32>().is_ok()))
            .collect();
        series.into_iter().collect::<Vec<_>>().join(", ")
    };
    let system = Lists::of_system();
    if offers(&system) {
        return Ok(system);
    }
    tell("getting the package lists of sid");
    let has = series(&system);
    let none = format!("this system's package lists offer no {package} (they offer {has})");
    let help = "`apt-get update` as root renews the package lists; `knee linux build PATH` builds a source tree";
    let sid = Lists::of_sid(folder)
        .map_err(|error| unavailable(format!("{none}, and sid is not available: {error}"), help))?;
    match offers(&sid) {
        true => Ok(sid),
        false => Err(unavailable(format!("{none}; sid offers {}", series(&sid)), help)),
    }
}

/// Packs a source tree, without what was built in it: `tree`, its path and the archive, which is the same for the same
/// files.
fn archive_of(
    tree: &Path,
    folder: &Path,
    tell: &dyn Fn(&str),
) -> Result<(String, String, PathBuf), HostError> {
    tree::check(tree)?;
    tell("packing the source tree");
    let archive = folder.join("source.tar");
    let mut tar = Command::new("tar");
    tar.arg("-cf").arg(&archive).arg("-C").arg(tree);
    tar.args(["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.args(["--exclude-vcs", "--exclude=*.o", "--exclude=*.a", "--exclude=.*.cmd"]);
    tar.args(LEFT_OUT.iter().map(|pattern| format!("--exclude={pattern}")));
    run(tar.args(BUILT.iter().map(|name| format!("--exclude={name}"))).arg("."), &mut |_| ())?;
    Ok(("tree".to_owned(), tree.display().to_string(), archive))
}

/// The file in `folder` whose name ends so.
fn only_file(folder: &Path, ending: &str) -> Result<PathBuf, HostError> {
    let entries = fs::read_dir(folder).map_err(doing("reading", folder))?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    let found = paths.find(|path| path.to_string_lossy().ends_with(ending));
    found.ok_or_else(|| broken(format!("there is no {ending} file in {}", folder.display())))
}

/// Edits a source tree and adds Knee's parts.
fn prepare(tree: &Path) -> Result<(), HostError> {
    let mut edit = Command::new("sh");
    run(edit.args(["-c", EDITS, "edit.sh"]).arg(tree), &mut |_| ()).map_err(|error| {
        unavailable(format!("this kernel cannot be used: {error}"), "use debian:6.12")
    })?;
    let knee = tree.join("net/knee");
    let write = |name: &str, bytes: &[u8]| {
        let path = knee.join(name);
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        folder.and_then(|()| fs::write(&path, bytes)).map_err(doing("writing", &path))
    };
    for (name, bytes) in parts() {
        write(&format!("cc/{name}"), bytes)?;
    }
    write("Makefile", MAKEFILE.as_bytes())?;
    let own: String =
        tree::congestion_controls(tree)?.iter().map(|name| format!("CONFIG_{name}=y\n")).collect();
    write("config", format!("{CONFIG}{own}").as_bytes())
}

fn make(tree: &Path) -> Command {
    let mut make = Command::new("make");
    make.current_dir(tree).arg("ARCH=um");
    // Nothing of this machine is to be in the kernel.
    for (name, value) in [("TIMESTAMP", "2026-01-01"), ("USER", "knee"), ("HOST", "knee")] {
        make.env(format!("KBUILD_BUILD_{name}"), value);
    }
    for name in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CARGO_MAKEFLAGS", "CFLAGS", "LDFLAGS"] {
        make.env_remove(name);
    }
    make.env("LC_ALL", "C");
    make
}

fn compile(tree: &Path, tell: &dyn Fn(&str)) -> Result<(), HostError> {
    tell("configuring");
    let config = tree.join("net/knee/config");
    let mut configure = make(tree);
    configure.env("KCONFIG_ALLCONFIG", &config).args(["-s", "allnoconfig"]);
    run(&mut configure, &mut |_| ())?;
    let written = tree.join(".config");
    let written = fs::read_to_string(&written).map_err(doing("reading", &written))?;
    let lost = CONFIG.lines().filter(|line| line.starts_with("CONFIG_"));
    let lost: Vec<_> = lost.filter(|line| !written.lines().any(|other| other == *line)).collect();
    if !lost.is_empty() {
        let why = format!("this kernel does not take the settings {}", lost.join(", "));
        return Err(unavailable(why, "use debian:6.12"));
    }
    let jobs = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut objects = 0;
    let mut count = |line: &str| {
        if line.trim_start().starts_with("CC ") {
            objects += 1;
            tell(&format!("compiling: {objects} files"));
        }
    };
    run(make(tree).args([&format!("-j{jobs}"), "linux"]), &mut count).map(drop)
}

/// Runs a program to its end and returns its output. `each` gets each line.
fn run(command: &mut Command, each: &mut dyn FnMut(&str)) -> Result<String, HostError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut errors = tempfile::tempfile().map_err(|e| broken(format!("a temporary file: {e}")))?;
    let to = errors.try_clone().map_err(|e| broken(format!("a temporary file: {e}")))?;
    let mut guarded = Command::new("sh");
    guarded.args(["-c", GUARD, "sh"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => guarded.env(name, value),
            None => guarded.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        guarded.current_dir(folder);
    }
    guarded.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(to);
    let mut child = guarded.spawn().map_err(|e| broken(format!("{name}: {e}")))?;
    // Its other end lives as long as this process, or until the program has ended.
    let alive = child.stdin.take();
    let mut text = String::new();
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).lines() {
            let line = line.unwrap_or_default();
            each(&line);
            text.push_str(&line);
            text.push('\n');
        }
    }
    let status = child.wait().map_err(|e| broken(format!("{name}: {e}")))?;
    drop(alive);
    if status.success() {
        return Ok(text);
    }
    let mut told = String::new();
    let read = io::Seek::rewind(&mut errors).and_then(|()| errors.read_to_string(&mut told));
    read.map_err(|e| broken(format!("{name}: {e}")))?;
    Err(broken(format!("{name} failed ({status}): {}", told_of(&told))))
}

/// The first error of a compiler in a program's output; without one, the last lines.
fn told_of(text: &str) -> String {
    let error =
        text.lines().find(|line| line.contains(" error: ") || line.contains("undefined reference"));
    if let Some(error) = error {
        return error.to_owned();
    }
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests

    use super::*;

    #[test]
    fn the_first_error_is_shown() {
        let text =
            "make: entering\na.c:1:2: error: no such thing\nb.c:3:4: error: another\nmake: stop\n";
        assert_eq!(told_of(text), "a.c:1:2: error: no such thing");
        assert_eq!(told_of("1\n2\n3\n4\n\n5\n6\n"), "2\n3\n4\n5\n6");
        assert_eq!(told_of(""), "");
    }

    #[test]
    fn a_failing_program_is_named() {
        let error =
            run(Command::new("sh").args(["-c", "echo why >&2; exit 3"]), &mut |_| ()).unwrap_err();
        assert_eq!(error.why, "sh failed (exit status: 3): why");
        assert_eq!(run(Command::new("echo").arg("text"), &mut |_| ()).unwrap(), "text\n");
    }
}
