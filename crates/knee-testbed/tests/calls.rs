//! Knee's algorithms in the kernel, on the emulated path: what their calls tell.

#![allow(missing_docs)]

mod common;

use common::{MS, S, bulk, kernel, run, spec, ten_mbit, with_cc};
use knee_cc::{Params, algorithm, algorithms};
use knee_run::{Call, Cc, FlowKind, FlowRecord, Replay, RunSpec};

fn knee(name: &str) -> Cc {
    Cc::Knee(Params::defaults(algorithm(name).expect("registered")))
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
    std::thread::scope(|s| {
        for algorithm in algorithms() {
            s.spawn(move || {
                let mut spec = spec(ten_mbit(40), 8 * S, vec![bulk("early"), bulk("late")]);
                spec.flows[1].start_ns = 2 * S;
                spec.path.loss_forward = 0.01;
                spec.record.trace = true;
                let spec = with_cc(&spec, &knee(algorithm.name()));
                let record = run(&spec);
                for (index, flow) in record.flows.iter().enumerate() {
                    assert_eq!(flow.kind, algorithm.name());
                    let calls = replayed(&spec, index, flow);
                    assert!(calls > 1000, "{calls}");
                    let count = |call| flow.trace.iter().filter(|c| c.call == call).count() as u64;
                    assert_eq!(count(Call::Init), 1);
                    assert!(count(Call::Ssthresh) >= 3);
                    // An RTT sample for nearly each packet.
                    assert!(flow.rtt.count() * 10 > flow.counters.delivered_pkts * 8);
                    assert!(flow.rtt.quantile_ns(0.0) >= 40 * MS);
                }
            });
        }
    });
}

/// What is only known from the calls stands in the record as the simulator's does.
#[test]
fn counters_and_observed_values_come_from_the_calls() {
    let spec = spec(ten_mbit(84), 8 * S, vec![bulk("one")]);
    let chd = run(&with_cc(&spec, &knee("chd")));
    let flow = &chd.flows[0];
    assert!(flow.trace.is_empty(), "not asked for");
    let c = &flow.counters;
    assert!(c.delay_backoffs_region_a > 0 && c.rounds_region_a > 50, "{c:?}");
    let at = flow.observes.iter().position(|o| *o == "shadow_pkts").expect("CHD's");
    let shadow: Vec<u32> = flow.samples.iter().map(|s| s.observed[at]).collect();
    // 0 where there is none: at first, and below the delays of region B.
    let known = shadow.iter().filter(|pkts| **pkts > 0).count();
    assert!(known * 2 > shadow.len(), "{shadow:?}");
    let reno = run(&with_cc(&spec, &kernel("reno")));
    let flow = &reno.flows[0];
    assert_eq!(flow.rtt.count(), 0);
    assert_eq!(flow.observes, [""; 4]);
}
