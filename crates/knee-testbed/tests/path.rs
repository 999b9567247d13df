//! Real TCP over the emulated path.

#![allow(missing_docs)]

mod common;

use common::{
    MBIT, MS, S, bulk, goodput, kernel, loses_as_in_the_simulator, run, run_until, spec, steadily,
    tcp, ten_mbit, timely, with_cc,
};
use knee_model::{
    Aqm, CoDel, DelayedAck, Discipline, FlowKind, FlowSpec, PacketEvent, ReceiverConduct, Recovery,
    RunRecord, RunSpec, TcpOptions, Workload,
};
use std::{fs, thread};

fn reno() -> RunSpec {
    spec(ten_mbit(84), 8 * S, vec![bulk("reno")])
}

#[test]
fn reno_fills_the_queue() {
    // After the first loss the window is smaller once.
    let backs_off = |record: &RunRecord| {
        record.flows[0]
            .samples
            .windows(2)
            .any(|pair| pair[1].cwnd_pkts * 10 < pair[0].cwnd_pkts * 9)
    };
    let enough = |record: &RunRecord| {
        let (c, queue) = (&record.flows[0].counters, &record.queues[0]);
        queue.max_pkts == 84
            && queue.dropped_pkts > 0
            && c.retransmitted_pkts > 0
            && c.loss_events > 0
            && backs_off(record)
    };
    let (_, outcome) = run_until(&reno(), enough);
    let (flow, queue) = (&outcome.flows[0], &outcome.queues[0]);
    assert_eq!(flow.kind, "kernel:reno");
    // 83 packets of 1.2 ms before one's own transmission.
    assert!(queue.delay.max_ns() < 83 * 1_200_001, "{}", queue.delay.max_ns());
    assert_eq!(flow.counters.queue_drops_pkts, queue.dropped_pkts);
    let lateness = outcome.real_time.as_ref().expect("real time").lateness;
    // Data and ACKs are counted when they reach a host.
    assert!(lateness.count > flow.counters.delivered_pkts, "{lateness:?}");
    assert!(lateness.mean_ns > 0 && lateness.p99_ns <= lateness.max_ns, "{lateness:?}");
}

#[test]
#[ignore = "measured in real time, on an idle machine: scripts/nightly.sh measured"]
fn reno_fills_the_papers_path() {
    steadily(|| {
        let outcome = timely(&reno());
        let rate = goodput(&outcome, 0);
        assert!((8.5e6..9.7e6).contains(&rate), "{rate}");
        let largest_ms = outcome.queues[0].delay.max_ns() as f64 / 1e6;
        assert!((98.0..99.7).contains(&largest_ms), "{largest_ms}");
        let c = &outcome.flows[0].counters;
        assert!((1..20).contains(&c.loss_events), "{c:?}");
        // The sawtooth: after the first loss the window halves and grows again.
        let windows: Vec<u32> = outcome.flows[0].samples.iter().map(|s| s.cwnd_pkts).collect();
        let last = &windows[windows.len() / 4..];
        let (low, high) = (last.iter().min().expect("some"), last.iter().max().expect("some"));
        assert!(*high >= 100 && *low <= 75, "{windows:?}");
    });
}

fn codel(ecn: bool) -> RunSpec {
    let aqm = Aqm { discipline: Discipline::CoDel(CoDel::default()), ecn: true };
    let path = ten_mbit(250).with_each_hop(|hop| hop.aqm = Some(aqm.clone()));
    let options = TcpOptions { ecn, ..TcpOptions::default() };
    spec(path, 8 * S, vec![tcp("reno", Workload::Bulk, options)])
}

/// CoDel before the kernel's TCP: with ECN it marks and drops nothing; without, it drops.
#[test]
fn codel_marks_the_kernels_packets() {
    let marked = run_until(&codel(true), |record| record.flows[0].counters.marked_pkts > 2).1;
    assert_eq!(marked.flows[0].counters.marked_pkts, marked.queues[0].marked_pkts);
    let full = |l: &knee_model::PacketLog| l.event != PacketEvent::Dropped || l.held_pkts == 250;
    assert!(marked.queues[0].log.iter().all(full), "CoDel drops what it could mark");
    let dropped =
        run_until(&codel(false), |record| record.flows[0].counters.queue_drops_pkts > 2).1;
    let c = &dropped.flows[0].counters;
    assert_eq!((c.marked_pkts, dropped.queues[0].marked_pkts), (0, 0));
    assert_eq!(c.queue_drops_pkts, dropped.queues[0].dropped_pkts);
}

#[test]
#[ignore = "measured in real time, on an idle machine: scripts/nightly.sh measured"]
fn codel_keeps_the_queue_short() {
    steadily(|| {
        for ecn in [true, false] {
            let outcome = timely(&codel(ecn));
            assert!(goodput(&outcome, 0) > 7.5e6, "{}", goodput(&outcome, 0));
            let late = &outcome.queues[0].bins[40..];
            let delay_ns: u64 = late.iter().map(|b| b.delay_sum_ns).sum();
            let pkts: u64 = late.iter().map(|b| u64::from(b.departed_pkts)).sum();
            assert!(delay_ns / pkts < 20 * MS, "{} ms", delay_ns / pkts / MS);
            let c = &outcome.flows[0].counters;
            assert!(!ecn || (c.queue_drops_pkts, c.retransmitted_pkts) == (0, 0), "{c:?}");
        }
    });
}

/// A probe every 20 ms, and a packet of TCP every 100 ms.
fn idle() -> RunSpec {
    let workload = Workload::Transfers { size_bytes: 1448, every_ns: Some(100 * MS) };
    let probe = FlowKind::Probe { interval_ns: 20 * MS, packet_bytes: 100 };
    let flows = vec![FlowSpec::new("probe", probe), tcp("small", workload, TcpOptions::default())];
    spec(ten_mbit(84), 2 * S, flows)
}

#[test]
fn nothing_arrives_before_the_paths_delay() {
    let enough = |record: &RunRecord| {
        record.flows[0].probe_delays.len() > 10 && record.flows[1].transfers.len() > 5
    };
    let (spec, outcome) = run_until(&idle(), enough);
    let [probe, small] = &outcome.flows[..] else { panic!("two flows") };
    assert!(probe.probe_delays.len() as u64 <= spec.duration_ns / (20 * MS));
    // 20 ms and the transmission of 100 bytes.
    assert!(probe.probe_delays.iter().all(|(_, delay_ns)| *delay_ns >= 20 * MS + 80_000));
    // 40 ms and the transmission of 1500 bytes.
    let srtt_us = small.samples.last().expect("some").srtt_us;
    assert!(srtt_us >= 41_200, "{srtt_us}");
    assert!(small.transfers.len() as u64 <= spec.duration_ns / (100 * MS));
    assert!(small.transfers.iter().all(|t| t.end_ns - t.start_ns >= 21 * MS));
}

#[test]
#[ignore = "measured in real time, on an idle machine: scripts/nightly.sh measured"]
fn an_idle_path_has_its_delay() {
    steadily(|| {
        let outcome = timely(&idle());
        let [probe, small] = &outcome.flows[..] else { panic!("two flows") };
        assert!((97..=100).contains(&probe.probe_delays.len()), "{}", probe.probe_delays.len());
        let median_ns = probe.one_way_delay.quantile_ns(0.5);
        assert!(median_ns <= 21 * MS, "{median_ns}");
        let srtt_us = small.samples.last().expect("some").srtt_us;
        assert!(srtt_us < 43_200, "{srtt_us}");
        assert!((18..=20).contains(&small.transfers.len()), "{:?}", small.transfers);
        // The first one waits for the handshake.
        let took_ns = small.transfers[1..].iter().map(|t| t.end_ns - t.start_ns);
        let mut took_ns: Vec<_> = took_ns.collect();
        took_ns.sort_unstable();
        assert!(took_ns[took_ns.len() / 2] < 24 * MS, "{took_ns:?}");
    });
}

#[test]
fn loses_the_very_packets_that_the_simulator_loses() {
    let udp = FlowKind::Udp { rate_bps: 4 * MBIT, steps: Vec::new(), packet_bytes: 200 };
    let mut spec = spec(ten_mbit(84), 3 * S, vec![FlowSpec::new("udp", udp)]);
    spec.path.hops[0].loss = 0.05;
    loses_as_in_the_simulator(&spec);
}

/// CUBIC without SACK at 20 Mbit/s, and Reno at 10 Mbit/s.
fn fast_and_slow() -> [RunSpec; 2] {
    let options =
        TcpOptions { recovery: Recovery::Newreno, idle_restart: false, ..TcpOptions::default() };
    let mut fast = spec(ten_mbit(84), 3 * S, vec![tcp("fast", Workload::Bulk, options)]);
    fast.path.hops[0].rate_bps = 20 * MBIT;
    [with_cc(&fast, &kernel("cubic")), spec(ten_mbit(84), 3 * S, vec![bulk("slow")])]
}

fn at_once(run: impl Fn(&RunSpec) -> RunRecord + Sync) -> [RunRecord; 2] {
    let (run, [fast, slow]) = (&run, &fast_and_slow());
    thread::scope(|s| {
        [s.spawn(|| run(fast)), s.spawn(|| run(slow))].map(|run| run.join().expect("no panic"))
    })
}

#[test]
fn runs_at_once_do_not_disturb_each_other_or_the_machine() {
    let machine = || {
        let files = ["/proc/net/dev", "/proc/net/route"].map(fs::read_to_string);
        let [devices, routes] = files.map(|text| text.expect("readable"));
        let names: Vec<String> =
            devices.lines().filter_map(|l| Some(l.split_once(':')?.0.to_owned())).collect();
        let sysctls =
            ["tcp_sack", "tcp_timestamps", "tcp_no_metrics_save", "tcp_slow_start_after_idle"];
        let sysctls = sysctls.map(|s| fs::read_to_string(format!("/proc/sys/net/ipv4/{s}")));
        (names, routes, sysctls.map(|s| s.expect("readable")))
    };
    let before = machine();
    let outcomes = at_once(|spec| {
        let carries = |record: &RunRecord| record.flows[0].counters.delivered_pkts > 100;
        run_until(spec, carries).1
    });
    let kinds = outcomes.map(|outcome| outcome.flows[0].kind.clone());
    assert_eq!(kinds, ["kernel:cubic", "kernel:reno"]);
    assert_eq!(machine(), before);
}

#[test]
#[ignore = "measured in real time, on an idle machine: scripts/nightly.sh measured"]
fn runs_at_once_have_their_rates() {
    steadily(|| {
        let rates = at_once(timely).map(|outcome| goodput(&outcome, 0));
        // First round trips and headers cost the rest. Recovery without SACK repairs one lost packet a round
        // trip, but new data flow meanwhile: nine runs of each gave 18.4 and 9.3 Mbit/s.
        assert!((17.9e6..18.9e6).contains(&rates[0]), "{rates:?}");
        assert!((8.9e6..9.6e6).contains(&rates[1]), "{rates:?}");
    });
}

/// A tenth of the ACKs are lost; stopped after 4 s.
fn acknowledged(every_pkts: u32) -> RunSpec {
    let options = TcpOptions {
        initial_window_pkts: 3,
        delayed_ack: DelayedAck { every_pkts, timeout_ns: 40 * MS },
        ..TcpOptions::default()
    };
    let mut spec = spec(ten_mbit(150), 5 * S, vec![tcp("bulk", Workload::Bulk, options)]);
    spec.path.loss_reverse = 0.1;
    spec.flows[0].stop_ns = Some(4 * S);
    spec
}

#[test]
fn the_stack_obeys_its_options() {
    for every_pkts in [1, 2] {
        // New data before the first ACK can be back.
        let first_pkts = |record: &RunRecord| {
            let data =
                |l: &&knee_model::PacketLog| l.event == PacketEvent::Enqueued && l.bytes == 1500;
            let mut data = record.queues[0].log.iter().filter(data).peekable();
            let first_ns = data.peek().map_or(0, |first| first.time_ns);
            data.take_while(|l| l.time_ns < first_ns + 40 * MS).count()
        };
        let enough = |record: &RunRecord| {
            let flow = &record.flows[0];
            assert!(first_pkts(record) <= 3, "the initial window");
            // Once stopped it sends nothing more.
            let last = &flow.samples[flow.samples.len() - 5..];
            first_pkts(record) == 3
                && last.iter().all(|s| s.sent_pkts == 0 && s.cwnd_pkts == 0)
                && flow.samples.iter().any(|s| s.cwnd_pkts > 10)
                && flow.counters.ack_losses_pkts > 0
        };
        let (_, outcome) = run_until(&acknowledged(every_pkts), enough);
        // Delayed ACKs, and the receive window that goes with them.
        assert_eq!(outcome.approximations.len(), if every_pkts == 1 { 0 } else { 2 });
        assert_eq!(outcome.flows[0].stop_ns, 4 * S);
    }
}

/// Half of the packets are lost: timeouts follow each other, the sooner the shorter the minimum RTO.
#[test]
fn the_minimum_rto_counts() {
    let timeouts = |rto_min_ns| {
        let options = TcpOptions { rto_min_ns, ..TcpOptions::default() };
        let mut spec = spec(ten_mbit(150), 4 * S, vec![tcp("bulk", Workload::Bulk, options)]);
        spec.path.hops[0].loss = 0.5;
        run(&spec).flows[0].counters.timeouts
    };
    // Even if nothing arrived: after 0.1, 0.3, 0.7, 1.5 and 3.1 s, and after 1 and 3 s.
    let (soon, late) = (timeouts(10 * MS), timeouts(S));
    assert!(soon >= 5 && late <= 3, "{soon} and {late}");
}

#[test]
#[ignore = "measured in real time, on an idle machine: scripts/nightly.sh measured"]
fn acks_are_as_many_as_requested() {
    steadily(|| {
        let losses = |every_pkts| {
            let outcome = timely(&acknowledged(every_pkts));
            let flow = &outcome.flows[0];
            // Once stopped it sends nothing but a reset.
            let after = flow.samples[41..].iter().map(|s| s.sent_pkts).sum::<u32>();
            assert!(after <= 1 && flow.samples[45].cwnd_pkts == 0, "{after}");
            flow.counters.ack_losses_pkts as f64 / flow.counters.delivered_pkts as f64
        };
        let (each, second) = (losses(1), losses(2));
        assert!((0.07..0.13).contains(&each), "{each}");
        // Half as many, and each of the packets that open the window.
        assert!((0.045..0.075).contains(&second), "{second}");
    });
}

#[test]
fn the_receive_window_bounds_the_flight() {
    for pkts in [50, 200] {
        let options = TcpOptions { receive_window_pkts: pkts, ..TcpOptions::default() };
        let spec = spec(ten_mbit(400), 4 * S, vec![tcp("bulk", Workload::Bulk, options)]);
        run_until(&spec, |record| {
            assert_eq!(record.queues[0].dropped_pkts, 0);
            let flight = record.flows[0].samples.iter().map(|s| s.inflight_pkts).max();
            assert!(flight <= Some(pkts), "{flight:?}");
            flight == Some(pkts)
        });
    }
}

fn bbr_and_late_cubic() -> RunSpec {
    let mut late = bulk("late");
    late.start_ns = 500 * MS;
    (late.access_delay_ns, late.access_jitter_ns) = (5 * MS, MS);
    let mut flows = vec![bulk("early"), late];
    for (flow, cc) in flows.iter_mut().zip(["bbr", "cubic"]) {
        let FlowKind::Tcp(tcp) = &mut flow.kind else { panic!("TCP") };
        tcp.cc = kernel(cc);
    }
    spec(ten_mbit(84), 4 * S, flows)
}

#[test]
fn two_flows_are_distinct() {
    let enough =
        |record: &RunRecord| record.flows.iter().all(|flow| flow.counters.delivered_pkts > 100);
    let (_, outcome) = run_until(&bbr_and_late_cubic(), enough);
    let [early, late] = &outcome.flows[..] else { panic!("two flows") };
    assert_eq!((early.kind.as_str(), late.kind.as_str()), ("kernel:bbr", "kernel:cubic"));
    assert_eq!((late.start_ns, late.samples[4].sent_pkts), (500 * MS, 0));
    let first = outcome.queues[0].log.iter().find(|l| l.flow == 1).expect("packets");
    assert!(first.time_ns >= 505 * MS, "{first:?}");
}

#[test]
#[ignore = "measured in real time, on an idle machine: scripts/nightly.sh measured"]
fn two_flows_share() {
    steadily(|| {
        let outcome = timely(&bbr_and_late_cubic());
        let rates = (goodput(&outcome, 0), goodput(&outcome, 1));
        // CUBIC comes to a path that BBR has filled, and has not reached its half after 3.5 s. Ten runs gave
        // 6.3 to 6.8 and 2.6 to 3.1 Mbit/s; both together leave the first round trips and the headers.
        assert!((5.9e6..7.2e6).contains(&rates.0), "{rates:?}");
        assert!((2.3e6..3.4e6).contains(&rates.1), "{rates:?}");
        assert!((9.1e6..9.65e6).contains(&(rates.0 + rates.1)), "{rates:?}");
    });
}

#[test]
fn impossible_options_are_refused() {
    let run = |spec: &knee_model::RunSpec| {
        knee_testbed::run(spec, &knee_model::RunOptions::default(), None).expect_err("refused")
    };
    let one = |options| spec(ten_mbit(84), S, vec![tcp("one", Workload::Bulk, options)]);
    let plain = one(TcpOptions::default());
    let unknown = run(&with_cc(&plain, &kernel("no-such-cc")));
    assert_eq!(unknown.why, "flow one: this kernel has no congestion control \"no-such-cc\"");
    let help = unknown.help.expect("a remedy");
    assert!(help.split(' ').any(|a| a == "reno"), "{help}");
    let default = TcpOptions::default;
    let delayed = |every_pkts, timeout_ns| TcpOptions {
        delayed_ack: DelayedAck { every_pkts, timeout_ns },
        ..default()
    };
    for (options, option) in [
        (delayed(8, 40 * MS), "tcp.delayed_ack_every"),
        (delayed(2, MS), "tcp.delayed_ack_timeout"),
        (TcpOptions { header_bytes: 60, ..default() }, "tcp.header"),
        (TcpOptions { limited_transmit: false, ..default() }, "tcp.limited_transmit"),
        (TcpOptions { rtt_tick_ns: MS, ..default() }, "tcp.rtt_tick"),
        (TcpOptions { receiver: ReceiverConduct::ConcealsLoss, ..default() }, "tcp.receiver"),
        (TcpOptions { rto_min_ns: 1, ..default() }, "tcp.rto_min"),
        (TcpOptions { receive_window_pkts: u32::MAX, ..default() }, "tcp.receive_window"),
    ] {
        let error = run(&one(options)).to_string();
        assert!(error.contains("flow one") && error.contains(option), "{error}");
    }
    let newreno = TcpOptions { recovery: Recovery::Newreno, ..default() };
    let flows = vec![bulk("one"), tcp("two", Workload::Bulk, newreno)];
    let error = run(&spec(ten_mbit(84), S, flows)).to_string();
    assert!(error.contains("flow two: tcp.recovery"), "{error}");
}

#[test]
fn without_root_it_says_so() {
    let spec = spec(ten_mbit(84), S, vec![bulk("one")]);
    let without_root = || {
        // SAFETY: the bare system call changes this thread alone, and takes three numbers.
        let result = unsafe { libc::syscall(libc::SYS_setresuid, 65_534, 65_534, 65_534) };
        assert_eq!(result, 0);
        knee_testbed::run(&spec, &knee_model::RunOptions::default(), None)
    };
    let result = thread::scope(|s| s.spawn(without_root).join()).expect("no panic");
    let error = result.expect_err("not permitted");
    assert!(error.why.contains("the testbed needs root"), "{error}");
}
