// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Scalable TCP: multiplicative increase, multiplicative decrease.
 *
 * T. Kelly: "Scalable TCP: Improving Performance in Highspeed Wide Area Networks", ACM CCR 33(2),
 * 2003, as the project's page summarises it.
 *
 * Above `lwnd` packets cwnd += a for each packet acknowledged and cwnd -= b cwnd at a loss, so a
 * loss is made up for in log(1 - b)/log(1 + a) round trips at any rate. Up to lwnd NewReno.
 *
 * Readings taken where that is silent, each a parameter unless noted:
 *  - SC-a: a is per packet acknowledged, delayed ACKs or not: `count`. `a=0.02` makes up for
 *    delayed ACKs that are counted as one each, as Linux does.
 *  - SC-b: at exactly lwnd NewReno's rules apply (not a parameter).
 *  - SC-c: a loss takes b of cwnd; the result is rounded down (not a parameter).
 *  - SC-d: a timeout is NewReno's (not a parameter).
 */
#include "knee/host.h"
#include "knee/reduce.h"
#include "knee/reno.h"
#include "knee/undo.h"

#define SCALABLE_PARAMS(X) \
	RENO_GROWTH_PARAMS(X) \
	RENO_SSTHRESH_PARAM(X) \
	X(CC_NUMBER_PPM, a_ppm, "a", "", 100, 1000000, 10000, "", \
	  "Kelly 2003: 0.01; Linux: 0.02; reading SC-a", \
	  "packets that the window grows by for each packet acknowledged") \
	X(CC_PROB_PPM, b_ppm, "b", "", 10000, 900000, 125000, "", "Kelly 2003: 0.125", \
	  "fraction of the window that a loss removes") \
	X(CC_PKTS, lwnd_pkts, "lwnd", "", 0, 1000000, 16, "", "Kelly 2003: 16", \
	  "window up to which NewReno's rules apply")

#define SCALABLE_RULES(R)

CC_PARAMS_STRUCT(scalable, SCALABLE_PARAMS);

struct scalable_state {
	u32 prior_cwnd_pkts; /* window before the latest reduction, for undo */
	u32 credit_ppm;	     /* fraction of a packet that the window has grown by */
};

#define SCALABLE_INVARIANTS(X) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, credit_ppm, CC_ONE_PPM - 1U)

static void scalable_init(struct cc_conn *conn, struct scalable_state *st,
			  const struct scalable_params *p)
{
	reno_start(conn, p->initial_ssthresh_pkts);
	st->prior_cwnd_pkts = conn->cwnd_pkts;
}

static void scalable_on_rtt(struct cc_conn *conn, struct scalable_state *st,
			    const struct scalable_params *p, const struct cc_ack *ack)
{
	(void)conn;
	(void)st;
	(void)p;
	(void)ack;
}

static void scalable_avoid(struct cc_conn *conn, struct scalable_state *st,
			   const struct scalable_params *p, u32 counted)
{
	/* Below 2^52. */
	u64 credit_ppm = (u64)counted * p->a_ppm + st->credit_ppm;
	u64 steps = credit_ppm / CC_ONE_PPM;
	u64 room = cc_sub_floor_u32(conn->cwnd_max_pkts, conn->cwnd_pkts);

	st->credit_ppm = (u32)(credit_ppm % CC_ONE_PPM);
	conn->cwnd_pkts =
	    cc_min_u32(conn->cwnd_pkts + (u32)cc_min_u64(steps, room), conn->cwnd_max_pkts);
}

static void scalable_on_ack(struct cc_conn *conn, struct scalable_state *st,
			    const struct scalable_params *p, const struct cc_ack *ack)
{
	u32 counted = reno_counted_to_avoid(conn, p->count, p->ss_limit_pkts, ack->acked_pkts);

	if (counted == 0U)
		return;
	if (conn->cwnd_pkts > p->lwnd_pkts)
		scalable_avoid(conn, st, p, counted);
	else
		reno_avoid(conn, counted);
}

static u32 scalable_ssthresh(struct cc_conn *conn, struct scalable_state *st,
			     const struct scalable_params *p)
{
	st->prior_cwnd_pkts = conn->cwnd_pkts;
	st->credit_ppm = 0U;
	if (conn->cwnd_pkts <= p->lwnd_pkts)
		return reno_ssthresh(conn);
	return cc_reduced_pkts(conn->cwnd_pkts, cc_sub_floor_u32(CC_ONE_PPM, p->b_ppm));
}

static void scalable_on_event(struct cc_conn *conn, struct scalable_state *st,
			      const struct scalable_params *p, u32 event)
{
	(void)st;
	(void)p;
	if (event == CC_EVENT_RTO)
		conn->ssthresh_pkts = reno_ssthresh(conn);
}

CC_UNDO_TO_PRIOR_CWND(scalable)

static void scalable_observe(const struct scalable_state *st, const struct scalable_params *p,
			     u32 out[CC_OBSERVE_N])
{
	(void)p;
	out[0] = st->prior_cwnd_pkts;
	out[1] = st->credit_ppm;
	out[2] = 0U;
	out[3] = 0U;
}

KNEE_ALGORITHM(scalable, SCALABLE_PARAMS, SCALABLE_RULES, SCALABLE_INVARIANTS, CC_NO_RANDOM,
	       "multiplicative increase and decrease", "Kelly, ACM CCR 33(2), 2003",
	       "prior_cwnd_pkts|credit_ppm||");
