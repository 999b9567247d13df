/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The least of the samples of a sliding window, in 20 bytes.
 *
 * The samples themselves do not fit. Time is divided into buckets of a quarter of the window; the
 * running bucket and the four before it each keep their least sample. The result is the least of at
 * least one window and at most five quarters of one.
 */
#ifndef KNEE_BUCKETS_H
#define KNEE_BUCKETS_H

#include "knee/fixed.h"

#define CC_BUCKETS 5U
#define CC_BUCKETS_PER_WINDOW 4U
/* Times are modulo 2^40 us: a pause of 12.7 days looks like none. */
#define CC_BUCKETS_TIME_MASK ((1ULL << 40) - 1ULL)

/* Low 24 bits: 2^24 less the least sample of a bucket, 0: none; the running bucket first. High 8
 * bits, together: when the running bucket began, the least significant bits first. */
struct cc_buckets {
	u32 lane[CC_BUCKETS];
};

#define BUCKETS_ONE (1U << 24)

static inline u64 buckets_start_us(const struct cc_buckets *buckets)
{
	u64 start_us = 0ULL;

	for (u32 i = 0U; i < CC_BUCKETS; i++)
		start_us |= (u64)(buckets->lane[i] >> 24) << (8U * i);
	return start_us;
}

/* The least sample; 0: there is none. */
static inline u32 cc_buckets_least(const struct cc_buckets *buckets)
{
	u32 largest = 0U;

	for (u32 i = 0U; i < CC_BUCKETS; i++)
		largest = cc_max_u32(largest, buckets->lane[i] & CC_TIME_MAX_US);
	return (BUCKETS_ONE - largest) & CC_TIME_MAX_US;
}

/* Forgets everything. */
static inline void cc_buckets_clear(struct cc_buckets *buckets)
{
	*buckets = (struct cc_buckets){{0}};
}

/* Records a sample, 1 ... CC_TIME_MAX_US. The window may differ from call to call. */
static inline void cc_buckets_push(struct cc_buckets *buckets, u64 now_us, u64 window_us,
				   u32 sample)
{
	u64 width_us = window_us / CC_BUCKETS_PER_WINDOW + 1ULL;
	u64 start_us = buckets_start_us(buckets);
	u64 elapsed_us = cc_wrapping_sub_u64(now_us, start_us) & CC_BUCKETS_TIME_MASK;
	u64 ended;
	u32 moved;

	/* Most often the running bucket continues. */
	if (elapsed_us < width_us && (buckets->lane[0] & CC_TIME_MAX_US) != 0U) {
		if ((buckets->lane[0] & CC_TIME_MAX_US) < BUCKETS_ONE - sample)
			buckets->lane[0] =
			    (buckets->lane[0] & ~CC_TIME_MAX_US) | (BUCKETS_ONE - sample);
		return;
	}
	ended = elapsed_us / width_us;
	start_us += cc_sub_floor_u64(elapsed_us, elapsed_us % width_us);
	if (cc_buckets_least(buckets) == 0U)
		start_us = now_us;
	for (u32 k = 0U; k < CC_BUCKETS; k++) {
		if (k >= ended)
			break;
		/* Upwards: Linux 7.2's verifier refuses the negative index of a loop downwards. */
		moved = 0U;
		for (u32 i = 0U; i < CC_BUCKETS; i++) {
			u32 lane = buckets->lane[i];

			buckets->lane[i] = moved;
			moved = lane;
		}
	}
	buckets->lane[0] = cc_max_u32(buckets->lane[0] & CC_TIME_MAX_US, BUCKETS_ONE - sample);
	for (u32 i = 0U; i < CC_BUCKETS; i++)
		buckets->lane[i] = (buckets->lane[i] & CC_TIME_MAX_US) |
				   (u32)((start_us >> (8U * i)) & 0xffULL) << 24;
}

#endif
