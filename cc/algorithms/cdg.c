// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * CDG: CAIA delay gradient.
 *
 * D. A. Hayes, G. Armitage: "Revisiting TCP congestion control using delay gradients", Networking
 * 2011. Rules and values are those of published descriptions of it; we did not have the paper.
 *
 * Once per marked-packet round, how much the round's least and largest RTT have changed since the
 * round before: g_min and g_max, each a moving average over a = 8 rounds. There is no base RTT and
 * no threshold of delay.
 *
 *   P(backoff) = 1 - e^(-g/G) for g > 0, tried with g_min and with g_max;
 *   a backoff is w <- 0.7 w, else the window grows as NewReno's;
 *   after five consecutive backoffs without a gradient below 0, which had no effect because a
 *   loss-based flow keeps the queue full, the next five are suppressed;
 *   a shadow window s that a NewReno flow would have had; a loss when the queue is inferred to be
 * full sets w <- max(w, s) / 2, any other loss leaves the window unchanged.
 *
 * The sum of the last a gradients is the rise of the RTT over a rounds. The state keeps the
 * last eight rounds' extremes in full (24 bits), so that the averages are exact.
 *
 * Readings taken, each a parameter unless noted:
 *  - CG-a: both gradients are tried with independent draws. One draw against
 *    1 - e^(-(g_min + g_max)/G) is the same; `signal` takes only one gradient.
 *  - CG-b: in slow start, where delays change fast, the gradient is not smoothed: `ss_test`.
 *  - CG-c: the round after a backoff measures packets sent before it and is not tested: `holdoff`.
 *  - CG-d: the suppression after ineffectual backoffs is counted in backoffs that would have
 *    happened, or in rounds: `suspend_unit`. A gradient below 0, of either kind, or a loss ends it.
 *  - CG-e: the queue is full if g_min > 0 and g_max <= 0 (while a queue is almost full the minimum
 * RTT still rises, the largest cannot), empty if g_max < 0 and g_min >= 0, rising or falling if
 * both gradients are. Otherwise its state is unchanged, so a full queue that persists stays full
 * (not a parameter).
 *  - CG-f: before anything is inferred, and in slow start, a loss is congestion (not a parameter).
 *  - CG-g: s <- max(w, s) at every delay backoff, +1 per RTT like w, halved by every loss:
 *    `shadow`, `shadow_loss`. It is cleared when the queue is inferred to be empty, which a
 *    loss-based flow would prevent: `shadow_clear`.
 *  - CG-h: +1 packet at the end of a round, or 1/w per ACK: `growth`.
 *  - CG-i: the first round's gradients are 0, and so are those before it. A round without an RTT
 *    sample has no gradient and no test (not a parameter).
 *  - CG-k: a round that a recovery overlaps gives no growth and no RTT (not a parameter).
 *  - CG-l: Linux tries one gradient, g_min if it is above 0 and else g_max, and a loss with the
 *    shadow window never raises the window: `linux_compat`.
 *  - timeout: NewReno's (not a parameter).
 */
#include "knee/host.h"
#include "knee/delay.h"
#include "knee/exponential.h"
#include "knee/reduce.h"
#include "knee/reno.h"
#include "knee/round.h"
#include "knee/shadow.h"

enum { CDG_SIGNAL_BOTH = 0, CDG_SIGNAL_MIN = 1, CDG_SIGNAL_MAX = 2 };
enum { CDG_SS_OFF = 0, CDG_SS_RAW = 1, CDG_SS_SMOOTHED = 2 };
enum { CDG_HOLDOFF_NONE = 0, CDG_HOLDOFF_ONE_ROUND = 1 };
enum { CDG_SUSPEND_BACKOFFS = 0, CDG_SUSPEND_ROUNDS = 1 };
enum { CDG_CLEAR_NEVER = 0, CDG_CLEAR_EMPTY = 1 };
enum { CDG_SHADOW_LOSS_KEEP = 0, CDG_SHADOW_LOSS_HALVE = 1 };

#define CDG_PARAMS(X) \
	RENO_GROWTH_PARAMS(X) \
	CC_DELACK_PARAM(X) \
	X(CC_TIME_US, scale_us, "scale", "", 1, 10000000, 3000, "", "CDG paper: G = 3 ms", \
	  "G: gradient, per round trip, at which the backoff probability is 1 - 1/e") \
	X(CC_COUNT, smoothing, "smoothing", "smoothing_factor", 1, 8, 8, \
	  "", "CDG paper: a = 8", "rounds over which gradients are averaged, 1 to 8") \
	X(CC_PROB_PPM, beta_delay_ppm, "beta_delay", "", 1, 1000000, 700000, "", "CDG paper: 0.7", \
	  "fraction of the window that a delay backoff leaves") \
	X(CC_PROB_PPM, beta_loss_ppm, "beta_loss", "", 1, 1000000, 500000, "", "CDG paper: 0.5", \
	  "fraction of the window that a loss with a full queue leaves") \
	X(CC_CHOICE, signal, "signal", "", 0, 2, CDG_SIGNAL_BOTH, "both|min|max", \
	  "CDG paper; reading CG-a", "gradients that may cause a backoff") \
	X(CC_CHOICE, ss_test, "ss_test", "", 0, 2, CDG_SS_RAW, "off|raw|smoothed", \
	  "CDG paper; reading CG-b", "gradient tested in slow start") \
	X(CC_CHOICE, holdoff, "holdoff", "", 0, 1, CDG_HOLDOFF_ONE_ROUND, "none|one_round", \
	  "CDG paper; reading CG-c", \
	  "whether to test the round after a backoff, which measures packets sent before it") \
	X(CC_COUNT, ineffectual, "ineffectual", "loss_compete_consec_cong", 0, 200, \
	  5, "", "CDG paper: 5", \
	  "consecutive backoffs without a gradient below 0 that count as ineffectual; 0: never") \
	X(CC_COUNT, suspend, "suspend", "loss_compete_hold_backoff", 0, 200, 5, \
	  "", "CDG paper: 5", "backoffs suppressed after ineffectual ones") \
	X(CC_CHOICE, suspend_unit, "suspend_unit", "", 0, 1, CDG_SUSPEND_BACKOFFS, \
	  "backoffs|rounds", "reading CG-d", "what `suspend` counts") \
	X(CC_CHOICE, loss_tolerance, "loss_tolerance", "", 0, 1, 1, "off|on", "CDG paper", \
	  "leave the window unchanged at a loss when the queue is not full") \
	X(CC_CHOICE, shadow, "shadow", "", 0, 1, 1, "off|on", "CDG paper", \
	  "keep the shadow window and use it at losses with a full queue") \
	X(CC_CHOICE, shadow_clear, "shadow_clear", "", 0, 1, CDG_CLEAR_EMPTY, "never|empty", \
	  "reading CG-g", "whether an empty queue clears the shadow window") \
	X(CC_CHOICE, shadow_loss, "shadow_loss", "", 0, 1, CDG_SHADOW_LOSS_HALVE, "keep|halve", \
	  "reading CG-g", "what a loss does to the shadow window") \
	X(CC_CHOICE, growth, "growth", "", 0, 1, SHADOW_GROWTH_ROUND, "round|ack", \
	  "CDG paper; reading CG-h", "+1 packet at the end of a round, or 1/w per ACK") \
	X(CC_CHOICE, linux_compat, "linux_compat", "", 0, 1, 0, "off|on", "reading CG-l", \
	  "Linux's rules: one gradient, and a shadow window that never raises the window")

#define CDG_RULES(R)

CC_PARAMS_STRUCT(cdg, CDG_PARAMS);

enum cdg_queue {
	CDG_QUEUE_UNKNOWN = 0,
	CDG_QUEUE_RISING = 1,
	CDG_QUEUE_FULL = 2,
	CDG_QUEUE_FALLING = 3,
	CDG_QUEUE_EMPTY = 4,
};

/* Round states at the present ACK. */
enum { CDG_ROUND_RUNS = 0, CDG_ROUND_ENDED = 1, CDG_ROUND_MEASURED = 2 };

/* RTTs of the last eight measured rounds, 24 bits each, the newest in the lowest bits; 0: none. */
struct cdg_history {
	u64 lo, mid, hi;
};

#define CDG_RISE_MAX_US ((s32)CC_TIME_MAX_US)

struct cdg_state {
	struct cdg_history least_us;
	struct cdg_history largest_us;
	struct cc_round round;
	s32 rise_min_us; /* g_min and g_max, each times the rounds averaged over */
	s32 rise_max_us;
	u32 least_now_us; /* of the round that is running; 0: no sample yet */
	u32 largest_now_us;
	u32 shadow_pkts;     /* s; 0: inactive */
	u32 prior_cwnd_pkts; /* prior_*: before the latest loss, for undo */
	u32 prior_shadow_pkts;
	u8 delack_sus;	/* as in struct cc_delay */
	u8 round_ended; /* by the present ACK: CDG_ROUND_* */
	u8 holding;	/* the running round measures packets sent before a backoff */
	u8 queue;	/* enum cdg_queue */
	u8 backoffs;	/* in a row, without a gradient below 0 */
	u8 suspended;	/* how many more backoffs, or rounds */
	u8 prior_backoffs;
	u8 prior_suspended;
};

#define CDG_INVARIANTS(X) \
	X(rise_min_us, st->rise_min_us >= -CDG_RISE_MAX_US && st->rise_min_us <= CDG_RISE_MAX_US) \
	X(rise_max_us, st->rise_max_us >= -CDG_RISE_MAX_US && st->rise_max_us <= CDG_RISE_MAX_US) \
	CC_AT_MOST(X, least_now_us, CC_TIME_MAX_US) \
	CC_AT_MOST(X, largest_now_us, CC_TIME_MAX_US) \
	X(now_range, st->least_now_us <= st->largest_now_us) \
	CC_AT_MOST(X, shadow_pkts, CC_CWND_MAX_PKTS) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, prior_shadow_pkts, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, delack_sus, CC_DELACK_SUS_MAX) \
	CC_AT_MOST(X, round_ended, CDG_ROUND_MEASURED) \
	CC_AT_MOST(X, holding, 1U) \
	CC_AT_MOST(X, queue, CDG_QUEUE_EMPTY) \
	CC_AT_MOST(X, backoffs, p->ineffectual) \
	CC_AT_MOST(X, suspended, p->suspend)

#define CDG_LANE_BITS 24U

static u32 cdg_lane(u64 word)
{
	return (u32)(word & CC_TIME_MAX_US);
}

static u32 cdg_smoothing(const struct cdg_params *p)
{
	return p->smoothing;
}

/* Puts a round's RTT into the history. Returns its rise over `rounds` rounds, the sum of that many
 * gradients. Before the first RTT all are taken to equal it. */
static s32 cdg_push(struct cdg_history *history, u32 rtt_us, u32 rounds)
{
	u64 lo = history->lo, mid = history->mid, hi = history->hi;
	u32 then_us = rtt_us;

	for (u32 i = 1U; i <= 8U; i++) {
		if (i <= rounds && cdg_lane(lo) != 0U)
			then_us = cdg_lane(lo);
		lo = lo >> CDG_LANE_BITS | cc_shift_out_u64(mid, 64U - CDG_LANE_BITS);
		mid = mid >> CDG_LANE_BITS | cc_shift_out_u64(hi, 64U - CDG_LANE_BITS);
		hi >>= CDG_LANE_BITS;
	}
	history->hi =
	    cc_shift_out_u64(history->hi, CDG_LANE_BITS) | history->mid >> (64U - CDG_LANE_BITS);
	history->mid =
	    cc_shift_out_u64(history->mid, CDG_LANE_BITS) | history->lo >> (64U - CDG_LANE_BITS);
	history->lo = cc_shift_out_u64(history->lo, CDG_LANE_BITS) | rtt_us;
	return (s32)rtt_us - (s32)then_us;
}

/* The latest gradient, not smoothed. */
static s32 cdg_latest_us(const struct cdg_history *history)
{
	u32 now_us = cdg_lane(history->lo);
	u32 before_us = cdg_lane(history->lo >> CDG_LANE_BITS);

	return before_us != 0U ? (s32)now_us - (s32)before_us : 0;
}

static void cdg_round_clear(struct cdg_state *st)
{
	st->least_now_us = 0U;
	st->largest_now_us = 0U;
}

static void cdg_init(struct cc_conn *conn, struct cdg_state *st, const struct cdg_params *p)
{
	(void)p;
	cc_round_start(&st->round, conn);
	st->prior_cwnd_pkts = conn->cwnd_pkts;
}

static void cdg_sample(struct cdg_state *st, const struct cdg_params *p, const struct cc_ack *ack)
{
	struct cc_delay delay = {.delack_sus = st->delack_sus};
	int trusted = cc_delay_trusts(&delay, ack, p->delack_filter);
	u32 rtt_us;

	st->delack_sus = (u8)delay.delack_sus;
	if (!trusted)
		return;
	rtt_us = cc_min_u32(cc_max_u32((u32)ack->rtt_us, 1U), CC_TIME_MAX_US);
	if (st->least_now_us == 0U || rtt_us < st->least_now_us)
		st->least_now_us = rtt_us;
	st->largest_now_us = cc_max_u32(st->largest_now_us, rtt_us);
}

/* CG-e. */
static u8 cdg_queue_state(u8 before, s32 min, s32 max)
{
	if (min > 0)
		return max > 0 ? CDG_QUEUE_RISING : CDG_QUEUE_FULL;
	if (max < 0)
		return min < 0 ? CDG_QUEUE_FALLING : CDG_QUEUE_EMPTY;
	return before;
}

/* The gradients of the round that has ended, and the queue's state that they imply. */
static void cdg_measure(struct cdg_state *st, const struct cdg_params *p)
{
	st->rise_min_us = cdg_push(&st->least_us, st->least_now_us, cdg_smoothing(p));
	st->rise_max_us = cdg_push(&st->largest_us, st->largest_now_us, cdg_smoothing(p));
	st->queue = cdg_queue_state(st->queue, st->rise_min_us, st->rise_max_us);
	if (st->rise_min_us < 0 || st->rise_max_us < 0) {
		st->backoffs = 0;
		st->suspended = 0;
	}
	if (st->queue == CDG_QUEUE_EMPTY && p->shadow_clear == CDG_CLEAR_EMPTY)
		st->shadow_pkts = 0U;
}

static void cdg_on_rtt(struct cc_conn *conn, struct cdg_state *st, const struct cdg_params *p,
		       const struct cc_ack *ack)
{
	cdg_sample(st, p, ack);
	st->round_ended = CDG_ROUND_RUNS;
	if (!cc_round_ended(&st->round, conn))
		return;
	conn->notes |= CC_NOTE_ROUND;
	st->round_ended = CDG_ROUND_ENDED;
	if (st->least_now_us != 0U) {
		st->round_ended = CDG_ROUND_MEASURED;
		cdg_measure(st, p);
	}
	cdg_round_clear(st);
}

/* P(backoff) = 1 - e^(-x), where x is the sum of the gradients above 0 over G. */
static u64 cdg_prob_q32(s32 min_us, s32 max_us, u32 rounds, const struct cdg_params *p)
{
	u64 rise_us = 0ULL;

	if (min_us > 0 && p->signal != CDG_SIGNAL_MAX)
		rise_us += (u32)min_us;
	if (max_us > 0 && p->signal != CDG_SIGNAL_MIN && !(p->linux_compat && min_us > 0))
		rise_us += (u32)max_us;
	/* 25 and 32 bits over at most 27. */
	return (1ULL << 32) -
	       cc_exp_neg_q32(cc_div_u64(rise_us << 32, (u64)rounds * p->scale_us, 0ULL));
}

static u64 cdg_prob_smoothed_q32(const struct cdg_state *st, const struct cdg_params *p)
{
	return cdg_prob_q32(st->rise_min_us, st->rise_max_us, cdg_smoothing(p), p);
}

/* True if the round ends in a backoff; counts backoffs and suppressed ones. */
static int cdg_backs_off(const struct cc_conn *conn, struct cdg_state *st,
			 const struct cdg_params *p, const struct cc_ack *ack)
{
	int slow_start = reno_in_slow_start(conn);
	u64 prob_q32;
	int happens;

	if (!cc_delay_test_allowed(conn) || (slow_start && p->ss_test == CDG_SS_OFF))
		return 0;
	if (slow_start && p->ss_test == CDG_SS_RAW)
		prob_q32 = cdg_prob_q32(cdg_latest_us(&st->least_us),
					cdg_latest_us(&st->largest_us), 1U, p);
	else
		prob_q32 = cdg_prob_smoothed_q32(st, p);
	happens = cc_happens(ack->random, prob_q32);
	if (st->suspended != 0) {
		if (happens || p->suspend_unit == CDG_SUSPEND_ROUNDS)
			st->suspended--;
		return 0;
	}
	if (!happens)
		return 0;
	st->backoffs = (u8)cc_min_u32(st->backoffs + 1U, 0xffU);
	if (st->backoffs >= p->ineffectual) {
		st->backoffs = 0;
		if (p->ineffectual != 0U)
			st->suspended = (u8)(p->suspend);
	}
	return 1;
}

static void cdg_delay_backoff(struct cc_conn *conn, struct cdg_state *st,
			      const struct cdg_params *p)
{
	if (p->shadow)
		st->shadow_pkts = cc_max_u32(conn->cwnd_pkts, st->shadow_pkts);
	st->holding = p->holdoff == CDG_HOLDOFF_ONE_ROUND;
	conn->cwnd_pkts = cc_reduced_q32_pkts(conn->cwnd_pkts, cc_ppm_to_q32(p->beta_delay_ppm));
	conn->ssthresh_pkts = conn->cwnd_pkts;
	conn->cwnd_cnt = 0U;
	conn->notes |= CC_NOTE_DELAY_BACKOFF;
}

static void cdg_on_ack(struct cc_conn *conn, struct cdg_state *st, const struct cdg_params *p,
		       const struct cc_ack *ack)
{
	if (st->round_ended == CDG_ROUND_MEASURED) {
		int held = st->holding;

		st->holding = 0;
		if (!held && cdg_backs_off(conn, st, p, ack)) {
			cdg_delay_backoff(conn, st, p);
			return;
		}
	}
	shadow_grow(conn, &st->shadow_pkts, p->growth, p->count, p->ss_limit_pkts, ack->acked_pkts,
		    st->round_ended != CDG_ROUND_RUNS);
}

/* The shadow window that a loss may restore. */
static u32 cdg_restorable_pkts(const struct cc_conn *conn, const struct cdg_state *st,
			       const struct cdg_params *p)
{
	return p->linux_compat
		   ? cc_min_u32(st->shadow_pkts, cc_add_sat_u32(conn->cwnd_pkts, conn->cwnd_pkts))
		   : st->shadow_pkts;
}

static u32 cdg_ssthresh(struct cc_conn *conn, struct cdg_state *st, const struct cdg_params *p)
{
	u32 shadow_pkts = cdg_restorable_pkts(conn, st, p);
	u32 larger_pkts = cc_max_u32(conn->cwnd_pkts, shadow_pkts);
	int congested = st->queue == CDG_QUEUE_FULL || st->queue == CDG_QUEUE_UNKNOWN ||
			reno_in_slow_start(conn);

	st->prior_cwnd_pkts = conn->cwnd_pkts;
	st->prior_shadow_pkts = st->shadow_pkts;
	st->prior_backoffs = st->backoffs;
	st->prior_suspended = st->suspended;
	st->backoffs = 0;
	st->suspended = 0;
	if (shadow_pkts != 0U && p->shadow_loss == CDG_SHADOW_LOSS_HALVE)
		st->shadow_pkts = cc_max_u32(shadow_pkts / 2U, CC_CWND_FLOOR_PKTS);
	if (congested || !p->loss_tolerance)
		return cc_reduced_q32_pkts(larger_pkts, cc_ppm_to_q32(p->beta_loss_ppm));
	conn->notes |= CC_NOTE_LOSS_TOLERATED;
	return cc_max_u32(conn->cwnd_pkts, CC_CWND_FLOOR_PKTS);
}

static void cdg_on_event(struct cc_conn *conn, struct cdg_state *st, const struct cdg_params *p,
			 u32 event)
{
	(void)p;
	if (event == CC_EVENT_RTO) {
		/* A timeout is congestion, whatever the queue. */
		conn->ssthresh_pkts = reno_ssthresh(conn);
	} else if (event == CC_EVENT_RECOVERED) {
		cc_round_start(&st->round, conn);
		st->round_ended = CDG_ROUND_RUNS;
		cdg_round_clear(st);
	}
}

static u32 cdg_undo(struct cc_conn *conn, struct cdg_state *st, const struct cdg_params *p)
{
	(void)p;
	st->shadow_pkts = st->prior_shadow_pkts;
	st->backoffs = st->prior_backoffs;
	st->suspended = st->prior_suspended;
	return cc_max_u32(conn->cwnd_pkts, st->prior_cwnd_pkts);
}

static void cdg_observe(const struct cdg_state *st, const struct cdg_params *p,
			u32 out[CC_OBSERVE_N])
{
	out[0] = (u32)((cdg_prob_smoothed_q32(st, p) * CC_ONE_PPM) >> 32);
	out[1] = st->queue;
	out[2] = st->shadow_pkts;
	out[3] = st->suspended;
}

KNEE_ALGORITHM(cdg, CDG_PARAMS, CDG_RULES, CDG_INVARIANTS, CC_USES_RANDOM,
	       "backs off at random with the growth of the delay, per RTT; knows no base RTT",
	       "Hayes, Armitage, Networking 2011",
	       "backoff_prob_ppm|queue_state|shadow_pkts|suspended");
