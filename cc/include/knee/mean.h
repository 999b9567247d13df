/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Mean RTT of a round: of all samples since it was cleared.
 */
#ifndef KNEE_MEAN_H
#define KNEE_MEAN_H

#include "knee/fixed.h"

struct cc_mean {
	u64 sum_us; /* below 2^56 */
	u32 n;	    /* samples; 0: none */
};

#define CC_MEAN_MAX_US ((1ULL << 56) - 1ULL)

/* Invariants of `st->rtt`. */
#define CC_MEAN_INVARIANTS(X) \
	X(mean_sum_us, st->rtt.sum_us <= CC_MEAN_MAX_US) \
	X(mean_range, st->rtt.sum_us >= st->rtt.n && \
			  st->rtt.sum_us <= (u64)st->rtt.n * CC_TIME_MAX_US)

/* Records a sample, clamped to 1 ... CC_TIME_MAX_US as cc_delay_sample() does. */
static inline void cc_mean_sample(struct cc_mean *mean, u32 rtt_us)
{
	if (mean->n == CC_U32_MAX)
		return;
	rtt_us = cc_min_u32(cc_max_u32(rtt_us, 1U), CC_TIME_MAX_US);
	mean->sum_us = cc_min_u64(mean->sum_us + rtt_us, CC_MEAN_MAX_US);
	mean->n++;
}

/* The mean, rounded down to 1/256 us; 0 where there is none. */
static inline u32 cc_mean_q8_us(const struct cc_mean *mean)
{
	return (u32)cc_min_u64(cc_div_u64(cc_shift_out_u64(mean->sum_us, 8U), mean->n, 0ULL),
			       (u64)CC_TIME_MAX_US << 8);
}

#endif
