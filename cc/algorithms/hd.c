// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * HD: Hamilton delay-based congestion control.
 *
 * L. Budzisz, R. Stanojevic, R. Shorten, F. Baker: "A strategy for fair coexistence of loss and
 * delay-based congestion control algorithms", IEEE Communications Letters 13(7), 2009; restated in
 * section III of D. Hayes, G. Armitage: "Improved coexistence and loss tolerance for delay based
 * TCP congestion control", LCN 2010, whose parameter values are the defaults here.
 *
 * Per ACK (Algorithm 1; eq. 1): with probability g(q) halve the window, otherwise grow as NewReno.
 * Loss and timeout as NewReno.
 *
 * Differences from the letter, each a parameter:
 *  - Algorithm 1 may halve several times in one RTT. By default no second delay backoff follows
 *    until the data outstanding at the first is acknowledged (`holdoff`; HD-a): our own choice,
 *    which neither the letter nor FreeBSD's released module makes. `holdoff=none` is the letter.
 *  - Slow start is out of the letter's scope. By default the delay test runs there too and ends it
 *    (`ss_test`).
 *  - The letter speaks of a probability per packet, Algorithm 1 of one per ACK: `draw`.
 *  - FreeBSD's released module has no hold-off either, but takes slow start to include the
 *    threshold: `preset=module` does both.
 *  - qmax is the largest queueing delay seen (LCN paper section III) unless `qmax` fixes it (the
 *    letter's Comment 2).
 */
#include "knee/host.h"
#include "knee/delay.h"
#include "knee/module.h"
#include "knee/reno.h"
#include "knee/undo.h"

enum { HD_HOLDOFF_NONE = 0, HD_HOLDOFF_ONE_ROUND = 1 };
enum { HD_DRAW_ACK = 0, HD_DRAW_PACKET = 1 };
enum { HD_SIGNAL_RAW = 0, HD_SIGNAL_SRTT = 1 };

#define HD_PARAMS(X) \
	RENO_GROWTH_PARAMS(X) \
	CC_DELACK_PARAM(X) \
	X(CC_TIME_US, qmin_us, "qmin", "queue_min", 0, 10000000, 5000, "", \
	  "CHD paper sV: 5 ms; HD letter sIII: 2 ms", \
	  "queueing delay up to which there is no delay backoff") \
	X(CC_TIME_US, qth_us, "qth", "queue_threshold", 1, 10000000, 30000, "", \
	  "CHD paper sV: 30 ms; HD letter sIII: 20 ms", \
	  "queueing delay between region A (self-made queue) and region B (loss-based competitor)") \
	X(CC_TIME_US, qmax_us, "qmax", "", 0, 10000000, 0, "", \
	  "CHD paper sIII: observed; HD letter Comment 2: 100 ms", \
	  "queueing delay at which the backoff probability is 0 again; 0: largest one observed") \
	X(CC_PROB_PPM, pmax_ppm, "pmax", "pmax", 0, 1000000, 20000, "", \
	  "CHD paper sV: 0.02; HD letter sIII: 0.05", \
	  "largest backoff probability, per ACK or per packet") \
	X(CC_CHOICE, draw, "draw", "", 0, 1, HD_DRAW_ACK, "ack|packet", \
	  "HD letter Algorithm 1; reading HD-g", \
	  "back off with g per ACK, or with g for each packet that the ACK acknowledges") \
	MODULE_PRESET_PARAM(X) \
	X(CC_CHOICE, holdoff, "holdoff", "", 0, 1, HD_HOLDOFF_ONE_ROUND, "none|one_round", \
	  "reading HD-a", "how soon a second delay backoff may follow the first") \
	X(CC_CHOICE, signal, "signal", "", 0, 1, HD_SIGNAL_RAW, "raw|srtt", \
	  "CHD paper Table I; reading HD-b", "RTT that gives the queueing delay") \
	X(CC_CHOICE, ss_test, "ss_test", "", 0, 1, 1, "off|on", "reading HD-c", \
	  "whether the delay test runs in slow start")

#define HD_RULES(R) \
	R(qmin_us, CC_LESS_THAN, qth_us) \
	R(qmax_us, CC_ZERO_OR_MORE_THAN, qth_us)

CC_PARAMS_STRUCT(hd, HD_PARAMS);

struct hd_state {
	struct cc_delay delay;
	u32 hold_pos;	     /* no delay backoff until this position is acknowledged */
	u32 prior_cwnd_pkts; /* window before the latest loss reduction, for undo */
	u32 srtt_us;	     /* of the latest call, for observe */
	u8 holding;
};

#define HD_INVARIANTS(X) \
	CC_DELAY_INVARIANTS(X) \
	CC_DELAY_RANGE_INVARIANT(X) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, holding, 1U)

static u32 hd_q_us(const struct hd_state *st, const struct hd_params *p)
{
	if (p->signal == HD_SIGNAL_RAW)
		return st->delay.q_us;
	return cc_sub_floor_u32(cc_min_u32(st->srtt_us, CC_TIME_MAX_US), st->delay.rtt_min_us);
}

static u32 hd_qmax_us(const struct hd_state *st, const struct hd_params *p)
{
	return p->qmax_us != 0U ? p->qmax_us : cc_delay_qmax_us(&st->delay);
}

static u64 hd_backoff_prob_q32(const struct hd_state *st, const struct hd_params *p)
{
	return cc_backoff_prob_q32(hd_q_us(st, p), p->qmin_us, p->qth_us, hd_qmax_us(st, p),
				   p->pmax_ppm);
}

static void hd_init(struct cc_conn *conn, struct hd_state *st, const struct hd_params *p)
{
	(void)p;
	st->hold_pos = conn->snd_pos;
	st->prior_cwnd_pkts = conn->cwnd_pkts;
}

static void hd_on_rtt(struct cc_conn *conn, struct hd_state *st, const struct hd_params *p,
		      const struct cc_ack *ack)
{
	if (cc_delay_trusts(&st->delay, ack, p->delack_filter))
		cc_delay_sample(&st->delay, (u32)ack->rtt_us);
	st->srtt_us = conn->srtt_us;
	if (st->holding && !cc_after(st->hold_pos, conn->ack_pos))
		st->holding = 0;
}

static int hd_test_due(const struct cc_conn *conn, const struct hd_state *st,
		       const struct hd_params *p)
{
	return st->delay.rtt_min_us != 0U && cc_delay_test_allowed(conn) && !st->holding &&
	       (p->ss_test || !reno_in_slow_start(conn));
}

/* Probability that this ACK halves the window. With `draw=packet` it is g times the packets
 * acknowledged; delayed ACKs halve the number of draws else, but not growth, which counts packets.
 */
static u64 hd_draw_prob_q32(const struct hd_state *st, const struct hd_params *p, u32 acked_pkts)
{
	u64 draws = p->draw == HD_DRAW_PACKET ? (u64)cc_max_u32(acked_pkts, 1U) : 1ULL;

	return cc_mul_up_to_u64(hd_backoff_prob_q32(st, p), draws, 1ULL << 32);
}

static void hd_grow(struct cc_conn *conn, const struct hd_params *p, u32 acked_pkts)
{
	if (p->preset == MODULE_PRESET_MODULE && conn->cwnd_limited &&
	    module_slow_start(conn, reno_counted_pkts(p->count, acked_pkts)))
		return;
	reno_grow(conn, p->count, p->ss_limit_pkts, acked_pkts);
}

static void hd_on_ack(struct cc_conn *conn, struct hd_state *st, const struct hd_params *p,
		      const struct cc_ack *ack)
{
	if (hd_test_due(conn, st, p) &&
	    cc_happens(ack->random, hd_draw_prob_q32(st, p, ack->acked_pkts))) {
		if (hd_q_us(st, p) >= p->qth_us)
			conn->notes |= CC_NOTE_REGION_B;
		cc_delay_backoff(conn);
		st->holding =
		    p->holdoff == HD_HOLDOFF_ONE_ROUND && p->preset == MODULE_PRESET_PAPER;
		st->hold_pos = conn->snd_pos;
		return;
	}
	hd_grow(conn, p, ack->acked_pkts);
}

static u32 hd_ssthresh(struct cc_conn *conn, struct hd_state *st, const struct hd_params *p)
{
	(void)p;
	st->prior_cwnd_pkts = conn->cwnd_pkts;
	return reno_ssthresh(conn);
}

static void hd_on_event(struct cc_conn *conn, struct hd_state *st, const struct hd_params *p,
			u32 event)
{
	(void)conn;
	(void)st;
	(void)p;
	(void)event;
}

CC_UNDO_TO_PRIOR_CWND(hd)

static void hd_observe(const struct hd_state *st, const struct hd_params *p, u32 out[CC_OBSERVE_N])
{
	out[0] = hd_q_us(st, p);
	out[1] = hd_qmax_us(st, p);
	out[2] = (u32)((hd_backoff_prob_q32(st, p) * CC_ONE_PPM) >> 32);
	out[3] = hd_q_us(st, p) >= p->qth_us;
}

KNEE_ALGORITHM(hd, HD_PARAMS, HD_RULES, HD_INVARIANTS, CC_USES_RANDOM,
	       "Hamilton delay-based: probabilistic backoff on delay, per ACK",
	       "Budzisz et al., IEEE Comm. Letters 13(7), 2009", "q_us|qmax_us|g_ppm|region_b");
