// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * CHD: CAIA-Hamilton delay-based congestion control.
 *
 * D. Hayes, G. Armitage: "Improved coexistence and loss tolerance for delay based TCP congestion
 * control", LCN 2010.
 *
 * HD's backoff probability, applied once per marked-packet round to the round's largest queueing
 * delay h_r (eq. 2); a shadow window s that a NewReno flow would have had (eq. 3), restored at a
 * loss in region B; losses in region A leave the window as it is (eq. 4).
 *
 * Readings taken where the paper is ambiguous, each a parameter unless noted:
 *  - eq. 2's +1/w is evaluated once per RTT, but Fig. 2 says +1 packet per RTT: `growth`.
 *  - eq. 3 is evaluated only at delay-triggered reductions; taken at every round, as printed, it
 *    would clear s at once and contradict Fig. 2: `shadow_clear`.
 *  - s starts at 0, or at the initial window as in the released FreeBSD module: `shadow_init`.
 *  - s is halved by every loss, as NewReno's window would be: `shadow_loss`.
 *  - the region of a loss is decided by the larger of the last round's and the present round's h,
 *    since drop-tail losses happen when the queue is longest: `loss_delay`.
 *  - h_r = qth counts as B in eq. 3 and as A in eq. 4 (not a parameter: measure zero).
 *  - a loss in slow start in region A ends slow start, ssthresh = w (not a parameter).
 *  - a round that overlaps recovery gives no growth (paper section V-A); `recovery_growth=grow` is
 *    the modification that section VI proposes.
 *  - the paper is silent on timeouts: NewReno.
 *
 * `preset=module` has the rules of FreeBSD's released module that the paper does not have: slow
 * start includes the threshold (also for s), halves are rounded up, s starts at the initial window
 * and is restored only if no round in region A has followed the last backoff in region B, and a
 * loss within an RTT of a delay backoff is tolerated.
 */
#include "knee/host.h"
#include "knee/delay.h"
#include "knee/module.h"
#include "knee/reno.h"
#include "knee/round.h"
#include "knee/shadow.h"

enum { CHD_SHADOW_ZERO = 0, CHD_SHADOW_IW = 1 };
enum { CHD_CLEAR_AT_BACKOFF = 0, CHD_CLEAR_EVERY_ROUND = 1 };
enum { CHD_SHADOW_LOSS_KEEP = 0, CHD_SHADOW_LOSS_HALVE = 1 };
enum { CHD_LOSS_DELAY_LAST_ROUND = 0, CHD_LOSS_DELAY_MAX = 1 };
enum { CHD_HOLDOFF_NONE = 0, CHD_HOLDOFF_ONE_ROUND = 1 };
enum { CHD_RECOVERY_HOLD = 0, CHD_RECOVERY_GROW = 1 };

#define CHD_PARAMS(X) \
	RENO_GROWTH_PARAMS(X) \
	CC_DELACK_PARAM(X) \
	X(CC_TIME_US, qmin_us, "qmin", "queue_min", 0, 10000000, 5000, "", "CHD paper sV: 5 ms", \
	  "queueing delay up to which there is no delay backoff") \
	X(CC_TIME_US, qth_us, "qth", "queue_threshold", 1, 10000000, 30000, "", \
	  "CHD paper sV: 30 ms", \
	  "queueing delay between region A (self-made queue) and region B (loss-based competitor)") \
	X(CC_TIME_US, qmax_us, "qmax", "", 0, 10000000, 0, "", "CHD paper sV: observed", \
	  "queueing delay at which the backoff probability is 0 again; 0: largest one observed") \
	X(CC_PROB_PPM, pmax_ppm, "pmax", "pmax", 0, 1000000, 250000, "", "CHD paper sV: 0.25", \
	  "largest backoff probability, per RTT") \
	X(CC_CHOICE, use_max, "use_max", "use_max", 0, 1, 1, "off|on", "CHD paper sIV-A", \
	  "h_r is the round's largest queueing delay (on) or its last one (off)") \
	X(CC_CHOICE, loss_fair, "loss_fair", "loss_fair", 0, 1, 1, "off|on", "CHD paper sIV-B", \
	  "keep the shadow window and use it at losses in region B") \
	X(CC_CHOICE, holdoff, "holdoff", "", 0, 1, CHD_HOLDOFF_NONE, "none|one_round", \
	  "reading CHD-i", \
	  "whether to test the round after a backoff, which measures packets sent before it") \
	X(CC_CHOICE, growth, "growth", "", 0, 1, SHADOW_GROWTH_ROUND, "round|ack", \
	  "CHD paper eq. 2, Fig. 2; reading CHD-a", "+1 packet at the end of a round, or 1/w per ACK") \
	X(CC_CHOICE, shadow_init, "shadow_init", "", 0, 1, CHD_SHADOW_ZERO, "zero|iw", \
	  "CHD paper sIV-B; reading CHD-c", "shadow window at the start") \
	X(CC_CHOICE, shadow_clear, "shadow_clear", "", 0, 1, CHD_CLEAR_AT_BACKOFF, \
	  "at_backoff|every_round", "CHD paper eq. 3; reading CHD-b", \
	  "when eq. 3 may clear the shadow window") \
	X(CC_CHOICE, shadow_loss, "shadow_loss", "", 0, 1, CHD_SHADOW_LOSS_HALVE, "keep|halve", \
	  "reading CHD-d", "what a loss does to the shadow window") \
	X(CC_CHOICE, loss_delay, "loss_delay", "", 0, 1, CHD_LOSS_DELAY_MAX, "last_round|max", \
	  "CHD paper eq. 4; reading CHD-e", \
	  "delay that decides a loss: the last round's, or the larger of it and the present one's") \
	X(CC_CHOICE, ss_test, "ss_test", "", 0, 1, 1, "off|on", "CHD paper sV-B; reading CHD-k", \
	  "whether the delay test runs in slow start") \
	MODULE_PRESET_PARAM(X) \
	X(CC_CHOICE, recovery_growth, "recovery_growth", "", 0, 1, CHD_RECOVERY_HOLD, "hold|grow", \
	  "CHD paper sV-A, sVI", "hold the window during recovery, or let it grow +1 per RTT")

#define CHD_RULES(R) \
	R(qmin_us, CC_LESS_THAN, qth_us) \
	R(qmax_us, CC_ZERO_OR_MORE_THAN, qth_us)

CC_PARAMS_STRUCT(chd, CHD_PARAMS);

struct chd_state {
	struct cc_delay delay;
	struct cc_round round;
	u32 h_us;	       /* h_r: delay recorded for the last completed round */
	u32 h_backoff_us;      /* h_b: h_r at the last delay backoff */
	u32 h_now_us;	       /* of the round that is running */
	u32 shadow_pkts;       /* s; 0: inactive */
	u32 prior_cwnd_pkts;   /* before the latest loss, for undo */
	u32 prior_shadow_pkts; /* before the latest loss, for undo */
	u32 backoff_pos;       /* data outstanding at the last delay backoff end here */
	u8 competing;	       /* no round in region A since the last backoff in region B */
	u8 backed_off;	       /* an RTT has not passed since the last delay backoff */
	u8 sampled;	       /* the running round has a sample */
	u8 round_ended;	       /* by the present ACK */
	u8 holding;	       /* the running round measures packets sent before a backoff */
};

#define CHD_INVARIANTS(X) \
	CC_DELAY_INVARIANTS(X) \
	CC_DELAY_RANGE_INVARIANT(X) \
	CC_AT_MOST(X, h_us, CC_TIME_MAX_US) \
	CC_AT_MOST(X, h_backoff_us, CC_TIME_MAX_US) \
	CC_AT_MOST(X, h_now_us, CC_TIME_MAX_US) \
	CC_AT_MOST(X, shadow_pkts, CC_CWND_MAX_PKTS) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, prior_shadow_pkts, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, competing, 1U) \
	CC_AT_MOST(X, backed_off, 1U) \
	CC_AT_MOST(X, sampled, 1U) \
	CC_AT_MOST(X, round_ended, 1U) \
	CC_AT_MOST(X, holding, 1U)

static u32 chd_qmax_us(const struct chd_state *st, const struct chd_params *p)
{
	return p->qmax_us != 0U ? p->qmax_us : cc_delay_qmax_us(&st->delay);
}

static int chd_module(const struct chd_params *p)
{
	return p->preset == MODULE_PRESET_MODULE;
}

/* Half of a window, rounded as the preset has it. */
static u32 chd_half_pkts(const struct chd_params *p, u32 pkts)
{
	u32 half_pkts = chd_module(p) ? pkts - pkts / 2U : pkts / 2U;

	return cc_max_u32(half_pkts, CC_CWND_FLOOR_PKTS);
}

static void chd_init(struct cc_conn *conn, struct chd_state *st, const struct chd_params *p)
{
	cc_round_start(&st->round, conn);
	st->shadow_pkts = p->loss_fair && (p->shadow_init == CHD_SHADOW_IW || chd_module(p))
			      ? conn->cwnd_pkts
			      : 0U;
	st->prior_cwnd_pkts = conn->cwnd_pkts;
	st->prior_shadow_pkts = st->shadow_pkts;
}

/* Takes in the sample and closes the round. Samples and rounds continue in recovery, so that the
 * delay recorded is never stale; only decisions and growth wait. */
static void chd_on_rtt(struct cc_conn *conn, struct chd_state *st, const struct chd_params *p,
		       const struct cc_ack *ack)
{
	if (cc_delay_trusts(&st->delay, ack, p->delack_filter)) {
		cc_delay_sample(&st->delay, (u32)ack->rtt_us);
		st->h_now_us =
		    p->use_max ? cc_max_u32(st->h_now_us, st->delay.q_us) : st->delay.q_us;
		st->sampled = 1;
	}
	if (st->backed_off && !cc_after(st->backoff_pos, conn->ack_pos))
		st->backed_off = 0;
	st->round_ended = (u8)cc_round_ended(&st->round, conn);
	if (!st->round_ended)
		return;
	if (st->sampled)
		st->h_us = st->h_now_us;
	st->h_now_us = 0U;
	st->sampled = 0;
	conn->notes |= CC_NOTE_ROUND;
	if (st->h_us >= p->qth_us)
		conn->notes |= CC_NOTE_REGION_B;
	else
		st->competing = 0;
	if (conn->phase == CC_RECOVERY && p->recovery_growth == CHD_RECOVERY_GROW) {
		conn->ssthresh_pkts =
		    cc_min_u32(cc_add_sat_u32(conn->ssthresh_pkts, 1U), conn->cwnd_max_pkts);
		/* An ACK that also ends recovery must not make on_ack grow for the round again. */
		st->round_ended = 0;
	}
}

/* eq. 3, with the window before the reduction. */
static void chd_shadow_at_backoff(const struct cc_conn *conn, struct chd_state *st,
				  const struct chd_params *p)
{
	int delay_rising_in_a = st->h_us < p->qth_us && st->h_us > st->h_backoff_us;

	if (p->loss_fair && (delay_rising_in_a || st->h_us >= p->qth_us))
		st->shadow_pkts = cc_max_u32(conn->cwnd_pkts, st->shadow_pkts);
	else
		st->shadow_pkts = 0U;
}

/* eq. 2, first case: whether this round ends in a delay-triggered reduction. */
static int chd_backs_off(const struct cc_conn *conn, const struct chd_state *st,
			 const struct chd_params *p, const struct cc_ack *ack)
{
	if (!cc_delay_test_allowed(conn) || st->delay.rtt_min_us == 0U)
		return 0;
	if (!p->ss_test && reno_in_slow_start(conn))
		return 0;
	return cc_happens(ack->random, cc_backoff_prob_q32(st->h_us, p->qmin_us, p->qth_us,
							   chd_qmax_us(st, p), p->pmax_ppm));
}

static void chd_on_ack(struct cc_conn *conn, struct chd_state *st, const struct chd_params *p,
		       const struct cc_ack *ack)
{
	if (st->round_ended) {
		int held = st->holding;
		u32 half_pkts;

		st->holding = 0;
		if (!held && chd_backs_off(conn, st, p, ack)) {
			if (st->h_us >= p->qth_us)
				conn->notes |= CC_NOTE_REGION_B;
			chd_shadow_at_backoff(conn, st, p);
			st->h_backoff_us = st->h_us;
			st->holding = p->holdoff == CHD_HOLDOFF_ONE_ROUND;
			st->competing = st->h_us >= p->qth_us;
			st->backed_off = 1;
			st->backoff_pos = conn->snd_pos;
			half_pkts = chd_half_pkts(p, conn->cwnd_pkts);
			cc_delay_backoff(conn);
			conn->cwnd_pkts = half_pkts;
			conn->ssthresh_pkts = half_pkts;
			return;
		}
		if (p->shadow_clear == CHD_CLEAR_EVERY_ROUND)
			st->shadow_pkts = 0U;
	}
	if (chd_module(p) && conn->cwnd_limited) {
		u32 before_pkts = conn->cwnd_pkts;

		if (module_slow_start(conn, reno_counted_pkts(p->count, ack->acked_pkts))) {
			u32 added_pkts = cc_sub_floor_u32(conn->cwnd_pkts, before_pkts);

			if (st->shadow_pkts != 0U)
				st->shadow_pkts =
				    cc_min_u32(cc_add_sat_u32(st->shadow_pkts, added_pkts),
					       conn->cwnd_max_pkts);
			return;
		}
	}
	shadow_grow(conn, &st->shadow_pkts, p->growth, p->count, p->ss_limit_pkts, ack->acked_pkts,
		    st->round_ended);
}

/* eq. 4, and NewReno's halving of the shadow window. */
static u32 chd_ssthresh(struct cc_conn *conn, struct chd_state *st, const struct chd_params *p)
{
	u32 h_us =
	    p->loss_delay == CHD_LOSS_DELAY_MAX ? cc_max_u32(st->h_us, st->h_now_us) : st->h_us;
	u32 restored_pkts = chd_module(p) && !st->competing ? 0U : st->shadow_pkts;
	u32 larger_pkts = cc_max_u32(conn->cwnd_pkts, restored_pkts);
	int tolerated = chd_module(p) && st->backed_off;

	st->prior_cwnd_pkts = conn->cwnd_pkts;
	st->prior_shadow_pkts = st->shadow_pkts;
	if (st->shadow_pkts != 0U && p->shadow_loss == CHD_SHADOW_LOSS_HALVE)
		st->shadow_pkts = chd_half_pkts(p, st->shadow_pkts);
	if (h_us > p->qth_us && !tolerated) {
		conn->notes |= CC_NOTE_REGION_B;
		return chd_half_pkts(p, larger_pkts);
	}
	conn->notes |= CC_NOTE_LOSS_TOLERATED;
	return cc_max_u32(conn->cwnd_pkts, CC_CWND_FLOOR_PKTS);
}

static void chd_on_event(struct cc_conn *conn, struct chd_state *st, const struct chd_params *p,
			 u32 event)
{
	if (event == CC_EVENT_RTO) {
		/* A timeout is congestion in either region. */
		conn->ssthresh_pkts = reno_ssthresh(conn);
	} else if (event == CC_EVENT_RECOVERED && p->recovery_growth == CHD_RECOVERY_HOLD) {
		/* A round that overlapped recovery gives no growth, and its delays are not
		 * those of the round that starts now. */
		cc_round_start(&st->round, conn);
		st->round_ended = 0;
		st->h_now_us = 0U;
		st->sampled = 0;
	}
}

static u32 chd_undo(struct cc_conn *conn, struct chd_state *st, const struct chd_params *p)
{
	(void)p;
	st->shadow_pkts = st->prior_shadow_pkts;
	return cc_max_u32(conn->cwnd_pkts, st->prior_cwnd_pkts);
}

static void chd_observe(const struct chd_state *st, const struct chd_params *p,
			u32 out[CC_OBSERVE_N])
{
	out[0] = st->h_us;
	out[1] = chd_qmax_us(st, p);
	out[2] = st->shadow_pkts;
	out[3] = st->h_us >= p->qth_us;
}

KNEE_ALGORITHM(
    chd, CHD_PARAMS, CHD_RULES, CHD_INVARIANTS, CC_USES_RANDOM,
    "HD per RTT, with a shadow window against loss-based flows and tolerance of random loss",
    "Hayes, Armitage, LCN 2010", "h_us|qmax_us|shadow_pkts|region_b");
