// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * TCP-Illinois: losses decide when the window falls, delay by how much it grows and falls.
 *
 * S. Liu, T. Basar, R. Srikant: "TCP-Illinois: a loss- and delay-based congestion control algorithm
 * for high-speed networks", VALUETOOLS 2006; Performance Evaluation 65, 2008. We did not
 * have the paper: the functions and their constants are those of public implementations.
 *
 * Once per round trip, from the average queueing delay da of the round and the largest one seen,
 * dm:
 *
 *   alpha = alpha_max             for da <= eta1 dm, else kappa1 / (kappa2 + da),
 *   beta  = beta_min              for da <= eta2 dm,
 *           kappa3 + kappa4 da    between, linear,
 *           beta_max              for da >= eta3 dm;
 *
 * kappa1 and kappa2 such that alpha runs from alpha_max at eta1 dm to alpha_min at dm. Each packet
 * acknowledged adds alpha/cwnd; a loss removes beta cwnd. Below a threshold window alpha = 1 and
 * beta = 1/2, as NewReno. Slow start and timeout as NewReno.
 *
 * Readings taken where the sources are silent, each a parameter unless noted:
 *  - once the delay has left the low range (da <= eta1 dm), alpha returns to alpha_max only after
 *    `low_rounds` consecutive round trips of low delay, and stays as it is until then (IL-a). Linux
 *    does not restart the count after a round of higher delay.
 *  - da is the mean of the round's samples (not a parameter).
 *  - base RTT and dm are extremes of all samples and never fade (not a parameter; IL-b).
 *  - until the first round has been measured, and after a timeout until the next one has, alpha = 1
 *    and beta = 1/2 (not a parameter; IL-c).
 *  - where dm = 0 nothing is queued: low delay (not a parameter).
 *  - the threshold window is compared when alpha and beta are used (not a parameter; IL-d).
 *  - packets grow the window when they are delivered, or, as in Linux, when they are cumulatively
 *    acknowledged: the ACK that ends a recovery then counts a whole window: `counted` (IL-e).
 */
#include "knee/host.h"
#include "knee/delay.h"
#include "knee/growth.h"
#include "knee/mean.h"
#include "knee/reduce.h"
#include "knee/reno.h"
#include "knee/round.h"
#include "knee/undo.h"

#define ILLINOIS_ONE_Q16 (1U << 16)
#define ILLINOIS_HALF_PPM (CC_ONE_PPM / 2U)
enum { ILLINOIS_DELIVERED = 0, ILLINOIS_ACKNOWLEDGED = 1 };

/* Largest value of the parameter alpha_max. */
#define ILLINOIS_ALPHA_MAX_Q16 (100U << 16)

#define ILLINOIS_PARAMS(X) \
	RENO_GROWTH_PARAMS(X) \
	CC_DELACK_PARAM(X) \
	X(CC_NUMBER_PPM, alpha_min_ppm, "alpha_min", "", 10000, 100000000, 300000, "", \
	  "Illinois: 0.3", "increase per round trip at the largest delay, packets") \
	X(CC_NUMBER_PPM, alpha_max_ppm, "alpha_max", "", 10000, 100000000, 10000000, "", \
	  "Illinois: 10", "increase per round trip at low delay, packets") \
	X(CC_PROB_PPM, beta_min_ppm, "beta_min", "", 0, 1000000, 125000, "", "Illinois: 1/8", \
	  "fraction of the window that a loss removes at low delay") \
	X(CC_PROB_PPM, beta_max_ppm, "beta_max", "", 0, 1000000, 500000, "", "Illinois: 1/2", \
	  "fraction of the window that a loss removes at high delay") \
	X(CC_NUMBER_PPM, eta1_ppm, "eta1", "", 0, 990000, 10000, "", "Illinois: 0.01", \
	  "fraction of the largest delay up to which alpha is alpha_max") \
	X(CC_NUMBER_PPM, eta2_ppm, "eta2", "", 0, 1000000, 100000, "", "Illinois: 0.1", \
	  "fraction of the largest delay up to which beta is beta_min") \
	X(CC_NUMBER_PPM, eta3_ppm, "eta3", "", 0, 1000000, 800000, "", "Illinois: 0.8", \
	  "fraction of the largest delay from which beta is beta_max") \
	X(CC_COUNT, low_rounds, "low_rounds", "", 0, 200, 5, "", \
	  "Illinois: 5; reading IL-a", \
	  "consecutive round trips of low delay that restore alpha_max") \
	X(CC_PKTS, threshold_pkts, "threshold", "", 0, 1073741824, 15, "", "Illinois: 15", \
	  "window below which alpha is 1 and beta is 1/2") \
	X(CC_CHOICE, counted, "counted", "", 0, 1, ILLINOIS_DELIVERED, "delivered|acknowledged", \
	  "Linux: acknowledged; reading IL-e", \
	  "packets of an ACK that grow the window: newly delivered, or cumulatively acknowledged")

#define ILLINOIS_RULES(R) \
	R(alpha_min_ppm, CC_LESS_THAN, alpha_max_ppm) \
	R(beta_min_ppm, CC_LESS_THAN, beta_max_ppm) \
	R(eta2_ppm, CC_LESS_THAN, eta3_ppm)

CC_PARAMS_STRUCT(illinois, ILLINOIS_PARAMS);

struct illinois_state {
	struct cc_mean rtt; /* of the round that is running */
	struct cc_delay delay;
	struct cc_round round;
	u32 da_q4_us;	     /* average queueing delay of the latest round measured */
	u32 alpha_q16;	     /* packets per round trip */
	u32 beta_ppm;	     /* decrease */
	u32 credit_q16;	     /* fraction of a packet towards the next +1 */
	u32 advanced_pkts;   /* that the present ACK acknowledges cumulatively */
	u32 prior_cwnd_pkts; /* before the latest loss, for undo */
	u8 left_low;	     /* the delay has been above the low range since alpha_max */
	u8 low_rounds;	     /* of low delay in a row since then */
};

#define ILLINOIS_INVARIANTS(X) \
	CC_MEAN_INVARIANTS(X) \
	CC_DELAY_INVARIANTS(X) \
	CC_DELAY_RANGE_INVARIANT(X) \
	CC_AT_MOST(X, da_q4_us, CC_TIME_MAX_US << 4) \
	CC_AT_MOST(X, alpha_q16, ILLINOIS_ALPHA_MAX_Q16) \
	CC_AT_MOST(X, beta_ppm, CC_ONE_PPM) \
	CC_AT_MOST(X, credit_q16, 0xffffU) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, left_low, 1U) \
	CC_AT_MOST(X, low_rounds, p->low_rounds)

static void illinois_reset(struct illinois_state *st)
{
	st->alpha_q16 = ILLINOIS_ONE_Q16;
	st->beta_ppm = ILLINOIS_HALF_PPM;
	st->left_low = 0;
	st->low_rounds = 0;
}

static void illinois_init(struct cc_conn *conn, struct illinois_state *st,
			  const struct illinois_params *p)
{
	(void)p;
	cc_round_start(&st->round, conn);
	illinois_reset(st);
	st->prior_cwnd_pkts = conn->cwnd_pkts;
}

/* eta dm, in 1/16 us as all delays here: at most 2^28. */
static u32 illinois_part_q4_us(const struct illinois_state *st, u32 eta_ppm)
{
	return (u32)(((u64)cc_delay_qmax_us(&st->delay) << 4) * eta_ppm / CC_ONE_PPM);
}

/*
 * kappa1 / (kappa2 + da). With D = (1 - eta1) dm, x = da - eta1 dm and rho = alpha_min/alpha_max
 * that is
 *
 *   alpha_max D rho / (D rho + x (1 - rho)).
 *
 * Delays have 28 bits and rho 24; the quotient is made in two steps of 11 bits each. Requires
 * eta1 dm < da <= dm.
 */
static u32 illinois_alpha_q16(const struct illinois_state *st, const struct illinois_params *p)
{
	u64 d1_q4_us = illinois_part_q4_us(st, p->eta1_ppm);
	u64 dm_q4_us = (u64)cc_delay_qmax_us(&st->delay) << 4;
	u64 rho_q24 =
	    cc_min_u64(cc_div_u64((u64)p->alpha_min_ppm << 24, p->alpha_max_ppm, 0ULL), 1ULL << 24);
	u64 num = cc_sub_floor_u64(dm_q4_us, d1_q4_us) * rho_q24;
	u64 rest = cc_sub_floor_u64(st->da_q4_us, d1_q4_us) * ((1ULL << 24) - rho_q24);
	u64 den = cc_max_u64(num + rest, 1ULL);
	u64 high_q11 = cc_min_u64((num << 11) / den, 1ULL << 11);
	u64 low_q11 = cc_min_u64((((num << 11) % den) << 11) / den, 1ULL << 11);
	u64 alpha_max_q16 = ((u64)p->alpha_max_ppm << 16) / CC_ONE_PPM;

	return (u32)((alpha_max_q16 * ((high_q11 << 11) + low_q11)) >> 22);
}

/* kappa3 + kappa4 da. Requires eta2 < eta3. */
static u32 illinois_beta_ppm(const struct illinois_state *st, const struct illinois_params *p)
{
	u32 d2_q4_us = illinois_part_q4_us(st, p->eta2_ppm);
	u32 d3_q4_us = illinois_part_q4_us(st, p->eta3_ppm);
	u64 span_ppm = cc_sub_floor_u32(p->beta_max_ppm, p->beta_min_ppm);

	if (st->da_q4_us <= d2_q4_us)
		return p->beta_min_ppm;
	if (st->da_q4_us >= d3_q4_us)
		return p->beta_max_ppm;
	return p->beta_min_ppm +
	       (u32)cc_min_u64(cc_div_u64(span_ppm * cc_sub_floor_u32(st->da_q4_us, d2_q4_us),
					  cc_sub_floor_u32(d3_q4_us, d2_q4_us), 0ULL),
			       span_ppm);
}

/* alpha, once the delay has been low for long enough. */
static void illinois_set_alpha(struct illinois_state *st, const struct illinois_params *p)
{
	if (st->da_q4_us > illinois_part_q4_us(st, p->eta1_ppm)) {
		st->left_low = 1;
		st->low_rounds = 0;
		st->alpha_q16 = illinois_alpha_q16(st, p);
		return;
	}
	if (st->left_low) {
		st->low_rounds = (u8)cc_min_u32(st->low_rounds + 1U, 0xffU);
		if (st->low_rounds < p->low_rounds)
			return;
		st->left_low = 0;
		st->low_rounds = 0;
	}
	st->alpha_q16 = (u32)(((u64)p->alpha_max_ppm << 16) / CC_ONE_PPM);
}

static void illinois_on_rtt(struct cc_conn *conn, struct illinois_state *st,
			    const struct illinois_params *p, const struct cc_ack *ack)
{
	u32 da_q8_us;

	st->advanced_pkts = ack->advanced_pkts;
	if (cc_delay_trusts(&st->delay, ack, p->delack_filter)) {
		cc_delay_sample(&st->delay, (u32)ack->rtt_us);
		cc_mean_sample(&st->rtt, (u32)ack->rtt_us);
	}
	if (!cc_round_ended(&st->round, conn))
		return;
	conn->notes |= CC_NOTE_ROUND;
	if (st->rtt.n == 0U)
		return;
	da_q8_us = cc_sub_floor_u32(cc_mean_q8_us(&st->rtt), st->delay.rtt_min_us << 8);
	st->da_q4_us = da_q8_us >> 4;
	st->rtt = (struct cc_mean){0};
	illinois_set_alpha(st, p);
	st->beta_ppm = illinois_beta_ppm(st, p);
}

static int illinois_is_small(const struct cc_conn *conn, const struct illinois_params *p)
{
	return conn->cwnd_pkts < p->threshold_pkts;
}

static void illinois_on_ack(struct cc_conn *conn, struct illinois_state *st,
			    const struct illinois_params *p, const struct cc_ack *ack)
{
	u32 pkts = p->counted == ILLINOIS_DELIVERED ? ack->acked_pkts : st->advanced_pkts;
	u32 counted = reno_counted_to_avoid(conn, p->count, p->ss_limit_pkts, pkts);

	if (counted != 0U)
		cc_grow_q16(conn, &st->credit_q16,
			    illinois_is_small(conn, p) ? ILLINOIS_ONE_Q16 : st->alpha_q16, counted);
}

static u32 illinois_ssthresh(struct cc_conn *conn, struct illinois_state *st,
			     const struct illinois_params *p)
{
	u32 beta_ppm = illinois_is_small(conn, p) ? ILLINOIS_HALF_PPM : st->beta_ppm;

	st->prior_cwnd_pkts = conn->cwnd_pkts;
	return cc_max_u32(cc_decreased_pkts(conn->cwnd_pkts, beta_ppm), CC_CWND_FLOOR_PKTS);
}

static void illinois_on_event(struct cc_conn *conn, struct illinois_state *st,
			      const struct illinois_params *p, u32 event)
{
	(void)p;
	if (event == CC_EVENT_RTO) {
		conn->ssthresh_pkts = reno_ssthresh(conn);
		illinois_reset(st);
	}
}

CC_UNDO_TO_PRIOR_CWND(illinois)

static void illinois_observe(const struct illinois_state *st, const struct illinois_params *p,
			     u32 out[CC_OBSERVE_N])
{
	(void)p;
	out[0] = st->da_q4_us >> 4;
	out[1] = cc_delay_qmax_us(&st->delay);
	out[2] = (u32)(((u64)st->alpha_q16 * 1000ULL) >> 16);
	out[3] = st->beta_ppm;
}

KNEE_ALGORITHM(illinois, ILLINOIS_PARAMS, ILLINOIS_RULES, ILLINOIS_INVARIANTS, CC_NO_RANDOM,
	       "loss-based AIMD whose increase and decrease depend on the queueing delay",
	       "Liu, Basar, Srikant, VALUETOOLS 2006", "da_us|dm_us|alpha_thousandths|beta_ppm");
