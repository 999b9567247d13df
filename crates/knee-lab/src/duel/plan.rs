//! Plan of the runs, and their measures.

use super::{Entrant, WrittenPath};
use knee_model::{NS_PER_MS, NS_PER_US, Ns, RunRecord, RunSpec, milliseconds, seconds};
use knee_results::metrics::Metrics;
use knee_scenario::{
    Scenario, ScenarioError, Set,
    units::{RATE, TIME, show_queue},
};
use serde::Serialize;

/// The second flow starts when this part of the run is over.
const SECOND_STARTS: u64 = 12;
/// The measured stretch begins when this part of the run is over.
const MEASURED_FROM: u64 = 3;
/// Least duration, in round-trip times of the path.
const LEAST_RTTS: u64 = 100;
/// Packets reach the bottleneck later by up to this or the time of a packet there, the lesser.
const ACCESS_JITTER_NS: Ns = 500 * NS_PER_US;
/// Convergence: Jain's index of the goodputs over so many round-trip times ...
const CONVERGED_RTTS: u64 = 50;
/// ... is at least this, for as many round-trip times again.
const CONVERGED_JAIN: f64 = 0.9;
/// Most bins of a run.
const BINS_MAX: u64 = 100_000;

/// The length and number of the runs of a contest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Length of a run.
    pub duration_ns: Ns,
    /// Repetitions of each run.
    pub repeat: u32,
    /// Seed of the first repetition; the next ones count up from it.
    pub seed: u64,
    /// Extra delay of each packet on each access link, uniform from 0 to this.
    pub noise_ns: Ns,
}

impl Plan {
    /// The start of the second of two flows, up to one round-trip time of jitter aside.
    pub fn second_starts_ns(&self) -> Ns {
        self.duration_ns / SECOND_STARTS
    }

    /// Start of the stretch in which all but the convergence time is measured, to the end.
    pub fn measured_from_ns(&self) -> Ns {
        self.duration_ns / MEASURED_FROM
    }

    /// Checks that runs on `path` are long enough to be judged.
    ///
    /// # Errors
    /// In words, with the correct values.
    pub fn check(&self, path: &WrittenPath) -> Result<(), String> {
        let least_ns = LEAST_RTTS * path.rtt_ns;
        if self.duration_ns >= least_ns {
            return Ok(());
        }
        Err(format!(
            "runs of {} are too short for a path of {}; lengthen --duration to {} or more, which \
             is {LEAST_RTTS} round-trip times",
            TIME.show(self.duration_ns),
            TIME.show(path.rtt_ns),
            TIME.show(least_ns)
        ))
    }

    /// Seed of repetition `r`, counted from 0.
    pub fn seed_of(&self, r: u32) -> u64 {
        self.seed.saturating_add(u64::from(r))
    }

    /// The flows of `entrants`, one or two, on `path`: the second starts later. Starts vary by up
    /// to a round-trip time from repetition to repetition, and a packet's way to the bottleneck
    /// by up to its own time there: otherwise drop-tail queues would prefer the flow whose packets
    /// happen to arrive just after departures (phase effects; Floyd and Jacobson, 1992).
    ///
    /// # Errors
    /// A host's limits, as the scenario's reader knows them.
    pub fn scenario(
        &self,
        path: &WrittenPath,
        entrants: &[&Entrant],
    ) -> Result<Scenario, ScenarioError> {
        let (rtt, jitter_ns) = (path.rtt_ns, path.packet_time_ns().min(ACCESS_JITTER_NS));
        let bin_ns = (rtt / 2).clamp(NS_PER_MS, 20 * NS_PER_MS).max(self.duration_ns / BINS_MAX);
        let mut text = format!(
            "duration = \"{}\"\nseed = {}\nrepeat = {}\n\n[path]\nrate = \"{}\"\nrtt = \"{}\"\n\
             queue = \"{}\"\n",
            TIME.show(self.duration_ns),
            self.seed,
            self.repeat,
            RATE.show(path.rate_bps),
            TIME.show(rtt),
            show_queue(path.queue)
        );
        if path.loss_ppm > 0 {
            text += &format!("loss_forward = {}\n", path.loss());
        }
        if self.noise_ns > 0 {
            text += &format!("noise = \"{}\"\n", TIME.show(self.noise_ns));
        }
        text += &format!("\n[record]\nbin = \"{}\"\n", TIME.show(bin_ns));
        for (name, start_ns) in
            ["first", "second"].into_iter().zip([0, self.second_starts_ns()]).take(entrants.len())
        {
            text += &format!(
                "\n[[flow]]\nname = \"{name}\"\nstart = \"{}\"\nstart_jitter = \"{}\"\n\
                 access_jitter = \"{}\"\n",
                TIME.show(start_ns),
                TIME.show(rtt),
                TIME.show(jitter_ns)
            );
        }
        let sets = entrants.iter().enumerate().flat_map(|(index, entrant)| entrant.sets(index));
        let sets = sets.map(|s| Set::parse(&s)).collect::<Result<Vec<_>, _>>()?;
        Scenario::parse("the contest", &text, &sets)
    }

    /// The rule of measurement, in words.
    pub(super) fn words(&self) -> String {
        format!(
            "The second flow starts at {:.3} s, a random part of a round-trip time later. Goodput, \
             share, loss, delay and Jain's index are measured from {:.3} s to the end at {:.3} s. \
             Convergence is the time from the start of the second flow until Jain's index of the \
             goodputs over {CONVERGED_RTTS} round-trip times is at least {CONVERGED_JAIN} and stays \
             there for as long again.",
            seconds(self.second_starts_ns()),
            seconds(self.measured_from_ns()),
            seconds(self.duration_ns)
        )
    }
}

/// Measures of a run of two flows over its measured stretch; pairs hold the first to start, then the second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bout {
    /// Goodputs, bit/s.
    pub goodput_bps: [f64; 2],
    /// Fractions of their packets that were lost; `None` if none was sent.
    pub loss: [Option<f64>; 2],
    /// The same of both together.
    pub loss_both: Option<f64>,
    /// Mean queueing delay, milliseconds.
    pub queueing_mean_ms: Option<f64>,
    /// Its 95th percentile.
    pub queueing_p95_ms: Option<f64>,
    /// Round-trip time of the path with the mean queueing delay, milliseconds.
    pub rtt_ms: Option<f64>,
    /// Jain's index of the goodputs.
    pub jain: Option<f64>,
    /// Convergence time from the start of the second flow, seconds; `None` if never.
    pub convergence_s: Option<f64>,
    /// Utilisation of the bottleneck, 0 to 1.
    pub utilisation: Option<f64>,
}

impl Bout {
    /// The measures of `record`, a run of `spec` on `path`.
    pub fn of(plan: &Plan, path: &WrittenPath, spec: &RunSpec, record: &RunRecord) -> Self {
        let m = Metrics::new(spec, record);
        let (from_s, to_s) = (seconds(plan.measured_from_ns()), seconds(record.duration_ns));
        let rtt_s = seconds(path.rtt_ns);
        let converged_s = CONVERGED_RTTS as f64 * rtt_s;
        let queueing_mean_ms = m.mean_queueing_delay_ms(from_s, to_s);
        let second_s = record.flows.get(1).map_or(0.0, |f| seconds(f.start_ns));
        Self {
            goodput_bps: [0, 1].map(|i| m.goodput_bps(i, from_s, to_s).unwrap_or(0.0)),
            loss: [0, 1].map(|i| m.loss_fraction(&[i], from_s, to_s)),
            loss_both: m.loss_fraction(&[0, 1], from_s, to_s),
            queueing_mean_ms,
            queueing_p95_ms: m.queueing_delay_percentile_ms(0.95, from_s, to_s),
            rtt_ms: queueing_mean_ms.map(|q| rtt_s * 1e3 + q),
            jain: m.jain(&[0, 1], from_s, to_s),
            convergence_s: m.convergence_s(
                &[0, 1],
                second_s,
                to_s,
                converged_s,
                CONVERGED_JAIN,
                converged_s,
            ),
            utilisation: m.utilisation_in(from_s, to_s),
        }
    }
}

/// Measures of a run of a single flow over its whole life, as in Pantheon.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Solo {
    /// Throughput after the bottleneck, headers and retransmissions included, bit/s.
    pub throughput_bps: f64,
    /// 95th percentile of the one-way delay of packets, milliseconds.
    pub one_way_p95_ms: Option<f64>,
    /// Fraction of its packets that were lost.
    pub loss: Option<f64>,
}

impl Solo {
    /// The measures of `record`, a run of `spec` on `path`.
    pub fn of(path: &WrittenPath, spec: &RunSpec, record: &RunRecord) -> Self {
        let m = Metrics::new(spec, record);
        let start_ns = record.flows.first().map_or(0, |f| f.start_ns);
        let life_s = seconds(record.duration_ns.saturating_sub(start_ns));
        let bits = record.queues[0].departed_bytes as f64 * 8.0;
        let alone_ms =
            milliseconds(spec.path.delay_forward_ns) + milliseconds(path.packet_time_ns());
        Self {
            throughput_bps: if life_s > 0.0 { bits / life_s } else { 0.0 },
            one_way_p95_ms: m.queueing_delay().map(|delay| alone_ms + delay.p95_ms),
            loss: m.lost_fraction(&[0]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_fixtures::{self as testing, MS, flow, record};
    use knee_model::{FlowKind, NS_PER_S, QueueBin, QueueLimit, TcpSpec};

    const PLAN: Plan = Plan { duration_ns: 60 * NS_PER_S, repeat: 3, seed: 7, noise_ns: 0 };

    fn path(text: &str) -> WrittenPath {
        WrittenPath::parse(text).unwrap()
    }

    #[test]
    fn the_scenario_is_the_contest() {
        let entrants = ["chd:qth=20ms", "newreno"].map(|e| Entrant::parse(e).unwrap());
        let given = path("100mbit,40ms,1bdp,loss=0.001");
        let scenario = PLAN.scenario(&given, &[&entrants[0], &entrants[1]]).unwrap();
        let spec = scenario.spec(PLAN.seed_of(2));
        assert_eq!((spec.seed, spec.duration_ns, scenario.repeat()), (9, 60 * NS_PER_S, 3));
        assert_eq!(
            (spec.path.hops[0].rate_bps, spec.path.rtt_range_ns()),
            (100_000_000, (40 * MS, 40 * MS))
        );
        assert_eq!(spec.path.hops[0].queue, QueueLimit::Packets(333));
        assert_eq!((spec.path.hops[0].loss, spec.path.loss_reverse), (0.001, 0.0));
        assert_eq!(spec.record.bin_ns, 20 * MS);
        for ((flow, entrant), start_s) in spec.flows.iter().zip(&entrants).zip([0, 5]) {
            assert_eq!(flow.start_ns, start_s * NS_PER_S);
            assert_eq!((flow.start_jitter_ns, flow.access_jitter_ns), (40 * MS, 120_000));
            let FlowKind::Tcp(TcpSpec { cc, .. }) = &flow.kind else { panic!("not TCP") };
            assert_eq!(*cc, entrant.cc);
        }
        // It runs by itself.
        let again = Scenario::parse("again", scenario.text(), &[]).unwrap();
        assert_eq!(format!("{:?}", again.spec(9)), format!("{spec:?}"));
        let noisy = Plan { noise_ns: 100_000, ..PLAN }.scenario(&given, &[&entrants[0]]).unwrap();
        assert_eq!((spec.path.noise_ns, noisy.spec(7).path.noise_ns), (0, 100_000));
        let alone = PLAN.scenario(&given, &[&entrants[0]]).unwrap();
        assert_eq!(alone.spec(7).flows.len(), 1);
    }

    #[test]
    fn too_short_to_be_judged() {
        let plan = Plan { duration_ns: 4 * NS_PER_S, ..PLAN };
        assert_eq!(plan.check(&path("100mbit,40ms,1bdp")), Ok(()));
        let said = plan.check(&path("100mbit,41ms,1bdp")).unwrap_err();
        assert!(said.contains("4.1s or more"), "{said}");
    }

    /// 12 s in bins of 1 s: the second flow starts at 1 s, measured from 4 s on.
    #[test]
    fn a_bout_by_hand() {
        let a = [125_000, 125_000, 125_000, 125_000, 75_000, 75_000];
        let b = [0, 25_000, 25_000, 25_000, 25_000, 25_000];
        let whole = |six: [u64; 6]| [six.to_vec(), vec![six[5]; 6]].concat();
        let mut r =
            record(12.0, 1.0, vec![flow("a", "chd", &whole(a)), flow("b", "hd", &whole(b))]);
        r.flows[1].start_ns = NS_PER_S;
        for (flow, lost) in r.flows.iter_mut().zip([1, 3]) {
            for (i, sample) in flow.samples.iter_mut().enumerate() {
                sample.sent_pkts = 50;
                sample.lost_pkts = if i < 4 { 25 } else { lost };
            }
        }
        let bin = |mean_ms: u64| QueueBin {
            departed_pkts: 10,
            departed_bytes: 62_500,
            delay_sum_ns: 10 * mean_ms * MS,
            ..QueueBin::default()
        };
        // Ten-packet bins from 4 s on: one of 80 ms, seven of 8 ms.
        let bins = [vec![bin(500); 4], vec![bin(80)], vec![bin(8); 7]].concat();
        r.queues[0] = testing::queue(&bins);
        let spec = testing::spec(&r);
        let plan = Plan { duration_ns: 12 * NS_PER_S, repeat: 1, seed: 1, noise_ns: 0 };
        let bout = Bout::of(&plan, &path("1mbit,40ms,84p"), &spec, &r);
        assert_eq!(bout.goodput_bps, [600_000.0, 200_000.0]);
        assert_eq!(bout.loss, [Some(0.02), Some(0.06)]);
        assert_eq!(bout.loss_both, Some(0.04));
        assert_eq!(bout.queueing_mean_ms, Some(17.0)); // (80 + 7·8) / 8
        assert_eq!(bout.queueing_p95_ms, Some(80.0)); // rank 76 of 80
        assert_eq!(bout.rtt_ms, Some(57.0));
        assert_eq!(bout.jain, Some(0.8)); // (3 + 1)² / (2·(9 + 1))
        assert_eq!(bout.utilisation, Some(0.5));
        assert_eq!(bout.convergence_s, None, "an index of 0.8 is not enough");

        // Equal from 6 s on.
        for sample in &mut r.flows[0].samples[6..] {
            sample.delivered_bytes = 25_000;
        }
        let bout = Bout::of(&plan, &path("1mbit,40ms,84p"), &spec, &r);
        // Windows of 2 s, 50 round-trip times. [4, 6) has 0.8; [5, 7) has 100 kB and 50 kB,
        // 22.5/25 = 0.9, and starts 4 s after the second flow; the next ones have 1.
        assert_eq!(bout.convergence_s, Some(4.0));
    }

    #[test]
    fn a_single_flow_by_hand() {
        let mut r = record(10.0, 1.0, vec![flow("a", "chd", &[100_000; 10])]);
        r.flows[0].start_ns = 2 * NS_PER_S;
        r.flows[0].counters.sent_pkts = 1000;
        r.flows[0].counters.queue_drops_pkts = 20;
        r.queues[0].departed_bytes = 800_000;
        (1..=100).for_each(|n| r.queues[0].delay.add(n * MS));
        let spec = testing::spec(&r);
        let solo = Solo::of(&path("1mbit,40ms,84p"), &spec, &r);
        assert_eq!(solo.throughput_bps, 800_000.0);
        assert_eq!(solo.loss, Some(0.02));
        // 95 ms in the queue, 12 ms on the link, 20 ms of propagation.
        assert!((solo.one_way_p95_ms.unwrap() - 127.0).abs() < 0.4, "{solo:?}");
    }
}
