//! Properties of every run, over random runs.

mod common;

use common::{MS, S, run};
use knee_cc::{Conn, Event, Phase, Profile, algorithms};
use knee_model::{
    Aqm, BurstLoss, Call, CallRecord, Cc, CoDel, DelayedAck, DeliveryTrace, Discipline, FlowKind,
    FlowRecord, FlowSpec, FqCoDel, Fred, HopSpec, NS_PER_S, NS_PER_US, Ns, PacketEvent, PacketLog,
    PathSpec, Pie, QueueLimit, Rate, ReceiverConduct, RecordSpec, Recovery, Red, Reorder,
    ReverseLink, Route, RunRecord, RunSpec, TcpOptions, TcpSpec, Transport, Varying, Workload,
};
use knee_sim::Stepped;
use proptest::{prelude::*, test_runner::RngSeed};
use std::{collections::VecDeque, sync::Arc};

/// Uniform in the logarithm: short and long, slow and fast alike.
fn log_uniform(low: u64, high: u64) -> impl Strategy<Value = u64> {
    let (a, b) = ((low as f64).ln(), (high as f64).ln());
    (0.0..1.0f64).prop_map(move |x| ((a + (b - a) * x).exp() as u64).clamp(low, high))
}

/// Often 0, else up to `high`, down to single nanoseconds.
fn often_zero(high: u64) -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(0), 1 => 1u64..4, 2 => log_uniform(1, high)]
}

fn probability() -> impl Strategy<Value = f64> {
    prop_oneof![1 => Just(0.0), 1 => 0.0..0.1f64]
}

fn queue() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        1 => (1u32..3).prop_map(QueueLimit::Packets),
        2 => (3u32..100).prop_map(QueueLimit::Packets),
        1 => (1500u64..4000).prop_map(QueueLimit::Bytes),
        2 => (4000u64..150_000).prop_map(QueueLimit::Bytes),
        1 => (0u64..50_000).prop_map(QueueLimit::BytesAndOne),
    ]
}

/// Constant most often; else rates that change, with outages, or a delivery trace.
fn varying(rate_bps: u64) -> impl Strategy<Value = Option<Varying>> {
    let rate = prop_oneof![1 => Just(0), 4 => log_uniform(rate_bps / 4, rate_bps * 2)];
    let steps = prop::collection::btree_map(log_uniform(MS, 2 * S), rate, 1..6)
        // An outage ends.
        .prop_map(move |steps| {
            Varying::Steps(steps.into_iter().chain([(2 * S + 1, rate_bps)]).collect())
        });
    let gaps = prop_oneof![4 => 0u64..3, 1 => 0u64..100];
    let trace = prop::collection::vec(gaps, 1..200).prop_map(|gaps| {
        let mut ms = 1;
        let times: Vec<u64> = gaps
            .iter()
            .map(|gap| {
                ms += gap;
                ms
            })
            .collect();
        Varying::Trace(Arc::new(DeliveryTrace::new(&times).expect("in order")))
    });
    prop_oneof![4 => Just(None), 1 => steps.prop_map(Some), 1 => trace.prop_map(Some)]
}

fn delay_steps() -> impl Strategy<Value = Vec<(Ns, Ns)>> {
    let steps = prop::collection::btree_map(log_uniform(MS, 2 * S), 1..50 * MS, 1..6)
        .prop_map(|steps| steps.into_iter().collect());
    prop_oneof![3 => Just(Vec::new()), 1 => steps]
}

fn bursts() -> impl Strategy<Value = Option<BurstLoss>> {
    let loss = (0.0..0.05f64, 0.2..=1.0f64, 0.0..0.02f64, 0.0..=1.0f64);
    let loss = loss.prop_map(|(good_to_bad, bad_to_good, loss_good, loss_bad)| BurstLoss {
        good_to_bad,
        bad_to_good,
        loss_good,
        loss_bad,
    });
    prop_oneof![3 => Just(None), 1 => loss.prop_map(Some)]
}

/// A reverse link that carries the ACKs of `rate_bps` easily, or hardly.
fn reverse(rate_bps: u64) -> impl Strategy<Value = Option<ReverseLink>> {
    let link = (log_uniform(rate_bps / 200 + 1, rate_bps), queue());
    let link = link.prop_flat_map(|(rate_bps, queue)| {
        varying(rate_bps).prop_map(move |rate_varies| ReverseLink { rate_bps, rate_varies, queue })
    });
    prop_oneof![3 => Just(None), 1 => link.prop_map(Some)]
}

/// Any path: as [`plain_path`], or with whatever a path can have.
fn path() -> impl Strategy<Value = PathSpec> {
    let other = plain_path().prop_flat_map(|path| {
        let reorder = prop_oneof![
            1 => Just(None),
            1 => (0.0..0.3f64, log_uniform(1, 50 * MS)).prop_map(|(probability, extra_delay_ns)| {
                Some(Reorder { probability, extra_delay_ns })
            }),
        ];
        let delays = (delay_steps(), delay_steps(), any::<bool>());
        let links = (varying(path.hops[0].rate_bps), reverse(path.hops[0].rate_bps));
        (Just(path), links, delays, (bursts(), bursts()), reorder).prop_map(
            |(path, (rate_varies, reverse), delays, bursts, reorder)| PathSpec {
                hops: vec![HopSpec { rate_varies, bursts: bursts.0, ..path.hops[0].clone() }],
                reverse,
                delay_forward_steps: delays.0,
                delay_reverse_steps: delays.1,
                falls_reorder: delays.2,
                bursts_reverse: bursts.1,
                reorder,
                ..path
            },
        )
    });
    prop_oneof![plain_path(), other]
}

fn plain_path() -> impl Strategy<Value = PathSpec> {
    let delays = (often_zero(50 * MS), often_zero(50 * MS));
    let jitters = (often_zero(5 * MS), often_zero(5 * MS));
    (log_uniform(500_000, 1_000_000_000), queue(), delays, jitters, probability(), probability())
        .prop_map(|(rate_bps, queue, delay, jitter, loss, loss_reverse)| PathSpec {
            hops: vec![HopSpec { loss, ..HopSpec::new(rate_bps, queue) }],
            delay_forward_ns: delay.0,
            delay_reverse_ns: delay.1,
            loss_reverse,
            jitter_forward_ns: jitter.0,
            jitter_reverse_ns: jitter.1,
            ..PathSpec::symmetric(rate_bps, 0, queue)
        })
}

/// Every discipline, with parameters that make it act in short runs too.
fn aqm() -> impl Strategy<Value = Aqm> {
    let codel = || {
        (log_uniform(MS / 10, 5 * MS), log_uniform(MS, 100 * MS))
            .prop_map(|(target_ns, interval_ns)| CoDel { target_ns, interval_ns })
    };
    let red = (0.002..1.0f64, 0.02..1.0f64, any::<bool>()).prop_map(
        |(weight, max_probability, gentle)| Red {
            weight,
            max_probability,
            gentle,
            ..Red::default()
        },
    );
    let fred = (0.002..1.0f64, 0.02..1.0f64).prop_map(|(weight, max_probability)| Fred {
        weight,
        max_probability,
        ..Fred::default()
    });
    let pie = (log_uniform(MS, 15 * MS), log_uniform(MS, 15 * MS), often_zero(150 * MS)).prop_map(
        |(target_ns, update_ns, burst_ns)| Pie { target_ns, update_ns, burst_ns, ..Pie::default() },
    );
    let fq = (codel(), 1u32..3000, 1u32..10).prop_map(|(codel, quantum_bytes, queues)| FqCoDel {
        codel,
        quantum_bytes,
        queues,
    });
    let discipline = prop_oneof![
        red.prop_map(Discipline::Red),
        fred.prop_map(Discipline::Fred),
        codel().prop_map(Discipline::CoDel),
        fq.prop_map(Discipline::FqCoDel),
        pie.prop_map(Discipline::Pie),
    ];
    (discipline, any::<bool>()).prop_map(|(discipline, ecn)| Aqm { discipline, ecn })
}

fn tcp_options() -> impl Strategy<Value = TcpOptions> {
    let sizes = (200u32..1449, 1u32..20, prop_oneof![1 => 1u32..30, 2 => Just(100_000)]);
    let timers = (log_uniform(MS, S), prop_oneof![Just(0), Just(MS / 2), Just(MS)]);
    let acks = (1u32..4, log_uniform(MS / 10, 200 * MS), 0u32..40);
    let recovery = prop_oneof![
        2 => Just(Recovery::Sack),
        1 => Just(Recovery::Newreno),
        1 => Just(Recovery::NewrenoPrr),
    ];
    let offload = prop_oneof![3 => Just(false), 1 => Just(true)];
    let flags = (recovery, any::<bool>(), any::<bool>(), any::<bool>(), offload);
    (sizes, timers, acks, flags).prop_map(|(sizes, timers, acks, flags)| TcpOptions {
        mss_bytes: sizes.0,
        header_bytes: 52,
        recovery: flags.0,
        initial_window_pkts: sizes.1,
        receive_window_pkts: sizes.2,
        rto_min_ns: timers.0,
        delayed_ack: DelayedAck { every_pkts: acks.0, timeout_ns: acks.1 },
        limited_transmit: flags.1,
        idle_restart: flags.2,
        segmentation_offload: flags.4,
        rtt_tick_ns: timers.1,
        quick_ack_pkts: acks.2,
        ecn: flags.3,
        receiver: ReceiverConduct::Honest,
    })
}

fn tcp(workload: impl Strategy<Value = Workload>) -> impl Strategy<Value = FlowKind> {
    (0..algorithms().len(), workload, tcp_options()).prop_map(|(index, workload, mut options)| {
        let params = knee_cc::Params::defaults(algorithms()[index]);
        if params.algorithm().profile() == Profile::Rate {
            options.recovery = Recovery::Sack;
        }
        FlowKind::Tcp(TcpSpec {
            transport: Transport::Own,
            cc: Cc::Knee(params),
            workload,
            options,
        })
    })
}

fn transfers(every: impl Strategy<Value = Option<Ns>>) -> impl Strategy<Value = Workload> {
    (log_uniform(1, 200_000), every)
        .prop_map(|(size_bytes, every_ns)| Workload::Transfers { size_bytes, every_ns })
}

fn kind() -> impl Strategy<Value = FlowKind> {
    let every = prop::option::of(log_uniform(MS, S));
    prop_oneof![
        6 => tcp(Just(Workload::Bulk)),
        3 => tcp(transfers(every)),
        1 => (log_uniform(10_000, 5_000_000), 40u32..1501)
            .prop_map(|(rate_bps, packet_bytes)| FlowKind::Udp { rate_bps, steps: Vec::new(), packet_bytes }),
        1 => (log_uniform(MS, 50 * MS), 40u32..300)
            .prop_map(|(interval_ns, packet_bytes)| FlowKind::Probe { interval_ns, packet_bytes }),
    ]
}

/// A flow in a run of `duration_ns`; start, jitter and stop come as shares of it.
fn flow(duration_ns: Ns) -> impl Strategy<Value = FlowSpec> {
    let life = (0.0..0.5f64, 0.0..0.2f64, prop::option::of(0.0..1.2f64));
    let access = (often_zero(20 * MS), often_zero(5 * MS));
    (kind(), life, access).prop_map(move |(kind, life, access)| {
        let share = |x: f64| (x * duration_ns as f64) as Ns;
        FlowSpec {
            name: "flow".to_owned(),
            start_ns: share(life.0),
            start_jitter_ns: share(life.1),
            stop_ns: life.2.map(share),
            access_delay_ns: access.0,
            access_delay_spread_ns: 0,
            access_jitter_ns: access.1,
            route: Route::default(),
            drawn: None,
            kind,
        }
    })
}

/// A run of at most about 3000 packets or five seconds.
fn run_spec() -> impl Strategy<Value = RunSpec> {
    let bins = prop_oneof![Just(0), log_uniform(MS, 100 * MS)];
    (path(), any::<u64>(), 0.1..1.0f64, bins)
        .prop_flat_map(|(path, seed, share, bin_ns)| {
            let longest_ns = (3000 * 1500 * 8 * NS_PER_S / path.hops[0].rate_bps).min(5 * S);
            let duration_ns = (share * longest_ns as f64) as Ns + MS;
            let flows = prop::collection::vec(flow(duration_ns), 1..7);
            (Just(path), Just((seed, duration_ns, bin_ns)), flows)
        })
        .prop_map(|(path, (seed, duration_ns, bin_ns), flows)| RunSpec {
            seed,
            duration_ns,
            path,
            flows,
            record: RecordSpec { bin_ns, queue_log: true, trace: true },
            sysctls: Vec::new(),
        })
}

/// A hop behind another one.
fn hop(rate_bps: u64) -> impl Strategy<Value = HopSpec> {
    let rate = log_uniform(rate_bps / 4, rate_bps * 4);
    (rate, queue(), often_zero(20 * MS), prop::option::of(aqm()), probability(), bursts())
        .prop_flat_map(|(rate_bps, queue, delay_ns, aqm, loss, bursts)| {
            varying(rate_bps).prop_map(move |rate_varies| HopSpec {
                delay_ns,
                rate_bps,
                rate_varies,
                queue,
                aqm: aqm.clone(),
                loss,
                bursts,
            })
        })
}

/// Any run, over one to four bottlenecks, of which each flow passes some; some flows are reverse ones.
fn routed_spec() -> impl Strategy<Value = RunSpec> {
    let route = || (any::<bool>(), 0usize..4, 0usize..4);
    let routed = move |spec: RunSpec| {
        let rate_bps = spec.path.hops[0].rate_bps;
        let hops = prop::collection::vec(hop(rate_bps), 0..4);
        let routes = prop::collection::vec(route(), spec.flows.len());
        let first = (prop::option::of(aqm()), reverse(rate_bps));
        (Just(spec), hops, routes, first)
    };
    run_spec().prop_flat_map(routed).prop_map(|(mut spec, later, routes, (aqm, reverse))| {
        let last = later.len();
        spec.path.hops[0].aqm = aqm;
        spec.path.hops.extend(later);
        spec.path.reverse = reverse;
        let has_link = spec.path.reverse.is_some();
        for (flow, (reverse, a, b)) in spec.flows.iter_mut().zip(routes) {
            let (a, b) = (a.min(last), b.min(last));
            let reverse = reverse && has_link;
            flow.route = Route { reverse, first_hop: a.min(b), last_hop: Some(a.max(b)) };
        }
        spec
    })
}

/// `cases` cases; a failure prints its input whole, so nothing is kept in files.
fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// A run of the tests repeats the last one: cargo sets PROPTEST_RNG_SEED (`.cargo/config.toml`).
#[test]
fn the_seed_is_fixed() {
    let seed = ProptestConfig::default().rng_seed;
    assert!(matches!(seed, RngSeed::Fixed(_)), "PROPTEST_RNG_SEED is not set: use cargo test");
}

type Outcome = Result<(), TestCaseError>;

/// Every packet that was sent is somewhere, once; of each flow.
fn check_conservation(record: &RunRecord) -> Outcome {
    for flow in &record.flows {
        let c = &flow.counters;
        let accounted = c.delivered_pkts
            + c.duplicate_pkts
            + c.queue_drops_pkts
            + c.random_losses_pkts
            + c.in_network_pkts;
        prop_assert_eq!(c.sent_pkts, accounted, "{:?}", c);
        prop_assert!(c.retransmitted_pkts <= c.sent_pkts);
        // Only a retransmission arrives twice.
        prop_assert!(c.duplicate_pkts <= c.retransmitted_pkts);
    }
    Ok(())
}

/// Every drop of a queue belongs to a flow. Each packet that leaves a bottleneck comes to the next one that
/// its flow passes, in order, at the right time.
fn check_hops(spec: &RunSpec, record: &RunRecord) -> Outcome {
    let queues = &record.queues;
    prop_assert_eq!(queues.len(), spec.path.hops.len());
    let reverse = spec.flows.iter().any(|flow| flow.route.reverse);
    prop_assert_eq!(record.reverse_queue.is_some(), reverse);
    let dropped: u64 = queues.iter().map(|queue| queue.dropped_pkts).sum();
    let (mut drops_forward, mut drops_reverse) = (0, 0);
    for (flow, of) in record.flows.iter().zip(&spec.flows) {
        let (data, acks) = (flow.counters.queue_drops_pkts, flow.counters.ack_drops_pkts);
        drops_forward += if of.route.reverse { acks } else { data };
        drops_reverse += if of.route.reverse { data } else { acks };
    }
    prop_assert_eq!(drops_forward, dropped);
    if let Some(queue) = &record.reverse_queue {
        prop_assert_eq!(drops_reverse, queue.dropped_pkts);
    }
    let is_departure = |l: &&PacketLog| l.event == PacketEvent::Departed;
    for (index, queue) in queues.iter().enumerate() {
        let left = queue.log.iter().filter(is_departure).count() as u64;
        prop_assert_eq!(left, queue.departed_pkts);
        let passes = |l: &&PacketLog| {
            let route = &spec.flows[l.flow as usize].route;
            (route.first_hop..=route.last_hop(&spec.path)).contains(&index)
        };
        prop_assert!(queue.log.iter().all(|l| passes(&l)));
        let Some(next) = spec.path.hops.get(index + 1).filter(|next| next.aqm.is_none()) else {
            continue;
        };
        let goes_on =
            |l: &&PacketLog| spec.flows[l.flow as usize].route.last_hop(&spec.path) > index;
        let comes = |l: &&PacketLog| {
            spec.flows[l.flow as usize].route.first_hop <= index && l.event != PacketEvent::Departed
        };
        let mut came = queues[index + 1].log.iter().filter(comes);
        for left in queue.log.iter().filter(is_departure).filter(goes_on) {
            let due_ns = left.time_ns + next.delay_ns;
            let Some(came) = came.next() else {
                prop_assert!(due_ns >= spec.duration_ns);
                break;
            };
            let at = (came.flow, came.number, came.bytes, came.time_ns);
            prop_assert_eq!(at, (left.flow, left.number, left.bytes, due_ns));
        }
        prop_assert!(came.next().is_none());
    }
    Ok(())
}

/// The queue's log against the definition of a drop-tail queue before a link of constant rate. For other
/// rates knee-net has tests; here, only that nothing is lost or overtakes.
fn check_queue(spec: &RunSpec, record: &RunRecord) -> Outcome {
    let rate_bps = u128::from(spec.path.hops[0].rate_bps);
    let constant = spec.path.hops[0].rate_varies.is_none();
    let mut held = VecDeque::new();
    let mut held_bytes = 0;
    let (mut now_ns, mut last_departure_ns) = (0, 0);
    let (mut busy_since_ns, mut busy_bits) = (0, 0);
    let mut waits_ns: Vec<Ns> = Vec::new();
    let (mut most_held, mut departed_bytes, mut dropped) = (0, 0, 0);
    for line in &record.queues[0].log {
        prop_assert!(line.time_ns >= now_ns && line.time_ns <= spec.duration_ns);
        now_ns = line.time_ns;
        let fits = match spec.path.hops[0].queue {
            QueueLimit::Packets(limit) => held.len() < limit as usize,
            QueueLimit::Bytes(limit) => held_bytes + u64::from(line.bytes) <= limit,
            QueueLimit::BytesAndOne(limit) => held_bytes <= limit,
        };
        match line.event {
            PacketEvent::Enqueued => {
                prop_assert!(fits);
                if held.is_empty() {
                    (busy_since_ns, busy_bits) = (now_ns, 0);
                }
                held_bytes += u64::from(line.bytes);
                held.push_back((line.flow, line.number, line.bytes, now_ns));
                most_held = most_held.max(held.len());
            }
            PacketEvent::Dropped => {
                prop_assert!(!fits);
                dropped += 1;
            }
            PacketEvent::Lost => {
                prop_assert!(spec.path.hops[0].loss > 0.0 || spec.path.hops[0].bursts.is_some());
            }
            PacketEvent::Departed => {
                let (flow, number, bytes, since_ns) = held.pop_front().expect("was enqueued");
                prop_assert_eq!((flow, number, bytes), (line.flow, line.number, line.bytes));
                held_bytes -= u64::from(bytes);
                departed_bytes += u64::from(bytes);
                waits_ns.push(last_departure_ns.max(since_ns) - since_ns);
                last_departure_ns = now_ns;
                // Work done since the busy period began: exact but for the fraction of a
                // nanosecond that the clock cannot show.
                busy_bits += u128::from(bytes) * 8;
                let work = busy_bits * u128::from(NS_PER_S);
                let done = u128::from(now_ns - busy_since_ns) * rate_bps;
                let exact = work < done + rate_bps && done < work + rate_bps;
                prop_assert!(exact || !constant);
            }
        }
        prop_assert_eq!(line.held_pkts as usize, held.len());
    }
    let queue = &record.queues[0];
    prop_assert_eq!(queue.max_pkts as usize, most_held);
    prop_assert_eq!(queue.departed_pkts, waits_ns.len() as u64);
    prop_assert_eq!(queue.departed_bytes, departed_bytes);
    prop_assert_eq!(queue.dropped_pkts, dropped);
    if spec.record.bin_ns > 0 {
        prop_assert_eq!(queue.delay.count(), waits_ns.len() as u64);
        let longest_ns = waits_ns.iter().copied().max().unwrap_or(0);
        prop_assert!(queue.delay.max_ns() == longest_ns || !constant);
        let in_bins: Ns = queue.bins.iter().map(|b| b.delay_sum_ns).sum();
        let on_the_last_edge = spec.duration_ns.is_multiple_of(spec.record.bin_ns);
        prop_assert!(on_the_last_edge || !constant || in_bins == waits_ns.iter().sum());
    }
    Ok(())
}

/// Nothing before the bottleneck reorders, so segments reach the bottleneck in the order of their sending:
/// a number that was not seen before is the successor of the highest one, until then.
fn check_order(spec: &RunSpec, record: &RunRecord) -> Outcome {
    let mut next = vec![0; spec.flows.len()];
    for line in record.queues[0].log.iter().filter(|l| l.event != PacketEvent::Departed) {
        let next = &mut next[line.flow as usize];
        prop_assert!(line.number <= *next, "{} overtook {}", line.number, next);
        *next = (*next).max(line.number + 1);
    }
    Ok(())
}

/// Rows of the time series add up to the totals.
fn check_series(spec: &RunSpec, record: &RunRecord) -> Outcome {
    let bin_ns = spec.record.bin_ns;
    let rows = if bin_ns == 0 { 0 } else { spec.duration_ns.div_ceil(bin_ns) };
    prop_assert_eq!(record.queues[0].bins.len() as u64, rows);
    for (flow, spec_flow) in record.flows.iter().zip(&spec.flows) {
        prop_assert_eq!(flow.samples.len() as u64, rows);
        prop_assert!(flow.stop_ns <= spec.duration_ns);
        if bin_ns == 0 || spec.duration_ns.is_multiple_of(bin_ns) {
            continue; // what happens at the very end belongs to no row
        }
        let sum = |f: fn(&knee_model::FlowSample) -> u64| flow.samples.iter().map(f).sum::<u64>();
        let c = &flow.counters;
        prop_assert_eq!(sum(|s| s.delivered_bytes), c.delivered_bytes);
        prop_assert_eq!(sum(|s| u64::from(s.sent_pkts)), c.sent_pkts);
        let lost = c.queue_drops_pkts + c.random_losses_pkts;
        prop_assert_eq!(sum(|s| u64::from(s.lost_pkts)), lost);
        for (row, sample) in flow.samples.iter().enumerate() {
            let end_ns = (row as u64 + 1) * bin_ns;
            let stopped =
                spec_flow.stop_ns.is_some_and(|stop_ns| stop_ns < end_ns.min(spec.duration_ns));
            let alive = flow.start_ns < end_ns && !stopped;
            prop_assert!(alive || sample.cwnd_pkts == 0);
        }
    }
    Ok(())
}

/// Marks only where both ends and the queue know them, and no reduction without a mark.
fn check_marks(spec: &RunSpec, record: &RunRecord) -> Outcome {
    let marks = spec.path.hops[0].aqm.as_ref().is_some_and(|aqm| aqm.ecn);
    let mut marked = 0;
    for (flow, flow_spec) in record.flows.iter().zip(&spec.flows) {
        let capable = matches!(&flow_spec.kind, FlowKind::Tcp(tcp) if tcp.options.ecn);
        let c = &flow.counters;
        prop_assert!(c.marked_pkts == 0 || (marks && capable));
        prop_assert!(c.ecn_reductions <= c.loss_events);
        prop_assert!(c.ecn_reductions == 0 || c.marked_pkts > 0);
        // A mark is echoed until CWR arrives: again and again if that is lost (RFC 3168 section 6.1.2).
        prop_assert!(c.ecn_reductions <= c.marked_pkts || c.retransmitted_pkts > 0, "{c:?}");
        marked += c.marked_pkts;
    }
    prop_assert_eq!(marked, record.queues[0].marked_pkts);
    let bin_ns = spec.record.bin_ns;
    if bin_ns > 0 && !spec.duration_ns.is_multiple_of(bin_ns) {
        let in_bins: u64 = record.queues[0].bins.iter().map(|b| u64::from(b.marked_pkts)).sum();
        prop_assert_eq!(in_bins, marked);
    }
    Ok(())
}

/// Least time that the links of `route` need for `pkts` packets of `bytes`; a trace delivers many packets at
/// once. A link whose rate changes forgets its remaining fraction of a nanosecond whenever it is idle: with a
/// queue of one packet, after each.
fn least_sending_ns(path: &PathSpec, route: &Route, pkts: u64, bytes: u64) -> Ns {
    let least = |rate: Rate<'_>| match rate.varying {
        Some(Varying::Trace(_)) => 0,
        Some(Varying::Steps(_)) => pkts * (bytes * 8 * NS_PER_S / rate.highest_bps()),
        None => pkts * bytes * 8 * NS_PER_S / rate.highest_bps(),
    };
    path.rates_of(route).map(least).sum()
}

fn is_rto(record: &CallRecord) -> bool {
    record.call == Call::OnEvent && record.event == Event::Rto as u32
}

/// A connection that an algorithm may see, and may leave.
fn check_conn(conn: &Conn) -> Outcome {
    prop_assert!((1..=conn.cwnd_max_pkts).contains(&conn.cwnd_pkts), "{:?}", conn);
    prop_assert!(conn.ssthresh_pkts >= 2, "{:?}", conn);
    prop_assert_eq!(conn.snd_pos.wrapping_sub(conn.ack_pos), conn.outstanding_pkts);
    prop_assert!(conn.inflight_pkts <= conn.outstanding_pkts, "{:?}", conn);
    prop_assert!(conn.phase <= Phase::Loss as u8);
    Ok(())
}

/// Checks a delivery rate sample: it covers no less than a round trip, and the deliveries since its start.
fn check_sample(ack: &knee_cc::Ack, base_us: u64) -> Outcome {
    prop_assert!(ack.sample_app_limited <= 1 && ack.advanced_pkts == 0);
    if ack.sample_us == 0 {
        prop_assert_eq!(ack.sample_pkts, 0, "{:?}", ack);
        return Ok(());
    }
    prop_assert!(u64::from(ack.sample_us) >= base_us, "{:?} {}", ack, base_us);
    prop_assert!(ack.acked_pkts > 0 && ack.sample_pkts >= ack.acked_pkts, "{:?}", ack);
    let then = (ack.delivered_pkts as u32).wrapping_sub(ack.sample_pkts);
    prop_assert_eq!(ack.sample_prior_pkts, then, "{:?}", ack);
    Ok(())
}

/// The calls of one flow against the contract.
fn check_trace(spec: &RunSpec, flow_spec: &FlowSpec, flow: &FlowRecord) -> Outcome {
    let FlowKind::Tcp(tcp) = &flow_spec.kind else {
        prop_assert!(flow.trace.is_empty());
        return Ok(());
    };
    let path = &spec.path;
    let bytes = u64::from(tcp.options.mss_bytes + tcp.options.header_bytes);
    let route = &flow_spec.route;
    let delay_ns = 2 * (flow_spec.access_delay_ns + path.hops_delay_ns(route));
    let base_ns = path.rtt_range_ns().0 + delay_ns + least_sending_ns(path, route, 1, bytes);
    let base_us = base_ns / NS_PER_US;
    prop_assert_eq!(flow.trace[0].call, Call::Init);
    let mut rtt: Option<CallRecord> = None; // the ACK under way
    let (mut recoveries, mut timeouts, mut undos) = (0, 0, 0);
    let (mut timed_out_pos, mut window_end_pos) = (None, flow.trace[0].before.snd_pos);
    let sack = tcp.options.recovery == Recovery::Sack;
    let is_rate = tcp.cc.params().is_some_and(|p| p.algorithm().profile() == Profile::Rate);
    let every_ack = if is_rate { Call::OnAck } else { Call::OnRtt };
    for pair in flow.trace.windows(2) {
        let (last, now) = (&pair[0], &pair[1]);
        check_conn(&now.before)?;
        check_conn(&now.after)?;
        prop_assert!(now.before.now_us >= last.before.now_us);
        let forward = now.before.ack_pos.wrapping_sub(last.before.ack_pos);
        prop_assert!(forward < 1 << 31, "the cumulative ACK never moves back");
        prop_assert_eq!(now.before.notes & !0xf, 0);
        match now.call {
            Call::Init => prop_assert!(false, "a second init"),
            call if call == every_ack => {
                let ack = &now.ack;
                // Timestamps measure repairs in whole ticks of 1 ms.
                let ticks = ack.rtt_us % 1000 == 0 && ack.rtt_us as u64 + 1000 > base_us;
                let possible = ack.rtt_us == -1 || ack.rtt_us as u64 >= base_us || ticks;
                prop_assert!(possible, "{:?}", ack);
                if !tcp.cc.params().is_some_and(|p| p.algorithm().uses_random()) {
                    prop_assert_eq!(ack.random, 0);
                }
                if is_rate {
                    check_sample(ack, base_us)?;
                } else {
                    let all_zero = knee_cc::Ack {
                        delivered_pkts: ack.delivered_pkts,
                        acked_pkts: ack.acked_pkts,
                        rtt_us: ack.rtt_us,
                        random: ack.random,
                        advanced_pkts: ack.advanced_pkts,
                        ..knee_cc::Ack::default()
                    };
                    prop_assert_eq!(*ack, all_zero);
                    prop_assert_eq!(ack.advanced_pkts, forward);
                }
                rtt = Some(*now);
            }
            Call::OnRtt => prop_assert!(false, "on_rtt in profile RATE"),
            Call::OnAck => {
                let rtt = rtt.take().expect("on_rtt comes first, on_ack once");
                prop_assert_eq!(now.before.now_us, rtt.before.now_us);
                let lost_pkts = now.ack.lost_pkts;
                prop_assert_eq!(now.ack, knee_cc::Ack { lost_pkts, advanced_pkts: 0, ..rtt.ack });
                prop_assert!(now.before.phase != Phase::Recovery as u8);
                prop_assert!(now.before.phase != Phase::Cwr as u8);
                prop_assert!(last.call != Call::Ssthresh);
            }
            Call::Ssthresh => {
                // Asked once per window: in a recovery only at a timeout once all of the window is
                // acknowledged; while a timeout is repaired only for a repair that is lost, or at a
                // timeout of another segment.
                let again = sack && now.before.phase == Phase::Loss as u8;
                let reducing = (Phase::Cwr as u8..Phase::Loss as u8).contains(&now.before.phase);
                let passed = now.before.ack_pos.wrapping_sub(window_end_pos) < 1 << 31;
                prop_assert!(!reducing || passed, "{:?}", now);
                window_end_pos = now.before.snd_pos;
                // Between two of them an ACK is given, in profile RATE after it was judged: the reordering
                // timer may have found the loss, the timeout come in its recovery, and the ACK tell that a
                // repair is lost (`timers_alone_may_come_between_two_reductions`). Or the ACK ends that
                // recovery, and reports another loss (`an_ack_may_end_a_recovery_and_begin_another`).
                // Or one ACK shows that a probe has repaired a loss, and reports another loss.
                let of_one_ack = last.before.now_us == now.before.now_us
                    && [last, now].iter().all(|call| call.before.phase == Phase::Open as u8);
                let beyond = now.before.ack_pos.wrapping_sub(last.before.snd_pos) < 1 << 31;
                let in_a_row = is_rate && (again || of_one_ack || beyond);
                prop_assert!(last.call != Call::Ssthresh || in_a_row, "{:?} after {:?}", now, last);
            }
            Call::OnEvent if is_rto(now) => {
                timeouts += 1;
                rtt = None;
                prop_assert_eq!(last.call, Call::Ssthresh);
                let pos = Some(now.before.ack_pos);
                let again = now.before.phase == Phase::Loss as u8;
                prop_assert!(!again || pos != timed_out_pos, "the same segment: {:?}", now);
                timed_out_pos = pos;
            }
            Call::OnEvent if is_rate => {
                prop_assert_eq!(now.event, Event::TxStart as u32);
                prop_assert_eq!(now.before.outstanding_pkts, 0);
            }
            Call::OnEvent => {
                if now.event == Event::Recovered as u32 {
                    // Or a probe has repaired a loss.
                    let phases = [Phase::Recovery as u8, Phase::Cwr as u8];
                    prop_assert!(phases.contains(&now.before.phase));
                }
            }
            Call::Undo => undos += 1,
        }
        match last.call {
            Call::Ssthresh if !is_rto(now) => {
                recoveries += 1;
                // Or already in the timeout of a lost retransmission, which asks nothing more. In
                // profile RATE a loss that a probe has repaired changes no phase.
                prop_assert!(is_rate || now.before.phase >= Phase::Cwr as u8);
                let found_in_loss = sack && last.before.phase == Phase::Loss as u8;
                prop_assert!(last.before.phase <= Phase::Disorder as u8 || found_in_loss);
                prop_assert_eq!(now.before.cwnd_cnt, 0);
            }
            Call::OnEvent if is_rto(last) => {
                // Profile RATE is not asked before the ACK is judged, which may be that of all.
                prop_assert!(is_rate || now.before.phase == Phase::Loss as u8);
                // Packets sent too lately to be lost (RFC 8985 section 6.3) remain in addition to the one.
                prop_assert!(now.before.cwnd_pkts == 1 || sack);
                prop_assert_eq!(now.before.cwnd_cnt, 0);
            }
            _ => {}
        }
    }
    let acks: Vec<_> = flow.trace.iter().filter(|r| r.call == every_ack).map(|r| r.ack).collect();
    let mut delivered = 0;
    for ack in &acks {
        delivered += u64::from(ack.acked_pkts);
        prop_assert_eq!(ack.delivered_pkts, delivered);
    }
    let c = &flow.counters;
    // Without SACK a duplicate looks like a packet beyond a hole.
    let arrived = match tcp.options.recovery {
        Recovery::Sack => c.delivered_pkts,
        _ => c.delivered_pkts + c.duplicate_pkts,
    };
    prop_assert!(delivered <= arrived, "told of {} of {}", delivered, arrived);
    if flow.trace.last().is_some_and(|r| r.call == Call::Ssthresh) {
        recoveries += 1; // entered by the very last event
    }
    prop_assert_eq!(c.loss_events, recoveries);
    prop_assert_eq!(c.undos, undos);
    prop_assert!(timeouts <= c.timeouts, "a repeated timeout reduces nothing more");
    Ok(())
}

fn check(spec: &RunSpec, record: &RunRecord) -> Outcome {
    check_conservation(record)?;
    check_hops(spec, record)?;
    check_queue(spec, record)?;
    check_order(spec, record)?;
    check_series(spec, record)?;
    for (flow_spec, flow) in spec.flows.iter().zip(&record.flows) {
        check_trace(spec, flow_spec, flow)?;
        check_deliveries(spec, flow_spec, flow)?;
    }
    Ok(())
}

/// Transfers and probes: nothing arrives before it can.
fn check_deliveries(spec: &RunSpec, flow_spec: &FlowSpec, flow: &FlowRecord) -> Outcome {
    let forward = spec.path.delay_forward_steps.iter().map(|(_, delay_ns)| *delay_ns);
    let one_way_ns = forward.fold(spec.path.delay_forward_ns, Ns::min) + flow_spec.access_delay_ns;
    let sending_ns =
        |pkts, bytes| least_sending_ns(&spec.path, &flow_spec.route, pkts, u64::from(bytes));
    match &flow_spec.kind {
        FlowKind::Tcp(TcpSpec {
            workload: Workload::Transfers { size_bytes, .. },
            options,
            ..
        }) => {
            let mut last_ns = 0;
            for transfer in &flow.transfers {
                prop_assert_eq!(transfer.bytes, *size_bytes);
                let pkts = size_bytes.div_ceil(u64::from(options.mss_bytes));
                let wire_bytes = options.mss_bytes + options.header_bytes;
                let least_ns = (one_way_ns + sending_ns(pkts, wire_bytes)).saturating_sub(1);
                prop_assert!(transfer.end_ns >= transfer.start_ns + least_ns);
                prop_assert!(transfer.end_ns >= last_ns);
                last_ns = transfer.end_ns;
            }
            let whole = flow.transfers.len() as u64 * size_bytes;
            prop_assert!(flow.counters.delivered_bytes >= whole);
        }
        FlowKind::Probe { packet_bytes, .. } => {
            let least_ns = one_way_ns + sending_ns(1, *packet_bytes);
            prop_assert!(flow.probe_delays.iter().all(|d| d.1 + 1 >= least_ns));
            prop_assert_eq!(flow.probe_delays.len() as u64, flow.counters.delivered_pkts);
            let in_order = spec.path.reorder.is_none() && !spec.path.falls_reorder;
            prop_assert!(!in_order || flow.probe_delays.windows(2).all(|d| d[0].0 < d[1].0));
        }
        _ => {}
    }
    Ok(())
}

/// Without a trace a sender leaves out the steps that have nothing to do for an ACK; that changes nothing.
fn check_untraced(spec: &RunSpec, mut record: RunRecord) -> Outcome {
    let mut spec = spec.clone();
    spec.record.trace = false;
    record.flows.iter_mut().for_each(|flow| flow.trace.clear());
    prop_assert_eq!(record, run(&spec));
    Ok(())
}

proptest! {
    #![proptest_config(config(2000))]

    /// Everything above, of any run; and the same run without a trace is the same to the last bit.
    #[test]
    fn any_run_is_sound(spec in run_spec()) {
        let record = run(&spec);
        check(&spec, &record)?;
        check_untraced(&spec, record)?;
    }

    /// The same with every discipline, marking or not.
    #[test]
    fn any_managed_run_is_sound(spec in run_spec(), aqm in aqm()) {
        let path = spec.path.clone().with_each_hop(|hop| hop.aqm = Some(aqm.clone()));
        let spec = RunSpec { path, ..spec };
        let record = run(&spec);
        check_conservation(&record)?;
        check_hops(&spec, &record)?;
        check_order(&spec, &record)?;
        check_series(&spec, &record)?;
        check_marks(&spec, &record)?;
        for (flow_spec, flow) in spec.flows.iter().zip(&record.flows) {
            check_trace(&spec, flow_spec, flow)?;
            check_deliveries(&spec, flow_spec, flow)?;
        }
        check_untraced(&spec, record)?;
    }

    /// A flow that starts after the end changes nothing for the others, whatever its access.
    #[test]
    fn an_absent_flow_leaves_no_trace(spec in run_spec(), absent in flow(S)) {
        let alone = run(&spec);
        let mut more = spec.clone();
        more.flows.push(FlowSpec { start_ns: spec.duration_ns + 1, ..absent });
        let with_absent = run(&more);
        prop_assert_eq!(&with_absent.flows[..spec.flows.len()], &alone.flows[..]);
        prop_assert_eq!(with_absent.queues, alone.queues);
        prop_assert_eq!(with_absent.flows[spec.flows.len()].counters, Default::default());
    }
}

proptest! {
    #![proptest_config(config(1000))]

    /// Bottlenecks in a row and reverse flows lose and invent nothing, and the same spec gives
    /// the same record.
    #[test]
    fn every_route_conserves_packets(spec in routed_spec()) {
        let record = run(&spec);
        check_conservation(&record)?;
        check_hops(&spec, &record)?;
        check_series(&spec, &record)?;
        for (flow, of) in record.flows.iter().zip(&spec.flows) {
            check_trace(&spec, of, flow)?;
        }
        prop_assert_eq!(record, run(&spec));
    }
}

proptest! {
    #![proptest_config(config(800))]

    /// A run that pauses continues as if it had not.
    #[test]
    fn steps_change_nothing(spec in routed_spec(), step_ns in log_uniform(MS / 10, S)) {
        let mut stepped = Stepped::new(Arc::new(spec.clone())).expect("as without steps");
        while stepped.now_ns() < spec.duration_ns {
            stepped.advance(stepped.now_ns() + step_ns).expect("built in");
        }
        prop_assert!(run(&spec) == stepped.finish(), "{spec:?}");
    }
}

proptest! {
    #![proptest_config(config(20))]

    /// Threads share nothing.
    #[test]
    fn parallel_runs_equal_sequential_ones(specs in prop::collection::vec(run_spec(), 4)) {
        let sequential: Vec<RunRecord> = specs.iter().map(run).collect();
        let parallel: Vec<RunRecord> = std::thread::scope(|scope| {
            let started: Vec<_> = specs.iter().map(|spec| scope.spawn(|| run(spec))).collect();
            started.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        prop_assert_eq!(parallel, sequential);
    }
}

/// Long enough for any transfer of these tests: hundreds of losses, each with a timeout backed off
/// to its limit of 60 s a few times.
const LONG_ENOUGH_NS: Ns = 20_000 * S;

/// Both delays change while a packet is on its way: it has the lower one in both directions, which
/// applied at no time together.
#[test]
fn a_packet_meets_the_old_forward_and_the_new_reverse_delay() {
    let path = PathSpec {
        delay_forward_ns: 10 * MS,
        delay_reverse_ns: 30 * MS,
        delay_forward_steps: vec![(2 * MS, 30 * MS)],
        delay_reverse_steps: vec![(2 * MS, 10 * MS)],
        ..common::ten_mbit(10)
    };
    let transfer = common::newreno(common::transfer(1), common::options(Recovery::Sack));
    let spec = common::spec(path, S, vec![transfer]);
    let record = run(&spec);
    check(&spec, &record).expect("sound");
    let rtts: Vec<i64> = record.flows[0].trace.iter().map(|call| call.ack.rtt_us.into()).collect();
    assert!(rtts.contains(&21_200), "1.2 ms of transmission and 10 ms in each direction: {rtts:?}");
}

proptest! {
    #![proptest_config(config(2000))]

    /// Given time, each transfer arrives whole, in order, exactly once.
    #[test]
    fn every_transfer_completes(
        path in path(),
        kinds in prop::collection::vec(tcp(transfers(prop_oneof![
            Just(None),
            Just(Some(LONG_ENOUGH_NS)),
        ])), 1..5),
        access in (often_zero(20 * MS), often_zero(5 * MS)),
        seed in any::<u64>(),
    ) {
        let flow = |(i, kind): (usize, FlowKind)| FlowSpec {
            access_delay_ns: access.0 * i as u64,
            access_jitter_ns: access.1,
            route: Route::default(),
            ..FlowSpec::new("flow", kind)
        };
        let spec = RunSpec {
            seed,
            duration_ns: 3 * LONG_ENOUGH_NS - 1,
            path,
            flows: kinds.into_iter().enumerate().map(flow).collect(),
            record: RecordSpec { bin_ns: 0, queue_log: true, trace: true },
            sysctls: Vec::new(),
        };
        let record = run(&spec);
        check(&spec, &record)?;
        for (flow, flow_spec) in record.flows.iter().zip(&spec.flows) {
            let FlowKind::Tcp(TcpSpec { workload, .. }) = &flow_spec.kind else { continue };
            let Workload::Transfers { size_bytes, every_ns } = *workload else { continue };
            let times = if every_ns.is_some() { 3 } else { 1 };
            prop_assert_eq!(flow.transfers.len(), times, "{:?}", flow.counters);
            for (n, transfer) in flow.transfers.iter().enumerate() {
                prop_assert_eq!(transfer.start_ns, n as u64 * LONG_ENOUGH_NS);
            }
            prop_assert_eq!(flow.counters.delivered_bytes, times as u64 * size_bytes);
            prop_assert_eq!(flow.counters.in_network_pkts, 0);
        }
    }
}
