// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * BBR version 3: paces at a model of the path.
 *
 * N. Cardwell, I. Swett, J. Beshay (eds.): "BBR Congestion Control", draft-ietf-ccwg-bbr-06, July
 * 2026. Section numbers are the draft's. It has no ECN response (section 3.7); neither has this.
 *
 * The model is the largest delivery rate of two probing cycles (max_bw), the minimum RTT of ten
 * seconds (min_rtt), and bounds learned from losses: for the long term on the data in flight
 * (inflight_long), for the short term on rate and data in flight (bw_short, inflight_short), which
 * last until the next probe. With bw = min(max_bw, bw_short)
 *
 *   pacing rate = gain * bw * 0.99,   cwnd <= cwnd_gain * bw * min_rtt
 *
 *   STARTUP    2.77           until the rate has stopped growing, or losses are too many
 *   DRAIN      0.5            until a BDP is in flight
 *   DOWN       0.9            until a BDP and headroom are in flight
 *   CRUISE     1              for 2 to 3 s, at most as many round trips as the BDP has packets
 *   REFILL     1              a round trip; the short-term bounds are forgotten
 *   UP         1.25           until the rate has stopped growing, or losses are above 2 %
 *   PROBE_RTT  1, cwnd_gain 0.5, for 200 ms, if min_rtt has not been seen for 5 s
 *
 * Readings taken, each a parameter unless noted:
 *  - BB-a: the contract's sample does not have what was in flight when a packet was sent
 *    (tx_in_flight). On a path that keeps order all of it has since been delivered or lost, so the
 *    packets delivered since then plus the losses of the round stand for it (not a parameter).
 *  - BB-b: losses since a packet was sent are the losses of the round, which the first loss
 *    restarts. The losses that one ACK reports are one burst, "packet" P of section 5.5.10.2. A
 *    loss that a timer found counts as one packet, at the next ACK (not a parameter).
 *  - BB-c: discontiguous ranges lost in startup are counted as ACKs that report a loss:
 *    `startup_losses`.
 *  - BB-d: the initial pacing rate takes an RTT of 1 ms; the first RTT sample sets it again, also
 *    downwards: as in the text of section 5.6.2, not its pseudocode (not a parameter).
 *  - BB-e: the state that undo restores is saved when the stack enters recovery, not again in each
 *    of its rounds (not a parameter).
 *  - BB-f: samples of PROBE_RTT, and of the round after it, count as application-limited, which
 *    section 5.3.4.3 has the sampler say (not a parameter).
 *  - BB-g: extra_acked (section 5.5.9), the allowance for aggregated ACKs, is left out: the state
 *    has no room for it. The offload budget is the one allowance kept: `quanta`.
 *  - BB-h: selective acknowledgements are assumed (section 5.3.1.3).
 *  - BB-i: PROBE_RTT every 5 s, as the draft has it; a later text of its editors has 10 s, with
 *    the same window as min_rtt: `probe_rtt_interval`.
 *  - BB-k: if PROBE_RTT ends when sending resumes, there is no random number: the wait for the next
 *    probe is the mean (not a parameter).
 */
#include "knee/host.h"
#include "knee/reno.h"

#define BBR_PARAMS(X) \
	X(CC_NUMBER_PPM, startup_gain_ppm, "startup_gain", "", 1000000, 8000000, 2770000, "", \
	  "draft s2.5: 2.77", "pacing gain of startup") \
	X(CC_NUMBER_PPM, drain_gain_ppm, "drain_gain", "", 10000, 1000000, 500000, "", \
	  "draft s2.5: 0.5", "pacing gain after startup, until its queue has drained") \
	X(CC_NUMBER_PPM, down_gain_ppm, "down_gain", "", 10000, 1000000, 900000, "", \
	  "draft s5.6.1: 0.90", "pacing gain after a probe") \
	X(CC_NUMBER_PPM, up_gain_ppm, "up_gain", "", 1000000, 8000000, 1250000, "", \
	  "draft s5.6.1: 1.25", "pacing gain of a probe") \
	X(CC_NUMBER_PPM, cwnd_gain_ppm, "cwnd_gain", "", 1000000, 8000000, 2000000, "", \
	  "draft s2.6: 2", "window in units of the BDP") \
	X(CC_NUMBER_PPM, up_cwnd_gain_ppm, "up_cwnd_gain", "", 1000000, 8000000, 2250000, "", \
	  "draft s5.6.1: 2.25", "the same during a probe") \
	X(CC_PROB_PPM, pacing_margin_ppm, "pacing_margin", "", 0, 500000, 10000, "", \
	  "draft s2.5: 1 %", "fraction by which pacing stays below the rate") \
	X(CC_NUMBER_PPM, full_growth_ppm, "full_growth", "", 1000000, 4000000, 1250000, "", \
	  "draft s5.3.1.2: 25 %", "least factor by which the rate must grow in a round to count as growth") \
	X(CC_COUNT, full_rounds, "full_rounds", "", 1, 7, 3, "", \
	  "draft s5.3.1.2: 3", "rounds without growth after which the pipe is full") \
	X(CC_COUNT, startup_losses, "startup_losses", "", 1, 15, 6, "", \
	  "draft s5.3.1.3: 6; reading BB-c", \
	  "ACKs of a round that report losses after which startup may end") \
	X(CC_COUNT, drain_rounds, "drain_rounds", "", 1, 6, 3, "", \
	  "draft s5.3.2: 3", "round trips after which the drain always ends") \
	X(CC_PROB_PPM, loss_thresh_ppm, "loss_thresh", "", 0, 500000, 20000, "", "draft s2.8: 2 %", \
	  "fraction lost in a round above which losses are too many") \
	X(CC_PROB_PPM, beta_ppm, "beta", "", 10000, 1000000, 700000, "", "draft s2.8: 0.7", \
	  "smallest fraction of a bound that one round's losses leave") \
	X(CC_PROB_PPM, headroom_ppm, "headroom", "", 0, 900000, 150000, "", "draft s2.8: 0.15", \
	  "fraction of the long-term bound left to other flows") \
	X(CC_CHOICE, precaution, "precaution", "", 0, 1, 1, "off|on", "draft s5.3.3.6", \
	  "after a probe with too much loss, end the next one at the bound of that probe") \
	X(CC_PKTS, min_cwnd_pkts, "min_cwnd", "", 1, 1000, 4, "", "draft s2.8: 4", \
	  "smallest window") \
	X(CC_COUNT, quanta, "quanta", "", 0, 10, 3, "", "draft s5.5.8: 3", \
	  "smallest window in send quanta") \
	X(CC_TIME_US, min_rtt_window_us, "min_rtt_window", "", 100000, 600000000, 10000000, "", \
	  "draft s2.16.1: 10 s", "age at which the least RTT expires") \
	X(CC_TIME_US, probe_rtt_interval_us, "probe_rtt_interval", "", 100000, 600000000, 5000000, \
	  "", "draft s2.16.2: 5 s; reading BB-i", "time without a lower RTT before it is probed for") \
	X(CC_TIME_US, probe_rtt_time_us, "probe_rtt_time", "", 0, 10000000, 200000, "", \
	  "draft s2.16.2: 200 ms", "shortest duration of an RTT probe") \
	X(CC_NUMBER_PPM, probe_rtt_gain_ppm, "probe_rtt_gain", "", 10000, 2000000, 500000, "", \
	  "draft s2.16.2: 0.5", "window during an RTT probe, in units of the BDP") \
	X(CC_TIME_US, probe_wait_us, "probe_wait", "", 1000, 30000000, 2000000, "", \
	  "draft s5.3.3.8: 2 to 3 s", "shortest time between probes of the rate") \
	X(CC_TIME_US, probe_spread_us, "probe_spread", "", 0, 30000000, 1000000, "", \
	  "draft s5.3.3.8: 2 to 3 s", "largest random time added to it") \
	X(CC_COUNT, reno_rounds, "reno_rounds", "", 1, 100, 63, "", \
	  "draft s5.3.3.8: 63", "most round trips between probes of the rate")

#define BBR_RULES(R)

CC_PARAMS_STRUCT(bbr, BBR_PARAMS);

enum bbr_mode {
	BBR_STARTUP = 0,
	BBR_DRAIN = 1,
	BBR_DOWN = 2, /* from here to UP: ProbeBW */
	BBR_CRUISE = 3,
	BBR_REFILL = 4,
	BBR_UP = 5,
	BBR_PROBE_RTT = 6,
};

/* Subjects of the ACKs now arriving (section 2.14). */
enum bbr_acks {
	BBR_ACKS_INIT = 0,
	BBR_ACKS_REFILLING = 1,
	BBR_ACKS_STARTING = 2,
	BBR_ACKS_FEEDBACK = 3,
	BBR_ACKS_STOPPING = 4,
	BBR_ACKS_UNDONE = 5, /* as REFILLING, but its round begins with the next ACK */
};

/* The state that a loss ended, for undo. */
enum bbr_undo { BBR_UNDO_NONE = 0, BBR_UNDO_STARTUP = 1, BBR_UNDO_UP = 2 };

/* Rates are packets/s with 6 bits of fraction: up to 67 million packets/s. Stamps are the low 32
 * bits of the clock, which wrap after 71 minutes: an age is known modulo that. */
struct bbr_state {
	u32 bw_q6[2];	      /* max_bw's filter: of this probing cycle, of the one before */
	u32 bw_short_q6;      /* BBR_INFINITE: none */
	u32 bw_latest_q6;     /* largest of the loss round */
	u32 full_bw_q6;	      /* baseline of the search for a plateau */
	u32 undo_bw_short_q6; /* undo_*: before the latest recovery */
	u32 min_rtt_us : 24;  /* BBR_RTT_NONE: not known */
	u32 rounds_since_up : 7;
	u32 loss_unseen : 1;	   /* ssthresh() was called since the last ACK */
	u32 probe_rtt_us : 24;	   /* minimum RTT since the latest probe of it */
	u32 initial_cwnd_pkts : 8; /* at most 255 */
	u32 min_rtt_stamp_us;
	u32 probe_rtt_stamp_us;
	u32 stamp_us;		/* start of the probing cycle; in PROBE_RTT its end */
	u32 inflight_long_pkts; /* BBR_INFINITE: none */
	u32 inflight_short_pkts;
	u32 inflight_latest_pkts;
	u32 undo_inflight_long_pkts;
	u32 undo_inflight_short_pkts;
	u32 prior_cwnd_pkts; /* before recovery or PROBE_RTT */
	u32 round_end_pkts;  /* delivered_pkts */
	u32 loss_round_end_pkts;
	u32 probe_acked_pkts; /* in UP, towards the next increase of inflight_long */
	u16 lost_pkts;	      /* in the loss round, at most 65535 */
	u16 probe_wait_ms;
	u32 mode : 3;	      /* enum bbr_mode */
	u32 acks : 3;	      /* enum bbr_acks */
	u32 undo : 2;	      /* enum bbr_undo */
	u32 full_rounds : 3;  /* without growth */
	u32 full_reached : 1; /* the pipe was full once */
	u32 idle_restart : 1;
	u32 probe_sample : 1;  /* ACKs are of packets sent while probing */
	u32 too_high : 1;      /* the latest probe ended by loss */
	u32 precautionary : 1; /* the latest probe ended before there could be loss */
	u32 rtt_waiting : 1;   /* PROBE_RTT: stamp_us is set */
	u32 rtt_round : 1;     /* PROBE_RTT: a round has passed since */
	u32 low_samples : 1;   /* BB-f */
	u32 recovering : 1;    /* ssthresh() was called, and the stack was not open since */
	u32 drain_rounds : 3;
	u32 up_rounds : 5; /* round trips in UP, plus 1 */
	u32 loss_acks : 4; /* ACKs that told of losses, in the loss round */
};
_Static_assert(sizeof(struct bbr_state) == CC_STATE_MAX_BYTES, "no padding, all in the socket");

#define BBR_INVARIANTS(X) \
	X(bw_q6, st->bw_q6[0] < BBR_INFINITE && st->bw_q6[1] < BBR_INFINITE) \
	X(bw_latest_q6, st->bw_latest_q6 < BBR_INFINITE) \
	X(full_bw_q6, st->full_bw_q6 < BBR_INFINITE) \
	X(min_rtt_us, st->min_rtt_us != 0U) \
	X(probe_rtt_us, st->probe_rtt_us != 0U) \
	X(initial_cwnd_pkts, st->initial_cwnd_pkts != 0U) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, probe_wait_ms, 60000U) \
	CC_AT_MOST(X, mode, BBR_PROBE_RTT) \
	CC_AT_MOST(X, acks, BBR_ACKS_UNDONE) \
	CC_AT_MOST(X, undo, BBR_UNDO_UP) \
	CC_AT_MOST(X, full_rounds, p->full_rounds) \
	CC_AT_MOST(X, up_rounds, 30U) \
	X(full_reached, st->full_reached || st->mode == BBR_STARTUP || st->mode == BBR_PROBE_RTT)

#define BBR_INFINITE CC_U32_MAX
#define BBR_RTT_NONE CC_TIME_MAX_US
/* Largest finite bound, packets. */
#define BBR_MOST_PKTS (1U << 30)
/* Largest pacing rate before gains, bytes/s: 8.8 Tbit/s. */
#define BBR_MOST_BYTES_PER_S (1ULL << 40)

/* The report of one ACK. */
struct bbr_sample {
	u32 now_us;
	u32 delivered_pkts;
	u32 valid;	/* there is a delivery rate sample */
	u32 bw_q6;	/* its rate, or 0 */
	u32 limited;	/* by the application, or of PROBE_RTT */
	u32 tx_pkts;	/* BB-a */
	u32 lost_pkts;	/* newly */
	u32 lossy;	/* the round's losses are above the threshold; BB-b */
	u32 round;	/* a round began */
	u32 loss_round; /* a loss round began */
	u32 random;
};

/* part * value, 0 <= part <= 1. */
static u32 bbr_part(u32 value, u32 part_ppm)
{
	return (u32)((u64)value * part_ppm / CC_ONE_PPM);
}

static u32 bbr_max_bw_q6(const struct bbr_state *st)
{
	return cc_max_u32(st->bw_q6[0], st->bw_q6[1]);
}

static u32 bbr_bw_q6(const struct bbr_state *st)
{
	return cc_min_u32(bbr_max_bw_q6(st), st->bw_short_q6);
}

static int bbr_probes_bw(u32 mode)
{
	return mode == BBR_STARTUP || mode == BBR_REFILL || mode == BBR_UP;
}

static int bbr_in_probe_bw(u32 mode)
{
	return mode >= BBR_DOWN && mode <= BBR_UP;
}

/* gain * bw * min_rtt, rounded up, packets. 32 + 24 bits, less 20, plus 21. */
static u32 bbr_bdp_pkts(const struct bbr_state *st, u32 bw_q6, u32 gain_ppm)
{
	u64 bdp_q6 = (u64)bw_q6 * st->min_rtt_us / CC_ONE_PPM;

	if (st->min_rtt_us == BBR_RTT_NONE)
		return st->initial_cwnd_pkts;
	return (u32)cc_min_u64((bdp_q6 * gain_ppm / CC_ONE_PPM + 63ULL) >> 6, BBR_MOST_PKTS);
}

/* bw * gain in bytes/s; gains of at most 8, 2^23 ppm. */
static u64 bbr_bytes_per_s(const struct cc_conn *conn, u32 bw_q6, u32 gain_ppm)
{
	u64 bytes_per_s = ((u64)bw_q6 * cc_min_u32(conn->mss_bytes, 1U << 17)) >> 6;

	return cc_min_u64(bytes_per_s, BBR_MOST_BYTES_PER_S) * gain_ppm / CC_ONE_PPM;
}

/* Sections 5.6.4.2, 5.5.8: the smallest window, apart from the BDP. */
static u32 bbr_with_quanta(const struct cc_conn *conn, const struct bbr_state *st,
			   const struct bbr_params *p, u32 inflight_pkts)
{
	u64 quantum_bytes = cc_min_u64(conn->pacing_bytes_per_s / 1000ULL, 65536ULL);
	u32 quantum_pkts = cc_max_u32((u32)cc_div_u64(quantum_bytes, conn->mss_bytes, 0ULL), 2U);

	inflight_pkts = cc_max_u32(inflight_pkts, p->quanta * quantum_pkts);
	inflight_pkts = cc_max_u32(inflight_pkts, p->min_cwnd_pkts);
	return st->mode == BBR_UP ? inflight_pkts + 2U : inflight_pkts;
}

/* Section 5.3.3.8: the BDP, unless congestion cut the window. */
static u32 bbr_target_pkts(const struct cc_conn *conn, const struct bbr_state *st)
{
	return cc_min_u32(bbr_bdp_pkts(st, bbr_bw_q6(st), CC_ONE_PPM), conn->cwnd_pkts);
}

/* The long-term bound less what is left to others. */
static u32 bbr_with_headroom_pkts(const struct bbr_state *st, const struct bbr_params *p)
{
	u32 headroom_pkts = cc_max_u32(bbr_part(st->inflight_long_pkts, p->headroom_ppm), 1U);

	if (st->inflight_long_pkts == BBR_INFINITE)
		return BBR_INFINITE;
	return cc_max_u32(cc_sub_floor_u32(st->inflight_long_pkts, headroom_pkts),
			  p->min_cwnd_pkts);
}

static u32 bbr_probe_rtt_cwnd_pkts(const struct bbr_state *st, const struct bbr_params *p)
{
	return cc_max_u32(bbr_bdp_pkts(st, bbr_bw_q6(st), p->probe_rtt_gain_ppm), p->min_cwnd_pkts);
}

static void bbr_reset_full_bw(struct bbr_state *st, u32 baseline_q6)
{
	st->full_bw_q6 = baseline_q6;
	st->full_rounds = 0;
}

static void bbr_reset_signals(struct bbr_state *st)
{
	st->lost_pkts = 0;
	st->loss_acks = 0;
	st->bw_latest_q6 = 0U;
	st->inflight_latest_pkts = 0U;
}

static void bbr_reset_short_term(struct bbr_state *st)
{
	st->bw_short_q6 = BBR_INFINITE;
	st->inflight_short_pkts = BBR_INFINITE;
}

/* Section 5.6.2; 1 ms where no RTT is known. 47 bits, 40 with 20 more, 40 with 23 more. */
static u64 bbr_first_rate(const struct cc_conn *conn, const struct bbr_params *p)
{
	u64 window_bytes = (u64)conn->cwnd_pkts * cc_min_u32(conn->mss_bytes, 1U << 17);
	u64 rtt_us = conn->srtt_us != 0U ? conn->srtt_us : 1000U;
	u64 bytes_per_s =
	    cc_div_u64(cc_min_u64(window_bytes, BBR_MOST_BYTES_PER_S) * CC_ONE_PPM, rtt_us, 0ULL);

	return cc_min_u64(bytes_per_s, BBR_MOST_BYTES_PER_S) * p->startup_gain_ppm / CC_ONE_PPM;
}

static void bbr_init(struct cc_conn *conn, struct bbr_state *st, const struct bbr_params *p)
{
	u32 now_us = cc_low_u32(conn->now_us);

	st->min_rtt_us = BBR_RTT_NONE;
	if (conn->srtt_us != 0U)
		st->min_rtt_us = cc_min_u32(conn->srtt_us, BBR_RTT_NONE - 1U) & BBR_RTT_NONE;
	st->probe_rtt_us = st->min_rtt_us;
	st->min_rtt_stamp_us = now_us;
	st->probe_rtt_stamp_us = now_us;
	st->stamp_us = now_us;
	st->initial_cwnd_pkts = cc_min_u32(conn->cwnd_pkts, 255U) & 0xffU;
	st->prior_cwnd_pkts = conn->cwnd_pkts;
	st->inflight_long_pkts = BBR_INFINITE;
	st->undo_inflight_long_pkts = BBR_INFINITE;
	st->undo_inflight_short_pkts = BBR_INFINITE;
	st->undo_bw_short_q6 = BBR_INFINITE;
	bbr_reset_short_term(st);
	conn->pacing_bytes_per_s = bbr_first_rate(conn, p);
}

/* Section 5.3.3.8, PickProbeWait: one bit for the rounds, 24 for the time. */
static void bbr_pick_wait(struct bbr_state *st, const struct bbr_params *p, u32 random)
{
	u64 spread_us = ((u64)p->probe_spread_us * (random >> 8)) >> 24;

	st->rounds_since_up = random & 1U;
	st->probe_wait_ms = (u16)((p->probe_wait_us + (u32)spread_us) / 1000U);
}

static void bbr_start_down(struct bbr_state *st, const struct bbr_params *p,
			   const struct bbr_sample *s)
{
	bbr_reset_signals(st);
	bbr_pick_wait(st, p, s->random);
	st->stamp_us = s->now_us;
	st->acks = BBR_ACKS_STOPPING;
	st->round_end_pkts = s->delivered_pkts;
	st->mode = BBR_DOWN;
}

static void bbr_start_refill(struct bbr_state *st, u32 delivered_pkts)
{
	bbr_reset_short_term(st);
	st->up_rounds = 0;
	st->probe_acked_pkts = 0U;
	st->precautionary = 0;
	st->acks = BBR_ACKS_REFILLING;
	st->round_end_pkts = delivered_pkts;
	st->mode = BBR_REFILL;
}

static void bbr_raise_slope(struct bbr_state *st)
{
	if (st->up_rounds < 30U)
		st->up_rounds = (st->up_rounds + 1U) & 31U;
}

static void bbr_start_up(struct bbr_state *st, const struct bbr_sample *s)
{
	st->acks = BBR_ACKS_STARTING;
	st->round_end_pkts = s->delivered_pkts;
	bbr_reset_full_bw(st, s->bw_q6);
	st->mode = BBR_UP;
	bbr_raise_slope(st);
}

static void bbr_save_cwnd(const struct cc_conn *conn, struct bbr_state *st)
{
	if (st->recovering || st->mode == BBR_PROBE_RTT)
		st->prior_cwnd_pkts = cc_max_u32(st->prior_cwnd_pkts, conn->cwnd_pkts);
	else
		st->prior_cwnd_pkts = conn->cwnd_pkts;
}

static void bbr_restore_cwnd(struct cc_conn *conn, const struct bbr_state *st)
{
	u32 prior_pkts = cc_min_u32(st->prior_cwnd_pkts, conn->cwnd_max_pkts);

	conn->cwnd_pkts = cc_max_u32(conn->cwnd_pkts, prior_pkts);
}

/* Section 5.3.4.4. */
static void bbr_check_probe_rtt_done(struct cc_conn *conn, struct bbr_state *st,
				     const struct bbr_params *p, const struct bbr_sample *s)
{
	if (!st->rtt_waiting || !cc_after(s->now_us, st->stamp_us))
		return;
	st->probe_rtt_stamp_us = s->now_us;
	bbr_restore_cwnd(conn, st);
	bbr_reset_short_term(st);
	if (st->full_reached) {
		bbr_start_down(st, p, s);
		st->mode = BBR_CRUISE;
	} else {
		st->mode = BBR_STARTUP;
	}
}

/* InflightAtLoss: data in flight where the losses of this burst crossed the threshold. */
static u32 bbr_inflight_at_loss_pkts(const struct bbr_state *st, const struct bbr_params *p,
				     const struct bbr_sample *s)
{
	u32 burst_pkts = cc_min_u32(s->lost_pkts, s->tx_pkts);
	u32 before_pkts = cc_sub_floor_u32(s->tx_pkts, burst_pkts);
	u64 allowed_ppm = (u64)before_pkts * p->loss_thresh_ppm;
	u64 lost_ppm = (u64)cc_sub_floor_u32(st->lost_pkts, s->lost_pkts) * CC_ONE_PPM;
	u64 prefix_pkts = 0ULL;

	if (allowed_ppm > lost_ppm)
		prefix_pkts = cc_div_u64(cc_sub_floor_u64(allowed_ppm, lost_ppm),
					 CC_ONE_PPM - p->loss_thresh_ppm, 0ULL);
	return cc_add_sat_u32(before_pkts, (u32)cc_min_u64(prefix_pkts, burst_pkts));
}

/* Section 5.5.10.2: NoteLoss, HandleLostPacket, HandleInflightTooHigh. */
static void bbr_on_loss(const struct cc_conn *conn, struct bbr_state *st,
			const struct bbr_params *p, const struct bbr_sample *s)
{
	u32 safe_pkts;

	if (!st->probe_sample || !s->lossy)
		return;
	safe_pkts = bbr_inflight_at_loss_pkts(st, p, s);
	st->too_high = 1;
	st->probe_sample = 0;
	if (!s->limited) {
		u32 floor_pkts = bbr_part(bbr_target_pkts(conn, st), p->beta_ppm);

		st->inflight_long_pkts =
		    cc_min_u32(cc_max_u32(safe_pkts, floor_pkts), BBR_MOST_PKTS);
	}
	if (st->mode == BBR_UP) {
		st->undo = BBR_UNDO_UP;
		bbr_start_down(st, p, s);
	}
}

/* Converts the ACK to the algorithm's units, and counts its losses. */
static void bbr_read(const struct cc_conn *conn, struct bbr_state *st, const struct bbr_params *p,
		     const struct cc_ack *ack, struct bbr_sample *s)
{
	u64 rate_q6 =
	    cc_div_u64((u64)ack->sample_pkts * (CC_ONE_PPM * 64ULL), ack->sample_us, 0ULL);

	s->now_us = cc_low_u32(conn->now_us);
	s->delivered_pkts = cc_low_u32(ack->delivered_pkts);
	s->valid = ack->sample_us != 0U;
	s->bw_q6 = (u32)cc_min_u64(rate_q6, BBR_INFINITE - 1U);
	s->limited = ack->sample_app_limited != 0U || st->low_samples;
	s->lost_pkts = ack->lost_pkts;
	s->round = 0U;
	s->loss_round = 0U;
	s->random = ack->random;
	if (st->loss_unseen && s->lost_pkts == 0U && conn->phase != CC_CWR)
		s->lost_pkts = 1U;
	st->loss_unseen = 0;
	if (s->lost_pkts != 0U) {
		if (st->lost_pkts == 0)
			st->loss_round_end_pkts = s->delivered_pkts;
		st->lost_pkts =
		    (u16)cc_min_u32(cc_add_sat_u32(st->lost_pkts, s->lost_pkts), 0xffffU);
		if (st->loss_acks < 15U)
			st->loss_acks = (st->loss_acks + 1U) & 15U;
	}
	s->tx_pkts =
	    s->valid ? cc_add_sat_u32(ack->sample_pkts, st->lost_pkts) : ack->prior_inflight_pkts;
	s->lossy = (u64)st->lost_pkts * CC_ONE_PPM > (u64)s->tx_pkts * p->loss_thresh_ppm;
}

/* Sections 5.5.1, 5.5.5, 5.5.10.3: rounds, max_bw, the latest signals. */
static void bbr_learn(struct bbr_state *st, const struct cc_ack *ack, struct bbr_sample *s)
{
	st->bw_latest_q6 = cc_max_u32(st->bw_latest_q6, s->bw_q6);
	st->inflight_latest_pkts = cc_max_u32(st->inflight_latest_pkts, ack->sample_pkts);
	if (!cc_after(st->loss_round_end_pkts, ack->sample_prior_pkts)) {
		st->loss_round_end_pkts = s->delivered_pkts;
		s->loss_round = 1U;
	}
	if (!cc_after(st->round_end_pkts, ack->sample_prior_pkts)) {
		st->round_end_pkts = s->delivered_pkts;
		s->round = 1U;
		if (st->rounds_since_up < 127U)
			st->rounds_since_up = (st->rounds_since_up + 1U) & 127U;
		if (st->mode == BBR_DRAIN && st->drain_rounds < 7U)
			st->drain_rounds = (st->drain_rounds + 1U) & 7U;
	}
	if (s->bw_q6 >= bbr_max_bw_q6(st) || !s->limited)
		st->bw_q6[0] = cc_max_u32(st->bw_q6[0], s->bw_q6);
}

/* Section 5.5.10.3, at the end of a loss round. */
static void bbr_bound_short_term(const struct cc_conn *conn, struct bbr_state *st,
				 const struct bbr_params *p)
{
	if (st->lost_pkts == 0 || bbr_probes_bw(st->mode))
		return;
	if (st->bw_short_q6 == BBR_INFINITE)
		st->bw_short_q6 = bbr_max_bw_q6(st);
	if (st->inflight_short_pkts == BBR_INFINITE)
		st->inflight_short_pkts = conn->cwnd_pkts;
	st->bw_short_q6 = cc_max_u32(st->bw_latest_q6, bbr_part(st->bw_short_q6, p->beta_ppm));
	st->inflight_short_pkts =
	    cc_max_u32(st->inflight_latest_pkts, bbr_part(st->inflight_short_pkts, p->beta_ppm));
}

static int bbr_full_now(const struct bbr_state *st, const struct bbr_params *p)
{
	return st->full_rounds >= p->full_rounds;
}

/* Section 5.3.1.2. */
static void bbr_check_full_bw(struct bbr_state *st, const struct bbr_params *p,
			      const struct bbr_sample *s)
{
	if (bbr_full_now(st, p) || !s->round || s->limited)
		return;
	if ((u64)s->bw_q6 * CC_ONE_PPM >= (u64)st->full_bw_q6 * p->full_growth_ppm) {
		bbr_reset_full_bw(st, s->bw_q6);
		return;
	}
	st->full_rounds = (st->full_rounds + 1U) & 7U;
	if (bbr_full_now(st, p))
		st->full_reached = 1;
}

/* Sections 5.3.1.3, 5.3.2. */
static void bbr_check_startup_and_drain(const struct cc_conn *conn, struct bbr_state *st,
					const struct bbr_params *p, const struct bbr_sample *s)
{
	u32 bdp_pkts = bbr_bdp_pkts(st, bbr_bw_q6(st), CC_ONE_PPM);

	if (st->mode == BBR_STARTUP && s->loss_round && conn->phase == CC_RECOVERY &&
	    st->loss_acks >= p->startup_losses && s->lossy) {
		st->undo = BBR_UNDO_STARTUP;
		st->full_reached = 1;
		st->inflight_long_pkts = cc_max_u32(bdp_pkts, st->inflight_latest_pkts);
	}
	if (st->mode == BBR_STARTUP && st->full_reached) {
		st->mode = BBR_DRAIN;
		st->drain_rounds = 0;
	}
	if (st->mode == BBR_DRAIN &&
	    (conn->inflight_pkts <= bbr_with_quanta(conn, st, p, bdp_pkts) ||
	     st->drain_rounds > p->drain_rounds))
		bbr_start_down(st, p, s);
}

/* Section 5.3.3.9, ProbeInflightLongtermUpward: by 1, 2, 4... packets in successive rounds. */
static void bbr_raise_long_term(const struct cc_conn *conn, struct bbr_state *st,
				const struct cc_ack *ack, const struct bbr_sample *s)
{
	u32 per_packet = conn->cwnd_pkts >> cc_sub_floor_u32(st->up_rounds, 1U);
	u32 steps;

	if (!conn->cwnd_limited || conn->cwnd_pkts < st->inflight_long_pkts)
		return;
	per_packet = cc_max_u32(per_packet, 1U);
	st->probe_acked_pkts = cc_add_sat_u32(st->probe_acked_pkts, ack->acked_pkts);
	steps = st->probe_acked_pkts / per_packet;
	st->probe_acked_pkts %= per_packet;
	st->inflight_long_pkts =
	    cc_min_u32(cc_add_sat_u32(st->inflight_long_pkts, steps), BBR_MOST_PKTS);
	if (s->round)
		bbr_raise_slope(st);
}

/* Section 5.3.3.9, AdaptLongTermModel. Returns whether a probe begins at once. */
static int bbr_adapt_long_term(const struct cc_conn *conn, struct bbr_state *st,
			       const struct cc_ack *ack, const struct bbr_sample *s)
{
	if (st->acks == BBR_ACKS_STARTING && s->round)
		st->acks = BBR_ACKS_FEEDBACK;
	if (st->acks == BBR_ACKS_STOPPING && s->round) {
		st->probe_sample = 0;
		st->acks = BBR_ACKS_INIT;
		if (bbr_in_probe_bw(st->mode) && !s->limited) {
			st->bw_q6[1] = st->bw_q6[0];
			st->bw_q6[0] = 0U;
		}
		if (bbr_in_probe_bw(st->mode) && st->precautionary && !st->too_high) {
			bbr_start_refill(st, s->delivered_pkts);
			return 1;
		}
	}
	if (!s->valid || st->inflight_long_pkts == BBR_INFINITE || s->lossy)
		return 0;
	if (s->tx_pkts > st->inflight_long_pkts)
		st->inflight_long_pkts = cc_min_u32(s->tx_pkts, BBR_MOST_PKTS);
	if (st->mode == BBR_UP)
		bbr_raise_long_term(conn, st, ack, s);
	return 0;
}

static int bbr_time_to_probe(const struct cc_conn *conn, const struct bbr_state *st,
			     const struct bbr_params *p, const struct bbr_sample *s)
{
	if (cc_wrapping_sub_u32(s->now_us, st->stamp_us) > st->probe_wait_ms * 1000U)
		return 1;
	return st->rounds_since_up >= cc_min_u32(bbr_target_pkts(conn, st), p->reno_rounds);
}

static int bbr_time_to_cruise(const struct cc_conn *conn, const struct bbr_state *st,
			      const struct bbr_params *p)
{
	u32 bdp_pkts = bbr_bdp_pkts(st, bbr_max_bw_q6(st), CC_ONE_PPM);

	return conn->inflight_pkts <= bbr_with_headroom_pkts(st, p) &&
	       conn->inflight_pkts <= bbr_with_quanta(conn, st, p, bdp_pkts);
}

static int bbr_time_to_go_down(const struct cc_conn *conn, struct bbr_state *st,
			       const struct bbr_params *p, const struct bbr_sample *s)
{
	if (p->precaution && st->too_high && conn->inflight_pkts >= st->inflight_long_pkts) {
		st->precautionary = 1;
		return 1;
	}
	if (conn->cwnd_limited && conn->cwnd_pkts >= st->inflight_long_pkts) {
		bbr_reset_full_bw(st, s->bw_q6);
		return 0;
	}
	return bbr_full_now(st, p);
}

/* Section 5.3.3.9, UpdateProbeBWCyclePhase. */
static void bbr_advance_cycle(const struct cc_conn *conn, struct bbr_state *st,
			      const struct bbr_params *p, const struct cc_ack *ack,
			      const struct bbr_sample *s)
{
	if (!st->full_reached || bbr_adapt_long_term(conn, st, ack, s))
		return;
	if (st->mode == BBR_DOWN || st->mode == BBR_CRUISE) {
		if (bbr_time_to_probe(conn, st, p, s))
			bbr_start_refill(st, s->delivered_pkts);
		else if (st->mode == BBR_DOWN && bbr_time_to_cruise(conn, st, p))
			st->mode = BBR_CRUISE;
	} else if (st->mode == BBR_REFILL) {
		if (s->round) {
			st->probe_sample = 1;
			bbr_start_up(st, s);
		}
	} else if (st->mode == BBR_UP && bbr_time_to_go_down(conn, st, p, s)) {
		st->too_high = 0;
		bbr_start_down(st, p, s);
	}
}

/* Section 5.3.4.3, UpdateMinRTT. Returns whether it is time to probe for the RTT. */
static int bbr_update_min_rtt(struct cc_conn *conn, struct bbr_state *st,
			      const struct bbr_params *p, const struct cc_ack *ack,
			      const struct bbr_sample *s)
{
	int expired =
	    cc_wrapping_sub_u32(s->now_us, st->probe_rtt_stamp_us) > p->probe_rtt_interval_us;

	if (ack->rtt_us >= 0) {
		u32 rtt_us = cc_min_u32(cc_max_u32((u32)ack->rtt_us, 1U), BBR_RTT_NONE - 1U);

		if (st->min_rtt_us == BBR_RTT_NONE)
			conn->pacing_bytes_per_s = bbr_first_rate(conn, p);
		if (rtt_us < st->probe_rtt_us || expired) {
			st->probe_rtt_us = rtt_us & BBR_RTT_NONE;
			st->probe_rtt_stamp_us = s->now_us;
		}
	}
	if (st->probe_rtt_us < st->min_rtt_us ||
	    cc_wrapping_sub_u32(s->now_us, st->min_rtt_stamp_us) > p->min_rtt_window_us) {
		st->min_rtt_us = st->probe_rtt_us;
		st->min_rtt_stamp_us = st->probe_rtt_stamp_us;
	}
	return expired;
}

/* Section 5.3.4.3, CheckProbeRTT. */
static void bbr_check_probe_rtt(struct cc_conn *conn, struct bbr_state *st,
				const struct bbr_params *p, const struct bbr_sample *s, int expired)
{
	if (st->mode != BBR_PROBE_RTT && expired && !st->idle_restart) {
		bbr_save_cwnd(conn, st);
		st->mode = BBR_PROBE_RTT;
		st->rtt_waiting = 0;
		st->acks = BBR_ACKS_STOPPING;
		st->round_end_pkts = s->delivered_pkts;
	}
	if (st->mode == BBR_PROBE_RTT) {
		st->low_samples = 1;
		if (st->rtt_waiting) {
			st->rtt_round |= s->round & 1U;
			if (st->rtt_round)
				bbr_check_probe_rtt_done(conn, st, p, s);
		} else if (conn->inflight_pkts <= bbr_probe_rtt_cwnd_pkts(st, p)) {
			st->stamp_us = cc_low_u32((u64)s->now_us + p->probe_rtt_time_us);
			st->rtt_waiting = 1;
			st->rtt_round = 0;
			st->round_end_pkts = s->delivered_pkts;
		}
	} else if (s->round) {
		st->low_samples = 0;
	}
	if (s->valid)
		st->idle_restart = 0;
}

/* Section 5.6.1. */
static u32 bbr_pacing_gain_ppm(const struct bbr_state *st, const struct bbr_params *p)
{
	switch (st->mode) {
	case BBR_STARTUP:
		return p->startup_gain_ppm;
	case BBR_DRAIN:
		return p->drain_gain_ppm;
	case BBR_DOWN:
		return p->down_gain_ppm;
	case BBR_UP:
		return p->up_gain_ppm;
	default:
		return CC_ONE_PPM;
	}
}

/* Section 5.6.2. A margin of 20 bits on 43. */
static void bbr_set_pacing(struct cc_conn *conn, const struct bbr_state *st,
			   const struct bbr_params *p, u32 gain_ppm)
{
	u64 bytes_per_s = bbr_bytes_per_s(conn, bbr_bw_q6(st), gain_ppm) *
			  (CC_ONE_PPM - p->pacing_margin_ppm) / CC_ONE_PPM;

	if (bytes_per_s > conn->pacing_bytes_per_s || (st->full_reached && bytes_per_s != 0ULL))
		conn->pacing_bytes_per_s = bytes_per_s;
}

/* Section 5.6.4.8, BoundCwndForModel. */
static u32 bbr_bound_pkts(const struct bbr_state *st, const struct bbr_params *p)
{
	u32 cap_pkts = BBR_INFINITE;

	if (st->mode == BBR_CRUISE || st->mode == BBR_PROBE_RTT)
		cap_pkts = bbr_with_headroom_pkts(st, p);
	else if (bbr_in_probe_bw(st->mode))
		cap_pkts = st->inflight_long_pkts;
	cap_pkts = cc_max_u32(cc_min_u32(cap_pkts, st->inflight_short_pkts), p->min_cwnd_pkts);
	if (st->mode == BBR_PROBE_RTT)
		cap_pkts = cc_min_u32(cap_pkts, bbr_probe_rtt_cwnd_pkts(st, p));
	return cap_pkts;
}

/* Section 5.6.4. */
static void bbr_set_cwnd(struct cc_conn *conn, const struct bbr_state *st,
			 const struct bbr_params *p, const struct cc_ack *ack)
{
	u32 gain_ppm = p->cwnd_gain_ppm;
	u32 grown_pkts = cc_add_sat_u32(conn->cwnd_pkts, ack->acked_pkts);
	u32 cwnd_pkts = conn->cwnd_pkts;
	u32 most_pkts;

	if (st->mode == BBR_UP)
		gain_ppm = p->up_cwnd_gain_ppm;
	else if (st->mode == BBR_PROBE_RTT)
		gain_ppm = p->probe_rtt_gain_ppm;
	most_pkts = bbr_with_quanta(conn, st, p, bbr_bdp_pkts(st, bbr_bw_q6(st), gain_ppm));
	if (st->full_reached)
		cwnd_pkts = cc_min_u32(grown_pkts, most_pkts);
	else if (cwnd_pkts < most_pkts || ack->delivered_pkts < st->initial_cwnd_pkts)
		cwnd_pkts = grown_pkts;
	cwnd_pkts = cc_max_u32(cwnd_pkts, p->min_cwnd_pkts);
	cwnd_pkts = cc_min_u32(cwnd_pkts, bbr_bound_pkts(st, p));
	conn->cwnd_pkts = cc_max_u32(cc_min_u32(cwnd_pkts, conn->cwnd_max_pkts), 1U);
	/* Out of slow start, in which a host considers a half-used window limiting. */
	if (st->full_reached)
		conn->ssthresh_pkts = cc_max_u32(conn->cwnd_pkts, CC_CWND_FLOOR_PKTS);
}

static void bbr_on_ack(struct cc_conn *conn, struct bbr_state *st, const struct bbr_params *p,
		       const struct cc_ack *ack)
{
	struct bbr_sample s;
	int expired;

	bbr_read(conn, st, p, ack, &s);
	if (st->recovering && (conn->phase == CC_OPEN || conn->phase == CC_DISORDER)) {
		st->recovering = 0;
		bbr_restore_cwnd(conn, st);
	}
	if (st->acks == BBR_ACKS_UNDONE) {
		st->acks = BBR_ACKS_REFILLING;
		st->round_end_pkts = s.delivered_pkts;
	}
	if (s.lost_pkts != 0U)
		bbr_on_loss(conn, st, p, &s);
	if (s.valid)
		bbr_learn(st, ack, &s);
	if (s.round)
		conn->notes |= CC_NOTE_ROUND;
	if (s.loss_round)
		bbr_bound_short_term(conn, st, p);
	bbr_check_full_bw(st, p, &s);
	bbr_check_startup_and_drain(conn, st, p, &s);
	bbr_advance_cycle(conn, st, p, ack, &s);
	expired = bbr_update_min_rtt(conn, st, p, ack, &s);
	bbr_check_probe_rtt(conn, st, p, &s, expired);
	if (s.loss_round) {
		st->lost_pkts = 0;
		st->loss_acks = 0;
		st->bw_latest_q6 = s.bw_q6;
		st->inflight_latest_pkts = ack->sample_pkts;
	}
	bbr_set_pacing(conn, st, p, bbr_pacing_gain_ppm(st, p));
	bbr_set_cwnd(conn, st, p, ack);
}

/* Sections 5.5.11.1, 5.6.4.4: the model, not the stack, reduces the window. */
static u32 bbr_ssthresh(struct cc_conn *conn, struct bbr_state *st, const struct bbr_params *p)
{
	(void)p;
	bbr_save_cwnd(conn, st);
	st->undo = BBR_UNDO_NONE;
	st->undo_bw_short_q6 = st->bw_short_q6;
	st->undo_inflight_short_pkts = st->inflight_short_pkts;
	st->undo_inflight_long_pkts = st->inflight_long_pkts;
	st->recovering = 1;
	st->loss_unseen = 1;
	conn->notes |= CC_NOTE_LOSS_TOLERATED;
	return cc_max_u32(conn->cwnd_pkts, CC_CWND_FLOOR_PKTS);
}

/* Section 5.4.1. Everything was acknowledged and nothing sent, so the application limited sending.
 * Without an ACK the delivered packets are not known; since the next ACK is for a packet sent now,
 * a round ends with it anyway. */
static void bbr_on_event(struct cc_conn *conn, struct bbr_state *st, const struct bbr_params *p,
			 u32 event)
{
	struct bbr_sample s = {.now_us = cc_low_u32(conn->now_us),
			       .delivered_pkts = st->round_end_pkts,
			       .random = 1U << 31};

	if (event != CC_EVENT_TX_START)
		return;
	st->idle_restart = 1;
	if (bbr_in_probe_bw(st->mode))
		bbr_set_pacing(conn, st, p, CC_ONE_PPM);
	else if (st->mode == BBR_PROBE_RTT)
		bbr_check_probe_rtt_done(conn, st, p, &s);
}

/* Section 5.5.11.2. */
static u32 bbr_undo(struct cc_conn *conn, struct bbr_state *st, const struct bbr_params *p)
{
	(void)p;
	st->lost_pkts = 0;
	st->loss_acks = 0;
	st->loss_unseen = 0;
	bbr_reset_full_bw(st, 0U);
	st->bw_short_q6 = cc_max_u32(st->bw_short_q6, st->undo_bw_short_q6);
	st->inflight_short_pkts = cc_max_u32(st->inflight_short_pkts, st->undo_inflight_short_pkts);
	st->inflight_long_pkts = cc_max_u32(st->inflight_long_pkts, st->undo_inflight_long_pkts);
	if (st->undo == BBR_UNDO_STARTUP && st->mode != BBR_STARTUP) {
		st->full_reached = 0;
		if (st->mode != BBR_PROBE_RTT)
			st->mode = BBR_STARTUP;
	} else if (st->undo == BBR_UNDO_UP && st->mode != BBR_UP && st->mode != BBR_PROBE_RTT) {
		bbr_start_refill(st, st->round_end_pkts);
		st->acks = BBR_ACKS_UNDONE;
	}
	st->undo = BBR_UNDO_NONE;
	return cc_max_u32(conn->cwnd_pkts, cc_min_u32(st->prior_cwnd_pkts, conn->cwnd_max_pkts));
}

static void bbr_observe(const struct bbr_state *st, const struct bbr_params *p,
			u32 out[CC_OBSERVE_N])
{
	(void)p;
	out[0] = bbr_bw_q6(st) >> 6;
	out[1] = st->min_rtt_us == BBR_RTT_NONE ? 0U : st->min_rtt_us;
	out[2] = st->inflight_long_pkts == BBR_INFINITE ? 0U : st->inflight_long_pkts;
	out[3] = st->mode;
}

KNEE_RATE_ALGORITHM(
    bbr, BBR_PARAMS, BBR_RULES, BBR_INVARIANTS, CC_USES_RANDOM,
    "paces at the largest delivery rate, keeps a small multiple of the BDP in flight",
    "draft-ietf-ccwg-bbr-06", "bw_pps|min_rtt_us|inflight_longterm_pkts|state");
