//! TCP in small scenarios whose course can be worked out by hand.
//!
//! Most run on one path: 12 Mb/s, so that a packet of 1500 bytes takes 1 ms, and 100 ms of
//! propagation, so that the RTT without a queue is 101 ms. Times in comments are milliseconds.

mod common;

use common::{MS, S, newreno, options, params, run, spec, transfer};
use knee_cc::{Conn, Event, Phase, SSTHRESH_INFINITE};
use knee_model::{
    Call, CallRecord, Cc, DelayedAck, FlowKind, FlowRecord, FlowSpec, Ns, PacketEvent, PathSpec,
    QueueLimit, Recovery, RunRecord, RunSpec, TcpOptions, TcpSpec, Transport, Workload,
};
use knee_net::ScriptedLoss;
use knee_sim::Stepped;
use std::sync::Arc;

const ALL: [Recovery; 3] = [Recovery::Sack, Recovery::Newreno, Recovery::NewrenoPrr];

fn path(queue: QueueLimit) -> PathSpec {
    PathSpec::symmetric(12_000_000, 100 * MS, queue)
}

fn wide_path() -> PathSpec {
    path(QueueLimit::Packets(10_000))
}

/// Packets that a flow put on the wire, in order: time and number; access delay 0 supposed.
fn sent(record: &RunRecord, flow: u32) -> Vec<(Ns, u32)> {
    let offered = record.queues[0].log.iter().filter(|l| l.flow == flow);
    let offered = offered.filter(|l| l.event != PacketEvent::Departed);
    offered.map(|l| (l.time_ns, l.number)).collect()
}

/// The sent packets whose number was sent before.
fn retransmissions(record: &RunRecord, flow: u32) -> Vec<(Ns, u32)> {
    let mut next = 0;
    let again = |&(_, number): &(Ns, u32)| {
        let again = number < next;
        next = next.max(number + 1);
        again
    };
    sent(record, flow).into_iter().filter(again).collect()
}

fn calls(flow: &FlowRecord, call: Call) -> impl Iterator<Item = &CallRecord> {
    flow.trace.iter().filter(move |r| r.call == call)
}

fn events(flow: &FlowRecord, event: Event) -> impl Iterator<Item = &CallRecord> {
    calls(flow, Call::OnEvent).filter(move |r| r.event == event as u32)
}

/// The connection before its first ACK at or after `time_ns`: the result of the events until then.
fn state_at(flow: &FlowRecord, time_ns: Ns) -> Conn {
    let later = |r: &&CallRecord| r.before.now_us >= time_ns / 1000;
    calls(flow, Call::OnRtt).find(later).expect("an ACK comes later").before
}

/// The run that loses the packets at the places `lost`, from 0, in the order of their sending.
fn losing(spec: &RunSpec, lost: &[u64]) -> RunRecord {
    let mut run = Stepped::new(Arc::new(spec.clone())).expect("the spec is short enough");
    run.script_loss(ScriptedLoss::new(lost.iter().copied()));
    run.advance(spec.duration_ns).expect("built-in algorithms keep the contract");
    run.finish()
}

/// Packets of another flow that leave no room for a full packet between two times: they are small,
/// come at twice the path's rate, and the queue counts bytes.
fn blackout(start_ns: Ns, stop_ns: Ns) -> FlowSpec {
    let kind = FlowKind::Udp { rate_bps: 24_000_000, steps: Vec::new(), packet_bytes: 100 };
    FlowSpec { start_ns, stop_ns: Some(stop_ns), ..FlowSpec::new("blackout", kind) }
}

// Growth.

#[test]
fn slow_start_doubles_from_the_initial_window() {
    // Fast path: the 10 * (2^6 - 1) = 630 packets take 12 us each, 7.6 ms in all, so each round
    // stays in its own 100 ms.
    let path = PathSpec::symmetric(1_000_000_000, 100 * MS, QueueLimit::Packets(10_000));
    let flow = newreno(Workload::Bulk, TcpOptions::default());
    let record = run(&spec(path, 600 * MS - 1, vec![flow]));
    let mut rounds = [0; 6];
    sent(&record, 0).iter().for_each(|(t, _)| rounds[(t / (100 * MS)) as usize] += 1);
    assert_eq!(rounds, [10, 20, 40, 80, 160, 320]);
}

/// Growth in congestion avoidance, packets per RTT, over 80 RTTs.
fn growth_per_rtt(count: &str, every_pkts: u32) -> f64 {
    // 200 packets at once into a queue of 199: the last one is lost, the receive window keeps the
    // next flights from queueing. Then the window grows from 100, one or half a packet per RTT,
    // and is the limit until it reaches 200.
    let path = PathSpec::symmetric(120_000_000, 100 * MS, QueueLimit::Packets(199));
    let options = TcpOptions {
        initial_window_pkts: 200,
        receive_window_pkts: 200,
        delayed_ack: DelayedAck { every_pkts, timeout_ns: 40 * MS },
        ..TcpOptions::default()
    };
    let count = if count == "acks" { 0 } else { 1 };
    let tcp = TcpSpec {
        transport: Transport::Own,
        cc: Cc::Knee(params("newreno", &[("count", count)])),
        workload: Workload::Bulk,
        options,
    };
    let record = run(&spec(path, 12 * S, vec![FlowSpec::new("flow", FlowKind::Tcp(tcp))]));
    assert_eq!(record.flows[0].counters.loss_events, 1);
    assert_eq!(record.flows[0].counters.timeouts, 0);
    let window = |time_ns| {
        let conn = state_at(&record.flows[0], time_ns);
        f64::from(conn.cwnd_pkts) + f64::from(conn.cwnd_cnt) / f64::from(conn.cwnd_pkts)
    };
    assert!((100.0..110.0).contains(&window(S)));
    // RTT: 100 ms and 0.1 ms for the packet; 80 of them.
    (window(S + 8008 * MS) - window(S)) / 80.0
}

#[test]
fn congestion_avoidance_adds_one_packet_per_rtt() {
    assert!((growth_per_rtt("packets", 1) - 1.0).abs() < 0.001);
    // The odd packet at the end of a flight is acknowledged 40 ms late, and from then on runs behind
    // the flight: a little less.
    assert!((growth_per_rtt("packets", 2) - 1.0).abs() < 0.01);
    assert!((growth_per_rtt("acks", 1) - 1.0).abs() < 0.001);
}

#[test]
fn delayed_acks_halve_growth_that_counts_acks() {
    assert!((growth_per_rtt("acks", 2) - 0.5).abs() < 0.001);
}

#[test]
fn receive_window_caps_the_rate_and_the_window() {
    let options = TcpOptions { receive_window_pkts: 20, ..TcpOptions::default() };
    let record = run(&spec(wide_path(), 10_100 * MS, vec![newreno(Workload::Bulk, options)]));
    let flow = &record.flows[0];
    // The first RTT of 101 has the initial 10; each one after it 20, which arrive from 51 on, the last
    // of round 99 at 9999 + 51 + 19. Round 100 would begin to arrive at 10 151.
    assert_eq!(flow.counters.delivered_pkts, 10 + 99 * 20);
    // Slow start continues while at least half of the window is used (Linux's rule), no further.
    assert_eq!(state_at(flow, 10 * S).cwnd_pkts, 40);
}

#[test]
fn an_application_limited_window_does_not_grow() {
    let cwnd_after = |pkts: u64| {
        let every_ns = Some(150 * MS);
        let workload = Workload::Transfers { size_bytes: pkts * 1448, every_ns };
        let record = run(&spec(wide_path(), 3 * S, vec![newreno(workload, options(ALL[0]))]));
        state_at(&record.flows[0], 2800 * MS).cwnd_pkts
    };
    // Initial window 10: half used at most, so never the limit.
    assert_eq!(cwnd_after(1), 10);
    assert_eq!(cwnd_after(5), 10);
    // More than half used: slow start up to twice the used window.
    assert_eq!(cwnd_after(6), 12);
}

// Repair.

/// `initial` packets at once into a queue of 19: those from number 19 are lost. The receive window is
/// `initial` too, so that each ACK releases one packet.
///
/// Packet i < 19 departs at i+1, its ACK is back at 101+i and releases packet `initial`+i, whose ACK is back
/// at 202+i, a duplicate for as long as 19 is missing; the third comes at 204.
fn burst(initial: u32, options: TcpOptions) -> RunSpec {
    let options = TcpOptions {
        initial_window_pkts: initial,
        receive_window_pkts: initial,
        rto_min_ns: S,
        ..options
    };
    let flow = newreno(Workload::Bulk, options);
    spec(path(QueueLimit::Bytes(19 * 1500)), S, vec![flow])
}

/// Time at which `burst`'s first loss is known: with SACK at the first one, since the packet that it reports
/// was sent an RTT after the lost one (RFC 8985 section 6.2, step 5); else at the third duplicate.
fn repaired_ms(recovery: Recovery) -> u64 {
    if recovery == Recovery::Sack { 202 } else { 204 }
}

#[test]
fn one_loss() {
    for recovery in ALL {
        let record = run(&burst(20, options(recovery)));
        let flow = &record.flows[0];
        let at_ms = repaired_ms(recovery);
        assert_eq!(flow.counters.queue_drops_pkts, 1);
        assert_eq!(retransmissions(&record, 0), [(at_ms * MS, 19)]);
        // 20 are outstanding (19 to 38), the window has grown to 39 in slow start:
        // ssthresh = min(39, 20) / 2.
        let ssthresh: Vec<u32> = calls(flow, Call::Ssthresh).map(|r| r.result).collect();
        assert_eq!(ssthresh, [10]);
        // The repair is acknowledged, with all that came after it, 101 later.
        let full_us = (at_ms + 101) * 1000;
        let seen = calls(flow, Call::OnRtt).find(|r| r.before.now_us == full_us).expect("full");
        assert_eq!(seen.ack.acked_pkts, 1, "duplicates told of all but the repair");
        assert_eq!(seen.ack.rtt_us, 101_000, "by the repair's timestamp");
        let (ended_us, left): (Vec<u64>, Vec<u32>) =
            events(flow, Event::Recovered).map(|r| (r.before.now_us, r.after.cwnd_pkts)).unzip();
        let new = sent(&record, 0).iter().filter(|s| s.0 == full_us * 1000).count();
        let grown = calls(flow, Call::OnAck).find(|r| r.before.now_us == full_us);
        let grown = grown.map(|r| (r.after.cwnd_pkts, r.after.cwnd_cnt));
        match recovery {
            // cwnd = ssthresh, of which nothing is in flight.
            Recovery::Sack | Recovery::Freebsd7 => {
                assert_eq!((ended_us, left, new), (vec![full_us], vec![10], 10));
                assert_eq!(grown, Some((10, 1)));
            }
            // RFC 6582: min(ssthresh, max(flight, 1) + 1) with nothing in flight; below ssthresh,
            // so the ACK itself then grows it by one.
            Recovery::Newreno => {
                assert_eq!((ended_us, left, new), (vec![full_us], vec![2], 3));
                assert_eq!(grown, Some((3, 0)));
            }
            // Without SACK the recovery lasts until something new is acknowledged.
            Recovery::NewrenoPrr => {
                assert_eq!((ended_us, left, new), (vec![full_us + 101_000], vec![10], 10));
                assert_eq!(grown, None);
            }
        }
    }
}

#[test]
fn sack_repairs_several_losses_in_one_rtt() {
    // 19, 20 and 21 are lost; 22 are outstanding, the window is 41, ssthresh = 11. After n SACKs
    // proportional rate reduction has let ceil(n * 11 / 41) packets out: one at the first (202),
    // which reports all losses, one at the fourth, one at the eighth.
    let record = run(&burst(22, options(Recovery::Sack)));
    let flow = &record.flows[0];
    let repairs = [(202 * MS, 19), (205 * MS, 20), (209 * MS, 21)];
    assert_eq!(retransmissions(&record, 0), repairs);
    // The last one's ACK ends it: 209 + 101.
    let recovered: Vec<_> =
        events(flow, Event::Recovered).map(|r| (r.before.now_us, r.after.cwnd_pkts)).collect();
    assert_eq!(recovered, [(310_000, 11)]);
    assert_eq!((flow.counters.loss_events, flow.counters.timeouts), (1, 0));
}

#[test]
fn newreno_repairs_one_loss_per_rtt() {
    let record = run(&burst(22, options(Recovery::Newreno)));
    let flow = &record.flows[0];
    // Each partial ACK comes 101 after the repair before it and releases the next.
    let repairs = [(204 * MS, 19), (305 * MS, 20), (406 * MS, 21)];
    assert_eq!(retransmissions(&record, 0), repairs);
    // Each partial ACK opened the receive window by one: 41 and 42 went out behind the repairs.
    // At 507 the ACK covers all to 41; 42 is in flight: cwnd = min(11, 1 + 1).
    let recovered: Vec<_> =
        events(flow, Event::Recovered).map(|r| (r.before.now_us, r.after.cwnd_pkts)).collect();
    assert_eq!(recovered, [(507_000, 2)]);
    assert_eq!((flow.counters.loss_events, flow.counters.timeouts), (1, 0));
}

#[test]
fn newreno_timer_is_impatient() {
    // As before, but with a timer of srtt + 80. The first partial ACK (305) restarts it, the second
    // (406) does not (RFC 6582 section 3.2 step 3): it expires before the full ACK at 507. The RTTs
    // until then are 101 to 119, and 101 of the first repair.
    let short = |recovery| {
        let mut spec = burst(22, options(recovery));
        let FlowKind::Tcp(tcp) = &mut spec.flows[0].kind else { unreachable!() };
        tcp.options.rto_min_ns = 80 * MS;
        run(&spec)
    };
    let record = short(Recovery::Newreno);
    assert_eq!(record.flows[0].counters.timeouts, 1);
    let expired = (305 * MS + srtt_ns((101..=119).chain([101])) + 80 * MS, 21);
    assert!(retransmissions(&record, 0).contains(&expired), "{expired:?}");
    // Else each repair of the first hole restarts it.
    for recovery in [Recovery::Sack, Recovery::NewrenoPrr] {
        let counters = short(recovery).flows[0].counters;
        assert_eq!((counters.timeouts, counters.retransmitted_pkts), (0, 3), "{recovery:?}");
    }
}

/// `SRTT` after samples in milliseconds (RFC 6298 sections 2.2 and 2.3, in whole nanoseconds).
fn srtt_ns(samples_ms: impl IntoIterator<Item = Ns>) -> Ns {
    let samples = samples_ms.into_iter().map(|ms| ms * MS);
    samples.reduce(|srtt, rtt| srtt - srtt / 8 + rtt / 8).expect("a sample")
}

/// Six packets of another flow, then 20 at once into a queue of 25: number 19 is lost, and there is
/// room enough for slow start afterwards.
///
/// Packet i < 19 departs at 7+i, its ACK is back at 107+i, grows the window by one and releases two. At 125
/// the window is 39 and full: 19 to 57 are outstanding. The packets from 20 on depart one each ms from 108
/// on, their ACKs are back from 208 on.
fn open_burst(options: TcpOptions) -> RunRecord {
    // 1500 bytes in 100 ns; stopped after the sixth.
    let kind = FlowKind::Udp { rate_bps: 120_000_000_000, steps: Vec::new(), packet_bytes: 1500 };
    let before = FlowSpec { stop_ns: Some(550), ..FlowSpec::new("before", kind) };
    let options = TcpOptions { initial_window_pkts: 20, rto_min_ns: S, ..options };
    let after = FlowSpec { start_ns: 600, ..newreno(Workload::Bulk, options) };
    let record = run(&spec(path(QueueLimit::Packets(25)), 320 * MS, vec![after, before]));
    assert_eq!(record.flows[1].counters.sent_pkts, 6);
    assert_eq!(record.flows[0].counters.queue_drops_pkts, 1);
    record
}

#[test]
fn limited_transmit() {
    for recovery in ALL {
        for limited_transmit in [true, false] {
            let record = open_burst(TcpOptions { limited_transmit, ..options(recovery) });
            let from_208 = |s: &&(Ns, u32)| (208 * MS..211 * MS).contains(&s.0);
            let sent: Vec<_> = sent(&record, 0).iter().filter(from_208).copied().collect();
            // The first two duplicates each let one new packet out; the third starts the repair.
            let new = [(208 * MS, 58), (209 * MS, 59), (210 * MS, 19)];
            // The first SACK reports the loss; PRR's second packet follows the third.
            let at_once = [(208 * MS, 19), (210 * MS, 58)];
            let expected = match (recovery, limited_transmit) {
                (Recovery::Sack, _) => &at_once[..],
                (_, true) => &new,
                (_, false) => &new[2..],
            };
            assert_eq!(sent, expected, "{recovery:?}");
            // Packets sent so are not counted as flight (RFC 3042): min(39, 41) / 2.
            let ssthresh = calls(&record.flows[0], Call::Ssthresh).next().expect("one");
            assert_eq!(ssthresh.result, 19);
        }
    }
}

#[test]
fn window_during_and_after_recovery() {
    for recovery in ALL {
        let record = open_burst(options(recovery));
        let flow = &record.flows[0];
        // Begins with the first SACK at 208, or with the third duplicate at 210, when limited transmit
        // has sent 58 and 59.
        let (begins_ms, next) = if recovery == Recovery::Sack { (208, 58) } else { (210, 60) };
        let repaired_ms = begins_ms + 101;
        let later = |s: &&(Ns, u32)| s.0 > begins_ms * MS && s.1 >= next;
        let new: Vec<_> = sent(&record, 0).iter().filter(later).copied().collect();
        let in_recovery = new.iter().take_while(|s| s.0 < repaired_ms * MS).count();
        match recovery {
            // 38 packets are delivered in recovery before the repair (20 to 57; or 22 to 59, since
            // the third duplicate was 22's); ceil(38 * 19 / 39) = 19 go out, the repair among them:
            // every second one or so, from the second after the first on.
            Recovery::Sack | Recovery::NewrenoPrr | Recovery::Freebsd7 => {
                assert_eq!(new[0], ((begins_ms + 2) * MS, next));
            }
            // 41 are outstanding and the window is 19 plus the duplicates: the 23rd of them, of
            // packet 42, is the first to let one out.
            Recovery::Newreno => assert_eq!(new[0], (230 * MS, 60)),
        }
        assert_eq!(in_recovery, 18);
        // Repaired: the window is half of 39, and is filled by one packet more.
        assert_eq!(sent(&record, 0).iter().filter(|s| s.0 == repaired_ms * MS).count(), 1);
        let end = events(flow, Event::Recovered).next().expect("recovers");
        assert_eq!(end.after.cwnd_pkts, 19);
        let ended = (end.before.now_us / 1000, end.before.outstanding_pkts);
        match recovery {
            Recovery::NewrenoPrr => assert_eq!(ended.0, 313, "the ACK of 60, sent at 212"),
            _ => assert_eq!(ended, (repaired_ms, 18)),
        }
    }
}

// The retransmission timer.

/// One packet at a time, a timer down to 10 ms.
fn one_by_one(options: TcpOptions) -> RunSpec {
    let options = TcpOptions { receive_window_pkts: 1, rto_min_ns: 10 * MS, ..options };
    spec(wide_path(), 3 * S, vec![newreno(transfer(5), options)])
}

#[test]
fn timer_follows_the_first_samples() {
    // RFC 6298: before any sample 1 s.
    let record = losing(&one_by_one(TcpOptions::default()), &[0]);
    assert_eq!(sent(&record, 0)[1], (S, 0));
    // After one of R = 101: srtt = R, rttvar = R/2, RTO = 3 R = 303. Packet 1 goes out at 101.
    let record = losing(&one_by_one(TcpOptions::default()), &[1]);
    assert_eq!(sent(&record, 0)[1..3], [(101 * MS, 1), (404 * MS, 1)]);
    // After two: rttvar = 3/4 * 50.5 = 37.875, RTO = 101 + 151.5.
    let record = losing(&one_by_one(TcpOptions::default()), &[2]);
    assert_eq!(sent(&record, 0)[2..4], [(202 * MS, 2), (454_500_000, 2)]);
}

#[test]
fn timer_backs_off_until_the_next_sample() {
    // 303, 606; the ACK at 101 + 303 + 606 + 101 = 1111 gives no sample (Karn), so that packet 2
    // waits 4 * 303 = 1212 before its repair. No timestamps: headers of 40 bytes.
    let bare = TcpOptions { header_bytes: 40, mss_bytes: 1460, ..options(Recovery::Newreno) };
    let record = losing(&one_by_one(bare), &[1, 2, 4]);
    let (samples, acks): (Vec<i32>, Vec<u64>) =
        calls(&record.flows[0], Call::OnRtt).map(|r| (r.ack.rtt_us, r.before.now_us)).unzip();
    let times: Vec<_> = sent(&record, 0)[..6].to_vec();
    let ms = [(0, 0), (101, 1), (404, 1), (1010, 1), (1111, 2), (2323, 2)];
    assert_eq!(times, ms.map(|(t, number)| (t * MS, number)));
    assert_eq!(samples[..3], [101_000, -1, -1]);
    assert_eq!(acks[..3], [101_000, 1_111_000, 2_424_000]);
}

#[test]
fn timestamps_tell_which_transmission_was_acknowledged() {
    // As before, but the ACK at 1111 echoes the time of the repair, 1010 (RFC 7323 section 4.1): the
    // second sample of 101, after which the timer is 101 + 4 * 37.875.
    let record = losing(&one_by_one(TcpOptions::default()), &[1, 2, 4]);
    let samples: Vec<i32> = calls(&record.flows[0], Call::OnRtt).map(|r| r.ack.rtt_us).collect();
    assert_eq!(samples[..2], [101_000, 101_000]);
    assert_eq!(sent(&record, 0)[5], (1_363_500_000, 2));
}

#[test]
fn timer_doubles_up_to_a_minute() {
    let mut path = wide_path();
    path.hops[0].loss = 1.0 - 1e-15;
    let options = TcpOptions { initial_window_pkts: 1, ..TcpOptions::default() };
    let record = run(&spec(path, 200 * S, vec![newreno(Workload::Bulk, options)]));
    let times: Vec<_> = sent(&record, 0).iter().map(|s| s.0 / S).collect();
    assert_eq!(times, [0, 1, 3, 7, 15, 31, 63, 123, 183]);
    assert_eq!(record.flows[0].counters.timeouts, 8);
    // One loss, one reduction, to the least ssthresh (RFC 5681 eq. 4).
    let ssthresh: Vec<_> = calls(&record.flows[0], Call::Ssthresh).map(|r| r.result).collect();
    assert_eq!(ssthresh, [2]);
}

#[test]
fn timer_allows_for_a_coarse_clock() {
    // RFC 6298 section 2.3: srtt + max(G, 4 rttvar). A tick of 10 makes each sample 110 (below);
    // after 40 of them rttvar is nearly 0, and packet 40 is repaired 110 + 10 later.
    let options = TcpOptions {
        receive_window_pkts: 1,
        rto_min_ns: MS,
        rtt_tick_ns: 10 * MS,
        ..options(ALL[0])
    };
    let mut path = wide_path();
    // The RTT is a whole number of ticks, 110, less the tick that each sample is too long by.
    path.delay_forward_ns -= MS;
    let spec = spec(path, 8 * S, vec![newreno(transfer(60), options)]);
    let record = losing(&spec, &[40]);
    let (first, second) = (sent(&record, 0)[40], sent(&record, 0)[41]);
    assert_eq!((first.1, second.1), (40, 40));
    assert!((second.0 - first.0).abs_diff(120 * MS) < 1000, "{first:?} {second:?}");
}

#[test]
fn timer_learns_an_rtt_that_has_outgrown_it() {
    // A queue of about 60 appears at 1 s and stays: 66 packets at once, then the rest of the path's rate. The
    // timer is set little above the old RTT, and expires before the first ACK of the new one; without Karn's
    // rule each packet would be sent twice for ever, and no sample taken.
    let burst = FlowKind::Udp { rate_bps: 12_000_000_000, steps: Vec::new(), packet_bytes: 1500 };
    let burst =
        FlowSpec { start_ns: S, stop_ns: Some(S + 65_500), ..FlowSpec::new("burst", burst) };
    let steady = FlowKind::Udp { rate_bps: 11_900_000, steps: Vec::new(), packet_bytes: 1500 };
    let steady = FlowSpec { start_ns: S, ..FlowSpec::new("steady", steady) };
    let options =
        TcpOptions { receive_window_pkts: 1, rto_min_ns: 10 * MS, ..TcpOptions::default() };
    let tcp = newreno(Workload::Bulk, options);
    let record = run(&spec(wide_path(), 10 * S, vec![tcp, burst, steady]));
    let c = &record.flows[0].counters;
    // After ten samples of 101 the timer is 101 + 4 * 50.5 * 0.75^9; packet 10 leaves at 1010.
    let again = retransmissions(&record, 0);
    assert_eq!((c.timeouts, again.len()), (1, 1), "{c:?}");
    let expired_ns = (1010.0 + 101.0 + 4.0 * 50.5 * 0.75f64.powi(9)) * MS as f64;
    assert!(again[0].1 == 10 && again[0].0.abs_diff(expired_ns as Ns) < 1000, "{again:?}");
    // UDP takes 991.7 of 1000 packets/s, and this flow 6: after 8 s 66 - 8 * 2.1 = 49 wait, 101 + 49; srtt is
    // behind by 7 RTTs of 0.15 s, in which 2.3 packets leave.
    let srtt_us = state_at(&record.flows[0], 9 * S).srtt_us;
    assert!((151_000..155_000).contains(&srtt_us), "{srtt_us}");
}

#[test]
fn timeout_collapses_the_window_then_slow_start_to_half() {
    // With SACK a probe comes before the timeout: see below.
    for recovery in [Recovery::Newreno, Recovery::NewrenoPrr] {
        // Flights of 20, one packet each ms from multiples of 101 on. The one from 1010 on is lost
        // whole: the blackout needs 20 to fill the queue.
        let options = TcpOptions { receive_window_pkts: 20, ..options(recovery) };
        let flows = vec![newreno(Workload::Bulk, options), blackout(960 * MS, 1060 * MS)];
        let record = run(&spec(path(QueueLimit::Bytes(30_000)), 3 * S, flows));
        let flow = &record.flows[0];
        assert_eq!((flow.counters.timeouts, flow.counters.loss_events), (1, 0));
        let at = flow.trace.iter().position(|r| r.call == Call::OnEvent).expect("a timeout");
        assert_eq!((flow.trace[at].event, flow.trace[at - 1].call), (3, Call::Ssthresh));
        assert_eq!(flow.trace[at - 1].result, 10);
        // One more per ACK from 1 up to 10, then one more per window.
        let grown: Vec<u32> = flow.trace[at..]
            .iter()
            .filter(|r| r.call == Call::OnAck)
            .map(|r| r.after.cwnd_pkts)
            .collect();
        assert_eq!(grown[..9], [2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(grown[9..18], [10; 9]);
        assert_eq!(grown[19], 11);
        // The loss phase ends when all that was outstanding at the timeout is acknowledged.
        let phases: Vec<u8> = flow.trace[at + 1..]
            .iter()
            .filter(|r| r.call == Call::OnAck)
            .map(|r| r.before.phase)
            .collect();
        let lost = phases.iter().take_while(|&&p| p == Phase::Loss as u8).count();
        // The 20th ACK ends it. If careful, the first ACK of a new segment ends it, or the ACK of the last
        // repair, which covers the new packet that was sent first.
        let careful = [Recovery::Newreno, Recovery::NewrenoPrr].contains(&recovery);
        assert_eq!(lost, if careful { 19 } else { 20 });
        assert!(phases[lost..].iter().all(|&p| p == Phase::Open as u8));
        // The receive window, not cwnd, limits again: no growth beyond it but by one.
        let grown_pkts = if recovery == Recovery::NewrenoPrr { 20 } else { 21 };
        assert_eq!(state_at(flow, 2900 * MS).cwnd_pkts, grown_pkts);
    }
}

#[test]
fn a_probe_finds_a_lost_tail() {
    // The same with SACK. The last ACK comes at 1029, the RTT has been 101 for long: the probe is
    // sent 202 later (RFC 8985 section 7.2), and since the receive window has no room, it is the last
    // packet again (7.3). Its SACK, at 1332, shows that the other 19 are lost.
    let options = TcpOptions { receive_window_pkts: 20, ..options(Recovery::Sack) };
    let flows = vec![newreno(Workload::Bulk, options), blackout(960 * MS, 1060 * MS)];
    let record = run(&spec(path(QueueLimit::Bytes(30_000)), 3 * S, flows));
    let flow = &record.flows[0];
    assert_eq!((flow.counters.timeouts, flow.counters.loss_events), (0, 1));
    let last = sent(&record, 0).iter().filter(|s| s.0 < 1030 * MS).count() as u32 - 1;
    let again = retransmissions(&record, 0);
    assert_eq!(again.len(), 20);
    assert!(again[0].1 == last && again[0].0.abs_diff(1231 * MS) < 1000, "{again:?}");
    assert!(again[1].1 == last - 19 && again[1].0.abs_diff(1332 * MS) < 1000, "{again:?}");
    let ssthresh: Vec<_> = calls(flow, Call::Ssthresh).map(|r| r.result).collect();
    assert_eq!(ssthresh, [10]);
}

#[test]
fn a_lost_repair_is_found_by_later_deliveries() {
    // Packets 0 to 9 at once, 0 is lost. Its time has not come at the first SACK (101), since it may be
    // overtaken for a quarter of the RTT; the third (103) releases the repair. Packets 10 and 11, which
    // limited transmit has sent before, reveal nothing; but the SACK of 12 (206), sent at 105 behind the
    // repair, shows that this is lost too (RFC 8985 section 6.2, step 5).
    let spec = spec(wide_path(), S, vec![newreno(Workload::Bulk, options(Recovery::Sack))]);
    let record = losing(&spec, &[0, 12]);
    let after = sent(&record, 0)[13];
    assert_eq!(after, (105 * MS, 12));
    let again = retransmissions(&record, 0);
    assert_eq!(again[..2], [(103 * MS, 0), (after.0 + 101 * MS, 0)]);
    let until = calls(&record.flows[0], Call::Ssthresh).filter(|r| r.before.now_us < 307_000);
    assert_eq!(until.count(), 1);
}

#[test]
fn a_lost_repair_reduces_only_once() {
    for recovery in ALL {
        // `one_loss`, with a blackout while the repair is sent (202 or 204). The timer, 400 more
        // than srtt, runs from then; with RFC 6582 from the last ACK that advanced (119). The RTTs
        // are 101 to 119, and 101 of the packet that the first SACK reports.
        let mut spec = burst(20, options(recovery));
        let FlowKind::Tcp(tcp) = &mut spec.flows[0].kind else { unreachable!() };
        tcp.options.rto_min_ns = 400 * MS;
        spec.flows.push(blackout(150 * MS, 210 * MS));
        let record = run(&spec);
        let flow = &record.flows[0];
        let repairs = retransmissions(&record, 0);
        let first_ns = repaired_ms(recovery) * MS;
        assert_eq!(repairs[0], (first_ns, 19));
        let sacked = (recovery == Recovery::Sack).then_some(101);
        let from_ns = if recovery == Recovery::Newreno { 119 * MS } else { first_ns };
        let expired_ns = from_ns + srtt_ns((101..=119).chain(sacked)) + 400 * MS;
        assert_eq!(repairs[1], (expired_ns, 19), "{recovery:?}");
        assert_eq!((flow.counters.loss_events, flow.counters.timeouts), (1, 1));
        let ssthresh: Vec<_> = calls(flow, Call::Ssthresh).map(|r| r.result).collect();
        assert_eq!(ssthresh, [10]);
        // Back 101 later, with all that had arrived before: one packet's worth of slow start.
        let back_us = (expired_ns + 101 * MS) / 1000;
        let ack = calls(flow, Call::OnAck).find(|r| r.before.now_us == back_us).expect("repaired");
        assert_eq!((ack.before.cwnd_pkts, ack.after.cwnd_pkts), (1, 2));
        assert_eq!(ack.after.ssthresh_pkts, 10);
    }
}

#[test]
fn a_needless_timeout_is_undone() {
    for recovery in ALL {
        // Flights of 8 from multiples of 101 on, a timer hardly above the RTT. The flight from 5050
        // on waits 25 for other packets: its first ACK would be back at 5176, but the timer, which
        // runs from 5057, expires at 5158.
        let options = TcpOptions { receive_window_pkts: 8, rto_min_ns: MS, ..options(recovery) };
        let kind =
            FlowKind::Udp { rate_bps: 12_000_000_000, steps: Vec::new(), packet_bytes: 1500 };
        let delay = FlowSpec {
            start_ns: 5045 * MS,
            stop_ns: Some(5045 * MS + 29_500),
            ..FlowSpec::new("delay", kind)
        };
        let record = run(&spec(wide_path(), 8 * S, vec![newreno(Workload::Bulk, options), delay]));
        let flow = &record.flows[0];
        assert_eq!(record.flows[1].counters.sent_pkts, 30);
        assert_eq!(flow.counters.timeouts, 1);
        assert_eq!(flow.counters.duplicate_pkts, flow.counters.retransmitted_pkts);
        let before = state_at(flow, 5 * S).cwnd_pkts;
        let after = state_at(flow, 7 * S);
        match recovery {
            // Undone at the report of the last repair, which arrived one RTT after it was sent; without SACK
            // as soon as a packet that was not repaired is acknowledged (RFC 5682, step 3b).
            Recovery::Sack | Recovery::Freebsd7 | Recovery::NewrenoPrr => {
                assert_eq!(flow.counters.undos, 1);
                let undo = calls(flow, Call::Undo).next().expect("one");
                assert_eq!(undo.result, before);
                // In slow start again; cwnd counts as the limit, as it was before the undoing, for
                // the ACKs of at most one flight.
                assert!((before..=before + 8).contains(&after.cwnd_pkts), "{}", after.cwnd_pkts);
                assert_eq!(after.ssthresh_pkts, SSTHRESH_INFINITE);
            }
            // Nothing reports duplicates: half the flight.
            Recovery::Newreno => {
                assert_eq!(flow.counters.undos, 0);
                assert_eq!(after.ssthresh_pkts, 4);
            }
        }
    }
}

// Idle times, ACKs, clocks.

#[test]
fn idle_restart() {
    // 40 packets every 2 s. The first time the window grows far beyond the initial 10.
    let burst_at = |idle_restart, every_ns: Ns, time_ns: Ns| {
        let workload = Workload::Transfers { size_bytes: 40 * 1448, every_ns: Some(every_ns) };
        let options = TcpOptions { idle_restart, ..TcpOptions::default() };
        let record = run(&spec(wide_path(), 5 * S, vec![newreno(workload, options)]));
        let restarts = events(&record.flows[0], Event::CwndRestart).count();
        (sent(&record, 0).iter().filter(|s| s.0 == time_ns).count(), restarts)
    };
    assert_eq!(burst_at(true, 2 * S, 2 * S), (10, 2));
    let (burst, restarts) = burst_at(false, 2 * S, 2 * S);
    // Slow start has raised the window beyond 40.
    assert_eq!((burst, restarts), (40, 0));
    // The last of the first 40 goes out at about 210 and is back at about 310: idle for less than the timer
    // of about 100 + 200 at 500, and for more at 600.
    assert_eq!(burst_at(true, 500 * MS, 500 * MS).0, burst);
    assert_eq!(burst_at(true, 600 * MS, 600 * MS).0, 10);
}

/// Packets that Linux 6.12 had sent at each ACK of a slow start on this path, from a trace on the host `vm`.
/// Once the rate fills a burst of 3 packets and the RTT grows, it leaves room unused until there is enough.
const LINUX_HAD_SENT: [(u32, u32); 18] = [
    (97, 193),
    (99, 197),
    (101, 201),
    (103, 205),
    (105, 208),
    (107, 211),
    (109, 217),
    (111, 220),
    (113, 223),
    (115, 229),
    (117, 232),
    (119, 235),
    (121, 241),
    (123, 244),
    (125, 247),
    (127, 253),
    (129, 256),
    (131, 259),
];

#[test]
fn segmentation_offload_makes_bursts_as_linux_does() {
    let had_sent = |segmentation_offload, recovery| {
        let path = PathSpec::symmetric(10_000_000, 40 * MS, QueueLimit::Packets(84));
        let options = TcpOptions {
            segmentation_offload,
            recovery,
            initial_window_pkts: 3,
            receive_window_pkts: 486,
            delayed_ack: DelayedAck { every_pkts: 2, timeout_ns: 100 * MS },
            quick_ack_pkts: 17,
            ..TcpOptions::default()
        };
        let record = run(&spec(path, S, vec![newreno(Workload::Bulk, options)]));
        let flow = &record.flows[0];
        let start = flow.trace[0].before.snd_pos;
        let at = |r: &CallRecord| (r.before.ack_pos - start, r.before.snd_pos - start);
        let range = LINUX_HAD_SENT[0].0..=LINUX_HAD_SENT[17].0;
        calls(flow, Call::OnRtt).map(at).filter(|at| range.contains(&at.0)).collect::<Vec<_>>()
    };
    for recovery in ALL {
        assert_eq!(had_sent(true, recovery), LINUX_HAD_SENT, "{recovery:?}");
        let without = had_sent(false, recovery);
        assert!(without.iter().all(|(ack, sent)| *sent == 2 * ack - 1), "{without:?}");
    }
}

#[test]
fn delayed_ack_waits_for_a_second_packet_or_the_timer() {
    let acks = |pkts| {
        let delayed_ack = DelayedAck { every_pkts: 2, timeout_ns: 40 * MS };
        let options = TcpOptions { delayed_ack, ..TcpOptions::default() };
        let record = run(&spec(wide_path(), S, vec![newreno(transfer(pkts), options)]));
        let ack = |r: &CallRecord| (r.before.now_us / 1000, r.ack.acked_pkts, r.ack.rtt_us / 1000);
        calls(&record.flows[0], Call::OnRtt).map(ack).collect::<Vec<_>>()
    };
    // Packet i arrives at 51 + i. An ACK's RTT is that of the latest packet it covers.
    assert_eq!(acks(1), [(141, 1, 141)]);
    assert_eq!(acks(2), [(102, 2, 102)]);
    assert_eq!(acks(3), [(102, 2, 102), (143, 1, 143)]);
}

#[test]
fn rtt_is_counted_in_ticks() {
    // floor(now / tick) - floor(sent / tick) + 1 ticks.
    let sample = |rtt_tick_ns, start_ns, rtt_ns| {
        let path = PathSpec::symmetric(12_000_000, rtt_ns - MS, QueueLimit::Packets(100));
        let options = TcpOptions { rtt_tick_ns, ..TcpOptions::default() };
        let flow = FlowSpec { start_ns, ..newreno(transfer(1), options) };
        let record = run(&spec(path, S, vec![flow]));
        calls(&record.flows[0], Call::OnRtt).next().expect("one ACK").ack.rtt_us
    };
    let us = 1000;
    assert_eq!(sample(0, 300 * us, 100_500 * us), 100_500);
    // Sent at 0.3, back at 100.8: 100 - 0 + 1. Sent at 0.7, back at 101.2: 101 - 0 + 1.
    assert_eq!(sample(MS, 300 * us, 100_500 * us), 101_000);
    assert_eq!(sample(MS, 700 * us, 100_500 * us), 102_000);
    // Half ticks: 0.3 is in tick 0, 100.7 in tick 201: 202 of them; 0.7 in tick 1, 101.1 in 202.
    assert_eq!(sample(MS / 2, 300 * us, 100_400 * us), 101_000);
    assert_eq!(sample(MS / 2, 700 * us, 100_400 * us), 101_000);
    // A path shorter than the tick: one at least.
    assert_eq!(sample(10 * MS, 0, 2 * MS), 10_000);
}

// Flows and the path.

#[test]
fn start_stop_and_access() {
    let mut flow = newreno(Workload::Bulk, TcpOptions::default());
    flow.start_ns = 100 * MS;
    flow.start_jitter_ns = 50 * MS;
    flow.access_delay_ns = 10 * MS;
    flow.stop_ns = Some(700 * MS);
    let record = run(&spec(wide_path(), 2 * S, vec![flow]));
    let (flow, offered) = (&record.flows[0], sent(&record, 0));
    assert!((100 * MS..=150 * MS).contains(&flow.start_ns) && flow.stop_ns == 700 * MS);
    assert_eq!(offered[0].0, flow.start_ns + 10 * MS);
    // ACKs release packets all the time, each 1 ms or less after the one before, to the end.
    let last_ns = offered.last().expect("some").0;
    assert!((708 * MS..=710 * MS).contains(&last_ns), "{last_ns}");
    // 101 and access twice in each direction's sense: out and back.
    let first = calls(flow, Call::OnRtt).next().expect("an ACK");
    assert_eq!(first.ack.rtt_us, 121_000);
    assert_eq!(flow.counters.delivered_pkts, flow.counters.sent_pkts);
}

#[test]
fn access_delay_is_drawn_for_each_run() {
    let delay_ns = |seed| {
        let kind = FlowKind::Probe { interval_ns: 20 * MS, packet_bytes: 150 };
        let probe = FlowSpec {
            access_delay_ns: 2 * MS,
            access_delay_spread_ns: 10 * MS,
            ..FlowSpec::new("probe", kind)
        };
        let record = run(&RunSpec { seed, ..spec(wide_path(), S, vec![probe]) });
        let delays = &record.flows[0].probe_delays;
        assert!(delays.iter().all(|(_, delay_ns)| *delay_ns == delays[0].1));
        delays[0].1 - 50_100_000
    };
    let drawn: Vec<Ns> = (0..40).map(delay_ns).collect();
    assert!(drawn.iter().all(|ns| (2 * MS..=12 * MS).contains(ns)), "{drawn:?}");
    let (least, most) = (drawn.iter().min().expect("some"), drawn.iter().max().expect("some"));
    assert!(*least < 4 * MS && *most > 10 * MS, "{drawn:?}");
    assert_eq!(drawn[7], delay_ns(7));
}

#[test]
fn udp_rate_changes_in_steps() {
    // 8, 0 and 16 Mb/s in packets of 1000 bytes: 1000 in the first second, none in the second, 2000
    // in the third.
    let steps = vec![(S, 0), (2 * S, 16_000_000)];
    let kind = FlowKind::Udp { rate_bps: 8_000_000, steps, packet_bytes: 1000 };
    let path = wide_path().with_each_hop(|hop| hop.rate_bps = 100_000_000);
    let record = run(&spec(path, 3 * S, vec![FlowSpec::new("udp", kind)]));
    let offered = sent(&record, 0);
    let within = |from: Ns, to: Ns| offered.iter().filter(|o| (from..to).contains(&o.0)).count();
    assert_eq!([within(0, S), within(S, 2 * S), within(2 * S, 3 * S)], [1000, 0, 2000]);
}

#[test]
fn probe_measures_path_and_its_own_transmission() {
    let mut probe =
        FlowSpec::new("probe", FlowKind::Probe { interval_ns: 20 * MS, packet_bytes: 150 });
    probe.access_delay_ns = 7 * MS;
    let record = run(&spec(wide_path(), S, vec![probe]));
    // 50 + 7, and 150 bytes at 12 Mb/s: 0.1.
    let expected: Vec<(Ns, Ns)> =
        (0..48).map(|i| (i * 20 * MS, 57_100_000)).take_while(|p| p.0 + p.1 <= S).collect();
    assert_eq!(record.flows[0].probe_delays, expected);
    assert_eq!(record.flows[0].one_way_delay.mean_ns(), 57_100_000.0);
}

#[test]
fn udp_keeps_its_rate_exactly() {
    // 7 Mb/s in packets of 1000 bytes: one each 8/7 ms, the first at 0.
    let kind = FlowKind::Udp { rate_bps: 7_000_000, steps: Vec::new(), packet_bytes: 1000 };
    let record = run(&spec(wide_path(), 100 * S, vec![FlowSpec::new("udp", kind)]));
    let times: Vec<Ns> = sent(&record, 0).iter().map(|s| s.0).collect();
    assert_eq!(times.len(), 87_501);
    assert!(times.iter().zip(0u64..).all(|(&t, n)| t == n * 8_000_000 / 7));
}

#[test]
fn access_jitter_is_uniform_and_keeps_order() {
    // A packet each 10 ms, up to 8 ms late: none has to wait for another.
    let kind = FlowKind::Udp { rate_bps: 800_000, steps: Vec::new(), packet_bytes: 1000 };
    for access_delay_ns in [0, 3 * MS] {
        let udp = FlowSpec {
            access_delay_ns,
            access_jitter_ns: 8 * MS,
            ..FlowSpec::new("udp", kind.clone())
        };
        let record = run(&spec(wide_path(), 100 * S, vec![udp]));
        let late: Vec<Ns> =
            sent(&record, 0).iter().zip(0u64..).map(|(s, n)| s.0 - n * 10 * MS).collect();
        assert!(late.iter().all(|l| (access_delay_ns..=access_delay_ns + 8 * MS).contains(l)));
        // Mean 4 ms; standard error of 10 000: 8 / sqrt(12) / 100 = 0.023.
        let mean_ms = late.iter().sum::<Ns>() as f64 / late.len() as f64 / MS as f64;
        assert!((mean_ms - 4.0 - (access_delay_ns / MS) as f64).abs() < 0.1, "{mean_ms}");
    }
    // A packet each 1 ms, up to 8 ms late.
    let kind = FlowKind::Udp { rate_bps: 8_000_000, steps: Vec::new(), packet_bytes: 1000 };
    let udp = FlowSpec { access_jitter_ns: 8 * MS, ..FlowSpec::new("udp", kind) };
    let record = run(&spec(wide_path(), S, vec![udp]));
    assert!(sent(&record, 0).iter().zip(0..).all(|(s, n)| s.1 == n));
}

#[test]
fn noise_delays_data_and_acks_and_keeps_order() {
    // A packet each 10 ms, up to 8 ms late: none has to wait for another.
    let kind = FlowKind::Udp { rate_bps: 800_000, steps: Vec::new(), packet_bytes: 1000 };
    let noisy = PathSpec { noise_ns: 8 * MS, ..wide_path() };
    let record = run(&spec(noisy.clone(), 100 * S, vec![FlowSpec::new("udp", kind)]));
    let late: Vec<Ns> =
        sent(&record, 0).iter().zip(0u64..).map(|(s, n)| s.0 - n * 10 * MS).collect();
    assert!(late.iter().all(|l| (0..=8 * MS).contains(l)));
    // Mean 4 ms; standard error of 10 000: 8 / sqrt(12) / 100 = 0.023.
    let mean_ms = late.iter().sum::<Ns>() as f64 / late.len() as f64 / MS as f64;
    assert!((mean_ms - 4.0).abs() < 0.1, "{mean_ms}");
    // A packet each 1 ms: they keep their order.
    let kind = FlowKind::Udp { rate_bps: 8_000_000, steps: Vec::new(), packet_bytes: 1000 };
    let record = run(&spec(noisy.clone(), S, vec![FlowSpec::new("udp", kind)]));
    assert!(sent(&record, 0).iter().zip(0..).all(|(s, n)| s.1 == n));
    // A packet at a time: the RTT of 101 ms has the noise of both directions, twice 4 ms in the mean.
    let options = TcpOptions { receive_window_pkts: 1, ..TcpOptions::default() };
    let record = run(&spec(noisy, 60 * S, vec![newreno(Workload::Bulk, options)]));
    let rtts_us: Vec<f64> =
        calls(&record.flows[0], Call::OnRtt).map(|r| f64::from(r.ack.rtt_us)).collect();
    assert!(rtts_us.len() > 500 && rtts_us.iter().all(|rtt| (101e3..=117e3 + 1.0).contains(rtt)));
    let mean_ms = rtts_us.iter().sum::<f64>() / rtts_us.len() as f64 / 1e3;
    assert!((mean_ms - 109.0).abs() < 1.0, "{mean_ms}");
}

#[test]
fn noise_comes_from_the_seed_alone_and_leaves_other_draws() {
    let flow = newreno(transfer(300), TcpOptions::default());
    let seeded = |seed, noise_ns| {
        let path = PathSpec { noise_ns, loss_reverse: 0.1, ..wide_path() };
        run(&RunSpec { seed, ..spec(path, 3 * S, vec![flow.clone(), flow.clone()]) })
    };
    let [once, again, other] = [1, 1, 2].map(|seed| format!("{:?}", seeded(seed, MS)));
    assert_eq!(once, again);
    assert_ne!(once, other);
    // The flows have noise of their own, and lose the same ACKs with and without.
    let (noisy, quiet) = (seeded(1, 1), seeded(1, 0));
    assert_ne!(noisy.flows[0].trace, noisy.flows[1].trace);
    let lost = |record: &RunRecord| record.flows[0].counters.ack_losses_pkts;
    assert!(lost(&quiet) > 0);
    assert_eq!(lost(&noisy), lost(&quiet));
}

#[test]
fn drop_tail_counts_packets_or_bytes() {
    let held = |queue, mss_bytes| {
        let options = TcpOptions { mss_bytes, initial_window_pkts: 30, ..TcpOptions::default() };
        let record = run(&spec(path(queue), MS / 10, vec![newreno(Workload::Bulk, options)]));
        30 - record.flows[0].counters.queue_drops_pkts
    };
    // Packets of 1500 and of 500 bytes.
    assert_eq!((held(QueueLimit::Packets(10), 1448), held(QueueLimit::Packets(10), 448)), (10, 10));
    assert_eq!(
        (held(QueueLimit::Bytes(10_000), 1448), held(QueueLimit::Bytes(10_000), 448)),
        (6, 20)
    );
    assert_eq!((held(QueueLimit::Packets(1), 1448), held(QueueLimit::Bytes(1499), 1448)), (1, 0));
}

#[test]
fn nothing_overtakes_on_the_reverse_path() {
    // Two flows of different access delay, jitter on the reverse path: ACKs leave the receivers in the
    // order in which the packets departed, and pass the shared way in that order.
    let near = newreno(transfer(300), TcpOptions::default());
    let far = FlowSpec { access_delay_ns: MS, ..near.clone() };
    let mut path = wide_path();
    path.jitter_reverse_ns = 5 * MS;
    let record = run(&spec(path, 3 * S, vec![near, far]));
    let mut acks = record.flows.iter().enumerate().map(|(index, flow)| {
        let access_us = index as u64 * 1000;
        calls(flow, Call::OnRtt)
            .map(move |r| r.before.now_us - access_us)
            .collect::<Vec<_>>()
            .into_iter()
    });
    let mut acks = [acks.next().expect("near"), acks.next().expect("far")];
    let departed = record.queues[0].log.iter().filter(|l| l.event == PacketEvent::Departed);
    let passed: Vec<u64> = departed
        .map(|l| acks[l.flow as usize].next().expect("each packet is acknowledged"))
        .collect();
    assert_eq!(passed.len(), 600);
    assert!(passed.is_sorted());
}
