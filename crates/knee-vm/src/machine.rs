//! One virtual machine: a QEMU process whose guest's clock counts instructions.
//!
//! The process dies with this one, however that ends, and has no files of its own: it talks over
//! pipes, and its memory is a file that has no name or that it only reads.

use crate::ports::{Extent, INPUT, LINES, Line};
use knee_model::{
    HostError,
    failure::{broken, unavailable},
};
use nix::{
    errno::Errno,
    fcntl::{FcntlArg, FdFlag, OFlag, fcntl},
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    sys::{
        memfd::{MFdFlags, memfd_create},
        prctl,
        signal::Signal,
    },
    unistd::{Pid, Whence, getpid, getppid, lseek, pipe2, setsid},
};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    env,
    fs::{self, File},
    io::{self, BufRead, BufReader, ErrorKind, Read, Seek, Write},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
        linux::net::SocketAddrExt,
        unix::{
            fs::FileExt,
            net::{SocketAddr, UnixListener},
            process::CommandExt,
        },
    },
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

const QEMU: &str = "qemu-system-x86_64";
const QEMU_HELP: &str =
    "sudo apt-get install qemu-system-x86 (elsewhere: QEMU for x86, 7.2 or newer)";
/// Memory of the guest. It takes only the used part from the real machine's.
pub(crate) const MEMORY_BYTES: u64 = 2 << 30;
/// Whatever happens, a guest that runs says within so long that it does. Like [`LONGEST_REPLY`], without
/// the time in which QEMU waits for a processor that others use.
const LONGEST_SILENCE: Duration = Duration::from_secs(600);
/// Name of the variable with a run's budget, instead of [`crate::host::budget_ns`], in seconds.
pub(crate) const BUDGET: &str = "KNEE_VM_BUDGET_S";
/// In the name of QEMU's thread that talks to this process, if its threads have names.
const MONITOR: &str = "mon_iothread";
/// QEMU answers within this time.
const LONGEST_REPLY: Duration = Duration::from_secs(60);
/// The console's last lines that are kept, and those that an error tells.
const KEPT_LINES: usize = 200;
const LAST_LINES: usize = 10;
/// Name and version of the part of a machine's state that has its clock (QEMU's `timer/icount`).
const ICOUNT: &[u8] = b"\x05\x0ctimer/icount\0\0\0\x01";
/// So long after it has read its clock a guest has halted for certain.
const HALTED_NS: u64 = 100_000;
/// Longest time until a kernel's next timer: some ticks.
const LONGEST_JUMP_NS: u64 = 100_000_000;
/// Messages of a guest that has run out of memory: of one of its processes, or its kernel.
const NO_MEMORY: [&str; 3] = ["memory allocation of", "Out of memory", "deadlocked on memory"];
/// The kernel's message then, which comes before a list of registers.
const PANIC: &str = "Kernel panic";

/// The parts of a machine. Every argument that has a part in the results is here, and so in the key of
/// the snapshot.
pub(crate) fn arguments(image: &Path) -> Vec<String> {
    let memory = MEMORY_BYTES >> 20;
    let mut arguments: Vec<String> = [
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
        // A state is loaded without what the memory is.
        "-global",
        "migration.send-configuration=off",
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
        "q35,hpet=off,memory-backend=memory,suppress-vmdesc=on",
        "-device",
        "pvpanic",
        "-action",
        "panic=pause",
        "-append",
        COMMAND_LINE,
    ]
    .map(str::to_owned)
    .into();
    arguments.extend(["-m".to_owned(), format!("{memory}M")]);
    arguments.extend(["-kernel".to_owned(), image.display().to_string()]);
    arguments
}

/// The kernel's options. Its tick runs while it is idle: to stop it takes longer, twice per packet.
const COMMAND_LINE: &str = "console=ttyS0 quiet panic=-1 rdinit=/knee norandmaps \
    random.trust_cpu=off random.trust_bootloader=off tsc=reliable mitigations=off init_on_alloc=0 \
    hardened_usercopy=off lsm=none audit=0 psi=0 nowatchdog nohz=off -- vm guest";

/// QEMU's program.
pub(crate) fn program() -> Result<PathBuf, HostError> {
    let folders = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&folders).map(|folder| folder.join(QEMU)).find(|p| p.is_file());
    found.ok_or_else(|| unavailable(format!("`--host vm` needs QEMU: no {QEMU}"), QEMU_HELP))
}

/// Its own words about its version: `7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)`.
pub(crate) fn version(program: &Path) -> Result<String, HostError> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    let output = output.map_err(|e| broken(format!("{}: {e}", program.display())))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.lines().next().and_then(|line| line.split_once("version "));
    version.map(|(_, version)| version.to_owned()).ok_or_else(|| {
        broken(format!("{QEMU} --version says: {}", text.lines().next().unwrap_or_default()))
    })
}

/// The state of a halted machine: its memory, and behind that everything else.
pub(crate) struct Snapshot(File);

impl Snapshot {
    /// Puts one into a file that is still empty. The unwritten part of the memory takes no room.
    fn keep(file: File, memory: &File, state: &[u8]) -> io::Result<Self> {
        file.set_len(MEMORY_BYTES)?;
        copy_written(memory, &file)?;
        file.write_all_at(state, MEMORY_BYTES)?;
        Ok(Self(file))
    }

    /// One that was made before.
    pub(crate) fn of(file: File) -> Self {
        Self(file)
    }

    pub(crate) fn file(&self) -> &File {
        &self.0
    }

    /// Returns the state behind the memory.
    fn state(&self) -> io::Result<Vec<u8>> {
        let len = self.0.metadata()?.len().saturating_sub(MEMORY_BYTES);
        let mut state = vec![0; len as usize];
        self.0.read_exact_at(&mut state, MEMORY_BYTES)?;
        Ok(state)
    }
}

/// The fate of a machine that is prepared for runs.
pub(crate) enum Prepared {
    /// It was kept, if the disk had room.
    Kept(io::Result<Snapshot>),
    /// It could not be prepared: its results.
    Refused(Vec<Vec<u8>>),
}

/// A running machine.
pub(crate) struct Machine {
    process: Process,
    _core: Option<Core>,
    commands: ChildStdin,
    replies: Lines<ChildStdout>,
    /// Name and status of events that have happened and nobody has waited for yet.
    events: Vec<(String, String)>,
    lines: Lines<File>,
    console: Console,
    /// File for its state.
    state: File,
}

impl Machine {
    /// Starts a machine that boots, waits until its guest is ready, and puts what it is then into
    /// `file`, which is still empty.
    pub(crate) fn boot(
        arguments: &[String],
        initramfs: &[u8],
        file: File,
    ) -> Result<io::Result<Snapshot>, HostError> {
        let initramfs = in_memory(initramfs)?;
        // Not in the file itself: where the disk is full, QEMU would end without a word.
        let memory = in_memory(&[])?;
        memory.set_len(MEMORY_BYTES).map_err(failed)?;
        let mut command = Start::new(arguments);
        command.memory(&memory, true);
        command.option("-initrd", &path(&initramfs));
        command.inherit(&[initramfs.as_raw_fd()]);
        let mut machine = command.start()?;
        let clock_ns = machine.wait_for(|line| match line {
            Line::Ready(ns) => Some(ns),
            _ => None,
        })?;
        machine.keep(&memory, clock_ns, file)
    }

    /// Lets a machine resume from `snapshot` with an input that prepares it for runs, and puts its state then
    /// into `file`, which is still empty. If it cannot be prepared, its results say why.
    pub(crate) fn prepare(
        arguments: &[String],
        snapshot: &Snapshot,
        input: &[u8],
        file: File,
    ) -> Result<Prepared, HostError> {
        let memory = in_memory(&[])?;
        memory.set_len(MEMORY_BYTES).map_err(failed)?;
        copy_written(&snapshot.0, &memory).map_err(failed)?;
        let output = in_memory(&[])?;
        let mut machine = Self::start_from(arguments, snapshot, (&memory, true), input, &output)?;
        let said = machine.wait_for(|line| match line {
            Line::Ready(_) | Line::Results(_) => Some(line),
            _ => None,
        })?;
        match said {
            Line::Ready(clock_ns) => machine.keep(&memory, clock_ns, file).map(Prepared::Kept),
            Line::Results(extents) => machine.results(&extents, &output).map(Prepared::Refused),
            _ => Err(broken("the guest said something else than was waited for")),
        }
    }

    /// Starts a machine and lets it resume from `snapshot`, with this input. The result is the data that it
    /// leaves in its memory when it halts again; `progress` is told how far it is, ns.
    pub(crate) fn resume(
        arguments: &[String],
        snapshot: &Snapshot,
        input: &[u8],
        progress: impl Fn(u64),
    ) -> Result<Vec<Vec<u8>>, HostError> {
        let output = in_memory(&[])?;
        let mut machine =
            Self::start_from(arguments, snapshot, (&snapshot.0, false), input, &output)?;
        let extents = machine.wait_for(|line| match line {
            Line::Progress(ns) => {
                progress(ns);
                None
            }
            Line::Results(extents) => Some(extents),
            _ => None,
        })?;
        machine.results(&extents, &output)
    }

    /// Starts a machine that resumes from `snapshot` with the memory in `memory.0`, where it writes only
    /// if `memory.1`. It reads `input`, and may write to `output`.
    fn start_from(
        arguments: &[String],
        snapshot: &Snapshot,
        memory: (&File, bool),
        input: &[u8],
        output: &File,
    ) -> Result<Self, HostError> {
        let input = in_memory(input)?;
        let mut command = Start::new(arguments);
        command.memory(memory.0, memory.1);
        // It waits for an order to continue: a guest that ended before would continue after its end.
        command.command.args(["-S", "-incoming", "defer"]);
        let item = format!("name={INPUT},file={}", path(&input));
        command.option("-fw_cfg", &item);
        let state = in_memory(&snapshot.state().map_err(failed)?)?;
        command.inherit(&[&input, output, &state].map(|file| file.as_raw_fd()));
        let mut machine = command.start()?;
        machine.load(&state)?;
        machine.events.clear();
        machine.process.defer_monitor();
        machine.execute("cont", json!({}))?;
        Ok(machine)
    }

    /// Puts a machine that halts, or is about to, into `file`.
    fn keep(
        mut self,
        memory: &File,
        clock_ns: u64,
        file: File,
    ) -> Result<io::Result<Snapshot>, HostError> {
        self.wait_event("STOP")?;
        // All but the memory, which is a file already. Nothing of this is Xen's but the name.
        let state = json!({ "filename": path(&self.state) });
        self.execute("xen-save-devices-state", state)?;
        let mut bytes = Vec::new();
        self.state.rewind().and_then(|()| self.state.read_to_end(&mut bytes)).map_err(failed)?;
        set_clock(&mut bytes, clock_ns + HALTED_NS)?;
        Ok(Snapshot::keep(file, memory, &bytes))
    }

    /// Returns the results of a machine that halts, or is about to.
    fn results(mut self, extents: &[Extent], output: &File) -> Result<Vec<Vec<u8>>, HostError> {
        self.wait_event("STOP")?;
        extents.iter().map(|extent| self.memory(extent, output)).collect()
    }

    /// A part of the memory of the guest's present process, by way of a file that the machine has.
    fn memory(&mut self, extent: &Extent, file: &File) -> Result<Vec<u8>, HostError> {
        let path = path(file);
        let mut bytes = Vec::new();
        if extent.bytes > 0 {
            let arguments =
                json!({ "val": extent.address, "size": extent.bytes, "filename": path });
            self.execute("memsave", arguments)?;
            File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes)).map_err(failed)?;
        }
        if bytes.len() as u64 != extent.bytes || crc32fast::hash(&bytes) != extent.crc {
            return Err(broken("the results came out of the virtual machine damaged"));
        }
        Ok(bytes)
    }

    /// Loads `state`. Its memory has what it should have.
    fn load(&mut self, state: &File) -> Result<(), HostError> {
        let events = json!({ "capability": "events", "state": true });
        self.execute("migrate-set-capabilities", json!({ "capabilities": [events] }))?;
        let uri = format!("fd:{}", state.as_raw_fd());
        self.execute("migrate-incoming", json!({ "uri": uri }))?;
        loop {
            match self.wait_event("MIGRATION")?.as_str() {
                "completed" => break,
                "failed" => return Err(self.ended("its state could not be restored")),
                _ => {}
            }
        }
        while self.execute("query-status", json!({}))?["status"] == "inmigrate" {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Reads the guest's lines until one has what is wanted.
    fn wait_for<T>(&mut self, mut wanted: impl FnMut(Line) -> Option<T>) -> Result<T, HostError> {
        loop {
            let line = match self.lines.next(LONGEST_SILENCE, || self.process.delayed()) {
                Ok(Some(line)) => line,
                Ok(None) => return Err(self.ended("it ended before its run did")),
                Err(error) if error.kind() == ErrorKind::TimedOut => {
                    let s = LONGEST_SILENCE.as_secs();
                    return Err(self.ended(&format!("it has shown no sign of life for {s} s")));
                }
                Err(error) => return Err(failed(error)),
            };
            match Line::parse(&line) {
                Some(Line::OutOfBudget) => {
                    let why = "its run did not end within its budget of instructions";
                    let help = format!("{BUDGET} allows so many seconds, of 10⁹ instructions each");
                    return Err(self.ended(why).with_help(help));
                }
                Some(line) => {
                    if let Some(found) = wanted(line) {
                        return Ok(found);
                    }
                }
                None => {}
            }
        }
    }

    /// Executes a command of QEMU's machine protocol.
    fn execute(&mut self, command: &str, arguments: Value) -> Result<Value, HostError> {
        let line = json!({ "execute": command, "arguments": arguments }).to_string() + "\n";
        // If the process has ended, there is no reply, and the caller hears of that.
        let _ = self.commands.write_all(line.as_bytes());
        loop {
            let mut reply = self.reply()?;
            if let Some(error) = reply.get("error") {
                return Err(self.ended(&format!("QEMU refuses {command}: {}", error["desc"])));
            }
            if let Some(result) = reply.get_mut("return") {
                return Ok(result.take());
            }
        }
    }

    /// Waits for an event: its status, if it has one.
    fn wait_event(&mut self, name: &str) -> Result<String, HostError> {
        loop {
            if let Some(found) = self.events.iter().position(|(event, _)| event == name) {
                return Ok(self.events.remove(found).1);
            }
            self.reply()?;
        }
    }

    /// The next thing that QEMU says; of events, a note is kept.
    fn reply(&mut self) -> Result<Value, HostError> {
        let line = match self.replies.next(LONGEST_REPLY, || self.process.delayed()) {
            Ok(Some(line)) => line,
            Ok(None) => return Err(self.ended("QEMU ended")),
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                return Err(self.ended("QEMU does not answer"));
            }
            Err(error) => return Err(failed(error)),
        };
        let reply: Value = serde_json::from_str(&line).map_err(|e| failed(e.into()))?;
        if let Some(event) = reply["event"].as_str() {
            let status = reply["data"]["status"].as_str().unwrap_or_default();
            self.events.push((event.to_owned(), status.to_owned()));
        }
        Ok(reply)
    }

    /// An error, with the guest's last lines.
    fn ended(&mut self, why: &str) -> HostError {
        // After its end the console is complete.
        let _ = self.process.0.kill();
        let status = self.process.0.wait();
        let said = self.console.last_lines();
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
        let says = |words: &str| said.iter().any(|line| line.contains(words));
        if says(QEMU) && says("memory") {
            let help = format!(
                "a virtual machine takes up to {memory} GiB of memory: run fewer at once (--jobs 1), \
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

/// A machine that is to be started.
struct Start {
    command: Command,
    inherited: Vec<RawFd>,
}

impl Start {
    fn new(arguments: &[String]) -> Self {
        let mut command = Command::new(QEMU);
        command.args(arguments);
        Self { command, inherited: Vec::new() }
    }

    fn option(&mut self, name: &str, value: &str) {
        self.command.args([name, value]);
    }

    fn inherit(&mut self, files: &[RawFd]) {
        self.inherited.extend(files);
    }

    /// Lets the guest's memory be `file`; data that it writes there stay in it only if `kept`.
    fn memory(&mut self, file: &File, kept: bool) {
        let share = if kept { "on" } else { "off" };
        let path = path(file);
        let memory = format!(
            "memory-backend-file,id=memory,size={MEMORY_BYTES},mem-path={path},share={share}"
        );
        self.option("-object", &memory);
        self.inherit(&[file.as_raw_fd()]);
    }

    /// Starts it; it obeys from now on.
    fn start(mut self) -> Result<Machine, HostError> {
        let state = in_memory(&[])?;
        let (lines, written) = pipe2(OFlag::O_CLOEXEC).map_err(|e| failed(e.into()))?;
        let port = format!("isa-debugcon,iobase={LINES:#x},chardev=lines");
        let chardev = format!("file,id=lines,path=/proc/self/fd/{}", written.as_raw_fd());
        self.option("-chardev", &chardev);
        self.option("-device", &port);
        self.option("-chardev", "file,id=console,path=/proc/self/fd/2");
        self.option("-serial", "chardev:console");
        self.option("-qmp", "stdio");
        self.option("-name", "debug-threads=on");
        self.inherit(&[written.as_raw_fd(), state.as_raw_fd()]);
        let Self { mut command, inherited } = self;
        let parent = getpid();
        let core = Core::least_used();
        let mut only = CpuSet::new();
        let pinned = core.as_ref().is_some_and(|core| only.set(core.0).is_ok());
        let before = move || {
            if pinned {
                // Where that is not allowed, it is only slower.
                let _ = sched_setaffinity(Pid::from_raw(0), &only);
            }
            // Ctrl-C is for this process, which then ends that one. And Linux schedules the threads of a
            // session as a group: where a group has guests on several cores, threads that are woken preempt
            // others in spite of `without_preemption`.
            setsid()?;
            without_preemption();
            // It ends with the thread that waits for it, however that ends.
            prctl::set_pdeathsig(Signal::SIGKILL)?;
            if getppid() != parent {
                return Err(io::Error::other("the parent has ended"));
            }
            for fd in &inherited {
                // SAFETY: the descriptor is open: whoever called holds the file.
                let fd = unsafe { BorrowedFd::borrow_raw(*fd) };
                fcntl(fd, FcntlArg::F_SETFD(FdFlag::empty()))?;
            }
            Ok(())
        };
        // SAFETY: `before` makes system calls only.
        unsafe { command.pre_exec(before) };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| match e.kind() {
            ErrorKind::NotFound => unavailable(format!("there is no {QEMU}"), QEMU_HELP),
            _ => broken(format!("{QEMU}: {e}")),
        })?;
        drop(written);
        let ends = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let process = Process(child);
        let (Some(commands), Some(replies), Some(console)) = ends else {
            return Err(broken("QEMU was started without pipes"));
        };
        let mut machine = Machine {
            process,
            _core: core,
            commands,
            replies: Lines::new(replies),
            events: Vec::new(),
            lines: Lines::new(File::from(lines)),
            console: Console::follow(console),
            state,
        };
        // It greets first.
        machine.reply()?;
        machine.execute("qmp_capabilities", json!({}))?;
        Ok(machine)
    }
}

/// Lets a thread of the present process that wakes another continue. QEMU's threads wake each other
/// whenever the guest goes idle or sets a timer, while they hold the lock that the other wants: taking
/// turns at once makes two to four times as many turns.
fn without_preemption() {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 is the calling thread; the parameters outlive the call. Where it is not allowed,
    // QEMU is only slower.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &none) };
}

/// A core of the real machine that a guest has for itself, if there are enough. QEMU's threads take
/// turns whenever the guest goes idle. On one core that takes far less time than from one core to
/// another.
struct Core(usize);

/// A core, as far as this process uses it.
struct Use {
    core: usize,
    guests: usize,
    /// While this process has guests there: tells other processes so, and ends with this one.
    claim: Option<UnixListener>,
}

static USES: Mutex<Vec<Use>> = Mutex::new(Vec::new());

impl Core {
    /// One of those that this process may use.
    fn least_used() -> Option<Self> {
        let mut uses = USES.lock().unwrap_or_else(PoisonError::into_inner);
        if uses.is_empty() {
            let allowed = sched_getaffinity(Pid::from_raw(0)).ok()?;
            let usable = (0..CpuSet::count()).filter(|core| allowed.is_set(*core).unwrap_or(false));
            *uses = usable.map(Use::new).collect();
            // Where there are more processes than cores, they should not all begin with the first.
            let cores = uses.len().max(1);
            uses.rotate_left(std::process::id() as usize % cores);
        }
        take(&mut uses).map(Self)
    }
}

impl Use {
    fn new(core: usize) -> Self {
        Self { core, guests: 0, claim: None }
    }
}

/// A core that no process has guests on; else the one where this process has the fewest.
fn take(uses: &mut [Use]) -> Option<usize> {
    for used in uses.iter_mut().filter(|used| used.claim.is_none()) {
        used.claim = claim(used.core);
        if used.claim.is_some() {
            break;
        }
    }
    let used = uses.iter_mut().min_by_key(|used| (used.guests, used.claim.is_none()))?;
    used.guests += 1;
    Some(used.core)
}

impl Drop for Core {
    fn drop(&mut self) {
        let mut uses = USES.lock().unwrap_or_else(PoisonError::into_inner);
        give_back(&mut uses, self.0);
    }
}

fn give_back(uses: &mut [Use], core: usize) {
    if let Some(used) = uses.iter_mut().find(|used| used.core == core) {
        used.guests -= 1;
        if used.guests == 0 {
            used.claim = None;
        }
    }
}

/// A socket without a file, which one process at a time can have in a network namespace.
fn claim(core: usize) -> Option<UnixListener> {
    let name = SocketAddr::from_abstract_name(format!("knee-vm-core-{core}")).ok()?;
    UnixListener::bind_addr(&name).ok()
}

/// A process that ends with this value.
struct Process(Child);

impl Process {
    /// Its threads, as the kernel lists them: that which talks to this process, or the others.
    fn threads(&self, monitor: bool) -> impl Iterator<Item = PathBuf> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0.id()));
        let named = move |task: &PathBuf| {
            let name = fs::read_to_string(task.join("comm")).unwrap_or_default();
            name.contains(MONITOR) == monitor
        };
        tasks.into_iter().flatten().flatten().map(|task| task.path()).filter(named)
    }

    /// Time for which the guest's threads have waited for a processor. Zero if the kernel does not count it.
    fn delayed(&self) -> Duration {
        let waited_ns = self.threads(false).filter_map(|task| {
            // Time on a processor, time of waiting for one, time slices.
            let times = fs::read_to_string(task.join("schedstat")).ok()?;
            times.split_whitespace().nth(1)?.parse::<u64>().ok()
        });
        Duration::from_nanos(waited_ns.sum())
    }

    /// Lets the thread that talks to this process wait until the others have little to do. QEMU wakes it
    /// each time that the clock jumps, for timers that it does not have: two changes of threads each.
    fn defer_monitor(&self) {
        const LEAST_PRIORITY: i32 = 19;
        for task in self.threads(true) {
            let id = task.file_name().and_then(|id| id.to_str()?.parse().ok());
            if let Some(id) = id {
                // SAFETY: the call takes numbers. Where it fails, QEMU is only slower.
                unsafe { libc::setpriority(libc::PRIO_PROCESS, id, LEAST_PRIORITY) };
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The output of the guest on its console, and of QEMU on its error output.
struct Console {
    last: Arc<Mutex<VecDeque<String>>>,
    reader: Option<JoinHandle<()>>,
}

impl Console {
    fn follow(from: impl Read + Send + 'static) -> Self {
        let last = Arc::new(Mutex::new(VecDeque::new()));
        let kept = last.clone();
        let reader = thread::spawn(move || {
            for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).trim_end().to_owned();
                let mut last = kept.lock().unwrap_or_else(PoisonError::into_inner);
                last.push_back(line);
                if last.len() > KEPT_LINES {
                    last.pop_front();
                }
            }
        });
        Self { last, reader: Some(reader) }
    }

    /// The last lines, once the process has ended.
    fn last_lines(&mut self) -> Vec<String> {
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let panic = last.iter().position(|line| line.contains(PANIC));
        let told = last.iter().take(panic.map_or(last.len(), |at| at + 1));
        let told: Vec<String> = told.filter(|line| !line.is_empty()).cloned().collect();
        told[told.len().saturating_sub(LAST_LINES)..].to_vec()
    }
}

/// Lines of a pipe, each with a time limit.
struct Lines<R> {
    pipe: R,
    bytes: Vec<u8>,
}

impl<R: Read + AsFd> Lines<R> {
    fn new(pipe: R) -> Self {
        Self { pipe, bytes: Vec::new() }
    }

    /// The next line, within `patience`; none at the end. `delayed` tells for how long whoever writes has
    /// waited for a processor, which does not count.
    fn next(
        &mut self,
        patience: Duration,
        delayed: impl Fn() -> Duration,
    ) -> io::Result<Option<String>> {
        let (start, before) = (Instant::now(), delayed());
        let mut left = patience;
        loop {
            if let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.bytes.drain(..=end).collect();
                return Ok(Some(String::from_utf8_lossy(&line[..end]).into_owned()));
            }
            let mut ready = [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
            match poll(&mut ready, PollTimeout::try_from(left).map_err(io::Error::other)?) {
                Ok(0) => {
                    let waited = delayed().saturating_sub(before);
                    let counted = start.elapsed().saturating_sub(waited);
                    left = patience.checked_sub(counted).ok_or(ErrorKind::TimedOut)?;
                    continue;
                }
                Ok(_) => {}
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let mut room = [0; 4096];
            match self.pipe.read(&mut room)? {
                0 => return Ok(None),
                len => self.bytes.extend_from_slice(&room[..len]),
            }
        }
    }
}

/// Sets the clock in a machine's state. While a machine halts, QEMU's threads race: one of them may
/// find the processor idle and let the clock jump to the next timer, which has not expired yet. All
/// else is the same then, so the clock is put where it belongs in either case.
fn set_clock(state: &mut [u8], clock_ns: u64) -> Result<(), HostError> {
    let mut found = state.windows(ICOUNT.len()).enumerate().filter(|(_, bytes)| *bytes == ICOUNT);
    let (Some((at, _)), None) = (found.next(), found.next()) else {
        return Err(broken("this version of QEMU keeps its clock elsewhere; tell Knee's authors"));
    };
    let at = at + ICOUNT.len();
    let number = |at: usize| -> Option<i64> {
        Some(i64::from_be_bytes(state.get(at..at + size_of::<i64>())?.try_into().ok()?))
    };
    // The clock shows the sum of both: time that was skipped, and instructions.
    let (skipped_ns, instructions) = (number(at), number(at + size_of::<i64>()));
    let (Some(skipped_ns), Some(instructions)) = (skipped_ns, instructions) else {
        return Err(broken("the virtual machine's state ends too early"));
    };
    let behind_ns = (skipped_ns + instructions).abs_diff(clock_ns as i64);
    if behind_ns > LONGEST_JUMP_NS {
        return Err(broken(format!("the virtual machine's clock is {behind_ns} ns off")));
    }
    let skipped_ns = clock_ns as i64 - instructions;
    state[at..at + size_of::<i64>()].copy_from_slice(&skipped_ns.to_be_bytes());
    Ok(())
}

/// Copies the memory of a machine, except for the part that was never written.
fn copy_written(from: &File, to: &File) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 20];
    let mut at = 0;
    while let Some((start, end)) = written(from, at)?.filter(|(start, _)| *start < MEMORY_BYTES) {
        at = start;
        let end = end.min(MEMORY_BYTES);
        while at < end {
            let len = buffer.len().min((end - at) as usize);
            from.read_exact_at(&mut buffer[..len], at)?;
            to.write_all_at(&buffer[..len], at)?;
            at += len as u64;
        }
    }
    Ok(())
}

/// The next part of a file from `at` on that was written, if there is any.
fn written(file: &File, at: u64) -> io::Result<Option<(u64, u64)>> {
    let start = match lseek(file, at as i64, Whence::SeekData) {
        Ok(start) => start,
        Err(Errno::ENXIO) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let end = lseek(file, start, Whence::SeekHole)?;
    Ok(Some((start as u64, end as u64)))
}

/// A file that a machine inherits, by a path that it can open.
fn path(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// A file in memory, without a name, with these contents.
fn in_memory(bytes: &[u8]) -> Result<File, HostError> {
    let file = memfd_create(c"knee-vm", MFdFlags::MFD_CLOEXEC);
    let mut file = File::from(file.map_err(|e| failed(e.into()))?);
    file.write_all(bytes).and_then(|()| file.rewind()).map_err(failed)?;
    Ok(file)
}

fn failed(error: io::Error) -> HostError {
    broken(format!("talking to the virtual machine: {error}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests

    use super::*;
    use std::cell::Cell;

    /// A machine that is busy with others makes no guest look dead, a guest that sleeps does.
    #[test]
    fn waiting_for_a_processor_is_no_silence() {
        let patience = Duration::from_millis(50);
        let (read, write) = pipe2(OFlag::O_CLOEXEC).unwrap();
        let (mut said, write) = (Lines::new(File::from(read)), File::from(write));
        assert_eq!(said.next(patience, || Duration::ZERO).unwrap_err().kind(), ErrorKind::TimedOut);
        // It has waited all the time, and says something at the fifth query.
        let (start, asked) = (Instant::now(), Cell::new(0));
        let waits = || {
            asked.set(asked.get() + 1);
            if asked.get() == 5 {
                (&write).write_all(b"done\n").unwrap();
            }
            start.elapsed()
        };
        assert_eq!(said.next(patience, waits).unwrap().as_deref(), Some("done"));
        assert_eq!(asked.get(), 5);
    }

    /// Two processes that keep one core busy both wait.
    #[test]
    fn a_process_that_waits_for_a_processor_is_recognised() {
        let core = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let mut only = CpuSet::new();
        only.set((0..CpuSet::count()).find(|c| core.is_set(*c).unwrap()).unwrap()).unwrap();
        let busy = || {
            let mut shell = Command::new("sh");
            let pinned = move || Ok(sched_setaffinity(Pid::from_raw(0), &only)?);
            // SAFETY: one system call.
            unsafe { shell.args(["-c", "while :; do :; done"]).pre_exec(pinned) };
            Process(shell.spawn().unwrap())
        };
        let both = [busy(), busy()];
        // Some kernels do not count it.
        let counted = || fs::metadata("/proc/self/schedstat").is_ok();
        while counted() && both.iter().any(|process| process.delayed().is_zero()) {
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn the_clock_of_a_state_is_set() {
        let state = |skipped_ns: i64| {
            let numbers = [skipped_ns, 1000].map(i64::to_be_bytes).concat();
            [&b"before"[..], ICOUNT, &numbers, b"behind"].concat()
        };
        let (mut one, mut other) = (state(5_000_000), state(9_000_000));
        set_clock(&mut one, 5_101_000).unwrap();
        set_clock(&mut other, 5_101_000).unwrap();
        assert_eq!(one, other);
        assert_eq!(one, state(5_100_000));
        // States of another time, elsewhere, twice there, cut off.
        for mut wrong in [
            state(900_000_000),
            b"timer".to_vec(),
            [state(0), state(0)].concat(),
            [&b"x"[..], ICOUNT, b"short"].concat(),
        ] {
            assert!(set_clock(&mut wrong, 5_101_000).is_err());
        }
    }

    /// Two processes take different cores, as long as there are some, and leave nothing behind.
    #[test]
    fn processes_share_the_cores() {
        // Numbers of cores that no machine has, and no other process of this test.
        let first = std::process::id() as usize * 1_000_000;
        let process = || [0, 1, 2].map(|core| Use::new(first + core));
        let (mut here, mut there) = (process(), process());
        let taken = |uses: &mut [Use]| take(uses).unwrap() - first;
        assert_eq!([taken(&mut here), taken(&mut there), taken(&mut here)], [0, 1, 2]);
        // None is free: each continues where it has the fewest.
        assert_eq!([taken(&mut here), taken(&mut there), taken(&mut here)], [1, 0, 0]);
        assert_eq!(here.each_ref().map(|used| used.guests), [2, 1, 1]);
        give_back(&mut here, first + 2);
        assert_eq!([taken(&mut there), taken(&mut there)], [2, 1]);
        // It is claimed as long as there are guests.
        give_back(&mut here, first);
        assert!(here[0].claim.is_some());
        give_back(&mut here, first);
        give_back(&mut here, first + 1);
        assert!(here.iter().all(|used| used.guests == 0 && used.claim.is_none()));
    }
}
