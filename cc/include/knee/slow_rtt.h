/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The slow smoothed RTT: a filter with a fixed weight per sample, much slower than the stack's.
 */
#ifndef KNEE_SLOW_RTT_H
#define KNEE_SLOW_RTT_H

#include "knee/contract.h"

/*
 * Smoothed queueing delay: S - RTTmin, where S <- weight * S + (1 - weight) * r at every sample and
 * S starts at the first one. S is kept in 1/256 us and rounded to the nearest, so it stays within
 * 1/(512 (1 - weight)) us of the exact recursion: 0.2 us at weight 0.99, 2 us at 0.999.
 */
struct cc_slow_rtt {
	u32 srtt_q8_us; /* 0: no sample yet */
};

/* Invariants of `st->slow`. */
#define CC_SLOW_RTT_INVARIANT(X) X(srtt_q8_us, st->slow.srtt_q8_us <= CC_TIME_MAX_US << 8)

#define CC_SLOW_RTT_PARAM(X) \
	X(CC_PROB_PPM, srtt_weight_ppm, "srtt_weight", "", 0, 999000, 990000, "", \
	  "PERT: 0.99, from public implementations", \
	  "weight of the past in the slow smoothed RTT, per sample; 0: no smoothing")

/* Records a sample. */
static inline void cc_slow_rtt_sample(struct cc_slow_rtt *slow, u32 rtt_us, u32 weight_ppm)
{
	u32 rtt_q8_us = cc_min_u32(cc_max_u32(rtt_us, 1U), CC_TIME_MAX_US) << 8;
	u64 gain_ppm = (u64)cc_sub_floor_u32(CC_ONE_PPM, weight_ppm);
	u32 was_q8_us = slow->srtt_q8_us;
	int up = rtt_q8_us > was_q8_us;
	u64 away_q8_us = up ? rtt_q8_us - was_q8_us : was_q8_us - rtt_q8_us;
	u32 step_q8_us = (u32)((away_q8_us * gain_ppm + CC_ONE_PPM / 2U) / CC_ONE_PPM);

	if (was_q8_us == 0U)
		slow->srtt_q8_us = rtt_q8_us;
	else
		slow->srtt_q8_us = up ? cc_min_u32(cc_add_sat_u32(was_q8_us, step_q8_us), rtt_q8_us)
				      : cc_sub_floor_u32(was_q8_us, step_q8_us);
}

/* S, to the nearest microsecond; 0: no sample yet. */
static inline u32 cc_slow_rtt_us(const struct cc_slow_rtt *slow)
{
	return (slow->srtt_q8_us + 128U) >> 8;
}

/* Smoothed queueing delay, to the nearest microsecond. S is at least its least sample. */
static inline u32 cc_slow_rtt_q_us(const struct cc_slow_rtt *slow, u32 rtt_min_us)
{
	return cc_sub_floor_u32(cc_slow_rtt_us(slow), rtt_min_us);
}

#endif
