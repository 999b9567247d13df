//! NewReno's rate under random loss against the model of Mathis et al. (the CHD paper's eq. 5):
//!
//!     B = (packet size / RTT) sqrt(3/2) / sqrt(p), at most the rate of the link.
//!
//! Convention: rates of whole 1500-byte packets on both sides (delivered packets, each once; the
//! share of payload cancels out), RTT without a queue.

mod common;

use common::{MS, S, newreno, options, run, spec, ten_mbit};
use knee_model::{RecordSpec, Recovery, RunSpec, Workload};

const RTT_S: f64 = 0.04;
const LINK_BPS: f64 = 10e6;
const PACKET_BITS: f64 = 12_000.0;
const SEEDS: u64 = 10;

/// Mean rate of one NewReno flow, an ACK for each packet: 10 Mb/s, 40 ms, 84 packets, 60 s.
fn measured_bps(recovery: Recovery, loss: f64) -> f64 {
    let mut path = ten_mbit(84);
    path.hops[0].loss = loss;
    let flows = vec![newreno(Workload::Bulk, options(recovery))];
    let spec = RunSpec { record: RecordSpec::default(), ..spec(path, 60 * S, flows) };
    let delivered = |seed| run(&RunSpec { seed, ..spec.clone() }).flows[0].counters.delivered_pkts;
    let total: u64 = (1..=SEEDS).map(delivered).sum();
    assert_eq!(spec.path.delay_forward_ns + spec.path.delay_reverse_ns, 40 * MS);
    total as f64 * PACKET_BITS / (60.0 * SEEDS as f64)
}

fn mathis_bps(loss: f64) -> f64 {
    (PACKET_BITS / RTT_S * (1.5 / loss).sqrt()).min(LINK_BPS)
}

/// The same with one RTT of recovery in each cycle, at half the window and without growth: W from
/// 1/p = 3/8 W^2 + W/2 packets per cycle of W/2 + 1 RTTs. It matters where the window is small.
fn with_recovery_bps(loss: f64) -> f64 {
    let window = ((0.25 + 1.5 / loss).sqrt() - 0.5) / 0.75;
    (PACKET_BITS / RTT_S / loss / (window / 2.0 + 1.0)).min(LINK_BPS)
}

#[test]
fn rate_follows_the_square_root_of_loss() {
    for recovery in [Recovery::Sack, Recovery::Newreno] {
        for loss in [0.003, 0.005, 0.01, 0.02, 0.03] {
            let measured = measured_bps(recovery, loss);
            let shown = format!("{recovery:?}, p = {loss}: {:.2} Mb/s", measured / 1e6);
            // The model has no time for recovery: it lies above, by 13 % at p = 0.03, where one RTT
            // of it counts. 1000 to 3000 losses leave a standard error of at most 1.6 % in the rate.
            let off = measured / mathis_bps(loss) - 1.0;
            assert!((-0.18..=0.02).contains(&off), "{shown}, {:+.1} % off Mathis", off * 100.0);
            // With that RTT NewReno is up to 5 % below, SACK up to 6 % above.
            let off = measured / with_recovery_bps(loss) - 1.0;
            assert!(off.abs() < 0.06, "{shown}, {:+.1} % off with recovery", off * 100.0);
        }
    }
}
