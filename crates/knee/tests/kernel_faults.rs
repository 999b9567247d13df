//! `--host kernel` and `knee kernel` where something is missing, taken or ends too soon. Needs root.
#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, repository, text, with};
use knee_cc::{Params, algorithm};
use nix::{
    libc,
    mount::{MsFlags, mount},
    sched::{CloneFlags, setns, unshare},
    sys::{
        resource::{Resource, setrlimit},
        signal::{Signal, kill},
    },
    unistd::Pid,
};
use rustix::fs::inotify;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use std::{
    collections::BTreeSet,
    env, fs,
    mem::MaybeUninit,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread::{self, sleep},
    time::{Duration, Instant},
};

/// A place with a scenario whose parameter distinguishes the variants of its runs from all others of
/// this machine.
struct Runs {
    place: Place,
    qth_us: u64,
}

impl Runs {
    /// Slow, so that it is in time on a busy machine too.
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Relaxed) * 1_000_000 + u64::from(std::process::id());
        let (place, qth_us) = (Place::new(), 10_000 + number % 5_000_000);
        let scenario = format!(
            "duration = \"1s\"\n[path]\nrate = \"1mbit\"\nrtt = \"200ms\"\nqueue = \"30p\"\n[[flow]]\n\
             cc = \"chd\"\nparams = {{ qth = \"{qth_us}us\" }}\n"
        );
        fs::remove_file(place.path("two.toml")).unwrap();
        fs::write(place.path("s.toml"), scenario).unwrap();
        // Anybody can read it.
        fs::set_permissions(place.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Self { place, qth_us }
    }

    fn command(&self, out: &str, more: &[&str]) -> Command {
        let mut arguments = vec!["run", "s.toml", "--host", "kernel", "--out", out];
        arguments.extend(more);
        self.place.knee(&arguments)
    }

    /// Names of its variants that are in the kernel.
    fn variants(&self) -> Vec<String> {
        let params = Params::new(algorithm("chd").unwrap(), [("qth", self.qth_us)]).unwrap();
        let all = knee_kernel::list().unwrap().into_iter();
        all.filter(|v| v.params.as_ref() == Some(&params)).map(|v| v.name).collect()
    }

    /// After a failure there are neither results nor variants.
    fn assert_nothing_is_left(&self) {
        assert_eq!(self.place.entries(), ["s.toml"]);
        until("the variants are gone", || self.variants().is_empty());
    }

    fn assert_works(&self) {
        assert_good(&in_time(|| self.command("works", &[]).output().unwrap()));
        assert_eq!(self.place.entries(), ["s.toml", "works"]);
        assert!(self.place.path("works/report.html").exists());
        until("the variants are gone", || self.variants().is_empty());
    }
}

/// Returns whether a run reports that this machine was too slow for it: no result, no fault of the program.
fn is_late(output: &Output) -> bool {
    text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ").contains("was too slow")
}

/// Repeats a run that this machine was too slow for.
fn in_time(run: impl FnMut() -> Output) -> Output {
    let mut runs = std::iter::repeat_with(run).take(20);
    runs.find(|output| !is_late(output)).expect("fast enough once in 20 times")
}

fn assert_good(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// The message of a command that must fail.
fn refused(command: &mut Command) -> String {
    refusal(&in_time(|| command.output().unwrap()))
}

/// The message of a failure with exit code 2, as one line.
fn refusal(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(output.stdout.is_empty());
    text(&output.stderr)
        .split_whitespace()
        .filter(|word| *word != "│")
        .collect::<Vec<_>>()
        .join(" ")
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(120), "never: {what}");
        sleep(Duration::from_millis(20));
    }
}

fn available() -> String {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap()
}

/// Network namespaces that a process has open.
fn namespaces(process: &Path) -> BTreeSet<String> {
    let links = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    let targets = links.filter_map(|link| fs::read_link(link.path()).ok());
    let targets = targets.map(|target| target.to_string_lossy().into_owned());
    targets.filter(|target| target.starts_with("net:[")).collect()
}

/// Returns whether a TCP socket in `namespace`, which the process has open, waits for ACKs of its data.
fn has_data_in_flight(process: &Path, namespace: &str) -> bool {
    let links = fs::read_dir(process.join("fd")).unwrap().flatten().map(|link| link.path());
    let is_it = |link: &std::path::PathBuf| {
        fs::read_link(link).is_ok_and(|target| target.to_string_lossy() == namespace)
    };
    let Some(file) = links.into_iter().find(is_it).and_then(|link| fs::File::open(link).ok())
    else {
        return false;
    };
    let sockets = thread::spawn(move || {
        setns(file, CloneFlags::CLONE_NEWNET).unwrap();
        fs::read_to_string("/proc/thread-self/net/tcp").unwrap()
    });
    let sockets = sockets.join().unwrap();
    // Behind number and addresses: the state, 1 once connected, and the bytes not acknowledged.
    sockets.lines().any(|socket| {
        let mut fields = socket.split_whitespace().skip(3);
        let (state, queues) = (fields.next(), fields.next());
        state == Some("01") && queues.is_some_and(|bytes| !bytes.starts_with("00000000:"))
    })
}

/// Makes the present thread's (or process's) mounts its own, then puts a file system over `at`.
fn mounted(kind: &str, at: &Path, options: &str) -> std::io::Result<()> {
    let (none, own) = (None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE);
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(none, "/", none, own, none)?;
    mount(Some(kind), at, Some(kind), MsFlags::empty(), Some(options))?;
    Ok(())
}

#[test]
fn a_killed_run_leaves_nothing_in_the_kernel() {
    let runs = Runs::new();
    let mut child = runs.command("out", &["--set", "duration=1000s"]).spawn().unwrap();
    let process = format!("/proc/{}", child.id());
    let mut held = BTreeSet::new();
    until("connected", || {
        held = namespaces(Path::new(&process));
        // Besides the link a socket refers to the variant.
        let params = runs.variants();
        let used = |v: &knee_kernel::Variant| v.sockets > 0 && params.contains(&v.name);
        held.len() == 2 && knee_kernel::list().unwrap().iter().any(used)
    });
    // With data on its way: nobody will acknowledge it.
    until("data in flight", || held.iter().any(|one| has_data_in_flight(Path::new(&process), one)));
    let names = runs.variants();
    assert!(names.len() == 1 && available().contains(&names[0]), "{names:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    until("its name is free", || !available().contains(&names[0]));
    until("its variant is gone", || runs.variants().is_empty());
    until("its namespaces are gone", || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        processes.map(|p| p.path()).all(|p| namespaces(&p).is_disjoint(&held))
    });
    let left = runs.place.entries();
    assert!(left.len() == 2 && left[0].starts_with(".knee-unfinished-"), "{left:?}");
    // The next one removes what is left.
    runs.assert_works();
}

#[test]
fn killed_at_any_moment_it_leaves_no_variant() {
    let runs = Runs::new();
    for delay_ms in (0..300).step_by(20) {
        let mut child = runs.command("out", &["--set", "duration=1000s"]).spawn().unwrap();
        sleep(Duration::from_millis(delay_ms));
        child.kill().unwrap();
        child.wait().unwrap();
        until("its variant is gone", || runs.variants().is_empty());
        assert!(!runs.place.path("out").exists());
    }
    runs.assert_works();
}

#[test]
fn two_runs_at_once() {
    let runs = Runs::new();
    // The first one waits until the second one is at work too.
    let send = |child: &Child, signal| kill(Pid::from_raw(child.id() as i32), signal).unwrap();
    let start = |out, variants| {
        let child = runs.command(out, &[]).stderr(Stdio::piped()).spawn().unwrap();
        until("at work", || runs.variants().len() == variants);
        send(&child, Signal::SIGSTOP);
        child
    };
    let both = [start("a", 1), start("b", 2)];
    both.iter().for_each(|child| send(child, Signal::SIGCONT));
    for (child, out) in both.into_iter().zip(["a", "b"]) {
        let output = child.wait_with_output().unwrap();
        if is_late(&output) {
            assert!(!runs.place.path(out).exists());
        } else {
            assert_good(&output);
            assert!(runs.place.path(out).join("report.html").exists());
        }
    }
    until("the variants are gone", || runs.variants().is_empty());
    ["a", "b"].iter().for_each(|out| drop(fs::remove_dir_all(runs.place.path(out))));
    runs.assert_works();
}

#[test]
fn out_of_descriptors_it_says_so() {
    let runs = Runs::new();
    // From the first file that the program opens to the last of the run.
    let enough = (4..64).find(|descriptors| {
        let mut few = runs.command("works", &[]);
        let limit = *descriptors;
        // SAFETY: nothing but a system call between fork and exec.
        unsafe { few.pre_exec(move || Ok(setrlimit(Resource::RLIMIT_NOFILE, limit, limit)?)) };
        let output = in_time(|| few.output().unwrap());
        if output.status.success() {
            return true;
        }
        let said = refusal(&output);
        assert!(said.to_lowercase().contains("too many open files"), "{limit}: {said}");
        runs.assert_nothing_is_left();
        false
    });
    assert!(enough.is_some_and(|n| n > 10), "{enough:?}");
    assert!(runs.place.path("works/report.html").exists());
}

/// Each system call that a run needs, refused as a sandbox may refuse it.
#[test]
fn a_kernel_that_refuses_a_step_is_named() {
    let runs = Runs::new();
    let needed = [
        libc::SYS_bind,
        libc::SYS_bpf,
        libc::SYS_connect,
        libc::SYS_epoll_create1,
        libc::SYS_getsockopt,
        libc::SYS_ioctl,
        libc::SYS_listen,
        libc::SYS_prctl,
        libc::SYS_setsockopt,
        libc::SYS_socket,
        libc::SYS_unshare,
    ];
    let refusing = |call| {
        let filter = SeccompFilter::new(
            [(call, Vec::new())].into(),
            SeccompAction::Allow,
            SeccompAction::Errno(libc::EPERM as u32),
            env::consts::ARCH.try_into().unwrap(),
        );
        let filter: BpfProgram = filter.unwrap().try_into().unwrap();
        let mut command = runs.command("works", &[]);
        // SAFETY: nothing but system calls between fork and exec, unless they fail.
        unsafe {
            command.pre_exec(move || {
                seccompiler::apply_filter(&filter).map_err(std::io::Error::other)
            });
        }
        command
    };
    for call in needed {
        let said = refused(&mut refusing(call));
        assert!(said.contains("permitted") || said.contains("needs root"), "{call}: {said}");
        runs.assert_nothing_is_left();
    }
    // It can do without, though it is late sooner.
    let output = refusing(libc::SYS_sched_setscheduler).output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.success() || said.contains("too slow"), "{said}");
    let _ = fs::remove_dir_all(runs.place.path("works"));
    runs.assert_works();
}

#[test]
fn without_root_it_says_so() {
    let runs = Runs::new();
    for mut command in [
        runs.place.knee(&["run", "s.toml", "--host", "kernel"]),
        runs.place.knee(&["kernel", "load", "chd"]),
    ] {
        let said = refused(command.uid(65_534).gid(65_534));
        assert!(said.contains("needs root"), "{said}");
    }
    runs.assert_nothing_is_left();
}

#[test]
fn a_full_disk_keeps_no_results() {
    let runs = Runs::new();
    let disk = runs.place.path("disk");
    fs::create_dir(&disk).unwrap();
    let at = disk.clone();
    // Mounts are a thread's.
    let left = thread::spawn(move || {
        mounted("tmpfs", &at, "size=64k").unwrap();
        let said = refused(&mut runs.command("disk/out", &[]));
        assert!(said.contains("No space left on device") && said.contains("free some"), "{said}");
        let packets = ["run", "s.toml", "--host", "kernel", "--pcap", "disk/path.pcapng"];
        let said = refused(&mut runs.place.knee(&packets));
        assert!(said.contains("No space left on device") && said.contains("has room"), "{said}");
        let object = ["kernel", "export", "chd", "--out", "disk/chd.o"];
        let said = refused(&mut runs.place.knee(&object));
        assert!(said.contains("No space left on device") && said.contains("free some"), "{said}");
        until("the variants are gone", || runs.variants().is_empty());
        fs::read_dir(&at).unwrap().count()
    });
    assert_eq!(left.join().unwrap(), 0);
}

#[test]
fn without_the_kernels_types_it_says_so() {
    let runs = Runs::new();
    let hidden = |arguments: &[&str]| {
        let mut command = runs.place.knee(arguments);
        // SAFETY: nothing but system calls between fork and exec.
        unsafe { command.pre_exec(|| mounted("tmpfs", Path::new("/sys/kernel/btf"), "")) };
        command
    };
    let remedy = "CONFIG_DEBUG_INFO_BTF=y";
    for arguments in [
        &["kernel", "load", "chd", "--hold"][..],
        &["kernel", "list"],
        &["trace", "--out", "trace.parquet"],
        &["run", "s.toml", "--host", "kernel", "--out", "out"],
    ] {
        let said = refused(&mut hidden(arguments));
        assert!(said.contains("BTF") && said.contains(remedy), "{arguments:?}: {said}");
        runs.assert_nothing_is_left();
    }
    let output = hidden(&["kernel", "check"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    assert!(said.contains("MISSING  kernel types (BTF)") && said.contains(remedy), "{said}");
}

/// A device of the run's own namespace is never another's; but there may be none to be had.
#[test]
fn without_a_tun_device_it_says_so() {
    let runs = Runs::new();
    let mut command = runs.command("out", &[]);
    // SAFETY: nothing but system calls between fork and exec.
    unsafe { command.pre_exec(|| mounted("tmpfs", Path::new("/dev/net"), "")) };
    let said = refused(&mut command);
    assert!(said.contains("/dev/net/tun"), "{said}");
    runs.assert_nothing_is_left();
}

#[test]
fn a_name_that_is_taken() {
    let place = Place::new();
    let name = format!("f{}", std::process::id());
    // Pins are of this thread's own.
    let test = thread::spawn(move || {
        mounted("bpf", Path::new("/sys/fs/bpf"), "").unwrap();
        let load = |algorithm, name: &str| place.knee(&["kernel", "load", algorithm, "--as", name]);
        let said = refused(&mut load("chd", "reno"));
        assert!(said.contains("`reno`") && said.contains("another name"), "{said}");
        assert_good(&load("chd", &name).output().unwrap());
        for algorithm in ["chd", "hd"] {
            let said = refused(&mut load(algorithm, &name));
            assert!(said.contains(&name) && said.contains("unload"), "{said}");
        }
        // The first one is still what it was.
        let listed = place.json(&["kernel", "list", "--format", "json"]);
        let mine = listed["variants"].as_array().unwrap().iter().find(|v| v["name"] == *name);
        assert_eq!(mine.unwrap()["algorithm"], "chd");
        place.stdout(&["kernel", "unload", &name]);
        until("its name is free", || !available().contains(&name));
    });
    test.join().unwrap();
}

#[test]
fn two_capabilities_load_and_a_third_lists() {
    let place = Place::new();
    let name = format!("cap{}", std::process::id());
    let knee = |capabilities: &[&str], arguments: &[&str]| {
        with(capabilities, &place.knee(arguments)).output().unwrap()
    };
    let load = ["kernel", "load", "newreno", "--as", &name];
    // Where no BPF file system is mounted, the first command mounts one, which takes CAP_SYS_ADMIN.
    assert_good(&place.knee(&load).output().unwrap());
    assert_good(&place.knee(&["kernel", "unload", &name]).output().unwrap());
    for one in ["bpf", "perfmon"] {
        let said = refusal(&knee(&[one, "net_admin"], &load));
        assert!(said.contains("CAP_BPF and CAP_PERFMON to load"), "{said}");
    }
    assert_good(&knee(&["bpf", "perfmon"], &load));
    for of_a_third in [&["kernel", "list"][..], &["kernel", "unload", &name]] {
        let said = refusal(&knee(&["bpf", "perfmon", "net_admin"], of_a_third));
        assert!(said.contains("CAP_SYS_ADMIN to list, trace and unload"), "{said}");
    }
    let listed = knee(&["sys_admin"], &["kernel", "list"]);
    assert!(text(&listed.stdout).contains(&name), "{}", text(&listed.stderr));
    assert_good(&knee(&["sys_admin"], &["trace", &name, "--duration", "100ms"]));
    assert_good(&knee(&["sys_admin"], &["kernel", "unload", &name]));
    assert_good(&knee(&[], &["kernel", "export", "newreno", "--out", "newreno.o"]));
}

/// Names of the files that a command makes in a folder that it and its temporary files share, in a
/// namespace of its own, where its process number is always the same.
fn made(command: &str) -> BTreeSet<String> {
    let runs = Runs::new();
    let place = &runs.place;
    let newreno = repository("cc/algorithms/newreno.c");
    let mine = newreno.replace("newreno", "mine").replace("NEWRENO", "MINE");
    fs::write(place.path("mine.c"), mine).unwrap();
    let own = "duration = \"1s\"\n[path]\nrate = \"1mbit\"\nrtt = \"40ms\"\nqueue = \"30p\"\n[[flow]]\ncc = \"mine.c\"\n";
    fs::write(place.path("mine.toml"), own).unwrap();
    let watch =
        inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).unwrap();
    inotify::add_watch(&watch, place.dir.path(), inotify::WatchFlags::CREATE).unwrap();
    let knee = place.knee(&command.split(' ').collect::<Vec<_>>());
    let mut unshare = Command::new("unshare");
    unshare.args(["--pid", "--fork"]).arg(knee.get_program()).args(knee.get_args());
    unshare.current_dir(place.dir.path()).env("TMPDIR", place.dir.path());
    let output = unshare.output().unwrap();
    assert!(output.status.success() || is_late(&output), "{command}: {}", text(&output.stderr));
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(watch, &mut buffer);
    let mut names = BTreeSet::new();
    while let Ok(event) = events.next() {
        let name = event.file_name().unwrap().to_str().unwrap();
        names.insert(name.to_owned());
    }
    names
}

/// Else another user could put a file or a link there first.
#[test]
fn no_name_in_a_shared_folder_can_be_foreseen() {
    for (command, prefixes) in [
        ("run mine.toml --out results", &[".knee-unfinished-", "knee-cc-"][..]),
        ("run s.toml --host kernel --out results", &[".knee-unfinished-"]),
        ("kernel export ./mine.c --out mine.o", &["knee-cc-", "knee-bpf-"]),
    ] {
        let (first, second) = (made(command), made(command));
        for prefix in prefixes {
            assert!(first.iter().any(|name| name.starts_with(prefix)), "{command}: {first:?}");
        }
        // But for the file that the user names.
        let foreseen = first.intersection(&second).filter(|name| !command.contains(*name));
        assert_eq!(foreseen.collect::<Vec<_>>(), Vec::<&String>::new(), "{command}");
    }
}
