// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Algorithms that are not fit to be used, one for each choice of `fault`. The criteria of
 * `knee evaluate` must be able to fail them.
 */
#include "knee/host.h"
#include "knee/reno.h"
#include "knee/undo.h"

enum {
	BAD_GREEDY, /* grows by ten packets for each one, and reduces nothing */
	BAD_TIMID,  /* never has more than two packets in the network */
	BAD_UNFAIR, /* keeps a window that its start decides */
	BAD_STUCK,  /* keeps 40 packets, whatever the path */
};

#define BAD_PARAMS(X)                                                                             \
	X(CC_CHOICE, fault, "fault", "", 0, 3, BAD_GREEDY, "greedy|timid|unfair|stuck", "none",  \
	  "what is wrong with it")
#define BAD_RULES(R)

CC_PARAMS_STRUCT(bad, BAD_PARAMS);

struct bad_state {
	u32 prior_cwnd_pkts; /* window before the latest reduction, for undo */
	u32 kept_pkts;	     /* the window that it wants */
};

#define BAD_INVARIANTS(X) CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS)

static void bad_init(struct cc_conn *conn, struct bad_state *st, const struct bad_params *p)
{
	st->prior_cwnd_pkts = conn->cwnd_pkts;
	switch (p->fault) {
	case BAD_TIMID:
		st->kept_pkts = 2U;
		break;
	case BAD_UNFAIR:
		st->kept_pkts = 4U + (u32)(conn->now_us % 61U) * 4U;
		break;
	case BAD_STUCK:
		st->kept_pkts = 40U;
		break;
	default:
		st->kept_pkts = 100000U;
		break;
	}
}

static void bad_on_rtt(struct cc_conn *conn, struct bad_state *st, const struct bad_params *p,
		       const struct cc_ack *ack)
{
	(void)st;
	(void)conn;
	(void)p;
	(void)ack;
}

static void bad_on_ack(struct cc_conn *conn, struct bad_state *st, const struct bad_params *p,
		       const struct cc_ack *ack)
{
	u32 wanted_pkts = st->kept_pkts;

	if (p->fault == BAD_GREEDY && conn->cwnd_limited != 0U)
		wanted_pkts =
		    cc_add_sat_u32(conn->cwnd_pkts, cc_min_u32(ack->acked_pkts, 1000U) * 10U);
	else if (p->fault == BAD_GREEDY)
		wanted_pkts = conn->cwnd_pkts;
	if (wanted_pkts > conn->cwnd_pkts && conn->cwnd_limited == 0U)
		return;
	conn->cwnd_pkts = cc_min_u32(wanted_pkts, conn->cwnd_max_pkts);
}

static u32 bad_ssthresh(struct cc_conn *conn, struct bad_state *st, const struct bad_params *p)
{
	st->prior_cwnd_pkts = conn->cwnd_pkts;
	return p->fault == BAD_GREEDY ? cc_max_u32(conn->cwnd_pkts, 2U) : st->kept_pkts;
}

static void bad_on_event(struct cc_conn *conn, struct bad_state *st, const struct bad_params *p,
			 u32 event)
{
	(void)conn;
	(void)st;
	(void)p;
	(void)event;
}

CC_UNDO_TO_PRIOR_CWND(bad)

static void bad_observe(const struct bad_state *st, const struct bad_params *p,
			u32 out[CC_OBSERVE_N])
{
	(void)p;
	out[0] = st->kept_pkts;
	out[1] = 0U;
	out[2] = 0U;
	out[3] = 0U;
}

KNEE_ALGORITHM(bad, BAD_PARAMS, BAD_RULES, BAD_INVARIANTS, CC_NO_RANDOM, "not fit to be used", "none",
	       "kept_pkts|||");
