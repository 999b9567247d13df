// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Ebb: drains the queue at a delay on which all flows agree, and asks whether the others yield.
 *
 * An algorithm of this project. docs/reference/algorithms/ebb.md has its equations, whose names are
 * used here; docs/evidence/ebb/ has the derivation and its limits.
 *
 * Low delay. The window grows by alpha packets per round trip,
 *
 *   alpha = gain sqrt(RTT max(W, slow RTT)),                                                   (1)
 *
 * until the queueing delay q reaches theta; then a drain leaves what the path holds without a
 * queue, and a little less, so that the base RTT shows:
 *
 *   W <- drain (RTTmin/RTT) W',                                                                (2)
 *
 * where W' is the window that q is of: that of a round trip ago. RTT that jitter adds without a
 * queue counts as part of RTTmin, not of q.
 *
 * Every drain is a test. If all flows drained, q falls by as much as the window says, and the
 * delivery rate stays. If it does not, others hold the queue: slow start leads back to W, and the
 * next test comes at the next theta 2^level above q. Levels are absolute and follow a falling q, so
 * flows of this algorithm test together. Above level 0, and for `memory` after the last sign of
 * competition, the window grows and reacts to loss as NewReno's.
 *
 * A loss is congestive if q was near the largest q seen lately (a full queue) and more is lost than
 * while the queue is short; if the loss rate is above `loss_limit`; or if it is a mark. Any other
 * loss leaves the window as it is.
 */
#include "knee/host.h"
#include "knee/buckets.h"
#include "knee/growth.h"
#include "knee/reno.h"
#include "knee/root.h"

#define EBB_PARAMS(X) \
	X(CC_TIME_US, theta_us, "theta", "", 100, 1000000, 10000, "", "design: goal of 10 ms", \
	  "queueing delay at which the queue is drained") \
	X(CC_NUMBER_PPM, packet_ppm, "packet", "", 0, 16000000, 1250000, "", "design", \
	  "theta is at least the time of this many packets at the flow's own rate") \
	X(CC_TIME_US, base_window_us, "base_window", "", 100000, 600000000, 10000000, "", \
	  "design: recovery from a longer route in 10 s", "time over which the base RTT is taken") \
	X(CC_PROB_PPM, drain_ppm, "drain", "", 100000, 1000000, 970000, "", "design", \
	  "a drain leaves this fraction of the window that would empty the queue") \
	X(CC_PROB_PPM, probe_ppm, "probe", "", 10000, 900000, 200000, "", "design", \
	  "largest fraction of the window that a test above level 0 takes") \
	X(CC_PROB_PPM, yield_ppm, "yield", "", 0, 1000000, 600000, "", "design", \
	  "fraction of the expected fall of q from which on the others have yielded") \
	X(CC_NUMBER_PPM, gain_ppm, "gain", "", 1000, 1000000000, 625000, "", \
	  "design: one packet per RTT at 20 Mbit/s and 40 ms", \
	  "growth in low delay, packets per round trip over sqrt(W RTT), RTT in seconds") \
	X(CC_COUNT, slow_pps, "slow", "", 0, 100000, 400, "", \
	  "design: 5 Mbit/s with packets of 1500 bytes", \
	  "packets per second below which growth in low delay depends on the RTT alone") \
	X(CC_NUMBER_PPM, alpha_ppm, "alpha", "", 10000, 16000000, 1250000, "", \
	  "RFC 5681 s3.1: 1; a quarter for the cost of tests", \
	  "growth next to competitors, packets per round trip") \
	X(CC_TIME_US, rtt_ref_us, "rtt_ref", "", 1000, 10000000, 120000, "", "design", \
	  "RTT above which growth next to competitors is per time, not per round trip") \
	X(CC_PROB_PPM, beta_ppm, "beta", "", 100000, 950000, 500000, "", "RFC 5681 s3.1: 0.5", \
	  "fraction of the window that a congestive loss leaves, next to competitors") \
	X(CC_PROB_PPM, mark_ppm, "mark", "", 100000, 950000, 850000, "", "RFC 8511 s3.1: 0.85", \
	  "largest fraction of the window that a congestion mark leaves") \
	X(CC_PROB_PPM, full_ppm, "full", "", 0, 1000000, 750000, "", "design", \
	  "a loss at this fraction of the largest q or above is congestive") \
	X(CC_PROB_PPM, loss_limit_ppm, "loss_limit", "", 1000, 1000000, 100000, "", "design", \
	  "fraction lost above which every loss is congestive") \
	X(CC_PROB_PPM, usual_ppm, "usual", "", 0, 1000000, 40000, "", "design", \
	  "largest fraction lost that is tolerated at a full queue, if as much is lost at a short one; " \
	  "2.5 times this without a sign of competition, from 16 packets on") \
	X(CC_TIME_US, memory_us, "memory", "", 0, 600000000, 10000000, "", "design", \
	  "time for which a sign of competition keeps growth as NewReno's") \
	X(CC_COUNT, patience, "patience", "", 1, 200, 8, "", "design", \
	  "round trips with an empty queue, beyond those of an epoch's growth, after which growth " \
	  "doubles with each") \
	X(CC_NUMBER_PPM, jitter_ppm, "jitter", "", 0, 4000000, 1250000, "", "design", \
	  "RTTs exceed RTTmin by this many times the range of a round's RTTs, without a queue") \
	X(CC_NUMBER_PPM, pacing_ppm, "pacing", "", 1000000, 2000000, 1250000, "", "design", \
	  "pacing rate, windows per RTTmin: 1 in a test, twice this in slow start, four times next to competitors")

#define EBB_RULES(R)

CC_PARAMS_STRUCT(ebb, EBB_PARAMS);

struct ebb_state {
	struct cc_buckets base_us; /* RTTmin */
	u32 round_end_pkts;	   /* delivered_pkts */
	u32 alpha_q16;		   /* packets per round trip, in the running round */
	u32 prior_cwnd_pkts;	   /* before the latest loss, for undo */
	u32 q_us;		   /* q of the latest lane */
	u32 lane_us;		   /* minimum RTT of the running lane, less RTTmin; EBB_NONE */
	u32 round_us;		   /* the same of the running round; EBB_NONE */
	u32 high_us;		   /* largest q of the running round */
	u32 last_high_us;	   /* and of the one before */
	u32 q_max_us;		   /* largest q, decaying */
	u32 test_cwnd_pkts;	   /* before the latest drain; a failed test restores it */
	u32 test_q_us;		   /* q at that time */
	u32 test_rate_q24;	   /* delivery rate of W' at that time, packets/us; 0: not known */
	u32 latest_us;		   /* low bits of the time of the latest ACK */
	u16 rival_16ms;		   /* and of the latest sign of competition, in 2^14 us */
	u16 most_64us;		   /* largest RTT of the running round, less RTTmin, in 64 us */
	u16 loss_q15;		   /* fraction lost, smoothed */
	u16 usual_q18;		   /* fraction lost while the queue is short, smoothed */
	u16 credit_q16;		   /* fraction of a packet towards the next +1 */
	u8 jitter;		   /* range of a round's RTTs, in theta/16, smoothed */
	u8 lane_samples : 4;
	u8 level : 4;
	u8 test : 3;	  /* rounds until the test ends; 0: none */
	u8 hold : 3;	  /* rounds until the window may change again */
	u8 stale : 2;	  /* rounds whose samples may be from before a timeout */
	u8 empty;	  /* rounds with an empty queue, in a row */
	u8 fast : 1;	  /* eq. 4 grows */
	u8 own : 2;	  /* rounds in which this flow itself may have moved q */
	u8 rival : 1;	  /* rival_16ms is set */
	u8 loss_seen : 1; /* ssthresh() was called since the last ACK */
	u8 failed : 1;	  /* hold follows a failed test or fast growth: losses count */
	u8 resumed : 2;	  /* rounds since sending resumed after a pause, from 2 down */
	u8 lost_pkts;	  /* in the running round */
};
_Static_assert(sizeof(struct ebb_state) == CC_STATE_MAX_BYTES, "fits the socket");

#define EBB_INVARIANTS(X) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, q_us, CC_TIME_MAX_US) \
	CC_AT_MOST(X, lane_us, CC_TIME_MAX_US) \
	CC_AT_MOST(X, round_us, CC_TIME_MAX_US) \
	CC_AT_MOST(X, high_us, CC_TIME_MAX_US) \
	CC_AT_MOST(X, last_high_us, CC_TIME_MAX_US) \
	CC_AT_MOST(X, q_max_us, CC_TIME_MAX_US) \
	CC_AT_MOST(X, test_cwnd_pkts, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, test_q_us, CC_TIME_MAX_US) \
	CC_AT_MOST(X, loss_q15, 1U << 15) \
	CC_AT_MOST(X, lane_samples, EBB_LANE_SAMPLES - 1U) \
	CC_AT_MOST(X, level, EBB_LEVEL_MAX) \
	CC_AT_MOST(X, test, EBB_TEST_ROUNDS) \
	CC_AT_MOST(X, hold, EBB_TEST_ROUNDS) \
	CC_AT_MOST(X, stale, 2U) \
	CC_AT_MOST(X, own, EBB_OWN_ROUNDS) \
	CC_AT_MOST(X, resumed, 2U)

#define EBB_NONE CC_TIME_MAX_US
/* Samples of a lane. The least of 8 samples with a uniform jitter J exceeds J/2 once in 256. */
#define EBB_LANE_SAMPLES 8U
#define EBB_LEVEL_MAX 10U
/* Rounds of a test: the first ends with packets sent before the drain, in the second the sender
 * waits, the third fills the rate sample, the fourth judges. */
#define EBB_TEST_ROUNDS 4U
/* Rounds after fast growth until a drain. */
#define EBB_SETTLE_ROUNDS 2U
/* Rounds after another reduction before the next. */
#define EBB_HOLD_ROUNDS 2U
/* Rounds after a hold in which q may still fall because of the event that began it. */
#define EBB_OWN_ROUNDS 2U
/* From this window on, a packet more or less does not hide a change of the delivery rate. */
#define EBB_RATE_PKTS 8U
/* Below this one, two packets are let pass, not one: a drained window is a whole number. */
#define EBB_RATE_FEW_PKTS 16U
/* A flow among many has fewer packets than this. With as many, and no sign of others, more losses
 * may be usual. */
#define EBB_ALONE_PKTS 16U
/* Most rounds with an empty queue before growth doubles; `empty` counts to 255. */
#define EBB_PATIENCE_MAX 200U
#define EBB_ONE_Q16 (1U << 16)
/* Packets that may queue together without jitter: the range of RTTs that they make is none. */
#define EBB_TOGETHER_PKTS 2U
/* The smoothed range goes down by a quarter of the way, and up by a 32nd: a queue that others move
 * makes the range of single rounds larger, and is no jitter. */
#define EBB_CALMER_ROUNDS 4U
#define EBB_WILDER_ROUNDS 32U
/* Rounds with a short queue over which their losses are smoothed. */
#define EBB_USUAL_ROUNDS 32U
/* Losses at a full queue come on top of the usual ones. The loss rate has a memory of 128 packets:
 * of as many, 1 % of loss takes eight or more, six times its mean, once in 17 000 times. */
#define EBB_USUAL_TIMES 6U
/* A packet of that memory and a little: one loss is never more than usual. */
#define EBB_ONE_LOSS_Q15 260U
/* Less than one loss in 4096 packets is none. */
#define EBB_USUAL_MIN_Q15 8U
/* A pause of more round trips than this restarts the window, from this (RFC 6928). */
#define EBB_IDLE_RTTS 8U
#define EBB_RESTART_PKTS 10U

static void ebb_init(struct cc_conn *conn, struct ebb_state *st, const struct ebb_params *p)
{
	(void)p;
	st->lane_us = EBB_NONE;
	st->round_us = EBB_NONE;
	st->prior_cwnd_pkts = conn->cwnd_pkts;
}

/* part * value, part <= 1. */
static u32 ebb_part(u32 value, u32 part_ppm)
{
	return (u32)((u64)value * cc_min_u32(part_ppm, CC_ONE_PPM) / CC_ONE_PPM);
}

static u32 ebb_q16(u32 ppm)
{
	return (u32)(((u64)ppm << 16) / CC_ONE_PPM);
}

static u32 ebb_base_us(const struct ebb_state *st)
{
	return cc_buckets_least(&st->base_us);
}

static u32 ebb_level_us(const struct ebb_params *p, u32 level)
{
	return cc_min_u32(p->theta_us, CC_ONE_PPM) << cc_min_u32(level, EBB_LEVEL_MAX);
}

/* Unit of `jitter`. */
static u32 ebb_unit_us(const struct ebb_params *p)
{
	return cc_max_u32(cc_min_u32(p->theta_us, CC_ONE_PPM) / 16U, 1U);
}

/* The amount by which the minimum RTT of a lane exceeds RTTmin, though there is no queue. */
static u32 ebb_jitter_us(const struct ebb_state *st, const struct ebb_params *p)
{
	u64 range_us = (u64)st->jitter * ebb_unit_us(p);

	return (u32)cc_min_u64(range_us * cc_min_u32(p->jitter_ppm, 4U * CC_ONE_PPM) / CC_ONE_PPM,
			       CC_TIME_MAX_US);
}

/* The RTT without a queue. */
static u32 ebb_path_us(const struct ebb_state *st, const struct ebb_params *p)
{
	return ebb_base_us(st) + ebb_jitter_us(st, p);
}

/* The q of the next test. At level 0 a slow flow cannot hold less than some of its packets. */
static u32 ebb_theta_us(const struct cc_conn *conn, const struct ebb_state *st,
			const struct ebb_params *p)
{
	u64 packet_us = cc_div_u32(ebb_base_us(st), conn->cwnd_pkts, 0U);
	u32 level_us = ebb_level_us(p, st->level);

	if (st->level != 0)
		return level_us;
	return cc_max_u32(level_us, (u32)(packet_us * p->packet_ppm / CC_ONE_PPM));
}

static void ebb_sees_rival(const struct cc_conn *conn, struct ebb_state *st)
{
	st->rival = 1;
	st->rival_16ms = (u16)((conn->now_us >> 14) & 0xffffULL);
}

/* True if others hold the queue, or did lately. */
static int ebb_competes(const struct cc_conn *conn, const struct ebb_state *st,
			const struct ebb_params *p)
{
	u32 now_16ms = (u32)((conn->now_us >> 14) & 0xffffULL);
	u32 age_us = (cc_wrapping_sub_u32(now_16ms, st->rival_16ms) & 0xffffU) << 14;

	return st->level != 0 || (st->rival && age_us < p->memory_us);
}

static void ebb_end_lane(struct ebb_state *st, const struct ebb_params *p)
{
	if (st->lane_us == EBB_NONE)
		return;
	st->q_us = cc_sub_floor_u32(st->lane_us, ebb_jitter_us(st, p));
	st->high_us = cc_max_u32(st->high_us, st->q_us);
	st->q_max_us = cc_max_u32(st->q_max_us, st->q_us);
	st->lane_us = EBB_NONE;
	st->lane_samples = 0;
}

static void ebb_sample(const struct cc_conn *conn, struct ebb_state *st, const struct ebb_params *p,
		       const struct cc_ack *ack)
{
	u32 rtt_us, over_us;

	if (ack->rtt_us < 0)
		return;
	rtt_us = cc_min_u32(cc_max_u32((u32)ack->rtt_us, 1U), CC_TIME_MAX_US - 1U);
	cc_buckets_push(&st->base_us, conn->now_us, p->base_window_us, rtt_us);
	if (st->stale != 0)
		return;
	over_us = cc_sub_floor_u32(rtt_us, ebb_base_us(st));
	st->lane_us = cc_min_u32(st->lane_us, over_us);
	st->round_us = cc_min_u32(st->round_us, over_us);
	st->most_64us = (u16)cc_max_u32(st->most_64us, cc_min_u32(over_us / 64U, 0xffffU));
	st->lane_samples = cc_min_u32(st->lane_samples + 1U, EBB_LANE_SAMPLES) & 15U;
	if (st->lane_samples == EBB_LANE_SAMPLES)
		ebb_end_lane(st, p);
}

/* Fraction lost, with a memory of 128 packets. */
static void ebb_count_losses(struct ebb_state *st, const struct cc_ack *ack)
{
	u32 lost_pkts = cc_min_u32(ack->lost_pkts, 1U << 15);
	u32 told_pkts = cc_min_u32(ack->acked_pkts, 1U << 15) + lost_pkts;
	u32 fraction_q15 = cc_min_u32(cc_div_u32(lost_pkts << 15, told_pkts, 0U), 1U << 15);
	u32 weight = cc_min_u32(told_pkts, 64U);
	u32 loss_q15 = (st->loss_q15 * (128U - weight) + fraction_q15 * weight) / 128U;

	st->loss_q15 = (u16)cc_min_u32(loss_q15, 1U << 15);
	st->lost_pkts = (u8)cc_min_u32(st->lost_pkts + lost_pkts, 255U);
}

/* Less than this is the noise of an empty queue. */
static u32 ebb_noise_us(const struct ebb_state *st)
{
	return cc_min_u32(ebb_base_us(st) / 32U, 1500U);
}

/* At the end of a round: losses while the queue is short are not due to the queue. */
static void ebb_count_usual(const struct cc_conn *conn, struct ebb_state *st)
{
	u32 q_us = cc_max_u32(st->high_us, st->last_high_us);
	u32 lost_q18 = cc_div_u32((u32)st->lost_pkts << 18, conn->cwnd_pkts, 0U);
	u32 usual_q18 = cc_sub_floor_u32(st->usual_q18, st->usual_q18 / EBB_USUAL_ROUNDS) +
			cc_min_u32(lost_q18, 0xffffU) / EBB_USUAL_ROUNDS;

	if (q_us < cc_max_u32(st->q_max_us / 4U, ebb_noise_us(st)))
		st->usual_q18 = (u16)cc_min_u32(usual_q18, 0xffffU);
	st->lost_pkts = 0;
}

/* True if no more is lost than while the queue is short. Against competitors less may be. */
static int ebb_loses_as_usual(const struct cc_conn *conn, const struct ebb_state *st,
			      const struct ebb_params *p, int competes)
{
	u32 usual_q15 = st->usual_q18 / 8U;
	u32 most_q15 = (u32)(((u64)p->usual_ppm << 15) / CC_ONE_PPM);

	if (conn->cwnd_pkts >= EBB_ALONE_PKTS && !competes)
		most_q15 = most_q15 * 5U / 2U;
	most_q15 = cc_min_u32(most_q15, cc_max_u32(EBB_USUAL_TIMES * usual_q15, EBB_ONE_LOSS_Q15));
	return usual_q15 >= EBB_USUAL_MIN_Q15 && st->loss_q15 <= most_q15;
}

/* RTT0/RTT at this q: the fraction of the window that leaves no queue. */
static u32 ebb_drained_q16(const struct ebb_state *st, const struct ebb_params *p, u32 q_us)
{
	u64 path_us = ebb_path_us(st, p);

	return (u32)cc_min_u64(cc_div_u64(path_us << 16, path_us + q_us, EBB_ONE_Q16), EBB_ONE_Q16);
}

/* The window with the fraction of a packet that growth has collected. */
static u64 ebb_window_q16(const struct cc_conn *conn)
{
	u64 fraction_q16 = cc_div_u64((u64)conn->cwnd_cnt << 16, conn->cwnd_pkts, 0ULL);

	return ((u64)conn->cwnd_pkts << 16) + cc_min_u64(fraction_q16, 0xffffULL);
}

/* Slow start ends, or does not resume. Without the fraction, windows of a few packets would lose a
 * quarter to rounding at each drain. */
static void ebb_set_window(struct cc_conn *conn, struct ebb_state *st, u64 window_q16)
{
	u32 pkts;

	window_q16 = cc_max_u64(window_q16, (u64)CC_CWND_FLOOR_PKTS << 16);
	window_q16 = cc_min_u64(window_q16, (u64)conn->cwnd_max_pkts << 16);
	pkts = (u32)(window_q16 >> 16);
	conn->cwnd_pkts = pkts;
	conn->ssthresh_pkts = cc_max_u32(pkts, CC_CWND_FLOOR_PKTS);
	conn->cwnd_cnt = (u32)(((window_q16 & 0xffffULL) * pkts) >> 16);
	st->credit_q16 = 0U;
}

/* Round trips with an empty queue before growth doubles: `patience`, and at least half as many
 * again as growth needs from the window after the latest drain to a queue of theta/4. So equal
 * flows that drain together never grow faster. */
static u32 ebb_patience(const struct ebb_state *st, const struct ebb_params *p)
{
	u64 base_us = cc_max_u32(ebb_base_us(st), 1U);
	u64 window_pkts = cc_min_u32(st->test_cwnd_pkts, 1U << 24);
	/* sqrt(W/RTT) 2^4, RTT in seconds. */
	u64 root_q4 = cc_sqrt_u64((window_pkts * CC_ONE_PPM << 8) / base_us);
	u64 missing_ppm = cc_sub_floor_u32(CC_ONE_PPM, p->drain_ppm) +
			  cc_min_u32(p->theta_us, CC_ONE_PPM) * (CC_ONE_PPM / 4ULL) / base_us;
	u64 rounds = cc_div_u64(cc_min_u64(missing_ppm, 1ULL << 24) * root_q4 * 3ULL / 2ULL,
				16ULL * p->gain_ppm, 0ULL);

	return (u32)cc_min_u64(p->patience + rounds, EBB_PATIENCE_MAX);
}

/* eq. 1; eq. 4 where the queue is empty; eq. 5 against competitors. */
static void ebb_set_alpha(const struct cc_conn *conn, struct ebb_state *st,
			  const struct ebb_params *p)
{
	u64 window_pkts = cc_min_u32(conn->cwnd_pkts, 1U << 24);
	u64 rtt_us = cc_min_u32(ebb_path_us(st, p) + st->q_us, CC_TIME_MAX_US);
	u64 slow_pkts = cc_min_u32(p->slow_pps, 100000U) * rtt_us / CC_ONE_PPM;
	u64 root_pkts = cc_min_u64(cc_max_u64(window_pkts, slow_pkts), 1ULL << 24);
	/* sqrt(W RTT/us) 2^8, which is 1000 times that in seconds. */
	u64 root_q8 = 2ULL * cc_sqrt_u64((root_pkts * rtt_us) << 14);
	u64 alpha_q16 = cc_min_u64(ebb_q16(p->gain_ppm) * root_q8 / 256000ULL, CC_ALPHA_MAX_Q16);
	u64 reno_q16 = ebb_q16(p->alpha_ppm) * cc_max_u64(rtt_us, p->rtt_ref_us) /
		       cc_max_u32(p->rtt_ref_us, 1U);
	u32 doublings = cc_min_u32(cc_sub_floor_u32(st->empty, ebb_patience(st, p)), 20U);

	if (st->level != 0)
		alpha_q16 = reno_q16;
	else if (ebb_competes(conn, st, p))
		alpha_q16 = cc_min_u64(reno_q16, cc_max_u64(alpha_q16, reno_q16 / 2ULL));
	else if (doublings != 0U)
		alpha_q16 =
		    cc_max_u64(alpha_q16, cc_min_u64(alpha_q16 << doublings, window_pkts << 13));
	st->fast = doublings != 0U;
	st->alpha_q16 = (u32)cc_min_u64(alpha_q16, CC_U32_MAX);
}

/* The level follows a falling queue, for all flows alike: they test together when it rises again.
 */
static void ebb_follow(struct ebb_state *st, const struct ebb_params *p)
{
	for (u32 i = 0U; i < EBB_LEVEL_MAX; i++)
		if (st->level != 0 && st->q_us < ebb_level_us(p, st->level - 1U) / 10U * 9U)
			st->level = (st->level - 1U) & 15U;
}

/* Others hold the queue. */
static void ebb_fail(struct cc_conn *conn, struct ebb_state *st, const struct ebb_params *p)
{
	u32 q_us = cc_max_u32(st->test_q_us, st->q_us);
	/* The growth that would have followed since. */
	u32 added_pkts = (u32)(((u64)st->alpha_q16 * EBB_TEST_ROUNDS + (EBB_ONE_Q16 / 2U)) >> 16);
	u32 restored_pkts =
	    cc_min_u32(cc_add_sat_u32(st->test_cwnd_pkts, added_pkts), conn->cwnd_max_pkts);

	ebb_sees_rival(conn, st);
	if (conn->cwnd_pkts < restored_pkts)
		conn->ssthresh_pkts = cc_max_u32(restored_pkts, CC_CWND_FLOOR_PKTS);
	st->level = cc_max_u32(st->level, 1U) & 15U;
	st->hold = EBB_HOLD_ROUNDS;
	st->failed = 1;
	for (u32 level = 1U; level < EBB_LEVEL_MAX; level++)
		if (ebb_level_us(p, level) <= q_us)
			st->level = cc_max_u32(st->level, level + 1U) & 15U;
}

/* At the end of a round in which the queue hardly moved: how far apart its RTTs are. */
static void ebb_count_jitter(const struct cc_conn *conn, struct ebb_state *st,
			     const struct ebb_params *p)
{
	u64 rtt_us = (u64)ebb_path_us(st, p) + st->q_us;
	u64 together_us = cc_div_u64(rtt_us * EBB_TOGETHER_PKTS, conn->cwnd_pkts, 0ULL);
	u64 range_us = cc_sub_floor_u32((u32)st->most_64us * 64U, st->round_us);
	u32 range =
	    (u32)cc_min_u64(cc_sub_floor_u64(range_us, together_us) / ebb_unit_us(p), 255ULL);
	u32 down =
	    (cc_sub_floor_u32(st->jitter, range) + EBB_CALMER_ROUNDS - 1U) / EBB_CALMER_ROUNDS;
	u32 up = (cc_sub_floor_u32(range, st->jitter) + EBB_WILDER_ROUNDS - 1U) / EBB_WILDER_ROUNDS;

	if (st->round_us != EBB_NONE && st->test == 0 && st->hold == 0 && !st->fast &&
	    !reno_in_slow_start(conn))
		st->jitter = (u8)cc_min_u32(cc_sub_floor_u32(st->jitter, down) + up, 255U);
	st->most_64us = 0;
}

/* Fast growth ends. q does not yet show the packets that it has added within the last round trip:
 * once all of them have arrived, q tells. */
static void ebb_settle(struct ebb_state *st)
{
	st->empty = 0;
	st->fast = 0;
	st->hold = EBB_SETTLE_ROUNDS;
	st->failed = 1;
}

static void ebb_round(struct cc_conn *conn, struct ebb_state *st, const struct ebb_params *p)
{
	int competes = ebb_competes(conn, st, p);

	ebb_count_jitter(conn, st, p);
	if (!competes)
		st->rival = 0;
	if (competes ||
	    (st->round_us > p->theta_us / 4U + ebb_jitter_us(st, p) && st->round_us != EBB_NONE)) {
		if (st->fast && !competes && st->test == 0)
			ebb_settle(st);
		st->empty = 0;
	} else if (st->round_us != EBB_NONE) {
		st->empty = (u8)cc_min_u32(st->empty + 1U, 255U);
	}
	st->round_us = EBB_NONE;
	ebb_count_usual(conn, st);
	st->q_max_us = cc_sub_floor_u32(st->q_max_us, st->q_max_us / 32U);
	st->last_high_us = st->high_us;
	st->high_us = 0U;
	if (st->stale != 0 && conn->phase != CC_LOSS)
		st->stale = (st->stale - 1U) & 3U;
	if (st->resumed != 0)
		st->resumed = (st->resumed - 1U) & 3U;
	if (st->hold != 0)
		st->own = EBB_OWN_ROUNDS;
	else if (st->own != 0)
		st->own = (st->own - 1U) & 3U;
	if (st->hold != 0)
		st->hold = (st->hold - 1U) & 7U;
	if (st->test != 0) {
		st->test = (st->test - 1U) & 7U;
		if (st->test == 0)
			ebb_fail(conn, st, p);
	}
	ebb_set_alpha(conn, st, p);
}

/* Delivery rate of the sample with so many packets more. */
static u32 ebb_rate_q24(const struct cc_ack *ack, u32 more_pkts)
{
	u64 rate_q24 = cc_div_u64(((u64)ack->sample_pkts + more_pkts) << 24, ack->sample_us, 0ULL);

	return (u32)cc_min_u64(rate_q24, CC_U32_MAX);
}

/* True if the drain has cost more of the delivery rate than planned: by an eighth of its cut of the
 * window, and by a packet, or two. Then it drained a queue that was not this flow's, or not
 * only. */
static int ebb_is_slower(const struct cc_conn *conn, const struct ebb_state *st,
			 const struct ebb_params *p, const struct cc_ack *ack)
{
	u32 more_pkts = conn->cwnd_pkts < EBB_RATE_FEW_PKTS ? 2U : 1U;
	u64 lost_q24 = cc_sub_floor_u32(ebb_part(st->test_rate_q24, p->drain_ppm),
					ebb_rate_q24(ack, more_pkts));
	u64 before_pkts = cc_min_u32(st->test_cwnd_pkts, 1U << 28);
	u64 taken_pkts = cc_sub_floor_u32(st->test_cwnd_pkts, conn->cwnd_pkts);

	if (conn->cwnd_pkts < EBB_RATE_PKTS || taken_pkts * 10ULL < st->test_cwnd_pkts)
		return 0;
	return 8ULL * lost_q24 * before_pkts > st->test_rate_q24 * taken_pkts;
}

/* Ends the test if it shows that the others have yielded. eq. 3. */
static void ebb_judge(const struct cc_conn *conn, struct ebb_state *st, const struct ebb_params *p,
		      const struct cc_ack *ack)
{
	u64 taken_pkts = cc_sub_floor_u32(st->test_cwnd_pkts, conn->cwnd_pkts);
	u64 fall_us = cc_div_u64((ebb_path_us(st, p) + (u64)st->test_q_us) * taken_pkts,
				 st->test_cwnd_pkts, 0ULL);
	u32 least_us =
	    ebb_part(cc_min_u32((u32)cc_min_u64(fall_us, CC_U32_MAX), st->test_q_us), p->yield_ppm);

	if (st->test != 1U || cc_sub_floor_u32(st->test_q_us, st->q_us) < least_us)
		return;
	if (ebb_is_slower(conn, st, p, ack))
		return;
	st->test = 0;
	st->hold = 0;
	st->level = 0;
	for (u32 level = 1U; level < EBB_LEVEL_MAX; level++)
		if (ebb_level_us(p, level) <= st->q_us)
			st->level = level & 15U;
}

/* W' of eq. 2. q is that of packets sent a round trip ago: later additions are not in it. The rate
 * sample tells the packets in flight then. */
static u64 ebb_measured_q16(const struct cc_conn *conn, const struct ebb_state *st,
			    const struct cc_ack *ack)
{
	u64 window_q16 = ebb_window_q16(conn);
	u64 least_q16 = cc_sub_floor_u64(window_q16, st->alpha_q16);

	if (st->level != 0 || ack->sample_pkts == 0U)
		return window_q16;
	return cc_min_u64(cc_max_u64((u64)ack->sample_pkts << 16, least_q16), window_q16);
}

/* True if another flow has just drained, or lost: q has fallen within two rounds, and more than
 * jitter tells. At level 0 a flow whose q was nearly theta joins the test: one whose lanes ended
 * earlier or later than another's would drain a round trip after it, and fail its test. Above, one
 * whose RTTmin is wrong and whose levels therefore differ; a competitor's loss shows there. */
static int ebb_joins(const struct cc_conn *conn, const struct ebb_state *st,
		     const struct ebb_params *p)
{
	u32 before_us = cc_max_u32(st->high_us, st->last_high_us);
	u32 rtt_us = ebb_path_us(st, p) + before_us;

	if (st->level == 0 && (st->own != 0 || before_us < ebb_theta_us(conn, st, p) / 4U * 3U))
		return 0;
	return cc_sub_floor_u32(before_us, st->q_us) >
	       rtt_us / (st->level == 0 ? 32U : 16U) + 2U * ebb_jitter_us(st, p);
}

/* eq. 2, which begins a test. */
static void ebb_drain(struct cc_conn *conn, struct ebb_state *st, const struct ebb_params *p,
		      const struct cc_ack *ack)
{
	u32 q_us = ebb_joins(conn, st, p) ? cc_max_u32(st->high_us, st->last_high_us) : st->q_us;
	/* At level 0 all that drain together keep the same part. */
	u64 left_q16 = (u64)ebb_drained_q16(st, p, st->level == 0 ? q_us : st->q_us) *
		       p->drain_ppm / CC_ONE_PPM;
	u64 window_q16 = ebb_measured_q16(conn, st, ack);
	/* W'/W */
	u64 measured_q10 =
	    cc_min_u64(cc_div_u64(window_q16 << 10, ebb_window_q16(conn), 1ULL << 10), 1ULL << 10);

	if (conn->cwnd_pkts <= CC_CWND_FLOOR_PKTS)
		return;
	if (st->level == 0 && st->fast) {
		ebb_settle(st);
		return;
	}
	if (st->level != 0)
		left_q16 =
		    cc_max_u64(left_q16, cc_sub_floor_u32(EBB_ONE_Q16, ebb_q16(p->probe_ppm)));
	st->test_cwnd_pkts = conn->cwnd_pkts;
	/* The queueing delay of the whole window, once all of it has arrived. */
	st->test_q_us = (u32)cc_min_u64(
	    cc_sub_floor_u64(cc_div_u64(((u64)ebb_path_us(st, p) + q_us) << 10, measured_q10, 0ULL),
			     ebb_path_us(st, p)),
	    CC_TIME_MAX_US);
	st->test_rate_q24 = (u32)((ebb_rate_q24(ack, 0U) * measured_q10) >> 10);
	st->test = EBB_TEST_ROUNDS;
	st->failed = 0;
	st->hold = EBB_TEST_ROUNDS;
	ebb_set_window(conn, st, (window_q16 * cc_min_u64(left_q16, EBB_ONE_Q16)) >> 16);
}

/* eqs. 6 to 8. */
static void ebb_lose(struct cc_conn *conn, struct ebb_state *st, const struct ebb_params *p,
		     int marked)
{
	u32 q_us = cc_max_u32(st->high_us, st->last_high_us);
	u32 limit_q15 = (u32)(((u64)p->loss_limit_ppm << 15) / CC_ONE_PPM);
	int excessive = st->loss_q15 > limit_q15;
	u32 from_pkts = conn->cwnd_pkts;
	u32 left_q16;

	if (!marked && !excessive &&
	    (q_us < ebb_part(st->q_max_us, p->full_ppm) || q_us < ebb_noise_us(st) ||
	     ebb_loses_as_usual(conn, st, p, ebb_competes(conn, st, p)))) {
		if (reno_in_slow_start(conn))
			ebb_set_window(conn, st, (u64)from_pkts << 16);
		return;
	}
	if (st->hold != 0 && st->test == 0 && !st->failed)
		return;
	if (st->test != 0)
		from_pkts = cc_max_u32(from_pkts, st->test_cwnd_pkts);
	if (excessive) {
		left_q16 = EBB_ONE_Q16 / 2U;
	} else if (st->level != 0 || st->q_max_us < p->theta_us) {
		left_q16 = ebb_q16(p->beta_ppm);
		/* At level 0 a loss that would be tolerated without a sign of others is none. */
		if (st->level != 0 || !ebb_loses_as_usual(conn, st, p, 0))
			ebb_sees_rival(conn, st);
	} else {
		left_q16 = cc_max_u32(ebb_drained_q16(st, p, q_us), EBB_ONE_Q16 / 4U);
	}
	if (marked)
		left_q16 = cc_min_u32(left_q16, ebb_q16(p->mark_ppm));
	st->test = 0;
	st->failed = 0;
	st->hold = EBB_HOLD_ROUNDS;
	ebb_set_window(conn, st, (u64)from_pkts * left_q16);
}

static void ebb_pace(struct cc_conn *conn, const struct ebb_state *st, const struct ebb_params *p)
{
	u64 gain_ppm = cc_min_u32(p->pacing_ppm, 2U * CC_ONE_PPM);
	u64 bytes = (u64)conn->cwnd_pkts * cc_min_u32(conn->mss_bytes, 1U << 17);
	u64 base_us = ebb_base_us(st);

	/* A drain leaves a gap in the packets sent. At a higher rate the gap would stay, and the
	 * packets between two gaps would queue although the link is not full. */
	if (st->test != 0)
		gain_ppm = CC_ONE_PPM;
	if (reno_in_slow_start(conn))
		gain_ppm *= 2ULL;
	/* Senders that burst lose the packets that a paced one does not. But after a pause no ACKs
	 * space the packets. */
	if (ebb_competes(conn, st, p) && st->resumed == 0)
		gain_ppm *= 4ULL;
	if (base_us != 0ULL)
		conn->pacing_bytes_per_s =
		    cc_min_u64(cc_div_u64(cc_min_u64(bytes, 1ULL << 39) * gain_ppm, base_us, 0ULL),
			       CC_PACING_MAX_BYTES_PER_S);
}

/* The increment of eqs. 1, 4 and 5. */
static void ebb_grow(struct cc_conn *conn, struct ebb_state *st, u32 acked_pkts)
{
	u32 credit_q16 = st->credit_q16;

	cc_grow_q16(conn, &credit_q16, st->alpha_q16, acked_pkts);
	st->credit_q16 = (u16)cc_min_u32(credit_q16, 0xffffU);
}

/* Slow start. At level 0 it ends when the queue reaches half of theta. */
static void ebb_start(struct cc_conn *conn, struct ebb_state *st, const struct ebb_params *p,
		      u32 acked_pkts, int limited)
{
	u32 left_q16 = cc_max_u32(ebb_drained_q16(st, p, st->q_us), EBB_ONE_Q16 / 2U);

	if (st->level == 0 && st->q_us >= p->theta_us / 2U && conn->phase != CC_LOSS) {
		ebb_set_window(conn, st, (u64)conn->cwnd_pkts * left_q16);
		st->hold = EBB_HOLD_ROUNDS;
	} else if (limited) {
		reno_slow_start(conn, 0U, acked_pkts);
	}
}

static void ebb_on_ack(struct cc_conn *conn, struct ebb_state *st, const struct ebb_params *p,
		       const struct cc_ack *ack)
{
	int limited =
	    conn->cwnd_limited || 4ULL * ack->prior_inflight_pkts >= 3ULL * conn->cwnd_pkts;

	st->latest_us = cc_low_u32(conn->now_us);
	ebb_sample(conn, st, p, ack);
	ebb_count_losses(st, ack);
	if (!cc_after(st->round_end_pkts, ack->sample_prior_pkts)) {
		st->round_end_pkts = cc_low_u32(ack->delivered_pkts);
		conn->notes |= CC_NOTE_ROUND;
		ebb_end_lane(st, p);
		/* The lane of a window of less than eight packets. Against competitors the queue
		 * falls without a yield now and then, and a small window would shrink with each
		 * such test. */
		if (!ebb_competes(conn, st, p))
			ebb_judge(conn, st, p, ack);
		ebb_round(conn, st, p);
	}
	ebb_judge(conn, st, p, ack);
	if (st->hold == 0 && st->test == 0)
		ebb_follow(st, p);
	if (conn->phase != CC_LOSS && (ack->lost_pkts != 0U || st->loss_seen))
		ebb_lose(conn, st, p, ack->lost_pkts == 0U && conn->phase == CC_CWR);
	st->loss_seen = 0;
	if (reno_in_slow_start(conn))
		ebb_start(conn, st, p, ack->acked_pkts, limited);
	else if (st->hold == 0 && st->test == 0 &&
		 (st->q_us >= ebb_theta_us(conn, st, p) || ebb_joins(conn, st, p)))
		ebb_drain(conn, st, p, ack);
	else if (st->hold == 0 && st->test == 0 && limited)
		ebb_grow(conn, st, ack->acked_pkts);
	/* Once slow start is over, a host must not resume it below the old threshold. */
	if (!reno_in_slow_start(conn))
		conn->ssthresh_pkts = cc_max_u32(conn->cwnd_pkts, CC_CWND_FLOOR_PKTS);
	ebb_pace(conn, st, p);
}

/* The next ACK tells whether it was a loss or a mark, and decides. */
static u32 ebb_ssthresh(struct cc_conn *conn, struct ebb_state *st, const struct ebb_params *p)
{
	(void)p;
	st->prior_cwnd_pkts = conn->cwnd_pkts;
	st->loss_seen = 1;
	conn->notes |= CC_NOTE_LOSS_TOLERATED;
	return cc_max_u32(conn->cwnd_pkts, CC_CWND_FLOOR_PKTS);
}

/* Sending resumes. After a long pause the window says nothing about the path: slow start leads back
 * to it, as in RFC 5681 section 4.1. */
static void ebb_resume(struct cc_conn *conn, struct ebb_state *st, const struct ebb_params *p)
{
	u64 rtt_us = ebb_path_us(st, p) + (u64)st->q_us;
	u64 idle_us = cc_wrapping_sub_u32(cc_low_u32(conn->now_us), st->latest_us);

	st->resumed = 2;
	if (idle_us > EBB_IDLE_RTTS * rtt_us && conn->cwnd_pkts > EBB_RESTART_PKTS) {
		conn->ssthresh_pkts =
		    cc_max_u32(conn->cwnd_pkts - conn->cwnd_pkts / 4U, CC_CWND_FLOOR_PKTS);
		conn->cwnd_pkts = EBB_RESTART_PKTS;
		conn->cwnd_cnt = 0U;
		st->test = 0;
	}
	ebb_pace(conn, st, p);
}

/* After a timeout: half the window as threshold. RTTs of packets sent before say nothing about the
 * queue. */
static void ebb_on_event(struct cc_conn *conn, struct ebb_state *st, const struct ebb_params *p,
			 u32 event)
{
	if (event == CC_EVENT_TX_START)
		ebb_resume(conn, st, p);
	if (event != CC_EVENT_RTO)
		return;
	conn->ssthresh_pkts = cc_max_u32(conn->cwnd_pkts / 2U, CC_CWND_FLOOR_PKTS);
	st->loss_seen = 0;
	st->test = 0;
	st->stale = 2;
	st->lane_us = EBB_NONE;
	st->lane_samples = 0;
	st->q_us = 0U;
	st->q_max_us = 0U;
	st->high_us = 0U;
	st->last_high_us = 0U;
}

static u32 ebb_undo(struct cc_conn *conn, struct ebb_state *st, const struct ebb_params *p)
{
	(void)p;
	return cc_max_u32(conn->cwnd_pkts, cc_min_u32(st->prior_cwnd_pkts, conn->cwnd_max_pkts));
}

static void ebb_observe(const struct ebb_state *st, const struct ebb_params *p,
			u32 out[CC_OBSERVE_N])
{
	out[0] = st->q_us;
	out[1] = ebb_base_us(st);
	out[2] = ebb_level_us(p, st->level);
	out[3] = st->test;
}

KNEE_RATE_ALGORITHM(
    ebb, EBB_PARAMS, EBB_RULES, EBB_INVARIANTS, CC_NO_RANDOM,
    "drains the queue at a delay that flows agree on, and tests whether others yield",
    "Knee, docs/reference/algorithms/ebb.md", "q_us|rtt_min_us|level_us|test_rounds");
