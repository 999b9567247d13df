//! Runs in a real kernel: scripts/test-linux.sh. The first test builds the kernel if the cache has none, which takes some
//! minutes; with it, all take less than a minute.

#![allow(clippy::unwrap_used)] // tests

use knee_cc::{Params, algorithm, algorithms, load_text};
use knee_linux::{Kernel, KernelChoice, Linux, build};
use knee_model::{
    Aqm, Cc, Discipline, FlowCounters, FlowKind, FlowSpec, HopSpec, Host, HostErrorKind, NS_PER_MS,
    NS_PER_S, Ns, PacketEvent, PathSpec, QueueLimit, Reorder, Replay, RunOptions, RunRecord,
    RunSpec, TcpOptions, TcpSpec, Transport, Workload, sysctl::Sysctl,
};
use pcap_file::pcapng::{Block, PcapNgReader, blocks::enhanced_packet::EnhancedPacketOption};
use std::{
    collections::BTreeSet,
    env, fs,
    path::Path,
    process::{Command, Stdio},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

/// Names a kernel other than the usual one.
const KERNEL: &str = "KNEE_LINUX_TEST_KERNEL";
/// Makes [`astray`] run.
const ASTRAY: &str = "KNEE_LINUX_TEST_ASTRAY";
/// Makes [`endless`] run.
const ENDLESS: &str = "KNEE_LINUX_TEST_ENDLESS";
const RTT_NS: Ns = 40 * NS_PER_MS;

/// The options of a run: the kernel that the environment names, or the usual one.
fn options() -> RunOptions {
    RunOptions { kernel: env::var(KERNEL).ok(), ..RunOptions::default() }
}

fn kernel() -> &'static Kernel {
    static KERNEL: OnceLock<Kernel> = OnceLock::new();
    KERNEL.get_or_init(|| {
        let choice = options().kernel.map(|kernel| kernel.parse::<KernelChoice>().unwrap());
        build(&choice.unwrap_or_default(), &|_| ())
            .unwrap_or_else(|e| panic!("{}: {:?}", e.why, e.help))
    })
}

fn run(spec: &RunSpec) -> RunRecord {
    kernel();
    Linux.run(spec, &options()).unwrap_or_else(|e| panic!("{}: {:?}", e.why, e.help))
}

fn spec(name: &str, flows: u32, rate_bps: u64, duration_ns: Ns) -> RunSpec {
    let path = PathSpec::symmetric(rate_bps, RTT_NS, QueueLimit::Packets(100));
    let params = Params::defaults(algorithm(name).unwrap());
    RunSpec::dumbbell(flows, path, duration_ns, &params, 1)
}

fn with_loss(mut spec: RunSpec, loss: f64) -> RunSpec {
    spec.path = spec.path.with_each_hop(|hop| hop.loss = loss);
    spec
}

/// A million packets on a saturated link: each leaves when the packet before it has left and its own
/// transmission is over, and each ACK releases its packets at the nanosecond at which the path gives it back.
#[test]
#[ignore = "needs a kernel: scripts/test-linux.sh"]
fn departures_and_acknowledgements_are_exact() {
    let mut spec = spec("newreno", 1, 100_000_000, 125 * NS_PER_S);
    spec.record.queue_log = true;
    spec.path = PathSpec::symmetric(100_000_000, RTT_NS, QueueLimit::Packets(500));
    let record = run(&spec);
    let (mut waiting, mut departures, mut deviations) = (Vec::new(), Vec::new(), Vec::new());
    let (mut last_ns, mut next) = (0, 0);
    let mut returned = BTreeSet::new();
    for packet in &record.queues[0].log {
        match packet.event {
            PacketEvent::Enqueued => {
                waiting.push(*packet);
                // Handshake and first window.
                if packet.time_ns > 2 * RTT_NS + NS_PER_MS && !returned.contains(&packet.time_ns) {
                    deviations.push(("not at an ACK", *packet));
                }
                returned = returned.split_off(&packet.time_ns);
            }
            PacketEvent::Departed => {
                let arrived = waiting[next];
                next += 1;
                let transmission_ns = u64::from(packet.bytes) * 8 * NS_PER_S / 100_000_000;
                let due_ns = last_ns.max(arrived.time_ns) + transmission_ns;
                if (packet.time_ns, packet.number) != (due_ns, arrived.number) {
                    deviations.push(("not when it is due", *packet));
                }
                last_ns = packet.time_ns;
                returned.insert(packet.time_ns + RTT_NS);
                departures.push(packet.time_ns);
            }
            PacketEvent::Dropped => {
                if packet.time_ns > 2 * RTT_NS + NS_PER_MS && !returned.contains(&packet.time_ns) {
                    deviations.push(("not at an ACK", *packet));
                }
            }
            PacketEvent::Lost => panic!("the path loses nothing"),
        }
    }
    assert!(departures.len() > 1_000_000, "{} packets", departures.len());
    assert!(record.flows[0].counters.queue_drops_pkts > 0);
    assert!(
        deviations.is_empty(),
        "{} deviations: {:?}",
        deviations.len(),
        &deviations[..deviations.len().min(20)]
    );
}

/// The same run gives the same record, again and alongside others.
#[test]
#[ignore = "needs a kernel: scripts/test-linux.sh"]
fn runs_repeat_to_the_byte() {
    let mut spec = with_loss(spec("pert", 3, 10_000_000, 20 * NS_PER_S), 0.01);
    spec.record.bin_ns = 100 * NS_PER_MS;
    spec.record.queue_log = true;
    spec.record.trace = true;
    let first = run(&spec);
    assert!(
        first
            .flows
            .iter()
            .all(|flow| flow.counters.random_losses_pkts > 0 && !flow.trace.is_empty())
    );
    let others = thread::scope(|s| {
        let runs: Vec<_> = (0..4).map(|_| s.spawn(|| run(&spec))).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(others.iter().all(|record| *record == first));
    spec.seed = 2;
    assert!(run(&spec) != first, "the seed matters");
}

/// Every algorithm carries its bytes, and native replays of its calls give the same results.
#[test]
#[ignore = "needs a kernel: scripts/test-linux.sh"]
fn every_algorithm_runs_and_replays() {
    for algorithm in algorithms() {
        let mut spec = with_loss(spec(algorithm.name(), 1, 10_000_000, 10 * NS_PER_S), 0.001);
        spec.record.trace = true;
        spec.record.bin_ns = NS_PER_S;
        let record = run(&spec);
        let flow = &record.flows[0];
        assert!(
            flow.counters.delivered_bytes > 1_000_000,
            "{}: {:?}",
            algorithm.name(),
            flow.counters
        );
        let mut replay = Replay::new(Params::defaults(*algorithm));
        flow.trace.iter().for_each(|call| replay.call(call, 0));
        assert!(
            replay.compared > 500 && !replay.joined,
            "{}: {} calls",
            algorithm.name(),
            replay.compared
        );
        assert!(replay.first.is_none(), "{}: {:?}", algorithm.name(), replay.first);
        assert!(flow.rtt.count() > 500 && flow.samples.len() == 10, "{}", algorithm.name());
    }
}

/// An algorithm from a C file does the same as the built-in one that it is a copy of, in both profiles.
#[test]
#[ignore = "needs a kernel: scripts/test-linux.sh"]
fn an_algorithm_from_a_c_file_does_the_same() {
    for name in ["newreno", "bbr"] {
        let file = format!("{}/cc/algorithms/{name}.c", env!("CARGO_MANIFEST_DIR"));
        let copy = fs::read_to_string(file).unwrap();
        let copy = copy.replace(name, "mine").replace(&name.to_uppercase(), "MINE");
        let mut spec = with_loss(spec(name, 2, 10_000_000, 10 * NS_PER_S), 0.001);
        spec.record.trace = true;
        let built_in = run(&spec);
        let mine =
            load_text(&format!("{name}-copy.c"), &copy.replace("mine", &format!("mine_{name}")));
        let mine = Cc::Knee(Params::defaults(mine.unwrap()));
        for flow in &mut spec.flows {
            let FlowKind::Tcp(tcp) = &mut flow.kind else { panic!("TCP") };
            tcp.cc = mine.clone();
        }
        let own = run(&spec);
        for (own, built_in) in own.flows.iter().zip(&built_in.flows) {
            assert!(own.counters.delivered_bytes > 2_000_000, "{:?}", own.counters);
            assert_eq!(own.counters, built_in.counters, "{name}");
            assert!(own.trace == built_in.trace, "{name}: other calls");
        }
    }
}

/// Every discipline accounts for each packet, and its marks arrive.
#[test]
#[ignore = "needs a kernel: scripts/test-linux.sh"]
fn every_discipline_carries_packets() {
    let disciplines = [
        None,
        Some(Discipline::Red(Default::default())),
        Some(Discipline::Fred(Default::default())),
        Some(Discipline::CoDel(Default::default())),
        Some(Discipline::FqCoDel(Default::default())),
        Some(Discipline::Pie(Default::default())),
    ];
    for discipline in disciplines {
        let mut spec = spec("newreno", 4, 20_000_000, 10 * NS_PER_S);
        let aqm = discipline.map(|discipline| Aqm { discipline, ecn: true });
        spec.path = spec.path.with_each_hop(|hop| hop.aqm.clone_from(&aqm));
        for flow in &mut spec.flows {
            let FlowKind::Tcp(tcp) = &mut flow.kind else { panic!("TCP") };
            tcp.options.ecn = aqm.is_some();
        }
        let record = run(&spec);
        let marked: u64 = record.flows.iter().map(|flow| flow.counters.marked_pkts).sum();
        // FRED drops what is above a flow's share, which is all here.
        let marks = aqm.as_ref().is_some_and(|aqm| !matches!(aqm.discipline, Discipline::Fred(_)));
        assert_eq!(marked > 0, marks, "{aqm:?}");
        assert!(record.queues[0].dropped_pkts > 0, "{aqm:?}");
        for flow in &record.flows {
            let c = &flow.counters;
            let ends =
                c.delivered_pkts + c.duplicate_pkts + c.queue_drops_pkts + c.random_losses_pkts;
            assert_eq!(c.sent_pkts, ends + c.in_network_pkts, "{c:?}");
            assert!(c.delivered_bytes > 2_000_000, "{c:?}");
        }
    }
}

/// Jitter, reordering, losses in both directions and a delay that changes, over three hops.
#[test]
#[ignore = "needs a kernel: scripts/test-linux.sh"]
fn every_part_of_a_path_counts() {
    let hop = |rate_bps| HopSpec {
        delay_ns: 5 * NS_PER_MS,
        ..HopSpec::new(rate_bps, QueueLimit::Packets(50))
    };
    let hops = vec![hop(20_000_000), hop(10_000_000), hop(15_000_000)];
    let path = PathSpec {
        jitter_forward_ns: 3 * NS_PER_MS,
        jitter_reverse_ns: NS_PER_MS,
        noise_ns: NS_PER_MS,
        loss_reverse: 0.02,
        reorder: Some(Reorder { probability: 0.01, extra_delay_ns: 5 * NS_PER_MS }),
        delay_forward_steps: vec![(5 * NS_PER_S, 40 * NS_PER_MS)],
        ..PathSpec::over(hops, RTT_NS)
    };
    let mut spec = spec("newreno", 3, 10_000_000, 10 * NS_PER_S);
    spec.path = path;
    (spec.flows[1].route.first_hop, spec.flows[1].route.last_hop) = (0, Some(1));
    spec.flows[2].route.first_hop = 2;
    spec.flows[2].access_jitter_ns = NS_PER_MS;
    spec.record.bin_ns = NS_PER_S;
    let record = run(&spec);
    assert_eq!(record.queues.len(), 3);
    for flow in &record.flows {
        let c = &flow.counters;
        let ends = c.delivered_pkts + c.duplicate_pkts + c.queue_drops_pkts + c.random_losses_pkts;
        assert_eq!(c.sent_pkts, ends + c.in_network_pkts, "{}: {c:?}", flow.name);
        assert!(c.ack_losses_pkts > 0 && c.delivered_bytes > 500_000, "{}: {c:?}", flow.name);
        // A smoothed RTT of the empty path at least, before and after the step.
        let srtt_us = |row: usize| u64::from(flow.samples[row].srtt_us);
        assert!(srtt_us(4) * 1000 > RTT_NS && srtt_us(9) * 1000 > RTT_NS + 20 * NS_PER_MS);
    }
}

/// A flow stops while its packets are on the path: the reset that answers them does not stop the others.
#[test]
#[ignore = "needs a kernel: scripts/test-linux.sh"]
fn a_flow_that_stops_leaves_the_others_alone() {
    let mut spec = spec("newreno", 2, 10_000_000, 10 * NS_PER_S);
    spec.flows[0].stop_ns = Some(4 * NS_PER_S);
    spec.record.bin_ns = 100 * NS_PER_MS;
    let record = run(&spec);
    let after = record.flows[1].samples.iter().skip(41);
    let sent_pkts: Vec<u32> = after.map(|sample| sample.sent_pkts).collect();
    assert!(sent_pkts.len() > 50 && sent_pkts.iter().all(|pkts| *pkts > 0), "{sent_pkts:?}");
    assert_eq!(record.flows[1].counters.timeouts, 0);
}

/// Transfers, a flow that stops, one in the reverse direction, UDP competing with TCP, and an algorithm of the kernel.
#[test]
#[ignore = "needs a kernel: scripts/test-linux.sh"]
fn a_mixed_run() {
    let mut spec = spec("cubic", 1, 10_000_000, 10 * NS_PER_S);
    spec.path.reverse = Some(knee_model::ReverseLink {
        rate_bps: 5_000_000,
        rate_varies: None,
        queue: QueueLimit::Packets(50),
    });
    let tcp = |cc: Cc, workload| {
        FlowKind::Tcp(TcpSpec {
            transport: Transport::Own,
            cc,
            workload,
            options: TcpOptions::default(),
        })
    };
    let transfers = Workload::Transfers { size_bytes: 100_000, every_ns: Some(2 * NS_PER_S) };
    let kernels = || Cc::Kernel("reno".to_owned());
    spec.flows.push(FlowSpec::new("transfers", tcp(kernels(), transfers)));
    let mut stops = FlowSpec::new("stops", tcp(kernels(), Workload::Bulk));
    (stops.start_ns, stops.stop_ns) = (NS_PER_S, Some(4 * NS_PER_S));
    spec.flows.push(stops);
    let mut reverse = FlowSpec::new("reverse", tcp(kernels(), Workload::Bulk));
    reverse.route.reverse = true;
    spec.flows.push(reverse);
    let udp = FlowKind::Udp { rate_bps: 1_000_000, steps: Vec::new(), packet_bytes: 500 };
    spec.flows.push(FlowSpec::new("udp", udp));
    spec.record.bin_ns = NS_PER_S;
    let record = run(&spec);
    let flow = |name: &str| record.flows.iter().find(|flow| flow.name == name).unwrap();
    let done = &flow("transfers").transfers;
    assert_eq!(
        done.iter().map(|t| t.start_ns).collect::<Vec<_>>(),
        [0, 2, 4, 6, 8].map(|s| s * NS_PER_S)
    );
    assert!(
        done.iter().all(|t| t.bytes == 100_000 && t.end_ns - t.start_ns > 2 * RTT_NS),
        "{done:?}"
    );
    let sent: Vec<_> = flow("stops").samples.iter().map(|row| row.sent_pkts).collect();
    assert!(sent[0] == 0 && sent[1..4].iter().all(|pkts| *pkts > 50), "{sent:?}");
    // It ends with a reset.
    assert_eq!(sent[4..], [1, 0, 0, 0, 0, 0]);
    assert!(flow("reverse").counters.delivered_bytes > 4_000_000);
    assert_eq!(flow("udp").counters.sent_pkts, 2501);
    assert!(record.reverse_queue.is_some());
}

#[test]
fn what_it_does_not_carry_is_refused_with_a_remedy() {
    let refused = |change: &dyn Fn(&mut TcpSpec)| {
        let mut spec = spec("chd", 2, 10_000_000, NS_PER_S);
        let FlowKind::Tcp(tcp) = &mut spec.flows[1].kind else { panic!("TCP") };
        change(tcp);
        let error = Linux.check(&spec, &RunOptions::default()).unwrap_err();
        assert_eq!(error.kind, HostErrorKind::Unsupported);
        assert!(error.help.is_some_and(|help| !help.is_empty()), "{}", error.why);
        assert!(error.why.starts_with("flow chd-2: "), "{}", error.why);
    };
    refused(&|tcp| tcp.transport = Transport::Quic);
    refused(&|tcp| tcp.options.header_bytes = 60);
    refused(&|tcp| tcp.options.rtt_tick_ns = NS_PER_MS);
    refused(&|tcp| tcp.options.delayed_ack.every_pkts = 3);
    refused(&|tcp| tcp.options.rto_min_ns = 1);
    refused(&|tcp| tcp.options.limited_transmit = false);
    refused(&|tcp| tcp.options.ecn = true);
    refused(&|tcp| tcp.options.receive_window_pkts = u32::MAX);
    refused(&|tcp| tcp.cc = Cc::Kernel("a-name-that-is-too-long".to_owned()));
    let qlog = RunOptions { qlog: Some("x".into()), ..RunOptions::default() };
    let error = Linux.check(&spec("chd", 1, 10_000_000, NS_PER_S), &qlog).unwrap_err();
    assert_eq!(error.kind, HostErrorKind::Unsupported);
}

#[test]
#[ignore = "needs a kernel: scripts/test-linux.sh"]
fn an_algorithm_that_the_kernel_lacks_is_named() {
    kernel();
    let mut spec = spec("chd", 1, 10_000_000, NS_PER_S);
    let FlowKind::Tcp(tcp) = &mut spec.flows[0].kind else { panic!("TCP") };
    tcp.cc = Cc::Kernel("nonesuch".to_owned());
    let error = Linux.run(&spec, &options()).unwrap_err();
    let missing = "flow chd-1: this kernel has no congestion control \"nonesuch\"";
    assert!(error.why.contains(missing), "{}", error.why);
    let other = RunOptions { kernel: Some("debian:2.2".to_owned()), ..RunOptions::default() };
    let error = Linux.run(&spec, &other).unwrap_err();
    assert_eq!(error.kind, HostErrorKind::Unavailable);
    assert!(error.help.is_some_and(|help| help.contains("knee linux build debian:2.2")));
}

/// Run by [`a_kill_leaves_no_process`], in a process of its own.
#[test]
fn endless() {
    if env::var_os(ENDLESS).is_none() {
        return;
    }
    run(&spec("newreno", 1, 100_000_000, 1_000_000 * NS_PER_S));
}

/// Children of process `parent`.
fn children(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let of_parent = |id: &u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let fields = stat.rsplit(") ").next().unwrap_or_default();
        fields.split(' ').nth(1) == Some(&parent.to_string())
    };
    ids.filter(of_parent).collect()
}

#[test]
#[ignore = "needs a kernel: scripts/test-linux.sh"]
fn a_kill_leaves_no_process() {
    kernel();
    let mut parent = Command::new(env::current_exe().unwrap())
        .args(["--exact", "endless"])
        .env(ENDLESS, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let wait = |done: &dyn Fn() -> bool| {
        while !done() {
            assert!(Instant::now() < deadline, "60 s have passed");
            thread::sleep(Duration::from_millis(20));
        }
    };
    wait(&|| !children(parent.id()).is_empty());
    let guests = children(parent.id());
    parent.kill().unwrap();
    parent.wait().unwrap();
    let gone = |id: &u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    wait(&|| guests.iter().all(gone));
}

fn sysctl(name: &str, value: &str, ends: [bool; 2]) -> Sysctl {
    Sysctl { name: name.to_owned(), value: value.to_owned(), ends }
}

/// Without window scaling the receiver's window is 64 kB: 13 Mbit/s with this round-trip time.
#[test]
#[ignore = "needs a kernel: scripts/test-linux.sh"]
fn sysctls_take_effect_at_their_ends() {
    let goodput_bps = |sysctls: Vec<Sysctl>| {
        let spec = RunSpec { sysctls, ..spec("newreno", 1, 100_000_000, 10 * NS_PER_S) };
        let record = run(&spec);
        let named = record.approximations.iter().any(|line| line.starts_with("sysctls: net.ipv4."));
        assert_eq!(named, !spec.sysctls.is_empty(), "{:?}", record.approximations);
        record.flows[0].counters.delivered_bytes as f64 * 8.0 / 10.0
    };
    let usual_bps = goodput_bps(Vec::new());
    let slow_bps = goodput_bps(vec![sysctl("tcp_window_scaling", "0", [false, true])]);
    assert!(usual_bps > 80e6 && (11e6..14e6).contains(&slow_bps), "{usual_bps} {slow_bps}");
    // A later one overrides an earlier one; a list of numbers; one that both ends share.
    let again = goodput_bps(vec![
        sysctl("tcp_window_scaling", "0", [true, true]),
        sysctl("tcp_window_scaling", "1", [true, true]),
        sysctl("tcp_rmem", "4096 131072 1073741824", [false, true]),
        sysctl("tcp_mem", "1048576 1048576 1048576", [true, true]),
    ]);
    assert_eq!(again, usual_bps);
}

#[test]
#[ignore = "needs a kernel: scripts/test-linux.sh"]
fn a_sysctl_that_the_kernel_does_not_take_is_named() {
    kernel();
    let refused = |name: &str, value: &str, why: &str| {
        let sysctls = vec![sysctl(name, value, [true, false])];
        let spec = RunSpec { sysctls, ..spec("newreno", 1, 10_000_000, NS_PER_S) };
        let error = Linux.run(&spec, &options()).unwrap_err();
        assert_eq!(error.kind, HostErrorKind::Unsupported, "{}", error.why);
        assert!(error.why.contains(why) && error.help.is_some(), "{}", error.why);
    };
    refused("tcp_nonesuch", "1", "this kernel has no sysctl net.ipv4.tcp_nonesuch");
    refused("tcp_sack", "many", "does not take net.ipv4.tcp_sack = many: Invalid argument");
    refused("tcp_retries1", "1000", "net.ipv4.tcp_retries1 = 1000");
    refused("tcp_ehash_entries", "1", "net.ipv4.tcp_ehash_entries = 1");
}

/// A packet in a file: interface, time, bytes, length of the whole packet, and comment.
type FilePacket = (u32, Duration, Vec<u8>, u32, Option<String>);

fn packets(file: &Path) -> Vec<FilePacket> {
    let mut reader = PcapNgReader::new(fs::File::open(file).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
        let comment = packet.options.iter().find_map(|option| match option {
            EnhancedPacketOption::Comment(text) => Some(text.to_string()),
            _ => None,
        });
        let data = packet.data.to_vec();
        packets.push((packet.interface_id, packet.timestamp, data, packet.original_len, comment));
    }
    packets
}

/// The Internet checksum over a segment whose payload is zeros, with its pseudo header: 0 if it is sound.
fn checksum(headers: &[u8], bytes: u32) -> u16 {
    let words = headers[12..].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
    let mut sum = words.sum::<u32>() + 6 + bytes - 20;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[test]
#[ignore = "needs a kernel: scripts/test-linux.sh"]
fn every_packet_comes_into_the_file() {
    let mut spec = with_loss(spec("newreno", 2, 10_000_000, 5 * NS_PER_S), 0.01);
    spec.path.loss_reverse = 0.01;
    kernel();
    let folder = tempfile::tempdir().unwrap();
    let capture = |name: &str| {
        let file = folder.path().join(name);
        let record = Linux.run(&spec, &RunOptions { pcap: Some(file.clone()), ..options() });
        (record.unwrap(), file)
    };
    let (record, file) = capture("one.pcapng");
    assert_eq!(record, run(&spec), "a capture changes nothing");
    let packets = packets(&file);
    let sum = |count: fn(&FlowCounters) -> u64| {
        record.flows.iter().map(|flow| count(&flow.counters)).sum::<u64>()
    };
    let lost = |how: &str| packets.iter().filter(|p| p.4.as_deref() == Some(how)).count() as u64;
    assert_eq!(lost("lost"), sum(|c| c.random_losses_pkts));
    assert_eq!(lost("dropped"), sum(|c| c.queue_drops_pkts));
    assert_eq!(lost("lost on the reverse path"), sum(|c| c.ack_losses_pkts));
    let data = |place: u32| packets.iter().filter(|p| p.0 == place && p.3 > 1000).count() as u64;
    let arrived = sum(|c| c.delivered_pkts + c.duplicate_pkts);
    // Without the packets of the handshakes.
    assert!(data(0).abs_diff(sum(|c| c.sent_pkts)) <= 6, "{} sent", data(0));
    assert!(data(1).abs_diff(arrived) <= 6, "{} arrived", data(1));
    let start = Duration::from_secs(1_750_000_000);
    for (place, time, headers, bytes, _) in &packets {
        assert!(*place < 3 && *time >= start && *time <= start + Duration::from_secs(5));
        assert!((40..=100).contains(&headers.len()) && headers.len() as u32 <= *bytes);
        assert_eq!(checksum(headers, *bytes), 0, "{headers:?}");
    }
    assert!(packets.is_sorted_by_key(|packet| packet.1));
    let (_, again) = capture("two.pcapng");
    assert!(fs::read(&file).unwrap() == fs::read(again).unwrap());
    let there = RunOptions { pcap: Some(file), ..options() };
    let error = Linux.run(&spec, &there).unwrap_err();
    assert!(error.why.contains("cannot write the packets"), "{}", error.why);
}

/// Run by [`a_guest_that_goes_astray_ends_with_its_last_lines`], in a process of its own: an algorithm that does what
/// the variable says.
#[test]
fn astray() {
    let Ok(statement) = env::var(ASTRAY) else { return };
    let file = format!("{}/cc/algorithms/newreno.c", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(file).unwrap();
    let text = text.replace("newreno", "astray").replace("NEWRENO", "ASTRAY");
    let growth = "\treno_grow(";
    assert!(text.contains(growth), "{text}");
    let text = text.replace(growth, &format!("\t{statement}\n{growth}"));
    let mut spec = spec("newreno", 1, 10_000_000, 10 * NS_PER_S);
    let FlowKind::Tcp(tcp) = &mut spec.flows[0].kind else { panic!("TCP") };
    tcp.cc = Cc::Knee(Params::defaults(load_text("astray.c", &text).unwrap()));
    let error = Linux.run(&spec, &options()).unwrap_err();
    println!("{}\n{}", error.why, error.help.unwrap_or_default());
}

#[test]
#[ignore = "needs a kernel: scripts/test-linux.sh"]
fn a_guest_that_goes_astray_ends_with_its_last_lines() {
    kernel();
    let said = |statement: &str| {
        let start = Instant::now();
        let output = Command::new(env::current_exe().unwrap())
            .args(["--exact", "astray", "--nocapture"])
            .envs([(ASTRAY, statement), ("KNEE_LINUX_SILENCE_S", "2")])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        assert!(start.elapsed() < Duration::from_secs(60));
        said
    };
    let spins = said("for (;;)\n\t\t;");
    assert!(spins.contains("the kernel has made no progress for 2 s"), "{spins}");
    let panics = said("*(volatile int *)0 = 1;");
    assert!(panics.contains("the kernel ended without a record"), "{panics}");
    assert!(panics.contains("its last lines:") && panics.contains("Kernel panic"), "{panics}");
}

/// Twenty flows on a path that holds more packets than the guest has memory for.
#[test]
#[ignore = "needs a kernel: scripts/test-linux.sh"]
fn a_guest_without_memory_ends_with_its_last_lines() {
    kernel();
    let mut spec = spec("newreno", 20, 4_000_000_000, 400 * NS_PER_S);
    spec.path = PathSpec::symmetric(4_000_000_000, 10 * NS_PER_S, QueueLimit::Packets(1_000_000));
    let error = Linux.run(&spec, &options()).unwrap_err();
    let help = error.help.unwrap_or_default();
    assert!(help.contains("its last lines:") && help.contains("memory"), "{} {help}", error.why);
}
