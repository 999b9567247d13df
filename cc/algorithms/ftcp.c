// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * F-TCP: delay-based congestion control with fair coexistence.
 *
 * J. Sansa-Otim, I. A. Rai, J. M. van der Hulst: "F-TCP: a Delay-based Protocol with Fair
 * Co-existence", ICN 2010.
 *
 * Per ACK (Algorithm 1): estimates the bandwidth share BE (ABSE, knee/abse.h) and the window that
 * it fills without a queue, BE_cwnd = BE RTTmin. When BE_cwnd falls, ssthresh is set to its value
 * before. Below ssthresh slow start; from there on, with probability p cwnd = BE_cwnd, otherwise
 * +1/cwnd.
 * p is gentle RED's over the queueing delay (Fig. 2a), and 0 up to BE_cwnd (Fig. 2b: F-RED). A loss
 * sets window and ssthresh to BE_cwnd; a timeout only ssthresh. alpha = 1: growth is NewReno's.
 *
 * Readings taken where the paper is ambiguous, each a parameter unless noted:
 *  - FT-a: "ssthresh = BDP" at the start needs the BDP, which a sender does not know:
 *    `initial_ssthresh` gives it; 0 is infinity. The initial window is the host's.
 *  - FT-b: any fall of BE_cwnd, however small, sets ssthresh, in congestion avoidance too, where it
 *    may start slow start again: `peak_rule`. It waits while the stack owns the window.
 *  - FT-c, FT-d, FT-e: the third duplicate ACK is the stack's inference of a loss; only ACKs of new
 *    data grow the window (not parameters).
 *  - FT-f: BE_cwnd after a loss may be more than the window was: `loss_window`. A timeout has
 *    ssthresh = BE_cwnd in either case.
 *  - FT-g: the queueing delay is a slow average of the RTT, as PERT's, less RTTmin: `srtt_weight`.
 *  - FT-h: ABSE's beta depends on the latest congestion response, whatever followed (not a
 *    parameter). A congestion mark counts as a loss here.
 *  - FT-i, FT-j, AB-a ... AB-e: in knee/abse.h.
 *  - FT-k: "once per RTT" limits responses, not growth: no second one until the data outstanding
 *    at the first is acknowledged (not a parameter).
 *  - FT-m: a response to delay leaves ssthresh unchanged, as in the listing (not a parameter).
 *  - FT-n: BE_cwnd is at least 2 packets; a loss before there is an estimate is NewReno's (not
 *    parameters).
 */
#include "knee/host.h"
#include "knee/abse.h"
#include "knee/delay.h"
#include "knee/early_response.h"
#include "knee/red.h"
#include "knee/reno.h"
#include "knee/slow_rtt.h"

enum { FTCP_PEAK_ANY_FALL = 0, FTCP_PEAK_SLOW_START = 1 };
enum { FTCP_LOSS_BE_CWND = 0, FTCP_LOSS_SAFE = 1 };

#define FTCP_PARAMS(X) \
	RENO_GROWTH_PARAMS(X) \
	RENO_SSTHRESH_PARAM(X) \
	X(CC_TIME_US, tmin_us, "tmin", "", 0, 5000000, 5000, "", "F-TCP paper sIII-B: 5 ms", \
	  "queueing delay up to which there is no response") \
	X(CC_TIME_US, tmax_us, "tmax", "", 1, 5000000, 10000, "", "F-TCP paper sIII-B: 10 ms", \
	  "queueing delay at which the response probability is pmax; at twice this it is 1") \
	X(CC_PROB_PPM, pmax_ppm, "pmax", "", 0, 1000000, 50000, "", "F-TCP paper sIII-B: 0.05", \
	  "response probability at tmax, per ACK") \
	CC_SLOW_RTT_PARAM(X) \
	X(CC_CHOICE, peak_rule, "peak_rule", "", 0, 1, FTCP_PEAK_ANY_FALL, "any_fall|slow_start", \
	  "F-TCP paper Algorithm 1; reading FT-b", \
	  "when a fall of BE_cwnd sets ssthresh: always, or only to end slow start") \
	X(CC_CHOICE, loss_window, "loss_window", "", 0, 1, FTCP_LOSS_BE_CWND, "be_cwnd|safe", \
	  "F-TCP paper Algorithm 1; reading FT-f", \
	  "window after a loss: BE_cwnd, or the smaller of it and the present window (safe)") \
	ABSE_PARAMS(X)

#define FTCP_RULES(R) R(tmin_us, CC_LESS_THAN, tmax_us)

CC_PARAMS_STRUCT(ftcp, FTCP_PARAMS);

struct ftcp_state {
	struct cc_abse abse;
	u32 rtt_min_us; /* 0: no sample yet */
	struct cc_slow_rtt slow;
	struct cc_gate gate; /* one response to delay per round trip */
	u32 prior_cwnd_pkts; /* window before the latest loss, for undo */
};

#define FTCP_INVARIANTS(X) \
	ABSE_INVARIANTS(X, 1) \
	CC_AT_MOST(X, rtt_min_us, CC_TIME_MAX_US) \
	CC_SLOW_RTT_INVARIANT(X) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS)

/* BE_cwnd, packets * 2^8; 0: no estimate. */
static u64 ftcp_be_cwnd_q8(const struct ftcp_state *st)
{
	return cc_abse_window_q8(&st->abse, st->rtt_min_us);
}

/* A window or ssthresh from packets * 2^8. */
static u32 ftcp_window_pkts(const struct cc_conn *conn, u64 window_q8)
{
	return cc_max_u32((u32)cc_min_u64(window_q8 >> 8, conn->cwnd_max_pkts), CC_CWND_FLOOR_PKTS);
}

static void ftcp_init(struct cc_conn *conn, struct ftcp_state *st, const struct ftcp_params *p)
{
	reno_start(conn, p->initial_ssthresh_pkts);
	cc_gate_init(&st->gate, conn);
	st->prior_cwnd_pkts = conn->cwnd_pkts;
}

static void ftcp_sample(struct ftcp_state *st, const struct ftcp_params *p, u32 rtt_us)
{
	/* A sample of 0 (host clock coarser than the path) must not look like "no sample". */
	u32 taken_us = cc_min_u32(cc_max_u32(rtt_us, 1U), CC_TIME_MAX_US);

	if (st->rtt_min_us == 0U || taken_us < st->rtt_min_us)
		st->rtt_min_us = taken_us;
	cc_slow_rtt_sample(&st->slow, taken_us, p->srtt_weight_ppm);
}

/* Algorithm 1: a fall of BE_cwnd sets ssthresh to its earlier value. */
static void ftcp_peak(struct cc_conn *conn, const struct ftcp_state *st,
		      const struct ftcp_params *p, u64 be_before_q24, u32 rtt_min_before_us)
{
	u64 be_cwnd_before_q8, be_cwnd_q8;

	if (conn->phase == CC_CWR || conn->phase == CC_RECOVERY)
		return;
	if (p->peak_rule == FTCP_PEAK_SLOW_START && !reno_in_slow_start(conn))
		return;
	/* Most often neither factor has fallen. */
	if (st->abse.be_q24 >= be_before_q24 && st->rtt_min_us == rtt_min_before_us)
		return;
	be_cwnd_before_q8 = abse_window_of_q8(be_before_q24, rtt_min_before_us);
	be_cwnd_q8 = ftcp_be_cwnd_q8(st);
	/* BE is finer than BE_cwnd: any fall counts. */
	if (be_cwnd_q8 < be_cwnd_before_q8 ||
	    (be_cwnd_q8 == be_cwnd_before_q8 && st->abse.be_q24 < be_before_q24))
		conn->ssthresh_pkts = ftcp_window_pkts(conn, be_cwnd_before_q8);
}

static void ftcp_on_rtt(struct cc_conn *conn, struct ftcp_state *st, const struct ftcp_params *p,
			const struct cc_ack *ack)
{
	u64 be_before_q24 = st->abse.be_q24;
	u32 rtt_min_before_us = st->rtt_min_us;

	if (ack->rtt_us >= 0)
		ftcp_sample(st, p, (u32)ack->rtt_us);
	cc_abse_ack(&st->abse, ABSE_PARAMS_OF(p), conn, st->rtt_min_us, ack->acked_pkts);
	cc_gate_follow(&st->gate, conn);
	ftcp_peak(conn, st, p, be_before_q24, rtt_min_before_us);
}

/* p of Fig. 2. */
static u64 ftcp_response_prob_q32(const struct cc_conn *conn, const struct ftcp_state *st,
				  const struct ftcp_params *p)
{
	if (conn->cwnd_pkts <= ftcp_window_pkts(conn, ftcp_be_cwnd_q8(st)))
		return 0ULL;
	return cc_red_prob_q32(cc_slow_rtt_q_us(&st->slow, st->rtt_min_us), p->tmin_us, p->tmax_us,
			       2U * p->tmax_us, p->pmax_ppm);
}

static void ftcp_on_ack(struct cc_conn *conn, struct ftcp_state *st, const struct ftcp_params *p,
			const struct cc_ack *ack)
{
	if (!reno_in_slow_start(conn) && cc_delay_test_allowed(conn) && st->abse.be_q24 != 0ULL &&
	    cc_gate_open(&st->gate, conn) &&
	    cc_happens(ack->random, ftcp_response_prob_q32(conn, st, p))) {
		conn->cwnd_pkts = ftcp_window_pkts(conn, ftcp_be_cwnd_q8(st));
		conn->cwnd_cnt = 0U;
		conn->notes |= CC_NOTE_DELAY_BACKOFF;
		st->gate.pos = conn->snd_pos;
		cc_abse_responds_to_delay(&st->abse);
		return;
	}
	reno_grow(conn, p->count, p->ss_limit_pkts, ack->acked_pkts);
}

static u32 ftcp_ssthresh(struct cc_conn *conn, struct ftcp_state *st, const struct ftcp_params *p)
{
	u32 be_cwnd_pkts = ftcp_window_pkts(conn, ftcp_be_cwnd_q8(st));

	st->prior_cwnd_pkts = conn->cwnd_pkts;
	cc_abse_responds_to_loss(&st->abse);
	if (st->abse.be_q24 == 0ULL)
		return reno_ssthresh(conn);
	if (p->loss_window == FTCP_LOSS_SAFE)
		return cc_max_u32(cc_min_u32(conn->cwnd_pkts, be_cwnd_pkts), CC_CWND_FLOOR_PKTS);
	return be_cwnd_pkts;
}

static void ftcp_on_event(struct cc_conn *conn, struct ftcp_state *st, const struct ftcp_params *p,
			  u32 event)
{
	(void)p;
	if (event == CC_EVENT_RTO && st->abse.be_q24 != 0ULL)
		conn->ssthresh_pkts = ftcp_window_pkts(conn, ftcp_be_cwnd_q8(st));
}

static u32 ftcp_undo(struct cc_conn *conn, struct ftcp_state *st, const struct ftcp_params *p)
{
	(void)p;
	cc_abse_undo_loss(&st->abse);
	return cc_max_u32(conn->cwnd_pkts, st->prior_cwnd_pkts);
}

static void ftcp_observe(const struct ftcp_state *st, const struct ftcp_params *p,
			 u32 out[CC_OBSERVE_N])
{
	(void)p;
	out[0] = (u32)cc_min_u64((st->abse.be_q24 + (1ULL << 23)) >> 24, CC_U32_MAX);
	out[1] = (u32)cc_min_u64(ftcp_be_cwnd_q8(st) >> 8, CC_U32_MAX);
	out[2] = cc_slow_rtt_q_us(&st->slow, st->rtt_min_us);
	out[3] = (u32)(((u64)cc_abse_instability_q20(&st->abse) * CC_ONE_PPM) >> 20);
}

KNEE_ALGORITHM(
    ftcp, FTCP_PARAMS, FTCP_RULES, FTCP_INVARIANTS, CC_USES_RANDOM,
    "reduction on delay to an estimate of the bandwidth share; slow start up to that estimate",
    "Sansa-Otim, Rai, van der Hulst, ICN 2010", "be_pkts_per_s|be_cwnd_pkts|q_us|u_ppm_of_max");
