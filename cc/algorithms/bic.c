// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * BIC: binary increase, a search for the window at which the last loss occurred.
 *
 * L. Xu, K. Harfoush, I. Rhee: "Binary Increase Congestion Control (BIC) for Fast Long-Distance
 * Networks", INFOCOM 2004, in the later form that the project's page summarises: the paper halves
 * the distance (B = 2) and has Smax 32, Smin 0.01, beta 0.875.
 *
 * In congestion avoidance, per round trip:
 *
 *   cwnd < Wmax:   (Wmax - cwnd) / B, at most Smax; Smin where that is 1 or less
 *   cwnd >= Wmax:  Smin within B of Wmax; then (cwnd - Wmax) / (B - 1), at most Smax
 *
 * A loss: Wmax = cwnd, or cwnd (1 + beta) / 2 where the window stayed below the last Wmax; cwnd =
 * beta cwnd. Up to `low_window` packets NewReno.
 *
 * Readings taken where the summary is silent, none a parameter except through its constants and
 * BI-e:
 *  - BI-a: beta applies to cwnd, not to the data in flight; rounded down.
 *  - BI-b: at exactly low_window NewReno's growth and halving apply; Wmax is set as elsewhere.
 *  - BI-c: before any loss Wmax = 0: the whole window is above it and grows by up to Smax.
 *  - BI-d: a timeout is NewReno's, and sets Wmax as any other loss does.
 *  - BI-e: Linux multiplies the growth by its estimate of the packets per ACK, although it counts
 *    packets. The estimate starts at 2; each ACK in good order makes it r - r/16 + packets, in
 *    whole sixteenths, so that it falls from 2 to 1 only by ACKs of nothing. Linux takes distances
 *    below Wmax in whole packets, grows by 5 % per round trip or more before any loss, and forgets
 *    Wmax at a timeout: `linux_compat`.
 */
#include "knee/host.h"
#include "knee/growth.h"
#include "knee/reduce.h"
#include "knee/reno.h"

/* Distances from Wmax beyond this give Smax for all parameters: Smax B < 2^22. */
#define BIC_DISTANCE_MAX_PKTS (1U << 27)

/* linux_compat: packets per ACK times 2^4, at the start and at most; packets of one ACK at most. */
#define BIC_RATIO_START_Q4 (2U << 4)
#define BIC_RATIO_MAX_Q4 (1U << 17)
#define BIC_RATIO_PKTS_MAX (1U << 12)

#define BIC_PARAMS(X) \
	RENO_GROWTH_PARAMS(X) \
	RENO_SSTHRESH_PARAM(X) \
	X(CC_PROB_PPM, beta_ppm, "beta", "", 100000, 950000, 799805, "", \
	  "BIC in Linux: 819/1024; Xu et al. 2004: 0.875", "fraction of the window that a loss leaves") \
	X(CC_PKTS, smax_pkts, "smax", "", 1, 65535, 16, "", \
	  "BIC in Linux: 16; Xu et al. 2004: 32", "largest growth, packets per round trip") \
	X(CC_NUMBER_PPM, smin_ppm, "smin", "", 1000, 1000000, 200000, "", \
	  "BIC in Linux: 4/20; Xu et al. 2004: 0.01", \
	  "smallest growth, packets per round trip, close to Wmax") \
	X(CC_NUMBER_PPM, b_ppm, "b", "", 1500000, 64000000, 4000000, "", \
	  "BIC in Linux: 4; Xu et al. 2004: 2", \
	  "B: each round trip covers 1/B of the distance to Wmax") \
	X(CC_PKTS, low_window_pkts, "low_window", "", 0, 1000000, 14, "", "Xu et al. 2004: 14", \
	  "window up to which NewReno's rules apply") \
	X(CC_CHOICE, fast_convergence, "fast_convergence", "", 0, 1, 1, "off|on", \
	  "Xu et al. 2004", "lower Wmax further if the window stayed below the last one") \
	X(CC_CHOICE, linux_compat, "linux_compat", "", 0, 1, 0, "off|on", "reading BI-e", \
	  "Linux's growth: times its estimate of packets per ACK, distances in whole packets")

#define BIC_RULES(R)

CC_PARAMS_STRUCT(bic, BIC_PARAMS);

struct bic_state {
	u32 wmax_pkts;
	u32 prior_wmax_pkts; /* prior_*: before the latest reduction, for undo */
	u32 prior_cwnd_pkts;
	u32 credit_q16;	  /* fraction of a packet towards the next +1 */
	u32 increase_q16; /* at the latest ACK, for observe */
	u32 ratio_q4;	  /* linux_compat: packets per ACK */
};

#define BIC_INVARIANTS(X) \
	CC_AT_MOST(X, wmax_pkts, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, prior_wmax_pkts, CC_CWND_MAX_PKTS) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, credit_q16, 0xffffU) \
	CC_AT_MOST(X, increase_q16, 65535U << 16) \
	CC_WITHIN(X, ratio_q4, 1U, BIC_RATIO_MAX_Q4)

static void bic_init(struct cc_conn *conn, struct bic_state *st, const struct bic_params *p)
{
	reno_start(conn, p->initial_ssthresh_pkts);
	st->prior_cwnd_pkts = conn->cwnd_pkts;
	st->ratio_q4 = BIC_RATIO_START_Q4;
}

static void bic_on_rtt(struct cc_conn *conn, struct bic_state *st, const struct bic_params *p,
		       const struct cc_ack *ack)
{
	(void)p;
	if (conn->phase == CC_OPEN)
		st->ratio_q4 = st->ratio_q4 - (st->ratio_q4 >> 4) +
			       cc_min_u32(ack->advanced_pkts, BIC_RATIO_PKTS_MAX);
}

/* pkts / part, times 2^16; below 2^63 before the division. */
static u64 bic_part_q16(u32 pkts, u32 part_ppm)
{
	return cc_div_u64(((u64)pkts << 16) * CC_ONE_PPM, part_ppm, 0ULL);
}

/* Growth, packets per round trip. */
static u64 bic_increase_q16(const struct cc_conn *conn, const struct bic_state *st,
			    const struct bic_params *p)
{
	u64 smin_q16 = ((u64)p->smin_ppm << 16) / CC_ONE_PPM;
	u64 smax_q16 = (u64)p->smax_pkts << 16;
	u32 away_pkts;

	if (conn->cwnd_pkts <= p->low_window_pkts)
		return 1ULL << 16;
	if (conn->cwnd_pkts < st->wmax_pkts) {
		u64 step_q16;

		away_pkts = cc_min_u32(cc_sub_floor_u32(st->wmax_pkts, conn->cwnd_pkts),
				       BIC_DISTANCE_MAX_PKTS);
		step_q16 = bic_part_q16(away_pkts, p->b_ppm);
		if (p->linux_compat)
			step_q16 = step_q16 >> 16 << 16;
		return step_q16 <= 1ULL << 16 ? smin_q16 : cc_min_u64(step_q16, smax_q16);
	}
	away_pkts =
	    cc_min_u32(cc_sub_floor_u32(conn->cwnd_pkts, st->wmax_pkts), BIC_DISTANCE_MAX_PKTS);
	if ((u64)away_pkts * CC_ONE_PPM < p->b_ppm)
		return smin_q16;
	return cc_min_u64(bic_part_q16(away_pkts, cc_sub_floor_u32(p->b_ppm, CC_ONE_PPM)),
			  smax_q16);
}

/* linux_compat: at least 5 % per round trip before any loss; times the packets per ACK. */
static u64 bic_compat_q16(const struct cc_conn *conn, const struct bic_state *st)
{
	u64 least_q16 = st->wmax_pkts == 0U ? ((u64)conn->cwnd_pkts << 16) / 20ULL : 0ULL;

	return cc_max_u64(st->increase_q16, least_q16) * st->ratio_q4 / 16ULL;
}

static void bic_on_ack(struct cc_conn *conn, struct bic_state *st, const struct bic_params *p,
		       const struct cc_ack *ack)
{
	u32 counted = reno_counted_to_avoid(conn, p->count, p->ss_limit_pkts, ack->acked_pkts);

	if (counted == 0U)
		return;
	st->increase_q16 = (u32)bic_increase_q16(conn, st, p);
	cc_grow_q16(conn, &st->credit_q16,
		    p->linux_compat ? bic_compat_q16(conn, st) : st->increase_q16, counted);
}

static u32 bic_ssthresh(struct cc_conn *conn, struct bic_state *st, const struct bic_params *p)
{
	u64 both_ppm = (u64)CC_ONE_PPM + p->beta_ppm;
	u32 cwnd_pkts = conn->cwnd_pkts;

	st->prior_wmax_pkts = st->wmax_pkts;
	st->prior_cwnd_pkts = cwnd_pkts;
	st->credit_q16 = 0U;
	if (p->fast_convergence && cwnd_pkts < st->wmax_pkts)
		st->wmax_pkts = (u32)(cwnd_pkts * both_ppm / (2ULL * CC_ONE_PPM));
	else
		st->wmax_pkts = cwnd_pkts;
	if (cwnd_pkts <= p->low_window_pkts)
		return reno_ssthresh(conn);
	return cc_reduced_pkts(cwnd_pkts, p->beta_ppm);
}

static void bic_on_event(struct cc_conn *conn, struct bic_state *st, const struct bic_params *p,
			 u32 event)
{
	if (event != CC_EVENT_RTO)
		return;
	conn->ssthresh_pkts = reno_ssthresh(conn);
	if (p->linux_compat) {
		st->wmax_pkts = 0U;
		st->ratio_q4 = BIC_RATIO_START_Q4;
	}
}

static u32 bic_undo(struct cc_conn *conn, struct bic_state *st, const struct bic_params *p)
{
	(void)p;
	st->wmax_pkts = st->prior_wmax_pkts;
	return cc_max_u32(conn->cwnd_pkts, st->prior_cwnd_pkts);
}

static void bic_observe(const struct bic_state *st, const struct bic_params *p,
			u32 out[CC_OBSERVE_N])
{
	(void)p;
	out[0] = st->wmax_pkts;
	out[1] = (u32)(((u64)st->increase_q16 * 1000ULL) >> 16);
	out[2] = st->prior_cwnd_pkts;
	out[3] = 0U;
}

KNEE_ALGORITHM(bic, BIC_PARAMS, BIC_RULES, BIC_INVARIANTS, CC_NO_RANDOM,
	       "binary search for the window of the last loss", "Xu, Harfoush, Rhee, INFOCOM 2004",
	       "wmax_pkts|increase_milli|prior_cwnd_pkts|");
