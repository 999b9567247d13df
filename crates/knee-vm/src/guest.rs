//! Inside the guest, where this program is process 1.

use crate::{
    initramfs::MODULES,
    kernels::module_files,
    message::{Answer, Compiled, File, PCAP, Request},
    window::GuestWindow,
};
use knee_model::{HostError, NS_PER_S, RunOptions, failure::broken};
use knee_testbed::run;
use nix::mount::{MsFlags, mount};
use std::{
    ffi::c_int,
    fs, io,
    os::fd::AsRawFd,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    thread,
    time::Duration,
};

/// Folder for a run's files.
const FILES: &str = "/tmp/files";
/// File systems of the kernel's own: kind and place.
const FILE_SYSTEMS: [(&str, &str); 5] = [
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("tmpfs", "/tmp"),
    ("bpf", "/sys/fs/bpf"),
];

/// Boots, carries out the run that the machine was given, and hands over the results. Returns only with
/// an error: process 1 ends with a panic of the kernel, which the machine tells.
///
/// # Errors
/// The guest is not what it should be.
pub fn main() -> io::Result<()> {
    if std::process::id() != 1 {
        return Err(io::Error::other("this is for process 1 of a virtual machine"));
    }
    for (kind, at) in FILE_SYSTEMS {
        let mounted = mount(Some(kind), at, Some(kind), MsFlags::empty(), None::<&str>);
        mounted.map_err(|e| io::Error::other(format!("mounting {at}: {e}")))?;
    }
    seed_random()?;
    for module in module_files(Path::new(MODULES))? {
        load_module(&module)?;
    }
    // The path's thread never waits awake, so nothing needs to be kept from it.
    fs::write("/proc/sys/kernel/sched_rt_runtime_us", "-1")?;
    fs::create_dir_all(FILES)?;
    let window = GuestWindow::open()?;
    let answer = answered(&window.request(), window)?;
    window.answer(&postcard::to_stdvec(&answer).map_err(io::Error::other)?)?;
    // Knee ends the machine when it sees the answer.
    loop {
        thread::park();
    }
}

/// The answer to a request.
fn answered(request: &[u8], window: GuestWindow) -> io::Result<Answer> {
    let (own, request) =
        postcard::take_from_bytes::<Vec<Compiled>>(request).map_err(io::Error::other)?;
    // The request names them, and is read by their names.
    own.into_iter().try_for_each(Compiled::load).map_err(io::Error::other)?;
    let request: Request = postcard::from_bytes(request).map_err(io::Error::other)?;
    watch(request.budget_ns, window);
    Ok(catch_unwind(AssertUnwindSafe(|| carry_out(&request))).unwrap_or_else(|_| {
        Answer::refusing(broken("the run panicked inside the guest; its last lines say where"))
    }))
}

impl Answer {
    fn refusing(error: HostError) -> Self {
        Self { record: Err(error), traces: Vec::new(), files: Vec::new() }
    }
}

/// The run, with the files that it left.
fn carry_out(request: &Request) -> Answer {
    let files = Path::new(FILES);
    let options = RunOptions {
        pcap: request.pcap.then(|| files.join(PCAP)),
        qlog: request.qlog.then(|| files.to_owned()),
        ..RunOptions::default()
    };
    let mut record = match run(&request.spec, &options, None) {
        Ok(record) => record,
        Err(error) => return Answer::refusing(error),
    };
    let traces = record.flows.iter_mut().map(|flow| std::mem::take(&mut flow.trace)).collect();
    match files_in(files) {
        Ok(files) => Answer { record: Ok(record), traces, files },
        Err(error) => {
            let why = format!("reading what the run left in the guest: {error}");
            Answer::refusing(broken(why))
        }
    }
}

/// Returns the files of `folder`, in the order of their names.
fn files_in(folder: &Path) -> io::Result<Vec<File>> {
    let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    let mut paths: Vec<_> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    let file = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(File { name, contents: fs::read(path)? })
    };
    paths.iter().map(file).collect()
}

/// Gives the kernel's random generator what it waits for. The machine has no source of randomness, on
/// purpose; without this the first reader of random numbers would wait while the kernel makes some out
/// of the jitter of its clock, which takes more instructions than most runs.
fn seed_random() -> io::Result<()> {
    const SEED_BYTES: usize = 64;
    #[repr(C)]
    struct Pool {
        entropy_bits: c_int,
        bytes: c_int,
        buffer: [u8; SEED_BYTES],
    }
    nix::ioctl_write_ptr_bad!(
        add_entropy,
        nix::request_code_write!(b'R', 3, size_of::<[c_int; 2]>()),
        Pool
    );
    let bytes = SEED_BYTES as c_int;
    let pool = Pool { entropy_bits: 8 * bytes, bytes, buffer: [0x6b; SEED_BYTES] };
    let random = fs::File::open("/dev/urandom")?;
    // SAFETY: the descriptor is open, and the pool has the call's type, with its length.
    unsafe { add_entropy(random.as_raw_fd(), &pool) }
        .map(drop)
        .map_err(|e| io::Error::other(format!("seeding the random generator: {e}")))
}

fn load_module(file: &Path) -> io::Result<()> {
    let module = fs::File::open(file)?;
    let parameters = c"";
    // SAFETY: the descriptor is open, the parameters are a string with a final 0.
    let result = unsafe {
        libc::syscall(libc::SYS_finit_module, module.as_raw_fd(), parameters.as_ptr(), 0 as c_int)
    };
    if result == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    Err(io::Error::other(format!("loading the module {}: {error}", file.display())))
}

/// Tells once a second how far the run is, and when its time is over.
fn watch(budget_ns: u64, window: GuestWindow) {
    let watching = move || {
        for second in 1.. {
            thread::sleep(Duration::from_secs(1));
            let now_ns = second * NS_PER_S;
            if now_ns >= budget_ns {
                return window.out_of_budget();
            }
            window.progress(now_ns);
        }
    };
    // Without it nobody is told; the run does not depend on it.
    let _ = thread::Builder::new().name("knee-watch".to_owned()).spawn(watching);
}
