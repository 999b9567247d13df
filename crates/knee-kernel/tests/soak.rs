//! Many connections while variants come, go and are traced: every byte arrives, the kernel has
//! nothing to complain about, and nothing is left. Needs root, as the tests in `kernel.rs` do.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

mod common;

use common::*;
use knee_cc::{Params, algorithms};
use knee_kernel::{Filter, Loaded, Tracer, list, load, unload};
use libbpf_rs::{
    MapCore, MapFlags, MapHandle, MapType,
    query::{LinkInfoIter, LinkTypeInfo, MapInfoIter, ProgInfoIter, ProgInfoQueryOptions},
};
use rustix::{
    io::Errno,
    net::{AddressFamily, SocketType, ipproto, sockopt},
};
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeSet,
    env, fs,
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

/// Short connections, unless KNEE_SOAK_CONNECTIONS says otherwise.
const SHORT: u32 = 10_000;
const SHORT_BYTES: u32 = 6_000;
/// Clients at a time. Each of the servers is two threads.
const CLIENTS: u32 = 8;
/// A client's pause between two connections: all of them outlive many variants.
const REST: Duration = Duration::from_millis(4);
const SERVERS: [&str; 4] = ["127.0.0.1:0", "127.0.0.2:0", "127.0.0.3:0", "127.0.0.4:0"];
const CONCURRENT: u32 = 200;
const CONCURRENT_BYTES: u32 = 256 << 10;
/// All traffic is done by then, of so many connections.
const LIMIT: Duration = Duration::from_secs(600);
/// No end of a connection waits longer for the other, however busy the machine is.
const WAIT: Duration = Duration::from_secs(120);
/// Each variant is replaced once at least, however fast the connections are.
const LOADS: u32 = 25;

fn short() -> u32 {
    env::var("KNEE_SOAK_CONNECTIONS").map_or(SHORT, |n| n.parse().expect("a number"))
}

fn limit() -> Duration {
    WAIT + LIMIT * short().div_ceil(SHORT)
}

/// Variants that are replaced all the time, one of each algorithm.
struct Pool {
    names: Mutex<Vec<String>>,
    begun: Instant,
    done: AtomicBool,
    turns: AtomicU32,
    too_late: AtomicU32,
    loads: AtomicU32,
}

/// Ends the threads that run until then, after a panic too.
struct Done<'a>(&'a Pool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.done.store(true, Relaxed);
    }
}

impl Pool {
    fn check_time(&self) {
        assert!(self.begun.elapsed() < limit(), "the soak takes longer than {:?}", limit());
    }

    /// A connection that uses the next algorithm in turn.
    fn connect(&self, to: SocketAddr) -> (TcpStream, String) {
        let socket =
            rustix::net::socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::TCP));
        let socket = socket.unwrap();
        let name = loop {
            self.check_time();
            let turn = self.turns.fetch_add(1, Relaxed) as usize;
            let name = {
                let names = self.names.lock().unwrap();
                names[turn % names.len()].clone()
            };
            match sockopt::set_tcp_congestion(&socket, &name) {
                Ok(()) => break name,
                // Unloaded since: another one is there.
                Err(Errno::NOENT) => self.too_late.fetch_add(1, Relaxed),
                Err(e) => panic!("TCP_CONGESTION = {name}: {e}"),
            };
        };
        rustix::net::connect(&socket, &to).unwrap();
        let stream = TcpStream::from(socket);
        limit_waits(&stream);
        (stream, name)
    }

    /// Replaces one variant after the other, each time under another name, and ends the old one in
    /// one of the three ways that there are.
    fn replace(&self, first: Vec<Loaded>, seen: &Mutex<Seen>) {
        let mut loaded: Vec<Option<Loaded>> = first.into_iter().map(Some).collect();
        let mut turn = 0;
        while !self.done.load(Relaxed) {
            let index = turn as usize % loaded.len();
            let generation = turn as usize / loaded.len() + 1;
            let name = name_of(index, generation);
            let new = load(&Params::defaults(algorithms()[index]), &name).unwrap();
            seen.lock().unwrap().add();
            let old = std::mem::replace(&mut self.names.lock().unwrap()[index], name);
            match (loaded[index].replace(new).unwrap(), turn % 3) {
                (held, 0) => drop(held),
                (held, 1) => {
                    unload(&old).unwrap();
                    drop(held);
                }
                (held, _) => {
                    held.persist().unwrap();
                    unload(&old).unwrap();
                }
            }
            turn += 1;
            self.loads.store(turn, Relaxed);
        }
    }

    /// Traces whatever there is for a moment, again and again; gives the number of calls.
    fn trace(&self, seen: &Mutex<Seen>) -> u64 {
        let mut calls = 0;
        while !self.done.load(Relaxed) {
            let names = self.names.lock().unwrap().clone();
            match Tracer::start(&names, Filter::default(), 4 << 20) {
                Ok(mut tracer) => {
                    seen.lock().unwrap().add();
                    for _ in 0..5 {
                        calls += tracer.poll(Duration::from_millis(20), |_| ()).unwrap() as u64;
                    }
                    tracer.stop().unwrap();
                    while tracer.poll(Duration::ZERO, |_| calls += 1).unwrap() > 0 {}
                }
                // Unloaded since.
                Err(e) if e.why.starts_with("no variant `") => {}
                Err(e) => panic!("{e}"),
            }
            thread::sleep(Duration::from_millis(100));
        }
        calls
    }
}

fn name_of(index: usize, generation: usize) -> String {
    unique(&format!("{index}{}", ["a", "b"][generation % 2]))
}

fn limit_waits(stream: &TcpStream) {
    stream.set_read_timeout(Some(WAIT)).unwrap();
    stream.set_write_timeout(Some(WAIT)).unwrap();
}

/// Answers the hash of as many bytes as the first four of a connection announce, then waits for
/// its end.
fn answer(mut stream: TcpStream) {
    limit_waits(&stream);
    let mut size = [0; 4];
    stream.read_exact(&mut size).expect("the sender goes on");
    let mut left = u32::from_le_bytes(size) as usize;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 14]);
    while left > 0 {
        let room = left.min(buffer.len());
        let n = stream.read(&mut buffer[..room]).expect("the sender goes on");
        assert!(n > 0, "{left} bytes are missing");
        hash.update(&buffer[..n]);
        left -= n;
    }
    stream.write_all(&hash.finalize()).expect("the sender waits");
    match stream.read(&mut size) {
        Ok(n) => assert_eq!(n, 0, "more than was sent"),
        Err(e) if e.kind() == ErrorKind::ConnectionReset => {}
        Err(e) => panic!("neither the end of the connection nor a reset: {e}"),
    }
}

/// Sends `bytes` and their number; the other end must have the same hash. One connection in two
/// ends with a reset, so that ports do not run out. Gives the segments that were retransmitted.
fn deliver(number: u32, (mut stream, name): (TcpStream, String), bytes: &[u8]) -> u64 {
    let mut arrived = [0; 32];
    let mut exchange = || {
        stream.write_all(&(bytes.len() as u32).to_le_bytes())?;
        stream.write_all(bytes)?;
        stream.read_exact(&mut arrived)
    };
    if let Err(e) = exchange() {
        let i = tcp_info(&stream);
        panic!(
            "{name}, connection {number}: {e}: cwnd {}, ssthresh {}, state {}, {} out, {} lost, \
             {} sacked, {} retransmitted ({} in all), backoff {}, rto {} us, acked {} bytes",
            i.tcpi_snd_cwnd,
            i.tcpi_snd_ssthresh,
            i.tcpi_ca_state,
            i.tcpi_unacked,
            i.tcpi_lost,
            i.tcpi_sacked,
            i.tcpi_retrans,
            i.tcpi_total_retrans,
            i.tcpi_backoff,
            i.tcpi_rto,
            i.tcpi_bytes_acked
        );
    }
    assert_eq!(arrived, *Sha256::digest(bytes), "{name}, connection {number}");
    assert_eq!(uses(&stream), name, "at the end too");
    let retransmitted = tcp_info(&stream).tcpi_total_retrans.into();
    if number.is_multiple_of(2) {
        reset(stream);
    }
    retransmitted
}

/// Different bytes for each connection.
fn bytes_of(all: &[u8], number: u32, len: u32) -> &[u8] {
    let start = number as usize * 7 % (all.len() - len as usize);
    &all[start..][..len as usize]
}

/// Short connections over loopback, whose passive ends inherit from the listening socket: as many as
/// wanted, and more until enough variants were replaced. Gives their number, and the segments that
/// were retransmitted.
fn short_connections(pool: &Pool, all: &[u8], inherited: &[String]) -> (u32, u64) {
    let next = AtomicU32::new(0);
    let (made, retransmitted) = (AtomicU32::new(0), AtomicU64::new(0));
    let answered = AtomicU32::new(0);
    thread::scope(|scope| {
        let addresses: Vec<SocketAddr> = SERVERS
            .iter()
            .zip(inherited.iter().cycle())
            .map(|(address, cc)| {
                let listener = TcpListener::bind(address).unwrap();
                sockopt::set_tcp_congestion(&listener, cc).unwrap();
                let address = listener.local_addr().unwrap();
                let other = listener.try_clone().unwrap();
                for listener in [listener, other] {
                    let answered = &answered;
                    scope.spawn(move || {
                        // An empty connection says that there are no more.
                        while let (stream, _) = listener.accept().unwrap()
                            && stream.peek(&mut [0]).unwrap() > 0
                        {
                            assert_eq!(uses(&stream), *cc, "as the listening socket");
                            answer(stream);
                            answered.fetch_add(1, Relaxed);
                        }
                    });
                }
                address
            })
            .collect();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (next, made, retransmitted) = (&next, &made, &retransmitted);
                let to = addresses[client as usize % addresses.len()];
                scope.spawn(move || {
                    loop {
                        let number = next.fetch_add(1, Relaxed);
                        if number >= short() && pool.loads.load(Relaxed) >= LOADS {
                            return;
                        }
                        let bytes = bytes_of(all, number, SHORT_BYTES);
                        retransmitted.fetch_add(deliver(number, pool.connect(to), bytes), Relaxed);
                        made.fetch_add(1, Relaxed);
                        thread::sleep(REST);
                    }
                })
            })
            .collect();
        let results: Vec<_> = clients.into_iter().map(thread::ScopedJoinHandle::join).collect();
        for address in addresses.iter().flat_map(|a| [a, a]) {
            drop(TcpStream::connect(address).unwrap());
        }
        assert!(results.iter().all(Result::is_ok), "a client failed");
    });
    let made = made.into_inner();
    assert_eq!(answered.into_inner(), made);
    (made, retransmitted.into_inner())
}

/// Connections that share a path which drops.
fn concurrent_connections(pool: &Pool, all: &[u8]) -> u64 {
    let (far, router) = bottleneck();
    // For each connection room for about 3 packets: without, most would wait for timeouts.
    router.run(|| run("tc qdisc change dev r1 root tbf rate 200mbit burst 30kb limit 1000000"));
    let (to, answers) = far.run(|| {
        let listener = TcpListener::bind("10.77.2.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let accept = move || -> Vec<_> {
            let streams = (0..CONCURRENT).map(|_| listener.accept().unwrap().0);
            streams.map(|stream| thread::spawn(|| answer(stream))).collect()
        };
        (to, thread::spawn(accept))
    });
    let retransmitted = AtomicU64::new(0);
    thread::scope(|scope| {
        let connected: Vec<_> = (0..CONCURRENT).map(|_| pool.connect(to)).collect();
        for (number, connection) in (0..).zip(connected) {
            let retransmitted = &retransmitted;
            scope.spawn(move || {
                let bytes = bytes_of(all, number, CONCURRENT_BYTES);
                retransmitted.fetch_add(deliver(number, connection, bytes), Relaxed);
            });
        }
    });
    answers.join().unwrap().into_iter().for_each(|answer| answer.join().unwrap());
    run("ip link del s0");
    retransmitted.into_inner()
}

/// Numbers of everything in the kernel that this process made.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    maps: BTreeSet<u32>,
    programs: BTreeSet<u32>,
    links: BTreeSet<u32>,
}

impl Seen {
    /// Adds all that there is now: variants by their names, their maps and programs, and the files that
    /// this process has open.
    fn add(&mut self) {
        let mine = unique("");
        let ops = MapInfoIter::default().filter(|map| map.ty == MapType::StructOps);
        for map in ops {
            let Ok(handle) = MapHandle::from_map_id(map.id) else { continue };
            let Ok(Some(value)) = handle.lookup(&0_u32.to_ne_bytes(), MapFlags::empty()) else {
                continue;
            };
            if !value.windows(mine.len()).any(|w| w == mine.as_bytes()) {
                continue;
            }
            self.maps.insert(map.id);
            let options = ProgInfoQueryOptions::default().include_map_ids(true);
            // The value holds the numbers of the programs.
            for program in ProgInfoIter::with_query_opts(options).filter(|p| {
                p.name.as_encoded_bytes().starts_with(b"knee_")
                    && value.chunks_exact(4).any(|w| w == p.id.to_ne_bytes())
            }) {
                self.programs.insert(program.id);
                self.maps.extend(program.map_ids);
            }
        }
        // Other processes' maps may be open too, of which a list of all variants is being made.
        let rings = open_maps()
            .into_iter()
            .filter(|id| MapHandle::from_map_id(*id).is_ok_and(|map| map.name() == "knee_ring"));
        self.maps.extend(rings);
        self.links.extend(LinkInfoIter::default().filter_map(|link| match link.info {
            LinkTypeInfo::StructOps(ops) => {
                Some(link.id).filter(|_| self.maps.contains(&ops.map_id))
            }
            _ => None,
        }));
    }

    /// Returns those of these that are still there.
    fn left(&self) -> Self {
        Self {
            maps: MapInfoIter::default()
                .map(|m| m.id)
                .filter(|id| self.maps.contains(id))
                .collect(),
            programs: ProgInfoIter::default()
                .map(|p| p.id)
                .filter(|id| self.programs.contains(id))
                .collect(),
            links: LinkInfoIter::default()
                .map(|l| l.id)
                .filter(|id| self.links.contains(id))
                .collect(),
        }
    }
}

/// Numbers of the maps that this process has open.
fn open_maps() -> Vec<u32> {
    let files = fs::read_dir("/proc/self/fdinfo").unwrap().flatten();
    let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    let id =
        |text: String| text.lines().find_map(|l| l.strip_prefix("map_id:")?.trim().parse().ok());
    texts.filter_map(id).collect()
}

fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn thousands_of_connections_while_variants_come_and_go() {
    despite_skips(soak);
}

fn soak() {
    let of = |tag: &str| -> Vec<String> {
        (0..algorithms().len()).map(|i| unique(&format!("{i}{tag}"))).collect()
    };
    let (first, second, inherited) = (of("0"), of("1"), of("l"));
    let names: Vec<&str> =
        [&first, &second, &inherited].into_iter().flatten().map(String::as_str).collect();
    let log = KernelLog::new();
    let seen = Mutex::new(Seen::default());
    machine(&names, || {
        let descriptors = open_descriptors();
        let load_all = |names: &[String]| -> Vec<Loaded> {
            let both = algorithms().iter().zip(names);
            both.map(|(a, name)| load(&Params::defaults(*a), name).unwrap()).collect()
        };
        let (replaced, kept) = (load_all(&first), load_all(&inherited));
        let mut random = 1_u64;
        let all: Vec<u8> = std::iter::repeat_with(|| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 56) as u8
        })
        .take(1 << 20)
        .collect();
        let pool = Pool {
            names: Mutex::new(first.clone()),
            begun: Instant::now(),
            done: AtomicBool::new(false),
            turns: AtomicU32::new(0),
            too_late: AtomicU32::new(0),
            loads: AtomicU32::new(0),
        };
        let (calls, retransmitted) = thread::scope(|scope| {
            let replacing = scope.spawn(|| pool.replace(replaced, &seen));
            let tracing = scope.spawn(|| pool.trace(&seen));
            let done = Done(&pool);
            let (made, retransmitted) = short_connections(&pool, &all, &inherited);
            println!(
                "{made} short connections in {:.0?}, {retransmitted} segments retransmitted",
                pool.begun.elapsed()
            );
            let retransmitted = concurrent_connections(&pool, &all);
            println!(
                "{CONCURRENT} more at a time in {:.0?}, {retransmitted} segments retransmitted",
                pool.begun.elapsed()
            );
            drop(done);
            replacing.join().unwrap();
            (tracing.join().unwrap(), retransmitted)
        });
        pool.check_time();
        drop(kept);
        println!(
            "{} variants loaded and unloaded, {calls} calls traced, {} times unloaded before it \
             was used",
            pool.loads.load(Relaxed),
            pool.too_late.load(Relaxed)
        );
        assert!(calls > 1000, "{calls} traced");
        assert!(retransmitted > 0, "no loss: the path did not do its part");
        assert!(!list().unwrap().iter().any(|v| v.registered && names.contains(&v.name.as_str())));
        wait_until(|| open_descriptors() == descriptors, "all descriptors are closed");
    });
    let seen = seen.into_inner().unwrap();
    assert!(seen.maps.len() > 60 && seen.programs.len() > 120 && seen.links.len() > 20, "{seen:?}");
    wait_until(|| seen.left() == Seen::default(), "maps, programs and links are gone");
    assert_eq!(log.complaints(), Vec::<String>::new());
}
