//! The stack that the network and its endpoints need: hosts may run both inside a kernel.
#![allow(missing_docs)]

use knee_scenario::Scenario;
use knee_sim::Stepped;
use std::{hint::black_box, ptr, sync::Arc, thread};

/// Several hops with AQM, jitter, reordering, a reverse link, losses, bursts, every kind of flow.
const ALL_ELEMENTS: &str = r#"
    duration = "20s"
    [path]
    rtt = "40ms"
    loss_reverse = 0.005
    jitter_forward = "2ms"
    jitter_reverse = "1ms"
    reorder = { probability = 0.01, delay = "5ms" }
    reverse_rate = "2mbit"
    reverse_queue = "50p"
    [[path.hop]]
    rate = "10mbit"
    queue = "100p"
    loss = 0.005
    delay = "5ms"
    aqm = { kind = "fq-codel" }
    [[path.hop]]
    rate = "8mbit"
    queue = "100p"
    aqm = { kind = "pie", ecn = true }
    [tcp]
    ecn = true
    [[flow]]
    cc = "chd"
    count = 4
    access_jitter = "1ms"
    [[flow]]
    cc = "bbr"
    [[flow]]
    cc = "ebb"
    direction = "reverse"
    [[flow]]
    cc = "cubic"
    size = "30kB"
    arrivals = { rate_per_s = 5 }
    [[flow]]
    kind = "udp"
    rate = "1mbit"
    [[flow]]
    kind = "probe"
"#;

const PATTERN: u64 = 0x5ca1_ab1e_5ca1_ab1e;
const PAINTED_BYTES: usize = 1 << 18;

/// Writes a pattern over the stack below the caller; the address above it.
#[inline(never)]
fn paint() -> usize {
    let here = 0u64;
    let top = black_box(&raw const here).addr() - 512;
    for below in (8..PAINTED_BYTES).step_by(8) {
        // SAFETY: this thread's stack is four times as large, and nothing lives below this frame.
        unsafe { ptr::with_exposed_provenance_mut::<u64>(top - below).write_volatile(PATTERN) };
    }
    top
}

/// Bytes below `top` that were written to since they were painted.
#[inline(never)]
fn used_bytes(top: usize) -> usize {
    let is_clean = |below: &usize| {
        // SAFETY: as in `paint`.
        unsafe { ptr::with_exposed_provenance::<u64>(top - below).read_volatile() == PATTERN }
    };
    let clean = (8..PAINTED_BYTES).step_by(8).rev().take_while(is_clean).count() * 8;
    PAINTED_BYTES - clean
}

#[test]
fn the_network_and_its_endpoints_need_at_most_8_kib() {
    let scenario = Scenario::parse("all.toml", ALL_ELEMENTS, &[]).expect("a scenario");
    let spec = Arc::new(scenario.spec(1));
    let measure = move || {
        let mut run = Stepped::new(spec.clone()).expect("the simulator carries it out");
        let top = paint();
        run.advance(spec.duration_ns).expect("no algorithm fails");
        let used = used_bytes(top);
        assert!(
            run.finish().flows.iter().all(|flow| flow.counters.sent_pkts > 0),
            "all flows send"
        );
        used
    };
    let thread = thread::Builder::new().stack_size(4 * PAINTED_BYTES).spawn(measure);
    let used = thread.expect("a thread").join().expect("a measurement");
    println!("{used} bytes of stack");
    assert!((512..=8192).contains(&used), "{used} bytes of stack");
}
