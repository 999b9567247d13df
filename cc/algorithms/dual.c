// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * DUAL: delay-based reduction by an eighth.
 *
 * Z. Wang, J. Crowcroft: "Eliminating periodic packet losses in the 4.3-Tahoe BSD TCP congestion
 * control algorithm", ACM CCR 22(2), 1992, as Table I of D. Hayes, G. Armitage, LCN 2010 (CHD
 * paper) states it.
 *
 * Every second round trip, if the RTT is above the middle of the extremes seen, reduce the window
 * by an eighth. Otherwise, and at losses, as NewReno.
 *
 * Readings taken where the table is silent, each a parameter unless noted:
 *  - the RTT compared is the latest sample of the round (not a parameter; DU-a).
 *  - the test does not run in slow start, whose overflow shows how long the queue is; where it
 *    does, a reduction ends slow start: `ss_test` (DU-b).
 *  - the reduced window is rounded down (not a parameter).
 *  - any delay at all is above the middle of extremes that are a microsecond apart. `margin`, 0 as
 *    in the table, tolerates some (DU-c).
 *  - a round that a recovery overlapped is not tested: its loss has been answered (not a
 *    parameter; DU-d).
 *  - a timeout forgets the RTT extremes (not a parameter; DU-e).
 */
#include "knee/host.h"
#include "knee/delay.h"
#include "knee/reduce.h"
#include "knee/reno.h"
#include "knee/round.h"
#include "knee/undo.h"

enum { DUAL_EVERY_ROUND = 0, DUAL_EVERY_SECOND_ROUND = 1 };

#define DUAL_PARAMS(X) \
	RENO_GROWTH_PARAMS(X) \
	CC_DELACK_PARAM(X) \
	X(CC_CHOICE, period, "period", "", 0, 1, DUAL_EVERY_SECOND_ROUND, "round|second_round", \
	  "CHD paper Table I: every 2nd RTT", "how often the delay is tested") \
	X(CC_PROB_PPM, decrease_ppm, "decrease", "", 0, 1000000, 125000, "", \
	  "CHD paper Table I: beta = 7/8", "fraction of the window that a reduction removes") \
	X(CC_TIME_US, margin_us, "margin", "", 0, 10000000, 0, "", \
	  "CHD paper Table I: none; reading DU-c", \
	  "delay above the middle of the extremes that is tolerated") \
	X(CC_CHOICE, ss_test, "ss_test", "", 0, 1, 0, "off|on", "reading DU-b", \
	  "whether the delay test runs in slow start")

#define DUAL_RULES(R)

CC_PARAMS_STRUCT(dual, DUAL_PARAMS);

struct dual_state {
	struct cc_delay delay;
	struct cc_round round;
	u32 prior_cwnd_pkts; /* before the latest loss, for undo */
	u8 odd_round;
	u8 test_due; /* by the present ACK */
};

#define DUAL_INVARIANTS(X) \
	CC_DELAY_INVARIANTS(X) \
	CC_DELAY_RANGE_INVARIANT(X) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, odd_round, 1U) \
	CC_AT_MOST(X, test_due, 1U)

static void dual_init(struct cc_conn *conn, struct dual_state *st, const struct dual_params *p)
{
	(void)p;
	cc_round_start(&st->round, conn);
	st->prior_cwnd_pkts = conn->cwnd_pkts;
}

static void dual_on_rtt(struct cc_conn *conn, struct dual_state *st, const struct dual_params *p,
			const struct cc_ack *ack)
{
	if (cc_delay_trusts(&st->delay, ack, p->delack_filter))
		cc_delay_sample(&st->delay, (u32)ack->rtt_us);
	st->test_due = 0;
	if (!cc_round_ended(&st->round, conn))
		return;
	conn->notes |= CC_NOTE_ROUND;
	st->odd_round = !st->odd_round;
	st->test_due = p->period == DUAL_EVERY_ROUND || !st->odd_round;
}

/* RTT > (RTTmin + RTTmax) / 2 + margin. In queueing delay: q > qmax / 2 + margin. No sum wraps: q
 * and qmax are at most CC_TIME_MAX_US. */
static int dual_delay_is_high(const struct dual_state *st, const struct dual_params *p)
{
	return 2U * st->delay.q_us > cc_delay_qmax_us(&st->delay) + 2U * p->margin_us;
}

static int dual_test_due(const struct cc_conn *conn, const struct dual_state *st,
			 const struct dual_params *p)
{
	return st->test_due && cc_delay_test_allowed(conn) &&
	       (p->ss_test || !reno_in_slow_start(conn));
}

static void dual_on_ack(struct cc_conn *conn, struct dual_state *st, const struct dual_params *p,
			const struct cc_ack *ack)
{
	if (dual_test_due(conn, st, p) && dual_delay_is_high(st, p))
		cc_delay_reduce(conn, cc_decreased_pkts(conn->cwnd_pkts, p->decrease_ppm));
	else
		reno_grow(conn, p->count, p->ss_limit_pkts, ack->acked_pkts);
}

static u32 dual_ssthresh(struct cc_conn *conn, struct dual_state *st, const struct dual_params *p)
{
	(void)p;
	st->prior_cwnd_pkts = conn->cwnd_pkts;
	return reno_ssthresh(conn);
}

static void dual_on_event(struct cc_conn *conn, struct dual_state *st, const struct dual_params *p,
			  u32 event)
{
	(void)p;
	if (event == CC_EVENT_RTO)
		st->delay = (struct cc_delay){0};
	if (event == CC_EVENT_RECOVERED) {
		cc_round_start(&st->round, conn);
		st->odd_round = 0;
		st->test_due = 0;
	}
}

CC_UNDO_TO_PRIOR_CWND(dual)

static void dual_observe(const struct dual_state *st, const struct dual_params *p,
			 u32 out[CC_OBSERVE_N])
{
	out[0] = st->delay.q_us;
	out[1] = cc_delay_qmax_us(&st->delay);
	out[2] = st->delay.rtt_min_us;
	out[3] = (u32)dual_delay_is_high(st, p);
}

KNEE_ALGORITHM(dual, DUAL_PARAMS, DUAL_RULES, DUAL_INVARIANTS, CC_NO_RANDOM,
	       "every second RTT, an eighth less where the RTT is above the middle of its range",
	       "Wang, Crowcroft, ACM CCR 22(2), 1992", "q_us|qmax_us|rtt_min_us|delay_is_high");
