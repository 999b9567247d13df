//! Knee's algorithms in the kernel, on the emulated path: the results of their calls.

#![allow(missing_docs)]

mod common;

use common::{
    MS, S, bulk, despite_skips, goodput, kernel, run, run_until, spec, steadily, ten_mbit, timely,
    with_cc,
};
use knee_cc::{Params, Profile, algorithm, algorithms};
use knee_model::{Call, Cc, FlowKind, FlowRecord, Replay, RunRecord, RunSpec};

fn knee(name: &str) -> Cc {
    Cc::Knee(Params::defaults(algorithm(name).expect("registered")))
}

/// Runs all of them side by side.
fn at_once(specs: &[RunSpec]) -> Vec<RunRecord> {
    std::thread::scope(|s| {
        let runs: Vec<_> = specs.iter().map(|spec| s.spawn(|| timely(spec))).collect();
        let end = |run: std::thread::ScopedJoinHandle<'_, RunRecord>| run.join().expect("a run");
        runs.into_iter().map(end).collect()
    })
}

/// Makes every call again; gives their number.
fn replayed(spec: &RunSpec, index: usize, flow: &FlowRecord) -> u64 {
    let FlowKind::Tcp(tcp) = &spec.flows[index].kind else { panic!("TCP") };
    let mut replay = Replay::new(tcp.cc.params().expect("Knee's").clone());
    flow.trace.iter().for_each(|call| replay.call(call, 0));
    assert_eq!((replay.differences, replay.gaps), (0, 0), "{:?}", replay.first);
    assert!(!replay.joined, "recorded from the first call on");
    assert_eq!(replay.compared, flow.trace.len() as u64);
    replay.compared
}

/// Two flows of each algorithm, one random loss in a hundred: every call of the kernel's comes out
/// of the native build again, bit for bit.
#[test]
fn every_call_in_the_kernel_is_the_native_one() {
    // More at once would overflow the tracers' rings.
    for some in algorithms().chunks(6) {
        std::thread::scope(|s| {
            for algorithm in some {
                s.spawn(move || {
                    despite_skips(|| {
                        let mut spec = spec(ten_mbit(40), 6 * S, vec![bulk("early"), bulk("late")]);
                        spec.flows[1].start_ns = S;
                        spec.path.hops[0].loss = 0.01;
                        spec.record.trace = true;
                        let spec = with_cc(&spec, &knee(algorithm.name()));
                        let count = |flow: &FlowRecord, call| {
                            flow.trace.iter().filter(|c| c.call == call).count() as u64
                        };
                        let enough = |flow: &FlowRecord| {
                            // An RTT sample with nearly every ACK.
                            let acks = count(flow, Call::of_every_ack(algorithm.profile()));
                            flow.trace.len() > 500
                                && count(flow, Call::Ssthresh) >= 3
                                && flow.rtt.count() * 2 > acks
                        };
                        let (spec, record) =
                            run_until(&spec, |record| record.flows.iter().all(enough));
                        for (index, flow) in record.flows.iter().enumerate() {
                            assert_eq!(flow.kind, algorithm.name());
                            assert!(replayed(&spec, index, flow) > 500);
                            assert_eq!(count(flow, Call::Init), 1);
                            assert!(flow.rtt.quantile_ns(0.0) >= 40 * MS);
                        }
                    })
                });
            }
        });
    }
}

/// Values that only the calls know are in the record as the simulator's are.
#[test]
fn counters_and_observed_values_come_from_the_calls() {
    let spec = spec(ten_mbit(84), 8 * S, vec![bulk("one")]);
    let (_, chd) = run_until(&with_cc(&spec, &knee("chd")), |record| {
        let flow = &record.flows[0];
        let c = &flow.counters;
        let at = flow.observes.iter().position(|o| *o == "shadow_pkts").expect("CHD's");
        c.delay_backoffs_region_a > 0
            && c.rounds_region_a + c.rounds_region_b > 50
            // 0 where there is none: until a delay backoff, and while the delay is low.
            && flow.samples.iter().any(|s| s.observed[at] > 0)
    });
    assert!(chd.flows[0].trace.is_empty(), "not asked for");
    let reno = run(&with_cc(&spec, &kernel("reno")));
    assert_eq!(reno.flows[0].rtt.count(), 0);
    assert_eq!(reno.flows[0].observes, [""; 4]);
}

/// On the same path with the same packets lost our NewReno is the kernel's Reno: the same windows
/// except for effects of timing.
#[test]
#[ignore = "measured in real time, on an idle machine: scripts/nightly.sh measured"]
fn our_newreno_does_the_same_as_the_kernels_reno() {
    steadily(|| {
        let mut spec = spec(ten_mbit(84), 20 * S, vec![bulk("one")]);
        spec.path.hops[0].loss = 0.002;
        let ccs = [knee("newreno"), kernel("reno")];
        let records = at_once(&ccs.map(|cc| with_cc(&spec, &cc)));
        let [ours, theirs] = &records[..] else { panic!("two runs") };
        let (rate, their_rate) = (goodput(ours, 0), goodput(theirs, 0));
        assert!((rate / their_rate - 1.0).abs() < 0.03, "{rate} against {their_rate}");
        let windows = |record: &RunRecord| -> Vec<u32> {
            record.flows[0].samples.iter().map(|s| s.cwnd_pkts).collect()
        };
        let (windows, theirs) = (windows(ours), windows(theirs));
        // The sawtooth: at nearly every sample the windows are the same or a packet apart.
        let alike = windows.iter().zip(&theirs).filter(|(a, b)| a.abs_diff(**b) <= 2).count();
        assert!(alike * 10 > windows.len() * 9, "{windows:?}\n{theirs:?}");
    });
}

/// There is no fq on the way: TCP's own timer paces. A window of two bandwidth-delay products, as BBR
/// has it, would keep 40 ms in the queue.
#[test]
#[ignore = "measured in real time, on an idle machine: scripts/nightly.sh measured"]
fn profile_rate_paces_in_the_kernel() {
    steadily(|| {
        let spec = spec(ten_mbit(84), 12 * S, vec![bulk("one")]);
        let paced: Vec<_> = algorithms().iter().filter(|a| a.profile() == Profile::Rate).collect();
        let specs: Vec<_> = paced.iter().map(|a| with_cc(&spec, &knee(a.name()))).collect();
        for (algorithm, record) in paced.into_iter().zip(at_once(&specs)) {
            let (rate, queue_ns) = (goodput(&record, 0), record.queues[0].delay.quantile_ns(0.5));
            println!("{algorithm:?}: {:.2} Mbit/s, {:.1} ms", rate / 1e6, queue_ns as f64 / 1e6);
            assert!(rate > 8.5e6, "{algorithm:?}: {rate} bit/s");
            assert!(queue_ns < 20 * MS, "{algorithm:?}: {queue_ns} ns in the queue");
        }
    });
}
