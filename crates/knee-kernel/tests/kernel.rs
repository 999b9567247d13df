//! The real kernel: loading, transfers in namespaces of the tests' own, unloading, and failures. Needs
//! root; where something is missing these tests fail and name it.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

mod common;

use common::*;
use knee_cc::{Algorithm, Call, Params, Profile, algorithm, algorithms};
use knee_kernel::{Loaded, PIN_DIR, Variant, list, load, measure, persist, unload, unpersist};
use knee_model::HostErrorKind;
use libbpf_rs::{
    MapCore,
    btf::{Btf, types::Struct},
};
use rustix::{
    net::sockopt,
    process::{Gid, Uid},
};
use std::{
    fs,
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::Duration,
};

fn of(name: &str) -> Algorithm {
    algorithm(name).unwrap()
}

fn defaults(name: &str) -> Params {
    Params::defaults(of(name))
}

/// The defaults and two others.
fn three_variants(a: Algorithm) -> [Params; 3] {
    let others: Vec<Params> = match a.profile() {
        Profile::Classic => {
            [("count", 0), ("ss_limit", 4)].map(|given| Params::new(a, [given]).unwrap()).into()
        }
        // Each has parameters of its own.
        Profile::Rate => a
            .params()
            .iter()
            .flat_map(|p| [(p.name, u64::from(p.min)), (p.name, u64::from(p.max))])
            .filter_map(|given| Params::new(a, [given]).ok())
            .filter(|params| *params != Params::defaults(a))
            .take(2)
            .collect(),
    };
    let [first, second] = others.try_into().unwrap();
    [Params::defaults(a), first, second]
}

/// Names of its programs, in the order of [`Variant::callbacks`].
fn programs(a: Algorithm) -> Vec<&'static str> {
    let is_classic = a.profile() == Profile::Classic;
    let made = |call: &Call| is_classic || *call != Call::OnRtt;
    Call::ALL.iter().filter(|call| made(call)).map(|call| call.name()).collect()
}

fn variant(name: &str) -> Variant {
    list().unwrap().into_iter().find(|v| v.name == name).unwrap_or_else(|| panic!("no {name}"))
}

fn pinned(name: &str) -> bool {
    Path::new(PIN_DIR).join(name).exists()
}

/// Sends `n` bytes; true if they arrived as they were sent.
fn carries(name: &str, n: usize) {
    let (to, arrived) = receiver("127.0.0.1:0");
    let mut stream = connect(to, name);
    let mut bytes = Bytes::new();
    bytes.write(&mut stream, n);
    let info = tcp_info(&stream);
    assert!(info.tcpi_snd_cwnd >= 1, "{name}: cwnd {}", info.tcpi_snd_cwnd);
    assert_eq!(uses(&stream), name, "at the end too");
    drop(stream);
    assert_eq!(arrived.join().unwrap(), bytes.hash(), "{name}");
}

#[test]
fn every_algorithm_loads_in_variants_side_by_side_and_carries_bytes() {
    for a in algorithms() {
        let names = ["d", "c", "s"].map(|t| unique(&format!("{t}{}", &a.name()[..2])));
        machine(&names.each_ref().map(|n| n.as_str()), || {
            let params = three_variants(*a);
            let loaded: Vec<Loaded> =
                params.iter().zip(&names).map(|(p, name)| load(p, name).unwrap()).collect();
            for (name, params) in names.iter().zip(&params) {
                let found = variant(name);
                assert_eq!(found.algorithm, a.name());
                assert_eq!(found.params.as_ref(), Some(params), "what the kernel holds");
                assert!(found.registered && found.pin.is_none() && found.sockets == 0);
                assert_eq!(
                    found.callbacks.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(),
                    programs(*a)
                );
                carries(name, 8 << 20);
            }
            drop(loaded);
        });
    }
}

#[test]
fn calls_and_their_time_are_counted() {
    count_calls(f64::INFINITY);
}

/// None takes long.
#[test]
#[ignore = "measured in real time, on an idle machine: scripts/nightly.sh measured"]
fn calls_are_short() {
    count_calls(5000.0);
}

/// The kernel counts every call; at an ACK none takes longer than `most_ns` on average.
fn count_calls(most_ns: f64) {
    for a in algorithms() {
        let name = unique(&a.name()[..2]);
        machine(&[&name], || {
            let _loaded = load(&Params::defaults(*a), &name).unwrap();
            let (to, arrived) = receiver("127.0.0.1:0");
            let mut stream = connect(to, &name);
            let stop = AtomicBool::new(false);
            let measured = thread::scope(|scope| {
                scope.spawn(|| {
                    let mut bytes = Bytes::new();
                    while !stop.load(Relaxed) {
                        bytes.write(&mut stream, 1 << 20);
                    }
                });
                // As long as it takes for so many calls.
                let many = |measured: &Vec<Variant>| {
                    let calls =
                        measured.iter().filter(|v| v.name == name).flat_map(|v| &v.callbacks);
                    calls.filter(|c| c.name == Call::OnAck.name()).any(|c| c.calls > 100)
                };
                let mut ms = [250, 1000, 4000, 16_000].into_iter();
                let measured = loop {
                    let measured = measure(Duration::from_millis(ms.next().unwrap_or(0)));
                    if ms.len() == 0 || measured.as_ref().map_or(true, many) {
                        break measured;
                    }
                };
                stop.store(true, Relaxed);
                measured.unwrap()
            });
            let mine = measured.iter().find(|v| v.name == name).unwrap();
            assert_eq!(mine.sockets, 1);
            for c in mine.callbacks.iter().filter(|c| c.calls > 0) {
                println!(
                    "{} {}: {} calls, {:.0} ns",
                    a.name(),
                    c.name,
                    c.calls,
                    c.ns_per_call().unwrap()
                );
            }
            let of = |call: Call| mine.callbacks.iter().find(|c| c.name == call.name()).unwrap();
            let every_ack = of(Call::of_every_ack(a.profile()));
            assert!(every_ack.calls > 100 && of(Call::OnAck).calls > 100, "{mine:?}");
            let ns = every_ack.ns_per_call().unwrap();
            assert!(0.0 < ns && ns < most_ns, "{mine:?}");
            drop(stream);
            arrived.join().unwrap();
        });
    }
}

/// Returns the sender's view of one transfer of `n` bytes through [`bottleneck`].
fn through_a_bottleneck(name: &str, n: usize) -> libc::tcp_info {
    let (far, _router) = bottleneck();
    let (to, arrived) = far.run(|| receiver("10.77.2.1:0"));
    let mut stream = connect(to, name);
    let mut bytes = Bytes::new();
    bytes.write(&mut stream, n);
    let info = tcp_info(&stream);
    drop(stream);
    assert_eq!(arrived.join().unwrap(), bytes.hash(), "{name}");
    run("ip link del s0");
    info
}

#[test]
fn a_bottleneck_with_drops_loses_nothing() {
    every_algorithm(nothing_is_lost);
}

fn nothing_is_lost(a: Algorithm) {
    let name = unique_of(a);
    machine(&[&name], || {
        let _loaded = load(&Params::defaults(a), &name).unwrap();
        let info = through_a_bottleneck(&name, 3 << 20);
        let (cwnd, ssthresh) = (info.tcpi_snd_cwnd, info.tcpi_snd_ssthresh);
        // 20 Mbit/s and 16 ms of queue hold 27 packets; slow start may overshoot.
        assert!((1..1000).contains(&cwnd), "{name}: cwnd {cwnd}");
        // In profile RATE it need not mean anything.
        let is_rate = a.profile() == Profile::Rate;
        assert!(is_rate || (2..1000).contains(&ssthresh), "{name}: ssthresh {ssthresh}");
        if a.name() == "newreno" {
            assert!(info.tcpi_total_retrans > 0, "no loss: the path did not do its part");
        }
    });
}

/// HD that backs off for sure at 2 ms of queue never fills 16 ms.
#[test]
#[ignore = "measured in real time, on an idle machine: scripts/nightly.sh measured"]
fn a_timid_hd_has_a_short_queue() {
    despite_skips(timid_hd);
}

fn timid_hd() {
    let name = unique("timid");
    machine(&[&name], || {
        let given = [("qmin", 1000), ("qth", 2000), ("pmax", 1_000_000), ("qmax", 1_000_000)];
        let _loaded = load(&Params::new(of("hd"), given).unwrap(), &name).unwrap();
        let info = through_a_bottleneck(&name, 3 << 20);
        // With the defaults: 25 packets and about 30 retransmissions. A probe for a lost tail may be
        // sent where the machine is busy.
        let (cwnd, repairs) = (info.tcpi_snd_cwnd, info.tcpi_total_retrans);
        assert!(cwnd < 15 && repairs < 10, "cwnd {cwnd}, {repairs} retransmissions");
    });
}

#[test]
fn unloading_leaves_open_sockets_alone() {
    let name = unique("open");
    machine(&[&name], || {
        load(&defaults("chd"), &name).unwrap().persist().unwrap();
        let (to, arrived) = receiver("127.0.0.1:0");
        let mut stream = connect(to, &name);
        let mut bytes = Bytes::new();
        bytes.write(&mut stream, 1 << 20);
        assert_eq!(variant(&name).sockets, 1);
        unload(&name).unwrap();
        assert!(!available().contains(&name));
        let left = variant(&name);
        assert!(!left.registered && left.sockets == 1, "{left:?}");
        let error = unload(&name).expect_err("only once");
        assert!(error.why.starts_with(&format!("no variant `{name}` is loaded;")), "{error}");
        bytes.write(&mut stream, 8 << 20);
        assert_eq!(uses(&stream), name);
        // The name is free, though the old variant still works.
        let again = load(&defaults("newreno"), &name).unwrap();
        carries(&name, 1 << 20);
        drop(again);
        bytes.write(&mut stream, 1 << 20);
        drop(stream);
        assert_eq!(arrived.join().unwrap(), bytes.hash());
    });
}

#[test]
fn a_socket_may_change_its_algorithm_at_any_time() {
    let name = unique("swap");
    machine(&[&name], || {
        let _loaded = load(&defaults("chd"), &name).unwrap();
        let (to, arrived) = receiver("127.0.0.1:0");
        let mut stream = connect(to, "reno");
        let mut bytes = Bytes::new();
        for turn in 0..20 {
            let next = if turn % 2 == 0 { &name } else { "reno" };
            bytes.write(&mut stream, 1 << 19);
            sockopt::set_tcp_congestion(&stream, next).unwrap();
            assert_eq!(uses(&stream), *next);
        }
        drop(stream);
        assert_eq!(arrived.join().unwrap(), bytes.hash());
    });
}

/// The default of a namespace reaches passive connections too, and their side sends.
#[test]
fn the_default_of_a_namespace() {
    let name = unique("dflt");
    let default = "/proc/sys/net/ipv4/tcp_congestion_control";
    let of_the_machine = fs::read_to_string(default).unwrap();
    machine(&[&name], || {
        let _loaded = load(&defaults("newreno"), &name).unwrap();
        fs::write(default, &name).unwrap();
        assert_eq!(variant(&name).sockets, 1, "the default counts as one");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to: SocketAddr = listener.local_addr().unwrap();
        let reader = thread::spawn(move || hash_of(TcpStream::connect(to).unwrap()));
        let (mut stream, _) = listener.accept().unwrap();
        assert_eq!(uses(&stream), name);
        let mut bytes = Bytes::new();
        bytes.write(&mut stream, 4 << 20);
        drop(stream);
        assert_eq!(reader.join().unwrap(), bytes.hash());
    });
    assert_eq!(fs::read_to_string(default).unwrap(), of_the_machine);
}

#[test]
fn pins_outlive_the_process_and_are_removed() {
    let names = [unique("p1"), unique("p2"), unique("p3")];
    machine(&names.each_ref().map(|n| n.as_str()), || {
        let [a, b, c] = names.each_ref().map(|n| n.as_str());
        let pin = load(&defaults("newreno"), a).unwrap().persist().unwrap();
        assert_eq!(pin.path, Some(Path::new(PIN_DIR).join(a)));
        assert!(!pin.mounted, "there was a BPF file system");
        assert_eq!(variant(a).pin, pin.path);
        // One that is held, then pinned from elsewhere.
        let held = load(&defaults("hd"), b).unwrap();
        let error = unpersist(b).unwrap_err();
        assert!(error.why.starts_with(&format!("`{b}` is not pinned:")), "{error}");
        assert_eq!(persist(b).unwrap(), persist(b).unwrap(), "twice is once");
        drop(held);
        carries(b, 1 << 18);
        unpersist(b).unwrap();
        wait_until(|| !available().contains(&b.to_owned()), "it ends with its pin");
        // Unloading takes away what another process holds.
        let held = load(&defaults("hd"), c).unwrap();
        unload(c).unwrap();
        assert!(!available().contains(&c.to_owned()));
        drop(held);
        assert!(Path::new(PIN_DIR).exists() && pinned(a));
        unload(a).unwrap();
        assert!(!Path::new(PIN_DIR).exists(), "nothing is left behind");
    });
}

#[test]
fn a_missing_bpf_file_system_is_mounted() {
    let name = unique("mnt");
    machine(&[&name], || {
        run("mount -t tmpfs tmpfs /sys/fs/bpf");
        let pin = load(&defaults("newreno"), &name).unwrap().persist().unwrap();
        assert!(pin.mounted && pin.path.is_some_and(|path| path.exists()));
        unload(&name).unwrap();
    });
}

#[test]
fn names_that_cannot_be() {
    let name = unique("twice");
    machine(&[&name], || {
        let p = defaults("newreno");
        for bad in ["", "sixteen_letters_", "Upper", "a-b", "a b", "../x", "a/b", "ä", "a\0"] {
            for error in [load(&p, bad).unwrap_err(), unload(bad).unwrap_err()] {
                let refused = format!("{bad:?} is not a valid name: ");
                assert!(error.why.starts_with(&refused), "{error}");
            }
        }
        let first = load(&p, &name).unwrap();
        for taken in [name.as_str(), "reno", "cubic"] {
            let error = load(&p, taken).unwrap_err();
            let refused = format!("the kernel already has a congestion control `{taken}`;");
            assert!(error.why.starts_with(&refused), "{error}");
        }
        // Not ours, so not ours to unload.
        let error = unload("cubic").unwrap_err().to_string();
        assert!(error.contains("no variant `cubic` is loaded") && error.contains(&name), "{error}");
        drop(first);
        let longest = format!("{name}_______________");
        drop(load(&p, &longest[..15]).unwrap());
    });
}

#[test]
fn without_privileges_the_error_names_the_needed_ones() {
    let name = &unique("priv");
    machine(&[name], || {
        let _loaded = load(&defaults("chd"), name).unwrap();
        let other = unique("nobody");
        // Credentials are a thread's; libc would change the whole process's.
        let nobody = move || {
            let (gid, uid) = (Gid::from_raw(65534), Uid::from_raw(65534));
            rustix::thread::set_thread_groups(&[]).unwrap();
            rustix::thread::set_thread_res_gid(gid, gid, gid).unwrap();
            rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
            let report = knee_kernel::check();
            assert!(!report.can_load(), "{report}");
            assert!(report.to_string().contains("run as root, or with CAP_BPF"), "{report}");
            let errors = [
                load(&defaults("chd"), &other).unwrap_err(),
                list().unwrap_err(),
                unload(name).unwrap_err(),
                persist(name).unwrap_err(),
                measure(Duration::ZERO).unwrap_err(),
            ];
            for error in errors {
                assert_eq!(error.kind, HostErrorKind::Unavailable, "{error}");
                assert!(error.why.contains(": not permitted; this needs root"), "{error}");
            }
            // Using what root has loaded needs none.
            carries(name, 1 << 18);
        };
        thread::scope(|scope| scope.spawn(nobody).join().unwrap());
    });
}

/// `bpftool struct_ops register` takes an exported object.
#[test]
fn an_exported_object_is_complete() {
    let name = unique("exp");
    machine(&[&name], || {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chd.bpf.o");
        let params = Params::new(of("chd"), [("qth", 20_000)]).unwrap();
        let types = Btf::from_vmlinux().unwrap();
        let ops = types.type_by_name::<Struct<'_>>("tcp_congestion_ops").unwrap();
        let has_tx_start = ops.iter().any(|m| m.name.is_some_and(|n| n == "cwnd_event_tx_start"));
        // libbpf takes the event's own program only where the kernel has a place for it.
        let with = folder.path().join("with.o");
        knee_kernel::export(&params, &unique("tx"), &with, true).unwrap();
        let open = libbpf_rs::ObjectBuilder::default().open_file(&with).unwrap();
        assert_eq!(open.load().is_ok(), has_tx_start);
        knee_kernel::export(&params, &name, &path, false).unwrap();
        let error = knee_kernel::export(&params, &name, &path, false).unwrap_err().to_string();
        assert!(error.contains("remove it, or give another name"), "{error}");
        let bytes = fs::read(&path).unwrap();
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).to_str().unwrap();
        let root = here.strip_suffix("/crates/knee-kernel").unwrap().as_bytes();
        assert!(!bytes.windows(root.len()).any(|w| w == root), "names the builder's folder");

        let open = libbpf_rs::ObjectBuilder::default().open_file(&path).unwrap();
        let mut object = open.load().unwrap();
        let mut ops = object.maps_mut().find(|m| *m.name() == *"knee_chd").unwrap();
        let link = ops.attach_struct_ops().unwrap();
        assert_eq!(variant(&name).params, Some(params));
        carries(&name, 1 << 20);
        drop(link);
    });
}

/// Else no test would see its warnings.
#[test]
fn the_kernels_messages_are_seen() {
    let mark = unique("said");
    fs::write("/dev/kmsg", format!("knee's tests, before: {mark}\n")).unwrap();
    let log = KernelLog::new();
    fs::write("/dev/kmsg", format!("knee's tests: {mark}\n")).unwrap();
    let seen = log.with(&[&mark]);
    assert!(seen.len() == 1 && seen[0].contains(&format!("knee's tests: {mark}")), "{seen:?}");
}
