//! Memory that the guest and this process share: QEMU's PCI device `ivshmem-plain`.
//!
//! The request is there before the guest starts, and the answer takes its place. This process only
//! reads while the guest runs, so nothing that the real machine does has a time in the guest.

use nix::sys::memfd::{MFdFlags, memfd_create};
use std::{
    fs::{self, File, OpenOptions},
    io,
    os::{fd::AsRawFd, unix::fs::FileExt},
    path::PathBuf,
    ptr, slice,
    sync::atomic::{AtomicU64, Ordering},
};

/// Size of the memory, which takes room only where it is written.
pub(crate) const WINDOW_BYTES: usize = 1 << 30;
/// Place of the request or the answer; the head lies before it.
const CONTENTS_AT: usize = 4096;
/// Vendor and device, as the kernel shows them for `ivshmem`.
const DEVICE: [&str; 2] = ["0x1af4", "0x1110"];

/// State of a guest's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its run is not over; so many nanoseconds of it are.
    Running(u64),
    /// The answer is there.
    Answered,
    /// The run took too long.
    OutOfBudget,
}

const RUNNING: u64 = 0;
const ANSWERED: u64 = 1;
const OUT_OF_BUDGET: u64 = 2;

/// The beginning of the memory.
#[repr(C)]
struct Head {
    stage: AtomicU64,
    progress_ns: AtomicU64,
    /// Length of the request or the answer.
    contents_bytes: AtomicU64,
}

/// A file in memory, without a name, with these contents.
pub(crate) fn in_memory(bytes: &[u8]) -> io::Result<File> {
    let file = File::from(memfd_create(c"knee-vm", MFdFlags::MFD_CLOEXEC)?);
    file.write_all_at(bytes, 0)?;
    Ok(file)
}

/// A path by which a process that inherits `file` opens it.
pub(crate) fn inherited(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// This process's side of the memory.
pub(crate) struct Window(pub File);

impl Window {
    /// A new one, with a request.
    pub(crate) fn with_request(request: &[u8]) -> io::Result<Self> {
        let words = [RUNNING, 0, request.len() as u64].map(u64::to_le_bytes);
        let file = in_memory(&words.concat())?;
        file.write_all_at(request, CONTENTS_AT as u64)?;
        file.set_len(WINDOW_BYTES as u64)?;
        Ok(Self(file))
    }

    fn head(&self) -> io::Result<[u64; 3]> {
        let mut words = [[0; 8]; 3];
        self.0.read_exact_at(words.as_flattened_mut(), 0)?;
        Ok(words.map(u64::from_le_bytes))
    }

    /// Returns the state of the run.
    pub(crate) fn stage(&self) -> io::Result<Stage> {
        let [stage, progress_ns, _] = self.head()?;
        Ok(match stage {
            ANSWERED => Stage::Answered,
            OUT_OF_BUDGET => Stage::OutOfBudget,
            _ => Stage::Running(progress_ns),
        })
    }

    /// Returns the answer.
    pub(crate) fn answer(&self) -> io::Result<Vec<u8>> {
        let [_, _, contents_bytes] = self.head()?;
        let mut answer = vec![0; (contents_bytes as usize).min(WINDOW_BYTES - CONTENTS_AT)];
        self.0.read_exact_at(&mut answer, CONTENTS_AT as u64)?;
        Ok(answer)
    }
}

/// The guest's side: the beginning of a mapping that never ends.
#[derive(Clone, Copy)]
pub(crate) struct GuestWindow(*mut u8);

// SAFETY: the head is atomic, and the contents belong to one thread, which reads the request and writes
// the answer.
unsafe impl Send for GuestWindow {}

impl GuestWindow {
    /// Finds the device and maps its memory.
    pub(crate) fn open() -> io::Result<Self> {
        let device = device()?;
        // Lets the device answer; most firmware has done it.
        fs::write(device.join("enable"), "1")?;
        let memory = OpenOptions::new().read(true).write(true).open(device.join("resource2"))?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let (shared, fd) = (libc::MAP_SHARED, memory.as_raw_fd());
        // SAFETY: a new mapping, at an address that the kernel chooses; it stays for good.
        let at = unsafe { libc::mmap(ptr::null_mut(), WINDOW_BYTES, access, shared, fd, 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(at.cast()))
    }

    fn head(self) -> &'static Head {
        // SAFETY: the mapping begins with a head, whose fields take any value, and never ends.
        unsafe { &*self.0.cast() }
    }

    /// Returns the request.
    pub(crate) fn request(self) -> Vec<u8> {
        let bytes = self.head().contents_bytes.load(Ordering::Relaxed) as usize;
        // SAFETY: the mapping holds the request, and nobody writes there before the answer.
        unsafe { slice::from_raw_parts(self.0.add(CONTENTS_AT), bytes) }.to_vec()
    }

    /// Says how much of the run is over.
    pub(crate) fn progress(self, ns: u64) {
        self.head().progress_ns.store(ns, Ordering::Relaxed);
    }

    /// Says that the run took too long, unless the answer is there.
    pub(crate) fn out_of_budget(self) {
        let (from, to) = (RUNNING, OUT_OF_BUDGET);
        let _ = self.head().stage.compare_exchange(from, to, Ordering::Release, Ordering::Relaxed);
    }

    /// Gives the answer.
    ///
    /// # Errors
    /// It is too long.
    pub(crate) fn answer(self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > WINDOW_BYTES - CONTENTS_AT {
            let why = format!("the results have {} bytes, more than {WINDOW_BYTES}", bytes.len());
            return Err(io::Error::other(why));
        }
        // SAFETY: the mapping has the room, and nobody reads there before the stage says so.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.add(CONTENTS_AT), bytes.len()) };
        self.head().contents_bytes.store(bytes.len() as u64, Ordering::Relaxed);
        self.head().stage.store(ANSWERED, Ordering::Release);
        Ok(())
    }
}

/// The folder of the device.
fn device() -> io::Result<PathBuf> {
    let is = |folder: &PathBuf| {
        ["vendor", "device"].iter().zip(DEVICE).all(|(name, number)| {
            fs::read_to_string(folder.join(name)).is_ok_and(|text| text.trim() == number)
        })
    };
    let mut folders = fs::read_dir("/sys/bus/pci/devices")?.flatten().map(|entry| entry.path());
    folders.find(is).ok_or_else(|| io::Error::other("the machine has no memory for a request"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests

    use super::*;

    #[test]
    fn both_sides_see_the_same_memory() {
        let window = Window::with_request(b"a request").unwrap();
        assert_eq!(window.stage().unwrap(), Stage::Running(0));
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let fd = window.0.as_raw_fd();
        // SAFETY: a new mapping of a file of this length.
        let at =
            unsafe { libc::mmap(ptr::null_mut(), WINDOW_BYTES, access, libc::MAP_SHARED, fd, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        let guest = GuestWindow(at.cast());
        assert_eq!(guest.request(), b"a request");
        guest.progress(17);
        assert_eq!(window.stage().unwrap(), Stage::Running(17));
        guest.answer(b"an answer that is longer").unwrap();
        assert_eq!(window.stage().unwrap(), Stage::Answered);
        assert_eq!(window.answer().unwrap(), b"an answer that is longer");
        // Time passes in the guest until Knee ends it.
        guest.out_of_budget();
        assert_eq!(window.stage().unwrap(), Stage::Answered);
        guest.head().stage.store(RUNNING, Ordering::Relaxed);
        guest.out_of_budget();
        assert_eq!(window.stage().unwrap(), Stage::OutOfBudget);
    }
}
