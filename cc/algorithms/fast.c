// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * FAST TCP: an equation moves the window until the flow has alpha packets in the queue.
 *
 * C. Jin, D. X. Wei, S. H. Low: "FAST TCP: motivation, architecture, algorithms, performance",
 * INFOCOM 2004; with S. Hegde in IEEE/ACM ToN 14(6), 2006. Table I of D. Hayes, G. Armitage, LCN
 * 2010 (CHD paper). We did not have the paper itself: constants are those of ns-2's module and of
 * the literature, and each is a parameter.
 *
 *   w <- min(2 w, (1 - gamma) w + gamma (w_old baseRTT / RTT + alpha))
 *
 * with the average RTT and w_old, the window of one round trip ago. While the queueing delay is
 * below a threshold the window doubles in each round trip instead. Loss and timeout as NewReno.
 *
 * Readings taken where the sources are silent or differ, each a parameter unless noted:
 *  - the right alpha depends on the bottleneck's rate, which a sender does not know; it must be
 *    set: `alpha` (FA-a).
 *  - the paper updates in every other round trip and holds the window in the one between; Table I
 *    says regular intervals, as in ns-2: `update`, `interval` (FA-b).
 *  - the gain of the average RTT, per sample, is min(3/w, 1/4), or has another cap as in ns-2:
 *    `avg_gain` (FA-c).
 *  - w_old is the window at the start of the running round, or of the one that ends with this ACK
 *    (not a parameter; FA-d).
 *  - an increase is spread over ACKs, one packet for each that is acknowledged, so that a round
 *    trip at most doubles the window; a decrease is immediate (not a parameter; FA-e).
 *  - updates at intervals could reduce the window several times in a round trip: `holdoff` (FA-f).
 *  - slow start is the doubling below the threshold; the first delay above it ends it (not a
 *    parameter; FA-g).
 *  - ns-2 holds the window between two targets if the second is set: `beta`.
 */
#include "knee/host.h"
#include "knee/backlog.h"
#include "knee/delay.h"
#include "knee/reno.h"
#include "knee/round.h"
#include "knee/undo.h"

enum { FAST_UPDATE_SECOND_ROUND = 0, FAST_UPDATE_INTERVAL = 1 };
enum { FAST_HOLDOFF_NONE = 0, FAST_HOLDOFF_ONE_ROUND = 1 };

#define FAST_PARAMS(X) \
	RENO_GROWTH_PARAMS(X) \
	CC_DELACK_PARAM(X) \
	X(CC_PKTS, alpha_pkts, "alpha", "", 0, 1000000, 20, "", \
	  "FAST: 8, 20, 200 at 10, 100, 1000 Mbit/s; ns-2: 100; reading FA-a", \
	  "packets that the flow aims to keep in the queue") \
	X(CC_PKTS, beta_pkts, "beta", "", 0, 1000000, 0, "", "ns-2: as alpha", \
	  "the window is held while alpha to beta packets are queued; 0: no such range") \
	X(CC_PROB_PPM, gamma_ppm, "gamma", "", 1, 1000000, 500000, "", "FAST and ns-2: 0.5", \
	  "weight of the equation's target in an update") \
	X(CC_CHOICE, update, "update", "", 0, 1, FAST_UPDATE_SECOND_ROUND, \
	  "second_round|interval", "FAST: every other RTT; CHD paper Table I; reading FA-b", \
	  "when the window is updated") \
	X(CC_TIME_US, interval_us, "interval", "", 1, 10000000, 10000, "", "ns-2: 10 ms", \
	  "time between updates with update = interval") \
	X(CC_PROB_PPM, avg_gain_ppm, "avg_gain", "", 20, 1000000, 250000, "", \
	  "FAST: 1/4; ns-2: 1/256; reading FA-c", \
	  "largest weight of a sample in the average RTT; the weight is 3/cwnd if that is less") \
	X(CC_TIME_US, mi_threshold_us, "mi_threshold", "", 0, 10000000, 750, "", "ns-2: 0.75 ms", \
	  "average queueing delay up to which the window doubles in a round trip") \
	X(CC_CHOICE, holdoff, "holdoff", "", 0, 1, FAST_HOLDOFF_ONE_ROUND, "none|one_round", \
	  "reading FA-f", "how soon a second reduction may follow the first")

#define FAST_RULES(R) R(beta_pkts, CC_ZERO_OR_MORE_THAN, alpha_pkts)

CC_PARAMS_STRUCT(fast, FAST_PARAMS);

struct fast_state {
	u64 avg_q24_us; /* average RTT; 0: no sample yet */
	u64 target_q16; /* window target of the latest update, packets */
	u64 old_q16;	/* w_old: window at the start of the running round, packets */
	u64 updated_us; /* time of the latest update */
	struct cc_delay delay;
	struct cc_round round;
	u32 hold_pos;	     /* no reduction until this position is acknowledged */
	u32 prior_cwnd_pkts; /* before the latest loss, for undo */
	u8 round_ended;	     /* by the present ACK */
	u8 odd_round;
	u8 holding;
};

#define FAST_INVARIANTS(X) \
	CC_AT_MOST(X, avg_q24_us, (u64)CC_TIME_MAX_US << 24) \
	CC_AT_MOST(X, target_q16, (u64)CC_CWND_MAX_PKTS << 16) \
	CC_AT_MOST(X, old_q16, (u64)CC_CWND_MAX_PKTS << 16) \
	CC_AT_MOST(X, updated_us, CC_NOW_MAX_US) \
	CC_DELAY_INVARIANTS(X) \
	CC_DELAY_RANGE_INVARIANT(X) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, round_ended, 1U) \
	CC_AT_MOST(X, odd_round, 1U) \
	CC_AT_MOST(X, holding, 1U)

/* Restarts all that depends on rounds, after the stack has set the window. */
static void fast_restart(const struct cc_conn *conn, struct fast_state *st)
{
	cc_round_start(&st->round, conn);
	st->target_q16 = (u64)conn->cwnd_pkts << 16;
	st->updated_us = conn->now_us;
	st->old_q16 = st->target_q16;
	st->round_ended = 0;
	st->odd_round = 0;
}

static void fast_init(struct cc_conn *conn, struct fast_state *st, const struct fast_params *p)
{
	(void)p;
	fast_restart(conn, st);
	st->hold_pos = conn->snd_pos;
	st->prior_cwnd_pkts = conn->cwnd_pkts;
}

/* avgRTT += min(3/cwnd, avg_gain) (RTT - avgRTT), rounded towards avgRTT. Both differences are
 * below 2^48 and the gain in 1/2^16 is at most 2^16. */
static void fast_average(const struct cc_conn *conn, struct fast_state *st,
			 const struct fast_params *p)
{
	u64 rtt_q24_us = (u64)cc_delay_latest_us(&st->delay) << 24;
	u64 cap_q16 = ((u64)p->avg_gain_ppm << 16) / CC_ONE_PPM;
	u64 window = cc_max_u32(conn->cwnd_pkts, 1U);
	u64 was_q24_us = st->avg_q24_us;
	u64 away_q24_us =
	    rtt_q24_us > was_q24_us ? rtt_q24_us - was_q24_us : was_q24_us - rtt_q24_us;
	u64 step_q24_us = window * cap_q16 > 3ULL << 16 ? away_q24_us * 3ULL / window
							: (away_q24_us * cap_q16) >> 16;

	if (was_q24_us == 0ULL)
		st->avg_q24_us = rtt_q24_us;
	else if (rtt_q24_us > was_q24_us)
		st->avg_q24_us = cc_min_u64(was_q24_us + step_q24_us, rtt_q24_us);
	else
		st->avg_q24_us = cc_sub_floor_u64(was_q24_us, step_q24_us);
}

static void fast_on_rtt(struct cc_conn *conn, struct fast_state *st, const struct fast_params *p,
			const struct cc_ack *ack)
{
	if (cc_delay_trusts(&st->delay, ack, p->delack_filter)) {
		cc_delay_sample(&st->delay, (u32)ack->rtt_us);
		fast_average(conn, st, p);
	}
	if (st->holding && !cc_after(st->hold_pos, conn->ack_pos))
		st->holding = 0;
	st->round_ended = (u8)cc_round_ended(&st->round, conn);
	if (!st->round_ended)
		return;
	conn->notes |= CC_NOTE_ROUND;
	st->odd_round = !st->odd_round;
}

static u32 fast_avg_q8_us(const struct fast_state *st)
{
	return (u32)(st->avg_q24_us >> 16);
}

/* True if the queue is short enough to double the window. */
static int fast_doubles(const struct fast_state *st, const struct fast_params *p)
{
	u32 q_q8_us = cc_sub_floor_u32(fast_avg_q8_us(st), st->delay.rtt_min_us << 8);

	return (u64)q_q8_us < (u64)p->mi_threshold_us << 8;
}

/* w_old baseRTT / avgRTT, whole packets and fraction apart; below 2^47 and short by less than
 * 2^-15. */
static u64 fast_carried_q16(const struct fast_state *st)
{
	u64 avg_q8_us = fast_avg_q8_us(st);
	u64 base_q8_us = (u64)st->delay.rtt_min_us << 8;
	u64 old_base = (st->old_q16 >> 16) * base_q8_us;
	u64 whole, part_q16;

	if (avg_q8_us == 0ULL)
		return 0ULL;
	/* The average is not below the least of its samples. */
	whole = cc_min_u64(old_base / avg_q8_us, st->old_q16 >> 16);
	part_q16 = cc_min_u64((st->old_q16 & 0xffffULL) * base_q8_us / avg_q8_us, 1ULL << 16);
	return (whole << 16) + ((old_base % avg_q8_us) << 16) / avg_q8_us + part_q16;
}

/* The window with the fraction that its whole packets leave out; below 2^47. */
static u64 fast_w_q16(const struct cc_conn *conn, const struct fast_state *st)
{
	if (st->target_q16 >> 16 == conn->cwnd_pkts)
		return st->target_q16;
	return (u64)conn->cwnd_pkts << 16;
}

/* The equation. Both terms are below 2^48 and gamma is at most 2^16. */
static u64 fast_equation_q16(const struct cc_conn *conn, const struct fast_state *st,
			     const struct fast_params *p)
{
	u64 gamma_q16 = ((u64)p->gamma_ppm << 16) / CC_ONE_PPM;
	u64 w_q16 = fast_w_q16(conn, st);
	u64 aim_q16 = fast_carried_q16(st) + ((u64)p->alpha_pkts << 16);
	u64 next_q16 = (((1ULL << 16) - gamma_q16) * w_q16 + gamma_q16 * aim_q16) >> 16;

	next_q16 = cc_min_u64(next_q16, 2ULL * w_q16);
	return cc_min_u64(next_q16, (u64)conn->cwnd_max_pkts << 16);
}

/* True if between alpha and beta packets are queued. */
static int fast_rests(const struct cc_conn *conn, const struct fast_state *st,
		      const struct fast_params *p)
{
	u64 avg_q8_us = fast_avg_q8_us(st);
	u64 queued_rtt = cc_backlog_rtt(conn->cwnd_pkts, (u32)avg_q8_us, st->delay.rtt_min_us);

	return p->beta_pkts != 0U && queued_rtt >= p->alpha_pkts * avg_q8_us &&
	       queued_rtt < p->beta_pkts * avg_q8_us;
}

static int fast_update_due(const struct cc_conn *conn, const struct fast_state *st,
			   const struct fast_params *p)
{
	if (p->update == FAST_UPDATE_INTERVAL)
		return cc_sub_floor_u64(conn->now_us, st->updated_us) >= p->interval_us;
	return st->round_ended && !st->odd_round;
}

/* Sets the target, and the window where that is below it. */
static void fast_update(struct cc_conn *conn, struct fast_state *st, const struct fast_params *p)
{
	u64 next_q16 =
	    fast_rests(conn, st, p) ? fast_w_q16(conn, st) : fast_equation_q16(conn, st, p);
	u32 next_pkts = (u32)(next_q16 >> 16);

	st->updated_us = conn->now_us;
	st->target_q16 = next_q16;
	if (next_pkts >= conn->cwnd_pkts)
		return;
	if (!st->holding) {
		cc_delay_reduce(conn, next_pkts);
		st->holding = p->holdoff == FAST_HOLDOFF_ONE_ROUND;
		st->hold_pos = conn->snd_pos;
	}
	/* Held, or at the floor: the fraction does not belong to this window. */
	if (next_pkts != conn->cwnd_pkts)
		st->target_q16 = (u64)conn->cwnd_pkts << 16;
}

static void fast_grow(struct cc_conn *conn, const struct fast_state *st,
		      const struct fast_params *p, u32 acked_pkts)
{
	u32 counted = reno_counted_pkts(p->count, acked_pkts);
	u32 limit = p->ss_limit_pkts != 0U ? p->ss_limit_pkts : CC_U32_MAX;
	u32 up_to_pkts = (u32)(st->target_q16 >> 16);

	if (!conn->cwnd_limited)
		return;
	if (reno_in_slow_start(conn))
		up_to_pkts = cc_min_u32(conn->ssthresh_pkts, conn->cwnd_max_pkts);
	else if (st->avg_q24_us != 0ULL && fast_doubles(st, p))
		up_to_pkts = conn->cwnd_max_pkts;
	counted =
	    cc_min_u32(cc_min_u32(counted, limit), cc_sub_floor_u32(up_to_pkts, conn->cwnd_pkts));
	conn->cwnd_pkts = cc_min_u32(conn->cwnd_pkts + counted, conn->cwnd_max_pkts);
}

static void fast_on_ack(struct cc_conn *conn, struct fast_state *st, const struct fast_params *p,
			const struct cc_ack *ack)
{
	if (!cc_delay_test_allowed(conn)) {
		reno_grow(conn, p->count, p->ss_limit_pkts, ack->acked_pkts);
		fast_restart(conn, st);
		return;
	}
	if (st->avg_q24_us != 0ULL && !fast_doubles(st, p)) {
		if (reno_in_slow_start(conn))
			conn->ssthresh_pkts = cc_max_u32(conn->cwnd_pkts, CC_CWND_FLOOR_PKTS);
		if (fast_update_due(conn, st, p))
			fast_update(conn, st, p);
	}
	fast_grow(conn, st, p, ack->acked_pkts);
	if (st->round_ended)
		st->old_q16 = fast_w_q16(conn, st);
}

static u32 fast_ssthresh(struct cc_conn *conn, struct fast_state *st, const struct fast_params *p)
{
	(void)p;
	st->prior_cwnd_pkts = conn->cwnd_pkts;
	return reno_ssthresh(conn);
}

static void fast_on_event(struct cc_conn *conn, struct fast_state *st, const struct fast_params *p,
			  u32 event)
{
	(void)p;
	if (event != CC_EVENT_TX_START)
		fast_restart(conn, st);
}

CC_UNDO_TO_PRIOR_CWND(fast)

static void fast_observe(const struct fast_state *st, const struct fast_params *p,
			 u32 out[CC_OBSERVE_N])
{
	(void)p;
	out[0] = fast_avg_q8_us(st) >> 8;
	out[1] = st->delay.rtt_min_us;
	out[2] = (u32)(st->target_q16 >> 16);
	out[3] = (u32)(st->old_q16 >> 16);
}

KNEE_ALGORITHM(fast, FAST_PARAMS, FAST_RULES, FAST_INVARIANTS, CC_NO_RANDOM,
	       "an equation moves the window until the flow has alpha packets in the queue",
	       "Jin, Wei, Low, INFOCOM 2004", "avg_rtt_us|base_rtt_us|target_pkts|old_cwnd_pkts");
