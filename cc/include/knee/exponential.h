/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The exponential function in fixed point.
 */
#ifndef KNEE_EXPONENTIAL_H
#define KNEE_EXPONENTIAL_H

#include "knee/fixed.h"

#define CC_LN2_Q32 2977044472ULL

/*
 * e^-x for any x_q32 >= 0, at most 4 * 2^-32 off: e^-x = 2^-k e^-f with x = k ln 2 + f, 0 <= f < ln
 * 2, and twelve terms of the series of e^-f, whose rest is below 2^-36.
 */
static inline u64 cc_exp_neg_q32(u64 x_q32)
{
	u64 halvings = x_q32 / CC_LN2_Q32;
	u64 f_q32 = x_q32 % CC_LN2_Q32;
	u64 sum_q32 = 1ULL << 32;

	if (halvings > 33ULL)
		return 0ULL;
	/* 1 - f (1 - f/2 (1 - f/3 ...)); a product is below 2^64. */
	for (u32 n = 12U; n != 0U; n--)
		sum_q32 = (1ULL << 32) - ((f_q32 * sum_q32) >> 32) / n;
	return sum_q32 >> halvings;
}

#endif
