// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * TCP-LP: low priority, by yielding at the first sign of a queue.
 *
 * A. Kuzmanovic, E. Knightly: "TCP-LP: low-priority service via end-point congestion control",
 * IEEE/ACM ToN 14(4), 2006, as Table I of D. Hayes, G. Armitage, LCN 2010 (CHD paper) states it.
 * We did not have the paper: constants are those of public implementations, each a parameter.
 *
 * A smoothed delay above dmin + delta (dmax - dmin) is an early indication of congestion. The
 * first one halves the window and begins an inference phase of three round trips, in which the
 * window does not grow. Another one within the phase means that others are sending: the window
 * falls to the minimum. Loss, timeout and growth outside the phase as NewReno.
 *
 * Readings taken where the sources are silent or differ, each a parameter unless noted:
 *  - the delay is the RTT; the paper takes the one-way delay from timestamps, which the contract
 *    does not provide. A queue on the reverse path counts as congestion here: the flow yields to
 *    traffic that does not share its path (not a parameter; LP-a).
 *  - dmax is the second largest sample, so that a single spike does not raise it: `dmax` (LP-b).
 *  - the least window is 2 packets, the contract's floor; the paper says 1 (not a parameter; LP-c).
 *  - packets sent before an indication say nothing new: the next one can come when they have been
 *    acknowledged: `holdoff` (LP-d).
 *  - each indication that is acted upon restarts the phase; round trips are counted by marked
 *    packets (not a parameter; LP-e).
 *  - the test does not run in slow start, in which dmin and dmax are learned; if it does, an
 *    indication ends slow start: `ss_test` (LP-f).
 *  - a recovery neither starts nor ends a phase; a timeout ends it (not a parameter; LP-g).
 */
#include "knee/host.h"
#include "knee/delay.h"
#include "knee/reno.h"
#include "knee/round.h"
#include "knee/slow_rtt.h"
#include "knee/undo.h"

enum { LP_DMAX_LARGEST = 0, LP_DMAX_SECOND = 1 };
enum { LP_HOLDOFF_NONE = 0, LP_HOLDOFF_ONE_ROUND = 1 };

#define LP_PARAMS(X) \
	RENO_GROWTH_PARAMS(X) \
	CC_DELACK_PARAM(X) \
	X(CC_PROB_PPM, srtt_weight_ppm, "srtt_weight", "", 0, 999000, 875000, "", "TCP-LP: 7/8", \
	  "weight of the past in the smoothed delay, per sample; 0: no smoothing") \
	X(CC_PROB_PPM, delta_ppm, "delta", "", 0, 1000000, 150000, "", "TCP-LP: 0.15", \
	  "fraction of the range of delays above which there is congestion") \
	X(CC_CHOICE, dmax, "dmax", "", 0, 1, LP_DMAX_SECOND, "largest|second_largest", \
	  "TCP-LP; reading LP-b", "which sample is the upper end of that range") \
	X(CC_COUNT, inference, "inference", "", 0, 200, 3, "", \
	  "TCP-LP: 3 RTT", "round trips of the inference phase") \
	X(CC_CHOICE, holdoff, "holdoff", "", 0, 1, LP_HOLDOFF_ONE_ROUND, "none|one_round", \
	  "reading LP-d", "how soon a second indication may follow the first") \
	X(CC_CHOICE, ss_test, "ss_test", "", 0, 1, 0, "off|on", "reading LP-f", \
	  "whether the delay test runs in slow start")

#define LP_RULES(R)

CC_PARAMS_STRUCT(lp, LP_PARAMS);

struct lp_state {
	struct cc_delay delay;
	struct cc_slow_rtt slow;
	struct cc_round round;
	u32 rtt_second_us;   /* second largest sample; 0: none yet */
	u32 prior_cwnd_pkts; /* before the latest loss, for undo */
	u8 rounds_left;	     /* of the inference phase; 0: none */
	u8 holding;	     /* the running round measures packets sent before an indication */
};

#define LP_INVARIANTS(X) \
	CC_DELAY_INVARIANTS(X) \
	CC_DELAY_RANGE_INVARIANT(X) \
	CC_SLOW_RTT_INVARIANT(X) \
	CC_AT_MOST(X, rtt_second_us, CC_TIME_MAX_US) \
	X(rtt_second_range, st->rtt_second_us <= st->delay.rtt_max_us) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, rounds_left, p->inference) \
	CC_AT_MOST(X, holding, 1U)

static void lp_init(struct cc_conn *conn, struct lp_state *st, const struct lp_params *p)
{
	(void)p;
	cc_round_start(&st->round, conn);
	st->prior_cwnd_pkts = conn->cwnd_pkts;
}

static void lp_sample(struct lp_state *st, const struct lp_params *p, u32 rtt_us)
{
	u32 clamped_us = cc_min_u32(cc_max_u32(rtt_us, 1U), CC_TIME_MAX_US);

	st->rtt_second_us =
	    cc_max_u32(st->rtt_second_us, cc_min_u32(clamped_us, st->delay.rtt_max_us));
	cc_delay_sample(&st->delay, rtt_us);
	cc_slow_rtt_sample(&st->slow, rtt_us, p->srtt_weight_ppm);
}

static void lp_on_rtt(struct cc_conn *conn, struct lp_state *st, const struct lp_params *p,
		      const struct cc_ack *ack)
{
	if (cc_delay_trusts(&st->delay, ack, p->delack_filter))
		lp_sample(st, p, (u32)ack->rtt_us);
	if (!cc_round_ended(&st->round, conn))
		return;
	conn->notes |= CC_NOTE_ROUND;
	st->holding = 0;
	if (st->rounds_left != 0)
		st->rounds_left--;
}

/* dmax - dmin. */
static u32 lp_range_us(const struct lp_state *st, const struct lp_params *p)
{
	u32 dmax_us = p->dmax == LP_DMAX_LARGEST ? st->delay.rtt_max_us : st->rtt_second_us;

	return cc_sub_floor_u32(dmax_us, st->delay.rtt_min_us);
}

/* Smoothed delay > dmin + delta (dmax - dmin), in 1/256 us. */
static int lp_delay_is_high(const struct lp_state *st, const struct lp_params *p)
{
	u64 above_q8_us = cc_sub_floor_u32(st->slow.srtt_q8_us, st->delay.rtt_min_us << 8);
	u64 range_q8_us = (u64)lp_range_us(st, p) << 8;

	return above_q8_us * CC_ONE_PPM > range_q8_us * p->delta_ppm;
}

static int lp_test_due(const struct cc_conn *conn, const struct lp_state *st,
		       const struct lp_params *p)
{
	return cc_delay_test_allowed(conn) && !st->holding &&
	       (p->ss_test || !reno_in_slow_start(conn));
}

/* The early indication. */
static void lp_give_way(struct cc_conn *conn, struct lp_state *st, const struct lp_params *p)
{
	int within_phase = st->rounds_left != 0;

	cc_delay_reduce(conn, within_phase ? CC_CWND_FLOOR_PKTS : conn->cwnd_pkts / 2U);
	st->rounds_left = (u8)(p->inference);
	st->holding = p->holdoff == LP_HOLDOFF_ONE_ROUND;
	cc_round_start(&st->round, conn);
}

static void lp_on_ack(struct cc_conn *conn, struct lp_state *st, const struct lp_params *p,
		      const struct cc_ack *ack)
{
	if (lp_test_due(conn, st, p) && lp_delay_is_high(st, p))
		lp_give_way(conn, st, p);
	else if (st->rounds_left == 0)
		reno_grow(conn, p->count, p->ss_limit_pkts, ack->acked_pkts);
}

static u32 lp_ssthresh(struct cc_conn *conn, struct lp_state *st, const struct lp_params *p)
{
	(void)p;
	st->prior_cwnd_pkts = conn->cwnd_pkts;
	return reno_ssthresh(conn);
}

static void lp_on_event(struct cc_conn *conn, struct lp_state *st, const struct lp_params *p,
			u32 event)
{
	(void)conn;
	(void)p;
	if (event == CC_EVENT_RTO)
		st->rounds_left = 0;
}

CC_UNDO_TO_PRIOR_CWND(lp)

static void lp_observe(const struct lp_state *st, const struct lp_params *p, u32 out[CC_OBSERVE_N])
{
	out[0] = cc_slow_rtt_q_us(&st->slow, st->delay.rtt_min_us);
	out[1] = lp_range_us(st, p);
	out[2] = st->rounds_left;
	out[3] = (u32)lp_delay_is_high(st, p);
}

KNEE_ALGORITHM(lp, LP_PARAMS, LP_RULES, LP_INVARIANTS, CC_NO_RANDOM,
	       "low priority: yields at the first sign of a queue",
	       "Kuzmanovic, Knightly, IEEE/ACM ToN 14(4), 2006",
	       "sq_us|range_us|inference_rounds_left|delay_is_high");
