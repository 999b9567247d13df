//! Builds of kernels, from a tree that has only the lines that the edits need and a make that compiles nothing.

#![allow(clippy::unwrap_used)] // tests
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use knee_linux::build;
use std::{
    collections::BTreeSet,
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Makes [`builder`] build the tree that it names.
const TREE: &str = "KNEE_LINUX_TEST_TREE";
/// Makes it build this kernel instead.
const CHOICE: &str = "KNEE_LINUX_TEST_CHOICE";
/// The files that are edited.
const FILES: [(&str, &str); 7] = [
    (
        "arch/um/os-Linux/util.c",
        "ssize_t os_getrandom(void *buf, size_t len, unsigned int flags)\n{\n\treturn getrandom(buf, len, flags);\n}\n",
    ),
    (
        "drivers/char/random.c",
        "void random_init_early(const char *command_line)\n{\n\t_mix_pool_bytes(init_utsname(), 1);\n\
         \t_mix_pool_bytes(command_line, 1);\n}\n",
    ),
    (
        "arch/um/include/linux/time-internal.h",
        "#define TIMER_MULTIPLIER 256\n#define TIMER_MIN_DELTA 500\n",
    ),
    (
        "arch/um/kernel/time.c",
        "static int itimer_next_event(long delta)\n{\n\tdelta += 1;\n}\n\
         static u64 timer_read(void)\n{\n\ttime_travel_update_time_rel(1);\n}\n",
    ),
    (
        "arch/um/Kconfig",
        "config HZ\n\tint\n\tdefault 100\n\nconfig UML_TIME_TRAVEL_SUPPORT\n\tbool\n",
    ),
    ("net/ipv4/Kconfig", "config TCP_CONG_CUBIC\n\tbool\n\nconfig TCP_CONG_MINE\n\tbool\n"),
    ("net/Makefile", "obj-y := core/\n"),
];
/// A make file whose kernel is another program of this machine.
const MAKEFILE: &str = "VERSION = 6\nPATCHLEVEL = 99\nallnoconfig:\n\tcp $(KCONFIG_ALLCONFIG) .config\n\
                        linux:\n\tSTEP\n\tcp /bin/true linux\nkernelrelease:\n\techo 6.99.0-small\n";

/// A tree, and a cache.
struct Place(TempDir);

impl Place {
    /// `step` is a command that make runs where it would compile.
    fn new(step: &str) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for (name, text) in FILES {
            place.write(name, text);
        }
        place.write("Makefile", &MAKEFILE.replace("STEP", step));
        fs::create_dir(place.0.path().join("cache")).unwrap();
        place
    }

    fn tree(&self) -> PathBuf {
        self.0.path().join("tree")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.tree().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn cache(&self) -> PathBuf {
        self.0.path().join("cache/knee/linux")
    }

    /// The entries of the cache besides its lock.
    fn kept(&self) -> Vec<String> {
        let entries = fs::read_dir(self.cache()).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        names.filter(|name| name != "lock").collect()
    }

    fn builder(&self, program: &mut Command) -> Child {
        program
            .env(TREE, self.tree())
            .env("XDG_CACHE_HOME", self.0.path().join("cache"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn build(&self) -> Output {
        self.build_with(&[])
    }

    fn build_with(&self, variables: &[(&str, &str)]) -> Output {
        self.builder(itself().envs(variables.iter().copied())).wait_with_output().unwrap()
    }

    fn error(&self) -> String {
        let output = self.build();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{said}");
        assert_eq!(self.kept(), [""; 0], "{said}");
        said
    }
}

/// This program, where it runs [`builder`] alone.
fn itself() -> Command {
    let mut program = Command::new(env::current_exe().unwrap());
    program.args(["--exact", "builder", "--nocapture"]);
    program
}

/// Run by the other tests, in a process of its own.
#[test]
fn builder() {
    let Some(tree) = env::var_os(TREE) else { return };
    let choice = env::var(CHOICE).unwrap_or(tree.into_string().unwrap()).parse().unwrap();
    let kernel = build(&choice, &|_| ()).unwrap_or_else(|e| panic!("{} ({:?})", e.why, e.help));
    println!("built {}", kernel.about.release);
}

fn succeeded(output: &Output) -> bool {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    true
}

fn wait(done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < deadline, "60 s have passed");
        thread::sleep(Duration::from_millis(20));
    }
}

fn is_alive(id: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(id).join("stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[test]
fn a_tree_is_built_once() {
    let place = Place::new("echo again >> ../../../../compiled");
    for _ in 0..2 {
        let output = place.build();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stdout).contains("built 6.99.0-small"));
    }
    let compiled = || fs::read_to_string(place.0.path().join("cache/compiled")).unwrap();
    assert_eq!((compiled().as_str(), place.kept().len()), ("again\n", 1));
    place.write("net/changed.c", "int x;\n");
    assert!(place.build().status.success());
    assert_eq!((compiled().as_str(), place.kept().len()), ("again\nagain\n", 2));
}

#[test]
fn the_compilers_first_error_is_shown() {
    let place = Place::new("echo 'a.c:1:2: error: no such thing' >&2; exit 1");
    let said = place.error();
    assert!(
        said.contains("make failed") && said.contains("a.c:1:2: error: no such thing"),
        "{said}"
    );
}

#[test]
fn a_tree_that_the_edits_do_not_fit_is_named() {
    let place = Place::new("true");
    place.write("arch/um/kernel/time.c", "int time;\n");
    let said = place.error();
    assert!(said.contains("arch/um/kernel/time.c: 0 lines of itimer_next_event( match"), "{said}");
}

#[test]
fn a_killed_build_leaves_no_process_and_no_kernel() {
    let place = Place::new("echo $$$$ > ../../../../id; exec sleep 1000");
    let mut builder = place.builder(&mut itself());
    let id = || fs::read_to_string(place.0.path().join("cache/id")).unwrap_or_default();
    wait(|| id().ends_with('\n'));
    builder.kill().unwrap();
    builder.wait().unwrap();
    wait(|| !is_alive(id().trim()));
    assert!(place.kept().iter().all(|name| name.starts_with(".new-")), "{:?}", place.kept());
    place.write("Makefile", &MAKEFILE.replace("STEP", "true"));
    let output = place.build();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(matches!(&place.kept()[..], [one] if one.starts_with("tree-")), "{:?}", place.kept());
}

/// The cache is on a disk of 256 KiB, which this user may mount in a namespace of its own.
#[test]
fn a_full_disk_is_named() {
    let unshare = |program: &str| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--map-root-user", "--mount", "sh", "-c", program]);
        unshare
    };
    if !unshare("true").status().is_ok_and(|status| status.success()) {
        eprintln!("not tested: this user may create no namespace");
        return;
    }
    let place = Place::new("true");
    place.write("large.c", &"x".repeat(1 << 20));
    let itself = env::current_exe().unwrap();
    let mut program = unshare(&format!(
        "mount -t tmpfs -o size=256k tmpfs \"$XDG_CACHE_HOME\" && '{}' --exact builder --nocapture; code=$?\n\
         ls -A \"$XDG_CACHE_HOME/knee/linux\"; exit $code",
        itself.display()
    ));
    let output = place.builder(&mut program).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("no space is left on the device"), "{said}");
    let left = String::from_utf8_lossy(&output.stdout);
    assert_eq!(left.lines().last(), Some("lock"), "{left}");
}

#[test]
fn a_tree_that_lacks_a_part_is_refused_with_the_part() {
    let place = Place::new("true");
    let refused = |name: &str, text: &str, why: &str| {
        let before = fs::read_to_string(place.tree().join(name)).unwrap();
        place.write(name, text);
        let said = place.error();
        assert!(said.contains(why) && said.contains("debian:6.12"), "{said}");
        place.write(name, &before);
    };
    refused("Makefile", "all:\n", "this is no source tree of Linux");
    refused("Makefile", "VERSION = 5\nPATCHLEVEL = 19\n", "this is Linux 5.19; the host needs 6.1");
    refused("arch/um/Kconfig", "", "this source tree has no User-Mode Linux (arch/um/Kconfig)");
    refused("arch/um/Kconfig", "config HZ\n", "has no time travel (UML_TIME_TRAVEL_SUPPORT");
    assert!(succeeded(&place.build()));
}

#[test]
fn the_congestion_controls_of_a_tree_are_part_of_its_kernel() {
    let place = Place::new("grep -qx CONFIG_TCP_CONG_MINE=y .config");
    assert!(succeeded(&place.build()));
    place.write("net/ipv4/Kconfig", "config TCP_CONG_CUBIC\n\tbool\n");
    assert!(!place.build().status.success());
}

#[test]
fn a_second_builder_waits_for_the_first() {
    let place = Place::new(
        "echo again >> ../../../../compiled; while [ ! -e ../../../../go ]; do sleep 0.05; done",
    );
    let compiled = || fs::read_to_string(place.0.path().join("cache/compiled")).unwrap_or_default();
    let first = place.builder(&mut itself());
    wait(|| compiled() == "again\n");
    let second = place.builder(&mut itself());
    // It cannot be seen to wait; a builder that does not compiles within this time.
    thread::sleep(Duration::from_secs(1));
    fs::write(place.0.path().join("cache/go"), "").unwrap();
    for builder in [first, second] {
        assert!(succeeded(&builder.wait_with_output().unwrap()));
    }
    assert_eq!((compiled().as_str(), place.kept().len()), ("again\n", 1));
}

#[test]
fn the_latest_kernels_stay_within_the_size_of_the_cache() {
    let place = Place::new("true");
    let build = |number: u32, limit: &str| {
        place.write("net/changed.c", &format!("int x = {number};\n"));
        assert!(succeeded(&place.build_with(&[("KNEE_LINUX_CACHE", limit)])));
        place.kept().into_iter().collect::<BTreeSet<_>>()
    };
    let first = build(1, "1GB");
    let both = build(2, "1GB");
    assert!((first.len(), both.len()) == (1, 2) && both.is_superset(&first));
    // All are equally large.
    let program = place.cache().join(first.first().unwrap()).join("linux");
    let bytes = fs::metadata(program).unwrap().len();
    let two = build(3, &format!("{}B", 2 * bytes));
    assert!(two.len() == 2 && two.is_disjoint(&first), "{first:?} {both:?} {two:?}");
    // The one that was just built stays, however large it is.
    assert!(build(4, "1B").is_disjoint(&both));
    let output = place.build_with(&[("KNEE_LINUX_CACHE", "much")]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("KNEE_LINUX_CACHE"), "{said}");
}

/// Programs that do as apt and dpkg do on a system whose lists offer 6.12, where sid has 7.2.
#[test]
fn a_series_that_only_sid_offers_comes_from_there() {
    let place = Place::new("true");
    let tools = place.0.path().join("tools");
    fs::create_dir(&tools).unwrap();
    let tool = |name: &str, text: &str| {
        let file = tools.join(name);
        fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    };
    tool(
        "apt-get",
        "case \"$*\" in\n*indextargets*) echo Debian Debian main http://deb.debian.org/debian/ ;;\n\
         *sid.list*download*) : >\"${4:+linux-source-7.2_1_all.deb}\" ;;\n*sid.list*update*) ;;\n*) exit 100 ;;\nesac",
    );
    tool(
        "apt-cache",
        "case \"$*\" in *sid.list*) echo linux-source-7.2 ;; *) echo linux-source-6.12 ;; esac",
    );
    tool(
        "dpkg-deb",
        "[ \"$1\" = -f ] && exec echo 7.2.1-1\nmkdir -p \"$3/usr/src\"\n\
         exec tar -cJf \"$3/usr/src/linux-source-7.2.tar.xz\" -C \"$KNEE_LINUX_TEST_TREE/..\" tree",
    );
    let path = format!("{}:{}", tools.display(), env::var("PATH").unwrap());
    let build = |choice: &str| place.build_with(&[(CHOICE, choice), ("PATH", &path)]);
    let output = build("debian:7.2");
    assert!(succeeded(&output) && String::from_utf8_lossy(&output.stdout).contains("built 6.99"));
    assert!(matches!(&place.kept()[..], [one] if one.starts_with("debian-7.2-")));
    let output = build("debian:6.5");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("offer no linux-source-6.5 (they offer 6.12); sid offers 7.2"), "{said}");
}
