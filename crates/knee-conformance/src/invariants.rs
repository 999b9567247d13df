//! Properties that hold for every algorithm, whatever its parameters and the events of the connection: random
//! parameters, and random sequences of ACKs, losses, timeouts, pauses and undos.

use knee_cc::{
    Ack, Algorithm, Conn, Controller, Event, NOTE_DELAY_BACKOFF, NOTE_LOSS_TOLERATED,
    NOTE_REGION_B, NOTE_ROUND, OBSERVE_N, Params, Phase, Profile, SSTHRESH_INFINITE, State,
    contain,
};
pub use proptest::test_runner::Config;
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{TestError, TestRng, TestRunner},
};
use std::fmt::Write as _;

/// Window that no algorithm may reduce below (RFC 5681 section 3.1 eq. 4), packets.
const FLOOR_PKTS: u32 = 2;
/// Largest window and largest amount outstanding here, packets.
const LARGEST_PKTS: u32 = 1 << 30;
/// Algorithms that grow as NewReno, halve on delay, and know no time: they must fulfil more conditions.
const NEWRENO_LIKE: [&str; 3] = ["newreno", "hd", "chd"];

// ---------------------------------------------------------------------------------------------
// What can happen
// ---------------------------------------------------------------------------------------------

#[derive(Clone, Debug)]
pub(crate) struct Case {
    algorithm: Algorithm,
    /// By name, raw.
    given: Vec<(&'static str, u64)>,
    start_pos: u32,
    cwnd_pkts: u32,
    cwnd_max_pkts: u32,
    ssthresh_pkts: u32,
    now_us: u64,
    steps: Vec<Step>,
}

#[derive(Clone, Debug)]
enum Step {
    Ack(AckStep),
    /// The retransmission timer expires.
    Timeout,
    /// Everything is acknowledged, the application pauses, and sending starts again.
    Idle {
        longer_than_rto: bool,
    },
    /// The latest reduction proves unnecessary.
    Undo,
}

#[derive(Clone, Debug)]
struct AckStep {
    after_us: u32,
    sent_pkts: u32,
    /// Part of the outstanding packets that is acknowledged, in 1/2^32.
    acked_part: u32,
    /// Packets that the ACK claims to deliver beyond that (selective acknowledgements).
    sacked_pkts: u32,
    rtt_us: i32,
    srtt_us: u32,
    random: u32,
    cwnd_limited: bool,
    signal: Signal,
}

/// The conclusion that the stack draws from an ACK.
#[derive(Clone, Copy, Debug)]
enum Signal {
    Nothing,
    Disorder,
    Loss,
    CongestionMark,
}

/// From `min` to `max`, small and large values alike, and the ends themselves.
fn magnitude(min: u32, max: u32) -> BoxedStrategy<u32> {
    prop_oneof![
        1 => Just(min),
        1 => Just(max),
        8 => (min..=max, 0_u32..32).prop_map(move |(v, shift)| min + ((v - min) >> shift)),
    ]
    .boxed()
}

fn valid_parameters(algorithm: Algorithm) -> impl Strategy<Value = Vec<(&'static str, u64)>> {
    let table = algorithm.params();
    let values: Vec<_> = table
        .iter()
        .map(|p| prop_oneof![2 => Just(p.default), 3 => magnitude(p.min, p.max)])
        .collect();
    values
        .prop_map(move |values| {
            table.iter().zip(values).map(|(p, v)| (p.name, u64::from(v))).collect::<Vec<_>>()
        })
        .prop_filter("cross-field rules", move |given| {
            Params::new(algorithm, given.iter().copied()).is_ok()
        })
}

prop_compose! {
    fn ack_step()(
        after_us in magnitude(0, u32::MAX),
        sent_pkts in magnitude(0, LARGEST_PKTS),
        acked_part in prop_oneof![1 => Just(0), 2 => Just(u32::MAX), 4 => any::<u32>()],
        sacked_pkts in prop_oneof![9 => Just(0), 1 => magnitude(0, u32::MAX)],
        rtt_us in prop_oneof![
            10 => 40_000..200_000,
            1 => Just(-1),
            1 => Just(0),
            1 => Just(i32::MAX),
            1 => 0..i32::MAX,
        ],
        srtt_us in prop_oneof![4 => 40_000_u32..200_000, 1 => magnitude(0, u32::MAX)],
        random in prop_oneof![1 => Just(0), 1 => Just(u32::MAX), 2 => any::<u32>()],
        cwnd_limited in prop::bool::weighted(0.8),
        signal in prop_oneof![
            20 => Just(Signal::Nothing),
            2 => Just(Signal::Disorder),
            1 => Just(Signal::Loss),
            1 => Just(Signal::CongestionMark),
        ],
    ) -> AckStep {
        AckStep {
            after_us,
            sent_pkts,
            acked_part,
            sacked_pkts,
            rtt_us,
            srtt_us,
            random,
            cwnd_limited,
            signal,
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        40 => ack_step().prop_map(Step::Ack),
        1 => Just(Step::Timeout),
        1 => any::<bool>().prop_map(|longer_than_rto| Step::Idle { longer_than_rto }),
        1 => Just(Step::Undo),
    ]
}

fn case(algorithm: Algorithm) -> impl Strategy<Value = Case> {
    let start_pos = prop_oneof![any::<u32>(), Just(u32::MAX - 5), Just(i32::MAX as u32 - 5)];
    let windows = magnitude(FLOOR_PKTS, LARGEST_PKTS).prop_flat_map(|max| {
        let ssthresh =
            prop_oneof![Just(SSTHRESH_INFINITE), magnitude(FLOOR_PKTS, SSTHRESH_INFINITE)];
        (Just(max), magnitude(1, max), ssthresh)
    });
    (
        valid_parameters(algorithm),
        start_pos,
        windows,
        0_u64..1 << 60,
        prop::collection::vec(step(), 1..120),
    )
        .prop_map(
            move |(given, start_pos, (cwnd_max_pkts, cwnd_pkts, ssthresh_pkts), now_us, steps)| {
                Case {
                    algorithm,
                    given,
                    start_pos,
                    cwnd_pkts,
                    cwnd_max_pkts,
                    ssthresh_pkts,
                    now_us,
                    steps,
                }
            },
        )
}

// ---------------------------------------------------------------------------------------------
// A sender's stack around the algorithm, in Linux's order of calls
// ---------------------------------------------------------------------------------------------

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Init,
    OnRtt,
    OnAck,
    Ssthresh,
    OnEvent(Event),
    Undo,
}

/// One call and its results.
#[derive(Clone, Debug)]
struct Done {
    call: Call,
    ack: Ack,
    before: Conn,
    after: Conn,
    /// Result of `ssthresh` and `undo`.
    window_pkts: Option<u32>,
    observed: [u32; OBSERVE_N],
    /// The declared invariant of its state that no longer holds.
    violated: Option<&'static str>,
    /// Every byte of it, those between fields too.
    state: State,
    /// Packets sent and acknowledged since the start, which do not wrap.
    sent: u64,
    acked: u64,
}

/// Conditions outside the contract, which must make no difference.
#[derive(Clone, Copy)]
struct Surroundings {
    /// Origin of the host's clock.
    origin_us: u64,
    /// Fills reserved and output fields with rubbish, moves the controller about in memory.
    disturb: bool,
    /// The clock runs as it likes; only for algorithms that know no time.
    mad_clock: bool,
}

const QUIET: Surroundings = Surroundings { origin_us: 0, disturb: false, mad_clock: false };

/// Keeps neighbouring controllers at different offsets within a cache line.
struct Berth {
    controller: Option<Controller>,
    _odd_size: u64,
}

struct Stack {
    /// The algorithm owns the window and the pacing rate.
    is_rate: bool,
    conn: Conn,
    berths: Vec<Berth>,
    berth: usize,
    surroundings: Surroundings,
    clock_us: u64,
    rubbish: u64,
    start_pos: u32,
    sent: u64,
    acked: u64,
    recover: u64,
    delivered_pkts: u64,
    done: Vec<Done>,
}

fn run(case: &Case, surroundings: Surroundings) -> Vec<Done> {
    let params = Params::new(case.algorithm, case.given.iter().copied()).expect("drawn valid");
    let conn = Conn {
        cwnd_pkts: case.cwnd_pkts,
        ssthresh_pkts: case.ssthresh_pkts,
        cwnd_max_pkts: case.cwnd_max_pkts,
        mss_bytes: 1460,
        snd_pos: case.start_pos,
        ack_pos: case.start_pos,
        ..Conn::default()
    };
    let mut stack = Stack {
        is_rate: is_rate(case),
        conn,
        berths: (0..8).map(|_| Berth { controller: None, _odd_size: 0 }).collect(),
        berth: 0,
        surroundings,
        clock_us: case.now_us,
        rubbish: 0x9e37_79b9_7f4a_7c15,
        start_pos: case.start_pos,
        sent: 0,
        acked: 0,
        recover: 0,
        delivered_pkts: 0,
        done: Vec::new(),
    };
    stack.call(Call::Init, Ack::default(), |_, conn| (Some(Controller::new(params, conn)), None));
    for step in &case.steps {
        stack.step(step);
    }
    stack.done
}

impl Stack {
    /// Makes one call in the given surroundings and records it.
    fn call(
        &mut self,
        call: Call,
        ack: Ack,
        make: impl FnOnce(Option<Controller>, &mut Conn) -> (Option<Controller>, Option<u32>),
    ) -> Option<u32> {
        self.conn.now_us = self.surroundings.origin_us + self.clock_us;
        if self.surroundings.disturb {
            let rubbish = self.next_rubbish();
            self.conn.reserved = rubbish as u8;
            self.conn.notes = (rubbish >> 8) as u32;
            if !self.is_rate {
                self.conn.pacing_bytes_per_s = rubbish;
            }
            if self.surroundings.mad_clock {
                self.conn.now_us = self.next_rubbish();
            }
        } else if !self.is_rate {
            self.conn.pacing_bytes_per_s = 0;
        }
        // A copy of its own on the heap: another address for the view as well.
        let before = self.conn;
        let mut conn = Box::new(before);
        let controller = self.berths[self.berth].controller.take();
        let (controller, window_pkts) = make(controller, &mut conn);
        if self.surroundings.disturb {
            self.berth = (self.berth + 3) % self.berths.len();
        }
        let kept = controller.as_ref().expect("kept");
        let (observed, violated, state) = (kept.observe(), kept.violated(), *kept.state());
        self.berths[self.berth].controller = controller;
        self.conn = *conn;
        let (sent, acked) = (self.sent, self.acked);
        let after = self.conn;
        self.done.push(Done {
            call,
            ack,
            before,
            after,
            window_pkts,
            observed,
            violated,
            state,
            sent,
            acked,
        });
        window_pkts
    }

    fn next_rubbish(&mut self) -> u64 {
        self.rubbish ^= self.rubbish << 13;
        self.rubbish ^= self.rubbish >> 7;
        self.rubbish ^= self.rubbish << 17;
        self.rubbish
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Ack(ack) => self.ack(ack),
            Step::Timeout => self.timeout(),
            Step::Undo => {
                if let Some(window) = self.undo() {
                    self.conn.cwnd_pkts = window;
                }
            }
            Step::Idle { longer_than_rto } => {
                if self.conn.outstanding_pkts != 0 {
                    return;
                }
                if *longer_than_rto && !self.is_rate {
                    self.event(Event::CwndRestart);
                    self.conn.cwnd_pkts = self.conn.cwnd_pkts.min(10);
                    self.conn.cwnd_cnt = 0;
                }
                self.event(Event::TxStart);
            }
        }
    }

    fn ack(&mut self, step: &AckStep) {
        self.clock_us += u64::from(step.after_us);
        self.sent += u64::from(step.sent_pkts.min(LARGEST_PKTS - self.conn.outstanding_pkts));
        let outstanding = self.sent - self.acked;
        let prior_inflight_pkts = outstanding as u32;
        let newly_acked = (outstanding * (u64::from(step.acked_part) + 1)) >> 32;
        self.acked += newly_acked;
        self.conn.snd_pos = self.start_pos.wrapping_add(self.sent as u32);
        self.conn.ack_pos = self.start_pos.wrapping_add(self.acked as u32);
        self.conn.outstanding_pkts = (self.sent - self.acked) as u32;
        self.conn.inflight_pkts = self.conn.outstanding_pkts;
        self.conn.srtt_us = step.srtt_us;
        self.conn.cwnd_limited = step.cwnd_limited.into();
        self.conn.app_limited = (!step.cwnd_limited).into();
        let acked_pkts = (newly_acked as u32).saturating_add(step.sacked_pkts);
        self.delivered_pkts += u64::from(acked_pkts);
        let mut ack = Ack {
            delivered_pkts: self.delivered_pkts,
            acked_pkts,
            lost_pkts: u32::from(matches!(step.signal, Signal::Loss)),
            rtt_us: step.rtt_us,
            random: step.random,
            ..Ack::default()
        };
        if self.is_rate {
            ack = Ack { prior_inflight_pkts, ..rate_sample(step, ack) };
        } else {
            let ack = Ack { advanced_pkts: newly_acked as u32, ..ack };
            self.call(Call::OnRtt, ack, |c, conn| with(c, |c| c.on_rtt(conn, &ack)));
        }
        let undisturbed = [Phase::Open as u8, Phase::Disorder as u8].contains(&self.conn.phase);
        match step.signal {
            Signal::Nothing if undisturbed => self.conn.phase = Phase::Open as u8,
            Signal::Disorder if undisturbed => self.conn.phase = Phase::Disorder as u8,
            Signal::Loss if undisturbed => self.reduce(Phase::Recovery),
            Signal::CongestionMark if undisturbed => self.reduce(Phase::Cwr),
            _ if !undisturbed && self.acked >= self.recover => self.recovered(),
            _ => {}
        }
        let may_grow = ![Phase::Recovery as u8, Phase::Cwr as u8].contains(&self.conn.phase);
        if (newly_acked != 0 && may_grow) || self.is_rate {
            self.call(Call::OnAck, ack, |c, conn| with(c, |c| c.on_ack(conn, &ack)));
        }
    }

    fn reduce(&mut self, phase: Phase) {
        self.ssthresh();
        self.conn.phase = phase as u8;
        self.conn.cwnd_cnt = 0;
        self.recover = self.sent;
    }

    fn recovered(&mut self) {
        let after_timeout = self.conn.phase == Phase::Loss as u8;
        self.conn.phase = Phase::Open as u8;
        if !after_timeout && !self.is_rate {
            self.conn.cwnd_pkts = self.conn.ssthresh_pkts.clamp(1, self.conn.cwnd_max_pkts);
            self.event(Event::Recovered);
        }
    }

    fn timeout(&mut self) {
        self.ssthresh();
        self.event(Event::Rto);
        self.conn.cwnd_pkts = 1;
        self.conn.cwnd_cnt = 0;
        self.conn.phase = Phase::Loss as u8;
        self.recover = self.sent;
    }

    fn ssthresh(&mut self) {
        let call = |c, conn: &mut Conn| returning(c, |c| c.ssthresh(conn));
        if let Some(ssthresh) = self.call(Call::Ssthresh, Ack::default(), call) {
            self.conn.ssthresh_pkts = ssthresh;
        }
    }

    fn undo(&mut self) -> Option<u32> {
        self.call(Call::Undo, Ack::default(), |c, conn| returning(c, |c| c.undo(conn)))
    }

    fn event(&mut self, event: Event) {
        let call = |c, conn: &mut Conn| with(c, |c| c.on_event(conn, event));
        self.call(Call::OnEvent(event), Ack::default(), call);
    }
}

/// A delivery rate sample, over the RTT or any time, or none: it covers the deliveries since some packet. The
/// numbers are derived from the step, so that they cost no draw.
fn rate_sample(step: &AckStep, ack: Ack) -> Ack {
    let mix = step.random.rotate_left(13) ^ step.after_us;
    let since = u64::from(ack.acked_pkts) + u64::from(mix & 0x3ff);
    let sample_pkts = since.min(ack.delivered_pkts).min(u32::MAX.into()) as u32;
    let sample_us = match mix >> 29 {
        0 => 0,
        1 => mix,
        _ => step.rtt_us.max(0) as u32,
    };
    let sample_prior_pkts = (ack.delivered_pkts as u32).wrapping_sub(sample_pkts);
    let lost_pkts = ack.lost_pkts * (1 + (mix >> 24 & 7));
    let sample_app_limited = u32::from(!step.cwnd_limited);
    Ack { lost_pkts, sample_pkts, sample_us, sample_prior_pkts, sample_app_limited, ..ack }
}

fn with(
    controller: Option<Controller>,
    call: impl FnOnce(&mut Controller),
) -> (Option<Controller>, Option<u32>) {
    let mut controller = controller.expect("started");
    call(&mut controller);
    (Some(controller), None)
}

fn returning(
    controller: Option<Controller>,
    call: impl FnOnce(&mut Controller) -> u32,
) -> (Option<Controller>, Option<u32>) {
    let mut controller = controller.expect("started");
    let window_pkts = call(&mut controller);
    (Some(controller), Some(window_pkts))
}

// ---------------------------------------------------------------------------------------------
// What must hold
// ---------------------------------------------------------------------------------------------

fn is_rate(case: &Case) -> bool {
    case.algorithm.profile() == Profile::Rate
}

fn newreno_like(case: &Case) -> bool {
    NEWRENO_LIKE.contains(&case.algorithm.name())
}

/// Returns whether the rules of the released module are set: those of HD and CHD differ from the papers'.
fn is_module(case: &Case) -> bool {
    let preset = case.algorithm.params().into_iter().find(|p| p.name == "preset");
    let module = preset.and_then(|p| p.choice("module").ok());
    module.is_some_and(|module| case.given.contains(&("preset", module)))
}

/// Returns whether a second delay backoff must wait until the data outstanding at the first is acknowledged:
/// always, unless the algorithm has a parameter `holdoff` and it is set to `none`. HD's module has no
/// hold-off.
fn backs_off_once_per_round(case: &Case) -> bool {
    if is_module(case) && case.algorithm.name() == "hd" {
        return false;
    }
    let holdoff = case.algorithm.params().into_iter().find(|p| p.name == "holdoff");
    holdoff.is_none_or(|p| {
        let none = p.choice("none").expect("a holdoff can be none");
        !case.given.contains(&("holdoff", none))
    })
}

/// The view without the fields that the algorithm may write.
fn inputs(conn: &Conn) -> Conn {
    Conn { pacing_bytes_per_s: 0, cwnd_pkts: 0, cwnd_cnt: 0, ssthresh_pkts: 0, notes: 0, ..*conn }
}

fn check_call(case: &Case, done: &Done) -> Result<(), TestCaseError> {
    let Done { call, before, after, .. } = done;
    let noted = |note| after.notes & note != 0;
    let on_ack_path = matches!(call, Call::OnRtt | Call::OnAck);

    prop_assert_eq!(inputs(before), inputs(after), "wrote an input");
    prop_assert!((1..=after.cwnd_max_pkts).contains(&after.cwnd_pkts), "window");
    prop_assert!(after.ssthresh_pkts >= FLOOR_PKTS, "ssthresh");
    prop_assert_eq!(done.violated, None, "state");

    let all = NOTE_ROUND | NOTE_DELAY_BACKOFF | NOTE_REGION_B | NOTE_LOSS_TOLERATED;
    prop_assert_eq!(after.notes & !all, 0, "unknown note");
    if !on_ack_path {
        prop_assert!(!noted(NOTE_ROUND | NOTE_DELAY_BACKOFF), "only an ACK ends a round");
    }
    if *call != Call::Ssthresh {
        prop_assert!(!noted(NOTE_LOSS_TOLERATED), "only ssthresh() tolerates");
    }
    if is_rate(case) {
        prop_assert!(*call != Call::OnRtt, "on_rtt in profile RATE");
        prop_assert!(!noted(NOTE_DELAY_BACKOFF), "its window is no backoff's");
    } else if after.cwnd_pkts < before.cwnd_pkts {
        prop_assert!(noted(NOTE_DELAY_BACKOFF), "reduced the window without saying so");
    }
    if noted(NOTE_DELAY_BACKOFF) {
        prop_assert!(after.cwnd_pkts >= FLOOR_PKTS, "backed off below the floor");
        prop_assert!(after.cwnd_pkts <= before.cwnd_pkts.max(FLOOR_PKTS), "not a reduction");
        let phases = [Phase::Open as u8, Phase::Disorder as u8];
        prop_assert!(phases.contains(&before.phase), "delay backoff in recovery");
    }
    if noted(NOTE_REGION_B) {
        prop_assert!(
            noted(NOTE_ROUND | NOTE_DELAY_BACKOFF) || *call == Call::Ssthresh,
            "region without anything decided"
        );
        prop_assert!(!noted(NOTE_LOSS_TOLERATED), "tolerated a loss in region B");
    }
    if before.cwnd_limited == 0 && !noted(NOTE_DELAY_BACKOFF) && !is_rate(case) {
        prop_assert!(after.cwnd_pkts <= before.cwnd_pkts, "grew while the application limited");
    }
    match call {
        Call::Ssthresh => {
            let ssthresh = done.window_pkts.expect("returned");
            let windows = FLOOR_PKTS..=before.cwnd_max_pkts;
            prop_assert!(windows.contains(&ssthresh), "ssthresh() = {ssthresh}");
            if noted(NOTE_LOSS_TOLERATED) {
                prop_assert_eq!(ssthresh, before.cwnd_pkts.max(FLOOR_PKTS));
            }
        }
        Call::Undo => {
            let window = done.window_pkts.expect("returned");
            let windows = before.cwnd_pkts..=before.cwnd_max_pkts;
            prop_assert!(windows.contains(&window), "undo() = {window}");
        }
        _ => {}
    }
    if matches!(call, Call::Init | Call::Ssthresh | Call::Undo) {
        // The start may set the first threshold.
        let first = matches!(call, Call::Init) && before.ssthresh_pkts == SSTHRESH_INFINITE;
        let expected = Conn {
            ssthresh_pkts: if first { after.ssthresh_pkts } else { before.ssthresh_pkts },
            notes: after.notes,
            pacing_bytes_per_s: after.pacing_bytes_per_s,
            ..*before
        };
        prop_assert_eq!(expected, *after, "only events and ACKs may write windows");
    }
    if newreno_like(case) {
        check_newreno_like(case, done)?;
    }
    Ok(())
}

fn check_newreno_like(case: &Case, done: &Done) -> Result<(), TestCaseError> {
    let Done { call, before, after, .. } = done;
    let backed_off = after.notes & NOTE_DELAY_BACKOFF != 0;
    if backed_off {
        // CHD's released module rounds up.
        let half_pkts = match is_module(case) && case.algorithm.name() == "chd" {
            true => before.cwnd_pkts.div_ceil(2),
            false => before.cwnd_pkts / 2,
        };
        prop_assert_eq!(after.cwnd_pkts, half_pkts.max(FLOOR_PKTS));
        prop_assert_eq!(after.ssthresh_pkts, after.cwnd_pkts);
    }
    if *call != Call::OnAck {
        prop_assert_eq!(after.cwnd_pkts, before.cwnd_pkts);
    } else if !backed_off {
        // Slow start, the fastest growth: +1 per packet. More would be a wrapped sum.
        let most = before.cwnd_pkts.saturating_add(done.ack.acked_pkts);
        prop_assert!((before.cwnd_pkts..=most).contains(&after.cwnd_pkts), "growth");
        prop_assert_eq!(after.ssthresh_pkts, before.ssthresh_pkts);
    }
    prop_assert_eq!(after.pacing_bytes_per_s, before.pacing_bytes_per_s);
    Ok(())
}

/// Rounds and delay backoffs are a round trip apart. (Rounds of profile RATE are the samples', and
/// those drawn here are of no one path.)
fn check_spacing(case: &Case, done: &[Done]) -> Result<(), TestCaseError> {
    if is_rate(case) {
        return Ok(());
    }
    let once_per_round = backs_off_once_per_round(case);
    // Packets sent when the round running started; when the latest delay backoff came.
    let (mut mark, mut held) = (0, 0);
    for d in done {
        if d.after.notes & NOTE_ROUND != 0 {
            prop_assert!(d.acked > mark, "a round ended before its marked packet was acknowledged");
            mark = d.sent;
        }
        if d.after.notes & NOTE_DELAY_BACKOFF != 0 {
            prop_assert!(!once_per_round || d.acked >= held, "second delay backoff in a round");
            held = d.sent;
        }
    }
    Ok(())
}

/// The smallest shift of the clock's origin that makes no difference. Ebb keeps the time of the latest sign
/// of competition in units of 2^14 us of the host's clock (`rival_16ms`), so its end depends on the origin
/// within that unit.
fn clock_step_us(case: &Case) -> u64 {
    if case.algorithm.name() == "ebb" { 1 << 14 } else { 1 }
}

/// Two runs of the same case decided alike.
fn check_alike(quiet: &[Done], other: &[Done]) -> Result<(), TestCaseError> {
    prop_assert_eq!(quiet.len(), other.len());
    for (a, b) in quiet.iter().zip(other) {
        prop_assert_eq!(a.call, b.call);
        let outputs = |d: &Done| {
            let c = &d.after;
            let windows = (c.cwnd_pkts, c.cwnd_cnt, c.ssthresh_pkts);
            (windows, c.notes, d.window_pkts, d.observed)
        };
        prop_assert_eq!(outputs(a), outputs(b), "{:?}", a.call);
        let pacing = |d: &Done| (d.before.pacing_bytes_per_s, d.after.pacing_bytes_per_s);
        let (before_a, after_a) = pacing(a);
        let (before_b, after_b) = pacing(b);
        let left_alone = before_a == after_a && before_b == after_b;
        prop_assert!(left_alone || after_a == after_b, "pacing rate");
    }
    Ok(())
}

// ---------------------------------------------------------------------------------------------
// The invariants
// ---------------------------------------------------------------------------------------------

/// Something that holds in every sequence of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invariant {
    /// Windows stay in range, the state keeps its declared invariants, no sum wraps, notes are true, at most
    /// one delay backoff per round trip.
    WindowsNotesAndSpacing,
    /// The same calls give the same results.
    SameCallsSameResults,
    /// Reserved fields, output fields, the clock's origin and memory addresses make no difference.
    NothingOutsideTheContractMatters,
}

impl Invariant {
    /// All.
    pub const ALL: [Self; 3] = [
        Self::WindowsNotesAndSpacing,
        Self::SameCallsSameResults,
        Self::NothingOutsideTheContractMatters,
    ];

    /// In words.
    pub fn about(self) -> &'static str {
        match self {
            Self::WindowsNotesAndSpacing => {
                "windows and state stay in range, notes are true, one delay backoff per round trip"
            }
            Self::SameCallsSameResults => "the same calls give the same results",
            Self::NothingOutsideTheContractMatters => {
                "reserved fields, the clock's origin and addresses make no difference"
            }
        }
    }

    /// Tries it on random sequences, as many as `config` says.
    ///
    /// # Errors
    /// The shortest sequence found in which it does not hold, in words.
    pub fn check(self, algorithm: Algorithm, config: Config) -> Result<(), String> {
        let mut runner = TestRunner::new(config);
        runner.run(&case(algorithm), |case| self.holds(&case)).map_err(|failure| match failure {
            TestError::Abort(why) => format!("given up: {why}"),
            TestError::Fail(why, case) => shown(&why.to_string(), &case),
        })
    }

    /// Tries it on `cases` random sequences, the same ones each time.
    ///
    /// # Errors
    /// See [`Self::check`].
    pub fn check_repeatably(self, algorithm: Algorithm, cases: u32) -> Result<(), String> {
        let mut runner = repeatable_runner();
        for _ in 0..cases {
            let case = case(algorithm).new_tree(&mut runner).expect("drawn").current();
            if let Err(why) = self.holds(&case) {
                let (why, case) = self.shortened(why, case);
                return Err(shown(&why.to_string(), &case));
            }
        }
        Ok(())
    }

    /// The shortest beginning of `case` that fails, without the events that this does not need. (A
    /// failure may take a second, if a call does not return: few are tried.)
    fn shortened(self, mut why: TestCaseError, mut case: Case) -> (TestCaseError, Case) {
        let with = |steps: &[Step]| Case { steps: steps.to_vec(), ..case.clone() };
        let beginnings = (0..case.steps.len()).map(|n| with(&case.steps[..n]));
        if let Some((shorter, reason)) =
            beginnings.map(|c| (self.holds(&c), c)).find_map(|(held, c)| Some((c, held.err()?)))
        {
            (case, why) = (shorter, reason);
        }
        let mut tries = TRIES;
        for at in (0..case.steps.len()).rev() {
            let mut shorter = case.clone();
            shorter.steps.remove(at);
            if let Err(reason) = self.holds(&shorter) {
                (case, why) = (shorter, reason);
                tries -= 1;
                if tries == 0 {
                    break;
                }
            }
        }
        (why, case)
    }

    fn holds(self, case: &Case) -> Result<(), TestCaseError> {
        let held = contain(|| self.judged(case));
        held.unwrap_or_else(|broken| Err(TestCaseError::fail(broken.to_string())))
    }

    fn judged(self, case: &Case) -> Result<(), TestCaseError> {
        let quiet = run(case, QUIET);
        match self {
            Self::WindowsNotesAndSpacing => {
                for (i, d) in quiet.iter().enumerate() {
                    check_call(case, d).map_err(|e| {
                        let (call, before, after) = (d.call, d.before, d.after);
                        let what = format!("call {}, {call:?}: {e}", i + 1);
                        let ack = d.ack;
                        TestCaseError::fail(format!(
                            "{what}\n  before {before:?}\n  {ack:?}\n  after {after:?}"
                        ))
                    })?;
                }
                check_spacing(case, &quiet)
            }
            Self::SameCallsSameResults => {
                let second = run(case, QUIET);
                check_alike(&quiet, &second)?;
                for (a, b) in quiet.iter().zip(&second) {
                    prop_assert_eq!(a.state, b.state, "{:?}", a.call);
                }
                Ok(())
            }
            Self::NothingOutsideTheContractMatters => {
                for origin_us in [clock_step_us(case), 1 << 32, 1 << 61] {
                    let mad_clock = newreno_like(case);
                    let other = run(case, Surroundings { origin_us, disturb: true, mad_clock });
                    check_alike(&quiet, &other)?;
                }
                Ok(())
            }
        }
    }
}

/// Failures of which events are dropped to shorten a sequence.
const TRIES: u32 = 100;
/// Events of a sequence that are shown.
const SHOWN: usize = 8;

fn repeatable_runner() -> TestRunner {
    let config = Config { failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    TestRunner::new_with_rng(config, rng)
}

/// A failure, and the sequence that leads there.
fn shown(why: &str, case: &Case) -> String {
    let mut text = why.to_owned();
    let defaults = Params::defaults(case.algorithm).shown();
    let params = Params::new(case.algorithm, case.given.iter().copied());
    let params = params.map(|p| p.shown()).unwrap_or_default();
    let changed = params.iter().filter(|p| !defaults.contains(p));
    let changed: Vec<_> = changed.map(|(name, value)| format!("{name}={value}")).collect();
    let params = if changed.is_empty() { "defaults".to_owned() } else { changed.join(" ") };
    let Case { cwnd_pkts, cwnd_max_pkts, ssthresh_pkts, now_us, start_pos, .. } = case;
    let _ = write!(
        text,
        "\n  parameters: {params}\n  start: cwnd {cwnd_pkts}, largest {cwnd_max_pkts}, ssthresh \
         {ssthresh_pkts} packets; clock {now_us} us, position {start_pos}"
    );
    let hidden = case.steps.len().saturating_sub(SHOWN);
    if hidden > 0 {
        let _ = write!(text, "\n  {hidden} events");
    }
    for (i, step) in case.steps.iter().enumerate().skip(hidden) {
        let _ = write!(text, "\n  event {}: {step:?}", i + 1);
    }
    text
}

/// Notes that algorithms make in random sequences, the same sequences each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// All notes set.
    pub notes: u32,
    /// Calls that noted a delay backoff.
    pub backoffs: u32,
    /// Calls.
    pub calls: u32,
}

impl Reached {
    /// In `cases` sequences.
    pub fn of(algorithm: Algorithm, cases: u32) -> Self {
        let mut runner = repeatable_runner();
        let mut reached = Self::default();
        for _ in 0..cases {
            let case = case(algorithm).new_tree(&mut runner).expect("drawn").current();
            for d in run(&case, QUIET) {
                reached.notes |= d.after.notes;
                reached.backoffs += u32::from(d.after.notes & NOTE_DELAY_BACKOFF != 0);
                reached.calls += 1;
            }
        }
        reached
    }
}
