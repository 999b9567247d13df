//! Builds of kernels, from a tree that has only the lines that the edits need and a make that compiles nothing.

#![allow(clippy::unwrap_used)] // tests
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use knee_linux::build;
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Makes [`builder`] build the tree that it names.
const TREE: &str = "KNEE_LINUX_TEST_TREE";
/// The files that are edited.
const FILES: [(&str, &str); 6] = [
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
    ("arch/um/Kconfig", "config HZ\n\tint\n\tdefault 100\n\n"),
    ("net/Makefile", "obj-y := core/\n"),
];
/// A make file whose kernel is another program of this machine.
const MAKEFILE: &str = "allnoconfig:\n\tcp $(KCONFIG_ALLCONFIG) .config\n\
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
        self.builder(&mut itself()).wait_with_output().unwrap()
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
    let choice = tree.into_string().unwrap().parse().unwrap();
    let kernel = build(&choice, &|_| ()).unwrap_or_else(|e| panic!("{} ({:?})", e.why, e.help));
    println!("built {}", kernel.about.release);
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
    fs::remove_file(place.tree().join("arch/um/Kconfig")).unwrap();
    assert!(place.error().contains("is no source tree of Linux with arch/um"));
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
