//! Inside the guest, where this program is process 1.

use crate::{
    initramfs::MODULES,
    kernels::module_files,
    message::{Answer, Compiled, File, PCAP, Request, Run},
    ports::{DATA, DIRECTORY, Extent, HALT, HALT_NOW, INPUT, ITEM, LINES, Line},
};
use knee_model::{HostError, NS_PER_S, RunOptions, failure::broken};
use knee_testbed::{Time, Variants, run_in};
use nix::mount::{MsFlags, mount};
use std::{
    arch::asm,
    ffi::c_int,
    fs,
    io::{self, IoSliceMut, Read},
    os::fd::AsRawFd,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    thread,
    time::Duration,
};

/// Folder for a run's files.
const FILES: &str = "/tmp/files";
/// After its start the kernel goes on to test its ciphers and the like, and after it has loaded an
/// algorithm to free what that took. Idle time takes none.
const SETTLING: Duration = Duration::from_secs(5);
/// File systems of the kernel's own: kind and place.
const FILE_SYSTEMS: [(&str, &str); 5] = [
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("tmpfs", "/tmp"),
    ("bpf", "/sys/fs/bpf"),
];

/// Boots, waits for a run, carries it out, hands over the results. Never returns: process 1 ends with a
/// panic of the kernel, which the machine tells.
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
    let mut loaded = None;
    let (answer, contents) = loop {
        match request()? {
            Request::Load(needed) => match Variants::load(&needed) {
                Ok(variants) => loaded = Some(variants),
                Err(error) => break (Answer::refusing(error), Vec::new()),
            },
            Request::Run(run) => {
                enlarge_translations()?;
                watch(run.budget_ns);
                let done = catch_unwind(AssertUnwindSafe(|| carry_out(&run, loaded)));
                break done.unwrap_or_else(|_| {
                    let why = "the run panicked inside the guest; its last lines say where";
                    let error = broken(why);
                    (Answer::refusing(error), Vec::new())
                });
            }
        }
    };
    let answer = postcard::to_stdvec(&answer).map_err(io::Error::other)?;
    permit_ports(true)?;
    halt(&Line::Results(vec![extent(&answer), extent(&contents)]));
    Err(io::Error::other("the machine continued after the end of the run"))
}

/// Halts, and when the machine continues reads its task.
fn request() -> io::Result<Request> {
    // The kernel's remaining work takes time now, and not in each run.
    thread::sleep(SETTLING);
    permit_ports(true)?;
    // Here the machine is kept, and resumes from here as often as wanted.
    halt(&Line::Ready(clock_ns()));
    let input = input(INPUT).ok_or_else(|| io::Error::other("the machine gives no run"))?;
    permit_ports(false)?;
    let (own, rest) =
        postcard::take_from_bytes::<Vec<Compiled>>(&input).map_err(io::Error::other)?;
    own.into_iter().try_for_each(Compiled::load).map_err(io::Error::other)?;
    postcard::from_bytes(rest).map_err(io::Error::other)
}

impl Answer {
    fn refusing(error: HostError) -> Self {
        Self { record: Err(error), traces: Vec::new(), files: Vec::new() }
    }
}

fn extent(bytes: &[u8]) -> Extent {
    Extent {
        address: bytes.as_ptr() as u64,
        bytes: bytes.len() as u64,
        crc: crc32fast::hash(bytes),
    }
}

/// The run, and the contents of the files that it left.
fn carry_out(run: &Run, loaded: Option<Variants>) -> (Answer, Vec<u8>) {
    let files = Path::new(FILES);
    let options = RunOptions {
        pcap: run.pcap.then(|| files.join(PCAP)),
        qlog: run.qlog.then(|| files.to_owned()),
        ..RunOptions::default()
    };
    let mut record = match run_in(Time::Virtual, &run.spec, &options, None, loaded) {
        Ok(record) => record,
        Err(error) => return (Answer::refusing(error), Vec::new()),
    };
    let traces = record.flows.iter_mut().map(|flow| std::mem::take(&mut flow.trace)).collect();
    match contents(files) {
        Ok((files, contents)) => (Answer { record: Ok(record), traces, files }, contents),
        Err(error) => {
            let why = format!("reading what the run left in the guest: {error}");
            (Answer::refusing(broken(why)), Vec::new())
        }
    }
}

/// Returns the contents of the files of `folder`, in the order of their names.
fn contents(folder: &Path) -> io::Result<(Vec<File>, Vec<u8>)> {
    let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    let mut paths: Vec<_> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    let (mut files, mut all) = (Vec::new(), Vec::new());
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = fs::read(&path)?;
        files.push(File { name, bytes: bytes.len() as u64 });
        all.extend(bytes);
    }
    Ok((files, all))
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

/// Tells once a second how far the run is; ends it when its time is over.
fn watch(budget_ns: u64) {
    let watching = move || {
        for second in 1.. {
            thread::sleep(Duration::from_secs(1));
            let now_ns = second * NS_PER_S;
            // This thread alone: where a thread may use ports, each change of threads takes longer.
            if permit_ports(true).is_err() {
                return;
            }
            match now_ns < budget_ns {
                true => say(&Line::Progress(now_ns)),
                false => halt(&Line::OutOfBudget),
            }
            let _ = permit_ports(false);
        }
    };
    // Without it nobody is told; the run does not depend on it.
    let _ = thread::Builder::new().name("knee-watch".to_owned()).spawn(watching);
}

/// QEMU keeps the translations of addresses in a table without chains, and doubles it only when the guest
/// flushes them all while most of its places are taken. A guest with one process never does: each packet
/// would miss a hundred translations. The guest sees nothing of this but the time that it takes.
fn enlarge_translations() -> io::Result<()> {
    const PAGE_BYTES: usize = 4096;
    /// Three quarters of 2048 places, so that there are 4096 in the end.
    const PAGES: usize = 1600;
    /// From 256 places.
    const DOUBLINGS: usize = 4;
    /// Above 33 pages Linux flushes all translations.
    const FLUSHED_PAGES: usize = 64;
    let map = |pages: usize| {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        // SAFETY: new pages, at an address that the kernel chooses.
        let at =
            unsafe { libc::mmap(std::ptr::null_mut(), pages * PAGE_BYTES, access, kind, -1, 0) };
        if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(at) }
    };
    let zero = fs::File::open("/dev/zero")?;
    let pages = map(PAGES)?;
    for _ in 0..DOUBLINGS {
        // SAFETY: the pages are this function's own, in all of it.
        let bytes = unsafe { std::slice::from_raw_parts_mut(pages.cast(), PAGES * PAGE_BYTES) };
        // The kernel's translations are others than the program's.
        let mut one_each: Vec<_> =
            bytes.chunks_mut(PAGE_BYTES).map(|page| IoSliceMut::new(&mut page[..1])).collect();
        for some in one_each.chunks_mut(libc::UIO_MAXIOV as usize) {
            let bytes = (&zero).read_vectored(some)?;
            debug_assert_eq!(bytes, some.len(), "/dev/zero gives as many as requested");
        }
        for page in bytes.chunks_mut(PAGE_BYTES) {
            std::hint::black_box(page)[0] = 1;
        }
        let flushed = map(FLUSHED_PAGES)?;
        // SAFETY: as above; nobody uses these.
        unsafe { libc::munmap(flushed, FLUSHED_PAGES * PAGE_BYTES) };
    }
    // SAFETY: as above; nobody uses them any more.
    unsafe { libc::munmap(pages, PAGES * PAGE_BYTES) };
    Ok(())
}

/// Lets the present thread use ports, or forbids it.
fn permit_ports(permit: bool) -> io::Result<()> {
    // SAFETY: the call takes a number. The effect of ports is up to whoever uses them.
    match unsafe { libc::iopl(if permit { 3 } else { 0 }) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn say(line: &Line) {
    let text = line.to_text() + "\n";
    write_all(LINES, text.as_bytes());
}

/// Says `line` and halts the machine. When it resumes, so does this.
fn halt(line: &Line) {
    say(line);
    write_all(HALT, &[HALT_NOW]);
}

/// Time of the machine's clock. Its processor's counter counts nanoseconds.
fn clock_ns() -> u64 {
    // SAFETY: every processor of this architecture has it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// The item of this name that the machine was started with.
fn input(name: &str) -> Option<Vec<u8>> {
    select(DIRECTORY);
    let mut number = [0; 4];
    read_all(&mut number);
    for _ in 0..u32::from_be_bytes(number) {
        // Size, number, two bytes of nothing, name with a final 0.
        let mut entry = [0; 64];
        read_all(&mut entry);
        let (size, rest) = entry.split_at(4);
        let (item, rest) = rest.split_at(2);
        let found = rest[2..].split(|byte| *byte == 0).next();
        if found == Some(name.as_bytes()) {
            let size = u32::from_be_bytes(size.try_into().ok()?);
            let mut bytes = vec![0; size as usize];
            select(u16::from_be_bytes(item.try_into().ok()?));
            read_all(&mut bytes);
            return Some(bytes);
        }
    }
    None
}

fn select(item: u16) {
    // SAFETY: the port is that of a device which remembers the number.
    unsafe { asm!("out dx, ax", in("dx") ITEM, in("ax") item, options(nomem, nostack)) };
}

fn read_all(bytes: &mut [u8]) {
    // SAFETY: the device gives a byte for each of the slice's, written in order to these.
    unsafe {
        asm!("rep insb", in("dx") DATA, inout("rdi") bytes.as_mut_ptr() => _,
             inout("rcx") bytes.len() => _, options(nostack));
    }
}

fn write_all(port: u16, bytes: &[u8]) {
    // SAFETY: the device takes each byte of the slice, in order.
    unsafe {
        asm!("rep outsb", in("dx") port, inout("rsi") bytes.as_ptr() => _,
             inout("rcx") bytes.len() => _, options(nostack, readonly));
    }
}
