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
    io::{self, BufWriter, ErrorKind},
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

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
    writer: PcapNgWriter<BufWriter<File>>,
    /// Time 0 since 1970.
    zero: Duration,
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
        let file = BufWriter::new(file);
        let mut writer = PcapNgWriter::new(file).map_err(|e| failed(io_error(e)))?;
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
        Ok(Capture { path, writer, zero })
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
        let written = self.writer.write_pcapng_block(block);
        written.map(drop).map_err(|error| not_written(&self.path, io_error(error)))
    }

    /// Writes what is left and gives the file its name.
    ///
    /// # Errors
    /// The file cannot be written, or there is another one of its name.
    pub fn finish(self) -> Result<(), HostError> {
        let Self { path, writer, .. } = self;
        let finish = || {
            let file = writer.into_inner().into_inner()?;
            let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
            let named =
                linkat(AT_FDCWD, unnamed.as_str(), AT_FDCWD, &path, AtFlags::AT_SYMLINK_FOLLOW);
            named.map_err(Errno::into)
        };
        finish().map_err(|error| not_written(&path, error))
    }
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        error => io::Error::other(error),
    }
}
