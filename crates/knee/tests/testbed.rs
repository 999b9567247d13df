//! `knee testbed` on this machine: paths, programs on them, and failures. Needs root.
#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, text, with};
use nix::{
    libc::{self, sockaddr_ll},
    mount::{MsFlags, mount},
    net::if_::if_nameindex,
    sched::{CloneFlags, unshare},
    sys::{
        resource::{Resource, setrlimit},
        signal::{Signal, kill},
        socket::{
            AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, recv, sendto,
            socket,
        },
    },
    unistd::Pid,
};
use std::{
    env, fs,
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream, UdpSocket},
    os::{
        fd::AsRawFd,
        unix::{
            fs::PermissionsExt,
            process::{CommandExt, ExitStatusExt},
        },
    },
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

const SCENARIO: &str = "duration = \"1s\"\n[path]\nrate = \"10mbit\"\nrtt = \"40ms\"\nqueue = \"84p\"\n[[flow]]\ncc = \"newreno\"\n";

/// A name of this test's own, and its path's end.
struct Bed {
    place: Place,
    name: String,
}

impl Bed {
    fn new(name: &str) -> Self {
        let place = Place::new();
        fs::write(place.path("path.toml"), SCENARIO).unwrap();
        Self { place, name: format!("test-{}-{name}", std::process::id()) }
    }

    fn up(&self, more: &[&str]) -> Command {
        let mut command = self.place.knee(&["testbed", "up", "path.toml", "--as", &self.name]);
        command.args(more);
        command
    }

    fn exec(&self, host: &str, program: &[&str]) -> Command {
        let mut command = self.place.knee(&["testbed", "exec", "--as", &self.name, host, "--"]);
        command.args(program).env_remove("SUDO_UID");
        command
    }

    fn knee(&self, arguments: &[&str]) -> Output {
        self.place.knee(arguments).output().unwrap()
    }

    fn down(&self) -> Output {
        self.knee(&["testbed", "down", &self.name])
    }

    /// Its row of the list.
    fn listed(&self) -> Option<serde_json::Value> {
        let out = self.knee(&["testbed", "list", "--format", "json"]);
        let all: Vec<serde_json::Value> = serde_json::from_slice(&out.stdout).unwrap();
        all.into_iter().find(|one| {
            one["Running"]["name"] == self.name.as_str() || one["Left"] == self.name.as_str()
        })
    }

    fn pid(&self) -> Pid {
        let listed = self.listed().unwrap();
        Pid::from_raw(listed["Running"]["pid"].as_i64().unwrap() as i32)
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = self.down();
    }
}

/// Output of a command that succeeds.
fn good(command: &mut Command) -> String {
    let out = command.output().unwrap();
    assert!(out.status.success(), "{command:?}: {}", text(&out.stderr));
    text(&out.stdout)
}

/// The message of a command that must fail.
fn bad(command: &mut Command, code: i32) -> String {
    let out = command.output().unwrap();
    assert_eq!(out.status.code(), Some(code), "{command:?}: {}", text(&out.stderr));
    assert!(out.stdout.is_empty());
    // As one line, whatever the width.
    text(&out.stderr).split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(120), "never: {what}");
        sleep(Duration::from_millis(20));
    }
}

/// The role of a program on a host; it speaks on standard error, where the test harness is silent.
const ROLE: &str = "KNEE_TEST_ROLE";

/// Starts this test again on `host`, in a role.
fn role(bed: &Bed, host: &str, role: &str) -> Command {
    let this = env::current_exe().unwrap();
    let this = this.to_str().unwrap();
    let mut command = bed.exec(host, &[this, "--exact", "in_its_role", "--nocapture"]);
    command.env(ROLE, role).stdout(Stdio::null());
    command
}

#[test]
fn in_its_role() {
    let Ok(role) = env::var(ROLE) else { return };
    match role.split(' ').collect::<Vec<_>>()[..] {
        // Receives, and answers how many bytes it was.
        ["sink"] => {
            let listener = TcpListener::bind(("::", 5000)).unwrap();
            eprintln!("ready");
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let bytes = std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
                stream.write_all(bytes.to_string().as_bytes()).unwrap();
            }
        }
        ["send", to, bytes] => {
            let start = Instant::now();
            let mut stream = TcpStream::connect((to, 5000)).unwrap();
            stream.write_all(&vec![0; bytes.parse().unwrap()]).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            eprintln!("{answer} {}", start.elapsed().as_secs_f64());
        }
        ["flood", to, packets] => {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            for _ in 0..packets.parse().unwrap() {
                // A refusal of an earlier one may come back.
                let _ = socket.send_to(&[0; 1400], (to, 5001));
                sleep(Duration::from_micros(200));
            }
        }
        ["ping"] => {
            let socket =
                socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Icmp);
            let socket = socket.unwrap();
            let start = Instant::now();
            let to = SockaddrIn::new(10, 2, 0, 1, 0);
            // An echo request of nothing, and its checksum.
            let echo = [8, 0, 0xf7, 0xff, 0, 0, 0, 0];
            sendto(socket.as_raw_fd(), &echo, &to, MsgFlags::empty()).unwrap();
            let mut answer = [0; 64];
            let bytes = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty()).unwrap();
            assert_eq!((bytes, answer[20]), (28, 0));
            eprintln!("{}", start.elapsed().as_secs_f64());
        }
        // Packets of all kinds, most of them broken, straight into the end's device.
        ["garbage", packets] => {
            let devices = if_nameindex().unwrap();
            let device = devices.iter().map(|device| device.index()).max().unwrap();
            let packets = packets.parse().unwrap();
            transmit(device, garbage().take(packets));
        }
        _ => panic!("{role}"),
    }
}

/// Packets that nobody should send: any bytes, and headers with false claims about the rest.
fn garbage() -> impl Iterator<Item = Vec<u8>> {
    // xorshift64.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    std::iter::repeat_with(move || {
        let kind = random();
        let len = match kind % 4 {
            0 => 1 + random() as usize % 60,
            _ => 1 + random() as usize % 1500,
        };
        let mut packet: Vec<u8> = (0..len).map(|_| random() as u8).collect();
        match kind >> 8 & 3 {
            // IPv4: TCP, UDP or ICMP, with options or headers that go beyond the end.
            0 | 1 if len > 20 => {
                packet[0] = 0x40 | (kind >> 16) as u8 & 0xf;
                packet[9] = [1, 6, 17][(kind >> 24) as usize % 3];
                packet[16..20].copy_from_slice(&[10, 2, 0, 1]);
            }
            2 => packet[0] = 0x60 | packet[0] & 0xf,
            _ => {}
        }
        packet
    })
}

fn transmit(device: u32, packets: impl Iterator<Item = Vec<u8>>) {
    let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::empty(), None).unwrap();
    for packet in packets {
        // SAFETY: plain data, for which all zeros are a value.
        let mut to: sockaddr_ll = unsafe { std::mem::zeroed() };
        to.sll_family = AddressFamily::Packet as u16;
        to.sll_protocol = u16::to_be(if packet[0] >> 4 == 6 { 0x86dd } else { 0x0800 });
        to.sll_ifindex = device as i32;
        let (at, size) = ((&raw const to).cast(), size_of::<sockaddr_ll>() as u32);
        // SAFETY: packet and address outlive the call. A full device may refuse it.
        unsafe {
            libc::sendto(socket.as_raw_fd(), packet.as_ptr().cast(), packet.len(), 0, at, size);
        }
    }
}

/// KNEE_FUZZ_PACKETS asks for another number of packets than 4000 from each end.
#[test]
fn any_packets_leave_the_path_as_it_is() {
    let packets: u64 = env::var("KNEE_FUZZ_PACKETS").map_or(4000, |n| n.parse().expect("a number"));
    let bed = Bed::new("garbage");
    good(&mut bed.up(&["--set", "path.queue=\"1000p\"", "--set", "path.rate=1gbit"]));
    for host in ["sender", "receiver"] {
        said(role(&bed, host, &format!("garbage {packets}")));
    }
    let running = bed.listed().unwrap()["Running"].clone();
    assert!(running["failure"].is_null(), "{running}");
    let passed = running["passed"]["forward_pkts"].as_u64().unwrap();
    assert!(passed > packets / 4, "{passed} of {packets} packets were carried");
    let rtt_s: f64 = said(role(&bed, "sender", "ping")).parse().unwrap();
    assert!(rtt_s >= 0.040, "{rtt_s}");
}

#[test]
#[ignore = "measured in real time, on an idle machine: scripts/nightly.sh measured"]
fn the_path_adds_less_than_20_ms() {
    let bed = Bed::new("delay");
    good(&mut bed.up(&[]));
    let mut rtts_s: Vec<f64> =
        (0..9).map(|_| said(role(&bed, "sender", "ping")).parse().unwrap()).collect();
    rtts_s.sort_by(f64::total_cmp);
    assert!((0.040..0.060).contains(&rtts_s[4]), "{rtts_s:?}");
}

#[test]
fn it_needs_two_capabilities_and_keeps_none_of_them() {
    let bed = Bed::new("privileges");
    let needed = ["sys_admin", "net_admin"];
    for one in needed {
        let said = bad(&mut with(&[one], &bed.up(&[])), 2);
        assert!(said.contains("CAP_SYS_ADMIN and CAP_NET_ADMIN"), "{said}");
        assert!(bed.listed().is_none());
    }
    good(&mut with(&needed, &bed.up(&[])));
    good(&mut with(&["sys_admin"], &bed.exec("sender", &["true"])));
    let said = bad(&mut with(&["net_admin"], &bed.exec("sender", &["true"])), 2);
    assert!(said.contains("not permitted"), "{said}");
    let run = ["testbed", "exec", "--as", &bed.name, "--user", "nobody", "sender", "--", "true"];
    let as_nobody = bed.place.knee(&run);
    for one in ["setuid", "setgid"] {
        let said = bad(&mut with(&["sys_admin", one], &as_nobody), 2);
        assert!(said.contains("cannot run as nobody"), "{said}");
    }
    good(&mut with(&["sys_admin", "setuid", "setgid"], &as_nobody));
    good(&mut with(&[], &bed.place.knee(&["testbed", "list"])));
    assert_eq!(held(bed.pid()), 0);
    good(&mut with(&[], &bed.place.knee(&["testbed", "down", &bed.name])));
    // CAP_SYS_NICE, for the priority of the thread that carries packets; CAP_DAC_OVERRIDE for a file.
    good(&mut bed.up(&[]));
    assert_eq!(held(bed.pid()), 1 << 23);
    assert!(bed.down().status.success());
    good(&mut bed.up(&["--pcap", "path.pcapng"]));
    assert_eq!(held(bed.pid()), 1 << 23 | 1 << 1);
}

/// The capabilities that any thread of a process may still use.
fn held(process: Pid) -> u64 {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    threads.fold(0, |held, thread| {
        let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        let permitted = status.lines().find_map(|line| line.strip_prefix("CapPrm:")).unwrap();
        assert!(status.contains("NoNewPrivs:\t1"), "{status}");
        held | u64::from_str_radix(permitted.trim(), 16).unwrap()
    })
}

/// The message of a role.
fn said(mut command: Command) -> String {
    let out = command.output().unwrap();
    assert!(out.status.success(), "{command:?}: {}", text(&out.stderr));
    text(&out.stderr).trim().to_owned()
}

/// A host that receives.
fn sink(bed: &Bed, host: &str) -> Child {
    let mut child = role(bed, host, "sink").spawn().unwrap();
    let mut ready = [0; 6];
    child.stderr.as_mut().unwrap().read_exact(&mut ready).unwrap();
    assert_eq!(&ready, b"ready\n");
    child
}

/// Sends so many bytes from `host` to `to`; how many arrived, and in how many seconds.
fn send(bed: &Bed, host: &str, to: &str, bytes: u32) -> (u32, f64) {
    let said = said(role(bed, host, &format!("send {to} {bytes}")));
    let (bytes, time_s) = said.split_once(' ').unwrap();
    (bytes.parse().unwrap(), time_s.parse().unwrap())
}

#[test]
fn programs_meet_the_path() {
    let bed = Bed::new("programs");
    let greeting = good(&mut bed.up(&[]));
    assert!(greeting.contains("10.1.0.1") && greeting.contains("10mbit, 40ms, 84p"), "{greeting}");
    let mut sink_there = sink(&bed, "receiver");
    // At least 0.8 s at 10 Mbit/s, 52 bytes of headers, and the handshake.
    for to in ["10.2.0.1", "fd6b:6e65:6500:2::1"] {
        let (bytes, time_s) = send(&bed, "sender", to, 1_000_000);
        assert_eq!(bytes, 1_000_000);
        assert!(time_s >= 0.86, "{to}: {time_s}");
    }
    let mut sink_here = sink(&bed, "sender");
    let (bytes, time_s) = send(&bed, "receiver", "10.1.0.1", 1_000_000);
    assert!(bytes == 1_000_000 && time_s >= 0.08, "a handshake and an answer: {time_s}");
    for sink in [&mut sink_there, &mut sink_here] {
        sink.kill().unwrap();
        sink.wait().unwrap();
    }
    let rtt_s: f64 = said(role(&bed, "sender", "ping")).parse().unwrap();
    assert!(rtt_s >= 0.040, "{rtt_s}");
    let passed = bed.listed().unwrap()["Running"]["passed"].clone();
    assert!(passed["forward_pkts"].as_u64().unwrap() > 1400, "{passed}");
    assert_eq!(passed["queue_pkts"], 0);
    assert!(text(&bed.knee(&["testbed", "list"]).stdout).contains("10mbit, 40ms, 84p"));
    let out = bed.down();
    assert!(out.status.success() && text(&out.stdout).contains("queueing delay"));
    assert!(bed.listed().is_none());
    assert!(bad(&mut bed.exec("sender", &["true"]), 2).contains("no path"));
}

#[test]
fn a_program_is_itself() {
    let bed = Bed::new("exec");
    good(&mut bed.up(&[]));
    let status = |program: &[&str]| bed.exec("sender", program).status().unwrap();
    assert_eq!(status(&["sh", "-c", "exit 7"]).code(), Some(7));
    assert_eq!(status(&["sh", "-c", "kill -TERM $$"]).signal(), Some(15));
    let said = bad(&mut bed.exec("sender", &["/no/such/program"]), 127);
    assert!(said.contains("cannot run /no/such/program"), "{said}");
    bad(&mut bed.exec("sender", &["/etc/passwd"]), 126);
    let mut as_nobody = bed.place.knee(&["testbed", "exec", "--as", &bed.name, "--user", "nobody"]);
    let who = "id -un; id -G | wc -w; ls /run/knee 2>/dev/null || echo closed";
    assert_eq!(good(as_nobody.args(["sender", "--", "sh", "-c", who])), "nobody\n1\nclosed\n");
    let mut sudo = bed.exec("sender", &["id", "-u"]);
    assert_eq!(good(sudo.env("SUDO_UID", "65534")), "65534\n");
}

#[test]
fn killed_it_leaves_two_files_and_the_next_one_works() {
    let bed = Bed::new("killed");
    good(&mut bed.up(&[]));
    let namespace = good(&mut bed.exec("sender", &["readlink", "/proc/self/ns/net"]));
    let pid = bed.pid();
    kill(pid, Signal::SIGKILL).unwrap();
    let held = || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let links = processes.flat_map(|p| fs::read_dir(p.path().join("fd")).into_iter().flatten());
        let mut targets = links.flatten().filter_map(|link| fs::read_link(link.path()).ok());
        targets.any(|target| target.to_string_lossy() == namespace.trim())
    };
    until("the namespace is gone", || !held());
    let left = || bed.listed().is_some_and(|one| one["Left"].is_string());
    until("the lock is gone", left);
    assert!(bad(&mut bed.exec("sender", &["true"]), 2).contains("no path"));
    // Another one, running, is not touched.
    let other = Bed::new("other");
    good(&mut other.up(&[]));
    let cleaned = text(&bed.knee(&["testbed", "clean"]).stdout);
    assert!(cleaned.contains(&bed.name) && !cleaned.contains(&other.name), "{cleaned}");
    assert!(bed.listed().is_none());
    assert!(other.listed().is_some());
    // Without clean too.
    good(&mut bed.up(&[]));
    kill(bed.pid(), Signal::SIGKILL).unwrap();
    until("killed", left);
    good(&mut bed.up(&[]));
    good(&mut bed.exec("receiver", &["true"]));
}

#[test]
fn a_device_that_is_taken_away_ends_the_path() {
    let bed = Bed::new("gone");
    good(&mut bed.up(&[]));
    let ip = |words: &[&str]| {
        let mut command = bed.exec("sender", &[&["ip"], words].concat());
        good(command.env("PATH", env::var_os("PATH").unwrap()))
    };
    let links = ip(&["-brief", "link"]);
    let device = links.lines().find(|line| line.starts_with("knee-")).unwrap();
    ip(&["link", "delete", device.split_whitespace().next().unwrap()]);
    let why = "reading a packet from a device";
    until("it is told", || bed.listed().is_some_and(|row| row.to_string().contains(why)));
    let said = bad(&mut bed.exec("receiver", &["true"]), 2);
    assert!(said.contains("has failed") && said.contains(why), "{said}");
    let said = bad(&mut bed.place.knee(&["testbed", "down", &bed.name]), 2);
    assert!(said.contains(why), "{said}");
    assert!(bed.listed().is_none());
}

#[test]
fn two_at_once() {
    let bed = Bed::new("twice");
    let mut both = [bed.up(&[]), bed.up(&[])]
        .map(|mut command| command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let codes = both.each_mut().map(|child| child.wait().unwrap().code());
    assert!(codes == [Some(0), Some(2)] || codes == [Some(2), Some(0)], "{codes:?}");
    let said = bad(&mut bed.up(&[]), 2);
    assert!(said.contains("already") && said.contains("--as"), "{said}");
    let other = Bed::new("second");
    good(&mut other.up(&[]));
    good(&mut bed.exec("sender", &["true"]));
    good(&mut other.exec("sender", &["true"]));
    assert_ne!(bed.pid(), other.pid());
}

#[test]
fn without_root_or_descriptors_it_says_so() {
    let bed = Bed::new("poor");
    // A place that anybody can read.
    fs::set_permissions(bed.place.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut without_root = bed.up(&[]);
    without_root.uid(65_534).gid(65_534);
    let said = bad(&mut without_root, 2);
    assert!(said.contains("needs root") && said.contains("sudo"), "{said}");
    let mut up = 0;
    for descriptors in 8..32 {
        let mut few = bed.up(&[]);
        // SAFETY: nothing but a system call between fork and exec.
        unsafe {
            few.pre_exec(move || Ok(setrlimit(Resource::RLIMIT_NOFILE, descriptors, descriptors)?));
        }
        let out = few.output().unwrap();
        if out.status.success() {
            // A path that is up answers.
            good(&mut bed.exec("sender", &["true"]));
            good(&mut bed.place.knee(&["testbed", "down", &bed.name]));
            up += 1;
        } else {
            let said = text(&out.stderr);
            assert!(up == 0 && said.contains("Too many open files"), "{descriptors}: {said}");
        }
        assert!(bed.listed().is_none());
    }
    assert!((1..24).contains(&up), "up with {up} of 24 limits");
}

#[test]
fn without_a_driver_it_says_so() {
    let bed = Bed::new("driver");
    let mut up = bed.up(&[]);
    // SAFETY: nothing but system calls between fork and exec.
    unsafe { up.pre_exec(|| hidden(Path::new("/dev/net"), "")) };
    let said = bad(&mut up, 2);
    assert!(said.contains("/dev/net/tun") && said.contains("modprobe tun"), "{said}");
    assert!(bed.listed().is_none());
}

/// Mounts an empty disk, for the present process alone.
fn hidden(at: &Path, options: &str) -> std::io::Result<()> {
    let (none, own) = (None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE);
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(none, "/", none, own, none)?;
    mount(Some("tmpfs"), at, Some("tmpfs"), MsFlags::empty(), Some(options))?;
    Ok(())
}

#[test]
fn packets_are_kept_or_there_is_no_file() {
    let bed = Bed::new("pcap");
    let file = bed.place.path("path.pcapng");
    let file_name = file.to_str().unwrap();
    good(&mut bed.up(&["--pcap", "path.pcapng", "--set", "path.queue=\"2p\""]));
    let mut sink = sink(&bed, "receiver");
    assert_eq!(send(&bed, "sender", "10.2.0.1", 300_000).0, 300_000);
    assert!(!file.exists());
    sink.kill().unwrap();
    sink.wait().unwrap();
    let out = bed.down();
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(fs::metadata(&file).unwrap().len() > 600_000);
    // It never replaces a file.
    let said = bad(&mut bed.up(&["--pcap", file_name]), 2);
    assert!(
        said.contains("cannot write the packets") && said.contains("give a new file"),
        "{said}"
    );
    assert!(bed.listed().is_none());
    let said = bad(&mut bed.up(&["--pcap", "/no/such/folder/x"]), 2);
    assert!(said.contains("/no/such/folder/x"), "{said}");

    // A disk of 64 kB, of this test's own.
    let disk = bed.place.path("disk");
    fs::create_dir(&disk).unwrap();
    let mut up = bed.up(&["--pcap", "disk/path.pcapng"]);
    let mounted = disk.clone();
    // SAFETY: nothing but system calls between fork and exec; the path is allocated already.
    unsafe { up.pre_exec(move || hidden(&mounted, "size=64k")) };
    good(&mut up);
    assert!(role(&bed, "sender", "flood 10.2.0.1 2000").status().unwrap().success());
    let said = bad(&mut bed.place.knee(&["testbed", "down", &bed.name]), 2);
    assert!(said.contains("No space left on device"), "{said}");
    assert!(bed.listed().is_none());
    assert!(fs::read_dir(&disk).unwrap().next().is_none());
}

#[test]
fn in_the_foreground_it_ends_with_a_signal() {
    let bed = Bed::new("foreground");
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let child = bed.up(&["--foreground"]).stdout(Stdio::piped()).spawn().unwrap();
        until("up", || bed.listed().is_some());
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        let out = child.wait_with_output().unwrap();
        assert!(out.status.success() && text(&out.stdout).contains("lateness"));
        assert!(bed.listed().is_none());
    }
}
