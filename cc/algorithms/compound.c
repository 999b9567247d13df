// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Compound TCP: the sum of NewReno's window and a window that follows delay.
 *
 * K. Tan, J. Song, Q. Zhang, M. Sridharan: "A compound TCP approach for high-speed and long
 * distance networks", INFOCOM 2006; draft-sridharan-tcpm-ctcp. We had neither: the rules and
 * constants are those of public implementations and the literature, each a parameter.
 *
 * win = cwnd + dwnd. In congestion avoidance each packet acknowledged adds 1/win to cwnd. Once per
 * round trip diff = win (1 - baseRTT/RTT), the packets queued, sets dwnd:
 *
 *   diff < gamma:   dwnd += max(alpha win^(3/4) - 1, 0)
 *   diff >= gamma:  dwnd = max(dwnd - zeta diff, 0)
 *   loss:           dwnd = max(win (1 - beta) - cwnd/2, 0), cwnd = cwnd/2
 *
 * dwnd is 0 at the start and after a timeout, and grows only above a minimum window. Slow start
 * and timeout as NewReno.
 *
 * Readings taken where the sources are silent or differ, each a parameter unless noted:
 *  - the exponent k is 3/4 (not a parameter).
 *  - the RTT of diff is a smoothed one (CHD paper Table I): `srtt_weight` (CT-a).
 *  - gamma is 30 packets, or learned at losses from the packets that cwnd alone keeps queued:
 *    `gamma_tuning`, `lambda`, `gamma_low`, `gamma_high` (CT-b).
 *  - the window above which dwnd may grow is given as 38 to 41: `low_window` (CT-c).
 *  - the growth of dwnd is spread over the ACKs of the next round (not a parameter; CT-d).
 *  - dwnd is kept in the slow start that follows a recovery which left win below ssthresh (not a
 *    parameter; CT-e).
 *  - when dwnd shrinks, ssthresh moves down to the window, so slow start does not resume (not a
 *    parameter).
 *  - a timeout resets baseRTT and the learned gamma (not a parameter; CT-f).
 *  - a round that a recovery overlapped changes nothing (not a parameter).
 */
#include "knee/host.h"
#include "knee/backlog.h"
#include "knee/delay.h"
#include "knee/growth.h"
#include "knee/reno.h"
#include "knee/root.h"
#include "knee/round.h"
#include "knee/slow_rtt.h"

#define COMPOUND_PARAMS(X) \
	RENO_GROWTH_PARAMS(X) \
	CC_DELACK_PARAM(X) \
	X(CC_PROB_PPM, srtt_weight_ppm, "srtt_weight", "", 0, 999000, 875000, "", \
	  "CHD paper Table I; RFC 6298 s2: 7/8; reading CT-a", \
	  "weight of the past in the smoothed RTT, per sample; 0: no smoothing") \
	X(CC_PROB_PPM, alpha_ppm, "alpha", "", 0, 1000000, 125000, "", "CTCP: 1/8", \
	  "growth of dwnd: alpha win^(3/4) - 1 packets per round trip") \
	X(CC_PROB_PPM, beta_ppm, "beta", "", 0, 1000000, 500000, "", "CTCP: 1/2", \
	  "fraction of the window that a loss removes") \
	X(CC_NUMBER_PPM, zeta_ppm, "zeta", "", 0, 2000000, 1000000, "", "CTCP: 1", \
	  "how fast dwnd shrinks: zeta diff per round trip") \
	X(CC_PKTS, gamma_pkts, "gamma", "", 1, 1000000, 30, "", "CTCP: 30", \
	  "packets in the queue from which dwnd shrinks") \
	X(CC_CHOICE, gamma_tuning, "gamma_tuning", "", 0, 1, 0, "off|on", "CTCP; reading CT-b", \
	  "learn gamma at losses") \
	X(CC_PROB_PPM, lambda_ppm, "lambda", "", 0, 1000000, 800000, "", \
	  "ns-3: 0.8; reading CT-b", "weight of the latest loss in gamma") \
	X(CC_PKTS, gamma_low_pkts, "gamma_low", "", 1, 1000000, 5, "", "CTCP: 5", \
	  "smallest gamma that can be learned") \
	X(CC_PKTS, gamma_high_pkts, "gamma_high", "", 1, 1000000, 30, "", "CTCP: 30", \
	  "largest gamma that can be learned") \
	X(CC_PKTS, low_window_pkts, "low_window", "", 0, 1073741824, 41, "", \
	  "CTCP: 38 to 41; reading CT-c", "window from which dwnd grows")

#define COMPOUND_RULES(R) R(gamma_low_pkts, CC_LESS_THAN, gamma_high_pkts)

CC_PARAMS_STRUCT(compound, COMPOUND_PARAMS);

/* Largest gamma that the parameters allow. */
#define COMPOUND_GAMMA_MAX_THOUSANDTHS (1000000U * 1000U)

struct compound_state {
	u64 dwnd_q16;	    /* delay window, packets; cwnd is the rest of the window */
	u64 gain_q16;	    /* growth of dwnd in this round trip, packets */
	u64 prior_dwnd_q16; /* prior_*: before the latest loss, for undo */
	struct cc_delay delay;
	struct cc_slow_rtt slow;
	struct cc_round round;
	u32 gamma_thousandths; /* packets */
	u32 prior_gamma_thousandths;
	u32 prior_cwnd_pkts;
	u32 diff_thousandths; /* of the latest round, packets */
	u8 round_ended;	      /* by the present ACK */
};

#define COMPOUND_INVARIANTS(X) \
	CC_AT_MOST(X, dwnd_q16, (u64)CC_CWND_MAX_PKTS << 16) \
	CC_AT_MOST(X, gain_q16, CC_ALPHA_MAX_Q16) \
	CC_AT_MOST(X, prior_dwnd_q16, (u64)CC_CWND_MAX_PKTS << 16) \
	CC_DELAY_INVARIANTS(X) \
	CC_DELAY_RANGE_INVARIANT(X) \
	CC_SLOW_RTT_INVARIANT(X) \
	CC_AT_MOST(X, gamma_thousandths, COMPOUND_GAMMA_MAX_THOUSANDTHS) \
	CC_AT_MOST(X, prior_gamma_thousandths, COMPOUND_GAMMA_MAX_THOUSANDTHS) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, round_ended, 1U)

static u32 compound_dwnd_pkts(const struct compound_state *st)
{
	return (u32)(st->dwnd_q16 >> 16);
}

/* The window may have shrunk since dwnd was set: dwnd is at most all of it. */
static void compound_fit(const struct cc_conn *conn, struct compound_state *st)
{
	st->dwnd_q16 = cc_min_u64(st->dwnd_q16, (u64)conn->cwnd_pkts << 16);
}

static void compound_init(struct cc_conn *conn, struct compound_state *st,
			  const struct compound_params *p)
{
	cc_round_start(&st->round, conn);
	st->gamma_thousandths = p->gamma_pkts * 1000U;
	st->prior_gamma_thousandths = st->gamma_thousandths;
	st->prior_cwnd_pkts = conn->cwnd_pkts;
}

/* diff of a window of so many packets, times the smoothed RTT. */
static u64 compound_diff_rtt(const struct compound_state *st, u32 pkts)
{
	return cc_backlog_rtt(pkts, st->slow.srtt_q8_us, st->delay.rtt_min_us);
}

static void compound_on_rtt(struct cc_conn *conn, struct compound_state *st,
			    const struct compound_params *p, const struct cc_ack *ack)
{
	if (cc_delay_trusts(&st->delay, ack, p->delack_filter)) {
		cc_delay_sample(&st->delay, (u32)ack->rtt_us);
		cc_slow_rtt_sample(&st->slow, (u32)ack->rtt_us, p->srtt_weight_ppm);
	}
	st->round_ended = (u8)cc_round_ended(&st->round, conn);
	if (!st->round_ended)
		return;
	conn->notes |= CC_NOTE_ROUND;
	st->diff_thousandths =
	    cc_backlog_thousandths(compound_diff_rtt(st, conn->cwnd_pkts), st->slow.srtt_q8_us);
}

/* max(alpha win^(3/4) - 1, 0), packets. */
static u64 compound_gain_q16(const struct cc_conn *conn, const struct compound_params *p)
{
	u64 alpha_q16 = ((u64)p->alpha_ppm << 16) / CC_ONE_PPM;
	u64 gain_q16 = (alpha_q16 * cc_three_quarters_power_q8(conn->cwnd_pkts)) >> 8;

	if (conn->cwnd_pkts < p->low_window_pkts)
		return 0ULL;
	return cc_min_u64(cc_sub_floor_u64(gain_q16, 1ULL << 16), CC_ALPHA_MAX_Q16);
}

/* dwnd += gain/win for each packet acknowledged. The product is below 2^63.6. */
static void compound_gain(struct cc_conn *conn, struct compound_state *st, u32 acked_pkts)
{
	u64 room_q16 = (u64)cc_sub_floor_u32(conn->cwnd_max_pkts, conn->cwnd_pkts) << 16;
	u64 acked = cc_min_u32(acked_pkts, CC_COUNTED_MAX_PKTS);
	u64 part_q16 = st->gain_q16 * acked / cc_max_u32(conn->cwnd_pkts, 1U);
	u32 before_pkts = compound_dwnd_pkts(st);

	st->dwnd_q16 += cc_min_u64(part_q16, room_q16);
	conn->cwnd_pkts =
	    cc_min_u32(conn->cwnd_pkts + cc_sub_floor_u32(compound_dwnd_pkts(st), before_pkts),
		       conn->cwnd_max_pkts);
}

/* dwnd = max(dwnd - zeta diff, 0). diff is below 2^47, zeta at most 2^17. */
static void compound_drain(struct cc_conn *conn, struct compound_state *st,
			   const struct compound_params *p)
{
	u64 zeta_q16 = ((u64)p->zeta_ppm << 16) / CC_ONE_PPM;
	u64 diff_q16 = cc_backlog_q16(compound_diff_rtt(st, conn->cwnd_pkts), st->slow.srtt_q8_us);
	u64 fall_q16 = cc_min_u64((diff_q16 * zeta_q16) >> 16, st->dwnd_q16);
	u32 before_pkts = compound_dwnd_pkts(st);
	u32 fall_pkts;

	st->dwnd_q16 = cc_sub_floor_u64(st->dwnd_q16, fall_q16);
	fall_pkts = cc_sub_floor_u32(before_pkts, compound_dwnd_pkts(st));
	if (fall_pkts != 0U)
		cc_delay_reduce(conn, cc_sub_floor_u32(conn->cwnd_pkts, fall_pkts));
}

static void compound_on_ack(struct cc_conn *conn, struct compound_state *st,
			    const struct compound_params *p, const struct cc_ack *ack)
{
	int due = st->round_ended && st->slow.srtt_q8_us != 0U;
	int full = st->diff_thousandths >= st->gamma_thousandths;
	int avoids = cc_delay_test_allowed(conn) && !reno_in_slow_start(conn);

	compound_fit(conn, st);
	if (due)
		st->gain_q16 = full ? 0ULL : compound_gain_q16(conn, p);
	if (due && avoids && full)
		compound_drain(conn, st, p);
	else if (avoids && conn->cwnd_limited)
		compound_gain(conn, st, ack->acked_pkts);
	if (!(conn->notes & CC_NOTE_DELAY_BACKOFF))
		reno_grow(conn, p->count, p->ss_limit_pkts, ack->acked_pkts);
}

/* gamma = (1 - lambda) gamma + lambda 3/4 diff of cwnd alone, between gamma_low and gamma_high. */
static void compound_learn(const struct cc_conn *conn, struct compound_state *st,
			   const struct compound_params *p)
{
	u32 cwnd_pkts = cc_sub_floor_u32(conn->cwnd_pkts, compound_dwnd_pkts(st));
	u64 reno_thousandths =
	    cc_backlog_thousandths(compound_diff_rtt(st, cwnd_pkts), st->slow.srtt_q8_us);
	u64 was = (u64)st->gamma_thousandths * (CC_ONE_PPM - p->lambda_ppm);
	u64 learnt = (was + reno_thousandths * 3ULL / 4ULL * p->lambda_ppm) / CC_ONE_PPM;

	if (!p->gamma_tuning || st->slow.srtt_q8_us == 0U)
		return;
	if (learnt < p->gamma_low_pkts * 1000ULL)
		learnt = p->gamma_low_pkts * 1000ULL;
	st->gamma_thousandths = (u32)cc_min_u64(learnt, p->gamma_high_pkts * 1000ULL);
}

/* (1 - beta) win, rounded down to 2^-16. */
static u64 compound_left_q16(u32 pkts, u32 beta_ppm)
{
	u64 left_ppm = (u64)pkts * cc_sub_floor_u32(CC_ONE_PPM, beta_ppm);
	u64 whole = left_ppm / CC_ONE_PPM;

	return (whole << 16) + ((left_ppm % CC_ONE_PPM) << 16) / CC_ONE_PPM;
}

static u32 compound_ssthresh(struct cc_conn *conn, struct compound_state *st,
			     const struct compound_params *p)
{
	u64 left_q16 = compound_left_q16(conn->cwnd_pkts, p->beta_ppm);
	u64 half_q16;

	st->prior_cwnd_pkts = conn->cwnd_pkts;
	st->prior_dwnd_q16 = st->dwnd_q16;
	st->prior_gamma_thousandths = st->gamma_thousandths;
	compound_fit(conn, st);
	compound_learn(conn, st, p);
	half_q16 = (u64)cc_sub_floor_u32(conn->cwnd_pkts, compound_dwnd_pkts(st)) << 15;
	st->dwnd_q16 = left_q16 > half_q16 ? left_q16 - half_q16 : 0ULL;
	return cc_max_u32((u32)((half_q16 + st->dwnd_q16) >> 16), CC_CWND_FLOOR_PKTS);
}

static void compound_on_event(struct cc_conn *conn, struct compound_state *st,
			      const struct compound_params *p, u32 event)
{
	if (event == CC_EVENT_RECOVERED) {
		cc_round_start(&st->round, conn);
		st->round_ended = 0;
		st->gain_q16 = 0ULL;
	}
	if (event == CC_EVENT_CWND_RESTART || event == CC_EVENT_RTO) {
		st->dwnd_q16 = 0ULL;
		st->gain_q16 = 0ULL;
	}
	if (event == CC_EVENT_RTO) {
		conn->ssthresh_pkts = reno_ssthresh(conn);
		st->delay = (struct cc_delay){0};
		st->slow = (struct cc_slow_rtt){0};
		st->gamma_thousandths = p->gamma_pkts * 1000U;
	}
}

static u32 compound_undo(struct cc_conn *conn, struct compound_state *st,
			 const struct compound_params *p)
{
	(void)p;
	st->dwnd_q16 = st->prior_dwnd_q16;
	st->gamma_thousandths = st->prior_gamma_thousandths;
	return cc_max_u32(conn->cwnd_pkts, st->prior_cwnd_pkts);
}

static void compound_observe(const struct compound_state *st, const struct compound_params *p,
			     u32 out[CC_OBSERVE_N])
{
	(void)p;
	out[0] = compound_dwnd_pkts(st);
	out[1] = st->diff_thousandths;
	out[2] = st->gamma_thousandths;
	out[3] = st->delay.rtt_min_us;
}

KNEE_ALGORITHM(compound, COMPOUND_PARAMS, COMPOUND_RULES, COMPOUND_INVARIANTS, CC_NO_RANDOM,
	       "NewReno's window and one that grows fast while few packets are queued",
	       "Tan et al., INFOCOM 2006",
	       "dwnd_pkts|diff_thousandths|gamma_thousandths|base_rtt_us");
