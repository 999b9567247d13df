//! Records of the kernel's calls: complete, the same as the native build's, filtered, counted. Needs
//! root, as the tests in `kernel.rs` do.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

mod common;

use common::*;
use knee_cc::{Algorithm, Event, Params, Profile, algorithms};
use knee_kernel::{Filter, Loaded, SocketId, TracedCall, Tracer, load, unload};
use knee_model::{Call, CallRecord, Replay};
use std::{
    collections::HashMap,
    env,
    io::Read,
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

const RING_BYTES: u32 = 16 << 20;
const ANY: Filter = Filter { port: None, address: None };

/// The calls from a tracer, by connection, made again as they come.
#[derive(Default)]
struct Traced {
    calls: HashMap<SocketId, Vec<CallRecord>>,
    replays: HashMap<SocketId, Replay>,
}

impl Traced {
    fn add(&mut self, c: TracedCall<'_>) {
        self.calls.entry(c.socket).or_default().push(c.call);
        let params = &c.variant.params;
        let replay = self.replays.entry(c.socket);
        replay.or_insert_with(|| Replay::new(params.clone())).call(&c.call, c.dropped);
    }

    /// Ends the tracer and takes what is left.
    fn finish(&mut self, tracer: &mut Tracer) {
        tracer.stop().unwrap();
        while tracer.poll(Duration::from_millis(20), |c| self.add(c)).unwrap() > 0 {}
    }

    fn of(tracer: &mut Tracer) -> Self {
        let mut new = Self::default();
        new.finish(tracer);
        new
    }

    /// Checks that the native build does the same.
    fn same(&self) {
        for (socket, replay) in &self.replays {
            assert_eq!(replay.differences, 0, "{socket:?}: {:#?}", replay.first);
        }
    }

    fn count(&self, call: Call) -> usize {
        self.calls.values().flatten().filter(|c| c.call == call).count()
    }
}

fn load_defaults(algorithm: &str, name: &str) -> Loaded {
    let algorithm = knee_cc::algorithm(algorithm).unwrap();
    load(&Params::defaults(algorithm), name).unwrap()
}

fn send(to: SocketAddr, name: &str, n: usize) {
    Bytes::new().write(&mut connect(to, name), n);
}

/// Two flows through a path that drops: every call of both is recorded, and the same natively.
#[test]
fn calls_on_a_lossy_path_are_the_same_natively() {
    every_algorithm(every_call_is_the_native_one);
}

fn every_call_is_the_native_one(a: Algorithm) {
    let (name, is_rate) = (unique_of(a), a.profile() == Profile::Rate);
    machine(&[&name], || {
        let _loaded = load(&Params::defaults(a), &name).unwrap();
        let mut tracer = Tracer::start(&[&name], ANY, RING_BYTES).unwrap();
        assert_eq!(tracer.variants()[0].params, Params::defaults(a));
        let (far, _router) = bottleneck();
        let addresses = far.run(|| [receiver("10.77.2.1:0"), receiver("10.77.2.1:0")]);
        thread::scope(|scope| {
            for (to, _) in &addresses {
                scope.spawn(|| send(*to, &name, 2 << 20));
            }
        });
        for (_, arrived) in addresses {
            arrived.join().unwrap();
        }
        let traced = Traced::of(&mut tracer);
        run("ip link del s0");
        assert_eq!(tracer.dropped().unwrap(), 0);
        traced.same();
        assert_eq!(traced.replays.len(), 2, "two connections");
        for (socket, replay) in &traced.replays {
            assert_eq!(socket.remote.ip(), "10.77.2.1".parse::<IpAddr>().unwrap());
            assert!(!replay.joined && replay.gaps == 0, "{replay:?}");
            assert!(replay.compared == replay.calls && replay.calls > 100, "{replay:?}");
        }
        assert_eq!(traced.count(Call::Init), 2);
        println!(
            "{}: {} on_rtt, {} on_ack, {} ssthresh, {} on_event, {} undo",
            a.name(),
            traced.count(Call::OnRtt),
            traced.count(Call::OnAck),
            traced.count(Call::Ssthresh),
            traced.count(Call::OnEvent),
            traced.count(Call::Undo)
        );
        // Vegas, for one, may send all of it without a loss.
        let must_lose = a.name() == "newreno";
        assert!(!must_lose || traced.count(Call::Ssthresh) > 0, "the path drops");
        let sampled = |c: &CallRecord| c.call == Call::OnAck && c.ack.sample_us > 0;
        let of_rate = |c: &CallRecord| {
            c.ack.sample_us > 0 || c.ack.prior_inflight_pkts > 0 || c.before.pacing_bytes_per_s > 0
        };
        for calls in traced.calls.values() {
            let recovered =
                |c: &CallRecord| c.call == Call::OnEvent && c.event == Event::Recovered as u32;
            if is_rate {
                let samples = calls.iter().filter(|c| sampled(c)).count();
                assert!(samples * 2 > calls.len(), "{samples} samples, {} calls", calls.len());
                assert!(!calls.iter().any(|c| c.call == Call::OnRtt || recovered(c)));
            } else {
                assert!(!calls.iter().any(of_rate), "nothing of profile RATE");
            }
        }
        // Trust: one bit of any record shows.
        let (socket, calls) = traced.calls.iter().next().unwrap();
        let params = Params::defaults(a);
        let changed = |change: fn(&mut CallRecord)| {
            let mut replay = Replay::new(params.clone());
            for (i, call) in calls.iter().enumerate() {
                let mut call = *call;
                if i == calls.len() / 2 {
                    change(&mut call);
                }
                replay.call(&call, 0);
            }
            let first = replay.first.map(|d| d.number as usize);
            assert_eq!(first, Some(calls.len() / 2 + 1), "{socket:?}");
        };
        changed(|c| c.before.inflight_pkts ^= 1);
        changed(|c| c.after.ssthresh_pkts ^= 1);
        changed(|c| c.result ^= 1);
        changed(|c| c.observed[0] ^= 1);
        changed(|c| {
            let mut state = *c.state.bytes();
            state[1] ^= 1;
            c.state = state.into();
        });
    });
}

/// HD that backs off for sure at 2 ms of queue: calls that the defaults would answer differently.
#[test]
fn parameters_decide_the_kernels_behaviour() {
    despite_skips(|| {
        let name = unique("param");
        machine(&[&name], || {
            let hd = knee_cc::algorithm("hd").unwrap();
            let given = [("qmin", 1000), ("qth", 2000), ("pmax", 1_000_000), ("qmax", 1_000_000)];
            let _loaded = load(&Params::new(hd, given).unwrap(), &name).unwrap();
            let mut tracer = Tracer::start(&[&name], ANY, RING_BYTES).unwrap();
            let (far, _router) = bottleneck();
            let (to, arrived) = far.run(|| receiver("10.77.2.1:0"));
            send(to, &name, 3 << 20);
            arrived.join().unwrap();
            let traced = Traced::of(&mut tracer);
            run("ip link del s0");
            traced.same();
            let mut defaults = Replay::new(Params::defaults(hd));
            traced.calls.values().flatten().for_each(|call| defaults.call(call, 0));
            assert!(defaults.differences > 0, "{defaults:?}");
        });
    });
}

#[test]
fn only_the_wanted_calls_are_recorded() {
    let name = unique("filt");
    machine(&[&name], || {
        let _loaded = load_defaults("newreno", &name);
        let traced = |filter: Filter, to: &str| {
            let mut tracer = Tracer::start(&[&name], filter, RING_BYTES).unwrap();
            let (to, arrived) = receiver(to);
            send(to, &name, 1 << 18);
            arrived.join().unwrap();
            let traced = Traced::of(&mut tracer);
            traced.same();
            let socket = traced.calls.keys().next().copied();
            assert!(socket.is_none_or(|s| s.remote == to), "{socket:?}");
            traced.calls.len()
        };
        let address = |a: &str| Filter { port: None, address: Some(a.parse().unwrap()) };
        assert_eq!(traced(ANY, "127.7.7.7:0"), 1);
        assert_eq!(traced(address("127.7.7.7"), "127.7.7.7:0"), 1);
        assert_eq!(traced(address("127.7.7.8"), "127.7.7.7:0"), 0);
        assert_eq!(traced(address("::1"), "127.7.7.7:0"), 0);
        assert_eq!(traced(ANY, "[::1]:0"), 1);
        assert_eq!(traced(address("::1"), "[::1]:0"), 1);
        assert_eq!(traced(address("::2"), "[::1]:0"), 0);
        let port = |port| Filter { port: Some(port), address: None };
        assert_eq!(traced(port(47_711), "127.0.0.1:47711"), 1);
        assert_eq!(traced(port(47_711), "127.0.0.1:47712"), 0);
        let both = Filter { port: Some(47_713), address: Some("127.7.7.7".parse().unwrap()) };
        assert_eq!(traced(both, "127.7.7.7:47713"), 1);
        assert_eq!(traced(both, "127.7.7.7:47714"), 0);
        assert_eq!(traced(both, "127.0.0.1:47713"), 0);
    });
}

/// Two connections between the same ends are two.
#[test]
fn lives_of_the_same_ends_are_distinct() {
    let name = unique("life");
    machine(&[&name], || {
        let _loaded = load_defaults("newreno", &name);
        let mut tracer = Tracer::start(&[&name], ANY, RING_BYTES).unwrap();
        for _ in 0..2 {
            // The kernel may still be at the end of the first one.
            let mut listener = None;
            wait_until(
                || {
                    listener = TcpListener::bind("127.0.0.1:47720").ok();
                    listener.is_some()
                },
                "the port is free",
            );
            let listener = listener.unwrap();
            let to = listener.local_addr().unwrap();
            let mut stream = connect_from("127.0.0.1:47721", to, &name);
            Bytes::new().write(&mut stream, 1 << 15);
            // Closed by a reset, so that the ends are free at once.
            reset(stream);
        }
        let traced = Traced::of(&mut tracer);
        traced.same();
        let mut sockets: Vec<SocketId> = traced.calls.keys().copied().collect();
        sockets.sort();
        assert_eq!(sockets.len(), 2, "{sockets:?}");
        assert!(sockets[0].local == sockets[1].local && sockets[0].remote == sockets[1].remote);
        assert_ne!(sockets[0].id, sockets[1].id);
    });
}

/// The ring is small and nobody reads: the missing calls are counted, and the rest fits.
#[test]
fn dropped_calls_are_counted() {
    let name = unique("drop");
    machine(&[&name], || {
        let _loaded = load_defaults("chd", &name);
        let mut tracer = Tracer::start(&[&name], ANY, 4096).unwrap();
        let (to, arrived) = receiver("127.0.0.1:0");
        let mut stream = connect(to, &name);
        let mut traced = Traced::default();
        for _ in 0..3 {
            Bytes::new().write(&mut stream, 8 << 20);
            wait_until(|| acknowledged(&stream), "everything is acknowledged");
            tracer.poll(Duration::ZERO, |c| traced.add(c)).unwrap();
        }
        traced.finish(&mut tracer);
        let dropped = tracer.dropped().unwrap();
        drop(stream);
        arrived.join().unwrap();
        traced.same();
        let replay = traced.replays.values().next().unwrap();
        assert!(replay.calls > 12 && replay.gaps > 0 && replay.gaps < 3, "{replay:?}");
        assert!(dropped > 30, "{dropped} dropped, {} recorded", replay.calls);
        // A filter that nothing passes drops nothing.
        drop(tracer);
        let nothing = Filter { port: Some(1), address: None };
        let tracer = Tracer::start(&[&name], nothing, 4096).unwrap();
        let (to, arrived) = receiver("127.0.0.1:0");
        send(to, &name, 8 << 20);
        arrived.join().unwrap();
        assert_eq!(tracer.dropped().unwrap(), 0);
    });
}

#[test]
fn a_connection_can_be_joined() {
    for a in algorithms() {
        let name = unique(&format!("j{}", &a.name()[..2]));
        machine(&[&name], || {
            // By another process's means: the pin, not the object that loaded it.
            load(&Params::defaults(*a), &name).unwrap().persist().unwrap();
            let (to, arrived) = receiver("127.0.0.1:0");
            let mut stream = connect(to, &name);
            Bytes::new().write(&mut stream, 4 << 20);
            let mut tracer = Tracer::start::<&str>(&[&name], ANY, RING_BYTES).unwrap();
            unload(&name).unwrap();
            // Enough for more calls than 20, also where a busy machine acknowledges much at once.
            Bytes::new().write(&mut stream, 16 << 20);
            let traced = Traced::of(&mut tracer);
            traced.same();
            let replay = traced.replays.values().next().unwrap();
            assert!(replay.joined && replay.gaps == 0, "{replay:?}");
            assert!(replay.compared + 1 == replay.calls && replay.calls > 20, "{replay:?}");
            drop(stream);
            arrived.join().unwrap();
            drop(tracer);
        });
    }
}

/// The process that [`a_killed_tracer_is_replaced`] starts.
#[test]
#[ignore = "part of another test"]
fn traces_until_it_is_killed() {
    let name = env::var("KNEE_TEST_TRACE").unwrap();
    let _tracer = Tracer::start(&[&name], ANY, 4096).unwrap();
    println!("tracing");
    thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_killed_tracer_is_replaced() {
    let name = unique("kill");
    machine(&[&name], || {
        let _loaded = load_defaults("newreno", &name);
        let mut other = Command::new(env::current_exe().unwrap())
            .args(["traces_until_it_is_killed", "--exact", "--ignored", "--nocapture"])
            .env("KNEE_TEST_TRACE", &name)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut out = other.stdout.take().unwrap();
        let mut byte = [0];
        while !said.contains("tracing\n") {
            assert_eq!(out.read(&mut byte).unwrap(), 1, "{said}");
            said.push(char::from(byte[0]));
        }
        let error = Tracer::start(&[&name], ANY, RING_BYTES).unwrap_err();
        let pid = other.id();
        assert!(error.why.starts_with(&format!("process {pid} is tracing `{name}`;")), "{error}");
        other.kill().unwrap();
        other.wait().unwrap();
        let count = || {
            let mut tracer = Tracer::start(&[&name], ANY, RING_BYTES).unwrap();
            let (to, arrived) = receiver("127.0.0.1:0");
            send(to, &name, 1 << 20);
            arrived.join().unwrap();
            let traced = Traced::of(&mut tracer);
            traced.same();
            traced.calls.values().map(Vec::len).sum::<usize>()
        };
        // Its full ring does not disturb the sockets.
        let (to, arrived) = receiver("127.0.0.1:0");
        send(to, &name, 4 << 20);
        arrived.join().unwrap();
        assert!(count() > 10);
        assert!(count() > 10, "a tracer that ended leaves nothing in the way");
    });
}

#[test]
fn untraceable_variants_are_named() {
    let name = unique("none");
    machine(&[&name], || {
        let error = Tracer::start(&[&name], ANY, RING_BYTES).unwrap_err();
        assert!(error.why.starts_with(&format!("no variant `{name}` is loaded;")), "{error}");
        let _loaded = load_defaults("newreno", &name);
        let first = Tracer::start(&[&name], ANY, RING_BYTES).unwrap();
        let error = Tracer::start(&[&name], ANY, RING_BYTES).unwrap_err();
        assert!(error.why.contains(&format!(" is tracing `{name}`; end it first")), "{error}");
        drop(first);
        drop(Tracer::start(&[&name], ANY, RING_BYTES).unwrap());
    });
}

fn acknowledged(stream: &TcpStream) -> bool {
    let info = tcp_info(stream);
    info.tcpi_unacked == 0 && info.tcpi_notsent_bytes == 0
}
