// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * TCP-Africa: HighSpeed TCP while the path has spare capacity, NewReno otherwise.
 *
 * R. King, R. Baraniuk, R. Riedi: "TCP-Africa: an adaptive and fair rapid increase rule for
 * scalable TCP", INFOCOM 2005, as Table I of D. Hayes, G. Armitage, LCN 2010 (CHD paper) states
 * it; a(W) and b(W) from RFC 3649 (HighSpeed TCP).
 *
 * The packets queued, W (r - RTTmin)/r with the smoothed RTT r, choose at each ACK: below alpha
 * the fast mode, W += a(W)/W for each packet acknowledged, otherwise the slow mode, W += 1/W. A
 * loss removes b(W) W in either mode. Slow start and timeout as NewReno.
 *
 * Readings taken where the sources are silent, each a parameter unless noted:
 *  - r is smoothed per sample with weights 7/8 and 1/8: `srtt_weight` (AF-a).
 *  - alpha is given as 1.64 packets: `alpha`, in steps of 1/1000 packet (AF-b).
 *  - the mode is chosen at every ACK (not a parameter; AF-c).
 *  - until there is an RTT the mode is slow (not a parameter).
 */
#include "knee/host.h"
#include "knee/backlog.h"
#include "knee/delay.h"
#include "knee/growth.h"
#include "knee/hstcp.h"
#include "knee/reno.h"
#include "knee/slow_rtt.h"
#include "knee/undo.h"

#define AFRICA_PARAMS(X) \
	RENO_GROWTH_PARAMS(X) \
	CC_DELACK_PARAM(X) \
	X(CC_PROB_PPM, srtt_weight_ppm, "srtt_weight", "", 0, 999000, 875000, "", \
	  "CHD paper Table I; RFC 6298 s2: 7/8; reading AF-a", \
	  "weight of the past in the smoothed RTT, per sample; 0: no smoothing") \
	X(CC_NUMBER_PPM, alpha_ppm, "alpha", "", 0, 1000000000, 1640000, "", \
	  "King et al. 2005: about 1.64; reading AF-b", \
	  "packets in the queue below which the window grows as HighSpeed TCP's")

#define AFRICA_RULES(R)

CC_PARAMS_STRUCT(africa, AFRICA_PARAMS);

struct africa_state {
	struct cc_delay delay;
	struct cc_slow_rtt slow;
	u32 backlog_thousandths; /* packets queued at the latest ACK */
	u32 increase_q16;	 /* packets per round trip at the latest growth */
	u32 credit_q16;		 /* fraction of a packet towards the next +1 */
	u32 prior_cwnd_pkts;	 /* before the latest loss, for undo */
	u8 fast;		 /* the mode */
};

#define AFRICA_INVARIANTS(X) \
	CC_DELAY_INVARIANTS(X) \
	CC_DELAY_RANGE_INVARIANT(X) \
	CC_SLOW_RTT_INVARIANT(X) \
	CC_AT_MOST(X, credit_q16, 0xffffU) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, fast, 1U)

static void africa_init(struct cc_conn *conn, struct africa_state *st,
			const struct africa_params *p)
{
	(void)p;
	st->prior_cwnd_pkts = conn->cwnd_pkts;
}

static void africa_on_rtt(struct cc_conn *conn, struct africa_state *st,
			  const struct africa_params *p, const struct cc_ack *ack)
{
	u32 rtt_q8_us;

	if (cc_delay_trusts(&st->delay, ack, p->delack_filter)) {
		cc_delay_sample(&st->delay, (u32)ack->rtt_us);
		cc_slow_rtt_sample(&st->slow, (u32)ack->rtt_us, p->srtt_weight_ppm);
	}
	rtt_q8_us = st->slow.srtt_q8_us;
	st->backlog_thousandths = cc_backlog_thousandths(
	    cc_backlog_rtt(conn->cwnd_pkts, rtt_q8_us, st->delay.rtt_min_us), rtt_q8_us);
	st->fast = rtt_q8_us != 0U && st->backlog_thousandths < p->alpha_ppm / 1000U;
}

static void africa_on_ack(struct cc_conn *conn, struct africa_state *st,
			  const struct africa_params *p, const struct cc_ack *ack)
{
	u32 counted = reno_counted_to_avoid(conn, p->count, p->ss_limit_pkts, ack->acked_pkts);

	if (counted == 0U)
		return;
	st->increase_q16 = st->fast ? hstcp_increase_q16(conn->cwnd_pkts) : 1U << 16;
	cc_grow_q16(conn, &st->credit_q16, st->increase_q16, counted);
}

static u32 africa_ssthresh(struct cc_conn *conn, struct africa_state *st,
			   const struct africa_params *p)
{
	u64 kept_q16 = (1ULL << 16) - hstcp_decrease_q16(conn->cwnd_pkts);

	(void)p;
	st->prior_cwnd_pkts = conn->cwnd_pkts;
	return cc_max_u32((u32)((conn->cwnd_pkts * kept_q16) >> 16), CC_CWND_FLOOR_PKTS);
}

static void africa_on_event(struct cc_conn *conn, struct africa_state *st,
			    const struct africa_params *p, u32 event)
{
	(void)st;
	(void)p;
	if (event == CC_EVENT_RTO)
		conn->ssthresh_pkts = reno_ssthresh(conn);
}

CC_UNDO_TO_PRIOR_CWND(africa)

static void africa_observe(const struct africa_state *st, const struct africa_params *p,
			   u32 out[CC_OBSERVE_N])
{
	(void)p;
	out[0] = st->backlog_thousandths;
	out[1] = (u32)(((u64)st->increase_q16 * 1000ULL) >> 16);
	out[2] = st->fast;
	out[3] = cc_slow_rtt_us(&st->slow);
}

KNEE_ALGORITHM(africa, AFRICA_PARAMS, AFRICA_RULES, AFRICA_INVARIANTS, CC_NO_RANDOM,
	       "HighSpeed TCP's growth while the queue is almost empty, otherwise NewReno's",
	       "King, Baraniuk, Riedi, INFOCOM 2005",
	       "backlog_thousandths|increase_thousandths|fast_mode|srtt_us");
