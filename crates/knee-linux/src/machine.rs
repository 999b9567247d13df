//! One run of the kernel: a process that reads the specification and reports what happens.
//!
//! The process dies with the thread that waits for it, however that ends, and has no files: its memory has no name.

use crate::message::{Captured, Message, Request};
use knee_capture::{Capture, CaptureFile, Place};
use knee_model::{
    HostError, Progress, Random, RunRecord, RunSpec,
    failure::{broken, unavailable},
};
use nix::{
    errno::Errno,
    fcntl::OFlag,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        memfd::{MFdFlags, memfd_create},
        prctl,
        signal::Signal,
    },
    unistd::pipe2,
};
use std::{
    collections::VecDeque,
    env,
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    os::{
        fd::{AsFd, AsRawFd, OwnedFd, RawFd},
        unix::process::CommandExt,
    },
    path::Path,
    process::{Child, Command, Stdio},
    sync::OnceLock,
    thread,
    time::Duration,
};

/// The descriptor on which the guest reports (`crates/knee-linux-guest/src/output.rs`).
const REPORTS_FD: RawFd = 3;
/// The descriptor of the path's library.
const PATH_FD: RawFd = 4;
/// The path's library, for x86-64. Elsewhere it is empty.
pub(crate) static PATH_LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/path.so"));
/// Memory of the guest; the machine gives only the part in use.
const MEMORY: &str = "mem=1G";
/// The guest's date when it starts, ns since 1970.
const START: &str = "time-travel-start=1750000000000000000";
/// Time 0 of a run in a capture, since 1970: the same each time.
const CAPTURE_ZERO: Duration = Duration::from_secs(1_750_000_000);
/// A guest that is silent for this long has gone astray: it tells of every 65 536 packets.
const LONGEST_SILENCE: Duration = Duration::from_secs(60);
/// The variable of the environment that changes it.
const LONGEST_SILENCE_VARIABLE: &str = "KNEE_LINUX_SILENCE_S";
/// The last lines of a guest that an error shows.
const LAST_LINES: usize = 10;
/// Largest message. A trace comes in parts.
const LARGEST_MESSAGE_BYTES: u32 = 1 << 30;

/// Kills the guest if it still runs.
struct Guest(Child);

impl Drop for Guest {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The time after which a silent guest ends.
///
/// # Errors
/// The variable that sets it is no number of seconds.
pub(crate) fn longest_silence() -> Result<Duration, HostError> {
    let Some(text) = env::var_os(LONGEST_SILENCE_VARIABLE) else { return Ok(LONGEST_SILENCE) };
    let text = text.to_string_lossy();
    let seconds = text.parse().ok().filter(|seconds| *seconds > 0);
    seconds.map(Duration::from_secs).ok_or_else(|| {
        let why = format!("{LONGEST_SILENCE_VARIABLE}={text} is no number of seconds");
        unavailable(
            why,
            format!("write an integer above 0, or leave out {LONGEST_SILENCE_VARIABLE}"),
        )
    })
}

/// Carries out `spec` with the kernel `program`; the packets go to `capture`, and `tell` receives each report but the
/// last.
///
/// # Errors
/// The kernel does not start, breaks, is silent for too long, or reports an error.
pub(crate) fn run(
    program: &Path,
    spec: &RunSpec,
    capture: Option<CaptureFile>,
    longest_silence: Duration,
    mut tell: impl FnMut(Progress),
) -> Result<RunRecord, HostError> {
    let request = request(spec, capture.is_some())?;
    let mut capture = capture.map(|file| file.start(CAPTURE_ZERO)).transpose()?;
    let (reports, far) =
        pipe2(OFlag::O_CLOEXEC).map_err(|e| broken(format!("creating a pipe: {e}")))?;
    let (console, printed) = io::pipe().map_err(|e| broken(format!("creating a pipe: {e}")))?;
    let mut guest = start(program, spec, &far, printed)?;
    drop(far);
    let lines = thread::spawn(move || last_lines(console));
    if let Some(mut input) = guest.0.stdin.take()
        && let Err(error) = input.write_all(&request)
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        return Err(broken(format!("telling the kernel of the run: {error}")));
    }
    let mut calls = vec![Vec::new(); spec.flows.len()];
    let mut reports = Reports { from: File::from(reports), longest_silence };
    let result = loop {
        match reports.next() {
            Ok(Some(Message::Progress(progress))) => tell(progress),
            Ok(Some(Message::Calls(flow, more))) => match calls.get_mut(flow as usize) {
                Some(calls) => calls.extend(more),
                None => {
                    break Err(broken("the kernel reports calls of a flow that does not exist"));
                }
            },
            Ok(Some(Message::Packets(packets))) => {
                if let Some(capture) = &mut capture {
                    note(capture, &packets)?;
                }
            }
            Ok(Some(Message::Failed(error))) => return Err(error),
            Ok(Some(Message::Record(record))) => break Ok(*record),
            Ok(None) => break Err(broken("the kernel ended without a record")),
            Err(error) => break Err(error),
        }
    };
    match result {
        Ok(mut record) => {
            capture.map_or(Ok(()), Capture::finish)?;
            record.name_observed(spec);
            for (flow, calls) in record.flows.iter_mut().zip(calls) {
                flow.trace = calls;
            }
            Ok(record)
        }
        Err(error) => {
            drop(guest);
            let lines = lines.join().unwrap_or_default();
            let lines = lines.trim();
            Err(if lines.is_empty() {
                error
            } else {
                error.with_help(format!("its last lines:\n{lines}"))
            })
        }
    }
}

/// Writes packets into a capture.
fn note(capture: &mut Capture, packets: &[Captured]) -> Result<(), HostError> {
    for Captured { time_ns, end, lost, headers, bytes } in packets {
        let place = match (lost, end) {
            (Some(_), _) => Place::Lost,
            (None, 0) => Place::Sender,
            (None, _) => Place::Receiver,
        };
        capture.packet(place, *time_ns, headers, *bytes, lost.as_deref())?;
    }
    Ok(())
}

/// The specification, with the algorithms from C files that it names.
fn request(spec: &RunSpec, capture: bool) -> Result<Vec<u8>, HostError> {
    let mut sources = Vec::new();
    for source in spec.algorithms().filter_map(|algorithm| algorithm.source()) {
        let source = (source.file.clone(), source.text.clone(), source.object.clone());
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    let spec = postcard::to_stdvec(spec).map_err(broken)?;
    postcard::to_stdvec(&Request { sources, spec, capture }).map_err(broken)
}

/// A file in memory with the path's library, from which each guest loads it.
fn path_library() -> Result<&'static File, HostError> {
    static LIBRARY: OnceLock<Result<File, String>> = OnceLock::new();
    let write = || {
        let mut file = File::from(memfd_create(c"knee-path", MFdFlags::MFD_CLOEXEC)?);
        file.write_all(PATH_LIBRARY)?;
        Ok(file)
    };
    let library = LIBRARY.get_or_init(|| write().map_err(|e: io::Error| e.to_string()));
    library.as_ref().map_err(|e| broken(format!("writing the path's library into memory: {e}")))
}

fn start(
    program: &Path,
    spec: &RunSpec,
    reports: &OwnedFd,
    printed: io::PipeWriter,
) -> Result<Guest, HostError> {
    let cannot_start = |error| {
        unavailable(
            format!("cannot start the kernel {}: {error}", program.display()),
            "`knee linux clean` removes built kernels, `knee linux build debian:6.12` builds one",
        )
    };
    // A failed start can go unreported: the kernel's descriptors may take the number of the one that reports it.
    program.metadata().map_err(cannot_start)?;
    let copy = printed.try_clone().map_err(|e| broken(format!("duplicating a pipe: {e}")))?;
    let seed = Random::stream(spec.seed, "kernel", 0).bits64();
    let mut command = Command::new(program);
    command
        .args([MEMORY, "time-travel=inf-cpu", START, "con=null", "con0=null,fd:1", "quiet"])
        // There is nothing to keep: no folder can be made there.
        .arg("uml_dir=/dev/null/")
        .args(["panic=-1", "norandmaps"])
        .arg(format!("knee_seed={seed}"))
        .arg(format!("knee_path=/proc/self/fd/{PATH_FD}"))
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(printed)
        .stderr(copy);
    let inherited = [(reports.as_raw_fd(), REPORTS_FD), (path_library()?.as_raw_fd(), PATH_FD)];
    // SAFETY: between fork and exec only calls that are safe after a signal are made.
    unsafe {
        command.pre_exec(move || {
            prctl::set_pdeathsig(Signal::SIGKILL)?;
            // Addresses are the same each time.
            libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            inherit(inherited)
        });
    }
    command.spawn().map(Guest).map_err(cannot_start)
}

/// Gives each descriptor the number after it, for the program that this process becomes. Called between fork and
/// exec.
fn inherit(mut descriptors: [(RawFd, RawFd); 2]) -> io::Result<()> {
    let checked = |result: libc::c_int| match result {
        ..0 => Err(io::Error::last_os_error()),
        descriptor => Ok(descriptor),
    };
    for (from, _) in &mut descriptors {
        // Above both numbers, so that none overwrites another.
        // SAFETY: the descriptor is open.
        *from = checked(unsafe { libc::fcntl(*from, libc::F_DUPFD_CLOEXEC, PATH_FD + 1) })?;
    }
    for (from, to) in descriptors {
        // SAFETY: this process uses no descriptor of this number before exec.
        checked(unsafe { libc::dup2(from, to) })?;
    }
    Ok(())
}

/// The last lines that the guest prints; they end with it.
fn last_lines(console: impl Read) -> String {
    let mut last = VecDeque::new();
    let mut console = BufReader::new(console);
    let mut line = Vec::new();
    while let Ok(1..) = console.read_until(b'\n', &mut line) {
        if last.len() == LAST_LINES {
            last.pop_front();
        }
        last.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
        line.clear();
    }
    Vec::from(last).join("\n")
}

/// The reports of a guest.
struct Reports {
    from: File,
    longest_silence: Duration,
}

impl Reports {
    /// The next one; none if the guest has ended.
    fn next(&mut self) -> Result<Option<Message>, HostError> {
        let mut length = [0; 4];
        if !self.read(&mut length)? {
            return Ok(None);
        }
        let length = u32::from_le_bytes(length);
        if length > LARGEST_MESSAGE_BYTES {
            return Err(broken(format!("the kernel announces a report of {length} bytes")));
        }
        let mut bytes = vec![0; length as usize];
        if !self.read(&mut bytes)? {
            return Ok(None);
        }
        let message = postcard::from_bytes(&bytes);
        message.map(Some).map_err(|e| broken(format!("the kernel's report cannot be read: {e}")))
    }

    /// Fills `bytes`; false if the guest has ended before.
    fn read(&mut self, bytes: &mut [u8]) -> Result<bool, HostError> {
        let mut done = 0;
        while done < bytes.len() {
            let timeout = PollTimeout::try_from(self.longest_silence).unwrap_or(PollTimeout::MAX);
            match poll(&mut [PollFd::new(self.from.as_fd(), PollFlags::POLLIN)], timeout) {
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(broken(format!("waiting for the kernel: {error}"))),
                Ok(0) => {
                    let seconds = self.longest_silence.as_secs();
                    let why = format!("the kernel has made no progress for {seconds} s");
                    return Err(broken(why));
                }
                Ok(_) => {}
            }
            match self.from.read(&mut bytes[done..]) {
                Ok(0) => return Ok(false),
                Ok(n) => done += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(broken(format!("reading the kernel's reports: {error}"))),
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests

    use super::*;
    use knee_model::{NS_PER_MS, NS_PER_S, PathSpec, QueueLimit, RecordSpec};
    use std::{fs, os::unix::fs::PermissionsExt, time::Instant};

    fn error_of(program: &str) -> HostError {
        error_within(Path::new(program), LONGEST_SILENCE)
    }

    fn error_within(program: &Path, longest_silence: Duration) -> HostError {
        let path = PathSpec::symmetric(1_000_000, NS_PER_MS, QueueLimit::Packets(10));
        let record = RecordSpec::default();
        let spec = RunSpec {
            seed: 1,
            duration_ns: NS_PER_S,
            path,
            flows: Vec::new(),
            record,
            sysctls: Vec::new(),
        };
        run(program, &spec, None, longest_silence, |_| ()).unwrap_err()
    }

    #[test]
    fn a_kernel_that_breaks_shows_its_last_lines() {
        let error = error_of("/bin/echo");
        assert_eq!(error.why, "the kernel ended without a record");
        let help = error.help.unwrap();
        assert!(help.starts_with("its last lines:\n") && help.contains("knee_seed="), "{help}");
    }

    #[test]
    fn a_kernel_without_progress_ends_with_its_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("linux");
        fs::write(&program, "#!/bin/sh\necho spinning\nwhile :; do :; done\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let start = Instant::now();
        let error = error_within(&program, Duration::from_secs(1));
        assert_eq!(error.why, "the kernel has made no progress for 1 s");
        assert_eq!(error.help.as_deref(), Some("its last lines:\nspinning"));
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_kernel_that_does_not_start_is_named() {
        let error = error_of("/nonesuch/linux");
        assert_eq!(error.kind, knee_model::HostErrorKind::Unavailable);
        assert!(error.why.contains("/nonesuch/linux"), "{}", error.why);
    }
}
