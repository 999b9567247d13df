// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Vegas: keep a few packets in the queue.
 *
 * L. S. Brakmo, L. L. Peterson: "TCP Vegas: end to end congestion avoidance on a global internet",
 * IEEE JSAC 13(8), 1995; the algorithm of Fig. 1 of D. Leith et al., "Delay-based AIMD congestion
 * control", PFLDnet 2007.
 *
 * Once per marked-packet round, diff = cwnd (1 - baseRTT / RTT): expected less actual rate, times
 * baseRTT, the packets that the flow keeps queued. Congestion avoidance: one packet more over the
 * next round where diff < alpha, one less where diff > beta, otherwise no change. Slow start grows
 * in every other round and ends where diff > gamma. Loss and timeout as NewReno.
 *
 * Readings taken where implementations differ, each a parameter unless noted:
 *  - leaving slow start: cwnd = cwnd baseRTT / RTT + 1 and ssthresh = cwnd, as Linux, or
 *    cwnd = 7/8 cwnd and ssthresh = 2, as ns-2: `ss_exit` (VG-a).
 *  - the RTT of a round is the mean of its samples, as in ns-2, or the least, as in Linux:
 *    `rtt_stat` (VG-b).
 *  - slow start grows in every other round, as published, or in every one, as Linux: `ss_growth`
 *    (VG-c).
 *  - diff divides by RTT; later Linux divides by baseRTT, which gives more (not a parameter).
 *  - congestion avoidance continues after a decrease: ssthresh falls with cwnd (not a parameter).
 *  - after a round without a sample the window grows (not a parameter); after one that overlapped
 *    a recovery it does not, or it does, as Linux: `after_recovery` (VG-d).
 *  - after a timeout, until the data then outstanding is acknowledged, growth is NewReno's (not a
 *    parameter).
 *  - baseRTT never expires (not a parameter).
 *
 * Not here: Vegas's own retransmission upon the first duplicate ACK, with a fine-grained timer and
 * cuts by a quarter. Under this contract the stack owns loss detection and retransmission; an
 * algorithm sees neither duplicate ACKs nor send times.
 */
#include "knee/host.h"
#include "knee/backlog.h"
#include "knee/delay.h"
#include "knee/mean.h"
#include "knee/reno.h"
#include "knee/round.h"
#include "knee/undo.h"

enum { VEGAS_EXIT_NS2 = 0, VEGAS_EXIT_LINUX = 1 };
enum { VEGAS_RTT_MEAN = 0, VEGAS_RTT_LEAST = 1 };
enum { VEGAS_SS_SECOND_ROUND = 0, VEGAS_SS_EVERY_ROUND = 1 };
enum { VEGAS_RECOVERED_HOLD = 0, VEGAS_RECOVERED_GROW = 1 };

#define VEGAS_PARAMS(X) \
	RENO_GROWTH_PARAMS(X) \
	CC_DELACK_PARAM(X) \
	X(CC_PKTS, alpha_pkts, "alpha", "", 0, 1000000, 1, "", "ns-2 and FreeBSD: 1; Linux: 2", \
	  "packets in the queue below which the window grows") \
	X(CC_PKTS, beta_pkts, "beta", "", 1, 1000000, 3, "", "ns-2 and FreeBSD: 3; Linux: 4", \
	  "packets in the queue above which the window shrinks") \
	X(CC_PKTS, gamma_pkts, "gamma", "", 0, 1000000, 1, "", "ns-2, FreeBSD and Linux: 1", \
	  "packets in the queue above which slow start ends") \
	X(CC_CHOICE, rtt_stat, "rtt_stat", "", 0, 1, VEGAS_RTT_MEAN, "mean|min", \
	  "ns-2: mean; Linux: min; reading VG-b", "which of a round's samples is its RTT: their mean or the least") \
	X(CC_CHOICE, ss_exit, "ss_exit", "", 0, 1, VEGAS_EXIT_LINUX, "ns2|linux", "reading VG-a", \
	  "slow start ends with cwnd = 7/8 cwnd (ns2) or cwnd = cwnd baseRTT / RTT + 1 (linux)") \
	X(CC_CHOICE, ss_growth, "ss_growth", "", 0, 1, VEGAS_SS_SECOND_ROUND, \
	  "second_round|every_round", "Brakmo, Peterson 1995: every other; reading VG-c", \
	  "rounds of slow start in which the window grows") \
	X(CC_CHOICE, after_recovery, "after_recovery", "", 0, 1, VEGAS_RECOVERED_HOLD, "hold|grow", \
	  "Linux: grow; reading VG-d", "window in the round after a recovery")

#define VEGAS_RULES(R) R(alpha_pkts, CC_LESS_THAN, beta_pkts)

CC_PARAMS_STRUCT(vegas, VEGAS_PARAMS);

struct vegas_state {
	struct cc_mean rtt;    /* of the round that is running */
	struct cc_delay delay; /* its rtt_min_us is baseRTT */
	struct cc_round round;
	u32 rtt_least_us;	 /* of the round that is running; 0: none yet */
	u32 rtt_q8_us;		 /* of the latest round that had a sample; 0: none yet */
	u32 backlog_thousandths; /* diff at the end of that round, 1/1000 packet */
	u32 prior_cwnd_pkts;	 /* window before the latest loss reduction, for undo */
	u8 growing;		 /* the running round may grow the window */
	u8 round_ended;		 /* by the present ACK */
	u8 measured;		 /* that round had a sample */
};

#define VEGAS_INVARIANTS(X) \
	CC_MEAN_INVARIANTS(X) \
	CC_DELAY_INVARIANTS(X) \
	CC_DELAY_RANGE_INVARIANT(X) \
	CC_AT_MOST(X, rtt_least_us, CC_TIME_MAX_US) \
	CC_AT_MOST(X, rtt_q8_us, CC_TIME_MAX_US << 8) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, growing, 1U) \
	CC_AT_MOST(X, round_ended, 1U) \
	CC_AT_MOST(X, measured, 1U)

static void vegas_round_clear(struct vegas_state *st)
{
	st->rtt = (struct cc_mean){0};
	st->rtt_least_us = 0U;
}

static void vegas_init(struct cc_conn *conn, struct vegas_state *st, const struct vegas_params *p)
{
	(void)p;
	cc_round_start(&st->round, conn);
	st->prior_cwnd_pkts = conn->cwnd_pkts;
}

/* Packets kept queued, times RTT in 1/256 us: diff < n exactly where this < n * RTT. */
static u64 vegas_diff_rtt(const struct cc_conn *conn, const struct vegas_state *st)
{
	return cc_backlog_rtt(conn->cwnd_pkts, st->rtt_q8_us, st->delay.rtt_min_us);
}

static void vegas_on_rtt(struct cc_conn *conn, struct vegas_state *st, const struct vegas_params *p,
			 const struct cc_ack *ack)
{
	if (cc_delay_trusts(&st->delay, ack, p->delack_filter)) {
		u32 rtt_us = cc_min_u32(cc_max_u32((u32)ack->rtt_us, 1U), CC_TIME_MAX_US);

		cc_delay_sample(&st->delay, rtt_us);
		if (st->rtt.n == 0U || rtt_us < st->rtt_least_us)
			st->rtt_least_us = rtt_us;
		cc_mean_sample(&st->rtt, rtt_us);
	}
	st->round_ended = (u8)cc_round_ended(&st->round, conn);
	if (!st->round_ended)
		return;
	conn->notes |= CC_NOTE_ROUND;
	st->measured = st->rtt.n != 0U;
	if (st->measured) {
		st->rtt_q8_us =
		    p->rtt_stat == VEGAS_RTT_MEAN ? cc_mean_q8_us(&st->rtt) : st->rtt_least_us << 8;
		st->backlog_thousandths =
		    cc_backlog_thousandths(vegas_diff_rtt(conn, st), st->rtt_q8_us);
	}
	vegas_round_clear(st);
}

/* A smaller window because of delay; slow start does not resume below it. */
static void vegas_reduce(struct cc_conn *conn, u32 pkts, u32 ssthresh_pkts)
{
	pkts = cc_max_u32(pkts, CC_CWND_FLOOR_PKTS);
	conn->ssthresh_pkts = cc_max_u32(ssthresh_pkts, CC_CWND_FLOOR_PKTS);
	conn->cwnd_cnt = 0U;
	if (pkts >= conn->cwnd_pkts)
		return;
	conn->cwnd_pkts = pkts;
	conn->notes |= CC_NOTE_DELAY_BACKOFF;
}

/* Slow start is over: the window that the path carried during the round, or an eighth less. */
static void vegas_leave_slow_start(struct cc_conn *conn, const struct vegas_state *st,
				   const struct vegas_params *p)
{
	u64 cwnd_pkts = conn->cwnd_pkts;
	u64 base_q8_us = st->delay.rtt_min_us << 8;
	u32 pkts;

	if (p->ss_exit == VEGAS_EXIT_NS2) {
		vegas_reduce(conn, (u32)(7ULL * cwnd_pkts / 8ULL), CC_CWND_FLOOR_PKTS);
		return;
	}
	/* At most cwnd: RTT is above baseRTT here. */
	pkts = (u32)cc_min_u64(cc_div_u64(cwnd_pkts * base_q8_us, st->rtt_q8_us, 0ULL), cwnd_pkts) +
	       1U;
	vegas_reduce(conn, pkts, pkts);
}

/* The decision at the end of a round. */
static void vegas_decide(struct cc_conn *conn, struct vegas_state *st, const struct vegas_params *p)
{
	u64 diff_rtt = vegas_diff_rtt(conn, st);
	u64 rtt_q8_us = st->rtt_q8_us;
	int slow_start = reno_in_slow_start(conn);

	if (slow_start && st->measured && diff_rtt > p->gamma_pkts * rtt_q8_us) {
		st->growing = 0;
		vegas_leave_slow_start(conn, st, p);
	} else if (slow_start) {
		st->growing = !st->growing || p->ss_growth == VEGAS_SS_EVERY_ROUND;
	} else {
		st->growing = !st->measured || diff_rtt < p->alpha_pkts * rtt_q8_us;
		if (st->measured && diff_rtt > p->beta_pkts * rtt_q8_us) {
			u32 pkts = cc_sub_floor_u32(conn->cwnd_pkts, 1U);

			vegas_reduce(conn, pkts, cc_min_u32(conn->ssthresh_pkts, pkts));
		}
	}
}

static void vegas_on_ack(struct cc_conn *conn, struct vegas_state *st, const struct vegas_params *p,
			 const struct cc_ack *ack)
{
	int by_delay = cc_delay_test_allowed(conn);

	if (by_delay && st->round_ended)
		vegas_decide(conn, st, p);
	if (!by_delay || st->growing)
		reno_grow(conn, p->count, p->ss_limit_pkts, ack->acked_pkts);
}

static u32 vegas_ssthresh(struct cc_conn *conn, struct vegas_state *st,
			  const struct vegas_params *p)
{
	(void)p;
	st->prior_cwnd_pkts = conn->cwnd_pkts;
	return reno_ssthresh(conn);
}

static void vegas_on_event(struct cc_conn *conn, struct vegas_state *st,
			   const struct vegas_params *p, u32 event)
{
	/* A round that overlapped a recovery says nothing about the window after it: by default
	 * hold the window until a whole round has tested it. */
	if (event == CC_EVENT_RECOVERED) {
		cc_round_start(&st->round, conn);
		vegas_round_clear(st);
		st->round_ended = 0;
		st->growing = p->after_recovery == VEGAS_RECOVERED_GROW;
	}
}

CC_UNDO_TO_PRIOR_CWND(vegas)

static void vegas_observe(const struct vegas_state *st, const struct vegas_params *p,
			  u32 out[CC_OBSERVE_N])
{
	(void)p;
	out[0] = st->rtt_q8_us >> 8;
	out[1] = st->delay.rtt_min_us;
	out[2] = st->backlog_thousandths;
	out[3] = st->growing;
}

KNEE_ALGORITHM(vegas, VEGAS_PARAMS, VEGAS_RULES, VEGAS_INVARIANTS, CC_NO_RANDOM,
	       "keeps alpha to beta packets in the queue",
	       "Brakmo, Peterson, IEEE JSAC 13(8), 1995",
	       "rtt_us|base_rtt_us|backlog_thousandths|growing");
