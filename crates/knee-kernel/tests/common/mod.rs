//! Namespaces, links and transfers of the tests' own. Nothing of the machine outside them changes,
//! except the registered names, which end with the namespace that pins them.
#![allow(dead_code)] // each file of tests uses a part

use knee_cc::{Algorithm, algorithms};
use rustix::{
    fs::{Mode, OFlags, SeekFrom, open, seek},
    io::Errno,
    mount::{MountFlags, MountPropagationFlags, mount, mount_change},
    net::{AddressFamily, SocketType, ipproto, sockopt},
    thread::{UnshareFlags, gettid, unshare_unsafe},
};
use sha2::{Digest, Sha256};
use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::{AsRawFd, OwnedFd},
    panic::{self, AssertUnwindSafe},
    process::Command,
    sync::mpsc::{Sender, channel},
    thread,
    time::{Duration, Instant},
};

/// No transfer of the tests takes that long.
const PATIENCE: Duration = Duration::from_secs(120);

/// These tests run on a kernel that can load, or fail and name the missing feature.
fn require() {
    let report = knee_kernel::check();
    assert!(report.can_load(), "the kernel tests cannot run here:\n{report}");
    let root = rustix::process::geteuid().is_root();
    assert!(root, "the kernel tests need root, for network namespaces and BPF:\n{report}");
}

/// The kernel's log from now on.
pub struct KernelLog(OwnedFd);

impl KernelLog {
    pub fn new() -> Self {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let log = open("/dev/kmsg", flags, Mode::empty())
            .and_then(|log| seek(&log, SeekFrom::End(0)).map(|_| log))
            .unwrap_or_else(|e| panic!("/dev/kmsg: {e}: warnings of the kernel would go unseen"));
        Self(log)
    }

    /// New messages that tell of a defect.
    pub fn complaints(&self) -> Vec<String> {
        self.with(&["WARNING:", "BUG:", "Oops"])
    }

    /// New messages that contain one of `words`.
    pub fn with(&self, words: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        let mut record = vec![0; 1 << 14];
        loop {
            match rustix::io::read(&self.0, &mut record) {
                Ok(n) => {
                    let text = String::from_utf8_lossy(&record[..n]).into_owned();
                    found.extend(Some(text).filter(|t| words.iter().any(|word| t.contains(word))));
                }
                Err(Errno::AGAIN) => return found,
                Err(e) => panic!("/dev/kmsg: {e}: messages of the kernel are lost"),
            }
        }
    }
}

/// A thread in a network namespace of its own, with `lo` up.
pub struct Namespace {
    pub tid: String,
    jobs: Sender<Box<dyn FnOnce() + Send>>,
}

impl Namespace {
    pub fn new() -> Self {
        let (jobs, inbox) = channel::<Box<dyn FnOnce() + Send>>();
        let (ready, started) = channel();
        thread::spawn(move || {
            enter(UnshareFlags::NEWNET);
            ready.send(gettid().as_raw_nonzero().to_string()).unwrap();
            inbox.into_iter().for_each(|job| job());
        });
        Self { tid: started.recv().unwrap(), jobs }
    }

    /// Runs something there, threads of it included.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = channel();
        self.jobs.send(Box::new(move || done.send(job()).unwrap())).unwrap();
        result.recv().expect("the job in the namespace did not panic")
    }
}

fn enter(namespaces: UnshareFlags) {
    // SAFETY: file descriptors stay shared.
    unsafe { unshare_unsafe(namespaces) }.expect("namespaces of the thread's own");
    run("ip link set lo up");
}

/// Runs a test in network and mount namespaces of its own, with an empty BPF file system whose pins
/// end with it, even after a panic. Afterwards none of `names` is registered.
pub fn machine(names: &[&str], test: impl FnOnce() + Send) {
    require();
    let log = KernelLog::new();
    let result = thread::scope(|scope| {
        let in_namespace = || {
            enter(UnshareFlags::NEWNET | UnshareFlags::NEWNS);
            let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
            mount_change("/", private).unwrap();
            mount("bpf", "/sys/fs/bpf", "bpf", MountFlags::empty(), None).unwrap();
            test();
        };
        scope.spawn(in_namespace).join()
    });
    if let Err(panic) = result {
        panic::resume_unwind(panic);
    }
    for name in names {
        wait_until(|| !available().contains(&(*name).to_owned()), "the name is free again");
        let gone = || !knee_kernel::list().unwrap().iter().any(|v| v.name == *name);
        wait_until(gone, "the variant is gone");
    }
    assert_eq!(log.complaints(), Vec::<String>::new());
}

/// Runs a test of traffic once; up to ten times where the kernel itself leaves calls of our programs out now
/// and then (see [`knee_kernel::skips_programs`]), which no shim can mend. There a failure every time is one.
pub fn despite_skips(test: impl Fn()) {
    let attempts = if knee_kernel::skips_programs() { 10 } else { 1 };
    for attempt in 1..=attempts {
        match panic::catch_unwind(AssertUnwindSafe(&test)) {
            Ok(()) => return,
            Err(panic) if attempt == attempts => panic::resume_unwind(panic),
            Err(_) => eprintln!("attempt {attempt} failed on a kernel that skips programs"),
        }
    }
}

/// Tests traffic of every algorithm [`despite_skips`], each by itself: in one of so many transfers a kernel
/// that skips programs mostly does. Four at a time, as they wait for their paths.
pub fn every_algorithm(test: impl Fn(Algorithm) + Sync) {
    for some in algorithms().chunks(4) {
        thread::scope(|scope| {
            for a in some {
                scope.spawn(|| despite_skips(|| test(*a)));
            }
        });
    }
}

pub fn wait_until(mut condition: impl FnMut() -> bool, what: &str) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

pub fn available() -> Vec<String> {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    names.split_whitespace().map(str::to_owned).collect()
}

/// A name that no other test and no other run uses.
pub fn unique(tag: &str) -> String {
    let name = format!("t{}_{tag}", std::process::id());
    assert!(name.len() <= knee_kernel::NAME_MAX_BYTES, "{name}");
    name
}

/// Such a name for an algorithm; some begin with the same letters.
pub fn unique_of(a: Algorithm) -> String {
    let number = algorithms().iter().position(|other| *other == a).unwrap();
    unique(&format!("{}{number}", &a.name()[..2]))
}

/// Runs a command in this thread's namespaces.
pub fn run(command: &str) {
    let mut words = command.split(' ');
    let program = words.next().unwrap();
    let output = Command::new(program).args(words).output().unwrap_or_else(|e| {
        panic!("{command}: {e}; install the Debian package iproute2");
    });
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A receiver of one connection, in this thread's namespace; gives the hash of the bytes read.
pub fn receiver(address: &str) -> (SocketAddr, thread::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind(address).unwrap();
    let address = listener.local_addr().unwrap();
    let hash = thread::spawn(move || hash_of(listener.accept().unwrap().0));
    (address, hash)
}

pub fn hash_of(mut stream: TcpStream) -> Vec<u8> {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match stream.read(&mut buffer).expect("the sender goes on") {
            0 => return hash.finalize().to_vec(),
            n => hash.update(&buffer[..n]),
        }
    }
}

/// A connection whose algorithm was chosen before it was made; the kernel confirms it.
pub fn connect(to: SocketAddr, congestion_control: &str) -> TcpStream {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket(family, SocketType::STREAM, Some(ipproto::TCP)).unwrap();
    sockopt::set_tcp_congestion(&socket, congestion_control)
        .unwrap_or_else(|e| panic!("TCP_CONGESTION = {congestion_control}: {e}"));
    rustix::net::connect(&socket, &to).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(uses(&stream), congestion_control);
    stream
}

/// The same from a given end.
pub fn connect_from(from: &str, to: SocketAddr, congestion_control: &str) -> TcpStream {
    let socket =
        rustix::net::socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::TCP)).unwrap();
    sockopt::set_tcp_congestion(&socket, congestion_control).unwrap();
    sockopt::set_socket_reuseaddr(&socket, true).unwrap();
    rustix::net::bind(&socket, &from.parse::<SocketAddr>().unwrap()).unwrap();
    rustix::net::connect(&socket, &to).unwrap();
    TcpStream::from(socket)
}

/// Closes a connection so that both of its ends forget it.
pub fn reset(stream: TcpStream) {
    sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    drop(stream);
}

/// Returns the congestion control that the socket uses, as the kernel names it.
pub fn uses(stream: &TcpStream) -> String {
    sockopt::tcp_congestion(stream).unwrap()
}

/// Bytes that are no pattern, the same each time.
pub struct Bytes(u64, Sha256);

impl Bytes {
    pub fn new() -> Self {
        Self(1, Sha256::new())
    }

    /// Writes about `n` more.
    pub fn write(&mut self, stream: &mut TcpStream, n: usize) {
        for _ in 0..n.div_ceil(1 << 15) {
            let mut block = Vec::with_capacity(1 << 15);
            while block.len() < 1 << 15 {
                self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                block.extend((self.0 >> 16).to_le_bytes());
            }
            self.1.update(&block);
            stream.write_all(&block).expect("the receiver goes on");
        }
    }

    pub fn hash(self) -> Vec<u8> {
        self.1.finalize().to_vec()
    }
}

pub fn tcp_info(stream: &TcpStream) -> libc::tcp_info {
    // SAFETY: all fields are numbers; the kernel writes at most `length` bytes.
    unsafe {
        let mut info: libc::tcp_info = std::mem::zeroed();
        let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
        let at = (&raw mut info).cast();
        let fd = stream.as_raw_fd();
        assert_eq!(libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, at, &mut length), 0);
        info
    }
}

/// Sender, router and receiver; the router's port to the receiver has 20 Mbit/s and a queue of
/// 40 kB, 16 ms. This thread's namespace is the sender's; gives the receiver's, 10.77.2.1, and the
/// router's. The path ends with the link s0.
pub fn bottleneck() -> (Namespace, Namespace) {
    let (router, far) = (Namespace::new(), Namespace::new());
    run("ip link add s0 type veth peer name r0");
    run(&format!("ip link set r0 netns {}", router.tid));
    run("ip address add 10.77.1.1/24 dev s0");
    // Packets on the path are real packets.
    run("ip link set s0 gso_max_segs 1 up");
    run("ip route add default via 10.77.1.2");
    let far_tid = far.tid.clone();
    router.run(move || {
        run("ip link add r1 type veth peer name d0");
        run(&format!("ip link set d0 netns {far_tid}"));
        run("ip address add 10.77.1.2/24 dev r0");
        run("ip address add 10.77.2.2/24 dev r1");
        run("ip link set r0 up");
        run("ip link set r1 up");
        run("tc qdisc add dev r1 root tbf rate 20mbit burst 3kb limit 40000");
        fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
    });
    far.run(|| {
        run("ip address add 10.77.2.1/24 dev d0");
        run("ip link set d0 up");
        run("ip route add default via 10.77.2.2");
    });
    (far, router)
}
