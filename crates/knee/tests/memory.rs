//! Memory of the simulator, as `knee bench` shows it.
#![allow(clippy::unwrap_used)]

mod common;

use common::Place;

/// Peak resident bytes, most packets queued.
fn bench(place: &Place, arguments: &str) -> (f64, f64) {
    let words = ["bench", "dumbbell", "--format", "json", "--rate", "10gbit"];
    let json = place.json(&words.into_iter().chain(arguments.split(' ')).collect::<Vec<_>>());
    let value = |key: &str| json[key].as_f64().unwrap();
    (value("peak_rss_bytes"), value("max_held_pkts"))
}

#[test]
fn a_flow_takes_2_kb() {
    let place = Place::new();
    for cc in ["newreno", "chd"] {
        let of = |flows: &str| {
            bench(&place, &format!("--cc {cc} --flows {flows} --queue 33333p --duration 2s")).0
        };
        let per_flow = (of("10000") - of("16")) / 9984.0;
        println!("{cc}: {per_flow:.0} B per flow");
        assert!((500.0..=2000.0).contains(&per_flow), "{cc}: {per_flow} B per flow");
    }
}

/// Slow start fills a path of 333 333 packets and a queue of 300 000. Where the way of a packet is known
/// from the start it is held twice, in the queue and on its way.
#[test]
fn a_packet_in_flight_takes_80_bytes() {
    let place = Place::new();
    let (large, held) = bench(&place, "--rtt 400ms --queue 300000p --duration 6s");
    assert_eq!(held, 300_000.0, "the queue was never full: this measures nothing");
    let (small, _) = bench(&place, "--rtt 4ms --queue 333p --duration 1s");
    // The queue was full after the link had been busy for longer than a round-trip time.
    let in_flight = 300_000.0 + 10e9 * 0.4 / 12_000.0;
    let per_packet = (large - small) / in_flight;
    println!("{per_packet:.1} B per packet in flight");
    assert!((16.0..=80.0).contains(&per_packet), "{per_packet} B per packet in flight");
}
