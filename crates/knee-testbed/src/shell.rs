//! The emulated path by itself, for anybody's own programs.
//!
//! One process holds a path: two ends, a forwarder that runs without end, and a socket in
//! [`FOLDER`] through which others ask it for its state or for an end's namespace, or tell it to
//! end. A lock on a file next to the socket says that the process lives; no process is ever judged
//! or ended by its number. When the process ends, however that is, the kernel removes ends and
//! lock; [`clean`] removes the two files that a killed one leaves.

use crate::{
    Alarm, Clock, LEAD, Passed,
    error::{Doing, joined, unless},
    forwarder::Forwarder,
    namespace::{self, Namespace},
    plan::End,
};
use knee_capture::CaptureFile;
use knee_model::{
    FlowKind, FlowSpec, HostError, HostErrorKind, Ns, PathSpec, RecordSpec, RunSpec,
    failure::{broken, unsupported},
};
use nix::{
    cmsg_space,
    errno::Errno,
    fcntl::{Flock, FlockArg},
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sched::{CloneFlags, setns},
    sys::{
        prctl::set_no_new_privs,
        signal::{SigSet, Signal},
        signalfd::{SfdFlags, SignalFd},
        socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg},
    },
    unistd::geteuid,
};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, ErrorKind, IoSlice, IoSliceMut, Read},
    net::Shutdown,
    os::{
        fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
        unix::{
            fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Folder in which the running paths are known. Only root can enter.
pub const FOLDER: &str = "/run/knee";
/// The name of a path that was given none.
pub const DEFAULT_NAME: &str = "default";
/// Longest name.
const NAME_LEN: usize = 32;
/// Longest wait for a word from the other end of a socket.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same for the end of a path, which may have packets to write.
const PATIENCE_AT_END: Duration = Duration::from_secs(60);

/// The reason why a path could not be had, or queried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShellError {
    /// The name is taken.
    #[error(
        "a path {0:?} already exists; end it (knee testbed down {0}) or choose another name (--as)"
    )]
    Taken(String),
    /// Nothing of that name runs.
    #[error("no path {0:?}; `knee testbed list` shows the running ones")]
    Missing(String),
    /// Any other failure.
    #[error(transparent)]
    Other(#[from] HostError),
}

/// The error of a path whose process does not answer.
fn silent(name: &str, error: io::Error) -> ShellError {
    broken(format!("the path {name:?} does not answer: {error}")).into()
}

/// The error of a path that failed.
fn failed(name: &str, why: &str) -> ShellError {
    broken(format!("the path {name:?} has failed: {why}")).into()
}

/// State of a running path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// The emulated path, in words.
    pub about: String,
    /// Number of the process that holds it, for people.
    pub pid: u32,
    /// The reason why it no longer carries packets, if it does not.
    pub failure: Option<String>,
    /// Totals so far.
    pub passed: Passed,
}

/// A finding of [`list`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Listed {
    /// A running path.
    Running(Status),
    /// One whose process does not answer, and why.
    Silent(String, String),
    /// Files that a killed one left; [`clean`] removes them.
    Left(String),
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Request {
    Status,
    Namespace(End),
    Down,
}

/// The files of a name.
struct Files {
    name: String,
    lock: PathBuf,
    socket: PathBuf,
}

impl Files {
    fn of(name: &str) -> Result<Self, ShellError> {
        let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        if name.is_empty() || name.len() > NAME_LEN || !name.bytes().all(fits) {
            let why = format!("{name:?} is not a valid name: use 1 to 32 of a-z, 0-9, - and _");
            return Err(unsupported(why).into());
        }
        let file = |end| Path::new(FOLDER).join(format!("{name}.{end}"));
        Ok(Self { name: name.to_owned(), lock: file("lock"), socket: file("socket") })
    }

    /// Locks the name, if no process has: the lock file is there then, and is this process's.
    fn lock(&self, create: bool) -> Result<Flock<File>, ShellError> {
        loop {
            let opened = OpenOptions::new()
                .write(true)
                .create(create)
                .mode(0o600)
                .custom_flags(libc::O_NOFOLLOW)
                .open(&self.lock);
            let file = match opened {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return Err(ShellError::Missing(self.name.clone()));
                }
                opened => opened.doing("opening a lock file")?,
            };
            let lock = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => lock,
                Err((_, Errno::EWOULDBLOCK)) => {
                    return Err(ShellError::Taken(self.name.clone()));
                }
                Err((_, error)) => return Err(error).doing("locking a file").map_err(Into::into),
            };
            // Another may have removed the file between the two steps.
            let own = lock.metadata().doing("looking at a lock file")?;
            match fs::symlink_metadata(&self.lock) {
                Ok(there) if (there.dev(), there.ino()) == (own.dev(), own.ino()) => {
                    return Ok(lock);
                }
                _ => {}
            }
        }
    }

    /// Removes both files; only for the holder of the lock.
    fn remove(&self) -> io::Result<()> {
        for file in [&self.socket, &self.lock] {
            unless(ErrorKind::NotFound, fs::remove_file(file))?;
        }
        Ok(())
    }

    fn connect(&self) -> Result<UnixStream, ShellError> {
        let silent = |error| silent(&self.name, error);
        let stream = match UnixStream::connect(&self.socket) {
            Ok(stream) => stream,
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                return Err(ShellError::Missing(self.name.clone()));
            }
            Err(error) => return Err(silent(error)),
        };
        stream.set_read_timeout(Some(PATIENCE)).map_err(silent)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(silent)?;
        Ok(stream)
    }

    /// Asks the holder; its answer as text.
    fn ask(&self, request: Request) -> Result<Status, ShellError> {
        let silent = |error| silent(&self.name, error);
        let mut stream = self.connect()?;
        if matches!(request, Request::Down) {
            stream.set_read_timeout(Some(PATIENCE_AT_END)).map_err(silent)?;
        }
        serde_json::to_writer(&stream, &request).map_err(|e| silent(e.into()))?;
        stream.shutdown(Shutdown::Write).map_err(silent)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map_err(silent)?;
        serde_json::from_str(&answer).map_err(|e| silent(e.into()))
    }
}

/// Makes sure of root and of the folder. Its lock is for those who try the locks of names, so that
/// nobody takes their trying for a path that runs.
fn folder() -> Result<Flock<File>, ShellError> {
    if !geteuid().is_root() {
        return Err(HostError::new(
            HostErrorKind::Unavailable,
            "this needs root; run it with sudo",
        )
        .into());
    }
    let made = DirBuilder::new().mode(0o700).create(FOLDER);
    unless(ErrorKind::AlreadyExists, made).doing("creating /run/knee")?;
    let found = fs::symlink_metadata(FOLDER).doing("looking at /run/knee")?;
    let why = match found {
        f if !f.is_dir() => "it is something else",
        f if f.uid() != 0 => "it is another user's",
        f if f.mode() & 0o077 != 0 => "others may enter it",
        _ => {
            let folder = File::open(FOLDER).doing("opening /run/knee")?;
            let lock = Flock::lock(folder, FlockArg::LockExclusive);
            return lock.map_err(|(_, error)| error).doing("locking /run/knee").map_err(Into::into);
        }
    };
    let why = format!("{FOLDER} is not a folder that only root can use ({why}); remove it");
    Err(HostError::new(HostErrorKind::Unavailable, why).into())
}

/// A name that this process has: its files go with it.
struct Held {
    files: Files,
    _lock: Flock<File>,
}

impl Drop for Held {
    fn drop(&mut self) {
        // `clean` will remove files that cannot be removed now.
        let _ = self.files.remove();
    }
}

/// A path that is ready; [`Up::serve`] lets packets through.
pub struct Up {
    held: Held,
    about: String,
    listener: UnixListener,
    signals: SignalFd,
    ends: [Namespace; 2],
    devices: [File; 2],
    spec: RunSpec,
    capture: Option<CaptureFile>,
}

/// Makes the two ends and takes `name`. `about` describes `path` in words. From here on
/// SIGINT, SIGTERM and SIGHUP wait for [`Up::serve`].
///
/// # Errors
/// [`ShellError`]: no root, the name is taken, or this machine lacks something.
pub fn up(
    name: &str,
    path: &PathSpec,
    seed: u64,
    about: String,
    pcap: Option<&Path>,
) -> Result<Up, ShellError> {
    let files = Files::of(name)?;
    let trying = folder()?;
    let held = Held { _lock: files.lock(true)?, files };
    drop(trying);
    let capture = pcap.map(CaptureFile::create).transpose()?;
    let ends = namespace::open_namespaces()?;
    let devices = [ends[0].device()?, ends[1].device()?];
    // All packets are of one flow, and all of them fall into one bin, which has no end.
    let any = FlowSpec::new(
        "any",
        FlowKind::Udp { rate_bps: 1, steps: Vec::new(), packet_bytes: namespace::OPEN_MTU_BYTES },
    );
    let record = RecordSpec { bin_ns: Ns::MAX, ..RecordSpec::default() };
    let spec = RunSpec {
        seed,
        duration_ns: Ns::MAX,
        path: path.clone(),
        flows: vec![any],
        record,
        sysctls: Vec::new(),
    };
    let mut ending = SigSet::empty();
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().for_each(|s| ending.add(s));
    ending.thread_block().doing("blocking signals")?;
    let signals =
        SignalFd::with_flags(&ending, SfdFlags::SFD_CLOEXEC).doing("waiting for signals")?;
    // A killed one's may be there still; the name's lock is ours.
    let removed = fs::remove_file(&held.files.socket);
    unless(ErrorKind::NotFound, removed).doing("removing an old socket")?;
    let listener = UnixListener::bind(&held.files.socket).doing("opening a socket in /run/knee")?;
    Ok(Up { held, about, listener, signals, ends, devices, spec, capture })
}

impl Up {
    /// Lets packets through until somebody ends it ([`down`]) or a signal does; gives the totals.
    ///
    /// # Errors
    /// The path failed. Reported on request, and here when it ends.
    pub fn serve(self) -> Result<Status, ShellError> {
        let Self { held, about, listener, signals, ends, devices, spec, capture } = self;
        keep_few_privileges(capture.is_some())?;
        let clock = Clock::starting_in(LEAD);
        let capture = capture.map(|file| file.start(clock.zero_since_1970())).transpose()?;
        let forwarder = Forwarder::new(&spec, None, clock, devices, capture);
        let (alarm, shown) = (Alarm::default(), Shown::default());
        let mut status = Status {
            name: held.files.name.clone(),
            about,
            pid: std::process::id(),
            failure: None,
            passed: Passed::default(),
        };
        let asked = thread::scope(|scope| {
            let (alarm, shown) = (&alarm, &shown);
            let path = thread::Builder::new()
                .name("knee-path".into())
                .spawn_scoped(scope, move || {
                    alarm.guard(|| forwarder.run(alarm, |path| shown.look(path)))
                })
                .doing("starting a thread")?;
            let mut path = Some(path);
            // The totals; with `end`, or once the path has failed, the last ones.
            let mut state = |status: &mut Status, end: bool| {
                if end {
                    alarm.raise();
                }
                match path.take_if(|path| end || path.is_finished()).map(joined) {
                    Some(Ok(record)) => status.passed = record.passed,
                    Some(Err(error)) => status.failure = Some(error.to_string()),
                    None if path.is_some() => status.passed = shown.passed(),
                    None => {}
                }
            };
            let result = answer(&listener, &signals, &ends, |to| {
                state(&mut status, false);
                let _ = serde_json::to_writer(to, &status);
            });
            state(&mut status, true);
            result
        })?;
        // Who ended it is to find the name free.
        drop(held);
        if let Some(stream) = asked {
            let _ = serde_json::to_writer(stream, &status);
        }
        match &status.failure {
            Some(why) => Err(failed(&status.name, why)),
            None => Ok(status),
        }
    }
}

/// The path's totals, for the thread that answers.
#[derive(Default)]
struct Shown {
    wanted: AtomicBool,
    passed: Mutex<Passed>,
}

impl Shown {
    fn totals(&self) -> MutexGuard<'_, Passed> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the totals, if somebody waits for them.
    fn look(&self, forwarder: &Forwarder<'_>) {
        if self.wanted.load(Ordering::Acquire) {
            *self.totals() = forwarder.passed();
            self.wanted.store(false, Ordering::Release);
        }
    }

    /// Returns the totals until now; the last ones of a path that does not answer.
    fn passed(&self) -> Passed {
        let start = Instant::now();
        self.wanted.store(true, Ordering::Release);
        while self.wanted.load(Ordering::Acquire) && start.elapsed() < PATIENCE / 2 {
            thread::sleep(Duration::from_millis(1));
        }
        *self.totals()
    }
}

/// Gives up what was needed to make the path: a packet or a request that misleads this process finds
/// little to misuse. Threads that start from now on have no more.
fn keep_few_privileges(captures: bool) -> Result<(), ShellError> {
    // Real-time priority, for the thread that carries packets; a file in another user's folder.
    let file = if captures { CapabilitySet::DAC_OVERRIDE } else { CapabilitySet::empty() };
    let kept = CapabilitySet::SYS_NICE | file;
    let doing = "giving up privileges";
    let held = capabilities(None).doing(doing)?;
    let few = held.permitted & kept;
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: few, permitted: few, inheritable })
        .doing(doing)?;
    set_no_new_privs().doing(doing)?;
    Ok(())
}

/// Answers until it is time to end; who said so, if it was no signal. `tell` writes the path's state.
fn answer(
    listener: &UnixListener,
    signals: &SignalFd,
    ends: &[Namespace; 2],
    mut tell: impl FnMut(&UnixStream),
) -> Result<Option<UnixStream>, ShellError> {
    loop {
        let mut ready = [
            PollFd::new(listener.as_fd(), PollFlags::POLLIN),
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut ready, PollTimeout::NONE) {
            Err(Errno::EINTR) => continue,
            result => result.doing("waiting for requests")?,
        };
        let [asked, signalled] = ready.map(|fd| fd.any().unwrap_or(false));
        if signalled {
            return Ok(None);
        }
        if !asked {
            continue;
        }
        // Whoever asks and goes away, or asks nonsense, is not answered.
        let Ok((stream, _)) = listener.accept() else { continue };
        let Ok(request) = request(&stream) else { continue };
        match request {
            Request::Namespace(at) => {
                let namespace = ends[usize::from(at == End::Receiver)].file();
                let _ = send_descriptor(&stream, namespace);
            }
            Request::Status => tell(&stream),
            Request::Down => return Ok(Some(stream)),
        }
    }
}

fn request(mut stream: &UnixStream) -> io::Result<Request> {
    stream.set_read_timeout(Some(Duration::from_millis(500)))?;
    stream.set_write_timeout(Some(Duration::from_millis(500)))?;
    let mut text = String::new();
    (&mut stream).take(1024).read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

fn send_descriptor(stream: &UnixStream, file: &File) -> nix::Result<usize> {
    let descriptors = [file.as_raw_fd()];
    let rights = [ControlMessage::ScmRights(&descriptors)];
    sendmsg::<()>(stream.as_raw_fd(), &[IoSlice::new(b"n")], &rights, MsgFlags::empty(), None)
}

fn receive_descriptor(stream: &UnixStream) -> io::Result<OwnedFd> {
    let mut byte = [0];
    let mut room = [IoSliceMut::new(&mut byte)];
    let mut control = cmsg_space!([i32; 1]);
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(stream.as_raw_fd(), &mut room, Some(&mut control), flags)?;
    for message in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(descriptors) = message
            && let [descriptor] = descriptors[..]
        {
            // SAFETY: the kernel has just opened it for us, and nobody else knows it.
            return Ok(unsafe { OwnedFd::from_raw_fd(descriptor) });
        }
    }
    Err(ErrorKind::UnexpectedEof.into())
}

/// Moves the present thread to an end of the path `name`. Programs started from it are there too.
///
/// # Errors
/// [`ShellError`]: no root, no such path, or it has failed.
pub fn enter(name: &str, at: End) -> Result<(), ShellError> {
    let files = Files::of(name)?;
    folder()?;
    if let Some(why) = files.ask(Request::Status)?.failure {
        return Err(failed(name, &why));
    }
    let silent = |error| silent(name, error);
    let stream = files.connect()?;
    serde_json::to_writer(&stream, &Request::Namespace(at)).map_err(|e| silent(e.into()))?;
    stream.shutdown(Shutdown::Write).map_err(silent)?;
    let namespace = receive_descriptor(&stream).map_err(silent)?;
    setns(namespace, CloneFlags::CLONE_NEWNET).doing("entering a namespace")?;
    Ok(())
}

/// Ends the path `name`; its last state.
///
/// # Errors
/// [`ShellError`]: no root, no such path.
pub fn down(name: &str) -> Result<Status, ShellError> {
    let files = Files::of(name)?;
    folder()?;
    files.ask(Request::Down)
}

/// The names for which there are files.
fn names() -> Result<Vec<String>, ShellError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(FOLDER).doing("reading /run/knee")? {
        let file = entry.doing("reading /run/knee")?.file_name();
        if let Some(name) = file.to_str().and_then(|file| file.strip_suffix(".lock"))
            && Files::of(name).is_ok()
        {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Returns all paths, and the files that killed ones left.
///
/// # Errors
/// [`ShellError`]: no root.
pub fn list() -> Result<Vec<Listed>, ShellError> {
    let one = |name: String| {
        let files = Files::of(&name)?;
        let trying = folder()?;
        let lock = files.lock(false).map(drop);
        drop(trying);
        match lock {
            Ok(()) => Ok(Some(Listed::Left(name))),
            Err(ShellError::Missing(_)) => Ok(None),
            Err(ShellError::Taken(_)) => Ok(match files.ask(Request::Status) {
                Ok(status) => Some(Listed::Running(status)),
                // It has just ended, or is not yet there.
                Err(ShellError::Missing(_)) => None,
                Err(error) => Some(Listed::Silent(name, error.to_string())),
            }),
            Err(error) => Err(error),
        }
    };
    folder()?;
    names()?.into_iter().filter_map(|name| one(name).transpose()).collect()
}

/// Removes what killed paths left; their names. Running ones are not touched.
///
/// # Errors
/// [`ShellError`]: no root.
pub fn clean() -> Result<Vec<String>, ShellError> {
    let _trying = folder()?;
    let mut cleaned = Vec::new();
    for name in names()? {
        let files = Files::of(&name)?;
        match files.lock(false) {
            Ok(_lock) => {
                files.remove().doing("removing the files in /run/knee")?;
                cleaned.push(name);
            }
            Err(ShellError::Taken(_) | ShellError::Missing(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(cleaned)
}
