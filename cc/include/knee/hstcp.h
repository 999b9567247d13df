/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The response of HighSpeed TCP: increase a(w) and decrease b(w) for a window of w packets.
 *
 * S. Floyd: "HighSpeed TCP for Large Congestion Windows", RFC 3649, section 5, with the RFC's
 * values: Low_Window 38, High_Window 83000, High_Decrease 0.1, p(w) = 0.078 / w^1.2.
 *
 *   b(w) = 0.5 - 0.4 log(w / 38) / log(83000 / 38)
 *   a(w) = w^2 p(w) 2 b(w) / (2 - b(w)) = 0.156 w^0.8 b(w) / (2 - b(w))
 *
 * Readings taken where the RFC is silent:
 *  - up to w = 38, a = 1 and b = 0.5 (the RFC's own words); just above it the formula gives 0.95,
 *    and 1 is taken until it exceeds that, at w = 41.
 *  - above High_Window b stays 0.1, and a continues along p(w), as the RFC's table of the response
 *    function does, up to 65536 packets per round trip (w = 4.2 * 10^8).
 *
 * a lies within 3 parts in 10^6 and 2^-16 of the formula, b within 2^-16; crates/knee-cc/tests/
 * hstcp.rs measures it.
 */
#ifndef KNEE_HSTCP_H
#define KNEE_HSTCP_H

#include "knee/contract.h"

#define HSTCP_LOW_WINDOW_PKTS 38U
#define HSTCP_HIGH_WINDOW_PKTS 83000U
/* log2(38) = 5.24793, rounded down as hstcp_log2_q20() does. */
#define HSTCP_LOG2_LOW_Q20 5502850U
/* 0.4 / log2(83000 / 38) = 0.0360591 */
#define HSTCP_SLOPE_Q36 2477963391ULL
/* 0.1 */
#define HSTCP_HIGH_DECREASE_Q32 429496730ULL
/* 0.156 */
#define HSTCP_RESPONSE_Q26 10468983ULL

/* log2(w), rounded down to 2^-20; w > 0. Each squaring of the significand yields a bit of the
 * fraction. No branches: the verifier of BPF programs would follow all of them. */
static inline u32 hstcp_log2_q20(u32 w)
{
	u32 log2 = 31U - (u32)__builtin_clz(w);
	u64 significand_q31 = (((u64)w << 31) >> log2) & CC_U32_MAX;

	for (u32 i = 0U; i < 20U; i++) {
		u32 bit;

		significand_q31 = (significand_q31 * significand_q31) >> 31;
		bit = (u32)(significand_q31 >> 32);
		significand_q31 = (significand_q31 >> bit) & CC_U32_MAX;
		log2 = log2 << 1 | bit;
	}
	return log2;
}

/* 2^f for 0 <= f < 1, within a part in 10^7: interpolated at the Chebyshev nodes. */
static inline u64 hstcp_exp2_q30(u64 f_q30)
{
	u64 sum = 2033403ULL;

	sum = 9609550ULL + ((sum * f_q30) >> 30);
	sum = 59979580ULL + ((sum * f_q30) >> 30);
	sum = 257850314ULL + ((sum * f_q30) >> 30);
	sum = 744268966ULL + ((sum * f_q30) >> 30);
	return 1073741715ULL + ((sum * f_q30) >> 30);
}

/* b(w) for a log2(w) that is at least log2(38). */
static inline u64 hstcp_decrease_q32(u32 log2_q20)
{
	u64 fall_q32 = (cc_sub_floor_u32(log2_q20, HSTCP_LOG2_LOW_Q20) * HSTCP_SLOPE_Q36) >> 24;

	return fall_q32 < (1ULL << 31) - HSTCP_HIGH_DECREASE_Q32 ? (1ULL << 31) - fall_q32
								 : HSTCP_HIGH_DECREASE_Q32;
}

/* a(w): packets per round trip, at least 1. */
static inline u32 hstcp_increase_q16(u32 cwnd_pkts)
{
	u32 log2_q20 = hstcp_log2_q20(cc_max_u32(cwnd_pkts, HSTCP_LOW_WINDOW_PKTS));
	u64 b_q32 = hstcp_decrease_q32(log2_q20);
	/* log2(w^0.8); then w^0.8 below 2^26. */
	u32 power_q22 = (u32)(16ULL * log2_q20 / 5ULL);
	u64 power_q16 =
	    hstcp_exp2_q30((u64)(power_q22 & 0x3fffffU) << 8) << (power_q22 >> 22) >> 14;
	u64 factor_q26 = b_q32 * HSTCP_RESPONSE_Q26 / ((2ULL << 32) - b_q32);
	/* Below 2^63: where w^0.8 is large, b is 0.1. */
	u64 increase_q16 = (power_q16 * factor_q26) >> 26;

	if (cwnd_pkts <= HSTCP_LOW_WINDOW_PKTS || increase_q16 < 1ULL << 16)
		return 1U << 16;
	return (u32)cc_min_u64(increase_q16, CC_U32_MAX);
}

/* b(w): the fraction of the window that a loss removes, 0.1 to 0.5. */
static inline u32 hstcp_decrease_q16(u32 cwnd_pkts)
{
	u32 log2_q20 = hstcp_log2_q20(cc_max_u32(cwnd_pkts, HSTCP_LOW_WINDOW_PKTS));

	return (u32)((hstcp_decrease_q32(log2_q20) + (1ULL << 15)) >> 16);
}

#endif
