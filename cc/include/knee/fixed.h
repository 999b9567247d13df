/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checked integer and fixed-point arithmetic.
 *
 * A fixed-point value carries its shift in its name: `_q32` is scaled by 2^32. Probabilities that
 * a person types are parts per million (`_ppm`). Nothing here overflows or traps for the ranges
 * given; a division names the result that it gives for a zero divisor, because BPF yields 0 there
 * and native code would trap.
 */
#ifndef KNEE_FIXED_H
#define KNEE_FIXED_H

#include "knee/types.h"

#define CC_U32_MAX 0xffffffffU
#define CC_ONE_PPM 1000000U
/* The longest time that arithmetic here accepts: 16.7 s, so that time * 2^32 fits in 64 bits with
 * eight bits to spare. Delays above it are clamped where they enter. */
#define CC_TIME_MAX_US ((1U << 24) - 1U)

static inline u32 cc_min_u32(u32 a, u32 b)
{
	return a < b ? a : b;
}

static inline u32 cc_max_u32(u32 a, u32 b)
{
	return a > b ? a : b;
}

static inline u64 cc_min_u64(u64 a, u64 b)
{
	return a < b ? a : b;
}

static inline u64 cc_max_u64(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* a + b, or 2^32 - 1 where that would wrap. */
static inline u32 cc_add_sat_u32(u32 a, u32 b)
{
	return b > CC_U32_MAX - a ? CC_U32_MAX : a + b;
}

/* a - b, or 0 where that would wrap. */
static inline u32 cc_sub_floor_u32(u32 a, u32 b)
{
	return a > b ? a - b : 0U;
}

/* a - b, or 0 where that would wrap. */
static inline u64 cc_sub_floor_u64(u64 a, u64 b)
{
	return a > b ? a - b : 0ULL;
}

/* The low 32 bits. */
static inline u32 cc_low_u32(u64 a)
{
	return (u32)(a & CC_U32_MAX);
}

/* a << bits, for bits 0 ... 63; bits shifted out are lost. */
/*@ requires bits < 64; assigns \result \from a, bits; */
static inline u64 cc_shift_out_u64(u64 a, u32 bits)
{
	return a << bits;
}

/* num / den; `if_zero` where den is 0. */
static inline u64 cc_div_u64(u64 num, u64 den, u64 if_zero)
{
	return den != 0ULL ? num / den : if_zero;
}

/* num / den; `if_zero` where den is 0. */
static inline u32 cc_div_u32(u32 num, u32 den, u32 if_zero)
{
	return den != 0U ? num / den : if_zero;
}

/* a * b, or `most` where that would be more. */
/*@ assigns \result \from a, b, most; ensures \result <= most; */
static inline u64 cc_mul_up_to_u64(u64 a, u64 b, u64 most)
{
	u64 largest = b != 0ULL ? most / b : ~0ULL;

	/*@ assert b == 0 || largest * b <= most; */
	if (a > largest)
		return most;
	/*@ assert b == 0 || a * b <= largest * b; */
	return a * b;
}

/* A probability in parts per million (0 ... 10^6) as 0 ... 2^32. Exact at both ends. */
static inline u64 cc_ppm_to_q32(u32 ppm)
{
	return ((u64)cc_min_u32(ppm, CC_ONE_PPM) << 32) / CC_ONE_PPM;
}

/* p * num / den for a probability p_q32 <= 2^32 and num <= den <= CC_TIME_MAX_US: at most 2^56
 * before the division. Gives 0 where den is 0. */
static inline u64 cc_scale_q32(u64 p_q32, u32 num, u32 den)
{
	return cc_min_u64(cc_div_u64(p_q32 * (u64)num, (u64)den, 0ULL), p_q32);
}

/* True if an event of probability p_q32 (0 ... 2^32) happens, given 32 uniform random bits. */
/*@ requires probability: p_q32 <= (1ULL << 32); assigns \result \from random, p_q32; */
static inline int cc_happens(u32 random, u64 p_q32)
{
	return (u64)random < p_q32;
}

/* a - b on an axis that wraps: positions, counts and clocks. The proof (docs/explanation/proof.md)
 * takes any result; all other arithmetic stays within its type. */
/*@ assigns \result \from a, b; */
static inline u32 cc_wrapping_sub_u32(u32 a, u32 b)
{
	return a - b;
}

/*@ assigns \result \from a, b; */
static inline u64 cc_wrapping_sub_u64(u64 a, u64 b)
{
	return a - b;
}

/* True if position a lies after position b on a wrapping 32-bit axis (less than 2^31 apart). */
static inline int cc_after(u32 a, u32 b)
{
	return cc_wrapping_sub_u32(b, a) > CC_U32_MAX / 2U;
}

#endif
