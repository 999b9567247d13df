//! Westwood+ against values worked out by hand, its estimate against floating point, and its ABSE
//! against F-TCP's.

#[allow(dead_code)] // each file of tests uses its part
mod common;

use common::{BASE_US, Flow, NEVER, NO_SAMPLE, params};
use knee_cc::{Ack, Phase, SSTHRESH_INFINITE};
use proptest::{prelude::*, test_runner::FileFailurePersistence};

const MS: u64 = 1000;
const DEFAULTS: &[(&str, u64)] = &[];

fn config() -> ProptestConfig {
    let failures = FileFailurePersistence::WithSource("regressions");
    ProptestConfig { failure_persistence: Some(Box::new(failures)), ..ProptestConfig::default() }
}

/// RTTmin and the smoothed RTT are 40 ms; the first ACK has started the clock at 0.
fn westwood(given: &[(&str, u64)], cwnd: u32) -> Flow {
    let mut f = Flow::avoiding(params("westwood", given), cwnd);
    f.conn.srtt_us = BASE_US as u32;
    f.conn.cwnd_limited = 0;
    f.send(1);
    f.ack(1, 0, NEVER);
    f
}

/// `n` packets are delivered at `now_us`.
fn deliver(f: &mut Flow, now_us: u64, n: u32) {
    f.conn.now_us = now_us;
    f.send(n.saturating_sub(f.conn.outstanding_pkts));
    f.ack(n, 0, NEVER);
}

fn be(f: &Flow) -> u32 {
    f.cc.observe()[0]
}

/// BE RTTmin, packets.
fn be_cwnd(f: &Flow) -> u32 {
    f.cc.observe()[1]
}

/// 1000 packets/s for 50 ms: BE = 1000 packets/s, BE RTTmin = 40 packets.
fn thousand(given: &[(&str, u64)], cwnd: u32) -> Flow {
    let mut f = westwood(given, cwnd);
    for ms in (10..=50).step_by(10) {
        assert_eq!(be(&f), 0);
        deliver(&mut f, ms * MS, 10);
    }
    assert_eq!((be(&f), be_cwnd(&f)), (1000, 40));
    f
}

// ---------------------------------------------------------------------------------------------
// The estimate
// ---------------------------------------------------------------------------------------------

/// WW-e: 10 packets are delivered in 50 ms, and 50 acknowledged, most of which SACKs reported before.
#[test]
fn sacked_packets_count_once_or_again() {
    for (sacked, expected) in [(0, 200), (1, 1000)] {
        let mut f = westwood(&[("sacked", sacked)], 100);
        f.conn.now_us = 50 * MS;
        let ack = Ack { acked_pkts: 10, advanced_pkts: 50, rtt_us: BASE_US, ..Ack::default() };
        f.cc.on_rtt(&mut f.conn, &ack);
        assert_eq!(be(&f), expected);
    }
}

/// A sample at the first ACK that is at least max(RTT, 50 ms) after the last: all packets since, over
/// all of the time.
#[test]
fn samples_are_a_round_trip_long() {
    for (srtt_us, interval_min_us, due_ms) in
        [(40_000, 50_000, 50), (100_000, 50_000, 100), (40_000, 0, 40), (40_000, 200_000, 200)]
    {
        let mut f = westwood(&[("interval_min", interval_min_us)], 100);
        f.conn.srtt_us = srtt_us;
        deliver(&mut f, due_ms * MS - 1, 60);
        assert_eq!(be(&f), 0, "{due_ms}");
        deliver(&mut f, due_ms * MS, 40);
        assert_eq!(be(&f), 100_000 / due_ms as u32, "{due_ms}");
    }
    // Later than that: 100 packets in 400 ms.
    let mut f = westwood(DEFAULTS, 100);
    deliver(&mut f, 400 * MS, 100);
    assert_eq!(be(&f), 250);
}

/// x <- 7/8 x + 1/8 sample: 1000, then 2600 makes 1200; the second filter 7/8 1000 + 1/8 1200 = 1025;
/// then again 2600: 1375 and 1068.75.
#[test]
fn low_pass_filter() {
    for (filter, expected) in [(0, [1200, 1375]), (1, [1025, 1069])] {
        let mut f = thousand(&[("filter", filter)], 100);
        for (at_ms, be_expected) in [100, 150].into_iter().zip(expected) {
            deliver(&mut f, at_ms * MS, 130);
            assert_eq!(be(&f), be_expected, "{filter}");
        }
    }
}

/// WW-e: no ACK counts before there is an RTT; the first starts the clock; packets that are told of
/// by SACK count, ACKs of nothing do not.
#[test]
fn delivered_packets_count() {
    let mut f = Flow::avoiding(params("westwood", &[]), 100);
    f.conn.cwnd_limited = 0;
    deliver(&mut f, 10 * MS, 500);
    f.conn.srtt_us = 40_000;
    deliver(&mut f, 20 * MS, 500);
    deliver(&mut f, 45 * MS, 25);
    // In recovery too.
    f.conn.phase = Phase::Recovery as u8;
    deliver(&mut f, 70 * MS, 25);
    assert_eq!(be(&f), 1000);
    deliver(&mut f, 500 * MS, 0);
    deliver(&mut f, 570 * MS, 500);
    assert_eq!(be(&f), 1000);
}

/// WW-f: a pause of 1 s in which 10 packets arrive: a sample of 10 packets/s; 1000 becomes 876.25 and
/// with the second filter 984.5.
#[test]
fn a_pause_lowers_the_estimate() {
    for (filter, expected) in [(0, 876), (1, 985)] {
        let mut f = thousand(&[("filter", filter)], 100);
        deliver(&mut f, 1050 * MS, 10);
        assert_eq!(be(&f), expected);
    }
}

proptest! {
    #![proptest_config(config())]

    /// Any sequence of ACKs, against the same in floating point.
    #[test]
    fn estimate_is_exact(
        filter in 0_u64..=1, interval_min_us in 0_u64..200_000, srtt_us in 1_u32..500_000,
        acks in prop::collection::vec((1_u64..300_000, 1_u32..5000), 1..200),
    ) {
        let given = [("filter", filter), ("interval_min", interval_min_us)];
        let mut f = westwood(&given, 100);
        f.conn.srtt_us = srtt_us;
        let (mut now_us, mut start_us, mut pkts) = (0, 0, 0.0);
        let mut filters: Option<(f64, f64)> = None;
        for (after_us, n) in acks {
            now_us += after_us;
            deliver(&mut f, now_us, n);
            pkts += f64::from(n);
            if now_us - start_us >= interval_min_us.max(srtt_us.into()) {
                let sample = pkts * 1e6 / (now_us - start_us) as f64;
                filters = Some(filters.map_or((sample, sample), |(one, two)| {
                    let one = (7.0 * one + sample) / 8.0;
                    (one, (7.0 * two + one) / 8.0)
                }));
                (start_us, pkts) = (now_us, 0.0);
            }
            let exact = filters.map_or(0.0, |(one, two)| if filter == 0 { one } else { two });
            let got = f64::from(be(&f));
            // Looked at in whole packets/s.
            prop_assert!((got - exact).abs() <= 0.5 + 1e-6 * exact, "{got}, not {exact}");
            let window = exact * f64::from(BASE_US) / 1e6;
            prop_assert!((f64::from(be_cwnd(&f)) - window).abs() <= 1.0 + 1e-6 * window);
        }
    }

    /// The same ACKs give F-TCP's estimate of the bandwidth share, of which this is the source.
    #[test]
    fn abse_is_ftcps(
        acks in prop::collection::vec((1_u64..100_000, 1_u32..50, 0_u32..100_000, 2_u32..300), 1..150),
    ) {
        // F-TCP's instability would remember its responses to delay.
        let beta = ("beta_u_delay", 600_000);
        let westwood = params("westwood", &[("estimator", 1), beta]);
        let mut westwood = Flow::new(westwood, 10, SSTHRESH_INFINITE);
        let mut ftcp = Flow::new(params("ftcp", &[beta]), 10, SSTHRESH_INFINITE);
        let mut now_us = 0;
        for (after_us, n, q_us, cwnd) in acks {
            now_us += after_us;
            for f in [&mut westwood, &mut ftcp] {
                f.conn.now_us = now_us;
                f.conn.srtt_us = BASE_US as u32 + q_us / 2;
                f.conn.cwnd_pkts = cwnd;
                f.conn.ssthresh_pkts = SSTHRESH_INFINITE;
                f.send(n.saturating_sub(f.conn.outstanding_pkts));
                f.ack(n, q_us, NEVER);
            }
            prop_assert_eq!(&westwood.cc.observe()[..2], &ftcp.cc.observe()[..2]);
        }
    }
}

// ---------------------------------------------------------------------------------------------
// What a loss does
// ---------------------------------------------------------------------------------------------

/// WW-h: half the window at the loss or less, BE RTTmin = 40 after the recovery; half while there is no
/// estimate.
#[test]
fn reduction_after_the_recovery() {
    let given = &[("reduce_at", 1)];
    for cwnd in [30, 100] {
        let mut f = thousand(given, cwnd);
        f.send(cwnd - f.conn.outstanding_pkts);
        assert_eq!(f.loss().0, 40.min(cwnd / 2));
        f.conn.cwnd_limited = 1;
        f.recovered();
        assert_eq!((f.w(), f.conn.ssthresh_pkts), (40, 40));
        assert_eq!(f.timeout(), 40);
    }
    let mut f = westwood(given, 100);
    f.send(60);
    assert_eq!(f.loss().0, 30);
    f.recovered();
    assert_eq!((f.w(), f.conn.ssthresh_pkts), (30, 30));
}

/// ssthresh = BE RTTmin = 40, cwnd = 40 where it was more: no further, whatever the window was. A
/// random loss on a path that 40 packets fill costs nothing (NewReno: half).
#[test]
fn a_loss_leaves_the_bandwidth_delay_product() {
    for cwnd in [40, 50, 100, 1000] {
        let mut f = thousand(DEFAULTS, cwnd);
        assert_eq!(f.loss(), (40, 0));
        f.recovered();
        assert_eq!((f.w(), f.conn.ssthresh_pkts), (40, 40));
    }
}

/// WW-a: a window of 30 stays, and slow start follows up to 40; or it is 40 at once.
#[test]
fn a_loss_below_it() {
    for (loss_window, expected, window) in [(0, 30, 30), (1, 40, 40)] {
        let mut f = thousand(&[("loss_window", loss_window)], 30);
        assert_eq!(f.loss().0, expected);
        f.recovered();
        assert_eq!((f.w(), f.conn.ssthresh_pkts), (window, 40));
        f.conn.cwnd_limited = 1;
        f.conn.now_us += 1;
        f.send(5);
        f.ack(5, NO_SAMPLE, NEVER);
        assert_eq!(f.w(), if window == 30 { 35 } else { 40 });
        // That is over with this recovery.
        f.conn.cwnd_pkts = 20;
        f.conn.ssthresh_pkts = 20;
        f.cc.on_event(&mut f.conn, knee_cc::Event::Recovered);
        assert_eq!(f.conn.ssthresh_pkts, 20);
    }
}

/// A timeout: ssthresh = BE RTTmin in either case.
#[test]
fn timeout() {
    for loss_window in [0, 1] {
        for cwnd in [30, 100] {
            let mut f = thousand(&[("loss_window", loss_window)], cwnd);
            assert_eq!(f.timeout(), 40);
            assert_eq!(f.cc.undo(&mut f.conn), cwnd);
        }
    }
}

/// WW-g: NewReno before there is an estimate; at least 2 packets, at most the host's largest.
#[test]
fn without_an_estimate_and_at_the_bounds() {
    let mut f = westwood(DEFAULTS, 100);
    f.send(60);
    assert_eq!(f.loss().0, 30);
    let mut f = westwood(DEFAULTS, 100);
    f.send(60);
    assert_eq!(f.timeout(), 30);
    // 1 packet/s.
    let mut f = westwood(DEFAULTS, 100);
    deliver(&mut f, 1000 * MS, 1);
    assert_eq!((be(&f), be_cwnd(&f), f.loss().0), (1, 0, 2));
    let mut f = thousand(&[("loss_window", 1)], 20);
    f.conn.cwnd_max_pkts = 25;
    assert_eq!(f.loss().0, 25);
}

/// The window comes back; the end of a recovery that was none raises nothing.
#[test]
fn undo() {
    let mut f = thousand(DEFAULTS, 100);
    f.loss();
    assert_eq!(f.cc.undo(&mut f.conn), 100);
    let mut f = thousand(DEFAULTS, 30);
    f.loss();
    assert_eq!(f.cc.undo(&mut f.conn), 30);
    f.conn.ssthresh_pkts = 25;
    f.cc.on_event(&mut f.conn, knee_cc::Event::Recovered);
    assert_eq!(f.conn.ssthresh_pkts, 25);
}

/// RTTmin is the connection's least: 40 ms and then 20 ms halve the window.
#[test]
fn the_minimum_rtt_counts() {
    let mut f = thousand(DEFAULTS, 100);
    f.send(1);
    f.ack(1, 30_000, NEVER);
    assert_eq!(be_cwnd(&f), 40);
    // ACKs that measured nothing change nothing.
    f.send(1);
    f.ack(1, NO_SAMPLE, NEVER);
    assert_eq!(f.cc.observe()[2], BASE_US as u32);
    let ack = knee_cc::Ack { acked_pkts: 1, rtt_us: 20_000, ..knee_cc::Ack::default() };
    f.cc.on_rtt(&mut f.conn, &ack);
    assert_eq!((be_cwnd(&f), f.cc.observe()[2]), (20, 20_000));
}

/// With ABSE the loss rules are the same.
#[test]
fn abse_reduces_to_its_estimate() {
    let mut f = westwood(&[("estimator", 1), ("be_start", 1)], 40);
    for step in 1..=2000 {
        deliver(&mut f, step * 10 * MS, 10);
    }
    let (be, window) = (be(&f), be_cwnd(&f));
    assert!((990..=1010).contains(&be), "{be}");
    f.conn.cwnd_pkts = 100;
    assert_eq!(f.loss().0, window);
}

/// Growth is NewReno's.
#[test]
fn growth_is_newrenos() {
    let mut f = thousand(DEFAULTS, 100);
    f.conn.cwnd_limited = 1;
    let mut reno = Flow::avoiding(params("newreno", &[]), 100);
    for i in 0..500 {
        let n = 1 + i % 7;
        for f in [&mut f, &mut reno] {
            f.send(n);
            f.ack(n, 0, NEVER);
        }
        assert_eq!((f.w(), f.conn.cwnd_cnt), (reno.w(), reno.conn.cwnd_cnt));
    }
    assert!(f.w() > 110);
}
