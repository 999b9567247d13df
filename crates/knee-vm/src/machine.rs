//! One virtual machine: a QEMU process whose guest's clock counts instructions.
//!
//! The process dies with this one, however that ends, and has no files of its own: its file system
//! and the memory that it shares with this process are files in memory.

use crate::window::{Stage, WINDOW_BYTES, Window, inherited};
use knee_model::{
    HostError, Ns,
    failure::{broken, unavailable},
};
use nix::{
    fcntl::{FcntlArg, FdFlag, fcntl},
    sys::{prctl, signal::Signal},
    unistd::{getpid, getppid, setsid},
};
use std::{
    collections::VecDeque,
    env,
    fs::File,
    io::{self, BufRead, BufReader, ErrorKind, Read},
    os::{
        fd::{AsRawFd, BorrowedFd},
        unix::process::CommandExt,
    },
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

const QEMU: &str = "qemu-system-x86_64";
const QEMU_HELP: &str =
    "sudo apt-get install qemu-system-x86 (elsewhere: QEMU for x86, 7.2 or newer)";
/// Memory of the guest. It takes only the used part from the real machine's.
const MEMORY_BYTES: u64 = 2 << 30;
/// Longest time without progress of a guest.
const LONGEST_SILENCE: Duration = Duration::from_secs(600);
/// Time between two looks at the guest's progress.
const LOOKS_APART: Duration = Duration::from_millis(10);
/// Name of the variable with a run's budget, instead of [`crate::host::budget_ns`], in seconds.
pub(crate) const BUDGET: &str = "KNEE_VM_BUDGET_S";
/// The console's last lines that are kept, and those that an error tells.
const KEPT_LINES: usize = 200;
const LAST_LINES: usize = 10;
/// Messages of a guest that has run out of memory: of one of its processes, or its kernel.
const NO_MEMORY: [&str; 3] = ["memory allocation of", "Out of memory", "deadlocked on memory"];
/// The kernel's message then, which comes before a list of registers.
const PANIC: &str = "Kernel panic";

/// The parts of a machine with this kernel, file system and shared memory.
pub(crate) fn arguments(image: &str, initramfs: &str, window: &str) -> Vec<String> {
    let memory = format!("{}M", MEMORY_BYTES >> 20);
    let window =
        format!("memory-backend-file,id=window,size={WINDOW_BYTES},mem-path={window},share=on");
    [
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-no-reboot",
        // A clock that counts instructions, one nanosecond each, and passes over idle time: with it
        // nothing that the guest sees comes from the real machine. While QEMU records, though nobody
        // reads what, its threads exclude each other. Else one of them may find the processor halted
        // before its last instructions have been counted, and pass over that many nanoseconds too many.
        "-accel",
        "tcg",
        "-icount",
        "shift=0,sleep=off,rr=record,rrfile=/dev/null",
        "-smp",
        "1",
        "-rtc",
        "base=2026-01-01T00:00:00,clock=vm",
        "-seed",
        "1",
        // Without a random generator of the real machine's. Long copies by single bytes, which real
        // processors are fast at, are slow where each is counted. With SMAP each copy from or to a
        // program leaves the translated code twice; with XSAVE each change to another task takes longer.
        // AVX needs XSAVE, which Linux 7.2 does not look at before it uses AVX.
        "-cpu",
        "max,-rdrand,-rdseed,-erms,-fsrm,-smap,-xsave,-avx",
        "-M",
        "q35,hpet=off",
        "-m",
        &memory,
        "-object",
        &window,
        "-device",
        "ivshmem-plain,memdev=window",
        "-serial",
        "stdio",
        "-append",
        COMMAND_LINE,
        "-kernel",
        image,
        "-initrd",
        initramfs,
    ]
    .map(str::to_owned)
    .into()
}

/// The kernel's options. Its tick runs while it is idle: to stop it takes longer, twice per packet.
const COMMAND_LINE: &str = "console=ttyS0 quiet panic=-1 rdinit=/knee norandmaps \
    random.trust_cpu=off random.trust_bootloader=off tsc=reliable mitigations=off init_on_alloc=0 \
    hardened_usercopy=off lsm=none audit=0 psi=0 nowatchdog nohz=off -- vm guest";

/// QEMU's program.
fn program() -> Result<PathBuf, HostError> {
    let folders = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&folders).map(|folder| folder.join(QEMU)).find(|p| p.is_file());
    found.ok_or_else(|| unavailable(format!("`--host vm` needs QEMU: no {QEMU}"), QEMU_HELP))
}

/// QEMU's own words about its version: `7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)`.
pub(crate) fn version() -> Result<String, HostError> {
    let program = program()?;
    let output = Command::new(&program).arg("--version").stdin(Stdio::null()).output();
    let output = output.map_err(|e| broken(format!("{}: {e}", program.display())))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.lines().next().and_then(|line| line.split_once("version "));
    version.map(|(_, version)| version.to_owned()).ok_or_else(|| {
        broken(format!("{QEMU} --version says: {}", text.lines().next().unwrap_or_default()))
    })
}

/// Boots a machine with a request, and waits for its answer; `progress` is told how far the run is, ns.
pub(crate) fn answer(
    image: &File,
    initramfs: &File,
    request: &[u8],
    progress: impl Fn(Ns),
) -> Result<Vec<u8>, HostError> {
    let window = Window::with_request(request).map_err(failed)?;
    let mut machine = Machine::boot(image, initramfs, &window)?;
    let (mut told_ns, mut since) = (0, Instant::now());
    loop {
        // Before its last words are read: a guest that has ended can say no more.
        let ended = machine.process.0.try_wait().map_err(failed)?.is_some();
        match window.stage().map_err(failed)? {
            Stage::Answered => return window.answer().map_err(failed),
            Stage::OutOfBudget => {
                let why = "its run did not end within its budget of instructions";
                let help = format!("{BUDGET} allows so many seconds, of 10⁹ instructions each");
                return Err(machine.failed(why).with_help(help));
            }
            Stage::Running(_) if ended => return Err(machine.failed("it ended before its run did")),
            Stage::Running(ns) if ns != told_ns => {
                progress(ns);
                (told_ns, since) = (ns, Instant::now());
            }
            Stage::Running(_) if since.elapsed() > LONGEST_SILENCE => {
                let s = LONGEST_SILENCE.as_secs();
                return Err(machine.failed(&format!("it has shown no sign of life for {s} s")));
            }
            Stage::Running(_) => {}
        }
        thread::sleep(LOOKS_APART);
    }
}

/// A running machine.
struct Machine {
    process: Process,
    /// Collects the output of the guest on its console, and of QEMU on its error output.
    console: JoinHandle<VecDeque<String>>,
}

impl Machine {
    fn boot(image: &File, initramfs: &File, window: &Window) -> Result<Self, HostError> {
        let mut command = Command::new(program()?);
        let files = [image, initramfs, &window.0];
        let [image, archive, memory] = files.map(inherited);
        command.args(arguments(&image, &archive, &memory));
        let parent = getpid();
        let files = files.map(AsRawFd::as_raw_fd);
        let before = move || {
            // Ctrl-C is for this process, which then ends that one.
            setsid()?;
            // It ends with the thread that waits for it, however that ends.
            prctl::set_pdeathsig(Signal::SIGKILL)?;
            if getppid() != parent {
                return Err(io::Error::other("the parent has ended"));
            }
            for fd in files {
                // SAFETY: the descriptor is open: whoever called holds the file.
                let fd = unsafe { BorrowedFd::borrow_raw(fd) };
                fcntl(fd, FcntlArg::F_SETFD(FdFlag::empty()))?;
            }
            Ok(())
        };
        // SAFETY: `before` makes system calls only.
        unsafe { command.pre_exec(before) };
        let (output, input) = io::pipe().map_err(failed)?;
        let copy = input.try_clone().map_err(failed)?;
        command.stdin(Stdio::null()).stdout(input).stderr(copy);
        let child = command.spawn().map_err(|e| match e.kind() {
            ErrorKind::NotFound => unavailable(format!("there is no {QEMU}"), QEMU_HELP),
            _ => broken(format!("{QEMU}: {e}")),
        })?;
        Ok(Self { process: Process(child), console: thread::spawn(move || last_lines(output)) })
    }

    /// An error, with the guest's last lines.
    fn failed(self, why: &str) -> HostError {
        let Self { mut process, console } = self;
        // After its end the console is complete.
        let _ = process.0.kill();
        let status = process.0.wait();
        let said = console.join().unwrap_or_default();
        let mut text = format!("the virtual machine failed: {why}");
        if said.is_empty() {
            text += "; it said nothing";
            if let Ok(status) = status {
                text += &format!(" ({status})");
            }
        } else {
            text += "; its last lines:";
            said.iter().for_each(|line| text += &format!("\n  {line}"));
        }
        let error = broken(text);
        let memory = MEMORY_BYTES >> 30;
        let with_window = memory + (WINDOW_BYTES as u64 >> 30);
        let says = |words: &str| said.iter().any(|line| line.contains(words));
        if says("allocate memory") || says("guest memory") {
            let help = format!(
                "a virtual machine takes up to {with_window} GiB of memory: run fewer at once (--jobs 1), \
                 or lift the limit (ulimit -v)"
            );
            return error.with_help(help);
        }
        if NO_MEMORY.iter().any(|words| says(words)) {
            let help = format!(
                "the guest has {memory} GiB: a shorter run, a shorter queue, or a run without trace or \
                 packets needs less"
            );
            return error.with_help(help);
        }
        error
    }
}

/// A process that ends with this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The last lines of an output, up to a kernel's panic, once the output has ended.
fn last_lines(from: impl Read) -> VecDeque<String> {
    let mut last = VecDeque::new();
    for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
        last.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
        if last.len() > KEPT_LINES {
            last.pop_front();
        }
    }
    let panic = last.iter().position(|line| line.contains(PANIC));
    last.truncate(panic.map_or(last.len(), |at| at + 1));
    last.retain(|line| !line.is_empty());
    last.drain(..last.len().saturating_sub(LAST_LINES));
    last
}

fn failed(error: io::Error) -> HostError {
    broken(format!("talking to the virtual machine: {error}"))
}
