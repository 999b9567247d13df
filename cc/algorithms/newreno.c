// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * NewReno: the loss-based baseline of the papers.
 *
 * RFC 5681 (TCP Congestion Control), RFC 6582 (NewReno), RFC 3465 (counting packets, not ACKs).
 *
 * Differences from the RFCs: slow start only while cwnd < ssthresh strictly (the RFC leaves
 * equality open); the recovery itself belongs to the host.
 */
#include "knee/host.h"
#include "knee/reno.h"
#include "knee/undo.h"

#define NEWRENO_PARAMS(X) RENO_GROWTH_PARAMS(X) RENO_SSTHRESH_PARAM(X)
#define NEWRENO_RULES(R)

CC_PARAMS_STRUCT(newreno, NEWRENO_PARAMS);

struct newreno_state {
	u32 prior_cwnd_pkts; /* window before the latest reduction, for undo */
};

#define NEWRENO_INVARIANTS(X) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS)

static void newreno_init(struct cc_conn *conn, struct newreno_state *st,
			 const struct newreno_params *p)
{
	reno_start(conn, p->initial_ssthresh_pkts);
	st->prior_cwnd_pkts = conn->cwnd_pkts;
}

static void newreno_on_rtt(struct cc_conn *conn, struct newreno_state *st,
			   const struct newreno_params *p, const struct cc_ack *ack)
{
	(void)conn;
	(void)st;
	(void)p;
	(void)ack;
}

static void newreno_on_ack(struct cc_conn *conn, struct newreno_state *st,
			   const struct newreno_params *p, const struct cc_ack *ack)
{
	(void)st;
	reno_grow(conn, p->count, p->ss_limit_pkts, ack->acked_pkts);
}

static u32 newreno_ssthresh(struct cc_conn *conn, struct newreno_state *st,
			    const struct newreno_params *p)
{
	(void)p;
	st->prior_cwnd_pkts = conn->cwnd_pkts;
	return reno_ssthresh(conn);
}

static void newreno_on_event(struct cc_conn *conn, struct newreno_state *st,
			     const struct newreno_params *p, u32 event)
{
	(void)conn;
	(void)st;
	(void)p;
	(void)event;
}

CC_UNDO_TO_PRIOR_CWND(newreno)

static void newreno_observe(const struct newreno_state *st, const struct newreno_params *p,
			    u32 out[CC_OBSERVE_N])
{
	(void)p;
	out[0] = st->prior_cwnd_pkts;
	out[1] = 0U;
	out[2] = 0U;
	out[3] = 0U;
}

KNEE_ALGORITHM(newreno, NEWRENO_PARAMS, NEWRENO_RULES, NEWRENO_INVARIANTS, CC_NO_RANDOM,
	       "loss-based AIMD, the papers' baseline", "RFC 5681, RFC 6582", "prior_cwnd_pkts|||");
