//! BBR in the simulator: alone, with random loss, against itself and other algorithms; pacing and samples.

mod common;

use common::{MS, S, params, run, spec};
use insta::assert_snapshot;
use knee_cc::SSTHRESH_INFINITE;
use knee_model::failure::unsupported;
use knee_model::{
    Call, Cc, FlowKind, FlowRecord, FlowSpec, NS_PER_S, Ns, PacketEvent, PathSpec, QueueLimit,
    RecordSpec, Recovery, RunRecord, RunSpec, TcpOptions, TcpSpec, Transport, Workload,
};
use std::fmt::Write as _;

const RTT_NS: Ns = 40 * MS;

fn tcp(name: &str, start_ns: Ns, workload: Workload, options: TcpOptions) -> FlowSpec {
    let cc = Cc::Knee(params(name, &[]));
    let kind = FlowKind::Tcp(TcpSpec { transport: Transport::Own, cc, workload, options });
    FlowSpec { start_ns, ..FlowSpec::new(name, kind) }
}

fn bulk(name: &str, start_ns: Ns) -> FlowSpec {
    tcp(name, start_ns, Workload::Bulk, TcpOptions::default())
}

/// A path of `mbit` Mbit/s and 40 ms with a queue of `bdps` bandwidth-delay products.
fn path(mbit: u64, bdps: u64) -> PathSpec {
    let bdp_pkts = mbit * 1_000_000 * RTT_NS / NS_PER_S / 8 / 1500;
    PathSpec::symmetric(mbit * 1_000_000, RTT_NS, QueueLimit::Packets((bdp_pkts * bdps) as u32))
}

fn record_for(path: PathSpec, duration_ns: Ns, flows: Vec<FlowSpec>) -> RunRecord {
    let record = RecordSpec { bin_ns: S, queue_log: false, trace: false };
    run(&RunSpec { record, ..spec(path, duration_ns, flows) })
}

/// Part of the link that a flow's payload takes, with its headers, from second `from` on.
fn use_of_link(record: &RunRecord, flow: usize, from: usize, mbit: u64) -> f64 {
    let bins = &record.flows[flow].samples[from..];
    let bytes: u64 = bins.iter().map(|bin| bin.delivered_bytes).sum();
    bytes as f64 * 8.0 / bins.len() as f64 / (mbit * 1_000_000) as f64 * 1500.0 / 1448.0
}

/// Part of a flow's packets that the queue dropped, in percent.
fn dropped_percent(flow: &FlowRecord) -> f64 {
    100.0 * flow.counters.queue_drops_pkts as f64 / flow.counters.sent_pkts as f64
}

#[test]
fn alone() {
    let mut table = "Mbit/s  queue  use    queueing ms  dropped %\n".to_owned();
    for mbit in [10, 100] {
        for bdps in [1, 4] {
            let record = record_for(path(mbit, bdps), 60 * S, vec![bulk("bbr", 0)]);
            let used = use_of_link(&record, 0, 10, mbit);
            let queueing_ms = record.queues[0].delay.mean_ns() / 1e6;
            let dropped = dropped_percent(&record.flows[0]);
            let _ = writeln!(
                table,
                "{mbit:>6} {bdps:>2} BDP {used:>6.3} {queueing_ms:>12.2} {dropped:>10.2}"
            );
            // It gives up 1 % to pacing, and 2 % to PROBE_RTT (draft, section 5.3.4.2).
            assert!(used > 0.93, "{table}");
            // Draft, section 3: at most half a BDP on average.
            assert!(queueing_ms < 20.0, "{table}");
            assert!(dropped < 2.0, "{table}");
        }
    }
    assert_snapshot!(table);
}

/// Draft, section 3.1: the full throughput with up to 1 % of the packets lost.
#[test]
fn random_loss() {
    let mut table = "cc       use at 1 % loss\n".to_owned();
    let mut used = Vec::new();
    for name in ["bbr", "newreno", "cubic"] {
        let path = path(10, 1).with_each_hop(|hop| hop.loss = 0.01);
        let record = record_for(path, 60 * S, vec![bulk(name, 0)]);
        used.push(use_of_link(&record, 0, 10, 10));
        let _ = writeln!(table, "{name:<8} {:>6.3}", used[used.len() - 1]);
    }
    assert!(used[0] > 0.85 && used[0] > 2.0 * used[1].max(used[2]), "{table}");
    assert_snapshot!(table);
}

/// Two flows, the second 5 s later: over the last minute neither has twice as much as the other.
#[test]
fn two_share() {
    let mut table = "Mbit/s  queue  first  second  queueing ms\n".to_owned();
    for mbit in [10, 100] {
        for bdps in [1, 4] {
            let flows = vec![bulk("bbr", 0), bulk("bbr", 5 * S)];
            let record = record_for(path(mbit, bdps), 120 * S, flows);
            let [a, b] = [0, 1].map(|flow| use_of_link(&record, flow, 60, mbit));
            let queueing_ms = record.queues[0].delay.mean_ns() / 1e6;
            let _ =
                writeln!(table, "{mbit:>6} {bdps:>2} BDP {a:>6.3} {b:>7.3} {queueing_ms:>12.2}");
            assert!(a + b > 0.93 && a.max(b) < 2.0 * a.min(b), "{table}");
        }
    }
    assert_snapshot!(table);
}

/// Competing with flows that respond to loss only: a record of the shares. Nobody is starved.
#[test]
fn competing_with_loss_based_flows() {
    let mut table = "against  Mbit/s  queue    bbr  other  queueing ms\n".to_owned();
    for other in ["newreno", "cubic"] {
        for mbit in [10, 100] {
            for bdps in [1, 4] {
                let flows = vec![bulk("bbr", 0), bulk(other, 5 * S)];
                let record = record_for(path(mbit, bdps), 120 * S, flows);
                let [a, b] = [0, 1].map(|flow| use_of_link(&record, flow, 60, mbit));
                let queueing_ms = record.queues[0].delay.mean_ns() / 1e6;
                let _ = writeln!(
                    table,
                    "{other:<8} {mbit:>6} {bdps:>2} BDP {a:>6.3} {b:>6.3} {queueing_ms:>12.2}"
                );
                assert!(a > 0.02 && b > 0.02, "{table}");
            }
        }
    }
    assert_snapshot!(table);
}

/// No packet leaves sooner after the one before than 1448 bytes take at the rate of then; while the
/// window leaves room it leaves just then, to the nanosecond.
#[test]
fn packets_leave_at_the_pace() {
    let record = run(&spec(path(10, 4), 10 * S, vec![bulk("bbr", 0)]));
    let flow = &record.flows[0];
    let offered = record.queues[0]
        .log
        .iter()
        .filter(|l| l.flow == 0 && matches!(l.event, PacketEvent::Enqueued | PacketEvent::Dropped));
    let times_ns: Vec<Ns> = offered.map(|l| l.time_ns).collect();
    assert!(times_ns.len() > 5000);
    let mut rates = flow.trace.iter().map(|c| (c.before.now_us, c.after)).peekable();
    let (mut rate, mut exact, mut limited) = (0, 0, 0);
    for pair in times_ns.windows(2) {
        // The rate in force when the first of the two left; an ACK of the same microsecond may have
        // come before or after.
        let mut rates_then = vec![rate];
        while let Some((now_us, after)) = rates.next_if(|(us, _)| *us <= pair[0] / 1000) {
            rate = after.pacing_bytes_per_s;
            if now_us == pair[0] / 1000 {
                rates_then.push(rate);
            } else {
                rates_then = vec![rate];
            }
        }
        let spaced = pair[1] - pair[0];
        let waits = rates_then.iter().filter(|r| **r > 0).map(|r| 1448 * NS_PER_S / r);
        let least = waits.clone().min().expect("it paces from the start");
        assert!(spaced + 1 >= least, "{spaced} ns at {} ns", pair[0]);
        exact += u32::from(waits.clone().any(|wait| spaced.abs_diff(wait) <= 1));
        limited += u32::from(spaced > waits.max().expect("a wait") + 1);
    }
    // Where the window holds it back, an ACK lets it go: in PROBE_RTT, and after startup.
    assert!(exact > 9 * limited, "{exact} at the pace, {limited} later");
}

/// An application writes 50 packets each 50 ms, a quarter of the path's rate. Most samples of the flow are
/// limited by the application; none lowers the estimate, which is above the sending rate.
#[test]
fn an_application_that_limits_does_not_lower_the_estimate() {
    let workload = Workload::Transfers { size_bytes: 50 * 1448, every_ns: Some(50 * MS) };
    let flow = tcp("bbr", 0, workload, TcpOptions::default());
    let record = run(&spec(path(50, 1), 30 * S, vec![flow]));
    let flow = &record.flows[0];
    assert_eq!(flow.counters.queue_drops_pkts, 0);
    let acks: Vec<_> = flow.trace.iter().filter(|c| c.call == Call::OnAck).collect();
    let limited = acks.iter().filter(|c| c.ack.sample_app_limited == 1).count();
    assert!(limited > acks.len() / 2, "{limited} of {}", acks.len());
    for pair in acks.windows(2) {
        let [before, after] = [pair[0].observed[0], pair[1].observed[0]];
        assert!(pair[1].ack.sample_app_limited == 0 || after >= before);
    }
    let last = acks[acks.len() - 1];
    assert!(last.observed[0] > 1000, "{} packets/s", last.observed[0]);
}

/// Startup is the host's slow start; later the window is at the threshold, so that a host takes
/// it for limiting only where it was full.
#[test]
fn startup_is_slow_start() {
    let record = run(&spec(path(10, 4), 5 * S, vec![bulk("bbr", 0)]));
    let acks = record.flows[0].trace.iter().filter(|c| c.call == Call::OnAck);
    for call in acks {
        let startup = call.observed[3] == 0;
        let expected = if startup { SSTHRESH_INFINITE } else { call.after.cwnd_pkts };
        assert_eq!(call.after.ssthresh_pkts, expected);
    }
}

#[test]
fn without_selective_acknowledgements_it_is_refused() {
    for recovery in [Recovery::Newreno, Recovery::NewrenoPrr] {
        let options = TcpOptions { recovery, ..TcpOptions::default() };
        let flow = tcp("bbr", 0, Workload::Bulk, options);
        let refused = knee_sim::run(&spec(path(10, 1), S, vec![flow])).expect_err("refused");
        let why =
            "flow `bbr`: bbr measures its delivery rate, which needs selective acknowledgements";
        let help = "write recovery = \"sack\"";
        assert_eq!(refused, unsupported(why).with_help(help));
    }
}
