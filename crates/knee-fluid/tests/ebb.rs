//! The limit cycle of Ebb, against the derivation in docs/evidence/ebb/convergence.md.

use knee_fluid::EbbCycle;

fn cycle(rate_mbps: f64, rtt_ms: f64, flows: f64) -> EbbCycle {
    let capacity_pps = rate_mbps * 1e6 / 12_000.0;
    EbbCycle::new(capacity_pps, rtt_ms / 1e3 + 1.0 / capacity_pps, flows).expect("a path in range")
}

/// An epoch takes √x θ/0.625 at a flow's rate x, and at least the test in addition.
#[test]
fn an_epoch_takes_as_long_as_regrowth_after_a_drain() {
    for (rate_mbps, rtt_ms, flows) in [(20.0, 40.0, 1.0), (20.0, 40.0, 2.0), (100.0, 40.0, 8.0)] {
        let rate_pps = rate_mbps * 1e6 / 12_000.0 / flows;
        let grown_s = f64::sqrt(rate_pps) * 0.01 / 0.625;
        let test_s = 3.0 * rtt_ms / 1e3;
        let period_s = cycle(rate_mbps, rtt_ms, flows).period_s;
        let expected_s = grown_s + test_s;
        assert!((period_s / expected_s - 1.0).abs() < 0.35, "{period_s} s, expected {expected_s}");
    }
}

/// No epoch is so long that growth would double (eq. 4).
#[test]
fn the_queue_is_about_half_of_theta_on_every_path() {
    for rate_mbps in [5.0, 20.0, 100.0] {
        for rtt_ms in [20.0, 40.0, 100.0] {
            let EbbCycle { mean_queue_s, failed, .. } = cycle(rate_mbps, rtt_ms, 1.0);
            assert!(
                (0.0035..0.0055).contains(&mean_queue_s),
                "{rate_mbps} {rtt_ms} {mean_queue_s}"
            );
            assert_eq!(failed, 0.0, "{rate_mbps} {rtt_ms}");
        }
    }
}

#[test]
fn flows_count_by_their_share_of_the_link_alone() {
    let (one, eight) = (cycle(20.0, 40.0, 1.0), EbbCycle::new(8e6 / 600.0, 0.0406, 8.0).unwrap());
    assert!((one.period_s / eight.period_s - 1.0).abs() < 0.01, "{one:?} {eight:?}");
}

#[test]
fn values_out_of_range_are_refused() {
    for (capacity_pps, rtt_s, flows) in
        [(0.0, 0.1, 1.0), (1e3, 0.0, 1.0), (1e3, f64::NAN, 1.0), (1e3, 0.1, 0.5), (1e3, 0.1, 1e3)]
    {
        assert!(
            EbbCycle::new(capacity_pps, rtt_s, flows).is_err(),
            "{capacity_pps} {rtt_s} {flows}"
        );
    }
}
