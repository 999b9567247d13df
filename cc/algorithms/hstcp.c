// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * HSTCP: HighSpeed TCP, AIMD whose increase and decrease depend on the window.
 *
 * S. Floyd: "HighSpeed TCP for Large Congestion Windows", RFC 3649.
 *
 * In congestion avoidance cwnd += a(w)/w for each packet acknowledged; at a loss cwnd = (1 - b(w))
 * cwnd (section 5). Up to 38 packets that is NewReno. The functions and the readings taken for them
 * are in knee/hstcp.h.
 *
 * Further readings, none a parameter:
 *  - HS-c: a and b are the formulas' at every window, not the rounded table of appendix B.
 *  - HS-d: the RFC does not change timeouts and slow start: NewReno's. Limited slow start (RFC
 *    3742), which it also recommends, is not implemented.
 *  - HS-e: b applies to cwnd, not to the data in flight, since b is a function of cwnd.
 */
#include "knee/host.h"
#include "knee/growth.h"
#include "knee/hstcp.h"
#include "knee/reduce.h"
#include "knee/reno.h"
#include "knee/undo.h"

#define HSTCP_PARAMS(X) RENO_GROWTH_PARAMS(X) RENO_SSTHRESH_PARAM(X)
#define HSTCP_RULES(R)

CC_PARAMS_STRUCT(hstcp, HSTCP_PARAMS);

struct hstcp_state {
	u32 prior_cwnd_pkts; /* window before the latest reduction, for undo */
	u32 credit_q16;	     /* fraction of a packet towards the next +1 */
	u32 increase_q16;    /* a(w) at the latest ACK, for observe */
	u32 decrease_q16;    /* b(w) at the latest loss, for observe; 0: none yet */
};

#define HSTCP_INVARIANTS(X) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, credit_q16, 0xffffU) \
	CC_AT_MOST(X, decrease_q16, 1U << 15)

static void hstcp_init(struct cc_conn *conn, struct hstcp_state *st, const struct hstcp_params *p)
{
	reno_start(conn, p->initial_ssthresh_pkts);
	st->prior_cwnd_pkts = conn->cwnd_pkts;
	st->increase_q16 = 1U << 16;
}

static void hstcp_on_rtt(struct cc_conn *conn, struct hstcp_state *st, const struct hstcp_params *p,
			 const struct cc_ack *ack)
{
	(void)conn;
	(void)st;
	(void)p;
	(void)ack;
}

static void hstcp_on_ack(struct cc_conn *conn, struct hstcp_state *st, const struct hstcp_params *p,
			 const struct cc_ack *ack)
{
	u32 counted = reno_counted_to_avoid(conn, p->count, p->ss_limit_pkts, ack->acked_pkts);

	if (counted == 0U)
		return;
	st->increase_q16 = hstcp_increase_q16(conn->cwnd_pkts);
	cc_grow_q16(conn, &st->credit_q16, st->increase_q16, counted);
}

static u32 hstcp_ssthresh(struct cc_conn *conn, struct hstcp_state *st,
			  const struct hstcp_params *p)
{
	(void)p;
	st->prior_cwnd_pkts = conn->cwnd_pkts;
	st->credit_q16 = 0U;
	st->decrease_q16 = hstcp_decrease_q16(conn->cwnd_pkts);
	return cc_reduced_q32_pkts(conn->cwnd_pkts,
				   (u64)cc_sub_floor_u32(1U << 16, st->decrease_q16) << 16);
}

static void hstcp_on_event(struct cc_conn *conn, struct hstcp_state *st,
			   const struct hstcp_params *p, u32 event)
{
	(void)st;
	(void)p;
	if (event == CC_EVENT_RTO)
		conn->ssthresh_pkts = reno_ssthresh(conn);
}

CC_UNDO_TO_PRIOR_CWND(hstcp)

static void hstcp_observe(const struct hstcp_state *st, const struct hstcp_params *p,
			  u32 out[CC_OBSERVE_N])
{
	(void)p;
	out[0] = (u32)(((u64)st->increase_q16 * 1000ULL) >> 16);
	out[1] = (u32)(((u64)st->decrease_q16 * CC_ONE_PPM) >> 16);
	out[2] = st->prior_cwnd_pkts;
	out[3] = 0U;
}

KNEE_ALGORITHM(hstcp, HSTCP_PARAMS, HSTCP_RULES, HSTCP_INVARIANTS, CC_NO_RANDOM,
	       "HighSpeed TCP: increase and decrease depend on the window", "RFC 3649",
	       "a_milli|b_ppm|prior_cwnd_pkts|");
