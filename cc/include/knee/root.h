/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Roots of integers, in a fixed number of steps.
 */
#ifndef KNEE_ROOT_H
#define KNEE_ROOT_H

#include "knee/fixed.h"

/*
 * sqrt(n), rounded down. Newton's iteration from above: a relative error e becomes at most e^2/2.
 * The power of two at the start is less than twice the root, so from 1 six steps reach 2^-63 (1/2,
 * 2^-3, 2^-7, 2^-15, 2^-31, 2^-63). The quotients are rounded down, which can only take the last
 * steps one below and then above the root again.
 */
static inline u32 cc_sqrt_u64(u64 n)
{
	u64 root;

	if (n == 0ULL)
		return 0U;
	root = 1ULL << ((65U - (u32)__builtin_clzll(n)) / 2U);
	root = (root + n / root) / 2ULL;
	root = (root + n / root) / 2ULL;
	root = (root + n / root) / 2ULL;
	root = (root + n / root) / 2ULL;
	root = (root + n / root) / 2ULL;
	root = (root + n / root) / 2ULL;
	return (u32)cc_min_u64(root > n / root ? root - 1ULL : root, CC_U32_MAX);
}

/* n^(3/4) for n <= 2^31, rounded down to 2^-8 and short by less than 2^-7: sqrt(n sqrt(n)) of a
 * square root in 1/2^16. */
static inline u32 cc_three_quarters_power_q8(u32 n)
{
	u64 sqrt_q16 = cc_sqrt_u64((u64)n << 32);

	return cc_sqrt_u64((u64)n * sqrt_q16);
}

#endif
