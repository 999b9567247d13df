// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Westwood+: NewReno that reduces the window to the estimated bandwidth times the minimum RTT
 * instead of halving it.
 *
 * L. A. Grieco, S. Mascolo: "Performance Evaluation and Comparison of Westwood+, New Reno, and
 * Vegas TCP Congestion Control", ACM CCR 34(2), 2004, as the project's page summarises it. With
 * `estimator=abse`, TCPW ABSE: R. Wang et al., Globecom 2002 (knee/abse.h).
 *
 * The bandwidth estimate BE of Westwood+: once per round trip, but at most once per
 * `interval_min`, the packets acknowledged since the last sample, divided by the time, pass a
 * low-pass filter. A loss: ssthresh = BE RTTmin, and cwnd = ssthresh if cwnd is more. A timeout:
 * ssthresh = BE RTTmin. Growth is NewReno's.
 *
 * Readings taken where that is silent, each a parameter unless noted:
 *  - WW-a: a loss may find cwnd below BE RTTmin. Then cwnd stays, and slow start follows up to
 *    ssthresh, as the paper; or the window rises to it at once: `loss_window`.
 *  - WW-b: the filter is x <- 7/8 x + 1/8 sample, or two of them in a row as in Linux: `filter`.
 *  - WW-c: the filter starts at the first sample (not a parameter).
 *  - WW-d: the RTT of the interval is the stack's smoothed one (not a parameter).
 *  - WW-e: packets count when they are delivered, including those that duplicates and SACK report,
 *    or, as in Linux, again when the ACK that ends a recovery acknowledges them: `sacked`. The
 *    first ACK after the host knows an RTT only starts the clock (not a parameter).
 *  - WW-f: a pause is part of its interval and lowers the estimate (not a parameter; for ABSE,
 *    `idle`).
 *  - WW-g: before there is an estimate a loss is NewReno's; thresholds are at least 2 packets (not
 *    parameters).
 *  - WW-h: BE RTTmin is evaluated at the loss. Linux halves there, as NewReno, and sets window and
 *    threshold to BE RTTmin at the end of the recovery, even if they rise: `reduce_at`. Here a
 *    BE RTTmin below half the window applies at the loss, because only ssthresh() may reduce.
 *  - ABSE's readings are in knee/abse.h. Nothing here responds to delay: `beta_u_delay` has no
 *    effect.
 */
#include "knee/host.h"
#include "knee/abse.h"
#include "knee/reno.h"

enum { WESTWOOD_PLUS = 0, WESTWOOD_ABSE = 1 };
enum { WESTWOOD_FILTER_ONE = 0, WESTWOOD_FILTER_TWO = 1 };
enum { WESTWOOD_LOSS_MIN = 0, WESTWOOD_LOSS_SSTHRESH = 1 };
enum { WESTWOOD_AT_LOSS = 0, WESTWOOD_AT_RECOVERED = 1 };
enum { WESTWOOD_SACKED_ONCE = 0, WESTWOOD_SACKED_AGAIN = 1 };

#define WESTWOOD_PARAMS(X) \
	RENO_GROWTH_PARAMS(X) \
	RENO_SSTHRESH_PARAM(X) \
	X(CC_CHOICE, estimator, "estimator", "", 0, 1, WESTWOOD_PLUS, "westwood_plus|abse", \
	  "Grieco, Mascolo 2004; Wang et al. 2002", \
	  "bandwidth estimate; tau_const and the parameters after it apply to abse only") \
	X(CC_TIME_US, interval_min_us, "interval_min", "", 0, 10000000, 50000, "", \
	  "Westwood+ in Linux: 50 ms", "westwood_plus: shortest time that a sample covers") \
	X(CC_CHOICE, filter, "filter", "", 0, 1, WESTWOOD_FILTER_TWO, "one|two", \
	  "Westwood+ in Linux: two; reading WW-b", "westwood_plus: number of low-pass filters in series") \
	X(CC_CHOICE, loss_window, "loss_window", "", 0, 1, WESTWOOD_LOSS_MIN, "min|ssthresh", \
	  "Grieco, Mascolo 2004: min; reading WW-a", \
	  "window after a loss: the smaller of cwnd and BE RTTmin, or always BE RTTmin") \
	X(CC_CHOICE, reduce_at, "reduce_at", "", 0, 1, WESTWOOD_AT_LOSS, "loss|recovered", \
	  "Grieco, Mascolo 2004: loss; Linux: recovered; reading WW-h", \
	  "when the window becomes BE RTTmin: at the loss, or after the recovery, which has at most half") \
	X(CC_CHOICE, sacked, "sacked", "", 0, 1, WESTWOOD_SACKED_ONCE, "once|again", \
	  "Linux: again; reading WW-e", \
	  "westwood_plus: packets that a SACK reported count once, or again when acknowledged") \
	ABSE_PARAMS(X)

#define WESTWOOD_RULES(R)

CC_PARAMS_STRUCT(westwood, WESTWOOD_PARAMS);

struct westwood_plus {
	u64 be_q24;	/* BE, packets/s; 0: no estimate yet */
	u64 filter_q24; /* of the first filter */
	u64 start_us;	/* of the interval that is running */
	u32 pkts;	/* delivered in it */
	u32 running;	/* 0: no ACK yet */
};

struct westwood_state {
	union {
		struct cc_abse abse;
		struct westwood_plus plus;
	};
	u32 rtt_min_us;		/* 0: no sample yet */
	u32 prior_cwnd_pkts;	/* window before the latest reduction, for undo */
	u32 loss_ssthresh_pkts; /* ssthresh for the end of the recovery that is running; 0: none */
};

#define WESTWOOD_INVARIANTS(X) \
	ABSE_INVARIANTS(X, p->estimator == WESTWOOD_ABSE) \
	X(be_q24, p->estimator == WESTWOOD_ABSE || st->plus.be_q24 <= ABSE_RATE_MAX_Q24) \
	X(filter_q24, p->estimator == WESTWOOD_ABSE || st->plus.filter_q24 <= ABSE_RATE_MAX_Q24) \
	X(start_us, p->estimator == WESTWOOD_ABSE || st->plus.start_us <= CC_NOW_MAX_US) \
	X(pkts, p->estimator == WESTWOOD_ABSE || st->plus.pkts <= ABSE_PKTS_MAX) \
	X(running, p->estimator == WESTWOOD_ABSE || st->plus.running <= 1U) \
	CC_AT_MOST(X, rtt_min_us, CC_TIME_MAX_US) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, loss_ssthresh_pkts, CC_CWND_MAX_PKTS)

static u64 westwood_be_q24(const struct westwood_state *st, const struct westwood_params *p)
{
	return p->estimator == WESTWOOD_ABSE ? st->abse.be_q24 : st->plus.be_q24;
}

/* BE RTTmin, packets; 0: no estimate. */
static u32 westwood_be_cwnd_pkts(const struct westwood_state *st, const struct westwood_params *p)
{
	u64 window_q8 = abse_window_of_q8(westwood_be_q24(st, p), st->rtt_min_us);

	return (u32)cc_min_u64(window_q8 >> 8, CC_U32_MAX);
}

static void westwood_init(struct cc_conn *conn, struct westwood_state *st,
			  const struct westwood_params *p)
{
	/* The estimators share memory: the proof looks at each alone. */
	/*@ split p->estimator; */
	reno_start(conn, p->initial_ssthresh_pkts);
	st->prior_cwnd_pkts = conn->cwnd_pkts;
}

/* The estimator of Westwood+. */
static void westwood_plus_ack(const struct cc_conn *conn, struct westwood_plus *plus,
			      const struct westwood_params *p, u32 acked_pkts)
{
	u64 elapsed_us = cc_sub_floor_u64(conn->now_us, plus->start_us);
	u32 rtt_us = cc_min_u32(conn->srtt_us, CC_TIME_MAX_US);
	u64 sample_q24;

	if (rtt_us == 0U || acked_pkts == 0U)
		return;
	if (!plus->running) {
		plus->running = 1U;
		plus->start_us = conn->now_us;
		return;
	}
	plus->pkts = cc_min_u32(cc_add_sat_u32(plus->pkts, acked_pkts), ABSE_PKTS_MAX);
	if (elapsed_us < cc_max_u32(rtt_us, p->interval_min_us))
		return;
	sample_q24 = abse_rate_q24((u64)plus->pkts << 11, (u32)cc_min_u64(elapsed_us, CC_U32_MAX));
	plus->start_us = conn->now_us;
	plus->pkts = 0U;
	if (plus->filter_q24 == 0ULL) {
		plus->filter_q24 = sample_q24;
		plus->be_q24 = sample_q24;
		return;
	}
	plus->filter_q24 = (7ULL * plus->filter_q24 + sample_q24) / 8ULL;
	plus->be_q24 = p->filter == WESTWOOD_FILTER_ONE
			   ? plus->filter_q24
			   : (7ULL * plus->be_q24 + plus->filter_q24) / 8ULL;
}

static void westwood_on_rtt(struct cc_conn *conn, struct westwood_state *st,
			    const struct westwood_params *p, const struct cc_ack *ack)
{
	if (ack->rtt_us >= 0) {
		/* A sample of 0 (host clock coarser than the path) must not look like "no sample".
		 */
		u32 rtt_us = cc_min_u32(cc_max_u32((u32)ack->rtt_us, 1U), CC_TIME_MAX_US);

		if (st->rtt_min_us == 0U || rtt_us < st->rtt_min_us)
			st->rtt_min_us = rtt_us;
	}
	if (p->estimator == WESTWOOD_ABSE)
		cc_abse_ack(&st->abse, ABSE_PARAMS_OF(p), conn, st->rtt_min_us, ack->acked_pkts);
	else
		westwood_plus_ack(conn, &st->plus, p,
				  p->sacked == WESTWOOD_SACKED_ONCE
				      ? ack->acked_pkts
				      : cc_max_u32(ack->acked_pkts, ack->advanced_pkts));
}

static void westwood_on_ack(struct cc_conn *conn, struct westwood_state *st,
			    const struct westwood_params *p, const struct cc_ack *ack)
{
	(void)st;
	reno_grow(conn, p->count, p->ss_limit_pkts, ack->acked_pkts);
}

/* BE RTTmin as a threshold: 2 ... cwnd_max; 0: no estimate. */
static u32 westwood_threshold_pkts(const struct cc_conn *conn, const struct westwood_state *st,
				   const struct westwood_params *p)
{
	u32 be_cwnd_pkts = westwood_be_cwnd_pkts(st, p);

	if (westwood_be_q24(st, p) == 0ULL || st->rtt_min_us == 0U)
		return 0U;
	return cc_max_u32(cc_min_u32(be_cwnd_pkts, conn->cwnd_max_pkts), CC_CWND_FLOOR_PKTS);
}

static u32 westwood_ssthresh(struct cc_conn *conn, struct westwood_state *st,
			     const struct westwood_params *p)
{
	u32 pkts = westwood_threshold_pkts(conn, st, p);

	st->prior_cwnd_pkts = conn->cwnd_pkts;
	st->loss_ssthresh_pkts = 0U;
	if (pkts == 0U)
		return reno_ssthresh(conn);
	if (p->reduce_at == WESTWOOD_AT_RECOVERED)
		return cc_min_u32(pkts, reno_ssthresh(conn));
	if (p->loss_window == WESTWOOD_LOSS_SSTHRESH || pkts <= conn->cwnd_pkts)
		return pkts;
	st->loss_ssthresh_pkts = pkts;
	return cc_max_u32(conn->cwnd_pkts, CC_CWND_FLOOR_PKTS);
}

static void westwood_on_event(struct cc_conn *conn, struct westwood_state *st,
			      const struct westwood_params *p, u32 event)
{
	if (event == CC_EVENT_RTO) {
		u32 pkts = westwood_threshold_pkts(conn, st, p);

		st->loss_ssthresh_pkts = 0U;
		conn->ssthresh_pkts = pkts != 0U ? pkts : reno_ssthresh(conn);
	} else if (event == CC_EVENT_RECOVERED && p->reduce_at == WESTWOOD_AT_RECOVERED) {
		u32 pkts = westwood_threshold_pkts(conn, st, p);

		if (pkts == 0U)
			return;
		conn->ssthresh_pkts = pkts;
		if (conn->cwnd_limited)
			conn->cwnd_pkts = cc_max_u32(conn->cwnd_pkts, pkts);
	} else if (event == CC_EVENT_RECOVERED) {
		/* The stack has set the window to the result of ssthresh(), the smaller one. */
		conn->ssthresh_pkts = cc_max_u32(conn->ssthresh_pkts, st->loss_ssthresh_pkts);
		st->loss_ssthresh_pkts = 0U;
	}
}

static u32 westwood_undo(struct cc_conn *conn, struct westwood_state *st,
			 const struct westwood_params *p)
{
	(void)p;
	st->loss_ssthresh_pkts = 0U;
	return cc_max_u32(conn->cwnd_pkts, st->prior_cwnd_pkts);
}

static void westwood_observe(const struct westwood_state *st, const struct westwood_params *p,
			     u32 out[CC_OBSERVE_N])
{
	out[0] = (u32)cc_min_u64((westwood_be_q24(st, p) + (1ULL << 23)) >> 24, CC_U32_MAX);
	out[1] = westwood_be_cwnd_pkts(st, p);
	out[2] = st->rtt_min_us;
	out[3] = st->loss_ssthresh_pkts;
}

KNEE_ALGORITHM(westwood, WESTWOOD_PARAMS, WESTWOOD_RULES, WESTWOOD_INVARIANTS, CC_NO_RANDOM,
	       "NewReno that reduces to the estimated bandwidth times the least RTT",
	       "Grieco, Mascolo, ACM CCR 34(2), 2004",
	       "be_pkts_per_s|be_cwnd_pkts|rtt_min_us|loss_ssthresh_pkts");
