//! QUIC over real UDP sockets, alone and with the kernel's TCP.

mod common;

use common::{MBIT, MS, S, bulk, goodput, kernel, run_until, spec, steadily, ten_mbit, timely};
use knee_cc::{Params, algorithm};
use knee_model::{
    Cc, FlowKind, FlowSample, FlowSpec, Ns, PacketEvent, PathSpec, QueueLimit, Replay, ReverseLink,
    RunOptions, RunRecord, RunSpec, TcpOptions, TcpSpec, Transport, Workload,
};
use knee_testbed::run;
use std::path::Path;

fn quic(name: &str, cc: Cc, workload: Workload) -> FlowSpec {
    let options = TcpOptions::default();
    FlowSpec::new(
        name,
        FlowKind::Tcp(TcpSpec { transport: Transport::Quic, cc, workload, options }),
    )
}

fn knee(name: &str) -> Cc {
    Cc::Knee(Params::defaults(algorithm(name).expect("registered")))
}

fn alone(cc: &str, loss: f64) -> RunSpec {
    let mut spec = spec(ten_mbit(84), 10 * S, vec![quic("quic", knee(cc), Workload::Bulk)]);
    (spec.path.hops[0].loss, spec.record.trace) = (loss, true);
    spec
}

const ALONE: [(&str, f64); 3] = [("newreno", 0.0), ("newreno", 0.01), ("chd", 0.0)];

#[test]
fn quic_alone_is_recorded_whole() {
    for (cc, loss) in ALONE {
        let (_, real) = run_until(&alone(cc, loss), |record| {
            let flow = &record.flows[0];
            let shown = |s: &FlowSample| s.cwnd_pkts > 4 && s.srtt_us > 0;
            flow.trace.len() > 1000 && flow.rtt.count() > 1000 && flow.samples.iter().any(shown)
        });
        let flow = &real.flows[0];
        assert_eq!((flow.kind.as_str(), flow.name.as_str()), (cc, "quic"));
        assert!(!real.approximations.is_empty());
        // Every call happens again.
        let mut replay = Replay::new(Params::defaults(algorithm(cc).expect("registered")));
        flow.trace.iter().for_each(|call| replay.call(call, 0));
        assert!(replay.compared > 1000 && !replay.joined);
        assert_eq!((replay.differences, replay.gaps), (0, 0));
        assert!(flow.samples.iter().all(|s| s.srtt_us == 0 || s.srtt_us > 40_000));
        assert!(flow.rtt.quantile_ns(0.0) >= 40 * MS);
        // Packets have numbers.
        let numbers = real.queues[0].log.iter().filter(|l| l.event != PacketEvent::Departed);
        assert!(numbers.map(|l| u64::from(l.number)).eq(0..flow.counters.sent_pkts));
        assert!(real.queues[0].log.iter().all(|l| l.bytes <= 1500));
    }
}

/// Compares goodput with that of virtual time, where the same packets are lost: in a run of 10 s it differs
/// by the cost of one reduction, a tenth of the run's.
fn does_as_in_virtual_time(spec: &RunSpec) {
    let (real, model) = (timely(spec), knee_quic_run::run(spec).expect("runs"));
    let (measured, wanted) = (goodput(&real, 0), goodput(&model, 0));
    println!("{measured} bit/s, in virtual time {wanted}");
    assert!((measured / wanted - 1.0).abs() < 0.1, "{measured}, not {wanted}");
}

#[test]
#[ignore = "measured in real time, on an idle machine: scripts/nightly.sh measured"]
fn quic_alone_does_as_in_virtual_time() {
    steadily(|| ALONE.iter().for_each(|(cc, loss)| does_as_in_virtual_time(&alone(cc, *loss))));
}

/// Both ends have changed places.
fn in_reverse() -> RunSpec {
    let queue = QueueLimit::Packets(84);
    let link = ReverseLink { rate_bps: 10 * MBIT, rate_varies: None, queue };
    let path = PathSpec { reverse: Some(link), ..ten_mbit(84) };
    let mut flow = quic("quic", knee("newreno"), Workload::Bulk);
    flow.route.reverse = true;
    spec(path, 10 * S, vec![flow])
}

#[test]
fn quic_in_reverse_sends_its_data_there() {
    run_until(&in_reverse(), |record| {
        let data = record.reverse_queue.as_ref().expect("a reverse flow");
        let acks = &record.queues[0];
        data.departed_bytes > 10 * acks.departed_bytes && acks.departed_bytes > 0
    });
}

#[test]
#[ignore = "measured in real time, on an idle machine: scripts/nightly.sh measured"]
fn quic_in_reverse_does_as_in_virtual_time() {
    steadily(|| does_as_in_virtual_time(&in_reverse()));
}

fn with_tcp() -> RunSpec {
    let mut late = quic("quic", knee("newreno"), Workload::Bulk);
    late.start_ns = S;
    let probe = FlowKind::Probe { interval_ns: 20 * MS, packet_bytes: 64 };
    spec(ten_mbit(60), 20 * S, vec![bulk("tcp"), late, FlowSpec::new("probe", probe)])
}

#[test]
fn quic_and_tcp_are_on_one_path() {
    let (_, record) = run_until(&with_tcp(), |record| {
        let [tcp, quic, probe] = &record.flows[..] else { panic!("three flows") };
        tcp.counters.delivered_pkts > 1000
            && quic.counters.loss_events > 0
            && !probe.probe_delays.is_empty()
    });
    let kinds = [0, 1, 2].map(|flow| record.flows[flow].kind.as_str());
    assert_eq!(kinds, ["kernel:reno", "newreno", "probe"]);
}

#[test]
#[ignore = "measured in real time, on an idle machine: scripts/nightly.sh measured"]
fn quic_and_tcp_share_the_path() {
    steadily(|| {
        let record = timely(&with_tcp());
        let [tcp, quic] = [0, 1].map(|i| goodput(&record, i));
        println!("TCP {tcp} bit/s, QUIC {quic}");
        // Both are NewReno, of one RTT, and QUIC starts a second later; the rest of the link are headers and
        // the start. Eight runs gave QUIC 0.40 to 0.48: whose packet is dropped when the queue is full
        // decides nine or ten times. The simulator gives the later of two TCP flows 0.49.
        assert!((9.4e6..9.65e6).contains(&(tcp + quic)), "{tcp} + {quic}");
        assert!((0.36..0.54).contains(&(quic / (tcp + quic))), "{tcp}, {quic}");
        assert!(record.flows[2].probe_delays.len() > 800);
    });
}

/// 200 kB every second until `stop_ns`; the qlog is kept in `folder`.
fn transfers(duration_ns: Ns, stop_ns: Ns, folder: &Path) -> RunRecord {
    let workload = Workload::Transfers { size_bytes: 200_000, every_ns: Some(S) };
    let mut flows = vec![quic("quic", knee("hd"), workload)];
    flows[0].stop_ns = Some(stop_ns);
    let options = RunOptions { qlog: Some(folder.to_owned()), ..RunOptions::default() };
    run(&spec(ten_mbit(84), duration_ns, flows), &options, None).expect("runs")
}

#[test]
fn transfers_over_quic_complete_and_leave_a_qlog() {
    // Five are complete, however long the machine takes for them.
    let record = [6, 20, 60].into_iter().find_map(|duration_s| {
        let folder = tempfile::tempdir().expect("a folder");
        let record = transfers(duration_s * S, (duration_s - 1) * S, folder.path());
        let qlog = std::fs::read(folder.path().join("quic.sqlog")).expect("there");
        assert!(qlog.len() > 10_000 && qlog.ends_with(b"\n"));
        let last = record.flows[0].samples.last().expect("some");
        let stopped = last.sent_pkts == 0 && last.cwnd_pkts == 0;
        (stopped && record.flows[0].transfers.len() >= 5).then_some(record)
    });
    let record = record.expect("five transfers in a minute");
    let flow = &record.flows[0];
    assert!(flow.counters.delivered_bytes >= flow.transfers.len() as u64 * 200_000);
    for (i, transfer) in flow.transfers.iter().enumerate() {
        assert!(transfer.start_ns >= i as u64 * S && transfer.bytes == 200_000);
        // 200 kB take 160 ms at the link's rate, without slow start's round trips.
        assert!(transfer.end_ns - transfer.start_ns >= 160 * MS);
    }
}

#[test]
#[ignore = "measured in real time, on an idle machine: scripts/nightly.sh measured"]
fn transfers_over_quic_are_in_time() {
    steadily(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let record = transfers(5 * S, 4 * S + 500 * MS, folder.path());
        let flow = &record.flows[0];
        assert_eq!((flow.transfers.len(), flow.counters.delivered_bytes), (5, 1_000_000));
        for (i, transfer) in flow.transfers.iter().enumerate() {
            assert!(transfer.start_ns.abs_diff(i as u64 * S) < 10 * MS);
            assert!(transfer.end_ns - transfer.start_ns < 800 * MS);
        }
        let after = flow.samples[46..].iter().map(|s| s.sent_pkts).sum::<u32>();
        assert!(after == 0 && flow.samples[46].cwnd_pkts == 0);
    });
}

#[test]
fn the_kernels_own_are_not_for_quic() {
    let flows = vec![quic("quic", kernel("cubic"), Workload::Bulk)];
    let error =
        run(&spec(ten_mbit(84), S, flows), &RunOptions::default(), None).expect_err("refused");
    assert!(error.why.contains("kernel:cubic"), "{error}");
}
