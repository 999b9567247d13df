//! Records of the kernel's calls. Needs root, as the tests in `kernel.rs` do.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

mod common;

use common::*;
use knee_cc::{Params, algorithms};
use knee_kernel::{Filter, Tracer, load};
use std::time::Duration;

const RING_BYTES: u32 = 16 << 20;

#[test]
fn every_call_is_recorded() {
    for a in algorithms() {
        let name = unique(&a.name()[..2]);
        machine(&[&name], || {
            let _loaded = load(&Params::defaults(*a), &name).unwrap();
            let mut tracer = Tracer::start(&[&name], Filter::default(), RING_BYTES).unwrap();
            let (to, arrived) = receiver("127.0.0.1:0");
            let mut stream = connect(to, &name);
            let mut bytes = Bytes::new();
            bytes.write(&mut stream, 4 << 20);
            let mut n = 0;
            tracer.stop().unwrap();
            tracer
                .poll(Duration::from_millis(100), |c| {
                    if n < 3 {
                        println!("{:?} {:?}", c.socket, c.call);
                    }
                    n += 1
                })
                .unwrap();
            println!("{n} {}", tracer.dropped().unwrap());
            assert!(n > 20);
            drop(stream);
            arrived.join().unwrap();
        });
    }
}
