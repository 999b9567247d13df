//! QUIC over real UDP sockets, alone and beside the kernel's TCP.

mod common;

use common::{MBIT, MS, S, bulk, goodput, kernel, run, spec, steadily, ten_mbit};
use knee_cc::{Params, algorithm};
use knee_model::{
    Cc, FlowKind, FlowSpec, PacketEvent, PathSpec, QueueLimit, Replay, ReverseLink, RunOptions,
    TcpOptions, TcpSpec, Transport, Workload,
};
use knee_testbed::{TestbedError, run_with};

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

/// As in virtual time, with the same losses: the goodput of a run of 10 s differs by what a reduction
/// more or less costs at most, a tenth of the run's.
#[test]
fn quic_alone_does_as_in_virtual_time() {
    steadily(|| {
        for (cc, loss) in [("newreno", 0.0), ("newreno", 0.01), ("chd", 0.0)] {
            let mut spec = spec(ten_mbit(84), 10 * S, vec![quic("quic", knee(cc), Workload::Bulk)]);
            (spec.path.hops[0].loss, spec.record.trace) = (loss, true);
            let real = run(&spec);
            let model = knee_quic_run::run(&spec).expect("runs");
            let (measured, wanted) = (goodput(&real, 0), goodput(&model, 0));
            println!("{cc}, loss {loss}: {measured} bit/s, in virtual time {wanted}");
            assert!((measured / wanted - 1.0).abs() < 0.1, "{cc}: {measured}, not {wanted}");
            let flow = &real.flows[0];
            assert_eq!((flow.kind.as_str(), flow.name.as_str()), (cc, "quic"));
            assert!(!real.approximations.is_empty());
            // Every call happens again.
            let mut replay = Replay::new(Params::defaults(algorithm(cc).expect("registered")));
            flow.trace.iter().for_each(|call| replay.call(call, 0));
            assert!(replay.compared > 1000 && !replay.joined);
            assert_eq!((replay.differences, replay.gaps), (0, 0));
            // The time series has states; packets have numbers.
            let late = &flow.samples[80];
            assert!(late.cwnd_pkts > 4 && late.srtt_us > 40_000, "{late:?}");
            assert!(flow.rtt.count() > 1000 && flow.rtt.mean_ns() > 40e6);
            let numbers = real.queues[0].log.iter().filter(|l| l.event != PacketEvent::Departed);
            assert!(numbers.map(|l| u64::from(l.number)).eq(0..flow.counters.sent_pkts));
            assert!(real.queues[0].log.iter().all(|l| l.bytes <= 1500));
        }
    });
}

/// As in virtual time, to the tenth of the test above; both ends have changed places.
#[test]
fn quic_in_reverse_does_as_in_virtual_time() {
    steadily(|| {
        let queue = QueueLimit::Packets(84);
        let link = ReverseLink { rate_bps: 10 * MBIT, rate_varies: None, queue };
        let path = PathSpec { reverse: Some(link), ..ten_mbit(84) };
        let mut flow = quic("quic", knee("newreno"), Workload::Bulk);
        flow.route.reverse = true;
        let spec = spec(path, 10 * S, vec![flow]);
        let (real, model) = (run(&spec), knee_quic_run::run(&spec).expect("runs"));
        let (measured, wanted) = (goodput(&real, 0), goodput(&model, 0));
        println!("{measured} bit/s, in virtual time {wanted}");
        assert!((measured / wanted - 1.0).abs() < 0.1, "{measured}, not {wanted}");
        let [data, acks] = [real.reverse_queue.as_ref().expect("a reverse flow"), &real.queues[0]];
        assert!(data.departed_bytes > 10 * acks.departed_bytes && acks.departed_bytes > 0);
    });
}

#[test]
fn quic_and_tcp_share_the_path() {
    steadily(|| {
        let mut late = quic("quic", knee("newreno"), Workload::Bulk);
        late.start_ns = S;
        let probe = FlowKind::Probe { interval_ns: 20 * MS, packet_bytes: 64 };
        let flows = vec![bulk("tcp"), late, FlowSpec::new("probe", probe)];
        let record = run(&spec(ten_mbit(60), 20 * S, flows));
        let [tcp, quic] = [0, 1].map(|i| goodput(&record, i));
        println!("TCP {tcp} bit/s, QUIC {quic}");
        // Both are NewReno, of one RTT, and QUIC starts a second later; the rest of the link are headers and
        // the start. Eight runs gave QUIC 0.40 to 0.48: whose packet is dropped when the queue is full
        // decides nine or ten times. The simulator gives the later of two TCP flows 0.49.
        assert!((9.4e6..9.65e6).contains(&(tcp + quic)), "{tcp} + {quic}");
        assert!((0.36..0.54).contains(&(quic / (tcp + quic))), "{tcp}, {quic}");
        assert_eq!(
            (record.flows[0].kind.as_str(), record.flows[1].kind.as_str()),
            ("kernel:reno", "newreno")
        );
        assert!(record.flows[2].probe_delays.len() > 800);
        assert!(record.flows[1].counters.loss_events > 0);
    });
}

#[test]
fn transfers_over_quic_complete_and_leave_a_qlog() {
    steadily(|| {
        let workload = Workload::Transfers { size_bytes: 200_000, every_ns: Some(S) };
        let mut flows = vec![quic("quic", knee("hd"), workload)];
        flows[0].stop_ns = Some(4 * S + 500 * MS);
        let folder = tempfile::tempdir().expect("a folder");
        let options = RunOptions { qlog: Some(folder.path().to_owned()), ..RunOptions::default() };
        let record = run_with(&spec(ten_mbit(84), 5 * S, flows), &options).expect("runs");
        let flow = &record.flows[0];
        assert_eq!(flow.transfers.len(), 5);
        assert_eq!(flow.counters.delivered_bytes, 1_000_000);
        for (i, transfer) in flow.transfers.iter().enumerate() {
            assert!(transfer.start_ns.abs_diff(i as u64 * S) < 10 * MS);
            // 200 kB take 160 ms at the link's rate, without slow start's round trips.
            assert!((160 * MS..800 * MS).contains(&(transfer.end_ns - transfer.start_ns)));
        }
        let after = flow.samples[46..].iter().map(|s| s.sent_pkts).sum::<u32>();
        assert!(after == 0 && flow.samples[46].cwnd_pkts == 0);
        let qlog = std::fs::read(folder.path().join("quic.sqlog")).expect("there");
        assert!(qlog.len() > 10_000 && qlog.ends_with(b"\n"));
    });
}

#[test]
fn the_kernels_own_are_not_for_quic() {
    let flows = vec![quic("quic", kernel("cubic"), Workload::Bulk)];
    let error = knee_testbed::run(&spec(ten_mbit(84), S, flows)).expect_err("refused");
    assert!(matches!(&error, TestbedError::Quic(_)) && error.to_string().contains("kernel:cubic"));
}
