//! The packets of a path in a file for Wireshark (pcapng).

#![cfg(target_os = "linux")]

use knee_model::{HostError, Ns, failure::broken};
use nix::{
    errno::Errno,
    fcntl::{AT_FDCWD, AtFlags},
    unistd::linkat,
};
use pcap_file::{
    DataLink, PcapError,
    pcapng::{
        PcapNgWriter,
        blocks::{
            enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption},
            interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption},
        },
    },
};
use std::{
    borrow::Cow,
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write},
    mem,
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel},
    thread::{self, JoinHandle},
    time::Duration,
};

/// Bytes that go to the writing thread at once, and how many of these wait for it at most: a disk
/// may stop for as long as they fill before the path must wait.
const CHUNK_BYTES: usize = 64 << 10;
const CHUNKS: usize = 1024;
/// pcapng's exponent for times in nanoseconds.
const NANOSECONDS: u8 = 9;

/// The error of a capture that could not be written; there is no file.
fn not_written(file: &Path, error: io::Error) -> HostError {
    let why = format!("cannot write the packets to {}: {error}", file.display());
    broken(why).with_help("give a new file, in a folder that is there and has room")
}

/// The place where a packet was seen: the file's interfaces, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The path's start.
    Sender,
    /// The path's end.
    Receiver,
    /// The place of a loss on the path.
    Lost,
}

const PLACES: [(&str, &str); 3] = [
    ("sender", "packets as they leave and enter the sender's host"),
    ("receiver", "packets as they leave and enter the receiver's host"),
    ("lost", "packets that the path lost or dropped, at the time when it did"),
];

/// A file to be; it has a name only once it is complete.
pub struct CaptureFile {
    path: PathBuf,
    file: File,
}

/// A capture under way.
pub struct Capture {
    path: PathBuf,
    writer: PcapNgWriter<Chunks>,
    /// Time 0 since 1970.
    zero: Duration,
    thread: Option<JoinHandle<io::Result<File>>>,
}

impl CaptureFile {
    /// Opens a file without a name in the folder of `path`, so that a killed run leaves nothing.
    ///
    /// # Errors
    /// The file exists, or its folder does not let it be made.
    pub fn create(path: &Path) -> Result<Self, HostError> {
        let failed = |error| not_written(path, error);
        if fs::symlink_metadata(path).is_ok() {
            return Err(failed(ErrorKind::AlreadyExists.into()));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let file = OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_TMPFILE)
            .open(folder.unwrap_or(Path::new(".")))
            .map_err(failed)?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Begins a capture whose time 0 lies at `zero` since 1970.
    ///
    /// # Errors
    /// The file's first lines cannot be written.
    pub fn start(self, zero: Duration) -> Result<Capture, HostError> {
        let Self { path, file } = self;
        let failed = |error| not_written(&path, error);
        let (full, chunks) = sync_channel(CHUNKS);
        let (emptied, empty) = channel();
        let thread = thread::Builder::new()
            .name("knee-pcap".into())
            .spawn(move || write(file, &chunks, &emptied))
            .map_err(failed)?;
        let chunks = Chunks { bytes: Vec::with_capacity(CHUNK_BYTES), full, empty };
        let mut writer = PcapNgWriter::new(chunks).map_err(|e| failed(io_error(e)))?;
        for (name, description) in PLACES {
            let interface = InterfaceDescriptionBlock {
                linktype: DataLink::RAW,
                snaplen: 0,
                options: vec![
                    InterfaceDescriptionOption::IfName(name.into()),
                    InterfaceDescriptionOption::IfDescription(description.into()),
                    InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
                ],
            };
            writer.write_pcapng_block(interface).map_err(|e| failed(io_error(e)))?;
        }
        Ok(Capture { path, writer, zero, thread: Some(thread) })
    }
}

impl Capture {
    /// Notes a packet of `whole_bytes` that begins with `start`, `time_ns` after time 0.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn packet(
        &mut self,
        place: Place,
        time_ns: Ns,
        start: &[u8],
        whole_bytes: u32,
        comment: Option<&str>,
    ) -> Result<(), HostError> {
        let comment = comment.map(|c| EnhancedPacketOption::Comment(c.into()));
        let block = EnhancedPacketBlock {
            interface_id: place as u32,
            timestamp: self.zero + Duration::from_nanos(time_ns),
            original_len: whole_bytes,
            data: Cow::Borrowed(start),
            options: comment.into_iter().collect(),
        };
        self.writer.write_pcapng_block(block).map(|_| ()).map_err(|error| {
            // The thread knows better than the broken channel.
            let source = match self.thread.take().map(joined) {
                Some(Err(source)) => source,
                _ => io_error(error),
            };
            not_written(&self.path, source)
        })
    }

    /// Writes what is left and gives the file its name.
    ///
    /// # Errors
    /// The file cannot be written, or there is another one of its name.
    pub fn finish(self) -> Result<(), HostError> {
        let Self { path, writer, thread, .. } = self;
        let finish = || {
            // If this fails, the thread says why.
            let flushed = writer.into_inner().flush();
            let Some(thread) = thread else { return flushed };
            let file = joined(thread)?;
            flushed?;
            let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
            let named =
                linkat(AT_FDCWD, unnamed.as_str(), AT_FDCWD, &path, AtFlags::AT_SYMLINK_FOLLOW);
            named.map_err(Errno::into)
        };
        finish().map_err(|error| not_written(&path, error))
    }
}

fn joined<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        error => io::Error::other(error),
    }
}

/// Writes chunks until there are no more.
fn write(
    mut file: File,
    chunks: &Receiver<Vec<u8>>,
    emptied: &Sender<Vec<u8>>,
) -> io::Result<File> {
    while let Ok(mut bytes) = chunks.recv() {
        file.write_all(&bytes)?;
        bytes.clear();
        // At the end nobody wants it back.
        let _ = emptied.send(bytes);
    }
    Ok(file)
}

/// Collects bytes for the writing thread.
struct Chunks {
    bytes: Vec<u8>,
    full: SyncSender<Vec<u8>>,
    /// Written ones, used again: memory that is new costs the path a page fault per 4 kB.
    empty: Receiver<Vec<u8>>,
}

impl Write for Chunks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > CHUNK_BYTES {
            self.flush()?;
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let empty = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(CHUNK_BYTES));
        let bytes = mem::replace(&mut self.bytes, empty);
        self.full.send(bytes).map_err(|_| ErrorKind::BrokenPipe.into())
    }
}
