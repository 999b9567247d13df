//! The sender as a whole: its packets and calls for each ACK.

mod board;

use super::{probe::Probe, *};
use knee_model::{
    NS_PER_MS,
    Recovery::{Freebsd7, Newreno, NewrenoPrr, Sack},
};

impl Transmit for Vec<u32> {
    fn transmit(&mut self, number: u32, _: Ecn, _: bool) {
        self.push(number);
    }
}

/// A bulk sender whose initial window is out, and the packets of it.
fn sender(recovery: knee_model::Recovery, initial_window_pkts: u32) -> (Sender, Vec<u32>) {
    let params = Params::defaults(knee_cc::algorithm("newreno").unwrap());
    let options = TcpOptions { recovery, initial_window_pkts, ..TcpOptions::default() };
    let mut sender = Sender::new(params, &options, 0, Random::stream(1, "test", 0), false, false);
    let mut out = Vec::new();
    sender.write(0, None, &mut out);
    (sender, out)
}

/// The calls of a sender with a trace.
fn trace_of(sender: Sender) -> Vec<knee_model::CallRecord> {
    *sender.tcb.algorithm.trace.expect("kept")
}

fn ack(cumulative: u32) -> packet::Ack {
    packet::Ack { flow: 0, cumulative, sack: NONE, bytes: 52, echo: false }
}

fn sacking(blocks: SackBlocks) -> packet::Sack {
    packet::Sack { blocks, ..packet::Sack::NOTHING }
}

fn reporting(duplicate: u32) -> packet::Sack {
    packet::Sack { duplicate, ..packet::Sack::NOTHING }
}

/// The packets that a sender puts on the wire: number, ECN-capable or not, CWR.
#[derive(Default)]
struct Wire(Vec<(u32, bool, bool)>);

impl Transmit for Wire {
    fn transmit(&mut self, number: u32, ecn: Ecn, cwr: bool) {
        self.0.push((number, ecn == Ecn::Capable, cwr));
    }
}

/// Like `sender`, ECN-capable, with a window of 20 and a trace.
fn capable(recovery: knee_model::Recovery) -> (Sender, Wire) {
    let params = Params::defaults(knee_cc::algorithm("newreno").unwrap());
    let options =
        TcpOptions { recovery, initial_window_pkts: 20, ecn: true, ..TcpOptions::default() };
    let mut sender = Sender::new(params, &options, 0, Random::stream(1, "test", 0), false, true);
    let mut out = Wire::default();
    sender.write(0, None, &mut out);
    assert_eq!(out.0, (0..20).map(|n| (n, true, false)).collect::<Vec<_>>());
    out.0.clear();
    (sender, out)
}

fn echo(cumulative: u32) -> packet::Ack {
    packet::Ack { echo: true, ..ack(cumulative) }
}

/// An echo with the first of 20 packets, and with all others: one reduction. 19 are outstanding,
/// so ssthresh is 9, and PRR lets ceil(k 9/20) packets out for k acknowledged: with the 1st, 3rd,
/// 5th, 7th, 9th, 12th, 14th, 16th and 18th. The phase ends with the ACK of one of them.
#[test]
fn an_echo_reduces_once_per_window() {
    for recovery in [Sack, Newreno, NewrenoPrr] {
        let (mut sender, mut out) = capable(recovery);
        let mut sent_at = Vec::new();
        for k in 1..=20 {
            sender.on_ack(100 * NS_PER_MS, echo(k), None, &mut out);
            assert_eq!(sender.tcb.phase(), Phase::Cwr);
            assert_eq!(sender.tcb.conn.ssthresh_pkts, 9);
            if out.0.len() > sent_at.len() {
                sent_at.push(k);
            }
        }
        assert_eq!(sent_at, [1, 3, 5, 7, 9, 12, 14, 16, 18], "{recovery:?}");
        // The first new packet reports that the window was reduced.
        let new: Vec<_> = (20..29).map(|n| (n, true, n == 20)).collect();
        assert_eq!(out.0, new);
        let c = sender.tcb.counters;
        assert_eq!((c.ecn_reductions, c.loss_events, c.timeouts), (1, 1, 0));
        sender.on_ack(200 * NS_PER_MS, ack(21), None, &mut out);
        assert_eq!((sender.tcb.phase(), sender.tcb.conn.cwnd_pkts), (Phase::Open, 9));
        // An echo now is of the next window.
        sender.on_ack(200 * NS_PER_MS, echo(22), None, &mut out);
        assert_eq!((sender.tcb.phase(), sender.tcb.counters.ecn_reductions), (Phase::Cwr, 2));
        let calls: Vec<_> = trace_of(sender).iter().map(|c| c.call).collect();
        use knee_model::Call::{Init, OnAck, OnEvent, OnRtt, Ssthresh};
        assert_eq!(calls[..3], [Init, OnRtt, Ssthresh]);
        assert_eq!(calls[3..22], [OnRtt; 19]);
        assert_eq!(calls[22..], [OnRtt, OnEvent, OnAck, OnRtt, Ssthresh]);
    }
}

/// A loss that is found while the window is reduced for a mark is repaired in the same reduction: the
/// algorithm gives no second threshold, and the repair cannot be marked.
#[test]
fn a_loss_joins_the_reduction_for_a_mark() {
    for recovery in [Sack, Newreno, NewrenoPrr] {
        let (mut sender, mut out) = capable(recovery);
        sender.on_ack(100 * NS_PER_MS, echo(1), None, &mut out);
        assert_eq!(sender.tcb.phase(), Phase::Cwr);
        // Packet 1 is lost; the packets after it show it.
        for k in 0..4 {
            let sack = sacking([(2, 3 + k), (0, 0), (0, 0)]);
            sender.on_ack((110 + u64::from(k)) * NS_PER_MS, echo(1), Some(&sack), &mut out);
        }
        assert_eq!(sender.tcb.phase(), Phase::Recovery, "{recovery:?}");
        assert!(out.0.contains(&(1, false, false)), "{:?}", out.0);
        let c = sender.tcb.counters;
        assert_eq!((c.ecn_reductions, c.loss_events), (1, 1));
        assert_eq!(sender.tcb.conn.ssthresh_pkts, 9);
        let trace = trace_of(sender);
        let asked = trace.iter().filter(|c| c.call == knee_model::Call::Ssthresh).count();
        assert_eq!(asked, 1);
    }
}

/// A probe that leaves while the window is reduced for a mark, and repairs a loss that joins the
/// reduction: there is no second one.
#[test]
fn a_probe_does_not_reduce_a_reduced_window() {
    let params = Params::defaults(knee_cc::algorithm("newreno").unwrap());
    let options = TcpOptions { initial_window_pkts: 20, ecn: true, ..TcpOptions::default() };
    let random = Random::stream(1, "test", 0);
    let mut sender = Sender::new(params, &options, 0, random, false, true);
    let mut out = Wire::default();
    sender.write(0, Some(20), &mut out);
    // All but 1 and 19 arrive; the packets after 1 show its loss only after the probe, 19 again.
    sender.on_ack(100 * NS_PER_MS, echo(1), None, &mut out);
    assert_eq!((sender.tcb.phase(), sender.timer), (Phase::Cwr, Timer::Probe));
    out.0.clear();
    sender.on_timer(sender.timer_due_ns, &mut out);
    assert_eq!(
        (out.0.last(), sender.tcb.probe),
        (Some(&(19, false, false)), Some(Probe { end: 20, retransmitted: true }))
    );
    sender.on_ack(310 * NS_PER_MS, ack(1), Some(&sacking([(2, 19), (0, 0), (0, 0)])), &mut out);
    assert_eq!(sender.tcb.phase(), Phase::Recovery);
    sender.write(320 * NS_PER_MS, Some(5), &mut out);
    assert!(sender.tcb.board.nxt() > 20);
    sender.on_ack(420 * NS_PER_MS, ack(21), None, &mut out);
    assert_eq!((sender.tcb.probe, sender.tcb.phase()), (None, Phase::Open));
    let trace = trace_of(sender);
    assert_eq!(trace.iter().filter(|c| c.call == knee_model::Call::Ssthresh).count(), 1);
}

/// A marked window was no mistake: later D-SACKs do not restore it.
#[test]
fn an_echo_forbids_undoing() {
    let (mut sender, mut out) = capable(Sack);
    sender.on_timeout(1000 * NS_PER_MS, &mut out);
    assert_eq!(out.0, [(0, false, false)]);
    sender.on_ack(1010 * NS_PER_MS, echo(10), None, &mut out);
    sender.on_ack(1020 * NS_PER_MS, ack(11), Some(&reporting(0)), &mut out);
    assert_eq!(sender.tcb.counters.undos, 0);
    assert_eq!(sender.tcb.phase(), Phase::Loss);
}

/// Profile RATE: bbr starts at 2.77 initial windows per millisecond, 40 109 600 bytes/s, so that 1448
/// bytes take 36 101.08 ns. All packets leave at their times, the tenth fills the window.
#[test]
fn an_algorithm_that_paces_is_obeyed() {
    let params = Params::defaults(knee_cc::algorithm("bbr").unwrap());
    let random = Random::stream(1, "test", 0);
    let mut sender = Sender::new(params, &TcpOptions::default(), 0, random, false, true);
    let mut out = Vec::new();
    sender.write(0, None, &mut out);
    let mut times_ns = Vec::new();
    while sender.pace_due_ns != NEVER {
        let due_ns = sender.pace_due_ns;
        sender.on_pace(due_ns - 1, &mut out);
        assert_eq!(out.len(), times_ns.len() + 1, "not before its time");
        sender.on_pace(due_ns, &mut out);
        times_ns.push(due_ns);
    }
    let exact_ns = |n: u32| (f64::from(n) * 1448.0 * 1e9 / 40_109_600.0).ceil() as u64;
    assert_eq!(times_ns, (1..10).map(exact_ns).collect::<Vec<_>>());
    assert_eq!(out, (0..10).collect::<Vec<_>>());
    // A long time later one packet leaves at once: no burst makes up for it.
    out.clear();
    sender.on_ack(100 * NS_PER_MS, ack(10), None, &mut out);
    assert_eq!(out, [10]);
    // The tenth left at 325 us: 14480 bytes * 2.77 in 99.675 ms are 402 403 bytes/s, one packet in
    // 3 598 382.7 ns.
    assert_eq!(sender.tcb.conn.pacing_bytes_per_s, 402_403);
    assert_eq!(sender.pace_due_ns, 100 * NS_PER_MS + 3_598_383);
    let calls: Vec<_> = trace_of(sender).iter().map(|c| c.call).collect();
    use knee_model::Call::{Init, OnAck, OnEvent};
    assert_eq!(calls, [Init, OnAck, OnEvent]);
}

/// Profile RATE: losses ask for a threshold and leave the window. The ACK of the loss comes after that, with
/// its lost packets, in recovery; only the phase shows the end of recovery.
#[test]
fn an_algorithm_that_owns_its_window_keeps_it_in_recovery() {
    let params = Params::defaults(knee_cc::algorithm("bbr").unwrap());
    let random = Random::stream(1, "test", 0);
    let mut sender = Sender::new(params, &TcpOptions::default(), 0, random, false, true);
    let mut out = Vec::new();
    sender.write(0, None, &mut out);
    while sender.pace_due_ns != NEVER {
        sender.on_pace(sender.pace_due_ns, &mut out);
    }
    sender.on_ack(100 * NS_PER_MS, ack(1), None, &mut out);
    // 1 is lost.
    for k in 0..3 {
        let sack = sacking([(2, 3 + k), (0, 0), (0, 0)]);
        sender.on_ack((101 + u64::from(k)) * NS_PER_MS, ack(1), Some(&sack), &mut out);
    }
    assert_eq!((sender.tcb.phase(), sender.tcb.conn.cwnd_pkts), (Phase::Recovery, 14));
    sender.on_ack(400 * NS_PER_MS, ack(10), None, &mut out);
    assert_eq!(sender.tcb.counters.loss_events, 1);
    let trace = trace_of(sender);
    use knee_model::Call::{Init, OnAck, Ssthresh};
    let calls: Vec<_> = trace.iter().map(|c| c.call).collect();
    assert_eq!(calls, [Init, OnAck, OnAck, OnAck, Ssthresh, OnAck, OnAck]);
    let told: Vec<_> = trace.iter().map(|c| (c.before.phase, c.ack.lost_pkts)).collect();
    assert_eq!(told[1..], [(0, 0), (1, 0), (1, 0), (1, 0), (3, 1), (3, 0)]);
    let ack = trace[5].ack;
    assert_eq!((ack.acked_pkts, ack.delivered_pkts, ack.prior_inflight_pkts), (1, 4, 8));
    assert_eq!((ack.sample_pkts, ack.sample_us, ack.sample_prior_pkts), (4, 103_000, 0));
}

/// A sender of profile RATE with a trace, whose `segments` are out, each at its pace.
fn paced(segments: u32) -> (Sender, Vec<u32>) {
    let params = Params::defaults(knee_cc::algorithm("bbr").unwrap());
    let random = Random::stream(1, "test", 0);
    let mut sender = Sender::new(params, &TcpOptions::default(), 0, random, false, true);
    let mut out = Vec::new();
    sender.write(0, Some(segments), &mut out);
    while sender.pace_due_ns != NEVER {
        sender.on_pace(sender.pace_due_ns, &mut out);
    }
    (sender, out)
}

/// Profile RATE: two thresholds in a row. The reordering timer, a millisecond late, finds the losses of 1, 3
/// and 4; their repairs leave one after the other. The timeout comes in that recovery, and asks for nothing.
/// Then the repair of 4 arrives, while that of 3, which left before it, does not: a new reduction, before the
/// ACK is given.
#[test]
fn timers_alone_may_come_between_two_reductions() {
    let (mut sender, mut out) = paced(10);
    sender.on_ack(100 * NS_PER_MS, ack(1), None, &mut out);
    let sack = sacking([(2, 3), (5, 6), (0, 0)]);
    sender.on_ack(101 * NS_PER_MS, ack(1), Some(&sack), &mut out);
    assert_eq!((sender.timer, sender.tcb.phase()), (Timer::Reordering, Phase::Disorder));
    out.clear();
    sender.on_timer(sender.timer_due_ns + NS_PER_MS, &mut out);
    assert_eq!((sender.timer, sender.tcb.phase()), (Timer::Timeout, Phase::Recovery));
    let timeout_ns = sender.timer_due_ns;
    sender.on_pace(timeout_ns - 20 * NS_PER_MS, &mut out);
    sender.on_pace(timeout_ns - 10 * NS_PER_MS, &mut out);
    assert_eq!(out, [1, 3, 4]);
    sender.on_timer(timeout_ns, &mut out);
    assert_eq!((sender.tcb.phase(), out.last()), (Phase::Loss, Some(&1)));
    let sack = sacking([(4, 6), (2, 3), (0, 0)]);
    sender.on_ack(timeout_ns + 120 * NS_PER_MS, ack(1), Some(&sack), &mut out);
    assert_eq!(sender.tcb.phase(), Phase::Recovery);
    let calls: Vec<_> = trace_of(sender).iter().map(|c| c.call).collect();
    use knee_model::Call::{Init, OnAck, Ssthresh};
    assert_eq!(calls, [Init, OnAck, OnAck, Ssthresh, Ssthresh, OnAck]);
}

/// Profile RATE: two thresholds in a row once more. The reordering timer finds the loss of 3; the ACK of its
/// repair ends the recovery, and reports three packets above the lost 5.
#[test]
fn an_ack_may_end_a_recovery_and_begin_another() {
    let (mut sender, mut out) = paced(5);
    sender.on_ack(100 * NS_PER_MS, ack(3), None, &mut out);
    sender.on_ack(101 * NS_PER_MS, ack(3), Some(&sacking([(4, 5), (0, 0), (0, 0)])), &mut out);
    assert_eq!((sender.timer, sender.tcb.phase()), (Timer::Reordering, Phase::Disorder));
    out.clear();
    let lost_ns = sender.timer_due_ns;
    sender.on_timer(lost_ns, &mut out);
    assert_eq!(sender.tcb.phase(), Phase::Recovery);
    sender.write(lost_ns + NS_PER_MS, Some(4), &mut out);
    while sender.pace_due_ns != NEVER {
        sender.on_pace(sender.pace_due_ns, &mut out);
    }
    assert_eq!(out, [3, 5, 6, 7, 8]);
    let back_ns = lost_ns + 150 * NS_PER_MS;
    sender.on_ack(back_ns, ack(5), Some(&sacking([(6, 9), (0, 0), (0, 0)])), &mut out);
    assert_eq!(sender.tcb.phase(), Phase::Recovery);
    let calls: Vec<_> = trace_of(sender).iter().map(|c| c.call).collect();
    use knee_model::Call::{Init, OnAck, Ssthresh};
    assert_eq!(calls, [Init, OnAck, OnAck, Ssthresh, Ssthresh, OnAck]);
}

/// RFC 5681 section 3.1: a timeout reduces the threshold unless the timer has sent that segment before. All
/// of 10 packets are lost, then the repair of the first one: one reduction. The third one's repair: another.
#[test]
fn a_timeout_of_another_segment_reduces_again() {
    for recovery in [Sack, Newreno, NewrenoPrr] {
        let (mut sender, mut out) = sender(recovery, 10);
        sender.on_timer(sender.timer_due_ns, &mut out);
        let first_pkts = sender.tcb.conn.ssthresh_pkts;
        sender.on_timer(sender.timer_due_ns, &mut out);
        assert_eq!(sender.tcb.conn.ssthresh_pkts, first_pkts);
        assert_eq!(out[10..], [0, 0]);
        let now_ns = sender.timer_due_ns - NS_PER_MS;
        sender.on_ack(now_ns, ack(1), None, &mut out);
        if recovery == NewrenoPrr {
            // New data first (RFC 5682); the duplicates that these cause show that the timeout was necessary.
            assert_eq!(out.drain(12..).collect::<Vec<_>>(), [10, 11]);
            (0..2).for_each(|_| sender.on_ack(now_ns, ack(1), None, &mut out));
        }
        assert_eq!((sender.tcb.phase(), out[12..].to_vec()), (Phase::Loss, vec![1, 2]));
        sender.on_ack(now_ns + NS_PER_MS, ack(2), None, &mut out);
        let outstanding_pkts = sender.tcb.board.outstanding();
        sender.on_timer(sender.timer_due_ns, &mut out);
        let second_pkts = sender.tcb.conn.ssthresh_pkts;
        assert!(second_pkts < first_pkts, "{recovery:?}: {second_pkts} of {outstanding_pkts}");
        sender.on_timer(sender.timer_due_ns, &mut out);
        assert_eq!(sender.tcb.conn.ssthresh_pkts, second_pkts);
        assert_eq!(sender.tcb.counters.timeouts, 4);
    }
}

/// RFC 9937 section 6 counts the deliveries of ACKs. If the reordering timer finds the loss, the repair
/// leaves at once, and the packet that the next ACK would have released does not. Otherwise one packet too
/// many would be in the network, and a full queue would drop it. PRR lets ceil(k 10/21) packets out for k
/// delivered, the repair among them.
#[test]
fn the_reordering_timer_delivers_nothing() {
    let (mut sender, mut out) = sender(Sack, 20);
    sender.on_ack(100 * NS_PER_MS, ack(1), None, &mut out);
    // Packet 1 is lost. Packet 2 arrives after 101 ms, and the wait is a quarter of the minimum RTT longer.
    let sacked_to = |end| sacking([(2, end), (0, 0), (0, 0)]);
    sender.on_ack(101 * NS_PER_MS, ack(1), Some(&sacked_to(3)), &mut out);
    assert_eq!((sender.timer, sender.timer_due_ns), (Timer::Reordering, 126 * NS_PER_MS));
    out.clear();
    sender.on_timer(126 * NS_PER_MS, &mut out);
    assert_eq!((sender.tcb.phase(), sender.tcb.conn.ssthresh_pkts), (Phase::Recovery, 10));
    assert_eq!(out, [1]);
    let mut sent_at = Vec::new();
    for k in 1..=9 {
        let before = out.len();
        let at_ns = (126 + u64::from(k)) * NS_PER_MS;
        sender.on_ack(at_ns, ack(1), Some(&sacked_to(3 + k)), &mut out);
        sent_at.extend((out.len() > before).then_some(k));
    }
    assert_eq!(sent_at, [3, 5, 7, 9]);
}

#[test]
fn a_report_of_an_earlier_window_undoes_nothing() {
    let (mut sender, mut out) = sender(Sack, 10);
    // A needless timeout; then the first flight turns out to have arrived.
    sender.on_timeout(1000 * NS_PER_MS, &mut out);
    sender.on_ack(1010 * NS_PER_MS, ack(10), None, &mut out);
    // Packet 10 of the next flight is lost indeed.
    let sack = sacking([(11, 14), (0, 0), (0, 0)]);
    sender.on_ack(1050 * NS_PER_MS, ack(10), Some(&sack), &mut out);
    assert_eq!(sender.tcb.phase(), Phase::Recovery);
    // The timeout's retransmission has arrived, needless.
    let report = packet::Sack { duplicate: 0, ..sack };
    sender.on_ack(1060 * NS_PER_MS, ack(10), Some(&report), &mut out);
    assert_eq!((sender.tcb.counters.undos, sender.tcb.phase()), (0, Phase::Recovery));
    // A report of packet 10 would have been another matter.
    sender.on_ack(1070 * NS_PER_MS, ack(11), Some(&reporting(10)), &mut out);
    assert_eq!(sender.tcb.counters.undos, 1);
}

/// RFC 6582 section 3.2 step 3: the window shrinks by all packets that a partial ACK covers, though
/// duplicates had not announced all of them.
#[test]
fn a_partial_ack_deflates_in_full() {
    let (mut sender, mut out) = sender(Newreno, 20);
    out.clear();
    for _ in 0..3 {
        sender.on_ack(100 * NS_PER_MS, ack(0), None, &mut out);
    }
    // Limited transmit, then the repair; ssthresh = 10, the window 10 + 3.
    assert_eq!(out, [20, 21, 0]);
    // 10 is lost too, and the other duplicates were lost on their way: 13 - 10 + 1 = 4, with 12
    // outstanding.
    out.clear();
    sender.on_ack(200 * NS_PER_MS, ack(10), None, &mut out);
    assert_eq!(out, [10]);
    // Eight more duplicates only fill what is missing; the ninth lets a packet out.
    for _ in 0..8 {
        sender.on_ack(210 * NS_PER_MS, ack(10), None, &mut out);
    }
    assert_eq!(out, [10]);
    sender.on_ack(210 * NS_PER_MS, ack(10), None, &mut out);
    assert_eq!(out, [10, 22]);
}

/// Without SACK: packets reported by duplicates are delivered once, and a timeout's own duplicates report
/// nothing.
#[test]
fn duplicates_count_as_deliveries_once() {
    let (mut sender, mut out) = sender(Newreno, 20);
    let mut told = Vec::new();
    let mut hear = |sender: &mut Sender, ms: u64, cumulative: u32| {
        let before = sender.tcb.delivered_pkts;
        sender.on_ack(ms * NS_PER_MS, ack(cumulative), None, &mut out);
        told.push(sender.tcb.delivered_pkts - before);
    };
    // 0 and 5 are lost: duplicates report 1 to 4 and 6 to 10; then the repair of 0 arrives,
    // then 11, then the repair of 5.
    (0..9).for_each(|_| hear(&mut sender, 100, 0));
    hear(&mut sender, 200, 5);
    hear(&mut sender, 210, 5);
    hear(&mut sender, 300, 12);
    assert_eq!(told, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    // A timeout, and 12 to 16 arrive twice.
    let mut none = Vec::new();
    sender.on_timeout(2000 * NS_PER_MS, &mut none);
    let mut hear = |cumulative| {
        let before = sender.tcb.delivered_pkts;
        sender.on_ack(2100 * NS_PER_MS, ack(cumulative), None, &mut none);
        sender.tcb.delivered_pkts - before
    };
    assert_eq!([hear(17), hear(17), hear(17), hear(18)], [5, 0, 0, 1]);
}

#[test]
fn undoing_forgets_the_losses_too() {
    let (mut sender, mut out) = sender(Sack, 10);
    // An RTT of 100, and two new packets.
    sender.on_ack(100 * NS_PER_MS, ack(1), None, &mut out);
    out.clear();
    sender.on_timeout(1000 * NS_PER_MS, &mut out);
    assert_eq!((&out[..], sender.tcb.board.lost), (&[1][..], 11));
    out.clear();
    // The ACK of the original was lost; that of the retransmission reports it, so nothing is missing. It came
    // too soon to show the loss of packets sent before it (RFC 8985 section 6.2).
    sender.on_ack(1010 * NS_PER_MS, ack(2), Some(&reporting(1)), &mut out);
    assert_eq!((sender.tcb.counters.undos, sender.tcb.phase()), (1, Phase::Open));
    // 2 to 11 are in the network; the window is 11 again, and one more for this ACK.
    assert_eq!(out, [12, 13]);
}

/// FreeBSD 7, a window of 20 of which the first packet is lost. The ACK that shows it begins the recovery
/// with a window of 1: the repair. ssthresh is 10; each further ACK lets a packet out once fewer than 10 are
/// in the network. At the end 10 are in flight: min(10, 10 + 1).
#[test]
fn freebsd_7_starts_from_one_packet() {
    let (mut sender, mut out) = sender(Freebsd7, 20);
    assert_eq!(out.len(), 20);
    out.clear();
    let window = |sender: &Sender| (sender.tcb.conn.cwnd_pkts, sender.inflight_pkts());
    let mut windows = Vec::new();
    for k in 2..=20 {
        sender.on_ack(100 * NS_PER_MS, ack(0), Some(&sacking([(1, k), (0, 0), (0, 0)])), &mut out);
        windows.push((sender.tcb.phase(), window(&sender)));
    }
    let began = windows.iter().position(|(phase, _)| *phase == Phase::Recovery).unwrap();
    assert_eq!(windows[began].1.0, 1);
    assert_eq!(out.iter().filter(|n| **n == 0).count(), 1, "{out:?}");
    let (last_cwnd_pkts, last_inflight_pkts) = windows.last().unwrap().1;
    assert_eq!(last_inflight_pkts, 10, "{windows:?}");
    assert!(1 < last_cwnd_pkts && last_cwnd_pkts < 11, "{windows:?}");
    let grows = |pair: &[(Phase, (u32, u32))]| pair[1].1.0 - pair[0].1.0 <= 1;
    assert!(windows[began..].windows(2).all(grows), "{windows:?}");
    let end = sender.tcb.reduction_end;
    sender.on_ack(200 * NS_PER_MS, ack(end), None, &mut out);
    assert_eq!(sender.tcb.phase(), Phase::Open);
    // Packets sent in recovery beyond its end are in flight.
    let flight_pkts = *out.iter().max().unwrap() + 1 - end;
    let ssthresh_pkts = sender.tcb.conn.ssthresh_pkts;
    assert!((9..=11).contains(&ssthresh_pkts), "{ssthresh_pkts}");
    assert!(sender.tcb.conn.cwnd_pkts <= ssthresh_pkts.min(flight_pkts + 1), "{flight_pkts}");
    assert!(sender.tcb.conn.cwnd_pkts + 2 >= ssthresh_pkts, "{:?}", sender.tcb.conn);
}
