use super::*;
use crate::{CongestionControl, Observer, algorithm::Numbers};
use knee_cc::{Call, CallRecord, NOTE_LOSS_TOLERATED, algorithms};
use proptest::prelude::*;
use quinn_proto::congestion::{Controller as _, ControllerFactory};
use rand_xoshiro::rand_core::Rng;
use std::sync::{Arc, Mutex};

const MTU: u16 = 1200;
const MS: Duration = Duration::from_millis(1);

#[derive(Default)]
struct Heard(Mutex<Vec<CallRecord>>);

impl Observer for Heard {
    fn called(&self, _controller: u64, call: &CallRecord) {
        self.0.lock().unwrap().push(*call);
    }
}

/// A connection driven by hand: the calls that quinn would make, in quinn's order.
struct Drive {
    cc: Box<Controller>,
    now: Instant,
    heard: Arc<Heard>,
    /// Sent and neither acknowledged nor lost: number, when, bytes.
    flight: Vec<(u64, Instant, u64)>,
    next: u64,
    largest_acked: Option<u64>,
    app_limited: bool,
    acked_bytes: u64,
    lost_bytes: u64,
}

impl Drive {
    fn new(algorithm: &str, seed: u64) -> Self {
        Self::with(CongestionControl::new(algorithm).unwrap().seed(seed))
    }

    fn with(config: CongestionControl) -> Self {
        let heard = Arc::new(Heard::default());
        let now = Instant::now();
        let cc = Arc::new(config.observer(heard.clone())).build(now, MTU).into_any();
        Self::driving(cc.downcast::<Controller>().unwrap(), now, heard)
    }

    /// An algorithm of whatever profile, called as one of this.
    fn of_profile(profile: Profile, algorithm: &str, seed: u64) -> Self {
        let (now, heard) = (Instant::now(), Arc::new(Heard::default()));
        let params = Params::defaults(knee_cc::algorithm(algorithm).unwrap());
        let observer: Arc<dyn Observer> = heard.clone();
        let algorithm =
            |conn: &mut Conn| Algorithm::new(params, conn, Some(observer), 0, &Numbers::default());
        let random = SplitMix64::seed_from_u64(seed);
        let cc = Controller::new(algorithm, random, None, now, now, MTU, profile);
        Self::driving(Box::new(cc), now, heard)
    }

    fn driving(cc: Box<Controller>, now: Instant, heard: Arc<Heard>) -> Self {
        Self {
            cc,
            now,
            heard,
            flight: Vec::new(),
            next: 0,
            largest_acked: None,
            app_limited: false,
            acked_bytes: 0,
            lost_bytes: 0,
        }
    }

    fn wait(&mut self, ms: u32) -> &mut Self {
        self.now += MS * ms;
        self
    }

    fn send_bytes(&mut self, bytes: u64) -> &mut Self {
        self.cc.on_sent(self.now, bytes, self.next);
        self.flight.push((self.next, self.now, bytes));
        self.next += 1;
        self
    }

    /// Full packets.
    fn send(&mut self, pkts: u64) -> &mut Self {
        for _ in 0..pkts {
            self.send_bytes(self.cc.conn.mss_bytes.into());
        }
        self
    }

    fn in_flight(&self) -> u64 {
        self.flight.iter().map(|p| p.2).sum()
    }

    fn take(&mut self, number: u64) -> (u64, Instant, u64) {
        let at = self.flight.iter().position(|p| p.0 == number).expect("is in flight");
        self.flight.remove(at)
    }

    /// One ACK frame, and the losses that it proves.
    fn ack_losing(&mut self, acked: &[u64], lost: &[u64], persistent: bool) -> &mut Self {
        for &number in acked {
            let (_, sent, bytes) = self.take(number);
            self.cc.acked(sent, bytes);
            self.acked_bytes += bytes;
            self.largest_acked = self.largest_acked.max(Some(number));
        }
        self.cc.on_end_acks(self.now, self.in_flight(), self.app_limited, self.largest_acked);
        if !lost.is_empty() {
            self.lose(lost, persistent);
        }
        self
    }

    fn lose(&mut self, lost: &[u64], persistent: bool) {
        let lost: Vec<_> = lost.iter().map(|n| self.take(*n)).collect();
        let bytes = lost.iter().map(|p| p.2).sum();
        let newest = lost.iter().map(|p| p.1).max().expect("something is lost");
        self.lost_bytes += bytes;
        self.cc.on_congestion_event(self.now, newest, persistent, bytes);
    }

    fn ack(&mut self, acked: std::ops::Range<u64>) -> &mut Self {
        self.ack_losing(&acked.collect::<Vec<_>>(), &[], false)
    }

    fn mark(&mut self, sent: Instant) -> &mut Self {
        self.cc.on_congestion_event(self.now, sent, false, 0);
        self
    }

    fn cwnd(&self) -> u32 {
        self.cc.conn.cwnd_pkts
    }

    /// The calls since the last time, the last call settled.
    fn calls(&mut self) -> Vec<CallRecord> {
        self.cc.settle();
        std::mem::take(&mut self.heard.0.lock().unwrap())
    }

    fn names(&mut self) -> Vec<String> {
        let event = |c: &CallRecord| match c.call {
            Call::OnEvent => format!("{:?}", Event::ALL[c.event as usize]),
            call => call.name().to_owned(),
        };
        self.calls().iter().map(event).collect()
    }

    fn state(&self) -> (u32, u32, u8) {
        let conn = &self.cc.conn;
        (conn.cwnd_pkts, conn.ssthresh_pkts, conn.phase)
    }
}

const OPEN: u8 = Phase::Open as u8;
const CWR: u8 = Phase::Cwr as u8;
const RECOVERY: u8 = Phase::Recovery as u8;
const LOSS: u8 = Phase::Loss as u8;

#[test]
fn one_frame_is_one_ack() {
    let mut d = Drive::new("newreno", 1);
    d.send(10).wait(40).ack(0..2);
    assert_eq!(d.names(), ["init", "on_rtt", "on_ack"]);
    d.wait(1).ack(2..5);
    let calls = d.calls();
    let ack = calls[0].ack;
    assert_eq!((ack.acked_pkts, ack.delivered_pkts, ack.rtt_us), (3, 5, 41_000));
    // Only on_rtt gets the advance of the cumulative ACK.
    assert_eq!(ack.advanced_pkts, 3);
    assert_eq!(calls[1].ack, Ack { advanced_pkts: 0, ..ack });
    // Slow start: one packet for each.
    assert_eq!(d.cwnd(), 15);
    let conn = calls[1].before;
    assert_eq!((conn.inflight_pkts, conn.outstanding_pkts), (5, 5));
    // 40 ms, then (7 * 40 + 41) / 8.
    assert_eq!((conn.srtt_us, conn.now_us, conn.cwnd_limited), (40_125, 41_000, 1));
    assert_eq!(conn.snd_pos.wrapping_sub(conn.ack_pos), 5);
}

#[test]
fn whole_packets_of_the_window_may_be_sent() {
    let d = Drive::new("newreno", 1);
    // quinn sends while in_flight + packet < window.
    let (mss, window) = (u64::from(MTU), d.cc.window());
    assert!(9 * mss + mss < window && 10 * mss + mss >= window);
    assert_eq!(d.cc.metrics().congestion_window, 12_000);
    assert_eq!(d.cc.metrics().ssthresh, None);
}

#[test]
fn the_ack_that_begins_a_recovery_does_not_grow() {
    let mut d = Drive::new("newreno", 1);
    d.send(10).wait(40).ack(0..10).send(20).wait(40);
    assert_eq!(d.cwnd(), 20);
    d.calls();
    // 10 is lost, 11 to 13 show it.
    d.ack_losing(&[11, 12, 13], &[10], false);
    assert_eq!(d.state(), (10, 10, RECOVERY));
    assert_eq!(d.cc.metrics().ssthresh, Some(12_000));
    assert_eq!(d.names(), ["on_rtt", "ssthresh"]);
    // Older losses, of the same flight, are of the same epoch; no growth meanwhile.
    d.wait(1).ack_losing(&[15, 16], &[14], false);
    d.wait(1).ack(17..30);
    assert_eq!(d.state(), (10, 10, RECOVERY));
    assert_eq!(d.names(), ["on_rtt", "on_rtt"]);
    // Something sent in recovery arrives.
    d.send(10).wait(40).ack(30..32);
    assert_eq!(d.names(), ["on_rtt", "Recovered", "on_ack"]);
    assert_eq!(d.state(), (10, 10, OPEN));
    assert_eq!(d.cc.conn.cwnd_cnt, 2);
    // A packet sent after the recovery began is lost: the next epoch.
    d.wait(1).send(2).ack_losing(&[33, 34, 35], &[32], false);
    assert_eq!(d.state(), (5, 5, RECOVERY));
}

#[test]
fn an_old_loss_after_the_recovery_begins_no_reduction() {
    let mut d = Drive::new("newreno", 1);
    d.send(10).wait(40).ack_losing(&[3, 4, 5], &[0], false);
    d.wait(1).send(2).wait(40).ack(10..11);
    assert_eq!(d.state(), (5, 5, OPEN));
    d.calls();
    d.wait(1).ack_losing(&[11], &[1, 2], false);
    let calls = d.calls();
    assert_eq!((calls.len(), calls[1].call, calls[1].ack.lost_pkts), (2, Call::OnAck, 2));
    assert_eq!((d.state(), d.cc.conn.cwnd_cnt), ((5, 5, OPEN), 2));
}

#[test]
fn losses_by_the_timer() {
    let mut d = Drive::new("newreno", 1);
    d.send(10).wait(40).ack(0..4);
    d.calls();
    d.wait(5).lose(&[4], false);
    // Six were outstanding.
    assert_eq!(d.state(), (3, 3, RECOVERY));
    assert_eq!(d.names(), ["ssthresh"]);
}

#[test]
fn persistent_congestion_is_a_timeout() {
    let mut d = Drive::new("newreno", 1);
    d.send(10).wait(40).ack(0..10).send(20).wait(1000).send(1).wait(40);
    d.calls();
    let lost: Vec<_> = (10..30).collect();
    d.ack_losing(&[30], &lost, true);
    assert_eq!(d.names(), ["on_rtt", "ssthresh", "Rto"]);
    assert_eq!(d.state(), (2, 10, LOSS));
    // Slow start, still in the same phase; losses of packets sent before are no reason for another cut.
    d.wait(1).send(2).wait(40).ack(31..32);
    assert_eq!((d.state(), d.names()), ((3, 10, OPEN), vec!["on_rtt".into(), "on_ack".into()]));
}

#[test]
fn a_timeout_in_recovery_calls_nothing() {
    let mut d = Drive::new("newreno", 1);
    d.send(10).wait(40).ack_losing(&[3, 4, 5], &[0], false);
    d.calls();
    d.wait(500).ack_losing(&[9], &[1, 2, 6, 7, 8], true);
    assert_eq!((d.state(), d.names()), ((2, 5, LOSS), vec!["on_rtt".to_owned()]));
}

#[test]
fn marks_reduce_once() {
    let mut d = Drive::new("newreno", 1);
    let first = d.now;
    d.send(10).wait(40).ack(0..2).mark(first);
    assert_eq!(d.state(), (5, 5, CWR));
    assert_eq!(d.names(), ["init", "on_rtt", "ssthresh"]);
    d.wait(1).ack(2..4).mark(first);
    assert_eq!(d.state(), (5, 5, CWR));
    // A loss of the same flight: the same epoch, but now a recovery.
    d.wait(1).ack_losing(&[5, 6, 7], &[4], false);
    assert_eq!(d.state(), (5, 5, RECOVERY));
    d.send(1).wait(40).ack(10..11);
    assert_eq!(d.names(), ["on_rtt", "on_rtt", "on_rtt", "Recovered", "on_ack"]);
}

#[test]
fn a_threshold_above_the_window_takes_effect_after_recovery() {
    let mut d = Drive::new("newreno", 1);
    d.send(10).wait(40).ack_losing(&[3, 4, 5], &[0], false);
    // An algorithm may move its threshold at any time.
    d.cc.conn.ssthresh_pkts = 30;
    d.wait(1).ack(6..7);
    assert_eq!(d.state(), (10, 30, RECOVERY));
    d.send(1).wait(40).ack(10..11);
    assert_eq!((d.state().1, d.state().2), (30, OPEN));
    assert!(d.cwnd() >= 30);
}

/// CHD keeps its window at a loss without queueing delay (Hayes and Armitage 2010, section 3.3).
#[test]
fn chd_tolerates_a_loss() {
    let mut d = Drive::new("chd", 1);
    d.send(10).wait(40).ack(0..10).send(20).wait(40).ack(10..20);
    let before = d.cwnd();
    d.calls();
    d.send(8).ack_losing(&[21, 22, 23], &[20], false);
    let calls = d.calls();
    let loss = calls.iter().find(|c| c.call == Call::Ssthresh).expect("a loss is a loss");
    assert_ne!(loss.after.notes & NOTE_LOSS_TOLERATED, 0);
    assert_eq!(d.state(), (before, loss.result, RECOVERY));
    d.wait(1).send(1).wait(39).ack(38..39);
    assert!(d.cwnd() >= before, "{:?}", d.state());
}

#[test]
fn an_idle_connection_starts_again() {
    let mut d = Drive::new("newreno", 1);
    d.send(10).wait(40).ack(0..10);
    assert_eq!(d.cwnd(), 20);
    d.calls();
    // Not longer than the RTO, 40 + 200 ms.
    d.wait(150).send(10);
    assert_eq!((d.names(), d.cwnd()), (vec!["TxStart".to_owned()], 20));
    d.wait(40).ack(10..20).calls();
    d.wait(240).send(1);
    assert_eq!((d.names(), d.cwnd()), (vec!["CwndRestart".into(), "TxStart".into()], 10));
}

#[test]
fn an_application_that_does_not_fill_the_window_does_not_grow_it() {
    let mut d = Drive::new("newreno", 1);
    d.send(4).wait(40).ack(0..4);
    // Less than half of the window was used.
    assert_eq!((d.cwnd(), d.cc.conn.cwnd_limited), (10, 0));
    d.send(10).wait(40);
    d.app_limited = true;
    d.ack(4..14);
    assert_eq!((d.cwnd(), d.cc.conn.app_limited), (10, 1));
}

/// The steps of quinn's search for the MTU of Ethernet, and back.
#[test]
fn another_mtu_leaves_the_window_in_bytes() {
    let mut d = Drive::new("newreno", 1);
    for mtu in [1326, 1389, 1420, 1436, 1444, 1448, 1450, 1451, 1452] {
        d.cc.on_mtu_update(mtu);
        assert_eq!(d.cc.window_bytes(), 12_000, "at {mtu}");
        assert_eq!(d.cc.conn.mss_bytes, u32::from(mtu));
    }
    assert_eq!(d.cwnd(), 8);
    d.cc.on_mtu_update(1200);
    assert_eq!((d.cwnd(), d.cc.spare_bytes), (10, 0));
    // The rest of a packet stays while the window grows, and goes when it is reduced.
    d.cc.on_mtu_update(1452);
    d.send(8).wait(40).ack(0..2);
    assert_eq!(d.cc.window_bytes(), 12_000 + 2 * 1452);
    d.ack_losing(&[3, 4, 5], &[2], false);
    assert_eq!(d.cc.window_bytes() % 1452, 0);
    // Never less than two packets, whatever their size.
    d.cc.on_mtu_update(9000);
    assert_eq!(d.cwnd(), 2);
}

#[test]
fn the_first_window_is_that_of_rfc_9002() {
    let first = |mtu: u16| {
        let config = Arc::new(CongestionControl::new("newreno").unwrap());
        config.build(Instant::now(), mtu).initial_window()
    };
    assert_eq!([first(1200), first(1452)], [12_000, 14_520]);
    // max(14720, 2 * 9000) in whole packets; 14720 / 1500.
    assert_eq!([first(9000), first(1500)], [18_000, 9 * 1500]);
    let config = CongestionControl::new("newreno").unwrap().initial_window_pkts(3);
    assert_eq!(Drive::with(config).cwnd(), 3);
}

#[test]
fn an_ack_of_older_packets_gives_no_rtt() {
    let mut d = Drive::new("newreno", 1);
    d.send(10).wait(40).ack(5..7);
    d.wait(100).ack(0..2);
    let calls = d.calls();
    assert_eq!([calls[1].ack.rtt_us, calls[3].ack.rtt_us], [40_000, -1]);
    assert_eq!(d.cc.conn.srtt_us, 40_000);
}

/// Late news of packets that were sent on another path, before this controller was.
#[test]
fn another_path_is_of_no_account() {
    let mut d = Drive::new("newreno", 1);
    d.calls();
    d.cc.acked(d.now - 40 * MS, 1200);
    d.cc.on_end_acks(d.now, 0, false, Some(99));
    d.cc.on_congestion_event(d.now, d.now - 30 * MS, false, 1200);
    assert_eq!((d.calls().len(), d.cwnd(), d.cc.conn.srtt_us), (0, 10, 0));
}

#[test]
fn a_clone_continues_with_other_random_bits() {
    let mut d = Drive::new("chd", 1);
    d.send(10).wait(40).ack(0..10);
    let clone = d.cc.clone_box().into_any().downcast::<Controller>().unwrap();
    assert_eq!((clone.window(), clone.inflight_bytes), (d.cc.window(), 0));
    assert_eq!(clone.observed(), d.cc.observed());
    let (mut a, mut b) = (clone.random.clone(), d.cc.random.clone());
    assert_ne!(a.next_u64(), b.next_u64());
}

#[test]
fn refusals_name_a_remedy() {
    let refused = |r: Result<CongestionControl, crate::Error>| r.expect_err("refused").to_string();
    let chd = || CongestionControl::new("chd").unwrap();
    let unknown = refused(CongestionControl::new("bbrr"));
    assert!(unknown.contains("`bbrr`") && unknown.contains("chd, "), "{unknown}");
    assert!(refused(chd().set("qht", "20ms")).contains("it has: "));
    assert!(refused(chd().set("qth", "20")).contains("\"20ms\""));
    assert!(refused(chd().set("qth", "1h")).contains("units are"));
    assert!(refused(chd().set("qth", "90min")).contains("out of range"));
    let rule = refused(chd().set("qmin", "35ms"));
    assert!(rule.contains("less than"), "{rule}");
    // Together they are valid.
    let both = chd().set_all([("qmin", "35ms"), ("qth", "60ms")]).unwrap();
    let shown = both.params().shown();
    assert!(shown.contains(&("qth", "60ms".to_owned())), "{shown:?}");
}

/// A minimal algorithm that shows the calls of profile RATE: NewReno's functions, called as in that profile.
fn rate() -> Drive {
    Drive::of_profile(Profile::Rate, "newreno", 1)
}

/// Delivery rate sample: packets, microseconds, delivered before.
fn sample(call: &CallRecord) -> (u32, u32, u32) {
    (call.ack.sample_pkts, call.ack.sample_us, call.ack.sample_prior_pkts)
}

#[test]
fn rate_has_one_call_for_an_ack_with_its_sample() {
    let mut d = rate();
    d.send(10).wait(40).ack(0..2);
    assert_eq!(d.names(), ["init", "on_ack"]);
    d.wait(1).ack(2..5).send(3).wait(40).ack(10..11);
    let calls = d.calls();
    assert_eq!(calls.len(), 2);
    let ack = calls[0].ack;
    assert_eq!((ack.acked_pkts, ack.delivered_pkts, ack.rtt_us, ack.lost_pkts), (3, 5, 41_000, 0));
    // Five since the start.
    assert_eq!((sample(&calls[0]), ack.prior_inflight_pkts), ((5, 41_000, 0), 8));
    // One since 41 ms, when five had arrived; sent 41 ms after the last of which that is known.
    assert_eq!((sample(&calls[1]), calls[1].ack.prior_inflight_pkts), ((1, 41_000, 5), 8));
    assert_eq!(calls[1].ack.sample_app_limited, 0);
}

#[test]
fn classic_gets_no_samples() {
    let mut d = Drive::new("newreno", 1);
    d.send(10).wait(40).ack(0..2);
    for call in d.calls() {
        let Ack { prior_inflight_pkts, sample_app_limited, .. } = call.ack;
        assert_eq!((sample(&call), prior_inflight_pkts, sample_app_limited), ((0, 0, 0), 0, 0));
    }
}

#[test]
fn rate_owns_the_window_in_recovery() {
    let mut d = rate();
    d.send(10).wait(40).ack(0..10).send(20).wait(40);
    assert_eq!(d.cwnd(), 20);
    d.calls();
    d.ack_losing(&[11, 12, 13], &[10], false);
    let calls = d.calls();
    assert_eq!([calls[0].call, calls[1].call], [Call::Ssthresh, Call::OnAck]);
    assert_eq!((calls.len(), calls[1].before.phase, calls[1].ack.lost_pkts), (2, RECOVERY, 1));
    assert_eq!((calls[1].ack.acked_pkts, calls[1].before.inflight_pkts), (3, 16));
    assert_eq!(sample(&calls[1]), (3, 40_000, 10));
    // Half of the 20 outstanding is the threshold; nobody takes the window down to it.
    assert_eq!(d.state(), (20, 10, RECOVERY));
    d.wait(1).ack_losing(&[15, 16], &[14], false);
    d.wait(1).ack(17..20);
    let calls = d.calls();
    let lost: Vec<_> = calls.iter().map(|c| (c.call, c.ack.lost_pkts, c.before.phase)).collect();
    assert_eq!(lost, [(Call::OnAck, 1, RECOVERY), (Call::OnAck, 0, RECOVERY)]);
    // Something sent in recovery arrives: only the phase shows it.
    d.send(1).wait(40).ack(30..31);
    let calls = d.calls();
    assert_eq!((calls.len(), calls[0].call, calls[0].before.phase), (1, Call::OnAck, OPEN));
}

#[test]
fn rate_hears_of_marks_and_of_losses_by_the_timer() {
    let mut d = rate();
    let first = d.now;
    d.send(10).wait(40).ack(0..2).mark(first);
    assert_eq!(
        (d.names(), d.state().2),
        (vec!["init".into(), "ssthresh".into(), "on_ack".into()], CWR)
    );
    let cwnd = d.cwnd();
    d.wait(5).lose(&[2], false);
    // A loss in the same round trip; no ACK reports it.
    assert_eq!((d.names(), d.state().2, d.cwnd()), (vec![], RECOVERY, cwnd));
    d.send(1).wait(40).ack(10..11);
    d.send(1).wait(5).lose(&[11], false);
    assert_eq!((d.names(), d.state().2), (vec!["on_ack".into(), "ssthresh".into()], RECOVERY));
}

#[test]
fn rate_hears_of_persistent_congestion_before_the_ack() {
    let mut d = rate();
    d.send(10).wait(40).ack(0..10).send(20).wait(1000).send(1).wait(40);
    d.calls();
    let lost: Vec<_> = (10..30).collect();
    d.ack_losing(&[30], &lost, true);
    let calls = d.calls();
    let names: Vec<_> = calls.iter().map(|c| (c.call, c.before.phase)).collect();
    assert_eq!(names, [(Call::Ssthresh, OPEN), (Call::OnEvent, OPEN), (Call::OnAck, LOSS)]);
    assert_eq!(calls[1].event, Event::Rto as u32);
    assert_eq!((calls[2].before.cwnd_pkts, calls[2].ack.lost_pkts), (2, 20));
}

/// Like in Linux, an idle time takes nothing from a window that is not the stack's.
#[test]
fn rate_keeps_its_window_after_idle_times() {
    let mut d = rate();
    d.send(10).wait(40).ack(0..10);
    let cwnd = d.cwnd();
    d.calls();
    d.wait(1000).send(1);
    assert_eq!((d.names(), d.cwnd()), (vec!["TxStart".to_owned()], cwnd));
    // The idle time is no part of the sample.
    d.wait(40).ack(10..11);
    assert_eq!(sample(&d.calls()[0]), (1, 40_000, 10));
}

#[test]
fn rate_hears_where_the_application_held_back() {
    let mut d = rate();
    d.app_limited = true;
    d.send(2).wait(40).ack(0..1);
    d.app_limited = false;
    d.send(2).wait(40).ack(1..3);
    let limited: Vec<_> = d.calls().iter().map(|c| c.ack.sample_app_limited).collect();
    assert_eq!(limited, [0, 0, 1]);
}

/// quinn paces at 5/4 of the window per RTT; more than an RTT's worth at the pacing rate it does
/// not get.
#[test]
fn rate_is_paced_by_the_window() {
    let mut d = rate();
    d.send(10).wait(40).ack(0..10);
    assert_eq!((d.cwnd(), d.cc.window()), (20, 24_001));
    // 40 ms of it, and a packet.
    d.cc.conn.pacing_bytes_per_s = 100_000;
    assert_eq!(d.cc.window(), 4000 + 1200 + 1);
    assert_eq!(d.cc.metrics().congestion_window, 24_000);
    assert_eq!(d.cc.metrics().pacing_rate, Some(800_000));
    // Never less than two packets.
    d.cc.conn.pacing_bytes_per_s = 1;
    assert_eq!(d.cc.window(), 2 * 1200 + 1);
    d.cc.conn.pacing_bytes_per_s = 100_000;
    // Not the window holds sending back.
    d.calls();
    d.send(20).wait(40).ack(10..11);
    assert_eq!(d.calls().last().map(|c| c.before.cwnd_limited), Some(0));
    d.cc.conn.pacing_bytes_per_s = u64::MAX;
    assert_eq!(d.cc.window(), d.cc.window_bytes() + 1);
    d.ack(11..12);
    assert_eq!(d.calls()[0].before.cwnd_limited, 1);
    // CLASSIC is not paced so, whatever the value.
    let mut d = Drive::new("newreno", 1);
    d.send(10).wait(40).ack(0..10);
    d.cc.conn.pacing_bytes_per_s = 100_000;
    assert_eq!(d.cc.window(), 24_001);
}

/// One step of a random life.
#[derive(Clone, Debug)]
enum Step {
    Send {
        pkts: u8,
        percent: u8,
    },
    /// An ACK of the packets in flight, in order: bit set for acknowledged; the rest below the largest of
    /// them is lost if `lose`.
    Ack {
        mask: u32,
        lose: bool,
        persistent: bool,
        marked: bool,
    },
    TimerLoss(u8),
    Wait(u16),
    Mtu(u16),
    AppLimited(bool),
    Clone,
}

fn step() -> impl Strategy<Value = Step> {
    let flag = any::<bool>;
    prop_oneof![
        6 => (1u8..30, 3u8..=100).prop_map(|(pkts, percent)| Step::Send { pkts, percent }),
        6 => (1u32.., flag(), 0u8..8, 0u8..8).prop_map(|(mask, lose, p, m)| Step::Ack {
            mask, lose, persistent: p == 0, marked: m == 0,
        }),
        1 => any::<u8>().prop_map(Step::TimerLoss),
        4 => (0u16..2000).prop_map(Step::Wait),
        1 => (1200u16..9001).prop_map(Step::Mtu),
        1 => flag().prop_map(Step::AppLimited),
        1 => Just(Step::Clone),
    ]
}

/// Checks that a call of profile RATE is one that the contract knows, with a consistent sample.
fn check_rate(call: &CallRecord) {
    let stack_only = [Event::Recovered as u32, Event::CwndRestart as u32];
    assert_ne!(call.call, Call::OnRtt);
    assert!(call.call != Call::OnEvent || !stack_only.contains(&call.event), "{call:?}");
    let ack = call.ack;
    if ack.sample_us > 0 {
        let delivered_pkts = (ack.delivered_pkts as u32).wrapping_sub(ack.sample_prior_pkts);
        assert_eq!(delivered_pkts, ack.sample_pkts);
        assert!(ack.sample_pkts >= ack.acked_pkts && ack.sample_us as i32 >= ack.rtt_us, "{ack:?}");
    }
}

/// All algorithms as they are, and some of CLASSIC as if they were of profile RATE.
fn lives() -> impl Iterator<Item = (Profile, &'static str)> {
    let own = algorithms().iter().map(|a| (a.profile(), a.name()));
    own.chain(["newreno", "chd"].map(|name| (Profile::Rate, name)))
}

/// Goes through a life; gives all calls.
fn live(profile: Profile, algorithm: &str, seed: u64, steps: &[Step]) -> Vec<CallRecord> {
    let mut d = Drive::of_profile(profile, algorithm, seed);
    let mut all = Vec::new();
    let mut state = None;
    let (mut epochs, mut cuts) = (0u64, 0u64);
    let mut reduced: Option<Instant> = None;
    let (mut acked_bytes, mut lost_bytes) = (0u64, 0u64);
    for step in steps {
        // The report of quinn, and whether it begins an epoch by RFC 9002.
        let mut congestion = |d: &Drive, newest: Instant, persistent: bool| {
            if reduced.is_none_or(|reduced| newest > reduced) {
                epochs += 1;
                reduced = Some(d.now);
            }
            if persistent {
                reduced = Some(d.now);
            }
        };
        let mss = u64::from(d.cc.conn.mss_bytes);
        let mut frames = 0;
        let rests = (d.cc.acked_rest_bytes, d.cc.lost_rest_bytes);
        let before = (d.acked_bytes, d.lost_bytes, d.cc.delivered_pkts);
        match step {
            Step::Send { pkts, percent } => {
                for _ in 0..*pkts {
                    d.send_bytes((mss * u64::from(*percent) / 100).max(1));
                }
            }
            Step::Ack { mask, lose, persistent, marked } => {
                let numbers: Vec<_> = d.flight.iter().take(32).map(|p| p.0).collect();
                let is_acked = |i: &usize| mask >> i & 1 == 1;
                let Some(largest) = (0..numbers.len()).filter(is_acked).max() else { continue };
                let chosen = |acked: bool| -> Vec<u64> {
                    let of = (0..=largest).filter(|i| is_acked(i) == acked);
                    of.map(|i| numbers[i]).collect()
                };
                let (acked, lost) = (chosen(true), if *lose { chosen(false) } else { vec![] });
                let sent = |n: &u64| d.flight.iter().find(|p| p.0 == *n).expect("in flight").1;
                let newest_acked = acked.iter().map(sent).max().expect("some are acknowledged");
                if let Some(newest) = lost.iter().map(sent).max() {
                    congestion(&d, newest, *persistent);
                }
                d.ack_losing(&acked, &lost, *persistent);
                frames = 1;
                if *marked {
                    congestion(&d, newest_acked, false);
                    d.mark(newest_acked);
                }
            }
            Step::TimerLoss(which) => {
                if d.flight.is_empty() {
                    continue;
                }
                let (number, sent, _) = d.flight[usize::from(*which) % d.flight.len()];
                congestion(&d, sent, false);
                d.lose(&[number], false);
            }
            Step::Wait(ms) => {
                d.wait((*ms).into());
            }
            Step::Mtu(mtu) => {
                let bytes = d.cc.window_bytes();
                d.cc.on_mtu_update(*mtu);
                let two = 2 * u64::from(*mtu);
                let most = u64::from(CWND_MAX_PKTS) * u64::from(*mtu);
                assert_eq!(d.cc.window_bytes(), bytes.max(two).min(most));
            }
            Step::AppLimited(limited) => d.app_limited = *limited,
            Step::Clone => {
                let bytes = d.cc.window_bytes();
                d.cc.settle();
                d.cc = d.cc.clone_box().into_any().downcast().expect("a clone is of its kind");
                assert_eq!(d.cc.window_bytes(), bytes);
            }
        }
        // Within bounds.
        let conn = &d.cc.conn;
        assert!((CWND_MIN_PKTS..=CWND_MAX_PKTS).contains(&conn.cwnd_pkts), "{conn:?}");
        assert!(d.cc.spare_bytes < u64::from(conn.mss_bytes));
        assert!(conn.ssthresh_pkts >= CWND_MIN_PKTS);
        let (window, mss_now) = (d.cc.window() - 1, u64::from(conn.mss_bytes));
        match profile {
            Profile::Classic => assert_eq!(window, d.cc.window_bytes()),
            Profile::Rate => assert!((2 * mss_now..=d.cc.window_bytes()).contains(&window)),
        }
        // Bytes become packets without loss or gain.
        if matches!(step, Step::Ack { .. } | Step::TimerLoss(_)) {
            let pkts = d.cc.delivered_pkts - before.2;
            assert_eq!(pkts * mss + d.cc.acked_rest_bytes, d.acked_bytes - before.0 + rests.0);
            if d.lost_bytes > before.1 {
                assert_eq!((d.lost_bytes - before.1 + rests.1) % mss, d.cc.lost_rest_bytes);
            }
            acked_bytes += d.acked_bytes - before.0;
            lost_bytes += d.lost_bytes - before.1;
        }
        // Every call natively again, from the state before it.
        let calls = d.calls();
        let count = |of: Call| calls.iter().filter(|c| c.call == of).count();
        assert_eq!(count(Call::of_every_ack(profile)), frames, "one call per frame");
        for call in calls {
            let again = call.again(d.cc.params(), state.unwrap_or_default());
            assert_eq!(again.as_ref(), Some(&call));
            state = Some(call.state);
            cuts += u64::from(call.call == Call::Ssthresh);
            match profile {
                Profile::Classic if call.call == Call::OnAck => {
                    assert!(call.before.phase != RECOVERY && call.before.phase != CWR);
                }
                Profile::Classic => {}
                Profile::Rate => check_rate(&call),
            }
            all.push(call);
        }
        assert_eq!(cuts, epochs, "one cut per epoch");
    }
    assert_eq!((acked_bytes, lost_bytes), (d.acked_bytes, d.lost_bytes));
    all
}

/// Few lives; PROPTEST_CASES asks for another number.
fn few() -> ProptestConfig {
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    if asked { ProptestConfig::default() } else { ProptestConfig::with_cases(64) }
}

proptest! {
    #![proptest_config(few())]

    #[test]
    fn every_algorithm_survives_any_life(
        seed: u64,
        steps in prop::collection::vec(step(), 1..120),
    ) {
        for (profile, name) in lives() {
            live(profile, name, seed, &steps);
        }
    }

    #[test]
    fn a_seed_gives_the_same_calls(seed: u64, steps in prop::collection::vec(step(), 1..60)) {
        for (profile, name) in lives() {
            let again = live(profile, name, seed, &steps);
            prop_assert_eq!(live(profile, name, seed, &steps), again);
        }
    }
}

#[test]
fn controllers_draw_their_own_bits() {
    let config = Arc::new(CongestionControl::new("hd").unwrap().seed(7));
    let build = |config: &Arc<CongestionControl>| {
        let cc = config.clone().build(Instant::now(), MTU).into_any();
        cc.downcast::<Controller>().unwrap().random.clone().next_u64()
    };
    let (first, second) = (build(&config), build(&config));
    assert_ne!(first, second);
    let again = Arc::new(CongestionControl::new("hd").unwrap().seed(7));
    assert_eq!((build(&again), build(&again)), (first, second));
    let unseeded = Arc::new(CongestionControl::new("hd").unwrap());
    assert_ne!(build(&unseeded), build(&unseeded));
}
