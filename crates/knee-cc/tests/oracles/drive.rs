//! Random connections, and the oracles' answers on them.

use knee_cc::{Ack, Conn, Controller, Event, Params, Phase, SSTHRESH_INFINITE, algorithm};

/// Least number of decisions compared for each algorithm.
pub const DECISIONS: u32 = 10_000;

/// The correct window after an ACK.
#[derive(Clone, Copy, Debug)]
pub struct Decision {
    /// Packets, with the part of the next one that has been earned.
    pub window_pkts: f64,
    /// Accepted difference of the C, packets: its fixed-point resolution.
    pub within_pkts: f64,
    /// Threshold, packets, where the source says something about it; by how much it may differ.
    pub ssthresh_pkts: Option<(f64, f64)>,
}

impl Decision {
    /// A window that whole numbers give exactly.
    pub fn exact(window_pkts: f64) -> Self {
        Self { window_pkts, within_pkts: 1e-9, ssthresh_pkts: None }
    }
}

/// An algorithm as its source has it. `conn` is always the connection before the call of the C.
pub trait Oracle {
    /// An ACK, in every phase.
    fn measure(&mut self, conn: &Conn, ack: &Ack);
    /// Returns an ACK's effect on the window where the stack lets it grow. None: within the resolution of
    /// a comparison, so that either answer is right.
    fn decide(&mut self, conn: &Conn, ack: &Ack) -> Option<Decision>;
    /// Threshold after a loss, packets, and by how much the C may differ.
    fn loss(&mut self, conn: &Conn) -> (f64, f64);
    /// Takes in the C's result, after its decision was compared.
    fn taken(&mut self, _after: &Conn, _observed: [u32; 4]) {}
    /// Fast recovery ended.
    fn recovered(&mut self, _conn: &Conn) {}
    /// Returns whether the values that the C lets its host observe agree with the oracle's own.
    fn observed(&self, _values: [u32; 4]) -> bool {
        true
    }
}

/// The result of a comparison.
#[derive(Default, Debug)]
pub struct Comparison {
    pub decisions: u32,
    /// Too close to call.
    pub left_out: u32,
    pub losses: u32,
    /// Delay backoffs that both made.
    pub backoffs: u32,
    pub disagreements: u32,
    /// The first few.
    pub examples: Vec<String>,
}

impl Comparison {
    fn differs(&mut self, example: impl FnOnce() -> String) {
        self.disagreements += 1;
        if self.examples.len() < 5 {
            self.examples.push(example());
        }
    }

    /// Fails unless the C agreed, and had enough to decide.
    #[track_caller]
    pub fn assert_agrees(&self, least_backoffs: u32) {
        assert_eq!(self.disagreements, 0, "{self:#?}");
        assert!(self.decisions >= DECISIONS && self.losses >= 30, "{self:?}");
        assert!(self.left_out <= self.decisions / 20, "{self:?}");
        assert!(self.backoffs >= least_backoffs, "{self:?}");
    }

    /// Fails unless the comparison reports a wrong constant.
    #[track_caller]
    pub fn assert_reports(&self, constant: &str) {
        assert!(self.disagreements > 0, "{constant} is wrong and nobody noticed: {self:?}");
    }
}

/// SplitMix64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x9e37_79b9_7f4a_7c15)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// Returns whether the C backed off on delay in this call.
pub fn backed_off(conn: &Conn) -> bool {
    conn.notes & knee_cc::NOTE_DELAY_BACKOFF != 0
}

/// One random connection: a window's packets are acknowledged one or two at a time, the queueing
/// delay wanders, packets get lost.
#[derive(Clone, Copy)]
pub struct Path {
    pub base_us: u64,
    /// The queueing delay wanders between 0 and this.
    pub queue_us: u64,
    /// One loss in so many ACKs.
    pub loss_in: u64,
    pub initial_cwnd: u32,
    pub initial_ssthresh: u32,
}

impl Path {
    fn random(random: &mut Random) -> Self {
        Self {
            base_us: 5_000 + random.below(150_000),
            queue_us: 10_000 + random.below(120_000),
            loss_in: 100 + random.below(900),
            initial_cwnd: 2 + random.below(60) as u32,
            initial_ssthresh: if random.one_in(2) {
                SSTHRESH_INFINITE
            } else {
                2 + random.below(100) as u32
            },
        }
    }
}

/// Compares on 40 connections of 1000 ACKs each. `oracle` gets the connection as it starts.
pub fn compare<O: Oracle>(
    name: &str,
    given: &[(&str, u64)],
    oracle: impl Fn(&Conn) -> O,
) -> Comparison {
    let mut found = Comparison::default();
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let path = Path::random(&mut random);
        let algorithm = algorithm(name).expect("registered");
        let params = Params::new(algorithm, given.iter().copied()).expect("valid");
        connection(&mut found, params, &oracle, path, &mut random);
    }
    found
}

/// The window, with the part of the next packet that the acknowledged ones have earned.
pub fn position_pkts(conn: &Conn) -> f64 {
    f64::from(conn.cwnd_pkts) + f64::from(conn.cwnd_cnt) / f64::from(conn.cwnd_pkts.max(1))
}

fn connection<O: Oracle>(
    found: &mut Comparison,
    params: Params,
    oracle: &impl Fn(&Conn) -> O,
    path: Path,
    random: &mut Random,
) {
    let start_pos = random.bits() as u32;
    let mut conn = Conn {
        now_us: 1_000_000 + random.below(1 << 40),
        cwnd_pkts: path.initial_cwnd,
        ssthresh_pkts: path.initial_ssthresh,
        cwnd_max_pkts: 1 << 20,
        mss_bytes: 1460,
        snd_pos: start_pos,
        ack_pos: start_pos,
        cwnd_limited: 1,
        ..Conn::default()
    };
    let mut oracle = oracle(&conn);
    let mut cc = Controller::new(params, &mut conn);
    let (mut q_us, mut srtt_us, mut delivered_pkts) = (0_u64, 0.0_f64, 0_u64);
    let mut recovery_until = None;
    for step in 0..1000 {
        let room = conn.cwnd_pkts.saturating_sub(conn.outstanding_pkts);
        conn.snd_pos = conn.snd_pos.wrapping_add(room);
        conn.outstanding_pkts += room;
        conn.inflight_pkts = conn.outstanding_pkts;

        if recovery_until.is_none() && step > 0 && random.one_in(path.loss_in) {
            let before = conn;
            let (expected, within) = oracle.loss(&before);
            let ssthresh = cc.ssthresh(&mut conn);
            found.losses += 1;
            if (f64::from(ssthresh) - expected).abs() > within {
                found.differs(|| format!("loss: {ssthresh}, not {expected}; {before:?}"));
            }
            (conn.ssthresh_pkts, conn.cwnd_pkts, conn.cwnd_cnt) = (ssthresh, ssthresh, 0);
            conn.phase = Phase::Recovery as u8;
            recovery_until = Some(conn.snd_pos);
        }

        let acked_pkts = (1 + random.below(2) as u32).min(conn.outstanding_pkts);
        let step_us = path.queue_us / 16 + 1;
        q_us = (q_us + random.below(2 * step_us)).saturating_sub(step_us).min(path.queue_us);
        if random.one_in(200) {
            q_us = 0;
        }
        let rtt_us = path.base_us + q_us;
        let gap_us = rtt_us * u64::from(acked_pkts) / u64::from(conn.cwnd_pkts);
        conn.now_us += 1 + gap_us / 2 + random.below(gap_us + 1);
        conn.ack_pos = conn.ack_pos.wrapping_add(acked_pkts);
        conn.outstanding_pkts -= acked_pkts;
        conn.inflight_pkts = conn.outstanding_pkts;
        conn.cwnd_limited = u8::from(!random.one_in(16));
        delivered_pkts += u64::from(acked_pkts);
        let sampled = !random.one_in(20);
        if sampled {
            let rtt = rtt_us as f64;
            srtt_us = if srtt_us == 0.0 { rtt } else { srtt_us + (rtt - srtt_us) / 8.0 };
            conn.srtt_us = srtt_us as u32;
        }
        let ack = Ack {
            delivered_pkts,
            acked_pkts,
            advanced_pkts: acked_pkts,
            rtt_us: if sampled { rtt_us as i32 } else { -1 },
            random: random.bits() as u32,
            ..Ack::default()
        };

        conn.notes = 0;
        oracle.measure(&conn, &ack);
        let mut before = conn;
        cc.on_rtt(&mut conn, &ack);
        if let Some(until) = recovery_until {
            if (until.wrapping_sub(conn.ack_pos) as i32) > 0 {
                continue;
            }
            recovery_until = None;
            conn.cwnd_pkts = conn.ssthresh_pkts;
            conn.phase = Phase::Open as u8;
            cc.on_event(&mut conn, Event::Recovered);
            before = conn;
            oracle.recovered(&before);
        }
        let decision = oracle.decide(&before, &ack);
        cc.on_ack(&mut conn, &ack);
        oracle.taken(&conn, cc.observe());
        let Some(decision) = decision else {
            found.left_out += 1;
            continue;
        };
        found.decisions += 1;
        found.backoffs += u32::from(backed_off(&conn));
        let wrong_window =
            (position_pkts(&conn) - decision.window_pkts).abs() > decision.within_pkts;
        let wrong_ssthresh = decision.ssthresh_pkts.is_some_and(|(expected, within)| {
            (f64::from(conn.ssthresh_pkts) - expected).abs() > within
        });
        let wrong_observed = !oracle.observed(cc.observe());
        if wrong_window || wrong_ssthresh || wrong_observed {
            found.differs(|| {
                format!(
                    "ACK {step}: {}, ssthresh {}, {:?}, not {decision:?}; {before:?} {ack:?}",
                    position_pkts(&conn),
                    conn.ssthresh_pkts,
                    cc.observe()
                )
            });
        }
    }
}

/// RTT extremes of all samples: RTTmin, RTTmax and q of the latest sample, microseconds.
#[derive(Clone, Copy, Default)]
pub struct Rtts {
    pub min_us: Option<f64>,
    pub max_us: f64,
    pub q_us: f64,
}

impl Rtts {
    pub fn sample(&mut self, rtt_us: f64) {
        let min_us = self.min_us.map_or(rtt_us, |min| min.min(rtt_us));
        self.min_us = Some(min_us);
        self.max_us = self.max_us.max(rtt_us);
        self.q_us = rtt_us - min_us;
    }

    /// qmax = RTTmax - RTTmin.
    pub fn range_us(&self) -> f64 {
        self.max_us - self.min_us.unwrap_or(0.0)
    }
}

/// A marked-packet round: the next packet to be sent is marked; its ACK ends the round.
pub struct Round {
    mark_pos: u32,
}

impl Round {
    pub fn new(conn: &Conn) -> Self {
        Self { mark_pos: conn.snd_pos }
    }

    pub fn ended(&mut self, conn: &Conn) -> bool {
        let ended = (conn.ack_pos.wrapping_sub(self.mark_pos) as i32) > 0;
        if ended {
            self.mark_pos = conn.snd_pos;
        }
        ended
    }
}

/// Growth of `alpha` packets per window acknowledged, in whole packets: the part earned towards the
/// next one is kept.
#[derive(Default)]
pub struct Growth {
    earned_pkts: f64,
}

impl Growth {
    pub fn clear(&mut self) {
        self.earned_pkts = 0.0;
    }

    /// cwnd += alpha/cwnd for each packet acknowledged. The C shows whole packets of the growth earned,
    /// hence 1/cwnd of tolerance, and `slack_pkts` for growth that it may have earned less or more.
    pub fn grow(&mut self, conn: &Conn, alpha: f64, counted: f64, slack_pkts: f64) -> Decision {
        let shown = f64::from(conn.cwnd_cnt);
        if !(-0.5 - slack_pkts..1.5 + slack_pkts).contains(&(self.earned_pkts - shown)) {
            // One of the two is a packet further: just before or after the next +1.
            self.earned_pkts = shown;
        }
        let cwnd = f64::from(conn.cwnd_pkts);
        self.earned_pkts += alpha * counted;
        let steps = (self.earned_pkts / cwnd).floor();
        self.earned_pkts -= steps * cwnd;
        let window = cwnd + steps;
        Decision {
            window_pkts: window + self.earned_pkts / window,
            within_pkts: (1.001 + slack_pkts) / cwnd,
            ssthresh_pkts: None,
        }
    }
}

/// Slow start: +1 for each packet acknowledged, up to ssthresh (RFC 5681 section 3.1 eq. 2, RFC 3465
/// section 2.2). Gives the window, and the packets left over.
pub fn slow_start(conn: &Conn, counted: f64) -> (f64, f64) {
    let (cwnd, ssthresh) = (f64::from(conn.cwnd_pkts), f64::from(conn.ssthresh_pkts));
    let add = counted.min((ssthresh - cwnd).max(0.0));
    (cwnd + add, counted - add)
}

/// A connection whose window is `cwnd`, with its earned fraction.
pub fn at(conn: &Conn, cwnd: f64) -> Conn {
    Conn { cwnd_pkts: cwnd as u32, ..*conn }
}

/// NewReno's growth at an ACK: slow start, then 1/cwnd for each packet acknowledged (RFC 5681
/// section 3.1 eq. 3; RFC 3465 section 2.1). Nothing while the window does not limit sending.
pub fn newreno(conn: &Conn, ack: &Ack) -> Decision {
    let counted = f64::from(ack.acked_pkts);
    if conn.cwnd_limited == 0 {
        return Decision::exact(position_pkts(conn));
    }
    let (cwnd, left) = slow_start(conn, counted);
    let mut growth = Growth { earned_pkts: f64::from(conn.cwnd_cnt) };
    if cwnd < f64::from(conn.ssthresh_pkts) || left == 0.0 {
        return Decision::exact(cwnd + growth.earned_pkts / cwnd);
    }
    Decision { within_pkts: 1e-9, ..growth.grow(&at(conn, cwnd), 1.0, left, 0.0) }
}

/// max(FlightSize / 2, 2), in whole packets: RFC 5681 section 3.1 eq. 4.
pub fn newreno_loss(conn: &Conn) -> f64 {
    f64::from(conn.cwnd_pkts.min(conn.outstanding_pkts) / 2).max(2.0)
}

/// The window that a reduction to `window_pkts` leaves, in whole packets and at least 2; the tolerance
/// is for quotients that lie on a whole number.
pub fn reduced(window_pkts: f64, resolution_pkts: f64) -> Decision {
    let lies_on_whole = (window_pkts - window_pkts.round()).abs() <= resolution_pkts;
    Decision {
        window_pkts: window_pkts.floor().max(2.0),
        within_pkts: if lies_on_whole { 1.0 } else { 1e-9 },
        ssthresh_pkts: None,
    }
}

/// Returns whether an event of this probability happens, given 32 uniform bits. None: within two units
/// of 2^-32, which is how far two rounded divisions can be off.
pub fn happens(random: u32, probability: f64) -> Option<bool> {
    let threshold = probability * 4_294_967_296.0;
    let draw = f64::from(random);
    let close = probability > 0.0 && probability < 1.0 && (draw - threshold).abs() <= 2.0;
    (!close).then_some(draw < threshold)
}
