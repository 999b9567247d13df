// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * PERT: probabilistic early response TCP.
 *
 * S. Bhandarkar, A. L. N. Reddy, Y. Zhang, D. Loguinov: "Emulating AQM from end hosts", SIGCOMM
 * 2007, as far as the papers here restate it: section III-B and Fig. 2a of J. Sansa-Otim, I. Rai,
 * J. M. van der Hulst (F-TCP), and Table I of D. Hayes, G. Armitage (CHD). The smoothing weight and
 * the decrease, which they leave out, are taken from public implementations.
 *
 * A sender that acts as if a gentle RED queue had marked its packets: at every ACK, with
 * probability f(q) (F-TCP paper Fig. 2a) of the smoothed queueing delay q, reduce the window by 35
 * %, at most once per round trip; otherwise grow as NewReno. Loss and timeout as NewReno.
 *
 * Readings taken where the sources are ambiguous, each a parameter unless noted:
 *  - the early response needs cwnd > ssthresh, so none happens in slow start: `ss_test` (PE-a). In
 *    congestion avoidance it may come at cwnd = ssthresh too, which whole packets keep for a round
 *    trip after a reduction and a real-valued window leaves at the next ACK (not a parameter).
 *  - the reduced window is rounded down to whole packets (not a parameter).
 *  - one response per round trip: until the highest position sent at the response is acknowledged:
 *    `holdoff` (MP-g).
 *  - an ACK that gave no sample is tested with the last smoothed delay (not a parameter).
 *  - RTT samples that a delayed ACK may have lengthened are left out: `delack_filter` (RTT).
 */
#include "knee/host.h"
#include "knee/delay.h"
#include "knee/early_response.h"
#include "knee/red.h"
#include "knee/reno.h"
#include "knee/slow_rtt.h"
#include "knee/undo.h"

#define PERT_PARAMS(X) \
	CC_EARLY_RESPONSE_PARAMS(X) \
	X(CC_PROB_PPM, decrease_ppm, "decrease", "", 0, 1000000, 350000, "", \
	  "PERT: 0.35, from public implementations", \
	  "fraction of the window that an early response removes")

#define PERT_RULES(R) CC_EARLY_RESPONSE_RULES(R)

CC_PARAMS_STRUCT(pert, PERT_PARAMS);

struct pert_state {
	struct cc_delay delay;
	struct cc_slow_rtt slow;
	struct cc_gate gate;
	u32 prior_cwnd_pkts; /* window before the latest loss reduction, for undo */
};

#define PERT_INVARIANTS(X) \
	CC_DELAY_INVARIANTS(X) \
	CC_DELAY_RANGE_INVARIANT(X) \
	CC_SLOW_RTT_INVARIANT(X) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS)

static u32 pert_q_us(const struct pert_state *st)
{
	return cc_slow_rtt_q_us(&st->slow, st->delay.rtt_min_us);
}

static u64 pert_prob_q32(const struct pert_state *st, const struct pert_params *p)
{
	return cc_red_prob_q32(pert_q_us(st), p->tmin_us, p->tmax_us, 2U * p->tmax_us, p->pmax_ppm);
}

static void pert_init(struct cc_conn *conn, struct pert_state *st, const struct pert_params *p)
{
	(void)p;
	cc_gate_init(&st->gate, conn);
	st->prior_cwnd_pkts = conn->cwnd_pkts;
}

static void pert_on_rtt(struct cc_conn *conn, struct pert_state *st, const struct pert_params *p,
			const struct cc_ack *ack)
{
	if (cc_delay_trusts(&st->delay, ack, p->delack_filter)) {
		cc_delay_sample(&st->delay, (u32)ack->rtt_us);
		cc_slow_rtt_sample(&st->slow, (u32)ack->rtt_us, p->srtt_weight_ppm);
	}
	cc_gate_follow(&st->gate, conn);
}

static void pert_on_ack(struct cc_conn *conn, struct pert_state *st, const struct pert_params *p,
			const struct cc_ack *ack)
{
	if (cc_early_response_due(conn, &st->gate, &st->slow, p->ss_test) &&
	    cc_happens(ack->random, pert_prob_q32(st, p))) {
		u64 kept_ppm = cc_sub_floor_u32(CC_ONE_PPM, p->decrease_ppm);

		cc_early_response(conn, &st->gate, (u32)(conn->cwnd_pkts * kept_ppm / CC_ONE_PPM),
				  p->holdoff);
		return;
	}
	reno_grow(conn, p->count, p->ss_limit_pkts, ack->acked_pkts);
}

static u32 pert_ssthresh(struct cc_conn *conn, struct pert_state *st, const struct pert_params *p)
{
	(void)p;
	st->prior_cwnd_pkts = conn->cwnd_pkts;
	return reno_ssthresh(conn);
}

static void pert_on_event(struct cc_conn *conn, struct pert_state *st, const struct pert_params *p,
			  u32 event)
{
	(void)conn;
	(void)st;
	(void)p;
	(void)event;
}

CC_UNDO_TO_PRIOR_CWND(pert)

static void pert_observe(const struct pert_state *st, const struct pert_params *p,
			 u32 out[CC_OBSERVE_N])
{
	out[0] = pert_q_us(st);
	out[1] = (u32)((pert_prob_q32(st, p) * CC_ONE_PPM) >> 32);
	out[2] = cc_slow_rtt_us(&st->slow);
	out[3] = st->delay.rtt_min_us;
}

KNEE_ALGORITHM(pert, PERT_PARAMS, PERT_RULES, PERT_INVARIANTS, CC_USES_RANDOM,
	       "gentle RED emulated at the sender over the smoothed queueing delay",
	       "Bhandarkar et al., SIGCOMM 2007", "q_us|p_ppm|srtt_us|rtt_min_us");
