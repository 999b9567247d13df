// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * CARD: congestion avoidance using round-trip delay.
 *
 * R. Jain: "A delay-based approach for congestion avoidance in interconnected heterogeneous
 * computer networks", ACM CCR 19(5), 1989, as Table I of D. Hayes, G. Armitage, LCN 2010 (CHD
 * paper) states it.
 *
 * Every second round trip, so that the RTT shows the last change of the window, the normalized
 * delay gradient
 *
 *   NDG = (r - r_prev) / (r + r_prev) * (W + W_prev) / (W - W_prev)
 *
 * decides by its sign: above 0 the window falls by an eighth, otherwise it grows by one packet.
 * Loss, timeout and slow start as NewReno.
 *
 * Readings taken where the sources are silent or differ, each a parameter unless noted:
 *  - Table I keeps the first factor only, the delay's own change: `gradient` (CA-a).
 *  - Table I tests in every RTT, the original in every second one: `period` (CA-b).
 *  - r is the least of the samples of the round that ends the period, or their mean, or the last
 *    one: `rtt_stat` (CA-c). A window sent as a burst queues behind itself, so that mean and last
 *    rise with the window on a path that is not full.
 *  - W = W_prev, no RTT in the round, or nothing to compare with: no gradient, so growth (not a
 *    parameter; CA-d).
 *  - the test does not run in slow start; where it does, a reduction ends it: `ss_test` (CA-e).
 *  - after a recovery, a timeout or an idle restart there is nothing to compare with: their change
 *    of the window is not CARD's (not a parameter; CA-f).
 *  - the reduced window is rounded down (not a parameter).
 */
#include "knee/host.h"
#include "knee/delay.h"
#include "knee/mean.h"
#include "knee/reduce.h"
#include "knee/reno.h"
#include "knee/round.h"
#include "knee/undo.h"

enum { CARD_GRADIENT_DELAY = 0, CARD_GRADIENT_DELAY_WINDOW = 1 };
enum { CARD_EVERY_ROUND = 0, CARD_EVERY_SECOND_ROUND = 1 };
enum { CARD_RTT_MEAN = 0, CARD_RTT_LAST = 1, CARD_RTT_LEAST = 2 };

#define CARD_PARAMS(X) \
	RENO_GROWTH_PARAMS(X) \
	CC_DELACK_PARAM(X) \
	X(CC_CHOICE, gradient, "gradient", "", 0, 1, CARD_GRADIENT_DELAY_WINDOW, \
	  "delay|delay_window", "Jain 1989; CHD paper Table I: delay; reading CA-a", \
	  "what decides: the sign of the delay's change alone, or of delay over window") \
	X(CC_CHOICE, period, "period", "", 0, 1, CARD_EVERY_SECOND_ROUND, "round|second_round", \
	  "Jain 1989: every second; CHD paper Table I: every RTT; reading CA-b", \
	  "how often the window is changed") \
	X(CC_CHOICE, rtt_stat, "rtt_stat", "", 0, 2, CARD_RTT_LEAST, "mean|last|min", \
	  "reading CA-c", "which of a round's samples is its RTT: their mean, the last, or the least") \
	X(CC_PROB_PPM, decrease_ppm, "decrease", "", 0, 1000000, 125000, "", \
	  "CHD paper Table I: beta = 7/8", "fraction of the window that a reduction removes") \
	X(CC_CHOICE, ss_test, "ss_test", "", 0, 1, 0, "off|on", "reading CA-e", \
	  "whether the delay test runs in slow start")

#define CARD_RULES(R)

CC_PARAMS_STRUCT(card, CARD_PARAMS);

/* Before the first decision, or with no sample: 0. */
struct card_seen {
	u32 rtt_q8_us;
	u32 cwnd_pkts;
};

#define CARD_SEEN_INVARIANTS(X, seen) \
	X(seen##_rtt_q8_us, st->seen.rtt_q8_us <= CC_TIME_MAX_US << 8) \
	X(seen##_cwnd_pkts, st->seen.cwnd_pkts <= CC_CWND_MAX_PKTS)

struct card_state {
	struct cc_mean rtt;	 /* of the round that is running */
	struct cc_delay delay;	 /* for its latest sample, and the filter of delayed ACKs */
	struct card_seen now;	 /* r and W of the latest period */
	struct card_seen before; /* r_prev and W_prev */
	struct cc_round round;
	u32 rtt_least_us;    /* of the round that is running; 0: none yet */
	u32 prior_cwnd_pkts; /* before the latest loss, for undo */
	u8 odd_round;
	u8 period_ended; /* by the present ACK */
};

#define CARD_INVARIANTS(X) \
	CC_MEAN_INVARIANTS(X) \
	CC_DELAY_INVARIANTS(X) \
	CC_DELAY_RANGE_INVARIANT(X) \
	CARD_SEEN_INVARIANTS(X, now) \
	CARD_SEEN_INVARIANTS(X, before) \
	CC_AT_MOST(X, rtt_least_us, CC_TIME_MAX_US) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, odd_round, 1U) \
	CC_AT_MOST(X, period_ended, 1U)

static void card_round_clear(struct card_state *st)
{
	st->rtt = (struct cc_mean){0};
	st->rtt_least_us = 0U;
}

/* Nothing to compare with: the next decision finds no gradient. */
static void card_forget(const struct cc_conn *conn, struct card_state *st)
{
	cc_round_start(&st->round, conn);
	card_round_clear(st);
	st->now = (struct card_seen){0};
	st->before = (struct card_seen){0};
	st->odd_round = 0;
	st->period_ended = 0;
}

static void card_init(struct cc_conn *conn, struct card_state *st, const struct card_params *p)
{
	(void)p;
	card_forget(conn, st);
	st->prior_cwnd_pkts = conn->cwnd_pkts;
}

static u32 card_round_rtt_q8_us(const struct card_state *st, const struct card_params *p)
{
	if (p->rtt_stat == CARD_RTT_LEAST)
		return st->rtt_least_us << 8;
	if (st->rtt.n == 0U || p->rtt_stat == CARD_RTT_MEAN)
		return cc_mean_q8_us(&st->rtt);
	return cc_delay_latest_us(&st->delay) << 8;
}

static void card_on_rtt(struct cc_conn *conn, struct card_state *st, const struct card_params *p,
			const struct cc_ack *ack)
{
	u32 rtt_us;

	if (cc_delay_trusts(&st->delay, ack, p->delack_filter)) {
		cc_delay_sample(&st->delay, (u32)ack->rtt_us);
		cc_mean_sample(&st->rtt, (u32)ack->rtt_us);
		rtt_us = cc_delay_latest_us(&st->delay);
		if (st->rtt_least_us == 0U || rtt_us < st->rtt_least_us)
			st->rtt_least_us = rtt_us;
	}
	st->period_ended = 0;
	if (!cc_round_ended(&st->round, conn))
		return;
	conn->notes |= CC_NOTE_ROUND;
	st->odd_round = !st->odd_round;
	if (p->period == CARD_EVERY_ROUND || !st->odd_round) {
		st->before = st->now;
		st->now.rtt_q8_us = card_round_rtt_q8_us(st, p);
		st->now.cwnd_pkts = conn->cwnd_pkts;
		st->period_ended = 1;
	}
	card_round_clear(st);
}

/* NDG > 0. The sums in it are positive: only the signs of the differences count. */
static int card_gradient_is_positive(const struct card_state *st, const struct card_params *p)
{
	u32 r = st->now.rtt_q8_us, r_prev = st->before.rtt_q8_us;
	u32 w = st->now.cwnd_pkts, w_prev = st->before.cwnd_pkts;

	if (r == 0U || r_prev == 0U)
		return 0;
	if (p->gradient == CARD_GRADIENT_DELAY)
		return r > r_prev;
	return (r > r_prev && w > w_prev) || (r < r_prev && w < w_prev);
}

static int card_test_due(const struct cc_conn *conn, const struct card_state *st,
			 const struct card_params *p)
{
	return st->period_ended && (p->ss_test || !reno_in_slow_start(conn));
}

static void card_on_ack(struct cc_conn *conn, struct card_state *st, const struct card_params *p,
			const struct cc_ack *ack)
{
	u32 counted = reno_counted_pkts(p->count, ack->acked_pkts);

	if (!cc_delay_test_allowed(conn))
		reno_grow(conn, p->count, p->ss_limit_pkts, ack->acked_pkts);
	else if (card_test_due(conn, st, p) && card_gradient_is_positive(st, p))
		cc_delay_reduce(conn, cc_decreased_pkts(conn->cwnd_pkts, p->decrease_ppm));
	else if (conn->cwnd_limited && reno_in_slow_start(conn))
		reno_slow_start(conn, p->ss_limit_pkts, counted);
	else if (conn->cwnd_limited && st->period_ended)
		conn->cwnd_pkts = cc_min_u32(conn->cwnd_pkts + 1U, conn->cwnd_max_pkts);
}

static u32 card_ssthresh(struct cc_conn *conn, struct card_state *st, const struct card_params *p)
{
	(void)p;
	st->prior_cwnd_pkts = conn->cwnd_pkts;
	return reno_ssthresh(conn);
}

static void card_on_event(struct cc_conn *conn, struct card_state *st, const struct card_params *p,
			  u32 event)
{
	(void)p;
	if (event != CC_EVENT_TX_START)
		card_forget(conn, st);
}

CC_UNDO_TO_PRIOR_CWND(card)

static void card_observe(const struct card_state *st, const struct card_params *p,
			 u32 out[CC_OBSERVE_N])
{
	out[0] = st->now.rtt_q8_us >> 8;
	out[1] = st->before.rtt_q8_us >> 8;
	out[2] = st->before.cwnd_pkts;
	out[3] = (u32)card_gradient_is_positive(st, p);
}

KNEE_ALGORITHM(
    card, CARD_PARAMS, CARD_RULES, CARD_INVARIANTS, CC_NO_RANDOM,
    "an eighth less if a larger window only brought more delay, otherwise one packet more",
    "Jain, ACM CCR 19(5), 1989", "rtt_us|rtt_before_us|cwnd_before_pkts|gradient_is_positive");
