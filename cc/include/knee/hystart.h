/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * HyStart++: leave the first slow start when the RTT rises, before packets are lost.
 *
 * P. Balasubramanian, Y. Huang, M. Olson: "HyStart++: Modified Slow Start for TCP", RFC 9406,
 * section 4.2, with its constants of section 4.3.
 *
 * Each round keeps its minimum RTT. If that of eight or more samples is RttThresh or more above the
 * last round's, conservative slow start (CSS) follows, which grows a quarter as fast. If the RTT
 * falls below its value at that time, slow start resumes; after five rounds of CSS it is over.
 *
 * Readings taken where the RFC leaves a choice:
 *  - only the first slow start (section 4.3, a SHOULD): while ssthresh is infinite.
 *  - L, the most that an ACK counts for, is the caller's limit of slow start.
 *  - only ACKs of new data give samples: duplicates end slow start soon anyway.
 */
#ifndef KNEE_HYSTART_H
#define KNEE_HYSTART_H

#include "knee/contract.h"
#include "knee/reno.h"

#define HYSTART_MIN_RTT_THRESH_US 4000U
#define HYSTART_MAX_RTT_THRESH_US 16000U
#define HYSTART_MIN_RTT_DIVISOR 8U
#define HYSTART_N_RTT_SAMPLE 8U
#define HYSTART_CSS_GROWTH_DIVISOR 4U
#define HYSTART_CSS_ROUNDS 5U

/* 20 bytes. A time of 0 means "none", the RFC's infinity. */
struct cc_hystart {
	u32 window_end_pos; /* the round ends when all below it is acknowledged */
	u32 last_round_us;  /* minimum RTT of the round before */
	u32 this_round_us;  /* of the round that is running */
	u32 css_base_us;    /* minimum RTT when CSS began; 0: not in CSS */
	u8 samples;	    /* of the round that is running, up to HYSTART_N_RTT_SAMPLE */
	u8 css_rounds;	    /* that have ended */
};

/* Invariants of `st->hystart`. */
#define CC_HYSTART_INVARIANTS(X) \
	X(last_round_us, st->hystart.last_round_us <= CC_TIME_MAX_US) \
	X(this_round_us, st->hystart.this_round_us <= CC_TIME_MAX_US) \
	X(css_base_us, st->hystart.css_base_us <= CC_TIME_MAX_US) \
	X(samples, st->hystart.samples <= HYSTART_N_RTT_SAMPLE) \
	X(css_rounds, st->hystart.css_rounds <= HYSTART_CSS_ROUNDS)

static inline void cc_hystart_start(struct cc_hystart *hystart, const struct cc_conn *conn)
{
	*hystart = (struct cc_hystart){0};
	hystart->window_end_pos = conn->snd_pos;
}

static inline int cc_hystart_active(const struct cc_conn *conn)
{
	return conn->ssthresh_pkts == CC_SSTHRESH_INFINITE;
}

static inline int cc_hystart_in_css(const struct cc_hystart *hystart)
{
	return hystart->css_base_us != 0U;
}

/* Growth for one ACK; cwnd_cnt carries CSS's fraction of a packet. */
static inline void cc_hystart_grow(struct cc_conn *conn, const struct cc_hystart *hystart,
				   u32 ss_limit_pkts, u32 counted_pkts)
{
	u32 limit = ss_limit_pkts != 0U ? ss_limit_pkts : CC_U32_MAX;
	u32 pkts = cc_min_u32(counted_pkts, limit);

	if (cc_hystart_in_css(hystart)) {
		pkts = cc_add_sat_u32(conn->cwnd_cnt, pkts);
		conn->cwnd_cnt = pkts % HYSTART_CSS_GROWTH_DIVISOR;
		pkts /= HYSTART_CSS_GROWTH_DIVISOR;
	}
	reno_slow_start(conn, 0U, pkts);
}

/* Records the RTT of one ACK. Returns whether slow start is over. */
static inline int cc_hystart_ack(struct cc_hystart *hystart, const struct cc_conn *conn, s32 rtt_us)
{
	if (rtt_us >= 0) {
		u32 taken_us = cc_min_u32(cc_max_u32((u32)rtt_us, 1U), CC_TIME_MAX_US);
		u32 least_us = hystart->this_round_us;

		hystart->this_round_us = least_us == 0U ? taken_us : cc_min_u32(least_us, taken_us);
		hystart->samples = (u8)cc_min_u32(hystart->samples + 1U, HYSTART_N_RTT_SAMPLE);
	}
	if (hystart->samples == HYSTART_N_RTT_SAMPLE) {
		u32 now_us = hystart->this_round_us;
		u32 last_us = hystart->last_round_us;
		u32 thresh_us = cc_max_u32(
		    cc_min_u32(last_us / HYSTART_MIN_RTT_DIVISOR, HYSTART_MAX_RTT_THRESH_US),
		    HYSTART_MIN_RTT_THRESH_US);

		if (cc_hystart_in_css(hystart)) {
			if (now_us < hystart->css_base_us)
				hystart->css_base_us = 0U;
		} else if (last_us != 0U && now_us >= last_us + thresh_us) {
			hystart->css_base_us = now_us;
			hystart->css_rounds = 0;
		}
	}
	if (cc_after(hystart->window_end_pos, conn->ack_pos))
		return 0;
	hystart->window_end_pos = conn->snd_pos;
	hystart->last_round_us = hystart->this_round_us;
	hystart->this_round_us = 0U;
	hystart->samples = 0;
	/* The round in which CSS began counts. */
	if (!cc_hystart_in_css(hystart))
		return 0;
	hystart->css_rounds = (u8)cc_min_u32(hystart->css_rounds + 1U, HYSTART_CSS_ROUNDS);
	if (hystart->css_rounds < HYSTART_CSS_ROUNDS)
		return 0;
	hystart->css_base_us = 0U;
	return 1;
}

#endif
